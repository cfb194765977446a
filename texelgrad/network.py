"""A model as a graph of layers: what each reads, the shapes that follow. The page's nn/model.js infers the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from texelgrad.errors import Fault
from texelgrad.layers import ActivationLayer, Flatten, Layer, Reshape
from texelgrad.layers.base import KEEPS_INPUT, LayerShape, Refused, Shape, Trainable, Value, init_faults

INPUT = "input"
RESERVED = (INPUT, "x", "target", "loss", "correct")
"""What a layer may not be called: the model's input, and tensors that every graph has."""


@dataclass(frozen=True)
class Network:
    """What a model's layers compute. Where they don't fit each other, `faults` say why, and nothing else counts."""

    faults: tuple[Fault, ...]
    layers: tuple[LayerShape, ...]  # flattening is nothing
    output: Shape  # of the last layer, as the user sees it
    held_output: Shape  # the same as the engine holds it
    held_input: Shape


def infer_network(model_input: Sequence[int], layers: Sequence[Layer]) -> Network:
    """Follow the shapes through a model, once; `Model.network` keeps the answer."""
    if wiring := tuple(_wiring_faults(layers)):  # what is behind such a layer is unknown
        return Network(wiring, (), (), (), ())
    values = dict[str, Value]()
    found = list(_walk(model_input, layers, values))
    faults = [item for item in found if isinstance(item, Fault)]
    fitted = not faults
    shapes = tuple(item for item in found if isinstance(item, LayerShape))
    for shape in shapes:
        faults.extend(init_faults(layers[shape.index], shape.weights, f"model.layers.{shape.index}"))
    if fitted and not any(shape.weights and not shape.frozen for shape in shapes):
        faults.append(Fault("model.layers", "no layer has weights to train", None, "one that is trainable"))
    last = values.get(str(layers[-1].name))
    output, held = (last.shape, last.held) if last else ((), ())
    return Network(tuple(faults), shapes, output, held, values[INPUT].held)


def _held_input(model_input: Sequence[int], layers: Sequence[Layer]) -> tuple[int, ...]:
    """How the engine holds the input: what is only ever read in another shape is uploaded so."""
    wiring = zip(layers, _wiring(layers), strict=True)
    wanted = {_wanted(layer, tuple(model_input)) for layer, names in wiring if INPUT in names}
    return wanted.pop() if len(wanted) == 1 else tuple(model_input)


def _wanted(layer: Layer, model_input: tuple[int, ...]) -> tuple[int, ...]:
    """In which shape a layer that reads the input needs it."""
    if isinstance(layer, Flatten):
        return (math.prod(model_input),)
    if isinstance(layer, Reshape) and math.prod(layer.shape) == math.prod(model_input):
        return tuple(layer.shape)
    return model_input


def _wiring(layers: Sequence[Layer]) -> list[list[str]]:
    """Names of what each layer reads: the layer before it unless it says otherwise."""
    before = [INPUT, *(str(layer.name) for layer in layers[:-1])]
    return [layer.inputs or [name] for layer, name in zip(layers, before, strict=True)]


def _wiring_faults(layers: Sequence[Layer]) -> Iterator[Fault]:
    wiring = _wiring(layers)
    known = [INPUT]
    for index, (layer, names) in enumerate(zip(layers, wiring, strict=True)):
        field = f"model.layers.{index}"
        if layer.name in RESERVED:
            yield Fault(f"{field}.name", "is the name of something else", layer.name, "a name of its own")
        for k, name in enumerate(names):
            if name not in known:
                yield Fault(f"{field}.inputs.{k}", "is no earlier layer", name, ", ".join(known))
        least, most = layer.reads
        if len(names) < least or (most is not None and len(names) > most):
            legal = str(least) if least == most else f"at least {least}"
            yield Fault(f"{field}.inputs", f"{layer.type} reads {legal}", len(names), legal)
        known.append(str(layer.name))
    read = {name for names in wiring for name in names}
    for index, layer in enumerate(layers[:-1]):
        if layer.name not in read:
            yield Fault(f"model.layers.{index}", "no layer reads it", layer.name, "an input of a later layer")
    if INPUT not in read:
        yield Fault("model.layers", "no layer reads the model's input", None, "a layer with the input input")


def _walk(
    model_input: Sequence[int], layers: Sequence[Layer], values: dict[str, Value]
) -> Iterator[LayerShape | Fault]:
    """What each layer computes, or why it does not fit; `values` is filled with what each makes."""
    values[INPUT] = Value(tuple(model_input), _held_input(model_input, layers), data=True)
    trained = set[str]()
    wiring = _wiring(layers)
    for index, (layer, names) in enumerate(zip(layers, wiring, strict=True)):
        if not all(name in values for name in names):
            continue  # behind a layer that did not fit
        try:
            shape, value = layer.fit([values[name] for name in names], f"model.layers.{index}")
        except Refused as refused:
            yield refused.fault
            continue
        name = str(layer.name)
        values[name] = value
        through = any(before in trained for before in names)
        frozen = isinstance(layer, Trainable) and not layer.trainable
        if through or (shape and shape.weights and not frozen):
            trained.add(name)
        if shape:
            stored = shape.stored + _kept_besides(layer, layers, wiring, index)
            yield replace(shape, index=index, trained=through, frozen=frozen, stored=stored)


def _kept_besides(layer: Layer, layers: Sequence[Layer], wiring: Sequence[list[str]], index: int) -> int:
    """Tensors kept for the activation of a layer: what it reads, or -1 where it rides along and what it reads is never stored."""
    if layer.applies in KEEPS_INPUT or layer.applies == "softmax":
        return 0 if isinstance(layer, ActivationLayer) else 1
    if not isinstance(layer, ActivationLayer):
        return 0
    (before,) = wiring[index]
    readers = sum(names.count(before) for names in wiring)
    maker = next((other for other in layers[:index] if other.name == before), None)
    return -1 if readers == 1 and maker and maker.applies == "linear" else 0

"""A model as a graph of layers: what each reads, the shapes that follow. The page's nn/model.js infers the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from texelgrad.errors import Fault
from texelgrad.inputs import NO_INPUTS, RESERVED, ModelInput, Shape, field_of, inputs_of
from texelgrad.layers import ActivationLayer, Dense, Embedding, Flatten, Layer, Reshape
from texelgrad.layers.base import KEEPS_INPUT, LayerShape, Refused, Trainable, Value, init_faults


@dataclass(frozen=True)
class Network:
    """What a model's layers compute. Where they don't fit each other, `faults` say why, and nothing else counts."""

    faults: tuple[Fault, ...]
    layers: tuple[LayerShape, ...]  # flattening is nothing
    output: Shape  # of the last layer, as the user sees it
    held_output: Shape  # the same as the engine holds it
    held_inputs: tuple[Shape, ...]  # of each input in their order


def infer_network(model_input: ModelInput, layers: Sequence[Layer]) -> Network:
    """Follow the shapes through a model, once; `Model.network` keeps the answer."""
    if wiring := tuple(_wiring_faults(model_input, layers)):  # what is behind such a layer is unknown
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
    inputs = tuple(values[name].held for name in inputs_of(model_input))
    return Network(tuple(faults), shapes, output, held, inputs)


def _held_inputs(model_input: ModelInput, layers: Sequence[Layer]) -> dict[str, Shape]:
    """How the engine holds each input: what is only ever read in another shape is uploaded so."""
    wiring = _wiring(model_input, layers)
    return {
        name: _held(shape, [layer for layer, names in zip(layers, wiring, strict=True) if name in names])
        for name, shape in inputs_of(model_input).items()
    }


def _held(shape: Shape, readers: Sequence[Layer]) -> Shape:
    wanted = {_wanted(layer, shape) for layer in readers}
    return wanted.pop() if len(wanted) == 1 else shape


def _wanted(layer: Layer, shape: Shape) -> Shape:
    """In which shape a layer that reads an input needs it."""
    if isinstance(layer, Flatten):
        return (math.prod(shape),)
    if isinstance(layer, Reshape) and math.prod(layer.shape) == math.prod(shape):
        return tuple(layer.shape)
    return shape


def lookups(model_input: ModelInput, layers: Sequence[Layer]) -> dict[str, list[int]]:
    """Of each input whose numbers are looked up, the places of the embeddings; the layers may not fit each other."""
    # What flattens or reshapes an input still holds its numbers.
    origin: dict[str, str | None] = {name: name for name in inputs_of(model_input)}
    found: dict[str, list[int]] = {}
    for index, (layer, names) in enumerate(zip(layers, _wiring(model_input, layers), strict=True)):
        source = origin.get(names[0]) if len(names) == 1 else None
        if isinstance(layer, Embedding) and source is not None:
            found.setdefault(source, []).append(index)
        origin[str(layer.name)] = source if isinstance(layer, Flatten | Reshape) else None
    return found


def read_columns(model_input: ModelInput, layers: Sequence[Layer]) -> set[str]:
    """Names of the layers for which the order of a table's columns matters: those that read them, before a dense layer mixes them."""
    ordered = {*inputs_of(model_input)}
    readers = set[str]()
    for layer, names in zip(layers, _wiring(model_input, layers), strict=True):
        if not ordered.isdisjoint(names):
            readers.add(str(layer.name))
            if not isinstance(layer, Dense):
                ordered.add(str(layer.name))
    return readers


def normalize_faults(model_input: ModelInput, layers: Sequence[Layer], normalize: str) -> Iterator[Fault]:
    """Numbers that are looked up stay as they are: there must be others to normalise."""
    if normalize != "none" and not {*inputs_of(model_input)} - {*lookups(model_input, layers)}:
        message = "would change the numbers that embedding looks up"
        yield Fault("data.normalize", message, normalize, "none")


def _wiring(model_input: ModelInput, layers: Sequence[Layer]) -> list[list[str]]:
    """Names of what each layer reads: the layer before it unless it says otherwise, at first the only input."""
    inputs = [*inputs_of(model_input)]
    before = [inputs if len(inputs) == 1 else [], *([str(layer.name)] for layer in layers[:-1])]
    return [layer.inputs or names for layer, names in zip(layers, before, strict=True)]


def _wiring_faults(model_input: ModelInput, layers: Sequence[Layer]) -> Iterator[Fault]:
    wiring = _wiring(model_input, layers)
    inputs = inputs_of(model_input)
    for name in inputs:
        if isinstance(model_input, Mapping) and name in NO_INPUTS:
            yield Fault(field_of(name), "is the name of something else", name, "a name of its own")
    known = [*inputs]
    for index, (layer, names) in enumerate(zip(layers, wiring, strict=True)):
        field = f"model.layers.{index}"
        if layer.name in RESERVED or layer.name in inputs:
            yield Fault(f"{field}.name", "is the name of something else", layer.name, "a name of its own")
        if not names:
            message, legal = "must say which of the inputs it reads", ", ".join(known)
            yield Fault(f"{field}.inputs", message, None, legal)
            known.append(str(layer.name))
            continue
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
    for name in inputs:
        if name not in read:
            yield Fault(field_of(name), f"no layer reads {name}", None, f"an input {name} of a layer")


def _walk(
    model_input: ModelInput, layers: Sequence[Layer], values: dict[str, Value]
) -> Iterator[LayerShape | Fault]:
    """What each layer computes, or why it does not fit; `values` is filled with what each makes."""
    held = _held_inputs(model_input, layers)
    for name, shape in inputs_of(model_input).items():
        values[name] = Value(shape, held[name], data=True)
    trained = set[str]()
    makers = dict[str, int]()  # of each value, the layer that computed it: what computes nothing hands it on
    wiring = _wiring(model_input, layers)
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
        reads = tuple(makers[before] for before in names if before in makers)
        for maker in (index,) if shape else reads:
            makers[name] = maker
        if shape:
            stored = shape.stored + _kept_besides(layer, layers, wiring, index)
            yield replace(shape, index=index, reads=reads, trained=through, frozen=frozen, stored=stored)


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

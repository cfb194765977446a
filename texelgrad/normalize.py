"""Normalisation of inputs in NumPy, by what the page fitted and stored with the weights (browser_runtime/train/normalization.js).

Each feature, or each channel of images (the last axis), has its own offset and scale: x' = (x - offset) * scale in
float64 from the float32 x, rounded once to float32.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texelgrad.errors import Fault
from texelgrad.inputs import INPUT, ModelInput, inputs_of

_FIELD = "data.normalize"


def tensors_of(name: str) -> tuple[str, str]:
    """Names of an input's offset and scale in the weights. No layer's tensors have these: no layer has an input's name."""
    return f"{name}.offset", f"{name}.scale"


def keeps_float64(tensor: str) -> bool:
    """Whether a file's tensor is an offset or a scale, which may be beyond float32, as those of subnormal inputs are."""
    return tensor.endswith(tensors_of(""))


def lacks_normalization(spec: Mapping[str, Any], tensors: Container[str]) -> bool:
    """Whether a job of this spec fitted one that its file of weights does not hold, as early versions stored them.

    What is inherited may be none.
    """
    fitted = spec["data"]["normalize"] in ("standard", "minmax")
    return fitted and not any(tensors_of(name)[0] in tensors for name in inputs_of(spec["model"]["input"]))


def inherit_faults(
    spec_input: ModelInput, kept: Container[str], shapes: Mapping[str, tuple[int, ...]], *, uploaded: bool
) -> Iterator[Fault]:
    """Where a file of weights does not say what each input goes through.

    Args:
        spec_input: the model's.
        kept: names of the inputs that stay as they are, since their numbers are looked up.
        shapes: of the file's tensors by name.
        uploaded: whether nobody knows what made it; the weights of a job without normalisation need none.
    """
    inputs = {name: shape for name, shape in inputs_of(spec_input).items() if name not in kept}
    needed = {tensor: (shape[-1],) for name, shape in inputs.items() for tensor in tensors_of(name)}
    missing = [f"{tensor} {list(shape)}" for tensor, shape in needed.items() if tensor not in shapes]
    there = [tensor for tensor in needed if tensor in shapes]
    legal = "none, standard or minmax; or weights with " + " and ".join(
        f"{tensor} {list(shape)}" for tensor, shape in needed.items()
    )
    if missing and (there or uploaded):
        yield Fault(_FIELD, f"the file of weights has no {', '.join(missing)}", "inherit", legal)
    for tensor in there:
        if shapes[tensor] != needed[tensor]:
            message = f"{tensor} is {list(shapes[tensor])} in the file of weights, the input needs {list(needed[tensor])}"
            yield Fault(_FIELD, message, "inherit", legal)


def normalized(
    x: NDArray[Any], weights: Mapping[str, NDArray[Any]], name: str = INPUT
) -> NDArray[np.float32]:
    """An input as the trained network takes it; weights without its normalisation leave it as it is."""
    x = np.asarray(x, np.float32)
    offset, scale = tensors_of(name)
    if offset not in weights:
        return x
    return ((x.astype(np.float64) - weights[offset]) * weights[scale]).astype(np.float32)

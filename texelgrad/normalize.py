"""Normalisation of inputs in NumPy, by what the page fitted and stored with the weights (browser_runtime/train/normalization.js).

Each feature, or each channel of images (the last axis), has its own offset and scale: x' = (x - offset) * scale in
float64 from the float32 x, rounded once to float32.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texelgrad.inputs import INPUT, inputs_of


def tensors_of(name: str) -> tuple[str, str]:
    """Names of an input's offset and scale in the weights. No layer's tensors have these: no layer has an input's name."""
    return f"{name}.offset", f"{name}.scale"


def lacks_normalization(spec: Mapping[str, Any], tensors: Container[str]) -> bool:
    """Whether a job of this spec fitted one that its file of weights does not hold, as early versions stored them.

    What is inherited may be none.
    """
    fitted = spec["data"]["normalize"] in ("standard", "minmax")
    return fitted and not any(tensors_of(name)[0] in tensors for name in inputs_of(spec["model"]["input"]))


def normalized(
    x: NDArray[Any], weights: Mapping[str, NDArray[Any]], name: str = INPUT
) -> NDArray[np.float32]:
    """An input as the trained network takes it; weights without its normalisation leave it as it is."""
    x = np.asarray(x, np.float32)
    offset, scale = tensors_of(name)
    if offset not in weights:
        return x
    return ((x.astype(np.float64) - weights[offset]) * weights[scale]).astype(np.float32)

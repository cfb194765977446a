"""Normalisation of inputs in NumPy, by what the page fitted and stored with the weights (browser_runtime/train/normalization.js).

Each feature, or each channel of images (the last axis), has its own offset and scale: x' = (x - offset) * scale in
float64 from the float32 x, rounded once to float32.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

OFFSET, SCALE = "input.offset", "input.scale"
"""Names of the tensors in the weights. No layer's tensors have these: `input` is reserved for the model's input."""


def lacks_normalization(normalize: str, tensors: Container[str]) -> bool:
    """Whether a job fitted one that its file of weights does not hold, as early versions stored them.

    `normalize` is the spec's data.normalize. What is inherited may be none.
    """
    return normalize in ("standard", "minmax") and OFFSET not in tensors


def normalized(x: NDArray[Any], weights: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    """Inputs as the trained network takes them; weights of a job without normalisation leave them as they are."""
    x = np.asarray(x, np.float32)
    if OFFSET not in weights:
        return x
    return ((x.astype(np.float64) - weights[OFFSET]) * weights[SCALE]).astype(np.float32)

"""Dropout by the masks that texelgrad/rng.py draws."""

from __future__ import annotations

import numpy as np

from texelgrad.rng import dropout_mask

from ..oracle import Approx
from .base import OpRun, Oracle


def _dropout(run: OpRun) -> dict[str, Approx]:
    x, attrs = run.read["x"], run.attrs
    seed, number = attrs["key"][0] + (attrs["key"][1] << 32), int(attrs["counter"]) % (1 << 24)
    mask = dropout_mask(seed, number, run.step["t"] - 1, x.size, 1 - attrs["kept"]).reshape(x.shape)
    return {"y": Approx(np.where(mask, x / attrs["kept"], 0.0), np.zeros_like(x)).plus_roundings(2)}


DROPOUT: dict[str, Oracle] = {"dropout": _dropout}

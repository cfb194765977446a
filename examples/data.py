"""Writes the data set of an example by its name; to be called as python examples/data.py digits digits.npz.

All but the waves of time_series are of scikit-learn; README.md beside this file says which.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits

Arrays = dict[str, NDArray[Any]]


def digits() -> Arrays:
    """x [1797, 64] in 0..1, y [1797] in 0..9."""
    x, y = load_digits(return_X_y=True)
    return {"x": (np.asarray(x) / 16).astype(np.float32), "y": np.asarray(y, np.int32)}


def digit_images() -> Arrays:
    """The same as images: x [1797, 8, 8, 1]."""
    flat = digits()
    return {"x": flat["x"].reshape(-1, 8, 8, 1), "y": flat["y"]}


def low_digits() -> Arrays:
    """Images of 0 to 4 alone: x [901, 8, 8, 1], y [901]."""
    x, y = digit_images().values()
    return {"x": x[y < 5], "y": y[y < 5]}


def high_digits() -> Arrays:
    """Images of 5 to 9 alone: x [896, 8, 8, 1], y [896] in 0..4."""
    x, y = digit_images().values()
    return {"x": x[y >= 5], "y": y[y >= 5] - 5}


def same_digits() -> Arrays:
    """x and y [1797, 64], the same: what an autoencoder gives back."""
    x = digits()["x"]
    return {"x": x, "y": x}


def diabetes() -> Arrays:
    """x [442, 10] as measured, y [442]: 25 to 346, about 152 with a deviation of 77, made into numbers near 0."""
    x, target = load_diabetes(return_X_y=True, scaled=False)
    return {"x": np.asarray(x, np.float32), "y": ((np.asarray(target) - 150) / 80).astype(np.float32)}


def waves(rows: int, seed: int) -> Arrays:
    """Sines, squares and triangles of random frequency, phase and height in noise: x [rows, 64, 1], y [rows] in 0..2."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, rows).astype(np.int32)
    phase = random.uniform(2, 5, (rows, 1)) * np.linspace(0, 1, 64) + random.uniform(0, 1, (rows, 1))
    sine = np.sin(2 * np.pi * phase)
    forms = np.stack([sine, np.sign(sine), 2 / np.pi * np.arcsin(sine)])
    x = random.uniform(0.5, 2, (rows, 1)) * forms[y, np.arange(rows)]
    return {"x": (x + random.normal(scale=0.05, size=x.shape)).astype(np.float32)[:, :, None], "y": y}


SETS: dict[str, Callable[[], Arrays]] = {
    "autoencoder": same_digits,
    "diabetes": diabetes,
    "digits": digits,
    "digits_cnn": digit_images,
    "fine_tune": high_digits,
    "fine_tune_base": low_digits,
    "time_series": lambda: waves(1200, 1),
}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in SETS:
        sys.exit(f"usage: python examples/data.py NAME FILE.npz, where NAME is one of {', '.join(SETS)}")
    np.savez_compressed(sys.argv[2], **SETS[sys.argv[1]]())  # pyright: ignore[reportArgumentType]

"""Normalization: statistics in two passes, what they normalize, and the gradients.

Bounds: one rounding an operation of the kernels, sums by the additions that a term passes through.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..oracle import DIVISION, SQRT, TINY, Approx, Floats, U
from .base import OpRun, Oracle

BLOCK = 64  # texels, pixels of 4 samples, or parts that are added before the blocks are
INVERSE_ROOT = SQRT + DIVISION + 2 * U  # of 1 / sqrt(v + eps), relative, where v is exact


class Sets:
    """What is normalized together in a sample of `pixels` times `channels`: for each column the number of its set."""

    def __init__(self, attrs: dict[str, Any]) -> None:
        pixels, channels, groups = attrs["pixels"], attrs["channels"], attrs["groups"]
        pixel, self.channel = np.divmod(np.arange(pixels * channels), channels)
        own = channels // groups
        self.of = pixel if attrs["pixelwise"] else self.channel // own
        self.count = pixels if attrs["pixelwise"] else groups
        self.values = pixels * channels // self.count
        self.member = np.eye(self.count)[self.of]  # [columns, sets]
        of_pixel = -(-own // 4) if own % 4 == 0 or groups == 1 else (own + 2) // 4 + 1
        pixels_of_set = 1 if attrs["pixelwise"] else pixels
        texels = pixels_of_set * of_pixel
        of_part = pixels_of_set if texels <= 256 else max(1, math.ceil(math.sqrt(texels) / of_pixel))
        self.parts = -(-pixels_of_set // of_part)
        """Additions within a part: a block of a pixel's texels, blocks and pixels, 4 lanes."""
        self.additions = min(of_pixel, BLOCK) + of_part * -(-of_pixel // BLOCK) + 3

    def sums(self, x: Floats) -> Floats:
        """Of each set: [M, sets]."""
        return x @ self.member

    def largest(self, x: Floats) -> Floats:
        """Of each set: [M, sets]."""
        return np.stack([np.abs(x[:, self.of == set_]).max(axis=1) for set_ in range(self.count)], axis=1)

    def spread(self, pairs: Floats) -> tuple[Floats, Floats]:
        """The two numbers of each element's set: [M, columns] each."""
        return pairs[:, 2 * self.of], pairs[:, 2 * self.of + 1]

    def pairs(self, first: Approx, second: Approx) -> Approx:
        """[M, 2 sets] from two [M, sets]."""
        value = np.stack([first.value, second.value], axis=2).reshape(len(first.value), -1)
        return Approx(value, np.stack([first.error, second.error], axis=2).reshape(value.shape))


def moments(values: int, mean: Floats, size: Floats, squares: Floats, largest: Floats, additions: int, parts: int) -> tuple[Approx, Approx]:  # fmt: skip
    """Mean and variance over n of `values` values: their exact mean, mean |x|, squared deviations and largest |x|.

    d = x - mean' with the mean' that was computed adds n (mean' - mean)^2 to the squares. Where parts are merged, squares of a part are
    about its own mean': they miss 2 n_p (mean_p - mean) (mean_p' - mean_p), by Cauchy and Schwarz at most 2 n deviation |mean_p' - mean_p|.
    """
    merges = min(parts, BLOCK) + -(-parts // BLOCK) + 2 if parts > 1 else 0
    off = (additions + merges + 2) * U * size + 2 * DIVISION * size + TINY
    variance = squares / values
    error = (additions + merges + 8) * U * (variance + off**2) + off**2 + DIVISION * variance + TINY
    if parts > 1:
        part_off = off + (additions + 2) * U * largest + DIVISION * largest
        error += 4 * part_off * np.sqrt(variance) + 4 * part_off**2
    return Approx(mean, off), Approx(variance, error)


def _inverse_root(v: Approx, eps: float) -> Approx:
    """1 / sqrt(v + eps)."""
    value = 1 / np.sqrt(v.value + eps)
    highest = 1 / np.sqrt(np.maximum(v.value - v.error, 0) + eps)
    return Approx(value, highest - value + INVERSE_ROOT * highest)


def _sample_statistics(run: OpRun) -> dict[str, Approx]:
    sets, x = Sets(run.attrs), run.read["x"]
    mean = sets.sums(x) / sets.values
    squares = sets.sums((x - mean[:, sets.of]) ** 2)
    size = sets.sums(np.abs(x)) / sets.values
    found = moments(sets.values, mean, size, squares, sets.largest(x), sets.additions, sets.parts)
    return {"s": sets.pairs(found[0], _inverse_root(found[1], run.attrs["eps"]))}


def _sample_normalized(run: OpRun) -> tuple[Sets, Floats, Floats]:
    """The normalized x, and the inverse deviation of each element."""
    sets = Sets(run.attrs)
    mean, inverse = sets.spread(run.read["s"])
    return sets, (run.read["x"] - mean) * inverse, inverse


def _sample_norm(run: OpRun) -> dict[str, Approx]:
    sets, x, _ = _sample_normalized(run)
    gamma, beta = run.read["w"][:, sets.channel]
    scaled = Approx(x * gamma, np.zeros_like(x)).plus_roundings(3)
    return {"y": Approx(scaled.value + beta, scaled.error).plus_roundings(1)}


def _sample_grad_sums(run: OpRun) -> dict[str, Approx]:
    sets, x, _ = _sample_normalized(run)
    g = run.read["dy"] * run.read["w"][0, sets.channel]
    additions = sets.additions + (sets.parts if sets.parts > 1 else 0)

    def mean(terms: Floats, roundings: int) -> Approx:
        value, size = sets.sums(terms) / sets.values, sets.sums(np.abs(terms)) / sets.values
        return Approx(value, (additions + roundings) * U * size + DIVISION * np.abs(value) + TINY)

    return {"sums": sets.pairs(mean(g, 1), mean(g * x, 4))}


def _sample_grad_input(run: OpRun) -> dict[str, Approx]:
    sets, x, inverse = _sample_normalized(run)
    first, second = sets.spread(run.read["sums"])
    g = run.read["dy"] * run.read["w"][0, sets.channel]
    size = inverse * (np.abs(g) + np.abs(first) + np.abs(x * second))
    return {"dx": Approx(inverse * (g - first - x * second), 7 * U * size + TINY)}


def _spots(run: OpRun) -> tuple[int, int]:
    """Additions within a part of the sums over samples and pixels, and the parts."""
    every = run.step["aligned"] // 4 * run.attrs["pixels"]
    spots = every if every <= BLOCK else max(16, math.ceil(math.sqrt(every)), -(-every // 2048))
    return 4 * min(spots, BLOCK) + -(-spots // BLOCK), -(-every // spots)


def _grad_weights(run: OpRun, x: Floats, error: float) -> dict[str, Approx]:
    """Sums of DY times the normalized x, whose relative error is given, and of DY, over samples and pixels."""
    additions, parts = _spots(run)
    dy, channels = run.read["dy"], run.attrs["channels"]

    def sums(terms: Floats) -> Floats:
        return terms.reshape(-1, channels).sum(axis=0)

    roundings = (additions + parts) * U
    rows = [
        (sums(dy * x), (roundings + U + error) * sums(np.abs(dy * x))),
        (sums(dy), roundings * sums(np.abs(dy))),
    ]
    return {"dw": Approx(np.stack([row[0] for row in rows]), np.stack([row[1] for row in rows]) + TINY)}


def _batch_statistics(run: OpRun) -> dict[str, Approx]:
    x = run.read["x"].reshape(-1, run.attrs["channels"])
    additions, parts = _spots(run)
    values, momentum = len(x), run.attrs["momentum"]
    mean = x.mean(axis=0, keepdims=True)
    squares = ((x - mean) ** 2).sum(axis=0, keepdims=True)
    size, largest = np.abs(x).mean(axis=0, keepdims=True), np.abs(x).max(axis=0, keepdims=True)
    found, variance = moments(values, mean, size, squares, largest, additions, parts)
    unbiased = Approx(
        variance.value * values / (values - 1), variance.error * values / (values - 1)
    ).plus_roundings(2 * DIVISION / U)

    def moved(running: str, batch: Approx) -> Approx:
        kept = Approx(run.read[running], np.zeros_like(mean)).times(1 - momentum)
        new = batch.times(momentum)
        return Approx(kept.value + new.value, kept.error + new.error).plus_roundings(1)

    return {
        "mean": found, "variance": variance,
        "running_mean": moved("running_mean", found), "running_var": moved("running_var", unbiased),
    }  # fmt: skip


def _by_channel(run: OpRun, row: Floats) -> Floats:
    """A number a channel for each column."""
    return np.tile(row.reshape(-1), run.attrs["pixels"])


def _batch_normalized(run: OpRun) -> tuple[Floats, Floats]:
    """The normalized x, and the inverse deviation of each column."""
    inverse = 1 / np.sqrt(_by_channel(run, run.read["variance"]) + run.attrs["eps"])
    return (run.read["x"] - _by_channel(run, run.read["mean"])) * inverse, inverse


def _batch_norm(run: OpRun) -> dict[str, Approx]:
    x, _ = _batch_normalized(run)
    gamma, beta = (_by_channel(run, row) for row in run.read["w"])
    scaled = Approx(x * gamma, INVERSE_ROOT * np.abs(x * gamma)).plus_roundings(3)
    return {"y": Approx(scaled.value + beta, scaled.error).plus_roundings(1)}


def _batch_grad_input(run: OpRun) -> dict[str, Approx]:
    x, inverse = _batch_normalized(run)
    count = len(x) * run.attrs["pixels"]
    dgamma, dbeta = (_by_channel(run, row) / count for row in run.read["dw"])
    scale = _by_channel(run, run.read["w"][0]) * inverse
    dy = run.read["dy"]
    size = np.abs(scale) * (np.abs(dy) + np.abs(dbeta) + np.abs(x * dgamma))
    # Both the scale and x have the inverse deviation in them; 1 / count is a product of two rounded numbers.
    return {"dx": Approx(scale * (dy - dbeta - x * dgamma), (2 * INVERSE_ROOT + 12 * U) * size + TINY)}


def _batch_grad_scale(run: OpRun) -> dict[str, Approx]:
    inverse = 1 / np.sqrt(_by_channel(run, run.read["variance"]) + run.attrs["eps"])
    dx = run.read["dy"] * _by_channel(run, run.read["w"][0]) * inverse
    return {"dx": Approx(dx, (INVERSE_ROOT + 3 * U) * np.abs(dx) + TINY)}


NORM: dict[str, Oracle] = {
    "sample_norm_statistics": _sample_statistics,
    "sample_norm": _sample_norm,
    "sample_norm_grad_sums": _sample_grad_sums,
    "sample_norm_grad_input": _sample_grad_input,
    "sample_norm_grad_weights": lambda run: _grad_weights(run, _sample_normalized(run)[1], 3 * U),
    "batch_norm_statistics": _batch_statistics,
    "batch_norm": _batch_norm,
    "batch_norm_grad_input": _batch_grad_input,
    "batch_norm_grad_scale": _batch_grad_scale,
    "batch_norm_grad_weights": lambda run: _grad_weights(
        run, _batch_normalized(run)[0], INVERSE_ROOT + 3 * U
    ),
}

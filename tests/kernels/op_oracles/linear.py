"""Embeddings; convolutions of any kind are conv2d's."""

from __future__ import annotations

import numpy as np

from .. import oracle
from ..oracle import Approx, U
from .base import OpRun, Oracle


def _embedding(run: OpRun) -> dict[str, Approx]:
    found = run.read["w"][run.read["x"].astype(int)]
    return {"y": oracle.exact(found.reshape(len(found), -1))}


def _embedding_grad_weights(run: OpRun) -> dict[str, Approx]:
    """Lines of 4 places of 4 samples, then the lines of a part, then the parts."""
    numbers, vocabulary = run.read["x"].astype(int), run.attrs["vocabulary"]
    dy = run.read["dy"].reshape(*numbers.shape, -1)
    value, size = np.zeros((2, vocabulary, dy.shape[-1]))
    np.add.at(value, numbers, dy)
    np.add.at(size, numbers, np.abs(dy))
    splits = len(run.stored["dw"]) // vocabulary
    lines = -(-len(numbers) // 4) * -(-numbers.shape[1] // 4)
    # no sum has more additions than terms that are not 0
    terms = np.bincount(numbers.ravel(), minlength=vocabulary)[:, None]
    roundings = np.minimum(16 + -(-lines // splits) + splits, terms)
    return {"dw": Approx(value, roundings * U * size)}


LINEAR: dict[str, Oracle] = {"embedding": _embedding, "embedding_grad_weights": _embedding_grad_weights}

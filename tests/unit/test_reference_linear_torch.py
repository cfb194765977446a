"""The reference's embedding against PyTorch in float64."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from .test_reference import op
from .test_reference_torch import leaf, matches, normal


def test_embedding_against_torch():
    """Rows by their numbers; each row's gradient is the sum of those of its places, none where nobody looked it up."""
    numbers = np.array([[0, 3, 3, 1], [3, 0, 6, 6], [3, 3, 3, 3]], np.float64)
    table, dy = leaf(normal(1, 7, 5)), normal(2, 3, 4, 5)
    y = functional.embedding(torch.tensor(numbers).long(), table)
    y.backward(torch.tensor(dy))  # pyright: ignore[reportUnknownMemberType]
    matches(op("embedding", x=numbers, table=table.detach().numpy())["y"], y)
    matches(op("embedding_grad_weights", {"vocabulary": 7}, x=numbers, dy=dy)["table"], table.grad)


def test_embedding_of_what_is_not_there():
    """Below 0, past the last row, not whole: NaN, which the loss then is."""
    got = op("embedding", x=np.array([[-1, 0, 2, 0.5, np.nan]]), table=np.ones((2, 3)))["y"]
    assert np.isnan(got[0]).all(axis=1).tolist() == [True, False, True, True, True]

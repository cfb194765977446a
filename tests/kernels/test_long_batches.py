"""Batches of so many lines that lines times parts of a gradient are more than an int holds: one step against PyTorch in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from ..tolerances import PARITY_LOSS_RTOL
from .cnns import cnn, conv, weights_of
from .harness import BrowserPage

PAGE = "/tests/kernels/long_batches_page.js"
ROWS, HEIGHT = 1024, 2100
"""Lines of 4 rows are summed at a time, 537,600 of them, by up to 4,096 fragments."""
assert ROWS // 4 * HEIGHT * 4095 > 2**31


def made(sawtooth: dict[str, Any]) -> torch.Tensor:
    """What the page makes, as channels before pixels."""
    count = np.arange(math.prod(sawtooth["shape"]))
    values = sawtooth["least"] + (count % sawtooth["period"]) * sawtooth["unit"]
    return torch.from_numpy(values.reshape(sawtooth["shape"])).permute(0, 3, 1, 2)


@pytest.mark.parametrize(
    ("channels", "filters", "groups"),
    [(1, 1, 1), (2, 2, 2), (4, 2, 2)],
    ids=["whole", "depthwise", "grouped"],
)
def test_convolutions(browser_page: BrowserPage, channels: int, filters: int, groups: int):
    """Of 1 x 1: the gradient is a sum over all pixels; all have the same sign, so that each part that is left out is missed."""
    spec = cnn(
        (HEIGHT, 1, channels), [conv(filters, 1, "linear", groups=groups)], "mse", steps=1, batch_size=ROWS,
        optimizer={"type": "sgd", "lr": 1.0, "momentum": 0.0},
    )  # fmt: skip
    x = {"shape": [ROWS, HEIGHT, 1, channels], "least": 0.0, "unit": 2.0**-22, "period": 2**22}
    y = {"shape": [ROWS, HEIGHT, 1, filters], "least": 4.0, "unit": 1 / 128, "period": 103}
    weights = weights_of(spec)
    kernel, bias = (
        torch.tensor(weights[f"conv2d_1.{part}"], dtype=torch.float64, requires_grad=True)
        for part in ("kernel", "bias")
    )
    output = functional.conv2d(made(x), kernel.permute(3, 2, 0, 1), bias, groups=groups)
    gradients = torch.autograd.grad(functional.mse_loss(output, made(y)), [kernel, bias])

    found = browser_page.call(PAGE, "run", spec, x, y, weights)
    for part, gradient in zip(("kernel", "bias"), gradients, strict=True):
        name = f"conv2d_1.{part}"
        # With a rate of 1 the change is the gradient.
        change = weights[name].astype(np.float64) - found[name]
        np.testing.assert_allclose(change, gradient.numpy(), rtol=PARITY_LOSS_RTOL, err_msg=name)

"""Losses with options of browser_runtime/reference/ against PyTorch in float64: each row's loss, and the gradient of their mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from .test_reference import Array, close, op

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
WEIGHTS = [0.5, 2.0, 1.0, 0.0, 3.5]
POINTWISE: dict[str, tuple[dict[str, Any], Array | None, Loss]] = {
    "bce, weighted": (
        {"fn": "bce"}, np.array(WEIGHTS),
        lambda z, y: functional.binary_cross_entropy_with_logits(z, y, pos_weight=torch.tensor(WEIGHTS).double(), reduction="none"),
    ),
    "bce, smoothed": (
        {"fn": "bce", "smoothing": 0.2}, None,
        lambda z, y: functional.binary_cross_entropy_with_logits(z, 0.8 * y + 0.1, reduction="none"),
    ),
    "mae": ({"fn": "mae"}, None, lambda z, y: functional.l1_loss(z, y, reduction="none")),
    "huber": ({"fn": "huber", "delta": 0.7}, None, lambda z, y: functional.huber_loss(z, y, delta=0.7, reduction="none")),
    "hinge": ({"fn": "hinge"}, None, lambda z, y: torch.relu(1 - (2 * y - 1) * z)),
}  # fmt: skip


def compare(
    attrs: dict[str, Any], weights: Array | None, z: torch.Tensor, y: Array, rows: torch.Tensor
) -> None:
    """Row losses as they are, and their mean's gradient from autograd."""
    rows.mean().backward()  # pyright: ignore[reportUnknownMemberType]
    inputs = {"z": z.detach().numpy(), "target": y} | ({} if weights is None else {"weights": weights})
    close(op("loss", attrs, **inputs)["loss"], rows.detach().numpy())
    assert z.grad is not None
    close(op("loss_grad", attrs, **inputs)["dz"], z.grad.numpy())


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise(name: str, scale: float):
    """The row loss is the mean over the outputs."""
    attrs, weights, loss = POINTWISE[name]
    random = np.random.default_rng(1)
    z = torch.tensor(random.normal(size=(9, 5)) * scale, requires_grad=True)
    classes = attrs["fn"] in ("bce", "hinge")
    y = random.integers(0, 2, (9, 5)).astype(float) if classes else random.normal(size=(9, 5))
    compare(attrs | {"labels": "values"}, weights, z, y, loss(z, torch.tensor(y)).mean(dim=1))


@pytest.mark.parametrize("labels", ["index", "values"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_softmax(weighted: bool, smoothing: float, labels: str):
    """PyTorch's row losses; it divides their sum by that of the weights where targets are class numbers, we by the rows."""
    random = np.random.default_rng(2)
    z = torch.tensor(random.normal(size=(9, 5)) * 3, requires_grad=True)
    y = random.integers(0, 5, 9) if labels == "index" else random.dirichlet(np.ones(5), 9)
    weights = np.array(WEIGHTS) if weighted else None
    rows = functional.cross_entropy(
        z, torch.tensor(y), weight=None if weights is None else torch.tensor(weights),
        label_smoothing=smoothing, reduction="none",
    )  # fmt: skip
    attrs = {"fn": "softmax_cross_entropy", "labels": labels, "smoothing": smoothing}
    compare(attrs, weights, z, y.astype(float), rows)

"""PyTorch's loss for each of the spec's: the mean over the rows, whatever the weights of their classes."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional


def mean_loss(loss: str, options: dict[str, Any], z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Of outputs z and targets y: values, or class numbers for softmax."""
    if loss == "bce":
        return functional.binary_cross_entropy_with_logits(z, y)
    if loss == "mse":
        return functional.mse_loss(z, y)
    if loss == "huber":
        return functional.huber_loss(z, y, delta=options["delta"])
    weights = torch.tensor(options["class_weights"], dtype=z.dtype) if "class_weights" in options else None
    smoothing = options.get("label_smoothing", 0.0)
    return functional.cross_entropy(z, y, weights, label_smoothing=smoothing, reduction="none").mean()

"""PyTorch's optimizer for each of the spec's: penalties and decay for the weights that take them, multipliers for layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .torch_lion import Lion

_NAMES = {
    "sgd": {"momentum": "momentum", "nesterov": "nesterov"},
    "rmsprop": {"alpha": "alpha", "eps": "eps", "momentum": "momentum"},
    "adagrad": {"eps": "eps"},
    "adadelta": {"rho": "rho", "eps": "eps"},
    "adam": {"eps": "eps"},
    "adamw": {"eps": "eps"},
    "lion": {},
}
_NOT_DECAYED = (".bias", ".gamma", ".beta")
_DEFAULTS: dict[str, dict[str, Any]] = {
    "adam": {"lr": 1e-3},
    "adamw": {"lr": 1e-3, "weight_decay": 0.01},
    "adadelta": {"lr": 1.0},
    "lion": {"lr": 1e-4, "beta1": 0.9, "beta2": 0.99},
}
_CLASSES: dict[str, Any] = {
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
    "adadelta": torch.optim.Adadelta,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "lion": Lion,
}


def make(
    spec: dict[str, Any], weights: Mapping[str, torch.Tensor], multipliers: Mapping[str, float] | None = None
) -> torch.optim.Optimizer:
    """One group of parameters each, so that biases are left alone and layers have rates of their own.

    Each group keeps its layer's multiplier as `scale`. l1 has no counterpart: `add_l1` adds its slope before a step.
    """
    spec = _DEFAULTS.get(spec["type"], {}) | spec
    options = {theirs: spec[ours] for ours, theirs in _NAMES[spec["type"]].items() if ours in spec}
    if spec["type"] in ("adam", "adamw", "lion"):
        options["betas"] = (spec.get("beta1", 0.9), spec.get("beta2", 0.999))
    # l2 is what PyTorch calls weight_decay where it is not decoupled, so both can't be given to a decoupled one
    decoupled = spec["type"] in ("adamw", "lion")
    assert not (decoupled and spec.get("l2")), "compare l2 with an optimizer whose weight_decay is that"
    decay = spec.get("weight_decay", 0.0) + spec.get("l2", 0.0)
    groups = [
        {
            "params": [weight],
            "scale": scale,
            "lr": spec["lr"] * scale,
            "weight_decay": 0.0 if name.endswith(_NOT_DECAYED) else decay,
        }
        for name, weight in weights.items()
        for scale in [(multipliers or {}).get(name.rpartition(".")[0], 1.0)]
    ]
    return _CLASSES[spec["type"]](groups, lr=spec["lr"], **options)


def add_l1(spec: dict[str, Any], weights: Mapping[str, torch.Tensor]) -> None:
    """Add the slope of l1 |w| to the gradients of all weights but biases."""
    for name, weight in weights.items():
        if spec.get("l1") and not name.endswith(_NOT_DECAYED) and weight.grad is not None:
            weight.grad += spec["l1"] * torch.sign(weight.detach())

"""Lion as its paper has it (Chen et al. 2023, algorithm 2), for PyTorch, which does not ship it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


class Lion(torch.optim.Optimizer):
    """c = beta1 m + (1 - beta1) g; w = w - lr (sign(c) + weight_decay w); m = beta2 m + (1 - beta2) g."""

    def __init__(
        self, params: Iterable[Any], lr: float, betas: tuple[float, float], weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def step(self, closure: Any = None) -> float | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """One update of every parameter that has a gradient."""
        with torch.no_grad():
            for group in self.param_groups:
                beta1, beta2 = group["betas"]
                for weight in group["params"]:
                    if weight.grad is None:
                        continue
                    mean = self.state[weight].setdefault("m", torch.zeros_like(weight))
                    direction = torch.sign(beta1 * mean + (1 - beta1) * weight.grad)
                    weight.mul_(1 - group["lr"] * group["weight_decay"]).sub_(group["lr"] * direction)
                    mean.mul_(beta2).add_((1 - beta2) * weight.grad)

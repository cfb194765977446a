"""Learning-rate schedules: their fields, and the rate of each step. browser_runtime/nn/schedules.js computes the same."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import Field

from texelgrad.spec_fields import MAX_STEPS, Float32, Strict

_Steps = Annotated[int, Field(ge=1, le=MAX_STEPS)]
_Factor = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
_Ratio = Annotated[float, Field(ge=1, allow_inf_nan=False)]


class ScheduleBase(Strict):
    """A schedule, behind a warm-up where it has one."""

    @abstractmethod
    def rate(self, lr: float, t: int, total: int) -> float:
        """The learning rate of step t, counted from 0, of `total` steps; `lr` is the optimizer's."""


class WarmedUp(ScheduleBase):
    """First a straight line up to lr in `warmup_steps` steps, then the schedule over those that are left."""

    warmup_steps: Annotated[int, Field(ge=0, le=MAX_STEPS)] = 0

    def rate(self, lr: float, t: int, total: int) -> float:
        """Step t of the warm-up has (t + 1) / warmup_steps of lr."""
        if t < self.warmup_steps:
            return lr * (t + 1) / self.warmup_steps
        return self.after(lr, t - self.warmup_steps, total - self.warmup_steps)

    @abstractmethod
    def after(self, lr: float, t: int, total: int) -> float:
        """The rate without a warm-up."""


class Constant(WarmedUp):
    """The same learning rate at every step."""

    type: Literal["constant"]

    def after(self, lr: float, t: int, total: int) -> float:  # noqa: ARG002
        """Always lr."""
        return lr


class Step(WarmedUp):
    """Multiplied with gamma every so many steps."""

    type: Literal["step"]
    every_steps: _Steps
    gamma: _Factor = 0.1

    def after(self, lr: float, t: int, total: int) -> float:  # noqa: ARG002
        """PyTorch's StepLR."""
        return lr * self.gamma ** (t // self.every_steps)


class Exponential(WarmedUp):
    """Multiplied with gamma at every step."""

    type: Literal["exponential"]
    gamma: _Factor

    def after(self, lr: float, t: int, total: int) -> float:  # noqa: ARG002
        """PyTorch's ExponentialLR."""
        return lr * self.gamma**t


class Cosine(WarmedUp):
    """From lr at the first step down by half a cosine, which would reach min_lr one step after the last."""

    type: Literal["cosine"]
    min_lr: Annotated[Float32, Field(ge=0)] = 0.0

    def after(self, lr: float, t: int, total: int) -> float:
        """PyTorch's CosineAnnealingLR with T_max = total."""
        return _cosine(lr, self.min_lr, t / total)


class Linear(WarmedUp):
    """From lr at the first step down in a straight line, which would reach min_lr one step after the last."""

    type: Literal["linear"]
    min_lr: Annotated[Float32, Field(ge=0)] = 0.0

    def after(self, lr: float, t: int, total: int) -> float:
        """PyTorch's LinearLR down to min_lr / lr with total_iters = total."""
        return lr + (self.min_lr - lr) * (t / total)


class OneCycle(ScheduleBase):
    """From lr / div_factor up to lr in a share of the steps, then down to lr / (div_factor final_div_factor), each by half a cosine."""

    type: Literal["one_cycle"]
    pct_start: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.3
    div_factor: _Ratio = 25.0
    final_div_factor: _Ratio = 1e4

    def rate(self, lr: float, t: int, total: int) -> float:
        """PyTorch's OneCycleLR with max_lr = lr; where the way up is no step long, it begins at lr."""
        top, last = self.pct_start * total - 1, total - 1
        low = lr / self.div_factor
        if t <= top:
            return _cosine(low, lr, t / top if top > 0 else 1.0)
        return _cosine(lr, low / self.final_div_factor, (t - top) / (last - top))


def _cosine(first: float, last: float, share: float) -> float:
    """From the first to the last by half a cosine."""
    return last + (first - last) * (1 + math.cos(math.pi * share)) / 2


Schedule = Annotated[Constant | Step | Exponential | Cosine | Linear | OneCycle, Field(discriminator="type")]

"""Optimizers: their fields, and what each keeps beside a parameter. Formulas: docs/numerics.md, browser_runtime/reference/optimizers.js."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from texelgrad.errors import Fault
from texelgrad.schedules import Constant, Cosine, Linear, Schedule
from texelgrad.spec_fields import FLOAT32_TINY, Float32, Strict

_Beta = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
_Rate = Annotated[Float32, Field(ge=FLOAT32_TINY)]
_Penalty = Annotated[Float32, Field(ge=0)]


class OptimizerBase(Strict):
    """What all have. Penalties and decay leave biases and what normalises alone."""

    lr: _Rate
    l1: _Penalty = Field(0.0, description="Adds l1 sign(w) to the gradient.")
    l2: _Penalty = Field(0.0, description="Adds l2 w to the gradient.")
    schedule: Schedule = Constant(type="constant")

    @property
    @abstractmethod
    def states(self) -> int:
        """Tensors that it keeps for each parameter."""

    def faults(self) -> Iterator[Fault]:
        """What is wrong between its fields."""
        schedule = self.schedule
        if isinstance(schedule, (Cosine, Linear)) and schedule.min_lr > self.lr:
            legal = f"0 to lr ({self.lr:g})"
            yield Fault("optimizer.schedule.min_lr", "is above lr", schedule.min_lr, legal)


class Sgd(OptimizerBase):
    """Stochastic gradient descent, with momentum where it is above 0."""

    type: Literal["sgd"]
    momentum: _Beta = 0.0
    nesterov: bool = False
    weight_decay: _Penalty = Field(0.0, description="PyTorch's name of l2; they add up.")

    @property
    def states(self) -> int:
        """The velocity."""
        return int(self.momentum > 0)

    def faults(self) -> Iterator[Fault]:
        """Nesterov needs a momentum."""
        yield from super().faults()
        if self.nesterov and self.momentum == 0:
            yield Fault("optimizer.nesterov", "needs a momentum", True, "false, or a momentum above 0")


class _AdamBase(OptimizerBase):
    lr: _Rate = 0.001
    beta1: _Beta = 0.9
    beta2: _Beta = 0.999
    eps: _Rate = 1e-8

    @property
    def states(self) -> int:
        """Means of the gradient and of its square."""
        return 2


class Adam(_AdamBase):
    """Adam, bias-corrected."""

    type: Literal["adam"]


class AdamW(_AdamBase):
    """Adam with decoupled weight decay."""

    type: Literal["adamw"]
    weight_decay: _Penalty = Field(0.01, description="Shrinks weights by lr weight_decay.")


class RmsProp(OptimizerBase):
    """The gradient over a running root mean square, with momentum where it is above 0."""

    type: Literal["rmsprop"]
    lr: _Rate = 0.01
    alpha: _Beta = 0.99
    eps: _Rate = 1e-8
    momentum: _Beta = 0.0

    @property
    def states(self) -> int:
        """The mean square, and the velocity."""
        return 1 + int(self.momentum > 0)


class Adagrad(OptimizerBase):
    """The gradient over the root of the sum of all squares so far."""

    type: Literal["adagrad"]
    lr: _Rate = 0.01
    eps: _Rate = 1e-10

    @property
    def states(self) -> int:
        """The sum."""
        return 1


class Adadelta(OptimizerBase):
    """The gradient over its running root mean square, times that of the steps so far."""

    type: Literal["adadelta"]
    lr: _Rate = 1.0
    rho: _Beta = 0.9
    eps: _Rate = 1e-6

    @property
    def states(self) -> int:
        """Mean squares of gradients and of steps."""
        return 2


class Lion(OptimizerBase):
    """The sign of a running mean, with decoupled weight decay."""

    type: Literal["lion"]
    lr: _Rate = 0.0001
    beta1: _Beta = 0.9
    beta2: _Beta = 0.99
    weight_decay: _Penalty = Field(0.0, description="Shrinks weights by lr weight_decay.")

    @property
    def states(self) -> int:
        """The mean."""
        return 1


Optimizer = Annotated[Sgd | Adam | AdamW | RmsProp | Adagrad | Adadelta | Lion, Field(discriminator="type")]

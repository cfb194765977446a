"""Optimizers of browser_runtime/reference/ against PyTorch in float64 (Lion: the paper), and the spec's schedules against torch.optim.lr_scheduler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter
from torch.optim import lr_scheduler

from texelgrad.schedules import Schedule, ScheduleBase

from ..node import call
from ..tolerances import REFERENCE_RTOL, SCHEDULE_RTOL
from ..torch_optimizers import add_l1, make
from .test_reference import PROBE, close

STEPS = 12
ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"type": "sgd"},
    "momentum": {"type": "sgd", "momentum": 0.9},
    "nesterov": {"type": "sgd", "momentum": 0.8, "nesterov": True},
    "sgd, l1": {"type": "sgd", "l1": 0.03},
    "momentum, l2": {"type": "sgd", "momentum": 0.9, "l2": 0.1},
    "sgd, weight decay": {"type": "sgd", "momentum": 0.9, "weight_decay": 0.1},
    "nesterov, all of them": {
        "type": "sgd", "momentum": 0.8, "nesterov": True, "l1": 0.02, "l2": 0.01, "weight_decay": 0.1,
    },
    "adam": {"type": "adam", **ADAM},
    "adam, other constants": {"type": "adam", "beta1": 0.5, "beta2": 0.9, "eps": 1e-3},
    "adam, l2": {"type": "adam", **ADAM, "l2": 0.1, "l1": 0.01},
    "adamw": {"type": "adamw", **ADAM, "weight_decay": 0.1},
    "rmsprop": {"type": "rmsprop", "alpha": 0.99, "eps": 1e-8},
    "rmsprop, momentum": {"type": "rmsprop", "alpha": 0.9, "eps": 1e-3, "momentum": 0.9, "l2": 0.1},
    "adagrad": {"type": "adagrad", "eps": 1e-10},
    "adagrad, l2": {"type": "adagrad", "eps": 1e-3, "l2": 0.1},
    "adadelta": {"type": "adadelta", "rho": 0.9, "eps": 1e-6},
    "adadelta, l2": {"type": "adadelta", "rho": 0.5, "eps": 1e-3, "l2": 0.1},
    "lion": {"type": "lion", "beta1": 0.9, "beta2": 0.99},
    "lion, decay": {"type": "lion", "beta1": 0.7, "beta2": 0.9, "weight_decay": 0.3, "l1": 0.01},
}  # fmt: skip


@pytest.mark.parametrize("clip", [None, 0.4])
@pytest.mark.parametrize("part", ["kernel", "bias"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_against_torch(name: str, part: str, clip: float | None):
    """Steps with a gradient and a learning rate of its own each; biases take no penalty and no decay."""
    spec = OPTIMIZERS[name] | {"lr": 0.1}
    random = np.random.default_rng(1)
    start, gradients = random.normal(size=(3, 4)), [random.normal(size=(3, 4)) for _ in range(STEPS)]
    weight = torch.tensor(start, requires_grad=True)
    weights = {f"dense_1.{part}": weight}
    optimizer = make(spec, weights)
    rates = [0.1 * 0.9**step for step in range(STEPS)]
    limits = {"decay": part == "kernel", "clip": clip and {"value": clip}}
    got = call(PROBE, "optimize", start, gradients, spec, rates, limits)
    for step, gradient in enumerate(gradients):
        optimizer.param_groups[0]["lr"] = rates[step]
        weight.grad = torch.tensor(gradient)
        if clip:
            torch.nn.utils.clip_grad_value_([weight], clip)
        add_l1(spec, weights)
        optimizer.step()  # pyright: ignore[reportUnknownMemberType]
        close(got[step], weight.detach().numpy())


# ---- schedules ------------------------------------------------------------------------------------------------------

TOTAL = 40
SCHEDULES: dict[str, tuple[dict[str, Any], Callable[[torch.optim.Optimizer, int], Any]]] = {
    "constant": ({"type": "constant"}, lambda o, _: lr_scheduler.ConstantLR(o, factor=1)),
    "step": (
        {"type": "step", "every_steps": 7, "gamma": 0.5},
        lambda o, _: lr_scheduler.StepLR(o, step_size=7, gamma=0.5),
    ),
    "exponential": (
        {"type": "exponential", "gamma": 0.9},
        lambda o, _: lr_scheduler.ExponentialLR(o, gamma=0.9),
    ),
    "cosine": (
        {"type": "cosine", "min_lr": 0.01},
        lambda o, total: lr_scheduler.CosineAnnealingLR(o, T_max=total, eta_min=0.01),
    ),
    "linear": (
        {"type": "linear", "min_lr": 0.01},
        lambda o, total: lr_scheduler.LinearLR(o, start_factor=1, end_factor=0.1, total_iters=total),
    ),
}


def rates_of(spec: dict[str, Any], total: int = TOTAL, lr: float = 0.1) -> list[float]:
    """The rates that Python gives, which must be those that the page gives."""
    schedule: ScheduleBase = TypeAdapter(Schedule).validate_python(spec)
    rates = [schedule.rate(lr, t, total) for t in range(total)]
    filled = {"lr": lr, "schedule": schedule.model_dump()}
    theirs = call("/tests/unit/schedule_probe.js", "rates", filled, total)
    np.testing.assert_allclose(theirs, rates, rtol=SCHEDULE_RTOL, atol=0)
    return rates


def torch_rates(make_schedule: Callable[[torch.optim.Optimizer], Any], total: int = TOTAL) -> list[float]:
    """The rate before each step of a run in PyTorch."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    scheduler = make_schedule(optimizer)
    rates: list[float] = []
    for _ in range(total):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()  # pyright: ignore[reportUnknownMemberType]
        scheduler.step()
    return rates


@pytest.mark.parametrize("warmup", [0, 1, 9])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_against_torch(name: str, warmup: int):
    """Each, and behind a linear warm-up: PyTorch's SequentialLR of LinearLR and the schedule."""
    spec, after = SCHEDULES[name]

    def schedule(optimizer: torch.optim.Optimizer) -> Any:
        if warmup == 0:
            return after(optimizer, TOTAL)
        ramp = lr_scheduler.LinearLR(optimizer, start_factor=1 / warmup, total_iters=max(1, warmup - 1))
        rest = after(optimizer, TOTAL - warmup)
        return lr_scheduler.SequentialLR(optimizer, [ramp, rest], milestones=[warmup])

    rates = rates_of(spec | {"warmup_steps": warmup})
    # PyTorch multiplies step by step, which rounds as often
    np.testing.assert_allclose(rates, torch_rates(schedule), rtol=REFERENCE_RTOL)


def test_the_reference_has_the_same_schedules():
    """What is not made of a warm-up, in browser_runtime/reference/ too."""
    for spec, _ in SCHEDULES.values():
        theirs = call(PROBE, "rates", spec["type"], spec | {"lr": 0.1}, TOTAL)
        np.testing.assert_allclose(theirs, rates_of(spec), rtol=REFERENCE_RTOL)


@pytest.mark.parametrize("total", [5, 40, 1000])
@pytest.mark.parametrize("options", [{}, {"pct_start": 0.5, "div_factor": 4.0, "final_div_factor": 10.0}])
def test_one_cycle_against_torch(options: dict[str, float], total: int):
    """PyTorch's OneCycleLR with cosine annealing and without its cycle of momentum."""
    wanted = torch_rates(lambda optimizer: _OneCycle(optimizer, total, options), total)
    np.testing.assert_allclose(rates_of({"type": "one_cycle", **options}, total), wanted, rtol=REFERENCE_RTOL)


class _OneCycle:
    """OneCycleLR refuses the step behind its last; this does not take it."""

    def __init__(self, optimizer: torch.optim.Optimizer, total: int, options: dict[str, Any]) -> None:
        self.schedule = lr_scheduler.OneCycleLR(
            optimizer, max_lr=0.1, total_steps=total, cycle_momentum=False, **options
        )
        self.left = total - 1

    def step(self) -> None:
        """To the next rate, if there is one."""
        if self.left > 0:
            self.schedule.step()
        self.left -= 1


@pytest.mark.parametrize("total", [1, 2, 3])
def test_one_cycle_of_few_steps(total: int):
    """The shortest runs, on which PyTorch divides by zero, have finite rates up to lr."""
    rates = rates_of({"type": "one_cycle"}, total)
    assert all(0 < rate <= 0.1 for rate in rates)


def test_a_warm_up_longer_than_the_run():
    """It only climbs."""
    assert rates_of({"type": "cosine", "warmup_steps": 80}) == [0.1 * (t + 1) / 80 for t in range(TOTAL)]

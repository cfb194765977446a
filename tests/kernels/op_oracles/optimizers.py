"""Updates: the gradient limited and with the slope of the penalties, then the optimizer's rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..oracle import DIVISION, SQRT, Approx, Floats, U, exact
from .base import OpRun, Oracle

Rule = Callable[[Approx, dict[str, Floats], dict[str, Any], float, int], tuple[Approx, dict[str, Approx]]]
"""Gradient, states, optimizer, learning rate, step from 1 -> what is subtracted, and the states after it."""


def _sum(a: Approx, b: Approx) -> Approx:
    return Approx(a.value + b.value, a.error + b.error).plus_roundings(1)


def _product(a: Approx, b: Approx) -> Approx:
    error = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error
    return Approx(a.value * b.value, error).plus_roundings(1)


def _constant(value: float, like: Approx) -> Approx:
    """A float32 rounding of a number."""
    return Approx(np.full_like(like.value, value), np.full_like(like.value, U * abs(value)))


def _root(a: Approx) -> Approx:
    root = np.sqrt(a.value)
    # sqrt(v - error) is nearer to 0 than sqrt(v + error) is far from it
    return Approx(root, root - np.sqrt(np.maximum(a.value - a.error, 0)) + SQRT * root)


def _ratio(a: Approx, b: Approx, least: float) -> Approx:
    """A over a positive b, which is never below `least`."""
    smallest = np.maximum(b.value - b.error, least)
    ratio = a.value / b.value
    error = a.error / smallest + np.abs(a.value) * b.error / (b.value * smallest)
    return Approx(ratio, error + DIVISION * np.abs(ratio))


def _toward(state: Floats, goal: Approx, share: float) -> Approx:
    """State + share (goal - state)."""
    gap = Approx(goal.value - state, goal.error).plus_roundings(1).times(share)
    return Approx(state + gap.value, gap.error).plus_roundings(1)


def _followed(step: Approx, velocity: Floats, momentum: float) -> Approx:
    return _sum(exact(velocity).times(momentum), step)


def _sgd(g: Approx, states: dict[str, Floats], o: dict[str, Any], lr: float, _: int) -> tuple[Approx, dict[str, Approx]]:  # fmt: skip
    if not states:
        return g.times(lr), {}
    velocity = _followed(g, states["velocity"], o["momentum"])
    direction = _sum(g, velocity.times(o["momentum"])) if o["nesterov"] else velocity
    return direction.times(lr), {"velocity": velocity}


def _adam(g: Approx, states: dict[str, Floats], o: dict[str, Any], lr: float, t: int) -> tuple[Approx, dict[str, Approx]]:  # fmt: skip
    mean = _toward(states["m"], g, 1 - o["beta1"])
    square = _toward(states["v"], _product(g, g), 1 - o["beta2"])
    scaled = _root(square).times(1 / np.sqrt(1 - o["beta2"] ** t))
    ratio = _ratio(mean, _sum(scaled, _constant(o["eps"], g)), o["eps"] / 2)
    return ratio.times(lr / (1 - o["beta1"] ** t)), {"m": mean, "v": square}


def _rmsprop(g: Approx, states: dict[str, Floats], o: dict[str, Any], lr: float, _: int) -> tuple[Approx, dict[str, Approx]]:  # fmt: skip
    square = _toward(states["v"], _product(g, g), 1 - o["alpha"])
    step = _ratio(g, _sum(_root(square), _constant(o["eps"], g)), o["eps"] / 2)
    if "velocity" not in states:
        return step.times(lr), {"v": square}
    velocity = _followed(step, states["velocity"], o["momentum"])
    return velocity.times(lr), {"v": square, "velocity": velocity}


def _adagrad(g: Approx, states: dict[str, Floats], o: dict[str, Any], lr: float, _: int) -> tuple[Approx, dict[str, Approx]]:  # fmt: skip
    total = _sum(exact(states["sum"]), _product(g, g))
    step = _ratio(g, _sum(_root(total), _constant(o["eps"], g)), o["eps"] / 2)
    return step.times(lr), {"sum": total}


def _adadelta(g: Approx, states: dict[str, Floats], o: dict[str, Any], lr: float, _: int) -> tuple[Approx, dict[str, Approx]]:  # fmt: skip
    square = _toward(states["v"], _product(g, g), 1 - o["rho"])
    eps = _constant(o["eps"], g)
    over = _root(_sum(exact(states["delta"]), eps))
    step = _product(_ratio(over, _root(_sum(square, eps)), np.sqrt(o["eps"]) / 2), g)
    return step.times(lr), {"v": square, "delta": _toward(states["delta"], _product(step, step), 1 - o["rho"])}  # fmt: skip


def _lion(g: Approx, states: dict[str, Floats], o: dict[str, Any], lr: float, _: int) -> tuple[Approx, dict[str, Approx]]:  # fmt: skip
    toward = _toward(states["m"], g, 1 - o["beta1"])
    # whether a number within its error of 0 lies above or below is the kernel's to say
    unsure = (toward.error > 0) & (np.abs(toward.value) <= toward.error)
    sign = Approx(np.sign(toward.value), np.where(unsure, 2.0, 0.0))
    return sign.times(lr), {"m": _toward(states["m"], g, 1 - o["beta2"])}


_RULES: dict[str, Rule] = {
    "sgd": _sgd,
    "adam": _adam,
    "adamw": _adam,
    "rmsprop": _rmsprop,
    "adagrad": _adagrad,
    "adadelta": _adadelta,
    "lion": _lion,
}


def _grad_norm(run: OpRun) -> dict[str, Approx]:
    gradients = run.inputs.values()
    squares = [_product(g, g) for g in gradients]
    texels = max(layout["layers"] * layout["texels"] for layout in run.layouts.values())
    sums = max(16, -(-int(np.ceil(np.sqrt(texels))) // 4) * 4)
    own = -(-texels // sums)
    additions = min(own, 64) + -(-own // 64) + len(squares) + min(sums, 64) + -(-sums // 64) + 4
    total = np.array([sum(float(s.value.sum()) for s in squares)])
    error = np.array([sum(float(s.error.sum()) for s in squares)])
    norm = _root(Approx(total, error).plus_roundings(additions))
    if not (clip := run.attrs["clip"]) or not clip["global_norm"]:
        return {"norm": Approx(np.array([[1.0, norm.value[0]]]), np.array([[0.0, norm.error[0]]]))}
    limit = clip["global_norm"]
    ratio = _ratio(_constant(limit, norm), _sum(norm, _constant(1e-6, norm)), 1e-6)
    return {"norm": Approx(np.array([[min(1.0, ratio.value[0]), norm.value[0]]]), np.array([[ratio.error[0], norm.error[0]]]))}  # fmt: skip


def _limited(g: Approx, w: Floats, run: OpRun, penalised: Floats) -> Approx:
    """The gradient as the rule takes it; `penalised` is 1 for weights, 0 for biases."""
    optimizer, clip = run.attrs["optimizer"], run.attrs["clip"]
    if clip and clip["value"]:
        limit = float(np.float32(clip["value"]))
        g = Approx(np.clip(g.value, -limit, limit), g.error)
    if "factor" in run.inputs:
        factor = run.inputs["factor"]
        g = _product(g, Approx(factor.value[0, 0], factor.error[0, 0]))
    l1, l2 = optimizer["l1"], optimizer["l2"]
    if optimizer["type"] == "sgd":
        l2 += optimizer["weight_decay"]
    if not (l1 or l2):
        return g
    slope = _sum(exact(w).times(l2), _constant(l1, g))
    penalty = Approx(l2 * w + l1 * np.sign(w), slope.error)
    size = Approx(np.abs(g.value) + l2 * np.abs(w) + l1, g.error).plus_roundings(2)  # two sums
    return Approx(g.value + penalised * penalty.value, size.error + penalised * penalty.error)


def _update(run: OpRun) -> dict[str, Approx]:
    states = {key: value for key, value in run.read.items() if key not in ("w", "dw", "factor")}
    gradient, w = run.inputs["dw"], run.read["w"]
    if len(gradient.value) > len(w):  # a parameter without bias
        gradient = Approx(gradient.value[:-1], gradient.error[:-1])
    penalised = np.full((len(w), 1), float(run.attrs["decay"]))
    if run.layouts["w"]["biasRow"] >= 0:
        penalised[-1] = 0
    optimizer, multiplier = run.attrs["optimizer"], run.attrs["multiplier"]
    lr = run.step["lr"] * multiplier
    rule = _RULES[optimizer["type"]]
    change, kept = rule(_limited(gradient, w, run, penalised), states, optimizer, lr, run.step["t"])
    if multiplier != 1:
        change = change.plus_roundings(2)  # the multiplier's, and that of the product
    decay = optimizer["weight_decay"] * lr if optimizer["type"] in ("adamw", "lion") else 0.0
    held = exact(w)
    if decay:
        shrink = penalised * exact(w).times(decay).plus_roundings(2).value
        error = penalised * exact(w).times(decay).plus_roundings(2).error
        held = Approx(w - shrink, error).plus_roundings(1)
    return {"w": Approx(held.value - change.value, held.error + change.error).plus_roundings(1), **kept}


OPTIMIZERS: dict[str, Oracle] = {
    "update": _update,
    "grad_norm": _grad_norm,
    "accumulate": lambda run: {"sum": run.inputs["dw"]},
}

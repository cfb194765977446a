"""Dense layers, convolution, max pooling, activations, sums."""

from __future__ import annotations

import math

from .. import oracle
from ..oracle import Approx
from ..windows import Window
from .base import OpRun, Oracle


def _without_bias(gradient: Approx, run: OpRun) -> Approx:
    """Drop the bias's row where the stored gradient has none."""
    stored = run.stored.get("dw")
    rows = len(gradient.value)
    if stored is None or len(stored) % rows == 0:
        return gradient
    return Approx(gradient.value[:-1], gradient.error[:-1])


def _affine(run: OpRun) -> dict[str, Approx]:
    layout = run.layouts["w"]
    lanes = layout["rows"] // layout["blockRows"] * layout["blockStride"]
    return {"y": oracle.affine(run.inputs["x"], run.weights(), lanes)}


def _conv2d_grad_weights(run: OpRun) -> dict[str, Approx]:
    window, x = Window.of_attrs(run.attrs), run.read["x"]
    columns = x.shape[1] // math.prod(window.reads) // window.groups
    rows = math.prod(window.taps) * columns
    biased = run.layouts["dw"]["biasRow"] >= 0
    splits = len(run.stored["dw"]) // (rows + biased)
    gradient = oracle.conv2d_grad_weights(x, run.read["dy"], window, splits)
    return {"dw": gradient if biased else Approx(gradient.value[:-1], gradient.error[:-1])}


def _add(run: OpRun) -> dict[str, Approx]:
    a, b = run.inputs["a"], run.inputs["b"]
    return {"y": Approx(a.value + b.value, a.error + b.error).plus_roundings(1)}


CORE: dict[str, Oracle] = {
    "affine": _affine,
    "affine_grad_input": lambda run: {"dx": oracle.affine_grad_input(run.inputs["dy"], run.weights())},
    "affine_grad_weights": lambda run: {
        "dw": _without_bias(oracle.affine_grad_weights(run.inputs["x"], run.inputs["dy"]), run)
    },
    "im2col": lambda run: {"patches": oracle.im2col(run.read["x"], Window.of_attrs(run.attrs))},
    "conv2d": lambda run: {
        "y": oracle.conv2d(
            run.read["x"], run.weights(), Window.of_attrs(run.attrs), patches="patches" in run.inputs
        )
    },
    "conv2d_grad_input": lambda run: {
        "dx": oracle.conv2d_grad_input(run.read["dy"], run.weights(), Window.of_attrs(run.attrs))
    },
    "conv2d_grad_weights": _conv2d_grad_weights,
    "max_pool2d": lambda run: {"y": oracle.max_pool2d(run.read["x"], Window.of_attrs(run.attrs))},
    "max_pool2d_grad": lambda run: {
        "dx": oracle.max_pool2d_grad(run.read["x"], run.read["dy"], Window.of_attrs(run.attrs))
    },
    "add": _add,
}

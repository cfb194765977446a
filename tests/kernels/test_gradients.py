"""Gradients of whole nets: one SGD step with learning rate 1 against central differences of a float64 forward pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from ..tolerances import GRADIENT_ATOL, GRADIENT_RTOL
from .cnns import (
    FLATTEN,
    cnn,
    conv,
    dense,
    images_for,
    named_layers,
    pool,
    several_for,
    untrained,
    weights_of,
)
from .curves import CURVES
from .harness import BrowserPage
from .nets import Inputs, forward, row_losses, trace
from .specs import ACTIVATIONS, LOSSES, Array, Spec, data_for, mlp, weights_for
from .windows import Window

ENGINE = "/tests/kernels/engine_page.js"
STEP = 1e-4  # of the central difference; its error is GRADIENT_ATOL


def engine_gradients(
    page: BrowserPage, spec: Spec, x: Inputs, y: Array, weights: dict[str, Array], **options: Any
) -> dict[str, Array]:
    """The weights before minus those after the step, which rounds each to float32 once."""
    after = page.call(ENGINE, "run", spec, x, y, {"initialWeights": weights, **options})["weights"]
    return {name: before.astype(np.float64) - after[name] for name, before in weights.items()}


def numerical_gradients(spec: Spec, x: Inputs, y: Array, weights: dict[str, Array]) -> dict[str, Array]:
    """Every partial derivative of the mean loss."""
    moved = {name: value.astype(np.float64) for name, value in weights.items()}

    def loss() -> float:
        return float(row_losses(spec["loss"], forward(spec, moved, x, training=True), y).mean())

    gradients: dict[str, Array] = {}
    for name, value in moved.items():
        if name in untrained(spec):
            continue
        flat, out = value.reshape(-1), np.empty(value.size)
        for index, old in enumerate(flat):
            flat[index] = old + STEP
            above = loss()
            flat[index] = old - STEP
            out[index] = (above - loss()) / (2 * STEP)
            flat[index] = old
        gradients[name] = out.reshape(value.shape)
    return gradients


def nearest_kink(spec: Spec, x: Inputs, weights: dict[str, Array]) -> float:
    """How near any relu's input comes to 0, or a window's largest two to each other: differences across a kink are wrong."""
    nearest = np.inf
    for (_, layer, shape), (_, before, z) in zip(
        named_layers(spec), trace(spec, weights, x, training=True), strict=True
    ):
        function = layer.get("activation")
        for kink in CURVES[function].kinks if function in CURVES else ():
            nearest = min(nearest, float(np.abs(z - kink).min()))
        if layer["type"] == "activation" and layer["function"] in CURVES:
            kinks = CURVES[layer["function"]].kinks
            nearest = min([nearest, *(float(np.abs(before - kink).min()) for kink in kinks)])
        if layer["type"] == "max_pool2d":
            seen = Window.of_layer(layer, shape).read(before, -np.inf)
            top = np.sort(seen.reshape(*seen.shape[:3], -1, seen.shape[-1]), axis=3)[:, :, :, -2:]
            # two zeros of a closed relu stay equal, whatever moves
            gap = np.where(top[:, :, :, 1] == 0, np.inf, top[:, :, :, 1] - top[:, :, :, 0])
            nearest = min(nearest, float(gap.min()))
    return nearest


def check(
    page: BrowserPage, spec: Spec, x: Inputs, y: Array, candidates: Iterable[dict[str, Array]], **options: Any
) -> None:
    """Every weight and bias, with the first weights that come near no kink."""
    weights = next(found for found in candidates if nearest_kink(spec, x, found) > 100 * STEP)
    got = engine_gradients(page, spec, x, y, weights, **options)
    for name, wanted in numerical_gradients(spec, x, y, weights).items():
        rounding = 2.0**-23 * np.abs(weights[name]).max()
        tolerance = GRADIENT_RTOL * np.abs(wanted).max() + rounding + GRADIENT_ATOL
        worst = np.abs(got[name] - wanted).max()
        assert worst <= tolerance, f"{name}: {worst} above {tolerance}"
        assert np.abs(wanted).max() > 100 * tolerance, f"{name}: too small a gradient to prove anything"


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sizes", [(4, 9, 7, 3), (3, 6, 5), (5, 17, 6), (6, 5), (3, 4, 4, 3)])
def test_gradients(browser_page: BrowserPage, sizes: tuple[int, ...], activation: str, loss: str):
    """Every weight and bias of nets of one to three layers, narrow ones too, each activation and loss, an odd batch."""
    last = activation if loss == "mse" and activation != "relu" else "linear"
    spec: dict[str, Any] = mlp(
        sizes, loss, activation=activation, last=last, optimizer={"type": "sgd", "lr": 1.0}, steps=1
    )
    x, y = data_for(11, sizes[0], sizes[-1], loss)
    # a bias of 0.5 deviations and 11 rows: a few seeds do come near a kink
    check(browser_page, spec, x, y, (weights_for(sizes, seed=seed) for seed in range(1, 50)))


CONV_NETS: dict[str, tuple[tuple[int, ...], list[dict[str, Any]]]] = {
    "relu": ((5, 6, 2), [conv(3, 3, "relu"), pool(2, stride=1), conv(5, 2, "tanh", padding="same"), FLATTEN, dense(4)]),
    "strides": ((7, 5, 3), [conv(4, 3, "tanh", stride=2, padding="same"), conv(2, 2, "sigmoid", dilation=(2, 1)), FLATTEN, dense(6, "relu"), dense(3)]),
    "padding": ((4, 5, 1), [pool((2, 3), stride=(1, 2), padding=[[1, 0], [1, 1]]), conv(5, (3, 2), "linear", padding=[[0, 2], [1, 0]]), FLATTEN, dense(3)]),
}  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_of_several_inputs(browser_page: BrowserPage, loss: str):
    """An image, looked up numbers and plain ones, joined; one of them read twice."""
    layers = [
        conv(3, 2, "tanh", inputs=["image"]), FLATTEN | {"name": "seen"},
        {"type": "embedding", "vocabulary": 5, "units": 3, "inputs": ["words"]}, FLATTEN | {"name": "read"},
        dense(4, "tanh", inputs=["plain"], name="felt"),
        {"type": "concat", "inputs": ["seen", "read", "felt", "plain"]}, dense(6, "tanh"), dense(3),
    ]  # fmt: skip
    inputs = {"image": (4, 3, 2), "words": (2,), "plain": (5,)}
    spec = cnn(inputs, layers, loss, optimizer={"type": "sgd", "lr": 1.0}, steps=1)
    _, y = data_for(7, 1, 3, loss)
    check(browser_page, spec, several_for(spec, 7), y, (weights_of(spec, seed=seed) for seed in range(1, 50)))


@pytest.mark.parametrize(
    ("loss", "algorithm"),
    [
        *((loss, "direct") for loss in LOSSES),
        *(pytest.param(loss, "im2col", marks=() if loss == "mse" else pytest.mark.full) for loss in LOSSES),
    ],
)
@pytest.mark.parametrize("net", CONV_NETS)
def test_gradients_of_conv_nets(browser_page: BrowserPage, net: str, loss: str, algorithm: str):
    """Convolutions with stride, dilation and padding, both ways, pooling with overlap, flatten, dense; 3 images."""
    spec = cnn(*CONV_NETS[net], loss, optimizer={"type": "sgd", "lr": 1.0}, steps=1)
    x, y = images_for(spec, 3)
    candidates = (weights_of(spec, seed=seed) for seed in range(1, 2000))
    check(browser_page, spec, x, y, candidates, device={"convolution": algorithm})

"""Nets that are graphs: sums, tensors that are read several times, layers without bias; kernels and gradients against float64."""

from __future__ import annotations

import math
from typing import Any

import pytest

from .cnns import FLATTEN, Layer, Shape, add, cnn, conv, dense, images_for, pool, weights_of
from .harness import BrowserPage, PageError
from .specs import ACTIVATIONS, LOSSES, OPTIMIZERS
from .steps import check_padding, check_reduction, check_values, inspect
from .test_gradients import check as check_gradients
from .test_kernels import DEVICES, TARGETS_NEEDED, device_id, quick

Net = tuple[Shape, list[Layer]]
NETS: dict[str, Net] = {
    "residual mlp": ((5,), [dense(9, "tanh"), dense(9, "relu"), add("dense_1", "dense_2"), dense(3)]),
    "activated sum": ((5,), [dense(9), dense(9), add("dense_2", "dense_1", activation="sigmoid"), dense(3)]),
    "three readers": ((4,), [dense(6, "tanh"), dense(6, "tanh"), dense(6, "tanh", inputs=["dense_1"]), add("dense_1", "dense_2", "dense_3"), dense(2)]),
    "itself": ((4,), [dense(6, "tanh"), add("dense_1", "dense_1"), dense(3)]),
    "input in a sum": ((7,), [dense(7, "relu"), add("input", "dense_1", activation="tanh"), dense(3)]),
    "sum of sums": ((3,), [dense(5, "tanh"), dense(5), add("dense_1", "dense_2", activation="relu"), dense(5), add("add_1", "dense_3", activation="tanh"), dense(2)]),
    "residual cnn": ((6, 5, 2), [conv(5, activation="tanh"), conv(5, activation="tanh", padding="same"), add("conv2d_1", "conv2d_2", activation="relu"), pool(2), FLATTEN, dense(3)]),
    "two branches": ((6, 5, 2), [conv(3, 2, "tanh"), pool(2, stride=1), conv(3, 2, "tanh", inputs=["input"]), conv(3, 2, "linear"), add("max_pool2d_1", "conv2d_3"), FLATTEN, dense(4)]),
    "flattened sums": ((4, 3, 2), [conv(5, 2), FLATTEN, conv(5, 2, "tanh", inputs=["input"]), {"type": "flatten", "inputs": ["conv2d_2"]}, add("flatten_1", "flatten_2"), dense(3)]),
    "an image read both ways": ((4, 3, 2), [FLATTEN, dense(9, "tanh"), conv(1, 2, "tanh", inputs=["input"]), FLATTEN | {"inputs": ["conv2d_1"]}, dense(9), add("dense_1", "dense_2"), dense(3)]),
    "no bias": ((7,), [dense(9, "sigmoid", use_bias=False), dense(6, "tanh"), dense(3, use_bias=False)]),
    "no bias in images": ((7, 5, 3), [conv(5, 3, use_bias=False), conv(3, 2, "tanh"), conv(2, 2, use_bias=False), FLATTEN, dense(3)]),
}  # fmt: skip


def check(
    page: BrowserPage, net: str | Net, rows: int, loss: str = "mse", *, batch: int = 0, device: dict[str, Any] | None = None, **train: Any
) -> set[str]:  # fmt: skip
    """Check every kernel of the third step."""
    spec = cnn(*(NETS[net] if isinstance(net, str) else net), loss, **train)
    x, y = images_for(spec, rows)
    step = inspect(page, spec, x, y, weights=weights_of(spec), steps=2, batch=batch, device=device or {})
    check_padding(step)
    check_reduction(step)
    return set(check_values(step))


@pytest.mark.parametrize("net", NETS)
def test_kernels(browser_page: BrowserPage, net: str):
    """Every kernel of each net; each optimizer, a last short batch."""
    for optimizer in OPTIMIZERS:
        kernels = check(browser_page, net, 7, batch_size=4, batch=1, optimizer=optimizer)
        assert "add.frag.glsl" in kernels or "no bias" in net


@pytest.mark.parametrize(
    "device", [pytest.param(d, id=device_id(d), marks=() if quick(d) else pytest.mark.full) for d in DEVICES]
)
@pytest.mark.parametrize("net", ["residual cnn", "sum of sums", "no bias in images"])
def test_devices(browser_page: BrowserPage, net: str, device: dict[str, Any]):
    """Both formats, both ways of fetching, 8 to 1 render targets, with the largest optimizer that fits."""
    fits = [name for name, needed in TARGETS_NEEDED.items() if needed <= device["maxDrawBuffers"]]
    if fits:
        check(browser_page, net, 13, optimizer=fits[-1], batch_size=8, batch=1, device=device)
    else:
        with pytest.raises(PageError, match="render targets; the device has"):
            check(browser_page, net, 13, device=device)


@pytest.mark.parametrize(
    "activation",
    [pytest.param(name, marks=() if name == "sigmoid" else pytest.mark.full) for name in ACTIVATIONS],
)
@pytest.mark.parametrize("units", [1, 3, 4, 5, 8, 17, 257])
def test_sums_of_any_width(browser_page: BrowserPage, units: int, activation: str):
    """Lanes past the last column stay zero, whatever the activation of 0 is."""
    layers = [dense(units, "tanh"), dense(units), add("dense_1", "dense_2", activation=activation), dense(2)]
    check(browser_page, ((3,), layers), 5)


@pytest.mark.parametrize(
    "loss", [pytest.param(name, marks=() if name == "mse" else pytest.mark.full) for name in LOSSES]
)
@pytest.mark.parametrize("net", NETS)
def test_gradients(browser_page: BrowserPage, net: str, loss: str):
    """Central differences of the whole net: a tensor's readers all count."""
    spec = cnn(*NETS[net], loss, optimizer={"type": "sgd", "lr": 1.0}, steps=1)
    x, y = images_for(spec, 3 if math.prod(NETS[net][0]) > 20 else 11)
    check_gradients(browser_page, spec, x, y, (weights_of(spec, seed=seed) for seed in range(1, 2000)))

"""Average and global pooling, moved elements, products and concatenations in a real browser against float64, element by element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .cnns import FLATTEN, Layer, cnn, conv, dense, images_for, weights_of
from .harness import BrowserPage, PageError
from .nets import forward, row_losses
from .shape_nets import SHAPE_NETS, avg_pool, concat, crop, multiply, reshape, upsample, zero_pad
from .specs import OPTIMIZERS
from .steps import check_padding, check_reduction, check_values, inspect
from .test_gradients import check as check_gradients
from .test_kernels import DEVICES, TARGETS_NEEDED, assert_same_kind, device_id, quick

QUICK = ("averages", "taken apart", "upsampled", "concatenated", "flattened and flat")
"""Nets for the quick run of gradients; test_kernels goes through all of them."""
KERNELS = ("window_sum", "window_spread", "reshape", "shift2d", "concat", "slice_channels", "multiply")


def check(
    page: BrowserPage, net: tuple[Any, list[Layer]], rows: int = 7, *, batch: int = 1, batch_size: int = 4,
    device: dict[str, Any] | None = None, **train: Any,
) -> set[str]:  # fmt: skip
    """Check every kernel of the third step; the last batch of 7 rows is one of 3."""
    spec = cnn(*net, batch_size=batch_size, **train)
    x, y = images_for(spec, rows)
    step = inspect(page, spec, x, y, weights=weights_of(spec), steps=2, batch=batch, device=device or {})
    check_padding(step)
    check_reduction(step)
    return set(check_values(step))


def test_kernels(browser_page: BrowserPage):
    """Every kernel of each net."""
    seen = set[str]()
    for net in SHAPE_NETS.values():
        seen |= check(browser_page, net, optimizer="momentum")
    assert seen >= {f"{kernel}.frag.glsl" for kernel in KERNELS}


@pytest.mark.full
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("net", SHAPE_NETS)
def test_optimizers(browser_page: BrowserPage, net: str, optimizer: str):
    """Each net with each optimizer, one row, and 19."""
    for rows in (1, 19):
        check(browser_page, SHAPE_NETS[net], rows, batch=0, batch_size=rows, optimizer=optimizer)


@pytest.mark.parametrize(
    "device", [pytest.param(d, id=device_id(d), marks=() if quick(d) else pytest.mark.full) for d in DEVICES]
)
def test_devices(browser_page: BrowserPage, device: dict[str, Any]):
    """Both formats, both ways of fetching, 8 to 1 render targets."""
    nets = [SHAPE_NETS[name] for name in ("averages", "concatenated", "taken apart", "flattened and flat")]
    fits = [name for name, needed in TARGETS_NEEDED.items() if needed <= device["maxDrawBuffers"]]
    for net in nets if quick(device) is False else nets[1:2]:
        if fits:
            check(browser_page, net, device=device, optimizer=fits[-1])
        else:
            with pytest.raises(PageError, match="render targets; the device has"):
                check(browser_page, net, device=device)


@pytest.mark.parametrize(
    "net", [pytest.param(net, marks=() if net in QUICK else pytest.mark.full) for net in SHAPE_NETS]
)
def test_gradients(browser_page: BrowserPage, net: str):
    """Central differences of the whole net."""
    spec = cnn(*SHAPE_NETS[net], optimizer={"type": "sgd", "lr": 1.0}, steps=1)
    x, y = images_for(spec, 3 if math.prod(SHAPE_NETS[net][0]) > 20 else 11)
    check_gradients(browser_page, spec, x, y, (weights_of(spec, seed=seed) for seed in range(1, 2000)))


def test_views_cost_nothing(browser_page: BrowserPage):
    """A reshape that keeps the channels of a pixel together, and that of the input, make no draw."""
    layers = [
        reshape(4, 3, 2),
        conv(4, 2, "tanh"),
        reshape(6, 4),
        reshape(2, 3, 4),
        conv(3, 2),
        reshape(6),
        dense(2),
    ]
    assert "reshape.frag.glsl" not in check(browser_page, ((24,), layers))


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize(
    "net", ["averages", "taken apart", "upsampled", "concatenated", "products", "flattened and flat"]
)
def test_non_finite_numbers_reach_the_loss(browser_page: BrowserPage, net: str, value: float):
    """As they do in float64, and never into padding."""
    spec = cnn(*SHAPE_NETS[net])
    x, y = images_for(spec, 5)
    weights = weights_of(spec)
    first = next(name for name in weights if name.endswith(".bias"))
    weights[first][1] = value
    step = inspect(browser_page, spec, x, y, weights=weights)
    check_padding(step)
    with np.errstate(all="ignore"):
        loss = float(row_losses("mse", forward(spec, weights, x), y).mean())
    assert_same_kind(step["sums"]["loss"], loss)


# ---- sweep ----------------------------------------------------------------------------------------------------------

CHANNELS = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9])
PAIR = st.tuples(st.integers(1, 4), st.integers(1, 4))
EDGES = st.tuples(st.integers(0, 2), st.integers(0, 2)).map(list)


@st.composite
def shape_nets(draw: st.DrawFn) -> tuple[Any, list[Layer]]:
    """A convolution, one to three layers that move its elements, and another one, or a join, behind them."""
    height, width, channels = draw(st.integers(2, 7)), draw(st.integers(2, 9)), draw(CHANNELS)
    first, shape = (height, width, channels), (height, width, draw(CHANNELS))
    layers: list[Layer] = [conv(shape[2], 1, draw(st.sampled_from(["tanh", "gelu"])))]
    for kind in draw(
        st.lists(st.sampled_from(["avg", "up", "pad", "crop", "reshape", "join"]), min_size=1, max_size=3)
    ):
        height, width, channels = shape
        if kind == "avg":
            size = (min(draw(st.integers(1, 3)), height), min(draw(st.integers(1, 3)), width))
            layers.append(avg_pool(size, stride=draw(PAIR), padding="same"))
            stride = layers[-1]["stride"]
            shape = (-(-height // stride[0]), -(-width // stride[1]), channels)
        elif kind == "up":
            rows, columns = draw(st.integers(1, 2)), draw(st.integers(1, 3))
            layers.append(upsample((rows, columns)))
            shape = (height * rows, width * columns, channels)
        elif kind == "pad":
            (above, below), (left, right) = sides = [draw(EDGES), draw(EDGES)]
            layers.append(zero_pad(sides))
            shape = (height + above + below, width + left + right, channels)
        elif kind == "crop":
            above, left = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
            layers.append(crop([[above, 0], [0, left]]))
            shape = (height - above, width - left, channels)
        elif kind == "reshape":
            size = math.prod(shape)
            channels = draw(st.sampled_from([n for n in range(1, 13) if size % n == 0]))
            layers.append(reshape(1, size // channels, channels))
            shape = (1, size // channels, channels)
        else:
            other = draw(CHANNELS)
            name = f"before_{len(layers)}"
            layers[-1] = layers[-1] | {"name": name}
            layers.append(conv(other, 1, "tanh", name=f"beside_{len(layers)}"))
            layers.append(
                concat(name, layers[-1]["name"], name)
                if draw(st.booleans())
                else concat(layers[-1]["name"], name)
            )
            shape = (height, width, channels * (len(layers[-1]["inputs"]) - 1) + other)
    if draw(st.booleans()):
        layers += [conv(shape[2], 1, "sigmoid", name="gate")]
        layers[-2] = layers[-2] | {"name": layers[-2].get("name", "gated")}
        layers.append(
            multiply(layers[-2]["name"], "gate", activation=draw(st.sampled_from(["linear", "silu"])))
        )
    return first, [*layers, FLATTEN, dense(2)]


@pytest.mark.full
@pytest.mark.timeout(1800)
@settings(
    max_examples=100, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much, HealthCheck.too_slow],
)  # fmt: skip
@given(
    net=shape_nets(),
    rows=st.integers(1, 19),
    device=st.sampled_from([device for device in DEVICES if device["maxDrawBuffers"] > 2]),
)
def test_any_net(browser_page: BrowserPage, net: tuple[Any, list[Layer]], rows: int, device: dict[str, Any]):
    """Whatever the shapes."""
    check(browser_page, net, rows, batch=0, batch_size=max(1, rows - 1), device=device)

"""Convolution, by each algorithm, and pooling in a real browser against float64, element by element, as test_kernels.py does for dense nets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from ..tolerances import BY_HAND_TOL
from .cnns import FLATTEN, Layer, Shape, cnn, conv, dense, images_for, output_shape, pool, weights_of
from .harness import BrowserPage, PageError
from .nets import forward, row_losses
from .specs import ACTIVATIONS, LOSSES, OPTIMIZERS, Array
from .steps import BoundsTooWide, check_padding, check_reduction, check_values, inspect, split_padding
from .test_kernels import DEVICES, TARGETS_NEEDED, assert_same_kind, device_id, quick
from .windows import Window

CONV = {"conv2d.frag.glsl", "conv2d_grad_weights.frag.glsl+update.frag.glsl"}
POOL = {"max_pool2d.frag.glsl", "max_pool2d.frag.glsl+max_pool2d_grad.frag.glsl"}
CONV_GRAD_INPUT = "conv2d_grad_input.frag.glsl"
ALGORITHMS = ("direct", "im2col")  # shifted products, or one product with what all windows hold


def check(
    page: BrowserPage, shape: Shape, layers: list[Layer], rows: int = 5, loss: str = "mse", *, labels: str = "index",
    outputs: int = 3, batch: int = 0, algorithm: str = "direct", device: dict[str, Any] | None = None, **net: Any,
) -> set[str]:  # fmt: skip
    """Check every kernel of the third step of these layers with a flatten and a dense one behind; returns the kernels' names."""
    spec = cnn(shape, [*layers, FLATTEN, dense(outputs)], loss, **net)
    x, y = images_for(spec, rows, labels=labels)
    step = inspect(
        page,
        spec,
        x,
        y,
        weights=weights_of(spec),
        steps=2,
        batch=batch,
        device={"convolution": algorithm} | (device or {}),
    )
    check_padding(step)
    check_reduction(step)
    kernels = set(check_values(step))
    convolves = any(layer["type"].startswith("conv") for layer in layers)
    assert ("im2col.frag.glsl" in kernels) == (convolves and algorithm == "im2col")
    return kernels


# ---- variants -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "loss"), [("direct", "mse"), ("direct", "softmax_cross_entropy"), ("im2col", "mse")]
)
@pytest.mark.parametrize(("activation", "optimizer"), [*zip(ACTIVATIONS, (*OPTIMIZERS, "adam"), strict=True)])
def test_activations_losses_and_optimizers(
    browser_page: BrowserPage, activation: str, optimizer: str, algorithm: str, loss: str
):
    """Pooling behind and before a convolution, each activation and optimizer; a last short batch of 3 rows."""
    layers = [conv(5, activation=activation), pool(2), conv(6, 2, activation), conv(3, (1, 2), activation)]
    net: dict[str, Any] = {"batch_size": 4, "batch": 1, "optimizer": optimizer}
    kernels = check(browser_page, (9, 8, 3), layers, 7, loss, algorithm=algorithm, **net)
    assert kernels >= CONV | POOL | {CONV_GRAD_INPUT}


@pytest.mark.parametrize(
    "device", [pytest.param(d, id=device_id(d), marks=() if quick(d) else pytest.mark.full) for d in DEVICES]
)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_devices(browser_page: BrowserPage, algorithm: str, device: dict[str, Any]):
    """Both formats, both ways of fetching, 8 to 1 render targets, with the largest optimizer that fits."""
    layers = [conv(6, activation="tanh"), pool(2), conv(5, 2)]
    net: dict[str, Any] = {"batch_size": 8, "batch": 1, "algorithm": algorithm, "device": device}
    fits = [name for name, needed in TARGETS_NEEDED.items() if needed <= device["maxDrawBuffers"]]
    if fits:
        assert check(browser_page, (7, 6, 3), layers, 13, optimizer=fits[-1], **net) >= CONV
    else:
        with pytest.raises(PageError, match="render targets; the device has"):
            check(browser_page, (7, 6, 3), layers, 13, **net)


# ---- shapes ---------------------------------------------------------------------------------------------------------

WINDOWS = [
    # input, layer; the padded lanes of 1 to 9 channels, sizes around multiples of 4, strides that leave a rest
    ((1, 1, 1), conv(1, 1)),
    ((4, 5, 1), conv(9, 3, padding="same")),
    ((5, 4, 2), conv(8, (2, 3), stride=2)),
    ((8, 9, 4), conv(4, 3, stride=(3, 2), padding="same")),
    ((7, 9, 5), conv(2, (3, 2), dilation=2)),
    ((9, 12, 8), conv(5, 3, dilation=(3, 2), padding="same", stride=2)),
    ((3, 17, 9), conv(1, (1, 5), padding=[[2, 0], [1, 4]], stride=(1, 3))),
    ((6, 3, 3), conv(3, (6, 3))),
    ((16, 1, 2), conv(4, (5, 1), padding=[[4, 4], [0, 0]], dilation=2)),
    ((4, 4, 1), conv(257, 2)),
]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("shape", "layer"), WINDOWS)
def test_convolutions(browser_page: BrowserPage, shape: Shape, layer: Layer, algorithm: str):
    """Stride, dilation, `same` and uneven padding, odd channels; a last batch of one row."""
    net: dict[str, Any] = {"batch_size": 5, "batch": 1, "optimizer": "adam"}
    kernels = check(browser_page, shape, [conv(shape[2], 1, "tanh"), layer], 6, algorithm=algorithm, **net)
    assert kernels >= CONV | {CONV_GRAD_INPUT}


@pytest.mark.full
@pytest.mark.parametrize("targets", [8, 4, 2])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(("shape", "layer"), WINDOWS)
def test_convolutions_on_the_data(
    browser_page: BrowserPage, shape: Shape, layer: Layer, algorithm: str, targets: int
):
    """As the first layer, with as many render targets; one row in all, and 19."""
    for rows in (1, 19):
        device = {"maxDrawBuffers": targets}
        assert check(browser_page, shape, [layer], rows, algorithm=algorithm, device=device) >= CONV


POOLS = [
    ((1, 1, 1), pool(1)),
    ((4, 5, 1), pool(2)),
    ((5, 7, 2), pool((3, 2), stride=(2, 3))),
    ((8, 9, 4), pool(3, stride=1)),
    ((9, 8, 5), pool(3, stride=2, padding="same")),
    ((7, 6, 9), pool((2, 3), padding=[[1, 0], [2, 1]])),
    ((6, 4, 8), pool(2, stride=3)),  # pixels that no window reads
    ((4, 13, 3), pool((4, 5), stride=(1, 2), padding=[[3, 3], [4, 0]])),
]


@pytest.mark.parametrize(("shape", "layer"), POOLS)
def test_pools(browser_page: BrowserPage, shape: Shape, layer: Layer):
    """Behind relu, whose zeros tie; overlapping, with gaps and padded; a last batch of one row."""
    kernels = check(browser_page, shape, [conv(shape[2], 1, "relu"), layer], 6, batch_size=5, batch=1)
    assert kernels >= POOL


@pytest.mark.full
@pytest.mark.parametrize("targets", [8, 4, 2])
@pytest.mark.parametrize(("shape", "layer"), POOLS)
def test_pools_on_the_data(browser_page: BrowserPage, shape: Shape, layer: Layer, targets: int):
    """As the first layer and behind tanh, with as many render targets."""
    for layers in ([layer, conv(2, 1)], [conv(shape[2], 1, "tanh"), layer]):
        check(browser_page, shape, layers, 9, device={"maxDrawBuffers": targets})


def test_pools_of_pools(browser_page: BrowserPage):
    """A gradient that passes through two poolings, and one that two layers share no tensor with."""
    check(browser_page, (9, 9, 3), [conv(5), pool(2, stride=1), pool(3, stride=2), conv(2, 2)], 5)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 8, 9])
def test_dense_after_flatten(browser_page: BrowserPage, channels: int):
    """Flatten moves nothing: weight rows of the dense layer come in blocks of a pixel's channels."""
    kernels = check(
        browser_page, (5, 3, 2), [conv(channels, 2), FLATTEN, dense(7, "tanh")], 9, batch_size=6, batch=1
    )
    assert "affine_grad_input.frag.glsl" in kernels


def test_flattened_images(browser_page: BrowserPage):
    """An image that is flattened first is uploaded flat, its channels not padded; a pooled one is not."""
    check(browser_page, (3, 5, 3), [FLATTEN, dense(5, "tanh")], 5)
    check(browser_page, (3, 5), [], 5)
    check(browser_page, (3, 4, 5), [pool(2), FLATTEN, dense(5, "relu")], 5, optimizer="adam")


def test_long_reductions(browser_page: BrowserPage):
    """Weight gradients of many lines in many parts; a fold in every tensor, since the rows are longer than the textures are wide."""
    check(browser_page, (33, 31, 3), [conv(8, 5, "tanh"), pool(3), conv(9)], 21, batch_size=17)
    check(browser_page, (130, 3, 5), [conv(4, 3, "tanh", padding="same")], 3)


# ---- sweep ----------------------------------------------------------------------------------------------------------

CHANNELS = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9])
PAIR = st.one_of(st.integers(1, 3), st.tuples(st.integers(1, 4), st.integers(1, 4)))


@st.composite
def sliding_layers(draw: st.DrawFn) -> Layer:
    """A convolution or a pooling of any kind; whether it fits is seen later."""
    edges = st.tuples(st.integers(0, 2), st.integers(0, 2)).map(list)
    padding = draw(st.one_of(st.sampled_from(["valid", "same"]), st.tuples(edges, edges).map(list)))
    window, stride = draw(PAIR), draw(PAIR)
    if draw(st.booleans()):
        return conv(
            draw(CHANNELS), window, draw(st.sampled_from(ACTIVATIONS)), stride=stride, padding=padding, dilation=draw(PAIR)
        )  # fmt: skip
    return pool(window, stride=stride, padding=padding)


@st.composite
def conv_nets(draw: st.DrawFn) -> tuple[Shape, list[Layer]]:
    """One to three layers that fit each other."""
    shape = first = (draw(st.integers(1, 10)), draw(st.integers(1, 17)), draw(CHANNELS))
    layers: list[Layer] = []
    for layer in draw(st.lists(sliding_layers(), min_size=1, max_size=3)):
        window = Window.of_layer(layer, shape)
        padding = layer["padding"]
        assume(min(window.output) >= 1)
        if layer["type"] == "max_pool2d" and isinstance(padding, list):
            assume(all(edge < window.taps[axis] for axis in (0, 1) for edge in padding[axis]))
        layers.append(layer)
        shape = output_shape(layer, shape)
    # of a logit that is a sum of very many products, a few roundings may be more than the gradient that float32 resolves
    assume(math.prod(shape) <= 300)
    return first, layers


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
@given(
    net=conv_nets(),
    rows=st.integers(1, 19),
    batch_share=st.floats(0.1, 1),
    loss=st.sampled_from(LOSSES),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    device=st.sampled_from([device for device in DEVICES if device["maxDrawBuffers"] > 2]),
    last=st.booleans(),
)
def test_any_conv_net(
    browser_page: BrowserPage, net: tuple[Shape, list[Layer]], rows: int, batch_share: float, loss: str,
    optimizer: str, device: dict[str, Any], last: bool, algorithm: str,
):  # fmt: skip
    """Whatever the windows and channels."""
    batch_size = max(1, round(rows * batch_share))
    batch = math.ceil(rows / batch_size) - 1 if last else 0
    how: dict[str, Any] = {"algorithm": algorithm, "device": device, "optimizer": optimizer}
    try:
        check(browser_page, *net, rows, loss, batch_size=batch_size, batch=batch, **how)
    except BoundsTooWide:  # of one or two rows, the only loss may be what two large logits leave
        reject()


# ---- what must not be hidden ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, -math.inf])
@pytest.mark.parametrize("where", ["conv2d_1.kernel", "conv2d_2.bias"])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_non_finite_weights_reach_the_loss(
    browser_page: BrowserPage, activation: str, where: str, value: float
):
    """Through convolution, pooling and flatten, as they do in float64, and never into padding, neither forward nor backward."""
    spec = cnn((5, 6, 2), [conv(3, 2, activation), pool(2), conv(5, 2, activation), FLATTEN, dense(3)])
    x, y = images_for(spec, 5)
    weights = weights_of(spec)
    weights[where].reshape(-1)[1] = value
    step = inspect(browser_page, spec, x, y, weights=weights)
    check_padding(step)
    with np.errstate(all="ignore"):
        loss = float(row_losses("mse", forward(spec, weights, x), y).mean())
    assert_same_kind(step["sums"]["loss"], loss)
    assert step["sums"]["finite"] == math.isfinite(loss)


# ---- by hand --------------------------------------------------------------------------------------------------------

IMAGE = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32).reshape(1, 3, 3, 1)


def outputs(
    page: BrowserPage, layers: list[Layer], target: Array, weights: dict[str, Array]
) -> dict[str, Any]:
    """What each kernel stored in the first step with IMAGE; the learning rate is 1."""
    spec = cnn((3, 3, 1), layers, optimizer={"type": "sgd", "lr": 1.0})
    step = inspect(page, spec, IMAGE, target, weights=weights)
    return {
        name: split_padding(tensor, step, name)[0]
        for group in step["groups"]
        for name, tensor in group["outputs"].items()
    }


def near(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=BY_HAND_TOL, atol=BY_HAND_TOL)


def test_conv2d_by_hand(browser_page: BrowserPage):
    """A 2x2 kernel over the numbers 1 to 9: a correlation, its kernel's gradient, and DX where each DY laid the kernel down."""
    weights = {
        "conv2d_1.kernel": np.ones((1, 1, 1, 1), np.float32), "conv2d_1.bias": np.zeros(1, np.float32),
        "conv2d_2.kernel": np.array([1, 2, 3, 4], np.float32).reshape(2, 2, 1, 1), "conv2d_2.bias": np.ones(1, np.float32),
        "dense_1.kernel": np.eye(4, dtype=np.float32), "dense_1.bias": np.zeros(4, np.float32),
    }  # fmt: skip
    z, dy = np.array([38, 48, 68, 78]), np.array([1, 0, 0, 2])
    # mse over 4 outputs has dZ = (Z - T) / 2
    layers = [conv(1, 1, "linear"), conv(1, 2, "linear"), FLATTEN, dense(4)]
    got = outputs(browser_page, layers, (z - 2 * dy).astype(np.float32).reshape(1, 4), weights)
    near(got["conv2d_1.y"], IMAGE.reshape(1, 9))
    near(got["conv2d_2.y"], [z])
    near(got["d(conv2d_2.y)"], [dy])
    near(got["d(conv2d_1.y)"], [[1, 2, 0, 3, 6, 4, 0, 6, 8]])
    near(got["conv2d_2"][:, 0], np.array([1, 2, 3, 4, 1]) - [11, 14, 20, 23, 3])
    near(got["conv2d_1"][:, 0], [1 - (1 + 4 + 12 + 30 + 24 + 48 + 72), -30])


@pytest.mark.parametrize(
    ("scale", "y", "dx"),
    [
        (1, [5, 6, 8, 9], [0, 0, 0, 0, 1, 2, 0, 3, 4]),
        (-1, [-1, -2, -4, -5], [1, 2, 0, 3, 4, 0, 0, 0, 0]),
        (0, [0, 0, 0, 0], [1, 2, 0, 3, 4, 0, 0, 0, 0]),
    ],
)
def test_max_pool2d_by_hand(browser_page: BrowserPage, scale: int, y: list[int], dx: list[int]):
    """Overlapping windows over the numbers 1 to 9 add up; of equal elements the first one takes the gradient."""
    weights = {
        "conv2d_1.kernel": np.full((1, 1, 1, 1), scale, np.float32), "conv2d_1.bias": np.zeros(1, np.float32),
        "dense_1.kernel": np.eye(4, dtype=np.float32), "dense_1.bias": np.zeros(4, np.float32),
    }  # fmt: skip
    layers = [conv(1, 1, "linear"), pool(2, stride=1), FLATTEN, dense(4)]
    target = np.array(y) - 2 * np.array([1, 2, 3, 4])
    got = outputs(browser_page, layers, target.astype(np.float32).reshape(1, 4), weights)
    near(got["max_pool2d_1.y"], [y])
    near(got["d(conv2d_1.y)"], [dx])

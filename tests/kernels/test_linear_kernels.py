"""Grouped, depthwise and transposed convolutions, those of one row, embeddings: every kernel against float64, and gradients."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from ..tolerances import FIRST_LOSS_RTOL, OPERATOR_RIGHT
from .cnns import (
    FLATTEN,
    Layer,
    Shape,
    cnn,
    conv,
    conv1d,
    dense,
    embedding,
    images_for,
    output_shape,
    transpose,
    weights_of,
)
from .harness import BrowserPage, PageError
from .specs import ACTIVATIONS, LOSSES, OPTIMIZERS
from .steps import check_padding, check_reduction, check_values, inspect
from .test_gradients import check as check_gradients
from .test_kernels import DEVICES, TARGETS_NEEDED, device_id, quick

Net = tuple[Shape, list[Layer]]


def check(
    page: BrowserPage, shape: Shape, layers: list[Layer], rows: int = 5, loss: str = "mse", *, batch: int = 0,
    device: dict[str, Any] | None = None, **train: Any,
) -> set[str]:  # fmt: skip
    """Check every kernel of the third step of these layers with a flatten and a dense one behind; returns the kernels' names."""
    behind = [] if layers[-1]["type"] == "dense" else [FLATTEN, dense(3)]
    spec = cnn(shape, [*layers, *behind], loss, **train)
    x, y = images_for(spec, rows)
    step = inspect(page, spec, x, y, weights=weights_of(spec), steps=2, batch=batch, device=device or {})
    check_padding(step)
    check_reduction(step)
    return {shader for key in check_values(step) for shader in key.split("+")}


# Nets whose every layer is of a kind, the first behind a layer that learns.
NETS: dict[str, tuple[Net, set[str]]] = {
    "groups of whole texels": (
        ((5, 6, 3), [conv(8, 1, "tanh"), conv(16, (3, 2), "relu", groups=2, padding="same"), conv(8, 2, "tanh", stride=2, groups=2)]),
        {"conv2d", "conv2d_grad_input", "conv2d_grad_weights"},
    ),
    "groups of any size": (
        (
            (6, 5, 2),
            [
                conv(6, 1, "tanh"), conv(4, 2, "tanh", groups=2), conv(6, 2, "relu", groups=2, padding="same", stride=(1, 2)),
                conv(24, 1, "tanh", groups=3), conv(6, (2, 1), "linear", groups=6, use_bias=False, dilation=2), conv(15, 1, groups=3),
            ],
        ),
        {"conv2d_grouped", "conv2d_grouped_grad_input", "conv2d_grouped_grad_weights"},
    ),
    "depthwise": (
        (
            (7, 6, 1),
            [
                conv(5, 1, "tanh"), conv(5, 3, "tanh", groups=5, padding="same"), conv(5, (2, 1), "relu", groups=5, stride=2),
                conv(8, 1), conv(8, (1, 2), "linear", groups=8, dilation=(1, 2), use_bias=False),
            ],
        ),
        {"conv2d_depthwise", "conv2d_depthwise_grad_input", "conv2d_depthwise_grad_weights"},
    ),
    "transposed": (
        (
            (3, 2, 2),
            [
                transpose(5, 3, "tanh", stride=2, padding="same"), transpose(4, (2, 1), "tanh", stride=(1, 2)),
                transpose(6, 3, "relu", padding=[[1, 0], [2, 1]], dilation=(1, 2), use_bias=False), transpose(1, (1, 2), "tanh", stride=(2, 3)),
            ],
        ),
        {"conv2d", "conv2d_grad_input", "conv2d_grad_weights"},
    ),
    "embedding": (
        ((11,), [embedding(7, 5), conv1d(4, 3, "tanh"), FLATTEN, dense(3)]),
        {"embedding", "embedding_grad_weights", "conv2d"},
    ),
    "two embeddings": (
        (
            (4,),
            [
                embedding(9, 4), embedding(6, 4, inputs=["input"]), {"type": "add", "inputs": ["embedding_1", "embedding_2"], "activation": "tanh"},
                FLATTEN, dense(5, "tanh"), dense(2),
            ],
        ),
        {"embedding", "embedding_grad_weights", "add"},
    ),
    "one row": (
        (
            (23, 3),
            [
                conv1d(6, 3, "tanh", padding="same"), conv1d(4, 5, "relu", stride=2, dilation=2, padding=[3, 0]), conv1d(4, 2, "tanh", groups=4),
                conv1d(6, 2, "linear", groups=2, use_bias=False), conv1d(9, 1),
            ],
        ),
        {"conv2d", "conv2d_grad_input", "conv2d_grad_weights", "conv2d_depthwise", "conv2d_grouped"},
    ),
}  # fmt: skip
each_net = pytest.mark.parametrize("net", NETS)


@each_net
def test_kernels(browser_page: BrowserPage, net: str):
    """Every kernel of each net; a last short batch of 3 rows."""
    (shape, layers), kernels = NETS[net]
    made = check(browser_page, shape, layers, 7, batch_size=4, batch=1, optimizer="adam")
    assert made >= {f"{kernel}.frag.glsl" for kernel in kernels}


DEVICE_NETS: dict[str, Net] = {
    "images": (
        (5, 6, 6),
        [conv(6, 2, "tanh", groups=6), conv(6, 2, "tanh", groups=2), transpose(8, 2, stride=2), conv(8, 2, groups=2)],
    ),
    "numbers": ((9,), [embedding(11, 5), conv1d(4, 3, stride=2)]),
}  # fmt: skip


@pytest.mark.parametrize(
    "device", [pytest.param(d, id=device_id(d), marks=() if quick(d) else pytest.mark.full) for d in DEVICES]
)
@pytest.mark.parametrize("net", DEVICE_NETS)
def test_devices(browser_page: BrowserPage, net: str, device: dict[str, Any]):
    """Both formats, both ways of fetching, 8 to 1 render targets, with the largest optimizer that fits."""
    shape, layers = DEVICE_NETS[net]
    fits = [name for name, needed in TARGETS_NEEDED.items() if needed <= device["maxDrawBuffers"]]
    if fits:
        check(browser_page, shape, layers, 13, optimizer=fits[-1], batch_size=8, batch=1, device=device)
    else:
        with pytest.raises(PageError, match="render targets; the device has"):
            check(browser_page, shape, layers, 13, device=device)


@pytest.mark.parametrize("net", DEVICE_NETS)
def test_gradients_that_are_read_twice(browser_page: BrowserPage, net: str):
    """Their norm limits the updates, so the parts are added before; a layer behind one that is frozen has no gradient to hand on."""
    shape, [first, *layers] = DEVICE_NETS[net]
    kernels = check(browser_page, shape, [first, *layers], 9, batch_size=5, clip={"global_norm": 0.01})
    assert kernels >= {"sum_parts.frag.glsl", "update.frag.glsl"}
    check(browser_page, shape, [first | {"trainable": False}, *layers], 9, batch_size=5)


@pytest.mark.parametrize("net", ["transposed", "one row", "embedding", "groups of any size"])
def test_the_precision_report_knows_them(browser_page: BrowserPage, net: str):
    """Every operator of the job and its first losses against the engine's own float64 reference, whose sequences have one axis less."""
    (shape, layers), _ = NETS[net]
    behind = [] if layers[-1]["type"] == "dense" else [FLATTEN, dense(3)]
    spec = cnn(shape, [*layers, *behind], steps=3, optimizer="adam", batch_size=4)
    x, y = images_for(spec, 7)
    report = browser_page.call("/tests/kernels/engine_page.js", "runAndDiagnose", spec, x, y)["report"]
    assert report["coverage"]["operatorsChecked"] == report["coverage"]["operatorsTotal"]
    assert max(operator["maxNormalizedError"] for operator in report["operators"]) < OPERATOR_RIGHT
    assert [loss["step"] for loss in report["firstLosses"]] == [1, 2, 3]
    assert max(loss["relativeError"] for loss in report["firstLosses"]) < FIRST_LOSS_RTOL


@each_net
@pytest.mark.parametrize(
    "loss", [pytest.param(loss, marks=() if loss == "mse" else pytest.mark.full) for loss in LOSSES]
)
def test_gradients(browser_page: BrowserPage, net: str, loss: str):
    """Central differences of the whole net; 2 samples."""
    shape, layers = NETS[net][0]
    smooth = [
        layer | {"activation": "tanh"} if layer.get("activation") == "relu" else layer for layer in layers
    ]
    spec = cnn(shape, [*smooth, FLATTEN, dense(3)], loss, optimizer={"type": "sgd", "lr": 1.0}, steps=1)
    x, y = images_for(spec, 2)
    check_gradients(browser_page, spec, x, y, (weights_of(spec, seed=seed) for seed in range(1, 100)))


@pytest.mark.parametrize("targets", [8, 4, pytest.param(2, marks=pytest.mark.full)])
def test_embeddings_of_any_size(browser_page: BrowserPage, targets: int):
    """Vocabularies, units and lengths around multiples of 4; one number, one row, numbers that nobody has; a last short batch."""
    for vocabulary, units, length, rows in (
        (1, 1, 1, 1),
        (2, 3, 4, 5),
        (5, 4, 3, 18),
        (300, 9, 6, 7),
        (16, 257, 5, 3),
    ):
        layers = [embedding(vocabulary, units), FLATTEN, dense(2)]
        kernels = check(
            browser_page,
            (length,),
            layers,
            rows,
            batch_size=-(-rows // 2),
            batch=1 if rows > 1 else 0,
            device={"maxDrawBuffers": targets},
        )
        assert kernels >= {"embedding.frag.glsl", "embedding_grad_weights.frag.glsl"}


@pytest.mark.parametrize(("value", "shown"), [(7, "7"), (-1, "-1"), (1.5, "1.5")])
def test_numbers_that_no_row_has_are_refused(browser_page: BrowserPage, value: float, shown: str):
    """In training and in prediction, with the field, the number and what is legal."""
    spec = cnn((4,), [embedding(7, 2), FLATTEN, dense(1)])
    x, y = images_for(spec, 5)
    bad = x.copy()
    bad[3, 2] = value
    for field, trained, predicted in (("data.x", bad, x), ("x", x, bad)):
        said = f"{field}: value 14 from row 0 is {shown}; embedding needs whole numbers from 0 to 6"
        with pytest.raises(PageError, match=f"EngineError: {said}"):
            browser_page.call(
                "/tests/kernels/session_page.js", "play", spec, trained, y, [["predict", predicted]]
            )


# ---- sweeps ---------------------------------------------------------------------------------------------------------

CHANNELS = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 12])
PAIR = st.one_of(st.integers(1, 3), st.tuples(st.integers(1, 4), st.integers(1, 4)))
EDGES = st.tuples(st.integers(0, 2), st.integers(0, 2)).map(list)
PADDING = st.one_of(st.sampled_from(["valid", "same"]), st.tuples(EDGES, EDGES).map(list))


@st.composite
def groups_and_filters(draw: st.DrawFn, channels: int) -> dict[str, int]:
    """Groups that share the channels, depthwise among them, and some filters for each."""
    groups = draw(st.sampled_from([g for g in range(1, channels + 1) if channels % g == 0]))
    return {"groups": groups, "filters": groups * draw(st.sampled_from([1, 1, 2, 3, 4]))}


@st.composite
def linear_nets(draw: st.DrawFn) -> Net:
    """One to three layers, all with windows that fit: images, or sequences that may begin as numbers."""
    layers: list[Layer] = []
    fields: dict[str, Any] = {}
    activation = st.sampled_from(ACTIVATIONS)
    common = {"use_bias": st.booleans(), "activation": activation}
    if draw(st.booleans()):
        shape = first = (draw(st.integers(1, 6)), draw(st.integers(1, 9)), draw(CHANNELS))
        for _ in range(draw(st.integers(1, 3))):
            fields = {key: draw(value) for key, value in common.items()}
            fields |= {"stride": draw(PAIR), "padding": draw(PADDING), "dilation": draw(PAIR)}
            if draw(st.booleans()):
                layer = transpose(draw(CHANNELS), draw(PAIR), **fields)
            else:
                layer = conv(0, draw(PAIR), **fields) | draw(groups_and_filters(shape[2]))
            shape = output_shape(layer, shape)
            assume(min(shape) >= 1)
            layers.append(layer)
    else:
        first = (draw(st.integers(1, 30)), draw(CHANNELS))
        shape = first
        if draw(st.booleans()):
            layers.append(embedding(draw(st.integers(1, 20)), shape[1]))
            first = (first[0],)
        for _ in range(draw(st.integers(1, 3))):
            fields = {key: draw(value) for key, value in common.items()}
            padding = draw(st.one_of(st.sampled_from(["valid", "same"]), EDGES))
            fields |= {
                "stride": draw(st.integers(1, 3)),
                "padding": padding,
                "dilation": draw(st.integers(1, 3)),
            }
            layer = conv1d(0, draw(st.integers(1, 5)), **fields) | draw(groups_and_filters(shape[1]))
            shape = output_shape(layer, shape)
            assume(min(shape) >= 1)
            layers.append(layer)
    # of a logit that is a sum of very many products, a few roundings may be more than the gradient that float32 resolves
    assume(math.prod(shape) <= 300)
    return first, layers


@pytest.mark.full
@pytest.mark.timeout(3000)
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # each try takes seconds; a failure is small as it is
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.filter_too_much,
        HealthCheck.too_slow,
    ],
)
@given(
    net=linear_nets(),
    rows=st.integers(1, 19),
    batch_share=st.floats(0.1, 1),
    loss=st.sampled_from(LOSSES),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    device=st.sampled_from([device for device in DEVICES if device["maxDrawBuffers"] > 2]),
    last=st.booleans(),
)
def test_any_linear_net(
    browser_page: BrowserPage, net: Net, rows: int, batch_share: float, loss: str, optimizer: str, device: dict[str, Any], last: bool,
):  # fmt: skip
    """Stride, padding, dilation, groups, odd sizes, one row, one channel, channels around multiples of 4 and 8."""
    batch_size = max(1, round(rows * batch_share))
    batch = math.ceil(rows / batch_size) - 1 if last else 0
    # so slow that a single row is not learnt by heart in the steps before: bounds of a loss near 0 prove nothing
    slow = OPTIMIZERS[optimizer] | {"lr": 1e-4}
    check(browser_page, *net, rows, loss, batch_size=batch_size, batch=batch, device=device, optimizer=slow)

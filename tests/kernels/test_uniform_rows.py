"""Products of dense layers that take rows, or columns, from uniform blocks: kernels against float64, whole runs, what a step costs and leaves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ..tolerances import PREDICTION_RTOL
from .cnns import FLATTEN, Layer, Shape, add, conv, dense, pool
from .forced import check_report
from .harness import BrowserPage
from .parity import CASES
from .shape_nets import concat, dropout, multiply, reshape
from .specs import ACTIVATIONS, LOSSES, OPTIMIZERS, data_for, mlp, weights_for
from .test_budget import PAGE, measure
from .test_graph_kernels import check as check_graph
from .test_kernels import check
from .test_parity import check_parity

ROWS: dict[str, Any] = {
    "activation": {"few": 1, "usual": 4, "many": 8},
    "weight": 4,
    "gradient": 8,
    "samples": 4,
}
LARGE = {"rows": ROWS | {"uniform": {"products": 2**23, "texels": 96}}}
"""As on GPUs."""
EVERY = {"rows": ROWS | {"uniform": {"products": 0, "texels": 1}}}
"""All products whose rows fit a block, however small."""
FORWARD, BACKWARD = "arrange.frag.glsl+affine.frag.glsl", "arrange.frag.glsl+affine_grad_input.frag.glsl"
GRADIENT = "affine_grad_weights.frag.glsl+update.frag.glsl"
FORMATS = [
    {"format": storage, "fetch": fetch} for storage in ("rgba32f", "rgba32ui") for fetch in ("texture", "texelFetch")
]  # fmt: skip


def products(kernels: set[str]) -> set[str]:
    """Of a step, whatever columns are arranged with their rows."""
    return {kernel.replace("arrange_columns.frag.glsl+", "") for kernel in kernels}


# ---- kernels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", FORMATS, ids=lambda device: "-".join(device.values()))
@pytest.mark.parametrize(
    ("sizes", "rows", "batch_size"),
    [
        ((1, 9, 6), 1, 1),
        (
            (5, 33, 31, 6),
            37,
            20,
        ),  # rows that leave 4 and 12 of 16; columns that leave lanes and parts of quads
        ((12, 128, 64, 9), 48, 16),  # nothing left over
        ((300, 257, 270, 70), 30, 17),  # sums of four in one block, which fill no whole number of turns
        ((1030, 12, 1027), 18, 9),  # products in blocks, whose last are 2 and 1 texels, forward and backward
    ],
)
def test_products(
    browser_page: BrowserPage, can: bool, sizes: tuple[int, ...], rows: int, batch_size: int, device: dict[str, str]
):  # fmt: skip
    """Both formats, both ways of fetching; the last batch, which is short."""
    net: dict[str, Any] = {"batch_size": batch_size, "batch": (rows - 1) // batch_size, "optimizer": "adam"}
    kernels = check(browser_page, sizes, rows, "softmax_cross_entropy", device=EVERY | device, **net)
    assert ({FORWARD, BACKWARD} <= products(kernels)) == can


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(
    "loss", [pytest.param(loss, marks=() if loss == "mse" else pytest.mark.full) for loss in LOSSES]
)
def test_activations(browser_page: BrowserPage, can: bool, activation: str, loss: str):
    """Epilogues, and slopes from what lies in quads."""
    kernels = check(browser_page, (6, 37, 41, 6), 21, loss, activation=activation, device=EVERY)
    assert ({FORWARD, BACKWARD} <= products(kernels)) == can


READERS: dict[str, tuple[Shape, list[Layer]]] = {
    "sums and parts": (
        (9,),
        [
            dense(36, "tanh", name="a"), dense(36, "gelu", name="b"), add("a", "b", name="c"), multiply("a", "c", name="d"),
            concat("d", "b"), dense(36, "silu"), dense(5),
        ],
    ),
    "norms": (
        (9,),
        [
            dense(40), {"type": "layer_norm", "activation": "relu"}, dense(40), {"type": "batch_norm", "activation": "tanh"},
            dense(40, "softmax"), dropout(0.3), dense(5),
        ],
    ),
    "images": ((6, 5, 3), [conv(6, 2, "tanh"), pool(2, stride=1), FLATTEN, dense(60, "tanh"), reshape(5, 4, 3), conv(3, 2), FLATTEN, dense(5)]),
}  # fmt: skip


@pytest.mark.parametrize("net", READERS)
def test_all_kinds_of_readers(browser_page: BrowserPage, can: bool, net: str):
    """What lies in quads is read, and written where it is as wide, by other kernels too; gradients of images lie so."""
    kernels = check_graph(
        browser_page, READERS[net], 23, batch_size=13, batch=1, optimizer="adam", device=EVERY
    )
    assert ({FORWARD, BACKWARD} <= products(kernels)) == can


@pytest.mark.parametrize("device", FORMATS, ids=lambda device: "-".join(device.values()))
@pytest.mark.parametrize("sizes", [(1, 9, 6), (5, 33, 31, 6), (12, 128, 64, 9), (300, 257, 270, 70)])
@pytest.mark.parametrize("net", [{}, {"clip": {"global_norm": 0.01}}], ids=["", "clipped"])
def test_weights_of_eight_rows(
    browser_page: BrowserPage, can: bool, sizes: tuple[int, ...], net: dict[str, Any], device: dict[str, str]
):
    """Under SGD the fragments that make a gradient update 8 rows, so that none is stored unless it is clipped by its norm."""
    kernels = check(
        browser_page, sizes, 37, "mse", device=EVERY | device, optimizer="sgd", batch_size=20, **net
    )
    assert ({FORWARD, BACKWARD} <= products(kernels)) == can
    assert any("update" in kernel for kernel in kernels) == ("clip" in net)


@pytest.mark.parametrize("rows", [8, 2, 1])
def test_weights_of_any_rows(browser_page: BrowserPage, can: bool, rows: int):
    """Of products from uniform blocks and from textures, side by side."""
    device = {"rows": ROWS | {"weight": rows, "uniform": {"products": 0, "texels": 4}}}
    for optimizer in ("sgd", "adam"):
        net: dict[str, Any] = {"device": device, "optimizer": optimizer}
        kernels = check(browser_page, (9, 16, 44, 6), 21, "softmax_cross_entropy", **net)
        assert ({FORWARD, BACKWARD} <= products(kernels)) == can
        assert "affine_grad_input.frag.glsl" in kernels


def test_products_of_two_kinds(browser_page: BrowserPage, can: bool):
    """A smaller product writes quads as well where another one's result is as wide, and takes its rows from textures."""
    device = {"rows": ROWS | {"uniform": {"products": 16 * 60 * 60, "texels": 1}}}
    kernels = check(browser_page, (7, 60, 60, 5), 16, "softmax_cross_entropy", device=device)
    assert {"affine.frag.glsl", "affine_grad_input.frag.glsl"} <= kernels
    assert ({FORWARD, BACKWARD} <= products(kernels)) == can


def test_a_large_product_takes_a_block_by_itself(browser_page: BrowserPage, can: bool):
    """As large as on GPUs, and the whole block of a desktop: 2,048 columns."""
    sizes = (2048, 1024, 16)
    large = check(browser_page, sizes, 64, "softmax_cross_entropy", device=LARGE)
    record = browser_page.call(PAGE, "deviceRecord")
    assert (FORWARD in products(large)) == (can and record["copiedBlockBytes"] >= 65_536)
    assert BACKWARD not in products(large)
    small = check(browser_page, (512, 200, 16), 64, "softmax_cross_entropy", device=LARGE)
    assert not {FORWARD, BACKWARD} & products(small)


@pytest.mark.parametrize("targets", [4, 2])
def test_few_render_targets_take_textures(browser_page: BrowserPage, targets: int):
    """A block's 8 rows need as many."""
    kernels = check(browser_page, (9, 40, 40, 3), 21, device=EVERY | {"maxDrawBuffers": targets})
    assert not {FORWARD, BACKWARD} & products(kernels)


def arranges_columns(kernels: set[str]) -> int:
    """How many gradients are made from columns that one product arranges beside its rows."""
    return max(kernel.count("arrange_columns") for kernel in kernels)


GRADIENTS = [
    ((100, 412, 6), 37, 20, 1),  # rows that leave 4 and 12 of 16
    ((137, 413, 33, 6), 48, 48, 1),  # columns that leave lanes, parts of texels and of quads; groups that leave parts of lines
    ((64, 640, 640, 9), 96, 64, 2),  # nothing left over; the second one lies below the gradient of its input
    ((300, 200, 6), 600, 300, 1),  # samples in two blocks
]  # fmt: skip


@pytest.mark.parametrize(
    ("device", "sizes", "rows", "batch_size", "gradients"),
    [
        pytest.param(device, *case, marks=() if device is FORMATS[0] or case is GRADIENTS[0] else pytest.mark.full, id=f"{'-'.join(device.values())}-{case[0]}")
        for device in FORMATS
        for case in GRADIENTS
    ],
)  # fmt: skip
def test_gradients(
    browser_page: BrowserPage, can: bool, sizes: tuple[int, ...], rows: int, batch_size: int, gradients: int, device: dict[str, str]
):  # fmt: skip
    """Of layers in which it saves so many fetches that they are stored; the last batch is short."""
    net: dict[str, Any] = {"batch_size": batch_size, "batch": (rows - 1) // batch_size, "optimizer": "adam"}
    kernels = check(browser_page, sizes, rows, "softmax_cross_entropy", device=EVERY | device, **net)
    assert GRADIENT in kernels
    assert arranges_columns(kernels) == gradients * can


@pytest.mark.parametrize("bias", [True, False], ids=["biased", "unbiased"])
def test_two_gradients_from_the_same_columns(browser_page: BrowserPage, can: bool, bias: bool):
    """Both layers read the input."""
    layers = [
        dense(412, "tanh", use_bias=bias),
        dense(412, inputs=["input"], use_bias=bias),
        multiply("dense_1", "dense_2"),
        dense(6),
    ]
    net: dict[str, Any] = {"batch_size": 20, "batch": 1, "optimizer": "adam"}
    kernels = check_graph(browser_page, ((100,), layers), 37, device=EVERY, **net)
    assert arranges_columns(kernels) == can


@pytest.mark.parametrize("samples", [1, 4, 16])
def test_gradients_that_take_any_samples_at_once(browser_page: BrowserPage, can: bool, samples: int):
    """As on GPUs, 16; the fewest are the 8 rows of a group."""
    device = {"rows": EVERY["rows"] | {"samples": samples}}
    kernels = check(browser_page, (100, 412, 6), 40, "softmax_cross_entropy", device=device, optimizer="adam")
    assert arranges_columns(kernels) == can


def test_gradients_that_are_clipped_take_textures(browser_page: BrowserPage):
    """By their norm: they are stored as other readers want them."""
    net: dict[str, Any] = {"optimizer": "adam", "clip": {"global_norm": 0.01}}
    kernels = check(browser_page, (100, 412, 6), 40, "softmax_cross_entropy", device=EVERY, **net)
    assert arranges_columns(kernels) == 0


WIDTH = st.one_of(st.integers(1, 70), st.sampled_from([127, 128, 129, 255, 256, 257, 260, 513]))
MANY_NETS = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.full
@pytest.mark.timeout(3000)
@MANY_NETS
@given(
    sizes=st.lists(WIDTH, min_size=3, max_size=5),
    rows=st.integers(1, 150),
    share=st.floats(0.1, 1),
    activation=st.sampled_from(ACTIVATIONS),
    loss=st.sampled_from(LOSSES),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    device=st.sampled_from(FORMATS),
)
def test_any_dense_net(
    browser_page: BrowserPage, sizes: list[int], rows: int, share: float, activation: str, loss: str, optimizer: str, device: dict[str, str],
):  # fmt: skip
    """Rows, columns and batches of any size."""
    batch_size = max(1, round(rows * share))
    batch = math.ceil(rows / batch_size) - 1
    net: dict[str, Any] = {"activation": activation, "optimizer": OPTIMIZERS[optimizer] | {"lr": 1e-4}}
    check(
        browser_page,
        (*sizes, 6),
        rows,
        loss,
        batch_size=batch_size,
        batch=batch,
        device=EVERY | device,
        **net,
    )


# ---- runs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "softmax_cross_entropy-adam",
        *(pytest.param(case, marks=pytest.mark.full) for case in ("mixed-adam", "cnn-adam", "mse-adam")),
    ],
)
@pytest.mark.parametrize("storage", ["rgba32f", pytest.param("rgba32ui", marks=pytest.mark.full)])
def test_parity_with_pytorch(browser_page: BrowserPage, name: str, storage: str):
    """By the rule of docs/numerics.md, over batches of an odd number of rows."""
    (case,) = (case for case in CASES if case.name == name)
    check_parity(browser_page, case, device=EVERY | {"format": storage})


def test_training_evaluation_and_prediction_share_the_buffer(browser_page: BrowserPage):
    """All in turns, on batches of different lengths; nobody sees what another has left in it."""
    spec = mlp(
        (30, 64, 70, 5), "softmax_cross_entropy", activation="tanh", optimizer="sgd", epochs=6, batch_size=24
    )
    spec |= {"data": {"validation": {"fraction": 0.2}}, "metrics": ["accuracy"]}
    x, y = data_for(100, 30, 5, "softmax_cross_entropy")
    calls: list[list[Any]] = [
        ["predict", x[:40]],
        ["run", {"steps": 7}],
        ["evaluate"],
        ["predict", x],
        ["run", {}],
        ["evaluate"],
        ["predict", x[:3]],
    ]
    options = {"initialWeights": weights_for((30, 64, 70, 5))}
    page = "/tests/kernels/session_page.js"
    ours = browser_page.call(page, "play", spec, x, y, calls, options | {"device": EVERY})
    plain = browser_page.call(page, "play", spec, x, y, calls, options)
    assert sum("loss" in point for point in ours["history"]) == 24
    for one, other in zip(ours["history"], plain["history"], strict=True):
        assert one == pytest.approx(other, rel=PREDICTION_RTOL)
    for index, (method, *_) in enumerate(calls):
        one, other = ours["results"][index], plain["results"][index]
        if method == "evaluate":
            assert one == pytest.approx(other, rel=PREDICTION_RTOL)
        if method == "predict":
            np.testing.assert_allclose(
                one, other, rtol=PREDICTION_RTOL, atol=PREDICTION_RTOL * np.abs(other).max()
            )


def test_the_precision_report_knows_them(browser_page: BrowserPage):
    """Every operator against the engine's own reference, though what it writes lies in quads."""
    spec = mlp((100, 412, 70, 5), "softmax_cross_entropy", optimizer="adam", steps=3, batch_size=24)
    x, y = data_for(50, 100, 5, "softmax_cross_entropy")
    check_report(browser_page, spec, x, y, EVERY)


# ---- cost -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["rgba32f", "rgba32ui"])
def test_what_a_step_costs_and_leaves(browser_page: BrowserPage, can: bool, storage: str):
    """Calls and bytes as counted; nothing made, nothing waited for; nothing left."""
    spec = mlp((20, 40, 40, 5), "softmax_cross_entropy", steps=60, batch_size=32)
    got = measure(browser_page, spec, 64, steps=20, more=20, warmup=20, device=EVERY | {"format": storage})
    record = got["record"]
    # two products forward, of which the last is that of the logits; two backward; each of 4 row groups
    assert (record["drawsPerStep"] > 3 * 4 + 2 * 4) == can
    for flight in got["flights"][got["firstSteady"] :]:
        calls, count = flight["calls"], flight["count"]
        assert calls["drawArrays"] == record["drawsPerStep"] * count + 1
        assert calls.get("readPixels", 0) == 5 * count * can
        made = ("create", "delete", "bufferData", "get", "tex", "finish", "fence")
        assert not [name for name in calls if name.startswith(made)], calls
    longest = max(got["flights"], key=lambda flight: flight["count"])
    assert record["glCallsPerStep"] == pytest.approx(sum(longest["calls"].values()) / longest["count"])
    assert got["clientReads"] == 0
    assert got["compiled"]["live"]["buffers"] == got["idle"]["buffers"] + can
    assert (
        got["compiled"]["live"]["textureBytes"] == record["plannedTextureBytes"] == record["peakTextureBytes"]
    )
    assert got["compiled"]["textureBytes"] < record["plannedTextureBytes"] or not can
    assert got["earlyLive"] == got["lateLive"]
    assert got["early"] == got["late"]
    for key in ("textures", "textureBytes", "framebuffers", "buffers"):
        assert got["disposed"][key] == 0
    assert set(got["disposedCounts"].values()) == {0}

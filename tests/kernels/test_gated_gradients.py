"""Gradients that are stored as gates and factors: kernels against float64, whole runs against PyTorch, what a step costs and leaves."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .cnns import FLATTEN, Layer, Shape, conv, dense, pool
from .forced import check_bits, check_report
from .harness import BrowserPage
from .parity import CASES
from .shape_nets import dropout
from .specs import ACTIVATIONS, OPTIMIZERS, data_for, mlp
from .test_budget import measure
from .test_graph_kernels import check as check_graph
from .test_kernels import check
from .test_parity import check_parity
from .test_uniform_rows import FORMATS, MANY_NETS, WIDTH

ROWS: dict[str, Any] = {"activation": 8, "weight": 4, "gradient": 8, "samples": 4, "texels": 2}
EVERY = {"rows": ROWS | {"gated": {"products": 0}}}
"""All gradients that may be, however small."""
GATES, INPUT, WEIGHTS = (
    "gates.frag.glsl",
    "gated_grad_input.frag.glsl",
    "gated_grad_weights.frag.glsl+update.frag.glsl",
)


def quick(cases: list[Any], chosen: list[Any]) -> list[Any]:
    """All of them, those that are not chosen in full runs alone."""
    return [pytest.param(case, marks=() if case in chosen else pytest.mark.full) for case in cases]


# ---- kernels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", quick(FORMATS, FORMATS[1:3]), ids=lambda device: "-".join(device.values()))
@pytest.mark.parametrize(
    ("sizes", "rows", "batch_size"),
    [
        ((5, 9, 6, 1), 1, 1),
        ((5, 33, 31, 1), 37, 20),  # rows that leave 4 and 12 of 16; columns that leave lanes and texels
        ((12, 32, 64, 1), 48, 16),  # nothing left over
        ((30, 270, 257, 1), 530, 530),  # sums of several blocks
        ((33, 17, 1), 41, 41),  # nobody needs the gradient of the inputs
    ],
)
def test_products(
    browser_page: BrowserPage, can: bool, sizes: tuple[int, ...], rows: int, batch_size: int, device: dict[str, str]
):  # fmt: skip
    """Both formats, both ways of fetching; the last batch, which is short."""
    net: dict[str, Any] = {"batch_size": batch_size, "batch": (rows - 1) // batch_size}
    kernels = check(browser_page, sizes, rows, "bce", device=EVERY | device, **net)
    assert ({GATES, WEIGHTS} <= kernels) == can
    assert (INPUT in kernels) == (can and len(sizes) > 3)


@pytest.mark.parametrize("activation", quick([*ACTIVATIONS], ["relu", "tanh"]))
def test_slopes_of_the_layer_before(browser_page: BrowserPage, can: bool, activation: str):
    """The gradient that comes out has them; only behind a relu is one gated."""
    layers = [dense(37, activation), dense(41, "relu"), dense(1)]
    kernels = check_graph(browser_page, ((6,), layers), 21, batch_size=21, device=EVERY)
    assert ({GATES, INPUT, WEIGHTS} <= kernels) == can
    kernels = check_graph(
        browser_page, ((6,), [dense(37), dense(41, activation), dense(1)]), 21, batch_size=21, device=EVERY
    )
    assert (GATES in kernels) == (can and activation == "relu")


@pytest.mark.parametrize("rows", quick([8, 4, 2, 1], [8, 4]))
@pytest.mark.parametrize("optimizer", quick([*OPTIMIZERS], ["sgd", "adam"]))
def test_updates_from_what_lies_turned(browser_page: BrowserPage, can: bool, optimizer: str, rows: int):
    """Weights of any rows a fragment, and of any rule; penalties, which leave the bias alone."""
    device = {"rows": ROWS | {"weight": rows, "gated": {"products": 0}}}
    kernels = check(browser_page, (6, 21, 30, 1), 33, "mse", device=device, optimizer=optimizer)
    assert ({GATES, INPUT, WEIGHTS} <= kernels) == can
    penalised = OPTIMIZERS[optimizer] | {"l2": 0.1}
    check(browser_page, (6, 21, 30, 1), 33, "mse", device=device, optimizer=penalised)


NETS: dict[str, tuple[Shape, list[Layer], bool]] = {
    "no biases": ((9,), [dense(36, "relu", use_bias=False), dense(20, "relu", use_bias=False), dense(1, use_bias=False)], True),
    "images": ((6, 5, 3), [conv(6, 2, "tanh"), pool(2, stride=1), FLATTEN, dense(60, "relu"), dense(1)], True),
    "pixels of a channel that is no texel": ((4, 4, 3), [FLATTEN, dense(21, "relu"), dense(1)], True),
    "dropped before": ((9,), [dense(40, "relu"), dropout(0.3), dense(40, "relu"), dense(1)], True),
    "dropped behind": ((9,), [dense(40, "relu"), dense(40, "relu"), dropout(0.3), dense(1)], False),
    "frozen": ((9,), [dense(40, "relu"), dense(40, "relu", trainable=False), dense(1)], True),
    "two outputs": ((9,), [dense(40, "relu"), dense(40, "relu"), dense(2)], False),
    "a single output amid": ((9,), [dense(40, "relu"), dense(1, "tanh"), dense(12, "relu"), dense(3)], True),
    "a single column": ((9,), [dense(5, "tanh"), dense(1, "relu"), dense(1)], False),
}  # fmt: skip


@pytest.mark.parametrize("net", NETS)
def test_where_a_gradient_is_gated(browser_page: BrowserPage, can: bool, net: str):
    """Whatever stands before the relu; nothing may stand between it and the single output."""
    shape, layers, gated = NETS[net]
    kernels = check_graph(
        browser_page, (shape, layers), 23, batch_size=13, batch=1, optimizer="adam", device=EVERY
    )
    assert (GATES in kernels) == (gated and can)


@pytest.mark.parametrize("sizes", [(6, 41, 41, 1), (33, 37, 1), (41, 41, 1), (64, 33, 1)])
def test_beside_rows_from_uniform_blocks(browser_page: BrowserPage, can: bool, sizes: tuple[int, ...]):
    """The gradient that comes out lies in quads, as what the product forward writes; weights that are spread are updated from what lies turned."""
    device = {"rows": EVERY["rows"] | {"uniform": {"products": 0, "texels": 1}}}
    kernels = check(browser_page, sizes, 37, "bce", device=device, batch_size=20, batch=1)
    assert ({"arrange.frag.glsl+affine.frag.glsl", GATES, WEIGHTS} <= kernels) == can


def test_few_render_targets_store_gradients(browser_page: BrowserPage):
    """A fragment has 8 rows."""
    assert GATES not in check(browser_page, (9, 40, 40, 1), 21, device=EVERY | {"maxDrawBuffers": 4})


@pytest.mark.full
@pytest.mark.timeout(3000)
@MANY_NETS
@given(
    sizes=st.lists(WIDTH, min_size=2, max_size=4),
    rows=st.integers(1, 600),
    share=st.floats(0.1, 1),
    loss=st.sampled_from(["bce", "mse"]),
    device=st.sampled_from(FORMATS),
)
def test_any_dense_net(
    browser_page: BrowserPage, sizes: list[int], rows: int, share: float, loss: str, device: dict[str, str]
):
    """Rows, columns and batches of any size."""
    batch_size = max(1, round(rows * share))
    batch = math.ceil(rows / batch_size) - 1
    net: dict[str, Any] = {"batch_size": batch_size, "batch": batch, "optimizer": {"type": "sgd", "lr": 1e-4}}
    check(browser_page, (*sizes, 1), rows, loss, device=EVERY | device, **net)


# ---- runs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["single-sgd", pytest.param("single-adam", marks=pytest.mark.full)])
@pytest.mark.parametrize("storage", ["rgba32f", pytest.param("rgba32ui", marks=pytest.mark.full)])
def test_parity_with_pytorch(browser_page: BrowserPage, can: bool, name: str, storage: str):
    """By the rule of docs/numerics.md, of a net whose gradient really is gated."""
    (case,) = (case for case in CASES if case.name == name)
    device = EVERY | {"format": storage}
    kernels = check(browser_page, (9, 24, 36, 1), case.rows, "bce", batch_size=case.batch_size, device=device)
    assert ({GATES, INPUT, WEIGHTS} <= kernels) == can
    check_parity(browser_page, case, device=device)


def test_the_precision_report_knows_them(browser_page: BrowserPage, can: bool):
    """Every operator against the engine's own reference, the gradient itself too."""
    spec = mlp((30, 64, 70, 1), "bce", optimizer="adam", steps=3, batch_size=24)
    x, y = data_for(50, 30, 1, "bce")
    report = check_report(browser_page, spec, x, y, EVERY)
    (gradient,) = [operator for operator in report["operators"] if operator["name"] == "d(dense_2.z)"]
    assert gradient["compared"] == 24 * 70
    # A product of two numbers, rounded once.
    assert gradient["maxUlp"] <= 0.5 or not can


def test_a_run_is_the_same_bit_for_bit(browser_page: BrowserPage, can: bool):
    """Twice, and as one whose gradients are stored but for their rounding."""
    spec = mlp((7, 40, 40, 1), "bce", steps=40, batch_size=30)
    x, y = data_for(100, 7, 1, "bce")
    check_bits(browser_page, spec, x, y, EVERY, {"rows": ROWS}, differs=can)


# ---- cost -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["rgba32f", "rgba32ui"])
def test_what_a_step_costs_and_leaves(browser_page: BrowserPage, can: bool, storage: str):
    """Calls and bytes as counted; nothing made, nothing waited for; nothing left."""
    spec = mlp((20, 40, 40, 1), "bce", steps=60, batch_size=32)
    got = measure(browser_page, spec, 64, steps=20, more=20, warmup=20, device=EVERY | {"format": storage})
    record = got["record"]
    # forward three; gates, three gradients of weights and one of inputs, and the update of the second layer, whose gradient is stored
    assert record["drawsPerStep"] == (3 + 1 + 3 + 1 + 1 if can else 3 + 5)
    for flight in got["flights"][got["firstSteady"] :]:
        made = ("create", "delete", "bufferData", "get", "tex", "finish", "fence")
        assert not [name for name in flight["calls"] if name.startswith(made)], flight["calls"]
    assert (
        got["compiled"]["live"]["textureBytes"] == record["plannedTextureBytes"] == record["peakTextureBytes"]
    )
    assert got["compiled"]["textureBytes"] == record["plannedTextureBytes"]
    for key in ("textures", "textureBytes", "framebuffers", "buffers"):
        assert got["disposed"][key] == 0
    assert set(got["disposedCounts"].values()) == {0}

"""Operands that a product computes although they are stored: kernels against float64, whole runs against PyTorch, what must not be hidden."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .cnns import FLATTEN, Layer, conv, dense
from .forced import check_bits, check_report
from .harness import BrowserPage
from .parity import CASES
from .shape_nets import dropout
from .specs import OPTIMIZERS, Array, Spec, data_for, mlp, weights_for
from .steps import check_padding, check_reduction, check_values, inspect
from .test_gated_gradients import GATES, quick
from .test_kernels import FORWARD, assert_same_kind
from .test_parity import check_parity
from .test_uniform_rows import FORMATS, MANY_NETS

ROWS: dict[str, Any] = {"activation": 8, "weight": 4, "gradient": 8, "samples": 4, "texels": 2}
EVERY = {"rows": ROWS | {"computed": {"products": 0, "inputs": 4}}}
"""All operands that may be, however small the product."""


def check(page: BrowserPage, spec: Spec, x: Array, y: Array, **options: Any) -> tuple[list[str], set[str]]:
    """Check every kernel of a net's third step; returns what groups compute besides their own ops, and the names of the kernels."""
    step = inspect(page, spec, x, y, steps=2, **{"device": EVERY} | options)
    check_padding(step)
    check_reduction(step)
    kernels = set(check_values(step))
    products = [
        [op["outputs"]["y"] for op in group["ops"] if op["type"] == "affine"] for group in step["groups"]
    ]
    return [each[0] for each in products if len(each) > 1], kernels


# ---- kernels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", quick(FORMATS, FORMATS[1:3]), ids=lambda device: "-".join(device.values()))
@pytest.mark.parametrize(
    ("sizes", "rows", "batch_size"),
    [
        ((1, 5, 6, 7), 1, 1),
        ((2, 33, 31, 1), 37, 20),  # rows that leave 4 and 12 of 16; columns that leave lanes and texels
        ((3, 32, 64, 5), 48, 16),  # nothing left over
        ((4, 270, 257, 2), 70, 70),  # sums of several blocks
        ((2, 128, 128, 3), 300, 300),  # as wide: in one texture
    ],
)
def test_products(
    browser_page: BrowserPage, can: bool, sizes: tuple[int, ...], rows: int, batch_size: int, device: dict[str, str]
):  # fmt: skip
    """Both formats, both ways of fetching; the last batch, which is short."""
    x, y = data_for(rows, sizes[0], sizes[-1], "mse")
    spec = mlp(sizes, "mse", batch_size=batch_size)
    options: dict[str, Any] = {"weights": weights_for(sizes), "batch": (rows - 1) // batch_size}
    computed, _ = check(browser_page, spec, x, y, device=EVERY | device, **options)
    assert computed == (["dense_1.z"] if can else [])


NETS: dict[str, tuple[int, list[Layer], list[str]]] = {
    "no biases": (3, [dense(20, "relu", use_bias=False), dense(24, "relu", use_bias=False), dense(5)], ["dense_1.z"]),
    "behind a bottleneck": (9, [dense(4, "tanh"), dense(24, "relu"), dense(20), dense(5)], ["dense_2.z"]),
    "any activation behind it": (2, [dense(24, "relu"), dense(20, "gelu"), dense(5)], ["dense_1.z"]),
    "frozen": (2, [dense(24, "relu", trainable=False), dense(20, "relu"), dense(5)], ["dense_1.z"]),
    "no relu": (2, [dense(24, "tanh"), dense(20, "relu"), dense(5)], []),
    "five inputs": (5, [dense(24, "relu"), dense(20, "relu"), dense(5)], []),
    "dropped": (2, [dense(24, "relu"), dropout(0.3), dense(20, "relu"), dense(5)], []),
    "the loss rides along": (2, [dense(24, "relu"), dense(6)], []),
    "behind an activation": (2, [dense(24, "relu"), dense(6, "tanh")], []),
}  # fmt: skip


@pytest.mark.parametrize("optimizer", quick([*OPTIMIZERS], ["adam"]))
@pytest.mark.parametrize("net", NETS)
def test_which_operands_are_computed(browser_page: BrowserPage, can: bool, net: str, optimizer: str):
    """Those of relu layers of up to four inputs, whatever stands before and behind them; not one whose layer is computed again itself."""
    inputs, layers, wanted = NETS[net]
    spec = mlp((inputs, layers[-1]["units"]), "mse", optimizer=optimizer, batch_size=13)
    spec["model"]["layers"] = layers
    x, y = data_for(23, inputs, layers[-1]["units"], "mse")
    computed, _ = check(browser_page, spec, x, y, batch=1)
    assert computed == (wanted if can else [])


def test_inputs_that_are_computed_themselves(browser_page: BrowserPage):
    """Have no texel: their layer is computed where the next one is made, which the product loads."""
    x, y = data_for(21, 2, 5, "mse")
    computed, _ = check(browser_page, mlp((2, 3, 4, 20, 5), batch_size=13), x, y, batch=1)
    assert computed == ["dense_1.z"]


@pytest.mark.parametrize(("channels", "pixels"), [(1, 2), (2, 1), (4, 1)])
def test_inputs_of_several_pixels_are_loaded(
    browser_page: BrowserPage, can: bool, channels: int, pixels: int
):
    """Each has a texel of its own; one pixel is one."""
    layers = [conv(channels, 3 - pixels + 1, "tanh"), FLATTEN, dense(24, "relu"), dense(20, "relu"), dense(5)]
    spec = mlp((9, 5), "mse", batch_size=13)
    spec["model"] = {"input": [3, 3, 1], "layers": layers}
    x, y = data_for(23, 9, 5, "mse")
    computed, _ = check(browser_page, spec, x.reshape(-1, 3, 3, 1), y, batch=1)
    assert computed == (["dense_1.z"] if can and pixels == 1 else [])


def test_beside_gates_and_rows_from_uniform_blocks(browser_page: BrowserPage, can: bool):
    """Where both could be, rows come from a block."""
    x, y = data_for(37, 2, 1, "bce")
    for sizes, more, wanted in [
        ((2, 41, 33, 1), {"gated": {"products": 0}}, ["dense_1.z"]),
        ((2, 41, 33, 30, 1), {"gated": {"products": 0}, "uniform": {"products": 0, "texels": 1}}, []),
    ]:
        device = {"rows": EVERY["rows"] | more}
        computed, kernels = check(
            browser_page, mlp(sizes, "bce", batch_size=20), x, y, batch=1, device=device
        )
        assert computed == (wanted if can else [])
        assert (GATES in kernels) == can


def test_few_render_targets_load_them(browser_page: BrowserPage):
    """A fragment has 8 rows."""
    x, y = data_for(21, 2, 5, "mse")
    assert check(browser_page, mlp((2, 40, 40, 5)), x, y, device=EVERY | {"maxDrawBuffers": 4})[0] == []


@pytest.mark.full
@pytest.mark.timeout(3000)
@MANY_NETS
@given(
    sizes=st.tuples(st.integers(1, 4), st.integers(5, 300), st.integers(5, 300), st.integers(1, 9)),
    rows=st.integers(1, 600),
    share=st.floats(0.1, 1),
    device=st.sampled_from(FORMATS),
)
def test_any_dense_net(
    browser_page: BrowserPage, can: bool, sizes: tuple[int, ...], rows: int, share: float, device: dict[str, str]
):  # fmt: skip
    """Rows, columns and batches of any size."""
    batch_size = max(1, round(rows * share))
    x, y = data_for(rows, sizes[0], sizes[-1], "mse")
    spec = mlp(sizes, "mse", batch_size=batch_size, optimizer={"type": "sgd", "lr": 1e-4})
    options: dict[str, Any] = {"weights": weights_for(sizes), "batch": math.ceil(rows / batch_size) - 1}
    computed, _ = check(browser_page, spec, x, y, device=EVERY | device, **options)
    assert computed == (["dense_1.z"] if can else [])


# ---- runs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["dense_1.kernel", "dense_1.bias", "dense_2.kernel", "dense_2.bias"])
def test_non_finite_weights_reach_the_loss(browser_page: BrowserPage, where: str, value: float):
    """NaN and infinities come out as they come out of float64; here every relu of the operand is open that they do not shut."""
    sizes = (3, 9, 8, 6)
    x, y = data_for(5, 3, 6, "mse")
    weights = weights_for(sizes)
    weights["dense_1.bias"][:] = 9
    weights[where].reshape(-1)[1] = value
    step = inspect(browser_page, mlp(sizes), x, y, weights=weights, device=EVERY)
    values = x.astype(np.float64)
    with np.errstate(all="ignore"):
        for number in (1, 2, 3):
            values = (
                values @ weights[f"dense_{number}.kernel"].astype(np.float64)
                + weights[f"dense_{number}.bias"]
            )
            values = FORWARD["relu"](values) if number < 3 else values
        loss = float(np.mean((values - y) ** 2))
    assert_same_kind(step["sums"]["loss"], loss)
    assert step["sums"]["finite"] == math.isfinite(loss)


def test_parity_with_pytorch(browser_page: BrowserPage, can: bool):
    """By the rule of docs/numerics.md, of a net with an operand that really is computed."""
    (case,) = (case for case in CASES if case.name == "few-adam")
    x, y = data_for(case.rows, 3, 2, "mse")
    assert check(browser_page, mlp((3, 24, 20, 2), batch_size=case.batch_size), x, y)[0] == (
        ["dense_1.z"] if can else []
    )
    check_parity(browser_page, case, device=EVERY)


def test_the_precision_report_knows_them(browser_page: BrowserPage, can: bool):
    """Every operator against the engine's own reference, by what it reads."""
    spec = mlp((3, 64, 70, 2), "mse", optimizer="adam", steps=3, batch_size=24)
    x, y = data_for(50, 3, 2, "mse")
    assert check(browser_page, spec, x, y)[0] == (["dense_1.z"] if can else [])
    check_report(browser_page, spec, x, y, EVERY)


def test_a_run_is_the_same_bit_for_bit(browser_page: BrowserPage, can: bool):
    """Twice, and as one that loads its operands but for their rounding."""
    spec = mlp((2, 40, 40, 1), "bce", steps=40, batch_size=30)
    x, y = data_for(100, 2, 1, "bce")
    check_bits(browser_page, spec, x, y, EVERY, {"rows": ROWS}, differs=can)

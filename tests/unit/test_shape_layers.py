"""Average and global pooling, layers that move elements, products and concatenations: shapes on both sides, refusals, limits, memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ..kernels.cnns import FLATTEN, Layer, Shape, activation, add, conv, dense
from ..kernels.shape_nets import (
    GLOBAL_AVG,
    GLOBAL_MAX,
    SHAPE_NETS,
    avg_pool,
    concat,
    crop,
    dropout,
    multiply,
    reshape,
    upsample,
    zero_pad,
)
from . import test_engine_limits, test_memory, test_network

PAIR = st.one_of(st.integers(1, 4), st.tuples(st.integers(1, 4), st.integers(1, 4)).map(list))
EDGES = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(list)
SIDES = st.integers(0, 3) | st.tuples(EDGES, EDGES).map(list)
LAYER = st.one_of(
    st.builds(avg_pool, PAIR, stride=st.none() | PAIR, padding=st.sampled_from(["valid", "same"]) | st.tuples(EDGES, EDGES).map(list)),
    st.sampled_from([GLOBAL_AVG, GLOBAL_MAX, FLATTEN, activation("gelu")]),
    st.builds(upsample, PAIR), st.builds(zero_pad, SIDES), st.builds(crop, SIDES),
    st.sampled_from([reshape(24), reshape(4, 6), reshape(2, 3, 4), reshape(12, 2, 1), reshape(1, 4, 3, 2)]),
    st.builds(conv, st.integers(1, 4), st.integers(1, 2)), st.sampled_from([dropout(0.5), dropout(0)]),
    st.just(concat("input", "input")), st.just(multiply("input", "input")),
)  # fmt: skip


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    shape=st.sampled_from([[24], [4, 6], [2, 3, 4], [4, 3, 2], [2, 2, 6], [1, 24, 1]]),
    layers=st.lists(LAYER, min_size=1, max_size=4),
)
def test_the_page_infers_the_same(shape: list[int], layers: list[Layer]):
    """Whatever the layers: the same shapes and weights, or a refusal of the same field."""
    test_network.test_the_page_infers_the_same.hypothesis.inner_test(shape, layers)  # pyright: ignore[reportFunctionMemberAccess]


IMAGE = (6, 5, 2)
REFUSED: list[tuple[Shape, list[Layer], str, str]] = [
    ((30,), [avg_pool()], "model.layers.0", "needs an input [height, width, channels]"),
    ((6, 5), [GLOBAL_AVG], "model.layers.0", "needs an input [height, width, channels]"),
    (IMAGE, [FLATTEN, GLOBAL_MAX], "model.layers.1", "needs an input [height, width, channels]"),
    (IMAGE, [FLATTEN, upsample()], "model.layers.1", "needs an input [height, width, channels]"),
    (IMAGE, [avg_pool(7)], "model.layers.0", "fit"),
    (IMAGE, [avg_pool((2, 3), padding=[[2, 0], [0, 0]])], "model.layers.0.padding", "a window may not lie in the padding alone"),
    (IMAGE, [reshape(7, 5)], "model.layers.0.shape", "has 35 elements"),
    (IMAGE, [reshape(-1, 30)], "model.layers.0.shape", "1"),
    (IMAGE, [reshape()], "model.layers.0.shape", "1"),
    (IMAGE, [upsample(0)], "model.layers.0.size", "1"),
    (IMAGE, [upsample(1.5)], "model.layers.0.size", ""),
    (IMAGE, [zero_pad(-1)], "model.layers.0.padding", "0"),
    (IMAGE, [zero_pad([1, 1])], "model.layers.0.padding", ""),
    (IMAGE, [crop(3)], "model.layers.0.cropping", "leaves nothing of an input of 6 x 5"),
    (IMAGE, [crop([[0, 0], [2, 3]])], "model.layers.0.cropping", "leaves nothing of an input of 6 x 5"),
    (IMAGE, [dropout(1)], "model.layers.0.rate", "1"),
    (IMAGE, [dropout(-0.1)], "model.layers.0.rate", "0"),
    (IMAGE, [{"type": "multiply"}], "model.layers.0.inputs", "at least 2"),
    (IMAGE, [conv(3), multiply("input", "conv2d_1")], "model.layers.1.inputs.1", "needs inputs of one shape"),
    (IMAGE, [conv(3), concat("input", "conv2d_1")], "model.layers.1.inputs.1", "needs inputs of all but the last axis"),
    (IMAGE, [FLATTEN, concat("input", "flatten_1")], "model.layers.1.inputs.1", "needs inputs of all but the last axis"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "layers", "field", "message"), REFUSED)
def test_what_does_not_fit_is_refused(shape: Shape, layers: list[Layer], field: str, message: str):
    """Python and the page name the same layer and say why."""
    test_network.test_what_does_not_fit_is_refused(shape, layers, field, message)


GRID: list[tuple[list[int], list[Layer]]] = [
    *[([200, 200, 1], [avg_pool(size), FLATTEN, dense(1)]) for size in (181, 182)],
    *[([200, 200, 1], [conv(1, 1), avg_pool(size), FLATTEN, dense(1)]) for size in (181, 182)],
    *[([side, side, 1], [GLOBAL_AVG, dense(1)]) for side in (181, 182)],
    *[([side, side, 1], [GLOBAL_MAX, dense(1)]) for side in (181, 182)],
    *[([side, side, 1], [conv(1, 1), GLOBAL_MAX, dense(1)]) for side in (181, 182)],
    *[([1, 1, 1], [conv(1, 1), upsample([128, size]), avg_pool([128, size]), FLATTEN, dense(1)]) for size in (256, 257)],
]  # fmt: skip


@pytest.mark.parametrize("case", GRID, ids=[str(number) for number in range(len(GRID))])
def test_the_service_refuses_what_the_planner_refuses(case: tuple[list[int], list[Layer]]):
    """On both sides of each limit."""
    ours, theirs = test_engine_limits.faults_of(*case, "mse", 2, None)
    assert bool(ours) == bool(theirs), (ours, theirs)
    for fault in ours:
        assert fault.legal
        assert fault.field.startswith("model.")


def test_the_grid_has_both_sides():
    """It would show nothing if the planner took all of it, or none."""
    refused = [bool(test_engine_limits.faults_of(*case, "mse", 2, None)[1]) for case in GRID]
    assert refused == [False, True] * (len(GRID) // 2)


LARGE: dict[str, tuple[Shape, list[Layer]]] = {
    "u-net": ((16, 16, 3), [
        conv(16, padding="same", name="down"), avg_pool(), conv(32, padding="same", activation="silu"), upsample(), conv(16, padding="same", name="up"),
        concat("down", "up"), conv(16, padding="same"), GLOBAL_AVG, dense(2),
    ]),
    "dense block": ((16, 16, 8), [
        conv(8, padding="same"), concat("input", "conv2d_1"), conv(8, padding="same"), concat("concat_1", "conv2d_2"), conv(8, padding="same"),
        concat("concat_2", "conv2d_3"), avg_pool(), GLOBAL_AVG, dense(2),
    ]),
    "inception": ((16, 16, 8), [
        conv(8, 1, name="a"), conv(8, 3, padding="same", inputs=["input"], name="b"), conv(8, 5, padding="same", inputs=["input"], name="c"), concat("a", "b", "c", "input"),
        GLOBAL_MAX, dense(2),
    ]),
    "gates": ((64,), [dense(64, "tanh", name="a"), dense(64, "sigmoid", inputs=["input"], name="b"), multiply("a", "b"), dense(64, name="c"), multiply("c", "a", "input"), dense(2)]),
    "dropped": ((64,), [layer for _ in range(4) for layer in (dense(64, "relu"), dropout(0.5))] + [dense(2)]),
    "dropped images": ((16, 16, 3), [conv(16, padding="same"), dropout(0.2), conv(16, padding="same", activation="relu"), dropout(0.5), FLATTEN, dense(2)]),
    "moved": ((20, 20, 4), [zero_pad(2), conv(8), crop(1), zero_pad([[1, 1], [0, 0]]), FLATTEN, dense(2)]),
    "reshaped": ((784,), [reshape(28, 28, 1), conv(8, 3), reshape(26, 104, 2), conv(4, 3), FLATTEN, dense(64), reshape(8, 8, 1), conv(4), FLATTEN, dense(2)]),
    "flattened and flat": ((8, 8, 3), [conv(6, padding="same"), FLATTEN, dense(384), add("flatten_1", "dense_1"), concat("add_1", "flatten_1"), dense(2)]),
}  # fmt: skip


@pytest.mark.parametrize("optimizer", [test_memory.SGD, test_memory.ADAM], ids=["sgd", "adam"])
@pytest.mark.parametrize(("rows", "batch"), [(1797, 32), (1000, 256), (5, None)])
@pytest.mark.parametrize("net", [*LARGE, *SHAPE_NETS])
def test_the_estimate_is_a_bound_within_twice_the_plan(
    net: str, rows: int, batch: int | None, optimizer: dict[str, Any]
):
    """Of memory, as for other layers."""
    shape, layers = (LARGE | SHAPE_NETS)[net]
    test_memory.check(shape, layers, rows, batch, "softmax_cross_entropy", optimizer, 0.2, None)

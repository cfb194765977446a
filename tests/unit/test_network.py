"""Shapes of convolutional nets: as the page infers them, as refused, as counted by hand."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelgrad.errors import Invalid
from texelgrad.inputs import inputs_of
from texelgrad.network import infer_network
from texelgrad.shapes import ArrayInfo, Stats, estimate
from texelgrad.spec import JobSpec, parse_spec

from ..kernels.cnns import (
    FLATTEN,
    Layer,
    activation,
    add,
    buffers_of,
    cnn,
    conv,
    conv1d,
    dense,
    nodes,
    pool,
    transpose,
)
from ..node import call

PROBE = "/tests/unit/model_probe.js"
PLAIN = Stats(0, 1, integral=False, row_sums_one=False)


def plain(spec: dict[str, Any]) -> dict[str, Any]:
    """As JSON has it: lists for tuples."""
    return json.loads(json.dumps(spec))


def infer(spec: dict[str, Any]) -> dict[str, Any]:
    return call(PROBE, "infer", spec)


def estimated(spec: JobSpec, rows: int, outputs: int) -> Any:
    x, y = (rows, *inputs_of(spec.model.input)["input"]), (rows, outputs)
    return estimate(spec, {"x": ArrayInfo("float32", x, PLAIN), "y": ArrayInfo("float32", y, PLAIN)})


# ---- the same on both sides -----------------------------------------------------------------------------------------

PAIR = st.one_of(st.integers(1, 4), st.tuples(st.integers(1, 4), st.integers(1, 4)).map(list))
EDGES = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(list)
PADDING = st.one_of(st.sampled_from(["valid", "same"]), st.tuples(EDGES, EDGES).map(list))
LAYER = st.one_of(
    st.builds(
        conv,
        st.integers(1, 9),
        PAIR,
        stride=PAIR,
        padding=PADDING,
        dilation=PAIR,
        groups=st.sampled_from([1, 1, 2, 3]),
    ),
    st.builds(transpose, st.integers(1, 9), PAIR, stride=PAIR, padding=PADDING, dilation=PAIR),
    st.builds(
        conv1d,
        st.integers(1, 9),
        st.integers(1, 4),
        stride=st.integers(1, 4),
        padding=st.one_of(st.sampled_from(["valid", "same"]), EDGES),
        dilation=st.integers(1, 3),
        groups=st.sampled_from([1, 1, 2]),
    ),
    st.builds(pool, PAIR, stride=st.none() | PAIR, padding=PADDING),
    st.just(FLATTEN),
    st.builds(activation, st.sampled_from(["relu", "gelu", "softmax"])),
    st.builds(dense, st.integers(1, 9), use_bias=st.booleans()),
    st.sampled_from([{"type": "layer_norm"}, {"type": "batch_norm", "momentum": 0.5}]),
    st.fixed_dictionaries(
        {"type": st.just("group_norm"), "groups": st.integers(1, 4), "eps": st.just(0.001)}
    ),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    shape=st.lists(st.integers(1, 12), min_size=1, max_size=4) | st.lists(st.integers(1, 12), min_size=3, max_size=3),
    layers=st.lists(LAYER, max_size=4),
)  # fmt: skip
def test_the_page_infers_the_same(shape: list[int], layers: list[Layer]):
    """Whatever the layers: the same shapes and weights, or a refusal of the same field."""
    raw = plain(cnn(tuple(shape), [*layers, FLATTEN, dense(3)]))
    page = infer(raw)
    if "error" in page:
        with pytest.raises(Invalid) as refused:
            parse_spec(raw)
        assert page["error"]["field"] == refused.value.faults[0].field, page
        return
    spec = parse_spec(raw)
    found = spec.model.network.layers
    assert [list(layer.output) for layer in found] == page["outputs"]
    weights = [layer.weights for layer in found if layer.weights]
    assert weights == [(math.prod(shape[:-2]), *shape[-2:]) for shape in page["weights"]]
    expected = {node.name: next(iter(node.weights.values())) for node in nodes(raw) if node.weights}
    assert {kernel["layer"]: tuple(kernel["shape"]) for kernel in page["kernels"]} == expected
    for kernel in page["kernels"]:
        shape = kernel["shape"]
        assert kernel["fanIn"] == math.prod(shape[:-1])
        assert kernel["fanOut"] == math.prod(shape[:-2]) * shape[-1]
    kept = buffers_of(raw)
    counted = sum(
        math.prod(shape) for node in nodes(raw) for name, shape in node.weights.items() if name not in kept
    )
    assert estimated(spec, 8, 3).parameters == counted


# ---- refusals -------------------------------------------------------------------------------------------------------

IMAGE = (6, 5, 2)

REFUSED: list[tuple[tuple[int, ...], list[Layer], str, str]] = [
    # input, layers, field, part of both messages
    (IMAGE, [FLATTEN, conv(2)], "model.layers.1", "needs an input [height, width, channels]"),
    (IMAGE, [conv(2), FLATTEN, conv(2)], "model.layers.2", "needs an input [height, width, channels]"),
    (IMAGE, [FLATTEN, dense(4), pool()], "model.layers.2", "needs an input [height, width, channels]"),
    (IMAGE, [conv(2), FLATTEN, pool()], "model.layers.2", "needs an input [height, width, channels]"),
    ((6, 5), [conv(2)], "model.layers.0", "needs an input [height, width, channels]"),
    ((6, 5), [pool()], "model.layers.0", "needs an input [height, width, channels]"),
    ((30,), [conv(2)], "model.layers.0", "needs an input [height, width, channels]"),
    ((2, 6, 5, 2), [conv(2)], "model.layers.0", "needs an input [height, width, channels]"),
    (IMAGE, [dense(4)], "model.layers.0", "dense needs a flat input"),
    (IMAGE, [conv(2), dense(4)], "model.layers.1", "dense needs a flat input"),
    (IMAGE, [pool(), dense(4)], "model.layers.1", "dense needs a flat input"),
    (IMAGE, [conv(2, (7, 1))], "model.layers.0", "fit"),
    (IMAGE, [conv(2, (1, 6))], "model.layers.0", "fit"),
    (IMAGE, [conv(2, 3, dilation=(1, 3))], "model.layers.0", "fit"),
    (IMAGE, [conv(2, (8, 1), padding=[[1, 0], [0, 0]])], "model.layers.0", "fit"),
    (IMAGE, [pool(3), pool(2)], "model.layers.1", "fit"),
    (IMAGE, [pool((2, 3), padding=[[0, 0], [0, 3]])], "model.layers.0.padding", "a window may not lie in the padding alone"),
    (IMAGE, [pool((2, 3), padding=[[2, 0], [0, 0]])], "model.layers.0.padding", "a window may not lie in the padding alone"),
    (IMAGE, [conv(0)], "model.layers.0.filters", "1"),
    (IMAGE, [conv(2, 0)], "model.layers.0.kernel", "1"),
    (IMAGE, [conv(2, stride=[1])], "model.layers.0.stride", "2"),
    (IMAGE, [conv(2, padding="full")], "model.layers.0.padding", "valid"),
    (IMAGE, [conv(2, dilation=0)], "model.layers.0.dilation", "1"),
    (IMAGE, [conv(2) | {"kernel": "x"}], "model.layers.0.kernel", ""),
    (IMAGE, [conv(2, group=2)], "model.layers.0.group", "filters"),
    (IMAGE, [conv(2, groups=0)], "model.layers.0.groups", "1"),
    (IMAGE, [conv(3, groups=2)], "model.layers.0.groups", "must share 2 channels and 3 filters alike"),
    (IMAGE, [conv(3, groups=3)], "model.layers.0.groups", "must share 2 channels and 3 filters alike"),
    ((6, 2), [conv1d(2, 7)], "model.layers.0", "fit"),
    ((6, 2), [conv1d(2, 3, dilation=3)], "model.layers.0", "fit"),
    ((6, 2), [conv1d(3, groups=2)], "model.layers.0.groups", "must share 2 channels and 3 filters alike"),
    ((6, 2), [conv1d(2, padding=[1])], "model.layers.0.padding", "2"),
    ((6, 2), [conv1d(2) | {"kernel": [1, 3]}], "model.layers.0.kernel", "integer"),
    ((6,), [conv1d(2)], "model.layers.0", "needs an input [length, channels]"),
    (IMAGE, [conv1d(2)], "model.layers.0", "needs an input [length, channels]"),
    ((6, 2), [transpose(2)], "model.layers.0", "needs an input [height, width, channels]"),
    (IMAGE, [transpose(2, padding=[[4, 4], [0, 0]])], "model.layers.0.padding", "leaves nothing of the 8 rows that the windows touch"),
    (IMAGE, [transpose(2, stride=2, padding=[[0, 0], [0, 11]])], "model.layers.0.padding", "leaves nothing of the 11 columns that the windows touch"),
    (IMAGE, [transpose(2, groups=2)], "model.layers.0.groups", "filters"),
    (IMAGE, [pool(2, dilation=2)], "model.layers.0.dilation", "size"),
    (IMAGE, [pool(2, padding=[[-1, 0], [0, 0]])], "model.layers.0.padding", ""),
    # normalization
    (IMAGE, [conv(6), {"type": "group_norm", "groups": 4}], "model.layers.1.groups", "4 groups can't share 6 channels evenly"),
    (IMAGE, [conv(6), {"type": "group_norm", "groups": 0}], "model.layers.1.groups", "1"),
    (IMAGE, [conv(6), {"type": "group_norm"}], "model.layers.1.groups", ""),
    (IMAGE, [{"type": "layer_norm", "eps": 0}], "model.layers.0.eps", "1e-12"),
    (IMAGE, [{"type": "batch_norm", "momentum": 1.5}], "model.layers.0.momentum", "1"),
    (IMAGE, [{"type": "layer_norm", "momentum": 0.1}], "model.layers.0.momentum", "eps"),
    # graphs
    (IMAGE, [conv(2), conv(2, inputs=["conv2d_3"])], "model.layers.1.inputs.0", "is no earlier layer"),
    (IMAGE, [conv(2, name="a", inputs=["a"])], "model.layers.0.inputs.0", "is no earlier layer"),
    (IMAGE, [conv(2), conv(2, inputs=[])], "model.layers.1.inputs", "1"),
    (IMAGE, [conv(2), conv(2, inputs="conv2d_1")], "model.layers.1.inputs", ""),
    (IMAGE, [conv(2), conv(2, inputs=["conv2d_1", "input"])], "model.layers.1.inputs", "reads 1"),
    (IMAGE, [conv(2), {"type": "add"}], "model.layers.1.inputs", "at least 2"),
    (IMAGE, [conv(2), conv(2, inputs=["input"])], "model.layers.0", "no layer reads"),
    (IMAGE, [conv(2, name="loss")], "model.layers.0.name", "is the name of something else"),
    (IMAGE, [conv(2), add("input", "conv2d_1")], "model.layers.1.inputs.1", "needs inputs of one shape"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "layers", "field", "message"), REFUSED)
def test_what_does_not_fit_is_refused(shape: tuple[int, ...], layers: list[Layer], field: str, message: str):
    """Python and the page name the same layer and say why."""
    raw = plain(cnn(shape, [*layers, *([] if layers[-1]["type"] == "dense" else [FLATTEN]), dense(3)]))
    error = infer(raw)["error"]
    with pytest.raises(Invalid) as caught:
        parse_spec(raw)
    fault = caught.value.faults[0]
    assert (error["name"], error["code"]) == ("EngineError", "spec_invalid")
    assert error["field"].startswith(field)
    assert fault.field.startswith(field)
    assert message in error["message"]
    assert message in f"{fault.message} {fault.legal}"


def test_what_a_window_may_do():
    """Padding as large as the window is legal for convolution, one less for pooling; `same` always fits."""
    layers = [
        conv(2, (2, 3), padding=[[2, 2], [3, 3]]), pool((2, 3), padding=[[1, 1], [2, 2]]), pool(9, stride=1, padding="same"),
    ]  # fmt: skip
    raw = plain(cnn((4, 4, 1), [*layers, FLATTEN, dense(3)]))
    found = infer_network((4, 4, 1), parse_spec(raw).model.layers).layers
    assert [layer.output for layer in found] == [(7, 8, 2), (4, 4, 2), (4, 4, 2), (3,)]
    assert infer(raw)["outputs"] == [list(layer.output) for layer in found]


@pytest.mark.parametrize(
    ("layer", "size"),
    [
        # TensorFlow: length * stride, and with valid padding what the last window has beyond its stride
        (transpose(2, 3, stride=2, padding="same"), (6, 8)),
        (transpose(2, 3, stride=2), (7, 9)),
        (transpose(2, 2, stride=(1, 3)), (4, 12)),
        (transpose(2, (4, 1), dilation=2, stride=2), (11, 8)),
        # PyTorch: (length - 1) * stride - padding + dilation * (kernel - 1) + 1
        (transpose(2, 3, stride=2, padding=[[1, 1], [1, 0]]), (5, 8)),
        (transpose(2, 2, stride=3, padding=[[0, 0], [0, 0]]), (8, 11)),
    ],
)
def test_sizes_of_transposed_convolutions(layer: Layer, size: tuple[int, int]):
    """Of 3 x 4 pixels, by hand; a convolution with the same window on what comes out has 3 x 4 places again."""
    raw = plain(cnn((3, 4, 5), [layer, layer | {"type": "conv2d"}, FLATTEN, dense(1)]))
    found = [layer.output for layer in infer_network((3, 4, 5), parse_spec(raw).model.layers).layers]
    assert found[:2] == [(*size, 2), (3, 4, 2)]
    assert infer(raw)["outputs"][:2] == [[*size, 2], [3, 4, 2]]


# ---- counted by hand ------------------------------------------------------------------------------------------------


def test_estimate_counts_by_hand():
    """Convolution (3 x 3 x 1 + 1) 2 at 4 x 4 places, dense (2 x 2 x 2 + 1) 3; a batch of 5."""
    made = estimated(parse_spec(cnn((6, 6, 1), [conv(2), pool(), FLATTEN, dense(3)], batch_size=5)), 20, 3)
    assert made.parameters == 20 + 27
    # Forward and dW of both, dX of the dense layer alone.
    assert made.flops_per_step == 2 * 5 * (2 * 20 * 16 + 3 * 27)


def test_a_pooled_input_needs_no_gradient():
    """The first convolution behind a pooling of the data has no dX either: nothing before it learns."""
    layers = [pool(), conv(2, 2), conv(4, 2), FLATTEN, dense(3)]
    made = estimated(parse_spec(cnn((6, 6, 1), layers, batch_size=5)), 20, 3)
    first, second, last = 10 * 4, 36 * 1, 15
    assert made.flops_per_step == 2 * 5 * (2 * first + 3 * second + 3 * last)
    groups = call("/tests/unit/plan_probe.js", "groups", cnn((6, 6, 1), layers), "values")["train"]
    assert [kernel for kernel, *_ in groups].count("conv2d_grad_input") == 1

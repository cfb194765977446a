"""Embeddings: what the service says of data and specs that one can't look up, and what it counts."""

from __future__ import annotations

from typing import Any

import pytest

from texelgrad.errors import Invalid
from texelgrad.shapes import ArrayInfo, Stats, data_faults, estimate
from texelgrad.spec import parse_spec

from ..kernels.cnns import FLATTEN, Layer, Shape, add, cnn, conv, conv1d, dense, embedding
from .test_network import infer, plain

NET: list[Layer] = [embedding(10, 6), conv1d(4), FLATTEN, dense(1)]


def faults(least: float, most: float, *, whole: bool) -> list[tuple[str, Any, str | None]]:
    """What is wrong with inputs from `least` to `most`."""
    spec = parse_spec(plain(cnn((8,), NET)))
    x = ArrayInfo("float32", (20, 8), Stats(least, most, integral=whole, row_sums_one=False))
    y = ArrayInfo("float32", (20,), Stats(0, 1, integral=False, row_sums_one=False))
    return [(fault.field, fault.value, fault.legal) for fault in data_faults(dict(spec), {"x": x, "y": y})]


def test_numbers_that_are_not_there():
    """Below 0, not whole, past the last row: the field, the value, what is legal."""
    assert faults(0, 9, whole=True) == []
    assert faults(0, 9, whole=False) == [("data", None, "0 to 9")]
    assert faults(-1, 9, whole=True) == [("data", -1, "0 to 9")]
    assert faults(0, 10, whole=True) == [("model.layers.0.vocabulary", 10, "at least 11")]


REFUSED: list[tuple[Shape, list[Layer], str, str]] = [
    ((8, 2), NET, "model.layers.0", "needs an input [length]"),
    ((4, 4, 1), [FLATTEN, embedding(10, 6), FLATTEN, dense(1), conv(1, 1, inputs=["input"]), FLATTEN, dense(1), add("dense_1", "dense_2"), dense(1)], "model.layers.1", "needs an input [length]"),
    ((8,), [dense(8), embedding(10, 6), FLATTEN, dense(1)], "model.layers.1", "which only an input of the model holds"),
    ((8,), [embedding(0, 6), FLATTEN, dense(1)], "model.layers.0.vocabulary", "1"),
    ((8,), [embedding(2**24 + 1, 6), FLATTEN, dense(1)], "model.layers.0.vocabulary", "16777216"),
    ((8,), [embedding(10, 0), FLATTEN, dense(1)], "model.layers.0.units", "1"),
    ((8,), [embedding(10, 6, activation="relu"), FLATTEN, dense(1)], "model.layers.0.activation", "vocabulary"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "layers", "field", "message"), REFUSED)
def test_what_does_not_fit_is_refused(shape: Shape, layers: list[Layer], field: str, message: str):
    """Python and the page name the same field and say why."""
    raw = plain(cnn(shape, layers))
    error = infer(raw)["error"]
    with pytest.raises(Invalid) as caught:
        parse_spec(raw)
    fault = caught.value.faults[0]
    assert error["field"] == fault.field == field
    assert message in error["message"]
    assert message in f"{fault.message} {fault.legal}"


def test_numbers_are_not_normalised():
    """They would be others then."""
    raw = plain(cnn((8,), NET)) | {"data": {"normalize": "standard"}}
    with pytest.raises(Invalid) as caught:
        parse_spec(raw)
    assert [fault.field for fault in caught.value.faults] == ["data.normalize"]
    assert infer(raw)["error"]["field"] == "data.normalize"


def test_a_flattened_input_is_looked_up():
    """A table of numbers, row by row."""
    raw = plain(cnn((2, 4), [FLATTEN, embedding(10, 6), FLATTEN, dense(1)]))
    parse_spec(raw)
    assert infer(raw)["outputs"] == [[8, 6], [1]]


def test_a_lookup_multiplies_nothing():
    """60 parameters and no products; the convolution behind it has a gradient with respect to its input."""
    spec = parse_spec(plain(cnn((8,), NET, batch_size=5)))
    x, y = (ArrayInfo("float32", shape, Stats(0, 1, True, False)) for shape in ((20, 8), (20,)))
    made = estimate(spec, {"x": x, "y": y})
    conv_weights, dense_weights = 3 * 6 * 4 + 4, 6 * 4 + 1
    assert made.parameters == 60 + conv_weights + dense_weights
    assert made.flops_per_step == 2 * 5 * 3 * (conv_weights * 6 + dense_weights)

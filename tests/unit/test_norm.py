"""Normalization layers in the spec: what their defaults are, and batches of which there is no variance."""

from __future__ import annotations

from typing import Any

import pytest

from texelgrad.network import infer_network
from texelgrad.shapes import ArrayInfo, Stats, data_faults, estimate
from texelgrad.spec import parse_spec

from ..kernels.cnns import FLATTEN, Layer, cnn, dense
from ..node import call

STATS = Stats(0, 1, integral=False, row_sums_one=False)


def test_defaults():
    """As PyTorch's; the page fills in the same."""
    layers: list[Layer] = [
        {"type": "batch_norm"},
        {"type": "layer_norm"},
        {"type": "group_norm", "groups": 2},
    ]
    raw = cnn((4,), [*layers, dense(2)])
    filled = parse_spec(raw).model_dump(mode="json")["model"]["layers"][:3]
    common = {"inputs": None, "activation": "linear", "eps": 1e-5, "trainable": True, "lr_multiplier": 1.0}
    assert filled == [
        {"name": "batch_norm_1", "type": "batch_norm", "momentum": 0.1, **common},
        {"name": "layer_norm_1", "type": "layer_norm", **common},
        {"name": "group_norm_1", "type": "group_norm", "groups": 2, **common},
    ]
    page = call("/browser_runtime/nn/spec.js", "validateSpec", raw)["model"]["layers"][:3]
    assert page == filled


def test_counted_by_hand():
    """gamma and beta are trained, running statistics are not."""
    layers: list[Layer] = [{"type": "batch_norm"}, FLATTEN, dense(2, use_bias=False)]
    spec = parse_spec(cnn((3, 2, 4), layers))
    x, y = ArrayInfo("float32", (8, 3, 2, 4), STATS), ArrayInfo("float32", (8, 2), STATS)
    assert estimate(spec, {"x": x, "y": y}).parameters == 4 + 4 + 24 * 2
    assert [shape.output for shape in infer_network((3, 2, 4), spec.model.layers).layers] == [(3, 2, 4), (2,)]


ROWS_AND_BATCHES = [
    (1, None),
    (2, None),
    (33, 16),
    (34, 16),
    (33, 33),
    (33, 32),
    (5, 1),
    (5, 2),
    (6, 2),
    (33, None),
]
NETS: dict[str, tuple[tuple[int, ...], list[Layer], bool]] = {
    # input, layers, whether a batch of one row has a variance
    "rows": ((4,), [{"type": "batch_norm"}, dense(2)], False),
    "one pixel": ((1, 1, 4), [{"type": "batch_norm"}, FLATTEN, dense(2)], False),
    "two pixels": ((1, 2, 4), [{"type": "batch_norm"}, FLATTEN, dense(2)], True),
    "frozen": ((4,), [dense(3), {"type": "batch_norm", "trainable": False}, dense(2)], True),
    "both": ((1, 2, 4), [{"type": "batch_norm"}, FLATTEN, dense(3), {"type": "batch_norm"}, dense(2)], False),
    "layer": ((4,), [{"type": "layer_norm"}, dense(2)], True),
}


@pytest.mark.parametrize(("rows", "batch"), ROWS_AND_BATCHES)
@pytest.mark.parametrize("net", NETS)
def test_a_batch_of_one_value_has_no_variance(net: str, rows: int, batch: int | None):
    """Also the last of an epoch; the page refuses the same field."""
    shape, layers, legal = NETS[net]
    spec = parse_spec(cnn(shape, layers, batch_size=batch, steps=3))
    shapes = {"x": (rows, *shape), "y": (rows, 2)}
    found = list(
        data_faults(dict(spec), {name: ArrayInfo("float32", of, STATS) for name, of in shapes.items()})
    )
    page: dict[str, Any] = call(
        "/tests/unit/plan_probe.js", "tryEstimate", spec.model_dump(), {name: {"shape": list(of)} for name, of in shapes.items()}
    )  # fmt: skip
    if legal or rows % (batch or rows) != 1 % (batch or rows):
        assert not found
        assert "estimate" in page, page
        return
    (fault,) = found
    assert fault.field == page["error"]["field"] == "train.batch_size"
    assert page["error"]["code"] == "spec_invalid"
    assert "leaves a batch of 1 of the" in fault.message
    assert "leaves a batch of 1 of the" in page["error"]["message"]
    assert fault.legal == ("one that leaves at least 2 rows" if rows > 1 else "at least 2 training rows")

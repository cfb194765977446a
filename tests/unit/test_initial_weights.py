"""What files of weights must hold: the same names and shapes as the page's, for every type of layer."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from texelgrad.initial_weights import fit_faults, tensors_of
from texelgrad.spec import Model, parse_spec

from ..kernels.cnns import FLATTEN, add, cnn, conv, conv1d, dense, pool, transpose
from ..node import call

NETS: dict[str, dict[str, Any]] = {
    "dense": cnn((7,), [dense(5, "relu", use_bias=False), dense(3)]),
    "convolution": cnn((9, 8, 6), [conv(4, (3, 2), groups=2), pool(), FLATTEN, dense(2)]),
    "residual": cnn((4, 4, 3), [conv(3, padding="same", name="c"), add("c", "input"), FLATTEN, dense(2)]),
    "one dimension": cnn((12, 3), [conv1d(5, 4), FLATTEN, dense(2)]),
    "normalized": cnn(
        (4, 4, 6),
        [
            conv(6),
            {"type": "batch_norm"},
            {"type": "group_norm", "groups": 2},
            {"type": "layer_norm"},
            FLATTEN,
            dense(2),
        ],
    ),
    "embedding": cnn((5,), [{"type": "embedding", "vocabulary": 9, "units": 3}, FLATTEN, dense(2)]),
    "transposed": cnn((3, 3, 2), [transpose(4, 3), FLATTEN, dense(2)]),
}


@pytest.mark.parametrize("name", NETS)
def test_tensors_are_those_of_the_page(name: str):
    """Names, order of axes, biases that there are and are not."""
    spec = json.loads(json.dumps(NETS[name]))
    model = parse_spec(spec).model
    outputs = math.prod(model.network.output)
    targets = [10] if spec["loss"] == "softmax_cross_entropy" else [10, outputs]
    theirs = call("/tests/unit/tensors_probe.js", "shapes", spec, [10, *model.input], targets)
    ours = {tensor: list(shape) for _, tensors in tensors_of(model) for tensor, shape in tensors.items()}
    assert ours == theirs


def test_faults_name_tensor_shape_and_legal():
    """Layers that are not asked for may be anything."""
    model = Model.model_validate(NETS["dense"]["model"])
    shapes = {"dense_1.kernel": (7, 4), "dense_2.kernel": (5, 3), "dense_2.bias": (3,)}
    assert list(fit_faults(model, shapes, ["dense_2"], "fine_tune")) == []
    (fault,) = fit_faults(model, shapes, None, "fine_tune")
    assert fault.message == "dense_1.kernel is [7, 4] in the file, [7, 5] in the model"
    (fault,) = fit_faults(model, shapes, ["dense_2", "dense_1"], "fine_tune")
    assert fault.field == "fine_tune.layers.1"

"""Targets of a regression: names of classes are refused, numbers far from 0 and 1 warned of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from texelgrad.datasets import normalise
from texelgrad.losses import LossName
from texelgrad.shapes import ArrayInfo, data_faults
from texelgrad.spec import parse_spec
from texelgrad.target_scale import scale_warnings
from texelgrad.why import WARNINGS


def infos(y: Any, classes: list[str] | None = None) -> dict[str, ArrayInfo]:
    """A data set with these targets."""
    made = normalise(np.zeros((len(y), 2)), np.array(y), classes=classes)
    return {array.name: array.info for array in made}


@pytest.mark.parametrize(
    ("y", "begins", "ends"),
    [
        ([100.0, 200.0], "y has mean 150 and standard deviation 50,", "train on (y - 150) / 50"),
        ([-40.0, -40.0], "y has mean -40 and standard deviation 0,", "train on y + 40"),
        ([-20.0, 20.0], "y has mean 0 and standard deviation 20,", "train on (y - 0) / 20"),
        ([[0.0, 1e6], [1.0, 3e6]], "y[:, 1] has mean 2e+06", "train on (y[:, 1] - 2e+06) / 1e+06"),
    ],
)
@pytest.mark.parametrize("loss", ["mse", "mae", "huber"])
def test_targets_far_from_0_and_1(loss: LossName, y: Any, begins: str, ends: str):
    """With the figures, what to do, and words for /why."""
    (warning,) = scale_warnings(loss, infos(y))
    assert warning["code"] in WARNINGS
    assert warning["message"].startswith(begins)
    assert warning["message"].endswith(ends)
    assert loss in warning["message"]


@pytest.mark.parametrize(
    ("loss", "y"),
    [("mse", [-9.0, 9.0]), ("mse", [[0.0, 1.0], [1.0, 0.0]]), ("softmax_cross_entropy", [0, 99])],
)
def test_other_targets(loss: LossName, y: Any):
    """Class numbers may be large, and small numbers are none of its business."""
    assert list(scale_warnings(loss, infos(y))) == []


@pytest.mark.parametrize("loss", ["mse", {"type": "huber"}, "softmax_cross_entropy"])
def test_names_of_classes_are_no_values(loss: Any):
    """Their numbers are those of the sorted names, so that a distance between them says nothing."""
    spec = parse_spec(
        {
            "model": {"input": [2], "layers": [{"type": "dense", "units": 2}]},
            "loss": loss,
            "optimizer": {"type": "adam"},
            "train": {"steps": 1},
        }
    )
    faults = list(data_faults(dict(spec), infos([0, 1], ["elm", "oak"])))
    if loss == "softmax_cross_entropy":
        assert faults == []
        return
    (fault,) = faults
    assert (fault.field, fault.value) == ("loss", loss if isinstance(loss, str) else "huber")
    assert "elm, oak" in fault.message
    assert "softmax_cross_entropy" in str(fault.legal)

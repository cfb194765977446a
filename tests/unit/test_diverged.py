"""A run that diverged: what its precision report can still compare, and what is said of where it broke."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .. import node

PROBE = "/tests/unit/diagnostics_probe.js"
NAN, INF = np.nan, np.inf
ERRORS = ("maxAbsoluteError", "maxRelativeError", "maxNormalizedError", "maxUlp")


def compare(got: list[float], wanted: list[float]) -> tuple[int, list[Any]]:
    """How many elements were compared, and the errors."""
    found = node.call(PROBE, "compare", np.array(got), np.array(wanted))
    assert found["elements"] == len(wanted)
    return found["compared"], [found[name] for name in ERRORS]


@pytest.mark.parametrize(
    ("got", "wanted", "compared", "errors"),
    [
        ([1.0, 2.0], [1.0, 2.0], 2, [0, 0, 0, 0]),
        ([NAN, NAN], [NAN, NAN], 0, [None] * 4),
        ([INF, -INF, NAN], [INF, -1e39, NAN], 0, [None] * 4),
        ([NAN, 2.5, INF], [NAN, 2.0, INF], 1, [0.5, 0.25, 0.25, 2.0**21]),
        ([3.0, 1.0], [NAN, 1.0], 0, [NAN] * 4),
        ([NAN, 1.0], [3.0, 1.0], 0, [NAN] * 4),
        ([1.0, INF], [1.0, 7.0], 1, [NAN] * 4),
        ([INF], [-INF], 0, [NAN] * 4),
        ([INF], [NAN], 0, [NAN] * 4),
    ],
)
def test_what_is_not_finite_on_both_sides_is_not_compared(
    got: list[float], wanted: list[float], compared: int, errors: list[Any]
):
    """It is neither an error nor 0: without a number to compare there is no error at all. One side alone is a wrong kind."""
    found = compare(got, wanted)
    assert found[0] == compared
    if None in errors:
        assert found[1] == errors
    else:
        np.testing.assert_array_equal(np.array(found[1], float), np.array(errors, float))


def divergence(step: int, before: Any = None, **spec: Any) -> dict[str, str]:
    """Of a run of 100 steps whose first loss that is not finite is at `step`."""
    optimizer = {"lr": 8, "schedule": {"type": "linear", "min_lr": 0, "warmup_steps": 4}}
    whole = {"optimizer": optimizer, "fine_tune": None, "data": {"normalize": "none"}, **spec}
    return node.call(PROBE, "divergence", whole, 100, {"step": step, "loss": NAN}, before)


def test_the_first_loss_owes_nothing_to_the_learning_rate():
    """It is made before any update: the data are at fault, or the weights that the run begins with."""
    said = divergence(1)
    assert said["field"] == "data.normalize"
    assert said["message"] == (
        "the loss is NaN at step 1, before any update: the data are too large; "
        "data.normalize may help, a smaller optimizer.lr can't"
    )
    assert "or the weights that it begins with" in divergence(1, fine_tune={"job": "job_1"})["message"]


@pytest.mark.parametrize("normalize", ["standard", "minmax"])
def test_normalisation_that_is_on_is_not_recommended(normalize: str):
    """Inputs that it was fitted to are not what is too large."""
    said = divergence(1, data={"normalize": normalize})
    assert said["field"] == "data"
    assert said["message"] == (
        f"the loss is NaN at step 1, before any update: with data.normalize: {normalize} it is the targets, "
        "or the weights that it begins with, that are too large; others may help, a smaller optimizer.lr can't"
    )
    tuned = divergence(1, data={"normalize": normalize}, fine_tune={"job": "job_1"})
    assert tuned["field"] == "fine_tune"


def test_normalisation_that_is_inherited_may_be_fitted_instead():
    """That of other data may not suit these."""
    said = divergence(1, data={"normalize": "inherit"}, fine_tune={"job": "job_1"})
    assert said["field"] == "data.normalize"
    assert "data.normalize: standard or minmax instead of inherit may help" in said["message"]


def test_a_later_loss_names_the_step_and_its_rate():
    """That of the update before it, as the schedule has it there."""
    said = divergence(3, {"step": 2, "loss": 6.92265e24})
    assert said["field"] == "optimizer.lr"
    assert said["message"] == (
        "the loss is NaN at step 3, after 6.92e+24 at step 2: training diverged; "
        "a smaller optimizer.lr (it was 4 at step 2) may help"
    )
    assert "(it was 8 at step 4) may help" in divergence(5)["message"]

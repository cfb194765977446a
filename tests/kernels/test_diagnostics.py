"""The precision report: what it says is true, and a wrong kernel shows in it."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from ..tolerances import (
    FIRST_LOSS_RTOL,
    OPERATOR_RIGHT,
    OPERATOR_WRONG,
    REFERENCE_RTOL,
    REPORTED_ERROR_ATOL,
    REPORTED_ERROR_RTOL,
)
from .harness import BrowserPage
from .nets import metrics
from .specs import LOSSES, OPTIMIZERS, Array, Spec, data_for, mlp, weights_for

PAGE = "/tests/kernels/refusals_page.js"
ENGINE = "/tests/kernels/engine_page.js"
SESSION = "/tests/kernels/session_page.js"


def report_of(page: BrowserPage, spec: Spec, rows: int = 50, **options: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:  # fmt: skip
    x, y = data_for(rows, spec["model"]["input"][0], spec["model"]["layers"][-1]["units"], spec["loss"])
    got = page.call(ENGINE, "runAndDiagnose", spec, x, y, options)
    return got["report"], got["history"]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_operators_and_first_losses(browser_page: BrowserPage, loss: str, optimizer: str):
    """Every kernel of the step is there, with errors of rounding; the first ten losses match float64."""
    spec = mlp((6, 9, 12), loss, optimizer=optimizer, activation="tanh", batch_size=16, steps=25)
    report, history = report_of(browser_page, spec)
    coverage = report["coverage"]
    assert coverage["operatorsChecked"] == coverage["operatorsTotal"] >= 5
    assert coverage["lossesChecked"] == 10
    assert coverage["weightsAtStep"] == 25
    names = {operator["name"] for operator in report["operators"]}
    assert {"dense_1.y", "d(dense_1.z)", "loss", "dense_1", "dense_2"} <= names
    ops = " + ".join(operator["op"] for operator in report["operators"])
    for op in (
        "affine",
        "activation",
        "loss",
        "loss_grad",
        "affine_grad_input",
        "affine_grad_weights",
        "update",
    ):
        assert op in ops
    for operator in report["operators"]:
        assert operator["elements"] > 0
        assert 0 <= operator["maxNormalizedError"] < OPERATOR_RIGHT, operator
        assert operator["maxAbsoluteError"] >= 0
        assert math.isfinite(operator["maxRelativeError"])
        assert math.isfinite(operator["maxUlp"])
    assert any(operator["maxUlp"] > 0 for operator in report["operators"]), "float32 rounds somewhere"
    assert [point["step"] for point in report["firstLosses"]] == list(range(1, 11))
    for point, seen in zip(report["firstLosses"], history, strict=False):
        assert point["loss"] == seen["loss"]
        assert point["relativeError"] < FIRST_LOSS_RTOL
        assert point["relativeError"] == pytest.approx(
            abs(point["loss"] / point["reference"] - 1), rel=REPORTED_ERROR_RTOL, abs=REPORTED_ERROR_ATOL
        )


def test_the_first_reference_loss_is_numpys(browser_page: BrowserPage):
    """The float64 run starts from the session's weights, on the first batch."""
    spec = mlp((6, 9, 12), "softmax_cross_entropy", steps=3)
    x, y = data_for(50, 6, 12, "softmax_cross_entropy")
    weights = weights_for((6, 9, 12))
    got = browser_page.call(ENGINE, "runAndDiagnose", spec, x, y, {"initialWeights": weights})
    reference = got["report"]["firstLosses"][0]["reference"]
    assert reference == pytest.approx(metrics(spec, weights, x, y)["loss"], rel=REFERENCE_RTOL)


def test_device_and_self_tests(browser_page: BrowserPage):
    """Renderer, limits, the proof of float32, the bit-exact round trip, the truth table of NaN and infinities."""
    spec = mlp((3, 4, 2), "mse", steps=3)
    report, _ = report_of(browser_page, spec)
    assert report["version"] == 1
    assert report["level"] == "basic"
    device = report["device"]
    assert device["renderer"]
    assert device["vendor"]
    assert "Chrome" in device["userAgent"]
    assert "EXT_color_buffer_float" in device["extensions"]
    assert device["limits"]["maxTextureSize"] >= 2048
    assert device["limits"]["float32RenderTargets"] >= 4
    assert report["float32"]["renderable"] is True
    third = report["float32"]["proof"]["read"][0]
    assert abs(third - np.float32(1 / 3)) <= 2.0**-25
    assert report["readback"] == {"exact": True, "count": 4096, "mismatches": 0}
    table = {row["expression"]: row for row in report["nonfinite"]}
    assert len(table) >= 20
    assert all(row["ok"] for row in table.values() if row["used"]), "what our kernels rely on holds"
    assert table["tg_relu(nan)"]["got"] == "NaN"
    assert table["tg_relu_grad(zero, nan)"]["got"] == "0"
    assert table["inf - infinity"]["got"] == "NaN"
    json.dumps(report, allow_nan=False)  # it is stored as JSON


PLANTED: list[tuple[str, str, str, str]] = [
    # file, what stands there, what is planted, the op in whose report it must show
    ("affine.frag.glsl", "total[i] += part[i];", "total[i] += 1.001 * part[i];", "affine"),
    ("affine.frag.glsl", "total[i] += bias;", "total[i] += .9 * bias;", "affine"),
    ("lib/activation.glsl", "CURVE(x.x)", "CURVE(.99 * x.x)", "activation"),
    ("lib/activation.glsl", "gradient * ((1. - of) * (1. + of))", "gradient * (1. - of)", "activation_grad"),
    ("lib/softmax.glsl", "weight * tg_log1p(rest) + toward", "weight * tg_log1p(rest) + 1.01 * toward", "loss"),
    ("affine_grad_input.frag.glsl", "dot(d, w0), dot(d, w1)", "dot(d, w1), dot(d, w1)", "affine_grad_input"),
    ("affine_grad_weights.frag.glsl", "group == BIAS_GROUP ? 1. : x", "group == BIAS_GROUP ? -1. : x", "affine_grad_weights"),
    ("lib/optimizer.glsl", "v += uOneMinusBeta2 *", "v += .9 * uOneMinusBeta2 *", "update"),
    ("lib/optimizer.glsl", "change = uRate * (m /", "change = 1.1 * uRate * (m /", "update"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "op"), PLANTED)
def test_a_planted_error_shows(browser_page: BrowserPage, file: str, old: str, new: str, op: str):
    """A kernel with a wrong formula is found by the report, in the op that it computes, and by the first losses."""
    spec = mlp(
        (6, 9, 12), "softmax_cross_entropy", optimizer="adam", activation="tanh", batch_size=16, steps=10
    )
    x, y = data_for(50, 6, 12, "softmax_cross_entropy")
    edits = [{"file": file, "from": old, "to": new}]
    report = browser_page.call(PAGE, "withEditedShaders", spec, x, y, edits)["report"]
    wrong = [operator for operator in report["operators"] if operator["maxNormalizedError"] > OPERATOR_WRONG]
    assert wrong, "the report did not notice"
    assert all(op in operator["op"].split(" + ") for operator in wrong), wrong
    assert max(point["relativeError"] for point in report["firstLosses"]) > 100 * FIRST_LOSS_RTOL


def test_planted_nan_shows(browser_page: BrowserPage):
    """A relu that hides NaN fails the truth table, in a row that is marked as used."""
    edits = [
        {"file": "lib/math.glsl", "from": "return tg_below(x, 0u) ? 0. : x;", "to": "return x > 0. ? x : 0.;"}
    ]
    x, y = data_for(9, 3, 2, "mse")
    report = browser_page.call(PAGE, "withEditedShaders", mlp((3, 4, 2), "mse", steps=3), x, y, edits)[
        "report"
    ]
    failed = [row for row in report["nonfinite"] if row["used"] and not row["ok"]]
    assert [row["expression"] for row in failed] == ["tg_relu(nan)"]


def test_the_budget_is_kept(browser_page: BrowserPage):
    """Of a net that is too large for `basic`, the report covers a part and says which."""
    spec = mlp((500, 400, 300, 10), "softmax_cross_entropy", steps=2, batch_size=128)
    report, _ = report_of(browser_page, spec, rows=256)
    coverage = report["coverage"]
    assert 0 < coverage["operatorsChecked"] < coverage["operatorsTotal"]
    assert len({operator["name"] for operator in report["operators"]}) >= coverage["operatorsChecked"]
    assert coverage["lossesChecked"] == len(report["firstLosses"]) < 2
    x, y = data_for(256, 500, 10, "softmax_cross_entropy")
    full = play(browser_page, spec, x, y, ("run", {}), ("diagnose", "full"))["results"][1]
    assert full["level"] == "full"
    assert full["coverage"]["operatorsChecked"] == full["coverage"]["operatorsTotal"]
    assert full["coverage"]["lossesChecked"] == 2


def play(page: BrowserPage, spec: Spec, x: Array, y: Array, *calls: Any) -> dict[str, Any]:
    return page.call(SESSION, "play", spec, x, y, calls)


def test_the_report_disturbs_nothing(browser_page: BrowserPage):
    """The bytes at the end are the same with and without a report in the middle of an epoch."""
    spec = mlp((6, 9, 12), "softmax_cross_entropy", optimizer="adam", batch_size=16, steps=30)
    x, y = data_for(50, 6, 12, "softmax_cross_entropy")
    plain = play(browser_page, spec, x, y, ("run", {}), ("weightsFile",))
    asked = play(
        browser_page, spec, x, y, ("run", {"steps": 10}), ("diagnose", "full"), ("run", {}), ("weightsFile",)
    )
    assert asked["results"][-1].tobytes() == plain["results"][-1].tobytes()
    assert asked["history"] == plain["history"]


@pytest.mark.parametrize("train", [{}, {"shuffle": False}, {"accumulate_steps": 2}])
def test_the_report_of_a_resumed_run(browser_page: BrowserPage, train: dict[str, Any]):
    """It is made before the first step after the resume, of every operator, with the weights of there; no bit changes."""
    spec = mlp((6, 9, 12), "softmax_cross_entropy", optimizer="adam", batch_size=16, steps=30)
    spec["train"] |= train
    x, y = data_for(50, 6, 12, "softmax_cross_entropy")
    whole = play(
        browser_page, spec, x, y, ("run", {"steps": 17}), ("checkpoint",), ("run", {}), ("weightsFile",)
    )
    calls = ("restore", whole["results"][1]), ("diagnose",), ("run", {}), ("weightsFile",)
    resumed = play(browser_page, spec, x, y, *calls)
    report = resumed["results"][1]
    coverage = report["coverage"]
    assert coverage["operatorsChecked"] == coverage["operatorsTotal"] >= 5
    assert (coverage["weightsAtStep"], report["firstLosses"]) == (17, [])
    assert all(operator["maxNormalizedError"] < OPERATOR_RIGHT for operator in report["operators"])
    assert resumed["results"][-1].tobytes() == whole["results"][-1].tobytes()
    assert resumed["history"] == [point for point in whole["history"] if point["step"] > 17]


def test_losses_are_compared_with_the_weights_that_made_them(browser_page: BrowserPage):
    """After setWeights the reference starts there; after a resume in the middle no loss is compared with another run's."""
    spec = mlp((6, 9, 12), "softmax_cross_entropy", steps=30)
    x, y = data_for(50, 6, 12, "softmax_cross_entropy")
    weights = weights_for((6, 9, 12))
    start = play(browser_page, spec, x, y, ("setWeights", weights), ("run", {}), ("diagnose",))["results"][-1]
    assert len(start["firstLosses"]) == 10
    assert max(point["relativeError"] for point in start["firstLosses"]) < FIRST_LOSS_RTOL
    checkpoint = play(browser_page, spec, x, y, ("run", {"steps": 4}), ("checkpoint",))["results"][-1]
    resumed = play(browser_page, spec, x, y, ("restore", checkpoint), ("run", {}), ("diagnose",))["results"][
        -1
    ]
    assert resumed["firstLosses"] == []
    changed = play(
        browser_page, spec, x, y, ("run", {"steps": 4}), ("setWeights", weights), ("run", {}), ("diagnose",)
    )
    assert changed["results"][-1]["firstLosses"] == []

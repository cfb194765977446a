"""Convolution as one product with what its windows hold (im2col), in sequences and sessions; test_conv_kernels.py has its windows."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors.numpy

from ..tolerances import OPERATOR_RIGHT, PREDICTION_RTOL
from .cnns import FLATTEN, cnn, conv, conv1d, dense, images_for, pool
from .harness import BrowserPage
from .test_conv_kernels import check

SESSION, ENGINE = "/tests/kernels/session_page.js", "/tests/kernels/engine_page.js"
REFUSALS = "/tests/kernels/refusals_page.js"


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 7])
def test_a_sequence(browser_page: BrowserPage, channels: int):
    """One dimension, any channels, gradients that are stored, without a bias."""
    layers = [conv1d(5, 3, stride=2, padding="same"), conv1d(3, 5, "tanh", use_bias=False)]
    kernels = check(
        browser_page, (21, channels), layers, 7, algorithm="im2col", clip={"global_norm": 0.5}, batch_size=4
    )
    assert kernels >= {
        "im2col.frag.glsl",
        "conv2d.frag.glsl",
        "conv2d_grad_weights.frag.glsl+sum_parts.frag.glsl",
    }


# ---- sessions -------------------------------------------------------------------------------------------------------

SPEC = cnn((9, 8, 1), [conv(8), pool(), conv(8), FLATTEN, dense(3)], "softmax_cross_entropy", optimizer="adam", steps=9, batch_size=8) | {
    "data": {"validation": {"fraction": 0.2}}
}  # fmt: skip
X, Y = images_for(SPEC, 41)


def test_the_planner_chooses_by_itself_and_says_so(browser_page: BrowserPage):
    """One channel: its windows are stored. Eight: they are not. One draw more than direct; planned bytes are allocated ones."""
    played = {
        name: browser_page.call(SESSION, "play", SPEC, X, Y, [("predict", X), ("evaluate",), ("run", {})], options)
        for name, options in (("chosen", {}), ("direct", {"device": {"convolution": "direct"}}))
    }  # fmt: skip
    records = {name: each["record"] for name, each in played.items()}
    algorithms = {
        name: [each["algorithm"] for each in record["convolutions"]] for name, record in records.items()
    }
    assert algorithms == {"chosen": ["im2col", "direct"], "direct": ["direct", "direct"]}
    assert [each["layer"] for each in records["chosen"]["convolutions"]] == ["conv2d_1", "conv2d_2"]
    assert records["chosen"]["drawsPerStep"] == records["direct"]["drawsPerStep"] + 1
    for record in records.values():
        assert record["plannedTextureBytes"] == record["peakTextureBytes"]
    # of the same weights the same numbers, but for the order of a sum
    (predicted, metrics, _), (wanted, others, _) = (each["results"] for each in played.values())
    np.testing.assert_allclose(predicted, wanted, rtol=0, atol=PREDICTION_RTOL * np.abs(wanted).max())
    assert metrics["loss"] == pytest.approx(others["loss"], rel=PREDICTION_RTOL)


def test_checkpoints_go_from_one_way_to_the_other(browser_page: BrowserPage):
    """The same tensors, bit for bit; only the same way goes on with the same bits, and the plan key tells."""
    ways = {"im2col": {"device": {"convolution": "im2col"}}, "direct": {"device": {"convolution": "direct"}}}
    first = browser_page.call(
        SESSION, "play", SPEC, X, Y, [("run", {"steps": 4}), ("checkpoint",), ("run", {}), ("weightsFile",)], ways["im2col"]
    )["results"]  # fmt: skip
    for name, options in ways.items():
        calls = [("restore", first[1]), ("checkpoint",), ("run", {}), ("weightsFile",)]
        restored, checkpoint, _, weights = browser_page.call(SESSION, "play", SPEC, X, Y, calls, options)[
            "results"
        ]
        assert (restored["step"], restored["bitExact"]) == (4, name == "im2col")
        before, after = (safetensors.numpy.load(file.tobytes()) for file in (first[1], checkpoint))
        assert {key: value.tobytes() for key, value in before.items()} == {key: value.tobytes() for key, value in after.items()}  # fmt: skip
        assert before["conv2d_1.kernel"].shape == (3, 3, 1, 8)
        assert (weights.tobytes() == first[3].tobytes()) is (name == "im2col")


def test_the_precision_report_has_the_patches(browser_page: BrowserPage):
    """Exact on the first batch; the products beside them as precise as any."""
    report = browser_page.call(ENGINE, "runAndDiagnose", SPEC, X, Y, {"device": {"convolution": "im2col"}})[
        "report"
    ]
    found = {each["name"]: each for each in report["operators"]}
    assert found["conv2d_1.patches"]["op"] == "im2col"
    assert found["conv2d_1.patches"]["maxAbsoluteError"] == 0
    assert report["coverage"]["operatorsChecked"] == report["coverage"]["operatorsTotal"]
    assert len(report["firstLosses"]) == 9


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("algorithm", ["im2col", "direct"])
def test_no_lane_reads_past_the_weights(browser_page: BrowserPage, algorithm: str, use_bias: bool):
    """Lanes past the last channel are dropped, but what they sum stands in the weights: with one channel each lane has its gradient."""
    layers = [conv(1, 1, "tanh"), conv(3, 2, use_bias=use_bias), FLATTEN, dense(3)]
    spec = cnn((5, 4, 1), layers, "softmax_cross_entropy", steps=3)
    edits = [
        {"file": "conv2d_grad_input.frag.glsl", "from": "SLOPED(total[i],", "to": "SLOPED(total[i].wwww,"}
    ]
    options = {"device": {"convolution": algorithm}}
    report = browser_page.call(REFUSALS, "withEditedShaders", spec, *images_for(spec, 8), edits, options)[
        "report"
    ]
    found = {each["op"]: each["maxNormalizedError"] for each in report["operators"]}
    assert found["conv2d_grad_input + activation_grad"] < OPERATOR_RIGHT, found

"""Convolution as one product with what its windows hold (im2col): the oracle, devices and windows of test_conv_kernels.py, and sessions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ..tolerances import OPERATOR_RIGHT, PREDICTION_RTOL
from .cnns import FLATTEN, Layer, Shape, cnn, conv, conv1d, dense, images_for, pool
from .harness import BrowserPage, PageError
from .specs import ACTIVATIONS, OPTIMIZERS
from .test_conv_kernels import WINDOWS, check, conv_nets
from .test_kernels import DEVICES, TARGETS_NEEDED, device_id, quick

SESSION, ENGINE = "/tests/kernels/session_page.js", "/tests/kernels/engine_page.js"
REFUSALS = "/tests/kernels/refusals_page.js"
IM2COL = {"convolution": "im2col"}
UPDATE = "conv2d_grad_weights.frag.glsl+update.frag.glsl"


def check_im2col(page: BrowserPage, shape: Shape, layers: list[Layer], rows: int = 5, *, device: dict[str, Any] | None = None, **net: Any) -> set[str]:  # fmt: skip
    """As check; every convolution takes patches."""
    kernels = check(page, shape, layers, rows, device=IM2COL | (device or {}), **net)
    assert kernels >= {"im2col.frag.glsl", "conv2d.frag.glsl", UPDATE}
    return kernels


@pytest.mark.parametrize(("activation", "optimizer"), [*zip(ACTIVATIONS, (*OPTIMIZERS, "adam"), strict=True)])
def test_activations_and_optimizers(browser_page: BrowserPage, activation: str, optimizer: str):
    """Before and behind a pooling, where a gradient goes back through it; a last short batch of 3 rows."""
    layers = [conv(5, activation=activation), pool(2), conv(6, 2, activation), conv(3, (1, 2), activation)]
    kernels = check_im2col(browser_page, (9, 8, 3), layers, 7, batch_size=4, batch=1, optimizer=optimizer)
    assert "conv2d_grad_input.frag.glsl" in kernels


@pytest.mark.parametrize(
    "device", [pytest.param(d, id=device_id(d), marks=() if quick(d) else pytest.mark.full) for d in DEVICES]
)
def test_devices(browser_page: BrowserPage, device: dict[str, Any]):
    """Both formats, both ways of fetching, 8 to 1 render targets, with the largest optimizer that fits."""
    layers = [conv(6, activation="tanh"), pool(2), conv(5, 2)]
    net: dict[str, Any] = {"batch_size": 8, "batch": 1, "device": device}
    fits = [name for name, needed in TARGETS_NEEDED.items() if needed <= device["maxDrawBuffers"]]
    if fits:
        check_im2col(browser_page, (7, 6, 3), layers, 13, optimizer=fits[-1], **net)
    else:
        with pytest.raises(PageError, match="render targets; the device has"):
            check_im2col(browser_page, (7, 6, 3), layers, 13, **net)


@pytest.mark.parametrize(("shape", "layer"), WINDOWS)
def test_windows(browser_page: BrowserPage, shape: Shape, layer: Layer):
    """Stride, dilation, `same` and uneven padding, odd channels, behind another layer; a last batch of one row."""
    kernels = check_im2col(
        browser_page, shape, [conv(shape[2], 1, "tanh"), layer], 6, batch_size=5, batch=1, optimizer="adam"
    )
    assert "conv2d_grad_input.frag.glsl" in kernels


@pytest.mark.full
@pytest.mark.parametrize("targets", [8, 4, 2])
@pytest.mark.parametrize(("shape", "layer"), WINDOWS)
def test_windows_on_the_data(browser_page: BrowserPage, shape: Shape, layer: Layer, targets: int):
    """As the first layer, with as many render targets; one row in all, and 19."""
    for rows in (1, 19):
        check_im2col(browser_page, shape, [layer], rows, device={"maxDrawBuffers": targets})


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 7])
def test_a_sequence(browser_page: BrowserPage, channels: int):
    """One dimension, any channels, gradients that are stored, without a bias."""
    layers = [conv1d(5, 3, stride=2, padding="same"), conv1d(3, 5, "tanh", use_bias=False)]
    kernels = check(
        browser_page, (21, channels), layers, 7, device=IM2COL, clip={"global_norm": 0.5}, batch_size=4
    )
    assert kernels >= {
        "im2col.frag.glsl",
        "conv2d.frag.glsl",
        "conv2d_grad_weights.frag.glsl+sum_parts.frag.glsl",
    }


@pytest.mark.full
@pytest.mark.timeout(1800)
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
@given(
    net=conv_nets(),
    rows=st.integers(1, 19),
    batch_size=st.integers(1, 19),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    device=st.sampled_from([device for device in DEVICES if device["maxDrawBuffers"] > 2]),
)
def test_any_conv_net(
    browser_page: BrowserPage, net: tuple[Shape, list[Layer]], rows: int, batch_size: int, optimizer: str, device: dict[str, Any]
):  # fmt: skip
    """Whatever the windows and channels."""
    check(
        browser_page,
        *net,
        rows,
        batch_size=min(rows, batch_size),
        optimizer=optimizer,
        device=device | IM2COL,
    )


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
    ways = {"im2col": {"device": IM2COL}, "direct": {"device": {"convolution": "direct"}}}
    first = browser_page.call(
        SESSION, "play", SPEC, X, Y, [("run", {"steps": 4}), ("checkpoint",), ("run", {}), ("weightsFile",)], ways["im2col"]
    )["results"]  # fmt: skip
    for name, options in ways.items():
        calls = [("restore", first[1]), ("checkpoint",), ("run", {}), ("weightsFile",)]
        restored, checkpoint, _, weights = browser_page.call(SESSION, "play", SPEC, X, Y, calls, options)[
            "results"
        ]
        assert restored == {"step": 4, "bitExact": name == "im2col"}
        before, after = (safetensors.numpy.load(file.tobytes()) for file in (first[1], checkpoint))
        assert {key: value.tobytes() for key, value in before.items()} == {key: value.tobytes() for key, value in after.items()}  # fmt: skip
        assert before["conv2d_1.kernel"].shape == (3, 3, 1, 8)
        assert (weights.tobytes() == first[3].tobytes()) is (name == "im2col")


def test_the_precision_report_has_the_patches(browser_page: BrowserPage):
    """Exact on the first batch; the products beside them as precise as any."""
    report = browser_page.call(ENGINE, "runAndDiagnose", SPEC, X, Y, {"device": IM2COL})["report"]
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

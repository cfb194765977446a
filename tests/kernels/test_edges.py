"""Where sessions could go wrong without a word: edited kernels, huge validations, calls during a run, misspelt options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ..tolerances import CONFIDENT_RTOL, RESUMMED_RTOL
from .harness import BrowserPage, PageError
from .specs import data_for, mlp

PAGE = "/tests/kernels/edges_page.js"
LOSS = "softmax_cross_entropy"
X, Y = data_for(83, 5, 3, LOSS)


def spec_for(steps: int = 6, **more: Any) -> dict[str, Any]:
    """A net of two layers in batches of 8."""
    return mlp((5, 7, 3), LOSS, optimizer="sgd", steps=steps, batch_size=8) | more


def test_an_edited_kernel_is_another_plan(browser_page: BrowserPage):
    """A checkpoint goes on bit for bit only where every program's text is the same."""
    file = "affine.frag.glsl"
    same = browser_page.call(PAGE, "restoreElsewhere", spec_for(), X, Y, file, None)
    edit = ["total[i] += part[i]", "total[i] += 1.5 * part[i]"]
    edited = browser_page.call(PAGE, "restoreElsewhere", spec_for(), X, Y, file, edit)
    assert (same["bitExact"], edited["bitExact"]) == (True, False)


def test_a_validation_may_span_several_chunks(browser_page: BrowserPage):
    """More validation rows than one read of the telemetry holds: the metrics are the same, and training goes on."""
    x, y = data_for(1200, 5, 3, LOSS)
    spec = spec_for(steps=120, data={"validation": {"fraction": 0.6}}, metrics=["accuracy"])
    parts = browser_page.call(PAGE, "validateInParts", spec, x, y)
    whole = browser_page.call("/tests/kernels/engine_page.js", "run", spec, x, y, {})["history"]
    assert [point["step"] for point in parts] == [point["step"] for point in whole]
    for got, wanted in zip(parts, whole, strict=True):
        if "loss" in wanted:
            assert got == wanted
        else:
            assert got["val_accuracy"] == wanted["val_accuracy"]
            # Summed in other parts.
            np.testing.assert_allclose(got["val_loss"], wanted["val_loss"], rtol=RESUMMED_RTOL)


@pytest.mark.parametrize(
    ("method", "argument"),
    [("restore", "checkpoint"), ("setWeights", "weights"), ("run", {}), ("diagnose", "basic")],
)
def test_what_changes_a_run_waits_for_its_end(browser_page: BrowserPage, method: str, argument: Any):
    """Refused as busy; the run is not disturbed."""
    got = browser_page.call(PAGE, "during", spec_for(steps=300), X, Y, method, argument)
    assert got == {"refused": "busy", "steps": list(range(1, 301))}


@pytest.mark.parametrize("steps", [2.5, -1, "3"])
def test_steps_are_whole(browser_page: BrowserPage, steps: Any):
    """A step that is half done could not be resumed."""
    with pytest.raises(PageError, match="steps: .* positive number of whole steps"):
        browser_page.call(
            "/tests/kernels/session_page.js", "play", spec_for(), X, Y, [["run", {"steps": steps}]], {}
        )


@pytest.mark.parametrize(
    ("options", "field", "legal"),
    [
        ({"allowSofware": False}, "options.allowSofware", "allowSoftware"),
        ({"thread": "wrker"}, "options.thread", "auto, worker, inline"),
        ({"device": {"format": "rgba16f"}}, "options.device.format", "rgba32f, rgba32ui"),
        (
            {"device": {"formats": 1}},
            "options.device.formats",
            "format, fetch, maxDrawBuffers, convolution, residentBytes, rows",
        ),
    ],
)
def test_unknown_options_are_refused(
    browser_page: BrowserPage, options: dict[str, Any], field: str, legal: str
):
    """A misspelt option is not silently none; the legal ones are listed."""
    with pytest.raises(PageError) as caught:
        browser_page.call(PAGE, "compile", spec_for(), X, Y, options)
    assert caught.value.properties["field"] == field
    assert legal in caught.value.message


def test_calls_leave_no_listeners(browser_page: BrowserPage):
    """One signal may serve a whole job."""
    assert browser_page.call(PAGE, "listenersLeft", spec_for(), X, Y) == 0


def test_padding_stays_zero_behind_infinite_weights(browser_page: BrowserPage):
    """0 * inf is NaN: it must not settle in lanes and rows that later sums read."""
    for optimizer in ("sgd", "adam"):
        spec = mlp((5, 7, 3), LOSS, optimizer=optimizer, steps=6, batch_size=8)
        spec |= {"numerics": {"on_nonfinite": "continue"}}
        for found in browser_page.call(PAGE, "paddingAfterInfinity", spec, X, Y, "dense_1.kernel"):
            assert found["stray"] == 0, found


@pytest.mark.parametrize(
    ("shapes", "field"),
    [
        ({"x": {"shape": [10, 7]}, "y": {"shape": [10]}}, "data.x"),
        ({"x": {"shape": [10, 5]}, "y": {"shape": [10, 9]}}, "data.y"),
        ({"x": {"shape": [10, 5]}}, "data.y"),
    ],
)
def test_estimates_check_shapes(browser_page: BrowserPage, shapes: Any, field: str):
    """As compile() does."""
    with pytest.raises(PageError) as caught:
        browser_page.call(PAGE, "estimated", spec_for(), shapes)
    assert caught.value.properties["field"] == field


@pytest.mark.parametrize(
    ("loss", "units"), [("bce", 1), ("softmax_cross_entropy", 3), ("softmax_cross_entropy", 40)]
)
def test_confident_rows_keep_their_loss(browser_page: BrowserPage, loss: str, units: int):
    """A loss of 1e-13 is not 0: nothing is subtracted from a rounded 1."""
    x = np.array([[1.0]], np.float32)
    spec = {
        "model": {"input": [1], "layers": [{"type": "dense", "units": units}]},
        "loss": loss,
        "optimizer": {"type": "sgd", "lr": 1.0},
        "train": {"steps": 1},
    }
    kernel = np.zeros((1, units), np.float32)
    kernel[0, 0] = 30.0
    weights = {"dense_1.kernel": kernel, "dense_1.bias": np.zeros(units, np.float32)}
    y = np.ones((1, 1), np.float32) if loss == "bce" else np.zeros(1, np.int32)
    got = browser_page.call("/tests/kernels/engine_page.js", "run", spec, x, y, {"initialWeights": weights})
    others = 1 if loss == "bce" else units - 1
    np.testing.assert_allclose(
        got["history"][0]["loss"], np.log1p(others * np.exp(-30.0)), rtol=CONFIDENT_RTOL
    )
    # The gradient of the bias: -exp(-30) for each other class, to the class itself.
    moved = got["weights"]["dense_1.bias"]
    values = moved["data"] if isinstance(moved, dict) else moved
    np.testing.assert_allclose(np.ravel(values)[0], others * np.exp(-30.0), rtol=CONFIDENT_RTOL)

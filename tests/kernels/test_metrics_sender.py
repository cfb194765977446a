"""Metric frames made in a real browser, read back by the runner's decoder; and when they are sent."""

from __future__ import annotations

import math
import struct
from typing import Any

from worker.port import Metrics

from .harness import BrowserPage

PROBE = "/tests/kernels/metrics_probe.js"
NAN, INF = math.nan, math.inf


def _decoded(frame: Any) -> tuple[Metrics, list[int], list[tuple[float, ...]]]:
    points = Metrics.decode(frame.tobytes())
    width = len(points.keys)
    values = struct.unpack(f"<{points.count * width}d", points.values)
    rows = [values[row * width : (row + 1) * width] for row in range(points.count)]
    return points, list(struct.unpack(f"<{points.count}I", points.steps)), rows


def test_validation_points_get_a_frame_of_their_own(browser_page: BrowserPage):
    """Losses of all steps in one frame, validation at its own steps in another, both with the progress so far."""
    points = [
        {"step": 1, "loss": 0.5},
        {"step": 2, "loss": 0.25, "val_loss": 0.75, "val_accuracy": 0.5},
        {"step": 3, "loss": 0.125},
    ]
    loss, validation = (_decoded(frame) for frame in browser_page.call(PROBE, "frames", points, 9))
    assert (loss[0].keys, loss[0].step, loss[0].total_steps) == (("loss",), 3, 9)
    assert loss[1:] == ([1, 2, 3], [(0.5,), (0.25,), (0.125,)])
    assert (validation[0].keys, validation[0].step) == (("val_loss", "val_accuracy"), 3)
    assert validation[1:] == ([2], [(0.75, 0.5)])


def test_what_is_measured_at_each_step_is_one_frame(browser_page: BrowserPage):
    """The norm of the gradient beside the loss."""
    points = [{"step": step, "loss": 0.5 / step, "gradient_norm": 2.0 * step} for step in (1, 2)]
    (frame,) = browser_page.call(PROBE, "frames", points, 2)
    measured, steps, rows = _decoded(frame)
    assert (measured.keys, steps, rows) == (("loss", "gradient_norm"), [1, 2], [(0.5, 2.0), (0.25, 4.0)])


def test_a_validation_point_without_a_loss(browser_page: BrowserPage):
    """A point may come after the step's loss has gone; the largest step fits."""
    (frame,) = browser_page.call(PROBE, "frames", [{"step": 2**31 - 1, "val_loss": 1.5}], 2**31 - 1)
    points, steps, rows = _decoded(frame)
    assert (points.keys, points.total_steps, steps, rows) == (("val_loss",), 2**31 - 1, [2**31 - 1], [(1.5,)])


def test_non_finite_values_are_sent_as_they_are(browser_page: BrowserPage):
    """NaN, both infinities and minus zero."""
    points = [{"step": step, "loss": loss} for step, loss in enumerate((NAN, INF, -INF, -0.0), start=1)]
    (frame,) = browser_page.call(PROBE, "frames", points, 4)
    values = [row[0] for row in _decoded(frame)[2]]
    assert math.isnan(values[0])
    assert values[1:3] == [INF, -INF]
    assert math.copysign(1, values[3]) == -1


def test_points_leave_in_order_a_few_times_a_second(browser_page: BrowserPage):
    """At most one frame in a quarter of a second, one at a time, and no point is missing."""
    result = browser_page.call(PROBE, "sending", 160, 20)
    steps = [step for sent in result["sent"] for step in _decoded(sent["frame"])[1]]
    assert steps == list(range(1, 161))
    assert result["mostUnderway"] == 1
    assert result["error"] is None
    assert result["last"] == {"loss": 160}
    times = [sent["atMs"] for sent in result["sent"]]
    # one at the start, one in each quarter of a second, one by flush
    assert 3 <= len(times) <= times[-1] / 250 + 2


def test_a_slow_transport_holds_nothing_up(browser_page: BrowserPage):
    """Points wait while a frame is under way; flush returns only when all have arrived."""
    result = browser_page.call(PROBE, "sending", 30, 400)
    assert result["mostUnderway"] == 1
    assert sum(len(_decoded(sent["frame"])[1]) for sent in result["sent"]) == 30


def test_a_failed_transport_fails_the_flush(browser_page: BrowserPage):
    """What was not taken is never reported as sent."""
    assert browser_page.call(PROBE, "sending", 60, 1, 2)["error"] == "transport failed"

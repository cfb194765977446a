"""The pipeline's chunks: about 80 ms of steps, so that telemetry comes a dozen times a second whatever a step takes."""

from __future__ import annotations

import pytest

from ..node import call

PROBE = "/tests/unit/pipeline_probe.js"


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ([[4, 16]], [16]),  # 4 ms a step, but one chunk is at most four times the last
        ([[4, 16], [16, 64]], [16, 20]),
        ([[4, 0], [16, 0]], [16, 64]),  # too fast to be timed
        ([[4, 4000]], [1]),  # a second a step
        ([[4, 320], [1, 80], [1, 80]], [1, 1, 1]),
        ([[0, 500]], [4]),  # validation only: says nothing of steps
    ],
)
def test_chunks_aim_at_80_ms(seen: list[list[float]], expected: list[int]):
    """From the steps of the last one and the time that they took."""
    assert call(PROBE, "chunks", seen) == expected


def test_each_chunk_is_timed_when_it_is_read():
    """Also those that are taken in together, behind a validation that may end the run: not all at once by the first."""
    adapted = call(PROBE, "trained", {"ms": 30, "chunks": 7})["adapted"]
    assert [steps for steps, _ in adapted] == [1] * 7
    assert min(ms for _, ms in adapted) >= 15


def test_what_a_device_failed_to_draw_is_no_divergence():
    """It is asked before its losses are blamed, however short ago it was asked last."""
    made = {"ms": 1, "chunks": 4, "broken": True}
    assert call(PROBE, "trained", made)["error"] == "non_finite_loss"
    assert call(PROBE, "trained", made | {"fails": True})["error"] == "gl_error"

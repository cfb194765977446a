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

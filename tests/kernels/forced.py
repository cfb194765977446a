"""What only GPUs do, forced on whatever renderer there is: checks of whole runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tolerances import FIRST_LOSS_RTOL, OPERATOR_RIGHT
from .harness import BrowserPage
from .specs import Array, Spec

PAGE = "/tests/kernels/engine_page.js"


def check_report(page: BrowserPage, spec: Spec, x: Array, y: Array, device: Spec) -> dict[str, Any]:
    """Every operator against the engine's own reference; returns the precision report."""
    report = page.call(PAGE, "runAndDiagnose", spec, x, y, {"device": device})["report"]
    assert report["coverage"]["operatorsChecked"] == report["coverage"]["operatorsTotal"]
    assert max(operator["maxNormalizedError"] for operator in report["operators"]) < OPERATOR_RIGHT
    assert max(loss["relativeError"] for loss in report["firstLosses"]) < FIRST_LOSS_RTOL
    return report


def check_bits(
    page: BrowserPage, spec: Spec, x: Array, y: Array, device: Spec, plain: Spec, *, differs: bool
) -> None:
    """Weights are the same in two runs, bit for bit, and as those of a plain one but for their rounding, which must show."""
    one, other, without = (
        page.call(PAGE, "run", spec, x, y, {"device": of})["weights"] for of in (device, device, plain)
    )
    for name, weights in one.items():
        assert np.array_equal(weights, other[name])
        np.testing.assert_allclose(weights, without[name], rtol=1e-4, atol=1e-5)
    assert any(not np.array_equal(weights, without[name]) for name, weights in one.items()) == differs

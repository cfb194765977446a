"""Examples on real data, trained in full as their specs stand, and judged in NumPy on rows that they never saw."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples.data import SETS
from texelgrad.rng import RandomStream, Stream

from ..tolerances import TRAINED_LOSS_RTOL
from .harness import BrowserPage
from .nets import metrics

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_digits_cnn(browser_page: BrowserPage):
    """At least 98.5 % of the held-out digits, counted from the downloaded weights."""
    spec = json.loads((EXAMPLES / "digits_cnn.json").read_text())
    x, y = SETS["digits_cnn"]().values()
    run = browser_page.call("/tests/kernels/engine_page.js", "run", spec, x, y, {}, timeout_s=300)
    rows = int(len(x) * spec["data"]["validation"]["fraction"])
    held_out = RandomStream(spec["train"]["seed"], Stream.SPLIT).permutation(len(x))[-rows:]
    wanted = metrics(spec, run["weights"], x[held_out], y[held_out])
    assert wanted["accuracy"] >= 0.985
    last = [point for point in run["history"] if "val_accuracy" in point][-1]
    assert last["val_accuracy"] == wanted["accuracy"]
    assert last["val_loss"] == pytest.approx(wanted["loss"], rel=TRAINED_LOSS_RTOL)

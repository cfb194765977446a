"""Examples on real data, trained in full as their specs stand, and judged in NumPy on rows that they never saw."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from texelgrad.rng import RandomStream, Stream

from ..tolerances import TRAINED_LOSS_RTOL
from .harness import BrowserPage
from .nets import metrics
from .specs import Array

EXAMPLES = Path(__file__).parents[2] / "examples"


def digits() -> tuple[Array, Array]:
    """scikit-learn's handwritten digits: images [1797, 8, 8, 1] in 0..1, classes [1797]."""
    x, y = load_digits(return_X_y=True)
    return (x.reshape(-1, 8, 8, 1) / 16).astype(np.float32), y.astype(np.int32)


def test_digits_cnn(browser_page: BrowserPage):
    """At least 98.5 % of the held-out digits, counted from the downloaded weights."""
    spec = json.loads((EXAMPLES / "digits_cnn.json").read_text())
    x, y = digits()
    run = browser_page.call("/tests/kernels/engine_page.js", "run", spec, x, y, {}, timeout_s=300)
    rows = int(len(x) * spec["data"]["validation"]["fraction"])
    held_out = RandomStream(spec["train"]["seed"], Stream.SPLIT).permutation(len(x))[-rows:]
    wanted = metrics(spec, run["weights"], x[held_out], y[held_out])
    assert wanted["accuracy"] >= 0.985
    last = [point for point in run["history"] if "val_accuracy" in point][-1]
    assert last["val_accuracy"] == wanted["accuracy"]
    assert last["val_loss"] == pytest.approx(wanted["loss"], rel=TRAINED_LOSS_RTOL)

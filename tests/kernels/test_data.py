"""Data in the engine: splits, normalisation, and sources that are read window by window, through the public module."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from texelgrad.normalize import normalized
from texelgrad.spec_data import Validation
from texelgrad.splits import split

from ..tolerances import FIRST_LOSS_RTOL, PREDICTION_RTOL
from .harness import BrowserPage, PageError
from .nets import forward, metrics
from .specs import Spec, data_for, mlp

SESSION = "/tests/kernels/session_page.js"
PAGE = "/tests/kernels/data_page.js"
LOSS = "softmax_cross_entropy"
X, Y = data_for(60, 5, 3, LOSS)
RAW = (X * [1, 10, 100, 0.01, 0] + [0, 5, -300, 2, 7]).astype(np.float32)  # the last column does not vary


def spec_for(**data: Any) -> Spec:
    """5 -> 9 -> 3, 20 steps of 10 rows."""
    return mlp((5, 9, 3), LOSS, steps=20, batch_size=10) | {"data": data}


@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_normalization(browser_page: BrowserPage, kind: str):
    """As if the rows had been normalised before; predict and evaluate take rows as they are, the weights say how."""
    spec = spec_for(normalize=kind, validation={"fraction": 0.3})
    calls = [("run", {}), ("weightsFile",), ("predict", RAW), ("evaluate", {"x": RAW, "y": Y}), ("evaluate",)]
    played = browser_page.call(SESSION, "play", spec, RAW, Y, calls)
    _, file, outputs, given, validated = played["results"]
    weights = safetensors.numpy.load(file.tobytes())
    ready = normalized(RAW, weights)
    record = played["record"]["normalization"]
    assert record["kind"] == kind
    assert weights["input.offset"].tolist() == record["offset"]
    assert weights["input.scale"].dtype == np.float64

    plain = spec_for(validation={"fraction": 0.3})
    again = browser_page.call(SESSION, "play", plain, ready, Y, [("run", {}), ("weightsFile",)])
    expected = safetensors.numpy.load(again["results"][1].tobytes())
    for name, tensor in expected.items():
        assert np.array_equal(weights[name], tensor), name
    assert again["record"]["normalization"] is None

    train, kept = split(Validation(fraction=0.3), 1, 60)
    rows = ready[train].astype(np.float64)
    if kind == "standard":
        assert np.abs(rows[:, :4].mean(axis=0)).max() < 1e-5
        assert np.abs(rows[:, :4].std(axis=0) - 1).max() < 1e-5
    else:
        assert rows.min() == 0
        assert rows[:, :4].max(axis=0).tolist() == [1, 1, 1, 1]
    wanted = forward(spec, weights, ready)
    np.testing.assert_allclose(outputs, wanted, rtol=0, atol=PREDICTION_RTOL * np.abs(wanted).max())
    assert given["loss"] == pytest.approx(metrics(spec, weights, ready, Y)["loss"], rel=PREDICTION_RTOL)
    held_out = metrics(spec, weights, ready[kept], Y[kept])
    assert validated == pytest.approx(held_out, rel=PREDICTION_RTOL)


@pytest.mark.parametrize(
    "validation", [{"fraction": 0.4, "stratify": True}, {"rows": [59, [3, 9], 0]}, {"fraction": 0.4}]
)
def test_splits(browser_page: BrowserPage, validation: Spec):
    """The engine validates on the rows that Python names, and trains on the others in their order."""
    spec = spec_for(validation=validation)
    played = browser_page.call(SESSION, "play", spec, X, Y, [("run", {}), ("getWeights",), ("evaluate",)])
    _, weights, validated = played["results"]
    train, kept = split(Validation(**validation), 1, 60, Y)
    assert validated == pytest.approx(metrics(spec, weights, X[kept], Y[kept]), rel=PREDICTION_RTOL)
    alone = browser_page.call(SESSION, "play", spec_for(), X[train], Y[train], [("run", {}), ("getWeights",)])
    for name, tensor in alone["results"][1].items():
        assert np.array_equal(weights[name], tensor), name


def test_every_kind_of_source_gives_the_same_run(browser_page: BrowserPage):
    """Several windows of rows, in memory, behind a callback or at an address: the same bits, and no whole array is posted."""
    rows, columns = 480_000, 9
    spec = mlp((columns, 3), LOSS, steps=12, batch_size=8000)
    spec["data"] = {"normalize": "standard", "validation": {"fraction": 0.01, "stratify": True}}
    found = {
        kind: browser_page.call(PAGE, "everything", spec, rows, columns, kind)
        for kind in ("memory", "view", "callback", "url")
    }
    first = found["memory"]
    assert len(first["losses"]) == 10
    assert max(first["losses"]) < FIRST_LOSS_RTOL
    for kind, each in found.items():
        assert each["weights"].tobytes() == first["weights"].tobytes(), kind
        assert each["evaluated"] == first["evaluated"]
        assert each["validated"] == first["validated"]
        assert each["normalization"] == first["normalization"]
        assert each["bytes"] <= 16 << 20, kind
    assert found["url"]["bytes"] < 1 << 20, "the engine's thread reads an address itself"


@pytest.mark.parametrize(
    ("address", "words"), [("/tests/kernels/page.html", "206"), ("/nothing-here", "404"), ("http://127.0.0.1:9/", "fetched")]
)  # fmt: skip
def test_addresses_that_give_no_rows(browser_page: BrowserPage, address: str, words: str):
    """A server that knows no ranges, or nothing at all, is named."""
    with pytest.raises(PageError, match=words) as caught:
        browser_page.call(PAGE, "unreadable", spec_for(), X, Y, address)
    assert address in caught.value.message

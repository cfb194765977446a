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
STREAMED = {"device": {"residentBytes": 0}}  # nothing may stay in textures, and the ring has two batches
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
    ways = [("memory", {}), ("view", {}), ("callback", {}), ("url", {}), ("url", STREAMED)]
    found = {
        (kind, bool(options)): browser_page.call(PAGE, "everything", spec, rows, columns, kind, options)
        for kind, options in ways
    }
    first = found["memory", False]
    for kind, each in found.items():
        assert len(each["losses"]) == 10
        assert max(each["losses"]) < FIRST_LOSS_RTOL, kind
        assert each["operators"] == first["operators"]
        assert each["weights"].tobytes() == first["weights"].tobytes(), kind
        assert each["evaluated"] == first["evaluated"]
        assert each["validated"] == first["validated"]
        assert each["normalization"] == first["normalization"]
        assert each["bytes"] <= 16 << 20, kind
    assert found["url", False]["bytes"] < 1 << 20, "the engine's thread reads an address itself"


@pytest.mark.parametrize(
    ("address", "words"), [("/tests/kernels/page.html", "206"), ("/nothing-here", "404"), ("http://127.0.0.1:9/", "fetched")]
)  # fmt: skip
def test_addresses_that_give_no_rows(browser_page: BrowserPage, address: str, words: str):
    """A server that knows no ranges, or nothing at all, is named."""
    with pytest.raises(PageError, match=words) as caught:
        browser_page.call(PAGE, "unreadable", spec_for(), X, Y, address)
    assert address in caught.value.message


@pytest.mark.parametrize(
    ("dtype", "held", "message"),
    [
        ("float64", 60, 'data.x: its dtype is "float64"; legal: float32, int32'),
        ("uint8", 60, 'data.x: its dtype is "uint8"; legal: float32, int32'),
        ("float32", 61, r"there are 1220 bytes; its shape \[60,5\] of float32 needs 1200"),
        ("float32", 59, r"there are 1180 bytes; its shape \[60,5\] of float32 needs 1200"),
    ],
)
def test_addresses_that_hold_something_else(browser_page: BrowserPage, dtype: str, held: int, message: str):
    """Bytes of another type, or of another number of rows, are never taken for the rows."""
    x = np.resize(X, (held, 5))
    with pytest.raises(PageError, match=message) as caught:
        browser_page.call(PAGE, "described", spec_for(), x, Y, {"dtype": dtype, "shape": [60, 5]})
    assert caught.value.properties["code"] == "data_invalid"


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("sizes", [(5, 9, 3), (40, 9, 3), (1, 4, 3)], ids=["folded", "plain", "narrow"])
def test_streamed_data_gives_the_same_bits(browser_page: BrowserPage, sizes: tuple[int, ...], shuffle: bool):
    """Batches that come through the ring, the last of an epoch short, are those of textures: weights, curve, evaluation."""
    x, y = data_for(61, sizes[0], 3, LOSS)
    spec = mlp(sizes, LOSS, optimizer="adam", steps=23, batch_size=10, shuffle=shuffle)
    spec["data"] = {"validation": {"fraction": 0.3}, "normalize": "standard"}
    calls: list[Any] = [
        ("run", {"steps": 7}),
        ("checkpoint",),
        ("run", {}),
        ("weightsFile",),
        ("evaluate",),
        ("diagnose", "basic"),
    ]
    resident, streamed = (
        browser_page.call(SESSION, "play", spec, x, y, calls, options) for options in ({}, STREAMED)
    )
    assert streamed["results"][3].tobytes() == resident["results"][3].tobytes()
    assert streamed["results"][4] == resident["results"][4]
    assert streamed["history"] == resident["history"]
    report = streamed["results"][5]
    assert report["coverage"]["operatorsChecked"] == report["coverage"]["operatorsTotal"]
    assert max(loss["relativeError"] for loss in report["firstLosses"]) < FIRST_LOSS_RTOL
    assert max(operator["maxNormalizedError"] for operator in report["operators"]) < 1e-5
    assert streamed["record"]["plannedTextureBytes"] == streamed["record"]["peakTextureBytes"]

    again = [("restore", resident["results"][1]), ("run", {}), ("weightsFile",)]
    resumed = browser_page.call(SESSION, "play", spec, x, y, again, STREAMED)
    assert resumed["results"][2].tobytes() == resident["results"][3].tobytes()


def test_one_batch_of_all_rows_is_streamed_too(browser_page: BrowserPage):
    """The ring holds it, and it is uploaded once."""
    spec = mlp((5, 3), LOSS, steps=5)
    calls = [("run", {}), ("weightsFile",)]
    resident, streamed = (
        browser_page.call(SESSION, "play", spec, X, Y, calls, options) for options in ({}, STREAMED)
    )
    assert streamed["results"][1].tobytes() == resident["results"][1].tobytes()

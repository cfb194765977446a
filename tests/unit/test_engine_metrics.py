"""The page's metrics against scikit-learn's, block by block as a validation pass gives them."""

# pyright: reportArgumentType=false
# (scikit-learn's annotations take zero_division for a text)

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from texelgrad.shapes import ArrayInfo, Stats, data_faults
from texelgrad.spec import parse_spec

from ..node import call
from ..tolerances import METRIC_ATOL, METRIC_RTOL

PROBE = "/tests/unit/metrics_engine_probe.js"
COUNTED = ("precision", "recall", "f1")
SCORES = {"precision": sk.precision_score, "recall": sk.recall_score, "f1": sk.f1_score}
Array = np.ndarray[Any, Any]


def measure(loss: str, metrics: list[Any], z: Array, y: Array, block: int = 7) -> dict[str, Any]:
    return call(PROBE, "measure", {"loss": loss, "metrics": metrics}, z.astype(np.float32), y, block)


def close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=METRIC_RTOL, atol=METRIC_ATOL)


def softmax(z: Array) -> Array:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(2, 60), st.integers(3, 7), st.integers(0, 2**31), st.integers(1, 70))
def test_classes(rows: int, classes: int, seed: int, block: int):
    """Softmax: counts over the classes that occur, a confusion matrix over all, one-vs-rest AUC over those that some but not all rows have."""
    random = np.random.default_rng(seed)
    z = random.normal(size=(rows, classes)).astype(np.float32).astype(np.float64)
    y = random.integers(0, classes, rows).astype(np.int32)
    asked = [*COUNTED, "auc", "confusion_matrix", {"type": "top_k_accuracy", "k": 2}]
    got = measure("softmax_cross_entropy", asked, z, y, block)
    predicted = z.argmax(axis=1)
    for name in COUNTED:
        close(got[name], SCORES[name](y, predicted, average="macro", zero_division=0.0))
    assert got["confusion_matrix"] == sk.confusion_matrix(y, predicted, labels=range(classes)).tolist()
    close(got["top_k_accuracy"], sk.top_k_accuracy_score(y, z, k=2, labels=range(classes)))
    p = softmax(z)
    areas = [sk.roc_auc_score(y == c, p[:, c]) for c in range(classes) if 0 < (y == c).sum() < rows]
    close(got["auc"], np.mean(areas) if areas else np.nan)


def test_auc_of_all_classes():
    """What scikit-learn calls one-vs-rest, macro; with two classes, and for probabilities instead of class numbers."""
    random = np.random.default_rng(3)
    z = random.normal(size=(90, 4)).astype(np.float32).astype(np.float64)
    y = random.integers(0, 4, 90).astype(np.int32)
    wanted = sk.roc_auc_score(y, softmax(z), multi_class="ovr")
    close(measure("softmax_cross_entropy", ["auc"], z, y)["auc"], wanted)
    one_hot = np.eye(4, dtype=np.float32)[y]
    close(measure("softmax_cross_entropy", ["auc", "f1"], z, one_hot)["auc"], wanted)
    two = z[:, :2]
    close(
        measure("softmax_cross_entropy", ["auc"], two, y % 2)["auc"],
        sk.roc_auc_score(y % 2, softmax(two)[:, 1]),
    )


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(2, 60), st.integers(1, 4), st.integers(0, 2**31))
def test_yes_or_no(rows: int, outputs: int, seed: int):
    """bce: of the one output, or the mean over several; scores with ties."""
    random = np.random.default_rng(seed)
    z = np.round(random.normal(size=(rows, outputs)), 1)
    y = random.integers(0, 2, (rows, outputs)).astype(np.float32)
    got = measure("bce", [*COUNTED, "auc"], z, y)
    predicted = (z > 0).astype(int)
    wanted_y, wanted_p = (y.ravel().astype(int), predicted.ravel()) if outputs == 1 else (y, predicted)
    for name in COUNTED:
        wanted = SCORES[name](
            wanted_y, wanted_p, average="binary" if outputs == 1 else "macro", zero_division=0.0
        )
        close(got[name], wanted)
    kinds = [n for n in range(outputs) if 0 < y[:, n].sum() < rows]
    areas = [sk.roc_auc_score(y[:, n], z[:, n].astype(np.float32)) for n in kinds]
    close(got["auc"], np.mean(areas) if areas else np.nan)
    if outputs == 1:
        matrix = measure("bce", ["confusion_matrix"], z, y)["confusion_matrix"]
        assert matrix == sk.confusion_matrix(y.ravel(), predicted.ravel(), labels=[0, 1]).tolist()


@pytest.mark.parametrize("average", ["binary", "macro"])
def test_average_of_two_classes(average: str):
    """Either of class 1, or the mean of both."""
    random = np.random.default_rng(5)
    z, y = random.normal(size=(50, 2)), random.integers(0, 2, 50).astype(np.int32)
    for name in COUNTED:
        got = measure("softmax_cross_entropy", [{"type": name, "average": average}], z, y)
        close(got[name], SCORES[name](y, z.argmax(axis=1), average=average))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(2, 60), st.integers(1, 5), st.integers(0, 2**31), st.sampled_from([0.0, 1e4]))
def test_values(rows: int, outputs: int, seed: int, offset: float):
    """Regression, also far from 0, where a sum of squares minus a squared sum would have nothing left."""
    random = np.random.default_rng(seed)
    z, y = (random.normal(offset, size=(rows, outputs)).astype(np.float32) for _ in range(2))
    got = measure("mse", ["mae", "mse", "r2"], z, y)
    exact = y.astype(np.float64), z.astype(np.float64)
    close(got["mae"], sk.mean_absolute_error(*exact))
    close(got["mse"], sk.mean_squared_error(*exact))
    # A mean is rounded to 2^-53 of itself, which moves every deviation from it by as much, against the column's spread.
    moved = 4 * np.finfo(np.float64).eps * np.abs(exact[0]).max() / exact[0].std(axis=0).min()
    wanted = sk.r2_score(*exact)
    np.testing.assert_allclose(
        got["r2"], wanted, rtol=METRIC_RTOL, atol=METRIC_ATOL + moved * (1 + abs(wanted))
    )


def test_r2_of_constant_targets():
    """1 where the output is right, else 0; of a single row NaN."""
    y = np.full((4, 2), 2.5, np.float32)
    z = np.array([[2.5, 1.0]] * 4)
    assert measure("mse", ["r2"], z, y)["r2"] == sk.r2_score(y, z) == 0.5
    with warnings.catch_warnings(action="ignore"):
        assert np.isnan(measure("mse", ["r2"], z[:1], y[:1])["r2"])
        assert np.isnan(sk.r2_score(y[:1], z[:1]))


def test_what_is_not_a_number_shows():
    """NaN among the outputs makes errors and areas NaN, and no row right."""
    z, y = np.array([[np.nan], [1.0]]), np.array([[1.0], [0.0]], np.float32)
    assert np.isnan(measure("mse", ["mae"], z, y)["mae"])
    assert np.isnan(measure("bce", ["auc"], z, y)["auc"])
    z, y = np.array([[np.nan, 1.0, 0.0]]), np.array([0], np.int32)
    top = measure("softmax_cross_entropy", [{"type": "top_k_accuracy", "k": 2}], z, y)
    assert top["top_k_accuracy"] == 0


@pytest.mark.parametrize(
    ("rows", "outputs"), [(2**24, 1), (2**24 + 1, 1), (2**12, 2**12), (2**12 + 1, 2**12)]
)
def test_too_many_scores_are_refused(rows: int, outputs: int):
    """AUC keeps all scores: it says how many, before it keeps any; and Python does before a job is queued."""
    refusal = call(PROBE, "refusal", rows, outputs)
    raw: dict[str, Any] = {
        "model": {"input": [1], "layers": [{"type": "dense", "units": outputs}]},
        "loss": "bce",
        "metrics": ["accuracy", "auc"],
        "optimizer": {"type": "adam"},
        "train": {"steps": 1},
        "data": {"validation": {"rows": [[0, rows]]}},
    }
    column, yes = Stats(0, 1, integral=True, row_sums_one=False), (rows + 1, outputs)
    x, y = ArrayInfo("float32", (rows + 1, 1), column), ArrayInfo("float32", yes, column)
    faults = list(data_faults(dict(parse_spec(raw)), {"x": x, "y": y}))
    if rows * outputs <= 2**24:
        assert refusal is None
        assert faults == []
        return
    assert refusal["code"] == "too_large"
    assert f"auc keeps a score for each of {rows} rows and {outputs} outputs" in refusal["message"]
    (fault,) = faults
    assert (fault.field, fault.value) == ("metrics.1", rows * outputs)
    assert f"auc keeps a score for each of {rows} validation rows" in fault.message

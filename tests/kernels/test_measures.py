"""Metrics of validations, how often they run, and runs that stop early; through the public module."""

# pyright: reportArgumentType=false
# (scikit-learn's annotations take zero_division for a text)

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk

from texelgrad.rng import RandomStream, Stream

from ..tolerances import METRIC_RTOL, PREDICTION_RTOL
from .harness import BrowserPage, PageError
from .specs import Array, Spec, data_for, mlp
from .test_session import LOSS, SIZES, Call, parts_of, play

NETS = [((5, 9, 3), LOSS), ((5, 6, 1), "bce"), ((5, 6, 7), "bce"), ((5, 6, 2), "mse")]
METRICS: dict[str, list[Any]] = {
    LOSS: ["accuracy", "f1", {"type": "top_k_accuracy", "k": 2}, "auc", "confusion_matrix"],
    "bce": ["precision", "recall", "auc"],
    "mse": ["mae", "r2", "mse"],
}


def expected(loss: str, z: Array, y: Array) -> dict[str, Any]:
    """The metrics of METRICS besides the accuracy, as scikit-learn computes them from the outputs."""
    z = z.astype(np.float64)
    if loss == "mse":
        return {
            "mae": sk.mean_absolute_error(y, z),
            "r2": sk.r2_score(y, z),
            "mse": sk.mean_squared_error(y, z),
        }
    if loss == "bce":
        single = z.shape[1] == 1
        yes, said = (y.ravel(), z.ravel() > 0) if single else (y, z > 0)
        average = "binary" if single else "macro"
        return {
            "precision": sk.precision_score(yes, said, average=average, zero_division=0.0),
            "recall": sk.recall_score(yes, said, average=average, zero_division=0.0),
            "auc": sk.roc_auc_score(y, z),
        }
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return {
        "f1": sk.f1_score(y, z.argmax(axis=1), average="macro", zero_division=0.0),
        "top_k_accuracy": sk.top_k_accuracy_score(y, z, k=2),
        "auc": sk.roc_auc_score(y, e / e.sum(axis=1, keepdims=True), multi_class="ovr"),
        "confusion_matrix": sk.confusion_matrix(y, z.argmax(axis=1), labels=range(3)).tolist(),
    }


def held_out(spec: Spec, rows: int) -> Array:
    share = spec["data"]["validation"]["fraction"]
    return RandomStream(spec["train"]["seed"], Stream.SPLIT).permutation(rows)[
        rows - math.floor(rows * share) :
    ]


@pytest.mark.parametrize(("sizes", "loss", "rows"), [*((*net, 60) for net in NETS), (*NETS[0], 3500)])
def test_metrics_of_a_validation(browser_page: BrowserPage, sizes: tuple[int, ...], loss: str, rows: int):
    """scikit-learn's, of the outputs that predict gives for the held-out rows; also of evaluate, also on more rows than are staged at once."""
    x, y = data_for(rows, sizes[0], sizes[-1], loss)
    spec = mlp(sizes, loss, optimizer="adam", seed=9, steps=12, batch_size=10)
    spec |= {"data": {"validation": {"fraction": 0.6}}, "metrics": METRICS[loss]}
    kept = held_out(spec, rows)
    calls: list[Call] = [("run", {}), ("predict", x[kept]), ("evaluate",), ("evaluate", {"x": x, "y": y})]
    played = play(browser_page, spec, x, y, *calls, ("predict", x))
    _, z, evaluated, of_all, all_z = played["results"]
    point = played["history"][-1]
    wanted = expected(loss, z, y[kept])
    for name, value in wanted.items():
        np.testing.assert_allclose(point[f"val_{name}"], value, rtol=METRIC_RTOL, err_msg=name)
        np.testing.assert_allclose(evaluated[name], value, rtol=METRIC_RTOL, err_msg=name)
    for name, value in expected(loss, all_z, y).items():
        np.testing.assert_allclose(of_all[name], value, rtol=METRIC_RTOL, err_msg=name)
    assert played["record"]["validation"] == point
    assert evaluated["loss"] == pytest.approx(point["val_loss"], rel=PREDICTION_RTOL)


def test_metrics_change_no_bits(browser_page: BrowserPage):
    """The same weights with and without them."""
    x, y = data_for(41, 5, 3, LOSS)
    spec = mlp(SIZES, LOSS, epochs=5, batch_size=10) | {"data": {"validation": {"fraction": 0.2}}}
    plain = play(browser_page, spec, x, y, ("run", {}), ("weightsFile",))
    measured = play(browser_page, spec | {"metrics": METRICS[LOSS]}, x, y, ("run", {}), ("weightsFile",))
    assert plain["results"][-1].tobytes() == measured["results"][-1].tobytes()


@pytest.mark.parametrize("piece", [100, 3])
def test_evaluate_every(browser_page: BrowserPage, piece: int):
    """Validations at every multiple, at the ends of epochs, and at the end, however the run is cut."""
    x, y = data_for(50, 5, 3, LOSS)
    spec = mlp(SIZES, LOSS, steps=23, batch_size=5, evaluate_every=3)
    spec |= {"data": {"validation": {"fraction": 0.2}}}
    calls: list[Call] = [("run", {"steps": piece})] * math.ceil(23 / piece)
    history = play(browser_page, spec, x, y, *calls)["history"]
    steps = [point["step"] for point in history if "val_loss" in point]
    assert steps == sorted({*range(3, 24, 3), 8, 16, 23})


# ---- early stopping -------------------------------------------------------------------------------------------------

X, Y = data_for(60, 5, 3, LOSS)
NOISE = np.random.default_rng(2).integers(0, 3, 60).astype(np.int32)  # nothing to learn: the loss soon rises


def stopping(**options: Any) -> Spec:
    spec = mlp((5, 24, 3), LOSS, optimizer={"type": "adam", "lr": 0.03}, seed=3, epochs=60, batch_size=10)
    spec["train"]["early_stopping"] = {"patience": 4} | options
    return spec | {"data": {"validation": {"fraction": 0.3}}, "metrics": ["accuracy", "auc"]}


def simulated(history: list[Any], key: str, patience: int, sign: float, min_delta: float) -> tuple[int, int]:
    """The best step and the last, from the curve of a run."""
    best, best_step, waited = math.inf, 0, 0
    for point in history:
        if key not in point:
            continue
        value = sign * point[key]
        better = value < best - min_delta if best < math.inf else True
        best, best_step, waited = (value, point["step"], 0) if better else (best, best_step, waited + 1)
        if waited >= patience:
            return best_step, point["step"]
    return best_step, history[-1]["step"]


@pytest.mark.parametrize(
    ("options", "sign"),
    [({}, 1.0), ({"min_delta": 0.02}, 1.0), ({"metric": "val_auc", "patience": 7}, -1.0)],
)
def test_early_stopping(browser_page: BrowserPage, options: dict[str, Any], sign: float):
    """Stops where the curve of a run without it says so, and ends with the weights of the best validation, bit for bit."""
    spec = stopping(**options)
    asked = spec["train"].pop("early_stopping") | {"restore_best": True}
    free = play(browser_page, spec, X, NOISE, ("run", {}))
    key = asked.get("metric", "val_loss")
    best, last = simulated(free["history"], key, asked["patience"], sign, asked.get("min_delta", 0.0))
    assert best < last < free["totalSteps"]
    at_best = play(browser_page, spec, X, NOISE, ("run", {"steps": best}), ("weightsFile",))
    spec["train"]["early_stopping"] = asked
    calls: list[Call] = [("run", {}), ("weightsFile",), ("evaluate",), ("run", {})]
    played = play(browser_page, spec, X, NOISE, *calls)
    assert played["results"][0] == played["results"][3] == {"step": last, "done": True}
    assert played["history"] == [point for point in free["history"] if point["step"] <= last]
    assert played["results"][1].tobytes() == at_best["results"][-1].tobytes()
    record = played["record"]
    point = next(p for p in free["history"] if p["step"] == best and "val_loss" in p)
    assert record["validation"] == point
    epoch = math.ceil(best / (free["totalSteps"] // spec["train"]["epochs"]))
    wanted = {
        "metric": key,
        "best": point[key],
        "best_step": best,
        "best_epoch": epoch,
        "stopped": True,
        "restored": True,
    }
    assert record["early_stopping"] == wanted
    assert played["results"][2]["loss"] == pytest.approx(point["val_loss"], rel=PREDICTION_RTOL)


def test_without_restoring(browser_page: BrowserPage):
    """The weights of the last step stay."""
    spec = stopping(restore_best=False)
    played = play(browser_page, spec, X, NOISE, ("run", {}), ("weightsFile",))
    last = played["step"]
    del spec["train"]["early_stopping"]
    plain = play(browser_page, spec, X, NOISE, ("run", {"steps": last}), ("weightsFile",))
    assert played["results"][-1].tobytes() == plain["results"][-1].tobytes()
    assert not played["record"]["early_stopping"]["restored"]


def test_the_best_of_a_run_that_never_stops(browser_page: BrowserPage):
    """Patience outlasts the run: the best weights come back at its end all the same."""
    spec = stopping(patience=1000)
    spec["train"]["epochs"] = 15
    played = play(browser_page, spec, X, NOISE, ("run", {}), ("weightsFile",))
    losses = {point["step"]: point["val_loss"] for point in played["history"] if "val_loss" in point}
    best = min(losses, key=lambda step: losses[step])
    record = played["record"]["early_stopping"]
    assert (record["best_step"], record["stopped"], record["restored"]) == (best, False, True)
    del spec["train"]["early_stopping"]
    plain = play(browser_page, spec, X, NOISE, ("run", {"steps": best}), ("weightsFile",))
    assert played["results"][-1].tobytes() == plain["results"][-1].tobytes()


@pytest.mark.parametrize("where", ["before", "at", "behind", "late"])
def test_resume_stops_at_the_same_step(browser_page: BrowserPage, where: str):
    """A checkpoint before, at and behind the best validation carries what early stopping knows; pieces of 2 steps do too."""
    spec = stopping()
    whole = play(browser_page, spec, X, NOISE, ("run", {}), ("weightsFile",))
    best = whole["record"]["early_stopping"]["best_step"]
    cut = {"before": best - 1, "at": best, "behind": best + 6, "late": whole["step"] - 1}[where]
    checkpoint = play(browser_page, spec, X, NOISE, ("run", {"steps": cut}), ("checkpoint",))["results"][-1]
    again = play(browser_page, spec, X, NOISE, ("restore", checkpoint), ("run", {}), ("weightsFile",))
    assert again["step"] == whole["step"]
    assert again["results"][-1].tobytes() == whole["results"][-1].tobytes()
    assert again["record"]["early_stopping"] == whole["record"]["early_stopping"]
    assert again["record"]["validation"] == whole["record"]["validation"]
    pieces: list[Call] = [("run", {"steps": 2})] * math.ceil(whole["step"] / 2)
    cut_up = play(browser_page, spec, X, NOISE, *pieces, ("weightsFile",))
    assert cut_up["history"] == whole["history"]
    assert cut_up["results"][-1].tobytes() == whole["results"][-1].tobytes()


def test_a_checkpoint_without_its_state_is_refused(browser_page: BrowserPage):
    """Nothing says how long the run has waited already."""
    import safetensors.numpy

    spec = stopping()
    file = play(browser_page, spec, X, NOISE, ("run", {"steps": 9}), ("checkpoint",))["results"][-1]
    tensors, metadata = parts_of(file.tobytes())
    del metadata["early_stopping"]
    broken = np.frombuffer(safetensors.numpy.save(tensors, metadata), np.uint8)
    with pytest.raises(PageError, match="no state of early stopping"):
        play(browser_page, spec, X, NOISE, ("restore", broken))

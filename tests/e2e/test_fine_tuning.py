"""Jobs that follow from a trained one, through the whole service: predictions, fine-tuning, early stopping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from .stack import Stack
from tests.tolerances import PREDICTION_RTOL

pytestmark = pytest.mark.timeout(300)  # a busy machine is no failure
Arrays = dict[str, NDArray[Any]]


def blobs(rows: int, seed: int) -> Arrays:
    """Three overlapping clouds in five dimensions."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, rows).astype(np.int32)
    return {"x": (random.normal(size=(rows, 5)) + 1.2 * np.eye(5)[y]).astype(np.float32), "y": y}


def spec(dataset: str) -> dict[str, Any]:
    layers = [
        {"type": "dense", "units": 24, "activation": "tanh", "name": "body"},
        {"type": "dense", "units": 3, "name": "head"},
    ]
    return {
        "name": "blobs",
        "model": {"input": [5], "layers": layers},
        "loss": "softmax_cross_entropy",
        "metrics": ["accuracy", "auc", "confusion_matrix"],
        "optimizer": {"type": "adam", "lr": 0.05},
        "data": {"dataset": dataset, "validation": {"fraction": 0.4}, "normalize": "standard"},
        "train": {"epochs": 400, "batch_size": 32, "early_stopping": {"patience": 5}},
    }


def outputs(weights: Arrays, x: NDArray[Any]) -> NDArray[np.float64]:
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    x = ((x.astype(np.float64) - w["input.offset"]) * w["input.scale"]).astype(np.float32)
    hidden = np.tanh(x.astype(np.float64) @ w["body.kernel"] + w["body.bias"])
    return hidden @ w["head.kernel"] + w["head.bias"]


def test_weights_of_rows(stack: Stack):
    """A third array of the data set: rows of weight 0 might as well not be there."""
    data = blobs(240, 3)
    half = data | {"w": np.repeat(np.array([2, 0], np.float32), 120)}
    job: dict[str, Any] = spec(stack.client.upload_dataset(half, name="weighted")["id"])
    job["data"] |= {"validation": {"rows": [[100, 120], [200, 240]]}, "normalize": "none"}
    job["train"] = {"steps": 30}
    done = stack.client.train(job)
    weights = stack.client.weights(done["id"])
    scores = outputs(weights | {"input.offset": np.zeros(5), "input.scale": np.ones(5)}, data["x"][100:120])
    loss = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(20), data["y"][100:120]]
    assert done["metrics"]["val_loss"] == pytest.approx(loss.mean(), rel=PREDICTION_RTOL)


def test_predictions_and_fine_tuning(stack: Stack, tmp_path: Path):
    """A run that stops early gives the weights of its best validation; they predict other rows, and another job begins with them."""
    client = stack.client
    trained = client.train(spec(client.upload_dataset(blobs(200, 1), name="blobs")["id"]))
    record = trained["record"]
    stopping, validation = record["early_stopping"], record["validation"]
    assert stopping["stopped"]
    assert stopping["restored"]
    assert trained["step"] < trained["total_steps"]
    curves = client.metrics(trained["id"], max_points=10_000)
    val_loss = dict(zip(curves["val_loss"].steps.tolist(), curves["val_loss"].values.tolist(), strict=True))
    assert validation["val_loss"] == stopping["best"] == min(val_loss.values())
    assert val_loss[stopping["best_step"]] == stopping["best"]
    assert set(curves) == {"loss", "val_loss", "val_accuracy", "val_auc"}
    matrix = np.array(validation["val_confusion_matrix"])
    assert matrix.shape == (3, 3)
    assert matrix.sum() == 80
    assert matrix.trace() / 80 == pytest.approx(validation["val_accuracy"], rel=PREDICTION_RTOL)

    weights = client.weights(trained["id"])
    other = blobs(3000, 2)
    dataset = client.upload_dataset(other, name="others")["id"]
    unlabelled = client.upload_dataset({"x": other["x"]}, name="unlabelled")["id"]
    made = client.predict(trained["id"], unlabelled)
    assert (made["kind"], made["state"], made["step"], made["total_steps"]) == (
        "predict",
        "succeeded",
        3000,
        3000,
    )
    expected = outputs(weights, other["x"])
    got = client.predictions(made["id"])
    np.testing.assert_allclose(got, expected, rtol=0, atol=PREDICTION_RTOL * np.abs(expected).max())
    table = np.loadtxt(
        client.download_predictions(made["id"], tmp_path / "p.csv"),
        delimiter=",",
        skiprows=1,
        dtype=np.float32,
    )
    np.testing.assert_array_equal(table, got)

    tuned: dict[str, Any] = spec(dataset) | {
        "fine_tune": {"job": trained["id"], "layers": ["body"]},
        "name": "tuned",
    }
    tuned["model"]["layers"][0]["trainable"] = False
    tuned["train"] = {"steps": 20, "batch_size": 64}
    after = client.weights(client.train(tuned)["id"])
    np.testing.assert_array_equal(after["body.kernel"], weights["body.kernel"])
    assert not np.array_equal(after["head.kernel"], weights["head.kernel"])

    given = client.upload_weights({name: after[name] for name in ("head.kernel", "head.bias")})
    again = tuned | {"fine_tune": {"weights": given["id"]}, "train": {"steps": 1, "batch_size": 64}}
    again["optimizer"] = {"type": "sgd", "lr": 1e-30}
    begun = client.weights(client.train(again)["id"])
    np.testing.assert_array_equal(begun["head.kernel"], after["head.kernel"])

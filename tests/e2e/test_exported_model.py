"""A trained model outside of the service: what is downloaded predicts, from raw inputs, what the run reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from texelgrad.normalize import normalized
from texelgrad.spec_data import Validation
from texelgrad.splits import split

from .stack import Stack


def test_onnx_gives_the_accuracy_of_the_run(stack: Stack, tmp_path: Path):
    """Inputs normalised in the page, rows split by class: the file takes inputs as they were uploaded."""
    random = np.random.default_rng(2)
    y = random.integers(0, 3, 150).astype(np.int32)
    x = (1000 + 50 * (random.normal(size=(150, 6, 5, 2)) + y[:, None, None, None])).astype(np.float32)
    dataset = stack.client.upload_dataset({"x": x, "y": y}, name="shifted images")
    channels = dataset["arrays"]["x"]["stats"]["features"]
    np.testing.assert_allclose(channels["mean"], x.mean(axis=(0, 1, 2), dtype=np.float64), rtol=1e-6)
    validation = {"fraction": 0.3, "stratify": True}
    spec = {
        "model": {
            "input": [6, 5, 2],
            "layers": [
                {"type": "conv2d", "filters": 4, "kernel": 3, "padding": "same", "activation": "relu"},
                {"type": "max_pool2d", "size": 2},
                {"type": "flatten"},
                {"type": "dense", "units": 3},
            ],
        },
        "loss": "softmax_cross_entropy",
        "metrics": ["accuracy"],
        "optimizer": {"type": "adam", "lr": 0.01},
        "data": {"dataset": dataset["id"], "validation": validation, "normalize": "standard"},
        "train": {"epochs": 6, "batch_size": 16, "seed": 8},
    }
    job = stack.client.train(spec)
    train, kept = split(Validation.model_validate(validation), 8, 150, y)
    assert np.bincount(y[kept]).tolist() == pytest.approx(np.bincount(y) * 0.3, abs=1)

    weights = stack.client.weights(job["id"])
    rows = normalized(x[train], weights).reshape(-1, 2).astype(np.float64)
    assert np.abs(rows.mean(axis=0)).max() < 1e-5
    assert np.abs(rows.std(axis=0) - 1).max() < 1e-5
    assert job["normalization"]["offset"] == weights["input.offset"].tolist()

    path = stack.client.download_weights(job["id"], tmp_path / "model.onnx", format="onnx")
    net = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    logits = np.asarray(net.run(None, {"x": x[kept]})[0])
    assert float((logits.argmax(axis=1) == y[kept]).mean()) == pytest.approx(job["metrics"]["val_accuracy"])
    assert job["metrics"]["val_accuracy"] > 0.8

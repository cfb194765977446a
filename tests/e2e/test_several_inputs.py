"""A model of two inputs through the whole service: upload, train, resume, predict, fine-tune, export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from texelgrad.client import ApiError
from texelgrad.normalize import normalized

from .stack import Stack
from tests.kernels.nets import forward
from tests.tolerances import PREDICTION_RTOL
from tests.unit.test_exports import predicted_by_tfjs

pytestmark = pytest.mark.timeout(300)  # a busy machine is no failure
Arrays = dict[str, NDArray[Any]]


def data_for(rows: int, seed: int) -> Arrays:
    """Images far from 0, and a word that says which of them to tell from the others."""
    random = np.random.default_rng(seed)
    word = random.integers(0, 4, rows)
    y = random.integers(0, 2, rows)
    image = random.normal(size=(rows, 5, 4, 2)) + 2 * ((word % 2) ^ y)[:, None, None, None]
    return {
        "image": (50 + 9 * image).astype(np.float32),
        "word": word.astype(np.int32),
        "y": y.astype(np.int32),
    }


def spec_for(dataset: str, **train: Any) -> dict[str, Any]:
    layers = [
        {"type": "conv2d", "inputs": ["image"], "filters": 4, "kernel": 3, "activation": "tanh"},
        {"type": "flatten", "name": "seen"},
        {"type": "embedding", "inputs": ["word"], "vocabulary": 4, "units": 3},
        {"type": "flatten", "name": "read"},
        {"type": "concat", "inputs": ["seen", "read"]},
        {"type": "dense", "units": 12, "activation": "tanh"},
        {"type": "dense", "units": 2, "name": "head"},
    ]
    return {
        "name": "two inputs",
        "model": {"input": {"image": [5, 4, 2], "word": [1]}, "layers": layers},
        "loss": "softmax_cross_entropy",
        "metrics": ["accuracy"],
        "optimizer": {"type": "adam", "lr": 0.02},
        "data": {"dataset": dataset, "validation": {"fraction": 0.25}, "normalize": "standard"},
        "train": {"epochs": 30, "batch_size": 32, "seed": 3, **train},
    }


def test_two_inputs(stack: Stack, tmp_path: Path):
    """What the files predict, here and in two other runtimes, is what the service predicts."""
    client = stack.client
    dataset = client.upload_dataset(data_for(240, 1), name="images and words")
    assert set(dataset["arrays"]) == {"image", "word", "y"}
    assert dataset["arrays"]["word"]["stats"]["max"] == 3
    spec = spec_for(dataset["id"])
    estimate = client.estimate(spec)
    assert estimate["output_shape"] == [2]
    job = client.train(spec)
    assert job["metrics"]["val_accuracy"] > 0.9
    assert job["record"]["peakTextureBytes"] <= estimate["texture_bytes"]
    assert set(job["normalization"]) == {"image"}, "a word is looked up"
    weights = client.weights(job["id"])
    assert weights["image.offset"].tolist() == job["normalization"]["image"]["offset"]
    again = client.weights(client.train(spec)["id"])
    assert {name: values.tobytes() for name, values in again.items()} == {
        name: values.tobytes() for name, values in weights.items()
    }

    other = data_for(100, 2)
    unlabelled = {name: other[name] for name in ("image", "word")}
    made = client.predict(job["id"], client.upload_dataset(unlabelled, name="others")["id"])
    got = client.predictions(made["id"])
    x = {"image": other["image"], "word": other["word"][:, None].astype(np.float32)}
    ready = {name: normalized(values, weights, name) for name, values in x.items()}
    wanted = forward(spec, weights, ready)
    assert np.abs(got - wanted).max() <= PREDICTION_RTOL * np.abs(wanted).max()

    onnx = client.download_weights(job["id"], tmp_path / "model.onnx", format="onnx")
    session = onnxruntime.InferenceSession(onnx.read_bytes(), providers=["CPUExecutionProvider"])
    assert [node.name for node in session.get_inputs()] == ["image", "word"]
    elsewhere = np.asarray(session.run(["y"], x)[0])
    assert np.abs(elsewhere - wanted).max() <= PREDICTION_RTOL * np.abs(wanted).max()
    packed = client.download_weights(job["id"], tmp_path / "model.zip", format="tfjs").read_bytes()
    elsewhere = predicted_by_tfjs(packed, x, tmp_path / "tfjs")
    assert np.abs(elsewhere - wanted).max() <= PREDICTION_RTOL * np.abs(wanted).max()

    tuned = spec_for(dataset["id"], epochs=1) | {"fine_tune": {"job": job["id"]}}
    tuned["data"]["normalize"] = "inherit"
    tuned["model"]["layers"][0]["trainable"] = False
    after = client.weights(client.train(tuned)["id"])
    np.testing.assert_array_equal(after["conv2d_1.kernel"], weights["conv2d_1.kernel"])
    np.testing.assert_array_equal(after["image.offset"], weights["image.offset"])
    assert not np.array_equal(after["head.kernel"], weights["head.kernel"])


def test_what_does_not_fit(stack: Stack):
    """Each refusal names the input."""

    def fields(act: Any, *arguments: Any) -> list[str]:
        with pytest.raises(ApiError) as caught:
            act(*arguments)
        return [fault.field for fault in caught.value.faults]

    data = data_for(80, 3)
    assert fields(stack.client.upload_dataset, data | {"word": data["word"][:30]}) == ["word"]
    alone = stack.client.upload_dataset({"image": data["image"], "y": data["y"]}, name="no words")["id"]
    assert fields(stack.client.create_job, spec_for(alone)) == ["model.input.word"]
    whole = stack.client.upload_dataset(data, name="both")["id"]
    unread = spec_for(whole)
    unread["model"]["input"]["more"] = [3]
    assert fields(stack.client.create_job, unread)[0] == "model.input.more"
    far = spec_for(whole)
    far["model"]["layers"][2]["vocabulary"] = 2
    assert fields(stack.client.create_job, far) == ["model.layers.2.vocabulary"]

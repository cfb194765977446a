"""The other examples, trained in full as their specs stand: regression, an autoencoder, a time series, fine-tuning, MNIST."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from examples.data import SETS, waves
from texelgrad.rng import RandomStream, Stream

from ..tolerances import TRAINED_LOSS_RTOL
from .harness import BrowserPage
from .nets import metrics
from .specs import Array, Spec
from .test_examples import EXAMPLES
from .test_session import Call, play

ROOT = EXAMPLES.parent


def example(name: str) -> Spec:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


def split(spec: Spec, rows: int) -> tuple[Array, Array]:
    """Rows that train, in the order that the epochs shuffle, and rows that validate."""
    order = RandomStream(spec["train"]["seed"], Stream.SPLIT).permutation(rows)
    held_out = int(rows * spec["data"]["validation"]["fraction"])
    return order[: rows - held_out], order[rows - held_out :]


def last_validation(played: dict[str, Any]) -> dict[str, Any]:
    return [point for point in played["history"] if "val_loss" in point][-1]


def with_torch(spec: Spec, x: Array, y: Array, weights: dict[str, Array]) -> tuple[float, float]:
    """Validation loss and R2 of the same net in PyTorch, float64: the same weights, batches and optimizer."""
    train, held_out = split(spec, len(x))
    mean, deviation = x[train].mean(axis=0, dtype=np.float64), x[train].std(axis=0, dtype=np.float64)
    inputs, targets = torch.tensor((x - mean) / deviation), torch.tensor(y, dtype=torch.float64)
    w = {name: torch.tensor(value.astype(np.float64), requires_grad=True) for name, value in weights.items()}

    def net(rows: Array) -> torch.Tensor:
        hidden = torch.tanh(inputs[rows] @ w["dense_1.kernel"] + w["dense_1.bias"])
        return hidden @ w["dense_2.kernel"] + w["dense_2.bias"]

    options = spec["optimizer"]
    kernels = [value for name, value in w.items() if name.endswith("kernel")]
    biases = [value for name, value in w.items() if name.endswith("bias")]
    optimizer = torch.optim.Adam(
        [{"params": kernels, "weight_decay": options["l2"]}, {"params": biases}], lr=options["lr"]
    )
    size, seed = spec["train"]["batch_size"], spec["train"]["seed"]
    for epoch in range(spec["train"]["epochs"]):
        order = train[RandomStream(seed, Stream.SHUFFLE, epoch).permutation(len(train))]
        for first in range(0, len(train), size):
            rows = order[first : first + size]
            optimizer.zero_grad()
            ((net(rows) - targets[rows]) ** 2).mean().backward()
            optimizer.step()
    with torch.no_grad():
        error = float(((net(held_out) - targets[held_out]) ** 2).mean())
    return error, 1 - error / float(y[held_out].var(dtype=np.float64))


def test_regression(browser_page: BrowserPage):
    """scikit-learn's diabetes: the error of PyTorch in float64 after the same steps."""
    spec = example("diabetes")
    x, y = SETS["diabetes"]().values()
    y = y[:, None]
    calls: list[Call] = [("getWeights",), ("run", {})]
    played = play(browser_page, spec, x, y, *calls)
    error, r2 = with_torch(spec, x, y, played["results"][0])
    point = last_validation(played)
    assert point["val_loss"] == pytest.approx(error, rel=TRAINED_LOSS_RTOL)
    assert point["val_r2"] == pytest.approx(r2, abs=TRAINED_LOSS_RTOL)
    assert r2 > 0.4


def test_autoencoder(browser_page: BrowserPage):
    """Eight numbers a digit: held-out digits come back closer than from eight principal components."""
    spec = example("autoencoder")
    x = SETS["autoencoder"]()["x"]
    train, held_out = split(spec, len(x))
    pca = PCA(8).fit(x[train])
    linear = float(((pca.inverse_transform(pca.transform(x[held_out])) - x[held_out]) ** 2).mean())
    played = play(browser_page, spec, x, x, ("run", {}), ("predict", x[held_out]))
    error = float(((played["results"][1].astype(np.float64) - x[held_out]) ** 2).mean())
    assert error < 0.8 * linear
    assert last_validation(played)["val_mse"] == pytest.approx(error, rel=1e-6)


def test_time_series(browser_page: BrowserPage):
    """The forms of waves: at least 95 % of the held-out ones, and of others that it never saw."""
    spec = example("time_series")
    other = waves(600, 2)
    x, y = SETS["time_series"]().values()
    played = play(browser_page, spec, x, y, ("run", {}), ("predict", other["x"]))
    validation = played["record"]["validation"]
    assert validation["val_f1"] >= 0.95
    assert validation["val_f1"] == max(point.get("val_f1", 0) for point in played["history"])
    accuracy = (played["results"][1].argmax(axis=1) == other["y"]).mean()
    assert accuracy >= 0.95


def test_fine_tuning(browser_page: BrowserPage):
    """Convolutions trained on the digits 0 to 4 and frozen tell 5 to 9 apart after a tenth of the steps."""
    base, tuned = example("fine_tune_base"), example("fine_tune")
    x, y = SETS["fine_tune_base"]().values()
    first = play(browser_page, base, x, y, ("run", {}), ("weightsFile",), ("getWeights",))
    assert last_validation(first)["val_accuracy"] >= 0.98
    file, learnt = first["results"][1:]
    calls: list[Call] = [("run", {}), ("getWeights",)]
    x, y = SETS["fine_tune"]().values()
    played = play(browser_page, tuned, x, y, *calls, initialWeightsFile=file)
    after = played["results"][1]
    for name in ("conv2d_1.kernel", "conv2d_1.bias", "conv2d_2.kernel", "conv2d_2.bias"):
        np.testing.assert_array_equal(after[name], learnt[name])
    assert not np.array_equal(after["head.kernel"], learnt["head.kernel"])
    assert played["step"] * 10 == first["step"]
    assert last_validation(played)["val_accuracy"] >= 0.93


@pytest.mark.full
@pytest.mark.timeout(1800)  # 2 minutes of a quiet machine without a GPU
def test_mnist(browser_page: BrowserPage, tmp_path: Path):
    """At least 98 % of 2,000 held-out digits of MNIST; the confusion matrix counts the same."""
    file = tmp_path / "mnist.npz"
    subprocess.run([sys.executable, ROOT / "scripts" / "mnist_npz.py", file], check=True)
    data = np.load(file)
    spec = example("mnist_cnn")
    calls = [("run", {})]
    options: dict[str, Any] = {}
    played = browser_page.call(
        "/tests/kernels/session_page.js", "play", spec, data["x"], data["y"], calls, options, timeout_s=1700
    )
    validation = played["record"]["validation"]
    matrix = np.array(validation["val_confusion_matrix"])
    assert matrix.sum() == 2000
    assert validation["val_accuracy"] == matrix.trace() / 2000 >= 0.98


def test_questions(browser_page: BrowserPage, tmp_path: Path):
    """An image and a question: at least 95 % of the answers about digits that were never seen, counted from the weights."""
    path = tmp_path / "questions.npz"
    subprocess.run([sys.executable, EXAMPLES / "questions.py", path], check=True)
    spec = example("questions")
    with np.load(path) as data:
        x, y = {name: data[name] for name in ("image", "question")}, data["y"]
    calls: list[Call] = [("run", {}), ("getWeights",)]
    played = play(browser_page, spec, x, y, *calls)
    weights = played["results"][1]
    (held_out,) = spec["data"]["validation"]["rows"]
    rows = slice(*held_out)
    found = played["record"]["normalization"]["image"]
    image = ((x["image"].astype(np.float64) - found["offset"]) * found["scale"]).astype(np.float32)
    wanted = metrics(spec, weights, {"image": image[rows], "question": x["question"][rows]}, y[rows])
    assert wanted["accuracy"] >= 0.95
    assert last_validation(played)["val_accuracy"] == wanted["accuracy"]
    assert last_validation(played)["val_loss"] == pytest.approx(wanted["loss"], rel=TRAINED_LOSS_RTOL)

"""Nets with normalization through whole sessions: against torch.nn, running statistics in files, checkpoints, evaluation, reports."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from texelgrad.rng import RandomStream, Stream

from ..tolerances import (
    FIRST_LOSS_RTOL,
    OPERATOR_RIGHT,
    PARITY_LOSS_ATOL,
    PARITY_LOSS_RTOL,
    PARITY_WEIGHT_ATOL,
    PREDICTION_RTOL,
)
from .cnns import FLATTEN, Layer, add, cnn, conv, dense, images_for, weights_of
from .harness import BrowserPage, PageError
from .nets import forward, metrics
from .specs import Array, Spec
from .test_norm_kernels import norm
from .test_session import parts_of, play

SHAPE = (6, 5, 2)
LAYERS: list[Layer] = [
    conv(4, 3, "linear", use_bias=False), norm("batch", "relu"), norm("group", "tanh", groups=2), FLATTEN,
    dense(9, use_bias=False), norm("batch", "tanh", momentum=0.3), dense(7), norm("layer", "tanh"), dense(3),
]  # fmt: skip
ROWS = 45
BUFFERS = [f"batch_norm_{n}.{name}" for n in (1, 2) for name in ("running_mean", "running_var")]


def spec_of(optimizer: str = "momentum", **train: Any) -> Spec:
    return cnn(
        SHAPE, LAYERS, "softmax_cross_entropy", optimizer=optimizer, **{"batch_size": 16, "steps": 50} | train
    )


class Net(nn.Module):
    """The same of PyTorch's modules."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, bias=False)
        self.batch_norm_1, self.group_norm_1 = nn.BatchNorm2d(4), nn.GroupNorm(2, 4)
        self.dense_1, self.dense_2, self.dense_3 = (
            nn.Linear(48, 9, bias=False),
            nn.Linear(9, 7),
            nn.Linear(7, 3),
        )
        self.batch_norm_2, self.layer_norm_1 = nn.BatchNorm1d(9, momentum=0.3), nn.LayerNorm(7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of images [M, H, W, C]."""
        h = torch.relu(self.batch_norm_1(self.conv(x.movedim(-1, 1))))
        h = torch.tanh(self.group_norm_1(h)).movedim(1, -1).flatten(1)
        h = torch.tanh(self.batch_norm_2(self.dense_1(h)))
        return self.dense_3(torch.tanh(self.layer_norm_1(self.dense_2(h))))

    def load(self, weights: dict[str, Array]) -> Net:
        """Take the engine's weights."""
        names = {"kernel": "weight", "gamma": "weight", "beta": "bias"}
        state = self.state_dict()
        for name, value in weights.items():
            layer, _, part = name.rpartition(".")
            turned = value.transpose(3, 2, 0, 1) if value.ndim == 4 else value.T
            state[f"{layer.replace('conv2d_1', 'conv')}.{names.get(part, part)}"] = torch.tensor(
                turned.copy()
            )
        self.load_state_dict(state)
        return self.double()


def test_fifty_steps_and_evaluation_of_torch_nn(browser_page: BrowserPage):
    """Losses and running statistics after 50 steps of training; then predictions and the loss in evaluation, of the same weights."""
    spec = spec_of(seed=5)
    x, y = images_for(spec, ROWS)
    calls: list[Any] = [
        ("getWeights",),
        ("run", {}),
        ("getWeights",),
        ("evaluate", {"x": x, "y": y}),
        ("predict", x),
    ]
    played = play(browser_page, spec, x, y, *calls)
    first, _, last, evaluated, predicted = played["results"]

    net = Net().load(first)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    inputs, targets = torch.tensor(x).double(), torch.tensor(y).long()
    for step in range(50):
        order = RandomStream(5, Stream.SHUFFLE, step // 3).permutation(ROWS)
        rows = torch.from_numpy(order[step % 3 * 16 :][:16])
        loss = nn.functional.cross_entropy(net(inputs[rows]), targets[rows])
        got = played["history"][step]["loss"]
        assert abs(got - loss.item()) <= PARITY_LOSS_RTOL * loss.item() + PARITY_LOSS_ATOL, step
        optimizer.zero_grad()
        loss.backward()  # pyright: ignore[reportUnknownMemberType]
        optimizer.step()  # pyright: ignore[reportUnknownMemberType]
    for name in BUFFERS:
        layer, _, part = name.partition(".")
        wanted = getattr(getattr(net, layer), part).numpy()
        np.testing.assert_allclose(last[name], wanted, rtol=0, atol=PARITY_WEIGHT_ATOL)
        assert np.abs(last[name] - first[name]).max() > 100 * PARITY_WEIGHT_ATOL, (
            "it moved too little to prove anything"
        )

    still = Net().load(last).eval()
    with torch.no_grad():
        wanted = still(inputs)
    np.testing.assert_allclose(
        predicted, wanted.numpy(), rtol=0, atol=PREDICTION_RTOL * float(wanted.abs().max())
    )
    loss = nn.functional.cross_entropy(wanted, targets).item()
    assert evaluated["loss"] == pytest.approx(loss, rel=10 * PREDICTION_RTOL)


@pytest.mark.parametrize("rows", [1, 7, 300])
def test_predict_and_evaluate(browser_page: BrowserPage, rows: int):
    """By the running statistics, whatever rows come together, of weights that were handed over."""
    spec = spec_of()
    weights = weights_of(spec)
    x, y = images_for(spec, ROWS)
    other_x, other_y = images_for(spec, rows, seed=rows)
    calls: list[Any] = [("predict", other_x), ("evaluate", {"x": other_x, "y": other_y}), ("getWeights",)]
    predicted, evaluated, after = play(browser_page, spec, x, y, *calls, initialWeights=weights)["results"]
    wanted = forward(spec, weights, other_x)
    np.testing.assert_allclose(predicted, wanted, rtol=0, atol=PREDICTION_RTOL * np.abs(wanted).max())
    assert evaluated == pytest.approx(metrics(spec, weights, other_x, other_y), rel=10 * PREDICTION_RTOL)
    for name in BUFFERS:
        assert after[name].tobytes() == weights[name].tobytes(), "evaluation moves nothing"


def test_validation_uses_the_running_statistics(browser_page: BrowserPage):
    """val_loss is NumPy's in evaluation, with the running statistics as they were after the epoch."""
    spec = spec_of(epochs=2, steps=None, seed=9) | {"data": {"validation": {"fraction": 0.35}}}
    x, y = images_for(spec, 60)
    held_out = RandomStream(9, Stream.SPLIT).permutation(60)[39:]
    played = play(browser_page, spec, x, y, *[("run", {"steps": 3}), ("getWeights",)] * 2)
    points = [point for point in played["history"] if "val_loss" in point]
    for point, weights in zip(points, played["results"][1::2], strict=True):
        assert point["val_loss"] == pytest.approx(
            metrics(spec, weights, x[held_out], y[held_out])["loss"], rel=10 * PREDICTION_RTOL
        )


@pytest.mark.parametrize("step", [1, 5, 6])
def test_resume_equals_uninterrupted(browser_page: BrowserPage, step: int):
    """Checkpoints hold the running statistics, and the states of gamma and beta alone; the end is the same bytes."""
    spec = spec_of("adam", steps=12)
    x, y = images_for(spec, ROWS)
    whole = play(browser_page, spec, x, y, ("run", {}), ("weightsFile",))
    checkpoint = play(browser_page, spec, x, y, ("run", {"steps": step}), ("checkpoint",))["results"][-1]
    resumed = play(browser_page, spec, x, y, ("restore", checkpoint), ("run", {}), ("weightsFile",))
    assert resumed["results"][0] == {"step": step, "bitExact": True}
    assert resumed["results"][-1].tobytes() == whole["results"][-1].tobytes()
    tensors, _ = parts_of(checkpoint.tobytes())
    assert set(BUFFERS) <= set(tensors)
    assert {"batch_norm_1.gamma.m", "batch_norm_1.beta.v", "layer_norm_1.gamma.v"} <= set(tensors)
    assert not any(name.startswith(tuple(f"{buffer}." for buffer in BUFFERS)) for name in tensors)
    assert all(np.abs(tensors[name] - (name.endswith("var"))).max() > 0 for name in BUFFERS)


def test_weights_round_trip(browser_page: BrowserPage):
    """What goes in comes out bit for bit; gamma and running variances begin as 1, beta and running means as 0."""
    spec = spec_of()
    x, y = images_for(spec, ROWS)
    weights = weights_of(spec)
    first, _, got = play(browser_page, spec, x, y, ("getWeights",), ("setWeights", weights), ("getWeights",))[
        "results"
    ]
    assert list(got) == [*(name for name in weights if name not in BUFFERS), *BUFFERS]
    for name, value in weights.items():
        assert got[name].tobytes() == value.tobytes()
        assert first[name].shape == value.shape
    for part, initial in {"gamma": 1, "running_var": 1, "beta": 0, "running_mean": 0}.items():
        for name in (name for name in first if name.endswith(f".{part}")):
            assert np.all(first[name] == initial)


@pytest.mark.parametrize("name", ["batch_norm_2.running_var", "layer_norm_1.gamma"])
def test_a_missing_weight_is_named(browser_page: BrowserPage, name: str):
    """Statistics are needed as weights are."""
    spec = spec_of()
    x, y = images_for(spec, ROWS)
    without = {key: value for key, value in weights_of(spec).items() if key != name}
    with pytest.raises(PageError, match=f"{name} is missing") as caught:
        play(browser_page, spec, x, y, initialWeights=without)
    assert caught.value.properties["code"] == "data_invalid"


def test_the_report_checks_every_operator(browser_page: BrowserPage):
    """Every kernel of the step against float64, and the first losses, which need the running statistics' steps; it disturbs nothing."""
    spec = spec_of("adam", steps=20)
    x, y = images_for(spec, ROWS)
    plain = play(browser_page, spec, x, y, ("run", {}), ("weightsFile",))
    asked = play(
        browser_page, spec, x, y, ("run", {"steps": 12}), ("diagnose", "full"), ("run", {}), ("weightsFile",)
    )
    assert asked["results"][-1].tobytes() == plain["results"][-1].tobytes()
    report = asked["results"][1]
    assert report["coverage"]["operatorsChecked"] == report["coverage"]["operatorsTotal"]
    assert set(BUFFERS) <= {operator["name"] for operator in report["operators"]}
    ops = " + ".join(operator["op"] for operator in report["operators"])
    for op in (
        *(f"sample_norm{part}" for part in ("_statistics", "", "_grad_sums", "_grad_input", "_grad_weights")),
        *(f"batch_norm{part}" for part in ("_statistics", "", "_grad_input", "_grad_weights")),
    ):
        assert op in ops.split(" + ")
    for operator in report["operators"]:
        assert operator["maxNormalizedError"] < OPERATOR_RIGHT, operator
    assert len(report["firstLosses"]) == 10
    assert max(point["relativeError"] for point in report["firstLosses"]) < FIRST_LOSS_RTOL


def test_a_frozen_layer_stays(browser_page: BrowserPage):
    """Neither gamma nor the running statistics of a frozen layer move; those of its neighbour do."""
    layers = [
        conv(4, 3, "linear", padding="same"), norm("batch", "relu", trainable=False), conv(4, 3, "linear", padding="same"), norm("batch"),
        add("batch_norm_1", "batch_norm_2"), FLATTEN, dense(3),
    ]  # fmt: skip
    spec = cnn(SHAPE, layers, "softmax_cross_entropy", optimizer="adam", steps=9, batch_size=16)
    x, y = images_for(spec, ROWS)
    weights = weights_of(spec)
    _, after = play(browser_page, spec, x, y, ("run", {}), ("getWeights",), initialWeights=weights)["results"]
    for name, value in weights.items():
        assert (after[name].tobytes() == value.tobytes()) == name.startswith("batch_norm_1."), name


@pytest.mark.parametrize(("rows", "batch"), [(33, 16), (1, None), (5, 1)])
def test_a_batch_of_one_row_has_no_variance(browser_page: BrowserPage, rows: int, batch: int | None):
    """Of flat values; images of several pixels are as good with one."""
    flat = cnn((4,), [dense(3), norm("batch"), dense(2)], batch_size=batch, steps=3)
    x, y = images_for(flat, rows)
    with pytest.raises(PageError, match="batch_norm needs the variance of at least 2") as caught:
        play(browser_page, flat, x, y)
    assert caught.value.properties["code"] == "spec_invalid"
    assert caught.value.properties["field"] == "train.batch_size"
    images = cnn((2, 2, 1), [norm("batch"), FLATTEN, dense(2)], batch_size=batch, steps=3)
    x, y = images_for(images, rows)
    played = play(browser_page, images, x, y, ("run", {}))
    assert all(math.isfinite(point["loss"]) for point in played["history"])


@pytest.mark.parametrize("clip", [{"global_norm": 0.5}, {"value": 0.01}])
def test_gradients_that_are_clipped(browser_page: BrowserPage, clip: dict[str, float]):
    """Gradients of gamma and beta count as others do: see the report of every operator."""
    spec = spec_of("momentum", steps=12, clip=clip)
    x, y = images_for(spec, ROWS)
    report = play(browser_page, spec, x, y, ("run", {}), ("diagnose", "full"))["results"][1]
    assert report["coverage"]["operatorsChecked"] == report["coverage"]["operatorsTotal"]
    for operator in report["operators"]:
        assert operator["maxNormalizedError"] < OPERATOR_RIGHT, operator
    assert max(point["relativeError"] for point in report["firstLosses"]) < FIRST_LOSS_RTOL

"""Gradients of several batches that make one step: the step of one batch of all their rows, whatever the batches are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ..tolerances import (
    ACCUMULATED_TOL,
    FIRST_LOSS_RTOL,
    OPERATOR_RIGHT,
    PARITY_LOSS_ATOL,
    PARITY_LOSS_RTOL,
    PARITY_WEIGHT_ATOL,
)
from .cnns import FLATTEN, Layer, Shape, cnn, conv, dense, images_for, pool, weights_of
from .harness import BrowserPage
from .steps import check_padding, check_values, inspect
from .test_kernels import DEVICES, device_id

ENGINE = "/tests/kernels/engine_page.js"
NETS: dict[str, tuple[Shape, list[Layer]]] = {
    "mlp": ((5,), [dense(9, "tanh"), dense(6, "tanh", use_bias=False, lr_multiplier=0.5), dense(3)]),
    "cnn": ((6, 5, 2), [conv(3, 2, "tanh"), conv(4, 2, "tanh", trainable=False), pool(2), FLATTEN, dense(3)]),
}  # fmt: skip
ADAMW = {"type": "adamw", "lr": 0.01, "l1": 0.01}


def run(page: BrowserPage, net: str, rows: int, **train: Any) -> tuple[list[Any], dict[str, Any]]:
    """History and weights of a run in the order of the rows."""
    spec = cnn(*NETS[net], "mse", optimizer=ADAMW, shuffle=False, **train)
    spec["data"] = {"validation": {"rows": [0, 1, 2]}}
    x, y = images_for(spec, rows)
    found = page.call(ENGINE, "run", spec, x, y, {"initialWeights": weights_of(spec)})
    return found["history"], found["weights"]


@pytest.mark.parametrize(
    ("net", "clip"), [("mlp", None), ("mlp", {"global_norm": 0.1}), ("cnn", {"value": 0.02})]
)
def test_many_batches_are_one(browser_page: BrowserPage, net: str, clip: dict[str, float] | None):
    """35 rows in steps of 12, the last of an epoch of 11: 4 batches of 3, or 3 of 4, the last one short; steps are what is counted."""
    whole, weights = run(browser_page, net, 38, batch_size=12, steps=8, clip=clip)
    for size, of_step in ((3, 4), (4, 3), (1, 12)):
        history, found = run(
            browser_page, net, 38, batch_size=size, accumulate_steps=of_step, steps=8, clip=clip
        )
        assert [point["step"] for point in history] == [point["step"] for point in whole]
        for key in ("loss", "val_loss"):
            got, wanted = ([point[key] for point in points if key in point] for points in (history, whole))
            np.testing.assert_allclose(got, wanted, rtol=ACCUMULATED_TOL)
        for name, value in weights.items():
            np.testing.assert_allclose(found[name], value, rtol=0, atol=ACCUMULATED_TOL, err_msg=name)


def test_a_step_of_more_batches_than_are_in_flight(browser_page: BrowserPage):
    """100 batches of a row: the losses of a step come back in several flights."""
    whole, weights = run(browser_page, "mlp", 203, batch_size=100, steps=5)
    history, found = run(browser_page, "mlp", 203, batch_size=1, accumulate_steps=100, steps=5)
    np.testing.assert_allclose(*([p["loss"] for p in points if "loss" in p] for points in (history, whole)), rtol=ACCUMULATED_TOL)  # fmt: skip
    for name, value in weights.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=ACCUMULATED_TOL, err_msg=name)


def test_running_statistics_move_with_each_batch(browser_page: BrowserPage):
    """Weights change once a step, the statistics of batch normalization with every batch, as in PyTorch."""
    layers = [{"type": "batch_norm", "momentum": 0.1}, dense(3)]
    spec = cnn((5,), layers, "mse", batch_size=4, accumulate_steps=3, steps=3, shuffle=False)
    x, y = images_for(spec, 20)
    weights = browser_page.call(ENGINE, "run", spec, x, y)["weights"]
    mean, variance = np.zeros(5), np.ones(5)
    for batch in (0, 1, 2, 3, 4, 0, 1, 2):  # 5 batches an epoch: steps of 3, 2 and 3
        rows = x[4 * batch : 4 * batch + 4].astype(np.float64)
        mean = 0.9 * mean + 0.1 * rows.mean(axis=0)
        variance = 0.9 * variance + 0.1 * rows.var(axis=0, ddof=1)
    np.testing.assert_allclose(weights["batch_norm_1.running_mean"], mean, atol=ACCUMULATED_TOL)
    np.testing.assert_allclose(weights["batch_norm_1.running_var"], variance, atol=ACCUMULATED_TOL)


def test_batch_norm_is_that_of_torch(browser_page: BrowserPage):
    """Each batch is normalized, and its gradient centred, by itself: 19 rows in batches of 4, steps of 3 and of 2 batches, the last short."""
    layers = [dense(7), {"type": "batch_norm", "activation": "tanh"}, dense(3)]
    spec = cnn(
        (5,), layers, "mse", optimizer={"type": "sgd", "lr": 0.1, "momentum": 0.9},
        batch_size=4, accumulate_steps=3, steps=20, shuffle=False,
    )  # fmt: skip
    x, y = images_for(spec, 19)
    weights = weights_of(spec)
    found = browser_page.call(ENGINE, "run", spec, x, y, {"initialWeights": weights})
    net = torch.nn.Sequential(
        torch.nn.Linear(5, 7), torch.nn.BatchNorm1d(7), torch.nn.Tanh(), torch.nn.Linear(7, 3)
    )
    places = {
        "dense_1.kernel": "0.weight", "dense_1.bias": "0.bias", "batch_norm_1.gamma": "1.weight", "batch_norm_1.beta": "1.bias",
        "batch_norm_1.running_mean": "1.running_mean", "batch_norm_1.running_var": "1.running_var",
        "dense_2.kernel": "3.weight", "dense_2.bias": "3.bias",
    }  # fmt: skip
    net.load_state_dict({places[name]: torch.tensor(value.T.copy()) for name, value in weights.items()}, strict=False)  # fmt: skip
    net.double()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    inputs, targets = torch.tensor(x).double(), torch.tensor(y).double()
    for step, point in enumerate(found["history"]):
        first, last = ((0, 12), (12, 19))[step % 2]
        optimizer.zero_grad()
        total = 0.0
        for at in range(first, last, 4):
            rows = slice(at, min(at + 4, last))
            share = (rows.stop - rows.start) / (last - first)
            loss = torch.nn.functional.mse_loss(net(inputs[rows]), targets[rows]) * share
            loss.backward()  # pyright: ignore[reportUnknownMemberType]
            total += loss.item()
        optimizer.step()  # pyright: ignore[reportUnknownMemberType]
        assert abs(point["loss"] - total) <= PARITY_LOSS_RTOL * total + PARITY_LOSS_ATOL, step
    assert len(found["history"]) == 20
    state = net.state_dict()
    for name, place in places.items():
        wanted = state[place].numpy().T
        np.testing.assert_allclose(found["weights"][name], wanted, rtol=0, atol=PARITY_WEIGHT_ATOL, err_msg=name)  # fmt: skip


def test_epochs_count_steps(browser_page: BrowserPage):
    """35 rows in batches of 4, 3 of them a step: 3 steps an epoch."""
    history, _ = run(browser_page, "mlp", 38, batch_size=4, accumulate_steps=3, epochs=2, steps=None)
    assert [point["step"] for point in history if "loss" in point] == list(range(1, 7))
    assert [point["step"] for point in history if "val_loss" in point] == [3, 6]


@pytest.mark.parametrize("device", [DEVICES[1], DEVICES[14]], ids=device_id)
@pytest.mark.parametrize("net", NETS)
def test_kernels(browser_page: BrowserPage, net: str, device: dict[str, Any]):
    """Every kernel of a step, against float64 on what it read."""
    optimizer = ADAMW if device["maxDrawBuffers"] > 2 else {"type": "sgd", "lr": 0.1, "momentum": 0.9}
    spec = cnn(
        *NETS[net], "mse", optimizer=optimizer, batch_size=4, accumulate_steps=3, clip={"global_norm": 0.1}
    )
    x, y = images_for(spec, 13)
    step = inspect(browser_page, spec, x, y, weights=weights_of(spec), steps=1, device=device)
    check_padding(step)
    assert "accumulate.frag.glsl" in check_values(step)


def test_the_precision_report(browser_page: BrowserPage):
    """First losses of steps of several batches, and each operator."""
    spec = cnn(*NETS["mlp"], "mse", optimizer=ADAMW, batch_size=4, accumulate_steps=3, steps=12)
    x, y = images_for(spec, 23)
    report = browser_page.call(ENGINE, "runAndDiagnose", spec, x, y)["report"]
    assert len(report["firstLosses"]) == 10
    assert max(item["relativeError"] for item in report["firstLosses"]) < FIRST_LOSS_RTOL
    assert report["coverage"]["operatorsChecked"] == report["coverage"]["operatorsTotal"]
    assert max(item["maxNormalizedError"] for item in report["operators"]) < OPERATOR_RIGHT

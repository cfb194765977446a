"""Rows that count differently: weighted mean losses, their gradients, what is refused; through the public module."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from texelgrad.rng import RandomStream, Stream

from ..tolerances import FIRST_LOSS_RTOL, GRADIENT_ATOL, GRADIENT_RTOL, PREDICTION_RTOL
from .harness import BrowserPage, PageError
from .nets import forward, row_losses
from .specs import LOSSES, Array, Spec, data_for, mlp, weights_for
from .test_session import LOSS, Call, play

ROWS = 41
W = np.random.default_rng(7).uniform(0, 3, ROWS).astype(np.float32)
W[[3, 11, 12]] = 0
DEVICES: dict[str, dict[str, Any]] = {
    "default": {},
    "two targets": {"maxDrawBuffers": 2, "format": "rgba32ui", "fetch": "texelFetch"},
}


def weighted(
    page: BrowserPage, spec: Spec, x: Array, y: Array, w: Array, *calls: Call, **options: Any
) -> Any:
    return page.call("/tests/kernels/session_page.js", "play", spec, x, y, calls, {"weight": w, **options})


NETS = [
    (loss, sizes, labels)
    for loss in LOSSES
    for sizes in ((5, 9, 3), (5, 4, 40))
    for labels in ("index", "values")
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("loss", "sizes", "labels"), [net for net in NETS if net[0] == LOSS or net[2] == "values"]
)
def test_loss_and_gradient(
    browser_page: BrowserPage, device: str, loss: str, sizes: tuple[int, ...], labels: str
):
    """Of one step on all rows: the mean of weight times row loss, weights scaled to the mean 1, and its central differences."""
    weights = weights_for(sizes)
    x, y = data_for(ROWS, sizes[0], sizes[-1], loss, labels=labels)
    spec = mlp(sizes, loss, activation="tanh", optimizer={"type": "sgd", "lr": 1.0}, steps=1)
    played = weighted(
        browser_page,
        spec,
        x,
        y,
        W,
        ("run", {}),
        ("getWeights",),
        initialWeights=weights,
        device=DEVICES[device],
    )
    share = W.astype(np.float64) / W.mean(dtype=np.float64)
    wanted = float((share * row_losses(loss, forward(spec, weights, x), y)).mean())
    assert played["history"][0]["loss"] == pytest.approx(wanted, rel=PREDICTION_RTOL)
    if sizes[-1] > 3:
        return  # differences of every weight take long
    after = played["results"][1]
    numbers = {name: value.astype(np.float64) for name, value in weights.items()}
    for name, value in numbers.items():
        flat = value.reshape(-1)
        for index in range(0, value.size, 3):
            old = flat[index]
            sides = []
            for step in (1e-4, -1e-4):
                flat[index] = old + step
                sides.append(float((share * row_losses(loss, forward(spec, numbers, x), y)).mean()))
            flat[index] = old
            difference = (sides[0] - sides[1]) / 2e-4
            got = weights[name].astype(np.float64).reshape(-1)[index] - after[name].reshape(-1)[index]
            rounding = 2**-23 * max(1, abs(old))  # of the weight after the step
            np.testing.assert_allclose(got, difference, rtol=GRADIENT_RTOL, atol=GRADIENT_ATOL + rounding)


def spec_of(**train: Any) -> Spec:
    spec = mlp((5, 9, 3), LOSS, optimizer="adam", steps=23, batch_size=10, seed=4, **train)
    return spec | {"data": {"validation": {"fraction": 0.3}}}


def test_weights_of_one_change_nothing(browser_page: BrowserPage):
    """Nor does their scale: the same bytes."""
    x, y = data_for(ROWS, 5, 3, LOSS)
    calls: list[Call] = [("run", {}), ("weightsFile",)]
    plain = play(browser_page, spec_of(), x, y, *calls)
    ones = weighted(browser_page, spec_of(), x, y, np.ones(ROWS, np.float32), *calls)
    fours = weighted(browser_page, spec_of(), x, y, np.full((ROWS, 1), 4, np.float32), *calls)
    assert ones["results"][1].tobytes() == plain["results"][1].tobytes()
    assert fours["results"][1].tobytes() == plain["results"][1].tobytes()
    assert ones["history"] == fours["history"]


def test_validation_and_evaluation(browser_page: BrowserPage):
    """The weighted mean over the held-out rows, or over other data; rows of weight 0 might as well not be there."""
    x, y = data_for(ROWS, 5, 3, LOSS)
    held_out = RandomStream(4, Stream.SPLIT).permutation(ROWS)[-12:]
    other = dict(
        zip(("x", "y", "weight"), (*data_for(300, 5, 3, LOSS, seed=5), np.arange(300.0)), strict=True)
    )
    calls: list[Call] = [("run", {}), ("getWeights",), ("evaluate",), ("evaluate", other)]
    calls += [("evaluate", {"x": other["x"], "y": other["y"]}), ("diagnose", "basic")]
    played = weighted(browser_page, spec_of(), x, y, W, *calls)
    _, weights, of_held_out, of_other, unweighted, report = played["results"]

    def loss(rows_x: Array, rows_y: Array, w: Array) -> float:
        losses = row_losses(LOSS, forward(spec_of(), weights, rows_x), rows_y)
        return float(np.average(losses, weights=w.astype(np.float64)))

    wanted = loss(x[held_out], y[held_out], W[held_out])
    assert played["history"][-1]["val_loss"] == pytest.approx(wanted, rel=PREDICTION_RTOL)
    assert of_held_out["loss"] == pytest.approx(wanted, rel=PREDICTION_RTOL)
    assert of_other["loss"] == pytest.approx(
        loss(other["x"], other["y"], other["weight"]), rel=PREDICTION_RTOL
    )
    assert unweighted["loss"] == pytest.approx(
        loss(other["x"], other["y"], np.ones(300)), rel=PREDICTION_RTOL
    )
    assert max(entry["relativeError"] for entry in report["firstLosses"]) < FIRST_LOSS_RTOL


@pytest.mark.parametrize("stream", [False, True])
def test_streamed_rows_have_their_weights(browser_page: BrowserPage, stream: bool):
    """Read piece by piece, or through the ring of batches: the same bytes."""
    x, y = data_for(ROWS, 5, 3, LOSS)
    calls: list[Call] = [("run", {}), ("weightsFile",)]
    plain = weighted(browser_page, spec_of(), x, y, W, *calls)
    options: dict[str, Any] = {"stream": True} if stream else {"device": {"residentBytes": 0}}
    other = weighted(browser_page, spec_of(), x, y, W, *calls, **options)
    assert other["results"][1].tobytes() == plain["results"][1].tobytes()
    assert other["history"] == plain["history"]


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (np.ones(40), r"is \[40\]; needed: a number for each of 41 rows"),
        (np.ones((41, 2)), "needed: a number for each"),
        (np.where(np.arange(41) == 9, -1.0, 1.0), "row 9 has -1; legal"),
        (np.where(np.arange(41) == 9, np.nan, 1.0), "row 9 has NaN; legal"),
        (np.zeros(41), "the rows that train have all 0"),
    ],
)
def test_weights_that_are_refused(browser_page: BrowserPage, w: Array, words: str):
    """With the row and what is legal."""
    x, y = data_for(ROWS, 5, 3, LOSS)
    with pytest.raises(PageError, match=words) as caught:
        weighted(browser_page, spec_of(), x, y, w.astype(np.float32))
    assert caught.value.properties["field"] == "data.weight"

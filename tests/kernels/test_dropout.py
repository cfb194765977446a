"""Dropout in a real browser: the same masks as in Python, bit for bit, forward and backward; nothing in evaluation and prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from texelgrad.rng import Stream, dropout_mask, threefry2x32

from ..tolerances import FIRST_LOSS_RTOL, PREDICTION_RTOL
from .cnns import FLATTEN, Layer, Shape, activation, cnn, conv, dense, images_for, nodes, pool, weights_of
from .harness import BrowserPage, PageError
from .nets import forward
from .shape_nets import dropout
from .specs import OPTIMIZERS
from .steps import check_padding, check_reduction, check_values, inspect, split_padding
from .test_gradients import check as check_gradients
from .test_kernels import DEVICES, TARGETS_NEEDED, device_id, quick

ENGINE = "/tests/kernels/engine_page.js"
SESSION = "/tests/kernels/session_page.js"


NETS: dict[str, tuple[Shape, list[Layer]]] = {
    "dense": ((7,), [dropout(0.2), dense(9, "gelu"), dropout(0.5), dense(6), dropout(0.3), dense(3)]),
    "images": ((5, 4, 3), [conv(5, 2, "tanh"), dropout(0.25), conv(6, 2, "relu"), dropout(0.5), pool(2, stride=1), FLATTEN, dropout(0.1), dense(3)]),
    "none": ((4,), [dense(6, "tanh"), dropout(0), dense(3)]),
    "two readers": ((4,), [dense(6, "tanh"), dropout(0.5), activation("silu"), {"type": "add", "inputs": ["dropout_1", "activation_1"]}, dense(2)]),
}  # fmt: skip


def check(
    page: BrowserPage, net: str, rows: int = 7, *, batch: int = 1, device: dict[str, Any] | None = None, **train: Any
) -> set[str]:  # fmt: skip
    """Check every kernel of the third step; the last batch of 7 rows is one of 3."""
    spec = cnn(*NETS[net], batch_size=4, **train)
    x, y = images_for(spec, rows)
    step = inspect(page, spec, x, y, weights=weights_of(spec), steps=2, batch=batch, device=device or {})
    check_padding(step)
    check_reduction(step)
    return set(check_values(step))


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.full), 2**53 - 1])
@pytest.mark.parametrize("net", NETS)
def test_kernels(browser_page: BrowserPage, net: str, seed: int):
    """Masks of three seeds, of which the largest has a second word."""
    assert ("dropout.frag.glsl" in check(browser_page, net, seed=seed, optimizer="momentum")) is (
        net != "none"
    )


@pytest.mark.parametrize(
    "device", [pytest.param(d, id=device_id(d), marks=() if quick(d) else pytest.mark.full) for d in DEVICES]
)
def test_devices(browser_page: BrowserPage, device: dict[str, Any]):
    """Both formats, both ways of fetching, 8 to 1 render targets."""
    fits = [name for name, needed in TARGETS_NEEDED.items() if needed <= device["maxDrawBuffers"]]
    if fits:
        check(browser_page, "images", device=device, optimizer=fits[-1])
    else:
        with pytest.raises(PageError, match="render targets; the device has"):
            check(browser_page, "images", device=device)


@pytest.mark.parametrize("net", NETS)
def test_gradients(browser_page: BrowserPage, net: str):
    """Central differences of the whole net under the masks of its first step."""
    spec = cnn(*NETS[net], optimizer={"type": "sgd", "lr": 1.0}, steps=1, seed=3)
    x, y = images_for(spec, 11 if len(NETS[net][0]) == 1 else 3)
    check_gradients(browser_page, spec, x, y, (weights_of(spec, seed=seed) for seed in range(1, 2000)))


def test_masks_of_steps_and_layers_differ(browser_page: BrowserPage):
    """Two layers of one rate, and two steps, share no more than chance has it; each keeps its share."""
    spec = cnn((64,), [dropout(0.25), dense(64), dropout(0.25), dense(2)], seed=5)
    x, y = images_for(spec, 64)
    masks: list[Any] = []
    for steps in (0, 1):
        step = inspect(browser_page, spec, np.ones_like(x), y, weights=weights_of(spec), steps=steps)
        tensors = {name: tensor for group in step["groups"] for name, tensor in group["outputs"].items()}
        masks += [split_padding(tensors[f"dropout_{n}.y"], step, f"dropout_{n}.y")[0] != 0 for n in (1, 2)]
    for k, mask in enumerate(masks):
        # 4096 draws have a deviation of 0.007
        assert abs(mask.mean() - 0.75) < 0.03
        for other in masks[:k]:
            assert abs((mask & other).mean() - 0.75**2) < 0.03


def test_the_stream_as_documented():
    """docs/page-protocol.md: the batch's block is the key of the elements' words."""
    seed, number, batch = 2**40 + 9, 2, 11
    first, second = threefry2x32(
        (9, 2**8), np.array([batch], np.uint32), int(Stream.DROPOUT) * 2**24 + number
    )
    words = np.stack(
        threefry2x32((int(first[0]), int(second[0])), np.arange(3, dtype=np.uint32), 0), axis=1
    ).reshape(-1)
    assert dropout_mask(seed, number, batch, 5, 0.4).tolist() == (words < int(0.6 * 2**32)).tolist()[:5]


@pytest.mark.parametrize("net", ["dense", "images"])
def test_evaluation_and_prediction_drop_nothing(browser_page: BrowserPage, net: str):
    """Outputs are those of the net without dropout."""
    spec = cnn(*NETS[net], batch_size=4)
    x, y = images_for(spec, 7)
    weights = weights_of(spec)
    got = browser_page.call(SESSION, "play", spec, x, y, [["predict", x]], {"initialWeights": weights})[
        "results"
    ][0]
    wanted = forward(spec, weights, x)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=PREDICTION_RTOL * np.abs(wanted).max())


def test_a_resumed_run_goes_on_with_the_masks_of_its_steps(browser_page: BrowserPage):
    """The same weights to the bit, in one piece or in two."""
    spec = cnn(*NETS["images"], optimizer=OPTIMIZERS["adam"], batch_size=4, steps=8)
    x, y = images_for(spec, 7)
    options = {"initialWeights": weights_of(spec)}

    def play(calls: list[Any], options: dict[str, Any]) -> list[Any]:
        return browser_page.call(SESSION, "play", spec, x, y, calls, options)["results"]

    whole = play([("run", {"steps": 8}), ("getWeights",)], options)[1]
    _, checkpoint = play([("run", {"steps": 3}), ("checkpoint",)], options)
    parts = play([("restore", checkpoint), ("run", {"steps": 5}), ("getWeights",)], {})[2]
    for node in nodes(spec):
        for name in node.weights:
            np.testing.assert_array_equal(whole[name], parts[name])


@pytest.mark.parametrize("batches", [1, 3])
def test_the_precision_report_draws_the_same_masks(browser_page: BrowserPage, batches: int):
    """The first losses of a run against a float64 run of the same plan; each batch of a step has a mask of its own."""
    spec = cnn(
        *NETS["dense"], batch_size=16, steps=20, optimizer=OPTIMIZERS["adam"], accumulate_steps=batches
    )
    x, y = images_for(spec, 50)
    report = browser_page.call(ENGINE, "runAndDiagnose", spec, x, y, {})["report"]
    assert len(report["firstLosses"]) == 10
    assert max(loss["relativeError"] for loss in report["firstLosses"]) < FIRST_LOSS_RTOL
    assert any("dropout" in operator["op"] for operator in report["operators"])

"""Every optimizer's update against float64: penalties, decay, limits, multipliers and frozen layers, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ..tolerances import FIRST_LOSS_RTOL, OPERATOR_RIGHT
from .cnns import FLATTEN, Layer, cnn, conv, dense, images_for, pool, weights_of
from .harness import BrowserPage, PageError
from .steps import check_padding, check_reduction, check_values, inspect
from .test_kernels import DEVICES, device_id

ENGINE = "/tests/kernels/engine_page.js"
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "nesterov": {"type": "sgd", "lr": 0.02, "momentum": 0.9, "nesterov": True},
    "adamw": {"type": "adamw", "lr": 0.01, "weight_decay": 0.1},
    "rmsprop": {"type": "rmsprop", "lr": 0.01, "alpha": 0.9},
    "rmsprop momentum": {"type": "rmsprop", "lr": 0.01, "momentum": 0.9},
    "adagrad": {"type": "adagrad", "lr": 0.02},
    "adadelta": {"type": "adadelta", "lr": 1.0},
    "lion": {"type": "lion", "lr": 0.001, "weight_decay": 0.1},
}
STATES = {
    "nesterov": 1,
    "adamw": 2,
    "rmsprop": 1,
    "rmsprop momentum": 2,
    "adagrad": 1,
    "adadelta": 2,
    "lion": 1,
}
PENALISED: dict[str, dict[str, Any]] = {
    "sgd": {"type": "sgd", "lr": 0.05, "l1": 0.01, "l2": 0.1},
    "momentum": {"type": "sgd", "lr": 0.02, "momentum": 0.9, "weight_decay": 0.05},
    "nesterov": OPTIMIZERS["nesterov"] | {"l2": 0.1, "weight_decay": 0.1},
    "adam": {"type": "adam", "lr": 0.01, "l1": 0.01},
    "adamw": OPTIMIZERS["adamw"] | {"l1": 0.01, "l2": 0.1},
    "rmsprop": OPTIMIZERS["rmsprop"] | {"l2": 0.1},
    "adagrad": OPTIMIZERS["adagrad"] | {"l1": 0.1},
    "adadelta": OPTIMIZERS["adadelta"] | {"l1": 0.1, "l2": 0.01},
    "lion": OPTIMIZERS["lion"] | {"l2": 0.1},
}  # fmt: skip
MLP = ((5,), [dense(9, "tanh"), dense(6, "tanh", use_bias=False, lr_multiplier=0.3), dense(3)])
CNN = ((6, 5, 2), [conv(5, 3, "tanh"), conv(4, 2, "tanh", lr_multiplier=2.5), FLATTEN, dense(3, lr_multiplier=0.1)])  # fmt: skip


def check(
    page: BrowserPage, net: tuple[Any, list[Layer]], optimizer: dict[str, Any], *, rows: int = 13,
    device: dict[str, Any] | None = None, **train: Any,
) -> set[str]:  # fmt: skip
    """Check every kernel of the third step, a last short batch of 5 rows."""
    spec = cnn(*net, "mse", optimizer=optimizer, batch_size=8, **train)
    x, y = images_for(spec, rows)
    options = {"steps": 2, "batch": 1, "device": device or {}}
    step = inspect(page, spec, x, y, weights=weights_of(spec), **options)
    check_padding(step)
    check_reduction(step)
    return set(check_values(step))


@pytest.mark.parametrize("net", [MLP, CNN], ids=["mlp", "cnn"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(browser_page: BrowserPage, name: str, net: tuple[Any, list[Layer]]):
    """Weights and states, also of layers with a rate of their own; updates that ride along and updates of stored gradients."""
    kernels = check(browser_page, net, OPTIMIZERS[name])
    assert "affine_grad_weights.frag.glsl" in kernels
    assert ("conv2d_grad_weights.frag.glsl+update.frag.glsl" in kernels) == (net is CNN)


@pytest.mark.parametrize("name", PENALISED)
def test_penalties_and_decay(browser_page: BrowserPage, name: str):
    """Of weights and not of biases; the gradient limited before, element by element."""
    check(browser_page, MLP, PENALISED[name])
    check(browser_page, CNN, PENALISED[name], clip={"value": 0.02})


QUICK = [DEVICES[index] for index in (1, 2, 3, 14)]


@pytest.mark.parametrize(
    "device",
    [pytest.param(d, id=device_id(d), marks=() if d in QUICK else pytest.mark.full) for d in DEVICES],
)
def test_devices(browser_page: BrowserPage, device: dict[str, Any]):
    """With 8 to 1 render targets; 1 + states of them are needed, and 2 for the loss."""
    for name in ("nesterov", "adadelta", "lion"):
        if max(2, 1 + STATES[name]) > device["maxDrawBuffers"]:
            with pytest.raises(PageError, match="render targets; the device has") as caught:
                check(browser_page, MLP, OPTIMIZERS[name], device=device)
            assert caught.value.properties["code"] == "no_float_targets"
        else:
            check(browser_page, MLP, OPTIMIZERS[name] | {"l1": 0.01}, device=device)


@pytest.mark.parametrize("limit", [0.05, 100.0])
@pytest.mark.parametrize("net", [MLP, CNN], ids=["mlp", "cnn"])
def test_norm_of_the_whole_gradient(browser_page: BrowserPage, net: tuple[Any, list[Layer]], limit: float):
    """Above the limit and below it; every gradient is stored, summed up once, and multiplied in its update."""
    for name in ("sgd", "adam"):
        kernels = check(browser_page, net, PENALISED[name], clip={"global_norm": limit})
        assert "update.frag.glsl" in kernels
        weighted = sum(layer["type"] != "flatten" for layer in net[1])
        assert "+".join(["square_sums.frag.glsl"] * weighted + ["grad_norm.frag.glsl"]) in kernels


@pytest.mark.parametrize("device", [DEVICES[1], DEVICES[14]], ids=device_id)
def test_norm_of_large_gradients(browser_page: BrowserPage, device: dict[str, Any]):
    """Sums of several blocks, of folded and of plain gradients."""
    layers = [dense(257, "tanh"), dense(70, "tanh"), dense(1)]
    check(browser_page, ((130,), layers), PENALISED["sgd"], clip={"global_norm": 0.5}, device=device)


def test_a_gradient_that_is_not_finite(browser_page: BrowserPage):
    """Its norm hides nothing, and padding stays 0."""
    spec = cnn(*MLP, "mse", optimizer=PENALISED["sgd"], batch_size=8, clip={"global_norm": 1.0})
    x, y = images_for(spec, 13)
    weights = weights_of(spec)
    weights["dense_3.bias"][1] = np.inf
    step = inspect(browser_page, spec, x, y, weights=weights)
    check_padding(step)
    factor = next(group["outputs"] for group in step["groups"] if "grad_norm.frag.glsl" in group["shaders"])
    assert not np.isfinite(factor["gradient.norm"]["texels"][0, 0, 1])
    after = {name: tensor for group in step["groups"] for name, tensor in group["outputs"].items()}
    assert np.isnan(after["dense_3"]["texels"]).any()


def test_the_precision_report_knows_it_all(browser_page: BrowserPage):
    """Each operator of a run with every kind of clipping, penalty and layer, and its first losses, against float64."""
    layers = [dense(9, "tanh", lr_multiplier=0.5), dense(8, "tanh", trainable=False), dense(3)]
    for clip in ({"value": 0.02}, {"global_norm": 0.1}):
        spec = cnn((5,), layers, "mse", optimizer=PENALISED["adamw"], batch_size=8, clip=clip)
        x, y = images_for(spec, 13)
        report = browser_page.call(ENGINE, "runAndDiagnose", spec, x, y)["report"]
        assert report["coverage"]["operatorsChecked"] == report["coverage"]["operatorsTotal"]
        assert max(item["maxNormalizedError"] for item in report["operators"]) < OPERATOR_RIGHT
        assert len(report["firstLosses"]) == 10
        assert max(item["relativeError"] for item in report["firstLosses"]) < FIRST_LOSS_RTOL


FROZEN: dict[str, tuple[tuple[int, ...], list[Layer]]] = {
    "first": ((5,), [dense(7, "tanh", trainable=False), dense(6, "tanh"), dense(3)]),
    "last": ((5,), [dense(7, "tanh"), dense(3, trainable=False)]),
    "middle": ((6, 5, 2), [conv(3, 2, "tanh"), conv(4, 2, "tanh", trainable=False), pool(2), FLATTEN, dense(3)]),
    "convolutions": ((6, 5, 2), [conv(3, 2, "tanh", trainable=False), conv(4, 2, "tanh", trainable=False), pool(2), FLATTEN, dense(6, "tanh"), dense(3)]),
}  # fmt: skip


@pytest.mark.parametrize("net", FROZEN)
def test_frozen_layers(browser_page: BrowserPage, net: str):
    """They keep their weights bit for bit, cost no gradient, and the others train as if they were constants."""
    shape, layers = FROZEN[net]
    kernels = check(browser_page, (shape, layers), OPTIMIZERS["adamw"])
    if net == "convolutions":
        assert not any(name.startswith(("conv2d_grad", "max_pool2d_grad")) for name in kernels)  # fmt: skip
    spec = cnn(shape, layers, "mse", optimizer=OPTIMIZERS["adamw"], batch_size=8, steps=5)
    x, y = images_for(spec, 13)
    weights = weights_of(spec)
    after = browser_page.call(ENGINE, "run", spec, x, y, {"initialWeights": weights})["weights"]
    assert after.keys() == weights.keys()
    counted: dict[str, int] = {}
    for layer in layers:
        counted[layer["type"]] = counted.get(layer["type"], 0) + 1
        name = f"{layer['type']}_{counted[layer['type']]}"
        for part in ("kernel", "bias"):
            if f"{name}.{part}" in weights:
                kept = np.array_equal(after[f"{name}.{part}"], weights[f"{name}.{part}"])
                assert kept == (not layer.get("trainable", True)), f"{name}.{part}"


def test_all_layers_frozen(browser_page: BrowserPage):
    """There is nothing to train."""
    with pytest.raises(PageError, match="no layer has weights to train") as caught:
        check(browser_page, ((5,), [dense(3, trainable=False)]), OPTIMIZERS["lion"])
    assert caught.value.properties["field"] == "model.layers"

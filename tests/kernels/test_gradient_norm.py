"""The norm of each step's gradient: against PyTorch in float64, beside what limits it, and at no cost where nobody asks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from ..tolerances import PARITY_LOSS_ATOL, PARITY_LOSS_RTOL
from ..torch_losses import mean_loss
from .cnns import FLATTEN, Layer, Shape, cnn, conv, dense, images_for, nodes, weights_of
from .harness import BrowserPage
from .layer_models import MODELS
from .layer_models.activation import torch_activation
from .specs import Array, Spec
from .steps import inspect
from .test_session import play

ENGINE = "/tests/kernels/engine_page.js"
MEASURED = {"gradient_norm": True}
NETS: dict[str, tuple[Shape, list[Layer]]] = {
    "mlp": ((5,), [dense(9, "tanh"), dense(6, "tanh", trainable=False), dense(3, lr_multiplier=0.5)]),
    "cnn": ((6, 5, 2), [conv(5, 3, "tanh"), conv(4, 2, "tanh", use_bias=False), FLATTEN, dense(3)]),
}
ROWS, BATCH, STEPS = 20, 8, 11  # batches of 8, 8 and 4


def spec_of(net: str, measured: bool, **train: Any) -> Spec:
    """Rows in their order, no validation."""
    optimizer = {"type": "sgd", "lr": 0.05, "l2": 0.1}
    spec = cnn(*NETS[net], "mse", optimizer=optimizer, batch_size=BATCH, steps=STEPS, shuffle=False, **train)
    return spec | {"telemetry": MEASURED if measured else {}}


def run(page: BrowserPage, spec: Spec) -> dict[str, Any]:
    """The curve, the weights and the record of a run from fixed weights."""
    x, y = images_for(spec, ROWS)
    return page.call(ENGINE, "run", spec, x, y, {"initialWeights": weights_of(spec)})


def batches(of_step: int) -> Iterator[Array]:
    """The rows of each step."""
    bounds = [*range(0, ROWS, BATCH * of_step), ROWS]
    epoch = [np.arange(first, last) for first, last in pairwise(bounds)]
    for step in range(STEPS):
        yield epoch[step % len(epoch)]


def float64_norms(spec: Spec) -> list[float]:
    """The norm of the gradient at each step of the same training in PyTorch."""
    x, y = (torch.tensor(values, dtype=torch.float64) for values in images_for(spec, ROWS))
    weights = {name: torch.tensor(value, dtype=torch.float64) for name, value in weights_of(spec).items()}
    layers = nodes(spec)
    rates = {
        name: 0.05 * node.layer.get("lr_multiplier", 1.0)
        for node in layers
        if node.layer.get("trainable", True)
        for name in node.weights
    }
    for name in rates:
        weights[name].requires_grad_()
    clip = spec["train"].get("clip") or {}
    norms: list[float] = []
    for rows in batches(spec["train"].get("accumulate_steps", 1)):
        made = {"input": x[rows]}
        for node in layers:
            parts = {name.rpartition(".")[2]: weights[name] for name in node.weights}
            z = MODELS[node.layer["type"]].torch(node.layer, parts, [made[name] for name in node.inputs])
            made[node.name] = torch_activation(node.layer.get("activation", "linear"))(z)
        loss = mean_loss("mse", {}, made[layers[-1].name], y[rows])
        gradients = dict(
            zip(rates, torch.autograd.grad(loss, [weights[name] for name in rates]), strict=True)
        )
        norm = float(sum((g * g).sum() for g in gradients.values())) ** 0.5
        norms.append(norm)
        factor = min(1.0, clip["global_norm"] / (norm + 1e-6)) if clip.get("global_norm") else 1.0
        with torch.no_grad():
            for name, g in gradients.items():
                limit = clip.get("value", torch.inf)
                penalty = 0.0 if name.endswith("bias") else 0.1 * weights[name]
                weights[name] -= rates[name] * (factor * g.clip(-limit, limit) + penalty)
    return norms


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize(
    "train",
    [{}, {"clip": {"value": 0.02}}, {"clip": {"global_norm": 0.05}}, {"accumulate_steps": 2}],
    ids=["plain", "value", "norm", "accumulated"],
)
def test_the_curve_against_float64(browser_page: BrowserPage, net: str, train: dict[str, Any]):
    """One value a step, of the whole gradient that is trained on, before it is limited and without penalties; several steps are in flight."""
    spec = spec_of(net, measured=True, **train)
    history = run(browser_page, spec)["history"]
    assert [point["step"] for point in history] == list(range(1, STEPS + 1))
    got = [point["gradient_norm"] for point in history]
    np.testing.assert_allclose(got, float64_norms(spec), rtol=PARITY_LOSS_RTOL, atol=PARITY_LOSS_ATOL)


def test_what_limits_the_norm_reports_it(browser_page: BrowserPage):
    """Asked for or not: the same draws, the same bits."""
    asked, not_asked = (
        run(browser_page, spec_of("mlp", measured, clip={"global_norm": 0.05})) for measured in (True, False)
    )
    assert asked["history"] == not_asked["history"]
    assert "gradient_norm" in not_asked["history"][0]
    assert asked["record"]["drawsPerStep"] == not_asked["record"]["drawsPerStep"]


@pytest.mark.parametrize("net", NETS)
def test_nobody_pays_who_does_not_ask(browser_page: BrowserPage, net: str):
    """Without it no gradient is stored for it and nothing is summed; with it come two sums, the norm and the updates that wait; the bits stay."""
    plain, measured = (run(browser_page, spec_of(net, measured)) for measured in (False, True))
    assert all(set(point) == {"step", "loss"} for point in plain["history"])
    assert [point["loss"] for point in plain["history"]] == [point["loss"] for point in measured["history"]]
    for name, value in plain["weights"].items():
        np.testing.assert_array_equal(measured["weights"][name], value, err_msg=name)

    shaders: list[list[str]] = []
    for measure in (False, True):
        spec = spec_of(net, measure)
        step = inspect(browser_page, spec, *images_for(spec, ROWS), weights=weights_of(spec))
        shaders.append(
            [shader.removesuffix(".frag.glsl") for group in step["groups"] for shader in group["shaders"]]
        )
    trained = sum(layer["type"] != "flatten" and layer.get("trainable", True) for layer in NETS[net][1])
    counts = [[names.count(name) for name in ("square_sums", "grad_norm")] for names in shaders]
    assert counts == [[0, 0], [trained, 1]]
    assert plain["record"]["drawsPerStep"] == len(shaders[0])
    assert measured["record"]["drawsPerStep"] == len(shaders[1])
    # What a convolution's parts are added up by is a draw either way; a dense layer's update was part of another one.
    fused = sum(layer["type"] == "dense" and layer.get("trainable", True) for layer in NETS[net][1])
    assert shaders[1].count("update") - shaders[0].count("update") == fused


def test_a_norm_that_is_not_finite(browser_page: BrowserPage):
    """It is told as it is."""
    spec = spec_of("mlp", measured=True) | {"numerics": {"on_nonfinite": "continue"}}
    x, y = images_for(spec, ROWS)
    weights = weights_of(spec)
    weights["dense_3.kernel"][:] = 3e38
    history = play(browser_page, spec, x, y, ("setWeights", weights), ("run", {}))["history"]
    assert len(history) == STEPS
    assert all(np.isnan(point["gradient_norm"]) for point in history)

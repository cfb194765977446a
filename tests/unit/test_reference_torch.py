"""browser_runtime/reference/ against PyTorch in float64: values, autograd's gradients, ten steps of each optimizer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from ..node import call
from ..tolerances import REFERENCE_RTOL
from .test_reference import PROBE, Array, array, close, op

SHAPES = ((1, 1, 1), (1, 7, 3), (5, 1, 4), (17, 6, 1), (8, 13, 10))  # M, K, N


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def matches(got: Any, expected: torch.Tensor | None) -> None:
    assert expected is not None, "autograd gave no gradient"
    close(got, expected.detach().numpy())


def leaf(values: Array) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_affine_against_torch(shape: tuple[int, int, int]):
    """Value and all three gradients."""
    M, K, N = shape
    x, kernel, bias, dy = leaf(normal(1, M, K)), leaf(normal(2, K, N)), leaf(normal(3, N)), normal(4, M, N)
    y = x @ kernel + bias
    y.backward(torch.tensor(dy))  # pyright: ignore[reportUnknownMemberType]
    inputs = {"x": x.detach().numpy(), "kernel": kernel.detach().numpy(), "bias": bias.detach().numpy()}
    matches(op("affine", None, **inputs)["y"], y)
    matches(op("affine_grad_input", dy=dy, kernel=inputs["kernel"])["dx"], x.grad)
    weights = op("affine_grad_weights", x=inputs["x"], dy=dy)
    matches(weights["kernel"], kernel.grad)
    matches(weights["bias"], bias.grad)


ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "linear": lambda x: x * 1,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "leaky_relu": functional.leaky_relu,
    "elu": functional.elu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "softplus": functional.softplus,
    # PyTorch's own functions have 1 / 6 as a float32 even in float64
    "hard_sigmoid": lambda x: torch.clamp((x + 3) / 6, 0, 1),
    "hard_swish": lambda x: x * torch.clamp((x + 3) / 6, 0, 1),
}
FROM_INPUT = ("gelu", "silu", "hard_swish")
FAR = (-1e300, -700, -100, 100, 700, 1e300, math.inf, -math.inf)


@pytest.mark.parametrize("fn", ACTIVATIONS)
def test_activations_against_torch(fn: str):
    """Values and gradients from -5 to 5, and values far out."""
    x, dy = leaf(np.concatenate([normal(1, 200) * 2, [0, 1e-300, -1e-300, 1e-9]])), normal(2, 204)
    y = ACTIVATIONS[fn](x)
    y.backward(torch.tensor(dy))  # pyright: ignore[reportUnknownMemberType]
    matches(op("activation", {"fn": fn}, x=x.detach().numpy())["y"], y)
    if fn not in FROM_INPUT:
        matches(op("activation_grad", {"fn": fn}, dy=dy, y=y.detach().numpy())["dx"], x.grad)
    matches(op("activation_grad", {"fn": fn}, dy=dy, x=x.detach().numpy())["dx"], x.grad)
    # PyTorch's softplus is x from 20 on
    far = array([value for value in FAR if fn != "softplus" or abs(value) != 700])
    got = op("activation", {"fn": fn}, x=far)["y"]
    np.testing.assert_allclose(got, ACTIVATIONS[fn](torch.tensor(far)).numpy(), rtol=REFERENCE_RTOL, atol=0)


@pytest.mark.parametrize("shape", [(3, 1), (2, 7), (2, 3, 2, 5)])
def test_softmax_channels_against_torch(shape: tuple[int, ...]):
    """Values and gradients over the last axis, with inputs whose exponentials overflow."""
    x, dy = leaf(normal(1, *shape) * 300), normal(2, *shape)
    y = torch.softmax(x, dim=-1)
    y.backward(torch.tensor(dy))  # pyright: ignore[reportUnknownMemberType]
    matches(op("softmax_channels", x=x.detach().numpy())["y"], y)
    matches(op("softmax_channels_grad", dy=dy, y=y.detach().numpy())["dx"], x.grad)


@pytest.mark.parametrize("fn", ACTIVATIONS)
def test_activations_keep_nan(fn: str):
    """NaN in is NaN out, and NaN gradients pass wherever the output is NaN."""
    assert np.isnan(op("activation", {"fn": fn}, x=array([math.nan]))["y"][0])
    of = {"x" if fn in FROM_INPUT else "y": array([math.nan])}
    assert np.isnan(op("activation_grad", {"fn": fn}, dy=array([math.nan]), **of)["dx"][0])


def torch_loss(fn: str, z: torch.Tensor, y: torch.Tensor, reduction: str) -> torch.Tensor:
    """One loss a row; PyTorch's cross entropy takes class numbers and probabilities alike."""
    if fn == "softmax_cross_entropy":
        return functional.cross_entropy(z, y, reduction=reduction)
    pointwise = {"bce": functional.binary_cross_entropy_with_logits, "mse": functional.mse_loss}[fn]
    return pointwise(z, y, reduction="none").mean(dim=1) if reduction == "none" else pointwise(z, y)


@pytest.mark.parametrize(("M", "N"), [(1, 1), (1, 5), (7, 1), (9, 4), (16, 10)])
@pytest.mark.parametrize(
    ("fn", "scale"), [(fn, s) for fn in ("bce", "mse", "softmax_cross_entropy") for s in (1, 300)]
)
def test_losses_against_torch(fn: str, scale: float, M: int, N: int):
    """Row losses, their mean and its gradient, with logits so large that exp would overflow float32."""
    z = leaf(normal(M * N, M, N) * scale)
    y = np.random.default_rng(N).random((M, N))
    if fn == "softmax_cross_entropy":
        y /= y.sum(axis=1, keepdims=True)
    check_loss(fn, "values", z, torch.tensor(y), y)


@pytest.mark.parametrize("scale", [1, 300])
def test_class_numbers_against_torch(scale: float):
    """softmax_cross_entropy of class numbers."""
    z = leaf(normal(5, 20, 7) * scale)
    y = np.random.default_rng(3).integers(0, 7, 20)
    check_loss("softmax_cross_entropy", "index", z, torch.tensor(y), y.astype(np.float64))


def check_loss(fn: str, labels: str, z: torch.Tensor, target: torch.Tensor, y: Array) -> None:
    rows, mean = torch_loss(fn, z, target, "none"), torch_loss(fn, z, target, "mean")
    mean.backward()  # pyright: ignore[reportUnknownMemberType]
    logits, attrs = z.detach().numpy(), {"fn": fn, "labels": labels}
    matches(op("loss", attrs, z=logits, target=y)["loss"], rows)
    matches(op("loss_grad", attrs, z=logits, target=y)["dz"], z.grad)
    assert call(PROBE, "lossMean", fn, logits, y, labels) == pytest.approx(mean.item(), rel=REFERENCE_RTOL)

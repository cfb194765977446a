"""Normalization in browser_runtime/reference/ against PyTorch in float64: values, autograd's gradients, running statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from .test_reference import A, Array, B, close, op

EPS = 1e-3


def leaf(*shape: int, seed: int) -> torch.Tensor:
    values = np.random.default_rng(seed).normal(size=shape)
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def array(tensor: torch.Tensor | None) -> Array:
    assert tensor is not None, "autograd gave no gradient"
    return tensor.detach().numpy()


def channels_first(x: torch.Tensor) -> torch.Tensor:
    return x.movedim(-1, 1)


def backward(y: torch.Tensor) -> Array:
    """Send a gradient back through it, and return that."""
    dy = np.random.default_rng(9).normal(size=tuple(y.shape))
    y.backward(torch.tensor(dy))  # pyright: ignore[reportUnknownMemberType]
    return dy


def test_rows_by_hand():
    """Rows 1 2 3, 4 5 6 and 7 8 9 have variance 2/3; with an eps of 1/3 the deviation is 1."""
    sets = {"pixels": 1, "channels": 3, "groups": 1, "pixelwise": True, "eps": 1 / 3}
    s = op("sample_norm_statistics", sets, x=A)["s"]
    close(s, [[[2, 1]], [[5, 1]], [[8, 1]]])
    gamma, beta = np.array([1.0, 2, 3]), np.array([10.0, 20, 30])
    close(op("sample_norm", sets, x=A, s=s, gamma=gamma, beta=beta)["y"], [[9, 20, 33]] * 3)
    sums = op("sample_norm_grad_sums", sets, x=A, s=s, dy=B, gamma=gamma)["sums"]
    close(sums, [[[7 / 3, 5 / 3]], [[2 / 3, 0]], [[2, 0]]])
    dx = op("sample_norm_grad_input", sets, x=A, s=s, sums=sums, dy=B, gamma=gamma)["dx"]
    close(dx, [[1 / 3, -7 / 3, 2], [-2 / 3, 4 / 3, -2 / 3], [1, -2, 1]])
    weights = op("sample_norm_grad_weights", sets, x=A, s=s, dy=B)
    close(weights["gamma"], [-4, 0, 3])
    close(weights["beta"], [4, 1, 3])


def test_columns_by_hand():
    """Columns 1 4 7, 2 5 8 and 3 6 9 have variance 6, 9 over n - 1; with an eps of 3 the deviation is 3."""
    attrs = {"pixels": 1, "channels": 3, "eps": 3}
    running = {"running_mean": np.zeros(3), "running_var": np.ones(3)}
    found = op("batch_norm_statistics", attrs | {"momentum": 0.25}, x=A, **running)
    close(found["mean"], [4, 5, 6])
    close(found["variance"], [6, 6, 6])
    close(found["running_mean"], [1, 1.25, 1.5])
    close(found["running_var"], [3, 3, 3])
    statistics = {"mean": found["mean"], "variance": found["variance"]}
    gamma, beta = np.array([1.0, 2, 3]), np.array([10.0, 20, 30])
    y = op("batch_norm", attrs, x=A, gamma=gamma, beta=beta, **statistics)["y"]
    close(y, [[9, 18, 27], [10, 20, 30], [11, 22, 33]])
    weights = op("batch_norm_grad_weights", attrs, x=A, dy=B, **statistics)
    close(weights["gamma"], [2, 0, -1])
    close(weights["beta"], [4, 1, 3])
    sums = {"dgamma": weights["gamma"], "dbeta": weights["beta"]}
    dx = op("batch_norm_grad_input", attrs, x=A, dy=B, gamma=gamma, **statistics, **sums)["dx"]
    close(dx, [[1 / 9, -2 / 9, 2 / 3], [-4 / 9, 4 / 9, -1], [1 / 3, -2 / 9, 1 / 3]])
    close(
        op("batch_norm_grad_scale", attrs, variance=found["variance"], dy=B, gamma=gamma)["dx"], B * gamma / 3
    )


SHAPES = [(1, 3), (7, 12), (1, 1, 3, 6), (3, 4, 5, 6), (2, 7, 6)]


def check_sample_norm(x: torch.Tensor, y: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor, sets: dict[str, Any]) -> None:  # fmt: skip
    dy = backward(y)
    read = {"x": array(x), "gamma": array(gamma), "beta": array(beta)}
    s = op("sample_norm_statistics", sets, x=read["x"])["s"]
    close(op("sample_norm", sets, s=s, **read)["y"], array(y))
    of_dy = {"x": read["x"], "s": s, "dy": dy}
    sums = op("sample_norm_grad_sums", sets, gamma=read["gamma"], **of_dy)["sums"]
    close(op("sample_norm_grad_input", sets, sums=sums, gamma=read["gamma"], **of_dy)["dx"], array(x.grad))
    weights = op("sample_norm_grad_weights", sets, **of_dy)
    close(weights["gamma"], array(gamma.grad))
    close(weights["beta"], array(beta.grad))


@pytest.mark.parametrize("shape", SHAPES)
def test_layer_norm(shape: tuple[int, ...]):
    """Over the last axis."""
    x, gamma, beta = leaf(*shape, seed=1), leaf(shape[-1], seed=2), leaf(shape[-1], seed=3)
    y = functional.layer_norm(x, shape[-1:], gamma, beta, EPS)
    sets = {
        "pixels": int(np.prod(shape[1:-1])),
        "channels": shape[-1],
        "groups": 1,
        "pixelwise": True,
        "eps": EPS,
    }
    check_sample_norm(x, y, gamma, beta, sets)


@pytest.mark.parametrize(
    ("shape", "groups"),
    [(shape, groups) for shape in SHAPES for groups in (1, 3) if (shape, groups) != ((1, 3), 3)],
)
def test_group_norm(shape: tuple[int, ...], groups: int):
    """Over groups of channels and all pixels; PyTorch takes no group of one value."""
    x, gamma, beta = leaf(*shape, seed=1), leaf(shape[-1], seed=2), leaf(shape[-1], seed=3)
    y = functional.group_norm(channels_first(x), groups, gamma, beta, EPS).movedim(1, -1)
    sets = {
        "pixels": int(np.prod(shape[1:-1])),
        "channels": shape[-1],
        "groups": groups,
        "pixelwise": False,
        "eps": EPS,
    }
    check_sample_norm(x, y, gamma, beta, sets)


@pytest.mark.parametrize("momentum", [0, 0.1, 1])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != (1, 3)])
def test_batch_norm(shape: tuple[int, ...], momentum: float):
    """In training, the running statistics too; by given statistics, as in evaluation and in a frozen layer."""
    x, gamma, beta = leaf(*shape, seed=1), leaf(shape[-1], seed=2), leaf(shape[-1], seed=3)
    mean, variance = leaf(shape[-1], seed=4).detach(), leaf(shape[-1], seed=5).detach() ** 2
    given, attrs = (
        {"running_mean": mean.numpy().copy(), "running_var": variance.numpy().copy()},
        {"pixels": int(np.prod(shape[1:-1])), "channels": shape[-1], "eps": EPS},
    )
    read = {"x": array(x), "gamma": array(gamma), "beta": array(beta)}

    still = functional.batch_norm(channels_first(x), mean, variance, gamma, beta, False, eps=EPS).movedim(
        1, -1
    )
    dy = backward(still)
    known = {"mean": given["running_mean"], "variance": given["running_var"]}
    close(op("batch_norm", attrs, **read, **known)["y"], array(still))
    close(
        op("batch_norm_grad_scale", attrs, variance=known["variance"], dy=dy, gamma=read["gamma"])["dx"],
        array(x.grad),
    )

    for leaf_ in (x, gamma, beta):
        leaf_.grad = None
    y = functional.batch_norm(channels_first(x), mean, variance, gamma, beta, True, momentum, EPS).movedim(
        1, -1
    )
    dy = backward(y)
    found = op("batch_norm_statistics", attrs | {"momentum": momentum}, x=read["x"], **given)
    close(found["running_mean"], mean.numpy())
    close(found["running_var"], variance.numpy())
    statistics = {"mean": found["mean"], "variance": found["variance"]}
    close(op("batch_norm", attrs, **read, **statistics)["y"], array(y))
    weights = op("batch_norm_grad_weights", attrs, x=read["x"], dy=dy, **statistics)
    close(weights["gamma"], array(gamma.grad))
    close(weights["beta"], array(beta.grad))
    sums = {"dgamma": weights["gamma"], "dbeta": weights["beta"]}
    close(
        op("batch_norm_grad_input", attrs, x=read["x"], dy=dy, gamma=read["gamma"], **statistics, **sums)[
            "dx"
        ],
        array(x.grad),
    )

"""The reference's convolution and pooling against PyTorch in float64, over strides, paddings, dilations and odd sizes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from ..kernels.layer_models import MODELS
from ..kernels.layer_models.linear import transposed
from ..kernels.windows import Window
from ..tolerances import REFERENCE_RTOL
from .test_reference import op
from .test_reference_torch import leaf, matches, normal

torch.set_num_threads(1)  # so small a convolution is slower in two threads, and far slower on busy cores

STRIDES = (1, 2, (2, 3))
DILATIONS = (1, 2, (3, 1))
PADDINGS = ("valid", "same", [[1, 0], [2, 1]], [[0, 3], [1, 1]])

SHAPES = [
    # rows, height, width, channels, filters, window
    (1, 1, 1, 1, 1, (1, 1)),
    (2, 7, 5, 3, 4, (3, 3)),
    (1, 9, 6, 1, 2, (2, 3)),
    (3, 6, 11, 5, 1, (1, 4)),
    (2, 8, 8, 2, 3, (5, 2)),
]


def geometry(window: Window, channels: int, filters: int) -> dict[str, Any]:
    """The attributes of the engine's ops."""
    return {
        "taps": window.taps, "stride": window.stride, "dilation": window.dilation, "padding": window.padding,
        "input": [*window.input, channels], "output": [*window.output, filters], "groups": window.groups,
    }  # fmt: skip


def padded(x: torch.Tensor, window: Window, value: float = 0.0) -> torch.Tensor:
    """[M, C, H, W] with what the windows read around it, so that PyTorch needs no padding of its own."""
    edges: list[int] = []
    for axis in (1, 0):
        extent = (window.taps[axis] - 1) * window.dilation[axis] + 1
        needed = (window.output[axis] - 1) * window.stride[axis] + extent
        before = window.padding[axis]
        edges += [before, needed - window.input[axis] - before]  # negative: lines that no window reads
    return functional.pad(x, edges, value=value)


def nchw(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 3, 1, 2)


@pytest.mark.parametrize("shape", SHAPES)
def test_conv2d_against_torch(shape: tuple[int, int, int, int, int, tuple[int, int]]):
    """Value and all three gradients, for every stride, dilation and padding whose window fits."""
    rows, height, width, channels, filters, kernel = shape
    checked = 0
    for stride, dilation, padding in product(STRIDES, DILATIONS, PADDINGS):
        layer = {
            "type": "conv2d",
            "kernel": kernel,
            "stride": stride,
            "dilation": dilation,
            "padding": padding,
        }
        window = Window.of_layer(layer, (height, width))
        if min(window.output) < 1:
            continue
        x, w, b = leaf(normal(1, rows, height, width, channels)), leaf(normal(2, *kernel, channels, filters)), leaf(normal(3, filters))  # fmt: skip
        dy = normal(4, rows, *window.output, filters)
        y = functional.conv2d(
            padded(nchw(x), window),
            w.permute(3, 2, 0, 1).contiguous(),
            b,
            stride=window.stride,
            dilation=window.dilation,
        ).permute(0, 2, 3, 1)
        y.backward(torch.tensor(dy))  # pyright: ignore[reportUnknownMemberType]
        attrs, inputs = geometry(window, channels, filters), {"x": x.detach().numpy(), "kernel": w.detach().numpy()}  # fmt: skip
        matches(op("conv2d", attrs, **inputs, bias=b.detach().numpy())["y"], y)
        matches(op("conv2d_grad_input", attrs, dy=dy, kernel=inputs["kernel"])["dx"], x.grad)
        weights = op("conv2d_grad_weights", attrs, x=inputs["x"], dy=dy)
        matches(weights["kernel"], w.grad)
        matches(weights["bias"], b.grad)
        checked += 1
    assert checked >= 9


@pytest.mark.parametrize(
    ("channels", "filters", "groups"), [(2, 4, 2), (6, 9, 3), (5, 5, 5), (4, 8, 4), (8, 8, 2)]
)
def test_groups_against_torch(channels: int, filters: int, groups: int):
    """Value and all three gradients, depthwise and with several filters a channel too."""
    layer = {
        "type": "conv2d",
        "kernel": (3, 2),
        "stride": (1, 2),
        "dilation": 2,
        "padding": "same",
        "groups": groups,
    }
    window = Window.of_layer(layer, (6, 7))
    x, w, b = leaf(normal(1, 2, 6, 7, channels)), leaf(normal(2, 3, 2, channels // groups, filters)), leaf(normal(3, filters))  # fmt: skip
    dy = normal(4, 2, *window.output, filters)
    kernel = w.permute(3, 2, 0, 1).contiguous()
    y = functional.conv2d(padded(nchw(x), window), kernel, b, window.stride, 0, window.dilation, groups)
    y = y.permute(0, 2, 3, 1)
    y.backward(torch.tensor(dy))  # pyright: ignore[reportUnknownMemberType]
    attrs, inputs = geometry(window, channels, filters), {"x": x.detach().numpy(), "kernel": w.detach().numpy()}  # fmt: skip
    matches(op("conv2d", attrs, **inputs, bias=b.detach().numpy())["y"], y)
    matches(op("conv2d_grad_input", attrs, dy=dy, kernel=inputs["kernel"])["dx"], x.grad)
    weights = op("conv2d_grad_weights", attrs, x=inputs["x"], dy=dy)
    matches(weights["kernel"], w.grad)
    matches(weights["bias"], b.grad)


@pytest.mark.parametrize("padding", [*PADDINGS, [[2, 2], [2, 2]]])
@pytest.mark.parametrize("dilation", DILATIONS)
@pytest.mark.parametrize("stride", STRIDES)
def test_transposed_against_torch(stride: Any, dilation: Any, padding: Any):
    """Value and all three gradients of what PyTorch's conv_transpose2d gives for explicit padding, and of TensorFlow's sizes."""
    layer = {"kernel": (3, 2), "stride": stride, "dilation": dilation, "padding": padding, "filters": 5}
    window = transposed(layer, (3, 4))
    if min(window.input) < 1:
        pytest.fail("the case leaves nothing")
    x, w, b = leaf(normal(1, 2, 3, 4, 2)), leaf(normal(2, 3, 2, 2, 5)), leaf(normal(3, 5))
    dy = normal(4, 2, *window.input, 5)
    y = MODELS["conv2d_transpose"].torch(layer, {"kernel": w, "bias": b}, [x])
    y.backward(torch.tensor(dy))  # pyright: ignore[reportUnknownMemberType]
    attrs = {
        "taps": window.taps, "stride": window.stride, "dilation": window.dilation, "padding": window.padding,
        "input": [3, 4, 2], "output": [*window.input, 5], "groups": 1, "transposed": True,
    }  # fmt: skip
    inputs = {"x": x.detach().numpy(), "kernel": w.detach().numpy()}
    matches(op("conv2d", attrs, **inputs, bias=b.detach().numpy())["y"], y)
    matches(op("conv2d_grad_input", attrs, dy=dy, kernel=inputs["kernel"])["dx"], x.grad)
    weights = op("conv2d_grad_weights", attrs, x=inputs["x"], dy=dy)
    matches(weights["kernel"], w.grad)
    matches(weights["bias"], b.grad)


@pytest.mark.parametrize(("symmetric", "longer"), [(0, 0), (1, 0), (1, 1)])
def test_transposed_with_padding_of_torch_itself(symmetric: int, longer: int):
    """Where PyTorch can leave out by itself, nothing of ours stands between; its output_padding leaves out less behind."""
    x, w = normal(1, 2, 4, 3, 3), normal(2, 3, 3, 3, 5)
    y = functional.conv_transpose2d(nchw(torch.tensor(x)), torch.tensor(w).permute(2, 3, 0, 1).contiguous(), stride=2, padding=symmetric, output_padding=longer)  # fmt: skip
    layer = {"kernel": 3, "stride": 2, "padding": [[symmetric, symmetric - longer]] * 2}
    assert transposed(layer, (4, 3)).input == tuple(y.shape[2:])
    attrs = {
        "taps": [3, 3], "stride": [2, 2], "dilation": [1, 1], "padding": [symmetric] * 2,
        "input": [4, 3, 3], "output": [*y.shape[2:], 5], "groups": 1, "transposed": True,
    }  # fmt: skip
    matches(op("conv2d", attrs, x=x, kernel=w, bias=None)["y"], y.permute(0, 2, 3, 1))


@pytest.mark.parametrize("symmetric", [0, 1, (2, 1)])
def test_conv2d_with_padding_of_torch_itself(symmetric: int | tuple[int, int]):
    """Where PyTorch can pad by itself, nothing of ours stands between."""
    vertical, horizontal = (symmetric, symmetric) if isinstance(symmetric, int) else symmetric
    layer = {"type": "conv2d", "kernel": 3, "stride": 2, "padding": [[vertical] * 2, [horizontal] * 2]}
    window = Window.of_layer(layer, (8, 7))
    x, w, b = normal(1, 2, 8, 7, 3), normal(2, 3, 3, 3, 5), normal(3, 5)
    y = functional.conv2d(
        nchw(torch.tensor(x)),
        torch.tensor(w).permute(3, 2, 0, 1).contiguous(),
        torch.tensor(b),
        stride=2,
        padding=symmetric,
    )
    matches(op("conv2d", geometry(window, 3, 5), x=x, kernel=w, bias=b)["y"], y.permute(0, 2, 3, 1))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("values", ["normal", "ties"])
def test_max_pool2d_against_torch(values: str, shape: tuple[int, int, int, int, int, tuple[int, int]]):
    """Value and gradient, also where several elements of a window are the largest: the first one takes the gradient."""
    rows, height, width, channels, _, size = shape
    checked = 0
    for stride, padding in product((1, 2, (2, 3), None), PADDINGS):
        if isinstance(padding, list) and any(
            edge >= extent for edges, extent in zip(padding, size, strict=True) for edge in edges
        ):
            continue
        window = Window.of_layer({"type": "max_pool2d", "size": size, "stride": stride, "padding": padding}, (height, width))  # fmt: skip
        if min(window.output) < 1:
            continue
        x = normal(1, rows, height, width, channels)
        inputs = leaf(np.floor(2 * x) if values == "ties" else x)
        dy = normal(2, rows, *window.output, channels)
        y = functional.max_pool2d(padded(nchw(inputs), window, -np.inf), window.taps, window.stride)
        y = y.permute(0, 2, 3, 1)
        y.backward(torch.tensor(dy))  # pyright: ignore[reportUnknownMemberType]
        attrs, given = geometry(window, channels, channels), inputs.detach().numpy()
        matches(op("max_pool2d", attrs, x=given)["y"], y)
        matches(op("max_pool2d_grad", attrs, x=given, dy=dy)["dx"], inputs.grad)
        checked += 1
    assert checked >= 4


def test_max_pool2d_keeps_nan_like_torch():
    """A NaN is the largest and takes the gradient; -infinity still wins over padding. Of two NaN PyTorch takes the last."""
    window = Window.of_layer({"type": "max_pool2d", "size": 2, "stride": 1, "padding": "same"}, (4, 4))
    x = normal(1, 1, 4, 4, 2)
    x[0, 1, 1, 0] = x[0, 3, 3, 0] = np.nan
    x[0, 2:, 2:, 1] = -np.inf
    x[0, 0, 0, 1] = np.inf
    inputs, dy = leaf(x), normal(2, 1, 4, 4, 2)
    y = functional.max_pool2d(padded(nchw(inputs), window, -np.inf), 2, 1).permute(0, 2, 3, 1)
    y.backward(torch.tensor(dy))  # pyright: ignore[reportUnknownMemberType]
    attrs = geometry(window, 2, 2)
    got = op("max_pool2d", attrs, x=x)["y"]
    np.testing.assert_array_equal(got, y.detach().numpy())
    assert np.isnan(got).sum() == 8
    dx, wanted = op("max_pool2d_grad", attrs, x=x, dy=dy)["dx"], inputs.grad
    assert wanted is not None
    np.testing.assert_allclose(dx[..., 0], wanted.numpy()[..., 0], rtol=REFERENCE_RTOL)
    # where all of a window is -infinity, PyTorch may choose the padding; an element of the image takes the gradient here
    assert dx[..., 1].sum() == pytest.approx(dy[..., 1].sum(), rel=REFERENCE_RTOL)

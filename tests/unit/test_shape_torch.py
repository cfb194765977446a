"""The reference's pooling by means and its moved elements against PyTorch in float64: values and autograd's gradients."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

from ..kernels.layer_models import MODELS
from ..kernels.layer_models.shape import sides
from ..kernels.shape_nets import avg_pool, crop, upsample, zero_pad
from ..kernels.windows import Window, pair
from .test_reference import Array, op
from .test_reference_torch import leaf, matches, normal

torch.set_num_threads(1)  # so small an image is slower in two threads, and far slower on busy cores


def in_torch(layer: dict[str, Any], *xs: Array) -> tuple[torch.Tensor, list[torch.Tensor], Array]:
    """What PyTorch makes of a layer's inputs, leaves with their gradients, and the gradient that went back."""
    leaves = [leaf(x) for x in xs]
    y = MODELS[layer["type"]].torch(layer, {}, leaves)
    dy = normal(9, *y.shape)
    y.backward(torch.tensor(dy))  # pyright: ignore[reportUnknownMemberType]
    return y, leaves, dy


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 7, 5, 3), (1, 9, 6, 2), (3, 4, 11, 1)])
def test_avg_pool2d_against_torch(shape: tuple[int, ...]):
    """Every size, stride and padding whose window fits."""
    checked = 0
    for size, stride, padding in product((1, 2, (3, 2)), (1, (2, 3)), ("valid", "same", [[1, 0], [0, 1]])):
        layer = avg_pool(size, stride=stride, padding=padding)
        window = Window.of_layer(layer, shape[1:])
        inside = padding in ("valid", "same") or min(pair(size)) > 1
        if min(window.output) < 1 or not inside:
            continue
        x = normal(1, *shape)
        y, (moved,), dy = in_torch(layer, x)
        attrs = {
            "taps": window.taps, "stride": window.stride, "padding": window.padding,
            "input": shape[1:], "output": (*window.output, shape[3]),
        }  # fmt: skip
        matches(op("avg_pool2d", attrs, x=x)["y"], y)
        matches(op("avg_pool2d_grad", attrs, dy=dy)["dx"], moved.grad)
        checked += 1
    assert checked >= 4


@pytest.mark.parametrize("size", [1, 2, (1, 3), (3, 2)])
def test_upsample2d_against_torch(size: int | tuple[int, int]):
    """Repeated pixels, and the sums of their gradients."""
    x = normal(1, 2, 3, 4, 5)
    y, (moved,), dy = in_torch(upsample(size), x)
    rows, columns = pair(size)
    attrs = {
        "taps": (rows, columns), "stride": (rows, columns), "padding": (0, 0),
        "input": (3 * rows, 4 * columns, 5), "output": (3, 4, 5),
    }  # fmt: skip
    matches(op("upsample2d", attrs, x=x)["y"], y)
    matches(op("upsample2d_grad", attrs, dy=dy)["dx"], moved.grad)


@pytest.mark.parametrize("layer", [zero_pad(1), zero_pad([[0, 2], [3, 1]]), crop(1), crop([[2, 0], [0, 3]])])
def test_padding_and_cropping_against_torch(layer: dict[str, Any]):
    """Lines put around or taken away, and back."""
    x = normal(1, 2, 5, 6, 3)
    y, (moved,), dy = in_torch(layer, x)
    (above, _), (left, _) = sides(layer.get("padding", layer.get("cropping")))
    offset = [-above, -left] if layer["type"] == "zero_pad2d" else [above, left]
    there = {"input": x.shape[1:], "output": tuple(y.shape[1:]), "offset": offset}
    back = {"input": tuple(y.shape[1:]), "output": x.shape[1:], "offset": [-lines for lines in offset]}
    matches(op("shift2d", there, x=x)["y"], y)
    matches(op("shift2d", back, x=dy)["y"], moved.grad)


def test_concat_and_multiply_against_torch():
    """Two inputs, and both gradients."""
    a, b = normal(1, 2, 3, 4, 5), normal(2, 2, 3, 4, 2)
    y, (to_a, to_b), dy = in_torch({"type": "concat"}, a, b)
    matches(op("concat", a=a, b=b)["y"], y)
    matches(op("slice_channels", {"first": 0, "count": 5}, x=dy)["y"], to_a.grad)
    matches(op("slice_channels", {"first": 5, "count": 2}, x=dy)["y"], to_b.grad)
    b = normal(2, *a.shape)
    y, (to_a, to_b), dy = in_torch({"type": "multiply"}, a, b)
    matches(op("multiply", a=a, b=b)["y"], y)
    matches(op("multiply", a=dy, b=b)["y"], to_a.grad)
    matches(op("multiply", a=dy, b=a)["y"], to_b.grad)

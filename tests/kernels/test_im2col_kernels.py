"""Convolution as one product with what its windows hold, wherever it can be: the same oracle, devices and windows as test_conv_kernels.py."""

from __future__ import annotations

from typing import Any

import pytest

from .cnns import Layer, Shape, conv, conv1d, pool
from .harness import BrowserPage, PageError
from .specs import ACTIVATIONS, OPTIMIZERS
from .test_conv_kernels import WINDOWS, check
from .test_kernels import DEVICES, TARGETS_NEEDED, device_id, quick

IM2COL = {"convolution": "im2col"}
UPDATE = "conv2d_grad_weights.frag.glsl+update.frag.glsl"


def check_im2col(page: BrowserPage, shape: Shape, layers: list[Layer], rows: int = 5, *, device: dict[str, Any] | None = None, **net: Any) -> set[str]:  # fmt: skip
    """As check; every convolution takes patches."""
    kernels = check(page, shape, layers, rows, device=IM2COL | (device or {}), **net)
    assert kernels >= {"im2col.frag.glsl", "conv2d.frag.glsl", UPDATE}
    return kernels


@pytest.mark.parametrize(("activation", "optimizer"), [*zip(ACTIVATIONS, (*OPTIMIZERS, "adam"), strict=True)])
def test_activations_and_optimizers(browser_page: BrowserPage, activation: str, optimizer: str):
    """Before and behind a pooling, where a gradient goes back through it; a last short batch of 3 rows."""
    layers = [conv(5, activation=activation), pool(2), conv(6, 2, activation), conv(3, (1, 2), activation)]
    kernels = check_im2col(browser_page, (9, 8, 3), layers, 7, batch_size=4, batch=1, optimizer=optimizer)
    assert "conv2d_grad_input.frag.glsl" in kernels


@pytest.mark.parametrize(
    "device", [pytest.param(d, id=device_id(d), marks=() if quick(d) else pytest.mark.full) for d in DEVICES]
)
def test_devices(browser_page: BrowserPage, device: dict[str, Any]):
    """Both formats, both ways of fetching, 8 to 1 render targets, with the largest optimizer that fits."""
    layers = [conv(6, activation="tanh"), pool(2), conv(5, 2)]
    net: dict[str, Any] = {"batch_size": 8, "batch": 1, "device": device}
    fits = [name for name, needed in TARGETS_NEEDED.items() if needed <= device["maxDrawBuffers"]]
    if fits:
        check_im2col(browser_page, (7, 6, 3), layers, 13, optimizer=fits[-1], **net)
    else:
        with pytest.raises(PageError, match="render targets; the device has"):
            check_im2col(browser_page, (7, 6, 3), layers, 13, **net)


@pytest.mark.parametrize(("shape", "layer"), WINDOWS)
def test_windows(browser_page: BrowserPage, shape: Shape, layer: Layer):
    """Stride, dilation, `same` and uneven padding, odd channels, behind another layer; a last batch of one row."""
    kernels = check_im2col(
        browser_page, shape, [conv(shape[2], 1, "tanh"), layer], 6, batch_size=5, batch=1, optimizer="adam"
    )
    assert "conv2d_grad_input.frag.glsl" in kernels


@pytest.mark.full
@pytest.mark.parametrize("targets", [8, 4, 2])
@pytest.mark.parametrize(("shape", "layer"), WINDOWS)
def test_windows_on_the_data(browser_page: BrowserPage, shape: Shape, layer: Layer, targets: int):
    """As the first layer, with as many render targets; one row in all, and 19."""
    for rows in (1, 19):
        check_im2col(browser_page, shape, [layer], rows, device={"maxDrawBuffers": targets})


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 7])
def test_a_sequence(browser_page: BrowserPage, channels: int):
    """One dimension, any channels, gradients that are stored, without a bias."""
    layers = [conv1d(5, 3, stride=2, padding="same"), conv1d(3, 5, "tanh", use_bias=False)]
    kernels = check(
        browser_page, (21, channels), layers, 7, device=IM2COL, clip={"global_norm": 0.5}, batch_size=4
    )
    assert kernels >= {
        "im2col.frag.glsl",
        "conv2d.frag.glsl",
        "conv2d_grad_weights.frag.glsl+sum_parts.frag.glsl",
    }

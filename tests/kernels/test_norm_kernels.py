"""Layer, group and batch normalization: every kernel against float64, gradients of whole nets, running statistics against PyTorch."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pytest

from ..tolerances import BY_HAND_TOL
from .cnns import FLATTEN, Layer, Shape, add, cnn, conv, dense, images_for, pool, weights_of
from .harness import BrowserPage, PageError
from .specs import LOSSES, OPTIMIZERS
from .steps import check_padding, check_reduction, check_values, inspect
from .test_gradients import check as check_gradients
from .test_kernels import DEVICES, TARGETS_NEEDED, device_id, quick

Net = tuple[Shape, list[Layer]]


def norm(kind: str, activation: str = "linear", **fields: Any) -> Layer:
    """A normalization of one of the three kinds."""
    return {"type": f"{kind}_norm", "activation": activation, **fields}


NETS: dict[str, Net] = {
    "layer": ((7,), [dense(9), norm("layer", "tanh"), dense(6, "relu"), norm("layer"), dense(3)]),
    "layer of the input": ((7,), [norm("layer"), dense(9, "tanh"), dense(3)]),
    "layer of pixels": ((5, 4, 3), [conv(6, 2), norm("layer", "relu"), conv(5, 2, "tanh"), norm("layer"), FLATTEN, dense(3)]),
    "group of rows": ((7,), [dense(12), norm("group", "tanh", groups=3), dense(10, "tanh"), norm("group", groups=2), dense(3)]),
    "group": ((5, 4, 3), [conv(8, 2), norm("group", "relu", groups=2), conv(6, 2, "tanh", use_bias=False), norm("group", groups=2), FLATTEN, dense(3)]),
    "group of one channel": ((5, 4, 3), [norm("group", groups=3), conv(5, 2, "tanh"), norm("group", "tanh", groups=5), FLATTEN, dense(3)]),
    "batch": ((7,), [dense(9, use_bias=False), norm("batch", "tanh"), dense(6, "relu"), norm("batch"), dense(3)]),
    "batch of the input": ((7,), [norm("batch"), dense(9, "tanh"), dense(3)]),
    "batch of images": ((5, 4, 3), [conv(6, 2, use_bias=False), norm("batch", "relu"), conv(5, 2, "tanh"), norm("batch"), FLATTEN, dense(3)]),
    "residual": ((6, 5, 3), [
        conv(4, activation="linear", padding="same", use_bias=False), norm("batch", "relu"), conv(4, activation="linear", padding="same", use_bias=False), norm("batch"),
        add("batch_norm_1", "batch_norm_2", activation="relu"), pool(2), FLATTEN, dense(3),
    ]),
    "frozen batches": ((5, 4, 3), [conv(5, 2, "tanh"), norm("batch", "tanh", trainable=False), conv(4, 2, "tanh"), norm("batch", "tanh", trainable=False), FLATTEN, dense(3)]),
    "frozen gammas": ((5, 4, 3), [conv(6, 2, "tanh"), norm("group", "tanh", groups=2, trainable=False), norm("layer", trainable=False), FLATTEN, dense(3)]),
    "flattened layer": ((3, 2, 3), [conv(5, (2, 1), "tanh"), FLATTEN, norm("layer", "tanh"), dense(3)]),
    "flattened groups": ((3, 2, 3), [conv(5, (2, 1), "tanh"), FLATTEN, norm("group", "tanh", groups=4), dense(3)]),
    "flattened batch": ((3, 2, 3), [conv(5, (2, 1), "tanh"), FLATTEN, norm("batch", "tanh"), dense(3)]),
    "flattened frozen batch": ((3, 3, 5), [conv(6, 2, "tanh"), FLATTEN, norm("batch", "tanh", trainable=False), dense(3)]),
    "flattened input": ((3, 2, 6), [FLATTEN, norm("group", "tanh", groups=3), dense(3)]),
    "all in a row": ((4, 3, 5), [norm("batch"), norm("layer", "tanh"), norm("group", "tanh", groups=5), norm("batch", "tanh"), FLATTEN, dense(3)]),
}  # fmt: skip


def check(
    page: BrowserPage, net: str | Net, rows: int, loss: str = "mse", *, batch: int = 0, device: dict[str, Any] | None = None,
    offset: float = 0, **train: Any,
) -> set[str]:  # fmt: skip
    """Check every kernel of the third step."""
    spec = cnn(*(NETS[net] if isinstance(net, str) else net), loss, **train)
    x, y = images_for(spec, rows)
    x += np.float32(offset)
    step = inspect(page, spec, x, y, weights=weights_of(spec), steps=2, batch=batch, device=device or {})
    check_padding(step)
    check_reduction(step)
    return set(check_values(step))


def sweep(cases: Iterable[Any], *quick: Any) -> list[Any]:
    """Parameters of a test: the quick ones always, the others in the full run."""
    return [pytest.param(*case, marks=() if case in quick else pytest.mark.full) for case in cases]


@pytest.mark.parametrize("net", NETS)
def test_kernels(browser_page: BrowserPage, net: str):
    """Every kernel of each net, in a last short batch."""
    check(browser_page, net, 7, batch_size=4, batch=1, optimizer="adam")


@pytest.mark.parametrize("net", ["all in a row", "batch of the input", "layer of the input"])
def test_optimizers(browser_page: BrowserPage, net: str):
    """gamma and beta are updated as other parameters are; behind the input, in the draw that adds the parts of their gradient."""
    for optimizer in OPTIMIZERS:
        check(browser_page, net, 7, batch_size=4, batch=1, optimizer=optimizer)


@pytest.mark.parametrize(
    "device", [pytest.param(d, id=device_id(d), marks=() if quick(d) else pytest.mark.full) for d in DEVICES]
)
@pytest.mark.parametrize(
    "net", sweep([("layer of pixels",), ("group",), ("residual",), ("all in a row",)], ("all in a row",))
)
def test_devices(browser_page: BrowserPage, net: str, device: dict[str, Any]):
    """Both formats, both ways of fetching, 8 to 1 render targets, with the largest optimizer that fits."""
    fits = [name for name, needed in TARGETS_NEEDED.items() if needed <= device["maxDrawBuffers"]]
    if fits:
        check(browser_page, net, 13, optimizer=fits[-1], batch_size=8, batch=1, device=device)
    else:
        with pytest.raises(PageError, match="render targets; the device has"):
            check(browser_page, net, 13, device=device)


CHANNELS = (1, 3, 4, 5, 8, 17)


def norms_of(values: int, channels: int, rows: int) -> list[Layer]:
    """Every normalization of `values` pixels of so many channels that has 3 values or more: 2 become 1 and -1, whatever they are."""
    groups = [g for g in range(1, channels + 1) if channels % g == 0 and values * channels // g > 2]
    found = [norm("group", "sigmoid", groups=count) for count in groups]
    found += [norm("layer", "sigmoid")] if channels > 2 else []
    return found + ([norm("batch", "sigmoid")] if rows * values > 2 else [])


@pytest.mark.parametrize(("channels", "rows"), sweep(product(CHANNELS, (1, 3, 9)), (5, 3), (8, 1)))
def test_rows_of_any_width(browser_page: BrowserPage, channels: int, rows: int):
    """Flat values: groups of every divisor of the channels, the whole row, the batch."""
    for layer in norms_of(1, channels, rows):
        check(browser_page, ((3,), [dense(channels), layer, dense(2)]), rows)


IMAGES = product(CHANNELS, [(1, 1), (1, 2), (3, 1), (7, 5)], (1, 6))


@pytest.mark.parametrize(
    ("channels", "size", "rows"), sweep(IMAGES, (3, (7, 5), 6), (5, (1, 2), 6), (1, (3, 1), 1))
)
def test_images_of_any_size(browser_page: BrowserPage, channels: int, size: tuple[int, int], rows: int):
    """Images from one pixel to lines that fill no texels."""
    for layer in norms_of(math.prod(size), channels, rows):
        check(browser_page, ((*size, 2), [conv(channels, 1, "tanh"), layer, FLATTEN, dense(2)]), rows)


LONG = [((21, 19), 8, 2), ((13, 40), 6, 2), ((33, 33), 3, 1), ((9, 9), 68, 1)]


@pytest.mark.parametrize(("size", "channels", "groups"), sweep(LONG, LONG[1]))
def test_long_sums(browser_page: BrowserPage, size: tuple[int, int], channels: int, groups: int):
    """Sums in parts that are merged: over the pixels of a sample, and over samples and pixels; a last short batch."""
    layers = [
        conv(channels, 1, "tanh"),
        norm("group", "tanh", groups=groups),
        norm("batch"),
        pool(4),
        FLATTEN,
        dense(2),
    ]
    kernels = check(browser_page, ((*size, 2), layers), 9, batch_size=6, batch=1)
    assert "sample_norm_statistics.frag.glsl+sample_norm_statistics.frag.glsl" in kernels
    assert "sample_norm_grad_sums.frag.glsl+sample_norm_grad_sums.frag.glsl" in kernels
    assert "batch_moments.frag.glsl+batch_norm_statistics.frag.glsl" in kernels
    assert "norm_grad_weights.frag.glsl+sum_parts.frag.glsl" in kernels


@pytest.mark.parametrize("kind", ["layer", "group", "batch"])
def test_values_far_from_zero(browser_page: BrowserPage, kind: str):
    """Of 3000 plus or minus 1, E[x^2] - E[x]^2 would have nothing left: its rounding alone is 1/2."""
    layer = norm(kind, "tanh", **({"groups": 1} if kind == "group" else {}))
    for rows, offset in ((9, 3000), (300, 200)):  # summed alone, and in parts
        check(browser_page, ((8,), [layer, dense(2)]), rows, offset=offset)


def test_long_batches(browser_page: BrowserPage):
    """Of flat values too; most of the parts of a last batch of 3 rows are empty."""
    for batch in (0, 1):
        check(
            browser_page,
            ((3,), [dense(9), norm("batch", "tanh"), dense(2)]),
            703,
            batch_size=700,
            batch=batch,
        )
    check(browser_page, ((3,), [dense(2100), norm("layer", "tanh"), dense(2)]), 5)


QUICK_GRADIENTS = ("layer of pixels", "group", "residual", "frozen batches", "layer", "flattened layer")


@pytest.mark.parametrize(
    ("net", "loss"), sweep(product(NETS, LOSSES), *((net, "mse") for net in QUICK_GRADIENTS))
)
def test_gradients(browser_page: BrowserPage, net: str, loss: str):
    """Central differences of the whole net: statistics depend on what they normalize."""
    spec = cnn(*NETS[net], loss, optimizer={"type": "sgd", "lr": 1.0}, steps=1)
    x, y = images_for(spec, 3 if math.prod(NETS[net][0]) > 20 else 11)
    check_gradients(browser_page, spec, x, y, (weights_of(spec, seed=seed) for seed in range(1, 5000)))


def test_one_value_is_its_own_mean(browser_page: BrowserPage):
    """A layer of one channel, or groups of one value, give beta and pass no gradient on."""
    for layer in (norm("layer"), norm("group", groups=1)):
        spec = cnn((2,), [dense(1), layer, dense(2)], optimizer={"type": "sgd", "lr": 1.0}, steps=1)
        x, y = images_for(spec, 5)
        weights = weights_of(spec)
        after = browser_page.call(
            "/tests/kernels/engine_page.js", "run", spec, x, y, {"initialWeights": weights}
        )["weights"]
        np.testing.assert_allclose(after["dense_1.kernel"], weights["dense_1.kernel"], atol=BY_HAND_TOL)

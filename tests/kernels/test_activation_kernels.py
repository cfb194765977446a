"""Activations in a real browser against float64: as functions over all of float32, in every kernel that takes them along, as layers of their own."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from ..tolerances import FLOAT32_ROUNDING, GELU_ROUNDINGS, MATH_MAX_ULP
from .cnns import FLATTEN, Layer, Shape, activation, add, cnn, conv, dense, images_for, pool, weights_of
from .curves import CURVES, VALUES
from .harness import BrowserPage, PageError
from .nets import forward, row_losses
from .steps import check_padding, check_reduction, check_values, inspect
from .test_gradients import check as check_gradients
from .test_kernels import DEVICES, TARGETS_NEEDED, assert_same_kind, device_id, quick
from .test_math import SMALLEST_NORMAL, sweep, ulp_error

FUNCTIONS = [name for name in VALUES if name not in ("linear", "relu", "sigmoid", "tanh")]
"""Those that test_kernels.py and test_conv_kernels.py do not run through."""
QUICK = ("gelu", "softmax", "hard_swish")
"""One that keeps its input, one over channels, one with kinks: for the quick run."""
SOME = [pytest.param(fn, marks=() if fn in QUICK else pytest.mark.full) for fn in FUNCTIONS]
log = logging.getLogger(__name__)  # pytest --log-cli-level=INFO shows the worst errors


# ---- over all of float32 --------------------------------------------------------------------------------------------


def evaluate(page: BrowserPage, name: str, x: Any) -> Any:
    scalars = ", ".join(f"tg_{name}(x.{lane})" for lane in "xyzw")
    job = {
        "includes": ["lib/math.glsl", "lib/curves.glsl"],
        "expression": f"vec4({scalars})",
        "dtype": "float32",
    }
    return page.call("/tests/kernels/fragment.js", "evaluate", job, x)


@pytest.mark.parametrize("name", ["leaky_relu", "elu", "silu", "hard_sigmoid", "hard_swish"])
def test_within_4_ulp_over_all_of_float32(browser_page: BrowserPage, name: str):
    """As lib/math.glsl promises; silu may be 0 where exp(x) is denormal, which is below 2^-119 in all."""
    x = sweep((3, 87.3365, 88.7228, 0.5), seed=len(name))
    got = evaluate(browser_page, name, x)
    with np.errstate(all="ignore"):
        true = CURVES[name].value(x.astype(np.float64))
        error = ulp_error(got, true, x)
    error[(np.abs(true) < 2.0**-119) & (got == 0)] = 0
    worst = int(np.argmax(error))
    log.info("%s: %.3f ULP at x = %r", name, error[worst], x[worst])
    assert error[worst] <= MATH_MAX_ULP, f"{error[worst]} ULP at x = {x[worst]!r}: got {got[worst]!r}"


@pytest.mark.parametrize("name", ["gelu", "gelu_slope", "silu_slope", "hard_swish_slope"])
def test_absolute_errors_over_all_of_float32(browser_page: BrowserPage, name: str):
    """Of gelu in roundings of x, of slopes in roundings of 1: their terms cancel."""
    x = sweep((3, 87.3365, 1.41421356, 5.6568), seed=len(name))
    x = x[np.isfinite(x)]
    got = evaluate(browser_page, name, x).astype(np.float64)
    curve = CURVES[name.removesuffix("_slope")]
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        true = curve.slope(wide) if name.endswith("_slope") else curve.value(wide)
        error = np.abs(got - true) / (FLOAT32_ROUNDING * (1.0 if name.endswith("_slope") else np.abs(wide)))
    error[(np.abs(true) < SMALLEST_NORMAL) & (got == 0)] = 0
    # the slope jumps at a kink, and is either one there
    error[np.isin(np.abs(x), np.abs(curve.kinks).astype(np.float32))] = 0
    worst = int(np.argmax(error))
    log.info("%s: %.3f roundings at x = %r", name, error[worst], x[worst])
    assert error[worst] <= GELU_ROUNDINGS, f"{error[worst]} roundings at x = {x[worst]!r}: got {got[worst]!r}"


# ---- in kernels -----------------------------------------------------------------------------------------------------


def check(
    page: BrowserPage, shape: Shape, layers: list[Layer], rows: int = 7, *, batch: int = 1,
    device: dict[str, Any] | None = None, **net: Any,
) -> set[str]:  # fmt: skip
    """Check every kernel of the third step of these layers; the last batch of 7 rows is one of 3."""
    spec = cnn(shape, layers, batch_size=4, **net)
    x, y = images_for(spec, rows)
    step = inspect(page, spec, x, y, weights=weights_of(spec), steps=2, batch=batch, device=device or {})
    check_padding(step)
    check_reduction(step)
    return set(check_values(step))


def image_net(fn: str) -> list[Layer]:
    """A function behind convolutions, a pooling, a sum, dense layers, and as a layer of its own; odd channels."""
    return [
        conv(5, 2, fn), activation(fn), conv(5, 3, fn, padding="same"), add("activation_1", "conv2d_2", activation=fn),
        pool(2, stride=1), activation(fn), FLATTEN, dense(6, fn), dense(5), activation(fn), dense(3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "fn", [pytest.param(fn, marks=() if fn in ("gelu", "softmax") else pytest.mark.full) for fn in FUNCTIONS]
)
def test_in_every_kernel(browser_page: BrowserPage, fn: str):
    """Where it rides along, forward and backward, and where it is a draw of its own."""
    kernels = check(browser_page, (6, 5, 2), image_net(fn), optimizer="adam")
    alone = "softmax_channels" if fn == "softmax" else "activation"
    assert kernels >= {f"{alone}.frag.glsl", f"{alone}_grad.frag.glsl"}


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_behind_dense_layers(browser_page: BrowserPage, fn: str):
    """The last one's gradient comes from the loss, which rides along or stands alone."""
    check(browser_page, (5,), [dense(7, fn), dense(6, fn)])


@pytest.mark.parametrize("fn", ["relu", "tanh"])
def test_layers_of_their_own(browser_page: BrowserPage, fn: str):
    """A layer of its own behind what has no activation, or one, and behind what others read too."""
    layers = [
        dense(6),
        activation(fn),
        dense(6, "tanh", inputs=["dense_1"]),
        add("activation_1", "dense_2"),
        activation(fn),
        dense(2),
    ]
    check(browser_page, (5,), layers, optimizer="momentum")
    check(
        browser_page,
        (4, 5, 3),
        [activation(fn), conv(3, 2, "linear"), activation(fn), pool(2), FLATTEN, activation(fn), dense(2)],
    )


def test_a_pooling_of_a_sum_with_the_input(browser_page: BrowserPage):
    """The gradient of the sum passes to one activation, which is not what was pooled."""
    check(browser_page, (5, 4, 3), [conv(3, 1, "tanh"), add("conv2d_1", "input"), pool(2), FLATTEN, dense(2)])


@pytest.mark.parametrize(
    "channels", [pytest.param(2, marks=pytest.mark.full), pytest.param(4, marks=pytest.mark.full), 5, 300]
)
def test_softmax_of_any_width(browser_page: BrowserPage, channels: int):
    """Over the channels of a pixel, and of flat rows; lanes past the last channel stay out of the sum."""
    check(browser_page, (3, 2, 2), [conv(channels, 1, "softmax"), FLATTEN, activation("softmax"), dense(2)])


@pytest.mark.parametrize(
    "device", [pytest.param(d, id=device_id(d), marks=() if quick(d) else pytest.mark.full) for d in DEVICES]
)
@pytest.mark.parametrize("fn", ["gelu", pytest.param("softmax", marks=pytest.mark.full)])
def test_devices(browser_page: BrowserPage, fn: str, device: dict[str, Any]):
    """Both formats, both ways of fetching, 8 to 1 render targets."""
    fits = [name for name, needed in TARGETS_NEEDED.items() if needed <= device["maxDrawBuffers"]]
    if fits:
        check(
            browser_page,
            (6, 5, 2),
            [conv(5, 2, fn), activation(fn), FLATTEN, dense(3)],
            device=device,
            optimizer=fits[-1],
        )
    else:
        with pytest.raises(PageError, match="render targets; the device has"):
            check(browser_page, (6, 5, 2), [conv(5, 2, fn), activation(fn), FLATTEN, dense(3)], device=device)


@pytest.mark.parametrize("fn", SOME)
def test_gradients(browser_page: BrowserPage, fn: str):
    """Central differences of the whole net."""
    net = [conv(3, 2, fn), FLATTEN, dense(6, fn), activation(fn), dense(3)]
    spec = cnn((3, 4, 2), net, optimizer={"type": "sgd", "lr": 1.0}, steps=1)
    x, y = images_for(spec, 3)
    check_gradients(browser_page, spec, x, y, (weights_of(spec, seed=seed) for seed in range(1, 2000)))


@pytest.mark.parametrize(
    "value",
    [np.nan, pytest.param(np.inf, marks=pytest.mark.full), pytest.param(-np.inf, marks=pytest.mark.full)],
)
@pytest.mark.parametrize("fn", SOME)
def test_non_finite_numbers_reach_the_loss(browser_page: BrowserPage, fn: str, value: float):
    """As they do in float64, and never into padding."""
    spec = cnn((4, 3, 2), [conv(3, 2, fn), FLATTEN, dense(5, fn), dense(3)])
    x, y = images_for(spec, 5)
    weights = weights_of(spec)
    weights["conv2d_1.bias"][1] = value
    step = inspect(browser_page, spec, x, y, weights=weights)
    check_padding(step)
    with np.errstate(all="ignore"):
        loss = float(row_losses("mse", forward(spec, weights, x), y).mean())
    assert_same_kind(step["sums"]["loss"], loss)

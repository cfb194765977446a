"""shaders/lib/math.glsl over all of float32, in a real browser, against float64."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ..tolerances import MATH_MAX_ULP
from .harness import BrowserPage

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

log = logging.getLogger(__name__)  # pytest --log-cli-level=INFO shows the worst errors

SMALLEST_NORMAL = 2.0**-126


def sigmoid(x: Float64) -> Float64:
    """1 / (1 + exp(-x)), relatively exact on both sides."""
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1 + e)


def softplus(x: Float64) -> Float64:
    """log(1 + exp(x)), relatively exact on both sides."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def erf(x: Float64) -> Float64:
    """NumPy has none."""
    return np.array([math.erf(value) for value in x])


ORACLES: dict[str, tuple[Callable[[Float64], Float64], tuple[float, ...]]] = {
    # name: (float64 oracle, points around which the algorithm changes or its result over- or underflows)
    "tg_exp": (np.exp, (-103.98, -87.3365, 88.7228, 89, math.log(2) / 2, -math.log(2) / 2)),
    "tg_expm1": (np.expm1, (-88, -17.4, 88.7228, 89, math.log(2) / 2, -math.log(2) / 2, 1.0397)),
    "tg_log": (np.log, (0.5**0.5, 2**0.5, 2, 0.5)),
    "tg_log1p": (np.log1p, (-1, 0.5**0.5 - 1, 2**0.5 - 1, 2 * 2**0.5 - 1, 2.0**24, 2.0**25, 1)),
    "tg_softplus": (softplus, (-103.98, -87.3365, 88.7228, 17)),
    "tg_sigmoid": (sigmoid, (-103.98, -87.3365, 88.7228, 17)),
    "tg_tanh": (np.tanh, (math.log(2) / 4, 9.01, 44, 0.55)),
    "tg_erf": (erf, (1, 3.9, 4, 0.5)),
}


def sweep(thresholds: tuple[float, ...], seed: int) -> Float32:
    """Every exponent and sign with many mantissas, and dense neighbourhoods of 0, 1 and the thresholds."""
    random = np.random.default_rng(seed)
    exponents = np.repeat(np.arange(255, dtype=np.uint32) << 23, 256)
    mantissas = random.integers(0, 1 << 23, exponents.size, np.uint32)
    mantissas[::256] = 0
    mantissas[1::256] = (1 << 23) - 1
    everywhere = (exponents | mantissas).view(np.float32)
    usual = random.uniform(0, 20, 50_000).astype(np.float32)  # where nets live
    tiny = np.geomspace(2.0**-126, 1, 20_000).astype(np.float32)
    near = [np.abs(np.float32(t)) for t in (1.0, *thresholds)]
    steps = np.arange(-2_000, 2_001)
    neighbours = [(point.view(np.uint32) + steps).astype(np.uint32).view(np.float32) for point in near]
    wider = [np.float32(point * (1 + random.uniform(-0.01, 0.01, 4_000))) for point in near]
    positive = np.concatenate([everywhere, usual, tiny, *neighbours, *wider]).astype(np.float32)
    special = np.array([0.0, np.inf, np.finfo(np.float32).max, SMALLEST_NORMAL, 1, 2, 0.5], np.float32)
    positive = np.concatenate([special, positive])
    return np.concatenate(
        [positive, -positive, np.full(1, np.nan, np.float32), -np.full(1, np.nan, np.float32)]
    )


def ulp_error(got: Float32, true: Float64, x: Float32) -> Float64:
    """Distance in units of the last place of the true value; infinite where the kinds differ.

    A true value too small to be a normal float32 may be flushed to zero, and so may such an argument.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        expected = true.astype(np.float32)
        exponent = np.frexp(np.where(np.isfinite(true), true, 1))[1] - 1  # frexp: mantissa in [0.5, 1)
        ulp = np.ldexp(1.0, np.maximum(exponent, -126) - 23)
        error = np.abs(got.astype(np.float64) - true) / ulp
    finite = np.isfinite(expected)
    same_kind = np.where(np.isnan(expected), np.isnan(got), got == expected)
    error = np.where(finite, np.where(np.isfinite(got), error, np.inf), np.where(same_kind, 0, np.inf))
    flushable = np.abs(true) < np.where(np.abs(x) < SMALLEST_NORMAL, 2, 1) * SMALLEST_NORMAL
    return np.where(flushable & (got == 0), 0.0, error)


def evaluate(page: BrowserPage, expression: str, x: NDArray[Any]) -> NDArray[Any]:
    job = {"includes": ["lib/math.glsl"], "expression": expression, "dtype": x.dtype.name}
    return page.call("/tests/kernels/fragment.js", "evaluate", job, x)


@pytest.fixture(scope="module")
def renderer(browser_page: BrowserPage) -> str:
    """What ran the shaders: an error without it means little."""
    return browser_page.call("/tests/kernels/fragment.js", "renderer")


@pytest.mark.parametrize("name", ORACLES)
def test_within_4_ulp_over_all_of_float32(browser_page: BrowserPage, renderer: str, name: str) -> None:
    """No error above 4 ULP; infinities, NaN and overflow are exact in kind."""
    oracle, thresholds = ORACLES[name]
    x = sweep(thresholds, seed=len(name))
    assert x.size >= 200_000
    got = evaluate(browser_page, f"{name}(x)", x)
    with np.errstate(all="ignore"):
        error = ulp_error(got, oracle(x.astype(np.float64)), x)
    worst = int(np.argmax(error))
    log.info("%s on %s: %.3f ULP at x = %r", name, renderer, error[worst], x[worst])
    assert error[worst] <= MATH_MAX_ULP, f"{error[worst]} ULP at x = {x[worst]!r}: got {got[worst]!r}"


@pytest.mark.parametrize("name", ORACLES)
def test_float_and_vec4_agree_bit_for_bit(browser_page: BrowserPage, name: str) -> None:
    """The overloads are one function."""
    x = np.linspace(-20, 20, 4096, dtype=np.float32)
    scalars = evaluate(browser_page, f"vec4({', '.join(f'{name}(x.{lane})' for lane in 'xyzw')})", x)
    assert evaluate(browser_page, f"{name}(x)", x).tobytes() == scalars.tobytes()


SPECIAL = np.array(
    [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, 3e38, -3e38, 1e-45, -1e-45], np.float32
)
TRUTH: dict[str, Callable[[Float32], NDArray[np.bool_]]] = {
    "tg_isnan": np.isnan,
    "tg_isinf": np.isinf,
    "tg_isfinite": np.isfinite,
}


@pytest.mark.parametrize("name", TRUTH)
def test_truth_table(browser_page: BrowserPage, name: str) -> None:
    """The bit tests tell NaN, infinities and finite numbers apart, as vectors and as scalars."""
    expected = TRUTH[name](SPECIAL).astype(np.float32)
    scalars = f"vec4({', '.join(f'{name}(x.{lane}) ? 1. : 0.' for lane in 'xyzw')})"
    for expression in (f"vec4({name}(x))", scalars):
        assert evaluate(browser_page, expression, SPECIAL).tolist() == expected.tolist()


def test_relu_keeps_nan(browser_page: BrowserPage) -> None:
    """NaN stays NaN, as max(x, 0.) and x < 0. ? 0. : x would not on some drivers; infinity and zeros are exact."""
    got = evaluate(browser_page, "tg_relu(x)", SPECIAL)
    assert np.isnan(got[:2]).all()
    assert got[2:10].tolist() == [np.inf, 0, 0, 0, 1.5, 0, np.float32(3e38), 0]


def test_relu_grad_keeps_nan(browser_page: BrowserPage) -> None:
    """Where the output is NaN or positive the gradient passes, NaN included; where it is 0 nothing does."""
    outputs = np.array([np.nan, np.inf, 0.0, -0.0, 1.5, 3e38, 1e-30, 0.0], np.float32)
    got = evaluate(browser_page, "tg_relu_grad(x, vec4(2.))", outputs)
    assert got.tolist() == [2, 2, 0, 0, 2, 2, 2, 0]
    got = evaluate(browser_page, "tg_relu_grad(x, vec4(tg_nan()))", outputs)
    assert np.isnan(got).tolist() == [True, True, False, False, True, True, True, False]


def test_constants_from_bits(browser_page: BrowserPage) -> None:
    """tg_nan() is NaN and tg_inf() is +infinity."""
    got = evaluate(browser_page, "vec4(tg_nan(), tg_inf(), -tg_inf(), 0.)", np.zeros(4, np.float32))
    assert np.isnan(got[0])
    assert got[1:3].tolist() == [np.inf, -np.inf]

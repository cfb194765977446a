"""The way to the first step: what is compiled before it, the first epoch's order, and that the draws that warm programs up leave no trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .harness import BrowserPage
from .specs import data_for, mlp

PAGE = "/tests/kernels/first_step_page.js"
SIZES = (3, 6, 2)
X, Y = data_for(37, SIZES[0], SIZES[-1], "mse")


def spec_for(
    *, optimizer: str = "sgd", steps: int = 12, batch_size: int = 8, shuffle: bool = True
) -> dict[str, Any]:
    """Two layers; 37 rows in batches of 8, the last of an epoch short."""
    return mlp(SIZES, "mse", optimizer=optimizer, steps=steps, batch_size=batch_size, shuffle=shuffle)


def test_only_what_a_step_runs_is_compiled_before_it(browser_page: BrowserPage):
    """What gathers, evaluates and predicts is compiled once the first loss is there."""
    got = browser_page.call(PAGE, "compiled", spec_for(), X, Y)
    assert sorted(set(got["atCompile"])) == ["affine", "affine_grad_weights", "proof", "reduce_rows"]
    assert got["atFirstLoss"] == got["atCompile"]
    assert got["later"].count("gather") == 2 + 2  # inputs and targets, of an epoch and of the staging rows
    assert got["later"].count("reduce_rows") == 2


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(
    "device", [{}, {"format": "rgba32ui"}, {"maxDrawBuffers": 2}], ids=["float", "bits", "two targets"]
)
def test_the_first_epoch_is_the_same_uploaded_or_gathered(
    browser_page: BrowserPage, shuffle: bool, device: Any
):
    """The rows on the device, all losses of three epochs, and the weights are the same bits."""
    spec = spec_for(shuffle=shuffle)
    uploaded = browser_page.call(PAGE, "run", spec, X, Y, False, device)
    gathered = browser_page.call(PAGE, "run", spec, X, Y, True, device)
    assert uploaded["held"], "a small data set is put in order in the page"
    assert len(uploaded["history"]) == 12
    assert np.count_nonzero(uploaded["rows"]) > 37
    for key in ("rows", "history", "weights"):
        np.testing.assert_array_equal(uploaded[key], gathered[key])


def test_large_data_is_not_held_twice(browser_page: BrowserPage):
    """Beyond 2^18 numbers the page keeps no copy, and the first epoch is gathered on the device."""
    x, y = data_for(2**18 // 5 + 1, SIZES[0], SIZES[-1], "mse")
    assert not browser_page.call(PAGE, "run", spec_for(steps=1, batch_size=4096), x, y, False, {})["held"]


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_warm_up_leaves_no_trace(browser_page: BrowserPage, optimizer: str, steps: int):
    """Its draws have no rows and no scalars, so that Adam divides 0 by 0 in them: neither weights, states nor padding keep any of it."""
    for name, texels in browser_page.call(PAGE, "texels", spec_for(optimizer=optimizer), X, Y, steps).items():
        assert np.isfinite(texels).all(), name


def test_a_session_that_is_refused_while_it_compiles_leaves_nothing(browser_page: BrowserPage):
    """Data are read while programs are compiled; the next session runs on the same device."""
    x = X.copy()
    x[30, 1] = np.nan
    got = browser_page.call(PAGE, "refused", spec_for(), x, Y)
    assert (got["code"], got["step"]) == ("data_invalid", 2)
    assert got["after"] == got["before"]


def test_an_engine_without_shaders_leaves_no_context(browser_page: BrowserPage):
    """They are fetched while the context is made, and a page has few contexts."""
    assert browser_page.call(PAGE, "withoutShaders") == {"code": "shader_error", "lost": [True]}

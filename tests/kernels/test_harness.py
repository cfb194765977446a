"""The harness itself: exact numbers, errors with their stacks, bounded waits, no process left."""

from __future__ import annotations

import math
import os
import signal

import numpy as np
import pytest

from .codec import DTYPES
from .harness import BrowserPage, PageDied, PageError

ECHO = "/tests/kernels/echo.js"


def test_numbers_survive_exactly(browser_page: BrowserPage) -> None:
    """NaN, infinities, negative zero and the smallest denormal come back as they went."""
    sent = [math.nan, math.inf, -math.inf, -0.0, 5e-324, 0.1, 2**53]
    got = browser_page.call(ECHO, "echo", sent)
    assert np.array(got, np.float64).tobytes() == np.array(sent, np.float64).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_survive_exactly(browser_page: BrowserPage, dtype: str) -> None:
    """Every dtype keeps its bytes and shape, beyond the size of one base64 chunk."""
    sent = np.random.default_rng(1).integers(0, 100, (300, 1001)).astype(dtype)
    got = browser_page.call(ECHO, "echo", {"tensor": sent})["tensor"]
    assert got.dtype == sent.dtype
    assert got.shape == sent.shape
    assert got.tobytes() == sent.tobytes()


def test_float32_specials_survive(browser_page: BrowserPage) -> None:
    """NaN stays NaN, and infinities, denormals and -0 keep their bits."""
    sent = np.array([np.inf, -np.inf, -0.0, 1e-45, np.nan], np.float32)
    got = browser_page.call(ECHO, "echo", sent)
    assert got[:4].tobytes() == sent[:4].tobytes()
    assert np.isnan(got[4])


def test_a_thrown_error_arrives_with_stack_and_fields(browser_page: BrowserPage) -> None:
    """A JavaScript error is an exception here, with its message, its stack and its own properties."""
    with pytest.raises(PageError, match="no such thing") as caught:
        browser_page.call(ECHO, "fail", "no such thing")
    assert caught.value.name == "RangeError"
    assert "echo.js" in caught.value.stack
    assert caught.value.properties == {"code": "spec_invalid"}


def test_a_missing_export_is_named(browser_page: BrowserPage) -> None:
    """The message lists what the module does export."""
    with pytest.raises(PageError, match="exports no function nothing; it exports .*echo"):
        browser_page.call(ECHO, "nothing")


def test_the_page_is_isolated_and_has_webgl2(browser_page: BrowserPage) -> None:
    """COOP/COEP give SharedArrayBuffer; the GL flags give WebGL2; the shader bundle is served."""
    found = browser_page.call(ECHO, "environment")
    assert found["isolated"] is True
    assert found["webgl2"] is True
    assert "lib/math.glsl" in found["shaders"]


def test_reload_forgets_everything() -> None:
    """A fresh page has none of the old one's globals, and answers."""
    with BrowserPage() as page:
        page.evaluate("() => { globalThis.left = 1; }")
        page.reload()
        assert page.evaluate("() => typeof globalThis.left") == "undefined"
        assert page.call(ECHO, "echo", 2) == 2


def test_a_deadline_and_a_dead_browser_end_the_call() -> None:
    """A hung call ends at its deadline, a killed browser at once; no process and no profile stays."""
    with BrowserPage() as page:
        hung, profile = page.process_id, page.profile
        assert profile is not None
        assert profile.is_dir()
        with pytest.raises(PageDied, match="no answer"):
            page.call(ECHO, "hang", timeout_s=0.5)
        with pytest.raises(PageDied):
            page.call(ECHO, "echo", 1)
    assert not profile.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(hung, 0)
    with BrowserPage() as page:
        os.killpg(page.process_id, signal.SIGKILL)
        with pytest.raises(PageDied, match="exited with status"):  # not: no answer
            page.call(ECHO, "hang", timeout_s=3600)

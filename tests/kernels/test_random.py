"""shaders/lib/threefry.glsl and nn/random.js in a real browser, against texelgrad/rng.py and Random123's vectors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from texelgrad.rng import RandomStream, Stream, threefry2x32

from ..unit.test_rng import KNOWN_ANSWERS, PROBE
from .harness import BrowserPage

FRAGMENT = "/tests/kernels/fragment.js"


def shader_words(page: BrowserPage, key: tuple[int, int], counters: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The blocks of the counters, pair by pair; a texel holds two counters and gives both blocks."""
    key_literal = f"uvec2({key[0]}u, {key[1]}u)"
    block = [f"tg_threefry2x32({key_literal}, x.{lanes})" for lanes in ("xy", "zw")]
    job = {"includes": ["lib/threefry.glsl"], "expression": f"uvec4({', '.join(block)})", "dtype": "uint32"}
    return page.call(FRAGMENT, "evaluate", job, counters)


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS)
def test_known_answers(
    browser_page: BrowserPage, counter: tuple[int, int], key: tuple[int, int], words: tuple[int, int]
):
    """Random123's published vectors, in GLSL and in the browser's JavaScript."""
    counters = np.array([*counter, *counter], np.uint32)
    assert shader_words(browser_page, key, counters).tolist() == [*words, *words]
    assert browser_page.call(PROBE, "blocks", key, counters).tolist() == [*words, *words]


@pytest.mark.parametrize("seed", [0, 7, 2**53 - 1])
def test_glsl_and_python_make_the_same_words(browser_page: BrowserPage, seed: int):
    """20,000 blocks of the dropout stream, and as many random counters."""
    key = (seed % 2**32, seed >> 32)
    counters = np.random.default_rng(seed).integers(0, 2**32, (40_000, 2), np.uint32)
    counters[:20_000, 0] = np.arange(20_000)
    counters[:20_000, 1] = Stream.DROPOUT * 2**24 + 5
    expected = np.stack(threefry2x32(key, counters[:, 0], counters[:, 1]), axis=1)
    got = shader_words(browser_page, key, counters).reshape(-1, 2)
    assert np.array_equal(got, expected)
    stream = RandomStream(seed, Stream.DROPOUT, 5)
    assert np.array_equal(got[:20_000].reshape(-1), stream.words(40_000))


def test_the_browser_draws_what_python_draws(browser_page: BrowserPage):
    """Permutations and normal numbers of Chromium's own JavaScript engine are bit-equal."""
    permutation, normals = browser_page.call(
        PROBE, "draw", 42, int(Stream.INIT), 3, [["permutation", 1797], ["normal", 10_001]]
    )
    random = RandomStream(42, Stream.INIT, 3)
    assert permutation.tolist() == random.permutation(1797).tolist()
    assert normals.tobytes() == random.normal(10_001).tobytes()

"""texelgrad/rng.py against Random123's vectors, nn/random.js and what the distributions promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from texelgrad.rng import RandomStream, Stream, log, threefry2x32

from ..node import NodeError, call
from tests.tolerances import ORTHOGONAL_ATOL

PROBE = "/tests/kernels/random_probe.js"
# Random123's kat_vectors, "threefry2x32 20": counter, key, words
KNOWN_ANSWERS = (
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
)
SEEDS = (0, 1, 2**32 - 1, 2**32, 2**53 - 1, 123456789012345)


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS)
def test_known_answers(counter: tuple[int, int], key: tuple[int, int], words: tuple[int, int]):
    """Random123's published vectors, in Python and in JavaScript."""
    got = threefry2x32(key, np.array([counter[0]], np.uint32), np.array([counter[1]], np.uint32))
    assert (int(got[0][0]), int(got[1][0])) == words
    assert tuple(call(PROBE, "blocks", key, np.array(counter, np.uint32)).tolist()) == words


@pytest.mark.parametrize("seed", SEEDS)
def test_python_and_javascript_draw_the_same_bits(seed: int):
    """Words, uniforms, normals and permutations one after another on one stream, odd counts included."""
    draws: list[Any] = [
        ("word", 3), ("uniform", 4), ("normal", 1001), ("permutation", 1000), ("normal", 2), ("word", 1), ("normal", 5000),
    ]  # fmt: skip
    random = RandomStream(seed, Stream.SHUFFLE, 17)
    methods: dict[str, Any] = {
        "word": random.words, "uniform": random.uniform, "normal": random.normal, "permutation": random.permutation,
    }  # fmt: skip
    theirs = call(PROBE, "draw", seed, int(Stream.SHUFFLE), 17, draws)
    for (method, count), got in zip(draws, theirs, strict=True):
        ours = np.asarray(methods[method](count), np.float64)
        assert ours.tobytes() == np.asarray(got, np.float64).tobytes(), (method, count)


def test_refused_words_are_skipped_alike():
    """Bounds just above 2^31 refuse half of all words: both sides must then agree on what comes next."""
    bounds = np.full(500, 2**31 + 1, np.int64)
    ours = RandomStream(5, Stream.SPLIT).bounded(bounds)
    theirs = call(PROBE, "bounded", 5, int(Stream.SPLIT), bounds.astype(np.float64))
    assert ours.tolist() == theirs.tolist()
    assert int(ours.max()) < 2**31 + 1
    one_by_one = RandomStream(5, Stream.SPLIT)
    assert [int(one_by_one.bounded(bounds[:1])[0]) for _ in bounds] == ours.tolist()


def test_log_is_one_function_and_right():
    """Bit for bit the same as in JavaScript, and within 1 ULP of libm's."""
    random = np.random.default_rng(3)
    x = np.concatenate(
        [random.uniform(0, 1, 20_000), np.geomspace(1e-300, 1e300, 5_000), 1 + random.normal(0, 1e-9, 500)]
    )
    ours = log(x)
    assert ours.tobytes() == call(PROBE, "logs", x).tobytes()
    expected = np.log(x)
    assert np.all(np.abs(ours - expected) <= np.spacing(np.abs(expected)))
    assert log(np.array([1.0]))[0] == 0


def test_streams_differ_by_seed_stream_and_sub():
    """Each coordinate of a stream changes its words."""
    starts = [
        RandomStream(seed, stream, sub).words(4).tobytes()
        for seed in (1, 2, 1 + 2**32)
        for stream in Stream
        for sub in (0, 1, 2**24 - 1)
    ]
    assert len(set(starts)) == len(starts)


def test_permutations_are_permutations_and_uniform():
    """Every element once; over many epochs each value is at each place about equally often."""
    n, epochs = 6, 6000
    counts = np.zeros((n, n))
    for epoch in range(epochs):
        order = RandomStream(11, Stream.SHUFFLE, epoch).permutation(n)
        assert sorted(order.tolist()) == list(range(n))
        counts[np.arange(n), order] += 1
    expected = epochs / n
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert chi_square < 60, "25 degrees of freedom: 60 has a chance of 1e-4, and the seed is fixed"
    assert RandomStream(1, Stream.SPLIT).permutation(0).tolist() == []
    assert RandomStream(1, Stream.SPLIT).permutation(1).tolist() == [0]


def test_a_large_permutation():
    """As many rows as data sets have: each once."""
    order = RandomStream(7, Stream.SHUFFLE).permutation(60_000)
    assert np.array_equal(np.sort(order), np.arange(60_000))


def test_normals_are_normal():
    """Moments and tails of 200,000 numbers, each within 5 standard errors."""
    n = 200_000
    x = RandomStream(2, Stream.INIT).normal(n)
    assert abs(x.mean()) < 5 / math.sqrt(n)
    assert abs(x.var() - 1) < 5 * math.sqrt(2 / n)
    assert abs((x**3).mean()) < 5 * math.sqrt(15 / n)
    assert abs((x**4).mean() - 3) < 5 * math.sqrt(96 / n)
    beyond = math.erfc(2 / math.sqrt(2))  # the share beyond 2 standard deviations
    assert abs((np.abs(x) > 2).mean() - beyond) < 5 * math.sqrt(beyond / n)


@pytest.mark.parametrize(("seed", "sub"), [(-1, 0), (2**53, 0), (0, -1), (0, 2**24)])
def test_what_does_not_fit_is_refused(seed: int, sub: int):
    """A seed or sub that would be cut off silently is an error."""
    with pytest.raises(ValueError, match="must satisfy"):
        RandomStream(seed, Stream.INIT, sub)


FANS = {"fanIn": 300, "fanOut": 200, "seed": 9, "parameterIndex": 3}
VARIANCES = {"glorot": 2 / 500, "xavier": 2 / 500, "he": 2 / 300, "lecun": 1 / 300}


@pytest.mark.parametrize("family", VARIANCES)
def test_uniform_initializers(family: str):
    """Exactly the stream's numbers times sqrt(3 variance), rounded once; the variance is what the family promises."""
    got = call(PROBE, "initialize", f"{family}_uniform", [300, 200], FANS)
    limit = math.sqrt(3 * VARIANCES[family])
    expected = (2 * RandomStream(9, Stream.INIT, 3).uniform(60_000) - 1) * limit
    assert got.dtype == np.float32
    assert got.tobytes() == expected.astype(np.float32).tobytes()
    assert abs(got.var() / VARIANCES[family] - 1) < 0.02
    assert np.abs(got).max() <= limit


@pytest.mark.parametrize("family", VARIANCES)
def test_normal_initializers(family: str):
    """Exactly the stream's normals times the standard deviation, rounded once."""
    got = call(PROBE, "initialize", f"{family}_normal", [300, 200], FANS)
    expected = RandomStream(9, Stream.INIT, 3).normal(60_000) * math.sqrt(VARIANCES[family])
    assert got.tobytes() == expected.astype(np.float32).tobytes()
    assert abs(got.var() / VARIANCES[family] - 1) < 0.03


def test_constant_initializers():
    """zeros, ones and a number fill the shape."""
    assert call(PROBE, "initialize", "zeros", [3, 2]).tolist() == [0] * 6
    assert call(PROBE, "initialize", "ones", [2]).tolist() == [1] * 2
    assert call(PROBE, "initialize", 0.5, [3]).tolist() == [0.5] * 3


@pytest.mark.parametrize("family", VARIANCES)
def test_truncated_normal_initializers(family: str):
    """The stream's normals but for those beyond 2, wider by so much that the variance is what the family promises."""
    got = call(PROBE, "initialize", f"{family}_truncated_normal", [300, 200], FANS)
    drawn = RandomStream(9, Stream.INIT, 3).normal(80_000)
    kept = drawn[np.abs(drawn) <= 2][:60_000]
    density = math.exp(-2) / math.sqrt(2 * math.pi)  # of a normal at 2
    cut = math.sqrt(1 - 2 * 2 * density / math.erf(math.sqrt(2)))
    expected = kept * math.sqrt(VARIANCES[family]) / cut
    np.testing.assert_allclose(got.reshape(-1), expected, rtol=2.0**-23)
    assert abs(got.var() / VARIANCES[family] - 1) < 0.02
    assert np.abs(got).max() <= 2 * math.sqrt(VARIANCES[family]) / cut * (1 + 1e-6)


@pytest.mark.parametrize("shape", [[1, 1], [5, 5], [40, 7], [7, 40], [3, 3, 4, 10], [2, 1, 3, 50]])
def test_orthogonal_initializer(shape: list[int]):
    """Orthonormal columns, or rows where there are fewer, as PyTorch's; the stream's numbers by Gram and Schmidt, with a positive diagonal."""
    rows, columns = math.prod(shape[:-1]), shape[-1]
    got = call(PROBE, "initialize", "orthogonal", shape, FANS).reshape(rows, columns).astype(np.float64)
    gram = got.T @ got if rows >= columns else got @ got.T
    np.testing.assert_allclose(gram, np.eye(min(rows, columns)), atol=ORTHOGONAL_ATOL)
    long, short = max(rows, columns), min(rows, columns)
    drawn = RandomStream(9, Stream.INIT, 3).normal(rows * columns).reshape(long, short)
    q, r = np.linalg.qr(drawn)
    expected = q * np.sign(np.diag(r))
    np.testing.assert_allclose(got if rows >= columns else got.T, expected, atol=ORTHOGONAL_ATOL)


def test_orthogonal_matrices_have_no_preferred_direction():
    """Means of single elements over 300 seeds, within 5 standard errors of 0, and their squares of 1 / n."""
    found = np.stack(
        [
            call(PROBE, "initialize", "orthogonal", [4, 4], FANS | {"seed": seed}).reshape(4, 4)
            for seed in range(300)
        ]
    )
    assert np.abs(found.mean(axis=0)).max() < 5 * math.sqrt(1 / 4 / 300)
    # the square of an element has the variance 2 (n - 1) / (n^2 (n + 2))
    assert np.abs((found**2).mean(axis=0) - 1 / 4).max() < 5 * math.sqrt(6 / 96 / 300)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("he", FANS, "no initializer he; use one of glorot_uniform"),
        ("glorot_uniform", {"fanIn": 3, "seed": 1, "parameterIndex": 0}, "needs fanOut"),
        ("he_normal", {"fanIn": 3, "parameterIndex": 0}, "needs seed"),
    ],
)
def test_initializers_say_what_is_missing(kind: str, options: dict[str, float], message: str):
    """An unknown kind lists the known ones; a missing option is named."""
    with pytest.raises(NodeError, match=message):
        call(PROBE, "initialize", kind, [2, 2], options)

"""The counter-based random numbers of docs/page-protocol.md, bit for bit those of browser_runtime/nn/random.js.

Threefry2x32-20 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Everything beyond the 32-bit
words uses only + - * / and sqrt of float64, which IEEE 754 defines to the bit; NumPy's log is not among them.
"""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
Floats = NDArray[np.float64]

_PARITY = 0x1BD11BDA
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_MASK = 0xFFFFFFFF
_MAX_SUB = 1 << 24

_LN2_HIGH = 0.693147180369123816490  # the first 33 bits of ln 2: k * _LN2_HIGH is exact
_LN2_LOW = 1.90821492927058770002e-10
_LOG_TERMS = 12  # z < 0.02945: the first term left out is below 2^-60
_SQRT2 = math.sqrt(2)


class Stream(IntEnum):
    """What each stream of a seed is for; `sub` numbers the parameters (INIT) or the epochs (SHUFFLE)."""

    INIT = 1
    SPLIT = 2
    SHUFFLE = 3
    DROPOUT = 4
    SYNTHETIC = 5


def threefry2x32(key: tuple[int, int], counter0: Words, counter1: Words | int) -> tuple[Words, Words]:
    """Both words of every block; the counters broadcast, all numbers are uint32."""
    keys = [np.uint32(word) for word in (key[0], key[1], key[0] ^ key[1] ^ _PARITY)]
    x0 = np.asarray(counter0, np.uint32) + keys[0]
    x1 = np.asarray(counter1, np.uint32) + keys[1] + np.zeros_like(x0)
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = ((x1 << np.uint32(rotation)) | (x1 >> np.uint32(32 - rotation))) ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        # added one by one: as Python numbers the sum could leave uint32, as arrays it wraps
        x1 = x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def dropout_mask(seed: int, number: int, batch: int, count: int, rate: float) -> NDArray[np.bool_]:
    """Which of `count` elements of a batch, row by row, a dropout layer keeps.

    `number` is the layer's among the dropout layers, `batch` that of the run, both from 0. The block of the batch in the
    layer's stream is the key of the elements' words, of which those below floor((1 - rate) 2^32) keep.
    """
    stream = int(Stream.DROPOUT) * _MAX_SUB + number
    key = threefry2x32((seed & _MASK, seed >> 32), np.array([batch], np.uint32), stream)
    blocks = np.arange((count + 1) // 2, dtype=np.uint64).astype(np.uint32)
    words = np.stack(threefry2x32((int(key[0][0]), int(key[1][0])), blocks, 0), axis=1).reshape(-1)[:count]
    return words < np.uint32(min(math.floor((1 - rate) * 2.0**32), _MASK))


class RandomStream:
    """The words of one stream of a seed, in order, and what is made of them."""

    def __init__(self, seed: int, stream: Stream, sub: int = 0) -> None:
        """Start at the first word; ValueError unless 0 <= seed < 2^53 and 0 <= sub < 2^24."""
        if not 0 <= seed < 1 << 53:
            raise ValueError(f"seed must satisfy 0 <= seed < 2^53, not {seed}")
        if not 0 <= sub < _MAX_SUB:
            raise ValueError(f"sub must satisfy 0 <= sub < 2^24, not {sub}")
        self._key = (seed & _MASK, seed >> 32)
        self._counter1 = int(stream) * _MAX_SUB + sub
        self._taken = 0  # words so far
        self._spare: float | None = None  # v of the last polar pair, until it is taken

    def _peek(self, count: int) -> Words:
        """Return the next `count` words without taking them."""
        first, last = self._taken // 2, (self._taken + count + 1) // 2
        if last > 1 << 32:
            raise ValueError("a stream has 2^33 words")
        blocks = np.arange(first, last, dtype=np.uint64).astype(np.uint32)
        words = np.stack(threefry2x32(self._key, blocks, self._counter1), axis=1).reshape(-1)
        skipped = self._taken - 2 * first
        return words[skipped : skipped + count]

    def words(self, count: int) -> Words:
        """Return the next uint32 words."""
        words = self._peek(count)
        self._taken += count
        return words

    def uniform(self, count: int) -> Floats:
        """Return numbers in (0, 1), multiples of 2^-33."""
        return (self.words(count).astype(np.float64) + 0.5) / 2.0**32

    def bounded(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return one whole number 0 <= it < bound, each equally likely, for each bound in order, 1 <= bound <= 2^32."""
        result = np.empty(len(bounds), np.int64)
        limits = (1 << 32) - (1 << 32) % bounds
        done = 0
        while done < len(bounds):
            words = self._peek(len(bounds) - done).astype(np.int64)
            refused = np.flatnonzero(words >= limits[done:])
            # up to the first refused word, words and bounds run side by side; after it, the bounds lag by one
            good = int(refused[0]) if len(refused) else len(words)
            result[done : done + good] = words[:good] % bounds[done : done + good]
            self._taken += good + (good < len(words))
            done += good
        return result

    def normal(self, count: int) -> Floats:
        """Return standard normal numbers, by Marsaglia's polar method."""
        parts: list[Floats] = []
        found = 0
        if self._spare is not None and count > 0:
            parts.append(np.array([self._spare]))
            self._spare, found = None, 1
        while found < count:
            wanted = (count - found + 1) // 2  # pairs; pi/4 of those drawn are accepted
            words = self._peek(2 * (wanted + wanted // 3 + 8)).astype(np.float64)
            u, v = (2 * ((words + 0.5) / 2.0**32) - 1).reshape(-1, 2).T
            s = u * u + v * v  # never 0: u and v are odd multiples of 2^-32
            accepted = np.flatnonzero(s < 1)[:wanted]
            u, v, s = u[accepted], v[accepted], s[accepted]
            factor = np.sqrt(-2 * log(s) / s)
            parts.append(np.stack([u * factor, v * factor], axis=1).reshape(-1))
            found += 2 * len(accepted)
            self._taken += 2 * (int(accepted[-1]) + 1) if len(accepted) == wanted else len(words)
        numbers = np.concatenate(parts) if parts else np.empty(0)
        if found > count:
            self._spare = float(numbers[-1])
        return numbers[:count]

    def permutation(self, n: int) -> NDArray[np.int64]:
        """Return 0..n-1 in random order, by Fisher-Yates from the end."""
        order = list(range(n))
        chosen = self.bounded(np.arange(n, 1, -1, dtype=np.int64)).tolist()
        for k, j in zip(range(n - 1, 0, -1), chosen, strict=True):
            order[k], order[j] = order[j], order[k]
        return np.array(order, np.int64)


def log(x: Floats) -> Floats:
    """Return the natural logarithm of positive, normal, finite numbers, the same bits on every machine.

    x = 2^k m with sqrt(1/2) <= m < sqrt(2), then log(m) = 2 atanh(f / (2 + f)), f = m - 1; error below 1 ULP.
    """
    half, exponent = np.frexp(x)  # half in [0.5, 1)
    m = 2 * half
    k = exponent.astype(np.float64) - 1
    high = m >= _SQRT2
    m, k = np.where(high, m / 2, m), np.where(high, k + 1, k)
    f = m - 1
    s = f / (2 + f)
    z = s * s
    p = np.zeros_like(z)
    for term in range(_LOG_TERMS, 0, -1):
        p = p * z + 2 / (2 * term + 1)
    h = 0.5 * f * f
    return k * _LN2_HIGH + (f - (h - (s * (h + z * p) + k * _LN2_LOW)))

"""Files broken at random: a reader gives arrays or refuses, and nothing else ever comes out of it."""

from __future__ import annotations

import io
import random
import tracemalloc
from contextlib import suppress

import pytest

from texelgrad.config import Settings
from texelgrad.datasets import read_npys, read_upload
from texelgrad.errors import Invalid
from texelgrad.formats import FORMATS, format_of
from texelgrad.rows import Columns

from tests.uploads import CORPUS, TARGET, X, Y, npy

SETTINGS = Settings(max_data_bytes=1 << 20)
_SHORT, _LONG = 150, 20_000
_INTERESTING = (
    b"\x00" * 8,
    b"\xff" * 8,
    b"\xff\xff\xff\x7f",
    b"PK\x01\x02",
    b"\x80",
    b"-1",
    b"nan",
    b"1e999",
)


def mutate(data: bytes, chance: random.Random) -> bytes:
    """A copy with a few bytes changed, cut, doubled or replaced by values that break things."""
    broken = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        at = chance.randrange(len(broken) + 1)
        match chance.randrange(6):
            case 0 if at < len(broken):
                broken[at] ^= 1 << chance.randrange(8)
            case 1 if at < len(broken):
                broken[at] = chance.randrange(256)
            case 2:
                del broken[at : at + chance.randrange(1, 16)]
            case 3:
                broken[at:at] = broken[at : at + chance.randrange(1, 64)]
            case 4:
                value = chance.choice(_INTERESTING)
                broken[at : at + len(value)] = value
            case _:
                del broken[at:]
    return bytes(broken)


def check(kind: str, count: int, seed: int) -> int:
    """Read `count` broken files; answers how many were refused."""
    chance = random.Random(seed)
    refused = 0
    for _ in range(count):
        data = mutate(CORPUS[kind], chance)
        with suppress(Invalid):
            assert format_of(io.BytesIO(data), "", "") in FORMATS
        try:
            read_upload(io.BytesIO(data), kind, SETTINGS, Columns(TARGET.get(kind)))
        except Invalid:
            refused += 1
    return refused


@pytest.mark.parametrize("kind", FORMATS)
def test_broken_files(kind: str):
    """Most are refused; none makes us take much more memory than the limit for data."""
    tracemalloc.start()
    try:
        refused = check(kind, _SHORT, seed=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused > _SHORT // 10
    assert peak < 16 << 20


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", FORMATS)
def test_many_broken_files(kind: str):
    """The same for long."""
    assert check(kind, _LONG, seed=2) > _LONG // 10


def test_broken_pairs():
    """npy files too."""
    chance = random.Random(3)
    refused = 0
    for _ in range(_SHORT):
        x, y = mutate(npy(X), chance), npy(Y)
        try:
            read_npys({"x": io.BytesIO(x), "y": io.BytesIO(y)}, SETTINGS)
        except Invalid:
            refused += 1
    assert refused > _SHORT // 10

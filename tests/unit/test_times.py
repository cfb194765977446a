"""Times as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from texelgrad.times import parse_time, time_text


@given(st.integers(0, 253_402_300_799_999_999))
def test_there_and_back(microseconds: int):
    """Every microsecond until the year 10000 survives."""
    text = time_text(microseconds)
    assert text is not None
    assert parse_time(text) == microseconds


def test_offsets_count():
    assert parse_time("1970-01-01T02:00:00+02:00") == 0
    assert parse_time("1970-01-01T00:00:00.5Z") == 500_000


@pytest.mark.parametrize(
    "text", ["1970-01-01T00:00:00", "x", "1970-13-01T00:00:00Z", "9999-12-31T23:59:59-23:59"]
)
def test_what_is_no_time(text: str):
    with pytest.raises(ValueError):
        parse_time(text)

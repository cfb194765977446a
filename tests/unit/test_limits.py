"""Token buckets, on a clock of their own."""

from __future__ import annotations

import pytest

from api.limits import RateLimit
from texelgrad.errors import TooMany


def test_a_bucket_fills_evenly():
    """Ten seconds' worth at once, then one request each time a token has come."""
    now = [0.0]
    limit = RateLimit(lambda: now[0])
    for _ in range(10):
        limit.take("a", 60)
    with pytest.raises(TooMany) as caught:
        limit.take("a", 60)
    assert caught.value.retry_after_s == pytest.approx(1.0)
    now[0] = 0.5
    with pytest.raises(TooMany) as caught:
        limit.take("a", 60)
    assert caught.value.retry_after_s == pytest.approx(0.5)
    now[0] = 1.0
    limit.take("a", 60)
    now[0] = 1000.0
    for _ in range(10):
        limit.take("a", 60)
    with pytest.raises(TooMany):
        limit.take("a", 60)


def test_names_have_their_own_buckets():
    limit = RateLimit(lambda: 0.0)
    limit.take("a", 1)
    limit.take("b", 1)
    with pytest.raises(TooMany):
        limit.take("a", 1)


def test_zero_is_no_limit():
    limit = RateLimit(lambda: 0.0)
    for _ in range(1000):
        limit.take("a", 0)


def test_buckets_do_not_pile_up():
    """Names that were seen long ago are forgotten."""
    now = [0.0]
    limit = RateLimit(lambda: now[0])
    for number in range(12_000):
        now[0] += 0.1
        limit.take(f"address {number}", 60)
    assert len(limit) <= 10_000

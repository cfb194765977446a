"""Times as text: microseconds since 1970 UTC to RFC 3339 and back. Standard library only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_text(microseconds: int | None) -> str | None:
    """A time as RFC 3339 text in UTC; None stays None."""
    if microseconds is None:
        return None
    seconds, fraction = divmod(microseconds, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{fraction:06d}Z"


def parse_time(text: str) -> int:
    """Microseconds of an RFC 3339 time; raises ValueError where it is none, has no offset from UTC, or lies past the year 9999 there."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text} has no offset from UTC")
    try:
        moment = moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text} is no time of the years 1 to 9999 in UTC") from error
    return (moment - _EPOCH) // timedelta(microseconds=1)

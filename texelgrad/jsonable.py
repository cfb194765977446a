"""JSON has no NaN and no infinities: here they become the strings "NaN", "Infinity" and "-Infinity", and return."""

from __future__ import annotations

import math
from typing import Any, cast

_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def number(value: float) -> float | str:
    """A float as JSON can hold it, exactly."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def jsonable(value: Any) -> Any:
    """A copy of nested dicts, lists and scalars with every non-finite number as a string."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, dict):
        return {key: jsonable(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in cast(list[Any], value)]
    return value


def to_float(value: float | str) -> float:
    """The number that `number` wrote."""
    return _NON_FINITE[value] if isinstance(value, str) else value


def is_deeper(value: Any, limit: int) -> bool:
    """Whether lists and objects stand more than `limit` deep inside one another; needs no stack for it."""
    level: list[Any] = [value]
    for _ in range(limit + 1):
        holders = [cast(Any, item) for item in level if isinstance(item, (dict, list))]
        if not holders:
            return False
        level = [
            inner for holder in holders for inner in (holder.values() if isinstance(holder, dict) else holder)
        ]
    return True

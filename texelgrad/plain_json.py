"""What callers hand over as JSON-to-be, checked where they are: NumPy scalars become numbers, the rest is named."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from texelgrad.errors import Fault, Invalid

_MAX_SHOWN = 80  # characters of a value that an error repeats


def plain_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of nested mappings, sequences and scalars that JSON can hold. Raises Invalid with every fault."""
    faults = list(_faults(value, ""))
    if not isinstance(value, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need no type checker
        faults = [Fault("(the whole)", f"is {_kind(value)}", _shown(value), "an object")]
    if faults:
        raise Invalid(faults)
    return _copy(value)


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copy(item) for name, item in cast(Mapping[str, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [_copy(item) for item in cast(list[Any], value)]
    return cast(Any, value.item()) if isinstance(value, np.generic) else value


def _faults(value: Any, path: str) -> Iterator[Fault]:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        for name, item in cast(Mapping[Any, Any], value).items():
            if not isinstance(name, str):
                yield Fault(_join(path, name), "has a name that is no string", _shown(name), "a string")
            yield from _faults(item, _join(path, name))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(cast(list[Any], value)):
            yield from _faults(item, _join(path, index))
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield Fault(path, f"is {value}, which JSON can't hold", str(value), "a finite number")
    elif value is not None and not isinstance(value, (str, int)):  # a bool is an int
        legal = "null, true, false, a number, a string, a list or an object"
        yield Fault(path, f"is {_kind(value)}, which JSON can't hold", _shown(value), legal)


def _join(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def _kind(value: Any) -> str:
    kind: type[Any] = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _shown(value: Any) -> str:
    return str(value)[:_MAX_SHOWN]

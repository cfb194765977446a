"""A page's console as lines of a log: what Chrome's debugging protocol tells of it, as level and text."""

from __future__ import annotations

import json
from typing import Any

_LEVELS = {"error": "error", "assert": "error", "warning": "warning", "debug": "debug"}

Line = tuple[str, str]  # debug, info, warning or error; text


def console_line(event: dict[str, Any]) -> Line:
    """What `Runtime.consoleAPICalled` tells: a call such as console.warn(...)."""
    return _LEVELS.get(event["type"], "info"), " ".join(map(_text, event["args"]))


def exception_line(event: dict[str, Any]) -> Line:
    """What `Runtime.exceptionThrown` tells: an error that nobody caught, with its stack."""
    details: dict[str, Any] = event["exceptionDetails"]
    return "error", f"{details['text']} {_text(details.get('exception', {}))}".rstrip()


def _text(value: dict[str, Any]) -> str:
    """A `Runtime.RemoteObject` in words; of an object no more than its kind, of an error its stack."""
    if "value" in value:
        plain = value["value"]
        return plain if isinstance(plain, str) else json.dumps(plain)
    return str(value.get("unserializableValue") or value.get("description") or value.get("type", ""))

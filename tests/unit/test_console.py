"""Console lines as Chrome's debugging protocol tells them; a real browser's are in test_browser.py."""

from __future__ import annotations

from typing import Any

import pytest

from worker.console import console_line, exception_line


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"type": "string", "value": "a b"}, "a b"),
        ({"type": "number", "value": 0.5, "description": "0.5"}, "0.5"),
        ({"type": "number", "unserializableValue": "-Infinity", "description": "-Infinity"}, "-Infinity"),
        ({"type": "boolean", "value": True}, "true"),
        ({"type": "object", "subtype": "null", "value": None}, "null"),
        ({"type": "undefined"}, "undefined"),
        ({"type": "object", "className": "Array", "description": "Array(3)", "objectId": "1"}, "Array(3)"),
    ],
)
def test_values(value: dict[str, Any], text: str):
    """Each kind of value that console.log may be given."""
    assert console_line({"type": "log", "args": [value]}) == ("info", text)
    assert console_line({"type": "log", "args": [value, value]}) == ("info", f"{text} {text}")


@pytest.mark.parametrize(
    ("kind", "level"),
    [("error", "error"), ("assert", "error"), ("warning", "warning"), ("debug", "debug"), ("table", "info")],
)
def test_levels(kind: str, level: str):
    """Kinds without a level of their own are information."""
    assert console_line({"type": kind, "args": []}) == (level, "")


def test_exceptions():
    """An Error shows its stack; what else can be thrown, its value."""
    error = {"type": "object", "subtype": "error", "description": "Error: no\n    at f (main.js:1:2)"}
    details = {"text": "Uncaught (in promise)", "exception": error}
    assert exception_line({"exceptionDetails": details}) == (
        "error",
        "Uncaught (in promise) Error: no\n    at f (main.js:1:2)",
    )
    thrown = {"text": "Uncaught", "exception": {"type": "number", "value": 3}}
    assert exception_line({"exceptionDetails": thrown}) == ("error", "Uncaught 3")
    assert exception_line({"exceptionDetails": {"text": "Uncaught"}}) == ("error", "Uncaught")

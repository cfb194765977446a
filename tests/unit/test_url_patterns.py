"""The patterns of intercepted requests: they match every address but those in the page's folder."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.url_patterns import patterns_outside

FOLDER = "http://127.0.0.1:8000/a*b?c\\d-_Z/"  # with every character that means something in a pattern
PATTERNS = patterns_outside(FOLDER)
ADDRESS = st.text(string.ascii_letters + string.digits + string.punctuation, min_size=1)


def _expression(pattern: str) -> str:
    """As Chromium reads a pattern: * is anything, ? one character, a backslash takes the meaning from what follows."""
    parts = re.findall(r"\\.|.", pattern)
    special = {"*": ".*", "?": "."}
    return "".join(special[part] if part in special else re.escape(part[-1]) for part in parts)


MATCHES = re.compile("|".join(f"(?:{_expression(pattern)})" for pattern in PATTERNS))


def _intercepted(url: str) -> bool:
    return MATCHES.fullmatch(url) is not None


@given(ADDRESS)
def test_what_is_in_the_folder_is_not_intercepted(rest: str):
    """Whatever it is called."""
    assert not _intercepted(FOLDER)
    assert not _intercepted(FOLDER + rest)


@given(st.integers(1, len(FOLDER)), ADDRESS)
def test_everything_else_is(kept: int, rest: str):
    """From the first character on that differs; also what ends before the folder does."""
    url = FOLDER[:kept] + rest
    assert _intercepted(url) == (not url.startswith(FOLDER))
    assert _intercepted(rest)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/",
        "http://127.0.0.1:80000/a*b?c\\d-_Z/",
        "http://127.0.0.1:8000/a*b?c\\d-_Z",
        "http://127.0.0.1:8000/axb?c\\d-_Z/",
        "http://127.0.0.2:8000/a*b?c\\d-_Z/",
        "https://127.0.0.1:8000/a*b?c\\d-_Z/",
        "file:///etc/passwd",
        "data:text/plain,x",
    ],
)
def test_what_a_page_could_try(url: str):
    """Other paths, ports, hosts and schemes."""
    assert _intercepted(url)

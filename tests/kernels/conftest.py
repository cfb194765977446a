"""Fixtures of the tests that run in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .harness import BrowserPage


@pytest.fixture(scope="session")
def browser_page() -> Iterator[BrowserPage]:
    """One page that serves all kernel tests; a test that breaks it on purpose opens its own BrowserPage."""
    with BrowserPage() as page:
        yield page

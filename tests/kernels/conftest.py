"""Fixtures of the tests that run in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .harness import BrowserPage

PAGES: list[BrowserPage] = []


@pytest.fixture(scope="session")
def browser_page() -> Iterator[BrowserPage]:
    """One page that serves all kernel tests; a test that breaks it on purpose opens its own BrowserPage."""
    with BrowserPage() as page:
        PAGES.append(page)
        yield page
        PAGES.remove(page)


def pytest_runtest_setup() -> None:
    """A browser that died in one test is not missed by the next."""
    for page in PAGES:
        page.revive()

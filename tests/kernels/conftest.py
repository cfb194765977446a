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


@pytest.fixture(scope="module")
def can(browser_page: BrowserPage) -> bool:
    """Whether the device writes 8 rows a fragment, as what GPUs do needs; some renderers on the CPU have 6 targets."""
    return browser_page.call("/browser_runtime/texelgrad.js", "probe")["maxDrawBuffers"] >= 8


def pytest_runtest_setup() -> None:
    """A browser that died in one test is not missed by the next."""
    for page in PAGES:
        page.revive()

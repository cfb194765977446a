"""What holds for all tests: `scripts/test --goldens` does without PyTorch, and the summary says so."""

from __future__ import annotations

import os

import pytest

GOLDENS = bool(os.environ.get("TEXELGRAD_TEST_GOLDENS"))

# Files that compare with PyTorch itself; the parity tests fall back to its stored runs.
collect_ignore_glob = ["*_torch.py"] if GOLDENS else []


# Of a `full` test that names no limit itself: most take seconds on a quiet machine, and ten times that beside other work.
FULL_TIMEOUT_S = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sweeps may take longer than what CI runs."""
    for item in items:
        if item.get_closest_marker("full") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(FULL_TIMEOUT_S))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say with what parity was tested."""
    if GOLDENS:
        terminalreporter.write_line(
            "parity: against PyTorch's stored runs (--goldens); *_torch.py left out", yellow=True
        )
    else:
        terminalreporter.write_line("parity: against PyTorch itself")

"""What holds for all tests: `scripts/test --goldens` does without PyTorch, and the summary says so."""

from __future__ import annotations

import os

import pytest

GOLDENS = bool(os.environ.get("TEXELGRAD_TEST_GOLDENS"))

# Files that compare with PyTorch itself; the parity tests fall back to its stored runs.
collect_ignore_glob = ["*_torch.py"] if GOLDENS else []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say with what parity was tested."""
    if GOLDENS:
        terminalreporter.write_line(
            "parity: against PyTorch's stored runs (--goldens); *_torch.py left out", yellow=True
        )
    else:
        terminalreporter.write_line("parity: against PyTorch itself")

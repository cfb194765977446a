"""Puts what runs of the bench wrote into one Markdown document, on standard output.

python -m bench.report var/bench/compare.json ... > docs/benchmarks.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import tables

_INTRODUCTION = """# Benchmarks

Written by `python -m bench.report` from what `scripts/bench` measured; what the columns mean and how each time is taken is in
[performance.md](performance.md#the-bench). Less is better; a contender without a time says why.
"""
_TITLES = {
    "compare": "Side by side",
    "growth": "Growth of cost",
    "telemetry": "What reading the losses costs",
    "soak": "A long run",
}


def report(files: Sequence[Path]) -> str:
    """A section for each file, in their order."""
    sections = [_INTRODUCTION]
    for file in files:
        results: tables.Results = json.loads(file.read_text())
        facts = "\n".join(f"- {line}" for line in tables.heading(results).splitlines())
        sections.append(f"## {_TITLES[tables.what(results)]}\n\n{facts}\n\n{tables.table(results)}\n")
    return "\n".join(sections)


if __name__ == "__main__":
    sys.stdout.write(report([Path(argument) for argument in sys.argv[1:]]))

"""Which version of the code was measured."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def measured_commit(*folders: str) -> str | None:
    """The commit of this checkout, and whether files in these folders of it were changed since; None where there is no git."""
    packed = ROOT / "bench/COMMIT"  # bench/offline leaves it where there is no git
    if packed.is_file():
        return packed.read_text().strip()
    try:
        head, changes = (
            subprocess.run(
                ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
            ).stdout.strip()
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", *folders))
        )
    except FileNotFoundError:  # the program itself is missing
        return None
    return f"{head}{' and changes to it' if changes else ''}" or None

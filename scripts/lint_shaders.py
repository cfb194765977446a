"""Holds shaders/ to two rules: no imprecise built-ins, and a header on every kernel.

The built-ins err by up to 100% on real drivers, and isnan and isinf are folded away: lib/math.glsl has them all.
A kernel's header (its form is in CONTRIBUTING.md) says what it computes, on which shapes, and where its reference is.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

BANNED = ["exp", "exp2", "log", "log2", "pow", "inversesqrt", "isnan", "isinf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"]  # fmt: skip
BANNED_WORD = re.compile(rf"\b({'|'.join(BANNED)})\b")
INCLUDE = re.compile(r'^\s*#include\s+"[^"]*"')
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
REFERENCE = re.compile(r"^// Reference: (\S+)$")


def without_comments(text: str) -> list[str]:
    """Return the lines of the text, comments blanked out, so that line numbers stay."""
    return COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), text).split("\n")


def banned_words(text: str) -> list[tuple[int, str]]:
    """Return (line, message) for each built-in that lib/math.glsl replaces."""
    return [
        (number, f"{word} is imprecise or unreliable; use lib/math.glsl")
        for number, line in enumerate(without_comments(text), start=1)
        if not INCLUDE.match(line)
        for word in BANNED_WORD.findall(line)
    ]


def header_faults(name: str, text: str, root: Path) -> list[tuple[int, str]]:
    """Return (line, message) for what is missing from a kernel's header."""
    header: list[str] = []
    for line in text.split("\n"):
        if not line.startswith("//"):
            break
        header.append(line)
    faults: list[tuple[int, str]] = []
    if not header or not re.match(rf"// {re.escape(name)}: \S", header[0]):
        faults.append((1, f'the first line must be "// {name}: what it computes"'))
    if len(header) < 2 or "->" not in header[1] or "[" not in header[1]:
        faults.append((2, 'the second line must give the shapes, as "// A [M,K]  B [K,N]  ->  C [M,N]"'))
    references = [
        (number, match[1]) for number, line in enumerate(header, 1) if (match := REFERENCE.match(line))
    ]
    if not references:
        faults.append((1, 'the header has no line "// Reference: browser_runtime/reference/<file>.js"'))
    for number, path in references:
        if not (root / path).is_file():
            faults.append((number, f"the reference {path} does not exist"))
    return faults


def lint(root: Path) -> list[str]:
    """Return "file:line: message" for every fault below root/shaders."""
    messages: list[str] = []
    for file in sorted((root / "shaders").rglob("*.glsl")):
        text = file.read_text("utf-8")
        faults = banned_words(text)
        if "lib" not in file.relative_to(root / "shaders").parts[:-1]:
            faults += header_faults(file.name.partition(".")[0], text, root)
        messages += [
            f"{file.relative_to(root).as_posix()}:{line}: {message}" for line, message in sorted(faults)
        ]
    return messages


def main() -> int:
    """Print every fault; the exit status is 1 where there is one."""
    messages = lint(ROOT)
    for message in messages:
        print(message)
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())

"""Numbers and tables as text."""

from __future__ import annotations

from collections.abc import Sequence


def significant(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits, never in exponents; empty for None."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    return f"{float(text):,.0f}" if abs(value) >= 1 else f"{value:.6f}".rstrip("0")


def markdown(lines: Sequence[Sequence[str]], names: int = 1) -> str:
    """A table whose first line is its head, aligned for the terminal: `names` columns to the left, numbers to the right."""
    head, *body = [[cell.replace("|", "/") for cell in line] for line in lines]
    widths = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]

    def text(line: Sequence[str]) -> str:
        cells = (
            cell.ljust(width) if i < names else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        return f"| {' | '.join(cells)} |"

    rule = ["-" * width if i < names else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    return "\n".join([text(head), text(rule), *map(text, body)])

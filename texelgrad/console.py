"""What the command line shows: lines as wide as the terminal, or endless for files and programs; errors as messages."""

from __future__ import annotations

import sys
from typing import Any

import click
from rich.console import Console

from texelgrad.errors import Invalid, TexelgradError, fault_line

_ENDLESS = 10_000  # columns; rich would fold at 80, in the middle of ids and messages


def console(*, stderr: bool = False) -> Console:
    """A console for standard output, or for complaints."""
    file = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if file.isatty() else _ENDLESS)


class Readable(click.Group):
    """Shows what went wrong in any command as a message instead of a traceback, and exits with 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # `| head` has seen enough
            raise
        except (TexelgradError, OSError) as error:
            complaints = console(stderr=True)
            complaints.print(f"[red]error[/red] {type(error).__name__}", markup=True)
            faults = error.faults if isinstance(error, Invalid) else ()
            complaints.print("\n".join(map(fault_line, faults)) or str(error), markup=False)
            sys.exit(1)

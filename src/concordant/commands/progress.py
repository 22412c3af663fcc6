"""What a command says on stderr while it works."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from concordant.commands.output import one_line

__all__ = ["Progress", "tell"]


def tell(lines: list[str]) -> None:
    """Say each line on stderr, once."""
    while lines:
        click.echo(one_line(lines.pop(0)), err=True)


class Progress:
    """What is being done and how far it is, on a terminal; nothing elsewhere."""

    def __init__(self, quiet: bool, what: str) -> None:
        self.what = what
        self.shown = sys.stderr.isatty() and not quiet
        self.bar: Any = None

    def __enter__(self) -> Callable[[int, int], None] | None:
        if not self.shown:
            return None
        from rich.console import Console
        from rich.progress import Progress as Bar

        self.bar = Bar(console=Console(stderr=True), transient=True)
        self.bar.start()
        task = self.bar.add_task(self.what.replace("[", "\\["), total=None)
        return lambda done, total: self.bar.update(task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

"""What ``concordant rank`` does once its arguments are known."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from concordant.commands.output import check_output, one_line, show, write
from concordant.commands.rank import ROLES
from concordant.errors import UsageError
from concordant.ranking import rank
from concordant.reading import read_log
from concordant.structures.registry import structure

__all__ = ["run_rank"]


def run_rank(log: str, **given: Any) -> None:
    """Read, rank, write; notes and progress go to stderr."""
    quiet = given["quiet"]
    if given["output"] is not None:
        check_output(given["output"], log)
    structure(given["structure"])  # a wrong name should not cost the reading of a large log
    if given["neutral"] and not given["home"]:
        raise UsageError("--neutral says where the home side has no advantage; it needs --home")
    columns = {role: given[role] for role in (*ROLES, "neutral") if given[role] is not None}
    with _Progress(quiet, f"reading {log}"):
        reading = read_log(
            log,
            kind=given["kind"],
            columns=columns,
            clicks=given["clicks"],
            on_error=given["on_error"],
            engine=given["engine"],
            memory_limit=given["memory_limit"],
            threads=given["threads"],
            cluster=given["cluster"],
            covariates=given["covariates"],
            home="left" if given["home"] else None,
        )
    told = [f"skipped: {reading.report()}"] if reading.rejects else []
    prefs = reading.preferences.pool() if given["pool"] else reading.preferences
    if not quiet:
        told.append(f"{log}: {prefs.facts}")
    if sys.stderr.isatty():  # elsewhere an error should be the only line
        _tell(told)
    options = {name: given[name] for name in ("prior", "ties") if given[name] is not None}
    with _Progress(quiet, "ranking queries") as report:
        board = rank(
            prefs,
            given["structure"],
            interval=given["interval"],
            level=given["level"],
            seed=given["seed"],
            replicates=given["replicates"],
            quasi=given["quasi"],
            across_components=given["across_components"],
            progress=report,
            **options,
        )
    _tell(told)
    if given["output"] is not None:
        write(board, given["output"])
        if not quiet:
            click.echo(f"wrote {given['output']}: {len(board):,} rows", err=True)
    show(board, rows=given["rows"], quiet=quiet, table=given["output"] is None or sys.stdout.isatty())


def _tell(lines: list[str]) -> None:
    """Say each line on stderr, once."""
    while lines:
        click.echo(one_line(lines.pop(0)), err=True)


class _Progress:
    """What is being done and how far it is, on a terminal; nothing elsewhere."""

    def __init__(self, quiet: bool, what: str) -> None:
        self.what = what
        self.shown = sys.stderr.isatty() and not quiet
        self.bar: Any = None

    def __enter__(self) -> Callable[[int, int], None] | None:
        if not self.shown:
            return None
        from rich.console import Console
        from rich.progress import Progress

        self.bar = Progress(console=Console(stderr=True), transient=True)
        self.bar.start()
        task = self.bar.add_task(self.what.replace("[", "\\["), total=None)
        return lambda done, total: self.bar.update(task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

"""Options that several commands have: the roles of columns, how rows of a log are read, when not to order items."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import click

__all__ = ["ROLES", "SPREADSHEET", "abstention_options", "reading_options", "role_options", "spreadsheet_option"]


SPREADSHEET = "concordant.spreadsheet_safe"
"""Where the context of a command keeps whether texts in CSV are kept from being formulas."""

ROLES = (
    *("query", "winner", "loser", "left", "right", "outcome", "weight", "count"),
    *("left_score", "right_score", "left_wins", "right_wins"),
    *("session", "position", "item", "clicked", "judgment", "rank", "rating"),
)
HELP = {
    "query": "Column of the query.",
    "winner": "Column of the winning item (or, with two sides, of the outcome).",
    "loser": "Column of the losing item.",
    "left": "Column of the first side.",
    "right": "Column of the second side.",
    "outcome": "Column that names the winning side or item, or a tie.",
    "left_score": "Column of the first side's score; the higher one wins, equal ones tie.",
    "right_score": "Column of the second side's score.",
    "left_wins": "Column of the number of times the first side won.",
    "right_wins": "Column of the number of times the second side won.",
    "weight": "Column of the strength (> 0) of a comparison.",
    "count": "Column of the number of times a row was seen.",
    "session": "Column of the shown list (selections, choices).",
    "position": "Column of the position in the list, 1 = top.",
    "item": "Column of the item.",
    "clicked": "Column that says whether the item was clicked or chosen (0/1).",
    "judgment": "Column of the ranking (orders) or of the rater (ratings).",
    "rank": "Column of the rank, 1 = best, equal = tied.",
    "rating": "Column of the rating.",
}


def role_options(command: Any) -> Any:
    """Add an option for each role that a column of a log can play."""
    for role in reversed(ROLES):
        command = click.option(f"--{role.replace('_', '-')}", metavar="C", help=HELP[role])(command)
    return command


def reading_options(command: Any) -> Any:
    """Add what is done with rows that need a decision, and where the log is counted."""
    for option in reversed(
        (
            click.option("--clicks", type=click.Choice(["raise", "first", "last", "skip"]), default="raise",
                         show_default=True, help="Lists with more than one click."),
            click.option("--on-error", type=click.Choice(["raise", "skip"]), default="raise", show_default=True,
                         help="Rows that cannot be understood."),
            click.option("--engine", type=click.Choice(["duckdb", "memory", "spark"]), help="Default: duckdb."),
            click.option("--master", metavar="URL",
                         help="Master of Spark, such as spark://HOST:7077 or yarn; default: this machine."),
            click.option("--memory-limit", metavar="SIZE",
                         help="Memory of the engine (of Spark’s executors), such as 4GB; beyond it goes to disk."),
            click.option("--threads", type=click.IntRange(min=1), help="Threads of the engine (of Spark’s executors)."),
        )
    ):  # fmt: skip
        command = option(command)
    return command


def abstention_options(cost: str) -> Callable[[Any], Any]:
    """Add what makes a command leave pairs without order; ``cost`` is what it says of ``--abstain``."""

    def added(command: Any) -> Any:
        for option in reversed(
            (
                click.option("--abstain", metavar="COST", type=float, help=cost),
                click.option("--abstain-by", type=click.Choice(["distance", "risk"]),
                             help="What makes it risky: items near to each other (default), or a high estimated risk."),
                click.option("--gamma", metavar="G",
                             help="Distance up to which items are too near, in standardised features, whatever COST "
                             "is; auto (default) chooses it by --judgments."),
                click.option("--norm", type=click.Choice(["1", "2", "inf"]), help="Of the distance; default: inf."),
                click.option("--share", metavar="S", type=float,
                             help="Share of the judged pairs left without order, at most."),
                click.option("--judgments", metavar="LOG",
                             help="Held-out judgments (any preference log, or labels in a LETOR file) to choose when "
                             "by."),
                click.option("--judged-features", metavar="F",
                             help="Features of the items of LOG; default: those of --features."),
            )
        ):  # fmt: skip
            command = option(command)
        return command

    return added


def spreadsheet_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--spreadsheet-safe``, which ``output.as_csv`` heeds; refused where no CSV or TSV would be written."""

    @functools.wraps(command)
    def run(*given: Any, **options: Any) -> Any:
        written = [options[name] for name in ("output", "edges") if options.get(name) is not None]
        some = any(name.lower().endswith((".csv", ".tsv")) for name in written) or (
            options.get("output") is None and not sys.stdout.isatty()
        )
        if click.get_current_context().meta.get(SPREADSHEET) and not some:
            raise click.UsageError(
                "--spreadsheet-safe is for CSV and TSV; here "
                + (f"{written[0]} is written" if written else "a table is shown (--output F.csv writes one)")
            )
        return command(*given, **options)

    return click.option(
        "--spreadsheet-safe",
        is_flag=True,
        expose_value=False,
        callback=lambda ctx, _, value: ctx.meta.update({SPREADSHEET: value}),
        help="In CSV and TSV put ' before texts that a spreadsheet would take for formulas.",
    )(run)

"""Options that every command has that reads a preference log: the roles of columns and how rows are read."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["ROLES", "reading_options", "role_options"]

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

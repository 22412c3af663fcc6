"""``concordant rank``: options, reading, ranking, output."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["rank"]

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


def _role_options(command: Any) -> Any:
    for role in reversed(ROLES):
        command = click.option(f"--{role.replace('_', '-')}", metavar="C", help=HELP[role])(command)
    return command


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("log")
@click.option("--kind", metavar="K", help="comparisons, selections, choices, orders, ratings or labels.")
@_role_options
@click.option(
    "--structure",
    default="bradley-terry",
    show_default=True,
    metavar="S",
    help="bradley-terry, plackett-luce, log-odds, thurstone-mosteller, borda, budgeted-borda, eigenvector, "
    "counting or cascade.",
)
@click.option(
    "--prior",
    type=float,
    metavar="V",
    help="Precision of the normal prior on scores (default 0.01); 0 is plain maximum likelihood.",
)
@click.option("--ties", type=click.Choice(["half", "davidson"]), help="Ties as half wins, or Davidson's model.")
@click.option("--covariate", "covariates", multiple=True, metavar="C", help="Numeric column, left minus right.")
@click.option("--home", is_flag=True, help="Estimate an advantage of the left (first, home) side.")
@click.option("--neutral", metavar="C", help="With --home: true where no side is at home.")
@click.option("--cluster", metavar="C", help="Column of the worker or session that judgments depend on.")
@click.option("--clicks", type=click.Choice(["raise", "first", "last", "skip"]), default="raise", show_default=True,
              help="Lists with more than one click.")  # fmt: skip
@click.option("--interval", default="auto", show_default=True, metavar="METHOD",
              help="auto, hessian, sandwich, bootstrap or none.")  # fmt: skip
@click.option("--replicates", default=1000, show_default=True, help="Bootstrap replicates.")
@click.option("--level", default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--quasi", is_flag=True, help="Add quasi-standard errors (likelihoods, up to 500 items).")
@click.option("--pool", is_flag=True, help="One ranking over all queries.")
@click.option("--across-components", is_flag=True,
              help="Rank items that no chain of comparisons connects by the prior alone.")  # fmt: skip
@click.option("--output", "-o", metavar="F", help="Write to F: .csv, .tsv, .parquet, .arrow, .json or .jsonl.")
@click.option("--seed", default=0, show_default=True, help="Makes every output reproducible.")
@click.option("--on-error", type=click.Choice(["raise", "skip"]), default="raise", show_default=True,
              help="Rows that cannot be understood.")  # fmt: skip
@click.option("--engine", type=click.Choice(["duckdb", "memory"]), help="Default: duckdb.")
@click.option("--memory-limit", metavar="SIZE", help="Memory of the engine, such as 4GB; beyond it goes to disk.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads of the engine.")
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Rows per query of the table on a terminal.",
)
@click.option("--quiet", "-q", is_flag=True, help="No progress and no notes.")
def rank(log: str, **options: Any) -> None:
    """Rank the items of LOG, per query, and say what it cannot support.

    LOG is CSV, TSV, JSON Lines (also .gz), Parquet, Arrow, PrefLib, LETOR, or file.duckdb::table. Its columns are
    recognised by their usual names; name others with --winner, --loser, --query and so on.

    \b
    Examples:
      concordant rank votes.csv
      concordant rank votes.csv --query prompt --cluster worker -o ranking.parquet
      concordant rank clicks.parquet --structure cascade --clicks first
      concordant rank results.csv --home --neutral neutral --ties davidson
    """
    from concordant.commands.session import run_rank

    run_rank(log, **options)

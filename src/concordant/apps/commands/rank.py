"""``concordant rank``: options, reading, ranking, output."""

from __future__ import annotations

from typing import Any

import click

from concordant.apps.commands.given import Given, command
from concordant.apps.commands.idle import RULES
from concordant.apps.commands.log_options import reading_options, role_options, spreadsheet_option
from concordant.apps.commands.progress import progress_options

__all__ = ["rank"]


@command()
@click.argument("log")
@click.option("--kind", metavar="K", help="comparisons, selections, choices, orders, ratings or labels.")
@role_options
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
@reading_options
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
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    show_default="20, of a single query up to 60",
    help="Rows per query of the table on a terminal.",
)
@progress_options
@spreadsheet_option
def rank(log: str, **options: Any) -> None:
    """Rank the items of LOG, per query, and say what it cannot support.

    LOG is CSV, TSV, JSON Lines (also .gz), Parquet, Arrow, PrefLib, LETOR, a folder of files of one kind,
    file.duckdb::table, or a store (concordant ingest). Its columns are recognised by their usual names; name others
    with --winner, --loser, --query and so on.

    \b
    Examples:
      concordant rank votes.csv
      concordant rank votes.csv --query prompt --cluster worker -o ranking.parquet
      concordant rank clicks.parquet --structure cascade --clicks first
      concordant rank results.csv --home --neutral neutral --ties davidson
    """
    from concordant.apps.commands.session import run_rank

    run_rank(log, Given.of(options, RULES))

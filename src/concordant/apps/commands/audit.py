"""``concordant audit``: options; what is done with them is in ``audit.py``."""

from __future__ import annotations

from typing import Any

import click

from concordant.apps.commands.given import Given, command
from concordant.apps.commands.idle import RULES
from concordant.apps.commands.log_options import reading_options, role_options, spreadsheet_option
from concordant.apps.commands.progress import progress_options

__all__ = ["audit"]


@command()
@click.argument("log")
@click.option("--kind", metavar="K", help="comparisons, selections, choices, orders, ratings or labels.")
@role_options
@click.option("--cluster", metavar="C", help="Column of the worker or session that judgments depend on.")
@reading_options
@click.option(
    "--surrogate",
    "surrogates",
    multiple=True,
    metavar="NAME[:PHI]",
    help="Audit this surrogate (again for more; default: all), such as ranknet or difference-graph:hinge.",
)
@click.option(
    "--ties",
    type=click.Choice(["heavier", "paper"]),
    default="heavier",
    show_default=True,
    help="How the pairwise loss charges tied scores: the heavier direction, or the formula literally.",
)
@click.option(
    "--exact",
    is_flag=True,
    help="Best orders by dynamic programming up to 20 items that hang together in cycles, then by an integer "
    "programme.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="With --exact: time for each integer programme.",
)
@click.option(
    "--structure",
    metavar="S",
    help="Structure whose scores NDCG and ERR are judged by (default: log-odds; cascade for selections).",
)
@click.option(
    "--order",
    default="all",
    show_default=True,
    metavar="K",
    help="Judgments aggregated at a time for NDCG and ERR: all, or a number.",
)
@click.option(
    "--replicates",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="Bootstrap replicates of the judgments; 0: nothing about sampling noise.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Confidence of the statements about noise.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    metavar="K",
    help="Settle the top K: how many more judgments that takes, and which pairs to ask (default: the first place; "
    "pairs for the whole order).",
)
@click.option(
    "--ask",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="Pairs to ask next, for each query.",
)
@click.option("--pool", is_flag=True, help="One population over all queries.")
@click.option(
    "--output",
    "-o",
    metavar="F",
    help="Write to F: .json has everything; .csv, .tsv, .parquet, .arrow, .jsonl a row for each query.",
)
@click.option("--edges", metavar="F", help="Write every net preference and how sure its direction is to F.")
@click.option("--seed", default=0, show_default=True, help="Makes every output reproducible.")
@click.option(
    "--rows", type=click.IntRange(min=1), default=20, show_default=True, help="Queries in the table on a terminal."
)
@progress_options
@spreadsheet_option
def audit(log: str, **options: Any) -> None:
    """Say whether the preferences of LOG, with a loss, can lead to the right order.

    Per query: is the population low-noise, where are the cycles, what is the best achievable pairwise loss, which
    surrogate losses reach it with infinite data like this and what do the others cost, is any of that more than
    sampling noise, and which pairs should be asked next.

    \b
    Examples:
      concordant audit votes.csv
      concordant audit votes.csv --query prompt -o audit.json
      concordant audit votes.csv --surrogate ranknet --surrogate difference-graph
      concordant audit elections.soc --exact
    """
    from concordant.apps.commands.auditing import run_audit

    run_audit(log, Given.of(options, RULES))

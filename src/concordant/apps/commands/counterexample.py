"""``concordant counterexample``: options; the work is in ``counterexampling``."""

from __future__ import annotations

from typing import Any

import click

from concordant.apps.commands.given import Given, command
from concordant.apps.commands.idle import RULES
from concordant.apps.commands.progress import progress_options

__all__ = ["counterexample"]


@command()
@click.argument("name")
@click.option("--phi", metavar="P", help="Margin function: hinge, squared-hinge, logistic, exponential.")
@click.option("--items", type=int, metavar="M", help="Number of items, 2 to 6 (default 3).")
@click.option("--within", metavar="C", help="Populations to search: low-noise (default), acyclic or any.")
@click.option("--votes", type=int, metavar="N", help="Number of votes (default 1000; more where they are needed).")
@click.option("--budget", type=int, metavar="N", help="Linear programmes to solve in the search (default 2000).")
@click.option("--output", "-o", metavar="DIR", help="Folder for votes.csv, items.csv and right.csv.")
@click.option(
    "--seed", type=int, metavar="S", help="Makes a search that cannot try all scores reproducible (default 0)."
)
@progress_options
def counterexample(name: str, **options: Any) -> None:
    """Find votes that the surrogate NAME, with any amount of data, ranks wrongly, and write them as a log.

    NAME is a surrogate that reads preferences (ranknet, ranksvm, rankboost, margin-based, difference-graph, linear), or
    a counterexample of the papers: theorem-2, theorem-3, orderings. Printed are the votes, the order that contradicts
    the fewest of them, what every surrogate makes of them, and what that costs.

    votes.csv is a log for concordant rank and fit, items.csv has features for fit with which a linear scorer can give
    every item any score, and right.csv has the right order as labels for concordant evaluate.

    \b
    Examples:
      concordant counterexample ranknet -o ranknet
      concordant counterexample ranksvm --items 4 --within acyclic
      concordant counterexample theorem-3 -o theorem-3
    """
    from concordant.apps.commands.counterexampling import run_counterexample

    run_counterexample(name, Given.of(options, RULES))

"""``concordant report``: options; the work is in ``reporting``."""

from __future__ import annotations

from typing import Any

import click

from concordant.apps.commands.given import Given, command
from concordant.apps.commands.idle import RULES
from concordant.apps.commands.log_options import reading_options, role_options
from concordant.apps.commands.progress import progress_options

__all__ = ["report"]


@command()
@click.argument("log")
@click.option("--output", "-o", required=True, metavar="F", help="The page to write: .html.")
@click.option("--kind", metavar="K", help="comparisons, selections, choices, orders or ratings.")
@role_options
@click.option("--cluster", metavar="C", help="Column of the worker or session that judgments depend on.")
@click.option("--group", metavar="C", help="Column of who judged, for the agreement of groups (default: --cluster).")
@reading_options
@click.option("--features", "-f", metavar="F", help="Features of the items: a scorer is fitted to them, and shown.")
@click.option("--feature-item", metavar="C", help="Column of F with the item.")
@click.option("--feature-query", metavar="C", help="Column of F with the query.")
@click.option("--feature-columns", metavar="A,B,…", help="Columns of F that are features (default: all others).")
@click.option(
    "--model", "-m", metavar="DIR", help="A model that concordant fit wrote: shown in the place of that scorer."
)
@click.option(
    "--unsafe-load-pickle", is_flag=True, help="Load a model that holds a pickle. A pickle runs whatever code is in it."
)
@click.option(
    "--structure", default="bradley-terry", show_default=True, metavar="S", help="As of concordant rank."
)  # fmt: skip
@click.option("--interval", default="auto", show_default=True, metavar="METHOD",
              help="auto, hessian, sandwich, bootstrap or none.")  # fmt: skip
@click.option("--replicates", type=click.IntRange(min=1), default=1000, show_default=True,
              help="Bootstrap replicates of the intervals.")  # fmt: skip
@click.option("--level", default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--ask", type=click.IntRange(min=0), default=10, show_default=True, metavar="N",
              help="Pairs to ask next, a query.")  # fmt: skip
@click.option("--audit/--no-audit", default=True, help="Without the audit a large log takes less time.")
@click.option("--title", metavar="TEXT", help="What stands above the page; default: the name of LOG.")
@click.option("--seed", default=0, show_default=True, help="Makes the page reproducible.")
@progress_options
def report(log: str, **options: Any) -> None:
    """Write one page to look at: what LOG says, how sure that is, and what to ask next.

    The page holds everything it needs (no network): the ranking with intervals, who beats whom, the difference graph
    with its cycles, the audit in words, how far those who judged agree, and which pairs to ask next; with --features or
    --model also the scorer, its risk against k, and when it should rather decline to order two items. See
    docs/report.md.

    \b
    Examples:
      concordant report votes.csv -o report.html
      concordant report votes.csv --query prompt --cluster worker -o report.html
      concordant report votes.csv --features answers.csv --model model -o report.html
    """
    from concordant.apps.commands.reporting import run_report

    run_report(log, Given.of(options, RULES))

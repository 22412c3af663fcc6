"""``concordant ingest``: options; the work is in ``ingesting_logs``."""

from __future__ import annotations

from typing import Any

import click

from concordant.apps.commands.given import Given, command
from concordant.apps.commands.idle import RULES
from concordant.apps.commands.log_options import reading_options, role_options
from concordant.apps.commands.progress import progress_options

__all__ = ["ingest"]


@command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option("--store", "-s", required=True, metavar="FILE", help="The store; the first log makes it.")
@click.option("--kind", metavar="K", help="comparisons, selections, choices, orders or ratings.")
@role_options
@click.option("--covariate", "covariates", multiple=True, metavar="C", help="Numeric column, left minus right.")
@click.option("--home", is_flag=True, help="Keep which side was at home (left, first), for rank --home.")
@click.option("--neutral", metavar="C", help="With --home: true where no side is at home.")
@click.option("--cluster", metavar="C", help="Column of the worker or session that judgments depend on.")
@reading_options
@click.option("--grown", is_flag=True, help="Take in a file that begins with all of one that was taken in.")
@click.option("--again", default="", metavar="NAME", help="Count logs that the store has once more, under NAME.")
@click.option(
    "--known", metavar="F", help="Of an export of a store: the list of files beside it (_X.known.json), or none."
)
@click.option("--wait", type=click.FloatRange(min=0), default=10.0, show_default=True, metavar="SECONDS",
              help="How long to wait while another process writes to the store.")  # fmt: skip
@progress_options
def ingest(logs: tuple[str, ...], **options: Any) -> None:
    """Take each LOG into a store, exactly once: what is there already, by its content, is left out.

    LOG is what concordant rank reads; of a folder the new files are taken in. Each LOG is in the store as a whole or
    not at all, whatever happens meanwhile, and a line says so. The first one fixes the kind of judgments and which
    columns are query, cluster and covariates; the others have to agree. Then name the store in the place of a log:

    \b
    Examples:
      concordant ingest votes-monday.csv votes-tuesday.csv --store votes.store
      concordant ingest clicks/ --store clicks.store --clicks first
      concordant rank votes.store
      concordant store info votes.store
    """
    from concordant.apps.commands.ingesting_logs import run_ingest

    run_ingest(logs, Given.of(options, RULES))

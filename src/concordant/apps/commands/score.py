"""``concordant score``: options; the work is in ``scoring``."""

from __future__ import annotations

from typing import Any

import click

from concordant.apps.commands.given import Given, command
from concordant.apps.commands.idle import RULES
from concordant.apps.commands.log_options import abstention_options, spreadsheet_option
from concordant.apps.commands.progress import progress_options

__all__ = ["score"]


@command()
@click.option("--model", "-m", required=True, metavar="DIR", help="A model that concordant fit wrote.")
@click.option("--features", "-f", required=True, metavar="F", help="Features of the items to score.")
@click.option("--output", "-o", metavar="F", help="Write to F: .csv, .tsv, .parquet, .arrow, .json or .jsonl; with "
              "--engine spark also a folder, for Parquet that the executors write.")  # fmt: skip
@click.option("--stream/--in-memory", default=None,
              help="Leave F on disk (Parquet, Arrow or a folder of them) and read it block by block. Default: where F "
              "would not fit into memory.")  # fmt: skip
@click.option("--memory-limit", metavar="SIZE", help="Memory for F, such as 4GB; a larger one stays on disk.")
@click.option("--feature-item", metavar="C", help="Column of F with the item.")
@click.option("--feature-query", metavar="C", help="Column of F with the query.")
@abstention_options(
    "Order no two items where that is too risky: COST of that, from 0 to 1 (a wrong order costs 1). "
    "Adds the column tier: items of one tier are not ordered."
)
@click.option(
    "--unsafe-load-pickle", is_flag=True, help="Load a model that holds a pickle. A pickle runs whatever code is in it."
)
@click.option("--engine", type=click.Choice(["memory", "spark"]), default="memory", show_default=True,
              help="Where the work is done; see docs/spark.md for spark.")  # fmt: skip
@click.option("--master", metavar="URL", help="Master of Spark, such as local[4] or spark://HOST:PORT.")
@progress_options
@spreadsheet_option
def score(model: str, **options: Any) -> None:
    """Score and rank items by a fitted model: columns query, item, score, rank (1 = best of its query).

    Columns of F are matched with the model's features by name; others are left unread. Equal scores share a rank.

    With --abstain, or a model kept as an AbstainingRanker, there is a column tier (1 = best of its query). Of two items
    in different tiers the model says which is better; of two in the same tier it does not.

    \b
    Examples:
      concordant score --model model --features new-items.csv
      concordant score -m model -f test.txt -o scores.parquet
      concordant score -m model -f new-items.csv --abstain 0.2 --judgments held-out.csv --judged-features items.csv
    """
    from concordant.apps.commands.scoring import run_score

    run_score(model, Given.of(options, RULES))

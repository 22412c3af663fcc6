"""``concordant score``: options; the work is in ``scoring``."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["score"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--model", "-m", required=True, metavar="DIR", help="A model that concordant fit wrote.")
@click.option("--features", "-f", required=True, metavar="F", help="Features of the items to score.")
@click.option("--output", "-o", metavar="F", help="Write to F: .csv, .tsv, .parquet, .arrow, .json or .jsonl.")
@click.option("--feature-item", metavar="C", help="Column of F with the item.")
@click.option("--feature-query", metavar="C", help="Column of F with the query.")
@click.option("--unsafe-load-pickle", is_flag=True,
              help="Load a model that holds a pickle. A pickle runs whatever code is in it.")  # fmt: skip
@click.option("--quiet", "-q", is_flag=True, help="No notes.")
def score(model: str, **options: Any) -> None:
    """Score and rank items by a fitted model: columns query, item, score, rank (1 = best of its query).

    Columns of F are matched with the model's features by name; others are left unread. Equal scores share a rank.

    \b
    Examples:
      concordant score --model model --features new-items.csv
      concordant score -m model -f test.txt -o scores.parquet
    """
    from concordant.commands.scoring import run_score

    run_score(model, options)

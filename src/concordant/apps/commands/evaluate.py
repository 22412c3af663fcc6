"""``concordant evaluate``: options; the work is in ``evaluating``."""

from __future__ import annotations

from typing import Any

import click

from concordant.apps.commands.given import Given, command
from concordant.apps.commands.idle import RULES
from concordant.apps.commands.log_options import spreadsheet_option
from concordant.apps.commands.progress import progress_options

__all__ = ["evaluate"]


@command()
@click.argument("scores")
@click.argument("labels")
@click.argument("more", nargs=-1, metavar="")
@click.option("--metric", "metrics", multiple=True, metavar="M", default=("ndcg@10",), show_default="ndcg@10",
              help="ndcg, err, precision, average-precision, reciprocal-rank, auc, kendall-tau, pairwise-loss; a "
              "cut-off is written as in ndcg@10. Several: --metric ndcg@10 map, or --metric again.")  # fmt: skip
@click.option("--convention", metavar="C", help="burges (default), sklearn, trec, xgboost, lightgbm or letor4.")
@click.option("--against", metavar="SCORES", help="A second scorer on the same rows: paired differences, first minus "
              "second.")  # fmt: skip
@click.option("--per-query", is_flag=True, help="One row per metric and query.")
@click.option("--unmatched", type=click.Choice(["raise", "skip"]), default="raise", show_default=True,
              help="Rows of one file that the other lacks.")  # fmt: skip
@click.option("--query", metavar="C", help="Column of the query, in both files.")
@click.option("--item", metavar="C", help="Column of the item, in both files.")
@click.option("--score", metavar="C", help="Column of the score.")
@click.option("--label", metavar="C", help="Column of the label.")
@click.option(
    "--level",
    default=0.95,
    show_default=True,
    help="Confidence level of --against, and of the AUC of one list (DeLong).",
)
@click.option("--engine", type=click.Choice(["memory", "spark"]), default="memory", show_default=True,
              help="Where the work is done; see docs/spark.md for spark.")  # fmt: skip
@click.option("--master", metavar="URL", help="Master of Spark, such as local[4] or spark://HOST:PORT.")
@progress_options
@spreadsheet_option
def evaluate(scores: str, labels: str, more: tuple[str, ...], **options: Any) -> None:
    """Judge SCORES by the graded LABELS: mean and standard error of each metric over queries.

    SCORES is a table with columns query, item, score, as concordant score writes it; LABELS is LETOR, qrels or a table
    with columns query, item, label. Rows are matched by query and item; without a query in both files all rows are one
    query. Equal scores are taken in the order of SCORES unless the convention has another rule.

    \b
    Examples:
      concordant evaluate scores.csv test.txt --metric ndcg@10 map err@10
      concordant evaluate scores.csv test.qrels --metric ndcg@10 --convention trec --per-query
      concordant evaluate new.parquet test.txt --against old.parquet
    """
    from concordant.apps.commands.evaluating import run_evaluate

    options["metrics"] = [name for given in (*options["metrics"], *more) for name in given.split(",")]
    run_evaluate(scores, labels, Given.of(options, RULES))

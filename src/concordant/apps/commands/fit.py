"""``concordant fit``: options; the work is in ``fitting``."""

from __future__ import annotations

from typing import Any

import click

from concordant.apps.commands.given import Given, command
from concordant.apps.commands.idle import RULES
from concordant.apps.commands.log_options import reading_options, role_options
from concordant.apps.commands.progress import progress_options

__all__ = ["fit"]


@command()
@click.argument("log")
@click.option("--features", "-f", metavar="F", help="Features of the items: a table with item, optionally query, and "
              "numeric columns, or a LETOR file. Default: LOG itself, when it is LETOR.")  # fmt: skip
@click.option("--model", "-m", required=True, metavar="DIR", help="Where the model is kept: a directory.")
@click.option("--loss", default="gain-regression", show_default=True, metavar="L",
              help="gain-regression, difference-graph, linear, ndcg-pairwise, err-pairwise, ranksvm, ranknet, "
              "rankboost or margin-based.")  # fmt: skip
@click.option("--phi", metavar="P", help="Margin function of the loss: hinge, squared-hinge, logistic, exponential.")
@click.option("--structure", "-s", metavar="S", help="What is aggregated: log-odds, bradley-terry, borda, cascade, …")
@click.option("--order", default="auto", show_default=True, metavar="K",
              help="Judgments aggregated at a time: a number, all, or auto (all when informed, else by "
              "cross-validation).")  # fmt: skip
@click.option("--subsets", type=click.IntRange(min=1),
              help="Subsets of K judgments drawn of each query (default 32).")  # fmt: skip
@click.option("--gain", metavar="G", help="Gain of a score: 2^s-1, 2^s or identity.")
@click.option("--informed/--not-informed", default=None,
              help="Let the features inform the aggregation where judgments are few. Default: informed, unless a "
              "structure is given or LOG is a log of clicks.")  # fmt: skip
@click.option("--regressor", "-r", default="linear", show_default=True, metavar="R",
              help="linear, hist-gradient-boosting, random-forest, lightgbm, xgboost or network.")  # fmt: skip
@click.option("--ridge", metavar="V", help="Ridge (λ/2)‖θ‖² on standardised features: a number, or auto.")
@click.option("--log-features", is_flag=True, help="Take sign(x)·log(1 + |x|) of every feature.")
@click.option("--standardise/--as-given", default=True, show_default=True, help="Standardise the features.")
@click.option("--missing", type=click.Choice(["raise", "mean", "median", "zero"]), default="raise", show_default=True,
              help="What a missing feature becomes.")  # fmt: skip
@click.option("--feature-columns", metavar="A,B,…", help="Columns of F that are features (default: all others).")
@click.option("--feature-item", metavar="C", help="Column of F with the item.")
@click.option("--feature-query", metavar="C", help="Column of F with the query.")
@click.option("--stream/--in-memory", default=None,
              help="Leave F on disk (Parquet, Arrow or a folder of them) and read it block by block: linear scorers "
              "with a named structure. Default: where F would not fit into memory.")  # fmt: skip
@click.option("--kind", metavar="K", help="comparisons, selections, choices, orders, ratings or labels.")
@role_options
@click.option("--label", metavar="C", help="Column of the label, with --kind labels.")
@reading_options
@click.option("--folds", type=click.IntRange(min=2), help="Folds of the cross-validation (default 3).")
@click.option("--seed", default=0, show_default=True, help="Makes the model reproducible.")
@progress_options
def fit(log: str, **options: Any) -> None:
    """Learn a scoring function of item features from the preferences in LOG and keep it in a directory.

    LOG is what concordant rank reads, or graded labels (LETOR, qrels, a table with --kind labels). Items of LOG are
    matched with the rows of F by item and, where F has a query, by query.

    \b
    Examples:
      concordant fit votes.csv --features items.csv --model model
      concordant fit clicks.parquet --features docs.txt --model model --structure cascade --clicks first
      concordant fit votes.csv -f items.csv -m trees --regressor hist-gradient-boosting
      concordant fit train.txt --model model          (LETOR: labels and features in one file)
      concordant fit votes.parquet -f huge.parquet -m model --structure log-odds --stream
    """
    from concordant.apps.commands.fitting import run_fit

    run_fit(log, Given.of(options, RULES))

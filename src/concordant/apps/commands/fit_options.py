"""What can be said to ``concordant fit``."""

from __future__ import annotations

from typing import Literal

import click

from concordant.apps.commands.given import flag, option
from concordant.apps.commands.regressors import NAMES
from concordant.apps.commands.shared_options import (
    ONE,
    PHIS,
    ChosenFeatures,
    ClickOptions,
    ClusteredLog,
    Said,
    any_of,
    logs,
    positive,
    share,
)
from concordant.losses.names import SURROGATES
from concordant.ranking.names import STRUCTURES

OF_ONE = ("regressor", "regressor_options", "monotone", "loss", "phi", "gain", "ridge")
"""Options that name one of the scorers that graded labels are fitted by."""


class FitOptions(ChosenFeatures, ClusteredLog, ClickOptions):
    """Learn a scoring function of item features from the preferences in LOG and keep it in a directory.

    LOG is what concordant rank reads, or graded labels (LETOR, qrels, a table with --kind labels). Items of LOG are
    matched with the rows of F by item and, where F has a query, by query.

    \b
    Examples:
      concordant fit votes.csv --features items.csv --model model
      concordant fit clicks.parquet --features docs.txt --model model --structure cascade --clicks first
      concordant fit votes.csv -f items.csv -m trees --regressor hist-gradient-boosting
      concordant fit votes.store -f items.csv -m model --start model      (each night)
      concordant fit train.txt --model model          (LETOR: labels and features in one file)
      concordant fit train.txt -m trees --regressor boosted --validate vali.txt
      concordant fit votes.parquet -f huge.parquet -m model --structure log-odds --stream
    """

    log: str = logs()
    features: str | None = option(
        "F",
        "Features of the items: a table with item, optionally query, and numeric columns, or a LETOR file. Default: "
        "LOG itself, when it is LETOR.",
        "-f",
    )
    model: str = option("DIR", "Where the model is kept: a directory.", "-m", required=True)
    start: str | None = option(
        "DIR",
        "Keep what held-out judgments chose when this model was fitted (aggregation, ridges), and fit the coefficients "
        "anew: less than a tenth of the work. All is chosen anew where judgments grew or shrank by more than a tenth.",
    )
    loss: str | None = option(
        "L",
        f"{any_of([*SURROGATES, 'leximax-copeland'])}. Of --regressor boosted also informed, "
        "informed-regression, lambda-ndcg or label-regression, several with "
        "commas between.",
        show_default="gain-regression, of boosted two that suit",
    )
    phi: str | None = option("P", f"Margin function of the loss: {PHIS}.")
    structure: str | None = option("S", f"What is aggregated: {any_of(STRUCTURES)}.", "-s")
    order: int | str = option(
        "K",
        "Judgments aggregated at a time: a number, all, or auto (all when informed, else by cross-validation).",
        default="auto",
        type=Said("auto, all or a number of judgments", int, "auto", "all"),
    )
    subsets: int | None = option(None, "Subsets of K judgments drawn of each query (default 32).", type=ONE)
    gain: str | None = option("G", "Gain of a score: 2^s-1, 2^s or identity.")
    score_scale: float | str | None = option(
        "B",
        "Gains are of B times the scores: a positive number, or auto (by cross-validation). Default: 1.",
        type=Said("auto or a positive number", positive, "auto"),
    )
    c0: float | str | None = option(
        "C",
        "Wins added to either side of a pair by --structure log-odds (the default beside this option) and others: a "
        "positive number, or auto (by cross-validation). Default: 0.5.",
        type=Said("auto or a positive number", positive, "auto"),
    )
    informed: bool | None = option(
        None,
        "Let the features inform the aggregation where judgments are few. Default: informed, unless a structure is "
        "given or LOG is a log of clicks.",
        "--informed/--not-informed",
    )
    target: str | None = option(
        "T",
        "What the scorer is for: pairwise, ndcg@K, err@K or precision@K (ndcg, err: the whole list); by it held-out "
        "judgments choose order, ridge and the aggregation itself, and graded labels become the gains that are fitted. "
        "Default: pairwise, for clicks err, for graded labels ndcg.",
    )
    gate: bool | None = option(
        None,
        "Let held-out judgments decide whether another aggregation than the informed one is surely better. Default: "
        "where no structure, order, gain or --informed is given.",
        "--gate/--no-gate",
    )
    regressor: str = option(
        "R",
        f"{any_of(NAMES)}. boosted: a linear scorer, then trees on the same loss.",
        "-r",
        default="linear",
        show_default="linear; of graded labels linear or boosted, by held-out queries",
    )
    regressor_options: tuple[str, ...] = option(
        "KEY=VALUE", "A setting of the regressor, such as max_depth=6 (again for more).", default=()
    )
    monotone: str | None = option(
        "A=+1,B=-1",
        "With --regressor boosted: scores never fall (+1) or never rise (-1) as the feature rises.",
    )
    validate: float | str | None = option(
        "FILE|SHARE",
        "Judge the scorer by what it is not fitted to: a file of the same kind as LOG, or a share of its queries, such "
        "as 0.2. Of boosted trees the loss after each number of trees is printed; boosted takes the best number.",
        type=Said("a file, or a share of the queries between 0 and 1", share),
    )
    ridge: float | str | None = option(
        "V",
        "Ridge (λ/2)‖θ‖² on standardised features: a number, or auto.",
        type=Said("auto or a number of at least 0", float, "auto"),
    )
    solver: Literal["exact", "stochastic"] = option(
        None,
        "How losses on edges are minimised: exactly, or by stochastic gradients, whose steps cost the same however "
        "many judgments there are.",
        default="exact",
    )
    steps: int | None = option(None, "Steps of the stochastic solver (default 100,000).", type=ONE)
    radius: float | None = option(
        "R",
        "The stochastic solver keeps the coefficients of standardised features in the ball ‖θ‖ ≤ R.",
        type=click.FloatRange(min=0, min_open=True),
    )
    log_features: bool = flag("Take sign(x)·log(1 + |x|) of every feature.")
    standardise: bool = option(None, "Standardise the features.", "--standardise/--as-given", default=True)
    missing: Literal["raise", "mean", "median", "zero", "keep"] | None = option(
        None,
        "What a missing feature becomes.",
        show_default="keep for regressors that know them, else raise; where several scorers of labels are tried, mean",
    )
    stream: bool | None = option(
        None,
        "Leave F on disk (Parquet, Arrow or a folder of them) and read it block by block: linear scorers with a named "
        "structure. Default: where F would not fit into memory.",
        "--stream/--in-memory",
    )
    label: str | None = option("C", "Column of the label, with --kind labels.")
    folds: int | None = option(None, "Folds of the cross-validation (default 3).", type=click.IntRange(min=2))
    seed: int = option(None, "Makes the model reproducible.", default=0)

"""Fit a linear scorer where the log and the features lie: targets per query, normal equations as partial sums.

What of an AggregationRanker is done on Spark: one plan with one ridge, linear; the rest is refused, with what is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from concordant.apps.spark.frames import JudgedQueries, Table
from concordant.apps.spark.learning_features import Examined, FeatureFrame, examine, refuse_twice
from concordant.apps.spark.learning_sums import (
    MakeTargets,
    TargetFacts,
    add_up,
    buckets_for,
    facts_of,
    partial_sums,
    target_columns,
)
from concordant.apps.spark.telling import told
from concordant.errors import InputError, UsageError
from concordant.io.engines.spark_session import session as spark_session
from concordant.learning.features.normalising import Normaliser
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.plans import STRUCTURE_CHOICES, Plan, gains_to_try, orders_to_try, plans, ridges_to_try
from concordant.preferences.values import say

__all__ = ["fit", "one_plan", "refuse_beyond_spark", "targets"]


WHERE = "is done in memory only; on Spark"


def refuse_beyond_spark(ranker: AggregationRanker) -> None:
    """Raise UsageError for parameters that need more than one pass of sums, before any work."""
    if ranker.informed is True:
        raise UsageError(f"informed aggregation {WHERE} name a structure, such as log-odds or bradley-terry")
    if ranker.regressor is not None:
        raise UsageError(
            f"fitting a regressor {WHERE} give the targets (concordant.spark.targets) to a distributed trainer"
        )
    if ranker.intercept != "query":
        raise UsageError(f"intercept {ranker.intercept!r} {WHERE} every query has its own (intercept='query')")
    if ranker.missing not in ("raise", "mean", "zero"):
        raise UsageError(f"missing={ranker.missing!r} {WHERE} it is raise, mean or zero")
    if isinstance(ranker.order, str) and ranker.order == "auto":
        raise UsageError(f"choosing the order by cross-validation {WHERE} it is all or a number: --order all (order=)")
    for name in ("structure", "order", "gain", "ridge"):
        value = getattr(ranker, name)
        if isinstance(value, list) or (value == "auto" and name != "ridge"):
            raise UsageError(f"choosing the {name} by cross-validation {WHERE} give one {name}")


def one_plan(ranker: AggregationRanker, kind: str) -> tuple[Plan, float, list[str]]:
    """Return structure, order and gain, the ridge, and what a reader should know of the choice.

    Errors (UsageError): a structure that does not read this kind, unknown options and gains.
    """
    said = []
    structure: Any = ranker.structure
    if structure is None:
        structure = STRUCTURE_CHOICES[kind][0]
        if kind != "selections" and ranker.informed == "auto":
            said.append(f"structure {structure}: on Spark the features do not inform the aggregation")
    gain = ranker.gain
    if gain is None:
        gain = "identity" if structure == "cascade" else "2^s-1"
    gains = gains_to_try(gain, True if ranker.normalise is None else ranker.normalise)
    found = plans(structure, ranker.structure_options or {}, kind, orders_to_try(ranker.order, 1), gains)
    return found[0], ridges_to_try(ranker.ridge, False)[0], said


KEPT = StorageLevel.MEMORY_AND_DISK


def targets(
    log: Any,
    *,
    structure: str | None = None,
    structure_options: Mapping[str, Any] | None = None,
    order: int | str = "all",
    subsets: int = 32,
    gain: str | None = None,
    normalise: bool = True,
    at: int | None = None,
    seed: int = 0,
    session: SparkSession | None = None,
    master: str | None = None,
    **reading: Any,
) -> DataFrame:
    """Return the targets of every judged item: a DataFrame of query, item, target, weight, for any trainer.

    ``target`` is ȳ less its mean in the query (see ``mean_targets``), ``weight`` is n̂_q/(n m_q) scaled to a mean of 1
    over all rows: least squares on (features, target) with these weights is the minimiser of the U-statistic risk over
    whatever class the trainer has. The rows of a query are the same as in memory, to the bit of its draws.

    ``log`` is anything that ``read(engine="spark")`` reads, ``reading`` are its options; without ``session`` the
    active one is used, or one made for ``master``. Errors: InputError, UsageError.

    Source: Duchi, Mackey and Jordan (2013), (18), (28).
    """
    ranker = AggregationRanker(
        structure,
        structure_options=structure_options,
        order=order,
        subsets=subsets,
        gain=gain,
        normalise=normalise,
        at=at,
        seed=seed,
        informed=False,
    )
    judged = JudgedQueries.of(log, session or spark_session(master), **reading)
    plan, _, _ = one_plan(ranker, judged.kind)
    made = judged.table(_maker(ranker, plan), target_columns(*judged.labels))
    weight = fn.col("judgments") / fn.col("size")
    with judged.explained():
        whole = made.agg(fn.sum(weight).alias("weight"), fn.count(fn.lit(1)).alias("rows")).first()
    if not whole["rows"]:
        raise InputError("there are no judgments to learn from")
    weight = weight * fn.lit(whole["rows"] / whole["weight"])
    return made.select("query", "item", "target", weight.alias("weight"))


def fit(
    ranker: AggregationRanker,
    log: Any,
    features: Any,
    *,
    feature_columns: Mapping[str, str] | None = None,
    feature_names: Sequence[str] | None = None,
    session: SparkSession | None = None,
    master: str | None = None,
    **reading: Any,
) -> AggregationRanker:
    """Fit a linear ``AggregationRanker`` on Spark; its coefficients are those of ``ranker.fit`` in memory to 1e-10.

    Tasks turn the judgments of their queries into targets, take the moments of the features and add the normal
    equations of their queries up; only p × p numbers a part reach the driver, which solves once. ``log`` is anything
    that ``read(engine="spark")`` reads; ``features`` is a DataFrame, a file, folder or URI of Parquet or CSV, or
    ``spark::TABLE`` of the catalogue, with a column of items, optionally of queries (else rows hold for every query),
    and numeric columns; ``feature_columns`` maps item and query to columns with other names, ``feature_names`` chooses
    features; ``reading`` are the options of ``read``. Without ``session`` the active one is used, or one made for
    ``master``.

    The ranker needs one structure (default: the usual one for the kind of log, log-odds for comparisons; never
    informed), one order ('all' or k), one gain and one ridge ('auto' is 0.001), an intercept per query and no
    regressor: for trees and networks see ``targets``. ``missing`` may be 'raise', 'mean' or 'zero'.

    Errors: InputError as in memory (judged items without features, rows twice, values that are not finite, each with
    its number and samples); UsageError for what is not done on Spark.
    """
    ranker._check()
    refuse_beyond_spark(ranker)
    spark = session or spark_session(master)
    table = FeatureFrame.of(Table.of(features, spark), columns=feature_columns or {}, names=feature_names)
    judged = JudgedQueries.of(log, spark, **reading)
    plan, ridge, said = one_plan(ranker, judged.kind)
    if reading.get("on_error") == "skip" and (skipped := judged.rejects()):
        if refused := judged.checks.stopping(skipped):
            raise InputError(say(judged.name, refused))
        said.append(f"skipped: {say(judged.name, skipped)}")
    schema = target_columns(*judged.labels)
    table, converted = table.labelled_like(schema)
    with told(table.name):
        found = examine(table, log=ranker.log)
        found.check(table.name, len(table.names), ranker.missing)
        refuse_twice(table)
    made = judged.table(_maker(ranker, plan), schema).persist(KEPT)
    try:
        with judged.explained():
            facts = facts_of(made)
        if not facts.rows:
            raise InputError("there are no judgments to learn from")
        plain = Normaliser(ranker.standardise, ranker.log, ranker.missing)
        normaliser = plain.with_moments(found.moments, table.names, found.rows)
        buckets = buckets_for(made, found.rows, len(table.names))
        with told(table.name):
            part = add_up(partial_sums(made, table, normaliser, facts.judgments, buckets), buckets)
        part.check(table, found.rows)
        used = facts.rows if "query" in table.keys else made.select("item").distinct().count()
    finally:
        made.unpersist()
    solved = part.equations.solve(ridge)
    ranker._take_linear(solved.theta)
    ranker._keep(normaliser, table.names, len(table.names))
    if hasattr(ranker, "cv_"):
        del ranker.cv_
    ranker.status_ = {
        "status": solved.status,
        "iterations": solved.iterations,
        "gradient": solved.gradient,
        "ridge": ridge,
        "queries": facts.queries,
        "rows": facts.rows,
        "subsets_without_order": facts.zero,
        "queries_below_order": 0 if plan.order == "all" else facts.exact,
        "monte_carlo_error": facts.monte_carlo_error(ranker.subsets),
        **plan.row,
        "order": plan.order,
        "notes": [
            *said,
            *converted,
            *judged.notes,
            *judged.look_alikes(),
            *_notes(found, facts, used),
            *facts.notes(plan.order),
        ],
    }
    if facts.spread == 0:
        ranker.status_["notes"].append(
            "no query has two items of different targets: nothing was learned, and no score says anything"
        )
    return ranker


def _maker(ranker: AggregationRanker, plan: Plan) -> MakeTargets:
    return MakeTargets(plan, dict(ranker.structure_options or {}), ranker.subsets, ranker.at, ranker.seed)


def _notes(found: Examined, facts: TargetFacts, used: int) -> Iterator[str]:
    """What the fit in memory says of rows and queries."""
    if unjudged := found.rows - used:
        yield f"{unjudged:,} of {found.rows:,} rows are in no judgment: nothing is learned there"
    if facts.single:
        yield f"{facts.single:,} of {facts.queries:,} queries have a single item: nothing to order"

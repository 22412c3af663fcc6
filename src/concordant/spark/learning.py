"""Fit a linear scorer where the log and the features lie: targets per query, normal equations as partial sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from concordant.engines.spark_session import session as spark_session
from concordant.errors import InputError
from concordant.features.normalising import Normaliser
from concordant.log.rejects import say
from concordant.rankers.aggregation import AggregationRanker
from concordant.rankers.plans import Plan
from concordant.spark.frames import JudgedQueries
from concordant.spark.learning_equations import add_up, buckets_for, partial_sums
from concordant.spark.learning_features import Examined, FeatureFrame, examine, refuse_twice
from concordant.spark.learning_plans import one_plan, refuse_beyond_spark
from concordant.spark.learning_targets import MakeTargets, TargetFacts, facts_of, target_columns
from concordant.spark.tables import Table
from concordant.spark.telling import told

__all__ = ["fit", "targets"]

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

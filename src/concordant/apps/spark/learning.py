"""Fit a linear scorer where the log and the features lie: targets per query, normal equations as partial sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from concordant.apps.spark.clicks_of_log import targets_of_clicks
from concordant.apps.spark.coefficients import as_pairs, scores_beside, used, with_coefficients, with_outcomes
from concordant.apps.spark.divided import declared
from concordant.apps.spark.frames import JudgedQueries, Table
from concordant.apps.spark.learning_chosen import Choosing
from concordant.apps.spark.learning_clicks import needs_below
from concordant.apps.spark.learning_draws import drawn_of_query
from concordant.apps.spark.learning_features import FeatureFrame, examine, medians, refuse_twice
from concordant.apps.spark.learning_parts import dividing
from concordant.apps.spark.learning_sums import MakeTargets, add_up, facts_of, partial_sums, target_columns
from concordant.apps.spark.lists_of_log import settled
from concordant.apps.spark.partitioning import buckets_for
from concordant.apps.spark.pooled import pooled
from concordant.apps.spark.shares import TooMuch, Whole
from concordant.apps.spark.splitting import Divided, divided, divisible, options_of_fit
from concordant.apps.spark.structure_sums import estimated, scored, summable
from concordant.apps.spark.telling import told
from concordant.apps.spark.tied_rankings import TiedLists, fits_tied, prepared, tied_scores
from concordant.apps.spark.valued_pairs import ValuedPairs
from concordant.errors import InputError, UsageError
from concordant.io.engines.spark_session import session as spark_session
from concordant.learning.features.normalising import Normaliser
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.columns import Learned, Summed, TargetSums
from concordant.learning.rankers.plans import Plan, Recipe, options_of, plans_asked
from concordant.learning.rankers.validation import said_of_rows
from concordant.preferences.counted import refuse_several
from concordant.preferences.graphs import Batch
from concordant.preferences.values import say
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
WHERE = "is done in memory only; on Spark"


def refuse_beyond_spark(ranker: AggregationRanker) -> None:
    """Raise UsageError for parameters that no sums over tasks give, before any work."""
    if ranker.regressor is not None:
        raise UsageError(
            f"fitting a regressor {WHERE} give the targets (concordant.spark.targets) to a distributed trainer"
        )
    if ranker.intercept != "query":
        raise UsageError(f"intercept {ranker.intercept!r} {WHERE} every query has its own")


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

    Parameters
    ----------
    log : anything that ``read(engine="spark")`` reads.
    structure, structure_options, order, subsets, gain, normalise, at, seed : as in ``mean_targets``; None is the usual
        one for the kind of log.
    session, master : the Spark session; None, the active one, or one made for ``master``.
    **reading : options of ``read``.

    Errors: InputError, UsageError.

    Source: Duchi, Mackey and Jordan (2013), (18), (28).
    """
    judged = settled(pooled(JudgedQueries.of(log, session or spark_session(master), **reading)))
    options = structure_options or {}

    def plan_of(clicks: str) -> Plan:
        asked: dict[str, Any] = {"order": order, "gain": gain, "normalise": normalise, "clicks": clicks}
        plan, *others = plans_asked(judged.kind, structure, options, **asked)
        if others:
            raise UsageError(
                "targets are of one aggregation: give one structure, order, gain and c0, not several or auto"
            )
        return plan

    plan, recipe = plan_of("cascade"), Recipe(options, subsets, at, seed)
    if estimated(structure, options) or (structure is None and needs_below(structure, judged)):
        made = targets_of_clicks(judged, plan_of, recipe)
    else:
        made = targets_of(judged, plan, recipe)
    weight = fn.col("judgments") / fn.col("size")
    with judged.explained():
        whole = made.agg(fn.sum(weight).alias("weight"), fn.count(fn.lit(1)).alias("rows")).first()
    if not whole["rows"]:
        raise InputError("there are no judgments to learn from")
    weight = weight * fn.lit(whole["rows"] / whole["weight"])
    return made.select("query", "item", "target", weight.alias("weight"))


def targets_of(judged: JudgedQueries, plan: Plan, recipe: Recipe) -> DataFrame:
    """Return the targets of a plan; those of a query that no task can hold from scores whose fit is divided."""
    own = options_of(plan.structure, recipe.options)
    apart = divisible(judged, plan.structure, own) or fits_tied(judged.kind, plan.structure, own)
    apart = apart or with_coefficients(*as_pairs(plan.structure, judged.kind, own))
    apart = apart or summable(judged, plan.structure, {})
    task = MakeTargets(plan, recipe)
    by_tasks = partial(_divided, judged, task, own) if apart else None
    if apart and plan.order != "all":
        by_tasks = partial(_drawn, judged, task, own)
    return judged.table(task, target_columns(*judged.labels), by_tasks)


def _drawn(judged: JudgedQueries, task: MakeTargets, options: Mapping[str, Any], label: Any) -> pa.Table | None:
    with judged.explained():
        found = drawn_of_query(judged, label, task.plan, task.recipe)
    if found is None:
        return None
    targets, about = found
    if targets is None:
        return _divided(judged, task, options, label)
    prefs = declared(judged.kind, about["query"].labels, about["items"].labels)
    return task.table(targets, prefs, np.array([about["judgments"]]))


def _divided(judged: JudgedQueries, task: MakeTargets, options: Mapping[str, Any], label: Any) -> pa.Table | None:
    structure = str(task.plan.structure)
    with judged.explained():
        try:
            read = scored if summable(judged, structure, {}) else _fitted
            found = read(judged, label, structure, options)
        except TooMuch:
            return None
    if found is None:
        return None
    shares, scores = found

    def known(_: Batch, **__: Any) -> Scores:
        return scores

    table = replace(task, plan=replace(task.plan, structure=known))(declared(judged.kind, shares.query, shares.items))
    place = table.column_names.index("judgments")
    return table.set_column(place, "judgments", pa.repeat(pa.scalar(shares.judgments, pa.int64()), len(table)))


def _fitted(
    judged: JudgedQueries, label: Any, structure: str, options: Mapping[str, Any]
) -> tuple[Divided, Scores] | None:
    """What ``scored`` returns, of the likelihoods whose fit is divided."""
    if divisible(judged, structure, options):
        shares = divided(judged, label, structure, cut=True)
    elif fits_tied(judged.kind, structure, options):
        shares = Divided.of(judged, label, TiedLists)
    elif options.get("ties") == "cumulative":
        shares = Divided.of(judged, label, Whole, linked=False)
    else:
        shares = Divided.of(judged, label, ValuedPairs, cut=True)
    if shares is None:
        return None
    try:
        if divisible(judged, structure, options):
            return shares, shares.scores(**options_of_fit(options))
        if fits_tied(judged.kind, structure, options):
            seen = prepared(shares)
            return shares, tied_scores(shares, seen, declared(judged.kind, shares.query, shares.items), **options)
        options = as_pairs(structure, judged.kind, options)[1]
        names = judged.checks.layout.covariate_names
        outcomes = with_outcomes(shares, used(names, options)) if options.get("ties") == "cumulative" else None
        return shares, scores_beside(shares, judged.kind, names, options, seen=outcomes)
    finally:
        shares.forget()


def fit(
    ranker: Any,
    log: Any,
    features: Any = None,
    *,
    feature_columns: Mapping[str, str] | None = None,
    feature_names: Sequence[str] | None = None,
    session: SparkSession | None = None,
    master: str | None = None,
    **reading: Any,
) -> AggregationRanker:
    """Fit a linear ``AggregationRanker`` on Spark; its coefficients are those of ``ranker.fit`` in memory to 1e-8.

    ``fit(log, features)`` is the fit with nothing named, as ``concordant fit`` makes it. Tasks turn the judgments of
    their queries into targets, take the moments of the features and add gradients, curvature, normal equations and
    losses of their queries up; p × p numbers a part reach the driver, and a sample of queries where the features inform
    the aggregation. A query with more than ``most`` distinct judgments is divided among tasks, but for structures that
    are functions: then it has a task of its own. Of clicks all of the log tells how positions are examined or readers
    go on, and which of both reads lists with several clicks.

    Parameters
    ----------
    ranker : an ``AggregationRanker`` with an intercept per query and no regressor: for trees and networks see
        ``targets``. Left out: one with nothing named.
    log : anything that ``read(engine="spark")`` reads.
    features : a DataFrame, a file, folder or URI of Parquet or CSV, or ``spark::TABLE`` of the catalogue, with a column
        of items, optionally of queries (else rows hold for every query), and numeric columns.
    feature_columns : which columns are item and query, where they have other names.
    feature_names : columns that are features; None, all others.
    session, master : the Spark session; None, the active one, or one made for ``master``.
    **reading : options of ``read``.

    Errors: InputError as in memory (judged items without features, rows twice, values that are not finite, each with
    its number and samples); UsageError for what is not done on Spark.
    """
    if features is None and isinstance(ranker, AggregationRanker):
        raise UsageError("fit takes a ranker, a log and features, or a log and features; there are no features")
    if features is None:
        ranker, log, features = AggregationRanker(), ranker, log
    if not isinstance(ranker, AggregationRanker):
        raise UsageError(f"fit takes an AggregationRanker, a log and features; the first is a {type(ranker).__name__}")
    fitted: AggregationRanker = ranker.fit(
        SparkSums(log, features, feature_columns or {}, feature_names, session, master, reading), None
    )
    return fitted


@dataclass(eq=False)
class SparkSums(TargetSums):
    """A log and features on Spark as what a ranker is fitted to; nothing is opened before a ranker begins."""

    log: Any
    source: Any
    """Of the features."""
    columns: Mapping[str, str]
    chosen: Sequence[str] | None
    session: SparkSession | None
    master: str | None
    reading: Mapping[str, Any]
    place = "on Spark"

    def begin(self, ranker: AggregationRanker) -> str:
        refuse_beyond_spark(ranker)
        spark = self.session or spark_session(self.master)
        self.features = FeatureFrame.of(Table.of(self.source, spark), columns=self.columns, names=self.chosen)
        judged = JudgedQueries.of(self.log, spark, **self.reading)
        refuse_several(judged.checks.layout.clusters, "a fit")
        if "query" in self.features.keys and judged.pool is None:
            judged = replace(judged, pool=False)  # who scores the rows of a query needs the queries
        self.judged = settled(pooled(judged))
        return self.judged.kind

    @property
    def names(self) -> tuple[str, ...]:
        return self.features.names

    def summed(self, plan: Plan, recipe: Recipe, normaliser: Normaliser) -> Summed:
        judged = self.judged
        table, fitted, rows, said = self._prepared(normaliser)
        made = targets_of(judged, plan, recipe).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            with judged.explained():
                facts, judgments = facts_of(made, plan.order)
            if not facts.rows:
                raise InputError("there are no judgments to learn from")
            buckets = buckets_for(made, rows, len(table.names))
            with told(table.name):
                part = add_up(partial_sums(made, table, fitted, judgments, buckets), buckets)
            part.check(table, rows)
            used = facts.rows if "query" in table.keys else made.select("item").distinct().count()
        finally:
            made.unpersist()
        return Summed(part.equations, fitted, facts, self._said(said, rows, used, facts.single, facts.queries))

    def learned(self, ranker: Any, kind: str) -> tuple[Floats, Normaliser, Learned, tuple[str, ...], Any]:
        if not several_passes(ranker, kind) and not self._by_subsets(ranker, kind):
            return super().learned(ranker, kind)
        table, fitted, rows, said = self._prepared(ranker._normaliser())
        with self.judged.explained():
            choosing = Choosing.of(ranker, kind, self.judged, table, fitted, rows)
        try:
            with self.judged.explained():
                theta, how, notes, curve = choosing.learned(table, rows)
                used = choosing.rows if "query" in table.keys else choosing.held.items()
        finally:
            choosing.forget()
        said = self._said(said, rows, used, choosing.facts["single"], choosing.queries)
        return theta, fitted, how, (*said, *choosing.said, *notes), curve

    def _by_subsets(self, ranker: AggregationRanker, kind: str) -> bool:
        """Whether a query that no task can hold is divided, of which subsets are drawn."""
        tried, _, _ = ranker._to_try(kind, max(self.judged.large_sizes, default=1), False, "cascade")
        drawn = bool(self.judged.large) and any(plan.order != "all" for plan in tried)
        return drawn and dividing(ranker, kind, self.judged) is not None

    @property
    def schema(self) -> pa.Schema:
        """The columns of targets."""
        return target_columns(*self.judged.labels)

    def _prepared(self, normaliser: Normaliser) -> tuple[FeatureFrame, Normaliser, int, tuple[str, ...]]:
        """Return the features with labels as the log has them, the normaliser of all rows, their number, and notes."""
        judged, said = self.judged, list[str]()
        if self.reading.get("on_error") == "skip" and (skipped := judged.rejects()):
            if refused := judged.checks.stopping(skipped):
                raise InputError(say(judged.name, refused))
            said.append(f"skipped: {say(judged.name, skipped)}")
        table, converted = self.features.labelled_like(self.schema)
        with told(table.name):
            found = examine(table, log=normaliser.log)
            found.check(table.name, len(table.names), normaliser.missing)
            refuse_twice(table)
            middle = None
            if normaliser.missing == "median":
                middle = medians(table, found.moments.present, log=normaliser.log)
        fitted = normaliser.with_moments(found.moments, table.names, found.rows, middle)
        return table, fitted, found.rows, (*said, *converted)

    def _said(self, said: tuple[str, ...], rows: int, used: int, single: int, queries: int) -> tuple[str, ...]:
        """Add what a reader should know of the log and of rows that nobody judged."""
        judged = self.judged
        of_rows = said_of_rows(rows - used, rows, single, queries, judged.kind == "selections")
        return (*said, *judged.notes, *judged.look_alikes(), *of_rows)


def several_passes(ranker: AggregationRanker, kind: str) -> bool:
    """Whether a fit informs its targets by the features, or chooses anything on held-out judgments."""
    listed = ranker.structure if isinstance(ranker.structure, list) else [ranker.structure]
    clicks = kind == "selections" and None in listed  # how many lists have several clicks decides
    if any(one != "auto" and estimated(one, ranker.structure_options or {}) for one in listed):
        return True
    if ranker._informed(kind) or ranker.order == "auto" or clicks or ranker._gated(kind, False, streamed=False):
        return True
    tried, ridges, _ = ranker._to_try(kind, 1, False, "cascade")
    return len(tried) * len(ridges) > 1

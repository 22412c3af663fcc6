"""Targets made where the judgments lie, and normal equations as partial sums that the driver adds up."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from concordant.apps.spark.learning_features import SHOWN, FeatureFrame, matrix
from concordant.errors import InputError
from concordant.learning.features.normalising import Normaliser
from concordant.learning.rankers.plans import Plan, Recipe
from concordant.learning.rankers.validation import reads_below
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.learning.targets.mean_targets import TargetFacts, Targets
from concordant.preferences.counts import refuse_beyond
from concordant.preferences.preferences import Preferences
from concordant.ranking.ranked_lists import examined_only

PARTS = 16
"""Parts that reach the driver at most; more are added up in tasks first."""
SCHEMA = "bucket bigint, found binary"
HERE = "concordant_here"


@dataclass(frozen=True)
class Part:
    """The equations of some queries, and the judged items among them that have no features; parts add up."""

    equations: Any
    """``NormalEquations``, or 0 where some features are missing."""
    rows: int
    missing: int = 0
    samples: tuple[tuple[Any, Any], ...] = ()
    """(query, item) of some of them."""

    def __add__(self, other: Part) -> Part:
        samples = tuple(sorted((*self.samples, *other.samples))[:SHOWN])
        rows, missing = self.rows + other.rows, self.missing + other.missing
        return Part(0 if missing else self.equations + other.equations, rows, missing, samples)

    def check(self, features: FeatureFrame, rows: int) -> None:
        """Raise InputError where judged items have no features."""
        if not self.missing:
            return
        shown = "; ".join(f"query {query!r}, item {item!r}" for query, item in self.samples)
        more = f"; and {self.missing - len(self.samples):,} more" if self.missing > len(self.samples) else ""
        raise InputError(
            f"{self.missing:,} of {self.rows:,} items with preferences have no features ({shown}{more}); the features "
            f"hold {rows:,} rows"
        )


@dataclass(frozen=True)
class _Equations:
    """The task: targets and features of a bucket of queries become one part."""

    width: int
    normaliser: Normaliser
    judgments: int
    """Of the whole log."""

    def of_two(self, key: tuple[Any, ...], targets: pa.Table, features: pa.Table) -> pa.Table:
        """Match the rows of a bucket, then add them up."""
        if not targets.num_rows:
            return _blob(0, None)
        features = features.drop_columns(["bucket"]).append_column(HERE, pa.repeat(True, features.num_rows))
        labels = ("query", "item")
        integers = {name: pa.types.is_integer(targets.schema.field(name).type) for name in labels}
        kinds = {name: pa.int64() if integer else pa.large_string() for name, integer in integers.items()}
        joined = _cast(targets, kinds).join(_cast(features, kinds), list(labels), join_type="left outer")
        return self.of_one(key, joined)

    def of_one(self, key: tuple[Any, ...], joined: pa.Table) -> pa.Table:
        """Add up the nodes of a bucket, each with its features beside it."""
        bucket = int(key[0].as_py())
        joined = joined.sort_by([("query", "ascending"), ("item", "ascending")])
        query = joined["query"].combine_chunks()
        begins = np.append(True, pc.not_equal(query[1:], query[:-1]).to_numpy(zero_copy_only=False))
        start = np.append(np.flatnonzero(begins), len(query)).astype(np.int64)
        bare = joined[HERE].is_null().to_numpy()
        if bare.any():
            lacking = joined.select(["query", "item"]).filter(pa.array(bare))
            first = [(row["query"], row["item"]) for row in lacking.slice(0, SHOWN).to_pylist()]
            return _blob(bucket, Part(0, len(query), lacking.num_rows, tuple(first)))
        Z = self.normaliser.apply(matrix(joined, self.width)[0])
        each = joined["judgments"].to_numpy()[start[:-1]] / (self.judgments * np.diff(start))
        return _blob(bucket, Part(NormalEquations.of(Z, joined["target"].to_numpy(), start, each), len(query)))


def _cast(table: pa.Table, kinds: dict[str, pa.DataType]) -> pa.Table:
    for name, kind in kinds.items():
        table = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
    return table


def _blob(bucket: int, part: Part | None) -> pa.Table:
    found = [] if part is None else [pickle.dumps(part)]
    return pa.table({"bucket": pa.array([bucket] * len(found), pa.int64()), "found": pa.array(found, pa.binary())})


def partial_sums(
    targets: DataFrame, features: FeatureFrame, normaliser: Normaliser, judgments: int, buckets: int
) -> DataFrame:
    """Return a DataFrame of parts, one for each bucket of queries; no query is in two of them.

    Features of items of queries are brought to the targets by query: each row crosses the network once. Features that
    hold for every query are joined by item first, as Spark's optimiser finds best (broadcast, or shuffled).
    """
    width = len(features.names)
    bucket = fn.pmod(fn.xxhash64("query"), fn.lit(buckets)).alias("bucket")
    task = _Equations(width, normaliser, judgments)
    nodes = targets.select("query", "item", "target", "judgments")
    if "query" in features.keys:
        ours = nodes.select(bucket, "*").groupBy("bucket")
        theirs = features.frame.select(bucket, "*").groupBy("bucket")
        return ours.cogroup(theirs).applyInArrow(lambda key, one, other: task.of_two(key, one, other), SCHEMA)
    there = features.frame.withColumn(HERE, fn.lit(True))
    joined = nodes.join(there, "item", "left").select(bucket, "*")
    return joined.groupBy("bucket").applyInArrow(lambda key, both: task.of_one(key, both), SCHEMA)


def _sum(rows: Iterable[tuple[int, bytes]]) -> Part | None:
    """Add parts up in the order of their buckets, so that the sum has the same bits every time."""
    total: Part | None = None
    for _, found in sorted(rows):
        part = pickle.loads(found)
        total = part if total is None else total + part
    return total


def _rows(batch: pa.RecordBatch | pa.Table) -> Iterator[tuple[int, bytes]]:
    return zip(batch.column("bucket").to_pylist(), batch.column("found").to_pylist(), strict=True)


def _added(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add the parts of a partition up."""
    rows = [row for batch in batches for row in _rows(batch)]
    if rows:
        yield from _blob(min(rows)[0], _sum(rows)).to_batches()


def add_up(parts: DataFrame, buckets: int) -> Part:
    """Return the sum of all parts; at most ``PARTS`` of them reach the driver. Errors (InputError): none."""
    if buckets > PARTS:
        parts = parts.repartition(PARTS, "bucket").mapInArrow(_added, SCHEMA)
    total = _sum(_rows(parts.toArrow()))
    if total is None:
        raise InputError("there are no judgments to learn from")
    return total


VALUES = (
    ("target", pa.float64()),
    ("error", pa.float64()),
    ("judgments", pa.int64()),
    ("size", pa.int64()),
    ("head", pa.bool_()),
    ("zero", pa.int64()),
    ("drawn", pa.int64()),
    ("exact", pa.bool_()),
    ("stopped", pa.int64()),
)
"""Columns beside query and item: ȳ less its mean in the query and its Monte Carlo error; then, the same for all items
of a query, its judgments, its number of items, and how its targets came about. ``head`` marks one item of each query,
``stopped`` stands in the first row of a task."""


def target_columns(query: pa.DataType, item: pa.DataType) -> pa.Schema:
    """Return the columns of the targets of a log whose labels are of these types."""
    return pa.schema([("query", query), ("item", item), *VALUES])


@dataclass(frozen=True)
class MakeTargets:
    """What a task does with the judgments of its queries; the targets of a query depend on nothing else."""

    plan: Plan
    recipe: Recipe

    def __call__(self, prefs: Preferences) -> pa.Table:
        """Return one row for each judged item of each query."""
        prefs = prefs if reads_below(self.plan.structure, prefs) else examined_only(prefs)
        return self.table(self.recipe.targets([self.plan], prefs)[0], prefs, prefs.judgments)

    @staticmethod
    def table(made: Targets, prefs: Preferences, judgments: Any) -> pa.Table:
        """The targets of queries of so many judgments as rows."""
        members, item = prefs.member_groups, prefs.members[1]
        query, size = members.owner, made.sizes
        told = np.ones(len(item), bool) if made.unknown is None else ~made.unknown
        head = np.zeros(len(item), bool)
        head[np.flatnonzero(told)[np.unique(query[told], return_index=True)[1]]] = True
        stopped = np.zeros(len(item), np.int64)
        stopped[np.flatnonzero(told)[:1]] = made.stopped
        found = {
            "query": prefs.queries.take(query),
            "item": prefs.items.take(item),
            "target": made.centred(),
            "error": made.error,
            "judgments": judgments[query],
            "size": size[query],
            "head": head,
            "zero": made.zero[query],
            "drawn": made.drawn[query],
            "exact": made.exact[query],
            "stopped": stopped,
        }
        return pa.table(found).filter(pa.array(told))


def facts_of(targets: DataFrame, order: int | str) -> tuple[TargetFacts, int]:
    """Add the targets up in one pass, each query with the weight n̂_q/m_q; return also how many judgments there are."""
    weight, head = fn.col("judgments") / fn.col("size"), fn.col("head")

    def over_queries(value: Any) -> Any:
        return fn.sum(fn.when(head, value).otherwise(0).cast("long"))

    found = targets.agg(
        fn.count(fn.lit(1)).alias("rows"),
        over_queries(fn.lit(1)).alias("queries"),
        fn.sum(fn.when(head, fn.col("judgments").cast("decimal(38,0)"))).alias("judgments"),
        over_queries((fn.col("size") == 1).cast("long")).alias("single"),
        over_queries(fn.col("zero")).alias("zero"),
        over_queries((fn.col("zero") > 0).cast("long")).alias("with_zero"),
        over_queries(fn.col("drawn")).alias("drawn"),
        over_queries(fn.col("exact").cast("long")).alias("exact"),
        fn.sum("stopped").alias("stopped"),
        fn.sum(weight * fn.col("target") * fn.col("target")).alias("spread"),
        fn.sum(weight * fn.col("error") * fn.col("error")).alias("noise"),
        fn.max(fn.abs("target")).alias("largest"),
    ).first()
    values = {name: value or 0 for name, value in found.asDict().items()}
    judgments = int(values.pop("judgments"))  # a decimal, so that the sum cannot wrap around
    refuse_beyond(judgments)
    return TargetFacts(order=None if isinstance(order, str) else order, **values), judgments

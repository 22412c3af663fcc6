"""Judge scores by labels where both lie: matched by query and item, metrics in tasks, means over queries as sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from concordant.apps.spark.frames import PLACE, Table
from concordant.apps.spark.partitioning import buckets_for
from concordant.apps.spark.telling import told
from concordant.errors import InputError, Setting, UsageError
from concordant.io.engines.spark_session import session as spark_session
from concordant.learning.features.reading import column_of
from concordant.losses.metrics.metrics import Comparison, Summary, metric, of_mean_difference
from concordant.preferences.layouts import ALIASES
from concordant.preferences.values import NUMBER

KEYS = ("query", "item")


@dataclass(frozen=True, eq=False)
class ValuedFrame:
    """A DataFrame of query and item as texts and a number named by ``role``; of scores also where each row stands."""

    frame: DataFrame
    role: str
    name: str
    rows: int

    @classmethod
    def of(cls, source: Any, role: str, given: Mapping[str, str], session: SparkSession) -> ValuedFrame:
        """Choose the columns and check them in one pass. Errors: InputError, UsageError (no query)."""
        table = Table.of(source, session)
        name, known = table.name, list(table.columns)
        if role == "score":
            table = table.placed()
        found = {one: column_of(name, known, one, given, ALIASES.get(one, (role,))) for one in (*KEYS, role)}
        for one in ("item", role):
            if found[one] is None:
                raise InputError(f"{name}: no column of the {one}; columns there: {', '.join(known)}")
        if found["query"] is None:
            raise UsageError(
                f"{name}: no column of the query: all rows are one list, which is no work for a cluster; leave out ",
                Setting("engine", "spark"),
            )
        raw = {one: table.column(str(column)) for one, column in found.items()}
        value = _number(raw[role], table.type_of(str(found[role])))
        frame = table.frame.select(
            *[raw[key].cast("string").alias(key) for key in KEYS],
            value.alias(role),
            *(PLACE if role == "score" else ()),
            raw[role].isNull().alias("bare"),
        )
        with told(name):
            made = cls(frame.drop("bare"), role, name, _checked(frame, role, name))
            made._refuse_twice()
        return made

    def _refuse_twice(self) -> None:
        counted = self.frame.groupBy(*KEYS).count().where("count > 1")
        found = counted.agg(fn.sum(fn.col("count") - 1), fn.min(fn.struct(*KEYS))).first()
        if found[0]:
            query, item = found[1]
            raise InputError(
                f"{self.name}: {found[0]:,} rows repeat a query and item (such as query {query!r}, item {item!r}); one "
                "row for each"
            )


def _number(column: Column, kind: str) -> Column:
    """The column as a number; null where it is none, and where the table has none."""
    if kind == "string":
        return fn.when(column.rlike(rf"^\s*({NUMBER.pattern})\s*$"), fn.trim(column).try_cast("double"))
    return column.cast("double")


def _checked(frame: DataFrame, role: str, name: str) -> int:
    """Return the number of rows. Errors (InputError): none, labels or numbers that are missing or not finite."""
    value = fn.col(role)
    infinite = fn.isnan(value) | (fn.abs(value) == float("inf"))
    faults = {
        "have no query": fn.col("query").isNull(),
        "have no item": fn.col("item").isNull(),
        f"have no {role}": fn.col("bare"),
        f"have a {role} that is not a number": value.isNull() & ~fn.col("bare"),
        f"have a {role} that is not finite": infinite,
    }
    counts = [fn.count(fn.when(fault, 1)) for fault in faults.values()]
    samples = [fn.min(fn.when(fault, fn.struct(*KEYS))) for fault in faults.values()]
    rows, *found = frame.agg(fn.count(fn.lit(1)), *counts, *samples).first()
    if not rows:
        raise InputError(f"{name}: there are no rows")
    for place, what in enumerate(faults):
        if number := found[place]:
            query, item = found[place + len(faults)]
            raise InputError(f"{name}: {number:,} of {rows:,} rows {what} (such as query {query!r}, item {item!r})")
    return int(rows)


def matched(scores: ValuedFrame, labels: ValuedFrame, unmatched: str) -> tuple[DataFrame, str]:
    """Return the rows that have a score and a label, and what was left out, in words.

    Errors (InputError): no match at all, and, with ``unmatched`` "raise", rows without a partner.
    """
    both = scores.frame.join(labels.frame, list(KEYS), "full_outer")
    bare = {"score": fn.col("label").isNull(), "label": fn.col("score").isNull()}
    counts = [fn.count(fn.when(lacking, 1)) for lacking in bare.values()]
    samples = [fn.min(fn.when(lacking, fn.struct(*KEYS))) for lacking in bare.values()]
    found = both.agg(*counts, *samples).first()
    if found[0] == scores.rows:
        raise InputError(
            f"no row of {scores.name} matches {labels.name} by query and item; such as query {found[2][0]!r}, item "
            f"{found[2][1]!r} and query {found[3][0]!r}, item {found[3][1]!r}"
        )
    said = []
    for place, (one, other) in enumerate(((scores, labels), (labels, scores))):
        if found[place]:
            query, item = found[place + 2]
            said.append(
                f"{found[place]:,} of {one.rows:,} rows of {one.name} have no {other.role} in {other.name} (such as "
                f"query {query!r}, item {item!r})"
            )
    left_out = "; ".join(said)
    if left_out and unmatched == "raise":
        raise InputError(f"{left_out}; ", Setting("unmatched", "skip"), " leaves them out")
    return scores.frame.join(labels.frame, list(KEYS)), left_out


PLACED = "file string, block bigint, row bigint"


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Values of each query and metric, which lie in the cluster until they are asked for; ``frame`` is persisted."""

    frame: DataFrame
    """query, file, block, row (where the query appears first) and m0, m1, …, one for each metric."""
    names: tuple[str, ...]
    left_out: str
    """What had no partner, in words; empty when all had one."""
    name: str
    """What errors call the scores and labels."""

    def summaries(self) -> dict[str, Summary]:
        """Return mean, standard error and number of queries of each metric, summed up in one pass."""
        values = [fn.col(f"m{at}") for at in range(len(self.names))]
        with told(self.name):
            return dict(zip(self.names, _summed(self.frame, values), strict=True))

    def against(self, other: Evaluated, *, level: float = 0.95) -> dict[str, tuple[Summary, Comparison]]:
        """Return the summary of a second scorer and the paired comparison with it (this minus the other).

        Errors (InputError): queries that only one of them has; UsageError: a level outside (0, 1).
        """
        if not 0 < level < 1:
            raise UsageError(f"level must be between 0 and 1, not {level!r}")
        both = self.beside(other)
        with told(self.name):
            lacking = both.where("m0 IS NULL OR n0 IS NULL").agg(fn.count(fn.lit(1)), fn.min("query")).first()
        if lacking[0]:
            raise InputError(
                f"{lacking[0]:,} queries have rows of one scorer only (such as {lacking[1]!r}); paired differences "
                "need the same queries"
            )
        theirs = _summed(both, [fn.col(f"n{at}") for at in range(len(self.names))])
        apart = [fn.col(f"m{at}") - fn.col(f"n{at}") for at in range(len(self.names))]
        found = {}
        for name, second, one, signs in zip(self.names, theirs, _summed(both, apart), _signs(both, apart)):
            bounds = of_mean_difference(one.mean, one.standard_error, one.queries, level)
            found[name] = (
                second,
                Comparison(one.mean, one.standard_error, *bounds, level, one.queries, *signs, one.undefined),
            )
        return found

    def beside(self, other: Evaluated) -> DataFrame:
        """Return the values of both, of the other scorer as n0, n1, …; null where a query is lacking."""
        theirs = other.frame.select("query", *[fn.col(f"m{at}").alias(f"n{at}") for at in range(len(other.names))])
        return self.frame.join(theirs, "query", "full_outer")

    def by_query(self, other: Evaluated | None = None) -> pa.Table:
        """Return one row for each query on the driver, in the order of the scores."""
        frame = self.frame if other is None else self.beside(other)
        with told(self.name):
            return frame.orderBy("file", "block", "row").drop("file", "block", "row").toArrow()


def _summed(frame: DataFrame, values: Sequence[Any]) -> list[Summary]:
    sums = []
    for value in values:
        known = fn.when(~fn.isnan(value), value)
        sums += [fn.count(known), fn.avg(known), fn.stddev_samp(known), fn.count(value)]
    found = list(frame.agg(*sums).first())
    made = []
    for at in range(0, len(found), 4):
        size, mean, deviation, queries = found[at : at + 4]
        error = float("nan") if deviation is None else float(deviation) / float(np.sqrt(size))
        made.append(Summary(float("nan") if mean is None else float(mean), error, size, queries - size))
    return made


def _signs(frame: DataFrame, values: Sequence[Any]) -> list[tuple[int, int, int]]:
    """Return how many values are above, below and at 0 (NaN is none of them)."""
    tests = [
        fn.count(fn.when(fn.nanvl(value, fn.lit(None)).isNotNull() & test, 1))
        for value in values
        for test in (value > 0, value < 0, value == 0)
    ]
    found = list(frame.agg(*tests).first())
    return [(found[at], found[at + 1], found[at + 2]) for at in range(0, len(found), 3)]


def evaluate(
    scores: Any,
    labels: Any,
    metrics: Sequence[str] = ("ndcg@10",),
    *,
    convention: str | None = None,
    columns: Mapping[str, str] | None = None,
    unmatched: str = "raise",
    session: SparkSession | None = None,
    master: str | None = None,
) -> Evaluated:
    """Judge scores by graded labels, matched by query and item, with the values that the metrics have in memory.

    All rows of a query are one task's. Equal scores are taken in the order of the scores (of the files by name, of the
    rows in each) where the convention has no other rule.

    Parameters
    ----------
    scores, labels : tables with columns query, item, score and query, item, label: DataFrames, files, folders or URIs
        of Parquet or CSV, or ``spark::TABLE`` of the catalogue.
    metrics : names, such as 'ndcg@10'.
    convention : as in ``ndcg``; None, that of each metric.
    columns : which columns play these roles, where they have other names.
    unmatched : 'raise', or 'skip', which leaves rows without a partner out.
    session, master : the Spark session; None, the active one, or one made for ``master``.

    Errors: InputError for labels and numbers that are missing, rows twice, no match, rows without a partner; UsageError
    for unknown metrics and for tables without a query, which are one list and no work for a cluster.
    """
    judges = {name: metric(name, convention) for name in metrics}  # wrong names cost no reading
    if unmatched not in ("raise", "skip"):
        raise UsageError(f"unmatched must be one of raise, skip, not {unmatched!r}")
    spark = session or spark_session(master)
    given = columns or {}
    ours, theirs = (ValuedFrame.of(one, role, given, spark) for one, role in ((scores, "score"), (labels, "label")))
    with told(f"{ours.name} and {theirs.name}"):
        found, left_out = matched(ours, theirs, unmatched)
    task = _Judge(tuple(judges.values()))
    schema = f"query string, {PLACED}, " + ", ".join(f"m{at} double" for at in range(len(judges)))
    bucket = fn.pmod(fn.xxhash64("query"), fn.lit(buckets_for(found, ours.rows, len(found.columns)))).alias("bucket")
    spread = found.select(bucket, "*").groupBy("bucket")
    values = spread.applyInArrow(lambda rows: task(rows), schema).persist(StorageLevel.MEMORY_AND_DISK)
    return Evaluated(values, tuple(judges), left_out, f"{ours.name} and {theirs.name}")


@dataclass(frozen=True)
class _Judge:
    """The task: the rows of some queries become one value for each query and metric."""

    judges: tuple[Callable[..., Any], ...]

    def __call__(self, rows: pa.Table) -> pa.Table:
        rows = rows.sort_by([(name, "ascending") for name in ("file", "block", "row")]).combine_chunks()
        query = rows["query"].combine_chunks().dictionary_encode()
        code = query.indices.to_numpy(zero_copy_only=False)
        _, first = np.unique(code, return_index=True)  # codes are in order of first appearance
        item = rows["item"].combine_chunks()
        score, label = (rows[name].to_numpy() for name in ("score", "label"))
        found = {name: rows[name].take(pa.array(first)) for name in ("query", "file", "block", "row")}
        for at, judge in enumerate(self.judges):
            found[f"m{at}"] = pa.array(np.asarray(judge(score, label, code, item=item), np.float64))
        return pa.table(found)

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
from pyspark.sql.types import DataType, NullType, NumericType, StringType

from concordant.apps.spark.frames import PLACE, Table
from concordant.apps.spark.label_columns import has_null_byte, label_column
from concordant.apps.spark.labels_of_log import WHITESPACE
from concordant.apps.spark.partitioning import buckets_for
from concordant.apps.spark.telling import told
from concordant.errors import InputError, Setting, UsageError
from concordant.io.engines.spark_session import session as spark_session
from concordant.learning.features.reading import column_of
from concordant.losses.metrics.judged_lists import scores_alike
from concordant.losses.metrics.metrics import Comparison, Summary, metric, of_mean_difference
from concordant.preferences.layouts import ALIASES
from concordant.preferences.values import INFINITIES, NUMBER

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
        value, bare = _number(table.column(str(found[role])), table.type_of(str(found[role])))
        frame = table.frame.select(
            *[_text(table, str(found[key]), key).alias(key) for key in KEYS],
            value.alias(role),
            *(PLACE if role == "score" else ()),
            bare.alias("bare"),
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


def _text(table: Table, column: str, role: str) -> Column:
    """The labels of a column as texts."""
    unsigned = column in table.unsigned
    label = label_column(table.column(column), table.type_of(column), role, table.name, unsigned=unsigned)
    return label.cast("string")


def _number(column: Column, kind: DataType) -> tuple[Column, Column]:
    """The column as numbers, null where there is none, and where the table has none.

    As in memory no number is a truth value or an instant; NaN and infinities may be written in letters.
    """
    if isinstance(kind, StringType):
        word = fn.btrim(column, fn.lit(WHITESPACE))
        number = fn.when(word.rlike(f"^({NUMBER.pattern})$"), word.try_cast("double"))
        return number.when(fn.lower(word).isin(sorted(INFINITIES)), fn.lit(float("nan"))), column.isNull()
    if isinstance(kind, NumericType | NullType):
        return column.cast("double"), column.isNull()
    return fn.lit(None).cast("double"), fn.lit(False)


def _checked(frame: DataFrame, role: str, name: str) -> int:
    """Return the number of rows. Errors (InputError): none, labels or numbers that are missing or not finite."""
    value = fn.col(role)
    infinite = fn.isnan(value) | (fn.abs(value) == float("inf"))
    faults = {
        "have no query": fn.col("query").isNull(),
        "have a null byte in the query": has_null_byte(fn.col("query")),
        "have no item": fn.col("item").isNull(),
        "have a null byte in the item": has_null_byte(fn.col("item")),
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
    """query, file, block, row (where the query appears first), alike (see ``tied``) and m0, m1, …, one for each metric.
    """
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

    def tied(self) -> tuple[int, int]:
        """Return in how many queries all scores are equal, though labels are not, and how many queries there are."""
        with told(self.name):
            found = self.frame.agg(fn.count(fn.when(fn.col("alike"), 1)), fn.count(fn.lit(1))).first()
        return int(found[0]), int(found[1])

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
            return frame.orderBy("file", "block", "row").drop("file", "block", "row", "alike").toArrow()


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
    schema = f"query string, {PLACED}, alike boolean, " + ", ".join(f"m{at} double" for at in range(len(judges)))
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
        found["alike"] = pa.array(scores_alike(score, label, code))
        for at, judge in enumerate(self.judges):
            found[f"m{at}"] = pa.array(np.asarray(judge(score, label, code, item=item), np.float64))
        return pa.table(found)

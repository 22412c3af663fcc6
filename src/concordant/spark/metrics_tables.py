"""Scores and labels as DataFrames, checked and matched by query and item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from concordant.errors import InputError, UsageError
from concordant.features.reading import column_of
from concordant.log.layouts import ALIASES
from concordant.log.values import NUMBER
from concordant.spark.tables import PLACE, Table
from concordant.spark.telling import told

__all__ = ["ValuedFrame", "matched"]

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
                f"{name}: no column of the query: all rows are one list, which is no work for a cluster; leave out "
                "--engine spark"
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
        raise InputError(f"{left_out}; --unmatched skip leaves them out")
    return scores.frame.join(labels.frame, list(KEYS)), left_out

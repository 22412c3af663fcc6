"""Queries that only number the judgments, on Spark: found as when a log is read in memory, and put into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as fn

from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.labels_of_log import INTEGER, TEXT
from concordant.errors import Setting, UsageError, counted
from concordant.preferences.notes import Note
from concordant.preferences.pooling import FEW, LEAST, lonely_note, pooled_note
from concordant.preferences.preferences import Preferences
from concordant.progress import stage
from concordant.ranking.rank import Ranking

ALL, PAIR, ITEM = range(3)
"""What a row of a task is of: all its queries, those of few judgments of one pair, or those with one item."""


@dataclass(frozen=True)
class Scattered:
    """How much a log holds whose queries are scattered (``preferences.pooling.scattered``)."""

    queries: int
    items: int
    judgments: int


def pooled(judged: JudgedQueries) -> JudgedQueries:
    """Return the queries, put into one where that is asked for, or where they are scattered and nobody said otherwise.

    Of a log with a column of queries that takes a pass, and another one where half of them hold few judgments.

    Errors: UsageError where somebody named the column of queries, and for lists, which are put together in memory only.
    """
    if not isinstance(judged.pool, bool | None):
        raise UsageError(f"pool must be True, False or None, not {judged.pool!r}")
    if judged.pool is False or not judged.by_query:
        return judged
    if judged.pool:
        return _in_one(judged, ())
    with stage("what queries hold"):
        found = scattered(judged)
    if found is None:
        return replace(judged, pool=False)
    if not judged.compared:
        raise UsageError(
            f"{judged.name}: most of the {found.queries:,} queries hold one pair, judged once or a few times, while "
            f"the same {counted(found.items, 'items')} recur: say that each query of {judged.kind} is ranked by itself "
            "(", Setting("pool", False), "), or have one machine rank all together",
        )  # fmt: skip
    column, sizes = judged.checks.layout.roles.get("query"), (found.queries, found.items, found.judgments)
    return _in_one(judged, (pooled_note(judged.name, column, *sizes, named=judged.named),))


def scattered(judged: JudgedQueries) -> Scattered | None:
    """Return how much there is where ``preferences.pooling.scattered`` holds of the log; else None.

    Items of queries that no task can hold do not count among those that recur.
    """
    if not _few_each(judged):
        return None
    judged = judged if judged.total else judged.sized(look=False)
    label = judged.labels[1]
    numbers = ("queries", "judgments")
    sides, counts = [("first", label), ("second", label)], [(one, pa.int64()) for one in numbers]
    schema = pa.schema([("of", pa.int8()), *sides, *counts])
    large = dict(zip(judged.large, judged.large_sizes, strict=True))
    rows = judged.table(partial(_numbers, schema=schema), schema, partial(_large, large, schema=schema))
    rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
    sums = [fn.sum(one).alias(one) for one in numbers]
    try:
        with judged.explained():
            of_all = rows.where(fn.col("of") == ALL).agg(*sums).first()
            held = rows.where(fn.col("of") == ITEM).groupBy("first").agg(*sums)
            again = held.where("queries > 1").select("first")
            alone = rows.where(fn.col("of") == PAIR).join(again, "first", "left_semi")
            alone = alone.join(again.withColumnRenamed("first", "second"), "second", "left_semi").agg(*sums).first()
            queries, judgments = (int(of_all[one] or 0) for one in numbers)
            few, least = (int(alone[one] or 0) for one in numbers)
            if not (2 * few >= queries >= LEAST and 2 * least >= judgments):
                return None
            return Scattered(queries, held.count(), judgments)
    finally:
        rows.unpersist()


def _few_each(judged: JudgedQueries) -> bool:
    """Whether half of the queries have few rows, of comparisons of the same two sides; a pass over the log."""
    if not judged.by_query:
        return False
    rows, few = fn.count(fn.lit(1)).alias("rows"), FEW if judged.compared else 2 * FEW
    beside = {}
    if judged.compared:
        one, other = (fn.col(f"`{role}`") for role in judged.sides)
        pair = fn.xxhash64(fn.least(one, other), fn.greatest(one, other))
        beside = {"pair": fn.min(pair) == fn.max(pair)}
    each = judged.frame.groupBy("query").agg(rows, *[column.alias(name) for name, column in beside.items()])
    alone = fn.col("rows") <= few
    for name in beside:
        alone &= fn.col(name)
    with judged.explained():
        queries, number = each.agg(fn.count(fn.lit(1)), fn.count_if(alone)).first()
    return bool(2 * number >= queries >= LEAST)


def _numbers(prefs: Preferences, *, schema: pa.Schema) -> pa.Table:
    """A task: how many queries and judgments there are, those of few judgments by their pair, and where items are."""
    members, number, item = prefs.member_groups, prefs.judgments, prefs.members[1]
    alone = (members.sizes == 2) & (number <= FEW) & (number > 0)
    first = members.first[alone]
    pairs, place = np.unique(item[first].astype(np.int64) * len(prefs.items) + item[first + 1], return_inverse=True)
    held = np.bincount(item, minlength=len(prefs.items))
    there = np.flatnonzero(held)
    labels, none = prefs.items.values.cast(schema.field("first").type), [-1]
    sides = [pa.array(np.concatenate([none, pairs // len(labels), there]))]
    sides += [pa.array(np.concatenate([none, pairs % len(labels), there]))]
    sizes = [len(prefs.queries), *np.bincount(place, minlength=len(pairs)), *held[there]]
    judgments = [number.sum(), *np.bincount(place, number[alone], len(pairs)).astype(np.int64), *np.zeros(len(there))]
    of = np.repeat([ALL, PAIR, ITEM], [1, len(pairs), len(there)])
    first_label, second_label = (labels.take(_or_null(side)) for side in sides)
    columns = [of, first_label, second_label, np.array(sizes, np.int64), np.array(judgments, np.int64)]
    return pa.table(dict(zip(schema.names, columns, strict=True))).cast(schema)


def _or_null(places: pa.Array) -> pa.Array:
    """Places among labels, negative ones as none."""
    held = places.to_numpy()
    return pa.array(held, mask=held < 0)


def _large(sizes: Mapping[Any, int], label: Any, *, schema: pa.Schema) -> pa.Table:
    """The same of a query that no task can hold."""
    return pa.table([[ALL], [None], [None], [1], [sizes[label]]], schema=schema)


def _in_one(judged: JudgedQueries, notes: tuple[str, ...]) -> JudgedQueries:
    """Return the comparisons as those of one query; those that belong to none are left out, as where they are read."""
    if not judged.compared:
        raise UsageError(
            f"{judged.name}: queries of {judged.kind} are put together (", Setting("pool", True),
            ") on one machine only; each is ranked by itself (", Setting("pool", False), ")",
        )  # fmt: skip
    checks, files, frame = judged.checks, judged.files, judged.frame
    if checks.on_error == "skip" and (none := frame.where(_nothing(judged)).count()):
        frame, files = frame.where(~_nothing(judged)), None
        notes = (*notes, f"skipped: {judged.name}: {counted(none, 'rows')} of {judged.total:,} have no query")
    layout = replace(checks.layout, roles=_without_query(checks.layout.roles))
    files = None if files is None else replace(files, roles=_without_query(files.roles))
    whole = replace(
        judged, frame=frame.drop("query"), checks=replace(checks, layout=layout), files=files, pool=False,
        large=(), large_sizes=(), notes=(*judged.notes, *notes),
    )  # fmt: skip
    return whole.sized(most=judged.most)


def lonely(judged: JudgedQueries, board: Ranking) -> tuple[Note, ...]:
    """Return the note that a ranking is of each query by itself, most by one list of ratings, while items recur."""
    if judged.kind != "ratings":
        return ()
    most = np.zeros(len(board.queries), np.int64)
    np.maximum.at(most, board.query, board.judgments)
    column = judged.checks.layout.roles.get("query")
    return lonely_note(most, len(board), len(board.items), judged.name, column)


def _nothing(judged: JudgedQueries) -> Any:
    """Which rows have no label of a query, as where they are read."""
    query = fn.col("query")
    if judged.checks.as_json:
        return fn.coalesce(~(query.startswith(TEXT) | query.rlike(INTEGER)), fn.lit(True))
    return query.isNull()


def _without_query(roles: Mapping[str, str]) -> dict[str, str]:
    return {role: column for role, column in roles.items() if role != "query"}

"""What only all of a log tells of intervals on Spark: what ``auto`` stands for, and how many clusters there are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from concordant.apps.spark.checking import Checks
from concordant.apps.spark.frames import JudgedQueries, Task
from concordant.apps.spark.labels_of_log import LABELS, as_text
from concordant.apps.spark.partitioning import BLOCK, BUCKET, PACKED, put_together, spread
from concordant.preferences.layouts import CLUSTERS as ROLES
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Lists, Preferences
from concordant.ranking.intervals import CHEAP
from concordant.ranking.rank import clusters_note
from concordant.ranking.rank_intervals import AT_ONCE
from concordant.ranking.standard_errors import method_for
from concordant.ranking.structures import structure as find_structure

WORDY = 2
"""Judgments that one row of a log holds at most: wins of either side."""
METHODS = pa.schema([("method", pa.string())])
CLUSTERS = pa.schema([("way", pa.int8()), ("label", pa.string())])
SIZES = pa.schema([("entries", pa.float64()), ("work", pa.float64())])


def interval_method(judged: JudgedQueries, structure: str, interval: str, asked: Mapping[str, Any]) -> str:
    """Return what ``auto`` stands for in the whole log, which a task sees but a part of.

    ``cheap``: a bootstrap of as many replicates as are cheap, which how many judgments there are decides.
    """
    member = find_structure(structure)
    if interval != "auto" or member.reads == "exposures":
        return interval
    if member.curvature is None:
        if WORDY * judged.total * int(asked.get("replicates", 1000)) <= CHEAP:
            return "bootstrap"
        if judged.large:  # more than memory draws from
            return "none"
        return "cheap"
    roles = judged.frame.columns
    ties = asked.get("ties", "half") if "ties" in member.options else None
    if "cluster" in roles:
        return "sandwich"
    if judged.kind == "comparisons" and ties == "cumulative":
        return "hessian"
    if judged.kind == "comparisons" and "weight" not in roles and ("winner" in roles or ties == "davidson"):
        return "hessian"
    if judged.kind != "comparisons":
        return "hessian" if member.whole else "sandwich"
    with judged.explained():
        task = partial(_suited, ties=ties, whole=member.whole)
        methods = judged.table(task, METHODS, partial(_beyond, judged, task)).toArrow()["method"].to_pylist()
    return "sandwich" if "sandwich" in methods else "hessian"


def work_at_once(judged: JudgedQueries) -> int:
    """The judgments (entries of lists) of which memory would draw a bootstrap at once, by a pass over the log."""
    with judged.explained():
        found = judged.table(_size, SIZES).toArrow()
    entries, work = (float(np.sum(found[name].to_numpy())) for name in SIZES.names)
    return int(entries * min(AT_ONCE, work) / max(work, 1.0))


def _size(prefs: Preferences) -> pa.Table:
    """A task: how much some queries hold, as ``suited`` measures it."""
    entries = len(prefs.list_item) if isinstance(prefs, Lists) else prefs.distinct
    return pa.table({"entries": [float(entries)], "work": [float(prefs.work.sum())]}, SIZES)


def _suited(prefs: Preferences, *, ties: str | None, whole: bool) -> pa.Table:
    """A task: the method that ``auto`` stands for in these preferences; one that asks for the sandwich asks for all."""
    return pa.table({"method": [method_for(prefs, ties, whole=whole)]}, METHODS)


def clusters_allowed(judged: JudgedQueries, queries: int) -> tuple[Note, ...]:
    """Return the note on the clusters that intervals allow for, by a pass over a log that has some."""
    names = judged.checks.layout.clusters
    if not names:
        return ()
    with judged.explained():
        found = judged.table(_clusters, CLUSTERS, partial(_clusters_of, judged))
        ways = found.distinct().groupBy("way").count().toArrow().to_pylist()
    numbers = [row["count"] for row in sorted(ways, key=lambda row: row["way"])]
    return (clusters_note(names if len(names) > 1 else ("cluster",), numbers, queries),)


def _clusters(prefs: Preferences) -> pa.Table:
    """A task: the clusters of some queries, of each column."""
    labels = [] if prefs.clusters is None else prefs.clusters.tolist()
    ways = [*zip(*map(json.loads, labels), strict=True)] if prefs.cluster_columns else [labels]
    cells = {(way, str(label)) for way, some in enumerate(ways) for label in some}
    return pa.table([[way for way, _ in cells], [label for _, label in cells]], schema=CLUSTERS)


def _clusters_of(judged: JudgedQueries, label: Any) -> pa.Table:
    """The same of a query that no task can hold, where its rows lie; of those that are skipped, too."""
    frame = judged.frame if label is None else judged.frame.where(fn.col("query") == fn.lit(label))
    roles = [role for role in LABELS if role in {*ROLES} & {*frame.columns}]
    cells = [
        frame.select(
            fn.lit(way).cast("tinyint").alias("way"), as_text(fn.col(role), judged.checks.as_json).alias("label")
        )
        for way, role in enumerate(roles)
    ]
    return reduce(DataFrame.union, cells).dropna().distinct().toArrow()


def _beyond(judged: JudgedQueries, task: Task, label: Any) -> pa.Table:
    """The same of a query that no task can hold, some rows at a time, where they lie."""
    frame = judged.frame if label is None else judged.frame.where(fn.col("query") == fn.lit(label))
    packing = partial(spread, roles=judged.frame.columns, counting=True, by_query=False)
    packed = frame.withColumn(BUCKET, fn.lit(0)).mapInArrow(packing, from_arrow_schema(PACKED))
    looking = partial(_looking, checks=judged.checks, task=task)
    return packed.mapInArrow(looking, from_arrow_schema(METHODS)).distinct().toArrow()


def _looking(batches: Iterator[pa.RecordBatch], *, checks: Checks, task: Task) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = put_together(iter([batch]), len(batch) * BLOCK, stopping=False)
        prefs = Preferences.empty() if rows is None else checks.preferences(rows)
        if len(prefs):
            yield from task(prefs).to_batches()

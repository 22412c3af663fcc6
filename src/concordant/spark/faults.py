"""What is refused of a log, from all tasks: how many rows for which reason, and the values that are to blame most."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from concordant.log.places import SAMPLES
from concordant.log.rejects import Reason, Reject
from concordant.spark.checking import Fault

__all__ = ["FAULTS", "as_rows", "gathered"]

REASON = ("says", "role", "hint", "unit")
FAULTS = pa.schema(
    [*((name, pa.string()) for name in (*REASON, "value")), *((name, pa.int64()) for name in ("number", "total"))]
)


def as_rows(faults: Sequence[Fault], sizes: Mapping[str, int]) -> pa.Table:
    """Return what a task found as rows: one for each unit with its total, one for each value to blame."""
    rows: list[dict[str, Any]] = [{"unit": unit, "number": 0, "total": size} for unit, size in sizes.items()]
    for each in faults:
        reason = dict(zip(REASON, (each.reason.says, each.reason.role, each.reason.hint, each.unit), strict=True))
        rows += [{**reason, "value": value, "number": number, "total": 0} for value, number in each.values.items()]
    return pa.Table.from_pylist(rows, FAULTS)


def gathered(made: DataFrame) -> tuple[Reject, ...]:
    """Add up what all tasks found; of each reason the ``SAMPLES`` most frequent values reach the driver."""
    counts = made.groupBy(*REASON, "value").agg(fn.sum("number").alias("number"), fn.sum("total").alias("total"))
    often = Window.partitionBy(*REASON).orderBy(fn.desc("number"), "value")
    sums = {"total": fn.sum("total").over(Window.partitionBy("unit"))}
    sums |= {"all": fn.sum("number").over(Window.partitionBy(*REASON)), "place": fn.row_number().over(often)}
    found = counts.withColumns(sums).where((fn.col("place") <= SAMPLES) & fn.col("says").isNotNull())
    samples: dict[tuple[str, ...], list[tuple[str, object]]] = {}
    numbers: dict[tuple[str, ...], tuple[int, int]] = {}
    for row in found.orderBy("place").toArrow().to_pylist():
        key = tuple([row[name] for name in REASON])
        numbers[key] = row["all"], row["total"]
        shown = samples.setdefault(key, [])
        if row["value"] is not None:
            unit = row["unit"] if row["number"] != 1 else row["unit"].removesuffix("s")
            shown.append((f"{row['number']:,} {unit}", json.loads(row["value"])))
    return tuple(
        Reject(Reason(*key[:3]), number, total, tuple(samples[key]), key[3])
        for key, (number, total) in sorted(numbers.items(), key=lambda pair: (-pair[1][0], pair[0]))
    )

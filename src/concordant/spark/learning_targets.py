"""Targets of the items of queries, made where the judgments lie: what a task returns, and what they add up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from concordant.preferences import Preferences
from concordant.rankers.plans import Plan, options_of
from concordant.tally import refuse_beyond
from concordant.targets.mean_targets import mean_targets
from concordant.targets.result import said_of_targets

__all__ = ["MakeTargets", "TargetFacts", "facts_of", "target_columns"]

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
    options: Mapping[str, Any]
    subsets: int
    at: int | None
    seed: int

    def __call__(self, prefs: Preferences) -> pa.Table:
        """Return one row for each judged item of each query."""
        plan = self.plan
        made = mean_targets(
            prefs,
            plan.structure,
            options=options_of(plan.structure, self.options),
            order=plan.order,
            subsets=self.subsets,
            gain=plan.gain,
            normalise=plan.normalise,
            at=self.at,
            seed=self.seed,
        )
        start, item = prefs.members
        size = np.diff(start)
        query = np.repeat(np.arange(len(size)), size)
        head = np.zeros(len(item), bool)
        head[start[:-1][size > 0]] = True
        stopped = np.zeros(len(item), np.int64)
        stopped[:1] = made.stopped
        found = {
            "query": prefs.queries.take(query),
            "item": prefs.items.take(item),
            "target": made.centred(),
            "error": made.error,
            "judgments": prefs.judgments[query],
            "size": size[query],
            "head": head,
            "zero": made.zero[query],
            "drawn": made.drawn[query],
            "exact": made.exact[query],
            "stopped": stopped,
        }
        return pa.table(found)


@dataclass(frozen=True)
class TargetFacts:
    """Sums over the targets of all queries."""

    rows: int
    queries: int
    judgments: int
    single: int
    """Queries of one item."""
    zero: int
    """Subsets without an order, and in how many queries they are."""
    with_zero: int
    drawn: int
    exact: int
    """Queries whose only subset is all their judgments."""
    stopped: int
    spread: float
    """Σ (n̂_q/m_q) ȳ² over all items."""
    noise: float
    """The same of the Monte Carlo errors."""

    def notes(self, order: int | str) -> tuple[str, ...]:
        """What a reader should know of the targets, as the fit in memory says it."""
        k = None if isinstance(order, str) else order
        return said_of_targets(k, self.queries, self.exact, self.drawn, self.zero, self.with_zero, self.stopped)

    def monte_carlo_error(self, subsets: int) -> float | None:
        """Error of the targets relative to their spread; None where a single subset does not tell."""
        if subsets == 1 and self.exact < self.queries:
            return None
        return float(np.sqrt(self.noise / self.spread)) if self.spread > 0 else 0.0


def facts_of(targets: DataFrame) -> TargetFacts:
    """Add the targets up, in one pass."""
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
    ).first()
    values = {name: value or 0 for name, value in found.asDict().items()}
    values["judgments"] = int(values["judgments"])  # a decimal, so that the sum cannot wrap around
    refuse_beyond(values["judgments"])
    return TargetFacts(**values)

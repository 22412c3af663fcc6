"""What ``concordant evaluate --engine spark`` does: the same table, from metrics of queries computed in tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from concordant.apps.commands.matching import column_of_role
from concordant.apps.spark.frames import Table
from concordant.apps.spark.metrics import Evaluated, evaluate
from concordant.apps.spark.telling import told
from concordant.io.engines.spark_session import session, without_pandas_warning
from concordant.io.log.formats import Log

__all__ = ["evaluated_on_spark"]


def evaluated_on_spark(scores: str, labels: str, given: Mapping[str, Any]) -> tuple[pa.Table, list[str]]:
    """Return what is printed, and what was left out on the way, in words."""
    with without_pandas_warning(), told(scores):
        spark = session(given["master"])

        def judged(scorer: str) -> Evaluated:
            columns: dict[str, Any] = {}
            for source, role in ((scorer, "score"), (labels, "label")):
                table = Table.of(source, spark)
                columns[role] = column_of_role(Log(table.name, "table", table.columns), role, given[role])
            columns |= {role: given[role] for role in ("query", "item") if given[role] is not None}
            how: dict[str, Any] = {"convention": given["convention"], "unmatched": given["unmatched"]}
            return evaluate(scorer, labels, given["metrics"], columns=columns, session=spark, **how)

        first = judged(scores)
        second = judged(given["against"]) if given["against"] else None
        said = [one.left_out for one in (first, second) if one is not None and one.left_out]
        table = _by_query(first, second) if given["per_query"] else _means(first, second, given["level"])
        return table, said + _undefined(first)


def _means(first: Evaluated, second: Evaluated | None, level: float) -> pa.Table:
    rows = []
    pairs = {} if second is None else first.against(second, level=level)
    for name, one in first.summaries().items():
        row: dict[str, Any] = {"name": name, "mean": one.mean, "standard_error": one.standard_error}
        row["queries"] = one.queries
        if second is not None:
            other, pair = pairs[name]
            row |= {"against": other.mean, "difference": pair.mean}
            row |= {"lower": pair.lower, "upper": pair.upper, "p_value": pair.p_value}
        rows.append(row)
    return pa.Table.from_pylist(rows)


def _undefined(first: Evaluated) -> list[str]:
    return [
        f"{name}: {one.undefined:,} of {one.queries + one.undefined:,} queries have no value and are left out"
        for name, one in first.summaries().items()
        if one.undefined
    ]


def _by_query(first: Evaluated, second: Evaluated | None) -> pa.Table:
    values = first.by_query(second)
    parts = []
    for place, name in enumerate(first.names):
        columns = {
            "name": pa.array([name] * len(values), pa.large_string()),
            "query": values["query"].cast(pa.large_string()),
            "value": values[f"m{place}"],
        }
        if second is not None:
            columns["against"] = values[f"n{place}"]
        parts.append(pa.table(columns))
    return pa.concat_tables(parts)

"""Segments read and merged: equal judgments of several segments are added up where they lie, by one GROUP BY."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.engines.duckdb import Settings, fetch, pattern
from concordant.engines.sql import identifier, literal
from concordant.preferences import Preferences, counted_comparisons, counted_lists
from concordant.store.catalogue import Facts
from concordant.store.segments import COVARIATE, VALUES

__all__ = ["merged", "queries_of"]


def merged(paths: Sequence[Path], facts: Facts, settings: Settings) -> Preferences:
    """Return the preferences that segments hold together. Errors: those of DuckDB."""
    files = ", ".join(literal(pattern(path)) for path in paths)
    source = f"read_parquet([{files}], hive_partitioning = false)"
    names = _columns(facts)
    chosen = ", ".join(identifier(name) for name in names)
    if len(paths) == 1:  # its judgments are distinct already
        statement = f'SELECT {chosen}, "count" FROM {source} WHERE "count" > 0'
    else:
        total = 'sum("count")::BIGINT AS "count"'
        statement = f'SELECT {chosen}, {total} FROM {source} WHERE "count" > 0 GROUP BY {chosen}'
    item = '"winner"' if facts.kind == "comparisons" else 'unnest("items")'
    in_none = f'SELECT DISTINCT "query", {item} AS "item" FROM {source} WHERE "count" = 0'
    columns, known = fetch(settings, paths, statement, in_none)
    found = dict(zip((*names, "count"), columns, strict=True))
    declared = (known[0], known[1]) if len(known[0]) else None
    return (_comparisons if facts.kind == "comparisons" else _lists)(found, facts, declared)


def queries_of(paths: Sequence[Path]) -> list[str | int]:
    """Return the distinct labels of the queries that segments hold. Errors: those of DuckDB."""
    files = ", ".join(literal(pattern(path)) for path in paths)
    source = f"read_parquet([{files}], hive_partitioning = false)"
    found: list[str | int] = fetch(Settings(), paths, f'SELECT DISTINCT "query" FROM {source}')[0][0].to_pylist()
    return found


def _columns(facts: Facts) -> list[str]:
    if facts.kind == "comparisons":
        names = ["query", "winner", "loser", "tie", "weight", *(f"{COVARIATE}{name}" for name in facts.covariates)]
    else:
        names = ["query", "items", VALUES[facts.kind]]
    return names if facts.clusters is None else [*names, "cluster"]


def _comparisons(found: dict[str, pa.Array], facts: Facts, declared: Any) -> Preferences:
    return counted_comparisons(
        found.pop("winner"),
        found.pop("loser"),
        query=found.pop("query"),
        tie=_numbers(found.pop("tie")),
        weight=_numbers(found.pop("weight")),
        count=_numbers(found.pop("count")),
        cluster=found.pop("cluster", None),
        covariates={name: _numbers(found.pop(f"{COVARIATE}{name}")) for name in facts.covariates},
        declared=declared,
    )


def _lists(found: dict[str, pa.Array], facts: Facts, declared: Any) -> Preferences:
    items, values = found["items"], found[VALUES[facts.kind]]
    offsets = items.offsets.to_numpy().astype(np.int64)
    return counted_lists(
        facts.kind,
        offsets - offsets[0],
        items.flatten(),
        _numbers(values.flatten()),
        query=found["query"],
        count=_numbers(found["count"]),
        cluster=found.get("cluster"),
        declared=declared,
    )


def _numbers(column: pa.Array) -> Any:
    return column.to_numpy(zero_copy_only=False)

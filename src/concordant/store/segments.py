"""Segments: counted judgments as immutable Parquet files that any DuckDB, Spark or pandas can read.

A row is a distinct judgment, ``count`` how many times it was made:

===============  ===================================================================================================
kind             columns
===============  ===================================================================================================
comparisons      ``query, winner, loser, tie, weight``, then ``covariate NAME`` for each, ``cluster``, ``count``
orders           ``query, items, ranks``, ``cluster``, ``count``: lists of equal length; ranks 1, 2, …, equal is tied
selections       ``query, items, clicked``, ``cluster``, ``count``: the list as shown
choices          ``query, items, chosen``, ``cluster``, ``count``
ratings          ``query, items, ratings``, ``cluster``, ``count``
===============  ===================================================================================================

``cluster`` is there only in stores that keep clusters. A row whose count is 0 is no judgment: its items (of a
comparison: the one item, on both sides) are known for the query and in no judgment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from concordant.disk import open_regular
from concordant.labels import Labels
from concordant.listing import take_lists
from concordant.preferences import Preferences
from concordant.progress import steps

__all__ = ["COVARIATE", "VALUES", "digest", "label_kind", "write_segment"]

VALUES = {"orders": "ranks", "selections": "clicked", "choices": "chosen", "ratings": "ratings"}
"""What the values of a list are called."""
COVARIATE = "covariate "
"""What stands before the name of a covariate in the name of its column."""
BLOCK = 1 << 20
"""Judgments of a row group."""


def label_kind(labels: Labels) -> str:
    """Return whether labels are texts or integers."""
    return "integers" if pa.types.is_integer(labels.values.type) else "texts"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_segment(prefs: Preferences, path: Path) -> None:
    """Write preferences as a segment; the file is a function of the preferences."""
    columns = _comparisons(prefs) if prefs.kind == "comparisons" else _lists(prefs)
    writer = None
    try:
        for block in steps("writing judgments", columns, -(-max(prefs.distinct, 1) // BLOCK)):
            if writer is None:
                writer = pa.parquet.ParquetWriter(path, block.schema, compression="zstd", write_page_checksum=True)
            writer.write_table(block)
    finally:
        if writer is not None:
            writer.close()


@dataclass(frozen=True)
class _Block:
    """Some judgments in a row."""

    prefs: Preferences
    rows: slice

    def labels(self, labels: Labels, codes: NDArray[Any]) -> pa.Array:
        return labels.take(codes[self.rows])

    def shared(self) -> dict[str, Any]:
        """Return what judgments of every kind have after their own columns."""
        cluster = {}
        if self.prefs.clusters is not None and self.prefs.cluster is not None:
            cluster["cluster"] = self.labels(self.prefs.clusters, self.prefs.cluster)
        return cluster | {"count": pa.array(self.prefs.count[self.rows].astype(np.int64))}


def _blocks(prefs: Preferences) -> Iterator[_Block]:
    for begin in range(0, max(prefs.distinct, 1), BLOCK):
        yield _Block(prefs, slice(begin, begin + BLOCK))


def _comparisons(prefs: Preferences) -> Iterator[pa.Table]:
    assert prefs.winner is not None and prefs.loser is not None
    ones, none = np.ones(BLOCK), np.zeros(BLOCK, bool)
    for block in _blocks(prefs):
        rows, size = block.rows, len(prefs.count[block.rows])
        named = {} if prefs.covariates is None else dict(zip(prefs.covariate_names, prefs.covariates[rows].T))
        columns = {
            "query": block.labels(prefs.queries, prefs.query),
            "winner": block.labels(prefs.items, prefs.winner),
            "loser": block.labels(prefs.items, prefs.loser),
            "tie": none[:size] if prefs.tie is None else prefs.tie[rows],
            "weight": ones[:size] if prefs.weight is None else prefs.weight[rows],
            **{f"{COVARIATE}{name}": np.ascontiguousarray(values) for name, values in named.items()},
        }
        table = pa.table({**columns, **block.shared()})
        yield table
    if len(prefs.declared):
        item = prefs.items.take(prefs.declared[:, 1])
        known = {"query": prefs.queries.take(prefs.declared[:, 0]), "winner": item, "loser": item}
        yield _known(known, table.schema)


def _lists(prefs: Preferences) -> Iterator[pa.Table]:
    assert prefs.list_start is not None and prefs.list_item is not None and prefs.list_value is not None
    for block in _blocks(prefs):
        offsets, entries = take_lists(prefs.list_start, np.arange(prefs.distinct)[block.rows])
        columns = {
            "query": block.labels(prefs.queries, prefs.query),
            "items": _list_array(offsets, prefs.items.take(prefs.list_item[entries])),
            VALUES[str(prefs.kind)]: _list_array(offsets, pa.array(prefs.list_value[entries])),
        }
        table = pa.table({**columns, **block.shared()})
        yield table
    if len(prefs.declared):
        query, item = prefs.declared.T
        first = np.flatnonzero(np.diff(query, prepend=-1))
        items = _list_array(np.append(first, len(query)), prefs.items.take(item))
        known = {"query": prefs.queries.take(query[first]), "items": items}
        yield _known(known, table.schema)


def _known(columns: dict[str, Any], schema: pa.Schema) -> pa.Table:
    """Return the rows of items that are in no judgment: they count 0 and have nothing else."""
    size = len(columns["query"])
    full = {name: columns.get(name, pa.nulls(size, schema.field(name).type)) for name in schema.names}
    return pa.table(full | {"count": pa.array(np.zeros(size, np.int64))}, schema)


def _list_array(offsets: NDArray[np.int64], values: pa.Array) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array(offsets), values)

"""Rows of a table that is not in memory, those of each query one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.engines.duckdb import Settings
from concordant.engines.streams import over_stream
from concordant.features.placing import Placed
from concordant.features.streamed import BLOCK, FeatureFile

__all__ = ["rows_by_query"]

Ints = NDArray[np.int64]
Matrix = NDArray[np.floating[Any]]
SORTING = "1GB"
"""Memory of the sort where the user gave no limit; what is beyond it goes to disk."""


def rows_by_query(
    file: FeatureFile, placed: Placed, *, missing: str = "raise", seen: Callable[[Matrix], None] | None = None
) -> Iterator[tuple[Matrix, Ints, Ints]]:
    """Yield blocks of (matrix, rows of it that were judged, their nodes), each query's rows together.

    A query may go on in the next block. Where the rows of the file do not stand query by query DuckDB sorts them on
    disk. ``seen`` is called with every block of the file, judged or not, in its order.
    """
    if placed.grouped:
        for begin, X in file.blocks(missing=missing):
            if seen is not None:
                seen(X)
            row, node = placed.nodes(begin, begin + len(X))
            yield X, row, node
        return
    width = len(file.names)
    kind = np.dtype(np.float32 if file.narrow else np.float64)
    schema = pa.schema([("node", pa.int64()), ("x", pa.large_binary())])
    unsorted = _packed(file, placed, schema, kind, missing, seen)
    settings = Settings(file.memory_limit or SORTING)
    rows = max(1, BLOCK // width)
    for batch in over_stream(unsorted, schema, "SELECT node, x FROM stream ORDER BY node", settings, rows=rows):
        node = batch.column(0).to_numpy()
        yield _unpacked(batch.column(1), width, kind), np.arange(len(node)), node


def _packed(
    file: FeatureFile,
    placed: Placed,
    schema: pa.Schema,
    kind: np.dtype[Any],
    missing: str,
    seen: Callable[[Matrix], None] | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the judged rows, their features as bytes: one long value moves faster through a sort than many columns."""
    most = max(1, BLOCK // len(file.names))
    for begin, X in file.blocks(missing=missing):
        if seen is not None:
            seen(X)
        rows, nodes = placed.nodes(begin, begin + len(X))
        for first in range(0, len(rows), most):
            row, node = rows[first : first + most], nodes[first : first + most]
            chosen = X[row].astype(kind, copy=False)
            ends = np.arange(len(row) + 1, dtype=np.int64) * chosen.itemsize * chosen.shape[1]
            buffers = [None, pa.py_buffer(ends), pa.py_buffer(chosen)]
            x = pa.Array.from_buffers(pa.large_binary(), len(row), buffers)
            yield pa.RecordBatch.from_arrays([pa.array(node), x], schema=schema)


def _unpacked(column: pa.Array, width: int, kind: np.dtype[Any]) -> NDArray[np.float64]:
    column = column.cast(pa.large_binary())
    first = int(np.frombuffer(column.buffers()[1], np.int64)[column.offset])
    values = np.frombuffer(column.buffers()[2], kind, len(column) * width, first)
    return values.reshape(-1, width).astype(np.float64)

"""Rows of a table that is not in memory that are about the same query and item: an error, found out of core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.engines.duckdb import Settings
from concordant.engines.streams import over_stream
from concordant.errors import InputError
from concordant.features.reading import column_labels
from concordant.features.streamed import FeatureFile

__all__ = ["refuse_repeats", "say_repeats"]


def refuse_repeats(file: FeatureFile, code: NDArray[np.integer[Any]] | None = None) -> None:
    """Raise InputError where two rows are of one (query, item); with ``code``, only of those whose code is negative."""
    roles = ["item"] if file.query is None else ["item", "query"]
    kinds = [file.label_type(role) for role in roles]
    schema = pa.schema([*zip(roles, kinds, strict=True), ("row", pa.int64())])

    def rows() -> Iterator[pa.RecordBatch]:
        for begin, batch in file.labels():
            end = begin + len(batch)
            chosen = np.arange(begin, end) if code is None else begin + np.flatnonzero(code[begin:end] < 0)
            at, columns = pa.array(chosen - begin), []
            for role, kind, column in zip(roles, kinds, batch.columns, strict=True):
                values = column_labels(pa.chunked_array([column]), role, file.log, begin)
                columns.append(pc.take(values, at).cast(kind))
            yield pa.RecordBatch.from_arrays([*columns, pa.array(chosen)], schema=schema)

    keys = ", ".join(roles)
    statement = (
        f'WITH twice AS (SELECT {keys}, count(*) - 1 AS again, min("row", 2) AS places FROM stream GROUP BY {keys} '
        f"HAVING count(*) > 1) SELECT {keys}, places[1] AS place_1, places[2] AS place_2, "
        "(SELECT sum(again) FROM twice)::BIGINT AS repeats FROM twice ORDER BY place_1 LIMIT 1"
    )
    for found in over_stream(rows(), schema, statement, Settings(file.memory_limit), rows=1):
        for row in found.to_pylist():
            called = ", ".join(f"{role} {row[role]!r}" for role in reversed(roles))
            say_repeats(file, row["repeats"], row["place_1"], row["place_2"], called)


def say_repeats(file: FeatureFile, repeats: int, first: int, second: int, called: str) -> None:
    """Raise InputError: so many rows are repeats, the first of them the row ``second`` (from 0)."""
    unit = "item" if file.query is None else "(query, item)"
    raise InputError(
        f"{file.log.name}: {repeats:,} of {len(file):,} rows repeat an earlier {unit}: rows {first + 1:,} and "
        f"{second + 1:,} are both {called}; give each {unit} one row"
    )

"""Score features that stay on disk: ranks within queries by a window over a stream of scores, written part by part."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from concordant.apps.commands.output import as_csv, write_parts
from concordant.apps.commands.standard import reader_gone
from concordant.errors import UsageError
from concordant.io.engines.duckdb import Settings, over_stream
from concordant.learning.features.reading import column_labels
from concordant.learning.features.streamed import FeatureFile

__all__ = ["put_stream", "ranked_stream"]


ROWS = 1 << 18
RANKED = (
    'SELECT query, item, score, rank() OVER (PARTITION BY query ORDER BY score DESC) AS "rank" '
    "FROM stream ORDER BY place"
)


def ranked_stream(file: FeatureFile, score: Any) -> Iterator[pa.Table]:
    """Yield query, item, score and rank of every row, in the order of the file (see ``scoring.ranked``)."""
    kinds = [pa.string() if file.query is None else file.label_type("query"), file.label_type("item")]
    schema = pa.schema([("query", kinds[0]), ("item", kinds[1]), ("score", pa.float64()), ("place", pa.int64())])

    def rows() -> Iterator[pa.RecordBatch]:
        for begin, batch in file.labels():
            labels = [_labels(file, role, begin, batch, place) for place, role in enumerate(("item", "query"))]
            columns = [labels[1].cast(kinds[0]), labels[0].cast(kinds[1])]
            places = pa.array(range(begin, begin + len(batch)), pa.int64())
            columns += [pa.array(score[begin : begin + len(batch)]), places]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    out = schema.remove(3).append(pa.field("rank", pa.int64()))
    for batch in over_stream(rows(), schema, RANKED, Settings(file.memory_limit), rows=ROWS):
        yield pa.Table.from_batches([batch]).cast(out)


def _labels(file: FeatureFile, role: str, begin: int, batch: pa.RecordBatch, place: int) -> pa.Array:
    if role == "query" and file.query is None:
        return pa.nulls(len(batch), pa.string())
    return column_labels(pa.chunked_array([batch.column(place)]), role, file.log, begin)


def put_stream(file: FeatureFile, score: Any, given: Mapping[str, Any]) -> int:
    """Write the table to ``--output`` or into a pipe and return its number of rows."""
    parts = ranked_stream(file, score)
    if given["output"] is not None:
        return write_parts(parts, given["output"])
    if sys.stdout.isatty():
        raise UsageError("a table that is streamed is not shown on a terminal; name a file with --output")
    rows = 0
    for part in parts:
        text = as_csv(part)
        sys.stdout.buffer.write(text if rows == 0 else text[text.index(b"\n") + 1 :])
        rows += len(part)
        if reader_gone():
            break
    sys.stdout.buffer.flush()
    return rows

"""Statements over rows that come batch by batch and need not fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import duckdb as library
import pyarrow as pa

from concordant.engines.duckdb import Settings, connected, message
from concordant.engines.watched import watched
from concordant.errors import InputError

__all__ = ["memory_allowed", "over_stream"]

UNITS = {"bytes": 1, "byte": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def memory_allowed(settings: Settings) -> int:
    """Return the bytes that DuckDB may use: the limit that was given, or most of the memory of the machine.

    >>> memory_allowed(Settings("512MiB")) == 512 << 20
    True
    """
    with connected(settings) as connection:
        try:
            said = connection.execute("SELECT current_setting('memory_limit')").fetchall()[0][0]
        except library.OutOfMemoryException:
            return 0  # so little that not even the question fits
    number, unit = str(said).split()
    return int(float(number) * UNITS[unit])


def over_stream(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, statement: str, settings: Settings, *, rows: int
) -> Iterator[pa.RecordBatch]:
    """Run a statement over the table ``stream`` and yield its rows, about so many at a time; what is large spills.

    Errors that the batches raise come out as they are; InputError where memory or disk do not suffice.

    >>> batch = pa.RecordBatch.from_pydict({"x": [3, 1, 2]})
    >>> found = over_stream([batch], batch.schema, "SELECT x FROM stream ORDER BY x", Settings(), rows=10)
    >>> [part.column(0).to_pylist() for part in found]
    [[1, 2, 3]]
    """
    raised: list[BaseException] = []

    def source() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except BaseException as error:
            raised.append(error)
            raise

    with connected(settings) as connection, watched(connection, "sorting rows"):
        connection.register("stream", pa.RecordBatchReader.from_batches(schema, source()))
        try:
            result = connection.sql(statement)
            new = getattr(result, "to_arrow_reader", None)  # DuckDB 1.4 and later; fetch_record_batch before
            yield from new(rows) if new is not None else result.fetch_record_batch(rows)
        except library.InterruptException:
            raise
        except library.OutOfMemoryException as error:
            raise InputError(f"sorting needs more memory or disk than there is: {message(error)}") from None
        except (library.Error, pa.ArrowException, OSError) as error:
            if raised:
                raise raised[0] from None
            raise InputError(f"sorting a stream of rows failed: {message(error)}") from None

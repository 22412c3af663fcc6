"""Tables in memory: anything that speaks Arrow, pandas, polars, DuckDB relations, mappings of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from concordant.errors import InputError, twice
from concordant.io.log.formats import Log
from concordant.io.log.json_values import unicode_text
from concordant.preferences.frames import as_columns


def from_object(source: Any) -> Log:
    """Return the log that an object in memory is, without a copy where Arrow allows.

    Accepted: Arrow Table, RecordBatch and RecordBatchReader, anything with ``__arrow_c_stream__`` (pandas, polars),
    DuckDB relations, Spark DataFrames, a mapping of column names to columns.
    """
    if type(source).__module__.split(".")[0] in ("duckdb", "_duckdb") and hasattr(source, "query"):
        return Log("relation", "relation", tuple(source.columns), table=source)
    if type(source).__module__.startswith("pyspark.sql.") and hasattr(source, "mapInArrow"):
        return Log("DataFrame", "frame", tuple(source.columns), table=source)
    table = _table(source)
    names = table.column_names
    if again := twice(names):
        raise InputError(f"table: the column {again[0]!r} is there more than once")
    return Log("table", "table", tuple(names), table=table)


def _table(source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    try:
        if isinstance(source, pa.RecordBatch):
            return pa.Table.from_batches([source])
        if isinstance(source, pa.RecordBatchReader):
            return source.read_all()
        if hasattr(source, "__arrow_c_stream__"):
            return pa.table(source)
    except UnicodeEncodeError:
        raise InputError("table: a text has invalid encoding (a lone surrogate)") from None
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        said = str(error).strip().split("\n")[0][:200]
        raise InputError(f"table: cannot be read through Arrow: {said}") from None
    if not isinstance(source, Mapping):
        raise InputError(
            f"cannot read preferences from {type(source).__name__}; give a path, an Arrow, pandas or polars table, "
            "a DuckDB relation, a Spark DataFrame or a mapping of columns"
        )
    for name in source:
        if not isinstance(name, str):
            raise InputError(f"table: column names are texts, not {name!r}")
        if not unicode_text(name):
            raise InputError(f"table: the column name {ascii(name)[:80]} has invalid encoding (a lone surrogate)")
    return pa.table(as_columns(source))

"""Tables in memory: anything that speaks Arrow, pandas, polars, DuckDB relations, mappings of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.errors import InputError, twice
from concordant.json_values import unicode_text
from concordant.log.formats import Log
from concordant.tally import MOST

__all__ = ["as_columns", "from_object"]

LABELS = frozenset({"query", "cluster", "winner", "loser", "item", "session", "judgment"})
NUMBERS = frozenset({"weight", "count", "position", "rank", "rating", "tie", "clicked", "chosen"})
"""Roles whose values are labels, and numbers or flags; columns of a table by other names may be either."""


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


def as_columns(given: Mapping[str, Any], needed: Sequence[str] = ()) -> dict[str, Any]:
    """Return columns of any make as Arrow arrays of one length; those that are None are left out unless needed."""
    for role in needed:
        if given[role] is None:
            raise InputError(f"the column of {role} is None; it is needed")
    columns = {role: _as_arrow(column, role) for role, column in given.items() if column is not None}
    sizes = {role: len(column) for role, column in columns.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(f"columns differ in length: {', '.join(f'{role} {n:,}' for role, n in sizes.items())}")
    return columns


def _as_arrow(column: Any, role: str) -> Any:
    """Return one column as an Arrow array; NaN in a column of Python objects is missing."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if isinstance(column, str | bytes | set | frozenset | dict):  # a text is no column, a set has no order
        raise InputError(f"the column of {role} is of type {type(column).__name__}; give a list, an array or a series")
    if getattr(column, "ndim", 1) != 1:
        raise InputError(f"the column of {role} has {column.ndim} dimensions; a column has one")
    try:
        if hasattr(column, "__arrow_c_stream__"):
            return pa.chunked_array(column)
        if hasattr(column, "__arrow_c_array__"):
            return pa.array(column)
        if isinstance(column, np.ndarray) and column.dtype.kind == "U":
            column = column.astype(object)
        if not isinstance(column, np.ndarray | list | tuple):
            column = column.to_numpy() if hasattr(column, "to_numpy") else list(column)
        return pa.array(column, from_pandas=isinstance(column, np.ndarray) and column.dtype.kind == "O")
    except UnicodeEncodeError:
        raise InputError(f"the column of {role} holds texts with invalid encoding (a lone surrogate)") from None
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        if isinstance(column, np.ndarray | list | tuple):
            _say_types(column, role)
        said = str(error).strip().split("\n")[0][:200]
        raise InputError(f"the column of {role} cannot be read as an Arrow array: {said}") from None


def _say_types(column: Any, role: str) -> None:
    """Raise InputError that says what a column that is none for Arrow holds, and what it may hold."""
    values = [value for value in column if value is not None]
    kinds = sorted({type(value).__name__ for value in values})
    wide = [value for value in values if isinstance(value, int) and not -MOST <= value <= MOST]
    if wide and kinds == ["int"]:
        raise InputError(f"the column of {role} holds {wide[0]}, beyond 64 bits with sign")
    what = "labels must be all texts or all 64-bit integers" if role in LABELS else "values must be all of one type"
    if role in NUMBERS or role.startswith("covariate "):
        what = "values must be all numbers"
    raise InputError(f"the column of {role}: {what}; found {', '.join(kinds)}")

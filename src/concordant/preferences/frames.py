"""Columns in memory of any make as Arrow arrays of one length.

Arrow tables as the data frames of packages that may not be installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.errors import InputError
from concordant.preferences.counts import MOST
from concordant.preferences.layouts import CLUSTERS

LABELS = frozenset({"query", *CLUSTERS, "winner", "loser", "item", "session", "judgment"})


NUMBERS = frozenset({"weight", "count", "position", "rank", "rating", "tie", "clicked", "chosen"})


"""Roles whose values are labels, and numbers or flags; columns of a table by other names may be either."""


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


def as_pandas(table: pa.Table) -> Any:
    """Return a table as a pandas data frame. Errors (ImportError): pandas is not installed."""
    try:
        return table.to_pandas()
    except ModuleNotFoundError as error:
        raise ImportError(_said("pandas")) from error


def as_polars(table: pa.Table) -> Any:
    """Return a table as a polars data frame. Errors (ImportError): polars is not installed."""
    try:
        import polars
    except ModuleNotFoundError as error:
        raise ImportError(_said("polars")) from error
    return polars.from_arrow(table)


def _said(package: str) -> str:
    return f"to_{package}() needs {package}: pip install {package}; to_arrow() needs nothing else"

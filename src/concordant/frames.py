"""Arrow tables as the data frames of packages that may not be installed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["as_pandas", "as_polars"]


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

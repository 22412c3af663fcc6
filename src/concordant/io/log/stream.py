"""Tables that are read batch by batch, each time anew: files in object stores, and tables with a log of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa

from concordant.errors import Unavailable


class Stream(ABC):
    """A table somewhere, never held whole."""

    versioned = False
    """Whether the table changes as a whole, from version to version, and not by files that are added."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Its columns and their types. Errors: InputError, Unavailable, as of ``batches``."""

    @property
    def rows(self) -> int | None:
        """How many rows it has, where that is known without reading it."""
        return None

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some columns, by their names, in an order that stays the same.

        Errors: InputError where it is not what it seems, or parts of it are missing; Unavailable where it cannot be
        reached. Never fewer rows than it has.
        """


def library(module: str, extra: str, what: str) -> Any:
    """Return a module of an extra. Errors (Unavailable): it is not installed."""
    try:
        return import_module(module)
    except ImportError as missing:
        raise Unavailable(
            f"{what} needs {missing.name or module}, which is not installed: pip install 'concordant[{extra}]'"
        ) from None


def in_utc(file: Any) -> pa.Schema:
    """Return the schema of a Parquet file; instants of 96 bits, which Spark writes, are of UTC."""
    schema = file.schema_arrow
    for place in range(len(file.schema)):
        column = file.schema.column(place)
        if column.physical_type == "INT96" and "." not in column.path:
            at = schema.get_field_index(column.path)
            schema = schema.set(at, schema.field(at).with_type(pa.timestamp("us", "UTC")))
    return schema

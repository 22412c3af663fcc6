"""Tables of features that stay on disk: Parquet and Arrow files, read in blocks of rows as often as needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError, counted, few
from concordant.io.log.formats import Log, locate, parquet_file
from concordant.io.log.headers import arrow_batches, with_header
from concordant.learning.features.matrix import MISSING, check_values
from concordant.learning.features.reading import chosen_columns, column_numbers
from concordant.progress import stage
from concordant.record import read

Floats = NDArray[np.float64]
FORMATS = ("parquet", "arrow")
BLOCK = 33 << 16
"""Values of features that are in memory at a time."""
KEYS = 1 << 20
"""Rows of labels that are in memory at a time."""
BUFFER = 1 << 18
"""Bytes of each column of a Parquet file that are read ahead."""
EXACT = 24
"""Bits of an integer that float32 holds."""


class FeatureFile:
    """A table of features that is not in memory: rows of (query, item), read as often as needed.

    ``source`` is a Parquet or Arrow file (.parquet .arrow .feather …) or a folder of them; ``columns`` and ``names``
    choose its columns as in ``read_features``. ``memory_limit`` (such as "4GB") bounds what sorting holds in memory
    where the rows of a query do not stand together; beyond it goes to disk. With ``as_written`` labels that are texts
    here and integers in the preferences, or the other way about, are matched as they are written.

    A ranker that can (``AggregationRanker``: linear, with a named structure) fits from it as from ``read_features``,
    and every ranker scores it. Errors: InputError that names file, row and column; UsageError for other formats.

    >>> import tempfile, pyarrow.parquet as pq
    >>> folder = tempfile.TemporaryDirectory()
    >>> table = pa.table({"item": ["x", "y"], "bm25": [1.5, 0.5], "length": [10, 20]})
    >>> pq.write_table(table, f"{folder.name}/items.parquet")
    >>> file = FeatureFile(f"{folder.name}/items.parquet")
    >>> file
    FeatureFile('items.parquet', 2 rows, 2 features)
    >>> [X.tolist() for _, X in file.blocks()]
    [[[1.5, 10.0], [0.5, 20.0]]]
    >>> folder.cleanup()
    """

    names: tuple[str, ...]
    """Name of each feature."""
    query: str | None
    """Column of queries; None where rows hold for every query."""
    placed: tuple[Any, Any] | None
    """The preferences that rows were last matched with, and what came out (``place``)."""

    def __init__(
        self,
        source: Any,
        *,
        columns: Mapping[str, str] | None = None,
        names: Sequence[str] | None = None,
        memory_limit: str | None = None,
        as_written: bool = False,
    ) -> None:
        log = locate(source)
        if log.format not in FORMATS:
            raise UsageError(
                f"{log.name}: features are streamed from Parquet and Arrow files, not from {log.format}; "
                "read_features reads it into memory"
            )
        self.log: Log = with_header(log)
        self.item, self.query, _, chosen = chosen_columns(self.log.name, self.log.columns, columns or {}, names)
        if len(set(chosen)) < len(chosen):
            raise InputError(f"{self.log.name}: the feature names {few(chosen)} are not all different")
        self.names = tuple(chosen)
        self.memory_limit = memory_limit
        self.as_written = as_written
        self.placed: tuple[Any, Any] | None = None
        if len(self) == 0:
            raise InputError(f"{self.log.name}: there are no rows")
        read(source, "features", rows=len(self), columns=list(self.names))

    def __len__(self) -> int:
        return self._rows

    def __repr__(self) -> str:
        return f"FeatureFile({self.log.name!r}, {counted(len(self), 'rows')}, {counted(len(self.names), 'features')})"

    @property
    def size(self) -> int:
        """Bytes that the table and the matrix made of it take in memory."""
        return len(self) * sum(8 + _width(self._type(name)) for name in self.names)

    @cached_property
    def narrow(self) -> bool:
        """Whether float32 holds every value as it is."""
        return all(_fits_float32(self._type(name)) for name in self.names)

    def label_type(self, role: str) -> pa.DataType:
        """int64 where the labels of items or queries are integers, large_string where they are texts."""
        column = self.item if role == "item" else self.query
        kind = None if column is None else self._type(column)
        kind = kind.value_type if kind is not None and pa.types.is_dictionary(kind) else kind
        return pa.int64() if kind is not None and pa.types.is_integer(kind) else pa.large_string()

    def labels(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the columns of labels in parts, item first, each with the row that it begins with (from 0)."""
        yield from self._parts([self.item, *([] if self.query is None else [self.query])], KEYS)

    def blocks(
        self, names: Sequence[str] | None = None, *, missing: str = "raise"
    ) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Yield blocks of rows as matrices, each with the row that it begins with (from 0).

        ``missing`` 'keep' lets NaN through. Errors (InputError): values that are not finite, with row and column.
        """
        names = self.names if names is None else tuple(names)
        if missing not in MISSING:
            raise UsageError(f"missing must be one of {', '.join(MISSING)}, not {missing!r}")
        for begin, batch in self._parts(names, max(1, BLOCK // len(names))):
            X = np.empty((len(batch), len(names)))
            for place, name in enumerate(names):
                X[:, place] = column_numbers(batch.column(place), name, self.log, begin)
            check_values(X, names, missing=missing, name=self.log.name, begin=begin)
            yield begin, X

    def column(self, name: str) -> Floats:
        """Return one column, NaN where a value is missing."""
        return np.concatenate([X[:, 0] for _, X in self.blocks([name], missing="keep")])

    @cached_property
    def _rows(self) -> int:
        if self.log.format == "parquet":
            return sum(_opened(path).metadata.num_rows for path in self.log.paths)
        return sum(len(batch) for _, batch in self._parts([self.item], KEYS))

    def _type(self, name: str) -> Any:
        return self._types[name]

    @cached_property
    def _types(self) -> dict[str, Any]:
        return dict(zip(self.log.columns, self.log.types, strict=True))

    def _parts(self, columns: Sequence[str], rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        begin = 0
        with stage(f"rows of {self.log.name}", self.__dict__.get("_rows")) as advance:
            for path in self.log.paths:
                try:
                    for batch in _batches(path, self.log.format, columns, rows):
                        yield begin, batch
                        begin += len(batch)
                        advance(len(batch))
                except (pa.ArrowException, OSError) as error:
                    said = str(error).strip().split("\n")[0][:200]
                    raise InputError(f"{path.name}: cannot be read as {self.log.format}: {said}") from None


def _opened(path: Path) -> Any:
    # without pre_buffer pages are forgotten once they are read; with it the whole file would gather in memory
    return parquet_file(path, pre_buffer=False, buffer_size=BUFFER)


def _batches(path: Path, form: str, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a file, at most so many rows at a time, in their order."""
    if form == "parquet":
        with _opened(path) as file:
            for batch in file.iter_batches(batch_size=rows, columns=list(columns)):
                chosen = batch.select(list(columns))
                chosen.validate(full=True)
                yield chosen
        return
    for batch in arrow_batches(path, columns):
        for begin in range(0, len(batch), rows):
            yield batch.slice(begin, rows)


def _width(kind: pa.DataType) -> int:
    """Bytes of a value; of texts those of a number."""
    numeric = pa.types.is_floating(kind) or pa.types.is_integer(kind)
    return kind.bit_width // 8 if numeric else 8


def _fits_float32(kind: pa.DataType) -> bool:
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        most = 32 if pa.types.is_floating(kind) else EXACT
        return bool(kind.bit_width <= most)
    return bool(pa.types.is_boolean(kind))

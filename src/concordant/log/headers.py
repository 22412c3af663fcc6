"""The names of the columns of a log, from its header, its schema or its first lines."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from concordant.errors import InputError
from concordant.log.formats import Log, opened
from concordant.log.judged import read_letor, read_qrels
from concordant.log.rows import with_columns

__all__ = ["ipc_reader", "with_header"]


def with_header(log: Log) -> Log:
    """Return the log with its columns; of a .txt file also the format."""
    if log.format == "txt":
        log = _sniffed(log)
    if log.format in ("csv", "tsv", "json"):
        return with_columns(log)
    if log.format == "letor":
        return read_letor(log)
    if log.format == "qrels":
        return read_qrels(log)
    if log.format in ("parquet", "arrow"):
        return _schema(log)
    return log


def _sniffed(log: Log) -> Log:
    """Tell LETOR, qrels, tab and comma apart by the first line of a .txt file."""
    with opened(log) as text:
        first = next((line for line in text if line.strip()), "")
    if re.match(r"\s*\S+\s+(qid|[0-9]+):", first):  # without a query its reader says what is missing
        return replace(log, format="letor")
    if re.fullmatch(r"\s*\S+[ \t]+\S+[ \t]+\S+[ \t]+-?[0-9]+\s*", first):
        return replace(log, format="qrels")
    if "\t" in first or "," in first:
        return replace(log, format="tsv" if "\t" in first else "csv")
    raise InputError(f"{log.name}: neither LETOR, qrels, nor a table with tabs or commas; first line {first[:60]!r}")


def _schema(log: Log) -> Log:
    try:
        if log.format == "parquet":
            with pa.parquet.ParquetFile(log.path) as file:
                names = list(file.schema_arrow.names)
        else:
            with pa.memory_map(str(log.path)) as source:
                names = list(ipc_reader(source).schema.names)
    except (pa.ArrowException, OSError) as error:
        said = str(error).strip().split("\n")[0][:160]
        raise InputError(
            f"{log.name}: not a complete {'Parquet' if log.format == 'parquet' else 'Arrow'} file: {said}"
        ) from None
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{log.name}: the column {twice[0]!r} is there more than once")
    return replace(log, columns=tuple(names))


def ipc_reader(source: pa.NativeFile) -> Any:
    """Return a reader of an Arrow file, be it in the file or in the stream format."""
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)

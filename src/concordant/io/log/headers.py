"""The names of the columns of a log, from its header, its schema or its first lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from concordant.errors import InputError, UsageError, twice
from concordant.io.log.formats import Log, opened, parquet_file
from concordant.io.log.letor import read_letor, read_qrels
from concordant.io.log.rows import with_columns
from concordant.io.log.runs import read_run
from concordant.io.log.stream import in_utc
from concordant.io.log.union import joined

END = b"\xff\xff\xff\xff\0\0\0\0"
"""What ends an Arrow stream; a file that was cut between two batches lacks it."""


def with_header(log: Log) -> Log:
    """Return the log with its columns; of a .txt file also the format.

    Errors: a file that is not of its format; what only Spark opens.
    """
    if log.on_spark:
        raise UsageError(f"{log.name}: only the engine spark reads this")
    if log.parts:
        return joined(log, with_header)
    log = sniffed(log)
    if log.format in ("csv", "tsv", "json"):
        return with_columns(log)
    if log.format == "letor":
        return read_letor(log)
    if log.format == "qrels":
        return read_qrels(log)
    if log.format == "run":
        return read_run(log)
    if log.format in ("parquet", "arrow", "stream"):
        return _schema(log)
    return log


def sniffed(log: Log) -> Log:
    """Tell LETOR, runs, qrels, tab and comma apart by the first line of a .txt file; others stay as they are."""
    if log.format != "txt":
        return log
    with opened(log) as text:
        first = next((line for line in text if line.strip()), "")
    if re.match(r"\s*\S+\s+(qid|[0-9]+):", first):  # without a query its reader says what is missing
        return replace(log, format="letor")
    if re.fullmatch(r"\s*\S+[ \t]+\S+[ \t]+\S+[ \t]+-?[0-9]+\s*", first):
        return replace(log, format="qrels")
    if re.fullmatch(r"\s*\S+\s+Q0\s.*|\s*(\S+\s+){3}[0-9]+\s+[-+.0-9eE]+\s+\S+\s*", first, re.IGNORECASE | re.DOTALL):
        return replace(log, format="run")
    if "\t" in first or "," in first:
        return replace(log, format="tsv" if "\t" in first else "csv")
    raise InputError(
        f"{log.name}: neither LETOR, a run, qrels, nor a table with tabs or commas; first line {first[:60]!r}"
    )


def _schema(log: Log) -> Log:
    try:
        if log.format == "stream":
            schema, rows = log.table.schema, log.table.rows
        elif log.format == "parquet":
            with parquet_file(log.path) as file:
                schema, rows = in_utc(file), file.metadata.num_rows
        else:
            with pa.OSFile(str(log.path)) as source:
                schema, rows = _ipc_reader(source).schema, None
        names = list(schema.names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        said = str(error).strip().split("\n")[0][:160]
        if isinstance(error, OSError) and error.errno is not None:  # not of the file, but of the system
            raise InputError(f"{log.name}: {os.strerror(error.errno)}") from None
        raise InputError(
            f"{log.name}: not a complete {'Parquet' if log.format == 'parquet' else 'Arrow'} file: {said}"
        ) from None
    if again := twice(names):
        raise InputError(f"{log.name}: the column {again[0]!r} is there more than once")
    inside = dict(_inside(schema, {*names}))
    ways = {name: way for name, (way, _) in inside.items()}
    types = (*schema.types, *(kind for _, kind in inside.values()))
    return replace(log, columns=(*names, *inside), types=types, inner=ways, rows=rows)


def _inside(
    fields: Any, taken: set[str], way: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[tuple[str, ...], pa.DataType]]]:
    """Yield the columns inside structs: their names with dots between, the way to each, its type."""
    for field in fields:
        here = (*way, field.name)
        if way and ".".join(here) not in taken:
            yield ".".join(here), (here, field.type)
        if pa.types.is_struct(field.type):
            yield from _inside([field.type.field(k) for k in range(field.type.num_fields)], taken, here)


def arrow_batches(path: Path | None, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some columns of an Arrow file, be it in the file or in the stream format, batch by batch.

    Arrow believes what a file says of itself and reads where its offsets lead: nothing is handed over before all of it
    was looked through. The file is not mapped into memory, for one that is cut while it is read would end the process.
    Errors: those of Arrow.
    """
    with pa.OSFile(str(path)) as source:
        reader = _ipc_reader(source)
        streams = isinstance(reader, pa.ipc.RecordBatchStreamReader)
        for batch in reader if streams else map(reader.get_batch, range(reader.num_record_batches)):
            chosen = batch.select(list(columns))
            chosen.validate(full=True)
            yield chosen
        if streams:
            end = source.tell()
            source.seek(max(end - len(END), 0))
            if source.read() != END:
                raise pa.ArrowInvalid("the stream does not end with its end mark: it was cut, or another follows it")


def arrow_metadata(path: Path) -> Any:
    """Return what an Arrow file carries beside its columns."""
    with pa.OSFile(str(path)) as source:
        return _ipc_reader(source).schema.metadata


def _ipc_reader(source: pa.NativeFile) -> Any:
    """Return a reader of an Arrow file, be it in the file or in the stream format."""
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)

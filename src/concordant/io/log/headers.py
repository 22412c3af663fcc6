"""The names of the columns of a log, from its header, its schema or its first lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from concordant.errors import InputError, UsageError, few, shown, twice
from concordant.io.log.formats import Log, opened, parquet_file
from concordant.io.log.letor import read_letor, read_qrels
from concordant.io.log.rows import with_columns
from concordant.io.log.runs import fused, read_run
from concordant.preferences.values import is_text

END = b"\xff\xff\xff\xff\0\0\0\0"
"""What ends an Arrow stream; a file that was cut between two batches lacks it."""


def with_header(log: Log) -> Log:
    """Return the log with its columns; of a .txt file also the format.

    Errors: a file that is not of its format; a folder whose files differ in their columns; what only Spark opens.
    """
    if log.on_spark:
        raise UsageError(f"{log.name}: only the engine spark reads this")
    if log.parts:
        return joined(log, [with_header(part) for part in log.parts])
    log = sniffed(log)
    if log.format in ("csv", "tsv", "json"):
        return with_columns(log)
    if log.format == "letor":
        return read_letor(log)
    if log.format == "qrels":
        return read_qrels(log)
    if log.format == "run":
        return read_run(log)
    if log.format in ("parquet", "arrow"):
        return _schema(log)
    return log


def joined(log: Log, parts: Sequence[Log]) -> Log:
    """Return the log of a folder with its columns, which are those of its first file, given its files with theirs.

    Every file has the same columns of the same types; integers of any width up to int64 are one type, so are
    texts, and a dictionary is of the type of its values. In CSV and TSV the columns also stand in the same order.

    Errors: the first file that differs, and how.
    """
    for part in parts[1:]:
        differs = _difference(parts[0], part)
        if differs:
            file = Path(part.name).name
            raise InputError(f"{log.name}: the files of a log have the same columns, but {file} {differs}")
    header, trimmed = max(part.header for part in parts), all(part.trimmed for part in parts)
    parts = [replace(part, trimmed=trimmed) for part in parts]
    whole = replace(parts[0], name=log.name, header=header, table=None, lines=None, parts=tuple(parts))
    return fused(whole, parts) if whole.format == "run" else whole


def _difference(first: Log, other: Log) -> str:
    """Say how a file differs from the first one of its folder; nothing where it does not."""
    name = Path(first.name).name
    if first.format != other.format:
        return f"is read as {other.format} and {name} as {first.format}"
    if first.array != other.array:
        forms = ("an object on each line", "one array of objects")
        return f"holds {forms[other.array]} and {name} {forms[first.array]}"
    lacks = [column for column in first.columns if column not in other.columns]
    more = [column for column in other.columns if column not in first.columns]
    if lacks or more:
        said = [f"lacks {few(lacks)}" if lacks else "", f"adds {few(more)}" if more else ""]
        return f"{' and '.join(filter(None, said))}; {name} has {few(first.columns)}"
    if first.format in ("csv", "tsv") and first.columns != other.columns:
        return f"has them in another order: {few(other.columns)}; {name} has {few(first.columns)}"
    types = dict(zip(other.columns, other.types, strict=False))
    changed = [
        f"{shown(column)} is {types[column]} and in {name} {kind}"
        for column, kind in zip(first.columns, first.types, strict=False)
        if _alike(kind) != _alike(types[column])
    ]
    return f"has other types: {'; '.join(changed[:8])}" if changed else ""


def _alike(kind: pa.DataType) -> str:
    """Return one word for types that hold the same values: integers up to int64, texts, dictionaries of them."""
    if pa.types.is_dictionary(kind):
        return _alike(kind.value_type)
    if is_text(kind):
        return "text"
    return "integer" if pa.types.is_integer(kind) and kind != pa.uint64() else str(kind)


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
        if log.format == "parquet":
            with parquet_file(log.path) as file:
                schema = file.schema_arrow
        else:
            with pa.OSFile(str(log.path)) as source:
                schema = _ipc_reader(source).schema
        names = list(schema.names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        said = str(error).strip().split("\n")[0][:160]
        raise InputError(
            f"{log.name}: not a complete {'Parquet' if log.format == 'parquet' else 'Arrow'} file: {said}"
        ) from None
    if again := twice(names):
        raise InputError(f"{log.name}: the column {again[0]!r} is there more than once")
    return replace(log, columns=tuple(names), types=tuple(schema.types))


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


def _ipc_reader(source: pa.NativeFile) -> Any:
    """Return a reader of an Arrow file, be it in the file or in the stream format."""
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)

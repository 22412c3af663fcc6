"""The plain engine: rows in memory, counted with NumPy; the oracle that the others must equal."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.errors import InputError
from concordant.io.log.formats import Log, parquet_file
from concordant.io.log.headers import arrow_batches
from concordant.io.log.rows import delimited_rows, json_rows
from concordant.io.log.union import TEXT, check_types, filled, is_even, of_folders
from concordant.kernels.arrays import in_threads
from concordant.preferences.lists import RawLists, coded, decoded, gather, packed, unpacked
from concordant.preferences.messages import is_messages, labelled
from concordant.preferences.values import is_text

MANY = 100_000


def placed_rows(log: Log, columns: Sequence[str]) -> Iterator[tuple[int | str, tuple[Any, ...]]]:
    """Yield the line (or row) number, in a folder the file and the line, and the raw values of every row of a log."""
    if log.parts:
        for part in log.parts:
            rows = (
                placed_rows(part, columns)
                if is_even(replace(log, parts=(part,)), columns)
                else _filled(log, part, columns)
            )
            yield from ((f"{part.file} {part.place} {number:,}", row) for number, row in rows)
    elif log.format in ("csv", "tsv"):
        yield from delimited_rows(log, columns)
    elif log.format == "json":
        yield from json_rows(log, columns)
    elif log.format == "stream":
        begin = 0
        for batch in batches(log, columns):
            yield from ((begin + number, row) for number, row in table_rows(pa.Table.from_batches([batch]), columns))
            begin += len(batch)
    else:
        for number, row in table_rows(arrow_table(log, columns), columns):
            yield number if log.lines is None else int(log.lines[number - 1]), row


def _filled(log: Log, part: Log, columns: Sequence[str]) -> Iterator[tuple[int | str, tuple[Any, ...]]]:
    """Yield the rows of a file of a log that lacks some columns, or has some by the names of its folders."""
    if part.format not in TEXT:
        yield from table_rows(arrow_table(replace(log, parts=(part,)), columns), columns)
        return
    fixed, own = of_folders(part, columns), dict[str, int]()
    for column in columns:
        if column in part.columns and column not in fixed:
            own.setdefault(column, len(own))
    places = [own.get(column) for column in columns]
    for number, values in placed_rows(part, list(own) or part.columns[:1]):
        pairs = zip(columns, places, strict=True)
        yield number, tuple([fixed.get(column) if place is None else values[place] for column, place in pairs])


def table_rows(table: pa.Table, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield the number (from 1) and the values of every row of a table."""
    begin = 1
    for batch in table.select(list(columns)).to_batches(max_chunksize=10_000):
        values = [batch.column(place).to_pylist() for place in range(len(columns))]
        yield from enumerate(zip(*values, strict=True), begin)
        begin += len(batch)


def arrow_table(log: Log, columns: Sequence[str]) -> pa.Table:
    """Return the chosen columns of a log (each once) as an Arrow table; text files hold texts only."""
    if log.format == "stream":
        return pa.Table.from_batches(batches(log, columns), kinds_of(log, columns))
    if log.parts:
        check_types(log, columns)
        return _stacked([_of_part(log, part, columns) for part in log.parts])
    if any(column in log.inner for column in columns):
        return _with_inner(log, columns)
    if log.table is not None and isinstance(log.table, pa.Table):
        return log.table.select(list(columns))
    if log.format in ("csv", "tsv", "json"):
        rows = (delimited_rows if log.format != "json" else json_rows)(log, columns)
        parts = []
        while block := list(itertools.islice(rows, MANY)):
            values = zip(*(row for _, row in block), strict=True)
            parts.append(pa.table([pa.array(column, pa.large_string()) for column in values], names=list(columns)))
        empty = pa.schema([(column, pa.large_string()) for column in columns]).empty_table()
        return pa.concat_tables(parts) if parts else empty
    try:
        if log.format == "parquet":
            with parquet_file(log.path) as file:
                found = file.read(columns=list(columns)).select(list(columns))
            found.validate(full=True)
            return _in_utc(found, log)
        schema = pa.schema([(column, log.types[log.columns.index(column)]) for column in columns])
        return pa.Table.from_batches(arrow_batches(log.path, columns), schema)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{log.name}: cannot be read as {log.format}: {first_line(error)}") from None


def kinds_of(log: Log, columns: Sequence[str]) -> pa.Schema:
    """Return the types that columns of a stream are handed over with: texts plain, for each batch has its own words."""
    kinds = dict(zip(log.columns, log.types, strict=True))
    plain = {name: kind.value_type if pa.types.is_dictionary(kind) else kind for name, kind in kinds.items()}
    return pa.schema([(name, pa.large_string() if is_text(plain[name]) else plain[name]) for name in columns])


def batches(log: Log, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the chosen columns of a stream batch by batch, as ``arrow_table`` has them. Errors: InputError."""
    check_types(log, columns)
    kinds = kinds_of(log, columns)
    for part in log.parts or (log,):
        folders = dict(part.folders)
        own = [column for column in columns if column in part.columns and column not in folders] or part.columns[:1]
        asked = list(dict.fromkeys(part.inner.get(column, (column,))[0] for column in own))
        for batch in part.table.batches(asked):
            try:
                batch.validate(full=True)
                whole = _in_utc(pa.Table.from_batches([batch]).select(asked), part)
                here = replace(part, format="table", table=whole)
                found = _of_part(log, here, columns) if log.parts else arrow_table(here, columns)
                yield from found.select(list(columns)).cast(kinds).to_batches()
            except pa.ArrowException as error:
                raise InputError(f"{part.name}: cannot be read: {first_line(error)}") from None


def _of_part(log: Log, part: Log, columns: Sequence[str]) -> pa.Table:
    own = [column for column in columns if column in part.columns and column not in dict(part.folders)]
    table = arrow_table(part, own or part.columns[:1])
    if len(own) == len(columns) and part.types == log.types:
        return table
    try:
        return filled(log, part, columns, table)
    except pa.ArrowException as error:
        raise InputError(f"{part.name}: {first_line(error)}") from None


def _with_inner(log: Log, columns: Sequence[str]) -> pa.Table:
    """Return columns of a log of which some lie in others."""
    if log.as_json:
        rows = [row for _, row in json_rows(log, columns)]
        values = zip(*rows, strict=True) if rows else ((),) * len(columns)
        return pa.table([pa.array(column, pa.large_string()) for column in values], names=list(columns))
    whole = arrow_table(log, list(dict.fromkeys(log.inner.get(column, (column,))[0] for column in columns)))
    found = {}
    for column in columns:
        way = log.inner.get(column, (column,))
        found[column] = pc.struct_field(whole[way[0]], list(way[1:])) if way[1:] else whole[column]
    return pa.table(found)


def _in_utc(table: pa.Table, log: Log) -> pa.Table:
    """Return a table of a Parquet file with its instants of 96 bits in UTC."""
    kinds = dict(zip(log.columns, log.types, strict=False))
    for place, field in enumerate(table.schema):
        kind = kinds.get(field.name)
        if kind is not None and pa.types.is_timestamp(kind) and kind.tz and field.type != kind:
            values = table[place].cast(pa.timestamp("us"), safe=False) if field.type.tz is None else table[place]
            table = table.set_column(place, field.name, values.cast(kind))
    return table


def _stacked(tables: Sequence[pa.Table]) -> pa.Table:
    """Join the tables of files whose columns agree; types that differ become the widest of their kind."""
    for place, name in enumerate(tables[0].column_names):
        kinds = {table.schema.types[place] for table in tables}
        if len(kinds) > 1:
            values = {kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds}
            wide = pa.large_string() if any(map(is_text, values)) else pa.int64() if len(values) > 1 else values.pop()
            tables = [table.set_column(place, name, table[place].cast(wide)) for table in tables]
    return pa.concat_tables(tables)


def first_line(error: BaseException) -> str:
    """Return the first line of a foreign message, without its class prefix."""
    return str(error).strip().split("\n")[0][:200] or type(error).__name__


def count_rows(table: pa.Table, roles: Mapping[str, str]) -> tuple[dict[str, pa.Array], NDArray[np.integer]]:
    """Count equal rows: the values of each role and the number of rows of each tuple.

    Each column is coded on its own, the codes are packed into one integer a row, and a table of these is counted.
    Where so many tuples are possible that hardly any two rows are equal, every row comes out with a count of 1: the
    builder of Preferences has to sort them anyway.
    """
    names = list(dict.fromkeys(roles.values()))
    table = _with_labels(table, names)
    columns = [table[name] for name in names]
    for role, name in roles.items():
        if pa.types.is_nested(table[name].type):
            raise InputError(f"the column of {role} holds {table[name].type}, labels are texts or integers")
    codes = in_threads(coded, columns, 2 if len(table) > MANY else 1)
    span = math.prod(len(values) + 1 for _, values in codes)
    if len(table) == 0 or span > max(4 * len(table), 1 << 16):
        found = {name: decoded(values, code) for name, (code, values) in zip(names, codes, strict=True)}
        return {role: found[column] for role, column in roles.items()}, np.ones(len(table), np.int32)
    key, span = packed(codes)
    seen = np.bincount(key, minlength=span)
    distinct = np.flatnonzero(seen)
    found = dict(zip(names, unpacked(distinct, codes), strict=True))
    return {role: found[column] for role, column in roles.items()}, seen[distinct]


def _with_labels(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Put labels in the place of columns that hold messages."""
    for name in dict.fromkeys(names):
        if is_messages(table[name].type):
            table = table.set_column(table.column_names.index(name), name, labelled(table[name]))
    return table


def count_lists(table: pa.Table, keys: Mapping[str, str], entries: Mapping[str, str]) -> RawLists:
    """Bring together the rows of each list; equal lists are counted later."""
    table = _with_labels(table, [*keys.values(), *entries.values()])
    columns = {role: table[column] for role, column in (*keys.items(), *entries.items())}
    return gather(columns, list(keys), list(entries))[0]

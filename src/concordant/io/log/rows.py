"""The rows of a text file one by one, with their line numbers: the plain reader, and the one that finds a bad line.

Where refused rows stand: a second pass over a log that looks for given raw values and stops when it has samples.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from concordant.errors import InputError, few, twice
from concordant.io.log.formats import Empty, Log, opened
from concordant.io.log.json_values import json_value
from concordant.io.log.marks import MARKS, separated
from concordant.preferences.values import Reason

csv.field_size_limit(1 << 30)
SURROGATE = re.compile("[\ud800-\udfff]")
Row = tuple[str | None, ...]
SMALL = 1 << 12
"""Bytes of a file that may be a header alone."""
WIDEST = 256
"""Values inside an object that are columns; one with more is a table of its own."""
BLANK = " \t"
"""What is left out around fields that are read trimmed."""


def with_columns(log: Log) -> Log:
    """Return the log with the names of its columns, for CSV, TSV and JSON.

    Errors: an empty file, a header without rows, a name twice.
    """
    if log.format == "json":
        return _json_columns(log)
    first = next(_records(log), None)
    if first is None:
        raise Empty(f"{log.name}: the file is empty")
    line, named, trimmed = first[0], tuple(first[1]), _spaced_throughout(log)
    if trimmed:
        named = tuple([name.strip(BLANK) for name in named])
    if again := [name for name in twice(named) if name]:
        raise InputError(f"{log.name}: the header (line {line}) names {few(again)} more than once")
    if any("\0" in name for name in named):
        raise InputError(
            f"{log.name}: the header (line {line}) holds a null byte; is this a text file, and not in UTF-16?"
        )
    rows = _none(log) if log.file else None
    return replace(log, columns=named, header=line, trimmed=trimmed, rows=rows)


def _none(log: Log) -> int | None:
    """Return 0 of a small file that has a header alone."""
    if log.path is None or log.path.stat().st_size > SMALL:
        return None
    return 0 if len(list(itertools.islice(_records(log), 2))) < 2 else None


def _spaced_throughout(log: Log) -> bool:
    """Whether every field after the first of every row begins with a space, or is empty.

    It is told at the header, but where that looks so.
    """
    header = next(_records(log, spaces=True))[1]
    if len(header) < 2 or not all(name.startswith(" ") for name in header[1:]):
        return False
    return all(not field or field.startswith(" ") for _, fields in _records(log, spaces=True) for field in fields[1:])


def _records(log: Log, *, spaces: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the line where each record begins and its fields; blank lines are skipped.

    With ``spaces`` a space before an opening quote is kept.
    """
    done = 0
    with opened(log) as text:
        reader = csv.reader(_unspaced(text, log.delimiter), delimiter=log.delimiter, strict=True)
        begin = 1
        try:
            for fields in reader:
                if fields:
                    done += 1
                    yield begin, fields
                begin = reader.line_num + 1
            return
        except csv.Error:
            pass
    yield from itertools.islice(
        _lenient_records(log, spaces), done, None
    )  # answers, or names the line and what is wrong


def _unspaced(text: Iterable[str], delimiter: str) -> Iterator[str]:
    """Yield lines until one seems to hold a space before an opening quote, which only the lenient reader knows."""
    spaced = re.compile(f'(?:^|{delimiter}) "')
    for line in text:
        if ' "' in line and spaced.search(line):
            raise csv.Error
        yield line


def _lenient_records(log: Log, spaces: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield what ``_records`` does, character by character.

    As DuckDB has it, one space may stand before an opening quote, and spaces after a closing one.
    """
    with opened(log) as stream:
        text = stream.read()
    at, line, size = 0, 1, len(text)
    while at < size:
        begin, fields = line, []
        while True:
            space = " " if spaces and text.startswith(' "', at) else ""
            field, at, line = _field(log, text, at, line, begin)
            field = space + field
            fields.append(field)
            if at >= size or text[at] != log.delimiter:
                break
            at += 1
        if at < size:
            at += 2 if text.startswith("\r\n", at) else 1
            line += 1
        if fields != [""]:
            yield begin, fields


def _field(log: Log, text: str, at: int, line: int, begin: int) -> tuple[str, int, int]:
    """Return a field, where it ends and the line there."""
    ends = re.compile(f"[\r\n{log.delimiter}]|$(?!\n)")
    at += text.startswith(' "', at)
    if not text.startswith('"', at):
        match = ends.search(text, at)
        end = match.start() if match else len(text)
        return text[at:end], end, line
    parts = []
    while True:
        close = text.find('"', at + 1)
        if close < 0:
            raise InputError(f"{log.name}: line {begin:,} opens a quote that is never closed")
        parts.append(text[at + 1 : close])
        at = close + 1
        if not text.startswith('"', at):
            break
        parts.append('"')
    field = "".join(parts)
    while text.startswith(" ", at):
        at += 1
    if at < len(text) and text[at] not in ("\r", "\n", log.delimiter):
        hint = separated([text[at]]) if text[at] in MARKS else ""
        raise InputError(f"{log.name}: line {begin:,} has text after a closing quote: {text[at : at + 20]!r}{hint}")
    return field, at, line + len(re.findall("\r\n|\r|\n", field))


def delimited_rows(log: Log, columns: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """Yield line and chosen fields of every row of a CSV or TSV file; an empty field is missing (None).

    Errors: a row with fewer fields than the header, or with more that are not empty (DuckDB lets empty ones be, too).
    """
    at = {column: place for place, column in reversed(list(enumerate(log.columns)))}  # the first of empty names
    places = [at[column] for column in columns]
    records = _records(log)
    next(records, None)
    width = len(log.columns)
    for line, fields in records:
        if len(fields) < width or any(fields[width:]):
            why = f"line {line:,} has {len(fields):,} fields, the header has {width:,}{separated(log.columns)}"
            raise InputError(f"{log.name}: {why}")
        if log.trimmed:
            fields = [field.strip(BLANK) for field in fields]
        yield line, tuple([fields[place] or None for place in places])


# -- JSON ----------------------------------------------------------------------------------------------------------
def _json_columns(log: Log) -> Log:
    names: dict[str, Any] = {}
    log = replace(log, array=is_array(log))
    empty = True
    try:
        for _, record in json_records(log):
            empty = False
            _gather(names, record)
    except InputError:
        if empty and not log.array:
            _refuse_document(log)
        raise
    if empty:
        raise Empty(f"{log.name}: the file holds no rows")
    return with_keys(log, names)


def _gather(names: dict[str, Any], record: dict[str, Any]) -> None:
    """Add the keys of an object, and those of objects in it, to what is known."""
    for key, value in record.items():
        known = names.setdefault(key, {})
        if value and isinstance(value, dict) and len(known) <= WIDEST:
            _gather(known, value)


def with_keys(log: Log, names: Mapping[str, Any]) -> Log:
    """Return a JSON log with its columns: keys, and by names with dots between keys of objects under them."""
    inner = {name: way for name, way in _ways(names) if name not in names}
    return replace(log, columns=(*names, *inner), inner=inner)


def _ways(names: Mapping[str, Any], way: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    for key, under in names.items():
        here = (*way, key)
        if way:
            yield ".".join(here), here
        if isinstance(under, Mapping) and 0 < len(under) <= WIDEST:
            yield from _ways(under, here)


def _refuse_document(log: Log) -> None:
    """Refuse a file that is one JSON object over several lines, with the arrays of objects that lie in it."""
    try:
        with opened(log) as text:
            whole = json_value(text.read(), log.name, constants=True)
    except InputError:
        return
    if isinstance(whole, dict):
        inside = {name: one for name, one in whole.items() if isinstance(one, dict)}
        deep = {f"{name}.{key}": value for name, one in inside.items() for key, value in one.items()}
        held = [
            name for name, one in (whole | deep).items() if isinstance(one, list) and one and isinstance(one[0], dict)
        ]
        arrays = f"; arrays of objects in it, which may be one: {few(held)}" if held else ""
        raise InputError(
            f"{log.name} is one JSON object ({few(whole, 8)}); a log is an object on each line, or an array of objects"
            + arrays
        ) from None


def is_array(log: Log) -> bool:
    """Whether a JSON file begins as one array (else it holds one object a line)."""
    with opened(log) as text:
        for line in text:
            if line.strip():
                return line.lstrip().startswith("[")
    raise Empty(f"{log.name}: the file is empty")


def json_records(log: Log) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line (or the place in the array) and the object of every row."""
    if log.array:
        with opened(log) as text:
            values = json_value(text.read(), f"{log.name}: the file")
        for place, value in enumerate(values, 1):
            yield place, _object(value, f"{log.name}: row {place:,}")
        return
    with opened(log) as text:
        for number, line in enumerate(_lines(text), 1):
            record = json_object(line, f"{log.name}: line {number:,}")
            if record is not None:
                yield number, record


def _lines(text: Any) -> Iterator[str]:
    """Yield lines that end in a newline (and nowhere else: a JSON text may hold other line separators)."""
    rest = ""
    while block := text.read(1 << 20):
        *whole, rest = (rest + block).split("\n")
        yield from whole
    if rest:
        yield rest


def _object(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{where} is not a JSON object but {type(value).__name__}")
    return value


def json_rows(log: Log, columns: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """Yield line and the JSON text of the chosen values of every row; null and absent are missing (None)."""
    for line, record in json_records(log):
        yield line, _json_texts(record, columns, f"{log.name}: {log.place} {line:,}", log.inner)


def json_object(line: str, where: str) -> dict[str, Any] | None:
    """Return the object of a line of JSON Lines, None of a blank line; ``where`` begins the message of an error."""
    return _object(json_value(line, where), where) if line.strip(" \t\r\n") else None


def json_row(line: str, columns: Sequence[str], where: str, inner: Mapping[str, tuple[str, ...]] = {}) -> Row | None:
    """Return the JSON texts of the chosen values of a line of JSON Lines, None of a blank line."""
    record = json_object(line, where)
    return None if record is None else _json_texts(record, columns, where, inner)


def _json_texts(
    record: dict[str, Any], columns: Sequence[str], where: str, inner: Mapping[str, tuple[str, ...]]
) -> Row:
    values = [_at(record, inner[column]) if column in inner else record.get(column) for column in columns]
    row = tuple([None if value is None else json.dumps(value, ensure_ascii=False) for value in values])
    if any(value is not None and not value.isascii() and SURROGATE.search(value) for value in row):
        raise InputError(f"{where} holds a text with invalid encoding (a lone surrogate)")
    return row


def _at(record: Any, way: Sequence[str]) -> Any:
    for key in way:
        record = record.get(key) if isinstance(record, dict) else None
    return record


SAMPLES = 3
MOST_SOUGHT = 100_000


@dataclass
class Sought:
    """Raw values that a refused row has: for some roles, the tuples of values and the reason each stands for."""

    roles: tuple[str, ...]
    reasons: dict[tuple[str, ...], Reason] = field(default_factory=dict)

    def add(self, values: Iterable[Any], reason: Reason, *, as_json: bool) -> None:
        """Seek a tuple of values, one for each of the roles."""
        self.reasons.setdefault(tuple([_written(value, as_json) for value in values]), reason)


def _written(value: Any, as_json: bool) -> str:
    """Return one text for values that are the same, however an engine writes them."""
    return repr(json.loads(value) if as_json and isinstance(value, str) else value)


def find(
    rows: Iterable[tuple[int | str, Sequence[Any]]],
    roles: Mapping[str, str],
    columns: Sequence[str],
    sought: Sequence[Sought],
    *,
    place: str,
    as_json: bool,
) -> dict[Reason, tuple[tuple[str, object], ...]]:
    """Return the first few places, with the value to blame, of each reason.

    ``rows`` yields the number of each row, or its place in words, and its values of ``columns``; ``roles`` maps roles
    to columns.
    """
    at = {role: columns.index(column) for role, column in roles.items()}
    found: dict[Reason, list[tuple[str, object]]] = {}
    open_reasons = {reason for each in sought for reason in each.reasons.values()}
    for number, values in rows:
        for each in sought:
            reason = each.reasons.get(tuple([_written(values[at[role]], as_json) for role in each.roles]))
            if reason is None or reason not in open_reasons:
                continue
            value = values[at[reason.role]] if reason.role in at else None
            shown = json.loads(value) if as_json and isinstance(value, str) else value
            samples = found.setdefault(reason, [])
            samples.append((number if isinstance(number, str) else f"{place} {number:,}", shown))
            if len(samples) == SAMPLES:
                open_reasons.discard(reason)
        if not open_reasons:
            break
    return {reason: tuple(samples) for reason, samples in found.items()}

"""Files of one log whose columns come, go or change: their union by name, and which of them are read in one go."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from concordant.errors import InputError, few, shown
from concordant.io.log.formats import Empty, Log, no_rows
from concordant.io.log.runs import fused
from concordant.preferences.layouts import ALIASES, plain
from concordant.preferences.notes import Note
from concordant.preferences.values import is_text

JOINED = "joined types"
"""The code of the note that says that a column is of another type in other files."""
MOST = 4
"""Notes on columns that are missing in some files."""
TEXT = ("csv", "tsv", "json")
Kinds = Mapping[str, Any]


def joined(log: Log, read: Callable[[Log], Log]) -> Log:
    """Return the log of several files with its columns, given what reads those of one file.

    Its columns are those of all files, by their names; where a file lacks one it is missing. Files without rows are
    left out. Integers of any width up to int64 are one type, so are texts, and a dictionary is of the type of its
    values; what else differs becomes a type that holds all values as they are, texts at last, or clashes.

    Errors: all files are empty; files that are read as several formats.
    """
    parts: list[Log] = []
    bare: list[str] = []
    for part in log.parts:
        try:
            found = replace(read(part), file=part.file, folders=part.folders)
        except Empty:
            bare.append(part.file)
            continue
        parts.append(found)
        bare += [part.file] if found.rows == 0 else []
    if not parts:
        raise Empty(f"{log.name}: all files in it are empty ({len(log.parts):,})")
    for part in parts[1:]:
        if part.format != parts[0].format:
            raise InputError(
                f"{log.name}: {part.file} is read as {part.format} and {parts[0].file} as {parts[0].format}"
            )
    parts = [part for part in parts if part.rows != 0] or parts  # what has no rows says nothing of types
    trimmed = all(part.trimmed for part in parts)
    parts = [replace(part, trimmed=trimmed) for part in parts]
    told = [*log.told, *([no_rows(log.name, bare, len(log.parts))] if bare else [])]
    whole = replace(
        parts[0], name=log.name, header=max(part.header for part in parts), table=None, lines=None, rows=None,
        parts=tuple(parts), file="", folders=(), told=tuple(told), gzipped=any(part.gzipped for part in parts),
    )  # fmt: skip
    return fused(whole, parts) if whole.format == "run" else _together(whole)


def _together(log: Log) -> Log:
    """Return the log with the columns of its files, their types, and what is said of these."""
    in_files = [column for part in log.parts for column in part.columns]
    folders = dict.fromkeys(name for part in log.parts for name, _ in part.folders)
    columns = tuple(dict.fromkeys((*in_files, *folders)))
    told = [*log.told, *_said_of_folders(log, folders, {*in_files}), *_said_of_lacking(log, columns)]
    inner = {name: way for part in log.parts for name, way in part.inner.items()}
    if not any(part.types for part in log.parts):
        return replace(log, columns=columns, inner=inner, told=tuple(told))
    types, clashes = [], {}
    for column in columns:
        kinds = _kinds(log, column)
        found = pa.large_string() if column in folders else _common(list(kinds))
        if found is None:
            there = "; ".join(f"{kind} in {few(files, 2)}" for kind, files in kinds.items())
            clashes[column] = f"the column {shown(column)} changes its type from file to file: {there}"
            found = pa.null()
        elif len({_alike(kind) for kind in kinds if not pa.types.is_null(kind)}) > 1:
            there = "; ".join(f"{kind} in {few(files, 2)}" for kind, files in kinds.items())
            text = "{log}: the column {column!r} changes its type from file to file and is read as {kind}: {there}"
            kind = "texts, as they are written" if is_text(found) else str(found)
            told.append(Note(JOINED, text, log=log.name, column=column, kind=kind, there=there))
        types.append(found)
    return replace(log, columns=columns, types=tuple(types), inner=inner, clashes=clashes, told=tuple(told))


def _kinds(log: Log, column: str) -> dict[Any, list[str]]:
    """Return the types of a column in files, each with the files."""
    found: dict[Any, list[str]] = {}
    for part in log.parts:
        if column in part.columns and part.types:
            found.setdefault(part.types[part.columns.index(column)], []).append(part.file)
    return found


def _alike(kind: pa.DataType) -> str:
    """Return one word for types that hold the same values: integers up to int64, texts, dictionaries of them."""
    if pa.types.is_dictionary(kind):
        return _alike(kind.value_type)
    if is_text(kind):
        return "text"
    return "integer" if pa.types.is_integer(kind) and kind != pa.uint64() else str(kind)


def _common(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return a type that holds the values of all of some types as they are; None where there is none."""
    plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
    some = list(dict.fromkeys(kind for kind in plain if not pa.types.is_null(kind)))
    if len(some) < 2:
        return some[0] if some else pa.null()
    if len({_alike(kind) for kind in some}) == 1:
        return pa.large_string() if is_text(some[0]) else pa.int64()
    integers = [kind for kind in some if pa.types.is_integer(kind)]
    floats = [kind for kind in some if pa.types.is_floating(kind)]
    decimals = [kind for kind in some if pa.types.is_decimal(kind)]
    instants = [kind for kind in some if pa.types.is_timestamp(kind)]
    if len(instants) == len(some) and len({kind.tz is None for kind in some}) == 1:
        return pa.timestamp("us", None if some[0].tz is None else "UTC")
    if floats and len(integers) + len(floats) + len(decimals) == len(some):
        return pa.float64()
    if decimals and len(integers) + len(decimals) == len(some):
        scale = max(kind.scale for kind in decimals)
        whole = max([kind.precision - kind.scale for kind in decimals] + [20 if integers else 0])
        return pa.decimal128(whole + scale, scale) if whole + scale <= 38 else None
    texts = [kind for kind in some if is_text(kind)]
    dates = [kind for kind in some if pa.types.is_date32(kind)]
    return pa.large_string() if texts and len(texts) + len(integers) + len(dates) == len(some) else None


def _said_of_folders(log: Log, folders: Iterable[str], in_files: set[str]) -> list[Note]:
    both = [name for name in folders if name in in_files]
    text = "{log}: {names} {columns:stands|stand} in the files and in the names of folders, which are read"
    return [Note("folder columns", text, log=log.name, columns=len(both), names=few(both))] if both else []


def _said_of_lacking(log: Log, columns: Sequence[str]) -> list[Note]:
    """Say which columns are missing in which files."""
    files: dict[tuple[str, ...], list[str]] = {}
    there = [({*part.columns, *dict(part.folders)}, part.file) for part in log.parts]
    for column in columns:
        lacking = tuple([file for names, file in there if column not in names])
        whole = ".".join(column.split(".")[:-1])
        if lacking and whole not in files.get(lacking, ()):
            files.setdefault(lacking, []).append(column)
    text = "{log}: {names} {columns:is|are} not in {lacks:,} of {of:files} ({some}), and missing there"
    return [
        Note("missing columns", text, log=log.name, columns=len(names), names=few(names, 4), lacks=len(lacking),
             of=len(there), some=few(lacking, 2))
        for lacking, names in sorted(files.items(), key=lambda pair: (-len(pair[0]), pair[1]))[:MOST]
    ]  # fmt: skip


OF_ROLES = frozenset(name for role, names in ALIASES.items() if role != "query" for name in names)


def named_columns(log: Log, named: Iterable[Any]) -> list[str]:
    """Return the columns of a log among which roles are looked for.

    A column in the names of folders plays a role where it is ``named``, or is the query: a folder called weight=3 says
    something of a run, hardly of each vote.
    """
    folders = {name for part in log.parts for name, _ in part.folders}
    folders -= {name for one in named for name in (one if isinstance(one, list | tuple) else [one])}
    of_files = {column for part in log.parts for column in part.columns}
    return [name for name in log.columns if name not in folders - of_files or plain(name) not in OF_ROLES]


# -- what is read in one go ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Shape:
    """Files of a log that have the same columns, and where these find the columns that are asked for."""

    log: Log
    """The files alone, with their own columns."""
    whole: Log
    """The log that they are of."""

    def of_folder(self, column: str) -> bool:
        """Whether a column stands in the names of folders."""
        return any(column == name for name, _ in self.log.parts[0].folders) if self.log.parts else False

    def own(self, columns: Iterable[str]) -> list[str]:
        """Return those of some columns that the files have themselves."""
        return [column for column in columns if column in self.log.columns and not self.of_folder(column)]

    def target(self, column: str) -> pa.DataType | None:
        """Return the type of a column in the log; None where all values are texts."""
        return dict(zip(self.whole.columns, self.whole.types, strict=False)).get(column)

    def cast(self, column: str) -> pa.DataType | None:
        """Return the type that values of a column become in the log; None where they are of it."""
        target, own = self.target(column), dict(zip(self.log.columns, self.log.types, strict=False)).get(column)
        return None if target is None or own is None or _alike(own) == _alike(target) else target

    def values(self, columns: Sequence[str]) -> pa.Table:
        """Return the values of columns in the names of folders: a row for each file, with its ``path``."""
        folders = [dict(part.folders) for part in self.log.parts]
        found = {
            f"k{place}": [_written(one[column], self.log) for one in folders] for place, column in enumerate(columns)
        }
        names = {name: pa.array(values, pa.string()) for name, values in found.items()}
        return pa.table({"path": pa.array([str(path.absolute()) for path in self.log.paths], pa.string()), **names})


def of_folders(part: Log, columns: Iterable[str]) -> dict[str, str | None]:
    """Return the values that columns have by the folders of a file, as the values of files are handed over."""
    return {name: _written(value, part) for name, value in part.folders if name in {*columns}}


def _written(value: str | None, log: Log) -> str | None:
    return json.dumps(value, ensure_ascii=False) if log.as_json and value is not None else value


def shapes(log: Log, columns: Sequence[str], *, exact: bool = False) -> list[Shape]:
    """Return the files of a log as groups that are read in one go; ``exact`` keeps integers of several widths apart.

    Errors (InputError): a column that is asked for and whose types do not go together.
    """
    check_types(log, columns)
    if not log.parts:
        return [Shape(log, log)]
    found: dict[Any, list[Log]] = {}
    for part in log.parts:
        kinds = tuple([str(kind) if exact else _alike(kind) for kind in part.types])
        names, one = tuple([name for name, _ in part.folders]), log if log.as_json else part  # any key may be absent
        found.setdefault((part.gzipped, part.array, one.columns, kinds, names), []).append(part)
    made = []
    for some in found.values():
        first, one = some[0], log if log.as_json else some[0]
        alone = replace(log, columns=one.columns, types=one.types, inner=one.inner, parts=tuple(some), clashes={})
        made.append(Shape(replace(alone, path=first.path, gzipped=first.gzipped, array=first.array), log))
    return made


def check_types(log: Log, columns: Sequence[str]) -> None:
    """Refuse columns that are asked for and whose types do not go together. Errors: InputError."""
    if said := next((log.clashes[column] for column in columns if column in log.clashes), ""):
        raise InputError(f"{log.name}: {said}; write them as one type")


def is_even(log: Log, columns: Sequence[str]) -> bool:
    """Whether the columns are read off the files of a log as they are, all files in one go."""
    groups = shapes(log, columns)
    if len(groups) > 1 or any(column in log.inner for column in columns):
        return False
    return len(groups[0].own(columns)) == len(columns) and all(groups[0].cast(column) is None for column in columns)


def filled(log: Log, part: Log, columns: Sequence[str], table: pa.Table) -> pa.Table:
    """Return columns of one file of a log, given those that it has itself: of the types of the log, missing ones null.

    Errors: those of Arrow, of values that do not fit.
    """
    shape, folders = Shape(replace(part, parts=(part,)), log), dict(part.folders)
    types = dict(zip(log.columns, log.types, strict=False))
    found: dict[str, Any] = {}
    for column in columns:
        if column in folders:
            value = _written(folders[column], part)
            found[column] = pa.repeat(pa.scalar(value, pa.large_string()), len(table))
        elif column not in table.column_names:
            found[column] = pa.nulls(len(table), types.get(column, pa.large_string()))
        else:
            kind, values = shape.cast(column), table[column]
            if kind is not None and pa.types.is_dictionary(values.type):
                values = values.cast(values.type.value_type)
            found[column] = values if kind is None else values.cast(kind, safe=not pa.types.is_floating(kind))
    return pa.table(found)

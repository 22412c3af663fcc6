"""Read features, and the relevance labels beside them, from tables and from LETOR and SVMLight files."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from concordant.errors import InputError, Setting, UsageError, did_you_mean, few
from concordant.io.engines.memory import arrow_table
from concordant.io.log.formats import Log, locate, opened
from concordant.io.log.headers import with_header
from concordant.io.log.letor import read_letor
from concordant.io.log.tables import from_object
from concordant.learning.features.categories import coded
from concordant.learning.features.matrix import Features
from concordant.preferences.layouts import ALIASES, plain
from concordant.preferences.values import CLEAN, INFINITE, INFINITIES, MISSING, labels, numbers
from concordant.progress import steps
from concordant.record import telling

LINES = 4096
"""Lines that are parsed at a time."""
WIDEST = 10_000_000
"""Largest index of a feature: more is a mistake in the file, not features."""
FILLED, CELLS = 100, 1 << 28
"""A matrix of more cells than the latter, of which less than one in the former is given, is sparse."""
NULL = "NULL"
"""A value that LETOR's files say is missing: 12:NULL."""
Floats = NDArray[np.float64]


def letor_columns(log: Log, width: int | None = None) -> tuple[Any, Any, Any, Floats]:
    """Return X of shape (lines, features), the items and queries of the lines (Arrow) and their labels.

    X is a ``csr_array`` where it is large and nearly all 0.

    Items and queries are named as ``read`` names them, so preferences read from the same file match. An index that a
    line leaves out is 0, NULL is NaN; indices count from 1. ``width`` is the number of features (None: largest index).

    Errors with the line: no qid, a query that comes back after another, a label that is not a number, an index below
    1, above ``width`` or twice in a line, a pair that is not index:number.
    """
    log = read_letor(log) if log.table is None else log
    query = log.table["query"]
    _refuse_scattered(log, query)
    relevance = numbers(log.table["rating"])
    if relevance.fault is not None:
        row = int(np.flatnonzero(relevance.fault)[0])
        raise InputError(f"{_line(log, row)}: the label {log.table['rating'][row].as_py()!r} is not a finite number")
    parts = []
    begin = 0
    with opened(log) as text:
        bodies = _bodies(text)
        while block := list(islice(bodies, LINES)):
            parts.append(_pairs(log, block, begin, width))
            begin += len(block)
    widest = max((int(index.max(initial=0)) for _, index, _ in parts), default=0)
    cells, given = begin * (widest if width is None else width), sum(len(index) for _, index, _ in parts)
    shape = (begin, widest if width is None else width)
    if cells > max(CELLS, FILLED * given):
        at, place, number = (np.concatenate(each) for each in zip(*parts, strict=True))
        return csr_array((number, (at, place - 1)), shape), log.table["item"], query, relevance.values
    X = np.zeros(shape)
    for rows, index, value in parts:
        X[rows, index - 1] = value
    return X, log.table["item"], query, relevance.values


def _bodies(text: Iterator[str]) -> Iterator[str]:
    """Yield what stands between the qid and the comment of each line."""
    for line in text:
        parts = line.partition("#")[0].split(None, 2)
        if parts:
            yield parts[2] if len(parts) == 3 else ""


def _line(log: Log, row: int) -> str:
    assert log.lines is not None
    return f"{log.name}: line {int(log.lines[row]):,}"


def _refuse_scattered(log: Log, query: Any) -> None:
    codes = query.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    begins = np.flatnonzero(np.diff(codes, prepend=-1))
    _, first = np.unique(codes[begins], return_index=True)
    again = np.setdiff1d(np.arange(len(begins)), first)
    if len(again):
        row = int(begins[again[0]])
        raise InputError(
            f"{_line(log, row)}: qid:{query[row].as_py()} comes back after other queries; the lines of a query stand "
            "together (sort the file by qid)"
        )


def _pairs(
    log: Log, block: list[str], begin: int, width: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return (row, index, value) of all pairs of a block of lines."""
    times = np.fromiter((body.count(":") for body in block), np.int64, len(block))
    text = "\n".join(block).translate(_SPACES)
    if not times.any() and not text.strip():
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    try:
        table = pa.csv.read_csv(
            io.BytesIO(text.encode()),
            read_options=pa.csv.ReadOptions(column_names=["index", "value"], block_size=1 << 30, use_threads=False),
            parse_options=pa.csv.ParseOptions(delimiter=":", quote_char=False),
            convert_options=pa.csv.ConvertOptions(
                column_types={"index": pa.int64(), "value": pa.float64()}, null_values=[NULL]
            ),
        )
    except pa.ArrowInvalid:
        raise InputError(_first_wrong_pair(log, block, begin)) from None
    if table["index"].null_count:
        raise InputError(_first_wrong_pair(log, block, begin))
    index = table["index"].to_numpy()
    row = np.repeat(np.arange(begin, begin + len(block)), times)
    most = WIDEST if width is None else width
    wrong = np.flatnonzero((index < 1) | (index > most))
    if len(wrong):
        said = f"features are numbered from 1 to {most:,}"
        raise InputError(f"{_line(log, int(row[wrong[0]]))}: there is no feature {index[wrong[0]]}; {said}")
    same = row[1:] == row[:-1]
    if (same & (np.diff(index) <= 0)).any():  # not ascending: allowed, but not twice
        sorter = np.lexsort((index, row))
        twice = np.flatnonzero((np.diff(index[sorter]) == 0) & (np.diff(row[sorter]) == 0))
        if len(twice):
            at = sorter[twice[0]]
            raise InputError(f"{_line(log, int(row[at]))}: the feature {index[at]} is there twice")
    return row, index, table["value"].to_numpy()


_SPACES = str.maketrans(" \t\r\v\f", "\n\n\n\n\n")


def _first_wrong_pair(log: Log, block: list[str], begin: int) -> str:
    for place, body in enumerate(block):
        for token in body.split():
            index, colon, value = token.partition(":")
            try:
                fine = bool(colon) and int(index) is not None and (value == NULL or float(value) is not None)
            except ValueError:
                fine = False
            if not fine or "_" in token:
                return f"{_line(log, begin + place)}: {token[:60]!r} is not of the form index:number"
    return f"{log.name}: lines {begin + 1:,} to {begin + len(block):,} hold a pair that is not of the form index:number"


INDEX = re.compile(r"__index_level_[0-9]+__")
"""What Arrow calls an index of pandas that has no name; it numbers rows, and is no feature."""
RELEVANCE = ("relevance", "rel", "label", "rating", "grade")


def read_features(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    names: Sequence[str] | None = None,
    missing: str = "raise",
    width: int | None = None,
    dtype: Any = np.float64,
) -> Features:
    """Read the features of items.

    Parameters
    ----------
    source : a LETOR/SVMLight file (.svm .svmlight .letor .dat, .txt; also .gz), a table with a column of items,
        optionally of queries, and columns of numbers or categories (dictionary-encoded: pandas' category, polars'
        Categorical) (.csv .tsv .jsonl .parquet .arrow …; Arrow, pandas, polars, a mapping of columns), or Features,
        which come back as they are.
    columns : which columns are item and query, where they do not have their usual names.
    names : columns of a table that are features; None, all others.
    missing : 'raise', or 'keep', which leaves missing values as NaN.
    width : number of features of a sparse file, which are named "1", "2", …; None, its largest index.
    dtype : float64 or float32.

    Errors: InputError that names file, line or row, and column; UsageError.

    >>> read_features({"item": ["x", "y"], "bm25": [1.5, 0.5], "length": [10, 20]}).names
    ('bm25', 'length')
    """
    if isinstance(source, Features):
        return source
    return _read(source, columns, names, missing, width, dtype, None)[0]


def read_judged(
    source: Any,
    *,
    label: str | None = None,
    columns: Mapping[str, str] | None = None,
    names: Sequence[str] | None = None,
    missing: str = "raise",
    width: int | None = None,
    dtype: Any = np.float64,
) -> tuple[Features, Floats]:
    """Read features as ``read_features`` does and, beside them, the relevance label of each row.

    Parameters
    ----------
    source, columns, names, missing, width, dtype : as in ``read_features``.
    label : name of the column of a table that holds the label (None: relevance, rel, label, rating or grade). A LETOR
        file's label is its first field.

    >>> features, relevance = read_judged({"item": ["x", "y"], "bm25": [1.5, 0.5], "relevance": [2, 0]})
    >>> features.names, relevance.tolist()
    (('bm25',), [2.0, 0.0])
    """
    features, relevance = _read(source, columns, names, missing, width, dtype, label or RELEVANCE)
    assert relevance is not None
    return features, relevance


@telling("features", lambda found: {"rows": len(found[0]), "columns": list(found[0].names)})
def _read(
    source: Any,
    columns: Mapping[str, str] | None,
    names: Sequence[str] | None,
    missing: str,
    width: int | None,
    dtype: Any,
    label: str | tuple[str, ...] | None,
) -> tuple[Features, Floats | None]:
    if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise UsageError(f"dtype must be float64 or float32, not {np.dtype(dtype)}")
    log = locate(source) if isinstance(source, str | os.PathLike) else from_object(source)
    if log.format in ("preflib", "qrels", "run", "database", "relation"):
        raise UsageError(f"{log.name}: features are read from LETOR files and tables, not from {log.format}")
    if log.parts and log.format in ("letor", "txt"):
        raise UsageError(f"{log.name}: a folder of features holds tables, not LETOR files; name one file")
    if log.path is not None and log.format == "txt":
        log = with_header(log)
    if log.format == "letor":
        if columns or names:
            raise UsageError(f"{log.name}: a LETOR file has no column names; its features are '1', '2', …")
        X, item, query, relevance = letor_columns(log, width)
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, which is refused
            X = X if issparse(X) else X.astype(dtype, copy=False)
        return replace(Features.of(X, item, query, missing=missing, name=log.name), letor=True), relevance
    if width is not None:
        raise UsageError(f"{log.name}: width is for LETOR files; a table has the columns that it has")
    return _from_table(with_header(log), columns or {}, names, missing, dtype, label)


def _from_table(
    log: Log,
    columns: Mapping[str, str],
    names: Sequence[str] | None,
    missing: str,
    dtype: Any,
    label: str | tuple[str, ...] | None,
) -> tuple[Features, Floats | None]:
    item, query, wanted, chosen = chosen_columns(log.name, log.columns, columns, names, label)
    keys = [column for column in (item, query, wanted) if column is not None]
    table = _table(log, [column for column in (item, query) if column is not None], [*keys, *chosen])
    if len(table) == 0:
        raise InputError(f"{log.name}: there are no rows")
    X = np.empty((len(table), len(chosen)), dtype)
    levels: dict[str, tuple[str, ...]] = {}
    for place, column in enumerate(steps("features", chosen)):
        if pa.types.is_dictionary(table[column].type):
            X[:, place], levels[column] = coded(table[column])
            continue
        with np.errstate(over="ignore"):
            X[:, place] = column_numbers(table[column], column, log)
    features = Features.of(
        X,
        column_labels(table[item], "item", log),
        None if query is None else column_labels(table[query], "query", log),
        chosen,
        missing=missing,
        name=log.name,
    )
    features = replace(features, levels=levels) if levels else features
    if wanted is None:
        return features, None
    relevance = column_numbers(table[wanted], wanted, log)
    if not np.isfinite(relevance).all():
        row = int(np.flatnonzero(~np.isfinite(relevance))[0])
        raise InputError(f"{log.name}: row {row + 1:,} has no finite number in the column {wanted!r} of labels")
    return features, relevance


def chosen_columns(
    name: str,
    known: Sequence[str],
    columns: Mapping[str, str],
    names: Sequence[str] | None,
    label: str | tuple[str, ...] | None = None,
) -> tuple[str, str | None, str | None, list[str]]:
    """Return which columns of a table hold items, queries (if any), labels (if asked for) and features.

    ``name`` is that of the table, ``known`` are its columns, ``columns`` and ``names`` as in ``read_features``.

    Errors (InputError): none or several columns of items, names that are not there, no column left for features.
    """
    unknown = [role for role in columns if role not in ("item", "query")]
    if unknown:
        raise UsageError(f"columns: unknown role {unknown[0]!r}; features have the roles item and query")
    item, query = (column_of(name, known, role, columns, ALIASES[role]) for role in ("item", "query"))
    if item is None:
        raise InputError(
            f"{name}: no column of items; {did_you_mean('item', known)} Say which with ",
            Setting("columns", key="item", of="features"),
        )
    wanted = label if label is None or isinstance(label, str) else column_of(name, known, "label", {}, label)
    if label is not None and (wanted is None or wanted not in known):
        raise InputError(f"{name}: no column of labels; {did_you_mean(str(wanted or label[0]), known)}")
    keys = [column for column in (item, query, wanted) if column is not None]
    if len(set(keys)) < len(keys):
        raise InputError(f"{name}: one column cannot be two of item, query and label: {few(keys)}")
    others = [column for column in known if column not in keys and not INDEX.fullmatch(column)]
    chosen = others if names is None else list(names)
    there = set(known)
    absent = [column for column in chosen if column not in there]
    if absent:
        raise InputError(f"{name}: no column {few(absent)}; {did_you_mean(absent[0], known)}")
    if both := [column for column in chosen if column in keys]:
        raise InputError(f"{name}: the column {both[0]!r} says which row it is (or its label); it is no feature")
    if not chosen:
        raise InputError(f"{name}: no column is left for features beside {few(keys)}")
    return item, query, wanted, chosen


def column_of(
    name: str, known: Sequence[str], role: str, given: Mapping[str, str], aliases: Sequence[str]
) -> str | None:
    """Return the column that is given for a role or has one of its usual names; None where there is none.

    Errors (InputError): one that is given and not there, several that could be it.
    """
    if role in given:
        if given[role] not in known:
            raise InputError(f"{name}: no column {given[role]!r}; {did_you_mean(given[role], known)}")
        return given[role]
    exact = [alias for alias in aliases if alias in known]
    found = exact or [column for column in known if plain(column) in aliases]
    if len(found) > 1:
        raise InputError(
            f"{name}: {few(found)} could each be the {role}; say which one with ",
            Setting("columns", key=role, of="features"),
        )
    return found[0] if found else None


def _table(log: Log, texts: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Return the columns; of a CSV file parsed by Arrow at once, unless it finds something to complain about."""
    if log.format in ("csv", "tsv") and not log.parts and not log.trimmed:
        kinds = {column: pa.large_string() if column in texts else pa.float64() for column in columns}
        try:
            return pa.csv.read_csv(
                str(Path(str(log.path))),
                parse_options=pa.csv.ParseOptions(delimiter=log.delimiter, newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(
                    column_types=kinds, include_columns=list(columns), null_values=[""], strings_can_be_null=True
                ),
            )
        except (pa.ArrowException, OSError):
            pass  # the reader of logs says what is wrong, and where
    return arrow_table(log, columns)


def column_labels(column: Any, role: str, log: Log, begin: int | None = None) -> Any:
    """Return a column of labels, none missing; ``begin`` is the row of the log that a part of a column begins with."""
    as_json = log.as_json
    try:
        read = labels(column, role, as_json=as_json)
    except InputError as error:
        raise InputError(f"{log.name}: {error}") from None
    if read.fault is not None:
        row = int(np.flatnonzero(read.fault)[0])
        number = int((read.fault != CLEAN).sum())
        first = row + 1 + (begin or 0)
        part = "" if begin is None else f" of rows {begin + 1:,} to {begin + len(read.fault):,}"
        raise InputError(f"{log.name}: {number:,} rows{part} have no valid {role} (the first is row {first:,})")
    return read.values


def column_numbers(column: Any, name: str, log: Log, begin: int = 0) -> Floats:
    """Return a column as float64 with NaN for missing values; infinities stay for the check of the matrix.

    ``begin`` is the row of the log that the column begins with.
    """
    if isinstance(column.type, pa.DataType) and pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_floating(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
    read = numbers(column, as_json=log.as_json)
    values = np.asarray(read.values, np.float64)
    if read.fault is None:
        return values
    values = values.copy()
    values[read.fault == MISSING] = np.nan
    for row in np.flatnonzero((read.fault != CLEAN) & (read.fault != MISSING)):
        raw = column[int(row)].as_py()
        infinite = in_letters(raw) if read.fault[row] == INFINITE else None
        if infinite is None:
            raise InputError(
                f"{log.name}: row {begin + int(row) + 1:,}, column {name!r}: {str(raw)[:60]!r} is not a finite number; "
                "choose the columns that are features with ",
                Setting("names"),
            )
        values[row] = infinite
    return values


def in_letters(raw: Any) -> float | None:
    """Return NaN or the infinity that a value is in letters; None where it is neither.

    >>> in_letters(" -Inf"), in_letters("1e999")
    (-inf, None)
    """
    word = str(raw).strip().strip('"').lower()
    return float(word) if word in INFINITIES else None

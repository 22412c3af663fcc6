"""LETOR and SVMLight files: ``rel qid:… k:v … # docid``, dense or sparse, as a matrix."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from concordant.errors import InputError
from concordant.log.formats import Log, opened
from concordant.log.judged import read_letor
from concordant.log.values import numbers

__all__ = ["letor_columns"]

LINES = 4096
"""Lines that are parsed at a time."""
WIDEST = 1_000_000
"""Largest index of a feature: more is a mistake in the file, not a matrix that fits into memory."""
FILLED, CELLS = 1000, 1 << 28
"""A matrix of more cells than the latter, of which less than one in the former is given, is refused."""
Floats = NDArray[np.float64]


def letor_columns(log: Log, width: int | None = None) -> tuple[Floats, Any, Any, Floats]:
    """Return X of shape (lines, features), the items and queries of the lines (Arrow) and their labels.

    Items and queries are named as ``read`` names them, so preferences read from the same file match. An index that a
    line leaves out is 0; indices count from 1. ``width`` is the number of features (default: the largest index).

    Errors with the line: no qid, a query that comes back after another, a label that is not a number, an index below
    1, above ``width`` or twice in a line, a pair that is not index:number.
    """
    log = read_letor(log) if log.table is None else log
    assert log.lines is not None
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
    if cells > max(CELLS, FILLED * given):
        raise InputError(
            f"{log.name}: {begin:,} lines of {cells // begin:,} features are {8 * cells / 1e9:,.1f} GB as a table, and "
            f"the file gives {given:,} of these {cells:,} numbers; features that are nearly all 0 are not read"
        )
    X = np.zeros((begin, widest if width is None else width))
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
                column_types={"index": pa.int64(), "value": pa.float64()}, null_values=[]
            ),
        )
    except pa.ArrowInvalid:
        raise InputError(_first_wrong_pair(log, block, begin)) from None
    index = table["index"].to_numpy()
    row = np.repeat(np.arange(begin, begin + len(block)), times)
    most = WIDEST if width is None else width
    wrong = np.flatnonzero((index < 1) | (index > most))
    if len(wrong):
        said = f"features are numbered from 1 to {most:,}"
        raise InputError(f"{_line(log, int(row[wrong[0]]))}: there is no feature {index[wrong[0]]}; {said}")
    same = row[1:] == row[:-1]
    if (same & (np.diff(index) <= 0)).any():  # not ascending: allowed, but not twice
        order = np.lexsort((index, row))
        twice = np.flatnonzero((np.diff(index[order]) == 0) & (np.diff(row[order]) == 0))
        if len(twice):
            at = order[twice[0]]
            raise InputError(f"{_line(log, int(row[at]))}: the feature {index[at]} is there twice")
    return row, index, table["value"].to_numpy()


_SPACES = str.maketrans(" \t\r\v\f", "\n\n\n\n\n")


def _first_wrong_pair(log: Log, block: list[str], begin: int) -> str:
    for place, body in enumerate(block):
        for token in body.split():
            index, colon, value = token.partition(":")
            try:
                fine = bool(colon) and int(index) is not None and float(value) is not None
            except ValueError:
                fine = False
            if not fine or "_" in token:
                return f"{_line(log, begin + place)}: {token[:60]!r} is not of the form index:number"
    return f"{log.name}: lines {begin + 1:,} to {begin + len(block):,} hold a pair that is not of the form index:number"

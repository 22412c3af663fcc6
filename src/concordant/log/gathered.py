"""The rows of each list brought together, in memory: columns become ragged columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.errors import InputError
from concordant.log.checked import Columns
from concordant.log.listed import Lists
from concordant.log.values import flat

__all__ = ["IntegerRange", "coded", "decoded", "gather", "packed", "unpacked"]

Key = NDArray[np.int64]


class IntegerRange:
    """The integers low … low + size − 1, standing for themselves as the values of codes."""

    def __init__(self, low: int, size: int, kind: pa.DataType) -> None:
        self.low, self.size, self.type = low, size, kind

    def __len__(self) -> int:
        return self.size


def coded(column: Any) -> tuple[NDArray[Any], Any]:
    """Return a code per row and the values the codes stand for; the code after the last is missing."""
    array = flat(column)
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int32), pa.array([], array.type)
    if pa.types.is_integer(array.type) and not pa.types.is_uint64(array.type) and len(array) and not array.null_count:
        values = array.to_numpy(zero_copy_only=False)
        low, high = int(values.min()), int(values.max())
        if high - low < max(4 * len(values), 1 << 16):
            return values.astype(np.int64) - low if low else values, IntegerRange(low, high - low + 1, array.type)
    if not pa.types.is_dictionary(array.type):
        try:
            array = array.dictionary_encode()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise InputError(f"a column of {array.type} cannot be counted; labels are texts or integers") from None
    codes = pc.fill_null(array.indices, len(array.dictionary)) if array.indices.null_count else array.indices
    return codes.to_numpy(zero_copy_only=False), array.dictionary


def decoded(values: Any, codes: Key) -> pa.Array:
    """Return what codes stand for; texts come as a dictionary."""
    if isinstance(values, IntegerRange):
        return pa.array(codes + values.low if values.low else codes, values.type)
    missing = codes == len(values)
    places = pa.array(codes.astype(np.int32, copy=False), mask=missing if missing.any() else None)
    if pa.types.is_large_string(values.type):
        return pa.DictionaryArray.from_arrays(places, values)
    return values.take(places) if len(values) else pa.nulls(len(codes), values.type)


def packed(columns: Sequence[tuple[NDArray[Any], Any]]) -> tuple[Key, int]:
    """Return one integer a row that is equal where all codes are, and how many values it can take.

    Where the product of the sizes leaves 62 bits, the key so far is replaced by its ranks (and cannot be unpacked).
    """
    codes, values = columns[0]
    key, span = codes.astype(np.int64), len(values) + 1
    for codes, values in columns[1:]:
        width = len(values) + 1
        if span * width >= 1 << 62:
            present, key = np.unique(key, return_inverse=True)
            span = len(present)
        key *= width
        key += codes
        span *= width
    return key, span


def unpacked(key: Key, columns: Sequence[tuple[NDArray[Any], Any]]) -> list[pa.Array]:
    """Return the values of each column at the given keys."""
    found = []
    for _, values in reversed(columns[1:]):
        found.append(decoded(values, key % (len(values) + 1)))
        key = key // (len(values) + 1)
    found.append(decoded(columns[0][1], key))
    return found[::-1]


def gather(columns: Columns, keys: Sequence[str], entries: Sequence[str]) -> tuple[Lists, NDArray[np.int64]]:
    """Bring together the rows of each list, in the order they came, and say which row each entry was."""
    flats = {role: flat(columns[role]) for role in (*keys, *entries)}
    rows = len(next(iter(flats.values())))
    if not keys:
        every = {role: flats[role] for role in entries}
        return Lists({}, every, np.array([0, rows]), np.ones(1, np.int64)), np.arange(rows)
    key, _ = packed([coded(flats[role]) for role in keys])
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    begin = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if rows else np.zeros(0, np.int64)
    first = pa.array(order[begin])
    # lists stand in the order in which their first rows came
    by_first = np.argsort(order[begin], kind="stable")
    offsets = np.concatenate((begin, [rows]))
    length = np.diff(offsets)[by_first]
    start = np.concatenate(([0], np.cumsum(length)))
    place = np.arange(rows) - np.repeat(start[:-1], length) + np.repeat(begin[by_first], length)
    order = order[place]
    taken = pa.array(order)
    return (
        Lists(
            {role: flats[role].take(first.take(pa.array(by_first))) for role in keys},
            {role: flats[role].take(taken) for role in entries},
            start.astype(np.int64),
            np.ones(len(begin), np.int64),
        ),
        order,
    )

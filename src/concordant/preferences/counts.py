"""Equal rows, counted: the one operation that preferences and graphs are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError

Key = NDArray[np.int64]
Integers = NDArray[np.integer[Any]]
T = TypeVar("T", bound=np.generic)

BITS = 62
"""A key of more bits does not fit into one integer."""
BLOCK = 1 << 22
MOST = (1 << 63) - 1
"""The most judgments that there can be: what 64 bits with a sign hold, and what ``len`` can say."""


def read_only(values: NDArray[T]) -> NDArray[T]:
    """Return an array that cannot be written, over the same memory; the one given stays as it is.

    >>> read_only(np.zeros(1)).flags.writeable
    False
    """
    view = values.view()
    view.flags.writeable = False
    return view


def exact_sum(values: Integers, times: Integers | None = None) -> int:
    """Return the sum of integers, each times another one where these are given, however large it is.

    >>> exact_sum(np.array([1 << 62, 1 << 62])) == 1 << 63, exact_sum(np.array([1 << 62, 1]), np.array([4, 3]))
    (True, 18446744073709551619)
    """
    about = values.sum(dtype=np.float64) if times is None else (values.astype(np.float64) * times).sum()
    if about < 1 << 62:
        return int(values.sum(dtype=np.int64) if times is None else (values.astype(np.int64) * times).sum())
    total = 0
    for begin in range(0, len(values), BLOCK):
        part = values[begin : begin + BLOCK].astype(object)
        total += int(sum(part if times is None else part * times[begin : begin + BLOCK].astype(object)))
    return total


def exact_bincount(place: NDArray[np.integer[Any]], count: Integers, size: int) -> NDArray[np.int64]:
    """Return the sum of the counts at each place 0 … size − 1, exactly where float64 would round.

    >>> exact_bincount(np.array([0, 0]), np.array([1 << 60, 1]), 2).tolist() == [(1 << 60) + 1, 0]
    True
    """
    if count.sum(dtype=np.float64) < 1 << 52:
        return np.bincount(place, count, size).astype(np.int64)
    total = np.zeros(size, np.int64)
    np.add.at(total, place, count)
    return total


def refuse_beyond(total: int, what: str = "the counts") -> None:
    """Raise InputError where counts add up to more than 64 bits with a sign can hold."""
    if total > MOST:
        raise InputError(f"{what} add up to {total:,}; at most {MOST:,} (2^63 − 1) can be counted")


def bit_width(size: int) -> int:
    """Bits that codes 0 … size − 1 need."""
    return max(int(size) - 1, 0).bit_length()


def pack(columns: Sequence[NDArray[Any]], sizes: Sequence[int]) -> Key:
    """Return one integer per row that sorts and compares as the row of columns does.

    Column c holds codes 0 … sizes[c] − 1 and takes as many bits as these need; together at most ``BITS``.

    >>> pack([np.array([1, 0]), np.array([2, 3])], [2, 4]).tolist()
    [6, 3]
    """
    key = np.array(columns[0], np.int64)
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        if (width := bit_width(size)) > 0:
            key <<= width
            key |= column
    return key


def unpack(key: Key, sizes: Sequence[int]) -> list[NDArray[np.int32]]:
    """Return the columns that were packed, block by block so that no wide copy is made.

    >>> [column.tolist() for column in unpack(np.array([6, 3]), [2, 4])]
    [[1, 0], [2, 3]]
    """
    widths = [bit_width(size) for size in sizes]
    columns = [np.empty(len(key), np.int32) for _ in sizes]
    for begin in range(0, len(key), BLOCK):
        part = key[begin : begin + BLOCK]
        shift = 0
        for column, width in zip(columns[::-1], widths[::-1], strict=True):
            column[begin : begin + BLOCK] = (part >> shift) & ((1 << width) - 1)
            shift += width
    return columns


def float_codes(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the distinct values in order (−0 counts as 0) and the code of each."""
    distinct, codes = np.unique(values + 0.0, return_inverse=True)
    return distinct, codes.astype(np.int64)


def distinct_rows(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the distinct rows of a matrix in order and the code of each row.

    >>> distinct_rows(np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0]]))[1].tolist()
    [1, 0, 1]
    """
    first, code = rows_alike(*values.T)
    return values[first], code


def rows_alike(*columns: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row of each kind of rows, the kinds in ascending order, and the kind of each row.

    Columns hold integers, flags, or numbers that are not NaN. As ``numpy.unique`` of the rows of a matrix, which
    compares these byte by byte and takes ten times as long: a table where few kinds are possible, else a sort of rows
    that are packed into an integer, or of column after column.

    >>> first, kind = rows_alike(np.array([1, 0, 1]), np.array([2.0, 5.0, 2.0]))
    >>> first.tolist(), kind.tolist()
    ([1, 0], [1, 0, 1])
    """
    number = len(columns[0])
    if number == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    codes, sizes = list[NDArray[Any]](), list[int]()
    for column in columns:
        if column.dtype.kind == "f":
            distinct, code = np.unique(column, return_inverse=True)
            codes.append(code)
            sizes.append(len(distinct))
        else:
            low, high = int(column.min()), int(column.max())
            sizes.append(high - low + 1)
            codes.append(column.astype(np.int64) - low if high - low < MOST else column)
    bits = sum(map(bit_width, sizes))
    if bits > BITS:
        sorter = np.lexsort(codes[::-1])
        changed = np.zeros(number, bool)
        for code in codes:
            changed[1:] |= np.diff(code[sorter]) != 0
        kind = np.empty(number, np.int64)
        kind[sorter] = np.cumsum(changed)
        changed[0] = True
        return sorter[changed], kind
    key = pack(codes, sizes)
    if 1 << bits > max(4 * number, 1 << 16):
        _, first, kind = np.unique(key, return_index=True, return_inverse=True)
        return first.astype(np.int64), kind.astype(np.int64)
    table = np.full(1 << bits, -1)
    table[key[::-1]] = np.arange(number)[::-1]  # of rows that are alike the last one stays: the first of all
    present = np.flatnonzero(table >= 0)
    first = table[present]
    table[present] = np.arange(len(present))
    return first, table[key]


def tally(key: Key, bits: int, count: Integers | None, *, runs: bool = False) -> tuple[Key, Integers]:
    """Return the distinct keys (of at most ``bits`` bits) in ascending order and the sum of the counts of each.

    Without counts every row counts 1. ``key`` is overwritten. ``runs``: it is made of few ascending ones. Three ways,
    the same answer: a table when few keys are possible, an in-place sort of key and count packed into one integer when
    both fit, an argsort otherwise.
    """
    if len(key) == 0:
        return key, np.zeros(0, np.int64)
    total = len(key) if count is None else int(count.sum(dtype=np.float64))
    if 1 << bits <= max(len(key) // 2, 1 << 16) and total < 1 << 52:
        seen = np.bincount(key, minlength=1 << bits)
        present = np.flatnonzero(seen)
        table = seen if count is None else np.bincount(key, count, 1 << bits)
        return present, table[present].astype(np.int64)
    amount: Integers
    most = 1 if count is None else int(count.max())
    width = most.bit_length() if count is not None else 0
    if bits + width < 63:
        if count is not None:
            key <<= width
            key |= count
        key.sort(kind="stable" if runs else None)
        amount = _low_bits(key, width, most) if count is not None else np.ones(len(key), np.int32)
        key >>= width
    else:
        sorter = np.argsort(key, kind="stable")
        key, amount = key[sorter], np.asarray(count, np.int64)[sorter]  # only with counts do bits run out
    new = np.empty(len(key), bool)
    new[0] = True
    np.not_equal(key[1:], key[:-1], out=new[1:])
    if new.all():
        return key, amount
    begin = np.flatnonzero(new)
    return key[begin], np.asarray(np.add.reduceat(amount, begin, dtype=np.int64), np.int64)


def _low_bits(key: Key, width: int, most: int) -> Integers:
    kind: Any = np.int32 if most < 1 << 31 else np.int64
    amount: Integers = np.empty(len(key), kind)
    for begin in range(0, len(key), BLOCK):
        amount[begin : begin + BLOCK] = key[begin : begin + BLOCK] & ((1 << width) - 1)
    return amount


def tally_rows(
    columns: Sequence[NDArray[Any]], sizes: Sequence[int], count: Integers | None
) -> tuple[list[NDArray[Any]], Integers]:
    """Return the columns of the distinct rows, in order, and the sum of the counts of each.

    Column c holds codes 0 … sizes[c] − 1; together they may take more bits than ``BITS``.
    """
    if (bits := sum(bit_width(size) for size in sizes)) <= BITS:
        key, amount = tally(pack(columns, sizes), bits, count)
        return list(unpack(key, sizes)), amount
    sorter = np.lexsort(columns[::-1])
    changed = np.zeros(len(sorter), bool)
    changed[:1] = True
    for column in columns:
        ordered = np.asarray(column)[sorter]
        changed[1:] |= ordered[1:] != ordered[:-1]
    begin = np.flatnonzero(changed)
    each = np.ones(len(sorter), np.int64) if count is None else np.asarray(count, np.int64)[sorter]
    return [np.asarray(column)[sorter[begin]] for column in columns], np.add.reduceat(each, begin)


def narrow(count: Integers) -> Integers:
    """Return counts as int32 when they all fit; a function of the values alone, so equal content has equal bits."""
    small = len(count) == 0 or int(count.max()) < 1 << 31
    return count.astype(np.int32 if small else np.int64, copy=False)


def joined(a: Any, b: Any, rows_a: int, rows_b: int, fill: Any) -> Any:
    """Return two columns behind each other; one that is None is filled in, unless both are."""
    if a is None and b is None:
        return None
    dtype = (a if a is not None else b).dtype
    left = np.full(rows_a, fill, dtype) if a is None else a
    right = np.full(rows_b, fill, dtype) if b is None else b
    return np.concatenate([left, right])


def none_if(column: Any, neutral: Any) -> Any:
    """Return a column, or None where all of it is neutral."""
    return None if column is None or bool((column == neutral).all()) else column


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal, arrays in every entry."""
    return np.array_equal(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else bool(a == b)

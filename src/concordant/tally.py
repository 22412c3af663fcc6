"""Equal rows, counted: the one operation that preferences and graphs are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Key", "float_codes", "pack", "runs", "tally"]

Key = NDArray[np.int64]


def pack(columns: Sequence[NDArray[np.integer]], sizes: Sequence[int]) -> tuple[Key, int]:
    """Return one integer per row that sorts and compares as the row of columns does, and how many values it can take.

    Column c holds values 0 … sizes[c] − 1. Where the product of the sizes exceeds 63 bits, the columns so far are
    first replaced by their ranks.
    """
    key = np.asarray(columns[0], np.int64)
    span = max(int(sizes[0]), 1)
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        width = max(int(size), 1)
        if width == 1:
            continue
        if span * width >= 1 << 62:
            present, key = np.unique(key, return_inverse=True)
            span = max(len(present), 1)
            if span * width >= 1 << 62:
                raise OverflowError("more than 2^62 possible rows")
        key = key * width
        key += column
        span *= width
    return key, span


def float_codes(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the distinct values in order (−0 counts as 0) and the code of each."""
    distinct, codes = np.unique(values + 0.0, return_inverse=True)
    return distinct, codes.astype(np.int64)


def runs(ordered: Key) -> NDArray[np.int64]:
    """Return where each run of equal values begins in an ordered array."""
    if len(ordered) == 0:
        return np.zeros(0, np.int64)
    change = np.empty(len(ordered), bool)
    change[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=change[1:])
    return np.flatnonzero(change)


def tally(key: Key, span: int, count: NDArray[np.integer] | None) -> tuple[Key, NDArray[np.int64]]:
    """Return the distinct keys in ascending order and the sum of the counts of each (1 a row without counts).

    ``key`` may be overwritten. Three ways, the same answer: a table when few keys are possible, an in-place sort of
    key and count packed into one integer when both fit, an argsort otherwise.
    """
    if len(key) == 0:
        return key, np.zeros(0, np.int64)
    if span <= max(4 * len(key), 1 << 16) and (count is None or int(count.sum(dtype=np.float64)) < 1 << 52):
        table = np.bincount(key, weights=count, minlength=span)
        present = np.flatnonzero(np.bincount(key, minlength=span) if count is not None else table)
        return present, table[present].astype(np.int64)
    most = 1 if count is None else int(count.max())
    width = most.bit_length()
    if count is None:
        key.sort()
        begin = runs(key)
        return key[begin], np.diff(begin, append=len(key)).astype(np.int64)
    if span << width < 1 << 63:
        key <<= width
        key |= count
        key.sort()
        amount = key & ((1 << width) - 1)
        key >>= width
    else:
        order = np.argsort(key, kind="stable")
        key, amount = key[order], np.asarray(count, np.int64)[order]
    begin = runs(key)
    if len(begin) == len(key):
        return key, amount
    return key[begin], np.add.reduceat(amount, begin)

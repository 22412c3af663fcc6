"""The lists that are judged: scores, labels and queries as columns, checked and brought together by query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError
from concordant.labels import as_label_array

__all__ = ["Floats", "Lists", "Offsets", "as_numbers", "check_cutoff", "lists_of", "matrices", "owners", "threshold"]

Floats = NDArray[np.float64]
Offsets = NDArray[np.int64]


@dataclass(frozen=True)
class Lists:
    """The rows of each query, queries in the order of first appearance, rows in the order given.

    Query q holds the places ``start[q]`` to ``start[q + 1]``; ``rows`` says which row stands at each place (None: every
    row stands where it was given).
    """

    start: Offsets
    rows: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def first(self) -> NDArray[np.int64]:
        """The row where each query appears first."""
        begin = self.start[:-1]
        return begin if self.rows is None else self.rows[begin]

    def take(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a column by places instead of rows."""
        return column if self.rows is None else column[self.rows]

    def parts(self, size: int) -> list[tuple[Lists, slice]]:
        """Return runs of lists with about ``size`` places each, and where their places are; rows are not kept.

        >>> [(part.start.tolist(), where) for part, where in Lists(np.array([0, 2, 3, 7])).parts(4)]
        [([0, 2, 3, 7], slice(0, 7, None))]
        >>> [(part.start.tolist(), where) for part, where in Lists(np.array([0, 2, 3, 7])).parts(2)]
        [([0, 2], slice(0, 2, None)), ([0, 1, 5], slice(2, 7, None))]
        """
        if not len(self):
            return []
        cuts = np.flatnonzero(np.diff(self.start[:-1] // size, prepend=-1))
        ends = np.append(cuts[1:], len(self))
        return [
            (Lists(self.start[a : b + 1] - self.start[a]), slice(int(self.start[a]), int(self.start[b])))
            for a, b in zip(cuts.tolist(), ends.tolist(), strict=True)
        ]


def lists_of(query: Any, size: int) -> Lists:
    """Return the lists of a column of ``size`` queries: texts or integers of any make, or None for one query.

    >>> lists_of(["b", "a", "b"], 3)
    Lists(start=array([0, 2, 3]), rows=array([0, 2, 1]))
    """
    if query is None:
        return Lists(np.array([0, size], np.int64) if size else np.zeros(1, np.int64))
    if isinstance(query, np.ndarray) and query.ndim == 1 and query.dtype.kind in "iuU":
        _same_length("query", len(query), size)
        begin = np.append(0, np.flatnonzero(query[1:] != query[:-1]) + 1) if size else np.zeros(0, np.int64)
        heads = query[begin]
        if np.all(heads[1:] > heads[:-1]) or len(np.unique(heads)) == len(heads):
            return Lists(np.append(begin, size).astype(np.int64))
    try:
        array = as_label_array(query)
    except InputError as error:
        raise InputError(f"query: {error}") from None
    _same_length("query", len(array), size)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    code = array.dictionary_encode().indices.to_numpy(zero_copy_only=False)  # codes in order of first appearance
    start = np.append(0, np.cumsum(np.bincount(code, minlength=0))).astype(np.int64)
    if np.all(code[1:] >= code[:-1]):
        return Lists(start)
    return Lists(start, np.argsort(code, kind="stable"))


def as_numbers(column: Any, role: str, *, size: int | None = None, infinite: bool = False) -> Floats:
    """Return a column of real numbers as float64.

    Errors (InputError): not one-dimensional, not numbers, NaN or (unless allowed) infinities, another length than
    ``size``.
    """
    if np.ma.is_masked(column):
        raise InputError(f"{role}: values are masked; leave their rows out")
    try:
        array = np.asarray(column)
        if array.dtype.kind not in "biuf":
            array = np.array(array, np.float64) if array.dtype.kind == "O" else _refused(array, role)
    except (OverflowError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{role} must be real numbers: {error}") from None
    if array.ndim != 1:
        raise InputError(f"{role} must be one column (one-dimensional), not of shape {array.shape}")
    if size is not None:
        _same_length(role, len(array), size)
    values = np.asarray(array, np.float64)
    if array.dtype.kind in "bui":
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # a finite sum has only finite terms
            return values
    wrong = np.isnan(values) if infinite else ~np.isfinite(values)
    if wrong.any():
        place = int(wrong.argmax())
        raise InputError(
            f"{role}: {int(wrong.sum()):,} of {len(values):,} are not {'numbers' if infinite else 'finite'} "
            f"(first {values[place]} in row {place + 1:,})"
        )
    return values


def _refused(array: NDArray[Any], role: str) -> NDArray[Any]:
    raise InputError(f"{role} must be real numbers, not of type {array.dtype}")


def _same_length(role: str, found: int, size: int) -> None:
    if found != size:
        raise InputError(f"{role} has {found:,} rows, scores have {size:,}")


def check_cutoff(at: Any) -> int | None:
    """Return a cut-off: None or an integer of at least 1."""
    if at is None:
        return None
    if isinstance(at, bool) or not isinstance(at, int | np.integer) or at < 1:
        raise UsageError(
            f"at must be an integer of at least 1, or None for the whole list, not {' '.join(repr(at).split())[:80]}"
        )
    return int(at)


def threshold(relevant: Any) -> None:
    """Refuse a label from which on a document is relevant that is no number."""
    if not isinstance(relevant, Real):
        raise UsageError(f"relevant must be a real number, not {str(repr(relevant))[:80]}")


def owners(start: Offsets) -> NDArray[np.int64]:
    """Return the list of each place."""
    return np.repeat(np.arange(len(start) - 1, dtype=np.int64), np.diff(start))


def matrices(
    start: Offsets, values: Floats, which: NDArray[np.int64], fill: float
) -> Iterator[tuple[NDArray[np.int64], Floats]]:
    """Yield chosen lists of similar length (within a factor of two) as the rows of a matrix, padded on the right.

    At most one matrix for each power of two, so that work along the ranks needs no loop over queries.
    """
    length = np.diff(start)[which]
    if len(which) == len(start) - 1 and len(which) and np.all(length == length[0]):
        yield which, values.reshape(len(which), int(length[0]))
        return
    exponent = np.frexp(np.maximum(length - 1, 0).astype(np.float64))[1]
    for size in np.unique(exponent):
        members = np.flatnonzero(exponent == size)
        columns = np.arange(int(length[members].max()))
        index = start[which[members]][:, None] + columns
        inside = columns < length[members][:, None]
        index[~inside] = 0
        matrix = values[index]
        matrix[~inside] = fill
        yield which[members], matrix

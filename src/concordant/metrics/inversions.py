"""Weighted inversions of many sequences at once, in n log n: what Kendall's τ and the pairwise loss are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.metrics.lists import Floats

__all__ = ["inversions", "tied_pairs"]

Ints = NDArray[np.int64]


def inversions(owner: Ints, level: Ints, value: Floats | None, size: int) -> Floats:
    """Return Σ (value_i − value_j) over the pairs i before j with level_i > level_j, for each of ``size`` sequences.

    ``owner`` is the sequence of each entry (ascending), ``level`` an integer ≥ 0 and ``value`` a number per entry
    (None: count the pairs). Two levels differ first in some bit: bit by bit from the highest, entries that agree in
    the higher bits stand together, in their order, and every 0 after a 1 is an inversion.
    """
    total = np.zeros(size)
    if not len(level):
        return total
    weight = None if value is None else _exact(value)
    for bit in range(int(level.max()).bit_length() - 1, -1, -1):
        one = (level >> bit) & 1
        group = np.append(True, (owner[1:] != owner[:-1]) | (level[1:] >> (bit + 1) != level[:-1] >> (bit + 1)))
        begin = np.flatnonzero(group)
        place = np.cumsum(group) - 1
        ones = _before(one, begin, place)
        if weight is None:
            lost = np.where(one == 0, ones, 0).astype(np.float64)
        else:
            above = _before(np.where(one == 1, weight, weight.dtype.type(0)), begin, place)
            lost = np.where(one == 0, above - ones * weight, 0).astype(np.float64)
        total += np.bincount(owner, lost, size)
        order = np.lexsort((one, place))
        owner, level = owner[order], level[order]
        weight = None if weight is None else weight[order]
    return total


def _before(values: NDArray[Any], begin: Ints, place: Ints) -> NDArray[Any]:
    """Return the sum of the values before each entry within its group."""
    running = np.cumsum(values) - values
    found: NDArray[Any] = running - running[begin][place]
    return found


def _exact(value: Floats) -> NDArray[Any]:
    """Integers stay float64, where sums are exact; others are summed in extended precision."""
    return value if np.all(value == np.floor(value)) else value.astype(np.longdouble)


def tied_pairs(begin: NDArray[np.bool_], owner: Ints, size: int) -> Floats:
    """Return the number of pairs within the runs that begin where ``begin`` is true, for each sequence."""
    first = np.flatnonzero(begin)
    run = np.diff(np.append(first, len(begin))).astype(np.float64)
    return np.asarray(np.bincount(owner[first], run * (run - 1) / 2, size), np.float64)

"""Weights that are whole multiples of one number, as counts are: then so is every loss, and bounds round up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["grids"]

Floats = NDArray[np.float64]
MOST = 24
"""The least weight is at most so many times the number looked for."""
LARGEST = 1e6
"""Multiples beyond this could be whole by chance."""
OFF = 1e-9
"""How far a multiple may be from whole, as a share of 1 and of itself."""


def grids(start: NDArray[np.int64], weight: Floats) -> Floats:
    """Find for each list of positive weights a number that all are multiples of, 0 where none was found.

    >>> grids(np.array([0, 2, 4]), np.array([0.2, 0.5, 1.0, 2**0.5])).tolist()
    [0.1, 0.0]
    """
    found = np.zeros(len(start) - 1)
    lists = np.flatnonzero(np.diff(start))
    if len(lists) == 0:
        return found
    size = np.diff(start)[lists]
    least = np.minimum.reduceat(weight, start[lists])
    share = weight / np.repeat(least, size)
    for times in range(1, MOST + 1):
        multiple = share * times
        off = np.abs(multiple - np.round(multiple)) - OFF * multiple + (multiple > LARGEST)
        whole = (np.maximum.reduceat(off, start[lists]) <= 0) & (found[lists] == 0)
        found[lists[whole]] = least[whole] / times
    return found

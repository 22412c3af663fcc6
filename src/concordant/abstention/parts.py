"""Near pairs counted part by part on several threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counts", "summed"]

Counts = tuple[NDArray[np.int64], NDArray[np.int64]]
"""For each threshold the near pairs, each once, and the mistakes among them (two for a wrong order, one for a tie)."""
THREADS = max(1, min(16, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))


def summed(
    count: Callable[[int, int, NDArray[np.int64], NDArray[np.int64]], None], cuts: Iterable[int], limits: int
) -> Counts:
    """Return the sums of what ``count(first, last, near, wrong)`` adds for each part between two cuts."""

    def part(ends: tuple[int, int]) -> NDArray[np.int64]:
        found = np.zeros((2, limits), np.int64)
        count(*ends, found[0], found[1])
        return found

    edges = list(cuts)
    with ThreadPoolExecutor(THREADS) as pool:
        near, wrong = sum(pool.map(part, pairwise(edges)), np.zeros((2, limits), np.int64))
    return near, wrong

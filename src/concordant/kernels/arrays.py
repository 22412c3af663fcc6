"""Arrays as kernels are compiled for. This file needs no Numba.

Compiled loops over independent pieces of work, in threads; what a piece gives does not depend on the others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray


def read_only(values: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Return the array, without a copy where its type and order allow, as one that cannot be written.

    Compiled loops are compiled once for each type of array; all that they only read is of this one.
    """
    view = np.ascontiguousarray(values, kind).view()
    view.flags.writeable = False
    return view


Indices = NDArray[Any]
Task = TypeVar("Task")
Answer = TypeVar("Answer")
WORKERS = max(1, min(16, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))
LITTLE = 1 << 12
"""Cost below which one thread does it all."""


def in_threads(work: Callable[[Task], Answer], tasks: Iterable[Task], threads: int | None = None) -> list[Answer]:
    """Return ``work`` of every task, in order, from so many threads (``WORKERS``); it does not depend on their number.

    >>> in_threads(abs, [1, -2, 3], 2)
    [1, 2, 3]
    """
    every = list(tasks)
    threads = min(WORKERS if threads is None else threads, len(every))
    if threads <= 1:
        return [work(task) for task in every]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, every))


def in_parts(
    work: Callable[[Indices], None],
    chosen: Indices,
    cost: NDArray[Any],
    chunk: float,
    told: Callable[[float], object] = lambda _: None,
) -> None:
    """Call work(part) on parts of the chosen pieces, in order, each of about ``chunk`` of cost, in threads.

    ``told`` hears the cost of each part that is done.
    """
    if not len(chosen):
        return
    number = (np.cumsum(cost) - cost) // chunk
    cuts = np.flatnonzero(np.diff(number)) + 1
    costs = np.add.reduceat(cost, np.append(0, cuts)).tolist()

    def part(place: int) -> None:
        work(parts[place])
        told(costs[place])

    parts = np.split(chosen, cuts)
    in_threads(part, range(len(parts)))


def in_ranges(work: Callable[[int, int], None], cost: NDArray[Any]) -> None:
    """Call work(first, last) on ranges of about the same cost, in threads. Results do not depend on the ranges."""
    parts = 4 * WORKERS if len(cost) > 1 and cost.sum() > LITTLE else 1
    cuts = np.searchsorted(np.cumsum(cost), np.sum(cost) * np.arange(1, parts) / parts)
    edges = np.unique(np.concatenate(([0], cuts, [len(cost)]))).tolist()
    in_threads(lambda ends: work(*ends), list(pairwise(edges)) or [(0, 0)])

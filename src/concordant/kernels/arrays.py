"""Arrays as kernels are compiled for. This file needs no Numba.

Compiled loops over independent pieces of work, in threads; what a piece gives does not depend on the others.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["in_parts", "in_ranges", "read_only"]


def read_only(values: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Return the array, without a copy where its type and order allow, as one that cannot be written.

    Compiled loops are compiled once for each type of array; all that they only read is of this one.
    """
    view = np.ascontiguousarray(values, kind).view()
    view.flags.writeable = False
    return view


Indices = NDArray[Any]
WORKERS = max(1, min(16, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))
LITTLE = 1 << 12
"""Cost below which one thread does it all."""


def in_parts(work: Callable[[Indices], None], chosen: Indices, cost: NDArray[Any], chunk: float) -> None:
    """Call work(part) on parts of the chosen pieces, in order, each of about ``chunk`` of cost, in threads."""
    if not len(chosen):
        return
    number = (np.cumsum(cost) - cost) // chunk
    parts = np.split(chosen, np.flatnonzero(np.diff(number)) + 1)
    if len(parts) == 1 or WORKERS == 1:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(min(WORKERS, len(parts))) as pool:
        list(pool.map(work, parts))


def in_ranges(work: Callable[[int, int], None], cost: NDArray[Any]) -> None:
    """Call work(first, last) on ranges of about the same cost, in threads. Results do not depend on the ranges."""
    parts = 4 * WORKERS if len(cost) > 1 and cost.sum() > LITTLE else 1
    cuts = np.searchsorted(np.cumsum(cost), np.sum(cost) * np.arange(1, parts) / parts)
    edges = np.unique(np.concatenate(([0], cuts, [len(cost)])))
    if len(edges) < 3:
        work(0, len(cost))
        return
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(work, edges[:-1].tolist(), edges[1:].tolist()))

"""Compiled loops over independent blocks, in threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["in_ranges"]

WORKERS = min(os.cpu_count() or 1, 8)
LITTLE = 1 << 12
"""Cost below which one thread does it all."""


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

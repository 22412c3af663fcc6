"""Could the pairs that were never judged still make a population low-noise? Paths that judged pairs cannot match."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.differences import LEVEL
from concordant.kernels.columns import read_only
from concordant.populations.neighbours import Neighbours

__all__ = ["HeavierPaths", "heavier_paths"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Nodes = NDArray[np.int64]
MOST_STEPS = 1 << 28
"""Looks at an edge that a graph is worth (about a second)."""


@dataclass(frozen=True, eq=False)
class HeavierPaths:
    """Judged pairs (i, k), d_ik ≥ 0, with a path i ⇝ k heavier than d_ik; arrays have one entry (row) per graph.

    In a population of low noise no path is heavier than the difference of its ends (Definition 4, step by step along
    the path). Conversely, where the difference graph is acyclic and there is no such pair, giving each never judged
    pair the weight of its heaviest path makes the population low-noise: the verdict is open.
    """

    pair: Nodes
    """(graphs, 2) the pair that is exceeded the most; −1 where there is none or it was not looked for."""
    weights: Floats
    """(graphs, 2) d_ik and the weight of the path; NaN where there is none."""
    start: Nodes
    """The path of graph g is node[start[g]:start[g + 1]], from i to k."""
    node: Nodes
    complete: Flags
    """False where the search ended early: ``MOST_STEPS``."""


def heavier_paths(judged: Neighbours, chosen: Nodes) -> HeavierPaths:
    """Look for such a pair in the chosen graphs, which must be acyclic; others count as searched, without one."""
    graphs, nodes = len(judged.node_start) - 1, judged.nodes
    pair, weights = np.full((graphs, 2), -1, np.int64), np.full((graphs, 2), np.nan)
    path, length = np.zeros(nodes, np.int64), np.zeros(graphs, np.int64)
    complete = np.ones(graphs, bool)
    if len(chosen):
        from concordant.kernels.heavier_paths import heavier_paths as kernel

        start, which = read_only(judged.node_start, np.int64), read_only(chosen, np.int64)
        kernel(which, start, MOST_STEPS, LEVEL, *judged.read_only, pair, weights, path, length, complete)
    kept = np.arange(nodes) - judged.node_start[judged.owner] < length[judged.owner]
    return HeavierPaths(pair, weights, np.concatenate(([0], np.cumsum(length))), path[kept], complete)

"""Pairs that connect the components of a query: what has to be asked before anything else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from concordant.asking.scores_covariance import Fitted

__all__ = ["connecting_pairs"]

Ints = NDArray[np.int64]
TURNS = np.array([0, 1, -1, 2, -2])
"""Which opponents from the largest component take turns, as steps from the one in the middle of interest."""


def connecting_pairs(fit: Fitted, top: int | None, most: int) -> tuple[Ints, Ints, Ints]:
    """Graph and two nodes of up to ``most`` pairs of each graph, one for each component but the largest.

    The item that stands for a component is its best with ``top``, else its middle one. Its opponent stands about place
    ``top`` of the largest component (the boundary, which the answer will be compared with), else about its middle; five
    of them take turns. Returned with the opponent first.
    """
    batch, component = fit.batch, fit.links.component
    order = np.lexsort((-fit.scores.value, component, batch.owner))
    own = component[order]
    graph = batch.owner[order]
    begin = np.flatnonzero((np.diff(own, prepend=-1) != 0) | (np.diff(graph, prepend=-1) != 0))
    size = np.diff(begin, append=len(order))
    number, graph = own[begin].astype(np.int64), graph[begin]
    main = np.zeros(len(batch), np.int64)
    main[graph[number == 0]] = np.flatnonzero(number == 0)
    chosen = np.flatnonzero((number > 0) & (number <= most))
    speaker = begin[chosen] + (0 if top is not None else (size[chosen] - 1) // 2)
    home = main[graph[chosen]]
    middle = (size[home] - 1) // 2 if top is None else np.minimum(top - 1, size[home] - 1)
    place = np.clip(middle + TURNS[(number[chosen] - 1) % len(TURNS)], 0, size[home] - 1)
    return graph[chosen], order[begin[home] + place], order[speaker]

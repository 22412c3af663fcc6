"""The set of all minimisers of a surrogate, as bounds on differences of scores.

Consistency is a claim about every minimiser (AoS Definition 3). For the margin functions here the set of minimisers is
{α : α_i − α_j ≥ b_ij}: shortest paths answer what holds on all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bounds", "loose_nodes", "smallest_differences"]

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Bounds:
    """α_above − α_below ≥ least, for every minimiser; least is ∞ where the infimum is followed to infinity."""

    above: Nodes
    below: Nodes
    least: Floats

    @classmethod
    def join(cls, *parts: tuple[Nodes, Nodes, Floats]) -> Bounds:
        """Put several lists of bounds together."""
        above, below, least = zip(*parts, strict=True)
        return cls(np.concatenate(above), np.concatenate(below), np.concatenate(least))

    def slack(self, alpha: Floats) -> Floats:
        """How much each difference may still fall; rounding below 0 is 0."""
        return np.maximum(alpha[self.above] - alpha[self.below] - self.least, 0.0)


def loose_nodes(bounds: Bounds, alpha: Floats, root: Nodes, tolerance: float = 1e-7) -> NDArray[np.bool_]:
    """Nodes whose difference to the root of their component is not the same at all minimisers.

    ``alpha`` is one minimiser, ``root`` the root of each node (nodes,). Bellman–Ford from all roots at once.
    """
    slack = bounds.slack(alpha)
    loose = np.zeros(len(alpha), bool)
    for above, below in ((bounds.above, bounds.below), (bounds.below, bounds.above)):
        room = np.where(root == np.arange(len(alpha)), 0.0, np.inf)
        while True:
            nearer = room.copy()
            np.minimum.at(nearer, above, room[below] + slack)
            if not (nearer < room).any():
                break
            room = nearer
        loose |= room > tolerance
    return loose


def smallest_differences(bounds: Bounds, alpha: Floats, start: int, stop: int) -> Floats:
    """Least value of α_i − α_j over all minimisers, for the nodes start:stop of one graph; shape (m, m).

    −∞ where nothing bounds it, ∞ where it tends to infinity along every minimising sequence. A cubic algorithm
    (Floyd–Warshall) for one population of moderate size.
    """
    here = (bounds.above >= start) & (bounds.above < stop)
    above, below, least = bounds.above[here] - start, bounds.below[here] - start, bounds.least[here]
    own = alpha[start:stop]
    size = stop - start
    finite = np.isfinite(least)
    room = np.full((size, size), np.inf)
    np.minimum.at(room, (above[finite], below[finite]), bounds.slack(alpha)[here][finite])
    np.fill_diagonal(room, 0.0)
    strict = np.zeros((size, size), bool)
    strict[above[~finite], below[~finite]] = True
    for middle in range(size):
        room = np.minimum(room, room[:, middle, None] + room[None, middle, :])
    known = (np.isfinite(room) | strict).astype(np.float64)
    for _ in range(max(size - 1, 1).bit_length()):
        known = ((known @ known) > 0).astype(np.float64)
    beyond = (known @ strict @ known) > 0
    return np.where(beyond, np.inf, own[:, None] - own[None, :] - room)

"""The best order of a strongly connected component as an integer program with cycles added as they are needed.

Minimise Σ d_e x_e, x_e ∈ {0, 1}, with Σ_{e ∈ C} x_e ≥ 1 for every cycle C: x marks the edges that point up. Cycles are
first separated at the optima of the linear relaxation, by shortest paths, then at integer optima (Grötschel, Jünger
and Reinelt, Oper. Res. 32, 1984, whose cuts for complete graphs are the triangles).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from graphlib import TopologicalSorter

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

__all__ = ["LARGEST", "TOLERANCE", "Optimum", "solve"]

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
TOLERANCE = 1e-6
"""What the solver's bounds may be off by, as a share of the largest weight."""
LARGEST = 1000
"""Nodes up to which a component is worth an integer program."""
VIOLATED = 1e-6
"""How much less than 1 the x of a cycle must add up to, to be worth a constraint."""


@dataclass(frozen=True)
class Optimum:
    """The best order found, as places, and what is proven of the loss."""

    place: Nodes
    loss: float
    lower: float


def solve(
    winner: Nodes, loser: Nodes, weight: Floats, place: Nodes, lower: float, grid: float, time_limit: float
) -> Optimum:
    """Improve an order until its loss meets a proven lower bound, or until the time (seconds) is over.

    Nodes count from 0 and every edge lies on a cycle. ``lower`` is a bound that is known already; ``grid``, where it
    is not 0, is a number that all weights are multiples of: then so is the loss.
    """
    scale = float(weight.max())
    cuts = _Cuts(winner, loser, weight / scale, place, lower / scale, grid / scale, time.monotonic() + time_limit)
    for integer in (False, True):
        cuts.close(integer)
    return Optimum(cuts.place, cuts.loss * scale, cuts.lower * scale)


class _Cuts:
    """The cycles so far, the best order and the bound."""

    def __init__(
        self, winner: Nodes, loser: Nodes, weight: Floats, place: Nodes, lower: float, grid: float, deadline: float
    ) -> None:
        self.winner, self.loser, self.weight = winner, loser, weight
        self.place, self.lower, self.grid, self.deadline = place, lower, grid, deadline
        self.m = len(place)
        self.loss = self._charged(place)
        self.rows: dict[tuple[int, ...], None] = {}
        self.edge = np.full((self.m, self.m), -1)
        self.edge[winner, loser] = np.arange(len(winner))
        self._add_cycles(np.where(place[winner] > place[loser], 0.5, 0.0))

    def close(self, integer: bool) -> None:
        """Add cycles until an optimum violates none, the loss meets the bound or the time is over."""
        while self.loss - self.lower > 2 * TOLERANCE and time.monotonic() < self.deadline:
            x, proven = self._optimum(integer)
            if proven is not None:
                self._raise_bound(proven)
            if x is None:
                return
            self._try_order(x)
            if not self._add_cycles(np.round(x) if integer else x):
                return

    def _optimum(self, integer: bool) -> tuple[Floats | None, float | None]:
        """The optimum with the cycles so far, and what it proves; None where the time was over before."""
        edges = np.fromiter((e for row in self.rows for e in row), np.int32)  # as HiGHS counts
        start = np.concatenate(([0], np.cumsum([len(row) for row in self.rows]))).astype(np.int32)
        matrix = csr_array((np.ones(len(edges)), edges, start), shape=(len(self.rows), len(self.weight)))
        found = milp(
            self.weight,
            integrality=np.full(len(self.weight), int(integer)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, lb=1.0),
            options={"time_limit": max(self.deadline - time.monotonic(), 0.01), "mip_rel_gap": 0.0},
        )
        if integer:
            return found.x, found.mip_dual_bound
        return (found.x, found.fun) if found.status == 0 else (None, None)

    def _raise_bound(self, proven: float) -> None:
        proven -= TOLERANCE
        if self.grid > 0:
            proven = self.grid * np.ceil(proven / self.grid)
        self.lower = max(self.lower, min(proven, self.loss))

    def _try_order(self, x: Floats) -> None:
        """Keep the order that the edges with x < ½ give, if it is better; within their cycles nothing moves."""
        kept = x < 0.5
        above, below = self.winner[kept], self.loser[kept]
        link = csr_array((np.ones(len(above)), (above, below)), shape=(self.m, self.m))
        _, strong = connected_components(link, connection="strong")
        after: dict[int, set[int]] = {int(c): set() for c in strong}
        for v, w in zip(strong[above], strong[below]):
            if v != w:
                after[int(w)].add(int(v))
        turn = {c: at for at, c in enumerate(TopologicalSorter(after).static_order())}
        order = np.lexsort((self.place, np.array([turn[int(c)] for c in strong])))
        place = np.empty(self.m, np.int64)
        place[order] = np.arange(self.m)
        loss = self._charged(place)
        if loss < self.loss:
            self.place, self.loss = place, loss

    def _add_cycles(self, x: Floats) -> bool:
        """Add a shortest cycle through each edge, where its x add up to less than 1; whether there was any."""
        length = np.maximum(x, 0.0) + 1e-9  # of equal ones the cycle with the fewest edges
        ends = (
            self.winner.astype(np.int32),
            self.loser.astype(np.int32),
        )  # the widest that dijkstra of SciPy 1.13 takes
        graph = csr_array((length, ends), shape=(self.m, self.m))
        distance, before = dijkstra(graph, return_predecessors=True)
        around = length + distance[self.loser, self.winner]
        found = len(self.rows)
        for e in np.flatnonzero(around < 1 - VIOLATED):
            v, w = int(self.winner[e]), int(self.loser[e])
            cycle = [int(e)]
            while v != w:
                u = int(before[w, v])
                cycle.append(int(self.edge[u, v]))
                v = u
            self.rows.setdefault(tuple(sorted(cycle)))
        return len(self.rows) > found

    def _charged(self, place: Nodes) -> float:
        return float(self.weight[place[self.winner] > place[self.loser]].sum())

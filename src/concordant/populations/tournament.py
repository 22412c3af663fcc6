"""Who beats whom: the row-sum condition (16) of ICML, the Condorcet winner, the Smith set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.differences import LEVEL
from concordant.listing import entry_owner
from concordant.populations.neighbours import Neighbours
from concordant.populations.verdicts import FAILS, HOLDS, UNDETERMINED

__all__ = ["RowSums", "Winners", "row_sums", "winners"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Nodes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RowSums:
    """Condition (16): Σ_j d_ij > Σ_j d_kj whenever d_ik > 0; arrays have one entry (row) per graph."""

    holds: Flags
    violated: Nodes
    """Edges i → k whose sums are not in this order."""
    worst: Nodes
    """(graphs, 2) the nodes i, k with the largest Σ_j d_kj − Σ_j d_ij; −1 where the condition holds."""
    excess: Floats
    """That difference (0 where the sums are level); NaN where the condition holds."""


@dataclass(frozen=True, eq=False)
class Winners:
    """The item that beats all others, and the smallest set that does; arrays have one entry per graph."""

    verdict: NDArray[np.int8]
    """Place in ``VERDICTS``: there is a Condorcet winner, there is none, judgments that are missing would decide."""
    winner: Nodes
    """Its node, −1 where there is none or it is not known."""
    candidates: Nodes
    """Items that no judged pair rules out: 1 where there is a winner, 0 where there is none."""
    smith: Nodes
    """Items of the Smith set."""
    member: Flags
    """(nodes,) in the Smith set of its graph."""


def row_sums(judged: Neighbours) -> RowSums:
    """Check (16) for every edge; sums count as different from 1e-12 of the weight of both items' pairs."""
    nodes = judged.nodes
    row = entry_owner(judged.start)
    total = np.bincount(row, judged.net, nodes)
    weight = np.bincount(row, judged.weight, nodes)
    i, k, _ = judged.edges
    gap = total[k] - total[i]
    wrong = np.flatnonzero(gap >= -LEVEL * (weight[i] + weight[k]))
    graph = judged.owner[i[wrong]]
    graphs = len(judged.node_start) - 1
    violated = np.bincount(graph, minlength=graphs)
    worst, excess = np.full((graphs, 2), -1, np.int64), np.full(graphs, np.nan)
    wrong = wrong[np.lexsort((-gap[wrong], graph))]  # stable: the first edge among equal gaps
    head = wrong[np.flatnonzero(np.diff(judged.owner[i[wrong]], prepend=-1))]
    where = judged.owner[i[head]]
    worst[where] = np.column_stack((i[head], k[head]))
    level = np.abs(gap[head]) <= LEVEL * (weight[i[head]] + weight[k[head]])
    excess[where] = np.where(level, 0.0, gap[head])
    return RowSums(violated == 0, violated, worst, excess)


def winners(judged: Neighbours) -> Winners:
    """Find the Condorcet winner and the Smith set of every graph."""
    start, owner = judged.node_start, judged.owner
    graphs, size = len(start) - 1, np.diff(start)
    possible = judged.start[1:] == judged.middle  # no judged pair that is level or lost
    candidates = np.bincount(owner[possible], minlength=graphs)
    wins = np.flatnonzero(possible & (judged.beaten == size[owner] - 1))
    winner = np.full(graphs, -1, np.int64)
    winner[owner[wins]] = wins
    candidates[owner[wins]] = 1
    verdict = np.where(winner >= 0, HOLDS, np.where(candidates == 0, FAILS, UNDETERMINED)).astype(np.int8)
    smith, member = _smith(judged)
    return Winners(verdict, winner, candidates, smith, member)


def _smith(judged: Neighbours) -> tuple[Nodes, Flags]:
    """The smallest nonempty set of each graph whose members beat all outside it: (its size, is each node in it).

    A member of a dominating set of s among m items beats at least the m − s outside, who beat at most the m − s − 1
    others of their own: a dominating set is what comes first when items are ordered by how many they beat. The first s
    of this order are one when s (m − s) edges lead out of them.
    """
    start, owner, wins = judged.node_start, judged.owner, judged.beaten
    order = np.lexsort((-wins, owner))
    place = np.empty(judged.nodes, np.int64)
    place[order] = np.arange(judged.nodes)
    i, k, _ = judged.edges
    inside = np.bincount(np.maximum(place[i], place[k]), minlength=judged.nodes)  # joins at the later of both
    leaving = np.concatenate(([0], np.cumsum(wins[order] - inside)))
    graph = owner  # of the places: graphs stay in order
    taken = np.arange(judged.nodes) - start[graph] + 1
    out = leaving[1:] - leaving[start[graph]]
    dominates = np.flatnonzero(out == taken * (np.diff(start)[graph] - taken))
    head = dominates[np.flatnonzero(np.diff(graph[dominates], prepend=-1))]
    smith = np.zeros(len(start) - 1, np.int64)
    smith[graph[head]] = taken[head]
    return smith, place - start[owner] < smith[owner]

"""The one form that all surrogates share: weighted edges, a margin function and a penalty on values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.listing import entry_owner
from concordant.surrogates.margins import Margin, Penalty

__all__ = ["Arcs", "GainsToAll", "Objective"]

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Arcs:
    """What a surrogate makes of its source: directed edges, and where values are pulled to.

    Shapes: ``winner``, ``loser``, ``weight``, ``margin`` (edges,); ``pull``, ``target`` (nodes,).
    """

    node_start: Nodes
    winner: Nodes
    loser: Nodes
    weight: Floats
    margin: Floats
    """Margin asked for beyond that of φ: h(Y_ij) in AoS (13), else 0."""
    pull: Floats
    """ν_i ≥ 0, the strength of the penalty on the value of each node."""
    target: Floats
    """Where the penalty is least."""

    @classmethod
    def plain(
        cls,
        node_start: Nodes,
        winner: Nodes,
        loser: Nodes,
        weight: Floats,
        *,
        margin: Floats | None = None,
        pull: float = 0.0,
    ) -> Arcs:
        """Edges of positive weight, with one strength of the penalty for all nodes and target 0."""
        keep = weight != 0
        nodes = int(node_start[-1])
        shift = np.zeros(len(weight)) if margin is None else margin
        return cls(
            node_start, winner[keep], loser[keep], weight[keep], shift[keep], np.full(nodes, pull), np.zeros(nodes)
        )

    def only(self, keep: NDArray[np.bool_]) -> Arcs:
        """The same with some of the edges."""
        return replace(
            self,
            winner=self.winner[keep],
            loser=self.loser[keep],
            weight=self.weight[keep],
            margin=self.margin[keep],
        )


class GainsToAll(Arcs):
    """Arcs of weight g_j ≥ 0 from each node j to every other of its graph; the m² of them are made when they are read.

    >>> arcs = GainsToAll(np.array([0, 3]), np.array([0.5, 0.0, 2.0]))
    >>> arcs.winner.tolist(), arcs.loser.tolist(), arcs.weight.tolist()
    ([0, 0, 2, 2], [1, 2, 0, 1], [0.5, 0.5, 2.0, 2.0])
    """

    gain: Floats

    def __init__(self, node_start: Nodes, gain: Floats) -> None:
        nothing = np.zeros(int(node_start[-1]))
        for name, column in (("node_start", node_start), ("gain", gain), ("pull", nothing), ("target", nothing)):
            object.__setattr__(self, name, column)

    def __getattr__(self, name: str) -> Any:
        if name not in ("winner", "loser", "weight", "margin"):
            raise AttributeError(name)
        size = np.diff(self.node_start)
        start = np.repeat(self.node_start[:-1], size)
        each = np.where(self.gain != 0, np.repeat(size, size), 0)  # arcs of every node, to itself included
        winner = np.repeat(np.arange(len(each)), each)
        loser = np.arange(len(winner)) - np.repeat(np.cumsum(each) - each - start, each)
        others = winner != loser
        found = Arcs.plain(self.node_start, winner[others], loser[others], self.gain[winner[others]])
        for each_name in ("winner", "loser", "weight", "margin"):
            object.__setattr__(self, each_name, getattr(found, each_name))
        return getattr(found, name)

    def only(self, keep: NDArray[np.bool_]) -> Arcs:
        """Plain arcs."""
        return Arcs(
            self.node_start, self.winner[keep], self.loser[keep], self.weight[keep], self.margin[keep], self.pull,
            self.target,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Objective:
    """Conditional surrogate risk of each graph: Σ_e w_e φ(α_i − α_j − h_e) + Σ_i ν_i r(α_i − t_i), e from i to j.

    >>> from concordant.surrogates.registry import surrogate
    >>> from concordant.surrogates.population import Relevance
    >>> regression = surrogate("gain-regression").objective(Relevance.of([1.0, 0.0]), gain="identity")
    >>> regression.value(np.zeros(2)).tolist(), regression.gradient(np.zeros(2)).tolist()
    ([0.25], [-0.5, 0.0])

    Raises UsageError when a weight is negative or not finite (the loss would not be convex, nor bounded below).
    """

    arcs: Arcs
    phi: Margin
    penalty: Penalty

    def __post_init__(self) -> None:
        weight = self.arcs.gain if isinstance(self.arcs, GainsToAll) else self.arcs.weight
        wrong = int((~(weight >= 0) | ~np.isfinite(weight)).sum())
        if wrong:
            raise UsageError(
                f"{wrong:,} of {len(weight):,} edge weights are negative or not finite; "
                "the surrogate would not be bounded below"
            )

    @property
    def nodes(self) -> int:
        return int(self.arcs.node_start[-1])

    def __len__(self) -> int:
        return len(self.arcs.node_start) - 1

    def merged(self) -> Objective:
        """The same with arcs of the same ends and margin as one: many judgments share them, and any work is by arcs."""
        arcs = self.arcs
        key = arcs.winner * self.nodes + arcs.loser
        order = np.lexsort((arcs.margin, key)) if (np.diff(arcs.margin) != 0).any() else np.argsort(key, kind="stable")
        fresh = (np.diff(key[order]) != 0) | (np.diff(arcs.margin[order]) != 0)
        if fresh.all():
            return self
        head = np.concatenate(([0], np.flatnonzero(fresh) + 1))
        one = order[head]
        weight = np.add.reduceat(arcs.weight[order], head)
        merged = Arcs(
            arcs.node_start, arcs.winner[one], arcs.loser[one], weight, arcs.margin[one], arcs.pull, arcs.target
        )
        return replace(self, arcs=merged)

    @cached_property
    def owner(self) -> Nodes:
        """The graph of each node."""
        return entry_owner(self.arcs.node_start)

    @cached_property
    def penalised(self) -> bool:
        """Whether every value is pulled, so that the minimiser is unique."""
        return self.nodes > 0 and bool((self.arcs.pull > 0).all())

    def gaps(self, alpha: Floats) -> Floats:
        """α_winner − α_loser − margin of each edge."""
        return alpha[self.arcs.winner] - alpha[self.arcs.loser] - self.arcs.margin

    def per_group(self, alpha: Floats, group: Nodes, groups: int) -> Floats:
        """Add up the value over groups of nodes that no edge leaves; shape (groups,)."""
        arcs = self.arcs
        edges = np.bincount(group[arcs.winner], arcs.weight * self.phi.value(self.gaps(alpha)), groups)
        if not arcs.pull.any():
            return np.asarray(edges, np.float64)
        values = np.bincount(group, arcs.pull * self.penalty.value(alpha - arcs.target), groups)
        return np.asarray(edges + values, np.float64)

    def value(self, alpha: Floats) -> Floats:
        """Value of each graph at α (nodes,); shape (graphs,)."""
        return self.per_group(alpha, self.owner, len(self))

    def gradient(self, alpha: Floats) -> Floats:
        """Derivative in α (a subgradient where φ has kinks); shape (nodes,)."""
        arcs = self.arcs
        slope = arcs.weight * self.phi.derivative(self.gaps(alpha))
        of_edges = np.bincount(arcs.winner, slope, self.nodes) - np.bincount(arcs.loser, slope, self.nodes)
        return np.asarray(of_edges + arcs.pull * self.penalty.derivative(alpha - arcs.target), np.float64)

    def curvature(self, alpha: Floats) -> tuple[Floats, Floats]:
        """Second derivatives: w_e φ'' of each edge and ν_i r'' of each node (Hessian = Laplacian + diagonal)."""
        arcs = self.arcs
        return (
            arcs.weight * self.phi.second(self.gaps(alpha)),
            arcs.pull * self.penalty.second(alpha - arcs.target),
        )

"""The form that all surrogates share (edges, margin function, penalty), and the populations it is computed from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.losses.pair_losses import PairLoss, Penalty, pair_loss
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.ragged import OnNodes, Ragged

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WeightedEdges(OnNodes):
    """What a surrogate makes of its source: directed edges, and where values are pulled to.

    Shapes: ``winner``, ``loser``, ``weight``, ``offset`` (edges,); ``pull``, ``pulled_to`` (nodes,).
    """

    node_start: Nodes
    winner: Nodes
    loser: Nodes
    weight: Floats
    offset: Floats
    """Margin asked for beyond that of φ: h(Y_ij) in AoS (13), else 0."""
    pull: Floats
    """ν_i ≥ 0, the strength of the penalty on the value of each node."""
    pulled_to: Floats
    """t_i, where the penalty is least."""

    @classmethod
    def of(
        cls,
        node_start: Nodes,
        winner: Nodes,
        loser: Nodes,
        weight: Floats,
        *,
        offset: Floats | None = None,
        pull: float = 0.0,
    ) -> WeightedEdges:
        """Edges of positive weight, with one strength of the penalty for all nodes, pulled to 0."""
        keep = weight != 0
        nodes = int(node_start[-1])
        shift = np.zeros(len(weight)) if offset is None else offset
        return cls(
            node_start, winner[keep], loser[keep], weight[keep], shift[keep], np.full(nodes, pull), np.zeros(nodes)
        )

    def only(self, keep: NDArray[np.bool_]) -> WeightedEdges:
        """The same with some of the edges."""
        return replace(
            self,
            winner=self.winner[keep],
            loser=self.loser[keep],
            weight=self.weight[keep],
            offset=self.offset[keep],
        )


class GainsToAll(WeightedEdges):
    """Edges of weight g_j ≥ 0 from each node j to every other of its graph; the m² of them are made when they are
    read.

    >>> edges = GainsToAll(np.array([0, 3]), np.array([0.5, 0.0, 2.0]))
    >>> edges.winner.tolist(), edges.loser.tolist(), edges.weight.tolist()
    ([0, 0, 2, 2], [1, 2, 0, 1], [0.5, 0.5, 2.0, 2.0])
    """

    gain: Floats

    def __init__(self, node_start: Nodes, gain: Floats) -> None:
        nothing = np.zeros(int(node_start[-1]))
        for name, column in (("node_start", node_start), ("gain", gain), ("pull", nothing), ("pulled_to", nothing)):
            object.__setattr__(self, name, column)

    @cached_property
    def _written_out(self) -> WeightedEdges:
        nodes = self.node_groups
        each = Ragged.of_sizes(np.where(self.gain != 0, nodes.spread(nodes.sizes), 0))  # to itself included
        winner = each.owner
        loser = each.place + nodes.spread(nodes.first)[winner]
        others = winner != loser
        return WeightedEdges.of(self.node_start, winner[others], loser[others], self.gain[winner[others]])

    winner = property(lambda self: self._written_out.winner)
    loser = property(lambda self: self._written_out.loser)
    weight = property(lambda self: self._written_out.weight)
    offset = property(lambda self: self._written_out.offset)

    def only(self, keep: NDArray[np.bool_]) -> WeightedEdges:
        """Plain edges."""
        return self._written_out.only(keep)


@dataclass(frozen=True, eq=False)
class Objective:
    """Conditional surrogate risk of each graph: Σ_e w_e φ(α_i − α_j − h_e) + Σ_i ν_i r(α_i − t_i), e from i to j.

    >>> from concordant.losses.surrogates import surrogate
    >>> from concordant.losses.objective import Relevance
    >>> regression = surrogate("gain-regression").objective(Relevance.of([1.0, 0.0]), gain="identity")
    >>> regression.value(np.zeros(2)).tolist(), regression.gradient(np.zeros(2)).tolist()
    ([0.25], [-0.5, 0.0])

    Raises UsageError when a weight is negative or not finite (the loss would not be convex, nor bounded below).
    """

    edges: WeightedEdges
    phi: PairLoss
    penalty: Penalty

    def __post_init__(self) -> None:
        weight = self.edges.gain if isinstance(self.edges, GainsToAll) else self.edges.weight
        wrong = int((~(weight >= 0) | ~np.isfinite(weight)).sum())
        if wrong:
            raise UsageError(
                f"{wrong:,} of {len(weight):,} edge weights are negative or not finite; "
                "the surrogate would not be bounded below"
            )

    @property
    def nodes(self) -> int:
        return self.edges.nodes

    def __len__(self) -> int:
        return len(self.edges)

    def merged(self) -> Objective:
        """The same with edges of the same ends and offset as one: many judgments share them, all work is by edges."""
        edges = self.edges
        key = edges.winner * self.nodes + edges.loser
        sorter = (
            np.lexsort((edges.offset, key)) if (np.diff(edges.offset) != 0).any() else np.argsort(key, kind="stable")
        )
        fresh = (np.diff(key[sorter]) != 0) | (np.diff(edges.offset[sorter]) != 0)
        if fresh.all():
            return self
        head = np.concatenate(([0], np.flatnonzero(fresh) + 1))
        one = sorter[head]
        weight = np.add.reduceat(edges.weight[sorter], head)
        merged = WeightedEdges(
            edges.node_start,
            edges.winner[one],
            edges.loser[one],
            weight,
            edges.offset[one],
            edges.pull,
            edges.pulled_to,
        )
        return replace(self, edges=merged)

    def as_hinges(self) -> Objective:
        """The same as a sum of hinges, for a piecewise linear φ: an edge for each kink, its weight times the rise."""
        kink, rise = np.array(self.phi.kinks).T[:, :, None]
        hinge, edges = pair_loss("hinge"), self.edges
        if self.phi is hinge:
            return self
        winner, loser = (np.tile(column, len(kink)) for column in (edges.winner, edges.loser))
        weight, offset = (rise * edges.weight).ravel(), (kink - 1.0 + edges.offset).ravel()
        split = WeightedEdges(edges.node_start, winner, loser, weight, offset, edges.pull, edges.pulled_to)
        return Objective(split, hinge, self.penalty)

    @property
    def owner(self) -> Nodes:
        """The graph of each node."""
        return self.edges.owner

    @cached_property
    def penalised(self) -> bool:
        """Whether every value is pulled, so that the minimiser is unique."""
        return self.nodes > 0 and bool((self.edges.pull > 0).all())

    def gaps(self, alpha: Floats) -> Floats:
        """α_winner − α_loser − offset of each edge."""
        return alpha[self.edges.winner] - alpha[self.edges.loser] - self.edges.offset

    def per_group(self, alpha: Floats, group: Nodes, groups: int) -> Floats:
        """Add up the value over groups of nodes that no edge leaves; shape (groups,)."""
        edges = self.edges
        of_edges = np.bincount(group[edges.winner], edges.weight * self.phi.value(self.gaps(alpha)), groups)
        if not edges.pull.any():
            return np.asarray(of_edges, np.float64)
        values = np.bincount(group, edges.pull * self.penalty.value(alpha - edges.pulled_to), groups)
        return np.asarray(of_edges + values, np.float64)

    def value(self, alpha: Floats) -> Floats:
        """Value of each graph at α (nodes,); shape (graphs,)."""
        return self.per_group(alpha, self.owner, len(self))

    def gradient(self, alpha: Floats) -> Floats:
        """Derivative in α (a subgradient where φ has kinks); shape (nodes,)."""
        edges = self.edges
        slope = edges.weight * self.phi.derivative(self.gaps(alpha))
        of_edges = np.bincount(edges.winner, slope, self.nodes) - np.bincount(edges.loser, slope, self.nodes)
        return np.asarray(of_edges + edges.pull * self.penalty.derivative(alpha - edges.pulled_to), np.float64)

    def curvature(self, alpha: Floats) -> tuple[Floats, Floats]:
        """Second derivatives: w_e φ'' of each edge and ν_i r'' of each node (Hessian = Laplacian + diagonal)."""
        edges = self.edges
        return (
            edges.weight * self.phi.second(self.gaps(alpha)),
            edges.pull * self.penalty.second(alpha - edges.pulled_to),
        )


Offsets = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Population(OnNodes):
    """Laws μ of adjacency matrices, one per graph: each edge with its strength Y_ij and the share of judgments with it.

    The mean adjacency Y^μ_ij = Σ share · strength is all that aggregating surrogates read; the others (AoS (12), (13))
    read the edges one by one. Edges are nodes of the batch, as in ``Graphs``.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["x", "x", "y", "x"], ["y", "y", "x", "z"])
    >>> people = Population.of(Batch.whole(votes))
    >>> people.share.tolist(), people.adjacency.above.tolist()
    ([0.5, 0.25, 0.25], [0.5, 0.25])
    """

    node_start: Offsets
    winner: NDArray[np.int64]
    loser: NDArray[np.int64]
    strength: Floats
    """Y_ij of one judgment."""
    share: Floats
    """Probability of a judgment with this edge."""

    @classmethod
    def of(cls, source: Batch | Graphs | Population) -> Population:
        """Take the empirical law of each graph of a batch, or read a mean adjacency.

        A tie is half a win each way. A pair table does not remember the strength of single judgments: its entries
        are read as shares of judgments of strength 1, which changes nothing for surrogates with linear h.
        """
        if isinstance(source, Population):
            return source
        if isinstance(source, Graphs):
            ends = np.concatenate((source.first, source.second)), np.concatenate((source.second, source.first))
            share = np.concatenate((source.above, source.below))
            keep = share > 0
            return cls(source.node_start, ends[0][keep], ends[1][keep], np.ones(int(keep.sum())), share[keep])
        edges = source.edges
        strength = np.where(edges.tie, 0.5 * edges.strength, edges.strength)
        twice = np.concatenate((np.arange(len(edges.tie)), np.flatnonzero(edges.tie)))
        winner = np.concatenate((edges.winner, edges.loser[edges.tie]))
        loser = np.concatenate((edges.loser, edges.winner[edges.tie]))
        return cls._counted(source, winner, loser, strength[twice], source.multiplicity[edges.holder][twice])

    @classmethod
    def _counted(
        cls, source: Batch, winner: NDArray[np.int64], loser: NDArray[np.int64], strength: Floats, count: NDArray[Any]
    ) -> Population:
        """Count edges that are the same before shares are taken: whose judgment each was makes no difference, not even
        by rounding, which could choose among many minimisers."""
        key = winner * np.int64(source.node_start[-1]) + loser
        sorter = np.lexsort((strength, key)) if (np.diff(strength) != 0).any() else np.argsort(key, kind="stable")
        head = np.flatnonzero(np.diff(key[sorter], prepend=-1) | (np.diff(strength[sorter], prepend=-1.0) != 0))
        one = sorter[head]
        number = np.add.reduceat(count[sorter], head) if len(head) else count[:0]
        total = np.maximum(source.judgments, 1)[source.owner[winner[one]]]
        return cls(source.node_start, winner[one], loser[one], strength[one], number / total)

    @cached_property
    def adjacency(self) -> Graphs:
        """The mean adjacency as pair tables."""
        return Graphs.from_edges(self.node_start, self.winner, self.loser, self.share * self.strength)


@dataclass(frozen=True, eq=False)
class Relevance(OnNodes):
    """Laws μ of score vectors s ∈ ℝ^m, one per graph: ``scores`` of shape (draws, nodes), ``share`` of each draw.

    One row is a point law: the complete preference data of AoS §3.3.

    >>> Relevance.of([[2.0, 0.0, 1.1], [0.0, 2.0, 1.1]]).share.tolist()
    [0.5, 0.5]
    """

    node_start: Offsets
    scores: Floats
    share: Floats

    @classmethod
    def of(
        cls,
        scores: Floats | list[float] | list[list[float]],
        node_start: Offsets | None = None,
        share: Floats | None = None,
    ) -> Relevance:
        """Check and complete: scores (nodes,) or (draws, nodes); one graph and equal shares when not given."""
        table = np.atleast_2d(np.asarray(scores, np.float64))
        start = np.array([0, table.shape[1]]) if node_start is None else np.asarray(node_start, np.int64)
        shares = np.full(len(table), 1.0 / len(table)) if share is None else np.asarray(share, np.float64)
        if table.ndim != 2 or start[-1] != table.shape[1] or len(shares) != len(table):
            raise UsageError(
                f"scores have shape {table.shape} but there are {start[-1]} nodes and {len(shares)} shares; "
                "scores must be (draws, nodes) with a share for each draw"
            )
        wrong = int((~np.isfinite(table)).sum())
        if wrong:
            raise UsageError(f"{wrong:,} of {table.size:,} scores are not finite")
        if (shares < 0).any() or not np.isclose(shares.sum(), 1.0):
            raise UsageError(f"shares must be at least 0 and add up to 1; they add up to {shares.sum():g}")
        return cls(start, table, shares)

"""What surrogates are computed from: the judgments' edges before aggregation, their mean, or scores of the items."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.graphs import Batch, Graphs
from concordant.listing import entry_owner

__all__ = ["Population", "Relevance"]

Floats = NDArray[np.float64]
Offsets = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Population:
    """Laws μ of adjacency matrices, one per graph: each edge with its strength Y_ij and the share of judgments with it.

    The mean adjacency Y^μ_ij = Σ share · strength is all that aggregating surrogates read; the others (AoS (12), (13))
    read the edges one by one. Edges are nodes of the batch, as in ``Graphs``.

    >>> from concordant.preferences import Preferences
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
        order = np.lexsort((strength, key)) if (np.diff(strength) != 0).any() else np.argsort(key, kind="stable")
        head = np.flatnonzero(np.diff(key[order], prepend=-1) | (np.diff(strength[order], prepend=-1.0) != 0))
        one = order[head]
        number = np.add.reduceat(count[order], head) if len(head) else count[:0]
        total = np.maximum(source.judgments, 1)[source.owner[winner[one]]]
        return cls(source.node_start, winner[one], loser[one], strength[one], number / total)

    @cached_property
    def adjacency(self) -> Graphs:
        """The mean adjacency as pair tables."""
        return Graphs.from_edges(self.node_start, self.winner, self.loser, self.share * self.strength)


@dataclass(frozen=True, eq=False)
class Relevance:
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

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """The graph of each node."""
        return entry_owner(self.node_start)

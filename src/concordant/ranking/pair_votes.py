"""What each annotator says of each pair: one vote a pair and annotator, however often and strongly it was given.

An annotator's vote on a pair is the side that its judgments, added up, prefer, or neither. Where nobody says who
judged, each judgment is one of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError, did_you_mean
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import OnNodes

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PairVotes(OnNodes):
    """Annotators for and against of every judged pair (first < second), sorted by query, first, second.

    >>> votes = Preferences.from_comparisons(["x", "x", "y"], ["y", "y", "x"], cluster=["u", "u", "v"])
    >>> found = PairVotes.of(Batch.whole(votes))
    >>> found.ahead.tolist(), found.behind.tolist(), found.level.tolist()
    ([1], [1], [0])
    """

    node_start: Ints
    graph: Ints
    first: Ints
    """Node of the batch."""
    second: Ints
    ahead: Ints
    """Annotators who prefer the first."""
    behind: Ints
    """Annotators who prefer the second."""
    level: Ints
    """Annotators who prefer neither."""
    annotators: int | None
    """How many there are in all; None: nobody says who judged."""

    @classmethod
    def of(cls, batch: Batch, annotator: str | None = None) -> PairVotes:
        """Count the annotators of each pair; ``annotator`` names one of several columns of clusters (else the first).

        Errors: InputError for clicks, which are no votes on pairs; UsageError for a column that is not there.
        """
        prefs = batch.prefs
        if prefs.kind == "selections":
            raise InputError("lists with clicks are no votes on pairs: who is passed over was perhaps not seen")
        edges, graphs = batch.edges, batch.graphs
        who = annotators_of(prefs, annotator)
        unit = edges.holder if who is None else who[batch.judgment[edges.holder]].astype(np.int64)
        pair = graphs.pair_of(edges.winner, edges.loser).astype(np.int64)
        units = int(unit.max(initial=0)) + 1
        key, own = np.unique(pair * units + unit, return_inverse=True)
        side = np.where(edges.tie, 0.0, np.where(edges.winner < edges.loser, 1.0, -1.0)) * edges.strength
        if who is not None:
            side = side * batch.multiplicity[edges.holder]
        net = np.bincount(own, side, len(key))
        slight = np.bincount(own, np.abs(side), len(key)) * 1e-12
        times = batch.multiplicity[key % units] if who is None else np.ones(len(key), np.int64)

        def counted(which: NDArray[np.bool_]) -> Ints:
            return np.bincount(key[which] // units, times[which], len(graphs.first)).astype(np.int64)

        ahead, behind, level = map(counted, (net > slight, net < -slight, np.abs(net) <= slight))
        total = None if who is None else len(np.unique(who))
        return cls(graphs.node_start, graphs.graph, graphs.first, graphs.second, ahead, behind, level, total)

    @property
    def sign(self) -> Ints:
        """1 where most annotators prefer the first of a pair, −1 the second, 0 neither."""
        return np.asarray(np.sign(self.ahead - self.behind), np.int64)

    def unanimous(self, least: int = 2) -> NDArray[np.bool_]:
        """Pairs on which so many annotators, and all who judged it, prefer the same item."""
        most = np.maximum(self.ahead, self.behind)
        return np.asarray((most >= least) & (most == self.ahead + self.behind + self.level), bool)

    def directed(self, which: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Return the node that most prefer and the other one, of some of the decided pairs."""
        up = (self.sign > 0)[which]
        first, second = self.first[which], self.second[which]
        return np.where(up, first, second), np.where(up, second, first)

    def copeland(self) -> Ints:
        """Items beaten less items that beat it, of each node: twice Copeland's score less those met."""
        nodes, sign = self.nodes, self.sign
        net = np.bincount(self.first, sign, nodes) - np.bincount(self.second, sign, nodes)
        return net.astype(np.int64)

    def shares(self) -> NDArray[np.float64]:
        """Σ over the others of (for − against)/annotators of the pair, of each node: Borda's score."""
        share = (self.ahead - self.behind) / np.maximum(self.ahead + self.behind + self.level, 1)
        nodes = self.nodes
        return np.asarray(np.bincount(self.first, share, nodes) - np.bincount(self.second, share, nodes), np.float64)


def annotators_of(prefs: Preferences, annotator: str | None = None) -> NDArray[np.int32] | None:
    """Return who made each distinct judgment, by code; None where that is not said. Errors: UsageError."""
    ways, names = prefs.cluster_ways, prefs.cluster_columns
    if annotator is not None and names and annotator not in names:
        raise UsageError(f"no column of annotators {annotator!r}: {did_you_mean(annotator, names)}")
    if annotator is not None and not ways:
        raise UsageError(f"annotator {annotator!r}: these preferences do not say who judged")
    return ways[names.index(annotator) if annotator is not None and names else 0] if ways else None

"""Judgments as choices: of some alternatives the first was taken, with probability ∝ e^utility.

A win is a choice of two, a tie with a parameter of its own (Davidson) one of three, a list one choice for each item of
a better tier, against all below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.preferences.connectivity import Connectivity
from concordant.preferences.counts import rows_alike
from concordant.preferences.graphs import Batch
from concordant.preferences.ragged import Ragged
from concordant.ranking.cumulative import Graded
from concordant.ranking.ranked_lists import Rankings
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Choices:
    """The judgments of a batch as choices: of some alternatives the first was taken, with probability ∝ e^utility.

    The utility of an alternative is the mean score of its two nodes (the same twice, but for ties) and an offset.
    """

    start: Ints
    """Alternatives of choice k are start[k]:start[k + 1]."""
    node: Ints
    """Shape (alternatives, 2)."""
    offset: Floats
    weight: Floats
    """Shape (choices, 2), on the way down from the item that was taken, and up from those that were not."""

    @classmethod
    def of(cls, batch: Batch, scores: Scores, linked: Connectivity, *, lists: bool, once: bool) -> Choices:
        """Read pairs, or lists stage by stage; ``once``: each judgment or cluster counts once for whom it separates."""
        holder, start, node, offset, mass = _stages(batch) if lists else _pairs(batch, scores)
        weight = np.column_stack([mass, mass])
        if once:
            group, block = Ragged(start), linked.block[node].astype(np.int64)
            apart = group.most((block != block[start[:-1]].repeat(group.sizes, axis=0)).any(axis=1).astype(float)) > 0
            cluster, number = clusters_of(batch), batch.multiplicity[holder].astype(float)
            drawn = holder if cluster is None else cluster[holder]
            draws = batch.multiplicity[holder] if cluster is None else 1.0
            drawn = drawn + (int(drawn.max(initial=0)) + 1) * batch.graph[holder]  # whoever judges in several queries
            ends = block[start[:-1], 0], np.zeros(len(holder), np.int64) if lists else block[start[1:] - 1, 1]
            for side, end in enumerate(ends):
                _, key = np.unique(drawn * (int(block.max(initial=0)) + 1) + end, return_inverse=True)
                share = np.bincount(key, np.where(apart, number, 0.0))[key]
                weight[:, side] = np.where(apart, draws * number / np.where(share > 0, share, 1.0), mass)
        return cls(start, node, offset, weight) if lists else cls(start, node, offset, weight).merged()

    def merged(self) -> Choices:
        """Equal choices as one (all have the same number of alternatives)."""
        wide = int(self.start[1]) if len(self.start) > 1 else 1
        if wide == 2 and not self.offset.any():  # wins alone: the same by two numbers, and sooner
            kept, where = rows_alike(self.node[::2, 0], self.node[1::2, 0])
        else:
            kept, where = rows_alike(*self.node.reshape(-1, 2 * wide).T, *self.offset.reshape(-1, wide).T)
        rows = (kept[:, None] * wide + np.arange(wide)).ravel()
        weight = np.stack([np.bincount(where, column, len(kept)).astype(float) for column in self.weight.T], 1)
        return Choices(wide * np.arange(len(kept) + 1), self.node[rows], self.offset[rows], weight)


def clusters_of(batch: Batch) -> Ints | None:
    """Cluster of each judgment of the batch; of several ways that with the fewest in its graph."""
    ways = [codes[batch.judgment].astype(np.int64) for codes in batch.prefs.cluster_ways]
    if len(ways) < 2:
        return ways[0] if ways else None
    keys = [np.unique(batch.graph * (int(codes.max(initial=0)) + 1) + codes) for codes in ways]
    numbers = [
        np.bincount(key // (int(codes.max(initial=0)) + 1), minlength=len(batch))
        for key, codes in zip(keys, ways, strict=True)
    ]
    return np.asarray(np.choose(np.argmin(numbers, axis=0)[batch.graph], ways), np.int64)


def _pairs(batch: Batch, scores: Scores) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Holder, offsets, nodes, offsets of utilities and weight of each choice: win or loss, or with Davidson a tie."""
    if scores.options.get("ties") == "cumulative":
        return Graded.fitted(batch, scores.coefficients).choices(scores.coefficients)
    edges, graph = batch.edges, batch.graph[batch.edges.holder]
    mass = edges.strength * batch.multiplicity[edges.holder]
    lead, zero = np.zeros(len(mass)), np.zeros(len(mass))
    if scores.options.get("covariates") and edges.covariates is not None:
        for i, name in enumerate(batch.prefs.covariate_names):
            lead += edges.covariates[:, i] * scores.coefficients[name][graph]
    one, other = (np.column_stack([x, x]) for x in (edges.winner, edges.loser))
    log_nu = scores.coefficients.get("ties")
    if scores.options.get("ties") != "davidson" or log_nu is None:
        tied = np.flatnonzero(edges.tie)  # half a win each way
        node = np.concatenate([np.stack([one, other], 1), np.stack([other, one], 1)[tied]])
        offset = np.concatenate([np.column_stack([lead, zero]), np.column_stack([zero, lead])[tied]])
        share = np.concatenate([np.where(edges.tie, 0.5, 1.0) * mass, 0.5 * mass[tied]])
        holder = np.concatenate([edges.holder, edges.holder[tied]])
    else:
        half = 0.5 * lead + log_nu[graph]
        level = np.column_stack([edges.winner, edges.loser])
        by_tie = edges.tie[:, None]
        node = np.where(by_tie[:, :, None], np.stack([level, one, other], 1), np.stack([one, level, other], 1))
        offset = np.where(by_tie, np.column_stack([half, lead, zero]), np.column_stack([lead, half, zero]))
        share, holder = mass, edges.holder
    return holder, node.shape[1] * np.arange(len(share) + 1), node.reshape(-1, 2), offset.ravel(), share


def _stages(batch: Batch) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """The same of lists: each item of a better tier against all below; those of a tier share the list's weight."""
    lists = Rankings.of(batch)
    entry = np.flatnonzero(lists.below > 0) if not lists.top else lists.start[:-1]
    end = lists.start[1:][lists.row[entry]]
    rest = Ragged.of_sizes(lists.below[entry])
    size = (end - lists.groups.spread(lists.start[:-1])[entry] - lists.above[entry] - lists.below[entry]).astype(float)
    start = Ragged.of_sizes(1 + rest.sizes).start
    node = np.empty(int(start[-1]), np.int64)
    node[start[:-1]] = lists.node[entry]
    after = np.ones(len(node), bool)
    after[start[:-1]] = False
    node[after] = lists.node[rest.spread(end - rest.sizes) + rest.place]
    weight = lists.weight[lists.row[entry]] / size
    return lists.holder[lists.row[entry]], start, np.column_stack([node, node]), np.zeros(len(node)), weight

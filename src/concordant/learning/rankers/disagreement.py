"""How far an order agrees with judgments that it was not fitted to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.preferences import Lists, Preferences
from concordant.preferences.ragged import Ragged
from concordant.ranking.ranked_lists import examinations, several_clicks

Floats = NDArray[np.float64]

FEW_QUERIES = 10
"""Queries from which on what is about new items is judged on whole queries held out, and not on judgments."""


class Disagreement:
    """Generalised pairwise disagreement of scores with judgments.

    The rate of a query is the strength of its edges that the scores contradict, a tie in score counting ½, over the
    strength of all; the loss is the mean of the rates of the queries that have edges, weighted by their judgments. For
    comparisons of equal strength it is the share of comparisons that the scores get wrong. (A judged tie is half an
    edge each way, so it costs ½ whatever the scores.)

    In click logs (selections) the item above is passed over whenever the one below is clicked, so edges within one list
    always speak against the order shown. There the edges are between lists: j over l for every two lists of which one
    has j clicked and the other l examined and passed over. Under the cascade model their expectations both ways stand
    as p_j(1 − p_l) to p_l(1 − p_j), in whatever order the items were shown; a query shown once has none.

    >>> votes = Preferences.from_comparisons(["x", "x", "x", "y"], ["y", "y", "z", "x"])
    >>> Disagreement(votes).loss(np.array([2.0, 1.0, 0.0]))  # scores of x, y, z: one of four is wrong
    0.25
    """

    def __init__(self, held: Preferences, weight: Floats | None = None) -> None:
        """``weight`` is one per query of ``held``; ones when not given."""
        self.held, self.given = held, weight
        batch = self.batch = Batch.whole(held)
        graphs = _between_lists(batch) if held.kind == "selections" else Graphs.of(batch)
        self.first, self.second = graphs.first, graphs.second
        self.above, self.below = graphs.above, graphs.below
        self.pairs = graphs.pairs
        self.total = self.pairs.sums(self.above + self.below)
        judgments = held.judgments * (1.0 if weight is None else weight)
        self.weight = np.where(self.total > 0, judgments, 0.0)

    @property
    def edges(self) -> int:
        """Pairs of items that the judgments speak of, in queries of positive weight."""
        return int((self.weight[self.pairs.owner] > 0).sum())

    def rates(self, scores: Floats) -> Floats:
        """Return the rate of each query, NaN where it has no edge; ``scores`` are those of ``Batch.whole(held)``."""
        gap = scores[self.first] - scores[self.second]
        wrong = np.where(gap > 0, self.below, np.where(gap < 0, self.above, 0.5 * (self.above + self.below)))
        wrong = self.pairs.sums(wrong)
        rate = np.full(len(self.total), np.nan)
        np.divide(wrong, self.total, out=rate, where=self.total > 0)
        return rate

    def loss(self, scores: Floats) -> float:
        """Return the mean rate, weighted by judgments; NaN where no query has an edge."""
        whole = float(self.weight.sum())
        if whole <= 0:
            return float("nan")
        return float((np.nan_to_num(self.rates(scores)) * self.weight).sum() / whole)

    @property
    def additive(self) -> bool:
        """Whether the loss is a sum over judgments; in click logs it is one over pairs of lists."""
        return self.held.kind != "selections"

    def of_judgments(self, scores: Floats, others: Floats) -> Floats:
        """Return what a draw of each distinct judgment adds to (loss(scores) − loss(others)) · Σ weight.

        >>> votes = Preferences.from_comparisons(["x", "x", "x", "y"], ["y", "y", "z", "x"])
        >>> Disagreement(votes).of_judgments(np.array([2.0, 1.0, 0.0]), np.array([1.0, 2.0, 0.0])).tolist()
        [-1.0, 0.0, 1.0]
        """
        edges = self.batch.edges
        lost = 0.5 * (
            np.sign(scores[edges.loser] - scores[edges.winner]) - np.sign(others[edges.loser] - others[edges.winner])
        )
        lost *= np.where(edges.tie, 0.0, edges.strength)
        rate = np.divide(self.weight, self.total, out=np.zeros_like(self.weight), where=self.total > 0)
        lost *= rate[self.batch.graph[edges.holder]]
        return np.bincount(edges.holder, lost, len(self.batch.judgment)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class BetweenLists:
    """What ``Disagreement`` makes of the clicks of one query, without its pairs; those of parts of the lists add up."""

    clicks: Floats
    """Of each item; ``passed``: how often it was examined and passed over."""
    passed: Floats
    within: float
    """Strength of the pairs of which either item is in the same list, and of those that each of some scorers has the
    wrong way round."""
    wrong: Floats

    @classmethod
    def of(cls, prefs: Preferences, scores: Floats) -> BetweenLists:
        """Of some lists of a query and scores of its items, shape (items, scorers)."""
        batch = Batch.whole(prefs)
        clicks, examined = examinations(batch)
        winner, loser, times = _within_lists(batch)
        gap = scores[winner] - scores[loser]
        return cls(clicks, examined - clicks, float(times.sum()), times @ np.where(gap < 0, 1.0, 0.5 * (gap == 0)))

    def __add__(self, other: BetweenLists) -> BetweenLists:
        within, wrong = self.within + other.within, self.wrong + other.wrong
        return BetweenLists(self.clicks + other.clicks, self.passed + other.passed, within, wrong)

    def strength(self, scores: Floats) -> tuple[float, Floats]:
        """Strength of all pairs, and of those that each scorer has the wrong way round.

        >>> log = Preferences.from_selections(None, [1, 1, 2, 2], [1, 2] * 2, list("xyyx"), [1, 0, 0, 0])
        >>> BetweenLists.of(log, np.array([[1.0], [2.0]])).strength(np.array([[1.0], [2.0]]))
        (1.0, array([1.]))
        """
        total = float(self.clicks @ (self.passed.sum() - self.passed))
        return total - self.within, np.array([self._wrong(one) for one in scores.T]) - self.wrong

    def _wrong(self, scores: Floats) -> float:
        """Of all pairs of a click and a pass, those within one list, too."""
        _, level = np.unique(scores, return_inverse=True)
        at = np.bincount(level, self.passed)
        above = at.sum() - np.cumsum(at)
        return float(self.clicks @ (above[level] + 0.5 * (at[level] - self.passed)))


def _between_lists(batch: Batch) -> Graphs:
    """Edges from what one list clicked to what another passed over: all such pairs less those within one list."""
    clicks, examined = examinations(batch)
    passed = examined - clicks
    clicked = np.flatnonzero(clicks > 0)
    others, loser = batch.node_groups.take(batch.owner[clicked])
    winner = others.spread(clicked)
    keep = (winner != loser) & (passed[loser] > 0)
    winner, loser = winner[keep], loser[keep]
    ours, theirs, within = _within_lists(batch)
    return Graphs.from_edges(
        batch.node_start,
        np.concatenate((winner, ours)),
        np.concatenate((loser, theirs)),
        np.concatenate((clicks[winner] * passed[loser], -within)),
    )


def _within_lists(batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """What a list clicked over what it passed over at or above its last click, and how often; nodes."""
    prefs = batch.prefs
    if not isinstance(prefs, Lists) or not several_clicks(prefs):
        edges = batch.edges
        return edges.winner, edges.loser, batch.multiplicity[edges.holder].astype(np.float64)
    lists, node, value = batch.entries(prefs)
    clicked = np.flatnonzero(value > 0)
    owner = lists.owner[clicked]
    last = np.zeros(len(lists), np.int64)
    last[owner] = clicked + 1
    reached = Ragged.of_sizes(last[owner] - lists.first[owner])
    winner, loser = reached.spread(clicked), reached.spread(lists.first[owner]) + reached.place
    keep = value[loser] <= 0
    times = batch.multiplicity[lists.owner[winner[keep]]].astype(np.float64)
    return node[winner[keep]], node[loser[keep]], times

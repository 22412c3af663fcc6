"""The order of a list that is left when some of its pairs are declined: tiers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from concordant.abstention.held_pairs import pair_distances
from concordant.abstention.rule import PairDecisions, Rule
from concordant.errors import InputError
from concordant.learning.features.matrix import Features, Matrix
from concordant.learning.rankers.validation import rows_of
from concordant.learning.scikit import check_is_fitted
from concordant.preferences.ragged import Ragged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
AT_ONCE = 1 << 17
"""Pairs that are looked at together."""
FIRST, LISTED = 128, 1 << 23
"""How far apart places are when near pairs are looked for in a tree instead, and how many pairs may come from it."""
MOST = 1 << 27
"""Decided pairs that are listed."""


def tiers_of(rule: Rule, scores: Floats, Z: Matrix | None) -> Ints:
    """Return the tier of each item of one list, 1 the highest: the finest order in tiers that the rule believes in.

    Tiers are sound when every pair of items of different tiers is decided, and for the one in the higher tier. There
    is a finest sound way, and this is it. A decided pair has the higher score above, so in any sound way the tiers
    are runs of the list sorted by score (scores that are equal are never parted). A cut between two places of the
    sorted list is *closed* when some pair across it is not decided. No sound way can cut there. And cutting at all open
    places is sound: two items of different tiers have an open cut between them, so their pair is decided, by score.

    Pairs are looked at from neighbours outwards, and only while there is an open cut between them. By risk, neighbours
    are enough, since the risk never rises with the score difference. Where most cuts stay open, few pairs are near,
    and those further apart come from a tree. Memory is bounded; time is n² pairs at worst.

    >>> rule = Rule("distance", "inf", 0.1, gamma=1.0)
    >>> tiers_of(rule, np.array([4.0, 3.0, 2.0, 1.0]), np.array([[0.0], [5.0], [0.5], [9.0]])).tolist()
    [1, 1, 1, 2]
    """
    size = len(scores)
    if size == 0:
        return np.zeros(0, np.int64)
    order = np.argsort(-scores, kind="stable")
    closed = _closed_cuts(rule, scores, Z, order)
    tier = np.empty(size, np.int64)
    tier[order] = 1 + np.concatenate(([0], np.cumsum(1 - closed[:-1])))
    return tier


def _closed_cuts(rule: Rule, scores: Floats, Z: Matrix | None, order: Ints) -> Ints:
    """Whether the cut after each place of the sorted list is closed, 1 or 0."""
    size = len(order)
    closed = np.zeros(size, np.int64)
    if rule.by == "risk":
        return _closed(closed, *_undecided(rule, scores, Z, order, *_pairs_apart(1, min(2, size), size)))
    step = max(1, AT_ONCE // size)
    for near in range(1, size, step):
        open_before = np.concatenate(([0], np.cumsum(1 - closed[:-1])))
        if open_before[-1] == 0:
            break
        if near - step < FIRST <= near and open_before[-1] > size / 20:
            pairs = _near_pairs(rule, Z, order)
            if pairs is not None:
                return _closed(closed, *_undecided(rule, scores, Z, order, *pairs))
        high, low = _pairs_apart(near, min(near + step, size), size)
        across = open_before[low] > open_before[high]
        closed = _closed(closed, *_undecided(rule, scores, Z, order, high[across], low[across]))
    return closed


def decided_pairs(rule: Rule, scores: Floats, Z: Matrix | None, start: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Return (above, below), the rows of every decided pair of each list; list q is rows[start[q]:start[q + 1]].

    Errors (InputError): more pairs than can be listed.
    """
    size = Ragged(start).sizes.astype(np.float64)
    if (pairs := float((size * (size - 1) / 2).sum())) > MOST:
        raise InputError(f"{pairs:,.0f} pairs are more than can be listed ({MOST:,}); tiers need no list of them")
    above, below = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for begin, end in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
        held = rows[begin:end]
        held = held[np.argsort(-scores[held], kind="stable")]
        high, low = np.triu_indices(len(held), 1)
        keep = _decided(rule, scores, Z, held[high], held[low])
        above.append(held[high[keep]])
        below.append(held[low[keep]])
    return np.concatenate(above), np.concatenate(below)


def _decided(rule: Rule, scores: Floats, Z: Matrix | None, a: Ints, b: Ints) -> NDArray[np.bool_]:
    """Whether a is said to be above b; ``scores[a]`` are at least ``scores[b]``."""
    difference = scores[a] - scores[b]
    distance = difference if Z is None or rule.by == "risk" else pair_distances(Z, Z, rule.norm, a, b)
    return (difference > 0) & ~rule.declines(difference, distance)


def _undecided(rule: Rule, scores: Floats, Z: Matrix | None, order: Ints, high: Ints, low: Ints) -> tuple[Ints, Ints]:
    """The pairs of places of the sorted list that are not decided."""
    keep = ~_decided(rule, scores, Z, order[high], order[low])
    return high[keep], low[keep]


def _closed(closed: Ints, high: Ints, low: Ints) -> Ints:
    """Close the cuts between the places of each pair that is not decided."""
    change = np.bincount(high, minlength=len(closed)) - np.bincount(low, minlength=len(closed))
    return np.maximum(closed, np.cumsum(change) > 0)


def _near_pairs(rule: Rule, Z: Matrix | None, order: Ints) -> tuple[Ints, Ints] | None:
    """Places (higher, lower) of all pairs that may be near; None where there are too many, or nothing is near."""
    if rule.by == "risk" or Z is None or rule.gamma is None or not np.isfinite(rule.gamma):
        return None
    tree = scipy.spatial.KDTree(np.asarray(Z[order], np.float64))
    reach, p = rule.gamma * (1 + 1e-9), float(rule.norm)
    if tree.count_neighbors(tree, reach, p) - len(order) > 2 * LISTED:
        return None
    pairs = tree.query_pairs(reach, p, output_type="ndarray").astype(np.int64)
    return pairs.min(axis=1, initial=len(order)), pairs.max(axis=1, initial=0)


def _pairs_apart(near: int, far: int, size: int) -> tuple[Ints, Ints]:
    """Places (i, i + k) for k from ``near`` to ``far`` − 1."""
    apart = np.arange(near, far)
    of_k = Ragged.of_sizes(size - apart)
    return of_k.place, of_k.place + of_k.spread(apart)


class PartialOrders(ABC):
    """The order that is left of pairs and lists when some pairs are declined."""

    rule_: Rule
    missing_: Any
    _names: Any

    @abstractmethod
    def _seen(self, features: Features, named: bool) -> tuple[Floats, Matrix]:
        """Scores of rows, and their features as distances see them."""

    def predict_pairs(self, a: Any, b: Any) -> NDArray[np.int8]:
        """Return for each pair of rows +1 (b above a), −1 (a above b) or 0 (declined).

        ``a`` and ``b`` have equally many rows, in any form that ``predict`` takes. Equal scores of a pair that is not
        declined give +1, the paper's sign(0) = +1, whichever comes first; ``explain_pairs`` marks them, and tiers
        never part them.
        """
        return self.explain_pairs(a, b).decision

    def explain_pairs(self, a: Any, b: Any) -> PairDecisions:
        """Return what is said of each pair with its reason, score difference, distance and estimated risk."""
        check_is_fitted(self, "rule_")
        (scores_a, Z_a), (scores_b, Z_b) = (self._seen(*rows_of(X, self.missing_, self._names)) for X in (a, b))
        if len(scores_a) != len(scores_b):
            raise InputError(f"pairs of rows: a has {len(scores_a):,} rows, b has {len(scores_b):,}")
        return self.rule_.decide(scores_b - scores_a, pair_distances(Z_a, Z_b, self.rule_.norm))

    def tiers(self, X: Any) -> Ints:
        """Return the tier of each row within its query, 1 the highest; rows that say no query are one list.

        Every two items of different tiers are ordered by the rule, and so as the tiers say; of one tier nothing is
        said. This is the finest such order (``tiers_of`` has the proof).
        """
        scores, Z, start, rows = self._lists(X)
        found = np.empty(len(scores), np.int64)
        for begin, end in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
            held = rows[begin:end]
            found[held] = tiers_of(self.rule_, scores[held], Z[held])
        return found

    def decided_pairs(self, X: Any) -> tuple[Ints, Ints]:
        """Return (above, below): the row numbers of every pair that is ordered; it may not be transitive.

        If x is above y and y above z, x has the higher score than z, but may be too near it to be ordered.
        """
        scores, Z, start, rows = self._lists(X)
        return decided_pairs(self.rule_, scores, Z, start, rows)

    def _lists(self, X: Any) -> tuple[Floats, Matrix, Ints, Ints]:
        """Scores, normalised features, and the rows of each query."""
        check_is_fitted(self, "rule_")
        features, named = rows_of(X, self.missing_, self._names)
        scores, Z = self._seen(features, named)
        if features.query is None:
            return scores, Z, np.array([0, len(scores)]), np.arange(len(scores))
        start = Ragged.counted(features.query, len(features.queries)).start
        return scores, Z, start, np.argsort(features.query, kind="stable")

"""Scores to ranks, pairs and tiers: functions of plain arrays, without a word of HTTP."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from concordant.abstaining.distances import pair_distances
from concordant.abstaining.rule import PairDecisions, Rule
from concordant.features.matrix import Matrix

__all__ = ["NEVER", "decided", "ordered"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NEVER = Rule("distance", "inf", 0.0)
"""The rule of a ranker that declines no pair."""


def ordered(scores: Floats) -> tuple[Ints, Ints]:
    """Return (order, rank): the rows from best to worst, and the rank of each of them in that order.

    The best has rank 1 and equal scores share the best of their ranks; they stay in the order they came in.

    >>> [found.tolist() for found in ordered(np.array([1.0, 3.0, 1.0, 2.0]))]
    [[1, 3, 0, 2], [1, 2, 3, 3]]
    """
    order = np.argsort(-scores, kind="stable")
    new = np.ones(len(order), bool)
    np.not_equal(scores[order[1:]], scores[order[:-1]], out=new[1:])
    return order, 1 + np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))


def decided(rule: Rule, scores: Floats, Z: Matrix | None, first: Ints, second: Ints) -> PairDecisions:
    """Return what the rule says of the pairs (first, second) of rows; ``Z`` are their normalised features.

    Without ``Z`` distances are NaN: only a rule by distance needs them.

    >>> pairs = decided(NEVER, np.array([2.0, 1.0]), None, np.array([0, 1]), np.array([1, 0]))
    >>> pairs.decision.tolist(), pairs.reasons
    ([-1, 1], ['decided', 'decided'])
    """
    distance = np.full(len(first), np.nan) if Z is None else pair_distances(Z, Z, rule.norm, first, second)
    return rule.decide(scores[second] - scores[first], distance)

"""Trees on features as they are given: the normaliser and the rounding before a comparison go into the thresholds.

Every step before a comparison (logarithm, mean, scale, rounding to float32) is monotone. So z(x) ≤ threshold where
x ≤ x*, x* the largest float64 for which it holds, found by bisection over the float64 numbers: exact, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.models.trees import Trees
from concordant.solvers.rankboost import RankBoost

__all__ = ["trees_of_given", "trees_of_rules"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Normalised = Callable[[Floats, Any], Floats]
"""Values x and the feature of each ↦ z."""
LARGEST = float(np.finfo(np.float64).max)


def trees_of_given(trees: Trees, normalised: Normalised, *, keep: bool, unit: float) -> Trees:
    """Return trees on x that give ``unit`` times what ``trees`` give on z(x).

    ``keep``: a missing x goes where the trees send a missing z; else where what it is filled with goes.

    >>> one = np.array([0])
    >>> stump = trees_of_rules(RankBoost(one, one + 0.5, one + 2.0, one + 1, one, one + 1.0, 1, ""))
    >>> shifted = trees_of_given(stump, lambda x, feature: (x - 3.0) / 2.0, keep=True, unit=10.0)
    >>> shifted.threshold[0], shifted.predict(np.array([[4.0], [4.1]])).tolist()
    (np.float64(4.0), [0.0, 20.0])
    """
    place = np.flatnonzero(trees.left != np.arange(len(trees.left)))
    feature, threshold = trees.feature[place], trees.threshold[place]

    def passes(x: Floats) -> NDArray[np.bool_]:
        z = normalised(x, feature)
        with np.errstate(over="ignore"):
            return np.asarray((z.astype(np.float32) if trees.single else z) <= threshold)

    cut, never = _largest(passes, len(place))
    left, right, missing_left = trees.left.copy(), trees.right.copy(), trees.missing_left.copy()
    if not keep:
        missing_left[place] = passes(np.full(len(place), np.nan))
    turned = place[never]  # no x passes, but all are up to the largest: the children change places
    left[turned], right[turned] = trees.right[turned], trees.left[turned]
    missing_left[turned] = ~missing_left[turned]
    raw = np.zeros(len(trees.threshold))
    raw[place] = np.where(never, LARGEST, cut)
    value = trees.value * (trees.scale * unit)
    return Trees(trees.root, trees.feature, raw, left, right, missing_left, value, trees.base * unit, 1.0, False)


def trees_of_rules(rules: RankBoost) -> Trees:
    """Return RankBoost's rules as stumps: root, not above the threshold, above it."""
    rounds = len(rules.alpha)
    root = 3 * np.arange(rounds)
    node = np.arange(3 * rounds)
    left, right, feature, threshold = node.copy(), node.copy(), np.zeros(3 * rounds, np.int64), np.zeros(3 * rounds)
    left[root], right[root] = root + 1, root + 2
    feature[root], threshold[root] = rules.feature, rules.threshold
    missing_left = np.zeros(3 * rounds, bool)
    missing_left[root] = rules.missing == 0
    value = np.zeros(3 * rounds)
    value[np.where(rules.direction > 0, root + 2, root + 1)] = rules.alpha
    return Trees(root, feature, threshold, left, right, missing_left, value, 0.0, 1.0, False)


def _largest(passes: Callable[[Floats], NDArray[np.bool_]], count: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the largest finite x of each that passes, and whether none does; what is below it passes too."""
    low, high = np.full(count, -LARGEST), np.full(count, LARGEST)
    never, always = ~passes(low), passes(high)
    low, high = _place(low), _place(high)
    for _ in range(64):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        good = passes(_number(middle))
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return np.where(always, LARGEST, _number(low)), never


def _place(x: Floats) -> Ints:
    """Return integers in the order of the numbers, neighbours for neighbours."""
    bits = x.view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _number(place: Ints) -> Floats:
    bits = np.where(place < 0, np.iinfo(np.int64).min - place, place)
    return np.asarray(bits, np.int64).view(np.float64)

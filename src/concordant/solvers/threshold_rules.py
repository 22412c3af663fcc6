"""Rules "feature above threshold" as weak rankers: candidate thresholds, and which rule orders weighted pairs best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError

__all__ = ["Rule", "Table"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEVEL = 1e-10
"""Rules whose worth differs by less than this share are equal."""


@dataclass(frozen=True)
class Rule:
    """h(x) = 1 where x[feature] > threshold, else 0, and ``missing`` where it is missing; with direction −1, 1 − h."""

    feature: int
    threshold: float
    direction: int
    missing: int
    """What h (before the direction) is where the feature is missing."""
    gain: float
    """|r|, or what the exact criterion prefers."""


@dataclass(frozen=True, eq=False)
class Table:
    """Every feature cut at its candidate thresholds: ``code`` says how many of them a value is above."""

    code: NDArray[np.integer[Any]]
    """Shape (rows, features), by columns; 0 where missing."""
    missing: list[Ints]
    """Rows in which each feature is missing."""
    threshold: list[Floats]

    @classmethod
    def of(cls, X: NDArray[Any], most: int | None) -> Table:
        """Cut X. Thresholds stand midway between neighbouring values, at most so many of each feature, evenly by rank.

        Missing values are NaN; where a feature has some, the rule "is there" (threshold −∞) is a candidate as well.
        Errors: UsageError for a matrix of another shape, InputError for infinite values.
        """
        X = np.asarray(X)
        if X.ndim != 2:
            raise UsageError(f"X must be a matrix of items by features, not of shape {X.shape}")
        if most is not None and most < 1:
            raise UsageError(f"thresholds must be at least 1, not {most}")
        wrong = int(np.isinf(X).sum())
        if wrong:
            raise InputError(f"{wrong:,} of {X.size:,} features are infinite")
        missing, thresholds = [], []
        for column in X.T:
            absent = np.flatnonzero(np.isnan(column))
            missing.append(absent)
            cuts = _midway(np.unique(column[~np.isnan(column)].astype(np.float64)), most)
            thresholds.append(np.concatenate(([-np.inf], cuts)) if len(absent) else cuts)
        widest = max((len(cuts) for cuts in thresholds), default=0)
        code = np.zeros(X.shape, np.uint8 if widest < 256 else np.uint16 if widest < 1 << 16 else np.int64, order="F")
        for feature, cuts in enumerate(thresholds):
            code[:, feature] = np.searchsorted(cuts, X[:, feature], side="left")
            code[missing[feature], feature] = 0
        return cls(code, missing, thresholds)

    def by_balance(self, potential: NDArray[Any]) -> Rule | None:
        """The rule with the largest |r|, r = Σ_pairs D (h(winner) − h(loser)) = Σ_rows potential · h.

        ``potential`` (rows,) is the weight of pairs that a row wins less that of those it loses.
        """
        best: Rule | None = None
        for feature, cuts in enumerate(self.threshold):
            if not len(cuts):
                continue
            of_code = np.bincount(self.code[:, feature], potential, len(cuts) + 1)
            absent = float(potential[self.missing[feature]].sum())
            above = np.cumsum(of_code[::-1])[::-1][1:]  # missing values are at code 0
            for fill in (0, 1) if len(self.missing[feature]) else (0,):
                best = _better(best, feature, cuts, above + fill * absent, fill)
        return best

    def by_normaliser(self, winner: Ints, loser: Ints, share: Floats) -> Rule | None:
        """The rule with the least Z = W₀ + 2√(W₊W₋) over its weight: 1 − Z = (√W₊ − √W₋)².

        W₊ is the share of pairs that the rule orders rightly, W₋ wrongly. Takes a pass over the pairs per feature.
        """
        best: Rule | None = None
        for feature, cuts in enumerate(self.threshold):
            for fill in (0, 1) if len(self.missing[feature]) and len(cuts) else (0,) if len(cuts) else ():
                right, wrong = self.sides(feature, fill, winner, loser, share)
                best = _better(best, feature, cuts, np.sqrt(right) - np.sqrt(wrong), fill)
        return best

    def sides(self, feature: int, fill: int, winner: Ints, loser: Ints, share: Floats) -> tuple[Floats, Floats]:
        """Share of the pairs that each threshold orders rightly, and wrongly."""
        number = len(self.threshold[feature])
        code = self.code[:, feature].astype(np.int64)
        if fill:
            code[self.missing[feature]] = number
        up, down = code[winner], code[loser]
        sides = []
        for high, low in ((up, down), (down, up)):
            apart = high > low  # thresholds low … high − 1 part the two
            steps = np.bincount(low[apart], share[apart], number + 1) - np.bincount(
                high[apart], share[apart], number + 1
            )
            sides.append(np.maximum(np.cumsum(steps)[:number], 0.0))
        return sides[0], sides[1]

    def apply(self, rule: Rule) -> Floats:
        """h of every row."""
        place = int(np.searchsorted(self.threshold[rule.feature], rule.threshold))
        h = (self.code[:, rule.feature] > place).astype(np.float64)
        h[self.missing[rule.feature]] = rule.missing
        return h if rule.direction > 0 else 1.0 - h


def _midway(values: Floats, most: int | None) -> Floats:
    if len(values) < 2:
        return np.zeros(0)
    below, above = values[:-1], values[1:]
    middle = below + 0.5 * (above - below)
    cuts = np.where(middle < above, middle, below)
    if most is None or len(cuts) <= most:
        return np.asarray(cuts, np.float64)
    return np.asarray(cuts[np.linspace(0, len(cuts) - 1, most).round().astype(np.int64)], np.float64)


def _better(best: Rule | None, feature: int, cuts: Floats, worth: NDArray[Any], fill: int) -> Rule | None:
    """The best of the rules so far and these; of equal ones, up to rounding, the first."""
    gains = np.abs(worth)
    place = int(np.argmax(gains >= gains.max() * (1.0 - LEVEL)))
    gain = float(gains[place])
    if best is not None and gain <= best.gain * (1.0 + LEVEL):
        return best
    return Rule(feature, float(cuts[place]), 1 if worth[place] >= 0 else -1, fill, gain)

"""How far votes on the same pair of items of the same query agree: shares of the others, and Krippendorff's α.

The unit is a pair of items of one query: the better answer to one prompt need not come from the better model, so votes
on the same two models and another prompt say nothing of whether two judges agree. Votes of queries that were pooled
before are on the same pair whatever the prompt was.

α is that for names (the first, the second, a tie), each pair entered in both orders, so that it does not matter which
item is called the first; its interval is a bootstrap of pairs.

Source: Krippendorff, Content Analysis, 2004, ch. 11.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.preferences.counts import rows_alike
from concordant.preferences.preferences import Comparisons

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Said:
    """What each distinct vote says of its pair of items of its query."""

    unit: Ints
    vote: Ints
    """0: the item of the lower code, 1: the other one, 2: a tie."""
    count: Ints
    table: Floats
    """Votes of each unit for each of the three."""

    @classmethod
    def of(cls, prefs: Comparisons) -> Said:
        width = len(prefs.items)
        low, high = np.minimum(prefs.winner, prefs.loser), np.maximum(prefs.winner, prefs.loser)
        vote = (prefs.winner > prefs.loser).astype(np.int64)
        if prefs.tie is not None:
            vote[prefs.tie] = 2
        keys = (prefs.query.astype(np.int64) * width + low) * width + high
        unit = np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)
        number = int(unit.max(initial=-1)) + 1
        count = prefs.count.astype(np.int64)
        table = np.bincount(unit * 3 + vote, count.astype(np.float64), number * 3).reshape(number, 3)
        return cls(unit, vote, count, np.asarray(table, np.float64))

    def agreement(self) -> tuple[Floats, Ints]:
        """Of each vote: the share of the others on its pair that say the same (NaN: there is none), their number."""
        others = self.table.sum(1)[self.unit] - 1.0
        same = self.table[self.unit, self.vote] - 1.0
        share = np.divide(same, others, out=np.full(len(others), np.nan), where=others > 0)
        return share, others.astype(np.int64)

    def alpha(self, level: float, replicates: int, seed: int) -> tuple[float, float, float]:
        """Krippendorff's α with an interval: a bootstrap of the pairs that have two votes or more."""
        table = self.table[self.table.sum(1) > 1]
        if not len(table):
            return np.nan, np.nan, np.nan
        m = table.sum(1)
        parts = np.column_stack([(table * (table - 1.0)).sum(1) / (m - 1.0), m, table[:, 2]])
        first, kind = rows_alike(*parts.T)
        kinds, often = parts[first], np.bincount(kind)
        value = float(_alpha(often @ kinds))
        drawn = np.random.default_rng(seed).multinomial(len(table), often / len(table), size=replicates) @ kinds
        low, high = np.quantile(_alpha(drawn), [0.5 - level / 2, 0.5 + level / 2])
        return value, float(low), float(high)


def _alpha(sums: Floats) -> Floats:
    """α of sums over pairs: votes that agree (coincidences), votes, ties; each pair in both orders. Shape (…, 3)."""
    agree, votes, ties = np.moveaxis(np.asarray(sums, np.float64), -1, 0)
    n, one, tie = 2.0 * votes, votes - ties, 2.0 * ties
    expected = 1.0 - (2.0 * one * (one - 1.0) + tie * (tie - 1.0)) / (n * (n - 1.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(1.0 - (1.0 - agree / votes) / expected, np.float64)

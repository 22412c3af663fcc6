"""What a fitted abstaining ranker says of pairs of rows, and of the lists they make."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from concordant.abstaining.distances import pair_distances
from concordant.abstaining.rule import PairDecisions, Rule
from concordant.abstaining.tiers import decided_pairs, tiers_of
from concordant.errors import InputError
from concordant.features.matrix import Features, Matrix
from concordant.rankers.intake import rows_of

__all__ = ["PartialOrders"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class PartialOrders(ABC):
    """The order that is left of pairs and lists when some pairs are declined."""

    rule_: Rule
    missing: Any
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
        (scores_a, Z_a), (scores_b, Z_b) = (self._seen(*rows_of(X, self.missing, self._names)) for X in (a, b))
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
        features, named = rows_of(X, self.missing, self._names)
        scores, Z = self._seen(features, named)
        if features.query is None:
            return scores, Z, np.array([0, len(scores)]), np.arange(len(scores))
        start = np.concatenate(([0], np.cumsum(np.bincount(features.query, minlength=len(features.queries)))))
        return scores, Z, start, np.argsort(features.query, kind="stable")

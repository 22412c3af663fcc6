"""What is known of each item of each query, as rows of numbers: its features, or which item it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, UsageError, counted
from concordant.learning.features.matrix import Features, align
from concordant.learning.features.normalising import Normaliser
from concordant.learning.rankers.validation import rows_of
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Comparisons, Preferences

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST = 2_000
"""Parameters of one ranking: items of all queries without features, or features."""


@dataclass(frozen=True, eq=False)
class Design:
    """What is known of each item of each query: standardised features (nodes, features), or which item it is."""

    batch: Batch
    X: Floats | None
    """None: each item has a parameter of its own."""
    normaliser: Normaliser | None = None
    features: Features | None = None
    named: bool = False

    @classmethod
    def of(cls, prefs: Comparisons, features: Any = None, *, what: str) -> Design:
        """Match the items with their features, or number them. Errors: items without features, too many parameters."""
        batch = Batch.whole(prefs)
        if features is None:
            nodes = len(batch.item)
            if nodes > MOST:
                text = (
                    f"{what} without features are found for up to {MOST:,} items of all queries, not {nodes:,}; give "
                )
                raise UsageError(text, Setting("features"))
            return cls(batch, None)
        rows, named = rows_of(features, "raise")
        rows.refuse_special(what)
        if (width := rows.X.shape[1]) > MOST:
            raise UsageError(f"{what} have up to {MOST:,} features, not {width:,}")
        found = align(rows, prefs)
        if (rows.X[found.row] == rows.X[found.row[:1]]).all():
            raise InputError(f"each feature has one value for all judged items: {what} of features tell none apart")
        normaliser = Normaliser(missing="raise").fit(rows.X[np.unique(found.row)], rows.names)
        return cls(batch, np.asarray(normaliser.apply(rows.X[found.row]), np.float64), normaliser, rows, named)

    @property
    def scale(self) -> Floats:
        """What a coefficient is divided by to hold for features as they were given."""
        return np.ones(len(self.batch.item)) if self.normaliser is None else self.normaliser.fitted()[1]

    def times(self, theta: Floats) -> Floats:
        """Return the scores (nodes, …) of coefficients (parameters, …)."""
        return theta if self.X is None else np.asarray(self.X @ theta, np.float64)


def comparisons(prefs: Any, what: str) -> Comparisons:
    """Return preferences that are comparisons, some of which prefer. Errors: UsageError for others."""
    if not isinstance(prefs, Preferences):
        raise UsageError(f"{what} are found from Preferences, not {type(prefs).__name__}; read them first: read(…)")
    if not isinstance(prefs, Comparisons):
        raise UsageError(f"{what} are found from comparisons, not from {prefs.kind or counted(0, 'judgments')}")
    return prefs


def shares_won(prefs: Comparisons) -> Floats:
    """Return what the winner of each distinct comparison won: 1, of a tie half."""
    return np.ones(prefs.distinct) if prefs.tie is None else np.where(prefs.tie, 0.5, 1.0)


def masses(prefs: Comparisons) -> Floats:
    """Return how strong one of each distinct comparison is."""
    return np.ones(prefs.distinct) if prefs.weight is None else np.asarray(prefs.weight, np.float64)

"""The three fits of AoS §6.2 on comparisons drawn from graded lists, and the feature-informed one beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from concordant.apps.reproduction.data import GradedLists
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.learning.targets.informed import Informed
from concordant.learning.targets.mean_targets import mean_targets_of_orders
from concordant.losses.gains import Gain, best_value, inverse_discount, the_gain
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.closed_forms import C0
from concordant.ranking.structures import structure

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
GAIN = "2^s-1"
"""Of gain regression: free of the scale of small scores."""
TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The queries in parts, each of which is judged by fits on the others: how every setting is chosen."""

    lists: GradedLists
    part: NDArray[np.int64]
    """Part of each query."""

    @classmethod
    def of(cls, lists: GradedLists, parts: int, seed: Sequence[int]) -> HeldOut:
        """Divide the queries at random."""
        return cls(lists, np.random.default_rng([*seed, parts]).permutation(len(lists)) % parts)

    @cached_property
    def _judged(self) -> list[GradedLists]:
        return [self.lists.some(np.flatnonzero(self.part == each)) for each in range(int(self.part.max()) + 1)]

    def risk(self, fit: Callable[[Mask], Floats]) -> Floats:
        """Return the mean NDCG risk of held-out queries of each column of the θ that ``fit`` makes of the others."""
        found = [
            len(judged) / len(self.lists) * risks(judged, fit(self.part != each))
            for each, judged in enumerate(self._judged)
        ]
        return np.asarray(np.sum(found, axis=0))


def _shares(lists: GradedLists, prefs: Preferences | None, train: Mask | None) -> Floats:
    """n̂_q/n over the queries that train; every query alike without ``prefs``."""
    held = np.ones(len(lists)) if prefs is None else np.asarray(prefs.judgments, np.float64)
    held = held if train is None else held * train
    return np.asarray(held / held.sum())


def logistic(lists: GradedLists, prefs: Preferences, ridges: Sequence[float], *, train: Mask | None = None) -> Floats:
    """Pairwise logistic (29) on all comparisons (of the queries that ``train``): θ, shape (features, ridges)."""
    objective = surrogate("ranknet").objective(Batch.whole(prefs))
    weight = _shares(lists, prefs, train)
    fits = [fit_edges(lists.X, objective, ridge=ridge, weight=weight, tolerance=TOLERANCE) for ridge in ridges]
    return np.column_stack([fit.theta for fit in fits])


def scaled_gain(scale: float) -> str | Gain:
    """G(βs) = 2^(βs) − 1, β the ``scale``."""
    return GAIN if scale == 1 else lambda s: np.expm1(scale * np.log(2.0) * s)


def order_targets(
    prefs: Preferences, orders: Sequence[int | str], subsets: int, seed: int, *, c0: float = C0, scale: float = 1.0
) -> Floats:
    """Mean gain targets G(βs)/Z of the average log-odds for each order k, shape (documents, orders)."""
    gain = scaled_gain(scale)
    found = mean_targets_of_orders(prefs, orders, options={"c0": c0}, subsets=subsets, gain=gain, seed=seed)
    return np.column_stack([targets.value for targets in found])


def complete_targets(lists: GradedLists, prefs: Preferences, c0s: Sequence[float], scales: Sequence[float]) -> Floats:
    """G(βs)/Z of all comparisons of a query for each c₀, and β within it, shape (documents, c₀ · β)."""
    batch = Batch.whole(prefs)
    scores = [structure("log-odds")(batch, c0=c0).value for c0 in c0s]
    return np.column_stack([_over_best(lists, each, scaled_gain(scale)) for each in scores for scale in scales])


def informed_targets(
    lists: GradedLists, prefs: Preferences, theta: Floats, tau2: float, gains: Sequence[str]
) -> Floats:
    """Targets of Bradley–Terry about the scorer θ, all comparisons of a query at once, shape (documents, gains)."""
    prior = Informed(lists.groups.centred(lists.X @ theta), tau2, theta, float("nan"))
    scores = structure("bradley-terry")(Batch.whole(prefs), **prior.options).value
    return np.column_stack([scores if gain == "identity" else _over_best(lists, scores, gain) for gain in gains])


def likelihood_targets(lists: GradedLists, prefs: Preferences) -> Floats:
    """Targets of Bradley–Terry with prior variance 1, all comparisons of a query at once, shape (documents, 1)."""
    scores = structure("bradley-terry")(Batch.whole(prefs), prior=1.0).value
    return _over_best(lists, scores, GAIN)[:, None]


def limit_targets(lists: GradedLists) -> Floats:
    """Targets of the limit scores (27) themselves: complete preference data."""
    return _over_best(lists, lists.limits, GAIN)


def _over_best(lists: GradedLists, scores: Floats, gain: str | Gain) -> Floats:
    """G(s)/Z(s) of each query; 0 where all scores are equal."""
    gains = the_gain(gain)(scores)
    best = best_value(lists.start, gains, inverse_discount(int(lists.size.max()), None, None))
    share = np.where(best > 0, 1.0 / np.where(best > 0, best, 1.0), 0.0)
    return np.asarray(gains * np.repeat(share, lists.size))


def equations(
    lists: GradedLists, targets: Floats, prefs: Preferences | None = None, *, train: Mask | None = None
) -> NormalEquations:
    """Least squares of (19) with (28): weight n̂_q/(n m_q), every query alike without ``prefs``; one pass over X."""
    return NormalEquations.of(lists.X, targets, lists.start, _shares(lists, prefs, train) / lists.size)


def risks(lists: GradedLists, theta: Floats) -> Floats:
    """NDCG risk of each column of θ."""
    scores = lists.X @ theta
    return np.array([lists.risk(column) for column in scores.T])

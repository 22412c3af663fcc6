"""The three fits of AoS §6.2 on comparisons drawn from graded lists, and the feature-informed one beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from concordant.apps.reproduction.data import GradedLists
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.learning.targets.informed import Informed
from concordant.learning.targets.mean_targets import mean_targets_of_orders
from concordant.losses.gains import best_value, inverse_discount, the_gain
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.structures import structure

Floats = NDArray[np.float64]
GAIN = "2^s-1"
"""Of gain regression: free of the scale of small scores."""
TOLERANCE = 1e-4


def logistic(lists: GradedLists, prefs: Preferences, ridges: Sequence[float]) -> Floats:
    """Pairwise logistic (29) on all comparisons: θ for each ridge, shape (features, ridges)."""
    objective = surrogate("ranknet").objective(Batch.whole(prefs))
    weight = prefs.judgments / len(prefs)
    fits = [fit_edges(lists.X, objective, ridge=ridge, weight=weight, tolerance=TOLERANCE) for ridge in ridges]
    return np.column_stack([fit.theta for fit in fits])


def order_targets(prefs: Preferences, orders: Sequence[int | str], subsets: int, seed: int) -> Floats:
    """Mean gain targets of the average log-odds for each order k, shape (documents, orders)."""
    found = mean_targets_of_orders(prefs, orders, subsets=subsets, gain=GAIN, seed=seed)
    return np.column_stack([targets.value for targets in found])


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


def _over_best(lists: GradedLists, scores: Floats, gain: str) -> Floats:
    """G(s)/Z(s) of each query; 0 where all scores are equal."""
    gains = the_gain(gain)(scores)
    best = best_value(lists.start, gains, inverse_discount(int(lists.size.max()), None, None))
    share = np.where(best > 0, 1.0 / np.where(best > 0, best, 1.0), 0.0)
    return np.asarray(gains * np.repeat(share, lists.size))


def equations(lists: GradedLists, targets: Floats, prefs: Preferences | None = None) -> NormalEquations:
    """Least squares of (19) with (28): weight n̂_q/(n m_q), every query alike without ``prefs``; one pass over X."""
    share = np.full(len(lists), 1.0 / len(lists)) if prefs is None else prefs.judgments / len(prefs)
    return NormalEquations.of(lists.X, targets, lists.start, share / lists.size)


def risks(lists: GradedLists, theta: Floats) -> Floats:
    """NDCG risk of each column of θ."""
    scores = lists.X @ theta
    return np.array([lists.risk(column) for column in scores.T])

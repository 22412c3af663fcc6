"""What aggregation adds to a pairwise scorer: a fit to s − x'θ, held to what unseen judgments support."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from concordant.learning.rankers.choosing import Curve, check_parts, target_weights
from concordant.learning.rankers.columns import Columns
from concordant.learning.rankers.disagreement import FEW_QUERIES
from concordant.learning.rankers.plans import Plan
from concordant.learning.rankers.stopping import Regression
from concordant.learning.rankers.target import ROUNDING, Judges, Target
from concordant.learning.rankers.targeting import TargetMaker
from concordant.learning.rankers.validation import Training
from concordant.learning.targets.informed import Informed
from concordant.learning.targets.mean_targets import Targets
from concordant.preferences.splits import folds
from concordant.progress import steps

Floats = NDArray[np.float64]
RIDGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, np.inf)
"""What ridge='auto' tries on what is added to the scorer; ∞ adds nothing."""


def remainder(prior: Informed, targets: Targets) -> Floats:
    """Return s − x'θ of each node, less its mean in the query."""
    return targets.centred() - prior.mean


def added(
    training: Training, columns: Columns, prior: Informed, targets: Targets, ridges: list[float], intercept: str
) -> Floats:
    """Return θ + δ for each ridge, shape (features, ridges).

    δ minimises Σ (w/2) (x'δ + t_q − (s − x'θ))² + (λ/2) ‖δ‖².
    """
    left = remainder(prior, targets)
    weight = target_weights(targets, training.weight)
    equations = columns.equations(left, training.start, weight, rows=training.row, intercept=intercept)
    steps = [equations.solve(ridge).theta if np.isfinite(ridge) else np.zeros_like(prior.theta) for ridge in ridges]
    return prior.theta[:, None] + np.column_stack(steps)


def every_row(training: Training, left: Floats, theta: Floats) -> Regression:
    """Return what is left to fit beyond a scorer on all rows: nothing where nobody judged, the scorer stands.

    Rows weigh alike, but for the weights of queries that the user gave; unjudged rows have the mean of these.
    """
    unjudged = np.setdiff1d(np.arange(len(training.features)), training.row)
    rows = np.concatenate((training.row, unjudged))
    usual = np.full(len(unjudged), training.weight.mean())
    weight = np.concatenate((training.groups.spread(training.weight), usual))
    owner = np.concatenate((training.groups.owner, np.full(len(unjudged), -1)))
    return Regression(rows, np.concatenate((left, np.zeros(len(unjudged)))), weight, theta, owner)


def beyond_scorer(training: Training, columns: Columns, target: Floats, theta: Floats) -> Regression:
    """Return what centred targets add to a linear scorer, which is brought to their scale."""
    start = training.groups.centred(columns.times(theta[:, None])[training.row, 0])
    each = training.groups.spread(training.weight)
    square = float((each * start**2).sum())
    scale = max(float((each * start * target).sum()) / square, 0.0) if square > 0 else 0.0
    scale = scale or 1.0
    return every_row(training, target - scale * start, scale * theta)


def one_standard_error_ridge(
    training: Training,
    columns: Columns,
    plan: Plan,
    ridges: list[float],
    maker: TargetMaker,
    *,
    intercept: str,
    n: int,
    seed: int,
    target: Target,
) -> Curve:
    """Choose the greatest ridge that is within one standard error of the best on held-out queries.

    The loss is that of the target, so what is added to the scorer must improve the order itself. The error is over the
    queries, for which the scorer is new: it vanishes as queries grow in number, not as their judgments do. With fewer
    than ten queries judgments are held out, and the error is over them. Errors (TooFew): a fold without comparisons.
    """
    prefs = training.prefs
    ridges = sorted(ridges)
    split = "queries" if len(prefs.queries) >= max(FEW_QUERIES, 2 * n) else "judgments"
    losses, helds, found = [], [], []
    lost, weight = np.zeros((len(prefs.queries), len(ridges))), np.zeros(len(prefs.queries))
    pieces = folds(prefs, n, split=split, seed=seed)
    pieces = steps("choosing the ridge: folds", pieces, n, apart=True)  # the first chooses for all
    for fold, (train, held) in enumerate(pieces):
        judge = target.judge(held, training.weight)
        check_parts(fold, n, judge, train, prefs)
        prior = maker.prior_of(train)
        scores = columns.times(added(training, columns, prior, maker([plan], train)[0], ridges, intercept))
        for place in range(len(ridges)):
            rates = judge.rates(scores[training.row, place])
            lost[:, place] += judge.weight * np.nan_to_num(rates)
        weight += judge.weight
        losses.append([judge.loss(scores[training.row, place]) for place in range(len(ridges))])
        if split == "judgments":
            helds.append(held)
            found.append(scores[training.row])
    curve = Curve.of([{**plan.row, "ridge": ridge} for ridge in ridges], np.array(losses), str(target))
    if split == "queries":
        return curve.choosing(_surest(lost, weight))
    judges = Judges(target, helds, training.weight, seed)
    best = int(curve["loss"].argmin())
    gaps = [
        judges.difference([one[:, place] for one in found], [one[:, best] for one in found])
        for place in range(len(ridges))
    ]
    return curve.choosing(max(place for place, gap in enumerate(gaps) if gap.mean <= gap.error + ROUNDING))


def _surest(lost: Floats, weight: Floats) -> int:
    """The same from the losses of each query, shape (queries, scorers), times its weight."""
    some, each = (lost - lost[:, [-1]])[weight > 0], weight[weight > 0]
    sums = some.sum(axis=0), some.T @ some, each @ some, float(each @ each), float(each.sum())
    return surest(*sums, len(each))


def surest(apart: Floats, products: Floats, with_weight: Floats, weights: float, weight: float, queries: int) -> int:
    """Return the last scorer whose loss exceeds the least by no more than the standard error of the difference.

    Sums over the queries that were judged, w_q their weights and d_q w_q times the losses less those of one of the
    scorers: Σ d, Σ d d', Σ w d, Σ w², Σ w, and how many queries there are.
    """
    best = int(apart.argmin())
    worse = apart - apart[best]
    rate = worse / weight
    square = np.diag(products) - 2 * products[:, best] + products[best, best]  # Σ (d − d_best)²
    square = square - 2 * rate * (with_weight - with_weight[best]) + rate**2 * weights
    error = np.sqrt(np.maximum(square, 0.0) * queries / max(queries - 1, 1))
    return int(np.flatnonzero(worse <= error + ROUNDING * weight)[-1])

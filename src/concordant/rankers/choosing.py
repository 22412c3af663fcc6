"""Cross-validation over judgments: which targets and which ridge order what was held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, counted
from concordant.preferences import Preferences
from concordant.progress import steps
from concordant.rankers.columns import Columns
from concordant.rankers.concordance import Disagreement
from concordant.rankers.curve import Curve
from concordant.rankers.folding import folds
from concordant.rankers.intake import Training
from concordant.rankers.plans import Plan
from concordant.rankers.regressors import fit_regressor
from concordant.targets.mean_targets import Targets

__all__ = ["cross_validate", "target_weights"]

Floats = NDArray[np.float64]
TargetsOf = Callable[[list[Plan], Preferences], list[Targets]]


def target_weights(targets: Targets, weight: Floats) -> Floats:
    """w_q n̂_q / (m_q Σ w n̂): the weight of each query's squared errors."""
    size = np.diff(targets.start)
    total = weight * targets.weight
    whole = float((total * size).sum())
    return np.asarray(total / whole if whole > 0 else total, np.float64)


def cross_validate(
    training: Training,
    columns: Columns,
    plans: list[Plan],
    ridges: list[float],
    targets_of: TargetsOf,
    *,
    regressor: Any = None,
    intercept: str = "query",
    n: int = 3,
    split: str = "judgments",
    seed: int = 0,
) -> Curve:
    """Return the loss of every plan and ridge over the folds.

    In each fold the targets of all plans come from the training part and are fitted in one pass over the features; all
    ridges share it. With a regressor of one's own each plan is one fit. Nodes and features are those of the whole
    throughout. Errors (InputError): a fold that leaves no comparison to learn from, or none to judge by.
    """
    assert training.prefs is not None
    tried = [{**plan.row, "ridge": ridge if regressor is None else np.nan} for plan in plans for ridge in ridges]
    losses = np.empty((n, len(tried)))
    pieces = steps("cross-validation: folds", folds(training.prefs, n, split=split, seed=seed), n)
    for fold, (train, held) in enumerate(pieces):
        judge = Disagreement(held, training.weight)
        for part, edges in (("held-out part", judge.edges), ("rest", len(train))):
            if not edges:
                raise InputError(
                    f"the {part} of fold {fold + 1} of {n} has no comparison at all "
                    f"({counted(len(training.prefs), 'judgments')} in "
                    f"{counted(len(training.prefs.queries), 'queries')}); use fewer folds, or fix order, structure, "
                    "gain and ridge so that nothing has to be chosen"
                )
        targets = targets_of(plans, train)
        weight = target_weights(targets[0], training.weight)
        found = (
            _linear(training, columns, targets, weight, ridges, intercept)
            if regressor is None
            else _regressed(training, columns, targets, weight, regressor)
        )
        for place, scores in found:
            losses[fold, place] = judge.loss(scores)
    return Curve.of(tried, losses)


def _linear(
    training: Training, columns: Columns, targets: list[Targets], weight: Floats, ridges: list[float], intercept: str
) -> Iterator[tuple[int, Floats]]:
    """Yield the scores of the nodes for each target and ridge: one pass, one factorisation for each ridge."""
    Y = np.column_stack([each.value for each in targets])
    equations = columns.equations(Y, training.start, weight, rows=training.row, intercept=intercept)
    for r, ridge in enumerate(ridges):
        scores = columns.times(equations.solve(ridge).theta)
        for p in range(len(targets)):
            yield p * len(ridges) + r, scores[:, p][training.row]


def _regressed(
    training: Training, columns: Columns, targets: list[Targets], weight: Floats, regressor: Any
) -> Iterator[tuple[int, Floats]]:
    each = np.repeat(weight, np.diff(training.start))
    rows = columns.matrix[training.row]
    for place, target in enumerate(targets):
        fitted, _ = fit_regressor(regressor, rows, target.centred(), each)
        yield place, np.asarray(fitted.predict(rows), np.float64)

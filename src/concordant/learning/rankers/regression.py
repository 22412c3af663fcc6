"""What rankers that regress share: a target for each node, fitted by least squares or by any regressor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, UsageError, did_you_mean
from concordant.learning.rankers.columns import Columns
from concordant.learning.rankers.estimator import LinearRanker
from concordant.learning.rankers.plans import one_ridge
from concordant.learning.rankers.regressors import fit_regressor, told_categories
from concordant.learning.rankers.stopping import Part, Regression, labelled_parts, stopped
from concordant.learning.rankers.target import Target
from concordant.learning.rankers.validation import Training
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.learning.solvers.sparse_least_squares import SparseEquations
from concordant.losses.gains import GAINS, Gain, best_value, inverse_discount
from concordant.losses.metrics.conventions import gain_of
from concordant.preferences.notes import Note

Floats = NDArray[np.float64]
FOLDS = 3
"""Parts of the queries that a regressor which stops early is judged by."""
SUITED: Mapping[str, tuple[Gain | str, bool, str]] = {
    "ndcg": ("2^s-1", True, "gains over Z that the scorer can express"),
    "err": ("2^s-1", False, "gains that the scorer can express, labels of a query independent of each other"),
    "precision": (lambda label: (label >= 1.0).astype(np.float64), False, "shares of relevance that it can express"),
    "pairwise": ("identity", False, "mean labels that the scorer can express"),
}
"""By target: a gain whose regression is consistent for it, whether it is divided by Z, and the condition."""


class RegressionRanker(LinearRanker):
    """A ranker that fits one target per node, each query with its weight."""

    # parameters of every such ranker; each sets them in its own __init__
    regressor: Any
    intercept: str

    def _fit_targets(
        self, training: Training, columns: Columns, target: Floats, weight: Floats, ridge: float
    ) -> dict[str, Any]:
        """Fit a linear scorer to targets (nodes,) with weights (queries,), exactly; return how that went."""
        equations = columns.equations(target, training.start, weight, rows=training.row, intercept=self.intercept)
        return self._solve(equations, ridge)

    def _fit_regressor(
        self,
        training: Training,
        columns: Columns,
        regression: Regression,
        target: Target,
        parts_of: Callable[[], tuple[list[Part], str]],
    ) -> dict[str, Any]:
        """Fit the regressor that was given, which stops early by the target if it was to; return how that went.

        ``parts_of`` holds out what it stops by.
        """
        Z = columns.matrix
        regressor = told_categories(self.regressor, training.features.categories)
        regressor, stop = stopped(regressor, Z, training, regression, target, parts_of)
        fitted = fit_regressor(
            regressor, Z[regression.rows], regression.target, regression.weight, limited=stop is not None
        )
        scorer = regression.scorer
        if scorer is not None and (codes := list(training.features.categories)):
            scorer = scorer.copy()
            scorer[codes] = 0.0  # it saw nothing there
        self._take_regressor(*fitted, scorer)
        said = f"fitted by the {type(self.regressor).__name__} given"
        said += "" if regression.scorer is None else ", beyond a pairwise logistic scorer"
        ended = {"status": said, "iterations": None, "gradient": None, "ridge": None}
        return (
            ended if stop is None else {**ended, "iterations": stop.stages, "stopped": stop.row, "notes": [stop.note]}
        )

    def _solve(self, equations: NormalEquations | SparseEquations, ridge: float) -> dict[str, Any]:
        fit = equations.solve(ridge)
        self._take_linear(fit.theta)
        return {"status": fit.status, "iterations": fit.iterations, "gradient": fit.gradient, "ridge": ridge}

    def _regress(
        self, training: Training, columns: Columns, target: Target, gain: Any, normalise: bool | None, at: int | None
    ) -> dict[str, Any]:
        """Fit the gains of relevance labels, those of the target where None is given; return how that went."""
        usual, divided, condition = SUITED[target.name]
        suited = gain is None and normalise is None
        gains = _gains(training, usual if gain is None else gain)
        size = training.groups.sizes
        none = np.zeros(len(size), bool)
        if divided if normalise is None else normalise:
            at = target.at if at is None else at
            best = best_value(training.start, gains, inverse_discount(int(size.max(initial=0)), None, at))
            none = ~(best > 0)
            gains = gains * np.repeat(np.where(none, 0.0, 1.0 / np.where(none, 1.0, best)), size)
        weight = training.share / size
        if self.regressor is None:
            facts = self._fit_targets(training, columns, gains, weight, one_ridge(self.ridge))
        else:
            regression = Regression(training.row, training.groups.centred(gains), training.groups.spread(weight))
            parts = partial(labelled_parts, training, regression, target, FOLDS, 0)
            facts = self._fit_regressor(training, columns, regression, target, parts)
        text = "{queries:,} of {of:,} queries have no relevant item (Z = 0): their targets are 0"
        note = Note("no relevant item", text, queries=int(none.sum()), of=len(size))
        stated = {"consistent_for": target.name, "condition": condition} if suited else {}
        return {**facts, **stated, "notes": [*([note] if none.any() else []), *facts.get("notes", [])]}


def refuse_negative(training: Training) -> None:
    """Raise InputError where labels are below 0."""
    negative = training.labels < 0
    if negative.any():
        node = int(negative.argmax())
        raise InputError(
            f"{int(negative.sum()):,} of {len(negative):,} labels are negative (first: {training.labels[node]:g}, "
            f"{training.features.where(int(training.row[node]))}); relevance labels are at least 0. Of numbers "
            "whose differences mean something ask for ",
            Setting("target", "pairwise"),
        )


def _gains(training: Training, gain: Any) -> Floats:
    if isinstance(gain, str) and gain not in GAINS:
        raise UsageError(f"unknown gain {gain!r}; {did_you_mean(gain, GAINS)} A table or a function is allowed too.")
    with np.errstate(over="ignore"):
        return gain_of(GAINS[gain] if isinstance(gain, str) else gain, training.labels)

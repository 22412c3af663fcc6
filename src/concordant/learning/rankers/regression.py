"""What rankers that regress share: a target for each node, fitted by least squares or by any regressor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, UsageError, did_you_mean
from concordant.learning.rankers.columns import Columns
from concordant.learning.rankers.estimator import LinearRanker
from concordant.learning.rankers.plans import one_ridge
from concordant.learning.rankers.regressors import fit_regressor, freely, told_categories
from concordant.learning.rankers.stopping import Part, Regression, held_out, labelled_parts, least_loss
from concordant.learning.rankers.target import Target
from concordant.learning.rankers.validation import Training
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.learning.solvers.sparse_least_squares import SparseEquations
from concordant.losses.gains import GAINS, Gain, best_value, inverse_discount
from concordant.losses.metrics.conventions import gain_of
from concordant.preferences.notes import Note
from concordant.progress import stage

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
TRIED: Mapping[str, tuple[tuple[str, bool], ...]] = {"ndcg": (("2^s-1", True), ("2^s-1", False), ("identity", False))}
"""By target: gains, and whether they are divided by Z, of which a regressor is fitted to the best on held-out queries.

No one of them is best everywhere: of trees on the sets of docs/quality.md (2^s − 1)/Z is on one, the labels on another.
"""


class RegressionRanker(LinearRanker):
    """A ranker that fits one target per node, each query with its weight."""

    # parameters of every such ranker; each sets them in its own __init__
    regressor: Any
    intercept: str

    def _fit_targets(
        self, training: Training, columns: Columns, target: Floats, weight: Floats, ridge: float, without: Any = None
    ) -> dict[str, Any]:
        """Fit a linear scorer to targets (nodes,) with weights (queries,), exactly; return how that went."""
        how: dict[str, Any] = {"rows": training.row, "intercept": self.intercept, "without": without}
        return self._solve(columns.equations(target, training.start, weight, **how), ridge)

    def _fit_regressor(
        self,
        training: Training,
        columns: Columns,
        regression: Regression,
        target: Target,
        parts_of: Callable[[], tuple[list[Part], str]],
    ) -> dict[str, Any]:
        """Fit the regressor that was given, which stops early by the target if it was to; return how that went.

        ``parts_of`` holds out what it stops by, and what says how much of it is added to a linear scorer.
        """
        Z = columns.matrix
        given = told_categories(self.regressor, training.features.categories)
        with stage("fitting the regressor"):
            held = held_out(given, Z, training, regression, target, parts_of)
            rows, owner = Z[regression.rows], regression.owner
            limited = held.stop is not None
            found = fit_regressor(held.regressor, rows, regression.target, regression.weight, owner, limited=limited)
        scorer = regression.scorer
        if scorer is not None and (codes := list(training.features.categories)):
            scorer = scorer.copy()
            scorer[codes] = 0.0  # it saw nothing there
        self._take_regressor(found[0], found[1] * held.share, scorer)
        said = f"fitted by the {type(self.regressor).__name__} given"
        said += "" if scorer is None else ", beyond a pairwise logistic scorer"
        ended: dict[str, Any] = {"status": said, "iterations": None, "gradient": None, "ridge": None}
        ended |= {"free_intercept": freely(self.regressor), "notes": [*held.notes]}
        if scorer is not None:
            ended["share"] = held.share
        if held.stop is not None:
            ended |= {"iterations": held.stop.stages, "stopped": held.stop.row, "notes": [held.stop.note, *held.notes]}
        return ended

    def _solve(self, equations: NormalEquations | SparseEquations, ridge: float) -> dict[str, Any]:
        fit = equations.solve(ridge)
        self._take_linear(fit.theta)
        return {"status": fit.status, "iterations": fit.iterations, "gradient": fit.gradient, "ridge": ridge}

    def _regress(
        self, training: Training, columns: Columns, target: Target, gain: Any, normalise: bool | None, at: int | None
    ) -> dict[str, Any]:
        """Fit the gains of relevance labels, those of the target where None is given; return how that went.

        A regressor is fitted to those of ``TRIED`` whose order of held-out queries is best.
        """
        usual, divided, condition = SUITED[target.name]
        suited = gain is None and normalise is None
        gain, divided = usual if gain is None else gain, divided if normalise is None else normalise
        at = target.at if at is None else at
        size = training.groups.sizes
        weight = training.share / size
        notes: list[Note] = []
        if self.regressor is None:
            gains, none = _gains(training, gain, divided, at)
            facts = self._fit_targets(training, columns, gains, weight, one_ridge(self.ridge))
        else:
            each, owner = training.groups.spread(weight), training.groups.owner
            tried: Sequence[tuple[Any, bool]] = TRIED.get(target.name, ()) if suited else ()
            found = []
            for one, over_z in tried or [(gain, divided)]:
                gains, none = _gains(training, one, over_z, at)
                regression = Regression(training.row, training.groups.centred(gains), each, owner=owner)
                parts = partial(labelled_parts, training, regression, target, FOLDS, 0)
                found.append((gains, none, regression, parts))
            best = 0
            if tried:
                given = told_categories(self.regressor, training.features.categories)
                losses = [least_loss(given, columns.matrix, training, *one[2:]) for one in found]
                best = int(np.nanargmin(losses)) if np.isfinite(losses).any() else 0
                gain, divided = tried[best]
                suited = best == 0
                said = f"{gain}/Z" if divided else str(gain)
                text = "gains fitted: {gain}, of {of} tried the best order of held-out queries (target {target})"
                notes.append(Note("gains chosen", text, gain=said, of=len(tried), target=str(target)))
            gains, none, regression, parts = found[best]
            facts = self._fit_regressor(training, columns, regression, target, parts)
        if none.any():
            text = "{queries:,} of {of:,} queries have no relevant item (Z = 0): their targets are 0"
            notes.insert(0, Note("no relevant item", text, queries=int(none.sum()), of=len(size)))
        named = {"gain": gain, "normalise": divided} if isinstance(gain, str) else {}
        stated = {"consistent_for": target.name, "condition": condition} if suited else {}
        return {**facts, **named, **stated, "notes": [*notes, *facts.get("notes", [])]}


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


def _gains(training: Training, gain: Any, divided: bool, at: int | None) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the gain of each node, divided by Z or not, and whether a query has Z = 0."""
    if isinstance(gain, str) and gain not in GAINS:
        raise UsageError(f"unknown gain {gain!r}; {did_you_mean(gain, GAINS)} A table or a function is allowed too.")
    with np.errstate(over="ignore"):
        gains = gain_of(GAINS[gain] if isinstance(gain, str) else gain, training.labels)
    size = training.groups.sizes
    if not divided:
        return gains, np.zeros(len(size), bool)
    best = best_value(training.start, gains, inverse_discount(int(size.max(initial=0)), None, at))
    none = ~(best > 0)
    return gains * np.repeat(np.where(none, 0.0, 1.0 / np.where(none, 1.0, best)), size), none

"""The part of a report that needs features or a model: a scorer, how it was chosen, when it should decline."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from concordant.abstaining.scorer import is_fitted, unfrozen
from concordant.errors import ConcordantError, UsageError, counted
from concordant.models.saving import load_model
from concordant.preferences import Preferences
from concordant.rankers.aggregation import AggregationRanker
from concordant.rankers.intake import Training, learning_rows
from concordant.rankers.plans import STRUCTURE_CHOICES
from concordant.reporting.coverage import by_kept_scorer, by_scorer, coverage_of
from concordant.reporting.order_curve import order_of
from concordant.reporting.scorer import scorer_of

__all__ = ["Learned", "learned"]

WITHOUT = (
    "a scorer needs features of the items: --features F (features=), or a model that was fitted to some: --model DIR"
)


@dataclass
class Learned:
    """Sections of the data, and why others are not there."""

    order: dict[str, Any] | None = None
    scorer: dict[str, Any] | None = None
    coverage: dict[str, Any] | None = None
    absent: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def learned(prefs: Preferences, features: Any, model: Any, *, seed: int) -> Learned:
    """Look at the scorer given, or at one that is fitted here to the features; nothing without either.

    Errors: UsageError, InputError for features and models that do not fit the log or each other.
    """
    found = Learned()
    if model is None and features is None:
        found.absent = {"order": WITHOUT, "scorer": WITHOUT}
        return found
    ranker = _loaded(model)
    if features is None:
        _without_features(found, ranker)
        return found
    training = learning_rows(features, prefs, "keep" if ranker is None else _missing(ranker))
    found.notes += training.notes
    if ranker is None:
        _fit(found, training, seed)
    else:
        _look(found, ranker, training, seed)
    return found


def _loaded(model: Any) -> Any:
    ranker = load_model(model) if isinstance(model, str | os.PathLike) else model
    if ranker is not None and not (hasattr(ranker, "predict") and is_fitted(ranker)):
        raise UsageError(f"model takes a fitted ranker or the directory of one, not {type(ranker).__name__}")
    return ranker


def _missing(ranker: Any) -> str:
    return str(getattr(unfrozen(ranker), "missing", "raise"))


def _without_features(found: Learned, ranker: Any) -> None:
    """What a model says by itself."""
    found.scorer = scorer_of(ranker, None, seed=0, fitted_here=False)
    _kept_curve(found, ranker)
    if found.scorer is None:
        found.absent["scorer"] = (
            f"importances of a {type(unfrozen(ranker)).__name__} are by judgments on known features: --features F "
            "(features=)"
        )


def _kept_curve(found: Learned, ranker: Any) -> None:
    """The curve of the cross-validation, where the model still knows it."""
    inner = unfrozen(getattr(ranker, "ranker_", ranker))
    if hasattr(inner, "cv_"):
        found.order = order_of(inner.cv_, "Cross-validation when the model was fitted.")
    else:
        found.absent["order"] = (
            "the model keeps no cross-validation (its order was given, or its kind has none); without --model a scorer "
            "is fitted here and its order is chosen by cross-validation"
        )
    curve = getattr(ranker, "curve_", None)
    if curve is not None:
        found.coverage = coverage_of(curve, "By the judgments that the abstaining model was given to choose by.")


def _look(found: Learned, ranker: Any, training: Training, seed: int) -> None:
    """Judge a model by these judgments."""
    found.scorer = scorer_of(ranker, training, seed=seed, fitted_here=False)
    _kept_curve(found, ranker)
    if found.coverage is None:
        how = (
            "By the judgments of this report and the model as it is: if it was fitted to these very judgments the risk "
            "is too low; give judgments held out, or leave --model out."
        )
        found.coverage = coverage_of(by_kept_scorer(ranker, training), how)


def _fit(found: Learned, training: Training, seed: int) -> None:
    """Fit a scorer; what cannot be learned is said in its place."""
    assert training.prefs is not None
    unknown = int(np.isnan(training.features.X).sum())
    if unknown:
        found.notes.append(f"{counted(unknown, 'values')} of features are missing: taken to be the feature's mean")
    name = STRUCTURE_CHOICES[str(training.prefs.kind)][0]
    ranker = AggregationRanker(name, order="auto", missing="mean" if unknown else "raise", seed=seed)
    X: Any = training.features if training.named else training.features.X
    try:
        ranker.fit(X, training.prefs)
    except ConcordantError as problem:
        found.absent |= dict.fromkeys(("order", "scorer"), f"no scorer could be fitted: {problem}")
        return
    found.notes += [f"scorer: {note}" for note in ranker.status_["notes"] if note not in training.notes]
    found.order = order_of(ranker.cv_, f"A linear scorer of {name} scores was fitted here at every setting.")
    found.scorer = scorer_of(ranker, training, seed=seed, fitted_here=True)
    chosen = clone(ranker).set_params(order=ranker.order_, ridge=ranker.ridge_)
    try:
        curve = by_scorer(chosen, training, seed=seed)
    except ConcordantError as problem:
        found.absent["coverage"] = f"nothing could be held out: {problem}"
        return
    how = (
        "A scorer like the one shown was fitted five times without a fifth of the judgments, and judged by that fifth."
    )
    if len(training.prefs.queries) > 5:
        how = how.replace("of the judgments", "of the queries")
    found.coverage = coverage_of(curve, how)

"""The part of a report that needs features or a model: a scorer, how it was chosen, when it should decline."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.abstention.held_pairs import HeldPairs, cross_fitted, is_fitted, judged_pairs, scores_of, unfrozen
from concordant.abstention.risk_coverage import RiskCoverage
from concordant.abstention.rule import curve_of
from concordant.apps.commands.given import worded
from concordant.apps.models.saving import load_model
from concordant.apps.report.views import short, thinned
from concordant.errors import ConcordantError, InputError, Setting, UsageError, counted
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.choosing import Curve
from concordant.learning.rankers.disagreement import Disagreement
from concordant.learning.rankers.plans import STRUCTURE_CHOICES
from concordant.learning.rankers.validation import Training, learning_rows
from concordant.learning.scikit import clone
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.splits import folds
from concordant.ranking.click_models import usual_clicks
from concordant.ranking.structures import structure as find_structure

Floats = NDArray[np.float64]
FEATURES = 200
"""Features that are listed, those of most weight."""
REPEATS = 5
"""How often each feature is shuffled."""
WORK = 20_000_000
"""Scores that are computed for shuffled features, beyond which a feature is shuffled less often (once at least)."""


def scorer_of(ranker: Any, training: Training | None, *, seed: int, fitted_here: bool) -> dict[str, Any] | None:
    """Return the coefficients of a linear scorer, else the importances; None where these lack judgments."""
    inner = unfrozen(getattr(ranker, "ranker_", ranker))
    metrics = [] if training is None else [_concordance(ranker, training, fitted_here)]
    if hasattr(inner, "coef_standardised_"):
        value, error = np.asarray(inner.coef_standardised_, np.float64), None
        what, explained = "coefficient", (
            "A score is the sum of coefficient times feature, the features brought to mean 0 and standard deviation 1: "
            "a coefficient is what one standard deviation of its feature adds to the score. Coefficients of features "
            "that go together share their weight. There are no standard errors: they would take fitting the scorer "
            "again and again to resampled judgments."
        )  # fmt: skip
    elif training is None:
        return None
    else:
        value, error, times = _importances(ranker, training, seed)
        what, explained = "importance", (
            f"Importance is the share of judged preferences that the scorer orders rightly, less the same after the "
            f"values of the feature were shuffled among the judged rows ({times} times, seed {seed}; the standard "
            "error is that of the shuffling). Features that go together can stand in for each other."
        )  # fmt: skip
    kept = getattr(inner, "status_", {}).get("validation")
    if kept is not None:
        row = {"name": f"{kept['name']} of what was held out", "value": kept["mean"]}
        metrics.append(
            row | {"standard_error": kept["standard_error"], "note": f"when it was fitted: {kept['held_out']}"}
        )
    names = _names(inner, len(value), training)
    order = np.argsort(-np.abs(value), kind="stable")[:FEATURES]
    return {
        "kind": _kind(inner),
        "what": what,
        "explained": explained,
        "features": [
            {"feature": short(names[j]), "value": value[j], "standard_error": None if error is None else error[j]}
            for j in order.tolist()
        ],
        "left_out": len(value) - len(order),
        "metrics": metrics,
    }


def _kind(inner: Any) -> str:
    """The class of the scorer, and how it was made."""
    status = getattr(inner, "status_", {})
    told = [f"{name} {status[name]}" for name in ("structure", "loss", "order") if status.get(name) is not None]
    regressor = getattr(inner, "regressor_", None)
    told += [] if regressor is None else [type(regressor).__name__]
    return ", ".join([type(inner).__name__, *told])


def _names(inner: Any, width: int, training: Training | None) -> list[str]:
    names = getattr(inner, "feature_names_in_", None)
    if names is None and training is not None and training.named:
        names = training.features.names
    return [str(j + 1) for j in range(width)] if names is None else [str(name) for name in names]


def _concordance(ranker: Any, training: Training, fitted_here: bool) -> dict[str, Any]:
    """How far the order by score agrees with the judgments shown."""
    loss = Disagreement(training.prefs, training.weight).loss(_scores(ranker, training)[training.row])
    note = (
        "the scorer was fitted to these judgments, so this is an upper end; risk–coverage is by judgments held out"
        if fitted_here
        else "if the scorer was fitted to these very judgments, this is too good"
    )
    return {"name": "concordance with the judgments", "value": 1.0 - loss, "standard_error": None, "note": note}


def _scores(ranker: Any, training: Training) -> Floats:
    return scores_of(getattr(ranker, "ranker_", ranker), training.features, training.named)


def _importances(ranker: Any, training: Training, seed: int) -> tuple[Floats, Floats, int]:
    """Mean loss of concordance of each feature, its standard error over the shuffles, and their number."""
    judge = Disagreement(training.prefs, training.weight)
    X, judged = training.features.X, np.unique(training.row)
    before = judge.loss(_scores(ranker, training)[training.row])
    times = int(np.clip(WORK // max(X.size, 1), 1, REPEATS))
    rng = np.random.default_rng(seed)
    worse = np.empty((times, X.shape[1]))
    for j in range(X.shape[1]):
        for time in range(times):
            shuffled = X.copy()
            shuffled[judged, j] = X[rng.permutation(judged), j]
            other = replace(training, features=replace(training.features, X=shuffled))
            worse[time, j] = judge.loss(_scores(ranker, other)[training.row]) - before
    spread = worse.std(axis=0, ddof=1) / np.sqrt(times) if times > 1 else np.full(X.shape[1], np.nan)
    return worse.mean(axis=0), spread, times


LOSS = (
    "Risk is the share of held-out preferences that a scorer contradicts (a tie in score counts half): the mean over "
    "the parts held out, with its standard error"
)


def order_of(curve: Curve, whose: str) -> dict[str, Any]:
    """Return the risk at every order that was tried, other things as chosen (ridges, where one order was tried)."""
    axis, points = curve.axis, curve.curve().to_pylist()
    informed = axis == "ridge" and any(math.isinf(point[axis]) for point in points)
    what = (
        "k is the number of judgments that are aggregated into scores at a time, 'all' uses all judgments of a query "
        "at once; small k is more robust and blurs, large k sees more and needs more judgments"
        if axis == "order"
        else "one k was tried; the axis is the ridge, the penalty on "
        + ("what aggregation adds to a pairwise scorer (inf: it adds nothing)" if informed else "large coefficients")
    )
    shown = [
        {
            "order": f"{point[axis]:g}" if axis == "ridge" else str(point[axis]),
            **{name: point[name] for name in ("loss", "standard_error", "chosen")},
        }
        for point in points
    ]
    return {"axis": axis, "points": shown, "explained": f"{whose} {LOSS}; {what}."}


Ints = NDArray[np.int64]
FOLDS = 5
STEPS = 400
"""Steps of the curve that are shown, more only where more are best at some cost."""


def by_ranking(prefs: Preferences, structure: str, *, seed: int) -> RiskCoverage:
    """Judge score differences of a ranking of four fifths of the judgments on the fifth left out, five times.

    Two items that the rest does not connect have no difference: half wrong, and declined first. Errors (InputError):
    too few judgments.
    """
    parts = min(FOLDS, int(prefs.judgments.max(initial=0)))
    if parts < 2:
        raise InputError("no query has two judgments: none can be held out")
    gap, mass, wrong = [], [], []
    for train, held in folds(prefs, parts, seed=seed):
        scores = find_structure(structure)(Batch.whole(train))
        judge = Disagreement(held)
        apart = scores.component[judge.first] != scores.component[judge.second]
        difference = np.where(apart, 0.0, scores.value[judge.first] - scores.value[judge.second])
        pairs = HeldPairs(difference, np.full(len(difference), np.nan), judge.above, judge.below)
        some = pairs.mass > 0
        gap.append(np.abs(difference)[some])
        mass.append(pairs.mass[some])
        wrong.append(pairs.wrong[some])
    return RiskCoverage.of(np.concatenate(gap), np.concatenate(mass), np.concatenate(wrong), by="score difference")


def by_scorer(ranker: Any, training: Training, *, seed: int) -> RiskCoverage:
    """Judge scorers, each fitted without a part of the judgments, on that part."""
    split = "queries" if len(training.prefs.queries) > FOLDS else "judgments"
    parts = [_judged(fitted, part) for fitted, part in cross_fitted(ranker, training, FOLDS, split, seed)]
    return curve_of(HeldPairs.joined(parts), "risk")


def by_kept_scorer(ranker: Any, training: Training) -> RiskCoverage:
    """Judge a scorer that is fitted already on all judgments given."""
    return curve_of(_judged(ranker, training), "risk")


def _judged(ranker: Any, part: Training) -> HeldPairs:
    return judged_pairs(part, scores_of(ranker, part.features, part.named), None, "inf")


def coverage_of(curve: RiskCoverage, how: str) -> dict[str, Any]:
    """Return the steps of the curve, thinned but exact: all that are best at some cost are there."""
    best = np.flatnonzero(np.isin(curve.threshold, curve.hull().threshold, assume_unique=False))
    last = len(curve.threshold) - 1
    shown = thinned(len(curve.threshold), max(STEPS - len(best), 2), np.append(best, [0, last]))
    what = "distance between them" if curve.by == "distance" else "difference in score"
    explained = (
        f"{how} Pairs of items are declined (left without order) from the least {what} on: wrong is the weight of the "
        "judgments that contradict the order among the pairs that are not declined, half of it where scores are equal; "
        "a judged tie is half wrong whatever the order. At cost c the best step is the one of least "
        f"(wrong + c · declined) / mass; {counted(curve.pairs, 'pairs')}. The step is chosen by the judgments that its "
        "loss is computed from, which makes that loss a little too low."
    )
    return {
        "by": curve.by,
        "explained": explained,
        "mass": curve.mass,
        "pairs": curve.pairs,
        "threshold": curve.threshold[shown],
        "declined": curve.declined[shown],
        "wrong": curve.wrong[shown],
    }


WITHOUT = Note(
    "no features", "a scorer needs {features} of the items, or a {model} that was fitted to some",
    features=Setting("features"), model=Setting("model"),
)  # fmt: skip


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
    training.features.refuse_special("a report")
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
    return str(getattr(unfrozen(ranker), "missing_", "raise"))


def _without_features(found: Learned, ranker: Any) -> None:
    """What a model says by itself."""
    found.scorer = scorer_of(ranker, None, seed=0, fitted_here=False)
    _kept_curve(found, ranker)
    if found.scorer is None:
        text = "importances of a {kind} are by judgments on known features; name them by {features}"
        kind = type(unfrozen(ranker)).__name__
        found.absent["scorer"] = Note("no features", text, kind=kind, features=Setting("features"))


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
    unknown = int(np.isnan(training.features.X).sum())
    if unknown:
        found.notes.append(f"{counted(unknown, 'values')} of features are missing: taken to be the feature's mean")
    clicks = training.prefs.kind == "selections"
    name = usual_clicks(training.prefs) if clicks else STRUCTURE_CHOICES[str(training.prefs.kind)][0]
    ranker = AggregationRanker(name, order="auto", missing="mean" if unknown else "raise", seed=seed)
    X: Any = training.features if training.named else training.features.X
    try:
        ranker.fit(X, training.prefs)
    except ConcordantError as problem:
        found.absent |= dict.fromkeys(("order", "scorer"), f"no scorer could be fitted: {worded(problem)}")
        return
    found.notes += [f"scorer: {note}" for note in ranker.status_["notes"] if note not in training.notes]
    found.order = order_of(ranker.cv_, f"A linear scorer of {name} scores was fitted here at every setting.")
    found.scorer = scorer_of(ranker, training, seed=seed, fitted_here=True)
    chosen = clone(ranker).set_params(order=ranker.order_, ridge=ranker.ridge_)
    try:
        curve = by_scorer(chosen, training, seed=seed)
    except ConcordantError as problem:
        found.absent["coverage"] = f"nothing could be held out: {worded(problem)}"
        return
    how = (
        "A scorer like the one shown was fitted five times without a fifth of the judgments, and judged by that fifth."
    )
    if len(training.prefs.queries) > 5:
        how = how.replace("of the judgments", "of the queries")
    found.coverage = coverage_of(curve, how)

"""What a scorer looks at: its coefficients, or by how much a shuffled feature harms the order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.abstaining.scorer import scores_of, unfrozen
from concordant.rankers.concordance import Disagreement
from concordant.rankers.intake import Training
from concordant.reporting.values import short

__all__ = ["scorer_of"]

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
    assert training.prefs is not None
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
    assert training.prefs is not None
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

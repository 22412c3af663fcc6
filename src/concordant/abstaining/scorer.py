"""The ranker inside: any fitted object that scores rows, how it is fitted, and the scale its distances are taken on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from concordant.errors import InputError, UsageError
from concordant.features.matrix import Features
from concordant.features.normalising import Normaliser
from concordant.progress import steps
from concordant.rankers.estimator import Ranker
from concordant.rankers.folding import folds
from concordant.rankers.intake import Training, matched
from concordant.rankers.judged import Judged
from concordant.rankers.per_query import QueryRankers

__all__ = ["check_scorer", "cross_fitted", "fit_scorer", "is_fitted", "scale_of", "scores_of", "unfrozen"]

Floats = NDArray[np.float64]


def unfrozen(ranker: Any) -> Any:
    """Return the ranker itself where it is wrapped in scikit-learn's FrozenEstimator."""
    return ranker.estimator if isinstance(ranker, FrozenEstimator) else ranker


def check_scorer(ranker: Any) -> None:
    """Refuse what cannot score rows. Errors: UsageError."""
    if isinstance(ranker, type):
        raise UsageError(f"ranker must be an object such as {ranker.__name__}(), not the class")
    if not hasattr(ranker, "predict"):
        raise UsageError(f"a {type(ranker).__name__} has no predict; give a ranker, a regressor or a pipeline of one")


def is_fitted(ranker: Any) -> bool:
    """Whether the ranker can score already; what cannot be fitted can."""
    if not hasattr(ranker, "fit"):
        return True
    try:
        check_is_fitted(unfrozen(ranker))
    except NotFittedError:
        return False
    return True


def scale_of(ranker: Any, training: Training | None, names: tuple[str, ...] | None, *, standardise: bool) -> Normaliser:
    """Return how features are brought to one scale: as the fitted ranker does, or as these rows suggest.

    Errors: UsageError without rows where the ranker does not say.
    """
    inner = unfrozen(ranker)
    own = getattr(inner, "normaliser_", None)
    own = own if isinstance(own, Normaliser) else None
    if own is not None and (own.standardise or not standardise):
        return replace(own, standardise=standardise)
    if training is None:
        raise UsageError(
            f"this {type(inner).__name__} does not bring its features to one scale, which distances need: give fit "
            "features and judgments to learn a scale from"
        )
    width = training.features.X.shape[1]
    X = matched(training.features, training.named, names, getattr(inner, "n_features_in_", None) or width)
    fill = "raise" if getattr(inner, "missing", "raise") == "raise" else "mean"
    return Normaliser(standardise, own is not None and own.log, fill).fit(X, names or training.features.names)


def scores_of(ranker: Any, features: Features, named: bool) -> Floats:
    """Return the score of each row. Errors (InputError): scores that are not one finite number a row."""
    inner = unfrozen(ranker)
    if isinstance(inner, QueryRankers):
        found = inner.predict(features if named else replace(features, names=inner.names_))
    else:
        found = inner.predict(features if named and isinstance(inner, Ranker) else features.X)
    scores = np.asarray(found, np.float64)
    if scores.shape != (len(features),):
        raise InputError(f"predict of {type(inner).__name__} gave shape {scores.shape} for {len(features):,} rows")
    if not np.isfinite(scores).all():
        bad = int((~np.isfinite(scores)).sum())
        raise InputError(f"{bad:,} of {len(scores):,} scores of {type(inner).__name__} are not finite")
    return scores


def fit_scorer(ranker: Any, training: Training) -> Any:
    """Return a clone of the ranker fitted to the judgments or labels of these rows.

    Errors: UsageError for a regressor and preferences; those of the ranker.
    """
    made, features = clone(ranker), training.features
    last = made[-1] if isinstance(made, Pipeline) else made
    ours = isinstance(last, Ranker | QueryRankers)
    labels = None
    if training.labels is not None:
        labels = np.empty(len(features))
        labels[training.row] = training.labels
    elif not ours:
        raise UsageError(
            f"a {type(last).__name__} cannot learn from preferences; fit it first, or give AggregationRanker it as "
            "regressor"
        )
    query = features.query if labels is None else _queries(features)
    judged = Judged(features.items, features.item, features.queries, query, training.prefs, labels)
    return made.fit(features if training.named and last is made and ours else features.X, judged if ours else labels)


def _queries(features: Features) -> NDArray[np.int32]:
    return np.zeros(len(features), np.int32) if features.query is None else features.query


def cross_fitted(ranker: Any, training: Training, n: int, split: str, seed: int) -> Iterator[tuple[Any, Training]]:
    """Yield a ranker fitted without a part of the judgments, and that part, n times."""
    if training.prefs is not None:
        for kept, held in steps("folds", folds(training.prefs, n, split=split, seed=seed), n):
            yield fit_scorer(ranker, replace(training, prefs=kept)), replace(training, prefs=held)
        return
    queries = len(training.start) - 1
    if split != "queries" or queries < n:
        raise UsageError(
            f"labels are held out by query: {n} folds need at least as many queries, there are {queries:,}; give a "
            "ranker that is fitted already and rows it has not seen"
        )
    part = np.random.default_rng(seed).permutation(queries) % n
    for number in steps("folds", range(n)):
        yield fit_scorer(ranker, _of_queries(training, part != number)), _of_queries(training, part == number)


def _of_queries(training: Training, chosen: NDArray[np.bool_]) -> Training:
    """The labelled rows of the chosen queries alone."""
    assert training.labels is not None
    size = np.diff(training.start)
    nodes = np.repeat(chosen, size)
    rows = training.row[nodes]
    return replace(
        training,
        features=training.features.take(rows),
        start=np.concatenate(([0], np.cumsum(size[chosen]))),
        row=np.arange(len(rows)),
        labels=training.labels[nodes],
        weight=training.weight[chosen],
    )

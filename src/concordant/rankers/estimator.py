"""What all rankers share: how rows come in, how features are normalised, how a fitted ranker scores and is judged."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from concordant.errors import InputError, UsageError
from concordant.features.matrix import Matrix
from concordant.features.normalising import Normaliser
from concordant.features.streamed import FeatureFile
from concordant.metrics.ndcg import ndcg
from concordant.rankers.columns import Columns, WholeColumns
from concordant.rankers.concordance import Disagreement
from concordant.rankers.intake import Training, learning_rows, matched, rows_of
from concordant.rankers.streaming import StreamedColumns, StreamedTraining, scores_of_file, scores_of_nodes

__all__ = ["Ranker", "agreement", "sure"]

Floats = NDArray[np.float64]


class Ranker(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator that learns a score of (query, item) from what people judged.

    Both calls mean the same: ``fit(features, prefs)`` with labelled rows (``Features``, a tuple (X, query, item), a
    file or table that ``read_features`` takes) and ``fit(X, judged)`` with a plain matrix and ``Judged``, which names
    its rows; the second is what ``Pipeline``, ``GridSearchCV`` and ``cross_val_score`` call. A ``FeatureFile`` is
    labelled rows that stay on disk, for rankers that can fit them so.
    """

    # parameters that every ranker has; each sets them in its own __init__
    standardise: bool
    log: bool
    missing: str
    status_: dict[str, Any]
    """How the fit ended (status, iterations, gradient) and what a reader should know (notes)."""

    # -- scikit-learn ----------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from the judgments ``y`` on the rows ``X``.

        y is Judged, Preferences or (where the ranker takes labels) one relevance label per row. ``sample_weight`` has
        an entry per row, the same for all rows of a query: it multiplies the query's loss, as if each of its judgments
        had been made so many times; only ratios matter. Errors: InputError, UsageError.
        """
        self._check()
        if isinstance(X, FeatureFile):
            self._check_streamed(X, y)
            streamed = StreamedTraining.of(X, y, sample_weight)
            passes = StreamedColumns(X, streamed.placed, self._normaliser(), self._normalised)
            self._learn(streamed, passes)
            self._keep(passes.normaliser, X.names, len(X.names))
            return self
        training = learning_rows(X, y, self._missing, sample_weight)
        normaliser = self._normaliser().fit(training.features.X, training.features.names)
        self._learn(training, WholeColumns(training.features.X, normaliser, self._normalised))
        self._keep(normaliser, training.features.names if training.named else None, training.features.X.shape[1])
        return self

    def predict(self, X: Any) -> Floats:
        """Return one score per row, higher is better; only differences within a query mean something.

        X takes any form that ``fit`` takes, or is a plain matrix. The score of a row does not depend on other rows.
        Errors: NotFittedError; InputError for feature names that differ (saying which), values that are not finite, or
        so large that scores are not.
        """
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(X, FeatureFile):
                return sure(scores_of_file(X, self._scores_of, self._names, self._missing))
            features, named = rows_of(X, self._missing, self._names)
            return sure(self._scores_of(matched(features, named, self._names, self.n_features_in_)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return how well the scores agree with judgments (1 is best), for model selection.

        With preferences 1 less the generalised pairwise disagreement, a tie in score counting ½, queries weighted by
        their judgments; with labels the mean of nDCG@10. Errors: InputError when no query has anything to agree with.
        """
        check_is_fitted(self)
        if isinstance(X, FeatureFile):
            streamed = StreamedTraining.of(X, y, sample_weight)
            return agreement(streamed, scores_of_nodes(streamed, self._scores_of, self._names, self._missing))
        held = learning_rows(X, y, self._missing, sample_weight)
        scores = self.predict(held.features if held.named or self._names is None else held.features.X)[held.row]
        return agreement(held, scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = self.missing != "raise"
        return tags

    # -- for the rankers -------------------------------------------------------------------------------------------
    @abstractmethod
    def _check(self) -> None:
        """Refuse parameters that mean nothing, before any work."""

    def _check_streamed(self, file: FeatureFile, y: Any) -> None:
        """Refuse what cannot be fitted from features on disk, before any work."""
        raise UsageError(f"{type(self).__name__} needs the features in memory; read_features reads {file.log.name}")

    @abstractmethod
    def _learn(self, training: Training, columns: Columns) -> None:
        """Fit to the normalised rows of ``training.features``; set ``status_`` and what scores need."""

    @abstractmethod
    def _scores(self, Z: Matrix) -> Floats:
        """Score rows of normalised features."""

    def _scores_of(self, X: Matrix) -> Floats:
        """Score rows of features as they are given."""
        return self._scores(self._normalised(self.normaliser_, X))

    @property
    def _missing(self) -> str:
        """'raise', or else NaN is let through."""
        return self.missing

    def _normaliser(self) -> Normaliser:
        return Normaliser(self.standardise, self.log, "mean" if self.missing == "keep" else self.missing)

    def _normalised(self, normaliser: Normaliser, X: Matrix) -> Matrix:
        Z = normaliser.apply(X)
        if self.missing == "keep":
            Z[np.isnan(X)] = np.nan
        return Z

    @property
    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names.tolist())

    def _keep(self, normaliser: Normaliser, names: tuple[str, ...] | None, width: int) -> None:
        self.normaliser_ = normaliser
        self.n_features_in_ = width
        if names is not None:
            self.feature_names_in_ = np.array(names, object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


def sure(values: NDArray[Any], what: str = "their scores are") -> NDArray[Any]:
    """Return scores, or rows that scores are made of. Errors (InputError): some are not finite."""
    wrong = ~np.isfinite(values) if values.ndim == 1 else np.isinf(values).any(axis=1)
    if wrong.any():
        raise InputError(
            f"{int(wrong.sum()):,} of {len(values):,} rows have features so large that {what} not finite "
            f"(first: row {int(wrong.argmax()) + 1:,})"
        )
    return values


def agreement(held: Training, scores: Floats) -> float:
    """Return how well scores of the nodes agree with what was judged about them, 1 is best.

    Errors: InputError when there is nothing to agree with.
    """
    if held.prefs is not None:
        loss = Disagreement(held.prefs, held.weight).loss(scores)
        if np.isnan(loss):
            raise InputError(f"no query of these {len(held.prefs):,} judgments has a comparison to be scored by")
        return 1.0 - loss
    assert held.labels is not None
    query = np.repeat(np.arange(len(held.start) - 1), np.diff(held.start))
    return float(np.average(ndcg(scores, held.labels, query, at=10), weights=held.weight))

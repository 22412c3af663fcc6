"""What all rankers share: how rows come in and are normalised, how a fitted ranker scores, is judged and is kept."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError
from concordant.io.log.json_values import Fields
from concordant.learning.features.categories import as_fitted
from concordant.learning.features.matrix import Features, Matrix
from concordant.learning.features.normalising import Normaliser
from concordant.learning.features.sparse_rows import SparseRows
from concordant.learning.features.streamed import FeatureFile
from concordant.learning.rankers.columns import (
    Columns,
    StreamedColumns,
    StreamedTraining,
    TargetSums,
    WholeColumns,
    scores_of_file,
    scores_of_nodes,
)
from concordant.learning.rankers.regressors import knows_categories, knows_missing, stage_count, stages
from concordant.learning.rankers.target import Target
from concordant.learning.rankers.validation import Training, learning_rows, matched, reads_below, rows_of
from concordant.learning.scikit import BaseEstimator, check_is_fitted
from concordant.losses.metrics.metrics import metric
from concordant.losses.metrics.pairwise import pairwise_loss
from concordant.preferences.notes import Note

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
    levels_: dict[str, tuple[str, ...]]
    """Levels of each column of categories, by its name."""
    status_: dict[str, Any]
    """How the fit ended (status, iterations, gradient) and what a reader should know (notes)."""

    # -- scikit-learn ----------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, qid: Any = None, group: Any = None) -> Self:
        """Learn from the judgments ``y`` on the rows ``X``.

        y is Judged, Preferences or (where the ranker takes labels) one relevance label per row. ``qid`` names the query
        of each row, ``group`` says how many rows each query has, one after another, where the rows do not say it; a
        plain matrix and numbers with neither are one list of grades. ``sample_weight`` has an entry per row, the same
        for all rows of a query: it multiplies the query's loss, as if each of its judgments had been made so many
        times; only ratios matter. Errors: InputError, UsageError.
        """
        self._check()
        if isinstance(X, TargetSums):
            self._keep(self._learn_sums(X), X.names, len(X.names))
            return self
        if isinstance(X, FeatureFile):
            if qid is not None or group is not None:
                raise UsageError("rows that stay on disk say their query themselves; qid and group are for a matrix")
            self._check_streamed(X, y)
            streamed = StreamedTraining.of(X, y, sample_weight, whole=reads_below(getattr(self, "structure", None), y))
            passes = StreamedColumns(X, streamed.placed, self._normaliser(), self._normalised)
            self._learn(streamed, passes)
            self._say_target(str(streamed.prefs.kind))
            self._keep(passes.normaliser, X.names, len(X.names))
            return self
        structure = getattr(self, "structure", None)
        training = learning_rows(X, y, self.missing_, sample_weight, structure=structure, qid=qid, group=group)
        if not self._takes_sparse:
            training.features.refuse_sparse(self._scorer)
        levels = dict(training.features.levels)
        shown = self._levelled(training.features, levels, codes=self._knows_categories)
        training = replace(training, features=shown, said=self._said(training))
        normaliser = self._normaliser().fit(training.features.X, training.features.names)
        normaliser = normaliser.leaving(training.features.categories)
        self._learn(training, WholeColumns(training.features.X, normaliser, self._normalised))
        self._say_target(None if training.labelled else str(training.prefs.kind))
        names = training.features.names if training.named else None
        self._keep(normaliser, names, training.features.X.shape[1], levels)
        self._say_missing(training.features.X.size)
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
                return sure(scores_of_file(X, self._scores_of, self._names, self.missing_))
            return sure(self._scores_of(self._rows_as_fitted(X)))

    def _rows_as_fitted(self, X: Any) -> Matrix:
        """Return rows with the columns, and the codes of categories, that the ranker was fitted on."""
        features, named = rows_of(X, self.missing_, self._names)
        if not self._takes_sparse or hasattr(self, "regressor_"):
            features.refuse_sparse(self._scorer)
        codes = any(name in self.normaliser_.names for name in self.levels_)  # a model that was read has no regressor
        shown, named = self._levelled(features, self.levels_, codes=codes), named or bool(features.levels)
        return matched(shown, named, self._names, self.n_features_in_, type(self).__name__)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, qid: Any = None, group: Any = None) -> float:
        """Return how well the scores agree with judgments (1 is best), for model selection.

        With preferences 1 less the loss of the ranker's target (``Target``; of rankers without one that of this kind of
        preferences: pairwise disagreement, a tie in score counting ½, or ERR of clicks), queries weighted by their
        judgments; with labels the mean of the target's metric, of nDCG@10 where none is named (pairwise: 1 less the
        share of the differences of labels that the scores contradict; that, too, of labels below 0 where none is
        named). Arguments as of ``fit``. Errors: InputError when no query has anything to agree with, or a split cut
        queries apart.
        """
        check_is_fitted(self)
        if isinstance(X, FeatureFile):
            streamed = StreamedTraining.of(X, y, sample_weight, whole=True)
            scores = scores_of_nodes(streamed, self._scores_of, self._names, self.missing_)
            return agreement(streamed, scores, getattr(self, "target", None))
        held = learning_rows(X, y, self.missing_, sample_weight, whole=True, qid=qid, group=group)
        held.refuse_cut()
        told = held.named or self._names is None or held.features.levels
        scores = self.predict(held.features if told else held.features.X)[held.row]
        return agreement(held, scores, getattr(self, "target", None))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = self.missing_ != "raise"
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def _say_target(self, kind: str | None) -> None:
        """Keep what the scorer is judged by where nothing else is named; ``kind``: of the preferences, None: labels."""
        target = getattr(self, "target", None)
        if kind is not None:
            target = Target.of(target, kind)
        if target is not None:
            self.status_.setdefault("target", str(target))

    def _say_missing(self, size: int) -> None:
        """Say what becomes of the missing values among so many, where they are not filled."""
        _, _, _, absent, _ = self.normaliser_.fitted()
        if self.missing_ == "keep" and absent.any():
            text = "{values:,} of {of:,} values of features are missing: the {scorer} takes them as they are"
            beneath = hasattr(self, "scorer_standardised_")
            text += ", the linear scorer that it starts from takes them to be at the mean" if beneath else ""
            facts: dict[str, Any] = {"values": int(absent.sum()), "of": size}
            scorer = type(getattr(self, "regressor_", self)).__name__
            self.status_["notes"] = [*self.status_["notes"], Note("missing values", text, scorer=scorer, **facts)]

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

    def _learn_sums(self, source: TargetSums) -> Normaliser:
        """Fit to sums; set ``status_`` and what scores need, and return the normaliser."""
        raise UsageError(f"{type(self).__name__} needs judgments and features in memory")

    @abstractmethod
    def _scores(self, Z: Matrix) -> Floats:
        """Score rows of normalised features."""

    def _scores_of(self, X: Matrix) -> Floats:
        """Score rows of features as they are given."""
        return self._scores(self._normalised(self.normaliser_, X))

    @property
    def _knows_categories(self) -> bool:
        """Whether codes of categories are fitted as they are, and not a column for each level."""
        return knows_categories(getattr(self, "regressor", None))

    def _levelled(self, features: Features, levels: Mapping[str, tuple[str, ...]], *, codes: bool) -> Features:
        """Return features with their categories as the ranker knows them: codes, or a column for each level."""
        if not (levels or features.levels):
            return features
        if codes and self.log:
            raise UsageError("the logarithm of a category means nothing: leave log out")
        return as_fitted(features, levels, codes=codes, unknown=np.nan if self.missing_ == "keep" else -1.0)

    def _said(self, training: Training) -> tuple[Note, ...]:
        levels = training.features.levels
        if not levels:
            return training.said
        codes = self._knows_categories
        text = "{columns:columns} of categories: " + (
            "the regressor takes them as such" if codes else "a column of 0 and 1 for each of {levels:levels}"
        )
        note = Note("categories", text, columns=len(levels), levels=sum(map(len, levels.values())))
        return (*training.said, note)

    @property
    def _takes_sparse(self) -> bool:
        """Whether a sparse matrix is fitted as it is."""
        return False

    @property
    def _scorer(self) -> str:
        """What is fitted, in words."""
        regressor = getattr(self, "regressor", None)
        return type(self).__name__ + ("" if regressor is None else f" with a {type(regressor).__name__}")

    @property
    def missing_(self) -> str:
        """What is done with missing values: ``missing``, of 'auto' 'keep' or 'raise', as suits the regressor."""
        if self.missing != "auto":
            return self.missing
        return "keep" if knows_missing(getattr(self, "regressor", None)) else "raise"

    def _normaliser(self) -> Normaliser:
        return Normaliser(self.standardise, self.log, "mean" if self.missing_ == "keep" else self.missing_)

    def _normalised(self, normaliser: Normaliser, X: Matrix) -> Any:
        Z = normaliser.apply(X)
        if self.missing_ == "keep":
            Z[np.isnan(X)] = np.nan
        return Z

    @property
    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names.tolist())

    def _keep(
        self,
        normaliser: Normaliser,
        names: tuple[str, ...] | None,
        width: int,
        levels: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.normaliser_ = normaliser
        self.levels_ = dict(levels or {})
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


def agreement(held: Training, scores: Floats, target: Any = None) -> float:
    """Return how well scores of the nodes agree with what was judged about them, 1 is best, by a target.

    Errors: InputError when there is nothing to agree with.
    """
    if held.labelled:
        usual = Target("pairwise") if (held.labels < 0).any() else Target("ndcg", 10)
        asked = usual if target is None else Target.of(target, "")
        value = agreement_with_labels(scores, held.labels, held.groups.owner, asked)
        known = ~np.isnan(value)
        if not known.any():
            raise InputError(f"no query of these labels can be judged by {asked}")
        return float(np.average(value[known], weights=held.weight[known]))
    loss = Target.of(target, str(held.prefs.kind)).judge(held.prefs, held.weight).loss(scores)
    if np.isnan(loss):
        raise InputError(f"no query of these {len(held.prefs):,} judgments has a comparison to be scored by")
    return 1.0 - loss


def agreement_with_labels(
    scores: Floats, labels: Floats, owner: NDArray[np.int64], target: Target, *, halved: bool = False
) -> Floats:
    """Return how well scores agree with the labels of each query, NaN where nothing tells; ``owner`` ascends from 0.

    Of the pairwise target: 1 less the share of the differences of labels that the scores contradict. ``halved``: tied
    scores count as the mean of the worst and the best order, and not by the metric's rule.
    """
    if target.of_lists:
        judge = metric(str(target))
        rules = ("worst", "best") if halved else (None,)
        return np.asarray(np.mean([judge(scores, labels, owner, ties=rule) for rule in rules], axis=0), np.float64)
    apart = np.bincount(owner, labels != labels[np.searchsorted(owner, owner)]) > 0
    value = 1.0 - pairwise_loss(scores, labels, owner, normalise=True)
    if halved:  # a tie is charged in full, in either direction
        value = 0.5 * (value + pairwise_loss(-scores, labels, owner, normalise=True))
    return np.where(apart, value, np.nan)


R = TypeVar("R", bound=Ranker)


def json_values(value: Any) -> Any:
    """Return a value as JSON keeps it (tuples as lists, NumPy numbers as numbers); TypeError when it cannot."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): json_values(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(each) for each in value]
    json.dumps(value)
    return value


def described(ranker: Any) -> dict[str, Any]:
    """Return the state of a fitted ranker but for what its scores are made of, as values that JSON keeps.

    Errors: NotFittedError.
    """
    check_is_fitted(ranker)
    params, lost = {}, []
    for name, value in ranker.get_params(deep=False).items():
        try:
            params[name] = json_values(value)
        except TypeError:
            lost.append(name)
    if params.get("missing") == "auto":
        params["missing"] = ranker.missing_  # the regressor, which it depends on, is no parameter of what is restored
    names, levels = getattr(ranker, "feature_names_in_", None), ranker.levels_
    return {
        "ranker": type(ranker).__name__,
        "params": params,
        "not_kept": lost,
        "features": ranker.n_features_in_,
        "names": None if names is None else list(names),
        "normaliser": ranker.normaliser_.to_dict(),
        **({"levels": {name: list(found) for name, found in levels.items()}} if levels else {}),
        "status": json_values(ranker.status_),
    }


def restored(cls: type[R], values: Mapping[str, Any]) -> R:
    """Return a ranker with the state of ``described``. Errors (InputError): what is missing or does not fit."""
    given = Fields(values, "the state of the ranker")
    if given["ranker"] != cls.__name__:
        raise InputError(f"this is the state of a {given['ranker']}, not of a {cls.__name__}")
    try:
        made = cls(**given.fields("params").values)
    except TypeError as error:
        raise given.wrong(str(error)[:160]) from None
    normaliser = Normaliser.from_dict(given["normaliser"])
    names = None if given["names"] is None else given.texts("names")
    width = given.whole("features")
    if {width, len(normaliser.names), width if names is None else len(names)} != {width}:
        raise given.wrong(f"it does not hold {width:,} features throughout")
    if names is not None and names != normaliser.names:
        raise given.wrong("the names of its features are not those of its normaliser")
    alike = made._normaliser()
    if (alike.standardise, alike.log, alike.missing) != (normaliser.standardise, normaliser.log, normaliser.missing):
        raise given.wrong("its parameters are not those of its normaliser")
    made.status_ = dict(given.fields("status").values)
    given.fields("status").text("status")
    levels = given.fields("levels") if "levels" in values else None
    known_levels = None if levels is None else {name: levels.texts(name) for name in levels.values}
    made._keep(normaliser, names, width, known_levels)
    return made


def numbers_of(arrays: Mapping[str, NDArray[Any]], name: str, width: int) -> NDArray[np.float64]:
    """Return an array of so many finite numbers. Errors (InputError)."""
    found = arrays.get(name)
    if found is None or found.dtype.kind != "f" or found.shape != (width,) or not np.isfinite(found).all():
        raise InputError(f"the state of the ranker cannot be read: it has no {width:,} finite numbers as {name}")
    return np.array(found, np.float64)


def linear_scores(Z: Any, theta: Floats) -> Floats:
    """Return Zθ in float64, each row by itself: its bits do not depend on the rows beside it.

    >>> Z = np.random.default_rng(0).normal(size=(5, 3))
    >>> bool((linear_scores(Z, Z[0])[2:3] == linear_scores(Z[2:3], Z[0])).all())
    True
    """
    if isinstance(Z, SparseRows):
        return np.asarray(Z @ theta, np.float64)
    return np.asarray(np.einsum("ij,j->i", np.asarray(Z, np.float64), theta), np.float64)


def known(Z: Any) -> Matrix:
    """Return normalised features with missing values taken to be at the mean."""
    found: Matrix = np.where(np.isnan(Z), 0.0, Z) if not isinstance(Z, SparseRows) and np.isnan(Z).any() else Z
    return found


class LinearRanker(Ranker):
    """A ranker whose scores are linear in the normalised features, or those of a regressor that it was given.

    ``coef_standardised_`` (features,) belongs to the normalised features, ``coef_`` to the features as given (after
    the logarithm, with ``log=True``): a score is their product plus a constant that no order sees. With a regressor
    there is ``regressor_`` instead, the fitted clone, whose predictions times ``regressor_unit_`` are the scores; where
    it was fitted to what a linear scorer leaves, the scores of ``scorer_standardised_`` come on top.
    """

    @property
    def _takes_sparse(self) -> bool:
        return getattr(self, "regressor", None) is None

    coef_standardised_: Floats
    scorer_standardised_: Floats
    regressor_: Any
    regressor_unit_: float
    status_: dict[str, Any]

    @property
    def foreign_(self) -> Any:
        """The fitted regressor that scores come from when it is not concordant's own; else None."""
        return getattr(self, "regressor_", None)

    @property
    def coef_(self) -> Floats:
        """Coefficients of the features in their own units."""
        scale = self.normaliser_.scale if self.standardise else None
        return self.coef_standardised_ if scale is None else self.coef_standardised_ / scale

    def _take_linear(self, theta: Floats) -> None:
        self.coef_standardised_ = theta
        self._forget("regressor_", "regressor_unit_", "scorer_standardised_")

    def _take_regressor(self, fitted: Any, unit: float, scorer: Floats | None = None) -> None:
        self._forget("coef_standardised_", "scorer_standardised_")
        self.regressor_, self.regressor_unit_ = fitted, unit
        if scorer is not None:
            self.scorer_standardised_ = scorer

    def _forget(self, *names: str) -> None:
        for name in names:
            if hasattr(self, name):
                delattr(self, name)

    def _scores(self, Z: Matrix) -> Floats:
        if hasattr(self, "coef_standardised_"):
            return linear_scores(Z, self.coef_standardised_)
        if len(Z) == 0:  # which others refuse
            return np.zeros(0)
        found = np.asarray(self.regressor_.predict(sure(Z)), np.float64).reshape(len(Z)) * self.regressor_unit_
        if not hasattr(self, "scorer_standardised_"):
            return found
        return found + linear_scores(known(Z), self.scorer_standardised_)

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """Yield the scores of rows, as ``predict``, after 0, 1, 2, … trees of a boosting regressor.

        Errors: NotFittedError; UsageError for other regressors, and for a ranker that was loaded.

        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> from concordant.learning.rankers.lists import ListRanker
        >>> rows = (np.arange(60.0)[:, None] % 6, np.repeat(list("pqrstuvwxy"), 6), np.arange(60))
        >>> trees = ListRanker(regressor=HistGradientBoostingRegressor(max_iter=3)).fit(rows, rows[0][:, 0] // 2)
        >>> *_, last = trees.staged_predict(rows)
        >>> bool(np.allclose(last, trees.predict(rows)))
        True
        """
        check_is_fitted(self)
        regressor = self.foreign_
        if (count := stage_count(regressor)) is None:
            what = "a linear scorer" if regressor is None else type(regressor).__name__
            raise UsageError(f"staged_predict is of boosting regressors, not of {what}")
        Z = self._normalised(self.normaliser_, self._rows_as_fitted(X))
        base = linear_scores(known(Z), getattr(self, "scorer_standardised_", np.zeros(Z.shape[1])))
        yield base
        for found in stages(regressor, Z, 0, count):
            yield base + np.asarray(found, np.float64) * self.regressor_unit_

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that scoring needs: values that JSON keeps, and arrays. Errors: NotFittedError.

        Parameters that JSON cannot keep (a function as gain) are listed under ``not_kept``; scores do not need them. A
        regressor that was given (``foreign_``) is not in the state: keep it beside, and set ``regressor_`` again.
        """
        values = described(self)
        if self.foreign_ is not None:
            scorer = getattr(self, "scorer_standardised_", None)
            return {**values, "regressor_unit": self.regressor_unit_}, {} if scorer is None else {"scorer": scorer}
        return values, {"coef": self.coef_standardised_}

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the fitted ranker of a ``to_state``; its scores have the same bits. Errors: InputError."""
        made = restored(cls, values)
        width = made.n_features_in_
        if "regressor_unit" in values:
            made.regressor_unit_ = Fields(values, "the state of the ranker").number("regressor_unit")
            if "scorer" in arrays:
                made.scorer_standardised_ = numbers_of(arrays, "scorer", width)
            return made
        if made.missing_ == "keep":
            raise InputError("the state of the ranker cannot be read: a linear scorer keeps no missing values")
        made.coef_standardised_ = numbers_of(arrays, "coef", width)
        return made

"""QueryRankers: one independent ranker for each query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from concordant.errors import Idle, InputError, UsageError, few
from concordant.io.log.json_values import Fields
from concordant.learning.features.matrix import Features
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.boosted import BoostedRanker
from concordant.learning.rankers.boosting import RankBoostRanker
from concordant.learning.rankers.copeland import CopelandRanker
from concordant.learning.rankers.edges import EdgeRanker
from concordant.learning.rankers.estimator import Ranker, agreement
from concordant.learning.rankers.lists import ListRanker
from concordant.learning.rankers.validation import Training, learning_rows, matched, rows_of
from concordant.learning.scikit import BaseEstimator, check_is_fitted, clone
from concordant.preferences.labels import Labels

Floats = NDArray[np.float64]
SINGLE: Mapping[str, type[Any]] = MappingProxyType(
    {
        member.__name__: member
        for member in (AggregationRanker, BoostedRanker, CopelandRanker, EdgeRanker, ListRanker, RankBoostRanker)
    }
)
"""Rankers that hold one scorer."""
ALL = "all"
"""The query of labelled rows that say none."""


class QueryRankers(BaseEstimator):  # type: ignore[misc]
    """A clone of a ranker for each query, fitted to that query's judgments alone.

    For queries that have nothing in common but the features of their items, such as searches for images: the scorer of
    a query then orders items that nobody has judged for it. Features may hold for every query (no query column); rows
    to be scored always say their query.

    ``ranker`` is any ranker of this package (default ``AggregationRanker("log-odds", order="all")``). Attributes:
    ``rankers_``, by the query's label, ``status_``. Errors: those of the ranker, naming the query; InputError for a
    query at scoring
    that no judgment spoke of.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["a", "b"], ["b", "a"], query=["low", "high"])
    >>> rankers = QueryRankers().fit({"item": ["a", "b", "c"], "size": [1.0, 2.0, 3.0]}, votes)
    >>> scores = rankers.predict(([[1.0], [3.0]] * 2, ["low", "low", "high", "high"], ["a", "c"] * 2))
    >>> bool(scores[0] > scores[1]), bool(scores[2] < scores[3])
    (True, True)

    Source: Mackey (2014), image search with one scoring function per query.
    """

    def __init__(self, ranker: Any = None) -> None:
        self.ranker = ranker

    @property
    def foreign_(self) -> None:
        """None: rankers around regressors of others cannot be kept together (``to_state`` says so)."""

    @property
    def missing_(self) -> str:
        """What each of its rankers does with missing features."""
        given = next(iter(self.rankers_.values())) if hasattr(self, "rankers_") else self.ranker
        return "raise" if given is None else str(given.missing_)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, qid: Any = None, group: Any = None) -> Self:
        """Fit one ranker to each query's judgments; arguments as of any ranker (weights of queries change nothing)."""
        if not (self.ranker is None or isinstance(self.ranker, Ranker)):
            raise UsageError(f"ranker must be a ranker of concordant, not {self.ranker!r}")
        missing = "raise" if self.ranker is None else self.ranker.missing_
        training = learning_rows(X, y, missing, sample_weight, qid=qid, group=group)
        training.features.refuse_categories("QueryRankers")
        usual = AggregationRanker() if training.labelled else AggregationRanker("log-odds", order="all")
        given = usual if self.ranker is None else self.ranker
        features = training.features
        names = features.names or tuple(str(place + 1) for place in range(features.X.shape[1]))
        features = replace(features, names=names)
        self.rankers_ = {}
        for code, label in enumerate(_queries(training)):
            rows = _rows(features, label)
            known = features if rows is None else features.take(rows)
            judged = _labels(training, code, rows) if training.labelled else training.prefs.select([label])
            try:
                self.rankers_[label] = clone(given).fit(known, judged)
            except Idle:
                raise  # the same in every query
            except (InputError, UsageError) as error:
                raise type(error)(f"query {label!r}: ", *error.args) from None
        self.n_features_in_ = features.X.shape[1]
        self.names_ = names
        if training.named:
            self.feature_names_in_ = np.array(names, object)
        self.status_ = _status(self.rankers_)
        return self

    def predict(self, X: Any) -> Floats:
        """Return one score per row, by the ranker of the row's query.

        X is Features, (X, query, item) or a table with a column of queries. Errors: NotFittedError; InputError for a
        query without a ranker; UsageError for rows that do not say their query.
        """
        check_is_fitted(self)
        named = getattr(self, "feature_names_in_", None)
        features, has_names = rows_of(X, self.missing_, None if named is None else tuple(named))
        if not has_names and features.X.shape[1] != self.n_features_in_:
            matched(features, False, None, self.n_features_in_, type(self).__name__)  # which says so
        if features.query is None and list(self.rankers_) == [ALL]:  # fitted to one list of grades
            return np.asarray(self.rankers_[ALL].predict(features if has_names else features.X), np.float64)
        if features.query is None:
            raise UsageError("each query has a ranker of its own, so rows must say their query: (X, query, item)")
        if not has_names or named is None:
            features = replace(features, names=self.names_)
        labels = features.queries.tolist()
        unknown = [label for label in labels if label not in self.rankers_]
        if unknown:
            raise InputError(
                f"{len(unknown):,} of {len(labels):,} queries have no ranker, as nothing was judged about them: "
                f"{few(unknown)}"
            )
        scores = np.empty(len(features))
        for code, label in enumerate(labels):
            rows = np.flatnonzero(features.query == code)
            scores[rows] = self.rankers_[label].predict(features.take(rows))
        return scores

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, qid: Any = None, group: Any = None) -> float:
        """Return how well the scores agree with judgments, as ``Ranker.score`` does."""
        check_is_fitted(self)
        held = learning_rows(X, y, self.missing_, sample_weight, whole=True, qid=qid, group=group)
        held.refuse_cut()
        if not held.named:
            matched(held.features, False, None, self.n_features_in_, type(self).__name__)
        found, nodes = held.features, held.row
        if found.query is None:  # rows hold for every query: one row for each node
            if held.labelled:
                return agreement(held, self.predict(found if held.named else found.X)[nodes])
            query = held.groups.owner.astype(np.int32)
            X_nodes = found.X[nodes]
            names = found.names if held.named else self.names_
            queries = held.prefs.queries
            found = replace(found, X=X_nodes, item=found.item[nodes], queries=queries, query=query, names=names)
            nodes = np.arange(len(query))
        return agreement(held, self.predict(found)[nodes])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = self.ranker is None or self.ranker.__sklearn_tags__().input_tags.sparse
        return tags

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the states of all rankers. Errors: UsageError for rankers around regressors of others."""
        check_is_fitted(self)
        states, arrays = [], {}
        for place, ranker in enumerate(self.rankers_.values()):
            if ranker.foreign_ is not None:
                raise UsageError(
                    f"the rankers of {len(self.rankers_):,} queries each hold a {type(ranker.foreign_).__name__}; only "
                    "linear ones are kept"
                )
            values, held = ranker.to_state()
            states.append(values)
            arrays.update({f"{place}-{name}": column for name, column in held.items()})
        named = hasattr(self, "feature_names_in_")
        top = {
            "ranker": type(self).__name__,
            "queries": list(self.rankers_),
            "names": list(self.names_),
            "named": named,
        }
        return {**top, "states": states}, arrays

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the fitted rankers of a ``to_state``. Errors: InputError."""
        made = cls()
        given = Fields(values, "the state of the rankers")
        labels, states, made.names_ = given["queries"], given["states"], given.texts("names")
        if not isinstance(labels, list) or not isinstance(states, list) or len(labels) != len(states):
            raise given.wrong("queries and states do not go together")
        kinds = {type(label) for label in labels}
        if not (kinds <= {str} or kinds <= {int}) or len(set(labels)) < len(labels):
            raise given.wrong("queries must be different texts, or different integers")
        made.rankers_ = {}
        for place, (label, state) in enumerate(zip(labels, states)):
            inside = Fields(state, f"the ranker of query {label!r}")
            held = {name.partition("-")[2]: a for name, a in arrays.items() if name.partition("-")[0] == str(place)}
            ranker = SINGLE[inside.text("ranker", tuple(SINGLE))].from_state(state, held)
            if ranker.foreign_ is not None or ranker.normaliser_.names != made.names_:
                raise inside.wrong("it is not one of these features alone")
            inside.fields("status").texts("notes")
            made.rankers_[label] = ranker
        if given.flag("named"):
            made.feature_names_in_ = np.array(made.names_, object)
        if made.rankers_:
            made.ranker = clone(next(iter(made.rankers_.values())))
        made.n_features_in_ = len(made.names_)
        made.status_ = _status(made.rankers_)
        return made


def _status(rankers: Mapping[Any, Any]) -> dict[str, Any]:
    """Count how the fits ended; notes of all queries, each once."""
    ended: dict[str, int] = {}
    notes: dict[str, None] = {}
    for ranker in rankers.values():
        ended[ranker.status_["status"]] = ended.get(ranker.status_["status"], 0) + 1
        notes.update(dict.fromkeys(ranker.status_["notes"]))
    said = "; ".join(f"{number:,} {status}" for status, number in ended.items())
    return {"status": said, "queries": len(rankers), "notes": list(notes)[:20]}


def _queries(training: Training) -> list[Any]:
    """Labels of the queries that are learned from, in the order of their nodes."""
    if not training.labelled:
        return training.prefs.queries.tolist()
    if training.features.query is None:
        return [ALL]
    codes = training.features.query[training.row[training.start[:-1]]]
    return list(training.features.queries.take(codes).to_pylist())


def _rows(features: Features, label: Any) -> NDArray[np.int64] | None:
    """The rows of a query; None for all of them, where they hold for every query."""
    if features.query is None:
        return None
    code = Labels(features.queries.values).codes_of([label])[0]
    return np.flatnonzero(features.query == code)


def _labels(training: Training, code: int, rows: NDArray[np.int64] | None) -> Floats:
    """The labels of a query in the order of its rows."""
    part = slice(int(training.start[code]), int(training.start[code + 1]))
    at = np.full(len(training.features), -1.0)  # not judged, in a LETOR file
    at[training.row[part]] = training.labels[part]
    return at if rows is None else at[rows]

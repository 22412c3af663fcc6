"""A model and the features it is served with: requests in; ranks, pairs and tiers out, without a word of HTTP."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.abstention.held_pairs import pair_distances, unfrozen
from concordant.abstention.ranker import AbstainingRanker
from concordant.abstention.rule import DECIDED, REASONS, PairDecisions, Rule
from concordant.abstention.tiers import tiers_of
from concordant.apps.serve.limits import Refused
from concordant.apps.serve.requests import CompareRequest, RankRequest, RowsRequest, ScoreRequest
from concordant.errors import ConcordantError, InputError, UsageError, few
from concordant.learning.features.matrix import Features, Matrix
from concordant.learning.rankers.per_query import QueryRankers
from concordant.learning.rankers.validation import matched, rows_of
from concordant.learning.scikit import check_is_fitted
from concordant.preferences.labels import Labels

Ints = NDArray[np.int64]


class LabelCodes:
    """Codes of labels, a few at a time: a dictionary for texts, a search among sorted integers.

    A label is matched as it is written: 1 and "1" are the same one, since loaded labels are all texts or all integers.

    >>> codes = LabelCodes(Labels.encode(["b", "a", "7"])[0])
    >>> codes.of(["a", 7, "x"]).tolist()
    [1, 0, -1]
    """

    def __init__(self, labels: Labels) -> None:
        self.integer = bool(pa.types.is_integer(labels.values.type))
        self.sorted = labels.values.to_numpy(zero_copy_only=False) if self.integer else np.zeros(0, np.int64)
        self.code = {} if self.integer else {label: code for code, label in enumerate(labels)}

    def of(self, sought: list[Any]) -> Ints:
        """Return the code of each label, -1 for one that is not there."""
        if not self.integer:
            get = self.code.get
            found = np.array([get(label, -1) for label in sought], np.int64)
            for place in np.flatnonzero(found < 0).tolist():
                found[place] = get(str(sought[place]), -1)
            return found
        numbers = np.array([_integer(label) for label in sought], np.int64)
        at = np.minimum(np.searchsorted(self.sorted, numbers), len(self.sorted) - 1)
        there = self.sorted[at] == numbers
        for place in np.flatnonzero(there).tolist():
            there[place] = str(sought[place]) == str(numbers[place])
        return np.where(there, at, -1)


def _integer(label: Any) -> int:
    """The integer that a text is written as; 0 for any other text, which its spelling tells apart."""
    if isinstance(label, int):
        return label
    try:
        number = int(label) if len(label) <= 20 else 0
    except ValueError:
        return 0
    return number if -(2**63) <= number < 2**63 else 0


class RowsByLabel:
    """The row of each item of each query of loaded features.

    >>> features = Features.of([[1.0], [2.0]], item=["b", "a"], query=["q", "q"])
    >>> RowsByLabel(features).rows("q", ["a", "b"]).tolist()
    [1, 0]
    """

    def __init__(self, features: Features) -> None:
        self.items = LabelCodes(features.items)
        self.queries = None if features.query is None else LabelCodes(features.queries)
        self.width = len(features.items)
        key = features.item.astype(np.int64)
        if features.query is not None:
            key += features.query.astype(np.int64) * self.width
        self.row = np.argsort(key, kind="stable")
        self.key = key[self.row]

    def rows(self, query: Any, items: list[Any]) -> Ints:
        """Return the row of each item. Errors (Refused): 404 for a query or items that are not there; 422 for twice."""
        codes = self.items.of(items)
        refuse_twice(codes, items)
        if self.queries is None:
            key, whose = codes, ""
        else:
            code = int(self.queries.of([query])[0])
            if code < 0:
                raise Refused(404, f"query {shown(query)} is not among the loaded features")
            key, whose = codes + code * self.width, f" of query {shown(query)}"
        at = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        absent = (self.key[at] != key) | (codes < 0)
        if absent.any():
            names = [items[place] for place in np.flatnonzero(absent).tolist()]
            raise Refused(
                404,
                f"{len(names):,} of {len(items):,} items{whose} are not among the loaded features: "
                f"{few([_cut(name) for name in names], 4)}",
            )
        return self.row[at]


def refuse_twice(codes: Ints, items: list[Any]) -> None:
    """Raise Refused where two items have one code, those that are not there apart."""
    known = codes[codes >= 0]
    if len(set(known.tolist())) == len(known):
        return
    first = np.zeros(len(codes), bool)
    first[np.unique(codes, return_index=True)[1]] = True
    twice = [items[place] for place in np.flatnonzero(~first & (codes >= 0)).tolist()]
    raise Refused(422, f"items: {len(twice):,} are there more than once: {few([_cut(each) for each in twice], 4)}")


def shown(label: Any) -> str:
    """A label as it is shown in an error: its first characters."""
    return repr(_cut(label))


def _cut(label: Any) -> Any:
    return label[:60] + "…" if isinstance(label, str) and len(label) > 60 else label


Floats = NDArray[np.float64]


def matrix_of(
    features: list[list[float | None]] | None,
    named: list[dict[str, float | None]] | None,
    names: Sequence[str] | None,
    width: int,
    *,
    missing: str,
) -> Floats:
    """Return the matrix, NaN where a value is null or absent.

    Errors (Refused, 422): names that the model does not know, values that are missing where ``missing`` is 'raise'.

    >>> matrix_of(None, [{"b": 2.0, "a": 1.0}], ["a", "b"], 2, missing="raise").tolist()
    [[1.0, 2.0]]
    """
    if features is not None:
        found = np.array(features, np.float64).reshape(len(features), width)  # None becomes NaN
    else:
        assert named is not None
        found = _by_name(named, names, width)
    if missing == "raise" and np.isnan(found).any():
        rows, columns = np.nonzero(np.isnan(found))
        called = names[columns[0]] if names is not None else str(columns[0] + 1)
        raise Refused(
            422,
            f"{len(rows):,} of {found.size:,} features are missing (first: {called!r} of row {rows[0] + 1:,}); this "
            "model was fitted without missing values and takes none",
        )
    return found


def _by_name(named: list[dict[str, float | None]], names: Sequence[str] | None, width: int) -> Floats:
    if names is None:
        raise Refused(422, "the features of this model have no names; send rows of numbers in 'features'")
    place = {name: column for column, name in enumerate(names)}
    found = np.full((len(named), width), np.nan)
    for row, values in enumerate(named):
        unknown = [name for name in values if name not in place]
        if unknown:
            raise Refused(
                422,
                f"named_features[{row}]: unknown feature {few([name[:60] for name in unknown], 4)}; the model was "
                f"fitted on {width:,}: {few(names, 12)}",
            )
        found[row, [place[name] for name in values]] = [_number(value) for value in values.values()]
    return found


def _number(value: Any) -> float:
    return np.nan if value is None else value


NEVER = Rule("distance", "inf", 0.0)
"""The rule of a ranker that declines no pair."""


def ordered(scores: Floats) -> tuple[Ints, Ints]:
    """Return (order, rank): the rows from best to worst, and the rank of each of them in that order.

    The best has rank 1 and equal scores share the best of their ranks; they stay in the order they came in.

    >>> [found.tolist() for found in ordered(np.array([1.0, 3.0, 1.0, 2.0]))]
    [[1, 3, 0, 2], [1, 2, 3, 3]]
    """
    order = np.argsort(-scores, kind="stable")
    new = np.ones(len(order), bool)
    np.not_equal(scores[order[1:]], scores[order[:-1]], out=new[1:])
    return order, 1 + np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))


def decided(rule: Rule, scores: Floats, Z: Matrix | None, first: Ints, second: Ints) -> PairDecisions:
    """Return what the rule says of the pairs (first, second) of rows; ``Z`` are their normalised features.

    Without ``Z`` distances are NaN: only a rule by distance needs them.

    >>> pairs = decided(NEVER, np.array([2.0, 1.0]), None, np.array([0, 1]), np.array([1, 0]))
    >>> pairs.decision.tolist(), pairs.reasons
    ([-1, 1], ['decided', 'decided'])
    """
    distance = np.full(len(first), np.nan) if Z is None else pair_distances(Z, Z, rule.norm, first, second)
    return rule.decide(scores[second] - scores[first], distance)


FEW = 128
"""Rows, or pairs, of which distances or a weighted sum take less than a millisecond."""


@dataclass(frozen=True)
class _Rows:
    """The items of a request: labels (None for numbers 1, 2, …), scores and, where distances count, features."""

    labels: list[Any] | None
    scores: Floats
    Z: Matrix | None

    def __len__(self) -> int:
        return len(self.scores)


class Served:
    """A fitted ranker, its abstention rule, and the scores of the items whose features are loaded.

    A score depends on its own row only, so the loaded rows are scored once, here; their features are kept only where
    distances between items matter, or where the query (``QueryRankers``) decides who scores.

    Errors: NotFittedError; InputError for features that do not fit the model, or scores that are not finite.
    """

    def __init__(self, ranker: Any, features: Any = None) -> None:
        check_is_fitted(ranker)
        self.ranker = ranker
        self.rule: Rule = ranker.rule_ if isinstance(ranker, AbstainingRanker) else NEVER
        self.abstains = isinstance(ranker, AbstainingRanker)
        inner = unfrozen(ranker.ranker_) if self.abstains else ranker
        self.by_query = isinstance(inner, QueryRankers)
        self.missing = str(getattr(inner, "missing_", "raise"))
        names = getattr(ranker, "feature_names_in_", None)
        self.names = None if names is None else tuple(str(name) for name in names)
        self.width = int(ranker.n_features_in_)
        self.known_queries = Labels.encode(list(inner.rankers_))[0] if self.by_query else Labels.empty()
        self.queries = LabelCodes(self.known_queries) if self.by_query else None
        self.near = self.abstains and self.rule.by == "distance"
        self.foreign = getattr(inner, "foreign_", inner) is not None
        self.loaded: RowsByLabel | None = None
        self.scores: Floats | None = None
        self.X: Matrix | None = None
        if features is not None:
            self._load(rows_of(features, self.missing, self.names)[0])

    def _load(self, features: Features) -> None:
        if self.by_query or self.near:
            features.refuse_special("a server that keeps the features")
        self.loaded = RowsByLabel(features)
        self.rows, self.items = len(features), len(features.items)
        self.loaded_queries = None if features.query is None else len(features.queries)
        X = matched(features, True, self.names, self.width)
        if not (self.by_query and features.query is None):
            self.scores = np.asarray(self.ranker.predict(features), np.float64)
            if not (finite := np.isfinite(self.scores)).all():
                row = int(np.flatnonzero(~finite)[0])
                raise InputError(
                    f"{int((~finite).sum()):,} of {len(finite):,} scores of the loaded features are not finite "
                    f"(first: {features.where(row)})"
                )
        if self.scores is None or self.near:
            self.X = X

    # -- answers ---------------------------------------------------------------------------------------------------
    def score(self, asked: ScoreRequest) -> dict[str, Any]:
        """Return the score of each item, in the order asked."""
        return {"scores": self._rows(asked).scores.tolist()}

    def rank(self, asked: RankRequest) -> dict[str, Any]:
        """Return the items from best to worst, with tiers where the model abstains."""
        rows = self._rows(asked)
        order, rank = ordered(rows.scores)
        tiers = tiers_of(self.rule, rows.scores, rows.Z)[order].tolist() if self.abstains else []
        order = order[: asked.top]
        places = order.tolist()
        labels = [place + 1 for place in places] if rows.labels is None else [rows.labels[place] for place in places]
        columns = zip(labels, rows.scores[order].tolist(), rank.tolist())
        ranking = [{"item": item, "score": score, "rank": place} for item, score, place in columns]
        for row, tier in zip(ranking, tiers):
            row["tier"] = tier
        return {"ranking": ranking}

    def compare(self, asked: CompareRequest) -> dict[str, Any]:
        """Return of each pair which item is better, or that the model declines to say, and why."""
        rows, first, second = self._pairs(asked)
        with np.errstate(over="ignore"):
            found = decided(self.rule, rows.scores, rows.Z, first, second)
        far = np.isinf(found.difference) | np.isinf(found.distance)
        if far.any():
            raise Refused(422, f"pairs: {int(far.sum()):,} are so far apart that no number says how far")
        answers = np.array(["first", "declined", "second"], object)[found.decision + 1]
        answers[found.difference == 0] = "declined"
        difference = (-found.difference + 0.0).tolist()
        return {
            "rule": self.rule_said,
            "comparisons": [
                {
                    "first": pair[0],
                    "second": pair[1],
                    "answer": answer,
                    "reason": REASONS[reason],
                    "difference": apart,
                    "distance": None if math.isnan(distance) else distance,
                    "risk": None if math.isnan(risk) else risk,
                }
                for pair, answer, reason, apart, distance, risk in zip(
                    asked.pairs,
                    answers.tolist(),
                    found.reason.tolist(),
                    difference,
                    found.distance.tolist(),
                    found.risk.tolist(),
                )
            ],
        }

    @property
    def rule_said(self) -> dict[str, Any] | None:
        """When the model declines a pair; None where it never does."""
        rule = self.rule
        if not self.abstains or (rule.by == "distance" and rule.gamma is None):
            return None
        said = {"by": rule.by, "cost": rule.cost}
        if rule.by == "risk":
            return said
        gamma = rule.gamma if rule.gamma is not None and math.isfinite(rule.gamma) else str(rule.gamma)
        return {**said, "norm": rule.norm, "gamma": gamma}

    def is_slow(self, asked: RowsRequest) -> bool:
        """Whether an answer takes so long that others should not wait for it; a thread costs some look-ups."""
        inline = asked.features is not None or asked.named_features is not None
        if (inline and self.foreign) or (self.near and self.rule.norm != "inf"):
            return True
        if not (inline or self.near or self.scores is None):
            return False
        given = (asked.items, asked.features, asked.named_features, getattr(asked, "pairs", None))
        return max((len(rows) for rows in given if rows is not None), default=0) > FEW

    # -- rows ------------------------------------------------------------------------------------------------------
    def _rows(self, asked: RowsRequest) -> _Rows:
        given = [name for name in ("features", "named_features") if getattr(asked, name) is not None]
        if len(given) == 2:
            raise Refused(422, "features and named_features are two ways to say the same; leave one out")
        if given:
            return self._inline(asked, given[0])
        if asked.items is None:
            raise Refused(422, "items is missing: the labels of loaded items, or features in their place")
        if self.loaded is None:
            raise Refused(
                422,
                "no features are loaded here (--features), so items have no scores by their labels; send features or "
                "named_features with them",
            )
        self._check_query(asked.query, needed=self.loaded.queries is not None or self.by_query)
        rows = self.loaded.rows(asked.query, asked.items)
        if self.scores is not None:
            Z = self.ranker.normaliser_.apply(self.X[rows]) if self.near and self.X is not None else None
            return _Rows(asked.items, self.scores[rows], Z)
        assert self.X is not None
        return self._scored(asked.items, self.X[rows], asked.query)

    def _inline(self, asked: RowsRequest, given: str) -> _Rows:
        self._check_query(asked.query, needed=self.by_query)
        X = matrix_of(asked.features, asked.named_features, self.names, self.width, missing=self.missing)
        if asked.items is not None:
            if len(asked.items) != len(X):
                raise Refused(422, f"items has {len(asked.items):,} labels and {given} {len(X):,} rows; give one each")
            texts = list(map(str, asked.items))
            first: dict[str, int] = {}
            refuse_twice(np.array([first.setdefault(text, len(first)) for text in texts], np.int64), asked.items)
        return self._scored(asked.items, X, asked.query)

    def _check_query(self, query: Any, *, needed: bool) -> None:
        if needed and query is None:
            raise Refused(422, "query is missing: the items are scored for a query")
        if not needed and query is not None:
            raise Refused(422, "query means nothing here: the scores are the same for every query; leave it out")

    def _scored(self, labels: list[Any] | None, X: Matrix, query: Any) -> _Rows:
        """Score rows that have no score yet."""
        if len(X) == 0:
            return _Rows(labels, np.zeros(0), np.zeros((0, self.width)) if self.near else None)
        given: Any = X
        owner: list[Any] | None = None
        if self.queries is not None:
            code = int(self.queries.of([query])[0])
            if code < 0:
                raise Refused(404, f"query {shown(query)} has no ranker: nothing was judged about it")
            owner = [self.known_queries[code]] * len(X)
        if owner is not None or self.names is not None:
            names = self.names or tuple(str(place + 1) for place in range(self.width))
            keep = "raise" if self.missing == "raise" else "keep"
            given = Features.of(X, np.arange(len(X)), owner, names, missing=keep, name="features")
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                scores = np.asarray(self.ranker.predict(given), np.float64)
                Z = self.ranker.normaliser_.apply(X) if self.near else None
        except UsageError:
            raise
        except ConcordantError as error:
            raise Refused(422, str(error)) from None
        wrong = ~np.isfinite(scores) | (False if Z is None else ~np.isfinite(Z).all(axis=1))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise Refused(
                422,
                f"{int(wrong.sum()):,} of {len(X):,} rows have features so large that their scores are not finite "
                f"(first: row {row + 1:,})",
            )
        return _Rows(labels, scores, Z)

    def _pairs(self, asked: CompareRequest) -> tuple[_Rows, NDArray[np.int64], NDArray[np.int64]]:
        """The rows that pairs are about, and the places of both sides among them."""
        ends = [label for pair in asked.pairs for label in pair]
        texts = list(map(str, ends))
        same = [pair for pair, a, b in zip(asked.pairs, texts[::2], texts[1::2]) if a == b]
        if same:
            said = shown(same[0][0])
            raise Refused(422, f"pairs: {len(same):,} name one item twice ({said}); a pair is two items")
        place: dict[str, int] = {}
        inline = asked.features is not None or asked.named_features is not None
        if inline:
            if asked.items is None:
                raise Refused(422, "items is missing: the labels of the rows of features, which pairs speak of")
            place = {str(label): at for at, label in enumerate(asked.items)}
            absent = [label for label, text in zip(ends, texts) if text not in place]
            if absent:
                raise Refused(422, f"pairs: {len(absent):,} labels are not among items, such as {shown(absent[0])}")
            rows = self._rows(asked)
        else:
            if asked.items is not None:
                raise Refused(422, "items goes with features of their own; for loaded items name pairs alone")
            distinct: list[Any] = []
            for label, text in zip(ends, texts):
                if text not in place:
                    place[text] = len(distinct)
                    distinct.append(label)
            rows = self._rows(asked.model_copy(update={"items": distinct}))
        codes = np.array([place[text] for text in texts], np.int64).reshape(-1, 2)
        return rows, codes[:, 0], codes[:, 1]


assert DECIDED == 0

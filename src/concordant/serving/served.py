"""A model and the features it is served with: requests in, answers out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from concordant.abstaining.ranker import AbstainingRanker
from concordant.abstaining.rule import DECIDED, REASONS, Rule
from concordant.abstaining.scorer import unfrozen
from concordant.abstaining.tiers import tiers_of
from concordant.errors import ConcordantError, InputError, UsageError
from concordant.features.matrix import Features, Matrix
from concordant.labels import Labels
from concordant.rankers.intake import matched, rows_of
from concordant.rankers.per_query import QueryRankers
from concordant.serving.items import LabelCodes, RowsByLabel, refuse_twice, shown
from concordant.serving.limits import Refused
from concordant.serving.requests import CompareRequest, RankRequest, RowsRequest, ScoreRequest
from concordant.serving.rows import matrix_of
from concordant.serving.scoring import NEVER, decided, ordered

__all__ = ["Served"]

Floats = NDArray[np.float64]
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
        self.missing = str(getattr(inner, "missing", "raise"))
        names = getattr(ranker, "feature_names_in_", None)
        self.names = None if names is None else tuple(str(name) for name in names)
        self.width = int(ranker.n_features_in_)
        self.queries = LabelCodes(Labels.encode(list(inner.rankers_))[0]) if self.by_query else None
        self.known_queries = list(Labels.encode(list(inner.rankers_))[0]) if self.by_query else []
        self.near = self.abstains and self.rule.by == "distance"
        self.foreign = getattr(inner, "foreign_", inner) is not None
        self.loaded: RowsByLabel | None = None
        self.scores: Floats | None = None
        self.X: Matrix | None = None
        if features is not None:
            self._load(rows_of(features, self.missing, self.names)[0])

    def _load(self, features: Features) -> None:
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
        tiers = tiers_of(self.rule, rows.scores, rows.Z)[order].tolist() if self.abstains else None
        order = order[: asked.top]
        places = order.tolist()
        labels = [place + 1 for place in places] if rows.labels is None else [rows.labels[place] for place in places]
        scores, ranks = rows.scores[order].tolist(), rank.tolist()
        if tiers is None:
            columns = zip(labels, scores, ranks)
            return {"ranking": [{"item": item, "score": score, "rank": place} for item, score, place in columns]}
        return {
            "ranking": [
                {"item": item, "score": score, "rank": place, "tier": tier}
                for item, score, place, tier in zip(labels, scores, ranks, tiers)
            ]
        }

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
        names = self.names or tuple(str(place + 1) for place in range(self.width))
        if self.queries is not None:
            code = int(self.queries.of([query])[0])
            if code < 0:
                raise Refused(404, f"query {shown(query)} has no ranker: nothing was judged about it")
            keep = "raise" if self.missing == "raise" else "keep"
            owner = [self.known_queries[code]] * len(X)
            given = Features.of(X, np.arange(len(X)), owner, names, missing=keep, name="features")
        elif self.names is not None:
            keep = "raise" if self.missing == "raise" else "keep"
            given = Features.of(X, np.arange(len(X)), None, names, missing=keep, name="features")
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

"""Scores of the judged items, whatever the scorer is: numbers by label, a table, a ranking, a ranker, a function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError
from concordant.learning.annotators.scorers import FoundScorer
from concordant.learning.features.matrix import Features, align
from concordant.learning.rankers.estimator import LinearRanker, Ranker
from concordant.learning.rankers.validation import rows_of
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences
from concordant.ranking.held_out import matched
from concordant.ranking.rank import Ranking

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ScoredNodes:
    """A score for each node of a batch."""

    score: Floats
    """NaN where there is none."""
    features: Features | None
    features_of_nodes: Floats | None
    """(nodes, d), in units of their standard deviations; None: there are none, or they are no numbers."""
    ranker: Ranker | None
    """What can be fitted again."""
    linear: bool
    """Whether the scorer is one of the class that it is compared with."""
    notes: tuple[str, ...] = ()


def scored_nodes(scorer: Any, prefs: Preferences, batch: Batch, features: Any) -> ScoredNodes:
    """Score the items of each query. Errors: UsageError for what is no scorer, InputError for scores that are none."""
    read = None if features is None else rows_of(features, "keep")[0]
    row = None if read is None else align(read, prefs).row
    Z = None if read is None or row is None else _numbers(read, row)
    own = isinstance(scorer, Ranker)
    ranker = scorer if own and not isinstance(scorer, FoundScorer) else None
    linear = isinstance(scorer, LinearRanker) and scorer.foreign_ is None
    if isinstance(scorer, Ranking):
        scorer = scorer.to_arrow().select(["query", "item", "score"])
    if hasattr(scorer, "predict"):
        if read is None or row is None:
            raise UsageError("a model scores items by their features; give features")
        score = np.asarray(scorer.predict(read if own else read.X), np.float64)[row]
    elif callable(scorer):
        if read is not None and row is not None:
            score = _returned(scorer(read.X), len(read))[row]
        else:
            items = prefs.items.take(batch.item).to_pylist()
            queries = prefs.queries.take(batch.query[batch.owner]).to_pylist()
            score = _returned(scorer(queries, items), len(items))
    else:
        score = _of_table(scorer, prefs, batch)
    if np.isinf(score).any():
        raise InputError(f"{int(np.isinf(score).sum()):,} of {len(score):,} scores are infinite")
    if np.isnan(score).all():
        raise InputError("none of the judged items has a score: are the labels of items (and queries) the same?")
    return ScoredNodes(score, read, Z, ranker, linear)


def _returned(found: Any, size: int) -> Floats:
    try:
        score = np.asarray(found, np.float64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the scorer returned no numbers: {error}") from None
    if len(score) != size:
        raise UsageError(f"the scorer returned {len(score):,} scores for {size:,} rows")
    return score


def _of_table(scorer: Any, prefs: Preferences, batch: Batch) -> Floats:
    """Return scores by label; those without a query hold in all."""
    if isinstance(scorer, Mapping) and not {"item", "score"} <= set(map(str, scorer)):
        keys = list(scorer)
        pairs = bool(keys) and all(isinstance(key, tuple) and len(key) == 2 for key in keys)
        columns: dict[str, Any] = {"item": [key[1] if pairs else key for key in keys], "score": [*scorer.values()]}
        if pairs:
            columns["query"] = [key[0] for key in keys]
    else:
        try:
            table = scorer if isinstance(scorer, Mapping) else pa.table(scorer)
            names = table.keys() if isinstance(table, Mapping) else table.column_names
            columns = {name: table[name] for name in ("query", "item", "score") if name in names}
        except (TypeError, ValueError, pa.ArrowException):
            columns = {}
        if not {"item", "score"} <= set(columns):
            raise UsageError(
                "a scorer is {item: score}, a table with columns item and score, a ranking, a fitted ranker or a "
                f"function, not {type(scorer).__name__}"
            )
    try:
        score = np.asarray(columns["score"], np.float64)
        item = Labels.encode(columns["item"])
        query = Labels.encode(columns["query"]) if "query" in columns else None
    except (TypeError, ValueError) as error:
        raise InputError(f"scores by item cannot be read: {error}") from None
    if not len(score):
        raise InputError("there are no scores")
    several = query is not None and len(query[0]) > 1
    known = matched(
        query=query[0].take(query[1]) if several and query is not None else None,
        item=item[0].take(item[1]),
        score=score,
        component=np.zeros(len(score), np.int64),
    )
    row = known.rows(prefs, batch.query[batch.owner], batch.item)
    return np.where(row < 0, np.nan, score[row])


def _numbers(features: Features, row: NDArray[np.int64]) -> Floats | None:
    if features.sparse or features.levels:
        return None
    Z = np.asarray(features.X, np.float64)[row]
    Z = np.where(np.isnan(Z), np.nanmean(Z, axis=0) if len(Z) else 0.0, Z)
    size = Z.std(axis=0)
    return np.asarray((Z - Z.mean(axis=0)) / np.where(size > 0, size, 1.0), np.float64)

"""What a model card reports of a model: figures on judgments and on labels, each with where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.errors import InputError, UsageError
from concordant.features.matrix import Features
from concordant.metrics.comparing import summarise
from concordant.metrics.registry import metric
from concordant.preferences import Preferences

__all__ = ["METRICS", "Figure", "figures_of_judgments", "figures_of_labels"]

METRICS = ("ndcg@10", "map", "err@10")


@dataclass(frozen=True)
class Figure:
    """One number, what it was measured on, and whether the model had not seen that."""

    name: str
    value: float
    error: float | None
    queries: int
    on: str
    unseen: bool


def figures_of_judgments(ranker: Any, features: Any, judgments: Preferences, on: str, *, unseen: bool) -> list[Figure]:
    """Return the concordance: the share of pairs in the order of the judgments. None where nothing is compared."""
    if features is None:
        raise UsageError("how well a model agrees with judgments needs the features of their items")
    try:
        found = float(ranker.score(features, judgments))
    except InputError:
        return []
    return [Figure("concordance", found, None, len(judgments.queries), on, unseen)]


def figures_of_labels(ranker: Any, labelled: tuple[Features, Any], on: str) -> list[Figure]:
    """Return metrics over graded labels: means over queries with standard errors."""
    features, labels = labelled
    labels = np.asarray(labels, np.float64)
    if len(labels) != len(features):
        raise UsageError(f"{len(labels):,} labels for {len(features):,} rows of features")
    query = np.zeros(len(features), np.int64) if features.query is None else features.query
    return list(_metrics(ranker.predict(features), labels, query, on))


def _metrics(scores: Any, labels: Any, query: Any, on: str) -> Iterator[Figure]:
    for name in METRICS:
        given = (labels > 0).astype(float) if name == "map" else labels
        found = summarise(metric(name)(scores, given, query))
        if found.queries:
            error = None if found.queries == 1 else found.standard_error
            yield Figure(name, found.mean, error, found.queries, on, True)

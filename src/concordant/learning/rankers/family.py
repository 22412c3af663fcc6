"""The best of several rankers for relevance labels, by the target on held-out queries."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError
from concordant.learning.features.matrix import Features
from concordant.learning.rankers.boosted import BoostedRanker
from concordant.learning.rankers.estimator import Ranker, agreement_with_labels
from concordant.learning.rankers.lists import ListRanker
from concordant.learning.rankers.target import Target
from concordant.learning.scikit import clone
from concordant.losses.metrics.judged_lists import as_numbers
from concordant.preferences.notes import Note
from concordant.progress import know, stage, steps
from concordant.stages import clock

Floats = NDArray[np.float64]
FOLDS = 3
HELD = 300
"""Held-out queries that suffice to choose by."""


def family(
    target: str | None = None,
    seed: int = 0,
    *,
    missing: str | None = None,
    gaps: bool = False,
    sparse: bool = False,
    **shared: Any,
) -> dict[str, Ranker]:
    """Return rankers for relevance labels by name: two linear scorers, and trees (with LightGBM, else scikit-learn's).

    ``missing``: what becomes of missing values; None: trees take them as they are, for linear scorers they are at the
    mean where there are some (``gaps``). ``sparse``: of a sparse matrix, which trees do not take. ``shared``:
    standardise, log.
    """
    pairs = "err-pairwise" if target is not None and target.startswith("err") else "ndcg-pairwise"
    filled = missing if missing not in (None, "keep") else "mean" if gaps else "raise"
    linear: dict[str, Ranker] = {
        name: ListRanker(name, target=target, missing=filled, **shared) for name in ("gain-regression", pairs)
    }
    if sparse:
        return linear
    kept = missing or "keep"
    if importlib.util.find_spec("lightgbm") is not None:
        return {**linear, "boosted trees": BoostedRanker(target=target, seed=seed, missing=kept, **shared)}
    try:
        kinds = importlib.import_module("sklearn.ensemble")
    except ImportError:
        return linear
    trees = kinds.HistGradientBoostingRegressor(early_stopping=True, random_state=seed)
    return {**linear, "trees": ListRanker(target=target, regressor=trees, missing=kept, **shared)}


def best_of(
    rankers: Mapping[str, Ranker], features: Features, labels: Any, *, folds: int = FOLDS, seed: int = 0
) -> Ranker:
    """Return the ranker that orders held-out queries best, fitted to all rows.

    Queries are dealt into ``folds`` parts, of which as many as hold 300 queries are held out in turn; each ranker is
    fitted to the others and judged by its target (nDCG@10 where it has none), the mean over the held-out queries. The
    one of highest mean is fitted to all: ``status_["family"]`` has name, mean, standard error of the difference to the
    best, and which was taken, and a note says so. Of fewer than twice as many queries as folds the first is taken.

    Errors: InputError as of ``fit``; rows without queries.

    >>> X, query = np.arange(24.0)[:, None] % 6, np.repeat(list("pqrs"), 6)
    >>> rows = Features.of(X, item=np.arange(24), query=query)
    >>> best = best_of({"linear": ListRanker(), "pairs": ListRanker("ranknet")}, rows, X[:, 0] // 2, folds=2)
    >>> [row["name"] for row in best.status_["family"]]
    ['linear', 'pairs']
    """
    if features.query is None:
        raise InputError("the rows of these features have no query, so no query can be held out")
    values = as_numbers(labels, "labels", size=len(features))
    queries = len(features.queries)
    names = list(rankers)
    looked = min(folds, -(-HELD * folds // queries)) if queries >= 2 * folds else 0
    dealt = np.random.default_rng(seed).permutation(queries) % folds
    found: list[list[Floats]] = [[] for _ in names]
    seconds = [0.0] * len(names)
    know(parts=looked, lists=queries)
    for part in steps("choosing the scorer: parts", range(looked), single=True):
        held = (dealt == part)[features.query]
        for place, name in enumerate(names):
            began = clock()
            try:
                trained = clone(rankers[name]).fit(features.take(~held), values[~held])
            except InputError:  # it cannot learn from these queries, as where each has a single label
                found[place].append(np.full(len(np.unique(np.asarray(features.query)[held])), -np.inf))
                continue
            seconds[place] += clock() - began
            rest = features.take(held)
            order = np.argsort(np.asarray(rest.query), kind="stable")
            _, owner = np.unique(np.asarray(rest.query)[order], return_inverse=True)
            asked = getattr(trained, "target", None)
            target = Target("ndcg", 10) if asked is None else Target.of(asked, "")
            judged = values[held][order]
            found[place].append(agreement_with_labels(trained.predict(rest)[order], judged, owner, target))
    rates = [np.concatenate(each) if each else np.zeros(0) for each in found]
    told = ~np.isnan(rates).any(axis=0)
    means = [float(rate[told].mean()) if told.any() else -np.inf for rate in rates]
    best = int(np.argmax(means))  # the first, where nothing tells
    know(best=seconds[best] / max(sum(seconds), 1e-9) if looked else 0.05)
    with stage("fitting the best scorer"):
        ranker: Ranker = clone(rankers[names[best]]).fit(features, values)
    errors = [_error(rate[told] - rates[best][told]) if np.isfinite(mean) else None for rate, mean in zip(rates, means)]
    ranker.status_["family"] = [
        {"name": name, "mean": mean if np.isfinite(mean) else None, "standard_error": error, "chosen": place == best}
        for place, (name, mean, error) in enumerate(zip(names, means, errors, strict=True))
    ]
    if told.any():
        said = [f"{mean:.4f}" if np.isfinite(mean) else "learned nothing of a part" for mean in means]
        told_of = ", ".join(f"{name} {one}" for name, one in zip(names, said, strict=True))
        text = "{name} of {others} orders {queries:,} held-out queries best: {means}"
        facts: dict[str, Any] = {"name": names[best], "others": len(names), "queries": int(told.sum())}
        ranker.status_["notes"] = [*ranker.status_["notes"], Note("chosen of a family", text, means=told_of, **facts)]
    return ranker


def _error(gaps: Floats) -> float:
    """The standard error of a mean difference over queries."""
    return float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else 0.0

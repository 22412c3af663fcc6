"""``BoostedRanker`` on 10^5 rows × 136 features of 1,000 queries beside LightGBM's lambdarank: a case of `make bench`.

``python -m benchmarks.boosting [SCALE]`` prints the figures. Both are timed in one process, one after the other, from
a float32 matrix in memory to a model: binning is in both; ours standardises and fits its linear start too. Leaves,
rate, rows of a leaf, ridge and threads (2) are the same. The search is 300 rounds at most on two thirds of the queries,
ended by the nDCG@10 of the others after 30 without a better one, then as many on all.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.alone import timed
from benchmarks.cases import Case, Row

QUERIES, ITEMS, WIDTH, ROUNDS, MOST, PATIENCE, THREADS = 1_000, 100, 136, 100, 300, 30, 2
TREES = {"num_leaves": 15, "learning_rate": 0.05, "min_data_in_leaf": 20, "lambda_l2": 1.0, "num_threads": THREADS}
LOSSES = ("ndcg-pairwise", "gain-regression", "auto")


def drawn(queries: int) -> tuple[Any, Any]:
    """Features, a few of which matter beyond their sum, and grades 0 to 4, half of them 0."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((queries * ITEMS, WIDTH), dtype=np.float32)
    found = X @ (rng.standard_normal(WIDTH) / np.sqrt(WIDTH)) + np.abs(X[:, 0]) + X[:, 1] * X[:, 2]
    found += rng.standard_normal(len(X))
    return X, np.searchsorted(np.quantile(found, [0.5, 0.75, 0.9, 0.97]), found).astype(float)


def peer(X: Any, grades: Any, search: bool) -> Any:
    """Lambdarank: so many rounds, or those that are best on a third of the queries."""
    import lightgbm

    settings = {**TREES, "objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "verbosity": -1}
    queries = len(X) // ITEMS
    data = lightgbm.Dataset(X, grades, group=np.full(queries, ITEMS), params=settings)
    if not search:
        return lightgbm.train(settings, data, ROUNDS)
    held = np.repeat(np.random.default_rng(0).permutation(queries) % 3 == 0, ITEMS)
    left, rest = (data.construct().subset(np.flatnonzero(one).tolist()) for one in (~held, held))
    quiet = [lightgbm.early_stopping(PATIENCE, verbose=False)]
    best = lightgbm.train(settings, left, MOST, valid_sets=[rest], callbacks=quiet).best_iteration
    return lightgbm.train(settings, data, best)


def ours(X: Any, grades: Any, loss: str, search: bool) -> Any:
    """A fit; 'auto' grows the trees of two losses."""
    import concordant as cc
    from concordant.learning.features.matrix import Features

    features = Features.of(X, np.arange(len(X)), np.arange(len(X)) // ITEMS)
    fixed = {"rounds": MOST, "early_stopping": PATIENCE} if search else {"rounds": ROUNDS, "folds": 0}
    return cc.BoostedRanker(loss, options={"num_threads": THREADS}, **fixed).fit(features, grades)


def boosting(_folder: Path, scale: float) -> Case:
    """Trees on pairs of gains, on squares, and both, against lambdarank."""
    X, grades = drawn(max(int(QUERIES * scale), 6))
    case = Case(
        f"boosted trees, {len(X):,} × {WIDTH}, {len(X) // ITEMS:,} queries, {THREADS} threads, binning included"
    )
    ours(X[: 9 * ITEMS], grades[: 9 * ITEMS], "auto", False)  # so that no compilation is timed
    for search in (False, True):
        how = f"up to {MOST} rounds, searched" if search else f"{ROUNDS} rounds"
        works = {"LightGBM lambdarank": partial(peer, search=search)}
        works |= {f"concordant, {loss}": partial(ours, loss=loss, search=search) for loss in LOSSES}
        found = {name: _row(case, f"{name}, {how}", partial(work, X, grades)) for name, work in works.items()}
        first = found.pop("LightGBM lambdarank")
        for row in found.values() if not search else ():
            case.bar(f"{row.name} / LightGBM lambdarank", row.seconds / first.seconds, "×", most=1.3)
    return case


def _row(case: Case, name: str, work: Any) -> Row:
    figures, _ = timed(work, 2)
    case.rows.append(Row(name, figures))
    print(f"    {name}: {figures['best']:.2f} s ({figures['busy']:.2f} s of processor)", flush=True)
    return case.rows[-1]


if __name__ == "__main__":
    boosting(Path(), float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)

"""The audit of 10^4 queries × 100 items × 200 judged pairs, and exact best orders: a case of ``make bench``.

``python -m benchmarks.audits NAME NUMBER`` measures one contender in a process of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.alone import add, report
from benchmarks.cases import Case

ITEMS, PAIRS, VOTES, SCALE = 100, 200, 3, 0.74
"""Scores N(0, SCALE²), three Bradley–Terry votes a pair: strong components with a median of 37 items."""


def population(queries: int, seed: int = 0) -> Any:
    """Votes on random pairs of every query."""
    import concordant as cc

    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), PAIRS)
    high, low = np.triu_indices(ITEMS, 1)
    code = np.concatenate([rng.choice(len(high), PAIRS, replace=False) for _ in range(queries)])
    i, j = high[code], low[code]
    score = rng.normal(size=(queries, ITEMS)) * SCALE
    won = rng.binomial(VOTES, 1 / (1 + np.exp(score[query, j] - score[query, i])))
    some, other = won > 0, won < VOTES
    return cc.Preferences.from_comparisons(
        np.concatenate((i[some], j[other])),
        np.concatenate((j[some], i[other])),
        np.concatenate((query[some], query[other])),
        count=np.concatenate((won[some], VOTES - won[other])),
    )


def audit(queries: int) -> Callable[[], Any]:
    """All surrogates, without bootstrap."""
    import concordant as cc

    prefs = population(queries)
    cc.audit(population(20, 1), replicates=0)  # compiles
    return lambda: cc.audit(prefs, replicates=0)


def minimisers(queries: int) -> Callable[[], Any]:
    """The minimisers of five surrogates of preferences alone, without verdicts."""
    import concordant as cc

    batch = cc.Batch.whole(population(queries))
    names = ("ranksvm", "margin-based", "ranknet", "rankboost", "difference-graph")
    for name in names:
        cc.minimise(cc.surrogate(name).objective(cc.Batch.whole(population(20, 1))))  # compiles
    return lambda: [cc.minimise(cc.surrogate(name).objective(batch)) for name in names]


def scipy_minimisers(queries: int) -> Callable[[], Any]:
    """The same with SciPy, a query at a time: HiGHS for the hinges, L-BFGS with gradients for the others.

    Margin functions that tend to 0 need no minimum; they are stopped at SciPy's default tolerance.
    """
    from scipy.optimize import linprog, minimize
    from scipy.sparse import csr_array
    from scipy.special import expit

    import concordant as cc

    batch = cc.Batch.whole(population(queries))
    mean = batch.graphs
    total = batch.judgments[mean.graph]

    def smooth(i: Any, j: Any, w: Any, exponential: bool) -> Any:
        def value(alpha: Any) -> Any:
            gap = alpha[i] - alpha[j]
            each = np.exp(-gap) if exponential else np.logaddexp(0.0, -gap)
            slope = -each if exponential else -expit(-gap)
            return w @ each, np.bincount(i, w * slope, ITEMS) - np.bincount(j, w * slope, ITEMS)

        return minimize(value, np.zeros(ITEMS), jac=True, method="L-BFGS-B")

    def hinge(i: Any, j: Any, w: Any) -> Any:
        edge, edges = np.arange(len(i)), len(i)
        rows = csr_array(
            (np.repeat([-1.0, 1.0, -1.0], edges), (np.tile(edge, 3), np.concatenate((i, j, ITEMS + edge)))),
            (edges, ITEMS + edges),
        )
        bounds = [(None, None)] * ITEMS + [(0, None)] * edges
        cost = np.concatenate((np.zeros(ITEMS), w))
        return linprog(cost, A_ub=rows, b_ub=-np.ones(edges), bounds=bounds, method="highs")

    def work() -> None:
        for query in range(queries):
            pairs = slice(mean.pair_start[query], mean.pair_start[query + 1])
            i, j = (node[pairs] - mean.node_start[query] for node in (mean.first, mean.second))
            above, below = mean.above[pairs] / total[pairs], mean.below[pairs] / total[pairs]
            up, down = above > 0, below > 0
            arcs = np.concatenate((i[up], j[down])), np.concatenate((j[up], i[down]))
            weight = np.concatenate((above[up], below[down]))
            hinge(*arcs, weight)
            hinge(*arcs, weight)
            smooth(*arcs, weight, False)
            smooth(*arcs, weight, True)
            net = above > below
            smooth(np.where(net, i, j), np.where(net, j, i), np.abs(above - below), False)

    return work


def tournament(items: int) -> Callable[[], Any]:
    """One component of so many items, every pair judged at random: dynamic programming."""
    import concordant as cc

    def votes(size: int, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        i, j = np.triu_indices(size, 1)
        swap = rng.random(len(i)) < 0.5
        return cc.Preferences.from_comparisons(
            np.where(swap, j, i), np.where(swap, i, j), count=rng.integers(1, 10, len(i))
        )

    prefs = votes(items, 0)
    cc.optimal_order(votes(13, 1), exact=True)
    return lambda: cc.optimal_order(prefs, exact=True)


CONTENDERS = {"audit": audit, "minimisers": minimisers, "scipy": scipy_minimisers, "tournament": tournament}


def audits(_folder: Path, scale: float) -> Case:
    """The audit: facts, best orders and all surrogates of many queries; exact best orders."""
    queries = int(1e4 * scale)
    case = Case(f"audit of {queries:,} queries × {ITEMS} items × {PAIRS} judged pairs, all surrogates")
    row = add(case, "audits", "concordant, audit without bootstrap", "audit", queries)
    case.bar("audit, time", row.seconds, " s", most=60)
    case.bar("audit, peak memory", row.peak / 1024, " GiB", most=2 / 1.024**3)
    ours = add(
        case,
        "audits",
        f"concordant, minimisers of five surrogates, {queries // 10:,} queries",
        "minimisers",
        queries // 10,
    )
    peer = add(case, "audits", f"SciPy, a query at a time, {queries // 100:,} queries", "scipy", queries // 100)
    case.bar("SciPy / concordant, minimisers of a query", 10 * peer.seconds / ours.seconds, "×", least=10)
    for items in (16, 18, 20):
        row = add(case, "audits", f"concordant, exact best order of a tournament of {items} items", "tournament", items)
        case.bar(f"{items} items, time", row.seconds, " s", most=2)
    return case


if __name__ == "__main__":
    chosen, number = CONTENDERS[sys.argv[1]], int(sys.argv[2])
    report(chosen(number), 1 if chosen in (audit, scipy_minimisers) else 3)

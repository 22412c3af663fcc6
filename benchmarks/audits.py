"""The audit of 10^4 queries × 100 items × 200 judged pairs, and exact best orders: a case of ``make bench``.

``python -m benchmarks.audits NAME NUMBER`` measures one contender in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import Case, Row
from benchmarks.measure import measure

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


def audits(_folder: Path, scale: float) -> Case:
    """The audit: facts, best orders and all surrogates of many queries; exact best orders."""
    queries = int(1e4 * scale)
    case = Case(f"audit of {queries:,} queries × {ITEMS} items × {PAIRS} judged pairs, all surrogates")
    row = _add(case, "concordant, audit without bootstrap", "audit", queries)
    case.bar("audit, time", row.seconds, " s", most=60)
    case.bar("audit, peak memory", row.peak / 1024, " GiB", most=2 / 1.024**3)
    for items in (16, 18, 20):
        row = _add(case, f"concordant, exact best order of a tournament of {items} items", "tournament", items)
        case.bar(f"{items} items, time", row.seconds, " s", most=2)
    return case


def _add(case: Case, label: str, name: str, number: int) -> Row:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.audits", name, str(number)],
        cwd=Path(__file__).resolve().parent.parent,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        row = Row(label, {"error": (done.stderr.strip().splitlines() or ["failed"])[-1][:300]})
        print(f"    {label}: {row.result['error']}", flush=True)
    else:
        row = Row(label, json.loads(done.stdout.strip().splitlines()[-1]))
        print(f"    {label}: {row.seconds:.3f} s, peak {row.peak:,.0f} MiB", flush=True)
    case.rows.append(row)
    return row


def main(name: str, number: int) -> None:
    """Measure one contender and print its figures."""
    work = {"audit": audit, "tournament": tournament}[name](number)
    figures, _ = measure(work, 1 if name == "audit" else 3)
    best = min(figures["seconds"])
    figures |= {
        "best": best,
        "first": figures["seconds"][0],
        "busy": figures["processor"][figures["seconds"].index(best)],
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

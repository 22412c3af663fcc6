"""Graded votes with known scores and thresholds: how often intervals hold, and what each reading makes of the grades.

    python -m benchmarks.grades [--sets 400] [--seed 0]

Ten items, scores drawn from N(0, 1), thresholds .4, 1.1 and 2.5 (grades −3 … 3). Every data set is one query. Coverage
is that of the 95% intervals of scores and thresholds; tau is Kendall's, of the scores with the truth.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy.stats import kendalltau

import concordant as cc

CUTS = np.array([0.4, 1.1, 2.5])
ITEMS = 10
READINGS: dict[str, dict[str, Any]] = {
    "cumulative, prior 0.01": {"ties": "cumulative"},
    "cumulative, prior 0": {"ties": "cumulative", "prior": 0},
    "cumulative, sandwich": {"ties": "cumulative", "interval": "sandwich"},
    "strengths": {},
    "wins alone": {},
}


def drawn(sets: int, votes: int, rng: np.random.Generator) -> tuple[dict[str, Any], np.ndarray]:
    """Columns of graded votes, and the scores of each data set."""
    truth = rng.normal(size=(sets, ITEMS))
    query = np.repeat(np.arange(sets), votes)
    left = rng.integers(0, ITEMS, len(query))
    right = (left + rng.integers(1, ITEMS, len(query))) % ITEMS
    latent = truth[query, left] - truth[query, right] + rng.logistic(size=len(query))
    grade = np.sign(latent) * np.searchsorted(CUTS, np.abs(latent))
    return {"query": query, "left": left, "right": right, "grade": grade.astype(int)}, truth


def row(name: str, log: dict[str, Any], truth: np.ndarray, options: dict[str, Any]) -> str:
    """What one reading makes of the data sets."""
    if name == "wins alone":
        log = {**log, "grade": np.sign(log["grade"])}
    votes = cc.read(log, columns={"grade": "grade", "scale": "1:-1" if name == "wins alone" else "3:-3"})
    board = cc.rank(votes, **options)
    centred = truth - truth.mean(axis=1, keepdims=True)
    true = centred[board.query, board.item]
    finite = np.isfinite(board.lower) & np.isfinite(board.upper)
    held = (board.lower <= true) & (true <= board.upper)
    tau = np.mean([kendalltau(board.score[board.query == q], true[board.query == q])[0] for q in range(len(truth))])
    text = f"{name:24} {held[finite].mean():8.1%}"
    if options.get("ties") == "cumulative":
        table = board.coefficient_table().to_pandas()
        cut = CUTS[table["name"].str[-1].astype(int) - 1]
        known = table["standard_error"].notna() & np.isfinite(table["standard_error"])
        inside = ((table["lower"] <= cut) & (cut <= table["upper"]))[known]
        text += f" {inside.mean():10.1%}"
    else:
        text += f" {'':>10}"
    return f"{text} {tau:7.3f} {int((~finite).sum()):9}"


def main() -> None:
    """Print a table for each number of votes."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--sets", type=int, default=400)
    asked.add_argument("--seed", type=int, default=0)
    options = asked.parse_args()
    rng = np.random.default_rng(options.seed)
    for votes in (150, 600, 2400):
        log, truth = drawn(options.sets, votes, rng)
        print(f"{options.sets} data sets of {votes} votes on {ITEMS} items")
        print(f"{'reading':24} {'scores':>8} {'thresholds':>10} {'tau':>7} {'open ends':>9}")
        for name, how in READINGS.items():
            print(row(name, log, truth, how))


if __name__ == "__main__":
    main()

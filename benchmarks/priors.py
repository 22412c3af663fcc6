"""Which prior is right for intervals, and which for predictions?

``python -m benchmarks.priors`` draws scores and comparisons, ranks them with the default prior, a weaker one and
``prior="auto"``, and prints for each: how many 95% intervals of firm items hold the true score, how many of those
of the best and worst seventh do, and by how much the log-loss of predictions exceeds that of the true probabilities.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

import concordant as cc

Floats = NDArray[np.float64]
PRIORS: tuple[float | str, ...] = (1e-4, 0.01, "auto")
ENDS = 0.15
PREDICTED = 4000


@dataclass(frozen=True)
class Design:
    """What is drawn: scores, and who meets whom."""

    name: str
    scores: Callable[[np.random.Generator], Floats]
    weak: int = 0
    """The last so many items meet a random other one six times each, and nobody else."""
    votes: int = 300


def normal(items: int, spread: float) -> Callable[[np.random.Generator], Floats]:
    """Scores from one normal law."""
    return lambda rng: rng.normal(0, spread, items)


def halves(items: int, gap: float) -> Callable[[np.random.Generator], Floats]:
    """Half of the items weaker by a gap."""
    side = np.repeat([0.5, -0.5], items // 2)
    return lambda rng: gap * side + rng.normal(0, 0.7, items)


DESIGNS = (
    Design("10 items, 60 votes", normal(10, 1.0), votes=60),
    Design("10 items, 300 votes", normal(10, 1.0)),
    Design("50 items, 300 votes", normal(50, 1.0)),
    Design("50 items, 2,000 votes", normal(50, 1.0), votes=2000),
    Design("20 items close together, 2,000 votes", normal(20, 0.2), votes=2000),
    Design("100 items, half weaker by 2 with 6 votes each, 4,000 votes", halves(100, 2.0), weak=50, votes=4000),
)


def drawn(rng: np.random.Generator, design: Design) -> tuple[Any, Floats]:
    """Comparisons of a design and the true scores."""
    scores = design.scores(rng)
    often = len(scores) - design.weak
    first = np.concatenate([rng.integers(0, often, design.votes), np.repeat(np.arange(often, len(scores)), 6)])
    second = np.concatenate([rng.integers(0, often, design.votes), rng.integers(0, len(scores), 6 * design.weak)])
    first, second = first[first != second], second[first != second]
    wins = rng.random(len(first)) < expit(scores[first] - scores[second])
    return cc.Preferences.from_comparisons(np.where(wins, first, second), np.where(wins, second, first)), scores


def judged(rng: np.random.Generator, board: Any, scores: Floats) -> tuple[float, float, float]:
    """Coverage of the firm items and of those at the ends, and the excess log-loss."""
    item = np.asarray(board.items.take(board.item).to_pylist())
    firm = board.flag == 0
    truth = scores[item] - scores[item[firm]].mean()
    held = (board.lower <= truth) & (truth <= board.upper)
    place = np.argsort(np.argsort(truth)) / len(truth)
    ends = firm & (np.abs(place - 0.5) > 0.5 - ENDS)
    value = np.zeros(len(scores))
    value[item] = board.score
    i, j = rng.integers(0, len(scores), (2, PREDICTED))
    true, said = (expit((x[i] - x[j])[i != j]) for x in (scores, value))
    said = np.clip(said, 1e-9, 1 - 1e-9)
    excess = xlogy(true, true / said) + xlogy(1 - true, (1 - true) / (1 - said))
    return float(held[firm].mean()), float(held[ends].mean()) if ends.any() else np.nan, float(excess.mean())


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=60, help="data sets of each design")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print("| data | prior | scores covered | best and worst covered | excess log-loss |\n|---|---|---|---|---|")
    for design in DESIGNS:
        rng = np.random.default_rng(asked.seed)
        found: dict[float | str, list[tuple[float, float, float]]] = {prior: [] for prior in PRIORS}
        chosen = []
        for _ in range(asked.sets):
            prefs, scores = drawn(rng, design)
            pairs = int(rng.integers(1 << 31))
            for prior in PRIORS:
                board = cc.rank(prefs, prior=prior)
                found[prior].append(judged(np.random.default_rng(pairs), board, scores))
                chosen += [board.judged.options["prior"]] if prior == "auto" and board.judged else []
        for prior in PRIORS:
            covered, ends, excess = np.nanmean(found[prior], axis=0)
            name = f"auto (median {np.median(chosen):.2g})" if prior == "auto" else f"{prior:g}"
            print(f"| {design.name} | {name} | {covered:.1%} | {ends:.1%} | {excess:.4f} |", flush=True)


if __name__ == "__main__":
    main()

"""How long do abilities that move take? ``python -m benchmarks.moving`` simulates games and prints seconds.
``--tests 100`` instead draws logs of 10 items, 400 games and 50 dates, whose abilities stand still or move by .1 a
date, and prints how many of each are found to move at 5%.

10⁶ games of 10⁴ players over 1,000 dates: random walks from N(0, 1) with a step of .03 a date, pairs drawn evenly.
Of the smoothed paths, of their intervals, and how many of these hold the truth; by the clock and of one core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

import concordant as cc

STEP = 0.03


def timed(name: str, work: Callable[[], Any]) -> Any:
    """Print how long some work takes; return what it makes."""
    clock, core = time.perf_counter(), time.process_time()
    made = work()
    print(
        f"{name}: {time.perf_counter() - clock:.1f} s by the clock, {time.process_time() - core:.1f} s of CPU",
        flush=True,
    )
    return made


def moves(seed: int, drift: float) -> bool:
    """Draw a log and test whether its abilities move."""
    rng = np.random.default_rng([7, seed])
    walk = rng.normal(size=10) + drift * np.cumsum(rng.normal(size=(50, 10)), axis=0)
    when, one = np.sort(rng.integers(0, 50, 400)), rng.integers(0, 10, 400)
    other = (one + rng.integers(1, 10, 400)) % 10
    won = rng.random(400) < expit(walk[when, one] - walk[when, other])
    votes = cc.Preferences.from_comparisons(
        np.where(won, one, other), np.where(won, other, one), time=when.astype(float)
    )
    return cc.rank_over_time(votes).drift_test()[1] < 0.05


def main() -> None:
    """Simulate, fit, say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="share of games, players and dates")
    parser.add_argument("--tests", type=int, default=0, help="logs to test, in the place of the above")
    asked = parser.parse_args()
    for drift in (0.0, 0.1) if asked.tests else ():
        print(f"drift {drift}: {np.mean([moves(seed, drift) for seed in range(asked.tests)]):.0%} found to move")
    if asked.tests:
        return
    games, players, dates = (max(2, int(size * asked.scale)) for size in (10**6, 10**4, 10**3))
    rng = np.random.default_rng(0)
    walk = np.vstack([rng.normal(0, 1, players), rng.normal(0, STEP, (dates - 1, players))]).cumsum(axis=0)
    when = np.sort(rng.integers(0, dates, games))
    one = rng.integers(0, players, games)
    other = (one + rng.integers(1, players, games)) % players
    wins = rng.random(games) < expit(walk[when, one] - walk[when, other])
    winner, loser = np.where(wins, one, other), np.where(wins, other, one)
    votes = timed("counted", lambda: cc.Preferences.from_comparisons(winner, loser, time=when))
    paths = timed("smoothed paths, prior and drift given", lambda: cc.rank_over_time(votes, prior=1.0, drift=STEP))
    table = timed("their intervals", paths.to_arrow)
    timed("smoothed paths, prior and drift by the data", lambda: cc.rank_over_time(votes))
    item, at = (np.asarray(table[name].to_pylist()).astype(int) for name in ("item", "time"))
    seen = np.zeros((dates, players), bool)
    seen[when, one] = seen[when, other] = True
    seen = np.maximum.accumulate(seen, axis=0)
    level = np.array([row[own].mean() for row, own in zip(walk, seen, strict=True)])
    truth = walk[at, item] - level[at]
    held = (table["lower"].to_numpy() <= truth) & (truth <= table["upper"].to_numpy())
    print(f"{len(table):,} abilities; 95% intervals hold {held.mean():.1%}")


if __name__ == "__main__":
    main()

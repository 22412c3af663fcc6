"""Tables of scores: time, and how often anything false is said. ``python -m benchmarks.scores [--draws N]``.

332 systems × 41 tasks: tiers with 1,000 resamples beside the same in a plain NumPy loop over resamples; the whole
report (rows, all pairs with three tests each, every average, sentences, a picture); all pairs of scikit-posthocs where
it is installed. Medians of seven runs, in seconds of the processor (one thread: those of the clock where nothing else
runs). With ``--draws`` simulated tables in which systems are equal, wholly or in two halves: the share of tables of
which anything false is said, at most 5% wanted, beside pairwise t tests with Holm.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from concordant.apps.report.critical_difference import critical_difference
from concordant.boards.ranked_scores import rank_scores
from concordant.ranking.edge_tests import family_wise

Floats = NDArray[np.float64]
SYSTEMS, TASKS, RESAMPLES, RUNS = 332, 41, 1000, 7


def rows_of(score: Floats, **more: Any) -> dict[str, Any]:
    """Rows of system, task, score of a matrix; NaN cells are left out."""
    system, task = np.nonzero(~np.isnan(score))
    names = [f"s{i:04}" for i in range(len(score))], [f"t{i:05}" for i in range(score.shape[1])]
    columns = {name: np.asarray(column)[task] for name, column in more.items()}
    labels = {"system": np.array(names[0])[system], "task": np.array(names[1])[task]}
    return {**labels, "score": score[system, task], **columns}


def plain_tiers(score: Floats, resamples: int) -> NDArray[np.bool_]:
    """Pairs of which one is certainly above, in a plain loop over the same resamples: all pairs at each step."""
    rng, tasks = np.random.default_rng([0, score.shape[1]]), score.shape[1]
    first, second = np.triu_indices(len(score), 1)
    d = score[first] - score[second]
    root = np.sqrt((d**2).sum(axis=1))
    seen = d.sum(axis=1) / root
    drawn = np.array([d @ sign / root for sign in rng.integers(0, 2, (resamples, tasks), np.int8) * 2.0 - 1.0])
    apart = np.zeros(len(d), bool)
    while True:
        most = np.where(apart, -np.sign(seen) * drawn, np.abs(drawn)).max(axis=1)  # the other order is still open
        found = apart | (np.abs(seen) > np.sort(most)[int(np.ceil(0.95 * (resamples + 1))) - 1])
        if (found == apart).all():
            return apart
        apart = found


def timed(work: Callable[[], Any], runs: int = RUNS) -> float:
    """Median seconds of the processor."""
    work()
    took = []
    for _ in range(runs):
        begin = time.process_time()
        work()
        took.append(time.process_time() - begin)
    return float(np.median(took))


def measure() -> None:
    """Print times and ratios."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=(SYSTEMS, 1)) + rng.normal(size=TASKS) + rng.normal(size=(SYSTEMS, TASKS))
    rows = pa.table(rows_of(score))

    def tiers() -> Any:
        return rank_scores(rows, resamples=RESAMPLES).rank_sets("tiers")

    def report() -> None:
        board = rank_scores(rows)
        board.to_dict(), board.contrasts(), str(board), critical_difference(board)

    ours, plain = timed(tiers), timed(lambda: plain_tiers(score, RESAMPLES), 1)
    print(f"tiers of {SYSTEMS} systems × {TASKS} tasks, {RESAMPLES:,} resamples: {1000 * ours:.0f} ms")
    above = rank_scores(rows, resamples=RESAMPLES).above
    equal = ((above | above.T)[np.triu_indices(SYSTEMS, 1)] == plain_tiers(score, RESAMPLES)).all()
    print(f"the same in a plain NumPy loop: {plain:.2f} s, {plain / ours:.0f} times as long; pairs equal: {equal}")
    print(f"the whole report, 5,000 resamples: {timed(report, 3):.2f} s")
    try:
        from scikit_posthocs import posthoc_wilcoxon
    except ImportError:
        return
    pairs = timed(rank_scores(rows).contrasts, 3)
    peer = timed(lambda: posthoc_wilcoxon(list(score[:60]), p_adjust="holm"), 1) * (SYSTEMS * (SYSTEMS - 1)) / (60 * 59)
    print(
        f"all pairs, three tests: {pairs:.2f} s; scikit-posthocs, Wilcoxon alone: {peer:.1f} s (of 60 systems, scaled)"
    )


def _blocks(rng: np.random.Generator, k: int, n: int) -> Floats:
    return np.repeat(rng.normal(size=(k, n // 5)), 5, axis=1) + 0.5 * rng.normal(size=(k, n))


TABLES: dict[str, tuple[Callable[[np.random.Generator, int, int], Floats], int, int, bool, float]] = {
    # what draws a table, systems, tasks, whether five tasks each are a cluster, the share of cells that is missing
    "normal": (lambda rng, k, n: rng.normal(size=n) + rng.normal(size=(k, n)), 10, 20, False, 0.0),
    "skewed": (lambda rng, k, n: rng.exponential(size=(k, n)) ** 1.5, 10, 40, False, 0.0),
    "right or wrong (ties)": (lambda rng, k, n: (rng.random((k, n)) < rng.beta(2, 2, n)) * 1.0, 20, 100, False, 0.0),
    "grades 1 to 3 (ties)": (lambda rng, k, n: rng.integers(1, 4, (k, n)) * 1.0, 10, 30, False, 0.0),
    "unequal spread": (lambda rng, k, n: rng.normal(size=(k, n)) * np.linspace(0.2, 3, k)[:, None], 20, 41, False, 0.0),
    "blocks of five tasks": (_blocks, 10, 60, True, 0.0),
    "six blocks": (_blocks, 30, 30, True, 0.0),
    "30% missing": (lambda rng, k, n: rng.normal(size=n) + rng.normal(size=(k, n)), 10, 20, False, 0.3),
    "blocks, 30% missing": (_blocks, 10, 60, True, 0.3),
}


def simulate(draws: int) -> None:
    """Print the share of tables of which anything false is said."""
    print(f"share of {draws:,} tables of which anything false is said: all equal, two halves; t tests with Holm")
    for name, (make, k, n, clustered, missing) in TABLES.items():
        rng, wrong = np.random.default_rng(1), np.zeros(3)
        for draw in range(draws):
            noise = make(rng, k, n)
            gone = rng.random((k, n)) < missing
            more = {"cluster": np.arange(n) // 5} if clustered else {}
            for place, apart in enumerate((0.0, 1.0)):
                true = apart * noise.std() * (np.arange(k) >= k // 2)
                score = np.where(gone, np.nan, noise + true[:, None])
                board = rank_scores(rows_of(score, **more), resamples=999, seed=draw)
                wrong[place] += (board.above & (true[:, None] <= true)).any()
            if not missing:
                first, second = np.triu_indices(k, 1)
                p = stats.ttest_rel(noise[first], noise[second], axis=1).pvalue
                wrong[2] += (family_wise(np.nan_to_num(p, nan=1.0), len(p)) <= 0.05).any()
        said = [f"{share:.3f}" for share in wrong / draws]
        print(f"{name:24} {said[0]}  {said[1]}  {'–' if missing else said[2]}", flush=True)


def main() -> None:
    """Measure; simulate where draws are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=0)
    draws = parser.parse_args().draws
    if draws:
        simulate(draws)
    else:
        measure()


if __name__ == "__main__":
    main()

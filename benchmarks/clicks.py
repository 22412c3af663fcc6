"""What scorers learn from simulated clicks, and how fast the position-based model is.

``python -m benchmarks.clicks learning ../shared/data [--splits 10] [--readers 0 1 dependent] [--shuffle shown]
[--alone]`` takes MQ2008. A linear ranker learned from 20 of the training queries shows its first ten documents of
each, 300 times, a tenth of the lists shuffled (the ten among themselves, or, ``--shuffle all``, any ten of the query).
A document of label r attracts with chance 0.1 + 0.9 (2^r − 1)/3. Readers examine position k with chance k^−η, η = 0 or
1, or, dependent readers, go on after a click with chance .5. A linear scorer is fitted to the log as ``fit`` does
where nothing is named, by each model of clicks, by the click-through rate, and, all else equal, by the attractions
themselves of the same documents. Printed: NDCG@10 on held-out queries (each query the mean over the splits that hold
it out), differences to the attractions and to the ranker that made the log with 95% intervals over queries, and the
least of the latter in any split. ``--alone``: the log has a row for each document shown, with its position, and says
nothing of lists.

``python -m benchmarks.clicks speed [--sessions 1e7] [--queries 10000] [--items 20]`` fits the position-based model to
10^7 sessions × 10 positions: seconds from cells of counts, and how far it is off. Each query has a fixed order and, in
a tenth of its sessions, a random one of all its items; examination 1/position. The counts of (query, item, position)
are drawn, as a log of so many sessions would leave them.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality_sets import Queries, Split
from concordant.learning.features.matrix import Features
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.losses.metrics.metrics import compare
from concordant.losses.metrics.ndcg import ndcg
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.status import Status
from concordant.ranking.click_models import Cells, fitted
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PLACES, SESSIONS, SHUFFLED, PILOT, GOING_ON = 10, 300, 0.1, 20, 0.5
LOG, TRUTH = "the ranker that made the log", "the attractions"
READERS = ("0", "1", "dependent")


def attraction(label: Floats) -> Floats:
    """Chance of a click on a document that is examined."""
    return np.asarray(0.1 + 0.9 * (2.0**label - 1) / 3, np.float64)


def pilot(split: Split, rng: np.random.Generator) -> Callable[[Floats], Floats]:
    """Return the linear ranker that shows documents: ridge regression on the labels of some queries."""
    chosen = np.isin(split.train.query, rng.choice(len(split.train.size), PILOT, replace=False))
    Z, label = split.Z_train[chosen], split.train.label[chosen]
    theta = np.linalg.solve(Z.T @ Z + 10 * np.eye(Z.shape[1]), Z.T @ (label - label.mean()))
    return lambda Z: np.asarray(Z @ theta, np.float64)


def clicked(attracted: NDArray[np.bool_], readers: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return the clicks of readers on lists whose documents would attract them."""
    if readers == "dependent":
        ends = np.cumsum(attracted & (rng.random(attracted.shape) >= GOING_ON), axis=1)
        return attracted & (np.pad(ends, ((0, 0), (1, 0)))[:, :-1] == 0)
    return attracted & (rng.random(attracted.shape) < np.arange(1.0, attracted.shape[1] + 1) ** -float(readers))


def log_of(
    queries: Queries, score: Floats, readers: str, shuffle: str, rng: np.random.Generator, alone: bool
) -> Preferences:
    """Show lists and click; items are named by their rows. ``alone``: each is a list of its own."""
    parts = []
    for q, begin in enumerate(queries.start[:-1]):
        rows = begin + np.argsort(-score[begin : queries.start[q + 1]], kind="stable")
        rows = rows[:PLACES] if shuffle == "shown" else rows
        lists = np.tile(rows, (SESSIONS, 1))
        mixed = rng.random(SESSIONS) < SHUFFLED
        lists[mixed] = rng.permuted(lists[mixed], axis=1)
        lists = lists[:, :PLACES]
        clicks = clicked(rng.random(lists.shape) < attraction(queries.label)[lists], readers, rng)
        session = np.repeat(q * SESSIONS + np.arange(SESSIONS), lists.shape[1])
        place = np.tile(np.arange(1, lists.shape[1] + 1), SESSIONS)
        parts.append((np.full(lists.size, q), session, place, lists.ravel(), clicks.ravel().astype(int)))
    query, session, *rest = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Preferences.from_selections(query, np.arange(len(session)) if alone else session, *rest)


def known(label: Floats) -> Callable[[Batch], Scores]:
    """Return the structure that knows the attractions."""

    def attractions(batch: Batch) -> Scores:
        row = np.array([int(str(item)) for item in batch.prefs.items], np.int64)[batch.item]
        graphs, nodes = len(batch), len(batch.item)
        closed = np.full(graphs, Status.CLOSED_FORM, np.int8)
        nothing = np.zeros(graphs, np.int64)
        return Scores(attraction(label)[row], np.zeros(nodes, np.int32), closed, nothing, np.zeros(graphs))

    return attractions


def arms(readers: str, label: Floats, alone: bool) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Structure and its options by name of the arm."""
    if alone:
        named = {"fit's default": None, "position-based": "position-based", "click-through rate": "cascade"}
        return {TRUTH: (known(label), {})} | {name: (structure, {}) for name, structure in named.items()}
    theta = [1.0] * PLACES if readers == "dependent" else [k ** -float(readers) for k in range(1, PLACES + 1)]
    return {
        TRUTH: (known(label), {}),
        "fit's default": (None, {}),
        "position-based": ("position-based", {}),
        "dependent-click": ("dependent-click", {}),
        "inverse-propensity, estimated": ("inverse-propensity", {}),
        "inverse-propensity, true": ("inverse-propensity", {"propensities": theta}),
        "click-through rate": ("inverse-propensity", {"propensities": [1.0] * PLACES}),
    }


def measured(
    queries: Queries, readers: str, splits: int, shuffle: str, alone: bool
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return NDCG@10 of each query whose labels differ, by arm, and the mean of each split."""
    found: dict[str, Floats] = {}
    means: dict[str, list[float]] = {}
    held = np.zeros(len(queries.size))
    for number in range(splits):
        split, rng = Split.of(queries, number), np.random.default_rng([number, 2026, READERS.index(readers)])
        test = np.sort(np.random.default_rng([number, 2013]).permutation(len(held))[2 * len(held) // 3 :])
        shows = pilot(split, rng)
        log = log_of(split.train, shows(split.Z_train), readers, shuffle, rng, alone)
        features = Features.of(split.train.X, np.arange(len(split.train.X)), split.train.query)
        scores = {LOG: shows(split.Z_test)}
        for name, (structure, options) in arms(readers, split.train.label, alone).items():
            gain = "identity" if name == TRUTH else None  # as of chances of clicks
            ranker = AggregationRanker(structure, structure_options=options or None, gain=gain)
            scores[name] = ranker.fit(features, log).predict(split.test.X)
        held[test] += 1
        for name, score in scores.items():
            found.setdefault(name, np.zeros(len(held)))[test] += ndcg(
                score, split.test.label, split.test.query, at=10, ties="averaged"
            )
            means.setdefault(name, []).append(split.test.quality(score))
    highest, least = (of.reduceat(queries.label, queries.start[:-1]) for of in (np.maximum, np.minimum))
    tells = (highest > least) & (held > 0)
    return {name: (value / np.maximum(held, 1))[tells] for name, value in found.items()}, {
        name: np.array(each) for name, each in means.items()
    }


def learning(folder: Path, readers: list[str], splits: int, shuffle: str, alone: bool) -> None:
    """Print a table for each kind of readers."""
    queries = Queries.read(folder, "MQ2008")
    for kind in readers:
        found, means = measured(queries, kind, splits, shuffle, alone)
        print(f"\nreaders {kind}, {len(found[LOG])} held-out queries, {splits} splits, shuffled: {shuffle}")
        print(f"{'':32}NDCG@10  less the attractions          less the ranker of the log     least")
        for name, value in found.items():
            said = []
            for other in (TRUTH, LOG):
                pair = compare(value, found[other])
                said.append(f"{pair.mean:+.4f} ({pair.lower:+.4f} to {pair.upper:+.4f})")
            least = (means[name] - means[LOG]).min()
            print(f"  {name:30}{value.mean():.4f}   {said[0]:30} {said[1]:30} {least:+.4f}", flush=True)


# -- speed -------------------------------------------------------------------------------------------------------------
def cells_of(sessions: float, queries: int, items: int) -> Cells:
    """Draw the cells of a log."""
    draw = np.random.default_rng(0)
    shown = draw.poisson(0.1 * sessions / queries / items, (queries, items, PLACES))
    top = np.arange(PLACES)
    shown[:, top, top] += draw.poisson(0.9 * sessions / queries, (queries, PLACES))
    shown = shown.reshape(-1, PLACES)
    attraction = draw.beta(1, 3, (len(shown), 1))
    clicked = draw.binomial(shown, attraction / np.arange(1, PLACES + 1))
    there = shown > 0
    start = np.append(0, np.cumsum(there.sum(axis=1)))
    return Cells(start, np.nonzero(there)[1], shown[there].astype(float), clicked[there].astype(float), PLACES)


def speed(sessions: float, queries: int, items: int) -> None:
    """Fit the position-based model and print how long it took."""
    cells = cells_of(sessions, queries, items)
    before = time.perf_counter()
    found = fitted(cells)
    seconds = time.perf_counter() - before
    off = np.abs(found.value * np.arange(1, PLACES + 1) - 1)[1:].max()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    how = f"{found.iterations} steps, {found.status.name.lower()}, examination off by at most {off:.2%}"
    print(f"{len(cells.place):,} cells: {seconds:.1f} s, {how}, peak {peak:.1f} GiB")


def main() -> None:
    """Measure what was asked for."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("what", choices=("learning", "speed"))
    asked.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"), help="of learning: of the sets")
    asked.add_argument("--splits", type=int, default=10)
    asked.add_argument("--readers", nargs="+", choices=READERS, default=READERS)
    asked.add_argument("--shuffle", choices=("shown", "all"), default="shown")
    asked.add_argument("--alone", action="store_true")
    for name, usual in (("sessions", 1e7), ("queries", 10_000), ("items", 20)):
        asked.add_argument(f"--{name}", type=type(usual), default=usual)
    given = asked.parse_args()
    if given.what == "learning":
        learning(given.folder, given.readers, given.splits, given.shuffle, given.alone)
    else:
        speed(given.sessions, given.queries, given.items)


if __name__ == "__main__":
    main()

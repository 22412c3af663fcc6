"""The position-based model on 10^7 sessions × 10 positions: seconds from cells of counts, and how far it is off.

``python -m benchmarks.clicks [--sessions 1e7] [--queries 10000] [--items 20]``

Each query has a fixed order and, in a tenth of its sessions, a random one of all its items; examination 1/position. The
counts of (query, item, position) are drawn, as a log of so many sessions would leave them.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from concordant.ranking.click_models import Cells, fitted

PLACES = 10


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


def main() -> None:
    """Fit and print."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, usual in (("sessions", 1e7), ("queries", 10_000), ("items", 20)):
        asked.add_argument(f"--{name}", type=type(usual), default=usual)
    given = asked.parse_args()
    cells = cells_of(given.sessions, given.queries, given.items)
    before = time.perf_counter()
    found = fitted(cells)
    seconds = time.perf_counter() - before
    off = np.abs(found.value * np.arange(1, PLACES + 1) - 1)[1:].max()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    how = f"{found.iterations} steps, {found.status.name.lower()}, examination off by at most {off:.2%}"
    print(f"{len(cells.place):,} cells: {seconds:.1f} s, {how}, peak {peak:.1f} GiB")


if __name__ == "__main__":
    main()

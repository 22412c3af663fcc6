"""The nightly job: a day comes to a store of votes with their people, and the board is ranked again.

``python -m benchmarks.nightly`` makes a store of 29 days, ranks it, takes the 30th in and measures whole processes: the
night's ranking, the same with a memory limit, the same added up by DuckDB without what the last reader kept. Their
tables have to be the same bytes.

``python -m benchmarks.nightly fit`` does so with a scorer of 10,000 queries: a million comparisons, then 1% more in a
hundred queries; whole processes and the fit by itself, whole and with the choices kept (``--start``). Their
coefficients have to be the same bits.

``python -m benchmarks.nightly queries`` ranks the queries of such a log: all, and with the rows of those that gained no
judgment kept (``--start``). The tables have to be the same bits.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import concordant as cc

ITEMS = 200
COMMAND = (sys.executable, "-m", "concordant")


def write_day(path: Path, seed: int, rows: int, people: int) -> Path:
    """Write the votes of a day."""
    draw = np.random.default_rng(seed)
    winner = draw.integers(0, ITEMS, rows)
    loser = (winner + draw.integers(1, ITEMS, rows)) % ITEMS
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"winner": winner, "loser": loser, "worker": draw.integers(0, people, rows)}), path)
    return path


def measured(*arguments: object) -> tuple[float, float, float]:
    """Run a command; return its seconds, those of its processors, and its peak memory in MB."""
    begin = time.perf_counter()
    process = subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments}: exit status {process.returncode}")
    return time.perf_counter() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def write_queries(place: Path, queries: int, items: int, votes: int) -> tuple[Path, Path, Path]:
    """Write features of the items of queries, votes about them, and those of one day more about a hundred queries."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(queries * items, 10))
    truth = X @ draw.normal(size=10) * 0.5 + 0.3 * draw.normal(size=len(X))
    query, item = np.divmod(np.arange(len(X)), items)
    columns = {f"f{place}": X[:, place] for place in range(10)}
    names = {"query": [f"q{one}" for one in query], "item": [f"i{one}" for one in item]}
    pq.write_table(pa.table(names | columns), place / "features.parquet")
    for name, size, seed, among in (("before", votes, 1, queries), ("day", votes // 100, 2, 100)):
        draw = np.random.default_rng(seed)
        of, a = draw.integers(0, among, size), draw.integers(0, items, size)
        b = (a + draw.integers(1, items, size)) % items
        won = draw.random(size) < 1 / (1 + np.exp(truth[of * items + b] - truth[of * items + a]))
        sides = {"winner": np.where(won, a, b), "loser": np.where(won, b, a)}
        table = {"query": [f"q{one}" for one in of]} | {
            side: [f"i{one}" for one in codes] for side, codes in sides.items()
        }
        pq.write_table(pa.table(table), place / f"{name}.parquet")
    return place / "features.parquet", place / "before.parquet", place / "day.parquet"


def measure_fits(place: Path, queries: int, items: int, votes: int) -> None:
    """Print the time of whole and of nightly fits."""
    features, before, day = write_queries(place, queries, items, votes)
    store, names = place / "votes.store", ("before", "whole", "night")
    print(f"{queries:,} queries of {items} items, {votes:,} votes, then {votes // 100:,} more in a hundred queries")
    print(f"{'':38} seconds     CPU   peak MB")
    spent = {}
    for name in names:
        if name != "night":
            measured("ingest", before if name == "before" else day, "--store", store, "-q")
        more = ("--start", place / "before") if name == "night" else ()
        found = measured("fit", store, "-f", features, "-m", place / name, "-q", *more)
        spent[name] = found[1]
        print(f"{'fit, ' + name:38} {found[0]:7.1f} {found[1]:7.1f} {found[2]:9,.0f}", flush=True)
    coefficients = [np.load(place / name / "coef.npy") for name in names]
    votes_now, rows = cc.read(store), cc.read_features(features)
    ranker = cc.load_model(place / "before")
    begin = time.process_time()
    cc.AggregationRanker().fit(rows, votes_now)
    whole = time.process_time()
    ranker.refit(rows, votes_now)
    night = time.process_time()
    share, apart = (night - whole) / (whole - begin), np.abs(coefficients[0] - coefficients[1]).max()
    print(f"by itself: {whole - begin:.2f} and {night - whole:.2f} s, {share:.3f} of the whole")
    print(f"the process: {spent['night'] / spent['whole']:.3f} of the whole")
    gap = np.abs(coefficients[1] - coefficients[2]).max()
    print(f"coefficients of both differ by {gap:.1e}, by a day's votes {apart:.1e}")


def measure_boards(place: Path, queries: int, items: int, votes: int) -> None:
    """Print the time of whole and of nightly rankings."""
    _, before, day = write_queries(place, queries, items, votes)
    store, yesterday, today = place / "votes.store", place / "yesterday.parquet", place / "today.parquet"
    print(f"{queries:,} queries of {items} items, {votes:,} votes, then {votes // 100:,} more in a hundred queries")
    print(f"{'':38} seconds     CPU   peak MB")

    def rank(name: str, table: Path, *more: object) -> float:
        seconds, busy, peak = measured("rank", store, "-q", "-o", table, *more)
        print(f"{name:38} {seconds:7.1f} {busy:7.1f} {peak:9,.0f}", flush=True)
        return busy

    measured("ingest", before, "--store", store, "-q")
    rank("rank, before", yesterday)
    measured("ingest", day, "--store", store, "-q")
    whole = rank("rank, whole", place / "whole.parquet")
    night = rank("rank, night", today, "--start", yesterday)
    same = pq.read_table(today).equals(pq.read_table(place / "whole.parquet"))
    print(f"{night / whole:.3f} of the whole; the tables are {'the same bits' if same else 'NOT the same'}")


def main() -> None:
    """Measure a night."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("rank", "fit", "queries"), default="rank")
    for name, value in {"queries": 10_000, "items": 10, "votes": 1_000_000}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    for name, value in {"days": 30, "rows": 333_334, "people": 20_000}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nightly-") as folder:
        place = Path(folder)
        if asked.what == "queries":
            measure_boards(place, asked.queries, asked.items, asked.votes)
            return
        if asked.what == "fit":
            measure_fits(place, asked.queries, asked.items, asked.votes)
            return
        store, days = place / "votes.store", range(1, asked.days + 1)
        lake = [
            write_day(place / f"day=2026-01-{day:02d}" / "votes.parquet", day, asked.rows, asked.people) for day in days
        ]
        print(f"{asked.days} days, {asked.days * asked.rows:,} votes of {asked.people:,} people, {ITEMS} items")
        print(f"{'':38} seconds     CPU   peak MB")

        def row(name: str, *arguments: object) -> float:
            seconds, busy, peak = measured(*arguments)
            print(f"{name:38} {seconds:7.1f} {busy:7.1f} {peak:9,.0f}", flush=True)
            return busy

        def rank(name: str, table: str, *more: object) -> float:
            return row(name, "rank", store, "-q", "-o", place / table, *more)

        row("days before, ingested", "ingest", *lake[:-1], "--store", store, "--cluster", "worker", "-q")
        rank("days before, ranked", "before.csv")
        row("the day, ingested", "ingest", lake[-1], "--store", store, "--cluster", "worker", "-q")
        night = rank("the night's ranking", "night.csv")
        rank("with --memory-limit 500MB", "limited.csv", "--memory-limit", "500MB")
        rank("scores alone (--interval none)", "scores.csv", "--interval", "none")
        whole = rank("the whole run (--engine duckdb)", "whole.csv", "--engine", "duckdb")
        tables = {(place / f"{name}.csv").read_bytes() for name in ("night", "limited", "whole")}
        print(f"the night takes {night / whole:.2f} of the whole run; the same bytes: {len(tables) == 1}")


if __name__ == "__main__":
    main()

"""The nightly job: a day comes to a store of votes with their people, and the board is ranked again.

``python -m benchmarks.nightly`` makes a store of 29 days, ranks it, takes the 30th in and measures whole processes: the
night's ranking, the same with a memory limit, the same added up by DuckDB without what the last reader kept. Their
tables have to be the same bytes.
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


def main() -> None:
    """Measure a night."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {"days": 30, "rows": 333_334, "people": 20_000}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nightly-") as folder:
        place = Path(folder)
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
        whole = rank("the whole run (--engine duckdb)", "whole.csv", "--engine", "duckdb")
        tables = {(place / f"{name}.csv").read_bytes() for name in ("night", "limited", "whole")}
        print(f"the night takes {night / whole:.2f} of the whole run; the same bytes: {len(tables) == 1}")


if __name__ == "__main__":
    main()

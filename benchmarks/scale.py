"""From 10^6 to 10^9 comparisons on one machine: whole commands, measured from outside, against DuckDB's GROUP BY."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.cases import Case, Row
from benchmarks.votes import SPREAD, write_queries

QUERIES, ITEMS, WIDTH = 10_000, 50, 20
SIZES = (10**6, 10**7, 10**8, 10**9)
LIMIT = "6GB"
FIT = ("--structure", "log-odds", "--order", "100", "--ridge", "0.001")
SHOWN = ["query", "component", "item", "rank", "score", "judgments", "flag"]
GROUP_BY = f"""
import sys, duckdb
folder, path = sys.argv[1:]
connection = duckdb.connect(config={{"preserve_insertion_order": "false", "memory_limit": "{LIMIT}",
                                     "temp_directory": folder}})
result = connection.sql(f"SELECT query, winner, loser, count(*) FROM '{{path}}' GROUP BY query, winner, loser")
print(sum(len(batch) for batch in result.to_arrow_reader(1 << 18)))
"""


def scale(folder: Path, scale: float) -> Case:
    """Comparisons of 10^4 queries × 50 items from Parquet: to a ranking of every query, a fitted scorer, a store."""
    case = Case(f"{QUERIES:,} queries × {ITEMS} items, whole commands, memory limit {LIMIT} for DuckDB")
    features = write_features(folder / "features.parquet")
    found: dict[tuple[str, int], Row] = {}
    sizes = [int(size * scale) for size in SIZES]
    for rows in sizes:
        begin = time.perf_counter()
        log = write_queries(folder / f"queries-{rows}-{QUERIES}-{ITEMS}.parquet", rows, QUERIES, ITEMS)
        took = time.perf_counter() - begin
        print(f"    {rows:,} rows: {log.stat().st_size / 1e9:.2f} GB, written in {took:.0f} s", flush=True)
        out = folder / f"out-{rows}"
        out.mkdir(exist_ok=True)
        works = _works(log, features, out)
        for name, command in works.items():
            found[name, rows] = _add(case, f"{name}, {rows:,}", command, rows)
        same = pq.read_table(out / "r.parquet", columns=SHOWN).equals(pq.read_table(out / "s.parquet", columns=SHOWN))
        case.bar(f"the store ranks as the log does, {rows:,}", float(same), "", least=1)
    _bars(case, found, sizes)
    return case


def _works(log: Path, features: Path, out: Path) -> dict[str, tuple[str, ...]]:
    """The commands, in the order in which they run."""
    concordant = str(Path(sys.executable).with_name("concordant"))
    bounded = ("--memory-limit", LIMIT, "--quiet")
    store, model = str(out / "votes.duckdb"), str(out / "model")
    rank = ("--interval", "none", *bounded, "-o")
    return {
        "DuckDB's own GROUP BY": (sys.executable, "-c", GROUP_BY, str(out), str(log)),
        "concordant rank": (concordant, "rank", str(log), *rank, str(out / "r.parquet")),
        "concordant fit": (concordant, "fit", str(log), "-f", str(features), "-m", model, *FIT, *bounded),
        "concordant ingest": (concordant, "ingest", str(log), "--store", store, *bounded),
        "concordant rank, from the store": (concordant, "rank", store, *rank, str(out / "s.parquet")),
    }


def _bars(case: Case, found: dict[tuple[str, int], Row], sizes: list[int]) -> None:
    most = sizes[-1]
    group_by, rank = found["DuckDB's own GROUP BY", most], found["concordant rank", most]
    case.bar(f"rank / GROUP BY, {most:,}", rank.seconds / group_by.seconds, "×", most=1.5)
    for name in ("concordant rank", "concordant fit", "concordant ingest"):
        case.bar(f"peak memory of {name}, {most:,}", found[name, most].peak * 1.048576e-3, " GB", most=8)
        times = np.log([found[name, rows].seconds for rows in sizes])
        peaks = np.log([found[name, rows].peak for rows in sizes])
        steps = np.diff(np.log(sizes))
        case.bar(f"slope of time, {name}, from the second size on", _slope(sizes[1:], times[1:]), "", most=1.05)
        case.bar(f"steepest step of time, {name}", float((np.diff(times) / steps).max()), "", most=1.05)
        case.bar(f"slope of memory, {name}", _slope(sizes, peaks), "", most=1.05)
    for rows in sizes[-2:]:
        rate = rows / found["concordant ingest", rows].seconds
        case.bar(f"ingest, {rows:,}, 10^6 comparisons a second", rate / 1e6, "", least=2)


def _slope(sizes: list[int], values: np.ndarray) -> float:
    return float(np.polyfit(np.log(sizes), values, 1)[0])


def write_features(path: Path) -> Path:
    """Write query, item and WIDTH columns, the first of which knows the abilities of ``write_queries`` half."""
    if not path.exists():
        rng = np.random.default_rng(1)
        ability = rng.normal(0, SPREAD, QUERIES * ITEMS)  # the first draw of write_queries
        noise = np.random.default_rng(2).standard_normal((QUERIES * ITEMS, WIDTH), np.float32)
        noise[:, 0] += (ability / SPREAD).astype(np.float32)
        columns: dict[str, Any] = {
            "query": np.repeat(np.arange(QUERIES, dtype=np.int32), ITEMS),
            "item": np.tile(np.arange(ITEMS, dtype=np.int32), QUERIES),
        }
        columns |= {f"x{place}": noise[:, place] for place in range(WIDTH)}
        pq.write_table(pa.table(columns), path)
    return path


def _add(case: Case, label: str, command: tuple[str, ...], rows: int) -> Row:
    """Run a command; keep its time, processor time, peak memory and the most that it had on disk while it ran."""
    with tempfile.TemporaryDirectory(prefix="concordant-scale-") as temporary, tempfile.TemporaryFile("w+") as said:
        stop, most = threading.Event(), [0]

        def watch() -> None:
            while not stop.wait(0.25):
                most[0] = max(most[0], _bytes(Path(temporary)))

        watching = threading.Thread(target=watch)
        watching.start()
        begin = time.perf_counter()
        process = subprocess.Popen(command, env=os.environ | {"TMPDIR": temporary}, stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        stop.set()
        watching.join()
        said.seek(0)
        if process.returncode:
            row = Row(label, {"error": said.read().strip()[-300:]})
            print(f"    {label}: {row.result['error']}", flush=True)
        else:
            busy = usage.ru_utime + usage.ru_stime
            figures = {"best": seconds, "first": seconds, "busy": busy, "peak": usage.ru_maxrss / 1024}
            row = Row(label, figures | {"spilled": most[0]}, f"{rows / seconds / 1e6:.1f}·10^6 rows a second")
            if most[0] > 1e6:
                row.note += f", {most[0] / 1e9:.2f} GB of temporary files"
            print(f"    {label}: {seconds:.2f} s, peak {row.peak:,.0f} MiB, {row.note}", flush=True)
    case.rows.append(row)
    return row


def _bytes(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_size
            except OSError:  # gone meanwhile
                continue
    return total

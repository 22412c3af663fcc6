"""The figures to reach, one function a row: inputs, contenders, ratios, and whether the bar is met."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.exact import maximum_likelihood
from benchmarks.running import contend
from benchmarks.votes import write_queries, write_rankings, write_votes

PAIRS = ["winner", "loser"]
SIDES = ["model_a", "model_b", "side"]
OUTCOME = {"columns": {"outcome": "side"}}
"""How ``cc.read`` is told which column names the winning side."""


@dataclass
class Row:
    """What one contender needed."""

    name: str
    result: dict[str, Any]
    note: str = ""

    @property
    def seconds(self) -> float:
        return float(self.result.get("best", float("nan")))

    @property
    def peak(self) -> float:
        return float(self.result.get("peak", float("nan")))


@dataclass
class Case:
    """A row of the table of figures: what was measured and which bars were met."""

    title: str
    rows: list[Row] = field(default_factory=list)
    bars: list[tuple[str, str, bool]] = field(default_factory=list)

    def run(self, label: str, contender: str, *, note: str = "", **case: Any) -> Row:
        """Measure and show at once."""
        row = Row(label, contend(contender, **case), note)
        self.rows.append(row)
        if "error" in row.result:
            print(f"    {label}: {row.result['error']}", flush=True)
        else:
            print(
                f"    {label}: {row.seconds:.3f} s ({row.result['busy']:.3f} s of processor), peak {row.peak:,.0f} MiB",
                flush=True,
            )
        return row

    def bar(self, what: str, value: float, unit: str, *, least: float | None = None, most: float | None = None) -> None:
        """Compare a figure with what was asked; a figure that could not be measured meets nothing."""
        met = value >= least if least is not None else most is not None and value <= most
        asked = f"≥ {least:g}{unit}" if least is not None else f"≤ {most:g}{unit}"
        shown = f"{value:.1e}" if abs(value) < 1e-3 else f"{value:,.2f}"
        self.bars.append((f"{what} ({asked})", f"{shown}{unit}", bool(met)))
        print(f"    {'met ' if met else 'MISS'} {what}: {shown}{unit} ({asked})", flush=True)


def _off(row: Row, exact: tuple[list[str], np.ndarray]) -> float:
    """Largest difference of log-abilities (both sum to zero) from the exact maximum likelihood."""
    if "scores" not in row.result:
        return float("nan")
    found = dict(zip(row.result["names"], row.result["scores"], strict=True))
    scores = np.array([found[name] for name in exact[0]])
    return float(np.abs(scores - scores.mean() - exact[1]).max())


def intervals_100(folder: Path, scale: float) -> Case:
    """10^6 comparisons of 100 items."""
    rows = int(1e6 * scale)
    case = Case(f"Bradley–Terry with intervals, prior 0, {rows:,} comparisons, 100 items")
    path = write_votes(folder / f"votes-{rows}-100.feather", rows, 100, texts=True)
    exact = maximum_likelihood(str(path))
    rank = {"structure": "bradley-terry", "prior": 0.0}
    sandwich = {**rank, "interval": "sandwich"}
    ours = {}
    for frame, what in (("arrow", "Arrow strings"), ("pandas", "pandas strings"), ("object", "pandas objects")):
        ours[frame] = case.run(
            f"concordant, {what}, sandwich",
            "concordant",
            path=str(path),
            frame=frame,
            columns=PAIRS,
            rank=sandwich,
            scores=True,
            repeat=5,
        )
    sides = case.run(
        "concordant, Arrow strings, sides and outcome, sandwich",
        "concordant",
        path=str(path),
        frame="arrow",
        columns=SIDES,
        read=OUTCOME,
        rank=sandwich,
        scores=True,
        repeat=5,
    )
    case.run(
        "concordant, Arrow strings, Hessian",
        "concordant",
        path=str(path),
        frame="arrow",
        columns=PAIRS,
        rank={**rank, "interval": "hessian"},
        repeat=5,
    )
    lists = case.run("evalica, lists, point estimate", "evalica", path=str(path), repeat=5)
    case.run("evalica, NumPy codes, point estimate", "evalica", path=str(path), codes=True, repeat=5)
    arena = case.run("arena-rank, pandas categories, sandwich", "arena_rank", path=str(path), repeat=4)
    case.run("choix I-LSR, list of pairs, point estimate", "choix", path=str(path))
    for frame, least in (("arrow", 5.0), ("pandas", 5.0), ("object", 3.0)):
        case.bar(f"evalica / concordant from {frame}", lists.seconds / ours[frame].seconds, "×", least=least)
        case.bar(f"arena-rank / concordant from {frame}", arena.seconds / ours[frame].seconds, "×", least=least)
    case.bar("arena-rank / concordant from sides and outcome", arena.seconds / sides.seconds, "×", least=5.0)
    for row in (*ours.values(), sides):
        case.bar(f"exact ML, {row.name}", _off(row, exact), "", most=1e-9)
    for row in (lists, arena):
        row.note = f"off the exact maximum likelihood by {_off(row, exact):.1e}"
    return case


def items_20000(folder: Path, scale: float) -> Case:
    """10^6 comparisons of 20,000 items."""
    rows, items = int(1e6 * scale), int(20_000 * scale)
    case = Case(f"{rows:,} comparisons, {items:,} items")
    path = write_votes(folder / f"votes-{rows}-{items}.feather", rows, items, texts=True)
    rank = {"structure": "bradley-terry", "prior": 0.0}
    ours = case.run(
        "concordant, Arrow strings, point estimate",
        "concordant",
        path=str(path),
        frame="arrow",
        columns=PAIRS,
        rank={**rank, "interval": "none"},
        scores=True,
    )
    case.run(
        "concordant, Arrow strings, with default intervals",
        "concordant",
        path=str(path),
        frame="arrow",
        columns=PAIRS,
        rank=rank,
        repeat=1,
    )
    peer = case.run("evalica, lists, point estimate", "evalica", path=str(path), repeat=1)
    case.bar("evalica / concordant, time", peer.seconds / ours.seconds, "×", least=50)
    case.bar("evalica / concordant, peak memory of the process", peer.peak / ours.peak, "×", least=6)
    exact = maximum_likelihood(str(path))
    case.bar("exact ML", _off(ours, exact), "", most=1e-9)
    peer.note = f"off the exact maximum likelihood by {_off(peer, exact):.1e}"
    return case


def items_5000(folder: Path, scale: float) -> Case:
    """Preparation, fit and intervals, 5,000 items."""
    rows, items = int(1e6 * scale), int(5_000 * scale)
    case = Case(f"preparation + fit + intervals, {rows:,} comparisons, {items:,} items")
    path = write_votes(folder / f"votes-{rows}-{items}.feather", rows, items, texts=True)
    rank = {"structure": "bradley-terry", "prior": 0.0, "interval": "sandwich"}
    ours = [
        case.run(
            f"concordant, {what}, sandwich",
            "concordant",
            path=str(path),
            frame=frame,
            columns=columns,
            read=read,
            rank=rank,
            scores=True,
        )
        for frame, what, columns, read in (
            ("arrow", "Arrow strings", PAIRS, {}),
            ("pandas", "pandas strings, sides and outcome", SIDES, OUTCOME),
        )
    ]
    peer = case.run("arena-rank, pandas categories, sandwich", "arena_rank", path=str(path), repeat=2)
    case.run("evalica, lists, point estimate", "evalica", path=str(path), repeat=1)
    exact = maximum_likelihood(str(path))
    for row in ours:
        case.bar(f"arena-rank / {row.name}", peer.seconds / row.seconds, "×", least=10)
        case.bar(f"peak memory of the process, {row.name}", row.peak * 1.048576e-3, " GB", most=1)
        case.bar(f"exact ML, {row.name}", _off(row, exact), "", most=1e-9)
    peer.note = f"off the exact maximum likelihood by {_off(peer, exact):.1e}"
    return case


def million_items(folder: Path, scale: float) -> Case:
    """10^7 comparisons of 10^6 items, integer ids."""
    rows, items = int(1e7 * scale), int(1e6 * scale)
    case = Case(f"{rows:,} comparisons, {items:,} items (integer ids), default prior")
    path = write_votes(folder / f"votes-{rows}-{items}.feather", rows, items, texts=False)
    ours = case.run(
        "concordant, Arrow integers, point estimate",
        "concordant",
        path=str(path),
        frame="arrow",
        columns=PAIRS,
        rank={"structure": "bradley-terry", "interval": "none"},
        repeat=1,
    )
    case.run(
        "concordant, Arrow integers, with (approximate) default intervals",
        "concordant",
        path=str(path),
        frame="arrow",
        columns=PAIRS,
        rank={"structure": "bradley-terry"},
        repeat=1,
    )
    case.bar("point estimate, time", ours.seconds, " s", most=30)
    case.bar("point estimate, peak memory of the process", ours.peak * 1.048576e-3, " GB", most=2)
    return case


def many_queries(folder: Path, scale: float) -> Case:
    """A Parquet log of 10^8 comparisons over 10^4 queries of 100 items."""
    rows, queries = int(1e8 * scale), int(1e4 * scale)
    case = Case(f"Parquet log of {rows:,} comparisons, {queries:,} queries × 100 items, no intervals")
    begin = time.perf_counter()
    path = write_queries(folder / f"queries-{rows}-{queries}.parquet", rows, queries, 100)
    print(f"    log: {path.stat().st_size / 2**30:.2f} GiB, written in {time.perf_counter() - begin:.0f} s", flush=True)
    rank = {"structure": "bradley-terry", "interval": "none"}
    peer = case.run("DuckDB's own GROUP BY", "duckdb_group_by", path=str(path), repeat=2)
    free = case.run("concordant", "concordant_file", path=str(path), rank=rank, repeat=1)
    tight = case.run(
        "concordant, memory_limit 1GB",
        "concordant_file",
        path=str(path),
        rank=rank,
        repeat=1,
        read={"memory_limit": "1GB"},
    )
    for row, most in ((free, 6), (tight, 3)):
        case.bar(f"beyond DuckDB's GROUP BY, {row.name}", row.seconds - peer.seconds, " s", most=60)
        case.bar(f"peak memory of the process, {row.name}", row.peak * 1.048576e-3, " GB", most=most)
    return case


def bootstrap_1000(folder: Path, scale: float) -> Case:
    """1,000 bootstrap replicates of 10^6 comparisons of 100 items."""
    rows = int(1e6 * scale)
    case = Case(f"1,000 bootstrap replicates, {rows:,} comparisons, 100 items")
    path = write_votes(folder / f"votes-{rows}-100.feather", rows, 100, texts=True)
    ours = case.run(
        "concordant, Arrow strings, read + fit + 1,000 replicates",
        "concordant",
        path=str(path),
        frame="arrow",
        columns=PAIRS,
        rank={"structure": "bradley-terry", "prior": 0.0, "interval": "bootstrap", "replicates": 1000},
    )
    few, more = (
        case.run(f"evalica, lists, {n} replicates", "evalica_bootstrap", path=str(path), resamples=n, repeat=1)
        for n in (4, 16)
    )
    each = (more.seconds - few.seconds) / 12
    more.note = f"{each:.2f} s a replicate, so {1000 * each:,.0f} s for 1,000"
    case.bar("concordant, time", ours.seconds, " s", most=2)
    case.bar("evalica (16 replicates scaled to 1,000) / concordant", 1000 * each / ours.seconds, "×", least=10)
    return case


def bootstrap_rankings(folder: Path, scale: float) -> Case:
    """1,000 bootstrap replicates of Plackett–Luce on 10^4 rankings of 5 of 20 and of 100 items."""
    rows = int(1e4 * scale)
    case = Case(f"1,000 bootstrap replicates of Plackett–Luce, {rows:,} rankings of 5")
    for items in (20, 100):
        path = write_rankings(folder / f"rankings-{rows}-{items}.feather", rows, items, 5)
        ours = case.run(
            f"concordant, {items} items, read + fit + 1,000 replicates",
            "concordant",
            path=str(path),
            frame="arrow",
            columns=("judgment", "item", "rank"),
            read={"unranked": "missing"},
            rank={"structure": "plackett-luce", "interval": "bootstrap", "replicates": 1000},
        )
        peer = case.run(
            f"choix, {items} items, 2 refits", "choix_rankings", path=str(path), resamples=2, shown=5, repeat=1
        )
        peer.note = f"{peer.seconds / 2:.2f} s a replicate, so {500 * peer.seconds:,.0f} s for 1,000"
        case.bar(f"concordant, {items} items", ours.seconds, " s", most=10)
        case.bar(
            f"choix (scaled to 1,000) / concordant, {items} items", 500 * peer.seconds / ours.seconds, "×", least=10
        )
    return case


def start_up(_folder: Path, _scale: float) -> Case:
    """``concordant --help`` against ``python -c "import numpy"``."""
    case = Case("start-up, median of 11 after one to warm the files")
    script = str(Path(sys.executable).with_name("concordant"))
    commands = {
        'python -c "import numpy"': [sys.executable, "-c", "import numpy"],
        "concordant --help": [script, "--help"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(12):
        for name, command in commands.items():
            begin = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            taken[name].append(time.perf_counter() - begin)
    medians = {name: statistics.median(seconds[1:]) for name, seconds in taken.items()}
    case.rows = [Row(name, {"best": median, "peak": float("nan")}) for name, median in medians.items()]
    numpy, ours = medians.values()
    case.bar("concordant --help / import numpy", ours / numpy, "×", most=3)
    return case


CASES: dict[str, Callable[[Path, float], Case]] = {
    "1": intervals_100,
    "2": items_20000,
    "3": items_5000,
    "4": million_items,
    "5": many_queries,
    "6": bootstrap_1000,
    "7": start_up,
    "rankings": bootstrap_rankings,
}

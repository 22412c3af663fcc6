"""The commands whose time left ``benchmarks.time_left`` measures, with the files that they read."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Where the data sets of ``reproduce`` lie."""
Case = Callable[[Path], list[str]]


def votes(folder: Path, queries: int, items: int, number: int, workers: int = 0, form: str = "parquet") -> str:
    """Write comparisons: of each query some items, the better one preferred by a logistic law."""
    draw = np.random.default_rng(1)
    query = draw.integers(0, queries, number)
    left = draw.integers(0, items, number)
    right = (left + 1 + draw.integers(0, items - 1, number)) % items
    wins = draw.random(number) < 1 / (1 + np.exp((left - right) * 3 / items))
    columns = {"winner": np.where(wins, left, right), "loser": np.where(wins, right, left)}
    columns |= {"query": query} if queries > 1 else {}
    columns |= {"worker": draw.integers(0, workers, number)} if workers else {}
    table, name = pa.table(columns), folder / f"votes.{form}"
    pq.write_table(table, name) if form == "parquet" else pyarrow.csv.write_csv(table, name)
    return str(name)


def features(folder: Path, queries: int, items: int, width: int) -> str:
    """Write a row of numbers for each item of each query; the first is what the votes go by."""
    draw = np.random.default_rng(2)
    item = np.tile(np.arange(items), queries)
    table = {"query": np.repeat(np.arange(queries), items)} if queries > 1 else {}
    table |= {"item": item}
    table |= {f"x{place}": draw.standard_normal(len(item)) + (place == 0) * item / items for place in range(width)}
    pq.write_table(pa.table(table), folder / "features.parquet")
    return str(folder / "features.parquet")


def _games(
    folder: Path, items: int, dates: int, number: int, step: float = 0.03, spread: float = 1.0, tied: float = 0.0
) -> str:
    """Write games at home of items whose abilities are random walks from date to date."""
    draw = np.random.default_rng(6)
    walk = np.vstack([draw.normal(0, spread, items), draw.normal(0, step, (dates - 1, items))]).cumsum(axis=0)
    when, one = np.sort(draw.integers(0, dates, number)), draw.integers(0, items, number)
    other = (one + draw.integers(1, items, number)) % items
    wins = draw.random(number) < 1 / (1 + np.exp(walk[when, other] - walk[when, one] - 0.3 * (tied > 0)))
    table = {"left": one, "right": other, "winner": np.where(wins, "left", "right"), "day": when}
    if tied:
        table["winner"] = np.where(draw.random(number) < tied, "tie", table["winner"])
    pq.write_table(pa.table(table), folder / "games.parquet")
    return str(folder / "games.parquet")


def _rankings(folder: Path) -> str:
    draw = np.random.default_rng(3)
    lines = [" ".join(map(str, draw.permutation(40)[:8])) for _ in range(20_000)]
    rows = [(number, item, place + 1) for number, line in enumerate(lines) for place, item in enumerate(line.split())]
    table = pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=["judgment", "item", "rank"])
    pq.write_table(table, folder / "rankings.parquet")
    return str(folder / "rankings.parquet")


def _scores(folder: Path) -> str:
    draw = np.random.default_rng(4)
    tasks, systems = 20_000, 60
    table: dict[str, Any] = {"task": np.arange(tasks)}
    level = draw.standard_normal(tasks)
    table |= {f"s{place}": level + place / 40 + draw.standard_normal(tasks) for place in range(systems)}
    pq.write_table(pa.table(table), folder / "scores.parquet")
    return str(folder / "scores.parquet")


def _store(folder: Path, rows: int = 400_000) -> str:
    from concordant.io.ingest import Store

    store = str(folder / "votes.store")
    for day in range(6):
        (folder / str(day)).mkdir()
        draw = np.random.default_rng(day)
        winner = draw.integers(0, 500, rows)
        table = {"winner": winner, "loser": (winner + 1 + draw.integers(0, 499, len(winner))) % 500}
        table |= {"worker": draw.integers(0, 5000, len(winner))}
        pq.write_table(pa.table(table), folder / str(day) / "votes.parquet")
        Store(store).ingest(folder / str(day) / "votes.parquet", cluster="worker")
    return store


def _two(folder: Path) -> list[str]:
    for name in "ab":
        (folder / name).mkdir()
    return [votes(folder / name, 1, 100, 1_000_000, 3000) for name in "ab"]


def _divided(folder: Path, items: int, number: int, workers: int, languages: int, alike: bool = False) -> str:
    """Write votes whose order depends on the language of who judged, and on the age; ``alike``: on neither."""
    draw = np.random.default_rng(9)
    worker, left = draw.integers(0, workers, number), draw.integers(0, items, number)
    right = (left + 1 + draw.integers(0, items - 1, number)) % items
    language, age = np.arange(workers) % languages, draw.integers(18, 80, workers)
    slope = 1.0 if alike else (np.where(language % 2 == 0, 1.0, -0.6) + 0.02 * (age - 40))[worker]
    wins = draw.random(number) < 1 / (1 + np.exp((left - right) * 3 / items * slope))
    table = {"winner": np.where(wins, left, right), "loser": np.where(wins, right, left), "worker": worker}
    table |= {"language": language[worker], "age": age[worker]}
    pq.write_table(pa.table(table), folder / "divided.parquet")
    return str(folder / "divided.parquet")


def _model(folder: Path) -> str:
    (folder / "fitted").mkdir()
    log, rows = votes(folder / "fitted", 50, 20, 20_000), features(folder / "fitted", 50, 20, 10)
    fit = [sys.executable, "-m", "concordant", "fit", log, "-f", rows, "-m", str(folder / "model"), "--quiet"]
    subprocess.run(fit, check=True, capture_output=True)
    return str(folder / "model")


def _labels(folder: Path, form: str = "parquet") -> list[str]:
    draw = np.random.default_rng(5)
    query, item = np.repeat(np.arange(60_000), 50), np.tile(np.arange(50), 60_000)
    base = {"query": query, "item": item}
    label = draw.integers(0, 5, len(query))
    tables = {"s": base | {"score": label + draw.normal(0, 2, len(query))}, "labels": base | {"label": label}}
    for name, table in tables.items():
        write = pq.write_table if form == "parquet" else pyarrow.csv.write_csv
        write(pa.table(table), folder / f"{name}.{form}")
    return [str(folder / f"{name}.{form}") for name in tables]


def _ranked(folder: Path) -> list[str]:
    log = votes(folder, 20_000, 15, 1_500_000)
    rank = [
        sys.executable,
        "-m",
        "concordant",
        "rank",
        log,
        "--interval",
        "none",
        "-o",
        str(folder / "ranking.parquet"),
    ]
    subprocess.run([*rank, "--quiet"], check=True, capture_output=True)
    return [str(folder / "ranking.parquet"), log]


def _lists(folder: Path, number: int, items: int, each: int, queries: int = 1) -> str:
    """Write rankings of some of the items."""
    draw = np.random.default_rng(3)
    item = np.argsort(draw.random((number, items)) + np.arange(items) / items, axis=1)[:, :each].ravel()
    place = {"judgment": np.repeat(np.arange(number), each), "rank": np.tile(np.arange(1, each + 1), number)}
    query = {"query": np.repeat(draw.integers(0, queries, number), each)} if queries > 1 else {}
    pq.write_table(pa.table(place | query | {"item": item}), folder / "lists.parquet")
    return str(folder / "lists.parquet")


def _clicks(folder: Path, queries: int, items: int, number: int) -> str:
    """Write lists of ten items that were shown, and which of them were clicked."""
    draw = np.random.default_rng(3)
    query, shown = draw.integers(0, queries, number), np.argsort(draw.random((number, items)), axis=1)[:, :10].ravel()
    place = np.tile(np.arange(1, 11), number)
    clicked = (draw.random(10 * number) < 0.5 * (1 - shown / items) / place**0.5).astype(int)
    table = {"session": np.repeat(np.arange(number), 10), "query": np.repeat(query, 10), "position": place}
    pq.write_table(pa.table(table | {"item": shown, "clicked": clicked}), folder / "clicks.parquet")
    return str(folder / "clicks.parquet")


def _sided(folder: Path, items: int, number: int, workers: int) -> str:
    """Write votes on two sides, some of them ties, with a number of each side's length."""
    draw = np.random.default_rng(6)
    left, tie = draw.integers(0, items, number), draw.random(number) < 0.2
    right = (left + draw.integers(1, items, number)) % items
    wins = draw.random(number) < 1 / (1 + np.exp((left - right) * 3 / items))
    table = {"left": left, "right": right, "winner": np.where(tie, "tie", np.where(wins, "left", "right"))}
    table |= {"worker": draw.integers(0, workers, number), "length": draw.normal(size=number).round(1)}
    pq.write_table(pa.table(table), folder / "sided.parquet")
    return str(folder / "sided.parquet")


def _graded(folder: Path, queries: int, documents: int, width: int) -> str:
    """Write graded lists as LETOR does."""
    draw = np.random.default_rng(8)
    X = draw.normal(size=(queries * documents, width)).round(3)
    noisy = X[:, 0] + X[:, 1] * X[:, 2] + 0.7 * draw.normal(size=len(X)) + 1
    labels = np.clip(np.round(noisy), 0, 4).astype(int)
    with (folder / "train.txt").open("w") as file:
        for row, (label, values) in enumerate(zip(labels, X, strict=True)):
            numbers = " ".join(f"{place}:{value}" for place, value in enumerate(values, 1))
            file.write(f"{label} qid:{row // documents + 1} {numbers} # d{row % documents}\n")
    return str(folder / "train.txt")


def _people(folder: Path, number: int, judged: int) -> list[str]:
    """Write what a judge model decided, and what people did of the first of it."""
    draw, items = np.random.default_rng(1), 40
    left = draw.integers(0, items, number)
    right = (left + draw.integers(1, items, number)) % items
    wins = draw.random(number) < 1 / (1 + np.exp((left - right) * 3 / items))
    machine = np.where(draw.random(number) < 0.8, wins, ~wins)
    pair: dict[str, Any] = {"id": np.arange(number), "left": left, "right": right}
    for name, first, many in (("people", wins, judged), ("model", machine, number)):
        table = pa.table(pair | {"winner": np.where(first, "left", "right")})
        pq.write_table(table.slice(0, many), folder / f"{name}.parquet")
    return [str(folder / "people.parquet"), "--model-judge", str(folder / "model.parquet"), "--match", "id"]


def _named(folder: Path, items: int, number: int, workers: int, languages: int) -> str:
    """The votes of ``_divided``, languages and ages as names."""
    table = pq.read_table(_divided(folder, items, number, workers, languages))
    for name in ("language", "age"):
        at = table.column_names.index(name)
        table = table.set_column(at, name, pa.array([f"{name} {value}" for value in table[name].to_pylist()]))
    pq.write_table(table, folder / "named.parquet")
    return str(folder / "named.parquet")


def _packed(folder: Path, path: str) -> str:
    with open(path, "rb") as plain, gzip.open(folder / "packed.csv.gz", "wb", compresslevel=3) as packed:
        shutil.copyfileobj(plain, packed)
    return str(folder / "packed.csv.gz")


def _beside(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


OUT = ["-o", "out.csv"]
CASES: dict[str, Case] = {
    "rank: votes of one board": lambda at: ["rank", votes(at, 1, 200, 25_000_000, form="csv"), *OUT],
    "rank: 20,000 queries": lambda at: ["rank", votes(at, 20_000, 20, 4_000_000), *OUT],
    "rank: workers, bootstrap": lambda at: [
        *("rank", votes(at, 1, 150, 300_000, 2000), "--cluster", "worker", "--interval", "bootstrap"),
        *("--replicates", "4000", *OUT),
    ],
    "rank: rankings, bootstrap": lambda at: ["rank", _rankings(at), "--interval", "bootstrap", *OUT],
    "rank: Borda, bootstrap": lambda at: [
        *("rank", votes(at, 1, 120, 400_000), "--structure", "borda", "--replicates", "4000", *OUT)
    ],
    "rank: queries, bootstrap": lambda at: [
        *("rank", votes(at, 1000, 15, 300_000), "--interval", "bootstrap", "--replicates", "400", *OUT)
    ],
    "rank: queries, workers": lambda at: ["rank", votes(at, 600, 20, 900_000, 2000), "--cluster", "worker", *OUT],
    "rank: moving": lambda at: ["rank", _games(at, 1000, 500, 400_000), "--time", "day", "--moving", *OUT],
    "rank: moving, 10,000 items": lambda at: [
        *("rank", _games(at, 10_000, 1000, 1_000_000), "--time", "day", "--moving", "--paths", "paths.parquet", *OUT)
    ],
    "rank: moving, 100 items": lambda at: [
        *("rank", _games(at, 100, 2000, 100_000), "--time", "day", "--moving", "--statistics"),
        *("--paths", "paths.csv", *OUT),
    ],
    "rank: moving, hardly": lambda at: [
        *("rank", _games(at, 1000, 100, 100_000, 0.0), "--time", "day", "--moving", *OUT)
    ],
    "rank: moving, hardly, 5,000 items": lambda at: [
        *("rank", _games(at, 5000, 50, 2_000_000, 0.0), "--time", "day", "--moving", "--statistics", *OUT)
    ],
    "rank: moving, 15 items": lambda at: [
        *("rank", _games(at, 15, 5000, 300_000, 0.02), "--time", "day", "--moving", "--statistics", *OUT)
    ],
    "rank: moving, at home, ties": lambda at: [
        *("rank", _games(at, 300, 500, 200_000, tied=0.2), "--home", "--ties", "davidson", "--time", "day", "--moving"),
        *OUT,
    ],
    "rank: moving, far": lambda at: [
        *("rank", _games(at, 5000, 400, 800_000, 0.1, 2.0), "--time", "day", "--moving", *OUT)
    ],
    "rank: moving, slowly": lambda at: [
        *("rank", _games(at, 400, 2000, 300_000, 0.003, 0.3), "--home", "--time", "day", "--moving", *OUT)
    ],
    "rank: moving, drift given": lambda at: [
        *("rank", _games(at, 10_000, 1000, 3_000_000), "--time", "day", "--moving", "--drift", "0.03", *OUT)
    ],
    "compare: two logs, workers": lambda at: ["compare", *_two(at), "--cluster", "worker"],
    "compare": lambda at: ["compare", votes(at, 1, 200, 300_000)],
    "fit": lambda at: ["fit", votes(at, 1000, 20, 300_000), "-f", features(at, 1000, 20, 40), "-m", "m"],
    "fit: 2,000 queries": lambda at: [
        *("fit", votes(at, 2000, 20, 1_500_000), "-f", features(at, 2000, 20, 60), "-m", "m")
    ],
    "fit: grid": lambda at: [
        *("fit", votes(at, 1000, 20, 300_000), "-f", features(at, 1000, 20, 40), "-m", "m"),
        *("--structure", "log-odds", "--order", "auto", "--ridge", "auto"),
    ],
    "fit: boosted": lambda at: [
        *("fit", votes(at, 400, 20, 100_000), "-f", features(at, 400, 20, 20), "-m", "m", "--regressor", "boosted")
    ],
    "fit: boosted, 2,000 queries": lambda at: [
        *("fit", votes(at, 2000, 20, 1_000_000), "-f", features(at, 2000, 20, 20), "-m", "m", "--regressor", "boosted")
    ],
    "fit: hinge": lambda at: [
        *("fit", votes(at, 1000, 20, 300_000), "-f", features(at, 1000, 20, 20), "-m", "m", "--loss", "ranknet")
    ],
    "audit: one query": lambda at: ["audit", votes(at, 1, 60, 30_000), "-o", "out.json"],
    "audit: workers": lambda at: [
        *("audit", votes(at, 1, 60, 30_000, 300), "--cluster", "worker", "-o", "out.json")
    ],
    "audit: 200 items": lambda at: ["audit", votes(at, 1, 200, 300_000), "-o", "out.json"],
    "audit: 3,000 workers": lambda at: [
        *("audit", votes(at, 1, 120, 300_000, 3000), "--cluster", "worker", "-o", "out.json")
    ],
    "audit: 3,000 queries": lambda at: ["audit", votes(at, 3000, 15, 300_000), "-o", "out.json"],
    "audit: 40,000 queries": lambda at: [
        *("audit", votes(at, 40_000, 15, 3_000_000), "--replicates", "0", "-o", "out.json")
    ],
    "report": lambda at: ["report", votes(at, 1, 60, 60_000), "-o", "page.html"],
    "report: 150 items": lambda at: ["report", votes(at, 1, 150, 300_000), "-o", "page.html"],
    "evaluate": lambda at: ["evaluate", *_labels(at)],
    "evaluate: text": lambda at: ["evaluate", *_labels(at, "csv")],
    "evaluate: judgments": lambda at: ["evaluate", *_ranked(at)],
    "evaluate: parts held out": lambda at: ["evaluate", votes(at, 5000, 15, 1_000_000), "--split", "random"],
    "scores": lambda at: ["scores", _scores(at), "-o", "out.csv"],
    "ingest": lambda at: ["ingest", votes(at, 1, 500, 5_000_000, 5000), "--cluster", "worker", "--store", "s.store"],
    "store compact": lambda at: ["store", "compact", _store(at)],
    "store export": lambda at: ["store", "export", _store(at, 2_000_000), "-o", "out.csv"],
    "store verify": lambda at: ["store", "verify", _store(at, 2_000_000)],
    "store forget": lambda at: ["store", "forget", _store(at, 2_000_000), "--cluster", "3"],
    "judges": lambda at: ["judges", votes(at, 1, 60, 300_000, 1000), "--judge", "worker"],
    "judges: 5,000": lambda at: ["judges", votes(at, 1, 100, 2_000_000, 5000), "--judge", "worker"],
    "camps": lambda at: ["camps", votes(at, 1, 20, 60_000, 300), "--judge", "worker"],
    "axioms": lambda at: [
        "axioms", votes(at, 200, 15, 60_000), _model(at), "-f", features(at, 200, 15, 10)
    ],
    "look: one query": lambda at: ["look", votes(at, 1, 2000, 8_000_000)],
    "look: 20,000 queries": lambda at: ["look", votes(at, 20_000, 20, 4_000_000), *OUT],
    "look: 1,000 queries": lambda at: ["look", votes(at, 1000, 200, 6_000_000), *OUT],
    "doctor": lambda at: ["doctor", votes(at, 1, 60, 20_000_000, 300)],
    "doctor: text": lambda at: ["doctor", votes(at, 1, 60, 10_000_000, 300, form="csv")],
    "doctor: queries": lambda at: ["doctor", votes(at, 20_000, 20, 8_000_000)],
    "pairs": lambda at: ["pairs", votes(at, 20_000, 15, 1_500_000), "-o", "pairs.parquet"],
    "tree: languages and ages": lambda at: [
        *("tree", _divided(at, 30, 1_000_000, 5000, 4), "--by", "language", "--by", "age", "--cluster", "worker")
    ],
    "tree: workers": lambda at: ["tree", _divided(at, 60, 5_000_000, 500, 3), "--by", "worker"],
    "tree: workers, all alike": lambda at: ["tree", _divided(at, 60, 5_000_000, 500, 3, alike=True), "--by", "worker"],
    "score": lambda at: ["score", "-m", _model(at), "-f", features(at, 60_000, 20, 10), *OUT],
    "explain": lambda at: ["explain", votes(at, 1, 200, 300_000), "-f", features(at, 1, 200, 10)],
    "explain: 400 items": lambda at: ["explain", votes(at, 1, 400, 1_000_000), "-f", features(at, 1, 400, 20)],
    "rank: packed text": lambda at: ["rank", _packed(at, votes(at, 1, 200, 15_000_000, form="csv")), *OUT],
    "rank: 20,000 items": lambda at: ["rank", votes(at, 1, 20_000, 3_000_000), *OUT],
    "rank: covariate, workers": lambda at: [
        *("rank", _sided(at, 200, 1_000_000, 500), "--covariate", "length", "--home", "--cluster", "worker", *OUT)
    ],
    "rank: half-life": lambda at: [
        *("rank", _games(at, 200, 1000, 2_000_000), "--time", "day", "--half-life", "100", *OUT)
    ],
    "rank: log-odds": lambda at: ["rank", votes(at, 1, 200, 2_000_000), "--structure", "log-odds", *OUT],
    "rank: Copeland": lambda at: ["rank", votes(at, 2000, 20, 1_000_000), "--structure", "copeland", *OUT],
    "rank: Plackett–Luce": lambda at: ["rank", _lists(at, 60_000, 60, 10), "--structure", "plackett-luce", *OUT],
    "rank: clicks": lambda at: [
        *("rank", _clicks(at, 2000, 20, 300_000), "--structure", "cascade", "--clicks", "first", *OUT)
    ],
    "rank: clicks of one query": lambda at: [
        *("rank", _clicks(at, 1, 60, 300_000), "--structure", "cascade", "--clicks", "first", *OUT)
    ],
    "rank: several clicks": lambda at: ["rank", _clicks(at, 500, 20, 100_000), *OUT],
    "fit: several clicks": lambda at: ["fit", _clicks(at, 500, 20, 50_000), "-f", features(at, 500, 20, 20), "-m", "m"],
    "fit: several clicks of one query": lambda at: [
        *("fit", _clicks(at, 1, 60, 50_000), "-f", features(at, 1, 60, 10), "-m", "m")
    ],
    "fit: rankings": lambda at: [
        *("fit", _lists(at, 20_000, 40, 8, 100), "-f", features(at, 100, 40, 5), "-m", "m")
    ],
    "fit: orders of Bradley–Terry": lambda at: [
        *("fit", votes(at, 300, 20, 100_000), "-f", features(at, 300, 20, 20), "-m", "m"),
        *("--structure", "bradley-terry", "--order", "auto"),
    ],
    "fit: informed forest": lambda at: [
        *("fit", votes(at, 300, 20, 100_000), "-f", features(at, 300, 20, 20), "-m", "m"),
        *("--regressor", "random-forest"),
    ],
    "fit: graded lists": lambda at: ["fit", _graded(at, 600, 40, 30), "-m", "m"],
    "fit: all judgments": lambda at: [
        *("fit", votes(at, 3000, 20, 1_500_000), "-f", features(at, 3000, 20, 60), "-m", "m"),
        *("--structure", "log-odds", "--order", "all"),
    ],
    "fit: forest": lambda at: [
        *("fit", votes(at, 300, 20, 100_000), "-f", features(at, 300, 20, 20), "-m", "m", "--structure", "log-odds"),
        *("--order", "all", "--regressor", "random-forest"),
    ],
    "audit: rankings": lambda at: ["audit", _lists(at, 30_000, 40, 8), "-o", "out.json"],
    "audit: fragility": lambda at: [
        *("audit", votes(at, 1, 60, 60_000, 300), "--cluster", "worker", "--fragility", "--replicates", "0"),
        *("-o", "out.json"),
    ],
    "report: 60 queries": lambda at: ["report", votes(at, 60, 20, 200_000), "-o", "page.html"],
    "report: 100 queries, features": lambda at: [
        *("report", votes(at, 100, 20, 150_000), "-f", features(at, 100, 20, 10), "-o", "page.html")
    ],
    "report: over time": lambda at: ["report", _games(at, 100, 300, 200_000), "--time", "day", "-o", "page.html"],
    "judges: a judge model": lambda at: ["judges", *_people(at, 2_000_000, 400_000)],
    "tree: twelve languages, ages by name": lambda at: [
        *("tree", _named(at, 30, 1_000_000, 5000, 12), "--by", "language", "--by", "age", "--cluster", "worker"),
        *("--max-depth", "3"),
    ],
    "evaluate: two scorers": lambda at: [
        *("evaluate", *_labels(at), "--against", str(at / "s.parquet"), "--metric", "map", "err", "auc")
    ],
    "score: streamed": lambda at: ["score", "-m", _model(at), "-f", features(at, 100_000, 20, 10), "--stream", *OUT],
    "score: abstention": lambda at: [
        *("score", "-m", _model(at), "-f", features(at, 5000, 20, 10), "--abstain", "0.2"),
        *("--judgments", votes(at, 5000, 20, 200_000), *OUT),
    ],
    "card: 1,500 queries": lambda at: [
        *("export", "-m", _model(at), "--card", "card.md", "--log", votes(at, 1500, 20, 300_000)),
        *("-f", features(at, 1500, 20, 10)),
    ],
    "card: 200 items": lambda at: [
        *("export", "-m", _model(at), "--card", "card.md", "--log", votes(at, 1, 200, 600_000)),
        *("-f", features(at, 1, 200, 10)),
    ],
    "card: held out": lambda at: [
        *("export", "-m", _model(at), "--card", "card.md", "--log", votes(at, 5000, 20, 2_000_000), "--no-audit"),
        *("-f", features(at, 5000, 20, 10), "--held-out", votes(_beside(at, "later"), 5000, 20, 1_000_000)),
    ],
    "counterexample": lambda _: ["counterexample", "ranknet", "--items", "5"],
    "demo": lambda _: ["demo", "-o", "demo"],
    **{
        f"reproduce: {name}": lambda _, name=name: ["reproduce", name, "--quick", "--data", str(DATA), "-o", "found"]  # type: ignore[misc]
        for name in ("table1", "fig2", "fig3", "fig4", "images", "abstention")
    },
    "reproduce: consistency": lambda _: ["reproduce", "consistency", "--quick", "-o", "found"],
}  # fmt: skip

"""Long commands that who made the plans of the time left did not choose: ``python -m benchmarks.time_left --others``.

They were chosen from the README and the docs alone, so that what is said of the time left is held against cases on
which no plan was tuned; none ever should be. Their shapes differ from ``benchmarks.long_commands``: popularity by
Zipf's law, ties, uneven queries, texts, grades, packed lines of JSON, lists of different lengths, real data.

``CASES``: name -> function(folder) -> arguments of ``concordant``.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

REAL = Path(os.environ.get("CONCORDANT_SHARED", Path(__file__).parents[2] / "shared" / "data"))
Case = Callable[[Path], list[str]]


def _write(table: dict[str, Any], path: Path) -> str:
    """Write by the ending: .parquet, .csv, .csv.gz or .jsonl.gz."""
    made = pa.table({name: pa.array(values) for name, values in table.items()})
    if path.name.endswith(".parquet"):
        pq.write_table(made, path)
    elif path.name.endswith(".csv"):
        pyarrow.csv.write_csv(made, path)
    elif path.name.endswith(".csv.gz"):
        with pa.output_stream(str(path), compression="gzip") as sink:
            pyarrow.csv.write_csv(made, sink)
    else:
        with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as file:
            names = list(table)
            columns = [made[name].to_pylist() for name in names]
            file.writelines(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in zip(*columns, strict=True))
    return str(path)


def _popular(draw: np.random.Generator, items: int, size: int, power: float) -> np.ndarray:
    weight = 1.0 / np.arange(1, items + 1) ** power
    edges = np.cumsum(weight / weight.sum())
    return np.minimum(np.searchsorted(edges, draw.random(size)), items - 1)


def _names(what: str, number: int) -> np.ndarray:
    """Texts of uneven lengths."""
    return np.array(
        [
            f"{what} {place * 7919 % 10007}{'-instruct' * (place % 3 == 0)}{' (70B)' * (place % 5 == 0)}"
            for place in range(number)
        ]
    )


def _votes(
    path: Path,
    items: int,
    number: int,
    *,
    seed: int = 11,
    queries: int = 1,
    workers: int = 0,
    zipf: float = 0.0,
    tied: float = 0.0,
    spread: float = 1.0,
    words: bool = False,
    uneven: bool = False,
    more: Callable[[np.random.Generator, int], dict[str, Any]] | None = None,
) -> str:
    """Votes on two sides, the winner named by side; popularity, queries and workers by Zipf's law where asked."""
    draw = np.random.default_rng(seed)
    query = _popular(draw, queries, number, 0.8) if uneven else draw.integers(0, queries, number)
    sizes = draw.integers(3, items + 1, queries) if uneven else np.full(queries, items)
    left = np.minimum(_popular(draw, items, number, zipf), items - 1) % sizes[query]
    right = (left + 1 + (_popular(draw, items, number, zipf) % (sizes[query] - 1))) % sizes[query]
    ability = draw.normal(0, spread, (min(queries, 5000), items)) - np.arange(items) / items * spread
    row = query % len(ability)
    wins = draw.random(number) < 1 / (1 + np.exp(ability[row, right] - ability[row, left] - 0.1))
    label = _names("model", items) if words else np.arange(items)
    table: dict[str, Any] = {"left": label[left], "right": label[right]}
    table["winner"] = np.where(draw.random(number) < tied, "tie", np.where(wins, "left", "right"))
    if queries > 1:
        table["query"] = _names("question", queries)[query] if words else query
    if workers:
        table["worker"] = _popular(draw, workers, number, 0.7)
    if more is not None:
        table |= more(draw, number)
    return _write(table, path)


def _properties(path: Path, items: int, width: int, queries: int = 1, words: bool = False, seed: int = 12) -> str:
    """Features of the items, half of them counts."""
    draw = np.random.default_rng(seed)
    label = _names("model", items) if words else np.arange(items)
    table: dict[str, Any] = {"query": np.repeat(np.arange(queries), items)} if queries > 1 else {}
    table |= {"item": np.tile(label, queries)}
    rows = items * queries
    for place in range(width):
        numbers = draw.gamma(2.0, size=rows) if place % 2 else draw.poisson(3.0, rows).astype(float)
        table[f"feature{place}"] = numbers - (place == 0) * np.tile(np.arange(items) / items * 3, queries)
    return _write(table, path)


def _ballots(
    path: Path, items: int, number: int, least: int, most: int, *, tied: bool = False, queries: int = 1
) -> str:
    """Rankings of ``least`` to ``most`` items, some with ties, popular items more often."""
    draw = np.random.default_rng(13)
    size = draw.integers(least, most + 1, number)
    key = draw.gumbel(size=(number, items)) - 0.8 * np.log(np.arange(1, items + 1))
    chosen = np.argsort(-key, axis=1)[:, :most]
    worth = np.argsort(np.argsort(-(draw.gumbel(size=(number, most)) - chosen / items * 2), axis=1), axis=1)
    keep = np.arange(most) < size[:, None]
    if tied:
        worth = worth // 2
    table = {"judgment": np.repeat(np.arange(number), size), "item": chosen[keep], "rank": worth[keep] + 1}
    if queries > 1:
        table["query"] = np.repeat(draw.integers(0, queries, number), size)
    return _write(table, path)


def _shown(path: Path, queries: int, items: int, number: int, length: int, *, several: bool = True) -> str:
    """Lists as shown, popular queries far more often, clicks by positions."""
    draw = np.random.default_rng(14)
    query = _popular(draw, queries, number, 0.9)
    base = draw.normal(size=(queries, items))
    order = np.argsort(-(base[query] + 1.5 * draw.gumbel(size=(number, items))), axis=1)[:, :length]
    place = np.arange(1, length + 1)
    chance = 1 / (1 + np.exp(1.0 - np.take_along_axis(base[query], order, axis=1))) / place**0.8
    clicked = draw.random(order.shape) < chance
    if not several:
        clicked &= np.cumsum(clicked, axis=1) == 1
    table = {"query": np.repeat(query, length), "session": np.repeat(np.arange(number), length)}
    table |= {"position": np.tile(place, number), "item": order.ravel(), "clicked": clicked.ravel().astype(int)}
    return _write(table, path)


def _graded(path: Path, items: int, number: int) -> str:
    """Preferences from -3 to 3 by workers."""

    def grade(draw: np.random.Generator, size: int) -> dict[str, Any]:
        return {"strength": np.clip(np.round(draw.normal(0, 1.6, size)), -3, 3).astype(int)}

    draw = np.random.default_rng(15)
    one, other = draw.integers(0, items, number), draw.integers(1, items, number)
    two = (one + other) % items
    worth = np.linspace(0, 2, items)
    value = np.clip(np.round(worth[two] - worth[one] + grade(draw, number)["strength"]), -3, 3).astype(int)
    table = {
        "response1": one,
        "response2": two,
        "overall_preference": value,
        "worker": _popular(draw, 400, number, 0.5),
    }
    return _write(table, path)


def _runs(folder: Path, many: int, queries: int, documents: int) -> list[str]:
    """TREC runs of different lengths, and qrels."""
    draw = np.random.default_rng(16)
    worth = draw.normal(size=(queries, documents * 2))
    paths = []
    for run in range(many):
        lines = []
        for query in range(queries):
            score = worth[query] + draw.normal(0, 1 + run / 5, documents * 2)
            best = np.argsort(-score)[: draw.integers(documents // 4, documents)]
            lines += [f"q{query} Q0 d{item} {place} {score[item]:.4f} run{run}" for place, item in enumerate(best, 1)]
        (folder / f"run{run}.run").write_text("\n".join(lines) + "\n")
        paths.append(str(folder / f"run{run}.run"))
    labels = [
        f"q{query} 0 d{item} {int(worth[query, item] > 1.5) + int(worth[query, item] > 2.2)}"
        for query in range(queries)
        for item in range(0, documents * 2, 3)
    ]
    (folder / "labels.qrels").write_text("\n".join(labels) + "\n")
    return [*paths, "--qrels", str(folder / "labels.qrels")]


def _trials(path: Path, systems: int, tasks: int, trials: int) -> str:
    """Scores in long form, several trials of a task, tasks of families, some missing."""
    draw = np.random.default_rng(17)
    system, task = np.repeat(np.arange(systems), tasks * trials), np.tile(np.repeat(np.arange(tasks), trials), systems)
    score = draw.normal(size=tasks)[task] + system / systems / 3 + draw.normal(0, 1, len(task))
    keep = draw.random(len(task)) > 0.1
    table = {"system": _names("system", systems)[system], "task": np.char.add("task ", task.astype(str))}
    table |= {"family": task % 40, "trial": np.tile(np.arange(trials), systems * tasks), "score": score.round(3)}
    return _write({name: values[keep] for name, values in table.items()}, path)


def _texts(path: Path, prompts: int, number: int) -> str:
    """Votes between answers that are texts, as reward models learn from."""
    draw = np.random.default_rng(18)
    words = np.array(
        [
            "the",
            "a",
            "model",
            "answer",
            "question",
            "why",
            "because",
            "of",
            "rank",
            "order",
            "vote",
            "first",
            "second",
            "better",
            "worse",
            "long",
            "short",
        ]
    )
    answers = [
        " ".join(words[draw.integers(0, len(words), draw.integers(10, 90))]) + f" {place}"
        for place in range(4 * prompts)
    ]
    prompt = _popular(draw, prompts, number, 0.5)
    one = draw.integers(0, 4, number)
    two = (one + draw.integers(1, 4, number)) % 4
    wins = draw.random(number) < 0.5 + 0.1 * (two - one)
    better, worse = np.where(wins, one, two), np.where(wins, two, one)
    table = {
        "prompt": [f"What is meant by number {place}, and why?" for place in prompt],
        "chosen": [answers[4 * at + place] for at, place in zip(prompt, better, strict=True)],
        "rejected": [answers[4 * at + place] for at, place in zip(prompt, worse, strict=True)],
    }
    return _write(table, path)


def _lengths(draw: np.random.Generator, number: int) -> dict[str, Any]:
    return {"length_a": draw.poisson(200, number), "length_b": draw.poisson(200, number)}


def _days(draw: np.random.Generator, number: int) -> dict[str, Any]:
    day = np.datetime64("2024-01-01") + np.sort(draw.integers(0, 700, number))
    return {"date": day.astype(str), "price": draw.gamma(2.0, size=number).round(2)}


def _days_and_prompts(draw: np.random.Generator, number: int) -> dict[str, Any]:
    return _days(draw, number) | {"prompt": draw.integers(0, 300, number)}


def _topics(draw: np.random.Generator, number: int) -> dict[str, Any]:
    topic = np.array(["code", "poetry", "law", "cooking", "mathematics", "travel", "medicine"])
    return {
        "topic": topic[_popular(draw, 7, number, 0.6)],
        "turns": draw.geometric(0.4, number),
        "hour": draw.integers(0, 24, number),
    }


def _run(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "concordant", *arguments, "--quiet"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)


def _joined(folder: Path, *names: str) -> str:
    """Real LETOR files, one after another."""
    with (folder / "joined.txt").open("w") as file:
        for name in names:
            file.write((REAL / name).read_text().rstrip("\n") + "\n")
    return str(folder / "joined.txt")


def _sogou(folder: Path) -> str:
    rows = []
    for number, line in enumerate((REAL / "clicks_sogou_clickmodel_wc" / "train_data").read_text().splitlines()):
        query, items, clicks = line.split("\t")[:3]
        for place, (item, click) in enumerate(zip(items.split(), clicks.split(), strict=True), 1):
            rows.append((query, number, place, item, int(click)))
    names = ["query", "session", "position", "item", "clicked"]
    return _write(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)), folder / "sogou.csv")


def _films(folder: Path) -> str:
    """Ratings of MovieLens-100K of the films that were rated often, a table with a head."""
    lines = [line.split("\t") for line in (REAL / "ml-100k" / "u.data").read_text().splitlines()]
    user, film, rating, _ = (np.array(column) for column in zip(*lines, strict=True))
    often = np.bincount(film.astype(int)) >= 60
    some = often[film.astype(int)]
    return _write({"user": user[some], "film": film[some], "rating": rating[some].astype(int)}, folder / "films.csv")


def _boosted(folder: Path, width: int) -> str:
    log = _votes(folder / "learn.parquet", 15, 30_000, queries=120, seed=21)
    rows = _properties(folder / "learn-features.parquet", 15, width, 120)
    _run("fit", log, "-f", rows, "-m", str(folder / "model"), "--regressor", "boosted")
    return str(folder / "model")


def _linear(folder: Path, width: int, items: int = 25, queries: int = 80) -> str:
    log = _votes(folder / "learn.parquet", items, 30_000, queries=queries, seed=22)
    rows = _properties(folder / "learn-features.parquet", items, width, queries)
    _run("fit", log, "-f", rows, "-m", str(folder / "model"), "--structure", "log-odds", "--order", "all")
    return str(folder / "model")


def _many_files(folder: Path, files: int, rows: int) -> str:
    (folder / "lake").mkdir()
    for day in range(files):
        at = folder / "lake" / f"day=2026-01-{day + 1:02}"
        at.mkdir()
        _votes(at / "votes.csv", 80, rows, seed=day, queries=300, workers=900, zipf=0.7, tied=0.15)
    return str(folder / "lake")


def _ranked(folder: Path, log: str) -> str:
    _run("rank", log, "--interval", "none", "-o", str(folder / "before.parquet"))
    return str(folder / "before.parquet")


def _later(folder: Path, log: Callable[[Path], str], then: Callable[[str], list[str]]) -> list[str]:
    return then(log(folder))


FOOTBALL = str(REAL / "international_football" / "results.csv")
VOTES = str(REAL / "llmfao" / "crowd-comparisons.csv")
ARENA = REAL / "arena_judges"
OUT = ["-o", "out.csv"]

CASES: dict[str, Case] = {
    # ---- real data
    "real: football, moving, home, Davidson": lambda _: [
        *("rank", FOOTBALL, "--home", "--neutral", "neutral", "--ties", "davidson", "--time", "date", "--moving", *OUT)
    ],
    "real: football, held out by time": lambda _: [
        *("evaluate", FOOTBALL, "--home", "--neutral", "neutral", "--split", "time", "--time", "date", "--folds", "60")
    ],
    "real: football, all pairs compared": lambda _: [
        "compare", FOOTBALL, "--cluster", "tournament", "--home", "-o", "out.parquet",
    ],
    "real: language models, audit by prompt": lambda _: [
        *("audit", VOTES, "--query", "prompt", "--cluster", "worker", "--replicates", "250", "-o", "out.json")
    ],
    "real: language models, camps": lambda _: [
        "camps", VOTES, "--judge", "worker", "--most", "3", "--folds", "4", *OUT,
    ],
    "real: arena, report with a judge model": lambda _: [
        *("report", str(ARENA / "human.jsonl.gz"), "--model-judge", str(ARENA / "gpt-4-0125-preview.jsonl.gz")),
        *("--match", "question_id", "-o", "page.html"),
    ],
    "real: MSLR, boosted, validated": lambda _: [
        *("fit", str(REAL / "mslr" / "mslr_merged_by_query.svm.gz"), "-m", "m", "--regressor", "boosted"),
        *("--target", "ndcg@5", "--validate", "0.25"),
    ],
    "real: MQ2008, lists": lambda at: [
        *("fit", _joined(at, "mq2008/S1.txt", "mq2008/S2.txt", "mq2008/S4.txt"), "-m", "m", "--target", "err@10")
    ],
    "real: ClueWeb09, NDCG by pairs": lambda at: [
        *("fit", _joined(at, "clueweb09_webis/Fold1.test.txt", "clueweb09_webis/Fold3.test.txt"), "-m", "m"),
        *("--loss", "ndcg-pairwise", "--log-features"),
    ],
    "real: search clicks, audit": lambda at: ["audit", _sogou(at), "--replicates", "100", "-o", "out.json"],
    "real: film ratings": lambda at: [
        *("rank", _films(at), "--kind", "ratings", "--judgment", "user", "--item", "film", "--rating", "rating", *OUT)
    ],
    "real: sushi, Kemeny": lambda _: [
        *("rank", str(REAL / "preflib" / "00014_sushi" / "00014-00000002.soi"), "--structure", "kemeny"),
        *("--interval", "bootstrap", "--replicates", "100", *OUT),
    ],
    # ---- rank
    "rank: popular items, texts, CSV, workers, Davidson": lambda at: [
        *("rank", _votes(at / "v.csv", 700, 2_200_000, workers=4000, zipf=1.1, tied=0.25, words=True)),
        *("--ties", "davidson", "--cluster", "worker", *OUT),
    ],
    "rank: uneven queries, eigenvector, bootstrap": lambda at: [
        *("rank", _votes(at / "v.parquet", 30, 150_000, queries=700, uneven=True, tied=0.1)),
        *("--structure", "eigenvector", "--interval", "bootstrap", "--replicates", "150", *OUT),
    ],
    "rank: Thurstone and Mosteller, bootstrap of workers": lambda at: [
        *("rank", _votes(at / "v.csv", 90, 200_000, workers=600, zipf=0.5), "--structure", "thurstone-mosteller"),
        *("--cluster", "worker", "--interval", "bootstrap", "--replicates", "1500", *OUT),
    ],
    "rank: ballots of two to fifteen": lambda at: [
        *("rank", _ballots(at / "b.csv", 90, 60_000, 2, 15, tied=True), "--structure", "plackett-luce", *OUT)
    ],
    "rank: prior by the data, quasi errors, statistics": lambda at: [
        *("rank", _votes(at / "v.parquet", 490, 1_200_000, zipf=0.9, tied=0.1), "--prior", "auto", "--quasi"),
        *("--statistics", "--home", *OUT),
    ],
    "rank: grades with thresholds": lambda at: [
        *("rank", _graded(at / "g.parquet", 150, 900_000), "--left", "response1", "--right", "response2"),
        *("--scale", "-3:3", "--ties", "cumulative", "--cluster", "worker", *OUT),
    ],
    "rank: workers and prompts, price": lambda at: [
        "rank",
        _votes(at / "v.jsonl.gz", 120, 400_000, workers=700, more=_days_and_prompts),
        *("--cluster", "worker", "--cluster", "prompt", "--covariate", "price", "--home", *OUT),
    ],
    "rank: fusion of runs": lambda at: ["rank", *_runs(at, 14, 900, 200), "-o", "fused.run"],
    "rank: clicks by position, CSV": lambda at: [
        *("rank", _shown(at / "c.csv", 3000, 16, 120_000, 8), "--structure", "position-based"),
        *("--positions", "p.csv", *OUT),
    ],
    "rank: 60,000 small queries, text": lambda at: [
        *("rank", _votes(at / "v.csv.gz", 6, 900_000, queries=60_000, tied=0.1, words=True), *OUT)
    ],
    "rank: moving by dates, popular items": lambda at: [
        *("rank", _votes(at / "v.csv", 250, 250_000, zipf=0.6, more=_days)),
        *("--time", "date", "--moving", "--paths", "p.parquet", *OUT),
    ],
    # ---- others
    "compare: tiers of 500 items": lambda at: [
        "compare", _votes(at / "v.parquet", 500, 1_000_000, zipf=0.6), "--ranks", "tiers",
    ],
    "compare: topics apart": lambda at: [
        *("compare", _votes(at / "v.csv", 160, 2_000_000, workers=3000, more=_topics), "--by", "topic", "--values"),
        *("code", "law"),
        *("--cluster", "worker"),
    ],
    "explain: home, workers": lambda at: [
        *("explain", _votes(at / "v.parquet", 170, 450_000, workers=500, zipf=0.8, tied=0.1), "--home", "--cluster"),
        "worker",
        *("-f", _properties(at / "f.csv", 170, 7), *OUT),
    ],
    "tree: topics, turns and hours": lambda at: [
        *("tree", _votes(at / "v.csv", 24, 700_000, workers=2500, tied=0.2, more=_topics), "--by", "topic", "--by"),
        "turns",
        *("--by", "hour", "--cluster", "worker"),
    ],
    "camps: features, queries": lambda at: [
        *("camps", _votes(at / "v.parquet", 12, 40_000, queries=60, workers=250), "--judge", "worker"),
        *("-f", _properties(at / "f.parquet", 12, 6, 60), "--most", "3", "-o", "out.json"),
    ],
    "judges: lengths, popular items": lambda at: [
        *("judges", _votes(at / "v.csv", 90, 250_000, workers=800, zipf=0.9, tied=0.2, words=True, more=_lengths)),
        *("--judge", "worker", "--length", "length_a", "length_b", "--ranking", "r.csv", *OUT),
    ],
    "pairs: answers as texts": lambda at: ["pairs", _texts(at / "t.jsonl.gz", 20_000, 250_000), "-o", "pairs.jsonl"],
    "look: direct, 4,000 queries": lambda at: [
        *("look", _votes(at / "v.csv", 30, 1_500_000, queries=4000, uneven=True), "--direct", "--top", "3", *OUT)
    ],
    "axioms: scores of a table": lambda at: _later(
        at,
        lambda at: _votes(at / "v.parquet", 25, 550_000, queries=2000, workers=1200, zipf=0.5),
        lambda log: ["axioms", log, _ranked(at, log), "--cluster", "worker", "-o", "out.json"],
    ),
    "scores: trials, families, win rate": lambda at: [
        *("scores", _trials(at / "s.csv", 300, 1500, 5), "--cluster", "family"),
        *("--by", "win-rate", "--pairs", "p.csv", *OUT),
    ],
    "evaluate: whole workers held out, ties": lambda at: [
        *("evaluate", _votes(at / "v.csv", 120, 400_000, workers=700, zipf=0.9, tied=0.2), "--split", "cluster"),
        *("--cluster", "worker", "--ties", "davidson", "--folds", "4"),
    ],
    "score: trees, text": lambda at: [
        *("score", "-m", _boosted(at, 18), "-f", _properties(at / "f.csv", 15, 18, 40_000), *OUT)
    ],
    "export: card of lists": lambda at: [
        *("export", "-m", _linear(at, 12), "--card", "card.md", "--log"),
        _votes(at / "v.csv", 25, 250_000, queries=700, zipf=0.4),
        *("-f", _properties(at / "f.csv", 25, 12, 700)),
    ],
    "ingest: a lake of CSV, workers, queries": lambda at: [
        *("ingest", _many_files(at, 10, 400_000), "--store", "s.store", "--cluster", "worker", "--query", "query")
    ],
    "doctor: packed lines of JSON": lambda at: [
        *("doctor", _votes(at / "v.jsonl.gz", 300, 700_000, queries=5000, workers=900, zipf=1.0, words=True, tied=0.2))
    ],
    # ---- fit, audit, report
    "fit: stochastic": lambda at: [
        *("fit", _votes(at / "v.parquet", 30, 600_000, queries=400), "-f", _properties(at / "f.parquet", 30, 30, 400)),
        *("-m", "m", "--loss", "ranknet", "--solver", "stochastic", "--ridge", "0.01", "--steps", "400000"),
    ],
    "fit: gradient boosting of scikit-learn": lambda at: [
        *("fit", _votes(at / "v.parquet", 40, 300_000, queries=250, workers=300), "-f"),
        _properties(at / "f.parquet", 40, 12, 250),
        *("-m", "m", "--regressor", "hist-gradient-boosting", "--cluster", "worker", "--target", "ndcg@10"),
    ],
    "fit: ballots, ndcg": lambda at: [
        *("fit", _ballots(at / "b.parquet", 30, 40_000, 3, 9, queries=250), "-f"),
        _properties(at / "f.parquet", 30, 14, 250),
        *("-m", "m", "--target", "ndcg@5"),
    ],
    "fit: first clicks, cascade": lambda at: [
        *("fit", _shown(at / "c.csv", 900, 14, 90_000, 8, several=False)),
        *("-f", _properties(at / "f.csv", 14, 16, 900), "-m", "m"),
    ],
    "audit: ndcg of uneven queries": lambda at: [
        *("audit", _votes(at / "v.csv", 20, 250_000, queries=800, uneven=True, tied=0.1), "--target", "ndcg@10"),
        *("--replicates", "100", "-o", "out.json"),
    ],
    "audit: popular items, ties": lambda at: [
        *("audit", _votes(at / "v.jsonl.gz", 150, 200_000, zipf=1.0, tied=0.3, spread=0.3, words=True)),
        *("--replicates", "500", "--edges", "e.csv"),
    ],
    "report: ballots, queries": lambda at: [
        "report", _ballots(at / "b.csv", 20, 25_000, 2, 8, queries=30), "-o", "page.html",
    ],
    "report: popular items, workers, lengths": lambda at: [
        *("report", _votes(at / "v.csv", 80, 150_000, workers=400, zipf=0.9, tied=0.2, words=True, more=_days)),
        *("--cluster", "worker"),
        *("--covariate", "price", "--home", "-o", "page.html"),
    ],
}  # fmt: skip

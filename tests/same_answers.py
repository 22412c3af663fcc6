"""Does the package still give the same answers? A fixed list of commands and calls on data that ship with it.

    python tests/same_answers.py record DIR     writes what each of them answers
    python tests/same_answers.py compare DIR    runs them again; says what differs and exits with 1 where anything does

Run ``record`` before a change that must not change any number, ``compare`` after it, on the same machine with the same
packages. DIR gets one JSON file for each group of entries: short answers in full, long ones as a SHA-256 with their
first and last lines, and the whole texts beside in ``whole/``. What may differ between two runs stands in VARIES.

Only what users see is asked: the command, and ``import concordant as cc``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import itertools
import json
import os
import pickle
import re
import runpy
import shlex
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")  # sums in one order on every machine, and no spinning on a busy one

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.csv  # noqa: E402
import pyarrow.feather  # noqa: E402
import pyarrow.parquet  # noqa: E402

import concordant as cc  # noqa: E402

HERE = Path(__file__).resolve().parent
PACKAGE = Path(str(cc.__file__)).resolve().parent
FIXED = {"COLUMNS": "100", "LINES": "50", "NO_COLOR": "1", "TERM": "xterm", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
QUERIES = 12
"""Queries of the learning data that are used: enough to learn from, few enough to be quick."""

# -- what may differ between two runs ---------------------------------------------------------------------------------
VARIES: tuple[tuple[str, str], ...] = (
    (r"\S*/(?:concordant|site-packages)/\S+\.py:\d+(?=: \w*Warning)", "<file>"),
    (re.escape(str(HERE.parent)), "<repository>"),
    (r"/\S*/same-answers-[^/\s\"']+", "<folder>"),
    (r"\.concordant-[0-9a-f]{12}", "<temporary>"),
    (r"(?<![\d.])" + re.escape(cc.__version__) + r"(?![\d.])", "<version>"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?", "<time>"),
    (r"\b\d+(\.\d+)? (ms|s|seconds)\b", "<duration>"),
    (r"(?<=\.html: )[\d.]+ MB", "<size>"),
    (r"(segment-\d+)-[0-9a-f]+", r"\1"),
    (r"\x1b\[[0-9;]*m", ""),
    (r'("(?:seconds|elapsed)": ?)[0-9.e+-]+', r"\1<duration>"),
)
"""Patterns, and what stands in their place: paths, temporary names, the version, times of day, durations, the size of a
page, the random part of a segment's name, colours."""


def settled(text: str) -> str:
    """Return the text without what may differ."""
    for pattern, instead in VARIES:
        text = re.sub(pattern, instead, text)
    return text


# -- the data ----------------------------------------------------------------------------------------------------------
def prepare(folder: Path) -> None:
    """Lay the data out in a folder: what ships, under short names, and small logs of other kinds made of it."""
    votes = next(PACKAGE.glob("**/llmfao/crowd-comparisons.csv"))
    shutil.copy(votes, folder / "votes.csv")
    shutil.copy(votes.with_name("gpt4-crowd-comparisons.csv"), folder / "gpt4.csv")
    for name in ("food", "simple", "chatbot_arena"):
        shutil.copy(HERE / "data" / "evalica" / f"{name}.csv", folder)
    shutil.copy(next((HERE / "data" / "international_football").glob("*.csv.gz")), folder / "results.csv.gz")
    documents = {name: _letor(HERE / "data" / "clueweb09" / f"{name}.txt.gz") for name in ("train", "test")}
    for name, rows in documents.items():
        (folder / f"{name}.txt").write_text("".join(line for *_, line in rows))
        table = _features(rows)
        pa.csv.write_csv(table, folder / f"{name}.csv")
        pa.parquet.write_table(table, folder / f"{name}.parquet")
    (folder / "few.txt").write_text("".join(line for *_, line in documents["train"][:180]))
    (folder / "test.qrels").write_text("".join(f"{q} 0 {item} {label}\n" for q, item, label, _ in documents["test"]))
    kept = {query for query, *_ in documents["train"]}
    with gzip.open(HERE / "data" / "clueweb09" / "votes.csv.gz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["query"] in kept]
    _write(folder / "pairs.csv", [row for at, row in enumerate(rows) if at % 5])
    _write(folder / "held-out.csv", rows[::5])
    _write(folder / "monday.csv", rows[:800])
    _write(folder / "tuesday.csv", rows[800:1400])
    _clicks(folder, documents["train"])
    _orders(folder)
    cells = [(a, b) for a in range(6) for b in range(15) if (a + b) % 11]
    _write(
        folder / "systems.csv",
        [
            {"system": f"s{a}", "task": f"t{b}", "score": (7 * a * a + 3 * b) % 10 + 2 * a, "weight": 1 + b % 2}
            for a, b in cells
        ],
    )
    with open(folder / "votes.csv") as file:
        models = sorted({row[side] for row in csv.DictReader(file) for side in ("left", "right")})
    sizes = [{"item": name, "size": found[1]} for name in models if (found := re.search(r"(\d+)B", name))]
    _write(folder / "sizes.csv", sizes)
    text = (folder / "food.csv").read_text().splitlines()
    (folder / "broken.csv").write_text("\n".join([*text[:5], "Pizza,Sushi,nobody", "Pizza,,left", *text[5:]]) + "\n")


def _letor(path: Path) -> list[tuple[str, str, int, str]]:
    """Return (query, item, label, line) of the rows of the first queries of a LETOR file."""
    rows, seen = [], dict[str, int]()
    with gzip.open(path, "rt") as file:
        for line in file:
            label, query = line.split()[:2]
            query = query.removeprefix("qid:")
            if len(seen) == QUERIES and query not in seen:
                break
            seen[query] = seen.get(query, 0) + 1
            named = re.search(r"#.*?(clueweb09-\S+)", line)
            rows.append((query, named[1] if named else str(seen[query]), int(label), line))
    return rows


def _features(rows: list[tuple[str, str, int, str]]) -> pa.Table:
    values = [dict(part.split(":") for part in line.partition("#")[0].split()[2:]) for *_, line in rows]
    columns = {f"f{name}": [float(row[name]) for row in values] for name in values[0]}
    return pa.table({"query": [row[0] for row in rows], "item": [row[1] for row in rows], **columns})


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    with open(path, "w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def _clicks(folder: Path, rows: list[tuple[str, str, int, str]]) -> None:
    """Lists of eight documents, of which the first relevant one is clicked; in a few lists two are."""
    shown: list[dict[str, Any]] = []
    for query, group in itertools.groupby(rows, lambda row: row[0]):
        mine = list(group)
        for session in range(20):
            some = [mine[(7 * session + 11 * place) % len(mine)] for place in range(8)]
            some = list({row[1]: row for row in some}.values())
            liked = [place for place, row in enumerate(some) if row[2] > 0][: 2 if session == 3 else 1]
            shown += [
                {"query": query, "session": f"{query}-{session}", "position": place + 1, "item": row[1],
                 "clicked": int(place in liked)}
                for place, row in enumerate(some)
            ]  # fmt: skip
    _write(folder / "clicks.csv", shown)
    clicks: dict[str, int] = {}
    for row in shown:
        clicks[row["session"]] = clicks.get(row["session"], 0) + row["clicked"]
    names = ("query", "session", "item", "clicked")
    _write(folder / "choices.csv", [{n: row[n] for n in names} for row in shown if clicks[row["session"]] == 1])


def _orders(folder: Path) -> None:
    """Each prompt orders the first eight models by their wins on it: PrefLib's orders with ties, and a table."""
    wins: dict[str, dict[str, float]] = {}
    with open(folder / "votes.csv") as file:
        for row in csv.DictReader(file):
            mine = wins.setdefault(row["prompt"], {})
            for side in ("left", "right"):
                won = 0.5 if row["winner"] == "tie" else float(row["winner"] == side)
                mine[row[side]] = mine.get(row[side], 0.0) + won
    models = sorted({model for mine in wins.values() for model in mine})[:8]
    lines, table = [], []
    for prompt, mine in sorted(wins.items()):
        score = {model: mine[model] for model in models if model in mine}
        places = sorted(set(score.values()), reverse=True)
        groups = [[model for model in score if score[model] == value] for value in places]
        numbers = [[str(models.index(model) + 1) for model in group] for group in groups]
        lines.append(",".join(g[0] if len(g) == 1 else "{" + ",".join(g) + "}" for g in numbers))
        table += [
            {"judgment": prompt, "item": model, "rank": places.index(value) + 1} for model, value in score.items()
        ]
    head = ["# FILE NAME: orders.toi", "# DATA TYPE: toi", f"# NUMBER ALTERNATIVES: {len(models)}"]
    head += [f"# NUMBER VOTERS: {len(lines)}", f"# NUMBER UNIQUE ORDERS: {len(set(lines))}"]
    head += [f"# ALTERNATIVE NAME {number}: {model}" for number, model in enumerate(models, 1)]
    counted = [f"{lines.count(line)}: {line}" for line in dict.fromkeys(lines)]
    (folder / "orders.toi").write_text("\n".join([*head, *counted]) + "\n")
    _write(folder / "orders.csv", table)


# -- the commands ------------------------------------------------------------------------------------------------------
COMMANDS: dict[str, dict[str, str]] = {
    "doctor": {"votes": "doctor votes.csv --json -o seen.json", "pairs": "doctor pairs.csv", "nothing": "doctor x.png"},
    "compare": {
        "pairs": "compare votes.csv --cluster worker --pair 'GPT 4' command --pair command 'Code Llama Instruct (7B)'",
        "differences": "compare food.csv --prior 0 -o differences.csv",
        "ranks": "compare food.csv --ranks together --interval bootstrap --replicates 60",
        "tiers": "compare pairs.csv --pool --ranks tiers",
        "top": "compare food.csv --top 2 -o top.json",
        "unknown": "compare food.csv --pair a b",
        "prompts": "compare votes.csv --by prompt --values 2 10 --cluster worker --fail-if-worse 'Dolly v2 (3B)'",
    },
    "look": {
        "first": "look votes.csv --ask 50 -o look.json",
        "ranks": "look food.csv --ranks --direct",
        "orders": "look pairs.csv --pool --top 2",
    },
    "pairs": {
        "votes": "pairs votes.csv -o pairs.jsonl",
        "level": "pairs pairs.csv --level -o pairs.parquet",
    },
    "tree": {
        "prompts": "tree votes.csv --by prompt --cluster worker --max-depth 1 --picture tree.svg -o tree.json",
        "neutral": "tree results.csv.gz --by neutral --by date --min-judgments 900 --max-depth 1",
    },
    "scores": {
        "rankers": "scores systems.csv --by win-rate --pairs two.csv --averages ways.csv --plot p.svg -o all.json",
    },
    "judges": {
        "workers": "judges votes.csv --ranking ranking.csv --per-vote per-vote.csv -o judges.csv",
        "model": "judges votes.csv --model-judge gpt4.csv --id id",
    },
    "camps": {
        "two": "camps votes.csv --number 2 --prior 1 --members members.csv -o camps.json",
    },
    "rank": {
        "two-sides": "rank simple.csv",
        "leaderboard": "rank votes.csv",
        "by-prompt": "rank votes.csv --query prompt --cluster worker -o by-prompt.csv",
        "half-life": "rank results.csv.gz --home --time date --half-life 1y --at 2025-12-31 -o half-life.csv",
        "moving": "rank results.csv.gz --home --time date --moving --prior 0.3 --drift 0.02 --paths paths.csv",
        "davidson-at-home": "rank results.csv.gz --home --neutral neutral --ties davidson --quasi",
        "log-odds": "rank gpt4.csv --query prompt --structure log-odds -o log-odds.jsonl",
        "thurstone-mosteller": "rank food.csv --structure thurstone-mosteller",
        "borda": "rank gpt4.csv --structure borda -o borda.parquet",
        "budgeted-borda": "rank pairs.csv --structure budgeted-borda -o budgeted-borda.arrow",
        "eigenvector": "rank food.csv --structure eigenvector",
        "counting": "rank votes.csv --structure counting --engine memory -o counting.tsv",
        "plackett-luce": "rank orders.toi --structure plackett-luce",
        "orders-by-borda": "rank orders.csv --kind orders --structure borda --interval bootstrap --replicates 40",
        "cascade": "rank clicks.csv --structure cascade --clicks first -o cascade.csv",
        "two-clicks": "rank clicks.csv",
        "choices": "rank choices.csv --kind choices --interval none -o choices-ranked.csv",
        "labels": "rank train.txt --kind ratings --structure borda --interval none -o by-label.csv",
        "bootstrap": "rank food.csv --interval bootstrap --replicates 40 --seed 3 --level 0.9 -o food.json",
        "sandwich": "rank votes.csv --cluster worker --interval sandwich --level 0.8 --quiet",
        "pool": "rank pairs.csv --pool --across-components --interval none -o pooled.csv",
        "no-prior": "rank food.csv --prior 0 --ties half",
        "no-maximum": "rank pairs.csv --prior 0",
        "named-columns": "rank gpt4.csv --left model_x --right model_y --outcome winner --interval none -q",
        "not-a-log": "rank chatbot_arena.csv",
        "broken-rows": "rank broken.csv",
        "broken-rows-left-out": "rank broken.csv --on-error skip",
        "said-as-json": "rank food.csv --log-format json",
        "summary": "rank results.csv.gz --home --neutral neutral --ties davidson --statistics",
    },
    "store": {
        "ingest": "ingest monday.csv tuesday.csv --store pairs.store",
        "ingest-again": "ingest tuesday.csv --store pairs.store",
        "info": "store info pairs.store",
        "batches": "store info pairs.store --batches -o batches.json",
        "verify": "store verify pairs.store",
        "rank": "rank pairs.store --interval none -o from-store.csv",
        "compact": "store compact pairs.store",
        "export": "store export pairs.store -o from-store.parquet",
        "ingest-clusters": "ingest votes.csv --store votes.store --query prompt --cluster worker",
        "rank-clusters": "rank votes.store --pool",
        "days": "store day votes.store 2026-01-31 --number 1",
        "rank-day": "rank votes.store --pool --as-of 2026-01-31",
        "list": "store batches pairs.store -o list.json",
        "backup": "store backup pairs.store copy.store",
        "replace": "store replace pairs.store tuesday.csv --batch monday.csv",
        "remove": "store remove pairs.store --number 1",
        "forget": "store forget votes.store --cluster nobody",
        "restore": "store restore pairs.store copy.store",
    },
    "fit": {
        "default": "fit pairs.csv --features train.csv --model default",
        "log-odds-auto": "fit pairs.csv -f train.parquet -m log-odds --structure log-odds --order auto --folds 2",
        "not-informed": "fit pairs.csv -f train.csv -m not-informed --not-informed --order 20 --subsets 4",
        "streamed": "fit pairs.csv -f train.parquet -m streamed --structure log-odds --order all --stream",
        "difference-graph": "fit pairs.csv -f train.csv -m difference-graph --loss difference-graph --phi hinge",
        "linear": "fit pairs.csv -f train.csv -m linear --loss linear --log-features",
        "ndcg-pairwise": "fit pairs.csv -f train.csv -m ndcg-pairwise --loss ndcg-pairwise",
        "err-pairwise": "fit pairs.csv -f train.csv -m err-pairwise --loss err-pairwise",
        "ranksvm": "fit pairs.csv -f train.csv -m ranksvm --loss ranksvm --ridge 0.01",
        "ranknet": "fit pairs.csv -f train.csv -m ranknet --loss ranknet",
        "rankboost": "fit pairs.csv -f train.csv -m rankboost --loss rankboost",
        "margin-based": "fit pairs.csv -f train.csv -m margin-based --loss margin-based --phi squared-hinge",
        "labels": "fit train.txt --model labels",
        "boosted": "fit train.txt --model boosted -r boosted --regressor-options rounds=10 --validate 0.2",
        "clicks": "fit clicks.csv -f train.csv -m clicks --structure cascade --clicks first --order all",
        "trees": "fit pairs.csv -f train.csv -m trees -r hist-gradient-boosting --structure log-odds --order all",
        "forest": "fit few.txt -m forest -r random-forest",
        "lightgbm": "fit few.txt -m lightgbm -r lightgbm",
        "xgboost": "fit few.txt -m xgboost -r xgboost",
        "network": "fit train.txt -m network -r network",
        "no-features": "fit pairs.csv --model nothing",
    },
    "score": {
        "plain": "score --model default --features test.csv -o scores.csv",
        "letor": "score --model labels --features test.txt -o by-labels.parquet",
        "streamed": "score --model log-odds --features test.parquet --stream -o streamed.csv",
        "trees": "score --model trees --features test.csv -o by-trees.csv",
        "forest": "score -m forest -f test.txt -o by-forest.csv",
        "abstain": "score -m labels -f test.txt --abstain 0.3 --judgments train.txt --judged-features train.txt"
        " -o tiers.csv",
        "abstain-by-risk": "score -m ranknet -f test.csv --abstain 0.45 --abstain-by risk --judgments held-out.csv"
        " --judged-features train.csv -o risk-tiers.csv",
        "gamma": "score -m ranknet -f test.csv --abstain 0.2 --gamma 0.5 --norm 2 -o gamma-tiers.csv",
    },
    "evaluate": {
        "metrics": "evaluate by-labels.parquet test.txt --metric ndcg@10 map err@10 precision@5 reciprocal-rank auc"
        " kendall-tau pairwise-loss",
        "per-query": "evaluate by-labels.parquet test.txt --metric ndcg@5 err --per-query",
        "trec": "evaluate scores.csv test.qrels --metric ndcg@10 map --convention trec",
        "sklearn": "evaluate by-labels.parquet test.txt --convention sklearn",
        "xgboost": "evaluate by-labels.parquet test.txt --metric ndcg@3 map --convention xgboost",
        "lightgbm": "evaluate by-labels.parquet test.txt --metric ndcg map --convention lightgbm",
        "letor4": "evaluate by-labels.parquet test.txt --metric ndcg@10 map --convention letor4",
        "against": "evaluate by-labels.parquet test.txt --against by-forest.csv --metric ndcg@10",
        "unmatched": "evaluate scores.csv held-out.csv",
        "held-out votes": "evaluate food.json food.csv",
        "split": "evaluate votes.csv --split random --folds 3 --cluster worker",
        "split by time": "evaluate results.csv.gz --split time --time date --home --neutral neutral --ties davidson",
    },
    "explain": {
        "random effects": "explain votes.csv --features sizes.csv --cluster worker --abilities abilities.csv",
        "no effects": "explain votes.csv --features sizes.csv --effects none",
    },
    "audit": {
        "food": "audit food.csv --top 2 -o food-audit.json --edges edges.csv",
        "by-prompt": "audit gpt4.csv --query prompt --surrogate ranknet --surrogate difference-graph:hinge"
        " --replicates 0",
        "exact": "audit orders.toi --exact --replicates 20 --surrogate linear --ties paper",
        "fragility": "audit votes.csv --fragility --top 3 --replicates 0 --surrogate linear -o fragile.json",
    },
    "counterexample": {
        "ranknet": "counterexample ranknet -o against-ranknet",
        "four-items": "counterexample ranksvm --items 4 --within acyclic --votes 200 --budget 200",
        "theorem-3": "counterexample theorem-3",
    },
    "axioms": {
        "ranking": "axioms votes.csv counting.tsv --cluster worker -o axioms.json",
        "model": "axioms pairs.csv ranknet -f train.csv --refits 1 -o axioms.csv",
    },
    "report": {
        "food": "report food.csv -o food.html",
        "learned": "report pairs.csv -f train.csv -m ranknet --no-audit --interval none -o learned.html --title Pairs",
        "clusters": "report votes.csv --cluster worker --no-audit --interval hessian -o clusters.html",
    },
    "export": {
        "onnx": "export -m default --to onnx -o default.onnx",
        "onnx-trees": "export -m trees --to onnx -o trees.onnx",
        "elasticsearch": "export -m ranknet --to elasticsearch -o elasticsearch.json --name documents",
        "opensearch": "export -m boosted --to opensearch -o opensearch.json",
        "solr": "export -m trees --to solr -o solr.json",
        "json": "export -m difference-graph --to json -o plain.json",
        "card": "export -m default --card CARD.md --log pairs.csv -f train.csv --held-out held-out.csv --license mit",
        "card-of-labels": "export -m labels --card LABELS.md --labels test.txt --name documents",
    },
    "reproduce": {"consistency": "reproduce consistency --quick -o again --quiet"},
    "terminal": {
        "rank": "rank food.csv",
        "by-query": "rank gpt4.csv --query prompt --rows 2 --interval none",
        "fit": "fit pairs.csv -f train.csv -m curve --structure log-odds --order auto --folds 2",
        "score": "score -m ranknet -f test.csv --abstain 0.2 --gamma 0.4",
        "evaluate": "evaluate by-labels.parquet test.txt --metric ndcg@10 map",
        "audit": "audit food.csv --replicates 0",
        "store": "store info pairs.store",
    },
}
"""By group and name; they run one after another in one folder, and later ones use what earlier ones wrote.

Those of the group "terminal" write to a terminal of 100 columns, the others into a pipe.
"""

LEFT_OUT = {
    "demo": "it runs rank, audit and report on the votes that these commands rank; 25 s",
    "serve": "it answers until it is stopped; its scores are those of score (tests/apps/test_serve.py)",
}
"""Commands that do not run here, and why."""
UNREAD = (".store", ".parts", "hashes.json", ".png", ".svg")
"""Files that are not recorded: a store's own (read through `store`), hashes of files that are recorded, pictures."""


class _Terminal(io.TextIOWrapper):
    """What a program takes for a terminal."""

    def isatty(self) -> bool:
        return True


def run_command(line: str, terminal: bool) -> dict[str, str]:
    """Run a command in this process and return what came out, by name. The process ends after it."""
    before = _files()
    written, told = io.BytesIO(), io.BytesIO()
    out = (_Terminal if terminal else io.TextIOWrapper)(written, "utf-8", write_through=True)
    err = io.TextIOWrapper(told, "utf-8", write_through=True)
    status: Any = 0
    sys.argv = ["concordant", *shlex.split(line)]
    with redirect_stdout(out), redirect_stderr(err):
        try:
            runpy.run_module("concordant", run_name="__main__", alter_sys=False)
        except SystemExit as stop:
            status = stop.code or 0
        except BaseException:
            return {BROKEN: traceback.format_exc()}
    answers = {"status": str(status), "stdout": written.getvalue().decode(), "stderr": told.getvalue().decode()}
    for name, state in sorted(_files().items()):
        if before.get(name) != state and not any(end in name for end in UNREAD):
            answers[f"file {name}"] = readable(Path(name))
    return answers


def _files() -> dict[str, tuple[int, int]]:
    found = (path for path in Path().rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in found}


def readable(path: Path) -> str:
    """Return what a file holds as lines of text."""
    if path.suffix == ".parquet":
        return listed(pa.parquet.read_table(path))
    if path.suffix == ".arrow":
        return listed(pa.feather.read_table(path))
    if path.suffix == ".npy":
        return listed(np.load(path, allow_pickle=False))
    if path.suffix == ".html":
        held = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)
        assert held, f"{path} holds no data"
        return listed(json.loads(held[1]))
    if path.suffix == ".onnx":
        import onnx

        return str(onnx.printer.to_text(onnx.load(path))) + "\n" + hashlib.sha256(_unversioned(path)).hexdigest()
    return path.read_text(encoding="utf-8")


def _unversioned(path: Path) -> bytes:
    return path.read_bytes().replace(cc.__version__.encode(), b"<version>")


# -- the calls ---------------------------------------------------------------------------------------------------------
CALLS: dict[str, dict[str, Callable[[], Any]]] = {}
"""By group and name; each returns numbers, texts, arrays, tables, and lists and dictionaries of these."""


def call(group: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Return what puts a function into the list."""

    def add(function: Callable[[], Any]) -> Callable[[], Any]:
        CALLS.setdefault(group, {})[function.__name__.lstrip("_")] = function
        return function

    return add


@cache
def food() -> Any:
    return cc.read("food.csv")


@cache
def prompts() -> Any:
    return cc.read("gpt4.csv", columns={"query": "prompt"})


@cache
def pairs() -> Any:
    return cc.read("pairs.csv")


@cache
def train() -> Any:
    return cc.read_features("train.csv")


@cache
def graded() -> tuple[Any, Any, Any, Any]:
    """Scores of two kinds for the documents of test.txt, their labels and queries."""
    features, labels = cc.read_judged("test.txt")
    query = np.array(features.queries.tolist())[features.query]
    return features.X[:, 0].round(2), features.X @ np.cos(np.arange(features.X.shape[1])), labels, query


def ranked(board: Any) -> dict[str, Any]:
    return {"rows": board.to_arrow(), "coefficients": dict(board.coefficients), "converged": bool(board.converged)}


def refusal(act: Callable[[], Any]) -> str:
    """Return the class and the words of the error that a call must end with."""
    try:
        act()
    except cc.ConcordantError as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("no error")


@call("preferences")
def comparisons() -> Any:
    votes = cc.Preferences.from_comparisons(
        ["x", "y", "x", "z", "x"], ["y", "x", "y", "x", "z"], ["p", "p", "p", "q", "q"], [1.0, 2.5, 1.0, 0.5, 0.5],
        tie=[False, False, False, True, False], count=[1, 2, 3, 1, 4], cluster=["a", "b", "a", "a", "c"],
        covariates={"length": [0.0, 1.0, 0.0, -1.0, 2.0]},
    )  # fmt: skip
    return {"summary": votes.summary(), "facts": votes.facts, "n": [len(votes), votes.distinct], "count": votes.count}


@call("preferences")
def arithmetic() -> Any:
    one, other = cc.read("monday.csv"), cc.read("tuesday.csv")
    both = one + other
    parts = both.folds(3, seed=5)
    return {
        "equal": [both == other + one, both == parts[2] + parts[0] + parts[1], cc.Preferences.empty() + one == one],
        "both": both.summary(),
        "folds": [part.count for part in parts],
        "one query": both.select(both.queries.tolist()[:1]).summary(),
        "pooled": both.pool().summary(),
    }


@call("preferences")
def other_kinds() -> Any:
    query, lists, item = ["q"] * 6, ["s", "s", "s", "t", "t", "t"], list("abcabd")
    found = {
        "orders": cc.Preferences.from_orders(query, lists, item, [1, 2, 2, 3, 1, 2], cluster=list("uuuvvv")),
        "ratings": cc.Preferences.from_ratings(query, item, [5, 3, 3, 1, 2, 4], lists),
        "selections": cc.Preferences.from_selections(query, lists, [1, 2, 3] * 2, item, [0, 1, 0, 0, 0, 0]),
        "choices": cc.Preferences.from_choices(query, lists, item, [0, 0, 1, 1, 0, 0]),
    }
    return {kind: [one.summary(), one.count, cc.Batch.whole(one).graphs.wins] for kind, one in found.items()}


@call("preferences")
def batch() -> Any:
    whole, drawn = cc.Batch.whole(food()), cc.Batch.subsets(pairs(), 10, 3, seed=2, partition=True)
    assert isinstance(whole, cc.Batch)
    return {
        "whole": [whole.item, whole.judgment, whole.multiplicity, whole.judgments],
        "drawn": [drawn.query, drawn.judgment, drawn.multiplicity, drawn.judgments],
    }


@call("preferences")
def graphs() -> Any:
    found = cc.Graphs.of(cc.Batch.whole(prompts()))
    return [found.first, found.second, found.wins, found.losses, found.ties, found.above, found.per_graph(found.owner)]


@call("reading")
def read() -> Any:
    found = {name: cc.read(name) for name in ("simple.csv", "choices.csv", "orders.csv", "orders.toi")}
    found["clusters"] = cc.read("votes.csv", columns={"query": "prompt"}, cluster="worker", engine="memory")
    found["first clicks"] = cc.read("clicks.csv", clicks="first")
    found["labels"] = cc.read("train.txt", kind="ratings")
    found["home"] = cc.read("results.csv.gz", home="left")
    found["table"] = cc.read({"winner": ["a", "b"], "loser": ["b", "c"]})
    return {name: [one.summary(), one.count] for name, one in found.items()}


@call("reading")
def refused() -> Any:
    assert issubclass(cc.InputError, cc.ConcordantError) and issubclass(cc.UsageError, cc.ConcordantError)
    return {
        "no log": refusal(lambda: cc.read("chatbot_arena.csv")),
        "no file": refusal(lambda: cc.read("nothing.csv")),
        "rows": refusal(lambda: cc.read("broken.csv")),
        "left out": cc.read("broken.csv", on_error="skip").summary(),
        "structure": refusal(lambda: cc.rank(food(), "bradley")),
        "option": refusal(lambda: cc.rank(food(), priors=1.0)),
        "surrogate": refusal(lambda: cc.surrogate("ranknett")),
        "metric": refusal(lambda: cc.ndcg([1.0], [1.0, 2.0])),
    }


@call("reading")
def features() -> Any:
    by_hand = cc.Features.of([[1.0, 2.0], [3.0, np.nan]], ["x", "y"], ["q", "q"], ["a", "b"], missing="keep")
    some = train().take(np.arange(0, 60, 7))
    return {
        "table": [train().names, train().X.sum(axis=0), train().items.tolist()[:3]],
        "some": [some.X, some.items.tolist(), some.where(2)],
        "by hand": [by_hand.X, by_hand.names, by_hand.queries.tolist()],
        "parquet": cc.read_features("train.parquet", names=["f3", "f1"]).X[:5],
    }


@call("reading")
def read_judged() -> Any:
    given, labels = cc.read_judged("test.txt")
    return [given.X.sum(axis=0), labels, given.query, given.items.tolist()[:5], given.names]


@call("reading")
def normaliser() -> Any:
    X = train().X.copy()
    X[::9, 3] = np.nan
    fitted = cc.Normaliser(log=True, missing="median").fit(X, names=train().names)
    again = cc.Normaliser.from_dict(fitted.to_dict())
    return [fitted.to_dict(), fitted.apply(X).sum(axis=0), bool((again.apply(X) == fitted.apply(X)).all())]


@call("reading")
def feature_file() -> Any:
    file = cc.FeatureFile("train.parquet", names=["f5", "f2"])
    return [len(file), file.size, file.names, [[begin, X.sum(axis=0)] for begin, X in file.blocks()], file.column("f5")]


@call("reading")
def judged() -> Any:
    votes = cc.Preferences.from_comparisons(["a", "c", "a"], ["b", "d", "b"], query=["p", "q", "p"])
    mine = cc.Judged.of(votes, query=["p", "p", "q", "q"], item=["a", "b", "c", "d"])
    labelled = cc.Judged.of_labels([2.0, 0.0, 1.0], query=["p", "p", "q"])
    return [mine.shape, mine[[0, 1]].prefs.count, mine.query.tolist(), labelled.item, labelled[2:].labels]


@call("rank")
def structures() -> Any:
    """All of them, by their own options where they have any."""
    names = ("bradley-terry", "plackett-luce", "log-odds", "thurstone-mosteller", "borda", "budgeted-borda")
    names += ("eigenvector", "counting")
    found = {name: cc.structure(name)(cc.Batch.whole(food())) for name in names}
    several = cc.read("clicks.csv")
    for name in ("dependent-click", "position-based"):
        found[name] = cc.structure(name)(cc.Batch.whole(several))
    found["cascade"] = cc.structure("cascade")(cc.Batch.whole(cc.read("clicks.csv", clicks="first")))
    found["smoothed"] = cc.structure("log-odds")(cc.Batch.whole(prompts()), c0=0.5)
    told = {name: [one.value, one.component, one.iterations, one.gradient] for name, one in found.items()}
    return told | {"positions": cc.click_positions(several).to_pydict()}


@call("rank")
def leaderboards() -> Any:
    board = cc.rank(prompts())
    assert type(board) is cc.Ranking
    votes = cc.read("votes.csv", cluster="worker")
    return {
        "hessian": ranked(board),
        "sandwich": ranked(cc.rank(votes)),
        "quasi": ranked(cc.rank(votes, interval="hessian", quasi=True, level=0.9)),
        "bootstrap": ranked(cc.rank(food(), "borda", interval="bootstrap", replicates=40, seed=1)),
        "pandas": board.to_pandas().head(3).to_dict("list"),
    }


@call("rank")
def draws() -> Any:
    matches = cc.read("results.csv.gz", home="left")
    return [ranked(cc.rank(matches, ties=how, interval="none")) for how in ("half", "davidson")]


@call("rank")
def times() -> Any:
    matches = cc.read("results.csv.gz", home="left", time="date")
    paths = cc.rank_over_time(matches, prior=0.3, drift=0.02, ties="davidson")
    assert type(paths) is cc.Paths
    ahead = paths.predict("Spain", ["France", "Malta"], at="2026-12-31", covariates={"home": 1})
    held = cc.cross_validate(matches, split="time", half_life="1y", folds=3)
    return [ranked(cc.rank(cc.discounted(matches, "1y"))), ranked(paths.at("2025-01-01")), ahead, held.table]


@call("rank")
def properties() -> Any:
    votes = cc.read("votes.csv")
    found = cc.explain(votes, {"item": votes.items.tolist(), "letters": [len(name) for name in votes.items]})
    return [found.coefficients, found.items.slice(0, 5), found.spread]


@call("audit")
def looks() -> Any:
    found = cc.look(cc.read("votes.csv"), top=3)
    return [found.to_arrow(), found.to_arrow(ranks=True), found.ask(200), found.lines()]


@call("rank")
def changed_boards() -> Any:
    votes = cc.read("votes.csv")
    change = cc.board_changes(cc.rank(votes), cc.rank(votes + votes))
    assert type(change) is cc.BoardChange
    return [change.table, change.shared, change.lines()]


@call("audit")
def fragile() -> Any:
    found = cc.fragility(cc.read("votes.csv", cluster="worker"))
    assert type(found) is cc.Fragility
    return [found.table, found.witness]


@call("rank")
def examined() -> Any:
    with cc.recording() as run:
        found = cc.doctor("votes.csv")
    assert isinstance(found, cc.Examination) and issubclass(cc.Unavailable, cc.UsageError)
    return [found.to_dict(), sorted(run.record)]


@call("rank")
def reward_pairs() -> Any:
    found = cc.pairs("votes.csv", level=True)
    assert type(found) is cc.Pairs
    return {"said": str(found), "rows": found.to_arrow(), "ceiling": found.ceiling, "notes": found.notes}


@call("rank")
def trees() -> Any:
    votes = cc.read("results.csv.gz", cluster=["date", "neutral"])
    tree = cc.ranking_tree(votes, "neutral", max_depth=1, interval="none", ties="davidson", min_judgments=500)
    assert type(tree) is cc.RankingTree
    drawn = re.findall(r">([^<>]+)<", cc.tree_picture(tree))
    return {"said": str(tree), "tests": tree.tests().to_pylist(), "first": ranked(tree.ranking(1)), "drawn": drawn}


@call("scores")
def boards() -> Any:
    board = cc.rank_scores(cc.read_scores("systems.csv"), resamples=500)
    assert type(board) is cc.ScoreBoard
    drawn = re.findall(r">([^<>]+)<", cc.critical_difference(board))
    return {"said": str(board), "rows": board.to_arrow(), "pairs": board.contrasts(), "drawn": drawn}


@call("rank")
def spreads() -> Any:
    found = cc.distributional(cc.read("votes.csv", cluster="worker"))
    assert isinstance(found, cc.Distributional)
    return [found.mean, found.spread, found.gain, found.status]


@call("rank")
def camps() -> Any:
    found = cc.camps(cc.read("votes.csv", cluster="worker"), number=2, prior=1.0, folds=2)
    assert type(found) is cc.Camps
    return {"said": str(found), "held_out": found.held_out_table().to_pylist(), "members": found.members()}


@call("rank")
def judges() -> Any:
    votes = cc.read("votes.csv", cluster="worker", columns={"query": "prompt"})
    found = cc.judges(votes)
    pairs = cc.read("simple.csv", home="left")
    ids = cc.Preferences.from_comparisons(
        pairs.items.take(pairs.winner), pairs.items.take(pairs.loser), cluster=[*range(pairs.distinct)]
    )
    both = cc.prediction_powered(ids, ids, these=True)
    assert type(found) is cc.Judges and type(both) is cc.PredictionPowered
    return [found.to_arrow(), found.random, found.alpha, ranked(found.ranking()), both.to_arrow()]


@call("rank")
def lists() -> Any:
    orders = cc.read("orders.toi")
    return {
        "plackett-luce": ranked(cc.rank(orders, "plackett-luce")),
        "borda": ranked(cc.rank(orders, "borda", interval="none")),
        "cascade": ranked(cc.rank(cc.read("clicks.csv", clicks="first"), "cascade")),
        "choices": ranked(cc.rank(cc.read("choices.csv"), "plackett-luce", interval="none")),
    }


@call("rank")
def unranked() -> Any:
    votes = cc.Preferences.from_comparisons(["a", "a", "d"], ["b", "c", "e"])
    assert issubclass(cc.NoMaximumLikelihood, cc.CannotRank)
    return {
        "no maximum": refusal(lambda: cc.rank(votes, prior=0.0)),
        "weak prior": ranked(cc.rank(votes)),
        "across": ranked(cc.rank(votes, across_components=True)),
        "notes": list(cc.rank(votes).notes),
    }


@call("rank")
def optimal_order() -> Any:
    found = {"food": food(), "orders": cc.read("orders.toi"), "pairs": pairs()}
    return {name: cc.optimal_order(one, exact=name == "orders").to_arrow() for name, one in found.items()}


@call("metrics")
def ndcg() -> Any:
    one, other, labels, query = graded()
    rules, item = ("burges", "sklearn", "trec", "xgboost", "lightgbm", "letor4"), [f"d{n}" for n in range(len(one))]
    found = {rule: cc.ndcg(one, labels, query, 10, rule, item=item) for rule in rules}
    return found | {"all": cc.ndcg(other, labels, query, None), "ties": cc.ndcg(one, labels, query, 5, ties="averaged")}


@call("metrics")
def err() -> Any:
    one, other, labels, query = graded()
    return [cc.err(one, labels, query), cc.err(other, labels, query, 5), cc.err(other, labels, query, highest=4.0)]


@call("metrics")
def precision() -> Any:
    one, other, labels, query = graded()
    return [cc.precision(one, labels, query, 5), cc.precision(other, labels, query, 10, "trec", relevant=2.0)]


@call("metrics")
def first_and_mean() -> Any:
    one, other, labels, query = graded()
    return {
        "average": [cc.average_precision(one, labels, query), cc.average_precision(other, labels, query, 10, "trec")],
        "first": [cc.reciprocal_rank(one, labels, query), cc.reciprocal_rank(other, labels, query, 3)],
    }


@call("metrics")
def concordance() -> Any:
    one, other, labels, query = graded()
    return {
        "tau": [cc.kendall_tau(one, labels, query), cc.kendall_tau(other, labels, query, variant="a")],
        "pairwise": [cc.pairwise_loss(one, labels, query), cc.pairwise_loss(other, labels, query, normalise=True)],
        "adjacency": cc.pairwise_loss([0.3, 0.2, 0.1], adjacency=[[0, 1.0, 0], [0.5, 0, 2.0], [1.0, 0, 0]]),
        "auc": [cc.auc(one, labels, query), cc.auc(other, labels, query, relevant=2.0)],
    }


@call("metrics")
def auc_intervals() -> Any:
    one, other, labels, _ = graded()
    found, logit = cc.auc_interval(one, labels), cc.auc_interval(other, labels, level=0.9, scale="logit")
    difference = cc.auc_difference(one, other, labels)
    names = ("auc", "standard_error", "lower", "upper", "positives", "negatives")
    compared = ("difference", "standard_error", "lower", "upper", "p_value", "first", "second", "correlation")
    return [numbers(found, names), numbers(logit, names), numbers(difference, compared)]


def numbers(found: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(found, name) for name in names}


@call("metrics")
def summaries() -> Any:
    one, other, labels, query = graded()
    values = [cc.ndcg(scores, labels, query) for scores in (one, other)]
    names = ("mean", "standard_error", "lower", "upper", "p_value", "wins", "losses", "ties", "queries", "undefined")
    summary = numbers(cc.summarise(values[0]), ("mean", "standard_error", "queries", "undefined"))
    return [summary, numbers(cc.compare(*values, level=0.9), names)]


@call("surrogates")
def mean_targets() -> Any:
    ways = {
        "all": {"order": "all"},
        "ten": {"order": 10, "subsets": 4, "seed": 1},
        "borda": {"structure": "borda", "gain": "identity", "order": 5, "subsets": 3, "partition": False},
        "cut": {"order": 20, "subsets": 2, "at": 5, "normalise": False},
    }
    found = {name: cc.mean_targets(pairs(), **how) for name, how in ways.items()}
    return {name: [one.value, one.error, one.weight, one.zero, list(one.notes)] for name, one in found.items()}


OF_PREFERENCES = ("ranksvm", "ranknet", "rankboost", "margin-based", "difference-graph", "linear")


@call("surrogates")
def objectives() -> Any:
    batch = cc.Batch.whole(prompts())
    alpha = np.cos(np.arange(len(batch.item)))
    found = {name: cc.surrogate(name).objective(batch) for name in OF_PREFERENCES}
    return {name: [one.value(alpha), one.gradient(alpha)] for name, one in found.items()}


@call("surrogates")
def minimise() -> Any:
    found = {}
    for name in OF_PREFERENCES:
        for source, log in (("food", food()), ("first prompt", prompts().select(prompts().queries.tolist()[:1]))):
            least = cc.minimise(cc.surrogate(name).objective(cc.Batch.whole(log)))
            found[f"{name} of {source}"] = [least.value, least.alpha]
    return found


@call("surrogates")
def counterexamples() -> Any:
    found = {
        "ranknet": cc.find_counterexample("ranknet"),
        "ranksvm": cc.find_counterexample("ranksvm", phi="squared-hinge", items=4, within="any", budget=100, seed=1),
    }
    none = cc.find_counterexample("difference-graph", within="acyclic", budget=100)
    shown = {name: [one.votes, one.regret, one.optimum, one.right_order, one.largest] for name, one in found.items()}
    return shown | {"difference-graph": none is None}


@call("surrogates")
def suboptimality() -> Any:
    votes = cc.Preferences.from_comparisons(list("1213"), list("2331"), count=[25, 1, 50, 24])
    found = {name: cc.suboptimality(votes, name) for name in (*OF_PREFERENCES, "gain-regression")}
    return {
        name: [one.surrogate_excess, one.target_excess, one.at(0.02), one.hidden(0.1)] for name, one in found.items()
    }


@call("surrogates")
def uniform_suboptimality() -> Any:
    asked = {"difference-graph": {}, "linear": {}, "ranksvm": {"items": 2}, "gain-regression": {}}
    found = {name: cc.uniform_suboptimality(name, 0.1, **how) for name, how in asked.items()}
    return {name: [one.lower, one.upper, one.method] for name, one in found.items()}


@call("audit")
def audit() -> Any:
    found = cc.audit(food(), replicates=50, top=2)
    assert type(found) is cc.Audit
    return [found.to_dict(), found.to_arrow(), found.surrogates, found.orders]


@call("audit")
def audit_of_queries() -> Any:
    found = cc.audit(prompts(), surrogates=["ranknet", "linear"], ties="paper", replicates=0)
    return [found.queries, found.surrogates, found.ask]


@call("audit")
def audit_of_orders() -> Any:
    found = cc.audit(cc.read("orders.toi"), exact=True, surrogates=["difference-graph:hinge"], replicates=20, seed=4)
    return found.to_dict()


@call("audit")
def report() -> Any:
    page = cc.report(food(), structure="borda", interval="bootstrap", replicates=40, seed=2, title="Food")
    assert type(page) is cc.Report
    return page.data


def fitted(ranker: Any, features: Any = None, y: Any = None) -> Any:
    return ranker.fit(train() if features is None else features, pairs() if y is None else y)


def learned(ranker: Any, features: Any = None, y: Any = None) -> dict[str, Any]:
    """Fit a ranker; return what it scores new items, and its coefficients where it has any."""
    ranker = fitted(ranker, features, y)
    scores = {"scores": ranker.predict(cc.read_features("test.csv"))}
    return scores | ({"coefficients": ranker.coef_} if getattr(ranker, "coef_", None) is not None else {})


@call("rankers")
def informed() -> Any:
    ranker = fitted(cc.AggregationRanker())
    return [ranker.coef_, ranker.predict(cc.read_features("test.csv")), ranker.score(train(), pairs()), ranker.curve()]


@call("rankers")
def aggregated() -> Any:
    auto = fitted(cc.AggregationRanker("log-odds", order="auto", folds=2, subsets=4))
    return {
        "auto": [auto.coef_, auto.order_, auto.ridge_, auto.curve()],
        "k": learned(cc.AggregationRanker("borda", order=10, gain="identity", ridge=0.01, informed=False)),
        "bradley-terry": learned(cc.AggregationRanker("bradley-terry", order="all", log=True)),
        "streamed": fitted(cc.AggregationRanker("log-odds", order="all"), cc.FeatureFile("train.parquet")).coef_,
    }


@call("rankers")
def with_regressors() -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import Lasso

    regressors = [HistGradientBoostingRegressor(max_iter=10), Lasso(0.001)]
    return [learned(cc.AggregationRanker("log-odds", order="all", regressor=one)) for one in regressors]


@call("rankers")
def edges() -> Any:
    names = ("difference-graph", "linear", "ranksvm", "ranknet", "rankboost", "margin-based", "ndcg-pairwise")
    found = {name: learned(cc.EdgeRanker(name)) for name in (*names, "err-pairwise", "gain-regression")}
    return found | {"hinge": learned(cc.EdgeRanker("difference-graph", phi="hinge", ridge=0.1, standardise=False))}


@call("rankers")
def leximax_copeland() -> Any:
    ranker = fitted(cc.CopelandRanker(places=1, programs=50))
    found = cc.axiom_audit(pairs(), ranker, train(), refits=1)
    assert isinstance(found, cc.AxiomAudit)
    return [learned(cc.CopelandRanker()), ranker.coef_, found.to_dict()]


@call("rankers")
def diagnosed() -> Any:
    found = fitted(cc.EdgeRanker("difference-graph")).diagnose(train(), pairs(), replicates=100)
    assert isinstance(found, cc.Diagnosis)
    return repr(found)


@call("rankers")
def label_lists() -> Any:
    features, labels = cc.read_judged("train.txt")
    test, _ = cc.read_judged("test.txt")
    losses = ("gain-regression", "ndcg-pairwise", "err-pairwise", "ranksvm", "ranknet", "rankboost")
    rankers = {loss: cc.ListRanker(loss).fit(features, labels) for loss in losses}
    return {loss: [ranker.coef_, ranker.predict(test)] for loss, ranker in rankers.items()}


@call("rankers")
def boosted_trees() -> Any:
    features, labels = cc.read_judged("train.txt")
    test, _ = cc.read_judged("test.txt")
    return [
        fitted(cc.BoostedRanker(rounds=20)).predict(train()),
        cc.BoostedRanker(rounds=20).fit(features, labels).predict(test),
    ]


@call("rankers")
def boosted_rules() -> Any:
    return [learned(cc.RankBoostRanker(rounds=8, choose=how, thresholds=31)) for how in ("r", "z")]


@call("rankers")
def one_for_each_query() -> Any:
    rankers = fitted(cc.QueryRankers(cc.EdgeRanker("linear")))
    return rankers.predict(train())


@call("rankers")
def saved_and_loaded() -> Any:
    made = {"edges": cc.EdgeRanker("ranknet"), "rules": cc.RankBoostRanker(rounds=5), "queries": cc.QueryRankers()}
    found = {}
    for name, ranker in made.items():
        again = cc.load_model(cc.save_model(fitted(ranker), f"kept-{name}", about={"why": "to see"}))
        found[name] = [bool((again.predict(train()) == ranker.predict(train())).all()), again.get_params(deep=False)]
    return {name: [same, sorted(params)] for name, (same, params) in found.items()}


@call("rankers")
def exported() -> Any:
    ranker = fitted(cc.EdgeRanker("ranknet"))
    for kind in ("json", "solr", "elasticsearch"):
        cc.export_model(ranker, f"exported-{kind}.json", to=kind, name="documents")
    return {kind: Path(f"exported-{kind}.json").read_text() for kind in ("json", "solr", "elasticsearch")}


@call("rankers")
def card() -> Any:
    held_out = cc.read("held-out.csv")
    return cc.model_card(
        fitted(cc.EdgeRanker("ranknet")), judgments=pairs(), held_out=held_out, features=train(), audit=False, name="it"
    )


def held() -> tuple[Any, Any]:
    return train(), cc.read("held-out.csv")


@call("abstention")
def by_distance() -> Any:
    (features, labels), (test, grades) = cc.read_judged("train.txt"), cc.read_judged("test.txt")
    ranker = cc.AbstainingRanker(cc.ListRanker().fit(features, labels), cost=0.35, norm="2").fit(test, grades)
    said = ranker.explain_pairs(test.X[:40], test.X[40:80])
    return {
        "gamma": ranker.gamma_,
        "scores": ranker.predict(test),
        "tiers": ranker.tiers(test),
        "pairs": [said.decision, said.difference, said.distance, said.reasons],
        "decided": [list(side[:50]) for side in ranker.decided_pairs(test)],
        "cheaper": ranker.with_cost(0.05).gamma_,
    }


@call("abstention")
def by_risk() -> Any:
    ranker = cc.AbstainingRanker(fitted(cc.EdgeRanker("linear")), cost=0.45, by="risk").fit(*held())
    curve = ranker.risk_coverage(*held())
    return {
        "tiers": ranker.tiers(cc.read_features("test.csv")),
        "said": ranker.predict_pairs(train().X[:60], train().X[60:120]),
        "curve": [curve.coverage[:40], curve.risk[:40], curve.losses(0.45)[:40], curve.aurc],
    }


def _points() -> tuple[Any, Any, Any]:
    _, other, labels, _ = graded()
    features, _ = cc.read_judged("test.txt")
    return other, features.X[:, :6], labels


@call("abstention")
def exact_losses() -> Any:
    scores, X, labels = _points()
    gammas = [0.0, 0.2, 0.5, 1.0]
    two = (labels > 0).astype(int)
    return {
        "pairwise": [cc.pairwise_abstention_loss(scores, X, labels, gamma=gammas, cost=0.1, norm=n) for n in NORMS],
        "bipartite": [cc.bipartite_abstention_loss(scores, X, two, gamma=gammas, cost=0.3, norm=n) for n in NORMS],
    }


NORMS = (1, 2, "inf")


@call("abstention")
def sampled_loss() -> Any:
    scores, X, labels = _points()
    found = cc.sampled_abstention_loss(scores, X, labels, gamma=0.4, cost=0.2, pairs=5000, seed=3)
    return numbers(found, ("loss", "low", "high", "near_share", "pairs", "level"))


@call("abstention")
def near_pairs() -> Any:
    scores, X, labels = _points()
    found = cc.near_pairs(X, labels, scores, gamma=[0.1, 0.3], norm=2)
    return numbers(found, ("pairs", "near", "misranked", "misranked_near", "near_share")) | {"loss": found.loss(0.2)}


@call("abstention")
def bounds() -> Any:
    t = np.linspace(0.0, 1.5, 7)
    found = {}
    for phi, setting in itertools.product(("hinge", "exponential", "sigmoid"), ("general", "bipartite")):
        found[f"{phi} {setting}"] = cc.consistency_bound(t, phi=phi, W=2.0, gamma=0.3, setting=setting)
    networks = cc.consistency_bound(t, phi="exponential", W=1.0, gamma=0.5, Lambda=1.5, B=0.5)
    return found | {"networks": networks}


@call("abstention")
def certificate() -> Any:
    X = np.linspace(0, 1, 40)[:, None]
    labels = np.arange(40) // 8
    scores = X[:, 0] + 0.05 * np.cos(9 * np.arange(40))
    names = ("bound", "excess", "surrogate_loss", "surrogate_least", "far_share", "judgments", "vacuous", "gap")
    found = [
        cc.certificate(scores, X, labels, phi=phi, W=40.0, gamma=0.2, confidence=0.9, diameter=1.0)
        for phi in ("hinge", "exponential")
    ]
    return [numbers(one, (*names, "population_bound")) for one in found]


@call("store")
def store() -> Any:
    shop = cc.Store("calls.store")
    taken = [shop.ingest(name) for name in ("monday.csv", "tuesday.csv", "monday.csv")]
    before = shop.preferences()
    size = shop.compact()
    rows = shop.export("calls.csv")
    verified, again = shop.verify(), cc.Store.open("calls.store")
    return {
        "taken": [[one.rows, one.judgments, list(one.known), one.facts] for one in taken],
        "batches": [[one.name, one.rows, one.judgments] for one in shop.info().batches],
        "compacted": [size.segments, size.rows],
        "exported": [rows, Path("calls.csv").read_text()],
        "verified": [verified.batches, verified.segments, verified.judgments],
        "equal": [before == again.preferences(), before == cc.read(again), len(before)],
        "again": refusal(lambda: shop.ingest("clicks.csv", clicks="first")),
    }


@call("torch")
def torch_surrogates() -> Any:
    ct, torch = cc.torch, _torch()
    batch = cc.Batch.whole(prompts())
    found = {}
    for name in OF_PREFERENCES:
        alpha = torch.tensor(np.cos(np.arange(len(batch.item))), requires_grad=True)
        objective = ct.surrogate(name, batch)
        assert type(objective) is ct.TorchObjective
        value = objective(alpha)
        value.sum().backward()
        found[name] = [value.detach().numpy(), alpha.grad.numpy()]
    return found


@call("torch")
def torch_parts() -> Any:
    ct, torch = cc.torch, _torch()
    t = torch.linspace(-3, 3, 13, dtype=torch.float64)
    scores = torch.cos(torch.arange(12, dtype=torch.float64))
    winner, loser = torch.tensor([0, 1, 2, 6, 7, 0]), torch.tensor([3, 0, 4, 8, 11, 1])
    graph = torch.tensor([0] * 6 + [1] * 6)
    return {
        "margins": {name: phi(t).numpy() for name, phi in ct.MARGINS.items()},
        "penalties": {name: penalty(t).numpy() for name, penalty in ct.PENALTIES.items()},
        "edges": [ct.edge_loss(scores, winner, loser, phi=phi).numpy() for phi in ("hinge", "logistic")],
        "net": [part.numpy() for part in ct.net_preferences(winner, loser)],
        "pulled": ct.value_penalty(scores, torch.ones(12, dtype=torch.float64), penalty="cosh").numpy(),
        "gains": ct.against_all(scores, scores.abs(), torch.tensor([0, 6, 12])).numpy(),
        "sums": ct.per_graph(scores, graph, 2).numpy(),
        "graded": ct.GradedObjective(torch.tensor([0, 6, 12]), scores.abs())(scores).numpy(),
        "batches": [*ct.PromptBatches([*"abacbda"], 3, seed=1)],
        "agreed": ct.vote_metrics(scores, -scores, scores.abs(), 2 + scores),
        "loss": [ct.PreferenceLoss(name)(scores, graph, winner, loser).numpy() for name in OF_PREFERENCES],
    }


@call("torch")
def torch_informed() -> Any:
    ct = cc.torch
    torch = _torch()
    votes = cc.Preferences.from_comparisons(["x", "x", "y"], ["y", "y", "x"])
    scorer = ct.LinearScorer(2).double()
    found = ct.fit_informed(scorer, torch.eye(2, dtype=torch.float64), votes, tau2=1.0, rounds=2, steps=20)
    assert isinstance(found, ct.InformedFit)
    scores = scorer(torch.eye(2, dtype=torch.float64))
    return [scores.detach().numpy(), ct.informed_targets(scores, votes, tau2=1.0).numpy()]


@call("torch")
def torch_scorers() -> Any:
    ct = cc.torch
    _torch()
    batch = cc.Batch.whole(pairs())
    row = {key: at for at, key in enumerate(zip(_labels(train(), "query"), _labels(train(), "item")))}
    query = np.array(pairs().queries.tolist())[batch.query[batch.owner]]
    rows = [row[key] for key in zip(query.tolist(), np.array(pairs().items.tolist())[batch.item].tolist())]
    X = train().X[:, :5].copy()
    found = {}
    for name, scorer in (("linear", ct.LinearScorer(5)), ("network", ct.ReluScorer(5, 4, seed=1))):
        fit = ct.fit(scorer, X, ct.surrogate("ranknet", batch), rows=rows, ridge=0.01, steps=10)
        assert type(fit) is ct.Fit
        found[name] = [fit.value, fit.steps, [p.detach().numpy() for p in scorer.parameters()]]
    bounded = ct.BoundedReluScorer(5, 4, W=1.0, Lambda=1.0, B=1.0, seed=2)
    fit = ct.fit_pairs(bounded, X, np.arange(30), np.arange(30, 60), phi="exponential", epochs=5)
    found["bounded"] = [fit.value, [p.detach().numpy() for p in bounded.parameters()]]
    return found


@call("torch")
def torch_regressor() -> Any:
    _torch()
    regressor = cc.torch.TorchRegressor(8, steps=15, seed=3)
    return learned(cc.AggregationRanker("log-odds", order="all", regressor=regressor))


def _labels(features: Any, what: str) -> list[Any]:
    return [getattr(features, {"query": "queries", "item": "items"}[what])[code] for code in getattr(features, what)]


def _torch() -> Any:
    import torch

    torch.set_num_threads(1)
    return torch


# -- answers as text ---------------------------------------------------------------------------------------------------
def listed(value: Any) -> str:
    """Return a value as lines ``where = what``, numbers to the last bit."""
    return "\n".join(f"{where} = {what}" for where, what in _leaves("", value))


def _leaves(where: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, pa.Table):
        value = {name: value[name].to_pylist() for name in value.column_names}
    if isinstance(value, np.ndarray):
        yield where, f"{value.dtype} {value.shape}"
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) and "\n" in value:
        value = value.splitlines()
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from _leaves(f"{where}.{name}" if where else str(name), one)
    elif isinstance(value, list | tuple):
        if not value:
            yield where, "[]"
        for at, one in enumerate(value):
            yield from _leaves(f"{where}[{at}]", one)
    elif value is None or isinstance(value, bool | int | float | str):
        yield where, repr(value)
    else:
        raise TypeError(f"{where}: a {type(value).__name__} says nothing that can be compared; return its numbers")


def run_call(function: Callable[[], Any]) -> dict[str, str]:
    """Call a function and return its value as text; where a package is missing, which one."""
    try:
        return {"value": listed(function())}
    except ImportError as error:
        return {"value": f"not installed: {error.name}"}
    except BaseException:
        return {BROKEN: traceback.format_exc()}


BROKEN = "broken"
"""The part that holds what Python said of an entry that gives no answer: such a list cannot be recorded."""


# -- running, recording, comparing -------------------------------------------------------------------------------------
Answers = dict[str, dict[str, dict[str, str]]]
"""By group, entry and part."""


def answers(say: Callable[[str], object] = lambda _: None) -> Answers:
    """Run the whole list in a folder of its own; each entry in a process of its own, forked from this one."""
    for name in cc.__all__:
        if name != "torch":
            getattr(cc, name)  # imports what the entries need: once, not a hundred times
    found: Answers = {}
    with tempfile.TemporaryDirectory(prefix="same-answers-") as folder:
        prepare(Path(folder))
        for group, lines in COMMANDS.items():
            for name, line in lines.items():
                say(f"{group}/{name}")
                given = _apart(lambda line=line, group=group: run_command(line, group == "terminal"), folder)
                found.setdefault(group, {})[name] = {"command": f"concordant {line}", **given}
        for group, functions in CALLS.items():
            for name, function in functions.items():
                say(f"{group}/{name}()")
                found.setdefault(f"call-{group}", {})[name] = _apart(lambda f=function: run_call(f), folder)
    return {
        group: {name: {part: settled(text) for part, text in parts.items()} for name, parts in entries.items()}
        for group, entries in found.items()
    }


def _apart(work: Callable[[], dict[str, str]], folder: str) -> dict[str, str]:
    """Do something in a copy of this process, in a folder, and return what it returns."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.chdir(folder)
            os.environ.update(FIXED)
            with open(writer, "wb") as pipe:
                pickle.dump(work(), pipe)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(writer)
    with open(reader, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(said) if said and not status else {BROKEN: f"the process ended with {status}"}


LINES, LETTERS, SHOWN = 60, 6000, 6
"""Up to this size an answer is kept in full; of longer ones so many lines at either end are shown."""


def record(folder: Path, found: Answers) -> None:
    """Write answers: a JSON file for each group, and the whole text of long ones beside."""
    (folder / "whole").mkdir(parents=True, exist_ok=True)
    for group, entries in found.items():
        kept = {name: {part: _kept(folder, text) for part, text in parts.items()} for name, parts in entries.items()}
        (folder / f"{group}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _kept(folder: Path, text: str) -> Any:
    lines = text.split("\n")
    if len(lines) <= LINES and len(text) <= LETTERS:
        return lines
    digest = hashlib.sha256(text.encode()).hexdigest()
    (folder / "whole" / f"{digest}.txt").write_text(text, encoding="utf-8")
    ends = [line[:200] for line in (*lines[:SHOWN], "…", *lines[-SHOWN:])]
    return {"sha256": digest, "lines": len(lines), "excerpt": ends}


def recorded(folder: Path) -> Answers:
    """Read what ``record`` wrote."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise SystemExit(f"{folder}: there is no recording; make one with: record {folder}")

    def text(kept: Any) -> str:
        if isinstance(kept, list):
            return "\n".join(kept)
        return (folder / "whole" / f"{kept['sha256']}.txt").read_text(encoding="utf-8")

    held = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}
    return {
        group: {name: {part: text(kept) for part, kept in parts.items()} for name, parts in entries.items()}
        for group, entries in held.items()
    }


FIRST = 5
"""Differing lines that are shown of one answer."""


def differences(before: Answers, now: Answers) -> Iterator[str]:
    """Say what differs, an answer at a time."""
    for group in sorted({*before, *now}):
        old_group, new_group = before.get(group, {}), now.get(group, {})
        for name in dict.fromkeys([*old_group, *new_group]):
            if name not in old_group or name not in new_group:
                yield f"{group}/{name}: only {'recorded' if name in old_group else 'now'}"
                continue
            old, new = old_group[name], new_group[name]
            for part in dict.fromkeys([*old, *new]):
                if part not in old or part not in new:
                    yield f"{group}/{name}, {part}: only {'recorded' if part in old else 'now'}"
                elif old[part] != new[part]:
                    yield f"{group}/{name}, {part}:\n{_first(old[part], new[part])}"


def _first(old: str, new: str) -> str:
    rows = itertools.zip_longest(old.split("\n"), new.split("\n"), fillvalue="(nothing)")
    wrong = [(number, a, b) for number, (a, b) in enumerate(rows, 1) if a != b]
    shown = [f"  line {number}\n    was {a[:300]}\n    is  {b[:300]}" for number, a, b in wrong[:FIRST]]
    more = [f"  … and {len(wrong) - FIRST:,} more lines"] if len(wrong) > FIRST else []
    return "\n".join(shown + more)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("folder", type=Path, metavar="DIR")
    given = parser.parse_args(arguments)
    before = recorded(given.folder) if given.what == "compare" else {}
    found = answers(lambda name: print(name, file=sys.stderr))
    entries = sum(map(len, found.values()))
    broken = [f"{group}/{name}: {parts[BROKEN]}" for group, of in found.items() for name, parts in of.items()
              if BROKEN in parts]  # fmt: skip
    if broken:
        print("\n".join(broken), f"{len(broken)} entries give no answer", sep="\n")
        return 2
    if given.what == "record":
        record(given.folder, found)
        print(f"{entries} entries recorded in {given.folder}")
        return 0
    wrong = list(differences(before, found))
    print("\n".join(wrong))
    print(
        f"{len(wrong)} answers differ, in {entries} entries" if wrong else f"all answers of {entries} entries are equal"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

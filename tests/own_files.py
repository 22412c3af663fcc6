"""Make the files that documents call the reader's own: ``python tests/own_files.py votes.csv items.csv``.

Votes, features and labels are those of tests/data/clueweb09; clicks are drawn from its labels.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import concordant as cc

HERE = Path(__file__).resolve().parent / "data"
CLUEWEB = HERE / "clueweb09"
FOOTBALL = HERE / "international_football" / "results-2022-07-20-to-2026-07-19.csv.gz"


def votes() -> pa.Table:
    """Return all votes; every seventh is another file, that of the held-out ones."""
    texts = pyarrow.csv.ConvertOptions(column_types={"query": pa.string()})
    return pyarrow.csv.read_csv(CLUEWEB / "votes.csv.gz", convert_options=texts)


def some_votes(held_out: bool) -> pa.Table:
    """Return the held-out votes, or the others."""
    table = votes()
    return table.filter(pa.array((np.arange(len(table)) % 7 == 0) == held_out))


def features(name: str) -> pa.Table:
    """Return the documents of a LETOR file as a table."""
    given, _ = cc.read_judged(CLUEWEB / name)
    columns = {name: given.X[:, place] for place, name in enumerate(given.names)}
    query, item = labels_of(given)
    return pa.table({"query": query, "item": item, **columns})


def labels_of(given: cc.Features) -> tuple[np.ndarray, np.ndarray]:
    """Return the label of the query and of the item of each row."""
    return np.array(given.queries.tolist())[given.query], np.array(given.items.tolist())[given.item]


def labels() -> pa.Table:
    """Return the labels of the documents that are new."""
    given, label = cc.read_judged(CLUEWEB / "test.txt.gz")
    query, item = labels_of(given)
    return pa.table({"query": query, "item": item, "label": pa.array(np.asarray(label).astype(int))})


def clicks() -> pa.Table:
    """Return lists of ten documents, at most one click in each, the more relevant the likelier."""
    given, labels = cc.read_judged(CLUEWEB / "train.txt.gz")
    draw = np.random.default_rng(0)
    queries, items = labels_of(given)
    rows = []
    for query in np.unique(queries):
        mine = np.flatnonzero(queries == query)
        for session in range(60):
            shown = draw.choice(mine, min(10, len(mine)), replace=False)
            liked = draw.random(len(shown)) < 0.05 + 0.2 * np.asarray(labels)[shown]
            first = np.argmax(liked) if liked.any() else -1
            rows += [
                (query, f"{query}-{session}", at + 1, items[row], int(at == first)) for at, row in enumerate(shown)
            ]
    names = ["query", "session", "position", "item", "clicked"]
    return pa.table(dict(zip(names, map(list, zip(*rows)))))


def answers(number: int) -> Callable[[str], None]:
    """Return what writes JSON lines of votes of several people on answers, drawn."""
    better = (3, 2, 0, 1)  # of the answers below
    topics = ("tea", "rain", "bread", "tides", "bees", "chess", "glass", "maps", "salt", "wool")

    def write(name: str) -> None:
        draw = np.random.default_rng(number)
        with open(name, "w", encoding="utf-8") as file:
            for topic in topics:
                said = [
                    f"{topic}, in short",
                    f"{topic}, with reasons and an example",
                    f"I cannot help with {topic}",
                    f"{topic}! {topic}!",
                ]
                for _ in range(40):
                    one, other = draw.choice(4, 2, replace=False)
                    ahead = 1 / (1 + np.exp(-0.8 * np.sign(better[one] - better[other])))
                    winner = "tie" if draw.random() < 0.1 else "left" if draw.random() < ahead else "right"
                    row = {
                        "prompt": f"Tell me about {topic}.",
                        "left": said[one],
                        "right": said[other],
                        "winner": winner,
                    }
                    file.write(json.dumps(row | {"worker": int(draw.integers(12))}) + "\n")

    return write


def unpacked(source: Path) -> Callable[[str], None]:
    """Return what copies a gzip file, unpacked."""

    def write(name: str) -> None:
        with gzip.open(source, "rb") as packed, open(name, "wb") as plain:
            shutil.copyfileobj(packed, plain)

    return write


def written(table: Callable[[], pa.Table]) -> Callable[[str], None]:
    """Return what writes a table by the ending of its name."""

    def write(name: str) -> None:
        if name.endswith(".csv"):
            pyarrow.csv.write_csv(table(), name)
        else:
            pyarrow.parquet.write_table(table(), name)

    return write


FILES = {
    "votes.csv": written(lambda: some_votes(False)),
    "votes.parquet": written(lambda: some_votes(False)),
    "votes-monday.csv": written(lambda: votes().slice(0, 3600)),
    "votes-tuesday.csv": written(lambda: votes().slice(3600, 1800)),
    "votes-wednesday.csv": written(lambda: votes().slice(5400)),
    "held-out.csv": written(lambda: some_votes(True)),
    "items.csv": written(lambda: features("train.txt.gz")),
    "items.parquet": written(lambda: features("train.txt.gz")),
    "features.parquet": written(lambda: features("train.txt.gz")),
    "new-items.csv": written(lambda: features("test.txt.gz")),
    "new-items.parquet": written(lambda: features("test.txt.gz")),
    "clicks.parquet": written(clicks),
    "train.txt": unpacked(CLUEWEB / "train.txt.gz"),
    "labels.parquet": written(labels),
    "labels.txt": unpacked(CLUEWEB / "test.txt.gz"),
    "results.csv": unpacked(FOOTBALL),
    "answers.jsonl": answers(1),
    "new-answers.jsonl": answers(2),
}

if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        FILES[wanted](wanted)

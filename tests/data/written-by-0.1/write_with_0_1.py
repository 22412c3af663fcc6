"""Make the models and stores of this folder, and what they answer, with the concordant that is imported.

Run once with version 0.1 (commit 8f5aa0a): ``PYTHONPATH=CHECKOUT/src python make.py``. What it writes are recorded
outputs of that version: later versions have to read them and to answer the same. Do not make them anew.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import random
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Lasso
from sklearn.neural_network import MLPRegressor

import concordant as cc

HERE = Path(__file__).parent
ITEMS, VOTES = 12, 60
LEARNED, HELD_OUT, NEW = ("p", "q", "r"), ("s", "t"), ("u", "v")


def write(name: str, rows: list[dict[str, Any]]) -> None:
    with open(HERE / name, "w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def logs() -> None:
    """Items of seven queries with three features and a label; comparisons by a noisy utility, some of them ties."""
    draw = random.Random(1)
    items = [
        {"query": query, "item": f"{query}{number:02}", "quality": round(draw.gauss(0, 1), 3),
         "age": round(draw.gauss(100, 5), 2), "noise": round(draw.gauss(0, 0.2), 4)}
        for query in (*LEARNED, *HELD_OUT, *NEW)
        for number in range(ITEMS)
    ]  # fmt: skip
    worth = {one["item"]: one["quality"] + 0.1 * (one["age"] - 100) for one in items}
    for one in items:
        one["label"] = min(max(round(worth[one["item"]] + 1.5), 0), 4)
    votes = []
    for query in (*LEARNED, *HELD_OUT):
        mine = [one["item"] for one in items if one["query"] == query]
        for _ in range(VOTES):
            left, right = draw.sample(mine, 2)
            wins = draw.random() < 1 / (1 + math.exp(worth[right] - worth[left]))
            winner = "tie" if draw.random() < 0.1 else "left" if wins else "right"
            votes.append(
                {"query": query, "left": left, "right": right, "winner": winner, "worker": f"w{draw.randrange(9)}"}
            )
    labels = [one.pop("label") for one in items]
    for name, queries in (("items", LEARNED), ("held-out-items", HELD_OUT), ("new-items", NEW)):
        write(f"{name}.csv", [one for one in items if one["query"] in queries])
    write(
        "labels.csv",
        [{"query": one["query"], "item": one["item"], "label": label} for one, label in zip(items, labels)],
    )
    learned = [one for one in votes if one["query"] in LEARNED]
    write("votes-monday.csv", learned[:100])
    write("votes-tuesday.csv", learned[100:])
    write("held-out-votes.csv", [one for one in votes if one["query"] in HELD_OUT])


def rankers(items: Any, votes: Any) -> dict[str, Any]:
    """Return a fitted ranker of each kind that can be kept, small."""
    held_out = cc.read_features(HERE / "held-out-items.csv"), cc.read(HERE / "held-out-votes.csv")
    with open(HERE / "labels.csv") as file:
        label = {row["item"]: float(row["label"]) for row in csv.DictReader(file)}
    labels = [label[items.items[code]] for code in items.item]
    plain = {"structure": "log-odds", "order": "all"}
    regressors = {
        "hist-gradient-boosting": HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=4, random_state=0),
        "random-forest": RandomForestRegressor(3, max_depth=4, random_state=0),
        "lasso": Lasso(0.01),
        "network": MLPRegressor(hidden_layer_sizes=(4,), max_iter=3000, tol=1e-3, random_state=0),
        "lightgbm": lightgbm.LGBMRegressor(n_estimators=3, min_child_samples=4, verbose=-1, n_jobs=1, random_state=0),
        "xgboost": xgboost.XGBRegressor(n_estimators=3, max_depth=2, n_jobs=1, random_state=0),
    }
    fitted = {f"aggregation-{name}": cc.AggregationRanker(regressor=one, **plain) for name, one in regressors.items()}
    fitted |= {
        "aggregation-informed": cc.AggregationRanker(),
        "aggregation-linear": cc.AggregationRanker("borda", order=5, gain="identity", log=True, missing="mean"),
        "edges": cc.EdgeRanker("difference-graph", phi="squared-hinge"),
        "rankboost": cc.RankBoostRanker(rounds=6, thresholds=15),
        "per-query": cc.QueryRankers(cc.EdgeRanker("linear")),
    }
    found = {name: ranker.fit(items, votes) for name, ranker in fitted.items()}
    found["lists"] = cc.ListRanker().fit(items, labels)
    ranknet = cc.EdgeRanker("ranknet").fit(items, votes)
    found["abstaining-distance"] = cc.AbstainingRanker(ranknet, cost=0.3, gamma=1.5, norm="2").fit(*held_out)
    found["abstaining-risk"] = cc.AbstainingRanker(found["edges"], cost=0.35, by="risk").fit(*held_out)
    return found


def models(items: Any, votes: Any) -> None:
    new = cc.read_features(HERE / "new-items.csv")
    answers: dict[str, dict[str, Any]] = {}
    for name, ranker in rankers(items, votes).items():
        cc.save_model(ranker, HERE / "models" / name)
        kept = cc.load_model(HERE / "models" / name)  # what the kept one says: trees of others are kept in their text
        rows = items if name == "per-query" else new
        answers[name] = {"scores": kept.predict(rows).tolist()}
        assert np.allclose(answers[name]["scores"], ranker.predict(rows), rtol=1e-9, atol=1e-9), name
        if name.startswith("abstaining"):
            half = len(new) // 2
            answers[name]["tiers"] = kept.tiers(new).tolist()
            answers[name]["pairs"] = kept.predict_pairs(new.X[:half], new.X[half:]).tolist()
    (HERE / "scores.json").write_text(json.dumps(answers, indent=1) + "\n")


def stores() -> None:
    """Two stores of the same two logs, one that knows who judged; packed, because most of a catalogue is empty."""
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in HERE.glob("votes-*.csv"):
            shutil.copy(path, folder)
        os.chdir(folder)  # a store remembers the names of its logs
        for name, options in (("plain", {}), ("clusters", {"cluster": "worker"})):
            store = cc.Store(f"{name}.store")
            for day in ("monday", "tuesday"):
                store.ingest(f"votes-{day}.csv", **options)
            votes = store.preferences()
            board = cc.rank(votes).to_arrow()
            answers[name] = {
                "summary": votes.summary(),
                "batches": [[one.name, one.rows, one.judgments] for one in store.info().batches],
                "item": board["item"].to_pylist(),
                "score": board["score"].to_pylist(),
            }
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path in sorted(Path().rglob("*")):
                if path.is_file() and path.suffix in (".store", ".parquet"):
                    archive.add(path, filter=_nobody_s)
    (HERE / "stores.tar.gz").write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))
    (HERE / "stores.json").write_text(json.dumps(answers, indent=1) + "\n")


def _nobody_s(file: tarfile.TarInfo) -> tarfile.TarInfo:
    file.uid = file.gid = 0
    file.uname = file.gname = ""
    return file


if __name__ == "__main__":
    shutil.rmtree(HERE / "models", ignore_errors=True)
    (HERE / "models").mkdir()
    logs()
    read = [cc.read(HERE / f"votes-{day}.csv") for day in ("monday", "tuesday")]
    models(cc.read_features(HERE / "items.csv"), read[0] + read[1])
    stores()

"""What version 0.1 wrote still loads and answers the same. The answers are recorded outputs of 0.1 (see SOURCE.md)."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from packaging.version import Version

import concordant as cc

HERE = Path(__file__).parents[1] / "data" / "written-by-0.1"
SCORES: dict[str, dict[str, Any]] = json.loads((HERE / "scores.json").read_text())
STORES: dict[str, dict[str, Any]] = json.loads((HERE / "stores.json").read_text())
OWN = ("hist-gradient-boosting", "random-forest", "lightgbm", "xgboost", "rankboost")
"""Models whose scores this package adds up itself, in one order, without the library they came from: equal bits."""
SINCE = {cc.BoostedRanker, cc.CopelandRanker}
"""Rankers that 0.1 did not have."""
RANKERS = {
    "aggregation": cc.AggregationRanker,
    "edges": cc.EdgeRanker,
    "lists": cc.ListRanker,
    "rankboost": cc.RankBoostRanker,
    "per": cc.QueryRankers,
    "abstaining": cc.AbstainingRanker,
}
OF_DUCKDB_2 = pytest.mark.skipif(
    Version(duckdb.__version__) < Version("2"),
    reason="DuckDB 1 reads no files of DuckDB 2, by which these were written",
)


def test_there_is_a_model_of_every_ranker_and_none_without_scores() -> None:
    assert {path.name for path in (HERE / "models").iterdir()} == set(SCORES)
    assert {name.partition("-")[0] for name in SCORES} == set(RANKERS)
    rankers = {getattr(cc, name) for name in cc.__all__ if name.endswith(("Ranker", "Rankers"))}
    assert set(RANKERS.values()) == rankers - SINCE


@pytest.mark.parametrize("name", SCORES)
def test_models_load_and_score_as_they_did(name: str) -> None:
    ranker = cc.load_model(HERE / "models" / name)
    assert type(ranker) is RANKERS[name.partition("-")[0]]
    rows = cc.read_features(HERE / ("items.csv" if name == "per-query" else "new-items.csv"))
    scores, expected = ranker.predict(rows), np.array(SCORES[name]["scores"])
    if name.removeprefix("aggregation-") in OWN:
        assert scores.tolist() == expected.tolist()
    else:  # sums in the order of the machine's linear algebra
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-13)
    if "tiers" in SCORES[name]:
        half = len(rows) // 2
        assert ranker.tiers(rows).tolist() == SCORES[name]["tiers"]
        assert ranker.predict_pairs(rows.X[:half], rows.X[half:]).tolist() == SCORES[name]["pairs"]


@pytest.mark.parametrize("name", [name for name in SCORES if name != "per-query"])
def test_models_are_kept_again_as_they_are(name: str, tmp_path: Path) -> None:
    rows = cc.read_features(HERE / "new-items.csv")
    ranker = cc.load_model(HERE / "models" / name)
    again = cc.load_model(cc.save_model(ranker, tmp_path / "model"))
    assert again.predict(rows).tolist() == ranker.predict(rows).tolist()


@OF_DUCKDB_2
@pytest.mark.parametrize("name", STORES)
def test_stores_read_to_the_counts_they_had(name: str, tmp_path: Path) -> None:
    with tarfile.open(HERE / "stores.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    store, expected = cc.Store.open(tmp_path / f"{name}.store"), STORES[name]
    votes = store.preferences()
    cluster = "worker" if name == "clusters" else None
    days = [cc.read(HERE / f"votes-{day}.csv", cluster=cluster) for day in ("monday", "tuesday")]
    assert votes == days[0] + days[1]
    assert {fact: votes.summary()[fact] for fact in expected["summary"]} == expected["summary"]
    assert [[one.name, one.rows, one.judgments] for one in store.info().batches] == expected["batches"]
    board = cc.rank(votes).to_arrow()
    assert board["item"].to_pylist() == expected["item"]
    change = pd.DataFrame({"query": board["query"].to_pylist(), "component": board["component"].to_pylist()})
    change["by"] = board["score"].to_numpy() - np.array(expected["score"])
    same = change.groupby(["query", "component"])["by"].agg(np.ptp)  # 0.1 had another zero in each component
    np.testing.assert_allclose(same, 0.0, atol=1e-9)


@OF_DUCKDB_2
@pytest.mark.parametrize("name", STORES)
def test_stores_are_written_on(name: str, tmp_path: Path) -> None:
    with tarfile.open(HERE / "stores.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    store = cc.Store(tmp_path / f"{name}.store")
    options = {"cluster": "worker"} if name == "clusters" else {}
    before = store.preferences()
    assert store.ingest(HERE / "votes-monday.csv", **options).judgments == 0  # known by its content
    assert store.ingest(HERE / "held-out-votes.csv", **options).judgments == 120
    both = before + cc.read(HERE / "held-out-votes.csv", **options)
    assert store.preferences() == both
    store.compact()
    store.verify()
    assert store.preferences() == both

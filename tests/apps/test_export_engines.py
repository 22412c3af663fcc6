"""What is exported for Elasticsearch and Solr, read as their documents and classes say, scores as ``predict`` does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import linear_model

import concordant as cc
from exported import (
    LINEAR,
    NETWORKS,
    TREES,
    elasticsearch_score,
    fitted,
    held_out,
    learning,
    solr_score,
)

SCORE = {"elasticsearch": elasticsearch_score, "opensearch": elasticsearch_score, "solr": solr_score}


def exported(ranker: Any, folder: Path, to: str, **options: Any) -> tuple[Any, tuple[str, ...]]:
    made = cc.export_model(ranker, folder / "model.json", to=to, **options)
    return json.loads(made.path.read_text(encoding="utf-8")), made.notes


def singles(X: np.ndarray) -> np.ndarray:
    """Features as the engines have them."""
    return X.astype(np.float32).astype(np.float64)


def scores(model: Any, X: np.ndarray, to: str, number: type = np.float32) -> np.ndarray:
    names = [str(place + 1) for place in range(X.shape[1])]
    return np.array([SCORE[to](model, dict(zip(names, row, strict=True)), number) for row in X])


@pytest.mark.parametrize("to", list(SCORE))
@pytest.mark.parametrize("kind", list(LINEAR))
def test_linear_scorers(kind: str, to: str, tmp_path: Path) -> None:
    X, ranker = singles(held_out()[::30]), fitted(kind)
    model, notes = exported(ranker, tmp_path, to)
    lower = ranker.regressor_.intercept_ * ranker.regressor_unit_ if kind != "none" else 0.0
    wanted = ranker.predict(X) - lower
    assert [f"lower by {lower:.6g}" in note for note in notes] == [True] * bool(lower)
    assert np.abs(scores(model, X, to) - wanted).max() <= 1e-6
    exact = np.abs(scores(model, X, to, np.float64) - wanted).max()
    assert exact <= 1e-7  # the numbers in the file are those of float32


@pytest.mark.parametrize("to", list(SCORE))
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("kind", list(TREES))
def test_trees(kind: str, log: bool, to: str, tmp_path: Path) -> None:
    ranker = fitted(kind, log)
    X = singles(held_out()[::30])
    model, notes = exported(ranker, tmp_path, to)
    assert notes == ()
    assert np.abs(scores(model, X, to) - ranker.predict(X)).max() <= 2e-6


@pytest.mark.parametrize("kind", list(NETWORKS))
def test_networks_in_solr(kind: str, tmp_path: Path) -> None:
    X, ranker = singles(held_out()[::30]), fitted(kind)
    model, _ = exported(ranker, tmp_path, "solr")
    assert model["class"] == "org.apache.solr.ltr.model.NeuralNetworkModel"
    assert np.abs(scores(model, X, "solr") - ranker.predict(X)).max() <= 2e-6
    with pytest.raises(cc.UsageError, match="is a network: Elasticsearch takes a linear scorer"):
        exported(ranker, tmp_path, "elasticsearch")


@pytest.mark.parametrize("to", ["elasticsearch", "solr"])
@pytest.mark.parametrize("cut", [0.0, 0.3, -7.25, 1e-7, 12345.678, 16777217.0])
def test_a_threshold_and_its_neighbours_in_float32(cut: float, to: str, tmp_path: Path) -> None:
    low, high = np.float32(cut - abs(cut) / 2 - 1), np.float32(cut + abs(cut) / 2 + 1)
    X = np.array([[low], [cut], [cut], [high]] * 10, float)
    ranker = cc.RankBoostRanker(3).fit(X, cc.Judged.of_labels(np.tile([0, 0, 0, 1], 10), query=np.repeat(range(10), 4)))
    threshold = ranker.rules_.threshold
    near = np.float32(threshold[:, None]) + np.float32(0)
    below, above = np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))
    tried = np.unique(np.concatenate((below, near, above)).astype(np.float64))[:, None]
    if to == "solr":  # whose slack of 1e-6 does not go away to the last bit next to 0
        tried = tried[np.abs(threshold[:, None] - tried[:, 0]).min(axis=0) > 1e-12] if abs(cut) < 1e-5 else tried
    model, _ = exported(ranker, tmp_path, to)
    assert scores(model, tried, to) == pytest.approx(ranker.predict(tried), abs=1e-6)


def test_rules_and_where_missing_values_go(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = singles(rng.normal(size=(200, 2)))
    X[rng.random(X.shape) < 0.3] = np.nan
    judged = cc.Judged.of_labels(np.isnan(X[:, 0]) * 1, query=np.repeat(np.arange(10), 20))
    for ranker in (
        cc.RankBoostRanker(10, missing="keep"),
        cc.ListRanker(regressor=TREES["gradient"](), missing="mean"),
    ):
        ranker.fit(X, judged)
        model, _ = exported(ranker, tmp_path, "elasticsearch")
        rows = [{str(at + 1): value for at, value in enumerate(row) if not np.isnan(value)} for row in X]
        found = np.array([elasticsearch_score(model, row) for row in rows])
        assert found == pytest.approx(ranker.predict(X), rel=1e-6, abs=1e-6)
        _, notes = exported(ranker, tmp_path, "solr")
        assert ["to be 0" in note for note in notes] == [True]
        same, notes = exported(ranker, tmp_path, "opensearch")
        assert same == model and ["from 3.8 on" in note for note in notes] == [True]
    # where none may be missing, the plugin sends one where 0 goes
    ranker = cc.RankBoostRanker(10).fit(np.nan_to_num(X), judged)
    model, _ = exported(ranker, tmp_path, "elasticsearch")
    assert elasticsearch_score(model, {}) == pytest.approx(ranker.predict(np.zeros((1, 2)))[0], abs=1e-6)


def test_what_stands_in_the_files(tmp_path: Path) -> None:
    names = [f"feature {place}" for place in range(42)]
    body, _ = exported(fitted("none"), tmp_path, "elasticsearch", name="web", feature_names=names)
    assert set(body) == {"model"} and set(body["model"]) == {"name", "model"} and body["model"]["name"] == "web"
    assert set(body["model"]["model"]) == {"type", "feature_normalizers", "definition"}
    assert list(json.loads(body["model"]["model"]["definition"])) == names
    model, _ = exported(fitted("none"), tmp_path, "solr", name="web", feature_names=names)
    assert set(model) == {"class", "name", "store", "features", "params"}
    assert [one["name"] for one in model["features"]] == names and list(model["params"]["weights"]) == names
    norm = model["features"][0]["norm"]
    assert norm["class"] == "org.apache.solr.ltr.norm.StandardNormalizer" and set(norm["params"]) == {"avg", "std"}
    as_given = cc.ListRanker(standardise=False).fit(*learning())
    body, _ = exported(as_given, tmp_path, "elasticsearch")
    assert "feature_normalizers" not in body["model"]["model"]


@pytest.mark.parametrize("to", list(SCORE))
def test_what_has_no_form_is_refused_in_one_line(to: str, tmp_path: Path) -> None:
    features, labels = learning()
    cases = [
        (cc.ListRanker(log=True), {}, "no logarithm of a feature"),
        (cc.ListRanker(), {"feature_names": ["a"]}, "1 feature names for 42 features"),
        (cc.ListRanker(), {"feature_names": ["a"] * 42}, "must differ"),
        (cc.ListRanker(), {"feature_names": ["", *map(str, range(41))]}, "cannot name ''"),
        (cc.ListRanker(), {"feature_names": ["a\nb", *map(str, range(41))]}, "cannot name"),
        (cc.ListRanker(), {"name": " "}, "must be printable"),
    ]
    for ranker, options, said in cases:
        with pytest.raises(cc.UsageError, match=said) as error:
            exported(ranker.fit(features, labels), tmp_path, to, **options)
        assert "\n" not in str(error.value)
    broken = cc.ListRanker().fit(features, labels)
    for weight, said in ((np.inf, "not finite"), (1e200, "float32")):
        broken.coef_standardised_ = np.full(42, weight)
        with pytest.raises(cc.UsageError, match=said):
            exported(broken, tmp_path, to)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("to", ["elasticsearch", "opensearch"])
def test_a_sum_is_two_models_that_a_search_adds_up(to: str, tmp_path: Path) -> None:
    features, labels = learning()
    ranker = cc.BoostedRanker(rounds=12, folds=0).fit(features, labels)
    X = singles(held_out()[::30])
    made, notes = exported(ranker, tmp_path, to, name="web")
    assert set(made) == {"models", "rescore"} and "two models" in notes[-1]
    found = np.full(len(X), 7.0)  # what the search thought of each document
    called = {model["model"]["name"]: model for model in made["models"]}
    for step in made["rescore"]:  # one after another, as the reference says of several
        query = step["query"]
        assert query["score_mode"] == "total" and step["window_size"] == made["rescore"][0]["window_size"]
        model = called[query["rescore_query"]["sltr"]["model"]]
        found = query["query_weight"] * found + query["rescore_query_weight"] * scores(model, X, to)
    assert np.abs(found - ranker.predict(X)).max() <= 5e-6
    with pytest.raises(cc.UsageError, match="elasticsearch and opensearch add up two models, onnx and json"):
        exported(ranker, tmp_path, "solr")
    with pytest.raises(cc.UsageError, match="no logarithm of a feature"):
        exported(cc.BoostedRanker(rounds=2, folds=0, log=True).fit(features, labels), tmp_path, to)


def test_names_that_solr_does_not_log(tmp_path: Path) -> None:
    names = ["a=b", *map(str, range(41))]
    exported(fitted("none"), tmp_path, "elasticsearch", feature_names=names)
    with pytest.raises(cc.UsageError, match="Solr cannot name 'a=b'"):
        exported(fitted("none"), tmp_path, "solr", feature_names=names)


def test_a_tree_that_is_too_deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concordant.apps.export.search_engines.DEEPEST", 3)
    for to in ("elasticsearch", "solr"):
        with pytest.raises(cc.UsageError, match="more than 3 levels deep"):
            exported(fitted("tree"), tmp_path, to)


def test_a_constant_alone(tmp_path: Path) -> None:
    flat = linear_model.Ridge().fit([[0.0], [1.0]], [2.0, 2.0])
    ranker = cc.AbstainingRanker(flat, gamma=0.1, scale="none")
    ranker.fit([[0.0], [1.0]], cc.Judged.of_labels([0, 1]))
    model, notes = exported(ranker, tmp_path, "elasticsearch", feature_names=["1"])
    assert elasticsearch_score(model, {"1": 5.0}) == 0.0
    assert any("lower by 2" in note for note in notes)


@pytest.mark.parametrize("coded", [False, True])
def test_a_linear_scorer_and_trees_are_two_models_and_a_rescore(tmp_path, coded):
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 3)).astype(np.float32).astype(float)
    X[:, 2] = rng.integers(0, 12, 400)
    grades = np.clip(np.round(X[:, 0] + X[:, 1] ** 2 + (X[:, 2] % 2)), 0, 4)
    rows = (X, np.repeat(np.arange(20), 20), np.arange(400))
    given = {"rounds": 20, "folds": 0, "options": {"min_data_per_group": 5}}
    ranker = cc.BoostedRanker(categories=[2] if coded else None, **given).fit(rows, grades)
    body, notes = exported(ranker, tmp_path, "elasticsearch", name="both")
    models = {one["model"]["name"]: one for one in body["models"]}
    assert list(models) == ["both-linear", "both-trees"] and any("two models" in note for note in notes)
    found = []
    for row in X[:60]:
        score = 17.0  # of the search itself
        for step in body["rescore"]:
            query = step["query"]
            assert query["score_mode"] == "total"
            more = elasticsearch_score(
                models[query["rescore_query"]["sltr"]["model"]], dict(zip("123", row, strict=True))
            )
            score = query["query_weight"] * score + query["rescore_query_weight"] * more
        found.append(score)
    np.testing.assert_allclose(found, ranker.predict(X[:60]), atol=1e-5)
    with pytest.raises(cc.UsageError, match="elasticsearch and opensearch add up two models"):
        exported(ranker, tmp_path, "solr")
    X = X.copy()
    X[0, 0] = np.nan
    with pytest.raises(cc.UsageError, match="learned from missing values"):
        exported(cc.BoostedRanker(**given).fit((X, *rows[1:]), grades), tmp_path, "elasticsearch")
    logs = cc.BoostedRanker(log=True, **given).fit(rows, grades)
    with pytest.raises(cc.UsageError, match="no logarithm"):
        exported(logs, tmp_path, "elasticsearch")

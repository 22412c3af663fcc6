"""ONNX and JSON score as ``predict`` does: in onnxruntime, in plain Python, in node."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import ensemble, gaussian_process, kernel_ridge, linear_model, neighbors, pipeline, preprocessing, svm
from threadpoolctl import threadpool_limits

import concordant as cc
from concordant.apps.commands.reading_log import labelled_like
from concordant.apps.export.terms import terms_of
from concordant.apps.models.regressors import booster_text, booster_trees
from exported import (
    LINEAR,
    NETWORKS,
    REAL,
    TREES,
    elasticsearch_score,
    fitted,
    held_out,
    json_score,
    learning,
    solr_score,
)

LOOSE = {"xgboost": 1e-6}
"""XGBoost adds its trees up in float32; all else is float64 to the last digits."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small fits on many threads wait for one another."""
    with threadpool_limits(1):
        yield


def session(ranker: Any, folder: Path, **options: Any) -> Callable[[np.ndarray], np.ndarray]:
    made = cc.export_model(ranker, folder / "model.onnx", to="onnx", **options)
    onnx.checker.check_model(onnx.load(made.path), full_check=True)
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3
    quiet.intra_op_num_threads = 1
    run = onnxruntime.InferenceSession(made.path, quiet, providers=["CPUExecutionProvider"])
    assert [(one.name, one.type) for one in run.get_inputs()] == [("features", "tensor(double)")]
    assert [(one.name, one.type, one.shape) for one in run.get_outputs()] == [("scores", "tensor(double)", ["rows"])]
    return lambda X: run.run(None, {"features": np.ascontiguousarray(X, np.float64)})[0]


def in_json(ranker: Any, folder: Path) -> dict[str, Any]:
    return json.loads(cc.export_model(ranker, folder / "model.json", to="json").path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("kind", [*TREES, *NETWORKS, *LINEAR])
def test_real_features_score_as_predict(kind: str, log: bool, tmp_path: Path) -> None:
    ranker, X = fitted(kind, log), held_out()
    wanted, close = ranker.predict(X), LOOSE.get(kind, 1e-12)
    score = session(ranker, tmp_path)
    assert np.abs(score(X) - wanted).max() <= close
    assert score(X[:0]).shape == (0,) and score(X[:1]).shape == (1,)
    scorer = in_json(ranker, tmp_path)
    assert max(abs(json_score(scorer, x) - one) for x, one in zip(X[::20], wanted[::20], strict=True)) <= close


def edges(kind: str, log: bool) -> np.ndarray:
    """Rows whose values are the thresholds of the trees and their neighbours, and numbers that are far away."""
    trees = terms_of(fitted(kind, log)).trees
    inner = trees.left != np.arange(len(trees.left))
    X = np.repeat(held_out()[:1], 3 * min(inner.sum(), 400), axis=0)
    place = np.arange(len(X))
    node = np.flatnonzero(inner)[place // 3]
    cut = trees.threshold[node]
    beside = np.stack([np.nextafter(cut, -np.inf), cut, np.nextafter(cut, np.inf)])
    X[place, trees.feature[node]] = np.clip(beside[place % 3, place], -3e38, 3e38)
    return X


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("kind", list(TREES))
def test_values_at_thresholds_take_the_same_branch(kind: str, log: bool, tmp_path: Path) -> None:
    X, ranker = edges(kind, log), fitted(kind, log)
    wanted = ranker.predict(X)
    assert len(np.unique(wanted)) > 3
    assert np.abs(session(ranker, tmp_path)(X) - wanted).max() <= LOOSE.get(kind, 1e-12)
    scorer = in_json(ranker, tmp_path)
    assert max(abs(json_score(scorer, x) - one) for x, one in zip(X[::9], wanted[::9], strict=True)) <= 1e-6


@pytest.fixture(scope="module")
def gaps() -> tuple[np.ndarray, cc.Judged]:
    """Rows of small numbers, many of them missing, and labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3)) * [1.0, 100.0, 1e-3]
    X[rng.random(X.shape) < 0.2] = np.nan
    labels = np.where(np.isnan(X[:, 0]), 2, (X[:, 0] > 0) + (X[:, 1] > 30).astype(int))
    return X, cc.Judged.of_labels(labels, query=np.repeat(np.arange(12), 20))


NUMBERS = st.one_of(st.floats(-3, 3), st.floats(-1e30, 1e30), st.just(np.nan), st.sampled_from([0.0, -0.0, 5e-324]))


@pytest.mark.parametrize("missing", ["mean", "median", "zero", "keep"])
@pytest.mark.parametrize("kind", ["linear", "hist", "forest", "xgboost", "lightgbm", "rules"])
def test_missing_values_and_any_numbers(kind: str, missing: str, gaps: Any, tmp_path: Path) -> None:
    X, judged = gaps
    if kind == "linear" and missing == "keep":
        pytest.skip("a linear scorer needs a fill")
    if kind == "rules":
        ranker: Any = cc.RankBoostRanker(20, missing=missing).fit(X, judged)
    else:
        regressor = None if kind == "linear" else TREES[kind]()
        ranker = cc.ListRanker(regressor=regressor, missing=missing).fit(X, judged)
    score, scorer = session(ranker, tmp_path), in_json(ranker, tmp_path)

    @settings(max_examples=25, deadline=None, database=None)
    @given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=8))
    def holds(rows: list[tuple[float, ...]]) -> None:
        rows = np.array(rows, float)
        wanted = ranker.predict(rows)
        size = np.maximum(1.0, np.abs(wanted))
        assert (np.abs(score(rows) - wanted) / size).max() <= 1e-6
        plain = np.array([json_score(scorer, x) for x in rows])
        assert (np.abs(plain - wanted) / size).max() <= 1e-6

    holds()
    assert np.abs(score(X) - ranker.predict(X)).max() <= 1e-6


def test_a_missing_value_that_is_not_allowed_has_no_score(tmp_path: Path) -> None:
    X = held_out()[:3].copy()
    X[1, 5] = np.nan
    for kind in ("none", "hist"):
        scores = session(fitted(kind), tmp_path)(X)
        assert np.isnan(scores).tolist() == [False, True, False]
        assert np.isnan(json_score(in_json(fitted(kind), tmp_path), X[1]))


def test_regressor_on_top_of_a_linear_scorer(tmp_path: Path) -> None:
    votes = cc.read(REAL / "votes.csv.gz")
    features, _ = labelled_like(cc.read_features(REAL / "train.txt.gz"), votes)
    ranker = cc.AggregationRanker(regressor=TREES["hist"](), informed=True).fit(features, votes)
    assert hasattr(ranker, "scorer_standardised_")
    X = held_out()
    assert np.abs(session(ranker, tmp_path)(X) - ranker.predict(X)).max() <= 1e-12
    assert abs(json_score(in_json(ranker, tmp_path), X[0]) - ranker.predict(X[:1])[0]) <= 1e-12
    with pytest.raises(cc.UsageError, match="a sum of a linear scorer"):
        cc.export_model(ranker, tmp_path / "x", to="solr")


@pytest.mark.parametrize("kind", ["none", "relu", "tanh", "svr"])
def test_one_feature(kind: str, tmp_path: Path) -> None:
    # onnxruntime fuses a scalar beside a MatMul and rounds it to float32
    X = np.random.default_rng(0).normal(size=(60, 1)) * 7 + 3
    judged = cc.Judged.of_labels(np.arange(60) % 4, query=np.arange(60) // 10)
    regressor = svm.SVR(kernel="sigmoid") if kind == "svr" else {**NETWORKS, **LINEAR}[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker = cc.ListRanker(regressor=regressor).fit(X, judged)
    assert np.abs(session(ranker, tmp_path)(X) - ranker.predict(X)).max() <= 1e-12


FOREIGN = {
    "rbf": lambda: svm.SVR(),
    "poly": lambda: svm.NuSVR(kernel="poly"),
    "sigmoid": lambda: svm.SVR(kernel="sigmoid", C=0.1),
    "linear": lambda: svm.SVR(kernel="linear"),
    "linear machine": lambda: svm.LinearSVR(random_state=0, max_iter=20_000),
    "gaussian process": lambda: gaussian_process.GaussianProcessRegressor(alpha=0.1),
    "bagging": lambda: ensemble.BaggingRegressor(n_estimators=4, random_state=0),
    "pipeline": lambda: pipeline.make_pipeline(preprocessing.StandardScaler(), NETWORKS["relu"]()),
    "theil-sen": lambda: linear_model.TheilSenRegressor(max_subpopulation=200, random_state=0),
}


@pytest.mark.parametrize("kind", list(FOREIGN))
def test_regressors_that_only_a_pickle_keeps(kind: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker = cc.ListRanker(regressor=FOREIGN[kind]()).fit(*learning())
        assert np.abs(session(ranker, tmp_path)(held_out()) - ranker.predict(held_out())).max() <= 1e-6
    with pytest.raises(cc.UsageError, match="has no plain form"):
        cc.export_model(ranker, tmp_path / "x", to="json")
    with pytest.raises(cc.UsageError, match="is neither: Solr takes"):
        cc.export_model(ranker, tmp_path / "x", to="solr")
    assert not (tmp_path / "x").exists()


def test_without_a_converter_it_is_refused(tmp_path: Path) -> None:
    ranker = cc.ListRanker(regressor=kernel_ridge.KernelRidge()).fit(*learning())
    with pytest.raises(cc.UsageError, match="KernelRidge cannot be exported to ONNX") as error:
        cc.export_model(ranker, tmp_path / "x", to="onnx")
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())


def test_a_converter_that_disagrees_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    regressor = gaussian_process.GaussianProcessRegressor(alpha=1.0, optimizer=None)
    ranker = cc.ListRanker(regressor=regressor).fit(*learning())
    monkeypatch.setattr("concordant.apps.export.onnx.CLOSE", -1.0)
    with pytest.raises(cc.UsageError, match="away from predict"):
        cc.export_model(ranker, tmp_path / "x", to="onnx")


@pytest.mark.parametrize("inside", [False, True])
def test_neighbours_are_refused(inside: bool, tmp_path: Path) -> None:
    regressor: Any = neighbors.KNeighborsRegressor(3)
    if inside:
        regressor = pipeline.make_pipeline(preprocessing.StandardScaler(), regressor)
    ranker = cc.ListRanker(regressor=regressor).fit(*learning())
    with pytest.raises(cc.UsageError, match="equally far"):
        cc.export_model(ranker, tmp_path / "x", to="onnx")
    assert not list(tmp_path.iterdir())


def test_torch_needs_no_torch_over_there(tmp_path: Path) -> None:
    ct = pytest.importorskip("concordant.torch")
    for hidden in (0, 6):
        ranker = cc.ListRanker(regressor=ct.TorchRegressor(hidden, steps=5)).fit(*learning())
        assert np.abs(session(ranker, tmp_path)(held_out()) - ranker.predict(held_out())).max() <= 1e-12


def test_queries_and_abstention(tmp_path: Path) -> None:
    votes = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], query=["low", "high"])
    rankers = cc.QueryRankers().fit({"item": ["a", "b", "c"], "size": [1.0, 2.0, 3.0]}, votes)
    with pytest.raises(cc.UsageError, match="each of 2 queries; name one"):
        session(rankers, tmp_path)
    with pytest.raises(cc.UsageError, match="no ranker of query 'middle'"):
        session(rankers, tmp_path, query="middle")
    X = np.array([[1.0], [2.0]])
    assert np.abs(session(rankers, tmp_path, query="high")(X) - rankers.rankers_["high"].predict(X)).max() < 1e-15
    careful = cc.AbstainingRanker(fitted("hist"), gamma=0.1).fit()
    made = cc.export_model(careful, tmp_path / "a.onnx", to="onnx")
    assert "scores alone" in made.notes[0]
    assert np.abs(session(careful, tmp_path)(held_out()) - careful.predict(held_out())).max() <= 1e-12
    bare = cc.AbstainingRanker(linear_model.Ridge().fit(held_out()[:, :2], held_out()[:, 3]), gamma=0.1, scale="none")
    bare.fit(*learning_pairs())
    score = session(bare, tmp_path)
    assert np.abs(score(held_out()[:, :2]) - bare.predict(held_out()[:, :2])).max() <= 1e-12


def learning_pairs() -> tuple[np.ndarray, cc.Judged]:
    features, labels = learning()
    return features.X[:, :2], cc.Judged.of_labels(labels, query=features.query)


def test_the_constant_of_trees_is_in_every_format(tmp_path: Path) -> None:
    X = held_out()[:100, :2].astype(np.float32).astype(float)
    high = ensemble.GradientBoostingRegressor(n_estimators=3).fit(X, X[:, 0] + 5)
    ranker = cc.AbstainingRanker(high, gamma=0.1, scale="none").fit(*learning_pairs())
    wanted = ranker.predict(X)
    assert np.abs(session(ranker, tmp_path)(X) - wanted).max() <= 1e-12
    scorer = in_json(ranker, tmp_path)
    assert np.abs([json_score(scorer, x) for x in X] - wanted).max() <= 1e-12
    for to, score in (("elasticsearch", elasticsearch_score), ("solr", solr_score)):
        model = json.loads(cc.export_model(ranker, tmp_path / to, to=to).path.read_text())
        assert np.abs([score(model, dict(zip("12", x, strict=True))) for x in X] - wanted).max() <= 1e-5


def test_what_the_file_says_of_itself(tmp_path: Path) -> None:
    names = [f"f{place}" for place in range(42)]
    made = cc.export_model(fitted("ridge"), tmp_path / "web.onnx", to="onnx", feature_names=names)
    model = onnx.load(made.path)
    held = {one.key: one.value for one in model.metadata_props}
    assert json.loads(held["features"]) == names and held["missing"] == "raise"
    assert held["concordant"] == model.producer_version == cc.__version__
    assert "web" in model.doc_string and model.ir_version == 10
    assert made.size == made.path.stat().st_size


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_page_of_javascript_in_the_document(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    (tmp_path / "scorer.mjs").write_text(re.search(r"```js\n(.*?)```", text, re.DOTALL)[1], encoding="utf-8")
    X = held_out()[:60]
    cases = [(fitted(kind, log), X) for kind in ("none", "hist", "tanh", "logistic") for log in (False, True)]
    gappy = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    for missing in ("mean", "keep"):
        ranker = cc.ListRanker(regressor=TREES["hist"](), missing=missing).fit(*learning())
        cases.append((ranker, gappy))
    wanted = []
    for place, (ranker, rows) in enumerate(cases):
        cc.export_model(ranker, tmp_path / f"{place}.json", to="json")
        some = [[None if np.isnan(value) else value for value in row] for row in rows.tolist()]
        (tmp_path / f"{place}-rows.json").write_text(json.dumps(some))
        wanted.append(ranker.predict(rows))
    (tmp_path / "run.mjs").write_text(
        "import { readFileSync } from 'node:fs';\nimport { score } from './scorer.mjs';\n"
        "const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url)));\n"
        f"const all = [...Array({len(cases)}).keys()];\n"
        "console.log(JSON.stringify(all.map((i) => read(`${i}-rows.json`).map((x) => score(read(`${i}.json`), x)))));\n"
    )
    said = subprocess.run(["node", tmp_path / "run.mjs"], capture_output=True, text=True, check=True).stdout
    assert np.abs(np.array(json.loads(said)) - np.array(wanted)).max() <= 1e-12


@pytest.mark.parametrize(
    ("settings_of", "said"),
    [
        ({"objective": "poisson"}, "objective poisson"),
        ({"zero_as_missing": True}, "zero_as_missing"),
        ({"linear_tree": True}, "linear models in its leaves"),
    ],
)
def test_boosters_beyond_sums_of_trees_are_refused(settings_of: dict[str, Any], said: str) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    X = np.abs(np.random.default_rng(0).normal(size=(200, 2)))
    made = lightgbm.LGBMRegressor(n_estimators=2, verbose=-1, n_jobs=1, **settings_of).fit(X, X[:, 0] + 1)
    with pytest.raises(cc.UsageError, match=said):
        booster_trees(*booster_text(made))


def test_lightgbm_takes_a_missing_value_it_never_saw_for_zero() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    X = np.random.default_rng(0).normal(size=(300, 2))
    made = lightgbm.LGBMRegressor(n_estimators=10, verbose=-1, n_jobs=1).fit(X, X[:, 0] * X[:, 1])
    X[::2, 0], X[1::3, 1] = np.nan, np.nan
    assert np.abs(booster_trees(*booster_text(made)).predict(X) - made.booster_.predict(X)).max() <= 1e-12


def test_lightgbm_forest_and_categories() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    X = np.random.default_rng(0).integers(0, 5, size=(300, 2)).astype(float)
    forest = lightgbm.LGBMRegressor(
        n_estimators=5, boosting_type="rf", subsample=0.5, subsample_freq=1, verbose=-1, n_jobs=1
    ).fit(X, X[:, 0] ** 2)
    assert np.abs(booster_trees(*booster_text(forest)).predict(X) - forest.predict(X)).max() <= 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grouped = lightgbm.LGBMRegressor(n_estimators=2, verbose=-1, n_jobs=1).fit(
            X, X[:, 0] % 2, categorical_feature=[0]
        )
    rows = np.vstack((X, [[np.nan, 1.0], [-1.0, 2.0], [2.5, 0.0], [-0.5, 0.0], [99.0, 3.0], [4.999, np.nan]]))
    assert np.abs(booster_trees(*booster_text(grouped)).predict(rows) - grouped.booster_.predict(rows)).max() <= 1e-12


def test_sets_of_categories_are_splits_on_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.integers(0, 60, 4000), rng.integers(0, 40, 4000), rng.normal(size=4000))).astype(float)
    X[::11, 0], X[::13, 1] = np.nan, np.nan
    effect = rng.normal(size=(60, 40))
    y = np.where(np.isnan(X[:, :2]).any(axis=1), 3.0, effect[np.nan_to_num(X[:, 0]).astype(int), 3]) + X[:, 2]
    y += rng.normal(size=40)[np.nan_to_num(X[:, 1]).astype(int)] * (X[:, 2] > 0)
    settings = {"objective": "regression", "min_data_per_group": 5, "cat_smooth": 1.0, "num_leaves": 31}
    data = lightgbm.Dataset(X, y, categorical_feature=[0, 1])
    made = lightgbm.train(settings | {"verbosity": -1, "num_threads": 1}, data, 20)
    text = made.model_to_string()
    assert text.count("num_cat=0") < 10
    rows = np.column_stack((rng.integers(-2, 70, 3000), rng.integers(-2, 50, 3000), rng.normal(size=3000)))
    rows[:500, :2] += rng.random((500, 2))
    rows[::7, 0], rows[::5, 1] = np.nan, np.nan
    assert np.abs(booster_trees("lightgbm", text).predict(rows) - made.predict(rows)).max() <= 1e-12
    monkeypatch.setattr("concordant.apps.models.categories.MOST_NODES", 20)
    with pytest.raises(cc.UsageError, match="splits on more categories"):
        booster_trees("lightgbm", text)


BEYOND = {
    "dart|dropout": {"booster": "dart", "rate_drop": 0.5},  # from XGBoost 3.4 on trees of gbtree with weights
    "gblinear": {"booster": "gblinear"},
    "count:poisson": {"objective": "count:poisson"},
}


@pytest.mark.filterwarnings("ignore:.*deprecated:UserWarning")
@pytest.mark.parametrize("said", BEYOND)
def test_xgboost_beyond_sums_of_trees_is_refused(said: str) -> None:
    xgboost = pytest.importorskip("xgboost")
    X = np.random.default_rng(0).random((100, 2))
    made = xgboost.XGBRegressor(n_estimators=6, n_jobs=1, **BEYOND[said]).fit(X, X[:, 0])
    with pytest.raises(cc.UsageError, match=said):
        booster_trees(*booster_text(made))

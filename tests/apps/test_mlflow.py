"""Rankers as models of MLflow, by MLflow itself (skipped without)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import concordant as cc

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own


@pytest.fixture
def flavour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("mlflow", reason="the extra mlflow")
    import mlflow

    from concordant import mlflow as flavour

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    return flavour


@pytest.fixture(params=[cc.EdgeRanker("ranknet"), cc.AggregationRanker("log-odds", order="all")])
def fitted(request: pytest.FixtureRequest) -> tuple[Any, pd.DataFrame]:
    votes = cc.Preferences.from_comparisons(["b", "c", "c", "a"] * 5, ["a", "b", "a", "b"] * 5)
    table = pd.DataFrame({"item": ["a", "b", "c"], "long": [1.0, 1.1, 3.0], "age": [0.0, 2.0, 1.0]})
    return request.param.fit(table, votes), table


def test_mlflow_gives_the_scores_of_the_ranker(flavour: Any, fitted: tuple[Any, pd.DataFrame], tmp_path: Path) -> None:
    import mlflow

    ranker, table = fitted
    flavour.save_model(ranker, tmp_path / "kept")
    assert not list(tmp_path.glob("kept/**/*.pkl"))
    for given in (table, table[["age", "long"]], table.assign(other="x")):
        found = mlflow.pyfunc.load_model(str(tmp_path / "kept")).predict(given)
        assert np.array_equal(found, ranker.predict(table))
    assert np.array_equal(flavour.load_model(str(tmp_path / "kept")).predict(table), ranker.predict(table))
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "kept"))
    for given in (table.to_dict("list"), table.drop(columns="item").to_dict("records")):
        assert np.array_equal(loaded.predict(given), ranker.predict(table))
    with pytest.raises(cc.InputError, match="the table has no column 'age', which the model was fitted to"):
        loaded.predict(table[["long"]])
    with pytest.raises(cc.UsageError, match="is there already"):
        flavour.save_model(ranker, tmp_path / "kept")


def test_a_model_of_fit_is_logged_in_a_run(flavour: Any, fitted: tuple[Any, pd.DataFrame], tmp_path: Path) -> None:
    import mlflow

    ranker, table = fitted
    place = cc.save_model(ranker, tmp_path / "model")
    with mlflow.start_run():
        logged = flavour.log_model(place, "ranker")
    found = mlflow.pyfunc.load_model(logged.model_uri)
    assert np.array_equal(found.predict(table), ranker.predict(table))
    assert found.metadata.flavors["concordant"]["sha256"] == cc.load_model(place).origin_["hash"]


def test_without_mlflow_the_package_is_named(monkeypatch: pytest.MonkeyPatch, fitted: Any, tmp_path: Path) -> None:
    import sys

    from concordant import mlflow as flavour

    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(cc.Unavailable, match=r'pip install "concordant\[mlflow\]"'):
        flavour.save_model(fitted[0], tmp_path / "kept")

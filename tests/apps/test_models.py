"""Models on disk: what comes back is what was written, to the bit, and a changed byte is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import Lasso, LinearRegression, SGDRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.tree import DecisionTreeRegressor

from concordant.apps.models.directory import Contents, read_directory, write_directory
from concordant.apps.models.regressors import booster_text, plain_regressor, restored_regressor
from concordant.errors import InputError, UsageError


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(4)
    X = draw.normal(size=(400, 5))
    return X, X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + 0.1 * draw.normal(size=400)


REGRESSORS = (
    RandomForestRegressor(12, random_state=0),
    ExtraTreesRegressor(7, random_state=0, max_depth=4),
    DecisionTreeRegressor(max_depth=6),
    GradientBoostingRegressor(n_estimators=30),
    HistGradientBoostingRegressor(max_iter=30),
    HistGradientBoostingRegressor(max_iter=10, loss="absolute_error"),
    LinearRegression(),
    Lasso(0.01),
    SGDRegressor(random_state=0),
    MLPRegressor(hidden_layer_sizes=(8, 4), max_iter=2000, tol=1e-3, random_state=0),
    MLPRegressor(hidden_layer_sizes=(6,), activation="tanh", max_iter=2000, tol=1e-3, random_state=0),
)


@pytest.mark.parametrize("regressor", REGRESSORS, ids=lambda r: type(r).__name__)
def test_plain_form_predicts_as_the_original(regressor, data) -> None:
    X, y = data
    fitted = regressor.fit(X, y)
    found = plain_regressor(fitted)
    assert found is not None
    kind, plain = found
    assert np.allclose(plain.predict(X), fitted.predict(X), rtol=1e-12, atol=1e-12)
    values, arrays = plain.to_state()
    again = restored_regressor(kind, values, arrays, X.shape[1])
    assert np.array_equal(again.predict(X), plain.predict(X))


@pytest.mark.parametrize("regressor", [HistGradientBoostingRegressor(max_iter=20), DecisionTreeRegressor(max_depth=5)])
def test_missing_values_go_where_the_original_sends_them(regressor, data) -> None:
    X, y = data
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    fitted = regressor.fit(X, y)
    _, plain = plain_regressor(fitted)
    assert np.allclose(plain.predict(X), fitted.predict(X), rtol=1e-12)


@pytest.mark.parametrize("missing", [False, True])
def test_trees_give_a_row_the_same_bits_whatever_stands_beside_it(data, missing, monkeypatch) -> None:
    X, y = data
    if missing:
        X = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    _, plain = plain_regressor(HistGradientBoostingRegressor(max_iter=12).fit(X, y))
    X = X[:120]

    def walk(row: np.ndarray) -> float:
        total = 0.0
        for node in plain.root.tolist():
            while plain.left[node] != node:
                x = row[plain.feature[node]]
                left = plain.missing_left[node] if np.isnan(x) else x <= plain.threshold[node]
                node = plain.left[node] if left else plain.right[node]
            total += float(plain.value[node])
        return plain.base + plain.scale * total

    expected = np.array([walk(row) for row in X])
    for block in (7, 300, 1 << 16):
        monkeypatch.setattr("concordant.apps.models.regressors.BLOCK", block)
        assert np.array_equal(plain.predict(X[:30]), expected[:30])
        assert np.array_equal(plain.predict(np.asfortranarray(X)[30:]), expected[30:])
    assert all(plain.predict(X[at : at + 1])[0] == expected[at] for at in range(0, 120, 40))
    monkeypatch.setattr("concordant.apps.models.regressors.MANY", 0)  # compiled loops
    assert np.array_equal(plain.predict(X), expected)
    assert len(plain.predict(X[:0])) == 0


@pytest.mark.parametrize(("gaps", "compiled"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
def test_a_booster_as_plain_trees_has_the_bits_of_its_package(package, gaps, compiled, data, monkeypatch) -> None:
    module = pytest.importorskip(package)
    X, y = data
    if gaps:
        X = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    options = {"verbose": -1} if package == "lightgbm" else {"base_score": 0.3}
    made = {"lightgbm": "LGBMRegressor", "xgboost": "XGBRegressor"}[package]
    fitted = getattr(module, made)(n_estimators=60, n_jobs=1, **options).fit(X, y)
    kind, plain = plain_regressor(fitted)
    values, arrays = plain.to_state()
    again = restored_regressor(kind, values, arrays, X.shape[1])
    monkeypatch.setattr("concordant.apps.models.regressors.MANY", 0 if compiled else 1 << 22)
    assert kind == "trees" and np.array_equal(again.predict(X), fitted.predict(X).astype(np.float64))
    name, text = booster_text(fitted)  # the form in which models were kept before
    old = restored_regressor("booster", {"package": name}, {"text": np.frombuffer(text.encode(), np.uint8)}, X.shape[1])
    assert np.array_equal(old.predict(X), again.predict(X))


def test_what_has_no_plain_form_is_said(data) -> None:
    X, y = data
    assert plain_regressor(KNeighborsRegressor().fit(X, y)) is None
    categories = HistGradientBoostingRegressor(max_iter=3, categorical_features=[0]).fit(np.abs(X).round(), y)
    assert plain_regressor(categories) is None
    assert plain_regressor(HistGradientBoostingRegressor(loss="poisson", max_iter=3).fit(X, np.abs(y))) is None


CONTENTS = Contents({"name": 'ä\n"x"', "ridge": 0.1 + 0.2}, {"coef": np.array([0.1, np.pi])}, {"note.txt": b"hello"})


def test_directory_comes_back_to_the_bit(tmp_path: Path) -> None:
    write_directory(tmp_path / "model", CONTENTS)
    write_directory(tmp_path / "model", CONTENTS)  # replaces a model
    read = read_directory(tmp_path / "model")
    assert read.values == CONTENTS.values and read.files == CONTENTS.files
    assert np.array_equal(read.arrays["coef"], CONTENTS.arrays["coef"])
    assert not [file for file in tmp_path.iterdir() if file.name != "model"]


def test_every_changed_byte_is_seen(tmp_path: Path) -> None:
    folder = write_directory(tmp_path / "model", CONTENTS)
    for file in sorted(folder.iterdir()):
        raw = file.read_bytes()
        for place in range(0, len(raw), max(1, len(raw) // 40)):
            file.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
            with pytest.raises(InputError, match="was changed since the model was written"):
                read_directory(folder)
        file.write_bytes(raw + b" ")
        with pytest.raises(InputError, match="was changed"):
            read_directory(folder)
        file.write_bytes(raw)
    read_directory(folder)


def test_files_too_few_too_many_or_none(tmp_path: Path) -> None:
    folder = write_directory(tmp_path / "model", CONTENTS)
    (folder / "more.npy").write_bytes(b"")
    with pytest.raises(InputError, match=r"not of the model: 'more\.npy'"):
        read_directory(folder)
    (folder / "more.npy").unlink()
    (folder / "coef.npy").unlink()
    with pytest.raises(InputError, match=r"missing: 'coef\.npy'"):
        read_directory(folder)
    with pytest.raises(InputError, match="no model directory"):
        read_directory(tmp_path / "nowhere")
    with pytest.raises(InputError, match="holds no model"):
        read_directory(tmp_path)


def test_a_place_that_is_taken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="not empty and holds no model"):
        write_directory(tmp_path, CONTENTS)
    with pytest.raises(UsageError, match="is a file"):
        write_directory(tmp_path / "thesis.tex", CONTENTS)
    with pytest.raises(UsageError, match="does not exist"):
        write_directory(tmp_path / "no" / "model", CONTENTS)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"

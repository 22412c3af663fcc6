"""Columns of categories in tables: a column for each level, or as they are where the regressor knows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

import concordant as cc
from concordant.errors import InputError, UsageError
from concordant.learning.rankers.judged import Judged
from concordant.preferences.preferences import Preferences

RNG = np.random.default_rng(11)
HUES = np.array(["red", "green", "blue", "grey"])
WORTH = {"red": 2.0, "green": -2.0, "blue": 2.0, "grey": -2.0}  # no order of the codes is that of the worth
ROWS = 240
HUE = RNG.choice(HUES, ROWS)
SIZE = RNG.normal(size=ROWS)
QUERY = np.repeat([f"q{n:02}" for n in range(24)], 10)
ITEM = np.tile([f"d{n}" for n in range(10)], 24)
TRUTH = SIZE + np.array([WORTH[hue] for hue in HUE])
GRADES = np.clip(np.round(TRUTH + 1.5), 0, 4)
FRAME = pd.DataFrame({"size": SIZE, "hue": pd.Categorical(HUE, categories=HUES)})
TABLE = FRAME.assign(item=ITEM, query=QUERY)
LABELS = Judged.of_labels(GRADES, query=QUERY)
ONE_HOT = np.column_stack([SIZE, *(hue == HUE for hue in HUES)]).astype(float)


def votes() -> Preferences:
    rng = np.random.default_rng(12)
    first, second = rng.integers(0, ROWS, (2, 60_000))
    same = (QUERY[first] == QUERY[second]) & (first != second)
    first, second = first[same], second[same]
    up = rng.random(len(first)) < 1 / (1 + np.exp(TRUTH[second] - TRUTH[first]))
    winner, loser = np.where(up, first, second), np.where(up, second, first)
    return Preferences.from_comparisons(ITEM[winner], ITEM[loser], query=QUERY[winner])


@pytest.mark.parametrize("ranker", [cc.ListRanker(), cc.EdgeRanker(), cc.RankBoostRanker(rounds=20)], ids=str)
def test_a_linear_scorer_has_a_column_for_each_level(ranker: Any, tmp_path: Path) -> None:
    usual = ranker.fit(ONE_HOT, LABELS).predict(ONE_HOT)
    found = ranker.fit(TABLE, GRADES)
    assert found.feature_names_in_.tolist() == ["size", *(f"hue={hue}" for hue in HUES)]
    assert any("columns of categories" in n or "column of categories" in n for n in found.status_["notes"])
    assert np.allclose(found.predict(TABLE), usual)
    assert np.array_equal(ranker.fit(FRAME, LABELS).predict(FRAME), found.predict(TABLE))
    assert ranker.score(TABLE, GRADES) == ranker.score(FRAME, LABELS)
    TABLE.to_parquet(tmp_path / "items.parquet")
    assert np.array_equal(ranker.predict(tmp_path / "items.parquet"), found.predict(TABLE))
    assert np.array_equal(ranker.predict(pl.from_pandas(TABLE)), found.predict(TABLE))
    cc.save_model(ranker, tmp_path / "model")
    kept = cc.load_model(tmp_path / "model")
    # the levels of another table may stand in another order, lack some and have new ones
    part = TABLE[:7].assign(hue=pd.Categorical(["grey", "pink", "red", "black", *HUE[4:7]]))
    shown = np.column_stack([SIZE[:7], *(hue == part["hue"].astype(object) for hue in HUES)]).astype(float)
    assert np.allclose(kept.predict(part), ranker.predict(shown))


@pytest.mark.parametrize(
    "regressor",
    [
        HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=3),
        LGBMRegressor(n_estimators=20, min_child_samples=3, min_data_per_group=3, cat_smooth=0.1, verbose=-1),
    ],
    ids=["scikit-learn", "lightgbm"],
)
def test_a_regressor_that_knows_categories_gets_them_as_such(regressor: Any, tmp_path: Path) -> None:
    ranker = cc.ListRanker(regressor=regressor, target="pairwise").fit(TABLE, GRADES)
    codes = np.column_stack([SIZE, [HUES.tolist().index(hue) for hue in HUE]])
    deviation, weight = SIZE.std(), np.ones(ROWS)
    Z = np.column_stack([(SIZE - SIZE.mean()) / deviation, codes[:, 1]])
    centred = GRADES - np.repeat(GRADES.reshape(24, 10).mean(1), 10)
    unit = np.sqrt((centred**2).mean())
    own = regressor.__class__(**regressor.get_params())
    named = {"categorical_features": [1]} if isinstance(own, HistGradientBoostingRegressor) else {}

    def squares(y: Any, f: Any) -> Any:  # the intercept of each query of ten rows is free in every round
        left = (f - y).reshape(24, 10)
        return (left - left.mean(1, keepdims=True)).ravel(), weight

    own.set_params(**(named or {"objective": squares}))
    own.fit(Z, centred / unit, sample_weight=weight, **({} if named else {"categorical_feature": [1]}))
    assert np.allclose(ranker.predict(TABLE), own.predict(Z) * unit)
    if not named:
        assert (ranker.regressor_.booster_.trees_to_dataframe()["decision_type"] == "==").any()
        cc.save_model(ranker, tmp_path / "model", unsafe_pickle=True)
        kept = cc.load_model(tmp_path / "model", unsafe_pickle=True)
        assert np.array_equal(kept.predict(TABLE), ranker.predict(TABLE))
    assert np.array_equal(ranker.normaliser_.apply(codes)[:, 1], codes[:, 1])
    filled = cc.ListRanker(regressor=regressor, missing="mean").fit(TABLE, GRADES).normaliser_
    assert filled.apply(np.array([[0.0, np.nan], [0.0, 3.0]]))[:, 1].tolist() == [-1.0, 3.0]  # −1: missing
    # levels of another table are matched by name; one that nobody has seen is missing
    part = TABLE[:3].assign(hue=pd.Categorical(["grey", "red", "pink"]))
    same = TABLE[:2].assign(hue=pd.Categorical(["grey", "red"], categories=HUES))
    assert np.array_equal(ranker.predict(part)[:2], ranker.predict(same))
    keeps = cc.ListRanker(regressor=regressor, missing="keep").fit(TABLE, GRADES)
    gone = part.assign(hue=pd.Categorical([None, None, None], categories=["red"]))
    assert keeps.predict(part)[2] == keeps.predict(gone)[2]
    both = cc.AggregationRanker(regressor=regressor).fit(TABLE, votes())
    assert both.score(TABLE, votes()) > 0.8
    if hasattr(both, "scorer_standardised_"):
        assert both.scorer_standardised_[1] == 0.0  # the linear start does not read codes as numbers


def test_where_nothing_is_there_no_level_is() -> None:
    gaps = FRAME.assign(hue=FRAME["hue"].where(SIZE > -0.5))
    shown = np.where((SIZE > -0.5)[:, None] | [True, False, False, False, False], ONE_HOT, 0.0)
    ranker = cc.ListRanker(missing="mean")
    assert np.allclose(ranker.fit(gaps, LABELS).predict(gaps), ranker.fit(shown, LABELS).predict(shown))


def test_another_regressor_gets_a_column_for_each_level() -> None:
    ranker = cc.ListRanker(regressor=DecisionTreeRegressor(max_depth=3, random_state=0))
    assert np.allclose(ranker.fit(TABLE, GRADES).predict(TABLE), ranker.fit(ONE_HOT, LABELS).predict(ONE_HOT))


def test_features_have_codes_and_levels() -> None:
    features = cc.read_features(TABLE)
    assert features.categories == (1,) and features.levels == {"hue": tuple(HUES)}
    assert features.X[:, 1].tolist() == [HUES.tolist().index(hue) for hue in HUE]
    assert features.take(np.arange(3)).levels == features.levels


def test_what_does_not_fit_is_said() -> None:
    ranker = cc.ListRanker().fit(TABLE, GRADES)
    with pytest.raises(InputError, match="'hue' were of categories when the ranker was fitted, and are numbers here"):
        ranker.predict(TABLE.assign(hue=1.0))
    plain = cc.ListRanker().fit(TABLE.assign(hue=1.0), GRADES)
    with pytest.raises(InputError, match="'hue' are of categories here, and were numbers"):
        plain.predict(TABLE)
    with pytest.raises(InputError, match=r"'hue' holds .*string"):
        cc.ListRanker().fit(FRAME.assign(tint=FRAME["hue"], hue=HUE), LABELS)
    with pytest.raises(InputError, match="another name"):
        cc.ListRanker().fit(FRAME.assign(**{"hue=red": 1.0}), LABELS)
    with pytest.raises(UsageError, match="takes columns of numbers; 'hue' hold categories"):
        cc.AbstainingRanker(cc.ListRanker()).fit(TABLE, GRADES)
    with pytest.raises(UsageError, match="logarithm of a category"):
        cc.ListRanker(regressor=HistGradientBoostingRegressor(), log=True).fit(TABLE, GRADES)
    with pytest.raises(InputError, match="column 'hue': nan"):
        cc.ListRanker().fit(TABLE.assign(hue=TABLE["hue"].where(SIZE > 0)), GRADES)


def test_boosted_trees_take_them_as_such() -> None:
    """As if the column were codes that are named; levels in another order, in an eval set, too, are the same."""
    given: dict[str, Any] = {"rounds": 20, "leaf_rows": 3, "options": {"min_data_per_group": 3}, "folds": 2}
    ranker = cc.BoostedRanker(**given).fit(TABLE, GRADES)
    codes = np.column_stack([SIZE, TABLE["hue"].cat.codes])
    own = cc.BoostedRanker(categories=[1], **given).fit((codes, QUERY, ITEM), GRADES)
    assert np.array_equal(ranker.predict(TABLE), own.predict(codes))
    turned = TABLE.assign(hue=TABLE["hue"].cat.reorder_categories(HUES[::-1]))
    assert np.array_equal(ranker.predict(turned), ranker.predict(TABLE))
    for one, other in zip(ranker.staged_predict(turned), ranker.staged_predict(TABLE), strict=True):
        assert np.array_equal(one, other)
    curves = [cc.BoostedRanker(**given).fit(TABLE, GRADES, eval_set=(seen, GRADES)).curve_ for seen in (TABLE, turned)]
    assert curves[0] == curves[1]
    with pytest.raises(cc.UsageError, match="0 for categories"):
        cc.BoostedRanker(monotone=[1, 1]).fit(TABLE, GRADES)

"""Missing values by default, and the scores of a boosting regressor tree by tree."""

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn import ensemble, linear_model
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import concordant as cc

BOOSTING = {
    "hist": lambda: ensemble.HistGradientBoostingRegressor(max_iter=7, random_state=0),
    "gradient": lambda: ensemble.GradientBoostingRegressor(n_estimators=7, random_state=0),
    "lightgbm": lambda: lightgbm.LGBMRegressor(n_estimators=7, verbose=-1, n_jobs=1, random_state=0),
    "xgboost": lambda: xgboost.XGBRegressor(n_estimators=7, n_jobs=1, random_state=0),
}
KNOWN = {"hist", "lightgbm", "xgboost"}


def graded(holes=0.0):
    draw = np.random.default_rng(3)
    X, query = draw.normal(size=(200, 3)), np.repeat(np.arange(20), 10)
    labels = np.clip(np.floor(np.abs(X[:, 0]) * 2 + X[:, 1]), 0, 3)
    return (np.where(draw.random(X.shape) < holes, np.nan, X), query, np.arange(200)), labels


def voted(rows, labels):
    draw = np.random.default_rng(4)
    first, second = draw.integers(0, 10, 800), draw.integers(1, 10, 800)
    query = draw.integers(0, 20, 800)
    first, second = 10 * query + first, 10 * query + (first + second) % 10
    up = labels[first] > labels[second]
    return rows, cc.Preferences.from_comparisons(np.where(up, first, second), np.where(up, second, first), query)


@pytest.mark.parametrize("kind", BOOSTING)
def test_missing_values_are_kept_where_the_regressor_knows_them(kind, tmp_path):
    rows, labels = graded(0.1)
    for ranker, given in (
        (cc.ListRanker(regressor=BOOSTING[kind]()), (rows, labels)),
        (cc.AggregationRanker(regressor=BOOSTING[kind](), gate=False), voted(rows, labels)),
    ):
        if kind not in KNOWN:
            assert ranker.missing_ == "raise" and not ranker.__sklearn_tags__().input_tags.allow_nan
            with pytest.raises(cc.InputError, match="missing='mean'"):
                ranker.fit(*given)
            continue
        kept = ranker.set_params(missing="keep").fit(*given).predict(rows)
        found = ranker.set_params(missing="auto").fit(*given)
        assert np.array_equal(found.predict(rows), kept) and found.__sklearn_tags__().input_tags.allow_nan
        (note,) = (one for one in found.status_["notes"] if one.code == "missing values")
        assert note.numbers["values"] == int(np.isnan(rows[0]).sum()) and note.numbers["of"] == 600
        again = cc.load_model(cc.save_model(found, tmp_path / type(ranker).__name__))
        assert again.missing_ == again.missing == "keep"
        np.testing.assert_allclose(again.predict(rows), kept, atol=1e-6)


def test_a_scorer_that_does_not_know_them_refuses():
    rows, labels = graded(0.1)
    for regressor in (None, linear_model.Ridge(), make_pipeline(StandardScaler(), linear_model.Ridge()), object()):
        assert cc.ListRanker(regressor=regressor).missing_ == "raise"
    for regressor in (None, linear_model.Ridge()):
        with pytest.raises(cc.InputError, match="boosted trees take it as it is"):
            cc.ListRanker(regressor=regressor).fit(rows, labels)
    rows, labels = graded()
    assert not [one for one in cc.BoostedRanker(rounds=2).fit(rows, labels).status_["notes"] if "missing" in one]


@pytest.mark.parametrize("kind", BOOSTING)
def test_scores_after_each_tree(kind):
    rows, labels = graded()
    X, votes = voted(rows, labels)
    usual = {"gain": "2^s-1", "normalise": True}
    alone = cc.ListRanker(regressor=BOOSTING[kind](), **usual).fit(rows, labels)
    beyond = cc.AggregationRanker(regressor=BOOSTING[kind](), gate=False).fit(X, votes)
    for ranker in (alone, beyond):
        staged = list(ranker.staged_predict(rows))
        assert len(staged) == 8
        np.testing.assert_allclose(staged[-1], ranker.predict(rows), atol=1e-6)
        shorter = ranker.get_params()["regressor"]
        shorter = type(shorter)(**shorter.get_params() | {"max_iter" if kind == "hist" else "n_estimators": 3})
        fitted = type(ranker)(regressor=shorter, **(usual if ranker is alone else {"gate": False}))
        fitted.fit(rows, labels if ranker is alone else votes)
        shares = [one.status_.get("share", 1.0) for one in (ranker, fitted)]
        assert min(shares) > 0
        short = staged[0] + (fitted.predict(rows) - staged[0]) * shares[0] / shares[1]
        np.testing.assert_allclose(staged[3], short, atol=1e-6)
    assert not staged[0].any() or np.corrcoef(staged[0], beyond.predict(rows))[0, 1] > 0
    assert not next(alone.staged_predict(rows)).any()


def test_no_stages_without_trees():
    rows, labels = graded()
    for regressor, what in ((None, "a linear scorer"), (linear_model.Ridge(), "Ridge")):
        with pytest.raises(cc.UsageError, match=f"staged_predict is of boosting regressors, not of {what}"):
            next(cc.ListRanker(regressor=regressor).fit(rows, labels).staged_predict(rows))

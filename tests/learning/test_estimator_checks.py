"""scikit-learn's own checks of estimators on every public ranker, and rows that do not say their query."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, KFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import concordant as cc
from concordant.errors import InputError, UsageError
from concordant.learning.rankers.judged import Judged
from concordant.preferences.preferences import Preferences

ONE_A_QUERY = "a weight multiplies the loss of a whole query, so rows of one query cannot weigh differently"
EXPECTED = {
    "check_sample_weights_not_overwritten": ONE_A_QUERY,
    "check_sample_weight_equivalence_on_dense_data": ONE_A_QUERY,
    "check_sample_weight_equivalence_on_sparse_data": ONE_A_QUERY,
}
"""All that fails; docs/learning.md says so."""
RANKERS = [
    cc.AggregationRanker(),
    cc.CopelandRanker(),
    cc.EdgeRanker(),
    cc.EdgeRanker("auto"),
    cc.ListRanker(),
    cc.ListRanker("ranknet"),
    cc.BoostedRanker(rounds=3),
    cc.RankBoostRanker(rounds=5),
    cc.QueryRankers(),
    cc.AbstainingRanker(cc.AggregationRanker()),
]


CHECKS = parametrize_with_checks(RANKERS, expected_failed_checks=lambda _: EXPECTED).mark


@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)  # before 1.8 they come one by one
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_every_public_ranker_is_checked() -> None:
    names = {name for name in cc.__all__ if name.endswith(("Ranker", "Rankers"))}
    assert {type(ranker).__name__ for ranker in RANKERS} == names
    assert len(EXPECTED) <= 3


def lists(seed: int = 0, queries: int = 12, rows: int = 7) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * rows, 3))
    grades = np.clip(np.round(X @ [1.0, -0.5, 0.0] + rng.normal(size=len(X)) * 0.5 + 1), 0, 4)
    return X, grades, np.repeat(np.arange(queries), rows)


@pytest.mark.parametrize("ranker", [r for r in RANKERS if not isinstance(r, cc.QueryRankers)], ids=str)
def test_qid_and_group_are_what_judged_says(ranker: Any) -> None:
    X, grades, qid = lists()
    usual = ranker.fit(X, Judged.of_labels(grades, query=qid))
    scores, value = usual.predict(X), usual.score(X, Judged.of_labels(grades, query=qid))
    for named in ({"qid": qid}, {"group": [7] * 12}, {"qid": [f"q{n:02}" for n in qid]}):
        found = ranker.fit(X, grades, **named)
        assert np.array_equal(found.predict(X), scores)
        assert found.score(X, grades, **named) == value


def test_qid_names_the_queries_of_rows_with_items() -> None:
    votes = Preferences.from_comparisons(["a", "b", "a"], ["b", "a", "b"], query=["p", "q", "q"])
    X = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 1.0], [2.0, 4.0]])
    usual = cc.EdgeRanker("ranknet").fit((X, list("ppqq"), list("abab")), votes)
    table = pd.DataFrame(X[:, :2], columns=["x", "y"]).assign(item=["a0", "b0", "a1", "b1"])
    again = Preferences.from_comparisons(["a0", "b1", "a1"], ["b0", "a1", "b1"], query=["p", "q", "q"])
    found = cc.EdgeRanker("ranknet").fit(table, again, qid=list("ppqq"))
    assert np.allclose(found.coef_, usual.coef_)


def test_what_names_queries_wrongly_is_refused() -> None:
    X, grades, qid = lists()
    ranker = cc.ListRanker()
    for error, match, named in (
        (UsageError, "give one of them", {"qid": qid, "group": [7] * 12}),
        (InputError, "qid has 83 entries, X has 84 rows", {"qid": qid[1:]}),
        (InputError, "group adds up to 77 rows, X has 84", {"group": [7] * 11}),
        (InputError, "group holds 0.5", {"group": [0.5] * 168}),
        (InputError, "group holds 0;", {"group": [0, 84]}),
    ):
        with pytest.raises(error, match=match):
            ranker.fit(X, grades, **named)
    with pytest.raises(UsageError, match="say their query already; leave qid out"):
        ranker.fit((X, qid, np.arange(84)), grades, qid=qid)
    with pytest.raises(UsageError, match="leave group out"):
        ranker.fit(X, Judged.of_labels(grades), group=[84])
    with pytest.raises(UsageError, match="do not say which item"):
        cc.AggregationRanker().fit(X, Preferences.from_comparisons(["a"], ["b"]), qid=qid)


def test_plain_numbers_are_one_list_and_a_note_says_so() -> None:
    X, grades, _ = lists()
    for numbers in (grades, grades - 2.25):
        found = cc.AggregationRanker(ridge=0.0).fit(X, numbers)
        assert np.allclose(found.coef_, LinearRegression().fit(X, numbers).coef_)  # a free intercept for the list
        assert any("one list of grades" in note for note in found.status_["notes"])
    trees = HistGradientBoostingRegressor(max_iter=5)
    scores = cc.AggregationRanker(regressor=trees).fit(X, grades).predict(X)
    unit = grades.std()
    centred = trees.fit((X - X.mean(0)) / X.std(0), (grades - grades.mean()) / unit).predict((X - X.mean(0)) / X.std(0))
    assert np.allclose(scores, centred * unit)
    with pytest.raises(UsageError, match="nothing is aggregated"):
        cc.AggregationRanker("log-odds").fit(X, grades)


def test_numbers_below_0_are_taken_as_they_are_where_nothing_says_that_they_are_grades() -> None:
    X, grades, qid = lists()
    numbers = grades - 2.25
    found = cc.ListRanker(ridge=0.0).fit(X, numbers)
    assert np.allclose(found.coef_, LinearRegression().fit(X, numbers).coef_)
    assert any("below 0" in note for note in found.status_["notes"])
    assert found.score(X, numbers) > 0.5
    with pytest.raises(InputError, match=r"labels are negative.*target='pairwise'"):
        cc.ListRanker().fit(X, numbers, qid=qid)
    with pytest.raises(InputError, match="labels are negative"):
        cc.ListRanker(target="ndcg@10").fit(X, numbers)
    with pytest.raises(InputError, match="labels are negative"):
        cc.AggregationRanker(target="ndcg@10").fit(X, numbers)
    cc.ListRanker(target="pairwise").fit(X, numbers, qid=qid)
    assert cc.BoostedRanker(rounds=3).fit(X, numbers).score(X, numbers) > 0.5


def test_a_letor_label_of_minus_one_is_not_judged(tmp_path: Any) -> None:
    X, grades, qid = lists()
    unknown = np.random.default_rng(1).random(len(X)) < 0.3
    lines = [
        f"{-1 if gone else int(grade)} qid:{query} 1:{x[0]!r} 2:{x[1]!r} 3:{x[2]!r}\n"
        for gone, grade, query, x in zip(unknown, grades, qid, X.tolist(), strict=True)
    ]
    (tmp_path / "all.txt").write_text("".join(lines))
    (tmp_path / "judged.txt").write_text("".join(line for line in lines if not line.startswith("-1")))
    judged = cc.read_judged(tmp_path / "judged.txt")
    for ranker in (cc.ListRanker(standardise=False), cc.ListRanker("ranknet", standardise=False)):
        found = ranker.fit(*cc.read_judged(tmp_path / "all.txt"))
        assert any(f"{unknown.sum()} of 84 rows have the label −1, not judged" in one for one in found.status_["notes"])
        assert not any("in no judgment" in one for one in found.status_["notes"])
        value, coef = found.score(*cc.read_judged(tmp_path / "all.txt")), found.coef_
        again = ranker.fit(*judged)
        assert np.allclose(again.coef_, coef) and again.score(*judged) == pytest.approx(value)
    cc.QueryRankers(cc.ListRanker()).fit(*cc.read_judged(tmp_path / "all.txt"))
    cc.AbstainingRanker(cc.ListRanker()).fit(*cc.read_judged(tmp_path / "all.txt"))


def test_a_query_that_a_split_cuts_is_warned_of_in_fit_and_refused_where_something_is_held_out() -> None:
    X, grades, qid = lists()
    judged = Judged.of_labels(grades, query=qid)
    part = judged[:10]
    assert part.cut == 1 and judged.cut == 0 and judged[qid != 3].cut == 0
    found = cc.ListRanker().fit(X[:10], part)
    assert any("1 of 2 queries are cut apart" in note for note in found.status_["notes"])
    with pytest.raises(InputError, match=r"cut apart.*GroupKFold"):
        found.score(X[:10], part)
    with pytest.raises(InputError, match="cut apart"):
        cross_val_score(cc.ListRanker(), X, judged, cv=KFold(5, shuffle=True, random_state=0), error_score="raise")
    stops = HistGradientBoostingRegressor(early_stopping=True)
    cut = judged[np.arange(len(X)) % 5 > 0]
    for ranker in (cc.ListRanker(regressor=stops), cc.AbstainingRanker(cc.ListRanker()), cc.BoostedRanker(rounds=2)):
        with pytest.raises(InputError, match="cut apart"):
            ranker.fit(X[np.arange(len(X)) % 5 > 0], cut)
    assert cross_val_score(cc.ListRanker(), X, judged, groups=qid, cv=GroupKFold(3)).mean() > 0.7
    assert cross_val_score(cc.AggregationRanker(), X, grades, cv=KFold(3)).mean() > 0.7  # one list, which has parts

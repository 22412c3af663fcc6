"""A model's summary: the values that R prints for baseball and journals, the formulas by brute force."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import expit, gammaln, log_expit
from scipy.stats import chi2
from scipy.stats import t as student
from test_prediction import matches, twin
from test_uncertainty_ranks import simulated

import concordant as cc
from concordant.apps.commands.output import plain
from concordant.errors import UsageError
from seeds import seed

# Stigler (1994), journals citing each other, as BradleyTerry2 has them: row cited by column
JOURNALS = ["Biometrika", "Comm Statist", "JASA", "JRSS-B"]
CITED = [[714, 730, 498, 221], [33, 425, 68, 17], [320, 813, 1072, 142], [284, 276, 325, 188]]


def binomial_constant(first, second):
    """2 Σ log of binomial coefficients, which R's AIC of counts has and ours has not."""
    first, second = np.asarray(first, float), np.asarray(second, float)
    return 2 * (gammaln(first + second + 1) - gammaln(first + 1) - gammaln(second + 1)).sum()


def test_journals_are_as_r_prints_them():
    """vignette of BradleyTerry2 1.1.3, section 2.1."""
    pairs = [(i, j) for i in range(4) for j in range(4) if i < j]
    table = {
        "left": [JOURNALS[i] for i, _ in pairs],
        "right": [JOURNALS[j] for _, j in pairs],
        "left_wins": [CITED[i][j] for i, j in pairs],
        "right_wins": [CITED[j][i] for i, j in pairs],
    }
    summary = cc.rank(cc.read(table), prior=0).summary()
    assert (f"{summary.null_deviance:.0f}", f"{summary.deviance:.3f}", summary.df_residual) == ("1925", "4.293", 3)
    constant = binomial_constant(table["left_wins"], table["right_wins"])
    assert f"{summary.aic - constant:.2f}" == "46.39"


def test_baseball_is_as_r_prints_it(shared_data):
    """vignette of BradleyTerry2 1.1.3, section 3.3: without and with an advantage at home."""
    path = shared_data("r_classics") / "BradleyTerry2.baseball.csv"
    columns = {"left": "home.team", "right": "away.team", "left_wins": "home.wins", "right_wins": "away.wins"}
    prefs = cc.read(str(path), columns=columns, home="left")
    rows = np.genfromtxt(path, delimiter=",", skip_header=1, usecols=(2, 3))
    constant = binomial_constant(rows[:, 0], rows[:, 1])
    without = cc.rank(prefs, prior=0, covariates=False).summary()
    assert (f"{without.null_deviance:.3f}", f"{without.deviance:.3f}", without.df_residual) == ("78.015", "44.053", 36)
    assert f"{without.aic - constant:.2f}" == "140.52"
    home = cc.rank(prefs, prior=0).summary()
    assert (f"{home.deviance:.3f}", home.df_residual, f"{home.aic - constant:.2f}") == ("38.643", 35, "137.11")
    (one,) = home.coefficients
    assert (one.term, f"{one.estimate:.4f}", f"{one.standard_error:.4f}") == ("home", "0.3023", "0.1309")
    assert f"{one.p_value:.6f}" == "0.020981"
    tests = {test.term: test for test in home.tests}
    assert abs(tests["home"].statistic - (44.053 - 38.643)) <= 0.001 and tests["home"].df == 1
    assert np.isclose(tests["home"].p_value, chi2.sf(5.410, 1), rtol=1e-3)
    assert tests["items"].df == 6


def test_davidson_by_its_formula():
    prefs, home, away, at_home, drawn = matches(7)
    summary = cc.rank(prefs, ties="davidson", prior=0).summary()
    outcomes, found, _ = twin(home, away, at_home, drawn)
    fit = outcomes(found, home, away, at_home)[drawn, np.arange(len(drawn))].sum()
    assert np.isclose(summary.log_likelihood, fit, atol=1e-5) and summary.parameters == 5
    assert np.isclose(summary.aic, -2 * fit + 10, atol=1e-4)
    assert np.isclose(summary.bic, -2 * fit + 5 * np.log(700), atol=1e-4)
    shares = np.bincount(drawn, minlength=3) / 700
    alike = 700 * ((1 - shares[1]) * np.log((1 - shares[1]) / 2) + shares[1] * np.log(shares[1]))
    assert np.isclose(summary.null_log_likelihood, alike)
    assert [one.term for one in summary.coefficients] == ["home", "ties (log ν)"]
    assert {note.code for note in summary.notes} == {"no test of ties"}


def test_rankings_of_two_with_ties_are_summed_up_as_votes_with_ties():
    rng = np.random.default_rng(seed(3))
    sides = np.array([rng.permutation(4)[:2] for _ in range(200)])
    tie = rng.random(200) < 0.25
    votes = cc.Preferences.from_comparisons(sides[:, 0], sides[:, 1], tie=tie)
    places = np.column_stack([np.ones(200), np.where(tie, 1, 2)]).ravel()
    lists = cc.Preferences.from_orders(None, np.repeat(np.arange(200), 2), sides.ravel(), places)
    one = cc.rank(votes, ties="davidson", prior=0).summary()
    other = cc.rank(lists, "plackett-luce", ties="davidson", prior=0).summary()
    for name in ("log_likelihood", "null_log_likelihood", "aic", "bic"):
        assert np.isclose(getattr(one, name), getattr(other, name), atol=1e-5), name
    (items,), (again,) = one.tests, other.tests
    assert items.term == again.term == "items" and np.isclose(items.statistic, again.statistic, atol=1e-5)
    assert [(c.term, np.isnan(c.p_value)) for c in other.coefficients] == [("ties of 2 (log δ)", True)]
    assert {note.code for note in other.notes} == {note.code for note in one.notes} == {"no test of ties"}


def test_rankings_by_their_formula():
    rng = np.random.default_rng(0)
    value, orders = np.array([0.8, 0.1, -0.2, -0.7]), []
    for _ in range(200):
        orders.append(np.argsort(-(value + rng.gumbel(size=4))))
    judgment = np.repeat(np.arange(200), 4).tolist()
    prefs = cc.Preferences.from_orders(["q"] * 800, judgment, np.concatenate(orders).tolist(), [1, 2, 3, 4] * 200)
    board = cc.rank(prefs, "plackett-luce", prior=0)
    score = dict(zip(board.to_arrow()["item"].to_pylist(), board.score, strict=True))
    fit = sum(score[order[r]] - np.log(sum(np.exp(score[i]) for i in order[r:])) for order in orders for r in range(4))
    summary = board.summary()
    assert np.isclose(summary.log_likelihood, fit) and np.isclose(summary.deviance, -2 * fit)
    assert np.isclose(summary.null_log_likelihood, -200 * np.log(24))
    assert (summary.parameters, summary.df_residual) == (3, 200 * 6 - 3)  # as PlackettLuce counts them
    assert np.isclose(summary.tests[0].p_value, chi2.sf(2 * (fit + 200 * np.log(24)), 3))


def test_queries_add_up():
    prefs = simulated([0.5, 0, -0.5], 300, seed=1, queries=3)
    whole = cc.rank(prefs).summary()
    parts = [cc.rank(prefs.select([query])).summary() for query in prefs.queries.tolist()]
    for name in ("log_likelihood", "deviance", "parameters", "df_residual", "judgments", "aic"):
        assert np.isclose(getattr(whole, name), sum(getattr(part, name) for part in parts))
    assert np.isclose(whole.tests[0].statistic, sum(part.tests[0].statistic for part in parts))


def test_a_useless_covariate_is_found_useless_as_often_as_it_should():
    rejected, runs = 0, 200
    for run in range(runs):
        rng = np.random.default_rng(run)
        i = rng.integers(0, 3, 120)
        j = (i + rng.integers(1, 3, 120)) % 3
        won = rng.random(120) < expit((i - j) * 0.4)
        table = {"left": i.tolist(), "right": j.tolist(), "winner": np.where(won, "left", "right").tolist(),
                 "x": rng.normal(size=120).tolist()}  # fmt: skip
        tests = cc.rank(cc.read(table, covariates=["x"])).summary().tests
        rejected += next(test.p_value for test in tests if test.term == "x") < 0.05
    assert 0.02 <= rejected / runs <= 0.09


def test_where_judgments_are_no_draws_of_the_model_it_says_so():
    prefs, *_ = matches(8)
    summary = cc.rank(prefs).summary()  # ties as half wins
    assert [test.test for test in summary.tests] == ["Wald"] and "quasi-likelihood" in str(summary)
    (one,) = summary.coefficients
    assert np.isclose(summary.tests[0].statistic, (one.estimate / one.standard_error) ** 2)
    graphs = cc.Batch.whole(prefs).graphs
    board = cc.rank(prefs, covariates=False)
    value = board.score[np.argsort(board.item)]
    margin = value[graphs.first] - value[graphs.second]
    fit = (graphs.above * log_expit(margin) + graphs.below * log_expit(-margin)).sum()
    assert np.isclose(board.summary().log_likelihood, fit)


def test_it_is_plain_data_and_refuses_what_has_no_likelihood():
    board = cc.rank(simulated([0.5, 0, -0.5], 60, seed=2))
    json.dumps(plain(board.summary().to_dict()), allow_nan=False)
    with pytest.raises(UsageError, match="borda is fitted by no likelihood"):
        cc.rank(simulated([0.5, 0], 60), "borda").summary()
    assert "a strong prior" in {note.code for note in cc.rank(simulated([0.5, 0], 60), prior=2).summary().notes}


def test_few_clusters_have_the_t_law():
    _, home, away, _, drawn = matches(9)
    rng = np.random.default_rng(0)
    table = {"left": home.tolist(), "right": away.tolist(), "winner": [("left", "tie", "right")[d] for d in drawn]}
    votes = cc.read(table | {"judge": rng.integers(0, 6, len(home)).tolist()}, home="left", cluster="judge")
    board = cc.rank(votes)
    (one,) = board.summary().coefficients
    t = one.estimate / one.standard_error
    assert np.isclose(one.p_value, 2 * student.sf(abs(t), 5))
    assert np.isclose(one.upper, one.estimate + student.ppf(0.975, 5) * one.standard_error)
    assert board.summary().tests[0].p_value == one.p_value


# -- coefficients as a table ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("clustered", [False, True])
def test_coefficients_as_a_table_are_those_of_the_summary(clustered):
    rng = np.random.default_rng(seed(12))
    i, j, side = rng.integers(0, 6, 600), rng.integers(0, 6, 600), rng.choice([-1.0, 1.0], 600)
    i, j, side = i[i != j], j[i != j], side[i != j]
    u = rng.random(len(i))
    tie, wins = u < 0.2, rng.random(len(i)) < 1 / (1 + np.exp(-0.4 * side - 0.3 * (j - i)))
    how = {"cluster": rng.integers(0, 12, len(i))} if clustered else {}
    votes = cc.Preferences.from_comparisons(
        np.where(wins, i, j), np.where(wins, j, i), tie=tie, covariates={"home": np.where(wins, side, -side)}, **how
    )
    board = cc.rank(votes, ties="davidson")
    table, said = board.coefficient_table().to_pylist(), board.summary().coefficients
    assert [row["term"] for row in table] == ["home advantage", "ties (log ν)"]
    for row, one in zip(table, said, strict=True):
        for name in ("estimate", "standard_error", "lower", "upper"):
            assert row[name] == pytest.approx(getattr(one, name), rel=1e-12)
        assert row["p_value"] is None if row["name"] == "ties" else row["p_value"] == pytest.approx(one.p_value)
    alone = cc.rank(votes, interval="none", ties="davidson").coefficient_table().to_pylist()
    assert [row["standard_error"] for row in alone] == [None, None] and alone[0]["estimate"] == table[0]["estimate"]
    assert len(cc.rank(votes, structure="borda").coefficient_table()) == 0

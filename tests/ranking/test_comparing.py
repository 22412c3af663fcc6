"""Comparisons of two items and of all pairs: by hand, by the generic formula, by Tukey's law; what is open."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, ndtr
from scipy.stats import studentized_range
from test_uncertainty_ranks import simulated

import concordant as cc
from concordant.errors import UsageError
from concordant.ranking.bootstrap import bootstrap
from concordant.ranking.largest import largest, quantile
from concordant.ranking.structures import structure


def round_robin(items, games):
    """Everybody plays everybody, and each of two wins half of the games: all differences have one variance."""
    first, second = np.triu_indices(items, 1)
    winner, loser = np.concatenate([first, second]), np.concatenate([second, first])
    return cc.Preferences.from_comparisons(winner.tolist(), loser.tolist(), count=[games // 2] * len(winner))


def likelihood_twin(prefs, covariates=False):
    """Estimates and covariance of plain maximum likelihood, the first item at 0, from the generic formula."""
    n, z = len(prefs.items), prefs.covariates if covariates else np.zeros((prefs.distinct, 0))
    design = np.zeros((prefs.distinct, n + z.shape[1]))
    rows = np.arange(prefs.distinct)
    design[rows, prefs.winner], design[rows, prefs.loser] = 1.0, -1.0
    design[:, n:] = z
    design = design[:, 1:]
    found = minimize(
        lambda x: -(prefs.count * log_expit(design @ x)).sum(),
        np.zeros(design.shape[1]),
        jac=lambda x: -design.T @ (prefs.count * expit(-design @ x)),
        tol=1e-12,
    ).x
    win = expit(design @ found)
    bread = np.linalg.inv(design.T @ (design * (prefs.count * win * (1 - win))[:, None]))
    pulls = design * (1 - win)[:, None]
    return found, bread, pulls


def test_a_difference_is_that_of_the_log_odds_where_only_these_two_met():
    votes = cc.Preferences.from_comparisons(["a", "b", "b", "c"], ["b", "a", "c", "b"], count=[30, 12, 9, 8])
    found = cc.rank(votes, prior=0).compare("a", "b")
    assert np.isclose(found.difference, np.log(30 / 12), atol=1e-9)
    assert np.isclose(found.standard_error, np.sqrt(1 / 30 + 1 / 12), atol=1e-9)
    assert np.isclose(found.p_value, 2 * ndtr(-found.difference / found.standard_error), rtol=1e-9)
    assert np.isclose(found.probability, 30 / 42)
    low, high = found.difference + 1.959963984540054 * found.standard_error * np.array([-1, 1])
    assert np.allclose([found.lower, found.upper], [low, high])
    assert np.allclose([found.probability_lower, found.probability_upper], expit([low, high]))
    back = cc.rank(votes, prior=0).compare("b", "a")
    assert np.isclose(back.difference, -found.difference) and np.isclose(back.p_value, found.p_value)


@pytest.mark.parametrize("method", ["hessian", "sandwich"])
def test_covariance_and_differences_are_those_of_the_generic_formula(method):
    prefs = simulated(np.linspace(-1, 1, 6), 400, seed=3)
    board = cc.rank(prefs, prior=0, interval=method)
    found, bread, pulls = likelihood_twin(prefs)
    if method == "sandwich":
        judgments = len(prefs)
        bread = bread @ (pulls.T * prefs.count) @ pulls @ bread * judgments / (judgments - 1)
    twin = np.zeros((6, 6))
    twin[1:, 1:] = bread
    value = np.concatenate([[0.0], found])
    centre = np.eye(6) - 1 / 6
    covariance = board.covariance()
    order = [int(item) for item in covariance.items]
    assert order == board.to_arrow()["item"].to_pylist()
    assert np.allclose(covariance.matrix, (centre @ twin @ centre)[np.ix_(order, order)], atol=1e-7)
    for one, other in ((0, 3), (5, 1)):
        pair = board.compare(one, other)
        assert np.isclose(pair.difference, value[one] - value[other], atol=1e-6)
        assert np.isclose(pair.standard_error**2, twin[one, one] + twin[other, other] - 2 * twin[one, other], rtol=1e-6)
    table = board.contrasts()
    again = [board.compare(a, b) for a, b in zip(table["first"].to_pylist(), table["second"].to_pylist(), strict=True)]
    for name in ("difference", "standard_error", "lower", "upper", "p_value"):
        assert np.allclose(table[name], [getattr(one, name) for one in again])
    assert min(table["difference"].to_pylist()) >= 0


def test_coefficients_stand_after_the_items():
    rng = np.random.default_rng(5)
    home, away = rng.integers(0, 4, 500), rng.integers(0, 3, 500)
    away += away >= home
    won = rng.random(500) < expit(0.3 * (home - away) + 0.5)
    table = {"left": home, "right": away, "winner": np.where(won, home, away)}
    prefs = cc.read({name: column.tolist() for name, column in table.items()}, home="left")
    board = cc.rank(prefs, prior=0)
    covariance = board.covariance()
    assert covariance.coefficients == ("home",) and covariance.matrix.shape == (5, 5)
    _, bread, _ = likelihood_twin(prefs, covariates=True)
    assert np.isclose(covariance.matrix[4, 4], bread[3, 3], rtol=1e-6)
    one, other = (covariance.items.index(item) for item in (1, 2))
    twin = bread[3, 0] - bread[3, 1]
    assert np.isclose(covariance.matrix[4, one] - covariance.matrix[4, other], twin, atol=1e-8)


@pytest.mark.parametrize("items", [3, 8])
def test_max_t_is_tukeys_range_where_all_errors_are_one(items):
    prefs = round_robin(items, 40)
    board = cc.rank(prefs, prior=0)
    table = board.contrasts()
    critical = (table["upper_all"][0].as_py() - table["difference"][0].as_py()) / table["standard_error"][0].as_py()
    assert abs(critical - studentized_range.ppf(0.95, items, np.inf) / np.sqrt(2)) < 0.05
    rng = np.random.default_rng(1)
    value = rng.normal(0, 0.25, items)
    moved = cc.rank(shifted(items, value), prior=0, interval="hessian").contrasts()
    t = np.abs(np.asarray(moved["difference"])) / np.asarray(moved["standard_error"])
    twin = studentized_range.sf(t * np.sqrt(2), items, np.inf)
    found = np.asarray(moved["p_max_t"])
    assert np.abs(found - twin).max() < 0.03  # errors differ by some per cent here; 5,000 draws
    assert (found >= np.asarray(moved["p_value"]) - 1e-12).all()


def shifted(items, value):
    """A round robin in which wins are near what scores say."""
    first, second = np.triu_indices(items, 1)
    wins = np.rint(200 * expit(value[first] - value[second])).astype(int)
    winner, loser = np.concatenate([first, second]), np.concatenate([second, first])
    return cc.Preferences.from_comparisons(winner.tolist(), loser.tolist(), count=[*wins.tolist(), *(200 - wins)])


def test_tiny_adjusted_p_values_do_not_end_where_the_draws_do():
    table = cc.rank(simulated([-2, 2, 0], 3000, seed=2)).contrasts()
    p, together = np.asarray(table["p_value"]), np.asarray(table["p_max_t"])
    assert together.min() < 1e-10 and (together <= 3 * p + 1e-300).all() and (together >= p).all()


def test_holm_is_what_it_says():
    table = cc.rank(simulated([-0.2, 0, 0.1, 0.3], 300, seed=4)).contrasts()
    p = np.asarray(table["p_value"])
    twin = np.maximum.accumulate(np.sort(p) * np.arange(len(p), 0, -1))
    assert np.allclose(np.sort(np.asarray(table["p_holm"])), np.minimum(twin, 1))


@pytest.mark.parametrize("name", ["bradley-terry", "borda", "counting"])
def test_a_bootstrap_compares_by_its_replicates(name):
    prefs = simulated([-0.5, 0, 0.5], 200, seed=6)
    board = cc.rank(prefs, name, interval="bootstrap", replicates=199, seed=3)
    drawn = bootstrap(prefs, structure(name), replicates=199, seed=3).replicates
    found = board.compare(2, 0)
    gaps = np.sort(drawn[:, 2] - drawn[:, 0])
    assert np.allclose([found.lower, found.upper], [gaps[4], gaps[194]])
    tail = min((gaps <= 0).sum(), (gaps >= 0).sum())
    assert np.isclose(found.p_value, 2 * (1 + tail) / 200)
    assert np.isnan(found.probability) == (name != "bradley-terry")
    table = board.contrasts()
    assert np.nanmin(np.asarray(table["p_max_t"])) >= 1 / 200
    moved = drawn - drawn.mean(axis=0)
    assert np.isclose(found.standard_error, (moved[:, 2] - moved[:, 0]).std(), rtol=0.02)


def test_what_the_data_do_not_determine_has_no_number():
    votes = cc.Preferences.from_comparisons(
        ["a", "b", "top", "top", "x", "y"], ["b", "a", "a", "b", "y", "x"], count=[8, 5, 3, 3, 4, 4]
    )
    board = cc.rank(votes)
    found = board.compare("top", "a")
    assert not found.determined and "not determined" in str(found)
    assert np.isnan(found.p_value) and found.lower == -np.inf and found.upper == np.inf
    assert (found.probability_lower, found.probability_upper) == (0, 1)
    assert not board.compare("a", "x").determined  # another component
    rows = board.contrasts().to_pylist()
    open_ = {frozenset((row["first"], row["second"])) for row in rows if row["p_value"] is None}
    assert open_ == {frozenset(("top", "a")), frozenset(("top", "b"))}
    assert all(row["p_holm"] is None and row["p_max_t"] is None and row["standard_error"] == np.inf
               for row in rows if frozenset((row["first"], row["second"])) in open_)  # fmt: skip
    matrix = board.covariance()
    at = matrix.items.index("top")
    assert matrix.matrix[at, at] == np.inf and np.isnan(np.delete(matrix.matrix[at], at)).all()


def test_items_and_queries_that_are_not_there_are_named():
    votes = cc.Preferences.from_comparisons(["anna", "bert"] * 2, ["bert", "anna"] * 2, query=["p", "p", "q", "q"])
    board = cc.rank(votes)
    with pytest.raises(UsageError, match="which query\\? There are 2: 'p', 'q'"):
        board.compare("anna", "bert")
    with pytest.raises(UsageError, match="no item 'ana'; did you mean 'anna'"):
        board.compare("ana", "bert", query="p")
    with pytest.raises(UsageError, match="unknown query 'r'"):
        board.contrasts(query="r")
    with pytest.raises(UsageError, match="compared with itself"):
        board.compare("anna", "anna", query="p")
    with pytest.raises(UsageError, match="without intervals"):
        cc.rank(votes, interval="none").compare("anna", "bert", query="p")
    again = pickle.loads(pickle.dumps(board))
    assert again.compare("anna", "bert", query="q") == board.compare("anna", "bert", query="q")


def test_one_cluster_says_nothing_about_spread():
    votes = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], count=[5, 3], cluster=["w", "w"])
    assert not cc.rank(votes).compare("a", "b").determined


def test_single_differences_of_a_large_graph_are_solved_for(monkeypatch):
    prefs = simulated(np.linspace(-1, 1, 12), 900, seed=8)
    for method in ("hessian", "sandwich"):
        whole = cc.rank(prefs, interval=method).compare(3, 9)
        monkeypatch.setattr("concordant.ranking.joint.WHOLE", 5)
        board = cc.rank(prefs, interval=method)
        assert np.isclose(board.compare(3, 9).standard_error, whole.standard_error, rtol=1e-7)
        with pytest.raises(UsageError, match="too many"):
            board.contrasts()
        monkeypatch.undo()


@pytest.mark.parametrize("shape", ["even", "uneven", "chain", "one way"])
def test_the_largest_difference_is_found_without_looking_at_all(shape):
    rng = np.random.default_rng(11)
    n = 40
    variance = np.diag(10.0 ** rng.uniform(-2, 1, n) if shape == "uneven" else rng.uniform(0.8, 1.2, n))
    if shape == "chain":
        variance = np.minimum(np.arange(n)[:, None], np.arange(n)) + np.eye(n)
    square = np.diag(variance)[:, None] + np.diag(variance) - 2 * variance
    weight = np.divide(1, np.sqrt(square), out=np.zeros((n, n)), where=square > 0)
    if shape == "one way":
        weight = np.where(rng.random((n, n)) < 0.3, weight, 0.0)
    draws = rng.standard_normal((500, n)) @ np.linalg.cholesky(variance).T
    plain = ((draws[:, :, None] - draws[:, None, :]) * weight).max(axis=(1, 2))
    assert np.allclose(largest(draws, weight, np.zeros(n, np.int64)), plain, rtol=1e-12)
    assert quantile(plain, 0.95) == np.sort(plain)[int(np.ceil(0.95 * 501)) - 1]

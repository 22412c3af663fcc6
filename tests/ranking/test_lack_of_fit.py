"""The test of fit against exact laws by enumeration and small simulations, residuals against formulas written out."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.stats import binom, binomtest, norm

import concordant as cc
from concordant.auditing.counterexamples import known_counterexample
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.closed_forms import thurstone_mosteller
from concordant.ranking.edge_tests import family_wise
from concordant.ranking.lack_of_fit import Table, lack_of_fit
from concordant.ranking.residuals import standardised
from concordant.ranking.simulated_fit import PRIORS, by_simulation, case_five, logistic
from seeds import seed


def theorem_3(votes, queries, random):
    """Logs of so many votes each on Theorem 3's population, a query each."""
    drawn = random.multinomial(votes, [0.25, 0.01, 0.5, 0.24], queries)
    query, kind = np.nonzero(drawn)
    winner, loser = np.array(["1", "2", "1", "3"])[kind], np.array(["2", "3", "3", "1"])[kind]
    return Preferences.from_comparisons(winner, loser, query, count=drawn[query, kind])


def fitting_logs(items, judgments, queries, random, clusters=0):
    """Logs of a Bradley–Terry model, a query each; clusters share part of what decides."""
    score = random.normal(size=(queries, items))
    first = random.integers(0, items, (queries, judgments))
    second = (first + random.integers(1, items, (queries, judgments))) % items
    first, second = np.minimum(first, second), np.maximum(first, second)
    query = np.repeat(np.arange(queries), judgments)
    margin = np.take_along_axis(score, first, 1) - np.take_along_axis(score, second, 1)
    uniform = random.random((queries, judgments))
    if clusters:  # half the judgments of a cluster use one draw
        shared = np.repeat(random.random((queries, clusters)), judgments // clusters, axis=1)
        uniform = np.where(random.random(uniform.shape) < 0.5, shared, uniform)
    won = uniform < 1 / (1 + np.exp(-margin))
    cluster = (
        query * 1000 + np.tile(np.repeat(np.arange(clusters), judgments // clusters), queries) if clusters else None
    )
    winner, loser = np.where(won, first, second).ravel(), np.where(won, second, first).ravel()
    return Preferences.from_comparisons(winner, loser, query, cluster=cluster)


def p_values(prefs):
    batch = Batch.whole(prefs)
    return lack_of_fit(batch, bradley_terry(batch))


@pytest.mark.parametrize("plain", [False, True])
def test_tables_with_the_same_totals_are_drawn_evenly(plain):
    """Five comparisons of four items: every outcome with the totals of the first is as frequent as any other."""
    pairs = [(0, 1), (1, 2), (0, 2), (2, 3), (1, 3), (0, 3)]
    first_wins = np.array([1, 1, 0, 1, 0, 1])

    def totals(won):
        return np.bincount([i if w else j for (i, j), w in zip(pairs, won, strict=True)], minlength=4).tolist()

    alike = [won for won in product((0, 1), repeat=6) if totals(won) == totals(first_wins)]
    assert len(alike) > 2
    (first, second), weight = np.array(pairs).T, 2.0 ** np.arange(6)
    table = Table.of(first, second, first_wins, 1 - first_wins, slice(0, 4))
    draw = table.drawn_plainly if plain else table.drawn  # a statistic that tells outcomes apart: Σ (won − 0)² 2^p
    found = draw(20_000, 8, 5, np.zeros(6), 1 / weight)
    assert found[0] == np.dot(first_wins, weight)
    values, counts = np.unique(found[1:].round(6), return_counts=True)
    assert values.tolist() == sorted(float(np.dot(won, weight)) for won in alike)
    assert np.abs(counts / 20_000 - 1 / len(alike)).max() < 0.02


def test_the_p_value_of_theorem_3_is_that_of_all_tables_with_its_totals():
    """100 votes: item 2 won once, over 3 or over 1 in one of 25 ways; the mid-p-value counts half of its own table."""
    found = p_values(known_counterexample("theorem-3").preferences)[0]
    tables = {0: 1.0, 1: 25 * 24 / 51}  # C(25, k)·C(74, 50 + k)·C(1, 1 − k), over that of k = 0
    assert found == pytest.approx(0.5 * tables[0] / sum(tables.values()), abs=0.012)


def test_size_and_power_in_small():
    """At 5% between 1% and 10% of 200 logs (three standard errors about 5%), and nine of ten on Theorem 3."""
    random = np.random.default_rng(seed(0))
    for items, judgments, clusters in ((3, 200, 0), (12, 70, 0), (30, 100, 0), (8, 300, 50)):
        found = p_values(fitting_logs(items, judgments, 200, random, clusters))
        share = float((found[~np.isnan(found)] <= 0.05).mean())
        assert (~np.isnan(found)).sum() > 150 and 0.01 <= share <= 0.1, (items, judgments, share)
    found = p_values(theorem_3(300, 100, random))
    assert (found <= 0.05).mean() >= 0.85


def clustered_with_a_covariate(items, judgments, clusters, random, lean=0.0):
    """Votes of a Bradley–Terry model with a covariate of three values; ``lean``: the first two items change with it."""
    score, one = random.normal(size=items), random.integers(0, items, judgments)
    other = (one + random.integers(1, items, judgments)) % items
    z = random.integers(-1, 2, judgments).astype(float)
    margin = score[one] - score[other] + 0.4 * z + lean * ((one + other) % 3 - 1) * np.sign(one - other)
    won = random.random(judgments) < 1 / (1 + np.exp(-margin))
    winner, loser = np.where(won, one, other), np.where(won, other, one)
    cluster = np.repeat(np.arange(clusters), judgments // clusters)
    return Preferences.from_comparisons(winner, loser, cluster=cluster, covariates={"z": np.where(won, z, -z)})


def test_clusters_beside_a_covariate_are_tested_by_every_sign():
    """Sixteen clusters have 65,536 signs: the p-value is that of the formula over all of them, but for the draws."""
    votes = clustered_with_a_covariate(4, 128, 16, np.random.default_rng(seed(8)), lean=1.0)
    batch = Batch.whole(votes)
    scores = bradley_terry(batch)
    theta = np.append(scores.value, scores.coefficients["z"][0])
    low, high = np.minimum(votes.winner, votes.loser), np.maximum(votes.winner, votes.loser)
    pairs = sorted(set(zip(low.tolist(), high.tolist(), strict=True)))
    r, v, vx, shares = np.zeros((16, len(pairs))), np.zeros(len(pairs)), np.zeros((len(pairs), 5)), np.zeros((16, 6))
    information, moments = 0.01 * np.diag([1.0, 1, 1, 1, 0]), np.zeros((16, 5))
    for row, count in enumerate(votes.count):
        swap, pair = votes.winner[row] > votes.loser[row], pairs.index((low[row], high[row]))
        x = np.zeros(5)
        x[low[row]], x[high[row]], x[4] = 1, -1, votes.covariates[row, 0] * (-1 if swap else 1)
        p, unit = 1 / (1 + np.exp(-x @ theta)), votes.cluster[row]
        r[unit, pair] += count * (float(not swap) - p)
        shares[unit, pair] += count * p * (1 - p)
        v[pair] += count * p * (1 - p)
        vx[pair] += count * p * (1 - p) * x
        information += count * p * (1 - p) * np.outer(x, x)
        moments[unit] += count * (float(not swap) - p) * x
    centre = np.eye(5)
    centre[:4, :4] -= 0.25
    information[:4, :4] += information.max() / 4  # the direction that no comparison sees
    inverse = centre @ np.linalg.inv(information) @ centre.T
    left = r - moments @ inverse @ vx.T
    signs = np.array(list(product((-1.0, 1.0), repeat=16)))
    squares = ((signs @ left) ** 2 / v).sum(axis=1)
    h = np.diag(vx @ inverse @ vx.T) / v
    lost = (h * (1 - h) * (shares**2).sum(axis=0) / v**2).sum()
    moved = squares.mean() * lost / ((1 - h).sum() - lost)
    p = (squares + moved >= (r.sum(axis=0) ** 2 / v).sum()).mean()
    assert 0.005 < p < 0.995
    assert lack_of_fit(batch, scores)[0] == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 999))


def test_size_and_power_with_clusters_beside_a_covariate():
    random = np.random.default_rng(seed(9))
    found = []
    for lean in (0.0, 0.8):
        logs = [clustered_with_a_covariate(6, 400, 40, random, lean) for _ in range(60)]
        found.append(np.mean([p_values(votes)[0] <= 0.05 for votes in logs]))
    assert found[0] <= 0.12 and found[1] >= 0.9


def test_a_prior_makes_no_lack_of_fit():
    prefs = fitting_logs(5, 2000, 1, np.random.default_rng(seed(1)))
    found = [cc.rank(prefs, prior=prior, interval="none").lack_of_fit[0] for prior in (0.0, 0.01, 100.0)]
    assert min(found) > 0.05 and not [note for note in cc.rank(prefs, prior=100.0).notes if "lack of fit" in note]


def test_a_prior_makes_no_lack_of_fit_of_judgments_that_fade():
    """Strengths are tested by random signs, which say nothing of scores that a strong prior draws together."""
    random, found = np.random.default_rng(seed(4)), []
    for _ in range(40):
        prefs = fitting_logs(12, 500, 1, random)
        won, lost = (np.repeat(side, prefs.count) for side in (prefs.winner, prefs.loser))
        weight = 0.5 ** (random.integers(0, 100, len(won)) / 33)
        votes = Preferences.from_comparisons(won.tolist(), lost.tolist(), weight=weight)
        found.append(cc.rank(votes, prior=8.0, interval="none").lack_of_fit[0] <= 0.05)
    assert np.mean(found) <= 0.15


def test_rank_says_that_theorem_3_contradicts_its_ranks():
    votes = theorem_3(3000, 1, np.random.default_rng(seed(2)))
    board = cc.rank(votes)
    row = board.contradicted.to_pylist()[0]
    assert len(board.contradicted) == 1 and (row["winner"], row["loser"], row["losses"]) == ("2", "3", 0)
    assert row["p_value"] == pytest.approx(min(1, 3 * binomtest(int(row["wins"]), int(row["wins"])).pvalue))
    assert row["against_ranks"] and board.lack_of_fit[0] < 0.001
    notes = {note.code: note for note in board.notes}
    assert set(notes) == {"lack of fit", "contradicted pairs"}
    assert "prefer '2' to '3'" in notes["contradicted pairs"] and "structure='kemeny'" in notes["contradicted pairs"]


def test_many_queries_have_one_line_with_counts():
    random = np.random.default_rng(seed(3))
    board = cc.rank(theorem_3(3000, 6, random), interval="none")
    (note,) = (note for note in board.notes if note.code == "lack of fit")
    assert note.numbers["queries"] == 6 == note.numbers["tested"] and "in 6 of 6 queries" in note
    fine = cc.rank(fitting_logs(4, 600, 6, random), interval="none")
    assert not [note for note in fine.notes if note.code == "lack of fit"]


def test_residuals_are_those_of_the_formula():
    votes = Preferences.from_comparisons(list("abcabcda"), list("bcacabad"), count=[9, 7, 3, 4, 2, 8, 5, 6])
    board = cc.rank(votes, prior=0.01)
    table = board.residuals()
    score = dict(zip(board.to_arrow()["item"].to_pylist(), board.score, strict=True))
    items = sorted(score)
    x = np.zeros((len(table), len(items)))
    for row, (i, j) in enumerate(zip(table["first"].to_pylist(), table["second"].to_pylist(), strict=True)):
        x[row, items.index(i)], x[row, items.index(j)] = 1, -1
    n = table["judgments"].to_numpy()
    p = 1 / (1 + np.exp(-x @ [score[item] for item in items]))
    np.testing.assert_allclose(table["expected"], n * p)
    v = np.diag(n * p * (1 - p))
    a = np.linalg.inv(x.T @ v @ x + 0.01 * np.eye(len(items)))
    left = np.eye(len(n)) - v @ x @ a @ x.T
    error = np.sqrt(np.diag(left @ v @ left.T))
    expected = (table["observed"].to_numpy() - n * p) / error
    np.testing.assert_allclose(table["standardised"], expected, rtol=1e-6)
    assert table.schema.names == ["query", "first", "second", "judgments", "expected", "observed", "standardised"]


def test_residuals_of_clusters_beside_a_covariate_are_those_of_the_formula():
    """Each judgment written out as a row of its own, (I − V X A⁻¹ Xᵀ) r of each cluster added up by pairs of items."""
    votes = clustered_with_a_covariate(4, 128, 16, np.random.default_rng(seed(10)))
    board = cc.rank(votes, interval="none")
    scores = bradley_terry(Batch.whole(votes))
    theta = np.append(scores.value, scores.coefficients["z"][0])
    low, high = np.minimum(votes.winner, votes.loser), np.maximum(votes.winner, votes.loser)
    swap = votes.winner > votes.loser
    x = np.zeros((len(low), 5))
    rows = np.arange(len(low))
    x[rows, low], x[rows, high], x[:, 4] = 1, -1, np.where(swap, -1, 1) * votes.covariates[:, 0]
    p, n = 1 / (1 + np.exp(-x @ theta)), votes.count.astype(float)
    v, r = n * p * (1 - p), n * (~swap - p)
    a = np.linalg.pinv(x.T @ (v[:, None] * x) + 0.01 * np.diag([1.0, 1, 1, 1, 0]))
    pairs = sorted(set(zip(low.tolist(), high.tolist(), strict=True)))
    join = np.array([[(low[k], high[k]) == pair for k in rows] for pair in pairs], float)
    left = np.eye(len(rows)) - v[:, None] * (x @ a @ x.T)
    square = np.zeros(len(pairs))
    for unit in range(16):
        square += (join @ left @ np.where(votes.cluster == unit, r, 0.0)) ** 2
    table = board.residuals()
    np.testing.assert_allclose(table["expected"], join @ (n * p), rtol=1e-9)
    np.testing.assert_allclose(table["observed"], join @ (n * ~swap))
    np.testing.assert_allclose(table["standardised"], join @ r / np.sqrt(square * 16 / 15), rtol=1e-6)


def test_residuals_of_clusters_beside_a_covariate_have_the_spread_that_they_say():
    """Of 300 logs that fit, a standardised residual has mean 0 and variance 1; as if independent it would be larger."""
    random, found = np.random.default_rng(seed(11)), []
    for _ in range(300):
        score, z = np.array([0.5, 0.0, -0.5]), random.integers(-1, 2, (60, 6)).astype(float)
        one = np.tile([0, 0, 1], (60, 2))
        other = np.tile([1, 2, 2], (60, 2))
        uniform = np.where(random.random((60, 6)) < 0.7, random.random((60, 1)), random.random((60, 6)))
        won = uniform < 1 / (1 + np.exp(-(score[one] - score[other] + 0.5 * z)))
        winner, loser = np.where(won, one, other).ravel(), np.where(won, other, one).ravel()
        cluster, sign = np.repeat(np.arange(60), 6), np.where(won, z, -z).ravel()
        votes = Preferences.from_comparisons(winner, loser, cluster=cluster, covariates={"z": sign})
        batch = Batch.whole(votes)
        found.append(standardised(batch, bradley_terry(batch)).standardised)
    table = np.array(found)
    assert np.abs(table.mean(axis=0)).max() < 0.2 and 0.8 < table.var(axis=0).min() <= table.var(axis=0).max() < 1.25


def test_a_pair_that_one_cluster_judged_has_no_standardised_residual():
    votes = Preferences.from_comparisons(
        list("abcaab"), list("bcabcc"), cluster=list("xxxyyx"), covariates={"z": [1.0, -1, 1, 0, 1, 0]}
    )
    found = cc.rank(votes).residuals()["standardised"].to_pylist()
    assert [each is None for each in found] == [False, False, True]


def test_scores_of_other_structures_have_no_residuals():
    votes = Preferences.from_comparisons(["a", "b"], ["b", "a"])
    with pytest.raises(cc.UsageError, match="residuals need scores that say how often"):
        cc.rank(votes, "borda").residuals()
    assert cc.rank(votes, "borda").lack_of_fit is None and np.isnan(cc.rank(votes).lack_of_fit).all()
    empty = cc.rank(Preferences.empty())
    assert empty.lack_of_fit is None and empty.contradicted is None


def test_holm():
    np.testing.assert_allclose(family_wise(np.array([0.02, 0.01, 0.5]), 3), [0.04, 0.03, 0.5])


def test_scores_by_log_odds_are_tested_as_the_model_that_they_are_of():
    """No fit enters the test of Bradley and Terry's model but through its totals."""
    votes = theorem_3(300, 4, np.random.default_rng(seed(4)))
    batch = Batch.whole(votes)
    np.testing.assert_array_equal(lack_of_fit(batch, thurstone_mosteller(batch)), p_values(votes))
    board = cc.rank(votes, "thurstone-mosteller")
    assert {note.code for note in board.notes} >= {"lack of fit"} and (board.lack_of_fit < 0.05).all()
    shares = lack_of_fit(batch, thurstone_mosteller(batch, differences="shares"))
    assert np.isnan(shares).all()


def normal_logs(items, judgments, queries, random):
    """Logs of Thurstone's case V, a query each."""
    score = random.normal(size=(queries, items))
    one = random.integers(0, items, (queries, judgments))
    other = (one + random.integers(1, items, (queries, judgments))) % items
    margin = np.take_along_axis(score, one, 1) - np.take_along_axis(score, other, 1)
    won = random.random((queries, judgments)) < norm.cdf(margin / np.sqrt(2))
    query = np.repeat(np.arange(queries), judgments)
    return Preferences.from_comparisons(np.where(won, one, other).ravel(), np.where(won, other, one).ravel(), query)


def home_logs(items, judgments, queries, random):
    """Logs of a Bradley–Terry model with a home side, a query each."""
    score = random.normal(size=(queries, items))
    one = random.integers(0, items, (queries, judgments))
    other = (one + random.integers(1, items, (queries, judgments))) % items
    margin = np.take_along_axis(score, one, 1) - np.take_along_axis(score, other, 1) + 0.4
    won = random.random((queries, judgments)) < 1 / (1 + np.exp(-margin))
    query = np.repeat(np.arange(queries), judgments)
    winner, loser = np.where(won, one, other).ravel(), np.where(won, other, one).ravel()
    return Preferences.from_comparisons(winner, loser, query, covariates={"home": np.where(won, 1.0, -1.0).ravel()})


def test_size_and_power_of_the_simulated_test_in_small():
    """At 5% at most 12% of 60 sparse logs, with a home side or of the normal law; nine of ten on Theorem 3."""
    random = np.random.default_rng(seed(5))
    for items, judgments in ((5, 60), (20, 100)):
        batch = Batch.whole(home_logs(items, judgments, 60, random))
        assert 0 <= (lack_of_fit(batch, bradley_terry(batch)) <= 0.05).mean() <= 0.12
        batch = Batch.whole(normal_logs(items, judgments, 60, random))
        assert 0 <= (lack_of_fit(batch, thurstone_mosteller(batch, differences="probit")) <= 0.05).mean() <= 0.12
    batch = Batch.whole(theorem_3(300, 40, random))
    assert (lack_of_fit(batch, thurstone_mosteller(batch, differences="probit")) <= 0.05).mean() >= 0.8


@pytest.mark.parametrize("link", [logistic, case_five])
def test_the_simulated_test_is_that_of_every_table_fitted_apart(link):
    """Three items, one judgment a pair more or less: the chance of each table about the fit, each fitted by SciPy."""
    design = np.array([[1, -1, 0], [0, 1, -1], [1, 0, -1]], float)
    total, wins = np.array([4.0, 3.0, 4.0]), np.array([3.0, 3.0, 1.0])

    def likelihood(theta, table, prior):
        share = link(design @ theta)[0]
        return -(table @ np.log(share) + (total - table) @ np.log(1 - share)) + 0.5 * prior * theta @ theta

    def square(table):
        share = link(design @ minimize(likelihood, np.zeros(3), (table, 0.01), tol=1e-12).x)[0]
        return float(((table - total * share) ** 2 / (total * share * (1 - share))).sum())

    def evidence(prior):
        found = minimize(likelihood, np.zeros(3), (wins, prior), tol=1e-12)
        share, slope = link(design @ found.x)
        inside = design.T @ np.diag(total * slope**2 / (share * (1 - share))) @ design
        precision = inside + prior * np.eye(3)
        return -found.fun + 1.5 * np.log(prior) - 0.5 * np.linalg.slogdet(precision)[1], found.x, precision

    _, centre, precision = max((evidence(prior) for prior in PRIORS), key=lambda each: each[0])
    theta = np.random.default_rng(seed(7)).multivariate_normal(centre, np.linalg.inv(precision), 4000)
    share = link(theta @ design.T)[0]
    tables = np.array(list(product(*(range(int(n) + 1) for n in total))), float)
    chance = np.prod(binom.pmf(tables[:, None], total, share), axis=2).mean(axis=1)
    statistic = np.array([square(table) for table in tables])
    own = square(wins)
    expected = chance[statistic > own + 1e-6].sum() + 0.5 * chance[np.abs(statistic - own) <= 1e-6].sum()
    found = np.mean([by_simulation(csr_array(design), wins, total, link, draw) for draw in range(20)])
    assert found == pytest.approx(expected, abs=0.03)

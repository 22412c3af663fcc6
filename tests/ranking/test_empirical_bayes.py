"""The prior that the data choose: the marginal likelihood by quadrature, its log-determinants, what is refused."""

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array
from scipy.special import expit

import concordant as cc
from concordant.errors import UsageError
from concordant.preferences.graphs import Batch
from concordant.ranking import empirical_bayes
from concordant.ranking.empirical_bayes import chosen_prior
from concordant.ranking.structures import structure
from seeds import seed

BT = structure("bradley-terry")


def votes_of(rng, items, votes, spread, queries=1):
    ability = rng.normal(0, spread, (queries, items))
    query = rng.integers(0, queries, votes)
    i = rng.integers(0, items, votes)
    j = (i + rng.integers(1, items, votes)) % items
    wins = rng.random(votes) < expit(ability[query, i] - ability[query, j])
    return cc.Preferences.from_comparisons(np.where(wins, i, j), np.where(wins, j, i), query=query)


def log_marginal(batch, prior):
    return empirical_bayes._log_marginal(batch, BT, BT.curvature, {"prior": prior})


def exact_log_marginal(wins, prior, nodes=90):
    """log ∫ L(s) N(s; 0, 1/λ) ds of three items by Gauss–Hermite quadrature."""
    x, weight = np.polynomial.hermite_e.hermegauss(nodes)
    s = np.stack(np.meshgrid(x, x, x)) / np.sqrt(prior)
    log = sum(n * np.log(expit(s[i] - s[j])) for (i, j), n in wins.items())
    return np.log(np.einsum("ijk,i,j,k->", np.exp(log), weight, weight, weight)) - 1.5 * np.log(2 * np.pi)


def test_laplace_follows_the_integral():
    wins = {(0, 1): 30, (1, 0): 12, (1, 2): 25, (2, 1): 15, (0, 2): 33, (2, 0): 9}
    first, second = np.array(list(wins)).T
    prefs = cc.Preferences.from_comparisons(first, second, count=list(wins.values()))
    batch, priors = Batch.whole(prefs), (0.3, 1.0, 4.0, 12.0)
    found = np.array([log_marginal(batch, prior) for prior in priors])
    exact = np.array([exact_log_marginal(wins, prior) for prior in priors])
    assert np.abs((found - found[0]) - (exact - exact[0])).max() < 0.03


@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_the_spread_of_abilities_is_found(spread):
    prefs = votes_of(np.random.default_rng(seed(3)), 12, 40_000, spread, queries=60)
    prior, note = chosen_prior(prefs, BT, {})
    assert prior**-0.5 == pytest.approx(spread, rel=0.12)  # 660 differences of items: 3% is one standard error
    assert "under which the judgments are likeliest" in note and note.numbers["prior"] == prior


def test_it_is_the_maximum():
    prefs = votes_of(np.random.default_rng(seed(4)), 15, 600, 1.0)
    prior, _ = chosen_prior(prefs, BT, {})
    batch = Batch.whole(prefs)
    there, beside = (log_marginal(batch, p) for p in (prior, prior * 1.2))
    assert there > beside and there > log_marginal(batch, prior / 1.2)


@pytest.mark.parametrize("options", [{"ties": "davidson"}, {}])
def test_ties_and_lists_have_one_too(options):
    rng = np.random.default_rng(seed(6))
    ranks = np.argsort(np.argsort(-(rng.normal(0, 1, 6) + rng.gumbel(size=(400, 6))), axis=1), axis=1)
    ranks = np.maximum(ranks, 1) if options else ranks  # the first two tie
    who = np.repeat(np.arange(400), 6)
    orders = cc.Preferences.from_orders(["q"] * 2400, who, np.tile(np.arange(6), 400), ranks.ravel() + 1)
    board = cc.rank(orders, structure="plackett-luce", prior="auto", **options)
    assert 0.1 < board.judged.options["prior"] < 5
    again = cc.rank(orders, structure="plackett-luce", prior=board.judged.options["prior"], **options)
    assert (again.score == board.score).all() and any(note.startswith("prior: precision") for note in board.notes)


def test_alike_items_and_items_that_only_win_end_at_the_bounds():
    alike = cc.Preferences.from_comparisons(list("aabbcc"), list("bcacab"), count=[50] * 6)
    prior, note = chosen_prior(alike, BT, {})
    assert prior > 900 and "no differences" in note
    steps = cc.Preferences.from_comparisons(list("abcde"), list("bcdef"), count=[10**6] * 5)
    prior, note = chosen_prior(steps, BT, {})
    assert prior < 0.05


@pytest.mark.parametrize("way", ["quadrature", "factors"])
def test_log_determinants(way):
    rng = np.random.default_rng(seed(2))
    parts = []
    for size in rng.integers(2, 40, 60):
        pairs = np.triu(rng.random((size, size)) * (rng.random((size, size)) < 0.3), 1)
        parts.append(np.diag((pairs + pairs.T).sum(axis=1)) - pairs - pairs.T + 0.3 * np.eye(size))
    matrix = block_diag([csr_array(part) for part in parts], format="csr")
    exact = np.linalg.slogdet(matrix.toarray())[1]
    if way == "quadrature":
        assert empirical_bayes._by_quadrature(matrix) == pytest.approx(exact, abs=0.01 * matrix.shape[0])
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(empirical_bayes, "DENSE", 1)
            assert empirical_bayes.log_determinant(matrix, 40) == pytest.approx(exact, abs=1e-8 * matrix.shape[0])


def test_what_has_no_such_prior_is_refused():
    prefs = votes_of(np.random.default_rng(seed(1)), 4, 40, 1.0)
    with pytest.raises(UsageError, match="borda has no option 'prior'"):
        cc.rank(prefs, structure="borda", prior="auto")
    with pytest.raises(UsageError, match="prior must be a number, not 'best'"):
        cc.rank(prefs, prior="best")
    with pytest.raises(UsageError, match="means of its own"):
        cc.rank(prefs, prior="auto", mean=np.zeros(4))

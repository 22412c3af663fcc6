"""Judgments that depend on each other in two ways: the sandwich of Cameron, Gelbach and Miller, from its formula."""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

import concordant as cc
from concordant.preferences.preferences import Preferences
from concordant.ranking.covariance import _semidefinite
from concordant.ranking.rank_intervals import _drawn_quantile


def crossed_votes(draw, judges=9, prompts=7, votes=400, items=5, tastes=0.0):
    """Columns of votes; judges, and prompts, like each item more or less than the others do, by ``tastes``."""
    rng = np.random.default_rng(draw)
    judge, prompt = rng.integers(0, judges, votes), rng.integers(0, prompts, votes)
    first = rng.integers(0, items, votes)
    second = (first + rng.integers(1, items, votes)) % items
    liked, suited = (tastes * rng.normal(size=(number, items)) for number in (judges, prompts))
    ahead = liked[judge, first] - liked[judge, second] + suited[prompt, first] - suited[prompt, second]
    won = rng.random(votes) < 1 / (1 + np.exp(-ahead))
    return np.where(won, first, second), np.where(won, second, first), judge, prompt


def by_formula(columns, prior, *, only_cells=False):
    """V = A⁻¹(M_A + M_B − M_AB)A⁻¹, or A⁻¹M_AB A⁻¹; scores by Newton's method on the dense matrix."""
    winner, loser, judge, prompt = columns
    n = max(winner.max(), loser.max()) + 1
    x = np.zeros((len(winner), n))
    x[np.arange(len(winner)), winner] = 1
    x[np.arange(len(winner)), loser] = -1
    score = np.zeros(n)
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ score))
        hessian = x.T @ (x * (p * (1 - p))[:, None]) + prior * np.eye(n)
        score += np.linalg.solve(hessian, x.T @ (1 - p) - prior * score)
    u = x * (1 - 1 / (1 + np.exp(-x @ score)))[:, None]
    middle = np.zeros((n, n))
    for label, sign in ((judge, 1), (prompt, 1), (judge * 1000 + prompt, -1)):
        if only_cells and sign > 0:
            continue
        cells = np.unique(label)
        sums = np.array([u[label == cell].sum(axis=0) for cell in cells])
        middle += (1 if only_cells else sign) * len(cells) / (len(cells) - 1) * sums.T @ sums
    bread = np.linalg.inv(hessian)
    centred = np.eye(n) - 1 / n
    return score - score.mean(), centred @ bread @ middle @ bread @ centred


@pytest.mark.parametrize("draw", range(4))
def test_the_covariance_is_that_of_the_formula(draw):
    columns = crossed_votes(draw, judges=20, prompts=25, votes=2000, tastes=1.0)
    winner, loser, judge, prompt = columns
    votes = Preferences.from_comparisons(winner, loser, cluster={"judge": judge, "prompt": prompt})
    score, expected = by_formula(columns, 0.01)
    board = cc.rank(votes)
    assert board.interval == "sandwich" and votes.facts.endswith("20 clusters by judge and 25 by prompt")
    order = np.argsort(board.item)
    assert board.score[order] == pytest.approx(score, abs=1e-7)
    found = board.covariance()
    place = np.argsort(found.items)
    assert np.linalg.eigvalsh(expected).min() > -1e-9
    assert found.matrix[np.ix_(place, place)] == pytest.approx(expected, abs=1e-7)


def test_a_difference_that_is_not_positive_keeps_what_the_cells_say():
    """Three judges and three prompts: V_A + V_B − V_AB has negative eigenvalues, so nothing of V_AB is taken away."""
    columns = crossed_votes(7, judges=3, prompts=3, votes=120, items=4)
    winner, loser, judge, prompt = columns
    _, plain = by_formula(columns, 0.01)
    assert np.linalg.eigvalsh(plain).min() < -1e-3
    _, cells = by_formula(columns, 0.01, only_cells=True)
    found = cc.rank(
        Preferences.from_comparisons(winner, loser, cluster={"judge": judge, "prompt": prompt})
    ).covariance()
    place = np.argsort(found.items)
    value, vector = np.linalg.eigh(plain - cells)
    expected = cells + (vector * np.maximum(value, 0)) @ vector.T
    assert found.matrix[np.ix_(place, place)] == pytest.approx(expected, abs=1e-7)


def test_the_cells_are_of_both_and_merge():
    winner, loser, judge, prompt = crossed_votes(2)
    names = np.array(list("abcdefghi"))
    whole = Preferences.from_comparisons(winner, loser, cluster={"judge": names[judge], "prompt": prompt})
    first, second = (
        Preferences.from_comparisons(
            winner[part], loser[part], cluster={"judge": names[judge[part]], "prompt": prompt[part]}
        )
        for part in (slice(0, 150), slice(150, None))
    )
    assert second + first == whole and (first + second).cluster_columns == ("judge", "prompt")
    assert [len(np.unique(way)) for way in whole.cluster_ways] == [9, 7]
    assert whole.by_cluster("judge") == Preferences.from_comparisons(winner, loser, cluster=names[judge])
    with pytest.raises(cc.UsageError, match="only one has clusters"):
        whole + whole.by_cluster("judge")


def test_what_heeds_one_column_says_so():
    winner, loser, judge, prompt = crossed_votes(3)
    votes = Preferences.from_comparisons(winner, loser, cluster={"judge": judge, "prompt": prompt})
    features = {"item": np.arange(5), "x": np.arange(5.0)}
    for call in (
        lambda: cc.audit(votes),
        lambda: cc.rank(votes, "kemeny"),
        lambda: cc.rank(votes, interval="bootstrap"),
        lambda: cc.AggregationRanker().fit(features, votes),
        lambda: cc.report(votes),
    ):
        with pytest.raises(cc.UsageError, match="heeds one column of clusters, not 'judge', 'prompt' at once"):
            call()
    assert cc.rank(votes, "borda", interval="none").rank.min() == 1
    assert cc.rank(votes).residuals().num_rows == 10


def test_rows_without_one_of_both_are_refused_by_name(tmp_path):
    log = tmp_path / "votes.csv"
    log.write_text("winner,loser,judge,prompt\na,b,j,p\nb,c,j,\nc,a,,q\na,c,k,q\n")
    with pytest.raises(cc.InputError, match="no cluster"):
        cc.read(log, cluster=("judge", "prompt"))
    read = cc.read(log, cluster=("judge", "prompt"), on_error="skip")
    assert len(read) == 2 and read.clusters.tolist() == ['["j", "p"]', '["k", "q"]']
    for engine in ("memory", "duckdb"):
        assert cc.read(log, cluster=("judge", "prompt"), on_error="skip", engine=engine) == read
    for wrong in ((), ("judge", "judge"), 3, tuple(f"column {number}" for number in range(17))):
        with pytest.raises(cc.UsageError, match="cluster"):
            cc.read(log, cluster=wrong)
    many = cc.read(log, cluster=("judge", "prompt", "winner", "loser"), on_error="skip")
    with pytest.raises(cc.UsageError, match="up to 3 columns of clusters"):
        cc.rank(many, interval="sandwich")
    assert cc.read(log, cluster=("judge",), on_error="skip").cluster_columns == ()
    with pytest.raises(cc.InputError, match="'prompt' has no column"):
        Preferences.from_comparisons(["a"], ["b"], cluster={"judge": ["j"], "prompt": None})


def test_a_column_that_looks_like_a_judge_is_suggested(tmp_path):
    log = tmp_path / "votes.csv"
    log.write_text("winner,loser,judge,prompt\na,b,j,p\nb,c,j,p\nc,a,k,q\na,c,k,q\n")
    (note,) = cc.read(log).notes
    assert "the columns 'judge' and 'prompt' look like who judged and what was asked and are not used" in note
    (note,) = cc.read(log, cluster="judge").notes
    assert "the column 'prompt' looks like what was asked and is not used" in note and "('judge', 'prompt')" in note
    assert not cc.read(log, cluster=("judge", "prompt")).notes
    assert "prompt" not in cc.read(log, columns={"query": "prompt"}).notes[0]


def test_few_clusters_have_the_t_law():
    """Intervals, differences and predictions are as wide as the t law of the fewest clusters says."""
    winner, loser, judge, prompt = crossed_votes(4, judges=12, prompts=8, votes=900, tastes=0.7)
    whose = {"judge": judge, "prompt": prompt}
    for cluster, freedom in ((whose, 7), (judge, 11)):
        board = cc.rank(Preferences.from_comparisons(winner, loser, cluster=cluster))
        found = board.covariance()
        place = {item: row for row, item in enumerate(found.items)}
        error = np.array([np.sqrt(found.matrix[place[i], place[i]]) for i in board.items.take(board.item).to_pylist()])
        assert (board.upper - board.lower) / 2 / error == pytest.approx(student.ppf(0.975, freedom), rel=1e-9)
        one = board.compare(0, 1)
        t = one.difference / one.standard_error
        assert (one.upper - one.lower) / 2 / one.standard_error == pytest.approx(student.ppf(0.975, freedom), rel=1e-9)
        assert one.p_value == pytest.approx(2 * student.sf(abs(t), freedom), rel=1e-9)
        assert board.notes[0].endswith(f"by the t law with {freedom} degrees of freedom")
    plain = cc.rank(Preferences.from_comparisons(winner, loser), interval="sandwich")
    one = plain.compare(0, 1)
    assert (one.upper - one.lower) / 2 / one.standard_error == pytest.approx(norm.ppf(0.975), rel=1e-12)


def test_few_clusters_make_rank_ranges_wider():
    """The critical value of all differences together is that of the multivariate t law, here by plain simulation."""
    rng = np.random.default_rng(0)
    pairs = np.where(np.eye(4) > 0, np.inf, np.sqrt(2))[None]
    found = _drawn_quantile(np.eye(4)[None], pairs, np.array([0.95]), 0, np.array([6.0]))[0]
    normal = rng.standard_normal((400_000, 4))
    most = (normal.max(axis=1) - normal.min(axis=1)) / np.sqrt(2)
    expected = np.quantile(most / np.sqrt(rng.chisquare(6, len(most)) / 6), 0.95)
    assert found == pytest.approx(expected, rel=0.03) and found > 1.3 * np.quantile(most, 0.95)


def test_cells_that_are_lost_to_rounding_give_no_interval() -> None:
    matrix = np.stack([np.diag([1.0, -0.5]), np.diag([1.0, -0.5]), np.eye(2)])
    cells = np.stack([np.full((2, 2), np.nan), np.eye(2) / 4, np.full((2, 2), np.nan)])
    found = _semidefinite(matrix.copy(), cells)
    assert np.isnan(found[0]).all() and (found[2] == matrix[2]).all()
    assert np.allclose(found[1], np.diag([1.0, 0.25]))

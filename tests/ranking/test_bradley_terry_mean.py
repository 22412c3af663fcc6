"""Bradley–Terry whose prior has means: against a plain optimiser, limit laws, subsets, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from concordant.errors import UsageError
from concordant.learning.targets.mean_targets import mean_targets
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.ranking.bootstrap import bootstrap
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.rank import rank
from concordant.ranking.structures import structure

Floats = NDArray[np.float64]


# -- the plain twin ----------------------------------------------------------------------------------------------
def plain(batch: Batch, graph: int, prior: float, mean: Floats) -> Floats:
    """Maximise Σ n_jl log σ(s_j − s_l) − (prior/2)‖s − mean‖² as it stands; a tie is half a win each way."""
    prefs, low = batch.prefs, int(batch.node_start[graph])
    m = int(batch.node_start[graph + 1]) - low
    item = batch.item[low : low + m]
    n = np.zeros((m, m))
    for h in range(int(batch.start[graph]), int(batch.start[graph + 1])):
        j = int(batch.judgment[h])
        a, b = np.searchsorted(item, [prefs.winner[j], prefs.loser[j]])
        mass = float(batch.multiplicity[h]) * (1.0 if prefs.weight is None else float(prefs.weight[j]))
        tie = prefs.tie is not None and bool(prefs.tie[j])
        n[a, b] += mass / 2 if tie else mass
        n[b, a] += mass / 2 if tie else 0.0

    def value(s: Floats) -> float:
        return float(-(n * log_expit(s[:, None] - s[None, :])).sum() + prior / 2 * ((s - mean) ** 2).sum())

    def slope(s: Floats) -> Floats:
        lost = n * expit(s[None, :] - s[:, None])
        return np.asarray(prior * (s - mean) - lost.sum(axis=1) + lost.sum(axis=0), np.float64)

    def bend(s: Floats) -> Floats:
        p = expit(s[:, None] - s[None, :])
        w = (n + n.T) * p * (1 - p)
        return np.asarray(np.diag(w.sum(axis=1) + prior) - w, np.float64)

    s = np.asarray(minimize(value, mean, jac=slope, hess=bend, method="trust-exact").x, np.float64)
    for _ in range(3):  # to the last digits
        s = s - np.linalg.solve(bend(s), slope(s))
    return s


def votes(seed: int, *, queries: int = 3, items: int = 7, rows: int = 40, **extra: Any) -> Preferences:
    """Comparisons of queries with different items, some of them rarely met."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), rows)
    width = items + query
    first = (rng.random(len(query)) ** 2 * width).astype(int)
    second = (first + 1 + (rng.random(len(query)) * (width - 1)).astype(int)) % width
    won = rng.random(len(query)) < expit(0.4 * (first - second))
    columns: dict[str, Any] = {}
    if extra.get("ties"):
        columns["tie"] = rng.random(len(query)) < 0.3
    if extra.get("weights"):
        columns["weight"] = rng.choice([0.25, 1.0, 2.5], len(query))
    return Preferences.from_comparisons(np.where(won, first, second), np.where(won, second, first), query, **columns)


def means(prefs: Preferences, seed: int = 0, scale: float = 1.5) -> Floats:
    return np.random.default_rng(seed).normal(1.0, scale, int(prefs.members[0][-1]))


# -- the formula -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("extra", [{}, {"ties": True}, {"weights": True, "ties": True}])
@pytest.mark.parametrize(("prior", "items", "rows"), [(0.3, 7, 40), (2.0, 60, 25), (1e-3, 9, 12)])
def test_plain_optimiser(prior: float, items: int, rows: int, extra: dict[str, bool]) -> None:
    """Dense (7 and 9 items) and sparse (60) graphs, most of the latter disconnected."""
    prefs = votes(1, items=items, rows=rows, **extra)
    mean, batch = means(prefs), Batch.whole(prefs)
    scores = bradley_terry(batch, prior=prior, mean=mean)
    assert (scores.status == Status.CONVERGED).all()
    for g in range(len(batch)):
        own = slice(int(batch.node_start[g]), int(batch.node_start[g + 1]))
        assert scores.value[own] == pytest.approx(plain(batch, g, prior, mean[own]), abs=1e-8)


def test_subsets_look_their_means_up_by_query() -> None:
    prefs = votes(2, rows=60)
    mean = means(prefs)
    batch = Batch.subsets(prefs, 15, 4, seed=3, queries=np.array([2, 0]))
    taken, nodes = Ragged(prefs.members[0]).take(batch.query)
    start = taken.start
    scores = bradley_terry(batch, prior=0.7, mean=mean)
    for g in range(len(batch)):
        own = slice(int(start[g]), int(start[g + 1]))
        assert scores.value[own] == pytest.approx(plain(batch, g, 0.7, mean[nodes[own]]), abs=1e-8)


@pytest.mark.parametrize("items", [8, 60])
def test_ties_of_their_own_and_covariates(items: int) -> None:
    """Davidson's model and a covariate: the gradient by s of the printed formula vanishes at the answer."""
    rng = np.random.default_rng(4)
    rows, prior = 150, 0.5
    a = rng.integers(0, items, rows)
    b = (a + rng.integers(1, items, rows)) % items
    z, tie = rng.choice([-1.0, 1.0], rows), rng.random(rows) < 0.25
    prefs = Preferences.from_comparisons(a, b, tie=tie, covariates={"home": z})
    mean = means(prefs)
    scores = bradley_terry(Batch.whole(prefs), prior=prior, ties="davidson", mean=mean)
    beta, tau = scores.coefficients["home"][0], scores.coefficients["ties"][0]
    place = np.searchsorted(np.unique(np.r_[a, b]), np.arange(items))

    def loss(s: Any, beta: Any, tau: Any) -> Any:
        t = s[place[a]] - s[place[b]] + z * beta
        total = np.exp(t / 2) + np.exp(-t / 2) + np.exp(tau)
        return -np.where(tie, tau, t / 2).sum() + np.log(total).sum() + prior / 2 * ((s - mean) ** 2).sum()

    for unit in np.eye(len(mean)):
        assert abs(loss(scores.value + 1e-30j * unit, beta, tau).imag / 1e-30) < 1e-7
    assert abs(loss(scores.value + 0j, beta + 1e-30j, tau).imag / 1e-30) < 1e-7
    assert abs(loss(scores.value + 0j, beta, tau + 1e-30j).imag / 1e-30) < 1e-7


# -- laws --------------------------------------------------------------------------------------------------------
def test_strong_prior_gives_the_mean() -> None:
    prefs = votes(5)
    mean = means(prefs)
    near = bradley_terry(Batch.whole(prefs), prior=1e9, mean=mean).value
    assert near == pytest.approx(mean, abs=1e-6)
    assert not np.array_equal(near, mean)


def test_many_judgments_wash_the_mean_out() -> None:
    rng = np.random.default_rng(6)
    truth = np.array([1.2, 0.3, 0.0, -1.5])
    first, second = np.triu_indices(4, 1)
    wins = np.round(1e7 * expit(truth[first] - truth[second])).astype(int)
    prefs = Preferences.from_comparisons(
        np.r_[first, second], np.r_[second, first], count=np.r_[wins, 10_000_000 - wins]
    )
    batch, mean = Batch.whole(prefs), rng.normal(size=4)
    plain_scores = bradley_terry(batch, prior=0).value
    with_mean = bradley_terry(batch, prior=1.0, mean=mean).value
    assert with_mean - with_mean.mean() == pytest.approx(plain_scores, abs=1e-5)
    assert with_mean.mean() == pytest.approx(mean.mean(), abs=1e-9)  # the level is the prior's


@pytest.mark.parametrize("items", [8, 70])
def test_mean_zero_is_no_mean(items: int) -> None:
    prefs = votes(7, items=items, rows=80)
    batch = Batch.whole(prefs)
    zero = bradley_terry(batch, prior=0.4, mean=np.zeros(int(prefs.members[0][-1])))
    assert zero.value == pytest.approx(bradley_terry(batch, prior=0.4).value, abs=1e-9)


def test_shift_of_a_query_shifts_its_scores() -> None:
    prefs = votes(8)
    mean, batch = means(prefs), Batch.whole(prefs)
    shifted = mean + 1e4 * (batch.query[batch.owner] == 1)
    difference = bradley_terry(batch, prior=1.0, mean=shifted).value - bradley_terry(batch, prior=1.0, mean=mean).value
    assert difference == pytest.approx(1e4 * (batch.query[batch.owner] == 1), abs=1e-7)


def test_never_compared_items_keep_their_mean() -> None:
    prefs = Preferences.from_comparisons(["a", "c"], ["b", "d"])
    mean = np.array([3.0, 0.0, -2.0, 1.0])
    whole = Batch.whole(prefs)
    only_first = Batch(prefs, whole.query, np.array([0, 1]), whole.judgment[:1], whole.multiplicity[:1])
    scores = bradley_terry(only_first, prior=1.0, mean=mean)
    assert scores.value[2:].tolist() == [-2.0, 1.0]
    assert scores.value[0] > 3.0
    assert scores.component.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("items", [6, 80])
def test_far_means(items: int) -> None:
    """Means hundreds of log-odds apart: no overflow, and the law at the answer holds."""
    prefs = votes(9, queries=1, items=items, rows=60)
    mean = 800.0 * np.linspace(-1, 1, int(prefs.members[0][-1]))
    batch = Batch.whole(prefs)
    scores = bradley_terry(batch, prior=1.0, mean=mean)
    assert scores.status.tolist() == [Status.CONVERGED]
    assert scores.value == pytest.approx(plain(batch, 0, 1.0, mean), abs=1e-7)


def test_weak_prior_on_islands() -> None:
    prefs = Preferences.from_comparisons(["a", "b", "c", "d"], ["b", "a", "d", "c"], count=[2, 1, 1, 3])
    mean = np.array([5.0, 5.0, -1.0, 0.0])
    scores = bradley_terry(Batch.whole(prefs), prior=1e-9, mean=mean).value
    assert scores[0] - scores[1] == pytest.approx(np.log(2), abs=1e-6)
    assert scores[3] - scores[2] == pytest.approx(np.log(3), abs=1e-6)
    assert scores[:2].mean() == pytest.approx(5.0, abs=1e-6)
    assert scores[2:].mean() == pytest.approx(-0.5, abs=1e-6)


def test_nothing_but_ties() -> None:
    prefs = Preferences.from_comparisons(["a"], ["b"], tie=[True])
    scores = bradley_terry(Batch.whole(prefs), prior=1.0, ties="davidson", mean=[2.0, -1.0])
    assert scores.value.tolist() == [2.0, -1.0]
    (note,) = scores.notes
    assert note.code == "nothing but ties" and "as the prior has them" in note


# -- where it is used --------------------------------------------------------------------------------------------
def test_targets_take_the_option() -> None:
    prefs = votes(10)
    mean = means(prefs)
    options = {"prior": 1.0, "mean": mean}
    targets = mean_targets(prefs, "bradley-terry", options=options, gain="identity", normalise=False)
    assert np.array_equal(targets.value, bradley_terry(Batch.whole(prefs), **options).value)
    few = mean_targets(prefs, "bradley-terry", options=options, gain="identity", normalise=False, order=5, block=50)
    assert np.abs(few.value - mean).max() < np.abs(targets.value - mean).max() + 1  # five judgments move little


def test_ranking_and_bootstrap() -> None:
    prefs = votes(11, queries=1, items=12, rows=200)
    mean = 3.0 * np.arange(12.0)[np.argsort(np.argsort(prefs.members[1]))]
    ranking = rank(prefs, "bradley-terry", prior=50.0, mean=mean)
    assert list(ranking.item) == sorted(prefs.items, reverse=True)
    drawn = bootstrap(
        Batch.whole(prefs), structure("bradley-terry"), replicates=20, options={"prior": 50.0, "mean": mean}
    )
    assert np.abs(drawn.replicates - mean).max() < 6  # around the means, not around 0


# -- refused -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"prior": 0, "mean": np.zeros(4)}, "positive number"),
        ({"mean": np.zeros(3)}, r"shape \(3,\).*4 in 2 queries"),
        ({"mean": 1.0}, r"shape \(\)"),
        ({"mean": [0.0, np.nan, 0.0, np.inf]}, "2 of 4 prior means are not finite"),
        ({"mean": ["a", "b", "c", "d"]}, "array of numbers"),
    ],
)
def test_refused(options: dict[str, Any], said: str) -> None:
    prefs = Preferences.from_comparisons(["a", "a"], ["b", "b"], ["p", "q"])
    with pytest.raises(UsageError, match=said):
        structure("bradley-terry")(Batch.whole(prefs), **options)

"""Standard errors: a dense twin from the formula, published values, laws, and what must be infinite."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.seeds import seed

import concordant as cc
from concordant.errors import UsageError
from concordant.preferences.connectivity import connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences, counted_comparisons, counted_lists
from concordant.ranking import intervals as limits
from concordant.ranking import large_variances as large
from concordant.ranking import standard_errors
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.contrasts import Gauge
from concordant.ranking.covariance import covariance
from concordant.ranking.curvature import bradley_terry_curvature
from concordant.ranking.plackett_luce import plackett_luce, plackett_luce_curvature
from concordant.ranking.standard_errors import default_method, score_intervals

# Davidson (1970), example 2: chocolate puddings; i, j, wins of i, wins of j, ties
PUDDING = (
    (1, 2, 19, 22, 16),
    (1, 3, 16, 19, 12),
    (2, 3, 19, 19, 10),
    (1, 4, 18, 23, 13),
    (2, 4, 23, 19, 9),
    (3, 4, 19, 20, 15),
    (1, 5, 13, 19, 18),
    (2, 5, 16, 20, 12),
    (3, 5, 16, 15, 17),
    (4, 5, 17, 14, 16),
    (1, 6, 18, 21, 12),
    (2, 6, 22, 20, 12),
    (3, 6, 13, 18, 10),
    (4, 6, 14, 19, 18),
    (5, 6, 11, 21, 12),
)


def pudding():
    i, j, wins, losses, ties = zip(*PUDDING, strict=True)
    n = len(i)
    return Preferences.from_comparisons(
        [*i, *j, *i], [*j, *i, *j], tie=[False] * (2 * n) + [True] * n, count=[*wins, *losses, *ties]
    )


def simulated(n, rows, *, seed=0, ties=0.0, clusters=0, queries=0, weights=False, spread=1.0, home=False):
    """Comparisons of n items under uneven exposure."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, spread, n)
    shown = rng.dirichlet(np.full(n, 5.0))
    i, j = rng.choice(n, rows, p=shown), rng.choice(n, rows, p=shown)
    i, j = i[i != j], j[i != j]
    z = rng.choice((-1.0, 1.0), len(i))
    won = rng.random(len(i)) < 1 / (1 + np.exp(scores[j] - scores[i] - 0.4 * z * home))
    return counted_comparisons(
        pa.array(np.where(won, i, j)),
        pa.array(np.where(won, j, i)),
        tie=rng.random(len(i)) < ties,
        cluster=pa.array(rng.integers(0, clusters, len(i))) if clusters else None,
        query=pa.array(rng.integers(0, queries, len(i))) if queries else None,
        weight=rng.choice((0.5, 1.0, 2.0), len(i)) if weights else None,
        covariates={"home": np.where(won, z, -z)} if home else None,
    )


def fitted(prefs, *, structure="bradley-terry", **options):
    batch = Batch.whole(prefs)
    if structure == "bradley-terry":
        scores = bradley_terry(batch, tolerance=1e-13, **options)
        return batch, scores, bradley_terry_curvature(batch, scores), connectivity(batch.graphs)
    scores = plackett_luce(batch, **options)
    return batch, scores, plackett_luce_curvature(batch, scores), connectivity(batch.graphs)


def intervals(found, method, **more):
    batch, scores, curvature, links = found
    return score_intervals(batch, scores, curvature, connectivity=links, method=method, **more)


# -- the slow twin -----------------------------------------------------------------------------------------------
def edges_of(prefs, place):
    """(winner, loser, strength, share of a win) of one distinct judgment, by hand."""
    if prefs.kind == "comparisons":
        strength = 1.0 if prefs.weight is None else prefs.weight[place]
        tie = prefs.tie is not None and prefs.tie[place]
        return [(prefs.winner[place], prefs.loser[place], strength, 0.5 if tie else 1.0)]
    own = slice(prefs.list_start[place], prefs.list_start[place + 1])
    item, value = prefs.list_item[own], prefs.list_value[own]
    return [
        (item[a], item[b], 1.0, 0.5 if value[a] == value[b] else 1.0)
        for a in range(len(item))
        for b in range(len(item))
        if value[a] < value[b] or (value[a] == value[b] and a < b)
    ]


def twin(prefs, value, prior, method):
    """Standard errors of one query's scores against their mean; loops and dense inverses, one page from the formula."""
    n = len(prefs.items)
    hessian, outer = np.zeros((n, n)), np.zeros((n, n))
    gradients: dict[object, np.ndarray] = {}
    times: dict[object, float] = {}
    for place in range(prefs.distinct):
        u = np.zeros(n)
        for i, j, strength, share in edges_of(prefs, place):
            p = 1 / (1 + np.exp(value[j] - value[i]))
            step = np.zeros(n)
            step[i], step[j] = 1.0, -1.0
            hessian += prefs.count[place] * strength * p * (1 - p) * np.outer(step, step)
            u += strength * (share - p) * step
        if prefs.cluster is None:
            gradients[place], times[place] = u, float(prefs.count[place])
        else:
            who = prefs.cluster[place]
            gradients[who] = gradients.get(who, np.zeros(n)) + prefs.count[place] * u
            times[who] = 1.0
    draws = sum(times.values())
    for who, u in gradients.items():
        outer += draws / (draws - 1) * times[who] * np.outer(u, u)
    inverse = np.linalg.pinv(hessian, hermitian=True) if prior == 0 else np.linalg.inv(hessian + prior * np.eye(n))
    centre = np.eye(n) - 1 / n
    middle = inverse if method == "hessian" else inverse @ outer @ inverse
    return np.sqrt(np.diagonal(centre @ middle @ centre))


CASES = {
    "plain": {"n": 9, "rows": 600},
    "ties, weights": {"n": 9, "rows": 600, "ties": 0.2, "weights": True},
    "clusters": {"n": 9, "rows": 600, "ties": 0.1, "clusters": 25},
}


@pytest.mark.parametrize("method", ["hessian", "sandwich"])
@pytest.mark.parametrize("prior", [0.0, 0.01, 3.0])
@pytest.mark.parametrize("case", CASES)
def test_standard_errors_are_those_of_the_dense_formula(case, prior, method):
    prefs = simulated(**CASES[case])
    found = fitted(prefs, prior=prior)
    expected = twin(prefs, found[1].value, prior, method)
    assert intervals(found, method).standard_error == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("method", ["hessian", "sandwich"])
def test_an_order_is_one_judgment_of_many_edges(method):
    rng = np.random.default_rng(1)
    rows = 60
    item = np.argsort(rng.random((rows, 6)), axis=1)[:, :4]
    order = np.argsort(-(np.linspace(-1, 1, 6)[item] + rng.gumbel(size=item.shape)), axis=1)
    item = np.take_along_axis(item, order, axis=1)
    rank = np.tile([1.0, 2.0, 2.0, 3.0], rows)
    prefs = counted_lists("orders", np.arange(0, 4 * rows + 1, 4), pa.array(item.ravel()), rank)
    found = fitted(prefs, prior=0.0)
    expected = twin(prefs, found[1].value, 0.0, method)
    assert intervals(found, method).standard_error == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("method", ["hessian", "sandwich"])
def test_queries_do_not_touch_each_other(method):
    prefs = simulated(7, 1500, queries=5, ties=0.1)
    together = intervals(fitted(prefs, prior=0.01), method).standard_error
    apart = [
        intervals(fitted(prefs.select([query]), prior=0.01), method).standard_error for query in prefs.queries.tolist()
    ]
    assert together == pytest.approx(np.concatenate(apart), rel=1e-10)


# -- published values --------------------------------------------------------------------------------------------
def test_davidson_pudding_standard_errors_as_published():
    # PlackettLuce (R), vignette "Introduction to PlackettLuce", summary(mod, ref = NULL)
    found = fitted(pudding(), prior=0.0, ties="davidson")
    limits = intervals(found, "hessian")
    expected = [0.121949, 0.121818, 0.126823, 0.122003, 0.127054, 0.126594]
    assert limits.standard_error == pytest.approx(expected, abs=1e-6)
    assert limits.coefficient_error == pytest.approx([0.082499], abs=1e-6)
    assert limits.coefficient_names == ("ties",)
    matrix = covariance(found[0], found[2], Gauge.of(found[0].node_start, found[3]))
    against_first = [np.sqrt(matrix[0, 0] + matrix[i, i] - 2 * matrix[0, i]) for i in range(1, 6)]
    assert against_first == pytest.approx([0.1872168, 0.1935181, 0.1882110, 0.1927043, 0.1924059], abs=2e-6)


def test_baseball_standard_errors_as_published(shared_data):
    # Agresti 2002, table 10.11: standard errors against Baltimore .332–.343
    with open(shared_data("r_classics/BradleyTerry2.baseball.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    sides = [("home.team", "away.team", "home.wins"), ("away.team", "home.team", "away.wins")]
    won = [(row[a], row[b], int(row[c])) for row in rows for a, b, c in sides if int(row[c])]
    prefs = Preferences.from_comparisons([w[0] for w in won], [w[1] for w in won], count=[w[2] for w in won])
    batch, scores, curvature, links = fitted(prefs, prior=0.0)
    names = prefs.items.tolist()
    at = names.index("Baltimore")
    assert np.sort(scores.value - scores.value[at])[1:] == pytest.approx(
        [0.6839, 1.1077, 1.2476, 1.2945, 1.4364, 1.5814], abs=1e-4
    )
    matrix = covariance(batch, curvature, Gauge.of(batch.node_start, links))
    errors = np.sqrt(matrix[at, at] + np.diagonal(matrix) - 2 * matrix[at])[np.arange(len(names)) != at]
    assert errors.min() == pytest.approx(0.332, abs=5e-4)
    assert errors.max() == pytest.approx(0.343, abs=5e-4)


# -- large graphs ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["hessian", "sandwich"])
@pytest.mark.parametrize("more", [{}, {"home": True}, {"queries": 2}])
def test_the_factor_of_one_large_graph_agrees_with_the_stack(monkeypatch, method, more):
    found = fitted(simulated(40, 3000, ties=0.1, **more), prior=0.01)
    expected = intervals(found, method)
    monkeypatch.setattr(standard_errors, "SMALL", 1)
    for name in ("CERTIFIED", "NEARLY"):
        monkeypatch.setattr(large, name, -1.0)  # no series is good enough
    limits = intervals(found, method)
    assert limits.standard_error == pytest.approx(expected.standard_error, rel=1e-9)
    assert limits.coefficient_error == pytest.approx(expected.coefficient_error, rel=1e-9)
    assert not limits.approximate.any()


@pytest.mark.parametrize("prior", [0.0, 0.01])
@pytest.mark.parametrize("more", [{}, {"home": True}, {"queries": 2}])
def test_the_series_is_as_accurate_as_it_says(monkeypatch, prior, more):
    found = fitted(simulated(150, 30000, **more), prior=prior)
    expected = intervals(found, "hessian")
    monkeypatch.setattr(standard_errors, "SMALL", 1)
    monkeypatch.setattr(large, "CERTIFIED", 1.0)
    errors = []

    def remember(*given):
        answer = original(*given)
        assert answer.how == "series"
        errors.append(answer.error)
        return answer

    original = large.large_variances
    monkeypatch.setattr(standard_errors, "large_variances", remember)
    limits = intervals(found, "hessian")
    off = np.abs(limits.standard_error / expected.standard_error - 1).max()
    assert 0 < off < max(errors) / 2 < 0.01
    assert limits.coefficient_error == pytest.approx(expected.coefficient_error, rel=1e-6)


@pytest.mark.parametrize("more", [{"ties": 0.3}, {"clusters": 400}, {"home": True}])
def test_the_series_of_the_sandwich_is_close(monkeypatch, more):
    found = fitted(simulated(150, 60000, **more), prior=0.01)
    expected = intervals(found, "sandwich")
    monkeypatch.setattr(standard_errors, "SMALL", 1)
    limits = intervals(found, "sandwich")
    if not more.get("home"):  # without ties and clusters the second term is negligible here
        assert limits.approximate.all()
        assert "series" in limits.notes[0]
    assert (limits.standard_error != expected.standard_error).any()
    assert limits.standard_error == pytest.approx(expected.standard_error, rel=5e-3)
    assert limits.coefficient_error == pytest.approx(expected.coefficient_error, rel=1e-6)


@pytest.mark.parametrize("method", ["hessian", "sandwich"])
def test_the_sketch_is_close_where_no_series_helps(monkeypatch, method):
    n = 80  # a chain of items, each compared with the next one only
    rng = np.random.default_rng(3)
    i = np.repeat(np.arange(n - 1), 40)
    won = rng.random(len(i)) < 0.55
    prefs = counted_comparisons(pa.array(np.where(won, i, i + 1)), pa.array(np.where(won, i + 1, i)))
    found = fitted(prefs, prior=0.0)
    expected = intervals(found, method)
    monkeypatch.setattr(standard_errors, "SMALL", 1)
    monkeypatch.setattr(large, "DENSE_LARGE", 1)
    monkeypatch.setattr(large.Eliminated, "of", lambda *_, **__: None)
    limits = intervals(found, method)
    assert limits.approximate.all()
    assert "projections" in limits.notes[0]
    assert limits.standard_error == pytest.approx(expected.standard_error, rel=0.25)
    assert np.mean(limits.standard_error / expected.standard_error) == pytest.approx(1, abs=0.1)


def test_small_components_of_a_large_graph_are_exact(monkeypatch):
    pairs = [(f"a{i}", f"a{j}") for i in range(6) for j in range(6) if i != j] + [("b0", "b1"), ("b1", "b0")]
    prefs = Preferences.from_comparisons(*zip(*pairs, strict=True), count=[3] * len(pairs))
    found = fitted(prefs, prior=0.01)
    expected = intervals(found, "hessian").standard_error
    monkeypatch.setattr(standard_errors, "SMALL", 6)
    limits = intervals(found, "hessian")
    assert limits.standard_error == pytest.approx(expected, rel=1e-12)
    assert not limits.approximate.any()


# -- laws --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["hessian", "sandwich"])
def test_four_times_the_data_halve_the_standard_error(method):
    pairs = ["xy", "yx", "yz", "zy", "zx", "xz"]
    once = Preferences.from_comparisons([p[0] for p in pairs], [p[1] for p in pairs], count=range(50, 56))
    four = once + once + once + once
    few, many = (intervals(fitted(prefs, prior=0.0), method).standard_error for prefs in (once, four))
    n = len(once)
    small = 1.0 if method == "hessian" else np.sqrt(4 * n / (4 * n - 1) * (n - 1) / n)
    assert many == pytest.approx(small * few / 2, rel=1e-9)


def test_two_items_are_a_proportion():
    # s.e. of the log-odds is 1/√(n p (1 − p)); a score is half the difference
    found = fitted(Preferences.from_comparisons(["x", "y"], ["y", "x"], count=[30, 10]), prior=0.0)
    expected = 0.5 / np.sqrt(40 * 0.75 * 0.25)
    assert intervals(found, "hessian").standard_error == pytest.approx([expected] * 2, rel=1e-9)
    assert intervals(found, "sandwich").standard_error == pytest.approx([expected * np.sqrt(40 / 39)] * 2, rel=1e-9)


def test_every_row_a_cluster_of_its_own_is_the_plain_sandwich():
    winner, loser = ["x", "y", "y", "z", "x"] * 8, ["y", "x", "z", "y", "z"] * 8
    plain = fitted(Preferences.from_comparisons(winner, loser))
    clustered = fitted(Preferences.from_comparisons(winner, loser, cluster=list(range(40))))
    one_each, counted = (intervals(found, "sandwich").standard_error for found in (clustered, plain))
    assert one_each == pytest.approx(counted, rel=1e-10)


def test_a_worker_who_says_everything_four_times_is_one_worker():
    rng = np.random.default_rng(5)
    i, j = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    i, j = i[i != j], j[i != j]
    who = np.arange(len(i)) % 30
    once = Preferences.from_comparisons(i, j, cluster=who)
    four = Preferences.from_comparisons(i, j, cluster=who, count=np.full(len(i), 4))
    a, b = (intervals(fitted(prefs, prior=0.0), "sandwich").standard_error for prefs in (once, four))
    assert b == pytest.approx(a, rel=1e-9)


def test_the_ends_are_the_score_and_a_normal_quantile():
    found = fitted(simulated(6, 300))
    limits = intervals(found, "hessian", level=0.9)
    assert limits.upper - found[1].value == pytest.approx(1.6448536 * limits.standard_error)
    assert found[1].value - limits.lower == pytest.approx(1.6448536 * limits.standard_error)


def test_auto_takes_the_sandwich_where_judgments_are_no_single_independent_wins():
    def chosen(prefs, **options):
        found = fitted(prefs, **options)
        return default_method(found[0], found[1])

    assert chosen(simulated(5, 200)) == "hessian"
    assert chosen(simulated(5, 200, clusters=9)) == "sandwich"
    assert chosen(simulated(5, 200, ties=0.2)) == "sandwich"
    assert chosen(simulated(5, 200, ties=0.2), ties="davidson") == "hessian"
    assert chosen(simulated(5, 200, weights=True)) == "sandwich"
    lists = Preferences.from_orders(["q"] * 6, [1, 1, 1, 2, 2, 2], list("abcbca"), [1, 2, 3, 1, 2, 3])
    assert chosen(lists) == "sandwich"
    assert chosen(lists, structure="plackett-luce") == "hessian"


def test_wrong_options_are_named():
    found = fitted(simulated(5, 200))
    with pytest.raises(UsageError, match=r"hesian.*did you mean 'hessian'"):
        intervals(found, "hesian")
    with pytest.raises(UsageError, match="between 0 and 1"):
        intervals(found, "hessian", level=95)
    with pytest.raises(UsageError, match="too large"):
        covariance(found[0], found[2], Gauge.of(found[0].node_start, found[3]), most=4)


# -- what has no limit -------------------------------------------------------------------------------------------
def ends(winner, loser, *, method="hessian", declared=None, **options):
    prefs = counted_comparisons(
        pa.array(winner), pa.array(loser), declared=None if declared is None else (None, pa.array(declared))
    )
    limits = intervals(fitted(prefs, **options), method)
    return np.isinf(limits.lower).tolist(), np.isinf(limits.upper).tolist(), limits


@pytest.mark.parametrize("method", ["hessian", "sandwich"])
def test_an_item_that_never_loses_has_no_upper_limit(method):
    lower, upper, limits = ends([0, 0, 1, 2], [1, 2, 2, 1], method=method)
    assert upper == [True, False, False]
    assert lower == [False, False, False]
    assert (limits.upper > limits.lower).all()


@pytest.mark.parametrize("method", ["hessian", "sandwich"])
def test_a_chain_determines_no_width(method):
    lower, upper, _ = ends([0, 1, 2], [1, 2, 3], method=method)
    assert upper[0]
    assert lower[3]
    assert all(a or b for a, b in zip(lower, upper, strict=True))  # nobody has a two-sided interval


def test_components_have_intervals_of_their_own():
    lower, upper, limits = ends([0, 1, 2, 3], [1, 0, 3, 2], prior=0.0)
    assert not any(lower)
    assert not any(upper)
    assert limits.standard_error == pytest.approx([0.5 / np.sqrt(0.5)] * 4)


def test_an_item_never_compared_is_unlimited():
    lower, upper, limits = ends([0, 1], [1, 0], declared=[7])
    assert lower == upper == [False, False, True]
    assert np.isinf(limits.standard_error[2])


def test_separated_items_do_not_widen_the_others():
    block = ([0, 1, 1, 2, 2, 0] * 20, [1, 0, 2, 1, 0, 2] * 20)
    alone = ends(*block)[2]
    beside = ends(block[0] + [0, 1, 2], block[1] + [3, 3, 3])[2]
    # item 3 only loses; scores of the others are measured against their own mean, its unknown depth does not matter
    assert beside.standard_error[:3] == pytest.approx(alone.standard_error, rel=0.02)
    assert np.isinf(beside.lower[3])
    assert np.isfinite(beside.upper[3])


def test_a_single_judgment_has_no_sandwich():
    query, judgment = ["q"] * 3 + ["p"] * 6, [1] * 3 + [2] * 3 + [3] * 3
    prefs = Preferences.from_orders(query, judgment, list("abcabcbca"), [1, 2, 3] * 3)
    limits = intervals(fitted(prefs), "sandwich")
    single = fitted(prefs)[0].owner == prefs.queries.tolist().index("q")
    assert np.isinf(limits.lower[single]).all()
    assert np.isinf(limits.upper[single]).all()
    assert np.isfinite(limits.standard_error[~single]).all()
    assert limits.notes[0].code == "too few judgments"


# -- coverage ----------------------------------------------------------------------------------------------------
def test_intervals_hold_nineteen_times_in_twenty():
    # would be .83 with half the variance and .994 with twice
    rng = np.random.default_rng(11)
    sets, n, rows = 400, 8, 400
    scores = rng.normal(0, 0.8, n)
    scores -= scores.mean()
    i = rng.integers(0, n, sets * rows)
    j = (i + rng.integers(1, n, sets * rows)) % n
    won = rng.random(sets * rows) < 1 / (1 + np.exp(scores[j] - scores[i]))
    query = np.repeat(np.arange(sets), rows)
    prefs = counted_comparisons(pa.array(np.where(won, i, j)), pa.array(np.where(won, j, i)), query=pa.array(query))
    found = fitted(prefs)
    assert not found[3].separated.any()
    truth = np.tile(scores, sets)
    for method in ("hessian", "sandwich"):
        limits = intervals(found, method)
        held = ((limits.lower <= truth) & (truth <= limits.upper)).mean()
        assert 0.935 < held < 0.965


@pytest.mark.parametrize("method", ["hessian", "sandwich"])
def test_plackett_luce_intervals_hold_nineteen_times_in_twenty(method):
    rng = np.random.default_rng(12)
    sets, n, rows = 150, 6, 150
    scores = np.linspace(-1, 1, n)
    shown = np.argsort(rng.random((sets * rows, n)), axis=1)[:, :4]
    order = np.argsort(-(scores[shown] + rng.gumbel(size=shown.shape)), axis=1)
    item = np.take_along_axis(shown, order, axis=1)
    prefs = counted_lists(
        "orders",
        np.arange(0, 4 * sets * rows + 1, 4),
        pa.array(item.ravel()),
        np.tile([1.0, 2, 3, 4], sets * rows),
        query=pa.array(np.repeat(np.arange(sets), rows)),
    )
    limits = intervals(fitted(prefs, structure="plackett-luce", prior=0.01), method)
    truth = np.tile(scores, sets)
    assert 0.93 < ((limits.lower <= truth) & (truth <= limits.upper)).mean() < 0.97


def test_ties_alone_leave_no_residuals_and_the_sandwich_no_width():
    prefs = Preferences.from_comparisons(["a", "b", "a"], ["b", "c", "c"], tie=[True] * 3, count=[5, 5, 5])
    sandwich, hessian = (cc.rank(prefs, interval=how) for how in ("sandwich", "hessian"))
    assert hessian.upper.min() > 0.2
    np.testing.assert_allclose(sandwich.upper, hessian.upper)
    assert (sandwich.rank_lower.tolist(), sandwich.rank_upper.tolist()) == ([1] * 3, [3] * 3)


def test_plackett_luce_takes_the_sandwich_where_half_wins_or_strengths_enter():
    def method(prefs: Preferences) -> str:
        return str(cc.rank(prefs, "plackett-luce").interval)

    sides = (["a", "b", "b", "c", "a"], ["b", "a", "c", "b", "b"])
    assert method(Preferences.from_comparisons(*sides)) == "hessian"
    assert method(Preferences.from_comparisons(*sides, tie=[True, False, False, False, False])) == "sandwich"
    assert method(Preferences.from_comparisons(*sides, weight=[1, 2, 1, 1, 1])) == "sandwich"
    orders = (["q"] * 6, [1, 1, 1, 2, 2, 2], ["a", "b", "c", "c", "b", "a"])
    assert method(Preferences.from_orders(*orders, [1, 2, 3, 1, 2, 3])) == "hessian"
    assert method(Preferences.from_orders(*orders, [1, 2, 2, 1, 2, 3])) == "hessian"  # one draw, ties and all
    assert str(cc.rank(Preferences.from_orders(*orders, [1, 2, 2, 1, 2, 3])).interval) == "sandwich"
    two_lists_that_meet_in_equal_ranks = (["q"] * 3, [1, 2, 2], ["a", "b", "c"], [1, 1, 2])
    assert method(Preferences.from_orders(*two_lists_that_meet_in_equal_ranks)) == "hessian"


def test_a_single_cluster_is_no_numerical_failure() -> None:
    votes = cc.Preferences.from_comparisons(["a", "b", "c"], ["b", "c", "a"], cluster=["u", "u", "u"])
    codes = {note.code for note in cc.rank(votes, interval="sandwich").notes}
    assert "too few judgments" in codes and "no intervals" not in codes


def test_an_item_without_residuals_leaves_the_others_their_intervals() -> None:
    """Six votes that say nothing of the spread between people, beside thousands that do; all ends were infinite."""
    draw = np.random.default_rng(0)
    votes = []
    for person in range(30):
        taste = 1.5 * draw.normal(size=4)
        for _ in range(200):
            one, other = draw.choice(4, 2, replace=False)
            won = draw.random() < 1 / (1 + np.exp(taste[other] - taste[one]))
            votes.append((f"i{one if won else other}", f"i{other if won else one}", f"p{person}"))
    silent = [("w", "i0", "alone"), ("i0", "w", "alone"), *2 * [("x", "y", "q"), ("y", "z", "q")]]

    def ends(rows: list[tuple[str, str, str]]) -> dict[str, tuple[float, float]]:
        winner, loser, person = zip(*rows, strict=True)
        board = cc.rank(cc.Preferences.from_comparisons(winner, loser, cluster=person)).to_arrow().to_pydict()
        return dict(zip(board["item"], zip(board["lower"], board["upper"], strict=True), strict=True))

    plain, found = ends(votes), ends([*votes, *silent])
    for item, (low, high) in plain.items():
        assert found[item][1] - found[item][0] == pytest.approx(high - low, rel=0.25)
    assert np.isfinite(found["w"]).all()
    assert found["y"] == (-np.inf, np.inf)


def test_few_weighted_judgments_are_told() -> None:
    """Weights w are worth (Σw)²/Σw² judgments: a hundred to one is worth one, ten of them ten."""
    few = "of 2 items the wins or the losses, as they are weighted, are worth fewer than ten"
    two = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], weight=[100.0, 1.0])
    assert few in " ".join(cc.rank(two).notes)
    for wins, told in ((9, True), (11, False)):
        weight = np.repeat([100.0, 2.0, 3.0], [wins, 12, 12])
        winner = np.repeat(["a", "b", "b"], [wins, 12, 12])
        loser = np.repeat(["b", "a", "a"], [wins, 12, 12])
        said = " ".join(cc.rank(cc.Preferences.from_comparisons(winner, loser, weight=weight)).notes)
        assert (few in said) == told
    clustered = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], weight=[100.0, 1.0], cluster=["x", "y"])
    assert "as they are weighted" not in " ".join(cc.rank(clustered).notes)  # by the t law


@pytest.mark.parametrize("number", range(6))
def test_of_one_list_in_each_query_nothing_is_calculated(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its limits, ranks and notes are those that the whole calculation comes to: a spread takes two."""
    rng = np.random.default_rng(seed(50 + number))
    lists = [rng.choice(30, rng.integers(1, 31), replace=False) for _ in range(4)]
    query, item = np.repeat(np.arange(4), [len(one) for one in lists]), np.concatenate(lists)
    value = rng.integers(1, 6, len(item))
    if number % 2:
        prefs, asked = cc.Preferences.from_ratings(query, item, value), {}
    else:
        prefs, asked = cc.Preferences.from_orders(query, query, item, value), {"interval": "sandwich"}
    structure = ("plackett-luce", "bradley-terry")[number % 2]
    given: tuple[dict[str, Any], ...] = ({}, {"min_judgments": 2}, {"prior": 0.5})
    boards = [cc.rank(prefs, structure, **asked, **more) for more in given]
    monkeypatch.setattr(limits, "_of_one_list", lambda *_: False)
    for board, more in zip(boards, given, strict=True):
        whole = cc.rank(prefs, structure, **asked, **more)
        assert board.to_arrow() == whole.to_arrow()
        assert board.notes == whole.notes and board.interval == whole.interval == "sandwich"

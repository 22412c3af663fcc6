"""Plackett–Luce against enumerated orders, published values, Bradley–Terry and choix; curvature; what it refuses."""

import csv
import re
import tracemalloc
from fractions import Fraction
from itertools import chain, combinations
from math import log

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln

import concordant as cc
import plain
from concordant.errors import NoMaximumLikelihood, UsageError
from concordant.kernels.tier_events import tier_events
from concordant.preferences.connectivity import connectivity
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.preferences import Preferences, counted_lists
from concordant.preferences.status import Status
from concordant.ranking import plackett_luce as module
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.luce_terms import information
from concordant.ranking.plackett_luce import luce_terms, plackett_luce, plackett_luce_curvature
from concordant.ranking.ranked_lists import Rankings
from concordant.ranking.structures import structure
from concordant.ranking.tied_terms import TiedTerms
from conftest import shared_data
from seeds import seed
from small_logs import logs

KINDS = ("comparisons", "orders", "choices", "selections")


def races(lists):
    """One query of orders, each a list of tiers."""
    rows = [(j, item, r) for j, tiers in enumerate(lists) for r, tier in enumerate(tiers) for item in tier]
    return Preferences.from_orders(
        ["q"] * len(rows), [r[0] for r in rows], [r[1] for r in rows], [r[2] + 1 for r in rows]
    )


def slope(f, x, step=1e-5):
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))])


# -- the plain twin ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=30)
def test_value_and_gradient_are_those_of_the_enumerated_orders(kind, data):
    batch = Batch.whole(data.draw(logs(kind)))
    theta = np.random.default_rng(data.draw(st.integers(0, 999))).normal(size=len(batch.item))
    at = luce_terms(batch).at(theta)

    def all_graphs(x):
        return sum(
            plain.plackett_luce_likelihood(batch, g, x[batch.node_start[g] : batch.node_start[g + 1]])
            for g in range(len(batch))
        )

    assert at.value() == pytest.approx(all_graphs(theta), rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(at.gradient(), slope(all_graphs, theta), atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=15)
def test_scores_are_stationary_for_the_enumerated_likelihood(kind, data):
    batch = Batch.subsets(data.draw(logs(kind)), 5, 2)
    prior = data.draw(st.sampled_from([0.01, 1.0]))
    scores = plackett_luce(batch, prior=prior)
    assert (scores.status == Status.CONVERGED).all()
    for g in range(len(batch)):
        theta = scores.value[batch.node_start[g] : batch.node_start[g + 1]]
        up = slope(lambda x, g=g: plain.plackett_luce_likelihood(batch, g, x), theta)
        np.testing.assert_allclose(up, prior * theta, atol=2e-7)
        np.testing.assert_allclose(theta.sum(), 0, atol=1e-12)


def test_agrees_with_a_general_optimiser():
    batch = Batch.whole(races([["a", "bc", "d"], ["bd", "a"], ["c", "a", "bd"], ["d", "c"]]))
    np.testing.assert_allclose(plackett_luce(batch, prior=0.5).value, plain.plackett_luce(batch, 0, 0.5), atol=1e-5)


@pytest.mark.parametrize("kind", ["comparisons", "orders"])
@given(data=st.data())
@settings(max_examples=20)
def test_lists_of_two_are_bradley_terry(kind, data):
    """Tied comparisons are half a win each; a list that ties its two items says nothing."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    size = data.draw(st.integers(1, 20))
    pair = np.array([random.permutation(5)[:2] for _ in range(size)])
    tie = random.random(size) < 0.4
    if kind == "comparisons":
        prefs = Preferences.from_comparisons(pair[:, 0], pair[:, 1], tie=tie, weight=random.choice([0.5, 2.0], size))
    else:
        rank = np.column_stack([np.ones(size), np.where(tie, 1, 2)])
        prefs = Preferences.from_orders(["q"] * 2 * size, np.repeat(np.arange(size), 2), pair.ravel(), rank.ravel())
        strict = Preferences.from_comparisons(pair[rank[:, 1] == 2, 0], pair[rank[:, 1] == 2, 1])
        ours = plackett_luce(Batch.whole(prefs))
        if len(strict) == 0:
            assert not ours.value.any()
            return
        theirs = bradley_terry(Batch.whole(strict))
        known = dict(zip(np.array(strict.items.tolist()).tolist(), theirs.value.tolist(), strict=True))
        found = dict(zip(prefs.items.tolist(), ours.value.tolist(), strict=True))
        assert found == pytest.approx({item: known.get(item, 0.0) for item in found}, abs=1e-8)
        return
    batch = Batch.whole(prefs)
    ours, theirs = plackett_luce(batch), bradley_terry(batch)
    np.testing.assert_allclose(ours.value, theirs.value, atol=1e-8)
    np.testing.assert_array_equal(ours.component, theirs.component)


# -- published values and real rankings --------------------------------------------------------------------------
def nascar(drop_last=True):
    folder = shared_data("r_classics")
    with (folder / "PlackettLuce.nascar.drivers.csv").open() as file:
        name = {int(row["id"]): row["driver"] for row in csv.DictReader(file)}
    with (folder / "PlackettLuce.nascar.csv").open() as file:
        results = [[int(float(x)) for x in row[1:] if x not in ("", "NA")] for row in list(csv.reader(file))[1:]]
    drivers = {d for race in results for d in race}
    only_last = {d for d in drivers if all(d not in race or race[-1] == d for race in results)} if drop_last else set()
    return races([[[name[d]] for d in race if d not in only_last] for race in results])


def test_nascar_2002_as_hunter_published():
    """Hunter, Ann. Statist. 32(1), 2004, Table 2: maximum likelihood, Austin Cameron = 0."""
    prefs = nascar()
    assert len(prefs.items) == 83
    scores = plackett_luce(Batch.whole(prefs), prior=0)
    value = dict(zip(prefs.items.tolist(), scores.value, strict=True))
    base = value["Austin Cameron"]
    published = {"PJ Jones": 4.15, "Scott Pruett": 3.62, "Mark Martin": 2.08}
    for driver, expected in published.items():
        assert round(value[driver] - base, 2) == expected
    centred = {"PJ Jones": 3.2261, "Scott Pruett": 2.6947, "Mike Bliss": 1.3095, "Mark Martin": 1.1547}
    for driver, expected in centred.items():
        assert round(value[driver], 4) == expected
    assert sorted(value, key=value.get)[-4:] == ["Mark Martin", "Mike Bliss", "Scott Pruett", "PJ Jones"]
    assert scores.gradient[0] < 1e-9


def test_nascar_with_those_who_only_finished_last_has_no_maximum():
    batch = Batch.whole(nascar(drop_last=False))
    with pytest.raises(NoMaximumLikelihood, match=r"limits 'Andy Hillenburg', .*'Randy Renfrow' from below"):
        plackett_luce(batch, prior=0)
    scores = plackett_luce(batch)
    assert scores.status.tolist() == [Status.CONVERGED]
    (note,) = scores.notes
    assert (note.code, note.numbers["prior"]) == ("kept finite by the prior", 0.01)
    assert {"Andy Hillenburg", "Randy Renfrow"} <= set(note.items)


def preflib(path):
    """A PrefLib order file, read with a regular expression."""
    offsets, item, value, count = [0], [], [], []
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            number, rest = line.split(":")
            for rank, tier in enumerate(re.finditer(r"\{([^}]*)\}|(\d+)", rest)):
                members = [int(x) for x in (tier.group(1) or tier.group(2)).split(",")]
                item += members
                value += [float(rank + 1)] * len(members)
            offsets.append(len(item))
            count.append(int(number))
    return counted_lists(
        "orders", np.array(offsets), pa.array(item, pa.int64()), np.array(value), count=np.array(count)
    )


def salad():
    with (shared_data("r_classics") / "PlackettLuce.salad.csv").open() as file:
        rows = list(csv.DictReader(file))
    return races([[[k] for k in sorted(row, key=lambda k, row=row: int(row[k]))] for row in rows])


def beans():
    """Best and worst of three: an order of three."""
    with (shared_data("r_classics") / "PlackettLuce.beans.csv").open() as file:
        rows = list(csv.DictReader(file))
    lists = []
    for row in rows:
        variety = {"A": row["variety_a"], "B": row["variety_b"], "C": row["variety_c"]}
        (middle,) = set("ABC") - {row["best"], row["worst"]}
        lists.append([[variety[row["best"]]], [variety[middle]], [variety[row["worst"]]]])
    return races(lists)


REAL = {
    "salad": salad,
    "beans": beans,
    "sushi": lambda: preflib(shared_data("preflib") / "00014_sushi" / "00014-00000001.soc"),
    "agh": lambda: preflib(shared_data("preflib") / "00009_agh" / "00009-00000001.soc"),
    "f1": lambda: preflib(shared_data("preflib") / "00052_f1seasons" / "00052-00000020.soi"),
}


@pytest.mark.parametrize("name", ["salad", "beans", "f1"])  # choix takes minutes for the others
def test_penalised_scores_agree_with_choix(name):
    choix = pytest.importorskip("choix", reason="choix, a peer, is not installed (extra 'test')")
    prefs = REAL[name]()
    orders = []
    for j, times in enumerate(prefs.count.tolist()):
        orders += [tuple(prefs.list_item[prefs.list_start[j] : prefs.list_start[j + 1]].tolist())] * times
    ours = plackett_luce(Batch.whole(prefs), prior=0.02)
    theirs = choix.opt_rankings(len(prefs.items), orders, alpha=0.01, tol=1e-12)  # its penalty is α‖s‖²
    np.testing.assert_allclose(ours.value, theirs - theirs.mean(), atol=1e-6)


@pytest.mark.parametrize("name", ["salad", "beans", "sushi"])
def test_plain_maximum_likelihood_agrees_with_choix(name):
    choix = pytest.importorskip("choix", reason="choix, a peer, is not installed (extra 'test')")
    prefs = REAL[name]()
    orders = []
    for j, times in enumerate(prefs.count.tolist()):
        orders += [tuple(prefs.list_item[prefs.list_start[j] : prefs.list_start[j + 1]].tolist())] * times
    ours = plackett_luce(Batch.whole(prefs), prior=0)
    np.testing.assert_allclose(ours.value, choix.ilsr_rankings(len(prefs.items), orders, tol=1e-10), atol=1e-7)


@pytest.mark.parametrize("name", sorted(REAL))
def test_real_rankings_are_stationary(name):
    """Gradient by Hunter's formula (2004, §5): one term for each place an item could have taken."""
    prefs = REAL[name]()
    scores = plackett_luce(Batch.whole(prefs))
    odds, slope = np.exp(scores.value), np.zeros(len(prefs.items))
    for j, times in enumerate(prefs.count.tolist()):
        order = prefs.list_item[prefs.list_start[j] : prefs.list_start[j + 1]]
        for r in range(len(order) - 1):
            slope[order[r]] += times
            slope[order[r:]] -= times * odds[order[r:]] / odds[order[r:]].sum()
    np.testing.assert_allclose(slope, 0.01 * scores.value, atol=1e-8)


# -- tiers ---------------------------------------------------------------------------------------------------------
def log_event(x):
    """log Σ_B (−1)^|B| / (1 + Σ_{i∈B} e^x_i): inclusion and exclusion in fractions."""
    odds = [Fraction(float(np.exp(one))) for one in x]
    sets = chain.from_iterable(combinations(odds, size) for size in range(len(odds) + 1))
    total = sum((Fraction((-1) ** len(part)) / (1 + sum(part, Fraction(0))) for part in sets), Fraction(0))
    return float(log(total.numerator) - log(total.denominator))


def events(tiers):
    """log I, gradients and second derivatives by the kernel."""
    start, square = (np.cumsum([0, *(len(x) ** power for x in tiers)]) for power in (1, 2))
    value, gradient, second = np.empty(len(tiers)), np.empty(start[-1]), np.empty(square[-1])
    tier_events(start, square, np.concatenate(tiers), np.arange(len(tiers)), 0, len(tiers), value, gradient, second)
    return value, gradient, second


@pytest.mark.parametrize("spread", [0, 4, 12])
def test_the_chance_of_a_tier_by_inclusion_and_exclusion(spread):
    random = np.random.default_rng(spread)
    tiers = [random.uniform(-spread / 2, spread / 2, t) + level for t in (1, 2, 5, 8) for level in (-12, -3, 0, 3, 12)]
    np.testing.assert_allclose(events(tiers)[0], [log_event(x) for x in tiers], rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("t", [20, 50, 200])
def test_the_chance_of_a_large_tier_of_equals_is_a_beta_function(t):
    """∫ e^−y (1 − e^−ay)^t dy = B(1/a, t + 1)/a."""
    level = np.array([-12.0, -6, -2, 0, 2, 6, 12])
    expected = betaln(np.exp(-level), t + 1) - level
    np.testing.assert_allclose(events([np.full(t, one) for one in level])[0], expected, rtol=1e-12, atol=1e-10)


def test_derivatives_of_the_chance_of_a_tier():
    x = np.random.default_rng(1).normal(0, 3, 7)
    _, gradient, second = events([x])
    np.testing.assert_allclose(gradient, slope(lambda at: events([at])[0][0], x), atol=1e-8)
    rows = [slope(lambda at, i=i: events([at])[1][i], x) for i in range(7)]
    np.testing.assert_allclose(second.reshape(7, 7), rows, atol=1e-8)


def test_truncated_ballots_keep_the_truth():
    """Ten items, 5,000 ballots of which the best three are known, or three tiers: no bias comes of it."""
    truth, random = np.linspace(1.5, -1.5, 10), np.random.default_rng(seed(3))
    order = np.argsort(-(truth + random.gumbel(size=(5000, 10))), axis=1)
    rank = np.minimum(np.arange(10), 3) + np.ones((5000, 1), int)
    votes = Preferences.from_orders(["q"] * 50_000, np.repeat(np.arange(5000), 10), order.ravel(), rank.ravel())
    scores = plackett_luce(Batch.whole(votes))
    np.testing.assert_allclose(scores.value, truth, atol=0.12)
    middle = np.where(np.arange(10) < 4, 0, np.where(np.arange(10) < 7, 1, 2)) + np.ones((5000, 1), int)
    votes = Preferences.from_orders(["q"] * 50_000, np.repeat(np.arange(5000), 10), order.ravel(), middle.ravel())
    np.testing.assert_allclose(plackett_luce(Batch.whole(votes)).value, truth, atol=0.12)


@pytest.mark.parametrize("t", [2, 9, 100])
def test_a_list_that_ties_everything_says_nothing(t):
    batch = Batch.whole(races([[[f"i{n}" for n in range(t)]]]))
    scores = plackett_luce(batch)
    assert not scores.value.any() and luce_terms(batch).at(scores.value).value() == 0
    assert sorted(scores.component.tolist()) == list(range(t))


def test_far_starts_and_wide_tiers_converge():
    lists = [["abc", "def"]] * 400 + [["d", "a", "be", "cf"], ["fc", "b"]]
    for prior in (1e-6, 0.01, 10.0):
        scores = plackett_luce(Batch.whole(races(lists)), prior=prior)
        assert scores.status.tolist() == [Status.CONVERGED] and scores.gradient[0] < 1e-8


def test_where_a_step_overshoots_half_of_it_is_taken_back(monkeypatch):
    """One of three among 3,200 drawn fits with a prior of 1e-8 that do not end without it."""
    batch = Batch.whole(races([["b", "a", "cd"]] * 1000 + [["bd", "ac"]] * 30))
    seen, overshot = [], module._overshot
    monkeypatch.setattr(module, "_overshot", lambda *slopes: seen.append(overshot(*slopes)) or seen[-1])
    scores = plackett_luce(batch, prior=1e-8)
    assert scores.status.tolist() == [Status.CONVERGED] and np.any(seen)
    monkeypatch.setattr(module, "_overshot", lambda *slopes: np.zeros(len(slopes[0]), bool))
    assert plackett_luce(batch, prior=1e-8).status.tolist() == [Status.STOPPED]


# -- ties as outcomes ----------------------------------------------------------------------------------------------
TIED = [["ab", "c", "de"], ["c", "abd"], ["e", "a", "b", "cd"], ["abc", "d"], ["d", "e"], ["e", "b", "a"], ["b", "cde"]]


def davidson_luce(lists, theta, level):
    """Log-likelihood by the formula: all sets of the items that are left, of each size that ties."""
    total = 0.0
    for tiers in lists:
        left = [item for tier in tiers for item in tier]
        for tier in tiers:
            chance = {
                chosen: np.exp(level[size] + np.mean([theta[item] for item in chosen]))
                for size in level
                for chosen in combinations(sorted(left), size)
            }
            total += np.log(chance[tuple(sorted(tier))] / sum(chance.values()))
            left = [item for item in left if item not in tier]
    return total


def test_davidson_luce_is_the_formula_and_its_derivatives():
    terms = TiedTerms(Rankings.of(Batch.whole(races(TIED))))
    point, step = np.random.default_rng(seed(7)).normal(size=7), 1e-5 * np.eye(7)

    def formula(x):
        return davidson_luce(TIED, dict(zip("abcde", x[:5], strict=True)), {1: 0.0, 2: x[5], 3: x[6]})

    at = terms.at(point)
    assert at.value() == pytest.approx(formula(point), abs=1e-12)
    np.testing.assert_allclose(at.gradient(), slope(formula, point), atol=1e-8)
    columns = np.array([at.times(e) for e in np.eye(7)])
    numeric = np.array([(terms.at(point + d).gradient() - terms.at(point - d).gradient()) / 2e-5 for d in step])
    np.testing.assert_allclose(columns, -numeric, atol=1e-8)
    np.testing.assert_allclose(at.information().toarray(), columns, atol=1e-13)
    assert (at.diagonal() >= np.diag(columns) - 1e-12).all()


def test_davidson_luce_fit_is_stationary_for_the_formula_and_each_list_adds_its_gradient():
    batch = Batch.whole(races([*TIED, ["d", "ab"]]))
    scores = plackett_luce(batch, prior=0.1, ties="davidson")
    level = {1: 0.0, 2: float(scores.coefficients["ties of 2"][0]), 3: float(scores.coefficients["ties of 3"][0])}
    point = np.concatenate([scores.value, [level[2], level[3]]])

    def formula(x):
        return davidson_luce([*TIED, ["d", "ab"]], dict(zip("abcde", x[:5], strict=True)), {1: 0.0, 2: x[5], 3: x[6]})

    np.testing.assert_allclose(slope(formula, point), [*(0.1 * scores.value), 0, 0], atol=1e-8)
    assert scores.status.tolist() == [Status.CONVERGED]
    curvature = plackett_luce_curvature(batch, scores)
    total = curvature.contributions.T @ batch.multiplicity
    np.testing.assert_allclose(total, [*(0.1 * scores.value), 0, 0], atol=1e-10)
    assert curvature.extra_name == ("ties of 2", "ties of 3") and curvature.extra_owner.tolist() == [0, 0]


PUDDING = """1 2 19 22 16, 1 3 16 19 12, 2 3 19 19 10, 1 4 18 23 13, 2 4 23 19 9, 3 4 19 20 15, 1 5 13 19 18,
2 5 16 20 12, 3 5 16 15 17, 4 5 17 14 16, 1 6 18 21 12, 2 6 22 20 12, 3 6 13 18 10, 4 6 14 19 18, 5 6 11 21 12"""
"""Two brands, preferences for either, no preference: Davidson, JASA 65, 1970, Example 2."""


def test_chocolate_puddings_as_the_package_of_the_model_prints_them():
    """PlackettLuce 0.4 (R), introduction, §2.2: log-worths against the first, log δ, standard errors, deviance.

    What is printed is after seven of its iterations, before convergence, as in Davidson's paper: hence 2e-4.
    """
    lists = []
    for row in PUDDING.replace("\n", " ").split(","):
        one, other, wins, losses, ties = row.split()
        lists += [[[one], [other]]] * int(wins) + [[[other], [one]]] * int(losses) + [[[one, other]]] * int(ties)
    prefs = races(lists)
    batch = Batch.whole(prefs)
    scores = plackett_luce(batch, prior=0, ties="davidson")
    printed = [0.2202447, 0.1529644, 0.1752864, 0.1338550, 0.3771362]
    np.testing.assert_allclose((scores.value - scores.value[0])[1:], printed, atol=2e-4)
    assert scores.coefficients["ties of 2"].round(4).tolist() == [-0.2919]
    board = cc.rank(prefs, "plackett-luce", ties="davidson", prior=0)
    assert board.interval == "hessian" and board.coefficients["s.e. of ties of 2"].round(4).tolist() == [0.0825]
    inverse = np.linalg.pinv(plackett_luce_curvature(batch, scores).hessian.toarray())
    error = [np.sqrt(inverse[i, i] + inverse[0, 0] - 2 * inverse[0, i]) for i in range(1, 6)]
    np.testing.assert_allclose(error, [0.1872, 0.1935, 0.1882, 0.1927, 0.1924], atol=5e-5)
    terms = TiedTerms(Rankings.of(batch))
    value = terms.at(np.append(scores.value, scores.coefficients["ties of 2"])).value()
    assert round(-2 * value, 1) == 1619.4


SKATERS = """
Sergeis Telenkov 0.000000, Evgeni Plushenko 11.431058, Ivan Dinev 5.414358, Philippe Candeloro 7.877891, Robert
Grzegorczyk 4.212783, Matthew Van Den Broeck -2.874082, Sven Meyer 3.319150, Patrick Schmit 1.446304, Markus
Leminen 2.249395, Gilberto Viadana 5.441597, Michael Shmerkin 6.093464, Vakhtang Murvanidze 0.083310, Radek
Horak 0.771116, Michael Tyllesen 8.051747, Hristo Turlakov 0.398769, Daniel Peinado -1.719656, Dmitry Dmitrenko
8.513802, Andrejs Vlascenko 9.717413, Viacheslav Zagorodniuk 8.411921, Jan Cejvan -1.309630, Alexander Abt
12.034657, Cornel Gheorghe 4.696487, Steven Cousins 7.942220, Thierry Cerez 4.404082, Robert Kazimir 1.430277,
Patrick Meier 4.694179, Szabolcs Vidrai 3.394834, Johnny Jensen 4.121154, Margus Hernits 2.197868, Alexei
Yagudin 14.579724
"""
"""What PlackettLuce 0.4.5 (R) says of its example ``skaters``: priors N(0, 9), BFGS, reltol 1e-14."""


def test_skaters_as_the_package_of_the_model_has_them():
    """Nine judges, thirty skaters, pairs of whom tie; the same file as the package's extdata/skaters.toc."""
    prefs = cc.read(shared_data("preflib/00006_skate/00006-00000001.toc"))
    board = cc.rank(prefs, "plackett-luce", ties="davidson", prior=1 / 9)
    theirs = dict(one.strip().rsplit(" ", 1) for one in SKATERS.replace("\n", " ").split(","))
    ours = dict(zip(board.to_arrow()["item"].to_pylist(), board.score, strict=True))
    apart = [ours[name] - ours["Sergeis Telenkov"] - float(value) for name, value in theirs.items()]
    assert len(apart) == 30 and np.abs(apart).max() < 1e-6
    assert abs(board.coefficients["ties of 2"][0] + 5.465319) < 1e-6
    assert abs(board.summary().log_likelihood + 334.817989) < 1e-5


def test_ties_of_two_are_davidsons_model():
    random = np.random.default_rng(seed(9))
    first, second = (np.array(side) for side in zip(*[random.permutation(5)[:2] for _ in range(300)], strict=True))
    tie = random.random(300) < 0.3
    votes = Preferences.from_comparisons(first, second, tie=tie)
    theirs = bradley_terry(Batch.whole(votes), ties="davidson")
    ours = plackett_luce(Batch.whole(votes), ties="davidson")
    np.testing.assert_array_equal(ours.value, theirs.value)
    ends = np.column_stack([first, second]).ravel()
    places = np.column_stack([np.ones(300), np.where(tie, 1, 2)]).ravel()
    lists = Preferences.from_orders(None, np.repeat(np.arange(300), 2), ends, places)
    ours = plackett_luce(Batch.whole(lists), ties="davidson")
    np.testing.assert_allclose(ours.value, theirs.value, atol=1e-9)
    np.testing.assert_allclose(ours.coefficients["ties of 2"], theirs.coefficients["ties"], atol=1e-9)


def test_ties_that_have_no_finite_parameter():
    """Whatever could tie did, or did not: the others say what they say without them."""
    always = plackett_luce(Batch.whole(races([["ab"], ["bc"], ["ac"], ["ab", "c"], ["bc", "a"]])), ties="davidson")
    assert always.coefficients["ties of 2"].tolist() == [np.inf] and always.notes[-1].code == "nothing but ties"
    assert always.status.tolist() == [Status.CONVERGED]
    board = cc.rank(races([["ab"], ["bc"], ["ac"], ["ab", "c"], ["bc", "a"]]), "plackett-luce", ties="davidson")
    assert board.to_arrow()["item"][0].as_py() == "b" and np.isinf(board.coefficients["ties of 2"]).all()
    never = plackett_luce(Batch.whole(races([["a", "b"], ["b", "c", "a"]])), ties="davidson")
    np.testing.assert_allclose(never.value, plackett_luce(Batch.whole(races([["a", "b"], ["b", "c", "a"]]))).value)
    assert not never.coefficients


def test_treatments_of_ties_are_named_and_bounded():
    with pytest.raises(UsageError, match=r"unknown treatment of ties 'half' by plackett-luce; .*any-order, davidson"):
        cc.rank(races(TIED), "plackett-luce", ties="half")
    many = [f"i{n:03d}" for n in range(600)]
    with pytest.raises(UsageError, match="ties of 300 among the 600 items of a list"):
        plackett_luce(Batch.whole(races([[many[:300], many[300:]]])), ties="davidson")


# -- choices, selections, refusals -------------------------------------------------------------------------------
def test_choices_and_selections_by_hand():
    """Two of three choose x over y: log-odds log 2 without a prior."""
    prefs = Preferences.from_choices(["q"] * 6, [1, 1, 2, 2, 3, 3], ["x", "y"] * 3, [1, 0, 1, 0, 0, 1])
    value = plackett_luce(Batch.whole(prefs), prior=0).value
    assert value[0] - value[1] == pytest.approx(np.log(2), abs=1e-9)
    # y clicked below x, then x clicked below y, twice; what stands below the click is not examined
    shown = ["x", "y", "z", "y", "x", "z", "y", "x", "z"]
    prefs = Preferences.from_selections(["q"] * 9, np.repeat([1, 2, 3], 3), [1, 2, 3] * 3, shown, [0, 1, 0] * 3)
    scores = plackett_luce(Batch.whole(prefs))
    assert scores.component.tolist() == [0, 0, 1]
    assert scores.value[2] == 0
    value = plackett_luce(Batch.whole(prefs), prior=0).value
    assert value[0] - value[1] == pytest.approx(np.log(2), abs=1e-9)


def test_choice_from_three_is_multinomial_logit():
    """Chosen 5, 3 and 2 times from the same set: the shares themselves."""
    session = np.repeat(np.arange(10), 3)
    chosen = np.zeros(30)
    chosen[3 * np.arange(10) + np.repeat([0, 1, 2], [5, 3, 2])] = 1
    prefs = Preferences.from_choices(["q"] * 30, session, ["x", "y", "z"] * 10, chosen)
    value = plackett_luce(Batch.whole(prefs), prior=0).value
    np.testing.assert_allclose(np.exp(value) / np.exp(value).sum(), [0.5, 0.3, 0.2], atol=1e-9)


def test_silent_failures_of_peers_are_answered():
    first = Batch.whole(Preferences.from_comparisons([0, 0, 1, 2], [1, 2, 2, 1]))
    with pytest.raises(NoMaximumLikelihood, match="limits 0 from above"):
        plackett_luce(first, prior=0)
    row = Batch.whole(Preferences.from_comparisons([0, 1, 2], [1, 2, 3]))
    with pytest.raises(NoMaximumLikelihood, match="limits 1, 2, 3 from below"):
        plackett_luce(row, prior=0)
    batch = Batch.whole(Preferences.from_comparisons([0, 1, 2, 3], [1, 0, 3, 2]))
    scores = plackett_luce(batch, prior=0)
    assert scores.component.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(scores.value, 0, atol=1e-12)


def test_refusals():
    ratings = Batch.whole(Preferences.from_ratings(["u", "u"], ["x", "y"], [3.0, 4.0]))
    with pytest.raises(UsageError, match="reads comparisons, selections, choices and orders, not ratings"):
        plackett_luce(ratings)
    votes = Batch.whole(Preferences.from_comparisons(["x"], ["y"]))
    for prior in (-1.0, np.nan):
        with pytest.raises(UsageError, match="prior"):
            plackett_luce(votes, prior=prior)


def test_lists_of_one_say_nothing():
    with_one = races([[["x"], ["y"]], [["y"], ["x"]], [["x"]], [["z"]]])
    scores = plackett_luce(Batch.whole(with_one))
    np.testing.assert_allclose(scores.value, 0, atol=1e-12)
    assert scores.component.tolist() == [0, 0, 1]


# -- curvature ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=15)
def test_curvature_is_the_derivative_of_the_enumerated_likelihood(kind, data):
    batch = Batch.whole(data.draw(logs(kind)))
    scores = plackett_luce(batch, prior=0.5)
    curvature = plackett_luce_curvature(batch, scores)
    n = len(batch.item)
    assert curvature.prior == 0.5
    assert curvature.hessian.shape == (n, n)
    assert curvature.contributions.shape == (len(batch.judgment), n)
    assert len(curvature.extra_owner) == 0
    numeric = np.array(
        [
            (luce_terms(batch).at(scores.value + d).gradient() - luce_terms(batch).at(scores.value - d).gradient())
            / 2e-5
            for d in 1e-5 * np.eye(n)
        ]
    )
    np.testing.assert_allclose(curvature.hessian.toarray(), -numeric, atol=1e-7)
    np.testing.assert_allclose(curvature.contributions.T @ batch.multiplicity, 0.5 * scores.value, atol=1e-8)
    for place in range(len(batch.judgment)):  # each judgment by itself, one draw of it
        graph = int(batch.graph[place])
        here = slice(batch.node_start[graph], batch.node_start[graph + 1])
        one = Batch(
            batch.prefs, batch.query[[graph]], np.array([0, 1]), batch.judgment[[place]], np.array([1], np.int64)
        )
        expected = slope(lambda x, one=one: plain.plackett_luce_likelihood(one, 0, x), scores.value[here])
        np.testing.assert_allclose(curvature.contributions.toarray()[place, here], expected, atol=1e-7)


@pytest.mark.parametrize("wide", [48, 3])
def test_curvature_with_large_tiers(wide, monkeypatch):
    """Tiers by blocks, and (from four items on) by the nodes of their rule; the information by pairs and in a table."""
    monkeypatch.setattr("concordant.ranking.luce_terms.WIDE", wide)
    tied = [f"i{n:02d}" for n in range(11)]
    batch = Batch.whole(races([[["x"], tied, ["y", "z"]], [tied[:4], ["x"]], [["y"], tied[2:]], [tied[5:], tied[:5]]]))
    scores = plackett_luce(batch)
    at = luce_terms(batch).at(scores.value)
    columns = np.array([at.times(e) for e in np.eye(len(batch.item))])
    numeric = np.array(
        [
            (luce_terms(batch).at(scores.value + d).gradient() - luce_terms(batch).at(scores.value - d).gradient())
            / 2e-5
            for d in 1e-5 * np.eye(len(batch.item))
        ]
    )
    np.testing.assert_allclose(columns, -numeric, atol=1e-7)
    np.testing.assert_allclose(plackett_luce_curvature(batch, scores).hessian.toarray(), columns, atol=1e-12)
    np.testing.assert_allclose(np.diag(columns), at.diagonal(), atol=1e-12)
    twice = Batch.whole(batch.prefs + races([[tied[:6], tied[6:], ["x", "z"]]] * 100))
    at = luce_terms(twice).at(scores.value)
    by_pairs = information(at).toarray()
    monkeypatch.setattr("concordant.ranking.luce_terms.DENSE", 0)
    np.testing.assert_allclose(information(at).toarray(), by_pairs, atol=1e-11)


def approvals(ballots, items, approved):
    """Ballots that put some of the items above all others."""
    truth, random = np.linspace(1.5, -1.5, items), np.random.default_rng(seed(5))
    order = np.argsort(-(truth + random.gumbel(size=(ballots, items))), axis=1)
    tier = np.where(np.arange(items) < approved, 1.0, 2.0)
    offsets = items * np.arange(ballots + 1)
    return counted_lists("orders", offsets, pa.array(order.ravel()), np.tile(tier, ballots))


def test_approvals_take_memory_in_proportion_to_their_entries():
    """Each of these ballots is a million pairs of an item above another one."""
    batch = Batch.whole(approvals(20, 2000, 1000))
    tracemalloc.start()
    scores = plackett_luce(batch)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert scores.status.tolist() == [Status.CONVERGED] and scores.gradient[0] < 1e-8
    assert most < 150 * 8 * 20 * 2000  # numbers for each entry; the edges alone would be 20 million
    linked, approved = structure("plackett-luce").links(batch), batch.prefs.list_item[batch.prefs.list_value == 1]
    assert not linked.component.any() and set(np.flatnonzero(linked.won)) == set(approved.tolist())


def test_a_tier_of_thousands_converges_and_its_standard_errors_say_what_they_take():
    prefs = approvals(2, 16_000, 6000)
    board = cc.rank(prefs, "plackett-luce", interval="none")
    assert board.converged
    with pytest.raises(UsageError, match="lists of up to 16,000 items make more than 50,000,000: ask for no intervals"):
        cc.rank(prefs, "plackett-luce")


# -- what the lists connect --------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=40)
def test_chains_connect_as_all_pairs_do(kind, data):
    batch = Batch.whole(data.draw(logs(kind)))
    short, full = connectivity(Rankings.of(batch).chain()), connectivity(batch.graphs)
    np.testing.assert_array_equal(short.component, full.component)
    np.testing.assert_array_equal(short.compared, full.compared)
    np.testing.assert_array_equal(short.open_above, full.open_above)
    np.testing.assert_array_equal(short.open_below, full.open_below)
    np.testing.assert_array_equal(short.block[:, None] == short.block, full.block[:, None] == full.block)


@given(data=st.data())
@settings(max_examples=40)
def test_wins_connect_as_all_strict_pairs_do(data):
    prefs = data.draw(logs("orders"))
    batch = Batch.whole(prefs)
    lists = Rankings.of(batch)
    better, worse = [], []
    for entries in lists.groups.slices:
        for i, j in combinations(range(entries.start, entries.stop), 2):
            if lists.tier[i] != lists.tier[j]:
                better.append(lists.node[i]), worse.append(lists.node[j])
    ends = (np.array(side, np.int64) for side in (better, worse))
    full = connectivity(Graphs.from_edges(batch.node_start, *ends, np.ones(len(better))))
    short = lists.connected()
    np.testing.assert_array_equal(short.component, full.component)
    np.testing.assert_array_equal(short.compared, full.compared)
    np.testing.assert_array_equal(short.open_above, full.open_above)
    np.testing.assert_array_equal(short.open_below, full.open_below)
    np.testing.assert_array_equal(short.won, full.won)
    np.testing.assert_array_equal(short.lost, full.lost)
    np.testing.assert_array_equal(short.block[:, None] == short.block, full.block[:, None] == full.block)


def test_a_tie_connects_nothing():
    with pytest.raises(NoMaximumLikelihood, match="limits 'a' from below"):
        plackett_luce(Batch.whole(races([["ab"], ["b", "c"], ["c", "ab"]])), prior=0)


def test_what_only_ties_is_not_compared():
    board = cc.rank(races([["ab"], ["cd", "e"]]), "plackett-luce")
    said = {row["item"]: (row["component"], row["flag"]) for row in board.to_arrow().to_pylist()}
    assert said["a"][1] == said["b"][1] == "never compared" and said["a"][0] != said["b"][0]
    assert (said["c"][1], said["d"][1], said["e"][1]) == ("never lost", "never lost", "never won")

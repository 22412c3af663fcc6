"""Which pairs to ask: gains against recomputed inverses, counts against enumeration, lists as a user reads them."""

from __future__ import annotations

from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

import concordant as cc
from concordant.auditing import active_pairs as asking
from concordant.auditing import scores_covariance
from concordant.auditing.active_pairs import chosen_pairs, pairs_to_ask, tallies, undecided_weights, votes_for_majority
from concordant.auditing.scores_covariance import blocks, fitted
from concordant.errors import InputError, UsageError
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences, counted_comparisons

LLMFAO = Path(cc.__file__).parent / "apps" / "data" / "llmfao" / "crowd-comparisons.csv"


def votes(truth: np.ndarray, rows: int, seed: int = 0, queries: int = 1) -> Preferences:
    rng = np.random.default_rng(seed)
    n = len(truth)
    first = rng.integers(0, n, rows)
    second = (first + rng.integers(1, n, rows)) % n
    won = rng.random(rows) < 1 / (1 + np.exp(truth[second] - truth[first]))
    query = rng.integers(0, queries, rows)
    return counted_comparisons(
        pa.array(np.where(won, first, second)), pa.array(np.where(won, second, first)), query=pa.array(query)
    )


def laplacian(weight: np.ndarray) -> np.ndarray:
    return np.diag(weight.sum(axis=1)) - weight


# -- one pair, no model ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("share", [0.52, 0.6, 0.35, 0.75, 0.9, 1.0, 0.0])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_votes_for_majority_by_enumeration(share: float, level: float) -> None:
    p = max(share, 1 - share)

    def right(n: int) -> float:
        return sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range((n + 1) // 2, n + 1))

    found = int(votes_for_majority(share, level))
    assert found % 2 == 1
    if found < 900:
        assert right(found) >= level
        assert found == 1 or right(found - 2) < level
    else:  # large: the normal law
        z = {0.9: 1.2816, 0.95: 1.6449, 0.99: 2.3263}[level]
        assert found == pytest.approx(z**2 * p * (1 - p) / (p - 0.5) ** 2, rel=0.02)


def test_votes_for_majority_at_the_ends() -> None:
    found = votes_for_majority([0.5, np.nan, 0.5 + 1e-9])
    assert np.isinf(found[0])
    assert np.isnan(found[1])
    assert np.isinf(found[2])
    with pytest.raises(UsageError):
        votes_for_majority(1.2)
    with pytest.raises(UsageError):
        votes_for_majority(0.7, 0.3)


# -- the gain ----------------------------------------------------------------------------------------------------
def test_weights_are_the_derivative_of_the_expected_misorderings() -> None:
    """∫ p(x) Φ(−|x|/√v') dx by quadrature, differentiated in v' and taken to small v'."""
    value, covariance = np.array([[0.4, 0.0]]), np.array([[[0.3, 0.05], [0.05, 0.2]]])
    v = 0.3 + 0.2 - 0.1

    def wrong(small: float) -> float:
        def density(x: float) -> float:
            return float(np.exp(-0.5 * (x - 0.4) ** 2 / v) / np.sqrt(2 * np.pi * v))

        edge = 10 * np.sqrt(small)
        return float(quad(lambda x: density(x) * ndtr(-abs(x) / np.sqrt(small)), -edge, edge, points=[0.0])[0])

    small = 1e-4  # E = a·√v', so that dE/dv' at v is a/(2√v)
    a = wrong(small) / np.sqrt(small)
    assert undecided_weights(value, covariance, None)[0, 0, 1] == pytest.approx(a / (2 * np.sqrt(v)), rel=1e-3)


@pytest.mark.parametrize("each", [1.0, 7.0])
@pytest.mark.parametrize("top", [None, 2])
def test_choices_are_those_of_recomputed_inverses(each: float, top: int | None) -> None:
    """Greedy choice over all pairs, each time with the inverse of the new information matrix."""
    rng = np.random.default_rng(4)
    n, most = 7, 9
    value = -np.sort(-rng.normal(size=n))
    known = np.triu(rng.integers(0, 4, (n, n)), 1) + np.eye(n, k=1)
    p = 1 / (1 + np.exp(value[None, :] - value[:, None]))
    information = laplacian((known + known.T) * p * (1 - p))
    inside = np.arange(n) < top if top else None
    covariance = np.linalg.pinv(information)
    weight = undecided_weights(value[None], covariance[None], None if inside is None else inside[None])
    better, worse, gain = chosen_pairs(value[None], covariance[None], weight, most, each)
    target = laplacian(weight[0])
    taken: list[tuple[int, int]] = []
    for number in range(most):
        now = np.trace(target @ np.linalg.pinv(information))
        falls = {}
        for i, j in combinations(range(n), 2):
            if (i, j) in taken:
                continue
            d = np.zeros(n)
            d[i], d[j] = 1, -1
            more = information + each * p[i, j] * (1 - p[i, j]) * np.outer(d, d)
            falls[i, j] = now - np.trace(target @ np.linalg.pinv(more))
        best = max(falls, key=falls.__getitem__)
        assert (better[0, number], worse[0, number]) == best
        assert gain[0, number] == pytest.approx(falls[best], rel=1e-8)
        taken.append(best)
        d = np.zeros(n)
        d[best[0]], d[best[1]] = 1, -1
        information = information + each * p[best] * (1 - p[best]) * np.outer(d, d)


def test_a_shortlist_finds_what_all_pairs_find(monkeypatch: pytest.MonkeyPatch) -> None:
    prefs = votes(np.linspace(1, -1, 40), 1500)
    whole = pairs_to_ask(prefs, top=3, most=5)
    monkeypatch.setattr("concordant.auditing.active_pairs.SHORTLIST", 20)
    monkeypatch.setattr("concordant.auditing.active_pairs.PER_PAIR", 4)
    short = pairs_to_ask(prefs, top=3, most=5)
    assert short.better.tolist() == whole.better.tolist()
    assert short.worse.tolist() == whole.worse.tolist()


def test_the_list_does_not_ask_one_question_over_and_over() -> None:
    """With many judgments each, what the first pair settles needs no second pair: two sparse items, both are asked."""
    prefs = Preferences.from_comparisons(
        ["a", "b", "c", "d", "c", "d", "a", "b"],
        ["b", "a", "a", "a", "b", "b", "c", "d"],
        count=[500, 480, 2, 2, 2, 2, 2, 2],
    )
    found = pairs_to_ask(prefs, most=2, each=100).to_arrow().to_pylist()
    touched = [{row["better"], row["worse"]} for row in found]
    assert {"c", "d"} <= touched[0] | touched[1]
    assert touched[0] != touched[1]


# -- lists -------------------------------------------------------------------------------------------------------
def test_components_are_connected_first() -> None:
    prefs = Preferences.from_comparisons(
        ["a", "b", "b", "c", "u", "v"], ["b", "a", "c", "b", "v", "u"], count=[6, 4, 6, 4, 3, 2]
    )
    found = pairs_to_ask(prefs, most=3)
    rows = found.to_arrow().to_pylist()
    assert np.isinf(rows[0]["gain"])
    assert not np.isinf(rows[1]["gain"])
    assert rows[0]["better"] in "abc"
    assert rows[0]["worse"] in "uv"
    assert rows[0]["reason"] == "connects 2 items with 3 others"
    assert rows[0]["share"] is None
    assert [row["number"] for row in rows] == [1, 2, 3]


def test_items_never_compared_get_opponents_in_turn_and_what_remains_is_said() -> None:
    named = [f"n{i}" for i in range(9)]
    prefs = Preferences.from_orders(
        ["q"] * 15,
        [0, 0, 0, 1, 1, 1, *range(2, 11)],
        ["a", "b", "c", "b", "a", "c", *named],
        [1, 2, 3, 1, 2, 3, *[1] * 9],
    )
    found = pairs_to_ask(prefs, most=4, top=1)
    rows = found.to_arrow().to_pylist()
    assert len({row["worse"] for row in rows}) == 4
    assert len({row["better"] for row in rows}) > 1
    assert all("was never compared: connects it with 3 others" in row["reason"] for row in rows)
    assert "few pairs" in [note.code for note in found.notes]


def test_tallies_are_those_of_the_votes() -> None:
    prefs = Preferences.from_comparisons(["b", "a", "a"], ["a", "b", "b"], count=[3, 1, 2], tie=[False, False, True])
    graphs = Batch.whole(prefs).graphs
    total, share = tallies(graphs, np.array([0, 1]), np.array([1, 0]))
    assert total.tolist() == [6.0, 6.0]
    assert share == pytest.approx([2 / 6, 4 / 6])


def test_reasons_tell_what_the_votes_say() -> None:
    prefs = Preferences.from_comparisons(
        ["a", "b", "b", "c", "a", "c", "c", "d"],
        ["b", "a", "c", "b", "c", "a", "d", "c"],
        count=[20, 4, 20, 5, 3, 5, 9, 4],
    )
    found = pairs_to_ask(prefs, most=6).to_arrow().to_pylist()
    by = {frozenset((row["better"], row["worse"])): row for row in found}
    against = by[frozenset("ac")]
    assert against["share"] == pytest.approx(3 / 8)
    assert "contradict" in against["reason"]
    never = [row for row in found if row["judgments"] == 0]
    assert len(never) == 2
    assert all("never judged" in row["reason"] for row in never)


def test_low_noise_needs_a_pair_with_an_item_between() -> None:
    prefs = Preferences.from_comparisons(["a", "b", "b", "c"], ["b", "a", "c", "b"], count=[6, 4, 6, 4])
    row = next(r for r in pairs_to_ask(prefs).to_arrow().to_pylist() if {r["better"], r["worse"]} == {"a", "c"})
    assert row["reason"] == "decides place 1 against 3; never judged, though a chain of preferences links them"
    fork = Preferences.from_comparisons(
        ["a", "b", "b", "c"], ["b", "a", "c", "b"], count=[6, 4, 4, 6]
    )  # a and c over b
    row = next(r for r in pairs_to_ask(fork).to_arrow().to_pylist() if {r["better"], r["worse"]} == {"a", "c"})
    assert row["reason"].endswith("; never judged")


def test_queries_do_not_touch_each_other() -> None:
    prefs = votes(np.linspace(1, -1, 8), 3000, seed=3, queries=5)
    whole = pairs_to_ask(prefs, most=3, top=2)
    assert len(whole) == 15
    some = pairs_to_ask(Batch.whole(prefs, queries=np.array([3])), most=3, top=2)
    rows = [row for row in whole.to_arrow().to_pylist() if row["query"] == 3]
    for one, other in zip(rows, some.to_arrow().to_pylist(), strict=True):
        assert {**one, "gain": 0} == {**other, "gain": 0}
        assert one["gain"] == pytest.approx(other["gain"], rel=1e-6)


def test_llmfao_asks_about_the_leader() -> None:
    found = pairs_to_ask(cc.read(LLMFAO), top=1, most=5)
    rows = found.to_arrow().to_pylist()
    assert all(row["better"] == "GPT 4" for row in rows)
    assert rows[0]["reason"].startswith("decides place 1 against 2")


def test_asking_where_it_says_settles_sooner_than_at_random() -> None:
    """Sixty votes of our choice against sixty at random, 150 times: how often the best item is found."""
    sets, items = 150, 10
    rng = np.random.default_rng(8)
    truth = rng.normal(size=(sets, items))
    query = np.repeat(np.arange(sets), 40)
    first = np.concatenate([np.tile(np.arange(items), (sets, 1)), rng.integers(0, items, (sets, 30))], axis=1).ravel()
    second = np.concatenate([np.tile((np.arange(items) + 1) % items, (sets, 1)), np.zeros((sets, 30), int)], axis=1)
    second[:, items:] = (first.reshape(sets, -1)[:, items:] + rng.integers(1, items, (sets, 30))) % items
    second = second.ravel()

    def cast(q: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return rng.random(len(q)) < 1 / (1 + np.exp(truth[q, b] - truth[q, a]))

    def found(q: np.ndarray, a: np.ndarray, b: np.ndarray, won: np.ndarray) -> tuple[Preferences, float]:
        prefs = counted_comparisons(pa.array(np.where(won, a, b)), pa.array(np.where(won, b, a)), query=pa.array(q))
        score = fitted(prefs).scores.value.reshape(sets, items)
        return prefs, float((score.argmax(axis=1) == truth.argmax(axis=1)).mean())

    won = cast(query, first, second)
    begin = (query, first, second, won)
    shares = []
    for ours in (True, False):
        votes_now = begin
        for _ in range(6):
            prefs, _share = found(*votes_now)
            q = np.repeat(np.arange(sets), 10)
            if ours:
                listed = pairs_to_ask(prefs, top=1, most=10)
                q, a, b = listed.graph, listed.batch.item[listed.better], listed.batch.item[listed.worse]
            else:
                a = rng.integers(0, items, len(q))
                b = (a + rng.integers(1, items, len(q))) % items
            votes_now = tuple(np.concatenate(x) for x in zip(votes_now, (q, a, b, cast(q, a, b)), strict=True))
        shares.append(found(*votes_now)[1])
    assert shares[0] > shares[1] + 0.05


# -- bad input ---------------------------------------------------------------------------------------------------
def test_large_components_are_cut_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    prefs = votes(np.linspace(2, -2, 60), 60_000)
    whole = pairs_to_ask(prefs, top=3, most=3)
    monkeypatch.setattr(scores_covariance, "LARGEST", 20)
    monkeypatch.setattr("concordant.auditing.stopping.LARGEST", 20)
    monkeypatch.setattr(asking, "LARGEST", 20)
    cut = pairs_to_ask(prefs, top=3, most=3)
    assert any("more than 20 connected items" in note for note in cut.notes if note.code == "nearest asked")
    assert not whole.notes
    assert (cut.better[0], cut.worse[0]) == (whole.better[0], whole.worse[0])
    assert pairs_to_ask(prefs, most=3).notes


def test_wrong_numbers_and_nothing_compared() -> None:
    prefs = votes(np.zeros(3), 50)
    for wrong in ({"most": 0}, {"each": 0}, {"top": 3}, {"top": 0}, {"level": 0.2}):
        with pytest.raises(UsageError):
            pairs_to_ask(prefs, **wrong)
    with pytest.raises(InputError):
        pairs_to_ask(Preferences.empty())


def test_two_items_and_ties_only() -> None:
    one = pairs_to_ask(Preferences.from_comparisons(["x"], ["y"]), most=5)
    assert len(one) == 1
    tied = pairs_to_ask(Preferences.from_comparisons(["x", "x"], ["y", "z"], tie=[True, True], count=[5, 5]))
    rows = tied.to_arrow().to_pylist()
    assert len(rows) == 3
    assert all(row["predicted"] == 0.5 for row in rows)
    assert sum("the votes so far are even" in row["reason"] for row in rows) == 2


def test_covariance_of_every_block_is_that_of_its_graph() -> None:
    """Places, nodes and matrices line up for batches of several components."""
    prefs = votes(np.linspace(1, -1, 6), 400, queries=4)
    fit = fitted(prefs)
    seen = 0
    for block in blocks(fit, lambda value, _: np.arange(len(value)), main=False):
        assert (np.diff(block.value, axis=1) <= 0).all()
        assert np.array_equal(fit.scores.value[block.nodes], block.value)
        assert np.array_equal(fit.batch.owner[block.nodes], np.repeat(block.graph[:, None], block.nodes.shape[1], 1))
        seen += block.nodes.size
    assert seen == len(fit.batch.item)

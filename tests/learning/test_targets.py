"""Mean gain targets against all subsets written out, and the laws of the U-statistic."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import concordant as cc
import plain
from concordant.errors import ConcordantError, UsageError
from concordant.learning.targets.mean_targets import mean_targets
from concordant.losses.gains import best_value, inverse_discount, the_gain
from concordant.preferences.graphs import Batch
from concordant.preferences.ragged import Ragged
from concordant.ranking.scores import Scores
from concordant.ranking.structures import structure

ROWS = [  # (query, winner, loser): an uneven design, lists of different length, a query with few judgments
    *[("p", "a", "b")] * 3,
    *[("p", "b", "a")] * 2,
    *[("p", "b", "c")] * 2,
    ("p", "a", "d"),
    ("p", "c", "d"),
    *[("q", "x", "y")] * 2,
    ("q", "y", "x"),
    ("q", "z", "x"),
    ("r", "x", "y"),
]
GAINS = {"2^s-1": lambda s: 2**s - 1, "2^s": lambda s: 2**s, "identity": lambda s: s, "cube": lambda s: s**3}
PLAIN = {"log-odds": lambda n: plain.average_log_odds(n, 0.5), "borda": plain.borda, "counting": plain.counting}


def votes(rows: list[tuple[str, str, str]] = ROWS) -> cc.Preferences:
    query, winner, loser = map(list, zip(*rows))
    return cc.Preferences.from_comparisons(winner, loser, query=query)


def score(rows: list[tuple[str, str, str]], items: list[str], structure: str) -> np.ndarray:
    n = np.zeros((len(items), len(items)))
    for _, winner, loser in rows:
        n[items.index(winner), items.index(loser)] += 1
    return PLAIN[structure](n)


def gain_over_best(s: np.ndarray, gain: str, normalise: bool, at: int | None) -> np.ndarray:
    G = GAINS[gain](s)
    if not normalise:
        return G
    m = len(s)
    F = [1 / np.log2(2 + place) if at is None or place < at else 0.0 for place in range(m)]
    Z = max(sum(G[i] * F[place] for place, i in enumerate(order)) for order in permutations(range(m)))
    return G / Z if Z > 1e-9 else np.zeros(m)


def all_subsets(
    query: str, k: int, structure: str = "log-odds", gain: str = "2^s-1", normalise: bool = True, at: int | None = None
) -> np.ndarray:
    """G(s)/Z(s) of every k-subset of the judgments of a query, shape (subsets, items)."""
    rows = [row for row in ROWS if row[0] == query]
    items = sorted({item for row in rows for item in row[1:]})
    k = min(k, len(rows))
    return np.array(
        [gain_over_best(score(list(some), items, structure), gain, normalise, at) for some in combinations(rows, k)]
    )


# -- the U-statistic by enumeration --------------------------------------------------------------------------------
@pytest.mark.parametrize("structure", sorted(PLAIN))
@pytest.mark.parametrize("gain", ["2^s-1", "2^s", "identity"])
@pytest.mark.parametrize(("normalise", "at"), [(True, None), (True, 2), (False, None)])
def test_complete_aggregation_is_the_formula(structure: str, gain: str, normalise: bool, at: int | None) -> None:
    options = {"c0": 0.5} if structure == "log-odds" else None
    found = mean_targets(votes(), structure, options=options, gain=gain, normalise=normalise, at=at)
    wanted = [all_subsets(q, 99, structure, gain, normalise, at).mean(axis=0) for q in "pqr"]
    np.testing.assert_allclose(found.value, np.concatenate(wanted), rtol=1e-9, atol=1e-12)
    assert found.exact.all() and not found.error.any() and found.drawn.tolist() == [1, 1, 1]


@pytest.mark.parametrize("k", [1, 2, 4, 8])
@pytest.mark.parametrize("partition", [False, True])
def test_the_mean_over_all_subsets_is_what_is_estimated(k: int, partition: bool) -> None:
    found = mean_targets(votes(), options={"c0": 0.5}, order=k, subsets=4000, partition=partition, gain="2^s-1", seed=5)
    wanted = np.concatenate([all_subsets(q, k).mean(axis=0) for q in "pqr"])
    sampled = found.error > 0
    assert (np.abs(found.value - wanted)[sampled] < 4.5 * found.error[sampled] + 1e-12).all()
    assert (found.error < 0.06).all()
    np.testing.assert_allclose(found.value[~sampled], wanted[~sampled], atol=1e-12)
    assert found.exact.tolist() == [k >= 9, k >= 4, True]


@pytest.mark.parametrize(("k", "partition", "subsets"), [(2, False, 32), (2, True, 32), (4, True, 20), (6, True, 16)])
def test_the_standard_error_is_the_spread_over_seeds(k: int, partition: bool, subsets: int) -> None:
    draws = [
        mean_targets(votes(), options={"c0": 0.5}, order=k, subsets=subsets, partition=partition, seed=seed)
        for seed in range(300)
    ]
    values, errors = np.array([d.value for d in draws]), np.array([d.error for d in draws])
    spread, claimed = values.std(axis=0), np.sqrt((errors**2).mean(axis=0))
    moving = spread > 1e-9
    assert moving[:4].all()  # the four items of query p
    np.testing.assert_allclose(claimed[moving], spread[moving], rtol=0.15)
    np.testing.assert_array_equal(claimed[~moving] < 1e-9, True)


def test_the_error_falls_as_one_over_the_root_of_the_number_of_subsets() -> None:
    few, many = (mean_targets(votes(), order=3, subsets=b, partition=False).error for b in (400, 6400))
    np.testing.assert_allclose(few[:4] / many[:4], 4.0, rtol=0.2)


def test_one_round_of_blocks_overstates_the_error_and_says_no_less() -> None:
    rows = [("p", *pair) for pair in [("a", "b"), ("b", "a"), ("a", "c"), ("c", "b")] * 50]
    prefs = votes(rows)
    draws = [mean_targets(prefs, order=10, subsets=20, seed=seed) for seed in range(200)]  # exactly one permutation
    spread = np.std([d.value for d in draws], axis=0)
    assert (np.mean([d.error for d in draws], axis=0) > spread).all()


def test_the_risk_is_a_weighted_sum_of_squares() -> None:
    """(18) by enumeration and Σ weight/2 ‖f − ȳ‖² differ by a constant, whatever f."""
    k, rng = 2, np.random.default_rng(1)
    exact = {q: all_subsets(q, k) for q in "pqr"}
    found = mean_targets(votes(), options={"c0": 0.5}, order=k, subsets=4)
    ybar = np.concatenate([exact[q].mean(axis=0) for q in "pqr"])
    sizes = {q: sum(row[0] == q for row in ROWS) for q in "pqr"}
    gaps = []
    for _ in range(3):
        f = rng.normal(size=len(ybar))
        by_query = dict(zip("pqr", np.split(f, found.start[1:-1])))
        risk = sum(
            sizes[q] / len(ROWS) * np.mean([((by_query[q] - y) ** 2).sum() / (2 * len(y)) for y in exact[q]])
            for q in "pqr"
        )
        squares = np.add.reduceat((f - ybar) ** 2, found.start[:-1])
        gaps.append(risk - (found.weight / 2 * squares).sum())
    assert np.ptp(gaps) < 1e-12 and gaps[0] > 0


# -- laws ----------------------------------------------------------------------------------------------------------
def same_bits(left: object, right: object) -> None:
    for name in ("start", "value", "error", "weight", "drawn", "zero", "exact"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)


@pytest.mark.parametrize("order", ["all", 1, 3, 100])
def test_row_order_block_size_and_neighbours_change_no_bit(order: int | str) -> None:
    wanted = mean_targets(votes(), order=order, seed=2)
    same_bits(mean_targets(votes(ROWS[::-1]), order=order, seed=2), wanted)
    for block in (1, 200, 700):
        same_bits(mean_targets(votes(), order=order, seed=2, block=block), wanted)
    alone = mean_targets(votes().select(["q"]), order=order, seed=2)
    part = slice(wanted.start[1], wanted.start[2])
    np.testing.assert_array_equal(alone.value, wanted.value[part])
    np.testing.assert_array_equal(alone.error, wanted.error[part])


def test_a_count_is_a_repetition() -> None:
    distinct = sorted(set(ROWS))
    query, winner, loser = map(list, zip(*distinct))
    counted = cc.Preferences.from_comparisons(winner, loser, query=query, count=[ROWS.count(row) for row in distinct])
    for order in ("all", 2):
        same_bits(mean_targets(counted, order=order), mean_targets(votes(), order=order))


def test_an_order_of_all_judgments_is_complete_aggregation() -> None:
    same_bits(mean_targets(votes(), order=9), mean_targets(votes(), order="all"))
    assert mean_targets(votes(), order="all").notes == ()
    near = mean_targets(votes(), order=8, subsets=7)
    assert near.exact.tolist() == [False, True, True] and near.drawn.tolist() == [7, 1, 1]
    (note,) = near.notes
    assert (note.code, note.numbers) == ("one subset", {"queries": 2, "of": 3})


def test_weights_are_shares_of_judgments_per_item() -> None:
    np.testing.assert_allclose(mean_targets(votes()).weight, np.array([9 / 4, 4 / 3, 1 / 2]) / 14)


def test_lists_and_callables_work_too() -> None:
    orders = cc.Preferences.from_orders(["q"] * 6, [1, 1, 1, 2, 2, 2], ["a", "b", "c"] * 2, [1, 2, 3, 2, 1, 3])
    found = mean_targets(orders, "borda", gain="identity", normalise=False)
    np.testing.assert_allclose(found.value, [0.5, 0.5, -1.0])

    def ones(batch: Batch, **options: float) -> Scores:
        g = len(batch)
        value = np.full(len(batch.item), options["value"])
        return Scores(value, np.zeros(len(value), np.int32), np.full(g, 2, np.int8), np.zeros(g, int), np.zeros(g))

    found = mean_targets(votes(), ones, options={"value": 3.0}, gain=lambda s: s * 2, normalise=False)
    assert found.value.tolist() == [6.0] * 9 and found.stopped == 3
    assert [(note.code, note.numbers) for note in found.notes] == [("stopped", {"graphs": 3})]


@pytest.mark.parametrize("order", ["all", 3])
@pytest.mark.parametrize("kind", ["plain", "ties and weights", "orders"])
def test_the_quick_log_odds_are_those_of_the_registry(order: int | str, kind: str) -> None:
    query, winner, loser = map(list, zip(*ROWS))
    prefs = {
        "plain": votes(),
        "ties and weights": cc.Preferences.from_comparisons(
            winner, loser, query=query, tie=[row % 3 == 0 for row in range(14)], weight=np.arange(1.0, 15.0) / 7
        ),
        "orders": cc.Preferences.from_orders(
            ["q"] * 12, np.repeat(np.arange(4), 3), list("abcbcacabacd"), [1, 2, 3] * 4
        ),
    }[kind]
    through = mean_targets(prefs, lambda batch, **options: structure("log-odds")(batch, **options), order=order)
    quick = mean_targets(prefs, "log-odds", order=order)
    for name in ("value", "error", "weight", "drawn", "zero", "exact"):
        np.testing.assert_allclose(getattr(quick, name), getattr(through, name), rtol=1e-12, atol=1e-13, err_msg=name)


def test_centred_targets_sum_to_zero_in_each_query() -> None:
    found = mean_targets(votes(), gain="2^s")
    for begin, end in zip(found.start[:-1], found.start[1:]):
        part = found.value[begin:end]
        np.testing.assert_allclose(found.centred()[begin:end], part - part.mean(), atol=1e-15)
    matrix = np.random.default_rng(0).normal(size=(5, 2))
    start = np.array([0, 0, 2, 5, 5])  # empty queries at the ends
    np.testing.assert_allclose(Ragged(start).centred(matrix)[2:], matrix[2:] - matrix[2:].mean(axis=0))


# -- Z = 0 ---------------------------------------------------------------------------------------------------------
def test_scores_that_cancel_give_targets_zero_and_are_counted() -> None:
    rows = [("p", "a", "b"), ("p", "b", "a"), ("q", "a", "b"), ("q", "a", "b")]
    found = mean_targets(votes(rows), order="all")
    assert found.value[:2].tolist() == [0.0, 0.0] and found.zero.tolist() == [1, 0] and found.value[2] > 0
    assert found.notes == ("1 of 2 subsets (in 1 query) have no best order (Z = 0): their targets are 0",)
    many = votes([*rows[:2] * 2])  # of the 6 pairs of two against two, 4 cancel
    drawn = mean_targets(many, order=2, subsets=3000)
    assert abs(drawn.zero[0] / 3000 - 4 / 6) < 0.05
    bradley_terry = mean_targets(votes(rows[:2] * 50), "bradley-terry")  # zero but for rounding
    assert bradley_terry.zero.tolist() == [1] and not bradley_terry.value.any()
    assert not mean_targets(votes(rows), gain="2^s").zero.any()


def test_scores_that_are_only_rounding_are_no_order() -> None:
    def noise(batch: Batch) -> Scores:
        g, value = len(batch), np.where(np.arange(len(batch.item)) % 2, 1e-13, -1e-13)
        return Scores(value, np.zeros(len(value), np.int32), np.zeros(g, np.int8), np.zeros(g, int), np.zeros(g))

    found = mean_targets(votes(), noise)
    assert not found.value.any() and found.zero.tolist() == [1, 1, 1]


# -- gains and the best value --------------------------------------------------------------------------------------
@given(
    st.lists(st.lists(st.floats(-5, 5), min_size=1, max_size=5), min_size=1, max_size=6),
    st.sampled_from([None, 1, 2, 4]),
)
def test_the_best_value_over_all_orderings(lists: list[list[float]], at: int | None) -> None:
    start = np.cumsum([0, *map(len, lists)])
    inverse = inverse_discount(5, at=at)
    found = best_value(start, np.concatenate(lists), inverse)
    wanted = [
        max(sum(g * inverse[place] for place, g in enumerate(order)) for order in permutations(gains))
        for gains in lists
    ]
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_a_long_list_and_an_empty_one_have_a_best_value() -> None:
    gains = np.random.default_rng(0).normal(size=1003)
    found = best_value(np.array([0, 0, 3, 1003]), gains, inverse_discount(1000))
    np.testing.assert_allclose(found[2], (np.sort(gains[3:])[::-1] / np.log2(np.arange(2, 1002))).sum())
    assert found[0] == 0.0


def test_small_scores_keep_their_digits() -> None:
    s = np.array([1e-12])
    np.testing.assert_allclose(the_gain("2^s-1")(s), s * np.log(2), rtol=1e-10)


def test_what_is_not_allowed_is_said() -> None:
    for arguments, says in (
        ({"order": 0}, "order must be 'all' or an integer of at least 1, not 0"),
        ({"order": "auto"}, "not 'auto'"),
        ({"subsets": 0}, "at least 1, not 0"),
        ({"structure": "borla"}, "did you mean 'borda'"),
        ({"options": {"prior": 1}}, "log-odds has no option 'prior'"),
        ({"gain": "2^s-2"}, "unknown gain '2\\^s-2'; did you mean '2\\^s-1'"),
        ({"at": 0}, "at must be at least 1"),
        ({"discount": lambda j: 1 / j}, "may not decrease"),
    ):
        with pytest.raises(UsageError, match=says):
            mean_targets(votes(), **arguments)
    with pytest.raises(ConcordantError, match="not one finite number"):
        mean_targets(votes(), gain=lambda s: np.full(len(s), np.nan))


def test_no_judgments_at_all() -> None:
    found = mean_targets(cc.Preferences.empty())
    assert len(found.value) == 0 and len(found.weight) == 0 and found.notes == ()


def test_no_order_is_too_large() -> None:
    votes = cc.Preferences.from_comparisons(["a", "b", "a", "a"], ["b", "a", "b", "b"], [1, 1, 1, 2])
    for name in ("log-odds", "borda"):
        most, whole = mean_targets(votes, name, order=2**70), mean_targets(votes, name)
        assert most.value.tolist() == whole.value.tolist() and most.exact.all()
        assert (most.notes[0].code, most.notes[0].numbers) == ("one subset", {"queries": 2, "of": 2})

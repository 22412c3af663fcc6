"""Laws that every structure of the registry keeps, tested against what the registry states about it.

A structure that breaks a law by its nature stands in the law's table of exceptions with the reason.
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences, counted_comparisons, counted_lists
from concordant.preferences.status import Status
from concordant.ranking.structures import STRUCTURES
from small_logs import logs

NAMES = sorted(STRUCTURES)
OF_PAIRS = [name for name in NAMES if "comparisons" in STRUCTURES[name].kinds]
READ = ("comparisons", "orders", "selections")
BOTH = [(name, kind) for name in NAMES for kind in READ if kind in STRUCTURES[name].kinds]
BOTH += [(name, "ratings") for name in NAMES if STRUCTURES[name].reads == "lists" and name != "inverse-propensity"]
few = settings(max_examples=8)
GIVEN = {"inverse-propensity": {"propensities": (1.0, 0.8, 0.5, 0.4, 0.3, 0.2)}}
"""Options without which a structure does not read every log."""


def scores_of(name, prefs, **options):
    """Scores by (query, item) label."""
    batch = Batch.whole(prefs)
    scores = STRUCTURES[name](batch, **GIVEN.get(name, {}), **options)
    assert (scores.status != Status.STOPPED).all()
    queries, items = prefs.queries.tolist(), prefs.items.tolist()
    keys = [(queries[q], items[i]) for q, i in zip(batch.query[batch.owner], batch.item, strict=True)]
    return dict(zip(keys, scores.value.tolist(), strict=True))


def assert_same(left, right, tolerance=1e-9):
    assert left.keys() == right.keys()
    for key, value in left.items():
        assert value == pytest.approx(right[key], rel=tolerance, abs=tolerance), key


def relabelled(prefs, items, queries):
    """The same judgments under other labels, so that items stand in another order everywhere."""
    new_item = pa.array([items[label] for label in prefs.items.tolist()])
    new_query = pa.array([queries[label] for label in prefs.queries.tolist()])
    query = new_query.take(pa.array(prefs.query))
    if prefs.kind == "comparisons":
        winner, loser = new_item.take(pa.array(prefs.winner)), new_item.take(pa.array(prefs.loser))
        return counted_comparisons(winner, loser, query=query, tie=prefs.tie, weight=prefs.weight, count=prefs.count)
    return counted_lists(
        prefs.kind,
        prefs.list_start,
        new_item.take(pa.array(prefs.list_item)),
        prefs.list_value,
        query=query,
        count=prefs.count,
    )


@pytest.mark.parametrize(("name", "kind"), BOTH)
@given(data=st.data())
@few
def test_names_of_items_and_queries_do_not_matter(name, kind, data):
    prefs = data.draw(logs(kind))
    items = dict(zip("abcdef", data.draw(st.permutations([f"item {n}" for n in range(6)])), strict=True))
    queries = dict(zip((0, 1), data.draw(st.permutations(["p", "r"])), strict=True))
    expected = {(queries[q], items[i]): value for (q, i), value in scores_of(name, prefs).items()}
    assert_same(scores_of(name, relabelled(prefs, items, queries)), expected, 1e-8)


@pytest.mark.parametrize(("name", "kind"), BOTH)
@given(data=st.data())
@few
def test_merged_logs_have_the_scores_of_the_whole_bit_for_bit(name, kind, data):
    a, b = data.draw(logs(kind)), data.draw(logs(kind))
    for parts in ((a, b), (b, a), (Preferences.empty(), b, a)):
        whole = parts[0]
        for part in parts[1:]:
            whole = whole + part
        assert scores_of(name, whole) == scores_of(name, a + b)


@pytest.mark.parametrize("name", OF_PAIRS)
@given(logs("comparisons"), st.integers(2, 5))
@few
def test_count_is_that_many_rows(name, prefs, times):
    items, queries = prefs.items.tolist(), prefs.queries.tolist()
    rows = np.repeat(np.arange(prefs.distinct), prefs.count * times)
    spelled = Preferences.from_comparisons(
        [items[i] for i in prefs.winner[rows]],
        [items[i] for i in prefs.loser[rows]],
        [queries[q] for q in prefs.query[rows]],
        None if prefs.weight is None else prefs.weight[rows],
        tie=None if prefs.tie is None else prefs.tie[rows],
    )
    assert scores_of(name, spelled) == scores_of(name, sum([prefs] * times))


@pytest.mark.parametrize(("name", "kind"), BOTH)
@given(data=st.data())
@few
def test_gauge(name, kind, data):
    member, batch = STRUCTURES[name], Batch.whole(data.draw(logs(kind)))
    if name == "borda" and kind == "orders":
        return  # positions in lists of unlike items do not add up to zero; the registry says so
    scores = member(batch, **GIVEN.get(name, {}))
    for graph in range(len(batch)):
        here = slice(batch.node_start[graph], batch.node_start[graph + 1])
        value, component = scores.value[here], scores.component[here]
        if member.gauge == "sum zero":
            np.testing.assert_allclose(np.bincount(component, value), 0, atol=1e-9)
        elif member.gauge == "geometric mean one":
            np.testing.assert_allclose(np.log(value).sum(), 0, atol=1e-12)
        elif member.gauge == "places":
            size = np.bincount(component)
            np.testing.assert_allclose(np.bincount(component, value), -size * (size + 1) / 2)
        elif member.gauge == "sum of lists":
            assert not component.any()
            lists = batch.multiplicity[batch.start[graph] : batch.start[graph + 1]].sum()
            assert ((value >= 0) & (value <= lists * {"rrf": 1 / 61, "combsum": 1}[name] * (1 + 1e-12))).all()
        else:
            most = 1 if name not in GIVEN else 1 / min(GIVEN[name]["propensities"])
            assert ((value >= 0) & (value <= most)).all()  # the others are rates


@pytest.mark.parametrize(("name", "kind"), [(n, k) for n, k in BOTH if STRUCTURES[n].gauge == "sum of lists"])
@given(data=st.data())
@few
def test_sums_of_lists_add_up(name, kind, data):
    a, b = (data.draw(logs(kind)) for _ in range(2))
    one, other = scores_of(name, a), scores_of(name, b)
    assert_same(scores_of(name, a + b), {key: one.get(key, 0) + other.get(key, 0) for key in one | other})


# -- adding a win ------------------------------------------------------------------------------------------------
ONLY_JUDGED_PAIRS = {
    "thurstone-mosteller": "the first judgment of a pair is a new equation: when i leads j by more than one win's "
    "log-odds, it pulls them together"
}


@pytest.mark.parametrize("name", OF_PAIRS)
@given(data=st.data())
@settings(max_examples=25)
def test_a_win_more_never_hurts(name, data):
    prefs = data.draw(logs("comparisons"))
    items, queries = prefs.items.tolist(), prefs.queries.tolist()
    if name in ONLY_JUDGED_PAIRS:
        judged = data.draw(st.integers(0, prefs.distinct - 1))
        query, pair = prefs.query[judged], [prefs.winner[judged], prefs.loser[judged]]
    else:
        query = data.draw(st.integers(0, len(queries) - 1))
        start, members = prefs.members
        pair = members[start[query] : start[query + 1]].tolist()
    i, j = (items[code] for code in data.draw(st.permutations(pair))[:2])
    q = queries[int(query)]
    before, after = scores_of(name, prefs), scores_of(name, prefs + Preferences.from_comparisons([i], [j], [q]))
    if name == "eigenvector":  # a ratio scale, fixed by the product of all
        assert after[q, i] / after[q, j] >= before[q, i] / before[q, j] * (1 - 1e-9)
    else:
        assert after[q, i] >= before[q, i] - 1e-9
        assert after[q, j] <= before[q, j] + 1e-9


def test_a_first_win_can_hurt_in_least_squares():
    """The exception above is real."""
    strong = Preferences.from_comparisons(["a", "b"], ["b", "c"], count=[1000, 1000])
    before = scores_of("thurstone-mosteller", strong)
    after = scores_of("thurstone-mosteller", strong + Preferences.from_comparisons(["a"], ["c"]))
    assert after["all", "a"] < before["all", "a"]


@given(logs("selections"), st.sampled_from("abcdef"))
@settings(max_examples=30)
def test_a_click_more_never_hurts_in_the_cascade(prefs, item):
    more = prefs + Preferences.from_selections([0], [99], [1], [item], [1])
    before, after = scores_of("cascade", prefs), scores_of("cascade", more)
    assume((0, item) in before)
    assert after[0, item] >= before[0, item] - 1e-12


# -- winners and losers swapped ----------------------------------------------------------------------------------
def swapped(prefs):
    items, queries = prefs.items.tolist(), prefs.queries.tolist()
    return Preferences.from_comparisons(
        [items[i] for i in prefs.loser],
        [items[i] for i in prefs.winner],
        [queries[q] for q in prefs.query],
        prefs.weight,
        tie=prefs.tie,
        count=prefs.count,
    )


@pytest.mark.parametrize("name", OF_PAIRS)
@given(logs("comparisons"))
@few
def test_reversal(name, prefs):
    forth, back = scores_of(name, prefs), scores_of(name, swapped(prefs))
    if STRUCTURES[name].reversal == "negated":
        assert_same(back, {key: -value for key, value in forth.items()}, 1e-8)
    elif STRUCTURES[name].reversal == "complement":
        assert_same(back, {key: 1 - value for key, value in forth.items()})
    elif STRUCTURES[name].reversal == "places reversed":
        batch = Batch.whole(prefs)
        group = [(int(q), int(c)) for q, c in zip(batch.owner, STRUCTURES[name](batch).component, strict=True)]
        size = dict(zip(forth, (group.count(one) for one in group), strict=True))
        assert_same(back, {key: -value - size[key] - 1 for key, value in forth.items()})
    else:
        assert name == "eigenvector"  # left and right Perron vectors are reciprocal up to three items only


@given(st.lists(st.permutations("abc"), min_size=1, max_size=8))
@few
def test_eigenvector_is_reciprocal_under_reversal_up_to_three_items(pairs):
    prefs = Preferences.from_comparisons([p[0] for p in pairs], [p[1] for p in pairs], [0] * len(pairs))
    back = scores_of("eigenvector", swapped(prefs))
    assert_same(back, {key: 1 / value for key, value in scores_of("eigenvector", prefs).items()}, 1e-8)


def test_eigenvector_is_not_reciprocal_with_four():
    prefs = Preferences.from_comparisons([*"abcdac"], [*"bcdaca"], count=[9, 3, 1, 7, 2, 5])
    back, forth = scores_of("eigenvector", swapped(prefs)), scores_of("eigenvector", prefs)
    assert max(abs(back[key] * forth[key] - 1) for key in forth) > 1e-3


@given(logs("orders"))
@few
def test_positional_borda_is_negated_when_orders_are_turned_round(prefs):
    items, queries = prefs.items.tolist(), prefs.queries.tolist()
    owner = np.repeat(np.arange(prefs.distinct), np.diff(prefs.list_start))
    turned = Preferences.from_orders(
        [queries[q] for q in prefs.query[owner]], owner, [items[i] for i in prefs.list_item], 10 - prefs.list_value
    )
    once = Preferences.from_orders(
        [queries[q] for q in prefs.query[owner]], owner, [items[i] for i in prefs.list_item], prefs.list_value
    )
    assert_same(scores_of("borda", turned), {k: -v for k, v in scores_of("borda", once).items()})


# -- uneven designs ----------------------------------------------------------------------------------------------
NOT_FAIR = {
    "counting": "a rate of wins over all games rewards weak opponents: the strongest mostly meets the second",
}


@pytest.mark.parametrize("name", OF_PAIRS)
def test_uneven_designs_keep_the_order(name):
    r = np.array([1.0, 0.9, 0.0])
    rows = [(0, 1, 0.4), (0, 2, 0.02), (1, 2, 0.58)]
    rows += [(j, i, share) for i, j, share in rows]
    count = [round(1e7 * share / (1 + np.exp(r[j] - r[i]))) for i, j, share in rows]
    score = scores_of(name, Preferences.from_comparisons([x[0] for x in rows], [x[1] for x in rows], count=count))
    ordered = score["all", 0] > score["all", 1] > score["all", 2]
    assert ordered == (name not in NOT_FAIR), NOT_FAIR.get(name)


# -- batches -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "kind"), BOTH)
@given(data=st.data())
@few
def test_a_graph_does_not_feel_its_neighbours(name, kind, data):
    prefs = data.draw(logs(kind))
    batch = Batch.subsets(prefs, data.draw(st.integers(1, 6)), 3, seed=data.draw(st.integers(0, 9)))
    given = GIVEN.get(name, {})
    together = STRUCTURES[name](batch, **given)
    for graph in range(len(batch)):
        held = slice(batch.start[graph], batch.start[graph + 1])
        alone = STRUCTURES[name](
            Batch(
                prefs,
                batch.query[[graph]],
                np.array([0, held.stop - held.start]),
                batch.judgment[held],
                batch.multiplicity[held],
            ),
            **given,
        )
        here = slice(batch.node_start[graph], batch.node_start[graph + 1])
        np.testing.assert_allclose(together.value[here], alone.value, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(together.component[here], alone.component)
        assert together.status[graph] == alone.status[0]


@pytest.mark.parametrize(("name", "kind"), BOTH)
@given(data=st.data())
@few
def test_twice_the_same_bits(name, kind, data):
    prefs = data.draw(logs(kind))
    first, second = (STRUCTURES[name](Batch.subsets(prefs, 4, 2, seed=3), **GIVEN.get(name, {})) for _ in range(2))
    np.testing.assert_array_equal(first.value, second.value)
    np.testing.assert_array_equal(first.iterations, second.iterations)


# -- items that nobody judged ------------------------------------------------------------------------------------
NEUTRAL = {"0": 0.0, "1/2": 0.5, "-1": -1.0}


@pytest.mark.parametrize("name", NAMES)
def test_declared_items_get_the_neutral_value_that_the_registry_states(name):
    declared = (pa.array(["q", "q"]), pa.array(["ghost", "x"]))
    if STRUCTURES[name].kinds == ("selections",):
        shown = pa.array(["x", "y", "x", "y"])
        clicks = np.array([0.0, 1.0, 1.0, 0.0])
        query = pa.array(["q", "q"])
        prefs = counted_lists("selections", np.array([0, 2, 4]), shown, clicks, query=query, declared=declared)
        expected = 2 / 3  # two clicks, three examinations
        if name == "position-based":  # neither item changes places: each its click rate
            expected = 0.5
        if name == "inverse-propensity":
            expected = (1 + 1 / 0.8) / 4
        assert STRUCTURES[name].neutral == "the query's pooled click rate"
    elif STRUCTURES[name].reads == "lists":
        kind, item = STRUCTURES[name].kinds[0], pa.array(["x", "y"])
        value = np.array([1.0, 2.0])
        prefs = counted_lists(kind, np.array([0, 2]), item, value, query=pa.array(["q"]), declared=declared)
        expected = NEUTRAL[STRUCTURES[name].neutral]
    else:
        won, lost = pa.array(["x", "x", "y"]), pa.array(["y", "y", "x"])
        prefs = counted_comparisons(won, lost, query=pa.array(["q"] * 3), declared=declared)
        if name == "eigenvector":
            assert STRUCTURES[name].neutral == "ratio 1 against all"
            ratio = 2.5 / 1.5
            matrix = np.array([[1, 1, 1], [1, 1, ratio], [1, 1 / ratio, 1]])  # ghost, x, y
            vector = np.linalg.matrix_power(matrix, 60)[:, 0]
            expected = vector[0] / np.exp(np.log(vector).mean())
        else:
            expected = NEUTRAL[STRUCTURES[name].neutral]
    assert scores_of(name, prefs)["q", "ghost"] == pytest.approx(expected, abs=1e-12)

"""Batches, edges and pair tables against loops over judgments; connectivity against networkx-free brute force."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import concordant as cc
from concordant.errors import UsageError
from concordant.preferences.connectivity import connectivity
from concordant.preferences.graphs import Batch, Edges, Graphs
from concordant.preferences.preferences import Preferences, counted_comparisons, counted_lists

ITEMS = "abcd"
QUERIES = "pqr"


@st.composite
def comparisons(draw):
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from(QUERIES),
                st.permutations(ITEMS),
                st.booleans(),
                st.sampled_from([1.0, 0.5, 3.0]),
                st.integers(1, 4),
                st.sampled_from([-1.0, 0.0, 2.0]),
            ),
            min_size=1,
            max_size=12,
        )
    )
    weighted = draw(st.booleans())
    return [(q, p[0], p[1], tie, w if weighted else 1.0, c, z) for q, p, tie, w, c, z in rows]


def build(rows, covariate=False):
    q, w, lost, tie, weight, count, z = (list(x) for x in zip(*rows, strict=True))
    return counted_comparisons(
        w,
        lost,
        query=q,
        tie=np.array(tie),
        weight=np.array(weight),
        count=np.array(count),
        covariates={"z": np.array(z)} if covariate else None,
    )


def table(graphs, batch):
    """{(query, graph number, first item, second item[, z]): (wins, losses, ties)} of a pair table."""
    prefs = batch.prefs
    out = {}
    for e, g in enumerate(graphs.graph):
        a, b = (prefs.items[batch.item[node]] for node in (graphs.first[e], graphs.second[e]))
        key = (int(g), prefs.queries[batch.query[g]], a, b)
        if graphs.covariates is not None:
            key += tuple(graphs.covariates[e])
        assert key not in out
        out[key] = (graphs.wins[e], graphs.losses[e], graphs.ties[e])
    return out


def plain_table(rows, covariate=False):
    codes = {q: i for i, q in enumerate(sorted({row[0] for row in rows}))}
    out = defaultdict(lambda: np.zeros(3))
    for q, w, lost, tie, weight, count, z in rows:
        a, b = min(w, lost), max(w, lost)
        key = (codes[q], q, a, b)
        if covariate:
            key += (z if w == a else -z + 0.0,)
        out[key][2 if tie else (0 if w == a else 1)] += weight * count
    return {key: tuple(value) for key, value in out.items()}


@given(comparisons())
def test_pair_tables_are_what_a_loop_adds_up(rows):
    batch = Batch.whole(build(rows))
    found, expected = table(batch.graphs, batch), plain_table(rows)
    assert found.keys() == expected.keys()
    for key in found:
        assert found[key] == pytest.approx(expected[key])


@given(comparisons())
def test_pair_tables_with_covariates(rows):
    batch = Batch.whole(build(rows, covariate=True))
    found, expected = table(Graphs.of(batch, covariates=True), batch), plain_table(rows, covariate=True)
    assert {k: pytest.approx(v) for k, v in expected.items()} == found


@given(comparisons(), st.integers(1, 6), st.integers(1, 3))
def test_tables_of_subsets_hold_k_judgments(rows, k, subsets):
    prefs = build([(*row[:4], 1.0, *row[5:]) for row in rows])
    batch = Batch.subsets(prefs, k, subsets, seed=1)
    graphs = batch.graphs
    mass = np.bincount(graphs.graph, graphs.wins + graphs.losses + graphs.ties, len(batch))
    assert mass.tolist() == np.minimum(prefs.judgments[batch.query], k).tolist()
    nodes = np.diff(batch.node_start)
    assert nodes.tolist() == np.diff(prefs.members[0])[batch.query].tolist()


@given(comparisons())
def test_a_graph_does_not_depend_on_the_rest_of_the_batch(rows):
    prefs = build(rows)
    whole = Batch.whole(prefs)
    code = len(prefs.queries) - 1
    alone = Batch.whole(prefs, np.array([code])).graphs
    part = slice(whole.graphs.pair_start[code], whole.graphs.pair_start[code + 1])
    for name in ("wins", "losses", "ties"):
        assert getattr(alone, name).tobytes() == getattr(whole.graphs, name)[part].tobytes()


def test_wide_and_sparse_queries_take_the_searched_way():
    """Many items, few of them in each query: nodes are found by search, with the same answer."""
    rng = np.random.default_rng(0)
    winner = rng.integers(0, 10**6, 300)
    rows = [(f"q{i // 2}", int(w), int(w) + 1, False, 1.0, 1, 0.0) for i, w in enumerate(winner)]
    batch = Batch.whole(build(rows))
    assert table(batch.graphs, batch) == {
        (g, q, a, b): v
        for (g, q, a, b), v in (
            ((sorted({r[0] for r in rows}).index(k[1]), *k[1:]), v) for k, v in plain_table(rows).items()
        )
    }


def edge_list(prefs):
    batch = Batch.whole(prefs)
    edges = Edges.of(batch)
    out = defaultdict(float)
    for h, w, lost, s, t in zip(edges.holder, edges.winner, edges.loser, edges.strength, edges.tie):
        pair = prefs.items[batch.item[w]], prefs.items[batch.item[lost]]
        out[tuple(sorted(pair)) if t else pair, bool(t)] += s * batch.multiplicity[h]
    return dict(out)


def one_list(kind, entries, count=1):
    items, values = zip(*entries, strict=True)
    offsets = np.array([0, len(items)])
    return counted_lists(kind, offsets, list(items), np.array(values, float), count=np.array([count]))


def test_edges_of_an_order_with_a_tie():
    prefs = one_list("orders", [("c", 1), ("a", 2), ("b", 2)], count=2)
    assert edge_list(prefs) == {(("c", "a"), False): 2, (("c", "b"), False): 2, (("a", "b"), True): 2}


def test_edges_of_ratings_are_as_strong_as_the_difference():
    prefs = one_list("ratings", [("a", 1), ("b", 4.5), ("c", 1)])
    assert edge_list(prefs) == {(("b", "a"), False): 3.5, (("b", "c"), False): 3.5}


def test_edges_of_a_selection_point_to_what_was_passed_over():
    prefs = one_list("selections", [("a", 0), ("c", 0), ("b", 1), ("d", 0)])
    assert edge_list(prefs) == {(("b", "a"), False): 1, (("b", "c"), False): 1}
    assert edge_list(one_list("selections", [("a", 0), ("b", 0)])) == {}


def test_edges_of_a_choice_point_to_all_others():
    prefs = one_list("choices", [("a", 0), ("c", 1), ("b", 0)])
    assert edge_list(prefs) == {(("c", "a"), False): 1, (("c", "b"), False): 1}


def test_an_empty_batch():
    batch = Batch.whole(Preferences.empty())
    assert len(batch) == 0
    assert batch.graphs.nodes == 0
    assert len(connectivity(batch.graphs).component) == 0


def reach(wins, start):
    seen, todo = {start}, [start]
    while todo:
        node = todo.pop()
        for other in np.flatnonzero(wins[node]):
            if other not in seen:
                seen.add(int(other))
                todo.append(int(other))
    return seen


@given(comparisons())
def test_connectivity_is_what_walking_finds(rows):
    prefs = build(rows)
    batch = Batch.whole(prefs)
    graphs = batch.graphs
    nodes = graphs.nodes
    wins = np.zeros((nodes, nodes), bool)
    for e in range(len(graphs.first)):
        wins[graphs.first[e], graphs.second[e]] |= graphs.above[e] > 0
        wins[graphs.second[e], graphs.first[e]] |= graphs.below[e] > 0
    linked = connectivity(graphs)
    down = [reach(wins, i) for i in range(nodes)]
    weak = [reach(wins | wins.T, i) for i in range(nodes)]
    for g in range(len(batch)):
        inside = range(batch.node_start[g], batch.node_start[g + 1])
        groups = sorted({tuple(sorted(weak[i])) for i in inside}, key=lambda c: (-len(c), c))
        for number, group in enumerate(groups):
            assert {int(linked.component[i]) for i in group} == {number}
            blocks = sorted({tuple(sorted(j for j in group if j in down[i] and i in down[j])) for i in group},
                            key=lambda b: (-len(b), b))  # fmt: skip
            main = set(blocks[0])
            for i in group:
                assert linked.open_above[i] == (not any(i in down[j] for j in main))
                assert linked.open_below[i] == (not main & down[i])
                assert linked.compared[i] == bool(wins[i].any() or wins[:, i].any())


def test_many_items_with_many_values_do_not_overflow_the_key():
    # cells of 2^58 and 100 values of the covariate do not fit into one integer
    rng = np.random.default_rng(0)
    items = 1 << 29
    winner, loser = rng.integers(0, items, 99), rng.integers(0, items, 99)
    z = rng.normal(size=(99, 1))
    winner, loser, z = np.append(winner, winner[0]), np.append(loser, loser[0]), np.vstack([z, z[:1]])
    graphs = Graphs.from_edges(np.array([0, items]), winner, loser, np.ones(100, np.int64), None, z)
    found = zip(graphs.first.tolist(), graphs.second.tolist(), graphs.covariates[:, 0].tolist(), strict=True)
    ends = zip(winner.tolist(), loser.tolist(), z[:, 0].tolist(), strict=True)
    assert sorted(found) == sorted({(w, x, c) if w < x else (x, w, -c) for w, x, c in ends})
    assert (graphs.wins + graphs.losses).sum() == 100


def test_lists_of_too_many_pairs_are_refused_and_read_without():
    items = np.arange(30_000)
    prefs = Preferences.from_orders(None, np.zeros(30_000, int), items, items + 1)
    with pytest.raises(UsageError, match="449,985,000 pairs"):
        cc.rank(prefs, "bradley-terry", interval="none")
    assert cc.rank(prefs, "borda", interval="none").item.tolist() == items.tolist()

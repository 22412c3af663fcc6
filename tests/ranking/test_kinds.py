"""Votes of people as kinds and who made them: what is computed of these is what is computed vote by vote."""

from __future__ import annotations

import numpy as np
import pytest

import concordant as cc
from concordant.preferences.graphs import Batch, Graphs, Kinds
from concordant.ranking.edge_tests import edge_tests


def drawn(seed: int, rows: int = 900, queries: int = 1, ties: bool = True) -> cc.Preferences:
    draw = np.random.default_rng(seed)
    one = draw.integers(0, 8, rows)
    other = (one + draw.integers(1, 8, rows)) % 8
    tie = draw.random(rows) < 0.1 if ties else None
    query, who = draw.integers(0, queries, rows), draw.integers(0, 25, rows)
    return cc.Preferences.from_comparisons(
        one, other, query=query, tie=tie, cluster=who, count=draw.integers(1, 4, rows)
    )


CASES = [(1, True), (1, False), (3, True)]


@pytest.mark.parametrize(("queries", "ties"), CASES)
def test_kinds_and_who_add_up_to_the_votes(queries: int, ties: bool) -> None:
    prefs = drawn(queries, queries=queries, ties=ties)
    batch = Batch.whole(prefs)
    kinds = batch.kinds
    assert kinds is not None and kinds.who.sum() == len(prefs) and (kinds.who.sum(axis=1) == kinds.prefs.count).all()
    assert kinds.units.tolist() == [len(set(prefs.cluster[prefs.query == query])) for query in range(queries)]
    plain = Graphs.of(batch)
    for name in ("first", "second", "wins", "losses", "ties", "pair_start"):
        assert np.array_equal(getattr(batch.graphs, name), getattr(plain, name)), name


@pytest.mark.parametrize(("queries", "ties"), CASES)
def test_intervals_ranks_and_tests_are_those_of_single_votes(
    monkeypatch: pytest.MonkeyPatch, queries: int, ties: bool
) -> None:
    prefs = drawn(10 + queries, queries=queries, ties=ties)
    board, tests = cc.rank(prefs), edge_tests(Batch.whole(prefs))
    more = cc.rank(prefs, ties="davidson") if ties else board
    monkeypatch.setattr(Kinds, "of", classmethod(lambda *_: None))
    old, alone = cc.rank(prefs), edge_tests(Batch.whole(prefs))
    whole = cc.rank(prefs, ties="davidson") if ties else old
    for one, other in ((board, old), (more, whole)):
        for name in ("lower", "upper", "lack_of_fit", "score"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12)
        for name in ("rank", "rank_lower", "rank_upper", "judgments"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        assert one.notes == other.notes
    np.testing.assert_allclose(tests.above, alone.above, rtol=1e-9)
    np.testing.assert_allclose(tests.below, alone.below, rtol=1e-9)
    assert np.array_equal(tests.votes, alone.votes) and np.array_equal(tests.exact, alone.exact)


def test_some_queries_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of queries has the kinds of its own."""
    prefs = drawn(5, queries=4)
    whole, part = Batch.whole(prefs), Batch.whole(prefs, np.array([1, 3]))
    assert part.kinds is not None and whole.kinds is not None
    for graph, query in enumerate((1, 3)):
        ours, theirs = part.graphs.pairs.slices[graph], whole.graphs.pairs.slices[query]
        assert np.array_equal(part.graphs.wins[ours], whole.graphs.wins[theirs])
    assert part.kinds.units.tolist() == whole.kinds.units[[1, 3]].tolist()
    assert np.array_equal(part.item, np.concatenate([whole.item[whole.owner == query] for query in (1, 3)]))
    monkeypatch.setattr(Kinds, "of", classmethod(lambda *_: None))
    assert np.array_equal(edge_tests(part).votes, edge_tests(Batch.whole(prefs, np.array([1, 3]))).votes)


def test_what_is_not_plain_has_no_kinds() -> None:
    columns = {"winner": ["a", "b"], "loser": ["b", "a"], "cluster": [1, 2]}
    for more in ({"weight": [1.0, 2.0]}, {"covariates": {"x": [0.0, 1.0]}}, {"time": [1.0, 2.0]}, {"cluster": None}):
        assert Batch.whole(cc.Preferences.from_comparisons(**columns | more)).kinds is None
    assert Batch.whole(cc.Preferences.from_comparisons(**columns)).kinds is not None

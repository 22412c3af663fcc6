"""Items that nobody judged have no limits whatever the method, and no rank; without intervals nobody has bounds."""

import numpy as np
import pytest

import concordant as cc
from concordant.preferences.preferences import Preferences, counted_comparisons, counted_lists
from concordant.ranking.names import INTERVALS
from concordant.ranking.structures import STRUCTURES
from seeds import seed


def judged(kind, declared=("never", "nor this")):
    """Items 0 … 4 that are judged often, and others that are declared in query 0 only."""
    rng = np.random.default_rng(seed(4))
    more = ([0] * len(declared), list(declared)) if declared else None
    if kind == "comparisons":
        i, j = rng.integers(0, 5, 300), rng.integers(0, 5, 300)
        i, j = (x[i != j].astype(str).tolist() for x in (i, j))
        return counted_comparisons(i, j, query=[0] * len(i), declared=more)
    size, offsets = 5, np.arange(0, 301, 5)
    item = np.argsort(rng.random((60, size)), axis=1).ravel().astype(str).tolist()
    value = np.tile(np.arange(1.0, 6.0), 60)
    if kind in ("selections", "choices"):
        value = np.eye(size)[rng.integers(0, size, 60)].ravel()
    return counted_lists(kind, offsets, item, value, query=[0] * 60, declared=more)


def columns(board):
    return {name: board.to_arrow()[name].to_pylist() for name in board.to_arrow().column_names}


CASES = [
    (name, kind, interval)
    for name, member in STRUCTURES.items()
    for kind in ("comparisons", "orders", "selections", "choices", "ratings")
    if kind in member.kinds
    for interval in INTERVALS
    if interval in ("auto", "none", "bootstrap") or member.curvature is not None
]


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize(("name", "kind", "interval"), CASES)
def test_an_item_that_nobody_judged_has_no_limits_and_no_rank(name, kind, interval, across):
    if across and STRUCTURES[name].absolute:
        return
    more = {"replicates": 50, "level": 0.8} if interval == "bootstrap" else {}
    board = cc.rank(judged(kind), name, interval=interval, across_components=across, **more)
    rows = columns(board)
    assert sorted(rows["item"][:5]) == list("01234")
    assert rows["item"][5:] == ["never", "nor this"]
    assert all(rank >= 1 for rank in rows["rank"][:5])
    assert rows["rank"][5:] == [None, None]
    assert board.rank[5:].tolist() == [0, 0]
    assert rows["flag"][5:] == ["never compared"] * 2
    for end in ("rank_lower", "rank_upper"):
        assert rows[end][5:] == [None, None]
        assert all((value is None) == (interval == "none") for value in rows[end][:5])
        assert max(value or 0 for value in rows[end][:5]) <= 5
    if interval == "none":
        assert np.isnan(board.lower).all()
        assert np.isnan(board.upper).all()
    else:
        assert board.lower[5:].tolist() == [-np.inf] * 2
        assert board.upper[5:].tolist() == [np.inf] * 2


@pytest.mark.parametrize(("name", "kind", "interval"), CASES)
def test_others_are_ranked_as_if_it_were_not_there(name, kind, interval):
    if name in ("log-odds", "eigenvector"):
        return  # means over all items of a query: another one scales them
    more = {"replicates": 50, "level": 0.8} if interval == "bootstrap" else {}
    with_it, without = (cc.rank(judged(kind, declared), name, interval=interval, **more) for declared in (("x",), ()))
    for column in ("score", "rank", "lower", "upper"):
        np.testing.assert_allclose(getattr(with_it, column)[:5], getattr(without, column), rtol=1e-7, atol=1e-7)


def test_an_item_that_no_user_examined_is_not_judged():
    shown = Preferences.from_selections(
        ["q"] * 6, [1, 1, 2, 2, 3, 3], [1, 2] * 3, ["x", "y", "x", "y", "x", "z"], [1, 0, 1, 0, 1, 0]
    )
    board = cc.rank(shown, "cascade")
    assert columns(board)["rank"] == [1, None, None]
    assert board.lower[1:].tolist() == [-np.inf, -np.inf]
    assert board.rank_upper[0] == 1


def test_the_optimal_order_leaves_them_for_the_end():
    best = cc.optimal_order(judged("comparisons")).to_arrow()
    assert best["item"].to_pylist()[5:] == ["never", "nor this"]
    assert best["rank"].to_pylist() == [1, 2, 3, 4, 5, None, None]

"""One zero for scores, standard errors and intervals: the mean of the items limited on both sides, or a reference."""

import numpy as np
import pytest

import concordant as cc
from concordant.errors import Idle, UsageError
from concordant.preferences.preferences import counted_lists
from seeds import seed


def votes(*, beside=True, ties=0.0):
    """Five items that all won and lost; with ``beside`` one that never lost to them and one that never won."""
    rng = np.random.default_rng(seed(11))
    i, j = rng.integers(0, 5, 160), rng.integers(0, 5, 160)
    i, j = i[i != j].astype(str).tolist(), j[i != j].astype(str).tolist()
    tie = (rng.random(len(i)) < ties).tolist()
    more = [("top", "0"), ("top", "3"), ("1", "low"), ("2", "low")] if beside else []
    return cc.Preferences.from_comparisons(
        i + [a for a, _ in more], j + [b for _, b in more], tie=tie + [False] * len(more)
    )


def lists():
    rng = np.random.default_rng(seed(12))
    order = np.argsort(rng.gumbel(size=(80, 5)) - np.linspace(0, 1, 5), axis=1)
    return counted_lists(
        "orders", np.arange(0, 401, 5), order.ravel().astype(str).tolist(), np.tile(np.arange(1.0, 6), 80)
    )


def by_item(board, column):
    return dict(zip(board.to_arrow()["item"].to_pylist(), getattr(board, column).tolist(), strict=True))


@pytest.mark.parametrize("interval", ["hessian", "sandwich", "bootstrap", "none"])
def test_firm_items_have_the_mean_zero(interval):
    board = cc.rank(votes(), interval=interval)
    score = by_item(board, "score")
    assert sum(score[item] for item in "01234") == pytest.approx(0, abs=1e-9)
    assert score["top"] > max(score[item] for item in "01234")
    if interval == "bootstrap":
        assert (board.lower <= board.score + 1e-9).all()
        assert (board.score <= board.upper + 1e-9).all()


def test_what_is_unknown_of_the_others_moves_no_score():
    few, many = by_item(cc.rank(votes(), prior=1e-6), "score"), by_item(cc.rank(votes(), prior=1e-9), "score")
    alone = by_item(cc.rank(votes(beside=False), prior=1e-9), "score")
    for item in "01234":
        assert many[item] == pytest.approx(few[item], abs=1e-4)
        assert many[item] == pytest.approx(alone[item], abs=1e-4)


def twin(prefs, value, at):
    """Standard errors of s_i − s_at from the formula, loops and one inverse (prior 0, Hessian)."""
    n = len(prefs.items)
    hessian = np.zeros((n, n))
    for k in range(prefs.distinct):
        i, j = prefs.winner[k], prefs.loser[k]
        p = 1 / (1 + np.exp(value[j] - value[i]))
        step = np.zeros(n)
        step[i], step[j] = 1.0, -1.0
        hessian += prefs.count[k] * p * (1 - p) * np.outer(step, step)
    kept = np.arange(n) != at
    error = np.zeros(n)
    error[kept] = np.sqrt(np.diagonal(np.linalg.inv(hessian[np.ix_(kept, kept)])))
    return error


def test_intervals_against_an_item_are_those_of_differences():
    prefs = votes(beside=False)
    board = cc.rank(prefs, reference="2", interval="hessian", prior=0)
    score, lower, upper = (by_item(board, column) for column in ("score", "lower", "upper"))
    value = np.array([score[item] for item in prefs.items.tolist()])
    error = twin(prefs, value, prefs.items.tolist().index("2"))
    half = np.array([(upper[item] - lower[item]) / 2 for item in prefs.items.tolist()])
    assert score["2"] == lower["2"] == upper["2"] == 0
    assert half == pytest.approx(1.959964 * error, rel=1e-6)


@pytest.mark.parametrize(("structure", "prefs"), [("bradley-terry", votes()), ("plackett-luce", lists())])
@pytest.mark.parametrize("interval", ["auto", "sandwich", "bootstrap"])
def test_a_reference_is_zero_and_moves_no_difference_and_no_rank(structure, prefs, interval):
    board, other = (
        cc.rank(prefs, structure, interval=interval, reference="3"),
        cc.rank(prefs, structure, interval=interval),
    )
    score, usual = by_item(board, "score"), by_item(other, "score")
    assert score["3"] == pytest.approx(0, abs=1e-12)
    assert all(score[item] - score["0"] == pytest.approx(usual[item] - usual["0"], abs=1e-9) for item in usual)
    assert by_item(board, "rank") == by_item(other, "rank")
    if interval != "bootstrap":
        assert by_item(board, "rank_upper") == by_item(other, "rank_upper")
    assert by_item(board, "lower")["3"] == pytest.approx(0, abs=1e-9)
    assert by_item(board, "upper")["3"] == pytest.approx(0, abs=1e-9)


def test_large_graphs_measure_against_an_item_too():
    rng = np.random.default_rng(seed(2))
    i, j = rng.integers(0, 450, 20_000), rng.integers(0, 450, 20_000)
    prefs = cc.Preferences.from_comparisons(i[i != j], j[i != j])
    board = cc.rank(prefs, reference=7, interval="hessian", prior=0)
    value = np.zeros(450)
    value[board.item] = board.score
    error = twin(prefs, value, 7)
    half = np.zeros(450)
    half[board.item] = (board.upper - board.lower) / 2
    assert half == pytest.approx(1.959964 * error, rel=2e-3, abs=1e-9)


def test_a_reference_that_cannot_be_one_is_an_error():
    with pytest.raises(UsageError, match=r"no item 'tpo'.*did you mean 'top'"):
        cc.rank(votes(), reference="tpo")
    with pytest.raises(UsageError, match=r"cannot be measured against 'top'.*never lost"):
        cc.rank(votes(), reference="top")
    with pytest.raises(Idle, match=r"reference does nothing here.*borda"):
        cc.rank(votes(), "borda", reference="3")


def test_queries_without_the_reference_are_said():
    prefs = cc.Preferences.from_comparisons(
        ["a", "b", "b", "c", "c", "d"], ["b", "a", "c", "b", "d", "c"], query=[1, 1, 1, 1, 2, 2]
    )
    board = cc.rank(prefs, reference="a")
    assert by_item(board, "score")["a"] == 0
    note = next(note for note in board.notes if note.code == "no reference")
    assert note.startswith("in 1 query zero is the mean of the items that the data limit, and not a:")
    assert np.bincount(board.query, board.score)[1] == pytest.approx(0, abs=1e-9)

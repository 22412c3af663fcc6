"""The sentences of an audit: true, with numbers of the log, no stronger than the data."""

import numpy as np
import pytest

import concordant as cc
from concordant.auditing.audit import left_out
from concordant.auditing.noise import Pairs


def said(prefs, **options):
    lines = cc.audit(prefs, **options).summary
    assert 1 <= len(lines) <= 11
    return lines


def line(lines, words):
    (found,) = [one for one in lines if words in one]
    return found


def votes(query, **counts):
    """Votes of a query: ab=3 is three of a over b."""
    return [(pair[0], pair[1], query, count) for pair, count in counts.items()]


def log(rows):
    winner, loser, query, count = zip(*rows, strict=True)
    return cc.Preferences.from_comparisons(winner, loser, query, count=count)


def test_what_noise_may_have_made_is_not_told_as_a_finding():
    few = log([row for q in range(9) for row in votes(q, ab=1, bc=1, ca=1, ad=2, db=1)])
    lines = said(few)
    assert line(lines, "rank wrongly").startswith("Not shown to be more than chance, see below: with infinite")
    assert "in none of 9 queries with cycles" in line(lines, "The cycles are more than")
    assert not any("Not shown" in one for one in said(few, replicates=0))


def test_what_is_more_than_noise_is_told_plainly():
    sure = log([row for q in range(3) for row in votes(q, ab=60, bc=60, ca=50)])
    lines = said(sure)
    assert line(lines, "The cycles are").startswith("The cycles are more than chance in all 3 queries")
    assert "3 of them also when so many tests are allowed for" in line(lines, "The cycles are")
    worse = log(votes(0, ab=199, ac=500, bc=87, ca=214))  # docs/inconsistency.md
    lines = said(worse)
    assert line(lines, "rank wrongly").startswith(
        "With infinite data exactly like this, losses that would rank wrongly"
    )
    assert "worse: " in line(lines, "Fitted to half")


def test_many_tests_are_allowed_for():
    rows = [row for q in range(60) for row in votes(q, ab=1, bc=1, ca=1)] + votes("x", ab=7, bc=7, ca=7)
    names = [str(query) for _, _, query, _ in rows]
    prefs = cc.Preferences.from_comparisons(
        *zip(*[r[:2] for r in rows], strict=True), names, count=[r[3] for r in rows]
    )
    found = cc.audit(prefs)
    assert found.queries["cycles_are"].to_pylist().count("cyclic") == 1
    assert "in 1 of 61 queries with cycles (2%), 0 of them also" in line(found.summary, "The cycles are more than")


def test_one_wrong_query_of_many_is_not_nought_percent():
    rows = [row for q in range(300) for row in votes(q, ab=2, bc=2)]
    rows += votes(300, ab=25, bc=1, ac=50, ca=24)
    lines = said(log(rows), replicates=0)
    assert "ranknet (pairwise logistic) <1% (3e-05)" in line(lines, "rank wrongly")


def test_how_the_best_order_was_found_and_the_gap():
    lines = said(log(votes(0, ab=2, bc=2, ca=1)), replicates=0)
    assert line(lines, "best order").endswith("proven best (dynamic programming).")
    many = log(votes(0, ab=2, bc=2, ca=1) + votes(1, ab=1))
    assert "proven best in all 2 queries (dynamic programming 1, topological 1)." in line(
        said(many, replicates=0), "best"
    )
    rng = np.random.default_rng(0)
    first, second = np.triu_indices(40, 1)
    swap = rng.random(len(first)) < 0.5
    hard = cc.Preferences.from_comparisons(np.where(swap, first, second), np.where(swap, second, first))
    found = cc.audit(hard, replicates=0, surrogates=["linear"])
    (row,) = found.queries.to_pylist()
    assert not row["optimal_exact"]
    gap = row["optimal_loss"] - row["optimal_lower"]
    assert f"not proven best: the least may be {gap:.4f} lower (local search)" in line(found.summary, "best order")


def test_nothing_preferred():
    ties = cc.Preferences.from_comparisons(["a", "a", "b"], ["b", "b", "a"], count=[1, 1, 2])
    assert said(ties)[1] == "No item is preferred to another, on balance: every order is as good as any other."


def test_rounding_is_no_error_of_a_loss():
    """ERR of the best order of a point law is the best ERR, whatever the last bit says (Lemma 1)."""
    rng = np.random.default_rng(1)
    user = np.repeat(np.arange(150), 60)
    item, rating = np.tile(np.arange(60), 150), rng.integers(1, 6, 9000)
    prefs = cc.Preferences.from_ratings(user, item, rating)
    found = cc.audit(prefs, surrogates=["err-pairwise"], replicates=0)
    assert found.surrogates["consistent"].to_pylist() == [True] * 150


def test_notes_of_parts_are_one(monkeypatch):
    monkeypatch.setattr("concordant.auditing.audit.WORK", 2)
    found = cc.audit(log([row for q in range(12) for row in votes(q, ab=1)]))
    (note,) = [note for note in found.notes if note.code == "unlimited at the boundary"]
    assert note.numbers == {"queries": 12, "of": 12} and note.startswith("12 of 12 queries have")


def test_what_is_left_out_is_said():
    found = cc.audit(log(votes(0, ab=2, bc=1)), surrogates=["ranksvm", "linear"], replicates=0)
    place = found.surrogates.column_names.index("status")
    large = found.surrogates.set_column(place, "status", [["left out: too large", "attained"]])
    (note,) = left_out(found.queries, large)
    assert note == "the query has too many items and preferences: nothing is said of ranksvm (1)"
    assert left_out(found.queries, found.surrogates) == []


@pytest.mark.parametrize("count", [1, 3])
def test_a_single_judgment_is_not_resampled_in_vain(monkeypatch, count):
    """All replicates of one judgment are alike; the shares are those of many."""
    drawn, as_it_is = [], Pairs.drawn
    monkeypatch.setattr(
        Pairs, "drawn", lambda pairs, atoms, times: drawn.append(times) or as_it_is(pairs, atoms, times)
    )
    judges = np.repeat(range(count), 3)
    lists = cc.Preferences.from_orders([0] * 3 * count, judges, list("abc") * count, [1, 2, 3] * count)
    (row,) = cc.audit(lists, replicates=50).queries.to_pylist()
    assert (row["acyclic_share"], row["winner_share"], row["cycle_expected"]) == (1.0, 1.0, 0.0)
    assert drawn == [1]


def test_a_surrogate_left_out_is_not_held_against_it(monkeypatch):
    """It has no minimiser; the order of its empty scores would be a random one."""
    monkeypatch.setattr("concordant.losses.hinge.LARGEST", 1.0)
    found = cc.audit(log(votes(0, ab=30, bc=30, ca=20)), surrogates=["ranksvm", "linear"])
    assert found.surrogates["status"].to_pylist()[0] == "left out: too large"
    held = {row["surrogate"]: row for row in found.held_out.to_pylist()}
    assert np.isnan(held["ranksvm"]["mean"])
    assert held["ranksvm"]["queries"] == 0
    assert held["linear"]["queries"] == 1
    assert not any("ranksvm" in one for one in found.summary if one.startswith("Fitted to half"))
    assert any("of ranksvm" in note for note in found.notes if note.code == "no minimiser")


@pytest.mark.parametrize(
    ("times", "says"),
    [
        (
            3,
            "1 more than need be; on judgments held out that is no more than chance: use the default of fit.",
        ),
        (
            100,
            "1 more than need be; on judgments held out that is more than chance. With enough judgments the gate",
        ),
    ],
)
def test_the_verdict_is_one_sentence(times, says):
    """Theorem 3's votes: 300 of them have three judgments that the pairwise loss contradicts for nothing."""
    found = said(log(votes("q", ab=25 * times, bc=times, ac=50 * times, ca=24 * times)))
    assert says in found[1] and found[1].startswith(
        "Of a hundred judgments, scores learnt from pairs in the usual way (logistic loss)"
    )
    untried = said(log(votes("q", ab=25, bc=1, ac=50, ca=24)), replicates=0)
    assert "whether that is more than chance was not tried" in untried[1]


def test_the_verdict_where_nothing_is_wrong():
    assert said(log(votes("q", ab=30, bc=30, ac=30)))[1].endswith("as well as any: use the default of fit.")
    assert not any("usual" in one for one in said(log(votes("q", ab=1, ba=1))))

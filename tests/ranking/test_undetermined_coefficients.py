"""Coefficients that the data do not determine are named, and have no interval of the prior's making."""

import numpy as np
import pytest

import concordant as cc
from concordant.preferences.graphs import Batch, Graphs
from concordant.ranking.scores import undetermined


def matches(draw, items=6, games=300):
    rng = np.random.default_rng(draw)
    first = rng.integers(0, items, games)
    second = (first + rng.integers(1, items, games)) % items
    won = rng.random(games) < 1 / (1 + np.exp(-(first - second) / items))
    return rng, np.where(won, first, second), np.where(won, second, first), np.where(won, 1.0, -1.0)


def test_a_property_of_the_items_is_named_and_has_no_interval():
    _, winner, loser, sign = matches(0)
    age = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 0.0])
    votes = cc.Preferences.from_comparisons(winner, loser, covariates={"age": age[winner] - age[loser], "home": sign})
    board = cc.rank(votes)
    (note,) = (note for note in board.notes if note.code == "undetermined coefficient")
    assert note.startswith("the coefficient of 'age' is not determined by the data: ")
    assert board.coefficients["s.e. of age"][0] == np.inf and 0 < board.coefficients["s.e. of home"][0] < 1
    with pytest.raises(cc.CannotRank, match="'age'"):
        cc.rank(votes, prior=0.0)


def test_teams_that_play_at_home_always_have_no_home_advantage():
    """Half of the teams are always at home: winning there is winning by strength."""
    _, winner, loser, _ = matches(1)
    keep = (winner < 3) != (loser < 3)
    home = np.where(winner < 3, 1.0, -1.0)
    votes = cc.Preferences.from_comparisons(winner[keep], loser[keep], covariates={"home": home[keep]})
    assert any("'home' is not determined" in note for note in cc.rank(votes).notes)


def test_a_combination_is_found_by_each_of_its_parts_and_per_query():
    rng, winner, loser, sign = matches(2, games=600)
    query = np.repeat(["a", "b"], 300)
    height = rng.normal(size=6)
    noise = rng.normal(size=600)
    mixed = np.where(query == "a", height[winner] - height[loser] + noise, rng.normal(size=600))
    votes = cc.Preferences.from_comparisons(
        winner, loser, query, covariates={"mixed": mixed, "noise": noise, "home": sign}
    )
    batch = Batch.whole(votes)
    found = undetermined(Graphs.of(batch, covariates=True), 3)
    assert votes.covariate_names == ("home", "mixed", "noise")
    assert found.tolist() == [[False, True, True], [False, False, False]]
    board = cc.rank(votes)
    assert [note.numbers["name"] for note in board.notes if note.code == "undetermined coefficient"] == [
        "mixed",
        "noise",
    ]
    assert np.isinf(board.coefficients["s.e. of mixed"]).tolist() == [True, False]

"""ICML Table 1: what its features may know, the closed form, and the order of the losses on MovieLens-100K."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from concordant.apps.reproduction import table1
from concordant.apps.reproduction import table1 as movielens
from concordant.apps.reproduction.outcome import Setting
from concordant.apps.reproduction.table1 import (
    GENRES,
    NU,
    Pairs,
    Ratings,
    linear_weights,
    movie_features,
    read_movielens,
    sample_pairs,
)
from concordant.errors import InputError


@pytest.fixture(name="few")
def _few() -> Ratings:
    """60 users and 40 movies with tastes, a third of the table rated."""
    rng = np.random.default_rng(3)
    user, movie = np.nonzero(rng.random((60, 40)) < 0.35)
    level = rng.normal(size=40)[movie] + rng.normal(size=60)[user] + rng.normal(size=len(user))
    rating = np.clip(np.round(3 + level), 1, 5)
    genre = (rng.random((40, GENRES)) < 0.15).astype(float)
    return Ratings(user, movie, rating, rng.uniform(0, 50, 40), genre)


def test_features_do_not_know_held_out_ratings(few: Ratings) -> None:
    known = np.random.default_rng(0).random(len(few.user)) < 0.6
    other = Ratings(few.user, few.movie, np.where(known, few.rating, 6 - few.rating), few.age, few.genre)
    np.testing.assert_array_equal(movie_features(few, known), movie_features(other, known))


def test_a_known_rating_is_no_part_of_what_others_said(few: Ratings) -> None:
    """Change one known rating: of its own row only the movie's mean (the paper's text) may move by itself."""
    known = np.ones(len(few.user), bool)
    held_out = known.copy()
    held_out[100] = False
    X, Y = (_unscaled(few, mask) for mask in (known, held_out))
    assert X[100, GENRES + 2] != pytest.approx(Y[100, GENRES + 2])
    np.testing.assert_allclose(X[100, : GENRES + 2], Y[100, : GENRES + 2], atol=2e-3)  # the mean of all moves a little


def _unscaled(ratings: Ratings, known: np.ndarray) -> np.ndarray:
    """The columns before they are standardised."""
    table = movielens._Table.of(ratings, known)
    alike, unlike = movielens._neighbours(ratings, table)
    columns = [ratings.age[ratings.movie], ratings.genre[ratings.movie], movielens._taste(ratings, table)]
    return np.column_stack([*columns, table.movie_mean[ratings.movie], alike, unlike])


def test_neighbours_by_the_formula(few: Ratings) -> None:
    """Weighted deviations of the other raters, correlations without the movie itself, written out for some rows."""
    known = np.random.default_rng(1).random(len(few.user)) < 0.7
    table = movielens._Table.of(few, known)
    alike, unlike = movielens._neighbours(few, table)
    for row in range(0, len(few.user), 37):
        u, i = few.user[row], few.movie[row]
        weights, said = [], []
        for v in range(few.users):
            if v == u or not table.known[v, i]:
                continue
            both = [j for j in range(40) if j != i and table.known[u, j] and table.known[v, j]]
            a = np.array([table.value[u, j] - table.user_mean[u] for j in both])
            b = np.array([table.value[v, j] - table.user_mean[v] for j in both])
            size = np.sqrt((a @ a) * (b @ b)) if both else 0.0
            weights.append(a @ b / size * len(both) / (len(both) + 20.0) if size > 1e-6 else 0.0)
            said.append(table.value[v, i] - table.user_mean[v])
        up, down = (np.maximum(sign * np.array(weights), 0) for sign in (1, -1))
        assert alike[row] == pytest.approx(up @ np.array(said) / (up.sum() + 0.5), abs=1e-9)
        assert unlike[row] == pytest.approx(down @ np.array(said) / (down.sum() + 0.5), abs=1e-9)


def test_pairs_are_of_one_user_and_weighted_by_the_difference(few: Ratings) -> None:
    chosen = few.movie % 2 == 0
    pairs = sample_pairs(few, chosen, 5_000, np.random.default_rng(0))
    assert (few.user[pairs.better] == few.user[pairs.worse]).all()
    assert chosen[pairs.better].all() and chosen[pairs.worse].all()
    np.testing.assert_array_equal(pairs.weight, few.rating[pairs.better] - few.rating[pairs.worse])
    assert (pairs.weight > 0).all() and len(pairs.weight) == 5_000
    drawn = np.bincount(few.user[pairs.better], minlength=60)  # users alike, however much they rated
    assert (drawn > 0).sum() > 50
    assert drawn[drawn > 0].min() > 0.25 * drawn.max()


def test_closed_form_is_the_minimum(few: Ratings) -> None:
    """Its gradient, of Σ a_ij w'(x_j − x_i) + ν Σ (w'x)² + λ‖w‖², by finite differences."""
    X = movie_features(few, np.ones(len(few.user), bool))
    pairs = sample_pairs(few, np.ones(len(few.user), bool), 400, np.random.default_rng(0))
    w = linear_weights(X, pairs, 0.7)

    def objective(w: np.ndarray) -> float:
        score = X @ w
        items = np.concatenate((score[pairs.better], score[pairs.worse]))
        return float(pairs.weight @ (score[pairs.worse] - score[pairs.better]) + NU * items @ items + 0.7 * w @ w)

    step = 1e-4 * np.eye(len(w))
    slope = [(objective(w + e) - objective(w - e)) / 2e-4 for e in step]
    assert np.abs(slope).max() < 1e-6 * np.abs(w).max() * 400


def test_loss_charges_the_weight_of_wrong_pairs() -> None:
    pairs = Pairs(np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([1.0, 2.0, 4.0]))
    assert pairs.loss(np.array([3.0, 2.0, 2.0])) == pytest.approx((0 + 0.5 * 2 + 4) / 3)


def test_own_rating_left_out_of_the_mean(few: Ratings) -> None:
    """The mean of the other known ratings of the movie and three at the mean, by a loop; one column is another."""
    known = np.random.default_rng(2).random(len(few.user)) < 0.6
    table = movielens._Table.of(few, known)
    found = movielens._others_mean(few, table)
    for row in range(0, len(few.user), 23):
        others = known & (few.movie == few.movie[row]) & (few.user != few.user[row])
        total = few.rating[others].sum() + 3 * table.mean
        assert found[row] == pytest.approx(total / (others.sum() + 3))
    one, two = (movie_features(few, known, own=own) for own in (True, False))
    assert np.flatnonzero((one != two).any(axis=0)).tolist() == [21]


def test_means_over_pairs_are_sums_with_another_ridge(few: Ratings) -> None:
    """(1/n) Σ a φ + λ‖w‖² has the minimiser of Σ a φ + nλ‖w‖²: no other weights do better on the mean."""
    X = movie_features(few, np.ones(len(few.user), bool), own=False)
    pairs = sample_pairs(few, np.ones(len(few.user), bool), 300, np.random.default_rng(0))

    def mean(w: np.ndarray) -> float:
        gap = (X[pairs.better] - X[pairs.worse]) @ w
        return float(np.mean(pairs.weight * np.log1p(np.exp(-gap))) + 0.01 * w @ w)

    w = movielens._edge_fit("logistic")(X, pairs, 300 * 0.01)
    step = 1e-3 * np.eye(len(w))
    assert all(mean(w) <= min(mean(w + e), mean(w - e)) for e in step)


def test_linear_wins_as_printed_and_not_on_means(
    shared_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared_data("ml-100k")
    monkeypatch.setattr(table1, "SIZES", (20_000,))
    monkeypatch.setattr(table1, "TEST", 20_000)
    monkeypatch.setattr(table1, "COMMON", (1.0, 100.0))
    monkeypatch.setattr(table1, "OF_MEANS", (1e-4, 1e-3, 1e-1))
    outcome = table1.run(Setting(folder, quick=True))
    printed, left_out, means = (
        {loss: float(row[loss].split()[0]) for loss in table1.LOSSES} for row in outcome.summary
    )
    assert printed["linear"] < min(printed["hinge"], printed["logistic"])
    assert means["logistic"] < min(printed["logistic"], left_out["logistic"], means["linear"] + 0.003)
    for mean in (printed, left_out, means):
        for loss, value in mean.items():
            assert 0.4 < value <= table1.PAPER[loss][0][0]
    assert "lowest on average at 1 of 1" in outcome.agreement[0]
    runs = outcome.tables["runs"]
    most = max(row["ridge"] for row in runs if row["setting"] == "own rating left out")
    assert most <= 100 < max(row["ridge"] for row in outcome.tables["curve"]) * 20_000
    assert len(outcome.tables["curve"]) == 3 * 3 + 2


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "u.data").write_text("1\t1\t5\t0\n")
    (tmp_path / "u.item").write_text("1|A movie\n")
    with pytest.raises(InputError, match="line 1 does not have 24 fields"):
        read_movielens(tmp_path)
    (tmp_path / "u.item").write_text("|".join(["1", "A", "01-Jan-1990", "", "", *["0"] * 19]) + "\n")
    (tmp_path / "u.data").write_text("1\t2\t5\t0\n")
    with pytest.raises(InputError, match="movies to 1"):
        read_movielens(tmp_path)

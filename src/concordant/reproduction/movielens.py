"""MovieLens-100K: ratings, and the features d(x_i, u) of ICML §4 from the ratings that may be used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from concordant.disk import check_regular
from concordant.errors import InputError

__all__ = ["Ratings", "movie_features", "read_movielens"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
COLLECTED = 1998
"""Year in which the set was collected: ages count back from it."""
GENRES = 19
BEHIND_MEAN = 1.0
"""Ratings that stand behind a user's mean, at the mean of what is above it."""
BEHIND_MOVIE = 3.0
BEHIND_SIMILARITY = 20.0
"""Movies rated by both at which a correlation counts half."""
BEHIND_NEIGHBOURS = 0.5


@dataclass(frozen=True, eq=False)
class Ratings:
    """One entry for each rating: codes of user and movie from 0, the rating; and what is known of the movies."""

    user: Ints
    movie: Ints
    rating: Floats
    age: Floats
    """Of each movie, in years."""
    genre: Floats
    """Shape (movies, 19), 0 or 1."""

    @property
    def users(self) -> int:
        return int(self.user.max()) + 1

    @cached_property
    def by_movie(self) -> list[Ints]:
        """The ratings of each movie."""
        order = np.argsort(self.movie, kind="stable")
        return np.split(order, np.searchsorted(self.movie[order], np.arange(1, len(self.age))))


def read_movielens(folder: Path) -> Ratings:
    """Read u.data and u.item. Errors (InputError): lines that are not as the set's README says."""
    for name in ("u.data", "u.item"):
        check_regular(folder / name)
    try:
        table = np.loadtxt(folder / "u.data", dtype=np.int64, ndmin=2)
        user, movie, rating = table[:, 0] - 1, table[:, 1] - 1, table[:, 2].astype(np.float64)
    except (ValueError, IndexError) as error:
        raise InputError(f"{folder / 'u.data'}: not lines of user, movie, rating, time: {error}") from None
    lines = (folder / "u.item").read_text(encoding="latin-1").splitlines()
    fields = [line.split("|") for line in lines if line]
    if any(len(parts) != 5 + GENRES for parts in fields):
        wrong = next(number for number, parts in enumerate(fields, 1) if len(parts) != 5 + GENRES)
        raise InputError(f"{folder / 'u.item'}: line {wrong} does not have {5 + GENRES} fields between '|'")
    if len(table) == 0 or min(user.min(), movie.min()) < 0 or movie.max() >= len(fields):
        raise InputError(f"{folder / 'u.data'}: users and movies count from 1, movies to {len(fields):,} (u.item)")
    year = np.array([float(parts[2][-4:]) if parts[2] else np.nan for parts in fields])
    age = COLLECTED - np.where(np.isnan(year), np.nanmean(year), year)
    genre = np.array([[float(flag) for flag in parts[5:]] for parts in fields])
    return Ratings(user, movie, rating, age, genre)


def movie_features(ratings: Ratings, known: Mask) -> Floats:
    """Return d(x_i, u) for every rated (user, movie) from the ratings of the mask ``known``; shape (ratings, 24).

    Columns: age of the movie; its genres; the user's mean rating of other movies of each of its genres, averaged over
    them; the movie's mean rating; the mean of the ratings of the movie, as deviations from their users' means, by users
    similar to u and by users dissimilar to u, weighted by the size of the correlation of the two users' ratings of
    other movies. "Other" is meant: where the rating itself is known, it is left out of these three (of the movie's mean
    it is a part, as the paper's text has it). Columns are standardised over the known ratings.
    """
    table = _Table.of(ratings, known)
    alike, unlike = _neighbours(ratings, table)
    X = np.column_stack(
        [
            ratings.age[ratings.movie],
            ratings.genre[ratings.movie],
            _taste(ratings, table),
            table.movie_mean[ratings.movie],
            alike,
            unlike,
        ]
    )
    spread = X[known].std(axis=0)
    return np.asarray((X - X[known].mean(axis=0)) / np.where(spread > 0, spread, 1.0))


@dataclass(frozen=True, eq=False)
class _Table:
    """The known ratings as matrices of users by movies."""

    value: Floats
    """0 where not known."""
    known: Floats
    mean: float
    user_mean: Floats
    movie_mean: Floats

    @classmethod
    def of(cls, ratings: Ratings, known: Mask) -> _Table:
        value = np.zeros((ratings.users, len(ratings.age)))
        there = np.zeros_like(value)
        value[ratings.user[known], ratings.movie[known]] = ratings.rating[known]
        there[ratings.user[known], ratings.movie[known]] = 1.0
        mean = float(ratings.rating[known].mean())
        user_mean = (value.sum(axis=1) + BEHIND_MEAN * mean) / (there.sum(axis=1) + BEHIND_MEAN)
        movie_mean = (value.sum(axis=0) + BEHIND_MOVIE * mean) / (there.sum(axis=0) + BEHIND_MOVIE)
        return cls(value, there, mean, user_mean, movie_mean)


def _taste(ratings: Ratings, table: _Table) -> Floats:
    """The user's mean rating of other movies of each genre of the movie, averaged over its genres."""
    user, movie = ratings.user, ratings.movie
    own, held = table.value[user, movie], table.known[user, movie]
    genre = ratings.genre[movie]
    others = table.known.sum(axis=1)[user] - held
    mean = (table.value.sum(axis=1)[user] - own + BEHIND_MEAN * table.mean) / (others + BEHIND_MEAN)
    total = (table.value @ ratings.genre)[user] - own[:, None] * genre + BEHIND_MEAN * mean[:, None]
    number = (table.known @ ratings.genre)[user] - held[:, None] * genre + BEHIND_MEAN
    return np.asarray((total / number * genre).sum(axis=1) / np.maximum(genre.sum(axis=1), 1.0))


def _neighbours(ratings: Ratings, table: _Table) -> tuple[Floats, Floats]:
    """What users similar and dissimilar to u said of the movie; 0 where nobody did."""
    deviation = np.where(table.known > 0, table.value - table.user_mean[:, None], 0.0)
    product = deviation @ deviation.T
    square = deviation**2 @ table.known.T  # Σ of u's squares over movies that both rated
    both = table.known @ table.known.T
    alike, unlike = np.zeros(len(ratings.user)), np.zeros(len(ratings.user))
    for movie, rows in enumerate(ratings.by_movie):
        raters = np.flatnonzero(table.known[:, movie])
        if len(raters) == 0 or len(rows) == 0:
            continue
        user = ratings.user[rows]
        held, own, theirs = table.known[user, movie], deviation[user, movie], deviation[raters, movie]
        cell = np.ix_(user, raters)
        joint = product[cell] - np.outer(own, theirs)  # without this movie
        norm = (square[cell] - (own**2)[:, None]) * (square.T[cell] - np.outer(held, theirs**2))
        number = both[cell] - held[:, None]
        counts = (number > 0) & (norm > 1e-12) & (user[:, None] != raters)
        weight = np.where(
            counts, joint / np.sqrt(np.where(counts, norm, 1.0)) * number / (number + BEHIND_SIMILARITY), 0.0
        )
        for sign, out in ((1.0, alike), (-1.0, unlike)):
            part = np.maximum(sign * weight, 0.0)
            out[rows] = part @ theirs / (part.sum(axis=1) + BEHIND_NEIGHBOURS)
    return alike, unlike

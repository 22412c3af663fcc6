"""ICML Table 1: hinge, logistic and the value-regularised linear loss on pairs of movies of MovieLens-100K."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.apps.reproduction.outcome import Efforts, Outcome, Row, Setting, find
from concordant.errors import InputError
from concordant.io.log.disk import check_regular
from concordant.learning.solvers.edges import fit_edges
from concordant.losses.objective import Objective, WeightedEdges
from concordant.losses.pair_losses import pair_loss, value_penalty

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
        sorter = np.argsort(self.movie, kind="stable")
        return np.split(sorter, np.searchsorted(self.movie[sorter], np.arange(1, len(self.age))))


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


def movie_features(ratings: Ratings, known: Mask, *, own: bool = True) -> Floats:
    """Return d(x_i, u) for every rated (user, movie) from the ratings of the mask ``known``; shape (ratings, 24).

    Columns: age of the movie; its genres; the user's mean rating of other movies of each of its genres, averaged over
    them; the movie's mean rating; the mean of the ratings of the movie, as deviations from their users' means, by users
    similar to u and by users dissimilar to u, weighted by the size of the correlation of the two users' ratings of
    other movies. "Other" is meant: where the rating itself is known, it is left out of these three. Of the movie's mean
    it is a part, as the paper's text has it, unless ``own`` is False. Columns are standardised over the known ratings.
    """
    table = _Table.of(ratings, known)
    alike, unlike = _neighbours(ratings, table)
    X = np.column_stack(
        [
            ratings.age[ratings.movie],
            ratings.genre[ratings.movie],
            _taste(ratings, table),
            table.movie_mean[ratings.movie] if own else _others_mean(ratings, table),
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


def _others_mean(ratings: Ratings, table: _Table) -> Floats:
    """The mean of the other users' ratings of the movie."""
    user, movie = ratings.user, ratings.movie
    total = table.value.sum(axis=0)[movie] - table.value[user, movie]
    number = table.known.sum(axis=0)[movie] - table.known[user, movie]
    return np.asarray((total + BEHIND_MOVIE * table.mean) / (number + BEHIND_MOVIE))


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


NU = 1e-4
SIZES = (20_000, 40_000, 80_000, 120_000, 160_000)
TEST = 40_000
FOLDS = 5
RUNS = 15
LOSSES = ("hinge", "logistic", "linear")
COMMON = (0.01, 0.1, 1.0, 10.0, 100.0)
"""Ridges λ on the objectives as the paper prints them, sums over pairs; the same for all three."""
OF_MEANS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Ridges λ on means over pairs."""
SMALLER = (1e-7, 1e-6)
"""Of the linear loss, too: its curvature is ν times that of the features, and the others are flat there."""
PRINTED, LEFT_OUT, MEANS = "as printed", "own rating left out", "and means over pairs"
SETTINGS = (PRINTED, LEFT_OUT, MEANS)
"""The movie's mean with the user's own rating and sums over pairs; without it; and means over pairs, all OF_MEANS. The
second takes those of them that are at most the largest of COMMON times 1/n, the number of pairs."""
TOLERANCE = 1e-4
PAPER = {
    "hinge": ((0.478, 0.008), (0.477, 0.008), (0.480, 0.007), (0.477, 0.008), (0.474, 0.007)),
    "logistic": ((0.479, 0.010), (0.478, 0.010), (0.478, 0.009), (0.477, 0.009), (0.474, 0.007)),
    "linear": ((0.465, 0.006), (0.464, 0.006), (0.462, 0.005), (0.463, 0.006), (0.461, 0.004)),
}
"""Mean and standard error for each number of pairs."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows of the preferred and the other movie, and a_ij, the difference of the ratings."""

    better: Ints
    worse: Ints
    weight: Floats

    def first(self, n: int) -> Pairs:
        return Pairs(self.better[:n], self.worse[:n], self.weight[:n])

    def loss(self, score: Floats) -> float:
        """Generalised pairwise loss (7), mean over the pairs; a tie in score is half wrong."""
        gap = score[self.better] - score[self.worse]
        return float(np.mean(self.weight * ((gap < 0) + 0.5 * (gap == 0))))


def run(setting: Setting) -> Outcome:
    """Run the experiment: losses on 40,000 test pairs for five numbers of training pairs, 15 runs."""
    ratings = read_movielens(find("ml-100k", setting.data))
    runs = 2 if setting.quick else RUNS
    sizes = SIZES[:2] if setting.quick else SIZES
    rows: list[Row] = []
    fits = [(own, n, loss) for own in (True, False) for n in sizes for loss in LOSSES]
    told = Efforts(setting, runs * sum(_effort(*each) for each in fits))
    for number in range(runs):
        rows += _one_run(ratings, number, sizes, setting.seed, told)
    chosen = [row for row in rows if row["chosen"]]
    summary, curves = _summary(chosen, sizes), _curves(rows, sizes)
    return Outcome(
        "table1",
        "ICML Table 1: test loss on MovieLens-100K",
        summary,
        [*_agreement(chosen, sizes), *_flatness(curves)],
        lambda figure: _draw(figure, summary, curves, sizes),
        {"runs": chosen, "curve": curves},
        shown={"Test loss against λ on means over pairs, own rating left out:": _listed_curves(curves)},
        size=(9.5, 6.5),
        notes=(
            f"{runs} runs, {len(ratings.rating):,} ratings, {TEST:,} test pairs; mean generalised pairwise loss "
            f"(standard error). Ridge λ chosen on the validation fold for each loss. {PRINTED}: the movie's mean has "
            f"the user's own rating in it, objectives are sums over pairs, λ is one of {_listed(COMMON)}. {LEFT_OUT}: "
            f"λ still at most {COMMON[-1]:g} on the sums. {MEANS}: λ on means over pairs, one of {_listed(OF_MEANS)}, "
            f"for the linear loss also {_listed(SMALLER)}.",
        ),
    )


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def sample_pairs(ratings: Ratings, chosen: NDArray[np.bool_], n: int, rng: np.random.Generator) -> Pairs:
    """Draw n pairs of chosen movies that one user rated differently: a user at random, then a pair of hers.

    A pair rated alike has a_ij = 0, no edge; it is drawn again.
    """
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(ratings.user[rows], kind="stable")]
    _, begin, count = np.unique(ratings.user[rows], return_index=True, return_counts=True)
    drawn: list[tuple[Ints, Ints]] = []
    have = 0
    while have < n:
        whose = rng.integers(len(begin), size=2 * n)
        one, two = (rows[begin[whose] + (rng.random(2 * n) * count[whose]).astype(np.int64)] for _ in range(2))
        gap = ratings.rating[one] - ratings.rating[two]
        keep = gap != 0
        drawn.append((np.where(gap > 0, one, two)[keep], np.where(gap > 0, two, one)[keep]))
        have += int(keep.sum())
    better, worse = (np.concatenate([pair[side] for pair in drawn])[:n] for side in (0, 1))
    return Pairs(better, worse, ratings.rating[better] - ratings.rating[worse])


def linear_weights(X: Floats, pairs: Pairs, ridge: float) -> Floats:
    """w = ½ (ν XᵀX + λI)⁻¹ Σ a_ij (x_i − x_j), the rows of X those of the items of the pairs (ICML (14))."""
    items = X[np.concatenate((pairs.better, pairs.worse))]
    moment = (X[pairs.better] - X[pairs.worse]).T @ pairs.weight
    return np.asarray(0.5 * np.linalg.solve(NU * items.T @ items + ridge * np.eye(X.shape[1]), moment))


def _edge_weights(X: Floats, pairs: Pairs, phi: str, ridge: float) -> Floats:
    """argmin Σ a_ij φ(w'(x_i − x_j)) + λ‖w‖²."""
    nodes, place = np.unique(np.concatenate((pairs.better, pairs.worse)), return_inverse=True)
    n = len(pairs.weight)
    edges = WeightedEdges.of(np.array([0, len(nodes)]), place[:n], place[n:], pairs.weight)
    objective = Objective(edges, pair_loss(phi), value_penalty("square"))
    return fit_edges(X, objective, ridge=2 * ridge, rows=nodes, tolerance=TOLERANCE).theta


def _effort(own: bool, n: int, loss: str) -> float:
    """Fits of n pairs take as long as they are many and large; those of the linear loss are one system each."""
    fits = len(COMMON if own else _of_means(loss))
    features = 160_000 if (n, loss) == (SIZES[0], LOSSES[0]) else 0  # made before the first fit
    return fits * (n if loss != "linear" else 0.1 * n) + features


def _one_run(ratings: Ratings, number: int, sizes: Sequence[int], seed: int, told: Efforts) -> Iterator[Row]:
    """One division into folds: test on fold t, validate on the next, train on the other three."""
    division, test = divmod(number, FOLDS)
    fold = np.random.default_rng([seed, division]).permutation(len(ratings.rating)) % FOLDS
    train = (fold != test) & (fold != (test + 1) % FOLDS)
    rng = np.random.default_rng([seed, division, test])
    tested = sample_pairs(ratings, fold == test, TEST, rng)
    validated = sample_pairs(ratings, fold == (test + 1) % FOLDS, TEST, rng)
    trained = sample_pairs(ratings, train, max(sizes), rng)
    for own in (True, False):
        X = movie_features(ratings, train, own=own)
        for n in sizes:
            for loss in LOSSES:
                of_means = _of_means(loss)
                ridges = COMMON if own else tuple(n * ridge for ridge in of_means)
                pairs = trained.first(n)
                fit = linear_weights if loss == "linear" else _edge_fit(loss)
                scores = [X @ fit(X, pairs, ridge) for ridge in ridges]
                held_out = [validated.loss(score) for score in scores]
                losses = [tested.loss(score) for score in scores]
                told.done(_effort(own, n, loss))
                for name in (PRINTED,) if own else (LEFT_OUT, MEANS):
                    most = np.inf if name == MEANS else COMMON[-1] * (1 + 1e-9)
                    able = sum(ridge <= most for ridge in ridges)
                    best = int(np.argmin(held_out[:able]))
                    for place in range(able) if name == MEANS else (best,):
                        yield {
                            "setting": name,
                            "run": number + 1,
                            "pairs": n,
                            "loss": loss,
                            "ridge": of_means[place] if name == MEANS else ridges[place],
                            "chosen": place == best,
                            "test loss": losses[place],
                        }


def _of_means(loss: str) -> tuple[float, ...]:
    return (*SMALLER, *OF_MEANS) if loss == "linear" else OF_MEANS


def _edge_fit(loss: str) -> Callable[[Floats, Pairs, float], Floats]:
    return lambda X, pairs, ridge: _edge_weights(X, pairs, loss, ridge)


def _losses(rows: Sequence[Row], setting: str, n: int) -> Floats:
    """Test losses, shape (losses, runs)."""
    return np.array(
        [
            [row["test loss"] for row in rows if (row["setting"], row["pairs"], row["loss"]) == (setting, n, loss)]
            for loss in LOSSES
        ]
    )


def _lowest(table: Floats) -> int:
    """Runs in which the linear loss has the lowest test loss."""
    return int((table[2] < table[:2].min(axis=0)).sum())


def _summary(rows: Sequence[Row], sizes: Sequence[int]) -> list[Row]:
    out: list[Row] = []
    for setting in SETTINGS:
        for place, n in enumerate(sizes):
            table = _losses(rows, setting, n)
            line: dict[str, Any] = {"setting": setting, "pairs": n}
            for loss, values in zip(LOSSES, table, strict=True):
                error = values.std(ddof=1) / np.sqrt(len(values))
                line[loss] = f"{values.mean():.3f} ({error:.3f})"
                line[f"{loss}, paper"] = "{:.3f} ({:.3f})".format(*PAPER[loss][place])
            line["linear lowest"] = _lowest(table)
            out.append(line)
    return out


def _agreement(rows: Sequence[Row], sizes: Sequence[int]) -> list[str]:
    said = []
    for setting in SETTINGS:
        tables = [_losses(rows, setting, n) for n in sizes]
        means = np.array([table.mean(axis=1) for table in tables])
        lowest = int((means[:, 2] < means[:, :2].min(axis=1)).sum())
        apart = means[:, :2].min(axis=1) - means[:, 2]
        wins = [_lowest(table) for table in tables]
        paper = np.array([[PAPER[loss][place][0] for loss in LOSSES] for place in range(len(sizes))])
        said.append(
            f"{setting[0].upper()}{setting[1:]}: the linear loss is lowest on average at {lowest} of {len(sizes)} "
            f"numbers of pairs (by {apart.min():.4f} to {apart.max():.4f}) and in {min(wins)} to {max(wins)} of "
            f"{tables[0].shape[1]} runs (paper: at all five, by .011 to .016, and in all runs but one); "
            f"{int((means <= paper).sum())} of {means.size} losses are at or below the paper's."
        )
    return said


def _curves(rows: Sequence[Row], sizes: Sequence[int]) -> list[Row]:
    """Mean test loss and its standard error for each loss and λ on means over pairs."""
    out: list[Row] = []
    for n in sizes:
        for loss in LOSSES:
            for ridge in _of_means(loss):
                values = [
                    row["test loss"]
                    for row in rows
                    if (row["setting"], row["pairs"], row["loss"], row["ridge"]) == (MEANS, n, loss, ridge)
                ]
                error = float(np.std(values, ddof=1) / np.sqrt(len(values)))
                mean = float(np.mean(values))
                out.append({"pairs": n, "loss": loss, "ridge": ridge, "test loss": mean, "standard error": error})
    return out


def _listed_curves(curves: Sequence[Row]) -> list[Row]:
    """A line for each number of pairs and loss, λ across."""
    out: list[Row] = []
    for n, loss in dict.fromkeys((row["pairs"], row["loss"]) for row in curves):
        known = {row["ridge"]: row["test loss"] for row in curves if (row["pairs"], row["loss"]) == (n, loss)}
        line = {f"{ridge:g}": known.get(ridge, float("nan")) for ridge in (*SMALLER, *OF_MEANS)}
        out.append({"pairs": n, "loss": loss} | line)
    return out


def _flatness(curves: Sequence[Row]) -> list[str]:
    """How much the choice of λ matters to each loss, and the least that each reaches."""
    said = []
    for n in dict.fromkeys(row["pairs"] for row in curves):
        parts = []
        for loss in LOSSES:
            values = {row["ridge"]: row["test loss"] for row in curves if (row["pairs"], row["loss"]) == (n, loss)}
            best = min(values, key=lambda ridge: values[ridge])
            parts.append(f"{loss} {values[best]:.4f} at λ = {best:g} (greatest {max(values.values()):.4f})")
        said.append(f"Means over pairs, {n:,} pairs, the least mean test loss of any λ: {', '.join(parts)}.")
    return said


COLOURS = dict(zip(LOSSES, ("tab:orange", "tab:green", "tab:blue"), strict=True))


def _draw(figure: Any, summary: Sequence[Row], curves: Sequence[Row], sizes: Sequence[int]) -> None:
    """Above, loss against the number of pairs, ours and the paper's; below, loss against λ."""
    above, below = figure.subplots(2, len(SETTINGS), sharey="row")
    for axis, setting in zip(above, SETTINGS, strict=True):
        lines = [row for row in summary if row["setting"] == setting]
        for loss in LOSSES:
            for suffix, style in (("", "o-"), (", paper", "s:")):
                parts = [row[loss + suffix].replace("(", "").replace(")", "").split() for row in lines]
                means, errors = ([float(part[k]) for part in parts] for k in (0, 1))
                axis.errorbar(sizes, means, errors, fmt=style, color=COLOURS[loss], capsize=2, markersize=3,
                              alpha=0.45 if suffix else 1.0, label=loss + suffix)  # fmt: skip
        axis.set_title(setting)
        axis.set_xticks(sizes, [f"{size // 1_000}" for size in sizes])
        axis.set_xlabel("training pairs, thousands")
    shown = [sizes[0], sizes[len(sizes) // 2], sizes[-1]]
    for axis, n in zip(below, shown, strict=True):
        for loss in LOSSES:
            lines = [row for row in curves if (row["pairs"], row["loss"]) == (n, loss)]
            values, errors = ([row[name] for row in lines] for name in ("test loss", "standard error"))
            axis.errorbar(_of_means(loss), values, errors, fmt="o-", color=COLOURS[loss], capsize=2, markersize=3)
        axis.set_xscale("log")
        axis.set_title(f"{n:,} pairs, means over pairs")
        axis.set_xlabel("ridge λ")
    for axes in (above, below):
        axes[0].set_ylabel("generalised pairwise loss")
    handles, labels = above[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)

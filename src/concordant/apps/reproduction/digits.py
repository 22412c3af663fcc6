"""RwA Table 1 on scikit-learn's digits: a small network, and the misranked pairs of unseen images by distance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from concordant.abstention.losses import pairwise_abstention_loss
from concordant.learning.scikit import needed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SmallNetwork:
    """f(x) = Σ_j u_j (w_j·x + b_j)₊ (RwA's H_NN, without bounds on the norms)."""

    inner: Floats
    """w, shape (hidden, features)."""
    bias: Floats
    outer: Floats

    def score(self, X: Floats) -> Floats:
        """Scores (rows,) of features (rows, features)."""
        return np.asarray(np.maximum(X @ self.inner.T + self.bias, 0.0) @ self.outer)


def exponential_loss(score: Floats, label: Ints) -> tuple[float, Floats]:
    """Return the mean of exp(−(h_j − h_i)) over all pairs with label_j > label_i, and its derivative in the scores.

    The sum over pairs is a sum over labels of products of two sums, so this takes O(n + labels), in logarithms.

    >>> value, slope = exponential_loss(np.array([0.0, 1.0]), np.array([0, 1]))
    >>> bool(np.isclose(value, np.exp(-1))), bool(np.allclose(slope, [np.exp(-1), -np.exp(-1)]))
    (True, True)
    """
    classes, level = np.unique(label, return_inverse=True)
    of = [score[level == place] for place in range(len(classes))]
    size = np.array([len(each) for each in of], np.float64)
    up = np.array([logsumexp(each) for each in of])
    down = np.array([logsumexp(-each) for each in of])
    below = np.append(-np.inf, np.logaddexp.accumulate(up)[:-1])
    above = np.append(np.logaddexp.accumulate(down[::-1])[:-1][::-1], -np.inf)
    log_pairs = np.log((size.sum() ** 2 - (size**2).sum()) / 2)
    value = float(np.exp(logsumexp(down + below) - log_pairs))
    slope = np.exp(score + above[level] - log_pairs) - np.exp(below[level] - score - log_pairs)
    return value, slope


def train_small(X: Floats, label: Ints, *, hidden: int, ridge: float, steps: int, seed: int) -> SmallNetwork:
    """Minimise the exponential loss + (ridge/2)‖(w, u)‖² from a random start, by at most ``steps`` of L-BFGS."""
    rng = np.random.default_rng(seed)
    features = X.shape[1]
    shape = (hidden, features)
    cut = np.cumsum([hidden * features, hidden])
    start = np.concatenate(
        [
            rng.normal(size=hidden * features) * np.sqrt(2.0 / features),
            np.zeros(hidden),
            rng.normal(size=hidden) / np.sqrt(hidden),
        ]
    )

    def value(theta: Floats) -> tuple[float, Floats]:
        inner, bias, outer = np.split(theta, cut)
        inner = inner.reshape(shape)
        active = X @ inner.T + bias
        on = np.maximum(active, 0.0)
        loss, slope = exponential_loss(on @ outer, label)
        back = (slope[:, None] * outer) * (active > 0)
        gradient = np.concatenate(
            [(back.T @ X + ridge * inner).ravel(), back.sum(axis=0), on.T @ slope + ridge * outer]
        )
        return loss + 0.5 * ridge * float((inner**2).sum() + (outer**2).sum()), gradient

    with np.errstate(over="ignore"):  # a step of the line search that is too long is taken back
        found = minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": steps, "maxcor": 20})
    inner, bias, outer = np.split(found.x, cut)
    return SmallNetwork(inner.reshape(shape), bias, outer)


BLOCK = 64
"""Rows whose distances to all later ones are computed at once."""


@dataclass(frozen=True, eq=False)
class PairProfile:
    """Ordered pairs of points with different labels, counted by their distance, a whole number."""

    pairs: Ints
    """``pairs[d]``: pairs at distance d."""
    wrong: Ints
    """``wrong[d]``: those of them that are misranked; of a pair level in score one order is (sign(0) = +1)."""

    @cached_property
    def total(self) -> int:
        return int(self.pairs.sum())

    @property
    def error(self) -> float:
        """Misranking loss without abstention."""
        return float(self.wrong.sum()) / self.total

    def share(self, level: int) -> float:
        """ρ: share of the pairs at a distance of at most ``level``."""
        return float(self.pairs[: level + 1].sum()) / self.total

    def kept(self, level: int) -> float:
        """A: share of all pairs that are farther apart and misranked."""
        return float(self.wrong[level + 1 :].sum()) / self.total

    def near_error(self, level: int) -> float:
        """Share of the near pairs that are misranked; NaN where there are none."""
        near = int(self.pairs[: level + 1].sum())
        return float(self.wrong[: level + 1].sum()) / near if near else float("nan")

    def loss(self, level: int, cost: float) -> float:
        """Return the pairwise abstention loss A + c·ρ."""
        return self.kept(level) + cost * self.share(level)

    def level_of(self, share: float) -> int:
        """Return the largest distance within which at most ``share`` of the pairs lie; −1 where there is none."""
        return int(np.searchsorted(np.cumsum(self.pairs), share * self.total, side="right")) - 1


def profile(whole: Ints, label: Ints, score: Floats, norm: str) -> PairProfile:
    """Count the pairs of points with whole coordinates (points, features) by ℓ∞ distance or squared ℓ2 distance.

    >>> found = profile(np.array([[0], [1], [3]]), np.array([0, 1, 1]), np.array([1.0, 0.0, 2.0]), "inf")
    >>> found.pairs.tolist(), found.wrong.tolist(), found.error
    ([0, 2, 0, 2], [0, 2, 0, 0], 0.5)
    """
    spread = np.ptp(whole, axis=0)
    near_zero = (whole - whole.min(axis=0)).astype(np.int64 if spread.max(initial=0) >= 1 << 15 else np.int16)
    squares = (whole**2).sum(axis=1)
    most = int(spread.max()) if norm == "inf" else int((spread**2).sum())
    pairs, wrong = np.zeros((2, most + 1), np.int64)
    for begin in range(0, len(whole), BLOCK):
        here = slice(begin, begin + BLOCK)
        if norm == "inf":
            distance = np.abs(near_zero[here, None, :] - near_zero[None, begin:, :]).max(axis=2)
        else:
            distance = squares[here, None] + squares[None, begin:] - 2 * (whole[here] @ whole[begin:].T)
        order = np.sign(label[None, begin:] - label[here, None]) * np.sign(score[None, begin:] - score[here, None])
        row, column = np.indices(distance.shape)
        counts = (label[None, begin:] != label[here, None]) & (column > row)  # each unordered pair once
        pairs += 2 * np.bincount(distance[counts], minlength=most + 1)
        for twice in (order[counts] < 0, order[counts] <= 0):
            wrong += np.bincount(distance[counts][twice], minlength=most + 1)
    return PairProfile(pairs, wrong)


PIXEL = 16
"""Pixels are whole numbers from 0 to this."""
TRAIN = 1_000
"""Training images; the other 797 are judged."""
HIDDEN, RIDGE, STEPS = 32, 1e-3, 500
QUICK_STEPS = 50


@dataclass(frozen=True, eq=False)
class JudgedDigits:
    """The images of one run that were not learned from, and their scores."""

    whole: Ints
    """Pixels 0 to 16, shape (images, 64)."""
    label: Ints
    score: Floats
    learned: tuple[Ints, Ints]
    """Pixels and labels of the images that were learned from."""
    seed: int

    def profile(self, norm: str) -> PairProfile:
        """Their pairs by distance, in sixteenths (squared for ℓ2)."""
        return profile(self.whole, self.label, self.score, norm)

    def losses(self, levels: Sequence[int], cost: float, norm: str) -> Floats:
        """The pairwise abstention loss by ``pairwise_abstention_loss`` at γ just above each whole distance."""
        between = np.asarray(levels) + 0.5
        gamma = (between if norm == "inf" else np.sqrt(between)) / PIXEL
        X = self.whole / PIXEL
        return np.asarray(pairwise_abstention_loss(self.score, X, self.label, gamma=gamma, cost=cost, norm=norm))


def digits_runs(*, runs: int, quick: bool, seed: int, told: Callable[[], object]) -> list[JudgedDigits]:
    """Train a network on 1,000 images in each of ``runs`` random divisions and score the others; ``told`` of each."""
    whole, label = _digits()
    found = []
    for number in range(runs):
        order = np.random.default_rng([seed, number]).permutation(len(label))
        train, test = order[:TRAIN], order[TRAIN:]
        steps = QUICK_STEPS if quick else STEPS
        net = train_small(
            whole[train] / PIXEL, label[train], hidden=HIDDEN, ridge=RIDGE, steps=steps, seed=seed + number
        )
        found.append(
            JudgedDigits(
                whole[test], label[test], net.score(whole[test] / PIXEL), (whole[train], label[train]), seed + number
            )
        )
        told()
    return found


@cache
def distances(norm: str) -> PairProfile:
    """All pairs of the 1,797 images by distance; nothing is scored, all count as level."""
    whole, label = _digits()
    return profile(whole, label, np.zeros(len(label)), norm)


def _digits() -> tuple[Ints, Ints]:
    data = needed("datasets", "the experiment on digits").load_digits()
    return np.asarray(data.data, np.int64), np.asarray(data.target, np.int64)

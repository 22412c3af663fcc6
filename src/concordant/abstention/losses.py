"""The misranking losses with abstention: over all pairs, or on a random sample of pairs with an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.abstention.near_pairs import Numbers, counts_of, sums_of_powers
from concordant.abstention.points import Points, cost_of, near_by, points_of
from concordant.errors import UsageError
from concordant.preferences.sampling import whole_seed


def pairwise_abstention_loss(
    scores: ArrayLike, X: ArrayLike, y: ArrayLike, *, gamma: ArrayLike, cost: float, norm: object = "inf"
) -> Numbers:
    """Return the share of pairs that are misranked, where near pairs cost ``cost`` instead, over all pairs.

    The mean of 1[y ≠ sign(h(x') − h(x))] · 1[‖x − x'‖ > γ] + c · 1[‖x − x'‖ ≤ γ] over the ordered pairs (x, x') of
    points with different labels, sign(0) = +1, where y = +1 if x' has the higher label and −1 if x has. It is exact;
    ``near_pairs`` says how it is computed, and which errors there are.

    Parameters
    ----------
    scores : (n,), h.
    X, y : (n, dimensions) and (n,) real labels.
    gamma : a distance in the units of X, or a list: one loss for each. With γ = 0 only equal points are near.
    cost : c of 0 … 1; abstention is of use below 1/2.
    norm : 1, 2 or 'inf'.

    >>> X, y, scores = [[0.0], [1.0], [5.0]], [0, 1, 2], [0.2, 0.1, 0.3]
    >>> round(pairwise_abstention_loss(scores, X, y, gamma=0, cost=0.1), 4)
    0.3333
    >>> round(pairwise_abstention_loss(scores, X, y, gamma=1, cost=0.1), 4)
    0.0333

    Source: Mao, Mohri & Zhong, “Ranking with abstention” (2023), (2).
    """
    price = cost_of(cost)
    return counts_of(points_of(X, y, scores), gamma, norm).loss(price)


def bipartite_abstention_loss(
    scores: ArrayLike, X: ArrayLike, y: ArrayLike, *, gamma: ArrayLike, cost: float, norm: object = "inf"
) -> Numbers:
    """Return the share of pairs of a positive and a negative point that are misranked; near pairs cost ``cost``.

    The mean over those pairs of (1[(y − y')(h(x) − h(x')) < 0] + ½ · 1[h(x) = h(x')]) · 1[‖x − x'‖ > γ]
    + c · 1[‖x − x'‖ ≤ γ]; without near pairs 1 − AUC. On two labels ``pairwise_abstention_loss`` agrees with it.

    Parameters
    ----------
    scores, X, gamma, cost, norm : as in ``pairwise_abstention_loss``.
    y : (n,) two different values, the higher one positive; another number of them is an InputError.

    >>> X, y, scores = [[0.0], [1.0], [5.0]], [0, 1, 1], [0.2, 0.1, 0.3]
    >>> bipartite_abstention_loss(scores, X, y, gamma=0, cost=0.1)
    0.5
    >>> bipartite_abstention_loss(scores, X, y, gamma=1, cost=0.1)
    0.05

    Source: Mao, Mohri & Zhong, “Ranking with abstention” (2023), (4) and (5).
    """
    price = cost_of(cost)
    return counts_of(points_of(X, y, scores, bipartite=True), gamma, norm).loss(price)


BLOCK = 1 << 21
"""Coordinates of drawn pairs compared at a time."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SampledLoss:
    """The mean loss of drawn pairs and its interval [low, high]; ``near_share`` is the share of near ones drawn."""

    loss: float
    low: float
    high: float
    near_share: float
    pairs: int
    level: float


def sampled_abstention_loss(
    scores: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    *,
    gamma: float,
    cost: float,
    pairs: int,
    norm: object = "inf",
    level: float = 0.05,
    seed: int = 0,
) -> SampledLoss:
    """Estimate ``pairwise_abstention_loss`` from ``pairs`` ordered pairs of different labels, drawn with replacement.

    The interval is Hoeffding's, mean ± √(ln(2/level)/(2 pairs)) within [0, 1]: it holds with probability ≥ 1 − level
    for any data, as losses of pairs lie in [0, 1]. Time and memory do not depend on the number of all pairs.

    Parameters
    ----------
    scores, X, y, gamma, cost, norm : as in ``pairwise_abstention_loss``, with one γ.
    pairs : number of pairs drawn, at least one.
    level : the largest chance that the interval is wrong, in (0, 1).
    seed : of the draws.

    Errors: those of ``pairwise_abstention_loss``; UsageError for ``pairs`` and ``level``.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 2000)[:, None]
    >>> found = sampled_abstention_loss(-X[:, 0], X, X[:, 0], gamma=0.5, cost=0.1, pairs=10_000)
    >>> found.low < 0.25 + 0.1 * 0.75 < found.high, round(found.high - found.low, 3)
    (True, 0.027)

    Source: Hoeffding, JASA 58 (1963), Theorem 1; Mao, Mohri & Zhong, “Ranking with abstention” (2023), (2).
    """
    price = cost_of(cost)
    if not isinstance(pairs, int | np.integer) or pairs < 1:
        raise UsageError(f"pairs is how many pairs to draw, at least 1; not {pairs!r}")
    if not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise UsageError(f"level is the probability of error, between 0 and 1; not {level!r}")
    if np.ndim(gamma):
        raise UsageError("a sample takes one gamma; near_pairs takes a list")
    near, _ = near_by(gamma, norm)
    points = points_of(X, y, scores)
    rng = np.random.default_rng(abs(whole_seed(seed)) * 2 + (seed < 0))
    total, within = 0.0, 0
    step = max(1, BLOCK // points.X.shape[1])
    by_label = np.argsort(points.label, kind="stable")
    for begin in range(0, int(pairs), step):
        first, second = _drawn(points, by_label, min(step, int(pairs) - begin), rng)
        close = sums_of_powers(points.X[first].T, points.X[second].T, near.power) <= near.limits[0]
        above = points.label[second] > points.label[first]
        misranked = above != (points.score[second] >= points.score[first])
        total += float(np.count_nonzero(misranked & ~close)) + price * float(np.count_nonzero(close))
        within += int(np.count_nonzero(close))
    mean, half = total / pairs, math.sqrt(math.log(2 / level) / (2 * pairs))
    return SampledLoss(mean, max(0.0, mean - half), min(1.0, mean + half), within / pairs, int(pairs), float(level))


def _drawn(points: Points, by_label: Ints, pairs: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw ordered pairs of points with different labels, each with the same probability.

    The first with probability in proportion to the points of other labels, the second among those.
    """
    label = points.label.astype(np.int64)
    size = np.bincount(label)
    start = np.cumsum(size) - size
    others = len(label) - size[label]
    done = np.cumsum(others)
    first = np.searchsorted(done, rng.integers(0, done[-1], pairs), side="right")
    place = rng.integers(0, others[first])
    own = label[first]
    return first, by_label[place + np.where(place >= start[own], size[own], 0)]

"""The misranking losses with abstention, over all pairs."""

from __future__ import annotations

from numpy.typing import ArrayLike

from concordant.abstention.near_pairs import Numbers, counts_of
from concordant.abstention.points import cost_of, points_of

__all__ = ["bipartite_abstention_loss", "pairwise_abstention_loss"]


def pairwise_abstention_loss(
    scores: ArrayLike, X: ArrayLike, y: ArrayLike, *, gamma: ArrayLike, cost: float, norm: object = "inf"
) -> Numbers:
    """Return the share of pairs that are misranked, where near pairs cost ``cost`` instead, over all pairs.

    The mean of 1[y ≠ sign(h(x') − h(x))] · 1[‖x − x'‖ > γ] + c · 1[‖x − x'‖ ≤ γ] over the ordered pairs (x, x') of
    points with different labels, sign(0) = +1, where y = +1 if x' has the higher label and −1 if x has. ``scores``
    (n,) are h, ``X`` (n, dimensions), ``y`` (n,) real labels, ``gamma`` a distance in the units of X (or a list: one
    loss for each), ``cost`` of 0 … 1, where abstention is of use below 1/2, ``norm`` 1, 2 or "inf". With γ = 0 only
    equal points are near. Exact; how it is computed, and errors: ``near_pairs``.

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
    + c · 1[‖x − x'‖ ≤ γ]; without near pairs 1 − AUC. ``y`` has two different values, the higher one positive; else
    as ``pairwise_abstention_loss``, with which it agrees on two labels. InputError for one class or more than two.

    >>> X, y, scores = [[0.0], [1.0], [5.0]], [0, 1, 1], [0.2, 0.1, 0.3]
    >>> bipartite_abstention_loss(scores, X, y, gamma=0, cost=0.1)
    0.5
    >>> bipartite_abstention_loss(scores, X, y, gamma=1, cost=0.1)
    0.05

    Source: Mao, Mohri & Zhong, “Ranking with abstention” (2023), (4) and (5).
    """
    price = cost_of(cost)
    return counts_of(points_of(X, y, scores, bipartite=True), gamma, norm).loss(price)

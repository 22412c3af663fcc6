"""Near pairs in many dimensions: all pairs in tiles, each given up after as few coordinates as show that it is far."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.abstention.parts import Counts, summed
from concordant.abstention.points import Near, Points, sampled_differences

__all__ = ["count_in_tiles"]

TILE = 128
WIDTH = 256
"""Columns of a piece at most: two tiles of them stay in a core's own cache."""
CELLS = 1 << 21
"""Numbers worked on at a time while the pieces are cut."""
FINE = 16_000
"""Largest 16-bit value of a piece: differences of two still fit."""
SAMPLE = 512

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def count_in_tiles(points: Points, near: Near) -> Counts:
    """Count near pairs and mistakes within each limit, in memory of a quarter (ℓ∞) or half (ℓ1, ℓ2) that of X.

    Coordinates are held in 16 bits (ℓ∞) or single precision (ℓ1, ℓ2); pairs that these leave open are looked up in X.
    """
    from concordant.kernels.near_blocks import near_in_tiles

    order = _columns(points.X, near)
    middle = _middle(points.X)
    pieces, lower, upper, scale = _pieces(points.X, order, middle, near)
    gammas = near.gammas * scale

    def count(first: int, last: int, found: Ints, wrong: Ints) -> None:
        near_in_tiles(points.X, pieces, lower, upper, points.label, points.score, gammas, near.limits, near.power,
                      TILE, first, last, found, wrong)  # fmt: skip

    found, wrong = summed(count, range(-(-len(points.X) // TILE) + 1), len(gammas))
    return np.cumsum(found), np.cumsum(wrong)


def _columns(X: Floats, near: Near) -> Ints:
    """Columns that can matter, first those that together tell most of a sample of pairs apart."""
    apart = sampled_differences(X, SAMPLE)
    order = np.argsort(-apart.mean(axis=0), kind="stable")
    if near.power:
        return order
    far = apart[:, order] > near.gammas[-1]
    first: list[int] = []
    told = far.sum(axis=0)
    while len(first) < WIDTH and told.any():  # the column that tells most of the pairs apart that are left
        first.append(int(told.argmax()))
        done = np.flatnonzero(far[:, first[-1]])
        told -= far[done].sum(axis=0)
        far[done] = False
    order = np.concatenate((order[first], np.delete(order, first))).astype(np.int64)
    with np.errstate(over="ignore"):  # differences are rounded in their order: none exceeds that of the extremes
        spread = X.max(axis=0) - X.min(axis=0)
    kept: Ints = order[spread[order] > near.gammas[0]]
    return kept if len(kept) else order[:1]


def _middle(X: Floats) -> Floats:
    """A point amid the others: medians of some of them, so that a few far values do not matter."""
    some = X[np.linspace(0, len(X) - 1, min(len(X), 256)).astype(int)]
    return np.asarray(np.median(some, axis=0))


def _pieces(X: Floats, order: Ints, middle: Floats, near: Near) -> tuple[NDArray[Any], Floats, Floats, float]:
    """Return the pieces (pieces, n, width), what they make distances larger and smaller by at most, and their scale.

    Values are clipped, which only makes distances smaller, so that single precision or 16 bits suffice around gamma.
    """
    largest = float(near.gammas[-1])
    step = max(1, CELLS // len(middle))
    with np.errstate(over="ignore", invalid="ignore"):
        widest = max(float(np.max(np.abs(X[rows : rows + step] - middle))) for rows in range(0, len(X), step))
    widest = min(max(widest, np.finfo(float).tiny), np.finfo(float).max)
    bound = min(widest, largest * (64.0 if near.power == 0 else 2.0**14)) if largest else widest
    whole = near.power == 0
    size = FINE if whole else 1.0
    scale = size / max(bound, size * 1e-300)
    deep = -(-len(order) // WIDTH)
    width = -(-len(order) // (32 * deep)) * 32
    pieces = np.zeros((deep, len(X), width), np.int16 if whole else np.float32)
    lower, upper = np.empty(len(X)), np.empty(len(X))
    for begin in range(0, len(X), step):
        rows = slice(begin, begin + step)
        with np.errstate(over="ignore"):
            exact = (X[rows][:, order] - middle[order]) * scale
        clipped = np.clip(exact, -bound * scale, bound * scale)
        held = np.rint(clipped).astype(np.int16) if whole else clipped.astype(np.float32)
        rounded = _size(clipped, near.power) * 2.0**-50 + 1e-12  # centring and scaling
        lower[rows] = _size(clipped - held, near.power) + rounded
        upper[rows] = _size(exact - held, near.power) * (1 + 2.0**-50) + rounded
        for piece in range(deep):
            some = held[:, piece * width : (piece + 1) * width]
            pieces[piece, rows, : some.shape[1]] = some
    return pieces, lower, upper, scale


def _size(values: Floats, power: int) -> Floats:
    """The norm of each row."""
    with np.errstate(over="ignore"):
        return np.asarray(np.linalg.norm(values, {0: np.inf, 1: 1, 2: 2}[power], axis=1))

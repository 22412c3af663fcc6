"""Over all pairs of points with different labels: how many are near, how many are misranked, and how many are both.

Near pairs where few coordinates tell most points apart: cells of equal size, swept along one coordinate.

Near pairs in many dimensions: all pairs in tiles, each given up after as few coordinates as show that it is far.

Near pairs counted from the definition in blocks of NumPy: for few points, and to compare the compiled ways with.

Near pairs counted part by part on several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.abstention.points import Near, Points, cost_of, near_by, points_of, sampled_differences
from concordant.errors import UsageError, did_you_mean
from concordant.kernels.arrays import in_threads
from concordant.kernels.compiled import compiles
from concordant.losses.metrics.pairwise import inversions
from concordant.preferences.ragged import Ragged

Counts = tuple[NDArray[np.int64], NDArray[np.int64]]
"""For each threshold the near pairs, each once, and the mistakes among them (two for a wrong order, one for a tie)."""


def summed(
    count: Callable[[int, int, NDArray[np.int64], NDArray[np.int64]], None], cuts: Iterable[int], limits: int
) -> Counts:
    """Return the sums of what ``count(first, last, near, wrong)`` adds for each part between two cuts."""

    def part(ends: tuple[int, int]) -> NDArray[np.int64]:
        found = np.zeros((2, limits), np.int64)
        count(*ends, found[0], found[1])
        return found

    near, wrong = sum(in_threads(part, pairwise(cuts)), np.zeros((2, limits), np.int64))
    return near, wrong


RUN = 64
"""Points of one cell that are within reach along the line that cells are swept on: enough to compare side by side."""
PARTS = 32
AXES = 3
"""Coordinates that cells are cut along at most."""
SAMPLE = 4096

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def shares_within(X: Floats, gamma: float) -> tuple[Ints, Floats]:
    """Return the coordinates, those that tell most pairs apart first, and the share of pairs within gamma on each.

    Shares are those of a sample of pairs, the same in each call.
    """
    share = (sampled_differences(X, SAMPLE) <= gamma).mean(axis=0)
    sorter = np.argsort(share, kind="stable")
    return sorter, share[sorter]


def count_in_cells(points: Points, near: Near) -> Counts:
    """Count near pairs and mistakes within each limit.

    Cells are cut by quantiles of the coordinates that tell most pairs apart. Two cells are compared only if their
    boxes are within reach, a point only with those of the other cell within what reach is left along the line.
    """
    from concordant.kernels.near_pairs import near_in_cells

    reach = float(near.gammas[-1])
    order, share = shares_within(points.X, reach)
    axis = int(order[0])
    sorted_by, start = _cells(points.X, _cuts(order, share, len(points.X)), axis)
    X = np.ascontiguousarray(points.X[sorted_by].T)
    label, score = points.label[sorted_by], points.score[sorted_by]
    boxes = Ragged(start)
    low, high = (np.ascontiguousarray(ends) for ends in (boxes.least(X.T), boxes.most(X.T)))

    def count(first: int, last: int, found: Ints, wrong: Ints) -> None:
        near_in_cells(X, axis, label, score, start, low, high, near.power, reach, near.limits, first, last, found,
                      wrong)  # fmt: skip

    cells = len(start) - 1
    return summed(count, np.unique(np.linspace(0, cells, min(cells, PARTS) + 1).astype(int)).tolist(), len(near.limits))


def _cuts(order: Ints, share: Floats, n: int) -> list[tuple[int, int]]:
    """Coordinates to cut along and in how many pieces: the first is swept, and cut only if there is work to share."""
    cells = max(1, min(n * float(share[0]) / RUN, 4096, n / 8))
    others = order[1 : 1 + AXES][share[1 : 1 + AXES] < 0.9]
    pieces = round(cells ** (1 / max(len(others), 1))) if len(others) else 1
    cuts = [(int(axis), pieces) for axis in others] if pieces > 1 else []
    made = pieces ** len(cuts)
    return cuts if made >= PARTS or n < 8 * PARTS else [*cuts, (int(order[0]), -(-PARTS // made))]


def _cells(X: Floats, cuts: list[tuple[int, int]], axis: int) -> tuple[Ints, Ints]:
    """Return the points cell by cell, sorted along the axis within each, and the cells' offsets."""
    n, cells = len(X), 1
    cell = np.zeros(n, np.int64)
    for along, pieces in cuts:
        cells *= pieces
        cell[np.lexsort((X[:, along], cell))] = np.arange(n) * cells // n
    sorter = np.lexsort((X[:, axis], cell))
    return sorter, np.searchsorted(cell[sorter], np.arange(cells + 1))


TILE = 128
WIDTH = 256
"""Columns of a piece at most: two tiles of them stay in a core's own cache."""
CELLS = 1 << 21
"""Numbers worked on at a time while the pieces are cut."""
FINE = 16_000
"""Largest 16-bit value of a piece: differences of two still fit."""
SAMPLE_TILES = 512


def count_in_tiles(points: Points, near: Near) -> Counts:
    """Count near pairs and mistakes within each limit, in memory of a quarter (ℓ∞) or half (ℓ1, ℓ2) that of X.

    Coordinates are held in 16 bits (ℓ∞) or single precision (ℓ1, ℓ2); pairs that these leave open are looked up in X.
    """
    from concordant.kernels.near_pairs import near_in_tiles

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
    apart = sampled_differences(X, SAMPLE_TILES)
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


BLOCK = 1 << 18
"""Pairs compared at a time."""


def sums_of_powers(left: Floats, right: Floats, power: int) -> Floats:
    """Return Σ |difference|^power over the coordinates (first axis) in their order, or the largest for power 0.

    It is what a loop in double precision returns; the other axes are broadcast.
    """
    total = np.zeros(np.broadcast_shapes(left.shape[1:], right.shape[1:]))
    with np.errstate(over="ignore"):
        for a, b in zip(left, right):
            difference = np.abs(a - b)
            if power == 0:
                np.maximum(total, difference, out=total)
            else:
                total += difference if power == 1 else difference * difference
    return total


def count_plainly(points: Points, near: Near) -> Counts:
    """Count near pairs and mistakes within each limit, comparing all pairs."""
    X, n = points.X.T, len(points.X)
    found, wrong = np.zeros((2, len(near.limits)), np.int64)
    begin = 0
    while begin < n:
        rows = slice(begin, begin + max(1, BLOCK // (n - begin)))
        ahead = points.label[begin:] - points.label[rows, None]
        agreement = ahead * (points.score[begin:] - points.score[rows, None])
        mistakes = (agreement < 0).astype(np.int64) + (agreement <= 0)
        counts = (ahead != 0) & (np.arange(begin, n) > np.arange(n)[rows, None])
        sums = sums_of_powers(X[:, rows, None], X[:, None, begin:], near.power)
        for t, limit in enumerate(near.limits):
            inside = counts & (sums <= limit)
            found[t] += np.count_nonzero(inside)
            wrong[t] += mistakes[inside].sum()
        begin = rows.stop
    return found, wrong


METHODS = {"plain": count_plainly, "cells": count_in_cells, "tiles": count_in_tiles}
FEW = 1 << 25
"""Differences of coordinates up to which comparing all pairs with NumPy is quicker than loading compiled loops."""
DEEP = 16
"""Coordinates a pair, on average, up to which cells are quicker than giving up pairs one by one."""

Integers = int | NDArray[np.int64]
Numbers = float | NDArray[np.float64]


@dataclass(frozen=True)
class PairCounts:
    """Counts over ordered pairs (x, x') of points with different labels; those of a list of γ are arrays in its order.

    ``pairs`` all; ``near`` with ‖x − x'‖ ≤ γ; ``misranked`` with 1[y ≠ sign(h(x') − h(x))], sign(0) = +1, where y = +1
    if x' has the higher label and −1 if x has (of two equal scores one of the two orders is wrong); ``misranked_near``
    both. ``method`` says how they were counted (all ways are exact), ``remark`` what to mind about the distance.
    """

    gamma: Numbers
    norm: str
    pairs: int
    near: Integers
    misranked: int
    misranked_near: Integers
    method: str
    remark: str = ""

    @property
    def near_share(self) -> Numbers:
        """The share of pairs that are near: on which a ranker abstains."""
        return self.near / self.pairs

    def loss(self, cost: float) -> Numbers:
        """Return the mean of 1[misranked and not near] + cost · 1[near] over the pairs (RwA, (2)); 0 ≤ cost ≤ 1."""
        return (self.misranked - self.misranked_near + cost_of(cost) * self.near) / self.pairs


def near_pairs(
    X: ArrayLike,
    y: ArrayLike,
    scores: ArrayLike,
    *,
    gamma: ArrayLike,
    norm: object = "inf",
    method: str = "auto",
) -> PairCounts:
    """Count the near and the misranked among all ordered pairs of points with different labels, exactly.

    Pairs are compared once, whatever the number of γ, and never listed: memory is a small multiple of X. Misranked
    pairs come from sorting. Near are those whose distance in double precision, coordinates summed in their order, is at
    most γ.

    Parameters
    ----------
    X, y, scores : (n, dimensions), real labels (n,) and (n,).
    gamma : a distance in the units of X, or a list.
    norm : 1, 2 or 'inf'.
    method : 'plain', all pairs in blocks of NumPy; 'cells', cells of points swept along a line: about as many
        comparisons as there are near pairs; 'tiles', all pairs in coarse numbers, each given up when it is too far.
        'auto' takes plain for few points, cells where a coordinate tells most pairs apart or there are at most 16,
        tiles for many dimensions.

    Errors: InputError for numbers that are not finite, shapes that differ, or one label only; UsageError for γ < 0 and
    norms that are not known.

    >>> counts = near_pairs([[0.0], [1.0], [5.0]], [0, 1, 2], [0.2, 0.1, 0.3], gamma=1)
    >>> counts.pairs, counts.near, counts.misranked, counts.misranked_near
    (6, 2, 2, 2)
    >>> near_pairs([[0.0], [1.0], [5.0]], [0, 1, 2], [0.2, 0.1, 0.3], gamma=[0, 4, 5]).near.tolist()
    [0, 4, 6]

    Source: Mao, Mohri & Zhong, “Ranking with abstention” (2023), (1) and (2).
    """
    return counts_of(points_of(X, y, scores), gamma, norm, method)


def counts_of(points: Points, gamma: ArrayLike, norm: object, method: str = "auto") -> PairCounts:
    """As near_pairs, for points that have been checked."""
    listed = np.atleast_1d(np.asarray(gamma))
    if listed.dtype.kind not in "biuf":
        raise UsageError(f"gamma must be a real number or several, not {type(gamma).__name__}")
    if method != "auto" and method not in METHODS:
        raise UsageError(f"no method {method!r} to count near pairs; {did_you_mean(method, ['auto', *METHODS])}")
    ascending = np.argsort(listed, kind="stable") if listed.ndim == 1 else slice(None)
    near, name = near_by(listed[ascending], norm)
    chosen = _chosen(points, near) if method == "auto" else method
    pairs, misranked = _misranked(points)
    within, wrong = _in_given_order(METHODS[chosen](points, near), ascending)
    single = np.ndim(gamma) == 0
    return PairCounts(
        gamma=float(listed[0]) if single else listed.astype(np.float64),
        norm=name,
        pairs=pairs,
        near=2 * int(within[0]) if single else 2 * within,
        misranked=misranked,
        misranked_near=int(wrong[0]) if single else wrong,
        method=chosen,
        remark=_uneven(points.X),
    )


def _in_given_order(counts: Counts, ascending: NDArray[np.intp] | slice) -> Counts:
    near, wrong = np.empty_like(counts[0]), np.empty_like(counts[1])
    near[ascending], wrong[ascending] = counts
    return near, wrong


def _chosen(points: Points, near: Near) -> str:
    n, dimensions = points.X.shape
    if n * n * (dimensions + len(near.limits)) <= FEW or not compiles():
        return "plain"
    if dimensions <= DEEP:
        return "cells"
    _, share = shares_within(points.X, float(near.gammas[-1]))
    return "cells" if dimensions * float(np.prod(share[:2])) <= DEEP else "tiles"


def _misranked(points: Points) -> tuple[int, int]:
    """Ordered pairs of different labels, and the misranked: two for each pair in the wrong order, one for each tie."""
    label, score = points.label.astype(np.int64), points.score.astype(np.int64)
    pairs = len(label) ** 2 - _squares(np.bincount(label))
    _, both = np.unique(label * (int(score.max()) + 1) + score, return_counts=True)
    tied = _squares(np.bincount(score)) - _squares(both)
    return pairs, 2 * _inversions(score[np.lexsort((score, label))]) + tied // 2


def _squares(counts: NDArray[np.integer]) -> int:
    return int(np.sum(counts.astype(np.int64) ** 2))


def _inversions(level: NDArray[np.int64]) -> int:
    if len(level) < 1 << 13 or not compiles():
        return int(inversions(np.zeros(len(level), np.int64), level, None, 1)[0])
    from concordant.kernels.near_pairs import inversions_of

    return int(inversions_of(level, int(level.max()) + 1))


def _uneven(X: NDArray[np.float64]) -> str:
    """Say where one coordinate spreads so much more than others that it is the distance."""
    with np.errstate(over="ignore"):
        spread = sampled_differences(X, 512).mean(axis=0)
    usual = float(np.median(spread[spread > 0])) if np.any(spread > 0) else 0.0
    widest = int(spread.argmax())
    if not usual or not spread[widest] > 100 * usual:
        return ""
    times = f"{float(spread[widest]) / usual:,.3g} times"  # plain floats: inf where the quotient has no double
    return f"column {widest} of X spreads {times} as far as the median one: it dominates the distance; scale X"

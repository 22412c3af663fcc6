"""Orders of the least ERR loss (AoS (16)) for laws of score vectors, and the worst orders that tied scores allow.

An order's value is Σ_i 1/F(i) E[G_(i) Π_{h<i} (1 − G_(h))]: what an item adds depends only on the *set* before it, so
the best order of a few items comes by dynamic programming over subsets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_ITEMS", "arranged", "mixed_best", "value_of"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Nodes = NDArray[np.int64]
MOST_ITEMS = 12
"""Items up to which the best order is found exactly."""
CELLS = 1 << 22
"""Numbers of a table of subsets that are held at a time."""


def value_of(gains: Floats, weight: Floats, inverse: Floats, order: Nodes) -> Floats:
    """Σ_i inverse_i E[G_(i) Π_{h<i} (1 − G_(h))] of an order of each row.

    ``gains`` (rows, draws, items), ``weight`` (rows, draws) shares of the draws times what passes everything before,
    ``inverse`` (rows, items) 1/F of the places, ``order`` (rows, items). Returns (rows,).
    """
    placed = np.take_along_axis(gains, order[:, None, :], axis=2)
    passed = np.cumprod(1.0 - placed, axis=2)
    examined = np.concatenate((np.ones_like(passed[:, :, :1]), passed[:, :, :-1]), axis=2)
    return np.asarray(np.einsum("rd,rdi,ri->r", weight, placed * examined, inverse), np.float64)


def mixed_best(gains: Floats, weight: Floats, inverse: Floats) -> Floats:
    """An upper bound of the value of any order: each draw in the best order of its own, by gain (Lemma 1)."""
    flat = gains.reshape(-1, 1, gains.shape[2])
    order = np.argsort(-flat[:, 0], axis=1, kind="stable")
    places = np.repeat(inverse, gains.shape[1], axis=0)
    return np.asarray(value_of(flat, weight.reshape(-1, 1), places, order).reshape(weight.shape).sum(axis=1))


def arranged(gains: Floats, weight: Floats, inverse: Floats, *, worst: bool = False) -> tuple[Nodes, bool]:
    """Return the order of the largest (``worst``: the smallest) value of each row, and whether it is surely that.

    With one draw it is the order by gain (Lemma 1), with up to ``MOST_ITEMS`` items dynamic programming, else the
    better one of the order by expected gain and the greedy order, which no swap of neighbours improves.
    """
    sign = -1.0 if worst else 1.0
    rows, draws, items = gains.shape
    expected = np.einsum("rd,rdi->ri", weight, gains)
    by_gain = np.argsort(-sign * expected, axis=1, kind="stable")
    if draws == 1 or items < 2:
        return by_gain, True
    if items <= MOST_ITEMS:
        step = max(1, CELLS // (2**items * max(draws, items)))
        parts = [slice(begin, begin + step) for begin in range(0, rows, step)]
        found = [_by_subsets(gains[part], weight[part], inverse[part], sign) for part in parts]
        return np.concatenate(found) if found else by_gain, True
    greedy = _greedy(gains, weight, sign)
    better = sign * (value_of(gains, weight, inverse, greedy) - value_of(gains, weight, inverse, by_gain)) > 0
    return np.where(better[:, None], greedy, by_gain), False


def _greedy(gains: Floats, weight: Floats, sign: float) -> Nodes:
    """At each place the item that adds most given those before it.

    Swapping neighbours a, b after a set S changes the value by (1/F(i) − 1/F(i+1)) (E[w_S G_b] − E[w_S G_a]).
    """
    rows, _, items = gains.shape
    order = np.empty((rows, items), np.int64)
    passing = weight.copy()
    used = np.zeros((rows, items), bool)
    row = np.arange(rows)
    for place in range(items):
        adds = sign * np.einsum("rd,rdi->ri", passing, gains)
        adds[used] = -np.inf
        pick = adds.argmax(axis=1)
        order[:, place], used[row, pick] = pick, True
        passing *= 1.0 - gains[row, :, pick]
    return order


def _by_subsets(gains: Floats, weight: Floats, inverse: Floats, sign: float) -> Nodes:
    rows, draws, items = gains.shape
    passing = np.empty((rows, draws, 2**items))  # share of the draws times Π over the subset of 1 − G
    passing[:, :, 0] = weight
    for j in range(items):
        passing[:, :, 2**j : 2 ** (j + 1)] = passing[:, :, : 2**j] * (1.0 - gains[:, :, j, None])
    adds = sign * (passing.transpose(0, 2, 1) @ gains)  # (rows, subsets, items)
    subset = np.arange(2**items)
    size = np.bitwise_count(subset)
    best = np.full((rows, 2**items), -np.inf)
    best[:, 0] = 0.0
    last = np.zeros((rows, 2**items), np.int8)
    for placed in range(items):
        for j in range(items):
            before = subset[(size == placed) & (subset >> j & 1 == 0)]
            after = before | 1 << j
            reached = best[:, before] + inverse[:, placed, None] * adds[:, before, j]
            better = reached > best[:, after]
            best[:, after] = np.where(better, reached, best[:, after])
            last[:, after] = np.where(better, j, last[:, after])
    order = np.empty((rows, items), np.int64)
    left = np.full(rows, 2**items - 1)
    for place in range(items - 1, -1, -1):
        order[:, place] = last[np.arange(rows), left]
        left ^= 1 << order[:, place]
    return order

"""Near pairs of points of many dimensions: pieces of some columns at a time, a pair given up when it is too far.

Near pairs of points counted from sorted cells, and inversions of a sequence: few dimensions, no list of pairs.
"""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled, reordered

ROUNDING = 1.0 + 5e-5
"""Sums of a few hundred differences in single precision, each rounded at 2^-24, and of many such in double."""


@compiled
def near_in_tiles(X, pieces, lower, upper, label, score, gammas, limits, power, tile, first, last, near, wrong):  # type: ignore[no-untyped-def]  # fmt: skip
    """Add the near pairs of the points of tiles first … last − 1 with those of the same and later tiles.

    ``X`` (n, dimensions) decides; ``pieces`` (pieces, n, width) stands for it in few bits, columns in the order in
    which they tell points apart: the distance of two points is at least that of their pieces less ``lower`` of both
    and at most that of their pieces plus ``upper`` of both (n,). ``gammas`` (ascending, in the units of the pieces)
    are compared with these; where that leaves it open, the sum of powers over the columns of X in their order (largest
    difference for power 0) is compared with ``limits``. The first limit t that a pair of different labels is within
    has near[t] gain 1 and wrong[t] gain 2 if the order is wrong, 1 if the scores are equal.
    """
    n, deep, top = pieces.shape[1], len(pieces), len(gammas)
    rows, others = np.empty(tile * tile, np.int64), np.empty(tile * tile, np.int64)
    partial = np.empty(tile * tile)
    for here in range(first, last):
        for there in range(here, (n + tile - 1) // tile):
            count = 0
            worst = 0.0
            for i in range(here * tile, min(n, here * tile + tile)):
                for j in range(max(i + 1, there * tile), min(n, there * tile + tile)):
                    if label[i] != label[j]:
                        rows[count], others[count], partial[count] = i, j, 0.0
                        count += 1
                        worst = max(worst, lower[i] + lower[j])
            farthest = (gammas[top - 1] + worst) * ROUNDING
            if power == 2:
                farthest *= farthest
            for piece in range(deep):
                left = 0
                for pair in range(count):
                    i, j = rows[pair], others[pair]
                    if power == 2:
                        found = partial[pair] + _squares(pieces, piece, i, j)
                    elif power == 1:
                        found = partial[pair] + _moduli(pieces, piece, i, j)
                    else:
                        found = max(partial[pair], float(_largest(pieces, piece, i, j)))
                    rows[left], others[left], partial[left] = i, j, found
                    left += found <= farthest
                count = left
            for pair in range(count):
                i, j = rows[pair], others[pair]
                distance = np.sqrt(partial[pair]) if power == 2 else partial[pair]
                place = np.searchsorted(gammas, distance / ROUNDING - lower[i] - lower[j])
                if place < top and gammas[place] <= (distance + upper[i] + upper[j]) * ROUNDING:
                    place = np.searchsorted(limits, _sum_in_order(X, i, j, power, limits[top - 1]))
                if place < top:
                    agreement = (label[j] - label[i]) * (score[j] - score[i])
                    near[place] += 1
                    wrong[place] += (agreement < 0.0) + (agreement <= 0.0)


@reordered
def _squares(pieces, piece, i, j):  # type: ignore[no-untyped-def]
    total = np.float32(0.0)
    for k in range(pieces.shape[2]):
        total += (pieces[piece, i, k] - pieces[piece, j, k]) * (pieces[piece, i, k] - pieces[piece, j, k])
    return total


@reordered
def _moduli(pieces, piece, i, j):  # type: ignore[no-untyped-def]
    total = np.float32(0.0)
    for k in range(pieces.shape[2]):
        total += abs(pieces[piece, i, k] - pieces[piece, j, k])
    return total


@compiled
def _largest(pieces, piece, i, j):  # type: ignore[no-untyped-def]
    """The largest difference of 16-bit integers of at most 2^14: narrow types throughout, or it is much slower."""
    most = np.int16(0)
    for k in range(pieces.shape[2]):
        difference = np.int16(abs(np.int16(pieces[piece, i, k] - pieces[piece, j, k])))
        most = np.int16(max(most, difference))
    return most


@compiled
def _sum_in_order(X, i, j, power, limit):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(X.shape[1]):
        difference = abs(X[i, k] - X[j, k])
        if power == 2:
            total += difference * difference
        elif power == 1:
            total += difference
        else:
            total = max(total, difference)
        if total > limit:
            break
    return total


RUN = 512
"""Points whose distances to one point are held at a time."""
SLACK = 1e-9
"""How far the search looks beyond the largest distance, as a share of it: sums in another order round differently."""


@compiled
def inversions_of(level, levels):  # type: ignore[no-untyped-def]
    """Return the number of pairs i before j with level_i > level_j; ``level`` is an integer from 0 to levels − 1.

    The twin is ``concordant.losses.metrics.pairwise.inversions``.
    """
    tree = np.zeros(levels + 1, np.int64)
    total = 0
    for seen in range(len(level)):
        below = 0
        node = level[seen] + 1
        while node > 0:
            below += tree[node]
            node -= node & -node
        total += seen - below
        node = level[seen] + 1
        while node <= levels:
            tree[node] += 1
            node += node & -node
    return total


@compiled
def near_in_cells(points, axis, label, score, start, low, high, power, reach, limits, first, last, near, wrong):  # type: ignore[no-untyped-def]  # fmt: skip
    """Add the near pairs of cells first … last − 1 with themselves and all later cells to near and wrong.

    ``points`` (dimensions, n) has the points of a cell together, in the order of coordinate ``axis``; ``start`` the
    cells' offsets; ``low`` and ``high`` (cells, dimensions) their extents; ``label`` and ``score`` (n,) ranks as
    float64. A pair is within limit t where its sum of powers (largest difference for power 0) is ≤ ``limits[t]``
    (ascending); ``reach`` is the distance that the last limit stands for. Where labels differ, near[t] gains 1 and
    wrong[t] gains 2 for a pair in the wrong order, 1 for one of equal scores.
    """
    line = points[axis]
    sums = np.empty(RUN)
    wide = reach * (1.0 + SLACK)
    for here in range(first, last):
        for there in range(here, len(start) - 1):
            room = wide * wide if power == 2 else wide
            for k in range(len(points)):
                if k == axis:
                    continue
                gap = max(low[there, k] - high[here, k], low[here, k] - high[there, k], 0.0)
                if power == 0:
                    if gap > wide:
                        room = -1.0
                elif power == 1:
                    room -= gap
                else:
                    room -= gap * gap
            if room < 0.0:
                continue
            span = np.sqrt(room) if power == 2 else room
            begin = end = start[there]
            stop = start[there + 1]
            for i in range(start[here], start[here + 1]):
                at = line[i]
                while begin < stop and at - line[begin] > span:
                    begin += 1
                while end < stop and line[end] - at <= span:
                    end += 1
                for run in range(max(begin, i + 1) if here == there else begin, end, RUN):
                    size = min(RUN, end - run)
                    _sums(points, i, run, size, power, sums)
                    _count(label, score, i, run, size, sums, limits, near, wrong)


@compiled
def _sums(points, i, run, size, power, sums):  # type: ignore[no-untyped-def]
    """Fill sums with the powers of the differences of i to the points of the run, summed in the columns' order."""
    sums[:size] = 0.0
    for k in range(len(points)):
        at = points[k, i]
        row = points[k, run : run + size]
        if power == 2:
            for j in range(size):
                difference = row[j] - at
                sums[j] += difference * difference
        elif power == 1:
            for j in range(size):
                sums[j] += abs(row[j] - at)
        else:
            for j in range(size):
                difference = abs(row[j] - at)
                sums[j] = difference if difference > sums[j] else sums[j]


@compiled
def _count(label, score, i, run, size, sums, limits, near, wrong):  # type: ignore[no-untyped-def]
    labels, scores = label[run : run + size], score[run : run + size]
    own, value = label[i], score[i]
    for t in range(len(limits)):
        limit = limits[t]
        inside = tied = inverted = 0
        for j in range(size):
            ahead = labels[j] - own
            agreement = ahead * (scores[j] - value)
            counts = (sums[j] <= limit) & (ahead != 0.0)
            inside += counts
            inverted += counts & (agreement < 0.0)
            tied += counts & (agreement <= 0.0)
        near[t] += inside
        wrong[t] += inverted + tied

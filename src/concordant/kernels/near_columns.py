"""Near pairs of points counted from sorted cells, and inversions of a sequence: few dimensions, no list of pairs."""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled

__all__ = ["inversions_of", "near_in_cells"]

RUN = 512
"""Points whose distances to one point are held at a time."""
SLACK = 1e-9
"""How far the search looks beyond the largest distance, as a share of it: sums in another order round differently."""


@compiled
def inversions_of(level, levels):  # type: ignore[no-untyped-def]
    """Return the number of pairs i before j with level_i > level_j; ``level`` is an integer from 0 to levels − 1.

    The twin is ``concordant.metrics.inversions.inversions``.
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

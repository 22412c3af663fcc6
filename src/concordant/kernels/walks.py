"""Random walks that judgments tie together: solves and beliefs of one tridiagonal block for each walk.

Knots of walk i are start[i]:start[i + 1], in order of time. ``step`` is the precision of the increment from a knot to
the next (0 at the end of a walk), ``prior`` that of the first knot of each walk (0 elsewhere); edge e ties the knots
one[e] and other[e] with a weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpttrs

from concordant.kernels.compiled import compiled


@compiled
def factor(prior, step, own, pivot):  # type: ignore[no-untyped-def]
    """Pivots of the tridiagonal blocks with ``own`` added to the diagonal; the log-determinant is returned."""
    total, carried = 0.0, 0.0
    for k in range(len(own)):
        pivot[k] = prior[k] + own[k] + step[k] + carried
        total += np.log(pivot[k])
        carried = step[k] - step[k] * step[k] / pivot[k]
    return total


def _solve_plainly(prior, step, one, other, weight, pivot, right, share, found):  # type: ignore[no-untyped-def]
    knots, below = len(right), -step[:-1] / pivot[:-1]

    def near(rest: Any) -> Any:
        return dpttrs(pivot, below, rest)[0] if knots > 1 else rest / pivot

    found[:], rest = 0.0, right.copy()
    z = near(rest)
    way, size = z.copy(), float(rest @ z)
    enough = share * share * size
    for _ in range(knots + 10):
        if size <= enough:
            break
        walk, game = step[:-1] * np.diff(way), weight * (way[one] - way[other])
        ahead = prior * way + np.append(0.0, walk) - np.append(walk, 0.0)
        ahead += np.bincount(one, game, knots) - np.bincount(other, game, knots)
        length = size / float(way @ ahead)
        found += length * way
        rest -= length * ahead
        z = near(rest)
        size, before = float(rest @ z), size
        way = z + (size / before) * way


@compiled(twin=_solve_plainly)
def solve(prior, step, one, other, weight, pivot, right, share, found):  # type: ignore[no-untyped-def]
    """Solve walks and edges for one right side by conjugate gradients, each walk's opponents held where they are.

    They end at a ``share`` of the first residual; ``pivot`` is that of ``factor``, ``found`` the answer.
    """
    knots = len(right)
    inverse, carry = np.empty(knots), np.empty(knots)
    rest, z, way, ahead = np.empty(knots), np.empty(knots), np.empty(knots), np.empty(knots)
    for k in range(knots):
        inverse[k] = 1.0 / pivot[k]
        carry[k] = step[k] * inverse[k]
        found[k], way[k], ahead[k], rest[k] = 0.0, 0.0, 0.0, right[k]
    length, before, enough = 0.0, 0.0, 0.0
    for turn in range(knots + 11):
        for k in range(knots):  # what the last turn left, and the walks' answer to it
            found[k] += length * way[k]
            rest[k] -= length * ahead[k]
            z[k] = rest[k] + (carry[k - 1] * z[k - 1] if k else 0.0)
        carried, size = 0.0, 0.0
        for k in range(knots - 1, -1, -1):
            carried = z[k] * inverse[k] + carry[k] * carried
            z[k] = carried
            size += rest[k] * carried
        if turn == 0:
            enough = share * share * size
        if size <= enough or turn == knots + 10:
            break
        for k in range(knots):
            way[k] = z[k] + (size / before * way[k] if turn else 0.0)
            ahead[k] = prior[k] * way[k]
        bent = 0.0
        for k in range(knots):
            bent += way[k] * ahead[k]
        for k in range(knots - 1):
            if step[k] != 0.0:
                apart = way[k + 1] - way[k]
                bent += step[k] * apart * apart
                ahead[k] -= step[k] * apart
                ahead[k + 1] += step[k] * apart
        for e in range(len(weight)):
            apart = way[one[e]] - way[other[e]]
            bent += weight[e] * apart * apart
            ahead[one[e]] += weight[e] * apart
            ahead[other[e]] -= weight[e] * apart
        length, before = size / bent, size


@compiled
def joint(begin, gap, new_start, new, one, other, weight, first, covariance):  # type: ignore[no-untyped-def]
    """Filter all items together, time by time, a game after the other; the log-determinant of what they tell is added.

    Between times ``gap`` is added to the variances of the items known before; those of new[new_start[t]:new_start[t+1]]
    come with the variance ``first``. Games of time t: begin[t]:begin[t + 1], between the items one and other.
    ``covariance`` (items, items) is 0 at first.
    """
    items = len(covariance)
    known, beside = np.zeros(items, np.bool_), np.empty(items)
    total = 0.0
    for t in range(len(begin) - 1):
        for i in range(items):
            if known[i]:
                covariance[i, i] += gap[t]
        for at in range(new_start[t], new_start[t + 1]):
            known[new[at]] = True
            covariance[new[at], new[at]] = first
        for e in range(begin[t], begin[t + 1]):
            for i in range(items):
                beside[i] = covariance[one[e], i] - covariance[other[e], i]
            told = weight[e] * (beside[one[e]] - beside[other[e]])
            total += np.log1p(told)
            part = weight[e] / (1.0 + told)
            for i in range(items):
                by = part * beside[i]
                for j in range(items):
                    covariance[i, j] -= by * beside[j]
    return total


@compiled
def beliefs(start, prior, step, slot_start, slot, weight, message, precision, forward, tolerance, sweeps):  # type: ignore[no-untyped-def]
    """Belief propagation between walks, exact within each; returns the largest relative change of the last sweep.

    Edge e sends message[2e] to its first knot and message[2e + 1] to the other: the precision by which it informs, with
    what the rest of the data say of the knot at its other end. Slots of knot k: slot[slot_start[k]:slot_start[k + 1]],
    each 2e or 2e + 1. ``precision`` (K,): of each knot's belief; ``forward`` (K,): what the walk before it says.
    """
    walks = len(start) - 1
    change = 1.0
    for _ in range(sweeps):
        change = 0.0
        for i in range(walks):
            begin, end = start[i], start[i + 1]
            told = 0.0
            for k in range(begin, end):
                forward[k] = prior[k] + told
                heard = 0.0
                for at in range(slot_start[k], slot_start[k + 1]):
                    heard += message[slot[at]]
                precision[k] = forward[k] + heard
                told = step[k] * precision[k] / (step[k] + precision[k]) if step[k] > 0 else 0.0
            back = 0.0
            for k in range(end - 1, begin - 1, -1):
                behind = precision[k] - forward[k]
                precision[k] += back
                for at in range(slot_start[k], slot_start[k + 1]):
                    s = slot[at]
                    rest = precision[k] - message[s]
                    w = weight[s // 2]
                    new = w * rest / (w + rest)
                    change = max(change, abs(new - message[s ^ 1]) / w)
                    message[s ^ 1] = new
                behind += back
                if k > begin:
                    behind = step[k - 1] * behind / (step[k - 1] + behind)
                back = behind
        if change < tolerance:
            break
    return change

"""Random walks that judgments tie together: products, solves and beliefs of one tridiagonal block for each walk.

Knots of walk i are start[i]:start[i + 1], in order of time. ``step`` is the precision of the increment from a knot to
the next (0 at the end of a walk), ``prior`` that of the first knot of each walk (0 elsewhere); edge e ties the knots
one[e] and other[e] with a weight.
"""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled


@compiled
def product(prior, step, one, other, weight, x, out):  # type: ignore[no-untyped-def]
    """The curvature times x: of the walks and of the edges; arrays of knots (K,) and edges (E,)."""
    last = len(x) - 1
    for k in range(len(x)):
        out[k] = prior[k] * x[k]
    for k in range(last):
        if step[k] != 0.0:
            pull = step[k] * (x[k + 1] - x[k])
            out[k] -= pull
            out[k + 1] += pull
    for e in range(len(weight)):
        pull = weight[e] * (x[one[e]] - x[other[e]])
        out[one[e]] += pull
        out[other[e]] -= pull


@compiled
def factor(prior, step, own, pivot):  # type: ignore[no-untyped-def]
    """Pivots of the tridiagonal blocks with ``own`` added to the diagonal; the log-determinant is returned."""
    total, carried = 0.0, 0.0
    for k in range(len(own)):
        pivot[k] = prior[k] + own[k] + step[k] + carried
        total += np.log(pivot[k])
        carried = step[k] - step[k] * step[k] / pivot[k]
    return total


@compiled
def solve(step, pivot, right, x):  # type: ignore[no-untyped-def]
    """Solve the tridiagonal blocks of ``factor`` for one right side; x may be the same array."""
    knots = len(right)
    carried = 0.0
    for k in range(knots):
        x[k] = right[k] + carried
        carried = step[k] * x[k] / pivot[k]
    carried = 0.0
    for k in range(knots - 1, -1, -1):
        x[k] = (x[k] + step[k] * carried) / pivot[k]
        carried = x[k]


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

"""Packings of edge-disjoint cycles: each must have an edge that points up, so their weight bounds every order's loss.

Weighted: a cycle takes the least weight that is left on its edges from all of them.
"""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled

__all__ = ["ascending", "pack"]


@compiled
def ascending(values):  # type: ignore[no-untyped-def]
    """The order of some numbers, equal ones as they stand."""
    return np.argsort(values, kind="mergesort")


@compiled
def _cycle(e, winner, loser, out_start, left, place, ahead_only, seen, mark, via, queue, level):  # type: ignore[no-untyped-def]
    """Take a shortest cycle through edge e off what is left, of edges that point down but for e when ``ahead_only``.

    Returns (weight taken, steps): 0 when there is none.
    """
    goal, steps = winner[e], 0
    queue[0] = loser[e]
    seen[loser[e]] = mark
    head, tail = 0, 1
    while head < tail and seen[goal] != mark:
        v = queue[head]
        head += 1
        for f in range(out_start[v], out_start[v + 1]):
            w = loser[f]
            steps += 1
            if left[f] <= level or seen[w] == mark:
                continue
            if ahead_only and not (place[v] < place[w] <= place[goal]):
                continue
            seen[w] = mark
            via[w] = f
            queue[tail] = w
            tail += 1
    if seen[goal] != mark:
        return 0.0, steps
    least, v = left[e], goal
    while v != loser[e]:
        least = min(least, left[via[v]])
        v = winner[via[v]]
    v = goal
    left[e] -= least
    while v != loser[e]:
        left[via[v]] -= least
        v = winner[via[v]]
    return least, steps


@compiled
def pack(out_start, winner, loser, weight, place, loss, level, work, rest):  # type: ignore[no-untyped-def]
    """The largest weight of cycles packed within the work; edges stand by winner.

    Cycles of one edge up are packed first: were all edges up of the order used up, the order would be proven best. In
    each round those edges come first that found no way in the last.
    """
    m, edges = len(out_start) - 1, len(winner)
    seen, via, queue = np.zeros(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    count = 0
    for e in range(edges):
        count += place[winner[e]] > place[loser[e]]
    up, urgency = np.empty(count, np.int64), np.empty(count)
    count = 0
    for e in range(edges):
        span = place[winner[e]] - place[loser[e]]
        if span > 0:
            up[count], urgency[count] = e, span
            count += 1
    best, mark = 0.0, 0
    rest[:] = weight
    left = np.empty(edges)
    while work > 0 and loss - best > level:
        left[:] = weight
        total = 0.0
        order = ascending(urgency)
        for ahead_only in (True, False):
            for i in order:
                e = up[i]
                while left[e] > level and work > 0:
                    mark += 1
                    taken, steps = _cycle(
                        e, winner, loser, out_start, left, place, ahead_only, seen, mark, via, queue, level
                    )
                    work -= steps + 8
                    total += taken
                    if taken == 0.0:
                        break
                if ahead_only and left[e] > level:
                    urgency[i] -= m
        if total > best:
            best = total
            rest[:] = left
    return best

"""Local search for the best order of a directed graph, led by packings of cycles that bound it from below.

Edges that a packing of cycles does not use up form no cycle, and in a best order few of them point up: random
topological orders of these edges are where the search begins again.
"""

from __future__ import annotations

import heapq

import numpy as np

from concordant.kernels.compiled import compiled
from concordant.kernels.cycles import ascending, pack
from concordant.kernels.draws import ONE, S40, below, copy
from concordant.kernels.orders_moves import charged, descend, incidence, keep_improving, ranks

__all__ = ["peel", "search", "unblocked"]

TURNS = 30
"""Random orders that the search begins from, after the first two."""
PACKING = 10
"""Visits per edge for the packing before each of them."""


@compiled
def peel(start, other, push, key):  # type: ignore[no-untyped-def]
    """Keys of a greedy order (Eades, Lin and Smyth 1993, with weights): sources to the front, sinks to the back, else
    the node whose edges out outweigh those in by most to the front."""
    m = len(start) - 1
    lead, ins, outs = np.zeros(m), np.zeros(m, np.int64), np.zeros(m, np.int64)
    heap = [(0.0, np.int64(0)) for _ in range(0)]
    ends = [np.int64(0) for _ in range(0)]
    for u in range(m):
        for e in range(start[u], start[u + 1]):
            lead[u] += push[e]
            if push[e] > 0:
                outs[u] += 1
            else:
                ins[u] += 1
        heapq.heappush(heap, (-lead[u], np.int64(u)))
        if ins[u] == 0 or outs[u] == 0:
            ends.append(np.int64(u))
    front, back = 0, m - 1
    placed = np.zeros(m, np.bool_)
    while front <= back:
        if len(ends) > 0:
            v = ends.pop()
            if placed[v]:
                continue
        else:
            least, v = heapq.heappop(heap)
            if placed[v] or -least != lead[v]:
                continue
        placed[v] = True
        if outs[v] == 0 and ins[v] > 0:
            key[v] = back
            back -= 1
        else:
            key[v] = front
            front += 1
        for e in range(start[v], start[v + 1]):
            w = other[e]
            if placed[w]:
                continue
            lead[w] += push[e]
            if push[e] > 0:
                ins[w] -= 1
            else:
                outs[w] -= 1
            if ins[w] == 0 or outs[w] == 0:
                ends.append(w)
            else:
                heapq.heappush(heap, (-lead[w], w))


@compiled
def unblocked(out_start, loser, rest, level, key, seed, counter, new):  # type: ignore[no-untyped-def]
    """A random topological order of the edges that a packing left some weight of: the others alone point up.

    Where the packing was cut short there may be cycles left: what they hold back follows in the order of ``key``.
    """
    m = len(new)
    entering, placed = np.zeros(m, np.int64), np.zeros(m, np.bool_)
    for e in range(len(loser)):
        entering[loser[e]] += rest[e] > level
    free, held, at = np.empty(m, np.int64), 0, 0
    for v in range(m):
        if entering[v] == 0:
            free[held] = v
            held += 1
    while held > 0:
        i = below(seed, counter, held)
        counter += ONE
        v = free[i]
        held -= 1
        free[i] = free[held]
        new[v], placed[v] = at, True
        at += 1
        for e in range(out_start[v], out_start[v + 1]):
            w = loser[e]
            if rest[e] > level:
                entering[w] -= 1
                if entering[w] == 0:
                    free[held] = w
                    held += 1
    if at < m:
        for v in ascending(key):
            if not placed[v]:
                new[v] = at
                at += 1


@compiled
def search(chosen, node_start, edge_start, winner, loser, weight, seed, work, least, place, loss, bound, whole, grid):  # type: ignore[no-untyped-def]
    """Order each chosen component by local search; its loss, a lower bound, and whether a local optimum was reached.

    ``work`` limits the visits of edges by kicks and by the last packing, ``least`` (per edge) all others.
    winner and loser count from 0 in each component, edges stand by winner; ``grid`` as
    in ``concordant.best_order.grids``.
    """
    for c in chosen:
        first, last = edge_start[c], edge_start[c + 1]
        up, down, d = winner[first:last], loser[first:last], weight[first:last]
        m = node_start[c + 1] - node_start[c]
        start, other, push = incidence(m, up, down, d)
        out_start = np.zeros(m + 1, np.int64)
        level = 0.0
        for e in range(len(d)):
            out_start[up[e] + 1] += 1
            level += 1e-12 * d[e]
        for v in range(m):
            out_start[v + 1] += out_start[v]
        spare = work + least * len(d)
        key, new, rest = np.empty(m), np.empty(m), np.empty(len(d))
        value, best = np.inf, 0.0
        whole[c] = True
        for turn in range(TURNS + 2):
            if turn == 0:
                for v in range(m):
                    new[v] = v
            elif turn == 1:
                peel(start, other, push, new)
            else:
                best = max(best, pack(out_start, up, down, d, ranks(key), value, level, PACKING * len(d), rest))
                best = _on_grid(best, grid[c])
                spare -= PACKING * len(d)
                if spare <= 0 or value - best <= level:
                    break
                unblocked(out_start, down, rest, level, key, seed, np.uint64(turn) << S40, new)
            spare = descend(start, other, push, new, level, spare)
            if turn <= 1:
                whole[c] &= spare > 0
            else:
                share = min(spare, work // TURNS)
                keep_improving(up, down, d, start, other, push, new, best, level, seed + np.uint64(turn), share)
                spare -= share
            found = charged(up, down, d, new)
            if found <= value:
                value = found
                copy(new, m, key)
        if value - best > level:
            best = max(best, pack(out_start, up, down, d, ranks(key), value, level, max(work, PACKING * len(d)), rest))
        order = ascending(key)
        for at in range(m):
            place[node_start[c] + order[at]] = at
        loss[c], bound[c] = value, _on_grid(best, grid[c])


@compiled
def _on_grid(bound, grid):  # type: ignore[no-untyped-def]
    """A loss that is a multiple of the grid (where that is not 0) is at least the next one."""
    return max(bound, np.ceil(bound / grid - 1e-6) * grid) if grid > 0.0 else bound

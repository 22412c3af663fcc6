"""Insertion moves in the order of a directed graph, and kicks that turn an edge that points up.

A node stands at a number, its key; only keys of neighbours are compared, so a move costs the node's edges and no more.
"""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled
from concordant.kernels.cycles import ascending
from concordant.kernels.draws import ONE, below, copy

__all__ = ["charged", "descend", "incidence", "keep_improving", "ranks"]

GOLDEN = 0.6180339887498949


@compiled
def incidence(m, winner, loser, weight):  # type: ignore[no-untyped-def]
    """Neighbours of each node with the weight of the edge between, negative for edges in: (start, other, push).

    ``push`` is what the loss gains when the node passes the neighbour on its way down.
    """
    start = np.zeros(m + 1, np.int64)
    for e in range(len(winner)):
        start[winner[e] + 1] += 1
        start[loser[e] + 1] += 1
    for v in range(m):
        start[v + 1] += start[v]
    fill = start[:-1].copy()
    other, push = np.empty(2 * len(winner), np.int64), np.empty(2 * len(winner))
    for e in range(len(winner)):
        v, w = winner[e], loser[e]
        other[fill[v]], push[fill[v]] = w, weight[e]
        fill[v] += 1
        other[fill[w]], push[fill[w]] = v, -weight[e]
        fill[w] += 1
    return start, other, push


@compiled
def _sort_neighbours(first, last, other, push, key):  # type: ignore[no-untyped-def]
    size = last - first
    values, held, pushes = np.empty(size), np.empty(size, np.int64), np.empty(size)
    for i in range(size):
        values[i], held[i], pushes[i] = key[other[first + i]], other[first + i], push[first + i]
    order = ascending(values)
    for i in range(size):
        other[first + i], push[first + i] = held[order[i]], pushes[order[i]]


@compiled
def _sorted_neighbours(v, start, other, push, key):  # type: ignore[no-untyped-def]
    """Sort the node's neighbours by key, in place: they nearly are, from the last time."""
    first, last = start[v], start[v + 1]
    moves = 0
    for e in range(first + 1, last):
        w, p = other[e], push[e]
        f = e
        while f > first and key[other[f - 1]] > key[w]:
            other[f], push[f] = other[f - 1], push[f - 1]
            f -= 1
        other[f], push[f] = w, p
        moves += e - f
        if moves > 16 * (last - first):
            _sort_neighbours(first, last, other, push, key)
            return


@compiled
def _slot_key(slot, v, start, other, key):  # type: ignore[no-untyped-def]
    """A key between the neighbours slot − 1 and slot; NaN when there is no number left between them."""
    first, last = start[v], start[v + 1]
    if slot == first:
        return key[other[first]] - 1.0
    left = key[other[slot - 1]]
    if slot == last:
        return left + 1.0
    right = key[other[slot]]
    middle = left + (0.25 + 0.5 * ((v * GOLDEN) % 1.0)) * (right - left)  # no two nodes at the same number
    return middle if left < middle < right else np.nan


@compiled
def _renumber(key):  # type: ignore[no-untyped-def]
    order = ascending(key)
    for at in range(len(order)):
        key[order[at]] = at


@compiled
def _settle(start, other, push, key, queue, waiting, held, moved, level, work):  # type: ignore[no-untyped-def]
    """Move queued nodes to their best places, and their neighbours, until none gains; (gain, work left, moves).

    moves is −1 when keys were renumbered, else the first entries of ``moved`` tell which nodes moved (or none more
    than it holds are told).
    """
    m = len(key)
    gain, head, moves, renumbered = 0.0, 0, 0, False
    while held > 0 and work > 0:
        v = queue[head]
        head = head + 1 if head + 1 < m else 0
        held -= 1
        waiting[v] = False
        while True:
            _sorted_neighbours(v, start, other, push, key)
            first, last = start[v], start[v + 1]
            work -= last - first + 4
            cost, here, least, slot = 0.0, 0.0, 0.0, first
            for e in range(first, last):
                cost += push[e]
                if key[other[e]] < key[v]:
                    here = cost
                if cost < least and (e + 1 == last or key[other[e]] < key[other[e + 1]]):
                    least, slot = cost, e + 1
            if here - least <= level:
                break
            new = _slot_key(slot, v, start, other, key)
            if not np.isnan(new):
                key[v] = new
                gain += here - least
                if moves < len(moved):
                    moved[moves] = v
                moves += 1
                for e in range(first, last):
                    w = other[e]
                    if not waiting[w]:
                        waiting[w] = True
                        tail = head + held
                        queue[tail if tail < m else tail - m] = w
                        held += 1
                break
            _renumber(key)
            work -= 16 * m  # as much as sorting takes
            renumbered = True
    while held > 0:
        waiting[queue[head]] = False
        head = head + 1 if head + 1 < m else 0
        held -= 1
    return gain, work, -1 if renumbered or moves > len(moved) else moves


@compiled
def descend(start, other, push, key, level, work):  # type: ignore[no-untyped-def]
    """Insertion moves from every node to a local optimum, or to the end of the work: work left."""
    m = len(key)
    queue, waiting, moved = np.arange(m), np.ones(m, np.bool_), np.empty(0, np.int64)
    _, work, _ = _settle(start, other, push, key, queue, waiting, m, moved, level, work)
    return work


@compiled
def keep_improving(winner, loser, weight, start, other, push, key, bound, level, seed, work):  # type: ignore[no-untyped-def]
    """Kick a local optimum and settle it again as long as there is work and the loss exceeds the bound.

    A kick takes an edge that points up and moves its winner to just above its loser, or its loser to just below. A
    kick that does not raise the loss is kept.
    """
    m, edges = len(key), len(winner)
    queue, waiting, moved = np.empty(m, np.int64), np.zeros(m, np.bool_), np.empty(m, np.int64)
    saved = key.copy()
    loss = charged(winner, loser, weight, key)
    counter = np.uint64(0)
    while work > 0 and loss - bound > level:
        e, tries = 0, 0
        while tries < 64:
            e = below(seed, counter, edges)
            counter += ONE
            tries += 1
            if key[winner[e]] > key[loser[e]]:
                break
        work -= tries
        v, w = winner[e], loser[e]
        if below(seed, counter, 2) == 1:
            v, w = w, v
        counter += ONE
        _sorted_neighbours(v, start, other, push, key)
        before, after, slot = 0.0, 0.0, start[v]
        for f in range(start[v], start[v + 1]):
            if key[other[f]] < key[v]:
                before += push[f]
            if other[f] == w:
                slot = f if v == winner[e] else f + 1
        for f in range(start[v], slot):
            after += push[f]
        work -= start[v + 1] - start[v]
        new = _slot_key(slot, v, start, other, key)
        if np.isnan(new):
            _renumber(key)
            copy(key, m, saved)
            continue
        key[v] = new
        held = 0
        for f in range(start[v], start[v + 1]):
            queue[held] = other[f]
            waiting[other[f]] = True
            held += 1
        gain, work, moves = _settle(start, other, push, key, queue, waiting, held, moved, level, work)
        change = after - before - gain
        kept = change <= level
        if kept:
            loss += change
        left, right = (saved, key) if kept else (key, saved)
        if moves < 0:
            copy(right, m, left)
        else:
            left[v] = right[v]
            for i in range(moves):
                left[moved[i]] = right[moved[i]]


@compiled
def charged(winner, loser, weight, key):  # type: ignore[no-untyped-def]
    """Weight of the edges whose winner stands behind their loser."""
    total = 0.0
    for e in range(len(winner)):
        if key[winner[e]] > key[loser[e]]:
            total += weight[e]
    return total


@compiled
def ranks(key):  # type: ignore[no-untyped-def]
    """Places 0 … m − 1 by key; equal keys (of nodes without an edge between) by number."""
    place = np.empty(len(key), np.int64)
    order = ascending(key)
    for at in range(len(key)):
        place[order[at]] = at
    return place

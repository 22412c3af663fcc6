"""Paths in graphs of bounds α_i − α_j ≥ b: how far strong components fall apart, least differences of items.

The plain twins are ``levels`` of ``concordant.surrogates.pieces`` and ``smallest_differences`` of
``concordant.surrogates.faces``.
"""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled

__all__ = ["least_room", "longest_paths"]


@compiled
def longest_paths(start, lower, need, waiting, depth):  # type: ignore[no-untyped-def]
    """Depth of each vertex of an acyclic graph: the largest sum of needs on the way to it, at least 0.

    Arcs from vertex v are start[v]:start[v + 1], to ``lower``; ``waiting`` is how many arcs lead to each vertex, and is
    used up.
    """
    n = len(start) - 1
    queue = np.empty(n, np.int64)
    found = 0
    for v in range(n):
        if waiting[v] == 0:
            queue[found] = v
            found += 1
    at = 0
    while at < found:
        v = queue[at]
        at += 1
        for e in range(start[v], start[v + 1]):
            u = lower[e]
            depth[u] = max(depth[u], depth[v] + need[e])
            waiting[u] -= 1
            if waiting[u] == 0:
                queue[found] = u
                found += 1


@compiled
def _sift_up(heap, place, key, i):  # type: ignore[no-untyped-def]
    v = heap[i]
    while i > 0:
        above = (i - 1) >> 1
        if key[heap[above]] <= key[v]:
            break
        heap[i] = heap[above]
        place[heap[i]] = i
        i = above
    heap[i] = v
    place[v] = i


@compiled
def _sift_down(heap, place, key, size):  # type: ignore[no-untyped-def]
    i = 0
    v = heap[0]
    while 2 * i + 1 < size:
        under = 2 * i + 1
        if under + 1 < size and key[heap[under + 1]] < key[heap[under]]:
            under += 1
        if key[heap[under]] >= key[v]:
            break
        heap[i] = heap[under]
        place[heap[i]] = i
        i = under
    heap[i] = v
    place[v] = i


@compiled
def _beyond(source, start, below, slack, seen, mark, queue):  # type: ignore[no-untyped-def]
    """Mark with 2·mark + 1 what is reached over some infinite slack, with 2·mark what else is reached."""
    seen[source] = 2 * mark
    queue[0] = source
    found, at = 1, 0
    while at < found:
        v = queue[at]
        at += 1
        for e in range(start[v], start[v + 1]):
            state = 2 * mark + 1 if slack[e] == np.inf else seen[v]
            if seen[below[e]] < state:
                seen[below[e]] = state
                queue[found] = below[e]
                found += 1


@compiled
def least_room(start, below, slack, source, asked_start, asked, any_strict, first, last, room):  # type: ignore[no-untyped-def]
    """Shortest paths over slacks from each source first … last − 1 to the nodes asked for.

    Bounds of node v are start[v]:start[v + 1], down to ``below``; infinite slack marks a difference that tends to
    infinity, and a path over one gives −∞. ``asked`` nodes of source s are asked_start[s]:asked_start[s + 1], which
    ``room`` follows; ∞ where no path leads. ``any_strict`` tells whether there are any.
    """
    nodes = len(start) - 1
    key = np.full(nodes, np.inf)
    place = np.full(nodes, -1, np.int64)
    heap, touched, queue = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(2 * nodes, np.int64)
    seen = np.zeros(nodes, np.int64)
    wanted = np.zeros(nodes, np.int64)
    for s in range(first, last):
        mark = s - first + 1
        left = 0
        for k in range(asked_start[s], asked_start[s + 1]):
            room[k] = np.inf
            if wanted[asked[k]] != mark:
                wanted[asked[k]] = mark
                left += 1
        if any_strict:
            _beyond(source[s], start, below, slack, seen, mark, queue)
            for k in range(asked_start[s], asked_start[s + 1]):
                if seen[asked[k]] == 2 * mark + 1 and wanted[asked[k]] == mark:
                    wanted[asked[k]] = -mark
                    left -= 1
        key[source[s]], heap[0], place[source[s]], size = 0.0, source[s], 0, 1
        touched[0] = source[s]
        number = 1
        while size > 0 and left > 0:
            v = heap[0]
            size -= 1
            if size > 0:
                heap[0] = heap[size]
                place[heap[0]] = 0
                _sift_down(heap, place, key, size)
            place[v] = -2
            if wanted[v] == mark:
                left -= 1
            for e in range(start[v], start[v + 1]):
                u = below[e]
                if place[u] == -2 or slack[e] == np.inf:
                    continue
                if place[u] == -1:
                    touched[number] = u
                    number += 1
                    heap[size] = u
                    place[u] = size
                    size += 1
                    key[u] = key[v] + slack[e]
                    _sift_up(heap, place, key, place[u])
                elif key[v] + slack[e] < key[u]:
                    key[u] = key[v] + slack[e]
                    _sift_up(heap, place, key, place[u])
        for k in range(asked_start[s], asked_start[s + 1]):
            if any_strict and seen[asked[k]] == 2 * mark + 1:
                room[k] = -np.inf
            elif place[asked[k]] == -2:
                room[k] = key[asked[k]]
        for i in range(number):
            key[touched[i]] = np.inf
            place[touched[i]] = -1

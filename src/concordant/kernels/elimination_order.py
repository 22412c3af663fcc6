"""An order in which the nodes of a graph are eliminated with little fill, and what it needs to know of graphs."""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled

__all__ = ["least_degree", "parts", "places"]


@compiled
def least_degree(start, beside, most, work):  # type: ignore[no-untyped-def]
    """Order nodes by approximate least degree (Amestoy, Davis and Duff, SIAM J. Matrix Anal. Appl. 17, 1996).

    ``start``, ``beside``: neighbours of each node, both ways, each once. Answers order, column starts and rows (nodes);
    order is empty when the columns would hold more than ``most`` entries or Σ length² exceeds ``work``.
    """
    n = len(start) - 1
    none = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
    room = np.zeros(n + 1, np.int64)  # of each node: elements, then neighbours, and some space
    for i in range(n):
        many = start[i + 1] - start[i]
        room[i + 1] = room[i] + many + many // 8 + 2
    store = np.empty(room[n], np.int64)
    elements = np.zeros(n, np.int64)
    length = start[1:] - start[:-1]
    stale = np.zeros(n, np.int64)  # neighbours that are gone or in an element but not yet taken out
    degree = length.copy()
    head = np.full(n + 1, -1, np.int64)
    after = np.full(n, -1, np.int64)
    before = np.full(n, -1, np.int64)
    for i in range(n - 1, -1, -1):
        store[room[i] : room[i] + length[i]] = beside[start[i] : start[i + 1]]
        d = degree[i]
        after[i] = head[d]
        if head[d] >= 0:
            before[head[d]] = i
        head[d] = i
    gone = np.zeros(n, np.bool_)
    dead = np.zeros(n, np.bool_)  # an element that another one has taken in
    column = np.zeros(n + 1, np.int64)
    column_of = np.full(n, -1, np.int64)
    order = np.empty(n, np.int64)
    rows = np.empty(max(16, 4 * n), np.int64)
    mark = np.full(n, -1, np.int64)
    outside = np.zeros(n, np.int64)
    seen = np.full(n, -1, np.int64)
    spent = 0.0
    lowest = 0
    for k in range(n):
        while head[lowest] < 0:
            lowest += 1
        left = n - k
        if lowest < left and float(lowest) * lowest * (left - lowest) + float(lowest) ** 3 / 3 > work:
            return none  # degrees do not fall again where there are many pairs
        p = head[lowest]
        head[lowest] = after[p]
        if after[p] >= 0:
            before[after[p]] = -1
        gone[p] = True
        order[k] = p
        column_of[p] = k
        begin = column[k]
        end = begin
        mark[p] = k
        if begin + n > len(rows):
            grown = np.empty(max(2 * len(rows), begin + n), np.int64)
            grown[:begin] = rows[:begin]
            rows = grown
        for q in range(room[p], room[p] + length[p]):
            other = store[q]
            if q - room[p] < elements[p]:
                if dead[other]:
                    continue
                c = column_of[other]
                for r in range(column[c], column[c + 1]):
                    i = rows[r]
                    if mark[i] != k:
                        mark[i] = k
                        rows[end] = i
                        end += 1
                dead[other] = True
            elif not gone[other] and mark[other] != k:
                mark[other] = k
                rows[end] = other
                end += 1
        column[k + 1] = end
        size = end - begin
        spent += float(size) * size
        if end > most or spent > work:
            return none
        for r in range(begin, end):  # what the elements beside have outside of the new one
            i = rows[r]
            for q in range(room[i], room[i] + elements[i]):
                e = store[q]
                if dead[e]:
                    continue
                if seen[e] != k:
                    seen[e] = k
                    outside[e] = column[column_of[e] + 1] - column[column_of[e]]
                outside[e] -= 1
        for r in range(begin, end):
            i = rows[r]
            a, last = room[i], room[i] + length[i]
            held = elements[i]
            d = size - 1
            kept = 0
            for q in range(a, a + held):
                e = store[q]
                if not dead[e] and outside[e] > 0:
                    store[a + kept] = e
                    kept += 1
                    d += outside[e]
            free = held - kept
            stale[i] += 1
            beside_it = length[i] - held
            if stale[i] * 8 > beside_it or length[i] - free + 1 > room[i + 1] - a:  # take out what is stale
                fresh = kept
                for q in range(a + held, last):
                    j = store[q]
                    if not gone[j] and mark[j] != k:
                        store[a + fresh] = j
                        fresh += 1
                stale[i] = 0
                d += fresh - kept
            else:
                fresh = kept + beside_it
                for q in range(min(free, beside_it)):  # the last ones into the free places
                    store[a + kept + q] = store[last - 1 - q]
                d += beside_it
            if fresh > kept:
                store[a + fresh] = store[a + kept]
            store[a + kept] = p
            elements[i] = kept + 1
            length[i] = fresh + 1
            d = min(d, n - k - 2)
            old = degree[i]
            if d != old:
                if before[i] >= 0:
                    after[before[i]] = after[i]
                else:
                    head[old] = after[i]
                if after[i] >= 0:
                    before[after[i]] = before[i]
                degree[i] = d
                before[i] = -1
                after[i] = head[d]
                if head[d] >= 0:
                    before[head[d]] = i
                head[d] = i
                lowest = min(lowest, d)
    return order, column, rows[: column[n]].copy()


@compiled
def parts(first, second, chosen, nodes):  # type: ignore[no-untyped-def]
    """Number of parts that the chosen pairs make of the nodes."""
    above = np.arange(nodes)
    left = nodes
    for e in range(len(first)):
        if not chosen[e]:
            continue
        a, b = first[e], second[e]
        while above[a] != a:
            above[a] = above[above[a]]
            a = above[a]
        while above[b] != b:
            above[b] = above[above[b]]
            b = above[b]
        if a != b:
            above[max(a, b)] = min(a, b)
            left -= 1
    return left


@compiled
def places(column, rows, low, high):  # type: ignore[no-untyped-def]
    """Where in the columns the pairs (low, high) stand, low < high; −1 where they do not."""
    out = np.empty(len(low), np.int64)
    for e in range(len(low)):
        a, b = column[low[e]], column[low[e] + 1]
        target = high[e]
        while a < b:
            middle = (a + b) // 2
            if rows[middle] < target:
                a = middle + 1
            else:
                b = middle
        out[e] = a if a < column[low[e] + 1] and rows[a] == target else -1
    return out

"""Sparse elimination on weighted graphs: the factor, solutions, entries of the inverse.

The matrix is A = L + diag(e), L the Laplacian of pairs with weights w ≥ 0, e ≥ 0. Eliminating a node k joins its
neighbours (star and mesh): w_ij += w_ik w_jk/d_k, e_i += w_ik e_k/d_k, d_k = e_k + Σ w_ik. Nothing is subtracted, so
factor and inverse are exact to rounding in every entry, however far apart the weights are (Alfa, Xue and Ye, Math.
Comp. 71, 2002). Columns stand in the order of elimination; the rows of a column are ascending.

An order in which the nodes of a graph are eliminated with little fill, and what it needs to know of graphs.
"""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled


@compiled
def factorise(column, rows, weight, excess, turned, turned_excess):  # type: ignore[no-untyped-def]
    """Eliminate in place: weights of the mesh and what is left to the ground; answers the pivots d and their changes.

    ``turned``: a direction in which the weights change (empty: none), made the direction in which the factor does.
    """
    n = len(column) - 1
    pivot = np.zeros(n)
    moved = np.zeros(n)
    both = len(turned) > 0
    work = np.zeros(n)
    change = np.zeros(n)
    first = np.full(n, -1, np.int64)  # columns whose next row is this node
    follow = np.full(n, -1, np.int64)
    at = column[:-1].copy()
    for k in range(n):
        a, b = column[k], column[k + 1]
        for q in range(a, b):
            work[rows[q]] = weight[q]
            if both:
                change[rows[q]] = turned[q]
        j = first[k]
        while j >= 0:
            then = follow[j]
            q = at[j]
            d = pivot[j]
            if d > 0:
                share = weight[q] / d
                excess[k] += share * excess[j]
                if both:
                    bent = (turned[q] - share * moved[j]) / d
                    turned_excess[k] += bent * excess[j] + share * turned_excess[j]
                    for r in range(q + 1, column[j + 1]):
                        work[rows[r]] += share * weight[r]
                        change[rows[r]] += bent * weight[r] + share * turned[r]
                else:
                    for r in range(q + 1, column[j + 1]):
                        work[rows[r]] += share * weight[r]
            at[j] = q + 1
            if q + 1 < column[j + 1]:
                i = rows[q + 1]
                follow[j] = first[i]
                first[i] = j
            j = then
        total = excess[k]
        drift = turned_excess[k] if both else 0.0
        for q in range(a, b):
            weight[q] = work[rows[q]]
            total += weight[q]
            if both:
                turned[q] = change[rows[q]]
                drift += turned[q]
        pivot[k], moved[k] = total, drift
        if a < b:
            i = rows[a]
            follow[k] = first[i]
            first[i] = k
    return pivot, moved


@compiled
def solve(column, rows, weight, pivot, right):  # type: ignore[no-untyped-def]
    """Solve in place for the columns of ``right``, shape (n, sides); a node that nothing holds has 0."""
    n, sides = right.shape
    for k in range(n):
        if pivot[k] > 0:
            for q in range(column[k], column[k + 1]):
                share = weight[q] / pivot[k]
                i = rows[q]
                for c in range(sides):
                    right[i, c] += share * right[k, c]
    for k in range(n - 1, -1, -1):
        if pivot[k] > 0:
            for c in range(sides):
                right[k, c] /= pivot[k]
            for q in range(column[k], column[k + 1]):
                share = weight[q] / pivot[k]
                i = rows[q]
                for c in range(sides):
                    right[k, c] += share * right[i, c]
        else:
            for c in range(sides):
                right[k, c] = 0.0


@compiled
def potentials(column, rows, weight, flow, excess, ground):  # type: ignore[no-untyped-def]
    """Least squares of x_k − x_i ≈ v on the pairs and x_k ≈ ground with weights ``excess``.

    ``weight`` and ``flow`` = w·v per entry (k its column, i its row) are given before elimination and overwritten. Sums
    of potentials and weighted means only: no weight is lost beside a larger one.
    """
    n = len(column) - 1
    x = np.zeros(n)
    pivot = np.zeros(n)
    work = np.zeros(n)
    carried = np.zeros(n)
    held = excess * ground
    first = np.full(n, -1, np.int64)
    follow = np.full(n, -1, np.int64)
    at = column[:-1].copy()
    potential = np.zeros(len(rows))
    level = np.zeros(n)
    for k in range(n):
        a, b = column[k], column[k + 1]
        for q in range(a, b):
            work[rows[q]] = weight[q]
            carried[rows[q]] = flow[q]
        j = first[k]
        while j >= 0:
            then = follow[j]
            q = at[j]
            d = pivot[j]
            if d > 0:
                share = weight[q] / d
                part = share * excess[j]
                excess[k] += part
                held[k] += part * (level[j] - potential[q])
                for r in range(q + 1, column[j + 1]):
                    part = share * weight[r]
                    work[rows[r]] += part
                    carried[rows[r]] += part * (potential[r] - potential[q])
            at[j] = q + 1
            if q + 1 < column[j + 1]:
                i = rows[q + 1]
                follow[j] = first[i]
                first[i] = j
            j = then
        total = excess[k]
        level[k] = held[k] / excess[k] if excess[k] > 0 else 0.0
        for q in range(a, b):
            w = work[rows[q]]
            weight[q] = w
            potential[q] = carried[rows[q]] / w if w > 0 else 0.0
            total += w
        pivot[k] = total
        if a < b:
            i = rows[a]
            follow[k] = first[i]
            first[i] = k
    for k in range(n - 1, -1, -1):
        if pivot[k] > 0:
            value = excess[k] / pivot[k] * level[k]
            for q in range(column[k], column[k + 1]):
                value += weight[q] / pivot[k] * (x[rows[q]] + potential[q])
            x[k] = value
    return x, pivot


@compiled
def inverse_on_pattern(column, rows, weight, pivot, turned, moved):  # type: ignore[no-untyped-def]
    """Diagonal of Z = A⁻¹, and of Z M Z for the change −M of A that ``turned`` and ``moved`` came from.

    Takahashi's recursion: Z_ik = Σ_j q_jk Z_ij, Z_kk = 1/d_k + Σ_j q_jk Z_jk, q = w/d, over the rows j of column k. A
    node that nothing holds has the row 0.
    """
    n = len(column) - 1
    both = len(turned) > 0
    own, bent_own = np.zeros(n), np.zeros(n)
    inverse = np.zeros(len(rows))
    bent = np.zeros(len(turned))
    place = np.full(n, -1, np.int64)
    most = 0
    for k in range(n):
        most = max(most, column[k + 1] - column[k])
    share, drift = np.zeros(most), np.zeros(most)
    out, turn = np.zeros(most), np.zeros(most)
    for k in range(n - 1, -1, -1):
        a, b = column[k], column[k + 1]
        d = pivot[k]
        if d <= 0:
            continue
        size = b - a
        for s in range(size):
            place[rows[a + s]] = s
            share[s] = weight[a + s] / d
            out[s] = turn[s] = 0.0
            if both:
                drift[s] = (turned[a + s] - share[s] * moved[k]) / d
        for s in range(size):
            j = rows[a + s]
            out[s] += share[s] * own[j]
            if both:
                turn[s] += drift[s] * own[j] + share[s] * bent_own[j]
            found = s + 1
            for q in range(column[j], column[j + 1]):
                if found == size:
                    break
                t = place[rows[q]]
                if t < 0:
                    continue
                found += 1
                z = inverse[q]
                out[s] += share[t] * z
                out[t] += share[s] * z
                if both:
                    y = bent[q]
                    turn[s] += drift[t] * z + share[t] * y
                    turn[t] += drift[s] * z + share[s] * y
        total, drawn = 1.0 / d, 0.0
        if both:
            drawn = -moved[k] / d / d
        for s in range(size):
            inverse[a + s] = out[s]
            total += share[s] * out[s]
            if both:
                bent[a + s] = turn[s]
                drawn += drift[s] * out[s] + share[s] * turn[s]
            place[rows[a + s]] = -1
        own[k], bent_own[k] = total, drawn
    return own, bent_own


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

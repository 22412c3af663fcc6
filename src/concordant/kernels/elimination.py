"""Sparse elimination on weighted graphs: the factor, solutions, entries of the inverse.

The matrix is A = L + diag(e), L the Laplacian of pairs with weights w ≥ 0, e ≥ 0. Eliminating a node k joins its
neighbours (star and mesh): w_ij += w_ik w_jk/d_k, e_i += w_ik e_k/d_k, d_k = e_k + Σ w_ik. Nothing is subtracted, so
factor and inverse are exact to rounding in every entry, however far apart the weights are (Alfa, Xue and Ye, Math.
Comp. 71, 2002). Columns stand in the order of elimination; the rows of a column are ascending.
"""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled

__all__ = ["factorise", "inverse_on_pattern", "potentials", "solve"]


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

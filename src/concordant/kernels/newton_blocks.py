"""Newton's method for smooth surrogates, one strongly connected block of items after the other.

The plain twin is ``concordant.losses.newton``. Systems are Laplacians: eliminating a node adds its
conductances to those between its neighbours, a sum of positive terms, so nothing cancels however far weights are apart.

Value and derivatives of gains against all, pair by pair: no table of pairs is made.

Paths in graphs of bounds α_i − α_j ≥ b: how far strong components fall apart, least differences of items.

The plain twins are ``levels`` of ``concordant.losses.pieces`` and ``smallest_differences`` of
``concordant.losses.argmin_set``.
"""

from __future__ import annotations

import math

import numpy as np

from concordant.kernels.compiled import compiled

LOGISTIC, EXPONENTIAL, SQUARED_HINGE = 0, 1, 2
KINDS = {"logistic": LOGISTIC, "exponential": EXPONENTIAL, "squared-hinge": SQUARED_HINGE}
WIDE, WIDEST = 8.0, 32.0
"""Longest change of a difference in one step, before and after doubling."""
BLIND = 20
"""Steps after which every other one is taken in full: the slope of a whole block does not see parts whose weights are
below the rounding of others."""


@compiled
def _first(kind, t):  # type: ignore[no-untyped-def]
    """φ'."""
    if kind == LOGISTIC:
        return -1.0 / (1.0 + math.exp(t)) if t < 700.0 else -math.exp(-t)
    if kind == EXPONENTIAL:
        return -np.exp(-t)
    return -2.0 * max(1.0 - t, 0.0)


@compiled
def _second(kind, t, first):  # type: ignore[no-untyped-def]
    """φ'', from φ' where that is cheaper."""
    if kind == LOGISTIC:
        return -first / (1.0 + math.exp(-t)) if t > -700.0 else 0.0
    if kind == EXPONENTIAL:
        return -first
    return 2.0 if t < 1.0 else 0.0


def _solve_plainly(n, W, b, d, _, x):  # type: ignore[no-untyped-def]
    """The twin of ``_solve``, row by row; what is above the diagonal of W is overwritten, too."""
    for k in range(n - 1, 0, -1):
        row = W[k, :k]
        d[k] = total = row.sum()
        if total > 0.0:
            share = row / total
            b[:k] += share * b[k]
            W[:k, :k] += share[:, None] * row
    x[0] = 0.0
    for k in range(1, n):
        x[k] = (b[k] + W[k, :k] @ x[:k]) / d[k] if d[k] > 0.0 else 0.0


@compiled(twin=_solve_plainly)
def _solve(n, W, b, d, near, x):  # type: ignore[no-untyped-def]
    """Solve Laplacian(W) x = b with x_0 = 0, and x = 0 at one node of whatever hangs together with nothing else.

    The lower triangle of W is overwritten, and so is b.
    """
    for k in range(n - 1, 0, -1):
        number = 0
        total = 0.0
        for i in range(k):
            if W[k, i] != 0.0:
                near[number] = i
                number += 1
                total += W[k, i]
        d[k] = total
        if total == 0.0:
            continue
        for p in range(number):
            i = near[p]
            share = W[k, i] / total
            b[i] += share * b[k]
            for q in range(p):
                W[i, near[q]] += share * W[k, near[q]]
    x[0] = 0.0
    for k in range(1, n):
        total = b[k]
        for i in range(k):
            total += W[k, i] * x[i]
        x[k] = total / d[k] if d[k] > 0.0 else 0.0


def _derivatives(kind, t):  # type: ignore[no-untyped-def]
    """φ' and φ'' of many."""
    if kind == LOGISTIC:
        first = np.where(t < 700.0, -1.0 / (1.0 + np.exp(t)), -np.exp(-t))
        return first, np.where(t > -700.0, -first / (1.0 + np.exp(-t)), 0.0)
    if kind == EXPONENTIAL:
        return -np.exp(-t), np.exp(-t)
    return -2.0 * np.maximum(1.0 - t, 0.0), np.where(t < 1.0, 2.0, 0.0)


def _slope_plainly(kind, begin, end, weight, gap, move, t):  # type: ignore[no-untyped-def]
    """The twin of ``_slope``."""
    here = slice(begin, end)
    term = weight[here] * _derivatives(kind, gap[here] + t * move[here])[0] * move[here]  # type: ignore[no-untyped-call]
    return term.sum(), 1e-14 * np.abs(term).sum()


@compiled(twin=_slope_plainly)
def _slope(kind, begin, end, weight, gap, move, t):  # type: ignore[no-untyped-def]
    """Derivative along the step at length t, and the size of its rounding."""
    total, terms = 0.0, 0.0
    for e in range(begin, end):
        term = weight[e] * _first(kind, gap[e] + t * move[e]) * move[e]
        total += term
        terms += abs(term)
    return total, 1e-14 * terms


@compiled
def _length(kind, begin, end, weight, gap, move):  # type: ignore[no-untyped-def]
    """How far to go.

    |φ'''| ≤ φ'' for logistic and exponential φ: with r the largest change of a difference the loss falls all the way
    to log(1 + r)/r of the Newton step (no further than WIDE), and to twice that as long as the slope stays negative.
    The squared hinge is quadratic piece by piece: its slope is searched for its zero (Illinois).
    """
    begun, noise = _slope(kind, begin, end, weight, gap, move, 0.0)
    if kind != SQUARED_HINGE:
        r = 0.0
        for e in range(begin, end):
            r = max(r, abs(move[e]))
        if not r > 0.0:
            return 1.0
        t = min(math.log1p(r), WIDE) / r
        while r > 0.5 and 2.0 * t * r < WIDEST:
            if not _slope(kind, begin, end, weight, gap, move, 2.0 * t)[0] < 0.2 * begun:
                break
            t *= 2.0
        return t
    low, at_low, high, at_high, t = 0.0, begun, np.inf, np.inf, 1.0
    for _ in range(60):
        here, noise = _slope(kind, begin, end, weight, gap, move, t)
        if abs(here) <= 1e-3 * abs(begun) + noise or not begun < 0.0:
            break
        if here < 0.0:
            low, at_low = t, here
            at_high *= 0.5
        else:
            high, at_high = t, here
            at_low *= 0.5
        t = 2.0 * t if high == np.inf else low - at_low * (high - low) / (at_high - at_low)
    return t


def _blocks_plainly(  # type: ignore[no-untyped-def]
    kind, node_start, edge_start, winner, loser, weight, offset, first, last, tolerance, most, alpha, steps, settled
):
    """The twin of ``newton_blocks``: the edges of a block at once."""
    for block in range(first, last):
        here, n = slice(edge_start[block], edge_start[block + 1]), int(node_start[block + 1] - node_start[block])
        a, w, h = alpha[node_start[block] : node_start[block + 1]], weight[here], offset[here]
        i, j = winner[here], loser[here]
        for turn in range(most + 1):
            gap = a[i] - a[j] - h
            slope, bend = _derivatives(kind, gap)  # type: ignore[no-untyped-call]
            slope, bend = w * slope, w * bend
            b = np.bincount(j, slope, n) - np.bincount(i, slope, n)
            term = w - slope if kind == SQUARED_HINGE else -slope
            scale = np.bincount(i, term, n) + np.bincount(j, term, n)
            settled[block] = done = bool((np.abs(b) <= tolerance * scale).all())
            if done or turn == most:
                break
            place, held = np.arange(n), int(scale.argmax())
            place[[0, held]] = place[[held, 0]]
            W = np.zeros((n, n))
            np.add.at(W, (np.maximum(place[i], place[j]), np.minimum(place[i], place[j])), bend)
            x, b = np.empty(n), b[place]
            _solve_plainly(n, W, b, np.empty(n), place, x)  # type: ignore[no-untyped-call]
            x = x[place]
            if not np.isfinite(x).all():
                break
            move = x[i] - x[j]
            whole = kind == SQUARED_HINGE and turn > BLIND and turn % 2 == 1
            a += (1.0 if whole else _length(kind, 0, len(w), w, gap, move)) * x
            steps[block] = turn + 1


@compiled(twin=_blocks_plainly)
def newton_blocks(  # type: ignore[no-untyped-def]
    kind, node_start, edge_start, winner, loser, weight, offset, first, last, tolerance, most, alpha, steps, settled
):
    """Minimise Σ w φ(α_i − α_j − h) in the blocks first … last − 1; fill alpha, steps, settled.

    Shapes: ``node_start``, ``edge_start`` (blocks + 1,); edges (edges,), their ends counted within the block; ``alpha``
    (nodes,), begun as 0; ``steps``, ``settled`` (blocks,). Settled: the derivative of each node
    is below tolerance times the terms it is the sum of (and the weights, for a φ that reaches 0). Steps leave the node
    where it is whose terms are the largest: its equation follows from the others, with their rounding.
    """
    widest, most_edges = 0, 0
    for block in range(first, last):
        widest = max(widest, node_start[block + 1] - node_start[block])
        most_edges = max(most_edges, edge_start[block + 1] - edge_start[block])
    W = np.zeros((widest, widest))
    b, d, x, scale = np.empty(widest), np.empty(widest), np.empty(widest), np.empty(widest)
    near = np.empty(widest, np.int64)
    gap, move, bends = np.empty(most_edges), np.empty(most_edges), np.empty(most_edges)
    for block in range(first, last):
        begin, end = edge_start[block], edge_start[block + 1]
        base, n = node_start[block], node_start[block + 1] - node_start[block]
        a = alpha[base : base + n]
        w = weight[begin:end]
        for turn in range(most + 1):
            for i in range(n):
                b[i], scale[i] = 0.0, 0.0
                for j in range(i):
                    W[i, j] = 0.0
            for e in range(end - begin):
                i, j = winner[begin + e], loser[begin + e]
                t = a[i] - a[j] - offset[begin + e]
                slope = _first(kind, t)
                bend = w[e] * _second(kind, t, slope)
                slope *= w[e]
                gap[e] = t
                b[i] -= slope
                b[j] += slope
                term = -slope
                if kind == SQUARED_HINGE:
                    term += w[e]
                scale[i] += term
                scale[j] += term
                bends[e] = bend
            done, held = True, 0
            for i in range(n):
                if not abs(b[i]) <= tolerance * scale[i]:
                    done = False
                if scale[i] > scale[held]:
                    held = i
            settled[block] = done
            if done or turn == most:
                break
            b[0], b[held] = b[held], b[0]
            for e in range(end - begin):
                i, j = winner[begin + e], loser[begin + e]
                i = held if i == 0 else (0 if i == held else i)
                j = held if j == 0 else (0 if j == held else j)
                W[max(i, j), min(i, j)] += bends[e]
            _solve(n, W, b, d, near, x)
            x[0], x[held] = x[held], x[0]
            if not np.isfinite(x[:n]).all():  # weights too far apart for a step: stay, and say so
                break
            for e in range(end - begin):
                move[e] = x[winner[begin + e]] - x[loser[begin + e]]
            if kind == SQUARED_HINGE and turn > BLIND and turn % 2 == 1:
                t = 1.0
            else:
                t = _length(kind, 0, end - begin, w, gap, move)
            for i in range(n):
                a[i] += t * x[i]
            steps[block] = turn + 1


def _gains_plainly(logistic, start, gain, alpha, first, last, value, slope, terms):  # type: ignore[no-untyped-def]
    """The twin of ``pairs_of_gains``: an item with all of its graph."""
    for graph in range(first, last):
        here = slice(start[graph], start[graph + 1])
        g, a = gain[here], alpha[here]
        value[graph] = 0.0
        for j in range(len(g)):
            d = a[j] - np.delete(a, j)
            e = np.exp(-np.abs(d)) if logistic else np.exp(-d)
            win, lose = e, 1.0 / e
            if logistic:
                win, lose = (np.where(d >= 0.0, *ends) / (1.0 + e) for ends in ((e, 1.0), (1.0, e)))
            value[graph] += g[j] * (np.log1p(e) + np.maximum(-d, 0.0) if logistic else e).sum()
            up, down = g[j] * win.sum(), (np.delete(g, j) * lose).sum()
            slope[here.start + j] += down - up
            terms[here.start + j] += down + up


@compiled(twin=_gains_plainly)
def pairs_of_gains(logistic, start, gain, alpha, first, last, value, slope, terms):  # type: ignore[no-untyped-def]
    """Fill value (graphs,) with Σ_{j≠l} g_j φ(α_j − α_l), slope (items,) with its derivative, and terms (items,).

    These are what each derivative is the sum of, all positive; φ is log(1 + e^−t), or e^−t. Each graph first … last − 1
    has items start[g]:start[g + 1], all of positive gain. The twin is ``Objective`` with its edges.
    """
    for graph in range(first, last):
        total = 0.0
        for j in range(start[graph], start[graph + 1]):
            own, mine = 0.0, 0.0
            for k in range(start[graph], j):
                d = alpha[j] - alpha[k]
                if logistic:
                    e = math.exp(-abs(d))
                    log = math.log1p(e)
                    win, lose = (e / (1.0 + e), 1.0 / (1.0 + e)) if d >= 0.0 else (1.0 / (1.0 + e), e / (1.0 + e))
                    total += gain[j] * (log + max(-d, 0.0)) + gain[k] * (log + max(d, 0.0))
                else:
                    win = math.exp(-d)
                    lose = 1.0 / win
                    total += gain[j] * win + gain[k] * lose
                up, down = gain[j] * win, gain[k] * lose
                own += down - up
                mine += down + up
                slope[k] += up - down
                terms[k] += up + down
            slope[j] += own
            terms[j] += mine
        value[graph] = total


@compiled
def longest_paths(start, lower, need, waiting, depth):  # type: ignore[no-untyped-def]
    """Depth of each vertex of an acyclic graph: the largest sum of needs on the way to it, at least 0.

    Edges from vertex v are start[v]:start[v + 1], to ``lower``; ``waiting`` is how many edges lead to each vertex, and
    is used up.
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

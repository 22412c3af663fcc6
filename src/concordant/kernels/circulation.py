"""Hinge losses of strongly connected blocks by the network simplex method.

The dual of min Σ w max(0, c − (α_i − α_j)) is a circulation of the most profit: max Σ c y with 0 ≤ y ≤ w and as much
flowing into each node as out of it; the α are its potentials. The plain twin is a linear programme
(``concordant.losses.hinge``). Trees are strongly feasible (Cunningham, Math. Programming 11, 1976): from every node
some flow can be sent to the root, and degenerate steps cannot go in circles.
"""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled

SLIM = 1e-10
"""Violation of a potential, as a share of the largest cost, that is rounding."""


@compiled
def _arborescence(n, begin, end, winner, loser, parent, arc, up, depth, queue):  # type: ignore[no-untyped-def]
    """A tree of arcs to the root, node 0; False when some node has no way there."""
    start = np.zeros(n + 1, np.int64)
    for e in range(begin, end):
        start[loser[e] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    into = np.empty(end - begin, np.int64)
    for e in range(begin, end):
        into[start[loser[e]]] = e
        start[loser[e]] += 1
    for i in range(n):
        parent[i], arc[i], up[i] = -2, -1, True
    parent[0], depth[0], queue[0] = -1, 0, 0
    found = 1
    at = 0
    while at < found:
        i = queue[at]
        at += 1
        for k in range(start[i - 1] if i > 0 else 0, start[i]):
            j = winner[into[k]]
            if parent[j] == -2:
                parent[j], arc[j], depth[j] = i, into[k], depth[i] + 1
                queue[found] = j
                found += 1
    return found == n


@compiled
def _link(i, parent, child, after, before):  # type: ignore[no-untyped-def]
    p = parent[i]
    before[i], after[i] = -1, child[p]
    if child[p] >= 0:
        before[child[p]] = i
    child[p] = i


@compiled
def _unlink(i, parent, child, after, before):  # type: ignore[no-untyped-def]
    if before[i] >= 0:
        after[before[i]] = after[i]
    else:
        child[parent[i]] = after[i]
    if after[i] >= 0:
        before[after[i]] = before[i]


def _entering_plainly(arcs, at, span, winner, loser, cost, alpha, y, in_tree, slim):  # type: ignore[no-untyped-def]
    """The twin of ``_entering``: the next arcs at once."""
    seen = 0
    while seen < arcs:
        some = np.arange(at, at + min(span, arcs - seen)) % arcs
        wrong = cost[some] - (alpha[winner[some]] - alpha[loser[some]])
        wrong = np.where(in_tree[some], -np.inf, np.where(y[some] > 0.0, -wrong, wrong))
        best = int(wrong.argmax())
        at = (at + len(some)) % arcs
        seen += len(some)
        if wrong[best] > slim:
            return int(some[best]), at
    return -1, at


@compiled(twin=_entering_plainly)
def _entering(arcs, at, span, winner, loser, cost, alpha, y, in_tree, slim):  # type: ignore[no-untyped-def]
    """The arc that its potential contradicts most among the next ones from ``at``, and where to look next."""
    best, worst = -1, slim
    seen = 0
    while seen < arcs:
        for _ in range(min(span, arcs - seen)):
            if not in_tree[at]:
                wrong = cost[at] - (alpha[winner[at]] - alpha[loser[at]])
                if y[at] > 0.0:
                    wrong = -wrong
                if wrong > worst:
                    best, worst = at, wrong
            at = at + 1 if at + 1 < arcs else 0
            seen += 1
        if best >= 0:
            break
    return best, at


@compiled
def _blocking(p, q, free, parent, arc, up, depth, weight, y):  # type: ignore[no-untyped-def]
    """Push along p → q: how much until the last blocking arc, whose lower node is returned (−1: p → q itself), and
    whether that is on p's side; then the node where the cycle closes."""
    out, side = -1, False
    i, j = p, q
    while i != j:
        if depth[i] >= depth[j]:
            i = parent[i]
        else:
            j = parent[j]
    top = i
    i = p
    while i != top:
        rest = y[arc[i]] if up[i] else weight[arc[i]] - y[arc[i]]
        if rest < free:
            free, out, side = rest, i, True
        i = parent[i]
    i = q
    while i != top:
        rest = weight[arc[i]] - y[arc[i]] if up[i] else y[arc[i]]
        if rest <= free:
            free, out, side = rest, i, False
        i = parent[i]
    return free, out, side, top


@compiled
def _push(p, q, top, amount, out, parent, arc, up, weight, y):  # type: ignore[no-untyped-def]
    """Send the amount around the cycle; the leaving arc ends exactly at its bound."""
    for lower in (True, False):
        i = p if lower else q
        while i != top:
            rising = up[i] != lower
            k = arc[i]
            y[k] += amount if rising else -amount
            if i == out:
                y[k] = weight[k] if rising else 0.0
            i = parent[i]


@compiled
def _hang(node, new_parent, new_arc, new_up, out, parent, arc, up, child, after, before):  # type: ignore[no-untyped-def]
    """Turn the path from a node up to ``out`` around and hang the node under its new parent."""
    i = node
    while True:
        above, its_arc, its_up = parent[i], arc[i], up[i]
        _unlink(i, parent, child, after, before)
        parent[i], arc[i], up[i] = new_parent, new_arc, new_up
        _link(i, parent, child, after, before)
        if i == out:
            break
        new_parent, new_arc, new_up = i, its_arc, not its_up
        i = above


@compiled
def _moved(node, change, parent, child, after, depth, alpha):  # type: ignore[no-untyped-def]
    """Add the change to the potentials of the subtree of a node and renew its depths."""
    i = node
    while True:
        depth[i] = depth[parent[i]] + 1
        alpha[i] += change
        if child[i] >= 0:
            i = child[i]
            continue
        while i != node and after[i] < 0:
            i = parent[i]
        if i == node:
            break
        i = after[i]


@compiled
def _exact(parent, arc, up, child, after, cost, alpha):  # type: ignore[no-untyped-def]
    """Potentials from the root down, without the rounding of all the steps."""
    alpha[0] = 0.0
    i = 0
    while True:
        if i > 0:
            alpha[i] = alpha[parent[i]] + (cost[arc[i]] if up[i] else -cost[arc[i]])
        if child[i] >= 0:
            i = child[i]
            continue
        while i != 0 and after[i] < 0:
            i = parent[i]
        if i == 0:
            break
        i = after[i]


def _circulations_plainly(  # type: ignore[no-untyped-def]
    node_start, arc_start, winner, loser, weight, cost, first, last, most, alpha, dual, steps, solved
):
    """The twin of ``circulations``: trees in lists, of which Python reads an entry sooner than of an array."""
    for block in range(first, last):
        arcs, n = slice(arc_start[block], arc_start[block + 1]), int(node_start[block + 1] - node_start[block])
        a = alpha[node_start[block] : node_start[block + 1]]
        w, c, y = weight[arcs], cost[arcs], dual[arcs]
        tail, head = winner[arcs], loser[arcs]
        parent, arc, depth, queue = ([0] * n for _ in range(4))
        up, child, after, before = [True] * n, [-1] * n, [-1] * n, [-1] * n
        ends, costs, weights = (tail.tolist(), head.tolist()), c.tolist(), w.tolist()
        solved[block] = False
        if not _arborescence(n, 0, len(w), *ends, parent, arc, up, depth, queue):
            continue
        in_tree = np.zeros(len(w), np.bool_)
        for i in range(1, n):
            in_tree[arc[i]] = True
            _link(i, parent, child, after, before)
        _exact(parent, arc, up, child, after, costs, a)
        slim, span, at = SLIM * np.abs(c).max(initial=0.0), len(w) if len(w) <= 256 else max(256, len(w) // 32), 0
        for turn in range(most * len(w)):
            enter, at = _entering_plainly(len(w), at, span, tail, head, c, a, y, in_tree, slim)  # type: ignore[no-untyped-call]
            if enter < 0:
                solved[block] = True
                break
            steps[block] = turn + 1
            rising = y[enter] == 0.0
            p, q = (ends[0][enter], ends[1][enter]) if rising else (ends[1][enter], ends[0][enter])
            amount, out, side, top = _blocking(p, q, weights[enter], parent, arc, up, depth, weights, y)
            _push(p, q, top, amount, out, parent, arc, up, weights, y)
            if out < 0:
                y[enter] = weights[enter] if rising else 0.0
                continue
            y[enter] += amount if rising else -amount
            in_tree[arc[out]], in_tree[enter] = False, True
            node, under = (p, q) if side else (q, p)
            goes_up = ends[0][enter] == node
            _hang(node, under, enter, goes_up, out, parent, arc, up, child, after, before)
            change = (a[under] + costs[enter] if goes_up else a[under] - costs[enter]) - a[node]
            _moved(node, change, parent, child, after, depth, a)
        _exact(parent, arc, up, child, after, costs, a)


@compiled(twin=_circulations_plainly)
def circulations(  # type: ignore[no-untyped-def]
    node_start, arc_start, winner, loser, weight, cost, first, last, most, alpha, dual, steps, solved
):
    """Fill potentials and a most profitable circulation of the blocks first … last − 1.

    Shapes: ``node_start``, ``arc_start`` (blocks + 1,); arcs (arcs,), their ends counted within the block; ``alpha``
    (nodes,), ``dual`` (arcs,) begun as 0; ``steps``, ``solved`` (blocks,). ``most`` steps are made for each arc.
    """
    for block in range(first, last):
        begin, end = arc_start[block], arc_start[block + 1]
        base, n = node_start[block], node_start[block + 1] - node_start[block]
        parent, arc, depth = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.int64)
        up = np.empty(n, np.bool_)
        child, after, before = np.full(n, -1, np.int64), np.full(n, -1, np.int64), np.full(n, -1, np.int64)
        queue = np.empty(n, np.int64)
        a = alpha[base : base + n]
        solved[block] = False
        if not _arborescence(n, begin, end, winner, loser, parent, arc, up, depth, queue):
            continue
        in_tree = np.zeros(end - begin, np.bool_)
        w, c, y = weight[begin:end], cost[begin:end], dual[begin:end]
        tail, head = winner[begin:end], loser[begin:end]
        largest = 0.0
        for e in range(end - begin):
            largest = max(largest, abs(c[e]))
        for i in range(1, n):
            arc[i] -= begin
            in_tree[arc[i]] = True
            _link(i, parent, child, after, before)
        _exact(parent, arc, up, child, after, c, a)
        arcs = end - begin
        span = arcs if arcs <= 256 else max(256, arcs // 32)
        at = 0
        for turn in range(most * arcs):
            enter, at = _entering(arcs, at, span, tail, head, c, a, y, in_tree, SLIM * largest)
            if enter < 0:
                solved[block] = True
                break
            steps[block] = turn + 1
            rising = y[enter] == 0.0
            p, q = (tail[enter], head[enter]) if rising else (head[enter], tail[enter])
            amount, out, side, top = _blocking(p, q, w[enter], parent, arc, up, depth, w, y)
            _push(p, q, top, amount, out, parent, arc, up, w, y)
            if out < 0:
                y[enter] = w[enter] if rising else 0.0
                continue
            y[enter] += amount if rising else -amount
            in_tree[arc[out]] = False
            in_tree[enter] = True
            node, under = (p, q) if side else (q, p)
            goes_up = tail[enter] == node
            _hang(node, under, enter, goes_up, out, parent, arc, up, child, after, before)
            change = (a[under] + c[enter] if goes_up else a[under] - c[enter]) - a[node]
            _moved(node, change, parent, child, after, depth, a)
        _exact(parent, arc, up, child, after, c, a)

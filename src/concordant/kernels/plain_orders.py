"""Plain twins of the longest loops of ``concordant.kernels.orders``: all neighbours of a node, or all sets, at once."""

from __future__ import annotations

import numpy as np


def sorted_neighbours(v, start, other, push, key):  # type: ignore[no-untyped-def]
    """Sort the node's neighbours by key, in place."""
    here = slice(start[v], start[v + 1])
    order = key[other[here]].argsort(kind="stable")
    other[here], push[here] = other[here][order], push[here][order]


def best_slot(v, first, last, other, push, key):  # type: ignore[no-untyped-def]
    """The loss before the node where it stands, the least one, and the slot of that."""
    if first == last:
        return 0.0, 0.0, first
    cost, keys = push[first:last].cumsum(), key[other[first:last]]
    passed, at = keys.searchsorted(key[v]), cost.argmin()
    here = cost[passed - 1] if passed else 0.0
    if at + 1 < len(cost) and keys[at] == keys[at + 1]:  # no room there: neighbours at the same number
        cost = np.where(np.append(keys[:-1] < keys[1:], True), cost, np.inf)
        at = cost.argmin()
    return (here, cost[at], first + at + 1) if cost[at] < 0.0 else (here, 0.0, first)


def layers(m):  # type: ignore[no-untyped-def]
    """The sets of m nodes, as numbers, by how many they hold, from one on."""
    sets = np.arange(1 << m)
    size = np.bitwise_count(sets)
    order = np.argsort(size, kind="stable")
    return np.split(sets[order], np.cumsum(np.bincount(size))[:-1])[1:]


def tables(c, m, edge_start, winner, loser, weight):  # type: ignore[no-untyped-def]
    """Σ_{w in S} d_vw for every v and every S of the first half of a component's nodes, then of the second; Σ d."""
    here = slice(edge_start[c], edge_start[c + 1])
    net = np.zeros((m, m))
    net[winner[here], loser[here]] = weight[here]
    found = []
    for part in (net[:, : m // 2], net[:, m // 2 :]):
        table = np.zeros((m, 1 << part.shape[1]))
        for at in range(part.shape[1]):  # the sets whose last node this is: that of the lowest bit, and the rest
            table[:, 1 << at : 2 << at] = part[:, at, None] + table[:, : 1 << at]
        found.append(table)
    return found[0], found[1], float(np.cumsum(weight[here])[-1]) if here.stop > here.start else 0.0


def least(m, low, high):  # type: ignore[no-untyped-def]
    """Least loss of every set of nodes that stands in front; shape (2^m,)."""
    half, mask = m // 2, (1 << (m // 2)) - 1
    best = np.zeros(1 << m)
    for sets in layers(m):  # type: ignore[no-untyped-call]
        found = np.full(len(sets), np.inf)
        for v in range(m):
            held = sets >> v & 1 == 1
            s = sets[held]
            found[held] = np.minimum(found[held], best[s ^ (1 << v)] + low[v, s & mask] + high[v, s >> half])
        best[sets] = found
    return best

"""Paths of acyclic difference graphs that weigh more than the judged pair of their ends."""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled

__all__ = ["heavier_paths"]


@compiled
def heavier_paths(  # type: ignore[no-untyped-def]
    graphs, node_start, steps, level, start, middle, other, net, weight, pair, weights, path, length, whole
):
    """Find in each acyclic graph the judged pair (i, k) with d_ik ≥ 0 that the heaviest path i ⇝ k exceeds the most.

    Rows are those of ``Neighbours``. Filled for every graph of ``graphs`` where there is one: ``pair`` (graphs, 2)
    nodes, ``weights`` (graphs, 2) d_ik and the weight of the path, ``path`` (nodes,) its nodes from the graph's first
    node on and its ``length``; ``whole`` is False where the search ended early after ``steps`` looks at an edge.
    """
    size = 0
    for g in graphs:
        size = max(size, node_start[g + 1] - node_start[g])
    into, order, position = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    parent = np.empty(size, np.int64)
    heavy, mass = np.empty(size), np.empty(size)  # d along the heaviest path, and what rounding is relative to
    for g in graphs:
        low, nodes = node_start[g], node_start[g + 1] - node_start[g]
        into[:nodes] = 0
        for u in range(low, low + nodes):
            for e in range(start[u], middle[u]):
                into[other[e] - low] += 1
        tail = 0
        for u in range(nodes):
            if into[u] == 0:
                order[tail] = u
                tail += 1
        for head in range(nodes):  # acyclic: every node gets its turn
            u = order[head]
            position[u] = head
            for e in range(start[low + u], middle[low + u]):
                v = other[e] - low
                into[v] -= 1
                if into[v] == 0:
                    order[tail] = v
                    tail += 1
        left, worst, done, turn = steps, 0.0, False, 0
        while not done:
            done = turn == nodes or left <= 0
            if done:  # once more from where the worst pair begins, for its path
                whole[g] = turn == nodes
                if pair[g, 0] < 0:
                    break
                turn = position[pair[g, 0] - low]
            root = turn
            turn += 1
            s = order[root]
            for head in range(root, nodes):
                heavy[order[head]] = -1.0
            heavy[s], mass[s] = 0.0, 0.0
            for head in range(root, nodes):
                u = order[head]
                left -= 1
                if heavy[u] < 0:
                    continue
                for e in range(start[low + u], middle[low + u]):
                    v = other[e] - low
                    left -= 1
                    if heavy[u] + net[e] > heavy[v]:
                        heavy[v], mass[v], parent[v] = heavy[u] + net[e], mass[u] + weight[e], u
            if done:
                break
            for e in range(start[low + s], start[low + s + 1]):
                k = other[e] - low
                if net[e] < 0 or heavy[k] < 0 or position[k] <= root:
                    continue
                lack = heavy[k] - net[e]
                if lack > level * (mass[k] + weight[e]) and lack > worst:
                    worst = lack
                    pair[g, 0], pair[g, 1], weights[g, 0], weights[g, 1] = low + s, other[e], net[e], heavy[k]
        if pair[g, 0] >= 0:
            v, count = pair[g, 1] - low, 1
            while v != pair[g, 0] - low:
                v, count = parent[v], count + 1
            v, length[g] = pair[g, 1] - low, count
            for place in range(count - 1, -1, -1):
                path[low + place] = low + v
                v = parent[v]

"""Orders of small directed graphs: topological ones, and the best one by dynamic programming over subsets."""

from __future__ import annotations

import heapq

import numpy as np

from concordant.kernels.compiled import compiled

__all__ = ["over_subsets", "topological"]


@compiled
def topological(vertex_start, edge_start, target, entering, place):  # type: ignore[no-untyped-def]
    """Place of each vertex of each acyclic graph; of the vertices that could come next the first one does.

    Shapes: vertex_start (graphs + 1,), edge_start (vertices + 1,) where the edges out of each vertex begin, target
    (edges,), entering (vertices,) edges into each, used up; place (vertices,) is filled from 0 in each graph.
    """
    for g in range(len(vertex_start) - 1):
        free = [np.int64(v) for v in range(vertex_start[g], vertex_start[g + 1]) if entering[v] == 0]
        heapq.heapify(free)
        at = 0
        while len(free) > 0:
            v = heapq.heappop(free)
            place[v] = at
            at += 1
            for e in range(edge_start[v], edge_start[v + 1]):
                entering[target[e]] -= 1
                if entering[target[e]] == 0:
                    heapq.heappush(free, target[e])


@compiled
def over_subsets(chosen, node_start, edge_start, winner, loser, weight, place, loss):  # type: ignore[no-untyped-def]
    """Order each chosen component so that the weight of its edges that point up is least (exactly).

    best[S] = min over v in S of best[S − v] + Σ_{w in S} d_vw is the least loss with the nodes of S in front, v the
    last of them; the sum is that of two tables, over the nodes before and from the middle. Of equal choices the later
    node stands behind. winner and loser count from 0 in each component. Memory: 8 · 2^nodes bytes.
    """
    for c in chosen:
        m = node_start[c + 1] - node_start[c]
        half = m // 2
        low, high = np.zeros((m, 1 << half)), np.zeros((m, 1 << (m - half)))
        total = 0.0
        for e in range(edge_start[c], edge_start[c + 1]):
            if loser[e] < half:
                low[winner[e], 1 << loser[e]] = weight[e]
            else:
                high[winner[e], 1 << (loser[e] - half)] = weight[e]
            total += weight[e]
        for table in (low, high):
            for v in range(m):
                for s in range(1, table.shape[1]):
                    rest = s & (s - 1)
                    table[v, s] = table[v, rest] + table[v, s ^ rest]
        best = np.zeros(1 << m)
        mask = (1 << half) - 1
        for s in range(1, 1 << m):
            least = np.inf
            for v in range(m):
                if (s >> v) & 1:
                    least = min(least, best[s ^ (1 << v)] + low[v, s & mask] + high[v, s >> half])
            best[s] = least
        s, level = (1 << m) - 1, 1e-12 * total
        loss[c] = best[s]
        for at in range(m - 1, -1, -1):
            v = m - 1
            while not ((s >> v) & 1 and best[s ^ (1 << v)] + low[v, s & mask] + high[v, s >> half] <= best[s] + level):
                v -= 1
            place[node_start[c] + v] = at
            s ^= 1 << v

"""A shortest cycle of each strongly connected component, by breadth-first search from every node."""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled

__all__ = ["shortest_cycles"]


@compiled
def shortest_cycles(bounds, first, last, start, other, weight, steps, cycle, length, least, proven):  # type: ignore[no-untyped-def]
    """Find a shortest cycle of components first … last − 1, among equally long ones that with the heaviest least edge.

    The twin is ``cycle_plainly`` of ``populations.cycles``. Nodes bounds[c]:bounds[c + 1] are a strong component of at
    least two nodes; node u's edges within it are start[u]:start[u + 1]. Filled for each: ``cycle`` from bounds[c] on,
    its ``length``, the weight of its ``least`` edge, and whether the search was ``proven`` complete within ``steps``
    (components,) edges looked at; one cycle is always found when these are at least the component's own.
    """
    size = 0
    for c in range(first, last):
        size = max(size, bounds[c + 1] - bounds[c])
    depth, parent, queue = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    heaviest = np.empty(size)  # of the paths with the fewest edges from the root, the largest least weight
    for c in range(first, last):
        low, nodes = bounds[c], bounds[c + 1] - bounds[c]
        best, best_least, left = nodes + 1, -1.0, steps[c]
        for root in range(nodes):  # cycles through earlier roots are done: only later nodes are gone through
            if left <= 0 or nodes - root < 3:
                break
            depth[root:nodes] = -1
            depth[root], heaviest[root], queue[0] = 0, np.inf, root
            head, tail = 0, 1
            while head < tail and left > 0:
                u = queue[head]
                head += 1
                if depth[u] >= best:
                    break
                for e in range(start[low + u], start[low + u + 1]):
                    left -= 1
                    v = other[e] - low
                    if v < root:
                        continue
                    light = min(heaviest[u], weight[e])
                    if v == root:
                        if depth[u] + 1 < best or light > best_least:
                            best, best_least = depth[u] + 1, light
                            node = u
                            for place in range(depth[u], -1, -1):
                                cycle[low + place] = low + node
                                node = parent[node]
                    elif depth[v] < 0:
                        depth[v], heaviest[v], parent[v] = depth[u] + 1, light, u
                        queue[tail] = v
                        tail += 1
                    elif depth[v] == depth[u] + 1 and light > heaviest[v]:
                        heaviest[v], parent[v] = light, u
        length[c], least[c], proven[c] = best, best_least, left > 0

"""Two-step paths i → j → k of difference graphs held against the pair (i, k)."""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled

__all__ = ["triples"]


@compiled
def triples(todo, base, width, level, start, middle, other, net, weight, counts, shortfall, worst, missing):  # type: ignore[no-untyped-def]
    """Go through all paths i → j → k that begin at the nodes i of ``todo``.

    The twin is ``paths_plainly`` of ``populations.triples``. Rows are those of ``Neighbours``; ``base`` (nodes,) is the
    first node of each node's graph, ``width`` the size of the largest graph. Filled for every node of ``todo``:
    ``counts`` (nodes, 3) paths with (i, k) judged, of these with d_ik < d_ij + d_jk beyond rounding, and with (i, k)
    never judged; ``shortfall`` the largest d_ij + d_jk − d_ik of the violated, ``worst`` (nodes, 2) its j and k;
    ``missing`` (nodes, 2) the first j and k with (i, k) never judged.
    """
    seen = np.full(width, -1, np.int64)
    d, w = np.empty(width), np.empty(width)
    for i in todo:
        for e in range(start[i], start[i + 1]):
            at = other[e] - base[i]
            seen[at], d[at], w[at] = i, net[e], weight[e]
        for e in range(start[i], middle[i]):
            j = other[e]
            for f in range(start[j], middle[j]):
                k = other[f]
                at = k - base[i]
                if seen[at] != i:
                    if counts[i, 2] == 0:
                        missing[i, 0], missing[i, 1] = j, k
                    counts[i, 2] += 1
                    continue
                counts[i, 0] += 1
                lack = net[e] + net[f] - d[at]
                if lack > level * (weight[e] + weight[f] + w[at]):
                    counts[i, 1] += 1
                    if lack > shortfall[i]:
                        shortfall[i] = lack
                        worst[i, 0], worst[i, 1] = j, k

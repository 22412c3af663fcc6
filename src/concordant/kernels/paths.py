"""Packings of edge-disjoint cycles: each must have an edge that points up, so their weight bounds every order's loss.

Weighted: a cycle takes the least weight that is left on its edges from all of them.

A shortest cycle of each strongly connected component, by breadth-first search from every node.

Paths of acyclic difference graphs that weigh more than the judged pair of their ends.

Two-step paths i → j → k of difference graphs held against the pair (i, k).
"""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled


@compiled
def ascending(values):  # type: ignore[no-untyped-def]
    """The order of some numbers, equal ones as they stand."""
    return np.argsort(values, kind="mergesort")


@compiled
def _cycle(e, winner, loser, out_start, left, place, ahead_only, seen, mark, via, queue, level):  # type: ignore[no-untyped-def]
    """Take a shortest cycle through edge e off what is left, of edges that point down but for e when ``ahead_only``.

    Returns (weight taken, steps): 0 when there is none.
    """
    goal, steps = winner[e], 0
    queue[0] = loser[e]
    seen[loser[e]] = mark
    head, tail = 0, 1
    while head < tail and seen[goal] != mark:
        v = queue[head]
        head += 1
        for f in range(out_start[v], out_start[v + 1]):
            w = loser[f]
            steps += 1
            if left[f] <= level or seen[w] == mark:
                continue
            if ahead_only and not (place[v] < place[w] <= place[goal]):
                continue
            seen[w] = mark
            via[w] = f
            queue[tail] = w
            tail += 1
    if seen[goal] != mark:
        return 0.0, steps
    least, v = left[e], goal
    while v != loser[e]:
        least = min(least, left[via[v]])
        v = winner[via[v]]
    v = goal
    left[e] -= least
    while v != loser[e]:
        left[via[v]] -= least
        v = winner[via[v]]
    return least, steps


def _pack_plainly(out_start, winner, loser, weight, place, loss, level, work, rest):  # type: ignore[no-untyped-def]
    """The twin of ``pack``: the nodes that an edge leads to are the bits of one number."""
    m, tail, head = len(out_start) - 1, winner.tolist(), loser.tolist()
    edge = {pair: e for e, pair in enumerate(zip(tail, head))}
    degree, at = np.diff(out_start).tolist(), place.tolist()
    span = place[winner] - place[loser]
    up, urgency = np.flatnonzero(span > 0).tolist(), span[span > 0].astype(np.float64)
    within = [0] * m  # the nodes up to each place
    for v in range(m):
        within[at[v]] = 1 << v
    for p in range(1, m):
        within[p] |= within[p - 1]
    whole = [0] * m
    for v, w, d in zip(tail, head, weight.tolist()):
        whole[v] |= (1 << w) if d > level else 0
    best = 0.0
    rest[:] = weight
    while work > 0 and loss - best > level:
        left, alive, total = weight.tolist(), whole.copy(), 0.0
        order = np.argsort(urgency, kind="stable").tolist()
        for ahead_only in (True, False):
            for i in order:
                e = up[i]
                goal, root = tail[e], head[e]
                while left[e] > level and work > 0:
                    seen, queue, via = 1 << root, [root], {}
                    work -= 8
                    for v in queue:
                        if seen >> goal & 1:
                            break
                        work -= degree[v]
                        new = alive[v] & ~seen
                        if ahead_only:
                            new &= within[at[goal]] & ~within[at[v]]
                        seen |= new
                        while new:
                            low = new & -new
                            w = low.bit_length() - 1
                            via[w] = v
                            queue.append(w)
                            new ^= low
                    if not seen >> goal & 1:
                        break
                    path, v = [e], goal
                    while v != root:
                        path.append(edge[via[v], v])
                        v = via[v]
                    taken = min(left[f] for f in path)
                    for f in path:
                        left[f] -= taken
                        if left[f] <= level:
                            alive[tail[f]] &= ~(1 << head[f])
                    total += taken
                    if taken == 0.0:
                        break
                if ahead_only and left[e] > level:
                    urgency[i] -= m
        if total > best:
            best = total
            rest[:] = left
    return best


@compiled(twin=_pack_plainly)
def pack(out_start, winner, loser, weight, place, loss, level, work, rest):  # type: ignore[no-untyped-def]
    """The largest weight of cycles packed within the work; edges stand by winner.

    Cycles of one edge up are packed first: were all edges up of the order used up, the order would be proven best. In
    each round those edges come first that found no way in the last.
    """
    m, edges = len(out_start) - 1, len(winner)
    seen, via, queue = np.zeros(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    count = 0
    for e in range(edges):
        count += place[winner[e]] > place[loser[e]]
    up, urgency = np.empty(count, np.int64), np.empty(count)
    count = 0
    for e in range(edges):
        span = place[winner[e]] - place[loser[e]]
        if span > 0:
            up[count], urgency[count] = e, span
            count += 1
    best, mark = 0.0, 0
    rest[:] = weight
    left = np.empty(edges)
    while work > 0 and loss - best > level:
        left[:] = weight
        total = 0.0
        order = ascending(urgency)
        for ahead_only in (True, False):
            for i in order:
                e = up[i]
                while left[e] > level and work > 0:
                    mark += 1
                    taken, steps = _cycle(
                        e, winner, loser, out_start, left, place, ahead_only, seen, mark, via, queue, level
                    )
                    work -= steps + 8
                    total += taken
                    if taken == 0.0:
                        break
                if ahead_only and left[e] > level:
                    urgency[i] -= m
        if total > best:
            best = total
            rest[:] = left
    return best


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

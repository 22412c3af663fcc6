"""Orders of small directed graphs: topological ones, and the best one by dynamic programming over subsets.

Insertion moves in the order of a directed graph, and kicks that turn an edge that points up.

A node stands at a number, its key; only keys of neighbours are compared, so a move costs the node's edges and no more.

Local search for the best order of a directed graph, led by packings of cycles that bound it from below.

Edges that a packing of cycles does not use up form no cycle, and in a best order few of them point up: random
topological orders of these edges are where the search begins again.
"""

from __future__ import annotations

import heapq

import numpy as np

from concordant.kernels.compiled import compiled
from concordant.kernels.draws import ONE, S40, below, copy
from concordant.kernels.paths import ascending, pack
from concordant.kernels.plain_orders import best_slot, least, sorted_neighbours, tables


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


@compiled(twin=tables)
def _tables(c, m, edge_start, winner, loser, weight):  # type: ignore[no-untyped-def]
    """Σ_{w in S} d_vw for every v and every S of the first half of a component's nodes, then of the second; Σ d."""
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
    return low, high, total


@compiled(twin=least)
def _least(m, low, high):  # type: ignore[no-untyped-def]
    """Least loss of every set of nodes that stands in front; shape (2^m,)."""
    half, mask = m // 2, (1 << (m // 2)) - 1
    best = np.zeros(1 << m)
    for s in range(1, 1 << m):
        least = np.inf
        for v in range(m):
            if (s >> v) & 1:
                least = min(least, best[s ^ (1 << v)] + low[v, s & mask] + high[v, s >> half])
        best[s] = least
    return best


@compiled
def over_subsets(chosen, node_start, edge_start, winner, loser, weight, place, loss):  # type: ignore[no-untyped-def]
    """Order each chosen component so that the weight of its edges that point up is least (exactly).

    best[S] = min over v in S of best[S − v] + Σ_{w in S} d_vw is the least loss with the nodes of S in front, v the
    last of them; the sum is that of two tables, over the nodes before and from the middle. Of equal choices the later
    node stands behind. winner and loser count from 0 in each component. Memory: 8 · 2^nodes bytes.
    """
    for c in chosen:
        m = node_start[c + 1] - node_start[c]
        half, mask = m // 2, (1 << (m // 2)) - 1
        low, high, total = _tables(c, m, edge_start, winner, loser, weight)
        best = _least(m, low, high)
        s, level = (1 << m) - 1, 1e-12 * total
        loss[c] = best[s]
        for at in range(m - 1, -1, -1):
            v = m - 1
            while not ((s >> v) & 1 and best[s ^ (1 << v)] + low[v, s & mask] + high[v, s >> half] <= best[s] + level):
                v -= 1
            place[node_start[c] + v] = at
            s ^= 1 << v


@compiled
def stretches(chosen, node_start, edge_start, winner, loser, weight, offset):  # type: ignore[no-untyped-def]
    """Where the items of each chosen component stand in all of its best orders, from its middle, in half places.

    An order is best when every step S → S + v of it has best[S] + cost + rest[S + v] = best[all], rest[S] the least
    loss of what follows S. Two items that stand either way in best orders, or are joined by such items, share the
    middle of the places that they take up; all others stand one way in every best order.
    """
    for c in chosen:
        m = node_start[c + 1] - node_start[c]
        half, mask, full = m // 2, (1 << (m // 2)) - 1, (1 << m) - 1
        low, high, total = _tables(c, m, edge_start, winner, loser, weight)
        best, rest, level = _least(m, low, high), np.zeros(1 << m), 1e-12 * total
        behind = np.zeros(m, np.int64)  # which items may stand behind each
        for s in range(full - 1, -1, -1):
            least = np.inf
            for v in range(m):
                if (s >> v) & 1 == 0:
                    cost = low[v, s & mask] + high[v, s >> half] + rest[s | (1 << v)]
                    least = min(least, cost)
                    if best[s] + cost <= best[full] + level:
                        behind[v] |= full ^ (s | (1 << v))
            rest[s] = least
        for v in range(m):
            stretch, ahead = 1 << v, 0
            for _ in range(m):
                for u in range(m):
                    if (stretch >> u) & 1:
                        for w in range(m):
                            if (behind[u] >> w) & 1 and (behind[w] >> u) & 1:
                                stretch |= 1 << w
            size = 0
            for w in range(m):
                size += (stretch >> w) & 1
                ahead += (stretch >> w) & 1 == 0 and (behind[w] >> v) & 1
            offset[node_start[c] + v] = 2 * ahead + size - m


@compiled
def runs(chosen, node_start, edge_start, winner, loser, place, offset):  # type: ignore[no-untyped-def]
    """Where the items of each chosen component stand, from its middle, in half places, by the places of an order.

    Neighbours without an edge between any two of them share the middle of their places, from the front.
    """
    for c in chosen:
        begin, m = node_start[c], node_start[c + 1] - node_start[c]
        latest, turn = np.full(m, -1), np.empty(m, np.int64)
        for v in range(m):
            turn[place[begin + v]] = v
        for e in range(edge_start[c], edge_start[c + 1]):
            one, other = place[begin + winner[e]], place[begin + loser[e]]
            latest[max(one, other)] = max(latest[max(one, other)], min(one, other))
        first = 0
        while first < m:
            last = first + 1
            while last < m and latest[last] < first:
                last += 1
            for at in range(first, last):
                offset[begin + turn[at]] = first + last - m
            first = last


@compiled
def chains(order, edge_start, target, size, above, below):  # type: ignore[no-untyped-def]
    """Items in the longest chain above each vertex of an acyclic graph and below it.

    Shapes: order (vertices,) topological, edge_start (vertices + 1,), target (edges,), size (vertices,) items of each;
    above, below (vertices,), zeros to begin with.
    """
    for v in order:
        for e in range(edge_start[v], edge_start[v + 1]):
            above[target[e]] = max(above[target[e]], above[v] + size[v])
    for v in order[::-1]:
        for e in range(edge_start[v], edge_start[v + 1]):
            below[v] = max(below[v], below[target[e]] + size[target[e]])


GOLDEN = 0.6180339887498949


@compiled
def incidence(m, winner, loser, weight):  # type: ignore[no-untyped-def]
    """Neighbours of each node with the weight of the edge between, negative for edges in: (start, other, push).

    ``push`` is what the loss gains when the node passes the neighbour on its way down.
    """
    start = np.zeros(m + 1, np.int64)
    for e in range(len(winner)):
        start[winner[e] + 1] += 1
        start[loser[e] + 1] += 1
    for v in range(m):
        start[v + 1] += start[v]
    fill = start[:-1].copy()
    other, push = np.empty(2 * len(winner), np.int64), np.empty(2 * len(winner))
    for e in range(len(winner)):
        v, w = winner[e], loser[e]
        other[fill[v]], push[fill[v]] = w, weight[e]
        fill[v] += 1
        other[fill[w]], push[fill[w]] = v, -weight[e]
        fill[w] += 1
    return start, other, push


@compiled
def _sort_neighbours(first, last, other, push, key):  # type: ignore[no-untyped-def]
    size = last - first
    values, held, pushes = np.empty(size), np.empty(size, np.int64), np.empty(size)
    for i in range(size):
        values[i], held[i], pushes[i] = key[other[first + i]], other[first + i], push[first + i]
    order = ascending(values)
    for i in range(size):
        other[first + i], push[first + i] = held[order[i]], pushes[order[i]]


@compiled(twin=sorted_neighbours)
def _sorted_neighbours(v, start, other, push, key):  # type: ignore[no-untyped-def]
    """Sort the node's neighbours by key, in place: they nearly are, from the last time."""
    first, last = start[v], start[v + 1]
    moves = 0
    for e in range(first + 1, last):
        w, p = other[e], push[e]
        f = e
        while f > first and key[other[f - 1]] > key[w]:
            other[f], push[f] = other[f - 1], push[f - 1]
            f -= 1
        other[f], push[f] = w, p
        moves += e - f
        if moves > 16 * (last - first):
            _sort_neighbours(first, last, other, push, key)
            return


@compiled
def _slot_key(slot, v, start, other, key):  # type: ignore[no-untyped-def]
    """A key between the neighbours slot − 1 and slot; NaN when there is no number left between them."""
    first, last = start[v], start[v + 1]
    if slot == first:
        return key[other[first]] - 1.0
    left = key[other[slot - 1]]
    if slot == last:
        return left + 1.0
    right = key[other[slot]]
    middle = left + (0.25 + 0.5 * ((v * GOLDEN) % 1.0)) * (right - left)  # no two nodes at the same number
    return middle if left < middle < right else np.nan


@compiled(twin=best_slot)
def _best_slot(v, first, last, other, push, key):  # type: ignore[no-untyped-def]
    """The loss before the node where it stands, the least one, and the slot of that."""
    cost, here, least, slot = 0.0, 0.0, 0.0, first
    for e in range(first, last):
        cost += push[e]
        if key[other[e]] < key[v]:
            here = cost
        if cost < least and (e + 1 == last or key[other[e]] < key[other[e + 1]]):
            least, slot = cost, e + 1
    return here, least, slot


@compiled
def _renumber(key):  # type: ignore[no-untyped-def]
    order = ascending(key)
    for at in range(len(order)):
        key[order[at]] = at


@compiled
def _settle(start, other, push, key, queue, waiting, held, moved, level, work):  # type: ignore[no-untyped-def]
    """Move queued nodes to their best places, and their neighbours, until none gains; (gain, work left, moves).

    moves is −1 when keys were renumbered, else the first entries of ``moved`` tell which nodes moved (or none more
    than it holds are told).
    """
    m = len(key)
    gain, head, moves, renumbered = 0.0, 0, 0, False
    while held > 0 and work > 0:
        v = queue[head]
        head = head + 1 if head + 1 < m else 0
        held -= 1
        waiting[v] = False
        while True:
            _sorted_neighbours(v, start, other, push, key)
            first, last = start[v], start[v + 1]
            work -= last - first + 4
            here, least, slot = _best_slot(v, first, last, other, push, key)
            if here - least <= level:
                break
            new = _slot_key(slot, v, start, other, key)
            if not np.isnan(new):
                key[v] = new
                gain += here - least
                if moves < len(moved):
                    moved[moves] = v
                moves += 1
                for e in range(first, last):
                    w = other[e]
                    if not waiting[w]:
                        waiting[w] = True
                        tail = head + held
                        queue[tail if tail < m else tail - m] = w
                        held += 1
                break
            _renumber(key)
            work -= 16 * m  # as much as sorting takes
            renumbered = True
    while held > 0:
        waiting[queue[head]] = False
        head = head + 1 if head + 1 < m else 0
        held -= 1
    return gain, work, -1 if renumbered or moves > len(moved) else moves


@compiled
def descend(start, other, push, key, level, work):  # type: ignore[no-untyped-def]
    """Insertion moves from every node to a local optimum, or to the end of the work: work left."""
    m = len(key)
    queue, waiting, moved = np.arange(m), np.ones(m, np.bool_), np.empty(0, np.int64)
    _, work, _ = _settle(start, other, push, key, queue, waiting, m, moved, level, work)
    return work


@compiled
def keep_improving(winner, loser, weight, start, other, push, key, bound, level, seed, work):  # type: ignore[no-untyped-def]
    """Kick a local optimum and settle it again as long as there is work and the loss exceeds the bound.

    A kick takes an edge that points up and moves its winner to just above its loser, or its loser to just below. A
    kick that does not raise the loss is kept.
    """
    m, edges = len(key), len(winner)
    queue, waiting, moved = np.empty(m, np.int64), np.zeros(m, np.bool_), np.empty(m, np.int64)
    saved = key.copy()
    loss = charged(winner, loser, weight, key)
    counter = np.uint64(0)
    while work > 0 and loss - bound > level:
        e, tries = 0, 0
        while tries < 64:
            e = below(seed, counter, edges)
            counter += ONE
            tries += 1
            if key[winner[e]] > key[loser[e]]:
                break
        work -= tries
        v, w = winner[e], loser[e]
        if below(seed, counter, 2) == 1:
            v, w = w, v
        counter += ONE
        _sorted_neighbours(v, start, other, push, key)
        before, after, slot = 0.0, 0.0, start[v]
        for f in range(start[v], start[v + 1]):
            if key[other[f]] < key[v]:
                before += push[f]
            if other[f] == w:
                slot = f if v == winner[e] else f + 1
        for f in range(start[v], slot):
            after += push[f]
        work -= start[v + 1] - start[v]
        new = _slot_key(slot, v, start, other, key)
        if np.isnan(new):
            _renumber(key)
            copy(key, m, saved)
            continue
        key[v] = new
        held = 0
        for f in range(start[v], start[v + 1]):
            queue[held] = other[f]
            waiting[other[f]] = True
            held += 1
        gain, work, moves = _settle(start, other, push, key, queue, waiting, held, moved, level, work)
        change = after - before - gain
        kept = change <= level
        if kept:
            loss += change
        left, right = (saved, key) if kept else (key, saved)
        if moves < 0:
            copy(right, m, left)
        else:
            left[v] = right[v]
            for i in range(moves):
                left[moved[i]] = right[moved[i]]


@compiled
def charged(winner, loser, weight, key):  # type: ignore[no-untyped-def]
    """Weight of the edges whose winner stands behind their loser."""
    total = 0.0
    for e in range(len(winner)):
        if key[winner[e]] > key[loser[e]]:
            total += weight[e]
    return total


@compiled
def ranks(key):  # type: ignore[no-untyped-def]
    """Places 0 … m − 1 by key; equal keys (of nodes without an edge between) by number."""
    place = np.empty(len(key), np.int64)
    order = ascending(key)
    for at in range(len(key)):
        place[order[at]] = at
    return place


TURNS = 30
"""Random orders that the search begins from, after the first two."""
PACKING = 10
"""Visits per edge for the packing before each of them."""


@compiled
def peel(start, other, push, key):  # type: ignore[no-untyped-def]
    """Keys of a greedy order (Eades, Lin and Smyth 1993, with weights): sources to the front, sinks to the back, else
    the node whose edges out outweigh those in by most to the front."""
    m = len(start) - 1
    lead, ins, outs = np.zeros(m), np.zeros(m, np.int64), np.zeros(m, np.int64)
    heap = [(0.0, np.int64(0)) for _ in range(0)]
    ends = [np.int64(0) for _ in range(0)]
    for u in range(m):
        for e in range(start[u], start[u + 1]):
            lead[u] += push[e]
            if push[e] > 0:
                outs[u] += 1
            else:
                ins[u] += 1
        heapq.heappush(heap, (-lead[u], np.int64(u)))
        if ins[u] == 0 or outs[u] == 0:
            ends.append(np.int64(u))
    front, back = 0, m - 1
    placed = np.zeros(m, np.bool_)
    while front <= back:
        if len(ends) > 0:
            v = ends.pop()
            if placed[v]:
                continue
        else:
            least, v = heapq.heappop(heap)
            if placed[v] or -least != lead[v]:
                continue
        placed[v] = True
        if outs[v] == 0 and ins[v] > 0:
            key[v] = back
            back -= 1
        else:
            key[v] = front
            front += 1
        for e in range(start[v], start[v + 1]):
            w = other[e]
            if placed[w]:
                continue
            lead[w] += push[e]
            if push[e] > 0:
                ins[w] -= 1
            else:
                outs[w] -= 1
            if ins[w] == 0 or outs[w] == 0:
                ends.append(w)
            else:
                heapq.heappush(heap, (-lead[w], w))


@compiled
def unblocked(out_start, loser, rest, level, key, seed, counter, new):  # type: ignore[no-untyped-def]
    """A random topological order of the edges that a packing left some weight of: the others alone point up.

    Where the packing was cut short there may be cycles left: what they hold back follows in the order of ``key``.
    """
    m = len(new)
    entering, placed = np.zeros(m, np.int64), np.zeros(m, np.bool_)
    for e in range(len(loser)):
        entering[loser[e]] += rest[e] > level
    free, held, at = np.empty(m, np.int64), 0, 0
    for v in range(m):
        if entering[v] == 0:
            free[held] = v
            held += 1
    while held > 0:
        i = below(seed, counter, held)
        counter += ONE
        v = free[i]
        held -= 1
        free[i] = free[held]
        new[v], placed[v] = at, True
        at += 1
        for e in range(out_start[v], out_start[v + 1]):
            w = loser[e]
            if rest[e] > level:
                entering[w] -= 1
                if entering[w] == 0:
                    free[held] = w
                    held += 1
    if at < m:
        for v in ascending(key):
            if not placed[v]:
                new[v] = at
                at += 1


@compiled
def search(chosen, node_start, edge_start, winner, loser, weight, seed, work, least, place, loss, bound, whole, grid):  # type: ignore[no-untyped-def]
    """Order each chosen component by local search; its loss, a lower bound, and whether a local optimum was reached.

    ``work`` limits the visits of edges by kicks and by the last packing, ``least`` (per edge) all others.
    winner and loser count from 0 in each component, edges stand by winner; ``grid`` as
    in ``concordant.ranking.best_orders``.
    """
    for c in chosen:
        first, last = edge_start[c], edge_start[c + 1]
        up, down, d = winner[first:last], loser[first:last], weight[first:last]
        m = node_start[c + 1] - node_start[c]
        start, other, push = incidence(m, up, down, d)
        out_start = np.zeros(m + 1, np.int64)
        level = 0.0
        for e in range(len(d)):
            out_start[up[e] + 1] += 1
            level += 1e-12 * d[e]
        for v in range(m):
            out_start[v + 1] += out_start[v]
        spare = work + least * len(d)
        key, new, rest = np.empty(m), np.empty(m), np.empty(len(d))
        value, best = np.inf, 0.0
        whole[c] = True
        for turn in range(TURNS + 2):
            if turn == 0:
                for v in range(m):
                    new[v] = v
            elif turn == 1:
                peel(start, other, push, new)
            else:
                best = max(best, pack(out_start, up, down, d, ranks(key), value, level, PACKING * len(d), rest))
                best = _on_grid(best, grid[c])
                spare -= PACKING * len(d)
                if spare <= 0 or value - best <= level:
                    break
                unblocked(out_start, down, rest, level, key, seed, np.uint64(turn) << S40, new)
            spare = descend(start, other, push, new, level, spare)
            if turn <= 1:
                whole[c] &= spare > 0
            else:
                share = min(spare, work // TURNS)
                keep_improving(up, down, d, start, other, push, new, best, level, seed + np.uint64(turn), share)
                spare -= share
            found = charged(up, down, d, new)
            if found <= value:
                value = found
                copy(new, m, key)
        if value - best > level:
            best = max(best, pack(out_start, up, down, d, ranks(key), value, level, max(work, PACKING * len(d)), rest))
        order = ascending(key)
        for at in range(m):
            place[node_start[c] + order[at]] = at
        loss[c], bound[c] = value, _on_grid(best, grid[c])


@compiled
def _on_grid(bound, grid):  # type: ignore[no-untyped-def]
    """A loss that is a multiple of the grid (where that is not 0) is at least the next one."""
    return max(bound, np.ceil(bound / grid - 1e-6) * grid) if grid > 0.0 else bound

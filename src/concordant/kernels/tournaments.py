"""Tables of wins with the same totals, drawn evenly: cycles of wins turned round, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concordant.kernels.compiled import compiled
from concordant.kernels.draws import FIRST, GAMMA, ONE, S11, S27, S30, S31, SECOND, below

TOGETHER = 1 << 16
"""Numbers that the plain twin draws at a time."""


@compiled
def turn_cycles(moves, seed, counter, slot_start, target, pair, forward, wins, stamp, way, taken):  # type: ignore[no-untyped-def]
    """Turn ``moves`` directed cycles of wins round, in place.

    From an even start a walk follows wins, each with the same chance, to the first item that it meets again; the cycle
    that it closed is turned. Totals of wins stay, and so does the chance of every cycle, either way: the tables that
    are reached are even (a symmetric chain on the orientations with these totals, which cycles connect).
    """
    items = len(slot_start) - 1
    for _ in range(moves):
        v = below(seed, counter, items)
        counter += ONE
        length = 0
        while stamp[v] < 0 and slot_start[v] < slot_start[v + 1]:
            stamp[v] = length
            slot = slot_start[v] + below(seed, counter, slot_start[v + 1] - slot_start[v])
            counter += ONE
            way[length], taken[length] = v, slot
            length += 1
            v = target[slot]
        begin = stamp[v]
        for at in range(length):
            stamp[way[at]] = -1
        if begin < 0:
            continue  # an item that never won ends the walk
        last_pair, last_forward, last = pair[taken[length - 1]], forward[taken[length - 1]], way[length - 1]
        for at in range(begin, length):
            slot = taken[at]
            own_pair, own_forward, own = pair[slot], forward[slot], way[at]
            wins[last_pair] += -1 if last_forward else 1
            target[slot], pair[slot], forward[slot] = last, last_pair, not last_forward
            last_pair, last_forward, last = own_pair, own_forward, own
    return counter


def _units(seed: int) -> Iterator[float]:
    """The uniform numbers that ``below`` makes its integers of, counter by counter."""
    for begin in range(0, 1 << 62, TOGETHER):
        z = np.uint64(seed) + (np.arange(begin, begin + TOGETHER, dtype=np.uint64) + ONE) * GAMMA
        z = (z ^ (z >> S30)) * FIRST
        z = (z ^ (z >> S27)) * SECOND
        yield from (((z ^ (z >> S31)) >> S11).astype(np.float64) * 2.0**-53).tolist()


def _turn_plainly(moves, draw, owner, begins, sizes, target, pair, forward, wins, stamp):  # type: ignore[no-untyped-def]
    """``turn_cycles`` on lists; a uniform number times n is below n in floats, too."""
    items = len(sizes)
    for _ in range(moves):
        v = int(draw() * items)
        taken, length = [], 0
        while stamp[v] < 0 and sizes[v]:
            stamp[v] = length
            length += 1
            slot = begins[v] + int(draw() * sizes[v])
            taken.append(slot)
            v = target[slot]
        begin = stamp[v]
        for slot in taken:
            stamp[owner[slot]] = -1
        if begin < 0:
            continue
        last_pair, last_forward, last = pair[slot], forward[slot], owner[slot]
        for slot in taken[begin:]:
            wins[last_pair] += -1 if last_forward else 1
            own_pair, own_forward = pair[slot], forward[slot]
            target[slot], pair[slot], forward[slot] = last, last_pair, not last_forward
            last_pair, last_forward, last = own_pair, own_forward, owner[slot]


def _totals_plainly(moves, seed, slot_start, target, pair, forward, wins, expected, variance, found):  # type: ignore[no-untyped-def]
    """The twin of ``with_the_same_totals``: lists, of which Python reads an entry sooner than of an array."""
    draw, sizes = _units(seed).__next__, np.diff(slot_start)
    items = np.repeat(np.arange(len(sizes)), sizes).tolist(), slot_start[:-1].tolist(), sizes.tolist()
    hub = target.tolist(), pair.tolist(), forward.tolist(), wins.tolist()
    stamp, table = [-1] * len(sizes), hub
    for at in range(len(found)):
        if at > 0:
            _turn_plainly(moves, draw, *items, *table, stamp)  # type: ignore[no-untyped-call]
            if at == 1:
                hub = tuple(column.copy() for column in table)
                _turn_plainly(moves, draw, *items, *table, stamp)  # type: ignore[no-untyped-call]
        terms = (np.array(table[3]) - expected) ** 2 / variance
        found[at] = np.cumsum(terms)[-1] if len(terms) else 0.0  # one after the other, as the loop adds
        table = tuple(column.copy() for column in hub)


@compiled(twin=_totals_plainly)
def with_the_same_totals(moves, seed, slot_start, target, pair, forward, wins, expected, variance, found):  # type: ignore[no-untyped-def]
    """Pearson's statistic of tables with the totals of wins of one table: exchangeable with its own (found[0]).

    From the table ``moves`` cycles lead to a hub, and from the hub as many to each of the tables (Besag & Clifford,
    Biometrika 76, 1989). Shapes: slot_start (items + 1,), the wins of each item; target, pair, forward (wins,): over
    whom, in which pair, and whether the item is the pair's first; wins, expected, variance (pairs,) of the pair's
    first.
    """
    items = len(slot_start) - 1
    stamp, way, taken = np.full(items, -1), np.empty(items, np.int64), np.empty(items, np.int64)
    counter = np.uint64(0)
    targets, pairs, forwards, won = target.copy(), pair.copy(), forward.copy(), wins.copy()
    for at in range(len(found)):
        if at > 0:
            counter = turn_cycles(moves, seed, counter, slot_start, targets, pairs, forwards, won, stamp, way, taken)
            if at == 1:  # this was the hub
                target[:], pair[:], forward[:], wins[:] = targets, pairs, forwards, won
                counter = turn_cycles(
                    moves, seed, counter, slot_start, targets, pairs, forwards, won, stamp, way, taken
                )
        total = 0.0
        for p in range(len(won)):
            total += (won[p] - expected[p]) ** 2 / variance[p]
        found[at] = total
        if at > 0:
            targets[:], pairs[:], forwards[:], won[:] = target, pair, forward, wins

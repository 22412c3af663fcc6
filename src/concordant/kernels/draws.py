"""Draws without replacement from counters: compiled twins of ``concordant.preferences.sampling``."""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S11, S27, S30, S31, S40 = (np.uint64(bits) for bits in (11, 27, 30, 31, 40))
ONE, TURNS = np.uint64(1), np.uint64(1 << 62)
WHOLE = (1 << 64) - 1
HASH = GAMMA
"""What a number is multiplied by to find its place in a table."""


def _below_plainly(key, counter, n):  # type: ignore[no-untyped-def]
    """The twin of ``below``: whole numbers of Python do not overflow."""
    z = (int(key) + (int(counter) + 1) * 0x9E3779B97F4A7C15) & WHOLE
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WHOLE
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WHOLE
    return min(int(((z ^ (z >> 31)) >> 11) * 2.0**-53 * int(n)), int(n) - 1)


@compiled(twin=_below_plainly)
def below(key, counter, n):  # type: ignore[no-untyped-def]
    """An integer of 0 … n − 1 from (key, counter): SplitMix64."""
    z = key + (counter + ONE) * GAMMA
    z = (z ^ (z >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SECOND
    z = z ^ (z >> S31)
    unit = np.float64(np.int64(z >> S11)) * 2.0**-53
    return min(np.int64(unit * n), n - 1)


@compiled
def shuffle(cards, total, first, last, key, counter):  # type: ignore[no-untyped-def]
    """Steps first … last − 1 of the Fisher–Yates shuffle of cards[:total]."""
    for i in range(first, last):
        j = i + below(key, counter + np.uint64(i), np.int64(total - i))
        card = cards[i]
        cards[i] = cards[j]
        cards[j] = card


@compiled
def collect(total, k, key, counter, table, found):  # type: ignore[no-untyped-def]
    """The first k distinct numbers of a sequence drawn with replacement."""
    mask = np.uint64(len(table) - 1)
    fill(table, len(table), -1)
    held = 0
    slot = np.uint64(0)
    while held < k:
        x = below(key, counter + slot, total)
        slot += ONE
        place = ((np.uint64(x) * HASH) >> S31) & mask
        while table[place] != -1 and table[place] != x:
            place = (place + ONE) & mask
        if table[place] == -1:
            table[place] = x
            found[held] = x
            held += 1


@compiled
def fill(array, length, value):  # type: ignore[no-untyped-def]
    for i in range(length):  # a slice would take Numba seconds more to compile
        array[i] = value


@compiled
def copy(source, length, target):  # type: ignore[no-untyped-def]
    for i in range(length):
        target[i] = source[i]


@compiled
def table_size(entries):  # type: ignore[no-untyped-def]
    size = 4
    while size < 2 * entries:
        size *= 2
    return size


@compiled
def shuffled(total, key, nth, k, picked):  # type: ignore[no-untyped-def]
    """Row r of picked is draw nth[r] of k out of total[r]; the smaller of the chosen and the left is shuffled out."""
    cards = np.empty(total.max(), np.int64)
    for r in range(len(total)):
        n = total[r]
        for i in range(n):
            cards[i] = i
        steps = min(k, n - k)
        shuffle(cards, n, 0, steps, key[r], np.uint64(nth[r]) << S40)
        begin = steps if steps < k else 0
        for i in range(k):
            picked[r, i] = cards[begin + i]


@compiled
def blocks(total, key, nth, k, picked):  # type: ignore[no-untyped-def]
    """Row r of picked is block nth[r] of random permutations, each cut into ⌊total / k⌋ blocks."""
    cards = np.empty(total.max(), np.int64)
    done = 0
    for r in range(len(total)):
        n = total[r]
        rounds = n // k
        turn, block = nth[r] // rounds, nth[r] % rounds
        if r == 0 or key[r] != key[r - 1] or nth[r] <= nth[r - 1] or turn != nth[r - 1] // rounds:
            done = 0
            for i in range(n):
                cards[i] = i
        shuffle(cards, n, done, (block + 1) * k, key[r], TURNS + (np.uint64(turn) << S40))
        done = (block + 1) * k
        for i in range(k):
            picked[r, i] = cards[block * k + i]


@compiled
def collected(total, key, nth, k, picked):  # type: ignore[no-untyped-def]
    """Row r of picked is draw nth[r] of k out of total[r], much more than k."""
    table = np.empty(table_size(k), np.int64)
    for r in range(len(total)):
        collect(total[r], k, key[r], np.uint64(nth[r]) << S40, table, picked[r])

"""Random draws of judgments that depend on the query's label and the seed alone: not on batch, order or threads.

Numbers come from a counter: draw c of query q is ``mix(key_q + c · γ)`` with the SplitMix64 finaliser (Steele, Lea &
Flood, OOPSLA 2014), so any part can be computed by itself.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.labels import Labels

__all__ = ["deal", "draw_subsets", "label_keys", "uniform_bits", "whole_seed"]

Keys = NDArray[np.uint64]
Offsets = NDArray[np.int64]

CARDS = 1 << 22
"""Judgments that are shuffled at a time, and the most of one query (or 256 of each distinct judgment)."""
LONGEST = 1 << 27
"""Judgments of a query up to which permutations of them are drawn."""
_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def whole_seed(seed: int) -> int:
    """Return the seed when it is an integer of at most 127 bits, else raise UsageError."""
    if not isinstance(seed, int | np.integer) or abs(int(seed)) >= 1 << 127:
        raise UsageError(f"a seed is an integer of at most 127 bits, not {seed!r}")
    return int(seed)


def label_keys(labels: Labels, seed: int) -> Keys:
    """Return a 64-bit key for each label, from the label's text or number and the seed."""
    salt = whole_seed(seed).to_bytes(16, "little", signed=True)
    digests = b"".join(
        hashlib.blake2b(f"{type(label).__name__}:{label}".encode(), digest_size=8, salt=salt).digest()
        for label in labels
    )
    return np.frombuffer(digests, np.uint64)


def uniform_bits(key: Keys, counter: NDArray[np.uint64]) -> Keys:
    """Return 64 random bits for each (key, counter)."""
    with np.errstate(over="ignore"):
        z = key + (counter + np.uint64(1)) * _GAMMA
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def deal(start: Offsets, count: NDArray[np.integer], key: Keys, hands: int) -> NDArray[np.int64]:
    """Shuffle the judgments of each query and deal them round; return counts of shape (hands, distinct judgments).

    The hand that gets the first card differs from query to query, so that no hand is favoured. Of counts so large that
    a query would have more than ``CARDS`` cards, all but so many are dealt evenly without a shuffle. Queries are worked
    on some at a time, which bounds the memory.
    """
    most = np.maximum(CARDS // np.maximum(np.diff(start), 1), 256)
    most = np.repeat(most, np.diff(start))
    even = np.maximum(np.asarray(count, np.int64) - most, 0) // hands
    shares = np.tile(even, (hands, 1))
    cards = count - even * hands
    total = np.concatenate(([0], np.cumsum(cards, dtype=np.int64)))[start]
    cuts = np.flatnonzero(np.diff(total[:-1] // CARDS, prepend=-1)) if len(key) else np.zeros(0, np.int64)
    for begin, end in zip(cuts, np.append(cuts[1:], len(key)), strict=False):
        held = slice(int(start[begin]), int(start[end]))
        _deal(start[begin : end + 1] - start[begin], cards[held], key[begin:end], shares[:, held])
    return shares


def _deal(start: Offsets, count: NDArray[np.int64], key: Keys, shares: NDArray[np.int64]) -> None:
    """Shuffle and deal the judgments of some queries, adding to the shares of each hand."""
    hands = len(shares)
    query_start = np.concatenate(([0], np.cumsum(count)))[start]
    position = np.arange(query_start[-1], dtype=np.int64)
    judgment = np.repeat(np.arange(len(count), dtype=np.int64), count)
    query = np.repeat(np.arange(len(start) - 1, dtype=np.int64), np.diff(query_start))
    local = (position - query_start[query]).astype(np.uint64)
    order = np.lexsort((uniform_bits(key[query], local), query))
    offset = (uniform_bits(key, np.full(len(key), 1 << 62, np.uint64)) % np.uint64(hands)).astype(np.int64)
    hand = (position - query_start[query] + offset[query]) % hands
    shares += np.bincount(hand * len(count) + judgment[order], minlength=shares.size).reshape(shares.shape)


def draw_subsets(
    total: NDArray[np.int64], key: Keys, k: int, subsets: int, *, partition: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Draw k positions of 0 … total[q] − 1 without replacement, ``subsets`` times for each query.

    Returns (query of each draw, offsets, positions sorted within the draw). A query with total ≤ k has one draw, all
    of it. With ``partition`` the draws of a query are consecutive blocks of random permutations (as many permutations
    as needed), which usually vary less than independent draws where total ≥ 2k.
    """
    if partition and (longest := int(total.max(initial=0))) > LONGEST:
        raise UsageError(
            f"blocks of random permutations shuffle all judgments of a query, here {longest:,}; at most {LONGEST:,} "
            "are allowed. Draw the subsets independently (partition=False), which is as good there"
        )
    whole = total <= k
    draws = np.where(whole, 1, subsets)
    owner = np.repeat(np.arange(len(total), dtype=np.int64), draws)
    size = np.where(whole, total, k)[owner]
    offsets = np.concatenate(([0], np.cumsum(size))).astype(np.int64)
    positions = np.arange(offsets[-1], dtype=np.int64) - np.repeat(offsets[:-1], size)
    nth = np.arange(len(owner), dtype=np.int64) - np.repeat(np.cumsum(draws) - draws, draws)
    sampled = np.flatnonzero(~whole[owner])
    few = total[owner[sampled]] <= 8 * k
    for chosen, method in (
        (sampled if partition else sampled[few], _blocks if partition else _shuffled),
        (np.zeros(0, np.int64) if partition else sampled[~few], _collected),
    ):
        block = max(1, (1 << 22) // max(k, 1))
        for begin in range(0, len(chosen), block):
            part = chosen[begin : begin + block]
            picked = method(total[owner[part]], key[owner[part]], nth[part], k)
            picked.sort(axis=1)
            positions[offsets[part][:, None] + np.arange(k)] = picked
    return owner, offsets, positions


def _collected(total: NDArray[np.int64], key: Keys, nth: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Draw with replacement and keep what is new until there are k: the first k distinct values, a uniform k-subset."""
    found = _integers(total, key, nth, np.broadcast_to(np.arange(k, dtype=np.uint64), (len(total), k)))
    drawn = np.full(len(total), k, np.uint64)
    while True:
        found.sort(axis=1)
        again = np.zeros(found.shape, bool)
        again[:, 1:] = found[:, 1:] == found[:, :-1]
        rows = np.flatnonzero(again.any(axis=1))
        if len(rows) == 0:
            return found
        # a row's next numbers go to its repeated places, in order; how many it has used is its own count
        places = again[rows]
        slot = np.where(places, drawn[rows][:, None] + np.cumsum(places, axis=1).astype(np.uint64) - np.uint64(1), 0)
        fresh = _integers(total[rows], key[rows], nth[rows], slot.astype(np.uint64))
        found[rows] = np.where(places, fresh, found[rows])
        drawn[rows] += places.sum(axis=1).astype(np.uint64)


def _shuffled(total: NDArray[np.int64], key: Keys, nth: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """The k smallest of random numbers, one for each position."""
    width = int(total.max())
    counter = (nth[:, None].astype(np.uint64) << np.uint64(40)) + np.arange(width).astype(np.uint64)
    bits = uniform_bits(key[:, None], counter) >> np.uint64(1)
    bits[np.arange(width) >= total[:, None]] = np.uint64(1 << 63)
    return np.argpartition(bits, k - 1, axis=1)[:, :k].astype(np.int64)


def _blocks(total: NDArray[np.int64], key: Keys, nth: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Block nth of a sequence of random permutations, each cut into ⌊total / k⌋ blocks of k."""
    per_round = total // k
    turn, block = nth // per_round, nth % per_round
    picked = np.empty((len(total), k), np.int64)
    width = int(total.max())
    step = max(1, (1 << 22) // width)
    for begin in range(0, len(total), step):
        part = slice(begin, begin + step)
        counter = (turn[part, None].astype(np.uint64) << np.uint64(40)) + np.arange(width).astype(np.uint64)
        bits = uniform_bits(key[part, None], counter + np.uint64(1 << 62)) >> np.uint64(1)
        bits[np.arange(width) >= total[part, None]] = np.uint64(1 << 63)
        order = np.argsort(bits, axis=1, kind="stable")
        picked[part] = np.take_along_axis(order, block[part, None] * k + np.arange(k), axis=1)
    return picked


def _integers(
    total: NDArray[np.int64], key: Keys, nth: NDArray[np.int64], slot: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Integers uniform on 0 … total − 1 (to within total/2^53) from the counters (nth, slot)."""
    counter = (nth[:, None].astype(np.uint64) << np.uint64(40)) + slot
    unit = (uniform_bits(key[:, None], counter) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return np.minimum((unit * total[:, None]).astype(np.int64), total[:, None] - 1)

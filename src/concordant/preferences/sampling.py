"""Random draws of judgments that depend on the query's label and the seed alone: not on batch, order or threads.

Numbers come from a counter: draw c of query q is ``mix(key_q + c · γ)`` with the SplitMix64 finaliser (Steele, Lea &
Flood, OOPSLA 2014), so any part can be computed by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import Setting, UsageError
from concordant.kernels.compiled import compiles
from concordant.preferences.labels import Labels
from concordant.preferences.ragged import Ragged

Keys = NDArray[np.uint64]
Offsets = NDArray[np.int64]
Totals = NDArray[np.int64]
Method = Callable[[Totals, Keys, Totals, int], NDArray[np.int64]]

CARDS = 1 << 22
"""Judgments that are shuffled at a time, and the most of one query (or 256 of each distinct judgment)."""
LONGEST = 1 << 27
"""Judgments of a query up to which permutations of them are drawn."""
DENSE = 8
"""Subsets of k are shuffled out of up to this many times k judgments, and collected out of more."""
COMPILED = 1 << 20
"""Positions from which on draws are made by compiled loops, which draw the same."""
STEP = 16
"""Positions that cost in plain Python what a step of a shuffle costs."""
TURNS = 1 << 62
"""Where the counters of permutations begin."""
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


def uniform_bits(key: Keys | np.uint64, counter: Keys | np.uint64) -> Keys:
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
    queries = Ragged(start)
    even, cards = dealt_cards(count, queries.spread(queries.sizes), hands)
    shares = np.tile(even, (hands, 1))
    total = np.concatenate(([0], np.cumsum(cards, dtype=np.int64)))[start]
    for part in Ragged.runs(total[:-1] // CARDS).slices:
        held = slice(int(start[part.start]), int(start[part.stop]))
        _deal(start[part.start : part.stop + 1] - held.start, cards[held], key[part], shares[:, held])
    return shares


def dealt_cards(
    count: NDArray[np.integer], distinct: NDArray[np.int64] | int, hands: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many of each judgment every hand gets without a shuffle, and how many are shuffled.

    ``distinct`` is the number of distinct judgments of its query.
    """
    most = np.maximum(CARDS // np.maximum(distinct, 1), 256)
    even = np.maximum(np.asarray(count, np.int64) - most, 0) // hands
    return even, count - even * hands


def deal_part(
    first: NDArray[np.int64], even: NDArray[np.int64], cards: NDArray[np.int64], key: np.uint64, total: int, hands: int
) -> NDArray[np.int64]:
    """Return what ``deal`` gives some judgments of one query, of which only these are there.

    ``first`` is the place of the first card of each among the ``total`` cards of the query, ``even`` and ``cards`` are
    of ``dealt_cards``. The numbers of all other cards follow from the key, so that the rank of these is counted.

    >>> start, count, key = np.array([0, 3]), np.array([5, 1, 4]), np.array([7], np.uint64)
    >>> even, cards = dealt_cards(count, 3, 2)
    >>> part = deal_part(np.array([5, 6]), even[1:], cards[1:], key[0], 10, 2)
    >>> bool((part == deal(start, count, key, 2)[:, 1:]).all())
    True
    """
    made = Ragged.of_sizes(cards)
    own = uniform_bits(key, (made.spread(first) + made.place).astype(np.uint64))
    sorter = np.argsort(own)
    own, rank = own[sorter], np.zeros(len(own), np.int64)
    for begin in range(0, total, CARDS):
        others = uniform_bits(key, np.arange(begin, min(begin + CARDS, total), dtype=np.uint64))
        others.sort()
        rank += np.searchsorted(others, own)
    offset = int(uniform_bits(key, np.array(1 << 62, np.uint64)) % np.uint64(hands))
    hand = (rank + offset) % hands
    counts = np.bincount(hand * len(cards) + made.owner[sorter], minlength=hands * len(cards))
    return np.asarray(even + counts.reshape(hands, len(cards)), np.int64)


def _deal(start: Offsets, count: NDArray[np.int64], key: Keys, shares: NDArray[np.int64]) -> None:
    """Shuffle and deal the judgments of some queries, adding to the shares of each hand."""
    hands = len(shares)
    made = Ragged.of_sizes(count)
    judgment, queries = made.owner, Ragged(made.start[start])
    query, place = queries.owner, queries.place
    local = place.astype(np.uint64)
    sorter = np.lexsort((uniform_bits(key[query], local), query))
    offset = (uniform_bits(key, np.full(len(key), 1 << 62, np.uint64)) % np.uint64(hands)).astype(np.int64)
    hand = (place + offset[query]) % hands
    shares += np.bincount(hand * len(count) + judgment[sorter], minlength=shares.size).reshape(shares.shape)


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
            "are allowed. Draw the subsets independently (",
            Setting("partition", False),
            "), which is as good there",
        )
    whole = total <= k
    draws = np.where(whole, 1, subsets)
    of_queries = Ragged.of_sizes(draws)
    owner, nth = of_queries.owner, of_queries.place
    drawn = Ragged.of_sizes(np.where(whole, total, k)[owner])
    offsets, positions = drawn.start, drawn.place
    sampled = np.flatnonzero(~whole[owner])
    few = total[owner[sampled]] <= DENSE * k
    longest = int(total[owner[sampled]].max(initial=0))  # a shuffle takes a step for each card, in all rows at once
    methods = quick_draws(max(len(sampled) * k, STEP * (longest if partition else min(k, longest)))) or _PLAIN
    for chosen, method in (
        (sampled if partition else sampled[few], "blocks" if partition else "shuffled"),
        (np.zeros(0, np.int64) if partition else sampled[~few], "collected"),
    ):
        block = max(1, (1 << 22) // max(k, 1))
        for begin in range(0, len(chosen), block):
            part = chosen[begin : begin + block]
            picked = methods[method](total[owner[part]], key[owner[part]], nth[part], k)
            picked.sort(axis=1)
            positions[offsets[part][:, None] + np.arange(k)] = picked
    return owner, offsets, positions


def _collected(total: Totals, key: Keys, nth: Totals, k: int) -> NDArray[np.int64]:
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


def _shuffled(total: Totals, key: Keys, nth: Totals, k: int) -> NDArray[np.int64]:
    """Shuffle out what is fewer, the k chosen or the rest that is left."""
    picked = np.empty((len(total), k), np.int64)
    for part in _some(total):
        n = total[part]
        steps = np.minimum(k, n - k)
        cards = _cards(n, steps, key[part], nth[part].astype(np.uint64) << np.uint64(40))
        begin = np.where(steps < k, steps, 0)
        picked[part] = np.take_along_axis(cards, begin[:, None] + np.arange(k), axis=1)
    return picked


def _blocks(total: Totals, key: Keys, nth: Totals, k: int) -> NDArray[np.int64]:
    """Block nth of a sequence of random permutations, each cut into ⌊total / k⌋ blocks of k."""
    picked = np.empty((len(total), k), np.int64)
    for part in _some(total):
        per_round = total[part] // k
        turn, block = nth[part] // per_round, nth[part] % per_round
        new = np.ones(len(turn), bool)
        new[1:] = (turn[1:] != turn[:-1]) | (key[part][1:] != key[part][:-1])
        one, of = np.flatnonzero(new), np.cumsum(new) - 1  # each permutation once
        counter = (turn[one].astype(np.uint64) << np.uint64(40)) + np.uint64(TURNS)
        cards = _cards(total[part][one], (per_round * k)[one], key[part][one], counter)
        picked[part] = cards[of[:, None], block[:, None] * k + np.arange(k)]
    return picked


def _some(total: Totals) -> Iterator[slice]:
    """Rows that are shuffled together, which bounds the memory."""
    step = max(1, CARDS // int(total.max()))
    yield from (slice(begin, begin + step) for begin in range(0, len(total), step))


def _cards(total: Totals, steps: Totals, key: Keys, counter: Keys) -> NDArray[np.int64]:
    """The first steps of a Fisher–Yates shuffle of 0 … total − 1 in each row; number i of a row is counter + i."""
    rows = np.arange(len(total))
    cards = np.tile(np.arange(int(total.max()), dtype=np.int64), (len(total), 1))
    for i in range(int(steps.max())):
        going = rows[i < steps]
        j = i + _below(total[going] - i, uniform_bits(key[going], counter[going] + np.uint64(i)))
        cards[going, i], cards[going, j] = cards[going, j], cards[going, i]
    return cards


def _integers(total: Totals, key: Keys, nth: Totals, slot: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Integers uniform on 0 … total − 1 from the counters (nth, slot)."""
    counter = (nth[:, None].astype(np.uint64) << np.uint64(40)) + slot
    return _below(total[:, None], uniform_bits(key[:, None], counter))


def _below(total: Totals, bits: Keys) -> NDArray[np.int64]:
    """Integers uniform on 0 … total − 1, to within total/2^53."""
    unit = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return np.minimum((unit * total).astype(np.int64), total - 1)


_PLAIN: dict[str, Method] = {"blocks": _blocks, "shuffled": _shuffled, "collected": _collected}
_QUICK: dict[str, Method] = {}


def quick_draws(positions: int) -> dict[str, Method]:
    """The same draws by compiled loops, loaded when so many positions are drawn; empty if it is not worth it.

    Whoever draws many positions some at a time calls this first with all of them.
    """
    if positions >= COMPILED and not _QUICK and compiles():
        from concordant.kernels import draws

        _QUICK.update({name: _filling(getattr(draws, name)) for name in _PLAIN})
    return _QUICK


def _filling(kernel: Callable[..., Any]) -> Method:
    def method(total: Totals, key: Keys, nth: Totals, k: int) -> NDArray[np.int64]:
        picked = np.empty((len(total), k), np.int64)
        kernel(total, key, nth, k, picked)
        return picked

    return method

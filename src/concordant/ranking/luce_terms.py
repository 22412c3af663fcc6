"""The Plackett–Luce log-likelihood of many lists: gradient, information and products with it, in linear memory.

An order a ≻ b ≻ c has probability e^a/(e^a+e^b+e^c) · e^b/(e^b+e^c): one choice from each remaining set. So the
log-likelihood is Σ θ_i − Σ_A w_A log S_A with S_A = Σ_{i∈A} e^θ_i. For an untied entry, A is the entry and all below
it. A tier T of t tied items above the rest R contributes the mean over its t! orders, which is the sum over nonempty
subsets: A = B ∪ R, B ⊆ T, with w = 1/C(t, |B|), since B is what remains of T in that share of the orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import uniform_bits
from concordant.ranking.ranked_lists import Rankings

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
EXACT_TIER = 8
"""Tiers up to this size are averaged over all their orders, larger ones over about ORDERS of them."""
ORDERS = 64
BLOCK = 1 << 20
PAIRS = 1 << 21  # pairs of entries at once
TINY = 1e-140  # far below any score that is determined; keeps 1/S² finite


class LuceTerms:
    """The terms of the log-likelihood of some ranked lists, ready for any scores.

    ``keys``: a random 64-bit number for each node that depends on its item only; large tiers are sampled by it.
    """

    def __init__(self, lists: Rankings, keys: Callable[[], NDArray[np.uint64]]) -> None:
        self.lists = lists
        first, size = lists.tier_first, lists.tier_size
        entries = len(lists.node)
        mass = lists.weight[lists.row]
        self.chosen = mass.copy()
        """Weight of θ of each entry."""
        self.alone = np.zeros(entries)
        """Weight of the term of each untied entry and all below it."""
        self.tiers: list[_Tier] = []
        if lists.top:
            self.chosen[:] = 0.0
            self.chosen[lists.start[:-1]] = self.alone[lists.start[:-1]] = lists.weight
        else:
            single = first[size == 1]
            self.alone[single] = mass[single]
            last = single[lists.below[single] == 0]  # the last of a list is no choice
            self.chosen[last] = self.alone[last] = 0.0
            for t in np.unique(size[size > 1]).tolist():
                tier = _tier_of(lists, first[size == t], t, keys)
                self.tiers.append(tier)
                if t > ORDERS:
                    self._level(tier)
        self.sampled = sum(len(tier.entry) for tier in self.tiers if tier.entry.shape[1] > EXACT_TIER)
        """Number of tiers whose orders are sampled."""
        self._rows = _Rows(lists.start)

    def _level(self, tier: _Tier) -> None:
        """Give the tied the same gradient at equal scores, by a linear term: the sampled orders do so only nearly."""
        rest = self.lists.below[tier.begin].astype(float)
        for part in tier.parts():
            sets = tier.sets.sums(np.ones(tier.entry[part].shape)) + rest[part, None]
            pull = tier.sets.back(tier.sets.share / sets)
            self.chosen[tier.entry[part]] += tier.weight[part, None] * (pull - pull.mean(axis=1, keepdims=True))

    def at(self, theta: Floats) -> Position:
        """Evaluate at scores of the nodes."""
        return Position(self, theta)

    def below(self, values: Floats) -> Floats:
        """Sum over the entry and all below it in its list."""
        return self._rows.cumulate(values, backwards=True)

    def from_above(self, values: Floats) -> Floats:
        """Sum over the entry and all above it in its list."""
        return self._rows.cumulate(values, backwards=False)


class Position:
    """The log-likelihood at given scores."""

    def __init__(self, terms: LuceTerms, theta: Floats) -> None:
        lists = terms.lists
        self.terms = terms
        self.nodes = len(theta)
        score = theta[lists.node]
        highest = lists.groups.most(score)
        self.shift = highest
        self.odds = np.maximum(np.exp(score - highest[lists.row]), TINY)
        """e^θ of each entry relative to the highest of its list."""
        self.sums = terms.below(self.odds)
        self.score = score

    def value(self) -> float:
        """Return the log-likelihood."""
        terms, lists = self.terms, self.terms.lists
        total = float(terms.chosen @ self.score)
        total -= float(terms.alone @ (np.log(self.sums) + self.shift[lists.row]))
        for tier, rest in self.tiers():
            logs = np.concatenate([np.log(sets) @ tier.sets.share for _, sets in self.blocks(tier, rest)])
            total -= float(tier.weight @ (logs + tier.sets.share.sum() * self.shift[tier.row]))
        return total

    def gradient_entries(self) -> Floats:
        """Return ∂ log-likelihood / ∂θ through each entry; the entries of a list sum to zero."""
        return self.terms.chosen - self.odds * self.chance

    def gradient(self) -> Floats:
        """Return the gradient, shape (nodes,)."""
        return self._to_nodes(self.gradient_entries())

    @cached_property
    def chance(self) -> Floats:
        """Σ_{A∋i} w_A / S_A of each entry."""
        return self._gather(1, None)[0]

    @cached_property
    def squares(self) -> tuple[Floats, list[Floats]]:
        """Σ_{A∋i} w_A / S_A² of each entry, and the part of it from above each tier."""
        return self._gather(2, None)

    def diagonal(self) -> Floats:
        """Return the diagonal of the information −∂²."""
        return self._to_nodes(self.odds * self.chance - self.odds**2 * self.squares[0])

    def times(self, vector: Floats) -> Floats:
        """Multiply the information by a vector of the nodes: Σ_A w_A (diag p − p pᵀ) v."""
        through = vector[self.terms.lists.node]
        mean = self._gather(2, self.odds * through)[0]
        return self._to_nodes(self.odds * (self.chance * through - mean))

    def _to_nodes(self, entries: Floats) -> Floats:
        return np.asarray(np.bincount(self.terms.lists.node, entries, self.nodes), np.float64)

    def tiers(self) -> Iterator[tuple[_Tier, Floats]]:
        """Tied tiers, size by size, with the sum of what is below each."""
        for tier in self.terms.tiers:
            yield tier, np.where(tier.last, 0.0, self.sums[tier.after])

    def blocks(self, tier: _Tier, rest: Floats) -> Iterator[tuple[slice, Floats]]:
        """S_A of all sets of a tier, some lists at a time."""
        for part in tier.parts():
            yield part, tier.sets.sums(self.odds[tier.entry[part]]) + rest[part, None]

    def _gather(self, power: int, values: Floats | None) -> tuple[Floats, list[Floats]]:
        """Σ_{A∋i} w_A V_A / S_A^power of each entry, V_A = Σ_{j∈A} values_j (1 without).

        The second part: for the tiers of each size, what comes from the tiers above them.
        """
        terms = self.terms
        falling = terms.alone / self.sums**power
        below = None if values is None else terms.below(values)
        if below is not None:
            falling *= below
        own = []
        for tier, rest in self.tiers():
            shares = np.empty(tier.entry.shape)
            for part, sets in self.blocks(tier, rest):
                share = tier.sets.share * tier.weight[part, None] / sets**power
                if values is not None and below is not None:
                    tail = np.where(tier.last[part], 0.0, below[tier.after[part]])
                    share *= tier.sets.sums(values[tier.entry[part]]) + tail[:, None]
                shares[part] = tier.sets.back(share)
                falling[tier.end[part]] = share.sum(axis=1)  # what all below the tier get from it
            own.append(shares)
        total = terms.from_above(falling)
        above = [total[tier.begin] for tier in terms.tiers]
        for tier, shares, before in zip(terms.tiers, own, above, strict=True):
            total[tier.entry] = before[:, None] + shares
        return total, above


@dataclass(frozen=True, eq=False)
class _Tier:
    """All tied tiers of one size t."""

    entry: Places
    """Shape (tiers, t), in the order in which the sets take them."""
    begin: Places
    """First entry of each tier."""
    end: Places
    """Last entry."""
    row: Places
    weight: Floats
    last: NDArray[np.bool_]
    """No tier below."""
    after: Places
    """First entry below (any where there is none)."""
    sets: _Subsets | _Orders

    def parts(self) -> Iterator[slice]:
        step = max(1, BLOCK // self.sets.number)
        for begin in range(0, len(self.entry), step):
            yield slice(begin, begin + step)


def _tier_of(lists: Rankings, first: Places, t: int, keys: Callable[[], NDArray[np.uint64]]) -> _Tier:
    entry = first[:, None] + np.arange(t)
    row = lists.row[first]
    end = first + t - 1
    last = end + 1 == lists.start[1:][row]
    sets: _Subsets | _Orders = _Subsets(t) if t <= EXACT_TIER else _Orders(t)
    if t > EXACT_TIER:
        key = keys()[lists.node[entry]]
        content = np.broadcast_to(key.sum(axis=1, dtype=np.uint64, keepdims=True), key.shape)
        entry = np.take_along_axis(entry, np.argsort(uniform_bits(key, content), axis=1, kind="stable"), axis=1)
    return _Tier(entry, first, end, row, lists.weight[row], last, np.where(last, end, end + 1), sets)


class _Subsets:
    """Every nonempty subset of t places, with 1/C(t, size)."""

    def __init__(self, t: int) -> None:
        self.member = np.array([s for s in product((0.0, 1.0), repeat=t) if any(s)])
        self.share = np.array([1.0 / comb(t, int(s)) for s in self.member.sum(axis=1)])
        self.number = len(self.share)

    def sums(self, x: Floats) -> Floats:
        """(tiers, t) → (tiers, sets): the sum over each set."""
        return np.asarray(x @ self.member.T)

    def back(self, y: Floats) -> Floats:
        """(tiers, sets) → (tiers, t): the sum over the sets that hold each place."""
        return np.asarray(y @ self.member)

    def pairs(self, y: Floats, i: Places, j: Places) -> Floats:
        """(tiers, sets) → (tiers, pairs): the sum over the sets that hold both places."""
        return np.asarray(y @ (self.member[:, i] * self.member[:, j]))


class _Orders:
    """What remains at each step of some orders of t places, each order with the same share.

    Random permutations, each with cyclic shifts, so that every place stands at every position about equally often
    (exactly up to t = ORDERS): the tied then have the same gradient at equal scores, as they should.
    """

    def __init__(self, t: int) -> None:
        bases, shifts = (-(-ORDERS // t), np.arange(t)) if t <= ORDERS else (8, np.arange(8) * t // 8)
        bits = uniform_bits(np.full(bases * t, t, np.uint64), np.arange(bases * t, dtype=np.uint64)).reshape(bases, t)
        base = np.argsort(bits, axis=1, kind="stable")
        self.order = base[:, (np.arange(t) + shifts[:, None]) % t].reshape(-1, t)
        self.place = np.argsort(self.order, axis=1)
        self.number = self.order.size
        self.share = np.full(self.number, 1.0 / len(self.order))
        self._flat = self.place + t * np.arange(len(self.order))[:, None]

    def sums(self, x: Floats) -> Floats:
        remaining = np.cumsum(x[:, self.order][:, :, ::-1], axis=2)[:, :, ::-1]
        return np.asarray(remaining.reshape(len(x), -1))

    def back(self, y: Floats) -> Floats:
        return np.asarray(self._passed(y)[:, self._flat].sum(axis=1))

    def pairs(self, y: Floats, i: Places, j: Places) -> Floats:
        passed, total = self._passed(y), np.zeros((len(y), len(i)))
        for flat, place in zip(self._flat, self.place, strict=True):
            total += passed[:, np.where(place[i] < place[j], flat[i], flat[j])]
        return total

    def _passed(self, y: Floats) -> Floats:
        """Sum over the sets from the first to each position, of every order: those that hold the item there."""
        return np.cumsum(y.reshape(len(y), *self.order.shape), axis=2).reshape(len(y), -1)


class _Rows:
    """Cumulative sums along ragged rows: rows of like length are the columns of one matrix, so no sum crosses rows."""

    def __init__(self, start: Places) -> None:
        lists = Ragged(start)
        length, row = lists.sizes, lists.owner
        width = 1 << np.ceil(np.log2(np.maximum(length, 2))).astype(np.int64)
        widths, bucket, rows = np.unique(width, return_inverse=True, return_counts=True)
        ends = np.cumsum(widths * rows)
        begin = ends - widths * rows
        column = np.empty(len(length), np.int64)
        column[np.argsort(bucket, kind="stable")] = np.arange(len(length))
        column -= (np.cumsum(rows) - rows)[bucket]
        self.place = (begin[bucket] + column)[row] + lists.place * rows[bucket][row]
        self.size = int(width.sum())
        self.buckets = list(zip(begin.tolist(), ends.tolist(), widths.tolist(), strict=True))

    def cumulate(self, values: Floats, *, backwards: bool) -> Floats:
        padded = np.zeros(self.size)
        padded[self.place] = values
        for begin, end, width in self.buckets:
            block = padded[begin:end].reshape(width, -1)
            if backwards:
                block = block[::-1]
            if width < block.shape[1]:
                for k in range(1, width):
                    block[k] += block[k - 1]
            else:
                np.cumsum(block, axis=0, out=block)
        return np.asarray(padded[self.place])


def information(at: Position) -> csr_array:
    """Return the information −∂² as a sparse matrix: a Laplacian with an edge between any two items of a list."""
    node, n = at.terms.lists.node, at.nodes
    whole = csr_array((n, n))
    for first, second, weight in (*_across_tiers(at), *_within_tiers(at)):
        weight = -weight * at.odds[first] * at.odds[second]
        whole = whole + coo_array((weight, (node[first], node[second])), shape=(n, n)).tocsr()
    whole = whole + whole.T
    nodes = np.arange(n)
    return (whole + csr_array((-np.asarray(whole.sum(axis=1)).ravel(), (nodes, nodes)), shape=(n, n))).tocsr()


def _across_tiers(at: Position) -> Iterator[tuple[Places, Places, Floats]]:
    """Pairs of entries (better, worse) with Σ w_A / S_A² over the sets that hold both: those that hold the better."""
    lists = at.terms.lists
    squares = at.squares[0]
    work = np.cumsum(lists.length**2 // 2)
    for rows in Ragged.runs(work // PAIRS).slices:
        taken, entries = lists.groups.take(np.arange(rows.start, rows.stop))
        first, second = (entries[side] for side in taken.pairs())
        if not lists.top:  # within a tier the sets that hold one do not all hold the other
            apart = lists.tier[first] != lists.tier[second]
            first, second = first[apart], second[apart]
        yield first, second, squares[first]


def _within_tiers(at: Position) -> Iterator[tuple[Places, Places, Floats]]:
    for (tier, rest), above in zip(at.tiers(), at.squares[1], strict=True):
        t = tier.entry.shape[1]
        i, j = np.triu_indices(t, 1)
        for part, sets in at.blocks(tier, rest):
            both = tier.sets.pairs(tier.sets.share * tier.weight[part, None] / sets**2, i, j) + above[part, None]
            entry = tier.entry[part]
            yield entry[:, i].ravel(), entry[:, j].ravel(), both.ravel()

"""The Plackett–Luce log-likelihood of many lists: gradient, information and products with it, in linear memory.

An order a ≻ b ≻ c has probability e^a/(e^a+e^b+e^c) · e^b/(e^b+e^c): one choice from each remaining set. So the
log-likelihood is Σ θ_i − Σ_A w_A log S_A with S_A = Σ_{i∈A} e^θ_i. For an untied entry, A is the entry and all below
it. A tier T above the rest R is the event that each of T stands above each of R, in whatever order: the sum of the
probabilities of all orders that agree. With e^x_i = e^θ_i / S_R that is I = ∫₀^∞ e^−y Π_{i∈T} (1 − exp(−y e^x_i)) dy
(``kernels.tier_events``); the last tier of a list contributes 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from concordant.errors import Setting, UsageError
from concordant.kernels.arrays import in_parts
from concordant.preferences.ragged import Ragged
from concordant.ranking.ranked_lists import Rankings

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
PAIRS = 1 << 21  # pairs of entries at once
DENSE = 1 << 22  # pairs of entries from which on a compiled loop adds them up, where they fall on few pairs of items
CELLS = 5e7  # pairs of items of which the information is written out
MOST = 1 << 28  # numbers of the rules of wide tiers
WIDE = 48  # items of a tier from which on a term for each node of its rule takes less than one for each pair of items
WORK = 1 << 16  # entries of blocks that a thread works on at a time
TINY = 1e-140  # far below any score that is determined; keeps 1/S² finite


class LuceTerms:
    """The terms of the log-likelihood of some ranked lists, ready for any scores."""

    def __init__(self, lists: Rankings) -> None:
        self.lists = lists
        first, size = lists.tier_first, lists.tier_size
        entries = len(lists.node)
        self.chosen = np.zeros(entries)
        """Weight of θ of each entry."""
        self.alone = np.zeros(entries)
        """Weight of the term of each untied entry and all below it."""
        tied = np.zeros(0, np.int64)
        if lists.top:
            self.chosen[lists.start[:-1]] = self.alone[lists.start[:-1]] = lists.weight
        else:
            above = lists.below[first] > 0  # the last of a list is no choice
            single = first[above & (size == 1)]
            self.chosen[single] = self.alone[single] = lists.weight[lists.row[single]]
            tied = np.flatnonzero(above & (size > 1))
        self.tiers = Ragged.of_sizes(size[tied])
        """The entries of each tier of two or more that stands above others."""
        self.entry = self.tiers.spread(first[tied]) + self.tiers.place
        self.after = first[tied] + size[tied]
        """First entry below each tier."""
        self.weight = lists.weight[lists.row[first[tied]]]
        self._rows = _Rows(lists.start)

    @property
    def extra_owner(self) -> Places:
        """There are no parameters beside the scores."""
        return np.zeros(0, np.int64)

    def take(self, rows: Places) -> LuceTerms:
        """Return the terms of some of the lists."""
        return LuceTerms(self.lists.take(rows))

    def at(self, theta: Floats) -> Position:
        """Evaluate at scores of the nodes."""
        return Position(self, theta)

    def below(self, values: Floats) -> Floats:
        """Sum over the entry and all below it in its list."""
        return self._rows.cumulate(values, backwards=True)

    def from_above(self, values: Floats) -> Floats:
        """Sum over the entry and all above it in its list."""
        return self._rows.cumulate(values, backwards=False)

    def from_tiers(self, values: Floats) -> Floats:
        """(tiers,) → (entries,): the sum over the tiers that stand above the entry."""
        falling = np.zeros(len(self.lists.node))
        falling[self.after] = values
        return self.from_above(falling)


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
        terms = self.terms
        total = float(terms.chosen @ self.score)
        total -= float(terms.alone @ (np.log(self.sums) + self.shift[terms.lists.row]))
        return total + float(terms.weight @ self._events[0])

    @cached_property
    def _events(self) -> tuple[Floats, Floats, Bends]:
        """log I of each tier, its gradient by x (entries of tiers,), and −w times its second derivatives."""
        terms, tiers = self.terms, self.terms.tiers
        size = tiers.sizes
        plain, wide = np.flatnonzero(size <= WIDE), np.flatnonzero(size > WIDE)
        room = Ragged.of_sizes(np.where(size > WIDE, size, size**2))
        value, gradient, second = (np.zeros(n) for n in (len(tiers), len(terms.entry), int(room.start[-1])))
        rows, nodes = np.zeros(0), np.zeros(0, np.int64)
        if len(tiers):
            from concordant.kernels.tier_events import tier_events, wide_events, wide_rule

            x = np.log(self.odds[terms.entry]) - tiers.spread(np.log(self.sums[terms.after]))

            def work(part: Places) -> None:
                tier_events(tiers.start, room.start, x, plain, part[0], part[-1] + 1, value, gradient, second)

            in_parts(work, np.arange(len(plain)), size[plain] ** 2, WORK)
        if len(wide):
            rule = np.empty((len(wide), 3))

            def lay(part: Places) -> None:
                wide_rule(tiers.start, x, wide, part[0], part[-1] + 1, rule)

            in_parts(lay, np.arange(len(wide)), size[wide], WORK)
            nodes = rule[:, 2].astype(np.int64)
            begin = Ragged.of_sizes(nodes * size[wide]).start
            if begin[-1] > MOST:
                raise UsageError(
                    f"plackett-luce: {len(wide):,} tiers of more than {WIDE} tied items, {int(size[wide].sum()):,} in "
                    f"all, stand above others; their likelihood takes {int(begin[-1]):,} numbers, more than {MOST:,}. "
                    "Rank fewer of the items or of the lists."
                )
            rows = np.empty(int(begin[-1]))

            def fill(part: Places) -> None:
                ends = part[0], part[-1] + 1
                wide_events(tiers.start, room.start, x, wide, rule, begin, *ends, value, gradient, second, rows)

            in_parts(fill, np.arange(len(wide)), nodes * size[wide], WORK)
        return value, gradient, Bends.of(tiers, terms.weight, second, wide, nodes, rows)

    @cached_property
    def held(self) -> Floats:
        """Weight of the term of each entry and all below it: alone, and what the tier above pushes them down by."""
        held = self.terms.alone.copy()
        held[self.terms.after] += self.terms.weight * self.terms.tiers.sums(self._events[1])
        return held

    @property
    def bends(self) -> Bends:
        """−w ∂² log I/∂x² of each tier, on the entries of tiers."""
        return self._events[2]

    def information(self) -> csr_array:
        """Return the information as a sparse matrix over the nodes."""
        return information(self)

    def gradient_entries(self) -> Floats:
        """Return ∂ log-likelihood / ∂θ through each entry; the entries of a list sum to zero."""
        terms = self.terms
        entries = terms.chosen - self.odds * self.chance
        entries[terms.entry] += terms.tiers.spread(terms.weight) * self._events[1]
        return entries

    def gradient(self) -> Floats:
        """Return the gradient, shape (nodes,)."""
        return self._to_nodes(self.gradient_entries())

    @cached_property
    def chance(self) -> Floats:
        """Σ_{A∋i} w_A / S_A of each entry."""
        return self.terms.from_above(self.held / self.sums)

    @cached_property
    def stiffness(self) -> tuple[Floats, Floats]:
        """Row sums of ``bends``, and their sums over each tier."""
        rows = self.bends.times(np.ones(len(self.terms.entry)))
        return rows, self.terms.tiers.sums(rows)

    @cached_property
    def squares(self) -> Floats:
        """What two entries have in common through the sets that hold both, by the better one: Σ_{A∋i} w_A / S_A²."""
        terms = self.terms
        falling = self.held / self.sums**2
        falling[terms.after] -= self.stiffness[1] / self.sums[terms.after] ** 2
        return terms.from_above(falling)

    def diagonal(self) -> Floats:
        """Return the diagonal of the information −∂²."""
        entries = self.odds * self.chance - self.odds**2 * self.squares
        entries[self.terms.entry] += self.bends.diagonal()
        return self._to_nodes(entries)

    def times(self, vector: Floats) -> Floats:
        """Multiply the information by a vector of the nodes: Σ_A w_A (diag p − p pᵀ) v, and the bends of the tiers."""
        terms = self.terms
        through = vector[terms.lists.node]
        below = terms.below(self.odds * through)
        entries = self.odds * (self.chance * through - terms.from_above(self.held * below / self.sums**2))
        if len(terms.tiers):
            after = terms.after
            ahead = through[terms.entry] - terms.tiers.spread(below[after] / self.sums[after])
            pull = self.bends.times(ahead)
            entries -= self.odds * terms.from_tiers(terms.tiers.sums(pull) / self.sums[after])
            entries[terms.entry] += pull
        return self._to_nodes(entries)

    def _to_nodes(self, entries: Floats) -> Floats:
        return np.asarray(np.bincount(self.terms.lists.node, entries, self.nodes), np.float64)


@dataclass(frozen=True, eq=False)
class Bends:
    """Second derivatives of tiers: a block of each, of wide tiers as a diagonal less products of a few rows."""

    blocks: csr_array
    rows: csr_array
    """Of wide tiers: −w ∂² log I/∂x² is their diagonal of ``blocks`` − rowsᵀ rows."""

    @classmethod
    def of(cls, tiers: Ragged, weight: Floats, second: Floats, wide: Places, nodes: Places, rows: Floats) -> Bends:
        """Lay out what ``tier_events`` and ``wide_events`` found; nodes (wide,) are the rows of each wide tier."""
        size, entries = tiers.sizes, int(tiers.start[-1])
        cells = Ragged.of_sizes(tiers.spread(np.where(size > WIDE, 1, size)))
        first = np.where(tiers.spread(size > WIDE), np.arange(entries), tiers.spread(tiers.first))
        data = -second * cells.spread(tiers.spread(weight))
        blocks = csr_array((data, cells.spread(first) + cells.place, cells.start), shape=(entries, entries))
        owner = np.repeat(wide, nodes)
        each = Ragged.of_sizes(size[owner])
        column = (each.spread(tiers.first[owner]) + each.place).astype(np.int32)
        rows *= each.spread(np.sqrt(weight[owner]))
        return cls(blocks, csr_array((rows, column, each.start), shape=(len(owner), entries)))

    def times(self, vector: Floats) -> Floats:
        """Multiply by a vector of the entries of tiers."""
        return np.asarray(self.blocks @ vector - self.rows.T @ (self.rows @ vector), np.float64)

    def diagonal(self) -> Floats:
        """Return the diagonal."""
        held = np.bincount(self.rows.indices, self.rows.data**2, self.blocks.shape[0])
        return np.asarray(self.blocks.diagonal() - held, np.float64)

    def pairs(self, tiers: Ragged) -> Iterator[tuple[Places, Places, Floats]]:
        """Entries of tiers, the earlier first, and the cell of each two of them."""
        whole = self.blocks.tocoo()
        upper = whole.row < whole.col
        yield whole.row[upper], whole.col[upper], whole.data[upper]
        first = self.rows.indices[self.rows.indptr[:-1]]
        for run in Ragged.runs(first).slices:
            width = int(tiers.sizes[tiers.owner[first[run.start]]])
            ends = self.rows.indptr[run.start], self.rows.indptr[run.stop]
            rows = self.rows.data[ends[0] : ends[1]].reshape(-1, width)
            ahead, behind = np.triu_indices(width, 1)
            yield first[run.start] + ahead, first[run.start] + behind, -(rows.T @ rows)[ahead, behind]


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
    """Return the information −∂² as a sparse matrix: a Laplacian with an edge between any two items of a list.

    Errors: UsageError where more pairs of items share a list than memory should hold.
    """
    lists, n = at.terms.lists, at.nodes
    nodes, pairs = Ragged(lists.node_start), float((lists.length.astype(float) ** 2).sum()) / 2
    cells = float((nodes.sizes.astype(float) ** 2).sum())
    if min(cells, pairs) > CELLS:
        raise UsageError(
            f"standard errors of plackett-luce take a number for each pair of items that share a list, and lists of up "
            f"to {int(lists.length.max()):,} items make more than {CELLS:,.0f}: ask for no intervals (",
            Setting("interval", "none"),
            ") or for those of a bootstrap (",
            Setting("interval", "bootstrap"),
            ")",
        )
    whole = _filled(at, nodes) if cells < pairs / 8 and pairs > DENSE else _added(at)
    whole = whole + whole.T
    corner = np.arange(n)
    return (whole + csr_array((-np.asarray(whole.sum(axis=1)).ravel(), (corner, corner)), shape=(n, n))).tocsr()


def _added(at: Position) -> csr_array:
    """Off-diagonal cells of the information, pairs of entries added up some at a time."""
    node, n = at.terms.lists.node, at.nodes
    whole = csr_array((n, n))
    for first, second, weight in (*_common_sets(at), *_tiers_and_below(at), *_within_tiers(at)):
        whole = whole - coo_array((weight, (node[first], node[second])), shape=(n, n)).tocsr()
    return whole


def _filled(at: Position, nodes: Ragged) -> csr_array:
    """The same, in a table of each graph: where many pairs of entries fall on few pairs of items."""
    from concordant.kernels.tier_events import pairs_of_lists

    lists, terms = at.terms.lists, at.terms
    table = Ragged.of_sizes(nodes.sizes**2)
    graph = nodes.owner[lists.node[lists.start[:-1]]]
    corner, width = table.start[graph], nodes.sizes[graph]
    local = lists.node - nodes.first[nodes.owner[lists.node]]
    share = np.zeros(len(lists.node))
    share[terms.entry] = at.stiffness[0] / terms.tiers.spread(at.sums[terms.after])
    cells = np.zeros(int(table.start[-1]))
    until = lists.groups.spread(lists.start[1:]) - lists.below
    pairs_of_lists(lists.start, local, corner, width, at.squares * at.odds, share, until, at.odds, cells)
    for first, second, weight in _within_tiers(at):
        place = corner[lists.row[first]] + local[first] * width[lists.row[first]] + local[second]
        np.add.at(cells, place, weight)
    filled = np.flatnonzero(cells)
    owner = table.owner[filled]
    row, column = np.divmod(filled - table.start[owner], nodes.sizes[owner])
    start = nodes.first[owner]
    return csr_array(coo_array((-cells[filled], (start + row, start + column)), shape=(at.nodes, at.nodes)).tocsr())


def _common_sets(at: Position) -> Iterator[tuple[Places, Places, Floats]]:
    """Pairs of entries (better, worse) that stand together in remaining sets: those that hold the better."""
    lists = at.terms.lists
    squares, odds = at.squares, at.odds
    work = np.cumsum(lists.length**2 // 2)
    for rows in Ragged.runs(work // PAIRS).slices:
        taken, entries = lists.groups.take(np.arange(rows.start, rows.stop))
        first, second = (entries[side] for side in taken.pairs())
        yield first, second, squares[first] * odds[first] * odds[second]


def _tiers_and_below(at: Position) -> Iterator[tuple[Places, Places, Floats]]:
    """Pairs of an entry of a tier and an entry below it."""
    terms, tiers = at.terms, at.terms.tiers
    end = terms.lists.start[1:][terms.lists.row[terms.after]]
    rows = Ragged.of_sizes(tiers.spread(end - terms.after))
    share = at.stiffness[0] / tiers.spread(at.sums[terms.after])
    for part in Ragged.runs(np.cumsum(rows.sizes) // PAIRS).slices if len(rows) else ():
        some = Ragged.of_sizes(rows.sizes[part])
        below = some.spread(tiers.spread(terms.after)[part]) + some.place
        yield some.spread(terms.entry[part]), below, some.spread(share[part]) * at.odds[below]


def _within_tiers(at: Position) -> Iterator[tuple[Places, Places, Floats]]:
    entry = at.terms.entry
    for first, second, cell in at.bends.pairs(at.terms.tiers):
        yield entry[first], entry[second], -cell

"""What a share of a divided query keeps (a pair table, lists), and what it adds to sums over all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components

from concordant.errors import InputError
from concordant.preferences.counted import declare
from concordant.preferences.counts import rows_alike
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Lists, Preferences, counted_lists, keep, with_unranked_last
from concordant.preferences.ragged import Ragged
from concordant.ranking.closed_forms import positional_sums
from concordant.ranking.curvature import bradley_terry_curvature
from concordant.ranking.luce_terms import LuceTerms
from concordant.ranking.problem import win_derivatives
from concordant.ranking.ranked_lists import Rankings, touches
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BETWEEN = 1 << 22
"""Wins between blocks that a task lays out at once."""
CELLS = 1 << 24
"""Entries of a matrix of items by items that is added up."""
CROSSING = 1 << 23
"""Wins between items that no share connects which the driver takes at most."""


Ways = tuple[int, ...]
"""Numbers of columns of clusters."""


class TooMuch(Exception):
    """More is to be brought together than a task or the driver takes."""


@dataclass(frozen=True, eq=False)
class Crossing:
    """A win for each two blocks between which there are some."""

    key: Ints
    source: NDArray[np.int32]
    target: NDArray[np.int32]

    @classmethod
    def of(cls, block: NDArray[np.int32], source: NDArray[np.int32], target: NDArray[np.int32]) -> Crossing:
        """Of the wins of ``source`` over ``target``. Errors: as of ``checked``."""
        one, other = block[source], block[target]
        kept = np.flatnonzero(one != other)
        key = one[kept].astype(np.int64) * (int(block.max()) + 1) + other[kept]
        key, first = np.unique(key, return_index=True)
        return cls(key, source[kept][first], target[kept][first]).checked()

    @classmethod
    def none(cls) -> Crossing:
        """No wins."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))

    def __add__(self, other: Crossing) -> Crossing:
        key, first = np.unique(np.append(self.key, other.key), return_index=True)
        return Crossing(
            key, np.append(self.source, other.source)[first], np.append(self.target, other.target)[first]
        ).checked()

    def checked(self) -> Crossing:
        """Errors: InputError where there are too many."""
        if len(self.key) > CROSSING:
            raise InputError(
                f"one query has more than {CROSSING:,} wins between items that few others connect: it is not divided "
                "among tasks; rank it on one machine that holds it"
            )
        return self


@dataclass(frozen=True, eq=False)
class Held:
    """Some judgments; those of parts are put together, up to ``most``, of more nothing is kept."""

    prefs: Preferences | None
    most: int

    def __add__(self, other: Held) -> Held:
        both = None if self.prefs is None or other.prefs is None else self.prefs + other.prefs
        return replace(self, prefs=both).checked()

    def checked(self) -> Held:
        """Itself, or nothing where that is too much."""
        return self if self.prefs is None or self.prefs.distinct <= self.most else replace(self, prefs=None)


@dataclass(frozen=True, eq=False)
class Cells:
    """A sparse matrix; those of parts add up, up to ``CELLS`` entries, of more nothing is kept."""

    matrix: csr_array | None

    def __add__(self, other: Cells) -> Cells:
        both = None if self.matrix is None or other.matrix is None else self.matrix + other.matrix
        return Cells(both).checked()

    def checked(self) -> Cells:
        """Itself, or nothing where that is too much."""
        return self if self.matrix is None or self.matrix.nnz <= CELLS else Cells(None)


@dataclass(frozen=True, eq=False)
class Whose:
    """Who made each of some judgments, by each of some columns: labels, and the code of each judgment."""

    ways: tuple[tuple[Labels, NDArray[np.int32]], ...] = ()

    @classmethod
    def of(cls, prefs: Preferences) -> Whose:
        """Of all judgments; of none where that is not known."""
        if prefs.clusters is None:
            return cls()
        if not prefs.cluster_columns:
            return cls(((prefs.clusters, prefs.cluster_ways[0]),))
        columns = zip(*map(json.loads, prefs.clusters.tolist()), strict=True)
        each = [Labels.encode(list(column)) for column in columns]
        return cls(tuple([(labels, code[prefs.cluster]) for labels, code in each]))

    def cells(self, ways: tuple[int, ...]) -> tuple[NDArray[np.int64] | None, int]:
        """A number for what each judgment has in these columns together, and how many there are; None without any."""
        if not ways:
            return None, 0
        found, cell = rows_alike(*(self.ways[way][1] for way in ways))
        return cell, len(found)


@dataclass(frozen=True, eq=False)
class Tally:
    """Numbers by key, keys ascending; those of parts add up, up to ``CELLS`` keys, of more nothing is kept."""

    key: Ints | None
    columns: tuple[NDArray[Any], ...]

    @classmethod
    def of(cls, key: Ints, *columns: NDArray[Any]) -> Tally:
        """Add up what has the same key."""
        found, place = np.unique(key, return_inverse=True)
        sums = [np.bincount(place, np.asarray(each, np.float64), len(found)) for each in columns]
        return cls(found, tuple([narrow(np.asarray(each, np.float64)) for each in sums])).checked()

    def __add__(self, other: Tally) -> Tally:
        if self.key is None or other.key is None:
            return Tally(None, ())
        ends = zip(self.columns, other.columns, strict=True)
        return Tally.of(np.append(self.key, other.key), *[np.append(*each) for each in ends])

    def checked(self) -> Tally:
        """Itself, or nothing where that is too much."""
        return self if self.key is None or len(self.key) <= CELLS else Tally(None, ())


@dataclass(frozen=True, eq=False)
class Share:
    """What a share keeps: items by their codes among ``items`` or, then None, among those of the query."""

    queries: Labels
    items: Labels | None
    touched: Ints
    """Judgments of each item, while ``items`` are its own."""
    judgments: int

    @classmethod
    def of(cls, prefs: Preferences) -> Self:
        """Of some judgments of one query."""
        raise NotImplementedError

    def coded(self, items: Labels) -> Share:
        """Name the items by their codes among ``items``, all of the query."""
        own = items.codes_of((self.items or items).values)
        touched = np.zeros(len(items), np.int64)
        touched[own] = self.touched
        return replace(self, items=None, touched=touched, **self._placed(own))

    def _placed(self, own: NDArray[np.int32]) -> dict[str, Any]:
        """The fields that name items, where item i is called own[i]."""
        raise NotImplementedError

    def links(self) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]:
        """Which items its own wins connect strongly (a number for each), who ever won, and who ever lost."""
        raise NotImplementedError

    def between(self, block: NDArray[np.int32]) -> Crossing:
        """The wins between items of different blocks; of those between two blocks one is enough."""
        raise NotImplementedError

    def inner(self, block: NDArray[np.int32]) -> Share:
        """Its pairs of items of one block."""
        raise NotImplementedError

    def slopes(self, score: Floats) -> tuple[Floats, Floats]:
        """What it adds to the gradient of the log-likelihood, and to the diagonal of the negative Hessian."""
        raise NotImplementedError

    def image(self, score: Floats, along: Floats) -> Floats:
        """The negative Hessian at some scores times a vector."""
        raise NotImplementedError

    def information(self, score: Floats) -> csr_array:
        """What it adds to the negative Hessian."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Drawn(Share):
    """A share of judgments of which each is one draw, whoever made it."""

    code: NDArray[np.int32]
    """Of each of its nodes."""
    whose: Whose

    def draws(self, score: Floats) -> Iterator[tuple[csr_array, Floats, NDArray[np.int64]]]:
        """Gradients of what each of some judgments says, all of its times, by node; how many times, and its number."""
        raise NotImplementedError

    def holding(self, some: NDArray[np.bool_], items: Labels, way: int | None) -> Preferences:
        """The lists that hold some of the query's items; ``way``: the column that says who made them, if any."""
        raise NotImplementedError

    def middle(self, score: Floats, cell: NDArray[np.int64] | None) -> csr_array:
        """Σ u uᵀ over its judgments or, where cells are given, over these, u the gradient of what one says.

        What stands behind the scores are coefficients, as in u.
        """
        code = np.append(self.code, np.arange(len(self.touched), len(score)))
        nodes, cells = len(code), 0 if cell is None else int(cell.max(initial=-1)) + 1
        whole, root = csr_array((nodes, nodes)), csr_array((cells, nodes))
        for found, times, number in self.draws(score):
            if cell is None:
                each = diags_array(1.0 / np.sqrt(times)) @ found
                whole = whole + csr_array(each.T @ each)
            else:
                row = np.arange(len(number))
                gather = coo_array((np.ones(len(row)), (cell[number], row)), shape=(cells, len(row)))
                root = csr_array(root + csr_array(gather) @ found)
        return among(whole if cell is None else csr_array(root.T @ root), code, len(score))


@dataclass(frozen=True, eq=False)
class Pairs(Share):
    """The pair table of a share."""

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    above: NDArray[Any]
    below: NDArray[Any]

    @classmethod
    def of(cls, prefs: Preferences) -> Self:
        """The pair table of some judgments of one query."""
        batch = Batch.whole(prefs)
        return cls(*known_of(prefs, batch), *_wins(batch, batch.graphs))

    def _placed(self, own: NDArray[np.int32]) -> dict[str, Any]:
        return {"first": own[self.first], "second": own[self.second]}

    @property
    def wins(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Whoever won, and against whom."""
        up, down = self.above > 0, self.below > 0
        return np.append(self.first[up], self.second[down]), np.append(self.second[up], self.first[down])

    def links(self) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]:
        source, target = self.wins
        size = len(self.touched)
        beats = csr_array((np.ones(len(source), np.int8), (source, target)), shape=(size, size))
        strong = connected_components(beats, directed=True, connection="strong")[1]
        won, lost = (np.bincount(side, minlength=size) > 0 for side in (source, target))
        return strong, won, lost

    def between(self, block: NDArray[np.int32]) -> Crossing:
        return Crossing.of(block, *self.wins)

    def inner(self, block: NDArray[np.int32]) -> Pairs:
        own = np.flatnonzero(block[self.first] == block[self.second])
        held = self.queries, self.items, self.touched, self.judgments
        return Pairs(*held, self.first[own], self.second[own], self.above[own], self.below[own])

    def slopes(self, score: Floats) -> tuple[Floats, Floats]:
        pull, curve = self._derivatives(score)
        size = len(self.touched)
        both = np.bincount(self.first, curve, size) + np.bincount(self.second, curve, size)
        return self._differences(pull), np.asarray(both, np.float64)

    def image(self, score: Floats, along: Floats) -> Floats:
        return self._differences(self._derivatives(score)[1] * (along[self.first] - along[self.second]))

    def information(self, score: Floats) -> csr_array:
        curve, size = self._derivatives(score)[1], len(self.touched)
        ends = np.concatenate([self.first, self.second, self.first, self.second])
        others = np.concatenate([self.second, self.first, self.first, self.second])
        cells = np.concatenate([-curve, -curve, curve, curve])
        return csr_array(coo_array((cells, (ends, others)), shape=(size, size)))

    def _derivatives(self, score: Floats) -> tuple[Floats, Floats]:
        above, below = (np.asarray(each, np.float64) for each in (self.above, self.below))
        return win_derivatives(score[self.first] - score[self.second], above, below)

    def _differences(self, of_pairs: Floats) -> Floats:
        size = len(self.touched)
        found = np.bincount(self.first, of_pairs, size) - np.bincount(self.second, of_pairs, size)
        return np.asarray(found, np.float64)


@dataclass(frozen=True, eq=False)
class Tabled(Pairs):
    """The pair table of a share with its ties, and how many judgments each pair has, however strong these are."""

    ties: NDArray[Any]
    judged: NDArray[Any]

    @classmethod
    def of(cls, prefs: Preferences) -> Self:
        """The pair table of some judgments of one query."""
        batch = Batch.whole(prefs)
        graphs = batch.graphs
        judged = graphs.wins + graphs.losses + graphs.ties
        if prefs.weighted:
            edges = batch.edges
            pair = graphs.pair_of(edges.winner, edges.loser)
            judged = np.bincount(pair, batch.multiplicity[edges.holder], len(judged)).astype(np.float64)
        return cls(*known_of(prefs, batch), *_wins(batch, graphs), narrow(graphs.ties), narrow(judged))

    def graphs(self) -> Graphs:
        """The pair table among all items of the query."""
        above, below, ties = (np.asarray(each, np.float64) for each in (self.above, self.below, self.ties))
        first, second = self.first.astype(np.int64), self.second.astype(np.int64)
        start = np.array([0, len(self.touched)]), np.array([0, len(first)])
        return Graphs(*start, first, second, above - 0.5 * ties, below - 0.5 * ties, ties, None)


@dataclass(frozen=True, eq=False)
class ListedPairs(Drawn, Pairs):
    """The pair table of lists, and the lists, of which each is one judgment."""

    prefs: Preferences

    @classmethod
    def of(cls, prefs: Preferences) -> Self:
        """The pair table of some lists of one query."""
        pairs = vars(Pairs.of(prefs))
        return cls(**pairs, code=Batch.whole(prefs).item, whose=Whose.of(prefs), prefs=prefs)

    def _placed(self, own: NDArray[np.int32]) -> dict[str, Any]:
        return {**super()._placed(own), "code": own[self.code]}

    def holding(self, some: NDArray[np.bool_], items: Labels, way: int | None) -> Preferences:
        prefs = self.prefs
        if not isinstance(prefs, Lists):
            return Preferences.empty()
        held = some[self.code][prefs.list_item].astype(np.float64)
        return taken(prefs, np.flatnonzero(prefs.lists.most(held) > 0), way)

    def draws(self, score: Floats) -> Iterator[tuple[csr_array, Floats, NDArray[np.int64]]]:
        prefs, one, scores = self.prefs, np.zeros(1, np.int64), self._scores(score)
        work = prefs.lists.sizes.astype(np.float64) ** 2 / 2 if isinstance(prefs, Lists) else np.ones(prefs.distinct)
        for rows in Ragged.runs((np.cumsum(work) / BETWEEN).astype(np.int64)).slices:
            row, count = np.arange(rows.start, rows.stop), prefs.count[rows].astype(np.int64)
            batch = Batch(prefs, one.astype(np.int32), np.array([0, len(row)]), row, count)
            times = count.astype(np.float64)
            found = diags_array(times) @ bradley_terry_curvature(batch, scores).contributions
            yield csr_array(found), times, row

    def _scores(self, score: Floats) -> Scores:
        """Scores of its nodes, as the structure returns them."""
        one = np.zeros(1, np.int64)
        return Scores(score[self.code], np.zeros(len(self.code), np.int32), one.astype(np.int8), one, np.zeros(1))


@dataclass(frozen=True, eq=False)
class Listed(Drawn):
    """The lists of a share."""

    lists: Rankings

    @classmethod
    def of(cls, prefs: Preferences) -> Self:
        """Some lists of one query."""
        batch = Batch.whole(prefs)
        return cls(*known_of(prefs, batch), batch.item.astype(np.int32), Whose.of(prefs), Rankings.of(batch))

    def _placed(self, own: NDArray[np.int32]) -> dict[str, Any]:
        return {"code": own[self.code]}

    def links(self) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]:
        linked, size = self.lists.connected(), len(self.touched)
        strong = int(linked.block.max(initial=-1)) + 1 + np.arange(size)
        strong[self.code] = linked.block
        won, lost = np.zeros(size, bool), np.zeros(size, bool)
        won[self.code], lost[self.code] = linked.won, linked.lost
        return np.unique(strong, return_inverse=True)[1], won, lost

    def between(self, block: NDArray[np.int32]) -> Crossing:
        lists, own = self.lists, block[self.code]
        of_entries = own[lists.node]
        mixed = np.flatnonzero(lists.groups.most(of_entries) > -lists.groups.most(-of_entries))
        some = lists.take(mixed)
        tier = rows_alike(some.row, some.tier, own[some.node])[0]
        tiers = Ragged.runs(some.row[tier], some.tier[tier])
        node = self.code[some.node[tier]]
        upper = np.flatnonzero(np.diff(some.row[tier[tiers.first]]) == 0)
        work = np.cumsum(tiers.sizes[upper] * tiers.sizes[upper + 1])
        found = Crossing.none()
        for run in Ragged.runs(work // BETWEEN).slices if len(work) else ():
            below = tiers.sizes[upper[run] + 1]
            each = Ragged.of_sizes(tiers.sizes[upper[run]] * below)
            above, under = np.divmod(each.place, each.spread(below))
            source, target = each.spread(tiers.first[upper[run]]), each.spread(tiers.first[upper[run] + 1])
            found += Crossing.of(block, node[source + above], node[target + under])
        return found

    def slopes(self, score: Floats) -> tuple[Floats, Floats]:
        at = LuceTerms(self.lists).at(score[self.code])
        return self._spread(at.gradient()), self._spread(at.diagonal())

    def image(self, score: Floats, along: Floats) -> Floats:
        return self._spread(LuceTerms(self.lists).at(score[self.code]).times(along[self.code]))

    def information(self, score: Floats) -> csr_array:
        at = LuceTerms(self.lists).at(score[self.code])
        return among(at.information(), self.code, len(self.touched))

    def draws(self, score: Floats) -> Iterator[tuple[csr_array, Floats, NDArray[np.int64]]]:
        lists, nodes = self.lists, len(self.code)
        work = np.cumsum(lists.length.astype(np.float64) ** 2) / BETWEEN
        for rows in Ragged.runs(work.astype(np.int64)).slices if len(work) else ():
            some = lists.take(np.arange(rows.start, rows.stop))
            gradient = LuceTerms(some).at(score[self.code]).gradient_entries()
            found = csr_array(coo_array((gradient, (some.row, some.node)), shape=(len(some.weight), nodes)))
            yield found, some.weight, some.holder

    def holding(self, some: NDArray[np.bool_], items: Labels, way: int | None) -> Preferences:
        """As rankings: a choice stands above a tie of the others."""
        lists = self.lists
        lists = lists.take(np.flatnonzero(lists.groups.most(some[self.code][lists.node].astype(np.float64)) > 0))
        if not len(lists.weight):
            return Preferences.empty()
        item, query = items.take(self.code[lists.node]), self.queries.take(np.zeros(len(lists.weight), np.int64))
        count, (labels, code) = lists.weight.astype(np.int64), (None, None) if way is None else self.whose.ways[way]
        whom = None if labels is None or code is None else labels.take(code[lists.holder])
        return counted_lists("orders", lists.start, item, lists.tier, query=query, cluster=whom, count=count)

    def _spread(self, of_nodes: Floats) -> Floats:
        found = np.zeros(len(self.touched))
        found[self.code] = of_nodes
        return found


@dataclass(frozen=True, eq=False)
class Positions(Pairs):
    """What rankings say of each of their items by its position, and the chains of items that each ranking is."""

    code: NDArray[np.int32]
    """Of each item; ``total``: its positions, of which borda's score is the mean; ``mass``: how many there are."""
    total: Floats
    mass: Floats

    @classmethod
    def of(cls, prefs: Preferences) -> Self:
        """The positions of some rankings of one query."""
        batch = Batch.whole(prefs)
        lists = Rankings.of(batch)
        sums = positional_sums(lists, len(batch.item))
        return cls(*known_of(prefs, batch), *_wins(batch, lists.chain()), batch.item.astype(np.int32), *sums)

    def _placed(self, own: NDArray[np.int32]) -> dict[str, Any]:
        return {**super()._placed(own), "code": own[self.code]}

    def sums(self) -> tuple[Floats, Floats]:
        """Total and mass of each item of the query."""
        total, mass = np.zeros((2, len(self.touched)))
        total[self.code], mass[self.code] = self.total, self.mass
        return total, mass


@dataclass(frozen=True, eq=False)
class Whole(Share):
    """The judgments of a share as they are, among all items of the query once these are known."""

    prefs: Preferences

    @classmethod
    def of(cls, prefs: Preferences) -> Self:
        """Some judgments of one query."""
        return cls(*known_of(prefs, Batch.whole(prefs)), prefs)

    def coded(self, items: Labels) -> Share:
        size = len(items)
        known = self.queries.take(np.zeros(size, np.int64)), items.take(np.arange(size))
        return replace(super().coded(items), prefs=declare(self.prefs, known))  # type: ignore[call-arg]

    def _placed(self, own: NDArray[np.int32]) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, eq=False)
class Ballots(Share):
    """Rankings whose query has items that they leave out in last place: not yet known, and then ``kept`` as such."""

    prefs: Preferences
    kept: type[Share]

    @classmethod
    def of(cls, prefs: Preferences, kept: type[Share] = Listed) -> Self:
        """Some rankings of one query."""
        return cls(prefs.queries, prefs.items, np.zeros(0, np.int64), len(prefs), prefs, kept)

    def coded(self, items: Labels) -> Share:
        size, prefs = len(items), self.prefs
        prefs = declare(prefs, (self.queries.take(np.zeros(size, np.int64)), items.take(np.arange(size))))
        return self.kept.of(with_unranked_last(prefs) if isinstance(prefs, Lists) else prefs).coded(items)


def taken(prefs: Preferences, rows: NDArray[np.intp], way: int | None = None) -> Preferences:
    """Some of the judgments; ``way``: of several columns of clusters the one that is kept."""
    found = keep(prefs, rows, prefs.count[rows], prefs.declared[:0])
    return found if way is None else in_cells(found, (way,))


def in_cells(prefs: Preferences, ways: Ways) -> Preferences:
    """The same judgments, whose clusters are the cells of some of the columns."""
    if not prefs.cluster_columns:
        return prefs
    return replace(prefs.by_cluster(*(prefs.cluster_columns[way] for way in ways)), cluster_columns=())


def known_of(prefs: Preferences, batch: Batch) -> tuple[Labels, Labels, Ints, int]:
    """What every share knows of some judgments: queries, items, the judgments of each item, and their number."""
    touched = np.zeros(len(prefs.items), np.int64)
    touched[batch.item] = touches(batch)
    return prefs.queries, prefs.items, touched, len(prefs)


def _wins(batch: Batch, graphs: Graphs) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[Any], NDArray[Any]]:
    """First and second item of each pair, and the wins of either."""
    codes = batch.item.astype(np.int32)
    return codes[graphs.first], codes[graphs.second], narrow(graphs.above), narrow(graphs.below)


def among(cells: csr_array, code: NDArray[Any], size: int) -> csr_array:
    """A matrix of nodes as one of all items of the query."""
    own = cells.tocoo()
    return csr_array(coo_array((own.data, (code[own.row], code[own.col])), shape=(size, size)))


def narrow(values: Floats) -> NDArray[Any]:
    """The same numbers in the smallest integers that hold them; others as they are."""
    whole = not len(values) or bool((values == np.floor(values)).all())
    return values.astype(np.min_scalar_type(int(values.max(initial=0)))) if whole else values

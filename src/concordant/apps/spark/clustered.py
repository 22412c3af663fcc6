"""One query that no task can hold, its judgments in clusters: divided among tasks by who made them.

Such a log says few different things: the votes of 10⁷ people on 200 items are 40,000 kinds of judgments at most. Tasks
count the kinds, of which the scores and their curvature follow here, as in memory. What the clusters are needed for,
the middle of the sandwich, is a sum over them, and a cluster lies in one share: a matrix of parameters travels. Where
judgments depend on each other in several ways, they are divided once by each. The clusters that a replicate of a
bootstrap holds are drawn by tasks as memory draws them (``Draw``); what travels is how often it holds each kind.

Judgments between items that the data do not limit against each other, which are few, come here as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from threading import Lock
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from scipy.sparse import csr_array, vstack

from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_held import Sums, summed
from concordant.apps.spark.redrawn import Draw, clusters_of
from concordant.apps.spark.shares import CROSSING, Held, Ways, in_cells, taken
from concordant.apps.spark.splitting import alike, shared_out, together
from concordant.errors import counted
from concordant.preferences.counted import recounted
from concordant.preferences.counts import MOST, rows_alike
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.layouts import CLUSTERS
from concordant.preferences.preferences import Comparisons, Lists, Preferences, with_unranked_last
from concordant.preferences.sampling import label_keys
from concordant.progress import stage
from concordant.ranking.contrasts import Gauge
from concordant.ranking.covariance import Meat
from concordant.ranking.cumulative import Graded, Outcomes
from concordant.ranking.curvature import Curvature, bradley_terry_curvature
from concordant.ranking.multinomial import ALONE, Atoms, Counts, Stream
from concordant.ranking.rank import Ranking, rank
from concordant.ranking.scores import Scores
from concordant.ranking.structures import Structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LARGEST = 1000
"""Items of a sandwich: each task sends a square matrix of so many rows."""
DIFFERENT = ALONE
"""Lists that differ, of a query too large for a task, which the driver takes with their numbers."""
UNSEEN = ("clusters", "lack of fit", "contradicted pairs")
"""Notes on what is here without its clusters."""


REPLICATED = 1 << 22
"""Numbers of kinds in replicates that a task returns."""
DRAWN = 1 << 29
"""Numbers of kinds in all replicates beyond which they are not brought together."""


# -- in a task -----------------------------------------------------------------------------------------------------
def _same(prefs: Preferences) -> Preferences:
    return prefs


def without_clusters(prefs: Preferences) -> Preferences:
    """The same judgments, whoever made them."""
    return recounted(replace(prefs, cluster=None, clusters=None, cluster_columns=()), prefs.query, prefs.count)


@dataclass(frozen=True)
class _Kinds:
    """What is the same but for who made it, once; and how many clusters there are."""

    most: int

    def __call__(self, prefs: Preferences) -> Sums:
        kinds = Held(without_clusters(prefs), self.most).checked()
        return Sums(kinds=kinds, clusters=len(np.unique(prefs.cluster_codes[0])), judgments=len(prefs))


@dataclass(frozen=True)
class _Different:
    """What is the same, once."""

    most: int

    def __call__(self, prefs: Preferences) -> Sums:
        return Sums(kinds=Held(prefs, self.most).checked())


@dataclass(frozen=True)
class _Number:
    """How many clusters there are by a column."""

    way: int

    def __call__(self, prefs: Preferences) -> Sums:
        return Sums(clusters=len(np.unique(prefs.cluster_codes[self.way])))


@dataclass(frozen=True, eq=False)
class _Between:
    """The judgments between items of different blocks, with who made them: by that of several columns."""

    items: Labels
    block: NDArray[np.int32]
    way: int

    def __call__(self, prefs: Comparisons) -> Sums:
        block = self.block[self.items.codes_of(prefs.items.values)]
        rows = np.flatnonzero(block[prefs.winner] != block[prefs.loser])
        return Sums(held=Held(taken(prefs, rows, self.way), CROSSING).checked())


@dataclass(frozen=True, eq=False)
class Middle:
    """Σ u_c u_cᵀ over the clusters of a share, u_c the gradient of what one said, at some scores; and how many.

    By the numbers of the columns whose cells are the clusters.
    """

    items: Labels
    scores: Scores
    names: tuple[str, ...]
    """Of the parameters beside the scores."""
    ways: tuple[Ways, ...]
    seen: Outcomes | None = None
    """The outcomes of all judgments, where there are thresholds between them."""

    def __call__(self, prefs: Preferences) -> Sums:
        found = Sums()
        for way in self.ways:
            found["middle", way], found["cells", way] = self._of(in_cells(prefs, way))
        return found

    def _of(self, prefs: Preferences) -> tuple[Floats, int]:
        batch = Batch.whole(prefs)
        node = self.items.codes_of(prefs.items.take(batch.item))
        here = replace(self.scores, value=self.scores.value[node], components=np.zeros(len(node), np.int32))
        if self.seen is not None:
            Graded.fitted(batch, here.coefficients, self.seen)
        curvature = bradley_terry_curvature(batch, here)
        meat = Meat.of(batch, curvature)
        size, own = len(self.items), [self.names.index(name) for name in curvature.extra_name]
        place: NDArray[np.int64] = np.append(node, size + np.array(own, np.int64))
        clusters = int(meat.clusters[0])
        found = np.zeros((size + len(self.names),) * 2)
        found[np.ix_(place, place)] = (meat.root.T @ meat.root).toarray() * (max(clusters - 1, 1) / clusters)
        return found, clusters


def numbers_among(prefs: Comparisons, kinds: Comparisons) -> Ints:
    """The number of each judgment among kinds that say the same, whoever made it."""
    items = kinds.items.codes_of(prefs.items.values).astype(np.int64)
    told, known = _told(prefs, items), _told(kinds, np.arange(len(kinds.items)))
    found = rows_alike(*np.concatenate([known, told]).T)[1]
    place = np.zeros(len(found), np.int64)
    place[found[: len(known)]] = np.arange(len(known))
    return place[found[len(known) :]]


def _told(prefs: Comparisons, items: Ints) -> Floats:
    """What judgments say, a row for each; ``items``: numbers for the codes."""
    one = np.ones(prefs.distinct)
    parts = [items[prefs.winner], items[prefs.loser], 0.0 * one if prefs.tie is None else prefs.tie]
    parts += [one if each is None else each for each in (prefs.weight, prefs.share)]
    parts += [] if prefs.time is None else [prefs.time]
    return np.column_stack([*parts, *([] if prefs.covariates is None else [prefs.covariates])]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Replicates:
    """How often replicates ``begin`` … ``end`` − 1 hold each kind, by the clusters of a share."""

    kinds: Comparisons
    draw: Draw
    begin: int
    end: int

    def __call__(self, prefs: Comparisons) -> Sums:
        labels, where = prefs.clusters or Labels.empty(), (numbers_among(prefs, self.kinds), prefs.cluster_ways[0])
        judged = csr_array((prefs.count.astype(np.int64), where), shape=(self.kinds.distinct, len(labels)))
        drawn = self.draw.of_clusters(labels, np.arange(self.begin, self.end))
        return Sums(drawn=(judged @ np.ascontiguousarray(drawn.T)).T)


# -- on the driver -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Elsewhere(Atoms):
    """Kinds of judgments as what a bootstrap draws, of clusters that lie in shares."""

    clusters: int
    find: Callable[[int, int], Counts]
    """How often replicates hold each kind, from one on to before another."""

    @property
    def draws(self) -> int:
        return self.clusters

    def drawn(self, stream: Stream) -> Counts:
        return self.find(stream.begin, stream.end)


@dataclass(eq=False)
class Drawing:
    """Replicates of a bootstrap of the clusters of a query, some in each pass over its shares."""

    sums: Callable[[Callable[[Any], Sums]], Sums]
    kinds: Comparisons
    draw: Draw
    clusters: int
    found: dict[int, Counts] = field(default_factory=dict)
    """By pass, the last of them."""
    lock: Any = field(default_factory=Lock)
    """Replicates are fitted side by side."""

    @property
    def pass_(self) -> int:
        """Replicates of a pass."""
        return max(REPLICATED // max(self.kinds.distinct, 1), 1)

    def atoms(self, batch: Batch, seed: int, *, clustered: bool = True) -> list[Atoms]:
        """As ``Atoms.of``, of a batch of these kinds, some of them perhaps several times."""
        member = numbers_among(cast(Comparisons, batch.prefs), self.kinds)[batch.judgment]
        multiplicity = np.zeros(len(member), np.int64)
        multiplicity[np.unique(member, return_index=True)[1]] = 1  # those of a kind are drawn together
        number = self.kinds.count.astype(np.int64)
        return [Elsewhere(number, member, multiplicity, 0, self.clusters, self.some)]

    def some(self, begin: int, end: int) -> Counts:
        """How often these replicates hold each kind."""
        parts = []
        for number in range(begin // self.pass_, (end - 1) // self.pass_ + 1):
            first = number * self.pass_
            parts.append(self._of(number)[max(begin - first, 0) : end - first])
        return np.concatenate(parts)

    def _of(self, number: int) -> Counts:
        with self.lock:
            if number not in self.found:
                begin = number * self.pass_
                work = _Replicates(self.kinds, self.draw, begin, min(begin + self.pass_, self.draw.replicates))
                while len(self.found) > 1:
                    self.found.pop(min(self.found))
                self.found[number] = self.sums(work)["drawn"]
            return self.found[number]


@dataclass(eq=False)
class ByClusters:
    """The shares of a query, and its kinds of judgments; to be freed by ``forget``."""

    frame: DataFrame
    shares: int
    tasks: int
    most: int
    kinds: Preferences | None = None
    """None: too many."""
    clusters: int = 0
    """Of the first column."""
    judgments: int = 0
    passes: int = 0
    columns: tuple[str, ...] = ("cluster",)
    """Of clusters; where there are none, judgments lie in any share."""
    named: bool = True
    """Whether the log names its queries."""
    divide: Callable[[int], tuple[DataFrame, int, int]] | None = None
    """Divide the query by another of these columns."""
    others: dict[int, ByClusters] = field(default_factory=dict)
    """The query divided by other columns, once that was needed."""

    @classmethod
    def of(cls, judged: JudgedQueries, label: Any) -> ByClusters:
        """Count the kinds of judgments of a query in shares, where there are clusters. Errors: as of any task."""
        every = [role for role in CLUSTERS if role in judged.frame.columns]

        def divide(way: int) -> tuple[DataFrame, int, int]:
            roles = every[way : way + 1] or judged.frame.columns
            return shared_out(judged, label, _same, *(fn.col(f"`{role}`") for role in roles))

        named = judged.checks.layout.clusters if len(every) > 1 else ("cluster",)[: len(every)]
        self = cls(*divide(0), judged.most, columns=named, named=label is not None, divide=divide)
        try:
            if every:
                self.look()
        except BaseException:
            self.forget()
            raise
        return self

    def look(self) -> None:
        """Learn what there is."""
        with stage("counting kinds of judgments"):
            found = self.sums(_Kinds(self.most))
        if found:
            self.kinds, self.clusters, self.judgments = found["kinds"].prefs, found["clusters"], found["judgments"]
        else:
            self.kinds = Preferences.empty()

    def sums(self, work: Callable[[Any], Sums]) -> Sums:
        """Do a piece of work on every share and add up."""
        self.passes += 1
        return summed(self.frame, work, self.tasks)

    def forget(self) -> None:
        """Free what is kept."""
        for shares in (self, *self.others.values()):
            shares.frame.unpersist()

    def ranked(self, member: Structure, asked: Mapping[str, Any]) -> tuple[Ranking, list[str]] | None:
        """The ranking by ``concordant.rank`` and what is to be noted; None: too much is to be brought together."""
        prefs, clustered = self.kinds, asked["interval"] == "sandwich"
        if prefs is None or not len(prefs) or (clustered and len(prefs.items) > LARGEST):
            return None
        member, drawn = replace(member, expects=False), asked["interval"] == "bootstrap"
        if drawn:
            drawing = self._drawing(prefs, asked)
            if drawing is None:
                return None
            member = replace(member, atoms=drawing.atoms)
        if clustered or (drawn and member.curvature is not None):
            between = self._between(prefs, member, asked.get("ties"))
            if between is None:
                return None
            if between is not prefs and (member.name != "bradley-terry" or len(prefs.items) > LARGEST):
                return None  # limits on one side are those of the sandwich
            prefs, member = between, replace(member, curvature=self._curvature)
        board = rank(prefs, member, **asked)
        left = {*prefs.notes, *(note for note in board.notes if getattr(note, "code", "") in UNSEEN)}
        notes: list[str] = [note for note in board.notes if note not in left]
        whose = counted(self.clusters, "clusters")
        if clustered:
            notes.append(alike(self.columns, self.numbers))
        label = board.queries[0] if self.named and len(board.queries) else ""
        what = f"query {label!r}" if label not in (None, "") else "the log"
        said = f"{what}: {counted(self.judgments, 'judgments')} of {whose}, divided among tasks by who made them"
        notes.append(
            f"{said} ({self.shares:,} shares, {self.passes:,} passes); whether the model fits was not looked at"
        )
        return board, notes

    def _drawing(self, kinds: Preferences, asked: Mapping[str, Any]) -> Drawing | None:
        """What draws the clusters; None: too many of them or of their kinds, or too few clusters to draw."""
        replicates, seed = asked.get("replicates", 1000), asked.get("seed", 0)
        if not isinstance(kinds, Comparisons) or not isinstance(replicates, int) or not isinstance(seed, int):
            return None
        if replicates * kinds.distinct > DRAWN:
            return None
        if self.clusters < 2 or self.clusters * self.judgments > MOST:
            return None
        labels = None if self.clusters > ALONE else self.sums(clusters_of)["labels"].labels
        draw = Draw(int(label_keys(kinds.queries, seed)[0]), replicates, True, labels)
        return Drawing(self.sums, kinds, draw, self.clusters)

    def _between(self, kinds: Preferences, member: Structure, ties: Any) -> Preferences | None:
        """The kinds, but for what lies between blocks: that as it was said, with clusters; None: too much of it."""
        batch = Batch.whole(kinds)
        linked = member.links(batch, ties)
        if not ((linked.separated | Gauge.of(batch.node_start, linked).lone) & linked.compared).any():
            return kinds
        block = np.full(len(kinds.items), -1, np.int32)
        block[batch.item] = linked.block
        fewest = int(np.argmin(self.numbers)) if len(self.columns) > 1 else 0
        with stage("judgments that limit one side"):
            found = self.sums(_Between(kinds.items, block, fewest))["held"].prefs
        if found is None or not isinstance(kinds, Comparisons):
            return None
        inner = taken(kinds, np.flatnonzero(block[kinds.winner] == block[kinds.loser]))
        if not len(found) or not len(inner):
            return found if len(found) else inner
        whoever = {"clusters": found.clusters.only(np.arange(len(found.clusters)) == 0)[0]}
        together: Preferences = replace(inner, cluster=np.zeros(inner.distinct, np.int32), **whoever) + found
        return together

    def _curvature(self, batch: Batch, scores: Scores) -> Curvature:
        found = bradley_terry_curvature(batch, scores)
        return replace(found, meat=partial(self.meat, batch, scores, found.extra_name))

    def meat(self, batch: Batch, scores: Scores, names: tuple[str, ...]) -> Meat:
        """The middle of the sandwich; ``names``: of the parameters beside the scores."""
        items, _ = Labels.encode(batch.prefs.items.take(batch.item))
        scores = replace(scores, components=np.zeros(0, np.int32))
        parts: dict[Ways, Meat] = {}
        graded = scores.options.get("ties") == "cumulative"
        seen = Graded.fitted(batch, scores.coefficients).seen if graded else None
        for way, ways in every_way(len(self.columns)):
            with stage("what clusters add up to"):
                found = self._by(way).sums(Middle(items, scores, names, ways, seen))
            self.passes += way > 0
            parts |= {one: Meat.of_sums(found["middle", one], found["cells", one]) for one in ways}
        return crossed(parts)

    def _by(self, way: int) -> ByClusters:
        """The query divided by another column."""
        if way == 0 or self.divide is None:
            return self
        if way not in self.others:
            self.others[way] = type(self)(*self.divide(way), self.most)
        return self.others[way]

    @property
    def numbers(self) -> list[int]:
        """Clusters of each column."""
        for way in range(1, len(self.columns)):
            other = self._by(way)
            other.clusters = other.clusters or other.sums(_Number(way))["clusters"]
        return [self._by(way).clusters for way in range(len(self.columns))]


def every_way(number: int) -> Iterator[tuple[int, tuple[Ways, ...]]]:
    """Yield each of the columns, and all intersections of which it is the first.

    >>> list(every_way(2))
    [(0, ((0,), (0, 1))), (1, ((1,),))]
    """
    every = [ways for size in range(1, number + 1) for ways in combinations(range(number), size)]
    for way in range(number):
        yield way, tuple([one for one in every if one[0] == way])


def different(judged: JudgedQueries, label: Any) -> Preferences | None:
    """The lists of a query, equal ones once with their number; None where more than ``DIFFERENT`` differ.

    Errors: as of any task.
    """
    plain = replace(judged, checks=replace(judged.checks, unranked=None))  # known here: what a list leaves out
    frame, _, tasks = together(plain, label, _same)
    try:
        with stage("counting equal lists"):
            found = summed(frame, _Different(DIFFERENT), tasks)
    finally:
        frame.unpersist()
    prefs: Preferences | None = found["kinds"].prefs if found else Preferences.empty()
    last = judged.checks.unranked == "last"
    return with_unranked_last(prefs) if last and isinstance(prefs, Lists) else prefs


def crossed(parts: Mapping[Ways, Meat]) -> Meat:
    """The middle of judgments that depend on each other in several ways, of those of all cells (``Meat``)."""
    whole = parts[max(parts, key=len)]
    added, taken = ([part.root for ways, part in parts.items() if len(ways) % 2 == odd] for odd in (1, 0))
    least = np.minimum.reduce([part.clusters for ways, part in parts.items() if len(ways) == 1])
    if not taken:
        return whole
    minus = csr_array(vstack(taken))
    return replace(whole, root=csr_array(vstack(added)), minus=minus, cells=whole.root, clusters=least)

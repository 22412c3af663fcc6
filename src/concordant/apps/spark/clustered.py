"""One query that no task can hold, its judgments in clusters: divided among tasks by who made them.

Such a log says few different things: the votes of 10⁷ people on 200 items are 40,000 kinds of judgments at most. Tasks
count the kinds, of which the scores and their curvature follow here, as in memory. What the clusters are needed for,
the middle of the sandwich, is a sum over them, and a cluster lies in one share: a matrix of parameters travels.

Judgments between items that the data do not limit against each other, which are few, come here as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_held import Sums, summed
from concordant.apps.spark.splitting import CROSSING, shared_out
from concordant.errors import counted
from concordant.preferences.counted import recounted
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Comparisons, Preferences, keep
from concordant.progress import stage
from concordant.ranking.contrasts import Gauge
from concordant.ranking.covariance import Meat
from concordant.ranking.curvature import Curvature, bradley_terry_curvature
from concordant.ranking.rank import Ranking, rank
from concordant.ranking.scores import Scores
from concordant.ranking.structures import Structure

Floats = NDArray[np.float64]
LARGEST = 1000
"""Items of a sandwich: each task sends a square matrix of so many rows."""
UNSEEN = ("clusters", "lack of fit", "contradicted pairs")
"""Notes on what is here without its clusters."""


# -- in a task -----------------------------------------------------------------------------------------------------
def _same(prefs: Preferences) -> Preferences:
    return prefs


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


def without_clusters(prefs: Preferences) -> Preferences:
    """The same judgments, whoever made them."""
    return recounted(replace(prefs, cluster=None, clusters=None), prefs.query, prefs.count)


@dataclass(frozen=True)
class _Kinds:
    """What is the same but for who made it, once; and how many clusters there are."""

    most: int

    def __call__(self, prefs: Preferences) -> Sums:
        kinds = Held(without_clusters(prefs), self.most).checked()
        return Sums(kinds=kinds, clusters=len(prefs.clusters or ()), judgments=len(prefs))


@dataclass(frozen=True, eq=False)
class _Between:
    """The judgments between items of different blocks, with who made them."""

    items: Labels
    block: NDArray[np.int32]

    def __call__(self, prefs: Comparisons) -> Sums:
        block = self.block[self.items.codes_of(prefs.items.values)]
        rows = np.flatnonzero(block[prefs.winner] != block[prefs.loser])
        return Sums(held=Held(taken(prefs, rows), CROSSING).checked())


def taken(prefs: Preferences, rows: NDArray[np.intp]) -> Preferences:
    """Some of the judgments."""
    return keep(prefs, rows, prefs.count[rows], prefs.declared[:0])


@dataclass(frozen=True, eq=False)
class _Middle:
    """Σ u_c u_cᵀ over the clusters of a share, u_c the gradient of what one said, at some scores."""

    items: Labels
    scores: Scores
    names: tuple[str, ...]
    """Of the parameters beside the scores."""

    def __call__(self, prefs: Preferences) -> Sums:
        batch = Batch.whole(prefs)
        node = self.items.codes_of(prefs.items.take(batch.item))
        here = replace(self.scores, value=self.scores.value[node], components=np.zeros(len(node), np.int32))
        curvature = bradley_terry_curvature(batch, here)
        meat = Meat.of(batch, curvature)
        size, own = len(self.items), [self.names.index(name) for name in curvature.extra_name]
        place: NDArray[np.int64] = np.append(node, size + np.array(own, np.int64))
        clusters = int(meat.clusters[0])
        found = np.zeros((size + len(self.names),) * 2)
        found[np.ix_(place, place)] = (meat.root.T @ meat.root).toarray() * (max(clusters - 1, 1) / clusters)
        return Sums(middle=found)


# -- on the driver -------------------------------------------------------------------------------------------------
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
    judgments: int = 0
    passes: int = 0

    @classmethod
    def of(cls, judged: JudgedQueries, label: Any) -> ByClusters:
        """Count the kinds of judgments of a query in shares. Errors: as of any task."""
        self = cls(*shared_out(judged, label, _same, fn.col("cluster")), judged.most)
        try:
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
        self.frame.unpersist()

    def ranked(self, member: Structure, asked: Mapping[str, Any]) -> tuple[Ranking, list[str]] | None:
        """The ranking by ``concordant.rank`` and what is to be noted; None: too much is to be brought together."""
        prefs, clustered = self.kinds, asked["interval"] == "sandwich"
        if prefs is None or not len(prefs) or (clustered and len(prefs.items) > LARGEST):
            return None
        member = replace(member, expects=False)
        if clustered:
            member = replace(member, curvature=self._curvature)
            between = self._between(prefs, member, asked.get("ties"))
            if between is None:
                return None
            prefs = between
        board = rank(prefs, member, **asked)
        left = {*prefs.notes, *(note for note in board.notes if getattr(note, "code", "") in UNSEEN)}
        notes: list[str] = [note for note in board.notes if note not in left]
        whose = counted(self.clusters, "clusters")
        if clustered:
            notes.append(f"intervals allow for judgments of the same cluster ({self.clusters:,}) being alike")
        label = board.queries[0] if len(board.queries) else ""
        what = f"query {label!r}" if label not in (None, "") else "the log"
        said = f"{what}: {counted(self.judgments, 'judgments')} of {whose}, divided among tasks by who made them"
        notes.append(
            f"{said} ({self.shares:,} shares, {self.passes:,} passes); whether the model fits was not looked at"
        )
        return board, notes

    def _between(self, kinds: Preferences, member: Structure, ties: Any) -> Preferences | None:
        """The kinds, but for what lies between blocks: that as it was said, with clusters; None: too much of it."""
        batch = Batch.whole(kinds)
        linked = member.links(batch, ties)
        if not ((linked.separated | Gauge.of(batch.node_start, linked).lone) & linked.compared).any():
            return kinds
        block = np.full(len(kinds.items), -1, np.int32)
        block[batch.item] = linked.block
        with stage("judgments that limit one side"):
            found = self.sums(_Between(kinds.items, block))["held"].prefs
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
        return replace(found, meat=partial(self._meat, batch, scores, found.extra_name))

    def _meat(self, batch: Batch, scores: Scores, names: tuple[str, ...]) -> Meat:
        items, _ = Labels.encode(batch.prefs.items.take(batch.item))
        with stage("what clusters add up to"):
            work = _Middle(items, replace(scores, components=np.zeros(0, np.int32)), names)
            return Meat.of_sums(self.sums(work)["middle"], self.clusters)

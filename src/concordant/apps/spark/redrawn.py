"""The bootstrap of one query that no task can hold: its judgments are drawn again where they lie.

Of very many judgments each is drawn by itself, from a counter of its own, so a share draws its part as memory does,
once equal judgments are in one share; so are clusters, or where these are few by each task, all of them.
What a replicate is made of are sums over judgments: gradients at the scores of all replicates, which say where these
go next (``climbed``), or what a structure counts, a replicate by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from scipy.sparse import csr_array

from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_held import HeldFrame, Summing, Sums
from concordant.apps.spark.shares import Listed, Pairs, Share, TooMuch, Whole
from concordant.apps.spark.splitting import Divided, Union, Work, links_of_share
from concordant.apps.spark.valued_pairs import Largest
from concordant.errors import NoMaximumLikelihood
from concordant.preferences.counts import MOST
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences, keep
from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import label_keys
from concordant.progress import stage
from concordant.ranking.bootstrap import FALLBACK_PRIOR, without_limits
from concordant.ranking.chords import (
    DrawnEdges,
    DrawnLists,
    DrawnPairs,
    DrawnTies,
    climbed,
    inverse_beside,
    inverse_of,
)
from concordant.ranking.cumulative import Graded, Outcomes
from concordant.ranking.multinomial import ALONE, Atoms, poisson, said_keys, streams
from concordant.ranking.problem import Problem
from concordant.ranking.ranked_lists import Rankings
from concordant.ranking.tied_terms import Sizes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
AT_ONCE = 1 << 22
"""Judgments in replicates that a task draws at a time."""
PASS = 50
"""Replicates that are counted in a pass, at most."""
SCORES = 1 << 23
"""Scores of all replicates, which each task sends as many slopes of, at most."""
FAR = 10.0
"""Scores and coefficients without a prior beyond which a replicate is fitted by itself."""
NODES = 4096
"""Items of which the inverse of the Hessian is made, at most."""
PreferenceWork = Callable[[Preferences], Sums]
"""What is done on the judgments of a share."""


# -- in a task -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Draw:
    """How judgments are drawn: how often replicates hold each of a share."""

    key: int
    """Of the query."""
    replicates: int
    clustered: bool = False
    """Whether it is clusters that are drawn."""
    clusters: Labels | None = None
    """All of the query, where these are few; of many each is drawn by itself."""

    def of(self, prefs: Preferences, which: Ints) -> Ints:
        """How often some replicates hold each judgment, of shape (replicates, distinct)."""
        count = prefs.count.astype(np.int64)
        if not self.clustered or prefs.clusters is None or prefs.cluster is None:
            return poisson(said_keys(prefs), count, self.key, which)
        return self.of_clusters(prefs.clusters, which)[:, prefs.cluster] * count

    def of_clusters(self, labels: Labels, which: Ints) -> Ints:
        """How often they hold some of the clusters, of shape (replicates, labels)."""
        if self.clusters is None:
            return poisson(label_keys(labels, 0), np.ones(len(labels), np.int64), self.key, which)
        number, own, none = len(self.clusters), self.clusters.codes_of(labels.values), np.zeros(0, np.int64)
        atoms = Atoms(np.ones(number, np.int64), none, none, self.key)
        found = np.zeros((len(which), len(labels)), np.int64)
        for stream in streams(number, self.replicates):
            rows = np.flatnonzero((which >= stream.begin) & (which < stream.end))
            if len(rows):
                found[rows] = atoms.drawn(stream)[which[rows] - stream.begin][:, own]
        return found

    def some(self, prefs: Preferences, which: Ints, entries: int = 1) -> Iterator[tuple[slice, Ints]]:
        """The same, some replicates at a time; ``entries``: numbers that are held of each replicate, beside draws."""
        step = max(1, AT_ONCE // max(prefs.distinct, entries))
        for begin in range(0, len(which), step):
            part = slice(begin, begin + step)
            yield part, self.of(prefs, which[part])


@dataclass(frozen=True, eq=False)
class _Pulls:
    """The gradients of the likelihoods of some replicates at their scores, both of shape (replicates, items)."""

    draw: Draw
    items: Labels
    which: Ints
    scores: Floats
    lists: bool
    """Whether the likelihood is that of whole lists."""

    def __call__(self, prefs: Preferences) -> Sums:
        batch, one = Batch.whole(prefs), np.ones(prefs.distinct, np.int64)
        node, each = self.items.codes_of(prefs.items.take(batch.item)), np.arange(prefs.distinct)
        found = np.zeros(self.scores.shape)
        listed = DrawnLists.of(batch, each, one) if self.lists else None
        paired = None if self.lists else DrawnPairs.of(batch, each, one, prefs.distinct)
        for part, draws in self.draw.some(prefs, self.which):
            now = np.ascontiguousarray(self.scores[part][:, node].T)
            if listed is not None:
                found[part, node] = listed.pulls(now, draws).T
            elif paired is not None:
                found[part, node] = paired.pulls(now, *paired.tables(draws)).T
        return Sums(pulls=found)


class Drawn(Protocol):
    """Judgments of a share, and the gradients of the replicates that draw from them."""

    @property
    def entries(self) -> int:
        """Numbers that each replicate takes."""
        ...

    def pulls(self, now: Floats, draws: Ints) -> Floats:
        """The gradients by scores and coefficients, as ``now`` of shape (both, replicates)."""
        ...


class Beside(Protocol):
    """What stands beside the scores of a likelihood."""

    def of(self, batch: Batch) -> Drawn:
        """The judgments of a share."""
        ...

    def seen(self, batch: Batch, draw: Draw) -> Sums:
        """What each replicate holds of outcomes."""
        ...

    def there(self, seen: Sums) -> Flags:
        """Which replicates have the same coefficients as all judgments."""
        ...

    def push(self, now: Floats, seen: Sums, live: Ints) -> Floats | float:
        """What else there is of the gradients by coefficients, of shape (these, replicates), some of all."""
        ...


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Which coefficients stand beside scores: of covariates, then log ν of ties or the thresholds between outcomes."""

    names: tuple[str, ...]
    """Of the covariates."""
    scale: Floats
    """What coefficients are multiplied by."""
    davidson: bool
    outcomes: Outcomes | None = None
    """The outcomes, where there are thresholds between them."""

    def of(self, batch: Batch) -> DrawnEdges:
        """The judgments of a share."""
        if self.outcomes is not None:
            return DrawnEdges.graded(batch, self.scale, self.names, self.outcomes)
        return DrawnEdges.of(batch, self.scale[: len(self.names)], self.davidson)

    def seen(self, batch: Batch, draw: Draw) -> Sums:
        """How often each of the replicates holds each outcome (a tie, a win), and a value of each covariate but 0."""
        edges = batch.edges
        there = [edges.tie, ~edges.tie]
        if self.outcomes is not None:
            outcome = Graded.of(batch, self.names, self.outcomes).outcome
            there = [outcome == k for k in np.flatnonzero(self.outcomes.counts[0] > 0)]
        values = [] if edges.covariates is None or not self.names else list((edges.covariates != 0).T)
        columns = np.column_stack([*there, *values]).astype(np.int64)
        each = (Ragged.of_sizes(np.bincount(edges.holder, minlength=batch.prefs.distinct)), np.argsort(edges.holder))
        found = np.zeros((draw.replicates, columns.shape[1]), np.int64)
        held = np.column_stack([each[0].sums(column[each[1]]) for column in columns.T])
        for part, draws in draw.some(batch.prefs, np.arange(draw.replicates)):
            found[part] = draws @ held
        return Sums(outcomes=found[:, : len(there)], values=found[:, len(there) :])

    def there(self, seen: Sums) -> Flags:
        """Which replicates have all outcomes, and values of all covariates."""
        found: Flags = seen["values"].all(axis=1)
        return found & seen["outcomes"].all(axis=1) if self.davidson or self.outcomes is not None else found

    def push(self, now: Floats, seen: Sums, live: Ints) -> Floats | float:
        """What keeps thresholds apart: out of order they are nowhere near a maximum."""
        if self.outcomes is None or not (number := len(now) - len(self.names)):
            return 0.0
        apart = Problem.gaps_of(number, bool(self.outcomes.counts[0, 0] > 0))
        gap, found = apart @ now[-number:], np.zeros(now.shape)
        bound = seen["outcomes"][live, :number].T / np.expm1(np.where(gap > 0, gap, np.nan))
        found[-number:] = apart.T @ bound
        return found


@dataclass(frozen=True, eq=False)
class Levels:
    """The log δ of ties of so many items that stand beside Plackett–Luce's scores of rankings."""

    sizes: Sizes

    def of(self, batch: Batch) -> DrawnTies:
        """The rankings of a share."""
        return DrawnTies.of(batch, self.sizes)

    def seen(self, batch: Batch, draw: Draw) -> Sums:
        """The most items that were left in each of the replicates where so many were placed together."""
        lists, order = Rankings.of(batch), self.sizes.order
        first = lists.tier_first
        left, place = lists.groups.spread(lists.start[1:])[first] - first, np.searchsorted(order, lists.tier_size)
        holder = lists.holder[lists.row[first]]
        found = np.zeros((draw.replicates, len(order)))
        for part, draws in draw.some(batch.prefs, np.arange(draw.replicates)):
            for row, often in zip(found[part], draws, strict=True):
                there = often[holder] > 0
                np.maximum.at(row, place[there], left[there])
        return Sums(reach=Largest(found))

    def there(self, seen: Sums) -> Flags:
        """In which replicates the same log δ are to be found."""
        found = []
        for reach in seen["reach"].values.astype(np.int64):
            sizes = Sizes.reaching(self.sizes.groups, self.sizes.order, reach)
            found.append(bool(reach[1:].all()) and np.array_equal(sizes.parameter, self.sizes.parameter))
        return np.array(found, bool)

    def push(self, now: Floats, seen: Sums, live: Ints) -> Floats | float:
        """Nothing."""
        return 0.0


@dataclass(frozen=True, eq=False)
class _PullsBeside:
    """The gradients where coefficients stand beside the scores, both of shape (replicates, items and coefficients)."""

    draw: Draw
    items: Labels
    which: Ints
    now: Floats
    beside: Beside

    def __call__(self, prefs: Preferences) -> Sums:
        batch, items = Batch.whole(prefs), len(self.items)
        own = np.append(self.items.codes_of(prefs.items.take(batch.item)), np.arange(items, self.now.shape[1]))
        drawn, found = self.beside.of(batch), np.zeros(self.now.shape)
        for part, draws in self.draw.some(prefs, self.which, drawn.entries):
            found[part, own] = drawn.pulls(np.ascontiguousarray(self.now[part][:, own].T), draws).T
        return Sums(pulls=found)


@dataclass(frozen=True, eq=False)
class _Seen:
    """What each replicate holds of outcomes."""

    draw: Draw
    beside: Beside

    def __call__(self, prefs: Preferences) -> Sums:
        return self.beside.seen(Batch.whole(prefs), self.draw)


class Keeping(Protocol):
    """What makes a share of judgments."""

    def of(self, prefs: Preferences) -> Share:
        """The share."""
        ...


@dataclass(frozen=True, eq=False)
class Redrawn:
    """Work on a share as each of some replicates holds it, by their numbers."""

    draw: Draw
    items: Labels
    kept: Keeping
    work: Work
    which: Ints

    def __call__(self, prefs: Preferences) -> Sums:
        found = Sums()
        for part, draws in self.draw.some(prefs, self.which):
            for replicate, times in zip(self.which[part].tolist(), draws, strict=True):
                if len(rows := np.flatnonzero(times)):
                    share = self.kept.of(keep(prefs, rows, times[rows], prefs.declared[:0])).coded(self.items)
                    found[replicate] = self.work(share)
        return found


@dataclass(frozen=True)
class OfShare:
    """Work on the judgments of a share that has kept them."""

    work: PreferenceWork

    def __call__(self, share: Whole | Preferences) -> Sums:
        return self.work(share.prefs if isinstance(share, Whole) else share)


@dataclass(frozen=True)
class Parting:
    """Equal judgments go to one share, whoever made them."""

    shares: int

    def __call__(self, share: Whole | Preferences) -> Iterator[tuple[int, Preferences]]:
        prefs = share.prefs if isinstance(share, Whole) else share
        place = said_keys(prefs) % np.uint64(self.shares)
        for number in range(self.shares):
            if len(rows := np.flatnonzero(place == number)):
                yield number, keep(prefs, rows, prefs.count[rows], prefs.declared[:0])


def put_back(parts: list[Preferences], _: int) -> Preferences:
    """The judgments that came to one share, equal ones together."""
    return reduce(add, parts)


def clusters_of(prefs: Preferences) -> Sums:
    """Who made the judgments."""
    return Sums(labels=Union(prefs.clusters or Labels.empty()))


def _number(prefs: Preferences) -> Sums:
    return Sums(clusters=0 if prefs.cluster is None else len(np.unique(prefs.cluster)))


# -- on the driver -------------------------------------------------------------------------------------------------
@dataclass(eq=False)
class Replica(Divided):
    """The shares of a query as one replicate holds its judgments."""

    judged: Callable[[Work], Sums] = field(kw_only=True)

    def sums(self, work: Work) -> Sums:
        self.passes += 1
        return self.judged(work)


class Kept(Protocol):
    """Shares of a query that have kept its judgments, those of a cluster in one of them."""

    frame: DataFrame
    shares: int
    columns: tuple[str, ...]
    """Of clusters."""

    def sums(self, work: Work) -> Sums:
        """Do a piece of work on every share and add up."""
        ...

    def forget(self) -> None:
        """Free what is kept."""
        ...


def exchanged(frame: DataFrame, shares: int) -> HeldFrame:
    """So many shares of which one has all judgments that say the same."""
    return HeldFrame(frame, shares).exchanged(Parting(shares), put_back, shares)


@dataclass(frozen=True, eq=False)
class Again:
    """The judgments of a query, as they were made, which are drawn again."""

    held: Summing
    shares: Divided
    """The query as its scores are found of it."""
    clustered: bool
    whole: Kept
    lists: bool = False
    """Whether the likelihood is that of whole lists."""

    @classmethod
    def of(cls, whole: Kept, shares: Divided, *, lists: bool = False) -> Again:
        """Of shares that have kept their judgments; to be freed, these too, by ``forget``."""
        clustered = bool(whole.columns)
        return cls(whole if clustered else exchanged(whole.frame, whole.shares), shares, clustered, whole, lists)

    def judged(self, work: PreferenceWork) -> Sums:
        """Do work on the judgments of each share and add up."""
        return self.held.sums(OfShare(work))

    def forget(self) -> None:
        """Free what is kept."""
        self.whole.forget()
        if isinstance(self.held, HeldFrame):
            self.held.forget()

    def draw(self, replicates: int, seed: int) -> tuple[Draw, int]:
        """How judgments are drawn, and how many, or how many clusters, of each replicate. Errors: TooMuch."""
        key, number = int(label_keys(self.shares.query, seed)[0]), self.shares.judgments
        if not self.clustered:
            return Draw(key, replicates), number
        clusters = int(self.judged(_number)["clusters"])
        if clusters * number > MOST:
            raise TooMuch
        labels = None if clusters > ALONE else self.judged(clusters_of)["labels"].labels
        return Draw(key, replicates, True, labels), clusters

    def each(self, draw: Draw, work: Work, kept: Keeping, at_once: int) -> Iterator[tuple[int, Sums]]:
        """What a piece of work finds in each replicate, at most so many of them in each pass."""
        step = min(at_once, PASS)
        with stage("bootstrap", draw.replicates) as advance:
            for begin in range(0, draw.replicates, step):
                which = np.arange(begin, min(begin + step, draw.replicates))
                found = self.judged(Redrawn(draw, self.shares.items, kept, work, which))
                for replicate in which.tolist():
                    yield replicate, found.get(replicate, Sums())
                advance(len(which))

    def fitted(
        self, point: Floats, information: csr_array, prior: float, replicates: int, seed: int
    ) -> tuple[Floats, int, int]:
        """Scores of all replicates by their likelihood, in how many something had no limit, and what was drawn.

        ``point``: the scores, ``information``: the negative Hessian at them, both by the items. Errors: TooMuch.
        """
        items = len(self.shares.items)
        if items > NODES or items * replicates > SCORES:
            raise TooMuch
        draw, number = self.draw(replicates, seed)
        live = np.arange(replicates)

        def keep_on(stay: NDArray[np.bool_]) -> None:
            nonlocal live
            live = live[stay]

        def gradient(now: Floats) -> Floats:
            found = self.judged(_Pulls(draw, self.shares.items, live, now.T, self.lists))["pulls"]
            return np.asarray(found.T - prior * now)

        with stage("bootstrap"):
            values, solved = climbed(point, inverse_of(information, prior), replicates, gradient, keep_on)
        if prior == 0:
            solved &= self._bound_together(draw)
        left, unlimited = np.flatnonzero(~solved).tolist(), 0
        with stage("replicates by themselves", len(left)) as advance:
            for replicate in left:
                values[replicate], endless = self._one(draw, replicate, prior)
                unlimited += endless
                advance()
        return values, unlimited, number

    def fitted_beside(
        self,
        point: Floats,
        information: csr_array,
        prior: float,
        replicates: int,
        seed: int,
        beside: Beside,
        kept: Keeping,
        alone: Callable[[Replicated, float], Floats],
    ) -> tuple[Floats, int, int]:
        """The same where coefficients stand beside the scores, after them in ``point`` and ``information``.

        ``kept`` makes the shares that say what connects items, ``alone`` finds the scores of one replicate by itself,
        at a prior.
        """
        items = len(self.shares.items)
        if len(point) > NODES or len(point) * replicates > SCORES:
            raise TooMuch
        draw, number = self.draw(replicates, seed)
        live = np.arange(replicates)

        def keep_on(stay: Flags) -> None:
            nonlocal live
            live = live[stay]

        def gradient(now: Floats) -> Floats:
            found = np.array(self.judged(_PullsBeside(draw, self.shares.items, live, now.T, beside))["pulls"].T)
            found[:items] -= prior * now[:items]
            found[items:] += beside.push(now[items:], seen, live)
            return found

        with stage("bootstrap"):
            seen = self.judged(_Seen(draw, beside))
            values, solved = climbed(point, inverse_beside(information, prior, items), replicates, gradient, keep_on)
        surely, free = self._bound_together(draw, kept), values if prior == 0 else values[:, items:]
        solved &= beside.there(seen) & (np.abs(free).max(axis=1, initial=0.0) < FAR)  # far out a flat may be no maximum
        solved, values = solved & (surely | (prior > 0)), values[:, :items]
        left, unlimited = np.flatnonzero(~solved).tolist(), int(replicates - surely.sum())
        with stage("replicates by themselves", len(left)) as advance:
            for replicate in left:
                found = Replicated(self, draw, replicate)
                links = found.shares(kept).links if prior == 0 and not surely[replicate] else None
                endless = links is not None and bool((links.separated | (links.component > 0)).any())
                try:
                    values[replicate] = alone(found, FALLBACK_PRIOR if endless else prior)
                except NoMaximumLikelihood:
                    if prior > 0:
                        raise
                    values[replicate], endless = np.nan, True
                else:
                    if links is not None:
                        values[replicate] = without_limits(values[replicate], np.array([0, items]), links)
                if prior == 0:
                    unlimited += int(endless) - int(not surely[replicate])
                advance()
        return values, unlimited, number

    def _bound_together(self, draw: Draw, keeping: Keeping | None = None) -> NDArray[np.bool_]:
        """In which replicates the wins of shares surely make every item reachable from every other."""
        found = np.zeros(draw.replicates, bool)
        kept, step = keeping or self._kept, max(1, SCORES // len(self.shares.items))
        for replicate, links in self.each(draw, links_of_share, kept, step):
            found[replicate] = bool(links) and not links["strong"].block.any()
        return found

    @property
    def _kept(self) -> Keeping:
        return Listed if self.lists else Pairs

    def _one(self, draw: Draw, replicate: int, prior: float) -> tuple[Floats, bool]:
        """The scores of one replicate by itself, and whether some have no limit."""
        shares = Replicated(self, draw, replicate).shares(self._kept)
        links = shares.links
        endless = bool((links.separated | (links.component > 0)).any())
        if prior > 0 or not endless:
            return shares.fitted(prior=prior).score, endless
        value = shares.fitted(prior=FALLBACK_PRIOR).score
        return without_limits(value, np.array([0, len(value)]), links), endless


@dataclass(frozen=True, eq=False)
class Replicated:
    """One replicate by itself."""

    again: Again
    draw: Draw
    number: int

    def sums(self, kept: Keeping, work: Work) -> Sums:
        """Do work on the shares that are made of its judgments, and add up."""
        again, which = self.again, np.array([self.number])
        found: Sums = again.judged(Redrawn(self.draw, again.shares.items, kept, work, which))[self.number]
        return found

    def shares(self, kept: Keeping) -> Replica:
        """Its judgments as the shares of a query, and what connects the items."""
        whole = self.again.shares
        found = Replica(whole.frame, whole.shares, whole.tasks, by=whole.by, judged=partial(self.sums, kept))
        found.query, found.items, found.judgments = whole.query, whole.items, whole.judgments
        found.link()
        return found


def as_judged(judged: JudgedQueries, label: Any) -> Divided | None:
    """The shares of a query with their judgments as they are, those of a cluster in one; to be freed by ``forget``.

    Errors: TooMuch; as of any task.
    """
    return Divided.of(judged, label, Whole, linked=False, clusters=True)

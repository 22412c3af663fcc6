"""A query that no task can hold becomes slices with features, which a fit of several passes adds up over.

A slice of comparisons has all judgments of its pairs, and slices are ranges of the pairs in their order. One of lists
has each of its lists whole, equal ones counted together, and slices are ranges of the lists in their order. Either has
all items of the query as nodes, so that what is a sum over pairs or judgments is done by slices as by whole queries.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_features import FeatureFrame
from concordant.apps.spark.learning_held import (
    PIECES,
    SENT,
    Held,
    Slice,
    Sums,
    _Making,
    _whole,
    objects,
    of_items,
    parts_of,
    pieces,
    sent,
    summed,
)
from concordant.apps.spark.partitioning import BUCKET
from concordant.apps.spark.splitting import ENTRIES, SHARE, Union, together
from concordant.errors import UsageError
from concordant.preferences.counted import declare
from concordant.preferences.preferences import Comparisons, Lists, Preferences, keep, with_unranked_last
from concordant.preferences.ragged import Ragged
from concordant.progress import stage
from concordant.ranking.ranked_lists import examined_only

Ints = NDArray[np.int64]
Key = tuple[Any, ...]
"""What lists stand by."""
FIRST = 64
"""Items of a list in its key, at most."""
STEPS = 64
"""Lists of each slice, about, that are looked at before it is known where slices end."""
PAIRS = 16.0
"""Square of the length of a list that is as much work as a comparison."""


# -- in a task -----------------------------------------------------------------------------------------------------
def _same(prefs: Preferences) -> Preferences:
    return prefs


def _labels(prefs: Preferences) -> Sums:
    return Sums(items=Union(prefs.items), queries=Union(prefs.queries))


@dataclass(frozen=True)
class _Ends:
    """The pairs of judgments, first item and second, by the codes of items among all of the query."""

    items: Union

    def of(self, prefs: Comparisons) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        own = self.items.labels.codes_of(prefs.items.values)
        winner, loser = own[prefs.winner], own[prefs.loser]
        return np.minimum(winner, loser), np.maximum(winner, loser)

    def __call__(self, prefs: Comparisons) -> Sums:
        """How many distinct judgments have each item as the first of their pair."""
        return Sums(number=np.bincount(self.of(prefs)[0], minlength=len(self.items.labels)))


@dataclass(frozen=True)
class _Seconds:
    """How many of them have each second item, of some first ones; shape (first ones, items)."""

    ends: _Ends
    some: Ints

    def __call__(self, prefs: Comparisons) -> Sums:
        first, second = self.ends.of(prefs)
        size = len(self.ends.items.labels)
        place = np.minimum(np.searchsorted(self.some, first), len(self.some) - 1)
        here = self.some[place] == first
        counts = np.bincount(place[here] * size + second[here], minlength=len(self.some) * size)
        return Sums(number=counts.reshape(len(self.some), size))


@dataclass(frozen=True)
class Cuts:
    """In which slice each pair is: slices are ranges of the pairs in their order, first item and then second."""

    unit: Ints
    """Of each first item where its units begin, one for all of its pairs or one for each second item."""
    several: NDArray[np.bool_]
    slice_of: NDArray[np.int32]
    """Of each unit."""

    @classmethod
    def of(cls, number: Ints, some: Ints, of_pairs: Ints, most: int) -> Cuts:
        """Cut at about so many judgments; ``of_pairs`` are the numbers of each second item of ``some`` first ones."""
        size = len(number)
        several = np.zeros(size, bool)
        several[some] = True
        units = Ragged.of_sizes(np.where(several, size, 1))
        count = np.zeros(int(units.start[-1]), np.int64)
        count[units.first[~several]] = number[~several]
        count[units.spread(several)] = of_pairs.ravel()
        slice_of = np.unique((np.cumsum(count) - count) // most, return_inverse=True)[1]
        return cls(units.first, several, slice_of.astype(np.int32))

    def __call__(self, first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.int32]:
        return self.slice_of[self.unit[first] + np.where(self.several[first], second, 0)]


@dataclass(frozen=True)
class Ranges:
    """In which slice each judgment is, by its pair."""

    ends: _Ends
    cuts: Cuts

    def __call__(self, prefs: Comparisons) -> NDArray[np.int32]:
        return self.cuts(*self.ends.of(prefs))


def _work(prefs: Lists) -> NDArray[np.float64]:
    """How much work each list is beside a comparison."""
    return np.maximum(prefs.lists.sizes.astype(np.float64) ** 2 / PAIRS, 1.0)


def _key(prefs: Lists, own: NDArray[np.int32], row: int) -> Key:
    """What a list stands by among those of its query: who made it, its length, its items, its values.

    Of long lists that are the first items: those that begin alike come to one slice.
    """
    begin, end = (int(one) for one in prefs.list_start[row : row + 2])
    entries = slice(begin, min(end, begin + FIRST))
    item = own[prefs.list_item[entries]].tolist()
    bits = prefs.list_value[entries].view(np.uint64).tolist() if end - begin <= FIRST else []
    whose = "" if prefs.cluster is None or prefs.clusters is None else prefs.clusters[int(prefs.cluster[row])]
    return whose, end - begin, *item, *bits


@dataclass(frozen=True)
class _Sampled:
    """Keys of some lists of a share, and how many steps of work end with each."""

    items: Union
    step: float

    def __call__(self, prefs: Lists) -> Sums:
        own = self.items.labels.codes_of(prefs.items.values)
        passed = np.diff((np.cumsum(_work(prefs)) // self.step).astype(np.int64), prepend=0)
        return Sums(keys=[(_key(prefs, own, row), int(passed[row])) for row in np.flatnonzero(passed).tolist()])


@dataclass(frozen=True)
class ListRanges:
    """In which slice each list is; ``cuts``: the first of every slice but one."""

    items: Union
    cuts: tuple[Key, ...]

    @classmethod
    def of(cls, items: Union, sampled: list[tuple[Key, int]], each: int) -> ListRanges:
        """Cut after so many steps each."""
        sampled = sorted(sampled)
        steps = np.array([number for _, number in sampled], np.int64)
        begins = np.flatnonzero(np.diff((np.cumsum(steps) - steps) // each, prepend=0))
        return cls(items, tuple(sorted({sampled[place][0] for place in begins} - {key for key, _ in sampled[:1]})))

    def __call__(self, prefs: Lists) -> NDArray[np.int32]:
        own, rows = self.items.labels.codes_of(prefs.items.values), range(prefs.distinct)
        at = [bisect_left(rows, cut, key=lambda row: _key(prefs, own, row)) for cut in self.cuts]
        return np.searchsorted(np.array(at, np.int64), np.arange(len(rows)), side="right").astype(np.int32)


@dataclass(frozen=True)
class _Ranked:
    """All items of the query in each ranking, those that it leaves out in last place."""

    items: Union

    def __call__(self, prefs: Preferences) -> Preferences:
        labels = self.items.labels
        known = declare(prefs, (prefs.queries.take(np.zeros(len(labels), np.int64)), labels.values))
        return with_unranked_last(known) if isinstance(known, Lists) else known


@dataclass(frozen=True)
class _Cutting:
    """A task: every share is cut into what belongs to each slice."""

    of: Callable[[Any], NDArray[np.int32]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for source, prefs in objects(batches):
            of = self.of(prefs)
            for number in np.unique(of).tolist():
                rows = np.flatnonzero(of == number)
                yield from sent(number, source, keep(prefs, rows, prefs.count[rows], prefs.declared[:0]))


@dataclass(frozen=True)
class Featureless:
    """Slices for targets alone, which ask for no features."""

    below: bool
    """Whether what stands below the last click of a list is read."""

    def made(self, bucket: int, prefs: Preferences, _: object) -> Held:
        """Some judgments of one query."""
        size = len(prefs.items)
        return Held(prefs, np.zeros((size, 0)), np.arange(size), bucket)


@dataclass(frozen=True)
class _Gathering:
    """A task: what was cut becomes a slice, with the features of all items of the query."""

    making: _Making | Featureless
    items: Union
    query: int
    first: int
    """Bucket of the first slice."""
    by: str = "pairs"

    def __call__(self, key: tuple[Any, ...], received: pa.Table, features: pa.Table | None) -> pa.Table:
        number, parts = int(key[0].as_py()), parts_of(received)
        made = self.made(number, parts, features) if parts else None
        return _whole(pieces(self.first + number, made))

    def made(self, number: int, parts: list[Preferences], features: Any) -> Any:
        """The slice; what its items lack is said once."""
        while len(parts) > 1:
            parts = [sum(parts[at : at + 2], Preferences.empty()) for at in range(0, len(parts), 2)]
        labels = self.items.labels
        prefs = declare(parts[0], (parts[0].queries.take(np.zeros(len(labels), np.int64)), labels.values))
        made = self.making.made(self.first + number, prefs, features)
        if isinstance(made, Held):
            made.slice = Slice(self.query, number, self.by)
            return made
        return None if number else made


# -- on the driver -------------------------------------------------------------------------------------------------
def sliced(
    judged: JudgedQueries,
    label: Any,
    making: _Making | Featureless,
    features: FeatureFrame | None,
    query: int,
    first: int,
) -> tuple[DataFrame, int, DataFrame] | None:
    """Return the slices of a query, in buckets from ``first`` on, how many, and what to free when they are made.

    None where it has no judgments. Errors (UsageError): a pair with more judgments than a task holds.
    """
    last, by, size = judged.checks.unranked == "last", "pairs" if judged.compared else "lists", min(SHARE, judged.most)
    if last:
        judged = replace(judged, checks=replace(judged.checks, unranked=None))
    shares, _, tasks = together(judged, label, _same if making.below else examined_only)
    try:
        with stage(f"counting {by}"):
            found = summed(shares, _labels, tasks)
            if not found:
                shares.unpersist()
                return None
            queries, items = found["queries"].labels, found["items"]
            if last:
                shares.unpersist()
                shares, _, tasks = together(judged, label, _Ranked(items), max(ENTRIES // len(items.labels), 1))
            of: Ranges | ListRanges
            if judged.compared:
                ends = _Ends(items)
                of = Ranges(ends, _cuts(judged, label, ends, lambda work: summed(shares, work, tasks)["number"]))
                slices = int(of.cuts.slice_of.max()) + 1
            else:
                keys = summed(shares, _Sampled(items, max(size / STEPS, 1.0)), tasks)["keys"]
                of = ListRanges.of(items, keys, min(size, STEPS))
                slices = len(of.cuts) + 1
    except BaseException:
        shares.unpersist()
        raise
    gathering = _Gathering(making, items, query, first, by)
    ours = shares.mapInArrow(_Cutting(of), from_arrow_schema(SENT)).repartitionById(slices, BUCKET).groupBy(BUCKET)
    if features is None:
        made = ours.applyInArrow(lambda key, one: gathering(key, one, None), from_arrow_schema(PIECES))
        return made, slices, shares
    rows = of_items(judged, features, queries, items.labels).drop("file", "block", "row")
    theirs = rows.withColumn(BUCKET, fn.explode(fn.sequence(fn.lit(0), fn.lit(slices - 1))))
    others = theirs.repartitionById(slices, BUCKET).groupBy(BUCKET)
    made = ours.cogroup(others).applyInArrow(
        lambda key, one, other: gathering(key, one, other), from_arrow_schema(PIECES)
    )
    return made, slices, shares


def _cuts(judged: JudgedQueries, label: Any, ends: _Ends, counted: Callable[[Any], Ints]) -> Cuts:
    """Where a query is cut, by how many distinct judgments its pairs have."""
    size = min(SHARE, judged.most)
    number = counted(ends)
    some = np.flatnonzero(number > size)
    of_pairs = counted(_Seconds(ends, some)) if len(some) else np.zeros((0, len(number)), np.int64)
    if (most := int(of_pairs.max(initial=0))) > judged.most:
        what = "the log" if label is None else f"query {label!r}"
        raise UsageError(
            f"{judged.name}: a pair of items of {what} has {most:,} distinct judgments, and a task holds "
            f"{judged.most:,}: a query is divided by its pairs; leave out what tells them apart (clusters, times), or "
            "fit it on one machine"
        )
    return Cuts.of(number, some, of_pairs, size)

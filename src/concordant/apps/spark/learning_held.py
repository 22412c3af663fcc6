"""The judgments and features of some queries side by side, kept on Spark for all the passes of a fit.

Each bucket of queries becomes one object (``Held``), pickled in pieces, so that no row is large; a pass hands every
object to a piece of work and adds up what that returns. Work of parts has to add up to that of the whole: ``Sums``.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from concordant.apps.spark.checking import Checks
from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.label_columns import label_column
from concordant.apps.spark.labels_of_log import as_text
from concordant.apps.spark.learning_features import FeatureFrame, matrix
from concordant.apps.spark.learning_sums import PARTS, Part
from concordant.apps.spark.partitioning import (
    BUCKET,
    BUCKET_BYTES,
    PACKED,
    bucket_by_query,
    put_together,
    spread,
)
from concordant.learning.features.normalising import Normaliser
from concordant.learning.rankers.validation import Training
from concordant.learning.solvers.edge_problem import EdgeProblem
from concordant.losses.pair_losses import pair_loss, value_penalty
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences, keep
from concordant.preferences.ragged import Ragged
from concordant.ranking.click_models import KnownClicks
from concordant.ranking.ranked_lists import examined_only

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PIECE = 4 << 20
"""Bytes of a row."""
MANY = 64
"""Parts that reach the driver at most; of more, tasks add some up first."""
PIECES = pa.schema([("bucket", pa.int64()), ("left", pa.int64()), ("piece", pa.binary())])
SENT = pa.schema([(BUCKET, pa.int32()), ("source", pa.int64()), *PIECES])
FOUND = pa.schema([("bucket", pa.int64()), ("found", pa.binary())])
HELD = "held"
PLACED = ("file", "block", "row")
"""Columns of features that say where in their files they stand."""
Split = tuple[str, int]
"""A way to deal judgments (judgments, queries, clusters) and the fold that is left out, −1: none."""
WHOLE: Split = ("", -1)
Which = Split | tuple[str, Split, int]
"""The judgments that a fold leaves or, (HELD, split, part), those that it holds out without a part, −1: none."""


class Sums(dict[Any, Any]):
    """Values by name; those of parts add up, a name that one part lacks having nothing there."""

    def __add__(self, other: Mapping[Any, Any]) -> Sums:
        mine = {name: self[name] + value if name in self else value for name, value in other.items()}
        return Sums({**self, **mine})


JOINED = "pairs of lists"
"""What slices are by that have what all lists of a query say of some pairs, but no lists."""


@dataclass(frozen=True)
class Slice:
    """A part of a query that no task can hold: all judgments of some of its pairs, or lists, with all of its items."""

    query: int
    """Its number among those that are divided."""
    number: int
    by: str = "pairs"
    """Pairs, lists, or ``JOINED``."""


@dataclass(eq=False)
class Held:
    """Judgments of some queries, and the normalised features of their items, in a task."""

    prefs: Preferences
    Z: Floats
    """Rows of normalised features."""
    row: Ints
    """The row of each node of ``Batch.whole(prefs)``."""
    bucket: int
    shares: dict[str, NDArray[Any]] = field(default_factory=dict)
    """By the way in which judgments are dealt: how many of each every fold holds out, shape (folds, distinct)."""
    query_fold: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int8))
    """The fold of each query, where whole ones are held out."""
    ends: NDArray[np.int32] = field(default_factory=lambda: np.zeros((2, 0), np.int32))
    """Nodes of each pair that was judged, where scorers are fitted to pairs."""
    tables: dict[Split, tuple[NDArray[Any], NDArray[Any]]] = field(default_factory=dict)
    """Strength of the wins either way of each pair, in the judgments that are learned from."""
    slice: Slice | None = None
    """Where this is a part of one query."""
    parts: dict[Split, NDArray[Any]] = field(default_factory=dict)
    """How many of each judgment that a fold holds out are in each part of these."""
    read: dict[Which, KnownClicks] = field(default_factory=dict)
    """How the clicks of parts of the judgments are read, where all of a log tells."""

    def __getstate__(self) -> dict[str, Any]:
        names = ("Z", "row", "bucket", "shares", "query_fold", "ends", "tables", "slice", "parts", "read")
        return {"prefs": replace(self.prefs), **{name: getattr(self, name) for name in names}}  # without what is cached

    @property
    def at(self) -> Slice:
        """Which slice it is."""
        if self.slice is None:
            raise TypeError("some whole queries are no slice")
        return self.slice

    @property
    def speaks(self) -> bool:
        """Whether it stands for the items of its queries: of the slices of a query one does."""
        return self.slice is None or (self.slice.number == 0 and self.slice.by != JOINED)

    # -- parts of the judgments --------------------------------------------------------------------------------------
    def _kept(self, count: NDArray[Any]) -> Preferences:
        rows = np.flatnonzero(count)
        return keep(self.prefs, rows, count[rows], self.known)

    def _told(self, prefs: Preferences, which: Which) -> Preferences:
        if which in self.read:
            self.read[which].tell(prefs)
        return prefs

    @cached_property
    def known(self) -> Ints:
        """Queries and items that are declared."""
        return np.column_stack([self.prefs.member_groups.owner, self.prefs.members[1]]).astype(np.int64)

    def counts(self, split: Split) -> NDArray[Any]:
        """How many of each distinct judgment a fold holds out."""
        way, fold = split
        if way == "queries":
            return np.where((self.query_fold == fold)[self.prefs.query], self.prefs.count, 0)
        return np.asarray(self.shares[way][fold], np.int64)

    def left(self, split: Split) -> NDArray[Any]:
        """How many of each distinct judgment are learned from."""
        return self.prefs.count if split == WHOLE else self.prefs.count - self.counts(split)

    def learned(self, split: Split) -> Preferences:
        """The judgments that are learned from; all queries and items are declared."""
        return self._told(self.prefs if split == WHOLE else self._kept(self.left(split)), split)

    def part(self, which: Which) -> Preferences:
        """Some of the judgments; all queries and items are declared."""
        if len(which) == 2:
            return self.learned(which)
        _, split, part = which
        return self._told(self._kept(self.counts(split) - (self.parts[split][part] if part >= 0 else 0)), which)

    def left_out(self, split: Split) -> Preferences:
        """The judgments that a fold holds out."""
        return self.part((HELD, split, -1))

    # -- pairs -------------------------------------------------------------------------------------------------------
    @cached_property
    def pairs(self) -> EdgeProblem:
        """All judged pairs as edges from the first to the second, for products with the features."""
        first, second = (end.astype(np.int64) for end in self.ends)
        none, no = np.zeros(len(first)), np.zeros(0)
        of = self.Z, self.row, len(self.row), first, second, none, none, np.zeros(0, np.int64), no, no
        return EdgeProblem(*of, pair_loss("logistic"), value_penalty("square"), 0.0)

    def wins(self, split: Split) -> tuple[Floats, Floats]:
        """Strength of the wins either way of each pair."""
        way, fold = split
        above, below = (each.astype(np.float64) for each in self.tables[WHOLE if way == "queries" else split])
        if way != "queries":
            return above, below
        other = self.query_fold != fold
        other = other[:1] if self.slice else other[self.prefs.member_groups.owner[self.pairs.winner]]
        return above * other, below * other

    def held_wins(self, split: Split) -> tuple[Floats, Floats]:
        """The same of what a fold holds out."""
        (above, below), (mine, theirs) = self.wins(WHOLE), self.wins(split)
        return above - mine, below - theirs

    @property
    def bare(self) -> Held:
        """Nothing but pairs, for what asks for no more."""
        return replace(self, prefs=Preferences.empty(), Z=self.Z[:0], shares={})

    # -- as training -------------------------------------------------------------------------------------------------
    @property
    def start(self) -> Ints:
        """Where the nodes of each query begin."""
        start: Ints = self.prefs.member_groups.start
        return start

    @property
    def groups(self) -> Ragged:
        """The nodes of each query."""
        return self.prefs.member_groups

    def training(self, prefs: Preferences) -> Training:
        """Judgments as a ranker in memory knows them, but for the features, of which only the rows are named."""
        return Training(None, True, self.start, self.row, 0, prefs, np.ones(len(self.start) - 1))  # type: ignore[arg-type]


Work = Callable[[Any], Sums]


# -- making them ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Making:
    """The task: packed rows of the log and rows of features of a bucket become one object."""

    checks: Checks
    most: int
    below: bool
    """Whether what stands below the last click of a list is read."""
    width: int
    normaliser: Normaliser
    by_query: bool
    """Whether features are of items of queries."""

    def __call__(self, key: tuple[Any, ...], rows: pa.Table, features: pa.Table) -> pa.Table:
        table = put_together(iter(rows.select(PACKED.names).to_batches()), self.most)
        return self._of(key, table, features)

    def alone(self, key: tuple[Any, ...], rows: pa.Table, features: pa.Table) -> pa.Table:
        """The task that has but one query: counted rows of the log and rows of features become one object."""
        return self._of(key, rows.drop_columns([BUCKET]) if len(rows) else None, features)

    def _of(self, key: tuple[Any, ...], table: pa.Table | None, features: pa.Table) -> pa.Table:
        prefs = Preferences.empty() if table is None else self.checks.preferences(table)
        bucket = int(key[0].as_py())
        return _whole(pieces(bucket, self.made(bucket, prefs, features)))

    def made(self, bucket: int, prefs: Preferences, features: pa.Table) -> Held | Part | None:
        """Bring features to judgments; ``Part`` where some are missing."""
        if not len(prefs) or not len(prefs := prefs if self.below else examined_only(prefs)):
            return None
        owner, item = prefs.member_groups.owner, prefs.members[1]
        width = max(len(prefs.items), 1)
        theirs = prefs.items.codes_of(features["item"]).astype(np.int64)
        there = theirs >= 0
        nodes = item.astype(np.int64)
        if self.by_query:
            query = prefs.queries.codes_of(features["query"]).astype(np.int64)
            there &= query >= 0
            theirs, nodes = query * width + theirs, owner * width + nodes
        used = np.flatnonzero(there)
        used = used[np.argsort(theirs[used], kind="stable")]
        known = theirs[used]
        place = np.minimum(np.searchsorted(known, nodes), max(len(known) - 1, 0))
        bare = known[place] != nodes if len(known) else np.ones(len(nodes), bool)
        if bare.any():
            some = np.flatnonzero(bare)[:4]
            labels = (prefs.queries.take(owner[some]).to_pylist(), prefs.items.take(item[some]).to_pylist())
            return Part(0, len(nodes), int(bare.sum()), tuple(zip(*labels, strict=True)))
        Z = self.normaliser.apply(matrix(features.take(pa.array(used)), self.width)[0])
        return Held(prefs, Z, place, bucket)


def pieces(bucket: int, made: Any) -> Iterator[pa.RecordBatch]:
    """An object as rows of at most ``PIECE`` bytes; none of None."""
    if made is None:
        return
    data = memoryview(pickle.dumps(made, protocol=5))
    starts = range(0, len(data), PIECE)
    for place, begin in enumerate(starts):
        columns = [[bucket], [len(starts) - 1 - place], [bytes(data[begin : begin + PIECE])]]
        yield pa.RecordBatch.from_arrays([pa.array(c, kind) for c, kind in zip(columns, PIECES.types)], schema=PIECES)


def _whole(batches: Iterator[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(list(batches), PIECES)


def objects(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Any]]:
    """Put the pieces of each object together again; those of one stand one after another."""
    parts: list[bytes] = []
    for batch in batches:
        columns = (batch.column(name) for name in PIECES.names)
        for bucket, left, piece in zip(*columns, strict=True):
            parts.append(piece.as_py())
            if left.as_py() == 0:
                data = b"".join(parts)
                parts = []
                yield int(bucket.as_py()), pickle.loads(data)


def sent(number: int, source: int, part: Any) -> Iterator[pa.RecordBatch]:
    """What goes from one object to another."""
    for piece in pieces(number, part):
        whose = pa.scalar(number, pa.int32()), pa.scalar(source, pa.int64())
        ends = (pa.repeat(one, piece.num_rows) for one in whose)
        yield pa.RecordBatch.from_arrays([*ends, *piece.columns], schema=SENT)


def parts_of(received: pa.Table) -> list[Any]:
    """What others sent to one object, in their order."""
    received = received.sort_by([("source", "ascending"), ("left", "descending")])
    return [part for _, part in objects(iter(received.select(PIECES.names).to_batches()))]


def worked(batches: Iterator[pa.RecordBatch], work: Callable[[Any], Sums]) -> Iterator[pa.RecordBatch]:
    """A task: what the work finds in its objects, one of which is in memory at a time, added up in their order."""
    total, first = Sums(), -1
    for bucket, held in objects(batches):
        total += work(held)
        first = bucket if first < 0 else first
    if first >= 0:
        yield _found(first, total)


def _changed(batches: Iterator[pa.RecordBatch], change: Callable[[Any], Any]) -> Iterator[pa.RecordBatch]:
    for bucket, held in objects(batches):
        yield from pieces(bucket, change(held))


def _items(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _, held in objects(batches):
        judged = held.prefs.items.take(np.unique(held.prefs.members[1])).cast(pa.string())
        yield pa.RecordBatch.from_arrays([judged], ["item"])


def _found(bucket: int, sums: Sums) -> pa.RecordBatch:
    columns = [pa.array([bucket], pa.int64()), pa.array([pickle.dumps(sums, protocol=5)], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=FOUND)


def _added(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = [row for batch in batches for row in _rows(batch)]
    if rows:
        yield _found(min(rows)[0], _sum(rows))


def _rows(table: pa.RecordBatch | pa.Table) -> Iterator[tuple[int, bytes]]:
    return zip(table.column("bucket").to_pylist(), table.column("found").to_pylist(), strict=True)


def _sum(rows: list[tuple[int, bytes]]) -> Sums:
    """Add up in the order of the buckets, so that the sum has the same bits every time."""
    total = Sums()
    for _, found in sorted(rows):
        total += pickle.loads(found)
    return total


def summed(frame: DataFrame, work: Callable[[Any], Sums], buckets: int) -> Sums:
    """Do a piece of work on every object of a frame of ``PIECES`` and add up; few parts reach the driver."""
    found = frame.mapInArrow(partial(worked, work=work), from_arrow_schema(FOUND))
    if buckets > MANY:
        found = found.repartition(PARTS, "bucket").mapInArrow(_added, from_arrow_schema(FOUND))
    return _sum(list(_rows(found.toArrow())))


def changed(frame: DataFrame, change: Callable[[Any], Any]) -> DataFrame:
    """Return a frame with every object changed, kept where there is room."""
    made = frame.mapInArrow(partial(_changed, change=change), from_arrow_schema(PIECES))
    return made.persist(StorageLevel.MEMORY_AND_DISK)


@dataclass(frozen=True)
class _Sending:
    """A task: what goes from each of its objects to others."""

    send: Callable[[Any], Iterator[tuple[int, Any]]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for source, held in objects(batches):
            for number, part in self.send(held):
                yield from sent(number, source, part)


class Summing(Protocol):
    """Whatever adds up what a piece of work finds in objects."""

    def sums(self, work: Work) -> Sums:
        """Do the work on every object and add up."""
        ...


Dividing = Callable[[JudgedQueries, Any, "_Making", FeatureFrame, int, int], "tuple[DataFrame, int, DataFrame] | None"]
"""Slices of a query (its label, its number, the bucket of the first), how many, and what is to be freed with them."""


@dataclass(eq=False)
class HeldFrame:
    """The objects of all buckets on Spark."""

    frame: DataFrame
    buckets: int
    sources: tuple[DataFrame, ...] = ()
    """What is kept only until these are made."""

    @classmethod
    def of(
        cls,
        judged: JudgedQueries,
        features: FeatureFrame,
        normaliser: Normaliser,
        rows: int,
        *,
        below: bool,
        dividing: Dividing | None = None,
    ) -> HeldFrame:
        """Bring the judgments and the features of each bucket of queries together.

        A query that no task can hold among others becomes slices by ``dividing``; without it, it has a task of its own.
        """
        width = len(features.names)
        buckets = max(judged.buckets, -(-rows * width * 8 // BUCKET_BYTES)) if judged.by_query else 1
        making = _Making(judged.checks, judged.most, below, width, normaliser, "query" in features.keys)
        kinds = dict(features.frame.dtypes)
        kind = kinds.get("query", "bigint" if pa.types.is_integer(judged.labels[0]) else "string")
        log = judged.frame
        if judged.large:
            named = fn.coalesce(~fn.col("query").isin(list(judged.large)), fn.lit(True))
            log = log.where(named) if judged.by_query else log.limit(0)
        query = _label(judged, "query", fn.col("query"), kind) if judged.by_query else fn.lit("")
        log = log.withColumn(BUCKET, bucket_by_query(query, buckets, log.columns))
        packing = partial(spread, roles=judged.frame.columns, counting=judged.compared)
        packed = log.mapInArrow(packing, from_arrow_schema(PACKED))
        theirs = features.frame.drop(*PLACED)
        if "query" in features.keys:
            theirs = theirs.withColumn(BUCKET, bucket_by_query(fn.col("query"), buckets, ()))
        else:
            theirs = _of_buckets(judged, log, theirs)
        ours, others = (each.repartitionById(buckets, BUCKET).groupBy(BUCKET) for each in (packed, theirs))
        both = ours.cogroup(others)
        made = both.applyInArrow(lambda key, one, other: making(key, one, other), from_arrow_schema(PIECES))
        parts = [] if judged.all_large else [made]  # tasks of an empty one would take their time in every pass
        number, sources = buckets, list[DataFrame]()
        for place, label in enumerate(judged.large):
            if dividing is None:
                found, slices = _alone(judged, features, making, label, number), 1
            elif (sliced := dividing(judged, label, making, features, place, number)) is not None:
                found, slices, source = sliced
                sources.append(source)
            else:
                continue
            parts.append(found)
            number += slices
        made = reduce(lambda one, other: one.unionByName(other), parts or [made])
        return cls(made.persist(StorageLevel.MEMORY_AND_DISK), number, tuple(sources))

    def some(self, buckets: Sequence[int]) -> HeldFrame:
        """The objects of some buckets, at least one."""
        ends = [0, *(np.flatnonzero(np.diff(buckets) != 1) + 1).tolist(), len(buckets)]
        runs = [fn.col("bucket").between(buckets[a], buckets[b - 1]) for a, b in pairwise(ends)]
        return HeldFrame(self.frame.where(reduce(lambda one, other: one | other, runs)), len(buckets))

    def changed(self, change: Callable[[Any], Any]) -> HeldFrame:
        """The same with every object changed."""
        return HeldFrame(changed(self.frame, change), self.buckets)

    def exchanged(
        self, send: Callable[[Any], Iterator[tuple[int, Any]]], receive: Callable[[list[Any], int], Any], number: int
    ) -> HeldFrame:
        """So many other objects, each of what all of these send to it."""

        def received(key: tuple[Any, ...], parts: pa.Table) -> pa.Table:
            place = int(key[0].as_py())
            return _whole(pieces(place, receive(parts_of(parts), place)))

        cut = self.frame.mapInArrow(_Sending(send), from_arrow_schema(SENT)).repartitionById(number, BUCKET)
        made = cut.groupBy(BUCKET).applyInArrow(lambda key, parts: received(key, parts), from_arrow_schema(PIECES))
        return HeldFrame(made.persist(StorageLevel.MEMORY_AND_DISK), number)

    def sums(self, work: Work) -> Sums:
        """Do a piece of work on every object and add up; few parts reach the driver."""
        return summed(self.frame, work, self.buckets)

    def items(self) -> int:
        """How many items were judged, in whatever queries."""
        return int(self.frame.mapInArrow(_items, "item string").distinct().count())

    def forget(self) -> None:
        """Free what is kept."""
        for frame in (self.frame, *self.sources):
            frame.unpersist()


def _alone(judged: JudgedQueries, features: FeatureFrame, making: _Making, label: Any, number: int) -> DataFrame:
    """The object of a query that has a task of its own."""
    log, theirs = judged.alone(label).withColumn(BUCKET, fn.lit(number)), features.frame.drop(*PLACED)
    if "query" in features.keys:
        kind = dict(theirs.dtypes)["query"]
        same = fn.lit(True) if label is None else fn.col("query") == _label(judged, "query", fn.lit(label), kind)
        theirs = theirs.where(same)
    else:
        theirs = _of_buckets(judged, log, theirs).drop(BUCKET)
    ours, others = log.groupBy(BUCKET), theirs.withColumn(BUCKET, fn.lit(number)).groupBy(BUCKET)
    both = ours.cogroup(others)
    return both.applyInArrow(lambda key, one, other: making.alone(key, one, other), from_arrow_schema(PIECES))


def of_items(judged: JudgedQueries, features: FeatureFrame, query: Labels, items: Labels) -> DataFrame:
    """The rows of features of some items of one query."""
    integers = dict(features.frame.dtypes)["item"] == "bigint"
    own = pa.table({"item": items.values.cast(pa.int64() if integers else pa.string())})
    rows = features.frame.join(judged.session.createDataFrame(own), "item", "left_semi")
    return rows.where(fn.col("query").isin(query.tolist())) if "query" in features.keys else rows


def _of_buckets(judged: JudgedQueries, log: DataFrame, features: DataFrame) -> DataFrame:
    """Features that hold for every query, once for each bucket that has the item."""
    sides = [role for role in ("item", "winner", "loser", "left", "right") if role in judged.frame.columns]
    kind = dict(features.dtypes)["item"]
    items = fn.array(*[_label(judged, role, fn.col(f"`{role}`"), kind) for role in sides])
    there = log.select(BUCKET, fn.explode(items).alias("item")).distinct()
    return there.join(features, "item")


def _label(judged: JudgedQueries, role: str, column: Any, kind: str) -> Any:
    """A column of labels as it is read: JSON of texts without its quotes, what is no label there as none."""
    if not judged.checks.as_json:
        of, unsigned = judged.frame.schema[role].dataType, role in judged.checks.unsigned
        return label_column(column, of, role, judged.name, unsigned=unsigned).cast(kind)
    return as_text(column, True) if kind == "string" else column.try_cast(kind)

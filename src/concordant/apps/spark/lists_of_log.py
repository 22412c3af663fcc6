"""What all lists of a log say together, on Spark, as when it is read in memory: what rankings leave out, and whether
positions are more than an order.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions as fn
from pyspark.sql.types import NumericType, StringType

from concordant.apps.spark.checking import KEYS
from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_held import Sums, summed
from concordant.apps.spark.splitting import Union, together
from concordant.preferences.labels import Labels
from concordant.preferences.lists import FAR, empty_rankings, said_of_empty, said_of_positions
from concordant.preferences.notes import Note
from concordant.preferences.pooling import LeftOut
from concordant.preferences.preferences import Lists, Preferences
from concordant.preferences.ragged import Ragged
from concordant.progress import stage

LOOKED = 1 << 22
"""Rows of the lists as shown that are looked at, about."""
EMPTY = "rank nothing"
FOUND = pa.schema([(name, pa.int64()) for name in (*(field.name for field in fields(LeftOut)), EMPTY)])


def settled(judged: JudgedQueries) -> JudgedQueries:
    """Return the queries with a note where rankings leave out items of theirs and nobody said what that means.

    And with one where positions of lists as shown have gaps. A pass over a log of orders or of such lists, once; others
    are returned as they are. Errors: as of ``settle_unranked``.
    """
    if judged.settled or judged.kind not in ("orders", "selections"):
        return judged
    if judged.kind == "selections":
        return replace(judged, settled=True, notes=(*judged.notes, *_with_gaps(judged)))
    plain = replace(judged, checks=replace(judged.checks, unranked=None))
    with stage("what rankings leave out"), judged.explained():
        table = plain.table(_left_out, FOUND, lambda label: _of_query(plain, label)).toArrow()
    *numbers, empty = (int(np.sum(table[name].to_numpy(), dtype=np.int64)) for name in FOUND.names)
    found = LeftOut(*numbers)
    notes = (*said_of_empty(empty, found.of, judged.name), *found.settle(judged.checks.unranked, judged.name))
    return replace(judged, settled=True, notes=(*judged.notes, *notes))


def _left_out(prefs: Preferences) -> pa.Table:
    """A task: what the rankings of some queries leave out."""
    found = LeftOut.by(prefs) if isinstance(prefs, Lists) else LeftOut(0, 0, 0, 0)
    return _table(found, empty_rankings(prefs.told))


def _table(found: LeftOut, empty: int) -> pa.Table:
    return pa.table([pa.array([value], pa.int64()) for value in (*astuple(found), empty)], schema=FOUND)


def _with_gaps(judged: JudgedQueries) -> tuple[Note, ...]:
    """Look for lists whose positions do not run from 1 on: all of few lists, of many some."""
    columns = judged.frame.columns
    keys, one_in = [fn.col(key) for key in KEYS if key in columns], max(judged.total // LOOKED, 1)
    read = {"position", "count"} & {*columns}
    plain = all(isinstance(judged.frame.schema[name].dataType, NumericType | StringType) for name in read)
    if not keys or "position" not in columns or not plain:  # times, say, are refused when they are read
        return ()
    some = judged.frame.where(fn.pmod(fn.xxhash64(*keys), fn.lit(one_in)) == 0)
    end = fn.max(fn.expr("try_cast(position AS double)")).alias("last")
    times = fn.max(fn.expr("try_cast(`count` AS bigint)")) if "count" in columns else fn.lit(1)
    lists = some.groupBy(*keys).agg(end, fn.count(fn.lit(1)).alias("size"), times.alias("times"))
    last, size = fn.col("last"), fn.col("size")
    kinds = [(last != size) & (last <= FAR), (last != size) & (last > FAR)]
    with stage("positions of lists"), judged.explained():
        sums = [fn.sum(fn.when(kind, fn.col("times"))) for kind in kinds]
        gaps, far, of = (int(one or 0) for one in lists.agg(*sums, fn.sum("times")).collect()[0])
    return said_of_positions(gaps, far, of, judged.name, one_in=one_in)


# -- one query that no task can hold -------------------------------------------------------------------------------
@dataclass(frozen=True)
class Ends:
    """Some rankings of one query by the number of items that they name: how many, and where items are tied."""

    items: Union
    sizes: NDArray[np.int64]
    """Numbers of items, ascending."""
    numbers: NDArray[np.int64]
    """Of each: rankings, rankings with several items in last place, these once each, tiers of several elsewhere."""
    empty: int
    """Rankings of no item, beside these."""

    @classmethod
    def of(cls, prefs: Preferences) -> Ends:
        """Look at some lists."""
        if not isinstance(prefs, Lists):
            return cls(Union(prefs.items), np.zeros(0, np.int64), np.zeros((0, 4), np.int64), 0)
        lists, tiers = prefs.lists, Ragged.runs(prefs.list_value, prefs.lists.owner)
        holder, tied = lists.owner[tiers.first], tiers.sizes > 1
        ending = tied & (tiers.start[1:] == prefs.list_start[1:][holder])
        last, elsewhere = (np.bincount(holder[rows], minlength=len(lists)) for rows in (ending, tied & ~ending))
        sizes, place = np.unique(lists.sizes, return_inverse=True)
        times = prefs.count.astype(np.int64)
        numbers = np.zeros((len(sizes), 4), np.int64)
        np.add.at(numbers, place, np.column_stack([times, times * last, last, elsewhere]))
        return cls(Union(prefs.items), sizes, numbers, empty_rankings(prefs.told))

    def __add__(self, other: Ends) -> Ends:
        sizes, place = np.unique(np.append(self.sizes, other.sizes), return_inverse=True)
        numbers = np.zeros((len(sizes), 4), np.int64)
        np.add.at(numbers, place, np.concatenate([self.numbers, other.numbers]))
        return Ends(self.items + other.items, sizes, numbers, self.empty + other.empty)

    @property
    def left_out(self) -> LeftOut:
        """Return what the rankings leave out of all items that are in any."""
        whole = self.sizes == len(self.items.labels)
        rankings, filled, ends, elsewhere = self.numbers.T
        tied = int(elsewhere.sum() + ends[~whole].sum())
        return LeftOut(int(rankings[~whole].sum()), int(rankings.sum()), int(filled[whole].sum()), tied)


def _looked(ends: Ends) -> Sums:
    return Sums(ends=ends)


def _of_query(judged: JudgedQueries, label: Any) -> pa.Table:
    """What the rankings of a query that no task can hold leave out."""
    frame, _, tasks = together(judged, label, Ends.of)
    try:
        found = summed(frame, _looked, tasks)
    finally:
        frame.unpersist()
    ends = found["ends"] if found else Ends.of(Preferences.empty())
    return _table(ends.left_out, ends.empty)


def rated_together(judged: JudgedQueries, label: Any) -> Labels:
    """Return the items of a query that no task can hold of which somebody rated another one, too."""
    frame, _, tasks = together(judged, label, _several)
    try:
        found = summed(frame, _united, tasks)
    finally:
        frame.unpersist()
    labels: Labels = found["items"].labels if found else Labels.empty()
    return labels


def _several(prefs: Preferences) -> Union:
    assert isinstance(prefs, Lists)
    lists = prefs.lists
    return Union(prefs.items.only(np.bincount(prefs.list_item, lists.spread(lists.sizes) > 1, len(prefs.items)) > 0)[0])


def _united(items: Union) -> Sums:
    return Sums(items=items)

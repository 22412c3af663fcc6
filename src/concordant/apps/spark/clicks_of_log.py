"""Clicks that only all of a log says how to read, without features: rankings and targets of each query.

What is said of positions, or of readers who go on, is found once, by passes over all of it. Then queries are read so in
the tasks that hold them; of those that no task can hold sums over their slices are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from concordant.apps.spark.checking import Checks
from concordant.apps.spark.divided import Read, declared
from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_clicks import ClicksRead, Telling
from concordant.apps.spark.learning_cutting import Featureless, sliced
from concordant.apps.spark.learning_draws import described, drawn_targets
from concordant.apps.spark.learning_held import PIECES, WHOLE, Held, HeldFrame, Sums, pieces
from concordant.apps.spark.learning_parts import known_targets
from concordant.apps.spark.learning_sums import MakeTargets, target_columns
from concordant.apps.spark.partitioning import put_together
from concordant.errors import counted
from concordant.learning.rankers.plans import Plan, Recipe, options_of
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences
from concordant.preferences.sampling import label_keys


@dataclass(frozen=True)
class ReadAs:
    """Have the clicks of some queries read as all of the log says."""

    telling: Telling

    def __call__(self, prefs: Preferences) -> Preferences:
        return self.telling(_featureless(0, prefs)).learned(WHOLE)


@dataclass(frozen=True)
class LargeRead:
    """What is known of a query that no task can hold, and how it was found."""

    query: Labels
    items: Labels
    read: Read
    said: str


def read_as_all(
    judged: JudgedQueries, structure: str, options: Mapping[str, Any]
) -> tuple[ReadAs, dict[Any, LargeRead]]:
    """Find how clicks are read by passes over a log; of queries that no task can hold what they are ranked by."""
    with judged.explained():
        held, told = _all_of(judged)
        try:
            facts = held.sums(_about) if judged.large else Sums()
            items = {query: len(found["items"].labels) for query, found in facts.items()}
            clicks = ClicksRead.of(held, [WHOLE], items, named=True)
        finally:
            held.forget()
    large = {}
    for query, label in enumerate(judged.large):
        if (found := facts.get(query)) is not None:
            whose = "the log" if label is None else f"query {found['query'].labels[0]!r}"
            of = f"{counted(int(found['judgments']), 'judgments')} of {counted(items[query], 'items')}"
            said = f"{whose}: {of}, divided among tasks by their lists ({counted(len(told[query]), 'slices')})"
            read = clicks.read(query, structure, options)
            large[label] = LargeRead(found["query"].labels, found["items"].labels, read, said)
    return ReadAs(Telling(clicks.known, clicks.moves)), large


@dataclass(frozen=True)
class _Targets:
    """The task: targets of queries whose clicks are read as all of the log says."""

    make: MakeTargets
    read: ReadAs

    def __call__(self, prefs: Preferences) -> pa.Table:
        return self.make(self.read(prefs) if len(prefs) else prefs)


def _featureless(bucket: int, prefs: Preferences) -> Held:
    return Featureless(True).made(bucket, prefs, None)


def _kept(batches: Iterator[pa.RecordBatch], *, checks: Checks, most: int) -> Iterator[pa.RecordBatch]:
    """A task: its queries as an object, without features."""
    table = put_together(batches, most)
    if table is not None and len(prefs := checks.preferences(table)):
        yield from pieces(0, _featureless(0, prefs))


def _about(held: Held) -> Sums:
    return Sums() if held.slice is None else Sums({held.at.query: described(held)})


def targets_of_clicks(judged: JudgedQueries, plan_of: Callable[[str], Plan], recipe: Recipe) -> DataFrame:
    """The targets of a log of clicks that only all of it says how to read; ``plan_of``: by the usual structure."""
    with judged.explained():
        held, told = _all_of(judged)
        try:
            facts = held.sums(_about)
            items = {query: len(found["items"].labels) for query, found in facts.items()}
            clicks = ClicksRead.of(held, [WHOLE], items, named=True)
            make = MakeTargets(plan_of(clicks.known[WHOLE].usual), recipe)
            tables = {
                label: _of_divided(held.some(told[query]), clicks, query, facts[query], make)
                for query, label in enumerate(judged.large)
                if query in facts
            }
        finally:
            held.forget()
    task = _Targets(make, ReadAs(Telling(clicks.known, clicks.moves)))
    return judged.table(task, target_columns(*judged.labels), tables.get)


def _all_of(judged: JudgedQueries) -> tuple[HeldFrame, dict[int, list[int]]]:
    """All judgments, those of queries that no task can hold as slices, in these buckets; to be freed."""
    kept = partial(_kept, checks=judged.checks, most=judged.most)
    parts = [] if judged.all_large else [judged._tasks(kept, PIECES)]
    buckets, sources, number = dict[int, list[int]](), list[DataFrame](), 1
    for query, label in enumerate(judged.large):
        if (cut := sliced(judged, label, Featureless(True), None, query, number)) is not None:
            made, slices, source = cut
            parts.append(made)
            sources.append(source)
            buckets[query] = [*range(number, number + slices)]
            number += slices
    frame = reduce(lambda one, other: one.unionByName(other), parts).persist(StorageLevel.MEMORY_AND_DISK)
    return HeldFrame(frame, max(number, judged.buckets), tuple(sources)), buckets


def _of_divided(slices: HeldFrame, clicks: ClicksRead, query: int, facts: Sums, make: MakeTargets) -> pa.Table:
    """The targets of a query that no task can hold."""
    plan, recipe, number = make.plan, make.recipe, int(facts["judgments"])
    if plan.order != "all" and number > int(plan.order):
        key = label_keys(facts["query"].labels, recipe.seed)[0]
        known = {WHOLE: clicks.known[WHOLE]}
        targets = drawn_targets(slices, {WHOLE: number}, key, [plan], recipe, {}, known)[WHOLE, plan]
    else:
        options = options_of(plan.structure, recipe.options)
        scores = clicks.scores(query, WHOLE, str(plan.structure), **options)
        targets = known_targets(replace(plan, order="all"), recipe, scores, "selections")
    prefs = declared("selections", facts["query"].labels, facts["items"].labels)
    return make.table(targets, prefs, np.array([number]))

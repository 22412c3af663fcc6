"""Targets of a query that no task can hold, by subsets of k of its judgments: each subset comes to a task of its own.

Which judgments a subset holds follows from the label of the query and the places of the judgments among all of it
(``sampling``), so that a slice knows by itself what it has of each. What a task makes of a subset is what
``mean_targets`` makes of so many judgments at once; the driver puts these together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark import StorageLevel

from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_cutting import Featureless, sliced
from concordant.apps.spark.learning_held import WHOLE, Held, HeldFrame, Split, Sums
from concordant.apps.spark.learning_slices import Begins, begins, first_cards, of_winners
from concordant.apps.spark.splitting import Union
from concordant.learning.rankers.plans import Plan, Recipe
from concordant.learning.rankers.validation import reads_below
from concordant.learning.targets.mean_targets import Targets, in_blocks, of_draws
from concordant.preferences.preferences import Preferences, keep
from concordant.preferences.sampling import draw_subsets, label_keys
from concordant.ranking.click_models import KnownClicks

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class _Counts:
    """How many judgments each item wins in each slice, of what folds leave; of lists, how many there are."""

    splits: tuple[Split, ...]

    def __call__(self, held: Held) -> Sums:
        at = held.at.query, held.at.number
        return Sums({split: Sums({at: of_winners(held.prefs, held.left(split))}) for split in self.splits})


@dataclass(frozen=True)
class Drawing:
    """Subsets of k of the judgments that a fold leaves of one query."""

    split: Split
    judgments: int
    k: int
    subsets: int
    key: np.uint64
    begins: Begins = field(repr=False)

    @property
    def blocks(self) -> bool:
        """Whether they are blocks of random partitions."""
        return bool(in_blocks(np.array([self.judgments]), self.k, np.array([self.subsets]))[0])

    @property
    def places(self) -> Ints:
        """The places of the judgments of each subset, shape (subsets, k); drawn each time."""
        total, key = np.array([self.judgments]), np.array([self.key], np.uint64)
        return draw_subsets(total, key, self.k, self.subsets, partition=self.blocks)[2].reshape(self.subsets, self.k)

    def of(self, held: Held) -> Iterator[tuple[int, Preferences]]:
        """What a slice has of the subsets: the number of each, and some judgments."""
        prefs, count = held.prefs, held.left(self.split)
        first = first_cards(prefs, count, self.begins[held.at.query, held.at.number][0])
        rows = np.flatnonzero(count)
        rows = rows[np.argsort(first[rows], kind="stable")]
        if not len(rows):
            return
        for number, places in enumerate(self.places):
            row = rows[np.maximum(np.searchsorted(first[rows], places, side="right") - 1, 0)]
            here = row[(places >= first[row]) & (places < first[row] + count[row])]
            if len(here):
                some, times = np.unique(here, return_counts=True)
                yield number, keep(prefs, some, times, held.known)


@dataclass(frozen=True)
class _Sent:
    """A slice, to the tasks of all subsets."""

    drawings: Sequence[Drawing]

    def __call__(self, held: Held) -> Iterator[tuple[int, Preferences]]:
        for place, drawing in enumerate(self.drawings):
            for number, some in drawing.of(held):
                yield place * drawing.subsets + number, some


@dataclass(frozen=True)
class _Received:
    """A task: the targets of one subset by each plan."""

    plans: Sequence[Plan]
    recipe: Recipe
    subsets: int
    priors: Sequence[Mapping[str, Any] | None]
    """Of each drawing."""
    known: Sequence[KnownClicks | None]
    """How clicks are read, likewise."""

    def __call__(self, parts: list[Preferences], place: int) -> _Made:
        while len(parts) > 1:
            parts = [sum(parts[at : at + 2], Preferences.empty()) for at in range(0, len(parts), 2)]
        plans, drawing = [replace(plan, order="all") for plan in self.plans], place // self.subsets
        if (known := self.known[drawing]) is not None:
            known.tell(parts[0])
        return _Made(place, self.recipe.targets(plans, parts[0], self.priors[drawing]))


@dataclass(frozen=True, eq=False)
class _Made:
    place: int
    targets: list[Targets]


def described(held: Held) -> Sums:
    """What a slice has of its query."""
    prefs = held.prefs
    return Sums(judgments=len(prefs), query=Union(prefs.queries), items=Union(prefs.items))


def drawn_of_query(judged: JudgedQueries, label: Any, plan: Plan, recipe: Recipe) -> tuple[Targets | None, Sums] | None:
    """Targets of a query that no task can hold by a plan of an order k, and what it holds; None without judgments.

    The targets are None where it has no more than k. Errors: as of any task.
    """
    cut = sliced(judged, label, Featureless(reads_below(plan.structure, Preferences.empty())), None, 0, 0)
    if cut is None:
        return None
    made, number, source = cut
    slices = HeldFrame(made.persist(StorageLevel.MEMORY_AND_DISK), number, (source,))
    try:
        about = slices.sums(described)
        key = label_keys(about["query"].labels, recipe.seed)[0]
        parts = {WHOLE: int(about["judgments"])}
        if about["judgments"] <= int(plan.order):
            return None, about
        return drawn_targets(slices, parts, key, [plan], recipe, {}, {})[WHOLE, plan], about
    finally:
        slices.forget()


def _found(made: _Made) -> Sums:
    return Sums({made.place: made.targets})


def drawn_targets(
    slices: HeldFrame,
    parts: Mapping[Split, int],
    key: np.uint64,
    plans: Sequence[Plan],
    recipe: Recipe,
    priors: Mapping[Split, Mapping[str, Any]],
    known: Mapping[Split, KnownClicks],
) -> dict[tuple[Split, Plan], Targets]:
    """Targets of one query by plans of one order k from what folds leave, more than k judgments each.

    ``parts``: how many judgments; ``priors``: further options of the structure; ``known``: how clicks are read.
    """
    k, subsets = int(plans[0].order), recipe.subsets
    counted = slices.sums(_Counts(tuple(parts)))
    drawings = [Drawing(split, number, k, subsets, key, begins(counted[split])) for split, number in parts.items()]
    options, read = [priors.get(split) for split in parts], [known.get(split) for split in parts]
    received = _Received(plans, recipe, subsets, options, read)
    made = slices.exchanged(_Sent(drawings), received, len(drawings) * subsets)
    try:
        found = made.sums(_found)
    finally:
        made.forget()
    targets: dict[tuple[Split, Plan], Targets] = {}
    for place, drawing in enumerate(drawings):
        own = [found[place * subsets + number] for number in range(subsets)]
        for at, plan in enumerate(plans):
            draws = [each[at] for each in own]
            targets[drawing.split, plan] = of_draws(draws, k, drawing.judgments, drawing.blocks)
    return targets

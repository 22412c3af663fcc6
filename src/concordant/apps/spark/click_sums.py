"""Clicks of one query that no task can hold: what its lists add up to, and what readers are said to do.

Cascade, position-based and inverse propensities need clicks by item, or by item and position. Dependent clicks are
moves of expectation–maximisation, each a pass over the lists; a bootstrap takes how often readers go on as it is, and
finds the attractions of all replicates side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from concordant.apps.spark.divided import InOnePass, Read, Reading, declared
from concordant.apps.spark.learning_held import Sums
from concordant.apps.spark.redrawn import SCORES, Again, Draw
from concordant.apps.spark.shares import Share, Tally, TooMuch, Whole
from concordant.apps.spark.splitting import SHARE, Divided
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Lists, Preferences
from concordant.preferences.ragged import Ragged
from concordant.progress import stage
from concordant.ranking.click_models import (
    CLIP,
    Cells,
    Examination,
    attractions,
    fitted,
    links_of,
    trials_of,
    weighted_clicks,
)
from concordant.ranking.dependent_clicks import (
    CLOSE,
    ENOUGH,
    STEPS,
    Climb,
    Left,
    Move,
    clicks_over,
    climbed,
    rates_at,
    trials_at,
)
from concordant.ranking.ranked_lists import (
    all_linked,
    examinations,
    rates_of,
    refuse_several,
    seen,
    several_clicks,
)
from concordant.ranking.scores import Scores
from concordant.ranking.structures import Structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PLACES = 2 * SHARE
"""More than the places of a list, which one share holds."""


# -- in a task -----------------------------------------------------------------------------------------------------
def batch_of(share: Share) -> Batch:
    """The judgments of a share, among all items of the query."""
    if not isinstance(share, Whole):
        raise TypeError("a share has not kept its judgments")
    return Batch.whole(share.prefs)


def _examined(share: Share) -> Sums:
    """Clicks and examinations of each item, lists with several clicks, and lists."""
    batch = batch_of(share)
    clicks, examined = examinations(batch)
    several = several_clicks(batch.prefs)
    return Sums(touched=share.touched, clicks=clicks, examined=examined, several=several)


def _cells(share: Share) -> Sums:
    """How often each item was shown at each place, and clicked there."""
    cells = Cells.of(batch_of(share))
    key = cells.nodes.owner * PLACES + cells.place
    return Sums(touched=share.touched, cells=Tally.of(key, cells.shown, cells.clicked))


@dataclass(frozen=True, eq=False)
class Readers(Share):
    """What dependent readers of the lists of a share surely examined, and what stands below the last click."""

    left: Left

    @classmethod
    def reading(cls, share: Share) -> Readers:
        """Those of a share that has kept its judgments."""
        return cls(share.queries, share.items, share.touched, share.judgments, Left.of(batch_of(share)))


def _readers(share: Readers) -> Sums:
    """Clicks and sure examinations of each item; how often clicks at each place were followed by others, and not."""
    left = share.left
    places = Tally.of(np.arange(len(left.went_on)), left.went_on, left.last)
    return Sums(touched=share.touched, clicks=left.clicks, sure=left.sure, places=places)


@dataclass(frozen=True, eq=False)
class _Moved:
    """What lists say at chances of going on and attractions."""

    on: Floats
    a: Floats

    def __call__(self, share: Readers) -> Sums:
        return Sums(reached=share.left.reached(self.on, self.a))


@dataclass(frozen=True, eq=False)
class _Passed:
    """How often items were examined below a last click, and how surely, by expectation."""

    on: Floats
    a: Floats

    def __call__(self, share: Readers) -> Sums:
        left = share.left
        stayed = left.stayed(self.on, self.a)[0]
        return Sums(below=left.examined(stayed) - left.sure, squared=left.squared(stayed))


@dataclass(frozen=True, eq=False)
class _Sure:
    """Clicks and sure examinations of each item in all replicates."""

    draw: Draw
    items: Labels

    def __call__(self, prefs: Preferences) -> Sums:
        batch, shape = Batch.whole(prefs), (self.draw.replicates, len(self.items))
        found = Sums(clicks=np.zeros(shape), sure=np.zeros(shape))
        if not isinstance(prefs, Lists):
            return found
        lists, node, value = batch.entries(prefs)
        own = self.items.codes_of(prefs.items.take(batch.item))[node]
        told = {"clicks": value > 0, "sure": seen(lists, value)}
        of = {
            name: csr_array((np.ones(some.sum()), (lists.owner[some], own[some])), shape=(prefs.distinct, shape[1]))
            for name, some in told.items()
        }
        for part, draws in self.draw.some(prefs, np.arange(self.draw.replicates)):
            for name, entries in of.items():
                found[name][part] = draws @ entries
        return found


@dataclass(frozen=True, eq=False)
class _Below:
    """How often items were examined below a last click in some replicates, at their attractions."""

    draw: Draw
    items: Labels
    which: Ints
    a: Floats
    """Shape (these replicates, items)."""
    on: Floats

    def __call__(self, prefs: Preferences) -> Sums:
        batch, found = Batch.whole(prefs), np.zeros(self.a.shape)
        own, left = self.items.codes_of(prefs.items.take(batch.item)), Left.of(batch)
        for part, draws in self.draw.some(prefs, self.which):
            for row, a, often in zip(found[part], self.a[part], draws, strict=True):
                stayed, _ = left.stayed(self.on, a[own])
                row[own] = left.below(often[left.holder] * stayed)
        return Sums(below=found)


# -- on the driver -------------------------------------------------------------------------------------------------
def _cascade(shares: Divided, member: Structure, _: Mapping[str, Any]) -> Read:
    found = shares.sums(_examined)
    refuse_several(found["several"], shares.judgments)
    rates = found["clicks"], found["examined"]
    links = all_linked(found["examined"] > 0)
    return Read(lambda batch: rates_of(batch, member.name, *rates), links, found["touched"], rates)


def _cells_of(found: Sums, items: int) -> Cells:
    """The cells of a query. Errors: TooMuch."""
    tally = found["cells"]
    if tally.key is None:
        raise TooMuch
    node, place = np.divmod(tally.key, PLACES)
    shown, clicked = (np.asarray(each, np.float64) for each in tally.columns)
    places = int(place.max(initial=0)) + 1
    return Cells(Ragged.counted(node, items).start, place, shown, clicked, places)


def _shown(shares: Divided) -> tuple[Cells, Ints]:
    """The cells of a query, and the judgments of each item. Errors: TooMuch."""
    with stage("adding up clicks by position"):
        found = shares.sums(_cells)
    return _cells_of(found, len(shares.items)), found["touched"]


def _position_based(shares: Divided, _: Structure, __: Mapping[str, Any]) -> Read:
    cells, touched = _shown(shares)
    found = fitted(cells)
    batch = Batch.whole(declared("selections", shares.query, shares.items))
    links, trials = links_of(batch, cells, found), trials_of(cells, found)
    return Read(lambda one: attractions(one, cells, found), links, touched, trials, len(cells.place), found)


def _by_attractions(found: Sums, read: Read, _: Structure, __: Mapping[str, Any], batch: Batch) -> Scores:
    if read.examined is None:
        raise TypeError("nothing is known of positions")
    return attractions(batch, _cells_of(found, len(batch.item)), read.examined)


def _propensities(shares: Divided, _: Structure, options: Mapping[str, Any]) -> Read:
    cells, touched = _shown(shares)
    found = None if options.get("propensities") else fitted(cells)

    def scores(batch: Batch) -> Scores:
        return _weighted(batch, cells, found, options)

    return Read(scores, all_linked(touched > 0), touched, numbers=len(cells.place), examined=found)


def _weighted(batch: Batch, cells: Cells, found: Examination | None, options: Mapping[str, Any]) -> Scores:
    given = {"propensities": None, "clip": CLIP, **options}
    return weighted_clicks(batch, cells, lambda: fitted(cells) if found is None else found, **given)


def _by_propensities(found: Sums, read: Read, _: Structure, options: Mapping[str, Any], batch: Batch) -> Scores:
    return _weighted(batch, _cells_of(found, len(batch.item)), read.examined, options)


def _of_rates(found: Sums, _: Read, member: Structure, __: Mapping[str, Any], batch: Batch) -> Scores:
    return rates_of(batch, member.name, found["clicks"], found["examined"])


def _dependent(shares: Divided, _: Structure, __: Mapping[str, Any]) -> Read:
    with stage("how readers go on"):
        shares.change(Readers.reading)
        found = shares.sums(_readers)
        clicks, sure, places = found["clicks"], found["sure"], found["places"]
        went_on, last = (np.asarray(each, np.float64) for each in places.columns)
        climb = Climb(clicks, sure, clicks_over(clicks, sure))

        def moved(move: Move) -> Mapping[str, Any]:
            return climb.moved(move, shares.sums(_Moved(move.on, climb.point(move)))["reached"])

        going = climbed(moved, went_on, last)
    a = climb.at
    passed = shares.sums(_Passed(np.nan_to_num(going.value), a))
    examined = sure + passed["below"]
    trials = trials_at(clicks, sure - clicks + passed["squared"], examined, a)
    links = all_linked(examined >= ENOUGH)
    return Read(lambda batch: rates_at(batch, a, examined, going), links, found["touched"], trials, going=going)


def _dependent_again(
    again: Again, draw: Draw, _how: Reading, read: Read, _: Structure, __: Mapping[str, Any], batch: Batch
) -> Floats:
    """Each replicate finds its attractions as readers go on in all of the log."""
    items = again.shares.items
    if draw.replicates * len(items) > SCORES or read.going is None:
        raise TooMuch
    on, live = np.nan_to_num(read.going.value), np.arange(draw.replicates)
    with stage("bootstrap"):
        found = again.judged(_Sure(draw, items))
        clicks, sure = found["clicks"], found["sure"]
        a = clicks_over(clicks, sure)
        for _step in range(STEPS):
            below = again.judged(_Below(draw, items, live, a[live], on))["below"]
            moved = clicks_over(clicks[live], sure[live] + below)
            change = np.abs(moved - a[live]).max(axis=1, initial=0.0)
            a[live] = moved
            live = live[change > CLOSE]
            if not len(live):
                break
        examined = sure + again.judged(_Below(draw, items, np.arange(draw.replicates), a, on))["below"]
    each = [rates_at(batch, *one, read.going).value for one in zip(a, examined, strict=True)]
    return np.array(each).reshape(a.shape)


CLICKS: Mapping[str, Reading] = {
    "cascade": Reading(Whole, _cascade, InOnePass(lambda *_: _examined, _of_rates)),
    "position-based": Reading(Whole, _position_based, InOnePass(lambda *_: _cells, _by_attractions)),
    "dependent-click": Reading(Whole, _dependent, _dependent_again),
    "inverse-propensity": Reading(Whole, _propensities, InOnePass(lambda *_: _cells, _by_propensities)),
}
"""How the structures of clicks read a query that is divided."""

"""Clicks of lists that have several, or gaps: which model reads them, and what it says of positions, by a whole log.

The position-based model is Newton's method in the log-examinations of positions, with the attractions maximised over in
the tasks; dependent clicks are the moves of expectation–maximisation, which tasks make again from the start or from
where they are kept. Both are those of memory, for all parts of the judgments side by side, so that a fit asks for a
pass for each step of all of them. Of a query that is divided the attractions are the driver's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.apps.spark.click_sums import PLACES
from concordant.apps.spark.divided import Read
from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_held import (
    HELD,
    WHOLE,
    Held,
    HeldFrame,
    Slice,
    Split,
    Sums,
    Which,
    summed,
)
from concordant.apps.spark.learning_parts import nobody, side_by_side
from concordant.apps.spark.shares import CELLS, Tally
from concordant.apps.spark.splitting import Blocks, together
from concordant.apps.spark.structure_sums import estimated
from concordant.errors import UsageError
from concordant.learning.rankers.plans import Plan
from concordant.learning.rankers.target import PARTS
from concordant.learning.rankers.validation import reads_below
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Lists, Preferences
from concordant.preferences.ragged import Ragged
from concordant.ranking.click_models import (
    CLIP,
    Cells,
    Examination,
    KnownClicks,
    Slopes,
    attractions,
    cascade_likelihood,
    clicked_only,
    clicks_with_more_below,
    explored,
    likelier,
    linked_positions,
    links_of,
    numbered,
    rates_likelihood,
    slopes_at,
    trials_of,
    weighted_clicks,
    with_gaps,
)
from concordant.ranking.dependent_clicks import (
    ENOUGH,
    Climb,
    GoingOn,
    Left,
    Most,
    Move,
    Reached,
    climbed,
    rates_at,
    trials_at,
)
from concordant.ranking.ranked_lists import (
    all_linked,
    examinations,
    lists_with_gaps,
    positions_of,
    rates_of,
    several_clicks,
    touches,
)
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
KEPT = 12
"""Moves that tasks make again in every pass, before they keep where these lead."""
FEW = 1 << 17
"""Entries of lists, those of equal lists once, up to which the driver takes what models read of all of them."""
Part = tuple[int, Which]
"""A divided query, and some of its judgments."""


# -- before anything is brought together ---------------------------------------------------------------------------
NUMBER = pa.schema([("number", pa.int64())])


def _unlike(prefs: Preferences) -> int:
    """How many lists have several clicks or gaps."""
    return several_clicks(prefs) + lists_with_gaps(prefs)


def _several(prefs: Preferences) -> pa.Table:
    return pa.table({"number": [_unlike(prefs)]}, NUMBER)


def _several_of(prefs: Preferences) -> Sums:
    return Sums(number=_unlike(prefs))


def _same(prefs: Preferences) -> Preferences:
    return prefs


def _several_of_large(judged: JudgedQueries, label: Any) -> pa.Table:
    shares, _, tasks = together(judged, label, _same)
    try:
        return pa.table({"number": [summed(shares, _several_of, tasks).get("number", 0)]}, NUMBER)
    finally:
        shares.unpersist()


def of_positions(plans: Iterable[Plan], options: Mapping[str, Any] | None) -> bool:
    """Whether a plan's structure is estimated from all of a log: how positions are examined, or readers go on."""
    return any(estimated(plan.structure, options or {}) for plan in plans)


def needs_below(structure: Any, judged: JudgedQueries) -> bool:
    """Whether what stands below the last click of a list is read: a pass over a log of clicks with nothing named."""
    if judged.kind != "selections" or not (structure is None or structure == "auto"):
        return reads_below(structure, Preferences.empty())
    with judged.explained():
        found = judged.table(_several, NUMBER, partial(_several_of_large, judged))
        return bool(sum(found.toArrow()["number"].to_pylist()))


# -- in a task -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Counting:
    """Lists with several clicks, with more below the last one, with gaps, and the last position, of parts of judgments.

    Where positions have gaps the likelihood of the cascade, too.
    """

    parts: tuple[Which, ...]

    def __call__(self, held: Held) -> Sums:
        found = Sums(entries=len(held.prefs.list_item) if isinstance(held.prefs, Lists) else 0)
        for which in self.parts:
            prefs = held.part(which)
            last = Most(positions_of(prefs))
            own = Sums(several=several_clicks(prefs), below=clicks_with_more_below(prefs), longest=last)
            own |= Sums(gaps=lists_with_gaps(prefs), cascade=0.0)
            if which == WHOLE and held.slice is None and not own["several"]:
                own["cascade"] = cascade_likelihood(prefs)
            if held.slice is not None:
                batch = Batch.whole(prefs)
                clicks, examined = examinations(batch)
                own["clicks", held.at.query], own["examined", held.at.query] = clicks, examined
                own["touched", held.at.query] = touches(batch)
            found[which] = own
        return found


@dataclass(eq=False)
class _Clicked:
    """What models of clicks read of some queries, or of a slice of one, by part of the judgments."""

    bucket: int
    slice: Slice | None
    left: dict[Which, Left]
    cells: dict[Which, Cells]
    """Of items that were clicked; of a slice of all."""
    shown: dict[Which, Floats]
    """How often anything was shown at each position."""
    climbs: dict[Which, Climb]


@dataclass(frozen=True)
class _Reading:
    """Make that of what is held."""

    longest: Mapping[Which, int]

    def __call__(self, held: Held) -> _Clicked:
        found = _Clicked(held.bucket, held.slice, {}, {}, {}, {})
        for which, places in self.longest.items():
            batch = Batch.whole(held.part(which))
            left, cells = Left.of(batch), replace(Cells.of(batch), places=places)
            went_on = np.zeros(places)
            went_on[: len(left.went_on)] = left.went_on[:places]
            found.left[which] = replace(left, went_on=went_on)
            found.cells[which] = cells if held.slice is not None else clicked_only(cells)
            found.shown[which], found.climbs[which] = cells.at_places(cells.shown), Climb.of(left)
        return found


@dataclass(frozen=True)
class _Each:
    """A piece of work for each of some models."""

    works: Mapping[tuple[str, Which], Callable[[_Clicked, Which], Sums]]

    def __call__(self, clicked: _Clicked) -> Sums:
        return Sums({key: work(clicked, key[1]) for key, work in self.works.items()})


def _places(clicked: _Clicked, which: Which) -> Sums:
    """How often clicks at each place were followed by others, and how often they were the last above something."""
    left = clicked.left[which]
    return Sums(went_on=left.went_on, last=left.last)


def _linked(clicked: _Clicked, which: Which) -> Sums:
    """Which positions clicked items link; of a slice the cells."""
    cells = clicked.cells[which]
    if clicked.slice is None:
        clicks = cells.at_places(cells.clicked)
        return Sums(linked=Blocks(linked_positions(cells).astype(np.int32)), shown=clicked.shown[which], clicks=clicks)
    key = cells.nodes.owner * PLACES + cells.place
    return Sums({clicked.slice.query: Tally.of(key, cells.shown, cells.clicked)})


@dataclass(frozen=True, eq=False)
class _At:
    """The position-based likelihood at some log-examinations."""

    u: Floats

    def __call__(self, clicked: _Clicked, which: Which) -> Sums:
        return Sums() if clicked.slice is not None else Sums(slopes=slopes_at(clicked.cells[which], self.u)[0])


@dataclass(frozen=True, eq=False)
class _Moved:
    """The last of some moves, the others made before; from where it starts for the items of divided queries."""

    moves: tuple[Move, ...]
    points: Mapping[int, Floats]

    def __call__(self, clicked: _Clicked, which: Which) -> Sums:
        left = clicked.left[which]
        if clicked.slice is not None:
            query = clicked.slice.query
            return Sums({query: left.reached(self.moves[-1].on, self.points[query])})
        found, climb = dict[str, Any](), copy(clicked.climbs[which])
        for move in self.moves:
            found = made(climb, left, move)
        return Sums(found)

    def without(self, number: int) -> _Moved:
        """The same where so many moves are kept."""
        return replace(self, moves=self.moves[number:])


@dataclass(frozen=True, eq=False)
class _Squared:
    """How surely the items of divided queries were passed below a last click."""

    on: Floats
    points: Mapping[int, Floats]

    def __call__(self, clicked: _Clicked, which: Which) -> Sums:
        if clicked.slice is None:
            return Sums()
        left, query = clicked.left[which], clicked.slice.query
        return Sums({query: left.squared(left.stayed(self.on, self.points[query])[0])})


def made(climb: Climb, left: Left, move: Move) -> dict[str, Any]:
    """Make a move where all lists are at hand."""
    return climb.moved(move, left.reached(move.on, climb.point(move)))


@dataclass(frozen=True)
class _Advancing:
    """Make some moves and keep where they lead."""

    moves: Mapping[Which, tuple[Move, ...]]

    def __call__(self, clicked: _Clicked) -> _Clicked:
        if clicked.slice is not None:
            return clicked
        climbs = {which: copy(climb) for which, climb in clicked.climbs.items()}
        for which, moves in self.moves.items():
            for move in moves:
                made(climbs[which], clicked.left[which], move)
        return replace(clicked, climbs=climbs)


@dataclass(frozen=True)
class Telling:
    """Have parts of the judgments read as all of the log says."""

    known: Mapping[Which, KnownClicks]
    moves: Mapping[Which, tuple[Move, ...]]

    def __call__(self, held: Held) -> Held:
        read: dict[Which, KnownClicks] = {}
        for which, known in self.known.items():
            going = known.going
            if going is not None and held.slice is None:
                left = Left.of(Batch.whole(held.part(which)))
                climb = Climb.of(left)
                for move in self.moves[which]:
                    made(climb, left, move)
                going = replace(going, attraction=climb.at)
            read[which] = replace(known, going=going)
        return replace(held, read=read)


def read_parts(splits: Iterable[Split], compared: Iterable[Split], of_lists: bool) -> list[Which]:
    """The judgments that clicks are read from: all, what folds leave and, for losses of lists, what they hold out.

    ``compared``: folds by which losses are compared, so that each part of what they hold out is left out, too.
    """
    splits = [*splits]
    found: list[Which] = [WHOLE, *splits]
    if of_lists:
        found += [(HELD, split, -1) for split in splits]
        found += [(HELD, split, part) for split in compared for part in range(PARTS)]
    return found


# -- on the driver -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Fetching:
    """What is clicked, for the driver."""

    reading: _Reading

    def __call__(self, held: Held) -> Sums:
        return Sums(clicked=[self.reading(held)])


@dataclass(frozen=True)
class _Few:
    """So little of it that the driver works on it."""

    clicked: list[_Clicked]

    def sums(self, work: Callable[[_Clicked], Sums]) -> Sums:
        """Do a piece of work on all of it and add up."""
        return sum((work(each) for each in self.clicked), Sums())

    def changed(self, change: Callable[[_Clicked], _Clicked]) -> _Few:
        """The same with all of it changed."""
        return _Few([change(each) for each in self.clicked])

    def forget(self) -> None:
        """There is nothing to free."""


@dataclass(eq=False)
class _Passing:
    """Passes over what is clicked, for all models together."""

    frame: HeldFrame | _Few
    kept: dict[Which, int] = field(default_factory=dict)
    """How many moves tasks have kept."""

    def sums(self, works: Mapping[tuple[str, Which], Any]) -> Mapping[tuple[str, Which], Sums]:
        """What each model asks for."""
        going = {key[1]: work.moves for key, work in works.items() if isinstance(work, _Moved)}
        before: HeldFrame | _Few | None = None
        if any(len(moves) - self.kept.get(which, 0) > KEPT for which, moves in going.items()):
            more = {which: moves[self.kept.get(which, 0) : -1] for which, moves in going.items()}
            before, self.frame = self.frame, self.frame.changed(_Advancing(more))
            self.kept |= {which: len(moves) - 1 for which, moves in going.items()}
        some = {
            key: work.without(self.kept.get(key[1], 0)) if isinstance(work, _Moved) else work
            for key, work in works.items()
        }
        found = self.frame.sums(_Each(some))
        if before is not None:
            before.forget()
        return found


@dataclass(eq=False)
class ClicksRead:
    """How parts of the judgments are read, and what that says of queries that are divided."""

    entries: int
    """Of all lists."""
    known: dict[Which, KnownClicks] = field(default_factory=dict)
    moves: dict[Which, tuple[Move, ...]] = field(default_factory=dict)
    rates: dict[Part, tuple[Floats, Floats]] = field(default_factory=dict)
    """Clicks and sure examinations of the items of divided queries."""
    cells: dict[Part, Cells] = field(default_factory=dict)
    climbs: dict[Part, tuple[Climb, Floats]] = field(default_factory=dict)
    """Attractions of their items, and how often these were examined."""
    touched: dict[Part, Ints] = field(default_factory=dict)
    """Judgments of their items."""
    squared: dict[Part, Floats] = field(default_factory=dict)
    """How surely these were passed below a last click."""

    @classmethod
    def of(
        cls,
        held: HeldFrame,
        parts: Iterable[Which],
        items: Mapping[int, int],
        *,
        named: bool = False,
        model: str = "",
    ) -> ClicksRead:
        """Find it by passes over the judgments; ``items`` of divided queries.

        All parts are read by the model that is usual for all judgments, or by ``model``. ``named``: whether one is
        asked for, so that what is learned from can be read by it, however many clicks lists have. Errors (UsageError):
        too many cells.
        """
        parts = tuple(parts)
        counts = held.sums(_Counting(parts))
        self = cls(int(counts["entries"]))
        for which in parts:
            for query in items:
                self.rates[query, which] = counts[which]["clicks", query], counts[which]["examined", query]
                self.touched[query, which] = counts[which]["touched", query]
        several = bool(counts[WHOLE]["several"])
        tell = bool(counts[WHOLE]["below" if several else "gaps"])
        if told := [which for which in parts if tell or (named and (model or which[0] != HELD))]:
            longest = {which: int(counts[which]["longest"].value) for which in told}
            self._fit(held, longest, several or named, items)
        usual = "dependent-click" if several else "cascade"
        if tell and not model:
            usual = self._usual(None if several else float(counts[WHOLE]["cascade"]), items)
        for which in parts:
            self.known[which] = replace(self.known.get(which, KnownClicks("")), usual=model or usual)
        return self

    def _usual(self, cascade: float | None, items: Iterable[int]) -> str:
        """The likelier model of all judgments.

        ``cascade``: its likelihood without divided queries; None where lists have several clicks.
        """
        whole = self.known[WHOLE]
        examined, going = whole.examined, whole.going
        if cascade is not None and examined is not None:
            return with_gaps(examined, cascade + sum(rates_likelihood(*self.rates[query, WHOLE]) for query in items))
        return likelier(examined, lambda: going) if examined is not None and going is not None else "dependent-click"

    def _fit(
        self,
        held: HeldFrame,
        longest: Mapping[Which, int],
        going_on: bool,
        items: Mapping[int, int],
    ) -> None:
        """Find the models of parts; ``going_on``: whether readers who go on are asked for, too."""
        reading = _Reading(longest)
        few = self.entries <= FEW
        passing = _Passing(_Few(held.sums(_Fetching(reading))["clicked"]) if few else held.changed(reading))
        readers: dict[tuple[str, Which], Callable[[Any], Any]] = {}
        for which, places in longest.items():
            readers["position-based", which] = partial(self._examined, which=which, places=places, items=items)
            if going_on:
                readers["dependent-click", which] = partial(self._going, which=which, items=items)
        try:
            found = side_by_side(readers, passing.sums)
        finally:
            passing.frame.forget()
        for which in longest:
            going = found.get(("dependent-click", which))
            self.known[which] = KnownClicks("", found["position-based", which], going)

    def _examined(
        self, ask: Callable[[Any], Sums], *, which: Which, places: int, items: Mapping[int, int]
    ) -> Examination:
        found = ask(_linked)
        linked = [found["linked"]] if "linked" in found else [Blocks(np.arange(places, dtype=np.int32))]
        own, (shown, clicks) = [], (found.get(name, np.zeros(places)) for name in ("shown", "clicks"))
        for query, size in items.items():
            cells = self.cells[query, which] = cells_of(found[query], size, places)
            own.append(clicked_only(cells))
            shown, clicks = shown + cells.at_places(cells.shown), clicks + cells.at_places(cells.clicked)
            linked.append(Blocks(linked_positions(cells).astype(np.int32)))

        def at(u: Floats) -> Slopes:
            mine = [slopes_at(cells, u)[0] for cells in own]
            theirs: list[Slopes] = [ask(_At(u))["slopes"]] if "linked" in found else []
            return reduce(lambda one, other: one + other, theirs + mine)

        block = linked[0]
        for other in linked[1:]:
            block += other
        return explored(at, numbered(block.block.astype(np.int64), shown > 0), shown, clicks)

    def _going(self, ask: Callable[[Any], Sums], *, which: Which, items: Mapping[int, int]) -> GoingOn:
        places = ask(_places)
        climbs, moves, below = {}, list[Move](), dict[int, Reached]()
        for query in items:
            clicks, sure = self.rates[query, which]
            start = np.divide(clicks, sure, out=np.zeros(len(sure)), where=sure > 0)
            climbs[query] = Climb(clicks, sure, start)

        def moved(move: Move) -> Mapping[str, Any]:
            moves.append(move)
            found = ask(_Moved(tuple(moves), {query: climb.point(move) for query, climb in climbs.items()}))
            for query, climb in climbs.items():
                below[query] = found.pop(query)
                found += climb.moved(move, below[query])
            return found

        made = climbed(moved, places["went_on"], places["last"])
        self.moves[which] = tuple(moves)
        for query, climb in climbs.items():
            self.climbs[query, which] = climb, climb.sure + below[query].below.sum(axis=0)
        if climbs and which == WHOLE:  # of which alone intervals are asked for
            points = {query: climb.at for query, climb in climbs.items()}
            found = ask(_Squared(np.nan_to_num(made.value), points))
            self.squared |= {(query, which): found[query] for query in climbs}
        return made

    def tell(self, held: HeldFrame) -> HeldFrame:
        """The same judgments, read so."""
        return held.changed(Telling(self.known, self.moves))

    def scores(self, query: int, which: Which, structure: str = "", **options: Any) -> Scores:
        """Of the items of a divided query, by the usual structure of a part or by another."""
        known, (clicks, sure) = self.known[which], self.rates[query, which]
        structure = structure or known.usual
        batch = Batch.whole(nobody("selections", len(clicks)))
        if structure == "position-based" and known.examined is not None:
            return attractions(batch, self.cells[query, which], known.examined)
        if structure == "inverse-propensity" and known.examined is not None:
            given, examined = {"propensities": None, "clip": CLIP, **options}, known.examined
            return weighted_clicks(batch, self.cells[query, which], lambda: examined, **given)
        if structure == "dependent-click" and known.going is not None:
            climb, often = self.climbs[query, which]
            return rates_at(batch, climb.at, often, known.going)
        return rates_of(batch, structure, clicks, sure)

    def read(self, query: int, structure: str, options: Mapping[str, Any]) -> Read:
        """What is known of a divided query, to rank it by a structure that all of the log tells."""
        at, touched = (query, WHOLE), self.touched[query, WHOLE]
        known, (clicks, sure) = self.known[WHOLE], self.rates[at]

        def scores(_: Batch) -> Scores:
            return self.scores(query, WHOLE, structure, **options)

        if structure == "position-based" and known.examined is not None:
            cells = self.cells[at]
            links = links_of(Batch.whole(nobody("selections", len(touched))), cells, known.examined)
            trials = trials_of(cells, known.examined)
            return Read(scores, links, touched, trials, len(cells.place), known.examined)
        if structure == "dependent-click" and known.going is not None:
            climb, often = self.climbs[at]
            trials = trials_at(clicks, sure - clicks + self.squared[at], often, climb.at)
            return Read(scores, all_linked(often >= ENOUGH), touched, trials, going=known.going)
        cells = self.cells[at]
        return Read(scores, all_linked(touched > 0), touched, numbers=len(cells.place), examined=known.examined)


def cells_of(tally: Tally, items: int, places: int) -> Cells:
    """The cells of a divided query. Errors (UsageError): too many."""
    if tally.key is None:
        raise UsageError(
            f"a query that no task can hold has more than {CELLS:,} pairs of an item and a position at which it was "
            "shown: of so many clicks are not read on Spark where lists have several; name a structure of pairs, or "
            "fit it on one machine"
        )
    node, place = np.divmod(tally.key, PLACES)
    shown, clicked = (np.asarray(each, np.float64) for each in tally.columns)
    return Cells(Ragged.counted(node, items).start, place, shown, clicked, places)

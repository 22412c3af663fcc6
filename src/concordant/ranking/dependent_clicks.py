"""Dependent clicks: readers who go on after a click, or leave, and what they surely or perhaps examined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import xlog1py, xlogy

from concordant.preferences.connectivity import Connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Lists, Preferences
from concordant.preferences.ragged import Ragged, shown_at
from concordant.preferences.status import Status
from concordant.ranking.ranked_lists import all_linked, examinations, once, positions_of, rates_of, seen
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STEPS = 500
CLOSE = 1e-10
"""Change of a chance after which an estimate is done."""
ENOUGH = 1.0 - 1e-9
"""Expected examinations from which on something is known of an item."""
TELLS = 1e-9
"""Information of a chance below which the log does not tell it."""
TINY = 1e-300
LIKELY = 1e-9
"""Share of a log-likelihood by which it may be less: rounding must not decide."""


def _log_passed(a: Floats) -> Floats:
    """The logarithm of 1 − a, far below 0 where that is 0."""
    return np.asarray(np.log(np.maximum(1.0 - a, TINY)), np.float64)


@dataclass(frozen=True, eq=False)
class Left:
    """What dependent readers of a batch surely examined, and what stands below the last click of a list."""

    nodes: Ragged
    """The nodes of each graph."""
    clicks: Floats
    """Of each node; ``sure``: how often it was surely examined, at or above the last click or in a list without one."""
    sure: Floats
    lists: Ragged
    """The entries below the last click of each list that has both."""
    node: Ints
    """Of each such entry."""
    times: Floats
    """Of each such list; ``place``: of its last click."""
    place: Ints
    went_on: Floats
    """How often a click at each place was not the last of its list."""
    holder: Ints
    """Of each list in ``lists``: its judgment in the batch."""

    @classmethod
    def of(cls, batch: Batch) -> Left:
        """Of the lists of a batch."""
        clicks, sure = examinations(batch)
        nothing, nodes = np.zeros(0, np.int64), batch.node_groups
        prefs = batch.prefs
        if not isinstance(prefs, Lists):
            none, no = Ragged(np.zeros(1, np.int64)), np.zeros(0)
            return cls(nodes, clicks, sure, none, nothing, no, nothing, np.zeros(1), nothing)
        lists, node, value = batch.entries(prefs)
        place = shown_at(lists, value)
        places = positions_of(prefs)
        clicked = np.flatnonzero(value > 0)
        last = np.full(len(lists), -1, np.int64)
        last[lists.owner[clicked]] = clicked  # of several the last stays
        more = clicked[clicked < last[lists.owner[clicked]]]
        times = batch.multiplicity.astype(np.float64)
        went_on = np.asarray(np.bincount(place[more], times[lists.owner[more]], places), np.float64)
        below = np.flatnonzero(~seen(lists, value))
        owner = lists.owner[below]
        left = Ragged.runs(owner)
        of = owner[left.first]
        return cls(nodes, clicks, sure, left, node[below], times[of], place[last[of]], went_on, of)

    @property
    def last(self) -> Floats:
        """How often a click at each place was the last of its list, with anything below."""
        return np.asarray(np.bincount(self.place, self.times, len(self.went_on)), np.float64)

    def stayed(self, going_on: Floats, a: Floats) -> tuple[Floats, Floats]:
        """Return the chance that a reader saw all below the last click, and that of the list ending as it did."""
        passed = going_on[self.place] * np.exp(self.lists.sums(_log_passed(a)[self.node]))
        ended = 1.0 - going_on[self.place] + passed
        return np.divide(passed, ended, out=np.zeros(len(passed)), where=ended > 0), ended

    def reached(self, going_on: Floats, a: Floats) -> Reached:
        """What the lists say at chances of going on and attractions."""
        stayed, ended = self.stayed(going_on, a)
        parts = _in_two(self.times, stayed)
        more = np.array([np.bincount(self.place, part, len(going_on)) for part in parts], np.float64)
        below = np.array([self.below(part) for part in parts], np.float64)
        return Reached(more, below, float(xlogy(self.times, ended).sum()))

    def below(self, times: Floats) -> Floats:
        """How often each node was seen below a last click, whose lists were so often."""
        return np.asarray(np.bincount(self.node, self.lists.spread(times), len(self.sure)), np.float64)

    def examined(self, stayed: Floats) -> Floats:
        """How often each node was examined, by expectation."""
        coarse, fine = _in_two(self.times, stayed)
        return np.asarray(self.sure + (self.below(coarse) + self.below(fine)), np.float64)

    def squared(self, stayed: Floats) -> Floats:
        """Add up, for each node, the squared chances that it was seen below a last click."""
        return self.below(self.times * stayed**2)

    @property
    def start(self) -> Floats:
        """The attractions where nothing below a last click was seen."""
        return np.divide(self.clicks, self.sure, out=np.zeros(len(self.sure)), where=self.sure > 0)

    def attractions(self, going_on: Floats) -> Floats:
        """Maximise over the attractions at given chances of going on; each graph by itself."""
        a, going = self.start, np.ones(len(self.nodes), bool)
        for _ in range(STEPS):
            found = clicks_over(self.clicks, self.examined(self.stayed(going_on, a)[0]))
            change = self.nodes.most(np.abs(found - a))
            a = np.where(self.nodes.spread(going), found, a)
            going &= change > CLOSE
            if not going.any():
                break
        return a


GRAIN = float(1 << 26)


def _in_two(times: Floats, share: Floats) -> tuple[Floats, Floats]:
    """times · share, shares within [0, 1], as a coarse and a fine part.

    These are multiples of 2^−26 and of 2^−52, whose sums are exact up to 2^27 times: the same to the bit in whatever
    order and parts lists are added up. Extrapolation would make much of what is not.
    """
    coarse = np.floor(share * GRAIN) / GRAIN
    return times * coarse, times * (np.rint((share - coarse) * GRAIN * GRAIN) / (GRAIN * GRAIN))


def clicks_over(clicks: Floats, examined: Floats) -> Floats:
    """Return the share of examinations that ended in a click, 0 of what was never clicked."""
    return np.divide(clicks, examined, out=np.zeros(clicks.shape), where=clicks > 0)


@dataclass(frozen=True, eq=False)
class Reached:
    """What lists say at chances of going on and attractions; that of parts of the lists adds up."""

    more: Floats
    """How often readers went on after the last click at each place, by expectation, coarse and fine part."""
    below: Floats
    """How often each node was examined below a last click, likewise."""
    value: float
    """The logarithm of the chance that lists ended as they did."""

    def __add__(self, other: Reached) -> Reached:
        return Reached(self.more + other.more, self.below + other.below, self.value + other.value)


@dataclass(frozen=True, eq=False)
class Move:
    """A move of the estimate, from a point with these chances of going on."""

    stage: str
    """one, two: plain steps; far: a step from where both together lead, ``length`` times as far."""
    on: Floats
    length: float = 0.0
    taken: bool = False
    """Before one: whether what the last such step led to is where the next begins."""


class Climb:
    """The attractions of some nodes on their way to the maximum."""

    def __init__(self, clicks: Floats, sure: Floats, start: Floats) -> None:
        self.clicks, self.sure = clicks, sure
        self.at = self.one = self.two = self.far = self.three = start

    @classmethod
    def of(cls, left: Left) -> Climb:
        """From where nothing below a last click was seen."""
        return cls(left.clicks, left.sure, left.start)

    def point(self, move: Move) -> Floats:
        """Where a move starts."""
        if move.stage == "two":
            return self.one
        if move.stage == "one":
            self.at = self.three if move.taken else self.two
            return self.at
        far = self.at + 2.0 * move.length * (self.one - self.at)
        self.far = np.clip(far + move.length**2 * (self.two - 2.0 * self.one + self.at), 0.0, 1.0)
        return self.far

    def moved(self, move: Move, reached: Reached) -> dict[str, Any]:
        """Make it, where lists say this; what that adds to the likelihood, and how far it goes."""
        a = self.one if move.stage == "two" else self.at if move.stage == "one" else self.far
        found = clicks_over(self.clicks, self.sure + reached.below.sum(axis=0))
        value = xlogy(self.clicks, a).sum() + xlog1py(self.sure - self.clicks, -a).sum() + reached.value
        told: dict[str, Any] = {"more": reached.more, "value": float(value)}
        if move.stage == "one":
            self.one = found
        elif move.stage == "far":
            self.three = found
        else:
            self.two, change, turn = found, self.one - self.at, found - 2.0 * self.one + self.at
            told["most"] = Most(float(np.abs(found - self.one).max(initial=0.0)))
            told |= {"change": float(change @ change), "turn": float(turn @ turn)}
        return told


@dataclass(frozen=True)
class Most:
    """The greatest of several numbers."""

    value: float

    def __add__(self, other: Most) -> Most:
        return self if self.value >= other.value else other


@dataclass(frozen=True, eq=False)
class GoingOn:
    """How often readers go on after a click at each position, from all queries of a log."""

    value: Floats
    """λ; NaN where no click has anything below it."""
    error: Floats
    """Standard errors; NaN where the log does not tell."""
    likelihood: float
    """Its logarithm."""
    status: Status
    iterations: int
    attraction: Floats | None = None
    """Of the items of all queries, where they are known."""


def going_on(prefs: Preferences) -> GoingOn:
    """Estimate how often readers go on after a click, from all queries of a log, once for each.

    Expectation–maximisation over λ and the attractions, each two steps extrapolated by their squared change (SQUAREM,
    Varadhan & Roland 2008) where that is not less likely. Errors: UsageError for anything but selections.
    """
    return once(prefs, "dependent-click", _going_on)


def _going_on(prefs: Preferences) -> GoingOn:
    left = Left.of(Batch.whole(prefs))
    climb, last = Climb.of(left), left.last

    def moved(move: Move) -> dict[str, Any]:
        return climb.moved(move, left.reached(move.on, climb.point(move)))

    found = climbed(moved, left.went_on, last)
    known = left.went_on + last > 0
    error = np.full(len(known), np.nan)
    information = _information(left, np.nan_to_num(found.value), climb.at)[np.ix_(known, known)]
    variance = np.diag(np.linalg.inv(information + TELLS * np.eye(len(information))))
    error[known] = np.sqrt(np.where((variance > 0) & (variance <= 1), variance, np.nan))
    return replace(found, error=error, attraction=climb.at)


def climbed(moved: Callable[[Move], Mapping[str, Any]], went_on: Floats, last: Floats) -> GoingOn:
    """Find λ by what moves lead to; how often a click at each place was followed by another or, above something, none.

    ``moved`` makes a move for the attractions and says what ``Climb.moved`` does, of all nodes; they are in the end
    where the last move starts. Errors of λ are not found.
    """
    clicks = went_on + last  # with anything below

    def step(move: Move) -> tuple[Mapping[str, Any], Floats, float]:
        found = moved(move)
        more = went_on + found["more"].sum(axis=0)
        on = np.divide(more, clicks, out=np.zeros(len(clicks)), where=clicks > 0)
        return found, on, float(found["value"] + xlogy(went_on, move.on).sum())

    on, taken = np.where(went_on > 0, 0.5, 0.0), False
    for iteration in range(STEPS):  # noqa: B007
        one = step(Move("one", on, taken=taken))[1]
        found, two, value = step(Move("two", one))
        close = max(found["most"].value, float(np.abs(two - one).max(initial=0.0))) <= CLOSE
        if close:
            break
        change, turn = one - on, two - 2.0 * one + on
        ratio = (found["change"] + change @ change) / max(found["turn"] + turn @ turn, TINY)
        length = max(2.0 ** (np.rint(4.0 * np.log2(max(ratio, 1.0))) / 8.0), 1.0)  # rounded: the last bits say nothing
        far = np.clip(on + 2.0 * length * change + length**2 * turn, 0.0, 1.0)
        _, three, there = step(Move("far", far, length))
        taken = there >= value - LIKELY * abs(value)
        on = three if taken else two
    likelihood = step(Move("one", two))[2]
    status = Status.CONVERGED if close else Status.STOPPED
    return GoingOn(np.where(clicks > 0, two, np.nan), np.full(len(two), np.nan), likelihood, status, iteration)


def _information(left: Left, on: Floats, a: Floats) -> Floats:
    """The observed information of λ, less what the attractions take of it, each by itself.

    With P what passed all below and E = 1 − λ + λP: ∂²/∂λ² log E = −((1 − P)/E)², ∂²/∂λ∂a = −P/((1 − a) E²).
    """
    stayed, ended = left.stayed(on, a)
    inside = (a > 0) & (a < 1)  # others are at a bound
    clicking, passing = np.where(inside, a, 1.0), np.where(inside, 1.0 - a, 1.0)
    passed = np.exp(left.lists.sums(_log_passed(a)[left.node]))
    ended = np.maximum(ended, TINY)
    own = left.went_on / np.where(on > 0, on, 1.0) ** 2
    own += np.bincount(left.place, left.times * ((1.0 - passed) / ended) ** 2, len(on))
    theirs = left.clicks / clicking**2 + _passed(left, stayed) / passing**2
    across = left.lists.spread(left.times * passed / ended**2) * inside[left.node] / passing[left.node]
    where = (left.lists.spread(left.place), left.node)
    scaled = csr_array((across / np.sqrt(np.maximum(theirs, TINY))[left.node], where), shape=(len(on), len(a)))
    return np.asarray(np.diag(own) - (scaled @ scaled.T).toarray(), np.float64)


def _passed(left: Left, stayed: Floats) -> Floats:
    """How often each node was passed: below the last click, seen with chance w, the square of w."""
    return np.asarray(left.sure - left.clicks + left.squared(stayed), np.float64)


def dependent_click(batch: Batch) -> Scores:
    """Maximum likelihood of dependent clicks: a reader clicks what attracts, and after a click at r goes on with λ_r.

    P(clicks of a list) = Π a over the clicks · Π (1 − a) over what was passed at or above the last · Π λ over the other
    clicks · (1 − λ_l + λ_l Π (1 − a) over all below) of the last, at l; a list without a click was examined to its end.
    λ is one for all queries, from the whole log (``click_positions``); with one click a list, at most, it is 0: the
    cascade. An item examined less than once, by expectation, has its query's pooled rate.

    Errors: UsageError for anything but selections.

    >>> session, item, clicked = [1, 1, 1, 2, 2, 2], list("xyzyxz"), [1, 0, 1, 1, 0, 0]
    >>> log = Preferences.from_selections(["q"] * 6, session, [1, 2, 3] * 2, item, clicked)
    >>> dependent_click(Batch.whole(log)).value.round(3).tolist()
    [1.0, 0.5, 1.0]

    Source: Guo, Liu & Wang, WSDM 2009, §3, whose bound takes the last click for the end; Chuklin, Markov & de Rijke
    (2015), §3.6.
    """
    found, left = going_on(batch.prefs), Left.of(batch)
    a, stayed = _settled(batch, left, found)
    return rates_at(batch, a, left.examined(stayed), found)


def rates_at(batch: Batch, a: Floats, examined: Floats, found: GoingOn) -> Scores:
    """Return what ``dependent_click`` does, given attractions and how often items were examined, by expectation."""
    examined = np.where(examined >= ENOUGH, examined, 0.0)
    scores = rates_of(batch, "dependent-click", a * examined, examined)
    return replace(scores, status=np.full(len(batch), found.status, np.int8))


def _settled(batch: Batch, left: Left, found: GoingOn) -> tuple[Floats, Floats]:
    """Return the attractions of a batch, and the chance that each reader saw all below the last click of a list."""
    prefs, on = batch.prefs, np.nan_to_num(found.value)
    whole = len(batch.judgment) == prefs.groups.sizes[batch.query].sum() and (np.diff(batch.query) > 0).all()
    if found.attraction is not None and whole and np.array_equal(batch.multiplicity, prefs.count[batch.judgment]):
        a = found.attraction[prefs.member_groups.take(batch.query)[1]]
    else:
        a = left.attractions(on)
    return a, left.stayed(on, a)[0]


def dependent_trials(batch: Batch) -> tuple[Floats, Floats]:
    """Return clicks and trials of each node: of a click rate of the same standard error, of the same value.

    The information of a is c/a² + (n − c + Σ w²)/(1 − a)²: below the last click with chance w of having been seen.
    """
    left = Left.of(batch)
    a, stayed = _settled(batch, left, going_on(batch.prefs))
    return trials_at(left.clicks, _passed(left, stayed), left.examined(stayed), a)


def trials_at(clicks: Floats, passed: Floats, examined: Floats, a: Floats) -> tuple[Floats, Floats]:
    """Return what ``dependent_trials`` does, given clicks of items, how often they were passed and examined, and a."""
    trials = np.where(a > 0, (1.0 - a) * clicks / np.maximum(a, TINY), 0.0)
    trials += np.where(a > 0, a / np.maximum(1.0 - a, TINY), 1.0) * passed
    trials = np.where(a < 1, trials, clicks)
    trials[examined < ENOUGH] = 0.0
    return a * trials, trials


def dependent_links(batch: Batch) -> Connectivity:
    """Items of a query compare that were examined."""
    left = Left.of(batch)
    return all_linked(left.examined(_settled(batch, left, going_on(batch.prefs))[1]) >= ENOUGH)

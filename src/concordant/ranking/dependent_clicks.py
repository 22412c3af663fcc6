"""Dependent clicks: readers who go on after a click, or leave, and what they surely or perhaps examined."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import xlog1py, xlogy

from concordant.preferences.connectivity import Connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Lists, Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.ranking.ranked_lists import all_linked, examinations, once, rates_of, seen
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


def _log_passed(a: Floats) -> Floats:
    """The logarithm of 1 − a, far below 0 where that is 0."""
    return np.asarray(np.log(np.maximum(1.0 - a, TINY)), np.float64)


@dataclass(frozen=True, eq=False)
class _Left:
    """What dependent readers of a batch surely examined, and what stands below the last click of a list."""

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

    @classmethod
    def of(cls, batch: Batch) -> _Left:
        clicks, sure = examinations(batch)
        nothing = np.zeros(0, np.int64)
        prefs = batch.prefs
        if not isinstance(prefs, Lists):
            return cls(clicks, sure, Ragged(np.zeros(1, np.int64)), nothing, np.zeros(0), nothing, np.zeros(1))
        places = int(prefs.lists.sizes.max(initial=1))
        lists, node, value = batch.entries(prefs)
        clicked = np.flatnonzero(value > 0)
        last = np.full(len(lists), -1, np.int64)
        last[lists.owner[clicked]] = clicked  # of several the last stays
        more = clicked[clicked < last[lists.owner[clicked]]]
        times = batch.multiplicity.astype(np.float64)
        went_on = np.asarray(np.bincount(lists.place[more], times[lists.owner[more]], places), np.float64)
        below = np.flatnonzero(~seen(lists, value))
        owner = lists.owner[below]
        left = Ragged.runs(owner)
        of = owner[left.first]
        return cls(clicks, sure, left, node[below], times[of], lists.place[last[of]], went_on)

    def stayed(self, going_on: Floats, a: Floats) -> tuple[Floats, Floats]:
        """Return the chance that a reader saw all below the last click, and that of the list ending as it did."""
        passed = going_on[self.place] * np.exp(self.lists.sums(_log_passed(a)[self.node]))
        ended = 1.0 - going_on[self.place] + passed
        return np.divide(passed, ended, out=np.zeros(len(passed)), where=ended > 0), ended

    def examined(self, stayed: Floats) -> Floats:
        """How often each node was examined, by expectation."""
        return self.sure + np.bincount(self.node, self.lists.spread(self.times * stayed), len(self.sure))

    def attractions(self, going_on: Floats) -> tuple[Floats, Floats]:
        """Maximise over the attractions at given chances of going on; return them and the chances of having stayed."""
        a = np.divide(self.clicks, self.sure, out=np.zeros(len(self.sure)), where=self.sure > 0)
        for _ in range(STEPS):
            stayed = self.stayed(going_on, a)[0]
            found = np.divide(self.clicks, self.examined(stayed), out=np.zeros(len(a)), where=self.clicks > 0)
            change, a = float(np.abs(found - a).max(initial=0.0)), found
            if change <= CLOSE:
                break
        return a, stayed


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


def going_on(prefs: Preferences) -> GoingOn:
    """Estimate how often readers go on after a click, from all queries of a log, once for each.

    Expectation–maximisation over λ and the attractions, each two steps extrapolated by their squared change (SQUAREM,
    Varadhan & Roland 2008) where that is likelier. Errors: UsageError for anything but selections.
    """
    return once(prefs, "dependent-click", _going_on)


def _going_on(prefs: Preferences) -> GoingOn:
    left = _Left.of(Batch.whole(prefs))
    places = len(left.went_on)
    clicks = left.went_on + np.bincount(left.place, left.times, places)  # with anything below

    def step(z: Floats) -> tuple[Floats, float]:
        on, a = z[:places], z[places:]
        stayed, ended = left.stayed(on, a)
        value = xlogy(left.clicks, a).sum() + xlog1py(left.sure - left.clicks, -a).sum() + xlogy(left.went_on, on).sum()
        more = left.went_on + np.bincount(left.place, left.times * stayed, places)
        found = np.divide(more, clicks, out=np.zeros(places), where=clicks > 0)
        value += float(xlogy(left.times, ended).sum())
        new = np.divide(left.clicks, left.examined(stayed), out=np.zeros(len(a)), where=left.clicks > 0)
        return np.concatenate([found, new]), float(value)

    start = np.divide(left.clicks, left.sure, out=np.zeros(len(left.sure)), where=left.sure > 0)
    z = np.concatenate([np.where(left.went_on > 0, 0.5, 0.0), start])
    for iteration in range(STEPS):  # noqa: B007
        one, _ = step(z)
        two, value = step(one)
        change, turn = one - z, two - 2.0 * one + z
        if np.abs(two - one).max(initial=0.0) <= CLOSE:
            break
        length = max(float(np.linalg.norm(change)) / max(float(np.linalg.norm(turn)), 1e-300), 1.0)
        far = np.clip(z + 2.0 * length * change + length**2 * turn, 0.0, 1.0)
        three, there = step(far)
        z = three if there >= value else two
    status = Status.CONVERGED if np.abs(two - one).max(initial=0.0) <= CLOSE else Status.STOPPED
    on, a = two[:places], two[places:]
    known = clicks > 0
    error = np.full(places, np.nan)
    information = _information(left, on, a)[np.ix_(known, known)]
    variance = np.diag(np.linalg.inv(information + TELLS * np.eye(len(information))))
    error[known] = np.sqrt(np.where((variance > 0) & (variance <= 1), variance, np.nan))
    return GoingOn(np.where(known, on, np.nan), error, step(two)[1], status, iteration)


def _information(left: _Left, on: Floats, a: Floats) -> Floats:
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


def _passed(left: _Left, stayed: Floats) -> Floats:
    """How often each node was passed: below the last click, seen with chance w, the square of w."""
    below = np.bincount(left.node, left.lists.spread(left.times * stayed**2), len(left.sure))
    return np.asarray(left.sure - left.clicks + below, np.float64)


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
    found, left = going_on(batch.prefs), _Left.of(batch)
    a, stayed = left.attractions(np.nan_to_num(found.value))
    examined = left.examined(stayed)
    examined = np.where(examined >= ENOUGH, examined, 0.0)
    scores = rates_of(batch, "dependent-click", a * examined, examined)
    return replace(scores, status=np.full(len(batch), found.status, np.int8))


def dependent_trials(batch: Batch) -> tuple[Floats, Floats]:
    """Return clicks and trials of each node: of a click rate of the same standard error, of the same value.

    The information of a is c/a² + (n − c + Σ w²)/(1 − a)²: below the last click with chance w of having been seen.
    """
    left = _Left.of(batch)
    a, stayed = left.attractions(np.nan_to_num(going_on(batch.prefs).value))
    trials = np.where(a > 0, (1.0 - a) * left.clicks / np.maximum(a, TINY), 0.0)
    trials += np.where(a > 0, a / np.maximum(1.0 - a, TINY), 1.0) * _passed(left, stayed)
    trials = np.where(a < 1, trials, left.clicks)
    trials[left.examined(stayed) < ENOUGH] = 0.0
    return a * trials, trials


def dependent_links(batch: Batch) -> Connectivity:
    """Items of a query compare that were examined."""
    left = _Left.of(batch)
    return all_linked(left.examined(left.attractions(np.nan_to_num(going_on(batch.prefs).value))[1]) >= ENOUGH)

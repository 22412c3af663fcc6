"""Models of clicks that read whole lists as shown: the position-based one, inverse propensities, and which to take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import xlogy

from concordant.errors import Setting, UsageError, counted, did_you_mean, few
from concordant.preferences.connectivity import Connectivity, by_size
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Lists, Preferences
from concordant.preferences.ragged import Ragged, shown_at
from concordant.preferences.status import Status
from concordant.ranking.dependent_clicks import GoingOn, going_on
from concordant.ranking.ranked_lists import (
    all_linked,
    examinations,
    lists_with_gaps,
    once,
    pooled,
    positions_of,
    rates_of,
    several_clicks,
    tell,
)
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LISTS = 1 << 20
"""Lists that are counted at a time: bounds the memory, does not change the result."""
PRIOR = 0.01
"""Precision of the log-examinations about 0, which keeps finite those of positions that nobody ever clicked."""
LEAST = 1e-4
"""Passes that a cell without any counts as, so that no fitted chance of a click is above 1."""
STEPS = 200
CLOSE = 1e-9
"""Newton step of a logarithm after which a fit is done: what is left then is of the order of its square."""
CLIP = 0.1
"""Least propensity that a click is divided by."""
OF_POSITIONS = ("position-based", "dependent-click")
SURE, RARE, APART = 0.5, 0.1, 0.05
"""Largest standard error of a log-examination that counts as known; shares of clicks at positions of which it is not
known, and of rows at positions that nothing links, up to which the position-based model is the usual one."""
SAID = 10
"""Positions that a note lists."""


@dataclass(frozen=True, eq=False)
class Cells:
    """How often each node of a batch was shown at each place of a list, and clicked there; sorted by node, place."""

    start: Ints
    """Cells of node i are start[i]:start[i + 1]."""
    place: Ints
    """The position, from 0."""
    shown: Floats
    clicked: Floats
    places: int
    """The last position of the log."""

    @classmethod
    def of(cls, batch: Batch) -> Cells:
        """Count the entries of the lists of a batch."""
        prefs, nodes = batch.prefs, len(batch.item)
        places = positions_of(prefs)
        found: list[tuple[Ints, Floats, Floats]] = []
        for begin in range(0, len(batch.judgment) if isinstance(prefs, Lists) else 0, LISTS):
            assert isinstance(prefs, Lists)
            part = slice(begin, begin + LISTS)
            lists, entries = prefs.lists.take(batch.judgment[part])
            node = batch.node_of(lists.spread(batch.graph[part]), prefs.list_item[entries])
            times, value = lists.spread(batch.multiplicity[part]).astype(np.float64), prefs.list_value[entries]
            found.append(_counted(node * places + shown_at(lists, value), times, value > 0))
        key, shown, clicked = (np.concatenate([np.zeros(0), *(one[at] for one in found)]) for at in range(3))
        key = key.astype(np.int64)
        if len(found) > 1:
            key, inverse = np.unique(key, return_inverse=True)
            shown, clicked = (np.bincount(inverse, x, len(key)) for x in (shown, clicked))
        return cls(Ragged.counted(key // places, nodes).start, key % places, shown, clicked, places)

    @cached_property
    def nodes(self) -> Ragged:
        """The cells of each node."""
        return Ragged(self.start)

    @cached_property
    def passed(self) -> Floats:
        """How often it was shown and not clicked."""
        return np.maximum(self.shown - self.clicked, LEAST)

    def take(self, nodes: Ints) -> Cells:
        """Return the cells of some nodes."""
        held, cells = self.nodes.take(nodes)
        return Cells(held.start, self.place[cells], self.shown[cells], self.clicked[cells], self.places)

    def at_places(self, values: Floats) -> Floats:
        """Add values of the cells up by place."""
        return np.bincount(self.place, values, self.places).astype(np.float64)


def _counted(key: Ints, times: Floats, clicked: NDArray[np.bool_]) -> tuple[Ints, Floats, Floats]:
    span = int(key.max(initial=-1)) + 1
    dense = span <= max(8 * len(key), 1 << 20)
    cells, place = (np.arange(span), key) if dense else np.unique(key, return_inverse=True)
    shown = np.bincount(place, times, len(cells)).astype(np.float64)
    chosen = np.bincount(place[clicked], times[clicked], len(cells)).astype(np.float64)
    kept = shown > 0
    return np.asarray(cells[kept], np.int64), shown[kept], chosen[kept]


@dataclass(frozen=True, eq=False)
class Examination:
    """How often each position is examined, from all queries of a log, as a share of the first of its component."""

    log: Floats
    """log θ of each position; 0 at the first position of each component."""
    covariance: Floats
    """Of the logarithms: inverse observed information, the attractions profiled out."""
    component: Ints
    """Component of each position in the graph of positions and clicked items, 0 that of the first at which the log
    has anything; −1 where it has nothing."""
    status: Status
    iterations: int
    gradient: float
    likelihood: float
    """Its logarithm."""
    shown: Floats
    """How often anything was shown at each position."""
    clicks: Floats
    """And clicked."""

    @property
    def value(self) -> Floats:
        """θ; NaN at positions at which the log has nothing."""
        return np.where(self.component < 0, np.nan, np.exp(self.log))

    @property
    def error(self) -> Floats:
        """Standard errors of θ."""
        return np.asarray(self.value * np.sqrt(np.diag(self.covariance)), np.float64)

    @property
    def apart(self) -> tuple[Note, ...]:
        """Say which positions cannot be compared; nothing where all can."""
        return self.notes if self.component.max() > 0 else ()

    @property
    def linked(self) -> bool:
        """Whether clicked items link positions that hold all but ``APART`` of what was shown."""
        most = int(self.clicks.argmax())
        apart = self.shown[self.component != self.component[most]].sum()
        return bool(self.clicks[most] > 0 and apart <= APART * self.shown.sum())

    @property
    def sure(self) -> bool:
        """Whether they are linked and few clicks are where it is not known how often a position is examined.

        Those that are known to within ``SURE`` in the logarithm, as a share of the position with most clicks, hold all
        but ``RARE`` of the clicks.
        """
        most = int(self.clicks.argmax())
        spread = np.diag(self.covariance) + self.covariance[most, most] - 2 * self.covariance[most]
        known = (self.component == self.component[most]) & (spread < SURE**2)
        return self.linked and bool(self.clicks[~known].sum() <= RARE * self.clicks.sum())

    @property
    def notes(self) -> tuple[Note, ...]:
        """Say the examinations and, where items do not change places between some positions, which."""
        parts, there = int(self.component.max()) + 1, np.flatnonzero(self.component >= 0)
        more = ", …" if len(there) > SAID else ""
        listed = ", ".join(f"{one:.3g}" for one in self.value[there[:SAID]]) + more
        if parts == 1:
            which = "positions are"
            if len(there) < len(self.log):
                which = f"positions {', '.join(str(at + 1) for at in there[:SAID])}{more} are"
            text = "position-based: {which} examined as {listed}, the first being 1"
            return (Note("examination", text, which=which, listed=listed),)
        text = (
            "position-based: no clicked item moves between positions {groups}, so nobody can tell how these compare: "
            "scores hold within each of these groups, as shares of the examination of its first position ({listed})"
        )
        groups = [", ".join(str(at + 1) for at in np.flatnonzero(self.component == part)) for part in range(parts)]
        said = " | ".join(groups[:SAID]) + (" | …" if parts > SAID else "")
        return (Note("not identified", text, groups=said, listed=listed),)


def examination(prefs: Preferences) -> Examination:
    """Estimate the examination of positions from all queries of a log, once for each.

    Errors: UsageError for anything but selections.
    """
    return once(prefs, "position-based", lambda log: fitted(Cells.of(Batch.whole(log))))


def fitted(cells: Cells) -> Examination:
    """Maximise the position-based likelihood Σ c log θa + (n − c) log(1 − θa) over all cells."""
    shown, cells = cells.at_places(cells.shown), clicked_only(cells)
    v: list[Floats] = []

    def at(u: Floats) -> Slopes:
        found, last = slopes_at(cells, u, v[-1] if v else None)
        v[:] = [last]
        return found

    return explored(at, numbered(_linked(cells), shown > 0), shown, cells.at_places(cells.clicked))


def clicked_only(cells: Cells) -> Cells:
    """The cells of nodes that were clicked; an item without a click has a = 0 and says nothing of θ."""
    return cells.take(np.flatnonzero(cells.nodes.sums(cells.clicked) > 0))


@dataclass(frozen=True, eq=False)
class Slopes:
    """The log-likelihood at some log-examinations, attractions maximised over, and its slopes; of parts they add up."""

    value: float
    slope: Floats
    """Of each position."""
    curve: Floats
    """Minus the second derivative of each, without what the attractions take; ``across``: what they take."""
    across: Floats

    def __add__(self, other: Slopes) -> Slopes:
        names = ("value", "slope", "curve", "across")
        return Slopes(*[getattr(self, name) + getattr(other, name) for name in names])


def slopes_at(cells: Cells, u: Floats, start: Floats | None = None) -> tuple[Slopes, Floats]:
    """Return those of cells with clicks, and the log-attractions; ``start``: from where these are looked for."""
    owner, passed = cells.nodes.owner, cells.passed
    if start is None:
        start = np.log((cells.nodes.sums(cells.clicked) + 0.5) / (cells.nodes.sums(cells.shown) + 1.0))
    v = _settled(cells, u, start)
    x = u[cells.place] + v[owner]
    g, h = _slopes(x, cells.clicked, passed)
    own = cells.nodes.sums(h)
    scaled = csr_array((h / np.sqrt(own)[owner], cells.place, cells.start), shape=(len(v), cells.places))
    value = float(cells.clicked @ x + passed @ np.log(-np.expm1(x)))
    return Slopes(value, cells.at_places(g), cells.at_places(h), (scaled.T @ scaled).toarray()), v


def explored(at: Callable[[Floats], Slopes], component: Ints, shown: Floats, clicks: Floats) -> Examination:
    """Maximise the likelihood over log-examinations, of whose slopes ``at`` tells.

    ``component``, ``shown``, ``clicks``: of each position.

    In u = log θ and v = log a it is concave, so Newton's method (attractions eliminated) ends at the maximum that
    expectation–maximisation creeps to.
    """
    places = len(component)
    known = np.flatnonzero(component >= 0)
    free = np.setdiff1d(known, known[np.unique(component[known], return_index=True)[1]])
    u = np.zeros(places)
    here, step = at(u), np.inf
    for iteration in range(STEPS):  # noqa: B007
        information = (np.diag(here.curve + PRIOR) - here.across)[np.ix_(free, free)]
        gradient = (here.slope - PRIOR * u)[free]
        if step <= CLOSE:
            break
        du = np.zeros(places)
        du[free] = np.linalg.solve(information, gradient)
        size, now = 1.0, here.value - 0.5 * PRIOR * (u @ u)
        while True:
            there, found = u + size * du, at(u + size * du)
            if found.value - 0.5 * PRIOR * (there @ there) >= now - 1e-12 * abs(now) or size <= 1e-6:
                break
            size *= 0.5
        u, here = there, found
        step = size * float(np.abs(du).max(initial=0.0))
    covariance = np.zeros((places, places))
    covariance[np.ix_(free, free)] = np.linalg.inv(information)
    status = Status.CONVERGED if step <= CLOSE else Status.STOPPED
    largest = float(np.abs(gradient).max(initial=0.0))
    return Examination(u, covariance, component, status, iteration, largest, here.value, shown, clicks)


def _slopes(x: Floats, clicked: Floats, passed: Floats) -> tuple[Floats, Floats]:
    """First and minus second derivatives of c x + n log(1 − eˣ)."""
    odds = np.exp(x) / -np.expm1(x)
    return clicked - passed * odds, passed * odds * (1.0 + odds)


def _linked(cells: Cells) -> Ints:
    """A number for each position, the same for positions that clicked items link."""
    nodes = len(cells.start) - 1
    size = cells.places + nodes
    where = (cells.place, cells.places + cells.nodes.owner)
    graph = csr_array((np.ones(len(cells.place), np.int8), where), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1][: cells.places], np.int64)


def linked_positions(cells: Cells) -> Ints:
    """A number for each position, the same for positions that items of these cells link, if they were clicked."""
    return _linked(clicked_only(cells))


def numbered(linked: Ints, there: NDArray[np.bool_]) -> Ints:
    """Number the components of positions, 0 that of the first; −1 where nothing is ``there``, but that is nowhere."""
    there = there if there.any() else np.ones(len(linked), bool)
    found = np.full(len(linked), -1, np.int64)
    _, first, inverse = np.unique(linked[there], return_index=True, return_inverse=True)
    found[there] = np.argsort(np.argsort(first))[inverse]
    return found


def _settled(cells: Cells, u: Floats, v: Floats) -> Floats:
    """Maximise over log a of each node, all of which have clicks, at given log-examinations."""
    base, owner = u[cells.place], cells.nodes.owner
    top = cells.nodes.most(base)  # of the cell that bounds the node: no chance of a click reaches 1
    v = np.minimum(v, -top - LEAST)
    for _ in range(STEPS):
        g, h = _slopes(base + v[owner], cells.clicked, cells.passed)
        step = cells.nodes.sums(g) / cells.nodes.sums(h)
        v = v + np.minimum(step, -0.9 * (v + top))
        if np.abs(step).max(initial=0.0) <= CLOSE:
            break
    return np.asarray(v, np.float64)


def _attractions(cells: Cells, u: Floats) -> tuple[Floats, Floats, Floats]:
    """Return a of each node at given log-examinations, the information of its logarithm, and that of each cell.

    Of a node without clicks a and the information are 0.
    """
    clicks, shown = (cells.nodes.sums(x) for x in (cells.clicked, cells.shown))
    some = np.flatnonzero(clicks > 0)
    held = cells.take(some)
    v = _settled(held, u, np.log((clicks[some] + 0.5) / (shown[some] + 1.0)))
    a, h = np.zeros(len(clicks)), np.zeros(len(cells.place))
    a[some] = np.exp(np.minimum(v, 0.0))
    h[(clicks > 0)[cells.nodes.owner]] = _slopes(u[held.place] + v[held.nodes.owner], held.clicked, held.passed)[1]
    return a, cells.nodes.sums(h), h


def position_based(batch: Batch) -> Scores:
    """Maximum likelihood of the position-based model: P(click) = θ(position) · a(query, item).

    θ, how often a position is examined, is one for all queries and estimated from the whole log; a is an item's chance
    of a click at the first position. The log identifies them where items change positions: θ is 1 at the first position
    of each connected component of positions and clicked items, and items of different components cannot be compared.
    Positions are those that the log gives. An item of which nothing is known has the query's pooled rate.

    Errors: UsageError for anything but selections.

    >>> session, position = np.repeat(np.arange(20), 2), np.tile([1, 2], 20)
    >>> clicks = [1, 0] * 8 + [0, 1] * 2 + [1, 1] * 4 + [0, 0] * 6  # x: 8 and 4 of 10, y: 4 and 2 of 10
    >>> log = Preferences.from_selections(None, session, position, list("xy" * 10 + "yx" * 10), clicks)
    >>> position_based(Batch.whole(log)).value.round(2).tolist(), examination(log).value.round(2).tolist()
    ([0.8, 0.4], [1.0, 0.5])

    Source: Craswell, Zoeter, Taylor & Ramsey, WSDM 2008 (examination hypothesis); Chuklin, Markov & de Rijke, Click
    Models for Web Search (2015), §3.3, §4.2.
    """
    return attractions(batch, Cells.of(batch), examination(batch.prefs))


def attractions(batch: Batch, cells: Cells, found: Examination) -> Scores:
    """Return what ``position_based`` does, given the cells of its items and how often positions are examined."""
    a, shown = _attractions(cells, found.log)[0], cells.nodes.sums(cells.shown * found.value[cells.place])
    return Scores(
        value=np.where(shown > 0, a, pooled(batch, a * shown, shown)),
        components=_scales(batch, cells, found),
        status=np.full(len(batch), found.status, np.int8),
        iterations=np.full(len(batch), found.iterations, np.int64),
        gradient=np.full(len(batch), found.gradient),
        known=shown > 0,
        notes=found.notes,
    )


def position_trials(batch: Batch) -> tuple[Floats, Floats]:
    """Return clicks and trials of each node: of a click rate of the same standard error, of the same value.

    The error of a accounts for that of θ: with information h_i of log a_i, its cross part b_i and C the covariance of
    log θ, var log a_i = 1/h_i + b_i'C b_i / h_i².
    """
    return trials_of(Cells.of(batch), examination(batch.prefs))


def trials_of(cells: Cells, found: Examination) -> tuple[Floats, Floats]:
    """Return what ``position_trials`` does, given cells and how often positions are examined."""
    a, curvature, h = _attractions(cells, found.log)
    cross = csr_array((h, cells.place, cells.start), shape=(len(a), len(found.value)))
    spread = np.einsum("ij,ij->i", cross @ found.covariance, cross.toarray()) if len(a) else np.zeros(0)
    examined = cells.nodes.sums(cells.shown * found.value[cells.place])
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = 1.0 / curvature + spread / curvature**2
        trials = (1.0 - a) / (a * variance)
    trials = np.where((a > 0) & (a < 1), trials, examined)
    return a * trials, trials


def position_links(batch: Batch) -> Connectivity:
    """Items of a query compare where the log says how the positions compare at which they were shown."""
    return links_of(batch, Cells.of(batch), examination(batch.prefs))


def links_of(batch: Batch, cells: Cells, found: Examination) -> Connectivity:
    """Return what ``position_links`` does, given cells and how often positions are examined."""
    return all_linked(cells.nodes.sizes > 0, _scales(batch, cells, found))


def _scales(batch: Batch, cells: Cells, found: Examination) -> NDArray[np.int32]:
    """Number the scales of the items of each graph, the most frequent first; an item that was not shown has any."""
    component, shown = found.component, cells.nodes.sizes > 0
    part = np.zeros(len(shown), np.int64)
    part[shown] = component[cells.place[cells.start[:-1][shown]]]
    return by_size((batch.owner * len(component) + part).astype(np.int32), batch.owner)


def inverse_propensity(
    batch: Batch, *, propensities: Sequence[float | None] | None = None, clip: float = CLIP
) -> Scores:
    """Clicks divided by the chance that their position is examined: s = 1/n Σ clicked / max(p_position, clip).

    Without bias for a(query, item) of the position-based model where no propensity is below ``clip``; a larger clip
    lowers the variance, 1/n² Σ (clicked/p − s)², and biases the items that were shown low. A mean of few clicks may be
    above 1. ``propensities``: by position, the first 1, None where the log has nothing; None: the examinations that the
    position-based model finds in the whole log, where items change positions. Errors: UsageError for propensities that
    are not in (0, 1] or fewer than the positions, and where the log does not determine them.

    >>> log = Preferences.from_selections(["q"] * 4, [1, 1, 2, 2], [1, 2, 1, 2], ["x", "y", "x", "y"], [1, 0, 0, 1])
    >>> inverse_propensity(Batch.whole(log), propensities=[1.0, 0.8]).value.tolist()
    [0.5, 0.625]

    Source: Joachims, Swaminathan & Schnabel, WSDM 2017, (4); clipping: Strehl et al., NIPS 2010.
    """
    return weighted_clicks(batch, Cells.of(batch), lambda: examination(batch.prefs), propensities, clip)


def weighted_clicks(
    batch: Batch,
    cells: Cells,
    find: Callable[[], Examination],
    propensities: Sequence[float | None] | None,
    clip: float,
) -> Scores:
    """Return what ``inverse_propensity`` does, given cells and what finds how often positions are examined."""
    if isinstance(clip, bool) or not isinstance(clip, int | float | np.number) or not 0 < clip <= 1:
        raise UsageError(f"clip is the least propensity, a number in (0, 1], not {clip!r}")
    chance = _propensities(find, propensities, cells)
    shown = cells.nodes.sums(cells.shown)
    total = cells.nodes.sums(cells.clicked / np.maximum(chance[cells.place], clip))
    given = {"propensities": propensities, "clip": clip}
    return replace(rates_of(batch, "inverse-propensity", total, shown), options=given)


def _propensities(find: Callable[[], Examination], given: Sequence[float | None] | None, cells: Cells) -> Floats:
    places = cells.places
    if given is None:
        found = find()
        if (found.component > 0).any():
            raise UsageError(
                "the log does not say how often its positions are examined, for no clicked item moves between some of "
                "them; give ",
                Setting("propensities"),
            )
        return found.value
    try:
        left_out = np.array([one is None for one in given], bool)
        chance = np.asarray(given, np.float64)  # None becomes NaN
    except (TypeError, ValueError):
        left_out, chance = np.zeros(0, bool), np.zeros(0)
    if chance.ndim != 1 or not len(chance) or not ((chance > 0) & (chance <= 1) | left_out).all():
        raise UsageError(f"propensities are numbers in (0, 1], one for each of the {places:,} positions, not {given!r}")
    if len(chance) < places:
        raise UsageError(f"there are {len(chance):,} propensities and {places:,} positions; give one for each position")
    if np.isnan(none := chance[cells.place]).any():
        at = (np.unique(cells.place[np.isnan(none)]) + 1).tolist()
        raise UsageError(
            f"there is no propensity of {counted(len(at), 'positions')} at which the log has items: {few(at)}"
        )
    return chance


def usual_clicks(prefs: Preferences) -> str:
    """Return the structure that lists as shown are read by where none is named.

    Where lists have several clicks and the log tells how often positions are examined (``Examination.sure``), the
    likelier of the position-based model and dependent clicks; else, and of lists that end at their last click, the
    latter. Where no list has several clicks the cascade; but of lists whose positions have gaps, such as single items
    with the position at which each was shown, the position-based model where clicked items link the positions and its
    log-likelihood is greater by more than the number of its free parameters, positions − 1 (Akaike): the cascade knows
    nothing of what stood in a gap.

    >>> usual_clicks(Preferences.from_selections(None, [1, 1], [1, 2], ["x", "y"], [1, 1]))
    'dependent-click'
    """
    if not isinstance(prefs, Lists) or prefs.kind != "selections":
        return "cascade"
    return once(prefs, "usual", _usual)


def _usual(prefs: Preferences) -> str:
    if not several_clicks(prefs):
        return "cascade" if not lists_with_gaps(prefs) else with_gaps(examination(prefs), cascade_likelihood(prefs))
    if not clicks_with_more_below(prefs):
        return "dependent-click"
    return likelier(examination(prefs), lambda: going_on(prefs))


def cascade_likelihood(prefs: Preferences) -> float:
    """The logarithm of the greatest likelihood of lists with one click at most by the cascade."""
    return rates_likelihood(*examinations(Batch.whole(prefs)))


def rates_likelihood(clicks: Floats, examined: Floats) -> float:
    """Σ c log p + (n − c) log(1 − p), p = c/n the rate at which each item that is examined is clicked."""
    passed = examined - clicks
    each = xlogy(clicks, clicks) + xlogy(passed, passed) - xlogy(examined, examined)
    return float(each.sum())


def clicks_with_more_below(prefs: Preferences) -> int:
    """How many distinct lists have something below their last click."""
    if not isinstance(prefs, Lists):
        return 0
    clicked = prefs.lists.most(prefs.list_value) > 0
    return int((prefs.list_value[prefs.list_start[1:] - 1][clicked] <= 0).sum())


def likelier(found: Examination, other: Callable[[], GoingOn]) -> str:
    """The model that is usual where lists have several clicks and something below them, by what it says of positions.

    Who reads by dependent clicks is asked of ``other`` only where positions are known.
    """
    return "position-based" if found.sure and found.likelihood >= other().likelihood else "dependent-click"


def with_gaps(found: Examination, cascade: float) -> str:
    """The model that is usual where positions have gaps and no list has several clicks; ``cascade``: its likelihood."""
    more = int((found.component >= 0).sum()) - 1  # parameters that the cascade has not
    return "position-based" if found.linked and found.likelihood - more > cascade else "cascade"


@dataclass(frozen=True, eq=False)
class KnownClicks:
    """What all of a log says of how its clicks are to be read, for who sees a part of it."""

    usual: str
    examined: Examination | None = None
    going: GoingOn | None = None

    def tell(self, prefs: Preferences) -> None:
        """Have the models read this part as all of the log."""
        told = {"usual": self.usual, "position-based": self.examined, "dependent-click": self.going}
        for name, found in told.items():
            if found is not None:
                tell(prefs, name, found)


def click_positions(prefs: Preferences, structure: str = "position-based") -> pa.Table:
    """Return what a model of clicks says of positions.

    Columns: position (those at which the log has anything), shown, clicks; of 'position-based' examination,
    standard_error and component (0 that of the first position; each has its own scale); of 'dependent-click'
    continuation λ, the chance that a reader goes on after a click there (NaN where no click has anything below it),
    and standard_error.

    Errors: UsageError for other structures and for anything but selections.

    >>> log = Preferences.from_selections(["q"] * 4, [1, 1, 2, 2], [1, 2] * 2, list("xyyx"), [1, 1, 1, 0])
    >>> click_positions(log, "dependent-click")["continuation"].to_pylist()
    [0.5, nan]
    """
    if prefs.kind != "selections" or not isinstance(prefs, Lists):
        raise UsageError(f"positions are those of lists as shown (selections), not of {prefs.kind}")
    if structure not in OF_POSITIONS:
        raise UsageError(f"{structure!r} says nothing of positions; {did_you_mean(str(structure), OF_POSITIONS)}")
    cells = Cells.of(Batch.whole(prefs))
    shown, clicks = cells.at_places(cells.shown), cells.at_places(cells.clicked)
    some = shown > 0
    found: dict[str, Any] = {"position": np.arange(1, cells.places + 1), "shown": shown, "clicks": clicks}
    if structure == "position-based":
        fit = examination(prefs)
        found |= {"examination": fit.value, "standard_error": fit.error, "component": fit.component.astype(np.int64)}
    else:
        on = going_on(prefs)
        found |= {"continuation": on.value, "standard_error": on.error}
    return pa.table({name: column[some] for name, column in found.items()})

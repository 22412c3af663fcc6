"""Rankings over time: abilities that move, as paths with intervals, as a ranking at any date, and as forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri

from concordant.errors import Idle, UsageError, did_you_mean, whole_number
from concordant.preferences.connectivity import Connectivity, connectivity
from concordant.preferences.frames import as_pandas, as_polars
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Preferences, keep
from concordant.preferences.status import Status
from concordant.preferences.times import as_times, moment, said_time, timed
from concordant.preferences.unused_clusters import one_cluster
from concordant.progress import know, stage
from concordant.ranking.contrasts import Gauge
from concordant.ranking.flags import flags_of, undecided
from concordant.ranking.moving import Beliefs, Fit, Games, chosen, drift_test, evidence, fitted, joint_walks
from concordant.ranking.prediction import covariate_values, paired, probabilities
from concordant.ranking.rank import Ranking
from concordant.ranking.rank_intervals import among_others, places, ranks_from_ends
from concordant.ranking.ranked_lists import touches
from concordant.ranking.shown import as_html, drawn_paths, html_words

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SLIGHTEST = 1e-9
"""A prior or a drift below this, or above its inverse, leaves nothing to compute."""
TOGETHER, WORK = 100, 5e9
"""Items, and items³ × times, up to which covariances are those of all items together; beyond, beliefs."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)


@dataclass(frozen=True, eq=False)
class _Moment:
    """What is known of all items at one time."""

    time: float
    item: Ints
    """Those that were judged by then."""
    mean: Floats
    variance: Floats
    """Of each ability."""
    covariance: Floats | None
    """Of all abilities together; None where only that of ``shared`` is known."""
    shared: Floats
    """F of ``Beliefs.shared`` beside the variances; without columns where the covariance is known."""
    beside: Floats
    """Covariance of abilities and coefficients."""
    gauge: Gauge

    @cached_property
    def contrast(self) -> Floats:
        """Standard errors of the abilities less the mean of their component."""
        if self.covariance is None:
            return np.asarray(np.sqrt(self.variance + _spread(self.gauge, self.shared)))
        level = self.gauge.weight * (self.gauge.group[:, None] == self.gauge.group)
        across = np.eye(len(level)) - level
        return np.asarray(np.sqrt(np.maximum(((across @ self.covariance) * across).sum(axis=1), 0.0)))


@dataclass(frozen=True, eq=False, repr=False)
class Paths:
    """Abilities that move: the path of each item, a ranking at any time, forecasts. ``rank_over_time`` makes it.

    >>> import concordant as cc
    >>> when = ["2025-01-01", "2026-01-01", "2026-01-01"]
    >>> votes = cc.Preferences.from_comparisons(["a", "b", "b"], ["b", "a", "a"], time=when)
    >>> paths = cc.rank_over_time(votes, prior=1, drift=0.05)
    >>> [row["item"] for row in paths.at("2026-01-01").to_arrow().to_pylist()]
    ['b', 'a']
    """

    prefs: Comparisons
    fit: Fit
    level: float
    ties: str
    links: Connectivity
    notes: tuple[str, ...] = ()
    given: frozenset[str] = frozenset()
    """Which of prior and drift were given and not chosen by the data."""

    @property
    def prior(self) -> float:
        """Precision of an item's first ability."""
        return self.fit.precision

    @property
    def drift(self) -> float:
        """Standard deviation of the change of an ability in one unit of time (a day, where times are dates)."""
        return self.fit.drift

    @property
    def evidence(self) -> float:
        """Log marginal likelihood (Laplace's approximation with its next term)."""
        return evidence(self.fit, self._beliefs, self._together)

    def drift_test(self) -> tuple[float, float]:
        """Return whether abilities move at all: χ², twice the log ratio of marginal likelihoods, and its p-value.

        Errors: UsageError where the drift was given, which is then not the one under which the judgments are likeliest.

        >>> import numpy as np
        >>> import concordant as cc
        >>> when = np.arange(200) / 10
        >>> first = np.where(when < 10, "a", "b")  # a wins at first, b then
        >>> votes = cc.Preferences.from_comparisons(first, np.where(first == "a", "b", "a"), time=when)
        >>> chi2, p = cc.rank_over_time(votes).drift_test()
        >>> chi2 > 50, p < 1e-9
        (True, True)

        Source: module ``ranking.moving``, ``drift_test``.
        """
        if "drift" in self.given:
            raise UsageError("the drift was given; whether abilities move is asked of the one that the data choose")
        return drift_test(self.fit, self.prior if "prior" in self.given else None)

    @property
    def coefficients(self) -> dict[str, tuple[float, float]]:
        """Each coefficient (and log ν of ties, "ties") with its standard error."""
        errors = np.sqrt(np.diag(self.fit.coefficients)) if self.fit.beta.size else np.zeros(0)
        names = [*self.prefs.covariate_names, *(["ties"] if self.ties == "davidson" else [])]
        return dict(zip(names, zip(self.fit.beta.tolist(), errors.tolist(), strict=True), strict=True))

    def __repr__(self) -> str:
        span = " to ".join(said_time(float(end), self.prefs.dated) for end in (self._times.min(), self._times.max()))
        return f"Paths({len(self.prefs.items):,} items, {span}, drift {self.drift:.3g}, prior {self.prior:.3g})"

    # -- paths -------------------------------------------------------------------------------------------------------
    def to_arrow(self) -> pa.Table:
        """Return the paths: item, time, score, standard_error, lower, upper, a row for each time an item was judged.

        A score is the ability less the mean of the items of its component that were judged by then, as all judgments,
        earlier and later, have it; the interval is that of this difference at the level.
        """
        games, group = self.fit.games, self.links.component.astype(np.int64)
        score = self.fit.theta - self._levels(self.fit.theta)
        error = self._errors
        reach = -ndtri((1.0 - self.level) / 2) * error
        return pa.table(
            {
                "item": self.prefs.items.take(games.item),
                **({"component": (group + 1)[games.item]} if group.any() else {}),
                "time": as_times(games.time, self.prefs.dated),
                "score": score,
                "standard_error": error,
                "lower": score - reach,
                "upper": score + reach,
            }
        )

    def to_pandas(self) -> Any:
        """Return the paths as a pandas data frame (pandas must be installed)."""
        return as_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """Return the paths as a polars data frame (polars must be installed)."""
        return as_polars(self.to_arrow())

    def _repr_html_(self) -> str:
        return html_words(repr(self)) + as_html(self.at())

    def plot(self, items: Sequence[Any] | None = None, *, axes: Any = None) -> Any:
        """Draw the path of each item, with its interval, by Matplotlib (the extra ``figures``); return the axes.

        ``items``: those to draw; not given: the eight that are best at the end. ``axes``: where; else a new figure.

        Errors: ConcordantError without Matplotlib; UsageError for unknown items.
        """
        some = self.at().to_arrow()["item"].to_pylist()[:8] if items is None else list(items)
        self._codes(pa.array(some))
        return drawn_paths(self.to_arrow().to_pydict(), some, self.level, axes)

    # -- one time ----------------------------------------------------------------------------------------------------
    def at(self, when: Any = None, *, min_judgments: int = 0, since: Any = None) -> Ranking:
        """Return the ranking at a time, as all judgments have it: in the past smoothed, in the future a forecast.

        Items are those that were judged by then; scores are as in ``to_arrow``. Between and after its judgments an
        item's variance grows by drift² a unit of time. Rank bounds hold for all items together (Šidák). Items whose
        place is not decided, with fewer judgments than ``min_judgments``, or with none from ``since`` on, stand apart
        (``Ranking.provisional``).

        Errors: UsageError for a time before the first judgment, or what is none.

        >>> import concordant as cc
        >>> votes = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], time=[0, 10])
        >>> paths = cc.rank_over_time(votes, prior=1, drift=0.3)
        >>> early, late = (paths.at(when).to_arrow() for when in (0, 10))
        >>> early["item"].to_pylist(), late["item"].to_pylist()
        (['a', 'b'], ['b', 'a'])
        """
        (now,) = self._moments([when])
        return self._board(now, min_judgments, since)

    def at_each(
        self, times: Sequence[Any], *, min_judgments: int = 0, since: Sequence[Any] | None = None
    ) -> list[Ranking]:
        """Return the ranking at each of some times, as ``at`` does, by one pass over the judgments.

        ``since``: one for each of the times. Errors: as ``at``; UsageError where there are more or fewer of them.

        >>> import concordant as cc
        >>> votes = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], time=[0, 10])
        >>> boards = cc.rank_over_time(votes, prior=1, drift=0.3).at_each([0, 10])
        >>> [board.to_arrow()["item"][0].as_py() for board in boards]
        ['a', 'b']
        """
        begun = [None] * len(times) if since is None else list(since)
        if len(begun) != len(times):
            raise UsageError(f"since has {len(begun):,} times, and there are {len(times):,} to rank at; give as many")
        return [self._board(now, min_judgments, first) for now, first in zip(self._moments(times), begun, strict=True)]

    def _board(self, now: _Moment, min_judgments: int, since: Any) -> Ranking:
        score, own = now.gauge.centre(now.mean), now.item
        reach = -ndtri((1.0 - self.level) / 2) * now.contrast
        together = -ndtri((1.0 - self.level ** (1.0 / max(len(own), 1))) / 2) * now.contrast
        ends = score - together, score + together, now.gauge
        component, zeros = self.links.component[own], np.zeros(len(own), np.int64)
        judgments, flag = touches(self._batch)[own], flags_of(self.links)[own]
        least = whole_number(min_judgments, "min_judgments", least=0)
        apart = judgments < least
        if since is not None:
            apart |= self.fit.games.time[self._last(now.time, own)] < moment(since, self.prefs.dated)
        apart |= undecided(flag, now.gauge.group, *ranks_from_ends(*ends, ~apart))
        best, worst = among_others(*ranks_from_ends(*ends, ~apart), now.gauge.group, apart)
        order, rank = places(zeros, component, apart.astype(np.int64), score, own.astype(np.int32), 1e-8)
        found = self.coefficients
        return Ranking(
            queries=self.prefs.queries, items=self.prefs.items, query=np.zeros(len(own), np.int32),
            component=component[order] + 1, item=own[order].astype(np.int32), rank=rank, score=score[order],
            lower=(score - reach)[order], upper=(score + reach)[order], judgments=judgments[order],
            rank_lower=best[order], rank_upper=worst[order], flag=flag[order],
            provisional=apart[order], quasi_error=None,
            structure="bradley-terry", interval="hessian", level=self.level,
            status={"status": np.array([Status.CONVERGED]), "iterations": np.array([np.nan]),
                    "gradient": np.array([np.nan])},
            coefficients={name: np.array([value]) for name, (value, _) in found.items()}
            | {f"s.e. of {name}": np.array([error]) for name, (_, error) in found.items()},
            notes=(*one_cluster(self.prefs.notes, used=False), *self.notes, *self._said(now)),
        )  # fmt: skip

    def predict(
        self, first: Any, second: Any, *, at: Any = None, covariates: Mapping[str, Any] | None = None
    ) -> pa.Table:
        """Return how likely judgments between items at a time are to end in a win, a tie or a loss of the first.

        Columns: first, second, then win, tie (with Davidson's ties) and loss, each with _lower and _upper. A
        probability is the mean over what is not known of the two abilities, P = E[P(win | m)] with m normal; the bounds
        are those of P(win | m) for m in its interval. An item that nobody judged by then has the prior's ability 0.

        Parameters
        ----------
        first, second : an item each, or as many of either; one is paired with all of the other.
        at : the time (default: that of the last judgment).
        covariates : values by name, first minus second; not given: 0.

        Errors: UsageError for unknown items or covariates.
        """
        one, other = paired(first, second)
        names = self.prefs.covariate_names
        z = np.hstack(
            [covariate_values(names, covariates or {}, len(one)), np.zeros((len(one), int(self.ties == "davidson")))]
        )
        (now,) = self._moments([at])
        margin, variance = _margin(now, self._codes(one), self._codes(other), z, self.fit)
        log_nu = float(self.fit.beta[-1]) if self.ties == "davidson" else None
        return pa.table({"first": one, "second": other, **chances(margin, variance, log_nu, self.level)})

    # -- behind them -------------------------------------------------------------------------------------------------
    @cached_property
    def _batch(self) -> Batch:
        return Batch.whole(self.prefs, np.array([0]))

    @cached_property
    def _times(self) -> Floats:
        return np.unique(self.fit.games.time)

    @cached_property
    def _together(self) -> bool:
        items = len(self.prefs.items)
        return items <= TOGETHER and items**3 * len(self._times) <= WORK

    @cached_property
    def _beliefs(self) -> Beliefs:
        return Beliefs.of(self.fit)

    @cached_property
    def _errors(self) -> Floats:
        """Standard errors of the scores at the knots."""
        games = self.fit.games
        if self._together:
            found, known = np.zeros(games.knots), np.argsort(games.time, kind="stable")
            begin = np.searchsorted(games.time[known], self._times)
            ends = dict(zip(self._times.tolist(), zip(begin, [*begin[1:], games.knots], strict=True), strict=True))

            def hear(time: float, covariance: Floats) -> None:
                here, own = known[slice(*ends[time])], self._judged_by(time)
                now = self._of(time, own, covariance[np.ix_(own, own)])
                found[here] = now.contrast[np.searchsorted(own, games.item[here])] ** 2

            joint_walks(self.fit, None, hear)
            return np.asarray(np.sqrt(found))
        response = self.fit.response
        moved = np.column_stack([column - self._levels(column) for column in response.T]) if response.size else response
        beside = np.einsum("ki,ij,kj->k", moved, self.fit.coefficients, moved)
        between = _spread(self._gauge(np.arange(len(self.prefs.items))), self._beliefs.shared)
        return np.asarray(np.sqrt(self._beliefs.variance + beside + between[games.item]))

    def _levels(self, values: Floats) -> Floats:
        """Return, at each knot, the mean over the items of its component that were judged by then.

        Values between knots are on the line between them, after the last one they stay.
        """
        games = self.fit.games
        group = self.links.component.astype(np.int64)[games.item]
        at = np.searchsorted(self._times, games.time)
        width = len(self._times) + 1
        ending = np.append(games.first[1:], True)
        slope = np.where(ending, 0.0, (np.append(values[1:], 0.0) - values) / np.where(ending, 1.0, games.gap))
        since = games.time - self._times[0]
        level = values - slope * since
        until = np.where(ending, width - 1, np.append(at[1:], 0))
        key = np.concatenate([group * width + at, group * width + until])
        sorter = np.argsort(key, kind="stable")
        sums = np.column_stack([np.r_[level, -level], np.r_[slope, -slope], np.r_[games.first, -1.0 * ending]])
        running = np.vstack([np.zeros(3), np.cumsum(sums[sorter], axis=0)])
        last = np.searchsorted(key[sorter], group * width + at, side="right")
        begin = np.searchsorted(key[sorter], group * width)
        found = running[last] - running[begin]
        return np.asarray((found[:, 0] + found[:, 1] * since) / found[:, 2])

    def _judged_by(self, time: float) -> Ints:
        games = self.fit.games
        return np.flatnonzero(games.time[games.start[:-1]] <= time)

    def _moments(self, times: Sequence[Any]) -> list[_Moment]:
        """What is known of the items at each time; None: the last one."""
        dated = self.prefs.dated
        whens = [float(self._times[-1]) if when is None else moment(when, dated) for when in times]
        if early := [time for time in whens if time < self._times[0]]:
            first = said_time(float(self._times[0]), dated)
            raise UsageError(
                f"at {said_time(early[0], dated)} nothing had been judged; the first judgment is of {first}"
            )
        held: dict[float, Floats | None] = dict.fromkeys(whens)
        if self._together and whens:

            def hear(there: float, covariance: Floats) -> None:
                if there in held:
                    own = self._judged_by(there)
                    held[there] = covariance[np.ix_(own, own)]

            joint_walks(self.fit, np.array(whens), hear, min(whens))
        return [self._of(time, self._judged_by(time), held[time]) for time in whens]

    def _last(self, time: float, own: Ints) -> Ints:
        """The last knot of each item up to a time."""
        games = self.fit.games
        begin, end = games.start[own], games.start[own + 1]
        late = np.concatenate(([0], np.cumsum(games.time <= time)))
        return np.asarray(begin + (late[end] - late[begin]) - 1)

    def _of(self, time: float, own: Ints, covariance: Floats | None) -> _Moment:
        """Abilities at a time, on the line between knots, with the covariance there or that of each walk's own."""
        fit, games = self.fit, self.fit.games
        left = self._last(time, own)
        gap = games.gap[left]
        inside = np.isfinite(gap)
        right = np.where(inside, left + 1, left)
        share = np.where(inside, (time - games.time[left]) / np.where(inside, gap, 1.0), 0.0)
        mean = fit.theta[left] + share * (fit.theta[right] - fit.theta[left])
        answer = (1.0 - share)[:, None] * fit.response[left] + share[:, None] * fit.response[right]
        if covariance is None:
            known = self._beliefs
            variance = (1 - share) ** 2 * known.variance[left] + share**2 * known.variance[right]
            variance = variance + 2 * share * (1 - share) * np.where(inside, known.along[left], 0.0)
            open_ = np.where(inside, share * (1 - share) * np.where(inside, gap, 0.0), time - games.time[left])
            variance = variance + fit.drift**2 * open_
        else:
            covariance = covariance + answer @ fit.coefficients @ answer.T
            variance = np.diag(covariance).copy()
        gauge = self._gauge(own)
        if covariance is None and answer.size:
            moved = np.column_stack([gauge.centre(column) for column in answer.T])
            variance = variance + np.einsum("ki,ij,kj->k", moved, fit.coefficients, moved)
        shared = self._beliefs.shared[own] if covariance is None else np.zeros((len(own), 0))
        return _Moment(time, own, mean, variance, covariance, shared, -answer @ fit.coefficients, gauge)

    def _gauge(self, own: Ints) -> Gauge:
        """The mean of each component."""
        group = np.unique(self.links.component[own], return_inverse=True)[1].astype(np.int64)
        size = np.bincount(group)
        return Gauge(group, len(size), 1.0 / size[group], np.zeros(len(own), bool))

    def _codes(self, side: pa.Array) -> Ints:
        """Codes of items. Errors (UsageError): unknown ones."""
        codes = self.prefs.items.codes_of(side)
        if (codes < 0).any():
            unknown = str(side[int(np.flatnonzero(codes < 0)[0])])
            raise UsageError(f"no item {unknown!r}: {did_you_mean(unknown, map(str, self.prefs.items.tolist()))}")
        return np.asarray(codes, np.int64)

    def _said(self, now: _Moment) -> list[Note]:
        """Say of which time a ranking is, and by what law abilities move."""
        unit, many = ("a year", 365.25) if self.prefs.dated else ("a unit of time", 1.0)
        text = (
            "abilities at {when} by all judgments{ahead}; an ability moves by ±{move:.3g} {unit} (one standard "
            "deviation), first abilities spread by ±{spread:.3g}"
        )
        ahead = ", a forecast" if now.time > self._times[-1] else ""
        return [
            Note("moving", text, when=said_time(now.time, self.prefs.dated), ahead=ahead, unit=unit,
                 move=self.drift * np.sqrt(many), spread=self.prior**-0.5)
        ]  # fmt: skip


def _spread(gauge: Gauge, shared: Floats) -> Floats:
    """Variances of the rows of F Fᵀ less their component's mean."""
    found = np.zeros(len(shared))
    for column in shared.T:
        found += gauge.centre(column) ** 2
    return found


def _margin(now: _Moment, one: Ints, other: Ints, z: Floats, fit: Fit) -> tuple[Floats, Floats]:
    """Mean and variance of θ_i − θ_j + zᵀβ; items that are not known yet have the prior's ability."""
    place = np.full(int(fit.games.start.size), -1)
    place[now.item] = np.arange(len(now.item))
    sides = [place[one], place[other]]
    known = [side >= 0 for side in sides]
    mean = sum(sign * np.where(is_, now.mean[side], 0.0) for sign, side, is_ in zip((1, -1), sides, known, strict=True))
    each = [np.where(is_, now.variance[side], 1.0 / fit.precision) for side, is_ in zip(sides, known, strict=True)]
    variance = each[0] + each[1]
    if now.covariance is not None:
        variance = variance - 2.0 * np.where(known[0] & known[1], now.covariance[sides[0], sides[1]], 0.0)
    else:
        ours, theirs = (np.where(is_[:, None], now.shared[side], 0.0) for side, is_ in zip(sides, known, strict=True))
        variance = variance + ((ours - theirs) ** 2).sum(axis=1)
    beside = sum(sign * np.where(is_[:, None], now.beside[side], 0.0)
                 for sign, side, is_ in zip((1, -1), sides, known, strict=True))  # fmt: skip
    variance = variance + np.einsum("ri,ij,rj->r", z, fit.coefficients, z) + 2.0 * np.sum(z * beside, axis=1)
    return np.asarray(mean + z @ fit.beta), np.asarray(np.maximum(variance, 0.0))


def chances(margin: Floats, variance: Floats, log_nu: float | None, level: float) -> dict[str, Floats]:
    """Return probabilities of win, tie and loss, the mean over a normal margin, and what they are at its ends."""
    spread = np.sqrt(variance)
    reach = -ndtri((1.0 - level) / 2) * spread
    low, high = margin - reach, margin + reach
    grid = (margin[:, None] + spread[:, None] * NODES).ravel()
    found: dict[str, Floats] = {}
    middle = np.clip(0.0, low, high)
    ends = [probabilities(at, log_nu) for at in (low, high, middle)]
    for name, each in zip(("win", "tie", "loss"), zip(probabilities(grid, log_nu), *ends, strict=True), strict=True):
        all_of_it, *there = each
        if all_of_it is None:
            continue
        found[name] = all_of_it.reshape(len(margin), -1) @ WEIGHTS / WEIGHTS.sum()
        found[f"{name}_lower"] = np.minimum.reduce(there)
        found[f"{name}_upper"] = np.maximum.reduce(there)
    return found


def rank_over_time(
    prefs: Preferences,
    *,
    prior: float | str = "auto",
    drift: float | str = "auto",
    ties: str = "half",
    level: float = 0.95,
) -> Paths:
    """Let abilities move: a Gaussian random walk for each item, tied by the comparisons, with intervals and forecasts.

    A first ability is N(0, 1/prior); from one judgment to the next, Δt later, an ability changes by N(0, drift² Δt); a
    comparison is one of Bradley and Terry (or Davidson) between the abilities of its time, with the covariates' (home
    side's) coefficients. Penalised maximum likelihood; intervals from its curvature (those of up to 100 items together,
    of more by belief propagation, with what groups share that few games connect).

    Parameters
    ----------
    prefs : comparisons with times, of one query.
    prior, drift : numbers, or 'auto': where the marginal likelihood is largest (that of 100,000
        judgments, drawn, where there are more). A day is the unit of time of dates.
    ties : 'half' (half a win each) or 'davidson' (an outcome of their own, with a parameter).
    level : of the intervals.

    Errors: UsageError without times, for several queries, clusters, times that are all one with drift 'auto'.

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], time=[0, 10])
    >>> cc.rank_over_time(votes, prior=1, drift=0.1)
    Paths(2 items, 0 to 10, drift 0.1, prior 1)

    Source: Fahrmeir and Tutz, Journal of the American Statistical Association 89, 1994; module ``ranking.moving``.
    """
    votes = timed(prefs)
    if ties not in ("half", "davidson"):
        raise UsageError(f"ties must be half or davidson, not {ties!r}")
    if not isinstance(level, float) or not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1 (0.95 for 95%), not {level!r}")
    given = {"prior": prior, "drift": drift}
    for name, value in given.items():
        if value != "auto" and (isinstance(value, bool | str) or not SLIGHTEST <= value <= 1 / SLIGHTEST):
            raise UsageError(
                f"{name} must be 'auto' or a number above 0 ({SLIGHTEST:g} to {1 / SLIGHTEST:g}), not {value!r}"
            )
    if len(votes.queries) != 1:
        raise UsageError(
            f"abilities move within one query, and there are {len(votes.queries):,}; pool them or take one"
        )
    if votes.clusters is not None:
        raise Idle("cluster", "intervals of abilities that move take every judgment by itself")
    if ties == "davidson" and not votes.tied:
        raise Idle("ties", "nothing tied", "leave it out")
    silent = len(votes.declared)
    if silent:
        known = keep(votes, np.arange(votes.distinct), votes.count, votes.declared[:0])
        votes = known if isinstance(known, Comparisons) else votes
    with stage("placing judgments in time"):
        games = Games.of(votes, ties)
        know(knots=games.knots, edges=len(games.edges[0]), times=len(np.unique(games.time)))
    numbers = chosen(games, *[None if value == "auto" else float(value) for value in given.values()])
    with stage("abilities over time", apart=True) as told:
        fit = fitted(games, *numbers, told=told)
    links = connectivity(Batch.whole(votes, np.array([0])).graphs)
    notes = (Note("left out", "{silent:items} that nobody judged are left out", silent=silent),) if silent else ()
    fixed = frozenset(name for name, value in given.items() if value != "auto")
    return Paths(votes, fit, level, ties, links, notes, fixed)

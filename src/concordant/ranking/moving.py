"""Abilities that move: a Gaussian random walk for each item, tied by the games, at its penalised maximum.

An item has a knot at each time at which it was judged. Its abilities θ₁, …, θ_n there have the log-density

    −½ λ θ₁² − ½ Σ_k (θ_{k+1} − θ_k)² / (δ² (t_{k+1} − t_k)),

and a judgment at time t has the margin m = θ_i(t) − θ_j(t) + zᵀβ: Bradley–Terry with a tie as half a win each, or
Davidson's ties (``ranking.problem``). λ is the precision of the first abilities, δ the standard deviation of a change
in one unit of time. The maximum is Newton's; each system is solved by conjugate gradients, preconditioned by the
tridiagonal curvature of each walk. δ and λ are where Laplace's approximation of the marginal likelihood, with its next
term (``Beliefs.beyond``), is largest.

The posterior is normal with the inverse curvature as its covariance. ``joint_walks`` computes it exactly, time by time
(Kalman's filter and Rauch, Tung and Striebel's smoother on the curvatures at the maximum); ``Beliefs`` by Gaussian
belief propagation between the walks, each exact in itself, whose variances are those of contrasts with the mean up to
about 1/items, and whose Bethe free energy is the determinant (Heskes, Advances in Neural Information Processing
Systems 15, 2003). What it does not see is the variance between groups that few games connect; ``Beliefs.shared`` adds
that from the slow modes of the games of all times together (``SLOW``).

Sources: Fahrmeir and Tutz, Journal of the American Statistical Association 89, 1994 (dynamic paired comparisons);
Glickman, Applied Statistics 48, 1999; Coulom, Whole-History Rating, 2008; Maystre, Kristof and Grossglauser, KDD 2019.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.sparse import coo_array, diags_array
from scipy.sparse.linalg import eigsh
from scipy.special import chdtrc, expit

from concordant.errors import CannotRank, UsageError
from concordant.kernels.arrays import read_only
from concordant.kernels.compiled import compiles
from concordant.preferences.preferences import Comparisons
from concordant.progress import stage
from concordant.ranking.problem import davidson_derivatives, davidson_probabilities, win_derivatives, win_probability
from concordant.stages import Stage

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEPS = 100
"""Newton steps at most."""
SOLVED, ROUGHLY = 1e-7, 1e-3
"""Share of the first preconditioned residual at which conjugate gradients end; of the step of Newton's method."""
CONVERGED = 1e-10
"""Newton decrement, for each knot and square, after whose step the maximum is reached."""
FALLS = (CONVERGED, 1e-6, 3e-4, 0.01, 0.1)
"""Such decrements, of which one more step usually gets below the next."""
RIDGE = 1e-6
"""Precision of the coefficients' prior, which keeps one without information at 0."""


@dataclass(frozen=True, eq=False)
class Games:
    """Judgments between knots: knots of item i are start[i]:start[i + 1] in order of ``time``; rows are judgments."""

    start: Ints
    time: Floats
    one: Ints
    other: Ints
    above: Floats
    """Strength of what the first won; half of a tie where ties are half wins."""
    below: Floats
    tied: Floats | None
    """Strength of ties where they are an outcome (Davidson)."""
    z: Floats
    """Covariates, first minus second; shape (rows, names)."""

    @classmethod
    def of(cls, prefs: Comparisons, ties: str) -> Games:
        """Place the judgments of one query between knots, winners first."""
        if prefs.time is None:
            raise UsageError("judgments without times")
        times, when = np.unique(prefs.time, return_inverse=True)
        keys = np.concatenate([side.astype(np.int64) * len(times) + when for side in (prefs.winner, prefs.loser)])
        knots, place = np.unique(keys, return_inverse=True)
        strength = prefs.count.astype(np.float64) * (1.0 if prefs.weight is None else prefs.weight)
        tie = np.zeros(len(strength), bool) if prefs.tie is None else prefs.tie
        half = 0.0 if ties == "davidson" else 0.5
        rows = prefs.distinct
        return cls(
            np.searchsorted(knots, np.arange(len(prefs.items) + 1) * len(times)),
            times[knots % len(times)],
            place[:rows],
            place[rows:],
            np.where(tie, half * strength, strength),
            np.where(tie, half * strength, 0.0),
            np.where(tie, strength, 0.0) if ties == "davidson" else None,
            np.zeros((rows, 0)) if prefs.covariates is None else np.asarray(prefs.covariates),
        )

    @property
    def knots(self) -> int:
        return len(self.time)

    @cached_property
    def strength(self) -> Floats:
        """Of each row, ties left out."""
        return self.above + self.below

    @cached_property
    def item(self) -> Ints:
        """The item of each knot."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @cached_property
    def first(self) -> NDArray[np.bool_]:
        """Whether a knot is the first of its walk."""
        return np.concatenate(([True], self.item[1:] != self.item[:-1]))

    @cached_property
    def gap(self) -> Floats:
        """Time from each knot to the next of its walk; infinite at the end."""
        return np.where(np.append(self.first[1:], True), np.inf, np.append(np.diff(self.time), np.inf))

    @cached_property
    def edges(self) -> tuple[Ints, Ints, Ints]:
        """Pairs of knots that were judged, each once, and the pair of each row."""
        low, high = np.minimum(self.one, self.other), np.maximum(self.one, self.other)
        keys, of_row = np.unique(low * self.knots + high, return_inverse=True)
        return keys // self.knots, keys % self.knots, of_row

    @cached_property
    def slots(self) -> tuple[Ints, Ints]:
        """Ends of edges at each knot: where they begin, and 2 e or 2 e + 1 for the first or the other end of edge e."""
        ends = np.column_stack(self.edges[:2]).ravel()
        sorter = np.argsort(ends, kind="stable")
        return np.searchsorted(ends[sorter], np.arange(self.knots + 1)), sorter

    @property
    def extras(self) -> int:
        return int(self.z.shape[1]) + (self.tied is not None)


@dataclass(frozen=True, eq=False)
class Fit:
    """The penalised maximum and the curvature there."""

    games: Games
    precision: float
    """λ, of the first ability of an item."""
    drift: float
    """δ, the standard deviation of a change in one unit of time."""
    theta: Floats
    beta: Floats
    """Coefficients of the covariates, then log ν of Davidson's ties."""
    value: float
    """Log-likelihood less the penalty."""
    weight: Floats
    """Curvature of each edge."""
    cross: Floats
    """Second derivatives by knot and coefficient, shape (knots, extras)."""
    own: Floats
    """Second derivatives by the coefficients, shape (extras, extras)."""

    @cached_property
    def prior(self) -> Floats:
        return np.where(self.games.first, self.precision, 0.0)

    @cached_property
    def step(self) -> Floats:
        """Precision of the increment from each knot to the next."""
        return np.asarray(1.0 / (self.drift**2 * self.games.gap))

    @cached_property
    def solver(self) -> _Walks:
        return _Walks(self.prior, self.step, *self.games.edges[:2], self.weight)

    @cached_property
    def response(self) -> Floats:
        """H⁻¹ C: how abilities answer to coefficients."""
        columns = [self.solver.solve(column) for column in self.cross.T]
        return np.column_stack(columns) if columns else np.zeros((self.games.knots, 0))

    @cached_property
    def coefficients(self) -> Floats:
        """Covariance of the coefficients."""
        return np.asarray(np.linalg.inv(self.own - self.cross.T @ self.response)) if self.own.size else self.own

    def evidence(self, determinant: float) -> float:
        """Laplace's log marginal likelihood, from log |H| of the abilities."""
        steps = self.step[self.step > 0]
        first = int(self.games.first.sum())
        return self.value + 0.5 * float(first * np.log(self.precision) + np.log(steps).sum() - determinant)


class _Walks:
    """Systems with the curvature of walks and edges."""

    def __init__(self, prior: Floats, step: Floats, one: Ints, other: Ints, weight: Floats) -> None:
        from concordant.kernels.walks import factor, solve

        self._solve = solve
        self.arrays = [read_only(prior, np.float64), read_only(step, np.float64)]
        self.edges = [read_only(one, np.int64), read_only(other, np.int64), read_only(weight, np.float64)]
        knots = len(prior)
        on_knots = np.bincount(one, weight, knots) + np.bincount(other, weight, knots)
        pivot = np.empty(knots)
        factor(*self.arrays, read_only(on_knots, np.float64), pivot)
        self.pivot = read_only(pivot, np.float64)

    def solve(self, right: Floats, share: float = SOLVED) -> Floats:
        """Conjugate gradients."""
        found = np.empty(len(right))
        self._solve(*self.arrays, *self.edges, self.pivot, read_only(right, np.float64), share, found)
        return found


def fitted(games: Games, precision: float, drift: float, begin: Fit | None = None, told: Stage | None = None) -> Fit:
    """Return the penalised maximum; ``begin``: a fit of the same games to start from; ``told`` hears of each step.

    Errors: CannotRank where Newton does not end.
    """
    theta = np.zeros(games.knots) if begin is None else begin.theta
    beta = np.zeros(games.extras) if begin is None else begin.beta
    if begin is None and games.tied is not None:  # log ν of evenly matched items with that share of ties
        share = games.tied.sum() / (games.tied.sum() + games.above.sum() + games.below.sum())
        beta[-1] = np.log(2.0 * max(share, 1e-3) / max(1.0 - share, 1e-3))
    made, pull, lean = _at(games, precision, drift, theta, beta)
    for number in range(STEPS):
        solved = made.solver.solve(pull, ROUGHLY)
        by = (
            np.linalg.solve(made.own - made.cross.T @ made.response, lean - made.cross.T @ solved)
            if len(beta)
            else lean
        )
        move = solved - made.response @ by
        decrement = float(pull @ move + lean @ by)
        length = 1.0
        while True:
            ahead, pull_there, lean_there = _at(games, precision, drift, theta + length * move, beta + length * by)
            if ahead.value >= made.value + 1e-4 * length * decrement - 1e-9 * abs(made.value) or length < 1e-6:
                break
            length /= 2
        made, pull, lean, theta, beta = ahead, pull_there, lean_there, ahead.theta, ahead.beta
        if told is not None:
            told.reach(number + 1, number + 1 + sum(decrement > one * (games.knots + games.extras) for one in FALLS))
        if decrement <= CONVERGED * (games.knots + games.extras):
            return made
    raise CannotRank("abilities that move have not reached their maximum after 100 steps; is a weight very large?")


def _at(games: Games, precision: float, drift: float, theta: Floats, beta: Floats) -> tuple[Fit, Floats, Floats]:
    """Return value and curvature at some abilities, with the gradients by abilities and coefficients."""
    names, rows = games.z.shape[1], len(games.one)
    margin = theta[games.one] - theta[games.other] + games.z @ beta[:names]
    if games.tied is None:
        pull, curve = win_derivatives(margin, games.above, games.below)
        value = -float(games.strength @ np.log1p(np.exp(-np.abs(margin))))  # log(1 + e^±m), less the line that it nears
        value -= float(games.above @ np.maximum(-margin, 0.0) + games.below @ np.maximum(margin, 0.0))
        columns = [curve * z for z in games.z.T]
        lean, own = games.z.T @ pull, games.z.T @ (curve[:, None] * games.z)
    else:
        log_nu = np.full(rows, beta[-1])
        pull, curve, tie_pull, mixed, tie_curve = davidson_derivatives(
            margin, log_nu, games.above, games.below, games.tied
        )
        win, loss, tie = davidson_probabilities(margin, log_nu)
        with np.errstate(divide="ignore"):
            value = float(sum(np.where(many > 0, many * np.log(p), 0.0).sum() for many, p in
                              ((games.above, win), (games.below, loss), (games.tied, tie))))  # fmt: skip
        columns = [*(curve * z for z in games.z.T), mixed]
        lean = np.append(games.z.T @ pull, tie_pull.sum())
        beside = games.z.T @ mixed
        own = np.block([[games.z.T @ (curve[:, None] * games.z), beside[:, None]],
                        [beside[None, :], np.array([[tie_curve.sum()]])]])  # fmt: skip
    one, _, of_row = games.edges
    spread = [np.bincount(games.one, column, games.knots) - np.bincount(games.other, column, games.knots)
              for column in (pull, *columns)]  # fmt: skip
    made = Fit(
        games, precision, drift, theta, beta, value, np.asarray(np.bincount(of_row, curve, len(one)), np.float64),
        np.column_stack(spread[1:]) if columns else np.zeros((games.knots, 0)), own + RIDGE * np.eye(len(beta)),
    )  # fmt: skip
    change = made.step[:-1] * np.diff(theta)
    change[~np.isfinite(games.gap[:-1])] = 0.0
    held = made.prior * theta - np.append(change, 0.0) + np.append(0.0, change)
    penalty = 0.5 * float(theta @ held) + 0.5 * RIDGE * float(beta @ beta)
    return replace(made, value=value - penalty), spread[0] - held, lean - RIDGE * beta


# -- how sure: belief propagation -------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Beliefs:
    """Variances of abilities by belief propagation, and what follows from them."""

    variance: Floats
    """Of the ability at each knot."""
    along: Floats
    """Covariance of each knot with the next of its walk; 0 at the end."""
    determinant: float
    """log |H| of the abilities (Bethe)."""
    margins: Floats
    """Variance of the difference of each edge."""
    fit: Fit

    @classmethod
    def of(cls, fit: Fit) -> Beliefs:
        """Pass messages until they stay."""
        from concordant.kernels.walks import beliefs, factor

        games, weight = fit.games, np.maximum(fit.weight, 1e-300)
        one, other, _ = games.edges
        begin, slot = games.slots
        message = np.repeat(0.8 * weight, 2)
        precision, forward = np.empty(games.knots), np.empty(games.knots)
        args = [read_only(games.start, np.int64), fit.prior, fit.step, read_only(begin, np.int64),
                read_only(slot, np.int64), weight]  # fmt: skip
        arrays = [read_only(array, array.dtype) for array in args]
        beliefs(*arrays, message, precision, forward, 1e-5, 1000)
        near, far = message[::2], message[1::2]
        rest, beyond = precision[one] - near, precision[other] - far
        both = np.log(rest * beyond + weight * (rest + beyond)) - np.log(precision[one]) - np.log(precision[other])
        heard = np.bincount(one, near, games.knots) + np.bincount(other, far, games.knots)
        pivot = np.empty(games.knots)
        determinant = factor(arrays[1], arrays[2], heard, pivot) + float(both.sum())
        variance = 1.0 / precision
        margins = (rest + beyond) / (rest * beyond + weight * (rest + beyond))
        return cls(variance, fit.step / pivot * np.append(variance[1:], 0.0), determinant, margins, fit)

    @cached_property
    def beyond(self) -> float:
        """The next term of Laplace's expansion, each pair of knots by itself: Σ (5 κ₃² v³ / 24 − κ₄ v² / 8).

        κ₃ and κ₄ are the cumulants of the outcomes (±½, a tie 0), v the variance of the margin (Shun and McCullagh,
        JRSS B 57, 1995). Without it a drift that few games a walk show comes out too small.
        """
        games, fit = self.fit.games, self.fit
        margin = fit.theta[games.one] - fit.theta[games.other] + games.z @ fit.beta[: games.z.shape[1]]
        strength, (win, loss) = games.strength, win_probability(margin)
        if games.tied is not None:
            strength = strength + games.tied
            win, loss, tie = davidson_probabilities(margin, np.full(len(margin), fit.beta[-1]))
        mean = 0.5 * (win - loss)
        outcomes = [(win, 0.5 - mean), (loss, -0.5 - mean), *([] if games.tied is None else [(tie, -mean)])]
        second, cubic, quartic = np.zeros(len(mean)), np.zeros(len(mean)), np.zeros(len(mean))
        for chance, off in outcomes:
            square = off * off
            second += chance * square
            cubic += chance * square * off
            quartic += chance * square * square
        one, _, of_row = games.edges
        third, fourth = (np.bincount(of_row, strength * kappa, len(one)) for kappa in (cubic, quartic - 3 * second**2))
        return float((5.0 * third**2 * self.margins**3 / 24.0 - fourth * self.margins**2 / 8.0).sum())

    @cached_property
    def shared(self) -> Floats:
        """F, shape (items, modes): what items of a group share, with covariance F Fᵀ beside the ``variance``.

        With the weights W of the games of all times, degrees D = diag(W 1 + λ) and D^−½ W D^−½ = Σ (1 − μ) u uᵀ, a mode
        has the variance D^−½ u uᵀ D^−½ / μ, of which beliefs hold the part of μ = 1; F has the rest of those of μ < ½.
        """
        games, items = self.fit.games, len(self.fit.games.start) - 1
        one, other, _ = games.edges
        sides, weight = (games.item[one], games.item[other]), self.fit.weight
        table = coo_array((np.r_[weight, weight], (np.r_[sides], np.r_[sides[::-1]])), shape=(items, items)).tocsr()
        root = 1.0 / np.sqrt(np.asarray(table.sum(axis=1)).ravel() + self.fit.precision)
        level = diags_array(root) @ table @ diags_array(root)
        for modes in SLOW:
            most = min(modes, items - 2)
            if most < 1:
                return np.zeros((items, 0))
            close, u = eigsh(level, k=most, which="LA", v0=np.linspace(1.0, 2.0, items), tol=1e-3)
            if close.min() < 0.5 or most < modes:
                break
        slow = close > 0.5
        return np.asarray(u[:, slow] * root[:, None] * np.sqrt(1.0 / (1.0 - close[slow]) - 1.0))


# -- how sure: all items together, time by time ------------------------------------------------------------------------
def joint_walks(
    fit: Fit,
    extra: Floats | None = None,
    tell: Callable[[float, Floats], None] | None = None,
    since: float = -np.inf,
) -> float:
    """Return log |H| of the abilities; ``tell`` hears the exact covariance of all items at each time, backwards.

    It is called with the time and the covariance (items, items) by all judgments, 0 for items not judged by then.
    ``extra``: times beside those of knots; ``since``: the first time that is asked for.
    """
    games, items = fit.games, len(fit.games.start) - 1
    times = np.unique(np.concatenate([games.time, np.zeros(0) if extra is None else extra]))
    born = np.searchsorted(times, games.time[games.start[:-1]])
    one, other, _ = games.edges
    when = np.searchsorted(times, games.time[one])
    sorter = np.argsort(when, kind="stable")
    left, right, weight = games.item[one][sorter], games.item[other][sorter], np.maximum(fit.weight, 1e-300)[sorter]
    begin = np.searchsorted(when[sorter], np.arange(len(times) + 1))
    steps = fit.step[fit.step > 0]
    walks = float(np.log(steps).sum()) + int(games.first.sum()) * float(np.log(fit.precision))
    gap = fit.drift**2 * np.diff(times, prepend=times[0])
    if tell is None and items <= JOINT and compiles():
        return walks + _one_by_one(begin, gap, born, left, right, weight, 1.0 / fit.precision)
    covariance, diagonal = np.zeros((items, items)), np.arange(items)
    kept: list[tuple[Floats, Floats]] = []
    determinant = 0.0
    for at in range(len(times)):
        alive = diagonal[born < at]
        covariance[alive, alive] += gap[at]
        new = diagonal[born == at]
        covariance[new, new] = 1.0 / fit.precision
        asked = tell is not None and times[at] >= since
        before = covariance.copy() if asked else covariance
        rows = slice(begin[at], begin[at + 1])
        if rows.stop > rows.start:
            determinant += _told(covariance, np.flatnonzero(born <= at), left[rows], right[rows], weight[rows])
        if asked:
            kept.append((before, covariance.copy()))
    if tell is not None:
        _smoothed(times[len(times) - len(kept) :], born - (len(times) - len(kept)), kept, tell)
    return determinant + walks


def _told(covariance: Floats, known: Ints, one: Ints, other: Ints, weight: Floats) -> float:
    """Filter by the games of one time, each pair of items once; return the log-determinant of what they tell.

    By a matrix of the games, or of the items ``known`` by then, whichever is smaller.
    """
    items = len(covariance)
    if len(weight) <= len(known):
        beside = covariance[:, one] - covariance[:, other]
        inner = beside[one] - beside[other]
        inner[np.arange(len(weight)), np.arange(len(weight))] += 1.0 / weight
        root = cho_factor(inner, lower=True)
        covariance -= beside @ cho_solve(root, beside.T)
        return 2.0 * float(np.log(np.diag(root[0])).sum()) + float(np.log(weight).sum())
    curvature = -np.bincount(one * items + other, weight, items**2).reshape(items, items)
    curvature += curvature.T
    curvature[np.arange(items), np.arange(items)] = -curvature.sum(axis=1)
    grid = np.ix_(known, known)
    half = cholesky(covariance[grid], lower=True)
    root = cholesky(np.eye(len(known)) + half.T @ curvature[grid] @ half, lower=True)
    rest = solve_triangular(root, half.T, lower=True)
    covariance[grid] = rest.T @ rest
    return 2.0 * float(np.log(np.diag(root)).sum())


def _one_by_one(begin: Ints, gap: Floats, born: Ints, one: Ints, other: Ints, weight: Floats, first: float) -> float:
    """The log-determinant of what games tell of few items, a game after the other."""
    from concordant.kernels.walks import joint

    new = np.argsort(born, kind="stable")
    new_start = np.searchsorted(born[new], np.arange(len(gap) + 1))
    args = [(begin, np.int64), (gap, np.float64), (new_start, np.int64), (new, np.int64), (one, np.int64),
            (other, np.int64), (weight, np.float64)]  # fmt: skip
    return float(joint(*(read_only(array, kind) for array, kind in args), first, np.zeros((len(born), len(born)))))


def _smoothed(
    times: Floats,
    born: Ints,
    kept: list[tuple[Floats, Floats]],
    tell: Callable[[float, Floats], None],
) -> None:
    smooth = kept[-1][1]
    tell(float(times[-1]), smooth)
    for at in range(len(times) - 2, -1, -1):
        alive = np.flatnonzero(born <= at)
        grid = np.ix_(alive, alive)
        predicted, filtered = kept[at + 1][0][grid], kept[at][1][grid]
        gain = cho_solve(cho_factor(predicted, lower=True), filtered).T
        found = np.zeros_like(smooth)
        found[grid] = filtered + gain @ (smooth[grid] - predicted) @ gain.T
        smooth = found
        tell(float(times[at]), smooth)


# -- how far abilities spread, and how fast they move ----------------------------------------------------------------
JOINT = 20
"""Up to so many items determinants are exact."""
SLOW = (8, 64)
"""Modes that are looked at: so many first, and more where all of those are slow."""
CLOSE, LIKE, ALIKE, TRIED = 0.02, 0.01, 8, 80
"""Steps of the logarithms of both numbers at which the search ends, and what so many places have to gain in evidence
for it to go on; places it tries at most."""
SOON, CHEAPER = 5, (0.75, 0.9)
"""Places before which all searches look alike, and what later ones cost beside the last of these and of others: they
begin nearer."""
USUAL, SURE, UNSURE = 26.0, 8, (2.0, 1.5, 1.3)
"""Places that a search for two numbers usually tries, before how many its own say only half of that, and by which
factor what they say of the rest may be wrong before these, before twice as many, and later."""
DRAWN = 100_000
"""Distinct judgments by which precision and drift are chosen where there are more: fewer games of the same walks."""


def evidence(fit: Fit, known: Beliefs | None = None, joint: bool = False) -> float:
    """Return the log marginal likelihood; exact in the determinant for few items or where ``joint``."""
    known = Beliefs.of(fit) if known is None else known
    small = joint or len(fit.games.start) - 1 <= JOINT
    return fit.evidence(joint_walks(fit) if small else known.determinant) + known.beyond


def chosen(games: Games, precision: float | None, drift: float | None) -> tuple[float, float]:
    """Return λ and δ, those that are None by the marginal likelihood."""
    from scipy.optimize import minimize

    if precision is not None and drift is not None:
        return precision, drift
    span = float(np.ptp(games.time))
    if span == 0.0 and drift is None:
        raise UsageError("all judgments were made at one time, which does not say how abilities move; give a drift")
    part = _drawn(games)
    free = [value is None for value in (precision, drift)]
    held: list[Fit] = []
    tried: list[tuple[Floats, float]] = []
    passed: list[float] = []
    calm: list[float] = []
    """What is to be least where abilities stay, once that was looked at."""

    def numbers(x: Floats) -> tuple[float, float]:
        values = iter(np.exp(x).tolist())
        return (
            float(next(values)) if precision is None else precision,
            float(next(values)) if drift is None else drift,
        )

    def lost(x: Floats) -> float:
        fit = fitted(part, *numbers(x), held[-1] if held else None)
        held[:] = [fit]
        tried.append((x - begin, -evidence(fit)))
        if len(tried) == SOON and len(begin) == 2:
            best = begin + min(tried, key=lambda one: one[1])[0]
            calm[:] = [-evidence(fitted(part, numbers(best)[0], float(np.exp(low[1])), fit))]
        passed.append(told.worked)
        some, rest = min(len(tried) - 1, SOON), _to_go(tried, *calm)
        told.reach(len(tried), len(tried) + rest)
        if some:
            left = CHEAPER[len(tried) >= SOON] * rest * (passed[-1] - passed[-1 - some]) / some
            told.foresee(left / (wide := UNSURE[min(len(tried) // SURE, 2)]), left * wide)
        return tried[-1][1]

    shortest = float(np.diff(np.unique(games.time)).min(initial=span or 1.0))
    begin = np.log([1.0, 0.5 / np.sqrt(span or 1.0)])[free]
    low, high = np.log([1e-3, 1e-4 / np.sqrt(span or 1.0)])[free], np.log([1e4, 10.0 / np.sqrt(shortest)])[free]
    options = {"initial_tr_radius": 1.0, "final_tr_radius": CLOSE, "maxfev": TRIED}

    def ended(_: Floats) -> None:
        values = [value for _, value in tried]
        if len(values) > 2 * ALIKE and min(values[:-ALIKE]) - min(values) < LIKE:
            raise StopIteration

    with stage("prior and drift") as told:
        bounds = list(zip(low, high, strict=True))
        minimize(lost, begin, method="COBYQA", bounds=bounds, options=options, callback=ended)
    return numbers(begin + min(tried, key=lambda one: one[1])[0])


def _to_go(tried: list[tuple[Floats, float]], calm: float = np.nan) -> float:
    """About how many places the search still tries, by the best of them and how far these are apart.

    ``tried``: places from where it began, with what is to be least; ``calm``: that without drift. Of one number it
    tries 7 or 8. Of two 13 to 18, and more the farther it goes; where abilities hardly move 30 to 50, as all is alike
    there. The place without drift, looked at once, tells the one from the other.
    """
    number, free = len(tried), len(tried[0][0])
    if free == 1 or number < SOON:
        return max((8.0 if free == 1 else USUAL) - number, 1.0)
    (best, least), (second, _), (third, most) = sorted(tried, key=lambda one: one[1])[:3]
    wide = max(np.abs(second - best).max(), np.abs(third - best).max()) / CLOSE
    apart = max(np.log(max(wide, 1.0)), 0.5 * np.log(max((most - least) / LIKE, 1.0)))
    still = float(expit(3.0 * (1.5 - (calm - least))))  # how surely abilities stay
    reach = max(float(np.abs(best).max()) - 1.0, 0.0)
    rest = still * max(40 - number, 2 * apart) + (1 - still) * max(17 + 6 * reach - number, 1.5 * apart)
    if number < SURE:
        rest = np.sqrt(rest * (USUAL - number))
    return float(np.clip(rest, 1.0, max(TRIED - number, 1.0)))


def drift_test(fit: Fit, precision: float | None) -> tuple[float, float]:
    """Return twice the log of the ratio of marginal likelihoods, with this drift and (nearly) none, and its p-value.

    Without drift the precision is chosen anew where None is given. The drift has to be that of the largest marginal
    likelihood. No drift lies at the edge of what is possible: the law is an even
    mixture of 0 and χ² with 1 degree of freedom (Self and Liang, JASA 82, 1987).
    """
    part = _drawn(fit.games)
    none = 1e-4 / np.sqrt(float(np.ptp(fit.games.time)) or 1.0)
    still = evidence(fitted(part, *chosen(part, precision, none)))
    ratio = max(2 * (evidence(fitted(part, fit.precision, fit.drift)) - still), 0.0)
    return ratio, 0.5 * float(chdtrc(1, ratio)) if ratio > 0 else 1.0


def _drawn(games: Games) -> Games:
    """Some of the judgments, drawn evenly, between the knots that they touch."""
    if len(games.one) <= DRAWN:
        return games
    rows = np.sort(np.random.default_rng(0).choice(len(games.one), DRAWN, replace=False))
    knots, place = np.unique(np.concatenate([games.one[rows], games.other[rows]]), return_inverse=True)
    items, item = np.unique(games.item[knots], return_inverse=True)
    return Games(
        np.searchsorted(item, np.arange(len(items) + 1)), games.time[knots], place[: len(rows)], place[len(rows) :],
        games.above[rows], games.below[rows], None if games.tied is None else games.tied[rows], games.z[rows],
    )  # fmt: skip

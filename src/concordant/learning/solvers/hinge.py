"""The hinge loss on edges, by a primal–dual interior-point method: exact to a duality gap, work linear in the edges.

    primal   min over θ      (λ/2)‖θ‖² + Σ_e w_e max(0, b_e − d_e'θ)
    dual     max over 0 ≤ a ≤ w   Σ_e a_e b_e − ‖Σ_e a_e d_e‖² / (2λ)

with d_e = x_winner − x_loser and b_e = 1 + h_e. With slacks ξ, s = Dθ + ξ − b ≥ 0, their multipliers w − a and a, each
step solves one system (λI + D'cD) Δθ, c_e > 0: the matrix of a Newton step on a smooth loss (Mehrotra 1992; Nocedal &
Wright 2006, chapter 16).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.learning.solvers.edge_problem import Determined, EdgeProblem
from concordant.learning.solvers.least_squares import LinearFit
from concordant.preferences.status import Status

Floats = NDArray[np.float64]
WIDEST = 8_000
"""Most features: the system is dense."""
NEGLIGIBLE = 1e-8
"""An objective below this share of the first one is measured by that: it reaches 0 on separable data without ridge."""
SHORTER = 0.995
"""Share of the way to the boundary that a step may go."""


def fit_hinge(problem: EdgeProblem, *, tolerance: float, max_iterations: int) -> LinearFit:
    """Minimise; 'converged' when the duality gap is at most ``tolerance`` times the objective (+ 1e-8 of that at 0).

    ``gap`` bounds how far the objective at θ is above its minimum. Without ridge it bounds this over all θ of at most
    twice the norm of the one returned; there may then be many minimisers. ``gradient`` is the largest entry of
    λθ − Σ a_e d_e, 0 at the minimum. Errors (UsageError): penalised values, more than 8,000 features.
    """
    if len(problem.unit):
        raise UsageError("hinge with a penalty on values is not minimised here; take squared-hinge")
    if problem.width > WIDEST:
        raise UsageError(f"hinge takes at most {WIDEST:,} features, not {problem.width:,}; take squared-hinge")
    if not len(problem.winner):
        return LinearFit(np.zeros(problem.width), problem.ridge, Status.CONVERGED, 0.0, np.zeros(()), gap=0.0)
    determined = Determined(problem, WIDEST)
    state = _Interior.begin(problem)
    best = found = state.certified()
    iterations = 0
    start = NEGLIGIBLE * best.value
    # the complementarity μ is nearly the gap; far below the objective rounding has the last word
    while (
        best.gap > tolerance * (best.value + start) and iterations < max_iterations and state.mu > 1e-18 * found.value
    ):
        state = state.next(found.residual, determined)
        iterations += 1
        found = state.certified()
        best = min(best, found, key=lambda point: point.gap)
    ended = Status.CONVERGED if best.gap <= tolerance * (best.value + start) else Status.STOPPED
    slope = float(np.abs(best.residual).max(initial=0.0))
    value = np.asarray(best.value)
    return LinearFit(
        best.theta, problem.ridge, ended, slope, value, determined.free, iterations=iterations, gap=best.gap
    )


@dataclass(frozen=True, eq=False)
class _Certified:
    """A primal point, its objective, the distance to the dual's, and λθ − Dᵀa."""

    theta: Floats
    value: float
    gap: float
    residual: Floats


@dataclass(frozen=True, eq=False)
class _Change:
    """A change of everything: θ, Dθ, a (and, with the opposite sign, w − a), s and ξ."""

    theta: Floats
    gap: Floats
    dual: Floats
    short: Floats
    xi: Floats


@dataclass(frozen=True, eq=False)
class _Interior:
    """A point strictly inside: s > 0, ξ > 0 and 0 < a < w for each edge."""

    problem: EdgeProblem
    theta: Floats
    gap: Floats
    """Dθ."""
    short: Floats
    """s, what the margin and ξ leave over."""
    xi: Floats
    dual: Floats
    rest: Floats
    """w − a, kept by itself: it may be far smaller than either."""

    @classmethod
    def begin(cls, problem: EdgeProblem) -> _Interior:
        wanted = 1.0 + problem.offset
        xi = np.maximum(wanted, 0.0) + 1.0
        half = 0.5 * problem.weight
        return cls(problem, np.zeros(problem.width), np.zeros(len(xi)), xi - wanted, xi, half, half)

    @property
    def mu(self) -> float:
        """Σ (a s + (w − a) ξ): the gap, were λθ = Dᵀa."""
        return float(self.dual @ self.short + self.rest @ self.xi)

    def certified(self) -> _Certified:
        """Both objectives at this point; every error of a step is in their distance."""
        problem, ridge = self.problem, self.problem.ridge
        wanted = 1.0 + problem.offset
        force = problem.back(problem.to_units(self.dual))
        value = 0.5 * ridge * (self.theta @ self.theta) + problem.weight @ np.maximum(wanted - self.gap, 0.0)
        size = np.linalg.norm(force)
        spent = size**2 / (2 * ridge) if ridge > 0 else 2 * np.linalg.norm(self.theta) * size
        gap = float(value - (self.dual @ wanted - spent))
        return _Certified(self.theta, float(value), max(gap, 0.0), ridge * self.theta - force)

    def next(self, residual: Floats, determined: Determined) -> _Interior:
        """One predictor–corrector step."""
        share = 1.0 / (self.xi / self.rest + self.short / self.dual)
        solve = determined.inverse(self.problem.hessian(share, np.zeros(self.problem.units)))
        by_short, by_xi = self.dual * self.short, self.rest * self.xi
        ahead = self._change(solve, share, residual, -by_short, -by_xi)
        length = self._room(ahead)
        reached = self._moved(ahead, length).mu
        aim = (reached / self.mu) ** 3 * self.mu / (2 * len(share))
        change = self._change(
            solve,
            share,
            residual,
            aim - by_short - ahead.dual * ahead.short,
            aim - by_xi + ahead.dual * ahead.xi,
        )
        return self._moved(change, min(1.0, SHORTER * self._room(change)))

    def _change(
        self, solve: Callable[[Floats], Floats], share: Floats, residual: Floats, to_short: Floats, to_xi: Floats
    ) -> _Change:
        """Solve the linearised conditions a s = …, (w − a) ξ = …, λθ = Dᵀa, s = Dθ + ξ − b."""
        problem = self.problem
        right = to_short / self.dual - to_xi / self.rest
        theta = solve(problem.back(problem.to_units(share * right)) - residual)
        gap = problem.gaps(problem.times(theta))
        dual = share * (right - gap)
        short = (to_short - self.short * dual) / self.dual
        return _Change(theta, gap, dual, short, (to_xi + self.xi * dual) / self.rest)

    def _room(self, change: _Change) -> float:
        """The longest step, of at most 1/SHORTER, that leaves nothing negative."""
        pairs = ((self.short, change.short), (self.xi, change.xi), (self.dual, change.dual), (self.rest, -change.dual))
        fastest = max(float((-move / now).max()) for now, move in pairs)
        return min(1.0, 1.0 / fastest) if fastest > SHORTER else 1.0 / SHORTER

    def _moved(self, change: _Change, length: float) -> _Interior:
        return _Interior(
            self.problem,
            self.theta + length * change.theta,
            self.gap + length * change.gap,
            self.short + length * change.short,
            self.xi + length * change.xi,
            self.dual + length * change.dual,
            self.rest - length * change.dual,
        )

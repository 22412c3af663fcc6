"""Linear scorers on any edge surrogate: Newton's method whose work is linear in the edges, or the closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.learning.solvers.edge_problem import Determined, EdgeProblem, iterated
from concordant.learning.solvers.hinge import fit_hinge
from concordant.learning.solvers.least_squares import LinearFit
from concordant.losses.objective import Objective
from concordant.preferences.status import Status

Floats = NDArray[np.float64]
WIDE = 2_000
"""Beyond so many features the Newton system is solved by conjugate gradients instead of a factorisation."""
SHRINK, HALVINGS = 1e-4, 60
ROUNDING = 1e-14
RECEDING, TAIL = 1e-8, 1e-10
"""A long step that lowers no gap by more than this share of what it raises another leads to infinity; it is followed
until what it still gains is this share of the first objective."""


def fit_edges(
    X: NDArray[Any],
    objective: Objective,
    *,
    ridge: float,
    rows: NDArray[np.integer[Any]] | None = None,
    weight: NDArray[Any] | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 200,
) -> LinearFit:
    """Return the θ that minimises Σ_g weight_g · objective_g(X[rows]θ) + (λ/2)‖θ‖², λ the ``ridge``.

    Shapes: ``X`` (rows, features) in single or double precision, ``rows`` (nodes,) the row of X of each node of the
    objective (default: in order), ``weight`` (graphs,), default 1. With weights n̂_q/n this is the empirical risk (19).

    The linear φ with the square penalty has a closed form (ICML (14), (15); here with (λ/2)‖θ‖²). Smooth φ are
    minimised by Newton's method with a line search, the hinge by a method with a duality gap (``gap``). The fit is
    'converged' when the decrease that the last step promised is below ``tolerance``² of the objective, so θ is right
    to ``tolerance`` at least in the norm of the curvature. Without ridge: directions that change no score difference
    are set to 0 and counted (``undetermined``); on separable data logistic and exponential have no minimiser, the
    status is 'infimum not attained' and θ is far along a direction in which the objective falls for ever, 1e-10 of
    its first value above the infimum.

    Errors: UsageError for shapes that do not fit, negative weights, a linear φ without lower bound, a hinge with
    penalised values; InputError for features that are not finite.

    >>> from concordant.preferences.graphs import Batch
    >>> from concordant.preferences.preferences import Preferences
    >>> from concordant.losses.surrogates import surrogate
    >>> votes = Preferences.from_comparisons(["x", "x", "x", "y"], ["y", "y", "y", "x"])
    >>> loss = surrogate("ranknet").objective(Batch.whole(votes))
    >>> fit = fit_edges(np.array([[1.0], [0.0]]), loss, ridge=0.0)
    >>> fit.theta.round(4).tolist(), fit.status  # log 3
    ([1.0986], 'converged')
    """
    if objective.phi.piecewise_linear:
        objective = objective.as_hinges()
    problem = EdgeProblem.of(X, objective, ridge, rows, weight)
    if not tolerance > 0:
        raise UsageError(f"tolerance must be positive, not {tolerance!r}")
    if problem.phi.piecewise_linear:
        return fit_hinge(problem, tolerance=tolerance, max_iterations=max_iterations)
    return _newton(problem, tolerance, max_iterations)


@dataclass(eq=False)
class _Point:
    """Where the search stands: θ, the gaps of the edges, the penalised values, and the objective there."""

    problem: EdgeProblem
    theta: Floats
    gap: Floats
    pulled: Floats

    def __post_init__(self) -> None:
        self.value = self.problem.value(self.gap, self.pulled, self.theta)

    def gradient(self) -> Floats:
        of_units = self.problem.slopes(self.gap, self.pulled)
        return self.problem.back(of_units) + self.problem.ridge * self.theta

    def moved(self, length: float, step: _Step) -> _Point:
        theta = self.theta + length * step.theta
        return _Point(self.problem, theta, self.gap + length * step.gap, self.pulled + length * step.pulled)


@dataclass(frozen=True, eq=False)
class _Step:
    """A direction in θ and what it does to gaps and penalised values."""

    theta: Floats
    gap: Floats
    pulled: Floats

    @classmethod
    def of(cls, problem: EdgeProblem, theta: Floats) -> _Step:
        alpha = problem.times(theta)
        return cls(theta, problem.gaps(alpha), alpha[problem.unit])


def _newton(problem: EdgeProblem, tolerance: float, most: int) -> LinearFit:
    _check_bounded(problem)
    square = problem.penalty.name == "square" or not len(problem.unit)
    quadratic = problem.phi.linear and square and problem.width <= WIDE
    point = _Point(problem, np.zeros(problem.width), np.zeros(len(problem.winner)), np.zeros(len(problem.unit)))
    start, gradient = point.value, point.gradient()
    determined = Determined(problem, WIDE)
    ended, iterations = Status.STOPPED, 0
    while iterations < (1 if quadratic else most):
        direction = _direction(problem, determined, point, gradient)
        fall = float(gradient @ direction)
        step = _Step.of(problem, direction)
        receding = _recedes(problem, step)
        last = -fall <= (TAIL * abs(start) if receding else tolerance**2 * _scale(point.value, start))
        point = point.moved(1.0, step) if quadratic else _searched(point, step, fall)
        iterations += 1
        gradient = point.gradient()
        if last:
            ended = Status.NOT_ATTAINED if receding else Status.CONVERGED
            break
    if quadratic:
        ended = Status.CLOSED_FORM
    slope = float(np.abs(gradient).max(initial=0.0))
    none = np.zeros(()) if len(problem.unit) else None
    steps = 0 if quadratic else iterations
    return LinearFit(
        point.theta, problem.ridge, ended, slope, np.asarray(point.value), determined.free, none, iterations=steps
    )


def _scale(value: float, start: float) -> float:
    """What a decrease is small against; an objective that reaches 0 is measured by where it began as well."""
    return abs(value) + 1e-16 * abs(start)


def _searched(point: _Point, step: _Step, fall: float) -> _Point:
    """Halve the step until the objective falls enough (Armijo); an overflow is never enough."""
    length = 1.0
    for _ in range(HALVINGS):
        with np.errstate(over="ignore", invalid="ignore"):
            found = point.moved(length, step)
        if found.value <= point.value + SHRINK * length * fall + ROUNDING * abs(point.value):
            return found
        length *= 0.5
    return point


def _recedes(problem: EdgeProblem, step: _Step) -> bool:
    """Whether the objective falls for ever along the step: no ridge, no pull, and no gap gets smaller.

    Newton steps towards infinity stay long (about 1 where φ ≈ e^(−t)), those towards a minimiser do not.
    """
    if problem.ridge > 0 or len(problem.unit) or not len(step.gap):
        return False
    if problem.phi.ends or not problem.phi.bounded:
        return False
    return float(step.gap.max()) > 0.5 and float(step.gap.min()) >= -RECEDING * float(step.gap.max())


def _check_bounded(problem: EdgeProblem) -> None:
    """Raise for a linear φ without ridge, unless the values of all items of edges are penalised."""
    if problem.phi.bounded or problem.ridge > 0:
        return
    held = np.zeros(problem.units, bool)
    held[problem.unit] = True
    if not (held[problem.winner].all() and held[problem.loser].all()):
        raise UsageError(f"the {problem.phi.name} loss has no lower bound without a ridge or a penalty on values")


def _direction(problem: EdgeProblem, determined: Determined, point: _Point, gradient: Floats) -> Floats:
    """−H⁻¹ gradient."""
    of_edges, of_units = problem.bends(point.gap, point.pulled)
    if problem.width > WIDE:
        diagonal = problem.diagonal(of_edges, of_units)
        return -iterated(lambda v: problem.curved(v, of_edges, of_units), diagonal, gradient)
    return -determined.inverse(problem.hessian(of_edges, of_units))(gradient)

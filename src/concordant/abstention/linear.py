"""Surrogates minimised over linear scorers of bounded norm: deterministic, with a certified lower bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.abstention.pairs import AllPairs, ListedPairs, features
from concordant.abstention.points import conjugate, phi_named
from concordant.errors import ConcordantError, UsageError
from concordant.preferences.status import Status

Floats = NDArray[np.float64]


def project(v: ArrayLike, radius: float, q: float) -> Floats:
    """Return the point of {‖w‖_q ≤ radius} that is nearest to v in the ℓ2 norm, for q = 1, 2 or ∞; exact.

    ``v`` is a vector or a matrix whose rows are projected each by itself.

    >>> project([3.0, 4.0], 2.5, 2).tolist(), project([3.0, -0.5], 1.0, math.inf).tolist()
    ([1.5, 2.0], [1.0, -0.5])
    >>> project([3.0, 2.5], 1, 1).tolist()
    [0.75, 0.25]

    Source: for q = 1, Duchi, Shalev-Shwartz, Singer and Chandra (2008), figure 1.
    """
    if not radius > 0 or q not in (1, 2, math.inf):
        raise UsageError(f"there are balls of q = 1, 2 and inf with a positive radius, not q = {q}, radius {radius}")
    x = np.asarray(v, np.float64)
    if q == math.inf:
        return np.clip(x, -radius, radius)
    if q == 2:
        length = np.linalg.norm(x, axis=-1, keepdims=True)
        return np.asarray(x * np.divide(radius, length, where=length > radius, out=np.ones_like(length)))
    size = np.abs(x)
    over = np.cumsum(-np.sort(-size, axis=-1), axis=-1) - radius
    cut = (over / np.arange(1, x.shape[-1] + 1)).max(-1, keepdims=True, initial=0.0)  # the largest cut of any head
    return np.asarray(np.sign(x) * np.maximum(size - cut, 0.0))


@dataclass(frozen=True)
class LinearFit:
    """A linear scorer and how it was found; ``w`` (features,). Its intercept is 0: no pair can see it.

    Calling it with features (items, features) gives the scores (items,).
    """

    w: Floats
    value: float
    """Surrogate loss of w."""
    lower: float
    """No scorer of the class has a lower loss than this; −∞ where none is proven (sigmoid)."""
    residual: float
    """Norm of the projected gradient (w − P(w − η∇))/η at the end (hinge: of its rounded form)."""
    steps: int
    status: str
    """"converged": value − lower ≤ tolerance; "local minimum" (sigmoid, which is not convex): residual ≤ tolerance;
    else "stopped before convergence"."""

    def __call__(self, X: ArrayLike) -> Floats:
        """Return the scores of rows of features."""
        return np.asarray(np.asarray(X, np.float64) @ self.w)


def minimise_linear(
    X: ArrayLike,
    pairs: AllPairs | ListedPairs,
    *,
    phi: str,
    W: float,
    norm: float | str = "inf",
    k: float = 1.0,
    tolerance: float = 1e-5,
    steps: int = 2000,
) -> LinearFit:
    """Minimise the mean of Φ(w·(x_i − x_j)) over ‖w‖_q ≤ W, where ``norm`` is the p of the distances, 1/p + 1/q = 1.

    ``pairs`` are ``AllPairs.of(y, X, gamma=…, norm=…)`` or ``ListedPairs.of(items, higher, lower)``. Accelerated
    projected gradient with restarts, from w = 0; nothing is drawn at random. The lower bound of the convex Φ is
    F(w) − max_{‖v‖_q ≤ W} ∇F·(w − v) = F(w) − ∇F·w − W‖∇F‖_p; the hinge is rounded more and more finely
    (by μ at its corner, an error ≤ μ/2 that the bound counts). At most ``steps`` steps for each rounding. The sigmoid
    starts from 0 and from the minimiser of the exponential, and the better end is returned.

    Errors: UsageError for W that is not a positive number, unknown φ or norm and shapes; InputError for features that
    are not finite; ConcordantError when the loss overflows (W is too large for the scale of the features).

    >>> found = minimise_linear([[0.0], [1.0]], AllPairs.of([0, 1]), phi="exponential", W=2.0)
    >>> found.w.tolist(), round(found.value, 4), found.status  # e^-2
    ([2.0], 0.1353, 'converged')
    """
    if not (math.isfinite(W) and W > 0):
        raise UsageError(f"W must be a positive number, not {W}")
    if tolerance <= 0 or steps < 1:
        raise UsageError(f"tolerance must be positive and steps at least 1, not {tolerance} and {steps}")
    problem = _Problem(features(X, pairs.items), pairs, phi, k, float(W), norm)
    start = np.zeros(problem.x.shape[1])
    if phi == "sigmoid":
        near = minimise_linear(X, pairs, phi="exponential", W=W, norm=norm, tolerance=tolerance, steps=steps).w
        ends = [problem.descend(begin, 0.0, tolerance, steps) for begin in (start, near)]
        w, taken, residual = min(ends, key=lambda end: problem.at(end[0], 0.0)[0])
        ended = Status.LOCAL if residual <= tolerance else Status.STOPPED
        return LinearFit(w, problem.at(w, 0.0)[0], -math.inf, residual, taken, ended.word)
    mu = 0.25 if phi == "hinge" else 0.0
    w, best, lower, total = start, start, -math.inf, 0
    while True:
        w, taken, residual = problem.descend(w, mu, max(mu / 4, tolerance / 2), steps)
        total += taken
        lower = max(lower, problem.lower(w, mu))
        best = min((best, w), key=lambda v: problem.at(v, 0.0)[0])
        value = problem.at(best, 0.0)[0]
        done = value - lower <= tolerance
        if done or mu <= tolerance / 2:
            ended = Status.CONVERGED if done else Status.STOPPED
            return LinearFit(best, value, min(lower, value), residual, total, ended.word)
        mu /= 4


class _Problem:
    """The loss as a function of w, with a rounded hinge where μ > 0."""

    def __init__(
        self, x: Floats, pairs: AllPairs | ListedPairs, phi: str, k: float, W: float, norm: float | str
    ) -> None:
        self.x, self.pairs, self.phi, self.W = x, pairs, phi_named(phi, k), W
        self.p, self.q = conjugate(norm)

    def at(self, w: Floats, mu: float) -> tuple[float, Floats]:
        with np.errstate(over="ignore", invalid="ignore"):
            value, gradient = self.pairs.loss(self.x @ w, self.phi, mu)
            slope = gradient @ self.x
            finite = math.isfinite(value) and math.isfinite(slope @ slope)
        return (value, slope) if finite else (math.inf, np.zeros_like(w))

    def lower(self, w: Floats, mu: float) -> float:
        value, slope = self.at(w, mu)
        return float(value - slope @ w - self.W * np.linalg.norm(slope, self.p))

    def descend(self, w: Floats, mu: float, tolerance: float, steps: int) -> tuple[Floats, int, float]:
        """Steps until the loss (rounded by μ) is within the tolerance of its minimum; sigmoid: the residual is."""
        value, slope = self.at(w, mu)
        if not math.isfinite(value):
            raise ConcordantError("the loss is not finite at the start; take a smaller W, or scale the features")
        last, momentum, step, residual = w, 1.0, self.W / max(float(np.linalg.norm(slope)), 1e-12), math.inf
        for taken in range(steps):
            ahead = (
                w if momentum == 1.0 else project(w + (momentum - 1.0) / (momentum + 2.0) * (w - last), self.W, self.q)
            )
            height, pull = (value, slope) if momentum == 1.0 else self.at(ahead, mu)
            new, new_value, new_slope, step = self._step(ahead, height, pull, mu, step)
            if new_value > value and momentum > 1.0:
                momentum = 1.0  # start again from w without momentum
                continue
            residual = float(np.linalg.norm(new - ahead)) / step
            if new_value > value + _noise(value, mu):
                return w, taken, residual  # rounding has the last word
            last, w, value, slope = w, new, new_value, new_slope
            momentum += 1.0
            step *= 1.1
            gap = float(slope @ w) + self.W * float(np.linalg.norm(slope, self.p))
            if (gap if self.phi.convex else residual) <= tolerance:
                return w, taken + 1, residual
        return w, steps, residual

    def _step(
        self, ahead: Floats, height: float, pull: Floats, mu: float, step: float
    ) -> tuple[Floats, float, Floats, float]:
        """The projected gradient step that the quadratic model of its length bounds."""
        for _ in range(100):
            new = project(ahead - step * pull, self.W, self.q)
            move = new - ahead
            value, slope = self.at(new, mu)
            model = height + float(pull @ move) + float(move @ move) / (2 * step)
            if value <= model + _noise(height, mu):
                break
            step /= 2
        return new, value, slope, step


def _noise(value: float, mu: float) -> float:
    """Rounding of a value; a finely rounded hinge is a difference of squares divided by 2μ."""
    return 4e-15 * max(1.0, abs(value)) / max(min(1.0, 2 * mu), 1e-9) if mu else 1e-15 * abs(value)

"""The composite stochastic gradient method (25) of AoS on the U-statistic risk (19): cost per step free of n.

Step sizes η_t of the stochastic method: c/(t + t0) under strong convexity, c/√t without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, did_you_mean
from concordant.learning.solvers.least_squares import LinearFit, checked_ridge
from concordant.preferences.sampling import whole_seed
from concordant.preferences.status import Status
from concordant.progress import steps as told

RULES = ("1/t", "1/sqrt(t)")


class Curved(Protocol):
    """A loss of samples that knows its curvature."""

    @property
    def largest(self) -> float:
        """Largest curvature of a sample."""

    @property
    def smallest(self) -> float:
        """Smallest curvature of the mean."""


class Source(Curved, Protocol):
    """A loss that is the mean of those of random samples."""

    @property
    def width(self) -> int:
        """Number of features."""

    def samples(self, number: int, rng: np.random.Generator) -> Iterator[Any]:
        """Yield so many samples."""

    def loss(self, theta: NDArray[np.float64], sample: Any) -> tuple[float, NDArray[np.float64]]:
        """Loss and gradient of one sample."""


@dataclass(frozen=True)
class StepSizes:
    """η_t = c/(t + t0) or c/√(t + t0), t = 1, 2, …

    >>> StepSizes("1/t", 2.0, 1.0).lengths(3).tolist()
    [1.0, 0.6666666666666666, 0.5]
    """

    rule: str
    scale: float
    shift: float

    @classmethod
    def of(cls, loss: Curved, ridge: float, rule: str, scale: float | str, shift: float | str) -> StepSizes:
        """Fill in what is 'auto': no step longer than 1/L; for '1/t' c = 1/σ, σ the ridge and the smallest curvature.

        Errors (UsageError): an unknown rule, numbers out of range, '1/t' where nothing is known to be strongly convex.
        """
        if rule not in RULES:
            raise UsageError(f"unknown step_size {rule!r}; {did_you_mean(str(rule), RULES)}")
        for name, value, least in (("scale", scale, "above 0"), ("shift", shift, "of at least 0")):
            good = value == "auto" if isinstance(value, str) else np.isfinite(value) and (value > 0 or name == "shift")
            if not good or (not isinstance(value, str) and value < 0):
                raise UsageError(f"{name} must be 'auto' or a number {least}, not {value!r}")
        decreasing = rule == "1/t"
        if isinstance(scale, str):
            bend = ridge + loss.smallest if decreasing else loss.largest
            if decreasing and bend <= 0:
                raise UsageError(
                    "step_size '1/t' needs strong convexity: give a ridge above 0 or a scale, or take '1/sqrt(t)'"
                )
            scale = 1.0 / bend if bend > 0 else 1.0
        if isinstance(shift, str):
            shift = scale * loss.largest if decreasing else 0.0
        return cls(rule, float(scale), float(shift))

    def lengths(self, steps: int) -> NDArray[np.float64]:
        """η_1 … η_steps."""
        t = np.arange(1.0, steps + 1.0) + self.shift
        return np.asarray(self.scale / (t if self.rule == "1/t" else np.sqrt(t)), np.float64)


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
AVERAGES = ("plain", "suffix", "weighted", "none")


@dataclass(frozen=True, eq=False)
class Trace:
    """θ at chosen iterations. Shapes: ``iteration`` (n,), ``current`` and ``average`` (n, features)."""

    iteration: Ints
    """Number of steps made."""
    current: Floats
    average: Floats


@dataclass(frozen=True, eq=False)
class StochasticFit(LinearFit):
    """Where the steps led. ``theta`` is the average asked for; ``gradient`` and ``value`` are estimates.

    ``gradient`` is the largest entry of the mean gradient sampled in the second half, ``value`` the mean loss sampled
    there and the penalty of θ (AoS §6.1: an estimate of an upper bound on the risk).
    """

    last: Floats = field(default_factory=lambda: np.zeros(0))
    """θ after the last step."""
    last_step: float = 0.0
    """Length of the last step."""
    trace: Trace | None = None
    losses: Floats = field(default_factory=lambda: np.zeros(0))
    """Loss of the sample of each step before it was made, without the penalty; shape (steps,)."""
    scale: float = 0.0
    """c of the step sizes."""
    shift: float = 0.0
    """t0 of the step sizes."""

    @property
    def status(self) -> str:
        """How many steps were made."""
        return f"stopped after {self.iterations:,} stochastic steps"


def stochastic_fit(
    source: Source,
    *,
    ridge: float = 0.0,
    steps: int = 100_000,
    step_size: str = "1/sqrt(t)",
    scale: float | str = "auto",
    shift: float | str = "auto",
    radius: float | None = None,
    average: bool | str = True,
    batch: int = 1,
    seed: int = 0,
    checkpoints: Sequence[int] | None = None,
) -> StochasticFit:
    """Minimise E φ(Zθ, s) + (λ/2)‖θ‖² over ‖θ‖ ≤ ``radius`` by AoS (25), from θ = 0.

    θ ← argmin over the ball of ⟨θ, g⟩ + (λ/2)‖θ‖² + ‖θ − θ_t‖²/(2η_t), g the mean gradient of φ at θ_t over ``batch``
    samples of the ``source``: the projection of (θ_t − η_t g)/(1 + η_t λ), since what is minimised is round.

    ``step_size`` '1/sqrt(t)' has η_t = c/√t and needs convexity only; '1/t' has η_t = c/(t + t0) and needs strong
    convexity, c > 1/(2σ) for the rate 1/T. With ``scale`` 'auto' c is 1/L, or 1/σ, and with ``shift`` 'auto' t0 = cL,
    so that no step is longer than 1/L: L is the largest curvature of a sample, as the source knows it, σ = λ and the
    smallest curvature of the mean.

    ``average``: True or 'plain' for f̄ = (1/T) Σ f^t, 'suffix' for the second half, 'weighted' for weights ∝ t, False
    or 'none' for the last point. ``checkpoints`` are numbers of steps whose θ is kept (``trace``).

    Errors: UsageError for options that are not known or do not fit.

    Source: Duchi, Mackey and Jordan (2013), (24), (25); Duchi and Singer (2009).
    """
    kind = _average(average)
    for name, number in (("steps", steps), ("batch", batch)):
        if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < 1:
            raise UsageError(f"{name} must be an integer of at least 1, not {number!r}")
    ridge, ball = checked_ridge(ridge), checked_radius(radius)
    sizes = StepSizes.of(source, ridge, step_size, scale, shift)
    points = _points(checkpoints, steps)
    return _run(source, sizes, ridge, ball, int(steps), int(batch), kind, whole_seed(seed), points)


def checked_radius(radius: float | None) -> float:
    """Return the radius of the ball, ∞ where there is none. Errors (UsageError): no number above 0."""
    if radius is None:
        return np.inf
    if isinstance(radius, str | bool) or not np.isfinite(radius) or not radius > 0:
        raise UsageError(f"radius must be a number above 0, or None for no ball, not {radius!r}")
    return float(radius)


def projected(theta: Floats, radius: float) -> Floats:
    """Return the point of the ball ‖θ‖ ≤ radius that is nearest to θ.

    >>> projected(np.array([3.0, 4.0]), 1.0).round(12).tolist()
    [0.6, 0.8]
    """
    length = float(np.sqrt(theta @ theta))
    return theta if length <= radius else theta * (radius / length)


def _average(average: bool | str) -> str:
    kind = ("plain" if average else "none") if isinstance(average, bool) else average
    if kind not in AVERAGES:
        raise UsageError(f"unknown average {average!r}; {did_you_mean(str(kind), AVERAGES)}")
    return kind


def _points(checkpoints: Sequence[int] | None, steps: int) -> Ints:
    found = np.unique(np.asarray([] if checkpoints is None else checkpoints, np.int64))
    if len(found) and not 0 <= found[0] <= found[-1] <= steps:
        raise UsageError(f"checkpoints are numbers of steps from 0 to {steps:,}, not {found[0]:,} to {found[-1]:,}")
    return found


def _run(
    source: Source,
    sizes: StepSizes,
    ridge: float,
    radius: float,
    steps: int,
    batch: int,
    average: str,
    seed: int,
    points: Ints,
) -> StochasticFit:
    """Make the steps; a running sum of the points gives every average that is asked for."""
    width = source.width
    theta, running, late = np.zeros(width), np.zeros(width), np.zeros(width)
    before = theta
    losses = np.zeros(steps)
    length = sizes.lengths(steps)
    shrink = 1.0 / (1.0 + length * ridge)
    wanted = {int(t) for t in points} | {steps}
    halves = {t // 2: np.zeros(width) for t in wanted} if average == "suffix" else {}
    kept: dict[int, tuple[Floats, Floats]] = {0: (theta, theta)} if 0 in wanted else {}
    samples = source.samples(steps * batch, np.random.default_rng([int(seed < 0), abs(seed)]))
    for t in told("stochastic steps", range(steps)):
        loss, gradient = source.loss(theta, next(samples))
        for _ in range(batch - 1):
            more, other = source.loss(theta, next(samples))
            loss, gradient = loss + more, gradient + other
        if batch > 1:
            loss, gradient = loss / batch, gradient / batch
        losses[t] = loss
        running += theta if average != "weighted" else (t + 1) * theta
        if t >= steps // 2:
            late += gradient
        before, theta = theta, projected((theta - length[t] * gradient) * shrink[t], radius)
        if t + 1 in halves:
            halves[t + 1] = running.copy()
        if t + 1 in wanted:
            kept[t + 1] = (theta, _mean(average, running, theta, t + 1, halves))
    last, theta = kept[steps]
    second = steps - steps // 2
    slope = float(np.abs(late / second + ridge * theta).max(initial=0.0))
    value = losses[steps // 2 :].mean() + 0.5 * ridge * (theta @ theta)
    trace = Trace(points, *(np.array([kept[int(t)][side] for t in points]).reshape(-1, width) for side in (0, 1)))
    return StochasticFit(
        theta,
        ridge,
        Status.STOPPED,
        slope,
        np.asarray(value),
        iterations=steps,
        last=last,
        trace=trace,
        last_step=float(np.linalg.norm(last - before)),
        losses=losses,
        scale=sizes.scale,
        shift=sizes.shift,
    )


def _mean(average: str, running: Floats, theta: Floats, steps: int, halves: Mapping[int, Floats]) -> Floats:
    """The average of the points at which gradients were taken, the start among them."""
    if average == "none":
        return theta
    if average == "weighted":
        return running * (2.0 / (steps * (steps + 1.0)))
    if average == "suffix":
        return (running - halves[steps // 2]) / (steps - steps // 2)
    return running / steps

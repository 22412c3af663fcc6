"""The composite stochastic gradient method (25) of AoS on the U-statistic risk (19): cost per step free of n.

Step sizes η_t of the stochastic method: c/(t + t0) under strong convexity, c/√t without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, did_you_mean
from concordant.learning.solvers.least_squares import LinearFit, checked_matrix, checked_ridge, checked_rows
from concordant.learning.solvers.sampled import Gain, Logistic, Regression, SampledGains, chances
from concordant.preferences.preferences import Preferences
from concordant.preferences.sampling import whole_seed
from concordant.preferences.status import Status
from concordant.progress import steps as told
from concordant.ranking.scores import Scores

RULES = ("1/t", "1/sqrt t")


class Curved(Protocol):
    """A loss of samples that knows its curvature."""

    @property
    def largest(self) -> float:
        """Largest curvature of a sample."""

    @property
    def smallest(self) -> float:
        """Smallest curvature of the mean."""


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
            raise UsageError(f"unknown step {rule!r}; {did_you_mean(str(rule), RULES)}")
        for name, value, least in (("scale", scale, "above 0"), ("shift", shift, "of at least 0")):
            good = value == "auto" if isinstance(value, str) else np.isfinite(value) and (value > 0 or name == "shift")
            if not good or (not isinstance(value, str) and value < 0):
                raise UsageError(f"{name} must be 'auto' or a number {least}, not {value!r}")
        decreasing = rule == "1/t"
        if isinstance(scale, str):
            bend = ridge + loss.smallest if decreasing else loss.largest
            if decreasing and bend <= 0:
                raise UsageError(
                    "step '1/t' needs strong convexity: give a ridge above 0 or a scale, or take '1/sqrt t'"
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
LOSSES = ("gain-regression", "logistic")
AVERAGES = ("plain", "suffix", "weighted", "none")


class HasRow(Protocol):
    """What tells the row of the features of each item: an ``Alignment``."""

    @property
    def row(self) -> NDArray[np.int64]: ...


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
    X: NDArray[Any],
    rows: NDArray[np.integer[Any]] | HasRow | None,
    prefs: Preferences,
    *,
    loss: str = "gain-regression",
    structure: str | Callable[..., Scores] = "log-odds",
    options: Mapping[str, Any] | None = None,
    order: int | str | None = None,
    gain: str | Gain = "2^s-1",
    normalise: bool = True,
    at: int | None = None,
    ridge: float = 0.0,
    steps: int = 100_000,
    step: str = "1/sqrt t",
    scale: float | str = "auto",
    shift: float | str = "auto",
    average: bool | str = True,
    batch: int = 1,
    seed: int = 0,
    checkpoints: Sequence[int] | None = None,
) -> StochasticFit:
    """Minimise (1/n) Σ_q n̂_q E φ(Xθ, s) + (λ/2)‖θ‖² by θ ← argmin ⟨θ, g⟩ + (λ/2)‖θ‖² + ‖θ − θ_t‖²/(2η_t) (AoS (25)).

    Each step draws ``batch`` samples (a query with probability n̂_q/n, then k of its judgments, uniformly) and takes the
    mean gradient g of φ at θ_t. The step is (θ_t − η_t g)/(1 + η_t λ), from θ = 0.

    ``loss`` is 'gain-regression', φ = 1/(2m) Σ_j (x_j'θ + t − G(s_j)/Z(s))² with a free intercept t per query (28) and
    the options of ``mean_targets`` (``order`` k or 'all', the default); or 'logistic', the pairwise logistic loss
    (29) of single judgments, Σ strength log(1 + e^(α_loser − α_winner)) over the edges of one. ``rows`` is the row
    of X of each item of ``Batch.whole(prefs)`` or an Alignment; None: in order.

    ``step`` '1/sqrt t' has η_t = c/√t and needs convexity only; '1/t' has η_t = c/(t + t0) and needs strong convexity,
    c > 1/(2σ) for the rate 1/T. With ``scale`` 'auto' c is 1/L, or 1/σ, and with ``shift`` 'auto' t0 = cL, so that no
    step is longer than 1/L: L is the largest curvature of a sample (of 64 queries with the largest features), σ = λ and
    the smallest curvature of the regression.

    ``average``: True or 'plain' for f̄ = (1/T) Σ f^t, 'suffix' for the second half, 'weighted' for weights ∝ t, False
    or 'none' for the last point. ``checkpoints`` are numbers of steps whose θ is kept (``trace``).

    Errors: UsageError for options that are not known or do not fit, and when no judgment is there to draw.
    """
    if loss not in LOSSES:
        raise UsageError(f"unknown loss {loss!r}; {did_you_mean(str(loss), LOSSES)}")
    kind = _average(average)
    for name, number in (("steps", steps), ("batch", batch)):
        if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < 1:
            raise UsageError(f"{name} must be an integer of at least 1, not {number!r}")
    if len(prefs) == 0:
        raise UsageError("there is no judgment to draw")
    ridge, Z = checked_ridge(ridge), _items(X, rows, prefs)
    if loss == "logistic":
        if order not in (None, 1):
            raise UsageError("the pairwise logistic loss is one of single judgments: order must be 1 or left out")
        source: Regression | Logistic = Logistic.of(Z, prefs)
    else:
        gains = SampledGains(prefs, structure, options or {}, _order(order), gain, normalise, at)
        source = Regression(Z, gains, chances(prefs))
    sizes = StepSizes.of(source, ridge, step, scale, shift)
    return _run(source, sizes, ridge, int(steps), int(batch), kind, whole_seed(seed), _points(checkpoints, steps))


def _average(average: bool | str) -> str:
    kind = ("plain" if average else "none") if isinstance(average, bool) else average
    if kind not in AVERAGES:
        raise UsageError(f"unknown average {average!r}; {did_you_mean(str(kind), AVERAGES)}")
    return kind


def _order(order: int | str | None) -> int | None:
    if order is None or order == "all":
        return None
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 1:
        raise UsageError(f"order must be 'all' or an integer of at least 1, not {order!r}")
    return int(order)


def _points(checkpoints: Sequence[int] | None, steps: int) -> Ints:
    found = np.unique(np.asarray([] if checkpoints is None else checkpoints, np.int64))
    if len(found) and not 0 <= found[0] <= found[-1] <= steps:
        raise UsageError(f"checkpoints are numbers of steps from 0 to {steps:,}, not {found[0]:,} to {found[-1]:,}")
    return found


def _items(X: NDArray[Any], rows: NDArray[np.integer[Any]] | HasRow | None, prefs: Preferences) -> NDArray[Any]:
    """The features of the items of all queries, in the order of ``Batch.whole``; copied unless they are X itself."""
    X = checked_matrix(X)
    named = rows if rows is None or isinstance(rows, np.ndarray) else rows.row
    row = checked_rows(X, named, int(prefs.members[0][-1]))
    if row is None or (len(row) == len(X) and (row == np.arange(len(X))).all()):
        return np.ascontiguousarray(X)
    return X[row]


def _run(
    source: Regression | Logistic,
    sizes: StepSizes,
    ridge: float,
    steps: int,
    batch: int,
    average: str,
    seed: int,
    points: Ints,
) -> StochasticFit:
    """Make the steps; a running sum of the points gives every average that is asked for."""
    width = source.Z.shape[1]
    theta, running, late = np.zeros(width), np.zeros(width), np.zeros(width)
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
        theta = (theta - length[t] * gradient) * shrink[t]
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

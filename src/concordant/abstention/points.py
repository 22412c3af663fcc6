"""Points, labels, scores, norms, classes of scorers and margin functions Φ, as they come from a user: checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.errors import InputError, UsageError, counted, did_you_mean, few
from concordant.losses.pair_losses import pair_loss

NORMS = ("1", "2", "inf")


def norm_name(norm: object) -> str:
    """Return '1', '2' or 'inf' for a norm given as a name or a number. Errors: UsageError.

    >>> norm_name(2), norm_name(np.inf), norm_name("1")
    ('2', 'inf', '1')
    """
    if isinstance(norm, str) and norm.lower() in NORMS:
        return norm.lower()
    if isinstance(norm, int | float | np.number) and not isinstance(norm, bool) and norm in (1, 2, math.inf):
        return "inf" if norm == math.inf else str(int(norm))
    raise UsageError(f"norm must be one of {', '.join(NORMS)}, not {norm!r}")


def conjugate(norm: object) -> tuple[float, float]:
    """Return p and its conjugate q, 1/p + 1/q = 1, for p = 1, 2 or "inf"; UsageError for another norm.

    >>> conjugate("inf"), conjugate(2)
    ((inf, 1.0), (2.0, 2.0))
    """
    return {"1": (1.0, math.inf), "2": (2.0, 2.0), "inf": (math.inf, 1.0)}[norm_name(norm)]


Floats = NDArray[np.float64]
SMALLEST, LARGEST = 1e-150, 1e150
"""Thresholds of ℓ2 whose squares, and squares of what is summed, are exact enough in double precision."""


@dataclass(frozen=True)
class Points:
    """Points that scores rank: ``X`` (n, dimensions), and the ranks 0, 1, … of their labels and scores, as float64."""

    X: Floats
    label: Floats
    score: Floats


@dataclass(frozen=True)
class Near:
    """What is near: a sum of powers within ``limits`` (ascending; largest difference for power 0)."""

    power: int
    gammas: Floats
    limits: Floats


def points_of(X: ArrayLike, y: ArrayLike, scores: ArrayLike, *, bipartite: bool = False) -> Points:
    """Check points, their labels and scores against one another; raise InputError where they cannot be compared."""
    points = _numbers(X, "X", 2)
    label, score = _numbers(y, "y", 1), _numbers(scores, "scores", 1)
    if not len(points) == len(label) == len(score):
        raise InputError(
            f"X has {counted(len(points), 'points')}, y {counted(len(label), 'labels')} and scores "
            f"{counted(len(score), 'numbers')}; one label and one score for each point are needed"
        )
    classes, rank = np.unique(label, return_inverse=True)
    if bipartite and len(classes) > 2:
        raise InputError(f"bipartite ranking has two labels; y has {len(classes):,}: {few(classes.tolist(), 4)}")
    if len(classes) < 2:
        held = f"all {len(label):,} labels are {label[0]:g}" if len(label) else "there are no points"
        raise InputError(f"no pair of points with different labels: {held}")
    return Points(points, rank.astype(np.float64), np.unique(score, return_inverse=True)[1].astype(np.float64))


def _numbers(values: ArrayLike, name: str, dimensions: int) -> Floats:
    given = np.asarray(values)
    if given.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold real numbers, not {given.dtype}")
    if given.ndim != dimensions or (dimensions == 2 and given.shape[1] == 0):
        shape = "(points, dimensions ≥ 1)" if dimensions == 2 else "(points,)"
        raise InputError(f"{name} must have the shape {shape}, not {given.shape}")
    found = np.ascontiguousarray(given, np.float64)
    wrong = np.flatnonzero(~np.isfinite(found if dimensions == 2 else found[:, None]).all(axis=1))
    if len(wrong):
        raise InputError(f"{name} is not finite at {counted(len(wrong), 'points')}: {few(wrong.tolist())}")
    if given.dtype.kind in "iu" and given.size and max(abs(int(given.min())), abs(int(given.max()))) > 1 << 53:
        raise InputError(f"{name} has integers beyond 2^53, which double precision does not tell apart")
    return found


def near_by(gammas: ArrayLike, norm: object) -> tuple[Near, str]:
    """Return the rule for thresholds in ascending order, and the norm's name; raise UsageError where there is none."""
    name = norm_name(norm)
    try:
        values = np.atleast_1d(np.asarray(gammas, np.float64))
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if values.ndim != 1 or not len(values) or not np.all((values >= 0) & (values < np.inf)):
        raise UsageError(f"gamma is a distance, finite and ≥ 0, or a list of such; not {gammas!r}")
    power = 0 if name == "inf" or not values[-1] > 0 else int(name)  # at distance 0 all norms agree
    if power == 2:
        wrong = values[(values > LARGEST) | ((values < SMALLEST) & (values > 0))]
        if len(wrong):
            raise UsageError(
                f"gamma = {wrong[0]:g} is out of reach of squares in double precision "
                f"({SMALLEST:g} … {LARGEST:g}); scale the features"
            )
        return Near(power, values, np.array([_square(gamma) for gamma in values])), name
    return Near(power, values, values), name


def _square(gamma: float) -> float:
    """The largest number whose root, rounded, is at most gamma: sums are compared as their roots would be."""
    square = gamma * gamma
    while math.sqrt(square) <= gamma:
        square = math.nextafter(square, math.inf)
    while math.sqrt(square) > gamma:
        square = math.nextafter(square, 0.0)
    return square


def cost_of(cost: object) -> float:
    """Return the price of an abstention when it is a number of 0 … 1, else raise UsageError."""
    if not isinstance(cost, int | float | np.number) or not 0 <= float(cost) <= 1:
        raise UsageError(
            f"cost is the price of an abstention where a mistake costs 1: a number of 0 … 1, not {cost!r} "
            "(from 1/2 on guessing is as good as abstaining)"
        )
    return float(cost)


def sampled_differences(X: Floats, pairs: int) -> Floats:
    """Return |x − x'| by coordinates, at most 10^300, for a sample of pairs of two or more points, always the same."""
    rng = np.random.default_rng(0)
    pairs = max(64, min(pairs, (1 << 22) // X.shape[1]))
    i = rng.integers(0, len(X), pairs)
    with np.errstate(over="ignore"):
        found: Floats = np.abs(X[i] - X[(i + rng.integers(1, len(X), pairs)) % len(X)])
    return np.minimum(found, 1e300)


@dataclass(frozen=True)
class ScorerClass:
    """H_lin = {w·x + b: ‖w‖_q ≤ W, |b| ≤ B}, or with Λ H_NN = {Σ_j u_j (w_j·x + b_j)₊: ‖u‖₁ ≤ Λ, ...}.

    Errors: UsageError for a bound that is not positive (B: negative), and for Λ without B (``B=math.inf`` for none).

    >>> ScorerClass(W=2.0).reach(0.5).item(), ScorerClass(W=2.0, Lambda=3.0, B=0.25).reach(0.5).item()
    (1.0, 2.25)

    Source: RwA, section 2.1.
    """

    W: float
    Lambda: float | None = None
    B: float | None = None

    def __post_init__(self) -> None:
        if not _number(self.W) > 0:
            raise UsageError(f"W, the bound of the norm of w, must be positive, not {self.W!r}")
        if self.Lambda is not None and not _number(self.Lambda) > 0:
            raise UsageError(f"Lambda, the bound of ‖u‖₁, must be positive, not {self.Lambda!r}")
        if self.B is not None and not _number(self.B) >= 0:
            raise UsageError(f"B, the bound of the intercepts, must not be negative, not {self.B!r}")
        if self.Lambda is not None and self.B is None:
            raise UsageError("a network (Lambda is given) needs B, the bound of its intercepts; math.inf for none")

    def reach(self, distance: ArrayLike) -> Floats:
        """Return the largest |h(x') − h(x)| of the class for points at this ℓ_p distance d, 1/p + 1/q = 1.

        H_lin: Wd. H_NN: Λ min(Wd, Wd/2 + B), which is what remains where it is least, at points that lie opposite each
        other around 0; elsewhere a network reaches more, up to ΛWd. The paper's ΛWd needs B ≥ Wd/2.
        """
        d = np.asarray(distance, np.float64)
        step: Floats = np.multiply(d, self.W, where=d > 0, out=np.zeros(d.shape))  # no 0·∞
        if self.Lambda is None or self.B is None:
            return step
        least = np.minimum(step, step / 2 + self.B)
        reach: Floats = np.multiply(least, self.Lambda, where=least > 0, out=np.zeros(d.shape))
        return reach

    def most(self, distance: ArrayLike) -> Floats:
        """Return the largest |h(x') − h(x)| of the class for points at this distance, wherever they lie: Wd or ΛWd."""
        return ScorerClass(self.W if self.Lambda is None else self.W * self.Lambda).reach(distance)

    @property
    def words(self) -> str:
        """The class as a sentence says it."""
        if self.Lambda is None:
            return f"linear scorers with norm of w at most {self.W:g}"
        return (
            "networks with one hidden layer, sum of |u| at most "
            f"{self.Lambda:g}, norm of every w at most {self.W:g}, intercepts within {self.B:g}"
        )


def checked_gamma(gamma: float) -> float:
    """Return γ as a float; UsageError unless it is a finite number that is not negative."""
    if not 0 <= _number(gamma) < math.inf:
        raise UsageError(f"gamma must be a number that is not negative, not {gamma!r}")
    return float(gamma)


def _number(value: object) -> float:
    """A number as it is; NaN for what is none."""
    return float(value) if isinstance(value, int | float | np.number) else math.nan


Function = Callable[[Floats], Floats]
PHIS = ("hinge", "exponential", "sigmoid")


@dataclass(frozen=True)
class Phi:
    """A nonincreasing Φ with Φ(0) = 1 that lies above 1[t ≤ 0], and its derivative (0 at the kink of the hinge)."""

    name: str
    value: Function
    slope: Function
    convex: bool


def phi_named(name: str, k: float = 1.0) -> Phi:
    """Return Φ: hinge max(0, 1 − t), exponential e^(−t), sigmoid 1 − tanh(kt); only the last one is not convex.

    Errors: UsageError for another name and for k that is not a positive number.

    >>> phi_named("sigmoid", 2.0).value(np.array([0.0, 1.0])).round(4).tolist()
    [1.0, 0.036]

    Source: RwA, section 2.1.
    """
    if name not in PHIS:
        raise UsageError(f"unknown phi {name!r}; {did_you_mean(str(name), PHIS)}")
    if not (math.isfinite(k) and k > 0):
        raise UsageError(f"k of the sigmoid must be a positive number, not {k}")
    if name != "sigmoid":
        loss = pair_loss(name)
        return Phi(name, loss.value, loss.derivative, True)
    return Phi(name, lambda t: 1.0 - np.tanh(k * t), lambda t: k * (np.square(np.tanh(k * t)) - 1.0), False)

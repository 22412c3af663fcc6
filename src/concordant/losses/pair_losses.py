"""Margin functions φ and value penalties r: the convex functions of one number that surrogates are made of.

A surrogate is Σ w_e φ(α_winner − α_loser − offset_e) + Σ ν_i r(α_i − target_i) (``objective.py``). Each function is one
object, and all that reads it asks for its properties: a new one is one entry here, or ``register`` elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from concordant.errors import UsageError, did_you_mean, in_order
from concordant.losses.names import MARGIN_FUNCTIONS

Floats = NDArray[np.float64]
Function = Callable[[Floats], Floats]
OnTensors = Callable[[Any, Any], Any]
"""A function of the module ``torch`` and a tensor; derivatives are autograd's."""


@dataclass(frozen=True)
class PairLoss:
    """A convex, nonincreasing φ with φ'(0) < 0, its derivatives and what solvers need to know of it.

    >>> hinge = pair_loss("hinge")
    >>> hinge.value(np.array([0.0, 0.5, 2.0])).tolist(), hinge.derivative(np.array([0.0, 2.0])).tolist()
    ([1.0, 0.5, 0.0], [-1.0, 0.0])
    >>> hinge.piecewise_linear, hinge.strictly_convex, hinge.bounded
    (True, False, True)

    What it states is tried at many points; a contradiction is a UsageError.

    >>> cube = lambda t: np.maximum(1 - t, 0) ** 3, lambda t: -3 * np.maximum(1 - t, 0) ** 2
    >>> PairLoss("cube", "max(0, 1 − t)³", *cube, lambda t: 6 * np.maximum(1 - t, 0), zero_from=2.0)
    Traceback (most recent call last):
    concordant.errors.UsageError: margin function cube is not strictly convex between linear_to -inf and zero_from 2
    """

    name: str
    formula: str
    value: Function
    derivative: Function
    """A subgradient where φ has a kink."""
    second: Function
    torch: OnTensors | None = None
    """φ on tensors, ``lambda torch, t: …``; the derivative at a kink is that of ``derivative``."""
    kernel: Literal["hinge", "squared-hinge", "logistic", "exponential", "linear"] | None = None
    """What compiled and sorted ways know φ as; any other takes the plain way."""
    curvature_bound: float = np.inf
    """sup φ''."""
    infimum: float = 0.0
    """Infimum over t: 0, or −∞."""
    zero_from: float = np.inf
    """Where φ reaches 0; ∞ when it only tends to it."""
    linear_to: float = -np.inf
    """φ is linear up to here; between this and ``zero_from`` it is strictly convex, or piecewise linear with kinks."""
    kinks: tuple[tuple[float, float], ...] = ()
    """(k, s) where the slope of a piecewise linear φ rises by s: φ(t) = Σ s max(0, k − t). Other φ have none."""
    odds: float | None = None
    """κ, where φ'(−d)/φ'(d) = e^(κ d): then weights g_j, g_l of opposite edges ask for d = log(g_j/g_l)/κ."""

    def __post_init__(self) -> None:
        for wrong in _contradictions(self):
            raise UsageError(f"margin function {self.name} {wrong}")

    @property
    def smooth(self) -> bool:
        """Differentiable everywhere."""
        return not self.kinks

    @property
    def piecewise_linear(self) -> bool:
        """Linear between kinks: minima are those of linear programmes."""
        return bool(self.kinks)

    @property
    def linear(self) -> bool:
        """Linear everywhere."""
        return self.linear_to == np.inf

    @property
    def bounded(self) -> bool:
        """Bounded below."""
        return bool(np.isfinite(self.infimum))

    @property
    def ends(self) -> bool:
        """Reaches its infimum, so that large margins cost nothing."""
        return bool(np.isfinite(self.zero_from))

    @property
    def strictly_convex(self) -> bool:
        """Strictly convex everywhere: whatever it is the loss of has one minimiser at most."""
        return self.smooth and not self.ends and self.linear_to == -np.inf

    @property
    def bounded_curvature(self) -> bool:
        """Differentiable, with a derivative that is Lipschitz."""
        return self.smooth and bool(np.isfinite(self.curvature_bound))

    @property
    def calibrated(self) -> bool:
        """Classification calibrated: bounded below, differentiable at 0 with φ'(0) < 0 (Bartlett et al. 2006)."""
        return self.bounded and all(place != 0 for place, _ in self.kinks)


STEP = 1e-5
"""Step of the differences that stated derivatives are held against."""


def _contradictions(phi: PairLoss) -> Iterator[str]:
    """What φ states and is not so."""
    marks = [place for place in (phi.zero_from, phi.linear_to) if np.isfinite(place)]
    marks += [place for place, _ in phi.kinks]
    t = np.linspace(-6.0, 6.0, 1201) + 0.00317  # off the round numbers where φ changes
    t = t[(np.abs(t[:, None] - np.array(marks)) > 2 * STEP).all(axis=1)]
    value, slope, bend = phi.value(t), phi.derivative(t), phi.second(t)
    scale = 1.0 + np.abs(value)
    for stated, function, name in ((slope, phi.value, "derivative"), (bend, phi.derivative, "second derivative")):
        found = (function(t + STEP) - function(t - STEP)) / (2 * STEP)
        if (np.abs(stated - found) > 1e-5 * scale).any():
            yield f"has another {name} than it states"
    if (np.diff(slope) < -1e-9 * scale[1:]).any() or (slope > 0).any() or not phi.derivative(np.zeros(1))[0] < 0:
        yield "is not convex, nonincreasing and falling at 0"
    if (bend > phi.curvature_bound * (1 + 1e-9)).any():
        yield f"has more curvature than {phi.curvature_bound:g}"
    steepest = phi.curvature_bound if np.isfinite(phi.curvature_bound) else 2 * np.maximum(bend[1:], bend[:-1])
    jumps = np.diff(slope) > steepest * np.diff(t) + 1e-9 * scale[1:]
    if not phi.kinks and jumps.any():
        yield f"has a kink near {t[1:][jumps][0]:.3g}, which is none of its kinks"
    if phi.kinks and np.abs(value - sum(s * np.maximum(k - t, 0.0) for k, s in phi.kinks)).max() > 1e-9:
        yield "is not Σ s max(0, k − t) over its kinks (k, s)"
    if phi.kinks and (min(phi.kinks)[0], max(phi.kinks)[0]) != (phi.linear_to, phi.zero_from):
        yield "has its first kink where it is no longer linear, its last one where it ends"
    if phi.bounded and not -1e-9 < float(phi.value(np.array([min(phi.zero_from, 1e6)]))[0]) < 1e-3:
        yield "does not end at 0 where it says, nor tends to it"
    between = (t > phi.linear_to) & (t < phi.zero_from)
    if not phi.kinks and not (bend[between] > 0).all():
        yield f"is not strictly convex between linear_to {phi.linear_to:g} and zero_from {phi.zero_from:g}"
    if (bend[~between] != 0).any():
        yield f"is not linear up to {phi.linear_to:g}, or not 0 from {phi.zero_from:g}"


@dataclass(frozen=True)
class Penalty:
    """A strictly convex, 1-coercive r with r'(0) = 0; ``inverse`` is that of r' (ICML (15)).

    >>> square = value_penalty("square")
    >>> square.derivative(np.array([1.5])).tolist(), square.inverse(np.array([3.0])).tolist()
    ([3.0], [1.5])
    """

    name: str
    formula: str
    value: Function
    derivative: Function
    second: Function
    inverse: Function
    torch: OnTensors | None = None
    """r on tensors, ``lambda torch, t: …``."""


def pair_loss(name: str) -> PairLoss:
    """Look φ up by its name; the error for an unknown one suggests the closest."""
    if name not in PAIR_LOSSES:
        raise UsageError(f"unknown margin function {name!r}; {did_you_mean(name, PAIR_LOSSES)}")
    return PAIR_LOSSES[name]


def value_penalty(name: str) -> Penalty:
    """Look r up by its name; the error for an unknown one suggests the closest."""
    if name not in PENALTIES:
        raise UsageError(f"unknown value penalty {name!r}; {did_you_mean(name, PENALTIES)}")
    return PENALTIES[name]


def register(phi: PairLoss) -> None:
    """Add φ to ``PAIR_LOSSES``: surrogates take it by its name wherever its properties allow. Its name must be new."""
    if phi.name in PAIR_LOSSES:
        raise UsageError(f"there is a margin function {phi.name!r}")
    _REGISTERED[phi.name] = phi


_LOSSES = (
    PairLoss(
        "hinge",
        MARGIN_FUNCTIONS["hinge"],
        lambda t: np.maximum(1.0 - t, 0.0),
        lambda t: np.where(t < 1.0, -1.0, 0.0),
        lambda t: np.zeros_like(t),
        torch=lambda torch, t: torch.relu(1.0 - t),
        kernel="hinge",
        zero_from=1.0,
        linear_to=1.0,
        kinks=((1.0, 1.0),),
    ),
    PairLoss(
        "squared-hinge",
        MARGIN_FUNCTIONS["squared-hinge"],
        lambda t: np.maximum(1.0 - t, 0.0) ** 2,
        lambda t: -2.0 * np.maximum(1.0 - t, 0.0),
        lambda t: np.where(t < 1.0, 2.0, 0.0),
        torch=lambda torch, t: torch.relu(1.0 - t).square(),
        kernel="squared-hinge",
        curvature_bound=2.0,
        zero_from=1.0,
    ),
    PairLoss(
        "logistic",
        MARGIN_FUNCTIONS["logistic"],
        lambda t: np.asarray(np.logaddexp(0.0, -t), np.float64),
        lambda t: np.asarray(-expit(-t), np.float64),
        lambda t: np.asarray(expit(t) * expit(-t), np.float64),
        torch=lambda torch, t: -torch.nn.functional.logsigmoid(t),  # softplus(−t) without its cut at 20
        kernel="logistic",
        curvature_bound=0.25,
        odds=1.0,
    ),
    PairLoss(
        "exponential",
        MARGIN_FUNCTIONS["exponential"],
        lambda t: np.exp(-t),
        lambda t: -np.exp(-t),
        lambda t: np.exp(-t),
        torch=lambda torch, t: torch.exp(-t),
        kernel="exponential",
        odds=2.0,
    ),
    PairLoss(
        "linear",
        MARGIN_FUNCTIONS["linear"],
        lambda t: -t,
        lambda t: -np.ones_like(t),
        lambda t: np.zeros_like(t),
        torch=lambda torch, t: torch.neg(t),
        kernel="linear",
        curvature_bound=0.0,
        infimum=-np.inf,
        linear_to=np.inf,
    ),
)

_PENALTIES = (
    Penalty(
        "square",
        "t²",
        np.square,
        lambda t: 2.0 * t,
        lambda t: np.full_like(t, 2.0),
        lambda g: 0.5 * g,
        torch=lambda torch, t: torch.square(t),
    ),
    Penalty(
        "cosh",
        "cosh t − 1",
        lambda t: np.cosh(t) - 1.0,
        np.sinh,
        np.cosh,
        np.arcsinh,
        torch=lambda torch, t: 2.0 * torch.sinh(0.5 * t).square(),  # without cancellation
    ),
)

_REGISTERED = dict(in_order(MARGIN_FUNCTIONS, {phi.name: phi for phi in _LOSSES}))
PAIR_LOSSES: Mapping[str, PairLoss] = MappingProxyType(_REGISTERED)
PENALTIES: Mapping[str, Penalty] = MappingProxyType({r.name: r for r in _PENALTIES})

"""Margin functions φ and value penalties r: the convex functions of one number that surrogates are made of.

A surrogate is Σ w_e φ(α_winner − α_loser − margin_e) + Σ ν_i r(α_i − target_i) (``objective.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from concordant.errors import UsageError, did_you_mean

__all__ = ["MARGINS", "Margin", "PENALTIES", "Penalty", "margin_function", "value_penalty"]


Floats = NDArray[np.float64]
Function = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Margin:
    """A convex, nonincreasing φ with φ'(0) < 0, its derivatives and what solvers need to know of it.

    >>> hinge = margin_function("hinge")
    >>> hinge.value(np.array([0.0, 0.5, 2.0])).tolist(), hinge.derivative(np.array([0.0, 2.0])).tolist()
    ([1.0, 0.5, 0.0], [-1.0, 0.0])
    """

    name: str
    value: Function
    derivative: Function
    """A subgradient where φ has a kink."""
    second: Function
    formula: str
    smooth: bool
    """Differentiable everywhere."""
    infimum: float
    """Infimum over t: 0, or −∞ for the linear one."""
    zero_from: float = np.inf
    """Where φ reaches its infimum; ∞ when it only tends to it."""
    odds: float | None = None
    """κ, where φ'(−d)/φ'(d) = e^(κ d): then weights g_j, g_l of opposite arcs ask for d = log(g_j/g_l)/κ."""


@dataclass(frozen=True)
class Penalty:
    """A strictly convex, 1-coercive r with r'(0) = 0; ``inverse`` is that of r' (ICML (15)).

    >>> square = value_penalty("square")
    >>> square.derivative(np.array([1.5])).tolist(), square.inverse(np.array([3.0])).tolist()
    ([3.0], [1.5])
    """

    name: str
    value: Function
    derivative: Function
    second: Function
    inverse: Function
    formula: str


def margin_function(name: str) -> Margin:
    """Look φ up by its name; the error for an unknown one suggests the closest."""
    if name not in MARGINS:
        raise UsageError(f"unknown margin function {name!r}; {did_you_mean(name, MARGINS)}")
    return MARGINS[name]


def value_penalty(name: str) -> Penalty:
    """Look r up by its name; the error for an unknown one suggests the closest."""
    if name not in PENALTIES:
        raise UsageError(f"unknown value penalty {name!r}; {did_you_mean(name, PENALTIES)}")
    return PENALTIES[name]


_PHIS = (
    Margin(
        "hinge",
        lambda t: np.maximum(1.0 - t, 0.0),
        lambda t: np.where(t < 1.0, -1.0, 0.0),
        lambda t: np.zeros_like(t),
        "max(0, 1 − t)",
        smooth=False,
        infimum=0.0,
        zero_from=1.0,
    ),
    Margin(
        "squared-hinge",
        lambda t: np.maximum(1.0 - t, 0.0) ** 2,
        lambda t: -2.0 * np.maximum(1.0 - t, 0.0),
        lambda t: np.where(t < 1.0, 2.0, 0.0),
        "max(0, 1 − t)²",
        smooth=True,
        infimum=0.0,
        zero_from=1.0,
    ),
    Margin(
        "logistic",
        lambda t: np.asarray(np.logaddexp(0.0, -t), np.float64),
        lambda t: np.asarray(-expit(-t), np.float64),
        lambda t: np.asarray(expit(t) * expit(-t), np.float64),
        "log(1 + e^(−t))",
        smooth=True,
        infimum=0.0,
        odds=1.0,
    ),
    Margin(
        "exponential",
        lambda t: np.exp(-t),
        lambda t: -np.exp(-t),
        lambda t: np.exp(-t),
        "e^(−t)",
        smooth=True,
        infimum=0.0,
        odds=2.0,
    ),
    Margin(
        "linear",
        lambda t: -t,
        lambda t: -np.ones_like(t),
        lambda t: np.zeros_like(t),
        "−t",
        smooth=True,
        infimum=-np.inf,
    ),
)

_RS = (
    Penalty("square", np.square, lambda t: 2.0 * t, lambda t: np.full_like(t, 2.0), lambda g: 0.5 * g, "t²"),
    Penalty("cosh", lambda t: np.cosh(t) - 1.0, np.sinh, np.cosh, np.arcsinh, "cosh t − 1"),
)

MARGINS: Mapping[str, Margin] = MappingProxyType({phi.name: phi for phi in _PHIS})
PENALTIES: Mapping[str, Penalty] = MappingProxyType({r.name: r for r in _RS})

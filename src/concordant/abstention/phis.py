"""The three margin functions Φ of ranking with abstention: hinge, exponential, sigmoid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, did_you_mean
from concordant.surrogates.margins import margin_function

__all__ = ["PHIS", "Phi", "phi_named"]

Floats = NDArray[np.float64]
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
        margin = margin_function(name)
        return Phi(name, margin.value, margin.derivative, True)
    return Phi(name, lambda t: 1.0 - np.tanh(k * t), lambda t: k * (np.square(np.tanh(k * t)) - 1.0), False)

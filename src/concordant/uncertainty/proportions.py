"""Intervals of proportions that are never of zero width."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = ["wilson"]

Floats = NDArray[np.float64]


def wilson(successes: Floats, trials: Floats, level: float) -> tuple[Floats, Floats]:
    """Wilson's score interval of a proportion, elementwise; (0, 1) where there were no trials.

    With p = successes/trials, n trials and z the normal quantile: (p + z²/2n ± z√(p(1−p)/n + z²/4n²)) / (1 + z²/n)
    (Wilson, JASA 22, 1927). It has a width also where p is 0 or 1.

    >>> low, high = wilson(np.array([0.0]), np.array([10.0]), 0.95)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0], [0.2775])
    """
    z = float(ndtri(0.5 + level / 2))
    n = np.where(trials > 0, trials, 1.0)
    p = successes / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
    none = trials <= 0
    return np.where(none, 0.0, np.maximum(middle - half, 0.0)), np.where(none, 1.0, np.minimum(middle + half, 1.0))

"""How many votes on one pair make their majority right: the binomial law, no model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, ndtri

from concordant.errors import UsageError

__all__ = ["votes_for_majority"]

Floats = NDArray[np.float64]
MOST = 1 << 30
"""Half the votes beyond which no number is given."""


def votes_for_majority(share: ArrayLike, level: float = 0.95) -> Floats:
    """Least odd n with P(the majority of n votes is on the right side) ≥ level, elementwise.

    With p = max(share, 1 − share) the chance that a vote goes the right way, P = P(Bin(n, p) ≥ (n + 1)/2) =
    I_p((n + 1)/2, (n + 1)/2), which grows with odd n; about z²p(1 − p)/(p − ½)² for p near ½. ``share`` in [0, 1]; inf
    for ½ (or so near it that more than 2·10⁹ votes would be needed), NaN where it is NaN.

    Errors: UsageError for a level outside (0.5, 1) or a share outside [0, 1].

    >>> votes_for_majority([0.6, 0.75, 1.0, 0.5])
    array([67.,  9.,  1., inf])

    Source: de Condorcet 1785; the binomial law.
    """
    if not 0.5 < level < 1:
        raise UsageError(f"the level lies between 0.5 and 1, not {level}")
    p = np.asarray(share, np.float64)
    if ((p < 0) | (p > 1)).any():
        raise UsageError("a share lies between 0 and 1")
    p = np.maximum(p, 1.0 - p)
    found = np.full(p.shape, np.nan)
    known = ~np.isnan(p)
    half = _halves(p[known], level)
    found[known] = np.where(half >= MOST, np.inf, 2.0 * half - 1.0)
    return found


def _halves(p: Floats, level: float) -> NDArray[np.int64]:
    """Least h with I_p(h, h) ≥ level, for n = 2h − 1 votes, MOST at the most; shape as ``p``, of one dimension."""
    with np.errstate(divide="ignore"):
        near = 0.5 * ndtri(level) ** 2 * p * (1.0 - p) / (p - 0.5) ** 2  # the normal law
    low = np.minimum(0.99 * near - 3.0, MOST - 1).clip(0).astype(np.int64)
    high = np.minimum(1.01 * near + 4.0, MOST).astype(np.int64)
    low[betainc(np.maximum(low, 1), np.maximum(low, 1), p) >= level] = 0  # low is too few
    short = betainc(high, high, p) < level
    low[short] = high[short]  # nearer than the normal law says; at MOST no number is given
    high[short] = MOST
    while len(open_ := np.flatnonzero(high - low > 1)):
        middle = (low[open_] + high[open_]) // 2
        enough = betainc(middle, middle, p[open_]) >= level
        high[open_[enough]], low[open_[~enough]] = middle[enough], middle[~enough]
    return np.asarray(high, np.int64)

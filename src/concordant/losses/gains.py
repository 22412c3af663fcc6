"""Gains G of scores, and Z: the best discounted sum of gains over the orderings of a query (AoS (14))."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, did_you_mean

Floats = NDArray[np.float64]
Gain = Callable[[Floats], Floats]
PADDED = 1 << 22
"""Values of a padded matrix that are sorted at a time."""

GAINS: Mapping[str, Gain] = MappingProxyType(
    {
        "2^s-1": lambda s: np.expm1(s * np.log(2.0)),
        "2^s": np.exp2,
        "identity": lambda s: s,
    }
)
"""Increasing functions of a score. 2^s − 1 makes G/Z free of the scale of small scores; 2^s is positive."""


def the_gain(gain: str | Gain) -> Gain:
    """Return the gain of a name, or the callable given (elementwise, increasing).

    >>> the_gain("2^s-1")(np.array([0.0, 1.0, 2.0])).round(12).tolist()
    [0.0, 1.0, 3.0]
    """
    if callable(gain):
        return gain
    if gain not in GAINS:
        raise UsageError(
            f"unknown gain {gain!r}; {did_you_mean(str(gain), GAINS)} A function of an array is allowed too."
        )
    return GAINS[gain]


def inverse_discount(size: int, discount: Gain | None = None, at: int | None = None) -> Floats:
    """Return 1/F(j) for the positions j = 1 … size, 0 beyond the cut-off ``at``; F(j) = log2(1 + j) unless given.

    Errors (UsageError): a cut-off below 1, a discount that is not positive or not increasing.

    >>> inverse_discount(4, at=3).round(4).tolist()
    [1.0, 0.6309, 0.5, 0.0]
    """
    if at is not None and at < 1:
        raise UsageError(f"at must be at least 1, not {at}")
    position = np.arange(1.0, size + 1.0)
    F = np.log2(1.0 + position) if discount is None else np.asarray(discount(position), np.float64)
    if F.shape != position.shape or not (F > 0).all() or not (np.diff(F) >= 0).all():
        raise UsageError("a discount must give one positive number for each position and may not decrease")
    return np.asarray(np.where(position <= (size if at is None else at), 1.0 / F, 0.0), np.float64)


def best_value(start: NDArray[np.int64], gain: Floats, inverse: Floats) -> Floats:
    """Return Z = max over orderings π of Σ_j G_j / F(π(j)) for each of the lists start[g]:start[g + 1].

    The best ordering is by gain, whatever the signs, because 1/F does not increase. Shapes: ``gain`` (entries,),
    ``inverse`` (at least the longest list,). A list's value does not depend on the lists beside it.

    >>> best_value(np.array([0, 2, 3]), np.array([1.0, 3.0, 7.0]), np.array([1.0, 0.5])).tolist()
    [3.5, 7.0]
    """
    size = np.diff(start)
    Z = np.zeros(len(size))
    steps = _steps(int(size.max(initial=0)))
    width_class = np.searchsorted(steps, size)
    for place in np.flatnonzero(np.bincount(width_class[size > 0])):
        width = int(steps[place])
        weights = np.zeros(width)
        weights[: min(width, len(inverse))] = inverse[:width]
        chosen = np.flatnonzero(width_class == place)
        for begin in range(0, len(chosen), max(1, PADDED // width)):
            lists = chosen[begin : begin + max(1, PADDED // width)]
            beyond = np.arange(width) >= size[lists, None]
            at = np.minimum(start[lists, None] + np.arange(width), len(gain) - 1)
            matrix = np.where(beyond, np.inf, -gain[at])
            matrix.sort(axis=1)
            matrix[beyond] = 0.0
            Z[lists] = -(matrix * weights).sum(axis=1)
    return Z


def _steps(longest: int) -> NDArray[np.int64]:
    """Widths that lists are padded to, growing by a quarter: few shapes, little waste."""
    widths = [0, 1]
    while widths[-1] < longest:
        widths.append(max(widths[-1] + 1, widths[-1] * 5 // 4))
    return np.array(widths, np.int64)

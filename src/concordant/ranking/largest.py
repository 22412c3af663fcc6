"""The largest of many differences over their standard errors, draw by draw, without looking at all of them.

For weights w_ij = 1/s.e.(i − j) and any q > 0, Cauchy and Schwarz give |z_i − z_j| w_ij ≤ r_i √(u_i² + u_j²) with
u = z/√q and r_i = max_j w_ij √(q_i + q_j). With q near the quasi-variances r is near 1, and only items far out in a
draw can take part in its largest difference: those whose bound reaches the largest difference with one of its two
extreme items. These are looked at, all pairs of them, so that the answer is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.kernels.compiled import compiles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
CACHED = 1 << 18
"""Numbers worked on at a time."""
SLACK = 1e-9
LOOKED_AT = 1e8
"""Items squared × draws from which a compiled loop over rows is quicker, the time to load it included."""


def largest(draws: Floats, weight: Floats, group: Ints) -> Floats:
    """Return max over i, j of (z_i − z_j) w_ij for each draw z, at least 0; shape (draws,).

    ``weight``: shape (items, items), 0 for a pair (an order of it) that is not looked at; ``group``: items of different
    groups have no weight. With symmetric weights it is the largest |z_i − z_j| w_ij.

    >>> largest(np.array([[0.0, 1.0, 5.0]]), np.array([[0.0, 1, 0], [1, 0, 0.5], [0, 0.5, 0]]), np.zeros(3, np.int64))
    array([2.])
    """
    count, items = draws.shape
    out = np.zeros(count)
    if items < 2 or not weight.any():
        return out
    if count * items**2 > LOOKED_AT and compiles():
        return _by_rows(draws, weight, 0.0, Held.of(count))
    both = np.maximum(weight, weight.T)
    some = np.flatnonzero(both.any(axis=0))
    if len(some) < items:
        return largest(np.ascontiguousarray(draws[:, some]), weight[np.ix_(some, some)], group[some])
    q = _quasi(both)
    square = (both * np.sqrt(q[:, None] + q)).max(axis=1) ** 2
    member = (group[:, None] == np.unique(group)).astype(float)
    mean = member / q[:, None]
    mean /= mean.sum(axis=0)
    step = max(1, CACHED // items)
    for begin in range(0, count, step):
        values = draws[begin : begin + step]
        u = (values - (values @ mean) @ member.T) / np.sqrt(q)
        each, high, low = np.arange(len(u)), u.argmax(axis=1), u.argmin(axis=1)
        most = ((values[each, high][:, None] - values) * weight[high]).max(axis=1)
        most = np.maximum(most, ((values - values[each, low][:, None]) * weight.T[low]).max(axis=1))
        u *= u
        least = (most**2)[:, None] / square
        least -= u.max(axis=1)[:, None] + SLACK
        out[begin : begin + step] = _among(values, weight, u >= least, most)
    return out


@dataclass(frozen=True, eq=False)
class Held:
    """Where the largest difference of each draw was found, kept while ever fewer pairs are looked at."""

    pair: Ints
    """Shape (draws, 2), −1 before anything is found."""
    bound: Floats
    """Shape (draws,): what no difference exceeds."""

    @classmethod
    def of(cls, count: int) -> Held:
        """Nothing, of so many draws."""
        return cls(np.full((count, 2), -1, np.int64), np.full(count, np.inf))


def critical(draws: Floats, weight: Floats, group: Ints, level: float, held: Held | None = None) -> float:
    """Return the quantile of ``largest``. Draws that stay below it are not looked at to the end.

    ``held``: of an earlier call with these draws and all these pairs (others may have lost their weight since).
    """
    if draws.size * draws.shape[1] <= LOOKED_AT or not compiles():
        return float(quantile(largest(draws, weight, group), level))
    held = Held.of(len(draws)) if held is None else held
    floor = float(quantile(_by_rows(draws, weight, np.inf, held), level))
    return float(quantile(_by_rows(draws, weight, floor, held), level))


def _by_rows(draws: Floats, weight: Floats, floor: float, held: Held) -> Floats:
    from concordant.kernels.pair_maxima import pair_maxima

    most = np.empty(len(draws))
    pair_maxima(np.ascontiguousarray(draws), np.ascontiguousarray(weight), floor, most, held.pair, held.bound)
    return most


def _among(values: Floats, weight: Floats, candidate: Flags, most: Floats) -> Floats:
    """Raise the largest differences that are known to those among the candidates of each draw, ever more of them."""
    number = candidate.sum(axis=1)
    begin = np.concatenate([[0], np.cumsum(number)])
    item = np.nonzero(candidate)[1]
    many = number > values.shape[1] // 2
    most[many], number[many] = np.maximum(most[many], _among_all(values[many], weight)), 0
    low = 1
    while low < int(number.max(initial=0)):
        high = 2 * low
        rows = np.flatnonzero((number > low) & (number <= high))
        for part in range(0, len(rows), max(1, CACHED // high**2)):
            own = rows[part : part + max(1, CACHED // high**2)]
            place = np.minimum(np.arange(high), number[own][:, None] - 1)
            held = item[begin[own][:, None] + place]
            reached = values[own[:, None], held]
            gap = reached[:, :, None] - reached[:, None, :]
            gap *= weight[held[:, :, None], held[:, None, :]]
            most[own] = np.maximum(most[own], gap.reshape(len(own), -1).max(axis=1))
        low = high
    return most


def _among_all(values: Floats, weight: Floats) -> Floats:
    columns = np.ascontiguousarray(values.T)
    most = np.zeros(len(values))
    for i in range(len(columns)):
        gap = columns[i] - columns
        gap *= weight[i][:, None]
        np.maximum(most, gap.max(axis=0), out=most)
    return most


def _quasi(weight: Floats) -> Floats:
    """Positive q with q_i + q_j near 1/w_ij²: least squares where all pairs have a weight, else nearly so."""
    there = weight > 0
    square = np.divide(1.0, weight, out=np.zeros_like(weight), where=there) ** 2
    partners = np.maximum(there.sum(axis=1), 1)
    row = square.sum(axis=1)
    total = row.sum() / np.maximum(partners.mean(), 1) / 2  # the sum of all q
    q = (row - total * partners / len(row)) / np.maximum(partners - 1, 1)
    return np.asarray(np.maximum(q, 1e-3 * row / partners))


def quantile(most: Floats, level: float) -> Floats:
    """Return the order statistic at the level, rounded up, along the last axis.

    >>> quantile(np.arange(1.0, 20.0), 0.95)
    array(19.)
    """
    place = min(int(np.ceil(level * (most.shape[-1] + 1))), most.shape[-1]) - 1
    return np.asarray(np.partition(most, place, axis=-1)[..., place])

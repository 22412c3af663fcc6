"""Points, labels, scores, norms and thresholds as they come from a user: checked, and as plain arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.abstention.norms import norm_name
from concordant.errors import InputError, UsageError, counted, few

__all__ = ["Near", "Points", "cost_of", "near_by", "points_of", "sampled_differences"]

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

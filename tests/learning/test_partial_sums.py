"""Sums over the rows of a table add up from any parts of it: moments of columns, and normal equations."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordant.errors import UsageError
from concordant.learning.features.normalising import Moments
from concordant.learning.solvers.least_squares import NormalEquations

EPS = float(np.finfo(float).eps)
INTERCEPTS = ("query", "one", "none")


def table(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Columns far from 0, of one value, with gaps, empty, and of one value in the first half and another after it."""
    half = np.where(np.arange(rows) < rows // 2, 3.0, 1e5)
    X = np.column_stack([rng.normal(1e8, 1e-3, rows), np.full(rows, 0.1), rng.normal(size=rows), np.ones(rows), half])
    X[rng.random(rows) < 0.5, 2] = np.nan
    X[:, 3] = np.nan
    return X


def cut(rng: np.random.Generator, size: int, parts: int) -> list[slice]:
    """Slices that cover 0 … size − 1, some of them empty."""
    edges = [0, *sorted(rng.integers(0, size + 1, parts - 1).tolist()), size]
    return [slice(a, b) for a, b in pairwise(edges)]


@given(st.integers(0, 10_000), st.integers(1, 6), st.booleans())
def test_moments_of_parts_are_those_of_the_whole(seed: int, parts: int, log: bool) -> None:
    rng = np.random.default_rng(seed)
    X = table(rng, int(rng.integers(1, 60)))
    pieces = [Moments.of(X[part], log=log) for part in cut(rng, len(X), parts)]
    rng.shuffle(pieces)  # type: ignore[arg-type]
    found = sum(pieces)
    values = np.copysign(np.log1p(np.abs(X)), X) if log else X
    np.testing.assert_array_equal(found.present, (~np.isnan(X)).sum(axis=0))
    for column in range(X.shape[1]):
        there = values[~np.isnan(X[:, column]), column].astype(np.longdouble)
        mean = there.mean() if len(there) else 0.0
        np.testing.assert_allclose(found.mean[column], float(mean), rtol=1e-14, atol=1e-12)
        spread = float(there.std()) if len(there) else 0.0
        np.testing.assert_allclose(found.deviation[column], spread, rtol=1e-9, atol=8 * EPS * max(abs(mean), 1.0))
    assert found.deviation[1] == 0.0 and found.mean[1] == values[0, 1]  # to the bit: nothing varies there
    assert found.deviation[3] == found.mean[3] == 0.0


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    size = rng.integers(0, 7, 9)
    start = np.concatenate(([0], np.cumsum(size)))
    far = np.repeat(rng.normal(size=9) * 5, size)[:, None]
    X = rng.normal(size=(start[-1], 3)) + far
    X = np.column_stack([X, np.full(len(X), 0.1), far])
    return X, rng.normal(size=(len(X), 2)) + far, start, rng.uniform(0.0, 2, 9)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@given(st.integers(0, 10_000), st.integers(1, 5))
def test_equations_of_parts_are_those_of_the_whole(intercept: str, seed: int, parts: int) -> None:
    X, y, start, weight = problem(seed)
    rng = np.random.default_rng(seed)
    pieces = []
    for part in cut(rng, len(weight), parts):
        first, last = int(start[part.start]), int(start[part.stop])
        begins = start[part.start : part.stop + 1] - first
        pieces.append(NormalEquations.of(X[first:last], y[first:last], begins, weight[part], intercept=intercept))
    rng.shuffle(pieces)  # type: ignore[arg-type]
    found, whole = sum(pieces), NormalEquations.of(X, y, start, weight, intercept=intercept)
    for name in ("gram", "moment", "squares", "mean_x", "mean_y", "level", "total"):
        mine, right = getattr(found, name), getattr(whole, name)
        atol = 1e-13 * (1.0 + float(np.abs(right).max(initial=0.0)))
        np.testing.assert_allclose(mine, right, rtol=1e-12, atol=atol, err_msg=name)
    if intercept != "none":  # a column of one value is zero to the bit, in the parts as in the whole
        assert not found.gram[3].any() and not found.moment[3].any()
    np.testing.assert_allclose(found.solve(0.1).theta, whole.solve(0.1).theta, rtol=1e-9, atol=1e-11)


def test_columns_constant_in_every_query_stay_undetermined_when_parts_add_up() -> None:
    rng = np.random.default_rng(3)
    size = rng.integers(2, 60, 40)
    start = np.concatenate(([0], np.cumsum(size)))
    level = np.repeat(rng.normal(size=40) * 1e6, size)
    wobble = level * (1 + np.finfo(float).eps * rng.integers(-1, 2, len(level)))
    X = np.column_stack([rng.normal(size=len(level)), level, wobble])
    y = X[:, 0] + rng.normal(size=len(X))
    pieces = [
        NormalEquations.of(X[a:b], y[a:b], np.array([0, b - a]), np.ones(1))
        for a, b in np.lib.stride_tricks.sliding_window_view(start, 2)
    ]
    fit = reduce(add, pieces).solve(0.0)
    assert fit.undetermined == 2 and fit.theta[1:].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(
        fit.theta[0], NormalEquations.of(X, y, start, np.ones(40)).solve(0.0).theta[0], rtol=1e-12
    )


def test_scaling_commutes_with_adding() -> None:
    X, y, start, weight = problem(8)
    unit = np.array([2.0, 1e-6, 1e6, 1.0, 3.0])
    for intercept in INTERCEPTS:
        found = NormalEquations.of(X, y, start, weight, intercept=intercept).scaled(unit)
        right = NormalEquations.of(X * unit, y, start, weight, intercept=intercept)
        for name in ("gram", "moment", "squares", "mean_x", "level"):
            np.testing.assert_allclose(getattr(found, name), getattr(right, name), rtol=1e-9, atol=1e-15, err_msg=name)
        twice = found + right
        np.testing.assert_allclose(twice.gram, 2 * right.gram, rtol=1e-9, atol=1e-15)


def test_what_does_not_belong_together_does_not_add_up() -> None:
    with pytest.raises(UsageError, match="2 and of 3 columns"):
        Moments.of(np.ones((1, 2))) + Moments.of(np.ones((1, 3)))
    X, y, start, weight = problem(1)
    equations = NormalEquations.of(X, y, start, weight)
    others = [
        NormalEquations.of(X[:, :2], y, start, weight),
        NormalEquations.of(X, y[:, 0], start, weight),
        NormalEquations.of(X, y, start, weight, intercept="one"),
    ]
    for other in others:
        with pytest.raises(UsageError, match="do not add up"):
            equations + other
    for left in (equations, Moments.of(X)):
        with pytest.raises(TypeError):
            left + 1

"""Weighted least squares with intercepts per query, against a dense problem that has the intercepts as columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import concordant as cc
from concordant.errors import UsageError
from concordant.learning.features.matrix import Features, align
from concordant.learning.features.normalising import Normaliser
from concordant.learning.features.reading import read_judged
from concordant.learning.solvers import least_squares as centred_blocks
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.learning.targets.mean_targets import mean_targets

Problem = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def problem(seed: int, width: int = 4, targets: int | None = None) -> Problem:
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 7, 8)
    start = np.concatenate(([0], np.cumsum(size)))
    shape = (start[-1],) if targets is None else (start[-1], targets)
    shift = np.repeat(rng.normal(size=8) * 5, size)
    X = rng.normal(size=(start[-1], width)) + shift[:, None]
    y = rng.normal(size=shape) + (shift if targets is None else shift[:, None])
    return X, y, start, rng.uniform(0.1, 2, 8)


def dense(X: np.ndarray, y: np.ndarray, start: np.ndarray, weight: np.ndarray, ridge: float, intercept: str):
    """θ by ordinary least squares on stacked rows: the data, one column per intercept, and √λ I for the ridge."""
    size = np.diff(start)
    root = np.sqrt(np.repeat(weight, size))[:, None]
    owner = np.repeat(np.arange(len(size)), size)
    columns = {"query": np.eye(len(size))[owner], "one": np.ones((len(X), 1)), "none": np.zeros((len(X), 0))}[intercept]
    top = np.hstack([X, columns]) * root
    bottom = np.hstack([np.sqrt(ridge) * np.eye(X.shape[1]), np.zeros((X.shape[1], columns.shape[1]))])
    Y = y.reshape(len(y), -1)
    stacked = np.vstack([top, bottom])
    right = np.vstack([Y * root, np.zeros((X.shape[1], Y.shape[1]))])
    solution, *_ = np.linalg.lstsq(stacked, right, rcond=None)
    value = 0.5 * ((stacked @ solution - right) ** 2).sum(axis=0)
    return solution[: X.shape[1]], solution[X.shape[1] :], value


@given(st.integers(0, 10_000), st.sampled_from([0.01, 0.3, 20.0]), st.sampled_from(["query", "one", "none"]))
def test_the_closed_form_is_the_dense_solution(seed: int, ridge: float, intercept: str) -> None:
    X, y, start, weight = problem(seed)
    fit = NormalEquations.of(X, y, start, weight, intercept=intercept).solve(ridge)
    theta, constant, value = dense(X, y, start, weight, ridge, intercept)
    np.testing.assert_allclose(fit.theta, theta[:, 0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(fit.value, value[0], rtol=1e-7)
    if intercept == "one":
        np.testing.assert_allclose(fit.intercept, constant[0, 0], rtol=1e-6, atol=1e-8)
    assert fit.status == "closed form" and fit.gradient < 1e-8


def test_without_ridge_the_plain_solution_and_several_targets_at_once() -> None:
    X, y, start, weight = problem(4, targets=3)
    equations = NormalEquations.of(X, y, start, weight)
    for ridge in (0.0, 1.0):
        fit = equations.solve(ridge)
        np.testing.assert_allclose(fit.theta, dense(X, y, start, weight, ridge, "query")[0], rtol=1e-8)
        alone = NormalEquations.of(X, y[:, 1], start, weight).solve(ridge)
        np.testing.assert_allclose(fit.theta[:, 1], alone.theta, rtol=1e-12)


def test_an_iterative_solver_finds_the_same_minimum() -> None:
    X, y, start, weight = problem(7)
    ridge, size = 0.2, np.diff(start)
    w, owner = np.repeat(weight, size), np.repeat(np.arange(len(size)), size)

    def risk(parameters: np.ndarray) -> float:
        theta, t = parameters[:4], parameters[4:]
        return float((w / 2 * (X @ theta + t[owner] - y) ** 2).sum() + ridge / 2 * theta @ theta)

    found = minimize(risk, np.zeros(4 + len(size)), method="BFGS", options={"gtol": 1e-7})
    fit = NormalEquations.of(X, y, start, weight).solve(ridge)
    np.testing.assert_allclose(fit.theta, found.x[:4], atol=1e-5)
    np.testing.assert_allclose(fit.value, found.fun, rtol=1e-9)


def test_a_shift_per_query_changes_nothing() -> None:
    X, y, start, weight = problem(5)
    owner = np.repeat(np.arange(8), np.diff(start))
    shift = np.random.default_rng(0).normal(size=8) * 100
    plain = NormalEquations.of(X, y, start, weight).solve(0.1).theta
    np.testing.assert_allclose(
        NormalEquations.of(X, y + shift[owner], start, weight).solve(0.1).theta, plain, rtol=1e-9
    )
    moved = NormalEquations.of(X + shift[owner, None], y, start, weight).solve(0.1).theta
    np.testing.assert_allclose(moved, plain, rtol=1e-9)
    with pytest.raises(AssertionError):  # with one intercept it does
        np.testing.assert_allclose(
            NormalEquations.of(X, y + shift[owner], start, weight, intercept="one").solve(0.1).theta, plain, rtol=1e-2
        )


def test_rows_blocks_and_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, start, weight = problem(6)
    wanted = NormalEquations.of(X, y, start, weight)
    shuffle = np.random.default_rng(1).permutation(len(X))
    rows = np.argsort(shuffle)  # X[shuffle][rows] is X
    np.testing.assert_array_equal(NormalEquations.of(X[shuffle], y, start, weight, rows=rows).gram, wanted.gram)
    single = NormalEquations.of(X.astype(np.float32), y, start, weight)
    assert single.gram.dtype == np.float64
    np.testing.assert_allclose(single.gram, wanted.gram, rtol=1e-4, atol=1e-4)
    for intercept in ("query", "one", "none"):
        whole = NormalEquations.of(X, y, start, weight, intercept=intercept).solve(0.5).theta
        with monkeypatch.context() as patch:
            patch.setattr(centred_blocks, "BLOCK", 4 * 5)
            parts = NormalEquations.of(X, y, start, weight, intercept=intercept).solve(0.5).theta
        np.testing.assert_allclose(parts, whole, rtol=1e-10)


@pytest.mark.parametrize("intercept", ["query", "one", "none"])
def test_integers_and_the_given_matrix_are_left_alone(intercept: str) -> None:
    X, y, start, weight = problem(2)
    whole, before = np.rint(X * 3).astype(int), (X.copy(), y.copy())
    as_float = NormalEquations.of(whole.astype(float), y, start, weight, intercept=intercept)
    np.testing.assert_array_equal(NormalEquations.of(whole, y, start, weight, intercept=intercept).gram, as_float.gram)
    NormalEquations.of(X, y, start, weight, intercept=intercept)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_weight_is_repetition_and_zero_weight_is_absence() -> None:
    X, y, start, _ = problem(8)
    some = NormalEquations.of(X, y, start, np.array([2.0, *[1.0] * 6, 0.0]))
    first = slice(0, start[1])
    X2, y2 = np.concatenate([X[first], X[: start[-2]]]), np.concatenate([y[first], y[: start[-2]]])
    start2 = np.concatenate(([0], start[:-1] + start[1]))
    np.testing.assert_allclose(NormalEquations.of(X2, y2, start2, np.ones(8)).gram, some.gram, rtol=1e-12)


def test_what_is_not_determined_is_said() -> None:
    X, y, start, weight = problem(9)
    size = np.diff(start)
    constant = np.repeat(np.arange(8.0), size)  # constant within every query
    wide = np.column_stack([X, constant, X[:, 0]])
    fit = NormalEquations.of(wide, y, start, weight).solve(0.0)
    plain = NormalEquations.of(X, y, start, weight).solve(0.0)
    assert fit.undetermined == 2 and "undetermined" in fit.status and fit.theta[4] == 0.0
    np.testing.assert_allclose(fit.theta[0], fit.theta[5], rtol=1e-9)
    np.testing.assert_allclose(fit.theta[0] + fit.theta[5], plain.theta[0], rtol=1e-7)
    np.testing.assert_allclose(fit.value, plain.value, rtol=1e-9)
    scaled = NormalEquations.of(X * [1e9, 1e-9, 1.0, 1.0], y, start, weight).solve(0.0)
    assert scaled.undetermined == 0
    np.testing.assert_allclose(scaled.theta * [1e9, 1e-9, 1.0, 1.0], plain.theta, rtol=1e-8)


def test_lists_of_one_and_empty_ones_do_no_harm() -> None:
    start = np.array([0, 1, 1, 3])
    equations = NormalEquations.of(np.array([[7.0], [0.0], [2.0]]), np.array([9.0, 1.0, 2.0]), start, np.ones(3))
    np.testing.assert_allclose(equations.solve(0.0).theta, [0.5])
    assert NormalEquations.of(np.zeros((0, 2)), np.zeros(0), np.array([0]), np.zeros(0)).solve(1.0).theta.tolist() == [
        0,
        0,
    ]


def test_shapes_and_options_are_checked() -> None:
    X, y, start, weight = problem(1)
    for arguments, options, says in (
        ((X, y[1:], start, weight), {}, "shapes do not fit"),
        ((X, y, start, weight[1:]), {}, "shapes do not fit"),
        ((X[1:], y, start, weight), {}, "shapes do not fit"),
        ((X, y, start, -weight), {}, "may not be negative"),
        ((X, y, start, weight), {"intercept": "each"}, "intercept must be one of"),
    ):
        with pytest.raises(UsageError, match=says):
            NormalEquations.of(*arguments, **options)
    for ridge in (-1.0, np.nan, np.inf):
        with pytest.raises(UsageError, match="ridge must be"):
            NormalEquations.of(X, y, start, weight).solve(ridge)
    assert NormalEquations.of(X, y, start, weight).largest_curvature > 0


# -- features, targets and solver together on real data ------------------------------------------------------------
def simulated_comparisons(features: Features, relevance: np.ndarray, each: int, seed: int) -> cc.Preferences:
    """``each`` comparisons a query under BTL (AoS (26)): a uniform pair, i ≻ j with probability σ(r_i − r_j)."""
    rng, query = np.random.default_rng(seed), features.query
    assert query is not None
    size = np.bincount(query)
    place, begin = np.argsort(query, kind="stable"), np.cumsum(size) - size
    q = np.repeat(np.arange(len(size)), each)
    i = (rng.random(len(q)) * size[q]).astype(int)
    j = (i + 1 + (rng.random(len(q)) * (size[q] - 1)).astype(int)) % size[q]
    a, b = place[begin[q] + i], place[begin[q] + j]
    a, b = np.where(rng.random(len(q)) < 1 / (1 + np.exp(relevance[b] - relevance[a])), [a, b], [b, a])
    labels = (features.items.take(features.item[rows]) for rows in (a, b))
    return cc.Preferences.from_comparisons(*labels, query=features.queries.take(query[a]))


def ndcg_risk(scores: np.ndarray, features: Features, relevance: np.ndarray) -> float:
    """Mean NDCG loss (14) with G = 2^s on the limit scores (27), query by query."""
    losses = []
    for q in range(len(features.queries)):
        rows = np.flatnonzero(features.query == q)
        m = len(rows)
        G = 2.0 ** (m / (m - 1) * (relevance[rows] - relevance[rows].mean()))
        F = np.log2(1 + np.arange(1, m + 1))
        best = (np.sort(G)[::-1] / F).sum()
        losses.append(1 - (G[np.argsort(-scores[rows], kind="stable")] / F).sum() / best)
    return float(np.mean(losses))


def test_the_two_traps_of_gain_regression_on_mslr(shared_data: Callable[[str], Path]) -> None:
    """The method's measurements: .164 at k = 80, .20 and .17 at k = 1 and 5, .158 from Bradley–Terry scores with
    G = 2^s − 1; with G = 2^s about .27, and .18 with an intercept per query."""
    features, relevance = read_judged(shared_data("mslr/mslr_merged_by_query.svm.gz"))
    long = np.bincount(features.query)[features.query] >= 20
    features, relevance = features.take(long), relevance[long]
    assert len(features.queries) == 179
    prefs = simulated_comparisons(features, relevance, 640, seed=0)
    rows = align(features, prefs).row
    X = Normaliser(log=True).fit(features).apply(features.X)

    def risk(structure: str, order: int | str, gain: str, intercept: str) -> float:
        targets = mean_targets(prefs, structure, order=order, gain=gain, subsets=16)
        equations = NormalEquations.of(X, targets.value, targets.start, targets.weight, rows=rows, intercept=intercept)
        return ndcg_risk(X @ equations.solve(1e-4).theta, features, relevance)

    k1, k5, k80 = (risk("log-odds", k, "2^s-1", "query") for k in (1, 5, 80))
    assert k1 > k5 + 0.01 > k80 + 0.01
    assert k80 == pytest.approx(0.164, abs=0.005)
    assert risk("bradley-terry", "all", "2^s-1", "query") == pytest.approx(0.158, abs=0.004)
    assert risk("log-odds", "all", "2^s", "query") == pytest.approx(0.18, abs=0.006)
    assert risk("log-odds", "all", "2^s", "none") > 0.24


# -- the compiled pass -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("ordered", [False, True])
def test_the_compiled_pass_is_the_plain_one(precision: str, ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, start, weight = problem(5, width=7, targets=2)
    start = np.concatenate((start[:3], start[2:]))  # an empty query
    weight = np.insert(weight, 2, 1.0)
    table = np.random.default_rng(1).normal(size=(90, 7)).astype(precision)
    rows = None if ordered else np.random.default_rng(2).integers(0, 90, len(X))
    table = table[: len(X)] if ordered else table
    monkeypatch.setattr(centred_blocks, "BLOCK", 70)
    plain = NormalEquations.of(table, y, start, weight, rows=rows)
    monkeypatch.setattr(centred_blocks, "LARGE", 0)
    quick = NormalEquations.of(table, y, start, weight, rows=rows)
    for name in ("gram", "moment", "squares"):
        rtol = 1e-13 if precision == "float64" else 1e-5
        np.testing.assert_allclose(getattr(quick, name), getattr(plain, name), rtol=rtol, atol=rtol, err_msg=name)


def test_rows_that_are_not_there_are_refused() -> None:
    X, y, start, weight = problem(0)
    for wrong in (-1, len(X)):
        rows = np.arange(len(X))
        rows[3] = wrong
        with pytest.raises(UsageError, match="rows must be among"):
            NormalEquations.of(X, y, start, weight, rows=rows)


def test_a_grid_of_targets_and_ridges_is_each_by_itself() -> None:
    X, y, start, weight = problem(3, targets=3)
    together = NormalEquations.of(X, y, start, weight)
    for column in range(3):
        alone = NormalEquations.of(X, y[:, column], start, weight)
        for ridge in (0.0, 0.1, 3.0):
            np.testing.assert_allclose(
                together.solve(ridge).theta[:, column], alone.solve(ridge).theta, rtol=1e-10, atol=1e-13
            )


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("intercept", ["query", "one"])
def test_what_rounding_leaves_of_a_constant_column_counts_for_nothing(
    compiled: bool, precision: str, intercept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(centred_blocks, "LARGE", 0 if compiled else 1 << 60)
    rng = np.random.default_rng(5)
    size = np.array([3, 7, 700, 1, 0, 49])
    start, nodes = np.concatenate(([0], np.cumsum(size))), int(size.sum())
    each = rng.normal(size=(6, 2)) * [0.1, 1e6] + [0.7, 1e3]  # of each query, of everything, and a rounding error more
    level = np.repeat(each, size, axis=0) if intercept == "query" else np.full((nodes, 2), [0.1, 1e6 / 3])
    eps = np.finfo(precision).eps
    X = np.column_stack(
        [rng.normal(size=(nodes, 2)), level, level[:, :1] * (1 + eps * rng.integers(-1, 2, (nodes, 1)))]
    )
    X[:, 1] = 300.0 + 1e-2 * X[:, 1]  # seldom as much and never as little as its rounding
    X = X.astype(precision)
    y, weight = X[:, 0] + rng.normal(size=nodes), rng.uniform(0.5, 1, 6)
    fit = NormalEquations.of(X, y, start, weight, intercept=intercept).solve(0.0)
    assert fit.theta[2:].tolist() == [0.0, 0.0, 0.0]
    assert fit.undetermined == 3 and fit.status == "closed form, undetermined directions set to 0"
    right = dense(X[:, :2].astype(np.float64), y, start, weight, 0.0, intercept)[0][:, 0]
    np.testing.assert_allclose(fit.theta[:2], right, rtol=1e-8 if precision == "float64" else 1e-2, atol=1e-3)
    shrunk = NormalEquations.of(X, y, start, weight, intercept=intercept).solve(1e-9)
    assert shrunk.theta[2:].tolist() == [0.0, 0.0, 0.0] and shrunk.undetermined == 0


def test_what_is_constant_in_most_queries_is_not_lost() -> None:
    """A column that tells items of one short query apart, however large it is in a thousand others."""
    start = np.append(np.arange(0, 100_001, 100), 100_004)
    X = np.repeat(np.linspace(5e4, 6e4, 1001), np.diff(start)).astype(np.float32)[:, None]
    X[-4:, 0] = [1, 2, 3, 4]
    y = np.zeros(len(X))
    y[-4:] = [2, 4, 6, 8]
    fit = NormalEquations.of(X, y, start, np.ones(1001)).solve(0.0)
    assert fit.theta[0] == pytest.approx(2.0, rel=1e-5) and fit.undetermined == 0

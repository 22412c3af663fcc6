"""Paths, rings, stars, trees, ladders, grids, barbells: exact where conjugate gradients do not end.

Oracles: closed forms (resistances in series), dense inverses for small n, SciPy's LU of the grounded system else.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import splu

from concordant.kernels.elimination import least_degree
from concordant.preferences.connectivity import connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.status import Status
from concordant.ranking import large_variances as eliminated
from concordant.ranking import large_variances as large
from concordant.ranking import standard_errors
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.closed_forms import thurstone_mosteller
from concordant.ranking.covariance import Meat
from concordant.ranking.curvature import bradley_terry_curvature
from concordant.ranking.elimination import Elimination
from concordant.ranking.plackett_luce import plackett_luce, plackett_luce_curvature
from concordant.ranking.rank import rank
from concordant.ranking.standard_errors import score_intervals

KINDS = ("path", "ring", "star", "hubs", "tree", "next three", "ladder", "grid", "barbell")


def pairs(kind, n):
    """The pairs of a graph of about n items."""
    i = np.arange(n)
    if kind == "path":
        return i[:-1], i[1:]
    if kind == "ring":
        return i, np.roll(i, -1)
    if kind == "star":
        return np.zeros(n - 1, int), i[1:]
    if kind == "hubs":
        return np.repeat([0, 1], n - 2), np.tile(i[2:], 2)
    if kind == "tree":
        return (i[1:] - 1) // 2, i[1:]
    if kind == "next three":
        return np.concatenate([i[:-k] for k in (1, 2, 3)]), np.concatenate([i[k:] for k in (1, 2, 3)])
    if kind == "barbell":  # two grids and a path between them
        third = n // 3
        side = int(third**0.5)
        first, second = pairs("grid", third)
        last = third // side * side
        path = np.arange(last - 1, last + third + 1)
        return (
            np.concatenate([first, path[:-1], first + last + third]),
            np.concatenate([second, path[1:], second + last + third]),
        )
    wide = 2 if kind == "ladder" else int(n**0.5)
    grid = np.arange(n // wide * wide).reshape(-1, wide)
    first = np.concatenate([grid[:-1].ravel(), grid[:, :-1].ravel()])
    return first, np.concatenate([grid[1:].ravel(), grid[:, 1:].ravel()])


def compared(kind, n, *, even=False, seed=0, **more):
    """3 : 1 in every pair, or drawn counts."""
    first, second = pairs(kind, n)
    rng = np.random.default_rng(seed)
    count = np.repeat([3, 1], len(first)) if even else rng.integers(1, 20, 2 * len(first))
    winner, loser = np.concatenate([first, second]), np.concatenate([second, first])
    more = {name: draw(rng, len(winner)) for name, draw in more.items()}
    return Preferences.from_comparisons(winner, loser, count=count, **more)


def fitted(prefs, prior):
    batch = Batch.whole(prefs)
    scores = bradley_terry(batch, prior=prior)
    return batch, scores, bradley_terry_curvature(batch, scores)


def errors(fit, method):
    batch, scores, curvature = fit
    found = score_intervals(batch, scores, curvature, connectivity=connectivity(batch.graphs), method=method)
    assert found.notes == () and not found.approximate.any()
    return found.standard_error


def exact(fit, items, method):
    """Standard errors of some items: LU of the Hessian, one item held where there is no prior."""
    batch, _, curvature = fit
    hessian = csr_array(curvature.hessian)
    n = hessian.shape[0]
    held = np.zeros(n)
    held[int(hessian.diagonal().argmax())] = hessian.diagonal().max() if curvature.prior == 0 else 0.0
    matrix = hessian + curvature.prior * eye_array(n) + csr_array((held, (np.arange(n), np.arange(n))), shape=(n, n))
    right = np.full((n, len(items)), -1.0 / n)
    right[items, np.arange(len(items))] += 1.0
    answer = splu(csc_array(matrix), permc_spec="MMD_AT_PLUS_A").solve(right)
    if method == "hessian":
        return np.sqrt(np.einsum("ij,ij->j", right, answer))
    return np.sqrt(((Meat.of(batch, curvature).root @ answer) ** 2).sum(axis=0))


# -- closed forms ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [450, 7_000, 100_000])
def test_a_path_is_resistances_in_series(n):
    prefs = compared("path", n, even=True)
    fit = fitted(prefs, 0.0)
    assert fit[1].status[0] == Status.CONVERGED
    assert np.diff(fit[1].value) == pytest.approx(np.full(n - 1, -np.log(3)), rel=1e-9)
    r = 1.0 / (4 * 0.75 * 0.25)  # of one pair
    i = np.arange(n, dtype=float)
    # Σ over pairs (k, k+1) of r·(share of items beyond the pair, seen from i)²
    below, above = i * (i + 1) * (2 * i + 1) / 6, (n - 1 - i) * (n - i) * (2 * (n - 1 - i) + 1) / 6
    expected = np.sqrt(r * (below + above)) / n
    assert errors(fit, "hessian") == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("n", [500, 7_000])
def test_a_ring_and_a_star(n):
    ring = fitted(compared("ring", n, even=True), 0.0)
    weight = 1.0  # 4 · ½ · ½: 3 : 1 all the way round is level
    assert errors(ring, "hessian") == pytest.approx(np.full(n, np.sqrt((n * n - 1) / (12 * n) / weight)), rel=1e-9)
    star = fitted(compared("star", n, even=True), 0.0)
    r = 4 / 3
    expected = np.full(n, np.sqrt(r * ((1 - 1 / n) ** 2 + (n - 2) / n**2)))
    expected[0] = np.sqrt(r * (n - 1)) / n
    assert errors(star, "hessian") == pytest.approx(expected, rel=1e-9)


# -- dense and sparse oracles --------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prior", [0.0, 1e-6, 0.01])
def test_small_graphs_equal_dense_inverses(monkeypatch, kind, prior):
    for more in ({}, {"cluster": lambda rng, n: rng.integers(0, n // 3, n)}):
        fit = fitted(compared(kind, 300, **more), prior)
        for method in ("hessian", "sandwich"):
            expected = errors(fit, method)  # up to 400 items: dense
            with monkeypatch.context() as patch:
                patch.setattr(standard_errors, "SMALL", 1)
                patch.setattr(large, "THIN", 1e9)
                assert errors(fit, method) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_large_graphs_equal_lu(kind):
    for prior in (0.0, 1e-6, 0.01):
        fit = fitted(compared(kind, 9_000), prior)
        assert fit[1].status[0] == Status.CONVERGED
        items = np.random.default_rng(1).integers(0, len(fit[1].value), 6)
        for method in ("hessian", "sandwich"):
            assert errors(fit, method)[items] == pytest.approx(exact(fit, items, method), rel=1e-6)


def test_few_clusters_over_a_whole_chain():
    fit = fitted(compared("next three", 7_000, cluster=lambda rng, n: rng.integers(0, 40, n)), 0.0)
    items = np.array([0, 17, 3_500, 6_999])
    assert errors(fit, "sandwich")[items] == pytest.approx(exact(fit, items, "sandwich"), rel=1e-6)


def test_too_many_rows_for_one_solution_each_are_drawn_and_said(monkeypatch):
    fit = fitted(compared("next three", 7_000, cluster=lambda rng, n: rng.integers(0, 900, n)), 0.0)
    batch, scores, curvature = fit
    monkeypatch.setattr(eliminated, "AFFORDED", 1.0)
    monkeypatch.setattr(eliminated.Eliminated, "variance", lambda self, root: self._by_rows(root))
    found = score_intervals(batch, scores, curvature, connectivity=connectivity(batch.graphs), method="sandwich")
    assert found.approximate.all() and "random projections" in found.notes[0]
    items = np.arange(0, 7_000, 500)
    assert found.standard_error[items] == pytest.approx(exact(fit, items, "sandwich"), rel=0.25)


def test_coefficients_beside_a_long_chain():
    first, second = pairs("next three", 6_500)
    rng = np.random.default_rng(4)
    home = rng.choice((-1.0, 1.0), 2 * len(first))
    more = {"covariates": {"home": home}, "count": rng.integers(1, 9, 2 * len(first))}
    prefs = Preferences.from_comparisons(np.concatenate([first, second]), np.concatenate([second, first]), **more)
    batch, scores, curvature = fitted(prefs, 0.0)
    assert scores.status[0] == Status.CONVERGED
    whole = csc_array(curvature.hessian)
    held = csc_array(whole[1:, 1:])  # the first item at 0
    n = len(scores.value)
    right = np.full((whole.shape[0], 4), 0.0)
    right[:n] = -1.0 / n
    right[[0, 40, 3_000], [0, 1, 2]] += 1.0
    right[:, 3], right[n, 3] = 0.0, 1.0
    answer = np.zeros_like(right)
    answer[1:] = splu(held).solve(right[1:])
    found = score_intervals(batch, scores, curvature, connectivity=connectivity(batch.graphs), method="hessian")
    expected = np.sqrt(np.einsum("ij,ij->j", right, answer))
    assert found.standard_error[[0, 40, 3_000]] == pytest.approx(expected[:3], rel=1e-6)
    assert found.coefficient_error == pytest.approx(expected[3:], rel=1e-6)


# -- nothing is dropped ------------------------------------------------------------------------------------------
def test_a_sketch_that_cannot_end_says_so(monkeypatch):
    batch, scores, curvature = fitted(compared("path", 6_500, even=True), 0.0)
    monkeypatch.setattr(large.Eliminated, "of", lambda *_, **__: None)
    monkeypatch.setattr(large.Spectral, "contrast", lambda *_: None)
    found = score_intervals(batch, scores, curvature, connectivity=connectivity(batch.graphs), method="hessian")
    assert (
        np.isinf(found.standard_error).all()
        and [note.code for note in found.notes] == ["no intervals"]
        and found.approximate.all()
    )


# -- other structures ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_thurstone_mosteller_on_long_chains(kind):
    prefs = compared(kind, 8_000)
    batch = Batch.whole(prefs)
    found = thurstone_mosteller(batch)
    assert found.status[0] == Status.CONVERGED
    graphs = batch.graphs
    odds = np.log((graphs.above + 0.5) / (graphs.below + 0.5))
    n = graphs.nodes
    rows = np.concatenate([np.arange(len(odds)), np.arange(len(odds))])
    ends, signs = np.concatenate([graphs.first, graphs.second]), np.repeat([1.0, -1.0], len(odds))
    incidence = csr_array((signs, (rows, ends)), shape=(len(odds), n))
    whole = csc_array((incidence.T @ incidence)[1:, 1:])
    expected = np.zeros(n)
    expected[1:] = splu(whole, permc_spec="MMD_AT_PLUS_A").solve((incidence.T @ odds)[1:])
    assert found.value == pytest.approx(expected - expected.mean(), rel=1e-6, abs=1e-6)


def test_plackett_luce_on_a_long_chain():
    n = 3_000
    base = np.repeat(np.arange(n - 2), 3)
    order = np.array([[0, 1, 2], [2, 1, 0], [1, 2, 0]])[np.tile(np.arange(3), n - 2)]
    items = (base[:, None] + order).ravel()
    lists = np.repeat(np.arange(len(base)), 3)
    prefs = Preferences.from_orders(["q"] * len(items), lists, items, np.tile([1, 2, 3], len(base)))
    batch = Batch.whole(prefs)
    scores = plackett_luce(batch, prior=0)
    assert scores.status[0] == Status.CONVERGED
    curvature = plackett_luce_curvature(batch, scores)
    step = splu(csc_array(curvature.hessian)[1:, 1:]).solve(np.asarray(curvature.contributions.sum(axis=0)).ravel()[1:])
    assert np.abs(step).max() < 1e-6  # Newton has nothing left to do
    found = score_intervals(batch, scores, curvature, connectivity=connectivity(batch.graphs))
    assert found.standard_error[[0, 1_500]] == pytest.approx(
        exact((batch, scores, curvature), np.array([0, 1_500]), "hessian"), rel=1e-6
    )


# -- the kernel ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_elimination_equals_dense_algebra(kind):
    first, second = pairs(kind, 60)
    low, high = np.minimum(first, second).astype(np.int64), np.maximum(first, second).astype(np.int64)
    n = int(high.max()) + 1
    rng = np.random.default_rng(7)
    weight, turned, flow = rng.exponential(size=(3, len(low)))
    held = np.where(rng.random(n) < 0.3, rng.exponential(size=n), 0.0)
    held[0] = 1.0
    ground = rng.normal(size=n)

    def matrix(w):
        out = np.zeros((n, n))
        np.add.at(out, (low, high), -w)
        out += out.T
        return out - np.diag(out.sum(axis=1))

    order = Elimination.of(low, high, n)
    whole = matrix(weight) + np.diag(held)
    inverse = np.linalg.inv(whole)
    factor = order.factor(weight, held, -turned)
    own, bent = factor.inverse_diagonal()
    assert own == pytest.approx(np.diagonal(inverse), rel=1e-10)
    assert bent == pytest.approx(np.diagonal(inverse @ matrix(turned) @ inverse), rel=1e-10)
    sides = rng.normal(size=(n, 3))
    assert factor.solve(sides) == pytest.approx(inverse @ sides, rel=1e-9, abs=1e-12)
    push = np.zeros(n)
    np.add.at(push, low, flow)
    np.subtract.at(push, high, flow)
    found = order.least_squares(weight, flow, held, ground)
    assert found == pytest.approx(inverse @ (push + held * ground), rel=1e-9, abs=1e-12)


def test_dense_graphs_are_not_eliminated():
    rng = np.random.default_rng(0)
    n = 3_000
    key = np.unique(np.sort(rng.integers(0, n, (60_000, 2)), axis=1) @ np.array([n, 1]))
    first, second = key // n, key % n
    assert Elimination.of(first[first < second], second[first < second], n, work=1e7) is None
    start, beside = np.array([0, 1, 2]), np.array([1, 0])
    assert len(least_degree(start, beside, 0, 1e9)[0]) == 0  # more entries than allowed


def test_a_ranking_of_a_long_chain_has_exact_intervals():
    ranking = rank(compared("next three", 6_500, even=True), prior=0)
    assert not {"approximate standard errors", "no intervals"} & {note.code for note in ranking.notes}

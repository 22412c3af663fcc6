"""Newton's method for Bradley–Terry on many small graphs at once: stacks of dense matrices that fit the cache.

The negative log-likelihood −Σ n_jl log σ(s_j − s_l) is self-concordant in the generalised sense: along a direction δ
its third derivative is at most range(δ) times its second (Bach, EJS 4, 2010). So the full step is safe when
range(δ) ≤ 1.5 or when the slope at its end is still downhill, and t = log(1 + range)/range is safe always: no
line search, and no difference of two large objectives that rounding could turn.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.preferences.graphs import Graphs
from concordant.preferences.status import Status
from concordant.progress import steps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CACHED = 160_000  # entries of one stack of matrices (1.3 MB)
UNKNOWN = 1e100  # in place of the length of a step that was not taken in full
RETREAT = 4.0  # how much shorter a step that ended uphill is tried
SURE = 1.5  # the range of a step up to which it certainly goes down
QUADRATIC = 10.0  # a step below this times √tolerance may have been the last
PATIENCE = 60  # iterations of conjugate gradients before elimination
WIDEST = 300.0  # half the range of scores whose exponentials may be multiplied and divided


@dataclass(frozen=True, eq=False)
class DenseFit:
    """How each of some graphs ended; ``value`` has one entry per node of the batch, written for these graphs only."""

    status: NDArray[np.int8]
    iterations: Ints
    gradient: Floats
    too_wide: NDArray[np.bool_]
    """Scores so far apart that the graph needs the solver that works on differences."""


def safe_step(spread: Floats) -> Floats:
    """Return the length of step, log(1 + d)/d, that certainly goes down; 1 where d is small."""
    wide = np.where(spread > 0, spread, 1.0)
    return np.where(spread <= SURE, 1.0, np.log1p(wide) / wide)


def precision(size: Floats, before: Floats, relative: Floats, tolerance: float) -> Floats:
    """How exactly to solve Newton's equations, from the last decrease of the gradient and what is left to do.

    Choice 2 of Eisenstat and Walker, SIAM J. Sci. Comput. 17, 1996: as exactly as the next step can use.
    """
    decrease = size / np.where(before > 0, before, 1.0)
    enough = 0.01 * tolerance / np.maximum(relative, 0.01 * tolerance)
    return np.clip(np.maximum(0.9 * decrease * decrease, enough), 1e-8, 0.05)


def fit_dense(
    graphs: Graphs,
    chosen: Ints,
    component: NDArray[np.int32],
    *,
    prior: float,
    mean: Floats | None = None,
    tolerance: float,
    max_iterations: int,
    value: Floats,
) -> DenseFit:
    """Fit the chosen graphs (numbers in the batch), writing their nodes' scores into ``value``.

    Scores are what exceeds the prior's ``mean``, one of each node of the batch. Graphs of one size are stacked, those
    of one component apart from others, so no graph is padded and none depends on its neighbours to the last bit.
    """
    size = graphs.sizes[chosen]
    several = graphs.node_groups.most(component.astype(np.int64))[chosen] > 0
    kind = 2 * size + several
    status = np.full(len(chosen), Status.CONVERGED, np.int8)
    iterations, gradient = np.zeros(len(chosen), np.int64), np.zeros(len(chosen))
    too_wide = np.zeros(len(chosen), bool)
    sorter = np.argsort(kind, kind="stable")
    for here in steps("graphs", _stacks(size, kind, sorter)):
        m = int(size[here[0]])
        nodes = graphs.node_start[:-1][chosen[here]][:, None] + np.arange(m)
        above = _matrices(graphs, chosen[here], m)
        same = component[nodes]
        value[nodes], status[here], iterations[here], gradient[here], too_wide[here] = _newton(
            above, same, prior, None if mean is None else mean[nodes], tolerance, max_iterations
        )
    return DenseFit(status, iterations, gradient, too_wide)


def _stacks(size: Ints, kind: Ints, order: Ints) -> list[Ints]:
    """Cut graphs, ordered by kind, into stacks of one kind that fit the cache; empty graphs are left out."""
    stacks, ordered, position = [], kind[order], int(np.searchsorted(size[order], 1))
    while position < len(order):
        m = int(size[order[position]])
        step = max(1, CACHED // (m * m))
        end = min(position + step, int(np.searchsorted(ordered, ordered[position], side="right")))
        stacks.append(order[position:end])
        position = end
    return stacks


def _matrices(graphs: Graphs, chosen: Ints, m: int) -> Floats:
    """n_jl of the chosen graphs, all of m nodes; shape (graphs, m, m)."""
    begin, end = graphs.pair_start[:-1][chosen], graphs.pair_start[1:][chosen]
    above = np.zeros((len(chosen), m, m))
    flat = above.reshape(-1)
    length = end - begin
    if length.sum() == end[-1] - begin[0]:  # they stand together
        pairs: slice | Ints = slice(int(begin[0]), int(end[-1]))
    else:
        offset = np.cumsum(length) - length
        pairs = np.arange(int(length.sum())) + np.repeat(begin - offset, length)
    base = np.repeat(np.arange(len(chosen)) * (m * m), length)
    start = np.repeat(graphs.node_start[:-1][chosen], length)
    first, second = graphs.first[pairs] - start, graphs.second[pairs] - start
    flat[base + first * m + second] = graphs.above[pairs]
    flat[base + second * m + first] = graphs.below[pairs]
    return above


def _newton(
    above: Floats,
    component: NDArray[np.int32],
    prior: float,
    mean: Floats | None,
    tolerance: float,
    max_iterations: int,
) -> tuple[Floats, NDArray[np.int8], Ints, Floats, NDArray[np.bool_]]:
    total, m = above.shape[:2]
    score = np.zeros((total, m))
    status = np.full(total, Status.STOPPED, np.int8)
    iterations, gradient = np.zeros(total, np.int64), np.full(total, np.inf)
    too_wide = np.zeros(total, bool)
    fixed, means = _gauge(above, component, prior)
    live = np.arange(total)
    s, before, last = score.copy(), np.zeros((total, m)), np.full(total, UNKNOWN)
    step, size, part = np.zeros((total, m)), np.zeros(total), np.ones(total)
    wide = np.zeros(total, bool)
    for iteration in range(max_iterations + 1):
        slope, curve = _derivatives(above, s, prior, mean)
        while True:
            far = (part > 0) & (np.einsum("gi,gi->g", slope, step) > 0) & (np.ptp(step, axis=1) > SURE)
            if not far.any():
                break
            part, s, last = _shorten(above, before, step, part, s, last, far)
            slope, curve = _derivatives(above, s, prior, mean)
        diagonal = curve.sum(axis=2) + prior
        steepest = np.abs(slope).max(axis=1)
        relative = (np.abs(slope) / np.where(diagonal > 0, diagonal, 1.0)).max(axis=1)
        before_size, size = size, _size(slope, diagonal)
        before_size = size if iteration == 0 else before_size
        expected = last * (size / np.where(before_size > 0, before_size, 1.0))
        done = (steepest == 0) | (last <= tolerance)
        done |= (last <= QUADRATIC * np.sqrt(tolerance)) & (relative <= tolerance) & (expected <= tolerance)
        out = done | wide | (iteration == max_iterations)
        if out.any():
            gone = live[out]
            score[gone], gradient[gone], iterations[gone] = s[out], steepest[out], iteration
            status[gone] = np.where(done[out], Status.CONVERGED, Status.STOPPED)
            too_wide[gone] = wide[out]
            stay = ~out
            live = live[stay]
            if len(live) == 0:
                break
            above, s, slope, curve, diagonal = above[stay], s[stay], slope[stay], curve[stay], diagonal[stay]
            fixed, means = fixed[stay], None if means is None else means[stay]
            mean = None if mean is None else mean[stay]
            size, before_size, relative = size[stay], before_size[stay], relative[stay]
        hessian = np.subtract(fixed, curve, out=curve)
        hessian.reshape(len(live), -1)[:, :: m + 1] += diagonal - prior
        step = solve_stack(hessian, -slope, precision(size, before_size, relative, tolerance))
        step -= step.mean(axis=1)[:, None] if means is None else np.einsum("gij,gj->gi", means, step)
        last = np.abs(step).max(axis=1)
        before, s, part = s, s + step, np.ones(len(live))
        while True:
            wide = np.abs(s if mean is None else s + mean).max(axis=1) > WIDEST
            far = wide & (part > 0)
            if not far.any():
                break
            part, s, last = _shorten(above, before, step, part, s, last, far)
        s = np.where(wide[:, None], before, s)
    return score, status, iterations, gradient, too_wide


def _size(slope: Floats, diagonal: Floats) -> Floats:
    """Norm of the gradient, each entry measured by the curvature there."""
    size: Floats = np.sqrt(np.einsum("gi,gi->g", slope, slope / np.where(diagonal > 0, diagonal, 1.0)))
    return size


def solve_stack(matrix: Floats, right: Floats, relative: Floats) -> Floats:
    """Solve positive definite systems, matrix (graphs, m, m), each to its relative precision.

    Conjugate gradients with Jacobi's preconditioner, since comparison graphs of this kind need few iterations;
    elimination for those that need many. No threaded library call on the way: many small ones would wait for cores.
    """
    inverse = 1.0 / np.einsum("gii->gi", matrix)
    x, r = np.zeros_like(right), right.copy()
    z = r * inverse
    p = z.copy()
    rho = np.einsum("gi,gi->g", r, z)
    goal = relative * relative * rho
    active = rho > 0
    for _ in range(PATIENCE):
        q = np.einsum("gij,gj->gi", matrix, p)
        bend = np.einsum("gi,gi->g", p, q)
        active &= bend > 0
        alpha = np.where(active, rho / np.where(active, bend, 1.0), 0.0)[:, None]
        x += alpha * p
        r -= alpha * q
        np.multiply(r, inverse, out=z)
        new = np.einsum("gi,gi->g", r, z)
        beta = np.where(active, new / np.where(active, rho, 1.0), 0.0)
        rho = np.where(active, new, rho)
        active &= rho > goal
        if not active.any():
            break
        p *= beta[:, None]
        p += z
    for g in np.flatnonzero(rho > goal):
        scale = np.sqrt(inverse[g])
        with suppress(np.linalg.LinAlgError):  # weights too far apart for float64: what was reached stands
            x[g] = scale * np.linalg.solve(matrix[g] * scale[:, None] * scale, scale * right[g])
    return x


def _shorten(
    above: Floats, before: Floats, step: Floats, part: Floats, s: Floats, last: Floats, which: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats]:
    """Take less of the step in some graphs, at least the safe part; its size is 0 where there is nothing to shorten.

    The safe part follows from the range of the step over the pairs compared.
    """
    gap = np.abs(step[:, :, None] - step[:, None, :])
    safe = safe_step(np.where(above > 0, gap, 0.0).max(axis=(1, 2)))
    less = np.maximum(part / RETREAT, safe)
    s = np.where(which[:, None], before + less[:, None] * step, s)
    last = np.where(which & (less < 1), UNKNOWN, last)
    return np.where(which, np.where(less > safe, less, 0.0), part), s, last


def _gauge(above: Floats, component: NDArray[np.int32], prior: float) -> tuple[Floats, Floats | None]:
    """What is added to every Hessian: the prior and, per component, a multiple of 11ᵀ that fixes its free shift.

    Centred scores are the solution with or without it. Also the matrices that average within components (None when
    each graph is one component).
    """
    m = above.shape[1]
    scale = above.sum(axis=(1, 2)) / (2 * m * m) + prior
    scale = np.where(scale > 0, scale, 1.0)[:, None, None]
    same = component[:, :, None] == component[:, None, :]
    fixed = np.where(same, scale / m, 0.0)
    fixed.reshape(len(above), -1)[:, :: m + 1] += prior
    if same.all():
        return fixed, None
    return fixed, same / same.sum(axis=2, keepdims=True)


def _derivatives(above: Floats, s: Floats, prior: float, mean: Floats | None) -> tuple[Floats, Floats]:
    """Gradient of the negative penalised log-likelihood, and n p(1 − p) of every pair; p_jl = π_j/(π_j + π_l)."""
    ability = np.exp(s if mean is None else s + mean)
    both = ability[:, :, None] + ability[:, None, :]
    share = above / both
    falls = ability * np.einsum("gij->gj", share)  # Σ_j n_ji P(i ≻ j)
    gains = np.einsum("gij,gj->gi", share, ability)  # Σ_j n_ij P(j ≻ i)
    slope = prior * s + falls - gains
    share = share + share.transpose(0, 2, 1)
    share /= both
    share *= ability[:, :, None]
    share *= ability[:, None, :]
    return slope, share

"""Truncated Newton on a ragged batch of sparse comparison graphs, with coefficients beside the scores.

Newton's equations are solved to a precision that grows as Newton converges (Nash, J. Comput. Appl. Math. 124, 2000).
Steps are controlled as in ``dense_newton``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from concordant.listing import take_lists
from concordant.progress import steps
from concordant.structures.dense_newton import QUADRATIC, RETREAT, SURE, UNKNOWN, precision, safe_step
from concordant.structures.newton_system import System
from concordant.structures.problem import Problem
from concordant.structures.scores import CONVERGED, STOPPED

__all__ = ["Fit", "fit_sparse"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PATIENT = 20  # times the iterations for graphs with weights far apart: their scores move by about 1 in each
WORK = 1 << 15  # nodes and pairs that are worked on together, a single graph apart


@dataclass(frozen=True, eq=False)
class Fit:
    """Where the graphs ended: scores (nodes,), extra coefficients (graphs, extras) in the problem's scaling."""

    score: Floats
    extra: Floats
    status: NDArray[np.int8]
    iterations: Ints
    gradient: Floats
    weak: Floats
    """Curvature of the worst-determined direction of the coefficients, scores profiled out, relative to its size."""


def fit_sparse(problem: Problem, *, tolerance: float, max_iterations: int) -> Fit:
    """Minimise the negative penalised log-likelihood of every graph; every graph has at least one node.

    Graphs are taken some at a time: what they work on stays in the cache, and a graph that needs many iterations keeps
    few others waiting.
    """
    work = np.diff(problem.node_start) + np.diff(problem.pair_start)
    group = (np.cumsum(work) - work) // WORK
    cuts = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), problem.graphs]
    if len(cuts) == 2:
        return _fit(problem, tolerance, max_iterations)
    pieces = steps("graphs", list(pairwise(cuts)))
    parts = [_fit(problem.part(a, b), tolerance, max_iterations) for a, b in pieces]
    return Fit(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Fit)))


def _fit(problem: Problem, tolerance: float, max_iterations: int) -> Fit:
    total, extras = problem.graphs, problem.extras
    end = Fit(
        np.zeros(problem.nodes),
        np.zeros((total, extras)),
        np.full(total, STOPPED, np.int8),
        np.zeros(total, np.int64),
        np.full(total, np.inf),
        np.ones(total),
    )
    live = np.arange(total)
    node_start = problem.node_start
    system = System(problem)
    s, b = np.zeros(problem.nodes), np.zeros((total, extras))
    system.evaluate(s, b)
    if extras:
        end.weak[:] = system.weakest()
    ds, db = np.zeros_like(s), np.zeros_like(b)
    last, size, stuck = np.full(total, UNKNOWN), system.size(), np.zeros(total, np.int64)
    far, patient = np.zeros(total, bool), np.ones(total, np.int64)
    for iteration in range(PATIENT * max_iterations + 1):
        part = _retreat(system, s, b, ds, db)
        last[part < 1] = UNKNOWN
        before, size = size, system.size()
        steepest, relative = system.steepest()
        expected = last * np.where(before > 0, size / np.where(before > 0, before, 1.0), 0.0)
        small = last <= QUADRATIC * np.sqrt(tolerance)
        done = (steepest == 0) | (last <= tolerance)
        done |= ~far & small & (relative <= tolerance) & (expected <= tolerance)  # sums over nodes, so not if far apart
        stuck = np.where((small | system.unfinished) & (size > 0.5 * before), stuck + 1, 0)
        out = done | (stuck >= 4) | (iteration >= patient * max_iterations)
        if out.any():
            gone = live[out]
            _, nodes = take_lists(node_start, gone)
            _, here = take_lists(system.problem.node_start, np.flatnonzero(out))
            end.score[nodes], end.extra[gone] = s[here], b[out]
            end.gradient[gone], end.iterations[gone] = steepest[out], iteration
            end.status[gone] = np.where(done[out], CONVERGED, STOPPED)
            stay = np.flatnonzero(~out)
            live = live[stay]
            if len(live) == 0:
                break
            _, here = take_lists(system.problem.node_start, stay)
            system = System(system.problem.take(stay))
            s, b = s[here], b[stay]
            system.evaluate(s, b)
            last, size, before, relative = last[stay], size[stay], before[stay], relative[stay]
            stuck, patient = stuck[stay], patient[stay]
        ds, db = system.newton_step(precision(size, before, relative, tolerance))
        far = system.far.copy()
        patient[far] = PATIENT
        last = system.largest(ds, db)
        if (
            far.any()
        ):  # whether a step goes down cannot be seen in sums of weights far apart: only its safe part is taken
            safe = np.where(far, safe_step(system.spread(ds, db)), 1.0)
            ds, db = ds * system.spread_out(safe), db * safe[:, None]
            last[safe < 1] = UNKNOWN
        last[system.unfinished] = UNKNOWN
        s = s + ds
        b = b + db
        system.evaluate(s, b)
    return end


def _retreat(system: System, s: Floats, b: Floats, ds: Floats, db: Floats) -> Floats:
    """Go back along steps that end uphill, down to the part that is safe; return the parts that are left."""
    part = np.ones(len(b))
    limit = np.zeros(0)
    while True:
        uphill = system.dot(system.slope_s, system.slope_b, ds, db) > 0
        uphill &= (system.spread_bound(ds, db) > SURE) & ~system.far
        if uphill.any() and not len(limit):
            limit = safe_step(system.spread(ds, db))
        uphill &= part > (limit if len(limit) else 1.0)
        if not uphill.any():
            return part
        shorter = np.where(uphill, np.maximum(part / RETREAT, limit), part)
        s += system.spread_out(shorter - part) * ds
        b += (shorter - part)[:, None] * db
        part = shorter
        system.evaluate(s, b)

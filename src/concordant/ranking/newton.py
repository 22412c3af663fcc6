"""Truncated Newton on a ragged batch of sparse comparison graphs, with coefficients beside the scores.

Newton's equations are solved to a precision that grows as Newton converges (Nash, J. Comput. Appl. Math. 124, 2000).
Steps are controlled as in ``dense_newton``.

Newton's equations of many comparison graphs at once: derivatives, and their solution by conjugate gradients.

The Hessian of all graphs together is one sparse Laplacian, of which only the pair weights change; only its upper
triangle is kept, in the order of the pair table. Each graph has its own step lengths and its own end; Jacobi's
preconditioner. Graphs that conjugate gradients find hard (chains), or whose weights lie so far apart that sums over
nodes lose some, are solved by elimination where there is an order with little fill.

Linear systems of a batch: one symmetric positive (semi)definite system per graph, solved side by side.

Sums run over one graph at a time, in the order of its nodes, so the answer for a graph does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.progress import steps
from concordant.ranking.cumulative import WIDE
from concordant.ranking.dense_newton import QUADRATIC, RETREAT, SURE, UNKNOWN, precision, safe_step
from concordant.ranking.elimination import FAR, Elimination, dense_least_squares, far_apart
from concordant.ranking.problem import Problem, davidson_derivatives, win_derivatives

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCK = 1 << 17  # pairs whose derivatives are computed at once, so that temporaries stay in the cache
PATIENCE = 200  # iterations of conjugate gradients before elimination is tried
LONGEST = 5_000  # in graphs that have no order of elimination with little fill
TINY = 1e-300  # a curvature whose inverse would leave float64
SMALL = 2_000  # nodes up to which a dense matrix is solved
QUICK = 1e8  # multiplications up to which a sparse order is better than a dense matrix


def _sums(place: Ints, values: Floats, places: int) -> Floats:
    return np.asarray(np.bincount(place, values, places), np.float64)


class System:
    """Derivatives at the current point, and Newton's equations there."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.one = problem.graphs == 1
        self.owner = problem.owner
        pairs, nodes = len(problem.first), problem.nodes
        index = np.int32 if max(pairs, nodes) < 2**31 else np.int64
        rows = Ragged.counted(problem.first, nodes).start.astype(index)
        self.pull, self.curve = np.empty(pairs), np.empty(pairs)
        self.upper = csr_array((self.curve, problem.second.astype(index), rows), shape=(nodes, nodes))
        self.curve = self.upper.data  # the same memory: new weights are in the matrix at once
        self.lower = self.upper.T
        self.stiff = np.zeros(problem.graphs, bool)
        """Graphs that conjugate gradients did not solve: they are eliminated from then on."""
        self.far = np.zeros(problem.graphs, bool)
        """Graphs whose weights lie far apart at this point."""
        self.unfinished = np.zeros(problem.graphs, bool)
        """Graphs whose last step does not solve Newton's equations."""
        self._orders: dict[int, Elimination | None] = {}
        graphs, component = problem.node_groups, problem.component
        self.single = graphs.most(component) == graphs.least(component)
        self.members = np.bincount(problem.component, minlength=1).astype(np.float64)

    # -- derivatives ---------------------------------------------------------------------------------------------
    def evaluate(self, s: Floats, b: Floats) -> None:
        """Compute gradient and second derivatives of the negative penalised log-likelihood."""
        p = self.problem
        self.at = s
        nodes, pairs, extras = p.nodes, len(p.first), p.extras
        tie_pull = cross = tie_curve = np.zeros(0)
        if p.ties is not None:
            tie_pull, cross, tie_curve = np.empty(pairs), np.empty(pairs), np.empty(pairs)
        for begin in range(0, pairs, BLOCK):
            k = slice(begin, min(begin + BLOCK, pairs))
            margin = s[p.first[k]]
            margin -= s[p.second[k]]
            if p.offset is not None:
                margin += p.offset[k]
            if p.covariates is not None:
                margin += np.einsum("pc,pc->p", p.covariates[k], b[p.pairs.owner[k], : p.covariates.shape[1]])
            if p.ties is None:
                self.pull[k], self.curve[k] = win_derivatives(margin, p.above[k], p.below[k])
            else:
                log_nu = b[p.pairs.owner[k], -1]
                self.pull[k], self.curve[k], tie_pull[k], cross[k], tie_curve[k] = davidson_derivatives(
                    margin, log_nu, p.above[k], p.below[k], p.ties[k]
                )
        self.slope_s = p.prior * s - self._differences(self.pull)
        self.diagonal = np.bincount(p.first, self.curve, nodes) + np.bincount(p.second, self.curve, nodes) + p.prior
        self.slope_b = np.zeros((p.graphs, extras))
        self.border = np.zeros((nodes, extras))
        self.flows = np.zeros((pairs, extras))  # the border is their differences at the nodes
        self.corner = np.zeros((p.graphs, extras, extras))
        columns = [] if p.covariates is None else list(p.covariates.T)
        for i, z in enumerate(columns):
            bent = self.flows[:, i] = z * self.curve
            self.slope_b[:, i] = -self._per_graph(z * self.pull)
            self.border[:, i] = self._differences(bent)
            for j in range(i + 1):
                self.corner[:, i, j] = self.corner[:, j, i] = self._per_graph(bent * columns[j])
            if p.ties is not None:
                self.corner[:, i, -1] = self.corner[:, -1, i] = self._per_graph(z * cross)
        if p.ties is not None:
            self.flows[:, -1] = cross
            self.slope_b[:, -1] = -self._per_graph(tie_pull)
            self.border[:, -1] = self._differences(cross)
            self.corner[:, -1, -1] = self._per_graph(tie_curve)
        self.gap = b[:, extras - len(p.apart) :] @ p.apart.T
        if p.gaps is not None:
            last = slice(extras - len(p.apart), extras)
            wide = np.minimum(self.gap, WIDE)
            self.slope_b[:, last] -= (p.gaps / np.expm1(wide)) @ p.apart
            bend = p.gaps / (4.0 * np.sinh(wide / 2.0) ** 2)
            self.corner[:, last, last] += np.einsum("gk,ki,kj->gij", bend, p.apart, p.apart)
        self.settle()

    def settle(self) -> None:
        """Prepare Newton's equations of what ``evaluate`` has found."""
        self.diagonal[self.diagonal < TINY] = 1.0
        self.inverse = np.asarray(1.0 / self.diagonal, np.float64)
        self.free = self.inverse / self._of_component(self.inverse)
        self.corner_diagonal = np.einsum("gii->gi", self.corner).copy()
        self.corner_diagonal[self.corner_diagonal <= 0] = 1.0

    def _differences(self, of_pairs: Floats) -> Floats:
        p = self.problem
        return _sums(p.first, of_pairs, p.nodes) - _sums(p.second, of_pairs, p.nodes)

    def _per_graph(self, of_pairs: Floats) -> Floats:
        return self.problem.pairs.sums(of_pairs)

    # -- sums over graphs ----------------------------------------------------------------------------------------
    def spread_out(self, of_graphs: Floats) -> Floats:
        """A value of each graph at each of its nodes (broadcast when there is one graph)."""
        return of_graphs if self.one else of_graphs[self.owner]

    def dot(self, xs: Floats, xb: Floats, ys: Floats, yb: Floats) -> Floats:
        out: Floats = np.add.reduceat(xs * ys, self.problem.node_start[:-1])
        return out + np.einsum("ge,ge->g", xb, yb) if xb.shape[1] else out

    def _most(self, of_nodes: Floats, of_extras: Floats) -> Floats:
        out = self.problem.node_groups.most(of_nodes)
        return np.maximum(out, of_extras.max(axis=1)) if of_extras.shape[1] else out

    def largest(self, ds: Floats, db: Floats) -> Floats:
        """Largest absolute change of a parameter in each graph."""
        return self._most(np.abs(ds), np.abs(db))

    def steepest(self) -> tuple[Floats, Floats]:
        """Largest absolute entry of the gradient, and largest relative to the curvature there."""
        gs, gb = np.abs(self.slope_s), np.abs(self.slope_b)
        return self._most(gs, gb), self._most(gs / self.diagonal, gb / self.corner_diagonal)

    def size(self) -> Floats:
        """Norm of the gradient, each entry measured by the curvature there."""
        return np.sqrt(
            self.dot(self.slope_s, self.slope_b, self.slope_s / self.diagonal, self.slope_b / self.corner_diagonal)
        )

    def spread_bound(self, ds: Floats, db: Floats) -> Floats:
        """At least the range of a step over the outcomes of any pair (covariates are scaled to at most 1)."""
        graphs = self.problem.node_groups
        return np.asarray(graphs.most(ds) - graphs.least(ds) + np.abs(db).sum(axis=1) + self._of_gaps(db), np.float64)

    def spread(self, ds: Floats, db: Floats) -> Floats:
        """The range of a step over the outcomes of any pair that was compared."""
        p = self.problem
        change = ds[p.first] - ds[p.second]
        if p.covariates is not None:
            change += np.einsum("pc,pc->p", p.covariates, db[p.pairs.owner, : p.covariates.shape[1]])
        change = np.abs(change)
        if p.ties is not None:
            change = np.maximum(change, 0.5 * change + np.abs(db[p.pairs.owner, -1]))
        return p.pairs.most(change) + self._of_gaps(db)

    def _of_gaps(self, db: Floats) -> Floats:
        """How far a step moves thresholds: log(1 − e^−w) of a gap w has its third derivative within 1 + 2/w."""
        moved = np.abs(db[:, db.shape[1] - self.gap.shape[1] :] @ self.problem.apart.T) * (1.0 + 2.0 / self.gap)
        return np.asarray(moved.max(axis=1, initial=0.0), np.float64)

    def within(self, db: Floats) -> Floats:
        """The part of a step that leaves every gap between thresholds a tenth of its width."""
        moved = db[:, db.shape[1] - self.gap.shape[1] :] @ self.problem.apart.T
        part = np.where(moved < -0.9 * self.gap, 0.9 * self.gap / np.maximum(-moved, TINY), 1.0)
        return np.asarray(part.min(axis=1, initial=1.0), np.float64)

    def centre(self, of_nodes: Floats) -> Floats:
        """Subtract the mean within each component."""
        component = self.problem.component
        return of_nodes - (np.bincount(component, of_nodes) / self.members)[component]

    # -- Newton's equations --------------------------------------------------------------------------------------
    def apply(self, xs: Floats, xb: Floats) -> tuple[Floats, Floats]:
        """Return the Hessian times a vector."""
        ys = self.diagonal * xs
        ys -= self.upper @ xs
        ys -= self.lower @ xs
        if not xb.shape[1]:
            return ys, xb
        yb = np.einsum("gef,gf->ge", self.corner, xb)
        for e in range(xb.shape[1]):
            ys += self.border[:, e] * self.spread_out(xb[:, e])
            yb[:, e] += np.add.reduceat(self.border[:, e] * xs, self.problem.node_start[:-1])
        return ys, yb

    def polish(self, of_nodes: Floats) -> Floats:
        """Divide by the diagonal within the scores that sum to zero in each component (constraint preconditioning).

        So conjugate gradients never meet the shift, which the prior alone holds.
        """
        out = of_nodes * self.inverse
        out -= self.free * self._of_component(out)
        return out

    def _of_component(self, of_nodes: Floats) -> Floats:
        """Sum over each component at each of its nodes; a graph's sums do not depend on the graphs beside it."""
        component, start = self.problem.component, self.problem.node_start[:-1]
        total = self.spread_out(np.add.reduceat(of_nodes, start))
        if self.single.all():
            return total
        return np.where(self.single[self.owner], total, np.bincount(component, of_nodes)[component])

    def newton_step(self, precision: Floats) -> tuple[Floats, Floats]:
        """Newton's step, each graph to its relative precision; ``unfinished`` says which graphs did not get there."""
        self._look_for_far()
        xs, xb = self.solve(self.pull, self.at, -self.slope_b, precision, right=-self.slope_s)
        return self.centre(xs), xb

    def _look_for_far(self) -> None:
        p = self.problem
        most, least = p.pairs.most(self.curve), p.pairs.least(self.curve)
        self.far[:] = False
        for g in np.flatnonzero((least <= FAR * most) & (p.prior <= FAR * most)):
            nodes, pairs = self._of(int(g))
            first, second = p.first[pairs] - nodes.start, p.second[pairs] - nodes.start
            self.far[g] = far_apart(first, second, self.curve[pairs], p.prior, nodes.stop - nodes.start)

    def _of(self, graph: int) -> tuple[slice, slice]:
        p = self.problem
        nodes = slice(int(p.node_start[graph]), int(p.node_start[graph + 1]))
        return nodes, slice(int(p.pair_start[graph]), int(p.pair_start[graph + 1]))

    def solve(
        self, flow: Floats, level: Floats, rb: Floats, precision: Floats, right: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Solve for ``right``, the differences of ``flow`` at the nodes less prior · level, and ``rb`` beside."""
        rs = self._differences(flow) - self.problem.prior * level if right is None else right
        direct = self.far | self.stiff
        patience = np.where(direct, 0, PATIENCE)
        xs, xb, open_ = self.conjugate_gradients(rs, rb, precision, patience)
        self.unfinished[:] = False
        long = np.zeros(len(direct), bool)
        for g in np.flatnonzero(open_ | self.far):  # few
            nodes, pairs = self._of(int(g))
            found = self._eliminated(int(g), nodes, pairs, flow[pairs], level[nodes], rb[g])
            if found is None:
                self.unfinished[g] = self.far[g]
                long[g] = open_[g]
                continue
            self.stiff[g] = True
            xs[nodes], xb[g] = found
        if long.any():
            ys, yb, open_ = self.conjugate_gradients(rs, rb, precision, np.where(long, LONGEST, 0))
            self.unfinished |= long & open_
            xs = np.where(self.spread_out(long), ys, xs)
            xb = np.where(long[:, None], yb, xb)
        return xs, xb

    def _eliminated(
        self, g: int, nodes: slice, pairs: slice, flow: Floats, level: Floats, right: Floats
    ) -> tuple[Floats, Floats] | None:
        """One graph's solution; None where elimination would fill too much or weights vanish."""
        p = self.problem
        m = nodes.stop - nodes.start
        first, second = p.first[pairs] - nodes.start, p.second[pairs] - nodes.start
        weight, sides = self.curve[pairs], self.flows[pairs][:, : len(right)]
        if g not in self._orders:
            quick = m <= SMALL and not self.far[g]
            self._orders[g] = Elimination.of(first, second, m, **({"work": QUICK} if quick else {}))
        order = self._orders[g]
        if order is not None:
            held = np.full(m, p.prior)
            columns = [order.least_squares(weight, flow, held, -level)]
            columns += [order.least_squares(weight, side, held, np.zeros(m)) for side in sides.T]
        elif m <= SMALL and not self.far[g]:
            rights = np.column_stack([flow, sides])
            push = np.zeros((m, rights.shape[1]))
            np.add.at(push, first, rights)
            np.subtract.at(push, second, rights)
            push[:, 0] -= p.prior * level
            columns = list(dense_least_squares(first, second, weight, p.prior, p.component[nodes], push).T)
        else:
            return None
        if any(column is None for column in columns):
            return None
        solved = np.column_stack([column for column in columns if column is not None])
        x, along = solved[:, 0], solved[:, 1:]
        if not len(right):
            return x, right
        apart = solved[first] - solved[second]
        schur = self.corner[g][: len(right), : len(right)] - sides.T @ apart[:, 1:]
        try:
            extra = np.asarray(np.linalg.lstsq(schur, right - sides.T @ apart[:, 0])[0], np.float64)
        except np.linalg.LinAlgError:
            return None
        return x - along @ extra, extra

    def conjugate_gradients(
        self, rs: Floats, rb: Floats, precision: Floats, patience: Ints
    ) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Solve for a right-hand side that sums to zero within components (when there is no prior).

        Each graph gets so many steps; also which graphs did not reach their precision.
        """
        rs, rb = rs.copy(), rb.copy()
        xs, xb = np.zeros_like(rs), np.zeros_like(rb)
        zs, zb = self.polish(rs), rb / self.corner_diagonal
        ps, pb = zs.copy(), zb.copy()
        rho = self.dot(rs, rb, zs, zb)
        goal = precision * precision * rho
        active = (rho > 0) & (patience > 0)
        for iteration in range(int(patience.max(initial=0))):
            if not active.any():
                break
            qs, qb = self.apply(ps, pb)
            bend = self.dot(ps, pb, qs, qb)
            active &= (bend > 0) & (iteration < patience)
            alpha = np.where(active, rho / np.where(active, bend, 1.0), 0.0)
            along = self.spread_out(alpha)
            xs += along * ps
            qs *= along
            rs -= qs
            xb += alpha[:, None] * pb
            rb -= alpha[:, None] * qb
            zs = self.polish(rs)
            zb = rb / self.corner_diagonal
            new = self.dot(rs, rb, zs, zb)
            beta = np.where(active, new / np.where(active, rho, 1.0), 0.0)
            rho = np.where(active, new, rho)
            active &= rho > goal
            ps *= self.spread_out(beta)
            ps += zs
            pb = zb + beta[:, None] * pb
        return xs, xb, rho > goal

    def weakest(self) -> Floats:
        """Smallest eigenvalue of the coefficients' curvature with scores profiled out, relative to without."""
        p = self.problem
        profile = self.corner.copy()
        columns = p.extras - (p.ties is not None)
        precision = np.full(p.graphs, 1e-9)
        none = np.zeros((p.graphs, p.extras))
        for e in range(columns):
            level = np.zeros(p.nodes)
            reduced = self._only_scores().solve(self.flows[:, e], level, none[:, :0], precision)[0]
            for f in range(columns):
                profile[:, f, e] -= np.add.reduceat(self.border[:, f] * reduced, p.node_start[:-1])
        scale = 1.0 / np.sqrt(self.corner_diagonal)
        profile = (profile + profile.transpose(0, 2, 1)) / 2 * scale[:, :, None] * scale[:, None, :]
        return np.asarray(np.linalg.eigvalsh(profile).min(axis=1), np.float64)

    def _only_scores(self) -> System:
        other = copy(self)
        other.problem = replace(self.problem, ties=None, covariates=None, gaps=None)
        other.corner_diagonal = np.zeros((self.problem.graphs, 0))
        return other


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
    work = problem.sizes + problem.pairs.sizes
    pieces = Ragged.runs((np.cumsum(work) - work) // WORK).slices
    if len(pieces) <= 1:
        return fit_system(problem, tolerance, max_iterations)
    parts = [fit_system(problem.part(p.start, p.stop), tolerance, max_iterations) for p in steps("graphs", pieces)]
    return Fit(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Fit)))


def fit_system(
    problem: Problem, tolerance: float, max_iterations: int, system_of: Callable[[Problem], System] = System
) -> Fit:
    """Minimise by the derivatives that a system has of the problem; ``system_of`` makes it."""
    total, extras = problem.graphs, problem.extras
    end = Fit(
        np.zeros(problem.nodes),
        np.zeros((total, extras)),
        np.full(total, Status.STOPPED, np.int8),
        np.zeros(total, np.int64),
        np.full(total, np.inf),
        np.ones(total),
    )
    live = np.arange(total)
    system = system_of(problem)
    s = np.zeros(problem.nodes)
    b = np.zeros((total, extras)) if problem.begin is None else problem.begin.copy()
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
            _, nodes = problem.node_groups.take(gone)
            _, here = system.problem.node_groups.take(np.flatnonzero(out))
            end.score[nodes], end.extra[gone] = s[here], b[out]
            end.gradient[gone], end.iterations[gone] = steepest[out], iteration
            end.status[gone] = np.where(done[out], Status.CONVERGED, Status.STOPPED)
            stay = np.flatnonzero(~out)
            live = live[stay]
            if len(live) == 0:
                break
            _, here = system.problem.node_groups.take(stay)
            system = system_of(system.problem.take(stay))
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
        if problem.gaps is not None and (within := system.within(db)).min() < 1:
            ds, db = ds * system.spread_out(within), db * within[:, None]
            last[within < 1] = UNKNOWN
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


def conjugate_gradients(
    apply: Callable[[Floats], Floats],
    diagonal: Floats,
    right: Floats,
    owner: NDArray[np.int64],
    graphs: int,
    *,
    tolerance: Floats | float,
    iterations: int,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Solve apply(x) = right for all graphs; return x and which graphs reached |residual| ≤ tolerance · |right|.

    Norms are those of the preconditioner (the diagonal). Where the operator is singular, ``right`` must lie in its
    range (for a Laplacian: sum to zero per component), and so will the residuals.
    """
    scale = 1.0 / np.where(diagonal > 0, diagonal, 1.0)
    x = np.zeros(len(right))
    residual = right.copy()
    direction = scale * residual
    size = np.bincount(owner, residual * direction, graphs)
    target = size * np.square(tolerance)
    open_ = size > target
    for _ in range(iterations):
        if not open_.any():
            break
        image = apply(direction)
        curve = np.bincount(owner, direction * image, graphs)
        open_ &= curve > 0
        step = np.divide(size, curve, out=np.zeros(graphs), where=open_)[owner]
        x += step * direction
        residual -= step * image
        polished = scale * residual
        new = np.bincount(owner, residual * polished, graphs)
        ratio = np.divide(new, size, out=np.zeros(graphs), where=open_)
        direction = polished + ratio[owner] * direction
        size = np.where(open_, new, size)
        open_ &= size > target
    return x, size <= target

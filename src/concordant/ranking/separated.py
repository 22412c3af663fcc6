"""One-sided limits of items whose score the data limit on one side only: never lost, never won, separated.

Say that item i, and whoever stands between, always won against the anchors of its component (``contrasts``). Its
likelihood rises with δ = s_i − mean of the anchors towards a supremum. The lower limit at a one-sided level 1 − α is
the δ at which the *relative profile likelihood* max{L : δ} / sup L is α. Where the scores of the others are known, that
is the exact test: L/sup L at δ is then the chance of such an outcome, and no outcome speaks more for i (one item, n
wins of n: p = α^{1/n}; Clopper & Pearson, Biometrika 26, 1934). The bound by χ² would promise too much at the end of
the range. The prior plays no part.

What is maximised over: the scores of the items between i and the anchors, exactly; those of the firm items that they
met as normal about their maximum likelihood, with its covariance (of the Hessian or the sandwich). Judgments between i
and the rest add nothing to that maximum, so it is found with a prior that is next to none. In a component without any
two items that the data limit against each other the mean is that of all items, and whoever has beaten all by chains of
wins has a lower limit, whoever has lost to all an upper one.

With the sandwich judgments are no independent draws of the model. Then each judgment, or cluster, counts once on the
way from an item to those below it: the chance that all its wins happen is at most that of any of them, whatever their
dependence, so at most their geometric mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from concordant.preferences.connectivity import Connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.ragged import Ragged
from concordant.ranking.choices import Choices
from concordant.ranking.contrasts import Gauge
from concordant.ranking.covariance import Meat, Units, far_units, stacks
from concordant.ranking.curvature import Curvature
from concordant.ranking.scores import Scores
from concordant.ranking.standard_errors import score_intervals

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
NEXT_TO_NONE = 1e-7
"""Prior of the fit in which separated items stand as far away as makes no difference to the others."""
WHOLE = 1000
"""Units of up to so many parameters give the covariance of firm items; of larger ones their variances are taken."""
MOST = 300
"""Items between an item and the anchors, or met by them, up to which it has a limit."""
STACK = 1 << 21
"""Numbers of the largest array of a stack."""
CLOSE = 1e-6


# -- limits ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Separated:
    """Graphs with separated items at their fit with next to no prior."""

    batch: Batch
    linked: Connectivity
    gauge: Gauge
    value: Floats
    """Scores against the anchors."""
    curvature: Curvature
    scores: Scores
    method: str
    choices: Choices
    links: tuple[csr_array, csr_array]
    """Who won against whom (or tied), and who lost to whom."""
    nodes: Ints
    """Of the whole batch."""

    @classmethod
    def of(
        cls,
        whole: Batch,
        fit: Callable[..., Scores],
        bend: Callable[[Batch, Scores], Curvature],
        options: Mapping[str, Any],
        linked: Connectivity,
        gauge: Gauge,
        *,
        lists: bool,
        method: str,
    ) -> Separated | None:
        """Fit the graphs that have separated items by ``fit``, with the curvature ``bend``; None where there are none.

        ``lists``: the structure reads lists stage by stage; ``method``: hessian or sandwich, for the firm items.
        """
        graphs = np.unique(whole.owner[(linked.separated | gauge.lone) & linked.compared])
        if len(graphs) == 0:
            return None
        taken, held = whole.groups.take(graphs)
        nodes = whole.node_groups.take(graphs)[1]
        batch = Batch(whole.prefs, whole.query[graphs], taken.start, whole.judgment[held], whole.multiplicity[held])
        here = Connectivity(*(getattr(linked, name)[nodes] for name in linked.__dataclass_fields__))
        given = {name: value for name, value in options.items() if name != "mean"}
        scores = fit(batch, **{**given, "prior": NEXT_TO_NONE})
        choices = Choices.of(batch, scores, here, lists=lists, once=method == "sandwich")
        curvature, own = bend(batch, scores), gauge.take(nodes)
        value = own.centre(scores.value)
        return cls(batch, here, own, value, curvature, scores, method, choices, _links(choices, len(nodes)), nodes)

    def ends(self, tail: float, value: Floats) -> tuple[Floats, Floats]:
        """Lower and upper limits of the separated nodes, each at one-sided 1 − tail, at the level of ``value``.

        Shape that of ``value``, nodes of the whole batch; −inf and inf where the data set none, NaN for other nodes.
        """
        total, level = len(value), self.gauge.spread(self.gauge.sums(self.gauge.weight * value[self.nodes]))
        own = self.nodes[(self.linked.separated | self.gauge.lone) & self.linked.compared]
        lower, upper = np.full(total, np.nan), np.full(total, np.nan)
        lower[own], upper[own] = -np.inf, np.inf
        for target, below, limit in self._limits(-float(np.log(tail))):
            limit = np.where(np.isnan(limit), -np.inf if below else np.inf, limit + level[target])
            (lower if below else upper)[self.nodes[target]] = limit
        return lower, upper

    def _limits(self, far: float) -> Iterator[tuple[Ints, bool, Floats]]:
        """Yield nodes, whether their lower limits follow, and these: δ where the profile is ``far`` below its end."""
        tasks = list(self._tasks())
        for same in alike([task for _, _, task in tasks]):
            found = Stack.of([tasks[k][2] for k in same]).where(far)
            for below in (True, False):
                mine = np.array([tasks[k][1] == below for k in same])
                yield np.array([tasks[k][0] for k in same])[mine], below, found[mine]

    @cached_property
    def alone(self) -> Flags:
        """Nodes of components without two items that the data limit against each other."""
        gauge = self.gauge
        return np.asarray(np.bincount(gauge.group, gauge.lone, gauge.groups)[gauge.group] > 0)

    @cached_property
    def firm(self) -> Flags:
        """Nodes that the data limit on both sides."""
        return self.linked.compared & ~self.linked.separated & ~self.alone

    def builders(self) -> Iterator[tuple[Ints, Builder]]:
        """Yield the nodes of each unit that has separated ones, and what makes their profiles."""
        count, place = len(self.value), np.full(len(self.value), -1)
        held = self.choices, self.value, self.linked.block, self.firm, place, _by_node(self.choices, count)
        rooms = np.zeros(count, bool), np.full(count, -1)
        alone = np.flatnonzero(self.alone)
        alone = alone[np.argsort(self.gauge.group[alone], kind="stable")]
        groups = Ragged.runs(self.gauge.group[alone])
        rest = ((alone[some], None) for some in groups.slices)
        for nodes, covariance in chain(self._firm(self.firm, self.linked.separated & ~self.alone), rest):
            place[nodes] = np.arange(len(nodes))
            yield nodes, Builder(*held, covariance, *rooms)
            place[nodes] = -1

    def _tasks(self) -> Iterator[tuple[int, bool, Task]]:
        linked, links = self.linked, self.links
        up = linked.open_above & ~linked.open_below & ~self.alone
        down = linked.open_below & ~linked.open_above & ~self.alone
        for nodes, build in self.builders():
            for i in nodes[(up | down)[nodes]].tolist():
                between = reached(links[0] if up[i] else links[1], i, up if up[i] else down)
                task = build.task(i, between, bool(up[i]))
                if task is not None:
                    yield i, bool(up[i]), task
            for below in (True, False) if self.alone[nodes].all() and len(nodes) <= MOST else ():
                for i in nodes.tolist():
                    if len(reached(links[0 if below else 1], i, self.alone)) == len(nodes):
                        yield i, below, build.against_all(i, nodes, below)

    def _firm(self, firm: Flags, open_: Flags) -> Iterator[tuple[Ints, Floats]]:
        """Nodes of each unit with open ones, and the covariance of its firm nodes' contrasts, or their variances.

        Shapes (n, n) or (n,); units without a finite one are left out.
        """
        curvature = _of_firm(self.curvature, firm)
        units = Units.of(self.batch, curvature, self.gauge, whole=WHOLE)
        own = np.repeat(np.arange(len(units.size)), units.size)
        in_unit = np.append(open_, np.zeros(len(units.order) - len(open_), bool))[units.order]
        chosen = np.flatnonzero(np.bincount(own, in_unit, len(units.size)) > 0)
        small = (units.size[chosen] <= WHOLE) & ~far_units(units, curvature)[chosen]
        meat = Meat.of(self.batch, curvature) if self.method == "sandwich" else None
        spread = np.ones(len(self.batch), bool) if meat is None else meat.clusters > 1
        for ids, n, matrices in stacks(units, curvature, self.gauge, meat, chosen[small]):
            for nodes, matrix in zip(ids[:, :n], matrices[:, :n, :n], strict=True):
                of_firm = np.where(firm[nodes][:, None] & firm[nodes], matrix, 0.0)
                if np.isfinite(of_firm).all() and spread[self.batch.owner[nodes[0]]]:
                    yield nodes, of_firm
        if small.all():
            return
        error = score_intervals(
            self.batch, self.scores, curvature, connectivity=self.linked, method=self.method, gauge=self.gauge
        ).standard_error
        for unit in chosen[~small]:
            nodes = units.parameters(int(unit))[: units.nodes[unit]]
            variance = np.where(firm[nodes], error[nodes] ** 2, 0.0)
            if np.isfinite(variance).all():
                yield nodes, variance


def _links(choices: Choices, n: int) -> tuple[csr_array, csr_array]:
    first = choices.node[choices.start[:-1]]
    wins, losses = Ragged(choices.start).spread(first[:, 0]), choices.node[:, 1]
    source, target = np.concatenate([wins, first[:, 1]]), np.concatenate([losses, first[:, 0]])
    links = csr_array((np.ones(len(source), bool), (source, target)), shape=(n, n))
    return links, csr_array(links.T)


def _of_firm(curvature: Curvature, firm: Flags) -> Curvature:
    """The curvature of the firm nodes (and coefficients) alone: each other one stands by itself."""
    only = diags_array(own := np.append(firm, np.ones(len(curvature.extra_owner), bool)).astype(float))
    typical = float(np.median(curvature.hessian.diagonal()[: len(firm)][firm])) if firm.any() else 1.0
    hessian = csr_array(only @ curvature.hessian @ only + diags_array((1.0 - own) * (typical or 1.0)))
    return replace(curvature, hessian=hessian, gradients=lambda *of: csr_array(curvature.gradients(*of) @ only))


def _by_node(choices: Choices, nodes: int) -> csr_array:
    """Which choices have an alternative with each node."""
    rows, columns = choices.node.T.ravel(), np.tile(Ragged(choices.start).owner, 2)
    return csr_array((np.ones(len(rows), bool), (rows, columns)), shape=(nodes, len(choices.start) - 1))


def reached(links: csr_array, begin: int, within: Flags) -> Ints:
    """Nodes to which links lead within some, the first one first; one more than ``MOST`` at most."""
    seen, found, place = {begin}, [begin], 0
    while place < len(found) <= MOST:
        at = found[place]
        for other in links.indices[links.indptr[at] : links.indptr[at + 1]].tolist():
            if within[other] and other not in seen:
                seen.add(other)
                found.append(other)
        place += 1
    return np.array(found, np.int64)


# -- one profile -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Task:
    """The profile of one δ: utilities of the alternatives of choices are U x + b δ + offset, x the free scores.

    Minus the log-likelihood is ½ (x − centre)ᵀ P (x − centre) + Σ w (log Σ e^u − log Σ over ``top`` of e^u).
    """

    U: Floats
    """Shape (choices, alternatives, free)."""
    b: Floats
    offset: Floats
    """−inf where a choice has fewer alternatives."""
    top: Flags
    weight: Floats
    centre: Floats
    precision: Floats
    follows: Floats
    """Where the search begins: at δ plus this for scores that the data leave free, NaN for those that have a centre."""
    least: float
    """The infimum of minus the log-likelihood."""
    begin: float

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.U.shape


@dataclass(frozen=True, eq=False)
class Builder:
    """Makes the tasks of one unit."""

    choices: Choices
    value: Floats
    block: NDArray[np.int32]
    firm: Flags
    place: Ints
    """Place in the covariance of each node."""
    of_node: csr_array
    """Choices by node."""
    covariance: Floats | None
    """Of the unit's firm nodes' contrasts, or variances."""
    free: Flags
    """Room for marks of nodes, all false between two uses."""
    column: Ints
    """Room for numbers of nodes, −1 between two uses."""

    def task(self, i: int, between: Ints, up: bool) -> Task | None:
        """The profile of s_i − mean of the anchors, where ``between`` are i and those between it and the firm."""
        return self._profile(between, [i], 0 if up else 1, firm=True)

    def level(self, i: int, j: int, between: Ints) -> Task | None:
        """The likelihood where s_i = s_j, ``between`` all on chains of wins from i to j."""
        free = between[~self.firm[between]]
        which = [j, i] if self.firm[i] else [i, j]  # a firm one keeps its place in the covariance
        return self._profile(free, which, 0, firm=len(free) < len(between))

    def _profile(self, between: Ints, which: list[int], side: int, *, firm: bool) -> Task | None:
        if len(between) > MOST:
            return None
        kept, rows, own = self._held(between)
        node = self.choices.node[rows]
        free, no = self.free, np.zeros(node.shape, bool)
        free[between] = True
        of_free, of_others = free[node], self.firm[node] if firm else no
        free[between] = False
        first = np.flatnonzero(np.diff(own, prepend=-1) > 0)
        whole, of_firm = (np.asarray(of.all(axis=1), bool) for of in (of_free | of_others, of_others))
        keep = whole & whole[first][own]
        top = of_firm & of_firm[first][own]
        top[first] = True
        met = np.setdiff1d(np.unique(node[keep]), between)
        if (firm and len(met) == 0) or len(met) > MOST:
            return None
        columns = np.concatenate([between[between != which[0]], met])
        before = len(columns) - len(met)
        label = np.unique(self.block[between], return_inverse=True)[1]
        inside = self.value[between] - (np.bincount(label, self.value[between]) / np.bincount(label))[label]
        at = np.flatnonzero(between == which[0])
        follows = np.full(len(columns), np.nan)
        follows[:before] = (inside - (inside[at[0]] if len(at) else 0.0))[between != which[0]]
        precision = np.zeros((len(columns), len(columns)))
        precision[before:, before:] = self._precision(met)
        return self._made(
            kept, rows[keep], own[keep], top[keep], columns, which, side, centre=self.value[columns],
            precision=precision, follows=follows, begin=float(self.value[met].mean()) if len(met) else 0.0,
        )  # fmt: skip

    def against_all(self, i: int, nodes: Ints, up: bool) -> Task:
        """The profile of s_i − mean of all nodes, which are all free: s_i = 0, and the last one gives way."""
        kept, rows, own = self._held(nodes)
        top = np.zeros(len(rows), bool)
        top[np.flatnonzero(np.diff(own, prepend=-1) > 0)] = True
        columns, free = nodes[nodes != i], len(nodes) - 2
        none, more = np.zeros(free), {"precision": np.zeros((free, free)), "begin": 0.0}
        task = self._made(kept, rows, own, top, columns, [i], 0 if up else 1, centre=none, follows=none, **more)
        last = task.U[:, :, free]
        return replace(task, U=task.U[:, :, :free] - last[:, :, None], b=-len(nodes) * last)

    def _held(self, nodes: Ints) -> tuple[Ints, Ints, Ints]:
        """Choices that touch some nodes, their alternatives, and the choice of each of these among those."""
        of = self.of_node
        kept = np.unique(np.concatenate([of.indices[of.indptr[i] : of.indptr[i + 1]] for i in nodes.tolist()]))
        taken, rows = Ragged(self.choices.start).take(kept.astype(np.int64))
        return kept.astype(np.int64), rows, taken.owner

    def _precision(self, met: Ints) -> Floats:
        at = self.place[met]
        if self.covariance is None or len(met) == 0:
            return np.zeros((len(met), len(met)))
        if self.covariance.ndim == 1:
            return np.diag(1.0 / np.maximum(self.covariance[at], 1e-12))
        own = self.covariance[np.ix_(at, at)]
        own = own + 1e-9 * max(float(np.diagonal(own).mean()), 1e-9) * np.eye(len(met))
        return np.asarray(np.linalg.pinv(own, hermitian=True), np.float64)

    def _made(
        self, kept: Ints, rows: Ints, own: Ints, top: Flags, columns: Ints, which: list[int], side: int, **more: Any
    ) -> Task:
        """Lay the alternatives out in choices of equal width; what has no alternative left says nothing."""
        labels, own = np.unique(own, return_inverse=True)
        groups = Ragged.counted(own, len(labels))
        wide = int(groups.sizes.max(initial=1))
        at = own, groups.place
        shape = (len(labels), wide)
        column = self.column
        column[columns] = np.arange(len(columns))
        if len(which) > 1:
            column[which[0]] = column[which[1]]
        U = np.zeros((*shape, len(columns)))
        b, offset, in_top = np.zeros(shape), np.full(shape, -np.inf), np.zeros(shape, bool)
        offset[at], in_top[at] = self.choices.offset[rows], top
        utility = np.full(shape, -np.inf)
        node = self.choices.node[rows]
        utility[at] = self.choices.offset[rows] + 0.5 * self.value[node].sum(axis=1)
        for end in (0, 1):
            held = column[node[:, end]] >= 0
            np.add.at(U, (own[held], groups.place[held], column[node[held, end]]), 0.5)
            np.add.at(b, (own[~held], groups.place[~held]), 0.5)
        column[columns] = column[which] = -1
        weight = self.choices.weight[kept[labels], side]
        said = _log_sum(utility) - _log_sum(np.where(in_top, utility, -np.inf))
        return Task(U, b, offset, in_top, weight, least=float(weight @ said), **more)


def _solved(matrices: Floats, sides: Floats) -> Floats:
    """Solve each system; NaN where floating point has no solution."""
    try:
        return np.asarray(np.linalg.solve(matrices, sides[:, :, None])[:, :, 0], np.float64)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.full(sides.shape, np.nan)
        return np.concatenate([_solved(matrices[g : g + 1], sides[g : g + 1]) for g in range(len(matrices))])


def _log_sum(x: Floats) -> Floats:
    most = x.max(axis=-1)
    return np.asarray(most + np.log(np.exp(x - most[..., None]).sum(axis=-1)))


# -- profiles side by side ---------------------------------------------------------------------------------------
def alike(tasks: list[Task]) -> Iterator[list[int]]:
    """Numbers of tasks of about one shape, as many as a stack may hold."""
    sizes = [tuple(1 << max(n - 1, 0).bit_length() for n in task.shape) for task in tasks]
    order = sorted(range(len(tasks)), key=lambda k: sizes[k])
    held: list[int] = []
    for k in order:
        if held and (sizes[k] != sizes[held[0]] or (len(held) + 1) * int(np.prod(sizes[k])) > STACK):
            yield held
            held = []
        held.append(k)
    if held:
        yield held


@dataclass(frozen=True, eq=False)
class Stack:
    """Tasks of about one shape, padded to the largest; arrays as those of a task, one more dimension in front."""

    U: Floats
    b: Floats
    offset: Floats
    top: Flags
    weight: Floats
    centre: Floats
    precision: Floats
    follows: Floats
    least: Floats
    begin: Floats

    @classmethod
    def of(cls, tasks: list[Task]) -> Stack:
        S, A, m = np.max([task.shape for task in tasks], axis=0)
        G = len(tasks)
        out = cls(
            np.zeros((G, S, A, m)), np.zeros((G, S, A)), np.full((G, S, A), -np.inf), np.zeros((G, S, A), bool),
            np.zeros((G, S)), np.zeros((G, m)), np.zeros((G, m, m)), np.zeros((G, m)),
            np.array([task.least for task in tasks]), np.array([task.begin for task in tasks]),
        )  # fmt: skip
        out.offset[:, :, 0], out.top[:, :, 0] = 0.0, True
        out.precision[:, np.arange(m), np.arange(m)] = 1.0
        for g, task in enumerate(tasks):
            s, a, k = task.shape
            out.U[g, :s, :a, :k], out.b[g, :s, :a] = task.U, task.b
            out.offset[g, :s, :a], out.top[g, :s, :a], out.weight[g, :s] = task.offset, task.top, task.weight
            out.centre[g, :k], out.precision[g, :k, :k] = task.centre, task.precision
            out.follows[g, :k] = task.follows
        return out

    def where(self, far: float) -> Floats:
        """δ at which each profile is ``far`` below its supremum, NaN where it is not found; shape (tasks,).

        Newton's method on the logarithm of the distance, which falls like −δ towards the supremum and is concave in δ.
        """
        delta = self.begin.copy()
        x = np.where(np.isnan(self.follows), self.centre, delta[:, None] + self.follows)
        done = np.zeros(len(delta), bool)
        for _ in range(60):
            x, value, slope = self._fitted(x, delta)
            away = np.maximum(value - self.least, 1e-300)
            with np.errstate(all="ignore"):
                step = -np.log(away / far) * away / slope
            step = np.where(np.isfinite(step) & ~done, np.clip(step, -3.0, 3.0), 0.0)  # a task has its own end
            done |= np.abs(step) < CLOSE
            delta = delta + step
            if done.all():
                break
            x = np.where(np.isnan(self.follows), x, x + step[:, None])
        return np.where(done & (np.abs(np.log(away / far)) < 1e-3), delta, np.nan)

    def below(self) -> Floats:
        """How far the likeliest scores are below the supremum; shape (tasks,)."""
        x = np.where(np.isnan(self.follows), self.centre, self.begin[:, None] + self.follows)
        return np.asarray(self._fitted(x, self.begin)[1] - self.least)

    def _fitted(self, x: Floats, delta: Floats) -> tuple[Floats, Floats, Floats]:
        """The free scores that are likeliest at δ, minus the log-likelihood there, and its derivative by δ."""
        m = x.shape[1]
        for _ in range(60):
            value, slope, gradient, hessian = self._at(x, delta)
            if m == 0:
                break
            hessian[:, np.arange(m), np.arange(m)] += 1e-12
            move = -_solved(hessian, gradient)
            reach = np.abs(np.einsum("gsam,gm->gsa", self.U, move)).max(axis=(1, 2), initial=0.0)
            x = x + move * np.minimum(1.0, 2.0 / np.maximum(reach, 1e-300))[:, None]
            if reach.max(initial=0.0) < 1e-7:
                break
        value, slope, _, _ = self._at(x, delta)
        return x, value, slope

    def _at(self, x: Floats, delta: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        utility = np.einsum("gsam,gm->gsa", self.U, x) + self.b * delta[:, None, None] + self.offset
        of_top = np.where(self.top, utility, -np.inf)
        whole, upper = _log_sum(utility), _log_sum(of_top)
        p, q = np.exp(utility - whole[:, :, None]), np.exp(of_top - upper[:, :, None])
        away = x - self.centre
        pull = np.einsum("gmn,gn->gm", self.precision, away)
        value = 0.5 * (away * pull).sum(axis=1) + (self.weight * (whole - upper)).sum(axis=1)
        slope = (self.weight * ((p - q) * self.b).sum(axis=2)).sum(axis=1)
        mean, mean_top = (np.einsum("gsa,gsam->gsm", share, self.U) for share in (p, q))
        gradient = pull + np.einsum("gs,gsm->gm", self.weight, mean - mean_top)
        G, S, A, m = self.U.shape
        share = p - np.exp(upper - whole)[:, :, None] * q  # without the part of the top that bends the other way
        spread = (np.sqrt(np.maximum(self.weight[:, :, None] * share, 0.0))[..., None] * self.U).reshape(G, S * A, m)
        ends = np.sqrt(self.weight)[:, :, None] * mean
        tops = np.sqrt(self.weight * np.exp(upper - whole))[:, :, None] * mean_top
        hessian = self.precision + spread.swapaxes(1, 2) @ spread - ends.swapaxes(1, 2) @ ends
        return value, slope, gradient, hessian + tops.swapaxes(1, 2) @ tops

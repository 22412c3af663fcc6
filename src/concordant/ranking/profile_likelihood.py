"""Profile likelihoods of one score, those of many items and queries side by side.

A profile has one score given, δ, and others that are maximised over: those of some open nodes, which the judgments
alone limit, and those of the firm nodes that they met, which are normal about their maximum likelihood with its
covariance. With x these scores, P the inverse of that covariance (0 for open nodes), and d the utilities of the
alternatives of a choice less that of the first one, linear in x and δ, minus the log-likelihood is

    f(x, δ) = ½ (x − centre)ᵀ P (x − centre) + Σ w (log Σ e^d − log Σ over the top of e^d),

the top being the first alternative, and of firm nodes those beside it, of which one was taken whatever x.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from concordant.preferences.ragged import Ragged
from concordant.ranking.choices import Choices

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
MOST = 300
"""Nodes that are maximised over, or met by them, up to which a profile is computed."""
STACK = 1 << 18
"""Numbers of the largest array of a stack, so that all of it stays in the cache."""
ROWS = 1 << 20
"""Alternatives of choices that are looked through together."""
TABLE = 1 << 24
"""Marks of nodes that are held at once."""
CLOSE = 1e-7
NEAR = 2e-4
"""A step of δ below this is the last one: Newton's error after it is less than its square."""
LITTLE = 1e-9
"""Share of the distance from the supremum that is no more to be won."""
FARTHEST = 180.0
"""A limit farther than this from where the search begins is none: as a rule coefficients beside the scores have no
finite maximum there, and a number so large would be that of the fit's prior."""
ROUNDS = 400


# -- what is asked for -------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Asked:
    """Profiles that are asked for: of each the open nodes whose scores are maximised over, one of them given."""

    groups: Ragged
    node: Ints
    """Those of each profile ascending."""
    given: Ints
    """The node of each profile whose score is δ."""
    firm: Flags
    """Whether firm nodes that they met take part: δ is against these."""
    side: int = 0
    """0 for weights on the way down, 1 up."""
    level: Ints | None = None
    """Instead of δ: the node whose score is that of the given one."""
    mean: bool = False
    """δ is against the mean of the profile's nodes, all there is."""

    def some(self, chosen: Ints) -> Asked:
        """Some of the profiles."""
        groups, rows = self.groups.take(chosen)
        level = None if self.level is None else self.level[chosen]
        return Asked(groups, self.node[rows], self.given[chosen], self.firm[chosen], self.side, level, self.mean)


def _among(keys: Ints, wanted: Ints) -> Flags:
    """Which of the wanted are among the keys, which stand in ascending order."""
    if len(keys) == 0:
        return np.zeros(wanted.shape, bool)
    return np.asarray(keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted)


@dataclass(frozen=True, eq=False)
class Laws:
    """Covariances of the firm nodes' contrasts, those of each unit."""

    numbers: Floats
    """Of the units one behind the other, row by row; or variances alone."""
    begin: Ints
    """Of each unit in these."""
    width: Ints
    """Firm nodes of each unit."""
    place: Ints
    """Of each node among the firm ones of its unit."""
    whole: bool = True
    """Whether there are more than variances."""

    def root(self, unit: Ints, met: Ints) -> Floats:
        """R, where P = RᵀR, of firm nodes, those of each row of one unit; shapes (G,), (G, nodes), (G, nodes, nodes).

        P is steep where all scores shift, as the covariance of contrasts is next to singular there. Added up by its
        entries such a shift's part of f would be rounding.
        """
        begin, at = self.begin[unit], self.place[met]
        if not self.whole:
            variance = self.numbers[begin[:, None] + at]
            return np.asarray(np.eye(met.shape[1]) / np.sqrt(np.maximum(variance, 1e-12))[:, :, None])
        row = begin[:, None] + at * self.width[unit][:, None]
        own = self.numbers[row[:, :, None] + at[:, None, :]]
        typical = np.maximum(np.einsum("gii->gi", own).mean(axis=1), 1e-3)
        values, vectors = np.linalg.eigh(own + 1e-9 * typical[:, None, None] * np.eye(met.shape[1]))
        known = values > 1e-15 * values[:, -1:]
        scale = np.where(known, 1.0 / np.sqrt(np.where(known, values, 1.0)), 0.0)
        return np.asarray(scale[:, :, None] * vectors.swapaxes(1, 2))


def _distinct(keys: Ints) -> Ints:
    """The different ones, ascending; faster than a table of them where most are in order."""
    keys = np.sort(keys)
    return np.asarray(keys[np.append(np.ones(min(len(keys), 1), bool), keys[1:] != keys[:-1])], np.int64)


# -- from choices to profiles ------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Profiles:
    """Makes the profiles of some units of which the covariance of the firm nodes is known."""

    choices: Choices
    value: Floats
    block: NDArray[np.int32]
    firm: Flags
    of_node: csr_array
    """Choices by node."""
    units: Ragged
    nodes: Ints
    """Nodes of each unit, ascending."""
    unit: Ints
    """Of each node."""
    place: Ints
    """Of each node in its unit."""
    laws: Laws | None
    """Of the firm nodes; None where there are none."""

    def reached(self, links: csr_array, begin: Ints, within: Flags) -> tuple[Ragged, Ints]:
        """Nodes to which links lead from each of ``begin`` within some, itself among them, ascending.

        One that reaches more than ``MOST`` has none.
        """
        leads, width = Ragged(links.indptr.astype(np.int64)), max(int(self.units.sizes.max(initial=0)), 1)
        step, found, sizes = max(1, TABLE // width), [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for part in (begin[at : at + step] for at in range(0, len(begin), step)):
            seen = np.zeros((len(part), width), bool)
            task, node = np.arange(len(part)), part
            seen[task, self.place[node]] = True
            number = np.ones(len(part), np.int64)
            while len(node):
                on, row = leads.take(node)
                task, node = on.spread(task), links.indices[row].astype(np.int64)
                new = within[node] & ~seen[task, self.place[node]]
                task, node = np.divmod(_distinct(task[new] * len(within) + node[new]), len(within))
                seen[task, self.place[node]] = True
                number += np.bincount(task, minlength=len(part))
                few = number[task] <= MOST
                task, node = task[few], node[few]
            task, place = np.nonzero(seen & (number <= MOST)[:, None])
            found.append(self.nodes[self.units.first[self.unit[part[task]]] + place])
            sizes.append(np.where(number <= MOST, number, 0))
        return Ragged.of_sizes(np.concatenate(sizes)), np.concatenate(found)

    def level(self, groups: Ragged, between: Ints, i: Ints, j: Ints) -> Asked:
        """The likelihoods where s_i = s_j, ``between`` all on chains of wins from one to the other, i no firm node."""
        free = ~self.firm[between]
        inner = Ragged.of_sizes(groups.sums(free).astype(np.int64))
        return Asked(inner, between[free], i, inner.sizes < groups.sizes, level=j)

    def limits(self, asked: Asked, far: float) -> Floats:
        """δ at which each profile is ``far`` below its supremum; NaN where there is none."""
        out = np.full(len(asked.given), np.nan)
        for numbers, stack in self._stacks(asked):
            out[numbers] = stack.where(far)
        return out

    def apart(self, asked: Asked, far: float) -> Flags:
        """Whether each profile is ``far`` below its supremum wherever the other scores are."""
        out = np.zeros(len(asked.given), bool)
        for numbers, stack in self._stacks(asked):
            out[numbers] = stack.apart(far)
        return out

    def _stacks(self, asked: Asked) -> Iterator[tuple[Ints, Stack]]:
        """Yield numbers of profiles of about one shape, and these."""
        some = np.flatnonzero((asked.groups.sizes > 0) & (asked.groups.sizes <= MOST))
        whole = asked.some(some)
        work = np.cumsum(whole.groups.sums(self._work[whole.node]))
        for part in Ragged.runs(work // ROWS).slices:
            laid = self._laid(whole.some(np.arange(part.start, part.stop)))
            for same in laid.alike():
                yield some[part][same], laid.stack(same)

    @cached_property
    def _work(self) -> Floats:
        """Alternatives of the choices of each node."""
        sizes = np.diff(self.choices.start)[self.of_node.indices]
        return Ragged(self.of_node.indptr.astype(np.int64)).sums(sizes)

    def _laid(self, asked: Asked) -> Laid:
        """Find what each profile consists of, one behind the other."""
        tasks, nodes, own = len(asked.given), len(self.value), asked.groups.owner
        inside = own * nodes + asked.node
        touching, at = Ragged(self.of_node.indptr.astype(np.int64)).take(asked.node)
        count = max(len(self.choices.start) - 1, 1)
        task, choice = np.divmod(_distinct(touching.spread(own) * count + self.of_node.indices[at]), count)
        groups, row = Ragged(self.choices.start).take(choice)
        of, ends = groups.owner, self._ends[row]
        key = task[of][:, None] * nodes + ends
        free = _among(inside, key)
        others = self.firm[ends] & asked.firm[task[of]][:, None]
        whole, of_firm = (np.asarray(each.all(axis=1), bool) for each in (free | others, others))
        first = groups.first[of]
        keep = np.flatnonzero(whole & whole[first])
        top = (of_firm & of_firm[first])[keep]
        of, row, key, free, lead = of[keep], row[keep], key[keep], free[keep], first[keep] == keep
        met = key[~free]
        if asked.level is not None:  # a firm one has its law, whether anyone met it or not
            met = np.append(met, (np.arange(tasks) * nodes + asked.level)[asked.firm & self.firm[asked.level]])
        met = _distinct(met)
        by_task = Ragged.counted(met // nodes, tasks)
        able = ((by_task.sizes > 0) | ~asked.firm) & (by_task.sizes <= MOST)
        says = np.bincount(of[~top & ~lead], minlength=len(task)) > 0  # one of a whole top says nothing
        keep = np.flatnonzero((says & able[task])[of])
        of, row, key, top, lead = of[keep], row[keep], key[keep], top[keep], lead[keep]

        before = asked.groups.sizes - 1
        given = own * nodes + asked.given[own]
        column = np.concatenate([np.where(inside == given, -1, asked.groups.place - (inside > given)),
                                 by_task.spread(before) + by_task.place])  # fmt: skip
        order = np.argsort(known := np.concatenate([inside, met]))
        known, column = known[order], column[order]
        if asked.level is not None and len(known):
            same = np.arange(tasks) * nodes + asked.level
            where = np.minimum(np.searchsorted(known, same), len(known) - 1)
            column[np.searchsorted(known, given[asked.groups.first])] = np.where(
                known[where] == same, column[where], -1
            )
        block, leading = self.block[self._ends[row]], np.flatnonzero(lead)
        beneath = (block != block[leading, :1][np.cumsum(lead) - 1]).any(axis=1)  # infinitely far
        utility = np.where(beneath, -np.inf, self.choices.offset[row] + self.value[self._ends[row]].mean(axis=1))
        return Laid(
            asked, self, Ragged.runs(of), task[of[lead]], self.choices.weight[choice[of[lead]], asked.side],
            column[np.searchsorted(known, key)], self.choices.offset[row], utility, top | lead,
            by_task, met % nodes, able,
        )  # fmt: skip

    @cached_property
    def _ends(self) -> Ints:
        """The nodes of each alternative, in one column where both are the same."""
        node = self.choices.node
        return node[:, :1] if (node[:, 0] == node[:, 1]).all() else node


@dataclass(frozen=True, eq=False)
class Laid:
    """Profiles one behind the other; ``alternatives`` are those of each choice, the first one first."""

    asked: Asked
    profiles: Profiles
    alternatives: Ragged
    task: Ints
    """Profile of each choice."""
    weight: Floats
    column: Ints
    """Of the nodes of each alternative in its profile's x; −1 is δ. Shape (alternatives, 1 or 2)."""
    offset: Floats
    utility: Floats
    """Of each alternative where the likelihood has its supremum."""
    top: Flags
    by_task: Ragged
    met: Ints
    """Firm nodes, those of each profile."""
    able: Flags
    """Profiles that can be computed."""

    @cached_property
    def _shape(self) -> Ints:
        """Choices, alternatives beside the first, and numbers of x of each profile."""
        choices = Ragged.counted(self.task, len(self.able))
        width = choices.most(self.alternatives.sizes - 1, 1)
        return np.stack([np.maximum(choices.sizes, 1), width, self.asked.groups.sizes - 1 + self.by_task.sizes])

    def alike(self) -> Iterator[Ints]:
        """Numbers of profiles of about one shape, as many as a stack may hold."""
        sizes = _rounded(self._shape)
        chosen = np.flatnonzero(self.able)
        chosen = chosen[np.lexsort(sizes[:, chosen])]
        for run in Ragged.runs(*sizes[:, chosen]).slices:
            same = chosen[run]
            step = max(1, int(STACK // np.prod(sizes[:, same[0]] + [0, 0, 1])))
            yield from (same[begin : begin + step] for begin in range(0, len(same), step))

    @cached_property
    def _least(self) -> Floats:
        """The infimum of minus the log-likelihood of each profile."""
        lead = self.alternatives.spread(self.utility[self.alternatives.first])
        each = (self.utility, np.where(self.top, self.utility, -np.inf))
        whole, upper = (np.logaddexp.reduceat(u - lead, self.alternatives.first) if len(u) else u for u in each)
        return np.bincount(self.task, self.weight * (whole - upper), len(self.able)).astype(np.float64)

    def stack(self, same: Ints) -> Stack:
        """Lay some out in arrays; what a profile does not fill says nothing."""
        asked, (S, A, m), G = self.asked, _rounded(self._shape[:, same[:1]])[:, 0].tolist(), len(same)
        choices, c = Ragged.counted(self.task, len(self.able)).take(same)
        rows, r = self.alternatives.take(c)
        lead = rows.spread(r[rows.first]) if len(r) else r
        beside = rows.place > 0
        line = (rows.spread((choices.owner * S + choices.place) * A) + rows.place - 1)[beside]
        r, lead = r[beside], lead[beside]
        D, offset, top = np.zeros((G * S * A, m + 1)), np.full(G * S * A, -np.inf), np.zeros(G * S * A, bool)
        offset[line], top[line] = self.offset[r] - self.offset[lead], self.top[r]
        share = 1.0 / self.column.shape[1]
        for column in self.column.T:
            D[line, column[r]] += share  # column −1 is the last one
            D[line, column[lead]] -= share
        D = D.reshape(G, S, A, m + 1)
        weight = np.zeros((G, S))
        weight[choices.owner, choices.place] = self.weight[c]

        value, begin = self.profiles.value, np.zeros(G)
        centre, follows = np.zeros((G, m + 1)), np.full((G, m), np.nan)
        root = np.zeros((G, m + 1, m + 1))
        free, node = asked.groups.take(same)
        size, number = free.sizes, self.by_task.sizes[same]
        if asked.mean:
            last = size - 2
            gives = np.take_along_axis(D, last[:, None, None, None], axis=3)
            D[..., :m] -= np.where(np.arange(m) < last[:, None], 1.0, 0.0)[:, None, None, :] * gives
            D[np.arange(G), :, :, last] = 0.0
            D[..., m] = -size[:, None, None] * gives[..., 0]
            size = size - 1
            follows[np.arange(m) < last[:, None]] = 0.0
        else:
            place = free.place - (asked.node[node] > free.spread(asked.given[same]))
            held = asked.node[node] != free.spread(asked.given[same])
            follows[free.owner[held], place[held]] = self._follows[node[held]]
            centre[free.owner[held], place[held]] = value[asked.node[node[held]]]
        opened = np.arange(m) < (size - 1)[:, None]
        root[:, np.arange(m), np.arange(m)] = np.where(opened, 0.0, 1.0)
        laws = self.profiles.laws
        for k in np.unique(number[number > 0]).tolist():
            g = np.flatnonzero(number == k)
            met = self.met[self.by_task.first[same[g]][:, None] + np.arange(k)]
            at = (size[g] - 1)[:, None] + np.arange(k)
            if laws is not None:
                root[g[:, None, None], at[:, :, None], at[:, None, :]] = laws.root(self.profiles.unit[met[:, 0]], met)
            centre[g[:, None], at], begin[g] = value[met], value[met].mean(axis=1)
        return Stack(D, offset.reshape(G, S, A), top.reshape(G, S, A), weight, centre, root, follows,
                     self._least[same], begin)  # fmt: skip

    @cached_property
    def _follows(self) -> Floats:
        """How far each open node is above the given one, each against the mean of its strong block."""
        asked, value = self.asked, self.profiles.value[self.asked.node]
        _, label = np.unique(asked.groups.owner * (1 << 32) + self.profiles.block[asked.node], return_inverse=True)
        inside = value - (np.bincount(label, value) / np.bincount(label))[label]
        own = np.flatnonzero(asked.node == asked.groups.spread(asked.given))
        return np.asarray(inside - asked.groups.spread(inside[own]))


def _rounded(sizes: Ints) -> Ints:
    """The next power of two or three halves of one: profiles of about one size stand together, whatever else there is.

    >>> _rounded(np.array([0, 1, 3, 5, 13, 17])).tolist()
    [0, 1, 3, 6, 16, 24]
    """
    power = np.left_shift(1, np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64))
    less = 3 * power // 4
    return np.asarray(np.where(sizes == 0, 0, np.where((sizes <= less) & (power > 2), less, power)), np.int64)


# -- profiles side by side ---------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Stack:
    """Profiles of about one shape; z is x and, as the last one, δ."""

    D: Floats
    """d = D z + offset; shape (profiles, choices, alternatives beside the first, numbers of z)."""
    offset: Floats
    """−inf where a choice has fewer alternatives."""
    top: Flags
    """Which alternatives are in the top beside the first."""
    weight: Floats
    """Shape (profiles, choices)."""
    centre: Floats
    root: Floats
    """R, P = RᵀR, nothing for δ; shape (profiles, numbers of z, the same)."""
    follows: Floats
    """Where the search begins: at δ plus this for scores that the data leave free, NaN for those that have a centre."""
    least: Floats
    """The infimum of minus the log-likelihood; shape (profiles,)."""
    begin: Floats

    def where(self, far: float) -> Floats:
        """δ at which each profile is ``far`` below its supremum, NaN where it is not found; shape (profiles,).

        Newton's method in x and δ at once: on the gradient by x, and on the logarithm of the distance at the likeliest
        x, which falls like −δ towards the supremum and is concave in δ. Far from the likeliest x, δ stays.
        """
        out = np.full(len(self.least), np.nan)
        open_, now, z = np.arange(len(out)), self, self._begun
        for _ in range(ROUNDS):
            value, slope, move, along, gain, reach = now._newton(z)
            away = np.maximum(value - gain - now.least, 1e-300)
            with np.errstate(all="ignore"):
                step = -np.log(away / far) * away / slope
                near = ~(gain > np.where(reach <= 3.0, 0.5, 1e-6) * away) | (reach <= 1e-6)
                likeliest = ~(gain * np.minimum(reach, 1.0) > LITTLE * away)  # the error of a distance less the gain
            most = np.where(away < far, 30.0, 3.0)  # outwards a step falls short, as the logarithm is concave
            step = np.where(near & np.isfinite(step), np.clip(step, -most, most), 0.0)
            beyond = np.abs(z[:, -1] - now.begin) > FARTHEST
            found = (near & likeliest & (np.abs(step) < NEAR)) | beyond
            if found.any():
                right = found & ~beyond & (np.abs(np.log(away / far)) < 1e-3)
                out[open_[right]] = (z[:, -1] + step)[right]
            z = z + move * np.minimum(1.0, 2.0 / np.maximum(reach, 1e-300))[:, None] + along * step[:, None]
            if found.all():
                break
            if found.any():
                open_, now, z = open_[~found], now.take(~found), z[~found]
        return out

    def apart(self, far: float) -> Flags:
        """Whether the likeliest x leave each profile at least ``far`` below the supremum; shape (profiles,).

        No x has less than the likeliest one, so one that is nearer decides; and near the likeliest, f falls by at most
        about its Newton decrement. Steps as long as a d changes by at most 2 do; as long as they lower f they double.
        """
        out, bound, last = np.zeros(len(self.least), bool), np.full(len(self.least), 2.0), self.least + np.inf
        open_, now, z = np.arange(len(out)), self, self._begun
        before = z
        for _ in range(ROUNDS):
            value, _, move, _, gain, reach = now._newton(z)
            worse = (value > last) & (bound > 2.0)
            if worse.any():
                bound, z = np.where(worse, 1.0, bound), np.where(worse[:, None], before, z)
                value, _, move, _, gain, reach = now._newton(z)
            below = value - now.least
            done = (
                ~(below >= far) | ~(reach >= CLOSE) | ((reach <= 0.5) & (below - 4.0 * gain >= far) & (not now._tied))
            )
            out[open_[done]] = below[done] >= far
            if done.all():
                break
            before, last = z, value
            z = z + move * np.minimum(1.0, bound / np.maximum(reach, 1e-300))[:, None]
            bound = 2.0 * bound
            if done.any():
                open_, now, z = open_[~done], now.take(~done), z[~done]
                bound, before, last = bound[~done], before[~done], last[~done]
        return out

    def take(self, chosen: Flags) -> Stack:
        """Some of the profiles."""
        some = Stack(*(getattr(self, each.name)[chosen] for each in fields(self)))
        vars(some)["precision"] = self.precision[chosen]
        return some

    @cached_property
    def precision(self) -> Floats:
        """P, nothing for δ."""
        return np.asarray(self.root.swapaxes(1, 2) @ self.root)

    @property
    def _begun(self) -> Floats:
        """Where the search for the likeliest scores begins."""
        x = np.where(np.isnan(self.follows), self.centre[:, :-1], self.begin[:, None] + self.follows)
        return np.concatenate([x, self.begin[:, None]], axis=1)

    def _newton(self, z: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
        """f, the derivative of min over x of f by δ, the step of x, the slope of x in δ, half the decrement, the reach.

        To first order in the step; the reach is the most that a d changes by it.
        """
        value, gradient, hessian = self._at(z)
        m = z.shape[1] - 1
        move, along = np.zeros(z.shape), np.zeros(z.shape)
        along[:, m] = 1.0
        sides = np.stack([-gradient[:, :m], -hessian[:, :m, m]], axis=2)
        hessian[:, np.arange(m), np.arange(m)] += 1e-12
        both = _solved(hessian[:, :m, :m], sides)
        move[:, :m], along[:, :m] = both[:, :, 0], both[:, :, 1]
        reach = np.abs(self._times(move)).max(axis=(1, 2), initial=0.0)
        slope = gradient[:, m] + (hessian[:, m] * move).sum(axis=1)
        return value, slope, move, along, -0.5 * (gradient * move).sum(axis=1), reach

    def _times(self, z: Floats) -> Floats:
        G, S, A, m = self.D.shape
        return np.asarray((self.D.reshape(G, S * A, m) @ z[:, :, None]).reshape(G, S, A))

    @cached_property
    def _tied(self) -> bool:
        return bool(self.top.any())

    def _at(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """f, its gradient and its curvature (without the part of a top of several that bends the other way) by z."""
        G, S, A, m = self.D.shape
        d, D = self._times(z) + self.offset, self.D.reshape(G, S * A, m)
        across, weight, bent = self.root.swapaxes(1, 2), self.weight, self.precision
        away = self.root @ (z - self.centre)[:, :, None]
        value, pull = 0.5 * (away * away).sum(axis=(1, 2)), (across @ away)[:, :, 0]
        if A == 1 and not self._tied:  # a win
            d = d[:, :, 0]
            e = np.exp(-np.abs(d))
            value += (weight * (np.maximum(d, 0.0) + np.log1p(e))).sum(axis=1)
            push, bend = weight * (np.where(d > 0, 1.0, e) / (1.0 + e)), weight * (e / (1.0 + e) ** 2)
            gradient = pull + (push[:, None, :] @ D)[:, 0]
            return value, gradient, bent + (D * bend[:, :, None]).swapaxes(1, 2) @ D
        p, whole = _shares(d)
        q, upper = _shares(np.where(self.top, d, -np.inf)) if self._tied else (np.zeros(d.shape), np.zeros((G, S)))
        value += (weight * (whole - upper)).sum(axis=1)
        gradient = pull + ((weight[:, :, None] * (p - q)).reshape(G, 1, S * A) @ D)[:, 0]
        inner = np.exp(upper - whole)
        spread = np.maximum(weight[:, :, None] * (p - inner[:, :, None] * q), 0.0).reshape(G, S * A, 1)
        mean = np.einsum("gsa,gsam->gsm", p, self.D)
        hessian = bent + (spread * D).swapaxes(1, 2) @ D - (weight[:, :, None] * mean).swapaxes(1, 2) @ mean
        if self._tied:
            mean = np.einsum("gsa,gsam->gsm", q, self.D)
            hessian += ((weight * inner)[:, :, None] * mean).swapaxes(1, 2) @ mean
        return value, gradient, hessian


def _shares(d: Floats) -> tuple[Floats, Floats]:
    """e^d/(1 + Σ e^d) and log(1 + Σ e^d), sums along the last axis."""
    most = np.maximum(d.max(axis=-1), 0.0)
    e = np.exp(d - most[..., None])
    total = np.exp(-most) + e.sum(axis=-1)
    return np.asarray(e / total[..., None]), np.asarray(most + np.log(total))


def _solved(matrices: Floats, sides: Floats) -> Floats:
    """Solve each system; NaN where floating point has no solution. Shapes (G, m, m) and (G, m, sides)."""
    try:
        return np.asarray(np.linalg.solve(matrices, sides), np.float64)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.full(sides.shape, np.nan)
        return np.concatenate([_solved(matrices[g : g + 1], sides[g : g + 1]) for g in range(len(matrices))])

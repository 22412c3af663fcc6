"""Cumulative logits: win, tie and loss, and how clear they are, as ordered outcomes with thresholds.

Outcomes 0 (a tie), ±1 … ±m (the strength of a preference, positive for the first item) have, with the margin
t = s_i − s_j + z·β and thresholds 0 < c_1 < … < c_m,

    P(Y ≥ k) = σ(t − c_k),    P(Y ≤ −k) = σ(−t − c_k),    k = 1 … m

(Agresti, Applied Statistics 41, 1992, (3); with ties and m = 1 Rao and Kupper, JASA 62, 1967; without ties c_1 = 0, and
m = 1 is Bradley and Terry's model). The thresholds are symmetric, so no side has an advantage but by a covariate. An
outcome between the cuts a and b has

    σ(t − a) − σ(t − b) = σ(t − a) σ(b − t) (1 − e^{−(b − a)}):

two comparisons with a cut added to the margin, in which a threshold is the coefficient of a covariate, and a term that
keeps thresholds apart. So curvature, connectivity and what limits a score are those of Bradley and Terry's model of
these comparisons: an outcome that is not the strongest limits the difference on both sides. Outcomes that a graph does
not have merge with their neighbours, where the likelihood puts their thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, hstack, vstack
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, log_expit

from concordant.errors import Setting, UsageError
from concordant.preferences.connectivity import Connectivity, connectivity
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.preferences import Comparisons

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
THRESHOLD = "threshold "
"""What the names of thresholds begin with."""
WIDE = 600.0
"""A gap between thresholds beyond which nothing is left of what keeps them apart."""
CUMULATIVE = Setting("ties", "cumulative")
MOST = 50
"""Strengths that are told apart."""
MANY, WIDEST = 1 << 14, 2000
"""Comparisons with thresholds of which some are looked at first, in graphs of so many nodes."""
STILL = 1e-9
"""An eigenvalue of squares of margins below this is 0, where those of single coefficients are 1."""


def threshold_name(level: int) -> str:
    """Return what the threshold below a strength is called.

    >>> threshold_name(2)
    'threshold 1|2'
    """
    return f"{THRESHOLD}{level - 1}|{level}"


def levels_of(batch: Batch) -> Ints:
    """Return the strengths that judgments of these preferences have, ascending. Errors (UsageError): no integers."""
    prefs = batch.prefs
    if prefs.kind not in (None, "comparisons"):
        raise UsageError(CUMULATIVE, f" reads comparisons, not {prefs.kind}")
    if not isinstance(prefs, Comparisons) or not prefs.weighted:
        return np.ones(1, np.int64)
    if prefs.share is not None:
        raise UsageError(CUMULATIVE, " reads grades, not shares of a win")
    weight = np.ones(prefs.distinct) if prefs.weight is None else prefs.weight
    levels = np.unique(weight if prefs.tie is None else weight[~prefs.tie])
    if len(levels) and ((levels != np.round(levels)).any() or levels.max() > MOST):
        odd = levels[(levels != np.round(levels)) | (levels > MOST)][0]
        raise UsageError(
            CUMULATIVE, f" reads strengths of comparisons as grades, integers from 1 to {MOST}; {odd:g} is none"
        )
    return levels.astype(np.int64) if len(levels) else np.ones(1, np.int64)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Which outcomes the judgments of some graphs have, numbered 0 (tie), 1 … m by strength."""

    levels: Ints
    """The strengths, ascending; shape (m,)."""
    counts: Floats
    """How often each outcome was seen; shape (graphs, m + 1)."""

    @classmethod
    def of_one(cls, strength: Ints, times: Floats) -> Outcomes:
        """Those of one graph, by strengths that ascend, 0 that of a tie.

        >>> Outcomes.of_one(np.array([0, 2]), np.array([5.0, 7.0])).counts.tolist()
        [[5.0, 7.0]]
        """
        won = strength > 0
        levels, ties = strength[won], float(times[~won].sum())
        if not len(levels):
            return cls(np.ones(1, np.int64), np.array([[ties, 0.0]]))
        return cls(levels, np.append(ties, times[won])[None, :])


@dataclass(frozen=True, eq=False)
class Graded:
    """The judgments of a batch as comparisons with thresholds.

    Outcomes are numbered 0 (tie), 1 … m by strength; ``levels`` holds these strengths. Arrays with outcomes have shape
    (graphs, m + 1), those with thresholds (graphs, m), the threshold below outcome k at k − 1.
    """

    batch: Batch
    names: tuple[str, ...]
    """Covariates that are used."""
    levels: Ints

    @classmethod
    def of(cls, batch: Batch, names: tuple[str, ...] = (), seen: Outcomes | None = None) -> Graded:
        """The judgments of a batch; ``seen``: the outcomes of all judgments of its graphs, where it holds but some."""
        held: dict[tuple[str, ...], Graded] = vars(batch).setdefault("_graded", {})  # kept with the batch
        if seen is not None:
            held[names] = cls(batch, names, seen.levels)
            vars(held[names])["counts"] = seen.counts
        elif names not in held:
            held[names] = cls(batch, names, levels_of(batch))
        return held[names]

    @classmethod
    def fitted(cls, batch: Batch, coefficients: Mapping[str, object], seen: Outcomes | None = None) -> Graded:
        """Of a fit with these coefficients."""
        return cls.of(batch, tuple(name for name in batch.prefs.covariate_names if name in coefficients), seen)

    @property
    def seen(self) -> Outcomes:
        """The outcomes."""
        return Outcomes(self.levels, self.counts)

    @cached_property
    def outcome(self) -> Ints:
        """The outcome of each edge, of its winner."""
        edges = self.batch.edges
        return np.where(edges.tie, 0, 1 + np.searchsorted(self.levels, edges.strength)).astype(np.int64)

    @cached_property
    def graph(self) -> Ints:
        """The graph of each edge."""
        return self.batch.graph[self.batch.edges.holder]

    @cached_property
    def counts(self) -> Floats:
        """How often each outcome was seen."""
        graphs, outcomes = len(self.batch), len(self.levels) + 1
        times = self.batch.multiplicity[self.batch.edges.holder].astype(float)
        found = np.bincount(self.graph * outcomes + self.outcome, times, graphs * outcomes)
        return np.asarray(found, np.float64).reshape(graphs, outcomes)

    @cached_property
    def above(self) -> Ints:
        """The next outcome above each that was seen, 0 where there is none."""
        graphs, outcomes = self.counts.shape
        found, following = np.zeros((graphs, outcomes), np.int64), np.zeros(graphs, np.int64)
        for k in range(outcomes - 1, -1, -1):
            found[:, k] = following
            following = np.where(self.counts[:, k] > 0, k, following)
        return found

    @cached_property
    def free(self) -> Flags:
        """Which thresholds the outcomes determine: those below an outcome that was seen, and above another."""
        seen = self.counts > 0
        return np.asarray(seen[:, 1:] & (np.cumsum(seen, axis=1)[:, :-1] > 0), bool)

    @property
    def only_ties(self) -> Flags:
        """Which graphs have no wins."""
        return np.asarray((self.counts[:, 1:] == 0).all(axis=1), bool)

    @property
    def thresholds(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(threshold_name(int(level)) for level in self.levels)

    @cached_property
    def split(self) -> tuple[Ints, Ints, Ints, Floats, Floats]:
        """Edge, winner, loser, mass and covariates (those used, then thresholds) of the comparisons with thresholds."""
        edges, m = self.batch.edges, len(self.levels)
        edge = np.arange(len(edges.winner))
        above, bounded = self.above[self.graph, self.outcome], self.outcome > 0
        bounded &= self.free[self.graph, np.maximum(self.outcome, 1) - 1]
        cut = np.zeros((2, len(edge), m))
        cut[0, edge[bounded], self.outcome[bounded] - 1] = -1.0
        inner = above > 0
        cut[1, edge[inner], above[inner] - 1] = 1.0
        tied = edges.tie & inner
        cut[0, edge[tied], above[tied] - 1] = 1.0
        twice = inner | edges.tie
        z = np.zeros((len(edge), 0)) if edges.covariates is None else edges.covariates
        z = z[:, [self.batch.prefs.covariate_names.index(name) for name in self.names]]
        mass = self.batch.multiplicity[edges.holder] * np.where(edges.tie & ~inner, 0.5, 1.0)  # nothing but ties
        return (
            np.concatenate([edge, edge[twice]]),
            np.concatenate([edges.winner, edges.loser[twice]]),
            np.concatenate([edges.loser, edges.winner[twice]]),
            np.concatenate([mass, mass[twice]]),
            np.hstack([np.concatenate([z, -z[twice]]), np.concatenate([cut[0], cut[1, twice]])]),
        )

    @cached_property
    def graphs(self) -> Graphs:
        """The pair table of these comparisons."""
        _, winner, loser, mass, z = self.split
        return Graphs.from_edges(self.batch.node_start, winner, loser, mass, None, z)

    @cached_property
    def links(self) -> Connectivity:
        """What the outcomes connect, and which of them set a limit."""
        return connectivity(self.graphs)

    def choices(self, coefficients: Mapping[str, Floats]) -> tuple[Ints, Ints, Ints, Floats, Floats]:
        """Return these comparisons as ``separated`` has its choices: holder, offsets, nodes, utilities, weight."""
        edge, winner, loser, mass, z = self.split
        beta = np.column_stack([*(coefficients[name] for name in self.names), self.taken(coefficients)])
        lead = (z * beta[self.graph[edge]]).sum(axis=1)
        node = np.stack([np.column_stack([side, side]) for side in (winner, loser)], 1).reshape(-1, 2)
        offset = np.column_stack([lead, np.zeros(len(lead))]).ravel()
        return self.batch.edges.holder[edge], 2 * np.arange(len(edge) + 1), node, offset, mass.astype(float)

    def endless(self) -> tuple[int, Ints] | None:
        """Return a graph whose scores and thresholds can grow for ever at no cost, and the nodes that do; else None.

        No margin of a comparison with a threshold falls along such a direction, and some rise (Albert and Anderson,
        Biometrika 71, 1984): found by linear programming. Where two items had the strongest win each way, and the
        outcomes limit all differences, there is none.
        """
        graphs, mutual = self.graphs, self.mutual
        z = np.zeros((len(graphs.first), 0)) if graphs.covariates is None else graphs.covariates
        for graph in np.flatnonzero(self.free.any(axis=1) & (~mutual | (len(self.names) > 0))).tolist():
            part, low = graphs.pairs.slices[graph], int(graphs.node_start[graph])
            size, rows = int(graphs.sizes[graph]), np.arange(len(z[part]))
            ends = np.concatenate([graphs.first[part] - low, graphs.second[part] - low])
            sides = np.concatenate([np.ones(len(rows)), -np.ones(len(rows))])
            margin = hstack([coo_array((sides, (np.tile(rows, 2), ends)), shape=(len(rows), size)), z[part]]).tocsr()
            seen = graphs.wins[part] > 0, graphs.losses[part] > 0
            moved = endless_nodes(csr_array(vstack([margin[seen[0]], -margin[seen[1]]])), size)
            if moved is not None:
                return graph, low + moved
        return None

    @cached_property
    def mutual(self) -> Flags:
        """In which graphs two items had the strongest win each way."""
        edges, nodes = self.batch.edges, len(self.batch.item)
        top = (self.outcome > 0) & (self.above[self.graph, self.outcome] == 0)
        won, lost = edges.winner[top].astype(np.int64), edges.loser[top].astype(np.int64)
        both = np.isin(won * nodes + lost, lost * nodes + won)
        return np.asarray(np.bincount(self.graph[top][both], minlength=len(self.batch)) > 0, bool)

    # -- thresholds ----------------------------------------------------------------------------------------------
    def begin(self) -> Floats:
        """Thresholds of equal items, P(|Y| ≥ k) = 2σ(−c_k): where the fit begins, and its maximum without scores."""
        total = np.maximum(self.counts.sum(axis=1), 1.0)[:, None]
        share = np.cumsum(self.counts[:, :0:-1], axis=1)[:, ::-1] / total
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(2.0 / share - 1.0))

    def filled(self, own: Floats) -> Floats:
        """Thresholds with those that merge with their neighbours, where ``own`` holds the free ones."""
        out = np.where(self.counts[:, 1:].sum(axis=1, keepdims=True) > 0, np.inf, np.nan) * np.ones_like(own)
        out[(self.counts[:, 0] > 0) & ~(self.counts[:, 1:] > 0).any(axis=1)] = np.inf
        following = out[:, -1].copy() if out.shape[1] else out
        for k in range(out.shape[1] - 1, -1, -1):
            lowest = (self.counts[:, k + 1] > 0) & ~self.free[:, k]
            following = np.where(self.free[:, k], own[:, k], np.where(lowest, 0.0, following))
            out[:, k] = following
        return out

    def taken(self, coefficients: Mapping[str, Floats]) -> Floats:
        """The free thresholds of a fit, 0 in the place of others."""
        own = np.column_stack([coefficients[name] for name in self.thresholds])
        return np.where(self.free, own, 0.0)

    def gaps(self, own: Floats) -> tuple[Floats, Flags]:
        """The gap between the cuts of each outcome, and which outcomes have one."""
        lower = np.hstack([np.zeros((len(own), 1)), own])
        upper = np.take_along_axis(lower, self.above, axis=1)
        lower[:, 0] = -upper[:, 0]
        inner = (self.counts > 0) & (self.above > 0)
        return np.where(inner, upper - lower, np.inf), inner

    def apart(self, own: Floats) -> float:
        """Log-likelihood of the terms that keep thresholds apart."""
        gap, inner = self.gaps(own)
        return float((self.counts[inner] * np.log(-np.expm1(-gap[inner]))).sum())

    def ends(self, place: Ints) -> tuple[Ints, Ints]:
        """The parameters of the upper and the lower cut of each outcome, −1 where it has none; of a tie both are one.

        ``place``: the parameter of each threshold.
        """
        whole = np.hstack([np.full((len(place), 1), -1), place])
        upper = np.where(self.above > 0, np.take_along_axis(whole, self.above, axis=1), -1)
        lower = whole.copy()
        lower[:, 0] = upper[:, 0]
        return upper, lower

    def bend(self, own: Floats, place: Ints, size: int) -> csr_array:
        """The curvature of these terms, shape (size, size)."""
        gap, inner = self.gaps(own)
        upper, lower = self.ends(place)
        weight = self.counts[inner] / (4.0 * np.sinh(np.minimum(gap[inner], WIDE) / 2.0) ** 2)
        sides = [(upper[inner], np.ones(len(weight))), (lower[inner], np.where(np.nonzero(inner)[1] == 0, 1.0, -1.0))]
        rows, columns, values = [], [], []
        for one, sign in sides:
            for other, against in sides:
                known = (one >= 0) & (other >= 0)
                rows.append(one[known])
                columns.append(other[known])
                values.append((weight * sign * against)[known])
        entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        return coo_array(entries, shape=(size, size)).tocsr()

    def contributions(self, margin: Floats, own: Floats, place: Ints, parameters: int) -> csr_array:
        """The gradient of one draw of each judgment; ``margin`` of the comparisons with thresholds, with these.

        ``place``: the parameter of each covariate, then threshold, −1 where there is none.
        """
        edge, winner, loser, _, z = self.split
        holder = self.batch.edges.holder
        half = np.where(self.batch.edges.tie & (self.above[self.graph, self.outcome] == 0), 0.5, 1.0)
        pull = expit(-margin) * half[edge]
        rows, columns, values = [holder[edge]] * 2, [winner, loser], [pull, -pull]
        for at, column in enumerate(z.T):
            there = (column != 0) & (place[self.graph[edge], at] >= 0)
            rows.append(holder[edge[there]])
            columns.append(place[self.graph[edge[there]], at])
            values.append((pull * column)[there])
        gap, inner = self.gaps(own)
        kept = inner[self.graph, self.outcome]
        graph, outcome = self.graph[kept], self.outcome[kept]
        slope = 1.0 / np.expm1(np.minimum(gap[graph, outcome], WIDE))
        for ends, sign in zip(self.ends(place[:, len(self.names) :]), (1.0, -1.0), strict=True):
            parameter = ends[graph, outcome]
            there = parameter >= 0
            rows.append(holder[kept][there])
            columns.append(parameter[there])
            values.append((slope * np.where(outcome == 0, 1.0, sign))[there])
        entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        return coo_array(entries, shape=(len(self.batch.judgment), parameters)).tocsr()


def endless_nodes(rise: csr_array, nodes: int) -> Ints | None:
    """Nodes that move in a direction in which no margin falls and some rise; None where there is none.

    ``rise``: of each comparison with a threshold how its margin goes with the nodes and with the coefficients. Of many
    of them some are looked at first: where no direction lets these rise, and they hold still for none but a shift of
    what is connected, there is none for all.
    """
    step = -(-rise.shape[0] // MANY)
    if step > 1 and nodes <= WIDEST:
        part = csr_array(rise[::step])
        if _risen(part) is None and _held_still(part) == connected_components(_between(rise, nodes))[0]:
            return None
    found = _risen(rise)
    if found is None:
        return None
    moved = np.abs(found[:nodes] - np.median(found[:nodes])) > 1e-6
    return np.flatnonzero(moved if moved.any() else np.ones(nodes, bool))


def _risen(rise: csr_array) -> Floats | None:
    """A direction in which no margin falls and some rise."""
    from scipy.optimize import linprog

    limits = np.concatenate([np.ones(rise.shape[0]), np.zeros(rise.shape[0])])
    found = linprog(-rise.sum(axis=0), A_ub=vstack([rise, -rise]), b_ub=limits, bounds=(None, None))
    return np.asarray(found.x, np.float64) if found.status == 0 and -found.fun > 1e-6 else None


def _held_still(rise: csr_array) -> int:
    """The dimension of the directions in which no margin moves."""
    square = (rise.T @ rise).toarray()
    scale = 1.0 / np.sqrt(np.maximum(square.diagonal(), np.finfo(np.float64).tiny))
    return int((np.linalg.eigvalsh(scale[:, None] * square * scale) < STILL).sum())


def _between(rise: csr_array, nodes: int) -> csr_array:
    """Which nodes some margin is between."""
    ends = abs(rise[:, :nodes])
    return csr_array(ends.T @ ends)


@dataclass(frozen=True, eq=False)
class Chance:
    """The probability of an outcome, and the slopes of its logarithm by the margin and by coefficients."""

    value: Floats
    by_margin: Floats
    by_name: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class Cuts:
    """The thresholds of a query: below each strength that judgments had, ascending; ``value`` 0 where nothing tied."""

    levels: tuple[int, ...]
    value: Floats

    @classmethod
    def of(cls, coefficients: Mapping[str, float]) -> Cuts | None:
        """Take the thresholds out of coefficients; None where there are none."""
        found = {int(name.rpartition("|")[2]): x for name, x in coefficients.items() if name.startswith(THRESHOLD)}
        levels = tuple(sorted(level for level, x in found.items() if np.isfinite(x)))
        return cls(levels, np.array([found[level] for level in levels], np.float64)) if found else None

    def between(self, margin: Floats, lower: int, upper: int) -> Chance:
        """The outcome between two thresholds, by their places from 1 on, with the sign of the side; 0 for no end.

        >>> Cuts((1,), np.array([0.5])).between(np.array([1.0]), -1, 1).value.round(3)
        array([0.195])
        """
        low, high = (
            np.sign(k) * self.value[abs(k) - 1] if k else end for k, end in ((lower, -np.inf), (upper, np.inf))
        )
        if low >= high:
            return Chance(0.0 * margin, 0.0 * margin, {})
        below, beyond, gap = expit(margin - low), expit(high - margin), min(float(high - low), WIDE)
        apart, slopes = 1.0 / np.expm1(gap), dict[str, Floats]()
        for k, slope in ((lower, below - 1.0 - apart), (upper, 1.0 - beyond + apart)):
            if k and self.value[abs(k) - 1] != 0:  # of those that merged the last is the parameter
                name = threshold_name(self.levels[np.flatnonzero(self.value == self.value[abs(k) - 1])[-1]])
                slopes[name] = slopes.get(name, 0.0 * margin) + np.sign(k) * slope
        return Chance(below * beyond * -np.expm1(low - high), beyond - below, slopes)

    def chances(self, margin: Floats) -> dict[str, Chance]:
        """Win, tie (where there are some) and loss of the first, then, where there are several, by each strength."""
        none = 0.0 * margin
        if not self.levels:  # nothing but ties
            return {name: Chance(none + (name == "tie"), none, {}) for name in ("win", "tie", "loss")}
        found = {"win": (1, 0), "tie": (-1, 1), "loss": (0, -1)}
        if self.value[0] == 0:
            del found["tie"]
        after = [*range(2, len(self.levels) + 1), 0]
        if len(self.levels) > 1:
            steps = [(level, place, after[place - 1]) for place, level in enumerate(self.levels, 1)]
            found |= {f"win_{level}": (k, above) for level, k, above in reversed(steps)}
            found |= {f"loss_{level}": (-above, -k) for level, k, above in steps}
        return {name: self.between(margin, *ends) for name, ends in found.items()}

    def grades(self, margin: Floats) -> tuple[Floats, Floats, Floats, dict[str, Floats]]:
        """Mean and variance of the grade, positive for the first, and slopes of the mean by margin and thresholds.

        E Y = Σ_k (l_k − l_{k−1}) (σ(t − c_k) − σ(−t − c_k)) with the strengths l_1 < l_2 < … and l_0 = 0.

        >>> [float(x[0].round(3)) for x in Cuts((1, 3), np.array([0.5, 1.5])).grades(np.array([1.0]))[:2]]
        [1.043, 3.343]
        """
        mean, square, slope, slopes = (0.0 * margin, 0.0 * margin, 0.0 * margin, dict[str, Floats]())
        for level, below, cut in zip(self.levels, (0, *self.levels), self.value.tolist(), strict=False):
            up, down = expit(margin - cut), expit(-margin - cut)
            rise, fall = up * (1.0 - up), down * (1.0 - down)
            mean, square = mean + (level - below) * (up - down), square + (level**2 - below**2) * (up + down)
            slope = slope + (level - below) * (rise + fall)
            if cut != 0:  # of those that merged the last is the parameter
                name = threshold_name(self.levels[np.flatnonzero(self.value == cut)[-1]])
                slopes[name] = slopes.get(name, 0.0 * margin) + (level - below) * (fall - rise)
        return mean, square - mean**2, slope, slopes

    def log_odds(self, margin: Floats) -> Floats:
        """Of a win against a loss."""
        first = min(float(self.value[0]), WIDE) if len(self.value) else WIDE
        return np.asarray(log_expit(margin - first) - log_expit(-margin - first), np.float64)

    def prefers(self, margin: Floats) -> Floats:
        """The probability that the first is preferred, of a tie half."""
        first = self.value[0] if len(self.value) else np.inf
        return np.asarray(0.5 * (expit(margin - first) + expit(margin + first)), np.float64)

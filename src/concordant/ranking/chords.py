"""Refits of many replicates of one graph at once, from the point estimate: Bradley–Terry, Plackett–Luce.

The replicates share the pairs, or lists, and their scores lie near the point estimate s. So all are solved together by
the chord method: s_r ← s_r + (H + λ)⁻¹ (gradient of r at s_r − λ s_r) with the Hessian H of the *point estimate*. One
inverse serves all replicates; of pairs a step is two sparse products, one exponential per pair and replicate, and one
dense product: the gradient is Bᵀ(w_r − n_r ∘ σ(B s_r)), B the pairs-by-nodes incidence. A replicate whose steps do not
shrink fast enough is left to Newton's method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, triu
from scipy.sparse.csgraph import connected_components

from concordant.preferences.graphs import Batch
from concordant.preferences.ragged import Ragged
from concordant.ranking.cumulative import Graded, Outcomes
from concordant.ranking.curvature import laplacian, pair_weights
from concordant.ranking.elimination import far_apart
from concordant.ranking.multinomial import Atoms, Counts
from concordant.ranking.plackett_luce import luce_terms
from concordant.ranking.problem import davidson_derivatives, win_derivatives
from concordant.ranking.ranked_lists import Rankings
from concordant.ranking.tied_terms import Sizes, TiedTerms

Floats = NDArray[np.float64]
STEPS = 40
ACCURATE = 1e-8
"""Estimated distance of a score from its solution at which a replicate is done."""
CLIMB, HISTORY = 150, 16
"""Steps of ``climbed``, and how many of the last tell how the likelihood bends."""
STUCK = 20
"""Steps without one half as long as the shortest before, after which gradients are taken for rounding."""
ENDLESS = 500.0
"""Scores of a replicate that has no maximum, or none that is found so."""
SHORTER, BEYOND = 8, 0.9
"""How often a step is shortened at most, and from which slope downwards, of that upwards before it."""


@dataclass(frozen=True, eq=False)
class DrawnPairs:
    """The pairs of one graph, and how draws of its atoms fill them."""

    incidence: csr_array
    """Shape (pairs, nodes): +1 at the first, −1 at the second item."""
    back: csr_array
    above: csr_array
    """Shape (pairs, atoms): wins of the first over the second, half the ties, in one draw of each atom."""
    total: csr_array

    @classmethod
    def of(cls, batch: Batch, member: Counts, multiplicity: Counts, atoms: int) -> Self:
        """Of a batch of one graph; ``member`` and ``multiplicity`` as of ``Atoms``, of which there are so many."""
        edges = batch.edges
        nodes = int(batch.node_start[-1])
        swap = edges.winner > edges.loser
        first, second = np.minimum(edges.winner, edges.loser), np.maximum(edges.winner, edges.loser)
        labels, pair = np.unique(first * nodes + second, return_inverse=True)
        mass = edges.strength * multiplicity[edges.holder]
        share = np.where(edges.tie, 0.5, np.where(swap, 0.0, 1.0)) * mass
        shape = (len(labels), atoms)
        where = (pair, member[edges.holder])
        rows = np.arange(len(labels))
        signs = np.concatenate([np.ones(len(labels)), -np.ones(len(labels))])
        ends = np.concatenate([labels // max(nodes, 1), labels % max(nodes, 1)])
        incidence = coo_array((signs, (np.concatenate([rows, rows]), ends)), shape=(len(labels), nodes)).tocsr()
        above, total = (coo_array((x, where), shape=shape).tocsr() for x in (share, mass))
        above.eliminate_zeros()
        return cls(incidence, incidence.T.tocsr(), above, total)

    def tables(self, draws: Counts) -> tuple[Floats, Floats]:
        """Wins of the first and all judgments of each pair, of shape (pairs, replicates), of draws of atoms."""
        columns = np.ascontiguousarray(draws.T, np.float64)
        return self.above @ columns, self.total @ columns

    def pulls(self, now: Floats, above: Floats, total: Floats) -> Floats:
        """The gradients of the log-likelihoods at scores of shape (nodes, replicates)."""
        rest = self.incidence @ now
        np.negative(rest, out=rest)
        with np.errstate(over="ignore"):
            np.exp(rest, out=rest)
        rest += 1.0
        np.divide(total, rest, out=rest)
        np.subtract(above, rest, out=rest)
        return np.asarray(self.back @ rest)


@dataclass(frozen=True, eq=False)
class DrawnEdges:
    """The comparisons of one graph beside coefficients, and the atoms by which they are drawn."""

    incidence: csr_array
    """Shape (edges, nodes): +1 at the winner, −1 at the loser, of a tie at the first and the second."""
    back: csr_array
    z: Floats
    """Shape (edges, covariates), winner minus loser."""
    strength: Floats
    tie: NDArray[np.bool_]
    atom: NDArray[np.int64]
    davidson: bool
    """Whether log ν of ties stands after the coefficients of the covariates."""

    @classmethod
    def of(cls, batch: Batch, scale: Floats, davidson: bool) -> Self:
        """Of a batch of one graph, each of whose judgments is an atom; ``scale``: what covariates are divided by."""
        edges = batch.edges
        z = np.zeros((len(edges.holder), 0))
        z = z if edges.covariates is None or not len(scale) else edges.covariates / scale
        return cls._between(batch, edges.winner, edges.loser, z, edges.strength, edges.tie, edges.holder, davidson)

    @classmethod
    def graded(cls, batch: Batch, scale: Floats, names: tuple[str, ...], seen: Outcomes) -> Self:
        """The same of comparisons with thresholds: the covariates of these names, then the thresholds between outcomes.

        What keeps thresholds apart is no part of their gradients.
        """
        graded = Graded.of(batch, names, seen)
        edge, winner, loser, mass, z = graded.split
        columns = [*range(len(names)), *(len(names) + np.flatnonzero(graded.free[0]))]
        atom = batch.edges.holder[edge]
        strength, tie = mass / batch.multiplicity[atom], np.zeros(len(edge), bool)
        return cls._between(batch, winner, loser, z[:, columns] / scale, strength, tie, atom, False)

    @classmethod
    def _between(cls, batch: Batch, winner: Counts, loser: Counts, *columns: Any) -> Self:
        number = len(winner)
        rows, signs = np.tile(np.arange(number), 2), np.repeat([1.0, -1.0], number)
        shape = (number, int(batch.node_start[-1]))
        incidence = coo_array((signs, (rows, np.concatenate([winner, loser]))), shape=shape).tocsr()
        return cls(incidence, incidence.T.tocsr(), *columns)

    @property
    def entries(self) -> int:
        """Numbers that each replicate takes."""
        return len(self.strength)

    def pulls(self, now: Floats, draws: Counts) -> Floats:
        """The gradients of the log-likelihoods by scores and coefficients, as ``now`` of shape (both, replicates)."""
        nodes, valued = self.incidence.shape[1], self.z.shape[1]
        margin = self.incidence @ now[:nodes] + self.z @ now[nodes : nodes + valued]
        mass = np.ascontiguousarray(draws[:, self.atom].T) * self.strength[:, None]
        tied, no = mass * self.tie[:, None], np.zeros(1)
        if self.davidson:
            pull, _, of_ties, _, _ = davidson_derivatives(margin, now[-1], mass - tied, no, tied)
            more = [of_ties.sum(axis=0)[None, :]]
        else:
            pull, more = win_derivatives(margin, mass - 0.5 * tied, 0.5 * tied)[0], []
        return np.concatenate([self.back @ pull, self.z.T @ pull, *more])


@dataclass(frozen=True, eq=False)
class DrawnLists:
    """The lists of one graph, of tiers whose order is not known, and the atoms by which they are drawn."""

    lists: Rankings
    ends: NDArray[np.int64]
    """Where the tiers of each list begin that stand above others, and where the last of them ends."""
    end_start: NDArray[np.int64]
    atom: NDArray[np.int64]
    times: NDArray[np.int64]

    @classmethod
    def of(cls, batch: Batch, member: Counts, multiplicity: Counts) -> Self:
        """Of a batch of one graph; ``member`` and ``multiplicity`` as of ``Atoms``."""
        lists = Rankings.of(batch)
        lists = lists.take(np.unique(lists.row[lists.below > 0]))  # a list that ties everything says nothing
        first = lists.tier_first
        upper = first[lists.below[first] > 0]
        last = first[lists.below[first] == 0]  # the last tier of each list
        begin = Ragged.counted(lists.row[upper], len(lists.weight))
        ends, start = np.insert(upper, begin.start[1:], last), begin.start + np.arange(len(begin.start))
        return cls(lists, ends, start, member[lists.holder], multiplicity[lists.holder])

    def pulls(self, now: Floats, draws: Counts) -> Floats:
        """The gradients of the log-likelihoods at scores of shape (nodes, replicates); draws (replicates, atoms)."""
        from concordant.kernels.tier_events import pulls

        out, lists = np.zeros(now.shape[::-1]), self.lists
        score = np.ascontiguousarray(now.T)
        pulls(lists.start, lists.node, self.ends, self.end_start, self.atom, self.times, draws, score, out)
        return out.T


@dataclass(frozen=True, eq=False)
class DrawnTies:
    """The rankings of one graph whose ties are outcomes, and the atoms by which they are drawn."""

    terms: TiedTerms
    atom: Counts
    once: Floats
    """What a list weighs for each time that its atom is drawn."""

    @classmethod
    def of(cls, batch: Batch, sizes: Sizes) -> Self:
        """Of a batch of one graph, each of whose judgments is an atom; ``sizes``: of all ties that count."""
        lists = Rankings.of(batch)
        return cls(TiedTerms(lists, sizes), lists.holder, lists.weight / batch.multiplicity[lists.holder])

    @property
    def entries(self) -> int:
        """Numbers that each replicate takes."""
        return len(self.atom)

    def pulls(self, now: Floats, draws: Counts) -> Floats:
        """The gradients of the log-likelihoods by scores and log δ, as ``now`` of shape (both, replicates)."""
        found = np.zeros(now.shape)
        for place, often in enumerate(draws):
            found[:, place] = self.terms.weighted(self.once * often[self.atom]).at(now[:, place]).gradient()
        return found


@dataclass(frozen=True, eq=False)
class Chord:
    """One graph's pairs, how its atoms fill them, and the inverse of its Hessian at the point estimate."""

    point: Floats
    prior: float
    pairs: DrawnPairs
    inverse: Floats

    @classmethod
    def of(cls, batch: Batch, atoms: Atoms, point: Floats, prior: float) -> Self:
        """Prepare a batch of one graph."""
        pairs = DrawnPairs.of(batch, atoms.member, atoms.multiplicity, len(atoms.count))
        information = laplacian(batch.graphs, pair_weights(batch.graphs, point))
        return cls(point, prior, pairs, inverse_of(information, prior))

    def fit(self, draws: Counts) -> tuple[Floats, NDArray[np.bool_]]:
        """Scores of shape (replicates, nodes) for draws of shape (replicates, atoms), and which are solved."""
        above, total = self.pairs.tables(draws)
        if self.prior == 0 and not self._bound_together(above, total):
            return _unsolved(self.point, len(draws))

        def keep(stay: NDArray[np.bool_]) -> None:
            nonlocal above, total
            above, total = above[:, stay], total[:, stay]

        def gradient(now: Floats) -> Floats:
            pull = self.pairs.pulls(now, above, total)
            if self.prior:
                pull -= self.prior * now
            return pull

        return _chords(self.point, self.inverse, len(draws), gradient, keep)

    def _bound_together(self, above: Floats, total: Floats) -> bool:
        """Whether the wins that all replicates have make every item reachable from every other."""
        incidence = self.pairs.incidence
        wins, losses = (above > 0).all(axis=1), (total - above > 0).all(axis=1)
        ends = incidence.indices.reshape(-1, 2)
        value = incidence.data.reshape(-1, 2)[:, 0]
        first, second = np.where(value > 0, ends[:, 0], ends[:, 1]), np.where(value > 0, ends[:, 1], ends[:, 0])
        source, target = np.r_[first[wins], second[losses]], np.r_[second[wins], first[losses]]
        nodes = incidence.shape[1]
        beats = csr_array((np.ones(len(source), np.int8), (source, target)), shape=(nodes, nodes))
        blocks, _ = connected_components(beats, directed=True, connection="strong")
        return int(blocks) == 1


@dataclass(frozen=True, eq=False)
class ListChord:
    """One graph's lists, as ``Chord`` has pairs: Plackett–Luce."""

    point: Floats
    prior: float
    drawn: DrawnLists
    inverse: Floats

    @classmethod
    def of(cls, batch: Batch, atoms: Atoms, point: Floats, prior: float) -> Self:
        """Prepare a batch of one graph."""
        inverse = inverse_of(luce_terms(batch).at(point).information(), prior)
        return cls(point, prior, DrawnLists.of(batch, atoms.member, atoms.multiplicity), inverse)

    def fit(self, draws: Counts) -> tuple[Floats, NDArray[np.bool_]]:
        """Scores of shape (replicates, nodes) for draws of shape (replicates, atoms), and which are solved."""
        if self.prior == 0:
            always = np.flatnonzero(np.asarray((draws > 0).all(axis=0))[self.drawn.atom])
            if len(np.unique(self.drawn.lists.take(always).connected().block)) > 1:
                return _unsolved(self.point, len(draws))

        def keep(stay: NDArray[np.bool_]) -> None:
            nonlocal draws
            draws = draws[stay]

        def gradient(now: Floats) -> Floats:
            return np.asarray(self.drawn.pulls(now, draws) - self.prior * now)

        return _chords(self.point, self.inverse, len(draws), gradient, keep)


def _unsolved(point: Floats, replicates: int) -> tuple[Floats, NDArray[np.bool_]]:
    return np.tile(point, (replicates, 1)), np.zeros(replicates, bool)


def _chords(
    point: Floats,
    inverse: Floats,
    replicates: int,
    gradient: Callable[[Floats], Floats],
    keep: Callable[[NDArray[np.bool_]], None],
) -> tuple[Floats, NDArray[np.bool_]]:
    """Scores (replicates, nodes) and which are solved; gradient takes and gives (nodes, replicates still open)."""
    if not np.isfinite(inverse).all():
        return _unsolved(point, replicates)
    scores = np.repeat(point[:, None], replicates, axis=1)
    solved = np.zeros(replicates, bool)
    live = np.arange(replicates)
    now, last = scores.copy(), np.zeros(replicates)
    for _ in range(STEPS):
        step = inverse @ gradient(now)
        now += step
        length = np.abs(step).max(axis=0)
        rate = np.minimum(np.divide(length, last, out=np.ones_like(length), where=last > 0), 1.0)
        done = (length * rate <= ACCURATE * (1.0 - rate)) & (length < 1e-3)
        last = length
        if done.all() or done.sum() * 4 > len(live):
            scores[:, live], solved[live] = now, done
            stay = ~done
            live, now, last = live[stay], now[:, stay], last[stay]
            keep(stay)
            if len(live) == 0:
                break
    scores[:, live] = now
    return scores.T, solved


def climbed(
    point: Floats,
    inverse: Floats,
    replicates: int,
    gradient: Callable[[Floats], Floats],
    keep: Callable[[NDArray[np.bool_]], None],
) -> tuple[Floats, NDArray[np.bool_]]:
    """Scores (replicates, nodes) and which are solved, by steps that learn where a replicate bends otherwise.

    Where gradients are dear: an item of few judgments may have none of them in a replicate, and the chord's steps are
    too short there. These are the steps of L-BFGS (Nocedal, Math. Comp. 35, 1980) from the inverse at the point
    estimate; one that goes too far up the other side is shortened by the secant. ``gradient`` takes and gives (nodes,
    replicates still open), and ``keep`` hears which of these stay open.
    """
    if not np.isfinite(inverse).all():
        return _unsolved(point, replicates)
    scores, solved = np.repeat(point[:, None], replicates, axis=1), np.zeros(replicates, bool)
    live, past = np.arange(replicates), _Past(inverse)
    now = scores.copy()
    slope = gradient(now)
    best, since = np.full(replicates, np.inf), np.zeros(replicates, np.int64)
    for _ in range(CLIMB):
        along = past.step(slope)
        rise = (along * slope).sum(axis=0)
        length = np.abs(along).max(axis=0)
        since = np.where(length < best / 2, 0, since + 1)
        best = np.minimum(best, length)
        done = (length <= ACCURATE / 10) | ((best <= ACCURATE) & (since >= STUCK))
        lost = ~np.isfinite(rise) | (np.abs(now + along).max(axis=0) > ENDLESS)
        if (done | lost).any():
            scores[:, live], solved[live] = now + np.where(done, along, 0.0), done
            stay = ~(done | lost)
            live, now, slope, along, rise = live[stay], now[:, stay], slope[:, stay], along[:, stay], rise[stay]
            best, since = best[stay], since[stay]
            past.keep(stay)
            keep(stay)
            if len(live) == 0:
                break
        part = np.ones(len(live))
        for _ in range(SHORTER):
            ahead = gradient(now + part * along)
            fall = (along * ahead).sum(axis=0)
            over = fall < -BEYOND * rise
            if not over.any():
                break
            part = np.where(over, part * rise / np.where(over, rise - fall, 1.0), part)
        past.learn(part * along, slope - ahead)
        now, slope = now + part * along, ahead
    scores[:, live] = now
    return scores.T, solved


class _Past:
    """What the last steps told of the curvature of each replicate, beside what is known of all of them."""

    def __init__(self, inverse: Floats) -> None:
        self.inverse = inverse
        self.steps: list[tuple[Floats, Floats, Floats]] = []

    def step(self, slope: Floats) -> Floats:
        """The step up from where the gradients are these."""
        rest, told = slope.copy(), []
        for moved, bent, weight in reversed(self.steps):
            told.append(weight * (moved * rest).sum(axis=0))
            rest -= told[-1] * bent
        rest = self.inverse @ rest
        for moved, bent, weight in self.steps:
            rest += moved * (told.pop() - weight * (bent * rest).sum(axis=0))
        return np.asarray(rest)

    def learn(self, moved: Floats, bent: Floats) -> None:
        """Take note that gradients fell by so much over a step."""
        product = (moved * bent).sum(axis=0)
        size = np.sqrt((moved * moved).sum(axis=0) * (bent * bent).sum(axis=0))
        weight = np.divide(1.0, product, out=np.zeros_like(product), where=product > 1e-10 * size)
        self.steps = [*self.steps[1 - HISTORY :], (moved, bent, weight)]

    def keep(self, stay: NDArray[np.bool_]) -> None:
        """Forget the replicates that are solved."""
        self.steps = [(moved[:, stay], bent[:, stay], weight[stay]) for moved, bent, weight in self.steps]


def inverse_of(information: csr_array, prior: float) -> Floats:
    """(H + λ)⁻¹ on scores that sum to zero in each component; NaN where weights lie too far apart for it."""
    upper = triu(information, 1).tocoo()
    nodes = information.shape[0]
    if far_apart(upper.row, upper.col, -upper.data, prior, nodes):
        return np.full((nodes, nodes), np.nan)
    inverse, same = _inverse(information.toarray(), prior, nodes)
    inverse -= (same @ inverse) / same.sum(axis=1)[:, None]
    return np.asarray(inverse)


def inverse_beside(information: csr_array, prior: float, nodes: int) -> Floats:
    """The same of scores and the coefficients after them, which have no prior, up to a shift of each component."""
    return _inverse(information.toarray(), prior, nodes)[0]


def _inverse(hessian: Floats, prior: float, nodes: int) -> tuple[Floats, NDArray[np.bool_]]:
    """The inverse, shifts of components being held, and which scores are of one component."""
    scored = hessian[:nodes, :nodes]
    _, part = connected_components(scored < 0, directed=False)
    same: NDArray[np.bool_] = part[:, None] == part[None, :]
    mean = np.bincount(part, np.diagonal(scored)) / np.bincount(part)
    scored += np.where(same, (np.where(mean > 0, mean, 1.0) / np.bincount(part))[part][:, None], 0.0)
    scored[np.diag_indices(nodes)] += prior
    try:
        return np.asarray(np.linalg.inv(hessian)), same
    except np.linalg.LinAlgError:
        return np.full(hessian.shape, np.nan), same

"""Does one scale explain the pairs? Residuals of a Bradley–Terry fit, a test of its lack of fit, contradicted pairs.

With y_p the wins of the first item of pair p among its n_p judgments that are no ties, e_p those that the fit expects
and v_p their variance, the statistic is Pearson's X² = Σ (y_p − e_p)²/v_p. Given which judgments are ties, those of
Davidson's model (and all without ties) follow Bradley and Terry's, so ties take no part in the test.

*Sparse tables.* Given the items' totals of wins every table with these totals is equally likely, whatever the scores,
and has the same fit. So X² is compared with that of tables drawn evenly among them, by turning cycles of wins round
(``kernels.tournaments``); Besag and Clifford's scheme makes the test exact (Biometrika 76, 1989), and no prior or
separated item can disturb it.

*Many judgments.* Over the pairs with v_p ≥ 3, D of them: X² has the mean Σ (1 − h_p) and the variance 2 tr(I − H)² with
the leverages H = V^½ X A⁻¹ Xᵀ V^½ there; a χ² law of these two moments (χ² with pairs less parameters where D is all).

*Clusters, strengths, lists.* Judgments of one unit depend on each other. With r_c the residuals of unit c and r̃_c what
is left of them beside the parameters, X² = ‖Σ r̃_c‖² in the metric 1/v, and its law without lack of fit is that of
‖Σ ξ_c r̃_c‖² with random signs ξ_c (Liu, Ann. Statist. 16, 1988), moved to the mean under independence. Residuals of two
items are added up over the values of covariates.

*Covariates, Thurstone's model.* Tables with few judgments a pair, of a fit with covariates, and all of case V, are
compared with tables drawn from the fit (``simulated_fit``). Scores by differences of log-odds are those of Bradley and
Terry's model, whose test does not ask how it was fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaincc

from concordant.errors import Setting
from concordant.preferences.connectivity import connectivity
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons
from concordant.preferences.ragged import Ragged
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.curvature import pair_margins
from concordant.ranking.edge_tests import binomial_tail, edge_tests
from concordant.ranking.problem import davidson_probabilities, win_probability
from concordant.ranking.scores import Scores
from concordant.ranking.simulated_fit import Link, by_simulation, case_five, logistic

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Win = tuple[int, int, int]
"""Over whom, in which pair, and 1 where the winner is the pair's first, else −1."""
DENSE = 3.0
"""Variance of a pair's wins from which on they are as good as normal."""
FEWEST = 30
"""Judgments (units) of a graph that a test needs."""
FIRST, THEN, ENOUGH = 99, 900, 12
"""Tables that are drawn at first, and then where fewer than so many of these are as far from the fit."""
PLAIN = 300_000
"""Wins of a batch that are turned round without a kernel, about: a quarter of a second."""
WIDEST = 500
"""Parameters of a graph whose information is inverted."""
MOST_DRAWN, MOST_GRAPHS = 20_000, 200
"""Judgments of a graph, and graphs of a batch, for which tables are drawn; with more graphs only dense ones are
tested."""
SIGNED = 4_000_000
"""Residuals of units × draws of signs, at most."""
FIXED_PRIOR = 0.01
"""Prior up to which the fit is as good as the maximum likelihood that the χ² law is about."""
STEPS = 25


@dataclass(frozen=True, eq=False)
class FittedPairs:
    """The pairs of some graphs beside what a Bradley–Terry fit expects of them; shapes (pairs,)."""

    graphs: Graphs
    margin: Floats
    log_nu: Floats
    """Logarithm of the weight of ties in each pair's graph; −∞ without."""
    prior: float
    extras: int

    @classmethod
    def of(cls, batch: Batch, scores: Scores) -> FittedPairs:
        """Lay out the pairs of a fit by ``bradley_terry``."""
        covariates = bool(scores.options.get("covariates"))
        graphs = Graphs.of(batch, covariates=True) if covariates else batch.graphs
        names = batch.prefs.covariate_names if covariates else ()
        margin = pair_margins(graphs, scores, names)
        log_nu = np.full(len(margin), -np.inf)
        if scores.options.get("ties") == "davidson":
            log_nu = scores.coefficients["ties"][graphs.graph]
        prior = float(scores.options.get("prior", 0.0))
        return cls(graphs, margin, log_nu, prior, len(names))

    @cached_property
    def judgments(self) -> Floats:
        """Strength of the judgments of each pair."""
        return self.graphs.wins + self.graphs.losses + self.graphs.ties

    @cached_property
    def _law(self) -> tuple[Floats, Floats]:
        """Share of one judgment that the first has, and its variance."""
        share, loss = win_probability(self.margin)
        own = np.isfinite(self.log_nu)
        if not own.any():
            return share, share * loss
        win, _, tie = davidson_probabilities(self.margin, np.where(own, self.log_nu, 0.0))
        with_ties = win + 0.5 * tie
        variance = with_ties * (1 - with_ties) - 0.25 * tie
        return np.where(own, with_ties, share), np.where(own, variance, share * loss)

    @cached_property
    def expected(self) -> Floats:
        """Wins (and half the ties) that the fit expects of the first."""
        return self.judgments * self._law[0]

    @cached_property
    def variance(self) -> Floats:
        """Of these wins at the fit, judgments independent; half ties as if they were none."""
        return self.judgments * self._law[1]

    @cached_property
    def residual(self) -> Floats:
        """Observed less expected."""
        return self.graphs.above - self.expected

    def part(self, graph: int) -> tuple[slice, slice]:
        """Pairs and nodes of a graph."""
        graphs = self.graphs
        pairs = slice(int(graphs.pair_start[graph]), int(graphs.pair_start[graph + 1]))
        return pairs, slice(int(graphs.node_start[graph]), int(graphs.node_start[graph + 1]))


def _squares(residual: Floats, variance: Floats) -> Floats:
    return np.asarray(np.where(variance > 0, residual**2 / np.maximum(variance, 1e-300), 0.0))


@dataclass(frozen=True, eq=False)
class Design:
    """The parameters of one graph: +1 at a pair's first node, −1 at its second, then the covariates."""

    matrix: csr_array
    nodes: int

    @classmethod
    def of(cls, fitted: FittedPairs, graph: int) -> Design:
        """Return the design of a graph; shape (pairs, parameters)."""
        graphs = fitted.graphs
        pairs, nodes = fitted.part(graph)
        first, second = graphs.first[pairs] - nodes.start, graphs.second[pairs] - nodes.start
        rows, count = np.arange(len(first)), nodes.stop - nodes.start
        row, column, entry = [rows, rows], [first, second], [np.ones(len(rows)), -np.ones(len(rows))]
        for at in range(fitted.extras):
            row, column = [*row, rows], [*column, np.full(len(rows), count + at)]
            entry.append(graphs.covariates[pairs, at])  # type: ignore[index]
        where = (np.concatenate(row), np.concatenate(column))
        whole = coo_array((np.concatenate(entry), where), shape=(len(rows), count + fitted.extras))
        return cls(whole.tocsr(), count)

    def inverse(self, weight: Floats, prior: float) -> Floats:
        """(Xᵀ W X + λ)⁻¹ on scores that sum to zero in each component."""
        whole = np.asarray((self.matrix.T @ self.matrix.multiply(weight[:, None])).toarray(), np.float64)
        return inverse_information(whole, self.nodes, prior)


def inverse_information(whole: Floats, nodes: int, prior: float) -> Floats:
    """(H + λ)⁻¹ of an information, with λ on its first ``nodes`` parameters, whose sum is zero in each component."""
    part = connected_components(whole[:nodes, :nodes] != 0, directed=False)[1]
    same, size = part[:, None] == part[None, :], np.bincount(part)[part]
    scale = max(float(np.diagonal(whole).max(initial=0.0)), 1e-300)
    whole[:nodes, :nodes] += same * (scale / size)[:, None]
    whole[np.arange(nodes), np.arange(nodes)] += max(prior, 1e-12 * scale)
    inverse = np.linalg.inv(whole)
    centre = np.eye(len(whole))
    centre[:nodes, :nodes] -= same / size[:, None]
    return np.asarray(centre @ inverse @ centre.T)


def heights(rows: csr_array, inverse: Floats) -> Floats:
    """x_pᵀ A⁻¹ x_p of each row x_p of a sparse matrix, some rows at a time."""
    step = max(1, SIGNED // max(len(inverse), 1))
    parts = [rows[begin : begin + step] for begin in range(0, rows.shape[0], step)]
    return np.concatenate([np.zeros(0), *(part.multiply(part @ inverse).sum(axis=1) for part in parts)])


def lack_of_fit(batch: Batch, scores: Scores, *, seed: int = 0) -> Floats:
    """Return the p-value of each graph's test that one scale explains its pairs; shape (graphs,), NaN where untested.

    ``scores``: a fit by ``bradley_terry`` or ``thurstone_mosteller`` on this batch. Untested are graphs with fewer than
    30 judgments or with no more pairs than parameters, and those whose test would take long (module docstring and
    ``MOST_DRAWN``).
    """
    link: Link = logistic
    if "differences" in scores.options:
        if scores.options["differences"] not in ("log-odds", "probit"):
            return np.full(len(batch), np.nan)
        link = logistic if scores.options["differences"] == "log-odds" else case_five
        scores = bradley_terry(batch)
    fitted = FittedPairs.of(batch, scores)
    graphs = fitted.graphs
    found = np.full(len(graphs), np.nan)
    blocks = connectivity(batch.graphs).component.astype(np.int64)
    parts = batch.node_groups.most(blocks) + 1
    free = graphs.pairs.sizes - (graphs.sizes - parts) - fitted.extras
    prefs = batch.prefs
    plain = isinstance(prefs, Comparisons) and not prefs.weighted and prefs.cluster is None
    open_ = (free > 0) & (batch.judgments >= FEWEST)
    if not plain and fitted.prior > FIXED_PRIOR:  # what a strong prior leaves unexplained is no lack of fit
        how = {name: scores.options[name] for name in ("ties", "covariates") if name in scores.options}
        fitted = FittedPairs.of(batch, bradley_terry(batch, prior=FIXED_PRIOR, **how))
    if not plain:
        chosen = np.flatnonzero(open_ & (link is logistic) & (graphs.sizes + fitted.extras <= WIDEST))
        for graph in chosen if len(chosen) <= MOST_GRAPHS else ():
            found[graph] = _by_signs(batch, fitted, int(graph), seed)
        return found
    dense = (
        open_
        & (link is logistic)
        & (graphs.pairs.least(fitted.variance, np.inf) >= DENSE)
        & (fitted.prior <= FIXED_PRIOR)
    )
    dense &= (graphs.pairs.sums(graphs.ties) == 0) & (not scores.options.get("mean"))
    statistic = graphs.pairs.sums(_squares(fitted.residual, fitted.variance))
    found[dense] = gammaincc(0.5 * free[dense], 0.5 * statistic[dense])
    rest = np.flatnonzero(open_ & ~dense)
    if len(rest) <= MOST_GRAPHS:
        for graph in rest:
            found[graph] = _of_table(fitted, int(graph), link, seed, PLAIN / len(rest))
    return found


def _of_table(fitted: FittedPairs, graph: int, link: Link, seed: int, plain: float) -> float:
    """The p-value of one graph of independent judgments, without a kernel if it turns no more than ``plain`` wins."""
    pairs, _ = fitted.part(graph)
    graphs = fitted.graphs
    wins, losses = graphs.wins[pairs], graphs.losses[pairs]
    total, margin = wins + losses, fitted.margin[pairs]
    drawn = float(total.sum()) <= MOST_DRAWN and fitted.extras == 0
    if float(total.sum()) < FEWEST:
        return np.nan
    if (fitted.extras and total.sum() <= MOST_DRAWN) or link is case_five:
        return by_simulation(Design.of(fitted, graph).matrix, wins, total, link, seed)
    if drawn and (graphs.ties[pairs].any() or fitted.prior > FIXED_PRIOR):
        margin = margin * _stretch(margin, wins, total)
    elif not drawn:
        return _by_moments(fitted, graph, wins, total)
    share, loss = win_probability(margin)
    variance = np.where(total > 0, total * share * loss, 1.0)
    return _among_equal_totals(fitted, graph, total * share, np.maximum(variance, 1e-300), seed, plain)


def _stretch(margin: Floats, wins: Floats, total: Floats) -> float:
    """The factor of the margins with the largest likelihood: it depends on the data through the totals alone."""
    factor = 1.0
    for _ in range(STEPS):
        win, loss = win_probability(factor * margin)
        bend = float((margin**2 * total * win * loss).sum())
        if bend <= 0:
            break
        step = float(np.clip((margin * (wins - total * win)).sum() / bend, -0.5, 0.5))
        factor += step
        if abs(step) < 1e-9:
            break
    return factor


@dataclass(frozen=True, eq=False)
class Table:
    """The wins of one graph, sorted by the winner: over whom, in which pair, and whether the winner is its first."""

    start: Ints
    target: Ints
    pair: Ints
    forward: NDArray[np.bool_]
    wins: Ints
    """Of the first of each pair."""

    @classmethod
    def of(cls, first: Ints, second: Ints, wins: Ints, losses: Ints, nodes: slice) -> Table:
        """Lay out the wins of pairs."""
        number = np.arange(len(wins))
        owner = np.concatenate([np.repeat(first, wins), np.repeat(second, losses)])
        sorter = np.argsort(owner, kind="stable")
        target = np.concatenate([np.repeat(second, wins), np.repeat(first, losses)])[sorter]
        pair = np.concatenate([np.repeat(number, wins), np.repeat(number, losses)])[sorter]
        forward = (np.arange(len(owner)) < wins.sum())[sorter]
        return cls(np.searchsorted(owner[sorter], np.arange(nodes.stop - nodes.start + 1)), target, pair, forward, wins)

    @property
    def items(self) -> int:
        """Number of items."""
        return len(self.start) - 1

    def drawn(self, times: int, moves: int, key: int, expected: Floats, variance: Floats) -> Floats:
        """X² of the table and of ``times`` others with its totals, by the compiled kernel; shape (times + 1,)."""
        from concordant.kernels.tournaments import with_the_same_totals

        found = np.empty(times + 1)
        slots = self.target.copy(), self.pair.copy(), self.forward.copy(), self.wins.astype(np.float64)
        with_the_same_totals(moves, np.uint64(key), self.start, *slots, expected, variance, found)
        return found

    def drawn_plainly(self, times: int, moves: int, key: int, expected: Floats, variance: Floats) -> Floats:
        """The same without a kernel, whose loading takes longer than the work where the table is small."""
        chance = Random(key).random
        each = list(zip(self.target.tolist(), self.pair.tolist(), (2 * self.forward - 1).tolist(), strict=True))
        own, wins = [each[part] for part in Ragged(self.start).slices], self.wins.tolist()
        tables = [wins]
        _turn_cycles(moves, chance, own, wins := wins.copy())  # the hub
        for _ in range(times):
            _turn_cycles(moves, chance, [mine.copy() for mine in own], table := wins.copy())
            tables.append(table)
        return np.asarray(((np.array(tables) - expected) ** 2 / variance).sum(axis=1))


def _turn_cycles(moves: int, chance: Callable[[], float], own: list[list[Win]], wins: list[int]) -> None:
    """Turn cycles of wins round, in place, as ``kernels.tournaments.turn_cycles`` does; ``own``: the wins of items."""
    for _ in range(moves):
        item, met = int(chance() * len(own)), dict[int, int]()
        slots: list[int] = []
        while item not in met and own[item]:
            met[item] = len(slots)
            slots.append(int(chance() * len(own[item])))
            item = own[item][slots[-1]][0]
        if item not in met:
            continue  # an item that never won ends the walk
        begin, way = met[item], list(met)
        beaten = [own[way[at]][slots[at]] for at in range(begin, len(way))]
        before = [way[-1], *way[begin:-1]]
        for at, winner, (_, pair, sign) in zip(range(begin, len(way)), before, [beaten[-1], *beaten[:-1]], strict=True):
            own[way[at]][slots[at]] = (winner, pair, -sign)
            wins[pair] -= sign


def _among_equal_totals(
    fitted: FittedPairs, graph: int, expected: Floats, variance: Floats, seed: int, plain: float
) -> float:
    """Mid-p-value of X² among tables with the same totals."""
    pairs, nodes = fitted.part(graph)
    graphs = fitted.graphs
    wins, losses = (np.rint(x[pairs]).astype(np.int64) for x in (graphs.wins, graphs.losses))
    table = Table.of(graphs.first[pairs] - nodes.start, graphs.second[pairs] - nodes.start, wins, losses, nodes)
    moves = max(20, int(len(table.pair) / np.sqrt(max(table.items, 1))))  # a cycle has about √items wins

    def counts(times: int, key: int) -> tuple[int, int]:
        small = times * moves * np.sqrt(table.items) <= plain
        found = (table.drawn_plainly if small else table.drawn)(times, moves, key, expected, variance)
        level = 1e-9 * max(found[0], 1.0)
        return int((found[1:] > found[0] + level).sum()), int((np.abs(found[1:] - found[0]) <= level).sum())

    times, (larger, equal) = FIRST, counts(FIRST, 2 * seed + 1)
    if larger + 0.5 * equal < ENOUGH:
        more = counts(THEN, 2 * seed + 2)
        times, larger, equal = FIRST + THEN, larger + more[0], equal + more[1]
    return (larger + 0.5 * (1 + equal)) / (times + 1)


def _by_moments(fitted: FittedPairs, graph: int, wins: Floats, total: Floats) -> float:
    """The p-value of X² over the pairs with many judgments, by its first two moments."""
    pairs, nodes = fitted.part(graph)
    if nodes.stop - nodes.start + fitted.extras > WIDEST or len(wins) == 0:
        return np.nan
    if not (0.25 * total >= DENSE).any():
        return np.nan
    design = Design.of(fitted, graph)
    margin, inverse, weight = _refitted(design, fitted.margin[pairs], wins, total)
    share, _ = win_probability(margin)
    some = weight >= DENSE
    height = weight * heights(design.matrix, inverse)
    inner = design.matrix[some]
    information = (inner.T @ inner.multiply(weight[some][:, None])).toarray()
    mean = float((1 - height[some]).sum())
    twice = inverse @ information
    square = float(some.sum() - 2 * height[some].sum() + (twice * twice.T).sum())
    if mean < 0.5 or square <= 0:
        return np.nan
    statistic = float(_squares(wins - total * share, weight)[some].sum())
    scale = square / mean
    return float(gammaincc(0.5 * mean / scale, 0.5 * statistic / scale))


def _refitted(design: Design, margin: Floats, wins: Floats, total: Floats) -> tuple[Floats, Floats, Floats]:
    """Margins of the judgments that are no ties by Newton's method from those of the fit, A⁻¹ and the variances."""
    for _ in range(STEPS):
        share, loss = win_probability(margin)
        weight = total * share * loss
        inverse = design.inverse(weight, FIXED_PRIOR)
        step = design.matrix @ (inverse @ (design.matrix.T @ (wins - total * share)))
        longest = float(np.abs(step).max(initial=0.0))
        if longest < 1e-6:
            break
        margin = margin + step * min(1.0, 1.0 / max(longest, 1e-300))
    return margin, inverse, weight


def unit_residuals(batch: Batch, fitted: FittedPairs, graph: int) -> tuple[csr_array, csr_array, Ints]:
    """(units, pairs): residuals of one draw of each unit of judgments in one graph, its share of the variance; draws.

    A unit is a cluster, which is drawn once, or a distinct judgment, drawn as often as it was made.
    """
    edges, graphs = batch.edges, fitted.graphs
    here = np.flatnonzero(batch.graph[edges.holder] == graph)
    holder, winner, loser = edges.holder[here], edges.winner[here], edges.loser[here]
    pairs, _ = fitted.part(graph)
    pair = graphs.pair_of(winner, loser, None if edges.covariates is None else edges.covariates[here])
    held = np.where(edges.tie[here], 0.5, np.where(winner < loser, 1.0, 0.0))
    cluster = batch.prefs.cluster
    strength = edges.strength[here] * (1 if cluster is None else batch.multiplicity[holder])
    share, one = fitted._law
    label, unit = np.unique(holder if cluster is None else cluster[batch.judgment[holder]], return_inverse=True)
    times = batch.multiplicity[label] if cluster is None else np.ones(len(label), np.int64)
    where = (unit, pair - pairs.start)
    shape = (len(label), pairs.stop - pairs.start)
    residual, own = strength * (held - share[pair]), strength * one[pair]
    matrices = [coo_array((x, where), shape=shape).tocsr() for x in (residual, own)]
    return matrices[0], matrices[1], times


def two_items(graphs: Graphs, pairs: slice) -> csr_array:
    """(pairs of items, pairs): 1 where a pair of the graph, one for each value of the covariates, is of these items."""
    key = graphs.first[pairs] * graphs.nodes + graphs.second[pairs]
    number = np.cumsum(np.diff(key, prepend=-1) != 0) - 1
    shape = (int(number.max(initial=-1)) + 1, len(key))
    return coo_array((np.ones(len(key)), (number, np.arange(len(key)))), shape=shape).tocsr()


def _by_signs(batch: Batch, fitted: FittedPairs, graph: int, seed: int) -> float:
    """The p-value of one graph whose judgments depend on each other within units."""
    if batch.kinds is not None:  # a residual is of three kinds at most
        votes = batch.kinds.who.indptr[batch.kinds.batch.start[graph : graph + 2]]
        if (votes[1] - votes[0]) // 3 > SIGNED // FIRST:
            return np.nan
    residual, own, draws = unit_residuals(batch, fitted, graph)
    pairs, _ = fitted.part(graph)
    design, joined = Design.of(fitted, graph), two_items(fitted.graphs, pairs)
    inverse = design.inverse(np.maximum(fitted.variance[pairs], 1e-300), fitted.prior)
    moving = (joined @ design.matrix.multiply(fitted.variance[pairs][:, None])).tocsr()
    variance = np.maximum(joined @ fitted.variance[pairs], 1e-300)
    units = Units(residual @ joined.T, own @ joined.T, residual @ design.matrix, draws)
    return by_signs(units, moving, inverse, variance, seed)


@dataclass(frozen=True, eq=False)
class Units:
    """Units of judgments that depend on each other: of one draw of each, by pairs of items."""

    residual: csr_array
    """(units, pairs)."""
    variance: csr_array
    """(units, pairs): its share of the variance."""
    score: csr_array
    """(units, parameters): its gradient of the log-likelihood."""
    draws: Ints


def by_signs(units: Units, moving: csr_array, inverse: Floats, variance: Floats, seed: int) -> float:
    """Return the p-value of X² of residuals in the metric 1/``variance`` (pairs,), by random signs of the units.

    ``moving`` (pairs, parameters): how what is expected moves with the parameters; ``inverse``: A⁻¹ of these.
    """
    number = len(units.draws)
    times = min(FIRST + THEN, SIGNED // max(units.residual.nnz, number, len(variance)))
    if units.draws.sum() < FEWEST // 2 or times < FIRST:
        return np.nan
    height = np.clip(heights(moving, inverse) / variance, 0.0, 1.0)
    mean = float((1 - height).sum())
    own = units.variance
    shares = np.asarray(own.multiply(own).T @ units.draws.astype(np.float64)).ravel() / variance**2
    lost = float((height * (1 - height) * shares).sum())
    if mean - lost < 1e-6:
        return np.nan
    random, draws = np.random.default_rng(seed), units.draws[:, None]
    signs = 2.0 * random.binomial(draws, 0.5, (number, times)) - draws  # a sum of one for each draw
    left = units.residual.T @ signs - moving @ (inverse @ (units.score.T @ signs))
    squares = (left**2 / variance[:, None]).sum(axis=0)
    statistic = float(_squares(units.residual.T @ units.draws.astype(np.float64), variance).sum())
    moved = float(squares.mean()) * lost / (mean - lost)
    larger = int((squares + moved >= statistic).sum())
    return float((larger + 1) / (times + 1))


# -- pairs against the order -------------------------------------------------------------------------------------
LIKELY = 2.7
"""Squared standard errors from which on a majority is worth an exact test."""


@dataclass(frozen=True, eq=False)
class Contradictions:
    """Pairs whose majority is against the order of the scores, of one batch; shapes (contradicting pairs,)."""

    query: Ints
    winner: Ints
    """Node that the majority prefers; the scores put it behind."""
    loser: Ints
    wins: Floats
    losses: Floats
    p_value: Floats
    """Two-sided, of no preference; exact without clusters and strengths."""
    tested: int
    """Judged pairs of the batch: a family of so many tests."""


def contradictions(batch: Batch, value: Floats) -> Contradictions:
    """Return the pairs whose majority is clearly against the order of these scores; value has shape (nodes,)."""
    graphs = batch.graphs
    lead, gap = graphs.wins - graphs.losses, value[graphs.first] - value[graphs.second]
    decided = graphs.wins + graphs.losses
    apart = np.abs(gap) > 1e-8 * np.maximum(1.0, np.abs(value[graphs.first]))
    found = np.flatnonzero(apart & (lead * gap < 0) & (lead**2 > LIKELY * decided))
    up = lead[found] > 0
    winner = np.where(up, graphs.first[found], graphs.second[found])
    loser = np.where(up, graphs.second[found], graphs.first[found])
    wins, losses = (f(graphs.wins[found], graphs.losses[found]) for f in (np.maximum, np.minimum))
    prefs = batch.prefs
    if isinstance(prefs, Comparisons) and not prefs.weighted and prefs.cluster is None:
        tail = binomial_tail(wins, wins + losses)
    elif len(found):
        tests = edge_tests(batch)
        tail = np.where(up, tests.above[found], tests.below[found])
    else:
        tail = np.zeros(0)
    query = batch.query[graphs.graph[found]].astype(np.int64)
    p_value = np.minimum(2 * tail, 1.0)
    return Contradictions(query, winner, loser, wins, losses, p_value, int((decided > 0).sum()))


NOISE = 0.05
"""Level of the tests: of each query's fit, and of all contradicted pairs together."""
TINY = 1e-6
"""A p-value below is not worth its digits."""
SHOWN = 3
"""Pairs that a note names."""


def rejected(p_value: Floats) -> bool:
    """Whether more queries have a p-value of at most .05 than chance gives; those without one do not count.

    >>> rejected(np.array([0.04])), rejected(np.array([0.04, 0.5, np.nan]))
    (True, False)
    """
    tested = int((~np.isnan(p_value)).sum())
    bad = int((p_value <= NOISE).sum())
    return bool(bad and binomial_tail(bad, tested, NOISE) <= NOISE + 1e-12)


def misfit_notes(p_value: Floats, contradicted: pa.Table) -> tuple[Note, ...]:
    """Say where one scale does not explain the pairs, and which majorities the scores contradict.

    Of many queries some have p ≤ .05 by chance: only more than chance gives are worth a word.
    """
    notes: list[Note] = []
    way = "; {ask} gives the order that contradicts the fewest judgments"
    ask = Setting("structure", "kemeny")
    pairs = len(contradicted)
    if rejected(p_value):
        if len(p_value) == 1:
            p = float(p_value[0])
            said = "p = {p:.2g}" if p >= TINY else f"p < {TINY:g}"
            text = (
                f"the scores are right where one score for each item explains all pairs; here it does not "
                f"(lack of fit: {said})"
            )
            numbers: dict[str, Any] = {"p": p}
        else:
            text = (
                "the scores are right where one score for each item explains all pairs; in {queries:,} of {tested:,} "
                "queries tested it seems not to (lack of fit: p ≤ {level:g}, where chance gives about {chance:,})"
            )
            tested, bad = int((~np.isnan(p_value)).sum()), int((p_value <= NOISE).sum())
            numbers = {"queries": bad, "tested": tested, "level": NOISE, "chance": round(NOISE * tested)}
        notes.append(Note("lack of fit", text + (way if not pairs else ""), ask=ask, **numbers))
    if pairs:
        rows = contradicted.slice(0, SHOWN).to_pylist()
        several = len(p_value) > 1
        shown = ", ".join(_pair_said(row, several) for row in rows)
        excluded = int(sum(contradicted["against_ranks"].to_pylist()))
        text = "the scores contradict the majority of {pairs:a pair|{pairs:,} pairs} beyond noise ({shown}"
        text += ", …)" if pairs > SHOWN else ")"
        if excluded:
            text += ", and the ranks given leave no place for {excluded:one such majority|{excluded:,} of these}"
        names = [item for row in rows for item in (row["winner"], row["loser"])]
        numbers = {"pairs": pairs, "excluded": excluded, "shown": shown}
        notes.append(Note("contradicted pairs", text + way, items=names, ask=ask, **numbers))
    return tuple(notes)


def _pair_said(row: Mapping[str, Any], several: bool) -> str:
    where = f" in query {row['query']!r}" if several else ""
    total = row["wins"] + row["losses"]
    return f"{row['wins']:,.6g} of {total:,.6g} prefer {row['winner']!r} to {row['loser']!r}{where}"

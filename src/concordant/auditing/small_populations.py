"""For fixed scores, the population on which they minimise a surrogate and lose most: a linear programme.

A population of single comparisons is a table of shares w_ij ≥ 0 with sum 1. Where the weights of a surrogate's edges
are linear in w, so is the condition that given scores α are a minimiser (0 is a subgradient), so are the classes of
populations (acyclic, low noise) once the right order is fixed, and so is the regret of α. What is left to search are α.

What a surrogate makes of a few votes on a few items, against the best of all orders.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import LinearConstraint, linprog, milp
from scipy.sparse.csgraph import connected_components

from concordant.auditing.regret import CLOSE, order_loss
from concordant.errors import UsageError
from concordant.losses.minimise import minimise
from concordant.losses.minimum import Minimum
from concordant.losses.objective import Objective, Population
from concordant.losses.surrogates import SURROGATES, surrogate
from concordant.preferences.graphs import Graphs
from concordant.preferences.status import Status

Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]
WITHIN = ("low noise", "acyclic", "any")
NUDGE, KINK = 1e-9, 1e-6
SOME = 1e-9
"""Shares below this are none: linear programmes are solved to about 1e-9."""


@lru_cache(maxsize=16)
def every_pair(items: int) -> Pairs:
    """Ordered pairs (winner, loser) of items numbered from 0; shape (m (m − 1), 2)."""
    pairs = np.array(list(itertools.permutations(range(items), 2)), np.int64).reshape(-1, 2)
    pairs.setflags(write=False)
    return pairs


def unit_populations(items: int) -> Population:
    """For every ordered pair the population in which all judgments are this comparison, of strength 1."""
    pairs = every_pair(items)
    base = items * np.arange(len(pairs))
    ones = np.ones(len(pairs))
    return Population(items * np.arange(len(pairs) + 1), base + pairs[:, 0], base + pairs[:, 1], ones, ones)


def class_rows(pairs: Pairs, items: int, within: str) -> Floats:
    """Rows c with c · w ≥ 0 where shares w of pairs are in the class and 0, 1, 2, … is a right order.

    Acyclic: d_ij ≥ 0 for i < j, d_ij = w_ij − w_ji. Low noise (AoS Definition 4): also d_ik ≥ d_ij + d_jk, i < j < k.
    """
    net = np.zeros((items, items, len(pairs)))
    column = np.arange(len(pairs))
    net[pairs[:, 0], pairs[:, 1], column] += 1.0
    net[pairs[:, 1], pairs[:, 0], column] -= 1.0
    rows = [net[i, j] for i, j in itertools.combinations(range(items), 2) if within != "any"]
    if within == "low noise":
        rows += [net[i, k] - net[i, j] - net[j, k] for i, j, k in itertools.combinations(range(items), 3)]
    return np.array(rows).reshape(-1, len(pairs))


def in_class(votes: NDArray[np.int64], within: str) -> bool:
    """Whether a matrix of votes (winner, loser) is in the class, straight from its definition, in exact integers."""
    net = votes - votes.T
    items = range(len(votes))
    if within == "low noise":
        triples = itertools.permutations(items, 3)
        return all(net[i, k] >= net[i, j] + net[j, k] for i, j, k in triples if net[i, j] > 0 and net[j, k] > 0)
    reach = net > 0
    for middle in items:
        reach = reach | (reach[:, [middle]] & reach[[middle], :])
    return within == "any" or not reach.diagonal().any()


@dataclass(frozen=True, eq=False)
class Programme:
    """The linear programme of one surrogate over populations of some of the ordered pairs."""

    units: Objective
    """The surrogate on ``unit_populations``."""
    items: int
    within: str
    chosen: NDArray[np.int64]
    """Places of the pairs that may have votes."""

    @cached_property
    def _class(self) -> Floats:
        return class_rows(every_pair(self.items), self.items, self.within)

    def most(self, alpha: Floats, inside: float = 0.0) -> tuple[float, Floats | None]:
        """Return the largest loss of scores α over that of the order 0, 1, 2, … and the shares (pairs,) that have it.

        −1 and None when α minimise the surrogate on no population of the class. Ties of α are charged like wrong
        orders. Where φ has a kink at a gap, its subgradient may be any between the two slopes; ``inside`` keeps it
        that share of the way from both, so that α stay a minimiser when the population is rounded.
        """
        left, right = self._gradients(alpha)
        kinked = np.abs(right - left).max(axis=1) > KINK
        column = np.concatenate((self.chosen, self.chosen[kinked[self.chosen]]))  # kinks: shares of both slopes
        second = np.arange(len(column)) >= len(self.chosen)
        gradient = np.where(second[:, None], right[column], left[column])
        pairs = every_pair(self.items)[column]
        wrong = alpha[pairs.min(axis=1)] <= alpha[pairs.max(axis=1)]
        regret = np.where(wrong, np.where(pairs[:, 0] < pairs[:, 1], 1.0, -1.0), 0.0)
        keep = -self._class[:, column]
        if inside and second.any():
            keep = np.vstack((keep, self._between(column, second, inside)))
        found = linprog(
            -regret,
            A_ub=keep,
            b_ub=np.zeros(len(keep)),
            A_eq=np.vstack((gradient.T, np.ones(len(column)))),
            b_eq=np.append(np.zeros(self.items), 1.0),
            method="highs-ds",
        )
        if found.status != 0:
            return -1.0, None
        shares = np.bincount(column, found.x, self.items * (self.items - 1))
        return float(-found.fun), np.asarray(shares, np.float64)

    def _gradients(self, alpha: Floats) -> tuple[Floats, Floats]:
        """Gradient (pairs, items) of every unit population, φ differentiated from the left and from the right."""
        values = np.tile(alpha, len(self.units))
        if self.units.phi.smooth:
            found = self.units.gradient(values).reshape(-1, self.items)
            return found, found
        left, right = (self._one_sided(values, nudge) for nudge in (-NUDGE, NUDGE))
        return left, right

    def _one_sided(self, values: Floats, nudge: float) -> Floats:
        edges, units = self.units.edges, self.units
        slope = edges.weight * units.phi.derivative(units.gaps(values) + nudge)
        of_edges = np.bincount(edges.winner, slope, units.nodes) - np.bincount(edges.loser, slope, units.nodes)
        pull = edges.pull * units.penalty.derivative(values - edges.pulled_to)
        return np.asarray(of_edges + pull, np.float64).reshape(-1, self.items)

    def balance(self, alpha: Floats, shares: Floats) -> Floats:
        """Rows c with c · w = 0 where scores α with kinks are a minimiser: items that no kink ties to others balance.

        Shape (groups of items that kinked pairs join, pairs); none where φ is smooth: rounding moves α but little.
        """
        if self.units.phi.smooth:
            return np.zeros((0, len(shares)))
        left, right = self._gradients(alpha)
        kinked = (np.abs(right - left).max(axis=1) > KINK) & (shares > SOME)
        winner, loser = every_pair(self.items)[kinked].T
        links = sparse.coo_array((np.ones(len(winner)), (winner, loser)), (self.items, self.items))
        groups, group = connected_components(links.tocsr(), directed=False)
        return np.stack([left[:, group == one].sum(axis=1) for one in range(groups)])

    def _between(self, column: Pairs, second: NDArray[np.bool_], inside: float) -> Floats:
        """Rows that keep both parts of a kinked pair at least ``inside`` of their sum."""
        rows = []
        for place in np.flatnonzero(second):
            first = int(np.flatnonzero(column[: len(self.chosen)] == column[place])[0])
            for one, other in ((first, place), (place, first)):
                row = np.zeros(len(column))
                row[one], row[other] = inside - 1.0, inside
                rows.append(row)
        return np.array(rows)


def whole_votes(
    shares: Floats, items: int, within: str, number: int, balance: Floats | None = None
) -> NDArray[np.int64] | None:
    """The matrix of ``number`` votes nearest to shares of all ordered pairs (sum of differences) that is in the class.

    Pairs without a share stay without votes; rows of ``balance`` stay 0. None when there is no such matrix.
    """
    pairs = every_pair(items)
    goal, size = number * shares, len(pairs)
    keep = class_rows(pairs, items, within)
    nothing, one = np.zeros((len(keep), size)), np.eye(size)
    rules = [
        LinearConstraint(np.hstack((np.ones((1, size)), np.zeros((1, size)))), number, number),
        LinearConstraint(np.hstack((one, -one)), -np.inf, goal),
        LinearConstraint(np.hstack((one, one)), goal, np.inf),
    ]
    if len(keep):
        rules.append(LinearConstraint(np.hstack((keep, nothing)), 0.0, np.inf))
    if balance is not None and len(balance):
        rules.append(LinearConstraint(np.hstack((balance, np.zeros_like(balance))), 0.0, 0.0))
    top = np.append(np.where(shares > SOME, float(number), 0.0), np.full(size, np.inf))
    found = milp(
        np.append(np.zeros(size), np.ones(size)),
        constraints=rules,
        integrality=np.append(np.ones(size), np.zeros(size)),
        bounds=(0.0, top),
    )
    if found.x is None:
        return None
    votes = np.zeros((items, items), np.int64)
    votes[pairs[:, 0], pairs[:, 1]] = np.round(found.x[:size]).astype(np.int64)
    return votes


Votes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Verdict:
    """Scores that minimise a surrogate on a population, and what their order costs."""

    surrogate: str
    phi: str
    scores: Floats
    """One minimiser, or a point near the infimum; shape (items,)."""
    status: str
    loss: float
    """Pairwise loss (10) of the scores per vote; ties charged the heavier direction."""
    regret: float
    """Loss over that of the best order; below 1e-12 it is 0."""

    @property
    def unique(self) -> bool:
        """Whether there is no other minimiser, up to a shift."""
        return self.status != Status.NOT_UNIQUE.word

    @property
    def order(self) -> str:
        """Items from 1, best first: ``1 > 3 = 2`` means that 3 and 2 are level."""
        return written_order(self.scores)


def written_order(scores: Floats) -> str:
    """Write the order of scores, items numbered from 1; scores within 1e-9 are level.

    >>> written_order(np.array([2.0, -1.0, -1.0]))
    '1 > 2 = 3'
    """
    order = np.argsort(-scores, kind="stable")
    signs = np.where(-np.diff(scores[order]) > CLOSE, " > ", " = ")
    return str(order[0] + 1) + "".join(f"{sign}{item + 1}" for sign, item in zip(signs, order[1:], strict=True))


def preference_surrogates() -> list[str]:
    """Names of the members of the registry that read preferences, not scores."""
    return [name for name, member in SURROGATES.items() if member.reads != "scores"]


def graph_of(votes: Votes) -> Graphs:
    """Mean adjacency (per vote) of a matrix of votes, winner × loser."""
    winner, loser = np.nonzero(votes)
    share = votes[winner, loser] / votes.sum()
    return Graphs.from_edges(np.array([0, len(votes)]), winner.astype(np.int64), loser.astype(np.int64), share)


def best_order_of(votes: Votes) -> tuple[list[int], float]:
    """Return the first order (items from 0, best first) of least pairwise loss, and the loss per vote.

    >>> best_order_of(np.array([[0, 25, 50], [0, 0, 1], [24, 0, 0]]))
    ([0, 1, 2], 0.24)
    """
    best, least = list(range(len(votes))), int(np.tril(votes).sum())
    for order in itertools.permutations(range(len(votes))):
        against = int(np.tril(votes[np.ix_(order, order)]).sum())
        if against < least:
            best, least = list(order), against
    return best, least / int(votes.sum())


def judge(votes: Votes, name: str, *, phi: str | None = None, **options: Any) -> Verdict:
    """Minimise a surrogate on a matrix of votes, winner × loser, and charge the order of its scores.

    Errors: unknown surrogates, φ and options, and surrogates that read scores of items.

    >>> found = judge(np.array([[0, 25, 50], [0, 0, 1], [24, 0, 0]]), "ranknet")
    >>> found.order, round(found.regret, 6)
    ('1 > 3 > 2', 0.01)
    """
    member = surrogate(name)
    if member.reads == "scores":
        raise UsageError(
            f"{name} reads scores of the items, not preferences; those that read preferences are "
            f"{', '.join(preference_surrogates())}"
        )
    mean = graph_of(votes)
    found = minimise(member.objective(mean, phi=phi, **options))
    scores = found.alpha
    if found.status[0] == Status.NOT_UNIQUE and found.objective.phi.piecewise_linear:
        scores = _worst(found, mean)
    loss = float(order_loss(mean, scores, close=CLOSE)[0])
    regret = loss - best_order_of(votes)[1]
    status = Status(found.status[0]).word
    return Verdict(name, phi or member.phi, scores, status, loss, regret if regret > 1e-12 else 0.0)


def _worst(found: Minimum, mean: Graphs) -> Floats:
    """The minimiser of largest loss for a φ with one kink k (the hinge) and one offset h; with more, one of many.

    Pairs that are charged fill closed half-spaces α_i ≤ α_j, so the worst of a set of minimisers is met at a vertex of
    its meeting with some of them; these are scores that differ by multiples of k + h, up to m − 1 of them.
    """
    edges, phi = found.objective.edges, found.objective.phi
    items, step = len(found.alpha), phi.zero_from + float(np.max(edges.offset, initial=0.0))
    grid = step * np.array(list(itertools.product(range(items), repeat=items)), np.float64)
    grid = grid[grid.min(axis=1) == 0]
    value = phi.value(grid[:, edges.winner] - grid[:, edges.loser] - edges.offset) @ edges.weight
    grid = grid[value <= found.value[0] + 1e-9]
    if not len(grid):
        return found.alpha
    wrong = np.where(mean.above > mean.below, 1.0, -1.0) * (grid[:, mean.first] - grid[:, mean.second]) <= CLOSE
    worst = grid[int(np.argmax(wrong @ np.abs(mean.above - mean.below)))]
    return np.asarray(worst - worst.mean(), np.float64)

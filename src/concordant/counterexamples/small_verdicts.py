"""What a surrogate makes of a few votes on a few items, against the best of all orders."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.graphs import Graphs
from concordant.populations.regret import CLOSE, order_loss
from concordant.surrogates.minimise import NOT_UNIQUE, STATUS, Minimum, minimise
from concordant.surrogates.registry import SURROGATES, surrogate

__all__ = ["Verdict", "best_order_of", "graph_of", "judge", "preference_surrogates", "written_order"]

Floats = NDArray[np.float64]
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
        return self.status != STATUS[NOT_UNIQUE]

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
    if found.status[0] == NOT_UNIQUE and not found.objective.phi.smooth:
        scores = _worst(found, mean)
    loss = float(order_loss(mean, scores, close=CLOSE)[0])
    regret = loss - best_order_of(votes)[1]
    status = STATUS[int(found.status[0])]
    return Verdict(name, phi or member.phi, scores, status, loss, regret if regret > 1e-12 else 0.0)


def _worst(found: Minimum, mean: Graphs) -> Floats:
    """The minimiser of largest loss for the hinge with one margin.

    Pairs that are charged fill closed half-spaces α_i ≤ α_j, so the worst of a set of minimisers is met at a vertex of
    its meeting with some of them; these are scores that differ by multiples of 1 + h, up to m − 1 of them.
    """
    items, step = len(found.alpha), 1.0 + float(np.max(found.objective.arcs.margin, initial=0.0))
    grid = step * np.array(list(itertools.product(range(items), repeat=items)), np.float64)
    grid = grid[grid.min(axis=1) == 0]
    arcs, phi = found.objective.arcs, found.objective.phi
    value = phi.value(grid[:, arcs.winner] - grid[:, arcs.loser] - arcs.margin) @ arcs.weight
    grid = grid[value <= found.value[0] + 1e-9]
    if not len(grid):
        return found.alpha
    wrong = np.where(mean.above > mean.below, 1.0, -1.0) * (grid[:, mean.first] - grid[:, mean.second]) <= CLOSE
    worst = grid[int(np.argmax(wrong @ np.abs(mean.above - mean.below)))]
    return np.asarray(worst - worst.mean(), np.float64)

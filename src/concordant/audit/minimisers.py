"""Does a surrogate lead to an optimal order of each query? Its minimisers against the best order, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.audit.regret import ROUNDING, mean_floor, regrets
from concordant.best_order.orders import BestOrders
from concordant.differences import Differences
from concordant.errors import UsageError, did_you_mean
from concordant.graphs import Batch, Graphs
from concordant.surrogates.margins import margin_function
from concordant.surrogates.minimise import minimise
from concordant.surrogates.registry import SURROGATES, Surrogate

__all__ = ["NO", "UNKNOWN", "YES", "Chosen", "Judged", "choose", "judge_by_pairs"]

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
NO, YES, UNKNOWN = 0, 1, -1
"""Is every minimiser optimal? UNKNOWN: the best order is not known to be best, or there is no minimum to judge."""


@dataclass(frozen=True)
class Chosen:
    """A surrogate with its φ, and the target loss that it is judged by."""

    member: Surrogate
    phi: str

    @property
    def name(self) -> str:
        """The registry's name, with φ where it is not the default."""
        return self.member.name if self.phi == self.member.phi else f"{self.member.name}:{self.phi}"

    @property
    def target(self) -> str:
        """The pairwise loss; for surrogates of scores the loss they are consistent for, NDCG if for none."""
        if self.member.reads != "scores":
            return "pairwise"
        return "err" if self.member.consistent_for == "err" else "ndcg"


def choose(names: Sequence[str] | None) -> tuple[Chosen, ...]:
    """Read "name" or "name:phi"; all members of the registry with their default φ when none is given."""
    chosen = []
    for name in SURROGATES if names is None else names:
        plain, _, phi = str(name).partition(":")
        if plain not in SURROGATES:
            raise UsageError(f"unknown surrogate {plain!r}; {did_you_mean(plain, SURROGATES)}")
        member = SURROGATES[plain]
        if phi and phi not in member.phis:
            margin_function(phi)
            raise UsageError(f"{plain} has no φ {phi!r}; allowed: {', '.join(member.phis)}")
        chosen.append(Chosen(member, phi or member.phi))
    if len({one.name for one in chosen}) < len(chosen):
        raise UsageError("a surrogate is named twice")
    return tuple(chosen)


@dataclass(frozen=True, eq=False)
class Judged:
    """What one surrogate makes of each graph of a batch. Shapes: (graphs,)."""

    status: NDArray[np.int8]
    """Index into the STATUS of minimisers."""
    loss: Floats
    """Target loss of the worst minimiser found; NaN without one."""
    regret: Floats
    """Its excess over the best order at hand."""
    regret_at_most: Floats
    """Proven upper bound of the regret of every minimiser."""
    consistent: NDArray[np.int8]
    flipped: Nodes
    """Net preferences that some minimiser contradicts (ties count)."""
    above: Nodes
    """Node that the heaviest of them puts first; −1: none."""
    below: Nodes


def judge_by_pairs(
    chosen: Chosen,
    batch: Batch,
    mean: Graphs,
    net: Differences,
    best: BestOrders,
    acyclic: NDArray[np.bool_],
    ties: str,
) -> Judged:
    """Minimise a surrogate of preferences on every graph and charge its minimisers with the pairwise loss (10)."""
    source = mean if chosen.member.reads == "adjacency" else batch
    found = minimise(chosen.member.objective(source, phi=chosen.phi))
    charged = regrets(mean, net, found, ties)
    number = len(mean)
    heaviest = np.zeros(number)
    np.maximum.at(heaviest, net.graph, np.where(charged.flipped, net.weight, 0.0))
    # without cycles every contradicted preference costs its weight, and some minimiser contradicts the heaviest
    at_least = np.where(acyclic & (ties == "heavier"), mean_floor(mean) + heaviest, 0.0)
    loss = np.maximum(charged.loss, at_least)
    tolerance = ROUNDING * np.bincount(mean.graph, mean.above + mean.below, number)
    regret, most = loss - best.loss, charged.most - best.lower
    regret, most = (np.where(np.abs(value) <= tolerance, 0.0, value) for value in (regret, most))
    consistent = np.where(regret > 0, NO, np.where((most <= 0) & best.exact, YES, UNKNOWN)).astype(np.int8)
    consistent[np.isnan(regret)] = UNKNOWN
    flips = np.flatnonzero(charged.flipped)
    flips = flips[np.argsort(net.weight[flips], kind="stable")]
    last = np.full(number, -1, np.int64)
    last[net.graph[flips]] = flips  # the last one written is the heaviest
    some = last >= 0
    above, below = np.full(number, -1, np.int64), np.full(number, -1, np.int64)
    above[some], below[some] = net.winner[last[some]], net.loser[last[some]]
    return Judged(
        found.status,
        loss,
        regret,
        np.maximum(most, regret),
        consistent,
        np.bincount(net.graph[flips], minlength=number).astype(np.int64),
        above,
        below,
    )

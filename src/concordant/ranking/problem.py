"""What is maximised: the pairs of some graphs, side by side, with the covariates of the comparisons and the prior.

Derivatives of the two likelihoods of a pair: Bradley–Terry (a tie is half a win each way) and Davidson's with ties.

With margin t = s_j − s_l + z·β: Bradley–Terry P(j ≻ l) = σ(t). Davidson (JASA 65, 1970, with ν = e^τ): probabilities
of win, loss and tie proportional to e^{t/2}, e^{−t/2}, e^τ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from concordant.preferences.ragged import OnNodes, Ragged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Problem(OnNodes):
    """Some graphs without gaps: pairs sorted by first node, scaled covariates, and what is maximised.

    Extra parameters of a graph are the covariates' coefficients and, with ``ties``, log ν.
    """

    node_start: Ints
    pair_start: Ints
    first: Ints
    second: Ints
    above: Floats
    """Wins, with half the ties where these are no outcome of their own."""
    below: Floats
    ties: Floats | None
    """Strength of ties where they are an outcome of their own (Davidson)."""
    covariates: Floats | None
    component: Ints
    """Number over the batch of each node's component."""
    prior: float
    offset: Floats | None = None
    """What the prior's means add to the margin of each pair."""
    gaps: Floats | None = None
    """Strength of the outcomes between thresholds (``cumulative``), the last covariates, up to each: (graphs, last)."""
    tied: bool = False
    """Whether the first of these outcomes are ties, so that their gap is twice the first threshold."""
    begin: Floats | None = None
    """Extra parameters at which the fit begins (graphs, extras); None: 0."""

    @cached_property
    def apart(self) -> Floats:
        """What the gaps are of the thresholds, shape (gaps, thresholds)."""
        return self.gaps_of(0 if self.gaps is None else self.gaps.shape[1], self.tied)

    @staticmethod
    def gaps_of(thresholds: int, tied: bool) -> Floats:
        """The same of so many thresholds, the first of which may be that of ties."""
        found = np.eye(thresholds) - np.eye(thresholds, k=-1)
        found[:1, :1] = 2.0 if tied else 1.0
        return found

    @property
    def graphs(self) -> int:
        return len(self)

    @cached_property
    def pairs(self) -> Ragged:
        """The pairs of each graph."""
        return Ragged(self.pair_start)

    @property
    def extras(self) -> int:
        columns = 0 if self.covariates is None else self.covariates.shape[1]
        return columns + (self.ties is not None)

    def take(self, chosen: Ints) -> Problem:
        """Return the problem of some of the graphs, in their order."""
        of_nodes, nodes = self.node_groups.take(chosen)
        of_pairs, pairs = self.pairs.take(chosen)
        place = np.zeros(self.nodes, np.int64)
        place[nodes] = np.arange(len(nodes))
        return replace(
            self,
            node_start=of_nodes.start,
            pair_start=of_pairs.start,
            first=place[self.first[pairs]],
            second=place[self.second[pairs]],
            above=self.above[pairs],
            below=self.below[pairs],
            ties=None if self.ties is None else self.ties[pairs],
            covariates=None if self.covariates is None else self.covariates[pairs],
            component=np.unique(self.component[nodes], return_inverse=True)[1],
            offset=None if self.offset is None else self.offset[pairs],
            gaps=None if self.gaps is None else self.gaps[chosen],
            begin=None if self.begin is None else self.begin[chosen],
        )

    def part(self, begin: int, end: int) -> Problem:
        """Return the problem of the graphs begin … end − 1."""
        nodes = slice(int(self.node_start[begin]), int(self.node_start[end]))
        pairs = slice(int(self.pair_start[begin]), int(self.pair_start[end]))
        component = self.component[nodes]
        return replace(
            self,
            node_start=self.node_start[begin : end + 1] - nodes.start,
            pair_start=self.pair_start[begin : end + 1] - pairs.start,
            first=self.first[pairs] - nodes.start,
            second=self.second[pairs] - nodes.start,
            above=self.above[pairs],
            below=self.below[pairs],
            ties=None if self.ties is None else self.ties[pairs],
            covariates=None if self.covariates is None else self.covariates[pairs],
            component=component - component.min(),
            offset=None if self.offset is None else self.offset[pairs],
            gaps=None if self.gaps is None else self.gaps[begin:end],
            begin=None if self.begin is None else self.begin[begin:end],
        )


def win_probability(margin: Floats) -> tuple[Floats, Floats]:
    """σ(t) and σ(−t), each to full relative precision.

    >>> win_probability(np.array([0.0]))
    (array([0.5]), array([0.5]))
    """
    small = np.exp(-np.abs(margin))
    large = 1.0 / (1.0 + small)
    small *= large
    ahead = margin >= 0
    return np.where(ahead, large, small), np.where(ahead, small, large)


def win_derivatives(margin: Floats, above: Floats, below: Floats) -> tuple[Floats, Floats]:
    """First derivative of above·log σ(t) + below·log σ(−t) by t, and minus the second."""
    win, loss = win_probability(margin)
    pull = above * loss
    pull -= below * win
    win *= loss
    win *= above + below
    return pull, win


def davidson_probabilities(margin: Floats, log_nu: Floats) -> tuple[Floats, Floats, Floats]:
    """Probabilities of win, loss and tie."""
    half = 0.5 * margin
    top = np.maximum(np.abs(half), log_nu)
    win, loss, tie = np.exp(half - top), np.exp(-half - top), np.exp(log_nu - top)
    total = win + loss + tie
    return win / total, loss / total, tie / total


def davidson_derivatives(
    margin: Floats, log_nu: Floats, wins: Floats, losses: Floats, ties: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """(pull, curve, tie pull, cross, tie curve): derivatives of the log-likelihood by t, −tt, τ, −tτ, −ττ."""
    win, loss, tie = davidson_probabilities(margin, log_nu)
    total = wins + losses + ties
    pull = wins * (loss + 0.5 * tie) - losses * (win + 0.5 * tie) - 0.5 * ties * (win - loss)
    curve = total * (win * loss + 0.25 * tie * (win + loss))
    tie_pull = ties * (win + loss) - (wins + losses) * tie
    cross = -0.5 * total * tie * (win - loss)
    return pull, curve, tie_pull, cross, total * tie * (win + loss)

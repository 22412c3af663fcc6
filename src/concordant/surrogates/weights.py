"""How a surrogate turns judgments, their mean, or scores into weighted edges: all that tells one from another.

The inconsistent surrogates weigh each judgment's edge by itself; the consistent ones first add up, take differences or
normalise. φ comes after that and is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from concordant.differences import Differences
from concordant.errors import UsageError, did_you_mean
from concordant.surrogates.gains import expected_gains
from concordant.surrogates.margins import Function
from concordant.surrogates.objective import Arcs, GainsToAll
from concordant.surrogates.population import Population, Relevance

__all__ = [
    "TRANSFORMS",
    "each_judgment",
    "from_gains_to_all",
    "margins_of_judgments",
    "net_preferences",
    "pulled_to_gains",
    "summed_preferences",
]

Floats = NDArray[np.float64]

TRANSFORMS: Mapping[str, Function] = MappingProxyType(
    {
        "identity": lambda y: y,
        "unit": lambda y: np.sign(y),
        "root": np.sqrt,
        "square": np.square,
    }
)
"""The h of AoS (12) and (13), each with h(0) = 0."""


def _transform(name: str) -> Function:
    if name not in TRANSFORMS:
        raise UsageError(f"unknown transform {name!r} of strengths; {did_you_mean(name, TRANSFORMS)}")
    return TRANSFORMS[name]


def each_judgment(source: Population, *, h: str = "identity") -> Arcs:
    """No aggregation, h_ij = ∫ h(Y_ij) dμ from i to j (AoS (12)): RankSVM, RankNet, RankBoost's loss."""
    weight = source.share * _transform(h)(source.strength)
    return Arcs.plain(source.node_start, source.winner, source.loser, weight)


def margins_of_judgments(source: Population, *, h: str = "identity") -> Arcs:
    """Weight 1 on every Y_ij > 0, the margin h(Y_ij) asked for (AoS (13))."""
    margin = _transform(h)(source.strength)
    weight = np.where(source.strength > 0, source.share, 0.0)
    return Arcs.plain(source.node_start, source.winner, source.loser, weight, margin=margin)


def net_preferences(source: Population) -> Arcs:
    """[s_ij − s_ji]₊ from i to j: the difference graph of the mean adjacency (AoS (23))."""
    net = Differences.of(source.adjacency)
    return Arcs.plain(source.node_start, net.winner, net.loser, net.weight)


def summed_preferences(source: Population, *, nu: float = 1.0) -> Arcs:
    """a_ij from i to j, with ν on the values of all items (ICML (14))."""
    if not 0 < nu < np.inf:
        raise UsageError(f"nu must be positive and finite, not {nu:g}: without it the linear loss has no lower bound")
    mean = source.adjacency
    winner, loser = np.concatenate((mean.first, mean.second)), np.concatenate((mean.second, mean.first))
    return Arcs.plain(source.node_start, winner, loser, np.concatenate((mean.above, mean.below)), pull=nu)


def from_gains_to_all(source: Relevance, *, gain: str, normalised: bool, at: int | None = None) -> Arcs:
    """E G(s_j)/Z(s) (or E G(s_j)) from each item j to every other of its graph (AoS §3.3).

    The argument is φ(α_j − α_l): AoS prints it reversed, which would reverse the order.
    """
    gains = expected_gains(source, gain, normalised=normalised, at=at, signed=False)
    return GainsToAll(source.node_start, gains)


def pulled_to_gains(source: Relevance, *, gain: str, normalised: bool, at: int | None = None) -> Arcs:
    """No edges: 1/(2m) (α_j − E G(s_j)/Z(s))² on every item (AoS (28), up to a constant)."""
    gains = expected_gains(source, gain, normalised=normalised, at=at, signed=True)
    size = np.diff(source.node_start)
    none = np.zeros(0, np.int64)
    pull = 0.5 / np.repeat(size, size)
    return Arcs(source.node_start, none, none, np.zeros(0), np.zeros(0), pull, gains)

"""The surrogates by name: edges, φ, penalty, and what each is consistent for, as data that a law tests.

How a surrogate turns judgments, their mean, or scores into weighted edges: all that tells one from another.

The inconsistent surrogates weigh each judgment's edge by itself; the consistent ones first add up, take differences or
normalise. φ comes after that and is free.

Surrogates asked for by "name" or "name:phi".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, did_you_mean, in_order
from concordant.losses.expected_gains import expected_gains
from concordant.losses.names import SURROGATES as MEANINGS
from concordant.losses.objective import GainsToAll, Objective, Population, Relevance, WeightedEdges
from concordant.losses.pair_losses import PAIR_LOSSES, Function, PairLoss, pair_loss, value_penalty
from concordant.preferences.connectivity import Differences
from concordant.preferences.graphs import Batch, Graphs

Floats = NDArray[np.float64]
Property = Literal[
    "smooth", "piecewise_linear", "bounded", "ends", "strictly_convex", "bounded_curvature", "calibrated"
]  # of PairLoss

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


def each_judgment(source: Population, *, h: str = "identity") -> WeightedEdges:
    """No aggregation, h_ij = ∫ h(Y_ij) dμ from i to j (AoS (12)): RankSVM, RankNet, RankBoost's loss."""
    weight = source.share * _transform(h)(source.strength)
    return WeightedEdges.of(source.node_start, source.winner, source.loser, weight)


def margins_of_judgments(source: Population, *, h: str = "identity") -> WeightedEdges:
    """Weight 1 on every Y_ij > 0, an offset of h(Y_ij) (AoS (13))."""
    offset = _transform(h)(source.strength)
    weight = np.where(source.strength > 0, source.share, 0.0)
    return WeightedEdges.of(source.node_start, source.winner, source.loser, weight, offset=offset)


def net_preferences(source: Population) -> WeightedEdges:
    """[s_ij − s_ji]₊ from i to j: the difference graph of the mean adjacency (AoS (23))."""
    net = Differences.of(source.adjacency)
    return WeightedEdges.of(source.node_start, net.winner, net.loser, net.weight)


def majorities(source: Population) -> WeightedEdges:
    """1/E from i to j where s_ij > s_ji, of the E majorities of a graph: every one alike, however large.

    Ge et al. (2024), §3; Xiao et al. (2025).
    """
    net = Differences.of(source.adjacency)
    return WeightedEdges.of(source.node_start, net.winner, net.loser, 1.0 / net.edges.spread(net.edges.sizes))


def summed_preferences(source: Population, *, nu: float = 1.0) -> WeightedEdges:
    """a_ij from i to j, with ν on the values of all items (ICML (14))."""
    if not 0 < nu < np.inf:
        raise UsageError(f"nu must be positive and finite, not {nu:g}: without it the linear loss has no lower bound")
    mean = source.adjacency
    winner, loser = np.concatenate((mean.first, mean.second)), np.concatenate((mean.second, mean.first))
    return WeightedEdges.of(source.node_start, winner, loser, np.concatenate((mean.above, mean.below)), pull=nu)


def from_gains_to_all(source: Relevance, *, gain: str, normalised: bool, at: int | None = None) -> WeightedEdges:
    """E G(s_j)/Z(s) (or E G(s_j)) from each item j to every other of its graph (AoS §3.3).

    The argument is φ(α_j − α_l): AoS prints it reversed, which would reverse the order.
    """
    gains = expected_gains(source, gain, normalised=normalised, at=at, signed=False)
    return GainsToAll(source.node_start, gains)


def pulled_to_gains(source: Relevance, *, gain: str, normalised: bool, at: int | None = None) -> WeightedEdges:
    """No edges: 1/(2m) (α_j − E G(s_j)/Z(s))² on every item (AoS (28), up to a constant)."""
    gains = expected_gains(source, gain, normalised=normalised, at=at, signed=True)
    size = np.diff(source.node_start)
    none = np.zeros(0, np.int64)
    pull = 0.5 / np.repeat(size, size)
    return WeightedEdges(source.node_start, none, none, np.zeros(0), np.zeros(0), pull, gains)


def _is(phi: PairLoss, properties: tuple[Property, ...] | None) -> bool:
    return properties is not None and all(getattr(phi, each) for each in properties)


@dataclass(frozen=True)
class Surrogate:
    """A member of the family Σ w_e φ(α_i − α_j − h_e) + Σ ν_i r(α_i − t_i), and what it states about itself.

    >>> surrogate("difference-graph").consistent_for, surrogate("difference-graph").condition
    ('pairwise', 'acyclic')
    >>> surrogate("ranknet").consistent_for is None
    True
    """

    name: str
    edges: Callable[..., WeightedEdges]
    reads: Literal["judgments", "adjacency", "scores"]
    """Each judgment's own edges; only their mean adjacency; scores of the items."""
    phi: str
    """Default margin function; "linear" where there are no edges."""
    source: str
    takes: tuple[Property, ...] | None = None
    """What another margin function must be to be asked for; None: there is none but the default."""
    consistent_for: Literal["pairwise", "ndcg", "err"] | None = None
    """The target loss whose optimal order every minimiser has; None: none."""
    condition: Literal["acyclic", "low noise", "any law", "point or product law"] | None = None
    """On the population: difference graph acyclic; AoS Definition 4; nothing; laws of scores as in AoS Lemma 1."""
    consistent_with: tuple[Property, ...] = ()
    """What φ must be for that to hold."""
    right_on: tuple[Literal["two items", "bradley-terry"], ...] = ()
    """Special populations on which it orders rightly all the same (with default options and φ)."""
    penalty: str = "square"
    """Default r; it matters only where values are pulled."""
    pulls: bool = False
    """Whether values are penalised."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Options with their default values."""

    @property
    def meaning(self) -> str:
        """What is minimised, in short."""
        return MEANINGS[self.name]

    @property
    def phis(self) -> tuple[str, ...]:
        """Names of the margin functions that may be asked for."""
        return tuple(name for name, phi in PAIR_LOSSES.items() if name == self.phi or _is(phi, self.takes))

    @property
    def convex(self) -> bool:
        """Every φ and r of the family is convex and every weight is at least 0."""
        return True

    def smooth(self, phi: str | None = None) -> bool:
        """Whether the loss is differentiable with this φ (the default when not given)."""
        return pair_loss(phi or self.phi).smooth

    def consistent(self, phi: str | None = None) -> bool:
        """Whether the stated consistency covers this φ (the default when not given)."""
        chosen = phi or self.phi
        return self.consistent_for is not None and chosen in self.phis and _is(pair_loss(chosen), self.consistent_with)

    def objective(
        self,
        source: Batch | Graphs | Population | Relevance,
        *,
        phi: str | None = None,
        penalty: str | None = None,
        **options: Any,
    ) -> Objective:
        """Build the conditional risk of every graph of the source.

        Surrogates that read judgments or adjacency take a Batch, a Population or a mean adjacency (Graphs); the
        others a Relevance. Unknown options, φ that the surrogate does not allow and the wrong source are a UsageError.
        """
        chosen = phi or self.phi
        if chosen not in self.phis:
            if chosen not in PAIR_LOSSES:
                pair_loss(chosen)
            raise UsageError(f"{self.name} has no φ {chosen!r}; allowed: {', '.join(self.phis)}")
        unknown = [name for name in options if name not in self.defaults]
        if unknown:
            known = f"its options are {', '.join(self.defaults)}" if self.defaults else "it has none"
            raise UsageError(f"{self.name} has no option {unknown[0]!r}; {known}")
        of_scores = isinstance(source, Relevance)
        if of_scores != (self.reads == "scores"):
            wanted = "scores of the items (Relevance)" if self.reads == "scores" else "preferences (Batch, Population)"
            raise UsageError(f"{self.name} reads {wanted}, not {type(source).__name__}")
        read = source if isinstance(source, Relevance) else Population.of(source)
        edges = self.edges(read, **{**self.defaults, **options})
        return Objective(edges, pair_loss(chosen), value_penalty(penalty or self.penalty))


def surrogate(name: str) -> Surrogate:
    """Look a surrogate up by its name; the error for an unknown one suggests the closest.

    >>> surrogate("ranknet").phi
    'logistic'
    """
    if name not in SURROGATES:
        raise UsageError(f"unknown surrogate {name!r}; {did_you_mean(name, SURROGATES)}")
    return SURROGATES[name]


_MEMBERS = (
    Surrogate(
        "ranksvm",
        each_judgment,
        "judgments",
        phi="hinge",
        takes=("ends",),
        source="Joachims 2002; AoS (12), Theorem 2",
        right_on=("two items",),
        defaults={"h": "identity"},
    ),
    Surrogate(
        "ranknet",
        each_judgment,
        "judgments",
        phi="logistic",
        source="Burges et al. 2005; AoS (12), Theorem 2",
        right_on=("two items", "bradley-terry"),
        defaults={"h": "identity"},
    ),
    Surrogate(
        "rankboost",
        each_judgment,
        "judgments",
        phi="exponential",
        source="Freund et al. 2003; AoS (12), Theorem 2",
        right_on=("two items", "bradley-terry"),
        defaults={"h": "identity"},
    ),
    Surrogate(
        "margin-based",
        margins_of_judgments,
        "judgments",
        phi="hinge",
        takes=("bounded",),
        source="Shashua & Levin 2002; AoS (13), Theorem 3",
        defaults={"h": "identity"},
    ),
    Surrogate(
        "difference-graph",
        net_preferences,
        "adjacency",
        phi="logistic",
        takes=("bounded",),
        source="AoS (23)",
        consistent_for="pairwise",
        condition="acyclic",
        consistent_with=("calibrated",),
        right_on=("two items", "bradley-terry"),
    ),
    Surrogate(
        "majority",
        majorities,
        "adjacency",
        phi="logistic",
        takes=("bounded",),
        source="Ge et al. 2024, §3; Xiao et al. 2025",
        consistent_for="pairwise",
        condition="acyclic",
        consistent_with=("calibrated",),
        right_on=("two items", "bradley-terry"),
    ),
    Surrogate(
        "linear",
        summed_preferences,
        "adjacency",
        phi="linear",
        source="ICML (14), (15), Theorem 13, Corollary 15",
        consistent_for="pairwise",
        condition="low noise",
        right_on=("two items",),
        pulls=True,
        defaults={"nu": 1.0},
    ),
    Surrogate(
        "ndcg-pairwise",
        from_gains_to_all,
        "scores",
        phi="logistic",
        takes=("bounded",),
        source="Buffoni et al. 2011; AoS §3.3 (argument corrected)",
        consistent_for="ndcg",
        condition="any law",
        consistent_with=("calibrated", "smooth"),
        defaults={"gain": "2^s", "normalised": True, "at": None},
    ),
    Surrogate(
        "err-pairwise",
        from_gains_to_all,
        "scores",
        phi="logistic",
        takes=("bounded",),
        source="AoS §3.3, Lemma 1 (argument corrected)",
        consistent_for="err",
        condition="point or product law",
        consistent_with=("calibrated", "smooth"),
        defaults={"gain": "identity", "normalised": False},
    ),
    Surrogate(
        "gain-regression",
        pulled_to_gains,
        "scores",
        phi="linear",
        source="Cossock & Zhang 2008; AoS (28)",
        consistent_for="ndcg",
        condition="any law",
        pulls=True,
        defaults={"gain": "2^s", "normalised": True, "at": None},
    ),
)

SURROGATES: Mapping[str, Surrogate] = in_order(MEANINGS, {member.name: member for member in _MEMBERS})


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
    for name in names or SURROGATES:
        plain, _, phi = str(name).partition(":")
        if plain not in SURROGATES:
            raise UsageError(f"unknown surrogate {plain!r}; {did_you_mean(plain, SURROGATES)}")
        member = SURROGATES[plain]
        if phi and phi not in member.phis:
            pair_loss(phi)
            raise UsageError(f"{plain} has no φ {phi!r}; allowed: {', '.join(member.phis)}")
        chosen.append(Chosen(member, phi or member.phi))
    if len({one.name for one in chosen}) < len(chosen):
        raise UsageError("a surrogate is named twice")
    return tuple(chosen)

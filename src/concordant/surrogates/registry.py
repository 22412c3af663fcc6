"""The surrogates by name: edges, φ, penalty, and what each is consistent for, as data that a law tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from concordant.errors import UsageError, did_you_mean
from concordant.graphs import Batch, Graphs
from concordant.surrogates.margins import MARGINS, margin_function, value_penalty
from concordant.surrogates.objective import Arcs, Objective
from concordant.surrogates.population import Population, Relevance
from concordant.surrogates.weights import (
    each_judgment,
    from_gains_to_all,
    margins_of_judgments,
    net_preferences,
    pulled_to_gains,
    summed_preferences,
)

__all__ = ["SURROGATES", "Surrogate", "surrogate"]


@dataclass(frozen=True)
class Surrogate:
    """A member of the family Σ w_e φ(α_i − α_j − h_e) + Σ ν_i r(α_i − t_i), and what it states about itself.

    >>> surrogate("difference-graph").consistent_for, surrogate("difference-graph").condition
    ('pairwise', 'acyclic')
    >>> surrogate("ranknet").consistent_for is None
    True
    """

    name: str
    edges: Callable[..., Arcs]
    reads: Literal["judgments", "adjacency", "scores"]
    """Each judgment's own edges; only their mean adjacency; scores of the items."""
    phi: str
    """Default margin function; "linear" where there are no edges."""
    phis: tuple[str, ...]
    """Margin functions that may be asked for."""
    meaning: str
    source: str
    consistent_for: Literal["pairwise", "ndcg", "err"] | None = None
    """The target loss whose optimal order every minimiser has; None: none."""
    condition: Literal["acyclic", "low noise", "any law", "point or product law"] | None = None
    """On the population: difference graph acyclic; AoS Definition 4; nothing; laws of scores as in AoS Lemma 1."""
    consistent_phis: tuple[str, ...] = ()
    """The φ for which that holds."""
    right_on: tuple[Literal["two items", "bradley-terry"], ...] = ()
    """Special populations on which it orders rightly all the same (with default options and φ)."""
    penalty: str = "square"
    """Default r; it matters only where values are pulled."""
    pulls: bool = False
    """Whether values are penalised."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Options with their default values."""

    @property
    def convex(self) -> bool:
        """Every φ and r of the family is convex and every weight is at least 0."""
        return True

    def smooth(self, phi: str | None = None) -> bool:
        """Whether the loss is differentiable with this φ (the default when not given)."""
        return margin_function(phi or self.phi).smooth

    def consistent(self, phi: str | None = None) -> bool:
        """Whether the stated consistency covers this φ (the default when not given)."""
        return self.consistent_for is not None and (phi or self.phi) in self.consistent_phis

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
            if chosen not in MARGINS:
                margin_function(chosen)
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
        arcs = self.edges(read, **{**self.defaults, **options})
        return Objective(arcs, margin_function(chosen), value_penalty(penalty or self.penalty))


def surrogate(name: str) -> Surrogate:
    """Look a surrogate up by its name; the error for an unknown one suggests the closest.

    >>> surrogate("ranknet").phi
    'logistic'
    """
    if name not in SURROGATES:
        raise UsageError(f"unknown surrogate {name!r}; {did_you_mean(name, SURROGATES)}")
    return SURROGATES[name]


_DECREASING = ("hinge", "squared-hinge", "logistic", "exponential")
_DIFFERENTIABLE = ("squared-hinge", "logistic", "exponential")

_MEMBERS = (
    Surrogate(
        "ranksvm",
        each_judgment,
        "judgments",
        phi="hinge",
        phis=("hinge", "squared-hinge"),
        meaning="each judgment's edges, hinge; no aggregation",
        source="Joachims 2002; AoS (12), Theorem 2",
        right_on=("two items",),
        defaults={"h": "identity"},
    ),
    Surrogate(
        "ranknet",
        each_judgment,
        "judgments",
        phi="logistic",
        phis=("logistic",),
        meaning="each judgment's edges, logistic; no aggregation. Maximum likelihood under Bradley–Terry",
        source="Burges et al. 2005; AoS (12), Theorem 2",
        right_on=("two items", "bradley-terry"),
        defaults={"h": "identity"},
    ),
    Surrogate(
        "rankboost",
        each_judgment,
        "judgments",
        phi="exponential",
        phis=("exponential",),
        meaning="each judgment's edges, exponential; no aggregation",
        source="Freund et al. 2003; AoS (12), Theorem 2",
        right_on=("two items", "bradley-terry"),
        defaults={"h": "identity"},
    ),
    Surrogate(
        "margin-based",
        margins_of_judgments,
        "judgments",
        phi="hinge",
        phis=_DECREASING,
        meaning="every edge of a judgment asks for a margin that grows with its strength; no aggregation",
        source="Shashua & Levin 2002; AoS (13), Theorem 3",
        defaults={"h": "identity"},
    ),
    Surrogate(
        "difference-graph",
        net_preferences,
        "adjacency",
        phi="logistic",
        phis=_DECREASING,
        meaning="mean preferences, opposite ones cancelled, before φ",
        source="AoS (23)",
        consistent_for="pairwise",
        condition="acyclic",
        consistent_phis=_DECREASING,
        right_on=("two items", "bradley-terry"),
    ),
    Surrogate(
        "linear",
        summed_preferences,
        "adjacency",
        phi="linear",
        phis=("linear",),
        meaning="mean preferences, linear, with a penalty on values: orders by net preference (row sums)",
        source="ICML (14), (15), Theorem 13, Corollary 15",
        consistent_for="pairwise",
        condition="low noise",
        consistent_phis=("linear",),
        right_on=("two items",),
        pulls=True,
        defaults={"nu": 1.0},
    ),
    Surrogate(
        "ndcg-pairwise",
        from_gains_to_all,
        "scores",
        phi="logistic",
        phis=_DECREASING,
        meaning="normalised gain of each item against every other",
        source="Buffoni et al. 2011; AoS §3.3 (argument corrected)",
        consistent_for="ndcg",
        condition="any law",
        consistent_phis=_DIFFERENTIABLE,
        defaults={"gain": "2^s", "normalised": True, "at": None},
    ),
    Surrogate(
        "err-pairwise",
        from_gains_to_all,
        "scores",
        phi="logistic",
        phis=_DECREASING,
        meaning="chance of satisfying of each item against every other",
        source="AoS §3.3, Lemma 1 (argument corrected)",
        consistent_for="err",
        condition="point or product law",
        consistent_phis=_DIFFERENTIABLE,
        defaults={"gain": "identity", "normalised": False},
    ),
    Surrogate(
        "gain-regression",
        pulled_to_gains,
        "scores",
        phi="linear",
        phis=("linear",),
        meaning="least squares to the normalised gains",
        source="Cossock & Zhang 2008; AoS (28)",
        consistent_for="ndcg",
        condition="any law",
        consistent_phis=("linear",),
        pulls=True,
        defaults={"gain": "2^s", "normalised": True, "at": None},
    ),
)

SURROGATES: Mapping[str, Surrogate] = MappingProxyType({member.name: member for member in _MEMBERS})

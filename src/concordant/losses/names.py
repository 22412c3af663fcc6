"""Surrogates, margin functions and metrics by name, for help that is shown without loading numbers; the registries hold
to it.
"""

from __future__ import annotations

__all__ = ["MARGIN_FUNCTIONS", "METRICS", "SURROGATES"]


SURROGATES = {
    "ranksvm": "each judgment's edges, hinge; no aggregation",
    "ranknet": "each judgment's edges, logistic; no aggregation. Maximum likelihood under Bradley–Terry",
    "rankboost": "each judgment's edges, exponential; no aggregation",
    "margin-based": "every edge of a judgment asks for a margin that grows with its strength; no aggregation",
    "difference-graph": "mean preferences, opposite ones cancelled, before φ",
    "majority": "the majority of every judged pair, however large: counts 1 each",
    "linear": "mean preferences, linear, with a penalty on values: orders by net preference (row sums)",
    "ndcg-pairwise": "normalised gain of each item against every other",
    "err-pairwise": "chance of satisfying of each item against every other",
    "gain-regression": "least squares to the normalised gains",
}
"""What is minimised."""
MARGIN_FUNCTIONS = {
    "hinge": "max(0, 1 − t)",
    "squared-hinge": "max(0, 1 − t)²",
    "logistic": "log(1 + e^(−t))",
    "exponential": "e^(−t)",
    "linear": "−t",
}
METRICS = (
    *("ndcg", "err", "precision", "average-precision", "reciprocal-rank", "auc"),
    *("kendall-tau", "pairwise-loss"),
)

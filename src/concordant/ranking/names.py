"""Structures and intervals by name, for help that is shown without loading numbers; the registries hold to it."""

from __future__ import annotations

__all__ = ["INTERVALS", "STRUCTURES"]


STRUCTURES = {
    "bradley-terry": "log-ability; the difference of two is the log-odds that one beats the other",
    "plackett-luce": "log-ability; e^score is proportional to the chance of being picked first from any set",
    "log-odds": "mean log-odds of beating the other items; pairs never judged count as even",
    "thurstone-mosteller": "least-squares scores whose differences match the log-odds of the judged pairs",
    "borda": "sum of net win shares over the opponents met; for orders the mean net share of items below",
    "budgeted-borda": "chance of beating an opponent drawn evenly from those met",
    "eigenvector": "Perron vector of the win ratios; the ratio of two scores approximates their win ratio",
    "counting": "plain win rate, whoever the opponents were",
    "kemeny": "minus the place in the order that contradicts the fewest judgments",
    "cascade": "chance that the item satisfies a user who examines it",
    "position-based": "chance of a click at the first position that items are compared at (position-based model)",
    "dependent-click": "chance that a user who examines the item clicks it, where several clicks are made",
    "inverse-propensity": "clicks a showing, each divided by how often its position is examined",
    "rrf": "reciprocal rank fusion: sum over the lists of 1 / (k + rank)",
    "combsum": "CombSUM: sum over the lists of scores normalised in each",
}
"""What a score is."""
INTERVALS = {
    "auto": "whichever of the others is right for the judgments",
    "hessian": "by the curve of the likelihood, right if each judgment is a draw of its own and the model holds",
    "sandwich": "by how far the judgments scatter, right also for ties as halves, for strengths, and for judgments "
    "that belong together (one judge's, one list's)",
    "bootstrap": "by ranking judgments that are drawn again and again",
    "none": "no intervals",
}
"""How sure scores are, by which means."""

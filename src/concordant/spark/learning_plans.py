"""What of an AggregationRanker is done on Spark: one plan with one ridge, linear; the rest is refused, with what is."""

from __future__ import annotations

from typing import Any

from concordant.errors import UsageError
from concordant.rankers.aggregation import AggregationRanker
from concordant.rankers.plans import STRUCTURE_CHOICES, Plan, gains_to_try, orders_to_try, plans, ridges_to_try

__all__ = ["one_plan", "refuse_beyond_spark"]

WHERE = "is done in memory only; on Spark"


def refuse_beyond_spark(ranker: AggregationRanker) -> None:
    """Raise UsageError for parameters that need more than one pass of sums, before any work."""
    if ranker.informed is True:
        raise UsageError(f"informed aggregation {WHERE} name a structure, such as log-odds or bradley-terry")
    if ranker.regressor is not None:
        raise UsageError(
            f"fitting a regressor {WHERE} give the targets (concordant.spark.learning.targets) to a distributed trainer"
        )
    if ranker.intercept != "query":
        raise UsageError(f"intercept {ranker.intercept!r} {WHERE} every query has its own (intercept='query')")
    if ranker.missing not in ("raise", "mean", "zero"):
        raise UsageError(f"missing={ranker.missing!r} {WHERE} it is raise, mean or zero")
    if isinstance(ranker.order, str) and ranker.order == "auto":
        raise UsageError(f"choosing the order by cross-validation {WHERE} it is all or a number: --order all (order=)")
    for name in ("structure", "order", "gain", "ridge"):
        value = getattr(ranker, name)
        if isinstance(value, list) or (value == "auto" and name != "ridge"):
            raise UsageError(f"choosing the {name} by cross-validation {WHERE} give one {name}")


def one_plan(ranker: AggregationRanker, kind: str) -> tuple[Plan, float, list[str]]:
    """Return structure, order and gain, the ridge, and what a reader should know of the choice.

    Errors (UsageError): a structure that does not read this kind, unknown options and gains.
    """
    said = []
    structure: Any = ranker.structure
    if structure is None:
        structure = STRUCTURE_CHOICES[kind][0]
        if kind != "selections" and ranker.informed == "auto":
            said.append(f"structure {structure}: on Spark the features do not inform the aggregation")
    gain = ranker.gain
    if gain is None:
        gain = "identity" if structure == "cascade" else "2^s-1"
    gains = gains_to_try(gain, True if ranker.normalise is None else ranker.normalise)
    found = plans(structure, ranker.structure_options or {}, kind, orders_to_try(ranker.order, 1), gains)
    return found[0], ridges_to_try(ranker.ridge, False)[0], said

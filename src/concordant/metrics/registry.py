"""Metrics by name: ``ndcg@10``, ``map``, ``precision@5`` and what they take."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from concordant.errors import UsageError, did_you_mean
from concordant.metrics.auc import auc
from concordant.metrics.conventions import convention_of
from concordant.metrics.err import err
from concordant.metrics.kendall import kendall_tau
from concordant.metrics.lists import Floats
from concordant.metrics.ndcg import ndcg
from concordant.metrics.pairwise import pairwise_loss
from concordant.metrics.relevant import average_precision, precision, reciprocal_rank

__all__ = ["METRICS", "Metric", "canonical", "metric"]


@dataclass(frozen=True)
class Metric:
    """A metric: its function, other names, whether it takes a cut-off and a convention, and what is better."""

    function: Callable[..., Floats]
    aliases: tuple[str, ...] = ()
    cutoff: bool = True
    higher_is_better: bool = True


METRICS = {
    "ndcg": Metric(ndcg),
    "err": Metric(err),
    "precision": Metric(precision, ("p", "prec", "pre")),
    "average-precision": Metric(average_precision, ("ap", "map")),
    "reciprocal-rank": Metric(reciprocal_rank, ("rr", "mrr")),
    "auc": Metric(auc, ("roc-auc", "auroc"), cutoff=False),
    "kendall-tau": Metric(kendall_tau, ("tau", "kendall"), cutoff=False),
    "pairwise-loss": Metric(pairwise_loss, ("pairwise",), cutoff=False, higher_is_better=False),
}


def metric(name: str, convention: str | None = None) -> Callable[..., Floats]:
    """Return the function (scores, labels, query, item=…) that a name such as ``ndcg@10`` stands for.

    Without ``@k`` the whole list counts. A minus before or after the cut-off (``ndcg-``, ``ndcg@10-``, ``map-``) makes
    queries without relevance count 0, as XGBoost writes it. Errors: unknown names, conventions and cut-offs.

    >>> metric("ndcg@10", "trec")([0.5, 0.2], [1, 2], item=["a", "b"]).round(4).tolist()
    [0.8597]
    """
    match = re.fullmatch(r"\s*([A-Za-z_\-]*?[A-Za-z])(-?)(?:@(\d+)(-?))?\s*", name)
    known = _known()
    word = match.group(1).lower().replace("_", "-") if match else name.partition("@")[0].lower()
    if match is None or word not in known:
        if match is None and word in known:
            raise UsageError(f"metric {name!r}: a cut-off is an integer of at least 1, as in {word}@10")
        raise UsageError(f"unknown metric {name!r}; {did_you_mean(word, METRICS)} A cut-off is written as in ndcg@10.")
    found, at = METRICS[known[word]], match.group(3)
    options: dict[str, Any] = {}
    if convention is not None:
        convention_of(convention)
    if found.cutoff:
        options["at"] = int(at) if at is not None else None
        options["convention"] = convention or "burges"
        if at is not None and int(at) < 1:
            raise UsageError(f"metric {name!r}: a cut-off is an integer of at least 1, as in {word}@10")
    elif at is not None:
        raise UsageError(f"metric {name!r}: {known[word]} takes no cut-off")
    if match.group(2) or match.group(4):
        if known[word] not in ("ndcg", "average-precision"):
            raise UsageError(f"metric {name!r}: a minus belongs to ndcg and map only")
        options["empty"] = 0.0
    if not found.cutoff:
        return partial(_without_item, found.function)
    return partial(found.function, **options)


def canonical(name: str) -> str | None:
    """Return the name that a metric without a cut-off has in METRICS, or None.

    >>> canonical("ROC_AUC"), canonical("ndcg@10")
    ('auc', None)
    """
    return _known().get(name.strip().lower().replace("_", "-"))


def _known() -> dict[str, str]:
    return {alias: key for key, one in METRICS.items() for alias in (key, *one.aliases)}


def _without_item(function: Callable[..., Floats], *columns: Any, item: Any = None) -> Floats:  # noqa: ARG001
    return function(*columns)

"""concordant: from a log of who preferred what to a ranking, or a scoring function, that can be trusted.

>>> import concordant as cc
>>> votes = cc.Preferences.from_comparisons(winner=["a", "a", "b"], loser=["b", "c", "c"])
>>> cc.rank(votes).to_arrow()["item"].to_pylist()
['a', 'b', 'c']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concordant.errors import CannotRank, ConcordantError, InputError, NoMaximumLikelihood, UsageError
    from concordant.graphs import Batch, Graphs
    from concordant.metrics.comparing import compare, summarise
    from concordant.metrics.err import err
    from concordant.metrics.kendall import kendall_tau
    from concordant.metrics.ndcg import ndcg
    from concordant.metrics.pairwise import pairwise_loss
    from concordant.metrics.relevant import average_precision, precision, reciprocal_rank
    from concordant.preferences import Preferences
    from concordant.ranking import Ranking, rank
    from concordant.reading import read

__version__ = "0.1.0"

_HOMES = {
    "Batch": "graphs",
    "CannotRank": "errors",
    "ConcordantError": "errors",
    "Graphs": "graphs",
    "InputError": "errors",
    "NoMaximumLikelihood": "errors",
    "Preferences": "preferences",
    "Ranking": "ranking",
    "UsageError": "errors",
    "average_precision": "metrics.relevant",
    "compare": "metrics.comparing",
    "err": "metrics.err",
    "kendall_tau": "metrics.kendall",
    "ndcg": "metrics.ndcg",
    "pairwise_loss": "metrics.pairwise",
    "precision": "metrics.relevant",
    "rank": "ranking",
    "read": "reading",
    "reciprocal_rank": "metrics.relevant",
    "summarise": "metrics.comparing",
}

__all__ = [
    "Batch",
    "CannotRank",
    "ConcordantError",
    "Graphs",
    "InputError",
    "NoMaximumLikelihood",
    "Preferences",
    "Ranking",
    "UsageError",
    "average_precision",
    "compare",
    "err",
    "kendall_tau",
    "ndcg",
    "pairwise_loss",
    "precision",
    "rank",
    "read",
    "reciprocal_rank",
    "summarise",
]


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that ``concordant --help`` does not pay for NumPy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'concordant' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"concordant.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))

"""The functions of concordant on a cluster, with the same answers: logs, features and scores stay where they lie.

``pip install "concordant[spark]"``, and Java 17 or later; then ``from concordant import spark as cs``. Each function
takes DataFrames, files, folders, addresses and ``spark::TABLE`` of the catalogue, and works in the active session, in
the ``session`` that it is given, or in one that it makes for ``master``.

=================  ==================================================================================================
``read``           counts a log there; the counts come to the driver, as ``concordant.Preferences``
``rank``           ranks every query there
``targets``        what gain regression fits: query, item, target, weight, for any trainer
``fit``            fits a linear ``AggregationRanker``, with nothing named that of ``concordant fit``
``score``          scores and ranks items by a fitted ranker
``evaluate``       judges scores by labels
``audit``          audits the counts of a log, which come to the driver
``report``         makes the report of them
``JudgedQueries``  the queries of a log, to be read once and used often
=================  ==================================================================================================
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concordant.apps.spark.counted import audit, report
    from concordant.apps.spark.frames import JudgedQueries, read
    from concordant.apps.spark.learning import fit, targets
    from concordant.apps.spark.metrics import evaluate
    from concordant.apps.spark.ranking import rank
    from concordant.apps.spark.scoring import score

__all__ = ["JudgedQueries", "audit", "evaluate", "fit", "rank", "read", "report", "score", "targets"]

_HOMES = {
    "JudgedQueries": "frames",
    "audit": "counted",
    "evaluate": "metrics",
    "fit": "learning",
    "rank": "ranking",
    "read": "frames",
    "report": "counted",
    "score": "scoring",
    "targets": "learning",
}

try:
    import pyspark as _pyspark  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name != "pyspark":
        raise
    raise ModuleNotFoundError(
        'concordant.spark needs PySpark, which is not installed: pip install "concordant[spark]"', name="pyspark"
    ) from None


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'concordant.spark' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"concordant.apps.spark.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})

"""What ``concordant score --engine spark`` does: the rows are scored where they lie, and written there if wanted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from concordant.apps.commands.abstaining import ALONE
from concordant.apps.commands.output import check_output
from concordant.apps.commands.ranking_spark import check_folder, is_folder
from concordant.apps.models.saving import load_model
from concordant.apps.spark.scoring import score
from concordant.apps.spark.telling import told
from concordant.errors import UsageError
from concordant.io.engines.spark_session import session, without_pandas_warning

__all__ = ["score_on_spark"]


def score_on_spark(model: str, given: Mapping[str, Any]) -> tuple[pa.Table | None, int]:
    """Return the scored rows, or None where the executors have written them, and how many there are.

    Errors: InputError, UsageError.
    """
    for name in ("abstain", *ALONE):
        if given[name] is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} is done in memory only: tiers need all items of a query at once"
            )
    if given["stream"] is not None:
        raise UsageError("--stream and --in-memory are for one machine; on Spark no task holds all features")
    output = given["output"]
    folder = output is not None and is_folder(output)
    if folder:
        check_folder(output)
    elif output is not None:
        check_output(output, given["features"] if os.path.isfile(given["features"]) else None, "the file of features")
    ranker = load_model(model, unsafe_pickle=given["unsafe_load_pickle"])
    columns = {role: given[f"feature_{role}"] for role in ("item", "query") if given[f"feature_{role}"] is not None}
    with without_pandas_warning(), told(given["features"]):
        spark = session(given["master"], memory_limit=given["memory_limit"])
        scored = score(ranker, given["features"], columns=columns, session=spark)
        if folder:
            return None, scored.save(output.rstrip("/"))
        table = scored.table()
    return table, len(table)

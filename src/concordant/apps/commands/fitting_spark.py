"""What ``concordant fit --engine spark`` does: the same model, from sums that the tasks make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from concordant.apps.commands.given import Given
from concordant.apps.commands.idle import chosen_by
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import asked_of, listed, said_of_names
from concordant.apps.commands.saying import say
from concordant.apps.models.saving import save_model
from concordant.apps.spark.learning import fit
from concordant.apps.spark.telling import told
from concordant.errors import UsageError
from concordant.io.engines.spark_session import session, without_pandas_warning
from concordant.io.store.catalogue import is_store
from concordant.learning.rankers.aggregation import AggregationRanker

__all__ = ["fit_on_spark"]


def fit_on_spark(ranker: Any, log: str, given: Given) -> None:
    """Fit and keep the model. Errors: InputError; UsageError for what is done in memory only, before any work."""
    if not isinstance(ranker, AggregationRanker):
        raise UsageError(
            "on Spark preferences are fitted by --loss gain-regression; graded labels and other losses are fitted in "
            "memory"
        )
    if given["features"] is None:
        raise UsageError("--features is missing: a preference log holds no features of its items")
    if is_store(Path(log)):
        raise UsageError(
            f"{log} is a store, whose counts are learned from on one machine: leave out --engine spark, or give Spark "
            "the file that concordant store export writes"
        )
    if given["stream"] is not None:
        raise UsageError("--stream and --in-memory are for one machine; on Spark no task holds all features")
    names = None if given["feature_columns"] is None else listed(given["feature_columns"])
    columns = {role: given[f"feature_{role}"] for role in ("item", "query") if given[f"feature_{role}"] is not None}
    reading = asked_of(given)
    sizes = {name: reading.pop(name) for name in ("memory_limit", "threads")}
    master = reading.pop("master", given["master"])
    del reading["engine"]
    with Progress(given["quiet"], "learning"), without_pandas_warning(), told(log):
        spark = session(master, **sizes)
        fit(ranker, log, given["features"], feature_columns=columns, feature_names=names, session=spark, **reading)
    given.settle(**chosen_by(ranker))
    place = save_model(ranker, given["model"], about={"log": log, "features": given["features"]})
    if not given["quiet"]:
        found = ranker.status_
        say("fitted", f"{log}: {found['rows']:,} items of {found['queries']:,} queries; solver: {found['status']}")
        odd = said_of_names(given["features"], [str(name) for name in ranker.feature_names_in_], given)
        for note in (*found["notes"], *odd):
            say("note", str(note))
        say("wrote", f"wrote {place}/", path=str(place))

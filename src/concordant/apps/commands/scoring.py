"""What ``concordant score`` does once its arguments are known: load, read, score, rank, write."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.apps.commands.abstaining import careful, said_of
from concordant.apps.commands.given import Given
from concordant.apps.commands.output import as_csv, check_output, show_table, write
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import feature_stream, gigabytes, read_feature_file
from concordant.apps.commands.saying import say
from concordant.apps.commands.scoring_streams import put_stream
from concordant.apps.models.saving import load_model
from concordant.errors import UsageError, counted
from concordant.io.log.formats import locate
from concordant.learning.features.key_index import refuse_repeats
from concordant.learning.features.matrix import Features
from concordant.learning.features.streamed import FORMATS, FeatureFile
from concordant.preferences.ragged import Ragged
from concordant.progress import stage

__all__ = ["ranked", "run_score"]


READ = {
    "features": "the file of features",
    "judgments": "the file of judgments",
    "judged_features": "the file of judged features",
}
"""Options that name files which are read, and which the output must not replace."""


def run_score(model: str, given: Given) -> None:
    """Write query, item, score, rank (and tier, with abstention) in the order of the features."""
    given.settle()
    if given["engine"] == "spark":
        from concordant.apps.commands.scoring_spark import score_on_spark

        with Progress(given["quiet"], "scoring"):
            found = score_on_spark(model, given)
        _put(*found, given)
        return
    if given["master"] is not None:
        raise UsageError(f"--master {given['master']} belongs to --engine spark")
    if given["output"] is not None:
        for name, what in READ.items():
            if given[name] is not None:
                check_output(given["output"], given[name], what)
    ranker = load_model(model, unsafe_pickle=given["unsafe_load_pickle"])
    if given["stream"] is None:
        given.settle(streamable=locate(given["features"]).format in FORMATS)
    names = getattr(ranker, "feature_names_in_", None)
    names = None if names is None else [str(name) for name in names]
    with Progress(given["quiet"], "choosing when to abstain"):
        abstaining = careful(ranker, given, names)
    file = feature_stream(given["features"], given, names)
    if file is not None:
        if abstaining is not None:
            raise UsageError(f"{given['features']}: abstention needs the features in memory (--in-memory)")
        _score_stream(ranker, file, given)
        return
    with Progress(given["quiet"], "scoring"):
        with stage(f"reading {given['features']}"):
            features = read_feature_file(given["features"], given, missing=ranker.missing, names=names)
        with stage(counted(len(features), "rows")):
            table = ranked(features, ranker.predict(features))
        if abstaining is not None:
            with stage("tiers"):
                table = table.append_column("tier", pa.array(abstaining.tiers(features)))
    if abstaining is not None and not given["quiet"]:
        for said in said_of(abstaining):
            say("note", said)
    _put(table, len(table), given)


def _score_stream(ranker: Any, file: FeatureFile, given: Mapping[str, Any]) -> None:
    if not given["quiet"]:
        say("log", f"{given['features']}: streamed from disk, {gigabytes(file)}")
    with Progress(given["quiet"], "scoring"):
        with stage("looking for rows that repeat"):
            refuse_repeats(file)
        with stage("scores"):
            scores = ranker.predict(file)
        with stage("ranks"):
            rows = put_stream(file, scores, given)
    if given["output"] is not None:
        _put(None, rows, given)


def _put(table: pa.Table | None, rows: int, given: Mapping[str, Any]) -> None:
    """Write the table where it is wanted; None was written already."""
    if given["output"] is not None:
        if table is not None:
            with Progress(given["quiet"], f"writing {given['output']}"):
                write(table, given["output"])
        if not given["quiet"]:
            say("wrote", f"wrote {given['output']}: {rows:,} rows", path=given["output"])
    elif sys.stdout.isatty():
        show_table(table)
    else:
        sys.stdout.buffer.write(as_csv(table))
        sys.stdout.buffer.flush()


def ranked(features: Features, score: NDArray[np.float64]) -> pa.Table:
    """Return query, item, score and rank of each row; the best of a query has rank 1, equal scores share the best."""
    query = np.zeros(len(features), np.int64) if features.query is None else features.query
    order = np.lexsort((-score, query))
    queries = Ragged.runs(query[order])
    new = np.diff(score[order], prepend=np.nan) != 0
    new[queries.first] = True
    place = np.arange(len(order))
    shared = np.maximum.accumulate(np.where(new, place, 0))
    rank = np.empty(len(order), np.int64)
    rank[order] = shared - queries.spread(queries.first) + 1
    items = features.items.take(features.item)
    names = pa.nulls(len(features), pa.string()) if features.query is None else features.queries.take(features.query)
    return pa.table({"query": names, "item": items, "score": score, "rank": rank})

"""``concordant score``: load, read, score, rank, write; features that stay on disk are ranked over a stream."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.apps.commands.abstaining import careful, said_of
from concordant.apps.commands.durations import scoring, streaming
from concordant.apps.commands.options import ScoreOptions
from concordant.apps.commands.output import as_csv, check_output, put_table, write, write_parts
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import feature_stream, gigabytes, names_of, read_feature_file
from concordant.apps.commands.standard import reader_gone
from concordant.apps.models.saving import load_model
from concordant.errors import UsageError
from concordant.io.engines.duckdb import Settings, over_stream
from concordant.io.log.formats import locate
from concordant.learning.annotators.scorers import FoundScorer
from concordant.learning.features.key_index import refuse_repeats
from concordant.learning.features.matrix import Features
from concordant.learning.features.reading import column_labels
from concordant.learning.features.streamed import FORMATS, FeatureFile
from concordant.preferences.ragged import Ragged
from concordant.progress import stage

ROWS = 1 << 18
RANKED = (
    'SELECT query, item, score, rank() OVER (PARTITION BY query ORDER BY score DESC) AS "rank" '
    "FROM stream ORDER BY place"
)
"""What DuckDB makes of the scores, as ``ranked`` does in memory."""
READ = {
    "features": "the file of features",
    "judgments": "the file of judgments",
    "judged_features": "the file of judged features",
}
"""Options that name files which are read, and which the output must not replace."""


def score(options: ScoreOptions) -> None:
    """Write query, item, score, rank (and tier, with abstention) in the order of the features."""
    options.settle()
    if options.engine == "spark":
        from concordant.apps.commands import on_spark

        with Progress(options.quiet, "scoring"):
            found = on_spark.score(options)
        _put(*found, options)
        return
    if options.master is not None:
        raise UsageError(f"--master {options.master} belongs to --engine spark")
    if options.output is not None:
        for name, what in READ.items():
            if (read := getattr(options, name)) is not None:
                check_output(options.output, read, what)
    ranker = load_model(options.model, unsafe_pickle=options.unsafe_load_pickle)
    if options.stream is None:
        options.settle(streamable=locate(options.features).format in FORMATS)
    names = names_of(ranker)
    plan = scoring(options)
    with Progress(options.quiet, "choosing when to abstain", plan if options.abstain is not None else None):
        abstaining = careful(ranker, options, names)
    beside = isinstance(ranker, FoundScorer)
    if beside and options.stream:
        raise UsageError(
            f"{options.model} gives a row more than one score: it needs the features in memory (--in-memory)"
        )
    file = None if beside else feature_stream(options.features, options, names)
    if file is not None:
        if abstaining is not None:
            raise UsageError(f"{options.features}: abstention needs the features in memory (--in-memory)")
        _score_stream(ranker, file, options)
        return
    with Progress(options.quiet, "scoring", plan if options.abstain is None else None):
        with stage(f"reading {options.features}"):
            features = read_feature_file(options.features, options, missing=ranker.missing_, names=names)
        with stage("scores"):
            table = ranked(features, ranker.predict(features))
        for name, column in (ranker.beside(features) if beside else {}).items():
            table = table.append_column(name, pa.array(column))
        if abstaining is not None:
            with stage("tiers"):
                table = table.append_column("tier", pa.array(abstaining.tiers(features)))
    if abstaining is not None:
        options.say_notes(said_of(abstaining))
    _put(table, len(table), options)


def _score_stream(ranker: Any, file: FeatureFile, options: ScoreOptions) -> None:
    options.say("log", f"{options.features}: streamed from disk, {gigabytes(file)}")
    with Progress(options.quiet, "scoring", streaming(options.features)):
        with stage("looking for rows that repeat"):
            refuse_repeats(file)
        with stage("scores"):
            scores = ranker.predict(file)
        with stage("ranks"):
            rows = _put_stream(file, scores, options)
    if options.output is not None:
        _put(None, rows, options)


def _put(table: pa.Table | None, rows: int, options: ScoreOptions) -> None:
    """Write the table where it is wanted; None was written already."""
    if options.output is not None:
        if table is not None:
            with Progress(options.quiet, f"writing {options.output}"):
                write(table, options.output)
        options.say("wrote", f"wrote {options.output}: {rows:,} rows", path=options.output)
    else:
        put_table(table)


def ranked(features: Features, scores: NDArray[np.float64]) -> pa.Table:
    """Return query, item, score and rank of each row; the best of a query has rank 1, equal scores share the best."""
    query = np.zeros(len(features), np.int64) if features.query is None else features.query
    order = np.lexsort((-scores, query))
    queries = Ragged.runs(query[order])
    new = np.diff(scores[order], prepend=np.nan) != 0
    new[queries.first] = True
    place = np.arange(len(order))
    shared = np.maximum.accumulate(np.where(new, place, 0))
    rank = np.empty(len(order), np.int64)
    rank[order] = shared - queries.spread(queries.first) + 1
    items = features.items.take(features.item)
    names = pa.nulls(len(features), pa.string()) if features.query is None else features.queries.take(features.query)
    return pa.table({"query": names, "item": items, "score": scores, "rank": rank})


def _ranked_stream(file: FeatureFile, scores: Any) -> Iterator[pa.Table]:
    """Yield query, item, score and rank of every row, in the order of the file (see ``ranked``)."""
    kinds = [pa.string() if file.query is None else file.label_type("query"), file.label_type("item")]
    schema = pa.schema([("query", kinds[0]), ("item", kinds[1]), ("score", pa.float64()), ("place", pa.int64())])

    def rows() -> Iterator[pa.RecordBatch]:
        for begin, batch in file.labels():
            labels = [_labels(file, role, begin, batch, place) for place, role in enumerate(("item", "query"))]
            columns = [labels[1].cast(kinds[0]), labels[0].cast(kinds[1])]
            places = pa.array(range(begin, begin + len(batch)), pa.int64())
            columns += [pa.array(scores[begin : begin + len(batch)]), places]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    out = schema.remove(3).append(pa.field("rank", pa.int64()))
    for batch in over_stream(rows(), schema, RANKED, Settings(file.memory_limit), rows=ROWS):
        yield pa.Table.from_batches([batch]).cast(out)


def _labels(file: FeatureFile, role: str, begin: int, batch: pa.RecordBatch, place: int) -> pa.Array:
    if role == "query" and file.query is None:
        return pa.nulls(len(batch), pa.string())
    return column_labels(pa.chunked_array([batch.column(place)]), role, file.log, begin)


def _put_stream(file: FeatureFile, scores: Any, options: ScoreOptions) -> int:
    """Write the table to ``--output`` or into a pipe and return its number of rows."""
    parts = _ranked_stream(file, scores)
    if options.output is not None:
        return write_parts(parts, options.output)
    if sys.stdout.isatty():
        raise UsageError("a table that is streamed is not shown on a terminal; name a file with --output")
    rows = 0
    for part in parts:
        text = as_csv(part)
        sys.stdout.buffer.write(text if rows == 0 else text[text.index(b"\n") + 1 :])
        rows += len(part)
        if reader_gone():
            break
    sys.stdout.buffer.flush()
    return rows

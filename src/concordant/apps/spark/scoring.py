"""Score and rank items where their features lie: each row by itself in a task, ranks by a window over the query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from concordant.abstention.ranker import AbstainingRanker
from concordant.apps.spark.frames import PLACE, Table, whole_or_gone
from concordant.apps.spark.learning_features import FeatureFrame, examine, matrix, refuse_twice
from concordant.apps.spark.telling import told
from concordant.errors import ConcordantError, InputError, UsageError
from concordant.io.engines.spark_session import session as spark_session
from concordant.learning.features.matrix import Features
from concordant.learning.rankers.per_query import QueryRankers


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores and ranks that are not computed before they are asked for."""

    features: FeatureFrame
    missing: str
    """What the model does with missing values."""
    placed: DataFrame
    """query, item, score, rank and the place of each row in the features."""

    @property
    def frame(self) -> DataFrame:
        """query, item, score, rank (1 = best of its query; equal scores share a rank), in no order; with a ranker that
        abstains also tier.
        """
        return self.placed.drop(*PLACE)

    def table(self) -> pa.Table:
        """Return all rows on the driver, in the order of the features. Errors (InputError): as ``save``."""
        return self._told(lambda: self.placed.orderBy(*PLACE).drop(*PLACE).toArrow())

    def save(self, folder: str) -> int:
        """Write Parquet files into a folder, from the tasks, and return the number of rows; what was there is gone.

        Errors (InputError): values that are not finite or no numbers, with how many there are and where some stand.
        """
        with whole_or_gone(folder) as place:
            self._told(lambda: self.frame.write.mode("overwrite").parquet(place))
        return int(self.placed.sparkSession.read.parquet(place).count())

    def _told(self, work: Any) -> Any:
        """Do the work; where a task refuses a row, look through all of them to say what is wrong."""
        try:
            with told(self.features.name):
                return work()
        except ConcordantError:
            with told(self.features.name):
                found = examine(self.features, log=False)
            found.check(self.features.name, len(self.features.names), self.missing)
            raise


@dataclass(frozen=True)
class _Score:
    """The task."""

    ranker: Any
    width: int
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            X, wrong = matrix(batch, self.width)
            bare = any(batch.column(name).null_count for name in ("query", "item") if name in batch.schema.names)
            if wrong.any() or bare:
                raise InputError("there are rows that cannot be scored")
            found = {name: batch.column(name) for name in self.schema.names if name in batch.schema.names}
            found["score"] = pa.array(np.asarray(self.ranker.predict(X), np.float64) + 0.0)  # −0 is 0 to every order
            yield pa.RecordBatch.from_pydict(found).select(self.schema.names).cast(self.schema)


TIER = "tier"
GROUPS = 4096
"""Groups of queries whose features a task holds at a time."""


@dataclass(frozen=True)
class _Tiers:
    """The task: scores of all rows of some queries, and the tiers of each query's items."""

    scored: _Score
    names: tuple[str, ...]

    def __call__(self, rows: pa.Table) -> pa.Table:
        (batch,) = rows.combine_chunks().to_batches()
        (found,) = self.scored(iter([batch]))
        query = batch.column("query") if "query" in batch.schema.names else None
        X = matrix(batch, self.scored.width)[0]
        there = Features.of(X, batch.column("item"), query, self.names, missing="keep")
        tier = pa.array(self.scored.ranker.tiers(there), pa.int64())
        return pa.Table.from_batches([found]).append_column(TIER, tier)


def score(
    model: Any,
    features: Any,
    *,
    columns: Mapping[str, str] | None = None,
    session: SparkSession | None = None,
    master: str | None = None,
) -> Scored:
    """Score rows of features by a fitted ranker; the scores have the bits that ``ranker.predict`` gives in memory.

    ``features`` is a DataFrame, a file, folder or URI of Parquet or CSV, or ``spark::TABLE`` of the catalogue, with
    a column of items, optionally of queries, and the columns that the ranker was fitted on; ``columns`` maps item and
    query to columns with other names. Without a query all rows are one list, whose ranks are given in one task.
    Every row crosses the network once, without its features, to be ranked; where the ranker abstains, with them: the
    items of a query are one task's.

    Errors: InputError for columns that are not there and rows twice; UsageError for a model with a ranker for each
    query.
    """
    if isinstance(model, QueryRankers):
        raise UsageError(f"a {type(model).__name__} scores in memory only; on Spark a row is scored by itself")
    spark = session or spark_session(master)
    names = getattr(model, "feature_names_in_", None)
    known = None if names is None else [str(each) for each in names]
    there = FeatureFrame.of(Table.of(features, spark).placed(), columns=columns or {}, names=known)
    if len(there.names) != model.n_features_in_:
        raise InputError(
            f"{there.name}: there are {len(there.names):,} features, the ranker was fitted on {model.n_features_in_:,}"
        )
    with told(there.name):
        refuse_twice(there)
    return Scored(there, model.missing_, _ranked(model, there))


def _ranked(model: Any, features: FeatureFrame) -> DataFrame:
    keys, kinds = features.keys, dict(features.frame.dtypes)
    given, place = ([f"{name} {kinds[name]}" for name in some] for some in (keys, PLACE))
    schema = ", ".join([*given, "score double", *place])
    arrow = to_arrow_schema(StructType.fromDDL(schema))
    task = _Score(model, len(features.names), arrow)
    abstains = isinstance(model, AbstainingRanker)
    if abstains:
        group = fn.pmod(fn.xxhash64("query"), fn.lit(GROUPS)) if "query" in keys else fn.lit(0)
        tiers = _Tiers(task, tuple(features.names))
        scored = features.frame.groupBy(group).applyInArrow(lambda _, rows: tiers(rows), f"{schema}, {TIER} bigint")
    else:
        scored = features.frame.mapInArrow(task, schema)
    if "query" not in keys:
        scored = scored.withColumn("query", fn.lit(None).cast("string"))
    by_score = Window.partitionBy("query").orderBy(fn.desc("score"))
    ranked = scored.withColumn("rank", fn.rank().over(by_score).cast("bigint"))
    return ranked.select("query", "item", "score", "rank", *[TIER] * abstains, *PLACE)

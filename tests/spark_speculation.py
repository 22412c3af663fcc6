"""A program: work on two executors of which slow tasks are begun a second time; print as JSON what became of it.

``python spark_speculation.py LOG FOLDER``: the ranking is written to FOLDER/ranking, Spark's own files to FOLDER.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spark_cluster import TASK, cluster, events

EAGER = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.efficiency.enabled": "false",
}
"""A task that takes a little longer than the others is begun again."""


def slow(batches: Any) -> Any:
    """A task of which the first attempt at the first part takes half a minute; the second takes its place."""
    import time

    from pyspark import TaskContext

    task = TaskContext.get()
    yield from batches
    if task is not None and task.partitionId() == 0 and task.attemptNumber() == 0:
        time.sleep(30)


def features(prefs: Any) -> pa.Table:
    """Two numbers for each item of each query."""
    rng, size = np.random.default_rng(3), len(prefs.queries) * len(prefs.items)
    query, item = np.repeat(prefs.queries.tolist(), len(prefs.items)), np.tile(prefs.items.tolist(), len(prefs.queries))
    return pa.table({"query": query, "item": item, "x": rng.normal(size=size), "y": rng.normal(size=size)})


def main(log: str, folder: Path) -> dict[str, Any]:
    """Count, write a ranking and fit, and return what happened."""
    session = cluster(folder, EAGER)
    import concordant as cc
    from concordant import spark as cs
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.ranking import ranked, write_ranking

    here = cc.read(log)
    judged = JudgedQueries.of(log, session, task=TASK)
    frame = ranked(judged, "bradley-terry", interval="none")
    rows, _ = write_ranking(frame.mapInArrow(slow, frame.schema), judged, str(folder / "ranking"))
    votes = session.read.parquet(f"file:{log}")
    counts = cs.read(votes.mapInArrow(slow, votes.schema))
    rows_of = features(here)
    frame = session.createDataFrame(rows_of).repartition(4)
    ranker = cc.AggregationRanker("log-odds", order="all", ridge=0.001)
    ours = cs.fit(ranker, log, frame.mapInArrow(slow, frame.schema)).coef_
    theirs = cc.AggregationRanker("log-odds", order="all", ridge=0.001).fit(rows_of.to_pydict(), here).coef_
    session.stop()
    tasks = [each["Task Info"] for each in events(folder / "events") if each["Event"] == "SparkListenerTaskEnd"]
    return {
        "rows told": rows,
        "counts equal": counts == here,
        "coefficients": [ours.tolist(), theirs.tolist()],
        "second attempts": sum(task["Speculative"] for task in tasks),
        "given up": sum(task["Killed"] for task in tasks),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))

"""A program: work on two executors far from UTC, of which slow tasks are begun again; print as JSON what became of it.

``python spark_speculation.py LOG FOLDER``: the ranking is written to FOLDER/ranking, Spark's own files to FOLDER.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from spark_cluster import QUICK, TASK, cluster, events

EAGER = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.efficiency.enabled": "false",
    "spark.python.daemon.module": "spark_daemon",
}
"""A task that takes a little longer than the others is begun again."""
FAR = {
    "spark.sql.session.timeZone": "Asia/Kolkata",
    "spark.driver.extraJavaOptions": f"{QUICK} -Duser.timezone=America/St_Johns",
    "spark.executor.extraJavaOptions": f"{QUICK} -Duser.timezone=Asia/Kolkata",
    "spark.executorEnv.TZ": "Pacific/Chatham",
}
"""The session, the driver, Java of the executors and their Python, each in a time zone of its own."""
MOMENTS = [datetime(2026, 3, 29, hour, 30, 0, 5) for hour in (0, 1, 2)]


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


def dated(folder: Path) -> Path:
    """Votes of which the query may be a date, an instant or what a clock says."""
    times = {
        "date": pa.array([date(2026, 3, 28), date(2026, 3, 29), date(2026, 3, 30)]),
        "instant": pa.array([moment.replace(tzinfo=UTC) for moment in MOMENTS], pa.timestamp("us", "Europe/Berlin")),
        "clock": pa.array(MOMENTS, pa.timestamp("us")),
        "nanoseconds": pa.array(MOMENTS, pa.timestamp("ns")),
    }
    path = folder / "dated.parquet"
    pa.parquet.write_table(pa.table({"winner": ["a"] * 3, "loser": ["b"] * 3, **times}), path)
    return path


def labels(path: Path, session: Any) -> dict[str, list[list[str]]]:
    """The queries by each column: as in memory, counted on Spark, ranked by its tasks."""
    import concordant as cc
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.ranking import ranked

    found = {}
    for name in ("date", "instant", "clock", "nanoseconds"):
        reading: dict[str, Any] = {"columns": {"query": name}, "pool": False}
        here, counted = (cc.read(path, engine=engine, **reading).queries.tolist() for engine in ("memory", session))
        judged = JudgedQueries.of(path, session, columns={"query": name})
        tasks = ranked(judged, "bradley-terry", interval="none").select("query").distinct().toArrow()
        found[name] = [here, counted, sorted(tasks["query"].to_pylist())]
    return found


def main(log: str, folder: Path) -> dict[str, Any]:
    """Count, write a ranking and fit, and return what happened."""
    session = cluster(folder, {**EAGER, **FAR})
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
    named = labels(dated(folder), session)
    session.stop()
    tasks = [each["Task Info"] for each in events(folder / "events") if each["Event"] == "SparkListenerTaskEnd"]
    return {
        "rows told": rows,
        "labels": named,
        "counts equal": counts == here,
        "coefficients": [ours.tolist(), theirs.tolist()],
        "second attempts": sum(task["Speculative"] for task in tasks),
        "given up": sum(task["Killed"] for task in tasks),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))

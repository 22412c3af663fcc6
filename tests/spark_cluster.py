"""A program: rank a log on two executors, kill one of them in the middle, print as JSON what became of it.

``python spark_cluster.py LOG RANKING FOLDER [KILLS SEED]``: the ranking goes to the file RANKING, Spark's own files to
FOLDER. Then KILLS rounds in which executors are killed at drawn times (``spark_kills``).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_kills import drawn_kills

TASK = 400
"""Rows of a task: thirty of these, so that there is a middle."""
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def home(folder: Path) -> Path:
    """A home for Spark that it may write into: the executors of a local cluster work in $SPARK_HOME/work."""
    import pyspark

    place = folder / "home"
    place.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (place / part.name).symlink_to(part)
    return place


def executors(application: str) -> dict[str, int]:
    """The processes of the executors of an application, by their numbers in Spark."""
    found = {}
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if application in words and "--executor-id" in words:
            found[words[words.index("--executor-id") + 1]] = int(place.name)
    return found


class Killer(threading.Thread):
    """Waits until some of the tasks that rank are done and some are not, and ends an executor without a word."""

    def __init__(self, context: Any, tasks: int) -> None:
        super().__init__(daemon=True)
        self.context, self.tasks = context, tasks
        self.killed = ""
        self.before = 0

    def run(self) -> None:
        """Look at the stages until the one that ranks is under way."""
        status = self.context.statusTracker()
        while not self.killed:
            for stage in status.getActiveStageIds():
                facts = status.getStageInfo(stage)
                if facts is not None and facts.numTasks == self.tasks and 0 < facts.numCompletedTasks < self.tasks / 2:
                    self.before = facts.numCompletedTasks
                    number, process = min(executors(self.context.applicationId).items())
                    os.kill(process, signal.SIGKILL)
                    self.killed = number
                    return
            time.sleep(0.01)


def events(folder: Path) -> list[dict[str, Any]]:
    """What Spark has written into its log of events."""
    (file,) = folder.iterdir()
    return [json.loads(line) for line in file.read_text().splitlines()]


def small(folder: Path) -> dict[str, str]:
    """Settings of a session of the tests on several processes, whose events lie in ``folder/events``."""
    (folder / "events").mkdir()
    return {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
        "spark.local.dir": str(folder / "scratch"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": f"file:{folder / 'events'}",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
    }


def cluster(folder: Path, more: Mapping[str, str] | None = None) -> Any:
    """Return a session on two executors in processes of their own, which logs its events into ``folder/events``."""
    os.environ["SPARK_HOME"] = str(home(folder))
    from pyspark.sql import SparkSession

    settings = small(folder) | {"spark.executor.memory": "1g", "spark.executor.pyspark.memory": "2g"}
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("concordant tests")
    for name, value in {**settings, **(more or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(log: str, ranking: str, folder: Path, kills: int = 0, seed: int = 0) -> dict[str, Any]:
    """Rank, and return what happened."""
    session = cluster(folder)
    from concordant.apps.commands.output import write
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.ranking import ranked, ranking_of

    judged = JudgedQueries.of(log, session, task=TASK)
    there = executors(session.sparkContext.applicationId)
    killer = Killer(session.sparkContext, judged.buckets)
    killer.start()
    board = ranking_of(ranked(judged, "bradley-terry", interval="hessian"), judged, "bradley-terry", "hessian", 0.95)
    killer.join(1)
    write(board.to_arrow(), ranking)
    drawn = drawn_kills(session, log, folder, executors, kills, seed)
    session.stop()
    told = events(folder / "events")
    removed = [event["Executor ID"] for event in told if event["Event"] == "SparkListenerExecutorRemoved"]
    ended = [event for event in told if event["Event"] == "SparkListenerTaskEnd"]
    return {
        "executors": len(there),
        "killed": killer.killed,
        "ranking tasks": judged.buckets,
        "ranking tasks before": killer.before,
        "lost": removed,
        "drawn kills": drawn,
        "failed tasks": sum(event["Task End Reason"]["Reason"] != "Success" for event in ended),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), *map(int, sys.argv[4:]))))

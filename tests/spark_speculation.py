"""A program: rank and fit on two hosts, one of them slow, with speculation on; print as JSON what Spark did.

``python spark_speculation.py LOG FEATURES FOLDER``: a standalone master and two workers that call themselves 127.0.0.2
and 127.0.0.3 (Spark tries a task again on another host only) are begun and ended here. ``FOLDER/ranking.parquet``,
``FOLDER/ranking`` (written by the tasks), ``FOLDER/fitted`` and Spark's own files are what is left.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spark_cluster import QUICK, events, small

SLOW = "12"
"""Seconds that each task of Python waits on the slow host, unless it is overtaken."""
PATIENCE = 240.0
TASK = 200
"""Rows of a task: ten of these."""


def begin(folder: Path, name: str, words: Sequence[str], more: dict[str, str]) -> subprocess.Popen[bytes]:
    """Begin a daemon of Spark; what it says goes to a file."""
    import pyspark

    spark = Path(pyspark.__file__).parent
    here = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"SPARK_HOME": str(spark), "PYTHONPATH": here, "SPARK_DAEMON_MEMORY": "256m"}
    environment |= {"SPARK_DAEMON_JAVA_OPTS": QUICK, **more}
    with (folder / f"{name}.log").open("wb") as said:
        return subprocess.Popen(
            [str(spark / "bin" / "spark-class"), f"org.apache.spark.deploy.{words[0]}", *words[1:]],
            env=environment, stdout=said, stderr=subprocess.STDOUT,
        )  # fmt: skip


def said(folder: Path, name: str, pattern: str, process: subprocess.Popen[bytes]) -> str:
    """Wait until a daemon has said something; return it."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        if found := re.search(pattern, (folder / f"{name}.log").read_text(errors="replace")):
            return found[1]
        time.sleep(0.05)
    raise RuntimeError(f"{name} is not there: {(folder / f'{name}.log').read_text(errors='replace')[-2000:]}")


@contextmanager
def two_hosts(folder: Path) -> Iterator[str]:
    """Return the address of a master with two workers of one core each, the second one slow; end all of them."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        words = ["master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        running.append(begin(folder, "master", words, {"SPARK_LOCAL_IP": "127.0.0.1"}))
        master = said(folder, "master", r"Starting Spark master at (spark://\S+)", running[0])
        for host, more in {"127.0.0.2": {}, "127.0.0.3": {"CONCORDANT_SLOW": SLOW}}.items():
            words = ["worker.Worker", "--host", host, "--webui-port", "0", "-c", "1", "-m", "1g"]
            words += ["-d", str(folder / "work"), master]
            running.append(begin(folder, host, words, {"SPARK_LOCAL_IP": host, **more}))
        for host, process in zip(["127.0.0.2", "127.0.0.3"], running[1:], strict=True):
            said(folder, host, r"(Successfully registered with master)", process)
        yield master
    finally:
        for process in reversed(running):  # a worker ends its executor, whose end is that of its Python
            process.terminate()
        for process in running:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(15)


def session_on(master: str, folder: Path) -> Any:
    """Return a session that tries a task again as soon as another one took less."""
    from pyspark.sql import SparkSession

    settings = small(folder) | {
        "spark.executor.memory": "800m",
        "spark.python.daemon.module": "spark_slow_daemon",
        "spark.locality.wait": "0",  # what was kept on one host is no reason for the other one to idle
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.efficiency.enabled": "false",
        "spark.speculation.task.duration.threshold": "1s",  # for stages of one task, which has nothing to be slow by
    }
    builder = SparkSession.builder.master(master).appName("concordant tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    deadline = time.monotonic() + PATIENCE
    while session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3:  # the driver is one
        if time.monotonic() > deadline:
            raise RuntimeError("the executors are not there")
        time.sleep(0.05)
    return session


def idle(session: Any) -> None:
    """Wait until no host has a task: the slow one goes on for a while with those that were overtaken."""
    tracker, deadline = session.sparkContext._jsc.sc().statusTracker(), time.monotonic() + PATIENCE
    while any(one.numRunningTasks() for one in tracker.getExecutorInfos()):
        if time.monotonic() > deadline:
            raise RuntimeError("a task does not end")
        time.sleep(0.05)


def attempts(told: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return how many second attempts there were, how many came first, and how the attempts ended that did not."""
    begun = [event["Task Info"] for event in told if event["Event"] == "SparkListenerTaskStart"]
    ended = [event for event in told if event["Event"] == "SparkListenerTaskEnd"]
    first = [event for event in ended if event["Task Info"]["Speculative"]]
    return {
        "second attempts": sum(task["Speculative"] for task in begun),
        "hosts": sorted({task["Host"] for task in begun}),
        "second came first": sum(event["Task End Reason"]["Reason"] == "Success" for event in first),
        "ends": dict(Counter(event["Task End Reason"]["Reason"] for event in ended)),
    }


def main(log: str, features: str, folder: Path) -> dict[str, Any]:
    """Rank, let the tasks write a ranking, fit; return how often tasks were tried twice in each."""
    import concordant
    from concordant.apps.commands.output import write
    from concordant.apps.models.saving import save_model
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.ranking import ranked, ranking_of, write_ranking
    from concordant.spark import fit, read

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with two_hosts(folder) as master:
        session = session_on(master, folder)
        try:

            def group(work: str) -> None:
                idle(session)
                session.sparkContext.setJobDescription(work)

            group("count")
            counted = read(log, session=session)
            group("rank")
            judged = JudgedQueries.of(log, session, task=TASK)
            rows = ranked(judged, "bradley-terry", interval="hessian")
            write(
                ranking_of(rows, judged, "bradley-terry", "hessian", 0.95).to_arrow(), str(folder / "ranking.parquet")
            )
            group("write")
            written, notes = write_ranking(rows, judged, str(folder / "ranking"))
            group("fit")
            save_model(
                fit(log, features, session=session),
                str(folder / "fitted"), about={"log": log, "features": features},
            )  # fmt: skip
            idle(session)  # so that all ends are written down
        finally:
            session.stop()
    told = events(folder / "events")
    stages: dict[str, set[int]] = {}
    for event in told:
        if event["Event"] == "SparkListenerJobStart":
            work = event["Properties"].get("spark.job.description", "")
            stages.setdefault(work, set()).update(event["Stage IDs"])
    return {
        "of": {
            work: attempts([event for event in told if event.get("Stage ID") in ids]) for work, ids in stages.items()
        },
        "rows": written,
        "notes": [str(note) for note in notes],
        "same counts": bool(counted == concordant.read(log)),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))))

"""Executors of a local cluster killed at drawn times while Spark counts, fits, ranks and writes.

``python spark_kills.py ROUNDS [SEED]`` makes a log and a cluster of its own and prints what became of each round; exit
status 1 where an answer was another one, an error was not one of the package's, or output was left half written.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

__all__ = ["drawn_kills"]

TASK = 1500
FIRST = 4.0
"""Seconds that a piece of work is taken for until it was seen."""
Executors = Callable[[str], dict[str, int]]


class Killer(threading.Thread):
    """Ends one executor, or all that there are, after some seconds, and another time while the work goes on."""

    def __init__(self, session: Any, executors: Executors, random: Random, usual: float) -> None:
        super().__init__(daemon=True)
        self.application, self.executors = session.sparkContext.applicationId, executors
        self.moments = sorted(random.uniform(0, usual) for _ in range(random.choice([1, 1, 2])))
        self.all = random.random() < 0.25
        self.over = threading.Event()
        self.killed = 0

    def run(self) -> None:
        """Kill at each moment, where the work is not over by then."""
        began = time.monotonic()
        for moment in self.moments:
            if self.over.wait(max(0.0, began + moment - time.monotonic())):
                return
            for process in sorted(self.executors(self.application).values())[: None if self.all else 1]:
                try:
                    os.kill(process, signal.SIGKILL)
                    self.killed += 1
                except ProcessLookupError:
                    pass


def drawn_kills(
    session: Any, log: str, folder: Path, executors: Executors, rounds: int, seed: int
) -> list[dict[str, Any]]:
    """Do a drawn piece of work in each round while executors are killed; return what became of each."""
    if rounds == 0:
        return []
    import pyarrow.parquet

    import concordant as cc
    from concordant.apps.models.saving import save_model
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.ranking import ranked, write_ranking
    from concordant.apps.spark.telling import told
    from concordant.errors import ConcordantError
    from concordant.learning.rankers.aggregation import AggregationRanker
    from concordant.spark import fit

    random, rng = Random(seed), np.random.default_rng(seed)
    prefs = cc.read(log)
    items = prefs.items.tolist()
    rows = {"query": np.repeat(prefs.queries.tolist(), len(items)), "item": items * len(prefs.queries)}
    features = {**rows, "x": rng.normal(size=len(rows["item"])), "y": rng.normal(size=len(rows["item"]))}

    def ranker() -> Any:
        return AggregationRanker("log-odds", order="all", regressor=None, informed=False, ridge=0.01)

    bounds = ["lower", "upper"]
    board = cc.rank(prefs, "borda", interval="none").to_arrow().drop(bounds)
    coefficients = ranker().fit(features, prefs).coef_
    pyarrow.parquet.write_table(pyarrow.table(features), folder / "features.parquet")

    def count(_: Path) -> bool:
        return bool(cc.read(log, engine=session) == prefs)

    def write(out: Path) -> bool:
        judged = JudgedQueries.of(log, session, task=TASK)
        number, _ = write_ranking(ranked(judged, "borda", interval="none"), judged, str(out))
        order = [("query", "ascending"), ("component", "ascending"), ("rank", "ascending"), ("item", "ascending")]
        found = pyarrow.parquet.read_table(out).drop(bounds).sort_by(order)
        return number == len(board) and found.to_pylist() == board.cast(found.schema).sort_by(order).to_pylist()

    def learn(out: Path) -> bool:
        with told(log):
            fitted = fit(ranker(), log, str(folder / "features.parquet"), session=session)
        save_model(fitted, str(out), about={"log": log, "features": "features.parquet"})
        return bool(np.allclose(fitted.coef_, coefficients, rtol=0, atol=1e-9))

    work = {"count": count, "write": write, "learn": learn}
    usual, found = dict.fromkeys(work, FIRST), []
    for number in range(rounds):
        name = random.choice(list(work)) if number >= len(work) else list(work)[number]
        out = folder / f"out{number}"
        deadline = time.monotonic() + 60
        while not executors(session.sparkContext.applicationId) and time.monotonic() < deadline:
            time.sleep(0.05)
        killer = Killer(session, executors, random, usual[name])
        killer.start()
        began = time.monotonic()
        try:
            became = "equal" if work[name](out) else "ANOTHER ANSWER"
        except ConcordantError as error:
            said = str(error)
            became = "error" if said.isprintable() and len(said) < 3000 else f"AN UNCLEAR ERROR {said!r}"
            became += ", BUT OUTPUT WAS LEFT" if out.exists() else f": {said[:200]}"
        except Exception as error:
            became = f"A CRASH {type(error).__name__}: {str(error)[:500]}"
        took = time.monotonic() - began
        killer.over.set()
        killer.join()
        if not killer.killed:
            usual[name] = took
        left = sorted(path.name for path in folder.iterdir() if path.name.startswith((".out", ".concordant", "out")))
        if left not in ([], [out.name]):
            became += f" LEFT {left}"
        if out.is_dir():
            shutil.rmtree(out)
        found.append({"work": name, "killed": killer.killed, "seconds": round(took, 1), "became": became})
        if session.sparkContext._jsc.sc().isStopped():
            break
    return found


def main(rounds: int, seed: int) -> int:
    """Kill in a cluster of one's own, and say what became of it."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    import pyarrow as pa
    import pyarrow.parquet

    from spark_cluster import cluster, executors

    with tempfile.TemporaryDirectory(prefix="concordant-kills-") as name:
        folder = Path(name)
        (folder / "log").mkdir()
        rng = np.random.default_rng(seed)
        for part in range(4):
            first = rng.integers(0, 12, 3000)
            loser = (first + rng.integers(1, 12, 3000)) % 12
            rows = {"query": rng.integers(0, 90, 3000), "winner": first, "loser": loser}
            pyarrow.parquet.write_table(pa.table(rows), folder / "log" / f"{part}.parquet")
        session = cluster(folder)
        found = drawn_kills(session, str(folder / "log"), folder, executors, rounds, seed)
        session.stop()
    for each in found:
        print(each, flush=True)
    became = Counter((each["work"], each["became"][:40], each["killed"] > 0) for each in found)
    print(f"{len(found)} rounds, {sum(each['killed'] for each in found)} executors killed: {dict(became)}")
    return int(any(each["became"] != "equal" and not each["became"].startswith("error:") for each in found))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))

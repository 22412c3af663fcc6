"""``python -m benchmarks.beyond [task] [query] [fit] [blocks] [--large]``: what breaks first beyond one machine.

The model of 10^12 judgments in ``docs/scale.md`` names three risks. Each is simulated here by the code that would meet
it, on one machine, and its constant measured:

task    A task's memory: the receiver (``put_together``, then Preferences and ranking, some queries at a time) gets the
        packed pieces that 1/2^14 of the log would send it, 64 rows each, in a process of its own: peak memory and
        seconds by rows. ``--large`` simulates a task at its full size, 6·10^7 rows.
query   One query with 10^9 judgments: how many distinct ones it has, by its items and how unevenly they are drawn (the
        expected number, summed), and what one process needs to rank so many (peak memory, seconds).
fit     The default fit of 10^6 of these comparisons in one process, ten features: what its passes have to do.
blocks  The pieces of the shuffle: bytes and processor time a judgment in the sender by the number of tasks, and what
        Spark needs for each block (a shuffle of rows that are all head, local[2]).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import machine

PIECE = 64
"""Rows of a piece: a block of 2^20 rows, cut for 2^14 tasks."""
QUERY, ITEMS = 1000, 50
"""Judgments and items of a query of the model."""
TASKS, LARGE = (1 << 20, 1 << 21, 1 << 22, 1 << 23), 60_000_000
RANKED = (1_000_000, 4_000_000, 16_000_000)
CUTS = (1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16)
SENT = 1 << 22


def main(asked: list[str]) -> None:
    """Simulate what is asked for (all), one line of JSON for each figure."""
    print(json.dumps(machine()), flush=True)
    rows = (*TASKS, LARGE) if "--large" in asked else TASKS
    names = [name for name in asked if name != "--large"] or ["task", "query", "fit", "blocks"]
    if "task" in names:
        slopes("a task", "rows", [alone("task", size) for size in rows])
    if "query" in names:
        for items in (10**3, 10**4, 10**5, 10**6):
            say(what="distinct of 10^9 judgments", items=items, even=distinct(items, 0), uneven=distinct(items, 1))
        slopes("one query", "distinct", [alone("query", size) for size in RANKED])
    if "fit" in names:
        say(what="default fit", **alone("fit", 1_000_000))
    if "blocks" in names:
        for tasks in CUTS:
            say(what="sender", **alone("blocks", tasks))
        say(what="shuffle", **alone("shuffle", 1200))


def say(**figures: Any) -> None:
    """Print one line of JSON."""
    print(json.dumps(figures), flush=True)


def alone(work: str, size: int) -> dict[str, Any]:
    """Do one piece of work in a process of its own and return what it found."""
    command = [sys.executable, "-m", "benchmarks.beyond", "--alone", work, str(size)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def slopes(what: str, unit: str, found: list[dict[str, Any]]) -> None:
    """Print the figures and what one more unit costs between the first and the last of them."""
    for each in found:
        say(what=what, **each)
    more = found[-1][unit] - found[0][unit]
    for name in ("MiB", "processor"):
        slope = (found[-1][name] - found[0][name]) / more
        say(
            what=f"{what}: one more of {unit}",
            **({"bytes": round(slope * 2**20)} if name == "MiB" else {"µs": slope * 1e6}),
        )


def figures(begin: float, **beside: Any) -> dict[str, Any]:
    """Return the processor time since ``begin`` and the peak memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**beside, "processor": round(time.process_time() - begin, 2), "MiB": round(peak)}


def scattered(rows: int, queries: int) -> pa.Table:
    """Return comparisons of scattered 64-bit ids that hardly repeat, in no order."""
    rng = np.random.default_rng(3)
    query, a = rng.integers(0, queries, rows), rng.integers(0, ITEMS, rows)
    b = (a + rng.integers(1, ITEMS, rows)) % ITEMS
    label = rng.integers(0, 2**62, queries)
    names = {"winner": label[query] // 3 + a * 200_003, "loser": label[query] // 3 + b * 200_003}
    return pa.table({"query": label[query], **names})


def task(rows: int) -> dict[str, Any]:
    """One task of Spark on so many rows: put together what was sent, make preferences, rank them."""
    from concordant.apps.spark import frames, partitioning, ranking
    from concordant.apps.spark.checking import ROWS, Checks
    from concordant.io.layouts import find_layout

    table = scattered(rows, rows // QUERY).append_column(ROWS, pa.array(np.ones(rows, np.int64)).cast(pa.int8()))
    streams = [partitioning._stream(table.slice(at, PIECE)) for at in range(0, rows, PIECE)]
    sent = sum(map(len, streams)) / rows
    del table
    at_start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def batches() -> Iterator[pa.RecordBatch]:
        """The pieces as they come from the network, each gone once it is read."""
        while streams:
            some = [streams.pop() for _ in range(min(1000, len(streams)))]
            yield pa.record_batch(
                [pa.array([0] * len(some), pa.int32()), pa.array(some, pa.binary())], schema=partitioning.PACKED
            )

    begin = time.process_time()
    layout = find_layout(("query", "winner", "loser"), name="log")
    judged = Checks(layout)
    made = 0
    work = partial(ranking._rows, structure="bradley-terry", asked={"interval": "none"})
    together = partitioning.put_together(batches(), frames.MOST)
    assert together is not None
    for some in frames._pieces(together, frames.TASK):
        made += len(work(judged.preferences(some)))
    return figures(begin, rows=rows, ranked=made, sent=round(sent, 1), start=round(at_start))


def query(size: int) -> dict[str, Any]:
    """One query with so many distinct judgments, a thousand for each item: the driver's work."""
    import concordant as cc

    rng = np.random.default_rng(5)
    items = size // 1000
    a = rng.integers(0, items, size)
    table = pa.table({"winner": a, "loser": (a + rng.integers(1, items, size)) % items})
    begin = time.process_time()
    prefs = cc.read(table)
    board = cc.rank(prefs, interval="none")
    return figures(begin, distinct=len(prefs), items=len(board))


def fit(rows: int) -> dict[str, Any]:
    """The default fit in memory: informed, its ridge from held-out judgments, with its gate."""
    import concordant as cc

    rng = np.random.default_rng(7)
    queries = rows // QUERY
    X = rng.normal(size=(queries, ITEMS, 10))
    score = X[:, :, 0] + rng.normal(size=(queries, ITEMS))
    query, a = rng.integers(0, queries, rows), rng.integers(0, ITEMS, rows)
    b = (a + rng.integers(1, ITEMS, rows)) % ITEMS
    up = rng.random(rows) < 1 / (1 + np.exp(score[query, b] - score[query, a]))
    prefs = cc.read({"query": query, "winner": np.where(up, a, b), "loser": np.where(up, b, a)})
    known = {"query": np.repeat(np.arange(queries), ITEMS), "item": np.tile(np.arange(ITEMS), queries)}
    features = known | {f"x{place}": X[:, :, place].ravel() for place in range(10)}
    begin = time.process_time()
    cc.AggregationRanker().fit(features, prefs)
    found = figures(begin, rows=rows)
    return found | {"µs": round(found["processor"] / rows * 1e6, 2)}


def distinct(items: int, unevenness: float, judgments: float = 1e9) -> int:
    """Return the expected number of distinct ordered pairs, items drawn with odds 1 / rank ** unevenness."""
    share = np.arange(1, items + 1, dtype=float) ** -unevenness
    share /= share.sum()
    group = np.unique(np.geomspace(1, items, min(items, 2000)).astype(np.int64))  # items of about equal share together
    sizes = np.diff([0, *group])
    mean = np.add.reduceat(share, [0, *group[:-1]]) / sizes
    each = -np.expm1(judgments * np.log1p(-np.minimum(np.outer(mean, mean), 0.5)))
    return int(sizes @ each @ sizes)


def blocks(tasks: int) -> dict[str, Any]:
    """A sender that packs rows for so many tasks."""
    from concordant.apps.spark import partitioning

    table = scattered(SENT, 1 << 20)
    bucket = (table["query"].to_numpy() * 0x9E3779B1 >> 16).astype(np.int64) % tasks
    table = table.append_column(partitioning.BUCKET, pa.array(bucket.astype(np.int32)))
    begin = time.process_time()
    sent = 0
    for batch in partitioning.spread(
        iter(table.to_batches(max_chunksize=10_000)), table.column_names[:-1], counting=True
    ):
        sent += batch.nbytes
    found = figures(begin, tasks=tasks, bytes=round(sent / SENT, 1))
    return found | {"µs": round(found["processor"] / SENT * 1e6, 2)}


def shuffle(most: int) -> dict[str, Any]:
    """What Spark needs for one block more: seconds of all processes with few and many senders and receivers."""
    from pyspark.sql import SparkSession

    quiet = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "false",
    }
    session = SparkSession.builder.master("local[2]").config(map=quiet).getOrCreate()
    few = most // 8
    spent: dict[tuple[int, int], float] = {}
    for senders, receivers in ((few, few), (few, few), (few, most), (most, few), (most, most)):  # the first warms Java
        processor = _children()
        session.range(0, senders * receivers, 1, senders).repartition(receivers).count()
        spent[senders, receivers] = _children() - processor
    session.stop()
    beyond = spent[most, most] - spent[most, few] - spent[few, most] + spent[few, few]
    each = {f"{senders} × {receivers}": round(seconds, 1) for (senders, receivers), seconds in spent.items()}
    return {"processor": each, "µs a block": round(beyond / (most - few) ** 2 * 1e6, 2)}


def _children() -> float:
    from benchmarks.spark_scale import family

    return sum(seconds for _, _, seconds in family(os.getpid()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        say(
            **{"task": task, "query": query, "fit": fit, "blocks": blocks, "shuffle": shuffle}[sys.argv[2]](
                int(sys.argv[3])
            )
        )
    else:
        main(sys.argv[1:])

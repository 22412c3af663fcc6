"""``python -m benchmarks.spark_scale FILE [MASTER …]``: rank a large log on Spark and, beside it, with DuckDB.
``python -m benchmarks.spark_scale fit FOLDER ROWS [MASTER …]``: the default fit of comparisons drawn into a folder.
``python -m benchmarks.spark_scale query FOLDER ROWS ITEMS [MASTER …]``: one query of so many comparisons and items.
``python -m benchmarks.spark_scale people FOLDER ROWS ITEMS PEOPLE [MASTER …]``: such a query by so many people, whose
judgments are clusters, ranked with the intervals that nobody asked for; ``people=bootstrap`` with those.
``python -m benchmarks.spark_scale intervals FOLDER ROWS ITEMS [MASTER …]``: such a query by nobody in particular, with
the intervals that nobody asked for.
``python -m benchmarks.spark_scale alone FOLDER ROWS ITEMS [MASTER …]``: the same with a prior by the data and without
intervals, which is not divided: one task ranks it, and may take 12 GB.
``python -m benchmarks.spark_scale grades FOLDER ROWS ITEMS [MASTER …]``: the same with three grades and thresholds.
``python -m benchmarks.spark_scale covariates FOLDER ROWS ITEMS PEOPLE [MASTER …]``: by people, with a covariate;
``covariates=bootstrap`` with 40 replicates of a bootstrap, of judgments where PEOPLE is 0.
``python -m benchmarks.spark_scale lists FOLDER LISTS ITEMS [MASTER …]``: one query of so many rankings of five items,
with the intervals that nobody asked for; by another structure than plackett-luce: ``lists=copeland``. ``ties``, or
``ties=bradley-terry``: of rankings with ties, which have parameters of their own.
``python -m benchmarks.spark_scale redrawn FOLDER LISTS ITEMS [MASTER …]``: the same with 200 replicates of a bootstrap;
by another structure ``redrawn=borda``. ``redrawn-ties``: with 40, of rankings with ties, which have parameters.
``python -m benchmarks.spark_scale divided FOLDER ROWS ITEMS MOST [MASTER …]``: the default fit of such a query, which
tasks that hold MOST distinct judgments have to divide; ``divided=rankings`` of so many rankings of five items.

Every contender is the command ``concordant rank FILE --interval none`` (or ``concordant fit``, with nothing named but
features) in a process of its own, from its start to the ranking or model in a file. Beside them may stand two floors,
which no command on Spark goes below: ``start`` begins a session and runs an empty job, ``count`` is plain PySpark that
reads the file and groups equal rows, each with the settings that are best for it (``start local[2]`` as a master).
Memory is the sum over its processes of what each has for itself and its part of what they share (PSS), the largest
seen, for Java and for Python apart, with the largest of the driver's Python and of one worker; bytes shuffled come
from Spark's log of events. One line of JSON for each.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet

from benchmarks.cases import Case, Row
from benchmarks.measure import load, machine
from benchmarks.votes import write_features, write_orders, write_queries, write_scattered
from concordant.apps.models.saving import load_model, save_model

MASTERS = ("duckdb", "local[2]", "local-cluster[1,1,2048]", "local-cluster[2,1,2048]")
FLOORS = ("start", "count")
SKEW = ("duckdb", "local[2]", "start local[2]", "count local[2]")
PYTHON = "3g"
"""Address space of a Python worker, which Spark's setting spark.executor.pyspark.memory bounds."""
EVERY = 0.25
SCORES = ("rank", "--interval", "none")
"""Scores, without intervals."""
WHOLE = (*SCORES, "--prior", "auto")
"""What is not divided."""


def main(file: str, masters: list[str]) -> None:
    """Measure each contender on a file and say how they compare."""
    print(json.dumps(machine()), flush=True)
    judgments = pyarrow.parquet.ParquetFile(file).metadata.num_rows
    first: dict[str, Any] | None = None
    for master in masters:
        with tempfile.TemporaryDirectory(prefix="concordant-spark-", dir=Path(file).parent) as folder:
            figures = contender(file, master, Path(folder), judgments)
        first = first or figures
        figures["times the first"] = round(figures["seconds"] / first["seconds"], 2)
        print(json.dumps({"master": master, "judgments": judgments, **figures}), flush=True)


def fits(folder: Path, rows: int, masters: list[str]) -> None:
    """Measure the default fit of so many comparisons of 10^4 queries × 50 items with 10 features by each contender."""
    print(json.dumps(machine()), flush=True)
    log = write_queries(folder / f"queries-{rows}-10000-50.parquet", rows, 10_000, 50)
    features = write_features(folder / "features-10000-50.parquet", 10_000, 50)
    for master, figures in fitted(log, features, folder, masters, rows):
        print(json.dumps({"fit": master, "judgments": rows, **figures}), flush=True)


def one_query(folder: Path, rows: int, items: int, masters: list[str], people: int = 0, length: float = 0.0,
    asked: Sequence[str] = SCORES, grades: int = 0, interval: str = "auto",
) -> None:  # fmt: skip
    """Rank one query of so many comparisons by each contender, and say how far its scores are from the first's."""
    print(json.dumps(machine()), flush=True)
    whose = (f"-{people}" if people else "") + ("-length" if length else "")
    whose += f"-grades-{grades}" if grades else ""
    log = folder / f"one-query-{rows}-{items}{whose}.parquet"
    write_queries(log, rows, 1, items, people=people, length=length, grades=grades)
    by = ("--cluster", "person") if people else ()
    drawn = ("--replicates", "40") if interval == "bootstrap" and length else ()
    asked = ("rank", *by, "--interval", interval, *drawn) if people or drawn else asked
    ranked(log, rows, items, (*asked, "--covariate", "length") if length else asked, folder, masters)


def lists(
    folder: Path,
    number: int,
    items: int,
    masters: list[str],
    structure: str,
    *,
    ties: bool = False,
    drawn: bool = False,
) -> None:
    """Rank the items of one query of so many rankings of five of them by each contender, as ``one_query`` does."""
    print(json.dumps(machine()), flush=True)
    asked = ["--ties", "davidson", "--unranked", "missing"] if ties else []
    asked += ["--interval", "bootstrap", "--replicates", "40" if ties else "200"] if drawn else []
    log = folder / f"orders-{number}-{items}{'-tied' * ties}.parquet"
    write_orders(log, number, items, 5, tiers=3 if ties else 99)
    ranked(log, number, items, ("rank", "--structure", structure, *asked), folder, masters)


def ranked(log: Path, rows: int, items: int, work: Sequence[str], folder: Path, masters: list[str]) -> None:
    """Rank a log of one query by each contender, and say how far the rows are from the first's."""
    first: pyarrow.Table | None = None
    for master in masters:
        with tempfile.TemporaryDirectory(prefix="concordant-spark-", dir=folder) as own:
            figures = contender(str(log), master, Path(own), rows, work=work)
            found = pyarrow.parquet.read_table(Path(own) / "ranking.parquet").sort_by("item")
        first = first or found
        for name in found.column_names:
            mine, other = found[name].to_pandas(), first[name].to_pandas()
            if mine.dtype == float and mine.isna().all() and other.isna().all():
                continue
            if mine.dtype == float:
                figures[f"{name} apart"] = float(np.abs(mine - other).max())
            elif not mine.equals(other):
                figures.setdefault("columns that differ", []).append(name)
        print(json.dumps({"one query": master, "judgments": rows, "items": items, **figures}), flush=True)


def fit_on_spark(folder: Path, scale: float) -> Case:
    """The default fit of 10^8 comparisons of 10^4 queries × 50 items, 10 features, on Spark and by one process."""
    rows = int(1e8 * scale)
    case = Case(f"default fit of {rows:,} comparisons, 10,000 queries × 50 items, Spark beside one process")
    log = write_queries(folder / f"queries-{rows}-10000-50.parquet", rows, 10_000, 50)
    features = write_features(folder / "features-10000-50.parquet", 10_000, 50)
    apart = 0.0
    for master, figures in fitted(log, features, folder, ["duckdb", "local[2]"], rows):
        result = {"best": figures["seconds"], "first": figures["seconds"], "busy": figures["processor"]}
        note = "" if master == "duckdb" else _note(figures)
        case.rows.append(Row(f"concordant fit, {master}", result | {"peak": float(figures["peak MiB"]["all"])}, note))
        print(f"    {master}: {figures}", flush=True)
        apart = max(apart, figures["coefficients apart"])
    case.bar("local[2] / one process, time", case.rows[1].seconds / case.rows[0].seconds, "×", most=4)
    case.bar("coefficients apart, of the largest", apart, "", most=1e-8)
    return case


def fitted(
    log: Path, features: Path, folder: Path, masters: Sequence[str], rows: int, most: int = 0
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the figures of each contender's default fit, and how far its coefficients are from the first's."""
    first: tuple[float, np.ndarray] | None = None
    for master in masters:
        with tempfile.TemporaryDirectory(prefix="concordant-spark-", dir=folder) as own:
            figures = contender(str(log), master, Path(own), rows, str(features), most)
            theta = coefficients(Path(own) / "model")
        first = first or (figures["seconds"], theta)
        figures["times the first"] = round(figures["seconds"] / first[0], 2)
        figures["coefficients apart"] = float(np.abs(theta - first[1]).max() / np.abs(first[1]).max())
        yield master, figures


def coefficients(model: Path) -> np.ndarray:
    """The coefficients of a saved model, raw."""
    return np.asarray(load_model(str(model)).coef_)


def on_spark(folder: Path, scale: float) -> Case:
    """10^8 comparisons of 10^4 queries × 50 items ranked on Spark and with DuckDB, whole commands."""
    rows = int(1e8 * scale)
    case = Case(f"{rows:,} comparisons, 10,000 queries × 50 items, Spark beside DuckDB, whole commands")
    log = write_queries(folder / f"queries-{rows}-10000-50.parquet", rows, 10_000, 50)
    scattered = write_scattered(folder / f"scattered-{rows // 5}.parquet", rows // 5, max(1, rows // 5000))
    skewed = write_queries(folder / f"skewed-{rows // 5}-1000-20.parquet", rows // 5, 1_000, 20, first=0.5)
    works = [(log, rows, master, "") for master in MASTERS]
    works += [(scattered, rows // 5, master, f", {rows // 5:,} of scattered ids") for master in MASTERS[:2]]
    works += [(skewed, rows // 5, master, f", {rows // 5:,}, half of them in one query") for master in SKEW]
    for file, judgments, master, what in works:
        with tempfile.TemporaryDirectory(prefix="concordant-spark-", dir=folder) as own:
            figures = contender(str(file), master, Path(own), judgments)
        seconds, peak = figures["seconds"], figures["peak MiB"]
        note = "" if "executors" not in figures else _note(figures)
        result = {"best": seconds, "first": seconds, "busy": figures["processor"], "peak": float(peak["all"])}
        case.rows.append(Row(f"concordant rank, {master}{what}", result, note))
        print(f"    {master}{what}: {seconds} s, {figures['processor']} s of processor, {peak} MiB, {note}", flush=True)
    duckdb, local, *_, plain, skew, _, count = case.rows
    case.bar("local[2] / DuckDB, time", local.seconds / duckdb.seconds, "×", most=4)
    case.bar("local[2] / DuckDB, half in one query, time", skew.seconds / plain.seconds, "×", most=3)
    case.bar("local[2] / plain PySpark that counts, half in one query, time", skew.seconds / count.seconds, "×", most=1)
    return case


def _note(figures: dict[str, Any]) -> str:
    peak = figures["peak MiB"]
    return (
        f"{figures['executors']} executors, Java {peak['java']:,} MiB, Python {peak['python']:,} MiB (each at its "
        f"peak), {figures['shuffled bytes a judgment']} bytes shuffled a judgment, {figures['spilled bytes']:,} spilled"
    )


def divided(folder: Path, rows: int, items: int, most: int, masters: list[str], *, rankings: bool = False) -> None:
    """Measure the default fit of one query, which no task of Spark may hold, by each contender."""
    print(json.dumps(machine()), flush=True)
    if rankings:
        log = write_orders(folder / f"orders-{rows}-{items}.parquet", rows, items, 5)
    else:
        log = write_queries(folder / f"one-query-{rows}-{items}.parquet", rows, 1, items)
    features = write_features(folder / f"features-1-{items}.parquet", 1, items)
    if rankings:  # of a log without queries
        table = pyarrow.parquet.read_table(features).drop_columns("query")
        pyarrow.parquet.write_table(table, features := folder / f"features-{items}.parquet")
    for master, figures in fitted(log, features, folder, masters, rows, most):
        print(json.dumps({"divided": master, "judgments": rows, "items": items, **figures}), flush=True)


def divided_fit(file: str, features: str, model: str, master: str, most: int) -> None:
    """Fit with nothing named on Spark, whose tasks hold so many distinct judgments of a query."""
    from concordant.spark import fit

    save_model(fit(file, features, master=master, most=most), model)


def contender(
    file: str,
    master: str,
    folder: Path,
    judgments: int,
    features: str = "",
    most: int = 0,
    work: Sequence[str] = SCORES,
) -> dict[str, Any]:
    """Rank (or, with features, fit) once; seconds, seconds of the processor, memory and what was shuffled."""
    environment = dict(os.environ)
    if features:
        work = ["fit", "-f", features, "-m", str(folder / "model")]
    arguments = [sys.executable, "-m", "concordant", work[0], file, "-q", *work[1:]]
    if master.split()[0] in FLOORS:
        arguments = [sys.executable, "-m", "benchmarks.spark_scale", file, *master.split()]
    elif master != "duckdb":
        environment |= settings(folder, PYTHON if tuple(work) != WHOLE else "12g")
        arguments += ["--engine", "spark", "--master", master]
        if most:
            given = [file, features, str(folder / "model"), master, str(most)]
            arguments = [sys.executable, "-m", "benchmarks.spark_scale", "divided-fit", *given]
    if not features:
        arguments += ["-o", str(folder / "ranking.parquet")]
    begin = time.perf_counter()
    process = subprocess.Popen(arguments, env=environment)
    peak = {"java": 0.0, "python": 0.0, "all": 0.0, "driver": 0.0, "one worker": 0.0}
    processor: dict[tuple[int, str], float] = {}
    while process.poll() is None:
        now = {"java": 0.0, "python": 0.0, "driver": 0.0, "one worker": 0.0}
        for number, name, seconds in family(process.pid):
            processor[number, name] = seconds
            size = proportional(number)
            now["java" if name == "java" else "python"] += size
            if name != "java":
                part = "driver" if number == process.pid else "one worker"
                now[part] = max(now[part], size)
        now["all"] = now["java"] + now["python"]
        peak = {part: max(peak[part], now[part]) for part in peak}
        time.sleep(EVERY)
    seconds = time.perf_counter() - begin
    if process.returncode:
        raise SystemExit(f"{master}: ended with status {process.returncode}")
    figures = {
        "seconds": round(seconds, 1),
        "processor": round(sum(processor.values()), 1),
        "of it Java": round(sum(seconds for (_, name), seconds in processor.items() if name == "java"), 1),
        "peak MiB": {part: round(size) for part, size in peak.items()},
        "load": load(),
    }
    if not features:
        figures["rows"] = pyarrow.parquet.ParquetFile(folder / "ranking.parquet").metadata.num_rows
    return figures | shuffled(folder / "events", judgments) if (folder / "events").exists() else figures


def floor(file: str, what: str, master: str, output: str) -> None:
    """Do the least that a program on Spark can do, and write what comes of it."""
    from pyspark.sql import SparkSession

    given = {
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    session = SparkSession.builder.master(master).config(map=given).getOrCreate()
    frame = session.range(1) if what == "start" else session.read.parquet(file)
    pyarrow.parquet.write_table(frame.groupBy(*frame.columns).count().toArrow(), output)


def settings(folder: Path, python: str = PYTHON) -> dict[str, str]:
    """Settings for every session that is made with this environment: its events are logged, its workers bounded."""
    import pyspark

    for name in ("home", "events", "conf", "scratch"):
        (folder / name).mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (folder / "home" / part.name).symlink_to(part)  # executors of a local cluster work in $SPARK_HOME/work
    given = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": f"file:{folder / 'events'}",
        "spark.executor.memory": "2g",
        "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",  # G1 finds no room for large rows in so small a heap
        "spark.executor.pyspark.memory": python,
        "spark.local.dir": str(folder / "scratch"),
    }
    text = "".join(f"{name} {value}\n" for name, value in given.items())
    (folder / "conf" / "spark-defaults.conf").write_text(text)
    return {
        "SPARK_HOME": str(folder / "home"),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }


def family(root: int) -> list[tuple[int, str, float]]:
    """The processes that descend from one: number, name, seconds of the processor so far."""
    children: dict[int, list[int]] = {}
    facts: dict[int, tuple[str, float]] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                text = (place / "stat").read_text()
            except OSError:
                continue
            name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
            ticks = int(rest[11]) + int(rest[12])
            children.setdefault(int(rest[1]), []).append(int(place.name))
            facts[int(place.name)] = (name, ticks / os.sysconf("SC_CLK_TCK"))
    found, waiting = [], [root]
    while waiting:
        number = waiting.pop()
        if number in facts:
            found.append((number, *facts[number]))
        waiting += children.get(number, [])
    return found


def proportional(process: int) -> float:
    """Proportional memory of a process in MiB, 0 when it has ended."""
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def shuffled(folder: Path, judgments: int) -> dict[str, Any]:
    """What Spark's log of events says of the shuffle, and of the work of the tasks."""
    (file,) = folder.iterdir()
    written = spilled = 0
    milliseconds = 0
    executors = set()
    for line in file.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] != "SparkListenerTaskEnd":
            continue
        numbers = event["Task Metrics"]
        written += numbers["Shuffle Write Metrics"]["Shuffle Bytes Written"]
        spilled += numbers["Disk Bytes Spilled"]
        milliseconds += numbers["Executor Run Time"]
        executors.add(event["Task Info"]["Executor ID"])
    return {
        "executors": len(executors),
        "shuffled bytes": written,
        "shuffled bytes a judgment": round(written / judgments, 2),
        "spilled bytes": spilled,
        "task seconds": round(milliseconds / 1000, 1),
    }


if __name__ == "__main__":
    if sys.argv[1] == "fit":
        fits(Path(sys.argv[2]), int(float(sys.argv[3])), sys.argv[4:] or ["duckdb", "local[2]"])
    elif sys.argv[1] == "query":
        rows, items = (int(float(each)) for each in sys.argv[3:5])
        one_query(Path(sys.argv[2]), rows, items, sys.argv[5:] or ["duckdb", "local-cluster[2,1,2048]"])
    elif sys.argv[1] == "intervals":
        rows, items = (int(float(each)) for each in sys.argv[3:5])
        one_query(Path(sys.argv[2]), rows, items, sys.argv[5:] or ["duckdb", "local[2]"], asked=("rank",))
    elif sys.argv[1] == "alone":
        rows, items = (int(float(each)) for each in sys.argv[3:5])
        one_query(Path(sys.argv[2]), rows, items, sys.argv[5:] or ["duckdb", "local[2]"], asked=WHOLE)
    elif sys.argv[1] == "grades":
        rows, items = (int(float(each)) for each in sys.argv[3:5])
        graded = ("rank", "--ties", "cumulative")
        one_query(Path(sys.argv[2]), rows, items, sys.argv[5:] or ["duckdb", "local[2]"], asked=graded, grades=3)
    elif sys.argv[1] in ("people", "people=bootstrap", "covariates", "covariates=bootstrap"):
        rows, items, people = (int(float(each)) for each in sys.argv[3:6])
        one_query(
            Path(sys.argv[2]),
            rows,
            items,
            sys.argv[6:] or ["duckdb", "local[2]"],
            people,
            0.5 * sys.argv[1].startswith("covariates"),
            interval=sys.argv[1].partition("=")[2] or "auto",
        )
    elif sys.argv[1].partition("=")[0] in ("lists", "ties", "redrawn", "redrawn-ties"):
        rows, items = (int(float(each)) for each in sys.argv[3:5])
        structure = sys.argv[1].partition("=")[2] or "plackett-luce"
        masters = sys.argv[5:] or ["duckdb", "local[2]"]
        how = {"ties": "ties" in sys.argv[1].partition("=")[0], "drawn": sys.argv[1].startswith("redrawn")}
        lists(Path(sys.argv[2]), rows, items, masters, structure, **how)
    elif sys.argv[1] in ("divided", "divided=rankings"):
        rows, items, most = (int(float(each)) for each in sys.argv[3:6])
        given = Path(sys.argv[2]), rows, items, most, sys.argv[6:] or ["duckdb", "local[2]"]
        divided(*given, rankings="=" in sys.argv[1])
    elif sys.argv[1] == "divided-fit":
        divided_fit(*sys.argv[2:6], most=int(sys.argv[6]))
    elif sys.argv[2:3] and sys.argv[2] in FLOORS:
        floor(*sys.argv[1:4], output=sys.argv[5])
    else:
        main(sys.argv[1], sys.argv[2:] or list(MASTERS))

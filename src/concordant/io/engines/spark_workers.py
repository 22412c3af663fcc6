"""What the Python workers of executors have and lack: asked in a small job before the work, told in one sentence."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from concordant.errors import Unavailable
from concordant.io.engines.spark import FAILURES, HOW, chain, lacking
from concordant.io.engines.spark_session import is_connect, parallelism

resource: Any
try:
    import resource
except ImportError:  # not on every system
    resource = None

NEEDED = ("concordant", "numpy", "scipy", "pyarrow", "pandas", "duckdb")
"""Packages that tasks import; without Numba their loops run uncompiled."""
LEAST = 1024
"""MiB of address space that a worker takes before it works (libraries: about 900), and a little to work in."""
MANY = 64
"""Tasks that ask, at most; not every executor of a large cluster need be asked."""
_asked: set[str] = set()


def wanting(found: Sequence[Mapping[str, Any]], ours: str) -> list[str]:
    """Return what is wrong with the workers that answered: packages, another concordant than ours, memory.

    >>> wanting([{"python": "/bin/python", "lacks": ["scipy"], "concordant": "", "memory": 0}], "0.9")[0][:58]
    'their Python (/bin/python) has no scipy: install concordan'
    """
    said: dict[str, None] = {}
    for each in found:
        lacks, theirs, memory = each["lacks"], each["concordant"], each["memory"]
        if lacks:
            said[f"their Python ({each['python']}) has no {', '.join(lacks)}: {HOW}"] = None
        elif theirs and ours and theirs != ours:
            said[f"their Python ({each['python']}) has concordant {theirs}, and this is {ours}: install the same"] = (
                None
            )
        if 0 < memory < LEAST:
            said[
                f"a task has {memory:,} MiB for Python, which takes {LEAST:,} or more: raise "
                "spark.executor.pyspark.memory (which the cores of an executor share), or give executors fewer cores"
            ] = None
    return list(said)


def _probe(names: Sequence[str]) -> Callable[[int], str]:
    """Return what a worker is asked: plain Python, sent whole, as nothing of concordant may be there to run it."""

    def look(_: int) -> str:
        try:
            ours = version("concordant")
        except PackageNotFoundError:
            ours = ""
        lacks = [name for name in names if find_spec(name) is None]
        memory = 0 if resource is None else max(resource.getrlimit(resource.RLIMIT_AS)[0], 0) >> 20
        return json.dumps({"python": sys.executable, "lacks": lacks, "concordant": ours, "memory": memory})

    return look


def check_workers(session: SparkSession) -> None:
    """Ask the workers of a cluster, once for each session, whether tasks can run there.

    Workers of a local master are not asked: they are of this machine, and what they lack is told when a task fails.

    Errors (Unavailable): one sentence that names all that is lacking, and what to do.
    """
    if str(session.conf.get("spark.master", "") or "").split("[")[0] == "local":
        return
    who = str(session.session_id if is_connect(session) else session.sparkContext.applicationId)
    if who in _asked:
        return
    parts = min(parallelism(session), MANY)
    asking = fn.udf(_probe(NEEDED), "string", useArrow=False)
    try:
        rows = session.range(0, parts, 1, parts).select(asking("id").alias("said")).distinct().collect()
    except FAILURES as error:
        if (sentence := lacking(chain(error))) is None:
            raise
        raise Unavailable(f"Spark: {sentence}") from None
    if wrong := wanting([json.loads(row["said"]) for row in rows], _ours()):
        raise Unavailable(f"Spark: on the executors {'; '.join(wrong)}")
    _asked.add(who)


def _ours() -> str:
    try:
        return version("concordant")
    except PackageNotFoundError:
        return ""

"""One Spark session for every test that needs one, and why such tests are skipped where Spark cannot run.

A module of Spark tests says ``pytestmark = spark_tests`` and asks for the fixture ``spark``, or ``pytestmark = alone``.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

OLDEST_JAVA = 17
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.python.daemon.module": "spark_daemon",
    "spark.sql.codegen.wholeStage": "false",  # compiling takes longer than these tables
    "spark.sql.catalogImplementation": "in-memory",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
}

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java: many small jobs in one short process."""


@functools.cache
def why_not() -> str:
    """Return why no Spark can run here; empty where one can."""
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed: the extra [spark]"
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        return f"Spark needs Java {OLDEST_JAVA} or later; there is no java on the PATH or in JAVA_HOME"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < OLDEST_JAVA:
        return f"Spark needs Java {OLDEST_JAVA} or later, not {said.splitlines()[0] if said else java!r}"
    return ""


alone = [
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "Spark runs here"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Failed to set spark:UserWarning"),  # what a server has from its start
    pytest.mark.filterwarnings(
        "ignore:unclosed <socket:ResourceWarning"
    ),  # PySpark 4.1 leaves closing to the collector
]
"""Marks of tests that start a Spark of their own, in a process of its own."""
spark_tests = [*alone]
"""Marks of tests on the one Spark of their process."""


CONNECT = os.environ.get("CONCORDANT_SPARK") == "connect"
"""Whether the tests run against a local server of Spark Connect, which wants a process without any other session."""
connect = pytest.mark.skipif(not CONNECT, reason="make test-connect runs the tests on a server of Spark Connect")
classic = pytest.mark.skipif(CONNECT, reason="asks for what a session of Spark Connect does not have (sparkContext)")


def stop_java(session: Any) -> None:
    """Stop a session and its Java process, so that the next session starts with settings of its own."""
    if CONNECT:
        session.stop()
        return
    context = type(session.sparkContext)
    gateway = context._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(60)
    context._gateway = context._jvm = None


def connected(patch: pytest.MonkeyPatch) -> Any:
    """Return the builder of a session on a server at a port of its own: the usual one may be another server's."""
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    patch.setattr(DefaultChannelBuilder, "default_port", staticmethod(lambda: port))
    return SparkSession.builder.remote("local[2]").config("spark.connect.grpc.binding.port", str(port))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Return a session on local[2] that writes nothing into the folder where the tests run."""
    if why_not():
        pytest.skip(why_not())
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory(prefix="concordant-spark-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYTHONPATH", os.path.dirname(__file__), prepend=os.pathsep)
        builder = connected(patch) if CONNECT else SparkSession.builder.master("local[2]")
        builder = builder.appName("concordant tests")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        builder = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse").config("spark.local.dir", folder)
        session = builder.config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder} {QUICK}").getOrCreate()
        yield session
        stop_java(session)

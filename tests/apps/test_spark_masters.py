"""A master that does not answer is told in bounded time, in one line; a session that is made leaves nothing behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from concordant.errors import InputError, UsageError
from spark_session import QUICK, alone

pytestmark = alone

ASK = """
import sys, time
from concordant.io.engines.spark_session import session
begin = time.monotonic()
try:
    session(sys.argv[1], threads=int(sys.argv[2]), patience=float(sys.argv[3]))
except ValueError as error:
    print(type(error).__name__, error)
assert time.monotonic() - begin < float(sys.argv[3]) + 60  # Java takes a while to end
"""


def ask(master: str, patience: float, threads: int = 1) -> str:
    """Ask for a session in a process of its own; return what was said."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, master, str(threads), str(patience)],
        env=os.environ | {"JDK_JAVA_OPTIONS": QUICK}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def concordant(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "concordant", *arguments],
        cwd=folder, env=os.environ | {"JDK_JAVA_OPTIONS": QUICK}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.fixture
def silent() -> Iterator[int]:
    """Return the port of a socket that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_silent_master(silent: int) -> None:
    said = ask(f"spark://127.0.0.1:{silent}", 5)
    assert said.startswith(
        f"InputError the Spark master spark://127.0.0.1:{silent} did not run an empty job within 5 s"
    )


def test_a_master_without_executors() -> None:
    """Its one worker has one core, and executors are asked for that take four."""
    said = ask("local-cluster[1,1,1024]", 12, threads=4)
    assert "did not run an empty job within 12 s" in said
    assert "no executor free with the memory and cores asked for" in said


def test_a_port_that_refuses(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (tmp_path / "v.csv").write_text("winner,loser\na,b\n")
    done = concordant(tmp_path, "audit", "v.csv", "--engine", "spark", "--master", f"spark://127.0.0.1:{port}")
    assert done.returncode == 2
    assert done.stderr == f"error: the Spark master spark://127.0.0.1:{port} does not answer: Connection refused\n"


def test_a_place_that_swallows_packets() -> None:
    from concordant.io.engines.spark_session import _knock

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        full = [socket.socket() for _ in range(4)]  # whoever comes now is not answered
        try:
            for each in full:
                each.setblocking(False)
                each.connect_ex(server.getsockname())
            with pytest.raises(InputError, match=r"does not answer: no connection within 0\.5 s"):
                _knock(f"spark://127.0.0.1:{server.getsockname()[1]}", 0.5)
        finally:
            for each in full:
                each.close()


@pytest.mark.parametrize("master", ["foo", "spark://", "spark://host", "local[x]", "http://a:1", "", "spark://h:p"])
def test_what_is_no_master(master: str) -> None:
    from concordant.io.engines.spark_session import _knock, _settings

    with pytest.raises(UsageError, match="unknown master"):
        _knock(_settings(master, None, None)["spark.master"], 0.5)


@pytest.mark.parametrize(
    ("given", "found"),
    [("4GB", "4096m"), ("512 MiB", "512m"), ("1.5g", "1536m"), ("1TB", f"{1 << 20}m"), ("600000KB", "585m")],
)
def test_sizes(given: str, found: str) -> None:
    from concordant.io.engines.spark_session import _settings

    assert _settings("local[2]", given, None)["spark.driver.memory"] == found
    assert _settings("yarn", given, 3)["spark.executor.memory"] == found


@pytest.mark.parametrize("size", ["", "4", "-4GB", "80%", "1MB", "GB"])
def test_what_is_no_size(size: str) -> None:
    from concordant.io.engines.spark_session import _settings

    with pytest.raises(UsageError, match="memory_limit"):
        _settings("yarn", size, None)


def test_threads_and_a_local_master_must_agree() -> None:
    from concordant.io.engines.spark_session import _settings

    assert _settings(None, None, 3)["spark.master"] == "local[3]"
    assert _settings("local[3]", None, 3)["spark.master"] == _settings("local", None, 3)["spark.master"] == "local[3]"
    with pytest.raises(UsageError, match="say different numbers"):
        _settings("local[2]", None, 3)


@pytest.mark.parametrize("how", ["no Java", "old Java"])
def test_without_java(tmp_path: Path, how: str) -> None:
    (tmp_path / "v.csv").write_text("winner,loser\na,b\n")
    (tmp_path / "bin").mkdir()
    if how == "old Java":
        (tmp_path / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
        (tmp_path / "bin" / "java").chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "concordant", "audit", "v.csv", "--engine", "spark"],
        cwd=tmp_path, env=os.environ | {"JAVA_HOME": str(tmp_path)}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("error: the engine spark needs Java 17 or later") and done.stderr.count("\n") == 1


def test_without_pyspark(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("winner,loser\na,b\n")
    hide = "import sys; sys.modules['pyspark'] = None; from concordant.apps.commands import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", hide, "audit", "v.csv", "--engine", "spark"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("error: the engine spark needs PySpark, which is not installed: pip install")


def test_the_command_leaves_nothing_behind_and_java_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("winner,loser\na,b\nb,a\nb,c\na,c\nc,a\n")
    plain = concordant(tmp_path, "audit", "v.csv")
    ours = concordant(
        tmp_path, "audit", "v.csv", "--engine", "spark", "--master", "local[1]", "--memory-limit", "600MB"
    )
    assert (ours.returncode, ours.stdout, ours.stderr) == (0, plain.stdout, plain.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["v.csv"]


def test_a_master_that_is_named_counts_before_variables_of_spark_connect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them alone makes PySpark take every session for one of Connect."""
    (tmp_path / "v.csv").write_text("winner,loser\na,b\nb,a\nb,c\na,c\nc,a\n")
    plain = concordant(tmp_path, "audit", "v.csv")
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    monkeypatch.setenv("SPARK_API_MODE", "connect")
    ours = concordant(tmp_path, "audit", "v.csv", "--engine", "spark", "--master", "local[1]")
    assert (ours.returncode, ours.stdout, ours.stderr) == (0, plain.stdout, plain.stderr)


def test_the_server_that_a_variable_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "v.csv").write_text("winner,loser\na,b\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"sc://127.0.0.1:{server.getsockname()[1]}"
    monkeypatch.setenv("SPARK_REMOTE", address)
    done = concordant(tmp_path, "rank", "v.csv", "--engine", "spark")
    assert (done.returncode, done.stderr) == (
        2,
        f"error: the Spark master {address} does not answer: Connection refused\n",
    )

"""The Spark session that a log is counted in: the one that is there, or one made for a master, in bounded time."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import IO, Any

from concordant.errors import InputError, Setting, Unavailable, UsageError

try:
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkImportError
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as fn
except ModuleNotFoundError as missing:
    if missing.name not in ("pyspark", "py4j"):
        raise
    raise Unavailable(
        'the engine spark needs PySpark, which is not installed: pip install "concordant[spark]", and Java 17 or later'
    ) from None


OLDEST_JAVA = 17
PATIENCE = 50.0
"""Seconds that a master may take until it has run a first, empty job."""
AT_HOME = 300.0
"""Seconds that a local master may take: nobody is waited for but this machine, which may be busy."""
KNOCK = 10.0
"""Seconds that a standalone master may take to accept a connection."""
LOCAL = re.compile(r"local(?:\[(?P<threads>\*|\d+)(?:,\s*\d+)?\])?")
KNOWN = re.compile(rf"{LOCAL.pattern}|local-cluster\[[\d,\s]+\]|yarn|(spark|k8s|sc)://\S+")
ALLOWED = "local[N], spark://HOST:PORT, yarn, k8s://https://HOST:PORT or sc://HOST:PORT (Spark Connect)"
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])(?:I?B)?", re.IGNORECASE)
MEBIBYTES = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
BRIEF = "-XX:TieredStopAtLevel=1"
"""An option of Java for short work: nothing is compiled twice, which else takes as much time as the work."""
REMOTE = "SPARK_REMOTE"
"""The variable that names a server of Spark Connect to whoever names no master."""
AS_CONNECT = (REMOTE, "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE", "SPARK_API_MODE")
"""Variables by which PySpark takes a session for one of Spark Connect, whatever its master; children inherit them."""
SMALLEST = 512
"""MiB that a JVM of Spark needs to begin (it asks for 1.5 times 300 MB)."""


class _Made:
    """The session that was made here, and what it was made from."""

    session: Any = None
    settings: tuple[Any, ...] = ()


@contextmanager
def without_pandas_warning() -> Iterator[None]:
    """Keep PySpark's remark on recent versions of pandas, which nothing here uses, from the user."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


def session(
    master: str | None = None,
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
    patience: float = PATIENCE,
    brief: bool = False,
) -> SparkSession:
    """Return the active Spark session, or make one for a master.

    Without a master it is the server of Spark Connect that the variable SPARK_REMOTE names, else all cores of this
    machine; a master that is named counts before that variable. Those by which PySpark takes every session for one of
    Spark Connect leave the environment of this process where the session is none.

    A session that is active already is used as it is; it is never stopped and none of its settings are changed. One
    that is made here writes its log nowhere and ends with the process. ``memory_limit`` ('4GB') and ``threads`` are
    the memory and the cores of the driver of a local master (default: half of the machine's memory, all cores), and
    of each executor of another master (default: what the cluster says). ``brief`` says that Java has little to do,
    so that a local master need not compile its work well.

    Errors: UsageError for PySpark or Java 17 that is missing, a master that cannot be understood, options that differ
    from the session that is active; InputError for a master that does not run an empty job in ``patience`` seconds,
    be it that it refuses, is silent, or has no executors.
    """
    wanted = (master, memory_limit, threads)
    active = _active()
    if active is not None:
        if _Made.session is None or (active is not _Made.session and _context(active) is not _context(_Made.session)):
            _refuse_other(active, *wanted)
        elif wanted not in (_Made.settings, (None, None, None)):
            raise UsageError(f"a Spark session was made for {_said(*_Made.settings)} already; stop it first")
        return active
    if master is None and os.environ.get(REMOTE, "").startswith("sc://"):
        master = os.environ[REMOTE]
    if master is not None and str(master).startswith("sc://"):
        _Made.session, _Made.settings = _remote(master, memory_limit, threads, patience), wanted
        return _Made.session
    for name in AS_CONNECT:
        os.environ.pop(name, None)
    settings = _settings(master, memory_limit, threads)
    if LOCAL.fullmatch(settings["spark.master"]):
        patience = max(patience, AT_HOME)
    _knock(settings["spark.master"], min(KNOCK, patience))
    brief = brief and LOCAL.fullmatch(settings["spark.master"]) is not None
    _Made.session, _Made.settings = _within(patience, settings, BRIEF if brief else ""), wanted
    atexit.register(_stop, _Made.session)
    return _Made.session


def parallelism(session: SparkSession) -> int:
    """Return how many tasks run side by side; of a session of Spark Connect what its server cuts a range into."""
    if is_connect(session):
        parts = session.range(1 << 10).select(fn.spark_partition_id().alias("part"))
        return int(parts.agg(fn.max("part")).first()[0]) + 1
    return int(session.sparkContext.defaultParallelism)


def is_connect(session: Any) -> bool:
    """Whether a session is one of Spark Connect, which knows no ``sparkContext``."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def _active() -> SparkSession | None:
    """Return the session that this thread or, failing that, this process works with."""
    with without_pandas_warning():
        found = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if found is None or is_connect(found):
        return found
    return found if found.sparkContext._jsc is not None else None


def _context(session: Any) -> Any:
    return session if is_connect(session) else session.sparkContext


def _refuse_other(active: SparkSession, master: str | None, memory_limit: str | None, threads: int | None) -> None:
    there = "a server of Spark Connect" if is_connect(active) else active.sparkContext.master
    if master not in (None, there):
        raise UsageError(
            f"a Spark session on {there} is active; leave out ", Setting("master", master), " or stop it first"
        )
    if memory_limit is not None or threads is not None:
        raise UsageError("memory_limit and threads are settings of a new Spark session, and one is active already")


def _said(master: str | None, memory_limit: str | None, threads: int | None) -> str:
    return f"master={master!r}, memory_limit={memory_limit!r} and threads={threads!r}"


# -- settings ------------------------------------------------------------------------------------------------------
def _settings(master: str | None, memory_limit: str | None, threads: int | None) -> dict[str, str]:
    """Return the settings of a new session."""
    master = _master(master, threads)
    local = LOCAL.fullmatch(master) is not None
    settings = {
        "spark.master": master,
        "spark.app.name": "concordant",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.maxResultSize": "0",
    }
    if local or master.startswith("local-cluster["):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if local:
        settings["spark.sql.shuffle.partitions"] = "32"  # the usual 200 are many small files on one machine
        settings["spark.driver.memory"] = f"{_mebibytes(memory_limit) if memory_limit else _half()}m"
    elif memory_limit is not None:
        settings["spark.executor.memory"] = f"{_mebibytes(memory_limit)}m"
    if not local and threads is not None:
        settings["spark.executor.cores"] = str(threads)
    return settings


def _master(master: str | None, threads: int | None) -> str:
    if threads is not None and not (isinstance(threads, int) and threads >= 1):
        raise UsageError(f"threads must be an integer of at least 1, not {threads!r}")
    if master is None:
        return f"local[{threads or '*'}]"
    if not isinstance(master, str) or not KNOWN.fullmatch(master):
        raise UsageError(f"unknown master {master!r}; allowed: {ALLOWED}")
    local = LOCAL.fullmatch(master)
    if local is None or threads is None:
        return master
    if local["threads"] not in (None, str(threads)):
        raise UsageError(
            Setting("master", master), " and ", Setting("threads", threads), " say different numbers; leave out one"
        )
    return f"local[{threads}]"


def _mebibytes(size: str) -> int:
    found = SIZE.fullmatch(str(size).strip())
    if found is None:
        raise UsageError(f"memory_limit must be a size such as 4GB, not {size!r}")
    number = int(float(found[1]) * MEBIBYTES[found[2].upper()])
    if number < SMALLEST:
        raise UsageError(f"memory_limit {size!r} is too small for Spark; it takes {SMALLEST} MB or more")
    return number


def _half() -> int:
    """Half of the machine's memory in MiB, 1 GiB where that cannot be known."""
    try:
        bytes_there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1024
    return max(1024, bytes_there >> 21)


# -- a master that may not answer ----------------------------------------------------------------------------------
def _remote(master: str, memory_limit: str | None, threads: int | None, patience: float) -> SparkSession:
    """Return a session on a server of Spark Connect."""
    if memory_limit is not None or threads is not None:
        raise UsageError("memory_limit and threads are settings of the server of Spark Connect; leave them out")
    _knock("spark://" + _with_port(master), min(KNOCK, patience), master)
    try:
        with without_pandas_warning():
            return SparkSession.builder.remote(master).getOrCreate()
    except (ImportError, PySparkImportError) as error:
        raise Unavailable(
            f'{master} needs what Spark Connect adds to PySpark: pip install "pyspark[connect]" '
            f"({next(iter(str(error).splitlines()), '')[:120]})"
        ) from None


def _with_port(master: str) -> str:
    """Return HOST:PORT of an address of Spark Connect, whose port is 15002 where it names none.

    >>> _with_port("sc://host/;token=x"), _with_port("sc://[::1]:99")
    ('host:15002', '[::1]:99')
    """
    place = master.removeprefix("sc://").split("/")[0]
    return place if re.search(r":\d+$", place) else f"{place}:15002"


def _knock(master: str, seconds: float, name: str | None = None) -> None:
    """Connect to a standalone master, which Spark itself would try for a minute; messages call it ``name``."""
    name = name or master
    if not master.startswith("spark://"):
        return
    why = ""
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        if not host or not port.isdigit():
            raise UsageError(f"unknown master {name!r}; allowed: {ALLOWED}")
        try:
            socket.create_connection((host.strip("[]"), int(port)), seconds).close()
            return
        except TimeoutError:
            why = f"no connection within {seconds:g} s"
        except (OSError, OverflowError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or str(error)
    raise InputError(f"the Spark master {name} does not answer: {why}")


def _within(patience: float, settings: dict[str, str], java: str = "") -> SparkSession:
    """Make a session and run an empty job, in bounded time; a Java process that is late is ended."""
    _check_java()
    with without_pandas_warning(), suppress(ImportError):
        import_module("pyspark.testing")  # PySpark loads it in passing, and warns then
    attempt = _Attempt(settings, java)
    attempt.start()
    try:
        attempt.join(patience)
    finally:
        if attempt.made is None:
            attempt.give_up()
    master = settings["spark.master"]
    if attempt.made is not None:
        return attempt.made
    if attempt.failed:
        raise InputError(f"the Spark master {master} cannot be used{attempt.last_word() or attempt.failed}")
    raise InputError(
        f"the Spark master {master} did not run an empty job within {patience:g} s: it does not answer, or it has no "
        f"executor free with the memory and cores asked for{attempt.last_word()}"
    )


class _Attempt(threading.Thread):
    """The making of a session, which may take for ever."""

    def __init__(self, settings: dict[str, str], java: str) -> None:
        super().__init__(daemon=True)
        self.settings = settings
        self.java = java
        """Options of the Java process, before those of the environment."""
        self.made: Any = None
        self.failed = ""
        self.late = False
        self.said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        """What the Java process writes, for as long as it lives."""

    def run(self) -> None:
        """Begin a Java process, make the session and, elsewhere than on this machine, run an empty job."""
        try:
            conf = SparkConf(loadDefaults=False).setAll(list(self.settings.items()))
            if SparkContext._gateway is None:
                with _environment("JDK_JAVA_OPTIONS", f"{self.java} {os.environ.get('JDK_JAVA_OPTIONS', '')}".strip()):
                    gateway = launch_gateway(conf, {"stdout": self.said, "stderr": self.said})
                if self.late:
                    _end(gateway.proc)
                    return
                SparkContext._ensure_initialized(gateway=gateway)
            made = SparkSession.builder.config(map=self.settings).getOrCreate()
            if LOCAL.fullmatch(self.settings["spark.master"]) is None:
                made.range(1).count()
            self.made = made
        except BaseException as error:  # told by whoever waits for this thread
            if not self.late:
                self.failed = f": {next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]}"

    def give_up(self) -> None:
        """End the Java process and forget it, so that a later session begins anew."""
        self.late = True
        process = getattr(SparkContext._gateway, "proc", None)
        if process is not None:
            _end(process)
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None

    def last_word(self) -> str:
        """Return the last error in what the Java process wrote, to follow a message."""
        self.said.seek(0)
        lines = self.said.read().decode("utf-8", "replace").splitlines()
        self.said.close()
        told = [found[1] for line in lines if (found := re.search(r"(?:Exception: |Error: | ERROR \S+ )(.+)", line))]
        return f": {told[-1].strip()[:200]}" if told else ""


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Set a variable of the environment for a while, where there is a value."""
    before = os.environ.get(name)
    if value:
        os.environ[name] = value
    try:
        yield
    finally:
        if before is not None:
            os.environ[name] = before
        elif value:
            del os.environ[name]


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(5)
    if process.stdin is not None:
        process.stdin.close()


def _check_java() -> None:
    """Refuse to begin without Java 17 or later."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    needs = f"the engine spark needs Java {OLDEST_JAVA} or later"
    if java is None or not os.path.exists(java):
        raise Unavailable(f"{needs}; there is no java {f'in JAVA_HOME={home}' if home else 'on the PATH'}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < OLDEST_JAVA:
        raise Unavailable(f"{needs}, not {said.splitlines()[0] if said else java!r}")


def _stop(made: SparkSession) -> None:
    """Stop a session that was made here, and its Java process, when Python ends."""
    process = getattr(SparkContext._gateway, "proc", None)
    with suppress(Exception):  # the process ends in any case
        if made.sparkContext._jsc is not None:
            made.stop()
            SparkContext._gateway.shutdown()
    if process is not None:
        process.stdin.close()  # what the Java process waits for
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)

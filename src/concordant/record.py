"""A record of what a run read, refused, noted and wrote, for whoever keeps one; deep code tells it as it goes along.

Without a record that costs a look at a variable.

>>> import concordant as cc
>>> with recording() as run:
...     board = cc.rank(cc.read({"winner": ["a", "a", "b"], "loser": ["b", "c", "c"]}))
>>> run.record["inputs"][0]["rows"], run.record["outcome"]
(3, 'done')
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

__all__ = ["Run", "read", "recording", "refused", "telling", "wrote"]

LAYOUT = 1
"""Version of the layout of a record."""
PACKAGES = ("numpy", "scipy", "pyarrow", "duckdb", "sklearn", "numba", "lightgbm", "xgboost", "torch", "pyspark")
"""Packages whose versions say how a number came about, where they were loaded."""
DONE, FAILED, NOTHING_NEW = "done", "failed", "nothing new"
P = ParamSpec("P")
T = TypeVar("T")
Told = Callable[[str, Mapping[str, Any], "Run"], object]


class Run:
    """What a run does: ``record`` is all of it as plain data, at any time. ``told`` hears of each thing read.

    >>> Run().record["outcome"]
    'done'
    """

    def __init__(self, told: Told | None = None) -> None:
        self.began, self._clock = datetime.now(UTC), time.monotonic()
        self.inputs: list[dict[str, Any]] = []
        self.outputs: list[dict[str, Any]] = []
        self.notes: dict[str, dict[str, Any]] = {}
        self.more: dict[str, Any] = {}
        """What whoever keeps the record adds to it."""
        self.then: list[Callable[[], object]] = []
        """What is to be done once all is done, where it did not fail."""
        self.outcome = DONE
        self.error: Mapping[str, Any] | None = None
        self._told, self._refused = told, dict[str, list[dict[str, Any]]]()
        self._seconds: float | None = None

    def end(self, outcome: str | None = None, error: Mapping[str, Any] | None = None) -> None:
        """Say how it ended: the clock stops."""
        self._seconds = self._seconds or time.monotonic() - self._clock
        self.outcome, self.error = outcome or self.outcome, error or self.error

    def read(self, name: str, role: str, facts: Mapping[str, Any]) -> None:
        """Say that something was read; the same thing once more in the same role changes nothing."""
        entry = {"path": name, "role": role, "bytes": facts["bytes"] if "bytes" in facts else _bytes(name), **facts}
        self._refused.pop(Path(name).name, None)
        if entry not in self.inputs:
            self.inputs.append(entry)
            self._tell("read", entry)

    def refuse(self, name: str, why: list[dict[str, Any]]) -> None:
        """Say which rows of a log were refused, and why."""
        if all(Path(one["path"]).name != Path(name).name for one in self.inputs):
            self._refused[Path(name).name] = why

    def wrote(self, path: str, facts: Mapping[str, Any]) -> None:
        """Say that a file, or a folder, has its new content; more about one that is known is added to it."""
        known = next((one for one in self.outputs if one["path"] == path), None)
        if known is None or "sha256" in facts:
            self.outputs = [one for one in self.outputs if one is not known] + [{"path": path, **facts}]
        else:
            known |= facts

    def written(self, path: str) -> dict[str, Any]:
        """Return what is known of an output; nothing of one that nobody spoke of."""
        return next((dict(one) for one in self.outputs if one["path"] == os.path.realpath(path)), {})

    def note(self, note: str, message: str | None = None, **more: Any) -> None:
        """Keep a note with what it is made of, once; ``message`` is it in the words of whoever says it."""
        made = {name: getattr(note, name, more.get(name)) for name in ("code", "query", "items", "numbers")}
        entry = {"message": message or str(note), **{name: value for name, value in made.items() if value}}
        self.notes.setdefault(str(note), entry)

    def _tell(self, event: str, facts: Mapping[str, Any]) -> None:
        if self._told is not None:
            self._told(event, facts, self)

    @property
    def record(self) -> dict[str, Any]:
        """All that is known, as plain data: JSON can hold it."""
        seconds = time.monotonic() - self._clock if self._seconds is None else self._seconds
        left = [{"path": name, "role": "log", "refused": why} for name, why in self._refused.items()]
        found = {
            "layout": LAYOUT,
            **self.more,
            "outcome": self.outcome,
            "error": self.error,
            "inputs": [*self.inputs, *left],
            "outputs": self.outputs,
            "notes": list(self.notes.values()),
            "began": self.began.isoformat(timespec="milliseconds"),
            "seconds": round(seconds, 3),
            "peak_memory_bytes": peak_memory(),
            "versions": versions(),
        }
        return {name: _plain(value) for name, value in found.items()}


_RUN: ContextVar[Run | None] = ContextVar("concordant.record", default=None)


@contextmanager
def recording(told: Told | None = None) -> Iterator[Run]:
    """Keep a record of what is done inside the ``with``, in this thread: what was read, refused and written, and how.

    ``record`` of what is yielded is the object that a command writes as its summary, less what belongs to a command
    (its options, its exit status); an exception is written down and goes on. ``told`` is called with
    'read', what is known of an input, and the record, as each is read.

    >>> import concordant as cc
    >>> with cc.recording() as run:
    ...     prefs = cc.read({"winner": ["a", "b"], "loser": ["b", "a"]})
    >>> run.record["inputs"][0]["judgments"], run.record["outputs"]
    (2, [])
    """
    made = Run(told)
    token = _RUN.set(made)
    try:
        yield made
        made.end()
    except BaseException as problem:
        made.end(FAILED if made.outcome == DONE else None, {"type": type(problem).__name__, "message": str(problem)})
        raise
    finally:
        _RUN.reset(token)


def running() -> Run | None:
    """Return the record that is kept in this thread, or None."""
    return _RUN.get()


def read(source: Any, role: str, **facts: Any) -> None:
    """Tell the record, if there is one, that a path, several paths or a table was read."""
    if (run := _RUN.get()) is not None:
        paths = source if isinstance(source, list | tuple) else [source]
        names = [os.fspath(one) for one in paths if isinstance(one, str | os.PathLike)]
        if files := [part.where for part in getattr(source, "parts", ()) or [source] if getattr(part, "where", "")]:
            sizes = [size for file in files if (size := _bytes(file)) is not None]  # a log that was found already
            names, facts = [_common(files)], {"bytes": sum(sizes) if sizes else None, **facts}
        run.read(" + ".join(names) or f"a {type(source).__name__}", role, facts)


def _common(files: list[str]) -> str:
    """The one file, or the folder in which all of them lie."""
    if len(files) > 1 and not any("://" in file for file in files):
        with suppress(ValueError):  # of some with the whole path, of others with a part
            return os.path.join(os.path.commonpath([os.path.dirname(file) for file in files]) or ".", "")
    return " + ".join(files[:3]) + (f" and {len(files) - 3:,} others" if len(files) > 3 else "")


def telling(role: str, facts: Callable[[Any], Mapping[str, Any]]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function that reads what its first argument names tell so, with ``facts`` of what it returns."""

    def made(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def told(*args: P.args, **named: P.kwargs) -> T:
            found = function(*args, **named)
            if _RUN.get() is not None:
                read(cast(Any, args)[0] if args else next(iter(named.values())), role, **facts(found))
            return found

        return told

    return made


def refused(name: str, rejects: Iterable[Any]) -> None:
    """Tell the record which rows of a log were refused: each a ``Reject``."""
    if (run := _RUN.get()) is not None:
        run.refuse(name, said_of(rejects))


def said_of(rejects: Iterable[Any]) -> list[dict[str, Any]]:
    """Return what was refused, each a ``Reject``, as plain data."""
    return [
        {"reason": one.reason.says, "number": one.number, "of": one.total, "unit": one.unit,
         "samples": [{"place": place, "value": value} for place, value in one.samples]}
        for one in rejects
    ]  # fmt: skip


def wrote(path: str | os.PathLike[str], **facts: Any) -> None:
    """Tell the record that a file or a folder has its new content; a file's bytes are hashed."""
    if (run := _RUN.get()) is None:
        return
    name = os.path.realpath(path)
    if not facts and os.path.isfile(name):
        with open(name, "rb") as file:
            facts = {
                "bytes": os.fstat(file.fileno()).st_size,
                "sha256": hashlib.file_digest(file, "sha256").hexdigest(),
            }
    run.wrote(name, facts)


def nothing_new() -> None:
    """Tell the record that what was given was known already, all of it."""
    if (run := _RUN.get()) is not None:
        run.outcome = NOTHING_NEW


def add(source: Any, **facts: Any) -> None:
    """Tell the record more about an input."""
    if (run := _RUN.get()) is not None and isinstance(source, str | os.PathLike):
        for one in run.inputs:
            if one["path"] == os.fspath(source):
                one |= facts


def made_of() -> list[dict[str, Any]]:
    """Return what was read so far, of each input what says what it was: the lineage of what is made of it."""
    kept = ("path", "role", "bytes", "rows", "kind", "judgments", "judgments_sha256", "sha256")
    inputs = [] if (run := _RUN.get()) is None else run.inputs
    return [{name: one[name] for name in kept if one.get(name) is not None} for one in inputs]


def peak_memory() -> int | None:
    """Return the most bytes of memory that this process has held; None where the system does not say."""
    if sys.platform == "win32":
        return None
    with suppress(OSError, ValueError, IndexError):  # what getrusage says may be of the process that began this one
        return int(Path("/proc/self/status").read_text("ascii", "replace").split("VmHWM:")[1].split()[0]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of those that were loaded and whose version matters."""
    found = {"concordant": sys.modules["concordant"].__version__, "python": platform.python_version()}
    loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in PACKAGES}
    return found | {"platform": platform.platform()} | {name: str(one) for name, one in loaded.items() if one}


def _bytes(name: str) -> int | None:
    """The size of a file, or of what lies in a folder, that a name names."""
    with suppress(OSError, ValueError):
        path = Path(name.partition("::")[0])
        if path.is_dir():
            return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
        return path.stat().st_size if path.is_file() else None
    return None


def _plain(value: Any) -> Any:
    """Return what JSON can hold: numbers of NumPy as numbers, what is no number, text or list of them as a text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    if isinstance(value, bool | str | type(None)):
        return value if not isinstance(value, str) else str.__str__(value)
    if hasattr(value, "item"):
        return _plain(value.item())
    if isinstance(value, int | float):
        return value if value == value and abs(value) != float("inf") else str(value)
    return str(value)

"""What a command says on stderr: a line for a person, or with ``--log-format json`` one JSON object a line.

Ctrl-C and SIGTERM: a command stops at once, leaves no file half written, and says so in one line.

The first signal raises ``Interrupted`` in the main thread, which unwinds as any error does: temporary files go, outputs
stay as they were. Later ones change nothing. Where the main thread does not come back in time, because it is inside a
long call of a compiled library, a thread that waits for signals removes what is unfinished and ends the process.
"""

from __future__ import annotations

import _thread
import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.machinery import ExtensionFileLoader
from types import FrameType
from typing import Any

from concordant.record import running

LEADS = {"note": "note: ", "error": "error: "}
"""What stands before the words in a line for a person."""


class _How:
    """How this process says things, since when it works, and how long it may take to keep what it has done."""

    patience = 0.0

    json = False
    began = time.monotonic()
    lock = threading.Lock()


def as_json() -> bool:
    """Whether what is said are JSON objects."""
    return _How.json


def began() -> float:
    """When the command began, by ``time.monotonic``."""
    return _How.began


@contextmanager
def said_as(*, json: bool) -> Iterator[None]:
    """Speak inside the ``with`` in objects of JSON, or in lines for a person.

    >>> with said_as(json=True):
    ...     as_json()
    True
    """
    before, show = (_How.json, _How.began), warnings.showwarning
    _How.json, _How.began = json, time.monotonic()
    if _How.json:
        warnings.showwarning = _warned  # type: ignore[assignment]
    try:
        yield
    finally:
        warnings.showwarning = show
        _How.json, _How.began = before


def _warned(message: Warning | str, category: type[Warning], *_: Any) -> None:
    say("warning", str(message), level="warning", category=category.__name__)


def say(event: str, message: str, *, level: str = "info", **more: Any) -> None:
    """Say one line: ``event`` is note, error, wrote, …; ``more`` stands in the JSON object only."""
    run = running()
    if event == "note" and run is not None and "code" not in more:
        run.note(message)
    if _How.json:
        if event == "wrote" and run is not None:
            more |= {name: value for name, value in run.written(more["path"]).items() if name != "path"}
        told = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level, "event": event}
        line = json.dumps(told | {"message": message} | more, ensure_ascii=True, default=str)
    else:
        line = LEADS.get(event, "") + one_line(message)
    with _How.lock:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def one_line(text: str) -> str:
    """Return a text of labels fit for a line of a terminal: line ends and other control characters escaped.

    >>> print(one_line("a\\nb\\x1b[1m"))
    a\\nb\\x1b[1m
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


GRACE = 1.8
"""Seconds that the main thread has to unwind."""
SOON = 0.02
"""Seconds after which a signal that came while a compiled module was loaded is looked at again."""
GRACE_OF_SPARK = 10.0
"""The same where a Spark session has to be stopped."""
PATIENCE = 60.0
"""The same where what is done is to be kept."""
WATCHED = (signal.SIGINT, signal.SIGTERM)
_UNFINISHED: list[Callable[[], object]] = []


class Interrupted(KeyboardInterrupt):
    """The user, or the system, has asked this process to stop."""


@contextmanager
def at_the_end(act: Callable[[], object]) -> Iterator[None]:
    """Call ``act`` when the process ends, unless the end of the ``with`` is reached; a second call must do no harm."""
    _UNFINISHED.append(act)
    yield
    _UNFINISHED.remove(act)


def _clear_up() -> None:
    for act in reversed(_UNFINISHED):
        with suppress(Exception):
            act()


@contextmanager
def patient() -> Iterator[None]:
    """Give what goes on inside the ``with`` a minute to keep what it has done, unless a second signal comes."""
    _How.patience = PATIENCE
    try:
        yield
    finally:
        _How.patience = 0.0


def _later(seconds: float, act: Callable[[Any], object], number: int) -> threading.Timer:
    """Act on a signal after a while, unless the process ends before: then, from Python 3.12 on, no thread begins."""
    timer = threading.Timer(seconds, act, [number])
    timer.daemon = True
    with suppress(RuntimeError):
        timer.start()
    return timer


class Watch:
    """Waits for signals; ``caught`` is the first one."""

    def __init__(self, said: Callable[[], object]) -> None:
        self.caught: int | None = None
        self.over = False
        """Whether the work is done: a signal then raises nothing."""
        self._said, self._told = said, False
        self._lock = threading.Lock()
        self._end = self._wake = -1
        self._before: dict[int, Any] = {}
        self._woken = -1
        self._late: threading.Timer | None = None
        self._lost = sys.unraisablehook

    @property
    def status(self) -> int:
        """The exit status of a process that the signal ended."""
        return 128 + (self.caught or signal.SIGINT)

    def begin(self) -> None:
        """Take the signals over, but for those that are ignored (nohup) or that someone else takes."""
        self._lost, sys.unraisablehook = sys.unraisablehook, self._swallowed
        for number in WATCHED:
            if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
                self._before[number] = signal.signal(number, self._handle)
        if sys.platform != "win32":  # which wakes by sockets only, and ends a process otherwise
            self._end, self._wake = os.pipe()
            os.set_blocking(self._wake, False)
            self._woken = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
            threading.Thread(target=self._wait, name="signals", daemon=True).start()

    def end(self) -> None:
        """Give the signals back."""
        if sys.unraisablehook == self._swallowed:  # else somebody took it over
            sys.unraisablehook = self._lost
        for number, before in self._before.items():
            signal.signal(number, before)
        if sys.platform != "win32":
            signal.set_wakeup_fd(self._woken)
        if self._late is not None:
            self._late.cancel()
        if self._wake >= 0:
            with suppress(OSError):
                os.write(self._wake, b"\0")
            os.close(self._wake)

    def say(self) -> None:
        """Say that the command was interrupted, once; nothing unfinished is left then."""
        _clear_up()
        with self._lock:
            if not self._told:
                self._told = True
                self._said()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.caught is not None or self.over:
            return
        if _loading(frame):  # an exception in there may end the process
            self._again(number)
            return
        self.caught = number
        raise Interrupted

    def _again(self, number: int) -> None:
        """Have the signal come again, soon."""
        _later(SOON, _thread.interrupt_main, number)

    def _swallowed(self, what: Any) -> None:
        """Python drops what is raised while it frees something: a signal that came just then comes again."""
        if self.caught is None or not isinstance(what.exc_value, Interrupted):
            self._lost(what)
            return
        number, self.caught = self.caught, None
        self._again(number)

    def _wait(self) -> None:
        """Wait for a signal that is ours, then for the main thread; end the process if that takes too long."""
        with suppress(OSError):
            while (told := os.read(self._end, 1)) != b"\0":
                if told[0] in self._before and signal.getsignal(told[0]) == self._handle:
                    break
            else:
                os.close(self._end)
                return
            grace = GRACE_OF_SPARK if "pyspark" in sys.modules else GRACE
            self._late = _later(max(grace, _How.patience), self._give_up, told[0])
            while _How.patience and (again := os.read(self._end, 1)) != b"\0":
                if again[0] in self._before:  # a second one is meant
                    self._give_up(again[0])

    def _give_up(self, number: int) -> None:
        if self.over:  # what is left is the end of Python itself
            os._exit(128 + number)
        self.caught = self.caught or number
        with suppress(Exception):
            self.say()
        os._exit(self.status)


def _loading(frame: FrameType | None) -> bool:
    """Whether a compiled module is being loaded."""
    while frame is not None:
        called = frame.f_code.co_name in ("create_module", "exec_module")
        if called and isinstance(frame.f_locals.get("self"), ExtensionFileLoader):
            return True
        frame = frame.f_back
    return False


@contextmanager
def watched(said: Callable[[], object], *, to_the_end: bool) -> Iterator[Watch]:
    """Watch for signals inside the ``with``; ``said`` says that the command was interrupted.

    ``to_the_end``: the process is the command's own, and what remains of it after the ``with`` is not disturbed.
    """
    _UNFINISHED.clear()  # what progress shown by Python, not by a command, has left
    watch = Watch(said)
    mine = threading.current_thread() is threading.main_thread()
    if mine:
        watch.begin()
    try:
        yield watch
    finally:
        watch.over = True
        _UNFINISHED.clear()
        if mine and not to_the_end:
            watch.end()

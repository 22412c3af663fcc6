"""Standard output and standard error where they are closed, full, or have lost their reader: the work goes on.

What cannot be written is remembered, not raised: a log that was taken in stays taken in, a file that comes after the
table is still written, what is said on stderr is still said. At the end

=========================================  ========================================================================
standard output                            the command ends as it would, but
=========================================  ========================================================================
its reader has gone (``| head -1``)        nothing: who closes a pipe has what it wanted; the exit status stays 0
closed (``>&-``), on a full disk, an error  if a result was to be written there: one line on stderr, and exit status 2;
                                           if it was beside the result, which is in a file: a note
=========================================  ========================================================================

Standard error may be closed, full or gone: what would be said is not, and the exit status is that of the work.
"""

from __future__ import annotations

import errno
import io
import os
import selectors
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Lasting(io.RawIOBase):
    """A stream whose writing never fails; ``lost`` is why not all was written, ``missed`` whether it was a result."""

    def __init__(self, number: int, under: Any) -> None:
        self.number, self.under = number, under
        self.lost: OSError | None = None
        self.beside = self.missed = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.number

    def isatty(self) -> bool:
        return self.under is not None and bool(self.under.isatty())

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        while self.lost is None:
            try:
                if self.under is None:
                    raise OSError(errno.EBADF, "it is closed")
                if (done := self.under.write(data)) is not None:
                    return int(done)
                with selectors.DefaultSelector() as free:  # it does not block, and is full for the moment
                    free.register(self.number, selectors.EVENT_WRITE)
                    free.select()
            except OSError as error:
                self.lost = error
        self.missed |= not self.beside
        return size


class Streams:
    """What became of standard output."""

    def __init__(self, output: _Lasting | None = None) -> None:
        self._output = output

    def trouble(self) -> tuple[str, bool]:
        """Return why standard output does not hold all that was written to it (empty where it does), and whether the
        result of the command is lost with it."""
        if self._output is None:
            return "", False
        sys.stdout.flush()
        lost = self._output.lost
        if lost is None or lost.errno == errno.EPIPE:
            return "", False
        why = f"standard output cannot be written: {lost.strerror or lost}; what was to be shown there is lost"
        return why, self._output.missed


_now = Streams()


def reader_gone() -> bool:
    """Whether nobody reads standard output any more, so that more of it need not be made."""
    output = _now._output
    return output is not None and output.lost is not None


@contextmanager
def beside_the_result() -> Iterator[None]:
    """Say that what is written to standard output inside the ``with`` is not the result, which is in a file already."""
    sys.stdout.flush()
    if _now._output is not None:
        _now._output.beside = True
    try:
        yield
        sys.stdout.flush()
    finally:
        if _now._output is not None:
            _now._output.beside = False


@contextmanager
def standard_streams(*, own: bool) -> Iterator[Streams]:
    """Put streams that last in the place of standard output and standard error, where the process is the command's own.

    Descriptors 0, 1 and 2 that are closed are taken, so that no file which is opened later gets such a number and what
    a library prints.
    """
    global _now
    before = sys.stdout, sys.stderr
    if own:
        for number in (0, 1, 2):
            _take(number)
        output, error = _lasting(sys.stdout, 1), _lasting(sys.stderr, 2)
        # a terminal without UTF-8 shows ? for what it lacks
        sys.stdout = _text(output, sys.stdout, "replace", lines=output.isatty())
        sys.stderr = _text(error, sys.stderr, "backslashreplace", lines=True)
        streams = _now = Streams(output)
    else:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")
        sys.stdout = sys.stdout or _text(_Lasting(1, None), None, "replace", lines=False)
        sys.stderr = sys.stderr or _text(_Lasting(2, None), None, "replace", lines=True)
        streams = Streams()
    try:
        yield streams
    finally:
        if own:
            sys.stdout.flush()
            sys.stderr.flush()
        _now, (sys.stdout, sys.stderr) = Streams(), before


def _take(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        os.set_inheritable(number, True)


def _lasting(stream: Any, number: int) -> _Lasting:
    buffer = getattr(stream, "buffer", None)
    return _Lasting(number, getattr(buffer, "raw", buffer))


def _text(lasting: _Lasting, before: Any, errors: str, *, lines: bool) -> io.TextIOWrapper:
    encoding = getattr(before, "encoding", None) or "utf-8"
    return io.TextIOWrapper(io.BufferedWriter(lasting), encoding=encoding, errors=errors, line_buffering=lines)

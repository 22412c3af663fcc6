"""One writer at a time: a lock of the operating system on a file beside the store, which says who holds it.

The system gives the lock back when its holder ends, however that ends: no lock is ever left behind.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from concordant.disk import read_regular
from concordant.errors import ConcordantError, UsageError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["WAIT", "exclusive", "lock_file"]

WAIT = 10.0
"""Seconds that a writer waits for another one."""
HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
"""What the system says where another process has the lock."""
PAUSE = 0.05
LONGEST = 1 << 16


def lock_file(store: Path) -> Path:
    """Return the file whose lock a writer of the store holds."""
    return store.with_name(f"{store.name}.lock")


@contextmanager
def exclusive(store: Path, wait: float = WAIT) -> Iterator[None]:
    """Hold the lock of a store; wait for another writer at most ``wait`` seconds.

    Errors (ConcordantError): another writer still holds it (who, since when); the place cannot be written.
    """
    if not wait >= 0:
        raise UsageError(f"wait must be a number of seconds of at least 0, not {wait!r}")
    path = lock_file(store)
    until = time.monotonic() + wait
    while True:
        handle = _opened(path, store)
        try:
            while not _taken(handle, store):
                if time.monotonic() >= until:
                    holder = _holder(path)
                    raise ConcordantError(f"{store}: {holder} is writing to it; waited {wait:g} s (--wait SECONDS)")
                time.sleep(min(PAUSE, max(until - time.monotonic(), 0)))
            if not _named(handle, path):
                continue  # whoever held it made no store and has removed it
            with suppress(OSError):  # a full disk: the lock holds unsigned
                _sign(handle)
            try:
                yield
            finally:
                with suppress(OSError):
                    os.ftruncate(handle, 0)
                    if not store.exists():  # there is nothing to be locked: leave nothing behind
                        path.unlink(missing_ok=True)
            return
        finally:
            os.close(handle)  # gives the lock back


def _opened(path: Path, store: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ConcordantError(f"{store}: cannot be written: {error.strerror or error}") from None


def _named(handle: int, path: Path) -> bool:
    """Whether the file that is open is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _taken(handle: int, store: Path) -> bool:
    try:
        if sys.platform == "win32":
            os.lseek(handle, LONGEST, os.SEEK_SET)  # beyond what is written: others may still read who holds it
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in HELD:
            raise ConcordantError(f"{store}: the disk gives no lock: {error.strerror or error}") from None
        return False
    return True


def _sign(handle: int) -> None:
    signed = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200],
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, (json.dumps(signed) + "\n").encode())


def _holder(path: Path) -> str:
    try:
        signed: dict[str, Any] = json.loads(read_regular(path, LONGEST))
        return f"process {signed['pid']} on {signed['host']} ({signed['command']}, since {signed['since']})"
    except (OSError, ValueError, KeyError, TypeError):  # it signs in a moment, or has just gone
        return "another process"

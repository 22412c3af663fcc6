"""The steps by which a store changes on disk: every byte that has to survive a crash goes through these functions.

One writer at a time: a lock of the operating system on a file beside the store, which says who holds it.

The system gives the lock back when its holder ends, however that ends: no lock is ever left behind.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from concordant.errors import Setting, Unavailable, UsageError
from concordant.io.log.disk import check_replaced


def _temporary(path: Path) -> Path:
    """Return where a file is written before it has its name: beside it, so that a rename is one step.

    Nobody can know the name beforehand, so nobody can have put a link there.
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")


def temporaries(path: Path) -> list[Path]:
    """Return what killed writers of a file left: what they had not yet named, and what DuckDB put beside it."""
    ours = re.compile(rf"\.{re.escape(path.name)}(\.[0-9a-f]{{16}})?\.new(\.wal)?")
    return [other for other in path.parent.iterdir() if ours.fullmatch(other.name)]


def write_new(path: Path, fill: Callable[[Path], object]) -> None:
    """Write a file to a temporary name, make it durable, and give it its name: whole or not at all."""
    check_replaced(path)
    temporary = _temporary(path)
    try:
        fill(temporary)
        with suppress(FileNotFoundError):  # who may read and write the old file may do so with the new one
            os.chmod(temporary, path.stat().st_mode & 0o777)
        sync(temporary)
        replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def replace(temporary: Path, path: Path) -> None:
    """Give a written file its name, in the place of what had it, and make the name durable."""
    os.replace(temporary, path)
    sync(path.parent)


def remove(path: Path) -> None:
    """Remove a file that nothing names any more; one that has gone already is no error."""
    path.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make a folder and make its name durable; one that is there is no error, a link to one is."""
    if path.is_symlink():
        raise OSError(errno.ELOOP, "a link where a folder belongs", str(path))
    if not path.is_dir():
        path.mkdir()
        sync(path.parent)


def sync(path: Path) -> None:
    """Return when the disk has the bytes of a file, or the names in a folder."""
    if sys.platform == "win32" and path.is_dir():  # Windows opens no folders; it keeps names in order itself
        return
    handle = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

NOT_THROUGH = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)

WAIT = 10.0
"""Seconds that a writer waits for another one."""
HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
"""What the system says where another process has the lock."""
PAUSE = 0.05
LONGEST = 1 << 16
SIGNATURE = 1024
"""Bytes of what the holder writes into the file; nothing else ever stands in it."""


def lock_file(store: Path) -> Path:
    """Return the file whose lock a writer of the store holds."""
    return store.with_name(f"{store.name}.lock")


@contextmanager
def exclusive(store: Path, wait: float = WAIT) -> Iterator[None]:
    """Hold the lock of a store; wait for another writer at most ``wait`` seconds.

    Errors (Unavailable): another writer still holds it (who, since when); the place cannot be written.
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
                    holder = _holder(handle)
                    raise Unavailable(f"{store}: {holder} is writing to it; waited {wait:g} s (", Setting("wait"), ")")
                time.sleep(min(PAUSE, max(until - time.monotonic(), 0)))
            if not _named(handle, path):
                continue  # whoever held it made no store and has removed it
            with suppress(OSError):  # a full disk: the lock holds unsigned
                _sign(handle, _signature())
            try:
                yield
            finally:
                with suppress(OSError):
                    _sign(handle, "")
                    if not store.exists():  # there is nothing to be locked: leave nothing behind
                        path.unlink(missing_ok=True)
            return
        finally:
            os.close(handle)  # gives the lock back


def _opened(path: Path, store: Path) -> int:
    """Open the lock as it lies there: a link is not followed, and what somebody else keeps there is left alone."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | NOT_THROUGH, 0o666)
    except OSError as error:
        linked = error.errno in (errno.ELOOP, errno.EMLINK)
        said = "a link, which is not followed; remove it" if linked else error.strerror or error
        raise Unavailable(f"{store}: its lock {path.name} cannot be opened: {said}") from None
    try:
        held = os.fstat(handle)
        if not stat.S_ISREG(held.st_mode) or not _ours(handle, held.st_size):
            raise Unavailable(
                f"{store}: {path.name} beside it is no lock of a store, but something else, which is left alone; move "
                "it away, or give the store another name"
            )
    except BaseException:
        os.close(handle)
        raise
    return handle


def _ours(handle: int, size: int) -> bool:
    """Whether nothing stands in the file but what a holder of the lock writes, or wrote before it was killed."""
    if size > SIGNATURE:
        return False
    try:
        said = _read(handle).strip()
    except OSError:
        return True  # Windows lets nobody read what another process has locked
    return not said or said.startswith('{"pid": ')  # perhaps cut: a disk was full


def _read(handle: int) -> str:
    os.lseek(handle, 0, os.SEEK_SET)
    return os.read(handle, SIGNATURE).decode(errors="replace")


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
            raise Unavailable(f"{store}: the disk gives no lock: {error.strerror or error}") from None
        return False
    return True


def _signature() -> str:
    signed = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]).encode("ascii", "replace").decode()[:200],
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return json.dumps(signed)


def _sign(handle: int, said: str) -> None:
    """Write over the whole of what was said before; never cut the file, nor write one that has another name, too."""
    if os.fstat(handle).st_nlink != 1:
        return
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, said.encode().ljust(SIGNATURE - 1)[: SIGNATURE - 1] + b"\n")


def _holder(handle: int) -> str:
    try:
        signed: dict[str, Any] = json.loads(_read(handle))
        return f"process {signed['pid']} on {signed['host']} ({signed['command']}, since {signed['since']})"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # it signs in a moment, or has just gone
        return "another process"

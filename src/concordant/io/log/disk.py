"""What lies under a name on the disk: looked at before it is opened; only regular files are read or replaced.

A named pipe may keep its reader waiting for ever, a device such as ``/dev/zero`` never ends, and a file that takes the
place of either by a rename destroys it. Every file that a user names, or that lies in a folder which a user names, goes
through these functions before any library sees it.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from uuid import uuid4

from concordant.errors import InputError, Unavailable, UsageError
from concordant.record import wrote

KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
BLOCK = 1 << 16
AT_ONCE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
"""Opening a pipe or a terminal so does not wait for whoever is at its other end."""


def what_is(found: os.stat_result) -> str:
    """Return what a file is where it is no regular one, in words; empty where it is one.

    >>> what_is(os.stat(os.curdir))
    'a folder'
    """
    return "" if stat.S_ISREG(found.st_mode) else KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")


def check_regular(path: str | os.PathLike[str]) -> os.stat_result:
    """Return the size and the rest of what is known of a regular file, links followed, without opening it.

    Errors: InputError for a pipe, a device, a socket or a folder; OSError where nothing is there.
    """
    found = os.stat(path)
    if kind := what_is(found):
        raise InputError(_refused(path, kind))
    return found


def state_of(path: str | os.PathLike[str]) -> tuple[int, ...]:
    """Return what tells one content of a name from the next: which file it is, its size, when it was changed.

    Errors: InputError where nothing is there.
    """
    try:
        found = os.stat(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def open_regular(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a regular file to read its bytes; anything else is refused at once. Errors as ``check_regular`` has."""
    check_regular(path)
    handle = os.open(path, AT_ONCE)
    try:
        if kind := what_is(os.fstat(handle)):  # it was replaced meanwhile
            raise InputError(_refused(path, kind))
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the bytes of a regular file of at most ``most`` bytes. Errors as ``check_regular`` has; one too large."""
    parts, left = [], most + 1
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        while size <= most and left > 0 and (part := file.read(min(left, max(size, BLOCK)))):
            parts.append(part)  # what is asked for is set aside at once, so no more than the file has is asked for
            left -= len(part)
    data = b"".join(parts)
    if max(size, len(data)) > most:
        raise InputError(f"{path} holds {max(size, len(data)):,} bytes; at most {most:,} are read")
    return data


def check_replaced(path: str | os.PathLike[str], option: str = "") -> None:
    """Refuse an output that would take the place of something else than a file. Errors: UsageError."""
    try:
        kind = what_is(os.stat(path))
    except (OSError, ValueError):  # nothing is there, or nothing can be: whoever writes says so
        return
    if kind:
        raise UsageError(
            f"{f'{option} ' * bool(option)}{Path(path)} is {kind}: an output is written whole and then takes the place "
            "of a file; name a file"
        )


@contextmanager
def in_place_of(
    name: str | os.PathLike[str],
    option: str = "",
    guarded: Callable[[Callable[[], object]], AbstractContextManager[object]] = nullcontext,
) -> Iterator[Path]:
    """Yield a new file beside ``name``, which takes its place at the end: whole or not at all. A link stays one.

    ``guarded`` makes what removes the new file happen also where the process ends in between. Errors (Unavailable):
    what the disk refuses; ``option`` is what named the file.
    """
    check_replaced(name, option)
    path = Path(name).resolve()
    temporary = path.with_name(f".concordant-{uuid4().hex[:12]}{path.suffix.lower()}")
    with guarded(lambda: temporary.unlink(missing_ok=True)):
        try:
            temporary.touch(exist_ok=False)  # with the permissions of any new file
            yield temporary
            os.replace(temporary, path)
            wrote(path)
        except OSError as error:
            raise Unavailable(f"{option} {name}: {error.strerror or error}".lstrip()) from None
        finally:
            temporary.unlink(missing_ok=True)


def _refused(path: str | os.PathLike[str], kind: str) -> str:
    more = "; it can be read only once: save what comes out of it in a file, and name that" if "pipe" in kind else ""
    return f"{path} is {kind}, not a regular file{more}"

"""The steps by which a store changes on disk: every byte that has to survive a crash goes through these functions."""

from __future__ import annotations

import errno
import os
import re
import secrets
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from concordant.disk import check_replaced

__all__ = ["make_folder", "remove", "replace", "sync", "temporaries", "write_new"]


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

"""The steps by which a store changes on disk: every byte that has to survive a crash goes through these functions."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from concordant.disk import check_replaced

__all__ = ["make_folder", "remove", "replace", "sync", "temporary_name", "write_new"]


def temporary_name(path: Path) -> Path:
    """Return where a file is written before it has its name: beside it, so that a rename is one step."""
    return path.with_name(f".{path.name}.new")


def write_new(path: Path, fill: Callable[[Path], object]) -> None:
    """Write a file to a temporary name, make it durable, and give it its name: whole or not at all."""
    temporary = temporary_name(path)
    check_replaced(path)
    temporary.unlink(missing_ok=True)  # what a killed writer left, or a link or a pipe that somebody put there
    try:
        fill(temporary)
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
    """Make a folder and make its name durable; one that is there is no error."""
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

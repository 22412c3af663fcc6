"""Folders that executors write into: whole, or not there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["whole_or_gone"]


@contextmanager
def whole_or_gone(folder: str) -> Iterator[None]:
    """Take a folder of this machine away again that was not there before what failed; Spark empties others itself."""
    new = "://" not in folder and not os.path.lexists(folder)
    try:
        yield
    except BaseException:
        if new:
            shutil.rmtree(folder, ignore_errors=True)
        raise

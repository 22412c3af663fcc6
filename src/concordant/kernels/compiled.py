"""How kernels are compiled: without the interpreter's lock, and kept on disk where a folder can be written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

SOURCES = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()
"""Numba renews what it kept when the function's own file changes. Kernels call kernels of other files, so here it is
the text of the whole room that counts."""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function at its first call; keep the machine code for the next process where there is a place for it.

    Division by zero follows IEEE, without exceptions. With NUMBA_DISABLE_JIT=1 the function runs as it is written, in
    which integers that overflow (as those of random draws are meant to) raise no warning.
    """
    return _compile(function, {})


def reordered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of numbers without NaN whose sums and maxima may be taken in any order, several at a time."""
    return _compile(function, {"fastmath": {"nnan", "nsz", "reassoc"}})


def _compile(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    if numba.config.DISABLE_JIT:
        plain: Callable[..., Any] = np.errstate(all="ignore")(function)
        return plain
    try:
        kernel = numba.njit(nogil=True, error_model="numpy", cache=True, **options)(function)
        kernel._cache._cache_file._source_stamp = SOURCES
    except (RuntimeError, AttributeError):  # no folder can be written, or another Numba: compiled in each process
        kernel = numba.njit(nogil=True, error_model="numpy", **options)(function)
    found: Callable[..., Any] = kernel
    return found

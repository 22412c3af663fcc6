"""How loops are compiled: by Numba where it is installed (the extra ``fast``), without the interpreter's lock, and kept
on disk where a folder can be written. Without it their plain twins run.

Numba takes a fifth of a second to load, which is done when the first loop is called. Loops call each other by the names
of their files, where each is then put in the place of what stood for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache, update_wrapper, wraps
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any

from concordant.stages import Aside

Function = Callable[..., Any]


class State:
    """What was noticed while loops ran: ``plainly`` when one ran uncompiled; ``compiling`` is called once, before the
    first one that nobody kept is compiled."""

    plainly = False
    compiling: Callable[[], object] | None = None


@cache
def _numba() -> ModuleType | None:
    """Numba, or None where it is not installed, does not fit the other packages, or is to compile nothing."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return None
    try:
        import numba
        from numba.core import event
    except ImportError:
        return None

    class Told(event.Listener):  # type: ignore[misc]
        """What Numba tells of its work."""

        def on_start(self, event: object) -> None:
            """Say so at the first compilation."""
            Aside.begin()
            told, State.compiling = State.compiling, None
            if told is not None:
                told()

        def on_end(self, event: object) -> None:
            """Go on with the work."""
            Aside.end()

    event.register("numba:compile", Told())
    return numba  # type: ignore[no-any-return]


def compiles() -> bool:
    """Whether loops are compiled here. Whoever has a quick way of NumPy beside a loop asks before it takes the loop."""
    if _numba() is None:
        State.plainly = True
        return False
    return True


@cache
def sources() -> str:
    """Numba renews what it kept when the function's own file changes. Kernels call kernels of other files, so here it
    is the text of the whole room that counts."""
    import hashlib

    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def compiled(function: Function | None = None, *, twin: Function | None = None) -> Any:
    """Compile a function at its first call; keep the machine code for the next process where there is a place for it.

    Division by zero follows IEEE, without exceptions. Where nothing is compiled (with NUMBA_DISABLE_JIT=1, too), the
    ``twin`` runs, which gives the same numbers, or the function as it is written, in which integers that overflow (as
    those of random draws are meant to) raise no warning. The twin is an attribute of what is compiled.
    """
    if function is None:
        return lambda asked: _Kernel(asked, {}, twin)
    return _Kernel(function, {}, twin)


def reordered(function: Function | None = None, *, twin: Function | None = None) -> Any:
    """Compile a function of numbers without NaN whose sums and maxima may be taken in any order, several at a time."""
    options = {"fastmath": {"nnan", "nsz", "reassoc"}}
    if function is None:
        return lambda asked: _Kernel(asked, options, twin)
    return _Kernel(function, options, twin)


class _Kernel:
    """A loop that is compiled, with all others that are loaded, when one of them is first called."""

    def __init__(self, function: Function, options: dict[str, Any], twin: Function | None) -> None:
        update_wrapper(self, function)
        self.function, self.options, self.twin, self.name = function, options, twin, function.__name__
        self._made: Function | None = None
        _WAITING.append(self)

    def __call__(self, *arguments: Any) -> Any:
        return self.made()(*arguments)

    def made(self) -> Function:
        """Return the loop as it is called; from then on files of loops have it in the place of this."""
        if self._made is None:
            with _LOCK:
                while _WAITING:
                    kernel = _WAITING.pop()
                    kernel._made = _compile(kernel.function, kernel.options, kernel.twin)
                    for name, module in list(sys.modules.items()):
                        if name.startswith(__package__) and vars(module).get(kernel.name) is kernel:
                            setattr(module, kernel.name, kernel._made)
        found: Any = self._made
        return found  # type: ignore[no-any-return]


_WAITING: list[_Kernel] = []
_LOCK = RLock()


def _compile(function: Function, options: dict[str, Any], twin: Function | None) -> Function:
    numba = _numba()
    if numba is None:
        return _plainly(function if twin is None else twin, function.__name__)
    try:
        kernel = numba.njit(nogil=True, error_model="numpy", cache=True, **options)(function)
        kernel._cache._cache_file._source_stamp = sources()
    except (RuntimeError, AttributeError):  # no folder can be written, or another Numba: compiled in each process
        kernel = numba.njit(nogil=True, error_model="numpy", **options)(function)
    kernel.twin = twin
    found: Function = kernel
    return found


def _plainly(function: Function, name: str) -> Function:
    """The function as it is, without warnings; what only other loops call has theirs."""
    if name.startswith("_"):
        return function
    import numpy as np

    @wraps(function)
    def plain(*arguments: Any) -> Any:
        State.plainly = True
        with np.errstate(all="ignore"):
            return function(*arguments)

    return plain

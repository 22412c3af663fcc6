"""Arrays as kernels are compiled for. This file needs no Numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_only"]


def read_only(values: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Return the array, without a copy where its type and order allow, as one that cannot be written.

    Compiled loops are compiled once for each type of array; all that they only read is of this one.
    """
    view = np.ascontiguousarray(values, kind).view()
    view.flags.writeable = False
    return view

"""The norms that distances are measured in, by name or number."""

from __future__ import annotations

import math

import numpy as np

from concordant.errors import UsageError

__all__ = ["NORMS", "conjugate", "norm_name"]

NORMS = ("1", "2", "inf")


def norm_name(norm: object) -> str:
    """Return '1', '2' or 'inf' for a norm given as a name or a number. Errors: UsageError.

    >>> norm_name(2), norm_name(np.inf), norm_name("1")
    ('2', 'inf', '1')
    """
    if isinstance(norm, str) and norm.lower() in NORMS:
        return norm.lower()
    if isinstance(norm, int | float | np.number) and not isinstance(norm, bool) and norm in (1, 2, math.inf):
        return "inf" if norm == math.inf else str(int(norm))
    raise UsageError(f"norm must be one of {', '.join(NORMS)}, not {norm!r}")


def conjugate(norm: object) -> tuple[float, float]:
    """Return p and its conjugate q, 1/p + 1/q = 1, for p = 1, 2 or "inf"; UsageError for another norm.

    >>> conjugate("inf"), conjugate(2)
    ((inf, 1.0), (2.0, 2.0))
    """
    return {"1": (1.0, math.inf), "2": (2.0, 2.0), "inf": (math.inf, 1.0)}[norm_name(norm)]

"""The classes H_lin and H_NN of scorers, and how far apart they can put two points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.errors import UsageError

__all__ = ["ScorerClass", "checked_gamma"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ScorerClass:
    """H_lin = {w·x + b: ‖w‖_q ≤ W, |b| ≤ B}, or with Λ H_NN = {Σ_j u_j (w_j·x + b_j)₊: ‖u‖₁ ≤ Λ, ...}.

    Errors: UsageError for a bound that is not positive (B: negative), and for Λ without B (``B=math.inf`` for none).

    >>> ScorerClass(W=2.0).reach(0.5).item(), ScorerClass(W=2.0, Lambda=3.0, B=0.25).reach(0.5).item()
    (1.0, 2.25)

    Source: RwA, section 2.1.
    """

    W: float
    Lambda: float | None = None
    B: float | None = None

    def __post_init__(self) -> None:
        if not _number(self.W) > 0:
            raise UsageError(f"W, the bound of the norm of w, must be positive, not {self.W!r}")
        if self.Lambda is not None and not _number(self.Lambda) > 0:
            raise UsageError(f"Lambda, the bound of ‖u‖₁, must be positive, not {self.Lambda!r}")
        if self.B is not None and not _number(self.B) >= 0:
            raise UsageError(f"B, the bound of the intercepts, must not be negative, not {self.B!r}")
        if self.Lambda is not None and self.B is None:
            raise UsageError("a network (Lambda is given) needs B, the bound of its intercepts; math.inf for none")

    def reach(self, distance: ArrayLike) -> Floats:
        """Return the largest |h(x') − h(x)| of the class for points at this ℓ_p distance d, 1/p + 1/q = 1.

        H_lin: Wd. H_NN: Λ min(Wd, Wd/2 + B), which is what remains where it is least, at points that lie opposite each
        other around 0; elsewhere a network reaches more, up to ΛWd. The paper's ΛWd needs B ≥ Wd/2.
        """
        d = np.asarray(distance, np.float64)
        step: Floats = np.multiply(d, self.W, where=d > 0, out=np.zeros(d.shape))  # no 0·∞
        if self.Lambda is None or self.B is None:
            return step
        least = np.minimum(step, step / 2 + self.B)
        reach: Floats = np.multiply(least, self.Lambda, where=least > 0, out=np.zeros(d.shape))
        return reach

    def most(self, distance: ArrayLike) -> Floats:
        """Return the largest |h(x') − h(x)| of the class for points at this distance, wherever they lie: Wd or ΛWd."""
        return ScorerClass(self.W if self.Lambda is None else self.W * self.Lambda).reach(distance)

    @property
    def words(self) -> str:
        """The class as a sentence says it."""
        if self.Lambda is None:
            return f"linear scorers with norm of w at most {self.W:g}"
        return (
            "networks with one hidden layer, sum of |u| at most "
            f"{self.Lambda:g}, norm of every w at most {self.W:g}, intercepts within {self.B:g}"
        )


def checked_gamma(gamma: float) -> float:
    """Return γ as a float; UsageError unless it is a finite number that is not negative."""
    if not 0 <= _number(gamma) < math.inf:
        raise UsageError(f"gamma must be a number that is not negative, not {gamma!r}")
    return float(gamma)


def _number(value: object) -> float:
    """A number as it is; NaN for what is none."""
    return float(value) if isinstance(value, int | float | np.number) else math.nan

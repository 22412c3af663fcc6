"""What is left of camps, and of means and spreads, once the votes are gone: linear scorers that can be kept.

A ``FoundScorer`` is a ranker whose coefficients ``camps`` or ``distributional`` found; it scores rows, is saved and
served as any other, and has more to say of a row than one score. Of annotators nothing is kept but the camps' shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from concordant.errors import InputError, UsageError
from concordant.io.log.json_values import Fields
from concordant.learning.annotators.design import Design
from concordant.learning.rankers.estimator import LinearRanker, linear_scores, numbers_of

Floats = NDArray[np.float64]
STEEPEST = 5.0
"""Size of log s, at most, beyond which a vote says nothing more."""
HALF = 0.5 * np.log(2.0)


class FoundScorer(LinearRanker):
    """A linear scorer that was found together with others; ``beside`` says what they make of the same rows."""

    found_by: ClassVar[str]

    def __init__(self, standardise: bool = True, log: bool = False, missing: str = "raise") -> None:
        self.standardise, self.log, self.missing = standardise, log, missing

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **kwargs: Any) -> Self:
        """Refuse. Errors: UsageError."""
        raise UsageError(f"a {type(self).__name__} is no ranker to be fitted: concordant.{self.found_by} finds it")

    def beside(self, X: Any) -> dict[str, Floats]:
        """Return further columns, by their names, beside the scores (rows,) of ``predict``."""
        raise NotImplementedError

    def _check(self) -> None: ...

    def _rows(self, X: Any) -> Any:
        return self._normalised(self.normaliser_, self._rows_as_fitted(X))

    def _of(self, design: Design, theta: Floats, status: str) -> None:
        """Take coefficients of the normalised features of a design. Errors: UsageError without features."""
        if design.normaliser is None or design.features is None:
            raise UsageError(
                f"{self.found_by} without features knows the items that were judged and no others: there is no scorer "
                "to be kept; give features, or write the table"
            )
        self._take_linear(theta)
        self.status_ = {"status": status, "notes": []}
        self._keep(design.normaliser, design.features.names if design.named else None, len(theta))


class CampScorer(FoundScorer):
    """Linear scorers of several camps; a score is the mean over the annotators, Σ share_c · score_c.

    ``share_`` (camps,), the largest first; ``camp_coef_standardised_`` (camps, features).

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(["x", "y"] * 4, ["y", "z"] * 4, cluster=list("aabbccdd"))
    >>> rows = {"item": ["x", "y", "z"], "length": [3.0, 2.0, 1.0]}
    >>> scorer = cc.camps(votes, features=rows, number=2, prior=1.0, folds=2).scorer
    >>> list(scorer.beside(rows)), scorer.predict(rows).argmax()
    (['score_1', 'score_2'], np.int64(0))
    """

    found_by = "camps"
    share_: Floats
    camp_coef_standardised_: Floats

    @classmethod
    def of(cls, design: Design, theta: Floats, share: Floats, status: str) -> Self:
        """Return the scorer of coefficients (camps, features)."""
        made = cls()
        made._of(design, share @ theta, status)
        made.share_, made.camp_coef_standardised_ = share, theta
        return made

    def camps(self, X: Any) -> Floats:
        """Return scores (camps, rows)."""
        Z = self._rows(X)
        return np.stack([linear_scores(Z, theta) for theta in self.camp_coef_standardised_])

    def beside(self, X: Any) -> dict[str, Floats]:
        """Return the scores of each camp: score_1, the largest, score_2, …"""
        return {f"score_{at + 1}": column for at, column in enumerate(self.camps(X))}

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that scoring needs. Errors: NotFittedError."""
        values, arrays = super().to_state()
        return values | {"camps": len(self.share_)}, arrays | {
            "share": self.share_, "camps": self.camp_coef_standardised_.reshape(-1),
        }  # fmt: skip

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the scorer of a ``to_state``; its scores have the same bits. Errors: InputError."""
        made = super().from_state(values, arrays)
        given = Fields(values, "the state of the ranker")
        camps = given.whole("camps")
        made.share_ = numbers_of(arrays, "share", camps)
        if not len(made.share_) or (made.share_ < 0).any() or abs(made.share_.sum() - 1) > 1e-6:
            raise InputError("the state of the ranker cannot be read: the shares of camps do not add up to 1")
        made.camp_coef_standardised_ = numbers_of(arrays, "camps", camps * made.n_features_in_).reshape(camps, -1)
        return made


class SpreadScorer(FoundScorer):
    """A mean and a spread of each row, both linear in the features (the spread's logarithm is); a score is the mean.

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(["x", "y"] * 4, ["y", "z"] * 4)
    >>> rows = {"item": ["x", "y", "z"], "length": [3.0, 2.0, 1.0]}
    >>> scorer = cc.distributional(votes, rows, prior=1.0, spread_prior=1.0).scorer
    >>> list(scorer.beside(rows)), scorer.predict(rows).argmax()
    (['spread'], np.int64(0))
    """

    found_by = "distributional"
    spread_coef_standardised_: Floats

    @classmethod
    def of(cls, design: Design, theta: Floats, eta: Floats, status: str) -> Self:
        """Return the scorer of coefficients of means and of logarithms of spreads, (features,) each."""
        made = cls()
        made._of(design, theta, status)
        made.spread_coef_standardised_ = eta
        return made

    def spread(self, X: Any) -> Floats:
        """Return the spread of each row."""
        level = linear_scores(self._rows(X), self.spread_coef_standardised_)
        return np.asarray(np.exp(np.clip(level, -STEEPEST, STEEPEST) - HALF), np.float64)

    def quantile(self, share: float, X: Any) -> Floats:
        """Return what a row is worth to a share of the people at most: μ + s Φ⁻¹(share)."""
        if not 0 < share < 1:
            raise UsageError(f"share must lie between 0 and 1, not {share!r}")
        return np.asarray(self.predict(X) + self.spread(X) * ndtri(share), np.float64)

    def beside(self, X: Any) -> dict[str, Floats]:
        """Return the column spread."""
        return {"spread": self.spread(X)}

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that scoring needs. Errors: NotFittedError."""
        values, arrays = super().to_state()
        return values, arrays | {"spread": self.spread_coef_standardised_}

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the scorer of a ``to_state``; its scores have the same bits. Errors: InputError."""
        made = super().from_state(values, arrays)
        made.spread_coef_standardised_ = numbers_of(arrays, "spread", made.n_features_in_)
        return made

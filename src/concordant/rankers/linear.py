"""Scorers linear in the features, or a regressor given: coefficients in either unit, and a state that can be kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError
from concordant.features.matrix import Matrix
from concordant.json_values import Fields
from concordant.rankers.estimator import Ranker, sure
from concordant.rankers.state import described, numbers_of, restored

__all__ = ["LinearRanker", "known", "linear_scores"]

Floats = NDArray[np.float64]


def linear_scores(Z: Matrix, theta: Floats) -> Floats:
    """Return Zθ in float64, each row by itself: its bits do not depend on the rows beside it.

    >>> Z = np.random.default_rng(0).normal(size=(5, 3))
    >>> bool((linear_scores(Z, Z[0])[2:3] == linear_scores(Z[2:3], Z[0])).all())
    True
    """
    return np.asarray(np.einsum("ij,j->i", np.asarray(Z, np.float64), theta), np.float64)


def known(Z: Matrix) -> Matrix:
    """Return normalised features with missing values taken to be at the mean."""
    return np.where(np.isnan(Z), 0.0, Z) if np.isnan(Z).any() else Z


class LinearRanker(Ranker):
    """A ranker whose scores are linear in the normalised features, or those of a regressor that it was given.

    ``coef_standardised_`` (features,) belongs to the normalised features, ``coef_`` to the features as given (after
    the logarithm, with ``log=True``): a score is their product plus a constant that no order sees. With a regressor
    there is ``regressor_`` instead, the fitted clone, whose predictions times ``regressor_unit_`` are the scores; where
    it was fitted to what a linear scorer leaves, the scores of ``scorer_standardised_`` come on top.
    """

    coef_standardised_: Floats
    scorer_standardised_: Floats
    regressor_: Any
    regressor_unit_: float
    status_: dict[str, Any]

    @property
    def foreign_(self) -> Any:
        """The fitted regressor that scores come from when it is not concordant's own; else None."""
        return getattr(self, "regressor_", None)

    @property
    def coef_(self) -> Floats:
        """Coefficients of the features in their own units."""
        scale = self.normaliser_.scale if self.standardise else None
        return self.coef_standardised_ if scale is None else self.coef_standardised_ / scale

    def _take_linear(self, theta: Floats) -> None:
        self.coef_standardised_ = theta
        self._forget("regressor_", "regressor_unit_", "scorer_standardised_")

    def _take_regressor(self, fitted: Any, unit: float, scorer: Floats | None = None) -> None:
        self._forget("coef_standardised_", "scorer_standardised_")
        self.regressor_, self.regressor_unit_ = fitted, unit
        if scorer is not None:
            self.scorer_standardised_ = scorer

    def _forget(self, *names: str) -> None:
        for name in names:
            if hasattr(self, name):
                delattr(self, name)

    def _scores(self, Z: Matrix) -> Floats:
        if hasattr(self, "coef_standardised_"):
            return linear_scores(Z, self.coef_standardised_)
        if len(Z) == 0:  # which others refuse
            return np.zeros(0)
        found = np.asarray(self.regressor_.predict(sure(Z)), np.float64).reshape(len(Z)) * self.regressor_unit_
        if not hasattr(self, "scorer_standardised_"):
            return found
        return found + linear_scores(known(Z), self.scorer_standardised_)

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that scoring needs: values that JSON keeps, and arrays. Errors: NotFittedError.

        Parameters that JSON cannot keep (a function as gain) are listed under ``not_kept``; scores do not need them. A
        regressor that was given (``foreign_``) is not in the state: keep it beside, and set ``regressor_`` again.
        """
        values = described(self)
        if self.foreign_ is not None:
            scorer = getattr(self, "scorer_standardised_", None)
            return {**values, "regressor_unit": self.regressor_unit_}, {} if scorer is None else {"scorer": scorer}
        return values, {"coef": self.coef_standardised_}

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the fitted ranker of a ``to_state``; its scores have the same bits. Errors: InputError."""
        made = restored(cls, values)
        width = made.n_features_in_
        if "regressor_unit" in values:
            made.regressor_unit_ = Fields(values, "the state of the ranker").number("regressor_unit")
            if "scorer" in arrays:
                made.scorer_standardised_ = numbers_of(arrays, "scorer", width)
            return made
        if made.missing == "keep":
            raise InputError("the state of the ranker cannot be read: a linear scorer keeps no missing values")
        made.coef_standardised_ = numbers_of(arrays, "coef", width)
        return made

"""Rankers that fit targets: exact least squares for linear scorers, or any regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.rankers.columns import Columns
from concordant.rankers.intake import Training
from concordant.rankers.linear import LinearRanker
from concordant.rankers.regressors import fit_regressor
from concordant.targets.mean_targets import centre

__all__ = ["RegressionRanker"]

Floats = NDArray[np.float64]


class RegressionRanker(LinearRanker):
    """A ranker that fits one target per node, each query with its weight."""

    # parameters of every such ranker; each sets them in its own __init__
    regressor: Any
    intercept: str

    def _fit_targets(
        self, training: Training, columns: Columns, target: Floats, weight: Floats, ridge: float
    ) -> dict[str, Any]:
        """Fit to targets (nodes,) with weights (queries,); return how that went.

        The linear fit is exact; a regressor that was given gets targets centred within their query.
        """
        if self.regressor is not None:
            each = np.repeat(weight, np.diff(training.start))
            centred = centre(training.start, target)
            self._take_regressor(*fit_regressor(self.regressor, columns.matrix[training.row], centred, each))
            said = f"fitted by the {type(self.regressor).__name__} given"
            return {"status": said, "iterations": None, "gradient": None, "ridge": None}
        equations = columns.equations(target, training.start, weight, rows=training.row, intercept=self.intercept)
        fit = equations.solve(ridge)
        self._take_linear(fit.theta)
        return {"status": fit.status, "iterations": fit.iterations, "gradient": fit.gradient, "ridge": ridge}

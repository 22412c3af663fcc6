"""A regressor on torch with scikit-learn's protocol, for whatever fits mean targets with any regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from concordant.errors import UsageError
from concordant.torch.fitting import Fit, fit
from concordant.torch.objective import TorchObjective
from concordant.torch.scorers import LinearScorer, ReluScorer

Floats = NDArray[np.float64]


class TorchRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Weighted least squares with a linear scorer or one hidden layer of ReLU.

    Minimises Σ_i w_i (f(x_i) − y_i)² / (2 Σ w) + (ridge/2)‖θ‖² after features and target are brought to weighted mean 0
    and variance 1.

    Parameters
    ----------
    hidden : units of the layer; 0 is the linear scorer.
    ridge : λ; the linear scorer then equals ``Ridge(alpha=λ Σw)`` on standardised features and target.
    method : 'lbfgs' or 'adam'; None, 'adam' with ``batch``, else 'lbfgs'.
    batch : rows at a time.
    steps, rate, tolerance, seed : as in ``concordant.torch.fit``.
    device : where it trains; what is kept is on the CPU.

    Attributes: ``scorer_``, ``fit_`` (status, steps, value, gradient), ``n_features_in_`` and, if X had names,
    ``feature_names_in_``.

    >>> from sklearn.base import clone
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> net = clone(TorchRegressor(hidden=0, ridge=0.0)).fit(X, [1.0, 3.0, 5.0, 7.0])
    >>> net.predict([[10.0]]).round(6).tolist(), net.fit_.status
    ([21.0], 'converged')
    """

    def __init__(
        self,
        hidden: int = 32,
        *,
        ridge: float = 1e-3,
        method: str | None = None,
        steps: int = 200,
        batch: int | None = None,
        rate: float = 0.01,
        tolerance: float = 1e-7,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.hidden = hidden
        self.ridge = ridge
        self.method = method
        self.steps = steps
        self.batch = batch
        self.rate = rate
        self.tolerance = tolerance
        self.seed = seed
        self.device = device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TorchRegressor:
        """Fit to y (rows,) at X (rows, features), rows weighted by ``sample_weight`` ≥ 0."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        weight = _weights(sample_weight, len(X))
        self.mean_, self.scale_ = _standard(X, weight)
        target_mean, target_scale = _standard(y.astype(np.float64)[:, None], weight)
        self.target_mean_, self.target_scale_ = float(target_mean[0]), float(target_scale[0])
        features = X.shape[1]
        scorer = ReluScorer(features, self.hidden, seed=self.seed) if self.hidden else LinearScorer(features)
        none = torch.zeros(0, dtype=torch.int64)
        objective = TorchObjective(  # every row a graph of its own that is pulled to its target
            torch.arange(len(X) + 1),
            none,
            none,
            none.double(),
            none.double(),
            torch.as_tensor(0.5 * weight / weight.sum()),
            torch.as_tensor((y - self.target_mean_) / self.target_scale_),
        )
        batch = None if self.batch is None or self.batch >= len(X) else self.batch
        self.fit_: Fit = fit(
            scorer.to(self.device),
            torch.as_tensor((X - self.mean_) / self.scale_, device=self.device),
            objective.to(self.device),
            ridge=self.ridge,
            method=self.method or ("lbfgs" if batch is None else "adam"),
            steps=self.steps,
            batch=batch,
            rate=self.rate,
            tolerance=self.tolerance,
            seed=self.seed,
        )
        self.scorer_ = scorer.cpu()
        return self

    def predict(self, X: Any) -> Floats:
        """Return predictions (rows,); scikit-learn's NotFittedError before ``fit``."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        with torch.no_grad():
            score = self.scorer_(torch.as_tensor((X - self.mean_) / self.scale_)).numpy()
        return np.asarray(self.target_mean_ + self.target_scale_ * score, np.float64)


def _weights(sample_weight: Any, rows: int) -> Floats:
    weight = np.ones(rows) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if weight.shape != (rows,):
        raise UsageError(f"sample_weight has shape {weight.shape}, there are {rows:,} rows")
    wrong = int((~(weight >= 0) | ~np.isfinite(weight)).sum())
    if wrong:
        raise UsageError(f"{wrong:,} of {rows:,} weights are negative or not finite")
    if not weight.any():
        raise UsageError(f"all {rows:,} weights are zero; some must be positive")
    return weight


def _standard(columns: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Weighted mean and standard deviation (1 where it is 0) of each column."""
    mean = np.average(columns, axis=0, weights=weight)
    scale = np.sqrt(np.average((columns - mean) ** 2, axis=0, weights=weight))
    level = scale <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
    return mean, np.where(level, 1.0, scale)

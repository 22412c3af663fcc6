"""Any scikit-learn regressor as the scorer: fitted to targets with weights, whatever it is made of."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError
from concordant.learning.features.matrix import Matrix
from concordant.learning.scikit import clone, exactly, is_a, takes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SQUARES = {
    "lightgbm.LGBMRegressor": (None, "regression", "regression_l2", "l2", "mean_squared_error", "mse"),
    "xgboost.XGBRegressor": (None, "reg:squarederror"),
}
"""Boosting that takes an objective of ours in the place of squares, and what it calls these."""


def check_regressor(regressor: Any) -> None:
    """Raise UsageError for what cannot be cloned, fitted and asked for predictions."""
    if isinstance(regressor, type):
        raise UsageError(f"regressor must be an object such as {regressor.__name__}(), not the class")
    lacking = [name for name in ("fit", "predict", "get_params") if not hasattr(regressor, name)]
    if lacking:
        raise UsageError(
            f"regressor {type(regressor).__name__} has no {', '.join(lacking)}; any scikit-learn regressor is allowed"
        )


def knows_missing(regressor: Any) -> bool:
    """Whether a regressor takes missing values as they are, by its scikit-learn tags.

    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from sklearn.linear_model import Ridge
    >>> knows_missing(HistGradientBoostingRegressor()), knows_missing(Ridge()), knows_missing(None)
    (True, False, False)
    """
    utils = sys.modules.get("sklearn.utils")
    try:
        return utils is not None and bool(utils.get_tags(regressor).input_tags.allow_nan)
    except (AttributeError, TypeError):  # no regressor of scikit-learn's kind
        return False


def named(regressor: Any) -> str:
    """Return the package and the class of a regressor."""
    kind = type(regressor)
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def stage_count(regressor: Any) -> int | None:
    """Return how many trees a fitted boosting regressor adds up; None of any other."""
    if is_a(regressor, "HistGradientBoostingRegressor"):
        return int(regressor.n_iter_)
    if is_a(regressor, "GradientBoostingRegressor"):
        return int(regressor.n_estimators_)
    if named(regressor) == "lightgbm.LGBMRegressor" and regressor.boosting_type == "gbdt":
        return int(regressor.booster_.num_trees())
    if named(regressor) == "xgboost.XGBRegressor" and regressor.booster in (None, "gbtree"):
        return int(regressor.get_booster().num_boosted_rounds())
    return None


def stages(regressor: Any, Z: Matrix, since: int, to: int) -> Iterator[Floats]:
    """Yield what a fitted boosting regressor predicts after each of its trees from ``since`` + 1 to ``to``."""
    if named(regressor) == "lightgbm.LGBMRegressor":
        found = regressor.booster_.predict(Z, raw_score=True, num_iteration=since + 1)
        yield found
        for stage in range(since + 1, to):
            found = found + regressor.booster_.predict(Z, raw_score=True, start_iteration=stage, num_iteration=1)
            yield found
    elif named(regressor) == "xgboost.XGBRegressor":
        found = regressor.predict(Z, output_margin=True, iteration_range=(0, since + 1))
        yield found
        for stage in range(since + 1, to):
            found = regressor.predict(Z, output_margin=True, base_margin=found, iteration_range=(stage, stage + 1))
            yield found
    else:
        yield from islice(regressor.staged_predict(Z), since, to)


def knows_categories(regressor: Any) -> bool:
    """Whether a regressor takes columns of codes as categories: LightGBM's and ``HistGradientBoostingRegressor``."""
    kind = type(regressor)
    return exactly(regressor, "HistGradientBoostingRegressor") or (
        kind.__module__.partition(".")[0] == "lightgbm" and hasattr(kind, "get_params")
    )


def told_categories(regressor: Any, columns: tuple[int, ...]) -> Any:
    """Return the regressor told which columns hold categories."""
    if not columns:
        return regressor
    if is_a(regressor, "HistGradientBoostingRegressor"):
        return clone(regressor).set_params(categorical_features=list(columns))
    return clone(regressor).set_params(categorical_column=list(columns))  # the name that needs no argument of fit


@dataclass(frozen=True, eq=False)
class FreeIntercepts:
    """½ Σ w (f − y + t_q)² as an objective of boosting: the intercept t_q of each query is at its best in every round.

    Its gradient is w (f − y − m_q), m_q the weighted mean of f − y in the query (0 of rows without one), its curvature
    by each score is taken to be w.
    """

    weight: Floats
    owner: Ints
    """The query of each row, −1: none."""

    def __call__(self, target: Floats, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature, shape (rows,)."""
        left, free = scores - target, self.owner >= 0
        mean = np.zeros(len(left))
        of = self.owner[free]
        total = np.bincount(of, self.weight[free])
        mean[free] = (np.bincount(of, self.weight[free] * left[free]) / np.where(total > 0, total, 1.0))[of]
        return self.weight * (left - mean), self.weight


def freely(regressor: Any) -> bool:
    """Whether each query's intercept is free in every round of a regressor, and not only taken out of its targets."""
    asked = SQUARES.get(named(regressor))
    if asked is None or regressor.get_params().get("objective") not in asked:
        return False
    given = regressor.get_params()
    return given.get("boosting_type") in (None, "gbdt", "dart") and given.get("booster") in (None, "gbtree", "dart")


def prepared(
    regressor: Any, Z: Matrix, target: Floats, weight: Floats, owner: Ints | None
) -> tuple[Any, Matrix, Floats, dict[str, Any], float]:
    """Return a clone, rows, targets and further arguments that it is fitted to, and the unit of its predictions.

    Weights are scaled to mean 1 and targets are divided by the unit, which makes their weighted mean square 1: so what
    regressors count in absolute terms (rows in a leaf, tolerances, step lengths) keeps its meaning. Rows of weight 0
    are left out. Where all weights are equal none are passed on. One that takes an objective gets ``FreeIntercepts``
    of the queries, ``owner`` (rows,), and no weights beside it. Errors (UsageError): weights differ and the regressor's
    ``fit`` takes no sample_weight.
    """
    keep = weight > 0
    if not keep.all():
        Z, target, weight = Z[keep], target[keep], weight[keep]
        owner = None if owner is None else owner[keep]
    weight = weight / weight.mean()
    unit = float(np.sqrt((weight * target**2).mean()))
    unit = unit if unit > 0 else 1.0
    model = clone(regressor)
    if owner is not None and freely(regressor):
        model.set_params(objective=FreeIntercepts(weight, owner))
        if hasattr(model, "base_score") and model.base_score is None:
            model.set_params(base_score=0.0)
        return model, Z, target / unit, {}, unit
    alike = np.allclose(weight, 1.0, rtol=1e-9, atol=0)
    return model, Z, target / unit, {} if alike else {_weight_name(regressor): weight}, unit


def fit_regressor(
    regressor: Any, Z: Matrix, target: Floats, weight: Floats, owner: Ints | None = None, *, limited: bool = False
) -> tuple[Any, float]:
    """Fit a clone of the regressor to targets with weights, both per row, as ``prepared``; return it and the unit.

    ``limited``: its iterations were chosen, so that it has no more is nothing to warn of.
    """
    model, Z, target, extra, unit = prepared(regressor, Z, target, weight, owner)
    try:
        with catch_warnings():
            if limited and "sklearn.exceptions" in sys.modules:
                simplefilter("ignore", sys.modules["sklearn.exceptions"].ConvergenceWarning)
            fitted = model.fit(Z, target, **extra)
    except ValueError as error:
        what = f"the regressor {type(regressor).__name__} cannot learn from these {len(Z):,} rows"
        raise InputError(f"{what}: {error}") from error
    if isinstance(model.get_params().get("objective"), FreeIntercepts):  # it holds the training rows
        given = regressor.get_params()
        if hasattr(fitted, "booster_"):
            fitted = as_regressor(fitted.booster_, Z.shape[1], given)
        fitted.set_params(**given)
    return fitted, unit


def as_regressor(booster: Any, width: int, params: Mapping[str, Any]) -> Any:
    """Return trees as the LGBMRegressor that predicts their sum, which saving and exporting know."""
    package = importlib.import_module("lightgbm")
    text = booster.model_to_string(num_iteration=-1).replace("objective=custom", "objective=regression")
    kept = package.Booster(model_str=text)
    found = package.LGBMRegressor(n_estimators=max(kept.num_trees(), 1), learning_rate=params["learning_rate"])
    found._Booster = kept
    found._n_features = found._n_features_in = width
    found.fitted_ = True
    found._objective = "regression"
    return found


def _weight_name(regressor: Any) -> str:
    """What the regressor's fit calls the weights of rows; of a pipeline it is its last step that takes them."""
    name, last = "sample_weight", regressor
    while is_a(last, "Pipeline"):
        step, last = last.steps[-1]
        name = (
            f"{step}__{name}"
            if name == "sample_weight"
            else f"{name.removesuffix('sample_weight')}{step}__sample_weight"
        )
    inner = getattr(last, "regressor", None)  # TransformedTargetRegressor passes weights on
    if not (takes(last, "sample_weight") or (inner is not None and takes(inner, "sample_weight"))):
        raise UsageError(
            f"the regressor {type(last).__name__} takes no sample_weight, but queries weigh differently here (by their "
            "judgments and length); choose a regressor whose fit takes it"
        )
    return name

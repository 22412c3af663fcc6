"""Trees of LightGBM on slopes, one after another, and how well those so far order what is held out."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.learning.features.matrix import Matrix
from concordant.learning.rankers.estimator import known
from concordant.learning.rankers.slopes import Slopes

Floats = NDArray[np.float64]


def lightgbm() -> Any:
    """Return LightGBM. Errors (UsageError): it is not installed."""
    try:
        return importlib.import_module("lightgbm")
    except ImportError:
        raise UsageError("BoostedRanker grows its trees with LightGBM: pip install lightgbm") from None


@dataclass(frozen=True, eq=False)
class Share:
    """Trees on one loss: its slopes, the scores they start from, how many, and what they are multiplied by."""

    slopes: Slopes
    start: Floats
    rounds: int
    scale: float


@dataclass(frozen=True, eq=False)
class Growing:
    """Rows to learn from, and how trees are grown."""

    Z: Matrix
    params: Mapping[str, Any]

    @cached_property
    def known(self) -> Matrix:
        """Rows as the linear scorer sees them."""
        return known(self.Z)

    @cached_property
    def _some(self) -> bool:
        """Whether any feature differs between rows; LightGBM refuses to start where none does."""
        return bool((np.nanmax(self.Z, axis=0, initial=-np.inf) > np.nanmin(self.Z, axis=0, initial=np.inf)).any())

    @cached_property
    def _data(self) -> Any:
        """Rows with features binned, once for all that is grown; labels are those of no loss."""
        data = lightgbm().Dataset(self.Z, np.zeros(len(self.Z)), params=dict(self.params))
        return data.construct()

    def _part(self, rows: NDArray[np.int64] | Matrix | None) -> Any:
        """All rows, some of them, or others, with the same bins."""
        if rows is None or (rows.ndim == 1 and len(rows) == len(self.Z)):
            return self._data
        if rows.ndim == 1:
            return self._data.subset(rows.tolist())
        return self._data.create_valid(rows, np.zeros(len(rows)), params=dict(self.params))

    def stages(
        self, slopes: Slopes, start: Floats, rows: NDArray[np.int64] | None, held: NDArray[np.int64] | Matrix
    ) -> Iterator[Floats]:
        """Yield what trees grown on rows (None: all) add to the scores of held-out rows, or of others, after each."""
        if not self._some:
            return
        booster = lightgbm().Booster(dict(self.params), self._part(rows))
        booster.add_valid(self._part(held), "held out")
        chosen = slice(None) if rows is None else rows
        now: list[Floats] = []

        def fobj(predicted: Floats, _: Any) -> tuple[Floats, Floats]:
            scores = start.copy()
            scores[chosen] += predicted
            gradient, curvature = slopes(scores)
            return gradient[chosen], curvature[chosen]

        def take(predicted: Floats, _: Any) -> tuple[str, float, bool]:
            now[:] = [np.array(predicted, np.float64)]
            return "taken", 0.0, True

        while not booster.update(fobj=fobj):
            booster.eval_valid(take)
            yield now[0]

    def grown(self, shares: list[Share]) -> Any:
        """Return one booster with the trees of all shares, each multiplied by its scale."""
        booster = lightgbm().Booster(dict(self.params), self._data)
        for share in (one for one in shares if one.rounds):
            booster.reset_parameter({"learning_rate": self.params["learning_rate"] * share.scale})
            before: list[Floats] = []

            def fobj(
                predicted: Floats, _: Any, share: Share = share, before: list[Floats] = before
            ) -> tuple[Floats, Floats]:
                before.extend(() if before else (np.array(predicted),))
                return share.slopes(share.start + (predicted - before[0]) / share.scale)

            for _ in range(share.rounds):
                if booster.update(fobj=fobj):
                    break
        return booster


def stopped_at(losses: Iterator[float], most: int, patience: int) -> tuple[int, list[float]]:
    """Return the stage of least loss before ``patience`` stages without a lower one, and the losses; 0 is the start.

    >>> stopped_at(iter([0.3, 0.2, 0.25, 0.2, 0.1]), 10, 2)
    (1, [0.3, 0.2, 0.25, 0.2])
    """
    found: list[float] = []
    best = 0
    for stage, loss in enumerate(losses):
        found.append(loss)
        if loss < found[best]:
            best = stage
        if stage - best >= patience or stage >= most:
            break
    return best, found


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

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
    def _some(self) -> bool:
        """Whether any feature differs between rows; LightGBM refuses to start where none does."""
        return bool((np.nanmax(self.Z, axis=0, initial=-np.inf) > np.nanmin(self.Z, axis=0, initial=np.inf)).any())

    def _data(self) -> Any:
        """Rows with features binned; labels are those of no loss."""
        data = lightgbm().Dataset(self.Z, np.zeros(len(self.Z)), params=dict(self.params), free_raw_data=False)
        return data.construct()

    def stages(self, slopes: Slopes, start: Floats, held: Matrix) -> Iterator[Floats]:
        """Yield what the trees add to the scores of held-out rows, after each."""
        if not self._some:
            return
        booster = lightgbm().Booster(dict(self.params), self._data())
        added = np.zeros(len(held))
        stage = 0
        while True:
            ended = booster.update(fobj=lambda predicted, _: slopes(start + predicted))
            if ended:
                return
            added = added + booster.predict(held, raw_score=True, start_iteration=stage, num_iteration=1)
            stage += 1
            yield added

    def grown(self, shares: list[Share]) -> Any:
        """Return one booster with the trees of all shares, each multiplied by its scale."""
        booster = lightgbm().Booster(dict(self.params), self._data())
        before = np.zeros(len(self.Z))
        now = before
        for share in (one for one in shares if one.rounds):
            booster.reset_parameter({"learning_rate": self.params["learning_rate"] * share.scale})

            def fobj(predicted: Floats, _: Any, share: Share = share, before: Floats = before) -> tuple[Floats, Floats]:
                return share.slopes(share.start + (predicted - before) / share.scale)

            for _ in range(share.rounds):
                if booster.update(fobj=fobj):
                    break
            now = booster.predict(self.Z, raw_score=True) if booster.num_trees() else now
            before = now
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

"""Trees of LightGBM on slopes, one after another, and how well those so far order what is held out."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError
from concordant.learning.features.matrix import Features, Matrix
from concordant.learning.features.normalising import Normaliser
from concordant.learning.rankers.estimator import known
from concordant.learning.rankers.slopes import Slopes

Floats = NDArray[np.float64]
MOST_CODES = 1 << 24
"""What float32 counts up to."""


def lightgbm() -> Any:
    """Return LightGBM. Errors (UsageError): it is not installed."""
    try:
        return importlib.import_module("lightgbm")
    except ImportError:
        raise UsageError("BoostedRanker grows its trees with LightGBM: pip install 'concordant[boosted]'") from None


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
    categories: tuple[int, ...] = ()
    """Columns that hold codes of categories."""

    @cached_property
    def known(self) -> Matrix:
        """Rows as the linear scorer sees them: missing values at the mean, categories at 0."""
        return without(known(self.Z), self.categories)

    @cached_property
    def _some(self) -> bool:
        """Whether any feature differs between rows; LightGBM refuses to start where none does."""
        return bool((np.nanmax(self.Z, axis=0, initial=-np.inf) > np.nanmin(self.Z, axis=0, initial=np.inf)).any())

    @cached_property
    def _data(self) -> Any:
        """Rows with features binned, once for all that is grown; labels are those of no loss."""
        given = {"params": dict(self.params), "categorical_feature": list(self.categories)}
        return lightgbm().Dataset(self.Z, np.zeros(len(self.Z)), **given).construct()

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


@dataclass(frozen=True, eq=False)
class Uncoded(Normaliser):
    """A normaliser that leaves columns of codes as they are."""

    categories: tuple[int | str, ...] = ()
    """Places or names of the columns."""
    places: tuple[int, ...] = ()

    def fit(self, features: Features | Matrix, names: Sequence[str] | None = None) -> Uncoded:
        """As of any normaliser. Errors (InputError): columns that are not there, values that are no codes."""
        X = features.X if isinstance(features, Features) else features
        called = list(names or (features.names if isinstance(features, Features) else ()))
        places = []
        for one in self.categories:
            place = called.index(one) if one in called else one
            if isinstance(place, str) or not 0 <= place < X.shape[1]:
                raise InputError(f"categories: there is no column {one!r} among {X.shape[1]:,}")
            values = X[:, place]
            wrong = ~(np.isnan(values) | ((values >= 0) & (values <= MOST_CODES) & (values == np.floor(values))))
            if wrong.any():
                raise InputError(
                    f"categories: {int(wrong.sum()):,} values of column {one!r} are no codes (first: "
                    f"{values[wrong][0]:g}); codes are whole numbers from 0 to {MOST_CODES:,}, NaN where missing"
                )
            places.append(int(place))
        made = super().fit(features, names)
        mean, scale, *_ = made.fitted()
        at = np.isin(np.arange(len(mean)), places)
        return replace(
            self,
            **{
                **vars(made),
                "mean": np.where(at, 0.0, mean),
                "scale": np.where(at, 1.0, scale),
                "places": tuple(places),
            },
        )


def without(Z: Matrix, columns: Sequence[int]) -> Matrix:
    """Return features with 0 in some columns."""
    return Z if not len(columns) else np.where(np.isin(np.arange(Z.shape[1]), columns), Z.dtype.type(0), Z)


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

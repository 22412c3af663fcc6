"""An abstaining ranker as values that JSON keeps, and arrays; and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from concordant.abstaining.params import check_params
from concordant.abstaining.risk_coverage import RiskCoverage
from concordant.abstaining.rule import Rule
from concordant.abstaining.scorer import unfrozen
from concordant.errors import InputError, few
from concordant.features.normalising import Normaliser
from concordant.json_values import Fields
from concordant.rankers.kept import RANKERS
from concordant.rankers.state import plain_values

__all__ = ["Restorable"]

CURVE = ("threshold", "declined", "wrong", "estimated")
OWN = "abstaining-"
"""What the names of the arrays begin with that are not the ranker's inside."""


class Restorable:
    """An abstaining ranker that can be kept without a pickle, the ranker inside with it."""

    ranker: Any
    ranker_: Any

    @property
    def foreign_(self) -> Any:
        """The part of the ranker that is not concordant's own and is kept beside the state; else None."""
        inner = unfrozen(self.ranker_)
        return inner.foreign_ if type(inner).__name__ in RANKERS else inner

    @property
    def regressor_(self) -> Any:
        """As ``foreign_``; whoever reads a model sets it."""
        return self.foreign_

    @regressor_.setter
    def regressor_(self, value: Any) -> None:
        if self.ranker_ is None:
            self.ranker = self.ranker_ = value
        else:
            self.ranker_.regressor_ = value

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that scoring and abstaining need: values that JSON keeps, and arrays. Errors: NotFittedError.

        A ranker inside that is not concordant's is not in it: it is kept beside, as ``foreign_``.
        """
        check_is_fitted(self, "rule_")
        return _state_of(self)

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the ranker of a ``to_state``. Errors: InputError."""
        made = cls(None)  # type: ignore[call-arg]
        _restore(made, values, arrays)
        return made


def _state_of(ranker: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the state of a fitted AbstainingRanker."""
    inner = unfrozen(ranker.ranker_)
    state, arrays = inner.to_state() if type(inner).__name__ in RANKERS else (None, {})
    rule, own = ranker.rule_.to_state()
    curve = ranker.curve_
    if curve is not None:
        own |= {name: getattr(curve, name) for name in CURVE if getattr(curve, name) is not None}
    params = {name: value for name, value in ranker.get_params(deep=False).items() if name != "ranker"}
    params["norm"] = rule["norm"]
    params["gamma"] = str(ranker.gamma) if ranker.gamma == np.inf else ranker.gamma
    names = getattr(ranker, "feature_names_in_", None)
    values = {
        "ranker": type(ranker).__name__,
        "inside": None if state is None else {"ranker": type(inner).__name__, "state": state},
        "params": plain_values(params),
        "rule": plain_values(rule),
        "curve": None if curve is None else {"by": curve.by, "mass": float(curve.mass), "pairs": curve.pairs},
        "names": None if names is None else [str(name) for name in names],
        "normaliser": ranker.normaliser_.to_dict(),
        "status": plain_values({**ranker.status_, "gamma": rule["gamma"]}),
    }
    return values, {**arrays, **{f"{OWN}{name}": array for name, array in own.items()}}


def _restore(made: Any, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Give an AbstainingRanker the state of ``to_state``. Errors: InputError."""
    own = {name.removeprefix(OWN): array for name, array in arrays.items() if name.startswith(OWN)}
    given = Fields(values, "the state of the ranker")
    made.normaliser_ = Normaliser.from_dict(given["normaliser"])
    made.n_features_in_ = len(made.normaliser_.names)
    inside = given["inside"]
    if inside is None:
        made.ranker_ = None  # whoever reads the model sets regressor_
    else:
        held = {name: array for name, array in arrays.items() if not name.startswith(OWN)}
        kind = Fields(inside, "the ranker inside").text("ranker", tuple(RANKERS))
        made.ranker_ = RANKERS[kind].from_state(inside["state"], held)
        if made.ranker_.n_features_in_ != made.n_features_in_:
            raise given.wrong(f"the ranker inside does not take {made.n_features_in_:,} features")
    params = given.fields("params").values
    if unknown := set(params) - set(made.get_params(deep=False)):
        raise given.wrong(f"unknown parameters {few(sorted(unknown))}")
    made.set_params(**{**params, "ranker": made.ranker_})
    made.gamma = float(made.gamma) if made.gamma == "inf" else made.gamma
    if inside is not None:
        check_params(made)
    made.rule_ = Rule.from_state(given.fields("rule").values, own)
    try:
        made.curve_ = None if given["curve"] is None else _curve(given["curve"], own)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise given.wrong(f"{type(error).__name__} {error}") from None
    if given["names"] is not None:
        names = given.texts("names")
        if len(names) != made.n_features_in_ or names != tuple(getattr(made.ranker_, "feature_names_in_", names)):
            raise given.wrong("the names of its features are not those of the ranker inside")
        made.feature_names_in_ = np.array(names, object)
    made.status_ = {**given.fields("status").values, "gamma": made.rule_.gamma}


def _curve(facts: Mapping[str, Any], own: Mapping[str, NDArray[Any]]) -> RiskCoverage:
    columns = {name: np.array(own[name], np.float64) for name in CURVE if name in own}
    if len({len(column) for column in columns.values()}) != 1:
        raise InputError("the state of the ranker cannot be read: columns of its curve differ in length")
    return RiskCoverage(str(facts["by"]), **columns, mass=float(facts["mass"]), pairs=int(facts["pairs"]))

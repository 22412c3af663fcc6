"""AbstainingRanker: a ranker that says of some pairs “these two I will not order”, at a cost that the user names."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from concordant.abstention.held_pairs import (
    HeldPairs,
    check_scorer,
    cross_fitted,
    fit_scorer,
    is_fitted,
    judged_pairs,
    scale_of,
    scores_of,
    unfrozen,
)
from concordant.abstention.points import cost_of, norm_name
from concordant.abstention.risk_coverage import RiskCoverage
from concordant.abstention.rule import BY, CALIBRATIONS, Rule, chosen, curve_of, facts_of, recosted, remarks
from concordant.abstention.tiers import PartialOrders
from concordant.errors import InputError, Setting, UsageError, few
from concordant.io.log.json_values import Fields
from concordant.learning.features.matrix import Features, Matrix
from concordant.learning.features.normalising import Normaliser
from concordant.learning.rankers.estimator import json_values
from concordant.learning.rankers.kept import RANKERS
from concordant.learning.rankers.validation import Training, learning_rows, matched, rows_of
from concordant.learning.scikit import BaseEstimator, check_is_fitted
from concordant.preferences.splits import SPLITS

SCALES = ("auto", "none")


def check_params(given: Any) -> None:
    """Refuse parameters that mean nothing, before any work. Errors: UsageError."""
    check_scorer(given.ranker)
    cost_of(given.cost)
    norm_name(given.norm)
    for name, allowed in (("by", BY), ("scale", SCALES), ("calibration", CALIBRATIONS), ("split", ("auto", *SPLITS))):
        value = getattr(given, name)
        if not isinstance(value, str) or value not in allowed:
            raise UsageError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    gamma, share = given.gamma, given.share
    auto = isinstance(gamma, str) and gamma == "auto"
    if not (gamma is None or auto or (_is_number(gamma) and gamma >= 0)):
        raise UsageError(f"gamma must be 'auto', None or a distance of at least 0, not {gamma!r}")
    if share is not None and not (_is_number(share) and 0 <= share <= 1):
        raise UsageError(f"share must be a number from 0 to 1, not {share!r}")
    if given.by == "risk" and not auto:
        raise UsageError(
            Setting("gamma"),
            " is for abstention by distance; ",
            Setting("by", "risk"),
            " declines what has an estimated risk above the cost",
        )
    if share is not None and not auto:
        raise UsageError(
            Setting("share"), " bounds what is chosen by held-out judgments, and ", Setting("gamma"), " was given"
        )
    for name, least in (("folds", 2), ("pairs", 1), ("seed", 0)):
        value = getattr(given, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise UsageError(f"{name} must be an integer of at least {least}, not {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and not math.isnan(value)


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
        "params": json_values(params),
        "rule": json_values(rule),
        "curve": None if curve is None else {"by": curve.by, "mass": float(curve.mass), "pairs": curve.pairs},
        "names": None if names is None else [str(name) for name in names],
        "normaliser": ranker.normaliser_.to_dict(),
        "status": json_values({**ranker.status_, "gamma": rule["gamma"]}),
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


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class AbstainingRanker(PartialOrders, Restorable, BaseEstimator):  # type: ignore[misc]
    """A ranker that declines to order two items when they are too near, or when it is likely to be wrong.

    Declining costs ``cost``, a wrong order costs 1. By *distance* a pair is declined when ‖z − z'‖ ≤ γ, z the
    normalised features: the abstention of Mao, Mohri and Zhong, for which their consistency bounds hold. By *risk* it
    is declined when the chance that its order is wrong, estimated from held-out judgments given the score difference,
    exceeds the cost.

    Parameters
    ----------
    ranker : a fitted ranker of this package, or anything with ``predict`` on a matrix (a regressor, a Pipeline); the
        judgments that ``fit`` is given must then be held-out ones. One that is not fitted is fitted to them, and γ and
        risk come from ``folds`` rankers each fitted without a part. ``clone`` forgets a fit, as scikit-learn's does;
        its ``FrozenEstimator`` keeps one.
    gamma : γ ≥ 0; 'auto', the γ of least held-out abstention loss (the smallest of equal ones); or None, never.
        ‖z − z'‖ ≤ 0 declines items whose features are equal.
    cost : c, from 0 to 1. A coin is wrong half the time, so beyond ½ it is cheaper.
    norm : '1', '2' or 'inf', of the distance.
    by : 'distance' or 'risk'.
    share : most that may be declined of the held-out pairs, by weight: the nearest, or (by risk) those of the
        largest estimated risk. With cost 0 as much of that share is declined as ties allow and as lowers the loss:
        nothing for the sake of pairs without a mistake. At equal coverage ``RiskCoverage.at`` compares rules exactly.
    scale : 'auto', distances are taken in the ranker's own standardised features, or, where it has none, in features
        standardised here on the rows that ``fit`` is given; 'none', in the features as they are.
    calibration : 'isotonic' or 'logistic', see ``ConditionalRisk``.
    folds, split, seed : of the parts held out where the ranker has yet to be fitted; split 'auto' is 'queries' where
        there are at least ``folds`` of them, else 'judgments' (of labels: rows).
    pairs : pairs of labelled rows that are looked at, at most; beyond, a random part (a note says so).

    Attributes: ``ranker_``, ``gamma_`` (None: never), ``rule_``, ``curve_`` (the ``hull`` of a ``RiskCoverage``: the
    steps that are best at some cost), ``status_``, ``normaliser_``, ``n_features_in_``, ``feature_names_in_``. Errors:
    UsageError, InputError.

    >>> from concordant.preferences.preferences import Preferences
    >>> from concordant.learning.rankers.edges import EdgeRanker
    >>> votes = Preferences.from_comparisons(["b", "c", "c", "a"] * 5, ["a", "b", "a", "b"] * 5)
    >>> features = {"item": ["a", "b", "c"], "length": [1.0, 1.1, 3.0]}
    >>> careful = AbstainingRanker(EdgeRanker("ranknet").fit(features, votes), cost=0.2).fit(features, votes)
    >>> careful.tiers(features).tolist(), round(careful.gamma_, 3)
    ([2, 2, 1], 0.109)

    Source: Mao, Mohri and Zhong, Ranking with Abstention (2023), §2.1; Bounded-Abstention Pairwise Learning to Rank
    (2025) for ``by='risk'`` with ``share``.
    """

    rule_: Rule
    status_: dict[str, Any]

    def __init__(
        self,
        ranker: Any,
        *,
        gamma: float | str | None = "auto",
        cost: float = 0.1,
        norm: Any = "inf",
        by: str = "distance",
        share: float | None = None,
        scale: str = "auto",
        calibration: str = "isotonic",
        folds: int = 5,
        split: str = "auto",
        pairs: int = 2_000_000,
        seed: int = 0,
    ) -> None:
        self.ranker = ranker
        self.gamma = gamma
        self.cost = cost
        self.norm = norm
        self.by = by
        self.share = share
        self.scale = scale
        self.calibration = calibration
        self.folds = folds
        self.split = split
        self.pairs = pairs
        self.seed = seed

    # -- scikit-learn ----------------------------------------------------------------------------------------------
    def fit(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, qid: Any = None, group: Any = None
    ) -> Self:
        """Learn from judgments when to abstain, and the ranker too where it is not fitted.

        Arguments as of any ranker: Features and Preferences, a matrix and Judged, or labels. A fitted ranker whose
        features are on one scale, with a number as ``gamma``, needs neither.
        """
        check_params(self)
        if (X is None) != (y is None):
            what = "features" if X is None else "judgments: it requires y to be passed, but the target y is None"
            raise UsageError(f"fit takes features and judgments, or neither of them; there are no {what}")
        if y is None:
            return self._without_judgments()
        training = learning_rows(X, y, self.missing_, sample_weight, qid=qid, group=group)
        training.features.refuse_special("AbstainingRanker, which measures distances,")
        fitted = is_fitted(self.ranker)
        self.ranker_ = self.ranker if fitted else fit_scorer(self.ranker, training)
        self._keep(training)
        if self.by == "distance" and self.gamma != "auto" and not fitted:
            held = None
        elif fitted:
            held = self._held(self.ranker_, training)
        else:
            split = self.split
            if split == "auto":
                split = "queries" if len(training.start) > self.folds else "judgments"
            parts = cross_fitted(self.ranker, training, self.folds, split, self.seed)
            held = HeldPairs.joined([self._held(ranker, part, training.named) for ranker, part in parts])
        how = "judgments given, ranker fitted before" if fitted else f"{self.folds} parts held out"
        self._choose(held, how)
        return self

    def predict(self, X: Any) -> Floats:
        """Return one score per row, those of the ranker; abstention is about pairs."""
        check_is_fitted(self, "rule_")
        return scores_of(self.ranker_, *rows_of(X, self.missing_, self._names))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, qid: Any = None, group: Any = None) -> float:
        """Return 1 less the abstention loss on these judgments: pairs ordered wrongly, plus ``cost`` for each declined.

        A pair with equal scores is half wrong. Errors: InputError where nothing is compared.
        """
        held = self._judged(X, y, sample_weight, qid, group)
        whole = float(held.mass.sum())
        if not whole > 0:
            raise InputError("no judgment compares two of the items: there is nothing to be scored by")
        declined = self.rule_.declines(held.difference, held.distance)
        return 1.0 - float(np.where(declined, self.rule_.cost * held.mass, held.wrong).sum()) / whole

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    # -- what it costs ---------------------------------------------------------------------------------------------
    def risk_coverage(self, X: Any, y: Any, sample_weight: Any = None, *, by: str | None = None) -> RiskCoverage:
        """Return how often the order is wrong on these judgments, for every share of pairs declined.

        ``by`` is 'distance' or 'risk' (the score difference), by default the ranker's own rule.
        """
        if by not in (None, *BY):
            raise UsageError(f"by must be one of {', '.join(BY)}, not {by!r}")
        held = self._judged(X, y, sample_weight)
        return curve_of(held, by or self.rule_.by, self.rule_.risk)

    def with_cost(self, cost: float) -> Self:
        """Return this ranker with the rule that is best at another cost, from the curve that was kept.

        Exact for every cost: the curve keeps all steps that are best at some cost. Errors: UsageError where γ was
        given, or a share was, so that nothing was chosen by cost alone.
        """
        check_is_fitted(self, "rule_")
        if self.share is not None:
            raise UsageError("this ranker was made with a bound on the share declined; fit one for the other cost")
        made = copy.copy(self)
        made.cost = cost_of(cost)
        made.rule_, facts = recosted(self.rule_, made.cost, self.curve_, self.gamma)
        notes = remarks(made.rule_, facts, self.normaliser_, None, self.gamma) if "coverage" in facts else []
        made.status_ = {**{name: self.status_[name] for name in ("status", "chosen by")}, **facts, "notes": notes}
        return made

    # -- what was chosen -------------------------------------------------------------------------------------------
    @property
    def gamma_(self) -> float | None:
        """γ; None where nothing is declined by distance."""
        return self.rule_.gamma

    @property
    def missing_(self) -> str:
        """What the ranker does with missing values."""
        return str(getattr(unfrozen(getattr(self, "ranker_", self.ranker)), "missing_", "raise"))

    # -- inside ----------------------------------------------------------------------------------------------------
    @property
    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names.tolist())

    def _without_judgments(self) -> Self:
        if not is_fitted(self.ranker):
            raise UsageError("fit needs features and judgments: the ranker has not learned from any yet")
        if self.by == "risk" or self.gamma == "auto":
            what = "gamma='auto' chooses γ" if self.by == "distance" else "by='risk' estimates risks"
            raise UsageError(f"{what} by held-out judgments: give fit features and judgments, or gamma a distance")
        self.ranker_ = self.ranker
        self._keep(None)
        self._choose(None, "gamma given")
        return self

    def _keep(self, training: Training | None) -> None:
        """Take over the names of the features, and the scale of distances."""
        names = getattr(unfrozen(self.ranker_), "feature_names_in_", None)
        if names is None and training is not None and training.named:
            names = np.array(training.features.names, object)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.normaliser_ = scale_of(self.ranker_, training, self._names, standardise=self.scale == "auto")
        self.n_features_in_ = len(self.normaliser_.names)

    def _choose(self, held: HeldPairs | None, how: str) -> None:
        """Set the rule, the curve and the status."""
        norm = norm_name(self.norm)
        if held is None:
            self.rule_ = Rule("distance", norm, float(self.cost), _gamma(self.gamma))
            self.curve_ = None
            facts: dict[str, Any] = {}
        else:
            self.rule_, curve = chosen(held, self.by, norm, float(self.cost), self.gamma, self.share, self.calibration)
            self.curve_ = curve.hull()
            facts = facts_of(self.rule_, curve)
        inner = getattr(unfrozen(self.ranker_), "status_", {})
        said = remarks(self.rule_, facts, self.normaliser_, self.share, self.gamma)
        notes = [*inner.get("notes", ()), *said, *(held.notes if held is not None else ())]
        self.status_ = {"status": inner.get("status", "fitted"), "chosen by": how, **facts, "notes": notes}

    def _seen(self, features: Features, named: bool) -> tuple[Floats, Matrix]:
        """Scores and normalised features of rows."""
        features.refuse_special("AbstainingRanker, which measures distances,")
        X = matched(features, named, self._names, self.n_features_in_, type(self).__name__)
        return scores_of(self.ranker_, features, named), self.normaliser_.apply(X)

    def _held(self, ranker: Any, part: Training, named: bool | None = None) -> HeldPairs:
        features, named = part.features, part.named if named is None else named
        scores = scores_of(ranker, features, named)
        Z = self.normaliser_.apply(matched(features, named, self._names, self.n_features_in_))
        return judged_pairs(part, scores, Z, norm_name(self.norm), most=int(self.pairs), seed=self.seed)

    def _judged(self, X: Any, y: Any, sample_weight: Any, qid: Any = None, group: Any = None) -> HeldPairs:
        check_is_fitted(self, "rule_")
        held = learning_rows(X, y, self.missing_, sample_weight, whole=True, qid=qid, group=group)
        held.refuse_cut()
        return self._held(self.ranker_, held)


def _gamma(gamma: Any) -> float | None:
    return None if gamma is None else float(gamma)

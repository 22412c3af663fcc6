"""A fitted ranker as a sum of plain terms, which every format is written from.

Trees on features as they are given: the normaliser and the rounding before a comparison go into the thresholds.

Every step before a comparison (logarithm, mean, scale, rounding to float32) is monotone. So z(x) ≤ threshold where
x ≤ x*, x* the largest float64 for which it holds, found by bisection over the float64 numbers: exact, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.abstention.held_pairs import unfrozen
from concordant.abstention.ranker import AbstainingRanker
from concordant.apps.models.regressors import Network, PlainLinear, Trees, booster_text, booster_trees, plain_regressor
from concordant.errors import Setting, UsageError, few, twice
from concordant.io.log.json_values import unicode_text
from concordant.learning.features.normalising import Normaliser, signed_log
from concordant.learning.rankers.boosting import RankBoostRanker
from concordant.learning.rankers.estimator import LinearRanker, Ranker
from concordant.learning.rankers.per_query import QueryRankers
from concordant.learning.scikit import check_is_fitted
from concordant.learning.solvers.rankboost import RankBoost

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Normalised = Callable[[Floats, Any], Floats]
"""Values x and the feature of each ↦ z."""
LARGEST = float(np.finfo(np.float64).max)


def trees_of_given(trees: Trees, normalised: Normalised, *, keep: bool, unit: float) -> Trees:
    """Return trees on x that give ``unit`` times what ``trees`` give on z(x).

    ``keep``: a missing x goes where the trees send a missing z; else where what it is filled with goes.

    >>> one = np.array([0])
    >>> stump = trees_of_rules(RankBoost(one, one + 0.5, one + 2.0, one + 1, one, one + 1.0, 1, ""))
    >>> shifted = trees_of_given(stump, lambda x, feature: (x - 3.0) / 2.0, keep=True, unit=10.0)
    >>> shifted.threshold[0], shifted.predict(np.array([[4.0], [4.1]])).tolist()
    (np.float64(4.0), [0.0, 20.0])
    """
    place = np.flatnonzero(trees.left != np.arange(len(trees.left)))
    feature, threshold = trees.feature[place], trees.threshold[place]

    def passes(x: Floats) -> NDArray[np.bool_]:
        z = normalised(x, feature)
        with np.errstate(over="ignore"):
            return np.asarray((z.astype(np.float32) if trees.single else z) <= threshold)

    cut, never = _largest(passes, len(place))
    left, right, missing_left = trees.left.copy(), trees.right.copy(), trees.missing_left.copy()
    if not keep:
        missing_left[place] = passes(np.full(len(place), np.nan))
    turned = place[never]  # no x passes, but all are up to the largest: the children change places
    left[turned], right[turned] = trees.right[turned], trees.left[turned]
    missing_left[turned] = ~missing_left[turned]
    raw = np.zeros(len(trees.threshold))
    raw[place] = np.where(never, LARGEST, cut)
    value = trees.value * (trees.scale * unit)
    return Trees(trees.root, trees.feature, raw, left, right, missing_left, value, trees.base * unit, 1.0, False)


def trees_of_rules(rules: RankBoost) -> Trees:
    """Return RankBoost's rules as stumps: root, not above the threshold, above it."""
    rounds = len(rules.alpha)
    root = 3 * np.arange(rounds)
    node = np.arange(3 * rounds)
    left, right, feature, threshold = node.copy(), node.copy(), np.zeros(3 * rounds, np.int64), np.zeros(3 * rounds)
    left[root], right[root] = root + 1, root + 2
    feature[root], threshold[root] = rules.feature, rules.threshold
    missing_left = np.zeros(3 * rounds, bool)
    missing_left[root] = rules.missing == 0
    value = np.zeros(3 * rounds)
    value[np.where(rules.direction > 0, root + 2, root + 1)] = rules.alpha
    return Trees(root, feature, threshold, left, right, missing_left, value, 0.0, 1.0, False)


def _largest(passes: Callable[[Floats], NDArray[np.bool_]], count: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the largest finite x of each that passes, and whether none does; what is below it passes too."""
    low, high = np.full(count, -LARGEST), np.full(count, LARGEST)
    never, always = ~passes(low), passes(high)
    low, high = _place(low), _place(high)
    for _ in range(64):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        good = passes(_number(middle))
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return np.where(always, LARGEST, _number(low)), never


def _place(x: Floats) -> Ints:
    """Return integers in the order of the numbers, neighbours for neighbours."""
    bits = x.view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _number(place: Ints) -> Floats:
    bits = np.where(place < 0, np.iinfo(np.int64).min - place, place)
    return np.asarray(bits, np.int64).view(np.float64)


@dataclass(frozen=True, eq=False)
class Terms:
    """f(x) = weights'z + intercept + trees(x) + network(z) + foreign(z) · unit, of what there is of it.

    z is x after the normaliser: t(x), the fill where x is missing, less the mean, divided by the scale. ``trees`` are
    on x itself, as given: the normaliser is in their thresholds.
    """

    names: tuple[str, ...]
    ranker: str
    """Class of the ranker, and of the regressor inside."""
    missing: str
    """'raise': a missing value has no score; 'fill'; or 'keep': trees and foreign see it, weights take z to be 0."""
    log: bool
    fill: Floats
    """What t(x) is taken to be where x is missing."""
    mean: Floats
    scale: Floats
    weights: Floats | None = None
    intercept: float = 0.0
    trees: Trees | None = None
    network: Network | None = None
    foreign: Any = None
    unit: float = 1.0
    notes: tuple[str, ...] = ()
    absent: bool = False
    """Whether it learned from missing values that it keeps."""

    @property
    def plain(self) -> bool:
        """Whether z is x but for missing values."""
        return not self.log and not self.mean.any() and bool((self.scale == 1).all())

    def normalised(self, x: Floats, feature: Any) -> Floats:
        """Return z of values x of these features; a missing value stays one where it is kept."""
        values = signed_log(x) if self.log else x
        if self.missing != "keep":
            values = np.where(np.isnan(values), self.fill[feature], values)
        with np.errstate(over="ignore"):
            return np.asarray((values - self.mean[feature]) / self.scale[feature], np.float64)

    def finite(self) -> bool:
        """Whether every number of it is."""
        held = [self.fill, self.mean, self.scale, np.array([self.intercept, self.unit])]
        held += [] if self.weights is None else [self.weights]
        if self.trees is not None:
            held += [self.trees.threshold, self.trees.value, np.array([self.trees.base])]
        if self.network is not None:
            held += [*self.network.weights, *self.network.biases]
        return all(bool(np.isfinite(one).all()) for one in held)


def of_query(ranker: Any, query: Any) -> Any:
    """Return the ranker of a query out of QueryRankers, or the ranker itself. Errors (UsageError)."""
    if not isinstance(ranker, QueryRankers):
        if query is not None:
            raise UsageError(f"query {query!r}: this {type(ranker).__name__} scores all queries by one function")
        return ranker
    check_is_fitted(ranker)
    labels = {str(label): label for label in ranker.rankers_}
    if query is None:
        raise UsageError(
            f"QueryRankers hold a scoring function for each of {len(labels):,} queries; name one to export (",
            Setting("query"),
            f"): {few(labels)}",
        )
    if str(query) not in labels:
        raise UsageError(f"there is no ranker of query {str(query)!r}; there are {few(labels)}")
    return ranker.rankers_[labels[str(query)]]


def terms_of(ranker: Any, *, query: Any = None, names: Any = None) -> Terms:
    """Return the terms of a fitted ranker; ``names`` replaces the names of its features, in their order.

    Errors: NotFittedError; UsageError for what is no ranker, names that do not fit, numbers that are not finite.
    """
    notes: list[str] = []
    chosen = unfrozen(ranker)
    if isinstance(chosen, AbstainingRanker):
        check_is_fitted(chosen, "rule_")
        notes.append("the scores alone are exported: when to leave two items without order stays with concordant")
        width = chosen.n_features_in_
        chosen = unfrozen(chosen.ranker_)
        if not isinstance(chosen, Ranker | QueryRankers):
            made = _of_regressor(chosen, _nothing_done(_names(ranker, width), chosen), notes)
            return _checked(made, names)
    outer = chosen
    chosen = of_query(chosen, query)
    if not isinstance(chosen, Ranker):
        raise UsageError(f"a {type(chosen).__name__} is no ranker of concordant; fit one, or name a model's directory")
    check_is_fitted(chosen)
    if outer is not chosen:
        notes.append(f"the scoring function of query {str(query)!r} alone")
    return _checked(_of_ranker(chosen, notes), names)


def _of_ranker(ranker: Ranker, notes: list[str]) -> Terms:
    begun = _begun(ranker, notes)
    if isinstance(ranker, RankBoostRanker):
        return _with_trees(begun, trees_of_rules(ranker.rules_))
    if not isinstance(ranker, LinearRanker):
        raise UsageError(f"a {type(ranker).__name__} cannot be exported")
    if ranker.foreign_ is None:
        return replace(begun, weights=ranker.coef_standardised_)
    begun = replace(begun, unit=float(ranker.regressor_unit_))
    made = _of_regressor(ranker.foreign_, begun, notes)
    scorer = getattr(ranker, "scorer_standardised_", None)
    if scorer is None:
        return made
    return replace(made, weights=scorer if made.weights is None else made.weights + scorer)


def _begun(ranker: Ranker, notes: list[str]) -> Terms:
    """What every ranker has: the names and the normaliser."""
    normaliser: Normaliser = ranker.normaliser_
    mean, scale, fill, absent, _ = normaliser.fitted()
    width = len(mean)
    if not normaliser.standardise:
        mean, scale = np.zeros(width), np.ones(width)
    missing = ranker.missing_ if ranker.missing_ in ("raise", "keep") else "fill"
    return Terms(
        _names(ranker, width),
        type(ranker).__name__,
        missing,
        normaliser.log,
        fill,
        mean,
        scale,
        notes=tuple(notes),
        absent=missing == "keep" and bool(absent.any()),
    )


def _nothing_done(names: tuple[str, ...], regressor: Any) -> Terms:
    """Terms of a regressor that sees features as they are."""
    zero = np.zeros(len(names))
    return Terms(names, type(regressor).__name__, "keep", False, zero, zero, zero + 1.0)


def _names(ranker: Any, width: int) -> tuple[str, ...]:
    names = getattr(ranker, "feature_names_in_", None)
    return tuple(map(str, range(1, width + 1) if names is None else names))


def _of_regressor(regressor: Any, begun: Terms, notes: list[str]) -> Terms:
    """Add a regressor's predictions times the unit."""
    begun = replace(begun, ranker=f"{begun.ranker} with {type(regressor).__name__}", notes=tuple(notes))
    found = plain_regressor(regressor)
    plain: Any = _of_torch(regressor) if found is None else found[1]
    if plain is None and (booster := booster_text(regressor)) is not None:
        plain = booster_trees(*booster)  # says what it has that trees cannot say
    unit = begun.unit
    if isinstance(plain, PlainLinear):
        return replace(begun, weights=plain.coef * unit, intercept=plain.intercept * unit)
    if isinstance(plain, Network):
        weights, biases = [*plain.weights], [*plain.biases]
        weights[-1], biases[-1] = weights[-1] * unit, biases[-1] * unit
        return replace(begun, network=Network(tuple(weights), tuple(biases), plain.activation))
    if isinstance(plain, Trees):
        return _with_trees(begun, plain)
    return replace(begun, foreign=regressor)


def _of_torch(regressor: Any) -> Network | None:
    """A TorchRegressor as a network, known by its name, so that nobody needs PyTorch who has none."""
    if type(regressor).__module__ != "concordant.torch.regressor":
        return None
    scorer, mean, scale = regressor.scorer_, regressor.mean_, regressor.scale_
    held = {name: value.detach().cpu().double().numpy() for name, value in scorer.named_parameters()}
    shift, unit = np.array([regressor.target_mean_]), regressor.target_scale_
    if "inner" not in held:
        weight = held["weight"] / scale * unit
        return Network((weight[:, None],), (shift - mean @ weight,), "identity")
    inner = (held["inner"] / scale).T
    return Network((inner, held["outer"][:, None] * unit), (held["bias"] - mean @ inner, shift), "relu")


def _with_trees(begun: Terms, trees: Trees) -> Terms:
    made = trees_of_given(trees, begun.normalised, keep=begun.missing == "keep", unit=begun.unit)
    return replace(begun, trees=made)


def _checked(terms: Terms, names: Any) -> Terms:
    if names is not None:
        given = tuple(str(name) for name in names)
        if len(given) != len(terms.names):
            raise UsageError(f"{len(given):,} feature names for {len(terms.names):,} features of the model")
        if broken := [name for name in given if not unicode_text(name)]:
            raise UsageError(f"names of features are texts of Unicode, not {ascii(broken[0])[:80]}")
        terms = replace(terms, names=given)
    if len(set(terms.names)) < len(terms.names):
        raise UsageError(f"feature names must differ; more than once there are {few(twice(terms.names))}")
    if not terms.finite():
        raise UsageError(f"the model holds numbers that are not finite ({terms.ranker}); nothing is exported")
    return terms

"""A fitted ranker as a sum of plain terms, which every format is written from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from concordant.abstaining.ranker import AbstainingRanker
from concordant.abstaining.scorer import unfrozen
from concordant.errors import UsageError, few, twice
from concordant.exporting.thresholds import trees_of_given, trees_of_rules
from concordant.features.moments import signed_log
from concordant.features.normalising import Normaliser
from concordant.json_values import unicode_text
from concordant.models.boosters import booster_text, booster_trees
from concordant.models.regressors import Network, PlainLinear, plain_regressor
from concordant.models.trees import Trees
from concordant.rankers.boosting import RankBoostRanker
from concordant.rankers.estimator import Ranker
from concordant.rankers.linear import LinearRanker
from concordant.rankers.per_query import QueryRankers

__all__ = ["Terms", "of_query", "terms_of"]

Floats = NDArray[np.float64]


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
            f"QueryRankers hold a scoring function for each of {len(labels):,} queries; name one to export "
            f"(query=…, --query …): {few(labels)}"
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
    assert normaliser.mean is not None and normaliser.scale is not None and normaliser.fill is not None
    width = len(normaliser.mean)
    same = np.zeros(width), np.ones(width)
    mean, scale = (normaliser.mean, normaliser.scale) if normaliser.standardise else same
    missing = ranker.missing if ranker.missing in ("raise", "keep") else "fill"
    return Terms(
        _names(ranker, width),
        type(ranker).__name__,
        missing,
        normaliser.log,
        normaliser.fill,
        mean,
        scale,
        notes=tuple(notes),
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

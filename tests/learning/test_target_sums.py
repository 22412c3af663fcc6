"""A ranker fitted to sums, wherever they come from, is the ranker fitted in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import concordant as cc
from concordant.errors import UsageError
from concordant.learning.features.normalising import Normaliser
from concordant.learning.rankers.columns import Summed, TargetSums
from concordant.learning.rankers.plans import Plan, Recipe
from concordant.learning.rankers.validation import learning_rows
from concordant.learning.solvers.least_squares import NormalEquations


class Halves(TargetSums):
    """Rows and judgments in memory of which a ranker sees the sums of two halves of the queries only."""

    place = "in halves"

    def __init__(self, features: cc.Features, prefs: cc.Preferences) -> None:
        self.features, self.prefs = features, prefs

    def begin(self, ranker: Any) -> str:
        if ranker.intercept != "query":
            raise UsageError("an intercept for each query")
        return str(self.prefs.kind)

    @property
    def names(self) -> tuple[str, ...]:
        return self.features.names

    def summed(self, plan: Plan, recipe: Recipe, normaliser: Normaliser) -> Summed:
        training = learning_rows(self.features, self.prefs, normaliser.missing)
        fitted = normaliser.fit(self.features.X, self.features.names)
        targets = recipe.targets([plan], self.prefs)[0]
        Z, start = fitted.apply(self.features.X)[training.row], targets.start
        middle = len(start) // 2
        halves = []
        for some in (slice(0, middle + 1), slice(middle, None)):
            at = slice(start[some][0], start[some][-1])
            weight = targets.weight[:middle] if some.start == 0 else targets.weight[middle:]
            halves.append(NormalEquations.of(Z[at], targets.value[at], start[some] - start[some][0], weight))
        return Summed(halves[0] + halves[1], fitted, targets.facts(targets.weight), training.notes)


def rows(kind: str) -> tuple[cc.Features, cc.Preferences]:
    rng = np.random.default_rng(5)
    query, item = (each.ravel() for each in np.meshgrid(np.arange(6), np.arange(5), indexing="ij"))
    features = cc.Features.of(rng.normal(size=(30, 3)) * [1, 10, 0.1], item, query, ("a", "b", "c"))
    judged, one = rng.integers(0, 6, 90), rng.integers(0, 4, 90)
    other = (one + rng.integers(1, 4, 90)) % 4
    if kind == "comparisons":
        return features, cc.Preferences.from_comparisons(one, other, judged)
    log = {"query": judged, "session": np.arange(90), "position": np.ones(90, int), "item": one, "clicked": one % 2}
    return features, cc.read(log)


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("comparisons", {"structure": "log-odds", "order": "all"}),
        ("comparisons", {"structure": "bradley-terry", "order": 3, "subsets": 4, "gain": "identity", "ridge": 0.1}),
        ("comparisons", {"structure": "borda", "order": 1, "subsets": 1, "standardise": False}),
        ("selections", {"order": "all"}),
    ],
)
def test_a_fit_to_sums_is_the_fit_in_memory(kind: str, params: dict[str, Any]) -> None:
    features, prefs = rows(kind)
    plain = cc.AggregationRanker(**params).fit(features, prefs)
    ours = cc.AggregationRanker(**params).fit(Halves(features, prefs), None)
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=1e-10, atol=1e-12)
    assert list(ours.status_) == [name for name in plain.status_ if name != "choices"]  # for a refit in memory
    assert ours.status_["notes"] == plain.status_["notes"]
    assert ours.status_["monte_carlo_error"] == pytest.approx(plain.status_["monte_carlo_error"])
    assert (ours.feature_names_in_ == plain.feature_names_in_).all()


def test_what_sums_do_not_do() -> None:
    features, prefs = rows("comparisons")
    source = Halves(features, prefs)
    said = cc.AggregationRanker(order="all").fit(source, None).status_["notes"]
    assert said[0] == "structure log-odds: in halves the features do not inform the aggregation"
    with pytest.raises(UsageError, match="an intercept for each query"):
        cc.AggregationRanker(intercept="one").fit(source, None)
    with pytest.raises(UsageError, match="EdgeRanker needs judgments and features in memory"):
        cc.EdgeRanker().fit(source, None)

"""RankBoostRanker: the solver's rules by name, on preferences and labels; what is kept."""

from __future__ import annotations

import json

import numpy as np
import pytest

from concordant.errors import InputError, UsageError
from concordant.learning.features.matrix import align
from concordant.learning.rankers.boosting import RankBoostRanker
from concordant.learning.rankers.judged import Judged
from concordant.learning.solvers.rankboost import rankboost
from concordant.losses.graded import GradedLists
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from ranking_problems import bradley_terry_problem

PROBLEM = bradley_terry_problem(seed=9, comparisons=50)


@pytest.mark.parametrize("choose", ["r", "z"])
def test_rules_are_the_solvers_on_each_judgment_once(choose: str) -> None:
    draw = np.random.default_rng(0)
    keep = draw.random(len(PROBLEM.winner)) < np.where(PROBLEM.query[PROBLEM.winner] < "q05", 0.2, 1.0)
    up, down = PROBLEM.winner[keep], PROBLEM.loser[keep]
    prefs = Preferences.from_comparisons(PROBLEM.item[up], PROBLEM.item[down], PROBLEM.query[up])
    ranker = RankBoostRanker(15, choose=choose)
    ranker.fit(PROBLEM.features.take(draw.permutation(len(PROBLEM.X))), prefs)
    rows = align(PROBLEM.features, prefs).row
    pairs = surrogate("rankboost").objective(Batch.whole(prefs))
    peer = rankboost(PROBLEM.X, pairs, rows=rows, weight=prefs.judgments / len(prefs), rounds=15, choose=choose)
    assert np.allclose(ranker.predict(PROBLEM.X), peer.scores(PROBLEM.X), atol=1e-12)
    assert ranker.score(PROBLEM.features, prefs) > 0.75
    # what is bounded: the share of comparisons in the wrong order is at most the exponential loss
    assert 1 - ranker.score(PROBLEM.features, prefs) <= ranker.status_["exponential_loss"]


def test_labels() -> None:
    labels = np.clip(np.round(PROBLEM.truth / 4 + 1), 0, 3)
    judged = Judged.of_labels(labels, query=PROBLEM.query)
    ranker = RankBoostRanker(20).fit(PROBLEM.X, judged)
    order = np.lexsort((np.arange(len(labels)), PROBLEM.query))
    start = np.append(0, np.cumsum(np.unique(PROBLEM.query, return_counts=True)[1]))
    lists = GradedLists.of(labels[order], start)
    peer = rankboost(PROBLEM.X[order], lists, rounds=20)
    assert np.allclose(ranker.predict(PROBLEM.X), peer.scores(PROBLEM.X), atol=1e-12)
    assert ranker.score(PROBLEM.X, judged) > 0.9
    with pytest.raises(UsageError, match="needs the pairs one by one"):
        RankBoostRanker(choose="z").fit(PROBLEM.X, judged)


def test_weights_of_queries_are_repetitions() -> None:
    weight = np.where(PROBLEM.query < "q06", 3.0, 1.0)
    ranker = RankBoostRanker(10, smoothing=0.001).fit(PROBLEM.X, PROBLEM.judged, weight)
    up, down = PROBLEM.winner, PROBLEM.loser
    count = np.where(PROBLEM.query[up] < "q06", 3, 1)
    prefs = Preferences.from_comparisons(PROBLEM.item[up], PROBLEM.item[down], PROBLEM.query[up], count=count)
    again = RankBoostRanker(10, smoothing=0.001).fit(PROBLEM.features, prefs)
    assert np.allclose(again.predict(PROBLEM.X), ranker.predict(PROBLEM.X), atol=1e-12)


def test_missing_values_are_rules_of_their_own() -> None:
    X = np.where(np.random.default_rng(0).random(PROBLEM.X.shape) < 0.1, np.nan, PROBLEM.X)
    with pytest.raises(InputError, match="not finite"):
        RankBoostRanker().fit(X, PROBLEM.judged)
    ranker = RankBoostRanker(20, missing="keep").fit(X, PROBLEM.judged)
    assert np.isfinite(ranker.predict(X)).all() and ranker.score(X, PROBLEM.judged) > 0.7


def test_state_comes_back_to_the_bit() -> None:
    ranker = RankBoostRanker(12).fit(PROBLEM.features, PROBLEM.prefs)
    values, arrays = ranker.to_state()
    again = RankBoostRanker.from_state(json.loads(json.dumps(values)), arrays)
    assert np.array_equal(again.predict(PROBLEM.features), ranker.predict(PROBLEM.features))
    assert again.get_params() == ranker.get_params() and again.foreign_ is None
    for broken in ({**arrays, "feature": arrays["feature"] + 3}, {"alpha": arrays["alpha"]},
                   {**arrays, "alpha": arrays["alpha"][1:]}):  # fmt: skip
        with pytest.raises(InputError, match="state of the ranker cannot be read"):
            RankBoostRanker.from_state(values, broken)


def test_nothing_to_learn_from() -> None:
    equal = Judged.of_labels(np.ones(4), query=list("aabb"))
    with pytest.raises(InputError, match="no query has two items of which one is preferred"):
        RankBoostRanker().fit(np.arange(4.0)[:, None], equal)
    with pytest.raises(UsageError, match="unknown choice"):
        RankBoostRanker(choose="best").fit(PROBLEM.features, PROBLEM.prefs)

"""Rankers that may decline to order two items: each number from its definition, tiers by looking at every order."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from concordant.abstention.held_pairs import judged_pairs, pair_distances
from concordant.abstention.losses import pairwise_abstention_loss
from concordant.abstention.ranker import AbstainingRanker
from concordant.abstention.risk_coverage import RiskCoverage
from concordant.abstention.rule import REASONS, ConditionalRisk, Rule
from concordant.abstention.tiers import decided_pairs, tiers_of
from concordant.apps.models.saving import load_model, save_model
from concordant.errors import InputError, UsageError
from concordant.learning.features.matrix import Features
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.boosting import RankBoostRanker
from concordant.learning.rankers.edges import EdgeRanker
from concordant.learning.rankers.judged import Judged
from concordant.learning.rankers.lists import ListRanker
from concordant.learning.rankers.per_query import QueryRankers
from concordant.learning.rankers.validation import learning_rows
from concordant.preferences.preferences import Preferences
from concordant.preferences.splits import folds

METRIC = {"1": "cityblock", "2": "euclidean", "inf": "chebyshev"}


def problem(queries: int = 6, items: int = 12, votes: int = 60, seed: int = 0) -> tuple[Features, Preferences]:
    """Items with three features, judged by a noisy linear utility; some votes tie."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(queries * items, 3)) * [1.0, 5.0, 0.2] + [0.0, 100.0, 0.0]
    utility = X @ [1.0, 0.3, 0.0]
    query = np.repeat([f"q{q}" for q in range(queries)], items)
    item = np.tile([f"d{i:02}" for i in range(items)], queries)
    rows = []
    for q in range(queries):
        first, second = (draw.permuted(np.tile(np.arange(items), (votes, 1)), axis=1)[:, :2]).T + q * items
        wins = draw.random(votes) < 1 / (1 + np.exp(utility[second] - utility[first]))
        rows.append(np.where(wins, [first, second], [second, first]))
    winner, loser = np.concatenate(rows, axis=1)
    tie = draw.random(len(winner)) < 0.1
    prefs = Preferences.from_comparisons(item[winner], item[loser], query[winner], tie=tie)
    return Features.of(X, item, query, names=["quality", "age", "noise"]), prefs


TRAIN, HELD = problem(seed=1), problem(seed=2)
FITTED = EdgeRanker("ranknet").fit(*TRAIN)


def pairs_by_hand(ranker, features: Features, prefs: Preferences, scale, norm: str = "inf") -> list[tuple[float, ...]]:
    """(distance, score difference winner − loser, weight) of every comparison, ties as two halves."""
    rows = {(features.queries[q], features.items[i]): r for r, (q, i) in enumerate(zip(features.query, features.item))}
    scores = ranker.predict(features)
    Z = (features.X - scale.mean) / scale.scale
    found = []
    ties = np.zeros(prefs.distinct, bool) if prefs.tie is None else prefs.tie
    for *sides, q, n, tie in zip(prefs.winner, prefs.loser, prefs.query, prefs.count, ties, strict=True):
        a, b = (rows[prefs.queries[q], prefs.items[i]] for i in sides)
        distance = cdist(Z[[a]], Z[[b]], METRIC[norm])[0, 0]
        gap = scores[a] - scores[b]
        found += [(distance, gap, n / 2), (distance, -gap, n / 2)] if tie else [(distance, gap, float(n))]
    return found


def loss_by_hand(pairs, cost: float, gamma: float) -> float:
    whole = sum(weight for *_, weight in pairs)
    wrong = {-1.0: 1.0, 0.0: 0.5, 1.0: 0.0}
    return sum(n * (cost if d <= gamma * (1 + 1e-12) else wrong[float(np.sign(g))]) for d, g, n in pairs) / whole


# -- γ and its curve -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("norm", ["1", "2", "inf"])
@pytest.mark.parametrize("cost", [0.0, 0.1, 0.3, 0.45, 0.5, 1.0])
def test_gamma_auto_is_the_least_loss_over_every_distance_seen(norm: str, cost: float) -> None:
    found = AbstainingRanker(FITTED, cost=cost, norm=norm).fit(*HELD)
    pairs = pairs_by_hand(FITTED, *HELD, FITTED.normaliser_, norm)
    tried = [0.0, *sorted({d for d, *_ in pairs})]
    losses = [loss_by_hand(pairs, cost, t) for t in tried]
    least = min(losses)
    best = next(t for t, loss in zip(tried, losses, strict=True) if loss <= least + 1e-12)
    assert np.isclose(found.gamma_, best, rtol=1e-12)
    assert np.isclose(found.status_["loss"], least)
    assert np.isclose(found.status_["loss without"], losses[0])
    assert np.isclose(found.score(*HELD), 1 - least)
    assert ("nothing declined" in [note.code for note in found.status_["notes"]]) == (found.status_["coverage"] == 1)
    again = AbstainingRanker(FITTED, cost=0.2, norm=norm).fit(*HELD).with_cost(cost)
    assert again.gamma_ == found.gamma_ and np.isclose(again.status_["loss"], least)


def test_where_everything_is_wrong_everything_is_declined_and_where_nothing_is_nothing() -> None:
    X = np.array([[0.0], [1.0], [3.0]])
    features = Features.of(X, ["a", "b", "c"])
    right = Preferences.from_comparisons(["b", "c", "c"], ["a", "a", "b"])
    wrong = Preferences.from_comparisons(["a", "a", "b"], ["b", "c", "c"])
    up = LinearRegression().fit(X, X[:, 0])
    made = AbstainingRanker(up, scale="none").fit(features, right)
    assert made.gamma_ == 0.0 and made.tiers(features).tolist() == [3, 2, 1]
    made = AbstainingRanker(up, scale="none").fit(features, wrong)
    assert made.gamma_ == 3.0 and made.tiers(features).tolist() == [1, 1, 1]
    assert made.status_["coverage"] == 0 and made.status_["risk"] is None and made.status_["risk of declined"] == 1
    assert "all declined" in [note.code for note in made.status_["notes"]]


def test_items_of_equal_features_are_declined_unless_a_coin_is_cheaper() -> None:
    X = np.array([[0.0], [0.0], [3.0]])
    features = Features.of(X, ["a", "b", "c"])
    votes = Preferences.from_comparisons(["a", "b", "c"], ["b", "a", "b"])
    up = LinearRegression().fit(X, X[:, 0])
    cheap, dear = (AbstainingRanker(up, cost=cost).fit(features, votes) for cost in (0.4, 0.6))
    assert cheap.gamma_ == 0.0 and cheap.predict_pairs(X[:1], X[1:2]).tolist() == [0]
    assert dear.gamma_ is None and dear.predict_pairs(X[:2], X[[1, 0]]).tolist() == [1, 1]  # sign(0) = +1 either way
    assert dear.explain_pairs(X[:2], X[[1, 2]]).reasons == ["equal scores", "decided"]
    assert dear.tiers(features).tolist() == [2, 2, 1]
    # 1/2 of the equal ones and all others are wrong: no cost makes γ = 0 the best step, and yet it must be known
    upset = Preferences.from_comparisons(["a", "a", "b"], ["b", "c", "c"])
    for cost, gamma in ((0.4, 3.0), (0.7, 3.0), (0.9, None)):
        fresh = AbstainingRanker(up, cost=cost, scale="none").fit(features, upset)
        assert fresh.gamma_ == fresh.with_cost(0.1).with_cost(cost).gamma_ == gamma


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_curve_and_area_follow_from_their_definitions(rows: list[tuple[int, int, int]]) -> None:
    size = np.array([float(a) for a, *_ in rows])
    mass = np.array([float(b) for _, b, _ in rows])
    wrong = mass * [c / 3 for *_, c in rows]
    curve = RiskCoverage.of(size, mass, wrong, by="distance")
    whole = mass.sum()
    for t, share, risk, loss in zip(curve.threshold, curve.coverage, curve.risk, curve.losses(0.2), strict=True):
        kept = size > t if np.isfinite(t) else np.ones(len(size), bool)
        assert np.isclose(share, mass[kept].sum() / whole)
        assert np.isclose(risk, wrong[kept].sum() / mass[kept].sum()) if kept.any() else np.isnan(risk)
        assert np.isclose(loss, (wrong[kept].sum() + 0.2 * mass[~kept].sum()) / whole)
    # the area: every pair cut into many equal crumbs, each as wrong as pairs of its threshold are on average
    mean = {t: wrong[size == t].sum() / mass[size == t].sum() for t in set(size.tolist())}
    crumbs = np.repeat([mean[t] for t in sorted(size.tolist(), reverse=True)],
                       (400 * mass[np.argsort(-size, kind="stable")]).astype(int))  # fmt: skip
    risks = np.cumsum(crumbs) / np.arange(1, len(crumbs) + 1)
    assert np.isclose(curve.aurc, risks.mean(), atol=3e-3)
    share = 0.37
    kept = round(share * len(crumbs))
    assert np.isclose(curve.at(share), crumbs[:kept].mean(), atol=3e-3)
    # corners of the hull: the first best step at any cost
    for cost in np.linspace(0, 1, 23):
        assert (
            curve.threshold[curve.best(cost)] == curve.hull().threshold[curve.hull().best(cost)]
            or curve.best(cost) == curve.hull().best(cost) == 0
        )


def test_area_of_the_best_possible_order() -> None:
    draw = np.random.default_rng(0)
    wrong = (draw.random(2000) < 0.3).astype(float)
    curve = RiskCoverage.of(1 - wrong, np.ones(2000), wrong, by="risk")
    risks = np.cumsum(np.sort(wrong)) / np.arange(1, 2001)
    assert np.isclose(curve.aurc, curve.least_aurc)
    assert np.isclose(curve.least_aurc, risks.mean(), atol=1e-3)


# -- the estimated risk --------------------------------------------------------------------------------------------
def test_declined_by_risk_is_what_is_wrong_more_often_than_the_cost() -> None:
    draw = np.random.default_rng(3)
    gap = draw.normal(size=20_000) * 2
    chance = 1 / (1 + np.exp(-1.5 * np.abs(gap)))
    wrong = (draw.random(len(gap)) > chance).astype(float)
    for form in ("isotonic", "logistic"):
        risk = ConditionalRisk.fit(gap, np.ones(len(gap)), wrong, form)
        at = np.array([0.2, 1.0, 2.0, -1.0])
        assert np.allclose(risk(at), 1 / (1 + np.exp(1.5 * np.abs(at))), atol=0.03)
    peer = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10).fit(
        np.concatenate((gap, -gap))[:, None],
        np.concatenate((np.where(gap > 0, 1 - wrong, wrong), np.where(gap > 0, wrong, 1 - wrong))),
    )
    assert np.isclose(risk.risk[0], peer.coef_[0, 0], rtol=1e-4)


@pytest.mark.parametrize("by", ["distance", "risk"])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.7, 1.0])
def test_no_more_than_the_share_is_declined(by: str, share: float) -> None:
    made = AbstainingRanker(FITTED, by=by, share=share, cost=0.0).fit(*HELD)
    held = made._judged(*HELD, None)
    declined = held.mass[made.rule_.declines(held.difference, held.distance)].sum() / held.mass.sum()
    assert declined <= share + 1e-12
    assert np.isclose(1 - declined, made.status_["coverage"])
    if by == "risk" and share < made.curve_.declined[-1]:  # one pair more would be too many, or is not risky at all
        size = np.abs(held.difference)
        kept = size[~made.rule_.declines(held.difference, held.distance)]
        if len(kept):
            more = held.mass[size <= kept.min()].sum() / held.mass.sum()
            assert more > share or made.rule_.risk(kept.min()[None])[0] == 0


def test_by_risk_the_cost_is_what_the_risk_is_compared_with() -> None:
    made = AbstainingRanker(FITTED, by="risk", cost=0.25).fit(*HELD)
    found = made.explain_pairs(HELD[0].X[:30], HELD[0].X[30:60])
    assert np.array_equal(found.decision == 0, found.risk > 0.25)
    assert set(found.reasons) <= {"risky", "decided"} and "risky" in found.reasons
    assert (AbstainingRanker(FITTED, by="risk", cost=1.0).fit(*HELD).tiers(HELD[0])[:12] > 0).all()
    more = made.with_cost(0.4)
    assert np.array_equal(more.explain_pairs(HELD[0].X[:30], HELD[0].X[30:60]).decision == 0, found.risk > 0.4)


# -- pairs and tiers -----------------------------------------------------------------------------------------------
def test_pairs_say_which_is_above_and_why() -> None:
    made = AbstainingRanker(FITTED, gamma=0.8).fit()
    a, b = HELD[0].X[:36], HELD[0].X[36:]
    found = made.explain_pairs(a, b)
    near = cdist(FITTED.normaliser_.apply(a), FITTED.normaliser_.apply(b), "chebyshev").diagonal() <= 0.8
    above = FITTED.predict(b) >= FITTED.predict(a)
    assert np.array_equal(found.decision, np.where(near, 0, np.where(above, 1, -1)))
    assert np.array_equal(made.predict_pairs(b, a)[~near], -found.decision[~near])
    assert [REASONS[code] for code in found.reason] == found.reasons == ["near" if n else "decided" for n in near]
    assert 0 < near.sum() < len(near) and len(found) == 36
    assert made.predict_pairs(HELD[0].take(np.arange(36)), HELD[0].take(np.arange(36, 72))).tolist() == (
        found.decision.tolist()
    )


def weak_orders(items: int):
    """Every way to put items into tiers."""
    for tiers in itertools.product(range(items), repeat=items):
        if set(tiers) == set(range(max(tiers) + 1)):
            yield tiers


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=5), st.integers(0, 4))
def test_tiers_are_the_finest_order_that_is_sound(items: list[tuple[int, int]], gamma: int) -> None:
    scores, Z = np.array([float(s) for s, _ in items]), np.array([[float(z)] for _, z in items])
    rule = Rule("distance", "inf", 0.1, gamma=gamma / 2)
    decided = {(i, j) for i, j in itertools.permutations(range(len(items)), 2)
               if scores[i] > scores[j] and abs(Z[i, 0] - Z[j, 0]) > gamma / 2}  # fmt: skip
    sound = [tiers for tiers in weak_orders(len(items))
             if all((i, j) in decided for i, j in itertools.permutations(range(len(items)), 2)
                    if tiers[i] < tiers[j])]  # fmt: skip
    found = tiers_of(rule, scores, Z)
    finest = max(sound, key=max)
    assert sum(max(tiers) == max(finest) for tiers in sound) == 1
    assert tuple(found - 1) == finest
    listed = decided_pairs(rule, scores, Z, np.array([0, len(items)]), np.arange(len(items)))
    assert set(zip(*(column.tolist() for column in listed), strict=True)) == decided


@pytest.mark.parametrize("gamma", [0.0, 0.01, 0.03, 0.06, 0.2, 5.0])
def test_tiers_of_longer_lists_block_by_block(gamma: float, monkeypatch) -> None:
    draw = np.random.default_rng(7)
    scores, Z = draw.normal(size=300), draw.normal(size=(300, 2))
    rule = Rule("distance", "2", 0.1, gamma=gamma)
    order = np.argsort(-scores)
    undecided = cdist(Z[order], Z[order]) <= gamma
    cuts = [not undecided[:k, k:].any() for k in range(1, 300)]
    expected = np.empty(300, int)
    expected[order] = 1 + np.concatenate(([0], np.cumsum(cuts)))
    for at_once in (300, 1000, 1 << 17):
        monkeypatch.setattr("concordant.abstention.tiers.AT_ONCE", at_once)
        assert np.array_equal(tiers_of(rule, scores, Z), expected)
    monkeypatch.setattr("concordant.abstention.tiers.FIRST", 10)
    for listed in (1 << 20, 1):
        monkeypatch.setattr("concordant.abstention.tiers.LISTED", listed)
        assert np.array_equal(tiers_of(rule, scores, Z), expected)
    level = np.round(scores, 1)
    assert (
        np.diff(tiers_of(rule, level, Z)[np.argsort(-level, kind="stable")]) <= (np.diff(np.sort(level)) > 0)[::-1]
    ).all()
    assert len(set(expected)) == {0.0: 300, 5.0: 1}.get(gamma, len(set(expected)))


def test_tiers_by_risk_are_cut_where_neighbours_are_decided() -> None:
    risk = ConditionalRisk(np.array([0.0, 1.0]), np.array([0.5, 0.0]))
    scores = np.array([3.0, 2.9, 1.0, 0.0, 0.0])
    assert tiers_of(Rule("risk", "inf", 0.2, risk=risk), scores, None).tolist() == [1, 1, 2, 3, 3]
    assert tiers_of(Rule("risk", "inf", 0.5, risk=risk), scores, None).tolist() == [1, 2, 3, 4, 4]
    assert tiers_of(Rule("risk", "inf", 0.2, risk=risk, limit=-1.0), scores, None).tolist() == [1, 2, 3, 4, 4]


def test_one_item_equal_scores_and_gamma_without_end() -> None:
    made = AbstainingRanker(FITTED, gamma=np.inf).fit()
    assert made.tiers(HELD[0]).tolist() == [1] * 72 and not len(made.decided_pairs(HELD[0])[0])
    assert set(made.predict_pairs(HELD[0].X[:5], HELD[0].X[5:10]).tolist()) == {0}
    assert made.tiers(HELD[0].take(np.arange(1))).tolist() == [1]
    never = AbstainingRanker(FITTED, gamma=None).fit()
    above, below = never.decided_pairs(HELD[0])
    assert len(above) == 6 * 66 and (never.predict(HELD[0])[above] > never.predict(HELD[0])[below]).all()
    flat = LinearRegression().fit(TRAIN[0].X, np.zeros(72))
    level = AbstainingRanker(flat).fit(*HELD)
    assert level.tiers(HELD[0]).max() == 1 and level.status_["loss without"] == 0.5 and level.gamma_ > 0


def test_tiers_start_again_in_every_query() -> None:
    made = AbstainingRanker(FITTED, gamma=0.2).fit()
    found = made.tiers(HELD[0])
    for q in range(6):
        rows = HELD[0].query == q
        assert found[rows].min() == 1
        assert np.array_equal(found[rows], made.tiers(HELD[0].X[rows]))


# -- as an estimator -----------------------------------------------------------------------------------------------
def test_a_ranker_that_is_not_fitted_is_fitted_and_its_pairs_are_held_out() -> None:
    features, prefs = TRAIN
    made = AbstainingRanker(EdgeRanker("ranknet"), folds=3, cost=0.3).fit(features, prefs)
    assert np.allclose(made.predict(features), FITTED.predict(features))
    assert made.status_["chosen by"] == "3 parts held out" and made.status_["weight"] == len(prefs)
    # by hand: whole queries are held out, scored by a ranker that never saw them
    pairs = []
    for train, held in folds(prefs, 3, split="queries"):
        part = held.select([q for q, n in zip(held.queries.tolist(), held.judgments) if n])
        pairs += pairs_by_hand(EdgeRanker("ranknet").fit(features, train), features, part, FITTED.normaliser_)
    tried = [0.0, *sorted({d for d, *_ in pairs})]
    losses = [loss_by_hand(pairs, 0.3, t) for t in tried]
    assert np.isclose(made.status_["loss"], min(losses))


@pytest.mark.parametrize(
    "ranker",
    [
        AggregationRanker(order="all"),
        EdgeRanker("linear"),
        RankBoostRanker(rounds=5),
        QueryRankers(EdgeRanker("linear")),
    ],
)
def test_every_ranker_can_be_made_to_abstain(ranker, tmp_path: Path) -> None:
    made = AbstainingRanker(ranker, cost=0.3, split="judgments", folds=2).fit(*TRAIN)
    assert set(made.tiers(TRAIN[0]).tolist()) >= {1}
    again = load_model(save_model(made, tmp_path / "model"))
    assert np.array_equal(again.tiers(TRAIN[0]), made.tiers(TRAIN[0]))
    assert np.array_equal(again.predict(TRAIN[0]), made.predict(TRAIN[0]))
    assert (again.gamma_, again.status_) == (made.gamma_, made.status_)


def test_labels_are_preferences_between_all_rows_of_different_label() -> None:
    draw = np.random.default_rng(5)
    X = draw.normal(size=(60, 2))
    labels = np.digitize(X[:, 0] + draw.normal(size=60), [-0.5, 0.7]).astype(float)
    query = np.repeat([f"q{i}" for i in range(6)], 10)
    judged = Judged.of_labels(labels, query=query)
    ranker = ListRanker(ridge=0.1).fit(X, judged)
    made = AbstainingRanker(ranker, cost=0.3).fit(X, judged)
    scores, Z = ranker.predict(X), ranker.normaliser_.apply(X)
    pairs = [
        (np.abs(Z[i] - Z[j]).max(), scores[i] - scores[j], 1.0)
        for i, j in itertools.permutations(range(60), 2)
        if query[i] == query[j] and labels[i] > labels[j]
    ]
    least = min(loss_by_hand(pairs, 0.3, t) for t in [-1.0, *(d for d, *_ in pairs)])
    assert np.isclose(made.status_["loss"], least) and made.status_["pairs"] == len(pairs)
    fitted_here = AbstainingRanker(ListRanker(ridge=0.1), folds=3).fit(X, judged)
    assert np.allclose(fitted_here.predict(X), scores) and fitted_here.status_["pairs"] == len(pairs)
    pipeline = AbstainingRanker(make_pipeline(StandardScaler(), ListRanker(ridge=0.1)), folds=3).fit(X, judged)
    assert np.allclose(pipeline.predict(X), scores)


def test_labels_are_held_out_by_query(monkeypatch) -> None:
    draw = np.random.default_rng(11)
    X, query = draw.normal(size=(40, 2)), np.repeat(np.arange(8), 5)
    labels = (X[:, 0] + draw.normal(size=40) > 0).astype(float)
    seen: list[tuple[set[int], set[int]]] = []
    fit, held = ListRanker.fit, AbstainingRanker._held

    def noted(self, rows, y, sample_weight=None):
        self.queries = set(y.query.tolist())
        return fit(self, rows, y, sample_weight)

    def looked(self, ranker, part, named=None):
        seen.append((ranker.queries, set(part.features.queries.take(part.features.query).to_pylist())))
        return held(self, ranker, part, named)

    monkeypatch.setattr(ListRanker, "fit", noted)
    monkeypatch.setattr(AbstainingRanker, "_held", looked)
    AbstainingRanker(ListRanker(ridge=0.1), folds=4).fit(X, Judged.of_labels(labels, query=query))
    assert len(seen) == 4 and set().union(*(part for _, part in seen)) == set(range(8))
    assert all(fitted == set(range(8)) - part and len(part) == 2 for fitted, part in seen)


def test_one_query_is_split_by_judgments() -> None:
    features, prefs = problem(queries=1, votes=200)
    made = AbstainingRanker(EdgeRanker("ranknet"), cost=0.3).fit(features, prefs)
    assert made.status_["weight"] == 200 and 0 < made.status_["loss"] < 0.5
    with pytest.raises(UsageError, match="5 folds of queries"):
        AbstainingRanker(EdgeRanker("ranknet"), split="queries").fit(features, prefs)


def test_weights_of_queries_count_as_so_many_judgments() -> None:
    features, prefs = HELD
    every = sum([prefs, *(prefs.select([f"q{q}"]) for q in (2, 2, 5))])
    weight = np.array([1.0, 1.0, 3.0, 1.0, 1.0, 2.0])[features.query]
    for by in ("distance", "risk"):
        one = AbstainingRanker(FITTED, cost=0.3, by=by).fit(features, prefs, sample_weight=weight)
        two = AbstainingRanker(FITTED, cost=0.3, by=by).fit(features, every)
        assert one.gamma_ == two.gamma_ and np.isclose(one.status_["loss"], two.status_["loss"])
        assert np.isclose(one.score(features, prefs, sample_weight=weight), two.score(features, every))


def test_where_the_ranker_does_not_standardise_it_is_done_here() -> None:
    features, prefs = TRAIN
    ranker = EdgeRanker("ranknet", standardise=False, ridge=1.0).fit(features, prefs)
    made = AbstainingRanker(ranker, cost=0.3).fit(*HELD)
    assert np.allclose(made.normaliser_.scale, HELD[0].X.std(axis=0)) and made.normaliser_.standardise
    with pytest.raises(UsageError, match="one scale"):
        AbstainingRanker(ranker, gamma=1.0).fit()
    raw = AbstainingRanker(ranker, gamma=1.0, scale="none").fit()
    near = np.abs(HELD[0].X[:30] - HELD[0].X[30:60]).max(axis=1) <= 1.0
    assert np.array_equal(raw.predict_pairs(HELD[0].X[:30], HELD[0].X[30:60]) == 0, near)


def test_a_share_of_nothing_declines_not_even_equal_scores() -> None:
    flat = LinearRegression().fit(TRAIN[0].X, np.zeros(72))
    made = AbstainingRanker(flat, by="risk", cost=0.0, share=0.0).fit(*HELD)
    assert set(made.predict_pairs(HELD[0].X[:5], HELD[0].X[5:10]).tolist()) == {1}
    assert made.status_["coverage"] == 1 and made.tiers(HELD[0]).max() == 1


def test_all_pairs_of_one_list_give_the_papers_loss() -> None:
    draw = np.random.default_rng(8)
    X, labels = draw.normal(size=(80, 2)).round(1), draw.integers(4, size=80).astype(float)
    model = LinearRegression().fit(X, labels)
    rows = (X, ["q"] * 80, [f"d{i:02}" for i in range(80)])
    for norm in ("1", "2", "inf"):
        made = AbstainingRanker(model, cost=0.37, norm=norm, scale="none").fit(rows, labels)
        paper = pairwise_abstention_loss(model.predict(X), X, labels, gamma=made.gamma_, cost=0.37, norm=norm)
        assert np.isclose(made.status_["loss"], paper) and np.isclose(1 - made.score(rows, labels), paper)


def test_of_many_labelled_pairs_a_random_part_is_taken() -> None:
    draw = np.random.default_rng(6)
    labels = draw.integers(3, size=90).astype(float)
    held = learning_rows(draw.normal(size=(90, 2)), Judged.of_labels(labels, query=np.repeat([1, 2, 3], [50, 39, 1])),
                         "raise")  # fmt: skip
    Z, scores = held.features.X, np.arange(90.0)
    every, some = (judged_pairs(held, scores, Z, "2", most=most) for most in (10_000, 700))
    (note,) = some.notes
    assert not every.notes and (note.code, note.numbers["pairs"], note.numbers["of"]) == ("pairs drawn", 700, 1966)
    known = set(zip(every.difference.tolist(), every.distance.tolist(), strict=True))
    drawn = list(zip((-some.difference).tolist(), some.distance.tolist(), strict=True))
    both = set(drawn) | {(-a, b) for a, b in drawn}
    assert len(set(drawn)) == len(drawn) and all(pair in known or (-pair[0], pair[1]) in known for pair in both)
    assert 0.5 < len(drawn) / (700 * len(known) / 1966) < 1.5


def test_clone_params_search_and_frozen() -> None:
    features, prefs = TRAIN
    judged = Judged.of(prefs, query=features.queries.take(features.query), item=features.items.take(features.item))
    made = AbstainingRanker(EdgeRanker("ranknet"), folds=2)
    again = clone(made)
    assert again.get_params()["ranker__loss"] == "ranknet" and repr(again)
    with pytest.raises(NotFittedError):
        again.predict(features)
    search = GridSearchCV(made, {"by": ["distance", "risk"], "ranker__ridge": [0.01, 1.0]}, cv=GroupKFold(2))
    search.fit(features.X, judged, groups=judged.query)
    assert 0.5 < search.best_score_ <= 1
    frozen = clone(AbstainingRanker(FrozenEstimator(FITTED), gamma=0.4)).fit()
    assert np.array_equal(frozen.tiers(features), AbstainingRanker(FITTED, gamma=0.4).fit().tiers(features))
    forgets = clone(AbstainingRanker(FITTED, gamma=0.4))
    with pytest.raises(UsageError, match="not learned"):
        forgets.fit()


def test_regressors_of_others_get_a_scale_here_and_are_kept_beside(tmp_path: Path) -> None:
    features, prefs = HELD
    model = LinearRegression().fit(TRAIN[0].X, TRAIN[0].X @ [1.0, 0.3, 0.0])
    made = AbstainingRanker(model, cost=0.3).fit(features, prefs)
    assert np.allclose(made.normaliser_.scale, features.X.std(axis=0))
    again = load_model(save_model(made, tmp_path / "model"))
    assert np.allclose(again.predict(features), made.predict(features))
    assert np.array_equal(again.tiers(features), made.tiers(features))
    raw = AbstainingRanker(model, cost=0.3, scale="none").fit(features, prefs)
    (note,) = (note for note in raw.status_["notes"] if note.code == "different scales")
    assert note.numbers["most"] == "age" and note.numbers["times"] > 10
    assert np.allclose(raw._judged(features, prefs, None).distance.max(), np.ptp(features.X[:, 1]), rtol=0.3)


@pytest.mark.parametrize("by", ["distance", "risk"])
@pytest.mark.parametrize("calibration", ["isotonic", "logistic"])
def test_a_kept_ranker_abstains_as_before_and_knows_other_costs(by: str, calibration: str, tmp_path: Path) -> None:
    made = AbstainingRanker(FITTED, by=by, calibration=calibration, cost=0.3, norm=2).fit(*HELD)
    again = load_model(save_model(made, tmp_path / "model"))
    for cost in (0.3, 0.1, 0.45):
        one, other = made.with_cost(cost), again.with_cost(cost)
        assert np.array_equal(one.tiers(HELD[0]), other.tiers(HELD[0])) and one.gamma_ == other.gamma_
        fresh = AbstainingRanker(FITTED, by=by, calibration=calibration, cost=cost, norm=2).fit(*HELD)
        assert np.array_equal(one.tiers(HELD[0]), fresh.tiers(HELD[0]))
    infinite = AbstainingRanker(FITTED, gamma=np.inf, norm=np.inf).fit()
    assert load_model(save_model(infinite, tmp_path / "far")).gamma_ == np.inf
    assert load_model(tmp_path / "far").gamma == np.inf and load_model(tmp_path / "model").norm == "2"
    assert load_model(tmp_path / "far").with_cost(0.5).gamma_ == np.inf


def test_risk_and_coverage_of_both_rules_as_data_and_as_a_figure(tmp_path: Path) -> None:
    made = AbstainingRanker(FITTED, cost=0.3).fit(*HELD)
    near, risk = (made.risk_coverage(*TRAIN, by=by) for by in ("distance", "risk"))
    assert near.coverage[0] == risk.coverage[0] == 1 and near.risk[0] == risk.risk[0]
    assert near.to_arrow(0.3).column_names == ["threshold", "coverage", "risk", "loss"]
    assert risk.to_arrow().column_names == ["threshold", "coverage", "risk", "estimated_risk"]
    assert near.to_arrow()["threshold"][0].as_py() is None
    assert 0 < risk.at(0.5) < risk.at(1.0) and risk.least_aurc <= risk.aurc
    pytest.importorskip("matplotlib")
    assert near.plot(tmp_path / "curves.svg", risk).stat().st_size > 1000
    with pytest.raises(UsageError, match="allowed:"):
        near.plot(tmp_path / "curves.xyz")
    with pytest.raises(UsageError, match="there is no folder"):
        near.plot(tmp_path / "none" / "curves.svg")


def test_distances_of_blocks_have_the_bits_of_single_pairs() -> None:
    X = np.random.default_rng(1).normal(size=(50, 9))
    for norm, metric in METRIC.items():
        found = pair_distances(X[:25], X[25:], norm)
        assert np.allclose(found, cdist(X[:25], X[25:], metric).diagonal())
        rows = np.arange(25)
        assert np.array_equal(found, pair_distances(X, X, norm, rows, rows + 25))
        for k in range(3):
            assert pair_distances(X[k : k + 1], X[25 + k : 26 + k], norm)[0] == found[k]
        columns = (np.asfortranarray(part) for part in (X[:25], X[25:]))
        assert np.array_equal(found, pair_distances(*columns, norm))
        for whole in (X, X.astype(np.float32)):
            a, b = np.triu_indices(len(whole), 1)
            few = [pair_distances(whole, whole, norm, a[k : k + 9], b[k : k + 9]) for k in range(0, len(a), 9)]
            assert np.array_equal(pair_distances(whole, whole, norm, a, b), np.concatenate(few))


# -- bad input -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cost": -0.1}, "cost is the price of an abstention"),
        ({"cost": 1.5}, "cost is the price"),
        ({"cost": float("nan")}, "cost is the price"),
        ({"cost": "0.1"}, "cost is the price"),
        ({"gamma": -1.0}, "gamma must be 'auto', None or a distance"),
        ({"gamma": float("nan")}, "gamma must be"),
        ({"gamma": "best"}, "gamma must be"),
        ({"norm": 3}, "norm must be one of 1, 2, inf"),
        ({"norm": "l2"}, "norm must be"),
        ({"by": "near"}, "by must be one of distance, risk"),
        ({"share": 1.5}, "share must be a number from 0 to 1"),
        ({"by": "risk", "gamma": 0.5}, "gamma is for abstention by distance"),
        ({"share": 0.1, "gamma": 0.5}, "share bounds"),
        ({"scale": "log"}, "scale must be one of auto, none"),
        ({"calibration": "platt"}, "calibration must be one of"),
        ({"folds": 1}, "folds must be an integer"),
        ({"pairs": 0}, "pairs must be an integer"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
        ({"seed": "x"}, "seed must be an integer of at least 0"),
        ({"split": "rows"}, "split must be one of"),
    ],
)
def test_parameters_that_mean_nothing(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        AbstainingRanker(FITTED, **options).fit(*HELD)


def test_what_cannot_be_done_is_said() -> None:
    features, prefs = HELD
    with pytest.raises(UsageError, match="not learned from any yet"):
        AbstainingRanker(EdgeRanker("ranknet"), gamma=1.0).fit()
    with pytest.raises(UsageError, match="or neither"):
        AbstainingRanker(FITTED, gamma=1.0).fit(features)
    with pytest.raises(UsageError, match="chooses γ by held-out judgments"):
        AbstainingRanker(FITTED).fit()
    with pytest.raises(UsageError, match="estimates risks by held-out judgments"):
        AbstainingRanker(FITTED, by="risk").fit()
    with pytest.raises(UsageError, match="one scale, which distances need"):
        AbstainingRanker(LinearRegression().fit(features.X, features.X[:, 0]), gamma=1.0).fit()
    with pytest.raises(UsageError, match="no predict"):
        AbstainingRanker(StandardScaler()).fit(*HELD)
    with pytest.raises(UsageError, match="not the class"):
        AbstainingRanker(EdgeRanker).fit(*HELD)
    with pytest.raises(UsageError, match="cannot learn from preferences"):
        AbstainingRanker(LinearRegression()).fit(*HELD)
    with pytest.raises(UsageError, match="bound on the share"):
        AbstainingRanker(FITTED, share=0.2).fit(*HELD).with_cost(0.2)
    made = AbstainingRanker(FITTED, gamma=0.5).fit()
    with pytest.raises(InputError, match="a has 3 rows, b has 2"):
        made.predict_pairs(features.X[:3], features.X[:2])
    with pytest.raises(InputError, match="not finite"):
        made.predict_pairs(np.full((1, 3), np.nan), features.X[:1])
    with pytest.raises(InputError, match="not finite"):
        made.tiers(np.full((2, 3), np.inf))
    with pytest.raises(InputError, match="is expecting 3 features"):
        made.tiers(features.X[:, :2])
    with pytest.raises(UsageError, match="by must be one of"):
        made.risk_coverage(features, prefs, by="nearness")
    with pytest.raises(UsageError, match="coverage must be above 0"):
        made.risk_coverage(features, prefs).at(0.0)
    labels = np.array([0.0, 1.0, 1.0])
    with pytest.raises(UsageError, match="labels are held out by query"):
        AbstainingRanker(ListRanker(ridge=1.0)).fit((features.X[:3], ["q"] * 3, ["a", "b", "c"]), labels)
    with pytest.raises(InputError, match="no judgment compares two"):
        AbstainingRanker(FITTED).fit(features, np.ones(72))


def test_missing_values_are_filled_as_the_ranker_fills_them() -> None:
    features, prefs = TRAIN
    X = features.X.copy()
    X[::7, 2] = np.nan
    names = features.items.take(features.item), features.queries.take(features.query)
    holes = Features.of(X, *names, missing="keep")
    ranker = EdgeRanker("ranknet", missing="mean").fit(holes, prefs)
    made = AbstainingRanker(ranker, cost=0.3).fit(holes, prefs)
    assert made.missing_ == "mean" and np.isfinite(made._judged(holes, prefs, None).distance).all()
    with pytest.raises(InputError, match="not finite"):
        AbstainingRanker(EdgeRanker("ranknet").fit(TRAIN[0].X, Judged.of(prefs, item=names[0], query=names[1]))).fit(
            holes, prefs
        )

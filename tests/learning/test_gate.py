"""The gate: the default scorer reaches the right order where its class can, for the loss that is named."""

import json
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

import concordant as cc
from concordant.auditing.counterexamples import KNOWN
from concordant.errors import UsageError
from concordant.learning.rankers.gate import _taken, projected
from concordant.learning.rankers.target import Judges, Target
from concordant.preferences.splits import folds
from seeds import seed

THEOREM_3 = np.array(KNOWN["theorem-3"].votes, float)


def drawn(votes, n, queries, draw, noise=3):
    """Comparisons of items with indicators and noise as features, from a population of votes[i, j] for i over j."""
    rng = np.random.default_rng(draw)
    items = len(votes)
    share = (votes / votes.sum()).ravel()
    log, rows = [], []
    for query, size in enumerate(rng.multinomial(n, np.full(queries, 1 / queries))):
        count = rng.multinomial(size, share).reshape(items, items)
        log += [(query, i, j, count[i, j]) for i, j in zip(*np.nonzero(count), strict=True)]
        rows += [(query, i, np.r_[np.eye(items)[i], rng.normal(size=noise)]) for i in range(items)]
    query, winner, loser, count = map(np.array, zip(*log, strict=True))
    prefs = cc.Preferences.from_comparisons(winner, loser, query, count=count)
    of, item, X = zip(*rows, strict=True)
    return (np.array(X), np.array(of), np.array(item)), prefs


def excess(scores, votes):
    """Mean over queries of the pairwise loss of an order above that of the best order, by trying all orders."""
    share = votes / votes.sum()

    def loss(one):
        gap = np.sign(one[:, None] - one[None, :])
        return float((share * (1 - gap) / 2)[~np.eye(len(one), dtype=bool)].sum())

    best = min(loss(np.array(order, float)) for order in permutations(range(len(votes))))
    return np.mean([loss(one) - best for one in scores.reshape(-1, len(votes))])


@pytest.mark.parametrize("queries", [1, 20])
@pytest.mark.parametrize("regressor", [None, HistGradientBoostingRegressor(random_state=0)], ids=["linear", "trees"])
def test_the_default_ranks_theorem_3_rightly(queries, regressor):
    features, prefs = drawn(THEOREM_3, 40_000, queries, seed(0))
    right = cc.AggregationRanker(regressor=regressor).fit(features, prefs)
    assert excess(right.predict(features), THEOREM_3) == 0
    assert right.status_["gate"][0]["candidates"][0]["taken"] is False
    assert right.status_["consistent_for"] == "pairwise" and "gate: " in right.status_["notes"][-1]
    wrong = cc.AggregationRanker(regressor=regressor, gate=False).fit(features, prefs)
    assert excess(wrong.predict(features), THEOREM_3) == pytest.approx(0.01) and "gate" not in wrong.status_


def test_missing_values_that_a_regressor_keeps_are_at_the_mean_for_the_gate():
    """Noise that is not known everywhere hides no order: the linear candidates have it at the mean, trees see it."""
    (X, query, item), prefs = drawn(THEOREM_3, 40_000, 20, 0)
    X[::4, 3] = np.nan
    ranker = cc.AggregationRanker(regressor=HistGradientBoostingRegressor(random_state=0), missing="keep")
    ranker.fit((X, query, item), prefs)
    assert all(any(one["taken"] for one in gate["candidates"][1:]) for gate in ranker.status_["gate"])
    assert excess(ranker.predict(X), THEOREM_3) == 0


def acyclic(rng):
    """A population whose net preferences follow one order, of any strength."""
    items = rng.integers(3, 7)
    weight = np.triu(rng.gamma(0.5, size=(items, items)), 1)
    share = 0.5 + 0.5 * rng.random((items, items)) ** rng.choice([0.5, 1, 3])
    order = rng.permutation(items)
    votes = np.zeros((items, items))
    votes[np.ix_(order, order)] = weight * share + (weight * (1 - share)).T
    return votes


def test_the_default_finds_the_best_order_of_acyclic_populations():
    rng = np.random.default_rng(seed(1))
    found = []
    for draw in range(10):
        votes = acyclic(rng)
        features, prefs = drawn(votes, 200_000, 3, draw)
        found.append(excess(cc.AggregationRanker().fit(features, prefs).predict(features), votes))
    assert np.mean(found) < 5e-4 and max(found) < 5e-3


def test_the_target_decides_where_the_orders_differ():
    """The population of the method, section 11: pairs 12, 23, 13 with shares .30, .02, .68; NDCG of limit scores."""
    votes = np.zeros((3, 3))
    for i, j, share, chance in ((0, 1, 0.30, 0.60), (1, 2, 0.02, 0.80), (0, 2, 0.68, 0.52)):
        votes[i, j], votes[j, i] = share * chance, share * (1 - chance)
    odds = np.log(np.divide(votes, votes.T, out=np.ones((3, 3)), where=votes > 0)).sum(axis=1) / 2
    gain, discount = 2**odds - 1, 1 / np.log2([2, 3, 4])

    def risk(scores):
        order = np.argsort(-scores)
        return 1 - (gain[order] @ discount) / (np.sort(gain)[::-1] @ discount)

    features, prefs = drawn(votes, 200_000, 20, seed(2))
    found = {}
    for target in ("ndcg", "pairwise"):
        ranker = cc.AggregationRanker(target=target).fit(features, prefs)
        found[target] = np.mean([risk(one) for one in ranker.predict(features).reshape(-1, 3)])
    assert found["ndcg"] == 0 and found["pairwise"] > 0.05


def test_the_error_of_a_pairwise_difference_is_that_of_its_judgments():
    """Each judgment written out: its loss under either order, the sum and the root of the sum of squares."""
    rng = np.random.default_rng(seed(3))
    query, one = rng.integers(0, 3, 90), rng.integers(0, 5, 90)
    other, person = (one + rng.integers(1, 5, 90)) % 5, rng.integers(0, 9, 90)
    prefs = cc.Preferences.from_comparisons(one, other, query, cluster=person)
    a, b = rng.normal(size=15), np.round(rng.normal(size=15))

    def lost(scores):
        high, low = scores[query * 5 + one], scores[query * 5 + other]
        return np.where(high > low, 0.0, np.where(high < low, 1.0, 0.5))

    each = lost(a) - lost(b)
    for plain in (True, False):
        votes = cc.Preferences.from_comparisons(one, other, query) if plain else prefs
        assert len(votes.members[1]) == 15
        helds = [held for _, held in folds(votes, 3, split="judgments" if plain else "clusters")]
        found = Judges(Target("pairwise"), helds, None).difference([a] * 3, [b] * 3)
        error = np.sqrt((each**2).sum()) if plain else np.sqrt((np.bincount(person, each) ** 2).sum())
        assert found.mean == pytest.approx(each.sum() / 90) and found.error == pytest.approx(error / 90)


def test_the_jackknife_of_a_list_loss_has_the_right_size():
    """The spread of the held-out difference over drawn logs, against the mean of its squared standard errors."""
    rng = np.random.default_rng(seed(4))
    ability = np.array([0.8, 0.3, 0.0, -0.4, -0.7])
    one, other = np.triu_indices(5, 1)
    chance = 1 / (1 + np.exp(ability[other] - ability[one]))
    a, b = np.array([5.0, 4, 3, 2, 1]), np.array([4.0, 5, 2, 3, 1])
    differences, errors = [], []
    for _ in range(120):
        wins = rng.binomial(40, chance)
        count = np.r_[wins, 40 - wins]
        prefs = cc.Preferences.from_comparisons(np.r_[one, other], np.r_[other, one], count=count)
        helds = [held for _, held in folds(prefs, 3)]
        found = Judges(Target("ndcg"), helds, None).difference([a] * 3, [b] * 3)
        differences.append(found.mean)
        errors.append(found.error)
    assert 0.7 < np.sqrt(np.mean(np.square(errors))) / np.std(differences) < 1.5


def test_what_bradley_terry_explains_stays_as_it_is():
    """The default loses nothing where its model holds: the gate stays closed, or opens for what orders alike."""
    rng = np.random.default_rng(seed(5))
    worse = []
    for _ in range(8):
        X = rng.normal(size=(30 * 8, 4))
        score = X @ rng.normal(size=4)
        query = np.repeat(np.arange(30), 8)
        i = rng.integers(0, 240, 2000)
        j = query[i] * 8 + (i % 8 + rng.integers(1, 8, 2000)) % 8
        first = rng.random(2000) < 1 / (1 + np.exp(score[j] - score[i]))
        winner, loser = np.where(first, i, j), np.where(first, j, i)
        prefs = cc.Preferences.from_comparisons(winner, loser, query[i])
        risks = []
        for gate in ("auto", False):
            found = cc.AggregationRanker(gate=gate).fit((X, query, np.arange(240)), prefs).predict(X)
            risks.append(1 - cc.ndcg(found, score, query, gain=lambda s: np.exp2(s), at=None).mean())
        worse.append(risks[0] - risks[1])
    assert np.mean(worse) < 1e-3


def test_clicks_have_a_gate_of_their_own():
    rng = np.random.default_rng(seed(6))
    session = np.repeat(np.arange(300), 4)
    item = np.array([rng.permutation(4) for _ in range(300)]).ravel()
    clicked = rng.random(1200) < np.array([0.6, 0.4, 0.2, 0.1])[item]
    prefs = cc.Preferences.from_selections(
        ["q"] * 1200, session, np.tile([1, 2, 3, 4], 300), item, clicked.astype(int), clicks="first"
    )
    ranker = cc.AggregationRanker().fit((np.eye(4), ["q"] * 4, np.arange(4)), prefs)
    assert [one["name"] for one in ranker.status_["gate"][0]["candidates"]] == ["cascade", "err-pairwise"]
    asked = cc.AggregationRanker(target="pairwise").fit((np.eye(4), ["q"] * 4, np.arange(4)), prefs)
    assert asked.status_["target"] == "pairwise" and "consistent_for" not in asked.status_  # no such candidate
    assert ranker.status_["target"] == "err" and (np.diff(ranker.predict(np.eye(4))) < 0).all()


def test_a_projection_is_the_least_squares_one_on_the_best_order():
    votes = cc.Preferences.from_comparisons(["a", "b", "c", "a"], ["b", "c", "d", "d"], count=[9, 9, 9, 9])
    found = projected(np.array([3.0, 0.0, 1.0, -1.0]), votes)
    assert (np.diff(found) < 0).all()
    assert found == pytest.approx([3, 0.5, 0.5, -1], abs=0.25) and found.sum() == pytest.approx(3)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"target": "mrr"}, "unknown target 'mrr'"),
        ({"target": "pairwise@3"}, "the pairwise loss has none"),
        ({"target": "ndcg@0"}, "a cut-off is at least 1"),
        ({"target": 3}, "unknown target 3"),
        ({"target": "precision"}, "every order has the same"),
        ({"gate": "yes"}, "gate must be True, False or 'auto'"),
        ({"gate": True, "structure": "log-odds"}, "structure, order or gain replace"),
    ],
)
def test_what_is_no_target_or_gate_is_refused(wrong, says):
    features, prefs = drawn(THEOREM_3, 50, 1, seed(7))
    with pytest.raises(UsageError, match=says):
        cc.AggregationRanker(**wrong).fit(features, prefs)


def test_too_little_to_hold_out_is_said():
    log = {"winner": ["1", "2", "1", "3"] * 9, "loser": ["2", "3", "3", "1"] * 9, "worker": ["x", "y"] * 18}
    few = cc.read(log, columns={"cluster": "worker"})
    rows = (np.eye(3), None, np.array(["1", "2", "3"]))
    ranker = cc.AggregationRanker().fit(rows, few)
    assert "2 clusters for 3 folds" in ranker.status_["gate"][0]["why"]
    assert "gate: " in ranker.status_["notes"][-1] and "consistent_for" not in ranker.status_
    assert ranker.status_["gate"][0]["candidates"][1]["loss"] is None  # JSON has no NaN
    json.dumps(ranker.to_state()[0], allow_nan=False)


def test_sums_in_another_order_open_no_gate():
    """Precision of lists that hold the same items before the cut-off differs by rounding alone."""

    for gap, error, taken in ((7.4e-17, 0.0, 0), (1e-9, 0.0, 1), (-7e-17, 1e-17, 0)):
        apart = {"a": SimpleNamespace(mean=0.0, error=0.0), "b": SimpleNamespace(mean=gap, error=error)}
        judges = SimpleNamespace(loss=lambda _: 0.01, difference=lambda _, other, apart=apart: apart[other])
        gate = _taken(Target("precision", 5), ("a", "b"), judges, ["a", "b"])
        assert gate.taken == taken and ("alike" in gate.note) == (gap < 1e-12)


def test_a_loss_on_edges_is_chosen_by_the_target():
    features, prefs = drawn(THEOREM_3, 40_000, 3, seed(9))
    ranker = cc.EdgeRanker("auto", ridge=1e-5).fit(features, prefs)
    assert excess(ranker.predict(features), THEOREM_3) == 0 and ranker.status_["loss"] == "difference-graph"
    assert [one["name"] for one in ranker.status_["gate"][0]["candidates"]] == ["ranknet", "difference-graph", "linear"]
    named = cc.EdgeRanker("difference-graph", ridge=1e-5).fit(features, prefs)
    assert (ranker.coef_ == named.coef_).all() and "gate" not in named.status_
    listed = cc.EdgeRanker("auto", target="ndcg@2").fit(features, prefs)
    assert listed.status_["gate"][0]["candidates"][-1]["name"] == "ndcg-pairwise"
    rows, labels = np.random.default_rng(seed(10)).normal(size=(40, 2)), np.tile([0, 1, 2, 0], 10)
    judged = cc.Features.of(rows, np.arange(40), np.repeat(np.arange(10), 4))
    for target, loss in ((None, "ndcg-pairwise"), ("err", "err-pairwise"), ("pairwise", "difference-graph")):
        assert cc.EdgeRanker("auto", target=target).fit(judged, labels).status_["loss"] == loss
    with pytest.raises(UsageError, match="phi does nothing here: loss is 'auto'"):
        cc.EdgeRanker("auto", phi="hinge").fit(features, prefs)


def test_a_kept_curve_says_what_its_loss_is():
    features, prefs = drawn(THEOREM_3, 2_000, 4, seed(11))
    ranker = cc.AggregationRanker("log-odds", order=[1, "all"], target="ndcg@2", subsets=4).fit(features, prefs)
    assert "loss: ndcg@2, held out" in str(ranker.cv_)
    assert str(cc.AggregationRanker.from_state(*ranker.to_state()).cv_) == str(ranker.cv_)
    kept = {name: value for name, value in ranker.cv_.to_state().items() if name != "target"}
    assert type(ranker.cv_).from_state(kept).target == "pairwise"  # what a model of 0.1 holds


def test_gains_may_rise_more_steeply_with_scores_and_c0_is_chosen():
    """G(β s)/Z by the kernel is that of a gain function written out; the choice is that of the least loss."""
    features, prefs = drawn(THEOREM_3, 600, 12, seed(12))
    for order in ("all", 5):
        quick = cc.mean_targets(prefs, order=order, scale=0.25).value
        plain = cc.mean_targets(prefs, order=order, gain=lambda s: np.exp2(0.25 * s) - 1).value
        np.testing.assert_allclose(quick, plain, atol=1e-12)
    ranker = cc.AggregationRanker(
        "log-odds", structure_options={"c0": [0.1, 5]}, order=["all"], score_scale="auto", target="ndcg"
    ).fit(features, prefs)
    tried = [(row["score_scale"], row["c0"]) for row in ranker.cv_.to_arrow().to_pylist()]
    assert sorted(set(tried)) == [(scale, c0) for scale in (0.25, 0.5, 1.0, 2.0, 5.0) for c0 in (0.1, 5.0)]
    assert tried[ranker.cv_.best] == (ranker.score_scale_, ranker.status_["c0"])
    again = cc.AggregationRanker(
        "log-odds", order="all", ridge=ranker.ridge_, score_scale=ranker.score_scale_,
        structure_options={"c0": ranker.status_["c0"]},
    ).fit(features, prefs)  # fmt: skip
    np.testing.assert_allclose(again.coef_, ranker.coef_, rtol=1e-10)
    assert str(cc.AggregationRanker.from_state(*ranker.to_state()).cv_) == str(ranker.cv_)
    assert "c0 " in str(ranker.cv_)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"score_scale": 0}, "positive number, not 0"),
        ({"score_scale": []}, "empty list"),
        ({"score_scale": 2.0}, "does nothing where the gain is the identity"),
        ({"structure_options": {"c0": ["a"]}}, "c0 must be"),
        ({"structure_options": {"c0": []}}, "c0 must be"),
        ({"structure": "borda", "structure_options": {"c0": "auto"}}, "c0"),
    ],
)
def test_scales_and_c0_that_are_none(given, said):
    features, prefs = drawn(THEOREM_3, 60, 2, seed(13))
    with pytest.raises(UsageError, match=said):
        cc.AggregationRanker(**given).fit(features, prefs)

"""BoostedRanker: slopes against differences and brute force, trees from none up, and what is refused."""

from itertools import pairwise

import numpy as np
import pytest

import concordant as cc
from concordant.learning.rankers.slopes import CentredSquares, EdgeSlopes, GainSlopes, InformedSlopes, LambdaSlopes
from concordant.learning.rankers.stopping import Likelihood
from concordant.losses.objective import Population, Relevance
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.ragged import Ragged

START = np.array([0, 4, 5, 9])


def votes_of_three_queries():
    rng = np.random.default_rng(3)
    query = rng.integers(0, 3, 60)
    winner = rng.integers(0, 4, 60)
    return cc.Preferences.from_comparisons(winner, (winner + rng.integers(1, 4, 60)) % 4, query)


def numeric(value, at):
    """Central differences."""
    step = 1e-5 * np.eye(len(at))
    return np.array([(value(at + one) - value(at - one)) / 2e-5 for one in step])


def test_slopes_of_gains_are_those_of_the_surrogate():
    rng = np.random.default_rng(0)
    gain, alpha, weight = rng.random(9) * (rng.random(9) < 0.7), rng.normal(size=9), np.array([1.0, 2.0, 0.5])
    slopes = GainSlopes(gain, Ragged(START), weight)
    gradient, curvature = slopes(alpha)
    edges = [(j, k) for b, e in pairwise(START) for j in range(b, e) for k in range(b, e) if j != k]
    each = np.repeat(weight, np.diff(START)) * gain
    assert slopes.value(alpha) == pytest.approx(sum(each[j] * np.logaddexp(0, alpha[k] - alpha[j]) for j, k in edges))
    np.testing.assert_allclose(gradient, numeric(slopes.value, alpha), atol=1e-8)
    bend = numeric(lambda a: slopes(a)[0], alpha).diagonal()
    np.testing.assert_allclose(curvature, bend, atol=1e-8)
    objective = surrogate("ndcg-pairwise").objective(Relevance.of(gain, START), gain="identity", normalised=False)
    np.testing.assert_allclose(GainSlopes(gain, Ragged(START), np.ones(3))(alpha)[0], objective.gradient(alpha))


def test_slopes_of_far_scores_are_finite():
    slopes = GainSlopes(np.array([1.0, 2.0]), Ragged(np.array([0, 2])), np.ones(1))
    gradient, curvature = slopes(far := np.array([900.0, -900.0]))
    assert np.isfinite(slopes.value(far)) and gradient == pytest.approx([2.0, -2.0]) and (curvature >= 0).all()


def test_slopes_of_informed_aggregation_are_those_of_its_envelope():
    votes = votes_of_three_queries()
    batch, groups = Batch.whole(votes), Ragged(Batch.whole(votes).node_start)
    slopes = InformedSlopes(votes, 0.7, groups, np.ones(3))
    rng = np.random.default_rng(1)
    alpha = groups.centred(rng.normal(size=len(batch.item)))
    gradient, curvature = slopes(alpha)
    graphs = batch.graphs

    def envelope(mean):
        s = groups.centred(mean) - 0.7 * slopes(mean)[0]
        margin = s[graphs.first] - s[graphs.second]
        lost = graphs.above @ np.logaddexp(0, -margin) + graphs.below @ np.logaddexp(0, margin)
        return lost + ((s - groups.centred(mean)) ** 2).sum() / 1.4

    np.testing.assert_allclose(gradient, numeric(envelope, alpha), atol=2e-3)
    assert (curvature > 0).all()
    assert np.abs(groups.sums(gradient)).max() < 1e-3


def test_slopes_of_squares_and_edges():
    rng = np.random.default_rng(2)
    target, weight, alpha = rng.normal(size=9), rng.random(9) + 0.1, rng.normal(size=9)
    groups = Ragged(START)
    squares = CentredSquares(target, weight, groups)
    np.testing.assert_allclose(groups.sums(squares(alpha)[0]), 0, atol=1e-12)
    np.testing.assert_allclose(squares(alpha)[0], squares(alpha + groups.spread(np.arange(3.0)))[0], atol=1e-12)
    objective = surrogate("difference-graph").objective(Population.of(Batch.whole(votes_of_three_queries())))
    at = rng.normal(size=objective.nodes)
    slopes = EdgeSlopes(objective, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(slopes(at)[0], np.array([1.0, 2.0, 3.0])[objective.owner] * objective.gradient(at))
    np.testing.assert_allclose(slopes(at)[1], numeric(lambda a: slopes(a)[0], at).diagonal(), atol=1e-7)


def test_slopes_of_lambdas_are_those_of_the_definition_and_of_lightgbm():
    rng = np.random.default_rng(8)
    sizes = np.array([40, 1, 3, 6])  # more than are looked at, fewer
    start = np.append(0, np.cumsum(sizes))
    grades, alpha, weight = rng.integers(0, 4, 50).astype(float), rng.normal(size=50), np.array([1.0, 1.0, 2.0, 0.5])
    gradient, curvature = LambdaSlopes(2**grades - 1, Ragged(start), weight)(alpha)
    slope, bend = np.zeros(50), np.zeros(50)
    for w, (b, e) in zip(weight, pairwise(start), strict=True):
        order = b + np.argsort(-alpha[b:e])
        best = sum((2**g - 1) / np.log2(2 + r) for r, g in enumerate(np.sort(grades[b:e])[::-1][:30]))
        for r, j in enumerate(order):
            for s, k in enumerate(order):
                if grades[j] > grades[k] and min(r, s) < 30:
                    lost = (2.0 ** grades[j] - 2.0 ** grades[k]) * abs(1 / np.log2(2 + r) - 1 / np.log2(2 + s)) / best
                    p = 1 / (1 + np.exp(alpha[j] - alpha[k]))
                    slope[[j, k]] += w * lost * p * np.array([-1, 1])
                    bend[[j, k]] += w * lost * p * (1 - p)
    np.testing.assert_allclose(gradient, slope, atol=1e-12)
    np.testing.assert_allclose(curvature, bend, atol=1e-12)
    lightgbm = pytest.importorskip("lightgbm")
    X = rng.normal(size=(50, 2))
    given = {"min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 1e-6, "num_leaves": 8, "verbosity": -1, "seed": 1}
    given |= {"lambdarank_norm": False, "deterministic": True, "force_row_wise": True, "boost_from_average": False}
    theirs = lightgbm.train({**given, "objective": "lambdarank"}, lightgbm.Dataset(X, grades, group=sizes), 5)
    slopes = LambdaSlopes(2**grades - 1, Ragged(start), np.ones(4))
    given["objective"] = lambda predicted, _: slopes(predicted)
    ours = lightgbm.train(given, lightgbm.Dataset(X, grades, group=sizes), 5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-3, atol=1e-4)


def curved(queries=60, items=12):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(queries * items, 3))
    query = np.repeat(np.arange(queries), items)
    truth = np.abs(X[:, 0]) * 2 + 0.3 * X[:, 1]
    return X, query, np.arange(len(X)), truth


@pytest.mark.parametrize(
    "loss", ["auto", "informed", "informed-regression", "difference-graph", "ranknet", "lambda-ndcg"]
)
def test_trees_learn_from_judgments_what_no_linear_scorer_can(loss):
    X, query, item, truth = curved()
    rng = np.random.default_rng(5)
    first = rng.integers(0, 12, 3000) + 12 * (where := rng.integers(0, 60, 3000))
    second = 12 * where + (first % 12 + rng.integers(1, 12, 3000)) % 12
    up = rng.random(3000) < 1 / (1 + np.exp(truth[second] - truth[first]))
    votes = cc.Preferences.from_comparisons(np.where(up, first, second), np.where(up, second, first), where)
    ranker = cc.BoostedRanker(loss, rounds=60, leaf_rows=10).fit((X, query, item), votes)
    again = cc.BoostedRanker(loss, rounds=60, leaf_rows=10).fit((X, query, item), votes)
    assert np.array_equal(ranker.predict(X), again.predict(X))
    assert all(one["iterations"] > 5 for one in ranker.status_["stopped"])
    fresh = np.random.default_rng(6).normal(size=(500, 3))
    assert np.corrcoef(ranker.predict(fresh), np.abs(fresh[:, 0]))[0, 1] > 0.7
    for name, losses in ranker.curve_.items():
        stages = {one["loss"]: one["iterations"] for one in ranker.status_["stopped"]}[name]
        assert losses[stages] == min(losses) < losses[0]


def test_no_trees_where_held_out_judgments_are_those_of_a_coin():
    X, query, item, _ = curved()
    grown = 0
    for draw in range(4):
        rng = np.random.default_rng(draw)
        first = rng.integers(0, 12, 800) + 12 * (where := rng.integers(0, 60, 800))
        second = 12 * where + (first % 12 + rng.integers(1, 12, 800)) % 12
        ranker = cc.BoostedRanker(rounds=60, leaf_rows=5).fit(
            (X, query, item), cc.Preferences.from_comparisons(first, second, where)
        )
        assert [one["iterations"] for one in ranker.status_["stopped"]] == [0, 0]
        grown += sum(int(np.argmin(losses)) > 0 for losses in ranker.curve_.values())
    assert grown and any("than by a coin" in note for note in ranker.status_["notes"])  # chance would have grown some


def test_how_far_judgments_are_likelier_than_by_a_coin():
    """Each judgment by itself, straight from the formula."""
    votes = cc.Preferences.from_comparisons([0, 0, 1, 3], [1, 1, 0, 2], [0, 0, 0, 1])
    scores, weight = np.array([0.7, -0.2, 0.4, 0.1]), np.array([1.0, 0.5])
    won, lost = np.array([0.7, 0.7, -0.2, 0.1]), np.array([-0.2, -0.2, 0.7, 0.4])
    each = np.repeat(weight, [3, 1]) * (np.log(2) - np.log1p(np.exp(lost - won)))
    assert Likelihood.of(votes, weight).over_a_coin(scores) == pytest.approx([each.sum(), (each**2).sum()])


def test_trees_learn_by_lambdas_of_grades():
    X, query, item, truth = curved()
    grades = np.clip(np.floor(truth), 0, 4)
    ranker = cc.BoostedRanker("lambda-ndcg", rounds=60).fit((X, query, item), grades)
    assert ranker.status_["stopped"][0]["iterations"] > 5
    assert ranker.score((X, query, item), grades) > 0.85


@pytest.mark.parametrize("target", [None, "err@5", "pairwise"])
def test_trees_learn_from_grades_and_nothing_is_grown_on_noise(target):
    X, query, item, truth = curved()
    grades = np.clip(np.floor(truth), 0, 4)
    ranker = cc.BoostedRanker(target=target, rounds=60).fit((X, query, item), grades)
    assert ranker.score((X, query, item), grades) > (0.6 if target == "err@5" else 0.85)
    assert set(ranker.curve_) == {"err-pairwise" if target == "err@5" else "lambda-ndcg", "label-regression"}
    still = cc.BoostedRanker("gain-regression", rounds=0).fit((X, query, item), grades)
    flat = cc.ListRanker(target="ndcg").fit((X, query, item), grades)
    assert still.status_["stopped"][0]["iterations"] == 0
    assert np.corrcoef(still.predict(X), flat.predict(X))[0, 1] > 0.99


def test_monotone_features_never_lower_a_score():
    X, query, item, truth = curved()
    ranker = cc.BoostedRanker(rounds=30, monotone=[0, 1, 0]).fit((X, query, item), np.clip(np.floor(truth), 0, 4))
    rows = np.tile(X[:20], (2, 1))
    rows[20:, 1] += 1.0
    scores = ranker.predict(rows)
    assert (scores[20:] >= scores[:20] - 1e-12).all()


def test_missing_values_are_kept_for_the_trees():
    X, query, item, truth = curved()
    X = X.copy()
    X[::7, 0] = np.nan
    ranker = cc.BoostedRanker(rounds=10).fit((X, query, item), np.clip(np.floor(truth), 0, 4))
    assert np.isfinite(ranker.predict(X)).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"loss": "lambdamart"}, "unknown loss"),
        ({"loss": "informed"}, "is a loss of judgments"),
        ({"rounds": -1}, "rounds must be"),
        ({"early_stopping": 0}, "early_stopping must be"),
        ({"folds": 1}, "folds must be"),
        ({"folds": 2.5}, "folds must be"),
        ({"options": {"bagging_fraction": 7}}, "LightGBM: "),
    ],
)
def test_what_is_refused(options, said):
    X, query, item, truth = curved(8)
    with pytest.raises(cc.UsageError, match=said):
        cc.BoostedRanker(**options).fit((X, query, item), np.floor(np.clip(truth, 0, 4)))


def test_features_that_split_nothing_leave_the_linear_scorer():
    X, query, item, truth = curved(12)
    ranker = cc.BoostedRanker(rounds=5).fit((np.ones((len(X), 2)), query, item), np.clip(np.floor(truth), 0, 4))
    assert [one["iterations"] for one in ranker.status_["stopped"]] == [0, 0]
    assert np.ptp(ranker.predict(np.ones((5, 2)))) == 0


def test_rounds_are_those_of_least_loss_on_the_eval_set():
    X, query, item, truth = curved()
    grades = np.clip(np.floor(truth), 0, 4)
    old, new = query < 40, query >= 40
    rows, fresh = ((X[one], query[one], item[one]) for one in (old, new))
    ranker = cc.BoostedRanker("gain-regression", rounds=60, early_stopping=60)
    ranker.fit(rows, grades[old], eval_set=(fresh, grades[new]))
    losses = ranker.curve_["gain-regression"]
    assert len(losses) == 61
    assert ranker.status_["stopped"][0]["iterations"] == int(np.argmin(losses)) > 0
    for rounds in (0, 1, 7, int(np.argmin(losses))):  # as many trees, all of y and nothing else
        fixed = cc.BoostedRanker("gain-regression", rounds=rounds, folds=0).fit(rows, grades[old])
        assert fixed.curve_ == {} and fixed.status_["stopped"][0]["iterations"] == rounds
        assert 1 - fixed.score(fresh, grades[new]) == pytest.approx(losses[rounds], abs=1e-9)
    assert np.array_equal(fixed.predict(X), ranker.predict(X))
    as_lightgbm = cc.BoostedRanker("gain-regression", rounds=60, early_stopping=60)
    as_lightgbm.fit(rows, grades[old], eval_set=[(fresh, grades[new])])
    assert np.array_equal(as_lightgbm.predict(X), ranker.predict(X))


def test_an_eval_set_may_hold_judgments_or_labels():
    X, query, item, truth = curved(30)
    rng = np.random.default_rng(5)
    first = rng.integers(0, 12, 3000) + 12 * (where := rng.integers(0, 30, 3000))
    second = 12 * where + (first % 12 + rng.integers(1, 12, 3000)) % 12
    up = rng.random(3000) < 1 / (1 + np.exp(truth[second] - truth[first]))
    votes = cc.Preferences.from_comparisons(np.where(up, first, second), np.where(up, second, first), where)
    rows, grades = (X, query, item), np.clip(np.floor(truth), 0, 4)
    for y, eval_y in ((votes, votes), (votes, grades), (grades, votes)):
        ranker = cc.BoostedRanker(rounds=20).fit(rows, y, eval_set=(rows, eval_y))
        for losses in ranker.curve_.values():
            assert losses[0] > min(losses) > 0
    margin = (plain := cc.BoostedRanker("ranknet", rounds=0).fit(rows, votes, eval_set=(rows, votes))).predict(X)
    won, lost = (np.where(up, first, second), np.where(up, second, first))
    likelihood = np.logaddexp(0, margin[lost] - margin[won]).mean()
    assert plain.curve_["ranknet"] == [pytest.approx(likelihood)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "eval_set is a pair"),
        ((np.ones((4, 3)),), "eval_set is a pair"),
        ([(1, 2), (3, 4)], "eval_set: "),
        (((np.ones((4, 2)), list("aabb"), list("cdef")), [0, 1, 0, 1]), "eval_set: X has 2 features"),
        (((np.ones((4, 3)), list("aabb"), list("cdef")), [0, 1, 0]), "eval_set: "),
        (((np.ones((4, 3)), list("aabb"), list("cdef")), [0, 0, 1, 1]), "eval_set: none of its queries"),
    ],
)
def test_what_is_refused_of_an_eval_set(given, said):
    X, query, item, truth = curved(8)
    with pytest.raises(cc.ConcordantError, match=said):
        cc.BoostedRanker().fit((X, query, item), np.clip(np.floor(truth), 0, 4), eval_set=given)


def coded(queries=40, items=25, missing=True):
    """A number, a category of 30 whose odd codes are good, and what has nothing to do with it."""
    rng = np.random.default_rng(9)
    X = np.column_stack((rng.normal(size=queries * items), rng.integers(0, 30, queries * items))).astype(float)
    good = X[:, 1] % 2
    if missing:
        X[::10, 1], good[::10] = np.nan, 2.0
    query = np.repeat(np.arange(queries), items)
    grades = np.clip(np.round(good + 0.3 * X[:, 0]), 0, 4)
    return (X, query, np.arange(len(X))), grades


def test_categories_are_split_by_sets_kept_and_scored_equal(tmp_path):
    rows, grades = coded()
    options = {"options": {"min_data_per_group": 10, "cat_smooth": 1.0}, "rounds": 40}
    ranker = cc.BoostedRanker(categories=[1], **options).fit(rows, grades)
    plain = cc.BoostedRanker(**options).fit(rows, grades)
    assert "num_cat=0" not in ranker.regressor_.booster_.model_to_string()
    assert ranker.score(rows, grades) > plain.score(rows, grades)
    assert ranker.scorer_standardised_[1] == 0 != ranker.scorer_standardised_[0]
    new = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, np.nan], [0.0, 99.0], [0.0, -1.0]])
    scores = ranker.predict(new)
    assert scores[2] > scores[0] > scores[1]
    cc.save_model(ranker, tmp_path / "model")
    kept = cc.load_model(tmp_path / "model")
    np.testing.assert_allclose(kept.predict(new), scores, rtol=0, atol=1e-12)
    np.testing.assert_allclose(kept.predict(rows[0]), ranker.predict(rows[0]), rtol=0, atol=1e-12)
    assert kept.explain_.equals(ranker.explain_)
    votes = cc.Preferences.from_comparisons([f"{i}" for i in range(25)] * 2, [f"{(i + 1) % 25}" for i in range(25)] * 2)
    one = (rows[0][:25], None, [f"{i}" for i in range(25)])
    assert cc.BoostedRanker(categories=[1], rounds=3).fit(one, votes).scorer_standardised_[1] == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"categories": [2]}, "no column 2 among 2"),
        ({"categories": ["colour"]}, "no column 'colour'"),
        ({"categories": [0]}, "values of column 0 are no codes"),
        ({"categories": [1, 1]}, "named twice"),
        ({"categories": [1.5]}, "places or names"),
        ({"categories": 1, "log": True}, "need log=False"),
        ({"categories": 1, "missing": "mean"}, "missing='keep'"),
        ({"categories": 1, "monotone": [0, 1]}, "0 for categories"),
        ({"monotone": [0, 1, 1]}, "for each of 2 features"),
        ({"monotone": [0, 3]}, "monotone is -1, 0 or 1"),
    ],
)
def test_what_is_refused_of_categories(options, said):
    with pytest.raises(cc.ConcordantError, match=said):
        cc.BoostedRanker(rounds=2, **options).fit(*coded(8))


def test_gain_and_coefficients_say_what_features_are_worth():
    X, query, item, truth = curved()
    ranker = cc.BoostedRanker("gain-regression", rounds=40).fit((X, query, item), np.clip(np.floor(truth), 0, 4))
    found = ranker.explain_.to_pydict()
    assert found["feature"][0] == "1" and found["gain"][0] > 0.8  # |x1|, which no linear scorer sees
    assert sum(found["gain"]) == pytest.approx(1)
    named = dict(zip(found["feature"], found["coefficient"], strict=True))
    assert [named[one] for one in "123"] == ranker.scorer_standardised_.tolist() and named["2"] > abs(named["1"])
    splits = ranker.regressor_.booster_.feature_importance("split")
    assert found["splits"] == [splits[int(one) - 1] for one in found["feature"]]
    card = cc.model_card(ranker, audit=False)
    assert "| feature | coefficient | gain |" in card and f"| 1 | {named['1']:.4g}" in card

"""A nightly fit: what held-out judgments chose stays, and the coefficients have the bits of the whole fit."""

import json

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import concordant as cc
from concordant.auditing.counterexamples import KNOWN
from concordant.errors import UsageError
from concordant.learning.rankers import gate, residual_fit
from seeds import seed

THEOREM_3 = np.array(KNOWN["theorem-3"].votes, float)


def population(queries=30, items=8, width=4):
    """Rows of features, and a function that draws judgments by a noisy linear truth."""
    draw = np.random.default_rng(seed(0))
    X = draw.normal(size=(queries * items, width))
    truth = X @ draw.normal(size=width) + draw.normal(size=len(X))
    query, item = np.divmod(np.arange(len(X)), items)

    def judged(n, which, of=slice(None)):
        rng = np.random.default_rng(which)
        q = rng.choice(np.arange(queries)[of], n)
        a, b = rng.integers(0, items, n), rng.integers(1, items, n)
        b = (a + b) % items
        gap = truth[q * items + a] - truth[q * items + b]
        won = rng.random(n) < 1 / (1 + np.exp(-gap))
        return np.where(won, a, b), np.where(won, b, a), q

    return (X, query, item), judged


def night(judged, before=2_000, more=4):
    """Comparisons of some days, and the same with those of one more, of a few queries."""
    days = [judged(before, 1), judged(more, 2, slice(3))]
    made = [np.concatenate(one) for one in zip(*days, strict=True)]
    return cc.Preferences.from_comparisons(*days[0]), cc.Preferences.from_comparisons(*made)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"target": "ndcg@5"},
        {"structure": "log-odds", "order": "all", "ridge": "auto"},
        {"structure": ["log-odds", "borda"], "gain": "auto", "order": "all"},
        {"gate": False},
        {"ridge": [0.01, 0.1], "tau2": 0.5},
    ],
    ids=str,
)
def test_a_refit_has_the_bits_of_the_whole_fit(options, monkeypatch):
    features, judged = population()
    before, after = night(judged)
    started = cc.AggregationRanker(**options).fit(features, before)
    whole = cc.AggregationRanker(**options).fit(features, after)
    same = {name: value for name, value in whole.status_["choices"].items() if name != "judgments"}
    assert same == {name: value for name, value in started.status_["choices"].items() if name != "judgments"}
    refuse = lambda *_, **__: pytest.fail("something is chosen anew")  # noqa: E731
    for where, name in ((gate, "folds"), (residual_fit, "folds")):
        monkeypatch.setattr(where, name, refuse)
    assert (started.coef_ != whole.coef_).any()  # the day makes a difference
    started.refit(features, after)
    assert (started.coef_ == whole.coef_).all() and not hasattr(started, "cv_")
    assert started.status_["status"] == whole.status_["status"] and started.ridge_ == whole.ridge_
    assert started.status_["choices"] == {**same, "judgments": 2_000}  # when all was chosen
    assert "choices kept" in [note.code for note in started.status_["notes"]]


def test_a_scorer_that_the_gate_took_is_fitted_anew():
    share = (THEOREM_3 / THEOREM_3.sum()).ravel()
    X = np.tile(np.eye(len(THEOREM_3)), (20, 1))
    query, item = np.divmod(np.arange(len(X)), len(THEOREM_3))

    def votes(n):
        counts = np.random.default_rng(seed(1)).multinomial(n, share, size=20)
        q, pair = np.nonzero(counts)
        first, second = np.divmod(pair, len(THEOREM_3))
        return cc.Preferences.from_comparisons(first, second, q, count=counts[q, pair])

    started = cc.AggregationRanker().fit((X, query, item), votes(2_000))
    taken = started.status_["choices"]["gate"]
    assert taken is not None and started.status_["consistent_for"] == "pairwise"
    whole = cc.AggregationRanker().fit((X, query, item), votes(2_020))
    assert whole.status_["choices"]["gate"] == taken
    started.refit((X, query, item), votes(2_020))
    assert (started.coef_ == whole.coef_).all()
    told = ("status", "structure", "consistent_for", "target")
    assert [started.status_[name] for name in told] == [whole.status_[name] for name in told]


def test_choices_are_kept_with_the_model(tmp_path):
    features, judged = population()
    before, after = night(judged)
    cc.save_model(cc.AggregationRanker().fit(features, before), tmp_path / "model")
    loaded = cc.load_model(tmp_path / "model").refit(features, after)
    cc.save_model(loaded, tmp_path / "model")  # every night, in the same place
    again = cc.load_model(tmp_path / "model")
    assert (again.coef_ == cc.AggregationRanker().fit(features, after).coef_).all()
    assert again.status_["choices"]["judgments"] == 2_000


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"more": 250}, "there were 2,000 judgments, now there are 2,250"),
        ({"before": 1_716}, "there were 2,000 judgments, now there are 1,720"),
    ],
)
def test_much_more_or_less_is_chosen_anew(more, why):
    features, judged = population()
    before, _ = night(judged)
    _, after = night(judged, **more)
    started = cc.AggregationRanker().fit(features, before).refit(features, after)
    whole = cc.AggregationRanker().fit(features, after)
    assert (started.coef_ == whole.coef_).all() and started.status_["choices"] == whole.status_["choices"]
    assert any(note.code == "chosen anew" and why in note for note in started.status_["notes"])


def test_other_features_or_judgments_of_another_kind_are_chosen_for_anew():
    (X, query, item), judged = population()
    before, _ = night(judged)
    named = cc.Features.of(X, item=item, query=query, names=["a", "b", "c", "d"])
    other = cc.Features.of(X, item=item, query=query, names=["a", "b", "c", "e"])
    started = cc.AggregationRanker().fit(named, before).refit(other, before)
    assert "the features are others" in " ".join(started.status_["notes"]) and hasattr(started, "cv_")
    lists = cc.Preferences.from_orders(["q"] * 24, np.repeat(np.arange(8), 3), list("abc" * 8), [1, 2, 3] * 8)
    rows = {"query": ["q"] * 3, "item": list("abc"), "x": [2.0, 0.5, 0.0]}
    votes = cc.Preferences.from_comparisons(list("abca"), list("bcab"), ["q"] * 4, count=[2, 2, 2, 2])
    orders = cc.AggregationRanker("borda", order="all", ridge=0.1).fit(rows, lists).refit(rows, votes)
    assert "chosen for orders, and these are comparisons" in " ".join(orders.status_["notes"])


def test_what_keeps_no_choices_is_refused():
    features, judged = population()
    before, _ = night(judged)
    trees = cc.AggregationRanker("log-odds", order="all", regressor=Ridge()).fit(features, before)
    few = cc.AggregationRanker().fit(features, cc.Preferences.from_comparisons([0], [1], [0]))
    graded = cc.AggregationRanker().fit(features, np.arange(len(features[0])) % 3)
    for ranker in (trees, few, graded):
        assert "choices" not in ranker.status_
        with pytest.raises(UsageError, match="keeps no choices"):
            ranker.refit(features, before)
    json.dumps(cc.AggregationRanker().fit(features, before).status_["choices"], allow_nan=False)

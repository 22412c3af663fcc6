"""The best of several rankers for labels, against parts, fits and nDCG done by hand."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import Ridge

import concordant as cc
from concordant.learning.features.matrix import Features
from concordant.learning.rankers.family import best_of, family
from seeds import seed

QUERIES, ITEMS = 24, 8


@pytest.fixture(scope="module")
def labelled():
    """Labels by the distance of a feature from 0, which no linear scorer sees, and a little by another."""
    random = np.random.default_rng(seed(0))
    X = random.normal(size=(QUERIES * ITEMS, 3))
    label = np.clip(np.round(2 * np.abs(X[:, 0]) + 0.3 * X[:, 1] + 0.3 * random.normal(size=len(X))), 0, 4)
    query = np.repeat(np.arange(QUERIES), ITEMS)
    rows = random.permutation(len(X))  # queries need not stand together
    return Features.of(X[rows], np.arange(len(X)), query[rows]), label[rows]


def ndcg_at_10(scores, labels):
    order, ideal = np.argsort(-scores), np.argsort(-labels)
    worth = 1 / np.log2(2 + np.arange(min(10, len(labels))))
    return ((2.0 ** labels[order[:10]] - 1) @ worth) / ((2.0 ** labels[ideal[:10]] - 1) @ worth)


def test_the_one_of_highest_ndcg_on_held_out_queries_is_fitted_to_all(labelled):
    features, label = labelled
    tried = {
        "linear": cc.ListRanker(missing="raise"),
        "trees": cc.BoostedRanker(rounds=20, folds=0, leaf_rows=5),
        "ridge": cc.ListRanker(regressor=Ridge(), gain="identity", normalise=False),
    }
    best = best_of(tried, features, label, seed=3)
    query = np.array([int(str(features.queries[code])) for code in features.query])
    codes = np.asarray(features.query)
    dealt = np.random.default_rng(3).permutation(QUERIES) % 3
    for row, ranker in zip(best.status_["family"], tried.values(), strict=True):
        each = []
        for part in range(3):
            held = (dealt == part)[codes]
            fitted = type(ranker)(**ranker.get_params(deep=False)).fit(features.take(~held), label[~held])
            scores = fitted.predict(features.X[held])
            each += [ndcg_at_10(scores[query[held] == q], label[held][query[held] == q]) for q in set(query[held])]
        assert row["mean"] == pytest.approx(np.mean(each), abs=1e-9)
    assert [row["name"] for row in best.status_["family"] if row["chosen"]] == ["trees"]
    assert any("trees of 3 orders 24 held-out queries best" in str(note) for note in best.status_["notes"])
    whole = tried["trees"].fit(features, label)
    np.testing.assert_array_equal(best.predict(features.X), whole.predict(features.X))


def test_the_family_suits_the_target_and_what_is_installed(monkeypatch):
    assert list(family()) == ["gain-regression", "ndcg-pairwise", "boosted trees"]
    assert list(family("err@5")) == ["gain-regression", "err-pairwise", "boosted trees"]
    assert all(ranker.target == "err@5" for ranker in family("err@5").values())
    assert [ranker.missing for ranker in family(gaps=True).values()] == ["mean", "mean", "keep"]
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert list(family()) == ["gain-regression", "ndcg-pairwise", "trees"]


def test_of_few_queries_the_first_is_taken(labelled):
    features, label = labelled
    few = np.flatnonzero(np.asarray(features.query) < 4)
    best = best_of({"one": cc.ListRanker(), "other": cc.ListRanker("ranknet")}, features.take(few), label[few])
    assert best.loss == "gain-regression" and [row["chosen"] for row in best.status_["family"]] == [True, False]
    with pytest.raises(cc.InputError, match="have no query"):
        best_of({"one": cc.ListRanker()}, Features.of(features.X, features.item), label)


def test_one_that_cannot_learn_from_a_part_is_not_taken(labelled):
    """A single query has two labels: where it is held out pairs have nothing to learn from, gains of all rows do."""
    features, label = labelled
    query = np.asarray(features.query)
    flat = np.where(query == 5, label, query % 3)
    gains = cc.ListRanker(intercept="one")
    best = best_of({"pairs": cc.ListRanker("ndcg-pairwise"), "gains": gains}, features, flat)
    assert [row["chosen"] for row in best.status_["family"]] == [False, True]
    assert best.status_["family"][0]["mean"] is None and np.isfinite(best.predict(features.X)).all()


@pytest.mark.parametrize("ranker", [cc.ListRanker(), cc.ListRanker("ranknet"), cc.BoostedRanker()])
def test_labels_that_are_equal_in_every_query_teach_nothing(labelled, ranker):
    features, _ = labelled
    with pytest.raises(cc.InputError, match=r"no query has two items of different label: .* nothing to learn from"):
        ranker.fit(features, np.asarray(features.query) % 3)


def test_of_a_sparse_matrix_the_best_linear_scorer_is_taken(labelled):
    features, label = labelled
    rows = replace(features, X=Features.of(csr_matrix(features.X), np.arange(len(label))).X)
    assert list(family(sparse=True)) == ["gain-regression", "ndcg-pairwise"]
    best, dense = (best_of(family(sparse=True), given, label) for given in (rows, features))
    np.testing.assert_allclose(best.predict(rows), dense.predict(features), atol=1e-6)

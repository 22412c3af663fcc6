"""Sparse matrices: the same scorers as of dense ones, whichever way they are fitted, and nothing made dense."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.linear_model import Ridge

import concordant as cc
from concordant.errors import InputError, UsageError
from concordant.learning.features import reading
from concordant.learning.features.normalising import Moments
from concordant.learning.rankers import columns
from concordant.learning.rankers.judged import Judged
from concordant.learning.solvers import edges, graded
from concordant.preferences.preferences import Preferences

RNG = np.random.default_rng(5)
QUERY = np.repeat([f"q{n:02}" for n in range(20)], 8)
ITEM = np.tile([f"d{n}" for n in range(8)], 20)
DENSE = np.where(RNG.random((160, 12)) < 0.25, RNG.normal(size=(160, 12)) + 1.0, 0.0)
DENSE[:, 11] = 3.0  # constant
SPARSE = csr_array(DENSE)
TRUTH = DENSE @ RNG.normal(size=12)
GRADES = np.clip(np.round(TRUTH + 1.0 + RNG.normal(size=160) * 0.5), 0, 4)
LABELS = Judged.of_labels(GRADES, query=QUERY)


def votes() -> Preferences:
    rng = np.random.default_rng(6)
    first, second = rng.integers(0, 8, (2, 2000))
    query = rng.integers(0, 20, 2000)
    apart = first != second
    a, b, query = query[apart] * 8 + first[apart], query[apart] * 8 + second[apart], query[apart]
    up = rng.random(len(a)) < 1 / (1 + np.exp(TRUTH[b] - TRUTH[a]))
    winner, loser = np.where(up, a, b), np.where(up, b, a)
    return Preferences.from_comparisons(ITEM[winner], ITEM[loser], query=QUERY[winner])


VOTES = Judged.of(votes(), query=QUERY, item=ITEM)
CASES: list[tuple[Any, Any, float]] = [
    (cc.ListRanker(), LABELS, 1e-8),
    (cc.ListRanker(ridge=0.3, standardise=False), LABELS, 1e-8),
    (cc.ListRanker(intercept="one"), LABELS, 1e-8),
    (cc.ListRanker(intercept="none", log=True), LABELS, 1e-8),
    (cc.ListRanker("ranknet"), LABELS, 1e-6),
    (cc.ListRanker("ndcg-pairwise"), LABELS, 1e-6),
    (cc.AggregationRanker(), LABELS, 1e-8),
    (cc.AggregationRanker("log-odds", order="all", ridge=0.01), VOTES, 1e-8),
    (cc.AggregationRanker(), VOTES, 1e-6),
    (cc.EdgeRanker("ranknet"), VOTES, 1e-6),
    (cc.EdgeRanker("difference-graph"), VOTES, 1e-6),
    (cc.EdgeRanker("linear"), VOTES, 1e-6),
    (cc.QueryRankers(cc.ListRanker()), LABELS, 1e-8),
]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("ranker", "judged", "tolerance"), CASES, ids=lambda one: str(one)[:40])
def test_a_sparse_matrix_gives_the_scorer_of_the_dense_one(
    ranker: Any, judged: Any, tolerance: float, wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(X: Any) -> Any:
        return (X, QUERY, ITEM) if isinstance(ranker, cc.QueryRankers) else X

    given = GRADES if isinstance(ranker, cc.QueryRankers) else judged
    scores = ranker.fit(rows(DENSE), given).predict(rows(DENSE))
    if wide:  # as if there were very many features
        monkeypatch.setattr(columns, "WIDE", 3)
        monkeypatch.setattr(edges, "WIDE", 3)
        monkeypatch.setattr(graded, "WIDE", 3)
    found = ranker.fit(rows(SPARSE), given)
    assert np.abs(found.predict(rows(SPARSE)) - scores).max() < tolerance * np.abs(scores).max()
    assert np.allclose(found.predict(rows(DENSE)), found.predict(rows(SPARSE)), rtol=1e-12, atol=1e-12)
    assert found.score(rows(SPARSE), given) == pytest.approx(found.score(rows(DENSE), given))


def test_the_iterated_fit_is_that_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "WIDE", 3)
    found = cc.AggregationRanker(ridge=0.1, standardise=False).fit(SPARSE, GRADES)
    assert np.allclose(found.coef_, Ridge(alpha=0.1 * len(GRADES)).fit(DENSE, GRADES).coef_, rtol=0, atol=1e-9)
    assert found.status_["status"] == "converged" and found.status_["gradient"] < 1e-9


@pytest.mark.parametrize("log", [False, True])
def test_moments_are_those_of_the_dense_matrix(log: bool) -> None:
    gaps = DENSE.copy()
    gaps[RNG.random(gaps.shape) < 0.1] = np.nan
    sparse, dense = Moments.of(csr_array(gaps), log=log), Moments.of(gaps, log=log)
    for name in ("mean", "deviation", "present"):
        assert np.allclose(getattr(sparse, name), getattr(dense, name), rtol=1e-12, atol=1e-12)
    for missing in ("mean", "zero"):
        ranker = cc.ListRanker(missing=missing)
        scores = ranker.fit(gaps, LABELS).predict(gaps)
        assert np.allclose(ranker.fit(csr_array(gaps), LABELS).predict(csr_array(gaps)), scores)


def test_what_a_sparse_matrix_cannot_do_is_said() -> None:
    trees = cc.AggregationRanker(regressor=Ridge())
    for ranker in (trees, cc.RankBoostRanker(), cc.BoostedRanker(), cc.AbstainingRanker(cc.ListRanker())):
        with pytest.raises(UsageError, match="takes no sparse matrix"):
            ranker.fit(SPARSE, GRADES)
    with pytest.raises(UsageError, match="not the median"):
        cc.ListRanker(missing="median").fit(SPARSE, LABELS)
    wrong = DENSE.copy()
    wrong[3, 2] = np.inf
    with pytest.raises(InputError, match="row 4, column '3': inf"):
        cc.ListRanker().fit(csr_array(wrong), LABELS)
    with pytest.raises(InputError, match="is no matrix of real numbers"):
        cc.ListRanker().fit(SPARSE * 1j, GRADES)


def test_a_sparse_matrix_is_not_changed() -> None:
    twice = csr_matrix(([1.0, 2.0, 4.0], [1, 1, 0], [0, 2, 3]), (2, 3))
    features = cc.Features.of(twice, ["a", "b"])
    assert features.X.toarray().tolist() == [[0, 3, 0], [4, 0, 0]] and twice.nnz == 3
    assert len(features) == 2 and features.take(np.array([1])).X.toarray().tolist() == [[4, 0, 0]]


def test_a_wide_letor_file_is_read_sparse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        f"{int(grade)} qid:{query} " + " ".join(f"{at + 1}:{x[at]!r}" for at in np.flatnonzero(x)) + "\n"
        for grade, query, x in zip(GRADES, QUERY, DENSE.tolist(), strict=True)
        for x in [np.array(x)]
    ]
    path = tmp_path / "wide.txt"
    path.write_text("".join(lines).replace("np.float64(", "").replace(")", ""))
    dense, labels = cc.read_judged(path)
    monkeypatch.setattr(reading, "CELLS", 100)
    monkeypatch.setattr(reading, "FILLED", 1)
    sparse, again = cc.read_judged(path)
    assert sparse.sparse and not dense.sparse and np.array_equal(again, labels)
    assert np.array_equal(sparse.X.toarray(), dense.X)
    scores = cc.ListRanker().fit(dense, labels).predict(dense)
    assert np.allclose(cc.ListRanker().fit(sparse, labels).predict(sparse), scores, atol=1e-10)

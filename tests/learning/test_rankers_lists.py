"""ListRanker: relevance labels against formulas written out; labels and tables that do not fit."""

from __future__ import annotations

import json
import math
from itertools import permutations, product

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import ndcg_score
from threadpoolctl import threadpool_limits

from concordant.errors import InputError, UsageError
from concordant.learning.rankers.judged import Judged
from concordant.learning.rankers.lists import LOSSES, ListRanker
from concordant.losses.metrics.metrics import metric
from concordant.preferences.preferences import Preferences

DRAW = np.random.default_rng(11)
SIZE = DRAW.integers(3, 9, 30)
QUERY = np.repeat(np.arange(30), SIZE)
X = DRAW.normal(size=(len(QUERY), 3)) + 0.5 * QUERY[:, None] % 3
LABELS = np.clip(np.round(1.2 * X[:, 0] - 0.8 * X[:, 1] + 0.4 * DRAW.normal(size=len(QUERY)) + 1), 0, 4)
JUDGED = Judged.of_labels(LABELS, query=QUERY)


def normalised_gains(at: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and (2^y − 1)/Z centred by query, and weights 1/(n m), from the definition."""
    rows, y, w = [], [], []
    for q in range(30):
        mine = q == QUERY
        gain = 2.0 ** LABELS[mine] - 1
        best = sum(g / np.log2(1 + r) for r, g in enumerate(sorted(gain)[::-1][:at], 1))
        target = gain / best if best > 0 else 0 * gain
        rows.append(X[mine] - X[mine].mean(axis=0))
        y.append(target - target.mean())
        w.append(np.full(mine.sum(), 1 / mine.sum()))
    return np.concatenate(rows), np.concatenate(y), np.concatenate(w)


@pytest.mark.parametrize("at", [None, 2])
def test_gain_regression_is_weighted_least_squares(at: int | None) -> None:
    rows, y, w = normalised_gains(at)
    ranker = ListRanker(ridge=0, at=at).fit(X, JUDGED)
    assert np.allclose(ranker.coef_, LinearRegression(fit_intercept=False).fit(rows, y, sample_weight=w).coef_)
    labelled = ListRanker(ridge=0, at=at).fit((X, QUERY, np.arange(len(X))), LABELS)
    assert np.allclose(labelled.coef_, ranker.coef_, rtol=1e-12)
    shuffled = DRAW.permutation(len(X))
    again = ListRanker(ridge=0, at=at).fit(X[shuffled], Judged.of_labels(LABELS[shuffled], query=QUERY[shuffled]))
    assert np.allclose(again.coef_, ranker.coef_, rtol=1e-10)


def test_score_is_mean_ndcg_at_10() -> None:
    ranker = ListRanker().fit(X, JUDGED)
    scores = ranker.predict(X)
    by_query = [ndcg_score([2.0 ** LABELS[q == QUERY] - 1], [scores[q == QUERY]], k=10, ignore_ties=True)
                if LABELS[q == QUERY].any() else 0.0 for q in range(30)]  # fmt: skip
    assert ranker.score(X, JUDGED) == pytest.approx(np.mean(by_query))
    assert ranker.score((X, QUERY, np.arange(len(X))), LABELS) == pytest.approx(np.mean(by_query))


LAWS = (
    [((4, 1, 0), 3), ((0, 1, 2), 7)],  # the first is best in the mean, the second is always relevant
    [((3, 0, 1), 4), ((0, 2, 1), 6)],
    [((2, 1, 0), 5), ((0, 1, 4), 2), ((0, 1, 3), 2)],
)
"""Labels of three items, and how often a query has them."""


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "target", ["ndcg", "ndcg@1", "ndcg@2", "precision@1", "precision@2", "pairwise", "err", "err@2"]
)
def test_each_target_has_its_own_best_order(law, target: str) -> None:
    """The order fitted loses least of all six, on queries whose items differ in nothing but who they are."""
    if target.startswith("err"):  # is for labels that do not depend on each other: every combination
        columns = [[(row[item], count) for row, count in law] for item in range(3)]
        law = [(tuple(a for a, _ in rows), math.prod(n for _, n in rows)) for rows in product(*columns)]
    labels = np.array([row for row, count in law for _ in range(count)], float)
    query = np.repeat(np.arange(len(labels)), 3)
    ranker = ListRanker(target=target, ridge=0, standardise=False)
    ranker.fit(np.tile(np.eye(3), (len(labels), 1)), Judged.of_labels(labels.ravel(), query=query))
    loss = {}
    for order in permutations(range(3)):
        scores = np.tile(-np.argsort(order).astype(float), len(labels))
        value = metric(target)(scores, labels.ravel(), query).mean()
        loss[order] = value if target == "pairwise" else -value
    found = tuple(np.argsort(-ranker.predict(np.eye(3)), kind="stable").tolist())
    assert loss[found] <= min(loss.values()) + 1e-12
    assert ranker.status_["consistent_for"] == target.partition("@")[0]


def test_targets_of_labels_differ_and_are_scored() -> None:
    orders = {
        target: tuple(np.argsort(-ListRanker(target=target).fit(X, JUDGED).predict(X)))
        for target in ("ndcg", "ndcg@1", "err", "precision@2", "pairwise")
    }
    assert len(set(orders.values())) == 5
    ranker = ListRanker(target="pairwise").fit(X, JUDGED)
    scores, lost = ranker.predict(X), []
    for q in range(30):
        gap = [(a, b) for a in np.flatnonzero(q == QUERY) for b in np.flatnonzero(q == QUERY) if LABELS[a] > LABELS[b]]
        if gap:
            wrong = sum((LABELS[a] - LABELS[b]) * (scores[a] <= scores[b]) for a, b in gap)
            lost.append(wrong / sum(LABELS[a] - LABELS[b] for a, b in gap))
    assert ranker.score(X, JUDGED) == pytest.approx(1 - np.mean(lost))
    own = ListRanker(target="ndcg@2", gain="identity").fit(X, JUDGED)
    assert "consistent_for" not in own.status_
    with pytest.raises(UsageError, match="give a cut-off: precision@5"):
        ListRanker(target="precision").fit(X, JUDGED)


def test_pairwise_losses_by_hand() -> None:
    pairs = [(i, j) for i in range(len(X)) for j in range(len(X)) if QUERY[i] == QUERY[j] and LABELS[i] > LABELS[j]]
    i, j = np.array(pairs).T
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for loss, phi in (("ranknet", lambda t: np.logaddexp(0, -t)), ("rankboost", lambda t: np.exp(-t)),
                      ("ranksvm", lambda t: np.maximum(0, 1 - t) ** 2)):  # fmt: skip
        given = {"phi": "squared-hinge"} if loss == "ranksvm" else {}
        ranker = ListRanker(loss, ridge=0.05, **given).fit(X, JUDGED)

        def risk(theta: np.ndarray, phi=phi) -> float:
            return ((LABELS[i] - LABELS[j]) * phi((Z[i] - Z[j]) @ theta)).sum() / 30 + 0.025 * theta @ theta

        # one quantity at the minimum, so that the peer's tolerance matters little
        assert risk(ranker.coef_standardised_) <= minimize(risk, np.zeros(3), tol=1e-12).fun * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["ranksvm", "ranknet", "rankboost"])
def test_sorting_and_writing_out_the_pairs_are_one(loss: str, monkeypatch) -> None:
    given = {"phi": "squared-hinge"} if loss == "ranksvm" else {}
    out = ListRanker(loss, ridge=0.05, **given).fit(X, JUDGED)
    monkeypatch.setattr("concordant.learning.rankers.lists.PAIRS", 0)
    sorted_out = ListRanker(loss, ridge=0.05, **given).fit(X, JUDGED)
    assert np.allclose(sorted_out.coef_, out.coef_, rtol=1e-4)
    assert sorted_out.status_["status"] == "converged"


def test_ndcg_and_err_pairwise_by_hand() -> None:
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for loss in ("ndcg-pairwise", "err-pairwise"):
        ranker = ListRanker(loss, ridge=0.05).fit(X, JUDGED)

        def risk(theta: np.ndarray, loss=loss) -> float:
            total, alpha = 0.0, Z @ theta
            for q in range(30):
                mine = np.flatnonzero(q == QUERY)
                gain = 2.0 ** LABELS[mine]
                if loss == "err-pairwise":
                    weight = (gain - 1) / 2.0 ** LABELS.max()
                else:
                    weight = gain / sum(g / np.log2(1 + r) for r, g in enumerate(sorted(gain)[::-1], 1))
                for a, w in zip(mine, weight, strict=True):
                    others = mine[mine != a]
                    total += w * np.logaddexp(0, alpha[others] - alpha[a]).sum() / 30
            return total + 0.025 * theta @ theta

        assert risk(ranker.coef_standardised_) <= minimize(risk, np.zeros(3), tol=1e-10).fun * (1 + 1e-9), loss


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_learns_and_comes_back(loss: str) -> None:
    ranker = ListRanker(loss).fit(X, JUDGED)
    assert ranker.score(X, JUDGED) > 0.85
    assert ranker.status_["status"].startswith(("closed form", "converged"))
    values, arrays = ranker.to_state()
    again = ListRanker.from_state(json.loads(json.dumps(values)), arrays)
    assert np.array_equal(again.predict(X), ranker.predict(X))


def test_any_regressor() -> None:
    with threadpool_limits(1):
        ranker = ListRanker(regressor=HistGradientBoostingRegressor(max_iter=30, min_samples_leaf=5)).fit(X, JUDGED)
    assert ranker.score(X, JUDGED) > 0.9 and ranker.foreign_ is not None


def test_weights_of_queries() -> None:
    weight = np.where(QUERY < 10, 2.0, 0.0)
    ranker = ListRanker(ridge=0.1, standardise=False).fit(X, JUDGED, sample_weight=weight)
    alone = ListRanker(ridge=0.1, standardise=False).fit(X[QUERY < 10], JUDGED[QUERY < 10])
    assert np.allclose(ranker.coef_, alone.coef_, rtol=1e-10)


def test_gains_as_a_table_or_a_function() -> None:
    by_name = ListRanker().fit(X, JUDGED).coef_
    assert np.allclose(ListRanker(gain=[0, 1, 3, 7, 15]).fit(X, JUDGED).coef_, by_name)
    assert np.allclose(ListRanker(gain=lambda y: 2**y - 1).fit(X, JUDGED).coef_, by_name)
    with pytest.raises(InputError, match="labels are not in the table of gains"):
        ListRanker(gain=[0, 1, 3]).fit(X, JUDGED)
    with pytest.raises(InputError, match="gain of label 2000 is not finite"):
        ListRanker().fit(X, Judged.of_labels(np.where(LABELS > 3, 2000.0, LABELS), query=QUERY))


def test_labels_that_do_not_fit() -> None:
    negative = LABELS.copy()
    negative[4] = -1
    with pytest.raises(InputError, match=r"1 of \d+ labels are negative \(first: -1, query 1, item 5\)"):
        ListRanker().fit(X, Judged.of_labels(negative, query=QUERY))
    with pytest.raises(InputError, match="not finite"):
        Judged.of_labels(np.where(LABELS > 3, np.nan, LABELS), query=QUERY)
    with pytest.raises(InputError, match="for preferences use AggregationRanker"):
        ListRanker().fit({"item": ["a", "b"], "x": [1.0, 2.0]}, Preferences.from_comparisons(["a"], ["b"]))
    for given, said in (({"loss": "lambdarank"}, "unknown loss"), ({"loss": "ranknet", "gain": "2^s"}, "has no gain"),
                        ({"gain": "3^s"}, "unknown gain"), ({"phi": "hinge"}, "least squares"),
                        ({"loss": "ranknet", "regressor": LinearRegression()}, "linear scorer")):  # fmt: skip
        with pytest.raises(UsageError, match=said):
            ListRanker(**given).fit(X, JUDGED)


def test_queries_without_relevance_are_said_and_equal_labels_teach_nothing() -> None:
    labels = np.where(QUERY == 3, 0.0, LABELS)
    ranker = ListRanker().fit(X, Judged.of_labels(labels, query=QUERY))
    none = sum(not labels[q == QUERY].any() for q in range(30))
    note = ranker.status_["notes"][-1]
    assert (note.code, note.numbers) == ("no relevant item", {"queries": none, "of": 30})
    with pytest.raises(InputError, match="no query has two items of different label"):
        ListRanker("ranknet").fit(X, Judged.of_labels(np.ones(len(X)), query=QUERY))

"""Feature-informed priors: the first fit and the held-out likelihood by their formulas, laws, and what is refused."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from concordant.errors import InputError, UsageError
from concordant.learning.features.matrix import Alignment, Features, align
from concordant.learning.features.normalising import Normaliser
from concordant.learning.features.reading import read_judged
from concordant.learning.solvers.least_squares import products
from concordant.learning.targets import informed as room
from concordant.learning.targets.informed import PRECISIONS, Informed, informed_prior
from concordant.learning.targets.mean_targets import mean_targets
from concordant.losses.metrics.ndcg import ndcg
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.bradley_terry import bradley_terry
from conftest import shared_data

Floats = NDArray[np.float64]
Case = tuple[Floats, Alignment, Preferences]


def case(
    seed: int = 0, *, queries: int = 12, items: int = 8, each: int = 40, tau: float = 0.7, width: int = 3
) -> tuple[Case, Floats, Floats]:
    """Comparisons under s = x'θ + τ·noise, the features with an own level per query; also θ and s, by node."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * items, width)) + np.repeat(rng.normal(size=(queries, width)), items, axis=0)
    theta = np.array([1.0, -0.5, 0.25])[:width]
    s = X @ theta + tau * rng.normal(size=len(X))
    q = np.repeat(np.arange(queries), each)
    i = rng.integers(0, items, len(q))
    j = (i + rng.integers(1, items, len(q))) % items
    a, b = q * items + i, q * items + j
    won = rng.random(len(q)) < expit(s[a] - s[b])
    prefs = Preferences.from_comparisons(np.where(won, a, b), np.where(won, b, a), q)
    features = Features.of(X, item=np.arange(len(X)), query=np.repeat(np.arange(queries), items))
    rows = align(features, prefs)
    return (X, rows, prefs), theta, s[rows.row]


def edges(prefs: Preferences) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Winner and loser of each distinct comparison as rows of X (items are rows), and how often."""
    labels = np.array([int(str(item)) for item in prefs.items])
    return labels[prefs.winner], labels[prefs.loser], prefs.count.astype(float)


def centred(start: NDArray[np.int64], value: Floats) -> Floats:
    return np.concatenate([value[a:b] - value[a:b].mean() for a, b in pairwise(start)])


# -- stage one ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("ridge", [0.01, 0.5])
def test_first_fit_is_the_penalised_logistic_regression(ridge: float) -> None:
    (X, rows, prefs), _, _ = case()
    winner, loser, count = edges(prefs)
    D = X[winner] - X[loser]

    def loss(theta: Floats) -> float:
        return float(-(count * log_expit(D @ theta)).sum() / count.sum() + ridge / 2 * theta @ theta)

    expected = minimize(loss, np.zeros(3), tol=1e-14).x
    found = informed_prior(X, rows, prefs, ridge=ridge, tau2=1.0)
    assert found.theta == pytest.approx(expected, abs=1e-6)
    assert found.mean == pytest.approx(centred(rows.start, (X @ expected)[rows.row]), abs=1e-5)
    assert found.ridge == pytest.approx(ridge)
    assert found.options["prior"] == 1.0
    assert not found.ridge_curve
    assert not found.tau2_curve


def test_ties_weights_and_counts_are_half_wins_and_repetition() -> None:
    X, rows = np.array([[1.0], [0.0]]), Alignment(np.array([0, 2]), np.arange(2), np.arange(0))
    votes = Preferences.from_comparisons(["a", "a", "b"], ["b", "b", "a"], count=[6, 2, 1], tie=[False, True, False])
    twin = Preferences.from_comparisons(["a"] * 7 + ["b"] * 2, ["b"] * 7 + ["a"] * 2)
    options: dict[str, Any] = {"ridge": 0.0, "tau2": 1.0}
    assert informed_prior(X, rows, votes, **options).theta == pytest.approx([np.log(7 / 2)], abs=1e-6)
    assert informed_prior(X, rows, twin, **options).theta == pytest.approx([np.log(7 / 2)], abs=1e-6)


def worse_by_errors(X: Floats, rows: Any, graphs: Any, precision: float, best: float) -> float:
    """Held-out log-likelihood lost by a precision beside the best, in standard errors over comparisons."""
    total = square = 0.0
    for rest, held in graphs:
        D, H = (X[rows.row[part.first]] - X[rows.row[part.second]] for part in (rest, held))

        def theta(value: float, D: Floats = D, rest: Any = rest) -> Floats:
            def loss(one: Floats) -> float:
                fit = rest.above @ log_expit(D @ one) + rest.below @ log_expit(-D @ one)
                return float(-fit + value / 2 * one @ one)

            return np.asarray(minimize(loss, np.zeros(X.shape[1]), tol=1e-14).x)

        for sign, count in ((1, held.above), (-1, held.below)):
            gap = log_expit(sign * H @ theta(best)) - log_expit(sign * H @ theta(precision))
            total, square = total + count @ gap, square + count @ gap**2
    return float(total / np.sqrt(square)) if square > 0 else 0.0


# -- what is held out --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("queries", [12, 4])
def test_curves_are_likelihoods_of_what_was_held_out(queries: int) -> None:
    """From the formulas, with the same folds: thirds of the queries (12) or of the judgments (4)."""
    (X, rows, prefs), _, _ = case(1, queries=queries)
    found = informed_prior(X, rows, prefs, seed=5)
    problem = room._Problem(X, rows, prefs, 5)
    precision = found.ridge * len(prefs)
    graphs = [(rest.graphs, held.graphs) for rest, held in problem.splits]
    thetas, value = [], 0.0
    for rest, held in graphs:
        D = X[rows.row[rest.first]] - X[rows.row[rest.second]]

        def loss(theta: Floats, D: Floats = D, rest: Any = rest) -> float:
            fit = rest.above @ log_expit(D @ theta) + rest.below @ log_expit(-D @ theta)
            return float(-fit + precision / 2 * theta @ theta)

        thetas.append(minimize(loss, np.zeros(3), tol=1e-14).x)
        t = (X[rows.row[held.first]] - X[rows.row[held.second]]) @ thetas[-1]
        value += float(held.above @ log_expit(t) + held.below @ log_expit(-t))
    curve = dict(found.ridge_curve)
    assert curve[found.ridge] == pytest.approx(value / len(prefs), abs=1e-7)
    peak = max(curve, key=lambda ridge: curve[ridge])
    assert worse_by_errors(X, rows, graphs, precision, peak * len(prefs)) <= 0.5
    further = worse_by_errors(X, rows, graphs, precision * PRECISIONS[2], peak * len(prefs))
    assert further > 0.5 or precision == pytest.approx(10 * peak * len(prefs))
    # τ² about means that have not seen what they meet
    fold = np.repeat(problem.fold, np.diff(rows.start))
    value = 0.0
    for share, (left, out) in enumerate(problem.shares):
        parts = [np.where(fold == k, (X @ thetas[k])[rows.row], 0.0) for k in range(3)]
        mean = sum(parts) if queries == 12 else (X @ thetas[share])[rows.row]
        s = bradley_terry(left, prior=1 / found.tau2, mean=centred(rows.start, np.asarray(mean))).value
        t = s[out.graphs.first] - s[out.graphs.second]
        value += float(out.graphs.above @ log_expit(t) + out.graphs.below @ log_expit(-t))
    curve = dict(found.tau2_curve)
    assert curve[found.tau2] == pytest.approx(value / len(prefs), abs=1e-5)
    assert curve[found.tau2] == max(curve.values())


def test_folds_part_the_judgments() -> None:
    (X, rows, prefs), _, _ = case(2)
    problem = room._Problem(X, rows, prefs, 0)
    for splits in (problem.splits, problem.shares):
        held = np.zeros(len(prefs.count), np.int64)
        for rest, out in splits:
            both = np.zeros(len(prefs.count), np.int64)
            both[rest.judgment] += rest.multiplicity
            both[out.judgment] += out.multiplicity
            assert np.array_equal(both, prefs.count)
            held[out.judgment] += out.multiplicity
        assert np.array_equal(held, prefs.count)
    for rest, out in problem.splits:  # whole queries
        assert not set(rest.query[rest.judgments > 0]) & set(out.query[out.judgments > 0])


# -- laws --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("tau", [0.3, 1.0])
def test_variance_of_the_truth_is_found(tau: float) -> None:
    (X, rows, prefs), theta, _ = case(3, queries=60, each=120, tau=tau)
    found = informed_prior(X, rows, prefs)
    assert tau**2 / 2.5 < found.tau2 < 2.5 * tau**2
    assert found.theta == pytest.approx(theta, abs=0.25)
    assert not found.notes


@pytest.mark.parametrize("each", [6, 30])
def test_closer_to_the_truth_than_scorer_and_aggregate_alone(each: int) -> None:
    (X, rows, prefs), _, s = case(4, queries=60, each=each)
    found = informed_prior(X, rows, prefs)
    informed = bradley_terry(Batch.whole(prefs), **found.options).value
    plain = bradley_terry(Batch.whole(prefs), prior=1.0).value

    def error(value: Floats) -> float:
        return float(((centred(rows.start, value) - centred(rows.start, s)) ** 2).mean())

    assert error(informed) < error(found.mean)
    assert error(informed) < error(plain)


def test_many_judgments_wash_the_scorer_out() -> None:
    """A feature that is worthless, and judgments without end: the scores tend to plain Bradley–Terry."""
    rng = np.random.default_rng(5)
    s = np.array([1.0, 0.2, -0.3, -0.9])
    first, second = np.triu_indices(4, 1)
    wins = np.round(1e6 * expit(s[first] - s[second])).astype(int)
    prefs = Preferences.from_comparisons(np.r_[first, second], np.r_[second, first], count=np.r_[wins, 10**6 - wins])
    X = rng.normal(size=(4, 1))
    rows = Alignment(np.array([0, 4]), np.arange(4), np.arange(0))
    found = informed_prior(X, rows, prefs)
    scores = bradley_terry(Batch.whole(prefs), **found.options).value
    assert scores == pytest.approx(s - s.mean(), abs=2e-3)


def test_level_of_a_query_does_not_matter() -> None:
    (X, rows, prefs), _, _ = case(6)
    shifted = X + 100.0 * np.repeat(np.arange(12) % 3, 8)[:, None]
    a, b = (informed_prior(x, rows, prefs, ridge=0.01, tau2=0.5) for x in (X, shifted))
    assert a.mean == pytest.approx(b.mean, abs=1e-7)
    assert np.abs(np.add.reduceat(a.mean, rows.start[:-1])).max() < 1e-10


def test_orders_and_ratings_are_read_as_pairs() -> None:
    X, rows = np.array([[2.0], [1.0], [0.0]]), Alignment(np.array([0, 3]), np.arange(3), np.arange(0))
    orders = Preferences.from_orders(["q"] * 6, [0, 0, 0, 1, 1, 1], ["a", "b", "c"] * 2, [1, 2, 3, 2, 1, 3])
    pairs = Preferences.from_comparisons(["a", "a", "b", "b", "a", "b"], ["b", "c", "c", "a", "c", "c"], ["q"] * 6)
    a, b = (informed_prior(X, rows, prefs, ridge=0.1, tau2=1.0) for prefs in (orders, pairs))
    assert a.theta == pytest.approx(b.theta, abs=1e-9)
    assert informed_prior(X, rows, orders).tau2 > 0


def test_sample_of_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two numbers come from as many queries as were asked for, θ from all."""
    (X, rows, prefs), _, _ = case(7, queries=40)
    everything = informed_prior(X, rows, prefs)
    monkeypatch.setattr(room, "SAMPLE", 400)
    problem = room._Problem(X, rows, prefs, 0)
    assert 6 <= len(problem.sampled) < 20
    few = informed_prior(X, rows, prefs)
    same = informed_prior(X, rows, prefs, ridge=few.ridge, tau2=1.0)
    assert few.theta == pytest.approx(same.theta, abs=1e-9)
    assert few.theta == pytest.approx(everything.theta, abs=0.3)


def test_surprises_of_any_size_have_a_likelihood() -> None:
    votes = Preferences.from_comparisons(["a", "b", "c"], ["b", "a", "a"])
    score = np.array([1000.0, 0.0, -2000.0])  # by which b ≻ a has log-likelihood −1000, and c ≻ a −3000
    assert room._likelihood(Batch.whole(votes).graphs, score, np.array([0.5])) == -2000.0


def test_scores_of_single_precision_features_make_no_copy_of_them() -> None:
    X = np.random.default_rng(0).normal(size=(100_000, 40)).astype(np.float32)
    theta = np.linspace(-1, 1, 40)
    tracemalloc.start()
    scores = products(X, theta)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(scores, X.astype(np.float64) @ theta, atol=1e-12)
    assert peak < X.nbytes / 2  # in double precision they take twice as much as X


def test_row_order_does_not_matter() -> None:
    (X, rows, prefs), _, _ = case(8)
    order = np.random.default_rng(0).permutation(len(X))
    place = np.argsort(order)
    moved = informed_prior(X[order], Alignment(rows.start, place[rows.row], rows.unjudged), prefs)
    found = informed_prior(X, rows, prefs)
    assert moved.mean == pytest.approx(found.mean, abs=1e-9)
    assert moved.tau2 == found.tau2


def test_no_signal_is_said() -> None:
    rng = np.random.default_rng(9)
    q = np.repeat(np.arange(30), 10)
    i = rng.integers(0, 5, 300)
    j = (i + rng.integers(1, 5, 300)) % 5
    prefs = Preferences.from_comparisons(i, j, q)
    rows = Alignment(prefs.members[0], np.arange(int(prefs.members[0][-1])), np.arange(0))
    found = informed_prior(rng.normal(size=(len(rows.row), 2)), rows, prefs, seed=1)
    assert found.tau2 < 0.1


# -- real features -----------------------------------------------------------------------------------------------
def test_mq2008_piece() -> None:
    """On real features and labels, 20 comparisons a query: nearer to the labels' order than either part."""
    features, label = read_judged(str(shared_data("mq2008") / "S1.txt"), width=46)
    Z = Normaliser().fit(features).apply(features.X)
    assert features.query is not None
    start = np.flatnonzero(np.diff(features.query, prepend=-1))
    size = np.diff(np.append(start, len(label)))
    rng = np.random.default_rng(0)
    q = np.repeat(np.arange(len(size)), 20)
    i = rng.integers(0, size[q])
    j = (i + rng.integers(1, size[q])) % size[q]
    a, b = start[q] + i, start[q] + j
    won = rng.random(len(q)) < expit(label[a] - label[b])
    names = np.array([features.items[c] for c in features.item])
    queries = np.array([features.queries[c] for c in features.query])
    prefs = Preferences.from_comparisons(names[np.where(won, a, b)], names[np.where(won, b, a)], queries[a])
    rows = align(features, prefs)
    found = informed_prior(Z, rows, prefs)

    def quality(score: Floats) -> float:
        owner = np.repeat(np.arange(len(rows.start) - 1), np.diff(rows.start))
        return float(ndcg(score, label[rows.row], owner, at=10, ties="averaged").mean())

    informed = quality(bradley_terry(Batch.whole(prefs), **found.options).value)
    assert informed > quality(found.mean) + 0.02
    assert informed > quality(bradley_terry(Batch.whole(prefs), prior=1.0).value) + 0.01
    assert 0.05 < found.tau2 < 1.0


# -- use and refusal ---------------------------------------------------------------------------------------------
def test_targets_of_the_informed_structure() -> None:
    (X, rows, prefs), _, _ = case(10)
    found = informed_prior(X, rows, prefs)
    assert isinstance(found, Informed)
    targets = mean_targets(prefs, "bradley-terry", options=found.options, gain="identity", normalise=False)
    assert targets.value == pytest.approx(bradley_terry(Batch.whole(prefs), **found.options).value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ridge": -1.0}, "ridge must be a number of at least 0 or 'auto', not -1.0"),
        ({"ridge": "best"}, "ridge must be"),
        ({"tau2": 0.0}, "tau2 must be a positive number or 'auto', not 0.0"),
        ({"tau2": np.nan}, "tau2 must be"),
        ({"tau2": True}, "tau2 must be"),
    ],
)
def test_options_refused(options: dict[str, Any], said: str) -> None:
    (X, rows, prefs), _, _ = case()
    with pytest.raises(UsageError, match=said):
        informed_prior(X, rows, prefs, **options)


def test_data_refused() -> None:
    (X, rows, prefs), _, _ = case()
    with pytest.raises(UsageError, match=r"matrix \(rows, features\)"):
        informed_prior(X[:, 0], rows, prefs)
    with pytest.raises(UsageError, match="align the features with these preferences"):
        informed_prior(X, rows, prefs.select(list(prefs.queries)[:2]))
    with pytest.raises(UsageError, match="rows up to"):
        informed_prior(X[:5], rows, prefs)
    empty = Preferences.empty()
    with pytest.raises(InputError, match="needs comparisons"):
        informed_prior(X, Alignment(np.zeros(1, np.int64), np.arange(0), np.arange(0)), empty)
    bad = X.copy()
    bad[3, 1] = np.inf
    with pytest.raises(InputError, match="finite"):
        informed_prior(bad, rows, prefs)

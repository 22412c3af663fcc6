"""Scorers on torch: training against closed forms, and the regressor by scikit-learn's own checks.

Skipped where PyTorch is not installed (``pip install "concordant[torch]"``).
"""

import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra [torch]", exc_type=ImportError)

from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.linear_model import Ridge  # noqa: E402
from sklearn.utils.estimator_checks import estimator_checks_generator  # noqa: E402

import concordant.torch as ct  # noqa: E402
from concordant.errors import ConcordantError, UsageError  # noqa: E402
from concordant.learning.rankers.aggregation import AggregationRanker  # noqa: E402
from concordant.learning.solvers.edges import fit_edges  # noqa: E402
from concordant.losses.objective import Relevance  # noqa: E402
from concordant.losses.surrogates import surrogate  # noqa: E402
from concordant.preferences.graphs import Batch  # noqa: E402
from concordant.preferences.preferences import Preferences  # noqa: E402

torch.set_num_threads(1)  # small tensors: threads would only wait for one another


def votes(rng, queries=30, items=6, rows=400):
    """Comparisons by a linear score of three features, with their matrix."""
    X = rng.normal(size=(queries * items, 3))
    query = rng.integers(0, queries, rows)
    i, j = query * items + rng.integers(0, items, (2, rows))
    keep = i != j
    i, j, query = i[keep], j[keep], query[keep]
    wins = rng.random(len(i)) < 1 / (1 + np.exp(-(X[i] - X[j]) @ [1.0, -1.0, 0.5]))
    prefs = Preferences.from_comparisons(np.where(wins, i, j), np.where(wins, j, i), query)
    return X, prefs


def items_of(batch):
    """The item of each node as the number that names it."""
    return np.asarray(batch.prefs.items.take(batch.item), np.int64)


# -- scorers -----------------------------------------------------------------------------------------------------------
def test_scorers_are_their_formulas():
    scorer = ct.ReluScorer(3, 4, seed=3)
    with torch.no_grad():
        scorer.bias += torch.tensor([0.5, -0.5, 1.0, 0.0])
    x = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    inner, bias, outer = (p.detach().numpy() for p in (scorer.inner, scorer.bias, scorer.outer))
    expected = [
        sum(u * max(0.0, float(w @ row) + b) for u, w, b in zip(outer, inner, bias, strict=True)) for row in x.numpy()
    ]
    np.testing.assert_allclose(scorer(x).detach().numpy(), expected, rtol=1e-12)
    parameters = tuple(scorer.parameters())
    assert torch.autograd.gradcheck(lambda *p: torch.func.functional_call(scorer, dict(zip(
        ("inner", "bias", "outer"), p, strict=True)), x), parameters)  # fmt: skip
    with pytest.raises(UsageError, match="at least one feature"):
        ct.LinearScorer(0)


def test_initial_weights_leave_the_generator_of_torch_alone():
    torch.manual_seed(9)
    before = torch.get_rng_state()
    ct.ReluScorer(3, 4)
    assert torch.equal(before, torch.get_rng_state())


# -- fit ---------------------------------------------------------------------------------------------------------------
def test_linear_gain_regression_equals_the_normal_equations():
    rng = np.random.default_rng(2)
    start = np.array([0, 4, 5, 5, 9, 15])
    X, labels = rng.normal(size=(15, 3)), rng.integers(0, 4, 15).astype(float)
    weight = rng.random(5)
    risk = ct.surrogate("gain-regression", Relevance.of(labels, start), gain="2^s-1")
    scorer = ct.LinearScorer(3)
    found = ct.fit(scorer, X, risk, weight=weight, ridge=0.1, tolerance=1e-10)
    assert found.status == "converged"
    assert found.steps <= 30
    each = np.repeat(weight / np.diff(start).clip(1), np.diff(start))  # 1/(2m) Σ (α − target)²
    target = risk.target.numpy()
    theta = np.linalg.solve((X * each[:, None]).T @ X + 0.1 * np.eye(3), X.T @ (each * target))
    np.testing.assert_allclose(scorer.weight.detach().numpy(), theta, atol=1e-9)
    value = 0.5 * (each * (X @ theta - target) ** 2).sum() + 0.05 * theta @ theta
    assert found.value == pytest.approx(value, rel=1e-12)


def test_rows_say_which_features_a_node_has():
    rng = np.random.default_rng(4)
    X, prefs = votes(rng)
    batch = Batch.whole(prefs)
    rows = items_of(batch)
    risk = ct.surrogate("ranknet", batch)
    one, other = ct.LinearScorer(3), ct.LinearScorer(3)
    ct.fit(one, X, risk, rows=rows, ridge=1e-3)
    ct.fit(other, X[rows], risk, ridge=1e-3)
    np.testing.assert_array_equal(one.weight.detach().numpy(), other.weight.detach().numpy())
    direction = one.weight.detach().numpy()
    assert direction @ [1.0, -1.0, 0.5] > 0.95 * np.linalg.norm(direction) * 1.5


@pytest.mark.parametrize("phi", ["logistic", "squared-hinge", "exponential"])
def test_linear_scorers_equal_those_of_newtons_method(phi):
    X, prefs = votes(np.random.default_rng(7))
    batch = Batch.whole(prefs)
    weight = batch.judgments / len(prefs)
    scorer = ct.LinearScorer(3)
    risk = ct.surrogate("difference-graph", batch, phi=phi)
    ct.fit(scorer, X, risk, rows=items_of(batch), weight=weight, ridge=0.05, tolerance=1e-10)
    objective = surrogate("difference-graph").objective(batch, phi=phi)
    theta = fit_edges(X, objective, ridge=0.05, rows=items_of(batch), weight=weight).theta
    np.testing.assert_allclose(scorer.weight.detach().numpy(), theta, atol=1e-7)


def test_mini_batches_reach_the_minimum_of_whole_batches():
    X, prefs = votes(np.random.default_rng(5))
    batch = Batch.whole(prefs)
    X = X[items_of(batch)]
    risk = ct.surrogate("difference-graph", batch)
    whole, parts, again, other = (ct.LinearScorer(3) for _ in range(4))
    weight = np.linspace(0.0, 2.0, len(risk)) ** 2
    options = {"method": "adam", "batch": 7, "steps": 100, "rate": 0.01}
    best = ct.fit(whole, X, risk, weight=weight, ridge=0.5)
    near = ct.fit(parts, X, risk, weight=weight, ridge=0.5, seed=1, **options)
    ct.fit(again, X, risk, weight=weight, ridge=0.5, seed=1, **options)
    ct.fit(other, X, risk, weight=weight, ridge=0.5, seed=2, **options)
    assert best.status == "converged"
    assert near.status == "stopped before convergence"
    assert best.value <= near.value <= best.value * 1.005
    assert len(near.values) == near.steps == 100
    assert torch.equal(parts.weight, again.weight)  # the seed decides
    assert not torch.equal(parts.weight, other.weight)


def test_whole_batch_adam_says_when_it_converged():
    X, prefs = votes(np.random.default_rng(6))
    batch = Batch.whole(prefs)
    X = X[items_of(batch)]
    risk = ct.surrogate("ranknet", batch)
    one, other = ct.LinearScorer(3), ct.LinearScorer(3)
    ct.fit(one, X, risk, ridge=1.0)
    found = ct.fit(other, X, risk, ridge=1.0, method="adam", steps=3000, rate=0.05, tolerance=1e-6)
    assert found.status == "converged"
    torch.testing.assert_close(one.weight, other.weight, rtol=0, atol=1e-5)


def test_a_network_learns_what_a_line_cannot():
    """Relevance is |x|: no linear score orders it, ReLU does."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(200, 1))
    risk = ct.surrogate("gain-regression", Relevance.of(np.abs(X[:, 0]), np.arange(0, 201, 10)), gain="identity")
    line, net = ct.LinearScorer(1), ct.ReluScorer(1, 8, seed=0)
    bent, straight = ct.fit(net, X, risk, steps=100), ct.fit(line, X, risk)
    assert bent.value < 0.3 * straight.value
    assert np.corrcoef(net(torch.tensor(X)).detach().numpy(), np.abs(X[:, 0]))[0, 1] > 0.95


def test_biases_are_not_penalised():
    scorer = ct.ReluScorer(2, 3)
    risk = ct.GradedObjective(torch.tensor([0, 1]), torch.zeros(1, dtype=torch.float64))  # one item: always 0
    with torch.no_grad():
        scorer.bias += 5.0
    found = ct.fit(scorer, np.zeros((1, 2)), risk, ridge=2.0, steps=0)
    expected = (scorer.inner.square().sum() + scorer.outer.square().sum()).item()
    assert found.value == pytest.approx(expected)


def test_fit_refuses_what_it_cannot_do():
    risk = ct.surrogate("gain-regression", Relevance.of([1.0, 0.0]))
    scorer = ct.LinearScorer(1)
    X = np.ones((2, 1))
    for options, message in (
        ({"method": "sgd"}, "unknown method 'sgd'"),
        ({"batch": 2}, "mini-batches need method='adam'"),
        ({"weight": [1.0, 2.0]}, "there are 1 graphs"),
        ({"ridge": -1.0}, "at least 0"),
    ):
        with pytest.raises(UsageError, match=message):
            ct.fit(scorer, X, risk, **options)
    with pytest.raises(UsageError, match="3 rows of features for 2 nodes"):
        ct.fit(scorer, np.ones((3, 1)), risk)
    with pytest.raises(UsageError, match="no parameters"):
        ct.fit(torch.nn.Identity(), X, risk)
    far = ct.surrogate("ndcg-pairwise", Relevance.of([1.0, 0.0]), phi="exponential")
    with torch.no_grad():
        scorer.weight += 1e5
    with pytest.raises(ConcordantError, match=r"became (inf|nan)"):
        ct.fit(scorer, [[0.0], [1.0]], far, method="adam")


# -- the regressor -----------------------------------------------------------------------------------------------------
CHECKS = list(estimator_checks_generator(ct.TorchRegressor(hidden=3, steps=15)))


@pytest.mark.parametrize("check", [check for _, check in CHECKS], ids=lambda check: check.func.__name__)
def test_scikit_learn_accepts_the_regressor(check):
    check(ct.TorchRegressor(hidden=3, steps=15))


def data(rng):
    X = rng.normal(size=(80, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 0.0]
    return X, X @ [1.0, 0.2, -3.0] + 4.0 + rng.normal(size=80), rng.integers(0, 4, 80)


def test_the_linear_regressor_is_ridge_on_standardised_columns():
    X, y, weight = data(np.random.default_rng(1))
    found = ct.TorchRegressor(hidden=0, ridge=0.3, tolerance=1e-10).fit(X, y, sample_weight=weight)
    total = weight.sum()
    mean, mean_y = weight @ X / total, weight @ y / total
    scale, scale_y = np.sqrt(weight @ (X - mean) ** 2 / total), np.sqrt(weight @ (y - mean_y) ** 2 / total)
    ridge = Ridge(alpha=0.3 * total, fit_intercept=False)
    ridge.fit((X - mean) / scale, (y - mean_y) / scale_y, sample_weight=weight)
    expected = mean_y + scale_y * ridge.predict((X - mean) / scale)
    np.testing.assert_allclose(found.predict(X), expected, rtol=1e-8)


@pytest.mark.parametrize("hidden", [0, 5])
def test_weights_are_repetitions(hidden):
    X, y, weight = data(np.random.default_rng(2))
    weighted = ct.TorchRegressor(hidden=hidden, steps=30).fit(X, y, sample_weight=weight)
    repeated = ct.TorchRegressor(hidden=hidden, steps=30).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-4)


def test_a_regressor_can_be_cloned_pickled_and_repeated():
    X, y, _ = data(np.random.default_rng(3))
    one = ct.TorchRegressor(hidden=6, batch=16, steps=20, seed=4).fit(X, y)
    two = clone(one).fit(X, y)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).predict(X), one.predict(X))
    assert one.fit_.steps == 20
    assert one.score(X, y) > 0.5
    with pytest.raises(NotFittedError):
        clone(one).predict(X)
    for weight, message in ((np.ones(3), "80 rows"), (-np.ones(80), "80 of 80 weights are negative")):
        with pytest.raises(UsageError, match=message):
            clone(one).fit(X, y, sample_weight=weight)


def test_an_aggregation_ranker_takes_the_regressor():
    """The linear one gives what least squares gives; the network follows a curved score better."""
    rng = np.random.default_rng(9)
    queries, items = 20, 10
    X = rng.normal(size=(queries * items, 2))
    truth = np.abs(X[:, 0]) * 2 - X[:, 1]
    query = np.repeat(np.arange(queries), 150)
    i, j = query * items + rng.integers(0, items, (2, len(query)))
    keep = i != j
    i, j, query = i[keep], j[keep], query[keep]
    wins = rng.random(len(i)) < 1 / (1 + np.exp(truth[j] - truth[i]))
    prefs = Preferences.from_comparisons(np.where(wins, i, j), np.where(wins, j, i), query)
    rows = {"query": np.repeat(np.arange(queries), items), "item": np.arange(len(X)), "a": X[:, 0], "b": X[:, 1]}

    def fitted(regressor):
        return AggregationRanker(order="all", gain="identity", normalise=False, ridge=0.0, regressor=regressor).fit(
            rows, prefs
        )

    exact = fitted(None).predict(rows)
    line = fitted(ct.TorchRegressor(hidden=0, ridge=0.0)).predict(rows)
    net = fitted(ct.TorchRegressor(hidden=12, steps=80)).predict(rows)
    assert np.corrcoef(exact, line)[0, 1] > 0.999  # features are centred per query in one and over all in the other
    assert np.corrcoef(net, truth)[0, 1] > np.corrcoef(exact, truth)[0, 1] + 0.2

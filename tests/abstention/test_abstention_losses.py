"""Losses with abstention over all pairs, against the definition, SciPy's distances and scikit-learn's AUC."""

from __future__ import annotations

import math
import tracemalloc
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from concordant.abstention import near_pairs as counting
from concordant.abstention.losses import bipartite_abstention_loss, pairwise_abstention_loss, sampled_abstention_loss
from concordant.abstention.near_pairs import METHODS, near_pairs
from concordant.errors import InputError, UsageError
from concordant.kernels.near_pairs import inversions_of
from concordant.losses.metrics.pairwise import inversions

NAMES = {1: "cityblock", 2: "euclidean", "inf": "chebyshev"}
NORMS = list(NAMES)


def distance(a: Any, b: Any, norm: Any) -> float:
    differences = [abs(float(x) - float(z)) for x, z in zip(a, b, strict=True)]
    if norm == "inf":
        return max(differences)
    added = reduce(add, differences if norm == 1 else [d * d for d in differences])  # not by sum, which rounds once
    return added if norm == 1 else math.sqrt(added)


def by_definition(scores: Any, X: Any, y: Any, gamma: float, norm: Any) -> tuple[int, int, int, int]:
    """Pairs, near, misranked, both: method.md §8, loop by loop."""
    pairs = near = misranked = both = 0
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] == y[j]:
                continue
            order = 1 if y[j] > y[i] else -1
            sign = 1 if scores[j] - scores[i] >= 0 else -1
            wrong, close = order != sign, distance(X[i], X[j], norm) <= gamma
            pairs, near, misranked, both = pairs + 1, near + close, misranked + wrong, both + (wrong and close)
    return pairs, near, misranked, both


def numbers_of(found: Any) -> tuple[int, int, int, int]:
    return found.pairs, found.near, found.misranked, found.misranked_near


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, Any, Any, float, Any]:
    """Points on a coarse grid or anywhere, labels and scores with ties, γ often one of the distances."""
    n, dimensions = draw(st.integers(2, 25)), draw(st.sampled_from([1, 2, 3, 5, 40]))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    kind = draw(st.sampled_from(["grid", "tenths", "anywhere", "far"]))
    X = rng.integers(0, 4, (n, dimensions)) * {"tenths": 0.1, "grid": 1.0}.get(kind, 0.0)
    X += {"anywhere": rng.random(X.shape), "far": rng.standard_cauchy(X.shape) ** 3}.get(kind, 0.0)
    y = rng.integers(0, draw(st.integers(2, 6)), n) - rng.integers(0, 2) * 0.5
    y[:2] = 0, 1
    scores = rng.integers(0, draw(st.integers(1, 30)), n) / 7
    norm = draw(st.sampled_from(NORMS))
    i, j = rng.integers(0, n, 2)
    gamma = draw(st.sampled_from([distance(X[i], X[j], norm), 0.0, 0.1, 0.30000000000000004, 1.0, 5.0]))
    return scores, X, y, gamma, norm


@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from(["auto", *METHODS]))
def test_counts_are_those_of_the_definition(problem: Any, method: str) -> None:
    scores, X, y, gamma, norm = problem
    found = near_pairs(X, y, scores, gamma=gamma, norm=norm, method=method)
    expected = by_definition(scores, X, y, gamma, norm)
    assert numbers_of(found) == expected
    pairs, near, misranked, both = expected
    loss = pairwise_abstention_loss(scores, X, y, gamma=gamma, cost=0.3, norm=norm)
    assert loss == pytest.approx((misranked - both + 0.3 * near) / pairs, abs=1e-15)
    assert found.near_share == near / pairs


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("n", "dimensions"), [(1300, 1), (500, 2), (700, 3), (400, 7), (300, 30), (200, 700)])
@pytest.mark.parametrize("kind", ["uniform", "integers", "heavy tails"])
def test_compiled_ways_agree_with_scipy(kind: str, n: int, dimensions: int, norm: Any) -> None:
    rng = np.random.default_rng(n + dimensions)
    X: Any = {
        "uniform": lambda: rng.random((n, dimensions)),
        "integers": lambda: rng.integers(0, 5, (n, dimensions)).astype(float),
        "heavy tails": lambda: rng.standard_cauchy((n, dimensions)) * 10 ** rng.normal(size=dimensions),
    }[kind]()
    y, scores = rng.integers(0, 5, n), rng.integers(0, 40, n)
    apart = cdist(X, X, NAMES[norm])
    gammas = [
        float(g) for g in np.sort(apart.ravel())[(len(y) + (n * n - n - 1) * np.array([0.9, 0, 0.01, 1])).astype(int)]
    ]
    different = y[:, None] != y
    wrong = different & ((y > y[:, None]) != (scores >= scores[:, None]))
    for method in ("cells", "tiles"):
        found = near_pairs(X, y, scores, gamma=[*gammas, 0], norm=norm, method=method)
        for t, gamma in enumerate([*gammas, 0]):
            assert found.near[t] == (different & (apart <= gamma)).sum(), (method, gamma)
            assert found.misranked_near[t] == (wrong & (apart <= gamma)).sum(), (method, gamma)
        for t in (0, 2):
            single = near_pairs(X, y, scores, gamma=gammas[t], norm=norm, method=method)
            assert (single.near, single.misranked_near) == (found.near[t], found.misranked_near[t])
            assert single.misranked == wrong.sum()


@pytest.mark.parametrize("method", METHODS)
def test_distances_at_the_threshold_are_near(method: str) -> None:
    X = [[0.0, 0.0], [3.0, 4.0], [100.0, 0.0]]
    for norm, at in ((2, 5.0), (1, 7.0), ("inf", 4.0)):
        below = math.nextafter(at, 0)
        found = near_pairs(X, [0, 1, 2], [0, 0, 0], gamma=[at, below], norm=norm, method=method)
        assert found.near.tolist() == [2, 0]
    grid = np.arange(200)[:, None] * 0.1  # differences of neighbours are 0.1, some a little more, some less
    expected = 2 * int(((grid[1:] - grid[:-1]) <= 0.1).sum())
    assert near_pairs(grid, range(200), range(200), gamma=0.1, norm=1, method=method).near == expected < 2 * 199


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("norm", NORMS)
def test_extreme_values(method: str, norm: Any) -> None:
    X = np.array([[0, 1e-200], [0, 0], [1e308, 0], [-1e308, 0], [1e-12, 0], [1.0, 1.0]] * 40)
    y = np.arange(len(X))
    gammas = [0.0, 1e-11, 1.5, 1e149]
    found = near_pairs(X, y, y, gamma=gammas, norm=norm, method=method)
    apart = np.array([[distance(a, b, norm if max(a) < 1e300 > max(b) else "inf") for b in X] for a in X])
    exactly = np.array([[distance(a, b, "inf") for b in X] for a in X])
    different = ~np.eye(len(X), dtype=bool)
    expected = [((exactly if gamma == 0 and norm != 2 else apart) <= gamma)[different].sum() for gamma in gammas]
    assert found.near.tolist() == expected


@pytest.mark.parametrize("norm", NORMS)
def test_gamma_zero_is_for_equal_points_in_every_norm(norm: Any) -> None:
    X = np.repeat([[0.0], [1e-300], [2.0]], 2, axis=0)
    for method in METHODS:
        assert near_pairs(X, range(6), range(6), gamma=0, norm=norm, method=method).near == 6


def test_norms_by_other_names() -> None:
    X, y = [[0.0, 0.0], [3.0, 4.0]], [0, 1]
    found = [near_pairs(X, y, y, gamma=6, norm=norm).near for norm in ("1", "2", 1, 2, 2.0, np.inf, "Inf", math.inf)]
    assert found == [0, 2, 0, 2, 2, 2, 2, 2]


# -- laws ------------------------------------------------------------------------------------------------------------
def test_bipartite_loss_is_one_less_auc() -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 20_000)
    scores = np.round(y + rng.normal(size=len(y)), 1)  # with ties
    X = np.arange(len(y), dtype=float)[:, None]
    loss = bipartite_abstention_loss(scores, X, np.where(y, 7.0, -1.0), gamma=0, cost=0.5)
    assert loss == pytest.approx(1 - roc_auc_score(y, scores), abs=1e-12)
    assert loss == pairwise_abstention_loss(scores, X, y, gamma=0, cost=0.1)


def test_loss_is_a_line_in_the_cost() -> None:
    """The law by which the paper's table can be read: loss = A + c · ρ, whatever the scores."""
    X, y = load_digits(return_X_y=True)
    scores = X @ np.random.default_rng(0).normal(size=X.shape[1])
    gammas = [0.0, 8.0, 12.0, 14.0, 16.0]
    found = near_pairs(X, y, scores, gamma=gammas)
    for cost in (0.1, 0.3, 0.5):
        losses = pairwise_abstention_loss(scores, X, y, gamma=gammas, cost=cost)
        np.testing.assert_allclose(losses, found.loss(0) + cost * found.near_share, rtol=1e-12)
    assert found.near[-1] == found.pairs and found.loss(0)[-1] == 0
    apart = cdist(X, X, "chebyshev")
    assert found.near.tolist() == [((apart <= gamma) & (y[:, None] != y)).sum() for gamma in gammas]


@pytest.mark.parametrize("method", ["cells", "tiles"])
def test_order_and_place_do_not_matter(method: str) -> None:
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 64, (1200, 3)) / 8, rng.integers(0, 9, 1200)
    scores = rng.integers(0, 99, 1200)
    shuffle = rng.permutation(1200)
    first = near_pairs(X, y, scores, gamma=1.5, norm=2, method=method)
    second = near_pairs(-4 * X[shuffle][:, ::-1] + 32, 3 * y[shuffle], scores[shuffle], gamma=6, norm=2, method=method)
    assert numbers_of(first) == numbers_of(second)
    reverse = near_pairs(X, -y, -scores, gamma=1.5, norm=2, method=method)
    assert numbers_of(first) == numbers_of(reverse)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=80))
def test_inversions_have_a_twin(level: list[int]) -> None:
    values = np.asarray(level, np.int64)
    plain = inversions(np.zeros(len(values), np.int64), values, None, 1)[0]
    assert inversions_of(values, 41) == plain
    assert plain == sum(a > b for i, a in enumerate(level) for b in level[i + 1 :])


def test_near_pairs_are_not_listed() -> None:
    """All 8·10^6 pairs near: a list would take 128 MB."""
    X = np.random.default_rng(0).random((4000, 3))
    y = np.arange(4000)
    for method in METHODS:
        near_pairs(X[:50], y[:50], y[:50], gamma=2, method=method)  # compiles
        tracemalloc.start()
        found = near_pairs(X, y, -y, gamma=2, method=method)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.near == found.misranked_near == 4000 * 3999
        assert peak < 64e6, method


def test_the_way_is_chosen_by_size_and_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    monkeypatch.setattr(counting, "FEW", 1000)

    def way(X: Any, gamma: float) -> str:
        return near_pairs(X, range(len(X)), range(len(X)), gamma=gamma).method

    wide = rng.random((300, 100))
    assert way(rng.random((10, 3)), 0.1) == "plain"
    assert way(rng.random((300, 16)), 0.9) == "cells"
    assert way(wide, 0.9) == "tiles"
    assert way(wide, 0.05) == "cells"


# -- a sample of pairs -----------------------------------------------------------------------------------------------
def test_sample_agrees_with_all_pairs() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.random((60, 2)), rng.choice([0, 0, 0, 0, 1, 2.5], 60)
    scores = np.round(y + rng.normal(size=60))
    options: dict[str, Any] = {"gamma": 0.3, "cost": 0.2, "norm": 2}
    exact = pairwise_abstention_loss(scores, X, y, **options)
    share = near_pairs(X, y, scores, gamma=0.3, norm=2).near_share
    found = sampled_abstention_loss(scores, X, y, pairs=400_000, level=1e-6, **options)
    assert found.low < exact < found.high
    assert abs(found.loss - exact) < 4 * 0.5 / math.sqrt(400_000) and abs(found.near_share - share) < 0.004
    assert found.high - found.loss == pytest.approx(math.sqrt(math.log(2e6) / 800_000))
    assert found == sampled_abstention_loss(scores, X, y, pairs=400_000, level=1e-6, **options)
    assert found != sampled_abstention_loss(scores, X, y, pairs=400_000, level=1e-6, seed=1, **options)
    assert sampled_abstention_loss(y, X, y, gamma=0, cost=0, pairs=50).loss == 0
    assert sampled_abstention_loss(0 * y, X, y, gamma=0, cost=0, pairs=100_000).loss == pytest.approx(0.5, abs=0.01)


# -- bad input -------------------------------------------------------------------------------------------------------
GOOD: dict[str, Any] = {"X": [[0.0], [1.0], [2.0]], "y": [0, 1, 1], "scores": [0.1, 0.2, 0.3], "gamma": 0.5}


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"gamma": -0.1}, UsageError, "≥ 0"),
        ({"gamma": math.nan}, UsageError, "finite"),
        ({"gamma": [0.1, math.inf]}, UsageError, "finite"),
        ({"gamma": []}, UsageError, "a list of such"),
        ({"gamma": "auto"}, UsageError, "a real number or several, not str"),
        ({"gamma": [[1.0]]}, UsageError, "a list of such"),
        ({"gamma": 1e-160, "norm": 2}, UsageError, "scale the features"),
        ({"norm": 3}, UsageError, "one of 1, 2, inf, not 3"),
        ({"norm": "l2"}, UsageError, "'l2'"),
        ({"norm": [2]}, UsageError, "norm must be"),
        ({"norm": True}, UsageError, "not True"),
        ({"method": "tile"}, UsageError, "did you mean 'tiles'"),
        ({"X": [[0.0], [math.nan], [math.inf]]}, InputError, "not finite at 2 points: 1, 2"),
        ({"X": [0.0, 1.0, 2.0]}, InputError, r"not \(3,\)"),
        ({"X": np.zeros((3, 0))}, InputError, "dimensions ≥ 1"),
        ({"X": [["a"], ["b"], ["c"]]}, InputError, "real numbers"),
        ({"scores": [1.0, 2.0]}, InputError, "scores 2 numbers"),
        ({"scores": [1.0, 2.0, math.nan]}, InputError, "not finite at 1 point"),
        ({"y": ["low", "low", "high"]}, InputError, "real numbers"),
        ({"y": [4, 4, 4]}, InputError, "all 3 labels are 4"),
        ({"X": np.zeros((0, 2)), "y": np.zeros(0), "scores": np.zeros(0)}, InputError, "no points"),
        ({"y": [0, 1, (1 << 53) + 1]}, InputError, "2\\^53"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        near_pairs(**GOOD | change)


@pytest.mark.parametrize("cost", [-0.1, 1.1, math.nan, "0.1", None])
def test_costs_out_of_range_are_refused(cost: Any) -> None:
    for loss in (pairwise_abstention_loss, bipartite_abstention_loss):
        with pytest.raises(UsageError, match="0 … 1"):
            loss(**GOOD, cost=cost)


def test_bipartite_needs_two_classes() -> None:
    for y, says in (([1, 1, 1], "all 3 labels are 1"), ([0, 1, 2], "y has 3: 0.0, 1.0, 2.0")):
        with pytest.raises(InputError, match=says):
            bipartite_abstention_loss(**GOOD | {"y": y}, cost=0.1)


@pytest.mark.parametrize(
    ("change", "says"), [({"pairs": 0}, "at least 1"), ({"level": 1.0}, "level"), ({"gamma": [0, 1]}, "one gamma")]
)
def test_samples_refuse(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        sampled_abstention_loss(**GOOD | {"cost": 0.1, "pairs": 10} | change)


def test_unscaled_features_are_remarked() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((50, 3))
    assert not near_pairs(X, range(50), range(50), gamma=0.1).remark
    found = near_pairs(X * [1, 5000, 1], range(50), range(50), gamma=0.1)
    assert found.remark.startswith("column 1 of X spreads") and "scale X" in found.remark
    denormal = np.append(np.full((49, 1), 5e-324), [[1e-150]], axis=0) * rng.integers(1, 9, (50, 3))
    found = near_pairs(np.append(denormal, rng.random((50, 1)) * 1e290, axis=1), range(50), range(50), gamma=0)
    assert found.remark.startswith("column 3 of X spreads inf times")


@pytest.mark.parametrize("method", METHODS)
def test_denormal_features_and_no_spread_at_all(method: str) -> None:
    X = np.array([[0.0], [-0.0], [5e-324], [1e-323]])
    found = near_pairs(X, range(4), range(4), gamma=[0.0, 5e-324], norm=1, method=method)
    assert found.near.tolist() == [2, 8]  # the first two are equal
    assert near_pairs(X[:2], [0, 1], [0, 0], gamma=0, method=method).near == 2

"""H(ε) over classes: closed forms, grids of populations that no bound may exceed, witnesses checked anew, refusals."""

import itertools

import numpy as np
import pytest

import concordant as cc
from concordant.auditing.counterexamples import find_counterexample
from concordant.auditing.polytopes import corners, simplices
from concordant.auditing.small_populations import every_pair
from concordant.auditing.suboptimality import suboptimality
from concordant.auditing.uniform_suboptimality import transfer, uniform_suboptimality
from concordant.errors import UsageError
from concordant.losses.objective import Population
from seeds import seed


def people(table):
    winner, loser = np.nonzero(table)
    return Population(np.array([0, len(table)]), winner, loser, np.ones(len(winner)), table[winner, loser])


def low_noise(net):
    """Definition 4, straight."""
    triples = itertools.permutations(range(len(net)), 3)
    return all(net[i, k] >= net[i, j] + net[j, k] - 1e-9 for i, j, k in triples if net[i, j] > 1e-9 < net[j, k])


def random_tables(items, number, rng, within):
    """Populations of single comparisons of the class."""
    while number:
        table = np.zeros((items, items))
        table[tuple(every_pair(items).T)] = rng.dirichlet(np.full(items * (items - 1), rng.choice([0.2, 0.5, 1.0])))
        net = table - table.T
        ordered = any(
            (net[np.ix_(p, p)][np.triu_indices(items, 1)] >= 0).all() for p in itertools.permutations(range(items))
        )
        if low_noise(net) if within == "low noise" else ordered:
            number -= 1
            yield table


@pytest.mark.parametrize(
    ("name", "within", "epsilon", "items", "budget"),
    [
        ("difference-graph", "acyclic", 0.15, 3, 1),
        ("difference-graph:hinge", "low noise", 0.15, 3, 1),
        ("linear", "low noise", 0.1, 3, 1),
        ("ranksvm", "low noise", 0.3, 3, 3000),
        ("ranknet", "low noise", 0.35, 3, 3000),
        ("ranknet", "acyclic", 0.2, 2, 500),
    ],
)
def test_no_population_does_better(name, within, epsilon, items, budget):
    found = uniform_suboptimality(name, epsilon, within=within, items=items, budget=budget)
    assert found.lower <= found.upper
    for table in random_tables(items, 40, np.random.default_rng(seed(1)), within):
        assert suboptimality(people(table), name).at(epsilon).lower >= found.lower - 1e-7
    shown = suboptimality(people(found.population), name)
    assert shown.at(epsilon - 1e-7).upper == pytest.approx(found.upper, abs=1e-6)
    net = found.population - found.population.T
    assert found.population.sum() == pytest.approx(1)
    assert low_noise(net) or within != "low noise"


def test_two_items_are_binary_classification():
    """log 2 − H(p) at p = (1 + ε)/2, |ε| for the hinge (Bartlett, Jordan and McAuliffe 2006), ε²/(2ν) for linear."""
    p = 0.6
    known = {"ranknet": np.log(2) + p * np.log(p) + (1 - p) * np.log(1 - p), "ranksvm": 0.2,
             "rankboost": 1 - 2 * np.sqrt(p * (1 - p)), "ranksvm:squared-hinge": 0.04, "linear": 0.02}  # fmt: skip
    for name, right in known.items():
        found = uniform_suboptimality(name, 0.2, items=2, tolerance=1e-5)
        assert found.lower - 1e-9 <= right <= found.upper + 1e-9
        assert found.upper - found.lower < 2e-5


def test_linear_in_low_noise():
    """9/32 ε²/ν at d_12 = d_23 = ε/4, d_13 = ε/2, all three contradicted by a tie of all."""
    for nu, epsilon in ((2.0, 0.3),):
        found = uniform_suboptimality("linear", epsilon, nu=nu)
        assert found.upper == pytest.approx(9 / 32 * epsilon**2 / nu, rel=1e-6)
        assert found.lower == pytest.approx(found.upper, rel=1e-6)
        net = found.population - found.population.T
        assert net[[0, 1, 0], [1, 2, 2]] == pytest.approx(np.array([0.25, 0.25, 0.5]) * epsilon, abs=1e-4)
    assert uniform_suboptimality("linear", 0.1, within="acyclic").upper < 1e-12  # ICML: low noise is needed


def test_inconsistent_in_low_noise():
    """Theorems 2 and 3: H(ε) = 0 up to the largest regret, (3 − √6)/6 for the logistic loss."""
    for name in ("ranknet", "ranksvm"):
        found = uniform_suboptimality(name, 0.09)
        assert (found.lower, found.upper, found.method) == (0.0, 0.0, "a witness")
        assert suboptimality(people(found.population), name).hidden(1e-9).lower >= 0.09 - 1e-6
    assert find_counterexample("ranknet").largest == pytest.approx((3 - 6**0.5) / 6, abs=1e-5)


def test_all_populations():
    """No uniform bound over circles, for any convex surrogate (Proposition 3 for many items)."""
    for name, items in (("difference-graph", 3), ("linear", 3), ("ranknet", 5), ("ranksvm", 4)):
        found = uniform_suboptimality(name, 0.6, within="any", items=items)
        assert (found.lower, found.upper) == (0.0, 0.0)
        assert suboptimality(people(found.population), name).hidden(0.0).lower == pytest.approx(2 / 3)
    wide = uniform_suboptimality("ranknet", 0.9, within="any")
    assert wide.lower == 0
    assert 0 < wide.upper <= np.log(2) + 1e-12


@pytest.mark.parametrize(("name", "epsilon", "budget"), [("gain-regression", 0.06, 1), ("ndcg-pairwise", 0.2, 20_000)])
def test_laws_of_scores(name, epsilon, budget):
    found = uniform_suboptimality(name, epsilon, budget=budget, tolerance=2e-3)
    assert 0 < found.lower <= found.upper
    assert found.upper - found.lower < 3e-3
    rng = np.random.default_rng(seed(2))
    for _ in range(40):
        law = rng.normal(scale=rng.choice([0.3, 1, 3]), size=(rng.integers(1, 4), 3))
        assert suboptimality(law, name).at(epsilon).lower >= found.lower - 1e-9


def test_gain_regression_by_grid():
    """Least over a fine grid of gains and all orders of the squared distance to the cone where they are reversed."""
    inverse = 1 / np.log2([2, 3, 4])
    epsilon, best = 0.1, np.inf
    grid = np.linspace(0, 1, 41)
    for g in itertools.product(grid, repeat=3):
        g = np.array(g)
        if not (g[0] >= g[1] >= g[2] and g.sum() >= 1 - 1e-9 and g @ inverse <= 1 + 1e-9):
            continue
        for tie in ((0, 1), (1, 2), (0, 1, 2)):
            alpha = g.copy()
            alpha[list(tie)] = g[list(tie)].mean()
            turned = g.copy()
            turned[list(tie)] = g[list(tie)][::-1]
            if (g - turned) @ inverse >= epsilon - 1e-9:
                best = min(best, np.sum((alpha - g) ** 2) / 6)
    found = uniform_suboptimality("gain-regression", epsilon)
    assert found.lower <= best + 1e-9
    assert found.upper == pytest.approx(best, rel=0.1)


def test_polytopes():
    points = corners(
        np.vstack((np.eye(3), -np.eye(3))), np.append(np.zeros(3), -np.ones(3)), np.zeros((0, 3)), np.zeros(0)
    )
    assert len(points) == 8
    rows, right = np.vstack((np.eye(3), -np.eye(3))), np.append(np.zeros(3), -np.ones(3))
    parts = simplices(points, np.abs(points @ rows.T - right) < 1e-9)
    volumes = [abs(np.linalg.det(points[list(one[1:])] - points[one[0]])) / 6 for one in parts]
    assert sum(volumes) == pytest.approx(1)
    inside = np.random.default_rng(seed(3)).uniform(size=(50, 3))
    for point in inside:
        share = [np.linalg.solve(np.vstack((points[list(one)].T, np.ones(4))), np.append(point, 1)) for one in parts]
        assert any((one >= -1e-9).all() for one in share)


def test_more_than_there_is_to_lose():
    for name in ("difference-graph", "linear", "ranknet"):
        assert uniform_suboptimality(name, 1.5).lower == np.inf
    assert uniform_suboptimality("gain-regression", 0.99).lower == np.inf
    assert uniform_suboptimality("ranknet", 0.0).upper == 0.0


def test_transfer():
    """ζ of Theorem 1: the least concave bound of what a surrogate excess may hide."""
    assert transfer("difference-graph", 0.1, within="acyclic") == pytest.approx((0.1 / np.log(2),) * 2)
    lower, upper = transfer(
        "linear", 0.001, items=2, grid=[*np.arange(0.01, 0.09, 0.01), 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1]
    )
    right = np.sqrt(2 * 0.001)  # H(ε) = ε²/2 is convex
    assert lower - 1e-9 <= right <= upper + 1e-9
    assert upper - lower < 0.25 * right
    assert transfer("ranknet", 0.0, grid=[0.09])[0] >= 0.09
    assert transfer("linear", 0.0, items=2)[1] <= 0.02 + 1e-9


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("err-pairwise", {}, "ERR is not linear"),
        ("ranknt", {}, "unknown surrogate"),
        ("ranknet", {"within": "quiet"}, "within must be"),
        ("ranknet", {"items": 4}, "up to 3 items"),
        ("linear", {"items": 5}, "up to 4 items"),
        ("linear", {"nu": -1.0}, "nu must be positive"),
        ("difference-graph", {"nu": 1.0}, "no option 'nu'"),
        ("gain-regression", {"normalised": False}, "normalised"),
        ("ranknet", {"items": 1}, "items"),
        ("ranknet", {"tolerance": -1.0}, "tolerance must be"),
        ("ranknet", {"budget": 0}, "budget"),
    ],
)
def test_refused(name, options, said):
    with pytest.raises(UsageError, match=said):
        uniform_suboptimality(name, 0.1, **options)
    with pytest.raises(UsageError, match="epsilon must be"):
        cc.uniform_suboptimality("ranknet", np.nan)

"""Consistency bounds, calibration functions, minimisability gaps and certificates against brute force.

The oracle is the definition: conditional risks over a grid of conditional probabilities, minimised by search over the
scores a class can give, orders by their definition. Nothing of the closed forms is used.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar

from concordant.abstention.bounds import calibration, consistency_bound, sharp_bound
from concordant.abstention.certificates import certificate
from concordant.abstention.gaps import minimisability_gaps
from concordant.abstention.pairs import JudgedPairs
from concordant.abstention.points import ScorerClass
from concordant.errors import InputError, UsageError

PHI = {
    "hinge": lambda t: np.maximum(0.0, 1.0 - t),
    "exponential": lambda t: np.exp(-t),
    "sigmoid": lambda t: 1.0 - np.tanh(1.3 * t),
}
K = 1.3
REACHES = (0.05, 0.4, 1.0, 1.7, 4.0)
SETTINGS = ("general", "bipartite")


def grid_risk(phi, a, b, s):
    """Conditional risk a Φ(s) + b Φ(−s) on a grid of s, last axis."""
    return a[..., None] * PHI[phi](s) + b[..., None] * PHI[phi](-s)


def weights(setting, points=121):
    """Weights (a, b) of the two orders for every conditional probability on a grid."""
    eta = np.linspace(0.0, 1.0, points)
    if setting == "general":
        return eta, 1.0 - eta
    one, other = np.meshgrid(eta, eta)
    return (one * (1 - other)).ravel(), (other * (1 - one)).ravel()


def misranking_gap(setting, a, b, s):
    """Conditional misranking risk at scores that differ by s, less the least one; s > 0 goes with the weight a."""
    a, b = a[:, None], b[:, None]
    at_zero = b if setting == "general" else (a + b) / 2  # sign(0) = +1; bipartite ties count one half
    return np.where(s > 0, b, np.where(s < 0, a, at_zero)) - np.minimum(a, b)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("phi", PHI)
@pytest.mark.parametrize("w", REACHES)
def test_bounds_hold_for_every_pair_and_are_tight_somewhere(phi, setting, w):
    options = {"phi": phi, "W": w / 0.5, "gamma": 0.5, "setting": setting, "k": K}
    a, b = weights(setting)
    slack = []
    for farther in (1.0, 1.6):  # a far pair is farther than gamma
        far = w * farther
        s = np.linspace(-far, far, 401 if setting == "bipartite" else 8001)
        s = np.union1d(s, [max(-far, -1.0), min(far, 1.0)])  # with the corners of the hinge
        risk = grid_risk(phi, a, b, s)
        surrogate = risk - risk.min(-1, keepdims=True)
        target = misranking_gap(setting, a, b, s)
        for bound in (consistency_bound, sharp_bound):
            room = bound(np.maximum(surrogate, 0.0), **options) - target
            assert room.min() > -2e-3 * max(1.0, 1 / w)  # the grid of s misses the minimum by a little
            if farther == 1.0 and bound is sharp_bound:
                slack.append(np.abs(room[target > 0.05]).min())
    assert min(slack) < 0.03 * max(1.0, w)  # s = 0 from the wrong side, which the grid of s comes near to


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("phi", PHI)
@pytest.mark.parametrize("w", REACHES)
def test_calibration_is_the_least_gap_over_all_conditional_probabilities(phi, setting, w):
    for t in (0.0, 0.03, 0.2, 0.45, 0.7, 0.9, 1.0):
        if setting == "general":
            pairs = [((1 + t) / 2, (1 - t) / 2)]
        else:  # η − η' = t
            other = np.linspace(0, 1 - t, 41)
            pairs = list(zip((other + t) * (1 - other), other * (1 - other - t), strict=True))
        least = math.inf
        for a, b in pairs:

            def risk(s, a=a, b=b):
                return float(a * PHI[phi](s) + b * PHI[phi](-s))

            found = minimize_scalar(risk, bounds=(-w, w), method="bounded", options={"xatol": 1e-10})
            best = min(found.fun, risk(w), risk(min(w, 1.0)))
            wrong = min(risk(s) for s in np.linspace(-w, 0.0, 21))  # the order of the rarer judgment; 0 is its limit
            least = min(least, wrong - best)
        value = calibration(t, phi=phi, W=w / 0.25, gamma=0.25, setting=setting, k=K).item()
        assert value == pytest.approx(least, abs=2e-9)


def test_minorant_is_the_convex_hull_of_the_bipartite_exponential():
    t = np.linspace(0, 1, 401)
    for w in REACHES:
        options = {"phi": "exponential", "W": w, "gamma": 1.0, "setting": "bipartite"}
        exact, convex = calibration(t, **options), calibration(t, convex=True, **options)
        for place in range(0, 401, 25):  # the hull at a point: the lowest mean of two values whose mean is there
            hull = linprog(exact, A_eq=[t, np.ones(401)], b_eq=[t[place], 1.0]).fun
            assert convex[place] == pytest.approx(hull, abs=2e-5)
        assert (convex <= exact + 1e-15).all()
    assert not np.allclose(exact, convex)


def test_sharp_bound_is_the_inverse():
    t = np.linspace(0, 1, 101)
    for phi, setting, w in itertools.product(PHI, SETTINGS, (*REACHES, 30.0, math.inf)):
        options = {"phi": phi, "W": w, "gamma": 1.0, "setting": setting, "k": K}
        gap = calibration(t, convex=True, **options)
        back = sharp_bound(gap, **options)
        assert calibration(back, convex=True, **options) == pytest.approx(gap, abs=1e-12)
        assert back == pytest.approx(t, abs=2e-6)
        assert sharp_bound(100.0, **options) == 1.0
        if (phi, setting) != ("exponential", "bipartite"):
            assert (back <= consistency_bound(gap, **options) + 1e-9).all()


def test_published_bipartite_bound_fails_for_a_mean_over_pairs_and_the_sharp_one_does_not():
    """A quarter of the far pairs at target gap t*, the rest at 1: their mean lies on the convex minorant."""
    options = {"phi": "exponential", "W": 4.0, "gamma": 1.0, "setting": "bipartite"}
    target, share = np.array([1 - math.exp(-2.0), 1.0]), np.array([0.25, 0.75])
    surrogate = calibration(target, **options)
    assert (consistency_bound(surrogate, **options) >= target - 1e-12).all()
    assert consistency_bound(share @ surrogate, **options) < share @ target - 0.005
    assert sharp_bound(share @ surrogate, **options) == pytest.approx(share @ target)


@pytest.mark.parametrize(("W", "Lambda", "B"), [(1.0, 2.0, 0.1), (1.0, 2.0, 5.0), (2.0, 0.5, 0.3)])
def test_reach_of_a_network_is_the_least_over_places_of_the_pair(W, Lambda, B):
    """One input, one neuron (the extreme points of ‖u‖₁ ≤ Λ): all w, b and midpoints on a grid."""
    d = 0.7
    w, b, middle = np.linspace(-W, W, 81), np.linspace(-B, B, 81), np.linspace(-2, 2, 41)

    def neuron(x):
        return np.maximum(0, w[:, None] * x + b)

    reached = [Lambda * np.abs(neuron(m + d / 2) - neuron(m - d / 2)).max() for m in middle]
    scorers = ScorerClass(W, Lambda, B)
    assert min(reached) == pytest.approx(scorers.reach(d).item(), rel=1e-9)
    assert max(reached) == pytest.approx(scorers.most(d).item(), rel=1e-9)
    t = np.array([0.01, 0.3])
    network = consistency_bound(t, phi="exponential", W=W, gamma=d, Lambda=Lambda, B=B)
    assert network == pytest.approx(consistency_bound(t, phi="exponential", W=min(reached), gamma=1.0))


def test_formulas_of_the_paper():
    t = np.array([[0.0, 0.01], [0.2, 1.5]])
    for w in REACHES:
        e, f = math.exp(2 * w), math.exp(w)
        expected = {
            ("hinge", "general"): t / min(w, 1),
            ("exponential", "general"): np.maximum(np.sqrt(2 * t), 2 * t * (e + 1) / (e - 1)),
            ("exponential", "bipartite"): np.maximum(np.sqrt(t), t * (f + 1) / (f - 1)),
            ("sigmoid", "bipartite"): t / math.tanh(K * w),
        }
        for (phi, setting), values in expected.items():
            found = consistency_bound(t, phi=phi, W=w / 2, gamma=2.0, setting=setting, k=K)
            assert found.shape == t.shape
            assert found == pytest.approx(values)


def test_without_abstention_the_bound_says_nothing():
    for phi, setting in itertools.product(PHI, SETTINGS):
        assert np.isinf(consistency_bound([0.0, 1e-9], phi=phi, W=1.0, gamma=0.0, setting=setting)).all()
        assert sharp_bound([0.0, 1e-9], phi=phi, W=1.0, gamma=0.0, setting=setting).tolist() == [1.0, 1.0]
        assert not calibration([0.0, 1.0], phi=phi, W=1.0, gamma=0.0, setting=setting).any()


@pytest.mark.parametrize("call", [consistency_bound, calibration, sharp_bound])
def test_bad_options_are_named(call):
    good = {"phi": "hinge", "W": 1.0, "gamma": 0.5}
    for t in (-0.1, [0.2, math.nan]):
        with pytest.raises(UsageError, match=r"t|gap"):
            call(t, **good)
    for wrong, said in [
        ({"phi": "exponentail"}, "did you mean 'exponential'"),
        ({"W": 0.0}, "W"),
        ({"W": math.nan}, "W"),
        ({"gamma": -1.0}, "gamma"),
        ({"gamma": math.inf}, "gamma"),
        ({"gamma": "auto"}, "gamma must be a number that is not negative, not 'auto'"),
        ({"W": "1"}, "W, the bound of the norm of w, must be positive, not '1'"),
        ({"setting": "pairs"}, "setting"),
        ({"Lambda": 1.0}, "needs B"),
        ({"Lambda": -1.0, "B": 1.0}, "Lambda"),
        ({"Lambda": 1.0, "B": -1.0}, "B"),
        ({"k": 0.0}, "k"),
    ]:
        with pytest.raises(UsageError, match=said):
            call(0.2, **{**good, **wrong})
    with pytest.raises(UsageError, match=r"\[0, 1\]"):
        calibration(1.2, **good)


def plain_sums(h, X, judgments, W, gamma, phi):
    """Means over judgments (x, x', y) by their definition, with probabilities by counting; ℓ∞."""
    votes = {}
    for i, j, y in judgments:
        votes.setdefault((i, j), []).append(y)
        votes.setdefault((j, i), []).append(-y)
    sums = np.zeros(4)
    for (i, j), ys in votes.items():  # both directions: ties of scores count half
        d = np.abs(X[i] - X[j]).max()
        if d <= gamma:
            continue
        eta, lead = np.mean(np.array(ys) == 1), h[j] - h[i]
        s = np.linspace(-W * d, W * d, 20001)
        risk = eta * PHI[phi](s) + (1 - eta) * PHI[phi](-s)
        says = 1 if lead >= 0 else -1
        here = [eta * PHI[phi](lead) + (1 - eta) * PHI[phi](-lead), risk.min(), np.mean(np.array(ys) != says)]
        sums += len(ys) * np.array([*here, min(eta, 1 - eta)])
    return sums / (2 * len(judgments))


@pytest.fixture
def judged():
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 1, (9, 2))
    one, other = rng.integers(0, 9, 150), rng.integers(0, 9, 150)
    keep = one != other
    one, other = one[keep], other[keep]
    y = np.where(rng.random(len(one)) < 1 / (1 + np.exp(-4 * (X[other, 0] - X[one, 0]))), 1, -1)
    return X, one, other, y


@pytest.mark.parametrize("phi", PHI)
def test_certificate_bounds_the_excess_counted_by_hand(judged, phi):
    X, one, other, y = judged
    pairs = JudgedPairs.of(9, one, other, y)
    rng = np.random.default_rng(1)
    for trial in range(8):
        w = rng.normal(size=2) * (trial != 0)  # at first all scores are equal
        W, gamma = max(np.abs(w).sum() * 1.01, 0.5), 0.15
        h = X @ w
        surrogate, least, misranked, unavoidable = plain_sums(
            h, X, list(zip(one, other, y, strict=True)), W, gamma, phi
        )
        found = certificate(h, X, pairs, phi=phi, W=W, gamma=gamma, k=K)
        assert found.surrogate_loss == pytest.approx(surrogate)
        assert found.surrogate_least == pytest.approx(least, abs=1e-5)
        assert found.excess == pytest.approx(misranked - unavoidable)
        assert found.excess <= found.bound + 1e-12
        assert found.bound <= consistency_bound(found.gap, phi=phi, W=W, gamma=gamma, k=K) + 1e-12
        rest = sharp_bound(found.gap / found.far_share, phi=phi, W=W, gamma=gamma, k=K)
        assert found.bound == pytest.approx(found.far_share * rest)
        assert found.judgments == len(y)
        assert found.vacuous == (found.bound >= found.far_share)


@pytest.mark.parametrize("setting", SETTINGS)
def test_certificate_of_labels(setting):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (40, 3))
    y = (X[:, 0] > 0).astype(int)
    h = X @ [1.0, 0.2, -0.3]
    judgments = [(i, j, np.sign(y[j] - y[i])) for i in range(40) for j in range(i) if y[i] != y[j]]
    for phi in PHI:
        found = certificate(h, X, y, phi=phi, W=1.6, gamma=0.4, setting=setting, k=K)
        surrogate, least, misranked, _ = plain_sums(h, X, judgments, 1.6, 0.4, phi)
        assert (found.surrogate_loss, found.excess) == pytest.approx((surrogate, misranked))
        assert found.surrogate_least == pytest.approx(least, abs=1e-5)
        assert found.excess <= found.bound + 1e-12


def test_bipartite_certificate_is_never_above_the_bipartite_bound():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (30, 2))
    y = np.arange(30) % 3 == 0
    for W, gamma in itertools.product((0.3, 1.0, 3.0), (0.1, 0.5)):
        options = {"phi": "exponential", "W": W, "gamma": gamma, "setting": "bipartite"}
        h = X @ [W / 2, -W / 2]
        found = certificate(h, X, y, **options)
        share = 2 * 10 * 20 / 900
        assert found.bound <= sharp_bound(share * found.gap, **options) / share + 1e-12


def test_population_bound_covers_what_the_population_says():
    """Rows drawn again and again: the excess over the whole population is below the bound in nearly every draw."""
    population = np.random.default_rng(7)
    X = population.uniform(0, 1, (400, 1))
    y = X[:, 0] + population.normal(size=400) / 10 > 0.5
    options = {"phi": "sigmoid", "W": 4.0, "gamma": 0.3}
    h = 4.0 * X[:, 0]
    whole = certificate(h, X, y, **options)
    covered = []
    for seed in range(20):
        rows = np.random.default_rng(seed).integers(0, 400, 300)
        found = certificate(h[rows], X[rows], y[rows], confidence=0.9, diameter=1.0, **options)
        covered.append(found.population_bound >= whole.excess)
        assert found.population_bound >= found.bound
    assert np.mean(covered) >= 0.9
    n, slack = 300, math.sqrt(math.log(2 / 0.1) / 300)
    reach = 2 * math.tanh(4.0)
    mixed = found.judgments / (n * (n - 1) / 2)
    by_hand = (found.gap * mixed + reach * slack) / (mixed - slack)
    assert found.population_bound == pytest.approx(by_hand / math.tanh(1.2))
    one = certificate([0.0, 0.1], [[0.0], [1.0]], [0, 1], phi="sigmoid", W=0.8, gamma=0.2, confidence=0.9)
    assert one.population_bound == 1.0


def test_certificate_without_abstention_is_vacuous_and_says_so():
    found = certificate([0.0, 0.5], [[0.0], [1.0]], [0, 1], phi="hinge", W=1.0, gamma=0.0, confidence=0.9, diameter=1)
    assert found.bound == math.inf == found.population_bound
    assert found.vacuous
    assert any("Theorems 4.1" in said for said in found.assumptions)


def test_certificate_refuses_what_it_cannot_speak_of():
    X, good = [[0.0], [1.0]], {"phi": "hinge", "W": 1.0, "gamma": 0.1}
    with pytest.raises(UsageError, match=r"W must be at least 2\.5"):
        certificate([0.0, 2.5], X, [0, 1], **good)
    with pytest.raises(InputError, match="all labels are equal"):
        certificate([0.0, 0.5], X, [1, 1], **good)
    with pytest.raises(InputError, match="two values, not 3"):
        certificate([0.0, 0.5, 0.5], [[0.0], [1.0], [2.0]], [0, 1, 2], setting="bipartite", **good)
    with pytest.raises(InputError, match="scores are not finite"):
        certificate([0.0, math.nan], X, [0, 1], **good)
    with pytest.raises(InputError, match="rows of X"):
        certificate([0.0, 0.1], [[0.0], [math.inf]], [0, 1], **good)
    with pytest.raises(UsageError, match="diameter"):
        certificate([0.0, 0.1], X, [0, 1], confidence=0.9, **good)
    with pytest.raises(InputError, match="diameter"):
        certificate([0.0, 0.1], X, [0, 1], confidence=0.9, diameter=0.5, **good)
    with pytest.raises(UsageError, match="confidence"):
        certificate([0.0, 0.1], X, [0, 1], confidence=1.0, diameter=1.0, **good)
    with pytest.raises(UsageError, match="norm"):
        certificate([0.0, 0.1], X, [0, 1], norm=3, **good)
    with pytest.raises(UsageError, match="not a sample"):
        certificate([0.0, 0.1], X, JudgedPairs.of(2, [0], [1], [1]), confidence=0.9, diameter=1.0, **good)
    with pytest.raises(InputError, match="neither"):
        JudgedPairs.of(2, [0], [1], [0])
    with pytest.raises(UsageError, match="with itself"):
        JudgedPairs.of(2, [1], [1], [1])
    with pytest.raises(InputError, match="no judged pairs"):
        JudgedPairs.of(2, [], [], [])


@pytest.mark.parametrize("phi", ["hinge", "exponential"])
def test_minimisability_gap_against_a_grid_of_scorers(judged, phi):
    X, one, other, y = judged
    W, gamma, judgments = 1.5, 0.15, list(zip(one, other, y, strict=True))
    found = minimisability_gaps(X, JudgedPairs.of(9, one, other, y), phi=phi, W=W, gamma=gamma)
    best = math.inf
    far = np.abs(X[one] - X[other]).max(1) > gamma
    for angle in np.linspace(0, 2 * math.pi, 721):  # ‖w‖₁ ≤ W
        w = np.array([math.cos(angle), math.sin(angle)])
        for radius in np.linspace(0, W, 61):
            h = X @ (w * radius / np.abs(w).sum())
            best = min(best, float(PHI[phi](y * (h[other] - h[one]))[far].sum()) / len(y))
    _, least, _, _ = plain_sums(np.zeros(9), X, judgments, W, gamma, phi)
    low, high = found.surrogate
    assert high - low < 2e-5
    assert low - 1e-4 <= best - least <= high + 1e-3
    low, high = found.abstention
    assert low == 0.0 <= high


def test_minimisability_gap_vanishes_where_one_scorer_suits_all():
    X = np.array([[0.0], [1.0], [2.0]])
    for norm in (1, 2, "inf"):
        found = minimisability_gaps(X, [0, 1, 2], phi="exponential", W=1.5, gamma=0.5, norm=norm)
        assert found.surrogate == pytest.approx((0.0, 0.0), abs=1e-6)
        assert found.abstention == (0.0, 0.0)
    with pytest.raises(UsageError, match="scores of one of them"):
        minimisability_gaps(X, [0, 1, 2], phi="hinge", W=1.0, gamma=0.1, Lambda=1.0, B=1.0)
    with pytest.raises(UsageError, match="not of networks"):
        minimisability_gaps(X, [0, 1, 2], phi="hinge", W=1.0, gamma=0.1, Lambda=1.0, B=1.0, scores=[0.0, 5.0, 9.0])
    local = minimisability_gaps(X, [0, 1, 2], phi="sigmoid", W=1.5, gamma=0.5)
    assert local.surrogate[0] == 0.0
    assert "local minimum" in local.how

"""Surrogates: their parts, their values straight from the formulas, and minimisers found in another way."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from concordant.errors import UsageError
from concordant.losses.expected_gains import best_values, expected_gains
from concordant.losses.minimise import minimise
from concordant.losses.objective import Objective, Population, Relevance, WeightedEdges
from concordant.losses.pair_losses import PAIR_LOSSES, PENALTIES, pair_loss, value_penalty
from concordant.losses.surrogates import SURROGATES, surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.status import Status
from concordant.ranking.adjacency import difference_graph, mean_adjacency
from small_logs import logs

BOTH = [(name, phi) for name, member in SURROGATES.items() for phi in member.phis]
seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=20)


def random_people(rng, graphs=3, most=5, weights=(0.25, 0.5, 1.0, 2.0)):
    """A ragged batch of laws of judgments; edges may repeat with other strengths."""
    size = rng.integers(1, most + 1, graphs)
    start = np.concatenate(([0], np.cumsum(size)))
    edges = []
    for graph, m in enumerate(size):
        for i, j in itertools.permutations(range(m), 2):
            for _ in range(rng.integers(0, 3)):
                edges.append((start[graph] + i, start[graph] + j, rng.choice([1.0, 2.0, 0.5]), rng.choice(weights)))
    winner, loser, strength, share = (np.array(x) for x in zip(*edges, strict=True)) if edges else [np.zeros(0)] * 4
    return Population(start, winner.astype(np.int64), loser.astype(np.int64), strength, share)


def source_for(member, rng):
    if member.reads != "scores":
        return random_people(rng)
    size = rng.integers(1, 6, 3)
    start = np.concatenate(([0], np.cumsum(size)))
    return Relevance.of(rng.integers(0, 9, (2, start[-1])) / 8, start, np.array([0.3, 0.7]))


# -- the parts -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", PAIR_LOSSES)
def test_pair_losss_are_what_they_say(name):
    phi = pair_loss(name)
    t = np.array([-3.0, -1.1, -0.2, 0.0, 0.4, 0.97, 1.2, 2.5])
    step = 1e-5
    slope = (phi.value(t + step) - phi.value(t - step)) / (2 * step)
    np.testing.assert_allclose(phi.derivative(t), slope, rtol=1e-6, atol=1e-9)
    bend = (phi.derivative(t + step) - phi.derivative(t - step)) / (2 * step)
    np.testing.assert_allclose(phi.second(t), bend, rtol=1e-6, atol=1e-9)
    grid = np.linspace(-5, 5, 401)
    assert (phi.value(grid[:-2]) + phi.value(grid[2:]) >= 2 * phi.value(grid[1:-1]) - 1e-12).all()  # convex
    assert (np.diff(phi.value(grid)) <= 0).all()
    assert phi.derivative(np.zeros(1))[0] < 0
    near_one = phi.derivative(np.array([1 - 1e-9, 1 + 1e-9]))
    assert phi.smooth == bool(np.ptp(near_one) < 1e-6)
    far = float(phi.value(np.array([700.0]))[0])
    assert far == pytest.approx(0, abs=1e-12) if phi.infimum == 0 else far < -600
    if np.isfinite(phi.zero_from):
        assert phi.value(np.array([phi.zero_from]))[0] == phi.infimum < phi.value(np.array([phi.zero_from - 1e-3]))[0]
    elif phi.infimum == 0:
        assert far > 0


@pytest.mark.parametrize("name", PENALTIES)
def test_value_penalties_are_what_they_say(name):
    r = value_penalty(name)
    t = np.linspace(-2, 2, 9)
    step = 1e-5
    np.testing.assert_allclose(r.derivative(t), (r.value(t + step) - r.value(t - step)) / (2 * step), atol=1e-8)
    np.testing.assert_allclose(r.second(t), (r.derivative(t + step) - r.derivative(t - step)) / (2 * step), atol=1e-8)
    np.testing.assert_allclose(r.inverse(r.derivative(t)), t, atol=1e-12)
    assert (r.second(t) > 0).all()
    assert r.derivative(np.zeros(1))[0] == 0


@pytest.mark.parametrize(("name", "phi"), BOTH)
@given(seeds)
@some
def test_gradients_by_finite_differences(name, phi, seed):
    rng = np.random.default_rng(seed)
    risk = surrogate(name).objective(source_for(surrogate(name), rng), phi=phi)
    alpha = rng.normal(size=risk.nodes)  # kinks have probability 0
    step = 1e-6
    for node in range(risk.nodes):
        move = np.zeros(risk.nodes)
        move[node] = step
        slope = (risk.value(alpha + move) - risk.value(alpha - move)).sum() / (2 * step)
        assert risk.gradient(alpha)[node] == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("name", "phi"), BOTH)
@given(seeds)
@some
def test_surrogates_are_convex(name, phi, seed):
    member, rng = surrogate(name), np.random.default_rng(seed)
    assert member.convex
    risk = member.objective(source_for(member, rng), phi=phi)
    one, other = rng.normal(scale=2, size=(2, risk.nodes))
    between = risk.value((one + other) / 2)
    assert (between <= (risk.value(one) + risk.value(other)) / 2 + 1e-12).all()


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("phi", [name for name in PAIR_LOSSES if name != "hinge"])
def test_curvature_is_the_derivative_of_the_gradient(phi, penalty):
    rng = np.random.default_rng(5)
    edges = WeightedEdges.of(
        np.array([0, 3]), np.array([0, 1, 2]), np.array([1, 2, 0]), rng.random(3), offset=rng.random(3), pull=0.3
    )
    risk = Objective(edges, pair_loss(phi), value_penalty(penalty))
    alpha = rng.normal(size=3)
    of_edges, of_nodes = risk.curvature(alpha)
    hessian = np.diag(of_nodes)
    for i, j, bend in zip(edges.winner, edges.loser, of_edges, strict=True):
        ends = np.eye(3)[i] - np.eye(3)[j]
        hessian += bend * np.outer(ends, ends)
    step = 1e-6
    for node in range(3):
        move = np.eye(3)[node] * step
        slope = (risk.gradient(alpha + move) - risk.gradient(alpha - move)) / (2 * step)
        np.testing.assert_allclose(hessian[node], slope, atol=1e-7)


# -- values straight from the formulas -------------------------------------------------------------------------------
PHI = {
    "hinge": lambda t: max(0.0, 1 - t),
    "squared-hinge": lambda t: max(0.0, 1 - t) ** 2,
    "logistic": lambda t: np.log(1 + np.exp(-t)),
    "exponential": lambda t: np.exp(-t),
    "linear": lambda t: -t,
}


def plain_value(name, phi, source, graph, alpha):
    """The surrogate's formula in loops, one graph."""
    f, nodes = PHI[phi], range(source.node_start[graph], source.node_start[graph + 1])
    if surrogate(name).reads == "scores":
        gains = dict.fromkeys(nodes, 0.0)
        for share, s in zip(source.share, source.scores, strict=True):
            g = {j: s[j] if name == "err-pairwise" else 2.0 ** s[j] for j in nodes}
            best = sorted(g.values(), reverse=True)
            z = 1.0 if name == "err-pairwise" else sum(x / np.log2(2 + r) for r, x in enumerate(best))
            for j in nodes:
                gains[j] += share * g[j] / z
        if name == "gain-regression":
            return sum((alpha[j] - gains[j]) ** 2 for j in nodes) / (2 * len(nodes))
        return sum(gains[j] * f(alpha[j] - alpha[k]) for j in nodes for k in nodes if j != k)
    edges = [e for e in zip(source.winner, source.loser, source.strength, source.share, strict=True) if e[0] in nodes]
    if name in ("ranksvm", "ranknet", "rankboost"):
        return sum(p * y * f(alpha[i] - alpha[j]) for i, j, y, p in edges)
    if name == "margin-based":
        return sum(p * f(alpha[i] - alpha[j] - y) for i, j, y, p in edges)
    a = {(i, j): sum(p * y for u, v, y, p in edges if (u, v) == (i, j)) for i in nodes for j in nodes}
    if name == "difference-graph":
        return sum(max(a[i, j] - a[j, i], 0) * f(alpha[i] - alpha[j]) for i in nodes for j in nodes)
    if name == "majority":
        won = [(i, j) for i in nodes for j in nodes if a[i, j] > a[j, i]]
        return sum(f(alpha[i] - alpha[j]) for i, j in won) / max(len(won), 1)
    assert name == "linear"
    return sum(a[i, j] * (alpha[j] - alpha[i]) for i in nodes for j in nodes) + sum(alpha[i] ** 2 for i in nodes)


@pytest.mark.parametrize(("name", "phi"), BOTH)
@given(seeds)
@some
def test_values_straight_from_the_formulas(name, phi, seed):
    rng = np.random.default_rng(seed)
    source = source_for(surrogate(name), rng)
    risk = surrogate(name).objective(source, phi=phi)
    alpha = rng.normal(size=risk.nodes)
    plain = [plain_value(name, phi, source, graph, alpha) for graph in range(len(risk))]
    np.testing.assert_allclose(risk.value(alpha), plain, rtol=1e-12, atol=1e-12)


def test_gains_of_the_two_point_law():
    """S = (2, 0, 1.1) or (0, 2, 1.1): E G/Z = (.403, .403, .307) with G = 2^s − 1 (method, §9)."""
    law = Relevance.of([[2.0, 0.0, 1.1], [0.0, 2.0, 1.1]])
    np.testing.assert_allclose(expected_gains(law, "2^s-1", normalised=True), [0.403, 0.403, 0.307], atol=5e-4)
    level = Relevance.of([0.0, 0.0])
    assert expected_gains(level, "2^s-1", normalised=True).tolist() == [0, 0]  # Z = 0


@given(seeds)
@some
def test_best_values_are_best(seed):
    rng = np.random.default_rng(seed)
    gains = rng.random((1, 4))
    for at in (None, 1, 2):
        cut = at or 4
        worth = [
            sum(gains[0, j] / np.log2(2 + r) for r, j in enumerate(order) if r < cut)
            for order in itertools.permutations(range(4))
        ]
        assert best_values(gains, np.array([0, 4]), at)[0, 0] == pytest.approx(max(worth))


# -- from preferences ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["comparisons", "orders", "selections", "ratings"])
@given(data=st.data())
@some
def test_populations_of_logs_have_the_mean_adjacency(kind, data):
    batch = Batch.whole(data.draw(logs(kind)))
    ours, theirs = Population.of(batch).adjacency, mean_adjacency(batch)
    dense = np.zeros((2, len(batch.item), len(batch.item)))
    for table, graphs in zip(dense, (ours, theirs), strict=True):
        np.add.at(table, (graphs.first, graphs.second), graphs.above)
        np.add.at(table, (graphs.second, graphs.first), graphs.below)
    np.testing.assert_allclose(dense[0], dense[1], atol=1e-12)


@given(logs("comparisons"), st.integers(2, 4))
@some
def test_count_is_that_many_rows(prefs, times):
    for name, member in SURROGATES.items():
        if member.reads != "scores":
            alpha = np.linspace(1, 2, len(Batch.whole(prefs).item))
            once, often = (surrogate(name).objective(Batch.whole(p)) for p in (prefs, sum([prefs] * times)))
            np.testing.assert_allclose(once.value(alpha), often.value(alpha), rtol=1e-12, atol=1e-12)


def test_pair_tables_stand_for_their_judgments():
    votes = Preferences.from_comparisons(["x", "x", "y", "x"], ["y", "y", "x", "z"], tie=[False, False, False, True])
    batch = Batch.whole(votes)
    alpha = np.array([0.3, -0.2, 0.9])
    for name in ("ranknet", "difference-graph", "linear"):
        values = [surrogate(name).objective(source).value(alpha)[0] for source in (batch, mean_adjacency(batch))]
        assert values[0] == pytest.approx(values[1], rel=1e-14)
    again = surrogate("difference-graph").objective(difference_graph(batch)).value(alpha)[0]
    assert again == pytest.approx(surrogate("difference-graph").objective(batch).value(alpha)[0], rel=1e-14)


# -- minimisers ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "phi"), [pair for pair in BOTH if pair[1] != "hinge"])
@given(seeds)
@some
def test_minima_agree_with_a_general_optimiser(name, phi, seed):
    rng = np.random.default_rng(seed)
    risk = surrogate(name).objective(source_for(surrogate(name), rng), phi=phi)
    found = minimise(risk)
    assert (found.status != Status.STOPPED).all()
    assert (found.gradient <= 1e-8).all()
    np.testing.assert_allclose(risk.value(found.alpha), found.value, atol=1e-10)
    for _ in range(2):
        begin = rng.normal(size=risk.nodes)
        other = minimize(lambda a: risk.value(a).sum(), begin, jac=risk.gradient, method="BFGS")
        assert other.fun >= found.value.sum() - 1e-9
        if (found.status == Status.NOT_ATTAINED).any():
            assert other.fun == pytest.approx(found.value.sum(), abs=1e-2)
        else:
            assert other.fun == pytest.approx(found.value.sum(), abs=1e-6)
            bounds = found.bounds  # whatever minimiser was found keeps the bounds
            gap = other.x[bounds.above] - other.x[bounds.below] - bounds.least
            assert (gap >= -1e-2).all()


@given(seeds)
@settings(max_examples=40)
def test_hinge_by_enumeration(seed):
    """Without offsets some minimiser is integral and so are the least differences: difference constraints of ±1."""
    rng = np.random.default_rng(seed)
    people = random_people(rng, graphs=2, most=4)
    found = minimise(surrogate("ranksvm").objective(people))
    for graph in range(2):
        start, stop = people.node_start[graph : graph + 2]
        m = stop - start
        box = range(-2 * m, 2 * m + 1)  # beyond it are only differences that nothing bounds
        alpha = np.array([(0, *rest) for rest in itertools.product(box, repeat=m - 1)])
        value = np.zeros(len(alpha))
        for i, j, y, p in zip(people.winner, people.loser, people.strength, people.share, strict=True):
            if start <= i < stop:
                value += p * y * np.maximum(0, 1 - alpha[:, i - start] + alpha[:, j - start])
        best = value.min()
        optimal = alpha[value < best + 1e-9]
        smallest = (optimal[:, :, None] - optimal[:, None, :]).min(axis=0)
        assert found.value[graph] == pytest.approx(best, abs=1e-9)
        least = found.smallest_differences(graph)
        bounded = smallest > -m
        np.testing.assert_allclose(least[bounded], smallest[bounded], atol=1e-6)
        assert (least[~bounded] == -np.inf).all()
        pinned = np.isfinite(least) & np.isclose(least, -least.T, atol=1e-6)
        connected = found.component[start:stop, None] == found.component[start:stop]
        assert (found.status[graph] == Status.ATTAINED) == bool(pinned[connected].all())


@pytest.mark.parametrize(("name", "phi"), BOTH)
@given(seeds)
@settings(max_examples=8)
def test_a_graph_does_not_feel_the_others_in_its_batch(name, phi, seed):
    rng = np.random.default_rng(seed)
    source = source_for(surrogate(name), rng)
    together = minimise(surrogate(name).objective(source, phi=phi))
    for graph in range(len(together.status)):
        start, stop = source.node_start[graph : graph + 2]
        if isinstance(source, Relevance):
            one = Relevance.of(source.scores[:, start:stop], None, source.share)
        else:
            here = (source.winner >= start) & (source.winner < stop)
            ends = source.winner[here] - start, source.loser[here] - start
            one = Population(np.array([0, stop - start]), *ends, source.strength[here], source.share[here])
        alone = minimise(surrogate(name).objective(one, phi=phi))
        assert alone.status[0] == together.status[graph]
        assert alone.value[0] == pytest.approx(together.value[graph], abs=1e-10)
        np.testing.assert_allclose(alone.smallest_differences(0), together.smallest_differences(graph), atol=1e-6)


@given(seeds)
@some
def test_gains_against_all_in_closed_form(seed):
    """Logistic: σ(α_j − α_l) = g_j/(g_j + g_l), so α = log g; exponential: half of it. No stationarity is left."""
    rng = np.random.default_rng(seed)
    scores = rng.random(5) + 0.01
    for phi, factor in (("logistic", 1.0), ("exponential", 0.5)):
        risk = surrogate("err-pairwise").objective(Relevance.of(scores / 2), phi=phi)
        expected = factor * np.log(scores)
        np.testing.assert_allclose(minimise(risk).alpha, expected - expected.mean(), atol=1e-8)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_closed_form_of_the_linear_loss_is_the_iterative_one(penalty):
    people = random_people(np.random.default_rng(3))
    risk = surrogate("linear").objective(people, penalty=penalty, nu=0.7)
    found = minimise(risk)
    other = minimize(lambda a: risk.value(a).sum(), np.zeros(risk.nodes), jac=risk.gradient, tol=1e-10)
    np.testing.assert_allclose(found.alpha, other.x, atol=1e-6)
    assert np.abs(risk.gradient(found.alpha)).max() < 1e-12


def test_smooth_losses_with_a_penalty_are_unique():
    people = random_people(np.random.default_rng(8))
    edges = surrogate("ranknet").objective(people).edges
    pulled = WeightedEdges.of(edges.node_start, edges.winner, edges.loser, edges.weight, pull=0.1)
    for phi in ("logistic", "squared-hinge", "exponential"):
        risk = Objective(pulled, pair_loss(phi), value_penalty("square"))
        found = minimise(risk)
        assert (found.status == Status.ATTAINED).all()
        other = minimize(lambda a, r=risk: r.value(a).sum(), np.ones(risk.nodes), jac=risk.gradient, tol=1e-10)
        np.testing.assert_allclose(found.alpha, other.x, atol=1e-6)


def test_infima_are_followed_between_strong_components():
    """0 ⇄ 1 → 2 ⇄ 3: within the pairs logistic is log(3), between them the infimum is at infinity."""
    ends = np.array([0, 1, 1, 2, 3]), np.array([1, 0, 2, 3, 2])
    people = Population(np.array([0, 4]), *ends, np.ones(5), np.array([0.3, 0.1, 0.2, 0.1, 0.3]))
    found = minimise(surrogate("ranknet").objective(people))
    assert found.status[0] == Status.NOT_ATTAINED
    least = found.smallest_differences(0)
    assert least[0, 1] == pytest.approx(np.log(3))
    assert least[3, 2] == pytest.approx(np.log(3))
    assert least[0, 3] == np.inf == least[1, 2]
    assert least[2, 1] == -np.inf
    assert found.value[0] == pytest.approx(2 * (0.3 * np.log(4 / 3) + 0.1 * np.log(4)))
    assert surrogate("ranknet").objective(people).value(found.alpha)[0] == pytest.approx(found.value[0], abs=1e-12)


def test_the_printed_argument_of_the_gain_surrogates_reverses_the_order():
    risk = surrogate("ndcg-pairwise").objective(Relevance.of([0.0, 1.0, 2.0]))
    edges = risk.edges
    printed = WeightedEdges.of(edges.node_start, edges.loser, edges.winner, edges.weight)
    assert (np.diff(minimise(risk).alpha) > 0).all()
    assert (np.diff(minimise(Objective(printed, risk.phi, risk.penalty)).alpha) < 0).all()


def test_nothing_to_order():
    """One item, no judgment, and an empty batch."""
    none = np.zeros(0, np.int64)
    for start in ([0], [0, 1], [0, 2, 2]):
        people = Population(np.array(start), none, none, np.zeros(0), np.zeros(0))
        for name, member in SURROGATES.items():
            if member.reads == "scores":
                risk = member.objective(Relevance.of(np.ones((1, start[-1])), np.array(start)))
            else:
                risk = member.objective(people)
            found = minimise(risk)
            assert len(found.value) == len(start) - 1, name
            np.testing.assert_allclose(found.alpha, found.alpha.mean() if start[-1] else 0)


def test_a_large_sparse_batch_is_one_system():
    rng = np.random.default_rng(1)
    graphs, m = 300, 30
    start = np.arange(graphs + 1) * m
    ring = np.tile(np.arange(m), graphs) + np.repeat(start[:-1], m)
    following = np.tile(np.roll(np.arange(m), -1), graphs) + np.repeat(start[:-1], m)
    ends = np.concatenate((ring, following)), np.concatenate((following, ring))
    people = Population(start, *ends, np.ones(2 * len(ring)), rng.random(2 * len(ring)) + 0.05)
    for phi in ("squared-hinge", "hinge"):
        found = minimise(surrogate("ranksvm").objective(people, phi=phi))
        assert (found.status != Status.STOPPED).all()
    found = minimise(surrogate("ranknet").objective(people))
    assert (found.status == Status.ATTAINED).all()
    assert found.gradient.max() < 1e-9


# -- bad input -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: surrogate("rancsvm"), "did you mean 'ranksvm'"),
        (lambda: pair_loss("hing"), "did you mean 'hinge'"),
        (lambda: value_penalty("squar"), "did you mean 'square'"),
        (lambda: surrogate("ranksvm").objective(PEOPLE, phi="logistic"), "allowed: hinge, squared-hinge"),
        (lambda: surrogate("ranksvm").objective(PEOPLE, phi="logistics"), "did you mean 'logistic'"),
        (lambda: surrogate("ranksvm").objective(PEOPLE, nu=1), "no option 'nu'; its options are h"),
        (lambda: surrogate("difference-graph").objective(PEOPLE, h="root"), "it has none"),
        (lambda: surrogate("ranknet").objective(PEOPLE, h="roots"), "did you mean 'root'"),
        (lambda: surrogate("ranknet").objective(Relevance.of([1.0, 2.0])), "reads preferences"),
        (lambda: surrogate("ndcg-pairwise").objective(PEOPLE), "reads scores"),
        (lambda: surrogate("linear").objective(PEOPLE, nu=0), "no lower bound"),
        (lambda: minimise(unbounded()), "no lower bound without a penalty"),
        (lambda: minimise(pulled_hinge()), "take squared-hinge"),
        (lambda: minimise(partly_pulled()), "the values of 1 of 2 items are penalised"),
        (lambda: gain_weights("ndcg-pairwise", "2^s-1", [-1.0, 0.0, 1.0]), "negative for 1 of 3 scores.*use|'2\\^s'"),
        (lambda: gain_weights("err-pairwise", "identity", [0.0, 2.0]), "above 1 for 1 of 2"),
        (lambda: gain_weights("ndcg-pairwise", "2^", [0.0, 2.0]), "did you mean"),
        (lambda: surrogate("gain-regression").objective(Relevance.of([0.0, 1.0]), at=0), "cut-off"),
        (lambda: Relevance.of([np.nan, 1.0]), "1 of 2 scores are not finite"),
        (lambda: Relevance.of([[0.0, 1.0]], share=np.array([0.5])), "add up to 0.5"),
        (lambda: Relevance.of([0.0, 1.0], np.array([0, 3])), "3 nodes"),
        (lambda: Objective(negative(), pair_loss("hinge"), value_penalty("square")), "1 of 1 edge weights"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(UsageError, match=message):
        call()


PEOPLE = Population(np.array([0, 2]), np.array([0]), np.array([1]), np.ones(1), np.ones(1))


def negative():
    return WeightedEdges.of(np.array([0, 2]), np.array([0]), np.array([1]), np.array([-1.0]))


def unbounded():
    edges = WeightedEdges.of(np.array([0, 2]), np.array([0]), np.array([1]), np.ones(1))
    return Objective(edges, pair_loss("linear"), value_penalty("square"))


def pulled_hinge():
    edges = WeightedEdges.of(np.array([0, 2]), np.array([0]), np.array([1]), np.ones(1), pull=1.0)
    return Objective(edges, pair_loss("hinge"), value_penalty("square"))


def partly_pulled():
    one = WeightedEdges.of(np.array([0, 2]), np.array([0]), np.array([1]), np.ones(1), pull=1.0)
    edges = replace(one, pull=np.array([1.0, 0.0]))
    return Objective(edges, pair_loss("logistic"), value_penalty("square"))


def gain_weights(name, gain, scores):
    return surrogate(name).objective(Relevance.of(scores), gain=gain)


def test_registry_speaks_for_itself():
    for name, member in SURROGATES.items():
        assert member.name == name
        assert member.phi in member.phis
        assert set(member.phis) <= set(PAIR_LOSSES)
        assert (member.consistent_for is None) == (member.condition is None) == (not member.consistent())
        assert member.smooth() == PAIR_LOSSES[member.phi].smooth
        source = source_for(member, np.random.default_rng(0))
        assert bool(member.objective(source).edges.pull.any()) == member.pulls
        for default in member.defaults:
            assert member.objective(source, **{default: member.defaults[default]})


def test_tied_minimisers_are_said_to_be_many():
    people = Population(np.array([0, 2]), np.array([0, 1]), np.array([1, 0]), np.ones(2), np.array([0.5, 0.5]))
    found = minimise(surrogate("ranksvm").objective(people))
    assert found.status[0] == Status.NOT_UNIQUE  # every |α_0 − α_1| ≤ 1
    np.testing.assert_allclose(found.smallest_differences(0), [[0, -1], [-1, 0]])

"""The compiled ways to minimisers against their plain twins, certificates from the formulas, and laws of batches."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit

from concordant.errors import UsageError
from concordant.losses import argmin_set as faces
from concordant.losses import gains_to_all, hinge
from concordant.losses import minimise as minimising
from concordant.losses import newton as newton_blocks
from concordant.losses.argmin_set import Bounds, least_gaps, loose_blocks, loose_nodes, smallest_differences
from concordant.losses.hinge import by_circulation, by_linear_programme
from concordant.losses.minimise import minimise, within_blocks
from concordant.losses.objective import GainsToAll, Objective, WeightedEdges
from concordant.losses.pair_losses import PAIR_LOSSES, PairLoss, pair_loss, value_penalty
from concordant.losses.pieces import Pieces, levels
from concordant.preferences.status import Status
from toy_losses import TOYS

PHIS = ("hinge", "squared-hinge", "logistic", "exponential")
SMOOTH = PHIS[1:]
WEIGHTS = {
    "counts": lambda rng, n: rng.integers(1, 5, n).astype(float),
    "shares": lambda rng, n: rng.integers(1, 5, n) / 7.0,
    "reals": lambda rng, n: rng.random(n) + 0.01,
    "far apart": lambda rng, n: 10.0 ** rng.uniform(-12, 12, n),
}
seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=12)


def objective(edges, phi):
    chosen = phi if isinstance(phi, PairLoss) else pair_loss(phi)
    return Objective(edges, chosen, value_penalty("square"))


def random_edges(rng, graphs=8, most=12, weights="counts", offsets=True, degree=4):
    """A ragged batch of random edges, some of them twice; few items make strong components, many make several."""
    size = rng.integers(1, most + 1, graphs)
    start = np.concatenate(([0], np.cumsum(size)))
    ends = [np.zeros((2, 0), np.int64)]
    for first, m in zip(start, size, strict=False):
        if m > 1:
            winner = rng.integers(0, m, rng.integers(0, degree * m))
            ends.append(first + np.stack((winner, (winner + rng.integers(1, m, len(winner))) % m)))
    winner, loser = np.concatenate(ends, axis=1)
    offset = rng.choice([0.0, 0.0, 0.5, 2.0], len(winner)) if offsets else None
    return WeightedEdges.of(start, winner, loser, WEIGHTS[weights](rng, len(winner)), offset=offset)


def all_pairs(found, graph):
    start, stop = found.objective.edges.node_start[graph : graph + 2]
    nodes = np.arange(start, stop)
    gaps = found.least_gaps(np.repeat(nodes, len(nodes)), np.tile(nodes, len(nodes)))
    return gaps.reshape(len(nodes), len(nodes))


# -- the hinge -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("weights", ["counts", "shares", "reals"])
@given(seeds)
@some
def test_the_network_simplex_is_the_linear_programme(weights, seed):
    risk = objective(random_edges(np.random.default_rng(seed), weights=weights), "hinge")
    found = minimise(risk)
    with pytest.MonkeyPatch.context() as patch:

        def plain(pieces):
            alpha, dual = by_linear_programme(pieces, pieces.size > 1)
            return alpha, dual, np.zeros(pieces.number, np.int64), np.zeros(pieces.number, bool)

        patch.setattr(minimising, "by_circulation", plain)
        twin = minimise(risk)
    np.testing.assert_allclose(found.value, twin.value, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(risk.value(found.alpha), found.value, rtol=1e-9, atol=1e-9)
    assert (found.status == twin.status).all()
    for graph in range(len(risk)):
        np.testing.assert_allclose(
            found.smallest_differences(graph), twin.smallest_differences(graph), rtol=1e-6, atol=1e-6
        )


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("most", [4, 12, 40])
@given(seeds)
@some
def test_the_dual_of_the_hinge_certifies_its_minimum(weights, most, seed):
    """0 ≤ y ≤ w, as much into each item as out of it, and Σ y (1 + h) equal to the loss: no loss can be less."""
    pieces = Pieces.of(objective(random_edges(np.random.default_rng(seed), 4, most, weights), "hinge"))
    alpha, dual, _, left_out = by_circulation(pieces)
    edges, nodes = pieces.within.edges, len(pieces.block)
    assert not left_out.any()
    assert (dual >= 0).all()
    assert (dual <= edges.weight).all()
    out, into = (np.bincount(ends, dual, nodes) for ends in (edges.winner, edges.loser))
    np.testing.assert_allclose(out, into, rtol=1e-12, atol=1e-12 * edges.weight.max(initial=0))
    worth = np.bincount(pieces.within.owner[edges.winner], dual * (1 + edges.offset), len(pieces.within))
    np.testing.assert_allclose(pieces.within.value(alpha), worth, rtol=1e-10, atol=1e-12 * edges.weight.max(initial=0))


def test_ties_everywhere_do_not_send_the_simplex_in_circles(monkeypatch):
    """Equal weights on all edges of many items: nearly every step is degenerate."""

    def asked(*_):
        raise AssertionError("the linear programme was asked")

    monkeypatch.setattr(hinge, "by_linear_programme", asked)
    for m, offset in itertools.product((2, 7, 24), (0.0, 1.0)):
        pairs = np.array(list(itertools.permutations(range(m), 2)))
        edges = WeightedEdges.of(np.array([0, m]), *pairs.T, np.ones(len(pairs)), offset=np.full(len(pairs), offset))
        found = minimise(objective(edges, "hinge"))
        assert found.value[0] == pytest.approx((1 + offset) * m * (m - 1))  # a tie of all is among the best
        assert (all_pairs(found, 0)[~np.eye(m, dtype=bool)] < 0).all()


def test_what_the_simplex_does_not_finish_the_programme_does(monkeypatch):
    edges = random_edges(np.random.default_rng(4), most=30)
    once = minimise(objective(edges, "hinge"))
    monkeypatch.setattr(hinge, "STEPS", 0)
    again = minimise(objective(edges, "hinge"))
    assert again.iterations.max() == 0 < once.iterations.max()
    np.testing.assert_allclose(again.value, once.value, atol=1e-9)
    assert (again.status == once.status).all()


def test_what_is_too_large_is_left_out_and_said(monkeypatch):
    cycle = np.array([0, 1, 2]), np.array([1, 2, 0])
    winner, loser = (np.concatenate((ends, [3, 4])) for ends in cycle)
    winner, loser = np.append(winner, 5), np.append(loser, 6)
    loser[3:5] = 4, 3
    edges = WeightedEdges.of(np.array([0, 3, 5, 7]), winner, loser, np.ones(6))
    whole = minimise(objective(edges, "hinge"))
    assert whole.value.tolist() == [3.0, 2.0, 0.0]
    monkeypatch.setattr(hinge, "LARGEST", 8)
    found = minimise(objective(edges, "hinge"))
    assert found.status.tolist() == [Status.LEFT_OUT, *whole.status[1:]]
    np.testing.assert_array_equal(found.value, [np.nan, 2.0, 0.0])
    np.testing.assert_array_equal(np.isnan(found.alpha), np.arange(7) < 3)
    gaps = found.least_gaps([0, 3, 5, 0, 5], [1, 4, 6, 3, 3])
    np.testing.assert_array_equal(gaps, [np.nan, -1.0, 1.0, np.nan, -np.inf])
    assert np.isnan(found.smallest_differences(0)[0, 1])
    assert minimise(objective(edges, "logistic")).status.tolist() == [
        Status.ATTAINED,
        Status.ATTAINED,
        Status.NOT_ATTAINED,
    ]


# -- smooth φ ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("phi", SMOOTH)
@pytest.mark.parametrize("weights", ["counts", "reals"])
@given(seeds)
@some
def test_compiled_newton_is_the_plain_one(phi, weights, seed):
    edges = random_edges(np.random.default_rng(seed), most=20, weights=weights, offsets=phi != "exponential")
    pieces = Pieces.of(objective(edges, phi))
    (alpha, _, settled), (twin, _, twin_settled) = (
        within_blocks(pieces, 1e-11, 200, compiled=compiled) for compiled in (True, False)
    )
    assert settled.all()
    assert twin_settled.all()
    value, plain = pieces.within.value(alpha), pieces.within.value(twin)
    np.testing.assert_allclose(value, plain, rtol=1e-11, atol=1e-12)
    gaps, twins = pieces.within.gaps(alpha), pieces.within.gaps(twin)
    if phi == "squared-hinge":  # only shortfalls are unique
        gaps, twins = np.minimum(gaps, 1.0), np.minimum(twins, 1.0)
    np.testing.assert_allclose(gaps, twins, atol=1e-8)


@pytest.mark.parametrize("phi", ["logistic", "exponential"])
@given(seeds)
@example(2196)
@example(1056)
@some
def test_weights_far_apart(phi, seed):
    """24 orders of magnitude: each item's derivative is small against the terms it is the sum of, or it is said.

    Of 10,000 cases 12 have one component (of some 20) where rounding leaves more than 1e-11 of the terms.
    """
    pieces = Pieces.of(objective(random_edges(np.random.default_rng(seed), 4, 10, "far apart", False), phi))
    alpha, _, settled = within_blocks(pieces, 1e-11, 200)
    assert np.isfinite(alpha).all()
    assert np.count_nonzero(~settled) <= 1
    slope, terms = np.zeros(len(alpha)), np.zeros(len(alpha))
    edges = pieces.within.edges
    for i, j, w in zip(edges.winner, edges.loser, edges.weight, strict=True):
        t = alpha[i] - alpha[j]
        term = w * (np.exp(-t) if phi == "exponential" else expit(-t))
        slope[i] -= term
        slope[j] += term
        terms[[i, j]] += term
    assert (np.abs(slope) <= 1.1e-11 * terms)[settled[pieces.block]].all()


def test_exponentials_of_offsets_beyond_floats():
    """e^h is a factor of the weight: the same minimiser with all offsets of a block less, whatever its value."""
    ends = np.array([0, 1, 2, 0]), np.array([1, 2, 0, 2])
    offset = np.array([9.0, 0.0, 1.0, 8.0])
    low, high = (
        minimise(objective(WeightedEdges.of(np.array([0, 3]), *ends, np.ones(4), offset=offset + more), "exponential"))
        for more in (0.0, 1000.0)
    )
    np.testing.assert_allclose(high.alpha, low.alpha, atol=1e-10)
    assert (high.value[0], high.status[0]) == (np.inf, Status.ATTAINED)


def test_a_pair_loss_without_a_compiled_twin_is_minimised_too():
    """φ(t) = log(1 + e^−2t): logistic on doubled scores, under a name that no kernel knows."""
    plain = pair_loss("logistic")
    other = PairLoss(
        "steep",
        "log(1 + e^(−2t))",
        lambda t: plain.value(2 * t),
        lambda t: 2 * plain.derivative(2 * t),
        lambda t: 4 * plain.second(2 * t),
    )
    edges = random_edges(np.random.default_rng(2), offsets=False)
    found, twin = minimise(objective(edges, other)), minimise(objective(edges, plain))
    assert (found.status == twin.status).all()
    np.testing.assert_allclose(found.value, twin.value, rtol=1e-10)
    for graph in range(len(found.value)):
        np.testing.assert_allclose(2 * all_pairs(found, graph), all_pairs(twin, graph), atol=1e-8)
    gains = GainsToAll(np.array([0, 3]), np.array([0.5, 0.2, 0.1]))
    ours, theirs = (minimise(objective(gains, phi)) for phi in (other, plain))
    np.testing.assert_allclose(2 * ours.alpha, theirs.alpha, atol=1e-9)
    with pytest.raises(UsageError, match="kinked has a kink near"):
        PairLoss(
            "kinked",
            "log(1 + e^(−t)) + max(0, −t)",
            lambda t: plain.value(t) + np.maximum(-t, 0),
            lambda t: plain.derivative(t) - (t < 0),
            plain.second,
        )


@pytest.mark.parametrize("phi", SMOOTH)
def test_large_blocks_by_conjugate_gradients(phi, monkeypatch):
    rng = np.random.default_rng(6)
    m = 600
    winner = rng.integers(0, m, 8 * m)
    edges = WeightedEdges.of(
        np.array([0, m]), winner, (winner + rng.integers(1, m, 8 * m)) % m, rng.random(8 * m) + 0.1
    )
    risk = objective(edges, phi)
    found = minimise(risk)
    assert Pieces.of(risk).size.max() > newton_blocks.MANY
    assert found.status[0] != Status.STOPPED
    assert found.gradient[0] < 1e-9
    monkeypatch.setattr(newton_blocks, "MANY", m)  # elimination
    twin = minimise(risk)
    np.testing.assert_allclose(found.value, twin.value, rtol=1e-12)
    pairs = found.rigid[edges.winner] == found.rigid[edges.loser]
    assert pairs.mean() > 0.9
    gaps = [each.least_gaps(edges.winner[pairs], edges.loser[pairs]) for each in (found, twin)]
    np.testing.assert_allclose(*gaps, atol=1e-8)


def test_long_chains_and_dense_acyclic_graphs_are_quick():
    m = 20_000
    step = np.arange(m - 1)
    one_way = WeightedEdges.of(np.array([0, m]), step, step + 1, np.ones(m - 1))
    both = np.concatenate((step, step + 1)), np.concatenate((step + 1, step))
    chain = WeightedEdges.of(np.array([0, m]), *both, np.repeat([2.0, 1.0], m - 1))
    assert minimise(objective(one_way, "hinge")).value[0] == 0
    found = minimise(objective(one_way, "squared-hinge"))
    assert found.status[0] == Status.NOT_UNIQUE
    np.testing.assert_allclose(found.alpha[:-1] - found.alpha[1:], 1.0)
    assert minimise(objective(one_way, "logistic")).status[0] == Status.NOT_ATTAINED
    found = minimise(objective(chain, "logistic"))
    np.testing.assert_allclose(found.alpha[:-1] - found.alpha[1:], np.log(2.0), atol=1e-9)
    above, below = np.triu_indices(300, 1)
    dense = WeightedEdges.of(np.array([0, 300]), above, below, np.ones(len(above)))
    found = minimise(objective(dense, "hinge"))
    assert (found.value[0], found.status[0]) == (0.0, Status.NOT_UNIQUE)
    np.testing.assert_allclose(found.least_gaps(above, below), below - above)  # by the chain between them


# -- gains against all -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("phi", PHIS)
@given(seeds)
@some
def test_gains_to_all_in_closed_form_are_those_of_their_arcs(phi, seed):
    rng = np.random.default_rng(seed)
    start = np.concatenate(([0], np.cumsum(rng.integers(1, 7, 5))))
    gain = rng.choice([0.0, 0.1, 0.3, 0.9], start[-1]) * rng.choice([1.0, rng.random()], start[-1])
    edges = GainsToAll(start, gain)
    pairs = [(i, j) for s, e in itertools.pairwise(start) for i, j in itertools.permutations(range(s, e), 2) if gain[i]]
    winner, loser = np.array(pairs, np.int64).reshape(-1, 2).T
    assert (edges.winner.tolist(), edges.loser.tolist()) == (winner.tolist(), loser.tolist())
    assert edges.weight.tolist() == gain[winner].tolist()
    found = minimise(objective(GainsToAll(start, gain), phi))
    plain = minimise(objective(WeightedEdges.of(start, winner, loser, gain[winner]), phi))
    assert (found.status == plain.status).all()
    np.testing.assert_allclose(found.value, plain.value, rtol=1e-9, atol=1e-9)
    same = found.component[:, None] == found.component
    assert (same == (plain.component[:, None] == plain.component)).all()
    for graph in range(5):
        np.testing.assert_allclose(found.smallest_differences(graph), plain.smallest_differences(graph), atol=1e-6)
        np.testing.assert_allclose(all_pairs(found, graph), plain.smallest_differences(graph), atol=1e-6)


@pytest.mark.parametrize("phi", ["logistic", "exponential"])
def test_gains_of_many_items_are_those_of_all_pairs(phi, monkeypatch):
    """Three graphs, two of them large, some items without gain."""
    rng = np.random.default_rng(1)
    start = np.array([0, 400, 410, 900])
    gain = rng.random(900) ** 6 * (rng.random(900) < 0.9)
    risk = objective(GainsToAll(start, gain), phi)
    by_pairs = minimise(risk)
    monkeypatch.setattr(gains_to_all, "LARGE", 100)
    found = minimise(risk)
    assert (found.status == Status.NOT_ATTAINED).all()
    np.testing.assert_allclose(found.value, by_pairs.value, rtol=1e-13)
    np.testing.assert_array_equal(found.value[1], by_pairs.value[1])
    positive = gain[:400][gain[:400] > 0]
    alpha = np.log(positive) + rng.normal(size=len(positive)) / 5  # not the minimiser
    value, slope, terms = gains_to_all.expanded(risk.phi, positive, alpha)
    one = objective(GainsToAll(np.array([0, len(positive)]), positive), phi)
    assert value == pytest.approx(one.value(alpha)[0], rel=1e-13)
    assert np.abs(slope - one.gradient(alpha)).max() < 1e-13 * terms.max()


# -- all minimisers ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("phi", PHIS)
@given(seeds)
@some
def test_least_gaps_are_the_smallest_differences(phi, seed):
    found = minimise(objective(random_edges(np.random.default_rng(seed)), phi))
    for graph in range(len(found.value)):
        np.testing.assert_allclose(all_pairs(found, graph), found.smallest_differences(graph), atol=1e-9)
    assert (found.unique == (found.status == Status.ATTAINED)).all()
    nodes = np.flatnonzero(found.unique[found.objective.owner])
    other = np.roll(nodes, 1)
    together = found.component[nodes] == found.component[other]
    exact = np.where(together, found.alpha[nodes] - found.alpha[other], -np.inf)
    np.testing.assert_array_equal(found.least_gaps(nodes, other), exact)


def test_differences_beyond_an_endless_one_are_endless():
    """0 → 1 and 2 → 3 tend to infinity, 1 → 2 and 4 → 0 are bounded by 1."""
    bounds = Bounds(np.array([0, 1, 2, 4]), np.array([1, 2, 3, 0]), np.array([np.inf, 1.0, np.inf, 1.0]))
    alpha, nodes = np.array([80.0, 40.0, 38.0, 0.0, 82.0]), np.arange(5)
    plain = smallest_differences(bounds, alpha, 0, 5)
    above, below = np.repeat(nodes, 5), np.tile(nodes, 5)
    quick = least_gaps(bounds, alpha, np.zeros(5, np.int64), nodes, above, below).reshape(5, 5)
    np.testing.assert_array_equal(quick, plain)
    np.testing.assert_array_equal(plain[0], [0, np.inf, np.inf, np.inf, -np.inf])
    assert (plain[4, 0], plain[1, 2], plain[4, 2], plain[2, 1]) == (1, 1, np.inf, -np.inf)


@pytest.mark.parametrize("phi", ["hinge", "squared-hinge"])
@given(seeds)
@some
def test_loose_nodes_by_shortest_paths_are_those_of_bellman_and_ford(phi, seed):
    found = minimise(objective(random_edges(np.random.default_rng(seed), most=6), phi))
    pieces = Pieces.of(found.objective)
    inside = pieces.block[found.bounds.above] == pieces.block[found.bounds.below]
    bounds = found.bounds.only(inside)
    plain = loose_nodes(bounds, found.alpha, pieces.root)
    quick = loose_blocks(bounds, found.alpha, found.objective.owner, found.rigid, pieces.root)
    number = len(plain)
    np.testing.assert_array_equal(
        np.bincount(pieces.block, plain, number) > 0, np.bincount(pieces.block, quick, number) > 0
    )


def test_where_paths_are_too_much_work_the_bound_of_the_pair_stands(monkeypatch):
    step = np.arange(3)
    edges = WeightedEdges.of(np.array([0, 4]), np.append(step, 0), np.append(step + 1, 3), np.ones(4))
    found = minimise(objective(edges, "hinge"))
    pairs = [0, 0, 0, 3], [1, 3, 2, 0]
    np.testing.assert_array_equal(found.least_gaps(*pairs), [1, 3, 2, -np.inf])
    monkeypatch.setattr(faces, "WORK", 0)
    np.testing.assert_array_equal(found.least_gaps(*pairs), [1, 1, -np.inf, -np.inf])


@given(seeds)
@some
def test_longest_paths_are_those_of_sweeps(seed):
    rng = np.random.default_rng(seed)
    pieces = Pieces.of(objective(random_edges(rng, most=15, degree=2), "hinge"))
    ends = pieces.objective.edges.winner[pieces.across], pieces.objective.edges.loser[pieces.across]
    need = rng.normal(size=len(ends[0]))
    upper, lower = (pieces.block[nodes] for nodes in ends)
    np.testing.assert_array_equal(pieces.depths(need), levels(pieces.number, upper, lower, need))


def test_pairs_of_nodes_that_do_not_fit():
    found = minimise(objective(random_edges(np.random.default_rng(0)), "hinge"))
    with pytest.raises(UsageError, match="columns of one length"):
        found.least_gaps([0, 1], [0])
    with pytest.raises(UsageError, match="2 nodes are not among"):
        found.least_gaps([0, -1], [10_000, 0])
    assert found.least_gaps([], []).tolist() == []


# -- batches -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("phi", PHIS)
@given(seeds)
@some
def test_items_and_graphs_may_be_renumbered(phi, seed):
    """Graphs in another order, items within them too: the same value, status and least differences."""
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, graphs=5)
    size = np.diff(edges.node_start)
    order = rng.permutation(5)
    start = np.concatenate(([0], np.cumsum(size[order])))
    new = np.empty(edges.node_start[-1], np.int64)
    for place, graph in enumerate(order):
        new[edges.node_start[graph] : edges.node_start[graph + 1]] = start[place] + rng.permutation(size[graph])
    shuffled = rng.permutation(len(edges.weight))
    ends = new[edges.winner[shuffled]], new[edges.loser[shuffled]]
    moved = WeightedEdges.of(start, *ends, edges.weight[shuffled], offset=edges.offset[shuffled])
    found, other = minimise(objective(edges, phi)), minimise(objective(moved, phi))
    assert (found.status[order] == other.status).all()
    np.testing.assert_allclose(found.value[order], other.value, rtol=1e-9, atol=1e-9)
    if len(edges.winner):
        gaps = found.least_gaps(edges.winner, edges.loser), other.least_gaps(new[edges.winner], new[edges.loser])
        np.testing.assert_allclose(*gaps, atol=1e-7)


@pytest.mark.parametrize("phi", PHIS)
def test_a_graph_alone_is_the_same_to_the_last_bit(phi):
    edges = random_edges(np.random.default_rng(9), graphs=30, most=25)
    together = minimise(objective(edges, phi))
    for graph in (0, 11, 29):
        start, stop = edges.node_start[graph : graph + 2]
        mine = (edges.winner >= start) & (edges.winner < stop)
        ends = edges.winner[mine] - start, edges.loser[mine] - start
        one = WeightedEdges.of(np.array([0, stop - start]), *ends, edges.weight[mine], offset=edges.offset[mine])
        alone = minimise(objective(one, phi))
        np.testing.assert_array_equal(alone.alpha, together.alpha[start:stop])
        assert alone.value[0] == together.value[graph]


def test_what_is_no_objective_is_refused() -> None:
    with pytest.raises(UsageError, match="minimise takes an objective, not int; surrogate"):
        minimise(3)  # type: ignore[arg-type]


# -- one point, or many ----------------------------------------------------------------------------------------------
EVERY = [phi for phi in (*PAIR_LOSSES.values(), *TOYS.values()) if phi.bounded]


def moves(found, graph, rng):
    """Changes of one graph's scores that change a difference within a component: of nodes, of sets, at random."""
    start, stop = found.objective.edges.node_start[graph : graph + 2]
    component, m = found.component[start:stop], stop - start
    for length in (0.5, -0.5, 0.05, -0.05):
        for direction in (*np.eye(m), *rng.integers(0, 2, (8, m)), *rng.normal(size=(8, m))):
            some = [np.ptp(direction[component == one]) for one in np.unique(component)]
            if max(some) > 0.1:
                move = np.zeros(len(found.alpha))
                move[start:stop] = length * direction
                yield move


@pytest.mark.parametrize("phi", EVERY, ids=lambda phi: phi.name)
@given(seeds)
@example(3)
@settings(max_examples=25)
def test_what_is_called_one_point_is_one_and_many_are_many(phi, seed):
    """Every move away from a unique minimiser costs; of many minimisers two are shown, of one value."""
    rng = np.random.default_rng(seed)
    risk = objective(random_edges(rng, graphs=6, most=5, weights=["counts", "shares"][seed % 2]), phi)
    found = minimise(risk)
    total = np.bincount(risk.owner[risk.edges.winner], risk.edges.weight, len(risk))
    assert (found.status != Status.STOPPED).all()
    for graph in range(len(risk)):
        for move in moves(found, graph, rng):
            more = risk.value(found.alpha + move)[graph] - found.value[graph]
            assert more > (1e-10 if found.unique[graph] else -1e-9) * total[graph]
        if found.status[graph] == Status.NOT_UNIQUE:
            nodes = np.arange(*risk.edges.node_start[graph : graph + 2])
            ends = [found.extreme(nodes[i : i + 1], lowest) for i in range(len(nodes)) for lowest in (True, False)]
            for end in ends:
                assert risk.value(end)[graph] <= found.value[graph] + 1e-7 * (1 + total[graph])
            same = found.component[nodes] == found.component[nodes][:, None]
            gaps = np.array([end[nodes] - end[nodes][:, None] for end in ends])
            assert (np.ptp(gaps, axis=0) * same).max() > 1e-6

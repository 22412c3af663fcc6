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
from concordant.losses.margins import Margin, margin_function, value_penalty
from concordant.losses.minimise import ATTAINED, LEFT_OUT, NOT_ATTAINED, NOT_UNIQUE, STOPPED, minimise, within_blocks
from concordant.losses.objective import Arcs, GainsToAll, Objective
from concordant.losses.pieces import Pieces, levels

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


def objective(arcs, phi):
    chosen = phi if isinstance(phi, Margin) else margin_function(phi)
    return Objective(arcs, chosen, value_penalty("square"))


def random_arcs(rng, graphs=8, most=12, weights="counts", margins=True, degree=4):
    """A ragged batch of random arcs, some of them twice; few items make strong components, many make several."""
    size = rng.integers(1, most + 1, graphs)
    start = np.concatenate(([0], np.cumsum(size)))
    ends = [np.zeros((2, 0), np.int64)]
    for first, m in zip(start, size, strict=False):
        if m > 1:
            winner = rng.integers(0, m, rng.integers(0, degree * m))
            ends.append(first + np.stack((winner, (winner + rng.integers(1, m, len(winner))) % m)))
    winner, loser = np.concatenate(ends, axis=1)
    margin = rng.choice([0.0, 0.0, 0.5, 2.0], len(winner)) if margins else None
    return Arcs.plain(start, winner, loser, WEIGHTS[weights](rng, len(winner)), margin=margin)


def all_pairs(found, graph):
    start, stop = found.objective.arcs.node_start[graph : graph + 2]
    nodes = np.arange(start, stop)
    gaps = found.least_gaps(np.repeat(nodes, len(nodes)), np.tile(nodes, len(nodes)))
    return gaps.reshape(len(nodes), len(nodes))


# -- the hinge -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("weights", ["counts", "shares", "reals"])
@given(seeds)
@some
def test_the_network_simplex_is_the_linear_programme(weights, seed):
    risk = objective(random_arcs(np.random.default_rng(seed), weights=weights), "hinge")
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
    pieces = Pieces.of(objective(random_arcs(np.random.default_rng(seed), 4, most, weights), "hinge"))
    alpha, dual, _, left_out = by_circulation(pieces)
    arcs, nodes = pieces.within.arcs, len(pieces.block)
    assert not left_out.any()
    assert (dual >= 0).all()
    assert (dual <= arcs.weight).all()
    out, into = (np.bincount(ends, dual, nodes) for ends in (arcs.winner, arcs.loser))
    np.testing.assert_allclose(out, into, rtol=1e-12, atol=1e-12 * arcs.weight.max(initial=0))
    worth = np.bincount(pieces.within.owner[arcs.winner], dual * (1 + arcs.margin), len(pieces.within))
    np.testing.assert_allclose(pieces.within.value(alpha), worth, rtol=1e-10, atol=1e-12 * arcs.weight.max(initial=0))


def test_ties_everywhere_do_not_send_the_simplex_in_circles(monkeypatch):
    """Equal weights on all arcs of many items: nearly every step is degenerate."""

    def asked(*_):
        raise AssertionError("the linear programme was asked")

    monkeypatch.setattr(hinge, "by_linear_programme", asked)
    for m, margin in itertools.product((2, 7, 24), (0.0, 1.0)):
        pairs = np.array(list(itertools.permutations(range(m), 2)))
        arcs = Arcs.plain(np.array([0, m]), *pairs.T, np.ones(len(pairs)), margin=np.full(len(pairs), margin))
        found = minimise(objective(arcs, "hinge"))
        assert found.value[0] == pytest.approx((1 + margin) * m * (m - 1))  # a tie of all is among the best
        assert (all_pairs(found, 0)[~np.eye(m, dtype=bool)] < 0).all()


def test_what_the_simplex_does_not_finish_the_programme_does(monkeypatch):
    arcs = random_arcs(np.random.default_rng(4), most=30)
    once = minimise(objective(arcs, "hinge"))
    monkeypatch.setattr(hinge, "STEPS", 0)
    again = minimise(objective(arcs, "hinge"))
    assert again.iterations.max() == 0 < once.iterations.max()
    np.testing.assert_allclose(again.value, once.value, atol=1e-9)
    assert (again.status == once.status).all()


def test_what_is_too_large_is_left_out_and_said(monkeypatch):
    cycle = np.array([0, 1, 2]), np.array([1, 2, 0])
    winner, loser = (np.concatenate((ends, [3, 4])) for ends in cycle)
    winner, loser = np.append(winner, 5), np.append(loser, 6)
    loser[3:5] = 4, 3
    arcs = Arcs.plain(np.array([0, 3, 5, 7]), winner, loser, np.ones(6))
    whole = minimise(objective(arcs, "hinge"))
    assert whole.value.tolist() == [3.0, 2.0, 0.0]
    monkeypatch.setattr(hinge, "LARGEST", 8)
    found = minimise(objective(arcs, "hinge"))
    assert found.status.tolist() == [LEFT_OUT, *whole.status[1:]]
    np.testing.assert_array_equal(found.value, [np.nan, 2.0, 0.0])
    np.testing.assert_array_equal(np.isnan(found.alpha), np.arange(7) < 3)
    gaps = found.least_gaps([0, 3, 5, 0, 5], [1, 4, 6, 3, 3])
    np.testing.assert_array_equal(gaps, [np.nan, -1.0, 1.0, np.nan, -np.inf])
    assert np.isnan(found.smallest_differences(0)[0, 1])
    assert minimise(objective(arcs, "logistic")).status.tolist() == [ATTAINED, ATTAINED, NOT_ATTAINED]


# -- smooth φ ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("phi", SMOOTH)
@pytest.mark.parametrize("weights", ["counts", "reals"])
@given(seeds)
@some
def test_compiled_newton_is_the_plain_one(phi, weights, seed):
    arcs = random_arcs(np.random.default_rng(seed), most=20, weights=weights, margins=phi != "exponential")
    pieces = Pieces.of(objective(arcs, phi))
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
    pieces = Pieces.of(objective(random_arcs(np.random.default_rng(seed), 4, 10, "far apart", False), phi))
    alpha, _, settled = within_blocks(pieces, 1e-11, 200)
    assert np.isfinite(alpha).all()
    assert np.count_nonzero(~settled) <= 1
    slope, terms = np.zeros(len(alpha)), np.zeros(len(alpha))
    arcs = pieces.within.arcs
    for i, j, w in zip(arcs.winner, arcs.loser, arcs.weight, strict=True):
        t = alpha[i] - alpha[j]
        term = w * (np.exp(-t) if phi == "exponential" else expit(-t))
        slope[i] -= term
        slope[j] += term
        terms[[i, j]] += term
    assert (np.abs(slope) <= 1.1e-11 * terms)[settled[pieces.block]].all()


def test_exponentials_of_margins_beyond_floats():
    """e^h is a factor of the weight: the same minimiser with all margins of a block less, whatever its value."""
    ends = np.array([0, 1, 2, 0]), np.array([1, 2, 0, 2])
    margin = np.array([9.0, 0.0, 1.0, 8.0])
    low, high = (
        minimise(objective(Arcs.plain(np.array([0, 3]), *ends, np.ones(4), margin=margin + more), "exponential"))
        for more in (0.0, 1000.0)
    )
    np.testing.assert_allclose(high.alpha, low.alpha, atol=1e-10)
    assert (high.value[0], high.status[0]) == (np.inf, ATTAINED)


def test_a_margin_function_without_a_compiled_twin_is_minimised_too():
    """φ(t) = log(1 + e^−2t): logistic on doubled scores, under a name that no kernel knows."""
    plain = margin_function("logistic")
    other = Margin(
        "steep",
        lambda t: plain.value(2 * t),
        lambda t: 2 * plain.derivative(2 * t),
        lambda t: 4 * plain.second(2 * t),
        "log(1 + e^(−2t))",
        smooth=True,
        infimum=0.0,
    )
    arcs = random_arcs(np.random.default_rng(2), margins=False)
    found, twin = minimise(objective(arcs, other)), minimise(objective(arcs, plain))
    assert (found.status == twin.status).all()
    np.testing.assert_allclose(found.value, twin.value, rtol=1e-10)
    for graph in range(len(found.value)):
        np.testing.assert_allclose(2 * all_pairs(found, graph), all_pairs(twin, graph), atol=1e-8)
    gains = GainsToAll(np.array([0, 3]), np.array([0.5, 0.2, 0.1]))
    ours, theirs = (minimise(objective(gains, phi)) for phi in (other, plain))
    np.testing.assert_allclose(2 * ours.alpha, theirs.alpha, atol=1e-9)
    kinked = Margin("kinked", plain.value, plain.derivative, plain.second, "", smooth=False, infimum=0.0)
    with pytest.raises(UsageError, match="kinked has a kink"):
        minimise(objective(arcs, kinked))


@pytest.mark.parametrize("phi", SMOOTH)
def test_large_blocks_by_conjugate_gradients(phi, monkeypatch):
    rng = np.random.default_rng(6)
    m = 600
    winner = rng.integers(0, m, 8 * m)
    arcs = Arcs.plain(np.array([0, m]), winner, (winner + rng.integers(1, m, 8 * m)) % m, rng.random(8 * m) + 0.1)
    risk = objective(arcs, phi)
    found = minimise(risk)
    assert Pieces.of(risk).size.max() > newton_blocks.MANY
    assert found.status[0] != STOPPED
    assert found.gradient[0] < 1e-9
    monkeypatch.setattr(newton_blocks, "MANY", m)  # elimination
    twin = minimise(risk)
    np.testing.assert_allclose(found.value, twin.value, rtol=1e-12)
    pairs = found.rigid[arcs.winner] == found.rigid[arcs.loser]
    assert pairs.mean() > 0.9
    gaps = [each.least_gaps(arcs.winner[pairs], arcs.loser[pairs]) for each in (found, twin)]
    np.testing.assert_allclose(*gaps, atol=1e-8)


def test_long_chains_and_dense_acyclic_graphs_are_quick():
    m = 20_000
    step = np.arange(m - 1)
    one_way = Arcs.plain(np.array([0, m]), step, step + 1, np.ones(m - 1))
    both = np.concatenate((step, step + 1)), np.concatenate((step + 1, step))
    chain = Arcs.plain(np.array([0, m]), *both, np.repeat([2.0, 1.0], m - 1))
    assert minimise(objective(one_way, "hinge")).value[0] == 0
    found = minimise(objective(one_way, "squared-hinge"))
    assert found.status[0] == NOT_UNIQUE
    np.testing.assert_allclose(found.alpha[:-1] - found.alpha[1:], 1.0)
    assert minimise(objective(one_way, "logistic")).status[0] == NOT_ATTAINED
    found = minimise(objective(chain, "logistic"))
    np.testing.assert_allclose(found.alpha[:-1] - found.alpha[1:], np.log(2.0), atol=1e-9)
    above, below = np.triu_indices(300, 1)
    dense = Arcs.plain(np.array([0, 300]), above, below, np.ones(len(above)))
    found = minimise(objective(dense, "hinge"))
    assert (found.value[0], found.status[0]) == (0.0, NOT_UNIQUE)
    np.testing.assert_allclose(found.least_gaps(above, below), below - above)  # by the chain between them


# -- gains against all -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("phi", PHIS)
@given(seeds)
@some
def test_gains_to_all_in_closed_form_are_those_of_their_arcs(phi, seed):
    rng = np.random.default_rng(seed)
    start = np.concatenate(([0], np.cumsum(rng.integers(1, 7, 5))))
    gain = rng.choice([0.0, 0.1, 0.3, 0.9], start[-1]) * rng.choice([1.0, rng.random()], start[-1])
    arcs = GainsToAll(start, gain)
    pairs = [(i, j) for s, e in itertools.pairwise(start) for i, j in itertools.permutations(range(s, e), 2) if gain[i]]
    winner, loser = np.array(pairs, np.int64).reshape(-1, 2).T
    assert (arcs.winner.tolist(), arcs.loser.tolist()) == (winner.tolist(), loser.tolist())
    assert arcs.weight.tolist() == gain[winner].tolist()
    found = minimise(objective(GainsToAll(start, gain), phi))
    plain = minimise(objective(Arcs.plain(start, winner, loser, gain[winner]), phi))
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
    assert (found.status == NOT_ATTAINED).all()
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
    found = minimise(objective(random_arcs(np.random.default_rng(seed)), phi))
    for graph in range(len(found.value)):
        np.testing.assert_allclose(all_pairs(found, graph), found.smallest_differences(graph), atol=1e-9)
    assert (found.unique == (found.status == ATTAINED)).all()
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
    found = minimise(objective(random_arcs(np.random.default_rng(seed), most=6), phi))
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
    arcs = Arcs.plain(np.array([0, 4]), np.append(step, 0), np.append(step + 1, 3), np.ones(4))
    found = minimise(objective(arcs, "hinge"))
    pairs = [0, 0, 0, 3], [1, 3, 2, 0]
    np.testing.assert_array_equal(found.least_gaps(*pairs), [1, 3, 2, -np.inf])
    monkeypatch.setattr(faces, "WORK", 0)
    np.testing.assert_array_equal(found.least_gaps(*pairs), [1, 1, -np.inf, -np.inf])


@given(seeds)
@some
def test_longest_paths_are_those_of_sweeps(seed):
    rng = np.random.default_rng(seed)
    pieces = Pieces.of(objective(random_arcs(rng, most=15, degree=2), "hinge"))
    ends = pieces.objective.arcs.winner[pieces.across], pieces.objective.arcs.loser[pieces.across]
    need = rng.normal(size=len(ends[0]))
    upper, lower = (pieces.block[nodes] for nodes in ends)
    np.testing.assert_array_equal(pieces.depths(need), levels(pieces.number, upper, lower, need))


def test_pairs_of_nodes_that_do_not_fit():
    found = minimise(objective(random_arcs(np.random.default_rng(0)), "hinge"))
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
    arcs = random_arcs(rng, graphs=5)
    size = np.diff(arcs.node_start)
    order = rng.permutation(5)
    start = np.concatenate(([0], np.cumsum(size[order])))
    new = np.empty(arcs.node_start[-1], np.int64)
    for place, graph in enumerate(order):
        new[arcs.node_start[graph] : arcs.node_start[graph + 1]] = start[place] + rng.permutation(size[graph])
    shuffled = rng.permutation(len(arcs.weight))
    ends = new[arcs.winner[shuffled]], new[arcs.loser[shuffled]]
    moved = Arcs.plain(start, *ends, arcs.weight[shuffled], margin=arcs.margin[shuffled])
    found, other = minimise(objective(arcs, phi)), minimise(objective(moved, phi))
    assert (found.status[order] == other.status).all()
    np.testing.assert_allclose(found.value[order], other.value, rtol=1e-9, atol=1e-9)
    if len(arcs.winner):
        gaps = found.least_gaps(arcs.winner, arcs.loser), other.least_gaps(new[arcs.winner], new[arcs.loser])
        np.testing.assert_allclose(*gaps, atol=1e-7)


@pytest.mark.parametrize("phi", PHIS)
def test_a_graph_alone_is_the_same_to_the_last_bit(phi):
    arcs = random_arcs(np.random.default_rng(9), graphs=30, most=25)
    together = minimise(objective(arcs, phi))
    for graph in (0, 11, 29):
        start, stop = arcs.node_start[graph : graph + 2]
        mine = (arcs.winner >= start) & (arcs.winner < stop)
        ends = arcs.winner[mine] - start, arcs.loser[mine] - start
        one = Arcs.plain(np.array([0, stop - start]), *ends, arcs.weight[mine], margin=arcs.margin[mine])
        alone = minimise(objective(one, phi))
        np.testing.assert_array_equal(alone.alpha, together.alpha[start:stop])
        assert alone.value[0] == together.value[graph]


def test_what_is_no_objective_is_refused() -> None:
    with pytest.raises(UsageError, match="minimise takes an objective, not int; surrogate"):
        minimise(3)  # type: ignore[arg-type]

"""The law of elicitation: on known populations every minimiser of a surrogate orders as the surrogate claims.

Parametrised over the registry and what it states: a new member is tested without a new line. The members that claim
nothing must fail on the counterexamples of the papers.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordant.losses.minimise import minimise
from concordant.losses.objective import Population, Relevance
from concordant.losses.pair_losses import pair_loss
from concordant.losses.surrogates import SURROGATES, TRANSFORMS, each_judgment
from concordant.preferences.status import Status
from toy_losses import registered

with registered():
    BOTH = [(name, phi) for name, member in SURROGATES.items() for phi in member.phis]
    CONSISTENT = [pair for pair in BOTH if SURROGATES[pair[0]].consistent(pair[1])]
OF_PAIRS = [(name, phi) for name, phi in BOTH if SURROGATES[name].reads != "scores"]
OF_SCORES = [(name, phi) for name, phi in BOTH if SURROGATES[name].reads == "scores"]
EDGE_BY_EDGE = [pair for pair in BOTH if SURROGATES[pair[0]].edges is each_judgment]  # the form (12)
seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=25)


@pytest.fixture(autouse=True, scope="module")
def toys():
    """Made-up margin functions beside those of the house: what surrogates claim follows from their properties."""
    with registered():
        yield


def population(m, edges):
    """One graph from (winner, loser, strength, share)."""
    winner, loser, strength, share = (np.array(column) for column in zip(*edges, strict=True))
    return Population(np.array([0, m]), winner, loser, strength.astype(float), share.astype(float))


def net_of(people):
    """d_ij = Y_ij − Y_ji of the mean adjacency, straight from the edges."""
    m = int(people.node_start[-1])
    mean = np.zeros((m, m))
    for i, j, y, p in zip(people.winner, people.loser, people.strength, people.share, strict=True):
        mean[i, j] += p * y
    return np.where(np.abs(mean - mean.T) < 1e-12, 0.0, mean - mean.T)


def acyclic(net):
    left = set(range(len(net)))
    while left:
        last = [i for i in left if not any(net[i, j] > 0 for j in left)]
        if not last:
            return False
        left -= set(last)
    return True


def low_noise(net):
    """AoS Definition 4, equality up to rounding."""
    nodes = range(len(net))
    return all(
        net[i, k] >= (net[i, j] + net[j, k]) * (1 - 1e-12)
        for i, j, k in itertools.permutations(nodes, 3)
        if net[i, j] > 0 and net[j, k] > 0
    )


def meets(condition, net):
    return {"acyclic": acyclic, "low noise": low_noise}[condition](net)


def wrong_pairs(smallest, better):
    """Pairs that should stand i above j and do not at every minimiser."""
    return [(i, j) for i, j in zip(*np.nonzero(better), strict=True) if not smallest[i, j] > 0]


def elicited(name, phi, source, **options):
    found = minimise(SURROGATES[name].objective(source, phi=phi, **options))
    assert (found.status != Status.STOPPED).all()
    return found.smallest_differences(0)


# -- populations of preferences ------------------------------------------------------------------------------------
def with_noise(net, rng):
    """A population with this difference graph: opposite judgments on top, strengths of single judgments at random."""
    edges = []
    for i, j in itertools.combinations(range(len(net)), 2):
        common = rng.integers(0, 9) / 8
        for a, b, mass in ((i, j, max(net[i, j], 0) + common), (j, i, max(-net[i, j], 0) + common)):
            strength = rng.choice([0.5, 1.0, 2.0])
            if mass > 0:
                edges.append((a, b, strength, mass / strength))
    return population(len(net), edges or [(0, 1, 1.0, 0.0)])


def low_noise_net(rng):
    """Score differences to a power of at least one (Cossock–Zhang with 1): superadditive along chains."""
    y = rng.permutation(rng.choice(17, rng.integers(2, 7), replace=False)) / 8
    gap = y[:, None] - y
    return np.sign(gap) * np.abs(gap) ** rng.choice([1.0, 2.0])


def acyclic_net(rng):
    m = rng.integers(2, 7)
    net = np.triu(rng.integers(0, 5, (m, m)) / 4.0, 1)
    order = rng.permutation(m)
    return (net - net.T)[np.ix_(order, order)]


def bradley_terry(rng, even=False):
    """Pairs compared with positive probability, even or uneven; σ(r_i − r_j) = chance that i wins."""
    r = rng.permutation(rng.choice(33, rng.integers(2, 7), replace=False)) / 8
    edges = []
    for i, j in itertools.combinations(range(len(r)), 2):
        chance = 1 / (1 + np.exp(r[j] - r[i]))
        often = 1.0 if even else rng.uniform(0.1, 5.0)
        edges += [(i, j, 1.0, often * chance), (j, i, 1.0, often * (1 - chance))]
    return r, population(len(r), edges)


@pytest.mark.parametrize(("name", "phi"), [pair for pair in CONSISTENT if pair in OF_PAIRS])
@given(seeds)
@some
def test_consistent_for_the_pairwise_loss(name, phi, seed):
    rng = np.random.default_rng(seed)
    member = SURROGATES[name]
    assert member.consistent_for == "pairwise"
    nets = [low_noise_net(rng), acyclic_net(rng)]
    assert low_noise(nets[0])
    assert acyclic(nets[0])  # a low-noise difference graph is acyclic (AoS, below Definition 4)
    assert acyclic(nets[1])
    people = [with_noise(net, rng) for net in nets] + [bradley_terry(rng)[1]]
    tested = 0
    for law in people:
        net = net_of(law)
        if meets(member.condition, net):
            tested += 1
            assert not wrong_pairs(elicited(name, phi, law), net > 0)
    assert tested


# -- populations of scores -----------------------------------------------------------------------------------------
def plain_gain(name, score, highest):
    return {
        "identity": score,
        "2^s": 2.0**score,
        "2^s-1": 2.0**score - 1,
        "err": (2.0**score - 1) / 2.0**highest,
    }[name]


def expected(member, law):
    """E G(s_j)/Z(s) or E G(s_j), term by term."""
    gain, highest = member.defaults["gain"], law.scores.max()
    total = [0.0] * law.scores.shape[1]
    for share, scores in zip(law.share, law.scores, strict=True):
        gains = [plain_gain(gain, s, highest) for s in scores.tolist()]
        z = 1.0
        if member.consistent_for == "ndcg":
            z = sum(g / np.log2(2 + place) for place, g in enumerate(sorted(gains, reverse=True)))
        for j, g in enumerate(gains):
            total[j] += share * g / z if z else 0.0
    return np.array(total)


def random_law(member, rng):
    m = int(rng.integers(2, 6))
    if member.condition == "any law":
        draws = int(rng.integers(1, 5))
        return Relevance.of(rng.integers(-8, 13, (draws, m)) / 4, share=rng.dirichlet(np.ones(draws)))
    if rng.random() < 0.5:  # a point
        return Relevance.of(rng.integers(0, 9, m) / 8)
    low, high, chance = rng.integers(0, 5, 3) / 8, rng.integers(4, 9, 3) / 8, rng.uniform(0.1, 0.9, 3)
    corners = list(itertools.product((0, 1), repeat=3))
    scores = [[high[j] if up else low[j] for j, up in enumerate(corner)] for corner in corners]
    share = [np.prod([chance[j] if up else 1 - chance[j] for j, up in enumerate(corner)]) for corner in corners]
    return Relevance.of(scores, share=np.array(share))


@pytest.mark.parametrize(("name", "phi"), [pair for pair in CONSISTENT if pair in OF_SCORES])
@given(seeds)
@some
def test_consistent_for_losses_of_complete_preferences(name, phi, seed):
    member = SURROGATES[name]
    law = random_law(member, np.random.default_rng(seed))
    gains = expected(member, law)
    assert not wrong_pairs(elicited(name, phi, law), gains[:, None] > gains + 1e-6)


# -- the counterexamples -------------------------------------------------------------------------------------------
THEOREM_3 = population(3, [(0, 1, 1.0, 0.25), (1, 2, 1.0, 0.01), (0, 2, 1.0, 0.5), (2, 0, 1.0, 0.24)])


def theorem_2(small=0.2):
    """Half the judgments say 1 ≻ 2 and 1 ≻ 3, half 2 ≻ 3 and 3 ≻ 1; the proof of AoS Theorem 2.

    Y_31 has to stay below Y_13 − Y_12 − Y_23 for low noise (the proof leaves it out).
    """
    return population(3, [(0, 1, 1.0, 0.5), (0, 2, 3.0, 0.5), (1, 2, small, 0.5), (2, 0, 1.0, 0.5)])


COUNTEREXAMPLES = {"Theorem 3": THEOREM_3, "Theorem 2": theorem_2()}
OF_GAINS = [Relevance.of([0.4, 0.32, 0.28]), Relevance.of(np.log2([0.4, 0.32, 0.28]).tolist())]


@pytest.mark.parametrize("law", COUNTEREXAMPLES.values(), ids=COUNTEREXAMPLES)
def test_counterexamples_are_low_noise(law):
    net = net_of(law)
    assert low_noise(net)
    assert (np.triu(net, 1)[np.triu_indices(3, 1)] > 0).all()  # the right order is 1 > 2 > 3


@pytest.mark.parametrize(("name", "phi"), BOTH)
def test_counterexamples_tell_consistent_from_inconsistent(name, phi):
    member = SURROGATES[name]
    if member.reads == "scores":
        lowest_gain = 0.0 if member.defaults["gain"] != "2^s" else -np.inf
        laws = [law for law in OF_GAINS if law.scores.min() >= lowest_gain]
    else:
        laws = list(COUNTEREXAMPLES.values())
    better = np.triu(np.ones((3, 3), bool), 1)
    fails = [bool(wrong_pairs(elicited(name, phi, law), better)) for law in laws]
    if member.consistent(phi):
        assert not any(fails)
    else:
        assert any(fails)


@pytest.mark.parametrize("h", ["identity", "root", "square"])
@pytest.mark.parametrize(("name", "phi"), EDGE_BY_EDGE)
def test_theorem_2_for_other_transforms(name, phi, h):
    """Continuous h with h(0) = 0: Y_23 small enough makes Lemma 13's first condition hold."""
    small = 0.1
    while not half(h, small) < half(h, 1.0) * half(h, 1.0) / (half(h, 3.0) + half(h, 1.0)):
        small /= 2
    law = theorem_2(small)
    assert low_noise(net_of(law))
    assert wrong_pairs(elicited(name, phi, law, h=h), np.triu(np.ones((3, 3), bool), 1))


def half(h, strength):
    return 0.5 * float(TRANSFORMS[h](np.array(strength)))


@pytest.mark.parametrize(("name", "phi"), EDGE_BY_EDGE)
@given(seeds)
@settings(max_examples=60)
def test_lemma_13_rule_on_three_nodes(name, phi, seed):
    """h_23 < h_31 h_12/(h_13 + h_12), or the same with 12 and 23 exchanged: 1 > 2 > 3 is not elicited."""
    rng = np.random.default_rng(seed)
    h12, h23, h31 = rng.uniform(0.05, 1, 3)
    h13 = h31 + rng.uniform(0.01, 1)
    if rng.random() < 0.8:
        h23 = rng.uniform(0.05, 0.99) * h31 * h12 / (h13 + h12)
    if h23 < h31 * h12 / (h13 + h12) or h12 < h31 * h23 / (h13 + h23):
        law = population(3, [(0, 1, 1.0, h12), (1, 2, 1.0, h23), (0, 2, 1.0, h13), (2, 0, 1.0, h31)])
        found = minimise(SURROGATES[name].objective(law, phi=phi))
        smallest = found.smallest_differences(0)
        assert not (smallest[0, 1] > 1e-9 and smallest[1, 2] > 1e-9)


# published minimisers of Theorem 3's four graphs: method, "Consistency, checked on data"
PUBLISHED = {
    "hinge": ((2 / 3, -1 / 3, -1 / 3), 0.49),
    "squared-hinge": ((0.43663417, -0.50076963, 0.06413545), 0.67444844),
    "logistic": ((1.35127846, -1.91113642, 0.55985796), 0.50144587),
    "exponential": ((0.74912717, -1.07295861, 0.32383144), 0.77484259),
}


@pytest.mark.parametrize(("name", "phi"), [pair for pair in EDGE_BY_EDGE if pair[1] in PUBLISHED])
def test_theorem_3_values(name, phi):
    found = minimise(SURROGATES[name].objective(THEOREM_3, phi=phi))
    alpha, value = PUBLISHED[phi]
    np.testing.assert_allclose(found.alpha, alpha, atol=1e-7)
    assert found.value[0] == pytest.approx(value, abs=1e-8)
    assert found.status[0] == Status.ATTAINED  # unique, the hinge's as well


@pytest.mark.parametrize("phi", ["squared-hinge", "logistic", "exponential", "hinge"])
def test_theorem_3_with_margins_is_the_shifted_phi(phi):
    """Form (13): with φ(t) shifted by h the values are those of (12) with φ(t − h); here by scaling and by shifting."""
    found = minimise(SURROGATES["margin-based"].objective(THEOREM_3, phi=phi))
    alpha, value = PUBLISHED[phi]
    if phi in ("hinge", "squared-hinge"):  # max(0, 2 − t) = 2 max(0, 1 − t/2)
        power = 1 if phi == "hinge" else 2
        np.testing.assert_allclose(found.alpha, 2 * np.array(alpha), atol=1e-7)
        assert found.value[0] == pytest.approx(2**power * value, abs=1e-7)
    elif phi == "exponential":
        np.testing.assert_allclose(found.alpha, alpha, atol=1e-7)
        assert found.value[0] == pytest.approx(np.e * value, abs=1e-7)
    assert found.alpha[2] >= found.alpha[1] - 1e-9  # 3 not below 2: wrong, whatever φ


def test_theorem_3_the_linear_loss_orders_by_row_sums():
    found = minimise(SURROGATES["linear"].objective(THEOREM_3, nu=0.5))
    np.testing.assert_allclose(found.alpha, [0.51, -0.24, -0.27], atol=1e-12)  # r' = 2α, ν = ½


def test_theorem_3_the_difference_graph_follows_its_infimum():
    for phi in SURROGATES["difference-graph"].phis:
        found = minimise(SURROGATES["difference-graph"].objective(THEOREM_3, phi=phi))
        assert (np.diff(found.alpha) < 0).all()
        assert found.value[0] == pytest.approx(0, abs=1e-12)
        assert found.status[0] == (Status.NOT_UNIQUE if pair_loss(phi).ends else Status.NOT_ATTAINED)


def test_two_edges_leave_the_lower_items_indifferent():
    law = population(3, [(0, 1, 1.0, 0.5), (0, 2, 1.0, 0.5)])
    for phi in SURROGATES["difference-graph"].phis:
        smallest = elicited("difference-graph", phi, law)
        assert smallest[0, 1] > 0 < smallest[0, 2]
        assert smallest[1, 2] < 0 > smallest[2, 1]


def test_hinge_only_ties_on_gains():
    for name in ("ndcg-pairwise", "err-pairwise"):
        law = OF_GAINS[0] if name == "err-pairwise" else OF_GAINS[1]
        found = minimise(SURROGATES[name].objective(law, phi="hinge"))
        np.testing.assert_allclose(found.alpha, [2 / 3, -1 / 3, -1 / 3], atol=1e-9)


# -- where the inconsistent are right --------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [name for name, member in SURROGATES.items() if "bradley-terry" in member.right_on])
@given(seeds)
@some
def test_right_under_bradley_terry_when_every_pair_is_compared(name, seed):
    r, law = bradley_terry(np.random.default_rng(seed))
    assert not wrong_pairs(elicited(name, None, law), r[:, None] > r)


@given(seeds)
@some
def test_logistic_and_exponential_recover_bradley_terry_abilities(seed):
    r, law = bradley_terry(np.random.default_rng(seed))
    centred = r - r.mean()
    for name, factor in (("ranknet", 1.0), ("rankboost", 0.5)):  # d = log p/(1−p), and half of it
        found = minimise(SURROGATES[name].objective(law))
        np.testing.assert_allclose(found.alpha, factor * centred, atol=1e-8)


@pytest.mark.parametrize("name", [name for name, member in SURROGATES.items() if "two items" in member.right_on])
@given(seeds)
@some
def test_right_for_two_items(name, seed):
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.ones(4))
    law = population(2, [(0, 1, 1.0, share[0]), (0, 1, 2.5, share[1]), (1, 0, 0.4, share[2]), (1, 0, 3.0, share[3])])
    net = net_of(law)
    for phi in SURROGATES[name].phis:
        assert not wrong_pairs(elicited(name, phi, law), net > 1e-9)


@pytest.mark.parametrize("name", ["ranksvm", "ranknet", "rankboost"])
def test_transforms_that_bend_are_wrong_even_for_two_items(name):
    law = population(2, [(0, 1, 1.0, 0.6), (1, 0, 1.4, 0.4)])  # means .6 and .56, mean squares .6 and .784
    assert elicited(name, None, law)[0, 1] > 0
    assert elicited(name, None, law, h="square")[1, 0] > 0


@pytest.mark.parametrize("p", [0.6, 2 / 3, 0.72, 0.8, 0.9])
@pytest.mark.parametrize("far", [1.0, 1.5, 2.0, 2.4, 3.5, 6.0])
def test_order_preserving_laws_of_icml_3_1(p, far):
    """1≻2≻3 with p, 2≻3≻1 with 1−p, neighbours weigh 1: low noise with 1≻2≻3 needs 2 ≤ w_2 < p/(1−p)."""
    law = population(
        3,
        [(0, 1, 1.0, p), (1, 2, 1.0, 1.0), (0, 2, far, p), (2, 0, 1.0, 1 - p), (1, 0, far, 1 - p)],
    )
    net = net_of(law)
    holds = bool(low_noise(net) and net[0, 1] > 0 and net[1, 2] > 0)
    assert holds == (2 <= far < p / (1 - p) * (1 - 1e-12))
    if p <= 2 / 3:
        assert not holds
    if holds:
        for name, phi in CONSISTENT:
            if SURROGATES[name].consistent_for == "pairwise":
                assert not wrong_pairs(elicited(name, phi, law), net > 0)

"""Surrogates on tensors: equal to the NumPy registry, to the formulas, and differentiable.

Skipped where PyTorch is not installed (``pip install "concordant[torch]"``).
"""

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra [torch]", exc_type=ImportError)

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import concordant.torch as ct  # noqa: E402
from concordant.errors import UsageError  # noqa: E402
from concordant.losses import pair_losses as plain  # noqa: E402
from concordant.losses.minimise import minimise  # noqa: E402
from concordant.losses.objective import Objective, Population, Relevance, WeightedEdges  # noqa: E402  # noqa: E402
from concordant.losses.surrogates import SURROGATES, surrogate  # noqa: E402
from concordant.preferences.status import Status  # noqa: E402

torch.set_num_threads(1)  # small tensors: threads would only wait for one another
BOTH = [(name, phi) for name, member in SURROGATES.items() for phi in member.phis]
SMOOTH = [pair for pair in BOTH if SURROGATES[pair[0]].smooth(pair[1])]
seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=12)


def ragged(member, seed):
    """A source of six graphs, among them one without nodes, one with one node and one without edges."""
    rng = np.random.default_rng(seed)
    size = np.array([4, 0, 1, 3, 2, 5])
    start = np.concatenate(([0], np.cumsum(size)))
    if member.reads == "scores":
        scores = rng.integers(0, 5, (2, start[-1])) / 4  # with ties
        return Relevance.of(scores, start, np.array([0.3, 0.7]))
    edges = [
        (start[g] + i, start[g] + j, rng.choice([0.5, 1.0, 2.0]), rng.choice([0.125, 0.25, 0.5]))
        for g in (0, 3, 5)
        for i, j in itertools.permutations(range(size[g]), 2)
        for _ in range(rng.integers(0, 3))
    ]
    rng.shuffle(edges)
    winner, loser, strength, share = (np.array(x) for x in zip(*edges, strict=True)) if edges else [np.zeros(0)] * 4
    return Population(start, winner.astype(np.int64), loser.astype(np.int64), strength, share)


def scores_of(nodes, seed):
    """Scores with ties, away from the kinks of the hinge."""
    rng = np.random.default_rng(seed)
    return rng.choice(rng.normal(size=max(nodes // 2, 1)), nodes)


# -- the parts -------------------------------------------------------------------------------------------------------
def test_every_pair_loss_and_penalty_is_there():
    assert set(ct.MARGINS) == set(plain.PAIR_LOSSES)
    assert set(ct.PENALTIES) == set(plain.PENALTIES)


@pytest.mark.parametrize("kind", ["MARGINS", "PENALTIES"])
def test_parts_equal_those_of_the_registry(kind):
    t = np.array([-700.0, -30.0, -21.0, -3.0, -1.0, -1e-9, 0.0, 0.4, 1.0, 1.2, 19.0, 25.0, 60.0, 700.0])
    for name, theirs in getattr(plain, kind.replace("MARGINS", "PAIR_LOSSES")).items():
        x = torch.tensor(t, requires_grad=True)
        value = getattr(ct, kind)[name](x)
        (slope,) = torch.autograd.grad(value.sum(), x)
        np.testing.assert_allclose(value.detach().numpy(), theirs.value(t), rtol=1e-14, atol=1e-15, err_msg=name)
        np.testing.assert_allclose(slope.numpy(), theirs.derivative(t), rtol=1e-13, atol=0, err_msg=name)


def test_logistic_in_single_precision_has_no_cut():
    x = torch.tensor([-90.0, 25.0, 90.0], requires_grad=True)
    value = ct.MARGINS["logistic"](x)
    value.sum().backward()
    np.testing.assert_allclose(value.detach().numpy(), [90, math.exp(-25), math.exp(-90)], rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), [-1, -math.exp(-25), -math.exp(-90)], rtol=1e-6)


def test_edge_loss_in_loops():
    rng = np.random.default_rng(3)
    scores, winner, loser = rng.normal(size=6), rng.integers(0, 3, 9), rng.integers(3, 6, 9)
    weight, asked = rng.random(9), rng.random(9)
    terms = [
        w * math.log1p(math.exp(-(scores[i] - scores[j] - h)))
        for i, j, w, h in zip(winner, loser, weight, asked, strict=True)
    ]
    tensors = [torch.tensor(x) for x in (scores, winner, loser, weight)]
    for reduction, expected in (("sum", sum(terms)), ("mean", sum(terms) / weight.sum()), ("none", terms)):
        found = ct.edge_loss(*tensors, margin=torch.tensor(asked), reduction=reduction)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)
    graph = torch.tensor([0, 0, 2, 0, 0, 2])
    found = ct.edge_loss(*tensors, margin=torch.tensor(asked), graph=graph, graphs=4, reduction="graph").numpy()
    by_graph = [sum(x for x, i in zip(terms, winner, strict=True) if graph[i] == g) for g in range(4)]
    np.testing.assert_allclose(found, by_graph, rtol=1e-13)


def test_mean_of_no_edges_is_zero_with_a_derivative():
    scores = torch.zeros(3, requires_grad=True)
    none = torch.zeros(0, dtype=torch.int64)
    loss = ct.edge_loss(scores, none, none, reduction="mean")
    loss.backward()
    assert loss.item() == 0
    assert scores.grad.tolist() == [0, 0, 0]


def test_mean_is_the_usual_loss_of_reward_models():
    chosen, rejected = torch.randn(2, 40, generator=torch.Generator().manual_seed(1))
    usual = -torch.nn.functional.logsigmoid(chosen - rejected).mean()
    ours = ct.edge_loss(torch.cat((chosen, rejected)), torch.arange(40), torch.arange(40, 80), reduction="mean")
    assert ours.item() == usual.item()


# -- the registry ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "phi"), BOTH)
@given(seeds)
@some
def test_values_and_derivatives_equal_the_registry(name, phi, seed):
    source = ragged(SURROGATES[name], seed)
    numpy_risk = surrogate(name).objective(source, phi=phi)
    alpha = scores_of(numpy_risk.nodes, seed)
    for risk in (ct.surrogate(name, source, phi=phi), ct.TorchObjective.of(numpy_risk)):
        assert (risk.nodes, len(risk)) == (numpy_risk.nodes, len(numpy_risk))
        x = torch.tensor(alpha, requires_grad=True)
        value = risk(x)
        np.testing.assert_allclose(value.detach().numpy(), numpy_risk.value(alpha), rtol=1e-12, atol=1e-12)
        (slope,) = torch.autograd.grad(value.sum(), x)
        np.testing.assert_allclose(slope.numpy(), numpy_risk.gradient(alpha), rtol=1e-12, atol=1e-12)
        single = risk(torch.tensor(alpha, dtype=torch.float32))
        assert single.dtype == torch.float32
        np.testing.assert_allclose(single.numpy(), numpy_risk.value(alpha), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "phi"), BOTH)
def test_gradcheck(name, phi):
    """Torch's own finite differences, per graph; twice for smooth φ."""
    risk = ct.surrogate(name, ragged(SURROGATES[name], 7), phi=phi)
    x = torch.randn(risk.nodes, dtype=torch.float64, generator=torch.Generator().manual_seed(5), requires_grad=True)
    assert torch.autograd.gradcheck(risk, x)
    if SURROGATES[name].smooth(phi) and phi not in ("linear", "squared-hinge"):
        assert torch.autograd.gradgradcheck(risk, x)


@pytest.mark.parametrize("penalty", plain.PENALTIES)
def test_offsets_and_penalties_together(penalty):
    """No member of the registry has everything at once: the form does."""
    rng = np.random.default_rng(5)
    edges = WeightedEdges(
        np.array([0, 3, 3, 5]),
        np.array([0, 4, 2]),
        np.array([1, 3, 0]),
        *(rng.random(3) for _ in range(2)),
        *(rng.random(5) for _ in range(2)),
    )
    theirs = Objective(edges, plain.pair_loss("logistic"), plain.value_penalty(penalty))
    alpha = rng.normal(size=5)
    x = torch.tensor(alpha, requires_grad=True)
    value = ct.TorchObjective.of(theirs)(x)
    value.sum().backward()
    np.testing.assert_allclose(value.detach().numpy(), theirs.value(alpha), rtol=1e-13)
    np.testing.assert_allclose(x.grad.numpy(), theirs.gradient(alpha), rtol=1e-13)


@pytest.mark.parametrize(("name", "phi"), BOTH)
def test_some_graphs_are_the_graphs(name, phi):
    """Mini-batches: the objective of some graphs has their values at their scores."""
    risk = ct.surrogate(name, ragged(SURROGATES[name], 11), phi=phi)
    x = torch.tensor(scores_of(risk.nodes, 2))
    chosen = torch.tensor([5, 1, 3, 3, 2])
    part = risk.take(chosen)
    own = torch.cat([x[risk.node_start[g] : risk.node_start[g + 1]] for g in chosen])
    torch.testing.assert_close(part(own), risk(x)[chosen], rtol=1e-13, atol=1e-14)
    assert len(risk.take(chosen[:0])) == 0


@pytest.mark.parametrize("seed", [7, 8, 17])  # each member attains its minimum on one of them at least
@pytest.mark.parametrize(("name", "phi"), SMOOTH)
def test_minimisers_equal_those_of_the_registry(name, phi, seed):
    """L-BFGS over free scores reaches the minimum that Newton's method and closed forms find."""
    source = ragged(SURROGATES[name], seed)
    best = minimise(surrogate(name).objective(source, phi=phi))
    risk = ct.surrogate(name, source, phi=phi)
    scorer = ct.LinearScorer(risk.nodes)
    found = ct.fit(scorer, np.eye(risk.nodes), risk, tolerance=1e-8, steps=500)
    values = risk(scorer.weight).detach().numpy()
    np.testing.assert_allclose(values, best.value, atol=1e-7)  # also where the infimum is only approached
    if (best.status == Status.ATTAINED).all():
        assert found.status == "converged"
        alpha = scorer.weight.detach().numpy()
        if not surrogate(name).pulls:
            sums = np.bincount(best.component, alpha) / np.bincount(best.component)
            alpha = alpha - sums[best.component]
        np.testing.assert_allclose(alpha, best.alpha, atol=1e-5)


# -- gains against all others ------------------------------------------------------------------------------------------
def against_all_in_loops(phi, alpha, gains, start):
    f = {
        "hinge": lambda t: max(0.0, 1 - t),
        "squared-hinge": lambda t: max(0.0, 1 - t) ** 2,
        "logistic": lambda t: math.log1p(math.exp(-t)),
        "exponential": lambda t: math.exp(-t),
        "linear": lambda t: -t,
    }[phi]
    return [
        sum(gains[j] * f(alpha[j] - alpha[k]) for j in range(a, b) for k in range(a, b) if j != k)
        for a, b in itertools.pairwise(start)
    ]


@pytest.mark.parametrize("phi", plain.PAIR_LOSSES)
@given(seeds, st.integers(1, 40))
@some
def test_against_all_in_loops(phi, seed, block):
    rng = np.random.default_rng(seed)
    size = np.append(rng.integers(0, 9, 4), 1)
    start = np.concatenate(([0], np.cumsum(size)))
    alpha = rng.choice(rng.normal(scale=2, size=6), start[-1])  # ties, and gaps of every size
    gains = rng.random(start[-1])
    tensors = torch.tensor(alpha, requires_grad=True), torch.tensor(gains), torch.tensor(start)
    found = ct.against_all(*tensors, phi=phi, block=block)
    np.testing.assert_allclose(found.detach().numpy(), against_all_in_loops(phi, alpha, gains, start), rtol=1e-12)
    if start[-1]:
        found.sum().backward()
        slope, step = tensors[0].grad.numpy(), 1e-6
        for node in rng.integers(0, start[-1], 2):
            move = np.zeros(start[-1])
            move[node] = step
            ends = [sum(against_all_in_loops(phi, alpha + s * move, gains, start)) for s in (1, -1)]
            if phi != "hinge" or abs(ends[0] + ends[1] - 2 * found.sum().item()) < 1e-9:  # not at a kink
                assert slope[node] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("phi", plain.PAIR_LOSSES)
def test_queries_of_one_item_have_a_slope_of_zero(phi):
    alpha = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
    found = ct.against_all(alpha, torch.ones(2, dtype=torch.float64), torch.tensor([0, 1, 2]), phi=phi)
    found.sum().backward()
    assert found.tolist() == alpha.grad.tolist() == [0.0, 0.0]


def test_against_all_is_linear_in_memory():
    """4·10^4 items of one query: 1.6·10^9 pairs would be 13 GB for each tensor of them."""
    x = torch.randn(40_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    start = torch.tensor([0, len(x)])
    gains = torch.zeros(len(x), dtype=torch.float64)
    gains[:3] = 1.0  # so that the answer is three sums
    for phi in ("hinge", "squared-hinge", "exponential"):
        value = ct.against_all(x, gains, start, phi=phi)
        value.sum().backward()
        with torch.no_grad():
            direct = sum(ct.MARGINS[phi](x[j] - x).sum() - ct.MARGINS[phi](torch.zeros(())) for j in range(3))
        assert value.item() == pytest.approx(direct.item(), rel=1e-10)


def test_exponential_far_apart_does_not_overflow():
    value = ct.against_all(torch.tensor([1e4, 0.0]), torch.tensor([1.0, 0.0]), torch.tensor([0, 2]), phi="exponential")
    assert value.tolist() == [0.0]


# -- what is said ------------------------------------------------------------------------------------------------------
def test_errors_say_what_is_wrong():
    risk = ct.surrogate("ranknet", ragged(SURROGATES["ranknet"], 1))
    zero, one = torch.tensor([0]), torch.tensor([1])
    with pytest.raises(UsageError, match="3 scores for 15 nodes"):
        risk(torch.zeros(3))
    with pytest.raises(UsageError, match="int64 of shape"):
        risk(torch.zeros(15, dtype=torch.int64))
    with pytest.raises(UsageError, match="unknown margin function 'logistik'; did you mean 'logistic'"):
        ct.edge_loss(torch.zeros(2), zero, one, phi="logistik")
    with pytest.raises(UsageError, match="weight has shape"):
        ct.edge_loss(torch.zeros(2), zero, one, torch.ones(2))
    with pytest.raises(UsageError, match="unknown reduction 'avg'"):
        ct.edge_loss(torch.zeros(2), zero, one, reduction="avg")
    with pytest.raises(UsageError, match="needs graph"):
        ct.edge_loss(torch.zeros(2), zero, one, reduction="graph")
    with pytest.raises(UsageError, match="unknown surrogate"):
        ct.surrogate("rank-net", ragged(SURROGATES["ranknet"], 1))
    with pytest.raises(UsageError, match="has no option 'gane'"):
        ct.surrogate("ndcg-pairwise", Relevance.of([1.0, 0.0]), gane="2^s")
    with pytest.raises(UsageError, match="has no φ 'linear'"):
        ct.surrogate("ndcg-pairwise", Relevance.of([1.0, 0.0]), phi="linear")
    with pytest.raises(UsageError, match="reads scores of the items"):
        ct.surrogate("ndcg-pairwise", ragged(SURROGATES["ranknet"], 1))
    with pytest.raises(UsageError, match="start ends at 3"):
        ct.against_all(torch.zeros(2), torch.zeros(2), torch.tensor([0, 3]))


def test_without_torch_the_error_names_the_extra():
    code = "import sys; sys.modules['torch'] = None; import concordant; from concordant import torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        'ModuleNotFoundError: concordant.torch needs PyTorch, which is not installed: pip install "concordant[torch]"'
    )


def test_importing_concordant_does_not_import_torch():
    code = "import concordant, sys; concordant.Preferences; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

"""The same numbers on a CUDA device as on the CPU. Skipped where there is none.

Runs by itself: ``pytest tests/learning/test_torch_gpu.py``.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra [torch]", exc_type=ImportError)
if not torch.cuda.is_available():
    pytest.skip("no CUDA device here", allow_module_level=True)

import concordant.torch as ct  # noqa: E402
from concordant.errors import UsageError  # noqa: E402
from concordant.losses.objective import Population, Relevance  # noqa: E402
from concordant.losses.pair_losses import PAIR_LOSSES  # noqa: E402
from concordant.losses.surrogates import SURROGATES  # noqa: E402

BOTH = [(name, phi) for name, member in SURROGATES.items() for phi in member.phis]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-4}


def ragged(reads, seed=3, queries=50, most=12):
    rng = np.random.default_rng(seed)
    size = rng.integers(0, most, queries)
    start = np.concatenate(([0], np.cumsum(size)))
    if reads == "scores":
        return Relevance.of(rng.integers(0, 5, (2, start[-1])) / 4, start, np.array([0.3, 0.7]))
    graph = rng.choice(np.flatnonzero(size > 1), 2000)
    i, j = start[graph] + (rng.random((2, 2000)) * size[graph]).astype(int)
    keep = i != j
    return Population(start, i[keep], j[keep], rng.choice([0.5, 1.0], keep.sum()), rng.random(keep.sum()))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("name", "phi"), BOTH)
def test_values_and_derivatives_equal_those_of_the_cpu(name, phi, dtype):
    risk = ct.surrogate(name, ragged(SURROGATES[name].reads), phi=phi)
    x = torch.randn(risk.nodes, dtype=dtype, generator=torch.Generator().manual_seed(1))
    found = []
    for device in ("cpu", "cuda"):
        scores = x.to(device).detach().requires_grad_()
        value = risk.to(device)(scores)
        assert (value.device.type, value.dtype) == (device, dtype)
        value.sum().backward()
        found.append((value.detach().cpu(), scores.grad.cpu()))
    for here, there in zip(*found, strict=True):
        torch.testing.assert_close(there, here, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * 10)


@pytest.mark.parametrize("phi", PAIR_LOSSES)
def test_gradcheck(phi):
    start = torch.tensor([0, 4, 4, 5, 9], device="cuda")
    gains = torch.rand(9, dtype=torch.float64, device="cuda", generator=torch.Generator("cuda").manual_seed(1))
    x = torch.randn(9, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).cuda().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: ct.against_all(s, gains, start, phi=phi), x, nondet_tol=1e-12)


@pytest.mark.parametrize(("method", "batch"), [("lbfgs", None), ("adam", None), ("adam", 7)])
@pytest.mark.parametrize("scorer", [lambda: ct.LinearScorer(5), lambda: ct.ReluScorer(5, 6)])
def test_training_takes_the_same_path(scorer, method, batch):
    source = ragged("judgments")
    risk = ct.surrogate("ranknet", source)
    X = np.random.default_rng(2).normal(size=(risk.nodes, 5))
    x = torch.tensor(X)
    here, there = scorer(), scorer().cuda()
    options = {"ridge": 0.5, "method": method, "batch": batch, "steps": 15}
    one = ct.fit(here, X, risk, **options)
    two = ct.fit(there, X, risk.to("cuda"), **options)
    assert two.value == pytest.approx(one.value, rel=1e-6)
    torch.testing.assert_close(there(x.cuda()).detach().cpu(), here(x).detach(), rtol=1e-4, atol=1e-4)


def test_the_regressor_trains_there_and_predicts_here():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    y = np.abs(X[:, 0]) + rng.normal(size=300) / 10
    one, two = (ct.TorchRegressor(hidden=6, steps=30, device=device).fit(X, y) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(one.predict(X), two.predict(X), atol=1e-3)


def test_the_loss_of_reward_models():
    rng = np.random.default_rng(5)
    prompt = torch.tensor(rng.integers(0, 9, 40))
    sides = [tuple(rng.choice(np.flatnonzero(prompt == prompt[k]), 2)) for k in rng.integers(0, 40, 90)]
    winner, loser = torch.tensor([pair for pair in sides if pair[0] != pair[1]]).T
    reward = torch.randn(40, generator=torch.Generator().manual_seed(4))
    loss = ct.PreferenceLoss()
    values = []
    for device in ("cpu", "cuda"):
        r = reward.to(device).detach().requires_grad_()
        i, j = winner.to(device), loser.to(device)
        value = loss(r, prompt.to(device), i, j)
        by_pairs = loss.pairs(r[i], r[j], i, j)
        (slope,) = torch.autograd.grad(value + by_pairs, r)
        net = ct.net_preferences(i, j)
        values.append([x.detach().cpu() for x in (value, by_pairs, slope, *net)])
    for here, there in zip(*values, strict=True):
        torch.testing.assert_close(there, here, rtol=1e-5, atol=1e-6)


def test_two_devices_at_once_are_refused():
    risk = ct.surrogate("ranknet", ragged("judgments")).to("cuda")
    with pytest.raises(UsageError, match="the objective is on cuda"):
        ct.fit(ct.LinearScorer(2), np.zeros((risk.nodes, 2)), risk)
    with pytest.raises(UsageError, match="scores are on cpu"):
        risk(torch.zeros(risk.nodes))

"""Networks of bounded norm on tensors: projections, losses and training against NumPy and what the class allows.

Skipped where PyTorch is not installed (``pip install "concordant[torch]"``).
"""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra [torch]", exc_type=ImportError)

from concordant.abstention.linear import project as plain_project  # noqa: E402
from concordant.abstention.pairs import pairs_loss  # noqa: E402
from concordant.abstention.points import (  # noqa: E402
    PHIS,
    ScorerClass,
    phi_named,
)
from concordant.errors import UsageError  # noqa: E402
from concordant.preferences.status import Status  # noqa: E402
from concordant.torch.abstention import (  # noqa: E402
    BoundedReluScorer,
    fit_pairs,
    pair_losses,
    project,
)

torch.set_num_threads(1)


@pytest.mark.parametrize("q", [1, 2, math.inf])
def test_projection_equals_numpy(q):
    rows = np.random.default_rng(0).normal(size=(30, 6)) * np.geomspace(0.01, 30, 30)[:, None]
    rows[3] = 0.0
    assert project(torch.as_tensor(rows), 0.7, q).numpy() == pytest.approx(plain_project(rows, 0.7, q), abs=1e-14)


@pytest.mark.parametrize("phi", PHIS)
def test_losses_and_derivatives_equal_numpy(phi):
    margin = torch.linspace(-3, 3, 60, dtype=torch.float64, requires_grad=True)
    losses = pair_losses(margin, phi=phi, k=0.6)
    losses.sum().backward()
    plain = phi_named(phi, 0.6)
    assert losses.detach().numpy() == pytest.approx(plain.value(margin.detach().numpy()))
    assert margin.grad.numpy() == pytest.approx(plain.slope(margin.detach().numpy()))


@pytest.mark.parametrize(("norm", "q"), [(1, math.inf), (2, 2), ("inf", 1)])
@pytest.mark.parametrize("phi", PHIS)
def test_training_lowers_the_loss_and_stays_in_the_class(phi, norm, q):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (40, 3))
    quality = np.abs(X[:, 0]) + 0.2 * X[:, 1]  # no linear scorer orders these
    higher, lower = np.nonzero(quality[:, None] > quality + 0.1)
    scorer = BoundedReluScorer(3, 12, W=1.5, Lambda=2.0, B=0.5, norm=norm, seed=2)
    with torch.no_grad():
        before = pairs_loss(scorer(torch.as_tensor(X)).numpy(), higher, lower, phi=phi)[0]
    found = fit_pairs(scorer, X, higher, lower, phi=phi, epochs=12, batch=200, rate=0.02)
    scores = scorer(torch.as_tensor(X)).detach().numpy()
    assert found.value == pytest.approx(pairs_loss(scores, higher, lower, phi=phi)[0])
    assert found.value < before
    misranked = float(np.mean(scores[higher] <= scores[lower]))
    assert misranked < 0.2
    assert scorer.outer.abs().sum().item() <= 2.0 * (1 + 1e-9)
    assert np.linalg.norm(scorer.inner.detach().numpy(), q, axis=1).max() <= 1.5 * (1 + 1e-9)
    assert scorer.bias.abs().max().item() <= 0.5
    p = {1: 1, 2: 2, "inf": np.inf}[norm]
    distance = np.linalg.norm(X[:, None] - X, p, axis=2)
    most = ScorerClass(1.5, 2.0, 0.5).most(distance)
    assert (np.abs(scores[:, None] - scores) <= most + 1e-9).all()


def test_same_seed_same_network():
    rng = np.random.default_rng(3)
    X, higher, lower = rng.normal(size=(30, 2)), rng.integers(0, 30, 90), rng.integers(0, 30, 90)
    ends = []
    for _ in range(2):
        scorer = BoundedReluScorer(2, 6, W=1.0, Lambda=1.0, B=1.0, seed=5)
        torch.rand(7)  # the state of torch's own generator does not matter
        found = fit_pairs(scorer, X, higher, lower, phi="exponential", epochs=3, batch=20, seed=4)
        ends.append((found.value, *scorer.outer.tolist()))
    assert ends[0] == ends[1]
    assert found.status == Status.STOPPED.word
    assert found.steps == 15
    assert len(found.values) == 3


def test_residual_is_zero_only_where_no_step_helps():
    """Two points: the minimiser of the exponential over the class is at the ends, where the projection holds it."""
    scorer = BoundedReluScorer(1, 2, W=1.0, Lambda=1.0, B=1.0, seed=1)
    found = fit_pairs(scorer, [[0.0], [1.0]], [1], [0], phi="exponential", epochs=400, rate=0.05, tolerance=1e-4)
    assert found.value == pytest.approx(math.exp(-1.0), abs=1e-3)
    assert (found.status == Status.STOPPED.word) == (found.residual > 1e-4)


def test_weights_count_as_repeated_pairs():
    rng = np.random.default_rng(6)
    X, one, other = rng.normal(size=(12, 2)), rng.integers(0, 12, 20), rng.integers(0, 12, 20)
    weight = rng.integers(1, 4, 20)
    values = []
    for up, down, w in [(one, other, weight), (np.repeat(one, weight), np.repeat(other, weight), None)]:
        scorer = BoundedReluScorer(2, 4, W=1.0, Lambda=1.0, B=1.0)
        values.append(fit_pairs(scorer, X, up, down, phi="hinge", weight=w, epochs=5).value)
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_unbounded_and_bad_options():
    free = BoundedReluScorer(2, 3, W=math.inf, Lambda=math.inf, B=math.inf, seed=1)
    free.project_()
    assert torch.isfinite(free.inner).all()
    scorer = BoundedReluScorer(2, 3, W=1.0, Lambda=1.0, B=1.0)
    with torch.no_grad():
        scorer.bias.copy_(torch.tensor([-3.0, 0.5, 2.0]))
    scorer.project_()
    assert scorer.bias.tolist() == [-1.0, 0.5, 1.0]
    good = {"phi": "hinge"}
    X = np.zeros((4, 2))
    for wrong, said in [
        ({"W": 0.0}, "W"),
        ({"Lambda": -1.0}, "Lambda"),
        ({"B": -1.0}, "B"),
        ({"norm": 3}, "norm"),
    ]:
        with pytest.raises(UsageError, match=said):
            BoundedReluScorer(2, 3, **{"W": 1.0, "Lambda": 1.0, "B": 1.0, **wrong})
    for wrong, said in [
        ((X, [4], [0], {}), "places"),
        ((X, [0.5], [0.0], {}), "integers"),
        ((X[:, :1], [1], [0], {}), "X must be"),
        ((X, [1, 2], [0], {}), "one length"),
        ((X, [1], [0], {"weight": [0.0]}), "weights"),
        ((X, [1], [0], {"phi": "logit"}), "unknown phi"),
        ((X, [1], [0], {"epochs": 0}), "epochs"),
    ]:
        features, up, down, options = wrong
        with pytest.raises(UsageError, match=said):
            fit_pairs(scorer, features, up, down, **{**good, **options})

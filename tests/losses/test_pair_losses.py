"""A margin function is one object: what it states is tried, and nothing else has to know of a new one."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import concordant as cc
from concordant.errors import UsageError
from concordant.learning.solvers.edges import fit_edges
from concordant.losses import pair_losses
from concordant.losses.graded import graded_loss
from concordant.losses.minimise import minimise
from concordant.losses.objective import GainsToAll, Objective, Population, Relevance
from concordant.losses.pair_losses import PAIR_LOSSES, PENALTIES, PairLoss, pair_loss, register, value_penalty
from concordant.losses.surrogates import SURROGATES, choose, surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.status import Status
from toy_losses import CORNERED, CUBED, ROUNDED, TAILED, TOYS, registered

VOTES = cc.Preferences.from_comparisons(
    list("abbccaadbd"), list("bacbacdadb"), query=["one"] * 6 + ["two"] * 4, count=[5, 3, 4, 2, 3, 2, 6, 2, 1, 4]
)
LABELS = np.array([2.0, 0.0, 1.0, 3.0, 0.0])
FEATURES = {"item": list("abcd"), "one": [0.2, 1.0, 0.4, 0.0], "two": [1.0, 0.0, 0.3, 0.9]}


@pytest.fixture(autouse=True)
def toys():
    with registered():
        yield


# -- what it states ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("phi", "wrong", "message"),
    [
        (ROUNDED, {"linear_to": 0.2}, "is not strictly convex between linear_to 0.2 and zero_from 1"),
        (ROUNDED, {"linear_to": 0.7}, "is not linear up to 0.7, or not 0 from 1"),
        (ROUNDED, {"zero_from": np.inf}, "is not strictly convex between linear_to 0.5 and zero_from inf"),
        (ROUNDED, {"zero_from": 0.9}, "does not end at 0 where it says"),
        (ROUNDED, {"curvature_bound": 1.5}, "has more curvature than 1.5"),
        (TAILED, {"derivative": ROUNDED.derivative}, "has another derivative than it states"),
        (CUBED, {"second": ROUNDED.second}, "has another second derivative than it states"),
        (CORNERED, {"kinks": ()}, "has a kink near"),
        (CORNERED, {"kinks": ((1.0, 1.0),)}, "is not Σ s max"),
        (CORNERED, {"zero_from": 2.0}, "has its first kink where it is no longer linear"),
        (TAILED, {"value": lambda t: TAILED.value(t) + 1}, "does not end at 0 where it says, nor tends to it"),
        (PAIR_LOSSES["linear"], {"value": lambda t: t, "derivative": np.ones_like}, "is not convex, nonincreasing"),
    ],
)
def test_contradictions_are_refused(phi, wrong, message):
    with pytest.raises(UsageError, match=f"margin function {phi.name} {re.escape(message)}"):
        replace(phi, **wrong)


def test_a_name_is_given_once():
    with pytest.raises(UsageError, match="there is a margin function 'hinge'"):
        register(pair_loss("hinge"))


def test_properties_follow_from_what_it_states():
    true = {
        name: {
            each
            for each in ("smooth", "piecewise_linear", "linear", "bounded", "ends", "strictly_convex", "calibrated")
            if getattr(phi, each)
        }
        for name, phi in PAIR_LOSSES.items()
    }
    assert true == {
        "hinge": {"piecewise_linear", "bounded", "ends", "calibrated"},
        "squared-hinge": {"smooth", "bounded", "ends", "calibrated"},
        "logistic": {"smooth", "bounded", "strictly_convex", "calibrated"},
        "exponential": {"smooth", "bounded", "strictly_convex", "calibrated"},
        "linear": {"smooth", "linear"},
        "rounded-hinge": {"smooth", "bounded", "ends", "calibrated"},
        "linear-exponential": {"smooth", "bounded", "calibrated"},
        "cubed-hinge": {"smooth", "bounded", "ends", "calibrated"},
        "three-corners": {"piecewise_linear", "bounded", "ends", "calibrated"},
    }
    bounds = {name: phi.curvature_bound for name, phi in PAIR_LOSSES.items() if phi.bounded_curvature}
    assert bounds == {"squared-hinge": 2, "logistic": 0.25, "linear": 0, "rounded-hinge": 2, "linear-exponential": 1}


# -- one object is enough ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("phi", TOYS)
def test_whatever_takes_a_margin_function_takes_a_new_one(phi):
    toy = pair_loss(phi)
    free = {"margin-based", "difference-graph", "majority", "ndcg-pairwise", "err-pairwise"}
    members = [member for member in SURROGATES.values() if phi in member.phis]
    assert {member.name for member in members} == free | ({"ranksvm"} if toy.ends else set())
    assert surrogate("difference-graph").consistent(phi)
    assert surrogate("ndcg-pairwise").consistent(phi) == toy.smooth
    assert not surrogate("margin-based").consistent(phi)
    assert [one.name for one in choose([f"difference-graph:{phi}"])] == [f"difference-graph:{phi}"]
    for member in members:
        source = Relevance.of(LABELS / 4) if member.reads == "scores" else Population.of(Batch.whole(VOTES))
        risk = member.objective(source, phi=phi)
        found = minimise(risk)
        assert not np.isin(found.status, (Status.STOPPED, Status.LEFT_OUT)).any(), member.name
        assert (found.value <= risk.value(np.zeros(risk.nodes))).all()
        np.testing.assert_allclose(risk.value(found.alpha), found.value, atol=1e-9)
    ranker = cc.EdgeRanker("margin-based", phi=phi).fit(FEATURES, VOTES)
    assert (ranker.status_["phi"], ranker.status_["status"]) == (phi, "converged")
    if toy.ends:
        lists = cc.ListRanker("ranksvm", phi=phi).fit((LABELS[:, None] + 0.1, list("ppppp"), list("vwxyz")), LABELS)
        assert (lists.status_["phi"], lists.status_["status"]) == (phi, "converged")
        assert lists.coef_[0] > 0
    audited = cc.audit(VOTES, surrogates=[f"difference-graph:{phi}"], replicates=2)
    assert audited.surrogates.column("phi").to_pylist() == [phi, phi]
    if toy.ends:
        assert cc.find_counterexample("ranksvm", phi=phi, budget=50).verdict is not None


@pytest.mark.parametrize("phi", TOYS)
def test_a_new_one_is_there_on_tensors(phi):
    torch = pytest.importorskip("torch")
    ct = pytest.importorskip("concordant.torch")
    toy, rng = pair_loss(phi), np.random.default_rng(0)
    t = torch.tensor(np.append(rng.normal(scale=2, size=40), [-1.0, 3.0]), requires_grad=True)
    value = ct.MARGINS[phi](t)
    (slope,) = torch.autograd.grad(value.sum(), t)
    np.testing.assert_allclose(value.detach().numpy(), toy.value(t.detach().numpy()), atol=1e-14)
    np.testing.assert_allclose(slope.numpy(), toy.derivative(t.detach().numpy()), atol=1e-14)
    alpha, gains, start = rng.normal(size=5), rng.random(5), np.array([0, 3, 5])
    risk = Objective(GainsToAll(start, gains), toy, value_penalty("square"))
    ends = torch.tensor(risk.edges.winner), torch.tensor(risk.edges.loser), torch.tensor(risk.edges.weight)
    scores, total = torch.tensor(alpha, requires_grad=True), risk.value(alpha)
    assert ct.edge_loss(scores, *ends, phi=phi).item() == pytest.approx(total.sum())
    found = ct.against_all(scores, torch.tensor(gains), torch.tensor(start), phi=phi)
    np.testing.assert_allclose(found.detach().numpy(), total)
    votes = ct.surrogate("difference-graph", Batch.whole(VOTES), phi=phi)
    own = surrogate("difference-graph").objective(Batch.whole(VOTES), phi=phi)
    at = rng.normal(size=own.nodes)
    np.testing.assert_allclose(votes(torch.tensor(at)).numpy(), own.value(at))
    fit = ct.fit(ct.LinearScorer(2), rng.normal(size=(own.nodes, 2)), votes, ridge=0.1, tolerance=1e-6)
    assert fit.status == "converged" or not toy.smooth
    rewards, prompt, winner, loser = scores[:2], torch.tensor([0, 0]), torch.tensor([0]), torch.tensor([1])
    one = ct.PreferenceLoss("difference-graph", phi)(rewards, prompt, winner, loser)
    assert one.item() == pytest.approx(toy.value(alpha[:1] - alpha[1:2])[0])


def test_without_a_form_on_tensors_it_is_said():
    ct = pytest.importorskip("concordant.torch")
    bare = replace(ROUNDED, name="bare", torch=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(pair_losses._REGISTERED, "bare", bare)
        assert minimise(surrogate("ranksvm").objective(Batch.whole(VOTES), phi="bare")).value.shape == (2,)
        with pytest.raises(UsageError, match="'bare' has no form on tensors: give it one"):
            ct.surrogate("ranksvm", Batch.whole(VOTES), phi="bare")


ELSEWHERE = {
    "losses/names.py": "the names of the registry, which holds to them",
    "losses/pair_losses.py": "the registry",
    "kernels/newton_blocks.py": "compiled ways; any other φ takes the plain one",
    "losses/gains_to_all.py": "closed forms; any other φ is minimised",
    "losses/graded.py": "compiled ways; any other φ takes the plain one",
    "torch/graded.py": "sorted ways; any other φ takes the plain one",
    "learning/solvers/rankboost.py": "RankBoost is an algorithm for the exponential",
    "abstention/": "Φ of ranking with abstention, one of them not convex: a family of its own",
    "apps/reproduction/table1.py": "the losses of a published table",
}


def test_no_other_file_lists_margin_functions():
    """Two names in a table, or φ compared with a name, are a list that a new one would be missing from."""
    source, found = Path(cc.__file__).parent, set()
    names = {name for name in PAIR_LOSSES if name != "linear"}
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else ()
            parts = node.keys if isinstance(node, ast.Dict) else parts
            listed = len({part.value for part in parts if isinstance(part, ast.Constant)} & names) > 1
            compared = isinstance(node, ast.Compare) and "phi" in ast.unparse(node.left)
            if listed or (compared and any(getattr(side, "value", None) in names for side in node.comparators)):
                found.add(path.relative_to(source).as_posix())
    assert {file for file in found if not file.startswith(tuple(ELSEWHERE))} == set()
    assert [place for place in ELSEWHERE if not any(file.startswith(place) for file in found)] == []


def test_scorers_on_pairs_by_a_general_optimiser():
    rng = np.random.default_rng(1)
    population = Population.of(Batch.whole(VOTES))
    X = rng.normal(size=(int(population.node_start[-1]), 2))
    for toy in TOYS.values():
        for ridge in (0.0, 0.05):
            risk = surrogate("margin-based").objective(population, phi=toy.name)
            fit = fit_edges(X, risk, ridge=ridge)

            def value(theta, risk=risk, ridge=ridge):
                return float(risk.value(X @ theta).sum() + ridge / 2 * theta @ theta)

            fine = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
            starts = np.zeros(2), fit.theta
            best = min(minimize(value, start, method="Nelder-Mead", options=fine).fun for start in starts)
            assert fit.converged, toy.name
            assert value(fit.theta) == pytest.approx(float(fit.value), rel=1e-12)
            assert fit.value <= best + 1e-7


def test_a_linear_one_of_another_slope():
    steep = PairLoss("steep", "−2t", lambda t: -2 * t, lambda t: np.full_like(t, -2.0), np.zeros_like,
                     curvature_bound=0.0, infimum=-np.inf, linear_to=np.inf)  # fmt: skip
    people = Population.of(Batch.whole(VOTES))
    for penalty in PENALTIES:
        risk = surrogate("linear").objective(people, nu=0.7, penalty=penalty)
        found, twice = (minimise(replace(risk, phi=phi)) for phi in (risk.phi, steep))
        np.testing.assert_allclose(replace(risk, phi=steep).gradient(twice.alpha), 0, atol=1e-12)
        np.testing.assert_allclose(risk.gradient(found.alpha), 0, atol=1e-12)
        fit = fit_edges(np.eye(risk.nodes), replace(risk, phi=steep), ridge=0.0)
        np.testing.assert_allclose(fit.theta, twice.alpha, atol=1e-7)


def test_graded_lists_of_any_length_take_a_new_one():
    for name in TOYS:
        value, gradient = graded_loss([0.5, 0.0, 2.0], [1, 0, 0], None, name)
        toy = pair_loss(name)
        assert value[0] == pytest.approx(toy.value(np.array([0.5, -1.5])).sum())
        assert gradient.sum() == pytest.approx(0)

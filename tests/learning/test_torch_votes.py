"""The loss of reward models: straight from its formula, beside the usual one, and on Theorem 3's population.

Skipped where PyTorch is not installed (``pip install "concordant[torch]"``).
"""

import importlib.util
import json
import math
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra [torch]", exc_type=ImportError)

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import concordant.torch as ct  # noqa: E402
from concordant.errors import UsageError  # noqa: E402
from concordant.losses.surrogates import SURROGATES, surrogate  # noqa: E402
from concordant.preferences.graphs import Batch  # noqa: E402
from concordant.preferences.preferences import Preferences  # noqa: E402

torch.set_num_threads(1)  # small tensors: threads would only wait for one another
seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=20)
OF_VOTES = [name for name, member in SURROGATES.items() if member.reads != "scores"]


def usual(chosen, rejected):
    """What trainers of reward models write."""
    return -torch.nn.functional.logsigmoid(chosen - rejected).mean()


def random_votes(seed, rows=40):
    """Responses of several prompts, shuffled, and votes on them; one prompt has no votes, one a single response."""
    rng = np.random.default_rng(seed)
    prompt = rng.permutation(np.repeat([3, 8, 11, 20, 21], [3, 2, 4, 1, 2]))
    judged = [q for q in (3, 8, 11) if rng.random() < 0.9] or [3]
    sides = np.array([rng.choice(np.flatnonzero(prompt == rng.choice(judged)), 2, replace=False) for _ in range(rows)])
    reward = rng.normal(size=len(prompt))
    tie = rng.random(rows) < 0.2
    return (torch.tensor(x) for x in (reward, prompt, sides[:, 0], sides[:, 1], tie))


# -- net preferences ---------------------------------------------------------------------------------------------------
@given(seeds)
@some
def test_net_preferences_by_counting(seed):
    _, _, winner, loser, tie = random_votes(seed)
    count = torch.tensor(np.random.default_rng(seed).integers(0, 4, len(winner)))
    n = Counter()
    for i, j, t, c in zip(winner.tolist(), loser.tolist(), tie.tolist(), count.tolist(), strict=True):
        n[i, j] += 0 if t else c
    expected = {(i, j, n[i, j] - n[j, i]) for i, j in list(n) if n[i, j] > n[j, i]}
    found = ct.net_preferences(winner, loser, tie=tie, count=count)
    assert set(zip(*(x.tolist() for x in found), strict=True)) == expected
    assert found[2].dtype == torch.int64


def test_net_preferences_of_nothing_and_of_level_pairs():
    none = torch.zeros(0, dtype=torch.int64)
    assert [len(x) for x in ct.net_preferences(none, none)] == [0, 0, 0]
    level = torch.tensor([0, 1]), torch.tensor([1, 0])
    assert [len(x) for x in ct.net_preferences(*level)] == [0, 0, 0]
    with pytest.raises(UsageError, match="count must be integers"):
        ct.net_preferences(*level, count=torch.tensor([0.5, 0.5]))
    with pytest.raises(UsageError, match="loser has shape"):
        ct.net_preferences(level[0], none)


# -- the loss ----------------------------------------------------------------------------------------------------------
@given(seeds)
@some
def test_difference_graph_loss_in_loops(seed):
    """(1/n) Σ over pairs |n_ij − n_ji| log(1 + e^(−difference in favour)): prompts only say which votes go together."""
    reward, prompt, winner, loser, tie = random_votes(seed)
    n = Counter()
    for i, j, t in zip(winner.tolist(), loser.tolist(), tie.tolist(), strict=True):
        n[i, j] += 0.5 if t else 1.0
        n[j, i] += 0.5 if t else 0.0
    ahead = [(i, j, n[i, j] - n[j, i]) for i, j in list(n) if n[i, j] > n[j, i]]
    expected = sum(net * math.log1p(math.exp(reward[j] - reward[i])) for i, j, net in ahead) / len(winner)
    loss = ct.PreferenceLoss()
    assert loss(reward, prompt, winner, loser, tie=tie).item() == pytest.approx(expected, rel=1e-12)
    one, other, net = ct.net_preferences(winner, loser, tie=tie)
    by_edges = ct.edge_loss(reward, one, other, net.double() / len(winner))
    assert by_edges.item() == pytest.approx(expected, rel=1e-12)
    total = ct.PreferenceLoss(reduction="sum")(reward, prompt, winner, loser, tie=tie)
    assert total.item() == pytest.approx(expected * len(winner), rel=1e-12)


@pytest.mark.parametrize("name", OF_VOTES)
@given(seeds)
@some
def test_the_loss_is_the_risk_of_the_registry(name, seed):
    """Σ_q (n_q/n) φ(rewards, votes on q), from Preferences of the same votes."""
    reward, prompt, winner, loser, tie = random_votes(seed)
    prefs = Preferences.from_comparisons(winner.numpy(), loser.numpy(), query=prompt[winner].numpy(), tie=tie.numpy())
    batch = Batch.whole(prefs)
    risk = surrogate(name).objective(batch)
    alpha = reward.numpy()[np.asarray(prefs.items.take(batch.item), np.int64)]
    expected = (batch.judgments * risk.value(alpha)).sum() / len(prefs)
    found = ct.PreferenceLoss(name)(reward, prompt, winner, loser, tie=tie)
    if name != "linear":  # there responses that nobody voted on are pulled too: below
        assert found.item() == pytest.approx(expected, rel=1e-12)
    seen = torch.unique(torch.cat((winner, loser)))
    place = torch.searchsorted(seen, torch.stack((winner, loser)))
    found = ct.PreferenceLoss(name)(reward[seen], prompt[seen], *place, tie=tie)
    assert found.item() == pytest.approx(expected, rel=1e-12)


@given(seeds)
@some
def test_where_nobody_disagrees_it_is_the_usual_loss(seed):
    reward, prompt, winner, loser, _ = random_votes(seed)
    winner, loser = torch.minimum(winner, loser), torch.maximum(winner, loser)  # all follow one order
    expected = usual(reward[winner], reward[loser]).item()
    assert ct.PreferenceLoss()(reward, prompt, winner, loser).item() == pytest.approx(expected, rel=1e-12)
    found = ct.PreferenceLoss().pairs(reward[winner], reward[loser], winner, loser)
    assert found.item() == pytest.approx(expected, rel=1e-12)


@given(seeds)
@some
def test_ranknet_is_the_usual_loss_always(seed):
    reward, prompt, winner, loser, _ = random_votes(seed)
    expected = usual(reward[winner], reward[loser]).item()
    assert ct.PreferenceLoss("ranknet")(reward, prompt, winner, loser).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", OF_VOTES)
@given(seeds)
@some
def test_two_tensors_of_rewards_are_the_flat_one(name, seed):
    reward, prompt, winner, loser, tie = random_votes(seed)
    seen = torch.unique(torch.cat((winner, loser)))
    place = torch.searchsorted(seen, torch.stack((winner, loser)))
    loss = ct.PreferenceLoss(name)
    flat = loss(reward[seen], prompt[seen], *place, tie=tie).item()
    numbers = torch.tensor(np.random.default_rng(seed).permutation(100)[: len(reward)])
    ids = numbers[winner], numbers[loser]
    given_prompt = loss.pairs(reward[winner], reward[loser], *ids, prompt=prompt[winner], tie=tie)
    assert given_prompt.item() == pytest.approx(flat, rel=1e-12)
    if name != "linear":  # components of a prompt weigh as one prompt or as several: only the penalty sees that
        found = loss.pairs(reward[winner], reward[loser], *ids, tie=tie)
        assert found.item() == pytest.approx(flat, rel=1e-12)


def test_count_is_that_many_votes_and_order_does_not_matter():
    reward, prompt, winner, loser, tie = random_votes(3)
    loss = ct.PreferenceLoss()
    count = torch.tensor(np.random.default_rng(1).integers(0, 4, len(winner)))
    counted = loss(reward, prompt, winner, loser, tie=tie, count=count)
    repeated = loss(
        reward, prompt, *(x.repeat_interleave(count) for x in (winner, loser)), tie=tie.repeat_interleave(count)
    )
    assert counted.item() == pytest.approx(repeated.item(), rel=1e-12)
    mixed = torch.randperm(len(winner), generator=torch.Generator().manual_seed(4))
    shuffled = loss(reward, prompt, winner[mixed], loser[mixed], tie=tie[mixed])
    assert shuffled.item() == pytest.approx(loss(reward, prompt, winner, loser, tie=tie).item(), rel=1e-12)


@pytest.mark.parametrize("name", [name for name in OF_VOTES if SURROGATES[name].smooth()])
def test_gradcheck(name):
    reward, prompt, winner, loser, tie = random_votes(5)
    loss = ct.PreferenceLoss(name)
    assert torch.autograd.gradcheck(lambda r: loss(r, prompt, winner, loser, tie=tie), reward.requires_grad_())
    chosen, rejected = (reward.detach()[side].requires_grad_() for side in (winner, loser))
    assert torch.autograd.gradcheck(lambda a, b: loss.pairs(a, b, winner, loser, tie=tie), (chosen, rejected))


def test_single_precision_and_no_votes():
    none = torch.zeros(0, dtype=torch.int64)
    reward = torch.zeros(3, requires_grad=True)
    loss = ct.PreferenceLoss()(reward, torch.tensor([1, 1, 2]), none, none)
    loss.backward()
    assert (loss.dtype, loss.item(), reward.grad.tolist()) == (torch.float32, 0.0, [0.0, 0.0, 0.0])
    empty = torch.zeros(0, requires_grad=True)
    assert ct.PreferenceLoss()(empty, none, none, none).item() == 0
    assert ct.PreferenceLoss().pairs(empty, empty, none, none).item() == 0


def test_errors_say_what_is_wrong():
    reward, prompt = torch.zeros(4), torch.tensor([0, 0, 1, 1])
    loss = ct.PreferenceLoss()
    votes = torch.tensor([0, 2]), torch.tensor([1, 3])
    with pytest.raises(UsageError, match="1 of 2 votes compare responses to different prompts"):
        loss(reward, prompt, votes[0], torch.tensor([1, 0]))
    with pytest.raises(UsageError, match="1 of 2 votes name a loser that is not in 0…3"):
        loss(reward, prompt, votes[0], torch.tensor([1, 4]))
    with pytest.raises(UsageError, match="prompt has shape"):
        loss(reward, prompt[:2], *votes)
    with pytest.raises(UsageError, match="tie has shape"):
        loss(reward, prompt, *votes, tie=torch.tensor([True]))
    with pytest.raises(UsageError, match="flat tensor of real numbers"):
        loss(reward[:, None], prompt, *votes)
    with pytest.raises(UsageError, match="under different prompts"):
        loss.pairs(reward[:2], reward[:2], torch.tensor([5, 5]), torch.tensor([6, 7]), prompt=torch.tensor([0, 1]))
    for options, message in (
        ({"surrogate": "differencegraph"}, "did you mean 'difference-graph'"),
        ({"phi": "linear"}, "has no φ 'linear'"),
        ({"nu": 1.0}, "has no option 'nu'"),
        ({"reduction": "none"}, "unknown reduction"),
        ({"surrogate": "ndcg-pairwise"}, "reads scores of the items"),
    ):
        with pytest.raises(UsageError, match=message):
            ct.PreferenceLoss(**options)


# -- Theorem 3 ---------------------------------------------------------------------------------------------------------
WINNER, LOSER, VOTES = torch.tensor([0, 1, 0, 2]), torch.tensor([1, 2, 2, 0]), torch.tensor([25, 1, 50, 24])
"""A hundred votes on three responses (AoS Theorem 3): 1 ≻ 2 ≻ 3 loses the fewest, whatever the prompt."""


def trained(loss, *, prompts, ridge):
    """A reward model with one feature per kind of response, trained on prompts that are all judged alike."""
    scorer = ct.LinearScorer(3)
    x = torch.eye(3, dtype=torch.float64).repeat(prompts, 1)
    prompt = torch.arange(prompts).repeat_interleave(3)
    shift = 3 * torch.arange(prompts).repeat_interleave(4)
    sides = WINNER.repeat(prompts) + shift, LOSER.repeat(prompts) + shift
    search = torch.optim.LBFGS(
        scorer.parameters(), max_iter=300, tolerance_grad=1e-10, tolerance_change=0, line_search_fn="strong_wolfe"
    )

    def closure():
        search.zero_grad()
        value = (
            loss(scorer(x), prompt, *sides, count=VOTES.repeat(prompts)) + 0.5 * ridge * scorer.weight.square().sum()
        )
        value.backward()
        return value

    search.step(closure)
    return scorer.weight.detach(), closure().item()


def wrong_votes(order):
    """Votes that an order of the responses goes against."""
    place = {node: rank for rank, node in enumerate(order)}
    return sum(
        n for i, j, n in zip(WINNER.tolist(), LOSER.tolist(), VOTES.tolist(), strict=True) if place[i] > place[j]
    )


def test_theorem_3_the_usual_loss_converges_to_the_wrong_order_and_ours_to_the_right_one():
    orders = {order: wrong_votes(order) for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))}
    assert min(orders, key=orders.get) == (0, 1, 2)
    usual_reward, value = trained(ct.PreferenceLoss("ranknet"), prompts=4, ridge=0.0)
    np.testing.assert_allclose(usual_reward, [1.35127846, -1.91113642, 0.55985796], atol=1e-6)
    assert value == pytest.approx(0.50144587, abs=1e-8)
    assert usual_reward.argsort(descending=True).tolist() == [0, 2, 1]
    for ridge in (1e-1, 1e-2, 1e-4):
        ours, _ = trained(ct.PreferenceLoss(), prompts=4, ridge=ridge)
        assert ours.argsort(descending=True).tolist() == [0, 1, 2], ridge
    linear, _ = trained(ct.PreferenceLoss("linear"), prompts=4, ridge=0.0)
    np.testing.assert_allclose(linear, np.array([0.51, -0.24, -0.27]) / 2, atol=1e-9)  # row sums / 2ν


@pytest.mark.parametrize(
    ("phi", "minimiser", "value"),
    [
        ("exponential", [0.74912717, -1.07295861, 0.32383144], 0.77484259),
        ("squared-hinge", [0.43663417, -0.50076963, 0.06413545], 0.67444844),
    ],
)
def test_theorem_3_for_other_pair_losss(phi, minimiser, value):
    name = "rankboost" if phi == "exponential" else "ranksvm"
    found, reached = trained(ct.PreferenceLoss(name, phi), prompts=1, ridge=0.0)
    np.testing.assert_allclose(found, minimiser, atol=1e-6)
    assert reached == pytest.approx(value, abs=1e-8)
    ours, _ = trained(ct.PreferenceLoss(phi=phi), prompts=1, ridge=1e-3)
    assert ours.argsort(descending=True).tolist() == [0, 1, 2]


# -- the example -------------------------------------------------------------------------------------------------------
def test_the_example_compares_both_losses(tmp_path, monkeypatch, capsys):
    """On made-up answers, of which all annotators but one in ten prefer the longer."""
    path = Path(__file__).resolve().parents[2] / "docs" / "examples" / "reward_model.py"
    spec = importlib.util.spec_from_file_location("reward_model", path)
    example = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "reward_model", example)
    spec.loader.exec_module(example)
    rng = np.random.default_rng(1)
    rows = []
    for prompt in range(20):
        for _ in range(3):
            one, two = rng.choice(np.arange(1, 30), 2, replace=False)
            verdict = (1 if one > two else 2, 2 if one > two else 1)
            people = {f"annotator{k}": verdict[int(rng.random() < 0.1)] for k in (1, 2, 3)}
            texts = {"response1": "word " * int(one), "response2": "word " * int(two)}
            rows.append({"instruction": f"question {prompt}", "input": "", **texts, **people})
    (tmp_path / "pandalm_testset").mkdir()
    (tmp_path / "pandalm_testset" / "testset-v1.json").write_text(json.dumps(rows))
    for name, value in {"SPLITS": 1, "FOLDS": 2, "STEPS": 5, "RIDGES": (1e-1, 1e-2)}.items():
        monkeypatch.setattr(example, name, value)
    monkeypatch.setattr("sys.argv", ["reward_model.py", str(tmp_path)])
    example.main()
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines[0].startswith("PandaLM test set: 20 prompts, ")
    agreement = [float(line.split("agreement")[1].split()[0]) for line in lines[1:4]]
    assert min(agreement) > 0.85
    assert "95% interval" in lines[4]

"""Batches no longer matter: pairs against the loss of all votes, batches by prompt, warnings, agreement with votes.

Skipped where PyTorch is not installed (``pip install "concordant[torch]"``).
"""

import subprocess
import sys
import warnings
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from seeds import seed

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra [torch]", exc_type=ImportError)

import concordant.torch as ct  # noqa: E402
import reward_training as rt  # noqa: E402
from concordant.errors import UsageError  # noqa: E402
from two_processes import together  # noqa: E402

torch.set_num_threads(1)
EXACT = 1e-12


@pytest.fixture(scope="module")
def full():
    """Value and gradient of the loss of all votes in one batch, by PreferenceLoss, summed; and the weight left."""
    log = rt.votes()
    number = {answer: place for place, answer in enumerate(sorted({*log["left"], *log["right"]}))}
    scorer = rt.model()
    loss = rt.raw_loss(scorer, ct.PreferenceLoss(reduction="sum"), log, list(range(len(log["left"]))), number)
    loss.backward()
    return loss.item(), rt.gradient(scorer), log, number


@pytest.mark.parametrize("batch", [1, 3, 7, 16, 1000])
def test_pairs_in_any_batches_are_the_loss_of_all_votes(full, batch):
    """Value and gradient to 1e-12 in float64, gradients accumulated over an epoch of shuffled batches."""
    value, slope, _, _ = full
    rows, weight = rt.pair_rows()
    scorer, found = rt.model(), 0.0
    order = np.random.default_rng(seed(batch)).permutation(len(rows))
    for at in range(0, len(rows), batch):
        loss = rt.loss_of(scorer, [rows[one] for one in order[at : at + batch]], weight)
        loss.backward()
        found += loss.item()
    assert abs(found * weight - value) < EXACT * abs(value)
    assert torch.allclose(rt.gradient(scorer) * weight, slope, rtol=0, atol=EXACT * slope.abs().max().item())


def test_pairs_on_two_processes(full, tmp_path):
    """The same with DistributedDataParallel over gloo and a shuffling DistributedSampler."""
    value, slope, _, _ = full
    weight = rt.pair_rows()[1]
    for found, grad in together(rt.__file__, tmp_path, "pairs"):
        assert abs(found * weight - value) < EXACT * abs(value)
        assert torch.allclose(grad * weight, slope, rtol=0, atol=EXACT * slope.abs().max().item())


# -- batches by prompt -------------------------------------------------------------------------------------------------
def test_batches_by_prompt_on_two_processes(full, tmp_path):
    """Raw votes: the gradients of all batches of both processes add up to that of the whole."""
    _, slope, log, _ = full
    found = together(rt.__file__, tmp_path, "prompts")
    (one, mine, length), (other, theirs, same) = found
    assert torch.equal(one, other) and length == same
    assert sorted(mine + theirs) == list(range(len(log["left"])))
    assert {log["prompt"][vote] for vote in mine}.isdisjoint(log["prompt"][vote] for vote in theirs)
    assert torch.allclose(one, slope, rtol=0, atol=EXACT * slope.abs().max().item())


@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [1, 8, 40])
def test_batches_by_prompt(replicas, size):
    """Every vote once, no prompt in two batches, as many batches on each process, other orders in other epochs."""
    rng = np.random.default_rng(seed(size))
    prompts = rng.integers(0, 11, 120).tolist()
    parts = [ct.PromptBatches(prompts, size, num_replicas=replicas, rank=rank) for rank in range(replicas)]
    epochs = []
    for epoch in range(3):
        for part in parts:
            part.set_epoch(epoch)
        batches = [batch for part in parts for batch in part]
        assert {len(part) for part in parts} == {len(batches) // replicas}
        assert sorted(vote for batch in batches for vote in batch) == list(range(120))
        held = Counter(prompt for batch in batches for prompt in {prompts[vote] for vote in batch})
        assert set(held.values()) == {1}
        if size == 40:
            assert max(map(len, batches)) <= size
        epochs.append(batches)
    assert all(one != other for one, other in pairwise(epochs))
    parts[0].set_epoch(0)
    assert epochs[0][: len(parts[0])] == [*parts[0]]
    still = ct.PromptBatches(torch.tensor(prompts), size, shuffle=False)
    assert [*still] == [*still] and still.set_epoch(1) is None and [*still] == [*still]


def test_too_few_prompts_and_wrong_numbers():
    with pytest.raises(UsageError, match="2 prompts cannot be shared by 3 processes"):
        ct.PromptBatches([1, 1, 2], 2, num_replicas=3, rank=0)
    with pytest.raises(UsageError, match="batch_size must be an integer of at least 1"):
        ct.PromptBatches([1, 2], 0)
    with pytest.raises(UsageError, match="rank must be at most 1"):
        ct.PromptBatches([1, 2], 1, num_replicas=2, rank=2)


# -- warnings ----------------------------------------------------------------------------------------------------------
def loss_of_pairs(loss, votes):
    chosen, rejected = (torch.tensor(side) for side in zip(*votes, strict=True))
    return loss.pairs(torch.zeros(len(votes)), torch.zeros(len(votes)), chosen, rejected)


def test_a_batch_in_which_nothing_can_cancel_warns_once():
    loss = ct.PreferenceLoss()
    with pytest.warns(
        UserWarning, match="no two of the 2 votes of a batch are on one pair of responses, so that opposite"
    ):
        loss_of_pairs(loss, [(0, 1), (1, 2)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss_of_pairs(loss, [(0, 1), (1, 2)])
        loss_of_pairs(ct.PreferenceLoss(), [(0, 1), (2, 3)])  # one vote a prompt is all that is known
        loss_of_pairs(ct.PreferenceLoss(), [(0, 1), (1, 0), (1, 2)])
        loss_of_pairs(ct.PreferenceLoss("ranknet"), [(0, 1), (1, 2)])
        loss_of_pairs(ct.PreferenceLoss("linear"), [(0, 1), (1, 2)])
        counted = ct.PreferenceLoss()
        prompt, sides = torch.tensor([0, 0, 0]), (torch.tensor([0, 1]), torch.tensor([1, 2]))
        counted(torch.zeros(3), prompt, *sides, count=torch.tensor([2, 1]))
    with pytest.warns(UserWarning, match="no two of the 2 votes"):
        ct.PreferenceLoss()(torch.zeros(3), prompt, *sides)


def test_opposite_votes_in_different_batches_warn_once():
    loss = ct.PreferenceLoss()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):  # whole prompts, epoch after epoch
            loss_of_pairs(loss, [(0, 1), (1, 0), (2, 3)])
            loss_of_pairs(loss, [(4, 5), (4, 5), (5, 4)])
    with pytest.warns(UserWarning, match="1 of the votes of a batch are opposite to votes of earlier batches"):
        loss_of_pairs(loss, [(3, 2), (6, 7)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss_of_pairs(loss, [(3, 2), (6, 7)])
        held_out = ct.PreferenceLoss().eval()
        loss_of_pairs(held_out, [(0, 1), (2, 3)])
        loss_of_pairs(held_out, [(1, 0), (2, 3)])


# -- agreement ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("number", range(4))
def test_agreement_vote_by_vote(number):
    """Each vote by itself: 1 where the reward agrees, a half for ties and equal rewards; the bins by a plain loop."""
    rng = np.random.default_rng(seed(number))
    pairs = 40
    chosen, rejected = rng.normal(size=(2, pairs)).round(1)
    chosen[0] = rejected[0]
    up, down, ties = rng.integers(0, 5, (3, pairs))
    up, down = np.maximum(up, down), np.minimum(up, down)
    votes = up + down + ties
    agreed = best = log_loss = 0.0
    bins = {}
    for d, u, w, t in zip(chosen - rejected, up, down, ties, strict=True):
        right = u + t / 2 if d > 0 else w + t / 2 if d < 0 else (u + w + t) / 2
        agreed += right
        best += max(u + t / 2, w + t / 2)
        stated = 1 / (1 + np.exp(-abs(d)))
        log_loss += -(u + t / 2) * np.log(1 / (1 + np.exp(-d))) - (w + t / 2) * np.log(1 / (1 + np.exp(d)))
        at = bins.setdefault(min(int((stated - 0.5) / 0.05), 9), [0.0, 0.0])
        at[0] += right
        at[1] += stated * (u + w + t)
    found = ct.vote_metrics(*map(torch.tensor, (chosen, rejected, up - down, votes)))
    n = votes.sum()
    assert found["vote_accuracy"] == pytest.approx(agreed / n, rel=EXACT)
    assert found["vote_ceiling"] == pytest.approx(best / n, rel=EXACT)
    assert found["of_ceiling"] == pytest.approx(agreed / best, rel=EXACT)
    assert found["vote_log_loss"] == pytest.approx(log_loss / n, rel=1e-9)
    assert found["calibration_error"] == pytest.approx(sum(abs(a - b) for a, b in bins.values()) / n, rel=1e-9)
    perfect = ct.vote_metrics(*map(torch.tensor, (np.ones(pairs), np.zeros(pairs), up - down, votes)))
    assert perfect["of_ceiling"] == pytest.approx(1, rel=EXACT)


def test_agreement_refuses():
    one = torch.ones(2)
    with pytest.raises(UsageError, match="votes has shape"):
        ct.vote_metrics(one, one, one, torch.ones(3))
    with pytest.raises(UsageError, match="more weight than votes"):
        ct.vote_metrics(one, one, 2 * one, one)
    none = ct.vote_metrics(one, one, 0 * one, 0 * one)
    assert all(np.isnan(value) for value in none.values())


def test_a_missing_extra_is_named():
    code = "import sys; sys.modules['trl'] = None\nimport concordant.torch.trl"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'concordant.torch.trl needs TRL, which is not installed: pip install "concordant[trl]"' in found.stderr

"""Losses of raw votes: the difference graph on tensors, and a loss for reward models that are trained on votes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from torch import Tensor, nn

from concordant.errors import UsageError
from concordant.losses.objective import Population
from concordant.losses.surrogates import SURROGATES, surrogate
from concordant.losses.surrogates import net_preferences as cancelled
from concordant.torch.losses import places, real_scores, tensors
from concordant.torch.objective import TorchObjective

REMEMBERED = 1 << 20
"""Votes of earlier batches that are remembered, to see whether opposite ones are apart."""


def net_preferences(
    winner: Tensor, loser: Tensor, *, tie: Tensor | None = None, count: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return winner, loser and net number of votes of every pair that is not level: the edges of the difference graph.

    Opposite votes cancel before φ is applied: net = [n_ij − n_ji]₊, counted in integers, so a level pair is level. Ties
    favour neither side. Shapes: all arguments (votes,), int64 nodes, true or false, and integer counts; the results
    (pairs,) in order of the nodes. Use them with ``edge_loss(scores, winner, loser, net)``. Errors: different lengths,
    counts that are not integers.

    >>> one, other, net = net_preferences(torch.tensor([0, 1, 0, 5]), torch.tensor([1, 0, 1, 2]))
    >>> one.tolist(), other.tolist(), net.tolist()
    ([0, 5], [1, 2], [1, 1])

    Source: AoS (23).
    """
    places(None, winner=winner, loser=loser)
    _same_length(winner, loser=loser, tie=tie, count=count)
    votes = torch.ones_like(winner) if count is None else count
    if votes.is_floating_point() or votes.dtype == torch.bool:
        raise UsageError("count must be integers: it is the number of equal votes")
    if bool((votes < 0).any()):
        raise UsageError("count must be at least 0: it is the number of equal votes")
    if tie is not None:
        votes = torch.where(tie.bool(), torch.zeros_like(votes), votes)
    known, place = torch.unique(torch.cat((winner, loser)), return_inverse=True)  # numbers of nodes may be of any size
    winner, loser = place[: len(winner)], place[len(winner) :]
    low, high = torch.minimum(winner, loser), torch.maximum(winner, loser)
    width = max(len(known), 1)
    pairs, place = torch.unique(low * width + high, return_inverse=True)
    signed = torch.where(winner == low, votes, -votes)
    net = torch.zeros(len(pairs), dtype=torch.int64, device=winner.device).index_add(0, place, signed.long())
    keep = (net != 0) & (pairs // width != pairs % width)
    pairs, net = pairs[keep], net[keep]
    first, second = pairs // width, pairs % width
    return known[torch.where(net > 0, first, second)], known[torch.where(net > 0, second, first)], net.abs()


class PreferenceLoss(nn.Module):  # type: ignore[misc]
    """A consistent loss in the place of ``-logsigmoid(r_chosen - r_rejected).mean()`` for votes of several people.

    The votes on one prompt are aggregated first, as the surrogate says, then φ is applied to the differences of the
    rewards: Σ_q (n_q / n) φ(rewards of q, votes on q), n_q the votes on prompt q (AoS (17)). ``surrogate`` is any
    member of ``losses.surrogates`` that reads preferences:

    - "difference-graph" (the default): opposite votes on a pair of responses cancel. Where nobody disagrees it is the
      usual loss. Where people disagree, three against two weigh as much as one vote alone, and the order that it asks
      for is the one that loses the fewest votes (if the net preferences have no cycle); the usual loss can ask for
      another as soon as there are three responses (AoS Theorem 3);
    - "linear": net votes of each response, with ``nu`` on the squares of the rewards (ICML (14));
    - "ranknet": the usual loss itself, for comparison.

    Aggregation happens within one call: give all votes on a prompt in one batch (``PromptBatches``), or cancel them
    once before training (``concordant pairs``, after which batches do not matter). A batch in which no pair has two
    votes though prompts have several, or whose votes would cancel some of an earlier batch, is the usual loss: a
    UserWarning says so, once for each module. Ties are half a vote each way. ``reduction``: "mean" over votes or "sum"
    (times the number of votes).

    The drop-in, in a training loop that has two tensors of rewards and knows which responses they belong to:

    >>> loss = PreferenceLoss()
    >>> r_chosen, r_rejected = torch.tensor([0.5, 0.2, 0.5]), torch.tensor([0.2, 0.5, 0.2])
    >>> chosen_id, rejected_id = torch.tensor([7, 9, 7]), torch.tensor([9, 7, 9])
    >>> round(loss.pairs(r_chosen, r_rejected, chosen_id, rejected_id).item(), 4)  # two of three prefer 7: net one
    0.1848

    Source: AoS (17), (23); method of aggregation by the registry's members.
    """

    def __init__(
        self,
        surrogate: str = "difference-graph",
        phi: str | None = None,
        *,
        penalty: str | None = None,
        reduction: str = "mean",
        **options: Any,
    ) -> None:
        super().__init__()
        if reduction not in ("mean", "sum"):
            raise UsageError(f"unknown reduction {reduction!r}; allowed: mean, sum")
        self.surrogate, self.phi, self.penalty = surrogate, phi, penalty
        self.reduction, self.options = reduction, options
        self._edges(np.zeros(2, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), None, None)  # wrong names: now
        self._cancels = SURROGATES[surrogate].edges is cancelled  # of others batches do not matter
        self._seen: set[tuple[int, int]] = set()

    def forward(
        self,
        reward: Tensor,
        prompt: Tensor,
        winner: Tensor,
        loser: Tensor,
        *,
        tie: Tensor | None = None,
        count: Tensor | None = None,
    ) -> Tensor:
        """Return the loss, a scalar, of a flat tensor of rewards.

        It is 0 when there is no vote. Errors: UsageError for other shapes, places out of range, two prompts in one
        vote.

        Parameters
        ----------
        reward : (responses,) real.
        prompt : (responses,) int64, any numbers, in any order.
        winner, loser : (votes,) int64 places in ``reward``.
        tie : (votes,) true where the two tied.
        count : (votes,) integers.
        """
        real_scores(reward)
        places(None, prompt=prompt, winner=winner, loser=loser)
        if prompt.shape != reward.shape:
            raise UsageError(f"prompt has shape {tuple(prompt.shape)}, reward {tuple(reward.shape)}")
        _same_length(winner, loser=loser, tie=tie, count=count)
        of_prompt = _array(prompt)
        sorter = np.argsort(of_prompt, kind="stable")
        place = np.argsort(sorter)
        sides = [_array(side) for side in (winner, loser)]
        for name, side in zip(("winner", "loser"), sides, strict=True):
            wrong = int(((side < 0) | (side >= len(sorter))).sum())
            if wrong:
                raise UsageError(f"{wrong:,} of {len(side):,} votes name a {name} that is not in 0…{len(sorter) - 1}")
        across = int((of_prompt[sides[0]] != of_prompt[sides[1]]).sum())
        if across:
            raise UsageError(f"{across:,} of {len(sides[0]):,} votes compare responses to different prompts")
        self._look(sides[0], sides[1], of_prompt[sides[0]], None if count is None else _array(count))
        node_start = np.flatnonzero(np.diff(of_prompt[sorter], prepend=of_prompt[sorter][:1] - 1)).astype(np.int64)
        risk, share = self._edges(
            np.append(node_start, len(sorter)) if len(sorter) else np.zeros(1, np.int64),
            place[sides[0]],
            place[sides[1]],
            None if tie is None else _array(tie).astype(bool),
            None if count is None else _array(count),
        )
        risk = risk.to(reward.device)
        value = risk(reward[torch.as_tensor(sorter, device=reward.device)])
        return (value * torch.as_tensor(share, dtype=value.dtype, device=value.device)).sum()

    def pairs(
        self,
        chosen: Tensor,
        rejected: Tensor,
        chosen_id: Tensor,
        rejected_id: Tensor,
        *,
        prompt: Tensor | None = None,
        tie: Tensor | None = None,
        count: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of two tensors of rewards, as trainers of reward models have them.

        All shapes are (votes,). A response that stands in several votes has the mean of its rewards.

        Parameters
        ----------
        chosen, rejected : rewards of the two responses.
        chosen_id, rejected_id : int64 numbers of the responses, unique over all prompts, so that votes on one pair are
            recognised.
        prompt : the prompt of each vote; None, responses that votes connect are taken to answer one prompt.
        tie, count : as in ``forward``.
        """
        real_scores(chosen)
        real_scores(rejected)
        places(None, chosen_id=chosen_id, rejected_id=rejected_id, **({} if prompt is None else {"prompt": prompt}))
        _same_length(chosen, rejected=rejected, chosen_id=chosen_id, rejected_id=rejected_id, prompt=prompt)
        both = torch.cat((chosen_id, rejected_id))
        known, place = torch.unique(both, return_inverse=True)
        zeros = torch.zeros(len(known), dtype=chosen.dtype, device=chosen.device)
        times = zeros.index_add(0, place, torch.ones_like(both, dtype=chosen.dtype))
        reward = zeros.index_add(0, place, torch.cat((chosen, rejected))) / times
        winner, loser = place[: len(chosen)], place[len(chosen) :]
        if prompt is None:
            of_response = _connected(len(known), winner, loser)
        else:
            of_response = torch.empty_like(known).index_copy(0, place, torch.cat((prompt, prompt)).long())
            mixed = int((of_response[place] != torch.cat((prompt, prompt))).sum())
            if mixed:
                raise UsageError(f"{mixed:,} of {2 * len(chosen):,} response numbers stand under different prompts")
        self._look_back(_array(chosen_id), _array(rejected_id))
        return self(reward, of_response, winner, loser, tie=tie, count=count)

    def _look(
        self, winner: NDArray[Any], loser: NDArray[Any], prompt: NDArray[Any], count: NDArray[Any] | None
    ) -> None:
        """Warn, once, where prompts have several votes and no pair has two: nothing can cancel."""
        if not self._cancels or (count is not None and (count > 1).any()):
            return
        pairs = np.unique(np.sort(np.column_stack([winner, loser]), axis=1), axis=0)
        if len(pairs) == len(winner) and len(np.unique(prompt)) < len(prompt):
            self._warn(f"no two of the {len(winner):,} votes of a batch are on one pair of responses")

    def _look_back(self, chosen: NDArray[Any], rejected: NDArray[Any]) -> None:
        """Warn, once, where a vote of an earlier batch, and none of this one, is opposite to a vote of this one."""
        if not self._cancels or not self.training or len(self._seen) > REMEMBERED:
            return
        votes = set(zip(chosen.tolist(), rejected.tolist(), strict=True))
        apart = sum((other, one) in self._seen and (other, one) not in votes for one, other in votes)
        if apart:
            self._warn(f"{apart:,} of the votes of a batch are opposite to votes of earlier batches, not of this one")
        self._seen |= votes

    def _warn(self, what: str) -> None:
        self._cancels = False  # once
        self._seen = set()
        warnings.warn(
            f"{what}, so that opposite votes do not cancel and this is the usual loss; keep the votes on a prompt in "
            "one batch (concordant.torch.PromptBatches), or cancel them before training (concordant pairs)",
            stacklevel=4,
        )

    def _edges(
        self,
        node_start: NDArray[Any],
        winner: NDArray[Any],
        loser: NDArray[Any],
        tie: NDArray[Any] | None,
        count: NDArray[Any] | None,
    ) -> tuple[TorchObjective, NDArray[Any]]:
        """The objective of each prompt and its share in the loss."""
        times = np.ones(len(winner)) if count is None else count.astype(np.float64)
        prompts = len(node_start) - 1
        prompt = np.searchsorted(node_start, winner, side="right") - 1
        votes = np.bincount(prompt, times, prompts)
        share = times / np.maximum(votes, 1.0)[prompt]
        strength = np.ones(len(winner))
        if tie is not None and tie.any():
            strength = np.where(tie, 0.5, 1.0)
            winner, loser = np.append(winner, loser[tie]), np.append(loser, winner[tie])
            share, strength = np.append(share, share[tie]), np.append(strength, strength[tie])
        source = Population(node_start, winner, loser, strength, share)
        risk = surrogate(self.surrogate).objective(source, phi=self.phi, penalty=self.penalty, **self.options)
        total = 1.0 if self.reduction == "sum" else max(votes.sum(), 1.0)
        return TorchObjective.of(risk), votes / total


def _connected(responses: int, winner: Tensor, loser: Tensor) -> Tensor:
    """The component of each response."""
    links = sparse.coo_array((np.ones(len(winner)), (_array(winner), _array(loser))), (responses, responses))
    return torch.as_tensor(connected_components(links.tocsr(), directed=False)[1].astype(np.int64))


def _array(column: Tensor) -> NDArray[Any]:
    return np.asarray(column.detach().cpu().numpy())


def _same_length(first: Tensor, **others: Tensor | None) -> None:
    tensors(**others, optional=True)
    for name, column in others.items():
        if column is not None and (column.ndim != 1 or len(column) != len(first)):
            raise UsageError(f"{name} has shape {tuple(column.shape)}, there are {len(first):,} votes")

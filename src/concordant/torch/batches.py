"""Batches that keep the votes on a prompt together, for one process or dealt to several."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Sampler

from concordant.errors import UsageError, whole_number


class PromptBatches(Sampler):  # type: ignore[misc]
    """A batch sampler that keeps all votes on a prompt in one batch, so that opposite ones cancel in it.

    ``DataLoader(votes, batch_sampler=PromptBatches(prompts, 64))`` yields batches of at most ``batch_size`` votes; a
    prompt with more has a batch of its own. With several processes each gets its own batches, the same number of them
    on every one (a batch is cut in two where they would not come out even); no vote is left out, none comes twice. Call
    ``set_epoch`` before each epoch, as with ``DistributedSampler``, for another order of prompts.

    Parameters
    ----------
    prompts : the prompt of each vote: a sequence of labels, or of lists of messages, or a tensor.
    batch_size : votes of a batch, at most.
    shuffle : whether prompts come in another order in each epoch (else as they first occur).
    seed : of that order; the same on every process.
    num_replicas, rank : number of processes and which one this is; None, those of ``torch.distributed``, where it runs.

    Errors: UsageError for numbers out of range, and for more processes than prompts.

    >>> [sorted(batch) for batch in PromptBatches(["a", "b", "a", "c", "b"], 3, shuffle=False)]
    [[0, 2], [1, 3, 4]]
    >>> [[*PromptBatches([7, 8, 7, 9], 4, shuffle=False, num_replicas=2, rank=rank)] for rank in (0, 1)]
    [[[0, 2]], [[1, 3]]]
    """

    def __init__(
        self,
        prompts: Sequence[Any] | torch.Tensor,
        batch_size: int,
        *,
        shuffle: bool = True,
        seed: int = 0,
        num_replicas: int | None = None,
        rank: int | None = None,
    ) -> None:
        running = torch.distributed.is_available() and torch.distributed.is_initialized()
        if num_replicas is None:
            num_replicas = torch.distributed.get_world_size() if running else 1
        if rank is None:
            rank = torch.distributed.get_rank() if running else 0
        self.batch_size = whole_number(batch_size, "batch_size")
        self.num_replicas = whole_number(num_replicas, "num_replicas")
        self.rank = whole_number(rank, "rank", 0, self.num_replicas - 1)
        self.shuffle, self.seed, self.epoch = shuffle, whole_number(seed, "seed", 0), 0
        labels = prompts.tolist() if hasattr(prompts, "tolist") else [*prompts]
        known: dict[Any, int] = {}
        labels = [json.dumps(one, sort_keys=True) if isinstance(one, list | dict) else one for one in labels]
        prompt = np.array([known.setdefault(label, len(known)) for label in labels], np.int64)
        if len(known) < self.num_replicas:
            raise UsageError(f"{len(known):,} prompts cannot be shared by {self.num_replicas:,} processes")
        self._votes = np.split(np.argsort(prompt, kind="stable"), np.cumsum(np.bincount(prompt))[:-1])

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of prompts of an epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        for prompts in self._batches()[self.rank :: self.num_replicas]:
            yield np.concatenate([self._votes[one] for one in prompts]).tolist()

    def __len__(self) -> int:
        """Number of batches of this process in this epoch."""
        return len(self._batches()) // self.num_replicas

    def _batches(self) -> list[NDArray[np.int64]]:
        """The prompts of each batch, of all processes."""
        order = np.arange(len(self._votes))
        if self.shuffle:
            order = np.random.default_rng([self.seed, self.epoch]).permutation(order)
        sizes = [len(self._votes[one]) for one in order]
        cuts, held = [], 0
        for place, size in enumerate(sizes):
            if held and held + size > self.batch_size:
                cuts.append(place)
                held = 0
            held += size
        batches = np.split(order, cuts)
        while len(batches) % self.num_replicas:
            most = max(range(len(batches)), key=lambda one: len(batches[one]))
            half = len(batches[most]) // 2
            if not half:  # each prompt has a batch already: deal the last ones together
                last = len(batches) % self.num_replicas
                batches = [*batches[: -last - 1], np.concatenate(batches[-last - 1 :])]
                break
            batches[most : most + 1] = [batches[most][:half], batches[most][half:]]
        return batches

"""A small reward model, votes on answers, and one epoch of gradients of them: alone, or as one of several processes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from torch.nn.functional import logsigmoid
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import concordant as cc
from concordant import torch as ct
from two_processes import keep

PROMPTS, ANSWERS, WORDS = 9, 4, 6


def votes(count: int = 200) -> dict[str, list[str]]:
    """Votes of several people, ties included."""
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(count):
        prompt = rng.integers(PROMPTS)
        one, other = rng.choice(ANSWERS, 2, replace=False)
        won = ["left", "right", "tie"][rng.choice(3, p=[0.5, 0.35, 0.15])]
        rows.append((f"p{prompt}", f"p{prompt} a{one}", f"p{prompt} a{other}", won))
    return dict(zip(("prompt", "left", "right", "winner"), map(list, zip(*rows, strict=True)), strict=True))


def features(answer: str) -> torch.Tensor:
    """What the model knows of an answer."""
    prompt, one = (int(part[1:]) for part in answer.split())
    return torch.tensor(np.random.default_rng([prompt, one]).normal(size=WORDS))


def model() -> Any:
    """A small network in float64, always the same."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(WORDS, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)).double()


def gradient(scorer: Any) -> Any:
    """All gradients in one vector."""
    return torch.cat([one.grad.ravel() for one in scorer.parameters()]).clone()


def pair_rows() -> tuple[list[dict[str, Any]], float]:
    """The rows of the pairs, and their weight."""
    found = cc.pairs(votes())
    return found.to_arrow().to_pylist(), found.weight


def loss_of(scorer: Any, rows: list[dict[str, Any]], weight: float) -> Any:
    """The part of the loss that these rows have."""
    sides = [torch.stack([features(row[side]) for row in rows]) for side in ("chosen", "rejected")]
    chosen, rejected = (scorer(side)[:, 0] for side in sides)
    own = torch.tensor([row["weight"] for row in rows], dtype=torch.float64)
    return (own * -logsigmoid(chosen - rejected)).sum() / weight


def by_pairs(folder: str) -> None:
    """An epoch of pairs by DistributedDataParallel, batches of five."""
    torch.distributed.init_process_group("gloo")
    rows, weight = pair_rows()
    both = torch.distributed.get_world_size()
    rows += [{**rows[0], "weight": 0}] * (-len(rows) % both)  # in the place of the copies that a sampler would add
    scorer = torch.nn.parallel.DistributedDataParallel(model())
    sampler = DistributedSampler(rows, shuffle=True, seed=1)
    sampler.set_epoch(2)
    value = torch.zeros((), dtype=torch.float64)
    for batch in DataLoader(rows, batch_size=5, sampler=sampler, collate_fn=list):
        loss = both * loss_of(scorer, batch, weight)  # gradients of the processes are averaged
        loss.backward()
        value += loss.detach() / both
    torch.distributed.all_reduce(value)
    keep(folder, (value.item(), gradient(scorer.module)))


def by_prompts(folder: str) -> None:
    """An epoch of raw votes, a prompt's votes together."""
    torch.distributed.init_process_group("gloo")
    log = votes()
    number = {answer: place for place, answer in enumerate(sorted({*log["left"], *log["right"]}))}
    sampler = ct.PromptBatches(log["prompt"], 30, seed=4)
    sampler.set_epoch(1)
    scorer, loss = model(), ct.PreferenceLoss(reduction="sum")
    seen: list[int] = []
    for batch in DataLoader(range(len(log["left"])), batch_sampler=sampler, collate_fn=list):
        seen += batch
        raw_loss(scorer, loss, log, batch, number).backward()
    whole = gradient(scorer)
    torch.distributed.all_reduce(whole)
    keep(folder, (whole, seen, len(sampler)))


def raw_loss(scorer: Any, loss: Any, log: dict[str, list[str]], batch: list[int], number: dict[str, int]) -> Any:
    """The loss of these votes, as trainers have it: two tensors of rewards."""
    sides = [[log[side][one] for one in batch] for side in ("left", "right")]
    for place, one in enumerate(batch):
        if log["winner"][one] == "right":
            sides[0][place], sides[1][place] = sides[1][place], sides[0][place]
    chosen, rejected = (scorer(torch.stack([features(one) for one in side]))[:, 0] for side in sides)
    ids = (torch.tensor([number[one] for one in side]) for side in sides)
    tie = torch.tensor([log["winner"][one] == "tie" for one in batch])
    return loss.pairs(chosen, rejected, *ids, tie=tie)


if __name__ == "__main__":
    {"pairs": by_pairs, "prompts": by_prompts}[sys.argv[2]](sys.argv[1])

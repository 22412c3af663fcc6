"""Training a scorer of images on the exponential loss over pairs, with the usual schedule; it can be resumed."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from concordant.disk import check_regular
from concordant.errors import ConcordantError, InputError
from concordant.reproduction.resnet import ResNet

__all__ = ["Schedule", "augmented", "pairwise_exponential", "scores_of", "train"]

PAD = 4
CLIP = 5.0
"""Longest gradient: the exponential loss has no bound on its own, and one bad batch would end the training."""


@dataclass(frozen=True)
class Schedule:
    """How one network is trained."""

    epochs: int = 200
    batch: int = 1024
    rate: float = 0.1
    momentum: float = 0.9
    decay: float = 1e-4
    width: int = 64
    stages: tuple[int, ...] = (3, 4, 6, 3)
    seed: int = 0


def pairwise_exponential(score: Tensor, label: Tensor) -> Tensor:
    """Return the mean of exp(−(h_j − h_i)) over the pairs of the batch with label_j > label_i.

    Sums over labels in float64 in place of sums over pairs: O(n) work, exact for gaps of score up to some 700.

    >>> pairwise_exponential(torch.tensor([0.0, 1.0, 5.0]), torch.tensor([0, 1, 1])).round(decimals=4).item()
    0.1873
    """
    h = score.double()
    h = h - h.detach().mean()
    member = nn.functional.one_hot(label.long()).double()
    up, down, size = torch.exp(h) @ member, torch.exp(-h) @ member, member.sum(dim=0)
    pairs = (size.sum() ** 2 - (size**2).sum()) / 2
    return (down * (up.cumsum(0) - up)).sum() / pairs.clamp(min=1.0)


def augmented(images: Tensor, rows: Tensor, columns: Tensor, flip: Tensor) -> Tensor:
    """Crop images (n, 3, s, s), padded by 4 black pixels, at offsets 0 to 8 (n,); mirror those of ``flip``."""
    side = images.shape[-1]
    padded = nn.functional.pad(images, (PAD, PAD, PAD, PAD))
    along = torch.arange(side, device=images.device)
    across = torch.where(flip[:, None], side - 1 - along, along)
    picture = torch.arange(len(images), device=images.device)[:, None, None, None]
    channel = torch.arange(images.shape[1], device=images.device)[None, :, None, None]
    down = (rows[:, None] + along)[:, None, :, None]
    return padded[picture, channel, down, (columns[:, None] + across)[:, None, None, :]]


class _Training:
    """Network, optimiser and images on one device."""

    def __init__(self, images: Tensor, label: Tensor, schedule: Schedule, device: torch.device) -> None:
        self.schedule, self.device = schedule, device
        self.images, self.label = images.to(device), label.to(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(schedule.seed)
            self.net = ResNet(schedule.width, schedule.stages).to(device, memory_format=torch.channels_last)
        self.optimiser = torch.optim.SGD(
            self.net.parameters(),
            lr=schedule.rate,
            momentum=schedule.momentum,
            weight_decay=schedule.decay,
            nesterov=True,
        )
        self.mean, self.scale = _channels(self.images)
        self.steps = max(1, len(images) // schedule.batch)

    def epoch(self, number: int) -> float:
        """Pass once over the images, order and crops drawn from seed and epoch alone; return the mean loss."""
        draw = torch.Generator().manual_seed(self.schedule.seed * 1_000_003 + number)
        order = torch.randperm(len(self.images), generator=draw)
        crop = torch.randint(0, 2 * PAD + 1, (2, len(order)), generator=draw)
        flip = torch.rand(len(order), generator=draw) < 0.5
        order, crop, flip = (each.to(self.device) for each in (order, crop, flip))
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        self.net.train()
        for step in range(self.steps):
            part = slice(step * self.schedule.batch, (step + 1) * self.schedule.batch)
            done = (number * self.steps + step) / (self.schedule.epochs * self.steps)
            for group in self.optimiser.param_groups:
                group["lr"] = 0.5 * self.schedule.rate * (1 + math.cos(math.pi * done))
            chosen = order[part]
            x = augmented(self.images[chosen], crop[0, part], crop[1, part], flip[part])
            total += self._step(x, self.label[chosen])
        loss = float(total) / self.steps
        if not math.isfinite(loss):
            raise ConcordantError(f"the training diverged in epoch {number + 1}: the exponential loss is {loss:g}")
        return loss

    def _step(self, x: Tensor, label: Tensor) -> Tensor:
        x = ((x.float() - self.mean) / self.scale).contiguous(memory_format=torch.channels_last)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
            score = self.net(x)
        loss = pairwise_exponential(score, label)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), CLIP)
        self.optimiser.step()
        return loss.detach()


def train(
    images: Tensor,
    label: Tensor,
    schedule: Schedule,
    *,
    device: str,
    kept: Path,
    progress: Callable[[], None],
) -> tuple[ResNet, list[float]]:
    """Train a network on images (n, 3, s, s) of bytes, or go on where ``kept`` left off; also the loss of each epoch.

    After each epoch the state is written to ``kept``, whole or not at all. SGD with Nesterov momentum, cosine schedule,
    crops and mirror images; on a GPU in bfloat16 with the loss in float64. An order and crops depend on seed and epoch
    alone, so on the CPU a training that was stopped ends as one that was not, to the bit.
    Errors: ConcordantError when the loss stops being finite, InputError when ``kept`` belongs to another training.
    """
    training = _Training(images, label, schedule, torch.device(device))
    losses: list[float] = []
    if kept.exists():
        check_regular(kept)
        losses = _resume(training, kept)
    for _ in losses:
        progress()
    for number in range(len(losses), schedule.epochs):
        losses.append(training.epoch(number))
        _keep(training, losses, kept)
        progress()
    return training.net, losses


def scores_of(net: ResNet, images: Tensor, like: Tensor, *, batch: int = 1000) -> Tensor:
    """Scores of images in float32 by a trained network, normalised as the training images ``like`` were."""
    device = next(net.parameters()).device
    mean, scale = (each.to(device) for each in _channels(like))
    net.eval()
    with torch.no_grad():
        return torch.cat([net((part.to(device).float() - mean) / scale) for part in images.split(batch)])


def _channels(images: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each channel, shape (3, 1, 1), from exact counts of the 256 values."""
    counts = torch.stack([torch.bincount(channel.flatten(), minlength=256) for channel in images.transpose(0, 1)])
    share = counts.double() / counts.sum(dim=1, keepdim=True)
    value = torch.arange(256, device=images.device, dtype=torch.float64)
    mean = share @ value
    scale = (share @ value**2 - mean**2).clamp(min=1e-12).sqrt()
    return mean.float()[:, None, None], scale.float()[:, None, None]


def _print(training: _Training) -> dict[str, Any]:
    """What must be the same for a training to go on."""
    schedule = {
        name: list(value) if isinstance(value, tuple) else value for name, value in asdict(training.schedule).items()
    }
    return schedule | {"images": len(training.images), "sum of labels": int(training.label.sum())}


def _keep(training: _Training, losses: list[float], kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    state = {
        "training": _print(training),
        "losses": losses,
        "net": training.net.state_dict(),
        "optimiser": training.optimiser.state_dict(),
    }
    beside = kept.with_name(kept.name + ".part")
    torch.save(state, beside)
    os.replace(beside, kept)


def _resume(training: _Training, kept: Path) -> list[float]:
    try:
        state = torch.load(kept, map_location=training.device, weights_only=True)
        held = state["training"]
    except Exception as error:
        raise InputError(
            f"{kept} is not the state of a training ({type(error).__name__}); remove it to begin anew"
        ) from None
    if held != (mine := _print(training)):
        other = ", ".join(
            f"{name} {held.get(name)} there, {value} here" for name, value in mine.items() if held.get(name) != value
        )
        raise InputError(f"{kept} belongs to another training ({other}); name another --output or remove it")
    training.net.load_state_dict(state["net"])
    training.optimiser.load_state_dict(state["optimiser"])
    return list(state["losses"])

"""RwA Table 1 on CIFAR-10: runs of ResNet-34, and the pairs of the test set counted by distance on the device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from concordant.errors import UsageError
from concordant.reproduction.cifar import Images
from concordant.reproduction.cifar_training import Schedule, scores_of, train
from concordant.reproduction.outcome import Setting
from concordant.reproduction.pair_profile import PairProfile

__all__ = ["cifar_profiles", "device_profile"]

RUNS = 3
FULL, QUICK = Schedule(), Schedule(epochs=10)
BLOCK = 500
"""Test images whose distances to all later ones are computed at once."""


def cifar_profiles(images: Images, setting: Setting, folder: Path) -> list[PairProfile]:
    """Train and judge three networks (one, for fewer epochs, with ``setting.quick``); states are kept in ``folder``."""
    usable(setting.device)
    plan = QUICK if setting.quick else FULL
    runs = 1 if setting.quick else RUNS
    pixels, label, test, test_label = (
        torch.from_numpy(part) for part in (images.train, images.train_label, images.test, images.test_label)
    )
    done, found = 0, []

    def step() -> None:
        nonlocal done
        done += 1
        setting.progress(done, runs * plan.epochs)

    setting.progress(0, runs * plan.epochs)
    for number in range(runs):
        mine = replace(plan, seed=setting.seed * RUNS + number)
        kept = folder / f"abstention-cifar10-seed{mine.seed}-epochs{mine.epochs}.pt"
        net, _ = train(pixels, label, mine, device=setting.device, kept=kept, progress=step)
        score = scores_of(net, test, pixels)
        found.append(device_profile(test.to(score.device), test_label.to(score.device), score))
    return found


def usable(device: str) -> None:
    """Refuse a device that this torch does not have. Error (UsageError)."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = (str(error).splitlines() or ["?"])[0]
        raise UsageError(f"--device {device} cannot be used by this installation of PyTorch: {reason}") from None


def device_profile(images: Tensor, label: Tensor, score: Tensor) -> PairProfile:
    """Count all pairs of images of bytes by the ℓ∞ distance of their pixels, 0 to 255, where the tensors are.

    The distances of a block of images to all later ones are computed at once; values are whole and exact in float32.
    """
    pixels = images.flatten(1).float()
    pairs, wrong = np.zeros((2, 256), np.int64)
    later = torch.arange(len(pixels), device=pixels.device)
    for begin in range(0, len(pixels), BLOCK):
        here = slice(begin, begin + BLOCK)
        distance = torch.cdist(pixels[here], pixels[begin:], p=float("inf")).long()
        counts = (label[here, None] != label[None, begin:]) & (later[None, begin:] > later[here, None])
        order = torch.sign(label[None, begin:] - label[here, None]) * torch.sign(
            score[None, begin:] - score[here, None]
        )
        distance, order = distance[counts], order[counts]
        pairs += 2 * torch.bincount(distance, minlength=256).cpu().numpy()
        for twice in (order < 0, order <= 0):
            wrong += torch.bincount(distance[twice], minlength=256).cpu().numpy()
    return PairProfile(pairs, wrong)

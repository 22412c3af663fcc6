"""RwA Table 1 on scikit-learn's digits: runs of a small network, and the pairs of unseen images by distance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from concordant.abstention.losses import pairwise_abstention_loss
from concordant.reproduction.pair_profile import PairProfile, profile
from concordant.reproduction.small_network import train_small

__all__ = ["PIXEL", "JudgedDigits", "digits_runs", "distances"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PIXEL = 16
"""Pixels are whole numbers from 0 to this."""
TRAIN = 1_000
"""Training images; the other 797 are judged."""
HIDDEN, RIDGE, STEPS = 32, 1e-3, 500
QUICK_STEPS = 50


@dataclass(frozen=True, eq=False)
class JudgedDigits:
    """The images of one run that were not learned from, and their scores."""

    whole: Ints
    """Pixels 0 to 16, shape (images, 64)."""
    label: Ints
    score: Floats

    def profile(self, norm: str) -> PairProfile:
        """Their pairs by distance, in sixteenths (squared for ℓ2)."""
        return profile(self.whole, self.label, self.score, norm)

    def losses(self, levels: Sequence[int], cost: float, norm: str) -> Floats:
        """The pairwise abstention loss by ``pairwise_abstention_loss`` at γ just above each whole distance."""
        between = np.asarray(levels) + 0.5
        gamma = (between if norm == "inf" else np.sqrt(between)) / PIXEL
        X = self.whole / PIXEL
        return np.asarray(pairwise_abstention_loss(self.score, X, self.label, gamma=gamma, cost=cost, norm=norm))


def digits_runs(*, runs: int, quick: bool, seed: int, progress: Callable[[int, int], None]) -> list[JudgedDigits]:
    """Train a network on 1,000 images in each of ``runs`` random divisions and score the others."""
    whole, label = _digits()
    found = []
    progress(0, runs)
    for number in range(runs):
        order = np.random.default_rng([seed, number]).permutation(len(label))
        train, test = order[:TRAIN], order[TRAIN:]
        steps = QUICK_STEPS if quick else STEPS
        net = train_small(
            whole[train] / PIXEL, label[train], hidden=HIDDEN, ridge=RIDGE, steps=steps, seed=seed + number
        )
        found.append(JudgedDigits(whole[test], label[test], net.score(whole[test] / PIXEL)))
        progress(number + 1, runs)
    return found


@cache
def distances(norm: str) -> PairProfile:
    """All pairs of the 1,797 images by distance; nothing is scored, all count as level."""
    whole, label = _digits()
    return profile(whole, label, np.zeros(len(label)), norm)


def _digits() -> tuple[Ints, Ints]:
    data = load_digits()
    return np.asarray(data.data, np.int64), np.asarray(data.target, np.int64)

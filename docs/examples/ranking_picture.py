"""The picture of the README: 59 language models, their scores, 95% intervals and ranks (needs the extra figures).

Run: ``python docs/examples/ranking_picture.py docs/figures/ranking.svg``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

import concordant as cc

VOTES = next(Path(cc.__file__).parent.rglob("llmfao/crowd-comparisons.csv"))


def main(target: str) -> None:
    """Draw the ranking of the votes that ship with the package, clustered by person."""
    board = cc.rank(cc.read(VOTES, columns={"cluster": "worker"})).to_pandas()
    place = np.arange(len(board))
    matplotlib.rcParams.update({"svg.hashsalt": "concordant", "font.size": 8})
    figure, axes = plt.subplots(figsize=(8, 8.5), layout="constrained")
    axes.hlines(place, board["lower"], board["upper"], color="#9db8d2", linewidth=3)
    axes.plot(board["score"], place, "o", color="#1f4e79", markersize=3.5)
    axes.axvline(0, color="#bbbbbb", linewidth=0.8, zorder=0)
    axes.set_yticks(place, board["item"], fontsize=6.5)
    axes.set_ylim(len(board) - 0.5, -0.5)
    axes.set_xlabel(
        "Bradley–Terry score with 95% interval, clustered by person; right: ranks that hold for all models at once"
    )
    right = axes.secondary_yaxis("right")
    ranges = [f"{low}–{high}" for low, high in zip(board["rank_lower"], board["rank_upper"])]
    right.set_yticks(place, ranges, fontsize=6.5)
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    right.tick_params(length=0)
    right.spines["right"].set_visible(False)
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1])

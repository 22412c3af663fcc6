"""Draw docs/figures/why-abstain.svg: what the surrogate sees of a misranked pair, and what abstention makes of it.

python docs/examples/why_abstain.py docs/figures/why-abstain.svg
"""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np

from concordant.abstention.bounds import consistency_bound
from concordant.abstention.points import PHIS, phi_named

mpl.use("svg")
from matplotlib import pyplot as plt

GAP = 0.01
COLOURS = dict(zip(PHIS, ("tab:blue", "tab:orange", "tab:green"), strict=True))


def draw(path: str) -> None:
    """Two panels, W = 1."""
    plt.rcParams.update({"svg.hashsalt": "why-abstain", "svg.fonttype": "none", "font.size": 9})
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    distance, gamma = np.geomspace(1e-4, 4, 200), np.geomspace(1e-3, 4, 200)
    left.axhline(1.0, color="black", label="misranking")
    for phi, colour in COLOURS.items():
        value = phi_named(phi).value
        left.plot(distance, value(np.zeros(1)) - value(distance), color=colour, label=phi)
        bound = [consistency_bound(GAP, phi=phi, W=1.0, gamma=float(at)).item() for at in gamma]
        right.plot(gamma, bound, color=colour, label=phi)
    right.axhline(1.0, color="black", linestyle=":", label="says nothing above")
    left.set(xlabel="distance of the two points", ylabel="excess of h = 0", title="Without abstention")
    right.set(xlabel="γ", ylabel=f"Γ({GAP})", title=f"Bound at a surrogate gap of {GAP}")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log")
        axes.legend(frameon=False)
    left.set_ylim(1e-4, 2)
    right.set_ylim(5e-3, 10)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(sys.argv[1])

"""How fast does the pairwise loss fall with the number of votes? Simulations; writes the table of docs/rates.md.

    python -m benchmarks.rates [--quick] [--seed N] [--page docs/rates.md]

Three items, one vote each time, drawn from a population that is known; a surrogate is minimised over all scores and its
order charged with the population's own pairwise loss. Many logs are one batch.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from concordant.auditing.regret import mean_floor, order_loss
from concordant.losses.minimise import minimise
from concordant.losses.objective import Population
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Graphs

Floats = NDArray[np.float64]
DOCS = Path(__file__).parent.parent / "docs"
SURROGATES = ("difference-graph", "linear", "ranknet")
VOTES = (100, 400, 1_600, 6_400, 25_600, 102_400, 409_600)
WINNER, LOSER = np.array([0, 1, 0, 1, 2, 2]), np.array([1, 2, 2, 0, 1, 0])
"""1 ≻ 2, 2 ≻ 3, 1 ≻ 3, and back."""


@dataclass(frozen=True)
class Case:
    """A population for each log: its net preferences say 1, 2, 3."""

    name: str
    near: str
    """How near a tie 2 and 3 are: a margin, 'uniform' between 0 and it, or 'worst' for the number of votes."""
    forward: tuple[float, float, float]
    """Shares of 1 ≻ 2, 2 ≻ 3, 1 ≻ 3."""
    back: tuple[float, float, float]
    """Shares of 2 ≻ 1, 3 ≻ 2, 3 ≻ 1."""

    def shares(self, rng: np.random.Generator, logs: int, votes: int) -> Floats:
        """Shares of the six comparisons in each log; shape (logs, 6)."""
        found = np.tile(np.array(self.forward + self.back), (logs, 1))
        both, margin = found[:, 1] + found[:, 4], found[:, 1] - found[:, 4]
        if self.near == "uniform":
            margin = margin * rng.uniform(size=logs)
        if self.near == "worst":
            margin = np.minimum(margin, np.sqrt(both / votes))
        found[:, 1], found[:, 4] = (both + margin) / 2, (both - margin) / 2
        if self.near != "margin":  # low noise with equality: 1 over 3 by what 1 is over 2 and 2 over 3
            over = found[:, 0] - found[:, 3] + margin
            both = found[:, 2] + found[:, 5]
            found[:, 2], found[:, 5] = (both + over) / 2, (both - over) / 2
        return found


CASES = (
    Case("low noise, margins of .1 and more", "margin", (0.15, 0.20, 0.35), (0.05, 0.10, 0.15)),
    Case("low noise, margin of 2 over 3 uniform in (0, .1)", "uniform", (0.15, 0.20, 0.35), (0.05, 0.10, 0.15)),
    Case("low noise, the worst margin for each n", "worst", (0.15, 0.20, 0.35), (0.05, 0.10, 0.15)),
    Case("low noise, worst for ranknet", "margin", (0.199, 0.087, 0.5), (0.0, 0.0, 0.214)),
    Case("acyclic, not low noise", "margin", (0.2, 1 / 3, 0.2), (2 / 15, 0.0, 2 / 15)),
)


def excess(case: Case, votes: int, logs: int, seed: int) -> dict[str, tuple[float, float]]:
    """Mean excess of the pairwise loss over logs, and its standard error, of each surrogate."""
    rng = np.random.default_rng([seed, CASES.index(case), votes])
    shares = case.shares(rng, logs, votes)
    counts = rng.multinomial(votes, shares / shares.sum(axis=1, keepdims=True))
    start = 3 * np.arange(logs + 1)
    ends = [(start[:-1, None] + column).ravel() for column in (WINNER, LOSER)]
    truth = Graphs.from_edges(start, *ends, shares.ravel())
    ones = np.ones(shares.size)
    people = Population(start, *ends, ones, counts.ravel() / votes)
    found = {}
    for name in SURROGATES:
        alpha = minimise(surrogate(name).objective(people)).alpha
        lost = np.maximum(order_loss(truth, alpha, close=1e-9) - mean_floor(truth), 0.0)
        lost[lost < 1e-12] = 0.0
        found[name] = float(lost.mean()), float(lost.std() / np.sqrt(logs))
    return found


def slope(votes: tuple[int, ...], means: list[float]) -> str:
    """How the excess falls as a power of n from 1,600 votes on, where it is seen there at all."""
    late = [(n, mean) for n, mean in zip(votes, means, strict=True) if n >= 1_600]
    if any(mean == 0 for _, mean in late):
        return "faster"
    x, y = np.log([n for n, _ in late]), np.log([mean for _, mean in late])
    return f"{np.polyfit(x, y, 1)[0]:.2f}"


def _cell(mean: float, error: float) -> str:
    wide = f" ± {1.96 * error:.1g}" if error > 1e-9 else ""
    return f"{mean:.2g}{wide}" if mean else "0"


def table(logs: int, seed: int) -> str:
    """The table of the page."""
    lines = [
        "| population | surrogate | " + " | ".join(f"n = {n:,}" for n in VOTES) + " | power of n |",
        "|---" * (len(VOTES) + 3) + "|",
    ]
    for case in CASES:
        found = [excess(case, n, logs, seed) for n in VOTES]
        for place, name in enumerate(SURROGATES):
            cells = [_cell(*one[name]) for one in found]
            power = slope(VOTES, [one[name][0] for one in found])
            row = f"| {case.name if place == 0 else ''} | {name} | {' | '.join(cells)} | {power} |"
            print(row, flush=True)
            lines.append(row)
    return "\n".join(lines)


def put(page: Path, text: str) -> None:
    """Replace what stands between the page's marks."""
    begin, end = "<!-- rates: written by benchmarks/rates.py -->", "<!-- end of rates -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


def main() -> None:
    """Simulate and write the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.rates", description=(__doc__ or "").splitlines()[0])
    options.add_argument("--quick", action="store_true", help="200 logs instead of 20,000, and no page is written")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--page", type=Path, default=DOCS / "rates.md")
    asked = options.parse_args()
    text = table(200 if asked.quick else 20_000, asked.seed)
    if not asked.quick:
        put(asked.page, text)


if __name__ == "__main__":
    main()

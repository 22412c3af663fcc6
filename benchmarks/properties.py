"""Do the intervals of what properties of items do hold?

``python -m benchmarks.properties`` draws items with a property x and abilities x + u, u normal with standard deviation
σ, and comparisons at random; it explains them with random effects, without, and by penalised quasi-likelihood (the
coefficients at the peak of all together, as BradleyTerry2 has them), and prints the mean coefficient (1 is right), how
many 95% intervals hold 1, and the quartiles of the estimated σ.
"""

from __future__ import annotations

import argparse
from unittest import mock

import numpy as np

import concordant as cc
from concordant.errors import CannotRank
from concordant.ranking.explaining import _Model

DESIGNS = ((30, 300, 1.0), (30, 300, 0.0), (77, 100, 1.0), (77, 300, 1.0), (77, 3000, 1.0), (20, 2000, 1.0))
"""Items, comparisons, σ."""


def drawn(rng: np.random.Generator, items: int, number: int, spread: float) -> tuple[cc.Preferences, dict[str, object]]:
    """Draw comparisons, and the property."""
    x = rng.normal(size=items)
    ability = x + spread * rng.normal(size=items)
    first = rng.integers(0, items, number)
    second = (first + rng.integers(1, items, number)) % items
    won = rng.random(number) < 1 / (1 + np.exp(ability[second] - ability[first]))
    votes = cc.Preferences.from_comparisons(np.where(won, first, second), np.where(won, second, first))
    return votes, {"item": np.arange(items), "x": x}


def row(how: str, items: int, number: int, spread: float, sets: int, seed: int) -> str:
    """Explain drawn sets; a row of the table."""
    found, refused = [], 0
    for one in range(sets):
        votes, table = drawn(np.random.default_rng([seed, one]), items, number, spread)
        try:
            with mock.patch.object(_Model, "_bent", return_value=0.0) if how == "peak" else mock.MagicMock():
                got = cc.explain(votes, table, effects="none" if how == "none" else "random")
        except CannotRank:
            refused += 1
            continue
        x = got.coefficients.to_pylist()[0]
        found.append((x["estimate"], x["lower"] < 1 < x["upper"], got.spread))
    value = np.array(found, float)
    quartiles = " ".join(f"{one:.2f}" for one in np.quantile(value[:, 2], [0.25, 0.5, 0.75]))
    mean, error = value[:, 0].mean(), value[:, 0].std() / np.sqrt(len(value))
    cells = (f"{items} items, {number} votes, σ = {spread:g}", how, f"{mean:.3f} ± {error:.3f}")
    return " | ".join(("", *cells, f"{value[:, 1].mean():.1%}", quartiles, str(refused), "")).strip()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| design | effects | coefficient | intervals that hold it | σ found | refused |\n|---|---|---|---|---|---|")
    for design in DESIGNS:
        for how in ("random", "peak", "none"):
            print(row(how, *design, given.sets, given.seed), flush=True)


if __name__ == "__main__":
    main()

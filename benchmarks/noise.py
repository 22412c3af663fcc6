"""Are the verdicts on cycles right? Simulations with known truths; writes the tables and the figure of docs/noise.md.

    python -m benchmarks.noise [--quick] [--seed N] [--output docs/noise.md]

Every simulated query is one query of a log, so that all of a design are tested as one batch.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import matplotlib
import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import beta

from concordant.auditing.cycle_tests import bottlenecks, cycle_test
from concordant.auditing.noise import noise
from concordant.preferences.connectivity import Differences
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences, counted_comparisons, counted_lists

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
LEVEL = 0.05
MARKS = {name: (f"<!-- {name}: written by benchmarks/noise.py -->", f"<!-- end of {name} -->") for name in (
    "calibration", "expected", "power",
)}  # fmt: skip


# -- populations -------------------------------------------------------------------------------------------------
def ladder(rng: np.random.Generator, items: int, level_share: float, margin: float) -> Floats:
    """d_ij of an acyclic truth: neighbours in the order are never level, of the others ``level_share`` are."""
    d = np.zeros((items, items))
    for i in range(items):
        for j in range(i + 1, items):
            level = j > i + 1 and rng.random() < level_share
            d[i, j] = 0.0 if level else margin
    return d - d.T


def bradley_terry(items: int, spread: float) -> Floats:
    """d_ij of a Bradley–Terry model whose scores go evenly from spread to −spread."""
    scores = np.linspace(spread, -spread, items)
    return np.tanh((scores[:, None] - scores[None, :]) / 2)


def three_cycle(items: int, margin: float) -> Floats:
    """0 → 1 → 2 → 0 with this margin; the other items below them, in order, with margin 0.4."""
    d = np.triu(np.full((items, items), 0.4), 1)
    d[0, 1] = d[1, 2] = margin
    d[0, 2] = -margin
    d = np.triu(d, 1)
    return d - d.T


# -- samples -----------------------------------------------------------------------------------------------------
def votes(
    rng: np.random.Generator, d: Floats, sets: int, per_pair: Callable[[int], Whole], tied: float = 0.0,
    share: float = 1.0,
) -> Preferences:  # fmt: skip
    """Comparisons: each pair of each query is asked ``per_pair`` times with chance ``share``; ``tied`` of them tie."""
    first, second = np.triu_indices(len(d), 1)
    query = np.repeat(np.arange(sets), len(first))
    pair = np.tile(np.arange(len(first)), sets)
    asked = per_pair(len(pair)) * (rng.random(len(pair)) < share)
    query, pair = np.repeat(query, asked), np.repeat(pair, asked)
    tie = rng.random(len(pair)) < tied
    net = d[first[pair], second[pair]] / (1.0 - tied)  # d is the net preference, ties included
    won = rng.random(len(pair)) < (1.0 + np.clip(net, -1.0, 1.0)) / 2
    winner, loser = np.where(won, first[pair], second[pair]), np.where(won, second[pair], first[pair])
    return counted_comparisons(pa.array(winner), pa.array(loser), query=pa.array(query), tie=tie)


def fixed(number: int) -> Callable[[int], Whole]:
    """The same number of votes for every pair."""
    return lambda pairs: np.full(pairs, number)


def uneven(rng: np.random.Generator) -> Callable[[int], Whole]:
    """From 1 to 60 votes, most pairs few."""
    return lambda pairs: np.ceil(60 * rng.random(pairs) ** 3).astype(np.int64)


def skewed(rng: np.random.Generator, d: Floats, sets: int, number: int) -> Preferences:
    """Weighted comparisons, level in the mean where d = 0: three of four are won with strength 1, one lost with 3."""
    first, second = np.triu_indices(len(d), 1)
    query = np.repeat(np.arange(sets), len(first) * number)
    pair = np.tile(np.repeat(np.arange(len(first)), number), sets)
    level = d[first[pair], second[pair]] == 0
    won = rng.random(len(pair)) < np.where(level, 0.75, 0.95)
    winner, loser = np.where(won, first[pair], second[pair]), np.where(won, second[pair], first[pair])
    weight = np.where(level & ~won, 3.0, 1.0)
    return counted_comparisons(pa.array(winner), pa.array(loser), query=pa.array(query), weight=weight)


def rankings(rng: np.random.Generator, d: Floats, sets: int, number: int) -> Preferences:
    """Rankings drawn evenly from all: every pair is level, the pairs of a ranking hang together."""
    items = len(d)
    order = np.argsort(rng.random((sets * number, items)), axis=1)
    offsets = np.arange(0, items * (sets * number) + 1, items)
    rank = np.tile(np.arange(1.0, items + 1), sets * number)
    query = np.repeat(np.arange(sets), number)
    return counted_lists("orders", offsets, pa.array(order.ravel()), rank, query=pa.array(query))


def workers(rng: np.random.Generator, d: Floats, sets: int, number: int, *, known: bool) -> Preferences:
    """Level pairs; ``number`` workers, each with tastes of her own, vote four times on each pair."""
    first, second = np.triu_indices(len(d), 1)
    strict = d[first, second] > 0
    taste = np.where(strict, 1.0, np.where(rng.random((sets, number, len(first))) < 0.5, 0.9, 0.1))
    won = (rng.random((sets, number, len(first), 4)) < taste[..., None]).ravel()
    query, worker, pair, _ = (x.ravel() for x in np.indices((sets, number, len(first), 4)))
    winner, loser = np.where(won, first[pair], second[pair]), np.where(won, second[pair], first[pair])
    label = pa.array(worker) if known else None
    return counted_comparisons(pa.array(winner), pa.array(loser), query=pa.array(query), cluster=label)


# -- calibration -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Design:
    """Queries of one acyclic truth."""

    name: str
    items: int
    asked: str
    sample: Callable[[np.random.Generator, int], Preferences]
    sets: int = 4000
    resampled: int = 150


def asked(items: int, margin: float, number: int) -> Callable[[np.random.Generator, int], Preferences]:
    """An order whose neighbours have this margin, all other pairs level; as many votes on every pair."""
    return lambda rng, sets: votes(rng, ladder(rng, items, 1.0, margin), sets, fixed(number))


def scored(rng: np.random.Generator, sets: int, *, items: int, spread: float, number: int) -> Preferences:
    """A Bradley–Terry model, as many votes on every pair."""
    return votes(rng, bradley_terry(items, spread), sets, fixed(number))


def designs() -> list[Design]:
    """All have an acyclic truth."""
    found = [
        Design(f"order, all other pairs level, margin {margin:g}", items, f"{number} a pair",
               asked(items, margin, number), 4000 if items * number < 1000 else 1500)
        for items, number, margin in ((3, 5, 1.0), (3, 50, 1.0), (4, 20, 1.0), (6, 20, 1.0), (12, 20, 1.0),
                                      (12, 200, 0.6), (30, 40, 1.0))
    ] + [
        Design("all pairs level", items, f"{number} a pair", asked(items, 0.0, number), 4000 if number < 100 else 1500)
        for items, number in ((3, 5), (5, 3), (6, 20), (12, 200))
    ]  # fmt: skip
    found += [
        Design("half the pairs level, margin 0.3, 30% ties", 8, "20 a pair",
               lambda rng, sets: votes(rng, ladder(rng, 8, 0.5, 0.3), sets, fixed(20), tied=0.3)),
        Design("order, others level, margin 0.7, 30% ties", 6, "40 a pair",
               lambda rng, sets: votes(rng, ladder(rng, 6, 1.0, 0.7), sets, fixed(40), tied=0.3)),
        Design("order, others level, margin 1", 10, "1 to 60 a pair",
               lambda rng, sets: votes(rng, ladder(rng, 10, 1.0, 1.0), sets, uneven(rng))),
        Design("order, others level, a third of the pairs asked", 20, "15 a pair",
               lambda rng, sets: votes(rng, ladder(rng, 20, 1.0, 1.0), sets, fixed(15), share=0.33)),
        Design("order with margin 0.2, nothing level", 8, "10 a pair",
               lambda rng, sets: votes(rng, ladder(rng, 8, 0.0, 0.2), sets, fixed(10))),
        *(Design(f"Bradley–Terry, scores {spread:g} to −{spread:g}", items, f"{number} a pair",
                 partial(scored, items=items, spread=spread, number=number))
          for items, spread, number in ((5, 1.5, 1), (5, 1.5, 3), (8, 1.0, 5), (6, 2.0, 20))),
        Design("strengths that differ, skewed, others level", 5, "40 a pair",
               lambda rng, sets: skewed(rng, ladder(rng, 5, 1.0, 1.0), sets, 40), 2000),
        Design("rankings, all level", 6, "40 rankings",
               lambda rng, sets: rankings(rng, np.zeros((6, 6)), sets, 40), 2000),
        Design("20 workers, four votes a pair each, clusters given", 5, "80 a pair",
               lambda rng, sets: workers(rng, ladder(rng, 5, 1.0, 1.0), sets, 20, known=True), 1000),
        Design("the same, taken for independent votes", 5, "80 a pair",
               lambda rng, sets: workers(rng, ladder(rng, 5, 1.0, 1.0), sets, 20, known=False), 1000),
    ]  # fmt: skip
    return found


def interval(hits: int, number: int) -> tuple[float, float]:
    """95% limits of a binomial chance (Clopper and Pearson)."""
    low = float(beta.ppf(0.025, hits, number - hits + 1)) if hits else 0.0
    high = float(beta.ppf(0.975, hits + 1, number - hits)) if hits < number else 1.0
    return low, high


def calibrate(design: Design, rng: np.random.Generator, quick: bool) -> tuple[str, str]:
    """A line of the table of verdicts, and one of the table of expected cycles."""
    sets = design.sets // (10 if quick else 1)
    prefs = design.sample(rng, sets)
    batch = Batch.whole(prefs)
    net = Differences.of(batch.graphs)
    test = cycle_test(batch, net)
    seen = int(np.isfinite(test.threshold).sum())
    hits = int((test.p <= LEVEL).sum())
    naive = int((bottlenecks(net, test.edge_p) <= LEVEL).sum())
    low, high = interval(hits, sets)
    mark = " ✗" if low > LEVEL else ""
    few = Batch.whole(prefs, np.arange(min(design.resampled, len(prefs.queries))))
    found = noise(few, replicates=100)
    return (
        f"| {design.name} | {design.items} | {design.asked} | {sets:,} | {seen / sets:.1%} | {naive / sets:.1%} | "
        f"{hits / sets:.1%} ({low:.1%} – {high:.1%}){mark} |",
        f"| {design.name} | {design.items} | {design.asked} | {seen / sets:.1%} | {found.expected_cyclic_share:.1%} | "
        f"{1 - found.acyclic_share.mean():.1%} |",
    )


# -- power -------------------------------------------------------------------------------------------------------
MARGINS = (0.1, 0.2, 0.3, 0.4)
NUMBERS = (5, 10, 15, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 1000)


def power(items: int, margin: float, number: int, sets: int, rng: np.random.Generator) -> tuple[float, float]:
    """Share of the samples of a true 3-cycle called cyclic, and by Bonferroni's correction for all pairs."""
    batch = Batch.whole(votes(rng, three_cycle(items, margin), sets, fixed(number)))
    test = cycle_test(batch, Differences.of(batch.graphs))
    pairs = items * (items - 1) / 2
    return float((test.p <= LEVEL).mean()), float((test.threshold * pairs <= LEVEL).mean())


def curves(quick: bool, seed: int) -> dict[tuple[int, float], list[tuple[float, float]]]:
    """Power against the number of votes, for three and ten items."""
    found = {}
    for items, sets in ((3, 1000), (10, 300)):
        for margin in MARGINS:
            rng = np.random.default_rng([seed, items, int(100 * margin)])
            found[items, margin] = [
                power(items, margin, number, sets // (10 if quick else 1), rng) for number in NUMBERS
            ]
    return found


def draw(found: dict[tuple[int, float], list[tuple[float, float]]], path: Path) -> None:
    """The power curves as SVG."""
    style = {
        "svg.hashsalt": "noise-power", "svg.fonttype": "none", "font.size": 9.0,
        "axes.spines.top": False, "axes.spines.right": False,
    }  # fmt: skip
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(7.5, 3.2), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for ax, items in zip(axes, (3, 10), strict=True):
            for colour, margin in enumerate(MARGINS):
                ours, plain = zip(*found[items, margin], strict=True)
                ax.plot(NUMBERS, ours, color=f"C{colour}", marker="o", markersize=3, label=f"{margin:g}")
                ax.plot(NUMBERS, plain, color=f"C{colour}", linestyle=":", linewidth=1.2)
            ax.set_xscale("log")
            ax.set_xticks([5, 10, 20, 50, 100, 200, 500, 1000], ["5", "10", "20", "50", "100", "200", "500", "1000"])
            ax.minorticks_off()
            ax.set_xlabel("votes a pair")
            ax.set_title("three items" if items == 3 else "the same three among ten items", fontsize=9)
        axes[0].set_ylabel("share called cyclic at level .05")
        axes[0].legend(title="margin of the cycle", frameon=False, loc="upper left")
        figure.savefig(path, metadata={"Date": None})


def power_table(found: dict[tuple[int, float], list[tuple[float, float]]]) -> str:
    """Votes needed for a power of 80%, from the curves."""
    lines = ["| items | " + " | ".join(f"margin {margin:g}" for margin in MARGINS) + " |", "|---" * 5 + "|"]
    for items in (3, 10):
        cells = []
        for margin in MARGINS:
            share = np.maximum.accumulate([ours for ours, _ in found[items, margin]])
            enough = np.flatnonzero(share >= 0.8)
            if not len(enough):
                cells.append(f"more than {NUMBERS[-1]:,}")
                continue
            at = float(np.exp(np.interp(0.8, share, np.log(NUMBERS)))) if enough[0] else float(NUMBERS[0])
            cells.append(f"{at:.2g}".replace("e+02", "00") if at < 100 else f"{round(at, -1):.0f}")
        lines.append(f"| {items} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def put(page: str, name: str, text: str) -> str:
    """Put a text between its marks."""
    begin, end = MARKS[name]
    before, rest = page.split(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}"


def main() -> None:
    """Run the simulations, print the tables, and put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the queries; prints, writes nothing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent.parent / "docs" / "noise.md")
    chosen = parser.parse_args()
    lines, expected = [], []
    for number, design in enumerate(designs()):
        begin = time.perf_counter()
        line, other = calibrate(design, np.random.default_rng([chosen.seed, number]), chosen.quick)
        lines.append(line)
        expected.append(other)
        print(line, other, f"{time.perf_counter() - begin:.1f} s", sep="\n", flush=True)
    found = curves(chosen.quick, chosen.seed)
    verdicts = "\n".join([
        "| truth (acyclic) | items | votes | queries | show a cycle | each edge p ≤ .05 | called cyclic (95% limits) |",
        "|---|---|---|---|---|---|---|", *lines,
    ])  # fmt: skip
    shares = "\n".join([
        "| truth (acyclic) | items | votes | show a cycle | expected_cyclic | replicates with a cycle |",
        "|---|---|---|---|---|---|", *expected,
    ])  # fmt: skip
    needed = power_table(found)
    print(needed)
    if chosen.quick:
        return
    draw(found, chosen.output.parent / "figures" / "noise-power.svg")
    page = chosen.output.read_text(encoding="utf-8")
    for name, text in (("calibration", verdicts), ("expected", shares), ("power", needed)):
        page = put(page, name, text)
    chosen.output.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

"""How often do the 95% intervals hold? A simulation with known scores; writes the tables of docs/coverage.md.

    python benchmarks/coverage.py [--quick] [--part pairs|ballots] [--seed N] [--output docs/coverage.md]
    python -m benchmarks.coverage --open [--quick]     items that may have no maximum likelihood; only prints

Every data set of a design is one query, so that all of them are fitted as one batch. A data set in which the maximum
likelihood does not exist has infinite intervals; these are counted apart and left out of the coverage.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences, counted_comparisons, counted_lists
from concordant.ranking.bootstrap import bootstrap
from concordant.ranking.rank import rank
from concordant.ranking.rank_intervals import rank_intervals, rank_intervals_of_replicates
from concordant.ranking.standard_errors import score_intervals
from concordant.ranking.structures import structure

Floats = NDArray[np.float64]
PARTS = ("pairs", "ballots")
BEGIN, END = "<!-- table of {}: written by benchmarks/coverage.py -->", "<!-- end of the table of {} -->"
LEVEL = 0.95


@dataclass(frozen=True)
class Design:
    """One way to make data sets with known scores."""

    name: str
    items: int
    size: int
    """Comparisons or rankings of a data set."""
    sets: int
    make: Callable[[np.random.Generator, Design], tuple[Preferences, Floats]]
    methods: tuple[tuple[str, str, dict[str, Any]], ...]
    """(structure, interval, options)."""
    spread: float = 1.0
    bootstrapped: int = 150
    """Of how many data sets a bootstrap is made."""
    shown: float = 2.0
    """Evenness of the items' popularity (Dirichlet parameter)."""
    tiers: tuple[int, ...] = ()
    """Items of each tier of a ballot."""
    part: str = "pairs"
    """Which table it belongs to."""


# -- data sets ---------------------------------------------------------------------------------------------------
def truth(rng: np.random.Generator, design: Design) -> tuple[Floats, Floats]:
    """Scores that sum to zero and how often each item is shown."""
    scores = rng.normal(0.0, design.spread, design.items)
    popularity = rng.dirichlet(np.full(design.items, design.shown)) * 0.8 + 0.2 / design.items
    return scores - scores.mean(), popularity


def two_of(rng: np.random.Generator, popularity: Floats, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of different items."""
    first = rng.choice(len(popularity), rows, p=popularity)
    second = rng.choice(len(popularity), rows, p=popularity)
    while (same := first == second).any():
        second[same] = rng.choice(len(popularity), int(same.sum()), p=popularity)
    return first, second


def logistic(x: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-x))


def comparisons(rng: np.random.Generator, design: Design, tied: float = 0.0) -> tuple[Preferences, Floats]:
    """Independent comparisons; with ``tied``, ties such that a half win each leaves the expectation right."""
    scores, popularity = truth(rng, design)
    rows = design.sets * design.size
    first, second = two_of(rng, popularity, rows)
    win = logistic(scores[first] - scores[second])
    tie_rate = 2 * tied * np.minimum(win, 1 - win)
    draw = rng.random(rows)
    tie = draw < tie_rate
    won = ~tie & (draw < tie_rate / 2 + win)
    query = np.repeat(np.arange(design.sets), design.size)
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    prefs = counted_comparisons(pa.array(winner), pa.array(loser), query=pa.array(query), tie=tie)
    return prefs, scores


def with_ties(rng: np.random.Generator, design: Design) -> tuple[Preferences, Floats]:
    """Comparisons of which a good part tie."""
    return comparisons(rng, design, tied=0.4)


def davidson(rng: np.random.Generator, design: Design) -> tuple[Preferences, Floats]:
    """Davidson's model with ν = 0.8."""
    scores, popularity = truth(rng, design)
    rows = design.sets * design.size
    first, second = two_of(rng, popularity, rows)
    half = np.exp((scores[first] - scores[second]) / 2)
    total = half + 1 / half + 0.8
    draw = rng.random(rows) * total
    tie, won = draw < 0.8, draw >= 0.8 + 1 / half
    query = np.repeat(np.arange(design.sets), design.size)
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    prefs = counted_comparisons(pa.array(winner), pa.array(loser), query=pa.array(query), tie=tie)
    return prefs, scores


WORKERS, TASTE = 80, 0.7


def workers(rng: np.random.Generator, design: Design) -> tuple[Preferences, Floats]:
    """80 workers, each with a taste of her own: N(0, 0.7²) added to every item's score for all she judges.

    What is estimated is then the Bradley–Terry fit to the population of workers: its scores are the truth here.
    """
    scores, popularity = truth(rng, design)
    rows = design.sets * design.size
    query = np.repeat(np.arange(design.sets), design.size)
    worker = rng.integers(0, WORKERS, rows)
    taste = rng.normal(0.0, TASTE, (design.sets, WORKERS, design.items))
    first, second = two_of(rng, popularity, rows)
    gap = scores[first] - scores[second] + taste[query, worker, first] - taste[query, worker, second]
    won = rng.random(rows) < logistic(gap)
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    prefs = counted_comparisons(pa.array(winner), pa.array(loser), query=pa.array(query), cluster=pa.array(worker))
    return prefs, population_fit(scores, popularity)


CROSSED = 0.5


def crossed(rng: np.random.Generator, design: Design, sides: int) -> tuple[Preferences, Floats]:
    """As many judges as prompts; each adds N(0, 0.5²) of its own to every item's score."""
    scores, popularity = truth(rng, design)
    rows = design.sets * design.size
    query = np.repeat(np.arange(design.sets), design.size)
    judge, prompt = rng.integers(0, sides, rows), rng.integers(0, sides, rows)
    first, second = two_of(rng, popularity, rows)
    gap = scores[first] - scores[second]
    for label in (judge, prompt):
        taste = rng.normal(0.0, CROSSED, (design.sets, sides, design.items))
        gap += taste[query, label, first] - taste[query, label, second]
    won = rng.random(rows) < logistic(gap)
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    prefs = Preferences.from_comparisons(winner, loser, query, cluster={"judge": judge, "prompt": prompt})
    return prefs, population_fit(scores, popularity, CROSSED * np.sqrt(2.0))


def population_fit(scores: Floats, popularity: Floats, taste: float = TASTE) -> Floats:
    """Bradley–Terry scores of the population: wins in proportion to popularity and the mean win rate over tastes."""
    points, mass = np.polynomial.hermite_e.hermegauss(40)
    gap = scores[:, None] - scores[None, :]
    rate = (logistic(gap[:, :, None] + taste * np.sqrt(2.0) * points) * mass).sum(axis=2) / mass.sum()
    share = popularity[:, None] * popularity[None, :] / (1 - popularity)[:, None]
    share = share + share.T
    np.fill_diagonal(share, 0.0)
    found = scores.copy()
    for _ in range(100):
        now = logistic(found[:, None] - found[None, :])
        curve = share * now * (1 - now)
        step = np.linalg.solve(
            np.diag(curve.sum(axis=1)) - curve + 1.0 / len(scores), (share * (rate - now)).sum(axis=1)
        )
        found = found + step
        if np.abs(step).max() < 1e-12:
            break
    return found - found.mean()


def rankings(rng: np.random.Generator, design: Design) -> tuple[Preferences, Floats]:
    """Plackett–Luce rankings of five items each (Gumbel noise on the scores, sorted)."""
    scores, popularity = truth(rng, design)
    rows = design.sets * design.size
    shown = np.argsort(rng.gumbel(size=(rows, design.items)) + np.log(popularity), axis=1)[:, -5:]
    order = np.argsort(-(scores[shown] + rng.gumbel(size=shown.shape)), axis=1)
    item = np.take_along_axis(shown, order, axis=1)
    query = np.repeat(np.arange(design.sets), design.size)
    offsets = np.arange(0, 5 * rows + 1, 5)
    rank = np.tile(np.arange(1.0, 6.0), rows)
    return counted_lists("orders", offsets, pa.array(item.ravel()), rank, query=pa.array(query)), scores


def ballots(rng: np.random.Generator, design: Design) -> tuple[Preferences, Floats]:
    """Plackett–Luce orders of all items, of which the ballot shows the tiers of these sizes, the best first."""
    scores = np.linspace(1.5, -1.5, design.items)
    rows = design.sets * design.size
    order = np.argsort(-(scores + rng.gumbel(size=(rows, design.items))), axis=1)
    tier = np.repeat(np.arange(1.0, len(design.tiers) + 1), design.tiers)
    query = np.repeat(np.arange(design.sets), design.size)
    offsets = design.items * np.arange(rows + 1)
    return counted_lists("orders", offsets, pa.array(order.ravel()), np.tile(tier, rows), query=pa.array(query)), scores


TIE_LEVELS = (0.0, np.log(0.6), np.log(0.3))


def tied_rankings(rng: np.random.Generator, design: Design) -> tuple[Preferences, Floats]:
    """Davidson–Luce rankings of five items each: sets of one, two (δ = .6) and three (δ = .3) are placed one by one."""
    scores, popularity = truth(rng, design)
    rows = design.sets * design.size
    shown = np.argsort(rng.gumbel(size=(rows, design.items)) + np.log(popularity), axis=1)[:, -5:]
    sets = [one for size in (1, 2, 3) for one in combinations(range(5), size)]
    member = np.array([[item in one for item in range(5)] for one in sets])
    size = member.sum(axis=1)
    weight = scores[shown] @ (member / size[:, None]).T + np.array(TIE_LEVELS)[size - 1]
    rank = np.zeros((rows, 5))
    for place in range(1, 6):
        left = rank == 0
        possible = ~(member[None] & ~left[:, None]).any(axis=2)
        drawn = np.where(possible, weight + rng.gumbel(size=weight.shape), -np.inf).argmax(axis=1)
        rank[member[drawn] & possible.any(axis=1)[:, None]] = place
    query = np.repeat(np.arange(design.sets), design.size)
    offsets = 5 * np.arange(rows + 1)
    return counted_lists("orders", offsets, pa.array(shown.ravel()), rank.ravel(), query=pa.array(query)), scores


# -- what is measured --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Row:
    """One line of the table."""

    design: Design
    structure: str
    interval: str
    prior: float
    ties: str
    sets: int
    infinite: int
    coverage: float
    error: float
    bias: float
    """Largest over the items, of the mean over the data sets."""
    ranks: float


def measure(design: Design, rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """Coverage of every method on the same data sets."""
    prefs, scores = design.make(rng, design)
    whole = Batch.whole(prefs)
    first, _, asked = design.methods[0]
    links = structure(first).links(whole, asked.get("ties"))
    loose = np.bincount(whole.owner, links.separated | (links.component > 0), len(whole)) > 0
    loose |= np.diff(whole.node_start) < design.items
    sound = np.flatnonzero(~loose)
    order = np.argsort(-scores)
    place = np.empty(design.items, np.int64)
    place[order] = np.arange(1, design.items + 1)
    for name, interval, options in design.methods:
        member = structure(name)
        data = prefs.by_cluster("judge") if interval == ALONE else prefs
        batch = Batch.whole(data, sound[: design.bootstrapped] if interval == "bootstrap" else sound)
        links = member.links(batch, options.get("ties"))
        if interval == "bootstrap":
            boot = bootstrap(batch, member, replicates=replicates, options=options, seed=1)
            found, fitted = boot.intervals(LEVEL), boot.scores
            ranks = rank_intervals_of_replicates(boot, batch, connectivity=links, level=LEVEL)
        else:
            assert member.curvature is not None
            fitted = member(batch, **options)
            curve = member.curvature(batch, fitted)
            found = score_intervals(
                batch, fitted, curve, connectivity=links, method=interval.split(",")[0], level=LEVEL
            )
            ranks = rank_intervals(batch, fitted, curve, found, connectivity=links)
        item = np.asarray(prefs.items.values)[batch.item]
        held = (found.lower <= scores[item]) & (scores[item] <= found.upper)
        each = held.reshape(len(batch), design.items).mean(axis=1)
        right = ((ranks.lower <= place[item]) & (place[item] <= ranks.upper)).reshape(len(batch), design.items)
        off = (fitted.value - scores[item]).reshape(len(batch), design.items).mean(axis=0)
        yield Row(
            design,
            name,
            interval,
            float(options.get("prior", 0.01)),
            str(options.get("ties", "")),
            len(batch),
            int(loose.sum()),
            float(each.mean()),
            float(each.std(ddof=1) / np.sqrt(len(each))),
            float(np.abs(off).max()),
            float(right.all(axis=1).mean()),
        )


ALONE = "sandwich, judges alone"
NONE: dict[str, Any] = {"prior": 0.0}
WEAK: dict[str, Any] = {"prior": 0.01}
BT, PL = "bradley-terry", "plackett-luce"
WEAK_PL = ((PL, "hessian", WEAK), (PL, "sandwich", WEAK))
PLAIN = tuple((BT, interval, prior) for prior in (NONE, WEAK) for interval in ("hessian", "sandwich", "bootstrap"))


def designs(quick: bool) -> list[Design]:
    """The designs, fewer data sets when ``quick``."""
    few = 5 if quick else 1
    return [
        Design("few comparisons", 8, 100, 1000 // few, comparisons, PLAIN),
        Design("comparisons", 10, 500, 1000 // few, comparisons, PLAIN),
        Design("comparisons", 20, 2_000, 500 // few, comparisons, PLAIN[:5]),
        Design("comparisons", 50, 10_000, 200 // few, comparisons, PLAIN[:5], bootstrapped=60),
        Design("comparisons", 100, 50_000, 40 // few, comparisons, PLAIN[:2] + PLAIN[3:5]),
        Design(
            "comparisons with ties, half a win each",
            20,
            2_000,
            400 // few,
            with_ties,
            tuple((BT, interval, NONE) for interval in ("hessian", "sandwich", "bootstrap")),
        ),
        Design(
            "comparisons with ties, Davidson",
            20,
            2_000,
            400 // few,
            davidson,
            tuple((BT, interval, {**NONE, "ties": "davidson"}) for interval in ("hessian", "sandwich")),
        ),
        Design(
            "80 workers with tastes of their own",
            12,
            2_400,
            500 // few,
            workers,
            PLAIN[:5],
        ),
        *(
            Design(
                f"{sides} judges crossed with {sides} prompts",
                8,
                size,
                sets // few,
                partial(crossed, sides=sides),
                ((BT, ALONE, WEAK), (BT, "sandwich", WEAK)),
            )
            for sides, size, sets in ((8, 400, 500), (20, 1_000, 500), (50, 2_500, 300), (200, 10_000, 100))
        ),
        Design(
            "rankings of 5",
            20,
            400,
            400 // few,
            rankings,
            (
                (PL, "hessian", NONE),
                (PL, "sandwich", NONE),
                (PL, "sandwich", WEAK),
                (BT, "hessian", NONE),
                (BT, "sandwich", NONE),
                (BT, "bootstrap", NONE),
            ),
        ),
        *(
            Design(
                name,
                10,
                size,
                max(sets // few, 4),
                ballots,
                WEAK_PL,
                tiers=tiers,
                part="ballots",
            )
            for name, tiers in (
                ("ballots, the best 3 of 10", (1, 1, 1, 7)),
                ("ballots, the best 5 of 10", (1, 1, 1, 1, 1, 5)),
                ("best and worst of 10", (1, 8, 1)),
            )
            for size, sets in ((100, 400), (500, 300), (5_000, 150))
        ),
        Design(
            "rankings of 5 with ties, Davidson–Luce",
            10,
            500,
            200 // few,
            tied_rankings,
            tuple((PL, interval, {**WEAK, "ties": "davidson"}) for interval in ("hessian", "sandwich")),
            part="ballots",
        ),
    ]


# -- items that may have no maximum likelihood --------------------------------------------------------------------
def beside_the_firm(
    rng: np.random.Generator, sets: int, firm: int, core: int, gap: float, own: int, met: int
) -> tuple[Preferences, Floats]:
    """An item of score ``gap`` with ``own`` comparisons against ``met`` of the firm items, these with ``core``."""
    scores = np.append(rng.normal(0.0, 0.8, firm), gap)
    scores[:firm] -= scores[:firm].mean()
    first = rng.integers(0, firm, sets * core)
    second = (first + rng.integers(1, firm, sets * core)) % firm
    others = np.tile(np.resize(rng.choice(firm, met, replace=False), own), sets)
    first, second = np.append(first, np.full(sets * own, firm)), np.append(second, others)
    return _compared(
        rng, scores, first, second, np.append(*(np.repeat(np.arange(sets), n) for n in (core, own)))
    ), scores


def half_weak(rng: np.random.Generator, sets: int, games: int, play: float, gap: float) -> tuple[Preferences, Floats]:
    """100 items, half of them weaker by ``gap`` and shown ``play`` times as often."""
    scores = rng.normal(0.0, 1.0, 100) - gap * (np.arange(100) >= 50)
    popularity = np.where(np.arange(100) < 50, 1.0, play) * rng.uniform(0.5, 1.5, 100)
    first, second = two_of(rng, popularity / popularity.sum(), sets * games)
    return _compared(rng, scores, first, second, np.repeat(np.arange(sets), games)), scores


def _compared(rng: np.random.Generator, scores: Floats, first: Any, second: Any, query: Any) -> Preferences:
    won = rng.random(len(first)) < logistic(scores[first] - scores[second])
    winner, loser = np.where(won, first, second), np.where(won, second, first)
    return counted_comparisons(pa.array(winner), pa.array(loser), query=pa.array(query))


def sides(prefs: Preferences, scores: Floats, prior: float) -> tuple[Any, Any, Any, Any]:
    """Whether the lower and the upper limit of each row hold, whether the item is firm, and its item.

    The truth is measured against the firm items of the data set, as the score is.
    """
    board = rank(prefs, interval="hessian", prior=prior)
    item = np.asarray(prefs.items.values)[board.item]
    largest = board.component == 1
    firm = (board.flag == 0) & largest
    number = np.bincount(board.query[firm], minlength=len(prefs.queries))
    mean = np.bincount(board.query[firm], scores[item[firm]], len(prefs.queries)) / np.maximum(number, 1)
    truth = scores[item] - mean[board.query]
    return board.lower <= truth, truth <= board.upper, np.where(largest, firm, -1), item


def without_maximum(quick: bool, seed: int) -> None:
    """Print both tables."""
    sets = 200 if quick else 2000
    print("one item beside firm ones: its lower and its upper 97.5% limit over all data sets, prior 0.01")
    shapes = [(f, c, g, o, m) for f, c in ((5, 60), (12, 240)) for g in (1.5, 2.5, -2.5, 4.0)
              for o, m in ((3, 2), (10, 5), (30, 4))][:20]  # fmt: skip
    for number, shape in enumerate(shapes):
        prefs, scores = beside_the_firm(np.random.default_rng([7 + seed, number]), sets, *shape)
        lower, upper, firm, item = sides(prefs, scores, 0.01)
        own = (item == shape[0]) & (firm >= 0)
        print(
            shape,
            f"separated {(firm[own] == 0).mean():.1%}: {lower[own].mean():.2%}, {upper[own].mean():.2%}",
            flush=True,
        )
    print("half of 100 items weak and rarely shown: two-sided 95% intervals of the firm items")
    for games, play, gap in ((4000, 0.1, 2.0), (4000, 0.1, 3.0), (2000, 0.1, 3.0)):
        for prior in (1e-4, 1e-3, 0.01, 0.5):
            held = []
            for part in range(sets // 100):
                prefs, scores = half_weak(np.random.default_rng([seed, part, games]), 100, games, play, gap)
                lower, upper, firm, _ = sides(prefs, scores, prior)
                held.append((lower & upper)[firm == 1].mean())
            print((games, play, gap), f"prior {prior:g}: {np.mean(held):.1%}", flush=True)


def table(rows: list[Row]) -> str:
    """The table in Markdown; what lies outside 93–97% is marked."""
    biased = rows[0].design.part == "ballots"
    more = ["largest bias"] if biased else []
    heads = ["data", "items × judgments", "structure", "interval", "prior", "data sets (infinite apart)"]
    heads += ["scores covered", *more, "all ranks covered"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in rows:
        size = f"{row.design.items} × {row.design.size:,}"
        model = row.structure + (", Davidson" if row.ties == "davidson" else "")
        mark = "" if 0.93 <= row.coverage <= 0.97 else " ✗"
        cells = [row.design.name, size, model, row.interval, f"{row.prior:g}", f"{row.sets} ({row.infinite})"]
        cells += [f"{row.coverage:.1%} ± {row.error:.1%}{mark}", *([f"{row.bias:.3f}"] if biased else [])]
        lines.append(f"| {' | '.join([*cells, f'{row.ranks:.1%}'])} |")
    return "\n".join(lines)


def main() -> None:
    """Run the simulation, print the table and put it into the page."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != here]  # Numba looks for another "coverage"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of the data sets; prints, writes nothing")
    parser.add_argument("--part", choices=PARTS, help="one of the tables only")
    parser.add_argument("--open", action="store_true", help="only items that may have no maximum likelihood")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent.parent / "docs" / "coverage.md")
    chosen = parser.parse_args()
    if chosen.open:
        without_maximum(chosen.quick, chosen.seed)
        return
    page = chosen.output.read_text(encoding="utf-8") if chosen.output.exists() else ""
    for part in PARTS if chosen.part is None else (chosen.part,):
        rows: list[Row] = []
        for number, design in enumerate(designs(chosen.quick)):
            if design.part != part:
                continue
            begin = time.perf_counter()
            rows += measure(design, np.random.default_rng([chosen.seed, number]), 299)
            print(f"{design.name}, {design.items} items: {time.perf_counter() - begin:.1f} s", flush=True)
        print(text := table(rows))
        first, last = BEGIN.format(part), END.format(part)
        before, rest = (page if first in page else f"{page}{first}\n{last}\n").split(first)
        page = f"{before}{first}\n\n{text}\n\n{last}{rest.split(last)[1]}"
    if not chosen.quick:
        chosen.output.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

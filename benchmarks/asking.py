"""Are the promises about the top kept, and does the list of pairs help? Simulations; writes docs/asking.md's tables.

    python -m benchmarks.asking [--quick] [--seed N] [--output docs/asking.md]

Every data set is one query, so that all of them are fitted as one batch. Figure: docs/figures/asking.svg, its
numbers beside it.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.auditing.active_pairs import chosen_pairs, pairs_to_ask
from concordant.auditing.scores_covariance import blocks, fitted
from concordant.auditing.stopping import settling
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences, counted_comparisons
from concordant.ranking.bradley_terry import bradley_terry

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DOCS = Path(__file__).parent.parent / "docs"
LEVEL = 0.95
AMBER, BLUE, GREEN, GREY = "#d08700", "#2166ac", "#4d9221", "#888888"


def put(page: Path, name: str, text: str) -> None:
    """Replace what stands between the page's marks of this name."""
    begin, end = f"<!-- {name}: written by benchmarks/asking.py -->", f"<!-- end of {name} -->"
    old = page.read_text(encoding="utf-8")
    before, rest = old.split(begin)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


# -- votes -------------------------------------------------------------------------------------------------------
def preferences(
    query: Ints, first: Ints, second: Ints, won: NDArray[np.bool_], count: Ints | None = None
) -> Preferences:
    """Votes as counted preferences."""
    keep = slice(None) if count is None else count > 0
    winner, loser = np.where(won, first, second)[keep], np.where(won, second, first)[keep]
    count = None if count is None else count[keep]
    return counted_comparisons(pa.array(winner), pa.array(loser), query=pa.array(query[keep]), count=count)


def random_pairs(rng: np.random.Generator, items: int, votes: int) -> tuple[Ints, Ints]:
    """Pairs of different items, each as likely."""
    first = rng.integers(0, items, votes)
    return first, (first + rng.integers(1, items, votes)) % items


def cast(rng: np.random.Generator, truth: Floats, query: Ints, first: Ints, second: Ints) -> NDArray[np.bool_]:
    """Which votes the first item wins."""
    return rng.random(len(query)) < chance(truth, query, first, second)


def chance(truth: Floats, query: Ints, first: Ints, second: Ints) -> Floats:
    """How likely the first item wins."""
    return np.asarray(1.0 / (1.0 + np.exp(truth[query, second] - truth[query, first])))


def estimated(prefs: Preferences, items: int) -> Floats:
    """Scores of every data set, shape (sets, items); an item that was never shown counts as last."""
    batch = Batch.whole(prefs)
    out = np.full((len(batch), items), -np.inf)
    item = np.asarray(prefs.items.values)[batch.item]
    query = np.asarray(prefs.queries.values)[batch.query][batch.owner]
    out[query, item] = bradley_terry(batch).value
    return out


def top_sets(scores: Floats, top: int) -> Ints:
    """The top items of every data set, in order of their numbers."""
    return np.sort(np.argsort(-scores, axis=1, kind="stable")[:, :top], axis=1)


# -- promises ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Promise:
    """A line of the first table."""

    items: int
    votes: int
    top: int
    sets: int
    probability: float
    right: float
    open: int
    extra: float
    kept: float
    assured: float
    assured_kept: float


def promises(rng: np.random.Generator, items: int, votes: int, top: int, sets: int) -> Promise:
    """Draw votes, ask what would settle the top, draw that many more, and look."""
    truth = rng.normal(0.0, 1.0, (sets, items))
    query = np.repeat(np.arange(sets), votes)
    first, second = random_pairs(rng, items, sets * votes)
    won = cast(rng, truth, query, first, second)
    prefs = preferences(query, first, second, won)
    found = settling(prefs, top=top, level=LEVEL, draws=2000)
    right = (top_sets(estimated(prefs, items), top) == top_sets(truth, top)).all(axis=1)
    undecided = found.probability[:, 0] < LEVEL
    kept, medians = [], []
    for more in (found.extra[:, 0], found.assured[:, 0]):
        asked = np.flatnonzero(undecided & np.isfinite(more))
        old = np.isin(query, asked)
        # the same design again: every judged pair as often as before, on average
        again = rng.multinomial(more[asked].astype(np.int64), np.full(votes, 1.0 / votes)).ravel()
        wins = rng.binomial(again, chance(truth, query[old], first[old], second[old]))
        both = preferences(
            np.tile(query[old], 3),
            np.tile(first[old], 3),
            np.tile(second[old], 3),
            np.concatenate([won[old], np.ones(old.sum(), bool), np.zeros(old.sum(), bool)]),
            np.concatenate([np.ones(old.sum(), np.int64), wins, again - wins]),
        )
        scores = np.full((sets, items), -np.inf)
        batch = Batch.whole(both)
        names = np.asarray(both.queries.values)[batch.query][batch.owner]
        scores[names, np.asarray(both.items.values)[batch.item]] = bradley_terry(batch).value
        kept.append(float((top_sets(scores[asked], top) == top_sets(truth[asked], top)).all(axis=1).mean()))
        medians.append(float(np.median(more[undecided])))
    return Promise(
        items, votes, top, sets, float(np.nanmean(found.probability)), float(right.mean()), int(undecided.sum()),
        medians[0], kept[0], medians[1], kept[1],
    )  # fmt: skip


def promise_table(rows: list[Promise]) -> str:
    """Markdown."""
    lines = [
        "| items | votes | top | data sets | mean probability said | top right | not settled | more, as seen (median) "
        "| right then | more, assured (median) | right then |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        said = [f"{r.items}", f"{r.votes:,}", f"{r.top}", f"{r.sets}", f"{r.probability:.1%}", f"{r.right:.1%}"]
        said += [f"{r.open}", f"{r.extra:,.0f}", f"{r.kept:.1%}", f"{r.assured:,.0f}", f"{r.assured_kept:.1%}"]
        lines.append(f"| {' | '.join(said)} |")
    return "\n".join(lines)


# -- asking ------------------------------------------------------------------------------------------------------
Ask = Callable[[Preferences, int, np.random.Generator], tuple[Ints, Ints, Ints]]


def ask_ours(top: int | None) -> Ask:
    """The list of ``pairs_to_ask``."""

    def ask(prefs: Preferences, many: int, _: np.random.Generator) -> tuple[Ints, Ints, Ints]:
        found = pairs_to_ask(prefs, top=top, most=many)
        batch, items = found.batch, np.asarray(prefs.items.values)
        query = np.asarray(prefs.queries.values)[batch.query[found.graph]]
        return query, items[batch.item[found.better]], items[batch.item[found.worse]]

    return ask


def ask_random(prefs: Preferences, many: int, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Any pairs."""
    query = np.repeat(np.arange(len(prefs.queries)), many)
    return query, *random_pairs(rng, len(prefs.items), len(query))


def ask_even(prefs: Preferences, many: int, _: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Uncertainty sampling: the pairs whose predicted share is nearest ½."""
    items = len(prefs.items)
    scores = estimated(prefs, items)
    scores = np.where(np.isfinite(scores), scores, 0.0)
    row, column = np.triu_indices(items, 1)
    best = np.argsort(np.abs(scores[:, row] - scores[:, column]), axis=1)[:, :many]
    return np.repeat(np.arange(len(scores)), many), row[best].ravel(), column[best].ravel()


def ask_largest_variance(prefs: Preferences, many: int, _: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """D-optimal: the pairs with the largest w·Var(s_i − s_j), one after the other.

    log det(H + w d dᵀ) − log det H = log(1 + w dᵀVd); the greedy choice with all contrasts alike does the same to first
    order when M = V, that is when the weights' Laplacian is V's inverse.
    """
    fit = fitted(prefs)
    rows: list[tuple[Ints, Ints, Ints]] = []
    names, items = np.asarray(prefs.queries.values), np.asarray(prefs.items.values)
    for block in blocks(fit, lambda value, _: np.arange(len(value)), main=True):
        inverse = np.linalg.pinv(block.covariance, hermitian=True)
        weight = -inverse
        np.einsum("gii->gi", weight)[:] = 0.0
        first, second, _gain = chosen_pairs(block.value, block.covariance, weight, many)
        row = np.arange(len(block.graph))[:, None]
        query = np.broadcast_to(names[fit.batch.query[block.graph]][:, None], first.shape)
        a, b = (items[fit.batch.item[block.nodes[row, side]]] for side in (first, second))
        rows.append((query.ravel(), a.ravel(), b.ravel()))
    query, a, b = (np.concatenate(column) for column in zip(*rows, strict=True))
    return query, a, b


@dataclass(frozen=True)
class Course:
    """How one way of asking went, after each round."""

    name: str
    votes: list[int]
    right: list[float]
    tau: list[float]


def tau(scores: Floats, truth: Floats) -> float:
    """Mean Kendall τ."""
    row, column = np.triu_indices(truth.shape[1], 1)
    found = np.sign(np.nan_to_num(scores[:, row] - scores[:, column]))
    return float((found * np.sign(truth[:, row] - truth[:, column])).mean())


@dataclass(frozen=True)
class Race:
    """A design in which ways of asking compete."""

    items: int
    start: int
    rounds: int
    sets: int
    top: int


def race(design: Race, seed: int) -> list[Course]:
    """All ways from the same first votes on the same truths, a round being as many votes as there are items."""
    ways: dict[str, Ask] = {
        f"pairs_to_ask, top {design.top}": ask_ours(design.top),
        "pairs_to_ask, whole order": ask_ours(None),
        "D-optimal": ask_largest_variance,
        "nearest ½": ask_even,
        "random": ask_random,
    }
    courses = []
    for name, ask in ways.items():
        rng = np.random.default_rng([seed, design.items, design.top])
        truth = rng.normal(0.0, 1.0, (design.sets, design.items))
        query = np.repeat(np.arange(design.sets), design.start)
        first, second = random_pairs(rng, design.items, len(query))
        # a first chain of all items, so that every way starts connected
        chain = np.tile(np.arange(design.items), design.sets)
        query = np.concatenate([query, np.repeat(np.arange(design.sets), design.items)])
        first, second = np.concatenate([first, chain]), np.concatenate([second, (chain + 1) % design.items])
        won = cast(rng, truth, query, first, second)
        course = Course(name, [], [], [])
        for number in range(design.rounds + 1):
            prefs = preferences(query, first, second, won)
            scores = estimated(prefs, design.items)
            course.votes.append(design.start + design.items * (number + 1))
            same = top_sets(scores, design.top) == top_sets(truth, design.top)
            course.right.append(float(same.all(axis=1).mean()))
            course.tau.append(tau(scores, truth))
            if number == design.rounds:
                break
            new, a, b = ask(prefs, design.items, rng)
            query, first, second = (np.concatenate(both) for both in ((query, new), (first, a), (second, b)))
            won = np.concatenate([won, cast(rng, truth, new, a, b)])
        courses.append(course)
    return courses


def race_table(races: list[tuple[Race, list[Course]]]) -> str:
    """Markdown: what each way had reached half-way and at the end."""
    lines = [
        "| items | top | pairs chosen by | top right, half-way | at the end | votes for what random has at the end | "
        "Kendall τ at the end |",
        "|---|---|---|---|---|---|---|",
    ]
    for design, courses in races:
        random = courses[-1]
        for course in courses:
            reached = [v for v, r in zip(course.votes, course.right, strict=True) if r >= random.right[-1]]
            need = f"{reached[0]:,} of {random.votes[-1]:,}" if reached else f"more than {random.votes[-1]:,}"
            lines.append(
                f"| {design.items} | {design.top} | {course.name} | {course.right[len(course.right) // 2]:.1%} | "
                f"{course.right[-1]:.1%} | {need} | {course.tau[-1]:.3f} |"
            )
    return "\n".join(lines)


def draw(races: list[tuple[Race, list[Course]]], path: Path) -> None:
    """The figure: the top's share right and Kendall τ against votes."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    style: dict[str, Any] = {"svg.hashsalt": "concordant", "font.size": 9, "svg.fonttype": "none"}
    with matplotlib.rc_context(style):
        figure, axes = pyplot.subplots(2, len(races), figsize=(3.4 * len(races), 5.6), squeeze=False, sharex="col")
        looks = [(BLUE, "-"), (GREEN, "-"), (AMBER, "--"), (GREY, ":"), (GREY, "-")]
        for column, (design, courses) in enumerate(races):
            for course, (colour, line) in zip(courses, looks, strict=True):
                name = course.name.replace(f"top {design.top}", "top k")
                axes[0, column].plot(course.votes, course.right, line, color=colour, label=name)
                axes[1, column].plot(course.votes, course.tau, line, color=colour)
            axes[0, column].set_title(f"{design.items} items, top {design.top}")
            axes[1, column].set_xlabel("votes")
        axes[0, 0].set_ylabel("share of data sets with the right top")
        axes[1, 0].set_ylabel("Kendall τ with the truth")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False)
        for axis in axes.ravel():
            axis.spines[["top", "right"]].set_visible(False)
            axis.grid(alpha=0.25)
        figure.tight_layout(rect=(0, 0.08, 1, 1))
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Run the simulations, print the tables and put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data sets; prints, writes nothing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=DOCS / "asking.md")
    chosen = parser.parse_args()
    few = 10 if chosen.quick else 1
    begin = time.perf_counter()
    designs = [(2, 30, 1, 2000), (5, 100, 1, 1000), (10, 400, 1, 1000), (20, 1000, 1, 500), (20, 1000, 3, 500)]
    designs += [(10, 30, 1, 1000), (10, 60, 1, 1000)]  # next to nothing known
    rows = [
        promises(np.random.default_rng([chosen.seed, number]), items, votes, top, sets // few)
        for number, (items, votes, top, sets) in enumerate(designs)
    ]
    first = promise_table(rows)
    print(first, f"\n{time.perf_counter() - begin:.0f} s", flush=True)
    races = [
        (design, race(design, chosen.seed))
        for design in (
            Race(20, 40, 20, 150 // few, 1),
            Race(20, 40, 20, 150 // few, 5),
            Race(60, 120, 20, 60 // few, 5),
        )
    ]
    second = race_table(races)
    print(second, f"\n{time.perf_counter() - begin:.0f} s", flush=True)
    if chosen.quick:
        return
    draw(races, DOCS / "figures" / "asking.svg")
    with (DOCS / "figures" / "asking.csv").open("w", newline="") as handle:
        lines = csv.writer(handle, lineterminator="\n")
        lines.writerow(["items", "top", "chosen by", "votes", "top right", "kendall tau"])
        for design, courses in races:
            for c in courses:
                steps = zip(c.votes, c.right, c.tau, strict=True)
                lines.writerows([design.items, design.top, c.name, v, f"{r:.4f}", f"{t:.4f}"] for v, r, t in steps)
    put(chosen.output, "promises", first)
    put(chosen.output, "race", second)


if __name__ == "__main__":
    main()

"""Is what is said while votes come in wrong at any look, and how many votes does the choice of pairs save?

    python -m benchmarks.looks [--quick] [--seed N] [--output docs/looking.md]

Boards of 20 items with normal abilities, a look after every 100 votes, until the first place is settled or 50,000 votes
are cast. Then the votes of LLMFAO, and of Chatbot Arena where the shared data are there, in drawn orders. Writes the
tables of docs/looking.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import concordant as cc
from benchmarks.asking import random_pairs
from concordant.auditing.active_pairs import pairs_to_ask
from concordant.auditing.looking import Look, look
from concordant.preferences.preferences import Comparisons, counted_comparisons

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
DOCS = Path(__file__).parent.parent / "docs"
DATA = Path(cc.__file__).parent / "apps" / "data" / "llmfao" / "crowd-comparisons.csv"
ARENA = Path(__file__).parent.parent.parent / "shared" / "data" / "arena_judges" / "human.jsonl.gz"
ITEMS, EVERY, MOST = 20, 100, 50_000
Ask = Callable[[Look, np.random.Generator], tuple[Ints, Ints, Ints, Ints]]
Stop = Callable[[Look], tuple[Bools, Bools]]


def put(page: Path, name: str, text: str) -> None:
    """Replace what stands between the page's marks of this name."""
    begin, end = f"<!-- {name}: written by benchmarks/looks.py -->", f"<!-- end of {name} -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


def preferences(won: Ints) -> Comparisons:
    """Boards as queries; ``won`` (boards, items, items), how often the first was preferred to the second."""
    board, first, second = np.nonzero(won)
    return counted_comparisons(pa.array(first), pa.array(second), query=pa.array(board), count=won[board, first, second])


# -- who asks ------------------------------------------------------------------------------------------------------
def numbers(found: Look, *columns: pa.ChunkedArray) -> tuple[Ints, ...]:
    """Labels, which are numbers here, as numbers."""
    return tuple(np.asarray(column, dtype=np.int64) for column in columns)


def ask_ours(found: Look, _: np.random.Generator) -> tuple[Ints, ...]:
    """``Look.ask``: board, first, second and how many votes."""
    table = found.ask(EVERY)
    return numbers(found, *(table[name] for name in ("query", "first", "second", "votes")))


def ask_audit(found: Look, _: np.random.Generator) -> tuple[Ints, ...]:
    """``pairs_to_ask`` with a top, ten pairs ten times."""
    table = pairs_to_ask(found.batch, top=1, most=10, each=10).to_arrow()
    query, first, second = numbers(found, *(table[name] for name in ("query", "better", "worse")))
    return query, first, second, np.full(len(query), EVERY // 10)


def ask_random(found: Look, rng: np.random.Generator) -> tuple[Ints, ...]:
    """Any pairs."""
    board = np.repeat(np.asarray(found.batch.prefs.queries.values, dtype=np.int64), EVERY)
    return board, *random_pairs(rng, ITEMS, len(board)), np.ones(len(board), np.int64)


# -- who stops -----------------------------------------------------------------------------------------------------
def stop_ours(found: Look) -> tuple[Bools, Bools]:
    """Whether a board is settled, and which items may be the first; shapes (boards,), (boards, items)."""
    return found.settled, found.among_first.reshape(-1, ITEMS)


def stop_once(found: Look) -> tuple[Bools, Bools]:
    """The same by the 95% interval of one look for each difference from the present first, as if there were no other."""
    (stack,) = found.stacks
    row, first = np.arange(len(stack.graph)), stack.value.argmax(axis=1)
    own = np.einsum("gii->gi", stack.covariance)
    v = own[row, first][:, None] + own - 2.0 * stack.covariance[row, first]
    among = (stack.value[row, first][:, None] - stack.value) ** 2 <= 1.96**2 * np.maximum(v, 1e-12)
    among[row, first] = True
    return among.sum(axis=1) == 1, among


def course(truth: Floats, ask: Ask, stop: Stop, *, direct: bool, seed: int, most: int = MOST) -> dict[str, NDArray]:  # type: ignore[type-arg]
    """Vote on all boards until they are settled: votes cast, settled, ever wrong about the first and about any rank."""
    rng = np.random.default_rng(seed)
    boards = len(truth)
    won = np.zeros((boards, ITEMS, ITEMS), np.int64)
    votes, settled = np.zeros(boards, np.int64), np.zeros(boards, bool)
    wrong, ranks_wrong = np.zeros(boards, bool), np.zeros(boards, bool)
    best, rank = truth.argmax(axis=1), np.argsort(np.argsort(-truth, axis=1), axis=1) + 1
    # the first votes are on random pairs, and a ring of all items, so that each has been seen
    ring = np.tile(np.arange(ITEMS), boards)
    active = np.arange(boards)
    board = np.repeat(active, EVERY - ITEMS)
    first, second = random_pairs(rng, ITEMS, len(board))
    board, first = np.concatenate([board, np.repeat(active, ITEMS)]), np.concatenate([first, ring])
    second, many = np.concatenate([second, (ring + 1) % ITEMS]), np.ones(len(board), np.int64)
    while True:
        chance = 1.0 / (1.0 + np.exp(truth[board, second] - truth[board, first]))
        wins = rng.binomial(many, chance)
        np.add.at(won, (board, first, second), wins)
        np.add.at(won, (board, second, first), many - wins)
        np.add.at(votes, board, many)
        found = look(preferences(won[active]), direct=direct)
        done, among = stop(found)
        wrong[active] |= ~among[np.arange(len(active)), best[active]]
        lower, upper = (side.reshape(-1, ITEMS) for side in (found.rank_lower, found.rank_upper))
        ranks_wrong[active] |= ((lower > rank[active]) | (upper < rank[active])).any(axis=1)
        settled[active[done]] = True
        stay = ~done & (votes[active] < most)
        if not stay.any():
            return {"votes": votes, "settled": settled, "wrong": wrong, "ranks_wrong": ranks_wrong}
        if not stay.all():
            found = look(preferences(won[active[stay]]), direct=direct)
            active = active[stay]
        place, first, second, many = ask(found, rng)
        board = active[place]


def simulations(boards: int, seed: int) -> str:
    """Markdown: each way to ask and to stop on the same boards."""
    truth = np.random.default_rng([seed, 1]).normal(0.0, 1.0, (boards, ITEMS))
    arms: list[tuple[str, Ask, str, Stop, bool]] = [
        ("`Look.ask`", ask_ours, "`look`", stop_ours, False),
        ("random", ask_random, "`look`", stop_ours, False),
        ("`Look.ask`", ask_ours, "`look`, direct votes", stop_ours, True),
        ("random", ask_random, "`look`, direct votes", stop_ours, True),
        ("`pairs_to_ask`, top 1", ask_audit, "`look`", stop_ours, False),
        ("`Look.ask`", ask_ours, "95% intervals of one look", stop_once, False),
        ("random", ask_random, "95% intervals of one look", stop_once, False),
    ]
    lines = [
        "| pairs | stop by | ever wrong about the first | about any rank | settled | votes: median | quartiles |",
        "|---|---|---|---|---|---|---|",
    ]
    for asked, ask, stopped, stop, direct in arms:
        begin = time.perf_counter()
        run = course(truth, ask, stop, direct=direct, seed=seed)
        low, middle, high = (f"{x:,.0f}" for x in np.percentile(run["votes"], [25, 50, 75]))
        ranks = "" if stop is stop_once else f"{run['ranks_wrong'].mean():.1%}"
        said = [asked, stopped, f"{run['wrong'].mean():.1%}", ranks, f"{run['settled'].mean():.1%}"]
        lines.append(f"| {' | '.join([*said, middle, f'{low}–{high}'])} |")
        print(lines[-1], f"{time.perf_counter() - begin:.0f} s", flush=True)
    return "\n".join(lines)


def main() -> None:
    """Run the simulations, print the tables and put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="50 boards; prints, writes nothing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=DOCS / "looking.md")
    chosen = parser.parse_args()
    table = simulations(50 if chosen.quick else 1000, chosen.seed)
    if not chosen.quick:
        put(chosen.output, "boards", table)


if __name__ == "__main__":
    main()

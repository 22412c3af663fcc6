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
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
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
Ask = Callable[[Look, np.random.Generator], tuple[Ints, ...]]
Stop = Callable[[Look], tuple[Bools, Bools]]


def put(page: Path, name: str, text: str) -> None:
    """Replace what stands between the page's marks of this name."""
    begin, end = f"<!-- {name}: written by benchmarks/looks.py -->", f"<!-- end of {name} -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


def preferences(won: Ints, tied: Ints | None = None) -> Comparisons:
    """Boards as queries; ``won`` (boards, items, items), how often the first was preferred to the second."""
    both = won[None] if tied is None else np.stack([won, tied])
    tie, board, first, second = np.nonzero(both)
    every = np.divmod(np.arange(won.shape[0] * won.shape[1]), won.shape[1])  # every item is one of every board
    return counted_comparisons(
        pa.array(first), pa.array(second), query=pa.array(board), tie=tie > 0 if tie.any() else None,
        count=both[tie, board, first, second], declared=(pa.array(every[0]), pa.array(every[1])),
    )  # fmt: skip


def chances(truth: Floats) -> Floats:
    """How likely the first wins; shape (boards, items, items)."""
    return np.asarray(1.0 / (1.0 + np.exp(truth[:, None, :] - truth[:, :, None])))


# -- who asks ------------------------------------------------------------------------------------------------------
def numbers(*columns: pa.ChunkedArray) -> tuple[Ints, ...]:
    """Labels, which are numbers here, as numbers."""
    return tuple(np.asarray(column, dtype=np.int64) for column in columns)


def ask_ours(found: Look, _: np.random.Generator) -> tuple[Ints, ...]:
    """``Look.ask``: board, first, second and how many votes."""
    table = found.ask(EVERY)
    return numbers(*(table[name] for name in ("query", "first", "second", "votes")))


def ask_audit(found: Look, _: np.random.Generator) -> tuple[Ints, ...]:
    """``pairs_to_ask`` with a top, ten pairs ten times."""
    table = pairs_to_ask(found.batch, top=1, most=10, each=10).to_arrow()
    query, first, second = numbers(*(table[name] for name in ("query", "better", "worse")))
    return query, first, second, np.full(len(query), EVERY // 10)


def ask_random(found: Look, rng: np.random.Generator) -> tuple[Ints, ...]:
    """Any pairs."""
    board = np.repeat(np.asarray(found.batch.prefs.queries.values, dtype=np.int64), EVERY)
    items = len(found.batch.prefs.items)
    return board, *random_pairs(rng, items, len(board)), np.ones(len(board), np.int64)


# -- who stops -----------------------------------------------------------------------------------------------------
def stop_ours(found: Look) -> tuple[Bools, Bools]:
    """Whether a board is settled, and which items may be the first; shapes (boards,), (boards, items)."""
    return found.settled, found.among_first.reshape(len(found.batch), -1)


def stop_once(found: Look) -> tuple[Bools, Bools]:
    """The same by the 95% interval of each difference from the present first, as if there were no other look."""
    (stack,) = found.stacks
    row, first = np.arange(len(stack.graph)), stack.value.argmax(axis=1)
    own = np.einsum("gii->gi", stack.covariance)
    v = own[row, first][:, None] + own - 2.0 * stack.covariance[row, first]
    among = (stack.value[row, first][:, None] - stack.value) ** 2 <= 1.96**2 * np.maximum(v, 1e-12)
    among[row, first] = True
    return among.sum(axis=1) == 1, among


@dataclass(frozen=True)
class World:
    """Boards that can be asked: the chances of a win and of a tie, shapes (boards, items, items), and the truth."""

    win: Floats
    tie: Floats
    rank: Ints

    @classmethod
    def of(cls, truth: Floats) -> World:
        """Bradley–Terry with abilities ``truth`` (boards, items)."""
        return cls(chances(truth), np.zeros((len(truth), *truth.shape[1:] * 2)), ranks(truth))


def ranks(truth: Floats) -> Ints:
    """1 for the largest of a row."""
    return np.argsort(np.argsort(-truth, axis=1), axis=1) + 1


def course(world: World, ask: Ask, stop: Stop, *, direct: bool, seed: int, most: int = MOST) -> dict[str, NDArray]:  # type: ignore[type-arg]
    """Vote on all boards until they are settled: votes cast, settled, ever wrong about the first and about any rank."""
    rng = np.random.default_rng(seed)
    boards, items = world.rank.shape
    won, tied = np.zeros((2, boards, items, items), np.int64)
    votes, settled = np.zeros(boards, np.int64), np.zeros(boards, bool)
    wrong, ranks_wrong = np.zeros(boards, bool), np.zeros(boards, bool)
    best = world.rank.argmin(axis=1)
    active = np.arange(boards)
    board = np.repeat(active, EVERY)  # the first votes are on random pairs
    first, second = random_pairs(rng, items, len(board))
    many = np.ones(len(board), np.int64)
    while True:
        at = board, first, second
        win, tie = world.win[at], world.tie[at]
        wins = rng.binomial(many, win)
        ties = rng.binomial(many - wins, np.minimum(tie / np.maximum(1.0 - win, 1e-12), 1.0))
        np.add.at(won, at, wins)
        np.add.at(won, (board, second, first), many - wins - ties)
        np.add.at(tied, at, ties)
        np.add.at(votes, board, many)
        found = look(preferences(won[active], tied[active]), direct=direct)
        done, among = stop(found)
        wrong[active] |= ~among[np.arange(len(active)), best[active]]
        lower, upper = (side.reshape(-1, items) for side in (found.rank_lower, found.rank_upper))
        rank = world.rank[active]
        ranks_wrong[active] |= ((lower > rank) | (upper < rank)).any(axis=1)
        settled[active[done]] = True
        stay = ~done & (votes[active] < most)
        if not stay.any():
            return {"votes": votes, "settled": settled, "wrong": wrong, "ranks_wrong": ranks_wrong}
        if not stay.all():
            active = active[stay]
            found = look(preferences(won[active], tied[active]), direct=direct)
        place, first, second, many = ask(found, rng)
        board = active[place]


def told(run: dict[str, NDArray], *before: str, ranks: bool = True) -> str:  # type: ignore[type-arg]
    """A row of the table."""
    low, middle, high = (f"{x:,.0f}" for x in np.percentile(run["votes"], [25, 50, 75]))
    about = f"{run['ranks_wrong'].mean():.1%}" if ranks else ""
    said = [*before, f"{run['wrong'].mean():.1%}", about, f"{run['settled'].mean():.1%}", middle, f"{low}–{high}"]
    return f"| {' | '.join(said)} |"


HEAD = "ever wrong about the first | about any rank | settled | votes: median | quartiles |"


def simulations(boards: int, seed: int) -> str:
    """Markdown: each way to ask and to stop on the same boards; the last five on a fifth of them."""
    truth = np.random.default_rng([seed, 1]).normal(0.0, 1.0, (boards, ITEMS))
    arms: list[tuple[str, Ask, str, Stop, bool, int]] = [
        ("`Look.ask`", ask_ours, "`look`", stop_ours, False, boards),
        ("random", ask_random, "`look`", stop_ours, False, boards),
        ("`Look.ask`", ask_ours, "`look`, direct votes", stop_ours, True, boards // 5),
        ("random", ask_random, "`look`, direct votes", stop_ours, True, boards // 5),
        ("`pairs_to_ask`, top 1", ask_audit, "`look`", stop_ours, False, boards // 5),
        ("`Look.ask`", ask_ours, "95% intervals of one look", stop_once, False, boards // 5),
        ("random", ask_random, "95% intervals of one look", stop_once, False, boards // 5),
    ]
    lines = [f"| boards | pairs | stop by | {HEAD}", "|---|---|---|---|---|---|---|---|"]
    for asked, ask, stopped, stop, direct, some in arms:
        begin = time.perf_counter()
        run = course(World.of(truth[:some]), ask, stop, direct=direct, seed=seed)
        lines.append(told(run, f"{some:,}", asked, stopped, ranks=stop is stop_ours))
        print(lines[-1], f"{time.perf_counter() - begin:.0f} s", flush=True)
    return "\n".join(lines)


def nearly_equal(boards: int, seed: int) -> str:
    """Markdown: boards whose first place no number of votes settles, so that there is much time to be wrong."""
    normal = np.sort(np.random.default_rng([seed, 3]).normal(0.0, 1.0, (boards, ITEMS)), axis=1)
    normal[:, -2] = normal[:, -1]
    five = np.where(np.arange(ITEMS) < ITEMS - 5, -1.0, 0.0)
    lines = ["| abilities | pairs | ever wrong about the first, `look` | direct votes | 95% intervals of one look |"]
    lines.append("|---|---|---|---|---|")
    worlds = {"all equal": np.zeros((boards, ITEMS)), "five equal, the others 1 below": np.tile(five, (boards, 1))}
    for name, truth in (worlds | {"normal, the best two equal": normal}).items():
        world = World.of(truth + 1e-9 * (np.arange(ITEMS) == ITEMS - 1))  # the last one is the first
        for asked, ask in (("`Look.ask`", ask_ours), ("random", ask_random)):
            runs = [course(world, ask, stop, direct=direct, seed=seed, most=6_000)
                    for stop, direct in ((stop_ours, False), (stop_ours, True), (stop_once, False))]  # fmt: skip
            shares = [f"{run['wrong'].mean():.1%}" for run in runs]
            lines.append(f"| {name} | {asked} | {' | '.join(shares)} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


# -- real votes ----------------------------------------------------------------------------------------------------
def counted(prefs: cc.Preferences) -> tuple[Ints, Ints]:
    """Wins and ties of the pairs, the latter above the diagonal; shape (items, items) each."""
    assert isinstance(prefs, Comparisons)
    won, tied = np.zeros((2, len(prefs.items), len(prefs.items)), np.int64)
    tie = np.zeros(prefs.distinct, bool) if prefs.tie is None else prefs.tie
    np.add.at(won, (prefs.winner[~tie], prefs.loser[~tie]), prefs.count[~tie])
    np.add.at(tied, (prefs.winner[tie], prefs.loser[tie]), prefs.count[tie])
    return won, tied


def orders(prefs: cc.Preferences, seed: int, many: int = 200) -> dict[str, float]:
    """The votes in ``many`` drawn orders, a look after every 100, by ``look`` and by intervals of one look."""
    won, tied = counted(prefs)
    items, rng = len(won), np.random.default_rng([seed, 2])
    cell = np.repeat(np.arange(2 * items * items), np.concatenate([won.ravel(), tied.ravel()]))
    order = np.stack([rng.permutation(cell) for _ in range(many)])
    first = int(look(prefs).place.argmin())
    so_far = np.zeros((many, 2 * items * items), np.int64)
    out, named, end = np.zeros((2, many), bool), np.full((2, many), -1), np.full((2, many), np.inf)
    for begin in range(0, order.shape[1], EVERY):
        np.add.at(so_far, (np.arange(many)[:, None], order[:, begin : begin + EVERY]), 1)
        found = look(preferences(*so_far.reshape(many, 2, items, items).swapaxes(0, 1)))
        for by, stop in enumerate((stop_ours, stop_once)):
            done, among = stop(found)
            new = done & (named[by] < 0)
            named[by, new], end[by, new] = among[new].argmax(axis=1), begin + EVERY
            out[by] |= ~among[:, first] & ((named[by] < 0) | new)
    stopped = np.isfinite(end)
    return {
        f"{name} {what}": float(value)
        for by, what in enumerate(("ours", "once"))
        for name, value in (("out", out[by].mean()), ("stopped", stopped[by].mean()),
                            ("another", (stopped[by] & (named[by] != first)).mean()),
                            ("votes", np.median(end[by])))
    }  # fmt: skip


def replays(seed: int, many: int) -> tuple[str, str]:
    """Markdown: recorded votes in drawn orders, and drawn again as they are asked for."""
    logs = {"LLMFAO, 59 models": cc.read(DATA)}
    if ARENA.exists():
        logs["Chatbot Arena, 20 models"] = cc.read(ARENA).pool()
    drawn = [
        "| votes | stop by | first of all votes ever excluded | stopped before the end | naming another one "
        "| votes: median |",
        "|---|---|---|---|---|---|",
    ]
    asked = [f"| votes | pairs | {HEAD}", "|---|---|---|---|---|---|---|"]
    for name, prefs in logs.items():
        begin = time.perf_counter()
        found = orders(prefs, seed, many)
        for stop, what in (("`look`", "ours"), ("95% intervals of one look", "once")):
            end = found[f"votes {what}"]
            said = [f"{found[f'{key} {what}']:.1%}" for key in ("out", "stopped", "another")]
            drawn.append(f"| {name} | {stop} | {' | '.join(said)} | {f'{end:,.0f}' if np.isfinite(end) else 'not'} |")
            print(drawn[-1], f"{time.perf_counter() - begin:.0f} s", flush=True)
        won, tied = counted(prefs)
        stack = look(prefs).stacks[0]
        pairs = won + won.T + tied + tied.T
        ties = (tied + tied.T) / np.maximum(pairs, 1)
        win = won / np.maximum(pairs, 1)
        if (pairs + np.eye(len(won)) < 20).any():  # too few of a pair to draw from: as the model has it
            tie = np.full(pairs.shape, tied.sum() / pairs.sum() * 2)
            win, ties = chances(stack.value)[0] * (1.0 - tie), tie
        some = min(many, 10)
        shape = (some, *win.shape)
        rank = np.tile(ranks(stack.value), (some, 1))
        world = World(np.broadcast_to(win, shape), np.broadcast_to(ties, shape), rank)
        for way, ask in (("`Look.ask`", ask_ours), ("random", ask_random)):
            run = course(world, ask, stop_ours, direct=False, seed=seed)
            asked.append(told(run, name, way))
            print(asked[-1], f"{time.perf_counter() - begin:.0f} s", flush=True)
    return "\n".join(drawn), "\n".join(asked)


def main() -> None:
    """Run the simulations, print the tables and put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="50 boards; prints, writes nothing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=DOCS / "looking.md")
    chosen = parser.parse_args()
    table = simulations(50 if chosen.quick else 1000, chosen.seed)
    equal = nearly_equal(20 if chosen.quick else 200, chosen.seed)
    drawn, asked = replays(chosen.seed, 5 if chosen.quick else 50)
    if not chosen.quick:
        put(chosen.output, "boards", table)
        put(chosen.output, "equal", equal)
        put(chosen.output, "orders", drawn)
        put(chosen.output, "asked", asked)


if __name__ == "__main__":
    main()

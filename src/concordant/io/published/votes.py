"""Files of votes whose columns are not the usual ones: judgments of MT-bench, AlpacaEval and Arena-Hard; Kaggle's LMSYS
contest, WMT's rankings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.errors import InputError, few
from concordant.io.engines.counting import choose
from concordant.io.log.formats import Log
from concordant.io.published.documents import Head, number, records
from concordant.io.published.published import Layout, Published, Votes
from concordant.preferences.layouts import plain
from concordant.preferences.values import flat, numbers, texts

ONE_HOT = {"winner_model_a": "model_a", "winner_model_b": "model_b", "winner_tie": "tie"}
RANKED = re.compile(r"system([0-9]+)rank")


def one_hot(log: Log, keep: Sequence[str] = ()) -> Published | None:
    """Read votes with a column for each outcome, of which one is 1 in each row (Kaggle's LMSYS contest).

    The columns ``keep`` stay as they are; equal rows become one with a ``count``.
    """
    if not {*ONE_HOT, "model_a", "model_b"} <= set(log.columns):
        return None
    named = ["model_a", "model_b", *ONE_HOT]
    kept = [name for name in dict.fromkeys(keep) if name in log.columns and name not in named]
    counter = choose(log, None, None, None)
    found, rows = counter.count_rows({name: name for name in [*named, *kept]})
    flags = [numbers(found.pop(name), as_json=log.as_json) for name in ONE_HOT]
    values = np.stack([flag.values for flag in flags])
    fine = np.logical_and.reduce([flag.fault == 0 for flag in flags if flag.fault is not None] or [True])
    fine = fine & np.isin(values, (0, 1)).all(axis=0) & (values.sum(axis=0) == 1)
    if not fine.all():
        wrong = int(rows[~fine].sum())
        raise InputError(
            f"{log.name}: in {wrong:,} of {int(rows.sum()):,} rows not exactly one of {few(ONE_HOT)} is 1; shares, as "
            "in a submission, are no votes"
        )
    names = np.array(list(ONE_HOT.values()), object)[values.argmax(axis=0)]
    if log.as_json:
        found = {name: texts(column, as_json=True) for name, column in found.items()}
    table = pa.table({**found, "winner": pa.array(names, pa.large_string()), "count": pa.array(rows.astype(np.int64))})
    roles = (("first system", "model_a"), ("second system", "model_b"), ("outcome", ", ".join(ONE_HOT)))
    return Published("Kaggle's LMSYS columns", "comparisons", table, (), roles)


# -- JSON --------------------------------------------------------------------------------------------------------------
def _read_games(log: Log, head: Head, votes: Votes) -> None:
    for place, one in records(log, head.form):
        said = [one[name] for name in ("g1_winner", "g2_winner") if one.get(name) is not None]
        if bad := [word for word in said if word not in ("model_1", "model_2", "tie", "error")]:
            raise InputError(f"{log.name}: {place}: a game is won by model_1, model_2 or tie, not by {bad[0]!r}")
        same = {"model_1": "model_a", "model_2": "model_b", "tie": "tie"}
        won = None if not said or "error" in said else same[said[0]] if len({*said}) == 1 else "tie"
        judge = one.get("judge")
        judge = judge[0] if isinstance(judge, list) and judge else judge
        beside = {"prompt": one.get("question_id"), "judge": judge, "turn": one.get("turn")}
        votes.add(one.get("model_1"), one.get("model_2"), won, **beside)


def _read_alpaca(log: Log, head: Head, votes: Votes) -> None:
    for place, one in records(log, head.form):
        value = number(one.get("preference"))
        if value is not None and value == value and value != 0 and not 1 <= value <= 2:
            raise InputError(
                f"{log.name}: {place}: a preference lies between 1 and 2, or is 0 for a tie, not {value:g}"
            )
        won = None
        if value is not None and value == value:
            part = 0.5 if value == 0 else 2 - value
            won = {1.0: "model_a", 0.0: "model_b", 0.5: "tie"}.get(part, str(part))
        beside = {"prompt": one.get("instruction"), "judge": one.get("annotator"), "dataset": one.get("dataset")}
        votes.add(one.get("generator_1"), one.get("generator_2"), won, **beside)


WORDS = {
    "A>>B": ("model_a", 3),
    "A>B": ("model_a", 1),
    "A=B": ("tie", 1),
    "B>A": ("model_b", 1),
    "B>>A": ("model_b", 3),
}
TURNED = {"A<B": "B>A", "A<<B": "B>>A", "B<A": "A>B", "B<<A": "A>>B", "B=A": "A=B"}
"""What the scores of a game mean, with the weight of each; and how else they are written."""


def _read_arena_hard(log: Log, head: Head, votes: Votes) -> None:
    for place, one in records(log, head.form):
        baseline = one.get("baseline") or "baseline"
        if "baseline" not in one:
            votes.say("the file does not name the system that all are compared with: it is called baseline")
        games = one.get("games")
        for turn, game in enumerate(games if isinstance(games, list) else []):
            said = game.get("score") if isinstance(game, dict) else None
            if isinstance(said, str):
                said = TURNED.get(" ".join(said.split()), " ".join(said.split()))
            if said is not None and said not in WORDS:
                raise InputError(f"{log.name}: {place}: a game has one of the scores {', '.join(WORDS)}, not {said!r}")
            won, weight = WORDS[said] if said else (None, None)
            first, second = (baseline, one.get("model")) if turn % 2 == 0 else (one.get("model"), baseline)
            beside = {"prompt": one.get("question_id") or one.get("uid"), "judge": one.get("judge")}
            votes.add(first, second, won, weight=weight, **beside, category=one.get("category"))


def _arena_hard(head: Head) -> bool:
    games = head.first.get("games")
    game = games[0] if isinstance(games, list) and games else None
    return isinstance(game, dict) and "score" in game and head.has("model", "judge")


MT_BENCH = (
    "judgments of pairs as MT-bench has them: a win in both orders of the answers is a win, else a tie; one ranking "
    "over all questions, which are the column prompt"
)
ALPACA = (
    "annotations of AlpacaEval: a preference of 1 is a win of generator_1, 2 of generator_2, what lies between a part "
    "of a win; one ranking over all instructions, which are the column prompt"
)
ARENA_HARD = (
    "judgments of Arena-Hard: each question is judged in both orders of the answers, which are two votes; A>>B weighs "
    "as three, as on its own leaderboard; one ranking over all questions, which are the column prompt"
)
VOTES = (
    Layout("MT-bench pairs", lambda head: head.has("question_id", "model_1", "model_2", "g1_winner"), _read_games,
           says=MT_BENCH, named="inside", columns=(("first system", "model_1"), ("second system", "model_2"),
                                   ("outcome", "g1_winner, g2_winner"))),
    Layout("AlpacaEval annotations", lambda head: head.has("generator_1", "generator_2", "preference"), _read_alpaca,
           says=ALPACA, named="inside", columns=(("first system", "generator_1"), ("second system", "generator_2"),
                                 ("outcome", "preference"))),
    Layout("Arena-Hard judgments", _arena_hard, _read_arena_hard, says=ARENA_HARD, named="inside", columns=(
        ("system", "model"), ("the other one", "baseline"), ("outcome", "games: score"))),
)  # fmt: skip
"""Layouts of JSON that hold votes; the first that is known counts."""


# -- tables ------------------------------------------------------------------------------------------------------------
def wmt_rankings(log: Log) -> Published | None:
    """Read WMT's rankings of up to five translations a row: system1Id … system5Id, system1rank … (−1: not ranked).

    A row is a ranking by a judge; the pairs of languages are the queries.
    """
    if log.format not in ("csv", "tsv"):
        return None
    numbered = sorted(int(match[1]) for match in map(RANKED.fullmatch, log.columns) if match)
    if not numbered or not {"srclang", "trglang", *(f"system{one}Id" for one in numbered)} <= set(log.columns):
        return None
    judge = next((name for name in log.columns if plain(name) in ("judge_id", "judgeid")), None)
    segment = next((name for name in log.columns if plain(name) in ("segment_id", "segmentid", "src_index")), None)
    wanted = ["srclang", "trglang", *(name for name in (judge, segment) if name)]
    wanted += [f"system{one}{what}" for one in numbered for what in ("Id", "rank")]
    found, rows = choose(log, None, None, None).count_rows({name: name for name in wanted})
    cells = {name: flat(found[name]).dictionary_decode().to_pylist() for name in wanted}
    columns: dict[str, list[Any]] = {name: [] for name in ("query", "judgment", "judge_id", "segment", "item", "rank")}
    order = range(len(rows))
    for row in order:
        pair = f"{cells['srclang'][row]}-{cells['trglang'][row]}"
        for time in range(int(rows[row])):
            for one in numbered:
                item, rank = cells[f"system{one}Id"][row], cells[f"system{one}rank"][row]
                if item is None or rank is None or rank.strip() == "-1":
                    continue
                where = (pair, f"{row + 1}.{time}", judge and cells[judge][row], segment and cells[segment][row])
                for values, value in zip(columns.values(), (*where, item, rank), strict=True):
                    values.append(value)
    table = pa.table({name: pa.array(values, pa.large_string()) for name, values in columns.items()})
    table = table.select([name for name in table.column_names if table[name].null_count < len(table)])
    roles = (("system", "system1Id …"), ("rank", "system1rank …"), ("query", "srclang, trglang"))
    return Published("WMT rankings", "orders", table, (), roles)

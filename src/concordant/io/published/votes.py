"""Files of votes whose columns are not the usual ones: Kaggle's LMSYS contest, MT-bench's pairs, WMT's rankings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.errors import InputError, counted, few
from concordant.io.engines.counting import choose
from concordant.io.log.formats import Log
from concordant.io.published.documents import Head, records
from concordant.io.published.published import Published
from concordant.preferences.layouts import plain
from concordant.preferences.notes import Note
from concordant.preferences.values import flat, numbers, texts

ONE_HOT = {"winner_model_a": "model_a", "winner_model_b": "model_b", "winner_tie": "tie"}
GAMES = {"question_id", "model_1", "model_2", "g1_winner"}
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


def games(log: Log, head: Head) -> Published | None:
    """Read MT-bench's judgments of pairs: of two games with the answers in both orders, a win in both is a win.

    Zheng and others (2023, §3.4) and FastChat's ``show_result``: anything else is a tie. A judgment whose judge failed
    in a game is left out.
    """
    if not set(head.first) >= GAMES:
        return None
    columns: dict[str, list[Any]] = {name: [] for name in ("model_a", "model_b", "winner", "prompt", "judge", "turn")}
    failed, total = 0, 0
    for place, one in records(log, head.form):
        total += 1
        said = [one[name] for name in ("g1_winner", "g2_winner") if one.get(name) is not None]
        if bad := [word for word in said if word not in ("model_1", "model_2", "tie", "error")]:
            raise InputError(f"{log.name}: {place}: a game is won by model_1, model_2 or tie, not by {bad[0]!r}")
        if not said or "error" in said:
            failed += 1
            continue
        same = {"model_1": "model_a", "model_2": "model_b", "tie": "tie"}[said[0]] if len({*said}) == 1 else "tie"
        judge = one.get("judge")
        judge = judge[0] if isinstance(judge, list) and judge else judge
        row = (one.get("model_1"), one.get("model_2"), same, one.get("question_id"), judge, one.get("turn"))
        for values, value in zip(columns.values(), row, strict=True):
            values.append(None if value is None else str(value))
    if not columns["winner"]:
        raise InputError(f"{log.name}: in all {counted(total, 'judgments')} of pairs the judge failed (error)")
    text = (
        "{log}: judgments of pairs as MT-bench has them: a win in both orders of the answers is a win, else a tie; one "
        "ranking over all questions, which are the column prompt{failed}"
    )
    lost = f"; {failed:,} of {total:,}, where the judge failed, are left out" if failed else ""
    note = Note("games", text, log=log.name, failed=lost)
    table = pa.table({name: pa.array(values, pa.large_string()) for name, values in columns.items()})
    roles = (("first system", "model_1"), ("second system", "model_2"), ("outcome", "g1_winner, g2_winner"))
    return Published("MT-bench pairs", "comparisons", table, (note,), roles)


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

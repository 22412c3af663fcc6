"""TREC runs, ``query Q0 document rank score tag``: the lists of one or several rankers, ordered as trec_eval does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from concordant.errors import InputError, few
from concordant.io.log.formats import Log, opened, unpacked
from concordant.preferences.notes import Note
from concordant.preferences.ragged import Ragged
from concordant.preferences.values import NUMBER

FIELDS = ("query", "Q0", "item", "said", "score", "judgment")
"""The tag says who ranked: it is the judgment."""
TEXT = pa.dictionary(pa.int32(), pa.string())
TYPES = {"query": TEXT, "item": TEXT, "said": pa.int64(), "score": pa.float64(), "judgment": TEXT}
COLUMNS = ("query", "judgment", "item", "rank", "score")
Places = NDArray[np.int64]


def read_run(log: Log) -> Log:
    """Read a run: columns query, judgment (the tag), item, rank and score, lists together and best first.

    Ranks are those of trec_eval, which ignores the column of ranks: by score in single precision, descending, equal
    ones by document, descending, as bytes. A note says in how many lists the column says another order.

    Errors (InputError): a line that has not six fields, a score that is not a finite number.
    """
    table, lines = _fields(log)
    score = table["score"].to_numpy()
    if not np.isfinite(score).all():
        bad = np.flatnonzero(~np.isfinite(score))
        raise InputError(
            f"{log.name}: {len(bad):,} of {len(score):,} scores are not finite numbers (line {lines[bad[0]]:,}: "
            f"{score[bad[0]]})"
        )
    with np.errstate(over="ignore"):
        single = score.astype(np.float32)
    query, tag = (table[name].chunk(0) for name in ("query", "judgment"))
    list_of = _codes(query) * len(tag.dictionary) + _codes(tag)
    sorter = _best_first(list_of, single, table["item"])
    if sorter is not None:
        table, lines, single, list_of = table.take(pa.array(sorter)), lines[sorter], single[sorter], list_of[sorter]
    lists = Ragged.runs(list_of)
    said = np.asarray(table["said"].fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    against = (single[1:] < single[:-1]) & (said[1:] < said[:-1]) & (list_of[1:] == list_of[:-1])
    number = len(np.unique(list_of[1:][against]))
    text = (
        "{log}: in {lists} of {of:lists} the column of ranks says another order than the scores; the scores count, as "
        "in trec_eval"
    )
    notes = (Note("ranks against scores", text, log=log.name, lists=number, of=len(lists)),) if number else ()
    table = table.append_column("rank", pa.array(lists.place + 1)).select(COLUMNS)
    return replace(log, format="run", columns=COLUMNS, table=table, lines=lines, told=notes)


def _codes(column: pa.DictionaryArray) -> Places:
    return np.asarray(column.indices, np.int64)


def _best_first(list_of: Places, score: NDArray[np.float32], item: pa.ChunkedArray) -> Places | None:
    """Return the order of the rows by list, score and document, lists by their codes; None where they stand so."""
    steps = np.diff(list_of)
    sorter = None
    if (steps < 0).any() or (np.diff(score)[steps == 0] > 0).any():
        sorter = np.lexsort((-score, list_of))
        list_of, score = list_of[sorter], score[sorter]
    same = (list_of[1:] == list_of[:-1]) & (score[1:] == score[:-1])
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if not len(tied):
        return sorter
    rows = tied if sorter is None else sorter[tied]
    texts = item.take(pa.array(rows)).combine_chunks().dictionary_decode()
    document = pc.rank(texts, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    order = np.lexsort((-document, -score[tied], list_of[tied]))
    if sorter is None:
        if np.array_equal(order, np.arange(len(order))):
            return None
        sorter = np.arange(len(score))
    sorter[tied] = rows[order]
    return sorter


def _fields(log: Log) -> tuple[pa.Table, Places]:
    """Return the fields of a run and the line of each row: read as a table, or, where its form varies, by line."""
    try:
        with unpacked(log) as stream:
            tabs = b"\t" in stream.readline(1 << 16)
            stream.seek(0)
            table = pa.csv.read_csv(
                stream,
                pa.csv.ReadOptions(column_names=list(FIELDS), use_threads=False, block_size=1 << 24),
                pa.csv.ParseOptions(delimiter="\t" if tabs else " ", quote_char=False, ignore_empty_lines=False),
                pa.csv.ConvertOptions(column_types=TYPES, include_columns=list(TYPES), null_values=[]),
            )
        table = table.unify_dictionaries().combine_chunks()
        texts = [table[name].chunk(0).dictionary for name, kind in TYPES.items() if kind == TEXT]
        if not any(pc.any(pc.match_substring_regex(text, r"^$|\s")).as_py() for text in texts):
            return table, np.arange(1, len(table) + 1)
    except pa.ArrowException:
        pass
    return _by_line(log)


def _by_line(log: Log) -> tuple[pa.Table, Places]:
    lines: list[int] = []
    rows: list[list[str]] = []
    with opened(log) as text:
        for number, line in enumerate(text, 1):
            parts = line.split()
            if not parts:
                continue
            if len(parts) != len(FIELDS):
                form = "query Q0 document rank score tag"
                raise InputError(f"{log.name}: line {number:,} has {len(parts)} fields, a run has 6: {form}")
            if not NUMBER.fullmatch(parts[4]):
                raise InputError(f"{log.name}: line {number:,}: the score {parts[4][:40]!r} is not a finite number")
            lines.append(number)
            rows.append(parts)
    if not rows:
        raise InputError(f"{log.name}: the file holds no rows")
    columns: dict[str, Any] = dict(zip(FIELDS, map(list, zip(*rows, strict=True)), strict=True))
    said = [int(text) if text.isdecimal() and len(text) < 18 else None for text in columns["said"]]
    columns |= {"said": said, "score": [float(text) for text in columns["score"]]}
    return pa.table({name: pa.array(columns[name], kind) for name, kind in TYPES.items()}), np.array(lines)


def fused(log: Log, parts: Sequence[Log]) -> Log:
    """Return a log of several runs; a note says where not every run has every query.

    Errors (InputError): one tag for the same query in two files, of which nobody could tell whose list it is.
    """
    heads = [part.table.filter(pc.equal(part.table["rank"], 1)) for part in parts]
    whole = pa.concat_tables(heads).unify_dictionaries().combine_chunks()
    query, tag = (whole[name].chunk(0) for name in ("query", "judgment"))
    held, of_file = _codes(tag), np.repeat(np.arange(len(parts)), [len(table) for table in heads])
    key = _codes(query) * len(tag.dictionary) + held
    sorter = np.argsort(key, kind="stable")
    if len(again := np.flatnonzero(np.diff(key[sorter]) == 0)):
        one, other = sorter[again[0]], sorter[again[0] + 1]
        raise InputError(
            f"{parts[of_file[other]].name}: tag {tag[one].as_py()!r} stands in {parts[of_file[one]].name}, too, for "
            f"query {query[one].as_py()!r}; the sixth column tells runs apart, so give each its own"
        )
    queries, number = len(query.dictionary), np.bincount(held, minlength=len(tag.dictionary))
    lacking = sorted(tag.dictionary.take(pa.array(np.flatnonzero(number < queries))).to_pylist())
    text = "{log}: {runs:run|runs} {names} {runs:lacks|lack} some of the {of:queries} that others have"
    note = Note("runs lack queries", text, log=log.name, of=queries, runs=len(lacking), names=few(lacking))
    return replace(log, told=(*(note for part in parts for note in part.told), *([note] if lacking else [])))

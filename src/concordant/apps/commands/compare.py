"""``concordant compare``: read, rank, compare; pairs as sentences on a terminal, tables in files and pipes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from concordant.apps.commands.compare_boards import compare_boards
from concordant.apps.commands.options import CompareOptions
from concordant.apps.commands.output import check_output, print_csv, show_table, write
from concordant.apps.commands.progress import Progress, tell
from concordant.apps.commands.rank import board_of
from concordant.apps.commands.saying import one_line
from concordant.errors import UsageError
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note
from concordant.ranking.comparing import Contrast
from concordant.ranking.edge_tests import family_wise
from concordant.ranking.rank import Ranking
from concordant.ranking.shown import remarks
from concordant.ranking.structures import structure

SHOWN = (
    *("query", "item", "rank_lower", "rank_upper", "among_first", "tier"),
    *("first", "second", "difference", "standard_error", "p_value", "p_max_t", "p_holm"),
)
"""Columns of the table on a terminal."""


def compare(options: CompareOptions) -> None:
    """Print sentences or a table on a terminal, CSV into a pipe; notes go to stderr."""
    output, terminal = options.output, sys.stdout.isatty()
    member = structure(options.structure)
    boards = any(one is not None for one in (options.new, options.by, options.against))
    options.settle(boards=boards)
    options.settle(terminal=terminal, alone=options.interval == "hessian", forgets="covariates" not in member.options)
    if options.interval == "none":
        raise UsageError("--interval none leaves nothing to compare by; allowed: auto, hessian, sandwich, bootstrap")
    if boards:
        compare_boards(options)
        return
    if output is not None:
        check_output(output, options.log)
    kind = "top" if options.top else options.ranks
    board, told = board_of(options)
    with Progress(options.quiet, "comparing"):
        pairs = [*_pairs(board, options.pair)]
        if pairs:
            table = _of_pairs(board, pairs)
        else:
            asked = [None] if len(board.queries) == 1 else board.queries.tolist()
            tables = [
                board.contrasts(query=query) if kind is None else board.rank_sets(kind, top=options.top, query=query)
                for query in asked
            ]
            table = _with_queries(tables, asked)
    tell(told)
    if output is not None:
        write(table, output)
        options.say("wrote", f"wrote {output}: {len(table):,} rows", path=output)
    if pairs and terminal:
        for query, found in pairs:
            sys.stdout.write(one_line(f"{found}" if len(board.queries) == 1 else f"query {query}: {found}") + "\n")
    elif terminal:
        several = any(one > 1 for one in table["component"].to_pylist())
        shown = [name for name in table.column_names if name in SHOWN or (name == "component" and several)]
        show_table(table.select(shown), options.rows or 40)
    elif output is None:
        print_csv(table)
    options.say_notes([*remarks(board), *_notes(board, table, kind, options.top)])


def items_named(labels: Labels, names: Iterable[str]) -> list[Any]:
    """Return the items that words of a command line name: numbers where the items are numbers."""
    whole = pa.types.is_integer(labels.values.type)
    return [int(name) if whole and name.lstrip("-").isdigit() else name for name in names]


def _pairs(board: Ranking, wanted: tuple[tuple[str, str], ...]) -> Iterator[tuple[Any, Contrast]]:
    """Compare the pairs that were named, in every query that has both items."""
    for names in wanted:
        items = items_named(board.items, names)
        codes = board.items.codes_of(pa.array(items))
        queries = [board.queries[code] for code in np.unique(board.query[np.isin(board.item, codes[:1])]).tolist()
                   if (board.item[board.query == code] == codes[1]).any()]  # fmt: skip
        if not queries and (codes >= 0).all():
            raise UsageError(f"no query has both {names[0]!r} and {names[1]!r}")
        for query in queries or [board.queries[0]]:  # an unknown item is named by the comparison
            yield query, board.compare(*items, query=query)


def _of_pairs(board: Ranking, pairs: list[tuple[Any, Contrast]]) -> pa.Table:
    rows = [asdict(found) for _, found in pairs]
    table = pa.table({name: pa.array([row[name] for row in rows], from_pandas=True) for name in rows[0]})
    if len(pairs) > 1:
        p = np.array([found.p_value for _, found in pairs])
        holm, known = np.full(len(p), np.nan), np.isfinite(p)
        holm[known] = family_wise(p[known], int(known.sum()))
        table = table.append_column("p_holm", pa.array(holm, from_pandas=True))
    if len(board.queries) > 1:
        table = table.add_column(0, "query", pa.array([query for query, _ in pairs]))
    return table


def _with_queries(tables: list[pa.Table], queries: list[Any]) -> pa.Table:
    if len(tables) == 1 and queries == [None]:
        return tables[0]
    rows = [query for query, table in zip(queries, tables, strict=True) for _ in range(len(table))]
    return pa.concat_tables(tables).add_column(0, "query", pa.array(rows))


def _notes(board: Ranking, table: pa.Table, kind: str | None, top: int | None) -> list[str]:
    """What the numbers guarantee, and which differences are open."""
    level, how = 100 * board.level, board.interval
    if kind == "top":
        text = (
            "with {level:g}% confidence the first " + ("is" if top == 1 else "{top} are") + " among the {marked:items} "
            "marked (standard errors: {how})"
        )
        marked = int(pc.sum(table["among_first"]).as_py() or 0)
        return [Note("rank sets", text, level=level, how=how, marked=marked, top=top)]
    if kind is not None:
        text = {
            "together": "all ranks lie in their ranges at once",
            "alone": "the rank of an item lies in its range, each item by itself",
            "tiers": "of any two items in different tiers the one in the better tier is better",
        }[kind]
        return [
            Note("rank sets", "with {level:g}% confidence " + text + " (standard errors: {how})", level=level, how=how)
        ]
    notes: list[str] = [Note("compared", "standard errors: {how}", how=how)]
    if open_ := table["p_value"].null_count:
        text = (
            "{pairs:,} of {of:,} differences {pairs:is|are} not determined: no chain of wins leads from either item to "
            "the other"
        )
        notes.append(Note("not determined", text, pairs=open_, of=len(table)))
    return notes

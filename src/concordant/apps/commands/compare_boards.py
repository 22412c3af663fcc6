"""``concordant compare OLD NEW``: two boards beside each other, for people and for continuous integration."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa

from concordant.apps.commands.options import CompareOptions
from concordant.apps.commands.output import check_output, print_csv, show_table, write
from concordant.apps.commands.plans import of_boards
from concordant.apps.commands.progress import Progress, tell
from concordant.apps.commands.rank import board_of
from concordant.apps.commands.reading_log import asked_of
from concordant.apps.commands.saying import one_line
from concordant.boards.changes import CHANCE, GREW, BoardChange, board_changes, chance_of_holding, divided
from concordant.boards.first_place import first_place
from concordant.boards.saved_boards import COLUMNS, saved_changes
from concordant.errors import UsageError, few
from concordant.io.engines.counting import open_log, with_columns
from concordant.io.ingest import Store
from concordant.io.log.formats import locate
from concordant.io.read import read_log
from concordant.io.score_tables import columns_of
from concordant.io.store.catalogue import is_store
from concordant.io.votes import Votes
from concordant.preferences.preferences import Comparisons
from concordant.preferences.unused_clusters import one_cluster
from concordant.preferences.values import texts
from concordant.preferences.windows import Window, untimed
from concordant.ranking.comparing import p_said
from concordant.ranking.rank import Ranking
from concordant.ranking.shown import remarks
from concordant.record import recording

LOOKED = 1 << 28
"""Bytes of files up to which it is looked at whether all rows of one are in the other."""
SHOWN = ("item", "old", "new", "difference", "standard_error", "p_max_t", "p_holm", "rank_old", "rank_new")
"""Columns on a terminal; what moved the items that moved is said in sentences."""


def compare_boards(options: CompareOptions) -> None:
    """Print what changed on a terminal, CSV into a pipe; exit status 1 where an item is worse that must not be."""
    output, terminal = options.output, sys.stdout.isatty()
    if output is not None:
        check_output(output, options.log)
        if options.new is not None:
            check_output(output, options.new)
    saved = None if options.new is None else [_saved(name) for name in (options.log, options.new)]
    tables = saved if saved is not None and any(one is not None for one in saved) else None
    if tables is not None:
        found, said = _of_saved(options, tables)
    else:
        (old, told), (new, more) = _logs(options) if options.by is None else _parts(options, options.by)
        tell([*told, *more])
        with Progress(options.quiet, "comparing"):
            shared = _shared(options, old)
            found = board_changes(old, new, shared=shared, seed=options.seed)
            if shared == "auto" and any(note.code == GREW for note in found.notes) and _grew(options):
                found = board_changes(old, new, shared="common", seed=options.seed)
        beside = () if options.by is None else (options.by,)
        said = [*dict.fromkeys(one_cluster([*remarks(old), *remarks(new)], beside=beside))]
    with Progress(options.quiet, "comparing"):
        names = {str(item): item for item in found.table["item"].to_pylist()}
        for name in options.fail_if_worse:
            if name not in names:
                lower = {one.lower(): one for one in names}
                close = get_close_matches(name.lower(), lower, 1)
                hint = f"did you mean {lower[close[0]]!r}?" if close else f"items there: {few(sorted(names))}"
                raise UsageError(f"--fail-if-worse {name}: no such item on either board; {hint}")
        judged = found.worse([names[name] for name in options.fail_if_worse])
    if output is not None:
        write(found.table, output)
        options.say("wrote", f"wrote {output}: {len(found.table):,} rows", path=output)
    if terminal:
        _show(found, options.rows or 20)
    elif output is None:
        print_csv(found.table)
    options.say_notes([*(() if terminal else found.lines()), *found.notes, *said])
    worse = [row["item"] for row, _, one in judged if one]
    if options.fail_if_top_changes:
        both = (
            saved if saved is not None and any(one is not None for one in saved) else [old.to_arrow(), new.to_arrow()]
        )
        place = first_place(*both)
        options.say("verdict", str(place))
        worse += place.new if place.changed else ()
    for row, p, one in judged:
        known = row["p_value"] is not None
        moved = f"{row['difference']:+.3f} ± {row['standard_error']:.3f}, {p_said(p)}" if known else "not determined"
        options.say("verdict", f"{row['item']}: {'worse' if one else 'not worse beyond chance'} ({moved})")
    if worse and not options.unread():  # an option that nothing read is an error, said at the end
        raise SystemExit(1)


def _show(found: BoardChange, rows: int) -> None:
    show_table(found.table.select([name for name in SHOWN if name in found.table.column_names]), rows)
    for line in found.lines():
        click.echo(one_line(line))


def _saved(name: str) -> pa.Table | None:
    """The columns of a saved ranking; None for a log."""
    if is_store(Path(name)):
        return None
    log = with_columns(locate(name))
    if not {"rank", *COLUMNS} <= {*log.columns}:
        return None
    table = columns_of(log, log.columns)
    return pa.table({name: texts(table[name], as_json=True) for name in log.columns}) if log.as_json else table


def _of_saved(options: CompareOptions, saved: list[pa.Table | None]) -> tuple[BoardChange, list[str]]:
    """Compare two saved rankings, or one with the ranking of a log."""
    if options.shared != "auto":
        raise UsageError("--shared asks for votes that both hold, and a saved ranking holds none; give both logs")
    names, said = (options.log, str(options.new)), list[str]()
    for at, name in enumerate(names):
        if saved[at] is None:
            board, told = board_of(options, log=name, plan=of_boards(options, 0.0))
            saved[at], said = board.to_arrow(), list(remarks(board))
            tell(told)
    with Progress(options.quiet, "comparing"):
        return saved_changes(*saved, level=options.level, names=names), said


Board = tuple[Ranking, list[str]]


def _logs(options: CompareOptions) -> tuple[Board, Board]:
    if options.against is not None:
        if options.as_of is None:
            raise UsageError(
                f"--with {options.against}: a day of the log, beside another one (--as-of); two logs, or rankings, are "
                "both named without it"
            )
        old = board_of(options, plan=of_boards(options, 1.0))
        return old, board_of(options, as_of=options.against, plan=of_boards(options, 0.0))
    new = str(options.new)
    sizes = [float(os.path.getsize(one)) if os.path.isfile(one) else 1.0 for one in (options.log, new)]
    old = board_of(options, plan=of_boards(options, sizes[1] / max(sizes[0], 1.0)))
    return old, board_of(options, log=new, plan=of_boards(options, 0.0))


def _shared(options: CompareOptions, old: Ranking) -> str | Comparisons:
    """What both boards hold: of the last days up to two days, what lies in both; else what is asked for."""
    if options.shared in ("auto", "common") and options.id is not None and options.new is not None:
        return _of_ids(options, str(options.new)) or options.shared
    if options.shared != "auto":
        return options.shared
    if options.by is not None:
        return "clusters"
    if options.against is None or options.last is None:
        return "auto"
    if old.judged is None or not isinstance(old.judged.prefs, Comparisons):
        return "auto"
    try:
        spans = [Window(day, last=options.last).days("") for day in (options.as_of, options.against)]
    except UsageError:  # instants, or parts of days
        return "auto"
    first, last = max(first for first, _ in spans), min(last for _, last in spans)
    return _of_days(options, first, last) if first <= last else "clusters"


def _some(options: CompareOptions) -> bool:
    """Whether only some of the votes of either log count, or some count less."""
    return options.half_life is not None or any(options.window().values())


def _of_ids(options: CompareOptions, new: str) -> str | Comparisons | None:
    """The judgments of two logs that have equal ids and lie in the windows of both, or that there are none.

    None where a log is a store, or where some count less.
    """
    if options.half_life is not None or any(is_store(Path(name)) for name in (options.log, new)):
        return None
    votes, window = Votes(keeping=True), Window(**options.window())
    with recording():  # both logs were read, and are told of, as they are ranked
        ours = read_log(options.log, **asked_of(options), votes=votes).preferences
        both = read_log(new, **asked_of(options), votes=Votes(other=votes.seen)).preferences
        if window and len(both):
            both = window.of_both(both, (ours, read_log(new, **asked_of(options)).preferences))
    both = untimed(both)
    return both if isinstance(both, Comparisons) and len(both) else "clusters"


def _grew(options: CompareOptions) -> bool:
    """Whether all rows of one file, in whatever columns, are among those of the other, as chance would not have it."""
    files = [Path(name) for name in (options.log, str(options.new))]
    if _some(options) or not all(file.is_file() and file.stat().st_size <= LOOKED for file in files):
        return False
    counters = [open_log(locate(file), None, options.memory_limit, options.threads) for file in files]
    names = [name for name in counters[0].log.columns if name in counters[1].log.columns]
    sides = []
    for counter, here, there in zip(counters, ("old", "new"), ("new", "old"), strict=True):
        found, rows = counter.count_rows({name: name for name in names})
        cells = [texts(found[name], as_json=False).cast(pa.large_string()) for name in names]
        columns: dict[str, Any] = {f"c{place}": column for place, column in enumerate(cells)}
        columns |= {here: rows.astype(np.int64), there: np.zeros(len(rows), np.int64)}
        sides.append(pa.table(columns).select([*list(columns)[: len(names)], "old", "new"]))
    both = pa.concat_tables(sides)
    each = both.group_by(both.column_names[:-2]).aggregate([("old", "sum"), ("new", "sum")])
    old, new = (each[f"{side}_sum"].to_numpy() for side in ("old", "new"))
    less, more = sorted((old, new), key=np.sum)
    return bool((less <= more).all()) and chance_of_holding(less, more) < CHANCE


def _of_days(options: CompareOptions, first: str, last: str) -> str | Comparisons:
    """The judgments of some days of a log, or that there are none."""
    if is_store(Path(options.log)):
        there = [batch for batch in Store(options.log).info().batches if first <= batch.day <= last]
        if not sum(batch.judgments for batch in there):
            return "clusters"
    try:
        with recording():  # these are judgments of both logs that were read, and no log of its own
            prefs = untimed(read_log(options.log, **asked_of(options), window=Window(last, since=first)).preferences)
    except UsageError:  # none lies in the time that was asked for
        return "clusters"
    return prefs if isinstance(prefs, Comparisons) and len(prefs) else "clusters"


def _parts(options: CompareOptions, by: str) -> tuple[Board, Board]:
    """The boards of two parts of a log."""
    values, since = options.values, options.since
    if by in options.cluster:
        raise UsageError(f"--by {by} and --cluster {by}: a column divides judgments, or says who judged")
    if (values is None) == (since is None):
        raise UsageError("--by takes --values OLD NEW or --since V, one of them")
    if is_store(Path(options.log)):
        raise UsageError("--by divides a file; a store keeps no columns but those that it was ingested with")
    wanted: tuple[Callable[[str], bool], ...]
    if values is not None:
        wanted = (values[0].__eq__, values[1].__eq__)
        names = [f"{by} {value}" for value in values]
    else:
        wanted = (partial(_before, str(since)), lambda value: not _before(str(since), value))
        names = [f"{by} before {since}", f"{by} from {since}"]
    boards: list[Board] = []
    for name, keeps in zip(names, wanted, strict=True):
        part = partial(divided, by=by, kept=keeps, more=options.cluster)
        board, told = board_of(options, by=by, part=part, plan=of_boards(options, 1.0 - len(boards)))
        if not len(board):
            raise UsageError(f"no judgments with {name}")
        boards.append((board, [f"{name}: {line}" for line in told]))
    return boards[0], boards[1]


def _before(since: str, value: str) -> bool:
    """Whether a value is below another: as numbers where both are, else as texts (dates as in ISO 8601)."""
    try:
        return float(value) < float(since)
    except ValueError:
        return value < since

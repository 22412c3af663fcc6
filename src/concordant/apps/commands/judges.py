"""``concordant judges``: read, measure those who judged, or put people and a judge model together; notes to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from concordant.apps.commands.durations import putting_together
from concordant.apps.commands.given import worded
from concordant.apps.commands.judges_options import JudgesOptions
from concordant.apps.commands.output import check_output, print_csv, show_table, write
from concordant.apps.commands.plans import plan_of
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import asked_of
from concordant.apps.commands.report_options import ReportOptions
from concordant.apps.commands.saying import one_line
from concordant.boards.judges import judges as measured
from concordant.boards.judges import with_length
from concordant.boards.prediction_powered import PredictionPowered, prediction_powered
from concordant.errors import CannotRank, InputError, Setting, UsageError, few
from concordant.io.engines.counting import with_columns
from concordant.io.forms import Reading
from concordant.io.noted import JUDGES, PROMPTS
from concordant.io.read import PLAYED, layout_of, read_log, usual_log
from concordant.io.store.catalogue import is_store
from concordant.preferences.layouts import Layout, plain
from concordant.preferences.notes import Note
from concordant.preferences.unused_clusters import UNUSED

IDS = ("id", "num", "comparison_id", "battle_id", "pair_id", "conversation_id", "question_id", "uid", "uuid", "index")
"""Columns that may name each comparison."""
SIDES = tuple((f"{what}_a", f"{what}_b") for what in ("response", "answer", "output", "text", "length", "len"))
"""Columns of what was compared, or of how long it is."""
SHOWN = {
    "judges": ("judge", "votes", "reliability", "by_coin", "weight", "first", "length", "agreement"),
    "items": ("item", "score", "people", "bias", "power", "decided"),
}
"""Columns of the tables on a terminal; of what has an interval it stands behind the number."""


def judges(options: JudgesOptions) -> None:
    """Print sentences and a table on a terminal, CSV into a pipe; notes go to stderr."""
    options.settle(terminal=sys.stdout.isatty())
    if options.engine == "spark":
        raise UsageError("executors of Spark compare no judges; leave out --engine spark")
    files = {"--output": options.output}
    if options.model_judge is None:
        files |= {"--ranking": options.ranking, "--per-vote": options.per_vote}
    named: dict[str, str] = {}
    for option, name in files.items():
        if name is not None:
            check_output(name, options.log, option=option)
            if (other := named.setdefault(os.path.realpath(name), option)) != option:
                raise UsageError(f"{other} and {option} both name {name}; name another file")
    if options.model_judge is None:
        _measure(options)
    else:
        _together(options, options.model_judge)


# -- who judged --------------------------------------------------------------------------------------------------------
def _measure(options: JudgesOptions) -> None:
    log, told = options.log, []
    asked = asked_of(options, covariates=options.covariates, pool=False)  # votes agree on a pair of one query
    if is_store(Path(log)):
        judge, lengths = options.judge, None
        if options.length is not None or options.covariates:
            raise UsageError(f"{log} is a store, which keeps no columns but its own; give the log itself")
    else:
        columns, layout = looked_at(log, asked)
        judge = judge_column(options.judge, columns, layout, log)
        lengths = options.length or _pair_of(columns)
        if "query" not in layout.roles and (prompt := _named(columns, PROMPTS)) and prompt != judge:
            asked["columns"] |= {"query": prompt}
            text = "{log}: votes are on the same pair where {prompt!r} is the same, too ({ask} names another column)"
            told.append(Note("query", text, log=log, prompt=prompt, ask=Setting("query")))
        if layout.sided:
            asked["home"] = "left"
        elif lengths is not None:
            raise UsageError(f"{log} names winner and loser, and not which side had which text; leave out --length")
        else:
            told.append(Note("no sides", "{log}: nothing says which item stood first", log=log))
        asked["cluster"] = judge if lengths is None else (judge, *lengths)
    with Progress(options.quiet, f"reading {log}", plan_of(options)):
        reading = read_log(log, **asked)
    prefs = reading.preferences
    if lengths is not None:
        prefs = with_length(prefs, str(judge), lengths)
        text = "length: that of {first!r} less that of {second!r}, as a share of both"
        told.append(Note("length", text, first=lengths[0], second=lengths[1]))
    with Progress(options.quiet, "measuring the judges", known=prefs):
        asked = {name: getattr(options, name) for name in ("pool", "level", "replicates", "seed")}
        found = measured(prefs, judge, **asked)
    table = found.to_arrow()
    _show(options, table, found.lines(), [*_told(options, reading, lengths or ()), *told, *found.notes], "judges")
    if options.ranking is not None:
        try:
            board = found.ranking(level=options.level)
        except CannotRank as error:  # what stands first, or is longer, decides all votes
            options.say_notes([f"the ranking leaves out what judges prefer beside the items ({error})"])
            board = found.ranking(level=options.level, covariates=False)
        write(board.to_arrow(), options.ranking)
        options.say("wrote", f"wrote {options.ranking}: {len(board.items):,} items", path=options.ranking)
    if options.per_vote is not None:
        write(found.votes_table(), options.per_vote)
        options.say("wrote", f"wrote {options.per_vote}: {found.prefs.distinct:,} votes", path=options.per_vote)


def looked_at(log: str, asked: dict[str, Any]) -> tuple[list[str], Layout]:
    """The columns of a log, and how it would be read. Errors: UsageError for a log without columns."""
    source = usual_log(log, asked["columns"])
    layout = layout_of(source, columns=asked["columns"], kind=asked["kind"])
    if layout is None:
        raise UsageError(f"{log} is a PrefLib file, which does not say who judged")
    return list(with_columns(source).columns), layout


def _named(columns: Iterable[str], names: Iterable[str]) -> str | None:
    return next((column for column in columns if plain(column) in names), None)


def judge_column(named: str | None, columns: list[str], layout: Layout, log: str) -> str:
    """The column that was named, or the one that is called as columns of judges are."""
    found = [column for column in columns if plain(column) in JUDGES] if named is None else [named]
    if len(found) != 1:
        which = f"{few(found)} are called so" if found else f"its columns are {few(columns, 20)}"
        raise UsageError(f"{log}: which column says who judged? {which} (", Setting("judge"), " names it)")
    if role := next((role for role, column in layout.roles.items() if column == found[0] and role in PLAYED), None):
        raise UsageError(f"{log}: the column {found[0]!r} is read as the {role}; name the one that says who judged")
    return found[0]


def _pair_of(columns: list[str]) -> tuple[str, str] | None:
    known = {plain(column): column for column in columns}
    return next(((known[a], known[b]) for a, b in SIDES if a in known and b in known), None)


# -- people and a judge model ------------------------------------------------------------------------------------------
def _together(options: JudgesOptions, judge: str) -> None:
    people, found = put_together(options, judge, these=options.these)
    _show(options, found.to_arrow(), found.lines(), [*_told(options, people), *found.notes], "items")


def put_together(
    options: JudgesOptions | ReportOptions, judge: str, *, these: bool = False
) -> tuple[Reading, PredictionPowered]:
    """Read what people and a judge model decided, match it, and put both together."""
    asked = asked_of(options, covariates=(), time=None)
    if is_store(Path(options.log)) or is_store(Path(judge)):
        raise UsageError("comparisons are matched by a column of ids, and a store keeps none; give the logs themselves")
    columns, layout = looked_at(options.log, asked)
    theirs, _ = looked_at(judge, asked)

    def read(way: dict[str, Any]) -> tuple[Reading, PredictionPowered]:
        what = f"putting people and {judge} together"
        with Progress(options.quiet, what, putting_together(what, (options.log, judge))):
            people, model = (read_log(name, **way) for name in (options.log, judge))
            level = options.level
            return people, prediction_powered(people.preferences, model.preferences, level=level, these=these)

    if layout.kind == "ratings":
        if options.match:
            raise UsageError("ratings are matched by query and item; leave out --match")
        return read(asked | {"pool": False, "cluster": None})  # a query is a task
    known = {plain(column): column for column in columns if column in theirs}
    tried = [options.match] if options.match else [(known[name],) for name in IDS if name in known]
    if not tried:
        raise UsageError(
            f"{options.log} and {judge} have no column in common that names a comparison (such as {IDS[0]}, "
            f"{IDS[1]}, question_id): name it by --match; both have {few(known.values()) or 'none'}"
        )
    home = "left" if layout.sided else None
    clusters = [ids[0] if len(ids) == 1 else ids for ids in tried]
    ways = [asked | {"cluster": cluster, "home": home} for cluster in clusters]
    return _first([partial(read, way) for way in ways])


def _first(ways: list[Callable[[], tuple[Reading, PredictionPowered]]]) -> tuple[Reading, PredictionPowered]:
    """What the first way gives that matches the comparisons. Errors: that of the first, where none does."""
    failed = []
    for way in ways:
        try:
            return way()
        except InputError as error:
            failed.append(error)
    raise failed[0]


# -- both --------------------------------------------------------------------------------------------------------------
def _told(options: JudgesOptions, reading: Reading, lengths: Sequence[str] = ()) -> Iterator[str]:
    if reading.rejects:
        yield f"skipped: {reading.report()}"
    yield f"{options.log}: {reading.preferences.facts_but(*lengths)}"
    yield from (note for note in reading.notes if not isinstance(note, Note) or note.code != UNUSED)


def _show(options: JudgesOptions, table: pa.Table, lines: Iterable[str], notes: list[str], what: str) -> None:
    terminal = sys.stdout.isatty()
    if options.output is not None:
        write(table, options.output)
        options.say("wrote", f"wrote {options.output}: {len(table):,} {what}", path=options.output)
    if terminal:
        for line in lines:
            click.echo(one_line(worded(line)))
        show_table(_shown(table, SHOWN[what]), 40)
    else:
        if options.output is None:
            print_csv(table)
        options.say_notes(lines)
    options.say_notes(notes)


def _shown(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """The table of a terminal."""
    found: dict[str, Any] = {}
    ends = {"reliability": "", "score": "", "people": "people_"}
    for name in names:
        middle, prefix = ("people_score" if name == "people" else name), ends.get(name, f"{name}_")
        if f"{prefix}lower" in table.column_names:
            rows = zip(*(table[one].to_pylist() for one in (middle, f"{prefix}lower", f"{prefix}upper")), strict=True)
            found[name] = ["–" if one is None else f"{one:.2f} ({low:.2f} … {high:.2f})" for one, low, high in rows]
        elif name in table.column_names:
            found[name] = [f"{one:.2f}" if isinstance(one, float) else one for one in table[name].to_pylist()]
    return pa.table(found)

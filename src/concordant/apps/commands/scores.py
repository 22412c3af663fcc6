"""``concordant scores``: read scores of systems on tasks, rank them, say how sure that is; CSV into a pipe."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pyarrow as pa

from concordant.apps.commands.durations import ranking_scores
from concordant.apps.commands.given import worded
from concordant.apps.commands.output import check_output, print_csv, put_file, show_table, write, write_json
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.saying import one_line
from concordant.apps.commands.scores_options import ScoresOptions
from concordant.apps.report.critical_difference import critical_difference
from concordant.boards.ranked_scores import ScoreBoard, rank_scores
from concordant.errors import UsageError, counted
from concordant.io.score_tables import scores_of


def scores(options: ScoresOptions) -> None:
    """Print sentences and a table on a terminal, CSV into a pipe; notes go to stderr."""
    file, output, plot = options.file, options.output, options.plot
    terminal = sys.stdout.isatty()
    options.settle(terminal=terminal)
    for name, value in (("--output", output), ("--pairs", options.pairs), ("--averages", options.averages)):
        if value is not None:
            check_output(value, file, "the file of scores", option=name)
    if plot is not None:
        check_output(plot, file, "the file of scores", option="--plot", endings=(".svg",))
    if options.lower_is_better is not None and options.lower:
        raise UsageError("--lower-is-better and --higher-is-better are of all tasks, --lower of those named; give one")
    with Progress(options.quiet, f"reading {file}", ranking_scores(file)):
        rows, told = read_rows(options)
    with Progress(options.quiet, "ranking"):
        board = rank_scores(
            rows, by=options.by, lower_is_better=options.lower or options.lower_is_better, level=options.level,
            resamples=options.resamples, seed=options.seed,
        )  # fmt: skip
        table = _with_top(board, options.top)
        lines = board.lines()
        drawn = None if plot is None else critical_difference(board, nemenyi=options.nemenyi)
    k, n = board.table.score.shape
    options.say(
        "read", f"{file}: {counted(k, 'systems')}, {counted(n, 'tasks')}, {int(board.table.trials.sum()):,} scores"
    )
    if output is not None:
        if output.lower().endswith(".json"):
            write_json({"file": file} | board.to_dict(), output)
        else:
            write(table, output)
        options.say("wrote", f"wrote {output}: {k:,} systems", path=output)
    for path, make in ((options.pairs, board.contrasts), (options.averages, board.averages)):
        if path is not None:
            found = make()
            write(found, path)
            options.say("wrote", f"wrote {path}: {counted(len(found), 'rows')}", path=path)
    if plot is not None and drawn is not None:
        put_file(plot, lambda name: Path(name).write_text(drawn, encoding="utf-8"), option="--plot")
        options.say("wrote", f"wrote {plot}", path=plot)
    if terminal:
        for line in lines:
            click.echo(one_line(worded(line)))
        show_table(_shown(table, board), options.rows or 40)
    else:
        if output is None:
            print_csv(table)
        options.say_notes(lines)
    options.say_notes([*told, *board.notes])


def read_rows(options: ScoresOptions) -> tuple[pa.Table, tuple[str, ...]]:
    """Return rows of system, task, score of whatever file the options name, and what is to be said of them."""
    names = ("system", "task", "score", "trial", "weight", "cluster")
    columns = {name: value for name in names if (value := getattr(options, name)) is not None}
    tasks = None if options.tasks is None else [one.strip() for one in options.tasks.split(",")]
    return scores_of(options.file, columns=columns, layout=options.layout, tasks=tasks, metric=options.metric)


def _with_top(board: ScoreBoard, top: int) -> pa.Table:
    """The rows of the board, marked who may be among the first ``top``."""
    table = board.to_arrow()
    if top == 1:
        return table
    place = table.column_names.index("may_be_first")
    return table.set_column(place, f"may_be_top_{top}", board.rank_sets("top", top=top)["among_first"])


def _shown(table: pa.Table, board: ScoreBoard) -> pa.Table:
    """What a terminal shows: few columns, so that names have room."""
    marks = next(name for name in table.column_names if name.startswith("may_be"))
    rows = table.to_pylist()
    told = {
        "component": [row["component"] for row in rows],
        "tier": [row["tier"] for row in rows],
        "rank": [row["rank"] for row in rows],
        "ranks": ["" if row["rank"] is None else f"{row['rank_lower']}–{row['rank_upper']}" for row in rows],
        marks: ["yes" if row[marks] else "" for row in rows],
        "system": [row["system"] for row in rows],
        "score": [row["score"] for row in rows],
        f"{100 * board.level:g}%_interval": [
            None if row["lower"] is None else f"{row['lower']:.4f} … {row['upper']:.4f}" for row in rows
        ],
        "tasks": [row["tasks"] for row in rows],
    }
    dull = [name for name in ("component", "tasks") if len(set(told[name])) == 1]
    return pa.table({name: column for name, column in told.items() if name not in dull})

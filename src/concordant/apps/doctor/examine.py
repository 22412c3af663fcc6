"""Look at a file, a folder or a store, and say what it is, what it supports, what stops it and what to run next."""

from __future__ import annotations

import os
import re
import shlex
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb as library
import numpy as np

from concordant.apps.doctor.columns import Looks, looks_of, said_of
from concordant.apps.doctor.examination import Examination
from concordant.apps.doctor.guessing import guesses
from concordant.apps.doctor.support import paired, recurring, supports
from concordant.errors import ConcordantError, InputError, Setting, UsageError, counted, few, shown
from concordant.io.engines.counting import with_columns
from concordant.io.engines.memory import arrow_table
from concordant.io.forms import LACKING
from concordant.io.log.formats import ENDINGS, Log, locate
from concordant.io.log.headers import sniffed
from concordant.io.log.marks import MARKS, mark_of
from concordant.io.log.tables import from_object
from concordant.io.published.published import SCORES, Published
from concordant.io.published.recognise import found_in, of_folder, recognised
from concordant.io.read import layout_of, read_log
from concordant.io.score_tables import RISING, roles_of, sums_of, tabled
from concordant.io.store.catalogue import is_store
from concordant.preferences.counts import rows_alike
from concordant.preferences.layouts import ALIASES, plain
from concordant.preferences.lists import UNITS
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Preferences
from concordant.preferences.unused_clusters import UNUSED
from concordant.preferences.values import decode
from concordant.progress import stage

KINDS = {
    "comparisons": "votes between two items",
    "selections": "shown lists with clicks",
    "choices": "choices of one item among several",
    "orders": "rankings",
    "ratings": "ratings",
}
HIDDEN_ROLES = ("best", "worst", "place", "option", "cluster", "covariate", "time")
"""Roles that are not named one by one."""
MODEL = "model.json"
"""What a folder with a model holds."""
BLOCK = 1 << 16
EVERY = " --lower-is-better"
COMPARED = 500
"""Systems of which a board of scores is made, to see what is to be said of it."""
SMALL = 1 << 26
"""Bytes of a table up to which its cells are looked at."""


def doctor(source: str | os.PathLike[str]) -> Examination:
    """Look at a file before anything is ranked: what it is, what it supports, what stops it, what to run next.

    source : any file, a folder or a store: votes, results of an evaluation as its tool writes them, a table of scores,
        labels, features. Nothing is changed, and nothing is raised: what cannot be read is said.

    Returns what was found, which prints as ``concordant doctor`` does.

    >>> import concordant as cc
    >>> cc.doctor("no-such-file.csv")
    Examination(no-such-file.csv: nothing that can be read)
    """
    return examine(source)


def examine(
    source: str | os.PathLike[str],
    commands: Sequence[str] | None = None,
    write: Callable[[str], Callable[[Setting], str]] = lambda _: str,
) -> Examination:
    """Look at a file, a folder or a store, whatever it holds; what cannot be read is said, not raised.

    ``commands`` are those that there are (None, all that are named), ``write`` how a parameter is written as an option
    of one of them.
    """
    given = os.fspath(source)
    seen = Examination(Path(given).name or given, "")
    look = _Look(given, shlex.quote(given), seen, commands, write("rank"), write("scores"))
    try:
        look.look()
    except ConcordantError as problem:
        look.stopped(problem.said(look.write))
    except MemoryError:
        look.stopped("It does not fit into memory.")
    except OSError as problem:
        look.stopped(f"It cannot be read: {problem.strerror or problem}.")
    return look.seen


@dataclass(frozen=True)
class _Look:
    """A look at one source, and what was seen."""

    given: str
    quoted: str
    seen: Examination
    commands: Sequence[str] | None
    write: Callable[[Setting], str]
    write_scores: Callable[[Setting], str]

    def stopped(self, why: str) -> None:
        """Say why no more can be seen."""
        self.seen.what = self.seen.what or "nothing that can be read"
        self.seen.stops.append(self.plainly(why))
        self.seen.usable = bool(self.seen.commands)

    def plainly(self, said: str) -> str:
        """Return what was said of the file without its name."""
        return said.removeprefix(f"{self.seen.name}: ")

    def suggest(self, command: str, purpose: str) -> None:
        """Name a command to run next, where there is such a command."""
        name = command.split()[1]
        if self.commands is None or name in self.commands or not command.startswith("concordant "):
            self.seen.commands.append((command, purpose))

    def look(self) -> None:
        """Find out what it is."""
        path = Path(self.given)
        if not self.given or "\0" in self.given or not path.exists():
            locate(self.given)  # says what is wrong with the name, unless it is that of a table in a database
        elif is_store(path):
            return self.votes(" in a store")
        elif path.is_dir():
            return self.folder(path)
        elif path.is_file() and path.stat().st_size and (zipfile.is_zipfile(path) or path.suffix.lower() == ".eval"):
            found = found_in(path)
            return (
                self.stopped("It is an archive; unpack it and look at what is in it.")
                if found is None
                else (self.scores(found))
            )
        log = self.located(path)
        if log is None:
            return None
        if log.format == "preflib":
            return self.votes(" in PrefLib's format")
        if log.format in ("letor", "qrels", "run"):
            return self.judged(with_columns(log))
        found = recognised(log)
        if found is None:
            return self.table(with_columns(log))
        return self.published(found, None if log.as_json or found.kind == SCORES else with_columns(log))

    def published(self, found: Published, log: Log | None = None) -> None:
        """Look at what was found in files of a known layout; ``log`` is a table as it was written."""
        if found.kind == SCORES:
            return self.scores(found)
        log = log or replace(from_object(found.table), name=self.seen.name, told=found.told)
        return self.votes(f", laid out as {found.layout}", found=found, log=log)

    def located(self, path: Path) -> Log | None:
        """Return the log that a name stands for; of one with an unknown ending what it seems to hold is said."""
        try:
            return sniffed(locate(self.given))
        except InputError as problem:
            if "unknown ending" not in str(problem):
                raise
            form, self.seen.what = _content(path)
            if form is None:
                raise
            new = shlex.quote(str(path.with_suffix(form)))
            self.suggest(f"cp {self.quoted} {new}", "give it an ending that says what it is")
            self.suggest(f"concordant doctor {new}", "and look again")
            self.stopped(f"Its ending is {path.suffix!r}, and it looks like {form}: a file is read by its ending.")
            return None

    # -- votes ---------------------------------------------------------------------------------------------------------
    def votes(
        self,
        layout: str = "",
        *,
        found: Published | None = None,
        log: Log | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        """Look at judgments: what there is, what they support, what to run."""
        seen = self.seen
        asked: dict[str, Any] = {"columns": dict(columns)} if columns else {}
        options = [f"--{role} {shlex.quote(name)}" for role, name in (columns or {}).items()]
        try:
            reading = read_log(log if found is not None and log and log.path is None else self.given, **asked)
        except UsageError as problem:  # grades without a scale, rankings of which it is not said what they leave out
            if columns:
                raise
            seen.what, seen.usable = "judgments, of which one thing has to be said", True
            seen.found += [("columns", few(log.columns, 20))] if log is not None else []
            seen.stops.append(self.plainly(problem.said(self.write)))
            return
        except InputError as problem:
            if log is None or columns:
                raise
            reading = read_log(self.given, on_error="skip", **asked)
            seen.stops.append(self.plainly(problem.said(self.write)))
            options.append("--on-error skip")
        looks = None if log is None else self.looked(log, list(reading.roles.values()))
        if (
            looks is not None
            and found is None
            and (name := looks.repeated)
            and reading.preferences.kind == "comparisons"
        ):
            given = {**(columns or {}), "id": name}
            try:
                reading = read_log(self.given, columns=given, on_error="skip" if seen.stops else "raise")
                options.append(f"--id {shlex.quote(name)}")
            except InputError as problem:
                seen.notes.append(self.plainly(problem.said(self.write)))
        prefs = reading.preferences
        seen.what = f"{KINDS[str(prefs.kind)]} ({prefs.kind}){layout}"
        seen.numbers |= {"kind": prefs.kind, **prefs.summary()}
        roles = {role: name for role, name in reading.roles.items() if role.split()[0] not in HIDDEN_ROLES}
        if roles := dict(found.columns) if found is not None else roles:
            seen.numbers["columns"] = roles
            seen.found.append(("columns", ", ".join(f"{role}: {shown(name)}" for role, name in roles.items())))
        pooled = self.described(prefs)
        if looks is not None:
            with stage("counting by columns"):
                seen.found += said_of(looks, seen.numbers)
        seen.supports, stops = supports(prefs.pool() if pooled else prefs, seen.numbers)
        seen.stops += stops
        seen.usable = not stops
        for note in reading.notes:
            if not isinstance(note, Note) or note.code != UNUSED:  # the commands name such columns
                seen.notes.append(self.plainly(note.said(self.write) if isinstance(note, Note) else note))
        clusters: list[str] = []
        if isinstance(prefs, Comparisons):
            clusters = [] if looks is None else [name for name in (looks.judge, looks.prompt) if name]
        if seen.usable:
            self.next(" ".join([*options, *["--pool"] * pooled]), clusters, prefs, looks)

    def described(self, prefs: Preferences) -> bool:
        """Say what judgments there are; return whether one ranking over all queries is what is wanted."""
        seen, facts = self.seen, prefs.summary()
        said = f"{len(prefs):,}"
        if (ties := facts.get("ties")) is not None:
            said += f", of them {counted(ties, 'ties')} ({ties / max(len(prefs), 1):.0%})"
        elif "entries" in facts:
            said += f" ({UNITS[str(prefs.kind)]}) of {counted(facts['entries'], 'entries')}"
        seen.found += [("judgments", said), ("items", _some(prefs.items.tolist()))]
        if len(prefs.queries) < 2:
            return False
        middle, pooled = float(np.median(prefs.judgments)), recurring(prefs)
        seen.numbers["judgments a query"] = middle
        seen.found.append(("queries", f"{len(prefs.queries):,}, median {middle:g} judgments each"))
        if pooled:
            hardly = isinstance(prefs, Comparisons) and middle <= 2
            why = "each query has hardly a judgment of its own" if hardly else "the same items stand in many queries"
            seen.notes.append(
                f"{why}: --pool makes one ranking over all of them, without it there is one for each query"
            )
        return pooled

    def next(self, options: str, clusters: Sequence[str], prefs: Preferences, looks: Looks | None) -> None:
        """Name the commands to run on judgments."""
        plainly = f"{self.quoted} {options}".strip()
        if self.seen.numbers.get("clicks alone"):
            purpose = "chances of a click at the first position, with intervals"
            self.suggest(f"concordant rank {plainly} --structure position-based", purpose)
            purpose = "learn to score items; FEATURES is a table of numbers for each"
            self.suggest(f"concordant fit {plainly} --features FEATURES --model model", purpose)
            return
        asks = [f"--cluster {shlex.quote(name)}" for name in clusters]
        line, audited = " ".join([plainly, *asks]), " ".join([plainly, *asks[:1]])  # which heeds one column
        name = self.seen.name.split(".")[0]
        page = shlex.quote(f"{name or 'report'}.html")
        asked = _answered(prefs, looks, self.seen.numbers.get("components"))
        if asked is not None:
            purpose = "what to train a reward model on: each pair of answers once, opposite votes cancelled"
            words = (plainly, asked, "-o", shlex.quote(f"{name}-pairs.jsonl"))
            self.suggest(f"concordant pairs {' '.join(filter(None, words))}", purpose)
        self.suggest(f"concordant rank {line}", "the ranking, with intervals")
        self.suggest(f"concordant report {audited} -o {page}", "one page to look at and to send on")
        self.suggest(f"concordant audit {plainly}", "can these votes lead to the right order, and how sure is that")
        if looks is None or not isinstance(prefs, Comparisons):
            return
        if looks.judge:
            self.suggest(
                f"concordant judges {plainly} --judge {shlex.quote(looks.judge)}", "how reliable each judge is"
            )
        if looks.judge and _several(prefs):
            named = (self.quoted, "SCORES", options, asked, f"--cluster {shlex.quote(looks.judge)}")
            purpose = "does a scorer keep what people agree on; SCORES is a file of its scores, or a model"
            self.suggest(f"concordant axioms {' '.join(filter(None, named))}", purpose)
        if looks.time and looks.half_life:
            time = f"--time {shlex.quote(looks.time)} --half-life {looks.half_life}"
            self.suggest(f"concordant rank {line} {time}", "the ranking now: older votes count less")
        if looks.groups:
            by = shlex.quote(looks.groups[0])
            self.suggest(f"concordant tree {line} --by {by}", f"does the ranking differ by {looks.groups[0]}")

    # -- scores --------------------------------------------------------------------------------------------------------
    def scores(self, found: Published) -> None:
        """Look at scores of systems on tasks."""
        seen, table, systems, tasks = self.seen, found.table, found.systems, found.tasks
        seen.what = f"{found.size} ({found.layout})"
        seen.numbers |= {"kind": SCORES, "layout": found.layout, "systems": systems, "tasks": tasks}
        if found.columns:
            seen.numbers["columns"] = dict(found.columns)
            seen.found.append(("columns", ", ".join(f"{role}: {name}" for role, name in found.columns)))
        seen.found += [(f"{role}s", _some(table[role].unique().to_pylist())) for role in ("system", "task")]
        cells = table.group_by(["system", "task"]).aggregate([("score", "count")])
        trials = int(np.max(cells["score_count"].to_numpy()))
        seen.numbers |= {"scores": len(table), "cells": len(cells), "trials": trials}
        said = f"{len(table):,} in {len(cells):,} of {systems * tasks:,} cells ({len(cells) / (systems * tasks):.0%})"
        seen.found.append(("scores", said + (f", up to {trials:,} trials each" if trials > 1 else "")))
        values = table["score"].to_numpy()
        told, less = [*found.told], ""
        if 2 <= systems <= COMPARED:
            from concordant.boards.ranked_scores import rank_scores

            board = rank_scores(table, resamples=100)
            less = self.lower(board.table.losses, tasks, told)
            told = [n for n in (*told, *board.notes) if getattr(n, "code", "") not in ("looks like a loss", RISING)]
        direction = {"": "higher is taken for better", EVERY: "lower is taken for better"}
        better = direction.get(less, "higher is taken for better but where it is said")
        seen.found.append(("range", f"{values.min():g} to {values.max():g}; {better}"))
        line = f"concordant scores {self.quoted}{less}"
        seen.notes += [self.plainly(n.said(self.write_scores) if isinstance(n, Note) else n) for n in told]
        if systems < 2:
            self.stopped("One system: a ranking needs two. Put the files of several into one folder and name that.")
            return
        seen.supports += paired(table, systems, tasks, seen.numbers)
        seen.usable = True
        self.suggest(line, "rank sets, tiers and who can be told apart")

    def lower(self, losses: Sequence[str], tasks: int, told: Sequence[str]) -> str:
        """Return the option for scores of which less is better, and put the question; nothing where none look so."""
        every, rising = 2 * len(losses) > tasks, [n for n in told if isinstance(n, Note) and n.code == RISING]
        if losses:
            self.seen.stops.append(
                f"{few(losses, 4)} {'is' if len(losses) == 1 else 'are'} called as something of which less is better; "
                f"the commands take {'all scores' if every else 'these'} so: is that right?"
            )
            return EVERY if every else "".join(f" --lower {shlex.quote(one)}" for one in losses)
        if rising:
            name = rising[0].numbers["names"]
            self.seen.stops.append(
                f"The rows stand in rising order of {name}, and the best usually stands first: the commands take less "
                "for better; is that right?"
            )
        return EVERY if rising else ""

    # -- other tables --------------------------------------------------------------------------------------------------
    def table(self, log: Log) -> None:
        """Look at a table of no published layout: a log, or another."""
        try:
            layout_of(log)
        except UsageError:
            pass  # which is said below
        except InputError as error:
            if "no layout fits" not in str(error):
                raise
            return self.unknown(log)
        return self.votes(log=log)

    def looked(self, log: Log, used: Sequence[str] = ()) -> Looks | None:
        """Look at the columns of a table; where that fails, say so."""
        try:
            with stage("looking at columns"):
                return looks_of(log, used)
        except (library.Error, MemoryError) as error:
            why = (str(error).splitlines() or [type(error).__name__])[0]
            self.seen.notes.append(
                f"Its columns could not be looked at one by one ({why}): nothing is said of judges, times and "
                "rows that are there twice."
            )
            return None

    def unknown(self, log: Log) -> None:
        """Look at a table that is no log: scores, features, or columns that nobody knows."""
        seen, names = self.seen, {plain(name): name for name in log.columns}
        try:
            if (found := tabled(log)) is not None:
                return self.scores(found)
        except UsageError as problem:  # several metrics
            seen.what, seen.usable = "scores of systems, of which one thing has to be said", True
            seen.found.append(("columns", few(log.columns, 20)))
            return seen.stops.append(self.plainly(problem.said(self.write_scores)))
        seen.found.append(("columns", few(log.columns, 20)))
        if log.format in ("csv", "tsv") and (mark := MARKS.get(mark_of(log.columns))):
            seen.what = "a table whose fields stand apart by another mark than its ending says"
            if mark == "tabs":
                new = shlex.quote(str(Path(self.given).with_suffix(".tsv")))
                self.suggest(f"cp {self.quoted} {new}", "give it an ending that says what it is")
                self.suggest(f"concordant doctor {new}", "and look again")
            return self.stopped(
                f"The heading is {shown(log.columns[0])}: fields seem to be separated by {mark}; a .csv file has "
                "commas, a .tsv file tabs. Save it so."
            )
        looks = self.looked(log)
        if looks is not None:
            seen.found.append(("rows", f"{looks.rows:,}"))
            seen.numbers |= {"columns": list(log.columns), "rows": looks.rows}
        item = next((names[one] for one in ALIASES["item"] if one in names), None)
        if item is not None and {"score", "rank"} <= set(names):
            seen.what, seen.usable = "scores of a ranker, as concordant score writes them", True
            purpose = "how good they are; LABELS is a file of graded labels"
            return self.suggest(f"concordant evaluate {self.quoted} LABELS --metric ndcg@10", purpose)
        if item is not None and {*names} & {*ALIASES["clicked"]} and not {*names} & {*ALIASES["session"]}:
            seen.what = "clicks on items"
            return self.stopped(f"No column says what was shown together: {LACKING['session']}.")
        if item is not None and (numeric := _numeric(log, [name for name in log.columns if name != item])):
            seen.what = f"features of items: {counted(len(numeric), 'columns')} of numbers for each {shown(item)}"
            seen.usable = True
            purpose = "learn to score such items; LOG is the file of judgments of them"
            return self.suggest(f"concordant fit LOG --features {self.quoted} --model model", purpose)
        if (sums := sums_of(log)) is not None:
            seen.what = f"a leaderboard of {counted(sums[1], 'systems')} ({shown(sums[0])}), without scores by task"
            return self.stopped(
                f"{few(sums[2], 6)} {'sums' if len(sums[2]) == 1 else 'sum'} up what is asked for here: scores of each "
                "system on each task, or votes between systems. A mean alone does not say how sure it is."
            )
        if looks is not None and looks.rows > 1 and self.taskless(log, looks):
            return None
        guess = guesses(log, looks)
        if guess.columns and self.guessed(
            {**guess.columns, **({"outcomes": guess.outcomes} if guess.outcomes else {})}, log
        ):
            return None
        seen.what = "a table whose columns are not those of votes or scores"
        if looks is not None and looks.rows == 1:
            return self.stopped("It has one row: nothing can be compared. Is it the result of one of several files?")
        seen.stops += guess.questions or [
            "Which columns say who won? A vote has two items and an outcome, a score has a system and a task."
        ]
        told = "votes: the item that was preferred, and the other"
        self.suggest(f"concordant rank {self.quoted} --winner COLUMN --loser COLUMN", told)
        told = "votes: the two items, and who won"
        self.suggest(f"concordant rank {self.quoted} --left COLUMN --right COLUMN --outcome COLUMN", told)
        seen.usable = True
        return None

    def taskless(self, log: Log, looks: Looks) -> bool:
        """Look at rows of systems and scores of which no column is called as a task; return whether they are such."""
        roles = roles_of(log)
        if "task" in roles or not {"system", "score"} <= {*roles}:
            return False
        free = [name for name in log.columns if name not in roles.values() and 1 < looks.distinct[name] < looks.rows]
        if not free:
            return False
        seen = self.seen
        seen.what, seen.usable = "scores of systems, without a column that is called as a task", True
        system, score = roles["system"], roles["score"]
        seen.found += [
            ("systems", f"{looks.distinct[system]:,}, by the column {shown(system)}"),
            ("scores", shown(score)),
        ]
        each = ", ".join(f"{shown(name)} ({looks.distinct[name]:,} different)" for name in free[:8])
        seen.stops.append(f"Which column is the task, and which only says more of a row? There are: {each}.")
        more = ""
        if (metric := roles.get("metric")) and looks.distinct[metric] > 1:
            ((first,),) = looks.ask(metric, "SELECT min({column})::VARCHAR FROM {source}")
            more = f" --metric {shlex.quote(str(decode(first) if log.as_json else first))}"
            seen.stops.append(f"The column {shown(metric)} holds several metrics: --metric names the one to rank by.")
        for name in free[:3]:
            line = f"concordant scores {self.quoted} --task {shlex.quote(name)}{more}"
            self.suggest(line, f"if {shown(name)} is the task")
        return True

    def guessed(self, columns: Mapping[str, str], log: Log) -> bool:
        """Look at votes whose columns are told by their values; return whether they can be read so."""
        before = list(self.seen.found)
        self.seen.found.clear()
        try:
            self.votes(columns=columns, log=log)
        except ConcordantError:
            self.seen.found[:], self.seen.stops[:] = before, []
            return False
        told = " ".join(f"--{role} {shlex.quote(name)}" for role, name in columns.items())
        self.seen.stops.insert(
            0, f"The columns are not called as usual. By their values they are {told}: is that right?"
        )
        return True

    def judged(self, log: Log) -> None:
        """Look at graded labels, relevance judgments or runs."""
        held = ("query", "rating", "label", "judgment")
        seen, table = self.seen, arrow_table(log, [name for name in held if name in log.columns])
        queries = len(table["query"].unique()) if "query" in log.columns else 1
        seen.numbers |= {"rows": len(table), "queries": queries}
        seen.found.append(("rows", f"{len(table):,} of {counted(queries, 'queries')}"))
        seen.usable = True
        for name in ("rating", "label"):
            if name in log.columns:
                seen.found.append(("labels", few(sorted(table[name].unique().to_pylist()), 8)))
        if log.format == "run":
            seen.what = f"a run of {few(table['judgment'].unique().to_pylist(), 4)}: the lists of a ranker (TREC)"
            self.suggest(
                f"concordant evaluate {self.quoted} QRELS --metric ndcg@10", "how good it is; QRELS are labels"
            )
            self.suggest(f"concordant rank {self.quoted} OTHER.run -o fused.run", "fuse it with another run")
        elif log.format == "letor":
            seen.what = "graded labels with features (LETOR, SVMlight)"
            self.suggest(f"concordant fit {self.quoted} --model model", "learn a scoring function of the features")
        else:
            seen.what = "relevance judgments (qrels)"
            self.suggest(f"concordant evaluate RUN {self.quoted} --metric ndcg@10", "judge a run by them")

    def folder(self, path: Path) -> None:
        """Look at a folder: a model, results of a harness, a log in parts, or files to look at one by one."""
        seen = self.seen
        if (path / MODEL).is_file():
            seen.what, seen.usable = "a model, as concordant fit keeps it", True
            return self.suggest(f"concordant score --model {self.quoted} --features FILE", "score items by it")
        inside = [one for one in path.iterdir() if not one.name.startswith((".", "_"))]
        if any(one.is_dir() or one.suffix.lower() in (".json", ".jsonl", ".eval", ".gz") for one in inside):
            found = of_folder(path)
            if found is not None:
                return self.published(found)
        try:
            log = with_columns(locate(path))
        except ConcordantError as problem:
            seen.what = f"a folder with {counted(len(inside), 'files')}" if inside else "an empty folder"
            known = [
                one for one in inside if one.is_file() and one.name.lower().removesuffix(".gz").endswith((*ENDINGS,))
            ]
            for one in sorted(known)[:5]:
                self.suggest(f"concordant doctor {shlex.quote(str(one))}", "look at one of its files")
            return self.stopped(problem.said(self.write))
        if log.format in ("letor", "qrels", "run"):
            return self.judged(log)
        return self.table(log)


def _some(names: Sequence[Any]) -> str:
    return f"{len(names):,} ({few(names[:4], 4)}{', …' if len(names) > 4 else ''})"


def _answered(prefs: Preferences, looks: Looks | None, components: Any) -> str | None:
    """Return how to name the prompt ("" where it is the query), of several votes on texts of answers; None of others.

    Answers are texts of several words of which those to different prompts never meet: there are as many components.
    """
    if looks is None or not isinstance(prefs, Comparisons):
        return None
    labels = prefs.items.take(np.arange(min(len(prefs.items), 1000))).to_pylist()
    texts = np.mean([isinstance(one, str) and " " in one for one in labels]) > 0.5
    if len(prefs.queries) > 1:
        return "" if texts and 2 * len(prefs.queries) <= len(prefs) and not recurring(prefs) else None
    prompts = 0 if looks.prompt is None else looks.distinct[looks.prompt]
    parts = sum(components) if isinstance(components, list) else 0
    if looks.prompt is None or not texts or prompts > 2 * parts or 2 * prompts > looks.rows:
        return None
    return f"--query {shlex.quote(looks.prompt)}"


def _several(prefs: Comparisons) -> bool:
    """Whether some pair of a query has more than one vote."""
    low, high = np.minimum(prefs.winner, prefs.loser), np.maximum(prefs.winner, prefs.loser)
    return len(rows_alike(prefs.query, low, high)[0]) < len(prefs)


def _content(path: Path) -> tuple[str | None, str]:
    """Return the ending that the beginning of a file asks for, and what the file is."""
    with path.open("rb") as file:
        start = file.read(BLOCK)
    for magic, form in ((b"PAR1", ".parquet"), (b"ARROW1", ".arrow")):
        if start.startswith(magic):
            return form, "a table"
    text = start.decode("utf-8-sig", "ignore")
    if "\0" in text or len(text.encode()) < 0.99 * len(start):
        return None, "a file that is no text"
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if re.match(r"\S+\s+(qid|[0-9]+):", first):
        return ".letor", "a text in LETOR's format"
    if first[:1] in ("{", "["):
        return ".json" if first in ("{", "[") else ".jsonl", "a text in JSON"
    ending = ".tsv" if "\t" in first else ".csv" if "," in first else None
    return ending, "a table as text" if ending else "a text without columns"


def _numeric(log: Log, columns: Sequence[str]) -> list[str]:
    """Return the columns whose first values are numbers; of a large file all."""
    if log.path is not None and log.path.stat().st_size > SMALL:
        return list(columns)
    table, numeric = arrow_table(log, list(columns)).slice(0, 200), []
    for name in columns:
        try:
            values = [float(one) for one in table[name].to_pylist() if one not in (None, "")]
        except (TypeError, ValueError):
            continue
        numeric += [name] if values else []
    return numeric

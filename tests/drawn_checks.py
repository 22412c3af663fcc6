"""What is held against drawn cases: of files, of the command, of option lines, of calls from Python."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import concordant as cc
import concordant.io.engines.duckdb as engine
from concordant.apps.commands.output import plain
from concordant.errors import ConcordantError
from concordant.io.ingest import Store
from drawn_damage import draw_damaged
from drawn_files import MEMORY_FORMATS, TYPED_FORMATS, Source, draw_file, layout_of
from drawn_judgments import Known, counted
from held_runs import elsewhere, run
from hostile import COMMANDS, draw_case
from plain_reading import Refused, Undecided, judged, rows_of_sheet, second_reading, skips
from running import exit_status

__all__ = [
    *(
        "Stuck",
        "check_command",
        "check_damaged",
        "check_good",
        "check_model",
        "check_options",
        "check_store",
        "compared",
    ),
    *("limited", "one_connection", "seen", "warm"),
]

seen: Counter[tuple[str, str]] = Counter()
"""(family, what became of a case): how often."""


FAST = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""A folder in memory, where there is one."""


class Stuck(BaseException):
    """A case took too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise ``Stuck`` in the main thread after so many seconds of processor time."""

    def stop(*_: object) -> None:
        raise Stuck

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def one_connection() -> Iterator[None]:
    """Let readings with DuckDB's usual settings share a connection: opening one costs more than a small file."""
    usual, held = engine.connected, contextlib.ExitStack()
    shared: list[Any] = []

    @contextmanager
    def connected(settings: Any, **others: Any) -> Iterator[Any]:
        if any(others.values()) or settings.memory_limit is not None or settings.threads is not None:
            with usual(settings, **others) as connection:
                yield connection
            return
        if not shared:
            place, tempfile.tempdir = tempfile.tempdir, None  # not among the temporary files of one case
            shared.append(held.enter_context(usual(settings)))
            tempfile.tempdir = place
        try:
            yield shared[0]
        finally:
            shared[0].execute("DETACH DATABASE IF EXISTS concordant_file")

    with held:
        engine.connected = connected
        try:
            yield
        finally:
            engine.connected = usual


# -- reading ----------------------------------------------------------------------------------------------------------
Answer = cc.Preferences | ConcordantError


def read_by(names: list[str], source: Source) -> dict[str, Answer]:
    """Read with several engines; anything but an error of the package goes through, and so does a warning."""
    answers: dict[str, Answer] = {}
    with tempfile.TemporaryDirectory(dir=FAST) as folder, warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for by in names:
            try:
                how = {} if source.form == "preflib" else {"engine": by}  # one reader reads these
                answers[by] = _whatever_is_unranked(source, Path(folder), {**how, **source.options})
            except ConcordantError as error:
                answers[by] = error
    return answers


def _whatever_is_unranked(source: Source, folder: Path, options: dict[str, Any]) -> cc.Preferences:
    """Read, and where it is asked what it means that an item is not ranked, as no opinion: the counts are the same."""
    try:
        return cc.read(source.place(folder), **options)
    except cc.UsageError as asked:
        if "unranked='missing'" not in str(asked):
            raise
    return cc.read(source.place(folder), **options, unranked="missing")


def compared(answers: dict[str, Answer]) -> str | None:
    """Say how answers of engines differ, or what is wrong with an error."""
    for by, answer in answers.items():
        if isinstance(answer, ConcordantError) and (wrong := bad_message(str(answer))):
            return f"{by}: {wrong}"
    (one, first), *others = answers.items()
    for other, second in others:
        if isinstance(first, ConcordantError) != isinstance(second, ConcordantError):
            return f"one engine refuses:\n  {one}: {first}\n  {other}: {second}"
        if not isinstance(first, ConcordantError) and first != second:
            return f"engines differ: {one} and {other}: {counted(first).difference(counted(second))}"  # type: ignore[arg-type]
    return None


def bad_message(text: str) -> str:
    """Say what is wrong with the message of an error: it is one line of bounded length."""
    fine = text and len(text) < 3000 and "\n" not in text and "Traceback" not in text
    return "" if fine else f"a message of {len(text)} characters: {text[:200]!r}"


def engines(source: Source, random: Random) -> list[str]:
    """Both; for what is in memory already, DuckDB now and then."""
    return ["memory", "duckdb"] if source.form not in MEMORY_FORMATS or random.random() < 0.3 else ["memory"]


def check_good(random: Random, form: str | None = None) -> str | None:
    """A good file comes back exactly, from both engines; and what is done with it ends."""
    source = draw_file(random, form)
    assert source.known is not None
    answers = read_by(engines(source, random), source)
    said = compared(answers)
    for by, answer in answers.items():
        if isinstance(answer, ConcordantError):
            return f"{told(source)}\n{by} refuses a good file: {answer}"
        differs = counted(answer).difference(source.known)
        if differs:
            return f"{told(source)}\n{by}: {differs}"
    seen["good", source.form] += 1
    answer = answers["memory"]
    assert isinstance(answer, cc.Preferences)
    return said or downstream(random, answer)


def check_damaged(random: Random, form: str | None = None) -> str | None:
    """A damaged file is refused by both engines, or read as a second reader reads it."""
    source = draw_damaged(random, form)
    if random.random() < 0.25 and source.form != "preflib":
        source = replace(source, options={**source.options, "on_error": "skip"})
    answers = read_by(engines(source, random), source)
    refusing = sum(isinstance(answer, ConcordantError) for answer in answers.values())
    if source.form in (*TYPED_FORMATS, "duckdb") and not source.cells and 0 < refusing < len(answers):
        seen["damaged", "refused by one engine"] += 1  # two libraries look at different bytes of such a file
        return None
    said = compared(answers)
    if said and said.startswith("engines differ") and source.form in (*TYPED_FORMATS, "duckdb") and not source.cells:
        seen["damaged", "read as one engine reads it"] += 1  # a stored number beyond its type, cut off in two ways
        return None
    if said:
        return f"{told(source)}\n{said}"
    answer = answers["memory"]
    if isinstance(answer, ConcordantError):
        seen["damaged", "refused"] += 1
        return None
    try:
        known = expected(source)
    except Refused as error:
        return f"{told(source)}\nread as {counted(answer).counts!r:.600} though the rules refuse it: {error}"
    except Undecided:
        seen["damaged", "engines agree"] += 1
        return downstream(random, answer)
    differs = counted(answer).difference(known)
    if differs:
        return f"{told(source)}\nread otherwise than plainly: {differs}"
    seen["damaged", "as read plainly"] += 1
    return downstream(random, answer)


def expected(source: Source) -> Known:
    """Return what the second reader makes of a source; Undecided for damaged bytes of typed formats."""
    if source.known is not None:
        return source.known
    if source.form in ("csv", "tsv", "json", "jsonl", "preflib", "letor", "qrels"):
        return second_reading(source)
    if source.sheet is None or not source.cells:
        raise Undecided("bytes of a typed format")
    kind, roles = layout_of(source)
    return judged(kind, roles, rows_of_sheet(source), skips(source))


def told(source: Source) -> str:
    """Show a source in a few lines."""
    lines = [f"{source.form} {source.name} {source.options}"]
    lines += [f"  {name}: {data[:700]!r}" for name, data in source.files.items()]
    if source.sheet is not None and not source.files:
        lines.append(f"  {source.sheet.columns!r}"[:700])
    return "\n".join(lines)


# -- what follows -----------------------------------------------------------------------------------------------------
STRUCTURES = ["bradley-terry", "plackett-luce", "log-odds", "thurstone-mosteller", "borda", "budgeted-borda"]
STRUCTURES += ["eigenvector", "counting", "kemeny", "cascade"]


def downstream(random: Random, prefs: cc.Preferences) -> str | None:
    """Rank, audit or fit some of what was read: an answer of finite numbers, or an error of the package."""
    if random.random() > 0.06 or len(prefs.items) > 20:
        return None
    what = random.choices(["rank", "audit", "fit"], [15, 2, 3])[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return {"rank": _ranked, "audit": _audited, "fit": _fitted}[what](random, prefs)
        except ConcordantError as error:
            wrong = bad_message(str(error))
            return f"{what}: {wrong}" if wrong else None


def _ranked(random: Random, prefs: cc.Preferences) -> str | None:
    structure = random.choice(STRUCTURES)
    interval = random.choice(["auto", "none", "hessian", "sandwich", "bootstrap"])
    options = (
        {"prior": random.choice([0.0, 0.01, 1.0])} if structure in STRUCTURES[:2] and random.random() < 0.4 else {}
    )
    options |= {"replicates": 50} if interval == "bootstrap" else {}
    board = cc.rank(prefs, structure, interval=interval, **options)
    asked = f"rank {structure} {interval} {options} of {counted(prefs).counts!r:.600}"
    if not np.isfinite(board.score).all():
        return f"{asked}: a score that is not finite: {board.score}"
    sure = board.flag == 0
    bounds = np.stack([board.lower, board.upper])
    if board.interval != "none" and np.isnan(bounds[:, sure]).any():
        return f"{asked}: a bound that is not a number, without a flag: {bounds}"
    if not ((board.lower <= board.score + 1e-9) & (board.score <= board.upper + 1e-9) | np.isnan(board.lower)).all():
        return f"{asked}: a score outside its interval: {board.score} {bounds}"
    return None


def _audited(_: Random, prefs: cc.Preferences) -> str | None:
    found = json.dumps(plain(cc.audit(prefs, replicates=20).to_dict()), allow_nan=False)
    return None if len(found) > 100 else f"audit of {counted(prefs).counts!r:.600}: {found}"


def _fitted(random: Random, prefs: cc.Preferences) -> str | None:
    queries, items = prefs.queries.tolist(), prefs.items.tolist()
    rows = [(query, item) for query in queries for item in items]
    numbers = np.array([[random.gauss(0, 1) for _ in range(2)] for _ in rows])
    features = {
        "query": [row[0] for row in rows],
        "item": [row[1] for row in rows],
        "x": numbers[:, 0],
        "y": numbers[:, 1],
    }
    ranker = (
        cc.AggregationRanker() if random.random() < 0.5 else cc.EdgeRanker(loss=random.choice(["ranknet", "linear"]))
    )
    scores = np.asarray(ranker.fit(features, prefs).predict(features))
    return None if np.isfinite(scores).all() else f"fit {ranker} of {counted(prefs).counts!r:.600}: {scores}"


def warm() -> None:
    """Do once what compiles, so that no case is charged for it."""
    prefs = cc.Preferences.from_comparisons(["a", "b", "c", "a"], ["b", "c", "a", "c"], ["p", "p", "p", "q"])
    for work in (_ranked, _audited, _fitted, _fitted):
        with contextlib.suppress(ConcordantError):
            work(Random(0), prefs)
    cc.mean_targets(prefs, order=2)


# -- the command ------------------------------------------------------------------------------------------------------
def check_command(random: Random) -> str | None:
    """A drawn file through the command: into a store that is read again, or a ranking by counting."""
    draw = draw_file if random.random() < 0.4 else draw_damaged
    source = draw(random)
    while source.make is not None:
        source = draw(random)
    good = source.known is not None
    try:
        known: Known | None = expected(source)
    except Refused:
        known = Known()
    except Undecided:
        known = None
    with tempfile.TemporaryDirectory(dir=FAST) as folder:
        place = source.place(Path(folder))
        ranks = source.form not in ("preflib", "letor", "qrels") and layout_of(source)[0] == "comparisons"
        ranks = ranks and known is not None and random.random() < 0.5 and "cluster" not in source.options
        line = ["rank", str(place), "--structure", "counting", "--interval", "none", "-o", f"{folder}/out.json"]
        line = line if ranks else ["ingest", str(place), "--store", f"{folder}/out.store"]
        line += [
            word
            for role, column in source.options.get("columns", {}).items()
            for word in (f"--{role.replace('_', '-')}", column)
        ]
        line += ["--cluster", source.options["cluster"]] if "cluster" in source.options else []
        line += ["--kind", source.options["kind"]] if "kind" in source.options else []
        engine = ["--engine", random.choice(["memory", "duckdb"])] if random.random() < 0.3 else []
        line += [] if source.form == "preflib" else engine
        alone = random.random() < 0.1
        seen["command", "in a process of its own" if alone else "in this process"] += 1
        status, said = run_command(line, folder, alone)
        errors = [one for one in said.split("\n") if one.startswith("error: ")]
        shown = f"{told(source)}\n{' '.join(line)}\n{status} {said[:1500]}"
        if status not in (0, 2) or "Traceback" in said or len(errors) != (status == 2):
            return shown
        left = [name for name in os.listdir(folder) if name.startswith("out")]
        if status == 2:
            if good:
                return f"a good file is refused\n{shown}"
            seen["command", "refused"] += 1
            return f"an error, and it wrote {left}\n{shown}" if left else None
        if known is not None and not known.counts:
            return f"the rules refuse this\n{shown}"
        seen["command", "done"] += 1
        if ranks:
            assert known is not None
            return differs if (differs := _counting(Path(folder, "out.json"), known)) is None else f"{differs}\n{shown}"
        found = counted(Store(Path(folder, "out.store")).preferences())
    differs = known.difference(found) if known is not None else None
    return f"the store differs: {differs}\n{shown}" if differs else None


def run_command(line: list[str], folder: str, alone: bool) -> tuple[int, str]:
    """Run a command in a process of its own, or in this one; return its exit status and what it said on stderr."""
    if alone:
        done = subprocess.run([sys.executable, "-m", "concordant", *line], capture_output=True, timeout=300, cwd=folder)
        return done.returncode, done.stderr.decode("utf-8", "replace")
    with elsewhere(Path(folder)) as (words, _):
        status = exit_status(*line)
    return status, words.getvalue().decode("utf-8", "replace")


def _counting(path: Path, known: Known) -> str | None:
    """Compare a ranking by counting with shares of wins that are counted here."""
    wins: Counter[Any] = Counter()
    games: Counter[Any] = Counter()
    touched: Counter[Any] = Counter()
    for (query, _, (winner, loser, tie, weight)), often in known.counts.items():
        for item, won in ((winner, 0.5 if tie else 1.0), (loser, 0.5 if tie else 0.0)):
            wins[query, item] += won * weight * often  # type: ignore[assignment]
            games[query, item] += weight * often  # type: ignore[assignment]
            touched[query, item] += often
    rows = json.loads(path.read_text())
    rows = rows if isinstance(rows, list) else rows["rows"]
    found = {(row["query"], row["item"]): (row["score"], row["judgments"]) for row in rows}
    if set(found) != set(games):
        return f"items differ: {set(found) ^ set(games)}"
    for key, (score, judgments) in found.items():
        if abs(score - wins[key] / games[key]) > 1e-9 or judgments != touched[key]:
            return f"{key}: {score} from {judgments} judgments, counted {wins[key] / games[key]} from {touched[key]}"
    return None


def check_options(random: Random, commands: Sequence[str] = COMMANDS, name: str = "options") -> str | None:
    """An option line of ``hostile``: it works or says what is wrong, and writes nothing but what was named."""
    slow = {"demo", "counterexample", "audit", "report", "reproduce"}
    command = random.choice([one for one in commands if one not in slow or random.random() < 0.3])
    case = draw_case(random, command)
    with tempfile.TemporaryDirectory() as folder:
        try:
            status, _ = run(case, Path(folder))
        except AssertionError as error:
            return f"{case.arguments}\n{str(error)[:2000]}"
    seen[name, f"status {status}"] += 1
    return None


def check_store(random: Random) -> str | None:
    """A store with damaged files: its commands work, or say what is wrong and change nothing."""
    return check_options(random, [one for one in COMMANDS if one.startswith("store")], "stores")


@functools.cache
def _sealed_models() -> tuple[dict[str, dict[str, bytes]], dict[str, Any]]:
    """The files of a model of every kind, and what each scores."""
    import resealed

    before = {}
    with tempfile.TemporaryDirectory(dir=FAST) as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kinds = resealed.all_files(Path(name))
        for kind, files in kinds.items():
            resealed.write_sealed(files, Path(name, "model"))
            rows = list(range(len(resealed.PROBE)))
            given = (resealed.PROBE, resealed.QUERIES, rows) if kind == "queries" else resealed.PROBE
            before[kind] = cc.load_model(Path(name, "model")).predict(given)
    return kinds, before


def check_model(random: Random) -> str | None:
    """A model that was changed and sealed again: refused, or scored as its files say."""
    import resealed

    kinds, before = _sealed_models()
    kind = random.choice(sorted(kinds))
    with tempfile.TemporaryDirectory(dir=FAST) as folder:
        try:
            became = resealed.trial(kind, resealed.changed(random, kinds[kind]), before[kind], Path(folder, "model"))
        except AssertionError as error:
            return f"{kind}: {str(error)[:1500]}"
    seen["models", became] += 1
    return None

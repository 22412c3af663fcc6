"""The command ``concordant``: arguments in, tables and files out, one clear line for every error.

Only click is imported here, so that ``concordant --help`` costs nothing; each command imports its options, and when it
runs what it needs.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from concordant.apps.commands.run_record import (
    NO,
    STOPPED,
    SURROUNDINGS,
    USAGE,
    finish,
    outcome_of,
    status_of,
)
from concordant.apps.commands.saying import Watch, as_json, said_as, say, watched
from concordant.apps.commands.settings import early
from concordant.apps.commands.standard import standard_streams
from concordant.errors import ConcordantError, did_you_mean
from concordant.kernels.compiled import State
from concordant.record import Run, recording

COMMANDS = {
    "doctor": "Say what a file is, what it supports, what stops it, and what to run next.",
    "rank": "Rank the items of a preference log, per query, with intervals.",
    "compare": "Say whether one item is better than another, and which ranks the log leaves open.",
    "explain": "Say why items win: coefficients of their properties, with standard errors.",
    "tree": "Say for whom the ranking differs: groups of judges or prompts, each with its own ranking.",
    "scores": "Rank systems by scores on tasks: who may be the best, tiers, which differences are more than chance.",
    "look": "May the first place be named while votes come in? Look after any vote; which pairs to ask next.",
    "judges": "Say who judges reliably, by a coin, or by what stands first; people beside a judge model.",
    "camps": "Say whether those who judged fall into camps, each with a ranking of its own, and who is in which.",
    "fit": "Learn a scoring function of item features from a preference log; keep it in a directory.",
    "pairs": "Write pairs to train a reward model on, the votes of all annotators cancelled first.",
    "score": "Score and rank items by a model that fit has kept.",
    "evaluate": "Judge scores by graded labels: NDCG, ERR, precision and others, with standard errors.",
    "report": "Write one page to look at: ranking, who beats whom, audit, scorer, what to ask next.",
    "audit": "Say whether preferences, with a loss, can lead to the right order, and how sure that is.",
    "axioms": "Say whether a scorer breaks what people agree on: unanimous pairs, majorities, who beats everybody.",
    "export": "Write a model as ONNX, for Elasticsearch or Solr, or as JSON, with a model card.",
    "serve": "Answer requests over HTTP by a model: score, rank, compare.",
    "ingest": "Take logs into a store, each exactly once.",
    "store": "Look into a store: its batches, taken out, replaced, forgotten; verify, back up, restore.",
    "reproduce": "Run the experiments of the papers again, their numbers beside ours.",
    "counterexample": "Votes that a loss ranks wrongly with any amount of data: found, explained, written as a log.",
    "demo": "Rank 59 language models by 8,931 human votes that come with the package.",
}


class Stopped(BaseException):
    """The command was interrupted."""


LONG = 1.0
"""Seconds of a command that are worth a word on how it would be faster."""
UNCOMPILED = (
    "loops ran uncompiled: pip install 'concordant[fast]' (Numba, 207 MB) compiles them, which makes rank of a "
    "leaderboard 1.7 times as fast, audit and report 2.5 times"
)
LITTLE = ("fit", "score")
"""Commands that are short of loops: Numba takes longer to load than they do."""
LONGEST = 2000
"""Characters of a message: what a broken file holds can be of any length."""


class _Lazy(click.Group):
    """Commands whose modules are imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from concordant.apps.commands.options import command_of

        return command_of(cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # of which click would make an empty line
            raise Stopped from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS:
            raise click.UsageError(f"unknown command {args[0]!r}: {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="concordant")
def cli() -> None:
    """From a log of who preferred what to a ranking that can be trusted."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command; errors that a user can mend are one line on stderr and exit status 2 (``run_record``).

    Ctrl-C and SIGTERM end it with one line and the status 130 or 143. Streams that are closed or full end nothing
    (``standard``); output that could not be written to standard output makes the status 2.
    """
    own = arguments is None
    asked = sys.argv[1:] if arguments is None else arguments
    json = early(asked, "log-format", COMMANDS) == "json"
    with standard_streams(own=own) as streams, said_as(json=json), recording(_said_of_inputs) as run:
        run.more |= {"command": asked[0] if asked and asked[0] in COMMANDS else None, "arguments": asked}
        status = 1  # of a mistake of our own, whose traceback is shown
        run.outcome = "failed"
        try:
            with watched(_say_interrupted, to_the_end=own) as watch:
                try:
                    status = _run(arguments, asked, watch, run)
                except (Stopped, KeyboardInterrupt, click.Abort):
                    watch.say()
                    status = watch.status
                    run.end(STOPPED)
            trouble, missed = streams.trouble()
            if trouble and status == 0:
                if missed:
                    status = _failed(trouble, SURROUNDINGS, asked, run)
                else:
                    say("note", trouble)
        finally:
            if run.more["command"]:
                status = finish(run, asked, status, _is_quiet(run, asked))
    if status:
        sys.exit(status)


def _is_quiet(run: Run, asked: list[str]) -> bool:
    return bool(run.more.get("options", {}).get("quiet", {"-q", "--quiet"} & {*asked}))


def _said_of_inputs(event: str, facts: Any, run: Run) -> None:
    """Say what was read, where a log of JSON is written."""
    if as_json() and not _is_quiet(run, []):
        say(event, f"{event} {facts['path']}", **facts)


class _NoPandas:
    """A finder of modules that says that pandas is not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise ModuleNotFoundError for pandas; nothing else is found here."""
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def _leave_pandas_out(arguments: list[str]) -> None:
    """Let PyArrow make its first array, before which it loads pandas where that is installed (.3 s), without it.

    Not on Spark, which needs pandas; help needs no array.
    """
    helps = {"-h", "--help", "--version"} & set(arguments) or not arguments
    if helps or any("spark" in one or "://" in one for one in arguments):
        return
    without = _NoPandas()
    sys.meta_path.insert(0, without)
    try:
        import pyarrow

        pyarrow.array([0]).to_numpy()
    finally:
        sys.meta_path.remove(without)


def _run(arguments: list[str] | None, asked: list[str], watch: Watch, run: Run) -> int:
    """Run the command and return its exit status."""
    run.outcome, State.plainly, began = "done", False, time.monotonic()
    State.compiling = _say_compiling if arguments is None and sys.stderr.isatty() else None
    try:
        _call(arguments, watch)
        for later in run.then:
            later()
        long = State.plainly and time.monotonic() - began > LONG and not {*asked[:1]} & {*LITTLE}
        if long and not _is_quiet(run, asked):
            say("note", UNCOMPILED)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except SystemExit as stop:  # what was to hold does not
        for later in run.then:
            later()
        run.end(NO)
        return int(stop.code or 0)
    except click.exceptions.NoArgsIsHelpError as problem:
        click.echo(problem.format_message(), err=True)
        run.end(USAGE)
        return status_of(USAGE, asked, COMMANDS)
    except click.ClickException as problem:
        return _failed(problem.format_message(), outcome_of(problem), asked, run)
    except ConcordantError as problem:
        return _failed(str(problem), outcome_of(problem), asked, run)
    except MemoryError:
        return _failed("not enough memory", SURROUNDINGS, asked, run)
    except OSError as problem:
        said = f"{problem.filename or ''}: {problem.strerror or problem}".lstrip(": ")
        return _failed(said, SURROUNDINGS, asked, run)
    except Exception as problem:
        run.end("failed", {"kind": "a mistake of concordant", "message": f"{type(problem).__name__}: {problem}"})
        raise
    run.end()
    return status_of(run.outcome, asked, COMMANDS)


def _call(arguments: list[str] | None, watch: Watch) -> None:
    try:
        if arguments is None:
            _leave_pandas_out(sys.argv[1:])
        cli.main(arguments, prog_name="concordant", standalone_mode=False)
    except BaseException:
        if watch.caught is not None:  # whatever a library made of the signal
            raise Stopped from None
        raise


def _failed(message: str, outcome: str, asked: list[str], run: Run) -> int:
    text = " ".join(message.split())
    more = len(text) - LONGEST
    text = text if more <= 0 else f"{text[:LONGEST]} … ({more:,} more characters)"
    say("error", text, level="error", kind=outcome)
    run.end(outcome, {"kind": outcome, "message": text})
    return status_of(outcome, asked, COMMANDS)


def _say_compiling() -> None:
    say("note", "compiling loops at their first use (some seconds, once: they are kept for the next run)")


def _say_interrupted() -> None:
    """Say so, on a terminal over the ^C that it shows."""
    if sys.stderr.isatty() and not as_json():
        sys.stderr.write("\r")
    say("interrupted", "interrupted", level="error")

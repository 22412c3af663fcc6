"""The command ``concordant``: arguments in, tables and files out, one clear line for every error.

Only click is imported here, so that ``concordant --help`` costs nothing; each command imports what it runs.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from typing import Any

import click

__all__ = ["main"]

COMMANDS = {
    "rank": "Rank the items of a preference log, per query, with intervals.",
    "fit": "Learn a scoring function of item features from a preference log; keep it in a directory.",
    "score": "Score and rank items by a model that fit has kept.",
    "evaluate": "Judge scores by graded labels: NDCG, ERR, precision and others, with standard errors.",
    "audit": "Say whether preferences, with a loss, can lead to the right order, and how sure that is.",
    "ingest": "Take logs into a store, each exactly once.",
    "store": "Look into a store, verify it, make it smaller, write it out.",
    "reproduce": "Run the experiments of the papers again, their numbers beside ours.",
    "counterexample": "Votes that a loss ranks wrongly with any amount of data: found, explained, written as a log.",
    "demo": "Rank 59 language models by 8,931 human votes that come with the package.",
}


class _Lazy(click.Group):
    """Commands whose modules are imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(f"concordant.commands.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS:
            from concordant.errors import did_you_mean

            raise click.UsageError(f"unknown command {args[0]!r}: {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="concordant")
def cli() -> None:
    """From a log of who preferred what to a ranking that can be trusted."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command; errors that a user can mend are one line on stderr and exit status 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal without UTF-8 shows ? for what it lacks
        sys.stdout.reconfigure(errors="replace")
    try:
        cli.main(arguments, prog_name="concordant", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.exceptions.NoArgsIsHelpError as problem:
        click.echo(problem.format_message(), err=True)
        sys.exit(2)
    except click.ClickException as problem:
        _fail(problem.format_message())
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output (head, less) has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except ValueError as problem:
        from concordant.errors import ConcordantError

        if not isinstance(problem, ConcordantError):
            raise
        _fail(str(problem))
    except MemoryError:
        _fail("not enough memory")
    except OSError as problem:
        _fail(f"{problem.filename or ''}: {problem.strerror or problem}".lstrip(": "))


def _fail(message: str) -> None:
    click.echo(f"error: {' '.join(message.split())}", err=True)
    sys.exit(2)

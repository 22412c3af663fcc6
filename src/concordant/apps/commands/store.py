"""``concordant store``: look into a store, verify it, make it smaller, write it out; the work is in ``storing``."""

from __future__ import annotations

import click

from concordant.apps.commands.given import group
from concordant.apps.commands.progress import progress_options

__all__ = ["store"]


@group()
def store() -> None:
    """Look into a store, verify it, make it smaller, write it out.

    A store is made by concordant ingest LOG --store FILE, and read wherever a log is.
    """


@store.command(short_help="What the store FILE holds.")
@click.argument("file")
@click.option(
    "--batches",
    is_flag=True,
    help="The logs that were taken in, a row each (in files and pipes: how each was read, too).",
)
@click.option("--output", "-o", metavar="F", help="Write the table to F: .csv, .tsv, .parquet, .arrow, .json, .jsonl.")
@progress_options
def info(file: str, batches: bool, output: str | None, quiet: bool) -> None:
    """Say what the store FILE holds."""
    from concordant.apps.commands.storing import run_info

    run_info(file, batches, output, quiet)


@store.command(short_help="Check that FILE is what was written.")
@click.argument("file")
@progress_options
def verify(file: str, quiet: bool) -> None:
    """Read all of the store FILE and check that it is what was written.

    Every segment is held against its SHA-256, every number counted again. What is wrong is an error.
    """
    from concordant.apps.commands.storing import run_verify

    run_verify(file, quiet)


@store.command(short_help="Merge the segments of FILE into one.")
@click.argument("file")
@click.option("--wait", type=click.FloatRange(min=0), default=10.0, show_default=True, metavar="SECONDS",
              help="How long to wait while another process writes to the store.")  # fmt: skip
@click.option("--memory-limit", metavar="SIZE", help="Memory for merging, such as 4GB; beyond it goes to disk.")
@click.option("--threads", type=click.IntRange(min=1), help="Threads for merging.")
@progress_options
def compact(file: str, wait: float, memory_limit: str | None, threads: int | None, quiet: bool) -> None:
    """Merge the segments of the store FILE into one: the same judgments, read faster."""
    from concordant.apps.commands.storing import run_compact

    run_compact(file, wait, memory_limit, threads, quiet)


@store.command(short_help="Write the judgments of FILE as a log.")
@click.argument("file")
@click.option("--output", "-o", required=True, metavar="F", help="A log: .parquet, .csv, .tsv or .arrow.")
@progress_options
def export(file: str, output: str, quiet: bool) -> None:
    """Write the judgments of the store FILE as a log that concordant reads: equal judgments once, with their count."""
    from concordant.apps.commands.storing import run_export

    run_export(file, output, quiet)

"""What can be said to the commands about stores."""

from __future__ import annotations

import click

from concordant.apps.commands.given import Options, argument, flag, option
from concordant.apps.commands.shared_options import ONE, SidedLog

WAIT = "How long to wait while another process writes to the store."


class IngestOptions(SidedLog):
    """Take each LOG into a store, exactly once: what is there already, by its content, is left out.

    LOG is what concordant rank reads; of a folder the new files are taken in. Each LOG is in the store as a whole or
    not at all, whatever happens meanwhile, and a line says so. The first one fixes the kind of judgments and which
    columns are query, cluster and covariates; the others have to agree. Then name the store in the place of a log:

    \b
    Examples:
      concordant ingest votes-monday.csv votes-tuesday.csv --store votes.store
      concordant ingest clicks/ --store clicks.store --clicks first
      concordant rank votes.store
      concordant store info votes.store
    """

    logs: tuple[str, ...] = argument(metavar="LOG...", nargs=-1, required=True)
    store: str = option("FILE", "The store; the first log makes it.", "-s", required=True)
    grown: bool = flag("Take in a file that begins with all of one that was taken in.")
    again: str = option("NAME", "Count logs that the store has once more, under NAME.", default="")
    known: str | None = option("F", "Of an export of a store: the list of files beside it (_X.known.json), or none.")
    wait: float = option("SECONDS", WAIT, default=10.0, type=click.FloatRange(min=0))


class StoreOptions(Options):
    """Check that the store FILE is what was written.

    All of it is read, every segment held against its SHA-256, every number counted again. What is wrong is an error.
    """

    file: str = argument()


class InfoOptions(StoreOptions):
    """Say what the store FILE holds."""

    batches: bool = flag("The logs that were taken in, a row each (in files and pipes: how each was read, too).")
    output: str | None = option("F", "Write the table to F: .csv, .tsv, .parquet, .arrow, .json, .jsonl, .md.", "-o")


class CompactOptions(StoreOptions):
    """Merge the segments of the store FILE into one.

    The judgments are the same, and read faster.
    """

    wait: float = option("SECONDS", WAIT, default=10.0, type=click.FloatRange(min=0))
    memory_limit: str | None = option("SIZE", "Memory for merging, such as 4GB; beyond it goes to disk.")
    threads: int | None = option(None, "Threads for merging.", type=ONE)


class StoreExportOptions(StoreOptions):
    """Write the judgments of the store FILE as a log.

    It is one that concordant reads; equal judgments stand in it once, with their count.
    """

    output: str = option("F", "A log: .parquet, .csv, .tsv or .arrow.", "-o", required=True)

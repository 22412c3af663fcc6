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
    columns are query, cluster and covariates; the others have to agree. Each is a batch, of the day that its path names
    (day=2026-01-31/…, votes-2026-01-31.csv). Then name the store in the place of a log:

    \b
    Examples:
      concordant ingest votes-monday.csv votes-tuesday.csv --store votes.store
      concordant ingest lake/day=*/ --store votes.store --cluster worker --keep 90d
      concordant ingest clicks/ --store clicks.store --clicks first
      concordant rank votes.store
      concordant store info votes.store
    """

    logs: tuple[str, ...] = argument(metavar="LOG...", nargs=-1, required=True)
    store: str = option("FILE", "The store; the first log makes it.", "-s", required=True)
    grown: bool = flag("Take in a file that begins with all of one that was taken in.")
    again: str = option("NAME", "Count logs that the store has once more, under NAME.", default="")
    batch: str | None = option("NAME", "What the batch is called (one LOG); no other batch has this name.")
    day: str | None = option("DATE", "The day that LOG is of, as 2026-01-31; default: what its path names.")
    keep: str | None = option(
        "DAYS",
        "From now on keep so many days up to the newest one (90d, 12w, all): older batches are taken out, and refused.",
    )
    excluding: str | None = option(
        "OLD", "The store in whose place this one is made anew: what was taken out of it stays out."
    )
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


class BatchesOptions(Options):
    """List the batches of the store FILE: the logs that were taken in, each with its day, and how it was read."""

    file: str = argument()
    all: bool = flag("Also those that were taken out, with when and why.")
    json: bool = flag("Print them as one JSON list.")
    output: str | None = option("F", "Write the table to F: .csv, .tsv, .parquet, .arrow, .json, .jsonl, .md.", "-o")


class Writing(StoreOptions):
    """What every command has that changes a store."""

    wait: float = option("SECONDS", WAIT, default=10.0, type=click.FloatRange(min=0))


class RemoveOptions(Writing):
    """Take batches out of the store FILE, in one step.

    Their files stay known: they do not come back when they are taken in again, nor in another packing or order of rows.

    \b
    Examples:
      concordant store remove votes.store --day 2026-01-31
      concordant store remove votes.store --batch votes-monday.csv --batch votes-tuesday.csv
      concordant store remove votes.store --before 2026-01-01
    """

    batch: tuple[str, ...] = option("NAME", "The batch of this name (again for more).", default=())
    number: tuple[int, ...] = option("N", "The batch of this number.", default=(), type=ONE, multiple=True)
    day: tuple[str, ...] = option("DATE", "All batches of this day.", default=())
    before: str | None = option("DATE", "All batches of a day before this one.")


class ReplaceOptions(SidedLog):
    """Put LOG in the place of a batch of the store FILE, or of all batches of a day, in one step.

    The new batch has the name and the day of the old one, and is read as that was unless options say otherwise.

    \b
    Examples:
      concordant store replace votes.store corrected.csv --day 2026-01-31
      concordant store replace votes.store corrected.csv --batch votes-2026-01-31.csv
    """

    absent = frozenset({"unranked", "pool"})
    file: str = argument()
    log: str = argument()
    batch: str | None = option("NAME", "The batch of this name.")
    number: int | None = option("N", "The batch of this number.", type=ONE)
    day: str | None = option("DATE", "All batches of this day.")
    wait: float = option("SECONDS", WAIT, default=10.0, type=click.FloatRange(min=0))


class ForgetOptions(Writing):
    """Take all judgments of people, or single votes, out of the store FILE, in one step, for good.

    A person is a label of the column that the store keeps as its cluster; a vote is known by its id, where the store
    was made with concordant ingest --id. What holds such judgments later (the same file, a corrected one, an export)
    is taken in without them: the store keeps a salted hash of the label, the hash of the id.

    \b
    Examples:
      concordant store forget votes.store --cluster worker-17
      concordant store forget votes.store --id 4711 --id 4712
      concordant store forget votes.store --ids withdrawn.csv
    """

    cluster: tuple[str, ...] = option("LABEL", "Who is forgotten (again for more).", default=())
    id: tuple[str, ...] = option("ID", "The id of a vote that is forgotten (again for more).", default=())
    ids: str | None = option(
        "F", "A file of such ids: a table with the column of ids, or a .txt with one in each line."
    )


class DayOptions(Writing):
    """Say of which day a batch of the store FILE is."""

    file: str = argument()
    day: str = argument(metavar="DATE")
    batch: str | None = option("NAME", "The batch of this name.")
    number: int | None = option("N", "The batch of this number.", type=ONE)


class BackupOptions(Writing):
    """Copy the store FILE to COPY, as it is at one moment; others may write to it meanwhile.

    COPY is a store, there whole or not at all. concordant store restore puts it back.
    """

    file: str = argument()
    copy: str = argument()


class RestoreOptions(Writing):
    """Put what COPY holds in the place of the store FILE, or where none is, in one step.

    COPY is what concordant store backup made. Who was forgotten in FILE since then stays forgotten. What was taken in
    since then is not there any more, and can be taken in again.
    """

    file: str = argument()
    copy: str = argument()


class CompactOptions(StoreOptions):
    """Add the segments of the store FILE up in one file, which is read in their place, and faster.

    The segments stay beside it, so that a batch can still be taken out.
    """

    wait: float = option("SECONDS", WAIT, default=10.0, type=click.FloatRange(min=0))
    memory_limit: str | None = option("SIZE", "Memory of this process, such as 4GB; what cannot be held is said.")
    threads: int | None = option(None, "Threads for merging.", type=ONE)


class StoreExportOptions(StoreOptions):
    """Write the judgments of the store FILE as a log.

    It is one that concordant reads; equal judgments stand in it once, with their count.
    """

    output: str = option("F", "A log: .parquet, .csv, .tsv or .arrow.", "-o", required=True)

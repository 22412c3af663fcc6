"""A store: counted judgments on disk that take in logs batch by batch, each exactly once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from concordant import __version__
from concordant.io.engines.duckdb import Settings
from concordant.io.intake import Intake, Taken
from concordant.io.store.catalogue import Catalogue, read_catalogue
from concordant.io.store.commits import told
from concordant.io.store.files import WAIT
from concordant.io.store.known import known_files
from concordant.io.store.maintenance import Compacted, Verified, compact, export, verify
from concordant.io.store.stored import read_stored
from concordant.preferences.preferences import Preferences


class Store(os.PathLike[str]):
    """Counted judgments on disk, taken in log by log, each exactly once.

    ``path`` is a file, the catalogue; its segments lie beside it in ``path.parts``. It need not exist yet: the first
    log that is taken in makes it, and fixes the kind of judgments and the columns of query, cluster and covariates.
    Wherever a log is read (``read``, the commands rank, fit, audit) the path of a store or a Store can be named, and

        read(store) == read(log_1) + read(log_2) + …

    bit for bit. A killed process, a full disk or a power cut leave a store as it was before the log or with all of it.

    >>> import tempfile, concordant
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(f"{folder.name}/votes.store")
    >>> votes = {"winner": ["a", "a"], "loser": ["b", "b"]}
    >>> store.ingest(votes).judgments, store.ingest(votes).judgments  # the second time it is known
    (2, 0)
    >>> concordant.read(store) == concordant.read(votes)
    True
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Store:
        """Return the store at a path; it has to be there. Errors (InputError): no store, a damaged or newer one."""
        store = cls(path)
        read_catalogue(store.path)
        return store

    def ingest(
        self,
        source: Any,
        *,
        name: str | None = None,
        grown: bool = False,
        again: str = "",
        known: str | os.PathLike[str] | None = None,
        wait: float = WAIT,
        **options: Any,
    ) -> Taken:
        """Take a log into the store, whole or not at all; what the store has already is left out.

        Parameters
        ----------
        source : whatever ``read`` reads, or Preferences. A file is known again by the SHA-256 of its bytes (unpacked,
            of .gz), whatever its name; a table (in memory or in a database) by its counted judgments. The new files of
            a folder are taken in together.
        name : what the batch is called.
        grown : whether a text file that begins with the whole of a known one is allowed; otherwise it is refused.
        again : a name, under which what the store has already is counted once more, on purpose; under one name once.
        known : for the export of a store: the list of files that lies beside it, under another name or elsewhere (or
            the old store); "none" forgets them.
        wait : seconds to wait for another writer.
        **options : options of ``read``.

        Errors: InputError as ``read`` has, or a log that does not agree with those before it; ConcordantError: another
        writer, a disk that is full or may not be written. After an error the store is as it was.
        """
        with told(self.path):
            return Intake(self.path, source, name, options, grown=grown, again=again, known=known, wait=wait).run()

    def preferences(self, *, memory_limit: str | None = None, threads: int | None = None) -> Preferences:
        """Return the sum of all that was taken in. Errors (InputError): no store; a segment missing or damaged."""
        with told(self.path):
            return read_stored(self.path, Settings(memory_limit, threads))[0]

    def info(self) -> Catalogue:
        """Return what the store says of itself: facts, batches, the contents they were, segments."""
        with told(self.path):
            return read_catalogue(self.path)

    def verify(self) -> Verified:
        """Read everything, hold it against its SHA-256 and count again. Errors (InputError): all that is wrong."""
        with told(self.path):
            return verify(self.path)

    def compact(self, *, wait: float = WAIT, memory_limit: str | None = None, threads: int | None = None) -> Compacted:
        """Merge all segments into one. Readers and other writers may go on meanwhile; what is known stays known."""
        with told(self.path):
            return compact(self.path, Settings(memory_limit, threads), by=__version__, wait=wait)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all judgments as a log (.parquet, .csv, .tsv, .arrow) that ``read`` reads back as the same Preferences.

        Where the store keeps them, name ``cluster='cluster'`` and the covariates (``ingest`` does that itself). CSV has
        texts only: integer labels come back as texts. Beside it lies ``_NAME.known.json``, the list of files that were
        taken in, by which a store that is made of the export knows them again. Returns the number of items that no row
        holds, because they are in no judgment.
        """
        with told(self.path):
            prefs, catalogue = read_stored(self.path)
            return export(prefs, Path(path), known_files(catalogue))

"""``concordant rank --engine spark``: the queries of a log ranked where its rows are."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from concordant.apps.commands import saying
from concordant.apps.commands.output import show, write
from concordant.apps.commands.progress import Progress
from concordant.apps.commands.reading_log import asked_of
from concordant.apps.spark.frames import JudgedQueries, TooLarge
from concordant.apps.spark.ranking import ranked, ranking_of, write_ranking
from concordant.apps.spark.telling import told
from concordant.errors import InputError, UsageError
from concordant.io.engines.spark_session import without_pandas_warning
from concordant.io.log.formats import locate
from concordant.io.store.catalogue import is_store
from concordant.preferences.values import say
from concordant.ranking.rank import Ranking

__all__ = ["check_folder", "is_folder", "rank_on_spark"]


def is_folder(output: str) -> bool:
    """Whether an output is a folder or an address for the executors to write to, and not a file for the driver."""
    return output.endswith("/") or "://" in output or not Path(output).suffix


def check_folder(output: str) -> None:
    """Refuse a folder that holds something already, before any work is done."""
    path = Path(output)
    if "://" in output or not path.exists():
        return
    if not path.is_dir():
        raise UsageError(f"--output {output} is a file; name a folder, or a file with an ending")
    if any(path.iterdir()):
        raise UsageError(f"--output {output}: the folder is not empty; name another one")


@without_pandas_warning()
def rank_on_spark(log: str, given: Mapping[str, Any], **options: Any) -> bool:
    """Rank on the executors and write; False, with nothing done, where that is the driver's work: a log that is one
    query, a store, or a PrefLib file.
    """
    with told(log):
        return _rank(log, given, options)


def _rank(log: str, given: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    output, quiet = given["output"], given["quiet"]
    if is_store(Path(log)) or locate(log).format == "preflib":
        return False
    reading = {**asked_of(given), "cluster": given["cluster"], "covariates": given["covariates"]}
    with Progress(quiet, f"counting {log}"):
        judged = JudgedQueries.opened(log, **reading, home="left" if given["home"] else None)
        if not judged.by_query:
            return False
        judged = judged.sized(look=False)  # a look at each query costs more than what it saves from
        skipped = judged.rejects() if "skip" in (given["on_error"], given["clicks"]) else ()
    if refused := judged.checks.stopping(skipped):
        raise InputError(say(judged.name, refused))
    said = [f"skipped: {say(judged.name, skipped)}"] if skipped else []
    if not quiet:
        said.append(f"{log}: {judged.kind}, {judged.total:,} rows, {judged.buckets:,} tasks on Spark")
    names = ("interval", "level", "seed", "replicates", "quasi", "across_components")
    asked = {**{name: given[name] for name in names}, **options}
    with Progress(quiet, "ranking queries"):
        try:
            board, number, notes = _made(judged, given["structure"], asked, output)
        except TooLarge:
            board, number, notes = _made(judged.sized(), given["structure"], asked, output)
    if number == 0:
        raise InputError(f"{judged.name}: no judgment is left")
    for line in said:
        saying.say("log", line)
    if board is not None and output is not None:
        write(board.to_arrow(), output)
    if output is not None and not quiet:
        saying.say("wrote", f"wrote {output}: {number:,} rows", path=output)
    if board is not None:
        show(board, rows=given["rows"], quiet=quiet, table=output is None or sys.stdout.isatty())
    elif not quiet:
        for note in notes:
            saying.say("note", note)
    return True


def _made(
    judged: JudgedQueries, structure: str, asked: Mapping[str, Any], output: str | None
) -> tuple[Ranking | None, int, list[str]]:
    """Return the ranking (None: the executors have written it), the number of its rows and what to note of it."""
    with judged.explained():
        frame = ranked(judged, structure, **asked)
    if output is not None and is_folder(output):
        return None, *write_ranking(frame, judged, output)
    board = ranking_of(frame, judged, structure, asked["interval"], asked["level"])
    return board, len(board), []

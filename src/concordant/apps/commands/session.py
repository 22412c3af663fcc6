"""What ``concordant rank`` does once its arguments are known."""

from __future__ import annotations

import sys
from typing import Any

from concordant.apps.commands.given import Given
from concordant.apps.commands.output import check_output, show, write
from concordant.apps.commands.progress import Progress, tell
from concordant.apps.commands.reading_log import read_given_log
from concordant.apps.commands.saying import say
from concordant.ranking.rank import rank
from concordant.ranking.structures import structure

__all__ = ["run_rank"]


def run_rank(log: str, given: Given) -> None:
    """Read, rank, write; notes and progress go to stderr."""
    quiet = given["quiet"]
    on_spark = _on_spark(given)
    given.settle(terminal=sys.stdout.isatty())
    if given["output"] is not None and not (on_spark and on_spark.is_folder(given["output"])):
        check_output(given["output"], log)
    member = structure(given["structure"])  # a wrong name should not cost the reading of a large log
    formula = given["interval"] == "auto" and member.reads == "exposures"
    given.settle(
        alone=formula or given["interval"] in ("none", "hessian"),
        folder=bool(on_spark and given["output"] is not None and on_spark.is_folder(given["output"])),
        forgets="covariates" not in member.options,
    )
    options = {name: given[name] for name in ("prior", "ties") if given[name] is not None}
    if on_spark and on_spark.rank_on_spark(log, given, **options):
        return
    if given["output"] is not None:
        check_output(given["output"], log)
    with Progress(quiet, f"reading {log}"):
        reading = read_given_log(
            log, given, given["cluster"], covariates=given["covariates"], home="left" if given["home"] else None
        )
    told = [f"skipped: {reading.report()}"] if reading.rejects else []
    prefs = reading.preferences.pool() if given["pool"] else reading.preferences
    if not quiet:
        told.append(f"{log}: {prefs.facts}")
    if sys.stderr.isatty():  # elsewhere an error should be the only line
        tell(told)
    with Progress(quiet, "ranking"):
        board = rank(
            prefs,
            given["structure"],
            interval=given["interval"],
            level=given["level"],
            seed=given["seed"],
            replicates=given["replicates"],
            quasi=given["quasi"],
            across_components=given["across_components"],
            **options,
        )
    tell(told)
    if given["output"] is not None:
        with Progress(quiet, f"writing {given['output']}"):
            write(board.to_arrow(), given["output"])
        if not quiet:
            say("wrote", f"wrote {given['output']}: {len(board):,} rows", path=given["output"])
    show(board, rows=given["rows"], quiet=quiet, table=given["output"] is None or sys.stdout.isatty())


def _on_spark(given: Given) -> Any:
    """Return what ranks on the executors of Spark, where that is asked for and each query is ranked by itself."""
    if given["engine"] != "spark" or given["pool"]:
        return None
    from concordant.apps.commands import ranking_spark

    if given["output"] is not None and ranking_spark.is_folder(given["output"]):
        ranking_spark.check_folder(given["output"])
    return ranking_spark

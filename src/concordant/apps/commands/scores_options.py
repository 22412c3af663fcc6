"""Options of ``concordant scores``."""

from __future__ import annotations

from typing import Literal

from concordant.apps.commands.given import argument, flag, option
from concordant.apps.commands.shared_options import ONE, SEED, TABLE, TextOptions


class ScoresOptions(TextOptions):
    """Rank systems by their scores on tasks: who may be the best, tiers, and which differences are more than chance.

    FILE has rows of system, task, score (and trial, weight, cluster), or a column for each task (or system); CSV, TSV,
    JSON, Parquet, Arrow, file.duckdb::table. Columns are known by their usual names. Missing scores are empty, - or
    n/a: systems are compared on the tasks that they share. See docs/scores.md.

    \b
    Examples:
      concordant scores leaderboard.csv
      concordant scores results.parquet --task dataset --cluster family --pairs pairs.csv
      concordant scores perplexity.csv --lower-is-better --by win-rate --plot picture.svg
    """

    file: str = argument()
    system: str | None = option("C", "Column of the system.")
    task: str | None = option("C", "Column of the task.")
    score: str | None = option("C", "Column of the score.")
    trial: str | None = option("C", "Column of the trial, of which a system may have several on a task.")
    weight: str | None = option("C", "Column of the weight of a task.")
    cluster: str | None = option("C", "Column of what tasks belong to that are alike: a source, a document, a family.")
    metric: str | None = option("M", "The metric to rank by, where rows have several.")
    layout: Literal["long", "systems-by-tasks", "tasks-by-systems"] | None = option(
        None, "A row is a score; or a system, and columns are tasks; or a task, and columns are systems."
    )
    tasks: str | None = option(
        "A,B,…", "Columns to read, where columns are tasks (or systems); default: those of numbers but averages, ranks."
    )
    lower_is_better: bool | None = option(
        None,
        "The lowest score is the best, or the highest; default: the highest, but where names say loss, error, WER and "
        "the like the lowest, and a note says so.",
        "--lower-is-better/--higher-is-better",
    )
    lower: tuple[str, ...] = option(
        "TASK", "A task of which the lowest score is the best (again for more).", default=()
    )
    by: Literal["mean", "median", "win-rate", "borda", "bradley-terry"] = option(
        None, "How the scores of a system become one number.", default="mean"
    )
    level: float = option(None, "Confidence of intervals, ranks, tiers.", default=0.95)
    top: int = option("N", "Mark which systems may be among the first N.", default=1, type=ONE)
    resamples: int = option("N", "Draws for all differences at once.", default=5000)
    seed: int = option(None, SEED, default=0)
    output: str | None = option("F", f"{TABLE}; .json has everything but the pairs.", "-o")
    pairs: str | None = option(
        "F", "Write all pairs to F: difference, errors, p-values of t, sign and signed-rank tests."
    )
    averages: str | None = option("F", "Write every way to average, and the ranks by each, to F.")
    plot: str | None = option("F", "Draw a critical-difference picture: .svg.")
    nemenyi: bool = flag("Of --plot: mean ranks with Nemenyi's critical difference.")
    rows: int | None = option(None, "Rows of the table on a terminal.", type=ONE, show_default="40")

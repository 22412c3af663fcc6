"""Options of ``concordant compare`` for two boards."""

from __future__ import annotations

from typing import Literal

from concordant.apps.commands.given import Options, argument, flag, option


class BoardOptions(Options):
    """Two boards: two logs, or two parts of one."""

    new: str | None = argument(required=False, metavar="[NEW]")
    by: str | None = option("C", "Compare two parts of LOG: judgments with two values of this column.")
    values: tuple[str, str] | None = option("OLD NEW", "The two values of --by.", nargs=2, type=str)
    since: str | None = option(
        "V", "In the place of --values: judgments with values of --by below V are the old part (dates, numbers, texts)."
    )
    shared: Literal["auto", "none", "common", "clusters"] = option(
        None,
        "Votes that both logs hold, counted once: all of one that the other holds, too (a log that grew), else none; "
        "none, and equal --cluster are others; whatever stands in both; or none, and equal --cluster are the same, as "
        "of two parts of one log (--by).",
        default="auto",
    )
    against: str | None = option(
        "DAY", "Of a store with --as-of: the board of that day (old) with the board of this one (new).", "--with"
    )
    fail_if_top_changes: bool = flag(
        "Exit with status 1 if the first place changed beyond its intervals: who was first cannot be on the new board."
    )
    fail_if_worse: tuple[str, ...] = option(
        "ITEM",
        "Exit with status 1 if this item is worse on the new board (again for more; Holm's p-value among them is below "
        "1 - level).",
        default=(),
    )

"""Options of ``concordant compare`` for two boards."""

from __future__ import annotations

from typing import Literal

from concordant.apps.commands.given import Options, argument, option


class BoardOptions(Options):
    """Two boards: two logs, or two parts of one."""

    new: str | None = argument(required=False, metavar="[NEW]")
    by: str | None = option("C", "Compare two parts of LOG: judgments with two values of this column.")
    values: tuple[str, str] | None = option("OLD NEW", "The two values of --by.", nargs=2, type=str)
    since: str | None = option(
        "V", "In the place of --values: judgments with values of --by below V are the old part (dates, numbers, texts)."
    )
    shared: Literal["auto", "none", "common"] = option(
        None,
        "Votes that both logs hold, counted once: all of one that the other holds, too (a log that grew), else none; "
        "none; or whatever stands in both.",
        default="auto",
    )
    fail_if_worse: tuple[str, ...] = option(
        "ITEM",
        "Exit with status 1 if this item is worse on the new board (again for more; Holm's p-value among them is below "
        "1 - level).",
        default=(),
    )

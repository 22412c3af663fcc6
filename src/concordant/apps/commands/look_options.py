"""Options of ``concordant look``."""

from __future__ import annotations

import click

from concordant.apps.commands.given import argument, flag, option
from concordant.apps.commands.shared_options import ONE, TABLE, LogOptions, TableOptions


class LookOptions(TableOptions, LogOptions):
    """May the first place be named, while votes still come in? Look as often as you like, and stop when it is settled.

    The 95% of other intervals is that of one look. Here it is the chance that nothing wrong is said at any look,
    whatever pairs were asked and however they were chosen. Says which items may still be the first, and on which pairs
    the next votes settle it soonest.

    LOG has votes between two items (ties are halves), all of them so far. See docs/looking.md.

    \b
    Examples:
      concordant look votes.csv
      concordant look votes.csv --top 3 --ask 500 -o look.json
      concordant look votes.csv --ranks
      concordant look votes.csv --direct
    """

    log: str = argument()
    top: int = option("K", "Settle the first K places, as a set.", default=1, type=ONE)
    ranks: bool = flag("Instead the ranks that the votes leave open, of all items together.")
    direct: bool = flag(
        "Only the votes between two items say which is better: needs no model, but votes on the pairs that matter."
    )
    ask: int = option("N", "Share out the next N votes of each query; 0: do not.", default=100, type=click.IntRange(0))
    level: float = option(None, "Probability that nothing wrong is said at any look.", default=0.95)
    output: str | None = option("F", f"{TABLE}; .json has everything.", "-o")
    rows: int = option(None, "Rows of the table on a terminal.", default=20, type=ONE)

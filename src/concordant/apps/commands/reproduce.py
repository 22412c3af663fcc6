"""``concordant reproduce``: options; the work is in ``reproducing``."""

from __future__ import annotations

from typing import Any

import click

from concordant.apps.commands.given import Given, command
from concordant.apps.commands.idle import RULES
from concordant.apps.commands.progress import progress_options

__all__ = ["reproduce"]


@command()
@click.argument("name", required=False)
@click.option("--data", metavar="DIR", help="Folder of the data sets (ml-100k, mslr, mq2008, "
              "cifar-10-batches-bin, each in its own folder), or of the one that is needed; full MSLR-WEB10K too. "
              "Default: data, ../shared/data.")  # fmt: skip
@click.option("--quick", is_flag=True, help="Fewer runs on less data: seconds instead of minutes.")
@click.option("--device", default="cpu", show_default=True, metavar="D", help="Where to compute: abstention on "
              "CIFAR-10 can use cuda; the others run on the cpu.")  # fmt: skip
@click.option("--output", "-o", default="reproduction-output", show_default=True, metavar="DIR",
              help="Folder for the tables and figures.")  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="Makes every output reproducible.")
@progress_options
def reproduce(name: str | None, **options: Any) -> None:
    """Run an experiment of the papers again and set its numbers beside the published ones.

    NAME is one of: table1 (ICML Table 1, MovieLens-100K), fig2, fig3, fig4 (Annals of Statistics 2013, Figures 2 to 4,
    MSLR and MQ2008), images (one ranker per query), consistency (risk as judgments grow), abstention (Ranking with
    Abstention 2023, Table 1: digits, and CIFAR-10 with --data DIR, which keeps its state in the output folder and goes
    on from it). Without NAME all are run for which the data are there.

    Each writes NAME.csv and further tables, NAME.md (the table with the paper's values and what agrees), NAME.svg and
    NAME.png; figures need the extra concordant[figures].

    \b
    Examples:
      concordant reproduce table1 --quick
      concordant reproduce fig3 --data MSLR-WEB10K --output figures
      concordant reproduce abstention --data cifar-10-batches-bin --device cuda
    """
    from concordant.apps.commands.reproducing import run_reproduce

    run_reproduce(name, Given.of(options, RULES))

"""What can be said to the commands that make their own data."""

from __future__ import annotations

from concordant.apps.commands.given import Options, argument, flag, option
from concordant.apps.commands.shared_options import PHIS, SEED


class ReproduceOptions(Options):
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

    name: str | None = argument(required=False)
    data: str | None = option(
        "DIR",
        "Folder of the data sets (ml-100k, mslr, mq2008, cifar-10-batches-bin, each in its own folder), or of the one "
        "that is needed; full MSLR-WEB10K too. Default: data, ../shared/data.",
    )
    quick: bool = flag("Fewer runs on less data: seconds instead of minutes.")
    device: str = option(
        "D", "Where to compute: abstention on CIFAR-10 can use cuda; the others run on the cpu.", default="cpu"
    )
    output: str = option("DIR", "Folder for the tables and figures.", "-o", default="reproduction-output")
    seed: int = option(None, SEED, default=0)


class CounterexampleOptions(Options):
    """Find votes that the surrogate NAME, with any amount of data, ranks wrongly, and write them as a log.

    NAME is a surrogate that reads preferences, as fit --loss lists them, or a counterexample of the papers: theorem-2,
    theorem-3, orderings. Printed are the votes, the order that contradicts
    the fewest of them, what every surrogate makes of them, and what that costs.

    votes.csv is a log for concordant rank and fit, items.csv has features for fit with which a linear scorer can give
    every item any score, and right.csv has the right order as labels for concordant evaluate.

    \b
    Examples:
      concordant counterexample ranknet -o ranknet
      concordant counterexample ranksvm --items 4 --within acyclic
      concordant counterexample theorem-3 -o theorem-3
    """

    name: str = argument()
    phi: str | None = option("P", f"Margin function: {PHIS}.")
    items: int | None = option("M", "Number of items, 2 to 6 (default 3).")
    within: str | None = option("C", "Populations to search: low-noise (default), acyclic or any.")
    votes: int | None = option("N", "Number of votes (default 1000; more where they are needed).")
    budget: int | None = option("N", "Linear programmes to solve in the search (default 2000).")
    output: str | None = option("DIR", "Folder for votes.csv, items.csv and right.csv.", "-o")
    seed: int | None = option("S", "Makes a search that cannot try all scores reproducible (default 0).")

"""What can be said to ``concordant report``."""

from __future__ import annotations

from typing import Literal

from concordant.apps.commands.given import flag, option
from concordant.apps.commands.shared_options import (
    APART,
    METHODS,
    NONE,
    ONE,
    PICKLE,
    ChosenFeatures,
    Said,
    SidedLog,
    logs,
)


class ReportOptions(ChosenFeatures, SidedLog):
    """Write one page to look at: what LOG says, how sure that is, and what to ask next.

    The page holds everything it needs (no network): a verdict and tiers, the ranking with intervals (with and without
    --covariate and --home), queries side by side, who beats whom, the difference graph with its cycles, the audit in
    words, how far those who judged agree, and which pairs to ask next; with --features or --model also the scorer, its
    risk against k, whether it keeps what people agree on, and when it should rather decline to order two items. See
    docs/report.md.

    \b
    Examples:
      concordant report votes.csv -o report.html
      concordant report votes.csv --query prompt --cluster worker -o report.html
      concordant report votes.csv --features answers.csv --model model -o report.html
      concordant report votes.csv --cluster worker --scores rewards.csv -o report.html
    """

    log: str = logs()
    output: str = option("F", "The page to write: .html.", "-o", required=True)
    group: str | None = option("C", "Column of who judged, for the agreement of groups (default: --cluster).")
    model_judge: tuple[str, ...] = option(
        "FILE",
        "What a judge model decided, of all that people decided in LOG and more: people, both, and how far the model "
        "is off, side by side (again for more).",
        default=(),
    )
    match: tuple[str, ...] = option(
        "C", "With --model-judge: as of concordant judges, column that names each comparison in both files.", default=()
    )
    time: str | None = option(
        "C", "Column of when each comparison was made: the page shows how abilities and ranks move."
    )
    features: str | None = option("F", "Features of the items: a scorer is fitted to them, and shown.", "-f")
    model: str | None = option("DIR", "A model that concordant fit wrote: shown in the place of that scorer.", "-m")
    scores: str | None = option(
        "F", "Scores of the items by another scorer, such as a reward model: does it keep what people agree on?"
    )
    unsafe_load_pickle: bool = flag(PICKLE)
    structure: str = option("S", "As of concordant rank.", default="bradley-terry")
    prior: float | Literal["auto"] | None = option(
        "V", "As of concordant rank.", type=Said("auto or a number of at least 0", float, "auto")
    )
    ties: Literal["half", "any-order", "davidson", "cumulative"] | None = option(None, "As of concordant rank.")
    interval: str = option("METHOD", METHODS, default="auto")
    replicates: int = option(None, "Bootstrap replicates of the intervals.", default=1000, type=ONE)
    level: float = option(None, "Confidence level of the intervals.", default=0.95)
    min_judgments: int = option("N", APART, default=0, type=NONE, show_default=False)
    ask: int = option("N", "Pairs to ask next, a query.", default=10, type=NONE)
    audit: bool = option(
        None, "Without the audit a large log takes less time.", "--audit/--no-audit", default=True, show_default=False
    )
    title: str | None = option("TEXT", "What stands above the page; default: the name of LOG.")
    seed: int = option(None, "Makes the page reproducible.", default=0)

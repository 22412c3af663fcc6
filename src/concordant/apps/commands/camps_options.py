"""Options of ``concordant camps``."""

from __future__ import annotations

from typing import Literal

import click

from concordant.apps.commands.given import argument, option
from concordant.apps.commands.shared_options import ONE, ChosenFeatures, LogOptions, Said, TextOptions, positive


def _whole(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


class CampsOptions(TextOptions, LogOptions, ChosenFeatures):
    """Do those who judged LOG fall into camps that rank differently? As many as held-out votes support, or one.

    Each annotator belongs to a camp, each camp has a ranking of its own (or, with --features, a linear scorer of its
    own). What comes out: the camps' shares, their rankings, who is probably in which, and how well one, two, three …
    camps foretell votes that they have not seen. Where more camps foretell them no better than chance would have it,
    there is one camp, and that is said. See docs/annotators.md.

    \b
    Examples:
      concordant camps votes.csv --judge worker
      concordant camps votes.csv --judge worker --number 2 --members members.csv -o camps.csv
      concordant camps votes.csv --judge worker --query prompt --features answers.csv -o camps.json --model camps
    """

    log: str = argument()
    judge: str | None = option(
        "C", "Column of who judged (default: the one that is called so); --cluster is the same.", "--judge", "--cluster"
    )
    number: int | Literal["auto"] = option(
        "N",
        "How many camps; auto: as many as held-out votes support.",
        default="auto",
        type=Said("auto or a number of at least 1", _whole, "auto"),
    )
    most: int = option("N", "Camps that are tried.", default=4, type=ONE)
    prior: float | Literal["auto"] = option(
        "V",
        "Precision of the normal prior on scores (with --features on coefficients); auto: by the held-out votes.",
        default="auto",
        type=Said("auto or a positive number", positive, "auto"),
    )
    folds: int = option("N", "Parts that votes are dealt into to be held out.", default=5, type=click.IntRange(min=2))
    starts: int = option("N", "Starts of the search, which may end at a local optimum.", default=10, type=ONE)
    output: str | None = option(
        "F",
        "Write to F: .json has everything; .csv, .tsv, .parquet, .arrow, .jsonl, .md the rankings of the camps.",
        "-o",
    )
    model: str | None = option(
        "DIR", "With --features: keep the scorers of the camps in DIR, for concordant score and serve.", "-m"
    )
    members: str | None = option("F", "Write who is in which camp, and how probably, to F.")
    seed: int = option(None, "Of what is held out and where searches start.", default=0)

"""Options of ``concordant judges``."""

from __future__ import annotations

import click

from concordant.apps.commands.given import argument, flag, option
from concordant.apps.commands.shared_options import ONE, LogOptions, TableOptions


class JudgesOptions(TableOptions, LogOptions):
    """Who of those who judged LOG is reliable, who votes by a coin, who prefers what stands first or is longer?

    A row for each judge: reliability (1: a typical judge, 0: a coin) with its interval, the probability of voting by a
    coin, the weight that its votes deserve, how often it prefers what stands first of two equally good answers (and
    the longer one, with --length), and the share of the other votes on the same pair that say the same. How far all
    agree is Krippendorff's alpha. Votes agree where they are on the same pair of the same prompt (query), whatever
    --pool says: it decides whether all prompts have one scale and one ranking, as they do where items recur. --ranking
    writes the ranking of the votes weighted so.

    With --model-judge FILE people and a judge model are put together (prediction-powered inference): people decided
    some comparisons, the model all. The scores are what people say, never less sure than by people alone; a row for
    each item shows them, those of people alone, and how far the judge model is off. With ratings the scores are means.
    See docs/judges.md.

    \b
    Examples:
      concordant judges votes.csv --judge worker
      concordant judges votes.csv --judge worker --length answer_a answer_b -o judges.csv --ranking ranking.csv
      concordant judges people.csv --model-judge gpt-4.jsonl --match question_id
    """

    log: str = argument()
    judge: str | None = option("C", "Column of who judged (default: the one that is called so).")
    length: tuple[str, str] | None = option(
        "A B", "Columns of the texts of the first and the second side, or of their lengths.", nargs=2, type=str
    )
    covariates: tuple[str, ...] = option(
        "C", "Numeric column, left minus right, that judges may go by (again for more).", "--covariate", default=()
    )
    ranking: str | None = option("F", "Write the ranking by the votes, weighted as their judges are reliable, to F.")
    per_vote: str | None = option("F", "Write each vote, how many others say the same, and its weight to F.")
    model_judge: str | None = option("FILE", "What a judge model decided: all that people decided, and more.")
    match: tuple[str, ...] = option(
        "C",
        "With --model-judge: column that names each comparison in both files (again where it takes several; default: "
        "one called id, num, question_id and the like).",
        default=(),
    )
    these: bool = flag(
        "With --model-judge: intervals of what people would say of these comparisons; else of new ones like these, too."
    )
    level: float = option(
        None,
        "Confidence level of the intervals.",
        default=0.95,
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
    )
    replicates: int = option(None, "Bootstrap replicates of alpha.", default=1000, type=ONE)
    seed: int = option(None, "Of the bootstrap.", default=0)

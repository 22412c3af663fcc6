"""Options of ``concordant tree``."""

from __future__ import annotations

from typing import Literal

from concordant.apps.commands.given import argument, option
from concordant.apps.commands.shared_options import ONE, ClusteredLog, TextOptions


class TreeOptions(TextOptions, ClusteredLog):
    """For whom does the ranking of LOG differ? Divide its judgments by properties of judges or prompts.

    Where the scores change with a column beyond chance (--alpha, adjusted for the number of columns), the judgments are
    cut in two, and each part is looked at in the same way; each group that is left has its own ranking. Name who judged
    and what was asked (--cluster): a column that is the same for all judgments of a person is tested by the number of
    people, not by that of the judgments. See docs/trees.md.

    \b
    Examples:
      concordant tree votes.csv --by language --by age --cluster worker
      concordant tree votes.csv --by topic --cluster worker --cluster prompt --picture tree.svg -o tree.json
    """

    log: str = argument()
    by: tuple[str, ...] = option("C", "Column that may divide the judgments (again for more).", required=True)
    names: tuple[str, ...] = option("C", "Of --by: its numbers are names, such as codes of countries.", default=())
    alpha: float = option("P", "Divide where the smallest adjusted p-value is below.", default=0.05)
    min_judgments: int | None = option("N", "Judgments of a group, at least (default: ten for each item).", type=ONE)
    max_depth: int = option("N", "Divide a judgment off so often, at most.", default=5, type=ONE)
    structure: Literal["bradley-terry", "plackett-luce"] = option(
        None, "The model whose scores are tested.", default="bradley-terry"
    )
    ties: Literal["half", "any-order", "davidson", "cumulative"] | None = option(None, "As of concordant rank.")
    prior: float | None = option("V", "Of the rankings of the groups, as of concordant rank (the tests have none).")
    output: str | None = option(
        "F",
        "Write to F: .json has everything; .csv, .tsv, .parquet, .arrow, .jsonl, .md the rankings of the groups.",
        "-o",
    )
    picture: str | None = option("F", "Draw the tree with the first items of each group: .svg.")
    seed: int = option(None, "Of the permutations by which a column is tested where few judged.", default=0)

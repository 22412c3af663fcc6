"""Options of ``concordant pairs``."""

from __future__ import annotations

from typing import Literal

from concordant.apps.commands.given import argument, flag, option
from concordant.apps.commands.shared_options import LogOptions


class PairsOptions(LogOptions):
    """Write the pairs of answers to train a reward model on, opposite votes of all annotators cancelled.

    Each line has prompt, chosen, rejected, weight (how many more votes one has than the other) and votes (on the two).
    The loss of all votes is the sum of weight times the loss of a pair, in any batches. The items of LOG are answers:
    texts, conversations (lists of messages, kept as such), or names whose texts --texts has. See docs/rewards.md.

    \b
    Examples:
      concordant pairs votes.jsonl -o pairs.jsonl
      concordant pairs votes.csv --query prompt --texts answers.jsonl --prompts prompts.jsonl -o pairs.parquet
      concordant pairs held-out.jsonl --level -o evaluate.jsonl
    """

    absent = frozenset({"pool", "clicks", "master"})
    log: str = argument()
    engine: Literal["duckdb", "memory"] | None = option(None, "Default: duckdb.")
    output: str = option("F", "Write to F: .jsonl, .json, .parquet, .arrow or .feather.", "-o", required=True)
    texts: str | None = option("F", "Texts of the answers: a table of item, prompt (if it matters) and text.")
    prompts: str | None = option("F", "Texts of the prompts: a table of query and text.")
    level: bool = flag("Keep pairs whose votes cancel, with weight 0, as for an evaluation.")

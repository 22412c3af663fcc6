"""Options of ``concordant axioms``."""

from __future__ import annotations

import click

from concordant.apps.commands.given import argument, flag, option
from concordant.apps.commands.shared_options import ONE, PICKLE, ClusteredLog, FeatureOptions, TableOptions


class AxiomsOptions(TableOptions, FeatureOptions, ClusteredLog):
    """Does a scorer keep what the people of LOG agree on?

    The scorer is SCORES, a table with columns item, score (and query), as concordant rank and concordant score write
    it, or a model that concordant fit wrote, with the --features of the items. Said is how often it turns round pairs
    on which all agree, and pairs that a majority decides; whether it puts first who beats everybody; whether it parts
    what everybody treats alike; how much of that is noise; and, with --features, how little the best linear scorer of
    these features would break. A model is also fitted again, to see whether its order hangs on an item entered twice or
    on how the people are divided.

    --cluster names who judged: people, not votes, agree. See docs/axioms.md.

    \b
    Examples:
      concordant axioms votes.csv scores.csv --cluster worker
      concordant axioms votes.csv model --features items.csv --cluster worker -o axioms.json
    """

    log: str = argument()
    scorer: str = argument(metavar="SCORES")
    least: int = option("N", "People of a pair that can be unanimous, at least.", default=2, type=ONE)
    refits: int = option(
        "N", "Of a model: items entered twice, and divisions of the people, each fitted again; 0: none.", default=5,
        type=click.IntRange(0),
    )  # fmt: skip
    worst: int = option("N", "Cases of each axiom that are kept, the surest first.", default=10, type=click.IntRange(0))
    cases: bool = flag("Instead of the table of axioms that of the surest cases.")
    level: float = option(
        None, "Of the interval of real violations, and of what is sure.", default=0.95,
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
    )  # fmt: skip
    score: str | None = option("C", "Column of SCORES with the score.")
    seed: int = option(None, "Of the divisions of the people.", default=0)
    unsafe_load_pickle: bool = flag(PICKLE)
    output: str | None = option("F", "Write the table to F; .json has everything.", "-o")

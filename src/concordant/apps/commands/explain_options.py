"""What can be said to ``concordant explain``."""

from __future__ import annotations

from typing import Literal

from concordant.apps.commands.given import argument, option
from concordant.apps.commands.shared_options import TABLE, ChosenFeatures, Said, SidedLog, TableOptions, positive


class ExplainOptions(TableOptions, SidedLog, ChosenFeatures):
    """Say why items win: coefficients of their properties, with standard errors, intervals and p-values.

    The ability of an item is a sum of its properties (the numeric columns of --features), each times a coefficient, and
    an effect of its own: a random one, whose spread is estimated, so that errors count items and not only judgments.
    LOG holds comparisons, read as by concordant rank; --home and --covariate get coefficients, too.

    \b
    Examples:
      concordant explain votes.csv --features models.csv
      concordant explain votes.csv -f models.csv --feature-columns length,price --cluster worker
      concordant explain games.csv -f teams.csv --home -o coefficients.csv --abilities teams-explained.csv
    """

    log: str = argument()
    effects: Literal["random", "none"] = option(
        None, "Effects of items beside their properties; none takes the properties for all there is.", default="random"
    )
    spread: float | None = option(
        "V", "Standard deviation of the random effects; default: by the data.", type=Said("a positive number", positive)
    )
    level: float = option(None, "Confidence level of the intervals.", default=0.95)
    abilities: str | None = option("F", f"Write each item's ability, explained part and effect to F: {TABLE.lower()}.")

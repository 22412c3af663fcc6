"""One query of comparisons that no task can hold, its fit with coefficients: divided by who made them or by their rows.

Judgments of items that the data do not limit on both sides, or that have fewer than ten wins or losses, come to the
driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from concordant.apps.spark.clustered import ByClusters, Middle
from concordant.apps.spark.coefficients import WithCoefficients
from concordant.apps.spark.learning_held import changed
from concordant.apps.spark.redrawn import Again
from concordant.apps.spark.splitting import Divided, alike
from concordant.apps.spark.valued_pairs import (
    Touching,
    ValuedPairs,
    facts_of_share,
    outcomes_of,
    seen_outcomes,
)
from concordant.errors import counted
from concordant.preferences.counted import recounted
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Comparisons, Preferences
from concordant.progress import stage
from concordant.ranking.covariance import Meat
from concordant.ranking.few_judgments import FEW
from concordant.ranking.rank import Ranking
from concordant.ranking.scores import (
    Scores,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class OfComparisons(WithCoefficients):
    """The same of comparisons, divided by who made them or by their rows."""

    by: ByClusters = field(kw_only=True)
    """The same judgments, with who made them."""

    @classmethod
    def of(cls, by: ByClusters, structure: Any, options: Mapping[str, Any], names: tuple[str, ...]) -> Self | None:
        """Learn what connects the items, and what there is of outcomes; None without judgments.

        ``names``: of the covariates that are used.
        """
        names, ties, seen = tuple(sorted(names)), options.get("ties", "half"), None
        if ties == "cumulative":
            seen = seen_outcomes(by.sums(outcomes_of)["outcomes"])
        making = partial(ValuedPairs.of, names=names, seen=seen)
        shares = Divided(changed(by.frame, making), by.shares, by.tasks, named=by.named)
        try:
            if not shares.look():
                return None
            facts = shares.sums(facts_of_share)
        except BaseException:
            shares.forget()
            raise
        again = Again.of(by, shares) if options.get("interval") == "bootstrap" else None
        return cls(shares, structure, options, again=again, by=by, names=names, ties=ties, facts=facts, seen=seen)

    def said(self, board: Ranking) -> list[str]:
        """How a ranking was made, and its coefficients."""
        by, shares = self.by, self.shares
        found = [alike(by.columns, by.numbers)] if board.interval == "sandwich" and by.columns else []
        of, number = f" of {counted(by.clusters, 'clusters')}" if by.clusters else "", by.passes + shares.passes
        return [
            *found,
            *self._said(board),
            f"{shares.what}: {counted(shares.judgments, 'judgments')}{of}, divided among tasks by "
            f"{'who made them' if by.columns else 'their rows'} ({by.shares:,} shares, {number:,} passes); whether the "
            "model fits was not looked at",
        ]

    def _held(self, some: Flags) -> Preferences | None:
        by, way = self.by, 0
        if len(by.columns) > 1:
            way = int(np.argmin(by.numbers))
        with stage("judgments of few or one-sided items"):
            found: Preferences | None = by.sums(Touching(self.shares.items, some, way))["held"].prefs
        return found

    def _round(self, rest: Flags, found: Preferences) -> Preferences:
        shares = self.shares
        pairs = np.repeat(self._cycle(rest), FEW, axis=0)  # so often that these are no items of few judgments
        size = len(pairs)
        if not size or not isinstance(found, Comparisons):
            return Preferences.empty()
        z = None if found.covariates is None else np.zeros((size, found.covariates.shape[1]))
        when = None if found.time is None else np.zeros(size)
        whose = None if found.cluster is None else np.zeros(size, np.int32)
        part = replace(
            found, items=shares.items, queries=shares.query, winner=pairs[:, 0].astype(np.int32),
            loser=pairs[:, 1].astype(np.int32), covariates=z, time=when, cluster=whose, declared=found.declared[:0],
            start=np.zeros(1, np.int64), count=np.zeros(0, np.int32), tie=None, weight=None, share=None,
        )  # fmt: skip
        return recounted(part, np.zeros(size, np.int32), None)

    def _nothing(self) -> Preferences:
        none = np.zeros(0, np.int32)
        return Comparisons(winner=none, loser=none)

    def _meat(self, batch: Batch, scores: Scores, names: tuple[str, ...]) -> Meat:
        if self.by.columns:
            return self.by.meat(batch, scores, names)
        items, _ = Labels.encode(batch.prefs.items.take(batch.item))
        with stage("what judgments add up to"):
            known = replace(scores, components=np.zeros(0, np.int32))
            found = self.by.sums(Middle(items, known, names, ((),), self.seen))
        return replace(Meat.of_sums(found["middle", ()], found["cells", ()]), clustered=False)

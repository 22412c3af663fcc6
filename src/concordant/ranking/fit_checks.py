"""Whether the model of a ranking fits its queries: tests of all of them, and the pairs that contradict the scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.progress import stage
from concordant.ranking.edge_tests import family_wise
from concordant.ranking.graded_fit import graded_lack_of_fit
from concordant.ranking.intervals import Bounds
from concordant.ranking.lack_of_fit import NOISE, Contradictions, contradictions, lack_of_fit, misfit_notes
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Check:
    """Whether the model fits some queries."""

    p_value: Floats
    against: Contradictions
    items: tuple[NDArray[np.int64], NDArray[np.int64]]
    """Those that the majorities prefer, and those that the scores do."""
    excluded: NDArray[np.bool_]
    """Whether the rank ranges leave no place for what the majority says."""


def check_of(batch: Batch, scores: Scores, limits: Bounds) -> Check:
    with stage("fit of the model"):
        graded = scores.options.get("ties") == "cumulative"
        against = contradictions(batch, 0.0 * scores.value if graded else scores.value)  # majorities are of wins
        behind, ahead = against.winner, against.loser
        excluded = (limits.rank_upper[ahead] > 0) & (limits.rank_upper[ahead] < limits.rank_lower[behind])
        items = (batch.item[behind].astype(np.int64), batch.item[ahead].astype(np.int64))
        p_value = graded_lack_of_fit(batch, scores) if graded else lack_of_fit(batch, scores)
        return Check(p_value, against, items, excluded)


def checked(prefs: Preferences, checks: Sequence[Check]) -> tuple[Floats | None, pa.Table | None, tuple[Note, ...]]:
    """p-values of the queries, the contradicted pairs of all of them together, and what is said of both."""
    if not checks:
        return None, None, ()
    p_value = np.concatenate([check.p_value for check in checks])
    raw = np.concatenate([check.against.p_value for check in checks])
    adjusted = family_wise(raw, sum(check.against.tested for check in checks))
    sorter = np.lexsort((np.arange(len(adjusted)), adjusted))
    kept = sorter[adjusted[sorter] <= NOISE]

    def column(values: Callable[[Check], NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([values(check) for check in checks])[kept]

    table = pa.table(
        {
            "query": prefs.queries.take(column(lambda check: check.against.query)),
            "winner": prefs.items.take(column(lambda check: check.items[0])),
            "loser": prefs.items.take(column(lambda check: check.items[1])),
            "wins": column(lambda check: check.against.wins),
            "losses": column(lambda check: check.against.losses),
            "p_value": adjusted[kept],
            "against_ranks": column(lambda check: check.excluded),
        }
    )
    return p_value, table, misfit_notes(p_value, table)

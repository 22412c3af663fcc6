"""How far two groups of judges, or the judges of one group among themselves, agree on the same pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.graphs import Batch
from concordant.preferences import Preferences

__all__ = ["Agreement", "majority_agreement", "within_agreement"]


@dataclass(frozen=True)
class Agreement:
    """The share of comparable cases in which two verdicts were the same, and the number of these cases."""

    share: float
    """NaN when there are no cases."""
    pairs: int


def majority_agreement(one: Preferences, other: Preferences) -> Agreement:
    """Share of the pairs on which the majorities of both prefer an item in which they prefer the same one.

    Pairs are matched by query and labels; a pair whose votes balance in one of them has no majority and is left out.

    >>> people = Preferences.from_comparisons(["a", "a", "b"], ["b", "c", "c"])
    >>> machine = Preferences.from_comparisons(["a", "c"], ["b", "b"])
    >>> majority_agreement(people, machine)
    Agreement(share=0.5, pairs=2)
    """
    signs = [_majorities(prefs) for prefs in (one, other)]
    common = signs[0].keys() & signs[1].keys()
    same = sum(signs[0][pair] == signs[1][pair] for pair in common)
    return Agreement(same / len(common) if common else float("nan"), len(common))


def within_agreement(prefs: Preferences) -> Agreement:
    """Share of all pairs of decided judgments on the same two items that name the same winner.

    With w wins one way and l the other a pair has w·l disagreements and C(w, 2) + C(l, 2) agreements; ties are left
    out.

    >>> within_agreement(Preferences.from_comparisons(["a", "a", "b"], ["b", "b", "a"]))
    Agreement(share=0.3333333333333333, pairs=3)
    """
    graphs = _pairs(prefs).graphs
    wins, losses = graphs.wins, graphs.losses
    agree = float((wins * (wins - 1) + losses * (losses - 1)).sum() / 2)
    cases = agree + float((wins * losses).sum())
    return Agreement(agree / cases if cases else float("nan"), round(cases))


def _pairs(prefs: Preferences) -> Batch:
    if prefs.kind not in ("comparisons", None):
        raise UsageError(f"agreement on pairs needs comparisons, not {prefs.kind}")
    return Batch.whole(prefs)


def _majorities(prefs: Preferences) -> dict[tuple[object, object, object], int]:
    batch = _pairs(prefs)
    graphs = batch.graphs
    decided = np.flatnonzero(graphs.wins != graphs.losses)
    query = prefs.queries.take(batch.query[graphs.graph[decided]]).to_pylist()
    first, second = (_labels(batch, node[decided]) for node in (graphs.first, graphs.second))
    sign = np.sign(graphs.wins[decided] - graphs.losses[decided]).astype(int).tolist()
    return {(q, a, b): s for q, a, b, s in zip(query, first, second, sign, strict=True)}


def _labels(batch: Batch, nodes: NDArray[np.int64]) -> list[object]:
    return list(batch.prefs.items.take(batch.item[nodes]).to_pylist())

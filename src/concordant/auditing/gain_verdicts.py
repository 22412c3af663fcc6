"""Surrogates of scores against NDCG and ERR: the law of a structure's scores, and what the minimisers lose on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from concordant.auditing.gain_laws import ROUNDING, gain_regrets
from concordant.auditing.verdicts import NO, UNKNOWN, YES, SurrogateVerdict
from concordant.errors import UsageError
from concordant.losses.minimise import minimise
from concordant.losses.objective import Relevance
from concordant.losses.surrogates import Chosen
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.structures import Structure
from concordant.ranking.structures import structure as find_structure


@dataclass(frozen=True)
class Law:
    """How the law μ of score vectors is made: the structure's scores of all judgments, or of k-subsets of them."""

    structure: Structure
    order: int | None
    """Judgments aggregated at a time; None: all of them, a point law."""
    subsets: int
    seed: int

    @property
    def chances(self) -> bool:
        """Whether the structure's scores are probabilities."""
        return self.structure.reads == "exposures" or self.structure.reversal == "complement"

    @classmethod
    def of(cls, prefs: Preferences, structure: str | None, order: int | str, subsets: int, seed: int) -> Law:
        """Check what was asked for; without a structure log-odds, or the cascade for selections."""
        name = structure or ("cascade" if prefs.kind == "selections" else "log-odds")
        member = find_structure(name)
        member.check(prefs.kind, {})
        if order == "all":
            return cls(member, None, 1, seed)
        if isinstance(order, bool) or not str(order).isdecimal() or int(order) < 1:
            raise UsageError(f"order must be 'all' or a number of judgments, at least 1, not {order!r}")
        if subsets < 1:
            raise UsageError(f"subsets must be at least 1, not {subsets}")
        return cls(member, int(order), subsets, seed)

    def relevance(self, batch: Batch) -> Relevance:
        """Return the scores of the graphs of a batch of whole queries: a row for each subset."""
        if self.order is None:
            return Relevance.of(self.structure(batch).value, batch.node_start)
        drawn = Batch.subsets(batch.prefs, self.order, self.subsets, seed=self.seed, queries=batch.query)
        scores = self.structure(drawn).value
        last = np.searchsorted(drawn.query, batch.query, side="right") - 1  # queries of few judgments have one subset
        first = np.searchsorted(drawn.query, batch.query)
        rows = []
        for draw in range(self.subsets):
            graph = np.minimum(first + draw, last)
            shift = drawn.node_start[graph] - batch.node_start[:-1]
            rows.append(scores[np.arange(len(batch.item)) + shift[batch.owner]])
        return Relevance.of(np.stack(rows), batch.node_start)


def judge_by_gains(chosen: Chosen, law: Relevance, *, chances: bool) -> SurrogateVerdict:
    """Minimise a surrogate of scores on every law and charge its minimiser with the NDCG or the ERR loss.

    Gains for ERR are chances: the scores themselves where they are ``chances``, else their sigmoid.
    """
    member = chosen.member
    gain = str(member.defaults.get("gain", "2^s"))
    if chosen.target == "err" and not chances:
        gain = "sigmoid"
    found = minimise(member.objective(law, phi=chosen.phi, **({"gain": gain} if "gain" in member.defaults else {})))
    known = found.known
    charged = gain_regrets(law, found.alpha, chosen.target, gain=gain)
    none = np.full(len(charged.loss), -1, np.int64)
    nothing = np.where(known, 0.0, np.nan)
    regret = np.where(charged.regret > ROUNDING, charged.regret, 0.0)
    consistent = np.where(regret > 0, NO, np.where(charged.exact, YES, UNKNOWN))
    return SurrogateVerdict(
        found.status,
        charged.loss + nothing,
        regret + nothing,
        regret + nothing,
        np.where(known, consistent, UNKNOWN).astype(np.int8),
        np.zeros(len(none), np.int64),
        none,
        none,
        found.alpha,
    )

"""From judgments to the targets of a ranker: what mean_targets makes of them, informed by the features if wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.learning.features.matrix import Alignment, Matrix
from concordant.learning.rankers.columns import Columns
from concordant.learning.rankers.estimator import known
from concordant.learning.rankers.plans import Plan, Recipe
from concordant.learning.rankers.validation import Training
from concordant.learning.targets.informed import Informed, informed_prior
from concordant.learning.targets.mean_targets import Targets
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences

GROWN = 1.1
"""Judgments, as a multiple of those that something was chosen on, up to which it may be kept as it is."""


@dataclass(frozen=True)
class Choices:
    """What held-out judgments chose in a fit, so that the next one on nearly the same judgments may keep it."""

    kind: str
    """Of the judgments."""
    judgments: int
    """On how many it was chosen."""
    plan: Mapping[str, Any]
    """The row of the plan."""
    ridge: float
    precision: float | None
    """n · ridge of the first pairwise fit, which informs the aggregation; None without one."""
    tau2: float | None
    gate: str | None
    """The linear scorer that the gate took in the place of the usual one."""

    @property
    def row(self) -> dict[str, Any]:
        """The choices as values that JSON keeps."""
        return {**vars(self), "plan": dict(self.plan), "ridge": None if np.isinf(self.ridge) else self.ridge}

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Choices:
        """Return the choices of ``row``."""
        return cls(**{**row, "ridge": np.inf if row["ridge"] is None else row["ridge"]})

    def outgrown(self, prefs: Preferences, tried: Sequence[Plan]) -> str:
        """Say why they cannot be kept for these judgments and plans; empty where they can."""
        judgments = len(prefs)
        if str(prefs.kind) != self.kind:
            return f"they were chosen for {self.kind}, and these are {prefs.kind}"
        if not self.judgments / GROWN <= judgments <= self.judgments * GROWN:
            return f"there were {self.judgments:,} judgments, now there are {judgments:,}"
        return "" if any(plan.row == self.plan for plan in tried) else "other orders are to be tried now"


@dataclass(eq=False)
class TargetMaker:
    """Makes the targets of plans; with ``informed`` after a first fit of pairwise logistic to the same judgments."""

    training: Training
    columns: Columns
    recipe: Recipe
    informed: bool
    tau2: float | str
    precision: float | None = None
    """n · ridge of the first fit, where it was chosen before."""
    prior: Informed | None = None
    """That of all judgments, once it was needed."""
    last: tuple[Preferences, Informed] | None = None
    """That of the part of them it was last asked for."""

    @property
    def facts(self) -> dict[str, Any]:
        """What the prior is."""
        return {} if self.prior is None else {"tau2": float(self.prior.tau2), "prior_ridge": float(self.prior.ridge)}

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader should know of the prior."""
        return () if self.prior is None else self.prior.notes

    def __call__(self, plans: list[Plan], prefs: Preferences) -> list[Targets]:
        """Return the targets of each plan; ``prefs`` has the queries and items of the training rows."""
        return self.recipe.targets(plans, prefs, self.prior_of(prefs).options if self.informed else None)

    def prior_of(self, prefs: Preferences) -> Informed:
        """Return the prior of these judgments; its ridge and τ² are those that all judgments ask for, its θ is not."""
        where = Alignment(self.training.start, self.training.row, np.zeros(0, np.int64))
        whole = self.training.prefs
        if self.prior is None:
            self.prior = informed_prior(
                self._features,
                where,
                whole,
                tau2=self.tau2,
                precision=self.precision,
                weight=self.training.weight,
                seed=self.recipe.seed,
            )
        if prefs is whole:
            return self.prior
        if self.last is None or self.last[0] is not prefs:
            ridge = self.prior.ridge * len(whole) / len(prefs)
            self.last = (
                prefs,
                informed_prior(
                    self._features,
                    where,
                    prefs,
                    ridge=ridge,
                    tau2=self.prior.tau2,
                    weight=self.training.weight,
                    seed=self.recipe.seed,
                ),
            )
        return self.last[1]

    @property
    def _features(self) -> Matrix:
        """What the scorer sees: a missing value is at the mean."""
        seen: Matrix = known(self.columns.matrix)
        return seen

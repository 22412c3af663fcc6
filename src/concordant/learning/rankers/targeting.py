"""From judgments to the targets of a ranker: what mean_targets makes of them, informed by the features if wanted."""

from __future__ import annotations

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


@dataclass(eq=False)
class TargetMaker:
    """Makes the targets of plans; with ``informed`` after a first fit of pairwise logistic to the same judgments."""

    training: Training
    columns: Columns
    recipe: Recipe
    informed: bool
    tau2: float | str
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
                self._features, where, whole, tau2=self.tau2, weight=self.training.weight, seed=self.recipe.seed
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

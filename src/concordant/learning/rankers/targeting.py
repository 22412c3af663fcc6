"""From judgments to the targets of a ranker: what mean_targets makes of them, informed by the features if wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.learning.features.matrix import Alignment, Matrix
from concordant.learning.rankers.columns import Columns
from concordant.learning.rankers.estimator import known
from concordant.learning.rankers.plans import Plan, options_of
from concordant.learning.rankers.validation import Training
from concordant.learning.targets.informed import Informed, informed_prior
from concordant.learning.targets.mean_targets import Targets, mean_targets_of_orders
from concordant.preferences.preferences import Preferences

__all__ = ["TargetMaker"]


@dataclass(eq=False)
class TargetMaker:
    """Makes the targets of plans; with ``informed`` after a first fit of pairwise logistic to the same judgments."""

    training: Training
    columns: Columns
    options: Mapping[str, Any]
    subsets: int
    at: int | None
    seed: int
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
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the prior."""
        return () if self.prior is None else tuple(f"informed: {note}" for note in self.prior.notes)

    def __call__(self, plans: list[Plan], prefs: Preferences) -> list[Targets]:
        """Return the targets of each plan; ``prefs`` has the queries and items of the training rows."""
        options = {**self.options, **(self.prior_of(prefs).options if self.informed else {})}
        found: dict[Plan, Targets] = {}
        alike: dict[tuple[Any, Any, bool], list[Plan]] = {}
        for plan in plans:
            alike.setdefault((plan.structure, plan.gain, plan.normalise), []).append(plan)
        for (structure, gain, normalise), group in alike.items():
            made = mean_targets_of_orders(
                prefs,
                [plan.order for plan in group],
                structure,
                options=options_of(structure, options),
                subsets=self.subsets,
                gain=gain,
                normalise=normalise,
                at=self.at,
                seed=self.seed,
            )
            found.update(zip(group, made, strict=True))
        return [found[plan] for plan in plans]

    def prior_of(self, prefs: Preferences) -> Informed:
        """Return the prior of these judgments; its ridge and τ² are those that all judgments ask for, its θ is not."""
        where = Alignment(self.training.start, self.training.row, np.zeros(0, np.int64))
        whole = self.training.prefs
        assert whole is not None
        if self.prior is None:
            self.prior = informed_prior(
                self._features, where, whole, tau2=self.tau2, weight=self.training.weight, seed=self.seed
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
                    seed=self.seed,
                ),
            )
        return self.last[1]

    @property
    def _features(self) -> Matrix:
        """What the scorer sees: a missing value is at the mean."""
        return known(self.columns.matrix)

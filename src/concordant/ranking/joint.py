"""How the scores of one query vary together: what comparisons, rank statements and predictions are computed from.

From the same curvature, gauge and clusters as the intervals of the ranking, when somebody asks; of a bootstrap the same
replicates are drawn again. The difference of two scores is determined by the data where either item reaches the other
by a chain of wins (they lie in one strong block); of structures without a likelihood, where both were compared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import cg

from concordant.errors import Setting, UsageError
from concordant.preferences.connectivity import Connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.sampling import whole_seed
from concordant.ranking.bootstrap import bootstrap
from concordant.ranking.contrasts import Gauge, held_at
from concordant.ranking.covariance import Meat, covariance
from concordant.ranking.cumulative import Cuts
from concordant.ranking.curvature import Curvature
from concordant.ranking.intervals import IntervalOptions, separated_items, suited
from concordant.ranking.rank_intervals import levels
from concordant.ranking.scores import Scores
from concordant.ranking.separated import Separated
from concordant.ranking.standard_errors import default_method
from concordant.ranking.structures import Structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
WHOLE = 6000
"""Parameters up to which the covariance is a dense matrix; beyond, single differences are solved for."""
SOLVED = 2000
"""Differences of a larger graph that are solved for at a time, one system of equations each."""
DRAWS = 5000
"""Gaussian draws of the largest |t|: a probability of .05 is met to ±.003 (one standard error)."""
SPREAD, ROUNDING = 1e-9, 1e-13
"""A standard error below the first times the scores is rounding; the second is what cancels in a variance."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a ranking was made of, so that more can be asked of it."""

    prefs: Preferences
    options: Mapping[str, Any]
    """Of the structure, as they were given."""
    used: Mapping[str, Any]
    """As the structure used them."""
    wanted: IntervalOptions
    zero: int | None = None
    """Code of the item that the scores are measured against."""
    least: int = 0
    """Judgments below which an item stands apart."""
    how: str = ""
    """All that rows of a query follow from beside its judgments (``unchanged.settings``)."""
    drawn: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    """Of each query: whether the critical value of its rank intervals is drawn."""

    def joint(self, batch: Batch, scores: Scores, member: Structure, links: Connectivity) -> Joint:
        """Return how the scores of a batch of one graph vary together. Errors (UsageError): it has no intervals."""
        wanted, _ = suited(batch, member, self.wanted) if self.wanted.method == "auto" else (self.wanted, ())
        method = wanted.method
        if method == "none" or (member.reads == "exposures" and method != "bootstrap"):
            why = "was ranked without intervals" if method == "none" else "has intervals of single click rates only"
            raise UsageError(
                f"{member.name} {why}, so it is not known how its scores vary together; rank with ",
                Setting("interval", "bootstrap" if member.curvature is None else "auto"),
            )
        if method == "auto":
            method = default_method(batch, scores)
        held = held_at(batch.node_start, links, batch.item, self.zero)
        gauge = Gauge.of(batch.node_start, links) if held is None else held
        law = (batch, scores, member, links, gauge, method, wanted.level, wanted.seed, self.options)
        if method != "bootstrap" and member.curvature is not None:
            return Curved(*law, member.curvature(batch, scores))
        drawn = bootstrap(
            batch, member, replicates=wanted.replicates, seed=wanted.seed, options=self.options, gauge=held
        )
        alone = drawn.always[0] & drawn.always[1]
        return Replicated(*law, np.where(alone, np.nan, drawn.replicates + (scores.value - drawn.scores.value)))


class Varying(ABC):
    """Scores and how they vary together: what statements about ranks ask for, whatever the scores are of."""

    level: float

    @property
    @abstractmethod
    def value(self) -> Floats:
        """The scores."""

    @property
    @abstractmethod
    def group(self) -> Ints:
        """The component of each item, from 0 on."""

    @property
    @abstractmethod
    def compared(self) -> Flags:
        """Which items were compared with another one."""

    @property
    @abstractmethod
    def pair_errors(self) -> Floats:
        """Standard errors of all differences, shape (items, items); inf where not determined and on the diagonal."""

    @property
    @abstractmethod
    def draws(self) -> Floats:
        """How the scores may differ from the truth, shape (draws, items); 0 where no difference is known."""

    separated: Separated | None = None
    """What is known of items that the data limit on one side."""

    @property
    def level_of_differences(self) -> float:
        """The level that differences are compared at: where items are separated these take half of the error."""
        return self.level

    @property
    def normal(self) -> bool:
        """Whether the draws follow a normal or t law."""
        return True

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.value)


@dataclass(frozen=True, eq=False)
class Joint(Varying):
    """The scores of the items of one query and how they vary together."""

    batch: Batch
    scores: Scores
    member: Structure
    links: Connectivity
    gauge: Gauge
    method: str
    level: float
    seed: int
    options: Mapping[str, Any]
    """Of the structure, as they were given."""

    @cached_property
    def separated(self) -> Separated | None:  # type: ignore[override]
        """What is known of items that the data limit on one side, as for the intervals; None where there are none."""
        method = default_method(self.batch, self.scores) if self.method == "bootstrap" else self.method
        used = {name: self.scores.options[name] for name in ("prior",) if name in self.scores.options}
        return separated_items(self.batch, self.member, self.links, {**self.options, **used}, self.gauge, method)

    @property
    def cuts(self) -> Cuts | None:
        """The thresholds between ordered outcomes, where the fit has them."""
        held = {name: float(column[0]) for name, column in self.scores.coefficients.items()}
        return Cuts.of(held) if self.scores.options.get("ties") == "cumulative" else None

    @property
    def value(self) -> Floats:
        """The scores."""
        return self.scores.value

    @property
    def group(self) -> Ints:
        """The component of each item."""
        return self.gauge.group

    @property
    def compared(self) -> Flags:
        """Which items were compared with another one."""
        return self.links.compared

    @property
    def level_of_differences(self) -> float:
        """That of ``levels``."""
        return float(levels(self.batch, self.level, self.separated)[0])

    @property
    def coefficients(self) -> tuple[str, ...]:
        """Names of the coefficients beside the scores."""
        return ()

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the t law of a difference; infinite: the normal law."""
        return np.inf

    @property
    @abstractmethod
    def matrix(self) -> Floats:
        """Covariance of the scores in their gauge, then of the coefficients; NaN where it is not known."""

    @cached_property
    def block(self) -> Ints:
        """Items whose differences the data determine share a number; −1 for one that nobody compared."""
        group = self.links.block if self.member.likelihood else self.gauge.group
        return np.where(self.links.compared, group, -1).astype(np.int64)

    def determined(self, first: Ints, second: Ints) -> Flags:
        """Whether the data limit the differences of these items on both sides."""
        one, other = self.block[first], self.block[second]
        return np.asarray((one == other) & (one >= 0) & (first != second), bool)

    def errors(self, first: Ints, second: Ints) -> Floats:
        """Standard errors of score[first] − score[second]; inf where the data do not determine the difference."""
        known = self.determined(first, second)
        error = np.sqrt(self._squares(first, second, known))
        size = np.maximum(1.0, np.maximum(np.abs(self.value[first]), np.abs(self.value[second])))
        return np.where(known & np.isfinite(error) & (error > SPREAD * size), error, np.inf)

    def _squares(self, first: Ints, second: Ints, known: Flags) -> Floats:
        own = np.diagonal(self.matrix)
        both = own[first] + own[second]
        return np.asarray(np.maximum(both - 2.0 * self.matrix[first, second], 0.0) + ROUNDING * both)

    @cached_property
    def pair_errors(self) -> Floats:
        """Standard errors of all differences, shape (items, items); inf where not determined and on the diagonal."""
        n = self.size
        if n > WHOLE:
            raise UsageError(f"all differences of {n:,} items are too many; at most {WHOLE:,} items are allowed")
        first, second = np.triu_indices(n, 1)
        errors = np.full((n, n), np.inf)
        errors[first, second] = errors[second, first] = self.errors(first, second)
        return errors


@dataclass(frozen=True, eq=False)
class Replicated(Joint):
    """Scores with bootstrap replicates."""

    replicates: Floats
    """Shape (replicates, items)."""

    @property
    def normal(self) -> bool:
        """No: replicates follow the law that they have."""
        return False

    @cached_property
    def matrix(self) -> Floats:
        """Mean square of what the replicates differ from the scores by."""
        moved = self.replicates - self.value
        known = np.isfinite(moved).all(axis=0)
        moved = np.where(known, moved, 0.0)
        matrix = np.asarray(moved.T @ moved / len(moved))
        matrix[~known], matrix[:, ~known] = np.nan, np.nan
        return matrix

    @property
    def draws(self) -> Floats:
        """The replicates less the scores."""
        return np.where(np.isfinite(np.diagonal(self.matrix)), self.replicates - self.value, 0.0)


@dataclass(frozen=True, eq=False)
class Curved(Joint):
    """Scores of a likelihood with its curvature."""

    curvature: Curvature

    @property
    def coefficients(self) -> tuple[str, ...]:
        """Names of the coefficients beside the scores."""
        return tuple(self.curvature.extra_name)

    @cached_property
    def meat(self) -> Meat | None:
        """The middle of the sandwich, where the errors are its."""
        return Meat.of(self.batch, self.curvature) if self.method == "sandwich" else None

    @cached_property
    def silent(self) -> bool:
        """Whether a sandwich has fewer than two judgments (clusters) and with it no spread to go by."""
        return self.meat is not None and bool(self.meat.clusters[0] < 2)

    @property
    def freedom(self) -> float:
        """Clusters − 1 of a sandwich with clusters."""
        return np.inf if self.meat is None else float(self.meat.freedom[0])

    @property
    def parameters(self) -> int:
        """Number of items and coefficients."""
        return self.size + len(self.curvature.extra_owner)

    @cached_property
    def matrix(self) -> Floats:
        """That of ``covariance``."""
        if self.silent:
            return np.full((self.parameters, self.parameters), np.nan)
        return covariance(self.batch, self.curvature, self.gauge, method=self.method, most=WHOLE)

    def _squares(self, first: Ints, second: Ints, known: Flags) -> Floats:
        """Variances of differences; of a graph with a very large covariance one system of equations each."""
        if self.parameters <= WHOLE:
            return super()._squares(first, second, known)
        if known.sum() > SOLVED:
            raise UsageError(
                f"the differences of {self.size:,} items are too many at once; at most {SOLVED:,} pairs are computed "
                f"of a query with more than {WHOLE:,} items"
            )
        held = np.where(np.arange(self.parameters) < self.size, self.curvature.prior, 0.0)
        bread = csr_array(self.curvature.hessian + diags_array(held))
        scale = bread.diagonal()
        before = diags_array(1.0 / np.where(scale > 0, scale, 1.0))
        out = np.full(len(first), np.inf)
        for row in np.flatnonzero(known & (not self.silent)):
            side = np.zeros(self.parameters)
            side[first[row]], side[second[row]] = 1.0, -1.0
            found, left = cg(bread, side, rtol=1e-9, atol=0.0, maxiter=20 * self.parameters, M=before)
            if left == 0:
                out[row] = side @ found if self.meat is None else self.meat.square(found)
        return out

    @cached_property
    def draws(self) -> Floats:
        """Draws (Gaussian, or of the t law) with the covariance of the scores."""
        n, errors = self.size, self.pair_errors
        known = np.asarray(np.isfinite(errors).any(axis=1), bool)
        matrix = np.where(known[:, None] & known & np.isfinite(self.matrix[:n, :n]), self.matrix[:n, :n], 0.0)
        own = np.diagonal(matrix)
        same = self.gauge.group[:, None] == self.gauge.group
        filled = matrix + same * own.max(initial=0.0)  # a shift of the whole component, which no difference sees
        filled[np.diag_indices(n)] += 1e-12 * own + np.where(own > 0, 0.0, 1.0)
        try:
            root = np.linalg.cholesky(filled)
        except np.linalg.LinAlgError:
            values, vectors = np.linalg.eigh(matrix)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
        rng = np.random.default_rng([whole_seed(self.seed) % (1 << 128), n])
        drawn = rng.standard_normal((DRAWS, n)) @ root.T
        if np.isfinite(self.freedom):
            drawn /= np.sqrt(rng.chisquare(self.freedom, DRAWS) / self.freedom)[:, None]
        return np.where(known, drawn, 0.0)

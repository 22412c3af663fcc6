"""How often a ranker errs on the pairs that it orders, for every share of pairs that it may decline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError
from concordant.io.log.disk import check_replaced
from concordant.ranking.shown import canvas, html_table, html_words

Floats = NDArray[np.float64]
ROUNDING = 1e-12
"""Losses that differ by less, relative to the weight of all pairs, are equal."""


@dataclass(frozen=True, eq=False, repr=False)
class RiskCoverage:
    """Held-out pairs, the least sure first: what is declined and what is wrong among the rest, step by step.

    Step 0 declines nothing; step k ≥ 1 declines all pairs whose distance (or score difference, ``by`` = 'risk') is at
    most ``threshold[k]``, the k-th smallest that was seen. A pair counts with its weight (comparisons of the two
    items, wins as strong as they are, a tie half a win each way); one with equal scores is half wrong.

    >>> curve = RiskCoverage.of(np.array([1.0, 2.0]), np.ones(2), np.array([0.5, 0.0]), by="distance")
    >>> curve.coverage.tolist(), curve.risk[:2].tolist(), curve.losses(0.1).tolist()
    ([1.0, 0.5, 0.0], [0.25, 0.0], [0.25, 0.05, 0.1])

    Source: the loss is Mao, Mohri and Zhong (2023), §2.1; the curve El-Yaniv and Wiener (2010).
    """

    by: str
    threshold: Floats
    """NaN at step 0."""
    declined: Floats
    """Weight of the pairs declined."""
    wrong: Floats
    """Weight of the wrong among the pairs that are ordered."""
    mass: float
    """Weight of all pairs."""
    pairs: int
    estimated: Floats | None = None
    """Conditional risk estimated at the threshold, where there is an estimate."""

    @classmethod
    def of(cls, threshold: Floats, mass: Floats, wrong: Floats, *, by: str) -> RiskCoverage:
        """Add up pairs: what each is declined by, its weight and how much of it is wrong.

        Errors (InputError): no pair of positive weight.
        """
        whole = float(mass.sum())
        if not whole > 0:
            raise InputError("no judgment compares two of the items: there is no pair to learn abstention from")
        sorter = np.argsort(threshold, kind="stable")
        step = threshold[sorter]
        last = np.append(step[1:] != step[:-1], True)
        declined = np.cumsum(mass[sorter])[last]
        gone = np.cumsum(wrong[sorter])[last]
        left = np.maximum(gone[-1] - gone, 0.0)
        return cls(
            by,
            np.concatenate(([np.nan], step[last])),
            np.concatenate(([0.0], declined)),
            np.concatenate(([gone[-1]], left)),
            whole,
            len(mass),
        )

    def with_estimates(self, risk: Callable[[Floats], Floats]) -> RiskCoverage:
        """Return the curve of score differences with the risk that is estimated at each; by distance there is none."""
        if self.by == "distance":
            return self
        return replace(self, estimated=np.append(np.nan, risk(self.threshold[1:])))

    def __repr__(self) -> str:
        said = f"{self.pairs:,} pairs, by {self.by}, risk {self.risk[0]:.4f} at coverage 1, AURC {self.aurc:.4f}"
        return f"RiskCoverage({said})"

    @property
    def coverage(self) -> Floats:
        """Share of the pairs that are ordered, 1 … 0."""
        found = 1.0 - self.declined / self.mass
        found[-1] = 0.0
        return np.maximum(found, 0.0)

    @property
    def risk(self) -> Floats:
        """Share of the wrong among the pairs ordered; NaN at coverage 0."""
        kept = np.maximum(self.mass - self.declined, 0.0)
        kept[-1] = 0.0
        found = np.full(len(kept), np.nan)
        np.divide(self.wrong, kept, out=found, where=kept > 0)
        return found

    def losses(self, cost: float) -> Floats:
        """Return the abstention loss of each step, (wrong + cost · declined) / all."""
        return (self.wrong + cost * self.declined) / self.mass

    def best(self, cost: float, share: float | None = None) -> int:
        """Return the first step of least abstention loss, among those that decline at most ``share`` of the pairs."""
        loss = self.losses(cost)
        if share is not None:
            loss[self.within(share) + 1 :] = np.inf
        return int(np.flatnonzero(loss <= loss.min() + ROUNDING)[0])

    def within(self, share: float) -> int:
        """Return the last step that declines at most this share of the pairs."""
        return int(np.searchsorted(self.declined, share * self.mass * (1 + ROUNDING), side="right")) - 1

    def at(self, coverage: float) -> float:
        """Return the risk at a coverage in (0, 1], pairs on the threshold being declined at random.

        This is how two rules are compared: at equal coverage.
        """
        if not 0.0 < coverage <= 1.0:
            raise UsageError(f"coverage must be above 0 and at most 1, not {coverage!r}")
        kept = (self.mass - self.declined)[::-1]
        return float(np.interp(coverage * self.mass, kept, self.wrong[::-1]) / (coverage * self.mass))

    @property
    def aurc(self) -> float:
        """Area under the risk over coverage, ∫₀¹ risk(u) du, equally sure pairs entering in random order."""
        kept, wrong = (self.mass - self.declined)[::-1] / self.mass, self.wrong[::-1] / self.mass
        kept[0] = wrong[0] = 0.0
        low, high = kept[:-1], kept[1:]
        slope = np.diff(wrong) / np.where(high > low, high - low, 1.0)
        start = wrong[:-1] - slope * low
        ratio = np.ones(len(low))
        np.divide(high, low, out=ratio, where=low > 0)
        return float(np.where(high > low, slope * (high - low) + start * np.log(ratio), 0.0).sum())

    @property
    def least_aurc(self) -> float:
        """The area if all wrong pairs were declined first, r + (1 − r) log(1 − r) with r the risk at coverage 1."""
        risk = float(self.wrong[0] / self.mass)
        return risk + (1 - risk) * float(np.log1p(-risk)) if risk < 1 else 1.0

    def hull(self) -> RiskCoverage:
        """Return the steps that are best for some cost: the corners of the lower convex hull of (declined, wrong).

        The first step of least loss at any cost is among them, however many steps there are. The step that declines
        what is at threshold 0 is kept in any case: without it none would say that there are such pairs.
        """
        width = np.diff(self.declined)
        slope = scipy.optimize.isotonic_regression(
            np.diff(self.wrong) / np.where(width > 0, width, 1.0), weights=width
        ).x
        corner = np.concatenate(([True], slope[1:] > slope[:-1] + ROUNDING, [True]))
        corner |= self.threshold == 0
        estimated = None if self.estimated is None else self.estimated[corner]
        held = {name: getattr(self, name)[corner] for name in ("threshold", "declined", "wrong")}
        return replace(self, **held, estimated=estimated)

    def to_arrow(self, cost: float | None = None) -> pa.Table:
        """Return threshold (null: nothing is declined), coverage, risk and, at a cost, loss of each step."""
        columns = {"threshold": self.threshold, "coverage": self.coverage, "risk": self.risk}
        if self.estimated is not None:
            columns["estimated_risk"] = self.estimated
        if cost is not None:
            columns["loss"] = self.losses(cost)
        return pa.table({name: pa.array(column, from_pandas=True) for name, column in columns.items()})

    def draw(self, axes: Any, **style: Any) -> None:
        """Draw risk over coverage on axes of Matplotlib."""
        seen = np.isfinite(self.risk)
        style.setdefault("label", f"by {self.by} (AURC {self.aurc:.4f})")
        axes.plot(self.coverage[seen], self.risk[seen], **style)
        axes.set(xlabel="coverage: share of pairs ordered", ylabel="risk: share of them in the wrong order")

    def plot(self, path: str | Path | None = None, *others: RiskCoverage, axes: Any = None) -> Any:
        """Draw the curve, and others beside it, by Matplotlib; return the axes, or the path of the figure written.

        ``path``: a figure by its ending (.svg, .png, .pdf). ``axes``: where to draw; not given: a new figure.

        Errors: ConcordantError where Matplotlib is not installed, UsageError for another ending or no such folder.
        """
        target = None if path is None else Path(path)
        if target is not None and target.suffix not in (".svg", ".png", ".pdf"):
            raise UsageError(f"{target}: unknown ending {target.suffix!r} of a figure; allowed: .svg, .png, .pdf")
        if target is not None and not target.parent.is_dir():
            raise UsageError(f"{target}: there is no folder {target.parent}")
        if target is not None:
            check_replaced(target)
        axes = canvas(axes, 6.4, 4.0, shown=target is None)
        for curve in (self, *others):
            curve.draw(axes)
        axes.legend(frameon=False)
        if target is None:
            return axes
        axes.figure.savefig(target)
        return target

    def _repr_html_(self) -> str:
        seen = np.isfinite(self.risk)
        coverage, risk = self.coverage[seen], self.risk[seen]
        most = max(float(risk.max(initial=0.0)), 1e-12)
        points = " ".join(f"{10 + 280 * x:.1f},{110 - 100 * y / most:.1f}" for x, y in zip(coverage, risk))
        line = f'<polyline points="{points}" fill="none" stroke="#1f77b4" stroke-width="2"/>'
        frame = '<path d="M10,10V110H290" fill="none" stroke="currentColor"/>'
        svg = f'<svg width="300" height="120" role="img" aria-label="risk over coverage">{frame}{line}</svg>'
        words = (
            f"risk over coverage by {self.by}: of {self.pairs:,} pairs a share of {self.risk[0]:.3f} is in the wrong "
            f"order where all are ordered; mean over all shares (AURC) {self.aurc:.4f}"
        )
        rows = [[f"{share:.0%}", f"{self.at(share):.4f}"] for share in (1.0, 0.9, 0.75, 0.5)]
        table = html_table(["pairs ordered", "of them in the wrong order"], rows)
        return f"<div>{html_words(words)}{svg}{table}</div>"

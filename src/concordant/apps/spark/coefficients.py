"""One query that no task can hold, its fit with coefficients beside the scores: of covariates, of ties, thresholds.

Judgments of one pair differ in their covariates, so they lie in any share. Gradients and second derivatives of scores
and coefficients are sums over judgments nevertheless; a share computes its part as memory does the whole. Judgments of
items that the data do not limit on both sides, or that have fewer than ten wins or losses, come to the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import block_array, csr_array, diags_array

from concordant.apps.spark.clustered import LARGEST
from concordant.apps.spark.divided import Known, declared, nowhere
from concordant.apps.spark.learning_held import Sums
from concordant.apps.spark.redrawn import Coefficients, Keeping, Replicated
from concordant.apps.spark.shares import TooMuch, Whole
from concordant.apps.spark.splitting import DIRECT, Divided, SummedSystem, pairless
from concordant.apps.spark.valued_pairs import (
    At,
    Differences,
    Point,
    Rises,
    Times,
    Valued,
    Valuing,
    Within,
    facts_of_share,
    outcomes_of_share,
    seen_outcomes,
)
from concordant.errors import UsageError
from concordant.preferences.connectivity import Connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.status import Status
from concordant.progress import stage
from concordant.ranking.bradley_terry import (
    LARGE,
    Fitted,
    Thresholds,
    fit_notes,
    lost_notes,
    refuse_endless,
    refuse_means,
    scales,
    threshold_notes,
)
from concordant.ranking.contrasts import Gauge
from concordant.ranking.covariance import Meat
from concordant.ranking.cumulative import Graded, Outcomes, endless_nodes
from concordant.ranking.curvature import Curvature
from concordant.ranking.few_judgments import FEW, LARGEST_PRIOR
from concordant.ranking.multinomial import Replicates
from concordant.ranking.newton import Fit, System, conjugate_gradients, fit_system
from concordant.ranking.problem import Problem
from concordant.ranking.rank import Ranking
from concordant.ranking.scores import (
    ALIKE,
    UNEVEN,
    Scores,
    check_prior,
    refuse_beyond,
    refuse_runaway,
    refuse_separated,
    refuse_undetermined,
)
from concordant.ranking.strong_blocks import firm_nodes
from concordant.ranking.structures import structure as find_structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
PATIENCE = 2000
"""Steps of conjugate gradients, each a pass over the shares, in place of a matrix that is too large."""


# -- on the driver -------------------------------------------------------------------------------------------------
class JointSystem(SummedSystem):
    """Newton's equations of scores and coefficients; with few items they are solved as they are.

    With more the shares send their matrix nevertheless, while it is small enough, so that conjugate gradients ask no
    share for a product.
    """

    def __init__(self, problem: Problem, shares: Divided, point: Point, mean: Floats) -> None:
        super().__init__(problem)
        self.shares, self.point, self.mean = shares, point, mean
        self.whole = True

    def evaluate(self, s: Floats, b: Floats) -> None:
        System.evaluate(self, s, b)  # without pairs: the prior, and what keeps thresholds apart
        self.point = replace(self.point, score=s + self.mean, extra=b[0].copy())
        found = self.shares.sums(At(self.point, self.whole))
        self.slope_s, self.slope_b = self.slope_s - found["pull"], self.slope_b - found["lean"]
        self.diagonal, self.border = found["degree"] + self.problem.prior, found["border"]
        self.corner = self.corner + found["corner"]
        self.cells = found["cells"].matrix if self.whole else None
        self.whole = self.cells is not None
        self.settle()

    def image(self, xs: Floats) -> Floats:
        if self.cells is not None:
            return np.asarray(self.cells @ xs, np.float64)
        return np.asarray(self.shares.sums(Times(self.point, xs))["image"], np.float64)

    def apply(self, xs: Floats, xb: Floats) -> tuple[Floats, Floats]:
        ys = self.image(xs) + self.problem.prior * xs
        if not xb.shape[1]:
            return ys, xb
        return ys + self.border @ xb[0], xb @ self.corner[0] + (self.border.T @ xs)[None, :]

    def newton_step(self, precision: Floats) -> tuple[Floats, Floats]:
        found = self._solved(np.append(-self.slope_s, -self.slope_b[0])[:, None], len(self.slope_b[0]))
        if found is None:
            return super().newton_step(precision)
        self.unfinished[:] = False
        return self.centre(found[: self.problem.nodes, 0]), found[self.problem.nodes :].T

    def _solved(self, right: Floats, extras: int) -> Floats | None:
        """Newton's equations with so many of the coefficients; None where there is no matrix, or it has no factor."""
        component, nodes = self.problem.component, self.problem.nodes
        if self.cells is None or nodes > DIRECT:
            return None
        matrix = np.zeros((nodes + extras,) * 2)
        matrix[:nodes, :nodes] = self.cells.toarray()
        matrix[np.arange(nodes), np.arange(nodes)] = self.diagonal
        # the shift, which is taken out
        matrix[:nodes, :nodes] += (component[:, None] == component) * self.diagonal.mean()
        matrix[:nodes, nodes:], matrix[nodes:, :nodes] = self.border[:, :extras], self.border[:, :extras].T
        matrix[nodes:, nodes:] = self.corner[0][:extras, :extras]
        bend = np.append(self.diagonal, self.corner_diagonal[0][:extras])
        if not np.isfinite(matrix).all() or bend.min(initial=1.0) <= 0:
            return None
        scale = 1.0 / np.sqrt(bend)[:, None]
        try:
            factor = cho_factor(scale * matrix * scale.T, lower=True)
        except LinAlgError:  # weights so far apart that some are lost beside others
            return None
        return np.asarray(scale * cho_solve(factor, scale * right), np.float64)

    def weakest(self) -> Floats:
        columns = self.problem.extras - (self.problem.ties is not None)
        border, corner = self.border[:, :columns], self.corner[0][:columns, :columns]
        reduced = self._solved(border, 0)
        if reduced is None:
            only, none = self._only_scores(), np.zeros((1, 0))
            patience, precision = np.array([PATIENCE]), np.array([1e-9])
            each = [only.conjugate_gradients(side, none, precision, patience)[0] for side in border.T]
            reduced = np.column_stack(each) if each else border
        scale = 1.0 / np.sqrt(self.corner_diagonal[0][:columns])
        profile = scale[:, None] * (corner - border.T @ reduced) * scale
        least = np.linalg.eigvalsh((profile + profile.T) / 2).min(initial=1.0)
        return np.array([least], np.float64)


# -- the fit -------------------------------------------------------------------------------------------------------
KNOWN = {"prior", "ties", "covariates", "tolerance", "max_iterations"}
"""Options of scores to learn from."""
TREATED = ("half", "davidson", "cumulative")
"""How ties may be treated."""


def with_coefficients(structure: Any, options: Mapping[str, Any]) -> bool:
    """Whether these are Bradley–Terry's scores, and follow from sums over judgments whatever is fitted beside them."""
    ties = options.get("ties", "half")
    endless = ties == "davidson" and options.get("prior") == 0  # whether there is a maximum takes all judgments
    return structure == "bradley-terry" and {*options} <= KNOWN and ties in TREATED and not endless


def as_pairs(structure: Any, kind: str, options: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """Plackett–Luce's likelihood of comparisons as that of Bradley–Terry which it is: it reads no covariates."""
    if structure != "plackett-luce" or kind != "comparisons":
        return structure, options
    ties = "davidson" if options.get("ties") == "davidson" else "half"
    return "bradley-terry", {**options, "ties": ties, "covariates": False}


def used(names: tuple[str, ...], options: Mapping[str, Any]) -> tuple[str, ...]:
    """The covariates that are used, of all that there are."""
    return names if options.get("covariates") is not False else ()


def scores_beside(
    shares: Divided,
    kind: str,
    names: tuple[str, ...],
    options: Mapping[str, Any],
    mean: Floats | None = None,
    seen: Outcomes | None = None,
) -> Scores:
    """The scores of a query to learn from, its shares ``ValuedPairs``, with coefficients of what ``names`` names.

    ``options`` are those of ``with_coefficients``; ``seen``: the outcomes, where there are thresholds between them.
    Errors: as of ``bradley_terry``.
    """
    find_structure("bradley-terry").check(kind, options)
    batch, own = Batch.whole(declared(kind, shares.query, shares.items)), dict(options)
    named, prior = used(names, options), own.get("prior", 0.01)
    valued = own.pop("covariates", None)
    if valued and not names:
        raise UsageError("covariates were asked for, but these preferences have none")
    check_prior(prior)
    if prior == 0:
        refuse_separated(batch, shares.links)
    with stage("fitting scores"):
        fitted = fitted_beside(shares, shares.sums(facts_of_share), batch, named, mean=mean, seen=seen, **own)[0]
    value = fitted.value if mean is None else fitted.value + mean
    none = np.zeros(1)
    return Scores(value, np.zeros(len(value), np.int32), fitted.status, none.astype(np.int64), none)


def fitted_beside(
    shares: Divided,
    facts: Sums,
    batch: Batch,
    names: tuple[str, ...],
    *,
    prior: float = 0.01,
    ties: str = "half",
    tolerance: float = 1e-10,
    max_iterations: int = 100,
    mean: Floats | None = None,
    seen: Outcomes | None = None,
) -> tuple[Fitted, Floats]:
    """Fit scores and coefficients as ``bradley_terry`` does, and return what covariates were divided by.

    ``batch`` names the items in errors, which are those of ``bradley_terry``. TooMuch: see there.
    """
    if seen is not None:
        if mean is not None:
            refuse_means()
        return _with_thresholds(shares, facts, batch, names, seen, float(prior), tolerance, max_iterations)
    chosen, no, items = np.zeros(1, np.int64), np.zeros(0), len(shares.items)
    coefficients: dict[str, Floats] = {}
    davidson = ties == "davidson" and facts["ties"] > 0 and facts["others"] > 0
    if ties == "davidson":
        coefficients["ties"] = np.array([-np.inf if facts["others"] > 0 else np.inf])
    if davidson and prior == 0 and not names and not facts["mutual"]:
        raise TooMuch  # whether there is a maximum then takes all judgments
    if mean is not None and coefficients and not facts["others"]:  # an infinite ν explains ties alone
        none = np.zeros(1)
        fitted = Fitted(np.zeros(items), none.astype(np.int8) + Status.CONVERGED, none.astype(np.int64), none, {})
        return fitted, no
    scale = scales(batch, names, chosen, facts["size"].values[None, :])[0] if names else no
    z = np.zeros((0, len(names))) if names else None
    problem = pairless(items, shares.links.component if mean is None else np.zeros(items, np.int64), prior)
    problem = replace(problem, ties=no if davidson else None, covariates=z)
    point, about = Point(no, no, scale, davidson), np.zeros(items) if mean is None else mean
    fit = _ended(shares, facts, batch, names, problem, point, about, tolerance, max_iterations)
    coefficients |= {name: fit.extra[:, i] / scale[i] for i, name in enumerate(names)}
    if davidson:
        coefficients["ties"] = fit.extra[:, -1]
    return Fitted(fit.score, fit.status, fit.iterations, fit.gradient, coefficients), scale


def _ended(
    shares: Divided,
    facts: Sums,
    batch: Batch,
    names: tuple[str, ...],
    problem: Problem,
    point: Point,
    about: Floats,
    tolerance: float,
    max_iterations: int,
) -> Fit:
    """Where Newton's method ends, refused where ``bradley_terry`` would."""
    chosen = np.zeros(1, np.int64)
    fit = fit_system(problem, tolerance, max_iterations, lambda one: JointSystem(one, shares, point, about))
    refuse_undetermined(batch, names, chosen, fit.weak)
    refuse_runaway(batch, names, chosen, fit.status, fit.extra, problem, fit.score)
    refuse_beyond(batch, chosen, fit.status, problem, fit.score)
    least, most = -facts["ends"].values[0], facts["ends"].values[1]
    if problem.extras and most > UNEVEN * least:
        fit.status[:] = Status.STOPPED
    return fit


def _with_thresholds(
    shares: Divided,
    facts: Sums,
    batch: Batch,
    names: tuple[str, ...],
    seen: Outcomes,
    prior: float,
    tolerance: float,
    max_iterations: int,
) -> tuple[Fitted, Floats]:
    """Fit scores, coefficients and the thresholds between outcomes."""
    graded, chosen, items = Graded.of(batch, names, seen), np.zeros(1, np.int64), len(shares.items)
    coefficients = {name: np.zeros(1) for name in (*names, *graded.thresholds)}
    if prior == 0:
        refuse_endless(batch, endless(shares, facts, names, graded))
    between = Thresholds.of(graded, chosen)
    size = facts["size"].values
    scale = scales(batch, names, chosen, size[None, :])[0] if len(size) else np.zeros(0)
    if graded.only_ties[0]:
        none = np.zeros(1)
        fitted = Fitted(np.zeros(items), none.astype(np.int8) + Status.CONVERGED, none.astype(np.int64), none, {})
    else:
        problem = replace(pairless(items, shares.links.component, prior), covariates=np.zeros((0, len(scale))))
        if between.begin is not None and between.names:
            begin = np.append(np.zeros(len(names)), between.begin)[None, :]
            problem = replace(problem, gaps=between.gaps, tied=between.tied, begin=begin)
        point = Point(np.zeros(0), np.zeros(0), scale, False)
        fit = _ended(shares, facts, batch, names, problem, point, np.zeros(items), tolerance, max_iterations)
        fitted = Fitted(fit.score, fit.status, fit.iterations, fit.gradient, {})
        for place, name in enumerate((*names, *between.names)):
            coefficients[name] = fit.extra[:, place] / scale[place]
    cuts = graded.filled(graded.taken(coefficients))
    fitted.coefficients.update(coefficients | dict(zip(graded.thresholds, cuts.T, strict=True)))
    return fitted, scale[: len(names)]


def with_outcomes(shares: Divided, names: tuple[str, ...]) -> Outcomes:
    """The outcomes of a query whose shares have its judgments as they are; they become ``ValuedPairs``."""
    seen = seen_outcomes(shares.sums(outcomes_of_share)["outcomes"])
    shares.change(Valuing(shares.items, names, seen))
    shares.link()
    return seen


def endless(shares: Divided, facts: Sums, names: tuple[str, ...], graded: Graded) -> tuple[int, Ints] | None:
    """What ``Graded.endless`` finds of all judgments. Errors: TooMuch."""
    if not graded.free.any() or (facts["mutual"] and not names):
        return None
    size, found = len(shares.items), shares.sums(Rises.of)["rises"]
    if found.rows is None:
        raise TooMuch
    moved = None if found.mutual(size) and not names else endless_nodes(found.matrix(size), size)
    return None if moved is None else (0, moved)


@dataclass(frozen=True, eq=False)
class WithCoefficients(Known):
    """A divided query whose fit has coefficients beside the scores, as ``rank`` sees it."""

    names: tuple[str, ...] = field(kw_only=True)
    """Of the covariates."""
    ties: str = field(kw_only=True)
    facts: Sums = field(kw_only=True)
    seen: Outcomes | None = field(default=None, kw_only=True)
    """The outcomes, where there are thresholds between them."""
    found: dict[float, tuple[Fitted, Flags, tuple[Note, ...]]] = field(default_factory=dict, kw_only=True)
    """By the prior: where a fit ended, which coefficients the data do not determine, and notes on thresholds."""

    @property
    def _thresholds(self) -> tuple[str, ...]:
        """Their names."""
        none = Batch.whole(Preferences.empty())
        return () if self.seen is None else Graded.of(none, (), self.seen).thresholds

    # -- what rank asks for --------------------------------------------------------------------------------------
    def _some(self, asked: Mapping[str, Any]) -> Flags:
        links, method, items = self.shares.links, asked["interval"], len(self.shares.items)
        if method == "none":
            return np.zeros(items, bool)
        if method == "sandwich" and items > LARGEST:
            raise TooMuch
        firm = firm_nodes(links, Gauge.of(np.array([0, items]), links))
        some = links.compared & ~firm
        plain = self.facts["ends"].values[2] == 0
        if method == "hessian" and plain and float(asked.get("prior", 0.01)) <= LARGEST_PRIOR:
            within = self.shares.sums(Within(links.block.astype(np.int32)))
            some |= firm & (np.minimum(within["won"], within["lost"]) < FEW)
        return some

    def _scores(self, batch: Batch, *, prior: float = 0.01, **_: Any) -> Scores:
        check_prior(prior)
        if not len(batch):
            return self._none(prior)
        links = self._links(batch)
        if prior == 0:
            refuse_separated(batch, links)
        if prior not in self.found:
            with stage("fitting scores"):
                self.found[prior] = self._fit(batch, float(prior))
        fitted, lost, of_thresholds = self.found[prior]
        own = self._codes(batch)
        notes = (*fit_notes(batch, links, fitted, prior), *of_thresholds)
        if self.seen is not None:
            Graded.fitted(batch, fitted.coefficients, self.seen)  # kept with it: it has but some of the judgments
        return Scores(
            fitted.value[own], links.component, fitted.status, fitted.iterations, fitted.gradient, fitted.coefficients,
            (*notes, *lost_notes(self.names, lost)),
            {"prior": float(prior), "ties": self.ties, "covariates": bool(self.names), "mean": False}
            | {"uneven": bool(self.facts["ends"].values[2])}
            | {f"undetermined {name}": column for name, column in zip(self.names, lost.T, strict=True) if column.any()},
        )  # fmt: skip

    def _endless(self, graded: Graded) -> tuple[int, Ints] | None:
        """What but for the prior can grow for ever, where that can be known."""
        try:
            return endless(self.shares, self.facts, self.names, graded)
        except TooMuch:
            return None

    def _blocks(self, batch: Batch, links: Connectivity, options: Mapping[str, Any]) -> tuple[Floats, Flags] | None:
        return None if self.names or self.ties != "half" else super()._blocks(batch, links, options)

    def _of_blocks(self) -> tuple[Floats, bool]:
        shares, no = self.shares, np.zeros(0)
        inner = shares.within_blocks()
        try:
            point, problem = Point(no, no, no, False), pairless(len(shares.items), shares.links.block, 0.0)
            no_mean = np.zeros(len(shares.items))
            fit = fit_system(problem, *self._limits, lambda one: JointSystem(one, inner, point, no_mean))
        finally:
            inner.forget()
        return fit.score, int(fit.status[0]) == Status.STOPPED

    @property
    def _limits(self) -> tuple[float, int]:
        """The tolerance of a fit, and its iterations."""
        return self.options.get("tolerance", 1e-10), self.options.get("max_iterations", 100)

    # -- the fit -------------------------------------------------------------------------------------------------
    def _fit(self, batch: Batch, prior: float) -> tuple[Fitted, Flags, tuple[Note, ...]]:
        tolerance, most = self._limits
        given: dict[str, Any] = {"prior": prior, "ties": self.ties, "tolerance": tolerance, "max_iterations": most}
        fitted, scale = fitted_beside(self.shares, self.facts, batch, self.names, seen=self.seen, **given)
        lost = self._undetermined(scale) if self.names and prior > 0 else np.zeros((1, 0), bool)
        notes: tuple[Note, ...] = ()
        if self.seen is not None:
            graded = Graded.fitted(batch, fitted.coefficients, self.seen)
            grow = self._endless(graded) if prior > 0 and len(self.shares.items) <= LARGE else None
            notes = threshold_notes(batch, graded, prior, grow)
        return fitted, lost if lost.shape[1] else np.zeros((1, len(self.names)), bool), notes

    def _undetermined(self, scale: Floats) -> Flags:
        """Which coefficients the prior decides, as ``scores.undetermined`` says of judgments that are all here."""
        shares = self.shares
        found = shares.sums(Differences(scale))
        component, cells = shares.links.component, found["cells"].matrix
        if cells is not None and len(component) <= DIRECT:
            matrix = cells.toarray() + (component[:, None] == component)
            x = np.linalg.solve(matrix + np.diag(np.diagonal(matrix) == 0), found["pull"])
        else:
            one = np.zeros(len(component), np.int64)
            image = self._image if cells is None else cells.__matmul__
            columns = found["pull"].T
            each = [
                conjugate_gradients(image, found["degree"], side, one, 1, tolerance=1e-13, iterations=PATIENCE)[0]
                for side in columns
            ]
            x = np.column_stack(each)
        rest = shares.sums(Differences(scale, x))
        size = np.sqrt(rest["size"])
        value, vector = np.linalg.eigh(rest["left"] / size / size[:, None])
        near = np.sqrt(np.maximum(value, 0.0)) < ALIKE
        return np.asarray((np.abs(vector[:, near]) > np.sqrt(ALIKE)).any(axis=1)[None, :], bool)

    def _image(self, along: Floats) -> Floats:
        """The Laplacian of the pairs, each of weight 1, times a vector."""
        return np.asarray(self.shares.sums(Times(None, along))["image"], np.float64)

    # -- its curvature -------------------------------------------------------------------------------------------
    def _curvature(self, batch: Batch, scores: Scores) -> Curvature:
        own, prior = self._codes(batch), float(scores.options["prior"])
        score = np.zeros(len(own))
        score[own] = scores.value
        names = list(self.names)
        if np.isfinite(scores.coefficients.get("ties", np.array([np.inf]))).all():
            names.append("ties")
        bend = np.zeros((len(names),) * 2)
        if self.seen is not None:
            graded = Graded.fitted(batch, scores.coefficients, self.seen)
            free = graded.free[0]
            names += [name for name, own_one in zip(graded.thresholds, free, strict=True) if own_one]
            place = np.where(free, len(self.names) + np.cumsum(free) - 1, -1)[None, :]
            bend = graded.bend(graded.taken(scores.coefficients), place, len(names)).toarray()
        extra = np.array([scores.coefficients[name][0] for name in names])
        point = Point(score, extra, np.ones(len(names) - ("ties" in names)), "ties" in names)
        found = self.shares.sums(At(point, True))
        if found["cells"].matrix is None:
            raise TooMuch
        scored, border = csr_array(found["cells"].matrix[own][:, own]), csr_array(found["border"][own])
        hessian = scored
        if names:
            hessian = csr_array(block_array([[scored, border], [border.T, csr_array(found["corner"] + bend)]]))
        meat = partial(self._meat, batch, scores, tuple(names))
        owner = np.zeros(len(names), np.int64)
        return Curvature(hessian, prior, nowhere, lambda: np.nan, owner, tuple(names), meat=meat)

    def _meat(self, batch: Batch, scores: Scores, names: tuple[str, ...]) -> Meat:
        """The middle of the sandwich; ``names``: of the parameters beside the scores."""
        raise NotImplementedError

    # -- its bootstrap -------------------------------------------------------------------------------------------
    def _redraws(self, batch: Batch, options: Mapping[str, Any], replicates: int, seed: int) -> Replicates:
        if self.again is None or (not self.names and self.ties == "half") or not len(batch):
            return super()._redraws(batch, options, replicates, seed)
        scores, own = self._scores(batch, **options), self._codes(batch)
        prior = float(scores.options["prior"])
        curvature, place = self._curvature(batch, scores), np.argsort(own)
        names = curvature.extra_name
        davidson = "ties" in names
        scale = np.append(self._scale(batch), np.ones(int(davidson)))
        extra = np.array([scores.coefficients[name][0] for name in names]) * scale
        order = np.append(place, len(own) + np.arange(len(extra)))
        by = diags_array(np.append(np.ones(len(own)), 1.0 / scale))
        information = csr_array(by @ csr_array(curvature.hessian)[order][:, order] @ by)
        point, beside = np.append(scores.value[place], extra), Coefficients(self.names, scale, davidson, self.seen)
        fit = partial(self._alone, batch)
        given = point, information, prior, replicates, seed, beside, self._kept, fit
        found, unlimited, draws = self.again.fitted_beside(*given)
        one = np.zeros(1, np.int64)
        return Replicates(found[:, own], one + unlimited, one + draws)

    def _scale(self, batch: Batch) -> Floats:
        """What covariates are divided by, and thresholds."""
        if not self.names and self.seen is None:
            return np.zeros(0)
        one = np.zeros(1, np.int64)
        return np.asarray(scales(batch, self.names, one, self.facts["size"].values[None, :])[0], np.float64)

    @property
    def _kept(self) -> Keeping:
        """What makes the shares of a replicate."""
        return Valued(self.names, self.seen)

    def _alone(self, batch: Batch, replicate: Replicated, prior: float) -> Floats:
        """The scores of one replicate by itself."""
        kept, seen = self._kept, None
        if self.seen is not None:
            seen = seen_outcomes(replicate.sums(Whole, outcomes_of_share)["outcomes"])
            kept = Valued(self.names, seen)
        shares, (tolerance, most) = replicate.shares(kept), self._limits
        given: dict[str, Any] = {"prior": prior, "ties": self.ties, "tolerance": tolerance, "max_iterations": most}
        afresh = Batch.whole(batch.prefs)  # the outcomes of all judgments are kept with the batch
        fitted, _ = fitted_beside(shares, shares.sums(facts_of_share), afresh, self.names, seen=seen, **given)
        return fitted.value

    def _said(self, board: Ranking) -> list[str]:
        """The coefficients, which the table of a ranking does not have."""
        prefix = f"{self.shares.what}: " if self.shares.named else ""
        found = []
        for name in (*self.names, *(["ties"] if self.ties == "davidson" else []), *self._thresholds):
            error = board.coefficients.get(f"s.e. of {name}")
            with_error = "" if error is None else f" ± {error[0]:.4g}"
            called = "log ν of ties" if name == "ties" else name
            found.append(f"{prefix}coefficient {called}: {board.coefficients[name][0]:.4g}{with_error}")
        return found

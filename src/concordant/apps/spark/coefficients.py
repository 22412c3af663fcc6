"""One query that no task can hold, its fit with coefficients beside the scores: covariates', log ν of Davidson's ties.

Judgments of one pair differ in their covariates, so they lie in any share. Gradients and second derivatives of scores
and coefficients are sums over judgments nevertheless; a share computes its part as memory does the whole. Judgments of
items that the data do not limit on both sides, or that have fewer than ten wins or losses, come to the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import block_array, csr_array

from concordant.apps.spark.clustered import LARGEST, ByClusters, Middle
from concordant.apps.spark.divided import Known, nowhere
from concordant.apps.spark.learning_held import Sums, changed
from concordant.apps.spark.shares import Cells, Held, Pairs, Share, TooMuch, among, known_of, taken
from concordant.apps.spark.splitting import DIRECT, LISTS, Divided, SummedSystem, alike, pairless
from concordant.apps.spark.structure_sums import declared
from concordant.errors import UsageError, counted
from concordant.preferences.connectivity import Connectivity
from concordant.preferences.counted import recounted
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Comparisons, Preferences
from concordant.preferences.status import Status
from concordant.progress import stage
from concordant.ranking.bradley_terry import Fitted, fit_notes, lost_notes, scales
from concordant.ranking.contrasts import Gauge
from concordant.ranking.covariance import Meat
from concordant.ranking.curvature import Curvature, laplacian
from concordant.ranking.few_judgments import FEW, LARGEST_PRIOR
from concordant.ranking.newton import System, conjugate_gradients, fit_system
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
Flags = NDArray[np.bool_]
PATIENCE = 2000
"""Steps of conjugate gradients, each a pass over the shares, in place of a matrix that is too large."""


# -- in a task -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Most:
    """The largest of some numbers; of parts the larger ones."""

    values: Floats

    def __add__(self, other: Most) -> Most:
        return Most(np.maximum(self.values, other.values))


@dataclass(frozen=True, eq=False)
class Point:
    """Scores, and coefficients of the covariates over ``scale`` (then log ν), at which derivatives are asked for."""

    score: Floats
    extra: Floats
    scale: Floats
    davidson: bool


@dataclass(frozen=True, eq=False)
class ValuedPairs(Share):
    """The judgments of a share, added up for each pair and each value of the covariates."""

    graphs: Graphs
    code: NDArray[np.int32]
    """Of each of its nodes."""
    plain: bool
    """Whether each judgment is one win."""

    @classmethod
    def of(cls, prefs: Preferences) -> Self:
        """The judgments of one query, whoever made them."""
        batch = Batch.whole(prefs)
        names = prefs.covariate_names
        graphs = Graphs.of(batch, covariates=len(names) > 0)
        if names and not len(graphs.first):  # a share of what a fold leaves may have none
            graphs = replace(graphs, covariates=np.zeros((0, len(names))))
        plain = isinstance(prefs, Comparisons) and not prefs.weighted and not prefs.tied
        return cls(*known_of(prefs, batch), graphs, batch.item.astype(np.int32), plain)

    def _placed(self, own: NDArray[np.int32]) -> dict[str, Any]:
        return {"code": own[self.code]}

    @property
    def pairs(self) -> Pairs:
        """Its pairs, whatever the covariates."""
        graphs = self.graphs
        held = self.queries, None, self.touched, self.judgments
        return Pairs(*held, self.code[graphs.first], self.code[graphs.second], graphs.above, graphs.below)

    def links(self) -> tuple[NDArray[Any], Flags, Flags]:
        return self.pairs.links()

    def between(self, block: NDArray[np.int32]) -> Any:
        return self.pairs.between(block)

    def inner(self, block: NDArray[np.int32]) -> ValuedPairs:
        graphs, within = self.graphs, block[self.code]
        own = np.flatnonzero(within[graphs.first] == within[graphs.second])
        columns = {name: getattr(graphs, name)[own] for name in ("first", "second", "wins", "losses", "ties")}
        z = None if graphs.covariates is None else graphs.covariates[own]
        return replace(self, graphs=replace(graphs, pair_start=np.array([0, len(own)]), covariates=z, **columns))

    def system(self, point: Point) -> System:
        """The derivatives of its likelihood at a point."""
        graphs, davidson = self.graphs, point.davidson
        z = None if graphs.covariates is None or not len(point.scale) else graphs.covariates / point.scale
        above, below = (graphs.wins, graphs.losses) if davidson else (graphs.above, graphs.below)
        ties, together = graphs.ties if davidson else None, np.zeros(graphs.nodes, np.int64)
        ends = graphs.node_start, graphs.pair_start, graphs.first, graphs.second
        problem = Problem(*ends, above, below, ties, z, together, 0.0)
        found = System(problem)
        found.evaluate(point.score[self.code], point.extra[None, :])
        return found

    def spread(self, of_nodes: Floats) -> Floats:
        """Values of its nodes as ones of all items of the query."""
        found = np.zeros((len(self.touched), *of_nodes.shape[1:]))
        found[self.code] = of_nodes
        return found

    def cells(self, weight: Floats) -> Cells:
        """The Laplacian of its pairs with some weights."""
        return Cells(among(laplacian(self.graphs, weight), self.code, len(self.touched))).checked()


def _facts(share: ValuedPairs) -> Sums:
    """How large covariates are, how far apart strengths, and which outcomes there are."""
    graphs = share.graphs
    sides = np.concatenate([graphs.above, graphs.below])
    sides = sides[sides > 0]
    z = np.zeros((0, 0)) if graphs.covariates is None else graphs.covariates
    ends = Most(np.array([-sides.min(initial=np.inf), sides.max(initial=0.0), 1.0 - share.plain]))
    both = ((graphs.wins > 0) & (graphs.losses > 0)).any()
    return Sums(
        size=Most(np.abs(z).max(axis=0, initial=0.0)), ends=ends, mutual=int(both),
        ties=float(graphs.ties.sum()), others=float((graphs.wins + graphs.losses).sum()),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _At:
    """First and second derivatives at a point; the scores' own second ones beside the diagonal where ``whole``."""

    point: Point
    whole: bool

    def __call__(self, share: ValuedPairs) -> Sums:
        at, graphs = share.system(self.point), share.graphs
        found = Sums(pull=share.spread(-at.slope_s), lean=-at.slope_b[0], border=share.spread(at.border))
        found |= {"degree": share.spread(graphs.add_to_nodes(at.curve, at.curve)), "corner": at.corner[0]}
        return Sums(found | ({"cells": share.cells(at.curve)} if self.whole else {}))


@dataclass(frozen=True, eq=False)
class _Times:
    """The scores' second derivatives at a point, without one the Laplacian with weights of 1, times vectors."""

    point: Point | None
    along: Floats

    def __call__(self, share: ValuedPairs) -> Sums:
        graphs, x = share.graphs, self.along[share.code]
        curve = np.ones(len(graphs.first)) if self.point is None else share.system(self.point).curve
        bent = curve * (x[graphs.first] - x[graphs.second])
        return Sums(image=share.spread(graphs.add_to_nodes(bent, -bent)))


@dataclass(frozen=True, eq=False)
class _Differences:
    """How covariates lie to the incidence B of pairs and items: BᵀB, its diagonal, and Bᵀz; or, less Bx, zᵀz."""

    scale: Floats
    x: Floats | None = None

    def __call__(self, share: ValuedPairs) -> Sums:
        graphs = share.graphs
        z = np.zeros((0, 0)) if graphs.covariates is None else graphs.covariates / self.scale
        if self.x is not None:
            x = self.x[share.code]
            left = z - (x[graphs.first] - x[graphs.second])
            return Sums(left=left.T @ left, size=(z**2).sum(axis=0))
        one = np.ones(len(z))
        found = Sums(degree=share.spread(graphs.add_to_nodes(one, one)))
        found["pull"] = share.spread(np.column_stack([graphs.add_to_nodes(column, -column) for column in z.T]))
        return Sums(found | {"cells": share.cells(one)})


@dataclass(frozen=True, eq=False)
class _Within:
    """How often items won and lost within strong blocks."""

    block: NDArray[np.int32]

    def __call__(self, share: ValuedPairs) -> Sums:
        graphs, block = share.graphs, self.block[share.code]
        inner = block[graphs.first] == block[graphs.second]
        wins, losses = graphs.wins * inner, graphs.losses * inner
        return Sums(
            won=share.spread(graphs.add_to_nodes(wins, losses)), lost=share.spread(graphs.add_to_nodes(losses, wins))
        )


@dataclass(frozen=True, eq=False)
class _Touching:
    """The judgments of some items, with who made them: by that of several columns."""

    items: Labels
    some: Flags
    way: int

    def __call__(self, prefs: Comparisons) -> Sums:
        some = self.some[self.items.codes_of(prefs.items.values)]
        rows = np.flatnonzero(some[prefs.winner] | some[prefs.loser])
        return Sums(held=Held(taken(prefs, rows, self.way), LISTS).checked())


# -- on the driver -------------------------------------------------------------------------------------------------
class _System(SummedSystem):
    """Newton's equations of scores and coefficients; with few items they are solved as they are.

    With more the shares send their matrix nevertheless, while it is small enough, so that conjugate gradients ask no
    share for a product.
    """

    def __init__(self, problem: Problem, shares: Divided, point: Point, mean: Floats) -> None:
        super().__init__(problem)
        self.shares, self.point, self.mean = shares, point, mean
        self.whole = True

    def evaluate(self, s: Floats, b: Floats) -> None:
        System.evaluate(self, s, b)  # without pairs: the prior alone
        self.point = replace(self.point, score=s + self.mean, extra=b[0].copy())
        found = self.shares.sums(_At(self.point, self.whole))
        self.slope_s, self.slope_b = self.slope_s - found["pull"], -found["lean"][None, :]
        self.diagonal, self.border = found["degree"] + self.problem.prior, found["border"]
        self.corner = found["corner"][None, :, :]
        self.cells = found["cells"].matrix if self.whole else None
        self.whole = self.cells is not None
        self.settle()

    def image(self, xs: Floats) -> Floats:
        if self.cells is not None:
            return np.asarray(self.cells @ xs, np.float64)
        return np.asarray(self.shares.sums(_Times(self.point, xs))["image"], np.float64)

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
        scale = 1.0 / np.sqrt(np.append(self.diagonal, self.corner_diagonal[0][:extras]))[:, None]
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


def with_coefficients(structure: Any, options: Mapping[str, Any]) -> bool:
    """Whether these are Bradley–Terry's scores, and follow from sums over judgments whatever is fitted beside them."""
    ties = options.get("ties", "half")
    endless = ties == "davidson" and options.get("prior") == 0  # whether there is a maximum takes all judgments
    return structure == "bradley-terry" and {*options} <= KNOWN and ties in ("half", "davidson") and not endless


def scores_beside(
    shares: Divided, kind: str, names: tuple[str, ...], options: Mapping[str, Any], mean: Floats | None = None
) -> Scores:
    """The scores of a query to learn from, its shares ``ValuedPairs``, with coefficients of what ``names`` names.

    ``options`` are those of ``with_coefficients``. Errors: as of ``bradley_terry``.
    """
    find_structure("bradley-terry").check(kind, options)
    batch, own = Batch.whole(declared(kind, shares.query, shares.items)), dict(options)
    valued, prior = own.pop("covariates", None), own.get("prior", 0.01)
    if valued and not names:
        raise UsageError("covariates were asked for, but these preferences have none")
    check_prior(prior)
    if prior == 0:
        refuse_separated(batch, shares.links)
    with stage("fitting scores"):
        named = names if valued is not False else ()
        fitted = fitted_beside(shares, shares.sums(_facts), batch, named, mean=mean, **own)[0]
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
) -> tuple[Fitted, Floats]:
    """Fit scores and coefficients as ``bradley_terry`` does, and return what covariates were divided by.

    ``batch`` names the items in errors, which are those of ``bradley_terry``. TooMuch: see there.
    """
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
    fit = fit_system(problem, tolerance, max_iterations, lambda one: _System(one, shares, point, about))
    refuse_undetermined(batch, names, chosen, fit.weak)
    refuse_runaway(batch, names, chosen, fit.status, fit.extra, problem, fit.score)
    refuse_beyond(batch, chosen, fit.status, problem, fit.score)
    least, most = -facts["ends"].values[0], facts["ends"].values[1]
    if problem.extras and most > UNEVEN * least:
        fit.status[:] = Status.STOPPED
    coefficients |= {name: fit.extra[:, i] / scale[i] for i, name in enumerate(names)}
    if davidson:
        coefficients["ties"] = fit.extra[:, -1]
    return Fitted(fit.score, fit.status, fit.iterations, fit.gradient, coefficients), scale


@dataclass(frozen=True, eq=False)
class WithCoefficients(Known):
    """A divided query whose fit has coefficients beside the scores, as ``rank`` sees it."""

    by: ByClusters = field(kw_only=True)
    """The same judgments, with who made them."""
    names: tuple[str, ...] = field(kw_only=True)
    """Of the covariates."""
    ties: str = field(kw_only=True)
    facts: Sums = field(kw_only=True)
    found: dict[float, tuple[Fitted, Flags]] = field(default_factory=dict, kw_only=True)
    """By the prior: where a fit ended, and which coefficients the data do not determine."""

    @classmethod
    def of(cls, by: ByClusters, structure: Any, options: Mapping[str, Any], names: tuple[str, ...]) -> Self | None:
        """Learn what connects the items, and what there is of outcomes; None without judgments."""
        shares = Divided(changed(by.frame, ValuedPairs.of), by.shares, by.tasks, named=by.named)
        try:
            if not shares.look():
                return None
            facts = shares.sums(_facts)
        except BaseException:
            shares.forget()
            raise
        names = tuple(sorted(names))
        return cls(shares, structure, options, by=by, names=names, ties=options.get("ties", "half"), facts=facts)

    def said(self, board: Ranking) -> list[str]:
        """How a ranking was made, and the coefficients, which its table does not have."""
        by, shares = self.by, self.shares
        found = [alike(by.columns, by.numbers)] if board.interval == "sandwich" and by.columns else []
        names = [*self.names, *(["ties"] if self.ties == "davidson" else [])]
        held = [(name, board.coefficients[name][0], board.coefficients.get(f"s.e. of {name}")) for name in names]
        prefix = f"{shares.what}: " if shares.named else ""
        for name, value, error in held:
            with_error = "" if error is None else f" ± {error[0]:.4g}"
            found.append(f"{prefix}coefficient {'log ν of ties' if name == 'ties' else name}: {value:.4g}{with_error}")
        of, number = f" of {counted(by.clusters, 'clusters')}" if by.clusters else "", by.passes + shares.passes
        return [
            *found,
            f"{shares.what}: {counted(shares.judgments, 'judgments')}{of}, divided among tasks by "
            f"{'who made them' if by.columns else 'their rows'} ({by.shares:,} shares, {number:,} passes); whether the "
            "model fits was not looked at",
        ]

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
            within = self.shares.sums(_Within(links.block.astype(np.int32)))
            some |= firm & (np.minimum(within["won"], within["lost"]) < FEW)
        return some

    def _held(self, some: Flags) -> Preferences | None:
        by, way = self.by, 0
        if len(by.columns) > 1:
            way = int(np.argmin(by.numbers))
        with stage("judgments of few or one-sided items"):
            found: Preferences | None = by.sums(_Touching(self.shares.items, some, way))["held"].prefs
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
        fitted, lost = self.found[prior]
        own = self._codes(batch)
        return Scores(
            fitted.value[own], links.component, fitted.status, fitted.iterations, fitted.gradient, fitted.coefficients,
            (*fit_notes(batch, links, fitted, prior), *lost_notes(self.names, lost)),
            {"prior": float(prior), "ties": self.ties, "covariates": bool(self.names), "mean": False}
            | {f"undetermined {name}": column for name, column in zip(self.names, lost.T, strict=True) if column.any()},
        )  # fmt: skip

    def _blocks(self, batch: Batch, links: Connectivity, options: Mapping[str, Any]) -> tuple[Floats, Flags] | None:
        return None if self.names or self.ties != "half" else super()._blocks(batch, links, options)

    def _of_blocks(self) -> tuple[Floats, bool]:
        shares, no = self.shares, np.zeros(0)
        inner = shares.within_blocks()
        try:
            point, problem = Point(no, no, no, False), pairless(len(shares.items), shares.links.block, 0.0)
            no_mean = np.zeros(len(shares.items))
            fit = fit_system(problem, *self._limits, lambda one: _System(one, inner, point, no_mean))
        finally:
            inner.forget()
        return fit.score, int(fit.status[0]) == Status.STOPPED

    @property
    def _limits(self) -> tuple[float, int]:
        """The tolerance of a fit, and its iterations."""
        return self.options.get("tolerance", 1e-10), self.options.get("max_iterations", 100)

    # -- the fit -------------------------------------------------------------------------------------------------
    def _fit(self, batch: Batch, prior: float) -> tuple[Fitted, Flags]:
        tolerance, most = self._limits
        given: dict[str, Any] = {"prior": prior, "ties": self.ties, "tolerance": tolerance, "max_iterations": most}
        fitted, scale = fitted_beside(self.shares, self.facts, batch, self.names, **given)
        lost = self._undetermined(scale) if self.names and prior > 0 else np.zeros((1, 0), bool)
        return fitted, lost if lost.shape[1] else np.zeros((1, len(self.names)), bool)

    def _undetermined(self, scale: Floats) -> Flags:
        """Which coefficients the prior decides, as ``scores.undetermined`` says of judgments that are all here."""
        shares = self.shares
        found = shares.sums(_Differences(scale))
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
        rest = shares.sums(_Differences(scale, x))
        size = np.sqrt(rest["size"])
        value, vector = np.linalg.eigh(rest["left"] / size / size[:, None])
        near = np.sqrt(np.maximum(value, 0.0)) < ALIKE
        return np.asarray((np.abs(vector[:, near]) > np.sqrt(ALIKE)).any(axis=1)[None, :], bool)

    def _image(self, along: Floats) -> Floats:
        """The Laplacian of the pairs, each of weight 1, times a vector."""
        return np.asarray(self.shares.sums(_Times(None, along))["image"], np.float64)

    # -- its curvature -------------------------------------------------------------------------------------------
    def _curvature(self, batch: Batch, scores: Scores) -> Curvature:
        own, prior = self._codes(batch), float(scores.options["prior"])
        score = np.zeros(len(own))
        score[own] = scores.value
        names = list(self.names)
        if np.isfinite(scores.coefficients.get("ties", np.array([np.inf]))).all():
            names.append("ties")
        extra = np.array([scores.coefficients[name][0] for name in names])
        point = Point(score, extra, np.ones(len(self.names)), "ties" in names)
        found = self.shares.sums(_At(point, True))
        if found["cells"].matrix is None:
            raise TooMuch
        scored, border = csr_array(found["cells"].matrix[own][:, own]), csr_array(found["border"][own])
        hessian = scored
        if names:
            hessian = csr_array(block_array([[scored, border], [border.T, csr_array(found["corner"])]]))
        meat = partial(self._meat, batch, scores, tuple(names))
        owner = np.zeros(len(names), np.int64)
        return Curvature(hessian, prior, nowhere, lambda: np.nan, owner, tuple(names), meat=meat)

    def _meat(self, batch: Batch, scores: Scores, names: tuple[str, ...]) -> Meat:
        if self.by.columns:
            return self.by.meat(batch, scores, names)
        items, _ = Labels.encode(batch.prefs.items.take(batch.item))
        with stage("what judgments add up to"):
            known = replace(scores, components=np.zeros(0, np.int32))
            found = self.by.sums(Middle(items, known, names, ((),)))
        return replace(Meat.of_sums(found["middle", ()], found["cells", ()]), clustered=False)

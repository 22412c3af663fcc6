"""One query that no task can hold, divided among tasks: scores of Bradley–Terry and Plackett–Luce, those of memory.

The likelihood, its gradient and its Hessian times a vector are sums over pairs, or over lists. Rows of a pair (either
way) or of a list go to one share, which counts them and keeps the pair table or the lists; what travels after that is a
number for each item: Newton's method runs on the driver, and asks the shares for each gradient and each product.

What connects the items: a share sends which of them its own wins connect, and what it connects is connected in the
whole. Only wins between items that no share connects strongly are sent as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from concordant.apps.spark.checking import KEYS, Checks
from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_held import PIECES, Sums, _whole, changed, pieces, summed
from concordant.apps.spark.partitioning import BUCKET, PACKED, put_together, spread
from concordant.apps.spark.shares import (
    Ballots,
    Cells,
    Drawn,
    Held,
    Listed,
    ListedPairs,
    Pairs,
    Share,
    TooMuch,
    Ways,
)
from concordant.errors import NoMaximumLikelihood, counted, few
from concordant.io.engines.spark_session import parallelism
from concordant.preferences.connectivity import Connectivity, connected
from concordant.preferences.labels import Labels
from concordant.preferences.layouts import CLUSTERS
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.progress import stage
from concordant.ranking.newton import System, fit_system
from concordant.ranking.problem import Problem
from concordant.ranking.ranked_lists import examined_only
from concordant.ranking.scores import HELP, Scores, check_prior, no_limits
from concordant.ranking.structures import structure as find_structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SHARE = 1 << 20
"""Distinct judgments of a share, about."""
DIRECT = 1000
"""Items up to which tasks send the Hessian, a square matrix of so many rows, instead of its products."""
ENTRIES = 1 << 23
"""Entries of the rankings of a share, those included that they leave out."""
LISTS = 1 << 20
"""Lists with items that the data do not limit which the driver takes at most."""
TASKS = 2
"""Tasks for each core, at most: each sends a number for each item in every pass."""

Work = Callable[[Any], Sums]
"""What is done on a share."""


# -- in a task -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Making:
    """The task: packed rows of a share become an object, such as its pair table."""

    checks: Checks
    most: int
    of: Callable[[Preferences], Any]

    def __call__(self, key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        table = put_together(iter(rows.select(PACKED.names).to_batches()), self.most, stopping=False)
        prefs = None if table is None else self.checks.preferences(table)
        return _whole(pieces(int(key[0].as_py()), None if prefs is None or not len(prefs) else self.of(prefs)))


@dataclass(frozen=True)
class Union:
    """Labels; those of parts are united."""

    labels: Labels

    def __add__(self, other: Union) -> Union:
        return Union(self.labels.union(other.labels)[0])


def _examined(prefs: Preferences, kept: type[Share]) -> Share:
    return kept.of(examined_only(prefs))


def _labels(share: Share) -> Sums:
    return Sums(items=Union(share.items or Labels.empty()), queries=Union(share.queries), judgments=share.judgments)


def _nothing(_: Share) -> Sums:
    return Sums()


@dataclass(frozen=True)
class _Coding:
    """Name the items by their codes among all of the query."""

    items: Labels

    def __call__(self, share: Share) -> Share:
        return share.coded(self.items)


@dataclass(frozen=True, eq=False)
class _Inner:
    """Keep the pairs within strong blocks."""

    block: NDArray[np.int32]

    def __call__(self, share: Share) -> Share:
        return share.inner(self.block)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Which items belong together; what parts connect is connected."""

    block: NDArray[np.int32]

    def __add__(self, other: Blocks) -> Blocks:
        size, begin = len(self.block), int(self.block.max(initial=-1)) + 1
        item, ends = np.arange(size), (self.block.astype(np.int64), other.block.astype(np.int64) + begin)
        row, column = np.append(item, item), size + np.append(*ends)
        nodes = size + begin + int(other.block.max(initial=-1)) + 1
        graph = csr_array((np.ones(2 * size, np.int8), (row, column)), shape=(nodes, nodes))
        joined = connected_components(graph, directed=False)[1][:size]
        return Blocks(np.unique(joined, return_inverse=True)[1].astype(np.int32))


def links_of_share(share: Share) -> Sums:
    """What its wins connect strongly, who ever won and lost, and the judgments of each item."""
    strong, won, lost = share.links()
    ever = {"won": won.astype(np.int64), "lost": lost.astype(np.int64)}
    return Sums(strong=Blocks(strong.astype(np.int32)), touched=share.touched, **ever)


@dataclass(frozen=True, eq=False)
class _Between:
    """Wins between blocks."""

    block: NDArray[np.int32]

    def __call__(self, share: Share) -> Sums:
        return Sums(crossing=share.between(self.block))


@dataclass(frozen=True, eq=False)
class Information:
    """The negative Hessian at some scores."""

    score: Floats

    def __call__(self, share: Share) -> Sums:
        return Sums(cells=Cells(share.information(self.score)).checked())


@dataclass(frozen=True, eq=False)
class _At:
    """The gradient's part at some scores, and the Hessian's diagonal; or ``whole``, too."""

    score: Floats
    whole: bool

    def __call__(self, share: Share) -> Sums:
        pull, degree = share.slopes(self.score)
        return Sums(pull=pull, degree=degree, **(Information(self.score)(share) if self.whole else {}))


@dataclass(frozen=True, eq=False)
class _Times:
    """The Hessian at some scores times a vector."""

    score: Floats
    along: Floats

    def __call__(self, share: Share) -> Sums:
        return Sums(image=share.image(self.score, self.along))


@dataclass(frozen=True, eq=False)
class MiddleOfShares:
    """Σ u uᵀ over judgments, or cells of who made them, u the gradient at some scores of what one says; how many cells.

    By the numbers of the columns of which they are the cells; none: over judgments.
    """

    score: Floats
    ways: tuple[Ways, ...] = ((),)

    def __call__(self, share: Drawn) -> Sums:
        found = Sums()
        for way in self.ways:
            cell, found["number", way] = share.whose.cells(way)
            found["cells", way] = Cells(share.middle(self.score, cell)).checked()
        return found


@dataclass(frozen=True)
class _Number:
    """How many labels there are of who made the judgments, by one of the columns."""

    way: int

    def __call__(self, share: Drawn) -> Sums:
        return Sums(number=share.whose.cells((self.way,))[1])


@dataclass(frozen=True, eq=False)
class Holding:
    """The lists that hold some of the items; who made them by one of the columns."""

    some: NDArray[np.bool_]
    items: Labels
    way: int | None = None

    def __call__(self, share: Share) -> Sums:
        found = share.holding(self.some, self.items, self.way) if isinstance(share, Drawn) else None
        return Sums(held=Held(found, LISTS).checked())


# -- on the driver -------------------------------------------------------------------------------------------------
def together(
    judged: JudgedQueries, label: Any, of: Callable[[Preferences], Any], each: int = SHARE, whose: str | None = None
) -> tuple[DataFrame, int, int]:
    """Bring the rows of each pair, or list, of a query to one share and keep what is made of it; how many shares and
    tasks. ``each``: distinct judgments (rows, of lists) of a share, about; ``whose``: all lists that have the same in
    this column come to one share.
    """
    if whose is not None:
        return shared_out(judged, label, of, fn.col(whose), each=each)
    if judged.compared:
        one, other = (fn.col(f"`{role}`") for role in judged.sides)
        return shared_out(judged, label, of, fn.least(one, other), fn.greatest(one, other), each=each)
    return shared_out(judged, label, of, *(fn.col(key) for key in KEYS if key in judged.frame.columns), each=each)


def shared_out(
    judged: JudgedQueries, label: Any, of: Callable[[Preferences], Any], *together: Any, each: int = SHARE
) -> tuple[DataFrame, int, int]:
    """Bring the rows of a query with equal values in the columns ``together`` to one share, as ``together`` does."""
    frame = judged.frame if label is None else judged.frame.where(fn.col("query") == fn.lit(label))
    number = dict(zip(judged.large, judged.large_sizes, strict=True))[label]
    shares = -(-number // min(each, judged.most))
    tasks = min(shares, TASKS * parallelism(judged.session))
    bucket = fn.pmod(fn.xxhash64(*together), fn.lit(shares)).cast("int")
    packing = partial(spread, roles=judged.frame.columns, counting=judged.compared, by_query=False)
    packed = frame.withColumn(BUCKET, bucket).mapInArrow(packing, from_arrow_schema(PACKED))
    making = _Making(judged.checks, 2 * SHARE, of)
    made = packed.repartition(tasks, BUCKET).groupBy(BUCKET)
    found = made.applyInArrow(lambda key, rows: making(key, rows), from_arrow_schema(PIECES))
    return found.persist(StorageLevel.MEMORY_AND_DISK), shares, tasks


@dataclass(eq=False)
class Divided:
    """The shares of a query, and of each item what is known of it; to be freed by ``forget``."""

    frame: DataFrame
    shares: int
    tasks: int
    query: Labels = field(init=False)
    items: Labels = field(init=False)
    judgments: int = field(init=False)
    links: Connectivity = field(init=False)
    touched: Ints = field(init=False)
    """Judgments of each item."""
    passes: int = 0
    """Over all pairs or lists."""
    by: str = "pairs"
    """What it is divided by."""
    last: bool = False
    """Whether rankings have the items that they leave out in last place."""
    named: bool = True
    """Whether the log names its queries."""
    columns: tuple[str, ...] = ()
    """Of clusters, all judgments of which lie in one share, those of the first."""
    divide: Callable[[int], tuple[DataFrame, int, int]] | None = None
    """Divide the query by another of these columns."""
    others: dict[int, Divided] = field(default_factory=dict)
    """The query divided by other columns, once that was needed."""
    prepared: Callable[[Share], Share] | None = None
    """What every share was changed by once all items were known."""

    @classmethod
    def of(
        cls,
        judged: JudgedQueries,
        label: Any,
        kept: type[Share] = Pairs,
        *,
        linked: bool = True,
        cut: bool = False,
        clusters: bool = False,
    ) -> Divided | None:
        """Count the judgments of a query in shares, each ``kept`` as such; None where it has none.

        ``linked``: whether to learn what connects the items; ``cut``: whether lists as shown end at their last click;
        ``clusters``: whether the lists of a cluster have to be together, where there are clusters.

        Errors: as of any task; TooMuch where rankings, with all that they leave out in last place, are too long.
        """
        whose = [role for role in CLUSTERS if clusters and role in judged.frame.columns]
        last, each = judged.checks.unranked == "last", SHARE
        of: Callable[[Preferences], Share] = partial(_examined, kept=kept) if cut else kept.of
        if last:
            judged = replace(judged, checks=replace(judged.checks, unranked=None))
            of, each = partial(Ballots.of, kept=kept), SHARE // 8

        def divide(way: int) -> tuple[DataFrame, int, int]:
            return together(judged, label, of, each, whose[way] if whose else None)

        self = cls(*divide(0))
        self.last, self.divide, self.named = last, divide, label is not None
        self.columns = judged.checks.layout.clusters if len(whose) > 1 else tuple(whose)
        self.by = "pairs" if judged.compared else "lists"
        try:
            return self if self.look(linked) else None
        except BaseException:
            self.forget()
            raise

    def look(self, linked: bool = True) -> bool:
        """Learn what there is, and what connects the items; False, and nothing is kept, where there is nothing."""
        with stage(f"counting {self.by}"):
            found = self.sums(_labels)
        if not found:
            self.forget()
            return False
        self.query, self.items, self.judgments = found["queries"].labels, found["items"].labels, found["judgments"]
        if self.last and self.judgments * len(self.items) > ENTRIES * self.shares:
            raise TooMuch
        with stage("what connects the items"):
            self.change(_Coding(self.items))
            if linked:
                self.link()
        return True

    def changed(self, change: Callable[[Share], Share]) -> DataFrame:
        """All shares, each changed."""
        return changed(self.frame, change)

    def change(self, change: Callable[[Share], Share]) -> None:
        """Change every share."""
        before, self.frame = self.frame, self.changed(change)
        self.sums(_nothing)
        before.unpersist()

    def prepare(self, change: Callable[[Share], Share]) -> None:
        """Change every share, those by other columns, too, once they are needed."""
        self.change(change)
        self.prepared = change

    def link(self) -> None:
        """Learn what connects the items."""
        found = self.sums(links_of_share)
        block = found["strong"].block.astype(np.int64)
        sorter = np.argsort(block, kind="stable")
        runs = Ragged.runs(block[sorter])
        after = np.append(sorter[1:], sorter[:1])
        after[runs.start[1:] - 1] = sorter[runs.first]  # each block a cycle, which connects as all of its wins do
        several = runs.spread(runs.sizes) > 1
        source, target = sorter[several], after[several]
        if len(runs.sizes) > 1:
            between = self.sums(_Between(block.astype(np.int32)))["crossing"]
            source, target = np.append(source, between.source), np.append(target, between.target)
        size = len(self.items)
        links = connected(Ragged(np.array([0, size])), source.astype(np.int64), target.astype(np.int64))
        self.links = replace(links, won=found["won"] > 0, lost=found["lost"] > 0)
        self.touched = found["touched"]

    def sums(self, work: Work) -> Sums:
        """Do a piece of work on every share and add up."""
        self.passes += 1
        return summed(self.frame, work, self.tasks)

    def fitted(self, *, prior: float = 0.01, tolerance: float = 1e-10, max_iterations: int = 100) -> Fitted:
        """The scores that maximise the likelihood, as ``fit_sparse`` finds them in memory."""
        check_prior(prior)
        apart = np.flatnonzero(self.links.separated)
        if prior == 0 and len(apart):
            whose = f" of {self.what}" if self.named else ""
            limits = no_limits(self.links, apart, lambda nodes: few(self.items.take(nodes).to_pylist()))
            raise NoMaximumLikelihood(f"the maximum likelihood{whose} does not exist: {limits}. ", *HELP)
        with stage("fitting scores"):
            problem = pairless(len(self.items), self.links.component, prior)
            fit = fit_system(problem, tolerance, max_iterations, lambda one: _System(one, self))
        return Fitted(fit.score, int(fit.status[0]), int(fit.iterations[0]), float(fit.gradient[0]))

    def scores(self, **options: Any) -> Scores:
        """The same, as a structure returns them."""
        fit, none = self.fitted(**options), np.zeros(1)
        return Scores(fit.score, self.links.component, np.array([fit.status], np.int8), none.astype(np.int64), none)

    def within_blocks(self) -> Divided:
        """The pairs within strong blocks alone; to be freed by ``forget``."""
        inner = copy(self)
        inner.frame, inner.others = self.changed(_Inner(self.links.block.astype(np.int32))), {}
        return inner

    def of_blocks(self, *, tolerance: float = 1e-10, max_iterations: int = 100, **_: Any) -> tuple[Floats, bool]:
        """Scores of each strong block by its own pairs alone, mean 0, and whether the fit stopped before its end."""
        inner = self.within_blocks()
        try:
            problem = pairless(len(self.items), self.links.block, 0.0)
            fit = fit_system(problem, tolerance, max_iterations, lambda one: _System(one, inner))
        finally:
            inner.forget()
        return fit.score, int(fit.status[0]) == Status.STOPPED

    def forget(self) -> None:
        """Free what is kept."""
        for shares in (self, *self.others.values()):
            shares.frame.unpersist()

    def by_column(self, way: int) -> Divided:
        """The query divided by another of the columns of clusters."""
        if way == 0 or self.divide is None:
            return self
        if way not in self.others:
            self.others[way] = type(self)(*self.divide(way))
            self.others[way].change(_Coding(self.items))
            if self.prepared is not None:
                self.others[way].change(self.prepared)
        return self.others[way]

    @cached_property
    def numbers(self) -> list[int]:
        """Clusters of each column."""
        return [self.by_column(way).sums(_Number(way))["number"] for way in range(len(self.columns))]

    @property
    def what(self) -> str:
        """The query by its name."""
        return f"query {self.query[0]!r}" if self.named and self.query[0] not in (None, "") else "the log"

    @property
    def said(self) -> str:
        """How it was done."""
        return (
            f"{self.what}: {counted(self.judgments, 'judgments')} of {counted(len(self.items), 'items')}, divided "
            f"among tasks by their {self.by} ({self.shares:,} shares, {self.passes:,} passes)"
        )


DIVISIBLE = {"prior", "ties", "interval", "quasi", "covariates"} | {
    "level", "seed", "replicates", "min_judgments", "across_components", "reference", "progress",
}  # fmt: skip
"""What scores of a divided query may be asked with."""
TIES = {"bradley-terry": "half", "plackett-luce": "any-order"}
"""How their ties are treated, by structure: without parameters of their own."""


def divisible(judged: JudgedQueries, structure: Any, options: Mapping[str, Any]) -> bool:
    """Whether scores of one query are found from sums over its pairs or lists: Bradley–Terry's and Plackett–Luce's."""
    if not isinstance(structure, str) or structure not in TIES:
        return False
    known = DIVISIBLE | ({"tolerance", "max_iterations"} if structure == "bradley-terry" else set())
    beside = structure == "bradley-terry" and judged.checks.with_covariates(options)
    plain = options.get("ties", TIES[structure]) == TIES[structure] and not beside
    others = {name for name, value in options.items() if value is not None and name not in known}
    read = judged.kind in find_structure(structure).kinds
    return plain and read and not others


def divided(
    judged: JudgedQueries, label: Any, structure: str, interval: str = "none", *, cut: bool = False
) -> Divided | None:
    """The shares of a query that no task can hold, to be freed; None without judgments. Errors: TooMuch.

    ``cut``: whether lists as shown end at their last click.
    """
    kept: type[Share] = Pairs
    if not judged.compared:
        pairs = Pairs if interval == "none" else ListedPairs
        kept = Listed if structure == "plackett-luce" else pairs
    return Divided.of(judged, label, kept, cut=cut, clusters=interval in ("sandwich", "bootstrap"))


def options_of_fit(options: Mapping[str, Any]) -> dict[str, Any]:
    """What the fit of a divided query takes of the options of a structure."""
    return {name: options[name] for name in ("prior", "tolerance", "max_iterations") if name in options}


def pairless(items: int, component: NDArray[np.integer[Any]], prior: float) -> Problem:
    """What is maximised of one graph whose pairs lie elsewhere."""
    start, none, no = np.array([0, items]), np.zeros(0, np.int64), np.zeros(0)
    together = component.astype(np.int64)
    return Problem(start, np.zeros(2, np.int64), none, none, no, no, None, None, together, prior)


def alike(columns: Sequence[str], numbers: Sequence[int]) -> str:
    """What intervals of judgments in clusters allow for."""
    which = " and ".join(f"the same {name} ({number:,})" for name, number in zip(columns, numbers, strict=True))
    return f"intervals allow for judgments of {which} being alike"


@dataclass(frozen=True)
class Fitted:
    """Where a fit ended."""

    score: Floats
    status: int
    iterations: int
    gradient: float

    @property
    def stopped(self) -> bool:
        """Whether before convergence."""
        return self.status == Status.STOPPED


class SummedSystem(System):
    """Newton's equations of graphs whose pairs or lists lie in shares; conjugate gradients to the end."""

    def slopes(self, s: Floats) -> tuple[Floats, Floats]:
        """What the pairs add to the gradient, its sign changed, and to the diagonal of the Hessian."""
        raise NotImplementedError

    def image(self, xs: Floats) -> Floats:
        """The Hessian of the pairs, where ``slopes`` was last, times a vector."""
        raise NotImplementedError

    def evaluate(self, s: Floats, b: Floats) -> None:
        super().evaluate(s, b)  # without pairs: the prior alone
        pull, degree = self.slopes(s)
        self.slope_s = self.slope_s - pull
        self.diagonal = degree + self.problem.prior
        self.settle()

    def apply(self, xs: Floats, xb: Floats) -> tuple[Floats, Floats]:
        return self.image(xs) + self.problem.prior * xs, xb

    def spread(self, ds: Floats, db: Floats) -> Floats:
        return self.spread_bound(ds, db)  # at least the range over the pairs

    def newton_step(self, precision: Floats) -> tuple[Floats, Floats]:
        patience = np.full(self.problem.graphs, 2_000)
        xs, xb, open_ = self.conjugate_gradients(-self.slope_s, -self.slope_b, precision, patience)
        self.unfinished[:] = open_
        return self.centre(xs), xb


class _System(SummedSystem):
    """Of the one graph of a divided query: with few items Newton's equations are solved as they are."""

    def __init__(self, problem: Problem, divided: Divided) -> None:
        super().__init__(problem)
        self.divided = divided
        self.whole = len(divided.items) <= DIRECT
        self.component = problem.component

    def slopes(self, s: Floats) -> tuple[Floats, Floats]:
        self.score = s.copy()
        found = self.divided.sums(_At(s, self.whole))
        self.cells = found["cells"].matrix if self.whole else None
        return found["pull"], found["degree"]

    def image(self, xs: Floats) -> Floats:
        return np.asarray(self.divided.sums(_Times(self.score, xs))["image"], np.float64)

    def newton_step(self, precision: Floats) -> tuple[Floats, Floats]:
        if self.cells is None:
            return super().newton_step(precision)
        scale = 1.0 / np.sqrt(self.diagonal)
        matrix = self.cells.toarray()
        np.fill_diagonal(matrix, self.diagonal)
        matrix += (self.component[:, None] == self.component) * self.diagonal.mean()  # the shift, which is taken out
        try:
            factor = cho_factor(scale * matrix * scale[:, None], lower=True)
        except LinAlgError:  # counts so large that the prior is lost beside them
            return super().newton_step(precision)
        xs = scale * cho_solve(factor, -scale * self.slope_s)
        self.unfinished[:] = False
        return self.centre(xs), np.zeros_like(self.slope_b)

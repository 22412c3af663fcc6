"""Covariance matrices of the scores of small graphs, a stack of equal sizes at a time.

With A = H + λI (λ on the scores) and the contrasts C = I − 1bᵀ of ``contrasts``, the covariance is C A⁻¹ Cᵀ (Hessian)
or C A⁻¹ M A⁻¹ Cᵀ (sandwich), M = Σ over clusters u_c u_cᵀ with u_c the gradient of the cluster's log-likelihood (Huber
1967; White, Econometrica 50, 1982; clustered: Liang & Zeger, Biometrika 73, 1986), times K/(K − 1), K clusters. Since
H 1 = 0 within a component, α 1 1ᵀ may be added to A: it moves the direction of the free shift (and of the prior's
1/(nλ)) only, and C removes that.

Quasi-standard errors: one number per item from which the standard error of any difference can be had.

Quasi-variances q minimise Σ_{i<j} (log(q_i + q_j) − log v_ij)², v_ij the variance of s_i − s_j; then √(q_i + q_j) is
about the standard error of the difference, whatever the reference item (Firth & de Menezes, Biometrika 91, 2004, the
criterion (1) of §2). With three items the fit is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array, vstack
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from concordant.errors import Setting, UsageError, few
from concordant.preferences.connectivity import Connectivity
from concordant.preferences.counts import rows_alike
from concordant.preferences.graphs import Batch
from concordant.preferences.ragged import Grouped, Ragged
from concordant.ranking.contrasts import Gauge
from concordant.ranking.curvature import Curvature
from concordant.ranking.elimination import FAR, far_apart

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
STACK = 1 << 17
"""Numbers held at once in a stack of matrices, so that it stays in the cache."""
CROSSED = 3
"""Columns of clusters that one sandwich heeds, at most: each more doubles the intersections."""
ROUNDING = 1e-10
"""Share of the sum of absolute terms below which a variance is rounding, a safe distance above it."""
NEGATIVE = 1e-9
"""Share of the largest variance beyond which a negative one is more than rounding: there is no covariance then."""
SILENT = 1e-8
"""Variance relative to the model's, of an item alone, below which a sandwich has no residuals to go by."""
VOTES = 1 << 20
"""Judgments with clusters whose gradients are added at once."""
DENSE, LONG = 0.1, 1e6
"""Share of entries that are not 0, and multiplications, from which a root is multiplied as a dense matrix."""
LEAF = 12
"""Matrices up to this size are inverted by the library."""


def t_quantile(share: Any, freedom: Any) -> Floats:
    """Quantiles of Student's t law; where the degrees of freedom are infinite, of the normal law.

    >>> t_quantile(0.975, np.array([7.0, np.inf])).round(3).tolist()
    [2.365, 1.96]
    """
    known = np.where(np.isinf(freedom), 1.0, freedom)
    return np.asarray(np.where(np.isinf(freedom), ndtri(share), stdtrit(known, share)), np.float64)


def two_sided(t: Any, freedom: Any) -> Floats:
    """Chance of |T| ≥ |t|, T with Student's t law (the normal one where the degrees of freedom are infinite)."""
    known = np.where(np.isinf(freedom), 1.0, freedom)
    tail = np.where(np.isinf(freedom), ndtr(-np.abs(t)), stdtr(known, -np.abs(t)))
    return np.asarray(2.0 * tail, np.float64)


@dataclass(frozen=True, eq=False)
class Meat:
    """The middle of the sandwich: one row for each cluster of each graph, M = rootᵀ root [− minusᵀ minus].

    Judgments that depend on each other in two ways (who judged, what was asked) are crossed: M = M_A + M_B − M_AB, AB
    the cells; of three ways all intersections, with alternating signs (Cameron, Gelbach & Miller, Journal of Business
    & Economic Statistics 29, 2011, (2.8)–(2.13)).
    """

    root: csr_array
    clusters: Indices
    """Number of clusters (judgments where none are given) of each graph; of several ways the least."""
    minus: csr_array | None = None
    cells: csr_array | None = None
    """The root of the finest cells alone, where clusters are crossed."""
    clustered: bool = False
    graph: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    """Of each parameter."""

    @classmethod
    def of(cls, batch: Batch, curvature: Curvature) -> Meat:
        """Add the gradients of each cluster's judgments; a judgment held c times counts as c draws."""
        if vars(curvature).get("_meat", (None,))[0] is not batch:
            vars(curvature)["_meat"] = batch, cls._of(batch, curvature)
        found: Meat = vars(curvature)["_meat"][1]
        return found

    @classmethod
    def _of(cls, batch: Batch, curvature: Curvature) -> Meat:
        if curvature.meat is not None:
            made: Meat = curvature.meat()
            return made
        graph = np.concatenate([batch.owner, np.asarray(curvature.extra_owner, np.int64)])
        if curvature.by_kind and batch.kinds is not None:
            kinds = batch.kinds
            scale = np.sqrt(kinds.units / np.maximum(kinds.units - 1, 1))[kinds.graph]
            alone = len(batch.prefs.queries) == 1
            root = _sums(csr_array(curvature.gradients(kinds.batch)), kinds.who, alone)
            root.data *= np.repeat(scale, np.diff(root.indptr))
            return cls(root, kinds.units, clustered=True, graph=graph)
        gradients = csr_array(curvature.contributions)
        ways = batch.prefs.cluster_ways
        if not ways:
            draws = batch.judgments
            scale = np.sqrt(batch.multiplicity * (draws / np.maximum(draws - 1, 1))[batch.graph])
            return cls(csr_array(diags_array(scale) @ gradients), draws, graph=graph)
        if len(ways) > CROSSED:
            names = few(batch.prefs.cluster_columns)
            raise UsageError(
                f"intervals heed up to {CROSSED} columns of clusters, not {names}: take fewer (",
                Setting("cluster"),
                ")",
            )
        least = np.full(len(batch), np.iinfo(np.int64).max)
        roots: tuple[list[csr_array], list[csr_array]] = [], []
        for number in range(1, len(ways) + 1):
            for chosen in combinations(ways, number):
                gather, draws = _gathered(batch, chosen)
                roots[number % 2 == 0].append(csr_array(gather @ gradients))
                least = np.minimum(least, draws) if number == 1 else least
        added, taken = (csr_array(vstack(part)) if part else None for part in roots)
        assert added is not None
        cells = None if taken is None else csr_array(gather @ gradients)
        return cls(added, least, taken, cells, clustered=True, graph=graph)

    @classmethod
    def of_sums(cls, matrix: Floats, clusters: int) -> Meat:
        """The meat of one graph, given Σ u_c u_cᵀ over its clusters, shape (parameters, parameters), and their number.

        Its root is that of a matrix of correlations, so that parameters of few judgments lose nothing beside others.
        """
        size = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
        known = np.where(size > 0, size, 1.0)
        values, vectors = np.linalg.eigh(matrix / known / known[:, None])
        root = (vectors * np.sqrt(np.maximum(values, 0.0))).T * size
        root *= np.sqrt(clusters / max(clusters - 1, 1))
        return cls(csr_array(root), np.array([clusters]), clustered=True, graph=np.zeros(len(matrix), np.int64))

    def times(self, change: Any) -> Meat:
        """The meat of parameters that are a linear function of these."""
        minus, cells = (None if part is None else csr_array(part @ change) for part in (self.minus, self.cells))
        return replace(self, root=csr_array(self.root @ change), minus=minus, cells=cells)

    @property
    def freedom(self) -> Floats:
        """Degrees of freedom of each graph: clusters − 1, the least of several ways; infinite without clusters."""
        return np.where(self.clustered, np.maximum(self.clusters - 1, 1).astype(np.float64), np.inf)

    def square(self, side: Floats) -> float:
        """xᵀMx; where a difference of ways loses it, half of what they have together."""
        whole = float(((self.root @ side) ** 2).sum())
        return whole if self.minus is None else max(whole - float(((self.minus @ side) ** 2).sum()), whole / 2)

    def matrix(self) -> csr_array:
        """M, parameters by parameters."""
        return self._matrix

    @cached_property
    def _matrix(self) -> csr_array:
        whole = _square(self.root, self.graph)
        return whole if self.minus is None else csr_array(whole - self.minus.T @ self.minus)


def _square(root: csr_array, graph: Indices) -> csr_array:
    """rootᵀ root, by dense matrices for graphs whose rows are long: an entry's bits do not depend on other graphs."""
    sizes = np.diff(root.indptr).astype(np.int64)
    there = np.flatnonzero(sizes)
    graphs = int(graph.max(initial=-1)) + 1
    owner = np.zeros(len(sizes), np.int64)
    owner[there] = graph[root.indices[root.indptr[there]]]
    rows, entries, work = (np.bincount(owner[there], x, graphs) for x in (None, sizes[there], sizes[there] ** 2.0))
    large = (work > LONG) & (entries > DENSE * rows * np.bincount(graph, minlength=graphs))
    if not large.any():
        return csr_array(root.T @ root)
    light = csr_array(root[~large[owner]])
    found = [csr_array(light.T @ light).tocoo()]
    for one in np.flatnonzero(large):
        own = np.flatnonzero(graph == one)
        dense = root[owner == one][:, own].toarray()
        part = coo_array(dense.T @ dense)
        found.append(coo_array((part.data, (own[part.row], own[part.col])), shape=found[0].shape))
    data, row, column = (np.concatenate([getattr(part, name) for part in found]) for name in ("data", "row", "col"))
    return coo_array((data, (row, column)), shape=found[0].shape).tocsr()


def _sums(gradients: csr_array, who: csr_array, alone: bool) -> csr_array:
    """whoᵀ gradients, units by parameters; of one graph ``alone`` that is small beside who, some votes at a time."""
    parameters, units = gradients.shape[1], who.shape[1]
    if parameters * units > who.nnz or not alone:
        return csr_array((csr_array(gradients.T) @ who).T)
    found = np.zeros((parameters, units))
    for some in Ragged.runs(who.indptr[1:] // VOTES).slices:
        found += (csr_array(gradients[some].T) @ who[some]).toarray()
    columns = np.tile(np.arange(parameters, dtype=np.int32), units)
    return csr_array((found.T.ravel(), columns, np.arange(units + 1) * parameters), shape=(units, parameters))


def _gathered(batch: Batch, ways: Sequence[NDArray[np.int32]]) -> tuple[csr_array, Indices]:
    """What adds up the distinct judgments of each cell, times √(K/(K − 1)), and the cells K of each graph."""
    cells, row = rows_alike(batch.graph, *(way[batch.judgment] for way in ways))
    draws = np.bincount(batch.graph[cells], minlength=len(batch)).astype(np.int64)
    scale = np.sqrt(draws / np.maximum(draws - 1, 1))[batch.graph[cells]]
    held = np.arange(len(row))
    return csr_array((batch.multiplicity * scale[row], (row, held)), shape=(len(cells), len(row))), draws


@dataclass(frozen=True, eq=False)
class Units(Grouped):
    """The parameters cut into sets that do not influence each other: graphs, or components of large graphs."""

    start: Indices
    """Parameters of unit u are order[start[u]:start[u + 1]]: its nodes, then its further coefficients."""
    order: Indices
    nodes: Indices
    """Number of nodes of each unit."""
    graph: Indices

    @classmethod
    def of(cls, batch: Batch, curvature: Curvature, gauge: Gauge, *, whole: int | None = None) -> Units:
        """Graphs of at most ``whole`` parameters (all when None) or with coefficients are units, else components."""
        extra_owner = np.asarray(curvature.extra_owner, np.int64)
        extras = np.bincount(extra_owner, minlength=len(batch))
        size = batch.sizes
        first = np.full(len(batch), gauge.groups, np.int64)
        np.minimum.at(first, batch.owner, gauge.group)  # components are numbered graph by graph
        joined = (extras > 0) | (size <= (len(gauge.group) if whole is None else whole))
        number = np.where(joined[batch.owner], first[batch.owner], gauge.group)
        number = np.concatenate([number, first[extra_owner]])
        sorter = np.argsort(number, kind="stable")
        labels, begin = np.unique(number[sorter], return_index=True)
        start = np.append(begin, len(sorter)).astype(np.int64)
        nodes = np.bincount(number[: len(gauge.group)], minlength=gauge.groups + 1)[labels]
        owner = np.concatenate([batch.owner, extra_owner])
        return cls(start, sorter.astype(np.int64), nodes.astype(np.int64), owner[sorter[begin]])

    @property
    def size(self) -> Indices:
        """Number of parameters of each unit."""
        return self.groups.sizes

    def only(self, kept: NDArray[np.bool_]) -> Units:
        """The same units with some of their parameters."""
        some, number = kept[self.order], self.groups.owner
        size = np.bincount(number[some], minlength=len(self.nodes))
        within = self.groups.place < self.groups.spread(self.nodes)
        nodes = np.bincount(number[some & within], minlength=len(self.nodes)).astype(np.int64)
        return Units(Ragged.of_sizes(size).start, self.order[some], nodes, self.graph)

    def components(self, gauge: Gauge) -> Indices:
        """Number of components of the nodes of each unit."""
        own = np.repeat(np.arange(len(self.size)), self.size)
        is_node = self.groups.place < np.repeat(self.nodes, self.size)
        found = np.unique(own[is_node] * gauge.groups + gauge.group[self.order[is_node]]) // max(gauge.groups, 1)
        return np.bincount(found, minlength=len(self.size)).astype(np.int64)

    def parameters(self, unit: int) -> Indices:
        """Parameters of one unit."""
        return self.order[self.start[unit] : self.start[unit + 1]]


def far_units(units: Units, curvature: Curvature) -> NDArray[np.bool_]:
    """Return which units hang together by weights so far apart that a dense inverse would lose the small ones."""
    hessian = csr_array(curvature.hessian)
    far = np.zeros(len(units.size), bool)
    if hessian.nnz == 0:
        return far
    size = np.abs(hessian.data)
    rows = Ragged(hessian.indptr)
    low = units.groups.least(rows.least(size, np.inf)[units.order])
    high = units.groups.most(rows.most(size)[units.order])
    for unit in np.flatnonzero((low <= FAR * high) & (curvature.prior <= FAR * high) & (units.nodes > 1)):
        ids = units.parameters(int(unit))[: units.nodes[unit]]
        part = csr_array(hessian[ids][:, ids]).tocoo()
        above = part.row < part.col
        weight = np.maximum(-part.data[above], 0.0)
        far[unit] = far_apart(part.row[above], part.col[above], weight, curvature.prior, len(ids))
    return np.asarray(far, bool)


def stacks(
    units: Units, curvature: Curvature, gauge: Gauge, meat: Meat | None, chosen: Indices
) -> Iterator[tuple[Indices, int, Floats]]:
    """Yield (parameters (G, p), nodes among them n, covariance (G, p, p)), the chosen units of one size at a time.

    Parameters: the first n of each row are nodes. NaN where float64 has no covariance (strengths too far apart).
    Memory is bounded by ``STACK`` numbers or one unit's matrix.
    """
    whole = None if meat is None or not len(chosen) else meat.matrix()
    cells = None if meat is None or meat.cells is None else csr_array(meat.cells.T @ meat.cells)
    size, nodes = units.size[chosen], units.nodes[chosen]
    several = units.components(gauge)[chosen] > 1  # these are centred by other products
    shape = 2 * (size * (int(size.max(initial=0)) + 1) + nodes) + several
    for kind in np.unique(shape):
        same = chosen[shape == kind]
        p, n = int(units.size[same[0]]), int(units.nodes[same[0]])
        step = max(1, STACK // p**2)
        for begin in range(0, len(same), step):
            part = same[begin : begin + step]
            ids = units.order[units.start[part][:, None] + np.arange(p)]
            bread = _anchored(_dense(curvature.hessian, ids), ids[:, :n], gauge, curvature.prior)
            inverse, bend = _inverses(bread), np.einsum("gii->gi", bread)
            middle = None if whole is None else _dense(whole, ids)
            matrix = _contrasts(inverse, middle, ids[:, :n], gauge, bend)
            if cells is not None:
                matrix = _semidefinite(matrix, _contrasts(inverse, _dense(cells, ids), ids[:, :n], gauge, bend))
            own = np.einsum("gii->gi", matrix)
            matrix[(own < -NEGATIVE * own.max(axis=1)[:, None]).any(axis=1)] = np.nan
            yield ids, n, matrix


def _semidefinite(matrix: Floats, cells: Floats) -> Floats:
    """A stack of V_A + V_B − V_AB; one that has a negative eigenvalue becomes V_AB + (V_A + V_B − 2V_AB)₊.

    With negative eigenvalues set to 0 alone (Cameron, Gelbach & Miller 2011, §2.3) an interval may have no width; what
    the cells say by themselves is the least that judgments of common judges and prompts leave. NaN stays.
    """
    known = np.asarray(np.isfinite(matrix).all(axis=(1, 2)))
    least = np.linalg.eigvalsh(np.where(known[:, None, None], matrix, 0.0))[:, 0]
    bad = np.flatnonzero(known & (least < -ROUNDING * np.einsum("gii->gi", matrix).max(axis=1, initial=0.0)))
    lost = ~np.isfinite(cells[bad]).all(axis=(1, 2))  # what is left of the cells is rounding
    matrix[bad[lost]] = np.nan
    bad = bad[~lost]
    values, vectors = np.linalg.eigh(matrix[bad] - cells[bad])
    matrix[bad] = cells[bad] + (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.swapaxes(1, 2)
    return matrix


def _dense(matrix: csr_array, ids: Indices) -> Floats:
    """The blocks of a sparse matrix on the rows of ids, shape (G, p, p)."""
    graphs, size = ids.shape
    local = np.zeros(matrix.shape[0], np.int64)
    local[ids] = np.arange(size)
    rows = matrix[ids.ravel()].tocoo()
    dense = np.zeros((graphs * size, size))
    dense[rows.row, local[rows.col]] = rows.data
    return dense.reshape(graphs, size, size)


def _anchored(hessian: Floats, nodes: Indices, gauge: Gauge, prior: float) -> Floats:
    """H + λI + α 1 1ᵀ in each component, α = the mean of the component's diagonal over its size."""
    n = nodes.shape[1]
    diagonal = np.einsum("gii->gi", hessian)
    diagonal[:, :n] += prior
    total = np.zeros(gauge.groups)
    size = np.bincount(gauge.group, minlength=gauge.groups)
    np.add.at(total, gauge.group[nodes], diagonal[:, :n])
    shift = np.where(total > 0, total, size) / size.astype(float) ** 2
    group = gauge.group[nodes]
    if (group == group[:, :1]).all():
        hessian[:, :n, :n] += shift[group[:, 0]][:, None, None]
    else:
        hessian[:, :n, :n] += np.where(group[:, :, None] == group[:, None, :], shift[group][:, :, None], 0.0)
    return hessian


def _inverses(matrix: Floats) -> Floats:
    """Inverses of a stack of positive definite matrices, scaled to unit diagonal first."""
    scale = 1.0 / np.sqrt(np.einsum("gii->gi", matrix))
    scale = scale[:, :, None] * scale[:, None, :]
    return np.asarray(_halved(matrix * scale) * scale)


def _halved(matrix: Floats) -> Floats:
    """Inverses by halves: of [[A, B], [Bᵀ, D]] from those of A and of D − BᵀA⁻¹B.

    Products only, down to small blocks: a threaded library's inverses of many small matrices wait for cores.
    """
    size = matrix.shape[1]
    if size <= LEAF:
        try:
            return np.asarray(np.linalg.inv(matrix), np.float64)
        except np.linalg.LinAlgError:  # singular in floating point: NaN, which no interval comes from
            if len(matrix) == 1:
                return np.full(matrix.shape, np.nan)
            return np.concatenate([_halved(matrix[g : g + 1]) for g in range(len(matrix))])
    half = size // 2
    beside = matrix[:, :half, half:]
    first = _halved(matrix[:, :half, :half])
    carried = first @ beside
    inverse = np.empty(matrix.shape)
    last = _halved(matrix[:, half:, half:] - beside.swapaxes(1, 2) @ carried)
    inverse[:, half:, half:] = last
    corner = -(carried @ last)
    inverse[:, :half, half:] = corner
    inverse[:, half:, :half] = corner.swapaxes(1, 2)
    inverse[:, :half, :half] = first - corner @ carried.swapaxes(1, 2)
    return inverse


def _contrasts(inverse: Floats, middle: Floats | None, nodes: Indices, gauge: Gauge, bend: Floats) -> Floats:
    """T inverse [middle inverse] Tᵀ with T = C on the scores and 1 on the other coefficients; ``bend``: see below."""
    n = nodes.shape[1]
    group = gauge.group[nodes]
    weight = gauge.weight[nodes]
    if (group == group[:, :1]).all():
        inverse[:, :n] -= np.einsum("gi,gij->gj", weight, inverse[:, :n])[:, None, :]
        half = inverse
    else:
        mean = np.where(group[:, :, None] == group[:, None, :], weight[:, None, :], 0.0)
        half = inverse.copy()
        half[:, :n] -= mean @ inverse[:, :n]
    if middle is not None:
        return _checked(half @ middle @ half.swapaxes(1, 2), half, middle, bend)
    if (group == group[:, :1]).all():
        half[:, :, :n] -= np.einsum("gij,gj->gi", half[:, :, :n], weight)[:, :, None]
    else:
        half[:, :, :n] -= half[:, :, :n] @ mean.swapaxes(1, 2)
    return half


def _checked(matrix: Floats, half: Floats, middle: Floats, bend: Floats) -> Floats:
    """The sandwiches, NaN where strengths far apart leave nothing but rounding.

    A variance that is nothing beside the model's, by second derivatives ``bend``, has no residuals to go by.
    """
    own = np.einsum("gii->gi", middle)
    most, least = own.max(axis=1), np.where(own > 0, own, np.inf).min(axis=1)
    for g in np.flatnonzero(most > least / FAR):
        size = np.abs(half[g])
        noise = np.einsum("ij,ij->i", size @ np.abs(middle[g]), size)
        rounded, variance = ROUNDING * noise, np.diagonal(matrix[g])
        if ((rounded > variance) & ((variance + rounded) * bend[g] > SILENT)).any():
            matrix[g] = np.nan
    return matrix


def covariance(
    batch: Batch,
    curvature: Curvature,
    gauge: Gauge,
    graph: int = 0,
    *,
    method: str = "hessian",
    most: int = 6000,
) -> Floats:
    """Return the covariance matrix of the contrasts of one graph's scores, then of its other coefficients.

    Shape (p, p), p = nodes + coefficients; rows of different components are 0 to each other unless coefficients join
    them. Errors: UsageError when the graph has more than ``most`` parameters (a dense matrix would not be sensible).
    """
    units = Units.of(batch, curvature, gauge)
    unit = np.flatnonzero(units.graph == graph)
    size = int(units.size[unit].sum())
    if size > most:
        raise UsageError(f"a covariance matrix of {size:,} parameters is too large; at most {most:,} are allowed")
    if far_units(units, curvature)[unit].any():
        raise UsageError("the strengths of the judgments lie too far apart for a covariance matrix in floating point")
    meat = Meat.of(batch, curvature) if method == "sandwich" else None
    for _, _, matrix in stacks(units, curvature, gauge, meat, unit):
        return np.asarray(matrix[0])
    return np.zeros((0, 0))


MOST = 500
NOTHING = 1e-12
"""Share of the variances of two items that their difference has to have for more than rounding."""


@dataclass(frozen=True, eq=False)
class QuasiVariances:
    """Quasi-variances of n items and how well they reproduce the differences."""

    variance: Floats
    """Shape (n,); may be negative for an item (then it has no quasi-standard error), nan for fewer than two items."""
    error: Floats
    """Quasi-standard errors √variance, nan where that is negative."""
    worst: tuple[float, float]
    """Smallest and largest relative error of a difference's standard error, √(q_i + q_j)/√v_ij − 1."""
    iterations: int


def quasi_variances(covariance: Floats, *, tolerance: float = 1e-12, max_iterations: int = 100) -> QuasiVariances:
    """Return the quasi-variances of scores with this covariance matrix (of contrasts; any gauge gives the same).

    ``covariance`` has shape (n, n), n at most 500 (the criterion sums over all pairs and each step solves n equations:
    for larger sets use the standard errors against the anchors). With two items only q_1 + q_2 is determined; it is
    split evenly. Errors: UsageError for more than 500 items or a matrix that is not square.

    >>> quasi_variances(np.diag([1.0, 2.0, 4.0])).variance.round(9).tolist()
    [1.0, 2.0, 4.0]
    """
    matrix = np.asarray(covariance, np.float64)
    n = len(matrix)
    if matrix.shape != (n, n):
        raise UsageError(f"a covariance matrix is square, not of shape {matrix.shape}")
    if n > MOST:
        raise UsageError(f"quasi-variances of {n:,} items: at most {MOST} are allowed")
    if n < 2:
        none = np.full(n, np.nan)
        return QuasiVariances(none, none, (0.0, 0.0), 0)
    own = np.diagonal(matrix)
    finite = bool(np.isfinite(matrix).all())
    both = own[:, None] + own[None, :] if finite else np.zeros((n, n))
    wanted = both - 2.0 * matrix if finite else both.copy()
    nothing = wanted <= NOTHING * both
    np.fill_diagonal(wanted, 1.0)
    if nothing[~np.eye(n, dtype=bool)].any():
        raise UsageError("some difference has no positive finite variance; leave out items that are not determined")
    if n == 2:
        variance, iterations = np.full(2, wanted[0, 1] / 2), 0
    else:
        variance, iterations = _minimise(wanted, tolerance, max_iterations)
    with np.errstate(invalid="ignore"):
        error = np.sqrt(variance)
    off = ~np.eye(n, dtype=bool)
    ratio = np.sqrt((variance[:, None] + variance[None, :])[off] / wanted[off]) - 1.0
    return QuasiVariances(variance, error, (float(ratio.min()), float(ratio.max())), iterations)


def quasi_errors(
    batch: Batch, curvature: Curvature, connectivity: Connectivity, *, method: str = "hessian"
) -> tuple[Floats, Floats]:
    """Return the quasi-standard errors of all nodes, component by component, and the largest relative error of each
    graph.

    Shapes (nodes,) and (graphs,). Infinite for items that are separated or never compared; nan in graphs of more than
    500 nodes, where a difference has no variance or an infinite one, and where the quasi-variance is negative.
    """
    gauge = Gauge.of(batch.node_start, connectivity)
    units = Units.of(batch, curvature, gauge)
    chosen = np.flatnonzero((batch.sizes[units.graph] <= MOST) & ~far_units(units, curvature))
    meat = Meat.of(batch, curvature) if method == "sandwich" else None
    error = np.where(connectivity.compared & ~connectivity.separated, np.nan, np.inf)
    worst = np.full(len(batch), np.nan)
    for ids, n, matrices in stacks(units, curvature, gauge, meat, chosen):
        for nodes, matrix in zip(ids[:, :n], matrices, strict=True):
            for group in np.unique(gauge.group[nodes]):
                own = np.flatnonzero((gauge.group[nodes] == group) & np.isnan(error[nodes]))
                if len(own) < 2:
                    continue
                part = matrix[np.ix_(own, own)]
                both = np.diagonal(part)[:, None] + np.diagonal(part)[None, :]
                some = both - 2.0 * part > NOTHING * both
                if not (np.isfinite(part).all() and some[~np.eye(len(own), dtype=bool)].all()):
                    continue  # a difference without spread, or with nothing to go by
                found = quasi_variances(part)
                error[nodes[own]] = found.error
                graph = batch.owner[nodes[0]]
                worst[graph] = np.fmax(worst[graph], max(map(abs, found.worst)))
    return error, worst


def _minimise(wanted: Floats, tolerance: float, max_iterations: int) -> tuple[Floats, int]:
    """Gauss–Newton from the least-squares fit of q_i + q_j to v_ij, halving steps that do not improve."""
    n = len(wanted)
    log_wanted = np.log(wanted)
    row = wanted.sum(axis=1) - 1.0
    q = (row - row.sum() / (2 * (n - 1))) / (n - 2)
    if _both(q).min() <= 0:
        q = row / (2 * (n - 1))
    loss = _loss(q, log_wanted)
    iterations = 0
    while iterations < max_iterations:
        iterations += 1
        both = _both(q)
        rest = np.log(both) - log_wanted
        np.fill_diagonal(rest, 0.0)
        weight = 1.0 / both**2
        np.fill_diagonal(weight, 0.0)
        normal = weight + np.diag(weight.sum(axis=1))
        step = np.linalg.solve(normal, (rest / both).sum(axis=1))
        size = 1.0
        while size > 1e-8:
            new = q - size * step
            if _both(new).min() > 0 and _loss(new, log_wanted) <= loss:
                break
            size /= 2
        else:
            break
        q, loss = new, _loss(new, log_wanted)
        if np.abs(size * step).max() <= tolerance * np.abs(q).max():
            break
    return q, iterations


def _both(q: Floats) -> Floats:
    both = q[:, None] + q[None, :]
    np.fill_diagonal(both, 1.0)
    return both


def _loss(q: Floats, log_wanted: Floats) -> float:
    rest = np.log(_both(q)) - log_wanted
    np.fill_diagonal(rest, 0.0)
    return float((rest**2).sum() / 2)

"""Why items win: abilities explained by properties of the items, with what these leave unexplained.

The ability of item i is s_i = x_i'β + u_i, x_i its properties and u_i what they do not say, drawn from N(0, σ²); a
comparison of i with j is won by i with probability 1/(1 + e^−m), m = s_i − s_j + z'γ, z covariates of the comparison.
Effects u maximise the log-likelihood ℓ less λ‖u‖²/2, λ = 1/σ², Bradley and Terry's with a normal prior. σ is the one
under which the judgments are likeliest, u and the coefficients integrated out by Laplace's approximation,

    log m = ℓ − λ‖u‖²/2 + (n/2) log λ − ½ log det A − ½ log det S,

and so are the coefficients, u alone being integrated out (but for more than 3,000 items): those at the peak of all
together, penalised quasi-likelihood, are drawn to 0 where items have few judgments. Without effects of items u = 0: a
logistic regression.

With A the curvature of −ℓ by u plus λI, C that by the coefficients, B between them, S = C − B'A⁻¹B and
R = S⁻¹[−B'A⁻¹, I], the covariance of the coefficients is S⁻¹; where judgments depend on each other (clusters), carry
half ties or strengths, it is R (M + diag(λ, 0)) R' with M the sum of squared scores of independent judgments.

Source: Firth and Turner, BradleyTerry2, Journal of Statistical Software 48(9), 2012, §4; Springall, Applied Statistics
22, 1973; Breslow and Clayton, JASA 88, 1993.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.linalg import cg

from concordant.errors import CannotRank, Setting, UsageError, counted, few
from concordant.preferences.counts import rows_alike
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Preferences
from concordant.progress import stage
from concordant.ranking.comparing import p_said
from concordant.ranking.covariance import t_quantile, two_sided
from concordant.ranking.empirical_bayes import CLOSE, DENSE, log_determinant
from concordant.ranking.intervals import IntervalOptions
from concordant.ranking.problem import win_derivatives, win_probability

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
EFFECTS = ("random", "none")
STEPS, TOLERANCE = 90, 1e-8
SPREADS, TRIED, REFINED = (0.03, 5.0), 12, 6
"""σ is looked for between these, at so many places first, then at about so many."""
COSTS = (1.8, 0.3, 1.5, 1.5, 1.4, 1.3, 1.3, 1.2)
"""What the first fits take beside the others: one from nothing, one from where it ends, some from far off."""
FAR = 50.0
"""Standardised coefficients beyond which there is no maximum."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """What properties of items say of their abilities; ``print`` shows it as sentences."""

    coefficients: pa.Table
    """Columns name, estimate (log-odds per unit), standard_error, lower, upper, p_value (of 0)."""
    items: pa.Table
    """Columns query, item, score (explained + effect), explained (x'β, mean 0 over the items), effect (u)."""
    spread: float
    """σ: standard deviation of what the properties leave unexplained; 0 without effects of items."""
    explained: float
    """Share of the variance of the abilities that the properties explain: var(x'β) / (var(x'β) + σ²)."""
    log_likelihood: float
    """Of the judgments at the estimates."""
    level: float
    notes: tuple[Note, ...]

    def lines(self) -> list[str]:
        """Return it in sentences."""
        told = []
        for row in self.coefficients.to_pylist():
            ends = f"{row['lower']:.4g} … {row['upper']:.4g}"
            told.append(
                f"{row['name']}: {row['estimate']:.4g} ± {row['standard_error']:.4g} ({ends}), {p_said(row['p_value'])}"
            )
        return [*told, *self.notes]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def explain(
    prefs: Preferences,
    properties: Any,
    *,
    item: str = "item",
    effects: str = "random",
    spread: float | None = None,
    level: float = 0.95,
) -> Explanation:
    """Explain abilities by properties of the items: s_i = x_i'β + u_i with u_i from N(0, σ²).

    Parameters
    ----------
    prefs : comparisons; covariates of theirs (a home side, say) get coefficients, too.
    properties : a table with a column of items; all its other columns are numbers, one for each item.
    item : the name of the column of items.
    effects : 'random' lets abilities differ from what the properties say; 'none' says that they do not, and is surer
        than it should be where they do.
    spread : σ; None takes the one under which the judgments are likeliest.
    level : confidence of the intervals, by Student's t with as many degrees of freedom as there are items less
        coefficients and components (random effects) or clusters less one.

    Errors: UsageError for judgments that are not comparisons, columns that are no numbers, items that stand twice;
    CannotRank where a coefficient is not determined, or has no largest likelihood.

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(list("abcdab"), list("bcdacd"), count=[8, 7, 9, 3, 8, 9])
    >>> found = cc.explain(votes, {"item": list("abcd"), "length": [4.0, 3.0, 2.0, 0.0]})
    >>> [round(value, 2) for value in found.coefficients["estimate"].to_pylist()], round(found.spread, 2)
    ([0.85], 0.03)
    """
    if not isinstance(prefs, Preferences):
        raise UsageError(f"explain takes Preferences, not {type(prefs).__name__}; read them first")
    if not isinstance(prefs, Comparisons):
        raise UsageError(f"properties explain comparisons, not {prefs.kind or 'no judgments'}")
    if effects not in EFFECTS:
        raise UsageError(f"effects must be one of {', '.join(EFFECTS)}, not {effects!r}")
    if spread is not None and (effects == "none" or not 0 < float(spread) < 1e6):
        raise UsageError(f"spread is the positive standard deviation of random effects, not {spread!r} ({effects})")
    IntervalOptions(level=level)  # which refuses what is no level
    names, known, values = _properties(properties, item)
    model, notes = _Model.of(prefs, names, known, values)
    if effects == "none":
        precision = np.inf
    elif spread is not None:
        precision = float(spread) ** -2
    else:
        precision, chosen = _likeliest(model)
        notes += (chosen,)
    fit = model.fit(precision)
    return model.explained(fit, level, notes)


def _properties(table: Any, item: str) -> tuple[list[str], Labels, Floats]:
    """Return names, items and values of properties. Errors: UsageError."""
    columns: Mapping[str, Any] = table if isinstance(table, Mapping) else _columns(table)
    if item not in columns:
        raise UsageError(f"the properties have no column {item!r} of items; there are {few(list(columns))}")
    names = [name for name in columns if name != item]
    if not names:
        raise UsageError("the properties have no column beside the items")
    labels, codes = Labels.encode(columns[item])
    if len(labels) < len(codes):
        twice = labels[int(np.flatnonzero(np.bincount(codes) > 1)[0])]
        raise UsageError(f"the item {twice!r} stands in the properties twice")
    values = np.empty((len(codes), len(names)))
    for at, name in enumerate(names):
        try:
            values[codes, at] = np.asarray(columns[name], np.float64)
        except (TypeError, ValueError):
            raise UsageError(f"the property {name!r} must hold one number for each item") from None
    return names, labels, values


def _columns(table: Any) -> dict[str, Any]:
    try:
        made = table if isinstance(table, pa.Table) else pa.table(table)
    except (TypeError, ValueError, pa.ArrowException):
        raise UsageError(
            f"the properties must be a table or a mapping of columns, not {type(table).__name__}"
        ) from None
    return {name: made[name].combine_chunks() for name in made.column_names}


@dataclass(frozen=True, eq=False)
class _Fit:
    effect: Floats
    beta: Floats
    """Of scaled columns."""
    precision: float
    log_likelihood: float
    solve: Callable[[Floats], Floats]
    """A⁻¹ times a matrix (zeros without effects)."""
    border: Floats
    schur: Floats
    pull: Floats
    log_determinant: float


@dataclass(frozen=True, eq=False)
class _Model:
    batch: Batch
    names: list[str]
    rows: Ints
    """Judgments that are used, places among the batch's edges."""
    first: Ints
    second: Ints
    y: Floats
    weight: Floats
    columns: Floats
    """Scaled differences, shape (edges, names)."""
    scale: Floats
    own: Floats
    """Properties of each node, scaled, shape (nodes, names of properties); 0 where not known."""
    known: NDArray[np.bool_]

    @classmethod
    def of(cls, prefs: Comparisons, names: list[str], known: Labels, values: Floats) -> tuple[_Model, tuple[Note, ...]]:
        batch = Batch.whole(prefs)
        edges = batch.edges
        code = known.codes_of(prefs.items.values)[batch.item]
        own = np.where((code >= 0)[:, None], values[code], np.nan)
        have: NDArray[np.bool_] = np.asarray(np.isfinite(own).all(axis=1), np.bool_)
        there = have[edges.winner] & have[edges.loser]
        notes: tuple[Note, ...] = ()
        if not there.all():
            lacking = np.unique(batch.item[np.flatnonzero(~have)])
            judged = int((batch.multiplicity[edges.holder[~there]]).sum())
            text = "{judgments:judgments} of {of:,} left out: there is no number for every property of {items}"
            shown = [prefs.items[int(one)] for one in lacking[:8]]
            numbers = {"judgments": judged, "of": int(batch.multiplicity.sum()), "others": len(lacking) - len(shown)}
            notes = (Note("without properties", text, items=shown, **numbers),)
        if not there.any():
            raise UsageError(
                f"no judgment compares two items whose properties are known; items of the properties are {few(known)}, "
                f"of the judgments {few(prefs.items)}"
            )
        first, second = edges.winner[there], edges.loser[there]
        clean = np.where(have[:, None], own, 0.0)
        columns = clean[first] - clean[second]
        if edges.covariates is not None:
            columns = np.concatenate([columns, edges.covariates[there]], axis=1)
            names = [*names, *prefs.covariate_names]
        scale = np.abs(columns).max(axis=0)
        if (scale == 0).any():
            flat = [name for name, one in zip(names, scale, strict=True) if one == 0]
            raise CannotRank(f"no two items that were compared differ in {few(flat)}: nothing says what it does")
        columns = columns / scale
        weight = (edges.strength * batch.multiplicity[edges.holder])[there]
        values_of, vectors = np.linalg.eigh(columns.T @ (weight[:, None] * columns))
        if (lost := values_of < 1e-10 * values_of[-1]).any():
            tied = [name for name, one in zip(names, np.abs(vectors[:, lost]).max(axis=1), strict=True) if one > 1e-3]
            raise CannotRank(f"{few(tied, most=8)} go together in all comparisons: leave one of them out")
        y = np.where(edges.tie[there], 0.5, 1.0)
        own = clean / scale[: clean.shape[1]]
        return cls(batch, names, np.flatnonzero(there), first, second, y, weight, columns, scale, own, have), notes

    @property
    def nodes(self) -> int:
        return len(self.batch.item)

    @property
    def judgments(self) -> int:
        """Judgments that are used."""
        return int(self.batch.multiplicity[np.unique(self.batch.edges.holder[self.rows])].sum())

    @property
    def compared(self) -> Ints:
        """Nodes with a judgment that is used."""
        return np.unique(np.concatenate([self.first, self.second]))

    def _sums(self, value: Floats) -> Floats:
        """Σ over comparisons of value (e_first − e_second), by column."""
        made = coo_array(
            (
                np.concatenate([np.ones(len(self.first)), -np.ones(len(self.first))]),
                (np.concatenate([self.first, self.second]), np.tile(np.arange(len(self.first)), 2)),
            ),
            shape=(self.nodes, len(self.first)),
        )
        return np.asarray(made.tocsr() @ value, np.float64)

    def _log_likelihood(self, margin: Floats) -> float:
        win, loss = win_probability(margin)
        with np.errstate(divide="ignore"):
            return float((self.weight * np.where(self.y == 1, np.log(win), 0.5 * (np.log(win) + np.log(loss)))).sum())

    def fit(self, precision: float, near: _Fit | None = None) -> _Fit:
        """Maximise by Newton's method, from a fit that is ``near``. Errors: CannotRank without a maximum."""
        u, beta = (np.zeros(self.nodes), np.zeros(len(self.names))) if near is None else (near.effect, near.beta)
        fixed = np.isinf(precision)
        for number in range(STEPS):
            margin = u[self.first] - u[self.second] + self.columns @ beta
            pull, curve = win_derivatives(margin, self.weight * self.y, self.weight * (1 - self.y))
            scaled = curve[:, None] * self.columns
            solve, border, hessian = self._inner(precision, curve, scaled)
            reach = solve(border)
            schur = self.columns.T @ scaled - border.T @ reach
            slope_u = np.zeros(self.nodes) if fixed else self._sums(pull) - precision * u
            inner = solve(slope_u)
            slope = self.columns.T @ pull - border.T @ inner
            if not fixed and self.nodes <= DENSE:
                slope -= self._bent(margin, curve, solve, reach)
            step = np.linalg.solve(schur, slope)
            step_u = inner - reach @ step
            if np.abs(beta).max() > FAR:
                worst = self.names[int(np.abs(beta).argmax())]
                raise CannotRank(
                    f"no largest likelihood: properties alone tell the winners from the losers, {worst!r} foremost; "
                    "leave one out, or let more items be compared"
                )
            size = max(float(np.abs(step).max()), float(np.abs(step_u).max(initial=0.0)))
            share = min(1.0 if number < STEPS // 3 else 0.5, 5.0 / max(size, 1e-300))
            u, beta = u + share * step_u, beta + share * step
            if size < TOLERANCE:
                break
        else:
            raise CannotRank(f"the coefficients did not settle in {STEPS} steps")
        margin = u[self.first] - u[self.second] + self.columns @ beta
        determinant = 0.0 if fixed else log_determinant(hessian, int(self.batch.sizes.max(initial=0)))
        determinant += float(np.linalg.slogdet(schur)[1])
        return _Fit(
            u, beta, precision, self._log_likelihood(margin), solve, border, schur, pull / self.weight, determinant
        )

    def _bent(self, margin: Floats, curve: Floats, solve: Callable[[Floats], Floats], reach: Floats) -> Floats:
        """Slope by the coefficients of ½ log det A, which bends with the margins: ½ Σ κ'(m) (d'A⁻¹d) dm/dβ."""
        inverse = solve(np.eye(self.nodes))
        diagonal = np.diag(inverse)
        spread = diagonal[self.first] + diagonal[self.second] - 2 * inverse[self.first, self.second]
        turn = self.columns - reach[self.first] + reach[self.second]
        win, loss = win_probability(margin)
        return np.asarray(0.5 * (curve * (loss - win) * spread) @ turn, np.float64)

    def _inner(
        self, precision: float, curve: Floats, scaled: Floats
    ) -> tuple[Callable[[Floats], Floats], Floats, csr_array]:
        """A⁻¹, B and A."""
        if np.isinf(precision):
            return np.zeros_like, np.zeros((self.nodes, len(self.names))), csr_array((self.nodes, self.nodes))
        at = np.concatenate([self.first, self.second, self.first, self.second])
        to = np.concatenate([self.first, self.second, self.second, self.first])
        entry = np.concatenate([curve, curve, -curve, -curve])
        matrix = coo_array((entry, (at, to)), shape=(self.nodes, self.nodes)).tocsr()
        matrix = csr_array(matrix + diags_array(np.full(self.nodes, precision)))
        if self.nodes <= DENSE:
            factor = cho_factor(matrix.toarray())
            return lambda b: np.asarray(cho_solve(factor, b)), self._sums(scaled), matrix
        ease = diags_array(1.0 / matrix.diagonal())

        def solve(b: Floats) -> Floats:
            each = b.reshape(self.nodes, -1).T
            found = [cg(matrix, one, rtol=1e-11, M=ease, maxiter=5000) for one in each]
            if any(ended for _, ended in found):
                raise CannotRank("conjugate gradients did not end: too many items for these judgments")
            return np.stack([x for x, _ in found], axis=1).reshape(b.shape)

        return solve, self._sums(scaled), matrix

    def log_marginal(self, fit: _Fit) -> float:
        """log of the likelihood of the judgments with u and the coefficients integrated out, but for a constant."""
        penalty = 0.5 * fit.precision * float(fit.effect @ fit.effect)
        return (
            fit.log_likelihood - penalty + 0.5 * self.nodes * float(np.log(fit.precision)) - 0.5 * fit.log_determinant
        )

    def _covariance(self, fit: _Fit) -> tuple[Floats, float]:
        """Covariance of the scaled coefficients, and degrees of freedom."""
        inverse: Floats = np.asarray(np.linalg.inv(fit.schur), np.float64)
        ways = [way[self.batch.judgment] for way in self.batch.prefs.cluster_ways]
        components = 1 if np.isinf(fit.precision) else len(np.unique(self.batch.owner))
        freedom = np.inf
        if not np.isinf(fit.precision):
            freedom = max(float(len(self.compared) - components - len(self.names)), 1.0)
        if not (ways or self.batch.prefs.tied or self.batch.prefs.weighted):
            return inverse, freedom
        edges = self.batch.edges
        reach = -fit.solve(fit.border) @ inverse
        own = (reach[self.first] - reach[self.second] + self.columns @ inverse) * fit.pull[:, None]
        own = own * edges.strength[self.rows][:, None]  # of one draw
        times = self.batch.multiplicity[edges.holder[self.rows]].astype(float)
        found: Floats = np.zeros_like(inverse)
        if not ways:
            _, first, draw = np.unique(edges.holder[self.rows], return_index=True, return_inverse=True)
            drawn, often = np.stack([np.bincount(draw, column) for column in own.T], axis=1), times[first]
            found = (drawn * often[:, None]).T @ drawn * often.sum() / max(often.sum() - 1, 1)
        holders = edges.holder[self.rows]
        for number in range(1, len(ways) + 1):
            for chosen in combinations(ways, number):
                cell = rows_alike(*(way[holders] for way in chosen))[1]
                sums = np.stack([np.bincount(cell, times * column) for column in own.T], axis=1)
                groups = len(sums)
                if groups < 2:
                    raise UsageError("a single cluster says nothing of how clusters differ")
                found += (-1.0) ** (number + 1) * groups / (groups - 1) * sums.T @ sums
                if number == 1:
                    freedom = min(freedom, groups - 1.0)
        if not np.isinf(fit.precision):
            found += fit.precision * reach.T @ reach
        values, vectors = np.linalg.eigh(found)
        found = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return np.asarray(found, np.float64), freedom

    def explained(self, fit: _Fit, level: float, notes: tuple[Note, ...]) -> Explanation:
        covariance, freedom = self._covariance(fit)
        error = np.sqrt(np.diag(covariance)) / self.scale
        estimate = fit.beta / self.scale
        half = float(t_quantile(0.5 + level / 2, freedom)) * error
        with np.errstate(divide="ignore", invalid="ignore"):
            p = two_sided(estimate / error, freedom)
        number = self.own.shape[1]
        said = self.own @ fit.beta[:number]
        groups, seen = self.batch.node_groups, self.known
        count = np.maximum(groups.sums(seen.astype(float)), 1)
        said = np.where(seen, said - groups.spread(groups.sums(np.where(seen, said, 0.0)) / count), np.nan)
        effect = np.where(seen, fit.effect, np.nan)
        prefs, batch = self.batch.prefs, self.batch
        query = batch.query[batch.owner]
        items = pa.table(
            {
                "query": prefs.queries.take(query),
                "item": prefs.items.take(batch.item),
                "score": said + effect,
                "explained": said,
                "effect": effect,
            }
        )
        spread = 0.0 if np.isinf(fit.precision) else fit.precision**-0.5
        variance = float(np.nanvar(said))
        share = variance / (variance + spread**2) if variance + spread > 0 else 0.0
        coefficients = pa.table(
            {
                "name": self.names,
                "estimate": estimate,
                "standard_error": error,
                "lower": estimate - half,
                "upper": estimate + half,
                "p_value": np.asarray(p, np.float64),
            }
        )
        return Explanation(coefficients, items, spread, share, fit.log_likelihood, level, notes)


def _likeliest(model: _Model) -> tuple[float, Note]:
    """Return the precision of the effects under which the judgments are likeliest, and a note that says so.

    Errors: CannotRank where the judgments are the likelier the larger the effects are.
    """
    costs, tried = iter(COSTS), np.log(np.geomspace(*SPREADS, TRIED))
    with stage("spread of the items", sum(COSTS) + TRIED + REFINED + 1 - len(COSTS)) as advance:
        near = model.fit(SPREADS[0] ** -2)  # what no effects can mend is said

        def lost(log: float) -> float:
            nonlocal near
            advance(next(costs, 1.0))
            try:
                near = model.fit(float(np.exp(-2 * log)), near)
            except CannotRank:
                return np.inf
            return -model.log_marginal(near)

        value = np.array([lost(log) for log in tried])
        best = int(value.argmin())
        if best + 1 == TRIED or np.isinf(value[best + 1]):
            raise CannotRank(
                f"{counted(model.judgments, 'judgments')} of {counted(len(model.compared), 'items')} do not say "
                "how much the properties leave unexplained: they are the likelier the more it is; give a ",
                Setting("spread"),
                ", or take the properties for all there is with ",
                Setting("effects", "none"),
            )
        ends = (tried[max(best - 1, 0)], tried[best + 1])
        found = minimize_scalar(lost, bounds=ends, method="bounded", options={"xatol": CLOSE})
    spread = float(np.exp(found.x))
    text = "what the properties leave unexplained has a standard deviation of {spread:.3g}"
    if spread < 1.1 * SPREADS[0]:
        text += ": the judgments show no differences beyond the properties"
    return spread**-2, Note("unexplained", text, spread=spread)

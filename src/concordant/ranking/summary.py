"""What the model of a ranking says of itself: log-likelihood, deviance, information criteria, tests of its terms.

The log-likelihood ℓ is that of the judgments at the scores, without the prior. Deviance: twice what a saturated model
has more, one probability for each pair and pattern of covariates (as of a binomial model of counts); of Plackett–Luce,
where it has none, −2ℓ. AIC = −2ℓ + 2p and BIC = −2ℓ + p log n with p parameters (items less components, and
coefficients) and n judgments; what depends on the data alone (binomial coefficients) is left out.

A term is tested by the likelihood ratio: the model is fitted again without it, with the same prior, and twice what the
penalised log-likelihood loses is held against χ² (Wilks, Annals of Mathematical Statistics 9, 1938). Where judgments
are no independent draws of the model (clusters, ties as half wins, strengths) that law does not hold, and the term is
tested by its sandwich error (Wald).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import chdtrc, xlogy

from concordant.preferences.connectivity import Connectivity
from concordant.preferences.counts import rows_alike
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons
from concordant.preferences.ragged import centred
from concordant.ranking.comparing import p_said
from concordant.ranking.covariance import t_quantile, two_sided
from concordant.ranking.cumulative import THRESHOLD, Graded
from concordant.ranking.curvature import bradley_terry_curvature, log_likelihood, pair_margins
from concordant.ranking.plackett_luce import fitted_terms, luce_terms, plackett_luce
from concordant.ranking.scores import Scores, numbered
from concordant.ranking.standard_errors import default_method
from concordant.ranking.structures import Structure

Floats = NDArray[np.float64]
ALIKE = 1e12
"""Precision of a prior under which all scores are equal."""
STRONG = 0.1
"""Precision of a prior from which on it is worth a word that parameters are not free."""


@dataclass(frozen=True)
class Term:
    """A term of the model, and whether the judgments speak for it."""

    term: str
    statistic: float
    df: int
    p_value: float
    test: str
    """'likelihood ratio' or 'Wald'."""


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of a query beside the scores."""

    query: object
    term: str
    estimate: float
    standard_error: float
    lower: float
    upper: float
    p_value: float
    """Of 0; NaN for log ν, of which 0 is nothing special."""


@dataclass(frozen=True)
class ModelSummary:
    """The sums over all queries of a ranking; what it holds stands in the docstring of ``ranking.summary``."""

    structure: str
    judgments: int
    parameters: int
    log_likelihood: float
    null_log_likelihood: float
    """All items alike, no coefficients."""
    deviance: float
    df_residual: int | None
    """None where it is not defined: tiers, which are one event each."""
    null_deviance: float
    aic: float
    bic: float
    tests: tuple[Term, ...]
    coefficients: tuple[Coefficient, ...]
    notes: tuple[Note, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as nested dictionaries and lists, which JSON can hold."""
        return {**asdict(self), "notes": [str(note) for note in self.notes]}

    def __str__(self) -> str:
        return "\n".join(map(str, self.lines()))

    def lines(self) -> list[Note]:
        """Return the summary as sentences."""
        one = vars(self)
        free = "" if self.df_residual is None else " on {df_residual:,} degrees of freedom"
        text = "{structure}: log-likelihood {log_likelihood:.2f} of {judgments:judgments}, {parameters:parameters}"
        deviance = "deviance {deviance:.2f}" + free + " (all alike: {null_deviance:.2f}), AIC {aic:.2f}, BIC {bic:.2f}"
        said = [
            Note("model", text, **{name: one[name] for name in _NAMED}),
            Note("deviance", deviance, **{name: one[name] for name in _DEVIANCE}),
        ]
        for each in self.coefficients:
            whose = "" if each.query is None else "query {query}: "
            text = whose + "{term}: {estimate:.4f} ± {standard_error:.4f} ({lower:.3f} … {upper:.3f})"
            p = "" if np.isnan(each.p_value) else f", {p_said(each.p_value)}"
            said.append(Note("coefficient", text + p, **asdict(each)))
        for tested in self.tests:
            p = p_said(tested.p_value)
            text = f"{{term}}: χ² = {{statistic:.3f}} on {{df:degrees}} of freedom, {p} ({{test}})"
            said.append(Note("test", text, **asdict(tested)))
        return [*said, *self.notes]


_DEVIANCE = ("deviance", "null_deviance", "df_residual", "aic", "bic")
_NAMED = ("structure", "log_likelihood", "null_log_likelihood", "judgments", "parameters")


@dataclass(frozen=True)
class _Sums:
    """Sums over the graphs of a batch."""

    fit: float
    null: float
    saturated: float
    free: float
    """Degrees of freedom of the saturated model, NaN where it has none."""


def log_likelihoods(batch: Batch, scores: Scores) -> _Sums:
    """Return the log-likelihoods of a fit, of equal items and of the saturated model."""
    if not isinstance(batch.prefs, Comparisons):
        return _of_lists(batch, scores)
    names = batch.prefs.covariate_names
    if scores.options.get("ties") == "cumulative":
        return _of_grades(batch, scores)
    graphs = Graphs.of(batch, covariates=True) if names else batch.graphs
    margin = pair_margins(graphs, scores, names if scores.options.get("covariates") else ())
    tied = scores.options.get("ties") == "davidson"
    counts = [graphs.wins, graphs.losses, graphs.ties] if tied else [graphs.above, graphs.below]
    total = sum(counts)
    judged = np.asarray(total > 0)
    saturated = sum(xlogy(x, np.divide(x, total, out=np.ones_like(x), where=judged)).sum() for x in counts)
    log_nu = scores.coefficients["ties"][graphs.graph] if tied else None
    fit = log_likelihood(graphs, margin, log_nu)
    null = log_likelihood(graphs, 0 * margin, None if log_nu is None else _equal_ties(graphs, log_nu))
    return _Sums(fit, null, float(saturated), float(judged.sum() * (len(counts) - 1)))


def _of_lists(batch: Batch, scores: Scores) -> _Sums:
    """The same of ranked lists; every choice of the saturated model is certain. Equal items have ties of their own."""
    plain = luce_terms(batch)
    choices = float(plain.alone @ (plain.below(np.ones(len(plain.alone))) - 1)) if len(plain.tiers) == 0 else np.nan
    _, terms, point = fitted_terms(batch, scores)
    alike = np.zeros(len(point))
    if len(point) > len(scores.value):
        _, _, alike = fitted_terms(batch, plackett_luce(batch, prior=ALIKE, ties="davidson"))
        alike[: len(scores.value)] = 0.0
    return _Sums(terms.at(point).value(), terms.at(alike).value(), 0.0, choices)


def _of_grades(batch: Batch, scores: Scores) -> _Sums:
    """The same of ordered outcomes; the saturated model has a probability for each of a graph's, of each pair."""
    graded, edges = Graded.of(batch), batch.edges
    times = batch.multiplicity[edges.holder].astype(float)
    swap = edges.winner > edges.loser
    z = np.zeros((len(swap), 0)) if edges.covariates is None else np.where(swap[:, None], -1.0, 1.0) * edges.covariates
    pair = rows_alike(np.minimum(edges.winner, edges.loser), np.maximum(edges.winner, edges.loser), *(z + 0.0).T)[1]
    outcome = np.where(swap, -graded.outcome, graded.outcome)
    _, first, cell = np.unique(pair * (2 * len(graded.levels) + 1) + outcome, return_index=True, return_inverse=True)
    seen, total = np.bincount(cell, times), np.bincount(pair, times)
    saturated = float(xlogy(seen, seen / total[pair[first]]).sum())
    sides = np.where(np.arange(graded.counts.shape[1]) == 0, 1.0, 2.0)
    whole = np.maximum(graded.counts.sum(axis=1, keepdims=True), 1.0)
    null = float(xlogy(graded.counts, graded.counts / whole / sides).sum())
    outcomes = (sides * (graded.counts > 0)).sum(axis=1)
    of_pair = graded.graph[np.unique(pair, return_index=True)[1]]
    return _Sums(
        bradley_terry_curvature(batch, scores).log_likelihood(), null, saturated, float((outcomes[of_pair] - 1).sum())
    )


def _equal_ties(graphs: Graphs, log_nu: Floats) -> Floats:
    """log ν of each row's graph if all items are alike: a tie has the chance ν/(2 + ν)."""
    ties = graphs.pairs.sums(graphs.ties)
    others = graphs.pairs.sums(graphs.wins + graphs.losses)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.isfinite(log_nu), np.log(2.0 * ties / others)[graphs.graph], log_nu)


def _penalised(batch: Batch, scores: Scores) -> float:
    """The log-likelihood less what the prior takes of scores that sum to zero in each component."""
    prior = float(scores.options.get("prior", 0.0))
    middle = centred(scores.value, numbered(batch.owner, scores.component))
    return log_likelihoods(batch, scores).fit - 0.5 * prior * float(middle @ middle)


def _without(batch: Batch, name: str) -> Batch:
    """The same judgments without one of their covariates."""
    prefs = batch.prefs
    if not isinstance(prefs, Comparisons) or prefs.covariates is None:
        return batch
    keep = [at for at, other in enumerate(prefs.covariate_names) if other != name]
    names = tuple(prefs.covariate_names[at] for at in keep)
    return replace(batch, prefs=replace(prefs, covariates=prefs.covariates[:, keep], covariate_names=names))


def summarise(
    batches: Iterable[tuple[Batch, Scores]],
    member: Structure,
    options: Mapping[str, Any],
    links: Callable[[Batch], Connectivity],
    level: float,
    errors: Mapping[str, Floats],
    clustered: bool,
) -> ModelSummary:
    """Sum up the model over ``batches``: (batch, scores) of some queries at a time; ``errors`` are those of
    coefficients, "s.e. of …" by query code, ``clustered`` says whether they allow for clusters.
    """
    sums = np.zeros(4)
    judgments, parameters = 0, 0
    lost: dict[str, Floats] = {}
    coefficients: list[Coefficient] = []
    notes: dict[str, Note] = {}
    plain = True
    for batch, scores in batches:
        found = log_likelihoods(batch, scores)
        sums += [found.fit, found.null, found.saturated, found.free]
        names = [name for name in scores.coefficients if not name.startswith("s.e. of ")]
        linked = links(batch)
        group = (batch.owner * (len(batch.item) + 1) + linked.component)[linked.compared]
        own = len(group) - len(np.unique(group))
        determined = {name: int(np.isfinite(scores.coefficients[name]).sum()) for name in names}
        if scores.options.get("ties") == "cumulative":
            graded = Graded.of(batch)
            determined |= dict(zip(graded.thresholds, graded.free.sum(axis=0).tolist(), strict=True))
        parameters += own + sum(determined.values())
        judgments += int(batch.judgments.sum())
        coefficients.extend(_coefficients(batch, scores, names, errors, level, clustered))
        notes |= _said(scores, names)
        plain &= default_method(batch, scores) == "hessian"
        if not plain or options.get("mean") is not None:
            continue
        full = _penalised(batch, scores)
        again = {**options, **{name: scores.options[name] for name in ("prior",) if name in scores.options}}
        for name in (name for name in names if not _of_ties(name)):
            reduced = _without(batch, name)
            kept = {k: v for k, v in again.items() if k != "covariates" or reduced.prefs.covariate_names}
            fit = _penalised(reduced, member.function(reduced, **kept))
            lost[name] = lost.get(name, np.zeros(2)) + np.array([2.0 * (full - fit), determined[name]])
        null = found.null
        if names and not all(name.startswith(THRESHOLD) for name in names):
            alike = member.function(batch, **{**again, "prior": ALIKE})
            null = log_likelihoods(batch, replace(alike, value=np.zeros(len(alike.value)))).fit
        lost["items"] = lost.get("items", np.zeros(2)) + np.array([2.0 * (full - null), own])
    if plain:
        tests = [
            _test(name, float(lost[name][0]), int(lost[name][1]), "likelihood ratio")
            for name in sorted(lost, key=_first)
        ]
    else:
        notes["quasi-likelihood"] = Note("quasi-likelihood", QUASI)
        tests = [
            _test(name, sum(squares), len(squares), "Wald", [one.p_value for one in coefficients if one.term == name])
            for name in dict.fromkeys(one.term for one in coefficients)
            if (squares := [(one.estimate / one.standard_error) ** 2 for one in coefficients
                            if one.term == name and np.isfinite(one.p_value)])
        ]  # fmt: skip
    fit, null, saturated, free = (float(x) for x in sums)
    return ModelSummary(
        structure=member.name,
        judgments=judgments,
        parameters=parameters,
        log_likelihood=fit,
        null_log_likelihood=null,
        deviance=2 * (saturated - fit),
        df_residual=None if np.isnan(free) else int(free) - parameters,
        null_deviance=2 * (saturated - null),
        aic=-2 * fit + 2 * parameters,
        bic=-2 * fit + parameters * float(np.log(max(judgments, 1))),
        tests=tuple(test for test in tests if test.df > 0),
        coefficients=tuple(coefficients),
        notes=tuple(notes.values()),
    )


QUASI = (
    "judgments are no independent draws of this model (clusters, ties as half wins or strengths): deviance, AIC and "
    "BIC are those of a quasi-likelihood, and coefficients are tested by their sandwich errors"
)


def _first(name: str) -> tuple[bool, str]:
    return name != "items", name


def _test(name: str, statistic: float, df: int, test: str, alone: Sequence[float] = ()) -> Term:
    """Of a single coefficient its own p-value, by the t law of few clusters."""
    statistic = max(statistic, 0.0)
    p = alone[0] if len(alone) == 1 else float(chdtrc(df, statistic)) if df else float("nan")
    return Term(name, statistic, df, p, test)


def _said(scores: Scores, names: list[str]) -> dict[str, Note]:
    """What a reader should know of the terms."""
    notes = {}
    if "ties" in names or any(name.startswith("ties of ") for name in names):
        letter = "ν" if "ties" in names else "δ"
        text = "ties: no test, since without {letter} no judgment could be a tie; see the interval of log {letter}"
        notes["no test of ties"] = Note("no test of ties", text, letter=letter)
    if float(scores.options.get("prior", 0.0)) > STRONG:
        text = "the prior (precision {prior:g}) pulls scores together: fewer parameters are free than are counted"
        notes["a strong prior"] = Note("a strong prior", text, prior=float(scores.options["prior"]))
    return notes


def _of_ties(name: str) -> bool:
    """Whether a coefficient says how often judgments are ties: 0 is no value at which there are none."""
    return name == "ties" or name.startswith(("ties of ", THRESHOLD))


def term_of(name: str) -> str:
    """Return what a coefficient is called for people.

    >>> term_of("home"), term_of("ties"), term_of("ties of 3"), term_of("age")
    ('home advantage', 'ties (log ν)', 'ties of 3 (log δ)', 'age')
    """
    if name.startswith("ties of "):
        return f"{name} (log δ)"
    return {"home": "home advantage", "ties": "ties (log ν)"}.get(name, name)


def freedom_of(batch: Batch) -> Floats:
    """Return the degrees of freedom of each graph: clusters − 1, the least of several ways; infinite without any."""
    least = np.full(len(batch), np.inf)
    for way in batch.prefs.cluster_ways:
        graph = batch.graph[rows_alike(batch.graph, way[batch.judgment])[0]]
        least = np.minimum(least, np.bincount(graph, minlength=len(batch)) - 1)
    return np.asarray(np.maximum(least, 1.0))


def _coefficients(
    batch: Batch, scores: Scores, names: list[str], errors: Mapping[str, Floats], level: float, clustered: bool
) -> list[Coefficient]:
    out = []
    freedom = freedom_of(batch) if clustered else np.full(len(batch), np.inf)
    half = t_quantile(0.5 + level / 2, freedom)
    for name in names:
        for graph, value in enumerate(scores.coefficients[name].tolist()):
            code = int(batch.query[graph])
            error = float(errors.get(f"s.e. of {name}", np.full(code + 1, np.nan))[code])
            query = batch.prefs.queries[code] if len(batch.prefs.queries) > 1 else None
            tested = not _of_ties(name) and 0 < error < np.inf
            p = float(two_sided(value / error, freedom[graph])) if tested else float("nan")
            z = float(half[graph])
            term = term_of(name) if _of_ties(name) else name
            out.append(Coefficient(query, term, value, error, value - z * error, value + z * error, p))
    return out


COEFFICIENTS = pa.schema(
    [(name, pa.string()) for name in ("query", "name", "term")]
    + [(name, pa.float64()) for name in ("estimate", "standard_error", "lower", "upper", "p_value")]
)


def coefficient_table(queries: pa.Array, coefficients: Mapping[str, Floats], level: float, freedom: Floats) -> pa.Table:
    """Return what ``Ranking.coefficient_table`` does; ``freedom`` of the t law of each query."""
    reach, nothing, tables = t_quantile(0.5 + level / 2, freedom), np.full(len(queries), np.nan), []
    for name, value in coefficients.items():
        if name.startswith("s.e. of "):
            continue
        error = coefficients.get(f"s.e. of {name}", nothing)
        tested = (error > 0) & np.isfinite(error) & (not _of_ties(name))
        columns = {
            "query": queries,
            "name": pa.repeat(name, len(value)),
            "term": pa.repeat(term_of(name), len(value)),
            "estimate": value,
            "standard_error": pa.array(error, from_pandas=True),
            "lower": pa.array(value - reach * error, from_pandas=True),
            "upper": pa.array(value + reach * error, from_pandas=True),
            "p_value": pa.array(two_sided(value / np.where(tested, error, 1.0), freedom), mask=~tested),
        }
        tables.append(pa.table(columns))
    return pa.concat_tables(tables) if tables else COEFFICIENTS.empty_table()

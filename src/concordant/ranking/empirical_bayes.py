"""The prior's precision from the data (empirical Bayes): the λ under which the judgments themselves are likeliest.

With scores drawn from N(0, 1/λ) the likelihood of the judgments alone is m(λ) = ∫ L(s, β) N(s; 0, 1/λ) ds dβ. Laplace's
approximation at the penalised maximum (ŝ, β̂) is

    log m(λ) = ℓ(ŝ, β̂) − λ‖ŝ‖²/2 + (n/2) log λ − ½ log det(H + λI) + constant,

H the curvature of −ℓ, λ on the n scores only: coefficients have a flat prior. It is maximised over log λ. The
shift of a component, of which nothing is known, adds ½ log λ − ½ log λ = 0.

Source: Laplace's approximation, Tierney and Kadane, JASA 81, 1986; for paired comparisons with random abilities,
Davidson and Solomon, Biometrika 60, 1973, and Firth and Turner, BradleyTerry2, Journal of Statistical Software 48(9),
2012, §4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.linalg import splu

from concordant.errors import UsageError
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import centred
from concordant.progress import stage
from concordant.ranking.curvature import Curvature
from concordant.ranking.scores import Scores, numbered
from concordant.ranking.structures import Structure

Floats = NDArray[np.float64]
CurvatureOf = Callable[[Batch, Scores], Curvature]
LEAST, MOST = 1e-3, 1e3
"""The precisions that are looked at: abilities with a standard deviation from 32 to .03."""
CLOSE = 0.02
"""Of log λ."""
ENOUGH = 200_000
"""Distinct judgments of many queries from which λ is known well enough."""
DENSE, SMALL = 3000, 300
"""Parameters up to which a matrix is factored as a dense one, and items of graphs that are factored as sparse ones."""
PROBES, STEPS = 24, 60
"""Of the quadrature of the log-determinant of a larger matrix."""


def chosen_prior(prefs: Preferences, member: Structure, options: Mapping[str, Any]) -> tuple[float, Note]:
    """Return the precision that maximises the marginal likelihood of the judgments, and a note that says so.

    Of many queries, which have one precision together, as many are looked at as hold enough judgments.

    Errors: UsageError for a structure without a likelihood, or where nothing was judged.

    >>> from concordant.ranking.structures import structure
    >>> wins = Preferences.from_comparisons(list("aabbcc"), list("bcacab"), count=[8, 9, 4, 7, 2, 3])
    >>> round(chosen_prior(wins, structure("bradley-terry"), {})[0], 1)
    2.3
    """
    from scipy.optimize import minimize_scalar

    curvature_of = member.curvature
    if curvature_of is None or "prior" not in member.options:
        raise UsageError(f"{member.name} has no prior whose precision the likelihood could choose")
    if options.get("mean") is not None:
        raise UsageError("a prior with means of its own needs a precision of its own: give a number")
    some = _some(prefs)
    batch = Batch.whole(prefs, some)
    if not len(batch.judgment):
        raise UsageError("nothing was judged, so the data choose no prior")
    with stage("prior"):
        found = minimize_scalar(
            lambda log: -_log_marginal(batch, member, curvature_of, {**options, "prior": float(np.exp(log))}),
            bounds=(np.log(LEAST), np.log(MOST)),
            method="bounded",
            options={"xatol": CLOSE},
        )
    prior = float(np.exp(found.x))
    text = "prior: precision {prior:.3g}, which is to say abilities with a standard deviation of {spread:.3g}"
    if found.x < np.log(LEAST) + 0.1:
        text += "; the data would take still wider ones"
    elif found.x > np.log(MOST) - 0.1:
        text += "; the data show no differences between items"
    else:
        text += ", under which the judgments are likeliest"
    if len(some) < len(prefs.queries):
        text += " (judged by {some:,} of {of:queries})"
    text += "; predictions are better for it, but intervals about scores that it draws together hold less often"
    numbers = {"prior": prior, "spread": prior**-0.5, "some": len(some), "of": len(prefs.queries)}
    return prior, Note("prior chosen", text, **numbers)


def _some(prefs: Preferences) -> NDArray[np.int64]:
    """Codes of queries that hold enough judgments, drawn with a fixed seed; all where there are no more."""
    order = np.random.default_rng(0).permutation(len(prefs.queries))
    held = np.cumsum(prefs.work[order]) - prefs.work[order]
    return np.sort(order[held < ENOUGH]).astype(np.int64)


def _log_marginal(batch: Batch, member: Structure, curvature_of: CurvatureOf, options: Mapping[str, Any]) -> float:
    scores = member.function(batch, **options)
    curvature = curvature_of(batch, scores)
    value, prior = centred(scores.value, numbered(batch.owner, scores.component)), float(options["prior"])
    nodes, whole = len(value), curvature.hessian.shape[0]
    added = np.concatenate([np.full(nodes, prior), np.zeros(whole - nodes)])
    precision = csr_array(curvature.hessian + diags_array(added))
    penalty = 0.5 * prior * float(value @ value) - 0.5 * nodes * np.log(prior)
    return float(
        curvature.log_likelihood() - penalty - 0.5 * log_determinant(precision, int(batch.sizes.max(initial=0)))
    )


def log_determinant(matrix: csr_array, largest: int) -> float:
    """The log-determinant of a positive definite matrix; ``largest``: the items of the largest graph in it."""
    if matrix.shape[0] <= DENSE:
        return float(np.linalg.slogdet(matrix.toarray())[1])
    if largest <= SMALL:
        factors = splu(csc_array(matrix), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        return float(np.log(np.abs(factors.U.diagonal())).sum())
    return _by_quadrature(matrix)


def _by_quadrature(matrix: csr_array) -> float:
    """Stochastic Lanczos quadrature of the matrix scaled to ones on its diagonal.

    Ubaru, Chen and Saad, SIAM Journal on Matrix Analysis and Applications 38, 2017. The same probes
    for every λ, so that what they err by hardly moves the maximum.
    """
    diagonal = matrix.diagonal()
    root = diags_array(1.0 / np.sqrt(diagonal))
    scaled = csr_array(root @ matrix @ root)
    n = scaled.shape[0]
    v = np.random.default_rng(0).choice((-1.0, 1.0), (n, PROBES)) / np.sqrt(n)
    before, beta = np.zeros_like(v), np.zeros(PROBES)
    main, beside = np.zeros((STEPS, PROBES)), np.zeros((STEPS, PROBES))
    for step in range(STEPS):
        w = scaled @ v - beta * before
        main[step] = np.einsum("ij,ij->j", w, v)
        w -= main[step] * v
        beta = np.linalg.norm(w, axis=0)
        beside[step] = beta
        before, v = v, w / np.maximum(beta, 1e-300)
    total = 0.0
    for probe in range(PROBES):
        last = np.flatnonzero(beside[:, probe] < 1e-12)
        size = STEPS if len(last) == 0 else int(last[0]) + 1
        tridiagonal = np.diag(main[:size, probe]) + np.diag(beside[: size - 1, probe], 1)
        tridiagonal += np.diag(beside[: size - 1, probe], -1)
        values, vectors = np.linalg.eigh(tridiagonal)
        total += float(vectors[0] ** 2 @ np.log(np.maximum(values, 1e-300)))
    return float(n * total / PROBES + np.log(diagonal).sum())

"""Theorem 4 as a diagnosis of a fit: its quantities as numbers, and how far the empirical risk may be off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, UsageError
from concordant.learning.rankers.plans import settled
from concordant.learning.rankers.validation import learning_rows, matched
from concordant.learning.scikit import check_is_fitted
from concordant.learning.solvers.deviation import Drawn, RiskProcess, suprema, worst
from concordant.learning.solvers.sampled import SampledGains
from concordant.losses.objective import Objective, WeightedEdges
from concordant.losses.pair_losses import pair_loss, value_penalty
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.click_models import usual_clicks

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Make = Callable[[Batch], Objective]
LEVEL = 0.95
RATES = np.arange(0.25, 2.01, 0.05)
"""Exponents ρ of Condition I that are tried."""
CURVE_BLOCKS = 512
"""Blocks of a query at each k of the curve."""
FEWEST = 8
"""Blocks that there are at least at each k."""
RUNGS = 4
"""The least number of orders that a curve is fitted to."""
LAST = 6
"""Orders that it is fitted to: the largest, since the power is a limit."""
TAIL = 20
"""Queries from which on the tail of their probabilities is looked at."""


@dataclass(frozen=True)
class Diagnosis:
    """What Theorem 4 says about a fit, over the linear scorers θ with ‖θ‖ ≤ ``radius`` (standardised features).

    R̂ is the empirical risk (19) at order k, R_n its expectation (20), R the risk (6) to which R_n tends with k.

    >>> from concordant.preferences.preferences import Preferences
    >>> from concordant.learning.rankers.edges import EdgeRanker
    >>> votes = Preferences.from_comparisons(["b", "c", "c", "a"] * 9, ["a", "b", "a", "b"] * 9)
    >>> features = {"item": ["a", "b", "c"], "length": [1.0, 2.0, 3.0]}
    >>> found = EdgeRanker("ranknet").fit(features, votes).diagnose(features, votes)
    >>> found.n, found.k, found.features, found.deviation < found.theorem
    (36, 1, 1, True)
    """

    n: int
    """Judgments."""
    queries: int
    k: int
    """Judgments aggregated at a time; with all of a query the largest number that one has."""
    features: int
    """d."""
    radius: float
    risk: float
    """R̂ at the fit, without the ridge."""
    learned: float
    """R̂ at θ = 0 less that at the fit."""
    bound: float
    """B of Assumption E: no loss of a query is above it, anywhere in the ball (of the structures that were drawn)."""
    lipschitz: float
    """L of Assumption E."""
    beta: float
    """β of Assumption D, from the sizes of the rarer half of the queries; ∞ where no tail is seen."""
    deviation: float
    """sup over the ball of |R̂ − R_n| is at most this with 95% confidence, queries and judgments being drawn."""
    deviation_fixed: float
    """The same with the number of judgments of each query as it is."""
    theorem: float
    """The same by the inequalities (Lemma 9, covering numbers) of the proof of Theorem 4."""
    rate: float
    """ρ of Condition I at the fit, from the curve over k; ∞ where nothing is aggregated, NaN where it is too short."""
    bias: float
    """R_n − R at the fit, extrapolated from the curve."""
    bias_error: float
    """Standard error of ``bias``."""
    curve: tuple[tuple[int, float, float], ...]
    """(k, risk at the fit with its standard error) on queries with judgments enough."""

    @property
    def growth(self) -> float:
        """k√(d/n), which Condition II needs to tend to 0 for linear scorers."""
        return float(self.k * np.sqrt(self.features / self.n))

    @property
    def tail(self) -> float:
        """k B^((1+β)/β)/n, which Condition II needs to tend to 0; B in units of the risk (at the fit or at θ = 0)."""
        power = 1.0 if np.isinf(self.beta) else (1.0 + self.beta) / self.beta
        unit = max(abs(self.risk), abs(self.risk + self.learned), 1e-300)
        return float(self.k * (self.bound / unit) ** power / self.n)

    @property
    def extrapolates(self) -> bool:
        """Whether the curve over k falls like a power that was tried; if not, the bias may be much larger."""
        return bool(RATES[0] < self.rate)

    @property
    def told_apart(self) -> bool:
        """Whether the fit's risk is surely below that of θ = 0: what was learned is more than twice the deviation."""
        return self.learned > 2.0 * self.deviation

    def __str__(self) -> str:
        lines = [
            f"{self.n:,} judgments of {self.queries:,} queries, {self.k:,} at a time, {self.features:,} features, "
            f"‖θ‖ ≤ {self.radius:.3g}",
            f"risk of the fit {self.risk:.4g}, of no scorer {self.risk + self.learned:.4g}",
            f"deviation: for all scorers of the ball at once the risk is within ±{self.deviation:.2g} of its "
            f"expectation, with 95% confidence (±{self.deviation_fixed:.2g} with these numbers of judgments a query; "
            f"±{self.theorem:.2g} by the inequalities of Theorem 4)",
            f"bound B {self.bound:.3g}, Lipschitz constant L {self.lipschitz:.3g}, tail of the queries "
            + ("none seen" if np.isinf(self.beta) else f"β {self.beta:.2g}"),
            self._said_of_bias(),
            f"Condition II: k√(d/n) = {self.growth:.2g}, k B^((1+β)/β)/n = {self.tail:.2g}; they have to tend to 0, "
            + ("and are small" if max(self.growth, self.tail) < 0.1 else "and are not small here"),
            "the fit is better than no scorer beyond the deviation"
            if self.told_apart
            else "the deviation is too large to say that the fit is better than no scorer",
        ]
        return "\n".join(lines)

    def _said_of_bias(self) -> str:
        if np.isinf(self.rate):
            return "bias in k: none, nothing is aggregated"
        if np.isnan(self.rate):
            return "bias in k: the queries have too few judgments for a curve"
        return (
            f"bias in k: {self.bias:+.2g} ± {self.bias_error:.2g} at the fit, falling like k^−{self.rate:.2g} "
            "(Condition I)"
            + ("" if self.extrapolates else "; the curve does not level off yet, so it may be much larger")
        )


def diagnose(
    Z: Floats,
    prefs: Preferences,
    make: Make,
    theta: Floats,
    *,
    order: int | None,
    share: Floats,
    radius: float | None,
    aggregates: bool = True,
    replicates: int = 400,
    seed: int = 0,
) -> Diagnosis:
    """Compute the quantities of Theorem 4 for the scorers Zθ, ‖θ‖ ≤ ``radius`` (None: the norm of ``theta``).

    ``make`` is the surrogate of the subsets of a batch, ``order`` k (None: all judgments of a query), ``share`` n̂_q/n
    of each query; Z holds the items of ``Batch.whole(prefs)``.

    From the theorem: B, L, β, ρ, the two parts of Condition II and ``theorem``, the ε with
    2 N(ε/4L) exp(−nε²/(32k²B²)) = 0.05, N(δ) ≤ (1 + 2r/δ)^d for a ball of radius r. Our own: ``deviation``, by
    multipliers (``solvers/deviation.py`` has the derivation), since the theorem's is larger by a factor of k and more.

    Errors: UsageError for a radius that is no number above 0, replicates below 100; InputError without judgments.
    """
    reach = float(np.linalg.norm(theta)) if radius is None else radius
    if not (np.isfinite(reach) and reach > 0):
        raise UsageError(f"the radius of the ball must be a number above 0, not {reach!r}; that of the fit is its norm")
    if isinstance(replicates, bool) or not isinstance(replicates, int | np.integer) or replicates < 100:
        raise UsageError(f"replicates must be an integer of at least 100, not {replicates!r}")
    if not len(prefs):
        raise InputError("there are no judgments to diagnose")
    total = prefs.judgments
    start = prefs.member_groups.start
    drawn = Drawn.of(prefs, order, seed=seed)
    process = RiskProcess.of(Z, start, drawn, make)
    deviations = [
        worst(
            suprema(process, drawn, share, total, reach, replicates=replicates, seed=seed, queries_drawn=random),
            1.0 - LEVEL,
        )
        for random in (True, False)
    ]
    risk, nothing = (_mean(process.losses(at), drawn, share)[0] for at in (theta, np.zeros(len(theta))))
    high, steep = process.bounds(reach)
    k = int(total.max()) if order is None else min(order, int(total.max()))
    n = int(total.sum())
    curve = _curve(Z, prefs, make, theta, share, seed) if aggregates else []
    rate, bias, error = _extrapolated(curve, np.minimum(total, k), share, seed) if aggregates else (np.inf, 0.0, 0.0)
    return Diagnosis(
        n=n,
        queries=len(total),
        k=k,
        features=Z.shape[1],
        radius=reach,
        risk=risk,
        learned=nothing - risk,
        bound=high,
        lipschitz=steep,
        beta=tail_exponent(total),
        deviation=deviations[0],
        deviation_fixed=deviations[1],
        theorem=theorem_bound(n, k, Z.shape[1], reach, high, steep),
        rate=rate,
        bias=bias,
        bias_error=error,
        curve=tuple(curve),
    )


def centred_gains(
    prefs: Preferences,
    structure: str | Callable[..., Any],
    options: Mapping[str, Any],
    gain: str | Callable[[Floats], Floats],
    scale: float,
    normalise: bool,
    at: int | None,
) -> Make:
    """Return what makes gain regression with a free intercept of each query (28) of the subsets of a batch.

    The least over the intercept is the loss of centred gains, for features that are centred in each query.
    """
    gains = SampledGains(prefs, structure, options, None, gain, normalise, at, scale)

    def make(batch: Batch) -> Objective:
        groups, none = batch.node_groups, np.zeros(0)
        target = groups.centred(gains.gains(batch))
        pull = groups.spread(0.5 / np.maximum(groups.sizes, 1))
        ends = np.zeros(0, np.int64)
        edges = WeightedEdges(batch.node_start, ends, ends, none, none, pull, target)
        return Objective(edges, pair_loss("linear"), value_penalty("square"))

    return make


def theorem_bound(n: int, k: int, d: int, radius: float, bound: float, lipschitz: float) -> float:
    """Return the ε with log 2 + d log(1 + 8 r L/ε) − nε²/(32 k² B²) = log 0.05 (AoS, proof of Lemma 10)."""
    if not bound > 0:
        return 0.0
    low, high = 0.0, 1.0

    def left(epsilon: float) -> float:
        grown = d * np.log1p(8.0 * radius * lipschitz / epsilon)
        return float(np.log(2.0 / (1.0 - LEVEL)) + grown - n * epsilon**2 / (32.0 * k**2 * bound**2))

    while left(high) > 0:
        high *= 2.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if left(middle) > 0 else (low, middle)
    return high


def tail_exponent(total: Ints) -> float:
    """Return β with p_q ≈ K q^(−β−1) in the rarer half of the queries, by least squares; ∞ where none is seen.

    >>> round(tail_exponent((1e9 / np.arange(1.0, 200.0) ** 2.5).astype(np.int64)), 1)
    1.5
    """
    size = np.sort(total[total > 0])[::-1]
    if len(size) < TAIL:
        return float("inf")
    half = slice(len(size) // 2, None)
    slope = np.polyfit(np.log(np.arange(1, len(size) + 1)[half]), np.log(size[half]), 1)[0]
    return float(-slope - 1.0) if slope < -1.05 else float("inf")


def _mean(losses: Floats, drawn: Drawn, share: Floats) -> tuple[float, float]:
    """Mean of losses of graphs over each query, then over the queries, and its standard error within queries."""
    graphs = np.bincount(drawn.query, minlength=len(share))
    means = np.bincount(drawn.query, losses, len(share)) / np.maximum(graphs, 1)
    part = (losses - means[drawn.query]) * drawn.spread * share[drawn.query]
    return float(share @ means), float(np.sqrt(part @ part))


def _curve(
    Z: Floats, prefs: Preferences, make: Make, theta: Floats, share: Floats, seed: int
) -> list[tuple[int, float, float]]:
    """Risk at θ for k = 1, 2, 4, … on the queries with FEWEST blocks of the largest: with 80% of the judgments."""
    total = prefs.judgments
    order = np.argsort(-total, kind="stable")
    enough = int(np.searchsorted(np.cumsum(share[order]), 0.8))
    largest = int(total[order[min(enough, len(order) - 1)]]) // FEWEST
    if largest < 2 ** (RUNGS - 1):
        return []
    rungs = 2 ** np.arange(int(np.log2(largest)) + 1)
    held = np.flatnonzero(total >= FEWEST * rungs[-1])
    part = share / share[held].sum() * np.isin(np.arange(len(share)), held)
    found = []
    for k in rungs.tolist():
        drawn = Drawn.of(prefs, k, seed=seed, blocks=CURVE_BLOCKS)
        process = RiskProcess.of(Z, prefs.member_groups.start, drawn, make)
        found.append((k, *_mean(process.losses(theta), drawn, part)))
    return found


def _extrapolated(
    curve: list[tuple[int, float, float]], orders: Ints, share: Floats, seed: int
) -> tuple[float, float, float]:
    """Fit R_k = R + C k^(−ρ) by weighted least squares; return ρ, Σ_q share_q C k_q^(−ρ) and its standard error."""
    if len(curve) < RUNGS:
        return float("nan"), float("nan"), float("nan")
    k, risk, error = (np.array(column, np.float64) for column in zip(*curve[-LAST:], strict=True))
    error = np.maximum(error, 1e-9 * np.abs(risk).max() + 1e-300)
    draws = np.vstack((risk, risk + error * np.random.default_rng([seed, 20]).normal(size=(200, len(k)))))
    left, bias = [], []
    for rate in RATES:
        design = np.stack((np.ones(len(k)), k**-rate)) / error
        solution = np.linalg.lstsq(design.T, (draws / error).T, rcond=None)[0]
        left.append(np.square(draws / error - solution.T @ design).sum(axis=1))
        bias.append(solution[1] * float(share @ np.maximum(orders, 1.0) ** -rate))
    best = np.argmin(np.array(left), axis=0)
    found = np.array(bias)[best, np.arange(len(draws))]
    return float(RATES[best[0]]), float(found[0]), float(found[1:].std())


def diagnosed(ranker: Any, X: Any, y: Any, *, radius: float | None, replicates: int, seed: int) -> Diagnosis:
    """Return the diagnosis of a fitted ``AggregationRanker`` (its method ``diagnose``)."""
    check_is_fitted(ranker)
    training = learning_rows(X, y, ranker.missing_, structure=ranker.structure)
    prefs = training.prefs
    replaced = any(gate["candidates"][0]["taken"] is False for gate in ranker.status_.get("gate", []))
    if ranker.regressor is not None or ranker.intercept != "query" or ranker._informed(str(prefs.kind)) or replaced:
        raise UsageError(
            "Theorem 4 speaks of linear scorers fitted to what the judgments of each query say by themselves, with "
            "an intercept of its own: name a ",
            Setting("structure"),
            ", and give no regressor and no other intercept",
        )
    rows = matched(training.features, training.named, ranker._names, ranker.n_features_in_)[training.row]
    plan = next(
        plan
        for plan in ranker._plans(
            str(prefs.kind), largest=int(prefs.judgments.max()), informed=False, clicks=usual_clicks(prefs)
        )
        if all(ranker.status_.get(name, value) == value for name, value in plan.row.items() if name != "order")
    )
    options = settled(ranker.structure_options) | ({} if plan.c0 is None else {"c0": plan.c0})
    return diagnose(
        training.groups.centred(np.asarray(ranker._normalised(ranker.normaliser_, rows), np.float64)),
        prefs,
        centred_gains(prefs, plan.structure, options, plan.gain, plan.scale, plan.normalise, ranker.at),
        ranker.coef_standardised_,
        order=None if ranker.order_ == "all" else int(ranker.order_),
        share=training.share,
        radius=radius,
        replicates=replicates,
        seed=seed,
    )

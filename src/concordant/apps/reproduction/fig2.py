"""AoS Figure 2: the stochastic method (25) takes as many iterations whatever the order k and the number n."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from concordant.apps.reproduction.data import TITLES, GradedLists, read_graded
from concordant.apps.reproduction.fitting import GAIN
from concordant.apps.reproduction.outcome import Efforts, Outcome, Row, Setting, found
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.learning.solvers.sampled import Regression
from concordant.learning.solvers.stochastic import stochastic_fit
from concordant.learning.targets.mean_targets import mean_targets

Floats = NDArray[np.float64]
DATA = ("mq2008", "mslr")
"""The first that is there: short lists need fewer comparisons to say as much."""
N, K = 400_000, 100
NS = (100_000, 200_000, 400_000, 800_000)
KS = (1, 10, 100, 1000)
RUNS, STEPS, EVERY = 20, 8_000, 50
SCALE, RULE, RIDGE = 0.008, "1/sqrt(t)", 1e-2
SUBSETS = 128
FLAT = 1e-5
"""Directions with less than this share of the largest curvature are left out."""
LEVEL = 0.9
SHARE = 0.1


def run(setting: Setting) -> Outcome:
    """Run the experiment: gap against iterations, k at one n and n at one k."""
    lists = whitened(read_graded(next(name for name in DATA if found(name, setting.data)), setting.data))
    runs, steps = (3, 2_000) if setting.quick else (RUNS, STEPS)
    scale = SCALE * np.sqrt(STEPS / steps)
    settings = list(dict.fromkeys([*((N, k) for k in KS), *((n, K) for n in NS)]))
    points = np.arange(0, steps + 1, EVERY)
    table: dict[tuple[int, int], Floats] = {}
    effort = [1 + (k == K) for _, k in settings]  # subsets of middling size take longest
    told = Efforts(setting, float(sum(effort) * runs))
    for (n, k), each in zip(settings, effort, strict=True):
        curves = []
        for number in range(runs):
            curves.append(gaps(lists, n, k, points, float(scale), (setting.seed, number)))
            told.done(each)
        table[n, k] = np.array(curves)
    summary = _summary(table, points)
    return Outcome(
        "fig2",
        "AoS Figure 2: optimality gap against iterations",
        summary,
        _agreement(summary),
        lambda figure: _draw(figure, table, points),
        {"curve": _curves(table, points)},
        size=(8.0, 3.4),
        notes=(
            f"{TITLES[lists.name]}: {len(lists):,} queries, {len(lists.X):,} documents, {lists.X.shape[1]} directions "
            "of the features, brought to unit curvature.",
            f"{runs} runs, each with comparisons of its own; gain regression, ridge {RIDGE:g}, step {scale:.3g}/√t for "
            "all, from θ = 0, last iterate. The gap is exact, ½(θ − θ*)ᵀA(θ − θ*), not a moving average of sampled "
            "losses as in the paper.",
        ),
    )


def whitened(lists: GradedLists) -> GradedLists:
    """The lists with their features centred in each query and turned to directions of unit curvature."""
    none = np.zeros(len(lists.X))
    gram = NormalEquations.of(lists.X, none, lists.start, 1.0 / len(lists) / lists.size).gram
    curvature, direction = np.linalg.eigh(gram)
    keep = curvature > FLAT * curvature[-1]
    return replace(lists, X=lists.centred() @ (direction[:, keep] / np.sqrt(curvature[keep])))


def gaps(lists: GradedLists, n: int, k: int, points: NDArray[np.int64], scale: float, seed: tuple[int, int]) -> Floats:
    """Excess of the surrogate risk (19) with its penalty over the minimum, after each number of steps."""
    prefs = lists.draw(n, np.random.default_rng([*seed, n, k]))
    targets = mean_targets(prefs, order=k, subsets=SUBSETS, gain=GAIN, seed=seed[1])
    normal = NormalEquations.of(lists.X, targets.value, lists.start, targets.weight)
    best = normal.solve(RIDGE).theta
    fitted = stochastic_fit(
        Regression.of(lists.X, lists.alignment, prefs, order=k, gain=GAIN),
        ridge=RIDGE,
        steps=int(points[-1]),
        step_size=RULE,
        scale=scale,
        average=False,
        seed=seed[0] * 1_000 + seed[1],
        checkpoints=points.tolist(),
    )
    assert fitted.trace is not None
    away = fitted.trace.current - best
    curved = away @ (normal.gram + RIDGE * np.eye(len(best)))
    return np.asarray(0.5 * (curved * away).sum(axis=1))


def _reached(curve: Floats, points: NDArray[np.int64]) -> float:
    """Steps until the gap is a tenth of the first, between points by the straight line of its logarithm."""
    share = curve / curve[0]
    below = np.flatnonzero(share <= SHARE)
    if len(below) == 0:
        return float("nan")
    at = int(below[0])
    one, two = np.log(share[at - 1]), np.log(share[at])
    return float(points[at - 1] + (one - np.log(SHARE)) / (one - two) * (points[at] - points[at - 1]))


def _summary(table: Mapping[tuple[int, int], Floats], points: NDArray[np.int64]) -> list[Row]:
    rows: list[Row] = []
    for (n, k), curves in table.items():
        mean = curves.mean(axis=0)
        rows.append({"n": n, "k": k, "first gap": f"{mean[0]:.2e}", "steps to 10%": round(_reached(mean, points), 1),
                     "last gap / first": float(mean[-1] / mean[0])})  # fmt: skip
    return rows


def _curves(table: Mapping[tuple[int, int], Floats], points: NDArray[np.int64]) -> list[Row]:
    rows: list[Row] = []
    for (n, k), curves in table.items():
        mean, reach = _interval(curves)
        rows += [
            {"n": n, "k": k, "steps": int(t), "gap": float(m), "lower": float(m - r), "upper": float(m + r)}
            for t, m, r in zip(points, mean, reach, strict=True)
        ]
    return rows


def _interval(curves: Floats) -> tuple[Floats, Floats]:
    runs = len(curves)
    reach = stdtrit(runs - 1, 0.5 + LEVEL / 2) * curves.std(axis=0, ddof=1) / np.sqrt(runs)
    return curves.mean(axis=0), np.asarray(reach)


def _agreement(summary: Sequence[Row]) -> list[str]:
    said = []
    for what, chosen in (
        (f"k ≥ 10 at n = {N:,}", [row for row in summary if row["n"] == N and row["k"] >= 10]),
        (f"n at k = {K}", [row for row in summary if row["k"] == K]),
    ):
        steps = [row["steps to 10%"] for row in chosen]
        if not np.isfinite(steps).all():
            said.append(f"Across {what} a tenth of the first gap was not reached everywhere within the steps made.")
            continue
        apart = max(steps) / min(steps) - 1
        verdict = "the curves lie on one another, as in the paper" if apart < 0.2 else "more than in the paper"
        said.append(
            f"Across {what} it takes {min(steps):,.0f} to {max(steps):,.0f} steps to a tenth of the first gap: they "
            f"differ by {apart:.0%} ({verdict})."
        )
    one = next(row for row in summary if row["k"] == 1)
    other = next(row for row in summary if row["n"] == N and row["k"] == K)
    far = one["last gap / first"] / other["last gap / first"]
    if far > 2:
        said.append(
            f"k = 1 is slower here: after the same steps its gap is {far:.1f} times as large a share of the first as "
            f"with k = {K}, because a single comparison says little beside the noise that it brings."
        )
    return said


def _draw(figure: Any, table: Mapping[tuple[int, int], Floats], points: NDArray[np.int64]) -> None:
    """Left: k at one n; right: n at one k, as in the paper."""
    left, right = figure.subplots(1, 2, sharey=True)
    for axis, chosen, title in (
        (left, [(N, k) for k in KS], f"n = {N:,}"),
        (right, [(n, K) for n in NS], f"k = {K}"),
    ):
        for n, k in chosen:
            mean, reach = _interval(table[n, k])
            line = axis.plot(points, mean / mean[0], label=f"k = {k}" if axis is left else f"n = {n:,}")[0]
            axis.fill_between(points, (mean - reach) / mean[0], (mean + reach) / mean[0], color=line.get_color(),
                              alpha=0.2, linewidth=0)  # fmt: skip
        axis.axhline(SHARE, color="grey", linewidth=0.7, linestyle=":")
        axis.set_yscale("log")
        axis.set_title(title)
        axis.set_xlabel("iterations")
        axis.legend(fontsize=7)
    left.set_ylabel("optimality gap, share of the first")

"""AoS Figure 3: NDCG risk of gain regression against the order k, beside pairwise logistic and the limit scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.apps.reproduction.data import FULL, TITLES, GradedLists, read_graded
from concordant.apps.reproduction.fitting import (
    equations,
    informed_targets,
    likelihood_targets,
    limit_targets,
    logistic,
    order_targets,
    risks,
)
from concordant.apps.reproduction.outcome import Outcome, Row, Setting, found
from concordant.losses.metrics.metrics import Comparison, compare

Floats = NDArray[np.float64]
PER_QUERY = (20, 40, 80, 160, 320, 640)
"""Comparisons a query. The paper's 2·10⁵ … 1.6·10⁶ on 10⁴ queries are the first four."""
ORDERS = (1, 3, 10, 30, 100, 300)
SUBSETS = 16
RUNS = 50
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 0.3)
TAU2 = (1 / 16, 1 / 4, 1.0)
GAINS = ("identity", "2^s-1")
"""Variance about the first stage's scores, and gain, that feature-informed aggregation may choose from."""
DATA = ("mslr", "mq2008")
BT = "bradley-terry"
"""Complete aggregation by Bradley–Terry in the place of the average log-odds: not in the paper."""
BESIDE = ("logistic", BT, "informed")
"""Methods that no order k belongs to."""


@dataclass(frozen=True)
class _Chosen:
    """Settings that were best on the pilot draws."""

    logistic: float
    orders: Mapping[int | str, float]
    likelihood: float
    tau2: float
    gain: str
    informed: float


def run(setting: Setting) -> Outcome:
    """Run the experiment on the sets that are there."""
    sets = [read_graded(name, setting.data) for name in DATA if found(name, setting.data)]
    sizes = PER_QUERY[::3] if setting.quick else PER_QUERY
    tried = [_pilots(each, setting.quick) for each in sizes]
    draws = f"{min(tried)} to {max(tried)}" if min(tried) < max(tried) else str(tried[0])
    runs = 4 if setting.quick else RUNS
    steps = len(sets) * sum(runs + _pilots(each, setting.quick) for each in sizes)
    done = 0
    curves: list[Row] = []
    singles: list[Row] = []
    limits: dict[str, float] = {}
    for lists in sets:
        limits[lists.name] = _limit_risk(lists)
        for each in sizes if len(lists) < FULL else [size for size in sizes if size <= 160]:
            pilots = _pilots(each, setting.quick)
            chosen = _pilot(lists, each, pilots, setting.seed)
            done += pilots
            table: list[dict[int | str, float]] = []
            for number in range(runs):
                table.append(_one_run(lists, each, chosen, np.random.default_rng([setting.seed, 1, each, number])))
                done += 1
                setting.progress(done, steps)
            singles += [
                {"data": lists.name, "per query": each, "run": number + 1, "method": str(name), "risk": risk}
                for number, line in enumerate(table)
                for name, risk in line.items()
            ]
            curves += _curve(lists.name, each, table, chosen)
    summary = _summary(curves, singles, limits)
    return Outcome(
        "fig3",
        "AoS Figure 3: NDCG risk against the order of aggregation",
        summary,
        _agreement(summary, singles),
        lambda figure: _draw(figure, curves, limits),
        {"curve": curves, "runs": singles},
        size=(max(7.0, 2.3 * len({row["per query"] for row in curves})), 2.6 * len(sets)),
        notes=[
            f"{TITLES[lists.name]}: {len(lists):,} queries, {len(lists.X):,} documents, {lists.X.shape[1]} features. "
            for lists in sets
        ]
        + [
            f"{runs} runs; comparisons drawn by (26); risk (14) with G(s) = 2^s on the limit scores (27) of the "
            f"training queries, as in the paper. Ridges (and how the informed one aggregates) chosen on {draws} other "
            "draws. Differences are paired, with 95% intervals over runs."
        ],
    )


def _pilots(per_query: int, quick: bool) -> int:
    """Draws on which settings are chosen: more where they are noisier, and cheaper."""
    return 2 if quick else int(np.clip(1_600 // per_query, 10, 30))


def _limit_risk(lists: GradedLists) -> float:
    fitted = equations(lists, limit_targets(lists))
    return min(lists.risk(lists.X @ fitted.solve(ridge).theta) for ridge in RIDGES)


def _orders(per_query: int) -> list[int | str]:
    return [*(k for k in ORDERS if k < per_query), "all"]


def _pilot(lists: GradedLists, per_query: int, pilots: int, seed: int) -> _Chosen:
    """Choose ridges and gain by the mean risk on draws that are not used again."""
    orders = _orders(per_query)
    draws = [
        lists.draw(per_query * len(lists), np.random.default_rng([seed, 0, per_query, number]))
        for number in range(pilots)
    ]
    pairwise = [logistic(lists, prefs, RIDGES) for prefs in draws]
    at = int(np.mean([risks(lists, thetas) for thetas in pairwise], axis=0).argmin())
    ways = [(tau2, gain) for tau2 in TAU2 for gain in GAINS]
    total = np.zeros((len(RIDGES), len(orders) + 1 + len(ways)))
    for prefs, thetas in zip(draws, pairwise, strict=True):
        targets = [order_targets(prefs, orders, SUBSETS, seed), likelihood_targets(lists, prefs)]
        targets += [informed_targets(lists, prefs, thetas[:, at], tau2, GAINS) for tau2 in TAU2]
        fitted = equations(lists, np.column_stack(targets), prefs)
        total += np.array([risks(lists, fitted.solve(ridge).theta) for ridge in RIDGES])
    by_order, likelihood, informed = np.split(total, [len(orders), len(orders) + 1], axis=1)
    ridge, way = (int(place) for place in np.unravel_index(int(informed.argmin()), informed.shape))
    best = {k: RIDGES[int(column.argmin())] for k, column in zip(orders, by_order.T, strict=True)}
    return _Chosen(RIDGES[at], best, RIDGES[int(likelihood.argmin())], *ways[way], RIDGES[ridge])


def _one_run(lists: GradedLists, per_query: int, chosen: _Chosen, rng: np.random.Generator) -> dict[int | str, float]:
    """NDCG risk of every method on one draw."""
    prefs = lists.draw(per_query * len(lists), rng)
    theta = logistic(lists, prefs, [chosen.logistic])[:, 0]
    orders = list(chosen.orders)
    targets = [order_targets(prefs, orders, SUBSETS, int(rng.integers(1 << 31)))]
    targets.append(likelihood_targets(lists, prefs))
    targets.append(informed_targets(lists, prefs, theta, chosen.tau2, [chosen.gain]))
    fitted = equations(lists, np.column_stack(targets), prefs)
    out: dict[int | str, float] = {"logistic": lists.risk(lists.X @ theta)}
    beside = [(BT, chosen.likelihood), ("informed", chosen.informed)]
    for place, (name, ridge) in enumerate([*chosen.orders.items(), *beside]):
        out[name] = lists.risk(lists.X @ fitted.solve(ridge).theta[:, place])
    return out


def _curve(data: str, per_query: int, table: Sequence[Mapping[int | str, float]], chosen: _Chosen) -> list[Row]:
    """Mean risk and 95% interval of each method."""
    rows: list[Row] = []
    ridges = {"logistic": chosen.logistic, **chosen.orders, BT: chosen.likelihood, "informed": chosen.informed}
    for name in table[0]:
        spread = compare([line[name] for line in table], np.zeros(len(table)))
        rows.append(
            {
                "data": data,
                "per query": per_query,
                "method": str(name),
                "risk": spread.mean,
                "lower": spread.lower,
                "upper": spread.upper,
                "ridge": ridges[name],
                "gain": chosen.gain if name == "informed" else "",
                "tau2": chosen.tau2 if name == "informed" else "",
            }
        )
    return rows


def _paired(singles: Sequence[Row], data: str, per_query: int, method: str) -> Comparison:
    """The method less pairwise logistic, run by run."""
    one, two = (
        [row["risk"] for row in singles if (row["data"], row["per query"], row["method"]) == (data, per_query, name)]
        for name in (method, "logistic")
    )
    return compare(one, two)


def _summary(curves: Sequence[Row], singles: Sequence[Row], limits: Mapping[str, float]) -> list[Row]:
    out: list[Row] = []
    for data, each in dict.fromkeys((row["data"], row["per query"]) for row in curves):
        risk = {row["method"]: row["risk"] for row in curves if (row["data"], row["per query"]) == (data, each)}
        orders = [name for name in risk if name not in BESIDE]
        best = min(orders, key=lambda name: risk[name])
        line: dict[str, Any] = {
            "data": TITLES[data],
            "per query": each,
            "logistic": risk["logistic"],
            "k = 1": risk["1"],
        }
        line |= {"best k": best, "its risk": risk[best], "all": risk["all"], "limit scores": limits[data]}
        line |= {"Bradley–Terry": risk[BT], "informed": risk["informed"]}
        for name, method in (("k = 1", "1"), ("best k", best), ("Bradley–Terry", BT), ("informed", "informed")):
            line[f"{name} − logistic"] = _interval(_paired(singles, data, each, method))
        out.append(line)
    return out


def _interval(found: Comparison) -> str:
    return f"{found.mean:+.4f} [{found.lower:+.4f}, {found.upper:+.4f}]"


def _agreement(summary: Sequence[Row], singles: Sequence[Row]) -> list[str]:
    said = []
    for data, title in TITLES.items():
        lines = [row for row in summary if row["data"] == title]
        if not lines:
            continue
        sizes = [row["per query"] for row in lines]
        chosen = (["1"] * len(lines), [row["best k"] for row in lines], [BT] * len(lines), ["informed"] * len(lines))
        one, best, likelihood, informed = (
            [_paired(singles, data, each, method) for each, method in zip(sizes, methods, strict=True)]
            for methods in chosen
        )
        said.append(
            f"{title}: k = 1 is worse than pairwise logistic beyond the interval at {sum(x.lower > 0 for x in one)} of "
            f"{len(lines)} numbers of comparisons (paper: at all four); the best order is better at "
            f"{_where(sizes, [x.upper < 0 for x in best])}, worse at {_where(sizes, [x.lower > 0 for x in best])} "
            "comparisons a query and level elsewhere (paper: better at all four)."
        )
        said.append(
            f"{title}: complete aggregation by Bradley–Terry is better than pairwise logistic at "
            f"{_where(sizes, [x.upper < 0 for x in likelihood])}, worse at "
            f"{_where(sizes, [x.lower > 0 for x in likelihood])} comparisons a query and level elsewhere."
        )
        above = [f"{each} (by {x.mean:.5f})" for each, x in zip(sizes, informed, strict=True) if x.mean > 0]
        said.append(
            f"{title}: feature-informed aggregation is below pairwise logistic beyond the interval at "
            f"{_where(sizes, [x.upper < 0 for x in informed])} comparisons a query, above beyond it at "
            f"{_where(sizes, [x.lower > 0 for x in informed])}; its mean risk is above at {', '.join(above) or 'none'}."
        )
    return said


def _where(sizes: Sequence[int], chosen: Sequence[bool]) -> str:
    return ", ".join(str(size) for size, yes in zip(sizes, chosen, strict=True) if yes) or "none"


def _draw(figure: Any, curves: Sequence[Row], limits: Mapping[str, float]) -> None:
    """One panel for each number of comparisons, a row for each set; k on the horizontal axis."""
    sets = list(dict.fromkeys(row["data"] for row in curves))
    sizes = list(dict.fromkeys(row["per query"] for row in curves))
    panels = figure.subplots(len(sets), len(sizes), squeeze=False, sharey="row")
    for data, line in zip(sets, panels, strict=True):
        for each, axis in zip(sizes, line, strict=True):
            rows = [row for row in curves if (row["data"], row["per query"]) == (data, each)]
            if rows:
                _panel(axis, rows, limits[data])
            axis.set_title(f"{TITLES[data]}, {each} a query", fontsize=8)
        line[0].set_ylabel("NDCG risk")
    for axis in panels[-1]:
        axis.set_xlabel("aggregation order k")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)


def _panel(axis: Any, rows: Sequence[Row], limit: float) -> None:
    known = {row["method"]: row for row in rows}
    orders = [row for row in rows if row["method"] not in BESIDE]
    place = np.arange(len(orders))
    bars = np.array([[row["risk"] - row["lower"], row["upper"] - row["risk"]] for row in orders]).T
    axis.errorbar(place, [row["risk"] for row in orders], bars, fmt="o-", markersize=3, capsize=2, label="regression")
    for name, colour, style in (
        ("logistic", "tab:orange", "--"),
        (BT, "tab:purple", (0, (1, 1))),
        ("informed", "tab:green", "-."),
    ):
        axis.axhline(known[name]["risk"], color=colour, linestyle=style, label=name)
        axis.axhspan(known[name]["lower"], known[name]["upper"], color=colour, alpha=0.2, linewidth=0)
    axis.axhline(limit, color="grey", linestyle=":", label="limit scores")
    axis.set_xticks(place, [row["method"] for row in orders], fontsize=7)

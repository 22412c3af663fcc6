"""AoS Figure 4: the ridge λ hardly matters to gain regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from concordant.apps.reproduction.data import TITLES, read_graded
from concordant.apps.reproduction.fitting import equations, order_targets, risks
from concordant.apps.reproduction.outcome import Efforts, Outcome, Row, Setting, found
from concordant.losses.metrics.metrics import compare

DATA = ("mslr", "mq2008")
PER_QUERY = 80
"""n = 8·10⁵ on 10⁴ queries."""
K, SUBSETS = 100, 16
RIDGES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
RUNS = 50


def run(setting: Setting) -> Outcome:
    """Run the experiment on the sets that are there."""
    sets = [read_graded(name, setting.data) for name in DATA if found(name, setting.data)]
    runs = 4 if setting.quick else RUNS
    rows: list[Row] = []
    told = Efforts(setting, float(runs * sum(len(lists.X) for lists in sets)))
    for lists in sets:
        table = []
        for number in range(runs):
            rng = np.random.default_rng([setting.seed, 4, number])
            prefs = lists.draw(PER_QUERY * len(lists), rng)
            fitted = equations(lists, order_targets(prefs, [K], SUBSETS, int(rng.integers(1 << 31))), prefs)
            table.append(risks(lists, np.column_stack([fitted.solve(ridge).theta for ridge in RIDGES])))
            told.done(len(lists.X))
        for ridge, column in zip(RIDGES, np.array(table).T, strict=True):
            found_ = compare(column, np.zeros(runs))
            rows.append({"data": TITLES[lists.name], "ridge": f"{ridge:g}", "risk": found_.mean,
                         "lower": found_.lower, "upper": found_.upper})  # fmt: skip
    return Outcome(
        "fig4",
        "AoS Figure 4: NDCG risk against the ridge",
        rows,
        _agreement(rows),
        lambda figure: _draw(figure, rows),
        size=(3.4 * len(sets), 2.8),
        notes=[
            f"{runs} runs, {PER_QUERY} comparisons a query (the paper's 8·10⁵ on 10⁴ queries), k = {K} (a query with "
            "fewer has all of them as its one subset); 95% intervals over runs."
        ],
    )


def _agreement(rows: Sequence[Row]) -> list[str]:
    said = []
    for data in dict.fromkeys(row["data"] for row in rows):
        risk = {row["ridge"]: row["risk"] for row in rows if row["data"] == data}
        low, high = min(risk.values()), max(risk.values())
        worst = max(risk, key=lambda ridge: risk[ridge])
        verdict = "flat, as in the paper" if high / low - 1 < 0.05 else "not flat at the ends"
        said.append(
            f"{data}: over seven decades of λ the risk stays between {low:.4f} and {high:.4f} (+{high / low - 1:.1%}, "
            f"highest at λ = {worst}): {verdict}."
        )
    return said


def _draw(figure: Any, rows: Sequence[Row]) -> None:
    """Risk against λ, one panel for each set."""
    sets = list(dict.fromkeys(row["data"] for row in rows))
    for data, axis in zip(sets, figure.subplots(1, len(sets), squeeze=False)[0], strict=True):
        lines = [row for row in rows if row["data"] == data]
        bars = np.array([[row["risk"] - row["lower"], row["upper"] - row["risk"]] for row in lines]).T
        axis.errorbar([float(row["ridge"]) for row in lines], [row["risk"] for row in lines], bars, fmt="o-",
                      markersize=3, capsize=2)  # fmt: skip
        axis.set_xscale("log")
        low = min(row["lower"] for row in lines)
        axis.set_ylim(0.9 * low, max(1.2 * low, 1.02 * max(row["upper"] for row in lines)))
        axis.set_title(data)
        axis.set_xlabel("ridge λ")
    figure.axes[0].set_ylabel("NDCG risk")

"""The figure of AoS Figure 3: for each set a row of axes by stochastic gradients and one of converged fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from concordant.apps.reproduction.data import TITLES
from concordant.apps.reproduction.fig3_converged import BT, INFORMED, LOGISTIC, UNTUNED
from concordant.apps.reproduction.outcome import Row

LINES: Mapping[str, tuple[str, Any, str]] = {
    LOGISTIC: ("tab:orange", "--", "pairwise logistic"),
    UNTUNED: ("tab:blue", (0, (1, 1)), "all comparisons, c₀ = ½, β = 1"),
    BT: ("tab:purple", (0, (4, 1, 1, 1)), "all comparisons, Bradley–Terry"),
    INFORMED: ("tab:green", "-.", "all comparisons, feature-informed"),
}


def draw(figure: Any, curves: Sequence[Row], limits: Mapping[str, float], beside: Sequence[str]) -> None:
    """One panel for each number of comparisons; k on the horizontal axis."""
    lines = list(dict.fromkeys((row["data"], row["panel"]) for row in curves))
    lines.sort(key=lambda line: (list(limits).index(line[0]), line[1] != "stochastic"))
    sizes = list(dict.fromkeys(row["per query"] for row in curves))
    panels = figure.subplots(len(lines), len(sizes), squeeze=False, sharey="row")
    labels: dict[str, Any] = {}
    for (data, panel), axes in zip(lines, panels, strict=True):
        for each, axis in zip(sizes, axes, strict=True):
            rows = [row for row in curves if (row["data"], row["panel"], row["per query"]) == (data, panel, each)]
            if not rows:
                axis.set_axis_off()
                continue
            _panel(axis, rows, limits[data], beside)
            axis.set_title(f"{each} comparisons a query", fontsize=9)
            axis.set_xlabel("order k")
            labels |= dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
        axes[0].set_ylabel(f"{TITLES[data]}, {panel}\nNDCG risk")
    figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=3, fontsize=10)


def _panel(axis: Any, rows: Sequence[Row], limit: float, beside: Sequence[str]) -> None:
    known = {row["method"]: row for row in rows}
    orders = [row for row in rows if row["method"] not in beside]
    place = np.arange(len(orders))
    bars = np.array([[row["risk"] - row["lower"], row["upper"] - row["risk"]] for row in orders]).T
    axis.errorbar(
        place, [row["risk"] for row in orders], bars, fmt="o-", color="tab:blue", markersize=3, capsize=2,
        label="gain regression, order k",
    )  # fmt: skip
    for name, (colour, style, label) in LINES.items():
        if name in known:
            axis.axhline(known[name]["risk"], color=colour, linestyle=style, label=label)
            if name == LOGISTIC:
                axis.axhspan(known[name]["lower"], known[name]["upper"], color=colour, alpha=0.2, linewidth=0)
    axis.axhline(limit, color="grey", linestyle=":", label="limit scores")
    axis.set_xticks(place, [row["method"] for row in orders])

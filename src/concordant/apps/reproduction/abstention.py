"""RwA Table 1: pairwise abstention loss for several γ and costs, on digits and, where it is at hand, on CIFAR-10."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from concordant.apps.reproduction.digits import (
    HIDDEN,
    PIXEL,
    QUICK_STEPS,
    STEPS,
    TRAIN,
    JudgedDigits,
    PairProfile,
    digits_runs,
    distances,
)
from concordant.apps.reproduction.digits_chosen import FOLDS, LabelledPairs, set_by_predicted_error, unseen_scores
from concordant.apps.reproduction.outcome import SOURCES, Efforts, Outcome, Row, Setting, find, found
from concordant.errors import ConcordantError, counted

GAMMAS = (0.0, 0.3, 0.5, 0.7, 0.9)
COSTS = (0.1, 0.3, 0.5)
PAPER = {
    0.1: ((8.33, 0.15), (8.33, 0.15), (8.33, 0.15), (8.25, 0.07), (8.54, 0.07)),
    0.3: ((8.33, 0.15), (8.33, 0.15), (8.35, 0.15), (9.73, 0.11), (20.41, 0.06)),
    0.5: ((8.33, 0.15), (8.33, 0.15), (8.36, 0.14), (11.20, 0.14), (32.28, 0.07)),
}
"""Mean and standard deviation of the loss in percent, by cost, for each γ."""
SHARES = (0.0, 0.0, 0.0005, 0.074, 0.594)
"""Shares of near pairs in the paper: the slope of its losses in the cost."""
RATIOS = (1.2, 3.6, 6.0)
"""The paper's costs over its loss at γ = 0."""
RUNS = 3
COLUMNS = tuple(f"γ = {gamma:g}" for gamma in GAMMAS)


@dataclass(frozen=True)
class Measured:
    """Runs on one set with one norm, judged at a γ for each column (None: left out) and three costs."""

    name: str
    runs: Sequence[PairProfile]
    levels: Sequence[int | None]
    """Whole distance that stands for each γ."""
    gammas: Sequence[float | None]
    costs: Sequence[float]

    @classmethod
    def of(
        cls, name: str, runs: Sequence[PairProfile], levels: Sequence[int | None], gammas: Sequence[float | None]
    ) -> Measured:
        """Costs in the paper's ratios to the mean loss without abstention, at most 1."""
        error = float(np.mean([each.error for each in runs]))
        return cls(name, runs, levels, gammas, [min(1.0, ratio * error) for ratio in RATIOS])

    def rows(self) -> list[Row]:
        """The table: γ, near share and error of near pairs, then a line for each cost."""
        lines: list[Row] = [
            self._line("γ", [f"{gamma:.3g}" if gamma is not None else "" for gamma in self.gammas]),
            self._line("near pairs, %", [self._spread("share", at) for at in self.levels]),
            self._line("error of near pairs, %", [self._spread("near_error", at) for at in self.levels]),
        ]
        for cost in self.costs:
            what = f"loss, %, c = {cost:.3f} ({cost / self.error:.2g} × loss)"
            lines.append(self._line(what, [self._spread("loss", at, cost) for at in self.levels]))
        return lines

    def single(self) -> list[Row]:
        """One line for each run, γ and cost."""
        return [
            {
                "data": self.name,
                "run": number,
                "gamma": gamma,
                "near share": each.share(at),
                "near error": each.near_error(at),
                "loss without abstention": each.error,
                "A": each.kept(at),
                "cost": cost,
                "loss": each.loss(at, cost),
            }
            for number, each in enumerate(self.runs, 1)
            for at, gamma in zip(self.levels, self.gammas, strict=True)
            if at is not None and gamma is not None
            for cost in self.costs
        ]

    @property
    def error(self) -> float:
        """Mean loss without abstention."""
        return float(np.mean([each.error for each in self.runs]))

    def mean(self, what: str, at: int, *more: float) -> float:
        """Mean over runs; NaN where there are no near pairs."""
        return float(np.mean([getattr(each, what)(at, *more) for each in self.runs]))

    def used(self) -> list[tuple[float, int]]:
        """The (γ, distance) of the columns with near pairs."""
        both = [(g, at) for g, at in zip(self.gammas, self.levels, strict=True) if at is not None and g is not None]
        return [(gamma, at) for gamma, at in both if self.mean("share", at) > 0]

    def _line(self, row: str, cells: Sequence[str]) -> Row:
        return {"data": self.name, "row": row, **dict(zip(COLUMNS, cells, strict=True))}

    def _spread(self, what: str, at: int | None, *more: float) -> str:
        if at is None:
            return ""
        values = 100 * np.array([getattr(each, what)(at, *more) for each in self.runs])
        if np.isnan(values).any():
            return "–"
        if not values.any():
            return "0"
        told = f"{values.mean():.3g}" if values.mean() < 1 else f"{values.mean():.2f}"
        return f"{told} ± {values.std(ddof=1):.2g}" if len(values) >= RUNS else told


def paper_table() -> list[Row]:
    """What the paper's losses say through A + c·ρ: ρ from the outer costs, A, and the error of the near pairs.

    >>> row = paper_table()[3]
    >>> round(row["near share"], 4), round(row["near error"], 3), row["largest difference"] < 1e-4
    (0.0737, 0.111, True)
    """
    rows: list[Row] = []
    costs = np.array(COSTS)
    for place, gamma in enumerate(GAMMAS):
        loss = np.array([PAPER[cost][place][0] for cost in COSTS]) / 100
        share, kept = np.polyfit(costs, loss, 1)
        start = PAPER[COSTS[0]][0][0] / 100
        rows.append(
            {
                "gamma": gamma,
                "near share": float(share) if share > 1e-4 else 0.0,
                "A": float(kept),
                "near error": float((start - kept) / share) if share > 1e-3 else float("nan"),
                "largest difference": float(np.abs(kept + costs * share - loss).max()),
            }
        )
    return rows


def paper_rows() -> list[Row]:
    """The paper's lines of the table."""
    name, implied = "paper, CIFAR-10", paper_table()
    shares = [f"{100 * row['near share']:.2g}" for row in implied]
    errors = ["–" if np.isnan(row["near error"]) else f"{100 * row['near error']:.1f}" for row in implied]
    lines: list[Row] = [
        {"data": name, "row": "near pairs, %", **dict(zip(COLUMNS, shares, strict=True))},
        {"data": name, "row": "error of near pairs, %", **dict(zip(COLUMNS, errors, strict=True))},
    ]
    for ratio, cost in zip(RATIOS, COSTS, strict=True):
        cells = [f"{mean:.2f} ± {spread:.2f}" for mean, spread in PAPER[cost]]
        lines.append({"data": name, "row": f"loss, %, c = {cost:g} ({ratio:g} × loss)", **dict(zip(COLUMNS, cells))})
    return lines


def paper_said() -> str:
    """Say what the paper's table obeys."""
    rows = paper_table()
    off = max(row["largest difference"] for row in rows)
    told = ", ".join(
        f"ρ = {100 * row['near share']:.1f}% and {100 * row['near error']:.1f}% of the near pairs wrong at "
        f"γ = {row['gamma']:g}"
        for row in rows
        if row["near share"] > 0.01
    )
    return (
        f"Paper: every column is loss = A + c·ρ to {100 * off:.3f} points; so {told}, and abstention pays at c = .1 "
        "for the first only."
    )


def said(measured: Measured) -> list[str]:
    """Where abstention pays: at costs below the error of the near pairs."""
    error = measured.error
    near = [
        f"γ = {gamma:.3g} (ρ = {100 * measured.mean('share', at):.2g}%) {measured.mean('near_error', at) / error:.2f}×"
        for gamma, at in measured.used()
    ]
    pays = [
        f"γ = {gamma:.3g} at c = {cost / error:.2g} × loss ({_gain(measured, at, cost)} points)"
        for gamma, at in measured.used()
        for cost in measured.costs
        if measured.mean("near_error", at) > cost
    ]
    least = [measured.mean("loss", at, measured.costs[-1]) for at in (0, *(at for _, at in measured.used()))]
    rising = all(b >= a - 1e-12 for a, b in pairwise(least))
    return [
        f"{measured.name}: loss {100 * error:.2f}% without abstention; near pairs are wrong so many times as often as "
        f"all pairs: {', '.join(near)} (paper: 1.33× at ρ = 7.4%, 1.15× at 59%).",
        f"{measured.name}: abstention pays at {'; '.join(pays) if pays else 'none of the costs'} (paper: at 1.2 × loss "
        "and γ = .7 only), as it does where near pairs are wrong more often than c; at the greatest cost the loss "
        f"{'rises' if rising else 'does not rise'} with γ (paper: rises).",
    ]


def _gain(measured: Measured, at: int, cost: float) -> str:
    return f"{100 * (measured.mean('loss', at, cost) - measured.mean('loss', 0, cost)):+.3f}"


COLOURS = ("tab:blue", "tab:orange", "tab:green")


def draw(figure: Any, measured: Sequence[Measured], chosen: Sequence[Row]) -> None:
    """Loss over the loss without abstention, and error of near pairs over that of all, against the near share.

    Last the loss where only the near pairs of predicted error above the cost are abstained from.
    """
    left, right, last = figure.subplots(1, 3)
    _draw_chosen(last, chosen)
    colours = COLOURS
    implied = paper_table()[3:]
    start = PAPER[COSTS[0]][0][0]
    x = [100 * row["near share"] for row in implied]
    for ratio, cost, colour in zip(RATIOS, COSTS, colours, strict=True):
        left.plot(
            x, [PAPER[cost][place][0] / start for place in (3, 4)], "s:", color=colour, label=f"c = {ratio:g} × loss"
        )
        right.axhline(ratio, color=colour, linewidth=0.8)
    right.plot(x, [100 * row["near error"] / start for row in implied], "ks:", label="paper, CIFAR-10")
    for each, marker in zip(measured, "o^v", strict=False):
        error = each.error
        x = [100 * each.mean("share", at) for _, at in each.used()]
        for cost, colour in zip(each.costs, colours, strict=True):
            left.plot(x, [each.mean("loss", at, cost) / error for _, at in each.used()], f"{marker}-", color=colour)
        right.plot(x, [each.mean("near_error", at) / error for _, at in each.used()], f"k{marker}-", label=each.name)
    for axis, title in ((left, "loss"), (right, "error of near pairs")):
        axis.set_xscale("log")
        axis.set_xlabel("near pairs, %")
        axis.set_ylabel(f"{title} / loss without abstention")
    right.set_ylim(0, 2)
    left.set_yscale("log")
    left.set_yticks([1, 1.5, 2, 3, 4], ["1", "1.5", "2", "3", "4"])
    left.set_yticks([], minor=True)
    left.legend(fontsize=8)
    right.legend(fontsize=8)


def _draw_chosen(axis: Any, chosen: Sequence[Row]) -> None:
    for data, marker in zip(dict.fromkeys(row["data"] for row in chosen), "o^", strict=False):
        for ratio, colour in zip(RATIOS, COLOURS, strict=True):
            lines = [row for row in chosen if (row["data"], row["cost / loss"]) == (data, ratio)]
            loss, share = [], []
            for way in dict.fromkeys(row["γ"] for row in lines):
                rows = [row for row in lines if row["γ"] == way]
                loss.append(np.mean([row["loss"] / row["without"] for row in rows]))
                share.append(np.mean([100 * row["near share"] for row in rows]))
            label = f"{data}, c = {ratio:g} × loss"
            axis.plot(
                share, loss, f"{marker}-", color=colour, label=label, fillstyle="none" if marker == "^" else "full"
            )
    axis.axhline(1, color="grey", linewidth=0.8)
    axis.set_xscale("log")
    axis.set_xlabel("near pairs, %")
    axis.set_ylabel("loss / loss without abstention")
    axis.set_title("only near pairs of predicted error above c", fontsize=9)
    axis.legend(fontsize=8)


SET = "cifar-10-batches-bin"


def run(setting: Setting) -> Outcome:
    """Run digits, and CIFAR-10 where ``setting.data`` holds it."""
    folder = found(SET, setting.data) if setting.data is not None else None
    if setting.device != "cpu" and folder is None:
        find(SET, setting.data)  # says what is needed
    measured, notes = [], []
    if folder is not None and setting.device == "cpu" and not setting.quick:
        notes.append("CIFAR-10 is left out: 200 epochs of ResNet-34 on the cpu; take --device cuda, or --quick.")
    elif folder is not None:
        images, note = _cifar(setting, folder)
        measured.append(images)
        notes.append(note)
    elif setting.data is not None:
        marks = " and ".join(SOURCES[SET][0])
        notes.append(f"CIFAR-10 is left out: no {marks} in {setting.data} or its folder {SET}.")
    digits, note, identity, chosen = _digits(setting)
    measured, notes = [*digits, *measured], [note, *notes]
    return Outcome(
        "abstention",
        "RwA Table 1: ranking with abstention",
        [*paper_rows(), *(row for each in measured for row in each.rows())],
        [paper_said(), identity, *(sentence for each in measured for sentence in said(each)), *_chosen_said(chosen)],
        lambda figure: draw(figure, measured, chosen),
        {"runs": [row for each in measured for row in each.single()], "paper": paper_table(), "chosen": chosen},
        shown={
            "Digits, of the near pairs only those of predicted error above c are abstained from:": _chosen_rows(chosen)
        },
        size=(12.0, 3.8),
        notes=notes,
    )


NETWORK, DISTANCES, JUDGED = 0.0045, 0.2, 0.5
"""Seconds of a step of a network, of all distances by a norm, of a run judged by them, about."""


def _digits(setting: Setting) -> tuple[list[Measured], str, str, list[Row]]:
    """Shares of near pairs as near to the paper's as whole distances allow, never above; a note; the identity.

    Last, abstention on the near pairs of predicted error above the cost, by run.
    """
    number, steps = (1, QUICK_STEPS) if setting.quick else (RUNS, STEPS)
    network = NETWORK * steps
    told = Efforts(setting, number * (1 + FOLDS) * network + 2 * (DISTANCES + number * JUDGED))
    trained = partial(told.done, network)
    runs = digits_runs(runs=number, quick=setting.quick, seed=setting.seed, told=trained)
    unseen = [unseen_scores(*each.learned, steps=steps, seed=each.seed, told=trained) for each in runs]
    out, off, chosen = [], 0.0, list[Row]()
    for norm, name in {"inf": "digits, ℓ∞", "2": "digits, ℓ2"}.items():
        every = distances(norm)
        told.done(DISTANCES)
        levels = [0, None, *(every.level_of(share) for share in SHARES[2:])]
        used = [at for at in levels if at is not None]
        gammas = [None if at is None else (at if norm == "inf" else at**0.5) / PIXEL for at in levels]
        measured = Measured.of(name, [each.profile(norm) for each in runs], levels, gammas)
        for judged, counts in zip(runs, measured.runs, strict=True):
            for cost in measured.costs:
                loss = judged.losses(used, cost, norm)
                off = max(off, *(abs(counts.loss(at, cost) - value) for at, value in zip(used, loss, strict=True)))
        out.append(measured)
        told.done(0.5 * JUDGED * number)
        chosen += _chosen(measured, runs, unseen, norm)
        told.done(0.5 * JUDGED * number)
    note = (
        f"Digits of scikit-learn: {TRAIN:,} images train, the other {len(runs[0].label)} are judged, "
        f"{counted(len(runs), 'divisions')} at random; 64 pixels in [0, 1], one hidden layer of {HIDDEN} ReLU, "
        "exponential loss over all pairs of different labels. Mean ± standard deviation, from three runs only."
    )
    identity = f"Digits: loss = A + c·ρ in every run, γ and cost; the largest difference is {off:.1e}."
    return out, note, identity, chosen


def _chosen(measured: Measured, runs: Sequence[JudgedDigits], unseen: Sequence[Any], norm: str) -> list[Row]:
    """Sets of near pairs, and of all, whose predicted error is above each cost."""
    rows: list[Row] = []
    used = [(f"{gamma:.3g}", at) for gamma, at in measured.used()]
    for number, (each, parts) in enumerate(zip(runs, unseen, strict=True), 1):
        judged = LabelledPairs.of(each.whole, each.label, each.score, norm)
        whole, label = each.learned
        learned = LabelledPairs.joined([LabelledPairs.of(whole[at], label[at], score, norm) for at, score in parts])
        for gamma, at in [*used, ("∞", None)]:
            for cost, ratio in zip(measured.costs, RATIOS, strict=True):
                found = set_by_predicted_error(learned, judged, at, cost)
                rows.append(
                    {
                        "data": measured.name,
                        "run": number,
                        "γ": gamma,
                        "near share": float(judged.near(at).mean()),
                        "cost / loss": ratio,
                        "cost": cost,
                        "share": found.share,
                        "error": found.error,
                        "loss": found.loss,
                        "without": float(judged.wrong.mean()),
                    }
                )
    return rows


def _chosen_rows(chosen: Sequence[Row]) -> list[Row]:
    """Means over runs, in percent."""
    out: list[Row] = []
    for key in dict.fromkeys((row["data"], row["γ"], row["cost / loss"]) for row in chosen):
        rows = [row for row in chosen if (row["data"], row["γ"], row["cost / loss"]) == key]
        near, share, loss = (np.array([100 * row[name] for row in rows]) for name in ("near share", "share", "loss"))
        apart = loss - np.array([100 * row["without"] for row in rows])
        wrong = sum(row["error"] * row["share"] for row in rows if row["share"] > 0)
        error = f"{1e4 * wrong / share.sum():.1f}" if share.sum() > 0 else "–"
        out.append(
            {"data": key[0], "γ": key[1], "near pairs, %": f"{near.mean():.3g}", "c / loss": f"{key[2]:g}",
             "set, %": f"{share.mean():.2g}", "its error, %": error, "loss, %": f"{loss.mean():.2f}",
             "less without, points": _spread_of(apart)}
        )  # fmt: skip
    return out


def _spread_of(apart: Any) -> str:
    return f"{apart.mean():+.3f} ± {apart.std(ddof=1):.3f}" if len(apart) > 1 else f"{apart.mean():+.3f}"


def _chosen_said(chosen: Sequence[Row]) -> list[str]:
    """Say whether the dip is there."""
    out = []
    for data in dict.fromkeys(row["data"] for row in chosen):
        dips = []
        for gamma in dict.fromkeys(row["γ"] for row in chosen if row["data"] == data):
            rows = [row for row in chosen if (row["data"], row["γ"], row["cost / loss"]) == (data, gamma, RATIOS[0])]
            apart = [100 * (row["loss"] - row["without"]) for row in rows]
            below = f"below 0 in {sum(x < 0 for x in apart)} of {len(apart)} runs"
            dips.append(f"γ = {gamma} {np.mean(apart):+.3f} points ({below})")
        out.append(
            f"{data}, abstention on the near pairs of predicted error above c = {RATIOS[0]:g} × loss, less the loss "
            f"without: {', '.join(dips)} (paper, all near pairs: -0.08 at γ = .7, +0.21 at .9)."
        )
    return out


def _cifar(setting: Setting, folder: Path) -> tuple[Measured, str]:
    """The paper's γ on the test images."""
    try:
        from concordant.apps.reproduction.cifar import cifar_profiles, read_cifar
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        raise ConcordantError(
            "CIFAR-10 needs PyTorch, which is not installed: pip install 'concordant[torch]'"
        ) from None
    images = read_cifar(folder)
    runs = cifar_profiles(images, setting, setting.output or Path("reproduction-output"))
    levels = [int(np.floor(255 * gamma + 1e-9)) for gamma in GAMMAS]
    note = f"{images.note} ResNet-34, {'10 epochs (--quick), one run' if setting.quick else '200 epochs, three runs'}."
    return Measured.of("CIFAR-10, ℓ∞", runs, levels, GAMMAS), note

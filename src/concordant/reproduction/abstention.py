"""RwA Table 1: pairwise abstention loss for several γ and costs, on digits and, where it is at hand, on CIFAR-10."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from concordant.errors import ConcordantError, counted
from concordant.reproduction.abstention_report import (
    GAMMAS,
    RUNS,
    SHARES,
    Measured,
    draw,
    paper_rows,
    paper_said,
    paper_table,
    said,
)
from concordant.reproduction.cifar import read_cifar
from concordant.reproduction.digits import HIDDEN, PIXEL, TRAIN, digits_runs, distances
from concordant.reproduction.outcome import Outcome, Setting
from concordant.reproduction.places import SOURCES, find, found

__all__ = ["run"]

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
    digits, note, identity = _digits(setting)
    measured, notes = [*digits, *measured], [note, *notes]
    return Outcome(
        "abstention",
        "RwA Table 1: ranking with abstention",
        [*paper_rows(), *(row for each in measured for row in each.rows())],
        [paper_said(), identity, *(sentence for each in measured for sentence in said(each))],
        lambda figure: draw(figure, measured),
        {"runs": [row for each in measured for row in each.single()], "paper": paper_table()},
        size=(8.0, 3.4),
        notes=notes,
    )


def _digits(setting: Setting) -> tuple[list[Measured], str, str]:
    """Shares of near pairs as near to the paper's as whole distances allow, never above; a note; the identity."""
    runs = digits_runs(
        runs=1 if setting.quick else RUNS, quick=setting.quick, seed=setting.seed, progress=setting.progress
    )
    out, off = [], 0.0
    for norm, name in {"inf": "digits, ℓ∞", "2": "digits, ℓ2"}.items():
        every = distances(norm)
        levels = [0, None, *(every.level_of(share) for share in SHARES[2:])]
        used = [at for at in levels if at is not None]
        gammas = [None if at is None else (at if norm == "inf" else at**0.5) / PIXEL for at in levels]
        measured = Measured.of(name, [each.profile(norm) for each in runs], levels, gammas)
        for judged, counts in zip(runs, measured.runs, strict=True):
            for cost in measured.costs:
                loss = judged.losses(used, cost, norm)
                off = max(off, *(abs(counts.loss(at, cost) - value) for at, value in zip(used, loss, strict=True)))
        out.append(measured)
    note = (
        f"Digits of scikit-learn: {TRAIN:,} images train, the other {len(runs[0].label)} are judged, "
        f"{counted(len(runs), 'divisions')} at random; 64 pixels in [0, 1], one hidden layer of {HIDDEN} ReLU, "
        "exponential loss over all pairs of different labels. Mean ± standard deviation, from three runs only."
    )
    identity = f"Digits: loss = A + c·ρ in every run, γ and cost; the largest difference is {off:.1e}."
    return out, note, identity


def _cifar(setting: Setting, folder: Path) -> tuple[Measured, str]:
    """The paper's γ on the test images."""
    try:
        from concordant.reproduction.cifar_runs import cifar_profiles
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

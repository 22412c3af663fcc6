"""What an experiment hands back and how it is written (CSV, Markdown, SVG, PNG), and where its data come from."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from concordant.errors import ConcordantError, InputError, few
from concordant.io.log.disk import in_place_of

Row = Mapping[str, Any]
DPI = 150


def _silent(done: float, total: float) -> None:
    """Report to nobody."""


@dataclass(frozen=True)
class Setting:
    """How an experiment is to be run."""

    data: Path | None = None
    """Folder of the data sets; None: the usual places."""
    quick: bool = False
    """Few runs on less data: minutes become seconds."""
    seed: int = 0
    progress: Callable[[float, float], None] = _silent
    """Called with what is done and the whole, whose unit takes the same time; first with 0, once data are read."""
    device: str = "cpu"
    """Where networks are trained."""
    output: Path | None = None
    """Folder for what long work keeps to go on from."""


class Efforts:
    """How far an experiment is, in what its steps take beside each other."""

    def __init__(self, setting: Setting, total: float) -> None:
        self._setting, self._total, self._done = setting, total, 0.0
        setting.progress(0.0, total)

    def done(self, effort: float) -> None:
        """Say that so much more is done."""
        self._done += effort
        self._setting.progress(min(self._done, self._total), self._total)

    def part_of(self, effort: float) -> Callable[[float], None]:
        """Return what says that a share of an effort is done."""
        return lambda share: self.done(share * effort)


@dataclass(frozen=True)
class Outcome:
    """Numbers, figure and words of one experiment."""

    name: str
    title: str
    summary: Sequence[Row]
    """The table to show, with the paper's values where it has some."""
    agreement: Sequence[str]
    """What agrees with the paper and what does not, said from the numbers."""
    draw: Callable[[Any], None]
    """Fills an empty matplotlib figure."""
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """Further tables by name: single runs, curves."""
    shown: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """Tables, by what they say, that follow the summary in the text."""
    size: tuple[float, float] = (6.4, 4.0)
    """Of the figure, in inches."""
    notes: Sequence[str] = ()
    """What data and settings were used."""

    def markdown(self) -> str:
        """Title, settings, table and sentences."""
        lines = [f"## {self.title}", "", *(f"{note}  " for note in self.notes), "", markdown_table(self.summary), ""]
        for says, rows in self.shown.items():
            lines += [says, "", markdown_table(rows), ""]
        return "\n".join([*lines, *(f"- {sentence}" for sentence in self.agreement)]) + "\n"


def markdown_table(rows: Sequence[Row]) -> str:
    """Return rows as a Markdown table.

    >>> print(markdown_table([{"k": 1, "risk": 0.25}, {"k": 10, "risk": float("nan")}]))
    | k | risk |
    |---:|---:|
    | 1 | 0.2500 |
    | 10 |  |
    """
    if not rows:
        return ""
    names = list(rows[0])
    sides = [":---" if isinstance(rows[0][name], str) else "---:" for name in names]
    body = ["| " + " | ".join(_cell(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(names) + " |", "|" + "|".join(sides) + "|", *body])


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4f}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def write_numbers(outcome: Outcome, folder: Path) -> list[Path]:
    """Write the tables as CSV and the text as Markdown; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, rows in {"": outcome.summary, **outcome.tables}.items():
        path = folder / (f"{outcome.name}-{name}.csv" if name else f"{outcome.name}.csv")
        with in_place_of(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            columns = list(dict.fromkeys(column for row in rows for column in row))
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows({key: _number(value) for key, value in row.items()} for row in rows)
        written.append(path)
    text = folder / f"{outcome.name}.md"
    with in_place_of(text) as temporary:
        temporary.write_text(outcome.markdown(), encoding="utf-8")
    return [*written, text]


def _number(value: Any) -> Any:
    """Numbers of a CSV file: seven significant digits, nothing where there is none."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.7g}"
    return value


def write_figure(outcome: Outcome, folder: Path) -> list[Path]:
    """Draw the figure as SVG and PNG; return the files. Error (ConcordantError): Matplotlib is not installed."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise ConcordantError(
            f"the numbers of {outcome.name} are written to {folder}, but figures need Matplotlib: install it with "
            "pip install 'concordant[figures]'"
        ) from None
    style = {
        "svg.hashsalt": outcome.name,
        "svg.fonttype": "none",
        "font.size": 9.0,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    written = []
    with matplotlib.rc_context(style):
        figure = Figure(figsize=outcome.size, layout="constrained")
        outcome.draw(figure)
        for ending, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            path = folder / f"{outcome.name}.{ending}"
            with in_place_of(path) as temporary:
                figure.savefig(temporary, dpi=DPI, metadata=metadata)
            written.append(path)
    return written


USUAL = (Path("data"), Path("../shared/data"))
"""Folders that are looked into without --data."""

SOURCES = {
    "ml-100k": (("u.data", "u.item"), "MovieLens-100K (ml-100k.zip, https://grouplens.org/datasets/movielens/100k/)"),
    "mslr": (
        ("mslr_merged_by_query.svm.gz", "Fold1/train.txt"),
        "MSLR-WEB10K (https://www.microsoft.com/en-us/research/project/mslr/), unpacked: Fold1/train.txt",
    ),
    "mq2008": (("S1.txt", "Fold1/train.txt"), "MQ2008 of LETOR 4.0 (five parts S1.txt … S5.txt, or Fold1/train.txt)"),
    "cifar-10-batches-bin": (
        ("data_batch_1.bin", "test_batch.bin"),
        "CIFAR-10, the binary version (https://www.cs.toronto.edu/~kriz/cifar.html), unpacked",
    ),
}
WHOLE = {"ml-100k", "cifar-10-batches-bin"}
"""Sets of which all these files are needed; of the others any one is enough."""
"""For each set: the files that show that a folder is it, and what to get and from where."""


def find(name: str, data: Path | None) -> Path:
    """Return the folder of a data set: ``data`` itself or its subfolder of that name; without it the usual places.

    Errors (InputError): it is not there; the message says what is needed.
    """
    folder = found(name, data)
    if folder is not None:
        return folder
    looked = [data] if data is not None else list(USUAL)
    tried = few([str(place) for root in looked for place in (root, root / name)])
    marks = (" and " if name in WHOLE else " or ").join(SOURCES[name][0])
    raise InputError(
        f"the data set {name} is not there (looked for {marks} in {tried}); get {SOURCES[name][1]} and name its folder "
        "with --data"
    )


def found(name: str, data: Path | None) -> Path | None:
    """Return the folder of a data set, or None."""
    marks = SOURCES[name][0]
    enough = all if name in WHOLE else any
    for root in [data] if data is not None else USUAL:
        for place in (root / name, root):
            if enough((place / mark).is_file() for mark in marks) and (place.name == name or not _another(name, place)):
                return place
    return None


def _another(name: str, place: Path) -> bool:
    """Whether the folder is called as another set is: both LETOR sets have a Fold1/train.txt."""
    return place.name in SOURCES and place.name != name

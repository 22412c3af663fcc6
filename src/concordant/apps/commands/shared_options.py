"""Options that several commands have, as parts of their dataclasses: columns, reading, features, models, abstention."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, Literal

import click

from concordant.apps.commands.given import Options, argument, flag, option
from concordant.errors import UsageError
from concordant.io.log.lakes import Several
from concordant.losses.names import MARGIN_FUNCTIONS
from concordant.memory import bytes_of
from concordant.preferences.layouts import KINDS
from concordant.ranking.names import INTERVALS

ONE = click.IntRange(min=1)
TABLE = "Write to F: .csv, .tsv, .parquet, .arrow, .json, .jsonl or .md"


def logs() -> Any:
    """Make the argument that is a log: a file, a folder, a pattern, or several of these."""

    def one(_: Any, __: Any, names: tuple[str, ...]) -> str:
        return names[0] if len(names) == 1 else Several(names)

    return argument(nargs=-1, required=True, metavar="LOG...", callback=one)


class Said(click.ParamType):  # type: ignore[type-arg]
    """A text that ``read`` understands; where it raises ValueError, what the text ``must`` be is said."""

    name = "text"

    def __init__(self, must: str, read: Callable[[str], Any], *words: str) -> None:
        self.must, self.read, self.words = must, read, words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or value in self.words:
            return value
        try:
            return self.read(value)
        except ValueError:
            option = max(param.opts, key=len) if param else ""
            raise click.UsageError(f"{option} must be {self.must}, not {value!r}") from None


def distance(text: str) -> float:
    """Read a number of at least 0."""
    if not (number := float(text)) >= 0:
        raise ValueError
    return number


def positive(text: str) -> float:
    """Read a positive number."""
    if not 0 < (number := float(text)) < float("inf"):
        raise ValueError
    return number


def share(text: str) -> float | str:
    """Read a share between 0 and 1, or the name of a file.

    >>> share("0.2"), share("held-out.csv")
    (0.2, 'held-out.csv')
    """
    try:
        number = float(text)
    except ValueError:
        return text
    if not 0 < number < 1:
        raise ValueError
    return number


def size(text: str) -> int:
    """Read the bytes of a size such as 4MB.

    >>> size("500 KB")
    500000
    """
    try:
        return bytes_of(text)
    except UsageError:
        raise ValueError from None


def any_of(names: Iterable[str]) -> str:
    """Return names as a help lists them.

    >>> any_of(["a", "b", "c"])
    'a, b or c'
    """
    *others, last = names
    return f"{', '.join(others)} or {last}"


SEED = "Makes every output reproducible."
PHIS = any_of(name for name in MARGIN_FUNCTIONS if name != "linear")
NONE = click.IntRange(min=0)
APART = "Items with fewer judgments stand apart, after the ranking."
METHODS = f"How sure the scores are: {'; '.join(f'{name}: {what}' for name, what in INTERVALS.items())}."
PICKLE = "Load a model that holds a pickle. A pickle runs whatever code is in it."


class Columns(Options):
    """The roles that columns of a log can play."""

    query: str | None = option("C", "Column of the query.")
    winner: str | None = option("C", "Column of the winning item (or, with two sides, of the outcome).")
    loser: str | None = option("C", "Column of the losing item.")
    left: str | None = option("C", "Column of the first side.")
    right: str | None = option("C", "Column of the second side.")
    outcome: str | None = option("C", "Column that names the winning side or item, or a tie.")
    weight: str | None = option("C", "Column of the strength (> 0) of a comparison.")
    count: str | None = option("C", "Column of the number of times a row was seen.")
    left_score: str | None = option("C", "Column of the first side's score; the higher one wins, equal ones tie.")
    right_score: str | None = option("C", "Column of the second side's score.")
    left_wins: str | None = option("C", "Column of the number of times the first side won.")
    right_wins: str | None = option("C", "Column of the number of times the second side won.")
    grade: str | None = option("C", "Column of how far one side is preferred: grades of --scale.")
    scale: str | None = option(
        "FIRST:LAST",
        "Grades from the strongest preference for the first side to the strongest for the second: -3:3, 7:1, or all of "
        "them with commas between (A is better,equal,B is better). The middle one is a tie.",
    )
    outcomes: str | None = option(
        "VALUE=SIDE,…", "What values of the outcome mean: 1=left,2=right,0=tie; the usual words are known without it."
    )
    tie_values: str | None = option("VALUE,…", "Values of the outcome that are ties; an empty one: it is missing.")
    id: str | None = option(
        "C",
        "Column that numbers the votes: rows that repeat a vote are counted once, rows that contradict it refused.",
    )
    session: str | None = option("C", "Column of the shown list (selections, choices).")
    position: str | None = option("C", "Column of the position in the list, 1 = top.")
    item: str | None = option("C", "Column of the item.")
    clicked: str | None = option("C", "Column that says whether the item was clicked or chosen (0/1).")
    judgment: str | None = option("C", "Column of the ranking (orders) or of the rater (ratings).")
    rank: str | None = option("C", "Column of the rank, 1 = best, equal = tied.")
    rating: str | None = option("C", "Column of the rating.")
    items: str | None = option(
        "A,B,…",
        "Columns that are items, or all: cells are ranks (--kind orders), ratings (--kind ratings) or wins over the "
        "column (--kind comparisons).",
    )


ROLES = tuple(Columns.__annotations__)


class LogOptions(Columns):
    """How a log is read."""

    kind: str | None = option("K", f"{any_of([*KINDS, 'labels'])}.")
    clicks: Literal["all", "first", "last", "skip", "raise"] = option(
        None, "Lists with more than one click: which count.", default="all"
    )
    unranked: Literal["last", "missing"] | None = option(
        None, "Items that a ranking leaves out: below all that it ranks, or no opinion."
    )
    pool: bool | None = option(
        None,
        "All queries as one, or each by itself; default: each, but where the query is another one in nearly every row "
        "while the same items recur all are one, and a note says so.",
        "--pool/--no-pool",
    )
    on_error: Literal["raise", "skip"] = option(None, "Rows that cannot be understood.", default="raise")
    engine: Literal["duckdb", "memory", "spark"] | None = option(
        None, "Default: duckdb; of a store, the sum kept in it."
    )
    master: str | None = option("URL", "Master of Spark, such as spark://HOST:7077 or yarn; default: this machine.")
    memory_limit: str | None = option(
        "SIZE", "Memory of this process (of Spark’s executors), such as 4GB; what cannot be held is said."
    )
    threads: int | None = option(None, "Threads of the engine (of Spark’s executors).", type=ONE)


class ClusteredLog(LogOptions):
    """A log whose judgments depend on each other."""

    cluster: tuple[str, ...] = option(
        "C",
        "Column of the worker or session that judgments depend on; give it twice where they depend on each other in "
        "two ways (--cluster worker --cluster prompt).",
        default=(),
    )


class SidedLog(ClusteredLog):
    """A log whose sides have covariates."""

    covariates: tuple[str, ...] = option("C", "Numeric column, left minus right.", "--covariate", default=())
    home: bool = flag("The left (first, home) side has an advantage, which rank estimates.")
    neutral: str | None = option("C", "With --home: true where no side is at home.")


class DaysOptions(Options):
    """Which days are read."""

    as_of: str | None = option(
        "DAY", "What was judged up to and with this day: batches of a store by their days, of a log rows by --time."
    )
    since: str | None = option("DAY", "What was judged from this day on.")
    last: str | None = option("DAYS", "What was judged in the last days (7d, 2w) up to --as-of, or up to the newest.")

    def window(self) -> dict[str, str | None]:
        """Return the days as ``Window`` takes them."""
        return {"as_of": self.as_of, "since": self.since, "last": self.last}


class ClickOptions(Options):
    """What ``inverse-propensity`` takes."""

    propensities: str | None = option(
        "F",
        "Of inverse-propensity: how often each position is examined, a table of position and propensity, or what "
        "concordant rank --positions wrote. Default: as position-based finds it in LOG.",
    )
    clip: float | None = option(
        "C",
        "Of inverse-propensity: no click counts more than 1/C times (default 0.1).",
        type=click.FloatRange(0, 1, min_open=True),
    )


class TextOptions(Options):
    """How texts are written."""

    spreadsheet_safe: bool = flag("In CSV and TSV put ' before texts that a spreadsheet would take for formulas.")

    def check(self) -> None:
        """Refuse ``--spreadsheet-safe``, which ``output.as_csv`` heeds, where no CSV or TSV would be written."""
        values = vars(self)
        written = [name for name in (values.get("output"), values.get("edges")) if name is not None]
        some = any(name.lower().endswith((".csv", ".tsv")) for name in written) or (
            values.get("output") is None and not sys.stdout.isatty()
        )
        if self.spreadsheet_safe and not some:
            raise click.UsageError(
                "--spreadsheet-safe is for CSV and TSV; here "
                + (f"{written[0]} is written" if written else "a table is shown (--output F.csv writes one)")
            )


class TableOptions(TextOptions):
    """Where a table goes."""

    output: str | None = option("F", f"{TABLE}.", "-o")


class FeatureOptions(Options):
    """Features of items."""

    features: str | None = option("F", "Features of the items.", "-f")
    feature_item: str | None = option("C", "Column of F with the item.")
    feature_query: str | None = option("C", "Column of F with the query.")


class ChosenFeatures(FeatureOptions):
    """Features of items, of which some columns are chosen."""

    feature_columns: str | None = option("A,B,…", "Columns of F that are features (default: all others).")


class ModelOptions(Options):
    """A model to use."""

    model: str = option("DIR", "A model that concordant fit wrote.", "-m", required=True)
    unsafe_load_pickle: bool = flag(PICKLE)


class AbstentionOptions(ModelOptions, FeatureOptions):
    """When a command leaves pairs without order."""

    abstain: float | None = option(
        "COST", "Order no two items where that is too risky: COST of that, from 0 to 1 (a wrong order costs 1)."
    )
    abstain_by: Literal["distance", "risk"] | None = option(
        None, "What makes it risky: items near to each other (default), or a high estimated risk."
    )
    gamma: float | str | None = option(
        "G",
        "Distance up to which items are too near, in standardised features, whatever COST is; auto (default) chooses "
        "it by --judgments.",
        type=Said("auto or a distance of at least 0", distance, "auto"),
    )
    norm: Literal["1", "2", "inf"] | None = option(None, "Of the distance; default: inf.")
    share: float | None = option("S", "Share of the judged pairs left without order, at most.")
    judgments: str | None = option(
        "LOG", "Held-out judgments (any preference log, or labels in a LETOR file) to choose when by."
    )
    judged_features: str | None = option("F", "Features of the items of LOG; default: those of --features.")


class SparkOptions(Options):
    """Where the work is done."""

    engine: Literal["memory", "spark"] = option(
        None, "Where the work is done; see docs/spark.md for spark.", default="memory"
    )
    master: str | None = option("URL", "Master of Spark, such as local[4] or spark://HOST:PORT.")

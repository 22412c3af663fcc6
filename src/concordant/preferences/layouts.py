"""Which column of a log plays which role: the kinds, their layouts and the aliases known without a flag."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from concordant.errors import UsageError, shown

KINDS = ("comparisons", "selections", "choices", "orders", "ratings")

PAIRS: tuple[tuple[str, str], ...] = (
    ("left", "right"),
    ("model_a", "model_b"),
    ("player1", "player2"),
    ("chosen", "rejected"),
    # beyond the contract, and giving way to it
    ("model_x", "model_y"),
    ("home_team", "away_team"),
    ("home", "away"),
    ("system_a", "system_b"),
    ("system_1", "system_2"),
)

ALIASES: dict[str, tuple[str, ...]] = {
    "query": ("query", "qid", "query_id", "question_id", "prompt_id"),
    "winner": ("winner",),
    "loser": ("loser",),
    "left": tuple(left for left, _ in PAIRS),
    "right": tuple(right for _, right in PAIRS),
    "outcome": ("winner", "label", "outcome", "preferred"),
    "left_score": ("left_score", "score_left", "home_score", "score_a", "score1"),
    "right_score": ("right_score", "score_right", "away_score", "score_b", "score2"),
    "left_wins": ("left_wins", "home_wins", "wins_a", "wins1"),
    "right_wins": ("right_wins", "away_wins", "wins_b", "wins2"),
    "grade": ("overall_preference", "preference_strength"),
    "weight": ("weight",),
    "count": ("count",),
    "session": ("session", "session_id", "impression", "impression_id"),
    "judgment": ("judgment", "judgment_id", "judge", "voter", "voter_id", "ballot", "ballot_id", "annotator"),
    "position": ("position",),
    "item": ("item", "item_id", "doc", "doc_id", "docid", "movie_id"),
    "clicked": ("clicked", "click"),
    "chosen": ("chosen", "bought"),
    "rank": ("rank",),
    "rating": ("rating",),
    "neutral": ("neutral",),
    "cluster": ("cluster",),
    "id": (),  # where it is named
}

CLUSTERS = ("cluster", *(f"cluster_{number}" for number in range(2, 17)))
"""Roles of what judgments depend on: who judged, perhaps crossed with it what was asked, and the properties of both."""
MOST_GRADES = 101
WEAK = frozenset({"1", "2", "a", "b", "h", "first", "second"})
"""Words for a side that give way where the log has an item of that name."""

LOSSES = re.compile(
    r"(^|[\W_])(ppl|perplexity|nll|bpb|bpc|bits_per_\w+|rmse|mse|mae|mape|wer|cer|brier|ece|fid)([\W_]|$)"
    r"|(^|[\W_])(loss|losses|bits|errors?|err|ter|latency|seconds|ms|cost|toxicity|hallucinations?|regret)([\W_]rates?)?"
    r"\W*(\([^)]*\))?\s*$",
    re.IGNORECASE,
)
"""Names of scores of which less is better."""

ASIDE = re.compile(
    r"(.*_)?(avg|average|mean|overall|rank|ranking|params?|parameters?|flops|rtfx|throughput|latency|price|cost|elo|std|"
    r"standard_errors?|stderr|variance|ci|q0?\d+|win_?rates?)(_.*)?|"
    r"(macro|total|no|nr|n|num|number_of|id|unnamed|index|released?|max|min)_.*|"
    r"(.*_)?(size|tokens|dimensions?|memory|length|date|year|time|runtime|votes|count|number|num|samples|n|id|no|nr|index|"
    r"position|place|total|median|wins|losses|lower|upper|cutoff|released?|label|gold|target|split|fold|seed|speed|"
    r"context_window|unnamed)(_([bkmt]|[kmgt]b|m?s|usd|\d+))?|rating|score|macro"
)
"""Columns of numbers of a wide table that are hardly scores on a task: words that count anywhere, or in their place."""

# Other names under which a role may be given by the caller: columns={"model_a": "x"} means the left side.


@dataclass(frozen=True)
class Scale:
    """The grades of two sides, from the strongest preference for the left to the strongest for the right.

    Of an odd number the one in the middle is a tie. A grade's strength is its number of steps from a tie (of an even
    number of grades from where a tie would be, the two in the middle being 1).

    >>> Scale.of("-3:3").strengths
    (3, 2, 1, 0, -1, -2, -3)
    >>> Scale.of("A is better, no difference, B is better").strengths, Scale.of("4:1").strengths
    ((1, 0, -1), (2, 1, -1, -2))
    """

    grades: tuple[str, ...]
    """As they are written, in lower case."""
    numbers: bool
    """Whether they are integers, however these are written."""

    @classmethod
    def of(cls, text: str) -> Scale:
        """Read FIRST:LAST, two integers, or all grades with commas between. Errors: UsageError."""
        if not isinstance(text, str):
            raise UsageError(f"a scale is a text such as '-3:3', not {type(text).__name__}")
        ends = re.fullmatch(r"\s*([+-]?\d{1,6})\s*:\s*([+-]?\d{1,6})\s*", text, re.ASCII)
        if ends is not None:
            first, last = int(ends[1]), int(ends[2])
            found = [str(one) for one in range(first, last + (1 if last > first else -1), 1 if last > first else -1)]
        else:
            found = [re.sub(r"\s+", " ", one.strip().lower()) for one in text.split(",")]
        numbers = all(re.fullmatch(r"[+-]?\d{1,6}", one, re.ASCII) for one in found)
        found = [str(int(one)) for one in found] if numbers else found
        allowed = (
            f"a scale names 2 to {MOST_GRADES} grades, each once, from the strongest preference for the left to the "
            "strongest for the right: two integers (-3:3, or 7:1 where 7 is the strongest for the left), or all grades "
            "with commas between (A is better,equal,B is better)"
        )
        if not 2 <= len(found) <= MOST_GRADES or len({*found}) < len(found) or "" in found:
            raise UsageError(f"{allowed}; not {shown(text)}")
        made = cls(tuple(found), numbers)
        if numbers and {int(one) > 0 for one in found} == {True, False} and min(map(int, found)) < 0:
            tie = dict(zip(found, made.strengths, strict=True)).get("0")
            if tie != 0 or max(map(int, found)) != -min(map(int, found)):
                raise UsageError(f"the scale {text!r} has grades of both signs, and 0 is not in its middle")
        return made

    @property
    def strengths(self) -> tuple[int, ...]:
        """Of each grade: positive for the left, negative for the right, 0 for a tie."""
        size = len(self.grades)
        twice = [size - 1 - 2 * place for place in range(size)]
        return tuple((abs(one) + 1) // 2 * (1 if one > 0 else -1) for one in twice)

    def __str__(self) -> str:
        if self.numbers:
            return f"{self.grades[0]} to {self.grades[-1]}"
        return ", ".join(self.grades)


SIDES = {"left": 1, "first": 1, "right": -1, "second": -1, "tie": 0}
"""What a value of an outcome may be said to mean, and who won then."""


@dataclass(frozen=True)
class Outcomes:
    """What values of an outcome mean that are no usual words; these go before all that is known without being said.

    >>> said = Outcomes.of("1=left, 2=right", "0,both,")
    >>> [said.sign(word) for word in ("1.0", "2", "Both", "", None, "left")]
    [1, -1, 0, 0, 0, None]
    """

    signs: tuple[tuple[str, int], ...]
    """Of each value: 1 the left side won, -1 the right one, 0 neither."""

    @classmethod
    def of(cls, outcomes: str | None, tie_values: str | None) -> Outcomes:
        """Read VALUE=left,VALUE=right,VALUE=tie and the values of ties; an empty one is a missing outcome. Errors:
        UsageError.
        """
        allowed = "outcomes are VALUE=left, VALUE=right or VALUE=tie with commas between (1=left,2=right,0=tie)"
        found: dict[str, int] = {}
        pairs = [] if outcomes is None else [one.rpartition("=") for one in _split(outcomes, allowed)]
        if odd := next((end for _, mark, end in pairs if not mark or end.strip().lower() not in SIDES), None):
            raise UsageError(f"{allowed}; not {shown(odd)}")
        means = [(value, SIDES[end.strip().lower()]) for value, _, end in pairs]
        means += [] if tie_values is None else [(value, 0) for value in _split(tie_values, "tie values are texts")]
        for value, sign in means:
            if found.setdefault(canonical(value), sign) != sign:
                raise UsageError(f"{shown(value.strip())} is said to mean two outcomes")
        return cls(tuple(found.items()))

    def sign(self, word: str | None) -> int | None:
        """Return what a value means; None where nothing is said of it."""
        return dict(self.signs).get(canonical(word or ""))

    def __str__(self) -> str:
        return ", ".join(shown(value or "") for value, _ in self.signs)


def _split(text: object, allowed: str) -> list[str]:
    if not isinstance(text, str):
        raise UsageError(f"{allowed}; not {type(text).__name__}")
    return text.split(",")


def canonical(word: str) -> str:
    """Return a value as values are compared: lower case, single spaces; numbers by what they are (1.0 is 1)."""
    plain_word = " ".join(word.lower().split())
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", plain_word, re.ASCII):
        return f"{float(plain_word) + 0.0:.15g}"
    return plain_word


@dataclass(frozen=True)
class Layout:
    """The kind of a log and the column of each role that was found or given."""

    kind: str
    roles: dict[str, str]
    covariates: tuple[str, ...] = ()
    home: str | None = None
    side_names: tuple[frozenset[str], frozenset[str]] = field(default=(frozenset(), frozenset()))
    form: str = ""
    """The name of the layout, of which a kind may have several."""
    scale: Scale | None = None
    """Of the grades by which a row says how far one side is preferred."""
    outcomes: Outcomes | None = None
    """What values of the outcome mean, where that is said."""
    inside: str = ""
    """The column in which those of the roles lie, where that was found by the ends of their names."""

    @property
    def clusters(self) -> tuple[str, ...]:
        """The columns of what judgments depend on."""
        return tuple(self.roles[role] for role in CLUSTERS if role in self.roles)

    @property
    def covariate_names(self) -> tuple[str, ...]:
        """The covariates that the judgments have, as ``Comparisons`` names them: the side at home is one.

        >>> Layout("comparisons", {}, ("length", "age"), home="left").covariate_names
        ('age', 'home', 'length')
        """
        return tuple(sorted({*self.covariates, *(() if self.home is None else ("home",))}))

    @property
    def sided(self) -> bool:
        """Whether a row names two sides (and not a winner and a loser)."""
        return "left" in self.roles


@lru_cache(maxsize=1 << 17)
def plain(name: str) -> str:
    """Return a column name as aliases are compared: lower case, words joined by an underscore (userId: user_id)."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[\s.\-]+", "_", name.strip()).lower()


def is_aside(column: str) -> bool:
    """Whether a column of numbers is by its name none of scores on a task: a mean, a rank, a size, a price, a date.

    >>> [is_aside(name) for name in ("Avg. WER", "Model size (B)", "number_theory", "date_understanding", "n_shot")]
    [True, True, False, False, True]
    """
    words = re.sub(r"[^a-z0-9]+", "_", re.sub(r"\s*\([^)]*\)", "", plain(column))).strip("_")
    return ASIDE.fullmatch(words or "no") is not None

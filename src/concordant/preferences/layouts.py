"""Which column of a log plays which role: the kinds, their layouts and the aliases known without a flag."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

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
)

ALIASES: dict[str, tuple[str, ...]] = {
    "query": ("query", "qid", "query_id", "question_id", "prompt_id"),
    "winner": ("winner",),
    "loser": ("loser",),
    "left": tuple(left for left, _ in PAIRS),
    "right": tuple(right for _, right in PAIRS),
    "outcome": ("winner", "label", "outcome"),
    "left_score": ("left_score", "score_left", "home_score", "score_a", "score1"),
    "right_score": ("right_score", "score_right", "away_score", "score_b", "score2"),
    "left_wins": ("left_wins", "home_wins", "wins_a", "wins1"),
    "right_wins": ("right_wins", "away_wins", "wins_b", "wins2"),
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
}

CLUSTERS = ("cluster", "cluster_2", "cluster_3")
"""Roles of what judgments depend on: who judged, and perhaps crossed with it what was asked."""
WEAK = frozenset({"1", "2", "a", "b", "h", "first", "second"})
"""Words for a side that give way where the log has an item of that name."""

# Other names under which a role may be given by the caller: columns={"model_a": "x"} means the left side.


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

    @property
    def clusters(self) -> tuple[str, ...]:
        """The columns of what judgments depend on."""
        return tuple(self.roles[role] for role in CLUSTERS if role in self.roles)

    @property
    def sided(self) -> bool:
        """Whether a row names two sides (and not a winner and a loser)."""
        return "left" in self.roles


@lru_cache(maxsize=1 << 17)
def plain(name: str) -> str:
    """Return a column name as aliases are compared: lower case, words joined by an underscore (userId: user_id)."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[\s.\-]+", "_", name.strip()).lower()

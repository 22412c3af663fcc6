"""Flags of items: what the data cannot support about them. All that is said of a flag, anywhere, stands here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from concordant.errors import counted
from concordant.preferences.connectivity import Connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Lists

Unlimited = Literal["prior", "c0", "shares", "majorities", "places"]


@dataclass(frozen=True)
class Support:
    """What the score of an item rests on whose wins and losses set it no limit: an option, or nothing but shares."""

    one: str
    many: str
    keeps: str
    """What a report says of the first of a ranking that has such a score."""


SUPPORTS: dict[Unlimited, Support] = {
    "prior": Support(
        "it has a score that rests on the prior",
        "they have scores that rest on the prior",
        "only the prior keeps its score finite.",
    ),
    "c0": Support(
        "it has a score that rests on c0, which is added to the wins of either side",
        "they have scores that rest on c0, which is added to the wins of either side",
        "only c0, added to the wins of either side, keeps its score finite.",
    ),
    "shares": Support(
        "it has a score that is a share of wins, which does not say by how far",
        "they have scores that are shares of wins, which do not say by how far",
        "its score is a share of wins, which does not say by how far it leads.",
    ),
    "majorities": Support(
        "it has a score that counts opponents, which does not say by how far",
        "they have scores that count opponents, which do not say by how far",
        "its score counts the opponents that it beats, which does not say by how far it leads.",
    ),
    "places": Support(
        "it has a place, which does not say by how far",
        "they have places, which do not say by how far",
        "its score is a place, which does not say by how far it leads.",
    ),
}


@dataclass(frozen=True)
class Flag:
    """A flag of an item. An item may have several: their codes are bits, which add up.

    >>> [flag.label for flag in FLAGS if flag.needs_prior]
    ['never lost', 'never won', 'separated']
    """

    code: int
    label: str
    needs_prior: bool = True
    """Whether maximum likelihood has no finite score for such an item, so that its score rests on a ``Support``."""
    one: str = ""
    many: str = ""
    """What is said of one such item, and of several, where it is not what their support says."""
    means: str = ""
    """What the label means, where it is not plain."""
    leads: str = ""
    """What a report says of the first of a ranking, before what keeps its score finite; nothing where this is empty."""


FLAGS = (
    Flag(1, "never compared", False, "it has no score of its own", "they have no score of their own"),
    Flag(2, "never lost", leads="never lost"),
    Flag(4, "never won"),
    Flag(
        8,
        "separated",
        means=" (all judgments against any other group go one way)",
        leads="stands where wins and losses set no limit",
    ),
    Flag(
        16,
        "rated equally",
        False,
        "equal ratings are no judgment of a pair, so it has no score of its own",
        "equal ratings are no judgment of a pair, so they have no scores of their own",
        means=" (whoever rated one gave all else that they rated the same rating)",
    ),
)
LABELS = tuple(", ".join(flag.label for flag in FLAGS if flag.code & codes) for codes in range(1 << len(FLAGS)))
"""The text of each sum of codes, empty for 0."""


def code_of(label: str) -> int:
    """Return the code of a flag by its label.

    >>> code_of("separated")
    8
    """
    return next(flag.code for flag in FLAGS if flag.label == label)


def without_judgment(flag: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Return which items no judgment prefers to another one, or another one to them, by their flags.

    >>> without_judgment(np.array([0, 1, 2, 16], np.int8)).tolist()
    [False, True, False, True]
    """
    return np.asarray(flag & (code_of("never compared") | code_of("rated equally")) > 0, bool)


def parted(kind: str | None) -> str:
    """Say of groups of items what makes them groups; ``kind``: of the judgments, where it is known."""
    return "between which nobody's ratings differ" if kind == "ratings" else "that were never compared with each other"


def flags_of(linked: Connectivity, batch: Batch | None = None) -> NDArray[np.int8]:
    """Return what maximum likelihood could not say about each node, as sums of codes; ``batch``: what is linked."""
    flag = np.zeros(len(linked.component), np.int8)
    if linked.separated.any():
        loose = linked.unlimited
        flag[loose] = code_of("separated")
        flag[loose & ~linked.lost] = code_of("never lost")
        flag[loose & ~linked.won] = code_of("never won")
    flag[~linked.compared] = code_of("never compared")
    if batch is not None and isinstance(batch.prefs, Lists) and batch.prefs.kind == "ratings" and flag.any():
        lists, node, _ = batch.entries(batch.prefs)
        together = np.zeros(len(flag), bool)
        together[node[lists.spread(lists.sizes) > 1]] = True
        flag[~linked.compared & together] = code_of("rated equally")
    return flag


def undecided(
    flag: NDArray[np.int8], group: NDArray[np.int64], lower: NDArray[np.int64], upper: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return the flagged items to which their rank interval leaves more than half of the places of their component.

    Where that is so of all of its items, it is said of none. ``group``: component of each node, numbered over the
    batch; ``upper``: 0 where there is no interval.

    >>> never_lost, one = np.array([0, 0, 2], np.int8), np.ones(3, np.int64)
    >>> undecided(never_lost, one, lower=one, upper=np.array([2, 2, 3]))
    array([False, False,  True])
    """
    compared = ~without_judgment(flag)
    most = np.bincount(group, compared)[group]
    open_ = compared & (flag > 0) & (upper > 0) & (2 * (upper - lower + 1) > most)
    left = np.bincount(group, compared & ~open_)[group]
    return np.asarray(open_ & (left > 0), bool)


def flag_said(flag: Flag, number: int, unlimited: Unlimited) -> str:
    """Say how many items have a flag and what that means for their scores; ``unlimited``: that of the structure.

    >>> flag_said(FLAGS[1], 1, "prior")
    '1 item never lost: it has a score that rests on the prior'
    >>> flag_said(FLAGS[0], 1200, "prior")
    '1,200 items never compared: they have no score of their own'
    """
    words: Flag | Support = SUPPORTS[unlimited] if flag.needs_prior else flag
    return f"{counted(number, 'items')} {flag.label}{flag.means}: {words.one if number == 1 else words.many}"

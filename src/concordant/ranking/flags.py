"""Flags of items: what the data cannot support about them. All that is said of a flag, anywhere, stands here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from concordant.errors import counted
from concordant.preferences.connectivity import Connectivity

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
)
LABELS = tuple(", ".join(flag.label for flag in FLAGS if flag.code & codes) for codes in range(1 << len(FLAGS)))
"""The text of each sum of codes, empty for 0."""


def code_of(label: str) -> int:
    """Return the code of a flag by its label.

    >>> code_of("separated")
    8
    """
    return next(flag.code for flag in FLAGS if flag.label == label)


def flags_of(linked: Connectivity) -> NDArray[np.int8]:
    """Return what maximum likelihood could not say about each node, as sums of codes."""
    flag = np.zeros(len(linked.component), np.int8)
    if linked.separated.any():
        loose = linked.separated | (np.bincount(linked.block)[linked.block] == 1)  # a block of one limits nothing
        flag[loose] = code_of("separated")
        flag[loose & ~linked.lost] = code_of("never lost")
        flag[loose & ~linked.won] = code_of("never won")
    flag[~linked.compared] = code_of("never compared")
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
    compared = flag & code_of("never compared") == 0
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

"""Preferences are comparisons or lists, each with all of its columns; without judgments they are neither."""

from __future__ import annotations

import numpy as np
import pytest

from concordant.errors import UsageError
from concordant.preferences.graphs import Batch
from concordant.preferences.layouts import KINDS
from concordant.preferences.preferences import Comparisons, Lists, Preferences, keep

QUERY, ITEM, JUDGE = list("ppqq"), list("xyxy"), [1, 1, 2, 2]
MADE = {
    "comparisons": Preferences.from_comparisons(["x", "y", "x"], ["y", "z", "z"], ["p", "p", "q"]),
    "selections": Preferences.from_selections(QUERY, JUDGE, [1, 2, 1, 2], ITEM, [1, 0, 0, 1]),
    "choices": Preferences.from_choices(QUERY, JUDGE, ITEM, [1, 0, 0, 1]),
    "orders": Preferences.from_orders(QUERY, JUDGE, ITEM, [1, 2, 2, 2]),
    "ratings": Preferences.from_ratings(QUERY, ITEM, [1.0, 2.0, 3.0, 3.0]),
}


def parts(votes: Preferences) -> list[Preferences]:
    """What the algebra makes of preferences."""
    return [votes, votes + votes, votes + Preferences.empty(), votes.pool(), votes.select(["p"]), *votes.folds(1)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_type_and_all_of_its_columns(kind: str) -> None:
    for votes in parts(MADE[kind]):
        assert votes.kind == kind
        assert type(votes) is (Comparisons if kind == "comparisons" else Lists)
        for name in ("winner", "loser") if isinstance(votes, Comparisons) else votes.item_columns:
            assert getattr(votes, name).dtype == np.int32
        if isinstance(votes, Comparisons):
            assert len(votes.winner) == len(votes.loser) == votes.distinct
        if isinstance(votes, Lists):
            assert len(votes.list_start) == votes.distinct + 1
            assert len(votes.list_item) == len(votes.list_value) == votes.list_start[-1]


def test_comparisons_have_no_lists_and_lists_no_winner() -> None:
    for kind, votes in MADE.items():
        for name in ("list_start", "list_item", "list_value") if kind == "comparisons" else ("winner", "loser", "tie"):
            with pytest.raises(AttributeError, match=name):
                getattr(votes, name)
    with pytest.raises(TypeError, match="winner"):
        Comparisons()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="kind"):
        Lists()  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", KINDS)
def test_without_judgments_they_are_neither(kind: str) -> None:
    votes, none = MADE[kind], np.zeros(0, np.int64)
    for empty in (votes.select([]), keep(votes, none, none, votes.declared), type(votes).empty()):
        assert type(empty) is Preferences
        assert empty == Preferences.empty() != votes
        assert empty.kind is None
        assert empty + votes == votes + empty == votes
        assert empty.pool() == empty
        assert (len(Batch.whole(empty)), len(Batch.whole(empty).edges.winner), empty.members[1].size) == (0, 0, 0)


def test_weights_ties_and_covariates_are_asked_of_any() -> None:
    told = {kind: (votes.weighted, votes.tied, votes.covariate_names) for kind, votes in MADE.items()}
    assert {kind for kind, (weighted, _, _) in told.items() if weighted} == {"ratings"}
    assert {kind for kind, (_, tied, _) in told.items() if tied} == {"orders"}
    heavy = Preferences.from_comparisons(["x"], ["y"], weight=[2.0], tie=[True], covariates={"home": [1.0]})
    assert (heavy.weighted, heavy.tied, heavy.covariate_names) == (True, True, ("home",))
    assert (Preferences().weighted, Preferences().tied, Preferences().covariate_names) == (False, False, ())


def test_kinds_do_not_mix() -> None:
    for one in KINDS:
        for other in set(KINDS) - {one}:
            with pytest.raises(UsageError, match=f"cannot merge {one} with {other}"):
                MADE[one] + MADE[other]

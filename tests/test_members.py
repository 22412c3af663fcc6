"""Members of registries are named wherever users choose among them: a new one that is missing in a place fails here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest

import concordant as cc
from concordant.apps.commands.options import command_of
from concordant.errors import in_order
from concordant.losses.metrics.metrics import METRICS
from concordant.losses.pair_losses import PAIR_LOSSES
from concordant.losses.surrogates import SURROGATES
from concordant.preferences.layouts import ALIASES, KINDS
from concordant.preferences.preferences import Preferences
from concordant.ranking import structures
from concordant.ranking.intervals import METHODS
from concordant.ranking.scores import Scores
from concordant.ranking.structures import STRUCTURES, Structure

DOCS = Path(__file__).parents[1] / "docs"


def help_of(command: str, option: str) -> str:
    """What the help of a command says of an option."""
    (found,) = (one for one in command_of(command).params if one.name == option)
    assert isinstance(found, click.Option)
    return f"{found.help} {getattr(found.type, 'choices', '')}"


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z][a-z0-9-]*", text))


@pytest.mark.parametrize(
    ("place", "text", "names"),
    [
        ("rank --structure", help_of("rank", "structure"), STRUCTURES),
        ("fit --loss", help_of("fit", "loss"), SURROGATES),
        ("fit --phi", help_of("fit", "phi"), {name: one for name, one in PAIR_LOSSES.items() if name != "linear"}),
        ("rank --interval", help_of("rank", "interval"), METHODS),
        ("rank --kind", help_of("rank", "kind"), KINDS),
        ("fit --kind", help_of("fit", "kind"), KINDS),
        ("audit --kind", help_of("audit", "kind"), KINDS),
        ("evaluate --metric", help_of("evaluate", "metrics"), METRICS),
        ("docs/rankings.md", (DOCS / "rankings.md").read_text(), [*STRUCTURES, *KINDS]),
        ("docs/choosing.md", (DOCS / "choosing.md").read_text(), [*STRUCTURES, *SURROGATES]),
    ],
    ids=lambda one: one if isinstance(one, str) and len(one) < 20 else "",
)
def test_every_member_is_named(place: str, text: str, names: list[str]) -> None:
    assert not [name for name in names if name not in words(text)], place


@pytest.mark.parametrize(
    "registry", [STRUCTURES, SURROGATES, METRICS, PAIR_LOSSES], ids=["structure", "loss", "metric", "phi"]
)
def test_no_member_is_registered_without_a_name_and_none_is_only_named(registry: Mapping[str, Any]) -> None:
    """The help of a command is made of names alone, and a registry holds its members to them."""
    names, members = [*registry], dict(registry)
    assert [*in_order(names, members)] == names
    for wrong in ([*names, "toy"], names[1:]):
        with pytest.raises(LookupError, match="named and not registered, or the reverse"):
            in_order(wrong, members)


def test_every_column_that_is_known_without_a_flag_is_on_the_page() -> None:
    page = (DOCS / "rankings.md").read_text()
    assert not [role for role in ALIASES if role not in page]


def test_a_structure_is_one_entry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A toy structure, registered in one place, ranks by the call and by the command."""
    votes = Preferences.from_comparisons(["a", "a", "b"], ["b", "c", "c"])

    def function(batch: cc.Batch) -> Scores:
        return STRUCTURES["counting"].function(batch)

    toy = Structure("toy", function, "pairs", "0.5", "none", "here", "shares")
    monkeypatch.setattr(structures, "STRUCTURES", {**STRUCTURES, "toy": toy})
    found = cc.rank(votes, structure="toy", interval="none")
    assert found.score.tolist() == cc.rank(votes, structure="counting", interval="none").score.tolist()
    log = tmp_path / "votes.csv"
    log.write_text("winner,loser\na,b\na,c\nb,c\n")
    out = tmp_path / "out.csv"
    asked = [str(log), "--structure", "toy", "--interval", "none", "-o", str(out)]
    assert command_of("rank").main(asked, standalone_mode=False) is None
    assert [line.split(",")[2] for line in out.read_text().splitlines()[1:]] == ["a", "b", "c"]
    with pytest.raises(cc.UsageError, match="did you mean 'toy'"):
        cc.rank(votes, structure="tooy")

"""Members of registries are named wherever users choose among them: a new one that is missing in a place fails here."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest

import concordant as cc
from concordant.apps.commands import rank as rank_command
from concordant.apps.commands.given import option
from concordant.apps.commands.options import OPTIONS, RankOptions, command_of
from concordant.errors import in_order
from concordant.io.engines.counting import Counter
from concordant.io.layouts import FORMS, Columns, Form, Reading
from concordant.io.read import read_log
from concordant.losses.metrics.metrics import METRICS
from concordant.losses.pair_losses import PAIR_LOSSES
from concordant.losses.surrogates import SURROGATES
from concordant.preferences.layouts import ALIASES, KINDS, Layout
from concordant.preferences.preferences import Preferences
from concordant.ranking import structures
from concordant.ranking.flags import FLAGS
from concordant.ranking.intervals import METHODS
from concordant.ranking.scores import Scores
from concordant.ranking.structures import STRUCTURES, Structure
from running import exit_status

DOCS = Path(__file__).parents[1] / "docs"
SOURCE = Path(cc.__file__).parent


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


def test_a_layout_is_one_entry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A toy layout, registered in one place, is recognised and read: a row is a ballot of three items."""
    places = ("first", "second", "third")

    def fit(there: Columns, roles: dict[str, str], _: str | None) -> dict[str, str] | str:
        found = {name: there.find((name,), name) for name in places}
        return (
            {**roles, **{name: column for name, column in found.items() if column}} if all(found.values()) else "first"
        )

    def read(counter: Counter, layout: Layout, _: str, on_error: str) -> Reading:
        raw, times = counter.count_rows(layout.roles)
        rows = [(n, raw[name][n].as_py(), at, int(k)) for n, k in enumerate(times) for at, name in enumerate(places, 1)]
        named = zip(("judgment", "item", "rank", "count"), zip(*rows, strict=True), strict=True)
        return read_log({name: list(values) for name, values in named}, kind=layout.kind, on_error=on_error)

    log = tmp_path / "ballots.csv"
    log.write_text("first,second,third\na,b,c\na,b,c\nb,a,c\n")
    with pytest.raises(cc.InputError, match="no layout fits"):
        cc.read(log)
    monkeypatch.setitem(FORMS, "ballots", Form("orders", "first, second, third", fit, read))
    found = cc.read(log)
    long = {"judgment": [1, 1, 1, 2, 2, 2, 3, 3, 3], "item": list("abcabcbac"), "rank": [1, 2, 3] * 3}
    assert found == cc.read(long) and found.kind == "orders" and len(found) == 3
    assert cc.read(log, kind="orders", engine="memory") == found
    out = tmp_path / "out.csv"
    command_of("rank").main([str(log), "--structure", "borda", "-o", str(out)], standalone_mode=False)
    assert [line.split(",")[2] for line in out.read_text().splitlines()[1:]] == ["a", "b", "c"]
    with pytest.raises(
        cc.InputError, match=r"orders: query/.*, judgment/.*, item, rank; ballots: first, second, third"
    ):
        cc.read({"x": [1]}, kind="orders")


def test_every_layout_is_of_a_kind_and_every_kind_has_one() -> None:
    assert {one.kind for one in FORMS.values()} == set(KINDS) and all(one.known for one in FORMS.values())


def test_an_option_of_rank_is_one_field(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A toy option is in the help, arrives typed, and is refused where nothing reads it."""

    class Toy(RankOptions):
        """Rank."""

        times: int | None = option("N", "How often.", "-x")

    log = tmp_path / "votes.csv"
    log.write_text("winner,loser\na,b\na,c\nb,c\n")
    monkeypatch.setitem(OPTIONS, "rank", Toy)
    assert exit_status("rank", "--help") == 0
    assert re.search(r"-x, --times N +How often", capsys.readouterr().out)
    assert exit_status("rank", log, "-x", 3) == 2
    assert "--times was given, and nothing read it" in capsys.readouterr().err
    seen: list[Any] = []
    ranked = rank_command.rank
    monkeypatch.setattr(rank_command, "rank", lambda options: (seen.append(options.times), ranked(options)))
    assert exit_status("rank", log, "-x", 3) == 0 and seen == [3]
    assert exit_status("rank", log) == 0 and seen == [3, None]


def test_a_note_is_renamed_in_one_file() -> None:
    """No file asks for the code of a note that another one makes."""
    made: dict[str, set[Path]] = {}
    asked: dict[str, set[Path]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Note", "of_queries"):
                code = node.args[0]
                if isinstance(code, ast.Constant):
                    made.setdefault(str(code.value), set()).add(path)
            if isinstance(node, ast.Compare) and any(
                isinstance(one, ast.Attribute) and one.attr == "code" for one in (node.left, *node.comparators)
            ):
                for one in (node.left, *node.comparators):
                    if isinstance(one, ast.Constant):
                        asked.setdefault(str(one.value), set()).add(path)
    assert len(made) > 30
    assert not {code: files for code, files in asked.items() if code in made and files - made[code]}


def test_a_flag_is_renamed_in_one_file(tmp_path: Path) -> None:
    """Its record and what sets it; tables, JSON and notes follow."""
    copy = tmp_path / "concordant"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("ranking/flags.py",):
        text = (copy / name).read_text()
        assert '"never lost"' in text
        (copy / name).write_text(text.replace('"never lost"', '"undefeated"'))
    (tmp_path / "votes.csv").write_text("winner,loser\na,b\na,c\nb,c\nc,b\n")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "concordant", "rank", "votes.csv", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
        )

    table, found = run(), run("-o", "out.json")
    assert (table.returncode, found.returncode) == (0, 0), table.stderr + found.stderr
    assert "undefeated" in table.stdout and "1 item undefeated: it has a score" in table.stdout + table.stderr
    assert "undefeated" in json.dumps(json.loads((tmp_path / "out.json").read_text()))
    assert "never lost" not in "".join((table.stdout, table.stderr, found.stderr))
    assert len({flag.label for flag in FLAGS}) == len(FLAGS)

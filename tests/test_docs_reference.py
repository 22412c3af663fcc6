"""The reference has every public name and every command, and each says what it is."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import concordant
from concordant.apps.commands import cli
from documents import ROOT

API = ROOT / "docs" / "api"
DIRECTIVE = re.compile(r"^\.\. auto(?:function|class|exception|data):: (\S+)$", re.MULTILINE)


def _listed() -> list[str]:
    return [name for page in sorted(API.glob("*.rst")) for name in DIRECTIVE.findall(page.read_text(encoding="utf-8"))]


def _thing(name: str) -> Any:
    """Return what a dotted name stands for."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError as missing:
            if not (missing.name or "").startswith("concordant"):
                pytest.skip(f"{name} needs {missing.name}")
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"{name} is nowhere")


def test_every_public_name_is_listed_once() -> None:
    listed = _listed()
    assert len(listed) == len(set(listed))
    names = {f"concordant.{name}" for name in concordant.__all__} - {"concordant.spark", "concordant.torch"}
    assert not names - set(listed), "public, and in no page of docs/api"
    assert not {name for name in listed if name.count(".") == 1} - names, "in docs/api, and not public"


@pytest.mark.parametrize(("extra", "library"), [("torch", "torch"), ("spark", "pyspark")])
def test_every_name_of_an_extra_is_listed(extra: str, library: str) -> None:
    module = pytest.importorskip(library) and importlib.import_module(f"concordant.{extra}")
    assert not {f"concordant.{extra}.{name}" for name in module.__all__} - set(_listed())


def test_files_that_documents_name_are_there() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        (page.name, file)
        for page in pages
        for file in re.findall(r"`((?:\w+/)+\w+\.py)`", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 50
    lost = [one for one in named if not any((root / one[1]).exists() for root in (ROOT, ROOT / "src" / "concordant"))]
    assert not lost


def test_names_that_documents_import_are_listed() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    imported = re.findall(r"^(?:>>> )?from (concordant\.[\w.]+) import ([\w, ]+)$", text, re.MULTILINE)
    names = {f"{module}.{name.strip()}" for module, names in imported for name in names.split(",")}
    assert len(names) > 5
    same = {id(_thing(name)) for name in _listed()}
    assert not [name for name in sorted(names) if id(_thing(name)) not in same]


@pytest.mark.parametrize("name", _listed())
def test_docstring(name: str) -> None:
    thing = _thing(name)
    if not (isinstance(thing, type) or callable(thing)):
        return  # data: its module says what it is
    text = thing.__doc__ or ""
    first = re.split(r"\n\s*\n", text.strip())[0]
    assert re.search(r"[.:?]$", first), f"{name} does not begin with a sentence: {first!r}"
    if re.fullmatch(r"concordant\.(torch\.)?\w+", name):
        assert ">>> " in text, f"{name} has no example"


def _events(folder: Path, *, plain: bool) -> set[str]:
    """The events of lines for machines: what ``….say(EVENT, …)`` and its like are given; ``plain``: ``say`` too."""
    found = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = getattr(node.func, "attr", None) or (plain and getattr(node.func, "id", None))
                if name in ("say", "lines", "_tell"):
                    found.add(node.args[0].value)
    return found


def test_every_event_of_a_line_for_machines_is_listed() -> None:
    source = ROOT / "src" / "concordant"
    said = (
        _events(source / "apps" / "commands", plain=True) | _events(source / "apps" / "serve", plain=False) | {"read"}
    )
    page = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| `event` \| (.*) \|$", page, re.MULTILINE)
    listed = re.findall(r"`([^`]+)`", row)
    assert len(said) > 20
    assert sorted(listed) == sorted(said)


RECEIVED = {"Audit", "Diagnosis", "Features", "Graphs", "Judged", "JudgedQueries", "Paths", "Preferences", "Ranking"}
RECEIVED |= {"RankingTree", "ScoreBoard", "Judges", "Camps", "Distributional", "Pairs", "PredictionPowered"}
"""Made by functions, never by a user's call: each field has its own docstring where its name does not say it."""
MANY = 5
SCIKIT_LEARNS = re.compile(r"set_\w+_request")
"""Methods that scikit-learn makes of the parameters of fit and score, with its own docstrings."""
ENTRY = re.compile(r"^((?:\*\*)?\w+(?:, \w+)*) : \S", re.MULTILINE)


def _called(module: str) -> Iterator[tuple[str, Any]]:
    """Give the functions, classes and methods of a public module that users call."""
    try:
        public = importlib.import_module(module)
    except ModuleNotFoundError as missing:
        pytest.skip(f"{module} needs {missing.name}")
    for name in public.__all__:
        thing = getattr(public, name)
        if isinstance(thing, type):
            if name not in RECEIVED and not issubclass(thing, Exception):
                yield name, thing
            methods = [each for each in vars(thing) if not each.startswith("_") and callable(getattr(thing, each))]
            methods = [each for each in methods if not SCIKIT_LEARNS.fullmatch(each)]
            yield from ((f"{name}.{each}", getattr(thing, each)) for each in methods)
        elif inspect.isfunction(thing):
            yield name, thing


@pytest.mark.parametrize("module", ["concordant", "concordant.torch", "concordant.spark"])
def test_many_parameters_stand_one_by_one(module: str) -> None:
    held = 0
    for name, thing in _called(module):
        text = inspect.cleandoc(thing.__doc__ or "")
        section = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
        parameters = [each for each in inspect.signature(thing).parameters if each != "self"]
        if section is None:
            assert len(parameters) <= MANY, f"{name} has {len(parameters)} parameters and no list of them"
            continue
        told = [each.lstrip("*") for names in ENTRY.findall(section[1]) for each in names.split(", ")]
        assert sorted(told) == sorted(parameters), f"{name}: the parameters are not those of the list"
        held += 1
    assert held > 3


def _commands(
    command: click.Command, words: tuple[str, ...] = ("concordant",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inside = command.get_command(context, name)
            assert inside is not None
            yield from _commands(inside, (*words, name))


def test_every_option_says_what_it_does() -> None:
    silent = [
        f"{' '.join(words)} {option.opts[0]}"
        for words, command in _commands(cli)
        for option in command.params
        if isinstance(option, click.Option) and not (option.help or option.hidden)
    ]
    assert not silent


def test_site_is_built(tmp_path: Path) -> None:
    pytest.importorskip("furo")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-W",
            "--keep-going",
            "-q",
            "-b",
            "html",
            "-d",
            tmp_path / "read",
            "docs",
            tmp_path / "site",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = (tmp_path / "site" / "api" / "commands.html").read_text(encoding="utf-8")
    for words, command in _commands(cli):
        assert f'id="{"-".join(words)}"' in shown
        assert all(option.opts[0] in shown for option in command.params if isinstance(option, click.Option))
    pages = {
        page.relative_to(tmp_path / "site").as_posix(): page.read_text(encoding="utf-8")
        for page in (tmp_path / "site").rglob("*.html")
    }
    for name in _listed():
        assert any(f'id="{name}"' in text for text in pages.values()), f"{name} is on no page"
    assert not [name for name, text in pages.items() if "TypeAliasForwardRef" in text], "signatures nobody wrote so"
    links = re.findall(r"\]\(([^)]+)\)", (tmp_path / "site" / "llms.txt").read_text(encoding="utf-8"))
    assert links
    assert set(links) <= set(pages)
    loaded = r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="(?:https?:)?//'
    assert not [name for name, text in pages.items() if re.search(loaded, text)], "pages that need a network"

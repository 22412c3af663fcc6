"""The documents run and say what they show; their links lead somewhere."""

from __future__ import annotations

import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest

from conftest import OTHER_TREES, SHARED, shared_data
from documents import COMMAND, PAGES, PORTS, ROOT, RUN, Block, Page, blocks
from spark_session import spark_tests
from terminal import ONE_THREAD

MOST_EXCUSED = 10
REASONS = ("downloads", "hours", "a cluster", "a GPU", "make", "needs a server", "JavaScript")


def _name(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").as_posix()


def _page(path: Path) -> Any:
    spark = any(block.notes.get("needs") == "spark" for block in blocks(path))
    return pytest.param(path, id=_name(path), marks=spark_tests if spark else ())


@pytest.mark.parametrize("path", [_page(path) for path in PAGES])
def test_page_runs(path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    with tempfile.TemporaryDirectory(prefix="concordant-page-") as folder:
        monkeypatch.chdir(folder)
        for name, value in {"CONCORDANT_SHARED": str(SHARED), **ONE_THREAD}.items():
            monkeypatch.setenv(name, value)
        page = Page(Path(folder), SHARED)
        try:
            for block in blocks(path):
                _need(block.notes.get("needs", ""), page, request)
                try:
                    wrong = page.run(block)
                except Exception as problem:
                    problem.add_note(f"{_name(path)}.md:{block.line}\n{block.text}")
                    raise
                assert not wrong, f"{_name(path)}.md:{block.line}\n{wrong}"
        finally:
            page.terminal.close()
            monkeypatch.undo()


def _need(what: str, page: Page, request: pytest.FixtureRequest) -> None:
    if what.startswith("shared "):
        shared_data(what.removeprefix("shared "))
    elif what == "trl":
        warnings.simplefilter("default")  # those of its libraries are not ours
        for name in ("HF_HUB_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "HF_DATASETS_DISABLE_PROGRESS_BARS"):
            request.getfixturevalue("monkeypatch").setenv(name, "1")
        pytest.importorskip("trl", reason="TRL is not installed: the extra [trl]", exc_type=ImportError)
    elif what == "tables":
        for name in ("deltalake", "pyiceberg", "sqlalchemy", "moto.server", "flask"):
            pytest.importorskip(name, reason=f"{name} is not installed: the extras [delta], [iceberg], [test]")
    elif what == "trees of today":
        if OTHER_TREES:
            pytest.skip(OTHER_TREES)
    elif what == "spark":
        page.names["spark"] = request.getfixturevalue("spark")
    else:
        assert not what, f"no rule for what a block needs: {what!r}"


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_blocks_are_of_a_known_kind(path: Path) -> None:
    for block in blocks(path):
        where = f"{_name(path)}.md:{block.line}"
        assert block.kind in RUN or block.kind in ("figure", "excused"), f"{where}: {block.kind!r}"
        commands = block.kind == "figure" and "file" not in block.notes and COMMAND.findall(block.text)
        assert not commands, (
            f"{where}: commands in a block that does not run; console, sh or a reason (<!-- not run: -->)"
        )


def test_few_blocks_are_excused() -> None:
    excused = [
        (f"{_name(path)}.md:{block.line}", block.notes["not run"])
        for path in PAGES
        for block in blocks(path)
        if block.kind == "excused"
    ]
    for where, reason in excused:
        print(where, reason)
        assert reason.startswith(REASONS), f"{where}: {reason!r} is not one of {REASONS}"
    assert len(excused) <= MOST_EXCUSED


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CHANGELOG.md"], ids=_name)
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", path.read_text(encoding="utf-8"))
    assert not [target for target, _ in links if not (path.parent / target).exists()]
    headings = [(path.parent / target if target else path, place) for target, place in links if place]
    assert not [place for page, place in headings if page.suffix == ".md" and place not in _headings(page)]


def _headings(page: Path) -> set[str]:
    """Return the headings of a page as GitHub names them in links."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("$ concordant --version\nconcordant, version …\n", True),
        ("$ concordant --version\nconcordant, version 9\n", False),
        ("$ concordant rank none.csv\nerror: …\n", True),
        ("$ concordant rank none.csv\n", False),
        ("$ a=1\n$ echo $a\n1\n", True),
        ("$ echo 1\n2\n", False),
        ("$ false\n", False),
    ],
)
def test_what_is_shown_is_what_is_said(tmp_path: Path, text: str, right: bool) -> None:
    page = Page(tmp_path, SHARED)
    try:
        assert (page.run(Block(1, "console", text)) == "") == right
    finally:
        page.terminal.close()


def test_no_page_serves_on_a_port_that_two_runs_would_share() -> None:
    for page in PAGES:
        assert set(re.findall(r"serve .*--port (\d+)", page.read_text(encoding="utf-8"))) <= set(PORTS), page


def test_port_is_no_part_of_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(tmp_path, SHARED)
    monkeypatch.setattr(page, "ports", {"8000": "36401", "8001": "36402"})
    assert page.here("serve --port 8000\ncurl localhost:8000/rank") == ("serve --port 36401\ncurl localhost:36401/rank")
    numbers = "head -8000 a.csv\n8000 rows, 0.8000"
    assert page.here(numbers) == numbers
    assert page.shown("serves on localhost:36401") == "serves on localhost:8000"
    assert page.shown(page.here("serve --port 8001")) == "serve --port 8001" != page.here("serve --port 8001")
    drawn = "0,1,-1.303157231604361,0.9053558666731177,0.4463745723640113\n36401 votes\n"
    assert page.shown(drawn) == drawn

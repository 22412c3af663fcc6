"""The documents as scripts: what blocks a page has, and how each of them runs.

The rules stand in CONTRIBUTING.md. ``python tests/documents.py docs/audit.md`` prints the blocks of a page with the
output that they have now.
"""

from __future__ import annotations

import contextlib
import csv
import doctest
import io
import json
import os
import re
import shutil
import socket
import sys
import tomllib
import xml.etree.ElementTree
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from shown import difference
from terminal import PLAIN, Terminal

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md")),
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts),
]
COPIED = ("tests", "src/concordant/apps/data", "docs", "benchmarks", "tools", "README.md", "CHANGELOG.md", "LICENSE")
"""What of a clone a page finds in its folder: copies, so that a page which writes README.md writes no one else's."""
LEFT_OUT = shutil.ignore_patterns("__pycache__", "_build", "*.pyc")

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
COMMAND = re.compile(r"(\$|concordant|make|python3?|pip|curl|git|uv|pytest|docker|export)(\s|$)", re.MULTILINE)
PORT = r"(?:(?<=[a-z1]:)|(?<=port )){}\b"
"""A port, where it stands as one: after a host or the word, not among a number's digits."""
PORTS = ("8000", "8001")
"""The ports that pages name."""

Skip = Callable[[str], None]


@dataclass
class Block:
    """A fence, or a comment of hidden set-up, with the comments right above it."""

    line: int  # of the first line inside
    language: str
    text: str
    notes: dict[str, str] = field(default_factory=dict)
    follows_code: bool = False  # nothing but empty lines between it and a Python block

    @property
    def kind(self) -> str:
        """Say what is done with the block: one of the keys of ``RUN``, ``figure`` or ``excused``."""
        if "not run" in self.notes:
            return "excused"
        if self.language == "python":
            return "doctest" if re.search(r"^>>> ", self.text, re.MULTILINE) else "python"
        if self.language in ("", "text"):
            return "printed" if self.follows_code else "figure"
        return self.language


def blocks(path: Path) -> list[Block]:
    """Return the blocks of a page in order."""
    found: list[Block] = []
    notes: dict[str, str] = {}
    lines = path.read_text(encoding="utf-8").split("\n")
    number, code_before = 0, False
    while number < len(lines):
        line = lines[number]
        number += 1
        fence = re.fullmatch(r"( *)(```+)\s*(\S*).*", line)
        if fence:
            start = number
            while lines[number].strip() != fence[2]:
                number += 1
            inside = [one.removeprefix(fence[1]) for one in lines[start:number]]
            found.append(Block(start + 1, fence[3], "\n".join(inside) + "\n", notes, code_before))
            number += 1
            notes, code_before = {}, found[-1].kind == "python"
        elif line.startswith("<!--"):
            start = number - 1
            while "-->" not in lines[number - 1]:
                number += 1
            name, _, value = "\n".join(lines[start:number])[4:].rpartition("-->")[0].strip().partition("\n")
            if name in ("setup", "setup python"):
                found.append(Block(start + 2, name.split()[-1], value + "\n"))
            elif value == "" and re.match(r"(not run|file|needs): |numbers within ", name):
                word, _, rest = name.partition(" within " if name.startswith("numbers") else ": ")
                notes[word] = rest
        elif line.strip():
            notes, code_before = {}, False
    return found


def _free_ports() -> Iterator[str]:
    """Ports that nothing listens on, below those that systems give to callers; another process begins elsewhere."""
    first = os.getpid() * 7
    for place in range(10_000):
        port = 20_000 + (first + place) % 10_000
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            yield str(port)


class Page:
    """A page that runs: its folder, its names, its terminal."""

    def __init__(self, folder: Path, shared: Path) -> None:
        self.folder, self.shared = folder, shared
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=LEFT_OUT)
            elif (ROOT / name).exists():
                shutil.copy(ROOT / name, folder / name)
        self.names: dict[str, Any] = {"__name__": "page"}
        self.terminal = Terminal(folder, {"CONCORDANT_SHARED": str(shared)})
        self.printed = ""
        self.ports = dict(zip(PORTS, _free_ports()))

    def run(self, block: Block) -> str:
        """Run a block; return what is wrong with it, or nothing."""
        if "file" in block.notes:
            target = (self.folder / block.notes["file"]).resolve()
            assert target.is_relative_to(self.folder.resolve()), f"{target} is not in the folder of the page"
            target.write_text(block.text, encoding="utf-8")
        if block.kind in ("figure", "excused"):
            return ""
        if block.kind not in RUN:
            return f"a block of {block.language!r}: no rule says how to check one"
        with threadpool_limits(1):  # of the libraries that are loaded; ONE_THREAD is for those to come
            return RUN[block.kind](self, block)

    def here(self, text: str) -> str:
        """Put free ports where the document says 8000 and 8001."""
        for said, own in self.ports.items():
            text = re.sub(PORT.format(said), own, text)
        return text

    def shown(self, text: str) -> str:
        """Put 8000 and 8001 where a program says the free ports."""
        for said, own in self.ports.items():
            text = re.sub(PORT.format(own), said, text)
        return text

    def console(self, block: Block) -> str:
        """Run the commands and compare what they say with what the block shows."""
        return "\n".join(filter(None, (one.wrong(block.notes) for one in self.typed(block))))

    def typed(self, block: Block) -> list[Typed]:
        """Run the commands of a block."""
        asked = list(commands(block.text))
        if not asked:
            return [Typed("", "", "a console block without a line that starts with $", 1)]
        said = self.terminal.run([self.here(command) for command, _ in asked])
        said = [(self.shown(text), status) for text, status in said]
        said += [("not run: the shell had ended", 1)] * (len(asked) - len(said))
        return [Typed(command, shown, *heard) for (command, shown), heard in zip(asked, said)]

    def script(self, block: Block) -> str:
        """Run a script without prompts; what it says is its own matter."""
        lines = [line for line in self.here(block.text).replace("\\\n", " ").splitlines() if line]
        if not all(PLAIN.fullmatch(line) for line in lines):
            assert "spark" not in self.names, "beside Spark, in its process, only plain commands of concordant run"
            return self.set_up(block)
        ends = zip(lines, self.terminal.run(lines))
        return "\n".join(f"$ {line}\nends with {status}:\n{text}" for line, (text, status) in ends if status)

    def set_up(self, block: Block) -> str:
        """Run a script in the shell."""
        ((text, status),) = self.terminal.run([f"(set -e\n{self.here(block.text)})"])
        return f"status {status}: … {text[-1000:]}" if status else ""

    def python(self, block: Block) -> str:
        """Run Python; what it prints is kept for a block that shows it."""
        code = compile("\n" * (block.line - 1) + self.here(block.text), "page", "exec")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, self.names)
        self.printed = out.getvalue()
        return ""

    def doctest(self, block: Block) -> str:
        """Run the examples of a block."""
        test = doctest.DocTestParser().get_doctest(block.text, self.names, "page", "page", block.line - 1)
        test.globs = self.names
        said: list[str] = []
        runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
        runner.run(test, out=said.append, clear_globs=False)
        return "".join(said)

    def was_printed(self, block: Block) -> str:
        """Compare what Python printed with what the page shows."""
        return difference(block.text, self.printed, block.notes)

    def parsed(self, block: Block) -> str:
        """Say why a file in the block cannot be read."""
        try:
            PARSE[block.language](block.text)
        except (ValueError, xml.etree.ElementTree.ParseError) as problem:
            return str(problem)
        return ""


@dataclass
class Typed:
    """A command, what the page shows below it, what it says, and its status."""

    command: str
    shown: str
    said: str
    status: int

    def wrong(self, notes: dict[str, str]) -> str:
        """Say how what was heard differs from what is shown."""
        expected = 2 if re.search("^error: ", self.shown, re.MULTILINE) else 0
        if self.status != expected:
            return f"$ {self.command}\nends with {self.status}, not {expected}:\n{self.said}"
        wrong = difference(self.shown, self.said, notes) if self.shown.strip() else ""
        return wrong and f"$ {self.command}\n{wrong}"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Return the commands of a console block, each with what is shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.split("\n")
        end = 1
        while lines[end - 1].endswith("\\") or lines[end].startswith("> "):
            end += 1
        yield "\n".join(one.removeprefix("> ") for one in lines[:end]), "\n".join(lines[end:])


def _json(text: str) -> None:
    try:
        json.loads(text)
    except ValueError:
        for line in text.splitlines():
            json.loads(line)


def _csv(text: str) -> None:
    rows = list(csv.reader(text.splitlines(), strict=True))
    if len({len(row) for row in rows}) > 1:
        raise ValueError("rows of different lengths")


PARSE: dict[str, Callable[[str], object]] = {
    "json": _json,
    "csv": _csv,
    "toml": tomllib.loads,
    "xml": xml.etree.ElementTree.fromstring,
}
RUN: dict[str, Callable[[Page, Block], str]] = {
    "console": Page.console,
    "sh": Page.script,
    "setup": Page.set_up,
    "python": Page.python,
    "doctest": Page.doctest,
    "printed": Page.was_printed,
    **dict.fromkeys(PARSE, Page.parsed),
}


def _show(name: str) -> None:
    """Print the blocks of a page with what they say now."""
    import tempfile

    shared = Path(os.environ.get("CONCORDANT_SHARED", ROOT.parent / "shared" / "data"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        page = Page(Path(folder), shared)
        try:
            for block in blocks(ROOT / name):
                print(
                    f"--- line {block.line}: {block.kind} {block.notes or ''}",
                    flush=True,
                )
                if block.kind == "console":
                    for one in page.typed(block):
                        print(f"$ {one.command}\n{one.said}" + (f"[{one.status}]\n" if one.status else ""), end="")
                else:
                    print(page.run(block) or (page.printed if block.kind == "printed" else "as shown"))
        finally:
            page.terminal.close()


if __name__ == "__main__":
    for page_name in sys.argv[1:]:
        _show(os.path.relpath(os.path.abspath(page_name), ROOT))

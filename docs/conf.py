"""How the site is built: ``make docs``. Works offline; pages are plain Markdown that reads the same on GitHub."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Any

import click
from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import TypeAliasForwardRef

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "src"))

import concordant  # noqa: E402
from concordant.apps.commands import cli  # noqa: E402

project = "concordant"
author = "The concordant developers"
copyright = author
version = release = concordant.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "data", "examples"]
html_theme = "furo"
html_title = f"concordant {release}"
html_static_path = ["_static"]
html_css_files = ["concordant.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
smartquotes = False
suppress_warnings = ["misc.highlighting_failure"]  # outputs with quotes that no shell would close
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ("Floats", "Ints", "Flags", "Nodes", "Codes", "Matrix")}
TypeAliasForwardRef.__repr__ = lambda self: str(self.name)  # type: ignore[method-assign]  # inside other types
autodoc_default_options = {"members": True, "inherited-members": "BaseEstimator,ValueError,tuple,Module"}
EXTRAS = (
    "torch",
    "trl",
    "datasets",
    "pyspark",
    "py4j",
    "pandas",
    "fastapi",
    "starlette",
    "pydantic",
    "pydantic_core",
    "uvicorn",
    "httptools",
    "uvloop",
)
autodoc_mock_imports = [name for name in EXTRAS if importlib.util.find_spec(name) is None]
python_use_unqualified_type_names = True
add_module_names = False

ELSEWHERE = {
    "project/changelog": "CHANGELOG.md",
    "project/contributing": "CONTRIBUTING.md",
    "project/benchmarks": "benchmarks/README.md",
    "project/benchmark-results": "benchmarks/results.md",
}
"""Pages whose text lies outside this folder."""

WIDTH: dict[str, Any] = {"terminal_width": 84, "max_content_width": 84}
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(?=[)#])")
WHOLE = re.compile(r"\[([^]]+)\]\(([^)#:\s]+)\)")
FENCE = re.compile(r"(^ *```.*?^ *```[^\n]*$)", re.DOTALL | re.MULTILINE)


def read_page(app: Sphinx, name: str, source: list[str]) -> None:
    """Take the text of a page from where it lies, let its links lead to pages of the site, give the index its menu."""
    if name.startswith("api/"):
        return
    lies = ROOT / ELSEWHERE[name] if name in ELSEWHERE else HERE / f"{name}.md"
    if name in ELSEWHERE:
        app.env.note_dependency(str(lies))
    text = lies.read_text(encoding="utf-8")
    pieces = FENCE.split(text)
    pieces[::2] = [_linked(piece, lies, name) for piece in pieces[::2]]
    source[0] = "".join(pieces) + ("".join(_menu(text)) if name == "index" else "")


def _linked(text: str, lies: Path, name: str) -> str:
    """Let the links of a text lead to pages or files; a folder without a README has nothing to show."""

    def words_or_link(found: re.Match[str]) -> str:
        place = lies.parent / found[2]
        return found[1] if place.is_dir() and not (place / "README.md").exists() else found[0]

    return LINK.sub(lambda found: _target(found[1], lies, name), WHOLE.sub(words_or_link, text))


def _target(link: str, lies: Path, name: str) -> str:
    """Return where a link of a file leads from its page."""
    path = (lies.parent / link).resolve()
    path = path / "README.md" if path.is_dir() else path
    shown = {ROOT / where: HERE / f"{page}.md" for page, where in ELSEWHERE.items()} | {
        ROOT / "README.md": HERE / "index.md"
    }
    path = shown.get(path, path)
    file = "" if path.is_relative_to(HERE) else "path:"  # a file to download, not a page
    return file + os.path.relpath(path, (HERE / name).parent)


def _menu(text: str) -> list[str]:
    """Return a hidden table of contents for each section of the index: the pages that its list names."""
    sections = re.split(r"^## (.*)$", text, flags=re.MULTILINE)[1:]
    found = []
    for title, section in zip(sections[::2], sections[1::2]):
        pages = re.findall(r"^- \[([^]]*)\]\(([^)#]+?)(?:\.md|\.rst)\)", section, re.MULTILINE)
        if pages:
            pages = [f"{shown} <{page}>" for shown, page in pages]
            found.append("\n".join(["\n\n```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```\n"]))
    return found


PARAMETER = re.compile(r"^((?:\\\*)*\w+(?:, \w+)*) : (.*)")
LITERAL = re.compile(r"(``.*?``)", re.DOTALL)
INHERITED = re.compile(r"(set_\w+_request|[gs]et_params|get_metadata_routing)$")


def read_docstring(*told: Any) -> None:
    """Make reStructuredText of a docstring of the house: bars are bars, each parameter is a point of a list."""
    lines: list[str] = told[-1]
    paragraphs = "\n".join(lines).split("\n\n")
    for place, text in enumerate(paragraphs):
        if text.lstrip().startswith(">>> "):
            continue
        pieces = LITERAL.split(text)
        pieces[::2] = [piece.replace("|", r"\|").replace("*", r"\*") for piece in pieces[::2]]
        text = "".join(pieces)
        if re.match(r"Parameters\n-+\n", text):
            points = [PARAMETER.sub(r"* **\1**: \2", line) for line in text.split("\n")[2:]]
            text = "\n".join(["Parameters:", "", *(re.sub("^    ", "  ", line) for line in points)])
        paragraphs[place] = text
    lines[:] = "\n\n".join(paragraphs).split("\n")


def leave_out(_app: Sphinx, _what: str, name: str, thing: Any, *_: Any) -> bool | None:
    """Leave out what scikit-learn puts into every estimator."""
    return True if INHERITED.match(name) or str(getattr(thing, "__module__", "")).startswith("sklearn") else None


class Commands(SphinxDirective):
    """A section for each command with what its ``--help`` says now."""

    def run(self) -> list[nodes.Node]:
        """Return the sections: the command itself, then each command in it."""
        return [
            _section(cli, click.Context(cli, info_name="concordant", **WIDTH, **cli.context_settings)),
            *_inside(cli, None),
        ]


def _inside(group: click.Group, parent: click.Context | None) -> list[nodes.Node]:
    """Return a section for each command of a group."""
    above = parent or click.Context(group, info_name="concordant", **WIDTH, **cli.context_settings)
    found: list[nodes.Node] = []
    for name in group.list_commands(above):
        command = group.get_command(above, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=above, **WIDTH)
        section = _section(command, context)
        if isinstance(command, click.Group):
            section += _inside(command, context)
        found.append(section)
    return found


def _section(command: click.Command, context: click.Context) -> nodes.section:
    title = context.command_path
    section = nodes.section(ids=[nodes.make_id(title)], names=[title])
    text = command.get_help(context)
    section += [nodes.title(title, title), nodes.literal_block(text, text, language="text")]
    return section


SPELLINGS = {
    r"<factory>": "...",
    r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[~(?:\w+\.)*(\w+)\]\]": r"NDArray[\1]",
}
"""What Python calls in a signature what the source calls otherwise."""


def spell(*told: Any) -> tuple[str | None, str | None]:
    """Give the types of a signature the names that the source has for them."""
    signature, returned = told[-2:]
    for pattern, name in SPELLINGS.items():
        signature = signature and re.sub(pattern, name, signature)
        returned = returned and re.sub(pattern, name, returned)
    return signature, returned


def write_llms(app: Sphinx, problem: Exception | None) -> None:
    """Put the page for language models beside the others, its links leading to these."""
    shown = {where: f"{page}.html" for page, where in ELSEWHERE.items()}

    def page(found: re.Match[str]) -> str:
        link = re.sub(r"\.(md|rst)$", ".html", found[1].removeprefix("docs/"))
        return f"]({shown.get(found[1], link)})"

    if problem is None and app.builder.format == "html":
        text = (ROOT / "llms.txt").read_text(encoding="utf-8")
        Path(app.outdir, "llms.txt").write_text(re.sub(r"\]\(([^)]+)\)", page, text), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx of the above."""
    app.connect("source-read", read_page)
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("autodoc-process-signature", spell)
    app.connect("autodoc-skip-member", leave_out)
    app.connect("build-finished", write_llms)
    app.add_directive("commands", Commands)
    app.add_lexer("csv", TextLexer)  # Pygments knows none
    return {"parallel_read_safe": True}

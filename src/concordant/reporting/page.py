"""The page of a report: one HTML file with its data, its styles, its scripts and the chart library inside."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["page"]

SCRIPTS = (
    *("elements", "numbers", "state", "colours", "tip", "figure", "grid", "intervals", "bars", "matrix", "picking"),
    *("overview", "ranking", "ranking_chart", "beats", "graph", "audit", "annotators", "order", "scorer"),
    *("coverage", "ask", "chooser", "main"),
)
"""Files of page/ in the order in which they are joined; each holds one thought."""

UNSAFE = re.compile("[<>&\u2028\u2029\x7f-\x9f\ud800-\udfff]")
"""What a script element, or UTF-8, would take for something else than text."""


def page(data: dict[str, Any]) -> str:
    """Return the page that shows the data of a report: whole, without network, equal bytes for equal data.

    The data stand in it as JSON that the page's own script reads; labels become text nodes, never markup. A content
    security policy allows the two scripts and the one style sheet of the page by their hashes and nothing else.

    Errors: ValueError for NaN and infinities (see ``commands.output.plain``).

    >>> text = page({"schema": 1, "title": "votes", "items": ["<b>"], "views": [], "absent": {}})
    >>> print(text.split('id="data">')[1].split("<")[0])
    {"schema":1,"title":"votes","items":["\\u003cb\\u003e"],"views":[],"absent":{}}
    """
    style, library, script = _file("page.css"), _file("echarts/echarts.min.js"), _script()
    parts = {
        "policy": _policy(scripts=(library, script), styles=(style,)),
        "title": html.escape(_clean(str(data.get("title", "")))),
        "licence": f"{_file('echarts/NOTICE').strip()}\n\n{_head_of(library)}",
        "style": style,
        "library": library,
        "script": script,
        "data": _json(data),
    }
    return re.sub(r"@\[(\w+)\]", lambda found: parts[found[1]], _file("page.html"))


def _json(data: dict[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _clean(text: str) -> str:
    return re.sub("[\x00-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text)


@cache
def _file(name: str) -> str:
    return (resources.files("concordant") / "reporting" / "page" / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """Join the scripts in a scope of their own."""
    text = "\n".join(_file(f"{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{text}\n}})();\n'


def _policy(*, scripts: tuple[str, ...], styles: tuple[str, ...]) -> str:
    allowed = {"script-src": scripts, "style-src": styles}
    sources = [f"{name} {' '.join(_hash(text) for text in texts)}" for name, texts in allowed.items()]
    return "; ".join(["default-src 'none'", *sources, "base-uri 'none'", "form-action 'none'"])


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _head_of(library: str) -> str:
    """Return the licence's words from the first comment of the library."""
    return "\n".join(line.strip("/* ") for line in library.split("*/", 1)[0].splitlines()).strip()

"""Texts of users in Markdown and YAML: shown as they are, never as markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["bulleted", "escaped", "quoted", "table"]

MARKS = re.compile(r"([\\`*_\[\]|~$])")
HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
LEADS = re.compile(r"^([-+#=]|\d+(?=[.)](?:\s|$)))")
"""What makes a line a list, a heading, a rule."""
LINKS = (
    (re.compile(r":(?=//)"), "&#58;"),
    (re.compile(r"(?i)(?<=\bwww)\."), "&#46;"),
    (re.compile(r"@(?=\w)"), "&#64;"),
)
"""What makes a bare address a link, a name a mention."""


def escaped(text: object, *, begins: bool = True) -> str:
    """Return a text as one line of Markdown that shows it, whatever it holds; ``begins``: the line may begin with it.

    >>> print(escaped("<b>a|b</b>\\n[x](https://x) bradley-terry"))
    &lt;b&gt;a\\|b&lt;/b&gt; \\[x\\](https&#58;//x) bradley-terry
    """
    line = "".join(c if c.isprintable() else " " for c in str(text)).strip()
    line = MARKS.sub(r"\\\1", line).translate(HTML)
    if begins:
        line = LEADS.sub(_disarmed, line)
    for marks, shown in LINKS:
        line = marks.sub(shown, line)
    return line


def _disarmed(found: re.Match[str]) -> str:
    return f"{found[1]}\\" if found[1].isdigit() else f"\\{found[1]}"


def quoted(text: object) -> str:
    """Return a text as a double-quoted scalar of YAML.

    >>> print(quoted('a "b"\\n: - é'))
    "a \\"b\\"\\n: - é"
    """

    def one(c: str) -> str:
        if c in '"\\':
            return f"\\{c}"
        if c == "\n":
            return "\\n"
        return c if c.isprintable() else f"\\U{ord(c):08x}"

    return f'"{"".join(map(one, str(text)))}"'


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of Markdown; cells are escaped, numbers are to the right."""
    listed = [list(row) for row in rows]
    right = [all(isinstance(row[at], int | float) for row in listed) for at in range(len(header))]
    lines = [header, ["---:" if one else "---" for one in right]]
    lines += [[f"{cell:,}" if isinstance(cell, int) else escaped(cell, begins=False) for cell in row] for row in listed]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def bulleted(lines: Iterable[object]) -> str:
    """Return a list of Markdown, every entry escaped."""
    return "\n".join(f"- {escaped(line)}" for line in lines)

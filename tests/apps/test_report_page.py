"""The file of a report's page before any browser reads it: what it holds, what its policy allows, what is escaped."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib import resources

import pytest

from concordant.apps.report.report import page
from report_pages import HOSTILE, full_data, report_data

FOLDER = resources.files("concordant") / "apps" / "report" / "page"


class Parts(HTMLParser):
    """Scripts, styles and the policy of a page, as a parser of HTML sees them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inside: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, dict[str, str | None], str]] = []
        self.policy = ""
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        if held.get("http-equiv") == "Content-Security-Policy":
            self.policy = held["content"] or ""
        self.addresses += [str(held[name]) for name in ("src", "href", "action", "srcset") if name in held]
        if tag in ("script", "style"):
            self.inside.append((tag, held))
            self.texts.append((tag, held, ""))

    def handle_data(self, data: str) -> None:
        if self.inside:
            tag, held, text = self.texts[-1]
            self.texts[-1] = (tag, held, text + data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self.inside.pop()


def test_the_chart_library_is_the_one_that_its_note_names() -> None:
    note = (FOLDER / "echarts" / "SOURCE.md").read_text(encoding="utf-8")
    held = (FOLDER / "echarts" / "echarts.min.js").read_bytes()
    assert re.search(r"SHA-256: `(\w+)`", note)[1] == hashlib.sha256(held).hexdigest()
    version = re.search(r"# Apache ECharts ([\d.]+)", note)[1]
    assert f't.version="{version}"'.encode() in held
    text = page(report_data([], []))
    for words in (
        f"Apache ECharts {version}",
        "Licensed to the Apache Software Foundation",
        "Copyright 2017-2026 The Apache",
    ):
        assert words in text.split("<style>", 1)[0]
    assert all((FOLDER / "echarts" / name).is_file() for name in ("LICENSE", "NOTICE", "LICENSE-d3"))


def test_a_policy_allows_what_the_page_holds_and_nothing_else() -> None:
    parts = Parts(page(full_data()))
    code = [text for tag, held, text in parts.texts if held.get("type") != "application/json"]
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in code]
    style, library, script = hashes
    assert parts.policy.split("; ") == [
        "default-src 'none'",
        f"script-src {library} {script}",
        f"style-src {style}",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert all(address.startswith("#") for address in parts.addresses)


@pytest.mark.parametrize("label", HOSTILE)
def test_data_come_back_whole_and_end_no_script(label: str) -> None:
    data = report_data([label], []) | {"title": label.replace("\ud800", "")}
    text = page(data)
    parts = Parts(text)
    [held] = [text for _, held, text in parts.texts if held.get("id") == "data"]
    assert json.loads(held) == data
    assert not set("<>&\u2028\u2029") & set(held)
    assert [tag for tag, _, _ in parts.texts] == ["style", "script", "script", "script"]
    assert text.encode("utf-8")
    assert page(data) == text


def test_numbers_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError):
        page(report_data([], []) | {"facts": float("nan")})

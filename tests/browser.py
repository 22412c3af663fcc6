"""A report page in the system's Chromium: whatever it asks the network for, or complains about, is a fault."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARTEFACTS = Path(os.environ.get("CONCORDANT_ARTEFACTS", Path(__file__).resolve().parent / "artefacts"))
"""Where screenshots are kept."""

AFTER_THE_FRAME = """
async (act) => {
  const begin = performance.now();
  act();
  await new Promise((done) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(null);
  }));
  return performance.now() - begin;
}
"""
"""Milliseconds from an event until the frame that shows what it did is made: script, layout and paint."""

ACCESSIBLE = r"""
() => {
  const faults = [];
  const labels = (node) => [...(node.labels ?? [])].map((one) => one.textContent).join(' ');
  const name = (node) => (node.getAttribute('aria-label') || labels(node) || node.textContent).trim();
  for (const node of document.querySelectorAll('a, button, input, select, summary, [role=img], [role=region], nav')) {
    if (!name(node)) faults.push(`no name: ${node.outerHTML.slice(0, 100)}`);
  }
  let level = 0;
  for (const node of document.querySelectorAll('h1, h2, h3, h4')) {
    const next = Number(node.tagName[1]);
    if (next > level + 1) faults.push(`heading ${node.textContent} after level ${level}`);
    level = next;
  }
  const ids = [...document.querySelectorAll('[id]')].map((node) => node.id);
  if (new Set(ids).size !== ids.length) faults.push('an id twice');
  for (const one of ['main', 'h1', 'nav', 'footer', 'html[lang]', 'title']) {
    if (document.querySelectorAll(one).length !== 1) faults.push(`not one ${one}`);
  }
  for (const cell of document.querySelectorAll('th:not([scope])')) faults.push(`no scope: ${cell.textContent}`);
  const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (colour) => {
    const linear = (x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = parse(colour).slice(0, 3).map((x) => linear(x / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (parse(colour)[3] !== 0) return colour;
    }
    return getComputedStyle(document.body).backgroundColor;
  };
  for (const node of document.querySelectorAll('body *')) {
    if (![...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim())) continue;
    if (['SCRIPT', 'STYLE', 'NOSCRIPT', 'OPTION'].includes(node.tagName) || !node.getClientRects().length) continue;
    const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(2)}: ${node.outerHTML.slice(0, 100)}`);
  }
  return faults;
}
"""
"""What a page lacks that a reader without eyes, or with weak ones, needs: names, headings in order, contrast."""


@contextmanager
def launched() -> Iterator[Browser]:
    """Chromium without a window; it is closed at the end."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page that is open, with the faults seen since."""

    def __init__(self, browser: Browser, path: Path, *, width: int = 1280, height: int = 900, **media: Any) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": height}, **media)
        self.faults: list[str] = []
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda said: self.faults.append(f"{said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", lambda box: (self.faults.append(f"dialog: {box.message}"), box.dismiss()))
        self.page.on("popup", lambda _: self.faults.append("a window opened"))
        self.context.route("**/*", lambda route: self._only(route, path.as_uri()))
        self.page.goto(path.as_uri())
        self.settle()

    def _only(self, route: Any, address: str) -> None:
        if route.request.url.split("#")[0] == address:
            route.continue_()
        else:
            self.faults.append(f"request: {route.request.url[:200]}")
            route.abort()

    def settle(self) -> None:
        """Wait until every section is drawn; what went wrong is said where that never comes."""
        try:
            self.page.wait_for_selector("body[aria-busy=false]", state="attached", timeout=120_000)
        except TimeoutError as late:
            raise AssertionError(f"the page is not drawn: {self.faults}") from late
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def table(self, selector: str) -> list[list[str]]:
        """Cells of the rows that a table shows."""
        return self.page.evaluate(
            "(selector) => [...document.querySelectorAll(`${selector} tbody tr`)]"
            ".map((row) => [...row.cells].map((cell) => cell.textContent))",
            selector,
        )

    def titles(self, selector: str) -> list[str]:
        """Titles of the columns of a table."""
        return self.page.locator(f"{selector} thead th").all_text_contents()

    def close(self) -> None:
        self.context.close()

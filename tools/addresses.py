"""Metadata of the package that depend on where it is published: addresses, and a description whose links lead there.

A checkout does not know its own address. Who publishes says it: ``PROJECT_URL`` (https://github.com/owner/name) and
``PROJECT_REF`` (a tag or branch; main). Without them there are no addresses, and links stay as they are.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
"""A link of Markdown, or a picture, to a file of the repository."""


class Addresses(MetadataHookInterface):
    """Readme and URLs, as `pyproject.toml` leaves them to be found."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        home, ref = os.environ.get("PROJECT_URL", "").rstrip("/"), os.environ.get("PROJECT_REF") or "main"
        if home:
            pages = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}
            metadata["urls"] = {"Repository": home, "Issues": f"{home}/issues"}
            metadata["urls"] |= {name: f"{home}/blob/{ref}/{page}" for name, page in pages.items()}
            text = LINK.sub(lambda link: _absolute(link, home, ref), text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def _absolute(link: re.Match[str], home: str, ref: str) -> str:
    picture, words, place = link.groups()
    if picture:
        return f"![{words}]({home}/raw/{ref}/{place}?sanitize=true)"
    return f"[{words}]({home}/blob/{ref}/{place})"

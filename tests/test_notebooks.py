"""The notebooks of the documentation run, and show what they say they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from notebooks import NOTEBOOKS, run


def words(outputs: list[dict[str, Any]]) -> list[Any]:
    """What is said; pictures and the names of their axes are left out."""
    said = [output.get("text") or output["data"] for output in outputs if output["output_type"] != "display_data"]
    return [one for one in said if not (isinstance(one, dict) and one["text/plain"][0].startswith("<Axes"))]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_its_cells_show(path: Path) -> None:
    pytest.importorskip("matplotlib")
    for cell, outputs in run(path):
        assert words(outputs) == words(cell["outputs"]), "python tests/notebooks.py writes the outputs anew"
        assert any("image/png" in one.get("data", {}) for one in outputs) == ("plot(" in "".join(cell["source"]))


def test_there_are_notebooks_of_rankings_and_audits() -> None:
    assert {path.stem for path in NOTEBOOKS} >= {"leaderboard", "circles-and-time"}

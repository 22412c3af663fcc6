"""Abstention on real data: the numbers of docs/abstention.md are those that its example prints."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from conftest import OTHER_TREES, ROOT, shared_data

TEXT = " ".join((ROOT / "docs" / "abstention.md").read_text(encoding="utf-8").split())
TABLE = re.findall(r"\| (distance|risk) \| ((?:[\d.]+ \| )+)", TEXT)
"""Rule and cells of each row, two rows for each set."""
SETS = {"football": "football", "verdicts": "Vicuna-80", "clueweb": "clueweb09", "mq2008": "mq2008"}
of_these_trees = pytest.mark.skipif(bool(OTHER_TREES), reason=OTHER_TREES or "the trees are those of the page")


@pytest.fixture(scope="module")
def example() -> dict[str, Callable[..., None]]:
    return runpy.run_path(str(ROOT / "docs" / "examples" / "abstention.py"))


@pytest.mark.parametrize("name", [pytest.param("football", marks=of_these_trees), *list(SETS)[1:]])
def test_numbers_of_the_page_are_those_of_the_example(example, name: str, capsys) -> None:
    folder: list[Path] = [shared_data("mq2008").parent] if name == "mq2008" else []
    example[name](*folder)
    printed = capsys.readouterr().out
    areas = []
    for rule, cells in TABLE[2 * list(SETS).index(name) :][:2]:
        line = re.search(rf"by {rule} +risk at coverage (.*?);  AURC ([\d.]+)", printed)
        assert line is not None
        found = [float(number) for number in (*re.findall(r"% ([\d.]+)", line[1]), line[2])]
        assert np.allclose(found, [float(number) for number in cells.split(" | ")[:-1]], atol=1.1e-3)
        areas.append(found[-1])
    assert areas[0] == areas[1] if name in ("football", "verdicts") else areas[1] < areas[0] - 0.03
    declined = re.search(r"10%: ([\d.]+)%, 30%: ([\d.]+)%", printed)
    written = re.search(rf"([\d.]+)% and ([\d.]+)% \({SETS[name]}", TEXT)
    assert declined is not None and written is not None
    assert np.allclose([float(x) for x in declined.groups()], [float(x) for x in written.groups()], atol=0.3)


@of_these_trees
def test_what_the_page_says_of_draws_and_of_disagreement(example, capsys) -> None:
    for name in ("football", "verdicts"):
        example[name]()
    numbers = re.findall(
        r"(?:were drawn, of the others|AUC of closeness for a draw|weaker side:|disagreement|of a tie) ([\d.]+%?)",
        capsys.readouterr().out,
    )
    assert len(numbers) == 5 and all(number in TEXT for number in numbers)

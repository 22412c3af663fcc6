"""What is shipped is whole: versions agree, data have licences, the command starts without the heavy imports."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import concordant

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "src" / "concordant" / "data"


def test_one_version_everywhere() -> None:
    changelog = re.findall(r"^## \[(\d[^\]]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert citation is not None
    assert (changelog[0], citation.group(1)) == (concordant.__version__, concordant.__version__)


def test_every_pinned_dependency_fits_what_the_package_asks_for() -> None:
    from packaging.requirements import Requirement

    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for text in project["dependencies"] + project["optional-dependencies"]["test"]:
        wanted = Requirement(text)
        assert wanted.specifier.contains(pinned[wanted.name]), text


@pytest.mark.parametrize(
    "folder", [*DATA.glob("*/"), *(ROOT / "tests" / "data").glob("*/")], ids=lambda path: path.name
)
def test_data_have_a_licence_and_a_source(folder: Path) -> None:
    assert list(folder.glob("LICENSE*")), "no licence"
    source = [*folder.glob("SOURCE.md"), *folder.glob("ATTRIBUTION.md")]
    assert source, "nothing says where it comes from"
    text = source[0].read_text()
    assert "Source:" in text
    assert "Licence:" in text
    assert "Changes:" in text
    for name in (
        path.name for path in folder.iterdir() if not path.name.isupper() and path.suffix in (".csv", ".gz", ".jsonl")
    ):
        assert name in text, f"{name} is not described"


def test_shipped_votes_are_the_source_s_bytes() -> None:
    said = re.findall(r"^([0-9a-f]{64})  (\S+)$", (DATA / "llmfao" / "ATTRIBUTION.md").read_text(), re.MULTILINE)
    assert len(said) == 4
    for digest, name in said:
        assert hashlib.sha256((DATA / "llmfao" / name).read_bytes()).hexdigest() == digest, name


def test_shipped_data_stay_small() -> None:
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) < 1_500_000


def test_the_module_runs_as_a_command() -> None:
    done = subprocess.run([sys.executable, "-m", "concordant", "--help"], capture_output=True, text=True, check=True)
    assert "rank" in done.stdout
    assert "demo" in done.stdout


def test_help_does_not_pay_for_numpy() -> None:
    code = (
        "import sys\nfrom concordant.commands import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'numpy', 'scipy', 'pyarrow', 'duckdb', 'rich'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"

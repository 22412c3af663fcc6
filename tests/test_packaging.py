"""What is shipped is whole: versions agree, data have licences, the command starts without the heavy imports."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import concordant
from concordant.apps.commands import cli

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "src" / "concordant" / "apps" / "data"


def test_one_version_everywhere() -> None:
    changelog = re.findall(r"^## \[(\d[^\]]*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert citation is not None
    assert (changelog[0], citation.group(1)) == (concordant.__version__, concordant.__version__)


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pinned(name: str) -> dict[str, str]:
    """The versions in a file of constraints, by the names as packaging writes them."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {canonicalize_name(package): version for package, version in pairs}


def required(*extras: str) -> list[Requirement]:
    """What the package and some of its extras require, those that an extra takes in included."""
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in PROJECT["optional-dependencies"][extra])]
    found = [Requirement(text) for text in texts]
    inner = [name for one in found if one.name == "concordant" for name in one.extras]
    return [one for one in found if one.name != "concordant"] + (required(*inner) if inner else [])


@pytest.mark.parametrize("extra", PROJECT["optional-dependencies"])
def test_every_pinned_dependency_fits_what_the_package_asks_for(extra: str) -> None:
    versions = pinned("constraints.txt")
    for wanted in required(extra):
        if canonicalize_name(wanted.name) not in versions and extra == "bench":
            continue  # benchmarks say the versions that they ran with
        assert wanted.specifier.contains(versions[canonicalize_name(wanted.name)]), str(wanted)


@pytest.mark.parametrize("extra", ["fast", "sklearn", "boosted", "spark", "figures", "onnx", "mlflow", "serve", "docs"])
def test_the_lowest_versions_are_the_ones_tested(extra: str) -> None:
    """Each lower bound is the version in constraints-lowest.txt, which ``make test-lowest`` runs with."""
    versions = pinned("constraints-lowest.txt")
    for wanted in required(extra):
        (bound,) = [Version(one.version) for one in wanted.specifier if one.operator == ">="]
        assert Version(versions[canonicalize_name(wanted.name)]) == bound, str(wanted)


def test_the_citation_can_be_read() -> None:
    """The fields that the Citation File Format 1.2.0 asks for, by its rules for those used here."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    said = yaml.safe_load(text)
    assert said["cff-version"] == "1.2.0"
    assert said["type"] == "software"
    assert {"message", "title", "authors", "version", "license"} <= said.keys()
    assert said["license"] in PROJECT["license"].split(" AND ")
    kinds = {"article", "conference-paper", "generic"}
    for one in said["references"]:
        assert {"type", "title", "authors", "year"} <= one.keys()
        assert one["type"] in kinds
        assert all("name" in author or {"family-names", "given-names"} <= author.keys() for author in one["authors"])


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
        "import sys\nfrom concordant.apps.commands import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'numpy', 'scipy', 'pyarrow', 'duckdb', 'rich'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


# -- what others build it with -----------------------------------------------------------------------------------------
def test_workflows_run_each_python_that_the_package_names() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))["jobs"]
    named = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if ":: Python :: 3." in one]
    assert jobs["suite"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"].removeprefix(">=") == named[0]
    assert {named[0], named[-1]} == {*jobs["wheel"]["strategy"]["matrix"]["python"]}


RELEASE = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))["jobs"]


def test_nothing_is_published_before_it_is_tested() -> None:
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    assert RELEASE["publish"]["permissions"] == {"id-token": "write"}  # no password is kept anywhere
    assert "vars.PUBLISH" in RELEASE["publish"]["if"]
    assert set(RELEASE["publish"]["needs"]) == {"tests", "build"}
    assert RELEASE["tests"]["uses"] == "./.github/workflows/tests.yml"
    assert "workflow_call" in tests[True]  # YAML 1.1 reads the key `on` so


@pytest.mark.parametrize(
    ("changelog", "status"),
    [
        ("## [Unreleased]\n\n## [0.2.0]\n\n### Added\n\n- One thing.\n", 0),
        ("## [Unreleased]\n\n### Added\n\n- One thing.\n\n## [0.1.0]\n\n- Another.\n", 1),
        ("## [Unreleased]\n\n- One thing.\n", 1),
        ("## [0.2.0]\n\n- One thing.\n", 0),
    ],
)
def test_no_release_leaves_a_change_without_a_version(tmp_path: Path, changelog: str, status: int) -> None:
    (step,) = [one for one in RELEASE["build"]["steps"] if "CHANGELOG.md" in one.get("run", "")]
    (tmp_path / "CHANGELOG.md").write_text(changelog)
    done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert ("1 entries" in done.stderr) == bool(status)


def test_the_image_copies_what_is_there_and_is_not_run_as_root() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    taken = [name for line in lines if line.startswith("COPY ") and "--from" not in line for name in line.split()[1:-1]]
    let_in = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert taken
    assert all((ROOT / name).exists() and f"!{name}" in let_in for name in taken)
    after = lines[max(place for place, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert [line for line in after if line.startswith("USER ")] == ["USER 10001"]


@pytest.mark.parametrize("place", ["Dockerfile", "docs/install.md"])
def test_the_commands_shown_for_the_image_can_be_given(place: str) -> None:
    shown = re.findall(r" concordant ([a-z]+)((?: [^`|;&\n]+)?)", (ROOT / place).read_text(encoding="utf-8"))
    known = click.Context(cli)
    given = [(name, words.split()) for name, words in shown if name in cli.list_commands(known)]
    assert given
    for name, words in given:
        command = cli.get_command(known, name)
        assert command is not None
        command.make_context(name, words)  # says so where an option is missing or unknown


def test_the_recipe_asks_for_what_the_package_asks_for() -> None:
    said = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    assert said["context"]["version"] == concordant.__version__
    assert ">=" + said["context"]["python_min"] == PROJECT["requires-python"]
    assert said["tests"][0]["python"]["python_version"] == "${{ python_min }}.*"
    assert said["about"]["summary"] == PROJECT["description"]
    named = [one.replace("python-duckdb", "duckdb").replace(" ", "") for one in said["requirements"]["run"]]
    assert sorted(named) == sorted([*PROJECT["dependencies"], "python>=${{python_min}}"])
    assert all((ROOT / name).exists() for name in said["about"]["license_file"])


def test_the_page_for_language_models_names_every_page() -> None:
    links = re.findall(r"^- \[[^]]+\]\(([^)]+)\)", (ROOT / "llms.txt").read_text(encoding="utf-8"), re.MULTILINE)
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = re.findall(r"^- \[[^]]+\]\(([^)#:]+)\)", index, re.MULTILINE)
    assert all((ROOT / name).exists() for name in links)
    assert {name.removeprefix("docs/") for name in links if name.startswith("docs/")} == {
        name for name in pages if not name.startswith("project/")
    }

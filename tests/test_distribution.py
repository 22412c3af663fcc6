"""What is shipped installs where nothing else is, and works there: wheel and sdist, without any extra."""

from __future__ import annotations

import email
import email.message
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
VOTES = "winner,loser\na,b\nb,a\na,c\nb,c\nc,b\na,b\n"
FEATURES = "item,x,y\na,1,0.5\nb,2,-1\nc,0,3\n"
PIP = [sys.executable, "-m", "pip", "install", "-q", "--no-compile"]


def run(*command: object, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, without what the environment of the tests says about Python."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run([str(one) for one in command], cwd=cwd, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, (command, done.returncode, done.stdout[-2000:], done.stderr[-4000:])
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """The sdist, the wheel made from the sdist, and the wheel made from the working tree."""
    folder = tmp_path_factory.mktemp("dist")
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    backend = folder / "backend"  # one for both: a new environment for each of the three takes longer than they do
    done = subprocess.run([*PIP, "--target", backend, *asked], capture_output=True, text=True)
    if done.returncode and "No matching" in done.stdout + done.stderr:
        pytest.skip(f"{asked} cannot be installed here: no package index")
    assert done.returncode == 0, done.stderr[-2000:]
    env = os.environ | {"PYTHONPATH": str(backend)}
    published = {"PROJECT_URL": "https://example.org/us/concordant/", "PROJECT_REF": "v1.2.3"}
    parts: tuple[tuple[Path, list[str], dict[str, str]], ...] = (
        (folder, [], {}), (folder / "tree", ["--wheel"], {}), (folder / "published", [], published),
    )  # fmt: skip
    for place, options, beside in parts:
        build = [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", place, ROOT]
        done = subprocess.run(build, env=env | beside, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return next(folder.glob("*.tar.gz")), next(folder.glob("*.whl")), next((folder / "tree").glob("*.whl"))


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_the_sdist_makes_the_wheel_of_the_tree(built: tuple[Path, Path, Path]) -> None:
    again, wheel = _contents(built[1]), _contents(built[2])
    assert again.keys() == wheel.keys()
    assert [name for name in wheel if wheel[name] != again[name]] == []
    assert built[1].read_bytes() == built[2].read_bytes()  # the same bits, whoever builds it


def _description(metadata: email.message.Message) -> str:
    text = metadata.get_payload(decode=True)
    assert isinstance(text, bytes)
    return text.decode()


def test_what_is_published_says_where_it_lies(built: tuple[Path, Path, Path]) -> None:
    """On the page of a package index no link is relative to a file that is not there."""
    wheel = next((built[0].parent / "published").glob("*.whl"))
    said, plain = (
        email.message_from_bytes(next(text for name, text in _contents(one).items() if name.endswith("/METADATA")))
        for one in (wheel, built[1])
    )
    home = "https://example.org/us/concordant"
    assert dict(url.split(", ") for url in said.get_all("Project-URL")) == {
        "Repository": home,
        "Issues": f"{home}/issues",
        "Documentation": f"{home}/blob/v1.2.3/docs/index.md",
        "Changelog": f"{home}/blob/v1.2.3/CHANGELOG.md",
    }
    assert plain.get_all("Project-URL") is None
    readme = (ROOT / "README.md").read_text()
    assert _description(plain).strip() == readme.strip()
    ours, theirs = (re.findall(r"\]\(([^)\s]+)\)", text) for text in (readme, _description(said)))
    assert len(ours) == len(theirs) > 20
    for here, there in zip(ours, theirs, strict=True):
        path = there.removeprefix(home).removesuffix("?sanitize=true")
        assert path in (f"/blob/v1.2.3/{here}", f"/raw/v1.2.3/{here}")
        assert (ROOT / here).is_file()


def test_the_wheel_holds_the_package_and_nothing_else(built: tuple[Path, Path, Path]) -> None:
    names = set(_contents(built[1]))
    package = ROOT / "src" / "concordant"
    here = {
        f"concordant/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = {name for name in names if ".dist-info/" in name}
    assert names - about == here
    assert {name for name in here if not name.endswith((".py", ".pyi"))} >= {
        "concordant/py.typed",
        "concordant/apps/data/llmfao/LICENSE.CC-BY",
        "concordant/apps/data/llmfao/ATTRIBUTION.md",
    }
    assert {name.rpartition("licenses/")[2] for name in about if "licenses/" in name} >= {
        "LICENSE",
        "src/concordant/apps/data/llmfao/LICENSE.CC-BY",
    }


def test_the_sdist_holds_what_tests_and_documents_need(built: tuple[Path, Path, Path]) -> None:
    with tarfile.open(built[0]) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    wanted = ["CITATION.cff", "CHANGELOG.md", "LICENSE", "Makefile", "constraints.txt", "constraints-lowest.txt"]
    wanted += ["tests/conftest.py", "tests/data/clueweb09/LICENSE", "docs/design.md", "tools/make-venv.sh"]
    assert [name for name in wanted if name not in names] == []
    stray = [
        name
        for name in names
        if any(part in ("__pycache__", "_build", "dist", "shared", ".venv", ".hypothesis") for part in name.split("/"))
        or name.endswith((".pyc", ".log", ".tmp"))
    ]
    assert stray == []
    assert {name.partition("/")[0] for name in names if "/" in name} == {
        *(".devcontainer", ".github", "benchmarks", "docs", "recipe", "src", "tests", "tools")
    }


def test_the_metadata_say_what_the_package_is(built: tuple[Path, Path, Path]) -> None:
    contents = _contents(built[1])
    name = next(name for name in contents if name.endswith(".dist-info/METADATA"))
    about = email.message_from_bytes(contents[name])
    assert about["Name"] == "concordant"
    assert about["License-Expression"] == "BSD-3-Clause AND CC-BY-4.0 AND Apache-2.0 AND 0BSD"
    assert about["Requires-Python"] == ">=3.11"
    assert about["Description-Content-Type"] == "text/markdown"
    assert "Typing :: Typed" in about.get_all("Classifier", [])
    assert not [kind for kind in about.get_all("Classifier", []) if kind.startswith("License ::")]  # SPDX says it


# -- an environment with nothing but the base dependencies ------------------------------------------------------------
@pytest.fixture(scope="module")
def alone(built: tuple[Path, Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the wheel and the packages that it requires, and no others.

    They are linked from the environment of the tests, which has the versions of constraints.txt: an install from the
    index takes minutes. ``CONCORDANT_FROM_INDEX=1`` installs them all the same.
    """
    place = tmp_path_factory.mktemp("alone")
    make = [sys.executable, "-m", "venv", "--without-pip", str(place)]
    subprocess.run(make, check=True, capture_output=True)
    python = next(path for path in (place / "bin" / "python", place / "Scripts" / "python.exe") if path.exists())
    pip = [*PIP[:3], "--python", str(python), *PIP[3:]]
    if os.environ.get("CONCORDANT_FROM_INDEX"):
        run(*pip, "-c", ROOT / "constraints.txt", built[1], cwd=place)
        return python
    run(*pip, "--no-deps", "--no-index", built[1], cwd=place)
    site = Path(run(python, "-c", "import site; print(site.getsitepackages()[0])", cwd=place).stdout.strip())
    for name in _required(built[1]):
        found = importlib.metadata.distribution(name)
        tops = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            (site / top).symlink_to(Path(str(found.locate_file(top))))
    return python


def _required(wheel: Path) -> set[str]:
    """Names of the packages that a wheel requires without extras, and of those that these require."""
    contents = _contents(wheel)
    about = email.message_from_bytes(contents[next(name for name in contents if name.endswith("/METADATA"))])
    asked, known = about.get_all("Requires-Dist", []), set[str]()
    while asked:
        wanted = Requirement(asked.pop())
        if wanted.name in known or (wanted.marker is not None and not wanted.marker.evaluate({"extra": ""})):
            continue
        known.add(wanted.name)
        asked += importlib.metadata.requires(wanted.name) or []
    return known


@pytest.fixture(scope="module")
def folder(alone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("smoke")
    (place / "votes.csv").write_text(VOTES)
    (place / "features.csv").write_text(FEATURES)
    (place / "labels.csv").write_text("item,label\na,2\nb,1\nc,0\n")
    fit = ["fit", "votes.csv", "-f", "features.csv", "-m", "model", "--loss", "ranknet", "-q"]
    run(alone, "-m", "concordant", *fit, cwd=place)
    return place


def test_every_command_works_without_extras(alone: Path, folder: Path) -> None:
    concordant = alone.with_name("concordant")
    assert "reproduce" in run(concordant, "--help", cwd=folder).stdout
    assert run(concordant, "--version", cwd=folder).stdout.startswith("concordant, version ")
    for line in (
        "rank votes.csv -o ranking.csv",
        "score -m model -f features.csv -o scores.csv",
        "evaluate scores.csv labels.csv",
        "ingest votes.csv --store votes.store",
        "store verify votes.store",
        "audit votes.csv --replicates 0 -o audit.json",
        "counterexample theorem-3 -o wrong",
        "report votes.csv -o report.html",
        "export --model model --to json -o model.json",
    ):
        run(concordant, *line.split(), cwd=folder)
    assert (folder / "ranking.csv").read_text().startswith("query,component,item,rank")
    assert "<html" in (folder / "report.html").read_text(encoding="utf-8")
    assert json.loads((folder / "model.json").read_text(encoding="utf-8"))


def test_the_demonstration_needs_nothing_else(alone: Path, folder: Path) -> None:
    run(alone.with_name("concordant"), "demo", "-o", "demo", cwd=folder)
    assert {"ranking.csv", "report.html"} <= {path.name for path in (folder / "demo").iterdir()}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("fit votes.csv -f features.csv -m trees -r random-forest", "concordant[sklearn]"),
        ("fit votes.csv -f features.csv -m trees -r boosted", "concordant[boosted]"),
        ("reproduce abstention --quick", "concordant[sklearn]"),
        ("serve --model model", "concordant[serve]"),
        ("export --model model --to onnx -o model.onnx", "concordant[onnx]"),
        ("rank votes.csv --engine spark", "concordant[spark]"),
        ("fit votes.csv -f features.csv -m trees -r lightgbm", "pip install lightgbm"),
    ],
)
def test_what_an_extra_is_needed_for_says_so(alone: Path, folder: Path, line: str, says: str) -> None:
    done = run(alone.with_name("concordant"), *line.split(), cwd=folder, status=2)
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr


def test_in_python(alone: Path, folder: Path) -> None:
    """Every public name is there without extras; what needs one says which."""
    code = (
        "import sys\nimport concordant as cc\n"
        "board = cc.rank(cc.read('votes.csv'), interval='none')\n"
        "assert [board.items[i] for i in board.item] == ['a', 'b', 'c']\n"
        "for name in set(cc.__all__) - {'spark', 'torch'}:\n    getattr(cc, name)\n"
        "for extra in ('spark', 'torch'):\n"
        "    try:\n        __import__(f'concordant.{extra}')\n"
        "    except ImportError as error:\n        assert f'concordant[{extra}]' in str(error), error\n"
        "    else:\n        raise AssertionError(extra)\n"
        "for package in ('pandas', 'polars'):\n"
        "    try:\n        getattr(board, f'to_{package}')()\n"
        "    except ImportError as error:\n        assert f'needs {package}: pip install {package}' in str(error)\n"
        "    else:\n        raise AssertionError(package)\n"
        "names = ('numba', 'sklearn', 'pandas', 'polars', 'torch', 'pyspark', 'matplotlib', 'lightgbm', 'onnx')\n"
        "print([name for name in names if name in sys.modules])\n"
    )
    assert run(alone, "-c", code, cwd=folder).stdout.strip() == "[]"

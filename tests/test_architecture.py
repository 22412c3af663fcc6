"""The house keeps its shape: arrows go down, a file is one room, the base install stays light.

``docs/design.md`` draws what this test holds.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "concordant"

LAYERS = (
    ("errors",),
    ("disk",),
    ("labels", "tally", "listing", "gains", "threads", "progress", "frames", "json_values"),
    # compiled loops on plain arrays
    ("kernels",),
    ("sampling",),
    ("counted",),
    # from columns to clean judgments
    ("log",),
    ("judgments",),
    ("preferences",),
    # the method: from preferences to a ranking
    ("graphs",),
    ("connectivity", "agreement", "differences"),
    ("structures", "surrogates", "best_order"),
    ("uncertainty",),
    ("ranking",),
    # what a ranking is judged by
    ("metrics",),
    # pairs of points too near to be ordered
    ("abstention",),
    # whether preferences and a loss can lead to the right order
    ("populations",),
    ("noise", "asking", "counterexamples"),
    ("auditing",),
    # the log: from a file to preferences
    ("engines",),
    ("store",),
    ("reading",),
    ("ingesting",),
    # learning: features of items, solvers, targets for them
    ("features", "solvers"),
    ("targets",),
    # the same surrogates on tensors (extra)
    ("torch",),
    # estimators of them all
    ("rankers",),
    # around any of them: when not to order two items
    ("abstaining",),
    # fitted rankers on disk
    ("models",),
    # models that leave the house: to other formats, over HTTP
    ("exporting", "serving"),
    # one page that shows all of it
    ("reporting",),
    # the same work on a cluster (extra)
    ("spark",),
    # the experiments of the papers
    ("reproduction",),
    # both meet here
    ("commands",),
    ("__main__",),
)
"""Rooms from the ground up; a room imports only what is below it."""
METHOD = {
    *("graphs", "agreement", "connectivity", "differences", "structures", "surrogates", "best_order"),
    *("uncertainty", "ranking", "populations", "noise", "asking", "counterexamples", "auditing"),
}
LOG = {"engines", "store", "reading", "ingesting"}

INSIDE_FUNCTIONS = {
    # (file, what is imported): why it is not at the top
    ("sampling.py", "concordant.kernels.draws"): "start-up time: Numba, for many draws only",
    ("solvers/centred_blocks.py", "concordant.kernels.centred_rows"): "start-up time: Numba, for large matrices only",
    ("targets/log_odds.py", "concordant.kernels.subset_gains"): "start-up time: Numba, where targets are computed",
    ("populations/triples.py", "concordant.kernels.triples"): "start-up time: Numba, for many paths only",
    ("populations/completions.py", "concordant.kernels.heavier_paths"): "start-up time: Numba, where a verdict is open",
    ("populations/cycles.py", "concordant.kernels.shortest_cycles"): "start-up time: Numba, for large components only",
    ("best_order/components.py", "concordant.kernels.orders"): "start-up time: Numba, where orders are computed",
    ("best_order/orders.py", "concordant.kernels.orders"): "start-up time: Numba, where orders are computed",
    ("best_order/orders.py", "concordant.kernels.orders_search"): "start-up time: Numba, for large components only",
    (
        "structures/elimination.py",
        "concordant.kernels.elimination",
    ): "start-up time: Numba, for chains and the like only",
    ("structures/elimination.py", "concordant.kernels.elimination_order"): "start-up time: Numba, as above",
    ("abstention/cells.py", "concordant.kernels.near_columns"): "start-up time: Numba, for many points only",
    ("abstention/tiles.py", "concordant.kernels.near_blocks"): "start-up time: Numba, for many points only",
    ("abstention/near_pairs.py", "concordant.kernels.near_columns"): "start-up time: Numba, for many points only",
    ("models/trees.py", "concordant.kernels.tree_walks"): "start-up time: Numba, for many rows only",
    ("engines/counting.py", "concordant.engines.spark"): "optional: the extra spark",
    ("frames.py", "polars"): "optional: only whoever asks for a polars frame needs it",
    ("exporting/export.py", "concordant.exporting.onnx"): "optional: the extra onnx",
    ("commands/__init__.py", "concordant.errors"): "start-up time of --help",
    ("commands/rank.py", "concordant.commands.session"): "start-up time of rank --help",
    ("commands/fit.py", "concordant.commands.fitting"): "start-up time of fit --help",
    ("commands/score.py", "concordant.commands.scoring"): "start-up time of score --help",
    ("commands/evaluate.py", "concordant.commands.evaluating"): "start-up time of evaluate --help",
    ("commands/audit.py", "concordant.commands.auditing"): "start-up time of audit --help",
    ("commands/counterexample.py", "concordant.commands.counterexampling"): "start-up time of --help",
    ("commands/report.py", "concordant.commands.reporting"): "start-up time of report --help",
    ("commands/export.py", "concordant.commands.exporting"): "start-up time of export --help",
    ("commands/serve.py", "concordant.commands.serving"): "optional: the extra serve",
    ("commands/ingest.py", "concordant.commands.ingesting_logs"): "start-up time of ingest --help",
    ("commands/store.py", "concordant.commands.storing"): "start-up time of store --help",
    ("commands/reproduce.py", "concordant.commands.reproducing"): "start-up time of reproduce --help",
    ("abstaining/risk_coverage.py", "matplotlib"): "optional: the extra figures",
    ("reproduction/abstention.py", "concordant.reproduction.cifar_runs"): "optional: the extra torch",
    ("reproduction/outcome.py", "matplotlib"): "optional: the extra figures",
    ("commands/session.py", "concordant.commands.ranking_spark"): "optional: the extra spark",
    ("commands/fitting.py", "concordant.commands.fitting_spark"): "optional: the extra spark",
    ("commands/scoring.py", "concordant.commands.scoring_spark"): "optional: the extra spark",
    ("commands/evaluating.py", "concordant.commands.evaluating_spark"): "optional: the extra spark",
    ("commands/evaluating.py", "rich"): "start-up time when piped: nothing is drawn",
    ("commands/output.py", "rich"): "start-up time when piped: nothing is drawn",
    ("commands/progress.py", "concordant.commands.bars"): "start-up time when piped: Rich, where progress is drawn",
}
MODULES = {"scikit-learn": "sklearn"}
"""Dependencies whose module has another name."""
EXTRAS = {
    "torch": ("torch",),
    "spark": ("pyspark", "py4j"),
    "serving": ("fastapi", "starlette", "uvicorn", "pydantic", "pydantic_core"),
    "exporting/onnx.py": ("onnx", "skl2onnx"),
    **dict.fromkeys((f"engines/spark{name}.py" for name in ("", "_session", "_sources")), ("pyspark", "py4j")),
    **dict.fromkeys((f"reproduction/{name}.py" for name in ("cifar_runs", "cifar_training", "resnet")), ("torch",)),
}
"""Rooms and files that an extra is for, and what they may import: nothing else imports these rooms."""
VAGUE = {"utils", "util", "helpers", "helper", "common", "core", "base", "misc"}
LONGEST = 400


@dataclass(frozen=True)
class Import:
    """One imported module, where it stands and whether inside a function."""

    file: str
    line: int
    module: str
    inside: bool


def _walk(node: ast.AST, file: str, inside: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{file}:{child.lineno}: write imports in full"
            assert child.module is not None
            names = [f"{child.module}.{alias.name}" for alias in child.names]
            found = {name if _file_of(name) else child.module for name in names}
            yield from (Import(file, child.lineno, name, inside) for name in sorted(found))
        elif isinstance(child, ast.Import):
            yield from (Import(file, child.lineno, alias.name, inside) for alias in child.names)
        function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _walk(child, file, inside or function)


def _file_of(module: str) -> str | None:
    """The package's file that a module name stands for, relative to the package."""
    parts = module.split(".")
    if parts[0] != "concordant":
        return None
    path = PACKAGE.joinpath(*parts[1:])
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.exists() and candidate != PACKAGE / ".py":
            return candidate.relative_to(PACKAGE).as_posix()
    return None


def _room(file: str) -> str:
    return file.split("/")[0].removesuffix(".py")


FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
IMPORTS = [found for file in FILES for found in _walk(ast.parse((PACKAGE / file).read_text()), file, False)]
OURS = [found for found in IMPORTS if _file_of(found.module) not in (None, "__init__.py")]


def test_every_room_has_its_floor() -> None:
    floors = {room for layer in LAYERS for room in layer}
    rooms = {_room(file) for file in FILES} - {"__init__"}
    assert rooms == floors


def test_arrows_go_down() -> None:
    floor = {room: height for height, layer in enumerate(LAYERS) for room in layer}
    wrong = []
    for found in OURS:
        here, there = _room(found.file), _room(_file_of(found.module) or "")
        crosses = (here in METHOD and there in LOG) or (here in LOG and there in METHOD)
        if not found.inside and here not in ("__init__", there) and (floor[there] >= floor[here] or crosses):
            wrong.append(f"{found.file}:{found.line} imports {found.module}")
    assert not wrong, "\n".join(wrong)


def test_no_import_goes_round() -> None:
    below: dict[str, set[str]] = {file: set() for file in FILES}
    for found in OURS:
        target = _file_of(found.module)
        if not found.inside and target is not None and target != found.file:
            below[found.file].add(target)
    TopologicalSorter(below).prepare()  # raises CycleError, which names the circle


def test_imports_inside_functions_have_a_reason() -> None:
    allowed = dict.fromkeys(INSIDE_FUNCTIONS, False)
    wrong = []
    for found in IMPORTS:
        name = (found.file, found.module if found.module.startswith("concordant") else found.module.split(".")[0])
        if not found.inside:
            continue
        if name in allowed:
            allowed[name] = True
        else:
            wrong.append(f"{found.file}:{found.line} imports {found.module} inside a function")
    assert not wrong, "\n".join(wrong)
    assert all(allowed.values()), f"no longer needed: {[name for name, used in allowed.items() if not used]}"


def test_names_say_what_is_inside() -> None:
    assert not [file for file in FILES if VAGUE & set(re.split(r"[/_.]", file))]


@pytest.mark.parametrize("file", FILES)
def test_a_file_is_one_room(file: str) -> None:
    lines = len((PACKAGE / file).read_text().splitlines())
    assert lines <= LONGEST, f"{file} has {lines} lines"


def test_only_base_dependencies_are_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    base = {re.split(r"[^\w-]", requirement)[0] for requirement in project["dependencies"]}
    known = {MODULES.get(name, name) for name in base} | set(sys.stdlib_module_names) | {"concordant"}
    optional = {module for _, module in INSIDE_FUNCTIONS}
    wrong = [
        f"{found.file}:{found.line} imports {found.module}"
        for found in IMPORTS
        if (top := found.module.split(".")[0]) not in known
        and not (found.inside and top in optional)
        and top not in (*EXTRAS.get(_room(found.file), ()), *EXTRAS.get(found.file, ()))
    ]
    assert not wrong, "\n".join(wrong)


def test_texts_name_no_machine() -> None:
    forbidden = re.compile(r"(?<![\w.])/(work|root|home|Users)/|\.librar[y]\b|https?://(localhost|127\.)")
    texts = [path for path in ROOT.glob("*") if path.is_file() and path.suffix in ("", ".md", ".txt", ".toml", ".cff")]
    for folder in ("src", "tests", "docs", "benchmarks", "tools", ".ci"):
        texts += [
            path for path in (ROOT / folder).rglob("*") if path.suffix in ("", ".py", ".md", ".txt", ".sh", ".json")
        ]
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in texts
        if path.is_file() and path.name != ".git" and path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if forbidden.search(line)
    ]
    assert not wrong, "\n".join(wrong)

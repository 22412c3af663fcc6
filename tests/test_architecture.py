"""The house keeps its shape: ten wings, arrows go down, no circle, no file too long, a light base install.

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

WINGS = (
    # compiled loops on plain arrays
    "kernels",
    # from columns to counted judgments, and batches of them as graphs
    "preferences",
    # what is minimised, and what a ranking is judged by
    "losses",
    # from files, tables and stores to preferences
    "io",
    # from preferences to a ranking and how sure it is
    "ranking",
    # systems on tasks, judges, two boards beside each other
    "boards",
    # features, targets, solvers, estimators
    "learning",
    # whether preferences and a loss can lead to the right order
    "auditing",
    # when not to order two items
    "abstention",
    # what people run
    "apps",
)
"""Wings from the ground up: a wing imports only wings below it."""
APART = {("ranking", "io"), ("losses", "io"), ("boards", "io"), ("auditing", "io"), ("io", "losses")}
"""The method does not know where a log lies."""
BESIDE = (
    "errors",
    "memory",
    "mlflow",
    "progress",
    "record",
    "spark",
    "stages",
    "time_left",
    "torch",
    "__init__",
    "__main__",
)
"""What else lies at the top of the package: the ground, the public modules, the entry."""
GROUND = ("errors", "memory", "progress", "record", "stages", "time_left")
ABOVE = {"mlflow": ("apps",), "spark": ("apps",), "torch": ("abstention", "learning"), "__main__": ("apps",)}
"""Public modules beside the wings, and the highest wings they may import."""

INSIDE_FUNCTIONS = {
    # (file, what is imported): why it is not at the top
    ("kernels/compiled.py", "numba"): "optional: the extra fast; start-up time, too",
    ("kernels/compiled.py", "numpy"): "start-up time of --help",
    ("kernels/compiled.py", "hashlib"): "start-up time of --help",
    ("preferences/sampling.py", "concordant.kernels.draws"): "start-up time: Numba, for many draws only",
    ("preferences/frames.py", "polars"): "optional: only whoever asks for a polars frame needs it",
    ("ranking/best_orders.py", "concordant.kernels.orders"): "start-up time: Numba, where orders are computed",
    ("ranking/largest.py", "concordant.kernels.pair_maxima"): "start-up time: Numba, for many items only",
    ("ranking/luce_terms.py", "concordant.kernels.tier_events"): "start-up time: Numba, for lists with tiers only",
    ("ranking/chords.py", "concordant.kernels.tier_events"): "start-up time: Numba, for replicates of lists only",
    ("ranking/tied_terms.py", "concordant.kernels.tied_choices"): "start-up time: Numba, for ties as outcomes only",
    ("ranking/lack_of_fit.py", "concordant.kernels.tournaments"): "start-up time: Numba, for sparse tables only",
    ("ranking/moving.py", "concordant.kernels.walks"): "start-up time: Numba, for abilities that move only",
    ("ranking/kemeny.py", "concordant.kernels.orders"): "start-up time: Numba, where orders are computed",
    (
        "learning/solvers/least_squares.py",
        "concordant.kernels.subset_gains",
    ): "start-up time: Numba, for large matrices",
    (
        "learning/targets/log_odds.py",
        "concordant.kernels.subset_gains",
    ): "start-up time: Numba, where targets are computed",
    ("learning/rankers/slopes.py", "concordant.kernels.pair_slopes"): "start-up time: Numba, for boosted trees only",
    ("ranking/elimination.py", "concordant.kernels.elimination"): "start-up time: Numba, for chains and the like only",
    **{
        (f"ranking/{name}.py", "scipy"): "start-up time: SciPy's optimisers, a fifth of that of rank"
        for name in ("best_orders", "cumulative", "empirical_bayes", "moving")
    },
    **{
        ("learning/rankers/choosing.py", f"concordant.learning.rankers.{name}"): "start-up time of audit: scikit-learn"
        for name in ("regressors", "stopping")
    },
    ("apps/doctor/examine.py", "concordant.boards.ranked_scores"): "start-up time: SciPy's statistics, for scores only",
    ("mlflow.py", "mlflow"): "optional: the extra mlflow",
    ("apps/commands/given.py", "concordant.apps.commands"): "the names of the commands stand above",
    ("record.py", "resource"): "not on every system",
    ("apps/commands/__init__.py", "pyarrow"): "start-up time: help needs none",
    ("apps/models/regressors.py", "concordant.kernels.tree_walks"): "start-up time: Numba, for many rows only",
    ("auditing/transitivity.py", "concordant.kernels.paths"): "start-up time: Numba, for many paths only",
    ("auditing/shapes.py", "concordant.kernels.paths"): "start-up time: Numba, for large components only",
    ("abstention/near_pairs.py", "concordant.kernels.near_pairs"): "start-up time: Numba, for many points only",
    ("ranking/shown.py", "matplotlib"): "optional: the extra figures",
    ("io/engines/counting.py", "concordant.io.engines.spark"): "optional: the extra spark",
    ("apps/export/export.py", "concordant.apps.export.onnx"): "optional: the extra onnx",
    ("apps/reproduction/abstention.py", "concordant.apps.reproduction.cifar"): "optional: the extra torch",
    ("apps/reproduction/outcome.py", "matplotlib"): "optional: the extra figures",
    ("apps/commands/__init__.py", "concordant.apps.commands.options"): "start-up time of --help",
    **{
        (f"apps/commands/{name}.py", "concordant.apps.commands.on_spark"): "optional: the extra spark"
        for name in ("audit", "rank", "report", "fit", "score", "evaluate")
    },
    (
        "apps/commands/evaluate.py",
        "concordant.apps.commands.fitted_scorer",
    ): "start-up time: scikit-learn, where a model or a target is named",
    ("apps/commands/evaluate.py", "rich"): "start-up time when piped: nothing is drawn",
    ("apps/commands/output.py", "rich"): "start-up time when piped: nothing is drawn",
    (
        "apps/commands/progress.py",
        "concordant.apps.commands.bars",
    ): "start-up time when piped: Rich, where progress is drawn",
}
EXTRAS = {
    "learning/scikit.py": ("sklearn",),
    "torch": ("torch", "sklearn"),
    "torch/trl.py": ("torch", "trl", "datasets"),
    "spark.py": ("pyspark",),
    "apps/spark": ("pyspark", "py4j"),
    "apps/serve": ("fastapi", "starlette", "uvicorn", "pydantic", "pydantic_core"),
    "apps/export/onnx.py": ("onnx", "skl2onnx", "sklearn"),
    **dict.fromkeys(
        (f"io/engines/spark{name}.py" for name in ("", "_session", "_sources", "_workers")), ("pyspark", "py4j")
    ),
    "apps/reproduction/cifar.py": ("torch",),
}
"""Rooms and files that an extra is for, and what they may import: nothing else imports these rooms."""
VAGUE = {"utils", "util", "helpers", "helper", "common", "core", "base", "misc"}
LONGEST = 600


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


def _wing(file: str) -> str:
    return file.split("/")[0].removesuffix(".py")


def _may_import(here: str, there: str) -> bool:
    if there in GROUND or here == "__init__":
        return True
    if here in ABOVE:
        return there in WINGS and WINGS.index(there) <= max(WINGS.index(wing) for wing in ABOVE[here])
    if there in ABOVE:
        return (here, there) == ("apps", "torch")
    return WINGS.index(there) < WINGS.index(here) and (here, there) not in APART


FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
IMPORTS = [found for file in FILES for found in _walk(ast.parse((PACKAGE / file).read_text()), file, False)]
OURS = [found for found in IMPORTS if _file_of(found.module) not in (None, "__init__.py")]


def test_the_listing_is_the_diagram() -> None:
    entries = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert entries == {*WINGS, *BESIDE, "py.typed"}


def test_arrows_go_down() -> None:
    wrong = []
    for found in OURS:
        here, there = _wing(found.file), _wing(_file_of(found.module) or "")
        if here != there and not _may_import(here, there):
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
    known = base | set(sys.stdlib_module_names) | {"concordant"}
    optional = {module for _, module in INSIDE_FUNCTIONS}
    wrong = [
        f"{found.file}:{found.line} imports {found.module}"
        for found in IMPORTS
        if (top := found.module.split(".")[0]) not in known
        and not (found.inside and top in optional)
        and not any(top in modules for place, modules in EXTRAS.items() if found.file.startswith(place))
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


ASSERTED = 14
"""Lines of ``assert … is not None``: a better type says it. The cap may only become lower."""


def test_types_say_what_is_there() -> None:
    said = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.match(r"\s*assert\b.* is not None", line)
    ]
    assert len(said) <= ASSERTED, said
    assert not [line for line in said if re.search(r"\.(winner|loser|list_\w+)\b", line)]


def test_no_two_files_of_tests_have_one_name() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert not (twice := {name for name in names if names.count(name) > 1}), f"pytest would refuse one of each: {twice}"


def test_fits_factorise_by_numpy_alone() -> None:
    """SciPy's linear algebra has threads of its own: where both work by turns, either waits for the other's."""
    found = re.compile(r"scipy\.linalg\.(cholesky|cho_factor|eigh|eigvalsh|svd|qr|solve)\(")
    for path in sorted((ROOT / "src" / "concordant" / "learning" / "solvers").glob("*.py")):
        assert not found.search(path.read_text(encoding="utf-8")), path

"""``python -m benchmarks [all | CASE …] [--scale X] [--folder DIR]``: measure, print, write ``benchmarks/results``."""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import cases
from benchmarks.auc import areas
from benchmarks.audits import audits
from benchmarks.boosting import boosting
from benchmarks.cases import Case
from benchmarks.graded_lists import graded_lists
from benchmarks.learning import learning
from benchmarks.measure import load, machine
from benchmarks.near_pairs import near_pairs
from benchmarks.ranked_lists import ranked_lists
from benchmarks.scale import scale
from benchmarks.serve import served
from benchmarks.spark_scale import fit_on_spark, on_spark

CASES = cases.CASES | {
    "graded-lists": graded_lists,
    "ranked-lists": ranked_lists,
    "learning": learning,
    "boosting": boosting,
    "audit": audits,
    "auc": areas,
    "near-pairs": near_pairs,
    "scale": scale,
    "spark": on_spark,
    "spark-fit": fit_on_spark,
    "serve": served,
}
HERE = Path(__file__).resolve().parent
PEERS = (
    "concordant",
    "duckdb",
    "evalica",
    "choix",
    "lightgbm",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark",
    "pytrec-eval-terrier",
    "ranx",
    "scikit-learn",
    "scipy",
)


def main() -> None:
    """Run the chosen cases and write what came out."""
    options = _options()
    facts = machine() | {name: _version(name) for name in PEERS}
    print(", ".join(f"{name} {value}" for name, value in facts.items()), flush=True)
    chosen = list(CASES) if "all" in options.cases else options.cases
    with tempfile.TemporaryDirectory(prefix="concordant-bench-") as temporary:
        folder = Path(options.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        done: dict[str, Case] = {}
        loads: dict[str, float] = {}
        for name in chosen:
            print(f"\n({name}) {CASES[name].__doc__} Load before: {load():.1f}.", flush=True)
            loads[name] = load()
            done[name] = CASES[name](folder, options.scale)
    if options.scale == 1:
        print(f"\nwritten: {_write(facts, done, loads)}")
    else:
        print("\nnot written: only --scale 1 counts")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "cases",
        nargs="*",
        default="all",
        choices=[*CASES, "all"],
        metavar="CASE",
        help="1 … 7, rankings, graded-lists, ranked-lists, learning, boosting, audit, auc, near-pairs, scale, spark, "
        "spark-fit, serve",
    )
    parser.add_argument("--scale", type=float, default=1.0, help="smaller inputs, to see that it works")
    parser.add_argument("--folder", help="where the inputs are written and kept (default: a temporary folder)")
    return parser.parse_args()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _write(facts: dict[str, object], done: dict[str, Case], loads: dict[str, float]) -> Path:
    """Write results.json, the cases of earlier runs kept, and results.md made from it."""
    store = HERE / "results.json"
    results = json.loads(store.read_text()) if store.exists() else {}
    stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    for name, case in done.items():
        results[name] = {
            "title": case.title,
            "when": stamp,
            "machine": facts,
            "load": round(loads[name], 1),
            "rows": [
                {"name": row.name, "note": row.note}
                | {key: value for key, value in row.result.items() if key not in ("names", "scores")}
                for row in case.rows
            ],
            "bars": [{"bar": what, "figure": figure, "met": met} for what, figure, met in case.bars],
        }
    store.write_text(json.dumps(results, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    page = HERE / "results.md"
    page.write_text(_page(results))
    return page


def _page(results: dict[str, dict[str, Any]]) -> str:
    lines = [
        "# Side by side",
        "",
        "Made by `make bench`; what is measured and how is in `benchmarks/README.md`. Seconds are the best of several",
        "runs in one process (`processor`: processor time of that run on all cores; `first`: the first run), memory is",
        "the peak of the whole process while it worked. A load above 0.5 means that the machine had other work.",
    ]
    for name, case in sorted(results.items()):
        facts = case["machine"]
        lines += [
            "",
            f"## ({name}) {case['title']}",
            "",
            f"{case['when']}, load before {case['load']}; {', '.join(f'{k} {v}' for k, v in facts.items())}",
        ]
        lines += ["", "| contender | seconds | processor | first | peak MiB | |", "|---|---:|---:|---:|---:|---|"]
        lines += [_line(row) for row in case["rows"]]
        lines += ["", "| bar | figure | |", "|---|---:|---|"]
        lines += [f"| {b['bar']} | {b['figure']} | {'met' if b['met'] else '**missed**'} |" for b in case["bars"]]
    return "\n".join(lines) + "\n"


def _line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"| {row['name']} | failed | | | | {row['error']} |"

    def number(key: str, digits: int) -> str:
        value = row.get(key)
        return f"{value:,.{digits}f}" if isinstance(value, float) and not math.isnan(value) else ""

    figures = (number("best", 3), number("busy", 3), number("first", 3), number("peak", 0))
    return f"| {row['name']} | {' | '.join(figures)} | {row['note']} |"


if __name__ == "__main__":
    main()

"""Quality on held-out queries from comparisons drawn from real labels: ``python -m benchmarks.quality --splits 10``.

Two thirds of the queries train, on Bradley–Terry–Luce comparisons drawn from their labels (AoS (26)) at 20, 160 and 640
a query; the rest judge, NDCG@10 on the true labels. Every scorer of a family sees the same comparisons and has the same
hyper-parameters. Results are kept in a file as they come (``--keep``), so an interrupted run goes on where it was;
``--table`` only prints. The sets are not shipped: ``--data`` names the folder that holds them. About an hour on one
core; needs LightGBM.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.quality_arms import GROWN, LINEAR, LOGISTIC, RANKER, TREES, TRUTH, Arms
from benchmarks.quality_sets import SETS, Comparisons, Queries, Split

ROOT = Path(__file__).resolve().parent.parent
PER_QUERY = (20, 160, 640)
FAMILIES = {"linear": LINEAR, "trees": TREES}
DEFAULTS = {"linear": RANKER, "trees": GROWN}
BEFORE = " of 0.1"
"""What the default of version 0.1 is kept as: its pilot's ridge was the best one, and it had no gate."""
Key = tuple[str, int, int]


def main() -> None:
    """Measure what is not kept yet, then print the tables and the bars."""
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    wanted.add_argument("--splits", type=int, default=10)
    wanted.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    wanted.add_argument("--keep", type=Path, default=ROOT / "benchmarks" / "quality-results.jsonl")
    wanted.add_argument("--table", action="store_true", help="print what is kept and stop")
    options = wanted.parse_args()
    found = dict(_kept(options.keep))
    if not options.table:
        queries = {name: Queries.read(options.data, name) for name in options.sets}
        for seed, name, per_query in product(range(options.splits), options.sets, PER_QUERY):
            row = found.setdefault((name, per_query, seed), {"set": name, "per query": per_query, "split": seed})
            truth = [found.get((name, n, seed), {}).get("trees", {}).get(TRUTH) for n in PER_QUERY]
            if _measure(queries[name], row, next(filter(None, truth), None)):
                options.keep.write_text("".join(json.dumps(found[key]) + "\n" for key in sorted(found)))
                print(f"{name}, {per_query} a query, split {seed}: {row['seconds']:.1f} s in all", flush=True)
    for family in FAMILIES:
        print(_table(found, family))


def _kept(path: Path) -> Iterator[tuple[Key, dict[str, Any]]]:
    if path.exists():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            yield (row["set"], row["per query"], row["split"]), row


def _measure(queries: Queries, row: dict[str, Any], truth: float | None) -> bool:
    """Add NDCG@10 of every scorer that the row lacks; ``truth`` is that of the true labels if it is known."""
    begin = time.perf_counter()
    lacking = [(family, arm) for family, arms in FAMILIES.items() for arm in arms if arm not in row.get(family, {})]
    if not lacking:
        return False
    split = Split.of(queries, row["split"])
    arms = Arms(split, Comparisons.draw(split.train, row["per query"], row["split"]))
    for family, arm in lacking:
        scores = truth if truth is not None and arm == TRUTH else getattr(arms, family)(arm)
        row.setdefault(family, {})[arm] = truth if scores is truth else round(split.test.quality(scores), 6)
    if "tau2" not in row:
        row |= {"tau2": arms.prior.tau2, "ridge": arms.prior.ridge}
    row["seconds"] = round(row.get("seconds", 0.0) + time.perf_counter() - begin, 1)
    return True


def _table(found: dict[Key, dict[str, Any]], family: str) -> str:
    """Mean of the pairwise logistic and, for each arm, the mean paired difference to it with its 95% interval."""
    cells = [(name, n) for name in SETS for n in PER_QUERY if any(key[:2] == (name, n) for key in found)]
    lines = [
        f"| {family} | " + " | ".join(f"{name} {n}" for name, n in cells) + " | mean |",
        "|---" * (len(cells) + 2) + "|",
    ]
    base = {cell: _column(found, cell, family, LOGISTIC) for cell in cells}
    means = [f"{base[cell].mean():.4f}" for cell in cells]
    whole = np.mean([base[cell].mean() for cell in cells])
    lines.append(f"| {LOGISTIC} | " + " | ".join(means) + f" | {whole:.4f} |")
    for arm in FAMILIES[family][1:]:
        differences = [_column(found, cell, family, arm) - base[cell] for cell in cells]
        shown = [f"{d.mean():+.4f} ± {_half(d):.4f}" for d in differences]
        lines.append(f"| {arm} | " + " | ".join(shown) + f" | {np.mean([d.mean() for d in differences]):+.4f} |")
    return "\n".join([*lines, *_less_before(found, cells, family, DEFAULTS[family])]) + "\n"


def _less_before(found: dict[Key, dict[str, Any]], cells: list[tuple[str, int]], family: str, arm: str) -> list[str]:
    """The default less that of 0.1, where both are kept, and the mean over the cells with its interval over splits."""
    if not all(arm + BEFORE in found[key][family] and arm in found[key][family] for key in found):
        return []
    differences = [_column(found, cell, family, arm) - _column(found, cell, family, arm + BEFORE) for cell in cells]
    mean = np.mean(differences, axis=0)
    shown = [f"{d.mean():+.4f} ± {_half(d):.4f}" for d in [*differences, mean]]
    return [f"| {arm} less that{BEFORE} | " + " | ".join(shown) + " |"]


def _column(found: dict[Key, dict[str, Any]], cell: tuple[str, int], family: str, arm: str) -> Any:
    keys = sorted(key for key in found if key[:2] == cell)
    return np.array([found[key][family][arm] for key in keys])


def _half(difference: Any) -> float:
    """Half the width of Student's 95% interval of a mean over splits."""
    n = len(difference)
    if n < 2:
        return float("nan")
    return float(student.ppf(0.975, n - 1) * difference.std(ddof=1) / np.sqrt(n))


if __name__ == "__main__":
    main()

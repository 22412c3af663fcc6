"""One contender in one process: ``contend`` starts it, ``python -m benchmarks.running`` is what runs there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ARENA = ROOT / ".venv-arena" / "bin" / "python"


def contend(name: str, *, repeat: int = 3, limit: int = 1800, **case: Any) -> dict[str, Any]:
    """Measure a contender in a fresh process; a failure is a result too (``error``)."""
    python = os.environ.get("CONCORDANT_ARENA_PYTHON", str(ARENA)) if name == "arena_rank" else sys.executable
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "result.json")
        order = json.dumps({"name": name, "repeat": repeat, "case": case, "out": str(out)})
        try:
            done = subprocess.run(
                [python, "-m", "benchmarks.running", order], cwd=ROOT, timeout=limit, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            return {"error": f"took more than {limit} s"}
        if done.returncode != 0 or not out.exists():
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            return {"error": last[:300]}
        return dict(json.loads(out.read_text()))


def main(order: dict[str, Any]) -> None:
    """Load, measure, answer, write."""
    from benchmarks.contenders import REGISTRY
    from benchmarks.measure import measure

    case = order["case"]
    if "path" in case:
        case["path"] = str(case["path"])
    work, answer = REGISTRY[order["name"]](case)
    figures, result = measure(work, order["repeat"])
    figures["best"] = min(figures["seconds"])
    figures["first"] = figures["seconds"][0]
    figures["busy"] = figures["processor"][figures["seconds"].index(figures["best"])]
    figures |= answer(result)
    Path(order["out"]).write_text(json.dumps(figures))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

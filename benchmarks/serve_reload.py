"""Models exchanged under load: ``python -m benchmarks.serve_reload --rate 1000 --reloads 100``.

``serve_load`` sends so many requests of 100 items a second while SIGHUP makes the server load its model anew, each time
another one (a link that goes to and fro between two). Told are the requests lost or refused, and the times of answers.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.measure import load, machine
from benchmarks.serve import ROOT, serving, write_inputs


def measured(folder: Path, rate: int, reloads: int, every: float, more: list[str]) -> dict[str, Any]:
    """Run it; return what ``serve_load`` counted, with the reloads that the server counted."""
    write_inputs(folder, 0.001)
    link = folder / "now"
    _point(link, folder / "linear")
    shutil.copytree(folder / "linear", folder / "again", dirs_exist_ok=True)
    with serving(folder, "-m", link, "-f", folder / "documents.parquet", *more) as server:
        order = {"port": server.port, "path": "/rank", "bodies": str(folder / "documents.txt"), "rate": rate,
                 "seconds": (reloads or 30) * every + 2, "connections": 64}  # fmt: skip
        asked = [sys.executable, "-m", "benchmarks.serve_load", json.dumps(order)]
        sender = subprocess.Popen(asked, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        time.sleep(1.5)  # it imports
        for number in range(reloads):
            _point(link, folder / ("again" if number % 2 == 0 else "linear"))
            server.process.send_signal(signal.SIGHUP)
            time.sleep(every)
        found: dict[str, Any] = json.loads(sender.communicate()[0])
        with urllib.request.urlopen(f"{'http'}://127.0.0.1:{server.port}/metrics") as answer:
            text = answer.read().decode()
        counted = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith("concordant_reloads_total")]
        return found | {"reloads": int(counted[0]), "failed": int(counted[1]), "memory": server.memory()}


def _point(link: Path, target: Path) -> None:
    beside = link.with_name(f"{link.name}.new")
    beside.symlink_to(target)
    os.replace(beside, link)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--reloads", type=int, default=100, help="0: as long as with 30")
    parser.add_argument("--every", type=float, default=0.3, help="seconds between two")
    parser.add_argument("--folder", help="keep models and features here")
    parser.add_argument("more", nargs="*", help="options of concordant serve, after --")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before = load()
        found = measured(Path(given.folder or folder), given.rate, given.reloads, given.every, given.more)
    print(machine(), "load before", before)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

"""``concordant serve`` under load: a case of ``make bench``, and ``python -m benchmarks.serve`` alone.

The server and the load generator share the machine's cores; what either of them used is told. ``wrk`` (a package of
most systems) keeps 16 connections busy; ``serve_load`` sends a fixed number a second, ten times what the server can do.
Every request is of 100 items, drawn from those that are loaded.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.cases import Case, Row
from benchmarks.measure import load, machine

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ROOT / "tests" / "data" / "clueweb09"
MILLION, ASKED, BODIES, SECONDS, TIMES = 1_000_000, 100, 500, 5.0, 10
LUA = """
local bodies = {}
for line in io.lines(os.getenv("BODIES")) do bodies[#bodies + 1] = line end
local n = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
request = function()
  n = n + 1
  return wrk.format(nil, nil, nil, bodies[n % #bodies + 1])
end
"""


def write_inputs(folder: Path, scale: float) -> None:
    """Write two models of real documents, their features as one list, a large table, and bodies of requests."""
    from sklearn.ensemble import GradientBoostingRegressor

    import concordant as cc

    if (folder / "done").exists():
        return
    train = cc.read_features(DOCUMENTS / "train.txt.gz")
    votes = cc.read(DOCUMENTS / "votes.csv.gz")
    linear = cc.AggregationRanker("log-odds", order="all", ridge=1e-3).fit(train, votes)
    trees = GradientBoostingRegressor(n_estimators=100, max_depth=5, random_state=0)
    cc.save_model(linear, folder / "linear")
    boosted = cc.AggregationRanker("log-odds", order="all", regressor=trees).fit(train, votes)
    cc.save_model(boosted, folder / "trees")
    cc.save_model(cc.AbstainingRanker(linear, gamma=1.0).fit(), folder / "careful")
    draw = np.random.default_rng(0)
    count = max(int(MILLION * scale), ASKED)
    X = draw.standard_normal((count, len(train.names)), dtype=np.float32)
    tables = {"documents": ([f"document {row}" for row in range(len(train))], train.X), "million": (
        [f"item-{row:07d}" for row in range(count)], X)}  # fmt: skip
    for name, (items, values) in tables.items():
        columns = {called: values[:, at] for at, called in enumerate(train.names)}
        pa.parquet.write_table(pa.table({"item": items, **columns}), folder / f"{name}.parquet")
        chosen = [draw.choice(len(items), ASKED, replace=False).tolist() for _ in range(BODIES)]
        named = [[items[row] for row in rows] for rows in chosen]
        _write(folder / f"{name}.txt", [{"items": one} for one in named])
        if name == "documents":
            _write(folder / "pairs.txt", [{"pairs": list(zip(one[::2], one[1::2], strict=True))} for one in named])
            _write(folder / "inline.txt", [{"features": np.round(values[rows], 6).tolist()} for rows in chosen[:100]])
    (folder / "post.lua").write_text(LUA)
    (folder / "done").touch()


def _write(path: Path, bodies: list[Any]) -> None:
    path.write_text("\n".join(map(json.dumps, bodies)))


class Server:
    """The command, with its log in a file."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        self.log = folder / "server.log"
        begin = time.perf_counter()
        with self.log.open("w") as file:
            command = [sys.executable, "-m", "concordant", "serve", "--port", "0", *map(str, arguments)]
            self.process = subprocess.Popen(command, stderr=file, cwd=ROOT)
        while not (found := re.search(r"http://[\d.]+:(\d+)", self.log.read_text())):
            if self.process.poll() is not None:
                raise RuntimeError(self.log.read_text().strip()[-300:])
            time.sleep(0.05)
        self.port = int(found[1])
        self.started = time.perf_counter() - begin

    def processes(self) -> list[int]:
        """The process and its workers."""
        found = [self.process.pid]
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                if int(entry.read_text().rsplit(")", 1)[1].split()[1]) == self.process.pid:
                    found.append(int(entry.parent.name))
            except (OSError, ValueError):
                continue
        return found

    def processor(self) -> float:
        """Seconds of processor time so far."""
        ticks = 0
        for one in self.processes():
            fields = Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory(self, field: str = "VmHWM") -> float:
        """Mebibytes of resident memory of all processes: now (VmRSS) or at most (VmHWM)."""
        total = 0
        for one in self.processes():
            found = re.search(rf"^{field}:\s+(\d+)", Path(f"/proc/{one}/status").read_text(), re.MULTILINE)
            total += int(found[1]) if found else 0
        return total / 1024


@contextmanager
def serving(folder: Path, *arguments: object) -> Iterator[Server]:
    server = Server(folder, *arguments)
    try:
        yield server
    finally:
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(60)


def hammer(server: Server, folder: Path, path: str, bodies: str, seconds: float) -> dict[str, Any]:
    """Keep 16 connections busy with wrk; what came out, and who used the processor."""
    asked = ["wrk", "-t1", "-c16", f"-d{max(seconds, 1):.0f}s", "--latency", "-s", str(folder / "post.lua")]
    url = f"{'http'}://127.0.0.1:{server.port}{path}"
    environment = {**os.environ, "BODIES": str(folder / f"{bodies}.txt")}
    subprocess.run([*asked[:3], "-d1s", *asked[4:], url], env=environment, capture_output=True, check=True)  # warm
    before, theirs = server.processor(), resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run([*asked, url], env=environment, capture_output=True, text=True, check=True).stdout
    wall = time.perf_counter() - begin
    used, after = server.processor() - before, resource.getrusage(resource.RUSAGE_CHILDREN)
    generator = after.ru_utime + after.ru_stime - theirs.ru_utime - theirs.ru_stime
    requests = int(re.search(r"(\d+) requests in", done)[1])  # type: ignore[index]
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", done)
    return {
        "requests": requests,
        "rate": float(re.search(r"Requests/sec:\s+([\d.]+)", done)[1]),  # type: ignore[index]
        "p50": _seconds(re.search(r"^\s+50%\s+(\S+)", done, re.M)[1]),  # type: ignore[index]
        "p99": _seconds(re.search(r"^\s+99%\s+(\S+)", done, re.M)[1]),  # type: ignore[index]
        "wrong": int(wrong[1]) if wrong else 0,
        "server": used / wall,
        "generator": generator / wall,
        "each": used / max(requests, 1),
        "peak": server.memory(),
        "started": server.started,
    }


def _seconds(text: str) -> float:
    found = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text)
    return float(found[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}[found[2]] if found else float("nan")


def flood(server: Server, folder: Path, path: str, bodies: str, **order: Any) -> dict[str, Any]:
    """Send a fixed number of requests a second."""
    order |= {"port": server.port, "path": path, "bodies": str(folder / f"{bodies}.txt")}
    command = [sys.executable, "-m", "benchmarks.serve_load", json.dumps(order)]
    before, begin = server.processor(), time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = dict(json.loads(done.stdout))
    found |= {"server": (server.processor() - before) / (time.perf_counter() - begin), "peak": server.memory()}
    return found


CASES = (
    ("linear", "documents", (), "linear, 3,000 items", "/score", "documents", True),
    ("linear", "documents", (), "linear, 3,000 items", "/rank", "documents", True),
    ("linear", "documents", (), "linear, features in the request", "/rank", "inline", False),
    ("linear", "documents", ("--workers", "2"), "linear, 2 workers", "/rank", "documents", True),
    ("linear", "million", (), "linear, 1,000,000 items", "/rank", "million", True),
    ("trees", "documents", (), "100 trees, 3,000 items", "/rank", "documents", True),
    ("trees", "documents", (), "100 trees, features in the request", "/rank", "inline", False),
    ("careful", "documents", (), "50 pairs, abstaining by distance", "/compare", "pairs", False),
    ("careful", "documents", (), "in tiers, abstaining by distance", "/rank", "documents", False),
)
"""Model, table and options of a server; name, path and bodies of what it is asked, and whether the bars hold for it."""


def served(folder: Path, scale: float) -> Case:
    """``concordant serve``: requests of 100 items, and ten times more of them than it can answer."""
    case = Case("concordant serve, requests of 100 items, the load generator on the same cores")
    if shutil.which("wrk") is None:
        print("    skipped: wrk is not installed", flush=True)
        return case
    write_inputs(folder, scale)
    seconds = max(SECONDS * scale, 1.0)
    rate = 0.0
    for (model, table, options), group in itertools.groupby(CASES, key=lambda one: one[:3]):
        with serving(folder, "-m", folder / model, "-f", folder / f"{table}.parquet", *options) as server:
            for *_, name, path, bodies, barred in group:
                found = hammer(server, folder, path, bodies, seconds)
                _row(case, f"{path}, {name}", found)
                if barred:
                    case.bar(f"requests a second, {path}, {name}", found["rate"], "/s", least=1000)
                    case.bar(f"99th percentile, {path}, {name}", 1000 * found["p99"], " ms", most=50)
                    case.bar(f"answers other than 200, {path}, {name}", found["wrong"], "", most=0)
                if (model, table, options, path, barred) == ("linear", "documents", (), "/rank", True):
                    rate = found["rate"]
    _overload(case, folder, seconds, rate)
    return case


def _row(case: Case, name: str, found: dict[str, Any]) -> None:
    note = (
        f"{found['rate']:,.0f}/s, p50 {1000 * found['p50']:.1f} ms, p99 {1000 * found['p99']:.1f} ms; cores: server "
        f"{found['server']:.2f}, wrk {found['generator']:.2f}; {1e6 * found['each']:.0f} µs a request; ready after "
        f"{found['started']:.1f} s"
    )
    case.rows.append(Row(name, found | {"busy": found["each"]}, note))
    print(f"    {name}: {note}; peak {found['peak']:,.0f} MiB", flush=True)


def _overload(case: Case, folder: Path, seconds: float, rate: float) -> None:
    """Ten times the rate that was reached, then a second of what can be answered."""
    with serving(folder, "-m", folder / "linear", "-f", folder / "documents.parquet") as server:
        hammer(server, folder, "/rank", "documents", 1)
        before = server.memory("VmRSS")
        found = flood(
            server, folder, "/rank", "documents", rate=TIMES * rate, seconds=seconds, connections=1000
        )  # fmt: skip
        after = flood(server, folder, "/rank", "documents", rate=200, seconds=2, connections=50)
    taken = found.get("200", {"answers": 0, "p50": np.nan, "p99": np.nan, "max": np.nan})
    busy = found.get("503", {"answers": 0, "p50": np.nan, "p99": np.nan, "max": np.nan})
    others = {key: found[key] for key in found if key.isdigit() and key not in ("200", "503")}
    note = (
        f"offered {found['offered'] / seconds:,.0f}/s, sent {found['sent'] / seconds:,.0f}/s on "
        f"{found['connections']:,} connections (the others: none was free); answered {taken['answers'] / seconds:,.0f}"
        f"/s, p50 {1000 * taken['p50']:.0f} ms, p99 {1000 * taken['p99']:.0f} ms, most {1000 * taken['max']:.0f} ms; "
        f"refused {busy['answers'] / seconds:,.0f}/s; cores: server {found['server']:.2f}, generator "
        f"{found['processor'] / seconds:.2f}; memory {before:,.0f} → {found['peak']:,.0f} MiB"
    )
    name = f"/rank, linear, {TIMES} times too much"
    case.rows.append(Row(name, {"peak": found["peak"], "after": after} | found, note))
    print(f"    {name}: {note}", flush=True)
    broken = (
        found["lost"] + found["unanswered"] + found["not connected"] + sum(one["answers"] for one in others.values())
    )
    case.bar("broken connections, unanswered requests, other answers, in overload", broken, "", most=0)
    case.bar("99th percentile of what is answered, in overload", 1000 * taken["p99"], " ms", most=500)
    case.bar("memory added by overload", found["peak"] - before, " MiB", most=100)
    good = after.get("200", {"answers": 0, "p99": np.nan})
    case.bar(
        "answered of 200/s in the two seconds after", 100 * good["answers"] / max(after["sent"], 1), " %", least=100
    )
    case.bar("99th percentile in the two seconds after", 1000 * good["p99"], " ms", most=50)


def main() -> None:
    """Measure, and print a table for docs/serving.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="shorter runs and a smaller table")
    parser.add_argument("--folder", help="where the inputs are written and kept (default: a temporary folder)")
    options = parser.parse_args()
    facts = machine()
    print(f"{facts['cpu']}, {facts['cores']} cores, load before {load():.1f}", flush=True)
    with tempfile.TemporaryDirectory(prefix="concordant-bench-") as temporary:
        folder = Path(options.folder or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        case = served(folder, options.scale)
    print(
        "\n| | requests/s | p50 | p99 | cores: server | cores: wrk | peak memory |\n|---|---:|---:|---:|---:|---:|---:|"
    )
    for row in case.rows:
        one = row.result
        if "rate" in one:
            print(
                f"| {row.name} | {one['rate']:,.0f} | {1000 * one['p50']:.1f} ms | {1000 * one['p99']:.1f} ms | "
                f"{one['server']:.2f} | {one['generator']:.2f} | {one['peak']:,.0f} MiB |"
            )
    print(f"\n{case.rows[-1].name}: {case.rows[-1].note}" if case.rows else "")


if __name__ == "__main__":
    main()

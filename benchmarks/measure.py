"""Time and memory of a piece of work in this process."""

from __future__ import annotations

import gc
import os
import platform
import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def _status(field: str) -> float:
    text = Path("/proc/self/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB", text, re.MULTILINE)
    return int(found.group(1)) / 1024 if found else float("nan")


def _reset_peak() -> bool:
    """Let the kernel's high-water mark of resident memory start anew (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def measure(work: Callable[[], Any], repeat: int) -> tuple[dict[str, Any], Any]:
    """Run the work; return seconds (of the clock and of the processor) of each run, and peak memory in MiB.

    It runs ``repeat`` times at least and, if more than once, up to 20 times while it has taken less than 3 s in all.
    ``before`` is the process's resident memory with the input loaded, ``peak`` the most while the work ran. Loading
    and imports happened before; their peak is forgotten where the kernel allows.
    """
    gc.collect()
    before, anew = _status("VmRSS"), _reset_peak()
    seconds: list[float] = []
    processor: list[float] = []
    result = None
    while len(seconds) < repeat or (repeat > 1 and len(seconds) < 20 and sum(seconds) < 3):
        result = None
        begin, busy = time.perf_counter(), time.process_time()
        result = work()
        seconds.append(time.perf_counter() - begin)
        processor.append(time.process_time() - busy)
    peak = _status("VmHWM") if anew else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "processor": processor, "before": before, "peak": peak, "peak_since_load": anew}, result


def load() -> float:
    """Return how many processes wanted a core in the last minute (NaN where the system does not say)."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    cpu = "?"
    if Path("/proc/cpuinfo").exists():
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        cpu = found.group(1) if found else cpu
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gib": round(pages / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": sys.version.split()[0],
    }

"""Two processes of this machine that train together over gloo: the file is run in each, with its place among them."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def together(file: str, folder: Path, *arguments: str, processes: int = 2) -> list[Any]:
    """Run a file with a folder and arguments in each process; return what each pickled to ``folder/RANK``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])])
    fixed = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(processes), "PYTHONPATH": path}
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", file, str(folder), *arguments],
            env={**os.environ, **fixed, "RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(processes)
    ]
    said = [one.communicate(timeout=300)[0] for one in running]
    assert not any(one.returncode for one in running), "\n".join(said)
    return [pickle.loads((folder / str(rank)).read_bytes()) for rank in range(processes)]


def keep(folder: str, value: Any) -> None:
    """Keep what this process found and end it, once all have: threads of gloo may outlive Python, which then aborts."""
    from torch import distributed

    Path(folder, os.environ["RANK"]).write_bytes(pickle.dumps(value))
    if distributed.is_initialized():
        with contextlib.suppress(RuntimeError):  # another has ended already
            distributed.barrier()
    sys.stdout.flush()
    os._exit(0)

"""``python -m benchmarks.torch_gpu [--queries N] [--items M] [--edges E]``: surrogates on the CPU and on a GPU.

Value and derivative of a ragged batch (10^4 queries of 100 items on average, 200 edges each) in float64 and float32,
best of several runs after one to warm up, and the largest difference from the NumPy registry. Without a GPU only the
CPU is timed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import concordant.torch as ct
from concordant.losses.objective import Objective, WeightedEdges
from concordant.losses.pair_losses import pair_loss, value_penalty


def main() -> None:
    """Print one line for each loss, precision and device."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--queries", type=int, default=10_000)
    options.add_argument("--items", type=int, default=100)
    options.add_argument("--edges", type=int, default=200)
    chosen = options.parse_args()
    devices = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
    name = torch.cuda.get_device_name() if len(devices) > 1 else "no CUDA device: CPU only"
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {name}")
    rng = np.random.default_rng(1)
    size = rng.integers(chosen.items // 2, chosen.items + chosen.items // 2 + 1, chosen.queries)
    start = np.concatenate(([0], np.cumsum(size)))
    alpha = rng.normal(size=start[-1])
    print(f"{chosen.queries:,} queries, {start[-1]:,} items, {chosen.queries * chosen.edges:,} edges")
    for phi in ("logistic", "squared-hinge", "exponential"):
        objective = edges(rng, start, size, chosen.edges, phi)
        exact = objective.value(alpha), objective.gradient(alpha)
        measure(f"edges, {phi}", ct.TorchObjective.of(objective), alpha, devices, exact)
    gains = rng.random(start[-1])
    for phi in ("squared-hinge", "exponential", "logistic"):
        risk = ct.GradedObjective(torch.tensor(start), torch.tensor(gains), phi=phi)
        measure(f"against all, {phi}", risk, alpha, devices, None)


def edges(rng: np.random.Generator, start: Any, size: Any, each: int, phi: str) -> Objective:
    """Random edges in every query."""
    graph = np.repeat(np.arange(len(size)), each)
    winner, loser = (start[graph] + (rng.random(len(graph)) * size[graph]).astype(np.int64) for _ in range(2))
    edges = WeightedEdges.of(start, winner, loser, rng.random(len(graph)))
    return Objective(edges, pair_loss(phi), value_penalty("square"))


def measure(what: str, risk: Any, alpha: Any, devices: list[str], exact: tuple[Any, Any] | None) -> None:
    """Time value and derivative on every device; ``exact`` is NumPy's, else the CPU's in float64 stands for it."""
    for dtype in (torch.float64, torch.float32):
        for device in devices:
            moved = risk.to(device)
            scores = torch.tensor(alpha, dtype=dtype, device=device, requires_grad=True)

            def work(risk: Any = moved, scores: Any = scores) -> tuple[Any, Any]:
                value = risk(scores)
                (slope,) = torch.autograd.grad(value.sum(), scores)
                return value.detach(), slope

            seconds, found = best(work, device)
            arrays = tuple(x.double().cpu().numpy() for x in found)
            if exact is None:
                exact = arrays
            away = [float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(arrays, exact, strict=True)]
            print(
                f"{what:28} {str(dtype).removeprefix('torch.'):8} {device:5} {1000 * seconds:9.2f} ms   "
                f"largest difference, of the largest: value {away[0]:.1e}, derivative {away[1]:.1e}",
                flush=True,
            )
        risk.to("cpu")


def best(work: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Least time of up to ten runs within three seconds, the first one not counted."""
    found = work()
    least, begun, runs = float("inf"), time.perf_counter(), 0
    while runs < 1 or (runs < 10 and time.perf_counter() - begun < 3):
        if device == "cuda":
            torch.cuda.synchronize()
        since = time.perf_counter()
        found = work()
        if device == "cuda":
            torch.cuda.synchronize()
        least, runs = min(least, time.perf_counter() - since), runs + 1
    return least, found


if __name__ == "__main__":
    main()

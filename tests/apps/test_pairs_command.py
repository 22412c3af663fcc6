"""``concordant pairs``: what it writes, what it says, what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
from test_command import call

import concordant as cc
from seeds import seed


def test_the_command(tmp_path, capsys):
    log = tmp_path / "votes.jsonl"
    rng = np.random.default_rng(seed(2))
    rows = [
        (
            f"p{rng.integers(4)}",
            *rng.choice([*"abc"], 2, replace=False).tolist(),
            rng.choice(["left", "right", "tie"]).item(),
        )
        for _ in range(80)
    ]
    log.write_text("".join(json.dumps(dict(zip(("prompt", "left", "right", "winner"), row))) + "\n" for row in rows))
    twin = cc.pairs(str(log))
    for ending in ("jsonl", "parquet"):
        status, out, err = call(capsys, "pairs", str(log), "-o", str(tmp_path / f"p.{ending}"))
        assert (status, out) == (0, "") and f"{len(twin)} pairs of weight {twin.weight:.0f} from" in err
        assert "no scorer agrees with more than" in err
    assert [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()] == twin.to_arrow().to_pylist()
    assert pq.read_table(tmp_path / "p.parquet").to_pylist() == twin.to_arrow().to_pylist()
    status, _, err = call(capsys, "pairs", str(log), "-o", str(tmp_path / "p.csv"))
    assert status == 2 and "unknown ending '.csv'; allowed: .jsonl" in err
    status, _, err = call(capsys, "pairs", str(log))
    assert status == 2 and "--output" in err
    level = tmp_path / "level.jsonl"
    level.write_text(
        '{"prompt": "p", "chosen": "a", "rejected": "b"}\n{"prompt": "p", "chosen": "b", "rejected": "a"}\n'
    )
    status, _, err = call(capsys, "pairs", str(level), "-o", str(tmp_path / "q.jsonl"))
    assert status == 2 and "--level keeps them with weight 0" in err and not (tmp_path / "q.jsonl").exists()
    assert call(capsys, "pairs", str(level), "-q", "--level", "-o", str(tmp_path / "q.jsonl"))[0] == 0

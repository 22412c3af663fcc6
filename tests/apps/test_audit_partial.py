"""An audit that is interrupted by a real signal keeps what it has done, where that was asked for."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import concordant as cc
from concordant.apps.commands.output import plain
from concordant.auditing import audit as auditing

KILLED = """
import os, sys, time
from concordant.apps.commands import main
from concordant.auditing import audit

calls, usual = [], audit.{function}

def called(*args, **more):
    calls.append(1)
    if len(calls) == {call}:
        for _ in range({times}):
            os.kill(os.getpid(), {number})
        time.sleep({sleep})
    return usual(*args, **more)

audit.{function} = called
main()
"""
"""The command, to which a signal comes at some call of a function of the audit."""


def votes(folder: Path, queries: int) -> cc.Preferences:
    draw = np.random.default_rng(1)
    number = 400 * queries
    winner = draw.integers(0, 6, number)
    table = pa.table({"winner": winner, "loser": (winner + draw.integers(1, 6, number)) % 6})
    table = table.append_column("query", pa.array(np.arange(number) % queries))
    pq.write_table(table, folder / "votes.parquet")
    return cc.read(folder / "votes.parquet")


def audit(
    folder: Path, function: str, call: int, *more: str, number: int = signal.SIGINT, times: int = 1, sleep: float = 0
) -> subprocess.CompletedProcess[str]:
    code = KILLED.format(function=function, call=call, number=int(number), times=times, sleep=sleep)
    asked = ["audit", str(folder / "votes.parquet"), "--replicates", "20", *more]
    return subprocess.run([sys.executable, "-c", code, *asked], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_of_one_query_the_losses_that_are_judged_are_kept(tmp_path: Path, number: int) -> None:
    whole = cc.audit(votes(tmp_path, 1), replicates=0).to_dict()
    out = tmp_path / "found.json"
    done = audit(tmp_path, "minimised", 4, "-o", str(out), "--keep-partial", number=number)
    assert done.returncode == 128 + number
    assert done.stderr.splitlines()[-1] == "interrupted"
    found = json.loads(out.read_text())
    kept = found["queries"][0]["surrogates"]
    assert len(kept) == 3 == found["settings"]["incomplete"]["losses"]
    for name, one in kept.items():  # what is said of them is what the whole audit says
        assert one == whole["queries"][0]["surrogates"][name]
    assert found["notes"][0].startswith("interrupted: 3 of ") and "note: interrupted: 3 of " in done.stderr


def test_of_many_queries_those_that_are_audited_are_kept(tmp_path: Path) -> None:
    prefs = votes(tmp_path, 300)
    blocks = [len(codes) for codes in auditing._some(prefs)]
    assert len(blocks) == 2
    out = tmp_path / "found.json"
    done = audit(tmp_path, "query_rows", 2, "-o", str(out), "--keep-partial", "--ask", "0")
    assert done.returncode == 130, done.stderr
    found = json.loads(out.read_text())
    assert len(found["queries"]) == blocks[0] < 300
    assert found["settings"]["incomplete"] == {
        "queries": blocks[0], "of_queries": 300, "losses": found["settings"]["incomplete"]["of_losses"],
        "of_losses": found["settings"]["incomplete"]["of_losses"],
    }  # fmt: skip
    whole = cc.audit(prefs, replicates=20, ask=0).to_dict()
    assert found["queries"] == json.loads(json.dumps(plain(whole["queries"][: blocks[0]])))
    assert f"{blocks[0]} of 300 queries" in done.stderr


def test_without_the_option_nothing_is_kept(tmp_path: Path) -> None:
    votes(tmp_path, 1)
    out = tmp_path / "found.json"
    done = audit(tmp_path, "minimised", 4, "-o", str(out))
    assert (done.returncode, out.exists()) == (130, False)
    assert done.stderr.splitlines()[-1] == "interrupted"


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    votes(tmp_path, 1)
    out = tmp_path / "found.json"
    code = "query_rows"  # reached after the first signal, when what is done is put together
    script = KILLED.format(function="minimised", call=4, number=int(signal.SIGINT), times=1, sleep=0).replace(
        "main()",
        f"put = audit.{code}\ndef slow(*args):\n    os.kill(os.getpid(), {int(signal.SIGINT)})\n"
        f"    time.sleep(30)\naudit.{code} = slow\nmain()",
    )
    asked = ["audit", str(tmp_path / "votes.parquet"), "-o", str(out), "--keep-partial"]
    done = subprocess.run(
        [sys.executable, "-c", script, *asked], capture_output=True, text=True, timeout=25, check=False
    )
    assert (done.returncode, out.exists()) == (130, False)


def test_smaller_blocks_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefs = votes(tmp_path, 60)
    whole = cc.audit(prefs, replicates=20)
    monkeypatch.setattr(auditing, "LEAST", 100)
    parts = cc.audit(prefs, replicates=20)
    assert json.dumps(parts.to_dict()) == json.dumps(whole.to_dict())  # as texts, in which NaN is itself

"""``concordant reproduce``: what is written, what is said, and what is refused."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

from concordant.apps.commands import main
from concordant.apps.commands.experiment_options import ReproduceOptions
from concordant.apps.reproduction import consistency
from concordant.apps.reproduction.experiments import EXPERIMENTS, experiment
from concordant.apps.reproduction.outcome import Outcome, find, found, markdown_table, write_figure, write_numbers
from concordant.errors import InputError, UsageError


@pytest.fixture(name="little", autouse=True)
def _little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consistency, "NUMBERS", (50,))


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", *arguments])
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1
    return error


def test_names_are_those_of_the_issue_and_of_the_help() -> None:
    assert set(EXPERIMENTS) == {"table1", "fig2", "fig3", "fig4", "images", "consistency", "abstention"}
    assert ReproduceOptions.__doc__ is not None
    for name in EXPERIMENTS:
        assert name in ReproduceOptions.__doc__


def test_files_are_written_and_the_same_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    for folder in ("one", "two"):
        main(["reproduce", "consistency", "--quick", "-o", str(tmp_path / folder)])
    said = capsys.readouterr()
    assert "Theorem 4" in said.out and "pairwise logistic keeps" in said.out
    assert said.err.count("written to") == 2 and "\r" not in said.err  # no progress when piped
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["consistency.csv", "consistency.md", "consistency.png", "consistency.svg"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    rows = list(csv.DictReader((tmp_path / "one" / "consistency.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["population"] for row in rows} == {"theorem 3", "uneven"}


def test_without_matplotlib_the_numbers_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "consistency", "--quick", "-q", "-o", str(tmp_path)])
    assert stopped.value.code == 2
    assert "concordant[figures]" in capsys.readouterr().err
    assert (tmp_path / "consistency.csv").exists()


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(capsys, "nonsense")
    for name in EXPERIMENTS:
        assert name in error
    error = refused(capsys, "table1", "--data", str(tmp_path))
    assert "MovieLens-100K" in error and "u.data" in error and "--data" in error
    assert "MSLR-WEB10K" in refused(capsys, "fig3", "--data", str(tmp_path))
    assert "not a folder" in refused(capsys, "fig3", "--data", str(tmp_path / "none"))
    assert "cpu" in refused(capsys, "consistency", "--device", "cuda")
    assert "at least 0" in refused(capsys, "consistency", "--seed", "-1")
    file = tmp_path / "file"
    file.write_text("")
    assert "is a file" in refused(capsys, "consistency", "-o", str(file))


def test_all_that_have_data_are_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    main(["reproduce", "--quick", "--data", str(tmp_path), "-o", str(tmp_path / "out")])
    said = capsys.readouterr()
    assert "Theorem 4" in said.out and "RwA Table 1" in said.out
    assert said.err.count("is left out") == sum(bool(each.needs) for each in EXPERIMENTS.values())


def test_where_data_are_looked_for(tmp_path: Path) -> None:
    assert found("ml-100k", tmp_path) is None
    with pytest.raises(InputError, match="MQ2008 of LETOR"):
        find("mq2008", tmp_path)
    part = tmp_path / "MSLR-WEB10K" / "Fold1"
    part.mkdir(parents=True)
    (part / "train.txt").write_text("0 qid:1 1:0\n")
    assert find("mslr", part.parent) == part.parent
    (tmp_path / "mq2008" / "Fold1").mkdir(parents=True)
    (tmp_path / "mq2008" / "Fold1" / "train.txt").write_text("")
    assert find("mq2008", tmp_path) == tmp_path / "mq2008" == find("mq2008", tmp_path / "mq2008")
    assert found("mslr", tmp_path / "mq2008") is None
    with pytest.raises(UsageError, match="did you mean 'table1'"):
        experiment("tabel1")


def test_numbers_as_they_are_written(tmp_path: Path) -> None:
    rows = [{"name": "x", "value": 0.1 + 0.2, "none": float("nan"), "big": 160_000}]
    outcome = Outcome("tiny", "A title", rows, ["It agrees."], lambda _: None, {"runs": rows}, notes=["Set."])
    written = write_numbers(outcome, tmp_path)
    assert [path.name for path in written] == ["tiny.csv", "tiny-runs.csv", "tiny.md"]
    assert (tmp_path / "tiny.csv").read_text() == "name,value,none,big\nx,0.3,,160000\n"
    assert markdown_table(rows).splitlines()[-1] == "| x | 0.3000 |  | 160,000 |"
    assert "- It agrees." in (tmp_path / "tiny.md").read_text()
    pytest.importorskip("matplotlib")
    assert [path.suffix for path in write_figure(outcome, tmp_path)] == [".svg", ".png"]

"""RwA Table 1: the losses by their formula, the networks by their derivatives, what is read, trained and resumed."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from concordant.apps.commands import main
from concordant.apps.reproduction import abstention, cifar, digits, digits_chosen
from concordant.apps.reproduction.abstention import paper_table, run
from concordant.apps.reproduction.digits import SmallNetwork, exponential_loss, profile, train_small
from concordant.apps.reproduction.digits_chosen import LabelledPairs, set_by_predicted_error
from concordant.apps.reproduction.outcome import Setting
from concordant.errors import InputError

torch = pytest.importorskip("torch", reason="CIFAR-10 needs the extra torch")
from concordant.apps.reproduction import cifar as cifar_runs  # noqa: E402
from concordant.apps.reproduction import cifar as cifar_training  # noqa: E402
from concordant.apps.reproduction import cifar as resnet  # noqa: E402

RECORDS = 24


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Networks as small as these are slower with several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield
    torch.set_num_threads(threads)


def by_definition(X: Any, label: Any, score: Any, gamma: float, cost: float, norm: float) -> float:
    """L·1[‖x − x'‖ > γ] + c·1[‖x − x'‖ ≤ γ], mean over ordered pairs with different labels."""
    losses = []
    for a in range(len(X)):
        for b in range(len(X)):
            if label[a] != label[b]:
                y = 1 if label[b] > label[a] else -1
                sign = 1 if score[b] - score[a] >= 0 else -1
                near = np.linalg.norm(X[a] - X[b], ord=norm) <= gamma
                losses.append(cost if near else float(y != sign))
    return float(np.mean(losses))


@pytest.mark.parametrize("norm", ["inf", "2"])
def test_profile_gives_the_loss_of_the_definition(norm: str) -> None:
    rng = np.random.default_rng(3)
    whole = rng.integers(0, 17, (70, 4))  # more rows than one block
    label, score = rng.integers(0, 4, 70), np.round(rng.normal(size=70), 1)
    found = profile(whole, label, score, norm)
    for level in (0, 5, int(found.level_of(0.3)), len(found.pairs)):
        gamma = level if norm == "inf" else np.sqrt(level + 0.5)
        expected = by_definition(whole, label, score, gamma, 0.3, float(norm))
        assert found.loss(level, 0.3) == pytest.approx(expected, abs=1e-12)
        assert found.kept(level) + 0.3 * found.share(level) == pytest.approx(expected, abs=1e-12)
    assert found.level_of(1.0) == len(found.pairs) - 1 or found.share(found.level_of(1.0)) == 1.0
    assert found.share(found.level_of(0.3)) <= 0.3 < found.share(found.level_of(0.3) + 1)
    assert (found.pairs % 2 == 0).all() and found.total == (label[:, None] != label).sum()


@pytest.mark.parametrize("norm", ["inf", "2"])
def test_pairs_one_by_one_are_those_of_the_profile(norm: str) -> None:
    rng = np.random.default_rng(3)
    whole, label, score = rng.integers(0, 5, (40, 3)), rng.integers(0, 4, 40), rng.integers(0, 9, 40).astype(float)
    pairs, counted = LabelledPairs.of(whole, label, score, norm), profile(whole, label, score, norm)
    for level, (number, wrong) in enumerate(zip(counted.pairs, counted.wrong, strict=True)):
        here = pairs.distance == level
        assert (2 * here.sum(), 2 * pairs.wrong[here].sum()) == (number, wrong)


def test_chosen_set_by_counting() -> None:
    """Errors that fall with the difference of scores: the set is where they are above the cost, and the loss counts."""
    rng = np.random.default_rng(4)
    difference, distance = rng.exponential(size=400_000), rng.integers(0, 10, 400_000)
    wrong = (rng.random(400_000) < 0.5 * np.exp(-difference)).astype(float)
    seen, judged = (
        LabelledPairs(distance[at], difference[at], wrong[at]) for at in (slice(0, None, 2), slice(1, None, 2))
    )
    for level, most in ((3, 3), (None, 9)):
        found = set_by_predicted_error(seen, judged, level, 0.2)
        inside = (judged.distance <= most) & (0.5 * np.exp(-judged.difference) > 0.2)
        assert found.share == pytest.approx(inside.mean(), abs=0.03)
        assert found.error == pytest.approx(judged.wrong[inside].mean(), abs=0.03)
        without, with_it = judged.wrong.mean(), (judged.wrong[~inside].sum() + 0.2 * inside.sum()) / len(inside)
        assert found.loss == pytest.approx(with_it, abs=0.003) and found.loss < without
        assert found.loss == pytest.approx(without + (0.2 - found.error) * found.share)
    assert set_by_predicted_error(seen, judged, -1, 0.2).loss == judged.wrong.mean()


def test_images_are_scored_by_networks_that_did_not_see_them(monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[Any] = []

    def train(X: Any, label: Any, **_: Any) -> SmallNetwork:
        assert len(X) == len(label)
        learned.append(X)
        return SmallNetwork(np.ones((1, X.shape[1])), np.zeros(1), np.ones(1))

    monkeypatch.setattr(digits_chosen, "train_small", train)
    whole = np.arange(50)[:, None]
    found = digits_chosen.unseen_scores(whole, np.arange(50) % 3, steps=1, seed=0)
    assert sorted(np.concatenate([at for at, _ in found])) == list(range(50))
    for (at, score), X in zip(found, learned, strict=True):
        assert not set(at) & set((16 * X[:, 0]).astype(int)) and len(at) + len(X) == 50
        np.testing.assert_allclose(score, at / 16)


def test_paper_table_is_a_line_in_the_cost() -> None:
    rows = paper_table()
    assert max(row["largest difference"] for row in rows) < 5e-5
    assert rows[3]["near share"] == pytest.approx(0.074, abs=5e-4) and rows[4]["near share"] == pytest.approx(
        0.594, abs=5e-4
    )
    assert (rows[3]["near error"], rows[4]["near error"]) == pytest.approx((0.111, 0.096), abs=1e-3)


def plain_exponential(score: Any, label: Any) -> float:
    terms = [np.exp(score[a] - score[b]) for a in range(len(score)) for b in range(len(score)) if label[b] > label[a]]
    return float(np.mean(terms))


def test_exponential_loss_and_its_derivative() -> None:
    rng = np.random.default_rng(0)
    score, label = rng.normal(size=30), rng.integers(0, 5, 30)
    value, slope = exponential_loss(score, label)
    assert value == pytest.approx(plain_exponential(score, label), rel=1e-12)
    for place in range(0, 30, 7):
        up, down = score.copy(), score.copy()
        up[place] += 1e-5
        down[place] -= 1e-5
        rise = plain_exponential(up, label) - plain_exponential(down, label)
        assert slope[place] == pytest.approx(rise / 2e-5, rel=1e-6)
    given = torch.tensor(score, requires_grad=True)
    other = cifar_training.pairwise_exponential(given, torch.tensor(label))
    other.backward()
    assert other.item() == pytest.approx(value, rel=1e-12) and given.grad.numpy() == pytest.approx(slope, rel=1e-9)
    far = cifar_training.pairwise_exponential(torch.tensor([300.0, -300.0, 0.0]), torch.tensor([1, 0, 0]))
    assert 0 <= far.item() < 1e-100
    one_class = cifar_training.pairwise_exponential(torch.ones(3, requires_grad=True), torch.ones(3))
    assert one_class.item() == 0.0


def test_small_network_finds_an_order_that_is_there() -> None:
    rng = np.random.default_rng(1)
    X = rng.random((120, 3))
    label = np.digitize(np.abs(X[:, 0] - 0.5), [0.1, 0.2, 0.3, 0.4])  # not linear in x
    net = train_small(X, label, hidden=8, ridge=1e-4, steps=200, seed=0)
    assert isinstance(net, SmallNetwork) and profile(np.arange(120)[:, None], label, net.score(X), "inf").error < 0.1
    again = train_small(X, label, hidden=8, ridge=1e-4, steps=200, seed=0)
    assert np.array_equal(net.score(X), again.score(X))


def test_digits_quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digits, "QUICK_STEPS", 20)
    monkeypatch.setattr(abstention, "QUICK_STEPS", 5)
    outcome = run(Setting(quick=True, output=tmp_path))
    assert not any("CIFAR" in note for note in outcome.notes)
    rows = outcome.tables["runs"]
    assert {row["data"] for row in rows} == {"digits, ℓ∞", "digits, ℓ2"}
    for row in rows:
        assert row["loss"] == pytest.approx(row["A"] + row["cost"] * row["near share"], abs=1e-14)
        if row["near share"]:
            gain = row["loss without abstention"] - row["A"]  # what abstention would save at no cost
            assert row["near error"] == pytest.approx(gain / row["near share"])
    costs = sorted({row["cost"] / row["loss without abstention"] for row in rows})
    assert costs == pytest.approx([1.2, 3.6, 6.0])
    shares = [row["near share"] for row in rows if row["data"] == "digits, ℓ2"][::3]
    assert shares == pytest.approx([0, 0.0005, 0.074, 0.594], rel=0.5)
    assert float(outcome.agreement[1].split()[-1].rstrip(".")) < 1e-14  # against pairwise_abstention_loss
    assert any(row["share"] for row in outcome.tables["chosen"])
    for row in outcome.tables["chosen"]:
        if row["share"]:
            assert row["loss"] == pytest.approx(row["without"] + (row["cost"] - row["error"]) * row["share"])
    assert not any("±" in str(value) for row in outcome.summary for value in row.values() if "digits" in row["data"])


def write_batches(folder: Path, records: int = RECORDS) -> Path:
    """Images whose brightness says their label."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    for name in (*cifar.TRAIN, cifar.TEST):
        label = rng.integers(0, 10, records)
        pixels = np.clip(25 * label[:, None] + rng.integers(0, 25, (records, 3072)), 0, 255)
        (folder / name).write_bytes(np.column_stack([label, pixels]).astype(np.uint8).tobytes())
    return folder


def test_batches_are_read_and_what_is_wrong_is_said(tmp_path: Path) -> None:
    folder = write_batches(tmp_path / "cifar-10-batches-bin")
    images = cifar.read_cifar(folder)
    assert images.train.shape == (5 * RECORDS, 3, 32, 32) and images.test.shape == (RECORDS, 3, 32, 32)
    raw = (folder / "data_batch_2.bin").read_bytes()
    assert images.train_label[RECORDS] == raw[0] and images.train[RECORDS, 1, 2, 3] == raw[1 + 1024 + 2 * 32 + 3]
    assert "not the published files" in images.note
    (folder / "data_batch_3.bin").write_bytes(raw[:-1])
    with pytest.raises(InputError, match=r"data_batch_3.bin: 73,751 bytes are not whole records of 3,073"):
        cifar.read_cifar(folder)
    (folder / "data_batch_3.bin").write_bytes(bytes([200]) + raw[1:])
    with pytest.raises(InputError, match=r"1 of 24 records have a label above 9 \(first: 200 in record 1\)"):
        cifar.read_cifar(folder)
    (folder / "data_batch_3.bin").unlink()
    with pytest.raises(InputError, match=r"'data_batch_3.bin' not there"):
        cifar.read_cifar(folder)


def test_published_files_by_their_checksums(shared_data: Callable[[str], Path]) -> None:
    images = cifar.read_cifar(shared_data("cifar-10-batches-bin"))
    assert "published files by their checksums" in images.note and len(images.train) == 50_000


def test_resnet34_has_the_layers_of_resnet34() -> None:
    net = resnet.ResNet()
    convolutions = [m for m in net.modules() if isinstance(m, torch.nn.Conv2d) and m.kernel_size == (3, 3)]
    assert len(convolutions) + 1 == 34  # and the linear layer
    assert sum(p.numel() for p in net.parameters()) == 21_282_122 - 9 * 513  # ten outputs: 21,282,122 (kuangliu)
    shapes = []
    for block in net.blocks:
        block.register_forward_hook(lambda _m, _i, out: shapes.append(tuple(out.shape[1:])))
    net.eval()
    with torch.no_grad():
        assert net(torch.zeros(1, 3, 32, 32)).shape == (1,)
    assert shapes == [(64, 32, 32)] * 3 + [(128, 16, 16)] * 4 + [(256, 8, 8)] * 6 + [(512, 4, 4)] * 3


def test_crops_and_mirror_images() -> None:
    images = torch.arange(3 * 3 * 8 * 8, dtype=torch.int64).remainder(251).to(torch.uint8).reshape(3, 3, 8, 8)
    rows, columns, flip = torch.tensor([0, 8, 4]), torch.tensor([3, 4, 4]), torch.tensor([True, False, False])
    found = cifar_training.augmented(images, rows, columns, flip)
    padded = np.pad(images.numpy(), ((0, 0), (0, 0), (4, 4), (4, 4)))
    for place in range(3):
        crop = padded[place, :, rows[place] : rows[place] + 8, columns[place] : columns[place] + 8]
        assert np.array_equal(found[place].numpy(), crop[:, :, ::-1] if flip[place] else crop)
    assert torch.equal(found[2], images[2])


TINY = cifar_training.Schedule(epochs=3, batch=40, width=4, stages=(1, 1), seed=5)


def trained(folder: Path, kept: Path, *, stop_after: int | None = None, schedule: Any = TINY) -> Any:
    images = cifar.read_cifar(folder)
    done = []

    def progress() -> None:
        done.append(1)
        if len(done) == stop_after:
            raise KeyboardInterrupt

    pixels, label = torch.from_numpy(images.train), torch.from_numpy(images.train_label)
    return cifar_training.train(pixels, label, schedule, device="cpu", kept=kept, progress=progress)


def test_a_training_that_was_stopped_ends_as_one_that_was_not(tmp_path: Path) -> None:
    folder = write_batches(tmp_path / "data")
    whole, losses = trained(folder, tmp_path / "whole.pt")
    with pytest.raises(KeyboardInterrupt):
        trained(folder, tmp_path / "parts.pt", stop_after=1)
    parts, resumed = trained(folder, tmp_path / "parts.pt")
    assert resumed == losses and len(losses) == 3
    for name, value in whole.state_dict().items():
        assert torch.equal(value, parts.state_dict()[name]), name
    assert not list(tmp_path.glob("*.part"))
    again, _ = trained(folder, tmp_path / "whole.pt")  # nothing left to do
    assert torch.equal(again.head.weight, whole.head.weight)
    other, _ = trained(folder, tmp_path / "other.pt", schedule=replace(TINY, seed=6))
    assert not torch.equal(other.head.weight, whole.head.weight)
    with pytest.raises(InputError, match=r"another training \(epochs 3 there, 4 here\)"):
        trained(folder, tmp_path / "whole.pt", schedule=replace(TINY, epochs=4))
    (tmp_path / "whole.pt").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="not the state of a training"):
        trained(folder, tmp_path / "whole.pt")


def test_pairs_on_the_device_are_those_of_numpy(tmp_path: Path) -> None:
    images = cifar.read_cifar(write_batches(tmp_path, 60))
    score = np.round(np.random.default_rng(0).normal(size=60), 1).astype(np.float32)
    found = cifar_runs.device_profile(
        torch.from_numpy(images.test), torch.from_numpy(images.test_label), torch.from_numpy(score)
    )
    plain = profile(images.test.reshape(60, -1).astype(np.int64), images.test_label, score.astype(float), "inf")
    size = len(plain.pairs)
    assert np.array_equal(found.pairs[:size], plain.pairs) and not found.pairs[size:].any()
    assert np.array_equal(found.wrong[:size], plain.wrong)


def test_command_on_little_cifar(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digits, "QUICK_STEPS", 5)
    monkeypatch.setattr(cifar_runs, "QUICK", replace(TINY, epochs=2))
    monkeypatch.setattr(cifar_runs, "BLOCK", 10)
    folder = write_batches(tmp_path / "sets" / "cifar-10-batches-bin")
    out = tmp_path / "out"
    for _ in range(2):  # the second time from what was kept
        main(["reproduce", "abstention", "--quick", "--data", str(folder.parent), "-o", str(out)])
        said = capsys.readouterr().out
        assert "CIFAR-10, ℓ∞" in said and "not the published files" in said
    rows = list(csv.DictReader((out / "abstention-runs.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["gamma"] for row in rows if row["data"].startswith("CIFAR")][::3] == ["0", "0.3", "0.5", "0.7", "0.9"]
    assert len(list(out.glob("*.pt"))) == 1
    monkeypatch.setattr(digits, "STEPS", 3)
    outcome = run(Setting(folder, output=out, quick=False))
    assert any("left out: 200 epochs" in note for note in outcome.notes)
    (folder / "test_batch.bin").unlink()
    outcome = run(Setting(folder, output=out, quick=True))
    assert any(f"left out: no data_batch_1.bin and test_batch.bin in {folder}" in note for note in outcome.notes)


def test_devices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*arguments: str) -> str:
        with pytest.raises(SystemExit) as stopped:
            main(["reproduce", *arguments, "-o", str(tmp_path / "out")])
        assert stopped.value.code == 2
        return capsys.readouterr().err

    assert "CIFAR-10, the binary version" in refused("abstention", "--device", "cuda", "--data", str(tmp_path))
    assert "only abstention computes elsewhere" in refused("consistency", "--device", "cuda")
    assert "name it" in refused("--device", "cuda")
    folder = write_batches(tmp_path / "sets")
    assert "--device nonsense cannot be used" in refused("abstention", "--data", str(folder), "--device", "nonsense")

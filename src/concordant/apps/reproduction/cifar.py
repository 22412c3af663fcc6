"""CIFAR-10 from the official binary batches: a label byte, then 3 × 1,024 bytes of red, green and blue, row by row.

RwA Table 1 on CIFAR-10: runs of ResNet-34, and the pairs of the test set counted by distance on the device.

Training a scorer of images on the exponential loss over pairs, with the usual schedule; it can be resumed.

ResNet-34 for images of 32 × 32 pixels, with one score as its output (needs the extra torch).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from concordant.apps.reproduction.digits import PairProfile
from concordant.apps.reproduction.outcome import Setting
from concordant.errors import ConcordantError, InputError, UsageError, few
from concordant.io.log.disk import check_regular, in_place_of

TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = "test_batch.bin"
SIDE = 32
RECORD = 1 + 3 * SIDE * SIDE
PER_FILE = 10_000
CLASSES = 10
PUBLISHED = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    TEST: "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
"""SHA-256 of the six files."""


@dataclass(frozen=True, eq=False)
class Images:
    """Pixels 0 to 255, shape (images, 3, 32, 32), and labels 0 to 9."""

    train: NDArray[np.uint8]
    train_label: NDArray[np.int64]
    test: NDArray[np.uint8]
    test_label: NDArray[np.int64]
    note: str
    """Whether the files are the published ones."""


def read_cifar(folder: Path) -> Images:
    """Read the five training batches and the test batch.

    Errors (InputError): files that are missing, of another length than whole records, labels above 9.
    """
    missing = [name for name in (*TRAIN, TEST) if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{folder}: {few(missing)} not there; CIFAR-10 in its binary version is {len(TRAIN)} training batches "
            f"data_batch_1.bin to data_batch_5.bin and {TEST}"
        )
    parts = [_read(folder / name) for name in TRAIN]
    test, test_label = _read(folder / TEST)
    train, train_label = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Images(train, train_label, test, test_label, _note(folder, len(train), len(test)))


def _read(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    data = np.fromfile(path, np.uint8)
    if len(data) == 0 or len(data) % RECORD:
        raise InputError(
            f"{path}: {len(data):,} bytes are not whole records of {RECORD:,} bytes (a label, then 3 × 1,024 pixels); "
            f"a full batch has {PER_FILE:,} records, {PER_FILE * RECORD:,} bytes. The Python and Matlab versions of "
            "CIFAR-10 are other formats"
        )
    records = data.reshape(-1, RECORD)
    label = records[:, 0].astype(np.int64)
    if label.max() >= CLASSES:
        wrong = label >= CLASSES
        raise InputError(
            f"{path}: {int(wrong.sum()):,} of {len(label):,} records have a label above {CLASSES - 1} (first: "
            f"{label[wrong.argmax()]} in record {int(wrong.argmax()) + 1:,}); CIFAR-100 has two label bytes a record"
        )
    return records[:, 1:].reshape(-1, 3, SIDE, SIDE), label


def _note(folder: Path, train: int, test: int) -> str:
    other = [
        name for name, known in PUBLISHED.items() if hashlib.sha256((folder / name).read_bytes()).hexdigest() != known
    ]
    told = f"not the published files ({few(other)})" if other else "the published files by their checksums"
    return f"CIFAR-10: {train:,} training and {test:,} test images, {told}."


STAGES = (3, 4, 6, 3)
"""Blocks of ResNet-34 at each resolution."""
WIDTH = 64


class Block(nn.Module):  # type: ignore[misc]
    """Two 3 × 3 convolutions, added to the input (projected by 1 × 1 where the shape changes)."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outside)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        """Return the features (images, outside, height / stride, width / stride)."""
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(y)) + self.shortcut(x))


class ResNet(nn.Module):  # type: ignore[misc]
    """Images (n, 3, height, width) → scores (n,): 3 × 3 stem without pooling, four stages, global mean, linear.

    With the default stages and width it has the layers of ResNet-34 (He et al., 2016) in the form usual for CIFAR.
    ``width`` and ``stages`` make smaller ones of the same kind. Starts from torch's generator.
    """

    def __init__(self, width: int = WIDTH, stages: tuple[int, ...] = STAGES) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.stem_norm = nn.BatchNorm2d(width)
        blocks, inside = [], width
        for stage, number in enumerate(stages):
            outside = width << stage
            for place in range(number):
                blocks.append(Block(inside, outside, 2 if stage and not place else 1))
                inside = outside
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inside, 1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Return one score for each image."""
        y = self.blocks(torch.relu(self.stem_norm(self.stem(x))))
        return self.head(y.mean(dim=(2, 3))).squeeze(1)


PAD = 4
CLIP = 5.0
"""Longest gradient: the exponential loss has no bound on its own, and one bad batch would end the training."""


@dataclass(frozen=True)
class Schedule:
    """How one network is trained."""

    epochs: int = 200
    batch: int = 1024
    rate: float = 0.1
    rising: int = 5
    """Epochs in which the rate rises from 0: at the full rate from the first step on the exponential loss overflows."""
    momentum: float = 0.9
    decay: float = 1e-4
    width: int = 64
    stages: tuple[int, ...] = (3, 4, 6, 3)
    seed: int = 0

    def rate_at(self, step: int, steps: int) -> float:
        """Rate of a step, ``steps`` of them in an epoch: half a cosine to 0, times the share of the rise that is done.

        >>> [round(Schedule(epochs=10).rate_at(step, 2), 3) for step in (0, 4, 9, 15)]
        [0.01, 0.045, 0.058, 0.015]
        """
        turned = math.cos(math.pi * step / (self.epochs * steps))
        risen = min(1.0, (step + 1) / (self.rising * steps)) if self.rising else 1.0
        return 0.5 * self.rate * (1 + turned) * risen


def pairwise_exponential(score: Tensor, label: Tensor) -> Tensor:
    """Return the mean of exp(−(h_j − h_i)) over the pairs of the batch with label_j > label_i.

    Sums over labels in float64 in place of sums over pairs: O(n) work, exact for gaps of score up to some 700.

    >>> pairwise_exponential(torch.tensor([0.0, 1.0, 5.0]), torch.tensor([0, 1, 1])).round(decimals=4).item()
    0.1873
    """
    h = score.double()
    h = h - h.detach().mean()
    member = nn.functional.one_hot(label.long()).double()
    up, down, size = torch.exp(h) @ member, torch.exp(-h) @ member, member.sum(dim=0)
    pairs = (size.sum() ** 2 - (size**2).sum()) / 2
    return (down * (up.cumsum(0) - up)).sum() / pairs.clamp(min=1.0)


def augmented(images: Tensor, rows: Tensor, columns: Tensor, flip: Tensor) -> Tensor:
    """Crop images (n, 3, s, s), padded by 4 black pixels, at offsets 0 to 8 (n,); mirror those of ``flip``."""
    side = images.shape[-1]
    padded = nn.functional.pad(images, (PAD, PAD, PAD, PAD))
    along = torch.arange(side, device=images.device)
    across = torch.where(flip[:, None], side - 1 - along, along)
    picture = torch.arange(len(images), device=images.device)[:, None, None, None]
    channel = torch.arange(images.shape[1], device=images.device)[None, :, None, None]
    down = (rows[:, None] + along)[:, None, :, None]
    return padded[picture, channel, down, (columns[:, None] + across)[:, None, None, :]]


def _layout(device: torch.device) -> torch.memory_format:
    """How images lie in memory: by pixels on a GPU, which is faster there.

    On a processor with AVX2 alone PyTorch 2.13 frees memory twice in the gradient of such a convolution.
    """
    return torch.channels_last if device.type == "cuda" else torch.contiguous_format


class _Training:
    """Network, optimiser and images on one device."""

    def __init__(self, images: Tensor, label: Tensor, schedule: Schedule, device: torch.device) -> None:
        self.schedule, self.device = schedule, device
        self.images, self.label = images.to(device), label.to(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(schedule.seed)
            self.net = ResNet(schedule.width, schedule.stages).to(device, memory_format=_layout(device))
        self.optimiser = torch.optim.SGD(
            self.net.parameters(),
            lr=schedule.rate,
            momentum=schedule.momentum,
            weight_decay=schedule.decay,
            nesterov=True,
        )
        self.mean, self.scale = _channels(self.images)
        self.steps = max(1, len(images) // schedule.batch)

    def epoch(self, number: int) -> float:
        """Pass once over the images, order and crops drawn from seed and epoch alone; return the mean loss."""
        draw = torch.Generator().manual_seed(self.schedule.seed * 1_000_003 + number)
        order = torch.randperm(len(self.images), generator=draw)
        crop = torch.randint(0, 2 * PAD + 1, (2, len(order)), generator=draw)
        flip = torch.rand(len(order), generator=draw) < 0.5
        order, crop, flip = (each.to(self.device) for each in (order, crop, flip))
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        self.net.train()
        for step in range(self.steps):
            part = slice(step * self.schedule.batch, (step + 1) * self.schedule.batch)
            for group in self.optimiser.param_groups:
                group["lr"] = self.schedule.rate_at(number * self.steps + step, self.steps)
            chosen = order[part]
            x = augmented(self.images[chosen], crop[0, part], crop[1, part], flip[part])
            total += self._step(x, self.label[chosen])
        loss = float(total) / self.steps
        if not math.isfinite(loss):
            raise ConcordantError(f"the training diverged in epoch {number + 1}: the exponential loss is {loss:g}")
        return loss

    def _step(self, x: Tensor, label: Tensor) -> Tensor:
        x = ((x.float() - self.mean) / self.scale).contiguous(memory_format=_layout(self.device))
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
            score = self.net(x)
        loss = pairwise_exponential(score, label)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), CLIP)
        self.optimiser.step()
        return loss.detach()


def train(
    images: Tensor,
    label: Tensor,
    schedule: Schedule,
    *,
    device: str,
    kept: Path,
    progress: Callable[[], None],
) -> tuple[ResNet, list[float]]:
    """Train a network on images (n, 3, s, s) of bytes, or go on where ``kept`` left off; also the loss of each epoch.

    After each epoch the state is written to ``kept``, whole or not at all. SGD with Nesterov momentum, the rate on a
    cosine after a rise, crops and mirror images; on a GPU in bfloat16 with the loss in float64. An order and crops
    depend on seed and epoch alone, so on the CPU a training that was stopped ends as one that was not, to the bit.
    Errors: ConcordantError when the loss stops being finite, InputError when ``kept`` belongs to another training.
    """
    training = _Training(images, label, schedule, torch.device(device))
    losses: list[float] = []
    if kept.exists():
        check_regular(kept)
        losses = _resume(training, kept)
    for _ in losses:
        progress()
    for number in range(len(losses), schedule.epochs):
        losses.append(training.epoch(number))
        _keep(training, losses, kept)
        progress()
    return training.net, losses


def scores_of(net: ResNet, images: Tensor, like: Tensor, *, batch: int = 1000) -> Tensor:
    """Scores of images in float32 by a trained network, normalised as the training images ``like`` were."""
    device = next(net.parameters()).device
    mean, scale = (each.to(device) for each in _channels(like))
    net.eval()
    with torch.no_grad():
        return torch.cat([net((part.to(device).float() - mean) / scale) for part in images.split(batch)])


def _channels(images: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each channel, shape (3, 1, 1), from exact counts of the 256 values."""
    counts = torch.stack([torch.bincount(channel.flatten(), minlength=256) for channel in images.transpose(0, 1)])
    share = counts.double() / counts.sum(dim=1, keepdim=True)
    value = torch.arange(256, device=images.device, dtype=torch.float64)
    mean = share @ value
    scale = (share @ value**2 - mean**2).clamp(min=1e-12).sqrt()
    return mean.float()[:, None, None], scale.float()[:, None, None]


def _print(training: _Training) -> dict[str, Any]:
    """What must be the same for a training to go on."""
    schedule = {
        name: list(value) if isinstance(value, tuple) else value for name, value in asdict(training.schedule).items()
    }
    return schedule | {"images": len(training.images), "sum of labels": int(training.label.sum())}


def _keep(training: _Training, losses: list[float], kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    state = {
        "training": _print(training),
        "losses": losses,
        "net": training.net.state_dict(),
        "optimiser": training.optimiser.state_dict(),
    }
    with in_place_of(kept) as beside:
        torch.save(state, beside)


def _resume(training: _Training, kept: Path) -> list[float]:
    try:
        state = torch.load(kept, map_location=training.device, weights_only=True)
        held = state["training"]
    except Exception as error:
        raise InputError(
            f"{kept} is not the state of a training ({type(error).__name__}); remove it to begin anew"
        ) from None
    if held != (mine := _print(training)):
        other = ", ".join(
            f"{name} {held.get(name)} there, {value} here" for name, value in mine.items() if held.get(name) != value
        )
        raise InputError(f"{kept} belongs to another training ({other}); name another --output or remove it")
    training.net.load_state_dict(state["net"])
    training.optimiser.load_state_dict(state["optimiser"])
    return list(state["losses"])


RUNS = 3
FULL, QUICK = Schedule(), Schedule(epochs=10)
BLOCK = 500
"""Test images whose distances to all later ones are computed at once."""


def cifar_profiles(images: Images, setting: Setting, folder: Path) -> list[PairProfile]:
    """Train and judge three networks (one, for fewer epochs, with ``setting.quick``); states are kept in ``folder``."""
    usable(setting.device)
    plan = QUICK if setting.quick else FULL
    runs = 1 if setting.quick else RUNS
    pixels, label, test, test_label = (
        torch.from_numpy(part) for part in (images.train, images.train_label, images.test, images.test_label)
    )
    done, found = 0, []

    def step() -> None:
        nonlocal done
        done += 1
        setting.progress(done, runs * plan.epochs)

    setting.progress(0, runs * plan.epochs)
    for number in range(runs):
        mine = replace(plan, seed=setting.seed * RUNS + number)
        kept = folder / f"abstention-cifar10-seed{mine.seed}-epochs{mine.epochs}.pt"
        net, _ = train(pixels, label, mine, device=setting.device, kept=kept, progress=step)
        score = scores_of(net, test, pixels)
        found.append(device_profile(test.to(score.device), test_label.to(score.device), score))
    return found


def usable(device: str) -> None:
    """Refuse a device that this torch does not have. Error (UsageError)."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = (str(error).splitlines() or ["?"])[0]
        raise UsageError(f"--device {device} cannot be used by this installation of PyTorch: {reason}") from None


def device_profile(images: Tensor, label: Tensor, score: Tensor) -> PairProfile:
    """Count all pairs of images of bytes by the ℓ∞ distance of their pixels, 0 to 255, where the tensors are.

    The distances of a block of images to all later ones are computed at once; values are whole and exact in float32.
    """
    pixels = images.flatten(1).float()
    pairs, wrong = np.zeros((2, 256), np.int64)
    later = torch.arange(len(pixels), device=pixels.device)
    for begin in range(0, len(pixels), BLOCK):
        here = slice(begin, begin + BLOCK)
        distance = torch.cdist(pixels[here], pixels[begin:], p=float("inf")).long()
        counts = (label[here, None] != label[None, begin:]) & (later[None, begin:] > later[here, None])
        order = torch.sign(label[None, begin:] - label[here, None]) * torch.sign(
            score[None, begin:] - score[here, None]
        )
        distance, order = distance[counts], order[counts]
        pairs += 2 * torch.bincount(distance, minlength=256).cpu().numpy()
        for twice in (order < 0, order <= 0):
            wrong += torch.bincount(distance[twice], minlength=256).cpu().numpy()
    return PairProfile(pairs, wrong)

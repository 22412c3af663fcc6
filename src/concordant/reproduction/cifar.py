"""CIFAR-10 from the official binary batches: a label byte, then 3 × 1,024 bytes of red, green and blue, row by row."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, few

__all__ = ["TEST", "TRAIN", "Images", "read_cifar"]

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

"""Where the data of the experiments lie, and where they come from."""

from __future__ import annotations

from pathlib import Path

from concordant.errors import InputError, few

__all__ = ["SOURCES", "find", "found"]

USUAL = (Path("data"), Path("../shared/data"))
"""Folders that are looked into without --data."""

SOURCES = {
    "ml-100k": (("u.data", "u.item"), "MovieLens-100K (ml-100k.zip, https://grouplens.org/datasets/movielens/100k/)"),
    "mslr": (
        ("mslr_merged_by_query.svm.gz", "Fold1/train.txt"),
        "MSLR-WEB10K (https://www.microsoft.com/en-us/research/project/mslr/), unpacked: Fold1/train.txt",
    ),
    "mq2008": (("S1.txt", "Fold1/train.txt"), "MQ2008 of LETOR 4.0 (five parts S1.txt … S5.txt, or Fold1/train.txt)"),
    "cifar-10-batches-bin": (
        ("data_batch_1.bin", "test_batch.bin"),
        "CIFAR-10, the binary version (https://www.cs.toronto.edu/~kriz/cifar.html), unpacked",
    ),
}
WHOLE = {"ml-100k", "cifar-10-batches-bin"}
"""Sets of which all these files are needed; of the others any one is enough."""
"""For each set: the files that show that a folder is it, and what to get and from where."""


def find(name: str, data: Path | None) -> Path:
    """Return the folder of a data set: ``data`` itself or its subfolder of that name; without it the usual places.

    Errors (InputError): it is not there; the message says what is needed.
    """
    folder = found(name, data)
    if folder is not None:
        return folder
    looked = [data] if data is not None else list(USUAL)
    tried = few([str(place) for root in looked for place in (root, root / name)])
    marks = (" and " if name in WHOLE else " or ").join(SOURCES[name][0])
    raise InputError(
        f"the data set {name} is not there (looked for {marks} in {tried}); get {SOURCES[name][1]} and name its folder "
        "with --data"
    )


def found(name: str, data: Path | None) -> Path | None:
    """Return the folder of a data set, or None."""
    marks = SOURCES[name][0]
    enough = all if name in WHOLE else any
    for root in [data] if data is not None else USUAL:
        for place in (root / name, root):
            if enough((place / mark).is_file() for mark in marks) and (place.name == name or not _another(name, place)):
                return place
    return None


def _another(name: str, place: Path) -> bool:
    """Whether the folder is called as another set is: both LETOR sets have a Fold1/train.txt."""
    return place.name in SOURCES and place.name != name

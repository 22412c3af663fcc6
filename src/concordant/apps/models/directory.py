"""The files of a model: JSON, plain arrays, and a list of their hashes that a changed byte does not pass."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, Unavailable, UsageError, few
from concordant.io.log.disk import check_regular, read_regular
from concordant.io.log.json_values import Fields, json_value
from concordant.record import wrote

STATE, HASHES = "model.json", "hashes.json"
LARGEST = 4 << 30
"""Bytes of a model that is read; a forest of 500 deep trees on 10^5 rows takes less than a tenth."""
LONGEST_LIST = 1 << 20
"""Bytes of the list of hashes."""


@dataclass(frozen=True)
class Contents:
    """What a model directory holds: values of JSON, arrays by name, other files by name."""

    values: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    sign: str = ""
    """Of what was read: the SHA-256 of all that decides a score (``sign_of``)."""


ORIGIN = ("concordant", "about", "made")
"""What a model says of where it comes from: it decides no score."""


def sign_of(values: Mapping[str, Any], hashes: Mapping[str, str]) -> str:
    """Return the SHA-256 of a model: of all that decides a score, whenever and from whatever files it was fitted."""
    deciding = {name: value for name, value in values.items() if name not in ORIGIN}
    others = {name: sign for name, sign in sorted(hashes.items()) if name != STATE}
    return hashlib.sha256(json.dumps([deciding, others], sort_keys=True).encode()).hexdigest()


def check_target(path: str | os.PathLike[str]) -> Path:
    """Refuse a place that a model may not be written to; an older model there may be replaced."""
    target = Path(path)
    if not os.fspath(path):
        raise UsageError("the name of the model is empty; name a directory")
    if target.is_dir() and any(target.iterdir()) and not (target / HASHES).is_file():
        raise UsageError(f"{target}: the directory is not empty and holds no model; name another one")
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is a file; a model is a directory")
    folder = target.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"{target}: the folder {target.parent} does not exist")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Unavailable(f"{target}: no permission to write in the folder {target.parent}")
    return target


def is_model(folder: Path) -> bool:
    """Whether a folder is a model's directory, in which nothing else may lie."""
    return (folder / HASHES).is_file() and (folder / STATE).is_file()


def write_directory(path: str | os.PathLike[str], contents: Contents) -> Path:
    """Write a model, whole or not at all; replaces the model that was there."""
    target = check_target(path)
    files = dict(contents.files)
    for name, array in contents.arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        files[f"{name}.npy"] = buffer.getvalue()
    values = json.dumps(contents.values, ensure_ascii=False, allow_nan=False, indent=1)
    files[STATE] = f"{values}\n".encode()
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    files[HASHES] = _listed(hashes)
    place, token = Path(os.path.realpath(target)), uuid4().hex[:12]  # a link stays one
    made, old = (place.with_name(f".concordant-{token}{end}") for end in ("", "-old"))
    try:
        made.mkdir()
        for name, data in files.items():
            (made / name).write_bytes(data)
        if place.exists():
            place.rename(old)
        made.replace(place)
        wrote(place, sha256=sign_of(contents.values, hashes), files=sorted(files))
    except OSError as error:
        raise Unavailable(f"{target}: {error.strerror or error}") from None
    finally:  # also after Ctrl-C: the old model or the new one, and nothing else
        if old.exists() and not place.exists():
            old.rename(place)
        shutil.rmtree(made, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
    return target


def read_directory(path: str | os.PathLike[str]) -> Contents:
    """Read a model whose files are the ones that were written, byte for byte.

    Errors (InputError): no model there, a file too few or too many, a changed byte in any of them.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no model directory")
    if not (folder / HASHES).is_file():
        raise InputError(f"{folder} holds no model: {HASHES} is missing")
    raw = read_regular(folder / HASHES, LONGEST_LIST)
    try:
        hashes = Fields(json_value(raw, HASHES), HASHES).fields("files").values
        changed = raw != _listed(hashes)
    except (InputError, TypeError):
        changed = True
    if changed:
        raise InputError(f"{folder / HASHES} was changed since the model was written")
    there = {file.name for file in folder.iterdir()} - {HASHES}
    if lacking := sorted(set(hashes) - there):
        raise InputError(f"{folder}: files of the model are missing: {few(lacking)}")
    if extra := sorted(there - set(hashes)):
        raise InputError(f"{folder}: files that are not of the model: {few(extra)}; move them away")
    size = sum(check_regular(folder / name).st_size for name in hashes)
    if size > LARGEST:
        raise InputError(f"{folder}: the files of the model hold {size:,} bytes; at most {LARGEST:,} are read")
    files = {name: read_regular(folder / name, LARGEST) for name in hashes}
    for name, data in files.items():
        if hashlib.sha256(data).hexdigest() != hashes[name]:
            raise InputError(f"{folder / name} was changed since the model was written (its SHA-256 differs)")
    values = _parsed(folder / STATE, files.pop(STATE)) if STATE in files else None
    if not isinstance(values, dict):
        raise InputError(f"{folder} holds no model: {STATE} is missing")
    arrays = {
        name.removesuffix(".npy"): _parsed(folder / name, files.pop(name))
        for name in sorted(files)
        if name.endswith(".npy")
    }
    return Contents(values, arrays, files, sign_of(values, hashes))


def _parsed(place: Path, data: bytes) -> Any:
    """Return what a JSON document or an array holds. Errors (InputError): bytes that are neither, or hold a pickle."""
    if place.suffix != ".npy":
        return json_value(data, str(place))
    try:
        return _array(data)
    except Exception as error:  # NumPy evaluates the header of an array: foreign bytes raise anything
        raise InputError(f"{place}: cannot be read: {type(error).__name__}: {error}") from None


def _array(data: bytes) -> NDArray[Any]:
    """Return the numbers of a file in NumPy's format, as many as its bytes hold, before room is made for them."""
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("not of version 1.0 of NumPy's format")
    shape, _, kind = np.lib.format.read_array_header_1_0(stream)
    if kind.kind not in "biuf" or min(shape, default=0) < 0:
        raise ValueError(f"an array of {kind}, shape {shape}")
    if math.prod(shape) * kind.itemsize != len(data) - stream.tell():
        raise ValueError(f"an array of shape {shape} and type {kind} in {len(data) - stream.tell():,} bytes")
    stream.seek(0)
    found: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return found.astype(kind.newbyteorder("="), order="C", copy=False)


def _listed(hashes: Mapping[str, str]) -> bytes:
    """Return the hashes as the one text that stands for them, with a hash of the list itself."""
    files = dict(sorted(hashes.items()))
    own = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    return (json.dumps({"files": files, "of this list": own}, indent=1) + "\n").encode()

"""Files in object stores (``s3://``, ``gs://``, ``abfss://``), by ``pyarrow.fs``: which there are, and what they hold.

Credentials, region and endpoint are those of the environment, as Arrow takes them (AWS_ACCESS_KEY_ID, AWS_PROFILE,
AWS_ENDPOINT_URL, …). Texts are copied to a temporary file before they are read, and the copy is held against the size
that the store says; of Parquet the columns that are asked for are read batch by batch, where they lie.
"""

from __future__ import annotations

import difflib
import fnmatch
import glob
import os
import re
import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from pyarrow import fs

from concordant.errors import ConcordantError, InputError, Unavailable
from concordant.io.log.lakes import DELTA, DESCRIBES, METADATA, UNFINISHED, Found, among_others, is_hidden
from concordant.io.log.stream import Stream, in_utc
from concordant.progress import stage

ADDRESS = re.compile(r"(s3|gs|gcs|abfs|abfss)://", re.IGNORECASE)
BLOCK = 1 << 23
"""Bytes that one request asks for."""
ROWS = 1 << 17
AT_ONCE = 8
"""Files that are copied at the same time."""
ACCESS = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE|TOKEN|CREDENTIAL|Forbidden|Permission|UNAUTHENTICATED|authentication"
    r"|\b(401|403)\b"
)
"""What a store says that refuses access: the numbers alone, which are parts of the names of files, too."""
CREDENTIALS = (
    "credentials are taken from the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; "
    "GOOGLE_APPLICATION_CREDENTIALS"
)
SECRET = re.compile(r"//[^/@:]+:[^/@]*@")


@dataclass(frozen=True)
class Remote:
    """A file in an object store, as it was when it was listed."""

    store: Any = field(compare=False)
    key: str
    address: str
    size: int

    @property
    def name(self) -> str:
        """The last part of its address."""
        return PurePosixPath(self.key).name

    @property
    def suffixes(self) -> list[str]:
        """The endings of its name."""
        return PurePosixPath(self.key).suffixes

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Open the file; at the end it has to be the one that it was. Errors: InputError, Unavailable."""
        with told(self.address), self.store.open_input_file(self.key) as file:
            sign = self.sign(file)
            if file.size() != self.size:
                raise InputError(
                    f"{self.address}: was changed while it was read, from {self.size:,} bytes to {file.size():,}"
                )
            yield file
            with self.store.open_input_file(self.key) as again:
                if self.sign(again) != sign:
                    raise InputError(f"{self.address}: was changed while it was read")

    @staticmethod
    def sign(file: Any) -> tuple[Any, ...]:
        """Return what changes with the content of an open file, as far as the store says it."""
        said = file.metadata()
        return (
            tuple([said.get(name) for name in ("ETag", "Generation", "Last-Modified", "Content-Length")])
            if said
            else (file.size(),)
        )


@contextmanager
def told(address: str) -> Iterator[None]:
    """Say in one line what a store, or what Arrow made of its answer, says; errors of our own pass."""
    try:
        yield
    except ConcordantError:
        raise
    except FileNotFoundError:
        raise InputError(f"{address}: is not there any more; it was when the store was listed") from None
    except (OSError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        if "NO_SUCH_BUCKET" in said or "bucket does not exist" in said:
            raise InputError(f"{address}: there is no such bucket") from None
        if isinstance(error, pa.ArrowInvalid) and "AWS Error" not in said:
            raise InputError(f"{address}: cannot be read: {said[:200]}") from None
        if ACCESS.search(said):
            raise Unavailable(f"{address}: the store refuses access ({short(said)}); {CREDENTIALS}") from None
        raise Unavailable(f"{address}: the store does not answer as it should: {short(said)}") from None


def short(said: str) -> str:
    """Return what a store says without what only it understands.

    >>> short("When listing objects: AWS Error SLOW_DOWN during ListObjectsV2 operation: Reduce it (Request ID: 7)")
    'AWS Error SLOW_DOWN during ListObjectsV2 operation: Reduce it'
    """
    said = re.sub(r"^When .*?: (?=AWS Error)", "", said)
    return re.split(r" \(Request ID|; Details: |\. Detail: ", said)[0][:200]


def is_object(given: str) -> bool:
    """Whether a text is an address in an object store that Arrow reads.

    >>> is_object("s3://bucket/votes.csv"), is_object("hdfs://host/votes.csv")
    (True, False)
    """
    return ADDRESS.match(given) is not None


@dataclass(frozen=True)
class Place:
    """An address, and the store that it leads to."""

    store: Any
    root: str
    """What the store calls the place where the keys of the address begin: its bucket or container."""
    begin: str
    """The address up to there."""
    rest: str
    """The rest of it: a key, a folder or a pattern."""

    @classmethod
    def of(cls, given: str) -> Place:
        """Return the place of an address. Errors (InputError): one that no store understands."""
        scheme, _, rest = given.partition("://")
        host, _, key = rest.partition("/")
        shown = SECRET.sub("//", f"{scheme}://{host}")
        if not host:
            raise InputError(f"{given}: an address names a bucket, as {scheme}://BUCKET/votes.parquet")
        try:
            with told(shown):
                store, root = fs.FileSystem.from_uri(f"{scheme.lower()}://{host}")
        except (ImportError, NotImplementedError, TypeError):
            raise Unavailable(f"{shown}: this Arrow is built without {scheme}://") from None
        return cls(store, root.rstrip("/"), f"{shown}/", re.sub("/+", "/", key).strip("/"))

    def at(self, key: str) -> str:
        """Return what the store calls a key."""
        return f"{self.root}/{key}".rstrip("/")

    def info(self, key: str) -> Any:
        """Return what the store knows of a key."""
        with told(self.begin + key):
            return self.store.get_file_info(self.at(key))

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder; none where there is no folder."""
        return [one.base_name for one in self.listed(folder, deep=False)] if self.info(folder).type else []

    def remote(self, info: Any) -> Remote:
        """Return a file that the store has listed."""
        return Remote(self.store, info.path, self.begin + info.path.removeprefix(f"{self.root}/"), info.size)

    def listed(self, folder: str, *, deep: bool) -> list[Any]:
        """Return what the store lists under a folder."""
        with told(self.begin + folder):
            found: list[Any] = self.store.get_file_info(
                fs.FileSelector(self.at(folder), recursive=deep, allow_not_found=False)
            )
        return found

    def files(self, folder: str) -> Iterator[tuple[Remote, str]]:
        """Yield the files under a folder, each with its key after that of the folder."""
        root = f"{self.at(folder)}/"
        for info in sorted(self.listed(folder, deep=True), key=lambda one: one.path):
            if info.type == fs.FileType.File:
                yield self.remote(info), info.path.removeprefix(root)


def found_at(place: Place, info: Any, *, many: bool = True) -> Found:
    """Return the files of a folder or a pattern at an address, of which the store knows ``info``.

    Errors: InputError where nothing is there, Unavailable where the store does not answer.
    """
    given = f"{place.begin}{place.rest}"
    if many and glob.has_magic(place.rest):
        return _matched(place)
    if not info.type:
        folder, _, name = place.rest.rpartition("/")
        names = []
        with suppress(InputError):
            names = [one.base_name for one in place.listed(folder, deep=False)]
        if not folder and not names:
            place.listed("", deep=False)  # says so where there is no such bucket
        close = difflib.get_close_matches(name, names, n=1)
        raise InputError(f"no file {given}{f'; did you mean {close[0]!r}?' if close else ''}")
    if not many:
        raise InputError(f"{given} is a folder; name a file in it")
    return _kept(place.files(place.rest))


def _matched(place: Place) -> Found:
    """Return the files that a pattern matches, and those in folders that it matches."""
    parts = place.rest.split("/")
    base = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    folder = "/".join(parts[:base])
    if folder and not place.info(folder).type:
        raise InputError(f"no file matches {place.begin}{place.rest}: there is no folder {place.begin}{folder}")
    prefix = f"{folder}/" * bool(folder)
    ahead = f"{place.begin}{prefix}"
    found = (
        (remote, called)
        for remote, called in place.files(folder)
        if any(_matches(called.split("/")[:end], parts[base:]) for end in range(1, called.count("/") + 2))
    )
    kept = _kept(found)
    if not kept.files and not kept.unfinished:
        raise InputError(f"no file matches {place.begin}{place.rest}")
    return Found(tuple([(one, f"{ahead}{called}") for one, called in kept.files]), kept.unfinished)


def _matches(names: Sequence[str], patterns: Sequence[str]) -> bool:
    if not patterns or not names:
        return not names and all(one == "**" for one in patterns)
    if patterns[0] == "**":
        return _matches(names, patterns[1:]) or _matches(names[1:], patterns)
    return fnmatch.fnmatchcase(names[0], patterns[0]) and _matches(names[1:], patterns[1:])


def _kept(found: Iterable[tuple[Remote, str]]) -> Found:
    files, unfinished = [], []
    for remote, called in found:
        for kind, inside in (("Delta", f"/{DELTA}/"), ("Iceberg", f"/{METADATA}/")):
            if inside in f"/{called}" and (kind == "Delta" or called.endswith(DESCRIBES)):
                raise among_others(remote.address.rpartition(inside)[0], kind)
        if any(is_hidden(part) for part in called.split("/")):
            continue
        if called.lower().endswith(UNFINISHED):
            unfinished.append(called)
        else:
            files.append((remote, called))
    return Found(tuple(files), tuple(unfinished))


# -- Parquet, where it lies ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class RemoteParquet(Stream):
    """A Parquet file in an object store: of its bytes those of the columns that are asked for are read."""

    remote: Remote

    @contextmanager
    def _file(self) -> Iterator[Any]:
        with self.remote.opened() as source:
            yield pa.parquet.ParquetFile(source, page_checksum_verification=True, pre_buffer=True)

    @cached_property
    def _head(self) -> tuple[pa.Schema, int]:
        with told(self.remote.address), self._file() as file:
            return in_utc(file), file.metadata.num_rows

    @property
    def schema(self) -> pa.Schema:
        return self._head[0]

    @property
    def rows(self) -> int:
        return self._head[1]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._file() as file:
            yield from file.iter_batches(batch_size=ROWS, columns=list(columns))


# -- copies --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Copy:
    """A copy of a file on this machine, which goes when nobody needs it any more."""

    path: Path


_COPIES: weakref.WeakValueDictionary[tuple[Any, ...], Copy] = weakref.WeakValueDictionary()
_LATEST: deque[list[Copy]] = deque(maxlen=4)
"""Copies of the last logs: one command may look for its log several times."""


def copies(remotes: Sequence[Remote]) -> list[Copy]:
    """Return copies of some files, made at the same time where they are not there. Errors: InputError, Unavailable."""
    if not remotes:
        return []
    whole = sum(one.size for one in remotes)
    with stage("copying files", whole) as at, ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(_copied, one) for one in remotes]
        found, done = [], 0
        try:
            for remote, one in zip(remotes, running, strict=True):
                found.append(one.result())
                done += remote.size
                at.reach(done)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    _LATEST.append(found)
    return found


def _copied(remote: Remote) -> Copy:
    with remote.opened() as source:
        sign = (remote.address, remote.size, *Remote.sign(source))
        if (known := _COPIES.get(sign)) is not None and known.path.exists():
            return known
        folder = tempfile.mkdtemp(prefix="concordant-")
        try:
            parts = [part if part not in ("", ".", "..") else "_" for part in remote.key.split("/")]
            path = Path(folder, *parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            _fill(path, remote, source)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    made = Copy(path)
    weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)
    _COPIES[sign] = made
    return made


def _fill(path: Path, remote: Remote, source: Any) -> None:
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise Unavailable(f"{remote.address}: a copy in {tempfile.gettempdir()}: {error.strerror or error}") from None
    with open(target, "wb") as file:
        while block := source.read(BLOCK):
            try:
                file.write(block)
            except OSError as error:
                where = f"its copy of {remote.size:,} bytes in {tempfile.gettempdir()} (TMPDIR names another folder)"
                raise Unavailable(f"{remote.address}: {where}: {error.strerror or error}") from None
        if file.tell() != remote.size:
            raise Unavailable(f"{remote.address}: {file.tell():,} of {remote.size:,} bytes came, the rest did not")

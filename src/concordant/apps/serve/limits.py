"""Who may ask, and for how much: hosts and a token, the size of a body and its time, how many requests at once."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any

import pydantic

from concordant.errors import UsageError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]
JSON = "application/json"
READ = {b"content-type", b"content-encoding", b"content-length", b"upgrade"}
TEXTS: pydantic.TypeAdapter[dict[str, str]] = pydantic.TypeAdapter(dict[str, str])


@dataclass(frozen=True)
class Limits:
    """How much one request may hold, and how many requests are taken at once.

    >>> Limits(items=0)
    Traceback (most recent call last):
    ...
    concordant.errors.UsageError: the limit of items must be at least 1, not 0
    """

    items: int = 1000
    """Items, or pairs of them, in one request."""
    body: int = 4_000_000
    """Bytes of a body."""
    concurrency: int = 64
    """Requests that wait or are worked on at once, in each worker; more are refused with 503."""
    timeout: float = 10.0
    """Seconds in which the whole of a request must have arrived."""

    def __post_init__(self) -> None:
        for name in ("items", "body", "concurrency", "timeout"):
            least = 0.001 if name == "timeout" else 1
            if not getattr(self, name) >= least:
                raise UsageError(f"the limit of {name} must be at least {least:g}, not {getattr(self, name):g}")


class Refused(Exception):
    """A request that is not answered: a status of HTTP and one line that says why."""

    def __init__(self, status: int, line: str, *, close: bool = False, headers: Headers = ()) -> None:
        super().__init__(line)
        self.status = status
        self.line = line
        self.headers = [*headers, (b"connection", b"close")] if close else [*headers]
        """A body that is not read to its end leaves a connection that is of no more use."""


def error_bytes(line: str) -> bytes:
    """Return the body of an error: ``{"error": "one line"}``.

    >>> error_bytes("no such path")
    b'{"error":"no such path"}'
    """
    return TEXTS.dump_json({"error": " ".join(line.split())})


async def answered(send: Send, status: int, body: bytes, headers: Headers = ()) -> None:
    """Send an answer whose body is JSON."""
    told = [(b"content-type", JSON.encode()), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})


async def body_of(headers: Headers, receive: Receive, limits: Limits) -> bytes:
    """Return the body of a request.

    Errors (Refused): 415 for another type than JSON, 413 for more bytes than allowed (known from content-length before
    a byte is read, counted otherwise), 408 for one that does not arrive in time, 400 for a client that went away or
    asks for another protocol.
    """
    given = {name: value.decode("latin-1") for name, value in headers if name in READ}
    if b"upgrade" in given:  # the web server takes what follows such a head for another protocol: the body is lost
        raise Refused(400, "only HTTP/1.1 is spoken here: send no header upgrade (h2c, websocket)", close=True)
    kind = given.get(b"content-type", "").split(";")[0].strip().lower()
    if kind != JSON:
        said = f"not {kind[:60]!r}" if kind else "none was given"
        raise Refused(415, f"content-type must be {JSON}, {said}", close=True)
    if given.get(b"content-encoding", "identity") != "identity":
        raise Refused(415, "content-encoding must be identity: send the body uncompressed", close=True)
    length = given.get(b"content-length", "0")
    if length.isdigit() and int(length[:20]) > limits.body:
        _too_large(f"{int(length[:20]):,}", limits)
    try:
        async with asyncio.timeout(limits.timeout):
            return await _received(receive, limits)
    except TimeoutError:
        line = f"the body did not arrive within {limits.timeout:g} s"
        raise Refused(408, line, close=True) from None


async def _received(receive: Receive, limits: Limits) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Refused(400, "the client went away before its request was whole", close=True)
        part = message.get("body", b"")
        size += len(part)
        if size > limits.body:
            _too_large(f"more than {limits.body:,}", limits)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(size: str, limits: Limits) -> None:
    raise Refused(413, f"the body has {size} bytes; at most {limits.body:,} are allowed", close=True)


HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]{1,253})(?::\d{1,5})?")
LOOPBACK = "localhost"


def host_name(text: str) -> str | None:
    """Return the name that a header ``host`` begins with, in the one form in which names are compared; None for none.

    >>> host_name("Example.org.:8080"), host_name("[::1]:80"), host_name("a b")
    ('example.org', '::1', None)
    """
    found = HOST.fullmatch(text)
    return None if found is None else found["name"].strip("[]").lower().removesuffix(".")


class Access:
    """Whom the server answers: requests that name one of its hosts and, where there is one, show the token.

    A page of another site can make a browser send requests to this machine under a name of its own (DNS rebinding), but
    not under one of ``names``, and not under an address: loopback names are always allowed, and where ``addresses``
    says that all interfaces are listened on, any address is.

    >>> access = Access(["ranker.example.org"], token="s3cret-s3cret-s3cret")
    >>> access.refusal({"headers": [(b"host", b"evil.example:8080")], "http_version": "1.1"}).status
    421
    >>> access.refusal({"headers": [(b"host", b"localhost:8080")], "http_version": "1.1"}).status
    401
    """

    def __init__(self, names: Iterable[str] | None, *, addresses: bool = False, token: str | None = None) -> None:
        self.names = None if names is None else frozenset({LOOPBACK, *(name.strip("[]").lower() for name in names)})
        self.addresses = addresses
        self.digest = None if token is None else hashlib.sha256(token.encode()).digest()

    def refusal(self, scope: Scope) -> Refused | None:
        """Why a request is not answered; None: it is."""
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if self.names is not None and len(hosts) != 1 and not (hosts == [] and scope["http_version"] == "1.0"):
            return Refused(400, f"a request has one header host, this one has {len(hosts)}", close=True)
        if self.names is not None and hosts and not self._knows(self.names, hosts[0].decode("latin-1").strip()):
            shown = ascii(hosts[0].decode("latin-1")[:60])
            return Refused(421, f"no host {shown} is served here; --host-name NAME adds one", close=True)
        if self.digest is None or _shown(self.digest, scope):
            return None
        ask = [(b"www-authenticate", b"Bearer")]
        return Refused(
            401, "the header authorization must be Bearer and the token of this server", close=True, headers=ask
        )

    def _knows(self, names: Collection[str], host: str) -> bool:
        name = host_name(host)
        if name is None or name in names:
            return name is not None
        try:
            return ipaddress.ip_address(name).is_loopback or self.addresses
        except ValueError:  # a name, and none of ours
            return False


def _shown(digest: bytes, scope: Scope) -> bool:
    """Whether the token is there; takes as long whatever the token given is."""
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    scheme, _, token = (given[0] if len(given) == 1 else b"").partition(b" ")
    same = hmac.compare_digest(hashlib.sha256(token.strip()).digest(), digest)
    return same and scheme.lower() == b"bearer"


class Door:
    """ASGI middleware that lets in whom ``Access`` does, before anything else of a request is looked at."""

    def __init__(self, app: App, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self.access.refusal(scope) if scope["type"] == "http" else None
        if refused is None:
            return await self.app(scope, receive, send)
        return await answered(send, refused.status, error_bytes(refused.line), refused.headers)


class ConcurrencyLimit:
    """ASGI middleware that takes so many requests at once and refuses others at once with 503 and Retry-After.

    A request that was let in gives the loop one turn before it is worked on: so all that have arrived meanwhile are
    counted, and what is too much is refused before it has waited. GET requests (health) always pass.
    """

    def __init__(self, app: App, most: int) -> None:
        self.app = app
        self.most = most
        self.inside = 0
        self.busy = error_bytes(f"busy: {most:,} requests are taken at once; try again in a second")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] == "GET":
            return await self.app(scope, receive, send)
        if self.inside >= self.most:
            return await answered(send, 503, self.busy, [(b"retry-after", b"1")])
        self.inside += 1
        try:
            await asyncio.sleep(0)
            await self.app(scope, receive, send)
        finally:
            self.inside -= 1
        return None

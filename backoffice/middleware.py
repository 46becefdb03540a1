"""Middleware: refuse foreign hosts and origins, limit and unpack bodies, answer HEAD.

A web page the user visits can make the browser call a server on loopback, under the page's own host name
(DNS rebinding) or with a foreign Origin (request forgery). The MCP endpoint's own check covers only /mcp.
"""

import zlib
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backoffice.errors import failure
from registry.errors import InvalidRequest

MAX_BODY = 64 * 1024 * 1024
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
TOO_LARGE = f"The body is larger than {MAX_BODY // 1024 // 1024} MiB."


class HttpMiddleware:
    """Handles HTTP requests, and passes the server's other events on."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.handle if scope["type"] == "http" else self._app)(scope, receive, send)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError


class Guard(HttpMiddleware):
    """Refuses requests for other hosts, changes from other sites, and bodies that are too large.

    `host`: the address the server listens on; `known_as`: its name behind a proxy; `origins`: sites allowed anyway.
    """

    def __init__(self, app: ASGIApp, host: str, known_as: str = "", origins: Collection[str] = ()) -> None:
        super().__init__(app)
        self._origins = origins
        self._host, self._known_as = host.lower(), known_as.lower()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        problem = self._problem_of(scope["method"], headers)
        if problem:
            await failure(problem.as_dict())(scope, receive, send)
        elif _body_size(headers) > MAX_BODY:
            too_large = InvalidRequest(TOO_LARGE, f"Content-Length: given {_body_size(headers)}; allowed: {MAX_BODY}")
            await failure(too_large.as_dict(), 413)(scope, receive, send)
        else:
            await self._app(scope, _limit_size(receive), send)

    def _problem_of(self, method: str, headers: Headers) -> InvalidRequest | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_allowed_host(host):
            return InvalidRequest(
                "The request names another host.",
                f"Host: given {host!r}; allowed: localhost, a loopback address, or CTXR_HOST ({self._host})",
            )
        is_foreign = origin is not None and origin.partition("://")[2].lower() != host.lower()
        if method not in SAFE_METHODS and is_foreign and origin not in self._origins:
            return InvalidRequest(
                "The request comes from another site.", f"Origin: given {origin!r}; allowed: this host, {host}"
            )
        return None

    def _is_allowed_host(self, host: str) -> bool:
        name = _name_of(host)
        address, listening = _address_of(name), _address_of(self._host)
        if address is None:
            return name in ("localhost", self._host) or (bool(name) and name == self._known_as)
        # A server on a wildcard address is reached by any of the machine's addresses; a page cannot fake those.
        return address.is_loopback or address == listening or (listening is not None and listening.is_unspecified)


def _name_of(host: str) -> str:
    """Return the name in a Host header without port and brackets; empty if it is not valid."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _address_of(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        return None


def _body_size(headers: Headers) -> int:
    length = headers.get("content-length", "")
    return int(length) if length.isdecimal() else 0


def _limit_size(receive: Receive) -> Receive:
    size = 0

    async def receive_limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MAX_BODY:
            raise HTTPException(413, TOO_LARGE)
        return message

    return receive_limited


class ResponseHeaders(HttpMiddleware):
    """Adds headers to every response; answers HEAD as GET without the body, except where GET is an endless stream."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_head = scope["method"] == "HEAD" and not scope["path"].startswith(("/bo/events", "/mcp"))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Accept-Encoding"] = "gzip"  # so may bodies come: RFC 7694
            elif is_head:
                message = {**message, "body": b""}
            await send(message)

        await self._app({**scope, "method": "GET"} if is_head else scope, receive, send_with_headers)


NOT_GZIP = "The body is not gzip, as its Content-Encoding says."


class Gunzip(HttpMiddleware):
    """Unpacks gzip bodies, up to the size limit of a body."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_packed = Headers(scope=scope).get("content-encoding", "").lower() == "gzip"
        await self._app(scope, _unpack(receive) if is_packed else receive, send)


def _unpack(receive: Receive) -> Receive:
    decompressor = zlib.decompressobj(wbits=31)  # 31: gzip
    left = MAX_BODY

    async def receive_unpacked() -> Message:
        nonlocal left
        message = await receive()
        if message["type"] != "http.request":
            return message
        try:
            body = decompressor.decompress(message.get("body", b""), left + 1)
        except zlib.error as exc:
            raise HTTPException(400, NOT_GZIP) from exc
        left -= len(body)
        if left < 0:
            raise HTTPException(413, TOO_LARGE)
        if not (message.get("more_body") or decompressor.eof):
            raise HTTPException(400, NOT_GZIP)
        return {**message, "body": body}

    return receive_unpacked

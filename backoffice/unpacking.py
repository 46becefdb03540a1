"""What comes and goes compressed: request bodies, and answers to who is elsewhere."""

from __future__ import annotations

import zlib
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backoffice.guard import MAX_BODY, TOO_LARGE

GZIP = 31
"""zlib's number for this format."""
DAMAGED = "The body is not what its Content-Encoding, gzip, says."


PACKED_FROM = 1024
"""Bytes."""
PACKED_WELL = 4
"""zlib's level: a third of the time that its best takes, for a tenth more bytes at most."""


class Packing(GZipMiddleware):
    """Compresses answers to who takes that and is elsewhere: on this machine it costs time and saves none."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app, PACKED_FROM, PACKED_WELL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] == "http" and _is_on_this_machine(scope):
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _is_on_this_machine(scope: Scope) -> bool:
    """Whether who asks is; a proxy here speaks for somebody elsewhere."""
    headers, client = Headers(scope=scope), scope.get("client")
    if client is None or "x-forwarded-for" in headers or "forwarded" in headers:
        return False
    try:
        return ip_address(client[0]).is_loopback
    except ValueError:
        return False


class Unpacking:
    """Unpacks what comes as gzip, up to what a body may hold."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_packed = Headers(scope=scope).get("content-encoding", "").lower() == "gzip"
        await self._app(scope, _unpacked(receive) if is_packed else receive, send)


def _unpacked(receive: Receive) -> Receive:
    unpack = zlib.decompressobj(GZIP)
    left = MAX_BODY

    async def unpacking() -> Message:
        nonlocal left
        message = await receive()
        if message["type"] != "http.request":
            return message
        try:
            body = unpack.decompress(message.get("body", b""), left + 1)
        except zlib.error as exc:
            raise HTTPException(400, DAMAGED) from exc
        left -= len(body)
        if left < 0:
            raise HTTPException(413, TOO_LARGE)
        if not (message.get("more_body") or unpack.eof):
            raise HTTPException(400, DAMAGED)
        return {**message, "body": body}

    return unpacking

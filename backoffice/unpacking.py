"""Request bodies that come compressed."""

from __future__ import annotations

import zlib

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backoffice.guard import MAX_BODY, TOO_LARGE

GZIP = 31
"""zlib's number for this format."""
DAMAGED = "The body is not what its Content-Encoding, gzip, says."


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

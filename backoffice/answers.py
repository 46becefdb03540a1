"""What every answer has in common, whoever gives it: no guessing of types, and HEAD where there is GET."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ENDLESS = ("/bo/events", "/mcp")
"""Addresses that answer with streams: their head alone says nothing."""


class Answers:
    """Adds `nosniff` to every answer, and answers HEAD as GET without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_head = scope["method"] == "HEAD" and not scope["path"].startswith(ENDLESS)

        async def answering(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Content-Type-Options"] = "nosniff"
            elif is_head:
                message = {**message, "body": b""}
            await send(message)

        await self._app({**scope, "method": "GET"} if is_head else scope, receive, answering)

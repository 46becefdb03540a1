"""An event stream, as a browser keeps it open."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any

import anyio
from fastapi import FastAPI

Message = MutableMapping[str, Any]


class Stream:
    """An open event stream over the ASGI interface; httpx would wait for its end."""

    def __init__(
        self,
        app: FastAPI,
        last_event_id: str | None,
        headers: Mapping[str, str] = MappingProxyType({}),
        query: str = "",
    ) -> None:
        self._app = app
        given = {"host": "localhost", **headers, **({"last-event-id": last_event_id} if last_event_id else {})}
        sent = [(name.encode(), value.encode()) for name, value in given.items()]
        self._scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/bo/events", "headers": sent}
        self._scope["query_string"] = query.encode()
        self._sender, self._receiver = anyio.create_memory_object_stream[Message](1000)
        self._gone = anyio.Event()
        self._lines = ""
        self.ended = anyio.Event()

    async def run(self) -> None:
        async def receive() -> Message:
            await self._gone.wait()
            return {"type": "http.disconnect"}

        with self._sender, self._receiver:
            await self._app(self._scope, receive, self._sender.send)
        self.ended.set()

    async def opened(self) -> int:
        start = await self._receiver.receive()
        return int(start["status"])

    async def next(self) -> tuple[str, str, dict[str, Any]]:
        """Return the kind, id and item of the next event."""
        block = await self.block()
        while block.startswith(":"):
            block = await self.block()
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        return fields["event"], fields["id"], json.loads(fields["data"])

    async def block(self) -> str:
        """Return the next event or comment as written."""
        while "\n\n" not in self._lines:
            self._lines += await self.chunk()
        block, _, self._lines = self._lines.partition("\n\n")
        return block

    async def chunk(self) -> str:
        """Return what the server sends next at once."""
        body: bytes = (await self._receiver.receive()).get("body", b"")
        return body.decode()

    def leave(self) -> None:
        self._gone.set()


Open = Callable[..., AbstractAsyncContextManager[Stream]]

"""The HTTP API of a registry elsewhere, as far as it is needed to send to it and to read from it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from registry.domain import parse_time
from registry.storage.exchange.edits import Edit, Edits

REQUEST_S = 30.0
COMPRESSED_FROM = 500
"""Bytes; less is not made smaller."""
PAGE = 200
_REFUSED = frozenset({400, 404, 413, 422})
"""What was sent is wrong: sent again it would be refused again."""
_CLOSED = frozenset({401, 403})


class Unreachable(Exception):
    """The registry elsewhere cannot be reached, or lets nobody in."""


class Closed(Unreachable):
    """It answers, and does not let this machine in."""


class Refused(Exception):
    """It does not take what was sent."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What was stored there since a place; `place` is the next one, `is_all` says whether that is all for now."""

    items: list[dict[str, Any]]
    place: int
    is_all: bool


class RemoteRegistry:
    """Talks to the registry at an address with a token. An async context manager."""

    def __init__(self, url: str, token: str = "", transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.AsyncClient(base_url=self.url, headers=headers, timeout=REQUEST_S, transport=transport)
        self._takes_gzip: bool | None = None  # a server says so in its answers

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def log(self, conversation: Mapping[str, Any]) -> dict[str, Any]:
        """Store a conversation there: `conversation_log`'s arguments and result. Refused, Unreachable."""
        return await self._answer("POST", "/bo/conversations", conversation)

    async def changes(self, after: int) -> Changes:
        """What was stored there behind a place."""
        found = await self._answer("GET", "/bo/changes", after=after)
        return Changes(found["items"], found["place"], found["is_all"])

    async def channel(self, name: str) -> dict[str, Any]:
        """What it knows of a channel."""
        return await self._answer("GET", f"/bo/channels/{quote(name, safe='')}")

    async def message(self, message_id: str) -> dict[str, Any]:
        """One message."""
        return await self._answer("GET", f"/bo/conversations/{quote(message_id, safe='')}")

    async def messages(self, channel: str) -> list[dict[str, Any]]:
        """All messages of a channel, oldest first."""
        found: list[dict[str, Any]] = []
        asked: dict[str, Any] = {"channel": channel, "order": "asc", "limit": PAGE}
        while True:
            page = await self._answer("GET", "/bo/conversations", **asked)
            found += page["items"]
            if not page["next_cursor"]:
                return found
            asked["cursor"] = page["next_cursor"]

    async def edits(self, after: int) -> Edits:
        """What was named, tagged, deleted and forgotten there behind a place."""
        found = await self._answer("GET", "/bo/edits", after=after)
        return Edits([_edit(item) for item in found["items"]], found["place"], found["is_all"])

    async def carry_out(self, edits: Sequence[Edit]) -> list[str | None]:
        """Have it do the same; of each why it is not done there."""
        answer = await self._answer("POST", "/bo/edits", {"items": [said.as_dict() for said in edits]})
        return [item["why"] for item in answer["items"]]

    async def _answer(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **asked: Any
    ) -> dict[str, Any]:
        try:
            headers, content = ({}, None) if body is None else await self._packed(body)
            answer = await self._client.request(method, path, params=asked, headers=headers, content=content)
            found: dict[str, Any] = answer.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as exc:
            raise Unreachable(f"{self.url}: {str(exc) or type(exc).__name__}") from exc
        self._note_encodings(answer)
        if answer.is_success:
            return found
        error = found.get("error") or {}
        why = f"{self.url}: {answer.status_code} {error.get('message', '')} {error.get('details', '')}".strip()
        if answer.status_code in _REFUSED:
            raise Refused(why)
        raise Closed(why) if answer.status_code in _CLOSED else Unreachable(why)

    async def _packed(self, body: Mapping[str, Any]) -> tuple[dict[str, str], bytes]:
        """The body, compressed where it is worth it and the server takes it so."""
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        headers = {"Content-Type": "application/json"}
        if len(content) < COMPRESSED_FROM:
            return headers, content
        if self._takes_gzip is None:
            self._note_encodings(await self._client.get("/health"))
        if not self._takes_gzip:
            return headers, content
        return {**headers, "Content-Encoding": "gzip"}, gzip.compress(content, mtime=0)

    def _note_encodings(self, answer: httpx.Response) -> None:
        self._takes_gzip = "gzip" in answer.headers.get("accept-encoding", "")


def _edit(item: Mapping[str, Any]) -> Edit:
    """One as it came over the line; what a newer release says beside is passed over."""
    known = {each.name: item[each.name] for each in fields(Edit) if each.name in item}
    return Edit(**{**known, "done_at": parse_time(item["done_at"])})

"""The HTTP API of a registry elsewhere, as far as it is needed to send to it and to read from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

REQUEST_S = 30.0
_REFUSED = frozenset({400, 404, 413, 422})
"""What was sent is wrong: sent again it would be refused again."""


class Unreachable(Exception):
    """The registry elsewhere cannot be reached, or lets nobody in."""


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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def log(self, conversation: Mapping[str, Any]) -> dict[str, Any]:
        """Store a conversation there: `conversation_log`'s arguments and result. Refused, Unreachable."""
        return await self._answer("POST", "/bo/conversations", json=conversation)

    async def changes(self, after: int) -> Changes:
        """What was stored there behind a place."""
        found = await self._answer("GET", "/bo/changes", params={"after": after})
        return Changes(found["items"], found["place"], found["is_all"])

    async def channel(self, name: str) -> dict[str, Any]:
        """What it knows of a channel."""
        return await self._answer("GET", f"/bo/channels/{quote(name, safe='')}")

    async def _answer(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        try:
            answer = await self._client.request(method, path, **given)
            body: dict[str, Any] = answer.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as exc:
            raise Unreachable(f"{self.url}: {str(exc) or type(exc).__name__}") from exc
        if answer.is_success:
            return body
        error = body.get("error") or {}
        why = f"{self.url}: {answer.status_code} {error.get('message', '')} {error.get('details', '')}".strip()
        raise Refused(why) if answer.status_code in _REFUSED else Unreachable(why)

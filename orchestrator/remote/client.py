"""Call the HTTP API of another registry."""

import gzip
import logging
import re
from asyncio import sleep
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Self
from urllib.parse import quote

import httpx

from registry.access import CHANNEL_REFUSED
from registry.domain import as_json, parse_time
from registry.errors import ErrorCode
from registry.storage.exchange.change_feed import Changes
from registry.storage.exchange.counterparts import NOT_GROWN
from registry.storage.exchange.edits import Edit
from registry.storage.safety.visibility import renamed_for

logger = logging.getLogger(__name__)

MAX_BYTES = 64 * 2**20  # of an unpacked answer; a registry accepts requests of the same size
_MISSING, _TOO_LARGE, _TOO_MANY = 404, 413, 429
_MAX_WAITS = 10  # for one request: other processes with the same token share the rate limit
_MAX_WAIT_S = 60
_REFUSAL_STATUSES = frozenset({400, _MISSING, _TOO_LARGE, 422})
"""Statuses that refuse the request permanently."""
_ALWAYS_FOUND = frozenset({("POST", "/bo/conversations"), ("GET", "/bo/changes")})
"""Requests to which a registry never answers NOT_FOUND."""
_BUSY_STATUSES = frozenset({_TOO_MANY, 502, 503, 504})  # statuses of a proxy while the registry behind it is down


class Unreachable(Exception):
    """The other registry cannot be reached, or refuses access."""


class AccessRefused(Unreachable):
    """The other registry refuses access."""


class RateLimited(Unreachable):
    """The other registry limits the rate of requests."""


class RemoteRefused(Exception):
    """The other registry refuses the request."""


class ChannelRefused(RemoteRefused):
    """The token does not allow that channel."""


class NotGrown(RemoteRefused):
    """The message stored there is not the beginning of the one sent."""


_REFUSALS_BY_MESSAGE = {CHANNEL_REFUSED: ChannelRefused, NOT_GROWN: NotGrown}
"""Exceptions by message of the refusal; otherwise RemoteRefused."""
_OUTAGES_BY_STATUS = {401: AccessRefused, 403: AccessRefused, _TOO_MANY: RateLimited}
"""Exceptions by status of an answer that does not refuse the request; otherwise Unreachable."""


class RemoteRegistry:
    """Client of the registry at an address. An async context manager.

    `notes_url`: the address in our notes about that registry, which may have been reached at another one before.
    `owner`: the person of the token, known after the first answer with changes.
    """

    def __init__(self, url: str, token: str = "", transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.url = self.notes_url = url.rstrip("/")
        self.owner: str | None = None
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.AsyncClient(base_url=self.url, headers=headers, timeout=30.0, transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def log(self, conversation: Mapping[str, Any]) -> dict[str, Any]:
        """Store a conversation there, as conversation_log does. Raises RemoteRefused, Unreachable."""
        return await self._answer("POST", "/bo/conversations", "stored_ids", conversation)

    async def changes(self, after: int) -> Changes[dict[str, Any]]:
        found = await self._answer("GET", "/bo/changes", "is_all", after=after)
        about = found["starts_over"], found.get("registry", ""), found.get("owner")  # older servers send neither
        self.owner = found.get("owner")
        return Changes(found["items"], found["place"], found["is_all"], *about)

    def is_of_other_person(self, owner: str | None) -> bool:
        """Return True if a channel there with this owner does not belong to the person of the token."""
        return self.owner is not None and owner not in (None, self.owner)

    def name_here(self, name: str) -> str:
        """Return the name that an own channel there has on the person's machines."""
        return name.removesuffix(renamed_for("", self.owner)) if self.owner else name

    async def channel(self, name: str) -> dict[str, Any]:
        return await self._answer("GET", f"/bo/channels/{quote(name, safe='')}", "session_id")

    async def message(self, message_id: str) -> dict[str, Any]:
        return await self._answer("GET", f"/bo/conversations/{quote(message_id, safe='')}", "id")

    async def messages(self, channel: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {"channel": channel, "order": "asc", "limit": 200}
        while True:
            page = await self._answer("GET", "/bo/conversations", "items", **params)
            found += page["items"]
            if not page["next_cursor"]:
                return found
            params["cursor"] = page["next_cursor"]

    async def edits(self, after: int) -> Changes[Edit]:
        found = await self._answer("GET", "/bo/edits", "is_all", after=after)
        return Changes([_edit(item) for item in found["items"]], found["place"], found["is_all"])

    async def apply_edits(self, edits: Sequence[Edit]) -> list[str | None]:
        """Send edits, and return for each the error, or None."""
        answer = await self._answer("POST", "/bo/edits", "items", {"items": [edit.as_dict() for edit in edits]})
        return [item["why"] for item in answer["items"]]

    async def _answer(
        self, method: str, path: str, expected_field: str, body: Mapping[str, Any] | None = None, **params: Any
    ) -> dict[str, Any]:
        """Return the answer, which a registry sends with the field `expected_field`."""
        try:
            headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"} if body is not None else {}
            content = gzip.compress(as_json(body).encode(), mtime=0) if body is not None else None
            request = self._client.build_request(method, path, params=params, headers=headers, content=content)
            answer = await self._send(request)
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise Unreachable(f"{self.url}: {str(exc) or type(exc).__name__}") from exc
        found = _object_in(answer)
        if answer.is_success and expected_field in found:
            return found
        can_be_missing = answer.status_code != _MISSING or (method, path) not in _ALWAYS_FOUND
        raise self._failure(answer, found.get("error") if can_be_missing else None)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        """Send a request; if it is rate limited, wait and retry."""
        for _ in range(_MAX_WAITS):
            answer = await self._read(await self._client.send(request, stream=True))
            wait_s = _retry_after_s(answer)
            if wait_s is None:
                return answer
            logger.warning("The remote registry accepts the next request in %s s: %s", wait_s, self.url)
            await sleep(wait_s)
        return await self._read(await self._client.send(request, stream=True))

    async def _read(self, answer: httpx.Response) -> httpx.Response:
        """Read an answer up to the size limit: a small one may be unpacked to any size."""
        content = bytearray()
        try:
            async for part in answer.aiter_bytes():
                content += part
                if len(content) > MAX_BYTES:
                    raise Unreachable(f"{self.url}: answers with more than {MAX_BYTES // 2**20} MiB")
        finally:
            await answer.aclose()
        headers = [(name, value) for name, value in answer.headers.items() if name != "content-encoding"]
        return httpx.Response(answer.status_code, headers=headers, content=bytes(content), request=answer.request)

    def _failure(self, answer: httpx.Response, error: object) -> Exception:
        prefix = f"{self.url}: {answer.status_code}"
        if isinstance(error, Mapping) and error.get("code") in set(ErrorCode):
            why = f"{prefix} {error.get('message', '')} {error.get('details', '')}".strip()
            if kind := _REFUSALS_BY_MESSAGE.get(str(error.get("message"))):
                return kind(why)
            if answer.status_code in _REFUSAL_STATUSES:
                return RemoteRefused(why)
            return _OUTAGES_BY_STATUS.get(answer.status_code, Unreachable)(why)
        why = f"{prefix} {answer.reason_phrase}"
        if answer.status_code == _TOO_LARGE:  # a proxy may accept less than the registry behind it
            return RemoteRefused(why)
        if answer.status_code in _BUSY_STATUSES:
            return _OUTAGES_BY_STATUS.get(answer.status_code, Unreachable)(why)
        redirected = f", sent on to {answer.headers['location']}" if answer.has_redirect_location else ""
        return Unreachable(f"{why}{redirected}; no registry answers like this: is CTXR_REMOTE_URL right?")


def _retry_after_s(answer: httpx.Response) -> int | None:
    """Return the seconds to wait before a retry; None if the request is not rate limited, or the wait is too long."""
    seconds = re.fullmatch(r"[0-9]{1,2}", answer.headers.get("Retry-After", ""))
    if answer.status_code != _TOO_MANY or not seconds or int(seconds[0]) > _MAX_WAIT_S:
        return None
    return max(int(seconds[0]), 1)


def _object_in(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _edit(item: Mapping[str, Any]) -> Edit:
    known = {each.name: item[each.name] for each in fields(Edit) if each.name in item}
    return Edit(**{**known, "done_at": parse_time(item["done_at"])})

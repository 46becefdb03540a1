"""Read Notion pages through Notion's MCP server: a Markdown snapshot of each changed page."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal

from orchestrator.outside.tools import ToolRefused, connected
from registry.domain import Message, Role, Session, parse_time
from registry.errors import StorageError
from registry.settings import McpServerSettings
from sources.base import FoundSession, Paths, Skipped, Source

# tools of @notionhq/notion-mcp-server that only read
SEARCH, READ, WHO = "API-post-search", "API-retrieve-page-markdown", "API-get-self"

CallTool = Callable[[str, Mapping[str, Any]], dict[str, Any]]


class Notion(Source):
    """A reader of pages as sessions; each snapshot of a page is a message."""

    name = "notion"

    def __init__(self, server: McpServerSettings, environment: Mapping[str, str] = os.environ) -> None:
        self._server, self._environment = server, environment

    def find(self, paths: Paths) -> Iterator[Path]:
        yield Path("Notion")

    def stamp(self, store: Path) -> str:
        """Return "": changes can only be found by asking Notion."""
        return ""

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """Yield the pages that were edited since the last sync. Raises StorageError."""
        try:
            with self._connected() as call:
                for page in _pages(call):
                    if seen.get(page["id"]) != page["last_edited_time"]:
                        yield _snapshot(call, page)
        except (ToolRefused, OSError) as exc:
            raise StorageError("Notion cannot be read.", str(exc)) from exc

    @contextmanager
    def _connected(self) -> Iterator[CallTool]:
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(connected("Notion", self._server, self._environment)) as call,
        ):
            yield lambda tool, arguments: json.loads(portal.call(call, tool, arguments))


def _pages(call: CallTool) -> Iterator[dict[str, Any]]:
    """Yield the pages that the integration can see, last edited first, without its own (our briefings)."""
    own_user_id = call(WHO, {})["id"]
    wanted: dict[str, Any] = {"filter": {"property": "object", "value": "page"}, "page_size": 100}  # Notion's maximum
    wanted["sort"] = {"timestamp": "last_edited_time", "direction": "descending"}
    while True:
        found = call(SEARCH, wanted)
        yield from (page for page in found["results"] if _is_wanted(page, own_user_id))
        if not found.get("has_more"):
            return
        wanted = {**wanted, "start_cursor": found["next_cursor"]}


def _is_wanted(page: Mapping[str, Any], own_user_id: str) -> bool:
    creator = (page.get("created_by") or {}).get("id")
    return creator != own_user_id and not (page.get("in_trash") or page.get("archived"))


def _snapshot(call: CallTool, page: Mapping[str, Any]) -> FoundSession | Skipped:
    id_, edited = page["id"], page["last_edited_time"]
    try:
        text = str(call(READ, {"page_id": id_}).get("markdown") or "")
    except ToolRefused as exc:  # the other pages can still be read
        return Skipped(id_, f"it could not be read: {exc}")
    title = _title(page)
    message = Message(Role.ASSISTANT, text or title, parse_time(edited), more={"native_id": f"{id_}@{edited}"})
    meta = {"url": page["url"]} if page.get("url") else {}
    return FoundSession(id_, edited, Session(id_, (message,), title=title, meta=meta))


def _title(page: Mapping[str, Any]) -> str:
    """Return the page's property of type `title`, under any name."""
    properties = page.get("properties") or {}
    parts: list[dict[str, str]] = next((one["title"] for one in properties.values() if one.get("type") == "title"), [])
    return "".join(part.get("plain_text", "") for part in parts) or "Untitled"

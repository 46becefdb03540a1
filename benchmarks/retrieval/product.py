"""Fill a registry and ask it through the MCP tools, with the clock set to the time of the questions."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.types import CallToolResult, TextContent

from benchmarks.retrieval.question_sets import QuestionSet, Session
from mcp_server.server import create_server
from orchestrator.semantic.embedding import embed_all
from orchestrator.semantic.meaning import Meaning, open_meaning
from orchestrator.service import Orchestrator
from registry import domain
from registry.domain import new_id, parse_time
from registry.registry import Registry
from registry.settings import read_settings
from sources.client import SizeLimit
from sources.clients import CLAUDE_CODE

SENT_AT_ONCE = 500


@dataclass(frozen=True)
class Passage:
    """The part of a set's message that an answer contains."""

    message: str
    text: str


@dataclass(frozen=True)
class Answer:
    """A tool's answer. `text` is what the model reads; `result` is empty for an error."""

    result: Mapping[str, Any]
    text: str
    passages: list[Passage]
    cpu_ms: float

    @property
    def messages(self) -> list[str]:
        """Return the messages in the answer, each once, in order."""
        return list(dict.fromkeys(passage.message for passage in self.passages))


@dataclass
class Product:
    """A connected client, and the mapping between the registry's ids and those of the set."""

    client: Client
    registry: Registry
    channels: dict[str, str] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)
    executions: list[str] = field(default_factory=list)
    meaning: Meaning | None = None
    texts: dict[str, str] = field(default_factory=dict)
    _session_of: dict[str, str] = field(default_factory=dict)
    _by_id: dict[str, str] = field(default_factory=dict)
    _by_time: dict[tuple[str, datetime], str] = field(default_factory=dict)

    async def load(self, sessions: list[Session]) -> None:
        """Log every session, in calls of at most `SENT_AT_ONCE` messages."""
        for number, session in enumerate(sessions):
            # Names are searched too, so this one must not tell the content.
            channel = f"{session.source}_session_{number:04}"
            self.channels[session.id], self.sessions[channel] = channel, session.id
            for start in range(0, len(session.messages), SENT_AT_ONCE):
                await self._log(channel, session, start)

    async def _log(self, channel: str, session: Session, start: int) -> None:
        said = [one for one in session.messages[start : start + SENT_AT_ONCE] if one.text.strip()]
        messages = [{"role": one.role, "text": one.text, "timestamp": one.timestamp} for one in said]
        about = {"source": session.source, "project": session.project, "title": session.title}
        meta = {name: value for name, value in about.items() if value}
        answer = await self.ask("conversation_log", {"channel": channel, "messages": messages, "meta": meta})
        self._by_id |= dict(zip(answer.result["stored_ids"], (one.id for one in said), strict=True))
        self.texts |= {one.id: one.text for one in said}
        self._session_of |= {one.id: session.id for one in said}
        self._by_time |= {(channel, parse_time(one.timestamp)): one.id for one in said}

    async def ask(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """Call a tool. AssertionError for any error but NOT_FOUND."""
        started = time.process_time()
        called = await self.client.call_tool(tool, arguments)
        cpu_ms = 1000 * (time.process_time() - started)
        assert isinstance(called, CallToolResult)
        assert isinstance(called.structured_content, dict)
        envelope = called.structured_content
        assert envelope["ok"] or envelope["error"]["code"] == "NOT_FOUND", envelope
        text = "".join(part.text for part in called.content if isinstance(part, TextContent))
        result = envelope.get("result", {})
        return Answer(result, text, list(self._passages(result, "")), cpu_ms)

    def _passages(self, node: Any, channel: str) -> Iterator[Passage]:
        """Yield every message in a result, at any depth, found by its id or by its channel and time."""
        if isinstance(node, list):
            for part in node:
                yield from self._passages(part, channel)
        if isinstance(node, dict):
            channel = node.get("channel") or channel
            text = node.get("text") or node.get("snippet")
            if isinstance(text, str) and (message := self._message(node, channel)):
                yield Passage(message, text)
            for part in node.values():
                yield from self._passages(part, channel)

    def _message(self, node: Mapping[str, Any], channel: str) -> str | None:
        if node.get("id") in self._by_id:
            return self._by_id[node["id"]]
        return self._by_time.get((channel, parse_time(node["timestamp"]))) if "timestamp" in node else None

    def session_of(self, message: str) -> str:
        """Return the session of a message of the set."""
        return self._session_of[message]

    def stored_ids(self) -> dict[str, str]:
        """Return the registry's id of each message of the set."""
        return {message: stored for stored, message in self._by_id.items()}

    async def takes_also(self, tool: str) -> bool:
        """Return True if the tool's schema has the argument `also`."""
        tools = (await self.client.list_tools()).tools
        return any(one.name == tool and '"also"' in json.dumps(one.input_schema) for one in tools)


@asynccontextmanager
async def product_with(question_set: QuestionSet, *, by_meaning: bool = False) -> AsyncIterator[Product]:
    """Open a new registry with the set's sessions and clock; `by_meaning`: with the configured model."""
    with tempfile.TemporaryDirectory() as folder, clock_at(question_set.now, question_set.zone):
        registry = Registry(f"sqlite:///{Path(folder) / 'registry.db'}")
        meaning = open_meaning(read_settings(), registry) if by_meaning else None
        orchestrator = Orchestrator(registry, meaning=meaning)
        executions: list[str] = []

        async def run(request: Any, client: str | None = None, *, limit: SizeLimit | None = None) -> dict[str, Any]:
            executions.append(new_id("exec"))
            return await orchestrator.run(request, client, executions[-1], limit=limit)

        async with Client(create_server(run, client=CLAUDE_CODE)) as client:
            product = Product(client, registry, executions=executions, meaning=meaning)
            await product.load(list(question_set.sessions))
            if meaning:
                await embed_all(registry, meaning.embedder, lambda _done, _total: None)
            yield product
        await orchestrator.settle()
        if meaning:
            await meaning.close()
        registry.close()


_real_now = domain.now
_set_at: datetime | None = None


def _now() -> datetime:
    return parse_time(_set_at) if _set_at else _real_now()


@contextmanager
def clock_at(moment: datetime, zone: str) -> Iterator[None]:
    """Set the program's clock to a fixed moment and zone within the context.

    `now` is replaced in each module that imports it. It stays replaced and returns the real time later, because modules
    first imported within the context keep the replacement.
    """
    global _set_at
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get("now") is _real_now:
            module.now = _now  # type: ignore[attr-defined]
    zone_before = os.environ.get("TZ")
    _set_at = moment
    _use_zone(zone)
    try:
        yield
    finally:
        _set_at = None
        _use_zone(zone_before)


def _use_zone(zone: str | None) -> None:
    if zone is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = zone
    time.tzset()

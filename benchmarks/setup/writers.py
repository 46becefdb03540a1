"""Clients that log a conversation turn by turn and remember which messages the server acknowledged."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from mcp import Client

from benchmarks.setup.conversations import Message

RESENT = 6  # earlier messages that are sent again with each turn
PAGE = 1000


class WrongAnswer(Exception):
    """A call failed, or its answer does not match the request."""


@dataclass
class Writer:
    """A client that logs one conversation; no two turns are equal."""

    name: str
    channel: str
    acknowledged: list[Message] = field(default_factory=list)
    pending: list[Message] = field(default_factory=list)  # sent, and not answered yet
    turns: int = 0
    retries: int = 0
    slowest: float = 0.0  # seconds until a turn was acknowledged

    def next_turn(self) -> list[Message]:
        """Return a question and its answer."""
        self.turns += 1
        now = datetime.now(UTC)
        return [
            {
                "role": role,
                "text": f"{self.name} {role} {self.turns}: 확인해 주세요. Please check it.",
                "timestamp": (now + timedelta(milliseconds=at)).isoformat(),
            }
            for at, role in enumerate(("user", "assistant"))
        ]

    async def log_turn(self, client: Client) -> None:
        """Send the last few messages and a new turn, or repeat the turn whose answer was lost.

        Raises `WrongAnswer` unless exactly this turn was new: a lost message would count as new again.
        """
        is_retry = bool(self.pending)
        self.retries += is_retry
        turn = self.pending = self.pending or self.next_turn()
        messages = self.acknowledged[-RESENT:] + turn
        started = time.monotonic()
        answer = await client.call_tool("conversation_log", {"channel": self.channel, "messages": messages})
        self.slowest = max(self.slowest, time.monotonic() - started)
        self.pending = []
        result = result_of(answer.structured_content)
        expected = {len(turn), 0} if is_retry else {len(turn)}
        if len(set(result["stored_ids"])) != len(messages) or result["new_count"] not in expected:
            raise WrongAnswer(f"{result['new_count']} new of {len(turn)} in {self.channel}")
        self.acknowledged += turn


@dataclass(frozen=True)
class Audit:
    """Counts of messages: acknowledged, missing and stored twice; the last two should be 0."""

    acknowledged: int
    lost: int
    doubled: int

    def __str__(self) -> str:
        return f"{self.acknowledged} acknowledged messages, {self.lost} lost, {self.doubled} doubled"


async def audit(writers: list[Writer], client: Client) -> Audit:
    """Read every channel back and compare it with what its writers were told."""
    expected_texts: dict[str, list[str]] = defaultdict(list)
    for writer in writers:
        expected_texts[writer.channel] += [message["text"] for message in writer.acknowledged]
    lost = doubled = 0
    for channel, texts in expected_texts.items():
        if not texts:
            continue
        stored = await stored_texts(client, channel)
        lost += sum(stored[text] == 0 for text in texts)
        doubled += sum(count - 1 for count in stored.values())
    return Audit(sum(map(len, expected_texts.values())), lost, doubled)


async def stored_texts(client: Client, channel: str) -> Counter[str]:
    """Count each text in a channel, read with `extract` page by page."""
    found: Counter[str] = Counter()
    query: dict[str, Any] | None = {"limit": PAGE}
    while query:
        answer = await client.call_tool("extract", {"channel": channel, "query": query})
        result = result_of(answer.structured_content)
        found.update(message["text"] for message in result["messages"])
        cursor = result["metadata"].get("next_cursor")
        query = {"limit": PAGE, "cursor": cursor} if cursor else None
    return found


def result_of(envelope: dict[str, Any] | None) -> dict[str, Any]:
    """Return the result in a tool's envelope. WrongAnswer if the call failed."""
    if not envelope or not envelope["ok"]:
        raise WrongAnswer(envelope and envelope["error"])
    return dict(envelope["result"])

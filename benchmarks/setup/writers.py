"""Clients that log a conversation turn by turn and remember what they were told is stored."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from mcp import Client

from benchmarks.setup.conversations import Message

RESENT = 6  # messages of the conversation so far that go along with each turn
PAGE = 1000


class WrongAnswer(Exception):
    """A call failed, or its answer does not fit what was sent."""


@dataclass
class Writer:
    """One conversation, told in turns that nobody has told before."""

    name: str
    channel: str
    acknowledged: list[Message] = field(default_factory=list)
    pending: list[Message] = field(default_factory=list)  # sent, and not answered yet
    turns: int = 0
    retries: int = 0
    slowest: float = 0.0  # seconds until a turn was acknowledged

    def next_turn(self) -> list[Message]:
        """A question and its answer."""
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

    async def tell(self, client: Client) -> None:
        """Send a new turn after the last few messages before it, or again the one whose answer was lost.

        Raises `WrongAnswer` unless exactly this turn was new: a message that was acknowledged and lost
        meanwhile would be new once more.
        """
        again = bool(self.pending)
        self.retries += again
        turn = self.pending = self.pending or self.next_turn()
        messages = self.acknowledged[-RESENT:] + turn
        asked = time.monotonic()
        answer = await client.call_tool("conversation_log", {"channel": self.channel, "messages": messages})
        self.slowest = max(self.slowest, time.monotonic() - asked)
        self.pending = []
        result = result_of(answer.structured_content)
        expected = {len(turn), 0} if again else {len(turn)}
        if len(set(result["stored_ids"])) != len(messages) or result["new_count"] not in expected:
            raise WrongAnswer(f"{result['new_count']} new of {len(turn)} in {self.channel}")
        self.acknowledged += turn


@dataclass(frozen=True)
class Audit:
    """What was acknowledged held against what is stored. `lost` and `doubled` should be 0."""

    acknowledged: int
    lost: int
    doubled: int

    def __str__(self) -> str:
        return f"{self.acknowledged} acknowledged messages, {self.lost} lost, {self.doubled} doubled"


async def audit(writers: list[Writer], client: Client) -> Audit:
    """Read every channel back and count what is missing and what is there twice."""
    told: dict[str, list[str]] = defaultdict(list)
    for writer in writers:
        told[writer.channel] += [message["text"] for message in writer.acknowledged]
    lost = doubled = 0
    for channel, texts in told.items():
        if not texts:
            continue
        stored = await stored_texts(client, channel)
        lost += sum(stored[text] == 0 for text in texts)
        doubled += sum(count - 1 for count in stored.values())
    return Audit(sum(map(len, told.values())), lost, doubled)


async def stored_texts(client: Client, channel: str) -> Counter[str]:
    """How often each text is in a channel, read with `extract` page by page."""
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
    """The result in a tool's envelope."""
    if not envelope or not envelope["ok"]:
        raise WrongAnswer(envelope and envelope["error"])
    return dict(envelope["result"])

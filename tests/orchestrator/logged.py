"""Log conversations as a client does."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from orchestrator.service import Orchestrator


async def log_texts(
    orchestrator: Orchestrator, channel: str, day: str, *texts: str, source: str = "cursor", **meta: Any
) -> None:
    """Log texts of user and assistant in turn, a minute apart, from eight o'clock."""
    at = datetime.fromisoformat(f"{day}T08:00:00+00:00")
    messages = [
        {
            "role": ("user", "assistant")[place % 2],
            "text": text,
            "timestamp": (at + timedelta(minutes=place)).isoformat(),
        }
        for place, text in enumerate(texts)
    ]
    request = {"operation": "save", "channel": channel, "messages": messages, "source": source, "metadata": meta}
    answer = await orchestrator.run(request)
    assert answer["success"], answer


async def log_turns(
    orchestrator: Orchestrator,
    channel: str,
    turns: list[tuple[str, str]],
    day: str = "2026-01-05",
    source: str = "cursor",
    **meta: Any,
) -> None:
    """Log questions with their answers nine seconds later, a minute apart, from noon."""
    messages = [
        {"role": role, "text": text, "timestamp": f"{day}T12:{minute:02}:{second:02}Z"}
        for minute, turn in enumerate(turns)
        for role, text, second in (("user", turn[0], 0), ("assistant", turn[1], 9))
    ]
    request = {"operation": "save", "channel": channel, "messages": messages, "source": source, "metadata": meta}
    answer = await orchestrator.run(request)
    assert answer["success"], answer

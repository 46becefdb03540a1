"""A week of somebody who uses four clients, for those who have no conversations yet."""

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from importlib.resources import files
from typing import Any

from registry.domain import now

SAMPLE = "sample"  # the tag by which the sample is found and removed

Run = Callable[[Mapping[str, Any]], Awaitable[object]]  # carries out a request


async def log_sample(run: Run) -> None:
    """Store the sample's conversations; their times count back from now."""
    for session in json.loads(files("orchestrator").joinpath("sample.json").read_text(encoding="utf-8")):
        start = now() - timedelta(days=session["days_ago"])
        messages = [
            {"role": role, "text": text, "timestamp": (start + timedelta(minutes=number)).isoformat()}
            for number, (role, text) in enumerate(session["messages"])
        ]
        await run(
            {
                "operation": "conversation_log",
                "channel": session["channel"],
                "messages": messages,
                "source": session["source"],
                "metadata": {"title": session["title"]},
            }
        )
        await run({"operation": "tag", "channel": session["channel"], "query": {"tags": [SAMPLE]}})

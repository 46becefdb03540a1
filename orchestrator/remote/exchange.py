"""Exchange with the remote registry: the counts, and the form of a sent message.

Messages are logged as usual, so each side recognises duplicates: messages that are sent twice, or by two machines with
the same history, are stored once. The notes in `registry.storage.exchange` only save repeated transfers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SENT_APART = frozenset({"role", "text", "timestamp", "context"})


@dataclass(slots=True)
class Exchanged:
    """Counts of an exchange; `why`: the last refusal."""

    sent: int = 0
    received: int = 0
    refused: int = 0
    edits: int = 0
    why: str | None = None


def as_sent(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of either registry in the form of a request."""
    more = {name: value for name, value in item["payload"].items() if name not in _SENT_APART}
    context = {"context": item["context"]} if item["context"] else {}
    return {**more, **context, "role": item["role"], "text": item["text"], "timestamp": item["timestamp"]}

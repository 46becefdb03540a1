"""How much of an answer reaches the model behind each client, and how much room a text takes in it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from registry.text.privacy.visible import shown

DEFAULT_TOKENS = 3_000
"""What `extract` gives unless the caller asks for another size."""
ROOM: Mapping[str, int] = {"codex": 10_000, "copilot": 18_000, "gemini": 30_000}
"""By a part of the client's name: how much of a tool's answer reaches its model.

Measured with the real clients: Codex cuts at about 12 000 bytes, Copilot CLI between 18 840 and 27 827, OpenCode at
50 998, all of which count bytes; Gemini CLI at 40 000 characters, Claude Code at 49 645.
"""
OTHERS = 40_000
ENVELOPE = 600
"""Characters that stand around a result: the envelope, where it was looked, the mark of quoted material."""
COUNTS_BYTES = ("codex", "copilot", "opencode")


def room_for(client: str | None, setting: int = 0) -> int:
    """How long a whole answer may be, as `length_for` measures it; a setting above 0 overrides the table."""
    if setting > 0:
        return setting
    name = (client or "").lower()
    return next((size for known, size in ROOM.items() if known in name), OTHERS)


def length_for(client: str | None, text: str) -> int:
    """How long a text is as the client counts it: in bytes, or in characters."""
    counts_bytes = any(known in (client or "").lower() for known in COUNTS_BYTES)
    return len(text.encode()) if counts_bytes else len(text)


def fits(client: str | None, setting: int, result: Mapping[str, Any]) -> bool:
    """Whether a result, written as it goes out, reaches the model behind the client."""
    text = json.dumps(shown(result), ensure_ascii=False, separators=(",", ":"), default=str)
    return length_for(client, text) <= room_for(client, setting) - ENVELOPE


def tokens_in(text: str) -> int:
    """An estimate of a text's length in a model's tokens that errs upwards: ASCII 3 characters, others 1."""
    if text.isascii():
        return -(-len(text) // 3)
    ascii_count = sum(map(str.isascii, text))
    return -(-ascii_count // 3) + (len(text) - ascii_count)


def tokens_of(result: Mapping[str, Any]) -> int:
    """A fair estimate of what an answer takes in a model's tokens, as it goes out: ASCII 4 characters, others 4/3."""
    text = json.dumps(result, ensure_ascii=False, separators=(",", ":"), default=str)
    ascii_count = sum(map(str.isascii, text))
    return ascii_count // 4 + (len(text) - ascii_count) * 3 // 4


def within(text: str, max_tokens: int) -> str:
    """As much of a text's beginning as fits, and a mark where it was cut."""
    if tokens_in(text) <= max_tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if tokens_in(text[:middle] + "…") <= max_tokens else (low, middle - 1)
    return text[:low] + "…"

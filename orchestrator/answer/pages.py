"""As much of a conversation as one answer holds, from one of its ends on. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from orchestrator.answer.passages import shortened
from orchestrator.answer.size import room_for, tokens_in

OURS = 0.85
"""So much of what a client lets through is ours: the envelope takes some, and marks and line ends are escaped."""
AROUND = 45
"""Tokens of a message's id, role, time and sequence."""


def tokens_for(client: str | None, wanted: int, setting: int = 0) -> int:
    """The tokens that are wanted, or as many as the client lets through, or as a setting says."""
    return min(wanted, int(room_for(client, setting) * OURS) // 3)


def page_within(messages: Iterable[dict[str, Any]], max_tokens: int) -> list[dict[str, Any]]:
    """The first of these messages that fit; where they do not all fit, none takes more than half of the room.

    A message that is not shown whole says its `full_length`, in characters.
    """
    given = list(messages)
    if sum(map(_cost, given)) <= max_tokens:
        return given
    shown: list[dict[str, Any]] = []
    left = max_tokens
    for message in given:
        fitting = _fitting(message, max_tokens // 2 - _around(message))
        if shown and _cost(fitting) > left:
            break
        shown.append(fitting)
        left -= _cost(fitting)
    return shown


def piece_of(text: str, offset: int, fits: Callable[[str], bool]) -> str:
    """As much of a text from an offset on as fits, to the end of a line if there is one in its last tenth."""
    rest = text[offset:]
    if fits(rest):
        return rest
    least, most = 1, len(rest) - 1
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(rest[:middle]) else (least, middle - 1)
    line_end = rest.rfind("\n", least - least // 10, least) + 1
    return rest[: line_end or least]


def _fitting(message: dict[str, Any], max_tokens: int) -> dict[str, Any]:
    text, full_length = shortened(message["text"], max(max_tokens, 1), lambda _: 0.0)
    return {**message, "text": text, "full_length": full_length} if full_length else message


def _cost(message: dict[str, Any]) -> int:
    return tokens_in(message["text"]) + _around(message)


def _around(message: dict[str, Any]) -> int:
    return AROUND + tokens_in("".join(str(message[name]) for name in ("context", "tool") if message.get(name)))

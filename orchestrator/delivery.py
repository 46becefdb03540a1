"""What is delivered: messages as the nodes pass them on, how many of them fit, and their shorter forms. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from registry.domain import format_time, preview_of
from registry.storage.messages import MessageRow

LONG_TURN = 8
"""A longer turn is shown by its question, its hits and its last answer."""
DIGEST_WIDTH = 240

Turn = tuple[int, int]
"""A turn's identity: channel number, seq of its first message."""
MessageDict = dict[str, Any]


def message_dict(row: MessageRow) -> MessageDict:
    """A stored message as the nodes pass it on."""
    return {
        "id": row.id,
        "number": row.number,
        "channel": row.channel,
        "channel_number": row.channel_number,
        "source": row.source,
        "seq": row.seq,
        "turn": row.turn,
        "role": row.role,
        "text": row.text,
        "timestamp": format_time(row.timestamp),
        "context": row.payload.get("context"),
    }


def delivered(message: MessageDict) -> MessageDict:
    """The message as it leaves the orchestrator."""
    context = {"context": message["context"]} if message["context"] else {}
    return {key: message[key] for key in ("id", "role", "text", "timestamp")} | context


def arrange(
    turns: Sequence[Turn],
    messages: Iterable[MessageDict],
    hits: frozenset[int],
    *,
    limit: int,
    max_tokens: int | None,
) -> tuple[list[MessageDict], int]:
    """The messages of as many turns as fit, best turns first, in conversation order; and how many turns that is.

    Each message has `number`, `channel_number`, `turn`, `role`, `text`. A first turn too long for the limits
    is cut to its hits, then its texts are cut, so that there is always an answer.
    """
    by_turn: Mapping[Turn, list[MessageDict]] = _by_turn(messages)
    chosen: list[MessageDict] = []
    taken = 0
    for turn in turns:
        whole = _shortened(by_turn.get(turn, []), hits)
        more = whole if taken else _cut_to(whole, hits, limit, max_tokens)
        if len(chosen) + len(more) > limit or not _fits([*chosen, *more], max_tokens):
            break
        chosen += more
        taken += 1
    return sorted(chosen, key=lambda message: (message["timestamp"], message["number"])), taken


def last_within(messages: Sequence[MessageDict], max_tokens: int | None) -> list[MessageDict]:
    """As many of the newest messages as fit, in order; the newest is cut if it alone is too long."""
    chosen: list[MessageDict] = []
    for message in reversed(messages):
        if not _fits([message, *chosen], max_tokens):
            break
        chosen.insert(0, message)
    if messages and not chosen and max_tokens is not None:
        return [_cut(messages[-1], max_tokens)]
    return chosen


def _by_turn(messages: Iterable[MessageDict]) -> dict[Turn, list[MessageDict]]:
    groups: dict[Turn, list[MessageDict]] = defaultdict(list)
    for message in messages:
        groups[(message["channel_number"], message["turn"])].append(message)
    return groups


def _shortened(turn: list[MessageDict], hits: frozenset[int]) -> list[MessageDict]:
    """A long turn (an agent's many tool calls) without what is neither question, hit nor last answer."""
    if len(turn) <= LONG_TURN:
        return turn
    answers = [message for message in turn if message["role"] == "assistant"]
    ends = {turn[0]["number"], *(message["number"] for message in answers[-1:])}
    return [message for message in turn if message["number"] in hits | ends]


def _cut_to(turn: list[MessageDict], hits: frozenset[int], limit: int, max_tokens: int | None) -> list[MessageDict]:
    """The best turn, made to fit: hits before the rest, then shorter texts."""
    wanted = sorted(turn, key=lambda message: message["number"] not in hits)[:limit]
    if max_tokens is None or _fits(wanted, max_tokens):
        return wanted
    fitting: list[MessageDict] = []
    for message in wanted:
        if _fits([*fitting, message], max_tokens):
            fitting.append(message)
    return fitting or [_cut(message, max_tokens) for message in wanted[:1]]


def _fits(messages: Iterable[MessageDict], max_tokens: int | None) -> bool:
    return max_tokens is None or sum(tokens_in(message["text"]) for message in messages) <= max_tokens


def tokens_in(text: str) -> int:
    """An estimate of a text's length in a model's tokens that errs upwards: ASCII 3 characters, others 1."""
    ascii_count = sum(map(str.isascii, text))
    return -(-ascii_count // 3) + (len(text) - ascii_count)


def _cut(message: MessageDict, max_tokens: int) -> MessageDict:
    """The message with as much of its text as fits, and a mark where it ends."""
    return {**message, "text": cut_text(message["text"], max_tokens)}


def cut_text(text: str, max_tokens: int | None) -> str:
    """As much of a text as fits, and a mark where it was cut."""
    if max_tokens is None or tokens_in(text) <= max_tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if tokens_in(text[:middle] + "…") <= max_tokens else (low, middle - 1)
    return text[:low] + "…"


_SENTENCE_END = re.compile(r"(?<=[.!?。？！])\s+|\n")


class Summarizer(Protocol):
    """Makes a text of messages; a language model may take this place."""

    name: str

    def summarize(self, messages: Sequence[dict[str, Any]]) -> str:
        """What was said, shorter."""


class FirstSentences:
    """The summary that needs no model: of every question and answer its first sentence."""

    name = "first sentences"

    def summarize(self, messages: Sequence[dict[str, Any]]) -> str:
        """One line per user and assistant message, in order."""
        marks = {"user": "Q", "assistant": "A"}
        return "\n".join(
            f"{marks[message['role']]}: {_first_sentence(message['text'])}"
            for message in messages
            if message["role"] in marks and message["text"].strip()
        )


def digest(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same messages, each cut to its first lines."""
    return [{**message, "text": preview_of(message["text"], DIGEST_WIDTH)} for message in messages]


def _first_sentence(text: str) -> str:
    """The first sentence that says something, on one line."""
    sentences = (sentence.strip(" #*->`") for sentence in _SENTENCE_END.split(text.strip()))
    return preview_of(next((sentence for sentence in sentences if sentence), ""), DIGEST_WIDTH)

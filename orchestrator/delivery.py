"""What is delivered: messages as the nodes pass them on, how many of them fit, and their shorter forms. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from orchestrator.answer.size import within
from registry.domain import format_time, preview_of
from registry.storage.messages import MessageRow

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
        "tool": row.payload.get("tool"),
    }


def delivered(message: MessageDict) -> MessageDict:
    """The message as it leaves the orchestrator; what is empty is left out."""
    more = {name: message[name] for name in ("context", *_MARKS) if message.get(name)}
    return {key: message[key] for key in ("id", "role", "text", "timestamp")} | more


_MARKS = ("gap_before", "full_length", "superseded_by")


def cut_text(text: str, max_tokens: int | None) -> str:
    """As much of a text as fits, and a mark where it was cut."""
    return text if max_tokens is None else within(text, max_tokens)


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
